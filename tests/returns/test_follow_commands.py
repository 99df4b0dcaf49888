import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from commands import Demur, log

COMMAND = [sys.executable, "-c", "from demur.apps.cli.main import run; run()", "follow"]
QUICK = ("--replicates", "50")


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def started(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, text=True, **streams)


@pytest.mark.parametrize("columns", [{}, {"dialogue": [f"d{k % 40}" for k in range(500)]}], ids=["rows", "dialogues"])
def test_a_log_at_rest_gives_what_score_gives(demur: Demur, tmp_path: Path, columns: dict[str, Any]) -> None:
    log(tmp_path / "run.jsonl", n=500, **columns)
    followed = demur("follow", "run.jsonl", "--until-idle", "0", "--json", "--every", "60", *QUICK)
    assert followed.returncode == 0, followed.stderr
    last = documents(followed.stdout)[-1]
    scored = json.loads(demur("score", "run.jsonl", "--json", *QUICK).stdout)
    found, expected = last["systems"][0], scored["systems"][0]
    assert last["final"] is True
    assert [found[name] for name in ("n", "signature", "range")] == [
        expected[name] for name in ("n", "signature", "range")
    ]
    if not columns:
        assert found == expected
    for name, figure in expected["measures"].items():
        value = found["measures"][name]["value"]
        assert value == (None if figure["value"] is None else pytest.approx(figure["value"], rel=1e-12))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_table_at_rest_gives_what_score_gives(demur: Demur, tmp_path: Path, ending: str) -> None:
    rows = [json.loads(line) for line in log(tmp_path / "run.jsonl", n=60).read_text().splitlines()]
    mark = "," if ending == "csv" else "\t"
    lines = [mark.join(rows[0]), *(mark.join(map(str, row.values())) for row in rows)]
    (tmp_path / f"table.{ending}").write_text("\n".join(lines))
    followed = demur("follow", f"table.{ending}", "--until-idle", "0", "--json", *QUICK)
    scored = json.loads(demur("score", f"table.{ending}", "--json", *QUICK).stdout)
    assert documents(followed.stdout)[-1]["systems"] == scored["systems"]


def test_a_pipe_is_shown_as_it_comes_and_in_full_at_its_end(tmp_path: Path) -> None:
    rows = log(tmp_path / "run.jsonl").read_text().splitlines(keepends=True)
    process = started(tmp_path, "-", "--every", "0.05")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.writelines(rows[:50])
    process.stdin.flush()
    first = process.stdout.readline()
    assert "  stdin  " in first
    assert "error at 20 % non-return" in first
    rest, said = process.communicate("".join(rows[50:]), timeout=60)
    assert process.returncode == 0, said
    assert "of 200 inputs get a wrong one" in rest
    assert "Measures with 95 % intervals" in rest
    assert "seed 0, 1,000 replicates" in said


def unended(path: Path) -> Path:
    """A log of 200 rows whose last line has no end yet."""
    with log(path).open("a") as file:
        file.write('{"id": "cut')
    return path


WRITTEN = ("-o", "out.json", "-o", "out.sweep", *QUICK)


def assert_ended_in_full(folder: Path, process: subprocess.Popen[str], shown: str, said: str) -> None:
    """The result and the files are of all rows with an end, and the line without one is told."""
    assert process.returncode == 0, said
    assert "of 200 inputs get a wrong one" in shown
    assert "Measures with 95 % intervals" in shown
    assert "run.jsonl:201: the last line has no end yet and was not counted" in said
    assert json.loads((folder / "out.json").read_text())["systems"][0]["n"] == 200
    assert (folder / "out.sweep").exists()


