import json

import pytest

from demur.core.io.growing import LogBatch
from demur.errors import DataError
from demur.returns.follow import BatchReader
from demur.returns.table import Reading, read_responses

FOLLOWED = {"target": "a", "prediction": "a", "confidence": 0.5}


def batch(*rows, before=0, text=None):
    lines = "".join(json.dumps(row) + "\n" for row in rows) if text is None else text
    return LogBatch("run.jsonl", "run", "json", b"", lines.encode(), before)


def csv(text, before, header=b"id,target,prediction,confidence\n"):
    return LogBatch("run.csv", "run", "csv", header, text, before)


def read(*parts, **options):
    reader = BatchReader(Reading(**options))
    return reader, [reader.judged(part) for part in parts]


def test_batches_are_judged_as_the_whole_file_is(tmp_path):
    rows = [
        {"id": k, "gold": "ab"[k % 2], "prediction": [None, "b", "oos", "nlu_fallback"][k % 4], "score": k / 40}
        for k in range(40)
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = read_responses(path)
    reader, parts = read(batch(*rows[:7]), batch(*rows[7:8], before=7), batch(*rows[8:], before=8))
    frame = parts[0].frame.vstack(parts[1].frame).vstack(parts[2].frame)
    assert frame.rechunk().equals(whole.frame)
    assert set(whole.notes) <= set(reader.notes)
    assert reader.warnings == whole.warnings


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (batch(FOLLOWED, {**FOLLOWED, "confidence": "high"}, before=70), r'^run.jsonl:72: confidence must be .*"high"'),
        (batch(text='{"target": \n', before=70), r"^run.jsonl:71: the line is "),
        (batch(text="\n\n7\n", before=70), r"^run.jsonl:73: each line must be a JSON object"),
        (batch(text='[{"target": 1}]\n', before=70), r"^run.jsonl:71: each line must be a JSON object"),
        (batch(*[{**FOLLOWED, "id": 1}] * 2, before=70), r"^run.jsonl:72: the id .* first at run.jsonl:71 "),
        (csv(b"1,a,a,0.5\n2,a,a,x\n", 1), r"^run.csv:3: confidence must be a number"),
        (csv(b"1,a,a,0.5\n2,a,a,x\n", 90), r"^run.csv:92: confidence must be a number"),
        (csv(b"1,a,a,0.5\n2,a,a,0.1,5\n", 90), r"^run.csv:92: the row has 5 cells, the header 4"),
        (csv(b'1,a,a,0.5\n2,"a\n",a,x\n', 90), r"^run.csv:93: confidence must be a number"),
    ],
)
def test_a_fault_names_the_line_in_the_whole_log(part, said):
    with pytest.raises(DataError, match=said):
        read(part)


def test_a_column_that_a_batch_lacks_is_still_known():
    _, parts = read(
        batch({**FOLLOWED, "dialogue": "d1"}), batch({"target": "a", "prediction": None}, before=1), batch(FOLLOWED)
    )
    assert [part.grouped for part in parts] == [True, True, True]
    assert parts[1].frame["answered"].to_list() == [False]
    assert "dialogue" in parts[2].frame.columns


def test_rows_without_an_id_get_one_that_no_other_batch_has_where_units_are_drawn():
    _, parts = read(*(batch({**FOLLOWED, "weight": 1}, before=line) for line in (0, 1)))
    assert [part.frame["id"].item() for part in parts] == ["row 0", "row 1"]
    _, alone = read(batch(FOLLOWED))
    assert alone[0].frame["id"].to_list() == [None]


def test_wrong_labels_in_one_batch_are_no_reason_to_refuse_it():
    first = batch(*({**FOLLOWED, "target": label, "prediction": f"{label}?"} for label in "ab"))
    reader, _ = read(first)
    assert reader.warnings == (
        'no prediction of system "run" occurs among the targets so far: are they coded differently?',
    )
    reader.judged(batch(FOLLOWED, before=2))
    assert reader.warnings == ()


def test_labels_are_remembered_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("demur.returns.follow.MOST_LABELS", 2)
    reader, _ = read(*(batch({**FOLLOWED, "target": f"t{k}", "prediction": "x"}, before=k) for k in range(4)))
    assert reader.warnings == ()


def test_labels_that_differ_only_in_case_are_told_once():
    near = batch({**FOLLOWED, "prediction": "A"}, FOLLOWED)
    reader, _ = read(near, near)
    assert [warning for warning in reader.warnings if "case" in warning] == [
        'in row 2 or shortly before: 1 prediction equals a target except for case or spaces, e.g. "A" and "a"; '
        "it counts as wrong"
    ]


def test_counts_of_what_was_recognised_add_up():
    reader, _ = read(*[batch({**FOLLOWED, "target": "oos"}, FOLLOWED)] * 3)
    assert reader.notes == ('3 targets "oos" read as out of scope',)


def test_confidences_that_begin_or_end_in_the_middle_are_refused():
    bare = {"target": "a", "prediction": "a"}
    said = r'lines 2 to 2: the confidence is there for some answers of system "run" and missing for others'
    for rows in ((FOLLOWED, bare), (bare, FOLLOWED)):
        with pytest.raises(DataError, match=said):
            read(batch(rows[0]), batch(rows[1], before=1))
        read(batch(rows[0]), batch(rows[1], before=1), missing_confidence="lowest")
    reader, _ = read(batch(bare), batch(bare))
    assert any(one.startswith("no confidences: only what a system withholds by itself counts") for one in reader.notes)


def test_systems_that_begin_in_the_middle_are_refused():
    with pytest.raises(DataError, match="lines 2 to 2: system must be there in every row or in none"):
        read(batch(FOLLOWED), batch({**FOLLOWED, "system": "x"}, before=1))


def test_a_second_column_for_the_same_part_is_refused():
    said = 'confidence was read from the column "score" so far, and now there is "confidence" too .*--map confidence='
    first = {"target": "a", "prediction": "a", "score": 0.5}
    with pytest.raises(DataError, match=said):
        read(batch(first), batch(FOLLOWED, before=1))
    read(batch(first), batch({**FOLLOWED, "score": 0.5}, before=1), columns={"confidence": "score"})


def test_rows_are_kept_by_value_and_a_batch_may_keep_none():
    rows = [{**FOLLOWED, "split": split} for split in ("test", "dev")]
    reader, parts = read(batch(*rows), batch(rows[1], before=2), where=(("split", "test"),))
    assert [part and part.frame.height for part in parts] == [1, None]
    assert "1 of 3 rows kept where split is test" in reader.notes
    reader, _ = read(batch(rows[1]), where=(("split", "test"),))
    with pytest.raises(DataError, match=r"run.jsonl holds no row where split is test"):
        reader.refuse_nothing("run.jsonl")


def test_that_ids_are_compared_within_batches_only_is_told_once_there_are_several():
    reader, _ = read(batch({**FOLLOWED, "id": 1}))
    assert reader.notes == ()
    reader.judged(batch({**FOLLOWED, "id": 1}, before=1))
    assert reader.notes == ("an id that comes twice is noticed only within one batch of a log that is followed",)


def test_a_log_without_rows_is_refused():
    with pytest.raises(DataError, match=r"run.jsonl holds no rows"):
        BatchReader(Reading()).refuse_nothing("run.jsonl")
