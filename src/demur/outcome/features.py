"""Features of each dialogue from the turns of one component, and the rows of an outcome model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.columns import nearest
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.options import MIN_PER_DIALOGUE, Rejections, Undefined, features_text
from demur.outcome.table import Dialogues, match_dialogues
from demur.returns.classes import ClassAverage, Confusion, Kappa, class_values
from demur.returns.table import Responses

PARTS: Mapping[str, Any] = {"fmeasure": "f1", "precision": "precision", "recall": "recall"}
"""How the paper calls the parts of a score, and how this package does."""

OUT_OF_SCOPE = "out_of_scope"

REJECTION_NOTES: Mapping[Rejections, str] = {
    "counted": "rejected turns lower recall and are in no confusion; their share is the feature rejected",
    "left-out": "rejected turns are left out, as if they had not been",
}
"""What becomes of turns to which the system gave no label."""


@dataclass(frozen=True, eq=False)
class Turns:
    """How often each label was predicted where another was right, by dialogue; `counts[d, -1]` are the rejected."""

    dialogues: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Array

    @cached_property
    def confusion(self) -> Confusion:
        """The tables of all dialogues, one behind the other."""
        return Confusion(self.labels, self.counts, int(self.counts.sum()))

    @cached_property
    def pooled(self) -> Turns:
        """All dialogues as one."""
        return Turns(("all",), self.labels, self.counts.sum(axis=0, keepdims=True))

    def only(self, dialogues: Sequence[str]) -> Turns:
        """These dialogues, in this order."""
        place = {name: number for number, name in enumerate(self.dialogues)}
        return replace(self, dialogues=tuple(dialogues), counts=self.counts[[place[name] for name in dialogues]])

    def with_labels(self, labels: Sequence[str]) -> Turns:
        """With further labels that no turn has."""
        every = tuple(sorted({*self.labels, *labels}))
        place = [every.index(label) for label in self.labels]
        counts = np.zeros((len(self.dialogues), len(every) + 1, len(every)))
        counts[np.ix_(range(len(self.dialogues)), [*place, len(every)], place)] = self.counts
        return Turns(self.dialogues, every, counts)

    @cached_property
    def misclassified(self) -> Array:
        """How many turns of each dialogue got a wrong label; the rejected got none."""
        table = self.counts[:, :-1, :]
        return np.asarray(table.sum(axis=(1, 2)) - np.trace(table, axis1=1, axis2=2))

    def cell(self, predicted: str, actual: str) -> Array:
        """How often one label was predicted where the other was right, by dialogue."""
        return self.counts[:, self.labels.index(predicted), self.labels.index(actual)]

    def corrected(self, predicted: str, actual: str, share: float) -> Turns:
        """The turns if this share of a confusion had been classified right."""
        counts = self.counts.copy()
        wrong, right = self.labels.index(predicted), self.labels.index(actual)
        moved = share * counts[:, wrong, right]
        counts[:, wrong, right] -= moved
        counts[:, right, right] += moved
        return replace(self, counts=counts)


def turns_of(responses: Responses, *, pooled: bool = False, rejections: Rejections = "counted") -> Turns:
    """The confusions of one system by dialogue; `pooled` takes all turns for one dialogue."""
    if rejections not in REJECTION_NOTES:
        raise UsageError(f'rejections are one of {", ".join(REJECTION_NOTES)}; got "{rejections}"')
    frame = responses.frame
    if len(responses.systems) > 1:
        raise UsageError(f"the turns are of one system at a time; there are {', '.join(responses.systems)}")
    unknown = frame["target"].is_null()
    if unknown.any():
        raise DataError(
            f"{int(unknown.sum()):,} turns have no target", fix="confusions need the right label of every turn"
        )
    if not pooled and frame["dialogue"].null_count():
        raise DataError(
            f"{frame['dialogue'].null_count():,} turns are of no dialogue",
            fix="name the column with `columns`, as dialogue=COLUMN",
        )
    table = frame.select(dialogue=pl.lit("all") if pooled else pl.col("dialogue"), weight="weight", **_turn_labels())
    sums = table.group_by("dialogue", "actual", "predicted").agg(pl.col("weight").sum())
    labels = sorted({*sums["actual"], *sums["predicted"].drop_nulls()})
    names = sorted(sums["dialogue"].unique())
    place = {label: number for number, label in enumerate(labels)}
    rank = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(labels) + 1, len(labels)))
    for dialogue, actual, predicted, weight in sums.iter_rows():
        row = len(labels) if predicted is None else place[predicted]
        counts[rank[dialogue], row, place[actual]] += weight
    if rejections == "left-out":
        counts[:, -1] = 0.0
    return Turns(tuple(names), tuple(labels), counts)


def unknown_turns(responses: Responses, labels: Sequence[str]) -> pl.Series:
    """Which turns have a right or a predicted label that is none of these."""
    known = pl.Series(labels, dtype=pl.String).implode()
    table = responses.frame.select(**_turn_labels())
    return table.select(~(pl.col("actual").is_in(known) & pl.col("predicted").is_in(known).fill_null(True))).to_series()


def _turn_labels() -> dict[str, pl.Expr]:
    """The right label of a turn, of several the one that was predicted, and the predicted one; null if rejected."""
    return {
        "actual": pl.when("answered", pl.col("target").list.contains(pl.col("prediction")))
        .then("prediction")
        .otherwise(pl.col("target").list.first().fill_null(OUT_OF_SCOPE)),
        "predicted": pl.when("answered").then("prediction"),
    }


def confusion_name(predicted: str, actual: str) -> str:
    """What the share of a confusion among all misclassifications is called.

    >>> confusion_name("pc_incomplete", "contradictory")
    'predicted-pc_incomplete-actual-contradictory'
    """
    return f"predicted-{predicted}-actual-{actual}"


def score_features(turns: Turns, part: str) -> dict[str, Array]:
    """The averages and the class scores of one part of the scores, by dialogue; NaN where undefined."""
    kind = PARTS[part]
    values = class_values(turns.confusion)[kind]
    found = {
        f"{part}.microaverage": np.asarray(ClassAverage("weighted", kind).finish(turns.confusion)),
        f"{part}.macroaverage": np.asarray(ClassAverage("macro", kind).finish(turns.confusion)),
    }
    return found | {f"{part}.{label}": values[:, place] for place, label in enumerate(turns.labels)}


def confusion_features(turns: Turns) -> dict[str, Array]:
    """Every confusion as a share of its dialogue's misclassifications; NaN where there are none."""
    return {
        confusion_name(predicted, actual): ratio(turns.cell(predicted, actual), turns.misclassified)
        for predicted in turns.labels
        for actual in turns.labels
        if predicted != actual
    }


