"""Rows judged inside an engine are judged as rows in memory are."""

from itertools import product

import duckdb
import narwhals as nw
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.engines.duckdb import DuckDBEngine
from demur.core.engines.engine import collect_frame
from demur.errors import DataError
from demur.returns.engine_judging import judge_lazily
from demur.returns.table import Reading, responses

SCHEMA = {
    "id": pl.Int64,
    "target": pl.String,
    "prediction": pl.String,
    "confidence": pl.Float64,
    "correct": pl.Boolean,
    "abstained": pl.Boolean,
    "failed": pl.Boolean,
    "weight": pl.Float64,
}
FEW = settings(max_examples=settings.default.max_examples // 2)
BASE = {"id": [1, 2, 3], "target": ["a", "b", "b"], "prediction": ["a", "a", None], "confidence": [0.9, 0.4, None]}

ENGINES = {
    "polars": lambda frame: frame.lazy(),
    "duckdb": lambda frame: duckdb.from_arrow(frame.to_arrow()),
}
each_engine = pytest.mark.parametrize("engine", sorted(ENGINES))


def in_engine(engine, frame):
    return ENGINES[engine](frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame))


def judged(engine, frame, **options):
    reading = options.pop("reading", Reading())
    return judge_lazily(in_engine(engine, frame), reading=reading, **options)


labels = st.sampled_from(["a", "b", "é", "oos", "", "nlu_fallback", None])
flags = st.sampled_from([True, False, None, None])
rows = st.tuples(
    labels,
    labels,
    st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, -3.5, 1e300]),
    flags,
    flags,
    flags,
    st.sampled_from([1.0, 2.0, 0.5]),
)


@each_engine
@FEW
@given(st.lists(rows, min_size=1, max_size=8))
def test_rows_are_judged_as_in_memory(engine, rows):
    frame = pl.DataFrame([(place, *row) for place, row in enumerate(rows)], schema=SCHEMA, orient="row")
    foreign = "no prediction occurs among the targets"
    try:
        expected = responses(frame).frame
    except DataError:
        with pytest.raises(DataError, match=foreign):
            responses(frame)
        with pytest.raises(DataError, match=foreign):
            judged(engine, frame)
        return
    found = judged(engine, frame)
    columns = ["answered", "right", "failed", "out_of_scope", "confidence"]
    order = ["confidence", "right", "failed", "out_of_scope"]
    mine = collect_frame(found.frame.select(columns)).with_columns(pl.col("confidence") + 0.0)
    theirs = expected.select(columns).with_columns(pl.col("confidence") + 0.0)
    assert mine.sort(order).equals(theirs.sort(order))
    assert found.n == expected.height
    assert found.survey["answered"].sum() == expected["answered"].sum()


@each_engine
def test_lists_of_acceptable_labels_are_judged_as_in_memory(engine):
    frame = pl.DataFrame(
        {
            "target": [["a", "b"], ["oos"], [], None, ["oos", "a"], ["c"]],
            "prediction": ["b", "oos", "a", "a", "a", None],
            "confidence": [0.9, 0.8, 0.7, 0.6, 0.5, None],
        }
    )
    expected = responses(frame).frame
    found = collect_frame(judged(engine, frame).frame.select("right", "out_of_scope", "confidence"))
    assert found.sort("confidence").equals(expected.select("right", "out_of_scope", "confidence").sort("confidence"))


@each_engine
def test_what_was_recognised_is_told_as_in_memory(engine):
    frame = {
        "gold": ["a", "oos", None, "b"],
        "prediction": ["a", "a", "b", "nlu_fallback"],
        "confidence": [0.9, 0.8, 0.7, None],
        "failed": ["no", "yes", "No", None],
    }
    found, expected = judged(engine, frame), responses(frame)
    assert found.notes == expected.notes
    assert found.warnings == expected.warnings


@each_engine
@pytest.mark.parametrize(
    "flags",
    [
        pl.Series([1.0, float("nan"), None]),
        pl.Series([1, 0, None]),
        pl.Series(["Yes", " no ", None], dtype=pl.Categorical),
    ],
)
def test_flags_are_read_whatever_their_type(engine, flags):
    found = collect_frame(judged(engine, pl.DataFrame(BASE).with_columns(failed=flags)).frame.select("failed"))
    assert sorted(found["failed"]) == [False, False, True]


@each_engine
@pytest.mark.parametrize("target", ["b", "none"])
def test_placeholders_are_withheld_as_in_memory(engine, target):
    said = ["a", "None", "NO_MATCH", None]
    frame = pl.DataFrame({"target": ["a", "a", "a", target], "prediction": said, "confidence": [0.9, 0.4, 0.2, None]})
    found, memory = judged(engine, frame), responses(frame)
    assert found.survey["answered"].sum() == memory.frame["answered"].sum() == (2 if target == "none" else 1)
    for notes in (found.notes, memory.notes):
        assert '1 prediction "NO_MATCH" read as withheld' in notes


