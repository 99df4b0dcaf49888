import json

import pytest

from demur.errors import DataError
from demur.nbest_lists import reading
from demur.nbest_lists.table import nbest, read_nbest
from nbest_lists.nbest_lists import THAI, jsonl, read, row, written


def test_a_list_may_sum_to_a_little_over_1(tmp_path):
    assert read(tmp_path, [row((THAI, 0.6), ("bye", 0.4005))]).given_out.tolist() == pytest.approx([1.0005])
    assert read(tmp_path, [row((THAI, 1.0005))]).confidence.tolist() == [1.0005]


def test_lists_that_sum_to_over_1_are_refused_or_normalised(tmp_path):
    rows = [row((THAI, 0.5), ("bye", 0.2)), row((THAI, 0.6), ("bye", 0.41), id="u2"), row((THAI, 3.0), id="u3")]
    expected = (
        r'run.jsonl:2: utterance "u2": the confidences of a list must not sum to over 1; these sum to 1.01 '
        r"\(2 such lists in this batch\) \(`normalise` scales"
    )
    with pytest.raises(DataError, match=expected):
        read(tmp_path, rows)
    found = read(tmp_path, rows, normalise=True)
    assert found.confidence.tolist() == pytest.approx([0.5, 0.2, 0.6 / 1.01, 0.41 / 1.01, 1.0])
    assert found.notes == ("2 lists summed to over 1 and were normalised",)


WHERE = r'run.jsonl:2: utterance "u1"'
SHAPE = r'\(hypotheses look like \[\{"act": "inform\(food=thai\)", "confidence": 0.7\}, ...\]\)'


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (row((THAI, -0.1)), f"{WHERE}: a confidence must be a number of at least 0; got -0.1"),
        (row((THAI, 1.2)), f"{WHERE}: a confidence must not exceed 1; got 1.2"),
        (row((THAI, float("nan"))), f"{WHERE}: a confidence must be a number of at least 0; got no number"),
        (row((THAI, float("inf"))), f"{WHERE}: a confidence must be a number of at least 0; got inf"),
        (row((THAI, None)), f'{WHERE}: a confidence must .* got no number .each hypothesis needs "confidence": P'),
        (row((THAI, "high")), rf"{WHERE}: hypotheses\[0\].confidence must be a number, not text {SHAPE}"),
        (row((THAI, True)), rf"{WHERE}: hypotheses\[0\].confidence must be a number, not true or false"),
        (row(hypotheses=[{"act": THAI}]), f"{WHERE}: a confidence must be a number of at least 0; got no number"),
        (row(hypotheses=[{"confidence": 0.5}]), f"{WHERE}: a hypothesis has neither act nor items"),
        (row(hypotheses=[{"act": None, "items": None, "confidence": 0.5}]), f"{WHERE}: a hypothesis has neither"),
        (row(hypotheses=THAI), f"{WHERE}: hypotheses must be a list, not text {SHAPE}"),
        (row(hypotheses={THAI: 0.5}), f"{WHERE}: hypotheses must be a list, not an object {SHAPE}"),
        (row(hypotheses=[THAI]), rf"{WHERE}: hypotheses\[0\] must be an object, not text {SHAPE}"),
        (row(([1, 2], 0.5)), rf"{WHERE}: hypotheses\[0\].items\[0\] must be text, not a number"),
        (row(("inform(food", 0.5)), f'{WHERE}: the act does not parse at character 12: .* the text ends; got "inform'),
        (row(reference="inform(=)"), rf"{WHERE}: the act does not parse at character 9: expected a value"),
        (row(reference=None), rf"{WHERE} has no reference \(give the act that was meant, or \[\] where nothing was\)"),
        (row(reference=3), f"{WHERE}: reference must be text or a list, not a number"),
        (row(id=True), r'run.jsonl:2: utterance "True": id must be a number or text, not true or false'),
        (row(weight=0), f"{WHERE}: a weight must be a number above 0, of at most 1e100; got 0"),
        (row(weight="heavy"), f"{WHERE}: weight must be a number, not text"),
        (row(id=None, reference=None), r"run.jsonl:2 has no reference"),
        (12, r'run.jsonl:2: each row must be an object; got "12"'),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_name(tmp_path, cells, said):
    with pytest.raises(DataError, match=said):
        read(tmp_path, [row(id="fine", weight=1), cells])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (jsonl([row()]) + b"hello\n", r'run.jsonl:2: the line is not JSON: .*; got "hello"'),
        (b"hello\n", r'run.jsonl:1: the line is not JSON: .*; got "hello"'),
        (jsonl([row()]) + jsonl([row()])[:40], r"run.jsonl:2: the line is cut off; got"),
        (jsonl([row()])[:40], r"run.jsonl:1: the line is cut off; got"),
        (b"12\n", r'run.jsonl:1: each row must be an object; got "12"'),
        (b"[1, 2]", r'run.jsonl: element 1: each row must be an object; got "1"'),
        (b"[" + json.dumps(row()).encode(), r"run.jsonl:1: the array is cut off or not JSON"),
        (b"[]", "run.jsonl holds no rows"),
        (b"{}\n", "run.jsonl holds no rows"),
        (b"", "run.jsonl is empty"),
        (b"\n \n", "run.jsonl is empty"),
        (jsonl([row()]) + b'{"id": "\xff"}\n', r"run.jsonl:2: byte 8 of the line .* is not UTF-8"),
        (
            jsonl([{"id": 1, "hypotheses": []}]),
            r'no column reference \(reference is the act that was meant, such as "inf',
        ),
        (
            jsonl([{"id": 1, "reference": ""}]),
            r'no column hypotheses \(hypotheses are a list such as \[\{"act": "inform',
        ),
        (jsonl([{"id": 1, "reference": ""}]), r'there are "id", "reference" \(--map hypotheses=COLUMN names another'),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path, content, said):
    with pytest.raises(DataError, match=said):
        read(tmp_path, content)


