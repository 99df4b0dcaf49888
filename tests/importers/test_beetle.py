from itertools import product

import polars as pl
import pytest

from demur.errors import DataError
from demur.importers.beetle import DIAGNOSIS, LABELS, SPEECH_ACTS, beetle_label, beetle_responses
from demur.importers.reading import read_log
from demur.returns.jobs import classes
from demur.returns.table import responses

FIELDS = ("consistent", *DIAGNOSIS)


def log(speech_act="answer", **fields):
    return {"speech_act": speech_act, "matched": [], "contradictory": [], "not_mentioned": []} | fields


@pytest.mark.parametrize(
    ("diagnosis", "label"),
    [
        ({"matched": ["closed path"]}, "correct"),
        ({"matched": ["closed path"], "extra": ["bulb"]}, "correct"),
        ({"matched": ["closed path"], "not_mentioned": ["battery"]}, "pc_incomplete"),
        ({"matched": ["closed path"], "contradictory": ["open"]}, "contradictory"),
        ({"matched": ["closed path"], "consistent": False}, "contradictory"),
        ({"contradictory": ["open"], "not_mentioned": ["battery"]}, "contradictory"),
        ({"not_mentioned": ["closed path", "battery"]}, "irrelevant"),
        ({"not_mentioned": ["closed path"], "extra": ["bulb"]}, "irrelevant"),
        ({}, "irrelevant"),
    ],
)
def test_an_answer_is_labelled_by_the_first_rule_that_fits(diagnosis, label):
    assert beetle_label("answer", **diagnosis) == label


def test_only_answers_are_diagnosed():
    for values in product((False, True), repeat=len(FIELDS)):
        diagnosis = dict(zip(FIELDS, values, strict=True))
        assert beetle_label("help request", **diagnosis) == "non_content"
        assert beetle_label("social", **diagnosis) == "non_content"
        assert beetle_label("uninterpretable", **diagnosis) is None


def test_every_answer_has_a_label_of_the_scheme_and_extra_parts_never_matter():
    seen = set()
    for consistent, matched, contradictory, not_mentioned in product((False, True), repeat=4):
        fields = {"consistent": consistent, "matched": matched, "contradictory": contradictory}
        labels = {beetle_label("answer", **fields, not_mentioned=not_mentioned, extra=extra) for extra in (False, True)}
        assert len(labels) == 1
        seen |= labels
    assert seen == set(LABELS) - {"non_content"}


@pytest.mark.parametrize("written", ["Help Request", "help_request", " help-request "])
def test_speech_acts_are_read_however_they_are_joined(written):
    assert beetle_label(written) == "non_content"


def test_an_unknown_speech_act_is_refused_with_those_there_are():
    with pytest.raises(
        DataError, match=r'speech_act must be a speech act of BEETLE II; got "greeting".*uninterpretable'
    ):
        beetle_label("greeting")


def test_logs_become_responses_that_are_judged_with_rejected_ones_unanswered():
    logs = [
        log(id="1", dialogue="d1", target="correct", matched=["path"]),
        log(id="2", dialogue="d1", target="contradictory", matched=["path"], not_mentioned=["battery"]),
        log("uninterpretable", id="3", dialogue="d2", target="irrelevant"),
        log("social", id="4", dialogue="d2", target="non_content"),
    ]
    table = beetle_responses(logs)
    assert table.columns == ["id", "target", "dialogue", "prediction"]
    assert table["prediction"].to_list() == ["correct", "pc_incomplete", None, "non_content"]
    judged = responses(table).frame
    assert judged["answered"].to_list() == [True, True, False, True]
    assert judged["right"].to_list() == [True, False, False, True]
    assert judged["dialogue"].to_list() == ["d1", "d1", "d2", "d2"]


@pytest.mark.parametrize(
    ("something", "nothing"),
    [(["a"], []), ("a part", ""), ("a part", " "), ("yes", "no"), (True, False), (2, 0), (1.0, 0.0), ('["a"]', "[]")],
)
def test_a_field_may_hold_parts_counts_or_yes_and_no(something, nothing):
    missing = log(matched=something, contradictory=nothing, not_mentioned=something)
    complete = log(matched=something, contradictory=nothing, not_mentioned=nothing)
    contradicted = log(matched=something, contradictory=something, not_mentioned=nothing)
    found = beetle_responses([missing, complete, contradicted])["prediction"].to_list()
    assert found == ["pc_incomplete", "correct", "contradictory"]


