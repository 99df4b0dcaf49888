import gzip
import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from demur.core.io.sources import compression_of, lines
from demur.core.io.writing import as_lines, check_rows_file, write_rows
from demur.errors import DataError, UsageError
from demur.importers.dstc import holds_dialogues, read_dstc
from importers.dstc_folders import (
    KOREAN,
    ONTOLOGY,
    THAI,
    act,
    arcs,
    corpus,
    label_turn,
    log_turn,
    session_label,
    session_log,
    written,
)

DSTC2 = Path(__file__).parents[3] / "shared" / "data" / "dstc2"
needs_dstc2 = pytest.mark.skipif(not DSTC2.is_dir(), reason="no ../shared/data/dstc2 beside the project")

COMPACT: dict[str, Any] = {
    "session": "part-1/voip-a",
    "dm": 1,
    "acoustic": 0,
    "success": True,
    "questionnaire": [["Did it understand?", "agree"]],
    "turns": [
        {
            "slu": [[0.75, THAI], [0.25, KOREAN]],
            "asr": [[-0.5, "thai food"]],
            "batch_asr": [[-0.25, "tie food"]],
            "cnet": [
                [["<s>", 0.0]],
                [["tie", math.log(0.25)], ["thai", math.log(0.5)], ["!null", math.log(0.125)]],
                [["food", math.log(0.75)], ["!null", math.log(0.125)]],
            ],
            "ref": THAI,
            "transcription": "thai food",
        }
    ],
}


def rows(source: Path, **options: Any) -> list[dict[str, Any]]:
    return list(read_dstc(source, **options))


def dialogue(root: Path, log: dict[str, Any], label: dict[str, Any] | None) -> Path:
    """A folder with one dialogue."""
    written(root / "s" / "log.json", log)
    if label is not None:
        written(root / "s" / "label.json", label)
    written(root / "ontology.json", ONTOLOGY)
    return root


def compact(path: Path, *dialogues: dict[str, Any]) -> Path:
    text = "".join(json.dumps(one) + "\n" for one in dialogues or (COMPACT,)).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_a_folder_gives_a_row_for_each_turn(tmp_path: Path, ending: str) -> None:
    found = read_dstc(corpus(tmp_path, ending=ending))
    every = list(found)
    assert [row["id"] for row in every] == ["voip-a/0", "voip-a/1", "voip-b/0", "voip-b/1"]
    assert found.counts == {"dialogues": 2}
    network = every[0].pop("cnet")
    assert every[0] == {
        "id": "voip-a/0",
        "dialogue": "voip-a",
        "reference": ["inform(food=thai)"],
        "hypotheses": [
            {"items": ["inform(food=thai)"], "confidence": 0.75},
            {"items": ["inform(food=korean)"], "confidence": 0.25},
        ],
        "asr": [{"text": "thai food", "logprob": -0.5}],
        "text": "thai food",
        "dialogue_manager": 1,
        "acoustic_condition": 0,
        "success": True,
        "turns": 2,
        "Did it understand?": "agree",
    }
    assert [[(arc["word"], pytest.approx(arc["confidence"])) for arc in place] for place in network] == [
        [("thai", 0.5), ("tie", 0.25), ("", 0.125)],
        [("food", 0.75), ("", 0.125)],
    ]


def test_turns_are_matched_by_their_index_however_they_are_ordered(tmp_path: Path) -> None:
    second = rows(corpus(tmp_path))[1]
    assert second["reference"] == ["bye", "request=phone"]
    assert second["text"] == "phone bye"


def test_a_list_that_sums_to_over_one_is_normalised_and_said_so(tmp_path: Path) -> None:
    found = read_dstc(corpus(tmp_path))
    assert [hypothesis["confidence"] for hypothesis in list(found)[1]["hypotheses"]] == [0.25, 0.75]
    assert "lists of hypotheses that summed to over 1, normalised: 2" in found.notes


def test_the_batch_recognisers_sentences_are_kept_on_request(tmp_path: Path) -> None:
    assert rows(corpus(tmp_path), asr="batch")[0]["asr"] == [{"text": "tie food", "logprob": -0.25}]


def test_slots_with_one_value_do_not_count_and_the_note_says_which_do(tmp_path: Path) -> None:
    root = corpus(tmp_path / "a" / "b", ontology=False)
    written(tmp_path / "ontology_far.json", ONTOLOGY)
    found = read_dstc(root)
    assert next(iter(found))["reference"] == ["inform(food=thai)"]
    assert "items of the slots with more than one value in ontology_far.json are kept: area, food" in found.notes