def frequent_confusions(turns: Turns, least: float = MIN_PER_DIALOGUE) -> tuple[str, ...]:
    """The confusions that occur at least so often in a dialogue, on average."""
    return tuple(
        confusion_name(predicted, actual)
        for predicted in turns.labels
        for actual in turns.labels
        if predicted != actual and turns.cell(predicted, actual).sum() >= max(least * len(turns.dialogues), 1e-12)
    )


def all_features(turns: Turns) -> dict[str, Array]:
    """Everything that can be computed of the turns, by name; the share of rejected turns and kappa too.

    Kappa is the agreement with the right labels beyond chance, which PARADISE takes for task success.
    """
    found: dict[str, Array] = {}
    for part in PARTS:
        found |= score_features(turns, part)
    found |= confusion_features(turns)
    total = turns.counts.sum(axis=(1, 2))
    rejected = ratio(turns.counts[:, -1, :].sum(axis=1), total)
    return {**found, "rejected": rejected, "kappa": np.asarray(Kappa().finish(turns.confusion))}


SETS: Mapping[str, tuple[str, ...]] = {
    "scores.fm": ("fmeasure",),
    "scores.f": ("fmeasure",),
    "scores.precision": ("precision",),
    "scores.recall": ("recall",),
    "scores.all": ("fmeasure", "precision", "recall"),
    "conf": ("conf",),
    "full": ("conf", "fmeasure", "precision", "recall"),
}
"""Feature sets by the paper's names, and the parts they are made of; they can be joined by +."""


def candidates(asked: str | Sequence[str], turns: Turns | None, columns: Sequence[str], *, least: float) -> list[str]:
    """The names of features that a set, several sets joined by +, or a list of names stands for."""
    pieces = asked.split("+") if isinstance(asked, str) else list(asked)
    names: dict[str, None] = {}
    for piece in (one.strip() for one in pieces):
        if piece in SETS:
            names.update(dict.fromkeys(_of_set(piece, turns, least)))
        else:
            names[piece] = None
    known = {*columns, *(() if turns is None else all_features(turns))}
    for name in names:
        if name not in known:
            raise UsageError(f'there is no feature "{name}"; {nearest(name, [*SETS, *sorted(known)])}')
    return list(names)


def _of_set(name: str, turns: Turns | None, least: float) -> list[str]:
    if turns is None:
        raise UsageError(f'the feature set "{name}" is made from turns; give a log of turns, or name columns')
    found: list[str] = []
    for part in SETS[name]:
        found += frequent_confusions(turns, least) if part == "conf" else score_features(turns, part)
    return found


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
        match = match_dialogues(turns.dialogues, names, allowed=allow_unmatched, why=table.warnings)
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
        features_text(features),
        (*notes, *told),
    )


def _known_somewhere(
    names: Sequence[str], asked: str | Sequence[str], known: Mapping[str, Array]
) -> tuple[list[str], list[str]]:
    """The features that some dialogue has, and those of a set that none has; features asked for by name all stay."""
    named = {one.strip() for one in (asked.split("+") if isinstance(asked, str) else asked)}
    absent = [name for name in names if name not in named and name in known and np.isnan(known[name]).all()]
    return [name for name in names if name not in absent], absent


def fill_undefined(
    raw: Mapping[str, Array], names: Sequence[str], undefined: Undefined, means: Mapping[str, float]
) -> Array:
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
    return fill_undefined(raw, list(raw), undefined, means)[rows], rows, means, told


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
            "there is no feature to explain the outcome by", fix="lower `min_per_dialogue`, or take another feature set"
        )


def _refuse_namesakes(names: Sequence[str]) -> None:
    if names:
        raise DataError(
            f'"{names[0]}" is a column of the dialogues and a feature of their turns',
            fix="give the column another name",
        )
