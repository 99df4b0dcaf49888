"""Labels against labels: confusion, per-class scores, their averages and kappa of each system."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Results, Shown, plain
from demur.core.stats.intervals import Figure, exact_binomial, expanded_percentiles, normal, student
from demur.core.stats.measure import Frame, Measure, Score
from demur.core.stats.resampling import Draws, Rows, Spread, multinomial, numbered_units, units_by_cell
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.returns.curves import effective_inputs
from demur.returns.judging import OUT_OF_SCOPE
from demur.returns.measures import RETURNS
from demur.returns.scope import SCOPE
from demur.returns.table import Responses
from demur.returns.tally import dialogues_in, reliable

Average = Literal["macro", "weighted", "micro"]
Part = Literal["precision", "recall", "f1"]
AVERAGES: tuple[Average, ...] = ("macro", "weighted", "micro")
PARTS: tuple[Part, ...] = ("precision", "recall", "f1")

CHUNK = 100
"""Replicates of a confusion table held at a time; with 150 classes each has 22,650 cells."""


@dataclass(frozen=True, eq=False)
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
        columns = {"actual": list(actual), "predicted": list(predicted), "weight": weights}
        return cls.from_frame(nw.from_dict(columns, backend="polars"))

    @classmethod
    def from_frame(cls, frame: Frame) -> Confusion:
        """Confusion reduced inside the engine that holds the rows `actual`, `predicted` (null: rejected), `weight`."""
        columns = ("actual", "predicted", "weight")  # equal weights are counted, so no order of summing can matter
        cells = frame.lazy().group_by(*columns).agg(rows=nw.len()).collect("polars").to_native()
        rows = cells.select(*columns, "rows").rows()
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

    @cached_property
    def support(self) -> Array:
        """Weight of each actual label, the rejected included."""
        return np.asarray(self.counts.sum(axis=-2))

    @cached_property
    def predicted(self) -> Array:
        """Weight of each predicted label."""
        return np.asarray(self.counts[..., :-1, :].sum(axis=-1))

    @property
    def rejected(self) -> Any:
        """Weight of the rows without a prediction."""
        return self.counts[..., -1, :].sum(axis=-1)

    @property
    def worst(self) -> tuple[str, str, float] | None:
        """The most frequent confusion as (actual, predicted, weight); None where no label is taken for another."""
        wrong = [(actual, guess, weight) for actual, guess, weight in self.cells() if guess not in (None, actual)]
        actual, predicted, weight = max(wrong, key=lambda cell: cell[2], default=("", "", 0.0))
        return (actual, str(predicted), weight) if wrong else None

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


@dataclass(frozen=True, eq=False)
class ClassReport(Shown):
    """Per-class scores of one system, with averages and agreement."""

    system: str
    confusion: Confusion
    figures: Mapping[str, Figure]

    @property
    def signature(self) -> str:
        """How the numbers were made."""
        return Score.of(Accuracy(), self.confusion).signature

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values; `confusion` is predicted -> actual -> count, the rejected apart."""
        confusion, values = self.confusion, class_values(self.confusion)
        table: dict[str, dict[str, float]] = {label: {} for label in confusion.labels}
        rejected: dict[str, float] = {}
        for actual, predicted, count in confusion.cells():
            (rejected if predicted is None else table[predicted])[actual] = _whole(count)
        scores = {
            label: {**{part: float(values[part][place]) for part in PARTS}, "support": _whole(confusion.support[place])}
            for place, label in enumerate(confusion.labels)
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
                "intervals": {name: figure.to_dict() for name, figure in self.figures.items()},
            }
        )
        return document

    def frame(self) -> pl.DataFrame:
        """The confusion table in long form."""
        return pl.DataFrame(self.confusion.cells(), schema=["actual", "predicted", "count"], orient="row")


class ClassReports(Results[ClassReport]):
    """The reports of one or more systems, which show themselves together."""

    def frame(self) -> pl.DataFrame:
        """Precision, recall and F1 of every class of every system."""
        rows = [
            {"system": one.system, "class": label, **scores}
            for one in self
            for label, scores in one.to_dict()["per_class"].items()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """The reports as plain values; a single one stands at the top."""
        documents = [one.to_dict() for one in self]
        found = documents[0] if len(documents) == 1 else {"systems": documents}
        return {**found, "notes": list(self.notes), "warnings": list(self.warnings)}


def class_reports(responses: Responses, *, level: float = 0.95, replicates: int = 1000, seed: int = 0) -> ClassReports:
    """Per-class scores of every system; targets and predictions must both be there.

    >>> from demur.returns.table import responses as table
    >>> columns = {"target": ["yes", "no"], "prediction": ["yes", "yes"], "confidence": [1, 1]}
    >>> class_reports(table(columns))[0].figures["accuracy"].value
    0.5
    """
    reports = []
    for system in responses.systems:
        frame = responses.of(system).frame
        labels, rows = labelled(frame), Rows.from_frame(frame)
        confusion = Confusion.from_frame(nw.from_native(labels))
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
    labels = ("actual", "predicted")
    sums = cells.sort(*labels, "weight").group_by(*labels, maintain_order=True).agg(pl.col("weight").sum())
    confusion = Confusion.from_cells(sums.rows(), n=int(cells["rows"].sum()))
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
    return Figure(value, *expanded_percentiles(drawn, level, spread.units))


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


def _independent(confusion: Confusion, replicates: int, seed: int) -> Iterator[Confusion]:
    """Replicates of rows that are independent and count alike, some at a time."""
    filled = np.flatnonzero(confusion.counts)
    share = np.maximum(1, np.rint(confusion.counts.ravel()[filled])).astype(np.int64)
    rng = np.random.default_rng(seed)
    for size in [min(CHUNK, replicates - start) for start in range(0, replicates, CHUNK)]:
        drawn = np.zeros((size, confusion.counts.size))
        drawn[:, filled] = multinomial(rng, share, size)
        yield Confusion(confusion.labels, drawn.reshape(size, *confusion.counts.shape), confusion.n)


def _by_unit(
    labels: pl.DataFrame, unit: NDArray[np.int64], weight: Array, confusion: Confusion, replicates: int, seed: int
) -> Iterator[Confusion]:
    """Replicates that draw dialogues, or rows of unequal weight, one by one."""
    place = {label: index for index, label in enumerate(confusion.labels)}
    width = len(place)
    actual = labels["actual"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    predicted = labels["predicted"].replace_strict(place, default=width, return_dtype=pl.Int64).to_numpy()
    units = int(unit.max()) + 1
    table = units_by_cell(predicted * width + actual, unit, weight, cells=(width + 1) * width, units=units)
    for chunk in Draws(units, replicates, seed):
        for part in np.array_split(chunk, max(1, len(chunk) // CHUNK)):
            yield Confusion(confusion.labels, (table @ part.T).T.reshape(-1, width + 1, width), confusion.n)


def _whole(count: float) -> float:
    return int(count) if count == int(count) else float(count)
