"""Folders of Parquet, made afresh for each run: logs too large to read whole, cut into parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

PART = 1_000_000
LABELS = 150
TURNS = 10
"""Turns of a dialogue."""


def lake(folder: Path, rows: int, *, decimals: int | None = 3, dialogues: bool = False, system: int = 0) -> Path:
    """A folder with a log of so many rows: 150 intents, confidences that mostly mean what they say.

    The inputs are the same for every `system`, its answers are its own.
    """
    folder.mkdir(parents=True)
    names = pl.Series([f"intent_{label:03d}" for label in range(LABELS)])
    for part, first in enumerate(range(0, rows, PART)):
        size = min(PART, rows - first)
        rng = np.random.default_rng(part)
        confidence = rng.beta(4, 1.5, size)
        right = rng.random(size) < confidence
        target = rng.integers(0, LABELS, size)
        if system:
            rng = np.random.default_rng([part, system])
            confidence = rng.beta(4, 1.5 + system / 100, size)
            right = rng.random(size) < confidence
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


def list_lake(folder: Path, rows: int) -> Path:
    """A folder with N-best lists of so many utterances, nested: one to three of 200 acts, confidences of 3 decimals."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    acts = pl.Series([f"inform(food=f{food}, area=a{area})" for food in range(20) for area in range(10)])
    sizes = rng.integers(1, 4, rows)
    heard, number = int(sizes.sum()), pl.int_range(rows, eager=True)
    hypotheses = pl.DataFrame(
        {
            "row": np.repeat(np.arange(rows), sizes),
            "act": acts.gather(rng.integers(0, acts.len(), heard)),
            "confidence": (rng.random(heard) / np.repeat(sizes, sizes)).round(3),
        }
    )
    lists = hypotheses.group_by("row", maintain_order=True).agg(pl.struct("act", "confidence").alias("hypotheses"))
    table = lists.select(
        id="u" + number.cast(pl.String),
        dialogue="d" + (number // TURNS).cast(pl.String),
        reference=acts.gather(rng.integers(0, acts.len(), rows)),
        hypotheses="hypotheses",
    )
    table.write_parquet(folder / "lists.parquet", row_group_size=PART // 10)
    return folder
