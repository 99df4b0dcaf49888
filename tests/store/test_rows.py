"""Rows are looked up by what became of them; a slow plain twin says which they are."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.store.records import write_rows
from demur.store.rows import CLOSE, OUTCOMES, RunRows
from demur.store.runs import Store
from store.tables import write


@pytest.fixture
def rows(store: Store, log: Path) -> RunRows:
    return store.rows(store.add(log)[0].run)


def ids(rows: RunRows, *asked: Any, **how: Any) -> list[str]:
    return [row["id"] for row in rows.page(*asked, **how).rows]


def test_each_outcome_has_the_rows_it_says(rows: RunRows) -> None:
    found = {outcome: ids(rows, outcome, threshold=0.5) for outcome in OUTCOMES}
    assert found == {
        "wrong": ["q2", "q3"],
        "right": ["q1"],
        "missed": ["q4"],
        "withheld": ["q4", "q6", "q5"],
        "scope": ["q3"],
        "failed": [],
        "all": ["q1", "q2", "q3", "q4", "q6", "q5"],
    }
    assert rows.counts(0.5) == {outcome: len(found[outcome]) for outcome in OUTCOMES}


def test_without_a_threshold_every_answer_is_returned(rows: RunRows) -> None:
    assert rows.counts() == {"wrong": 3, "right": 2, "missed": 0, "withheld": 1, "scope": 1, "failed": 0, "all": 6}
    assert rows.counts(0.9)["right"] == 1, "returned means at least the threshold"
    assert rows.counts(0.91)["right"] == 0


def test_a_row_is_shown_with_all_that_is_known_of_it(rows: RunRows) -> None:
    (row,) = rows.page("scope").rows
    assert row == {
        "row": 2,
        "id": "q3",
        "dialogue": None,
        "target": [],
        "prediction": "song",
        "answered": True,
        "right": False,
        "failed": False,
        "out_of_scope": True,
        "confidence": 0.7,
        "weight": 1.0,
        "input": "Sing!",
        "nbest": None,
        "slices": {"domain": "a"},
    }


def test_rows_come_surest_first_least_sure_first_or_nearest_the_threshold(rows: RunRows) -> None:
    assert ids(rows, "all", order="surest") == ["q1", "q2", "q3", "q4", "q6", "q5"]
    assert ids(rows, "all", order="least") == ["q6", "q4", "q3", "q2", "q1", "q5"]
    assert ids(rows, "all", order="nearest", threshold=0.44) == ["q4", "q6", "q3", "q2", "q1", "q5"]
    assert ids(rows, "all", order="nearest", threshold=0.75, limit=2) == ["q2", "q3"]
    assert ids(rows, "all", order="nearest") == ids(rows, "all")


def test_a_region_holds_what_one_threshold_returns_and_the_other_does_not(rows: RunRows) -> None:
    assert ids(rows, "all", low=0.4, high=0.8) == ["q3", "q4"]
    assert ids(rows, "right", low=0.4, high=0.8) == ["q4"]


def test_rows_are_kept_by_slice_by_label_and_by_text_of_any_case(rows: RunRows) -> None:
    assert ids(rows, "all", where=[("domain", "b")]) == ["q2", "q4"]
    assert ids(rows, "all", where=[("domain", "b"), ("target", "time")]) == ["q4"]
    assert ids(rows, "all", where=[("prediction", "time")]) == ["q4", "q6"]
    assert ids(rows, "all", where=[("domain", "c")]) == []
    assert ids(rows, "all", search="  ") == ids(rows, "all")
    assert ids(rows, "all", search="wh") == ["q1", "q2", "q4", "q6"]
    assert ids(rows, "all", search="?", where=[("domain", "a")]) == ["q1"]
    assert rows.counts(0.5, where=[("domain", "b")]) == {
        "wrong": 1,
        "right": 0,
        "missed": 1,
        "withheld": 1,
        "scope": 0,
        "failed": 0,
        "all": 2,
    }
    with pytest.raises(DataError, match='there is no column "domian"'):
        rows.page("all", where=[("domian", "a")])
    with pytest.raises(DataError, match=r'an outcome is one of wrong, right, .*; got "worse"'):
        rows.page("worse")  # type: ignore[arg-type]


def test_search_takes_text_as_it_stands(store: Store, tmp_path: Path) -> None:
    texts = ["a.c", "abc", "(x", "ÄRGER", None]
    table = [{"target": "t", "prediction": "t", "confidence": 0.5, "input": text} for text in texts]
    found = store.rows(store.add(write(tmp_path / "a.jsonl", table))[0].run)
    hits = {text: [row["input"] for row in found.page("all", search=text).rows] for text in ("a.c", "(X", "ärg")}
    assert hits == {"a.c": ["a.c"], "(X": ["(x"], "ärg": ["ÄRGER"]}


def test_without_inputs_the_ids_are_searched(store: Store, tmp_path: Path) -> None:
    table = [{"id": name, "target": "t", "prediction": "t", "confidence": 0.5} for name in ("one", "two")]
    found = store.rows(store.add(write(tmp_path / "a.jsonl", table))[0].run)
    assert [row["id"] for row in found.page("all", search="TW").rows] == ["two"]


def test_slices_list_their_values_the_most_frequent_first(rows: RunRows) -> None:
    assert rows.slices() == {"domain": [("a", 3), ("b", 2)]}


def test_pages_follow_each_other_and_end(rows: RunRows) -> None:
    pages = [rows.page("all", offset=offset, limit=4) for offset in (0, 4, 8)]
    assert [page.total for page in pages] == [6, 6, 6]
    assert [[row["id"] for row in page.rows] for page in pages] == [["q1", "q2", "q3", "q4"], ["q6", "q5"], []]
    assert rows.page("all", limit=0).rows == []


def test_what_was_asked_for_by_text_is_remembered_within_bounds(rows: RunRows) -> None:
    for letter in "abcdefghijklmnopqrstuvwxyz":
        rows.page("all", search=letter)
    assert len(rows._masks) == 16
    assert rows.nbytes < 1000


def test_a_run_that_was_removed_says_so(store: Store, log: Path) -> None:
    run = store.add(log)[0].run
    rows = store.rows(run)
    store.remove("guide")
    with pytest.raises(DataError, match=r'the rows of the run "guide" .* cannot be read: .*add its file again'):
        rows.page("all")


def test_rows_far_apart_in_a_long_file_are_found(store: Store, tmp_path: Path) -> None:
    n = 3 * CLOSE
    confidence = np.random.default_rng(4).permutation(n) / n
    frame = pl.DataFrame({"id": np.arange(n), "target": "t", "prediction": "t", "confidence": confidence})
    wrong = frame.with_columns(prediction=pl.when(pl.col("id") % 1999 == 7).then(pl.lit("u")).otherwise("prediction"))
    wrong.write_parquet(tmp_path / "long.parquet")
    found = store.rows(store.add(tmp_path / "long.parquet")[0].run).page("wrong").rows
    expected = sorted((int(k) for k in range(7, n, 1999)), key=lambda k: -confidence[k])
    assert [int(row["id"]) for row in found] == expected
    assert [row["confidence"] for row in found] == [confidence[k] for k in expected]


TABLE = st.lists(
    st.fixed_dictionaries(
        {
            "target": st.sampled_from(["a", "b", None]),
            "prediction": st.sampled_from(["a", "b", None]),
            "confidence": st.sampled_from([0.1, 0.2, 0.5, 0.9, 1e300, -1e300]),
            "failed": st.booleans(),
            "domain": st.sampled_from(["x", "y", None]),
        }
    ),
    min_size=1,
    max_size=12,
)


def becomes(row: dict[str, Any], threshold: float | None) -> set[str]:
    """What became of a row, as the words say it."""
    returned = row["answered"] and (threshold is None or row["confidence"] >= threshold)
    found = {"all"}
    if row["failed"]:
        found.add("failed")
    elif not returned:
        found |= {"withheld"} | ({"missed"} if row["right"] else set())
    else:
        found |= {"right" if row["right"] else "wrong"} | ({"scope"} if row["out_of_scope"] else set())
    return found


@given(table=TABLE, threshold=st.sampled_from([None, 0.2, 0.5, float("inf"), float("-inf")]))
def test_counts_and_pages_agree_with_a_plain_twin(
    tmp_path_factory: pytest.TempPathFactory, table: list[dict[str, Any]], threshold: float | None
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    with Store.open(folder / "store") as store:
        run = store.add(write(folder / "a.jsonl", table))[0].run
        judged = store.responses(run, columns=["*"]).frame.to_dicts()
        found = store.rows(run)
    domain = "domain" in run.columns and [("domain", "x")]
    for outcome, where in itertools.product(OUTCOMES, ([], domain or [])):
        expected = [
            place
            for place, row in enumerate(judged)
            if outcome in becomes(row, threshold) and all(row[name] == value for name, value in where)
        ]
        assert found.counts(threshold, where=where)[outcome] == len(expected)
        for order in ("surest", "least", "nearest"):
            page = found.page(outcome, threshold=threshold, where=where, order=order)
            assert sorted(row["row"] for row in page.rows) == expected
            paged = [
                found.page(outcome, threshold=threshold, where=where, order=order, offset=k, limit=3)
                for k in range(0, len(expected) + 1, 3)
            ]
            assert [row for one in paged for row in one.rows] == page.rows
            if order != "nearest":
                sure = [row["confidence"] for row in page.rows if row["confidence"] is not None]
                assert sure == sorted(sure, reverse=order == "surest")


def test_rows_are_written_by_falling_confidence_with_their_places(tmp_path: Path) -> None:
    frame = pl.DataFrame({"confidence": [0.1, None, 0.9, 0.9]})
    write_rows(tmp_path / "rows.parquet", "responses", frame)
    assert pl.read_parquet(tmp_path / "rows.parquet")["demur:row"].to_list() == [2, 3, 0, 1]
