import math

import numpy as np
import pytest

from demur.core.acts import parse_acts
from demur.errors import UsageError
from demur.lab.noise import ActChannel

VALUES = {"food": ["thai", "turkish", "chinese", "asian oriental"], "area": ["north", "south"], "task": ["find"]}
ACTS = ["inform(food=thai, area=north, task=find)", "inform(food!=chinese)&request(phone)", "bye()"] * 200
IDS = range(len(ACTS))


def foods(act):
    return [slot.value for one in parse_acts(act) for slot in one.slots if slot.name in ("food", "area")]


def test_without_errors_acts_come_through_surely():
    assert ActChannel(values=VALUES, rate=0.0).recognise(ACTS[:3]).lists == [
        [{"act": act, "confidence": 1.0}] for act in ACTS[:3]
    ]


def test_values_are_misheard_at_the_rate_asked_for():
    heard = ActChannel(values=VALUES, rate=0.3).recognise(ACTS, IDS).lists
    wrong = [
        said != got
        for act, found in zip(ACTS, heard, strict=True)
        for said, got in zip(foods(act), foods(found[0]["act"]), strict=True)
    ]
    assert np.mean(wrong) == pytest.approx(0.3, abs=0.05)


def test_names_and_slots_that_are_not_listed_come_through():
    for act, found in zip(ACTS, ActChannel(values=VALUES, rate=1.0).recognise(ACTS, IDS).lists, strict=True):
        for one in found:
            said, got = parse_acts(act), parse_acts(one["act"])
            assert [(a.name, [s.name for s in a.slots]) for a in said] == [
                (a.name, [s.name for s in a.slots]) for a in got
            ]
        assert "task=find" in found[0]["act"] or "task" not in act


def test_lists_sum_to_at_most_one_and_come_surest_first():
    for found in ActChannel(values=VALUES, rate=0.5).recognise(ACTS, IDS, n=4).lists:
        sure = [one["confidence"] for one in found]
        assert 1 <= len(sure) <= 4
        assert math.fsum(sure) <= 1
        assert sure == sorted(sure, reverse=True)
        assert len({one["act"] for one in found}) == len(found)


def test_confidences_are_calibrated():
    acts = ["inform(food=thai)"] * 600
    heard = ActChannel(values=VALUES, rate=0.4).recognise(acts, range(600)).lists
    best = [found[0] for found in heard]
    right = np.mean([one["act"] == "inform(food=thai)" for one in best])
    assert np.mean([one["confidence"] for one in best]) == pytest.approx(right, abs=0.05)


def test_lists_do_not_depend_on_the_other_acts():
    line = ActChannel(values=VALUES, rate=0.5, seed=3)
    assert line.recognise(ACTS, IDS).lists[5:6] == line.recognise(ACTS[5:6], IDS[5:6]).lists


def test_values_that_are_not_listed_are_taken_for_listed_ones():
    found = ActChannel(values=VALUES, rate=1.0).recognise(["inform(food=tie)"]).lists[0]
    assert found[0]["act"] == "inform(food=thai)"


def test_faults_name_what_was_got():
    with pytest.raises(UsageError, match="from 0 to 1; got 2"):
        ActChannel(values=VALUES, rate=2)
    line = ActChannel(values=VALUES, rate=0.1)
    with pytest.raises(UsageError, match="got 1 for 2"):
        line.recognise(["bye()", "bye()"], ["u1"])
    with pytest.raises(UsageError, match="at least one act; asked for 0"):
        line.recognise(["bye()"], n=0)