def test_a_bad_line_is_named_after_what_was_counted_before_it(demur: Demur, tmp_path: Path) -> None:
    path = log(tmp_path / "run.jsonl", n=40)
    with path.open("a") as file:
        file.write('{"id": "x", "target": "yes", "prediction": "no", "confidence": "high"}\n')
    done = demur("follow", "run.jsonl", "--until-idle", "0")
    assert done.returncode == 2
    assert "of 40 inputs get a wrong one" in done.stdout
    fault = 'run.jsonl:41: confidence must be a number; got "high"'
    assert f"warning: counted only up to a fault: {fault}" in done.stderr
    assert done.stderr.rstrip().endswith(f"error: {fault}")
    (tmp_path / "first.jsonl").write_text("7\n")
    refused = demur("follow", "first.jsonl", "--until-idle", "0", "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "first.jsonl:1: each line must be a JSON object" in refused.stderr


def test_what_holds_no_rows_is_refused(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "run.jsonl", n=5, weight=[0] * 5)
    (tmp_path / "empty.jsonl").write_text("")
    for arguments, said in [
        (["rum.jsonl"], 'rum.jsonl does not exist (did you mean "run.jsonl"?)'),
        (["empty.jsonl"], "empty.jsonl holds no rows"),
        (["run.jsonl"], "run.jsonl the weights of the rows must not all be 0"),
        (["run.jsonl", "--where", "id=none"], "run.jsonl holds no row where id is none"),
    ]:
        done = demur("follow", *arguments, "--until-idle", "0")
        assert done.returncode == 2
        assert said in done.stderr


def test_a_log_that_is_not_there_yet_is_waited_for_and_a_signal_ends_it_in_full(tmp_path: Path) -> None:
    process = started(tmp_path, "run.jsonl", "--every", "0.05", *WRITTEN)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stderr.readline() == "note: run.jsonl is not there yet: waiting for it\n"
    unended(tmp_path / "other.jsonl").rename(tmp_path / "run.jsonl")
    assert "200 rows" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert_ended_in_full(tmp_path, process, *process.communicate(timeout=60))


def test_gates_hold_at_the_end_in_text_and_in_json(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "run.jsonl")
    for more in ([], ["--json"], ["--quiet"]):
        asked = ("--until-idle", "0", "--fail-if", "forced_error > 0.01", *QUICK)
        done = demur("follow", "run.jsonl", *asked, *more)
        assert done.returncode == 1
        assert "gate: run: forced_error > 0.01 holds" in done.stderr
    unread = demur("follow", "run.jsonl", "--fail-if", "augrc is bad")
    assert unread.returncode == 2


def test_the_bound_of_a_joined_curve_is_told(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "run.jsonl", n=2000)
    done = demur("follow", "run.jsonl", "--until-idle", "0", "--cutoffs", "64", "-o", "out.json")
    assert done.returncode == 0
    joined = json.loads((tmp_path / "out.json").read_text())["systems"][0]["joined"]
    assert joined["cutoffs"] <= 64
    assert 0 < joined["y_within"] <= joined["x_within"] < 0.2
    assert "cutoffs the curve is exact, between them it is off by at most" in done.stderr


def test_what_cannot_be_written_is_refused_before_anything_is_read(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "folder.sweep").mkdir()
    for name, said in [("out.txt", "the extension must be one of"), ("folder.sweep", "this is a directory")]:
        done = demur("follow", "run.jsonl", "-o", name)
        assert done.returncode == 2
        assert said in done.stderr


def test_the_help_has_an_example(demur: Demur) -> None:
    assert "Example: demur follow" in " ".join(demur("follow", "--help").stdout.split())


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_shows_the_curve_live_and_an_interrupt_ends_it_in_full(tmp_path: Path, encoding: str) -> None:
    unended(tmp_path / "run.jsonl")
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment = {**known, "TERM": "xterm-256color", "PYTHONIOENCODING": encoding}
    process = started(tmp_path, "run.jsonl", "--every", "0.05", *WRITTEN, stdout=terminal, env=environment)
    os.close(terminal)
    drawn = b""
    while b" non-return " not in drawn or b"100 %" not in drawn:
        drawn += os.read(master, 4096)
    shown = drawn.decode(errors="ignore")
    process.send_signal(signal.SIGINT)
    end = read_to_end(master)
    _, said = process.communicate(timeout=60)
    assert_ended_in_full(tmp_path, process, end, said)
    assert ("●" in shown) is (encoding == "utf-8")
    assert ("@" in shown) is (encoding == "ascii")
    assert "run.jsonl | 200 rows" in shown


def read_to_end(descriptor: int) -> str:
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:  # a terminal whose other side was closed
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts).decode(errors="replace")
