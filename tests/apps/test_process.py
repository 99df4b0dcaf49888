"""How a process of `demur` treats files and streams: nothing that is read is overwritten, nothing is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.exceptions import PanicException

from commands import Demur, log
from demur.apps.cli import main
from demur.apps.cli.commands import command_of, run_job
from demur.core.io import sources, writing
from demur.core.io.files import read_source
from demur.core.io.tables import Request
from demur.core.jobs import Argument, Job
from demur.errors import DataError, UsageError
from demur.gold_standard.jobs import JOBS as GOLD_JOBS
from demur.importers import JOBS as DSTC_JOBS
from demur.lab.jobs import JOBS as LAB_JOBS
from demur.nbest_lists.jobs import IMPORT_JOBS
from demur.nbest_lists.jobs import JOBS as NBEST_JOBS
from demur.outcome.jobs import JOBS as OUTCOME_JOBS
from demur.reports.jobs import JOBS as REPORT_JOBS
from demur.returns.jobs import JOBS as RETURN_JOBS
from demur.store.jobs import JOBS as STORE_JOBS
from demur.understanding.jobs import JOBS as UNDERSTANDING_JOBS

QUESTIONS = (RETURN_JOBS, NBEST_JOBS, IMPORT_JOBS, OUTCOME_JOBS, GOLD_JOBS, REPORT_JOBS, STORE_JOBS)
JOBS = [job for jobs in (*QUESTIONS, UNDERSTANDING_JOBS, DSTC_JOBS, LAB_JOBS) for job in jobs]
READERS = [job for job in JOBS if any(isinstance(one.option, Argument) for one in job.parameters)]
COMMAND = (sys.executable, "-c", "from demur.apps.cli.main import run; run()")


def given_to(job: Job, source: str, **outputs: object) -> dict[str, object]:
    """What a command is given whose every argument names the same file."""
    values: dict[str, object] = {one.name: None for one in (*job.parameters, *job.outputs)}
    arguments = [one for one in job.parameters if isinstance(one.option, Argument)]
    return {**values, **{one.name: [source] if one.several else source for one in arguments}, **outputs}


@pytest.mark.parametrize("job", READERS, ids=lambda job: job.name)
def test_no_command_writes_to_what_it_reads(job: Job, tmp_path: Path) -> None:
    read = tmp_path / "a.json"
    read.write_text("as it was")
    (tmp_path / "link.json").symlink_to(read)
    os.link(read, tmp_path / "twin.json")
    command = command_of(job, lambda *_: read.write_text("overwritten"))
    for source in (str(read), str(tmp_path / "*.json"), str(tmp_path), f"trials={read}"):
        for name in ("a.json", "link.json", "twin.json"):
            with pytest.raises(UsageError, match="this file is read here; write to another"):
                command(**given_to(job, source, output=[tmp_path / name]))
    for one in job.outputs:
        with pytest.raises(UsageError, match=f"{one.flag} .*this file is read here"):
            command(**given_to(job, str(read), **{one.name: read}))
    assert read.read_text() == "as it was"


def test_what_is_not_read_may_be_overwritten(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=20)
    for _ in range(2):
        assert demur("score", "a.jsonl", "--replicates", "50", "-o", "score.json").returncode == 0


def test_a_folder_that_holds_what_is_read_is_not_written_to(tmp_path: Path) -> None:
    job = next(job for job in READERS if job.name == "understand train")
    (tmp_path / "guide").mkdir()
    pairs = log(tmp_path / "guide" / "pairs.jsonl", n=1)
    with pytest.raises(UsageError, match="this file is read here"):
        command_of(job, run_job)(**given_to(job, str(pairs), output=[tmp_path / "guide"]))


def test_a_file_that_is_replaced_leaves_its_mode_and_a_link_stays(tmp_path: Path) -> None:
    secret, link = tmp_path / "secret.json", tmp_path / "link.json"
    secret.write_text("old")
    secret.chmod(0o600)
    link.symlink_to(secret)
    writing.write_whole(link, "new")
    assert (secret.read_text(), secret.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o600, True)
    with pytest.raises(UsageError, match="is a device or a pipe"):
        writing.write_whole("/dev/null", "x")


def test_a_pipe_leaves_room_in_the_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sources, "LEAST_FREE", 1 << 60)
    with (tmp_path / "log.jsonl").open("wb+") as stream:
        stream.write(b"{}\n")
        stream.seek(0)
        monkeypatch.setattr("sys.stdin", type("Pipe", (), {"buffer": stream}))
        with pytest.raises(DataError, match=r"3 bytes so far, does not fit .*TMPDIR"), sources.opened("-"):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_panic_of_polars_is_a_fault_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a"]}).write_parquet(tmp_path / "a.parquet")

    def panic(*_: object) -> None:
        raise PanicException("assertion failed")

    with sources.opened(tmp_path / "a.parquet") as (source,):
        monkeypatch.setattr(pl.LazyFrame, "collect", panic)
        with pytest.raises(
            DataError, match=r"a\.parquet is cut off, damaged or not Parquet \(copy or write it again\)"
        ):
            read_source(source, Request())


def test_streams_that_are_full_or_closed_are_said_in_one_line(tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=20)
    shell = 'demur() { "$@" score a.jsonl --quiet --replicates 50; }; demur "$@"'
    for redirection, code, printed, said in (
        ("> /dev/full", 2, "", "error: standard output or a temporary file: No space left on device\n"),
        (">&-", 2, "", "error: standard output is closed; send it to a file or to /dev/null\n"),
        ("2>&-", 0, "a: when", ""),
        ("| true; exit ${PIPESTATUS[0]}", 0, "", ""),
    ):
        done = subprocess.run(
            ["bash", "-c", f"{shell} {redirection}", "bash", *COMMAND], capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stdout[: len(printed) or None].strip(), done.stderr) == (code, printed, said)


@pytest.mark.parametrize("arguments", [("score", "a" * 300), ("score", "a.jsonl", "-o", "a" * 300 + ".json")])
def test_a_name_that_is_too_long_is_said(demur: Demur, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    log(tmp_path / "a.jsonl", n=20)
    done = demur(*arguments, *(["--replicates", "50"] if len(arguments) > 2 else []))
    assert done.returncode == 2
    assert "File name too long" in done.stderr


def test_a_process_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, "score", "-"], stdin=subprocess.PIPE, env=environment, cwd=tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}\n' * 20_000)
        process.stdin.flush()  # more than a pipe holds, so this returns only once the command is reading
        assert any(path.name.startswith("demur-") for path in tmp_path.iterdir())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    assert list(tmp_path.iterdir()) == []


def test_a_caller_keeps_what_it_does_at_sigterm(demur: Demur) -> None:
    before = signal.getsignal(signal.SIGTERM)
    demur("--version")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("inherited", ["", "dirty_decay_ms:500,muzzy_decay_ms:1000"])
def test_a_command_has_polars_give_memory_back_whatever_it_inherits(monkeypatch, inherited):
    monkeypatch.setenv("_RJEM_MALLOC_CONF", inherited)
    for _ in range(2):
        main._tune()
    own = "dirty_decay_ms:0,muzzy_decay_ms:0"
    assert os.environ["_RJEM_MALLOC_CONF"] == (f"{inherited},{own}" if inherited else own)