@each_engine
def test_labels_written_with_a_point_zero_are_the_same_in_memory(engine):
    for target, prediction in (
        (["1.0", "oos", "2.0"], "1.0"),
        (["1.0", "x", "x"], "1.0"),
        ([["2.0"], ["1"], []], "2.0"),
    ):
        frame = pl.DataFrame({"target": target, "prediction": [prediction] * 3, "confidence": [0.9, 0.4, 0.3]})
        expected = responses(frame).frame["right"].sum()
        assert expected == 1
        assert collect_frame(judged(engine, frame).frame.select("right"))["right"].sum() == expected


@each_engine
def test_negative_zero_is_the_label_zero(engine):
    frame = {"target": [0.0, -0.0, 1.0], "prediction": [-0.0, 0.0, 1.0], "confidence": [0.9, 0.4, 0.3]}
    assert responses(frame).frame["right"].all()
    assert collect_frame(judged(engine, frame).frame.select("right"))["right"].all()


@each_engine
def test_numbers_are_labels_whatever_their_type(engine):
    frame = {"target": [1, 2, 3], "prediction": [1.0, 3.0, None], "confidence": [0.9, 0.4, None]}
    found = collect_frame(judged(engine, frame).frame.select("right", "answered"))
    assert sorted(found.rows()) == [(False, False), (False, True), (True, True)]


@each_engine
def test_a_log_without_confidences_ranks_all_answers_lowest(engine):
    found = judged(engine, {"target": ["a", "b"], "prediction": ["a", "a"]})
    assert collect_frame(found.frame.select("confidence"))["confidence"].to_list() == [float("-inf")] * 2
    (note,) = found.notes
    assert note.startswith("no confidences: only what a system withholds by itself counts")


@each_engine
def test_slices_and_systems_are_counted_apart(engine):
    frame = {**BASE, "system": ["x", "x", "y"], "domain": ["p", None, "p"]}
    found = judged(engine, frame, by="domain")
    assert found.survey.select("system", "slice", "rows").rows() == [("x", "(none)", 1), ("x", "p", 1), ("y", "p", 1)]


@each_engine
def test_rows_are_kept_where_a_column_has_a_value(engine):
    reading = Reading(where=(("split", "2"),))
    assert judged(engine, {**BASE, "split": [1, 2, 2]}, reading=reading).n == 2
    with pytest.raises(DataError, match="no row is left where split is 7"):
        judged(engine, {**BASE, "split": [1, 2, 2]}, reading=Reading(where=(("split", "7"),)))
    with pytest.raises(DataError, match='there is no column "part"; '):
        judged(engine, BASE, reading=Reading(where=(("part", "7"),)))


@each_engine
def test_labels_for_confusion_are_those_of_memory(engine):
    frame = {"target": ["a", "b", "b"], "prediction": ["a", "a", None], "confidence": [0.9, 0.4, None]}
    found = collect_frame(judged(engine, frame, labels=True).frame.select("actual", "predicted"))
    assert sorted(found.rows(), key=repr) == [("a", "a"), ("b", "a"), ("b", None)]


@each_engine
def test_turns_of_a_dialogue_share_a_bucket_and_rows_outside_any_have_their_own(engine):
    frame = {**BASE, "dialogue": ["d", "d", None]}
    found = judged(engine, frame)
    buckets = collect_frame(found.frame.select("confidence", "bucket"))
    assert found.clustered
    assert buckets.filter(pl.col("confidence").is_not_null())["bucket"].n_unique() == 1
    assert buckets["bucket"].n_unique() == 2


def with_column(name, *values):
    return {**BASE, name: list(values)}


