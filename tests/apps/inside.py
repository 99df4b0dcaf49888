"""The command run inside the process of the tests: all of it but the start of an interpreter, which takes longest."""

import subprocess
import sys
from pathlib import Path

import pytest

from apps.conftest import Demur
from demur.apps.cli.main import run


def runner(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """Runs the command in a folder, as the fixture `demur` does; warnings are errors here too."""
    monkeypatch.chdir(folder)
    for name, value in (("OPENBLAS_NUM_THREADS", "1"), ("POLARS_HOT_TABLE_SIZE", str(2**20)), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)

    def inside(*arguments: str, columns: int | None = None) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["demur", *arguments])
        monkeypatch.setenv("COLUMNS", str(columns)) if columns else monkeypatch.delenv("COLUMNS", raising=False)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run()
        printed, said = capsys.readouterr()
        return subprocess.CompletedProcess(list(arguments), int(left.value.code or 0), printed, said)

    return inside
