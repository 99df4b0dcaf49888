"""Systems side by side on the same inputs: their rows paired by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from demur.core.io.alignment import Places, align, gathered, hashed, unpaired_note
from demur.core.show.numbers import SUCH_IDS
from demur.errors import DataError
from demur.returns.table import Responses


@dataclass(frozen=True, slots=True)
class Pairing:
    """The rows of each system: when paired, the same ids in the same order, without targets and predictions.

    `note` says how the rows were brought together, `dropped` how many rows of each system have no
    counterpart.
    """

    frames: Mapping[str, pl.DataFrame]
    paired: bool
    note: str
    dropped: Mapping[str, int]


def pair(
    responses: Responses,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
) -> Pairing:
    """Brings the responses of two or more systems together by id.

    Ids must be the same in all systems; `matched` keeps those that are. Without ids, or with `unpaired`, each
    system's rows stand on their own. The order of the rows in the files never matters.
    """
    names = tuple(dict.fromkeys(systems if systems is not None else responses.systems))
    if len(names) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none")
    frames = {name: responses.of(name).frame for name in names}
    unnamed = [name for name, frame in frames.items() if frame["id"].null_count() > 0]
    if unpaired or unnamed:
        frames = {name: _in_canonical_order(frame) for name, frame in frames.items()}
        return Pairing(frames, paired=False, note=unpaired_note(unnamed, unpaired), dropped=dict.fromkeys(names, 0))
    alignment = align({name: frame["id"] for name, frame in frames.items()}, matched=matched)
    ids = frames[names[0]]["id"].gather(alignment.places[names[0]])
    _refuse_other_targets(frames, ids, alignment.places)
    paired = {}
    for name, frame in frames.items():
        others = frame.drop("id", "target", "prediction", strict=False)  # labels are only looked at to pair the rows
        paired[name] = gathered(others, alignment.places[name]).insert_column(0, ids)
    return Pairing(paired, paired=True, note=alignment.note, dropped=alignment.dropped)


def _in_canonical_order(frame: pl.DataFrame) -> pl.DataFrame:
    if frame["id"].null_count() > 0:
        figures = ("confidence", "right", "answered", "out_of_scope", "failed", "weight")
        return frame.sort("id", *figures, "dialogue", "prediction")
    return frame if frame["id"].is_sorted() else frame.sort("id")


def _refuse_other_targets(frames: dict[str, pl.DataFrame], ids: pl.Series, places: Mapping[str, Places]) -> None:
    """Refuses an id that has one target here and another there; only those whose hashes differ are looked at."""
    (name, frame), *others = frames.items()
    own = hashed(frame["target"])[places[name]]
    for other_name, other_frame in others:
        unlike = np.flatnonzero(own != hashed(other_frame["target"])[places[other_name]])
        both = pl.DataFrame(
            [
                ids.gather(unlike).alias("id"),
                frame["target"].gather(places[name][unlike]),
                other_frame["target"].gather(places[other_name][unlike]).alias("other"),
            ]
        )
        apart = both.filter(pl.col("target").list.sort() != pl.col("other").list.sort())
        if not apart.is_empty():
            row = apart.row(0, named=True)
            rule = (
                f'the id "{row["id"]}" has the target {_target_text(row["target"])} in {name} '
                f"but {_target_text(row['other'])} in {other_name} ({SUCH_IDS.with_count(apart.height)} in all)"
            )
            fix = "do the ids mean the same inputs? `unpaired` compares without pairing"
            raise DataError(rule, fix=fix)


def _target_text(target: list[str]) -> str:
    return " or ".join(f'"{label}"' for label in sorted(target)) or "out of scope"
