"""What components contribute to impurity mass, by hand and beside differences of differences."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.gold_standard.impurity import ConfidenceLevel, analyse_components, check_components
from reference.gold import factorial_effect, interval, weighed

SURE = ConfidenceLevel(0.95, 7)
NONE, ASR, NLU, BOTH = frozenset(), frozenset({"asr"}), frozenset({"nlu"}), frozenset({"asr", "nlu"})


def apart(masses, replicates=None):
    drawn = replicates or {on: [mass, mass] for on, mass in masses.items()}
    return analyse_components("guide", {on: weighed(mass, drawn[on]) for on, mass in masses.items()}, SURE)


def effects(found):
    return {(one.kind, one.components, one.others): one.change for one in found.effects}


def test_two_components_by_hand():
    """Alone asr takes .1 off and nlu .2, together .5: main effects -.2 and -.3, interaction -.2."""
    found = effects(apart({NONE: 0.6, ASR: 0.5, NLU: 0.4, BOTH: 0.1}))
    assert found["main", ("asr",), None].value == pytest.approx(-0.2)
    assert found["main", ("nlu",), None].value == pytest.approx(-0.3)
    assert found["interaction", ("asr", "nlu"), None].value == pytest.approx(-0.2)
    assert found["lesion", ("asr",), ("nlu",)].value == pytest.approx(0.3)
    assert found["lesion", ("nlu",), ("asr",)].value == pytest.approx(0.4)
    assert found["lesion", ("asr",), ()].value == pytest.approx(0.1)
    assert found["lesion", ("nlu",), ()].value == pytest.approx(0.2)
    assert len(found) == 7


def test_lesions_of_the_fullest_system_come_first():
    found = apart({NONE: 0.6, ASR: 0.5, NLU: 0.4, BOTH: 0.1})
    assert [one.others for one in found.effects if one.kind == "lesion"] == [("nlu",), ("asr",), (), ()]


@given(st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_effects_over_every_combination_are_differences_of_differences(values):
    names = ("a", "b", "c")
    every = [frozenset(on) for size in range(4) for on in combinations(names, size)]
    masses = dict(zip(every, values, strict=True))
    found = apart(masses)
    told = {one.components: one.change.value for one in found.effects if one.kind != "lesion"}
    assert set(told) == {tuple(sorted(on)) for on in every if on}
    for term, value in told.items():
        assert value == pytest.approx(factorial_effect(names, term, masses), abs=1e-9)
    assert found.missing == ()


def test_intervals_are_of_the_differences_of_replicates():
    drawn = {NONE: [0.6, 0.7, 0.5], ASR: [0.5, 0.5, 0.4], NLU: [0.4, 0.3, 0.4], BOTH: [0.1, 0.2, 0.1]}
    found = effects(apart({NONE: 0.6, ASR: 0.5, NLU: 0.4, BOTH: 0.1}, drawn))
    lesion = found["lesion", ("asr",), ("nlu",)]
    assert (lesion.low, lesion.high) == pytest.approx(interval(0.3, [0.3, 0.1, 0.3], 8))
    both = found["interaction", ("asr", "nlu"), None]
    apart_each = [
        factorial_effect(("asr", "nlu"), ("asr", "nlu"), {on: drawn[on][k] for on in drawn}) for k in (0, 1, 2)
    ]
    assert (both.low, both.high) == pytest.approx(interval(-0.2, apart_each, 8))


def test_one_component_switched_off_is_a_lesion_and_a_main_effect():
    found = apart({NONE: 0.5, ASR: 0.2})
    told = effects(found)
    assert told["lesion", ("asr",), ()].value == pytest.approx(0.3)
    assert told["main", ("asr",), None].value == pytest.approx(-0.3)
    assert found.missing == ()
    assert found.notes == ()


def test_combinations_that_were_not_run_are_named_and_interactions_left_out():
    """Three of four combinations tell two main effects if there is no interaction, and say so."""
    found = apart({NONE: 0.6, ASR: 0.5, BOTH: 0.1})
    assert found.missing == (NLU,)
    assert found.notes == ("too few combinations were run for interactions",)
    told = {one.components: one.change.value for one in found.effects if one.kind == "main"}
    assert told == pytest.approx({("asr",): -0.1, ("nlu",): -0.4})


def test_what_cannot_be_told_apart_is_undefined_and_says_why():
    """All on or all off: two components that always go together."""
    found = apart({NONE: 0.6, BOTH: 0.1})
    mains = [one for one in found.effects if one.kind == "main"]
    assert mains
    assert not any(one.change.defined for one in mains)
    assert {one.change.why for one in mains} == {"the combinations that were run do not separate it from other effects"}
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_a_component_that_is_always_on_is_noted():
    found = apart({ASR: 0.5, BOTH: 0.1})
    assert found.notes[-1] == "asr: never switched off in guide, so nothing is known of it"
    told = {one.components: one.change.value for one in found.effects if one.kind != "lesion"}
    assert told == pytest.approx({("nlu",): -0.4})


def test_an_interaction_that_can_be_told_is_kept_beside_one_that_cannot():
    names = ("a", "b", "c")
    run = [frozenset(on) for on in ((), ("a",), ("b",), ("a", "b"), ("c",))]
    found = apart({on: 0.5 - 0.1 * len(on) for on in run})
    asked = [one.components for one in found.effects if one.kind == "interaction"]
    assert asked == [("a", "b")]
    assert len(found.missing) == 2 ** len(names) - len(run)
    assert all(one.change.defined for one in found.effects)


def test_a_system_of_which_nothing_was_switched_off_is_refused():
    with pytest.raises(DataError, match=r"asr and nlu were never switched off in the trials of guide \(run trials"):
        check_components("guide", [BOTH])
    with pytest.raises(DataError, match="asr was never switched off"):
        check_components("guide", [ASR])
    with pytest.raises(DataError, match="guide was run without any component, so there is nothing to take apart"):
        check_components("guide", [NONE])
    check_components("guide", [NONE, ASR])


def test_an_analysis_is_written_as_plain_values():
    told = apart({NONE: 0.6, ASR: 0.5, BOTH: 0.1}).to_dict()
    assert told["masses"][2] == {
        "components": ["asr", "nlu"],
        "impurity_mass": {"value": 0.1, "low": None, "high": None},
    }
    assert told["missing"] == [["nlu"]]
    assert {one["kind"] for one in told["effects"]} == {"lesion", "main"}
    assert all("others" in one for one in told["effects"] if one["kind"] == "lesion")
    assert np.isfinite([one["value"] for one in told["effects"]]).all()
