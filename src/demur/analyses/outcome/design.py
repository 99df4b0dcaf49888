"""The rows of an outcome model: for each dialogue what it achieved, and the features that may explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from demur.analyses.outcome.features import MIN_PER_DIALOGUE, Rejections, Turns, all_features, candidates, turns_of
from demur.data.dialogues import Dialogues, matched
from demur.data.responses import Responses
from demur.errors import DataError, UsageError

Array = NDArray[np.float64]
Undefined = Literal["drop", "zero", "impute-mean"]

POLICIES: Mapping[Undefined, str] = {
    "drop": "dialogues with an undefined feature are left out",
    "zero": "undefined features count as 0",
    "impute-mean": "undefined features get the mean of the dialogues that have them",
}
"""What becomes of a score that a dialogue does not have, such as the recall of a class that never occurs in it."""


@dataclass(frozen=True, eq=False)
class Design:
    """Dialogues as rows, features as columns, with the outcome of each."""

    names: tuple[str, ...]
    x: Array
    y: Array
    dialogues: tuple[str, ...]
    groups: NDArray[np.int64] | None
    """The number of each dialogue's group; None where each dialogue stands alone."""
    outcome: str
    undefined: Undefined
    rejections: Rejections
    means: Mapping[str, float]
    """The mean of each feature over the dialogues that have it."""
    turns: Turns | None
    columns: tuple[str, ...]
    """The features that are columns of the table of dialogues, not made of turns."""
    least: float
    asked: str
    notes: tuple[str, ...]


def design(
    table: Dialogues,
    responses: Responses | None = None,
    *,
    features: str | Sequence[str],
    least: float = MIN_PER_DIALOGUE,
    undefined: Undefined = "impute-mean",
    rejections: Rejections = "counted",
    allow_unmatched: bool = False,
) -> Design:
    """The rows of a model from the table of dialogues and, for features made of them, the turns of one system."""
    if undefined not in POLICIES:
        raise UsageError(f'undefined features are handled by one of {", ".join(POLICIES)}; got "{undefined}"')
    turns = None if responses is None else turns_of(responses, rejections=rejections)
    notes: list[str] = []
    names = tuple(table.frame["dialogue"])
    if turns is not None:
        match = matched(turns.dialogues, names, allowed=allow_unmatched, why=table.warnings)
        if match.only_turns or match.only_outcomes:
            notes.append(
                f"left out: {len(match.only_turns):,} dialogues without an outcome, {len(match.only_outcomes):,} "
                "without turns"
            )
        names, turns = match.common, turns.only(match.common)
    columns = [name for name in table.frame.columns if name not in ("dialogue", "outcome", "group")]
    known = {} if turns is None else all_features(turns)
    chosen, absent = _known_somewhere(candidates(features, turns, columns, least=least), features, known)
    if absent:
        notes.append(f"left out, undefined in every dialogue: {', '.join(absent)}")
    _refuse_no_features(chosen)
    kept = table.frame["dialogue"].is_in(list(names)).to_numpy()
    _refuse_namesakes([name for name in chosen if name in known and name in columns])
    raw = {name: known[name] if name in known else table.numbers(name).to_numpy()[kept] for name in chosen}
    y = table.frame["outcome"].to_numpy()[kept].astype(np.float64)
    x, rows, means, told = _defined(raw, undefined)
    _refuse_hopeless(y[rows])
    return Design(
        tuple(chosen),
        x,
        y[rows],
        tuple(np.array(names)[rows].tolist()),
        _groups(table, kept, rows),
        table.outcome,
        undefined,
        rejections,
        means,
        None if turns is None else turns.only(np.array(names)[rows].tolist()),
        tuple(name for name in chosen if name not in known),
        least,
        features if isinstance(features, str) else "+".join(features),
        (*notes, *told),
    )


def _known_somewhere(
    names: Sequence[str], asked: str | Sequence[str], known: Mapping[str, Array]
) -> tuple[list[str], list[str]]:
    """The features that some dialogue has, and those of a set that none has; features asked for by name all stay."""
    named = {one.strip() for one in (asked.split("+") if isinstance(asked, str) else asked)}
    absent = [name for name in names if name not in named and name in known and np.isnan(known[name]).all()]
    return [name for name in names if name not in absent], absent


def filled(raw: Mapping[str, Array], names: Sequence[str], undefined: Undefined, means: Mapping[str, float]) -> Array:
    """Features of new rows as a table, what is undefined filled in as it was for the model; NaN where rows drop."""
    columns = []
    for name in names:
        values = np.asarray(raw[name], dtype=np.float64)
        if undefined != "drop":
            values = np.where(np.isnan(values), 0.0 if undefined == "zero" else means[name], values)
        columns.append(values)
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _defined(
    raw: Mapping[str, Array], undefined: Undefined
) -> tuple[Array, NDArray[np.bool_], dict[str, float], list[str]]:
    table = np.stack(list(raw.values()), axis=1).astype(np.float64) if raw else np.zeros((0, 0))
    holes = np.isnan(table)
    empty = [name for name, column in zip(raw, holes.T, strict=True) if column.all()]
    if empty:
        raise DataError(
            f"{', '.join(empty)} is undefined in every dialogue",
            fix="leave it out of the features, or take another set",
        )
    means = {name: float(np.nanmean(table[:, place])) for place, name in enumerate(raw)}
    rows: NDArray[np.bool_] = np.ones(table.shape[0], dtype=np.bool_)
    told = []
    if holes.any():
        worst = ", ".join(f"{name} in {int(holes[:, place].sum()):,}" for place, name in _worst(raw, holes))
        if undefined == "drop":
            rows = np.asarray(~holes.any(axis=1))
            left = f"{int((~rows).sum()):,} of {rows.size:,} dialogues left out"
            told.append(f"undefined features: {POLICIES[undefined]}; {left} ({worst})")
        else:
            told.append(f"undefined features: {POLICIES[undefined]} ({worst} of {rows.size:,} dialogues)")
    if not rows.any():
        fix = "impute-mean or zero fills them in; or take fewer features"
        raise DataError("every dialogue has an undefined feature, so none is left", fix=fix)
    return filled(raw, list(raw), undefined, means)[rows], rows, means, told


def _worst(raw: Mapping[str, Array], holes: NDArray[np.bool_]) -> list[tuple[int, str]]:
    counts = holes.sum(axis=0)
    order = sorted((place for place in range(counts.size) if counts[place]), key=lambda place: -int(counts[place]))
    names = list(raw)
    return [(place, names[place]) for place in order[:3]]


def _groups(table: Dialogues, kept: NDArray[np.bool_], rows: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    if not table.grouped:
        return None
    group = table.frame["group"].filter(kept).filter(rows)
    alone = [f"\0{name}" for name in table.frame["dialogue"].filter(kept).filter(rows)]
    named = [own if one is None else one for one, own in zip(group, alone, strict=True)]
    return np.unique(np.array(named), return_inverse=True)[1].astype(np.int64)


def _refuse_hopeless(y: Array) -> None:
    if y.size < 2:
        raise DataError("a model needs at least two dialogues", got=int(y.size))
    if np.ptp(y) == 0:
        raise DataError("every dialogue has the same outcome, so there is nothing to explain", got=float(y[0]))


def _refuse_no_features(names: Sequence[str]) -> None:
    if not names:
        raise DataError(
            "there is no feature to explain the outcome by", fix="lower --min-per-dialogue, or take another feature set"
        )


def _refuse_namesakes(names: Sequence[str]) -> None:
    if names:
        raise DataError(
            f'"{names[0]}" is a column of the dialogues and a feature of their turns',
            fix="give the column another name",
        )
