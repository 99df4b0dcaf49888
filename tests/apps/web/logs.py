"""Logs for the tests of the workbench, with markup wherever data can have text."""

import json
from pathlib import Path
from typing import Any

import numpy as np

MARKUP = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>"
DOMAINS = ("travel", "bank", MARKUP)


def answers(n: int = 120, *, seed: int = 0, skill: float = 2.0) -> list[dict[str, Any]]:
    """Rows of a log whose confidences say something about being right; some withheld, some out of scope."""
    rng = np.random.default_rng(seed)
    shown = rng.normal(size=n)
    right = rng.random(n) < 1 / (1 + np.exp(-skill * shown))
    rows = []
    for k in range(n):
        target = "oos" if k % 11 == 0 else ("yes", "no", MARKUP)[k % 3]
        prediction = target if right[k] and target != "oos" else "maybe"
        sure = round(float(1 / (1 + np.exp(-shown[k]))), 3)
        row: dict[str, Any] = {"id": f"q{k}", "input": f"question {k} {QUOTES}", "domain": DOMAINS[k % 3]}
        row |= {"target": target, "prediction": None if k % 13 == 0 else prediction}
        row["confidence"] = None if k % 13 == 0 else sure
        row["nbest"] = [{"label": prediction, "confidence": sure}, {"label": QUOTES, "confidence": 0.001}]
        rows.append(row)
    return rows


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def log(path: Path, n: int = 120, *, seed: int = 0, skill: float = 2.0) -> Path:
    """A log in a file."""
    return written(path, answers(n, seed=seed, skill=skill))
