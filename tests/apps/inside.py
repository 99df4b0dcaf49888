"""The command run inside the process of the tests: all of it but the start of an interpreter, which takes longest."""

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from demur.apps.cli.main import run

Done = subprocess.CompletedProcess[str]
Demur = Callable[..., Done]


def run_in(folder: Path, *arguments: str, piped: str = "") -> Done:
    """Runs the command once in a folder, for fixtures that several tests share; `piped` is its standard input."""
    printed, said = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(printed), redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["demur", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode()), encoding="utf-8"))
        for name in ("COLUMNS", "FORCE_COLOR"):  # a runner of tests may set them, a pipe has neither width nor colour
            patch.delenv(name, raising=False)
        with pytest.raises(SystemExit) as left:
            run()
    return subprocess.CompletedProcess(list(arguments), int(left.value.code or 0), printed.getvalue(), said.getvalue())


def runner(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """Runs the command in a folder, as the fixture `apart` does; warnings are errors here too."""
    monkeypatch.chdir(folder)
    for name, value in (("OPENBLAS_NUM_THREADS", "1"), ("POLARS_HOT_TABLE_SIZE", str(2**20)), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)

    def inside(*arguments: str, columns: int | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["demur", *arguments])
        monkeypatch.setenv("COLUMNS", str(columns)) if columns else monkeypatch.delenv("COLUMNS", raising=False)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run()
        printed, said = capsys.readouterr()
        return subprocess.CompletedProcess(list(arguments), int(left.value.code or 0), printed, said)

    return inside
