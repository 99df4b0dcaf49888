import gzip
import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import DataError
from demur.returns.table import Reading, read_responses, responses
from returns.logs import JUDGED, jsonl, judged, row


def test_a_repeated_id_is_refused_with_both_lines(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(id=1), row(id=2), row(id="1"), row(id=2)])
    expected = (
        r'run.jsonl:3: the id "1" occurs twice.*first at .*run.jsonl:1 \(2 ids.*system=COLUMN.*tried several times'
    )
    with pytest.raises(DataError, match=expected):
        read_responses(path)


def test_the_same_id_in_two_systems_is_fine():
    assert judged(row(id=1, system="x"), row(id=1, system="y")).height == 2


def test_an_id_must_be_there_in_every_row_or_in_none():
    with pytest.raises(DataError, match="row 2: id must be there in every row or in none"):
        judged(row(id=1), row(id=None))
    assert judged(row(id=None), row(id=None))["id"].to_list() == [None, None]


def test_systems_are_named_by_column_else_by_file(tmp_path):
    jsonl(tmp_path / "b.jsonl", [row()])
    jsonl(tmp_path / "a.jsonl", [row(run="x"), row(run="y")])
    assert read_responses(tmp_path / "b.jsonl", tmp_path / "a.jsonl").systems == ("b", "x", "y")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    assert read_responses(tmp_path / "c.jsonl.gz").systems == ("c",)
    assert responses([row()]).systems == ("system",)
    assert responses([row()], system="mine").systems == ("mine",)


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for folder in ("new", "old"):
        (tmp_path / folder).mkdir()
        jsonl(tmp_path / folder / "run.jsonl", [row(id=1)])
    found = read_responses(tmp_path / "new" / "run.jsonl", tmp_path / "old" / "run.jsonl")
    assert found.systems == ("new/run", "old/run")
    assert any(note.endswith('read as system "new/run"') for note in found.notes)


def test_two_files_of_one_system_must_not_share_ids(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(id=1)])
    pl.DataFrame([row(id=2), row(id=1)]).write_csv(tmp_path / "run.csv")
    with pytest.raises(DataError, match=r'run.csv:3: the id "1" occurs twice in system "run", first at .*run.jsonl:1'):
        read_responses(path, tmp_path / "run.csv")


def test_the_same_file_twice_is_refused(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row()])
    with pytest.raises(DataError, match=r"run.jsonl is given twice"):
        read_responses(path, f"{tmp_path}/*.jsonl")


def test_columns_in_which_nothing_stands_are_read():
    found = judged(row(correct=None, abstained=None, dialogue=None, target=None, prediction=None, confidence=None))
    assert found.row(0)[3:9] == ([], None, False, False, False, True)


def test_the_responses_of_one_system():
    found = responses([row(system="first"), row(system="second")])
    assert found.of("second").frame["system"].to_list() == ["second"]
    assert len(found) == 2
    with pytest.raises(DataError, match=r'no system "secnd" \(did you mean "second"\?\)'):
        found.of("secnd")


def test_the_rows_of_one_system_are_the_same_whether_they_stand_together_or_not():
    together = [{"system": "ab"[k > 2], "id": k, "target": "x", "prediction": "x", "confidence": 0.5} for k in range(6)]
    mixed = [together[k] for k in (0, 3, 1, 4, 2, 5)]
    for system in "ab":
        rows = [responses(table).of(system).frame["id"].to_list() for table in (together, mixed)]
        assert rows[0] == rows[1] == (["0", "1", "2"] if system == "a" else ["3", "4", "5"])


def test_what_was_guessed_and_recognised_is_noted():
    rows = [
        {"gold": "oos", "answer": "a", "score": 1},
        {"gold": None, "answer": "nlu_fallback", "score": None},
    ]
    rows += [{"gold": "a", "answer": "a", "score": 1}, {"gold": "a", "answer": None, "score": 1}]
    assert set(responses(rows).notes) == {
        "target <- gold",
        "prediction <- answer",
        "confidence <- score",
        '1 target "oos" read as out of scope',
        "1 target that is null read as out of scope",
        '1 prediction "nlu_fallback" read as withheld',
        "1 prediction that is null read as withheld",
    }


