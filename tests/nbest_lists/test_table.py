import gzip
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

from demur.errors import DataError, UsageError
from demur.nbest_lists import reading
from demur.nbest_lists.exploded import ExplodedLists
from demur.nbest_lists.table import NBestReading, join_tables, nbest, read_nbest, rename_system
from nbest_lists.nbest_lists import THAI, jsonl, read, row, written
from reference import nbest as plain
from reference.nbest import rough_lists, tables

ROWS = [
    row(id="b", dialogue="d1", split="test", weight=2),
    row(("bye()", 0.5), (["inform", "food=thai"], 0.25), ("inform( food = thai )", 0.125), id="a", split="val"),
    row(id="c", reference=["bye"], hypotheses=[], split="test"),
]


def as_csv(rows, separator=","):
    spelt = [
        {name: value if isinstance(value, str | int | None) else json.dumps(value) for name, value in cells.items()}
        for cells in rows
    ]
    return pl.DataFrame(spelt, infer_schema_length=None).write_csv(separator=separator).encode()


def parquet(frame):
    held = io.BytesIO()
    frame.write_parquet(held)
    return held.getvalue()


def frame_of(rows):
    return pl.DataFrame([cells | {"reference": _spelt(cells["reference"])} for cells in rows], infer_schema_length=None)


def _spelt(value):
    return value if isinstance(value, str) else json.dumps(value)


def in_text(rows):
    return pl.DataFrame(
        [{name: _spelt(value) if value is not None else None for name, value in cells.items()} for cells in rows],
        infer_schema_length=None,
    )


def lists(table):
    """What each utterance means and what is hypothesised for it, by id."""
    found = {}
    for place, name in enumerate(table.frame["id"]):
        mine = range(table.start[place], table.start[place + 1])
        acts = [(table.sets.items_of(table.act[k]), table.confidence[k]) for k in mine]
        found[name] = (table.sets.items_of(table.reference[place]), acts)
    return found