def test_without_an_ontology_every_slot_counts_and_a_note_says_so(tmp_path: Path) -> None:
    found = read_dstc(corpus(tmp_path / "a" / "b" / "c", ontology=False))
    assert next(iter(found))["reference"] == ["inform(food=thai)", "inform(type=restaurant)"]
    assert any(note.startswith("no ontology was found: items of every slot are kept") for note in found.notes)


def test_a_named_ontology_goes_before_one_that_is_found(tmp_path: Path) -> None:
    other = written(tmp_path / "other" / "o.json", {"informable": {"type": ["restaurant", "pub"]}})
    assert rows(corpus(tmp_path / "data"), ontology=other)[0]["reference"] == ["inform(type=restaurant)"]


def test_several_ontologies_are_an_error_that_lists_them(tmp_path: Path) -> None:
    written(corpus(tmp_path) / "ontology_other.json", ONTOLOGY)
    with pytest.raises(DataError, match=r"several ontologies: ontology_other.json, ontology_test.json \(name one with"):
        read_dstc(tmp_path)


def test_what_a_turn_lacks_is_not_made_up(tmp_path: Path) -> None:
    bare = {"turn-index": 0, "input": {}}
    label = {"session-id": "s", "turns": [{"turn-index": 0, "dialog-acts": [act("bye")]}]}
    found = read_dstc(dialogue(tmp_path, {"session-id": "s", "turns": [bare]}, label))
    assert list(found) == [{"id": "s/0", "dialogue": "s", "reference": ["bye"], "hypotheses": [], "turns": 1}]
    assert "turns without any hypothesis list: 1 of 1" in found.notes
    assert "no turn has sentences of the recogniser asked for" in found.notes


def test_hypotheses_may_be_called_dialog_acts(tmp_path: Path) -> None:
    turn = {"turn-index": 0, "input": {"live": {"slu-hyps": [{"dialog-acts": KOREAN, "score": 0.5}]}}}
    (row,) = rows(dialogue(tmp_path, session_log("s", turn), session_label("s", label_turn(0, THAI))))
    assert row["hypotheses"] == [{"items": ["inform(food=korean)"], "confidence": 0.5}]


def test_values_that_are_numbers_are_texts_in_items(tmp_path: Path) -> None:
    label = session_label("s", label_turn(0, [act("inform", ("food", 5)), act("inform", ("area", None))]))
    (row,) = rows(dialogue(tmp_path, session_log("s", log_turn(0)), label))
    assert row["reference"] == ["inform(area)", "inform(food=5)"]


def test_a_network_in_which_nothing_was_said_has_one_silent_place(tmp_path: Path) -> None:
    silence = [{"arcs": []}, {"arcs": arcs(("<s>", 1.0))}, {"arcs": arcs(("!null", 1.0), ("</s>", 1.0))}]
    log = session_log("s", log_turn(0, batch={"cnet": silence}))
    (row,) = rows(dialogue(tmp_path, log, session_label("s", label_turn(0, []))))
    assert row["cnet"] == [[{"word": "", "confidence": 1.0}]]


def test_the_likeliest_word_of_a_place_stays_however_unlikely(tmp_path: Path) -> None:
    place = {"arcs": arcs(("thai", 1e-5), ("tie", 1e-6))}
    log = session_log("s", log_turn(0, batch={"cnet": [place]}))
    (row,) = rows(dialogue(tmp_path, log, session_label("s", label_turn(0, []))))
    assert row["cnet"] == [[{"word": "thai", "confidence": pytest.approx(1e-5)}]]


def test_words_of_a_place_that_sum_to_over_one_are_normalised(tmp_path: Path) -> None:
    place = {"arcs": arcs(("thai", 1.0), ("tie", 1.0))}
    log = session_log("s", log_turn(0, batch={"cnet": [place]}))
    (row,) = rows(dialogue(tmp_path, log, session_label("s", label_turn(0, []))))
    assert row["cnet"] == [[{"word": "thai", "confidence": 0.5}, {"word": "tie", "confidence": 0.5}]]


@pytest.mark.parametrize("name", ["train.jsonl", "train.jsonl.gz"])
def test_the_compact_form_gives_the_rows_of_the_original(tmp_path: Path, name: str) -> None:
    original = rows(corpus(tmp_path, "part-1/voip-a"))[0]
    (row,) = rows(compact(tmp_path / name))
    assert row.pop("turns") == 1
    del original["turns"]
    assert row.keys() == original.keys()
    assert row.pop("cnet") == [
        [{**arc, "confidence": pytest.approx(arc["confidence"])} for arc in place] for place in original.pop("cnet")
    ]
    assert row == original
    assert rows(tmp_path / name, asr="batch")[0]["asr"] == [{"text": "tie food", "logprob": -0.25}]


def test_the_compact_form_may_be_compressed_with_zstd(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl.zst"
    write_rows(path, [COMPACT])
    assert holds_dialogues(path)
    assert rows(path) == rows(compact(tmp_path / "train.jsonl"))


def test_going_through_the_rows_twice_gives_the_same_rows_and_notes(tmp_path: Path) -> None:
    found = read_dstc(corpus(tmp_path))
    first, notes = list(found), found.notes
    assert list(found) == first
    assert found.notes == notes
    assert found.counts == {"dialogues": 2}


def test_progress_is_told_by_the_dialogue(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    list(read_dstc(corpus(tmp_path), step=lambda what, done, total: heard.append((what, done, total))))
    assert heard == [("dialogues", 1, 2), ("dialogues", 2, 2)]


def test_a_list_of_sessions_says_which_are_read(tmp_path: Path) -> None:
    corpus(tmp_path / "data", "p/voip-a", "p/voip-b", "q/voip-c")
    listed = tmp_path / "scripts" / "config" / "some.flist"
    listed.parent.mkdir(parents=True)
    listed.write_text("q/voip-c\n\np/voip-a\n")
    assert [row["dialogue"] for row in rows(listed)][::2] == ["voip-c", "voip-a"]


def test_a_list_found_in_the_folder_is_kept_to_and_the_rest_counted(tmp_path: Path) -> None:
    (corpus(tmp_path) / "files.flist").write_text("part-2/voip-b\n")
    found = read_dstc(tmp_path)
    assert {row["dialogue"] for row in found} == {"voip-b"}
    assert found.notes[0] == "dialogues left out because files.flist does not list them: 1"


def test_of_several_lists_none_is_preferred(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (corpus(tmp_path) / f"{name}.flist").write_text("part-2/voip-b\n")
    found = read_dstc(tmp_path)
    assert len(list(found)) == 4
    assert "several lists of sessions (a.flist, b.flist); name one" in found.notes[0]


def test_a_log_stands_for_its_dialogue(tmp_path: Path) -> None:
    assert len(rows(corpus(tmp_path) / "part-1" / "voip-a" / "log.json")) == 2


def test_labels_may_lie_in_a_folder_of_their_own_and_are_found_by_session(tmp_path: Path) -> None:
    expected = rows(corpus(tmp_path / "logs"))
    for number, path in enumerate(sorted((tmp_path / "logs").rglob("label.json"), reverse=True)):
        (tmp_path / "labels" / str(number)).mkdir(parents=True)
        path.rename(tmp_path / "labels" / str(number) / "label.json")
    assert rows(tmp_path / "logs", labels=tmp_path / "labels") == expected
    written(tmp_path / "logs" / "new" / "log.json", session_log("new", log_turn(0)))
    with pytest.raises(DataError, match=r'new/log.json: session "new" has no label file in .*matched by session-id'):
        rows(tmp_path / "logs", labels=tmp_path / "labels")


def test_labels_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    corpus(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"`labels` .*nowhere: there is no such folder"):
        read_dstc(tmp_path / "data", labels=tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"there is no label.json or label.json.gz in it, at any depth"):
        read_dstc(tmp_path / "data", labels=tmp_path / "empty")
    with pytest.raises(UsageError, match=r"x.jsonl holds its references itself"):
        read_dstc(compact(tmp_path / "x.jsonl"), labels=tmp_path / "data")
    written(tmp_path / "data" / "again" / "label.json", session_label("voip-a"))
    with pytest.raises(DataError, match=r'part-1/voip-a/label.json: session "voip-a" is there twice \(also in .*again'):
        read_dstc(tmp_path / "data", labels=tmp_path / "data")


def without_index(turn: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name != "turn-index"}


ONE_LOG, ONE_LABEL = session_log("s", log_turn(0)), session_label("s", label_turn(0, THAI))


@pytest.mark.parametrize(
    ("log", "label", "fault"),
    [
        (ONE_LOG, None, r"s/log.json has neither label.json nor label.json.gz beside it \(put the labels"),
        (
            session_log("s", log_turn(0), log_turn(7)),
            ONE_LABEL,
            r"s/log.json: the turn with turn-index 7 is not in label.json \(turns of a log and its labels are matched",
        ),
        (
            ONE_LOG,
            session_label("s", label_turn(0, THAI), label_turn(3, THAI)),
            r"s/label.json: the turn with turn-index 3 is not in log.json",
        ),
        (
            session_log("s", log_turn(0), without_index(log_turn(1))),
            ONE_LABEL,
            r"s/log.json: the turn in place 2 has no turn-index \(turns .*never by position\)",
        ),
        (
            ONE_LOG,
            session_label("s", label_turn(0, THAI), label_turn(0, THAI)),
            r"s/label.json: turn-index 0 is there twice",
        ),
        (
            ONE_LOG,
            session_label("other", label_turn(0, THAI)),
            r's/label.json is of session "other", but the log beside it of "s" \(put each label file',
        ),
        (
            ONE_LOG,
            session_label("s", {"turn-index": 0, "semantics": {"cam": "bye()"}}),
            r"s/label.json: turn 0 has no reference: neither semantics.json nor dialog-acts \(only labelled",
        ),
        (
            session_log("s", log_turn(0, ("high", THAI))),  # type: ignore[arg-type]
            ONE_LABEL,
            r"s/log.json is not as the challenge writes it: Expected `float`, got `str` - at `\$.turns\[0\].input.live",
        ),
        ({"turns": []}, ONE_LABEL, r"s/log.json is not as the challenge writes it: .*missing required .*`session-id`"),
        (
            session_log("s", log_turn(0, batch={"cnet": [{"arcs": [{"word": "thai", "score": 0.5}]}]})),
            ONE_LABEL,
            r"s/log.json: turn 0: a word's score must be the natural logarithm of a probability; got 0.5",
        ),
        (
            session_log("s", log_turn(0, (1.0, [{"act": "inform", "slots": [[None, None]]}]))),
            ONE_LABEL,
            r"s/log.json: turn 0: a slot must have a name or a value",
        ),
        (session_log("s"), session_label("s"), r"holds no turns"),
    ],
)
def test_a_fault_names_the_file_the_turn_and_the_fix(
    tmp_path: Path, log: dict[str, Any], label: dict[str, Any] | None, fault: str
) -> None:
    with pytest.raises(DataError, match=fault):
        rows(dialogue(tmp_path, log, label))


def break_json(root: Path) -> None:
    path = root / "part-1" / "voip-a" / "log.json"
    path.write_text(path.read_text()[:-20])


def repeat_key(root: Path) -> None:
    path = root / "part-1" / "voip-a" / "log.json"
    path.write_text(re.sub(r'("score": [-0-9.e]+)', r'\1, "score": 0.5', path.read_text(), count=1))


def cut_gzip(root: Path) -> None:
    path = root / "part-1" / "voip-a" / "label.json"
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])


def repeat_session(root: Path) -> None:
    for name in ("log.json", "label.json"):
        (root / "part-3").mkdir(exist_ok=True)
        (root / "part-3" / name).write_bytes((root / "part-1" / "voip-a" / name).read_bytes())


def list_a_stranger(root: Path) -> None:
    (root / "files.flist").write_text("part-1/voip-a\npart-9/voip-z\n")


def list_nothing(root: Path) -> None:
    (root / "files.flist").write_text("\n")


def spoil_ontology(root: Path) -> None:
    written(root / "ontology_test.json", {"requestable": []})


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (repeat_key, r'part-1/voip-a/log.json has the key "score" 2 times'),
        (break_json, r"part-1/voip-a/log.json is not JSON: .*truncated.* \(copy or unpack it again\)"),
        (cut_gzip, r"part-1/voip-a/label.json is cut off or damaged"),
        (repeat_session, r'part-3/log.json: session "voip-a" is there twice \(also in .*part-1/voip-a/log.json; leave'),
        (list_a_stranger, r'files.flist:2: session "part-9/voip-z" has no log.json or log.json.gz \(looked in '),
        (list_nothing, r"files.flist lists no sessions"),
        (
            spoil_ontology,
            r"ontology_test.json is not as the challenge writes it: .*missing required field `informable`",
        ),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, damage: Callable[[Path], None], fault: str) -> None:
    damage(corpus(tmp_path))
    with pytest.raises(DataError, match=fault):
        rows(tmp_path)


def test_an_ontology_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.json cannot be read: No such file"):
        read_dstc(corpus(tmp_path), ontology=tmp_path / "nowhere.json")


def test_a_fault_in_the_compact_form_names_the_line(tmp_path: Path) -> None:
    path = compact(tmp_path / "x.jsonl", COMPACT, {"session": "b", "turns": [{"slu": []}]})
    with pytest.raises(DataError, match=r"x.jsonl:2 is not as the challenge writes it: .*missing required field `ref`"):
        rows(path)
    with pytest.raises(DataError, match=r'x.jsonl:2: session "voip-a" is there twice \(also in .*x.jsonl:1'):
        rows(compact(path, COMPACT, COMPACT))
    path.write_text(json.dumps(COMPACT) + "\n{")
    with pytest.raises(DataError, match=r"x.jsonl:2 is not JSON: .*truncated"):
        rows(path)


def test_a_folder_or_file_of_something_else_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "archive.tar.gz").write_bytes(b"\x1f\x8b")
    looked = r"holds no dialogues of DSTC2 or DSTC3 \(looked for log.json or log.json.gz at any depth, a .flist"
    with pytest.raises(DataError, match=looked):
        read_dstc(tmp_path)
    with pytest.raises(DataError, match=looked + ".*; unpack archives"):
        read_dstc(tmp_path / "archive.tar.gz")
    with pytest.raises(DataError, match=r"nowhere does not exist \(name the folder"):
        read_dstc(tmp_path / "nowhere")


