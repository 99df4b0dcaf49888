import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact

from demur.core.stats.intervals import fisher, newcombe, wilson
from demur.errors import DataError
from demur.returns.slices import OUT_OF_SCOPE, SliceOfRows, WeighedSlice, WholeSystem, slice_columns, slice_differences
from demur.returns.table import Reading, responses
from reference import slices as plain

EVERYTHING = Reading(keep=("*",))
FEW = settings(max_examples=settings.default.max_examples // 2)
STUDIES = min(120, 5 * settings.default.max_examples // 2)


def table(**columns):
    n = len(columns["correct"])
    return responses(pl.DataFrame({"id": [str(k) for k in range(n)], **columns}), reading=EVERYTHING)


def simulated(rng, n=400, *, error=0.2, dialogues=False, weights=False, shift=0.0):
    """Answers of which a slice says nothing, unless a shift makes answers of slice `a` err more."""
    of = np.arange(n) // 8
    sure = 1 / (1 + np.exp(-(rng.normal(size=n) + 1 + (rng.normal(size=n)[of] if dialogues else 0))))
    group = np.array(list("abcd"))[rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])]
    right = rng.random(n) < 1 - 2 * error * (1 - sure) - shift * (group == "a")
    columns = {"correct": right, "confidence": sure, "group": group, "half": np.where(rng.random(n) < 0.5, "x", "y")}
    if dialogues:
        columns["dialogue"] = [f"d{k}" for k in of]
    if weights:
        columns["weight"] = rng.integers(1, 4, n).astype(float)
    return table(**columns)


def test_the_worked_case():
    """Slice x: 40 answers, 10 wrong and returned; the rest: 60 answers, 3 wrong and returned."""
    correct = [False] * 10 + [True] * 30 + [False] * 3 + [True] * 57
    found = slice_differences(
        table(correct=correct, confidence=[0.9] * 50 + [0.8] * 50, part=["x"] * 40 + ["y"] * 60),
        {"system": 0.8},
        ["part"],
    )
    (test,) = [one for one in found.tests if one.what == "error"]
    assert (test.part, test.n, test.rest) == ("part=x", 40, 60)
    assert (test.inside, test.outside) == (0.25, 0.05)
    assert test.difference == pytest.approx(0.2)
    assert test.p == pytest.approx(plain.fisher(10, 40, 13, 100))
    alone = newcombe((0.25, 40), (0.05, 60), 0.95 ** (1 / len(found.tests)))  # errors, and the area
    assert (test.low, test.high) == pytest.approx(alone)
    assert 0 < test.low < test.difference < test.high
    assert not [one for one in found.tests if one.what == "nonreturn"], "all is returned, so nothing varies"


def test_the_interval_is_that_of_newcombe():
    """Newcombe (1998), table II: 56/70 against 48/80 by method 10."""
    assert newcombe((56 / 70, 70), (48 / 80, 80), 0.95) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert newcombe((0.0, 10), (0.0, 20), 0.95) == pytest.approx((-0.1611, 0.2775), abs=5e-5)
    assert wilson(0.0, 10, 0.95) == pytest.approx((0.0, 0.2775), abs=5e-5)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_the_exact_test_is_that_of_fractions(drawn, others, data):
    total = drawn + others
    marked = data.draw(st.integers(0, total))
    hits = data.draw(st.integers(max(0, drawn + marked - total), min(drawn, marked)))
    assert fisher(hits, drawn, marked, total) == pytest.approx(plain.fisher(hits, drawn, marked, total), rel=1e-6)


@pytest.mark.parametrize("manner", [{}, {"weights": True}, {"dialogues": True}])
def test_values_are_those_of_counting_row_by_row(manner):
    log = simulated(np.random.default_rng(3), n=240, error=0.4, **manner)
    found = slice_differences(log, {"system": 0.6}, ["group", "half"], least=10)
    rows = log.frame.to_dicts()
    assert {test.what for test in found.tests} == {"error", "nonreturn", "augrc"}
    for test in found.tests:
        mine = [row for row in rows if row[test.column] == test.value]
        rest = [row for row in rows if row[test.column] != test.value]
        value = {
            "error": lambda some: plain.rate(some, plain.is_error(0.6)),
            "nonreturn": lambda some: plain.rate(some, plain.is_withheld(0.6)),
            "augrc": plain.area,
        }[test.what]
        assert (test.n, test.rest) == (len(mine), len(rest))
        assert test.inside == pytest.approx(value(mine))
        assert test.outside == pytest.approx(value(rest))
        assert test.low <= test.difference <= test.high


