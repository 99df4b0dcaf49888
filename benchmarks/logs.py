"""Made logs of answers with all that a workbench shows: texts, slices, and ids by which runs pair."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.arrays import Floats

LABELS, WORDS, WORDS_EACH = 150, 60, 5
SLICES = {"domain": 10, "device": 4, "language": 20, "version": 12, "region": 36}
"""Columns to slice by, and how many values each has."""


def log(rows: int, system: int = 0) -> pl.DataFrame:
    """What a system answered to inputs that are the same for all; later systems are better, and log in another order.

    Confidences all differ, and say how often answers are right.
    """
    inputs, own = np.random.default_rng(0), np.random.default_rng([1, system])
    number = pl.int_range(rows, eager=True).cast(pl.String)
    target, ease = inputs.integers(0, LABELS, rows), inputs.normal(size=rows)
    words = [_drawn("word", WORDS, rows, inputs) for _ in range(WORDS_EACH)]
    parts = {name: _drawn(name, size, rows, inputs) for name, size in SLICES.items()}
    confidence = _share(1.2 + 0.2 * system + ease + 0.7 * own.normal(size=rows))
    instead = (target + own.integers(1, LABELS, rows)) % LABELS
    given = np.where(own.random(rows) < confidence, target, instead)
    labels = pl.Series([f"intent_{place}" for place in range(LABELS)])
    table = pl.DataFrame(
        {
            "id": "question-" + number.str.zfill(9),
            "input": pl.select(pl.concat_str([*words, number], separator=" ")).to_series(),
            "target": labels.gather(target),
            "prediction": labels.gather(given),
            "confidence": confidence,
            **parts,
        }
    )
    return table.sample(fraction=1, shuffle=True, seed=system) if system else table


def _share(ease: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-ease)))


def _drawn(name: str, size: int, rows: int, rng: np.random.Generator) -> pl.Series:
    return pl.Series([f"{name}{place}" for place in range(size)]).gather(rng.integers(0, size, rows))
