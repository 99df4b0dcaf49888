"""A comparison of engines that holds for equal rows, and sees every way in which they can differ."""

import json
from math import inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.classes import CLASSES, MEASURES, Accuracy, Confusion
from demur.returns.measures import AUGRC
from demur.returns.verify import (
    TOLERANCE,
    EngineDifference,
    Equality,
    differences,
    judged_columns,
    sample_log,
    tally_differences,
    totals_by_arrays,
)
from engines.tables import judged
from reference.tallies import hashed

LOG = sample_log(4000, seed=0)
WHOLE = judged_columns(LOG.drop("weight"))
WEIGHTED = judged_columns(LOG)
TERMS = {"brier", "ece", "nce"}

HAND = judged([(0.9, "a", "a", 1), (0.9, "b", "a", 2), (0.4, "b", "b", 1), (0.0, "a", None, 3)])


def equality(engine, frame, reference):
    return Equality(engine, reference.height, differences(frame, reference))


def first_where(condition, column, value):
    """Alters one cell: that of the first row where a condition holds."""
    chosen = (condition.cast(pl.Int64).cum_sum() == 1) & condition
    return pl.when(chosen).then(value).otherwise(column).alias(column.meta.output_name())


def test_equal_rows_give_equal_numbers_for_every_measure_in_the_registry():
    for rows in (WHOLE, WEIGHTED):
        found = equality("polars", rows.lazy(), rows)
        assert found.holds
        assert found.faults == ()
        assert found.n == 4000
        assert [one.measure for one in found.differences] == list(MEASURES)


def test_counts_of_rows_that_weigh_whole_numbers_must_be_exact_and_sums_of_terms_never():
    assert {one.measure for one in differences(WHOLE, WHOLE) if not one.exact} == TERMS
    assert not any(one.exact for one in differences(WEIGHTED, WEIGHTED))


def test_the_order_of_rows_makes_no_difference():
    for rows in (WHOLE, WEIGHTED):
        assert equality("polars", rows.reverse(), rows).holds


@pytest.mark.parametrize(
    ("alteration", "seen"),
    [
        (lambda rows: rows.slice(1), set(MEASURES)),
        (lambda rows: pl.concat([rows, rows.head(1)]), set(MEASURES)),
        (lambda rows: rows.with_columns(first_where(pl.col("right"), pl.col("right"), False)), {"augrc", "brier"}),
        (lambda rows: rows.with_columns(first_where(pl.col("answered"), pl.col("actual"), pl.lit("x"))), set(CLASSES)),
        (lambda rows: rows.with_columns(first_where(pl.col("answered"), pl.col("predicted"), None)), set(CLASSES)),
        (lambda rows: rows.with_columns(pl.col("confidence") * (1 + 2**-52)), {"auroc", "forced_error"}),
        (lambda rows: rows.with_columns(weight=pl.lit(2.0)), {"augrc", "accuracy"}),
    ],
    ids=["lost row", "row twice", "wrong verdict", "wrong label", "lost answer", "last digit", "other weight"],
)
def test_an_engine_that_gets_one_thing_wrong_is_found_out(alteration, seen):
    found = equality("other", alteration(WHOLE), WHOLE)
    assert not found.holds
    assert seen <= {one.measure for one in found.faults}


def test_counts_that_differ_are_a_fault_even_where_the_value_is_the_same():
    (one,) = differences(pl.concat([HAND, HAND]), HAND, {"augrc": AUGRC()})
    assert one.value == one.expected
    assert one.difference == 0
    assert not one.same_counts
    assert not one.holds


@pytest.mark.parametrize(
    ("value", "expected", "apart"), [(nan, nan, 0.0), (inf, inf, 0.0), (0.25, 0.5, 0.25), (nan, 0.5, inf)]
)
def test_two_undefined_values_agree_and_one_alone_does_not(value, expected, apart, monkeypatch):
    monkeypatch.setattr(AUGRC, "finish", lambda _, totals: np.float64(value if totals.n == 8 else expected))
    (one,) = differences(pl.concat([HAND, HAND]), HAND, {"augrc": AUGRC()})
    assert one.difference == apart


@pytest.mark.parametrize(("expected", "apart", "holds"), [(0.5, 0.9, True), (0.5, 1.1, False), (8.0, 7.0, True)])
def test_a_sum_of_fractions_may_move_by_the_tolerance_and_no_further(expected, apart, holds):
    moved = apart * TOLERANCE
    assert EngineDifference("brier", expected + moved, expected, moved, exact=False).holds == holds
    assert not EngineDifference("augrc", expected + moved, expected, moved, exact=True).holds


