"""Labels against labels: confusion, per-class scores, averages and kappa of each system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from demur.data.responses import Responses
from demur.errors import DataError
from demur.measures.base import Score
from demur.measures.classes import Accuracy, ClassAverage, Confusion, Kappa, class_values, majority_baseline
from demur.measures.intervals import Figure, exact_binomial, expanded_percentiles, student
from demur.measures.registry import CLASSES
from demur.measures.resampling import multinomial
from demur.show import Shown

OUT_OF_SCOPE = "out_of_scope"
"""The label under which rows without any right answer stand in a confusion table."""


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
        return pl.DataFrame(self.confusion.cells(), schema=["actual", "predicted", "weight"], orient="row")

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


def class_reports(
    responses: Responses, *, level: float = 0.95, replicates: int = 1000, seed: int = 0
) -> tuple[ClassReport, ...]:
    """Per-class scores of every system; targets and predictions must both be there.

    >>> from demur.data.responses import responses as table
    >>> columns = {"target": ["yes", "no"], "prediction": ["yes", "yes"], "confidence": [1, 1]}
    >>> class_reports(table(columns))[0].figures["accuracy"].value
    0.5
    """
    return tuple(
        class_report(labelled(responses.of(system).frame), system=system, level=level, replicates=replicates, seed=seed)
        for system in responses.systems
    )


def class_report(
    confusion: Confusion,
    *,
    system: str = "system",
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> ClassReport:
    """The report of a confusion table, as counted here or published elsewhere; rows count as independent."""
    drawn = _replicates(confusion, replicates, seed)
    figures = {}
    for name, measure in CLASSES.items():
        score = Score.of(measure, confusion)
        if score.why is not None:
            figures[name] = Figure(score.value, why=score.why)
        elif measure.proportion:
            low, high = exact_binomial(score.value, confusion.n, student(level, confusion.n - 1))
            figures[name] = Figure(score.value, float(low), float(high))
        else:
            ends = expanded_percentiles(measure.finish(drawn), level, confusion.n)
            figures[name] = Figure(score.value, *ends)
    return ClassReport(system, confusion, figures)


def labelled(frame: pl.DataFrame) -> Confusion:
    """Confusion table of judged rows: where several labels are acceptable, the predicted one if it is among them."""
    if frame["target"].null_count() or (frame["prediction"].is_null() & frame["answered"]).any():
        raise DataError(
            "per-class scores compare labels, so every row needs a target and every answer a prediction",
            fix="rows judged only by `correct` have no class; name the columns with --map target=... prediction=...",
        )
    hit = pl.col("target").list.contains(pl.col("prediction")) & pl.col("answered")
    actual = pl.when(hit).then(pl.col("prediction")).otherwise(pl.col("target").list.first())
    rows = frame.select(
        actual.fill_null(OUT_OF_SCOPE).alias("actual"),
        pl.when(pl.col("answered")).then(pl.col("prediction")).alias("predicted"),
        "weight",
    ).sort("actual", "predicted", "weight")  # a fixed order of summing, so row order cannot move the last digit
    return Confusion.from_frame(nw.from_native(rows))


def _replicates(confusion: Confusion, replicates: int, seed: int) -> Confusion:
    filled = np.flatnonzero(confusion.counts)
    counts = confusion.counts.ravel()[filled]
    scale = confusion.n / counts.sum()
    drawn = np.zeros((replicates, confusion.counts.size))
    share = np.maximum(1, np.rint(counts * scale)).astype(np.int64)
    drawn[:, filled] = multinomial(np.random.default_rng(seed), share, replicates) / scale
    return Confusion(confusion.labels, drawn.reshape(replicates, *confusion.counts.shape), confusion.n)


def _whole(count: float) -> float:
    return int(count) if count == int(count) else count


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
