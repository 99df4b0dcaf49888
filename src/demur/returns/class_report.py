"""Labels against labels: confusion, per-class scores, averages and kappa of each system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Results, Shown
from demur.core.stats.intervals import Figure, exact_binomial, expanded_percentiles, normal, student
from demur.core.stats.measure import Measure, Score
from demur.core.stats.resampling import Draws, Rows, Spread, multinomial, numbered_units, units_by_cell
from demur.errors import DataError
from demur.returns.bands import effective_inputs
from demur.returns.classes import Accuracy, ClassAverage, Confusion, Kappa, class_values, majority_baseline
from demur.returns.judging import OUT_OF_SCOPE
from demur.returns.registry import CLASSES
from demur.returns.table import Responses
from demur.returns.tally import dialogues_in, reliable

CHUNK = 100
"""Replicates of a confusion table held at a time; with 150 classes each has 22,650 cells."""


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
        confusion, labels = self.confusion, self.confusion.labels
        averages = {
            average: {part: self._value(f"{average}_{part}") for part in ("precision", "recall", "f1")}
            for average in ("macro", "weighted", "micro")
        }
        table: dict[str, dict[str, float]] = {label: {} for label in labels}
        rejected: dict[str, float] = {}
        for actual, predicted, count in confusion.cells():
            (rejected if predicted is None else table[predicted])[actual] = _whole(count)
        return {
            "system": self.system,
            "n": confusion.n,
            "rejected": _whole(float(confusion.rejected)),
            "signature": self.signature,
            "accuracy": self._value("accuracy"),
            "kappa": self._value("kappa"),
            "kappa_without_rejected": _plain(float(Kappa("out").finish(confusion))),
            "per_class": self._per_class(),
            **averages,
            "majority_baseline": self._baseline(),
            "confusion": table,
            "rejected_by_class": rejected,
            "intervals": {name: figure.to_dict() for name, figure in self.figures.items()},
        }

    def frame(self) -> pl.DataFrame:
        """The confusion table in long form."""
        return pl.DataFrame(self.confusion.cells(), schema=["actual", "predicted", "count"], orient="row")

    def _value(self, name: str) -> float | None:
        return _plain(self.figures[name].value)

    def _per_class(self) -> dict[str, dict[str, Any]]:
        values = class_values(self.confusion)
        return {
            label: {
                **{str(part): _plain(float(scores[place])) for part, scores in values.items()},
                "support": _whole(float(self.confusion.support[place])),
            }
            for place, label in enumerate(self.confusion.labels)
        }

    def _baseline(self) -> dict[str, Any]:
        baseline = majority_baseline(self.confusion)
        label = baseline.labels[int(np.argmax(baseline.predicted))]
        scores = {"accuracy": Accuracy(), "macro_f1": ClassAverage("macro", "f1")}
        return {"label": label, **{name: float(measure.finish(baseline)) for name, measure in scores.items()}}


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
    return ClassReports(
        _report_of(responses.of(system).frame, system, level, replicates, seed) for system in responses.systems
    )


def class_reports_of_cells(
    cells: Mapping[str, pl.DataFrame],
    *,
    clustered: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> ClassReports:
    """Per-class scores of systems whose labels were counted elsewhere (see `report_of_cells`)."""
    return ClassReports(
        report_of_cells(table, system=system, clustered=clustered, level=level, replicates=replicates, seed=seed)
        for system, table in cells.items()
    )


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


def _report_of(frame: pl.DataFrame, system: str, level: float, replicates: int, seed: int) -> ClassReport:
    labels, rows = labelled(frame), Rows.from_frame(frame)
    confusion = Confusion.from_frame(nw.from_native(labels))
    if rows.alike:
        drawn = _independent(confusion, replicates, seed)
    else:
        drawn = _by_unit(labels, numbered_units(rows), rows.weight, confusion, replicates, seed)
    return _report(system, confusion, drawn, rows.spread, level)


def _report(system: str, confusion: Confusion, drawn: Iterable[Confusion], spread: Spread, level: float) -> ClassReport:
    parts: dict[str, list[Array]] = {name: [] for name in CLASSES}
    for chunk in drawn:
        for name, measure in CLASSES.items():
            parts[name].append(measure.finish(chunk))
    figures = {
        name: _figure(measure, confusion, np.concatenate(parts[name]), spread, level)
        for name, measure in CLASSES.items()
    }
    return ClassReport(system, confusion, figures)


def _figure(measure: Measure, confusion: Confusion, drawn: Array, spread: Spread, level: float) -> Figure:
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
    return int(count) if count == int(count) else count


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