def assert_same(one, two):
    assert one.frame.equals(two.frame)
    assert one.sets.names == two.sets.names
    for name in ("reference", "start", "act", "confidence"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert ExplodedLists.of(one).items.sweep().digest() == ExplodedLists.of(two).items.sweep().digest()


def test_acts_and_item_lists_become_sets_and_equal_ones_are_merged_where_the_first_stood():
    found = nbest(ROWS)
    assert lists(found) == {
        "a": (("food=thai", "inform"), [(("bye",), 0.5), (("food=thai", "inform"), 0.375)]),
        "b": (("food=thai", "inform"), [(("food=thai", "inform"), 0.7), (("bye",), 0.2)]),
        "c": (("bye",), []),
    }
    assert found.given_out.tolist() == pytest.approx([0.875, 0.9, 0])
    assert found.notes == ("1 hypothesis was merged with an equal one",)
    assert len(found) == 3


FILES = {
    "run.jsonl": jsonl(ROWS),
    "run.ndjson": b"\xef\xbb\xbf" + jsonl(ROWS),
    "run.json": json.dumps(ROWS, indent=1).encode(),
    "bare.json": b"\xef\xbb\xbf  " + json.dumps(ROWS).encode(),
    "run.jsonl.gz": gzip.compress(jsonl(ROWS)),
    "run.jsonl.zst": pa.compress(jsonl(ROWS), codec="zstd", asbytes=True),
    "blank.jsonl": b"\n" + jsonl(ROWS).replace(b"\n", b"\n \n\r\n"),
    "unended.jsonl": jsonl(ROWS).rstrip(),
    "text.jsonl": jsonl([cells | {"hypotheses": json.dumps(cells["hypotheses"])} for cells in ROWS]),
    "run.csv": as_csv(ROWS),
    "run.csv.gz": gzip.compress(as_csv(ROWS)),
    "run.tsv": as_csv(ROWS, "\t"),
    "run.parquet": parquet(frame_of(ROWS)),
    "text.parquet": parquet(in_text(ROWS)),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_kind_gives_the_same_table(tmp_path, name):
    reading = NBestReading(keep=("split",))
    expected = nbest(ROWS, system="run", reading=reading)
    found = read_nbest(written(tmp_path, name, FILES[name]), reading=reading)
    assert_same(rename_system(found, "run"), expected)


@pytest.mark.parametrize(
    "data",
    [
        frame_of(ROWS),
        frame_of(ROWS).lazy(),
        in_text(ROWS),
        pd.DataFrame([{"weight": 1} | cells for cells in ROWS]),
        frame_of(ROWS).to_arrow(),
        {name: [cells.get(name) for cells in ROWS] for name in ("id", "reference", "hypotheses", "dialogue", "weight")},
        tuple(ROWS),
    ],
    ids=["polars", "lazy", "text", "pandas", "pyarrow", "columns", "tuple"],
)
def test_a_frame_of_any_kind_gives_the_same_table(data):
    assert_same(nbest(data), nbest(ROWS))


def test_numbers_and_arrays_of_numpy_are_read():
    cells = row(
        hypotheses=[{"items": np.array(["food=thai", "inform"]), "confidence": np.float32(0.5)}], id=np.int64(7)
    )
    assert lists(nbest([cells])) == {"7": (("food=thai", "inform"), [(("food=thai", "inform"), 0.5)])}


@given(tables(rough_lists()))
def test_acts_are_itemised_and_merged_as_the_plain_twin_does(table):
    found = lists(nbest(plain.rows_of(table)))
    for place, u in enumerate(table):
        meant, acts = found[f"u{place}"]
        assert set(meant) == plain.meant(u)
        assert {frozenset(act): c for act, c in acts} == pytest.approx(plain.acts_of(u))
        assert [frozenset(act) for act, _ in acts] == list(plain.acts_of(u))


@given(tables(smallest=2))
def test_the_order_of_rows_does_not_matter(table):
    rows = plain.rows_of(table)
    assert_same_arrays(nbest(rows), nbest(rows[::-1]))
    nameless = [{**cells, "id": None} for cells in rows]
    assert_same_arrays(nbest(nameless), nbest(nameless[::-1]))


def assert_same_arrays(one, two):
    assert one.frame.equals(two.frame)
    assert one.sets.names == two.sets.names
    for name in ("reference", "start", "act", "confidence"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_a_shuffled_file_gives_the_same_table(tmp_path):
    rows = [row((THAI, k / 100), id=k, dialogue=f"d{k % 7}", reference=[["bye"], THAI][k % 2]) for k in range(100)]
    shuffled = [rows[k] for k in np.random.default_rng(0).permutation(100)]
    assert_same(read(tmp_path, rows), read(tmp_path, shuffled))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_do_not_show(tmp_path, monkeypatch, size):
    rows = [*ROWS, row(id="d"), row((["x"], 1.0), id="e")]
    expected = read(tmp_path, rows)
    monkeypatch.setattr(reading, "AT_ONCE", size)
    assert_same(read(tmp_path, rows), expected)
    blank = jsonl(rows).replace(b"\n", b"\n\n")
    assert_same(read(tmp_path, blank), expected)
    assert_same(rename_system(nbest(frame_of(rows)), "run"), expected)
    with pytest.raises(DataError, match=r'run.jsonl:9: utterance "e": a confidence must be'):
        read(tmp_path, blank.replace(b'"confidence": 1.0', b'"confidence": -1'))


def test_aliases_are_found_and_noted(tmp_path):
    cells = {"utterance_id": 1, "ref": THAI, "hyps": [{"hypothesis": "bye", "score": 0.5}], "session": 4, "model": "m"}
    found = read(tmp_path, [cells])
    assert found.frame.row(0) == ("1", "m", "4", 1.0)
    assert lists(found) == {"1": (("food=thai", "inform"), [(("bye",), 0.5)])}
    assert found.notes == (
        "id <- utterance_id",
        "dialogue <- session",
        "reference <- ref",
        "hypotheses <- hyps",
        "system <- model",
        "hypotheses: act <- hypothesis",
        "hypotheses: confidence <- score",
    )


def test_plain_labels_are_items_as_they_stand(tmp_path):
    listed = [{"label": "card lost (abroad)", "confidence": 0.5}, {"label": "", "confidence": 0.25}]
    rows = [row(id=k, reference=meant, hypotheses=listed) for k, meant in enumerate(["card lost (abroad)", "", []])]
    found = lists(read(tmp_path, rows))
    assert [meant for meant, _ in found.values()] == [("card lost (abroad)",), (), ()]
    assert found["0"][1] == [(("card lost (abroad)",), 0.5), ((), 0.25)]


def test_two_columns_that_may_be_the_same_part_are_refused(tmp_path):
    cells = {"gold": "bye", "target": "bye", "hypotheses": []}
    with pytest.raises(DataError, match=r'run.jsonl: reference may be any of the columns "gold", "target" \(choose'):
        read(tmp_path, [cells])
    assert len(read(tmp_path, [cells], columns={"reference": "gold"})) == 1


def test_columns_can_be_mapped(tmp_path):
    cells = {"name": "x", "truth": "bye", "heard": [{"act": "bye", "confidence": 1}], "talk": "t"}
    mapped = {"id": "name", "reference": "truth", "hypotheses": "heard", "dialogue": "talk"}
    assert read(tmp_path, [cells], columns=mapped).frame.row(0) == ("x", "run", "t", 1.0)
    with pytest.raises(DataError, match=r'run.jsonl: there is no column "truht" to map reference from.*"truth"'):
        read(tmp_path, [cells], columns=mapped | {"reference": "truht"})
    with pytest.raises(DataError, match=r'no column is called "reverence" here \(did you mean "reference"'):
        read(tmp_path, [cells], columns={"reverence": "truth"})


def test_one_column_may_play_several_parts(tmp_path):
    found = read(tmp_path, [row(session="s")], keep=("session", "reference"), where=(("session", "s"),))
    assert found.frame.columns == ["id", "system", "dialogue", "session", "reference", "weight"]
    assert found.frame.row(0) == ("u1", "run", "s", "s", THAI, 1.0)
    assert read(tmp_path, [row()], columns={"dialogue": "id"}).frame["dialogue"].to_list() == ["u1"]


def test_numbers_are_names_too(tmp_path):
    rows = [row(id=7, dialogue=1.0), row(id=2.5, dialogue=10**20), row(id="7a")]
    found = read(tmp_path, rows).frame
    assert found["id"].to_list() == ["2.5", "7", "7a"]
    assert found["dialogue"].to_list() == ["100000000000000000000", "1", None]


def test_ids_may_be_missing(tmp_path):
    found = read(tmp_path, [{"reference": "bye", "hypotheses": []}, row(id=None), row(id="x")])
    assert sorted(found.frame["id"].to_list(), key=str) == [None, None, "x"]


def test_a_dialogue_that_is_nan_is_none():
    assert nbest([row(dialogue=float("nan"))]).frame["dialogue"].to_list() == [None]


def test_a_column_that_comes_late_is_read(tmp_path):
    rows = [row(id=k) for k in range(reading.NAMES_FROM)] + [row(id="z", weight=5, dialogue="d", system="s")]
    assert read(tmp_path, rows).of("s").frame.row(0) == ("z", "s", "d", 5.0)


def test_where_keeps_the_rows_that_have_the_value(tmp_path):
    rows = [row(id=1, split="val", n=1), row(id=2, split="test", n=2), row(id=3, split="test", n=2.5, ok=True)]
    assert read(tmp_path, rows, where=(("split", "test"),)).frame["id"].to_list() == ["2", "3"]
    assert read(tmp_path, rows, where=(("split", "test"), ("n", "2"))).frame["id"].to_list() == ["2"]
    assert read(tmp_path, rows, where=(("ok", "true"),)).frame["id"].to_list() == ["3"]
    assert read(tmp_path, rows, where=(("id", "1"),)).frame["id"].to_list() == ["1"]


def test_where_knows_the_system_that_a_file_stands_for(tmp_path):
    rows = [row(id=1), row(id=2, system="other")]
    assert read(tmp_path, rows, where=(("system", "run"),)).frame["id"].to_list() == ["1"]
    assert read(tmp_path, rows, where=(("system", "other"),)).frame["id"].to_list() == ["2"]


def test_where_refuses_an_unknown_column_and_a_value_no_row_has(tmp_path):
    with pytest.raises(DataError, match=r'run.jsonl: there is no column "splitt"; did you mean "split"'):
        read(tmp_path, [row(split="val")], where=(("splitt", "val"),))
    with pytest.raises(DataError, match=r"run.jsonl: no row is left where split is tset"):
        read(tmp_path, [row(split="val")], where=(("split", "tset"),))


def test_a_fault_in_a_row_that_is_not_asked_for_does_not_matter(tmp_path):
    rows = [row((THAI, 3), id=1, split="val"), row(id=2, split="test"), row((THAI, 3), id=3, split="test")]
    assert len(read(tmp_path, rows[:2], where=(("split", "test"),))) == 1
    with pytest.raises(DataError, match=r'run.jsonl:3: utterance "3": a confidence must not exceed 1'):
        read(tmp_path, rows, where=(("split", "test"),))


def test_columns_kept_are_text_whatever_they_are_called(tmp_path):
    cells = row(row=3, source="mic", first=[1, {"a": "b"}], content=None)
    found = read(tmp_path, [cells], keep=("row", "source", "first", "content", "id")).frame
    assert found.select("row", "source", "first", "content").row(0) == ("3", "mic", '[1,{"a":"b"}]', None)
    with pytest.raises(DataError, match=r'there is no column "sorce"; did you mean "source"'):
        read(tmp_path, [cells], keep=("sorce",))


def test_systems_are_named_by_column_else_by_file(tmp_path):
    first = written(tmp_path, "b.jsonl", jsonl([row()]))
    second = written(tmp_path, "a.csv", as_csv([row(run="x"), row(run="y"), row(run="x", id="u2")]))
    found = read_nbest(first, second)
    assert found.systems == ("b", "x", "y")
    assert len(found.of("x")) == 2
    assert read_nbest(f"{tmp_path}/*").systems == ("x", "y", "b")
    assert nbest([row()]).systems == ("system",)
    assert nbest([row()], system="mine").systems == ("mine",)
    with pytest.raises(DataError, match=r'no system "z".*there are "b", "x", "y"'):
        found.of("z")


def test_sets_of_several_files_are_numbered_alike(tmp_path):
    first = written(tmp_path, "one.jsonl", jsonl([row((["z"], 0.5))]))
    second = written(tmp_path, "two.jsonl", jsonl([row((["a"], 0.5)), row((["z"], 0.5), id="u2")]))
    found = read_nbest(first, second)
    assert_same_arrays(found, join_tables([read_nbest(first), read_nbest(second)]))
    assert len(set(found.reference.tolist())) == 1


def test_items_may_be_taken_as_in_the_state_tracking_challenge():
    act = "inform(food=thai, area=north)&request(phone)"
    cells = row(reference=act)
    assert lists(nbest([cells], reading=NBestReading(items="dstc")))["u1"][0] == (
        "inform(area=north)",
        "inform(food=thai)",
        "request=phone",
    )
    with pytest.raises(UsageError, match='items is one of thomson, dstc; got "words"'):
        nbest([cells], reading=NBestReading(items="words"))


def test_references_that_mean_nothing(tmp_path):
    rows = [row(id=k, reference=reference) for k, reference in enumerate(["", [], "[]", "  "])]
    assert {meant for meant, _ in lists(read(tmp_path, rows)).values()} == {()}


def test_a_list_of_items_in_text_is_a_list(tmp_path):
    cells = row(reference='["b c", "a"]', hypotheses=[{"act": '["a"]', "confidence": 0.5}])
    assert lists(read(tmp_path, [cells])) == {"u1": (("a", "b c"), [(("a",), 0.5)])}


def test_taking_utterances_takes_their_lists():
    table = nbest(ROWS)
    assert lists(table.taken(np.array([2, 0]))) == {name: lists(table)[name] for name in ("c", "a")}
    assert lists(table.taken(np.array([False, True, False]))) == {"b": lists(table)["b"]}
    assert table.taken(np.array([2, 0])).start.tolist() == [0, 0, 2]


@given(tables(rough_lists()))
def test_the_first_hypotheses_are_the_surest_in_the_order_given(table):
    whole = nbest(plain.rows_of(table))
    for most in (1, 2, 9):
        found = lists(whole.first(most))
        for name, (meant, acts) in lists(whole).items():
            surest = sorted(range(len(acts)), key=lambda k: (-acts[k][1], k))[:most]
            assert found[name] == (meant, [acts[k] for k in sorted(surest)])


def test_other_confidences_leave_the_lists_as_they_are():
    table = nbest(ROWS)
    assert table.with_confidences(table.confidence / 2).given_out == pytest.approx(table.given_out / 2)


def test_labels_out_of_scope_mean_nothing_as_reference_and_as_hypothesis():
    hypotheses = [{"label": "pay", "p": 0.5}, {"label": "oos", "p": 0.25}]
    rows = [
        {"id": str(place), "target": target, "nbest": hypotheses}
        for place, target in enumerate(["pay", "oos", "out_of_scope", None, ["oos"], "none"])
    ]
    table = nbest(rows)
    items = [table.sets.items_of(code) for code in table.reference]
    assert items == [("pay",), (), (), (), (), ("none",)]
    assert [table.sets.items_of(code) for code in table.act[:2]] == [("pay",), ()]
    assert "4 utterances have no label, or one out of scope: nothing was meant" in table.notes
    kept = nbest(rows[:2], reading=NBestReading(out_of_scope=()))
    assert [kept.sets.items_of(code) for code in kept.reference] == [("pay",), ("oos",)]


def test_acts_that_are_no_labels_are_never_out_of_scope():
    table = nbest([{"id": 1, "reference": "oos()", "hypotheses": [{"act": "oos()", "confidence": 1.0}]}])
    assert table.sets.items_of(int(table.reference[0])) == ("oos",)
