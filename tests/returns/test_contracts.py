"""What must hold for every measure in the registry, present and future."""

import doctest
import sys
from math import isnan, nan

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from demur.core.stats.calibration import cell_totals
from demur.core.stats.measure import Score, TermMeasure, parse_signature
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.nbest_lists.measures import KINDS
from demur.returns.classes import CLASSES, MEASURES, Confusion
from demur.returns.measures import term_measures
from demur.returns.scope import SCOPE
from demur.returns.verify import totals_by_arrays
from engines.tables import drawn_rows, judged

FEW = settings(max_examples=max(3, settings.default.max_examples // 4))
RICH = [
    *((0.9, "a", "a", 1), (0.7, "b", "a", 1), (0.7, "b", "b", 1), (0.5, "c", "c", 1), (0.3, "a", "c", 1)),
    *((0.3, "a", "a", 1), (0.125, "c", "b", 1), (0.0, "b", "b", 1), (0.5, "b", None, 1)),
]
"""Rows with ties, every label confused, and one answer withheld, so that every measure is defined."""
every_measure = pytest.mark.parametrize("name", sorted(MEASURES))


def through_arrays(measure, frame):
    return Score.of(measure, totals_by_arrays(measure, frame))


def same(one, two):
    return one == two or (isnan(one) and isnan(two))


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


@every_measure
def test_a_measure_says_what_it_is(name):
    measure = MEASURES[name]
    assert measure.name
    assert measure.title
    assert measure.better in ("lower", "higher")
    assert measure.reference
    assert type(measure).__doc__.strip().splitlines()[0].endswith(".")
    assert type(measure).__name__ in KINDS


def test_intervals_that_are_of_one_measure_are_asked_for_by_no_other():
    own = {"area": {"AUGRC"}, "inverse": {"NonreturnAtError"}}
    asked = {kind: {name for name, one in KINDS.items() if getattr(one, "interval", "") == kind} for kind in own}
    assert asked == own


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_measures_docstring_has_an_example_that_runs(kind):
    measure = KINDS[kind]
    names = vars(sys.modules[measure.__module__])
    (found,) = doctest.DocTestFinder(recurse=False).find(measure, kind, globs=dict(names))
    assert found.examples
    assert doctest.DocTestRunner(verbose=False).run(found).failed == 0


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_measures_docstring_says_which_way_is_better(kind):
    words = KINDS[kind].__doc__.lower()
    assert "better" in words or "gives more choice" in words


@FEW
@given(drawn_rows(largest=20), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows, random):
    frames = [judged(part) for part in (rows, random.sample(rows, len(rows)))]
    for name, measure in MEASURES.items():
        one, two = (through_arrays(measure, frame) for frame in frames)
        assert same(one.value, two.value), name
        assert one.signature == two.signature, name


@every_measure
def test_row_order_does_not_matter_to_the_last_digit_of_weighted_rows(name):
    rng = np.random.default_rng(0)
    rows = [
        (float(np.round(rng.random(), 2)), "abc"[rng.integers(3)], ["a", "b", "c", None][rng.integers(4)], rng.random())
        for _ in range(300)
    ]
    frame = judged(rows)
    one, two = (through_arrays(MEASURES[name], part) for part in (frame, frame.reverse()))
    assert same(one.value, two.value)
    assert one.signature == two.signature


@every_measure
@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_moves_no_more_than_the_last_digits_of_what_an_engine_sums(name, weighted):
    rng = np.random.default_rng(1)
    rows = [
        (
            float(rng.random()),
            "abc"[rng.integers(3)],
            ["a", "b", "c", None][rng.integers(4)],
            rng.random() if weighted else 1,
        )
        for _ in range(300)
    ]
    frame = judged(rows)
    one, two = (MEASURES[name](part) for part in (frame, frame.reverse()))
    assert one.value == pytest.approx(two.value, rel=1e-12, nan_ok=True)
    assert one.signature == two.signature


@FEW
@given(drawn_rows(), drawn_rows())
@example(RICH, RICH[3:])
def test_parts_add_up_to_the_whole(one, two):
    frames = [judged(part) for part in (one, two, one + two)]
    for name, measure in MEASURES.items():
        first, second, whole = (measure(frame) for frame in frames)
        added = first + second
        assert added.value == close(whole.value), name
        assert added.n == whole.n == len(one) + len(two), name
        if not isinstance(measure, TermMeasure):
            assert added == whole, name


@given(drawn_rows(st.sampled_from([0.5, 1, 3]), largest=20))
@example([(*RICH[0][:3], 2), (1.5, "a", "b", 1), (-0.25, "b", "b", 1), (-1e-9, "a", "b", 1), (1.0, "a", "a", 1)])
def test_sums_over_rows_are_read_from_the_sweep(rows):
    frame = judged(rows)
    for name, measure in term_measures().items():
        assert cell_totals(measure, rows_of(frame).sweep()) == close(measure.reduce(nw.from_native(frame))), name


@FEW
@given(drawn_rows(st.sampled_from([0, 1, 1, 2, 3])))
@example([(*row[:3], place % 4) for place, row in enumerate(RICH)])
def test_whole_weights_equal_repetition(rows):
    repeated = [(*row[:3], 1) for row in rows for _ in range(row[3])]
    assume(repeated)
    frames = [judged(part) for part in (rows, repeated)]
    for name, measure in MEASURES.items():
        weighed, listed = (through_arrays(measure, frame) for frame in frames)
        assert weighed.value == close(listed.value), name


@every_measure
def test_a_common_factor_of_the_weights_does_not_matter(name):
    rows = [(0.9, "a", "a", 1), (0.8, "b", "a", 1), (0.8, "b", "b", 2), (0.3, "a", "b", 1), (0.1, "a", None, 1)]
    counted = name in ("aurc", "e_aurc", "ece_debiased")  # of answers, which whole weights are taken to be
    factors = (1 / 8, 1 / 1000) if counted else (1, 1 / 8)
    one, two = (
        through_arrays(MEASURES[name], judged([(*row[:3], row[3] * factor) for row in rows])) for factor in factors
    )
    assert one.value == close(two.value)


@every_measure
def test_rows_that_all_weigh_nothing_give_no_value_and_no_warning(name):
    rows = [(0.9, "a", "a", 0), (0.8, "b", "a", 0)]
    value, why = _value_or_refusal(MEASURES[name], judged(rows))
    assert isnan(value)
    assert why


def _value_or_refusal(measure, frame):
    try:
        score = through_arrays(measure, frame)
        return score.value, score.why
    except DataError as fault:
        return nan, str(fault)


@every_measure
def test_an_empty_table_is_refused(name):
    with pytest.raises(DataError, match="at least one row; the table is empty"):
        MEASURES[name](judged([]))


@FEW
@given(drawn_rows())
@example(RICH)
def test_a_signature_parses_back_and_an_undefined_value_alone_has_a_reason(rows):
    frame = judged(rows)
    for name, measure in MEASURES.items():
        score = measure(frame)
        read = parse_signature(score.signature, KINDS)
        assert (read.measure, read.n, read.data) == (measure, score.n, score.data), name
        assert isnan(score.value) == bool(score.why), name
        assert (score.to_dict()["value"] is None) == isnan(score.value), name


@FEW
@given(drawn_rows(), st.integers(0, 1000))
@example(RICH, 0)
def test_replicates_read_together_are_replicates_read_one_by_one(rows, seed):
    frame = judged(rows)
    for name, measure in MEASURES.items():
        stack, parts = _stacked(_totals(measure, frame), np.random.default_rng(seed))
        together = measure.finish(_terms(measure, stack))
        assert together.shape == (len(parts),), name
        for value, part in zip(together, parts, strict=True):
            assert float(value) == close(float(measure.finish(_terms(measure, part)))), name


def _totals(measure, frame):
    if measure in CLASSES.values():
        return Confusion.of(*(frame[name].to_list() for name in ("actual", "predicted", "weight")))
    return totals_by_arrays(measure, frame) if measure in SCOPE.values() else rows_of(frame).sweep()


def rows_of(frame):
    return Rows.from_frame(frame.with_columns(dialogue=pl.lit(None, pl.String)))


def _terms(measure, totals):
    return cell_totals(measure, totals) if isinstance(measure, TermMeasure) else totals


def _stacked(totals, rng, size=4):
    """Totals with every count multiplied at random, as a stack and one by one; some levels get empty."""
    if isinstance(totals, Confusion):
        weights = totals.weights * rng.integers(0, 3, (size, totals.weights.size)) + np.eye(1, totals.weights.size)
        return totals.drawn(weights), [totals.drawn(part) for part in weights]
    right, wrong = (part * rng.integers(0, 3, (size, part.size)) for part in (totals.right, totals.wrong))
    withheld = totals.withheld * rng.integers(0, 3, size) + 1.0
    parts = [
        Sweep(totals.threshold.copy(), r.copy(), w.copy(), float(h), totals.n)
        for r, w, h in zip(right, wrong, withheld, strict=True)
    ]
    return Sweep(totals.threshold.copy(), right, wrong, withheld, totals.n), parts
