"""Per-class readings of a confusion table: precision, recall, F, their averages, kappa."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np

from demur.core.arrays import Array
from demur.core.stats.measure import Frame, Measure
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError

Average = Literal["macro", "weighted", "micro"]
Part = Literal["precision", "recall", "f1"]


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """How often each label was predicted where another was right; the last row of `counts` holds the rejected.

    `counts[..., p, a]` is the weight of rows predicted `labels[p]` whose actual label is `labels[a]`; leading axes,
    if any, are replicates. Rejected is never a class of its own.

    >>> Confusion.of(["yes", "no", "yes"], ["yes", "yes", None]).counts.tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """

    labels: tuple[str, ...]
    counts: Array
    n: int

    @classmethod
    def of(
        cls, actual: Sequence[str], predicted: Sequence[str | None], weight: Sequence[float] | None = None
    ) -> Confusion:
        """Confusion of label lists; a prediction of None is rejected."""
        weights = [1.0] * len(actual) if weight is None else list(weight)
        if not len(actual) == len(predicted) == len(weights):
            raise DataError(
                f"actual and predicted labels must be lists of one length; got {len(actual)} and {len(predicted)}"
            )
        frame = nw.from_dict(
            {"actual": list(actual), "predicted": list(predicted), "weight": weights}, backend="polars"
        )
        return cls.from_frame(frame)

    @classmethod
    def from_frame(cls, frame: Frame) -> Confusion:
        """Confusion reduced inside the engine that holds the rows `actual`, `predicted` (null: rejected), `weight`."""
        cells = (
            frame.lazy()
            .group_by("actual", "predicted", "weight")  # equal weights are counted, so no order of summing can matter
            .agg(rows=nw.len())
            .collect("polars")
            .to_native()
        )
        rows = cells.select("actual", "predicted", "weight", "rows").rows()
        return cls.from_cells(
            [(str(a), None if p is None else str(p), float(w) * k) for a, p, w, k in rows],
            n=sum(row[3] for row in rows),
        )

    @classmethod
    def from_cells(cls, cells: Sequence[tuple[str, str | None, float]], *, n: int | None = None) -> Confusion:
        """Confusion from (actual, predicted, weight) triples, as a published table gives them."""
        if not cells:
            raise DataError("a confusion table needs at least one row; the table is empty")
        labels = sorted({a for a, _, _ in cells} | {p for _, p, _ in cells if p is not None})
        place = {label: index for index, label in enumerate(labels)}
        counts = np.zeros((len(labels) + 1, len(labels)))
        for actual, predicted, weight in sorted(cells, key=repr):
            counts[len(labels) if predicted is None else place[predicted], place[actual]] += weight
        return cls(tuple(labels), counts, int(counts.sum()) if n is None else n)

    @property
    def total(self) -> Any:
        """Weight of all rows, the rejected included."""
        return self.counts.sum(axis=(-2, -1))

    @property
    def hits(self) -> Array:
        """Weight of right predictions per label."""
        return np.diagonal(self.counts[..., :-1, :], axis1=-2, axis2=-1)

    @property
    def support(self) -> Array:
        """Weight of each actual label, the rejected included."""
        return np.asarray(self.counts.sum(axis=-2))

    @property
    def predicted(self) -> Array:
        """Weight of each predicted label."""
        return np.asarray(self.counts[..., :-1, :].sum(axis=-1))

    @property
    def rejected(self) -> Any:
        """Weight of the rows without a prediction."""
        return self.counts[..., -1, :].sum(axis=-1)

    def __add__(self, other: Confusion) -> Confusion:
        return Confusion.from_cells([*self.cells(), *other.cells()], n=self.n + other.n)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Confusion):
            return NotImplemented
        return self.labels == other.labels and self.n == other.n and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def cells(self) -> list[tuple[str, str | None, float]]:
        """The filled cells as (actual, predicted, weight)."""
        names: list[str | None] = [*self.labels, None]
        return [
            (actual, predicted, float(self.counts[row, column]))
            for row, predicted in enumerate(names)
            for column, actual in enumerate(self.labels)
            if self.counts[row, column]
        ]

    def digest(self) -> str:
        """A name for the data behind the table, independent of row order."""
        cells = [(actual, predicted, f"{weight:.9g}") for actual, predicted, weight in self.cells()]
        return hashlib.blake2b(repr((cells, self.n)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class ConfusionMeasure(Measure):
    """A measure that reads the confusion table."""

    def reduce(self, frame: Frame) -> Confusion:
        """The confusion table of rows with `actual`, `predicted` and `weight`."""
        return Confusion.from_frame(frame)


@dataclass(frozen=True)
class Accuracy(ConfusionMeasure):
    """Right predictions / all rows, the rejected included. Higher is better.

    It equals the class-size weighted recall. Reference: Dzikovska et al. (2012), section 3.

    >>> Accuracy().finish(Confusion.of(["yes", "no", "yes", "no"], ["yes", "yes", None, "no"])).item()
    0.5
    """

    name: ClassVar = "accuracy"
    title: ClassVar = "accuracy"
    better: ClassVar = "higher"
    reference: ClassVar = "Dzikovska et al. (2012), section 3"
    interval: ClassVar = "share"

    def finish(self, totals: Confusion) -> Array:
        """The diagonal over everything."""
        return ratio(totals.hits.sum(axis=-1), totals.total)

    def why_undefined(self, totals: Confusion) -> str:
        """Rows without weight have no shares."""
        return "the rows weigh nothing"


@dataclass(frozen=True)
class Kappa(ConfusionMeasure):
    """Cohen's kappa between predictions and actual labels: agreement beyond chance. Higher is better.

    1 is full agreement, 0 chance. `rejected="own"` counts a rejection as one more label that is never right,
    `"out"` leaves rejected rows out; the default is "own", since leaving rows out flatters. Two annotators are
    compared by giving one as predictions. Reference: Cohen (1960).

    >>> Kappa().finish(Confusion.of(["a", "a", "b", "b"], ["a", "a", "b", "a"])).item()
    0.5
    """

    rejected: Literal["own", "out"] = "own"

    name: ClassVar = "kappa"
    title: ClassVar = "Cohen's kappa"
    better: ClassVar = "higher"
    reference: ClassVar = "Cohen (1960)"

    def __post_init__(self) -> None:
        if self.rejected not in ("own", "out"):
            raise UsageError(f'rejected rows are their "own" label or left "out"; got "{self.rejected}"')

    def finish(self, totals: Confusion) -> Array:
        """(observed - expected) / (1 - expected) agreement."""
        kept = totals.counts if self.rejected == "own" else totals.counts[..., :-1, :]
        size = kept.sum(axis=(-2, -1))
        rows, columns = kept.sum(axis=-1)[..., : len(totals.labels)], kept.sum(axis=-2)
        observed = ratio(totals.hits.sum(axis=-1), size)
        expected = ratio((rows * columns).sum(axis=-1), np.square(size))
        return ratio(observed - expected, 1 - expected)

    def why_undefined(self, totals: Confusion) -> str:
        """Chance agreement is complete, or no rows are left."""
        return "all rows have one label, so chance agreement is already complete (or no row is left)"


@dataclass(frozen=True)
class ClassAverage(ConfusionMeasure):
    """Precision, recall or F1 averaged over the classes that occur. Higher is better.

    `macro` is the plain mean of the class values (macro F is the mean of the class F1s); `weighted` weighs classes by
    size, which Dzikovska et al. call "micro average"; `micro` pools the counts. Recall divides by all actual items of
    the class, rejected ones included. Rejected is never a class. A class that is never predicted has no precision;
    in the averages it counts as 0, as in the paper's Table 2. Only labels that occur as actual labels are averaged.
    Reference: Dzikovska et al. (2012), Table 2.

    >>> ClassAverage("macro", "recall").finish(Confusion.of(["a", "a", "b", "b"], ["a", "a", "b", None])).item()
    0.75
    """

    average: Average = "macro"
    part: Part = "f1"

    name: ClassVar = "class_average"
    title: ClassVar = "average over classes"
    better: ClassVar = "higher"
    reference: ClassVar = "Dzikovska et al. (2012), Table 2"

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted", "micro") or self.part not in (
            "precision",
            "recall",
            "f1",
        ):
            raise UsageError(
                f"an average is macro, weighted or micro of precision, recall or f1; got {self.average} {self.part}"
            )

    def finish(self, totals: Confusion) -> Array:
        """The chosen average of the chosen part."""
        if self.average == "micro":
            hits, returned, total = totals.hits.sum(axis=-1), totals.predicted.sum(axis=-1), totals.total
            return {
                "precision": ratio(hits, returned),
                "recall": ratio(hits, total),
                "f1": ratio(2 * hits, returned + total),
            }[self.part]
        values = np.nan_to_num(class_values(totals)[self.part], nan=0.0)
        weight = totals.support if self.average == "weighted" else (totals.support > 0).astype(np.float64)
        return ratio((values * weight).sum(axis=-1), weight.sum(axis=-1))

    def why_undefined(self, totals: Confusion) -> str:
        """Pooled precision needs a prediction."""
        return "every row was rejected"


def class_values(confusion: Confusion) -> dict[Part, Array]:
    """Precision, recall and F1 per label; NaN where it was never predicted (precision) or never occurred (recall)."""
    hits, predicted, support = confusion.hits, confusion.predicted, confusion.support
    return {
        "precision": ratio(hits, predicted),
        "recall": ratio(hits, support),
        "f1": ratio(2 * hits, predicted + support),
    }


def majority_baseline(confusion: Confusion) -> Confusion:
    """What always predicting the most frequent actual label would give; the first by name among equals."""
    winner = confusion.labels[int(np.argmax(confusion.support))]
    sizes = zip(confusion.labels, confusion.support, strict=True)
    return Confusion.from_cells([(label, winner, float(size)) for label, size in sizes if size], n=confusion.n)
