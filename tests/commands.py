"""The command run inside the process of the tests: all of it but the start of an interpreter, which takes longest."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demur.apps.cli.main import run

Done = subprocess.CompletedProcess[str]
Demur = Callable[..., Done]


def run_in(folder: Path, *arguments: str, piped: str = "", columns: int | None = None) -> Done:
    """Runs the command once in a folder, for fixtures that several tests share.

    `piped` is its standard input; `columns` is the width of its terminal.
    """
    printed, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with chdir(folder), redirect_stdout(printed), redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["demur", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode()), encoding="utf-8"))
        for name in ("COLUMNS", "FORCE_COLOR"):  # a runner of tests may set them, a pipe has neither width nor colour
            patch.delenv(name, raising=False)
        if columns is not None:
            patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as left:
            run()
    texts = [stream.buffer.getvalue().decode() for stream in (printed, said)]
    return subprocess.CompletedProcess(list(arguments), int(left.value.code or 0), *texts)


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


@pytest.fixture
def demur(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """Runs the command in this process, in a folder of its own."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def apart(tmp_path: Path) -> Demur:
    """Runs the command as a user does, in a process of its own: for streams, exit codes and what a process inherits."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "demur", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, **options)

    return run


def log(path: Path, n: int = 200, *, seed: int = 0, skill: float = 2.0, level: float = 0.0, **columns: Any) -> Path:
    """A log of `n` answers whose confidences say something about being right."""
    rng = np.random.default_rng(seed)
    shown = rng.normal(size=n)
    right = rng.random(n) < 1 / (1 + np.exp(-(level + skill * shown)))
    rows = [
        {
            "id": f"q{k}",
            "target": "yes",
            "prediction": "yes" if right[k] else "no",
            "confidence": round(float(1 / (1 + np.exp(-shown[k]))), 3),
            **{name: values[k] for name, values in columns.items()},
        }
        for k in range(n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
