"""What is known of each dialogue from the turns of one component: scores by class, averages, and confusions.

Names are those of Dzikovska et al. (2012), Table 4. Their `microaverage` weighs classes by size (`weighted` elsewhere
in this package).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.columns import nearest
from demur.data.responses import Responses
from demur.errors import DataError, UsageError
from demur.measures.classes import ClassAverage, Confusion, Kappa, class_values
from demur.measures.sweep import ratio

Array = NDArray[np.float64]

PARTS: Mapping[str, Any] = {"fmeasure": "f1", "precision": "precision", "recall": "recall"}
"""How the paper calls the parts of a score, and how this package does."""

MIN_PER_DIALOGUE = 2.0
"""How often a confusion must occur in a dialogue, on average, to be a feature."""

OUT_OF_SCOPE = "out_of_scope"

Rejections = Literal["counted", "left-out"]

REJECTIONS: Mapping[Rejections, str] = {
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

    def mended(self, predicted: str, actual: str, share: float) -> Turns:
        """As if this share of a confusion had been classified right."""
        counts = self.counts.copy()
        wrong, right = self.labels.index(predicted), self.labels.index(actual)
        moved = share * counts[:, wrong, right]
        counts[:, wrong, right] -= moved
        counts[:, right, right] += moved
        return replace(self, counts=counts)


def turns_of(responses: Responses, *, pooled: bool = False, rejections: Rejections = "counted") -> Turns:
    """The confusions of one system by dialogue; `pooled` takes all turns for one dialogue."""
    if rejections not in REJECTIONS:
        raise UsageError(f'rejections are one of {", ".join(REJECTIONS)}; got "{rejections}"')
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
            fix="name the column with --map dialogue=COLUMN",
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
