"""Dialogues of the challenges as turns and dialogues for models of outcomes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from commands import Demur, runner
from demur.errors import DataError
from demur.importers.dstc import SCALE, agreement, label, read_dstc, read_dstc_table, top_label
from demur.importers.dstc_records import ActRecord, DstcTurn
from importers.dstc_folders import (
    KOREAN,
    PHONE,
    THAI,
    act,
    corpus,
    label_turn,
    log_turn,
    session_label,
    session_log,
    written,
)

CALL = "voip-0af3-20130327_190340"


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


def a_turn(*hypotheses: tuple[float, tuple[ActRecord, ...]]) -> DstcTurn:
    return DstcTurn(0, (), list(hypotheses), [], None, None)


def compact(path: Path, **changed: Any) -> Path:
    """A file of the compact form with one dialogue of three turns."""
    acts = [act("negate"), act("inform", ("food", "thai")), act("inform", ("area", "north"))]
    turns = [{"ref": acts, "slu": [[0.75, THAI], [0.25, []]]}, {"ref": [], "slu": [[0.5, []], [0.25, THAI]]}]
    asked = [["Understood?", "strongly disagree"], ["Found it?", "Agree"]]
    line = {"session": f"part/{CALL}", "dm": 0, "acoustic": 1, "success": False, "questionnaire": asked}
    path.write_text(json.dumps({**line, "turns": [*turns, {"ref": PHONE}], **changed}) + "\n")
    return path


def test_a_turn_is_labelled_by_the_types_of_its_acts_and_by_those_of_the_surest_hypothesis(tmp_path: Path) -> None:
    rows = list(read_dstc_table(compact(tmp_path / "d.jsonl"), "turns"))
    assert rows == [
        {"id": f"{CALL}/0", "dialogue": CALL, "target": "inform+negate", "prediction": "inform", "confidence": 0.75},
        {"id": f"{CALL}/1", "dialogue": CALL, "target": "null", "prediction": None, "confidence": None},
        {"id": f"{CALL}/2", "dialogue": CALL, "target": "bye+request", "prediction": None, "confidence": None},
    ]


def test_the_first_of_hypotheses_equally_sure_counts_and_the_order_of_others_does_not() -> None:
    bye, hello = (ActRecord("bye"),), (ActRecord("hello"),)
    assert top_label(a_turn((0.2, bye), (0.5, hello))) == ("hello", 0.5)
    assert top_label(a_turn((0.4, bye), (0.4, hello))) == ("bye", 0.4)
    assert top_label(a_turn((1.5, bye), (0.5, hello))) == ("bye", 0.75)
    assert top_label(a_turn((0.6, ()), (0.4, hello))) == (None, None)
    assert top_label(a_turn()) == (None, None)


def test_labels_do_not_hang_on_the_order_of_acts() -> None:
    assert label((ActRecord("inform"), ActRecord("affirm"))) == label((ActRecord("affirm"), ActRecord("inform")))


def test_a_dialogue_has_its_conditions_success_caller_and_answers_as_numbers(tmp_path: Path) -> None:
    table = read_dstc_table(compact(tmp_path / "d.jsonl"), "dialogues")
    assert list(table) == [
        {
            "dialogue": CALL,
            "group": "0af3",
            "manager": 0,
            "acoustic": 1,
            "success": False,
            "turns": 3,
            "Understood?": 1,
            "Found it?": 5,
        }
    ]
    assert table.counts == {"dialogues": 1}
    assert "answers of the questionnaire count from 1 (strongly disagree) to 6 (strongly agree)" in table.notes


def test_the_scale_goes_from_one_to_six() -> None:
    assert [agreement(answer) for answer in SCALE] == [1, 2, 3, 4, 5, 6]


def test_an_answer_off_the_scale_is_left_out_and_said(tmp_path: Path) -> None:
    asked = [["Understood?", "sort of"], ["Found it?", "agree"]]
    table = read_dstc_table(compact(tmp_path / "d.jsonl", questionnaire=asked), "dialogues")
    assert [row["Understood?"] for row in table] == [None]
    assert 'answers that are not on this scale and are left out: 1, such as "sort of"' in table.notes


def test_a_caller_whom_the_sessions_name_does_not_tell_is_unknown(tmp_path: Path) -> None:
    table = read_dstc_table(compact(tmp_path / "d.jsonl", session="call 7"), "dialogues")
    assert [row["group"] for row in table] == [None]
    assert "dialogues whose caller the session's name tells: 0 of 1" in table.notes


def test_the_challenges_own_layout_gives_the_same_kind_of_rows(tmp_path: Path) -> None:
    root = corpus(tmp_path / "data")
    turns = list(read_dstc_table(root, "turns"))
    assert [row["target"] for row in turns] == ["inform", "bye+request"] * 2
    assert [row["prediction"] for row in turns] == ["inform", None] * 2
    assert Counter(row["dialogue"] for row in turns) == {"voip-a": 2, "voip-b": 2}
    assert [row["id"] for row in turns] == [row["id"] for row in read_dstc(root)]
    dialogues = list(read_dstc_table(root, "dialogues"))
    assert dialogues[0] == {
        "dialogue": "voip-a",
        "group": None,
        "manager": 1,
        "acoustic": 0,
        "success": True,
        "turns": 2,
        "Did it understand?": 5,
    }


def test_rejected_turns_are_counted(tmp_path: Path) -> None:
    table = read_dstc_table(compact(tmp_path / "d.jsonl"), "turns")
    assert len(list(table)) == len(list(table)) == 3
    assert "turns rejected, as their surest hypothesis holds no act: 2 of 3" in table.notes


def test_a_session_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = compact(tmp_path / "d.jsonl")
    path.write_text(path.read_text() * 2)
    with pytest.raises(DataError, match=r'd\.jsonl:2: session ".*" is there twice \(also in .*d\.jsonl:1'):
        list(read_dstc_table(path, "dialogues"))


def test_dialogues_without_turns_give_no_turns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no turns"):
        list(read_dstc_table(compact(tmp_path / "d.jsonl", turns=[]), "turns"))


def test_the_command_writes_both_tables_and_outcome_fit_reads_them(inside: Demur, tmp_path: Path) -> None:
    for number in range(8):
        session = f"voip-{number % 4:04}-2013032{number}_120000"
        meant = [THAI, KOREAN, PHONE][: 2 + number % 2]
        heard = [log_turn(place, (0.75, THAI if number % 4 else PHONE)) for place in range(len(meant))]
        written(tmp_path / "data" / session / "log.json", session_log(session, *heard))
        label = session_label(session, *(label_turn(place, acts) for place, acts in enumerate(meant)))
        label["task-information"]["feedback"]["questionnaire"] = [["Understood?", SCALE[number % 6]]]
        written(tmp_path / "data" / session / "label.json", label)
    for table, told in (("turns", "20 turns of 8 dialogues"), ("dialogues", "8 dialogues")):
        done = inside("import", "dstc2", "data", "--table", table, "-o", f"{table}.jsonl")
        assert done.returncode == 0, done.stderr
        assert done.stderr.endswith(f"wrote {table}.jsonl: {told}\n")
    options = ("--outcome", "Understood?", "--features", "recall.microaverage", "--replicates", "50", "--json")
    done = inside("outcome", "fit", "turns.jsonl", "--outcomes", "dialogues.jsonl", *options)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["dialogues"], document["grouped"], document["outcome"]) == (8, True, "Understood?")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--ontology", "o.json"), "error: --ontology goes with --table lists: of turns no items are counted"),
        (("--asr", "batch"), "error: --asr goes with --table lists: turns hold no sentences"),
    ],
)
def test_options_for_lists_are_refused_with_other_tables(
    inside: Demur, tmp_path: Path, arguments: tuple[str, ...], fault: str
) -> None:
    corpus(tmp_path / "data")
    done = inside("import", "dstc2", "data", "--table", "turns", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr
