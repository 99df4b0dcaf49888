"""What comes of a study: its tables, checks, status, erasure, and the commands that read its folder."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import polars as pl
import pytest

import demur
from commands import Demur
from demur.errors import DataError, UsageError
from demur.study.checks import check_study, status_of
from demur.study.demo import SimulatedStudy, write_simulated
from demur.study.design import DIALOGUE_COLUMNS, TRIAL_COLUMNS, parse_design, read_design
from demur.study.export import StudyRecord, benchmark_svg, read_study_trials, study_tables, trials_of
from demur.study.folder import new_folder
from demur.study.input import NoisyInput, recognise
from demur.study.journal import FILE, read_events
from demur.study.messages import MESSAGES
from demur.study.presentation import of_check, of_status
from demur.study.state import StudyEvent
from demur.study.systems import Question, systems_of, texts_of_models
from study.designs import SMALL, write_small


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that simulated people have filled."""
    folder = tmp_path_factory.mktemp("filled") / "museum"
    design = new_folder(folder)
    write_simulated(folder, SimulatedStudy(folder, design, 1).run(8))
    return folder


@pytest.fixture
def copy(filled: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(filled, tmp_path / "museum")
    return tmp_path / "museum"


def test_a_dialogue_is_a_row_of_each_table_with_the_same_facts(filled: Path) -> None:
    record = StudyRecord.of(filled)
    tables = study_tables(record)
    assert tables["trials"].height == tables["dialogues"].height == len(record.counted) == 32
    assert tables["trials"].columns == [*TRIAL_COLUMNS, "wer", "completed"]
    assert tables["trials"]["order"].is_sorted()
    assert set(tables["dialogues"].columns) >= {*DIALOGUE_COLUMNS, "completed", "understood"}
    gold = tables["trials"].filter(role="gold")
    assert set(gold["subject"]) <= {"anna", "ben"}
    turns, dialogues = tables["turns"], tables["dialogues"]
    sums = turns.group_by("dialogue").len().join(dialogues, on="dialogue")
    assert (sums["len"] == sums["turns"]).all()
    responses = tables["responses"]
    with_wizards = turns.filter(pl.col("performer") == "wizard")
    assert responses.height == with_wizards.height, "the system answers every utterance of a wizard's, unseen"
    asked = dict(zip(with_wizards["id"], with_wizards["label"], strict=True))
    for row in responses.iter_rows(named=True):
        label = asked[row["id"]]
        assert row["target"] == ("out_of_scope" if label == "repeat" else label)


def test_one_round_of_training_shows_no_changes(tmp_path: Path) -> None:
    text = SMALL.replace('names = ["anna", "ben"]', 'names = ["anna", "ben", "cleo"]\nrounds = 1')
    folder = write_small(tmp_path / "small", f'{text}\n[[training]]\nheard = "hope and"\nbest = "hours"\n')
    rounds = {"anna": 1, "ben": 2}
    events = [
        StudyEvent(at=1.0, kind="trained", person=name, body={"item": 0, "choice": "hours", "seconds": 1.0})
        for name, times in rounds.items()
        for _ in range(times)
    ]
    write_simulated(folder, events)
    status = status_of(folder)
    assert [one["settled"] for one in status.wizards] == [None, True, None]
    shown = {row[0]: row[2] for row in of_status(status).tables[-1].rows}
    assert shown == {"anna": "one round, which shows no changes", "ben": "settled", "cleo": "not finished"}


@pytest.mark.parametrize("identifiers", ["hash", "drop"])
def test_people_can_be_renamed_or_left_out(filled: Path, identifiers: Any) -> None:
    record = StudyRecord.of(filled)
    tables = study_tables(record, identifiers)
    text = json.dumps({name: table.to_dicts() for name, table in tables.items()})
    assert not any(name in text for name in ("p0001", "anna", '"ben"'))
    before, after = (one["dialogues"]["group"] for one in (study_tables(record), tables))
    assert before.n_unique() == after.n_unique() == 8, "whose dialogues belong together can still be told"
    assert ("external" in tables["participants"].columns) == (identifiers == "hash")


def test_a_sound_study_passes_every_check(filled: Path) -> None:
    found = check_study(filled)
    assert found.holds
    assert len(found.findings) == 8
    assert all(one.checked for one in found.findings)


SPOILT = [
    ("UPDATE events SET body = json_set(body, '$.heard.text', 'secretly better') WHERE kind = 'heard'", "same input"),
    ("UPDATE events SET body = json_set(body, '$.given', 'x') WHERE kind = 'answered'", "same input"),
    ("UPDATE events SET body = json_set(body, '$.text', 'another text') WHERE kind = 'said'", "follow from seed"),
    ("UPDATE events SET body = json_set(body, '$.design', 'x') WHERE kind = 'started'", "never changed"),
    (
        "UPDATE events SET body = json_set(body, '$.level', 0.0, '$.performer', 'guide') WHERE kind = 'opened'",
        "met a condition twice",
    ),
    ("UPDATE events SET at = at - 6 WHERE kind = 'shown' AND dialogue IN "
     "(SELECT dialogue FROM events WHERE kind = 'paired' AND body LIKE '%\"\"%')", "answers take as long"),
    ("UPDATE events SET at = at - 6 WHERE kind = 'opened' AND body LIKE '%guide%'", "the waiting room"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule"), SPOILT)
def test_each_check_finds_what_it_is_for(copy: Path, change: str, rule: str) -> None:
    rewritten(copy, change)
    assert any(rule in one.rule for one in check_study(copy).findings if not one.holds)


def test_commands_read_the_folder_of_a_study(filled: Path, demur: Demur) -> None:
    gold = json.loads(demur("gold", str(filled), "--json", "--replicates", "50", "--no-checks").stdout)
    assert {one["performer"] for one in gold["performers"]} == {"wizard", "guide"}
    score = json.loads(demur("score", str(filled), "--json", "--replicates", "50").stdout)
    assert score["systems"][0]["system"] == "guide"
    options = ("--outcomes", str(filled), "--outcome", "understood", "--replicates", "50", "--json")
    assert demur("outcome", "fit", str(filled), *options).returncode == 0
    refused = demur("nbest", str(filled))
    assert refused.returncode == 2
    assert "this is the folder of a study" in refused.stderr


def test_a_study_that_nobody_took_part_in_says_so(tmp_path: Path, demur: Demur) -> None:
    write_small(tmp_path / "empty")
    refused = demur("gold", str(tmp_path / "empty"))
    assert "has no trials yet: no dialogue has ended" in refused.stderr
    assert "0 participants" in demur("study", "status", str(tmp_path / "empty")).stdout


def test_status_says_how_many_more(filled: Path) -> None:
    import demur

    found = demur.study_status(filled, studies=20)
    assert found.trials == 32
    assert found.plan_document["more_wizards"] == max(0, found.plan_document["subjects"] - 2)


def test_the_benchmark_graph_is_drawn(filled: Path) -> None:
    assert benchmark_svg(filled).startswith(b"<svg")


def test_erasing_one_person_leaves_the_others_and_no_trace_in_the_file(copy: Path) -> None:
    record = StudyRecord.of(copy)
    talks = [talk for talk in record.state.talks.values() if talk.participant == "p0003"]
    (copy / "audio").mkdir()
    (copy / "audio" / f"{talks[0].id}-001.wav").write_bytes(b"RIFF")
    done = demur.erase_person(copy, "p0003")
    assert done.recordings == 1
    after = StudyRecord.of(copy)
    assert "p0003" not in after.state.participants
    assert len(after.counted) == len(record.counted) - len(talks)
    assert after.state.next_name("d", 5) == record.state.next_name("d", 5), "no name is given twice"
    left = [event for event in read_events(copy) if event.person == "p0003" or event.dialogue in {t.id for t in talks}]
    assert [event.kind for event in left] == ["erased"]
    with pytest.raises(UsageError, match="no participant or wizard"):
        demur.erase_person(copy, "p0003")


def rewritten(folder: Path, change: str) -> None:
    """Change the journal behind the back of the study."""
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("DROP TRIGGER only_appended_u")
        connection.execute(change)


def test_one_wizard_alone_is_shown_by_participants_and_said_to_be_alone(copy: Path) -> None:
    rewritten(
        copy, "UPDATE events SET body = json_set(body, '$.wizard', 'anna') WHERE body LIKE '%\"wizard\":\"ben\"%'"
    )
    record = StudyRecord.of(copy)
    assert record.lone == {"wizard": "anna"}
    (found,) = demur.gold(*read_study_trials([record]), replicates=50)
    assert any("anna is the only wizard" in one for one in found.warnings)
    assert found.wizards is None
    assert set(trials_of(record)["subject"]) == set(record.state.participants)


def test_erasing_a_wizard_leaves_the_dialogues_of_participants_without_the_name(copy: Path) -> None:
    before = StudyRecord.of(copy)
    with pytest.raises(UsageError, match="still names ben: remove the name from"):
        demur.erase_person(copy, "ben")
    design = copy / "study.toml"
    design.write_text(design.read_text(encoding="utf-8").replace('"ben"', '"carla"'), encoding="utf-8")
    done = demur.erase_person(copy, "ben")
    assert done.kept == before.state.wizards["ben"].dialogues > 0
    after = StudyRecord.of(copy)
    assert after.design.digest == before.design.digest, "another wizard is no other design"
    assert len(after.counted) == len(before.counted)
    assert after.state.wizards["erased-1"].dialogues == done.kept
    assert not after.state.wizards["erased-1"].trained
    assert not any(b'ben"' in path.read_bytes() or b"/ben/" in path.read_bytes() for path in copy.glob("*"))


@pytest.mark.parametrize("spoil", ["page", "event"])
def test_what_comes_before_the_damage_of_a_journal_is_exported_on_request(copy: Path, spoil: str) -> None:
    whole = StudyRecord.of(copy)
    if spoil == "page":
        content = bytearray((copy / FILE).read_bytes())
        middle = len(content) // 2 // 4096 * 4096
        content[middle : middle + 8192] = b"\xff" * 8192
        (copy / FILE).write_bytes(content)
    else:
        rewritten(
            copy,
            "UPDATE events SET dialogue = 'd99999' WHERE kind = 'heard' AND 2 * seq > (SELECT max(seq) FROM events)",
        )
    with pytest.raises(DataError, match=r"restore the journal from a copy; demur study export --salvage"):
        demur.export_study(copy)
    done = demur.export_study(copy, salvage=True)
    rows = {Path(name).name: count for name, count in done.files.items()}
    assert 0 < rows["trials.csv"] < len(whole.counted)
    assert Path(next(iter(done.files))).parent == copy / "salvaged", "an earlier export is kept"
    assert f"these tables end with event {done.events:,}" in done.to_dict()["warnings"][0]
    assert demur.export_study(copy, salvage=True, to=copy / "again").events == done.events, "the journal is as it was"


def with_system(lines: str) -> str:
    return SMALL.replace('kind = "relevance"\npairs = "pairs.jsonl"', lines)


CONVERSATION: dict[str, Any] = {"dialogue": "d00001", "turns": [{"heard": {"text": "when open", "nbest": []}}]}
ECHO = "import json, sys; print(json.dumps({'text': json.load(sys.stdin)['turns'][-1]['heard']['text'], 'label': 'x'}))"


def test_a_study_that_has_not_begun_says_so(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small")
    found = check_study(folder)
    shown = of_check(found)
    assert shown.sentences == ("Nothing has happened in this study yet, so nothing was checked.",)
    assert {row[1] for row in shown.tables[0].rows} == {"–"}
    assert found.to_dict()["holds"] is None
    assert {one["holds"] for one in found.to_dict()["checks"]} == {None}
    assert [table.title for table in of_status(status_of(folder)).tables] == ["Conditions", "Wizards"]


def test_checks_that_had_nothing_to_check_are_named(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "small")
    design = read_design(folder)
    write_simulated(folder, [StudyEvent(at=1.0, kind="started", body={"design": design.digest})])
    shown = of_check(check_study(folder))
    assert shown.sentences[0].startswith("1 of 8 checks hold; nothing to check yet: wizards and systems had")
    assert [row[1] for row in shown.tables[0].rows] == ["–"] * 7 + ["yes"]


def test_a_wizard_who_only_understands_may_not_make_it_out(tmp_path: Path) -> None:
    """The system asks back then; on its own it never does, and its noise is fitted on what it says by itself."""
    text = f'{SMALL}\n[[responses]]\nid = "again"\ntext = "Could you say that again?"\nrepair = true\n'
    folder = write_small(tmp_path / "small", text)
    systems = systems_of(read_design(folder), folder)
    assert set(systems["guide"].texts) == {"hours", "price", "again"}
    assert texts_of_models(systems) == ["We open at 10 am.", "price it is"]
    answer = systems["guide"].answer({**CONVERSATION, "understood": "again"})
    assert (answer.text, answer.label) == ("Could you say that again?", "again")


def command(code: str) -> str:
    return f'kind = "command"\ntimeout = 5.0\ncommand = {json.dumps([sys.executable, "-c", code])}'


@pytest.mark.parametrize(
    ("lines", "text", "failed"),
    [
        (command(ECHO), "when open", ""),
        (command("print('Yes.')"), "Yes.", ""),
        (command("pass"), None, ""),
        (command("import sys; sys.exit(3)"), None, "ended with 3"),
        (command("print('{broken')"), None, "gave what cannot be read"),
        (command("import time; time.sleep(60)").replace("5.0", "0.2"), None, "took more than 0.2 seconds"),
        ('kind = "command"\ncommand = ["no-such-program-here"]', None, "cannot be started"),
        ('kind = "python"\ncall = "bot:answer"', "heard when open", ""),
        ('kind = "python"\ncall = "bot:broken"', None, "raised ZeroDivisionError"),
        ('kind = "python"\ncall = "bot:number"', None, "returned what cannot be used"),
        ('kind = "python"\ntimeout = 0.1\ncall = "bot:slow"', None, "took more than 0.1 seconds"),
        ('kind = "relevance"\npairs = "pairs.jsonl"', "We open at 10 am.", ""),
    ],
)
def test_systems_answer_or_say_why_not(tmp_path: Path, lines: str, text: str | None, failed: str) -> None:
    folder = write_small(tmp_path / "small", with_system(lines))
    (folder / "bot.py").write_text(
        "import time\n"
        "def answer(conversation): return {'text': 'heard ' + conversation['turns'][-1]['heard']['text']}\n"
        "def broken(conversation): return 1 / 0\n"
        "def number(conversation): return 7\n"
        "def slow(conversation): time.sleep(1)\n",
        encoding="utf-8",
    )
    sys.modules.pop("bot", None)
    (system,) = systems_of(read_design(folder), folder).values()
    reply = Question(system, CONVERSATION, "d00001", 1).ask()
    system.close()
    assert reply.text == text
    assert failed in reply.failed
    assert bool(failed) == bool(reply.failed)


class _Bot(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status = {"/none": 204, "/broken": 500}.get(self.path, 200)
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.wfile.write(json.dumps({"text": given["turns"][-1]["heard"]["text"], "confidence": 0.5}).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def bot() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Bot)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "text", "failed"),
    [("/ok", "when open", ""), ("/none", None, ""), ("/broken", None, "answered with status 500")],
)
def test_systems_answer_over_http(tmp_path: Path, bot: str, path: str, text: str | None, failed: str) -> None:
    folder = write_small(tmp_path / "small", with_system(f'kind = "http"\naddress = "{bot}{path}"'))
    (system,) = systems_of(read_design(folder), folder).values()
    reply = Question(system, CONVERSATION, "d00001", 1).ask()
    assert (reply.text, reply.failed) == (text, failed)


def test_the_channel_errs_at_the_level_and_gives_the_same_again() -> None:
    design = parse_design(SMALL.replace("levels = [0.0, 0.4]", "levels = [0.0, 0.5]"))
    one, other = NoisyInput(design), NoisyInput(design)
    text = "what does a ticket cost and when do you open today"
    heard = [one.hear(text, 0.5, "d00001", turn) for turn in range(60)]
    assert heard == [other.hear(text, 0.5, "d00001", turn) for turn in range(60)]
    assert 0.4 < sum(about["errors"] for _, about in heard) / sum(about["words"] for _, about in heard) < 0.6
    assert all(len(given["nbest"]) <= 2 for given, _ in heard)
    clean, about = one.hear("When do you OPEN?", 0.0, "d00001", 1)
    assert (clean["text"], about["wer"]) == ("when do you open", 0.0)


@pytest.mark.parametrize(
    ("code", "texts", "failed"),
    [
        ("print('when open')", ["when open"], ""),
        ("import sys; print(open(sys.argv[1], 'rb').read(4).decode(), sys.argv[2])", ["RIFF 0.4"], ""),
        ("print('[{\"text\": \"a\", \"confidence\": 0.7}, \"b\", \"c\"]')", ["a", "b"], ""),
        ("raise SystemExit(2)", [], "ended with 2"),
        ("print('{\"x\": 1}')", [], "JSON without texts"),
    ],
)  # fmt: skip
def test_a_recogniser_hears_recordings(tmp_path: Path, code: str, texts: list[str], failed: str) -> None:
    command = json.dumps([sys.executable, "-c", code, "{wav}", "{level}"])
    design = parse_design(SMALL.replace("nbest = 2", f'nbest = 2\nby = "speech"\nrecogniser = {command}'))
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    heard, about = recognise(design, tmp_path, "a.wav", 0.4)
    assert [one["text"] for one in heard["nbest"]] == texts
    assert failed in about.get("failed", "")


def test_wizards_of_understanding_leave_the_rest_to_the_system() -> None:
    lines = 'kind = "wizard"\ncomponent = "understanding"\nsystem = "guide"'
    design = parse_design(SMALL.replace('kind = "wizard"', lines, 1))
    assert design.performer("wizard").system == "guide"
    with pytest.raises(DataError, match="must name the system that does the rest"):
        parse_design(SMALL.replace('kind = "wizard"', lines.replace("guide", "nobody"), 1))


def test_every_kind_of_message_is_known_by_one_role() -> None:
    kinds = [kind for union in MESSAGES.values() for kind in msgspec.json.schema(union)["discriminator"]["mapping"]]
    assert len(set(kinds)) == len(kinds) == 14
