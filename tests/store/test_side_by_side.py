import polars as pl
import pytest
from polars.testing import assert_frame_equal

from demur.returns.pairing import pair
from demur.returns.table import Responses
from demur.store.rows import apart, numbers_of, side_by_side
from store.tables import write


def rows(order, *, shift=0, **cells):
    base = {"target": "a", "prediction": "a"}
    return [{"id": name, **base, "confidence": (place + shift) / 10} | cells for place, name in enumerate(order)]


def added(store, *tables):
    """Runs of tables with their files."""
    found = []
    for place, table in enumerate(tables):
        path = write(store.root.parent / "log.jsonl", table)
        found.append(store.add(path, name=f"run {place}")[0].run)
    return [(run, store.rows_path(run)) for run in found]


def usual(store, runs, **how):
    frames = [store.responses(run).frame for run, _ in runs]
    return pair(Responses(pl.concat(frames, how="diagonal_relaxed")), **how)


@pytest.mark.parametrize("cells", [{}, {"dialogue": "d1"}, {"weight": 2.0}])
def test_runs_are_paired_as_their_answers_are(store, cells):
    runs = added(store, rows("bac", **cells), rows("cab", shift=3, **cells), rows("abc", shift=5, **cells))
    found, expected = side_by_side(runs), usual(store, runs)
    assert found.paired
    assert (found.note, found.dropped) == (expected.note, expected.dropped)
    for name, frame in expected.frames.items():
        assert_frame_equal(found.frames[name], frame.drop("id", "system"), check_column_order=False, check_dtypes=False)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(rows("abd"), id="another id"),
        pytest.param(rows("ab"), id="fewer ids"),
        pytest.param([{**row, "id": None} for row in rows("abc")], id="no ids"),
        pytest.param(rows("abc", target="b"), id="another target"),
        pytest.param(rows("abc", target=["b", "a"]), id="more targets"),
    ],
)
def test_what_needs_a_closer_look_is_not_paired(store, other):
    assert side_by_side(added(store, rows("abc"), other)) is None


def test_measures_read_no_texts_but_those_asked_for(store):
    ((run, path),) = added(store, rows("abc", domain="bank"))
    frame = numbers_of(run, path, ("domain",))
    assert frame["domain"].to_list() == ["bank"] * 3
    assert not {"id", "target", "prediction"} & set(frame.columns)
    assert frame["dialogue"].null_count() == 3


def test_the_common_ids_are_matched_as_those_of_answers_are(store):
    runs = added(store, rows("bacfe"), rows("dcab", shift=3), rows("abcg", shift=5))
    found, expected = side_by_side(runs, matched=True), usual(store, runs, matched=True)
    assert (found.note, found.dropped) == (expected.note, expected.dropped)
    for name, frame in expected.frames.items():
        assert found.frames[name]["confidence"].to_list() == frame["confidence"].to_list()


def test_runs_without_a_common_id_cannot_be_matched(store):
    assert side_by_side(added(store, rows("ab"), rows("cd")), matched=True) is None


def test_runs_that_are_not_paired_say_why(store):
    named, unnamed = added(store, rows("abc"), [{**row, "id": None} for row in rows("abcd")])
    assert apart([named], asked=True).note == "compared as unpaired, as asked"
    found = apart([named, unnamed], asked=False)
    assert found.note == "compared as unpaired: there are no ids in run 1"
    assert {name: frame.height for name, frame in found.frames.items()} == {"run 0": 3, "run 1": 4}
    assert not found.paired