def test_labels_with_a_meaning_of_their_own_are_options():
    found = judged(row(target="none"), row(prediction="pass"), row(), out_of_scope=("none",), withheld=("pass",))
    assert found["out_of_scope"].to_list() == [True, False, False]
    assert found["answered"].to_list() == [True, False, True]
    assert judged(row(target="oos", prediction="oos"), out_of_scope=())["right"].all()


def test_where_keeps_the_rows_that_have_the_value(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(split="val", n=1), row(split="test", n=2), row(split="test", n=2.5)])
    found = read_responses(path, reading=Reading(where=(("split", "test"),)))
    assert len(found) == 2
    assert any(note.endswith("2 of 3 rows kept where split is test") for note in found.notes)
    assert len(read_responses(path, reading=Reading(where=(("split", "test"), ("n", "2"))))) == 1


def test_a_fault_after_filtering_is_still_placed_at_its_line(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(split="val"), row(split="test"), row(split="test", confidence="?")])
    with pytest.raises(DataError, match=r"run.jsonl:3: confidence must be a number"):
        read_responses(path, reading=Reading(where=(("split", "test"),)))


def test_where_refuses_an_unknown_column_and_a_value_no_row_has():
    with pytest.raises(DataError, match=r'no column "splitt".*did you mean "split"'):
        judged(row(split="val"), where=(("splitt", "val"),))
    with pytest.raises(DataError, match=r"no row is left where split is tset \(split holds 'val'\)"):
        judged(row(split="val"), where=(("split", "tset"),))


def test_a_file_of_which_no_row_is_left_is_warned_of(tmp_path):
    paths = [jsonl(tmp_path / f"{name}.jsonl", [row(split=name)]) for name in ("val", "test")]
    found = read_responses(*paths, reading=Reading(where=(("split", "val"),)))
    assert found.systems == ("val",)
    assert found.warnings[0].endswith("test.jsonl: no row is left where split is val")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_further_columns_are_kept_only_when_asked_for(tmp_path, ending):
    frame = pl.DataFrame([row(text="hello", domain="travel", turns=3)])
    path = tmp_path / f"run.{ending}"
    {"jsonl": frame.write_ndjson, "csv": frame.write_csv, "parquet": frame.write_parquet}[ending](path)

    def kept(*names):
        cells = read_responses(path, reading=Reading(keep=names)).frame.row(0, named=True)
        return {name: cell for name, cell in cells.items() if name not in JUDGED}

    assert kept() == {}
    assert kept("domain", "input") == {"domain": "travel", "input": "hello"}
    assert kept("*") == {"input": "hello", "domain": "travel", "turns": "3"}
    assert kept("right") == {}
    with pytest.raises(DataError, match=r'run.\w+: there is no column "domian"; did you mean "domain"\?$'):
        kept("domian")


def test_a_column_that_plays_a_part_can_be_kept_under_its_own_name():
    assert judged({"gold": "a", "prediction": "a", "confidence": 1}, keep=("gold",))["gold"].to_list() == ["a"]


def test_flags_that_first_appear_late_are_not_lost(tmp_path):
    rows = [row(id=n) for n in range(2500)] + [row(id=2500, failed=True), row(id=2501, abstained=True)]
    found = read_responses(jsonl(tmp_path / "run.jsonl", rows)).frame
    assert found["failed"].sum() == 1
    assert found["answered"].sum() == 2500


def test_mapped_columns_are_read():
    rows = [{"truth": "a", "said": "a", "sure": 0.5, "target": "z"}]
    mapping = {"target": "truth", "prediction": "said", "confidence": "sure"}
    assert judged(*rows, columns=mapping)["right"].to_list() == [True]


def test_data_of_no_known_kind_is_refused():
    for data in (3, "text"):
        with pytest.raises(DataError, match="must be a frame, a dictionary of columns or a list of dictionaries"):
            responses(data)
    with pytest.raises(DataError, match="holds no rows"):
        responses([])
    with pytest.raises(DataError, match="row 2 must be a dictionary; got "):
        responses([row(), 3])
    with pytest.raises(DataError, match="columns must be of one length"):
        responses({"target": ["a", "b"], "prediction": ["a"]})