@pytest.mark.parametrize("manner", [{}, {"error": 0.03}, {"weights": True}, {"dialogues": True}])
def test_under_no_difference_false_alarms_keep_to_the_level(manner):
    """Of 25 studies of nothing, more than 4 with an alarm would happen once in a hundred times at a level of 5 %."""
    rng = np.random.default_rng(11)
    alarms = sum(
        bool(slice_differences(simulated(rng, **manner), {"system": 0.7}, ["group", "half"]).shown)
        for _ in range(STUDIES)
    )
    assert alarms <= binom.ppf(0.99, STUDIES, 0.05)


def test_a_difference_that_is_there_is_found():
    found = slice_differences(
        simulated(np.random.default_rng(5), n=2000, shift=0.3), {"system": 0.5}, ["group", "half"]
    )
    shown = {(test.part, test.what) for test in found.shown if test.difference > 0}
    assert {("group=a", "error"), ("group=a", "augrc")} <= shown
    assert not {part for part, _ in shown if part.startswith("half")}
    assert found.tests[0].part == "group=a", "the clearest comes first"


def test_p_values_are_corrected_for_all_tests_together():
    found = slice_differences(simulated(np.random.default_rng(5)), {"system": 0.5}, ["group", "half"])
    p = sorted(test.p for test in found.tests)
    assert min(test.p_adjusted for test in found.tests) == pytest.approx(1 - (1 - p[0]) ** len(p))
    assert all(test.p <= test.p_adjusted for test in found.tests)


@FEW
@given(st.integers(0, 1000), st.sampled_from([{}, {"weights": True}, {"dialogues": True}]))
def test_the_order_of_rows_does_not_matter(seed, manner):
    log = simulated(np.random.default_rng(seed), n=160, **manner)
    mixed = responses(
        log.frame.sample(fraction=1, shuffle=True, seed=seed).select(
            pl.exclude("answered", "right", "failed", "out_of_scope", "target", "prediction"), correct="right"
        ),
        reading=EVERYTHING,
    )
    one, two = (slice_differences(table, {"system": 0.6}, ["group"]) for table in (log, mixed))
    assert len(one.tests) == len(two.tests)
    for test, other in zip(one.tests, two.tests, strict=True):
        assert (test.part, test.what) == (other.part, other.what)
        assert (test.difference, test.p) == pytest.approx((other.difference, other.p), rel=1e-9)


def test_dialogues_that_count_as_one_make_intervals_wider():
    rng = np.random.default_rng(3)
    right = np.repeat(rng.random(60) < 0.7, 8)
    columns = {
        "correct": right,
        "confidence": rng.random(480),
        "part": np.repeat(np.where(np.arange(60) % 2, "x", "y"), 8),
    }
    alone = slice_differences(table(**columns), {"system": 0.0}, ["part"]).tests
    together = slice_differences(
        table(**columns, dialogue=np.repeat([f"d{k}" for k in range(60)], 8)), {"system": 0.0}, ["part"]
    ).tests
    for what in ("error", "augrc"):
        narrow, wide = (next(test for test in tests if test.what == what) for tests in (alone, together))
        assert wide.difference == pytest.approx(narrow.difference)
        assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
        assert wide.p > narrow.p


def test_of_two_values_the_rarer_is_tested():
    log = table(correct=[True, False] * 100, confidence=[0.5] * 200, part=["x"] * 60 + ["y"] * 140)
    assert {test.value for test in slice_differences(log, {"system": 0.1}, ["part"]).tests} == {"x"}


def test_small_slices_are_told_and_not_tested():
    log = table(correct=[True, False] * 60, confidence=np.arange(120) / 120, part=["x"] * 20 + ["y"] * 50 + ["z"] * 50)
    found = slice_differences(log, {"system": 0.1}, ["part"])
    assert {test.value for test in found.tests} == {"y", "z"}
    (left,) = found.untested
    assert (left.value, left.n, left.why) == ("x", 20, "20 inputs, fewer than 30")


