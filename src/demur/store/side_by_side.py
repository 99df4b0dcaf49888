"""Rows of runs as measures read them, alone or paired by their ids, without texts, which take most of the room."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl

from demur.data.alignment import Hashes, Ids, Places, gathered, hashed
from demur.data.pairing import Pairing, paired_note, unpaired_note
from demur.store.reading import rows_of
from demur.store.records import Run

NUMBERS = ("confidence", "right", "answered", "failed", "out_of_scope", "weight")
"""What measures read of a row, but for the dialogue that it may belong to."""

Filed = tuple[Run, Path]
"""A run and the file of its rows."""


def numbers_of(run: Run, path: Path, further: Sequence[str] = ()) -> pl.DataFrame:
    """What measures read of a run's rows, and further columns, in any order."""
    dialogues = ("dialogue",) if run.about.get("dialogues") else ()
    frame = rows_of(path, run, (*NUMBERS, *dialogues, *further), ordered=False).rechunk()
    return frame if dialogues else frame.with_columns(pl.lit(None).alias("dialogue"))


def apart(runs: Sequence[Filed], *, asked: bool) -> Pairing:
    """The rows of runs that are not paired, because that was asked for or some have no ids."""
    unnamed = [run.name for run, _ in runs if not run.about.get("has_ids")]
    frames = {run.name: numbers_of(run, path) for run, path in runs}
    return Pairing(frames, paired=False, note=unpaired_note(unnamed, asked), dropped=dict.fromkeys(frames, 0))


def side_by_side(runs: Sequence[Filed], *, matched: bool = False) -> Pairing | None:
    """The rows of runs as `pair` brings them together, but for the ids themselves.

    None where that needs a closer look: ids are missing, are not the same in all runs (with `matched`, none is common
    to all), or have other targets here than there.
    """
    common = _common(runs) if matched else None
    ids: Ids | None = None
    targets: Hashes | None = None
    frames: dict[str, pl.DataFrame] = {}
    for one in runs:
        column, kept = _kept(_column(*one, "id"), common)
        ids = Ids.of(column) if ids is None else ids
        found = ids.places(column) if len(column) else None
        if found is None:
            return None
        places = found if kept is None else kept[found]
        here = hashed(_column(*one, "target"))[places]
        targets = here if targets is None else targets
        if not np.array_equal(here, targets):
            return None
        frames[one[0].name] = gathered(numbers_of(*one), places)
    dropped = {run.name: run.n - frames[run.name].height for run, _ in runs}
    return Pairing(frames, paired=True, note=paired_note(0 if ids is None else len(ids), dropped), dropped=dropped)


def _common(runs: Sequence[Filed]) -> pl.DataFrame:
    """The hashes of the ids that all runs have."""
    first, *others = (_hashes(_column(*one, "id")) for one in runs)
    return reduce(lambda left, right: left.join(right, on="hash", how="semi"), others, first)


def _kept(column: pl.Series, common: pl.DataFrame | None) -> tuple[pl.Series, Places | None]:
    """The ids that are common to all, and where they stand; all where that is not asked."""
    if common is None:
        return column, None
    places = _hashes(column).with_row_index("place").join(common, on="hash", how="semi")["place"].sort().to_numpy()
    return column.gather(places), places


def _hashes(column: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"hash": hashed(column)})


def _column(run: Run, path: Path, name: str) -> pl.Series:
    return rows_of(path, run, (name,), ordered=False)[name].rechunk()
