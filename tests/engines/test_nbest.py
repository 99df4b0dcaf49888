"""N-best lists counted where their rows are: the values of memory, and about its intervals."""

import json
from functools import cache

import numpy as np
import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.nbest_lists import counted
from demur.nbest_lists.presentation import of_nbest
from demur.returns.verify import TOLERANCE
from engines.test_lake import _session, in_one_process, lake  # noqa: F401
from nbest_lists.nbest_logs import log

NESTED = pl.DataFrame(log(200, seed=1, weighted=True))
SPELT = NESTED.with_columns(hypotheses=pl.Series([json.dumps(one) for one in NESTED["hypotheses"].to_list()]))
SAMPLING = {"replicates": 100, "seed": 1}


@cache
def in_memory():
    """The lists evaluated in memory, once."""
    return demur.nbest(NESTED, by="noise", **SAMPLING)


def values(one):
    figures = {key: figure.value for key, figure in (*one.figures.items(), *one.parts.items())}
    return {**figures, "mass": one.given_out, "meant": one.reference_items}


def counts(one):
    return one.n, one.empty, one.taken.hypotheses, one.taken.answered_items


def assert_same(found, expected):
    assert [one.part for one in found] == [one.part for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert counts(one) == counts(other)
        assert values(one) == pytest.approx(values(other), rel=TOLERANCE, abs=TOLERANCE, nan_ok=True)


@pytest.mark.parametrize(
    ("engine", "rows"),
    [("polars", NESTED), ("polars", SPELT), ("duckdb", NESTED), ("duckdb", SPELT), ("spark", NESTED)],
    ids=["polars", "polars, JSON", "duckdb", "duckdb, JSON", "spark"],
)
def test_lists_in_an_engine_have_the_values_of_memory(tmp_path, engine, rows):
    found = demur.nbest(str(lake(tmp_path / "log", rows)), engine=engine, by="noise", **SAMPLING)
    assert_same(found, in_memory())
    assert found[0].system == "log"
    for key in ("ice", "wser", "act_error"):
        widths = [one[0].figures[key].high - one[0].figures[key].low for one in (found, in_memory())]
        assert widths[0] == pytest.approx(widths[1], rel=0.4)  # of 50 dialogues and 100 replicates


def test_where_no_two_dialogues_share_a_bucket_intervals_differ_by_the_draws_alone():
    rows = NESTED.filter(pl.col("dialogue") < "d030")
    found, expected = (demur.nbest(one, replicates=1000)[0] for one in (rows.lazy(), rows))
    assert found.totals.units == expected.totals.units
    for key, figure in expected.figures.items():
        assert found.figures[key].low == pytest.approx(figure.low, abs=0.15 * (figure.high - figure.low)), key


def test_joined_confidences_move_the_parts_of_the_ice_by_little_and_sums_not_at_all(monkeypatch):
    fine = NESTED.with_columns(
        hypotheses=pl.col("hypotheses").list.eval(
            pl.struct(pl.element().struct["act"], confidence=pl.element().struct["confidence"] * (1 - 1e-9))
        )
    )
    exact = demur.nbest(fine.lazy(), **SAMPLING)
    monkeypatch.setattr(counted, "EXACT_LISTS", 0)
    found = demur.nbest(fine.lazy(), **SAMPLING)
    summed = exact[0].totals.measures
    assert {key: values(found[0])[key] for key in summed} == {key: values(exact[0])[key] for key in summed}
    assert values(found[0]) == pytest.approx(values(exact[0]), abs=1e-3)


BETTER = NESTED.with_columns(
    hypotheses=pl.when(pl.int_range(pl.len()) % 3 == 0)
    .then(pl.concat_list(pl.struct(act="reference", confidence=pl.lit(0.9))))
    .otherwise("hypotheses")
)


def test_systems_of_several_lakes_are_compared_as_in_memory(tmp_path):
    logs = {"one": NESTED, "two": BETTER}
    folders = [str(lake(tmp_path / name, rows)) for name, rows in logs.items()]
    found = demur.nbest(*folders, compare=True, engine="duckdb", **SAMPLING).comparison
    expected = demur.nbest(logs, compare=True, **SAMPLING).comparison
    (pair,), (other,) = found.pairs, expected.pairs
    assert (pair.verdict, pair.paired) == (other.verdict, other.paired) == ("b better", True)
    values = {key: difference.value for key, difference in other.differences.items()}
    assert {key: difference.value for key, difference in pair.differences.items()} == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda rows: rows.tail(-1), "one and two do not have the same ids: 200 and 199 utterances"),
        (lambda rows: rows.with_columns(reference=pl.lit("bye()")), "one and two do not have the same references"),
        (lambda rows: rows.with_columns(weight=pl.lit(1.0)), "one and two do not have the same weights"),
    ],
)
def test_systems_with_other_inputs_are_compared_only_unpaired(change, rule):
    logs = {"one": NESTED.lazy(), "two": change(BETTER).lazy()}
    with pytest.raises(DataError, match=rule):
        demur.nbest(logs, compare=True, **SAMPLING)
    if len(change(BETTER)) < len(BETTER):
        assert not demur.nbest(logs, compare=True, unpaired=True, **SAMPLING).comparison.pairs[0].paired