def test_slices_of_few_dialogues_are_not_tested():
    dialogue = [f"d{k // 20}" for k in range(200)]
    log = table(correct=[True, False] * 100, confidence=[0.5] * 200, part=["x", "y"] * 100, dialogue=dialogue)
    assert not slice_differences(log, {"system": 0.1}, ["part"]).untested
    few = [f"d{k // 40}" for k in range(200)]
    log = table(correct=[True, False] * 100, confidence=[0.5] * 200, part=["x", "y"] * 100, dialogue=few)
    assert "5 dialogues on one side" in slice_differences(log, {"system": 0.1}, ["part"]).untested[0].why


def test_slices_out_of_scope_are_set_aside():
    rows = [
        {
            "id": k,
            "target": "oos" if k % 4 == 0 else "a",
            "prediction": "a",
            "confidence": k / 400,
            "domain": "none" if k % 4 == 0 else "xy"[k % 2],
        }
        for k in range(400)
    ]
    found = slice_differences(responses(rows, reading=EVERYTHING), {"system": 0.5}, ["domain"])
    assert [(one.value, one.n, one.why) for one in found.untested] == [("none", 100, OUT_OF_SCOPE)]
    assert {test.n + test.rest for test in found.tests} == {300}


def test_nothing_is_returned_at_no_threshold_so_only_areas_are_compared():
    found = slice_differences(simulated(np.random.default_rng(1)), {"system": math.nan}, ["half"])
    assert {test.what for test in found.tests} == {"augrc"}


def test_a_missing_value_is_a_slice_of_its_own():
    log = table(correct=[True, False] * 60, confidence=[0.5] * 120, part=["x"] * 40 + [None] * 80)
    assert slice_differences(log, {"system": 0.1}, ["part"]).tests[0].value == "x"


def test_columns_that_cannot_be_sliced_by_are_refused():
    log = simulated(np.random.default_rng(1), n=300)
    with pytest.raises(DataError, match='there is no column "grup"; did you mean "group"'):
        slice_differences(log, {}, ["grup"])
    with pytest.raises(DataError, match='"id" has 300 values, too many to slice by'):
        slice_differences(log, {}, ["id"])


def test_columns_worth_slicing_by_have_few_values_and_do_not_say_who_is_right():
    n = 200
    right = [k % 3 > 0 for k in range(n)]
    log = table(
        correct=right,
        confidence=[0.5] * n,
        noise=[k % 2 for k in range(n)],
        grade=["good" if one else "bad" for one in right],
        same=["x"] * n,
        text=[f"t{k}" for k in range(n)],
        rare=["x"] * (n - 5) + ["y"] * 5,
    )
    assert slice_columns(log) == ("noise",)


def test_the_tests_are_a_frame_and_plain_values():
    found = slice_differences(simulated(np.random.default_rng(1)), {"system": 0.5}, ["group"])
    assert found.frame().height == len(found.tests) == len(found.to_dict()["tests"])
    assert found.to_dict()["thresholds"] == {"system": 0.5}


def test_counts_and_rows_give_the_same_areas():
    whole = WholeSystem("system", simulated(np.random.default_rng(4), n=200).frame, 0.5)
    places = np.flatnonzero((whole.frame["group"] == "c").to_numpy())
    counted, weighed = (kind(whole, places).area() for kind in (SliceOfRows, WeighedSlice))
    assert counted[:2] == pytest.approx(weighed[:2], rel=1e-12)
    assert counted[2](0.9) == pytest.approx(weighed[2](0.9), rel=1e-9)
    assert counted[3] == pytest.approx(weighed[3], rel=1e-9)


def test_the_exact_test_of_many_inputs_is_that_of_scipy():
    """At these sizes all but a stretch around the mean is left out."""
    tables = [(27_000, 100_000, 262_000, 1_000_000), (3, 400_000, 5, 1_000_000), (26_300, 100_000, 262_000, 1_000_000)]
    for hits, drawn, marked, total in tables:
        table = [[hits, drawn - hits], [marked - hits, total - drawn - marked + hits]]
        assert fisher(hits, drawn, marked, total) == pytest.approx(fisher_exact(table).pvalue, rel=1e-8)