def test_dialogues_of_the_challenge_are_recognised(tmp_path: Path) -> None:
    root = corpus(tmp_path / "root")
    (root / "files.flist").write_text("part-1/voip-a\n")
    named = compact(tmp_path / "train.jsonl.gz")
    for path in (root, root / "part-1", root / "part-1" / "voip-a", root / "files.flist", named):
        assert holds_dialogues(path)
    assert holds_dialogues(root / "part-1" / "voip-a" / "log.json")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b'{"id": 1}\n', b'["session", "turns"]\n', b"session,turns", b"\x1f\x8b"]
)
def test_other_files_are_not_taken_for_dialogues_of_the_challenge(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    (tmp_path / "x.csv").write_bytes(json.dumps(COMPACT).encode())
    for name in ("x.jsonl", "x.csv", "nowhere.jsonl", "."):
        assert not holds_dialogues(tmp_path / name)


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.zst", "odd [1].jsonl.zst"])
def test_rows_are_written_as_lines_compressed_as_the_name_says(tmp_path: Path, name: str) -> None:
    given = [{"id": "a", "text": 'quo"te, tab\t, é, \x01, line\n'}, {"id": "b", "text": ""}]
    path = tmp_path / "new" / name
    assert write_rows(path, given) == 2
    compression = compression_of(path.read_bytes()[:4])
    assert compression == {".jsonl": "", ".gz": "gzip", ".zst": "zstd"}[path.suffix]
    assert b"".join(lines(path, compression, name)) == b"".join(as_lines(given))
    again = tmp_path / name
    write_rows(again, given)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_rows_that_fail_midway_leave_no_file(tmp_path: Path, ending: str) -> None:
    def failing() -> Iterable[dict[str, str]]:
        yield {"id": "a"}
        raise DataError("is damaged", where="b")

    with pytest.raises(DataError, match="b is damaged"):
        write_rows(tmp_path / f"x.jsonl{ending}", failing())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_rows_cannot_go_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape('must end in one of .jsonl .jsonl.gz .jsonl.zst; got "x.csv"')):
        check_rows_file(tmp_path / "x.csv")
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(UsageError, match="this is a directory"):
        check_rows_file(tmp_path / "x.jsonl")


@pytest.fixture(scope="module")
def same_dialogues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lines of the compact form that hold the dialogues which are there in the original form too."""
    sessions = {path.parent.name.encode() for path in (DSTC2 / "original").rglob("log.json*")}
    lines = gzip.decompress((DSTC2 / "dstc2_train_nbest.jsonl.gz").read_bytes()).splitlines(keepends=True)
    folder = tmp_path_factory.mktemp("dstc2")
    (folder / "ontology_dstc2.json").write_bytes((DSTC2 / "ontology_dstc2.json").read_bytes())
    (folder / "same.jsonl").write_bytes(b"".join(line for line in lines if line.split(b'"', 4)[3][11:] in sessions))
    return folder / "same.jsonl"


@needs_dstc2
@pytest.mark.parametrize("asr", ["live", "batch"])
def test_original_dialogues_give_the_rows_of_the_compact_ones(same_dialogues: Path, asr: Any) -> None:
    original = {row["id"]: row for row in read_dstc(DSTC2 / "original", asr=asr)}
    small = {row["id"]: row for row in read_dstc(same_dialogues, asr=asr)}
    assert len(original) == len(small) == 193
    networks = {name: (row.pop("cnet"), small[name].pop("cnet")) for name, row in original.items()}
    assert small == original
    for ours, theirs in networks.values():
        assert shares(ours) == pytest.approx(shares(theirs), abs=1e-3)  # scores have four decimals in the compact form


def shares(network: list[list[dict[str, Any]]]) -> dict[tuple[int, str], float]:
    return {(number, arc["word"]): arc["confidence"] for number, place in enumerate(network) for arc in place}
