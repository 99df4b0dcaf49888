"""`demur add`, `demur runs` and `demur rm`: what they print, ask and refuse."""

import json
import sys
from pathlib import Path

import pytest

from commands import Demur, log
from demur.apps.cli import commands
from store.tables import LISTS, ROWS, TRIALS, answers, folders, write


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of these tests' own, named by the environment."""
    monkeypatch.setenv("DEMUR_STORE", str(tmp_path / "store"))
    write(tmp_path / "guide.jsonl")
    return tmp_path / "store"


def test_adding_says_what_was_added_and_what_was_recognised(demur: Demur) -> None:
    done = demur("add", "guide.jsonl", "--tag", "museum", "--note", "the first")
    assert done.returncode == 0
    first, *_ = done.stdout.splitlines()
    assert first.startswith('Added "guide" (')
    assert first.endswith("): 6 rows of answers, 50 % wrong with all returned.")
    assert [word for word in done.stdout.splitlines()[-2].split() if word in ("museum", "first")] == ["museum", "first"]
    assert "note: 1 target that is null read as out of scope" in done.stderr


def test_adding_again_under_another_name_adds_nothing_and_is_fine(demur: Demur, root: Path) -> None:
    demur("add", "guide.jsonl")
    done = demur("add", "guide.jsonl", "--name", "other", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f'These 6 rows of answers are there already as "guide" ({folders(root)[0]}); nothing was added.\n'
    )


def test_adding_tells_scripts_what_it_did(demur: Demur, root: Path) -> None:
    document = json.loads(demur("add", "guide.jsonl", "--name", "a", "--json").stdout)
    (run,) = document["runs"]
    assert (run["name"], run["kind"], run["n"], run["new"]) == ("a", "responses", 6, True)
    assert run["about"]["forced_error"] == 0.5
    assert document["store"] == str(root)
    assert not json.loads(demur("add", "guide.jsonl", "--json").stdout)["runs"][0]["new"]


def test_notes_of_several_runs_say_whose_they_are(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path / "second.jsonl", [{**row, "id": row["id"] + "x"} for row in ROWS])
    done = demur("add", "guide.jsonl", "second.jsonl")
    assert "note: guide: 1 target that is null read as out of scope" in done.stderr
    assert "note: second: 1 target that is null read as out of scope" in done.stderr