FAULTS = {
    "nan": (
        with_column("confidence", 0.1, float("nan"), 0.2),
        r"confidence must not be NaN or infinite \(1 such row in all\)",
    ),
    "infinite": (with_column("confidence", 0.1, float("-inf"), 0.2), r"must not be NaN or infinite \(1 such row"),
    "missing": (
        {"target": ["a", "b"], "prediction": ["a", "b"], "confidence": [0.5, None]},
        r"confidence is missing for an answer \(1 such row in all\).*--missing-confidence lowest",
    ),
    "text as confidence": (with_column("confidence", "0.1", "0.2", "0.3"), "confidence must be a number; got String"),
    "negative weight": (
        with_column("weight", 1.0, -2.0, 1.0),
        r"weight must be a number of 0 or more, and within.* unless it is 0 \(1 such row in all\); got -2",
    ),
    "null weight": (with_column("weight", 1.0, None, 1.0), r"weight must be a number of 0 or more.*got \"null\""),
    "id gone": (with_column("id", 1, None, 3), r"id must be there in every row or in none \(1 such row in all\)"),
    "system gone": (with_column("system", "x", None, "x"), r"system must be there in every row \(1 such row in all\)"),
    "flag": (with_column("failed", "maybe", "no", "yes"), r"failed must be true or false \(1 such row in all\)"),
    "fraction": (with_column("target", 1.5, 2.0, 3.0), r"target must be text or whole numbers \(1 such row in all\)"),
    "spelled": (with_column("target", '["a"]', "b", "b"), "target is text that looks like a list.*as a list column"),
    "unmarked": (
        {"correct": pl.Series([None, None], dtype=pl.Boolean), "confidence": [0.5, 0.4]},
        "correct must be given for every answer, as there is no column target",
    ),
    "no target": ({"prediction": ["a"], "confidence": [0.5]}, "needs a column target or correct"),
    "lookalike": ({"target": ["a"], "prediction": ["a"], "confidense": [0.5]}, "has no column confidence"),
    "weights without ids": (
        {"target": ["a", "b"], "prediction": ["a", "b"], "confidence": [0.5, 0.4], "weight": [1.0, 2.0]},
        "rows whose weight is not 1 need an id inside an engine",
    ),
    "lone rows without ids": (
        {"target": ["a", "b"], "prediction": ["a", "b"], "confidence": [0.5, 0.4], "dialogue": ["d", None]},
        "rows outside any dialogue need an id inside an engine",
    ),
    "foreign labels": (
        {"target": ["a", "b"], "prediction": ["x", "y"], "confidence": [0.5, 0.4]},
        "no prediction occurs among the targets",
    ),
}


IN_CELLS = ("nan", "infinite", "null weight", "system gone", "flag", "fraction", "spelled")
"""Faults that each engine finds in cells in its own way."""


@pytest.mark.parametrize(("engine", "fault"), [*product(["polars"], FAULTS), *product(["duckdb"], IN_CELLS)])
def test_what_cannot_be_judged_is_refused_and_counted(engine, fault):
    frame, message = FAULTS[fault]
    with pytest.raises(DataError, match=message):
        judged(engine, frame)


@each_engine
def test_a_label_that_is_out_of_scope_is_no_target_that_predictions_have_in_common(engine):
    frame = {"target": ["a", "b", "oos"], "prediction": ["x", "y", "oos"], "confidence": [0.5, 0.4, 0.3]}
    with pytest.raises(DataError, match="no prediction occurs among the targets"):
        responses(frame)
    with pytest.raises(DataError, match="no prediction occurs among the targets"):
        judged(engine, frame)


@each_engine
def test_an_empty_table_is_refused(engine):
    with pytest.raises(DataError, match="holds no rows"):
        judged(engine, pl.DataFrame(BASE).clear())


@each_engine
def test_repeated_ids_are_found_when_asked_for(engine):
    frame = with_column("id", 1, 2, 2)
    assert "ids were not checked for repeats" in judged(engine, frame).notes[0]
    with pytest.raises(DataError, match=r'the id "2" occurs 2 times.*is a part of the log there twice'):
        judged(engine, frame, check_ids=True)
    assert not judged(engine, BASE, check_ids=True).notes[0].startswith("ids")


@each_engine
def test_more_systems_and_slices_than_can_be_counted_apart_are_refused_not_cut(engine, monkeypatch):
    monkeypatch.setattr("demur.returns.engine_judging.MOST_GROUPS", 2)
    with pytest.raises(DataError, match="there are more than 2 systems and slices"):
        judged(engine, {**BASE, "system": ["x", "y", "z"]})
    assert judged(engine, {**BASE, "system": ["x", "y", "y"]}).n == 3


@each_engine
def test_nan_is_no_value_of_any_column(engine, tmp_path):
    nan = float("nan")
    frame = pl.DataFrame({**BASE, "dom": [1.0, nan, nan], "dialogue": [1.0, nan, 2.0]})
    frame.write_parquet(tmp_path / "log.parquet")
    path = str(tmp_path / "log.parquet")
    ours = DuckDBEngine().connection
    held = pl.scan_parquet(path) if engine == "polars" else ours.read_parquet(path)
    assert judge_lazily(held, reading=Reading(where=(("dom", "1"),))).n == 1
    assert judge_lazily(held, reading=Reading(), by="dom").survey["slice"].to_list() == ["(none)", "1"]
    assert judge_lazily(held, reading=Reading()).survey["no_dialogue"].to_list() == [1]


def test_a_frame_that_cannot_be_planned_is_a_fault_of_the_data(tmp_path):
    with pytest.raises(DataError, match="cannot be read or counted"):
        judge_lazily(pl.scan_csv(tmp_path / "nothing.csv"), reading=Reading())


@each_engine
def test_slicing_by_a_column_of_many_values_is_refused(engine):
    frame = {"target": ["a"] * 300, "prediction": ["a"] * 300, "confidence": [0.5] * 300, "turn": list(range(300))}
    with pytest.raises(DataError, match="too many to slice by"):
        judged(engine, frame, by="turn")


def test_an_eager_frame_is_taken_as_well():
    assert judge_lazily(nw.from_native(pl.DataFrame(BASE)), reading=Reading()).n == 3