def test_a_cell_of_broken_json_is_refused_with_its_line(tmp_path):
    path = written(tmp_path, "run.csv", b'id,reference,hypotheses\nu1,bye,"[{""act"": "\n')
    with pytest.raises(DataError, match=rf'run.csv:2: utterance "u1": hypotheses must be a list, not text {SHAPE}'):
        read_nbest(path)


@pytest.mark.parametrize("size", [1, 2, 20_000])
def test_a_repeated_id_is_refused_with_both_lines(tmp_path, monkeypatch, size):
    monkeypatch.setattr(reading, "AT_ONCE", size)
    rows = [row(id=1), row(id=2), row(id="1"), row(id=3)]
    expected = r'run.jsonl:3: the id "1" occurs twice in system "run", first at .*run.jsonl:1 \(1 such id in all\)'
    with pytest.raises(DataError, match=expected):
        read(tmp_path, rows)
    with pytest.raises(DataError, match=r"2 such ids in all"):
        read(tmp_path, [*rows, row(id=2)])


def test_the_same_id_in_two_systems_is_fine_but_not_in_two_files_of_one(tmp_path):
    assert len(nbest([row(system="x"), row(system="y")])) == 2
    paths = [written(tmp_path, name, jsonl([row(system="x")])) for name in ("one.jsonl", "two.jsonl")]
    with pytest.raises(DataError, match=r'two.jsonl:1: the id "u1" occurs twice in system "x", first at .*one.jsonl:1'):
        read_nbest(*paths)


def test_no_file_and_no_rows_are_refused():
    with pytest.raises(DataError, match="no file to read was given"):
        read_nbest()
    with pytest.raises(DataError, match="data holds no rows"):
        nbest([])
    with pytest.raises(DataError, match=r'data: row 2 must be a dictionary; got "str"'):
        nbest([row(), "bye()"])


def test_all_columns_that_are_missing_are_told_at_once() -> None:
    with pytest.raises(DataError, match="there is no column reference") as caught:
        nbest([{"text": "a", "session": 1, "conversation": 2}])
    told = [fault.rule.partition(" (")[0] for fault in caught.value.faults]
    assert told == [
        'dialogue may be any of the columns "session", "conversation"',
        "there is no column reference",
        "there is no column hypotheses",
    ]