TABLE = pl.DataFrame(
    {
        "id": ["1", "2", "3", "4"],
        "target": ["a", None, "b", "c"],
        "prediction": ["a", "b", None, "b"],
        "confidence": [0.125, 0.5, None, 1.0],
        "weight": [1, 2, 1, 1],
        "abstained": [False, False, True, False],
        "dialogue": [7, 7, 8, 8],
    }
)

FRAMES = {
    "polars": lambda: TABLE,
    "lazy": lambda: TABLE.lazy(),
    "pandas": lambda: pd.DataFrame(TABLE.to_dict(as_series=False)),
    "pyarrow": lambda: TABLE.to_arrow(),
    "duckdb": lambda: duckdb.from_arrow(TABLE.to_arrow()),
    "columns": lambda: TABLE.to_dict(as_series=False),
    "series": lambda: TABLE.to_dict(),
    "rows": lambda: TABLE.to_dicts(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_is_judged_alike(kind):
    assert responses(FRAMES[kind]()).frame.sort("id").equals(responses(TABLE).frame)


def test_a_pandas_column_of_labels_and_lists_is_read():
    frame = pd.DataFrame({"target": ["a", ["a", "b"], None], "prediction": ["a", "b", "c"], "confidence": [1, 2, 3]})
    found = responses(frame).frame
    assert found["target"].to_list() == [["a"], ["a", "b"], []]
    assert found["right"].to_list() == [True, True, False]


def test_native_lists_of_numbers_match_as_text():
    frame = pl.DataFrame({"target": [[1, 2], []], "prediction": [2, 1], "confidence": [1, 1]})
    found = responses(frame).frame
    assert found["right"].to_list() == [True, False]
    assert found["out_of_scope"].to_list() == [False, True]


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(DataError, match="column id holds what cannot be read as text; got Binary"):
        responses({"id": [b"\xff\xfe"], "target": ["a"], "prediction": ["a"], "confidence": [1]})


def test_lists_within_lists_are_labels_as_text():
    frame = pl.DataFrame({"target": [[["a"]]], "prediction": ['[["a"]]'], "confidence": [1]})
    assert responses(frame).frame["right"].all()


FEW = settings(max_examples=settings.default.max_examples // 2)
labels = st.sampled_from(["a", "b", "naïve", "d, e", 'quo"te', "oos"])
NEGATIVE = row(slice="x", failed=False, confidence=-1.0)
"""A row by which confidences are no percentages, whatever the others are: a mixture of scales is refused."""
rows_of_answers = st.lists(
    st.fixed_dictionaries(
        {
            "target": st.none() | labels,
            "prediction": st.none() | labels,
            "confidence": st.floats(allow_nan=False, allow_infinity=False),
            "failed": st.booleans(),
            "slice": st.sampled_from(["x", "y"]),
        }
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: [{"id": str(n), **cells} for n, cells in enumerate([NEGATIVE, *rows])])


@settings(max_examples=max(3, settings.default.max_examples // 4))
@given(rows_of_answers)
def test_every_format_is_judged_alike(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("formats")
    frame = pl.DataFrame(rows, schema_overrides={"target": pl.String, "prediction": pl.String})
    frame.write_ndjson(folder / "run.jsonl")
    frame.write_csv(folder / "run.csv")
    frame.write_csv(folder / "run.tsv", separator="\t")
    frame.write_parquet(folder / "run.parquet")
    frame.write_ipc(folder / "run.arrow")
    (folder / "run.json").write_text(json.dumps(rows))
    (folder / "run.jsonl.gz").write_bytes(gzip.compress((folder / "run.jsonl").read_bytes()))
    reading = Reading(keep=("slice",))
    expected = responses(frame, system="run", reading=reading).frame
    for path in folder.iterdir():
        assert read_responses(path, reading=reading).frame.equals(expected), path.name


@FEW
@given(rows_of_answers.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_rows_does_not_change_what_is_judged(orders):
    first, second = (responses(rows).frame.sort("id") for rows in orders)
    assert first.equals(second)


@FEW
@given(rows_of_answers)
def test_what_is_right_was_answered_and_in_scope(rows):
    frame = responses(rows).frame
    assert not frame.filter("right", ~pl.col("answered") | pl.col("out_of_scope")).height
    assert frame.filter("answered")["confidence"].null_count() == 0
    assert frame.filter(~pl.col("answered"))["confidence"].null_count() == (~frame["answered"]).sum()


SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "clinc150"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data/clinc150 beside the project")
def test_published_logs_are_read_without_mapping():
    found = read_responses(f"{SHARED}/pred_*.jsonl.gz", reading=Reading(where=(("split", "test"),), keep=("domain",)))
    assert found.systems == ("pred_minilm_knn", "pred_minilm_lr", "pred_tfidf_lr")
    assert "target <- gold" in found.notes
    assert found.frame["answered"].all()
    assert found.of("pred_tfidf_lr").frame["out_of_scope"].sum() == 1000
    assert 0.7 < found.of("pred_minilm_lr").frame.filter(~pl.col("out_of_scope"))["right"].mean() < 1


UNNAMED = pl.DataFrame({"": ["u", "v"], "target": ["a", "b"], "prediction": ["a", "a"], "confidence": [0.5, 0.25]})


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet", "arrow"])
def test_a_column_without_a_name_can_be_mapped_in_every_format(tmp_path, ending):
    writers = {
        "csv": UNNAMED.write_csv,
        "tsv": lambda path: UNNAMED.write_csv(path, separator="\t"),
        "csv.gz": lambda path: UNNAMED.write_csv(path, compression="gzip"),
        "jsonl": UNNAMED.write_ndjson,
        "json": UNNAMED.write_json,
        "parquet": UNNAMED.write_parquet,
        "arrow": UNNAMED.write_ipc,
    }
    writers[ending](tmp_path / f"t.{ending}")
    found = read_responses(tmp_path / f"t.{ending}", reading=Reading(columns={"id": ""}))
    assert found.frame["id"].to_list() == ["u", "v"]


@pytest.mark.parametrize(
    "made",
    [
        UNNAMED.to_pandas,
        UNNAMED.to_arrow,
        UNNAMED.to_dicts,
        lambda: UNNAMED,
        lambda: UNNAMED.to_dict(as_series=False),
    ],
    ids=["pandas", "pyarrow", "rows", "polars", "columns"],
)
def test_a_column_without_a_name_can_be_mapped_in_every_frame(made):
    assert responses(made(), reading=Reading(columns={"id": ""})).frame["id"].to_list() == ["u", "v"]


def test_a_column_without_a_name_that_is_not_there_is_refused(tmp_path):
    UNNAMED.rename({"": "id"}).write_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match='there is no column "" to map id from'):
        read_responses(tmp_path / "t.csv", reading=Reading(columns={"id": ""}))


def test_all_faults_of_the_columns_of_a_file_are_told_at_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "id,target,predicted,response,confidence,weight,abstained\n"
        "1,a,a,a,0.5,1,no\n"
        "2,a,a,a,0.5,-2,no\n"
        "3,a,a,a,high,1,perhaps\n"
        ",a,a,a,0.5,1,no\n"
    )
    with pytest.raises(DataError, match="may be any of") as caught:
        read_responses(path, reading=Reading(columns={"system": "run"}))
    assert [(fault.where, fault.rule) for fault in caught.value.faults] == [
        (f"{path}:", 'prediction may be any of the columns "predicted", "response"'),
        (f"{path}:", 'there is no column "run" to map system from'),
        (f"{path}:3: weight", "must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0"),
        (f"{path}:4: abstained", "must be true or false"),
        (f"{path}:4: confidence", "must be a number"),
        (f"{path}:5: id", "must be there in every row or in none"),
    ]
    assert str(caught.value) == "\n".join(map(str, caught.value.faults))


def test_missing_columns_are_told_with_bad_values():
    with pytest.raises(DataError, match="needs a column target") as caught:
        responses([{"confidence": "high", "weight": -1}])
    assert [fault.rule for fault in caught.value.faults] == [
        "needs a column target or correct to tell right from wrong and a column prediction",
        "must be a number",
        "must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0",
    ]


def test_faults_in_rows_that_are_not_kept_are_not_told():
    rows = [row(split="a", confidence="high"), row(split="b", weight=-1)]
    with pytest.raises(DataError, match="there is no column") as caught:
        responses(rows, reading=Reading(columns={"system": "run"}, where=(("split", "b"),)))
    assert [fault.rule for fault in caught.value.faults] == [
        'there is no column "run" to map system from',
        "must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0",
    ]