@in_one_process
def test_a_bad_list_is_refused_with_its_utterance(tmp_path, engine):
    bad = NESTED.with_columns(
        reference=pl.when(pl.col("id") == "d002/1").then(pl.lit("inform(")).otherwise("reference")
    )
    with pytest.raises(DataError, match=r'utterance "d002/1".*does not parse at character 8'):
        demur.nbest(str(lake(tmp_path / "log", bad)), engine=engine)


@pytest.mark.parametrize(
    ("options", "rule"),
    [({"matched": True, "compare": True}, "`matched` needs `engine` memory"), ({"scorer": "const"}, "`scorer` needs")],
)
def test_what_only_memory_can_do_is_refused(tmp_path, options, rule):
    with pytest.raises(UsageError, match=rule):
        demur.nbest(str(lake(tmp_path / "log", NESTED)), engine="polars", **options)


def test_utterances_that_nothing_names_and_too_many_slices_are_refused(monkeypatch):
    monkeypatch.setattr(counted, "MOST_SLICES", 20)
    with pytest.raises(DataError, match="neither id nor dialogue"):
        demur.nbest(NESTED.drop("id", "dialogue").lazy())
    with pytest.raises(DataError, match="too many to slice by"):
        demur.nbest(NESTED.lazy(), by="dialogue")
    with pytest.raises(UsageError, match="buckets, not one by one"):
        demur.nbest(NESTED.lazy(), **SAMPLING)[0].per_dialogue()


def test_figures_and_the_table_of_floors_are_those_of_memory():
    found, expected = demur.nbest(NESTED.lazy(), by="noise", **SAMPLING), in_memory()
    assert np.allclose(found[0].top.curve.error, expected[0].top.curve.error)
    assert np.allclose(found[0].reliability.accuracy, expected[0].reliability.accuracy)
    tables = [{table.title: table.rows for table in of_nbest(one).tables} for one in (found, expected)]
    for title in ("ICE by floor", "Utterances"):
        assert tables[0][title] == tables[1][title]
    assert len(of_nbest(found).figures) == len(of_nbest(expected).figures)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_labels_out_of_scope_mean_nothing_in_an_engine_too(tmp_path, engine):
    labels = ["pay", "call", "oos", None, "none"]
    nbest = [{"label": "pay", "p": 0.5}, {"label": "oos", "p": 0.25}]
    rows = pl.DataFrame([{"id": f"{n}", "target": labels[n % 5], "nbest": nbest} for n in range(50)])
    (found,) = demur.nbest(str(lake(tmp_path / "log", rows)), engine=engine, **SAMPLING)
    assert_same([found], demur.nbest(rows, **SAMPLING))
    assert found.reference_items == 30
    every = demur.nbest(str(lake(tmp_path / "same", rows)), engine=engine, out_of_scope=("none",), **SAMPLING)
    assert_same(every, demur.nbest(rows, out_of_scope=("none",), **SAMPLING))
    assert every[0].reference_items == 30
    assert any("20 utterances have no label, or one out of scope" in note for note in every.notes)