def test_the_options_of_every_kind_reach_its_reader(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path / "trials.jsonl", TRIALS)
    done = demur("add", "trials.jsonl", "--x", "wer", "--y", "done", "--gold", "A", "--json")
    assert json.loads(done.stdout)["runs"][0]["about"]["performers"] == ["A", "B", "wizard"]
    done = demur("add", "trials.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "trials.jsonl: a table of trials needs --x and --y" in done.stderr
    over = [{**LISTS[0], "hypotheses": [{"act": "bye()", "confidence": 0.8}, {"act": "a()", "confidence": 0.8}]}]
    write(tmp_path / "lists.jsonl", over)
    assert demur("add", "lists.jsonl").returncode == 2
    assert demur("add", "lists.jsonl", "--normalise", "--items", "dstc").returncode == 0
    write(tmp_path / "talks.jsonl", [{"dialogue": "d", "outcome": 0, "other": 1}])
    done = demur("add", "talks.jsonl", "--outcome", "other", "--json")
    assert json.loads(done.stdout)["runs"][0]["about"]["outcome"] == "other"
    done = demur("add", "guide.jsonl", "--where", "domain=a", "--withheld", "song", "--json")
    assert json.loads(done.stdout)["runs"][0]["about"]["answered"] == 1


def test_the_kind_is_chosen_for_all_files_or_for_each(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path / "either.jsonl", [{**LISTS[0], "prediction": "thai", "correct": True, "confidence": 0.5}])
    done = demur("add", "either.jsonl")
    assert "may be a table of responses or of nbest" in done.stderr
    assert demur("add", "either.jsonl", "guide.jsonl", "--kind", "either.jsonl=nbest").returncode == 0
    listed = json.loads(demur("runs", "--json").stdout)["runs"]
    assert {run["name"]: run["kind"] for run in listed} == {"either": "nbest", "guide": "responses"}
    done = demur("add", "either.jsonl", "--kind", "lists")
    assert 'error: --kind takes one of responses, nbest, dialogues, trials, or FILE=KIND; got "lists"' in done.stderr
    assert "one kind for all" in demur("add", "guide.jsonl", "--kind", "nbest", "--kind", "trials").stderr


def test_a_bad_file_is_refused_with_its_line_and_leaves_no_run(demur: Demur, tmp_path: Path, root: Path) -> None:
    write(tmp_path / "bad.jsonl", [ROWS[0], {**ROWS[1], "confidence": "high"}])
    done = demur("add", "guide.jsonl", "bad.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: bad.jsonl:2: confidence must be a number; got "high"\n'
    assert folders(root) == []


def test_a_name_in_use_is_refused_or_taken_over(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path / "second.jsonl", answers(1))
    demur("add", "guide.jsonl", "--name", "a")
    done = demur("add", "second.jsonl", "--name", "a")
    assert done.returncode == 2
    assert "choose another with --name, or --replace it" in done.stderr
    assert demur("add", "second.jsonl", "--name", "a", "--replace").returncode == 0
    assert [run["source"] for run in json.loads(demur("runs", "--json").stdout)["runs"]] == ["second.jsonl"]


def test_an_empty_store_says_how_to_add_a_run(demur: Demur, root: Path) -> None:
    done = demur("runs")
    assert (done.returncode, done.stdout) == (0, f"No runs in {root} yet: demur add FILE adds one.\n")
    assert json.loads(demur("runs", "--json").stdout)["runs"] == []


def test_runs_are_listed_in_a_table_by_kind_and_tag(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path / "lists.jsonl", LISTS)
    demur("add", "guide.jsonl", "--tag", "museum")
    demur("add", "lists.jsonl", "--note", "of the | second")
    lines = [line.split() for line in demur("runs").stdout.splitlines()]
    assert lines[0][:3] == ["2", "runs", "in"]
    assert [line[1:5] for line in lines if len(line) > 4 and line[1] in ("lists", "guide")] == [
        ["lists", "nbest", "2", "-"],
        ["guide", "responses", "6", "50"],
    ]
    assert [run["name"] for run in json.loads(demur("runs", "--tag", "museum", "--json").stdout)["runs"]] == ["guide"]
    assert [run["name"] for run in json.loads(demur("runs", "--kind", "nbest", "--json").stdout)["runs"]] == ["lists"]
    assert demur("runs", "--tag", "zoo").stdout.startswith("No such run among the 2 in ")
    narrow = demur("runs", columns=60).stdout
    assert "guide" in narrow
    assert "museum" not in narrow
    assert demur("runs", "-o", "runs.csv", "-o", "runs.md").returncode == 0
    assert (tmp_path / "runs.csv").read_text().splitlines()[0].startswith("id,name,kind,rows,forced_error,added")
    assert r"of the \| second" in (tmp_path / "runs.md").read_text()


def test_checking_reads_every_run_again_and_fails_on_damage(demur: Demur, root: Path) -> None:
    demur("add", "guide.jsonl")
    done = demur("runs", "--check", "--quiet")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Each is what was added.")
    path = root / "runs" / folders(root)[0] / "rows.parquet"
    content = bytearray(path.read_bytes())
    content[50] ^= 0xFF
    path.write_bytes(content)
    done = demur("runs", "--check")
    assert done.returncode == 1
    assert f'The run "guide" ({folders(root)[0]}) is damaged: ' in done.stdout
    document = json.loads(demur("runs", "--check", "--json").stdout)
    assert list(document["damaged"]) == folders(root)
    path.unlink()
    done = demur("runs")
    assert done.returncode == 0
    assert 'warning: the run "guide"' in done.stderr
    assert demur("runs", "--check").stderr.count("is damaged") == 0, "it is told once, on standard output"


def test_runs_are_removed_by_name_or_id_all_or_none(demur: Demur, tmp_path: Path, root: Path) -> None:
    demur("add", "guide.jsonl", str(write(tmp_path / "second.jsonl", answers(1))))
    done = demur("rm", "guide", "gide")
    assert done.returncode == 2
    assert 'there is no run "gide" (did you mean "guide"?' in done.stderr
    assert len(folders(root)) == 2
    done = demur("rm", "guide", "guide")
    assert done.stdout.startswith('Removed "guide" (')
    assert done.stdout.count("\n") == 1
    (left,) = folders(root)
    assert json.loads(demur("rm", left[:6], "--json").stdout)["removed"][0]["name"] == "second"
    assert folders(root) == []


@pytest.mark.parametrize(("answer", "left", "code"), [("n", 1, 2), ("y", 0, 0)])
def test_at_a_terminal_removing_asks_first(
    demur: Demur, root: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int, code: int
) -> None:
    demur("add", "guide.jsonl")
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(commands.typer, "confirm", lambda text, **_: asked.append(text) or answer == "y")
    done = demur("rm", "guide")
    assert asked == ['Remove "guide" for good?']
    assert (done.returncode, len(folders(root))) == (code, left)
    if left:
        assert done.stderr == "error: nothing was removed: the question was not answered with yes\n"
        assert demur("rm", "guide", "--yes").returncode == 0
        assert len(asked) == 1


def test_the_store_can_be_named_with_an_option(demur: Demur, tmp_path: Path, root: Path) -> None:
    assert demur("add", "guide.jsonl", "--store", "mine").returncode == 0
    assert len(folders(tmp_path / "mine")) == 1
    assert not root.exists()
    done = demur("runs", "--store", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: . is no store, and not empty" in done.stderr


def test_standard_input_is_added(apart: Demur, tmp_path: Path) -> None:
    text = (tmp_path / "guide.jsonl").read_text()
    done = apart("add", "-", "--name", "piped", "--quiet", input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('Added "piped" (')


def test_a_run_by_its_name_is_read_as_the_file_was(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=200, skill=3)
    log(tmp_path / "b.jsonl", n=200, skill=1)
    demur("add", "a.jsonl", "b.jsonl")
    quick = ("--replicates", "50", "--json")
    by_file = json.loads(demur("compare", "a.jsonl", "b.jsonl", "--baseline", "b", *quick).stdout)
    by_name = json.loads(demur("compare", "run:a", "run:b@baseline", *quick).stdout)
    beside = json.loads(demur("compare", "a.jsonl", "run:b@baseline", *quick).stdout)
    assert by_name["pairs"] == by_file["pairs"] == beside["pairs"]
    assert by_name["systems"] == by_file["systems"]
    report = json.loads(demur("report", "run:a", "run:b", *quick).stdout)
    assert report["title"] == "Report on 2 systems"


def test_where_keeps_rows_of_a_run_as_of_a_file(demur: Demur, tmp_path: Path) -> None:
    rows = [{"id": k, "correct": k % 3 > 0, "confidence": k / 20, "part": "ab"[k % 2]} for k in range(20)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    demur("add", "c.jsonl")
    kept = ("--where", "part=a", "--replicates", "50", "--json")
    found = [json.loads(demur("score", name, *kept).stdout)["systems"][0] for name in ("c.jsonl", "run:c")]
    assert found[0]["n"] == found[1]["n"] == 10
    assert found[0]["measures"]["augrc"]["value"] == found[1]["measures"]["augrc"]["value"]
    assert "keeps no row" in demur("score", "run:c", "--where", "part=z").stderr
    assert 'no column "place"' in demur("score", "run:c", "--where", "place=z").stderr


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (("score", "run:guid"), 'there is no run "guid" (did you mean "guide"?)'),
        (("score", "run:guide", "--map", "target=x"), "a run was read when it was added (give the file"),
        (("score", "run:guide@baseline"), "run:guide@baseline: only compare has a baseline"),
        (("nbest", "run:guide"), "this run holds responses; demur nbest takes runs of nbest"),
        (("understand", "train", "run:guide"), "this run holds responses; demur understand train takes no runs"),
    ],
)
def test_a_run_that_cannot_be_taken_is_refused(demur: Demur, command: tuple[str, ...], fault: str) -> None:
    demur("add", "guide.jsonl")
    done = demur(*command)
    assert done.returncode == 2
    assert fault in done.stderr