def test_measures_that_read_the_same_totals_share_one_pass_over_the_rows(monkeypatch):
    passes = []
    reduce = Sweep.from_frame.__func__
    monkeypatch.setattr(Sweep, "from_frame", classmethod(lambda cls, frame: passes.append(1) or reduce(cls, frame)))
    differences(HAND, HAND)
    assert len(passes) == 3  # by answers, and by scope in two ways


def test_totals_by_arrays_are_those_worked_out_by_hand():
    sweep = totals_by_arrays(AUGRC(), HAND)
    assert sweep.threshold.tolist() == [0.4, 0.9]
    assert (sweep.right.tolist(), sweep.wrong.tolist(), sweep.withheld, sweep.n) == ([1, 1], [0, 2], 3.0, 4)
    confusion = totals_by_arrays(Accuracy(), HAND)
    assert confusion == Confusion.dense(("a", "b"), np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]), 4)


def test_a_comparison_is_plain_values_with_null_for_what_is_undefined():
    told = equality("polars", HAND.filter("answered").head(1), HAND.filter("answered").head(1)).to_dict()
    assert told == json.loads(json.dumps(told))
    assert (told["engine"], told["n"], told["holds"]) == ("polars", 1, True)
    undefined = next(one for one in told["differences"] if one["measure"] == "auroc")
    assert undefined == {
        "measure": "auroc",
        "value": None,
        "expected": None,
        "difference": 0.0,
        "exact": True,
        "same_counts": True,
        "holds": True,
    }


def test_a_comparison_is_a_table_with_one_row_for_each_measure():
    table = equality("polars", HAND, HAND).frame()
    assert table["measure"].to_list() == list(MEASURES)
    assert table["holds"].all()


def test_the_sample_log_has_what_engines_may_disagree_on():
    confidence = LOG["confidence"].drop_nulls()
    zeros = confidence.filter(confidence == 0).to_numpy()
    assert set(np.signbit(zeros)) == {False, True}
    assert (confidence == 1).any()
    assert 0.2 < confidence.is_unique().mean() < 0.8
    assert {0.1, 0.5, 1.0, 2.0} <= set(LOG["weight"])
    assert LOG["failed"].any()
    assert LOG["prediction"].is_null().any()
    assert {"oos", "トイレ"} <= set(LOG["target"])
    assert LOG["domain"].n_unique() == 3


@given(st.integers(0, 2**32 - 1))
def test_one_dialogue_of_the_sample_log_holds_about_a_tenth_of_the_rows(seed):
    sizes = sample_log(2000, seed)["dialogue"].value_counts(sort=True)["count"]
    assert 140 < sizes[0] < 270
    assert sizes[1] < 40


def test_the_sample_log_is_the_same_for_the_same_seed_only():
    assert sample_log(500, seed=1).equals(sample_log(500, seed=1))
    assert not sample_log(500, seed=1).equals(sample_log(500, seed=2))


def test_a_sample_log_needs_a_row():
    assert sample_log(1, seed=0).height == 1
    with pytest.raises(UsageError, match="a log needs at least 1 row; got 0"):
        sample_log(0, seed=0)


def test_judged_columns_are_those_that_measures_read():
    rows = {"target": ["a", "oos", "b"], "prediction": ["a", "b", None], "confidence": [0.9, 0.2, None]}
    assert judged_columns(pl.DataFrame(rows)).rows() == [
        ("a", "a", True, True, False, 0.9, 1.0),
        ("out_of_scope", "b", True, False, True, 0.2, 1.0),
        ("b", None, False, False, False, None, 1.0),
    ]


def test_counts_by_dialogue_are_the_same():
    found = tally_differences(LOG.lazy(), LOG)
    assert all(one.holds for one in found)
    assert {one.measure for one in found} >= {"counts, all rows", "counts in cells, domain=kiosk"}


def test_a_dialogue_of_another_name_is_noticed_though_it_falls_in_the_same_bucket():
    renamed = next(name for name in map(str, range(10**6)) if hashed(name)[0] == hashed("alone")[0])
    rows = pl.DataFrame({"correct": [True, False], "confidence": [0.9, 0.4], "domain": "desk"})
    one, two = (rows.with_columns(dialogue=pl.lit(name)) for name in ("alone", renamed))
    assert all(part.holds for part in tally_differences(one.lazy(), one))
    assert not any(part.holds for part in tally_differences(two.lazy(), one))