@pytest.mark.parametrize(
    ("written", "label"),
    [("consistent", "correct"), ("Inconsistent", "contradictory"), ("no", "contradictory"), ("", "correct")],
)
def test_consistency_is_read_as_word_or_as_yes_and_no(written, label):
    assert beetle_responses([log(matched=["x"], consistency=written)])["prediction"].to_list() == [label]


def test_columns_may_be_called_otherwise():
    frame = pl.DataFrame(
        {"Speech Act": ["answer"], "found": [1], "contradictory": [0], "not-mentioned": [0], "gold": ["x"]}
    )
    table = beetle_responses(frame, columns={"matched": "found"})
    assert table.to_dicts() == [{"target": "x", "prediction": "correct"}]


def test_the_table_agrees_with_the_function_on_every_log():
    logs = [
        {"speech_act": act, "consistency": consistent, **dict(zip(DIAGNOSIS, values, strict=True))}
        for act in SPEECH_ACTS
        for consistent in (False, True)
        for values in product((False, True), repeat=len(DIAGNOSIS))
        if act != "answer" or not consistent or any(values)
    ]
    one_by_one = [
        beetle_label(one["speech_act"], consistent=one["consistency"], **{field: one[field] for field in DIAGNOSIS})
        for one in logs
    ]
    assert beetle_responses(logs)["prediction"].to_list() == one_by_one


@pytest.mark.parametrize(
    ("logs", "fault"),
    [
        ([log("social"), log()], r"data: row 2: an answer must have something in its diagnosis"),
        ([log("social"), log("answers")], r'row 2: speech_act must be a speech act.*got "answers".*"answer"'),
        ([log("social"), log(None)], r"row 2: speech_act must be a speech act"),
        ([log("social"), log(matched=["x"], consistency="partly")], r'row 2: consistency must be.*got "partly"'),
        ([{"speech_act": "answer", "matched": 1}], r'there is no column "contradictory".*--map contradictory='),
        ([], r"holds no rows"),
    ],
)
def test_bad_logs_are_refused_with_their_place(logs, fault):
    with pytest.raises(DataError, match=fault):
        beetle_responses(logs)


def test_a_log_is_recognised_and_read_wherever_a_log_is(tmp_path):
    path = tmp_path / "tutor.jsonl"
    logs = [
        log(id="1", dialogue="d1", target="correct", matched=["path"]),
        log(id="2", dialogue="d1", target="correct", matched=["path"], not_mentioned=["battery"]),
        log("uninterpretable", id="3", dialogue="d1", target="irrelevant"),
    ]
    pl.DataFrame(logs).write_ndjson(path)
    found = classes(path, replicates=50)
    (report,) = found
    assert (report.confusion.n, float(report.confusion.rejected)) == (3, 1)
    assert any("read as logs of the BEETLE II tutor" in note for note in found.notes)
    path.write_text('{"speech_act": "hello", "matched": [], "contradictory": [], "not_mentioned": []}\n')
    with pytest.raises(DataError, match=r"tutor\.jsonl: row 1: speech_act must be a speech act of BEETLE II"):
        classes(path)


def test_an_import_names_the_columns_that_a_log_lacks(tmp_path):
    path = tmp_path / "tutor.csv"
    path.write_text("id,Speech-Act,contradictory\n1,answer,no\n")
    with pytest.raises(
        DataError, match=r"tutor.csv: is not a log of BEETLE II: it has no columns matched, not_mention"
    ):
        read_log("beetle", [path], {})


def test_utterances_that_are_rejected_are_counted_where_there_are_some(tmp_path):
    path = tmp_path / "tutor.jsonl"
    for logs, said in (([log(matched=["x"])], 0), ([log("uninterpretable")], 1)):
        pl.DataFrame([{"id": "1", **one} for one in logs]).write_ndjson(path)
        notes = [note for note in read_log("beetle", [path], {}).notes if "uninterpretable" in note]
        assert notes == ["1 uninterpretable utterance read as rejected"][:said]
