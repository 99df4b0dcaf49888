"""Folders of Parquet, made afresh for each run: logs too large to read whole, cut into parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

PART = 1_000_000
LABELS = 150
TURNS = 10
"""Turns of a dialogue."""


def lake(folder: Path, rows: int, *, decimals: int | None = 3, dialogues: bool = False) -> Path:
    """A folder with a log of so many rows: 150 intents, confidences that mostly mean what they say."""
    folder.mkdir(parents=True)
    names = pl.Series([f"intent_{label:03d}" for label in range(LABELS)])
    for part, first in enumerate(range(0, rows, PART)):
        size = min(PART, rows - first)
        rng = np.random.default_rng(part)
        confidence = rng.beta(4, 1.5, size)
        right = rng.random(size) < confidence
        target = rng.integers(0, LABELS, size)
        prediction = np.where(right, target, (target + 1 + rng.integers(0, LABELS - 1, size)) % LABELS)
        number = pl.int_range(first, first + size, eager=True)
        columns = {
            "id": number,
            "target": names.gather(target),
            "prediction": names.gather(prediction),
            "confidence": confidence if decimals is None else confidence.round(decimals),
            **({"dialogue": "d" + (number // TURNS).cast(pl.String)} if dialogues else {}),
        }
        pl.DataFrame(columns).write_parquet(folder / f"part-{part:05d}.parquet")
    return folder
