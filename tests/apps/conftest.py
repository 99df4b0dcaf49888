import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.inside import Demur, runner


@pytest.fixture
def demur(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """Runs the command in this process, in a folder of its own."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def apart(tmp_path: Path) -> Demur:
    """Runs the command as a user does, in a process of its own: for streams, exit codes and what a process inherits."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from demur.apps.cli.main import run; run()", *arguments]
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
