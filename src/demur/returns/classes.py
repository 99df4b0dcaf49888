"""Labels against labels: confusion, per-class scores, their averages and kappa of each system."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.writing import write_whole
from demur.core.show.results import Results, Shown, plain
from demur.core.show.safe import csv_text
from demur.core.stats.intervals import Figure, exact_binomial, expanded_percentiles, normal, student
from demur.core.stats.measure import Frame, Measure, Score
from demur.core.stats.resampling import Draws, Rows, Spread, multinomial, numbered_units, units_by_cell
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.returns.curves import effective_inputs
from demur.returns.judging import OUT_OF_SCOPE, are_cells
from demur.returns.measures import RETURNS
from demur.returns.scope import SCOPE
from demur.returns.table import Responses
from demur.returns.tally import dialogues_in, reliable

Average = Literal["macro", "weighted", "micro"]
Part = Literal["precision", "recall", "f1"]
AVERAGES: tuple[Average, ...] = ("macro", "weighted", "micro")
PARTS: tuple[Part, ...] = ("precision", "recall", "f1")

CHUNK = 100
"""Replicates of a confusion table held at a time, where it has few cells."""

CELLS_AT_ONCE = 2_000_000
"""Cells of replicates held at a time, or those of one replicate where it has more."""

MOST_CLASSES = 200
"""Classes that are shown; of more, the most frequent and the worst. A CSV file has all."""

MOST_CELLS = 1000
"""Confusions that are shown where classes are more than that; `--confusion` writes all."""


@dataclass(frozen=True, eq=False)
class ConfusionCells:
    """Where the filled cells of a confusion table stand: by the predicted label, the rejected last, then by the actual.

    `predicted` and `actual` are places among the labels, as many as there are cells; the place of rejected rows is
    one beyond the last label.
    """

    labels: tuple[str, ...]
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]

    @cached_property
    def hits(self) -> NDArray[np.int64]:
        """The cells of right predictions."""
        return np.flatnonzero(self.predicted == self.actual)

    @cached_property
    def rejected(self) -> NDArray[np.int64]:
        """The cells of rejected rows."""
        return np.flatnonzero(self.predicted == len(self.labels))

    @cached_property
    def _by_actual(self) -> _Sums:
        return _Sums.of(self.actual, len(self.labels))

    @cached_property
    def _by_predicted(self) -> _Sums:
        return _Sums.of(self.predicted, len(self.labels) + 1)

    def by_actual(self, weight: Array) -> Array:
        """Weights of cells summed by the actual label."""
        return self._by_actual(weight)

    def by_predicted(self, weight: Array) -> Array:
        """Weights of cells summed by the predicted label, the rejected left out."""
        return self._by_predicted(weight)[..., :-1]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of columns by the place that each belongs to, along leading axes, in one fixed order."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    present: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, place: NDArray[np.int64], size: int) -> _Sums:
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        return cls(order, starts, place[order][starts], size)

    def __call__(self, weight: Array) -> Array:
        sums = np.zeros((*weight.shape[:-1], self.size))
        if self.starts.size:
            sums[..., self.present] = np.add.reduceat(weight[..., self.order], self.starts, axis=-1)
        return sums


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each label was predicted where another was right: the filled cells, and the weight of each.

    `weights[..., c]` is the weight of the rows in cell c of `places`; leading axes, if any, are replicates. Rejected
    is never a class of its own. Only filled cells take room, so labels may be very many.

    >>> Confusion.of(["yes", "no", "yes"], ["yes", "yes", None]).counts.tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """

    places: ConfusionCells
    weights: Array
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
        columns = {"actual": list(actual), "predicted": list(predicted), "weight": weights}
        return cls.from_frame(nw.from_dict(columns, backend="polars"))

    @classmethod
    def from_frame(cls, frame: Frame) -> Confusion:
        """Confusion reduced inside the engine that holds the rows `actual`, `predicted` (null: rejected), `weight`."""
        columns = ("actual", "predicted", "weight")  # equal weights are counted, so no order of summing can matter
        cells = frame.lazy().group_by(*columns).agg(rows=nw.len()).collect("polars").to_native()
        weighed = cells.with_columns(weight=pl.col("weight").cast(pl.Float64) * pl.col("rows"))
        return cls.from_table(weighed, n=int(cells["rows"].sum()))

    @classmethod
    def from_cells(cls, cells: Sequence[tuple[str, str | None, float]], *, n: int | None = None) -> Confusion:
        """Confusion from (actual, predicted, weight) triples, as a published table gives them."""
        schema = {"actual": pl.String, "predicted": pl.String, "weight": pl.Float64}
        return cls.from_table(pl.DataFrame(list(cells), schema=schema, orient="row"), n=n)

    @classmethod
    def from_table(cls, cells: pl.DataFrame, *, n: int | None = None) -> Confusion:
        """Confusion from a table of `actual`, `predicted` (null: rejected) and `weight`; equal cells are added."""
        if cells.is_empty():
            raise DataError("a confusion table needs at least one row; the table is empty")
        texts = cells.select(pl.col("actual", "predicted").cast(pl.String), pl.col("weight").cast(pl.Float64))
        labels = pl.concat([texts["actual"], texts["predicted"].alias("actual")]).drop_nulls().unique().sort()
        kinds = pl.Enum(labels)
        places = texts.with_columns(pl.col("actual", "predicted").cast(kinds).to_physical().cast(pl.Int64))
        places = places.with_columns(pl.col("predicted").fill_null(len(labels))).sort("predicted", "actual", "weight")
        sums = places.group_by("predicted", "actual", maintain_order=True).agg(pl.col("weight").sum())
        filled = sums.filter(pl.col("weight") != 0)
        stand = ConfusionCells(tuple(labels), filled["predicted"].to_numpy(), filled["actual"].to_numpy())
        weights = filled["weight"].to_numpy()
        return cls(stand, weights, int(weights.sum()) if n is None else n)

    @classmethod
    def dense(cls, labels: tuple[str, ...], counts: Array, n: int) -> Confusion:
        """Confusion from full tables, predicted by actual, whose last row holds the rejected; leading axes are kept.

        >>> Confusion.dense(("a", "b"), np.array([[2.0, 1.0], [0.0, 3.0], [0.0, 0.0]]), 6).hits.tolist()
        [2.0, 3.0]
        """
        size = len(labels)
        flat = counts.reshape(*counts.shape[:-2], (size + 1) * size)
        filled = np.flatnonzero(flat.reshape(-1, flat.shape[-1]).any(axis=0))
        return cls(ConfusionCells(labels, filled // size, filled % size), flat[..., filled], n)

    def drawn(self, weights: Array) -> Confusion:
        """The same cells with other weights, such as those of replicates."""
        return Confusion(self.places, weights, self.n)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, actual or predicted, in order."""
        return self.places.labels

    @property
    def counts(self) -> Array:
        """The full table, predicted by actual, the rejected in its last row: for few labels, as it is their square."""
        size = len(self.labels)
        flat = np.zeros((*self.weights.shape[:-1], (size + 1) * size))
        flat[..., self.places.predicted * size + self.places.actual] = self.weights
        return flat.reshape(*self.weights.shape[:-1], size + 1, size)

    @property
    def total(self) -> Any:
        """Weight of all rows, the rejected included."""
        return self.weights.sum(axis=-1)

    @cached_property
    def hits(self) -> Array:
        """Weight of right predictions per label."""
        right = np.zeros((*self.weights.shape[:-1], len(self.labels)))
        right[..., self.places.actual[self.places.hits]] = self.weights[..., self.places.hits]
        return right

    @cached_property
    def support(self) -> Array:
        """Weight of each actual label, the rejected included."""
        return self.places.by_actual(self.weights)

    @cached_property
    def predicted(self) -> Array:
        """Weight of each predicted label."""
        return self.places.by_predicted(self.weights)

    @cached_property
    def rejected_support(self) -> Array:
        """Weight of each actual label among the rejected."""
        sums = np.zeros((*self.weights.shape[:-1], len(self.labels)))
        sums[..., self.places.actual[self.places.rejected]] = self.weights[..., self.places.rejected]
        return sums

    @property
    def rejected(self) -> Any:
        """Weight of the rows without a prediction."""
        return self.weights[..., self.places.rejected].sum(axis=-1)

    @cached_property
    def wrong(self) -> NDArray[np.int64]:
        """The cells in which one label is taken for another, the heaviest first."""
        apart = (self.places.predicted != self.places.actual) & (self.places.predicted < len(self.labels))
        cells = np.flatnonzero(apart & (self.weights > 0))
        return cells[np.argsort(-self.weights[cells], kind="stable")]

    @property
    def worst(self) -> tuple[str, str, float] | None:
        """The most frequent confusion as (actual, predicted, weight); None where no label is taken for another."""
        if not self.wrong.size:
            return None
        ((actual, predicted, weight),) = self.cells(self.wrong[:1])
        return actual, str(predicted), weight

    def __add__(self, other: Confusion) -> Confusion:
        return Confusion.from_table(pl.concat([self.frame(), other.frame()]), n=self.n + other.n)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Confusion):
            return NotImplemented
        mine, theirs = self.places, other.places
        return (
            mine.labels == theirs.labels
            and self.n == other.n
            and np.array_equal(mine.predicted, theirs.predicted)
            and np.array_equal(mine.actual, theirs.actual)
            and np.array_equal(self.weights, other.weights)
        )

    __hash__ = None  # type: ignore[assignment]

    def cells(self, chosen: NDArray[np.int64] | None = None) -> list[tuple[str, str | None, float]]:
        """The filled cells, or some of them, as (actual, predicted, weight)."""
        return self.frame(chosen).rows()

    def frame(self, chosen: NDArray[np.int64] | None = None) -> pl.DataFrame:
        """The filled cells, or some of them, as a table of actual, predicted (null: rejected) and weight."""
        which = np.arange(self.weights.size) if chosen is None else chosen
        names = pl.Series([*self.labels, None], dtype=pl.String)
        columns = {
            "actual": names.gather(self.places.actual[which]),
            "predicted": names.gather(self.places.predicted[which]),
            "weight": self.weights[which].astype(np.float64),
        }
        return pl.DataFrame(columns)

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
        out = self.rejected == "out"
        columns = totals.support - totals.rejected_support if out else totals.support
        size = columns.sum(axis=-1)
        observed = ratio(totals.hits.sum(axis=-1), size)
        expected = ratio((totals.predicted * columns).sum(axis=-1), np.square(size))
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
        if self.average not in AVERAGES or self.part not in PARTS:
            rule = "an average is macro, weighted or micro of precision, recall or f1"
            raise UsageError(f"{rule}; got {self.average} {self.part}")

    def finish(self, totals: Confusion) -> Array:
        """The chosen average of the chosen part."""
        if self.average == "micro":
            return _scores(totals.hits.sum(axis=-1), totals.predicted.sum(axis=-1), totals.total)[self.part]
        values = np.nan_to_num(class_values(totals)[self.part], nan=0.0)
        weight = totals.support if self.average == "weighted" else (totals.support > 0).astype(np.float64)
        return ratio((values * weight).sum(axis=-1), weight.sum(axis=-1))

    def why_undefined(self, totals: Confusion) -> str:
        """Pooled precision needs a prediction."""
        return "every row was rejected"


def class_values(confusion: Confusion) -> dict[Part, Array]:
    """Precision, recall and F1 per label; NaN where it was never predicted (precision) or never occurred (recall)."""
    return _scores(confusion.hits, confusion.predicted, confusion.support)


def _scores(hits: Array, predicted: Array, support: Array) -> dict[Part, Array]:
    f1 = ratio(2 * hits, predicted + support)
    return {"precision": ratio(hits, predicted), "recall": ratio(hits, support), "f1": f1}


def majority_baseline(confusion: Confusion) -> Confusion:
    """What always predicting the most frequent actual label would give; the first by name among equals."""
    winner = confusion.labels[int(np.argmax(confusion.support))]
    sizes = zip(confusion.labels, confusion.support, strict=True)
    return Confusion.from_cells([(label, winner, float(size)) for label, size in sizes if size], n=confusion.n)


CLASSES: dict[str, Measure] = {
    "accuracy": Accuracy(),
    "kappa": Kappa(),
    **{f"{average}_{part}": ClassAverage(average, part) for average in AVERAGES for part in PARTS},
}
"""Measures of labels against labels, by their key in JSON, tables and gates."""

MEASURES: dict[str, Measure] = {**RETURNS, **SCOPE, **CLASSES}
"""Measures of responses."""


@dataclass(frozen=True, eq=False, repr=False)
class ClassReport(Shown):
    """Per-class scores of one system, with averages and agreement."""

    system: str
    confusion: Confusion
    figures: Mapping[str, Figure]

    @property
    def signature(self) -> str:
        """How the numbers were made."""
        return Score.of(Accuracy(), self.confusion).signature

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The places of the classes that are shown: all where they are few, else the most frequent and the worst.

        The worst have the lowest F1 of those that occur, the more frequent first among equals.
        """
        confusion = self.confusion
        if len(confusion.labels) <= MOST_CLASSES:
            return np.arange(len(confusion.labels))
        f1, support = class_values(confusion)["f1"], confusion.support
        frequent = np.argsort(-support, kind="stable")[: MOST_CLASSES // 2]
        occurring = np.flatnonzero(support > 0)
        worst = occurring[np.lexsort((-support[occurring], f1[occurring]))]
        return np.concatenate([frequent, worst[~np.isin(worst, frequent)][: MOST_CLASSES - frequent.size]])

    @cached_property
    def shown_cells(self) -> NDArray[np.int64]:
        """The cells that are shown: all of few classes, else the heaviest confusions and those of the classes shown."""
        confusion, places = self.confusion, self.confusion.places
        if len(confusion.labels) <= MOST_CLASSES:
            return np.arange(confusion.weights.size)
        known = np.isin(places.actual, self.shown)
        aside = np.flatnonzero(known & ((places.predicted == places.actual) | (places.predicted == len(places.labels))))
        return np.sort(np.concatenate([confusion.wrong[:MOST_CELLS], aside]))

    @property
    def left_out(self) -> dict[str, int]:
        """How many classes and cells are not shown."""
        confusion = self.confusion
        return {
            "classes": len(confusion.labels) - self.shown.size,
            "cells": confusion.weights.size - self.shown_cells.size,
        }

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values; `confusion` is predicted -> actual -> count, the rejected apart.

        Of more than 200 classes the most frequent and the worst are there, and `left_out` says how many are not.
        """
        confusion = self.confusion
        few = len(confusion.labels) <= MOST_CLASSES
        table: dict[str, dict[str, float]] = {label: {} for label in confusion.labels} if few else {}
        rejected: dict[str, float] = {}
        for actual, predicted, count in confusion.cells(self.shown_cells):
            (rejected if predicted is None else table.setdefault(predicted, {}))[actual] = _whole(count)
        scores = {
            label: {**dict(zip(PARTS, parts, strict=True)), "support": _whole(support)}
            for label, *parts, support in self.class_frame()[self.shown].iter_rows()
        }
        baseline = majority_baseline(confusion)
        document: dict[str, Any] = plain(
            {
                "system": self.system,
                "n": confusion.n,
                "rejected": _whole(float(confusion.rejected)),
                "signature": self.signature,
                "accuracy": self.figures["accuracy"].value,
                "kappa": self.figures["kappa"].value,
                "kappa_without_rejected": float(Kappa("out").finish(confusion)),
                "per_class": scores,
                **{average: {part: self.figures[f"{average}_{part}"].value for part in PARTS} for average in AVERAGES},
                "majority_baseline": {
                    "label": baseline.labels[int(np.argmax(baseline.predicted))],
                    "accuracy": float(Accuracy().finish(baseline)),
                    "macro_f1": float(ClassAverage("macro", "f1").finish(baseline)),
                },
                "confusion": table,
                "rejected_by_class": rejected,
                **({} if few else {"classes": len(confusion.labels), "left_out": self.left_out}),
                "intervals": {name: figure.to_dict() for name, figure in self.figures.items()},
            }
        )
        return document

    def class_frame(self) -> pl.DataFrame:
        """Precision, recall, F1 and support of every class; undefined ones are NaN."""
        confusion, values = self.confusion, class_values(self.confusion)
        columns: dict[str, Any] = {"class": confusion.labels, **{str(part): values[part] for part in PARTS}}
        return pl.DataFrame({**columns, "support": confusion.support})

    def frame(self) -> pl.DataFrame:
        """The confusion table in long form, every filled cell of it."""
        return self.confusion.frame().rename({"weight": "count"})


class ClassReports(Results[ClassReport]):
    """The reports of one or more systems, which show themselves together."""

    def frame(self) -> pl.DataFrame:
        """Precision, recall and F1 of every class of every system."""
        frames = [one.class_frame().select(pl.lit(one.system).alias("system"), pl.all()) for one in self]
        return pl.concat(frames).fill_nan(None)

    def to_dict(self) -> dict[str, Any]:
        """The reports as plain values; a single one stands at the top."""
        documents = [one.to_dict() for one in self]
        found = documents[0] if len(documents) == 1 else {"systems": documents}
        return {**found, "notes": list(self.notes), "warnings": list(self.warnings)}


def write_confusion(reports: ClassReports, path: Path) -> None:
    """Write every filled cell of the confusion tables as CSV."""
    frames = [one.frame().select(pl.lit(one.system).alias("system"), pl.all()) for one in reports]
    write_whole(path, csv_text(pl.concat(frames)))


def class_reports(responses: Responses, *, level: float = 0.95, replicates: int = 1000, seed: int = 0) -> ClassReports:
    """Per-class scores of every system; targets and predictions must both be there.

    Rows that are the cells of a confusion table, with counts as weights, stand for as many inputs.
    """
    reports = []
    for system in responses.systems:
        frame = responses.of(system).frame
        labels, rows = labelled(frame), Rows.from_frame(frame)
        confusion = Confusion.from_frame(nw.from_native(labels))
        if are_cells(labels) and rows.unit is None and rows.stratum is None:
            whole = replace(confusion, n=round(float(rows.weight.sum())))
            reports.append(class_report(whole, system=system, level=level, replicates=replicates, seed=seed))
            continue
        if rows.alike:
            drawn = _independent(confusion, replicates, seed)
        else:
            drawn = _by_unit(labels, numbered_units(rows), rows.weight, confusion, replicates, seed)
        reports.append(_report(system, confusion, drawn, rows.spread, level))
    return ClassReports(reports)


def class_report(
    confusion: Confusion, *, system: str = "system", level: float = 0.95, replicates: int = 1000, seed: int = 0
) -> ClassReport:
    """The report of a confusion table, such as a published one; its rows count as independent."""
    spread = Spread(float(confusion.n), confusion.n, clustered=False)
    return _report(system, confusion, _independent(confusion, replicates, seed), spread, level)


def report_of_cells(
    cells: pl.DataFrame,
    *,
    system: str = "system",
    clustered: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> ClassReport:
    """The report of labels that were counted elsewhere, wherever the rows are.

    `cells` has `actual`, `predicted` (null: rejected), `weight` (the sum) and `rows`. Where rows come in dialogues or
    count differently it has `bucket` as well, which is what is drawn, and `squares`, the sum of squared weights;
    without `squares` the rows of a cell are taken to weigh alike. `least`, the least number of a
    bucket's dialogues, tells about how many of them there are.

    >>> counts = {"weight": [3.0, 1.0], "rows": [3, 1]}
    >>> cells = pl.DataFrame({"actual": ["yes", "no"], "predicted": ["yes", "yes"], **counts})
    >>> report_of_cells(cells).figures["accuracy"].value
    0.75
    """
    confusion = Confusion.from_table(cells, n=int(cells["rows"].sum()))
    squares = cells["squares"] if "squares" in cells.columns else cells["weight"] ** 2 / cells["rows"]
    total, squared, n = float(confusion.total), float(squares.sort().sum()), confusion.n
    if not (0 < squared < math.inf):
        raise DataError(f'the weights of the rows of "{system}" must not all be 0, nor beyond all bounds')
    if "bucket" not in cells.columns or (total == squared == n and not clustered):
        drawn, units, dialogues = _independent(confusion, replicates, seed), n, None
    else:
        unit = np.unique(cells["bucket"].fill_null(-1).to_numpy(), return_inverse=True)[1].astype(np.int64)
        drawn = _by_unit(cells, unit, cells["weight"].to_numpy(), confusion, replicates, seed)
        units = int(unit.max()) + 1
        dialogues = reliable(min(dialogues_in(cells), n), units) if "least" in cells.columns else None
    return _report(system, confusion, drawn, Spread(total**2 / squared, units, clustered, dialogues), level)


def _report(system: str, confusion: Confusion, drawn: Iterable[Confusion], spread: Spread, level: float) -> ClassReport:
    chunks = [{name: measure.finish(chunk) for name, measure in CLASSES.items()} for chunk in drawn]
    figures = {}
    for name, measure in CLASSES.items():
        replicates = np.concatenate([chunk[name] for chunk in chunks])
        figures[name] = _class_figure(measure, confusion, replicates, spread, level)
    return ClassReport(system, confusion, figures)


def _class_figure(measure: Measure, confusion: Confusion, drawn: Array, spread: Spread, level: float) -> Figure:
    value = float(measure.finish(confusion))
    if np.isnan(value):
        return Figure(value, why=measure.why_undefined(confusion))
    if measure.interval == "share":
        alike = not spread.clustered and spread.n == confusion.n
        effective = spread.n if alike else float(effective_inputs(np.array([value]), drawn[:, None], spread)[0])
        low, high = exact_binomial(value, effective, normal(level) if alike else student(level, spread.units - 1))
        return Figure(value, float(low), float(high))
    return Figure(value, *_without_bias(value, drawn, measure, level, spread.units))


def _without_bias(value: float, drawn: Array, measure: Measure, level: float, units: float) -> tuple[float, float]:
    """Percentiles of the replicates with the bias taken off, and wide enough to hold the value.

    F of small classes is not linear in their counts, so averages over many of them are biased, in the sample and once
    more in each replicate; percentiles as they are would then lie beside the value.
    """
    low, high = expanded_percentiles(drawn, level, units)
    if math.isnan(low):
        return low, high
    bias = float(np.nanmean(drawn)) - value
    noise = 2 * float(np.nanstd(drawn)) / math.sqrt(drawn.size)  # of the mean itself, which is of finitely many draws
    shift = -2 * bias if abs(bias) > noise else 0.0
    least = -1.0 if isinstance(measure, Kappa) else 0.0
    return max(least, min(low + shift, value)), min(1.0, max(high + shift, value))


def labelled(frame: pl.DataFrame) -> pl.DataFrame:
    """Judged rows as `actual`, `predicted`, `weight`; of several acceptable labels the predicted one, if among them."""
    if frame["target"].null_count() or (frame["prediction"].is_null() & frame["answered"]).any():
        raise DataError(
            "per-class scores compare labels, so every row needs a target and every answer a prediction",
            fix="rows judged only by `correct` have no class; name the columns with --map target=... prediction=...",
        )
    hit = pl.col("target").list.contains(pl.col("prediction")) & pl.col("answered")
    actual = pl.when(hit).then(pl.col("prediction")).otherwise(pl.col("target").list.first())
    return frame.select(
        actual.fill_null(OUT_OF_SCOPE).alias("actual"),
        pl.when(pl.col("answered")).then(pl.col("prediction")).alias("predicted"),
        "weight",
    )


def _at_once(cells: int) -> int:
    """How many replicates of so many cells are held at a time."""
    return max(1, min(CHUNK, CELLS_AT_ONCE // max(cells, 1)))


def _independent(confusion: Confusion, replicates: int, seed: int) -> Iterator[Confusion]:
    """Replicates of rows that are independent and count alike, some at a time."""
    share = np.maximum(1, np.rint(confusion.weights)).astype(np.int64)
    rng = np.random.default_rng(seed)
    chunk = _at_once(share.size)
    for size in [min(chunk, replicates - start) for start in range(0, replicates, chunk)]:
        yield confusion.drawn(multinomial(rng, share, size))


def _by_unit(
    labels: pl.DataFrame, unit: NDArray[np.int64], weight: Array, confusion: Confusion, replicates: int, seed: int
) -> Iterator[Confusion]:
    """Replicates that draw dialogues, or rows of unequal weight, one by one."""
    cell = _cells_of(labels, confusion)
    units, cells = int(unit.max()) + 1, confusion.weights.size
    held = cell >= 0  # rows that weigh nothing have no cell
    table = units_by_cell(cell[held], unit[held], weight[held], cells=cells, units=units)
    for chunk in Draws(units, replicates, seed):
        for part in np.array_split(chunk, max(1, len(chunk) // _at_once(cells))):
            yield confusion.drawn(np.ascontiguousarray((table @ part.T).T))


def _cells_of(labels: pl.DataFrame, confusion: Confusion) -> NDArray[np.int64]:
    """The cell of each row, -1 where it has none."""
    known = confusion.frame().drop("weight").with_row_index("cell")
    rows = labels.select("actual", "predicted")
    joined = rows.join(known, on=["actual", "predicted"], how="left", nulls_equal=True, maintain_order="left")
    return joined["cell"].cast(pl.Int64).fill_null(-1).to_numpy()


def _whole(count: float) -> float:
    return int(count) if count == int(count) else float(count)
