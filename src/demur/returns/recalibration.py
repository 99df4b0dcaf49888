"""Would recalibration help, and by which map: confidences before and after, on answers that no map was fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.columns import resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.json import row_texts
from demur.core.io.tables import ROW, Cells, Request, Table
from demur.core.io.writing import ENDINGS, write_rows, write_table
from demur.core.show.numbers import Wording
from demur.core.show.results import Shown, plain
from demur.core.stats.calibration import ECE, NCE, Brier, Reliability, reliability
from demur.core.stats.calibration_maps import (
    METHODS,
    MapOrder,
    Method,
    Recalibration,
    Scale,
    fit_map,
    scale_of,
)
from demur.core.stats.intervals import Difference, Figure
from demur.core.stats.measure import Measure
from demur.core.stats.resampling import Rows, Sample, numbered_units
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.importers.reading import opened
from demur.returns.confidences import rates_of
from demur.returns.evaluate import Evaluation, figure_of
from demur.returns.measures import Estimate
from demur.returns.table import Reading, Responses, chosen_system, one_system, read_data

Advice = Literal["recalibrate", "leave", "unclear"]

FOLDS = 5
"""Parts of the answers; each is mapped by what was fitted on the others."""

LEAST = 100
"""Answers below which a map is not worth fitting."""

WORTH = 0.01
"""Expected calibration error below which confidences mean what they say, for all purposes."""

FIGURES: Mapping[str, Measure] = {"ece": ECE(), "brier": Brier(), "nce": NCE()}
"""What confidences are judged by."""

MOST_ERRORS_APART = 3
"""Dialogues with as many errors or more are one stratum."""

INFINITE = Wording("answer has an infinite confidence", "answers have infinite confidences")

PARTS = ("system", "target", "prediction", "confidence", "correct")
"""The columns of a log that recalibrating it looks at."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What the confidences of answers are worth as given or by one method, each answer mapped without being fitted to.

    The answers themselves are not kept: of a long log they would take more room than all the rest of a report.
    """

    method: Method | None
    n: int
    """How many answers there are."""
    dialogues: int | None
    """How many dialogues they are from, where these are known."""
    level: float
    figures: Mapping[str, Figure]
    """Calibration error, Brier score and cross entropy, with intervals that take the maps as they were fitted."""
    reliability: Reliability
    title: str = ""

    @classmethod
    def of(
        cls, method: Method | None, rows: Rows, *, level: float, replicates: int, seed: int, title: str = ""
    ) -> OutOfFold:
        """The figures of answers with these confidences."""
        sample = Sample(replace(rows), replicates, seed)  # of its own, so that its sweep is let go
        figures = {key: figure_of(measure, sample, level) for key, measure in FIGURES.items()}
        dialogues = None if rows.unit is None else rows.units
        return cls(method, rows.confidence.size, dialogues, level, figures, reliability(sample.sweep), title)

    @property
    def name(self) -> str:
        """What charts and tables call it."""
        return self.title or ("as given" if self.method is None else METHODS[self.method].title)


def _losses(rows: Rows) -> Array:
    """The squared difference between confidence and being right, of each answer."""
    return np.square(rows.confidence - rows.right)


def brier_less(one: Rows, two: Rows, level: float) -> Difference:
    """By how much the Brier score of answers exceeds that of the same with other confidences, by dialogues if any."""
    gap, weight = _losses(one) - _losses(two), one.weight
    mean = float((gap * weight).sum() / weight.sum())
    estimate = Estimate.of_units(mean, one.pulled(gap - mean))
    low, high = estimate.interval(level)
    return Difference(mean, low, high, estimate.p, estimate.p, freedom=estimate.freedom)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Shown):
    """The confidences of one system: as they are, and by each method out of fold; a change is after less before.

    Where confidences are scores there is nothing to compare with before: `given` is None.
    """

    system: str
    answers: int
    scale: Scale
    given: OutOfFold | None
    bias: float
    """Mean confidence less the share right: over 0 the system is too sure of itself; NaN of scores."""
    methods: Mapping[Method, OutOfFold] = field(default_factory=dict)
    changes: Mapping[Method, Difference] = field(default_factory=dict)
    """Change of the Brier score by each method, p-values corrected for all of them; none of scores."""
    leads: Mapping[Method, Difference] = field(default_factory=dict)
    """The Brier score of the chosen method less that of each other one, p-values corrected for all of them."""
    fitted: Recalibration | None = None
    """The map of the chosen method, fitted to all answers."""
    order: MapOrder | None = None
    """What that map does to the order of answers."""
    why: str | None = None
    """Why nothing was fitted."""
    asked: bool = False
    """Whether the method was asked for rather than chosen for its Brier score."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def chosen(self) -> OutOfFold | None:
        """The method of the map, out of fold; None where nothing was fitted."""
        return None if self.fitted is None else self.methods[self.fitted.method]

    @property
    def title(self) -> str:
        """What its chart shows, in words."""
        after = "" if self.chosen is None else f", as given and after {self.chosen.name} (out of fold)"
        return f"{self.system}: do confidences mean what they say{after}?"

    @property
    def sides(self) -> list[OutOfFold]:
        """What is drawn: confidences as given, where they are probabilities, and by the chosen method out of fold."""
        return [side for side in (self.given, self.chosen) if side is not None]

    @property
    def before(self) -> Mapping[str, Figure]:
        """The figures as given; undefined of scores."""
        return _undefined("the confidences are no probabilities") if self.given is None else self.given.figures

    @property
    def after(self) -> Mapping[str, Figure]:
        """The figures of the chosen method out of fold; undefined where nothing was fitted."""
        return _undefined(self.why) if self.chosen is None else self.chosen.figures

    @property
    def change(self) -> Difference | None:
        """Change of the Brier score by the chosen method."""
        return None if self.fitted is None else self.changes.get(self.fitted.method)

    @property
    def advice(self) -> Advice:
        """Recalibrate where that is shown to help and there is something to mend; leave what is sound."""
        chosen = self.chosen
        if chosen is None:
            return "unclear"
        if self.given is None or self.change is None:
            return "recalibrate"
        helps = self.change.value < 0 and self.change.p_adjusted < 1 - chosen.level
        return "recalibrate" if helps and self.given.figures["ece"].value > WORTH else "leave"

    def to_dict(self) -> dict[str, Any]:
        """The calibration as plain values; `map` is what `demur recalibrate apply` reads."""
        change = self.change
        after, before = self.after, self.before
        document: dict[str, Any] = plain(
            {
                "system": self.system,
                "answers": self.answers,
                "scale": self.scale,
                "advice": self.advice,
                "method": None if self.fitted is None else self.fitted.method,
                "bias": self.bias,
                "brier": before["brier"].value,
                "ece": before["ece"].value,
                "brier_after": after["brier"].value,
                "ece_after": after["ece"].value,
                "change": math.nan if change is None else change.value,
                "low": math.nan if change is None else change.low,
                "high": math.nan if change is None else change.high,
                "as_given": None if self.given is None else {key: one.to_dict() for key, one in before.items()},
                "out_of_fold": {name: self._method_values(name) for name in self.methods},
                "order": None if self.order is None else order_values(self.order),
                "why": self.why,
            }
        )
        fitted = {} if self.fitted is None else {"map": self.fitted.to_dict()}
        return {**document, **fitted, "notes": list(self.notes), "warnings": list(self.warnings)}

    def _method_values(self, name: Method) -> dict[str, Any]:
        figures = {key: one.to_dict() for key, one in self.methods[name].figures.items()}
        change = {"change_of_brier": self.changes[name].to_dict()} if name in self.changes else {}
        lead = {"chosen_less_this": self.leads[name].to_dict()} if name in self.leads else {}
        return {**figures, **change, **lead}

    def frame(self) -> pl.DataFrame:
        """A row for each method and figure."""
        sides = [*([] if self.given is None else [self.given]), *self.methods.values()]
        rows = [
            {"system": self.system, "method": one.method or "as given", "measure": key, **figure.to_dict()}
            for one in sides
            for key, figure in one.figures.items()
        ]
        columns = ("system", "method", "measure", "value", "low", "high")
        return pl.DataFrame(rows, infer_schema_length=None).select(columns)


def _undefined(why: str | None) -> dict[str, Figure]:
    return {key: Figure(math.nan, why=why) for key in FIGURES}


def calibration(evaluation: Evaluation, rows: Rows) -> Calibration | None:
    """What recalibrating the answers of one system would do; None where its confidences are no probabilities."""
    if not evaluation.probabilistic:
        return None
    sample = evaluation.sample
    return cross_fitted(
        rows, system=evaluation.system, level=evaluation.level, replicates=sample.replicates, seed=sample.seed
    )


def cross_fitted(
    rows: Rows,
    *,
    system: str = "system",
    method: Method | None = None,
    folds: int = FOLDS,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Every method that suits the confidences, judged out of fold, and the map of the one asked for, or of the best.

    The best has the lowest Brier score. Answers, or whole dialogues, are dealt into folds at random (`deal_folds`).

    >>> rng = np.random.default_rng(0)
    >>> chance = rng.random(2000)
    >>> found = cross_fitted(Rows.of(np.sqrt(chance), rng.random(2000) < chance), replicates=50)
    >>> found.advice, found.given.figures["ece"].value > 0.1 > 0.05 > found.chosen.figures["ece"].value
    ('recalibrate', True)
    """
    answers = answered_rows(rows)
    how: dict[str, Any] = {"level": level, "replicates": replicates, "seed": seed}
    scale: Scale = scale_of(answers.confidence) if answers.confidence.size else "scores"
    probable = scale == "probabilities"
    given = OutOfFold.of(None, answers, **how) if probable else None
    bias = float(np.average(answers.confidence - answers.right, weights=answers.weight)) if probable else math.nan
    bare = Calibration(system, answers.confidence.size, scale, given, bias)
    why = _too_little(answers, folds)
    if why is not None:
        return replace(bare, why=why)
    _refuse_infinite(answers, system)
    fitted = None if method is None else _fit(answers, method, seed=seed, folds=folds)
    fold = deal_folds(answers, folds=folds, seed=seed)
    suited: list[Method] = [name for name, kind in METHODS.items() if scale in kind.scales]
    mapped = _mapped(answers, suited, scale, fold)
    best = min(mapped, key=lambda name: float((_losses(mapped[name]) * answers.weight).sum()))
    fitted = fitted or _fit(answers, best, seed=seed, folds=folds)
    chosen = mapped[fitted.method]
    changes = {name: brier_less(rows, answers, level) for name, rows in mapped.items()} if probable else {}
    leads = {name: brier_less(chosen, rows, level) for name, rows in mapped.items() if name != fitted.method}
    return replace(
        bare,
        methods={name: OutOfFold.of(name, rows, **how) for name, rows in mapped.items()},
        changes={name: one.corrected(len(changes), level) for name, one in changes.items()},
        leads={name: one.corrected(len(leads), level) for name, one in leads.items()},
        fitted=fitted,
        order=MapOrder.of(fitted.parameters, answers.confidence),
        asked=method is not None,
    )


def answered_rows(rows: Rows) -> Rows:
    """The answered rows that weigh something, in an order that does not depend on theirs."""
    kept = rows.answered & (rows.weight > 0)
    confidence, right, weight = rows.confidence[kept] + 0.0, rows.right[kept], rows.weight[kept]
    unit = np.zeros(confidence.size, np.int64) if rows.unit is None else rows.unit[kept]
    order = np.lexsort((weight, right, confidence, unit))
    numbers = None if rows.unit is None else np.unique(unit[order], return_inverse=True)[1].astype(np.int64)
    return Rows(confidence[order], right[order], np.ones(order.size, np.bool_), weight[order], numbers)


def _too_little(answers: Rows, folds: int) -> str | None:
    """Why nothing can be fitted; None where it can."""
    n, right = answers.confidence.size, int(answers.right.sum())
    if n < LEAST:
        return f"{n:,} answers, fewer than {LEAST}"
    if right in (0, n):
        return f"every answer is {'right' if right else 'wrong'}"
    if min(right, n - right) < folds:
        kind = "right" if right < n - right else "wrong"
        return f"{min(right, n - right)} {kind} answers, fewer than the {folds} folds"
    if answers.units < folds:
        return f"fewer than {folds} dialogues"
    return None


def _refuse_infinite(answers: Rows, system: str) -> None:
    if infinite := int((~np.isfinite(answers.confidence)).sum()):
        rule = f"{INFINITE.with_count(infinite)}, to which no map can be fitted"
        raise DataError(rule, where=f'system "{system}":', fix="leave such answers out, with --where or beforehand")


def deal_folds(answers: Rows, *, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each answer, at random but for strata: each fold gets about its share of the wrong answers.

    What is dealt are dialogues where these are known, otherwise answers; a dialogue is in one fold. They are shuffled
    in an order of their own, so the order of rows plays no part.

    >>> fold = deal_folds(Rows.of([0.1, 0.2, 0.3, 0.4], [True, False, True, False]), folds=2, seed=0)
    >>> sorted(fold[[0, 2]].tolist()), sorted(fold[[1, 3]].tolist())
    ([0, 1], [0, 1])
    """
    unit = numbered_units(answers)
    errors = np.bincount(unit, weights=~answers.right)
    shuffled = np.random.default_rng(seed).permutation(errors.size)
    stratum = np.minimum(errors[shuffled], MOST_ERRORS_APART)
    fold = np.empty(errors.size, np.int64)
    fold[shuffled[np.argsort(stratum, kind="stable")]] = np.arange(errors.size) % folds
    return fold[unit]


def _mapped(answers: Rows, methods: Sequence[Method], scale: Scale, fold: NDArray[np.int64]) -> dict[Method, Rows]:
    """The answers with each confidence mapped by what each method fitted on the other folds."""
    mapped = {method: np.empty_like(answers.confidence) for method in methods}
    weight = answers.weight if answers.weighted else None
    for part in range(int(fold.max()) + 1):
        out, rest = fold == part, fold != part
        sweep = Sweep.of(answers.confidence[rest], answers.right[rest], weight=None if weight is None else weight[rest])
        for method in methods:
            mapped[method][out] = fit_map(sweep, method, scale)(answers.confidence[out])
    return {method: replace(answers, confidence=confidence) for method, confidence in mapped.items()}


def _fit(answers: Rows, method: Method, **about: Any) -> Recalibration:
    weight = answers.weight if answers.weighted else None
    return Recalibration.fit(answers.confidence, answers.right, method=method, weight=weight, **about)


def order_values(order: MapOrder) -> dict[str, Any]:
    """What a map does to the order of answers, as plain values."""
    return {"confidences": order.before, "mapped_to": order.after, "kept": order.kept}


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedLog(Shown):
    """A log with its confidences mapped, all its other columns as they were, and what that did where it can be judged.

    `before` and `after` are the answers with both confidences; None where the log does not tell right from wrong, or
    `before` where the confidences are scores.
    """

    table: pl.DataFrame
    column: str
    """The column of the confidences; those from before stand in `column_before`."""
    mapped: int
    """Confidences that were mapped."""
    recalibration: Recalibration
    order: MapOrder
    lines: tuple[bytes, ...] = ()
    """The text of each row as it was read, where the log is JSON."""
    system: str = "system"
    before: OutOfFold | None = None
    after: OutOfFold | None = None
    change: Difference | None = None
    """Change of the Brier score."""
    fitted_here: bool = False
    """Whether these are the very answers that the map was fitted to."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What its chart shows, in words."""
        return f"{self.system}: do confidences mean what they say, before and after recalibration?"

    @property
    def sides(self) -> list[OutOfFold]:
        """What is drawn: the confidences before, where they are probabilities, and after."""
        return [side for side in (self.before, self.after) if side is not None]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as they were read from JSON, with the new confidence and the one from before."""
        for text, new in zip(self.lines, self.table[self.column], strict=True):
            row: dict[str, Any] = msgspec.json.decode(text)
            if self.column not in row:
                yield row
                continue
            row[self.column], before = new, row[self.column]
            names = list(row)
            place = names.index(self.column) + 1
            yield {name: row[name] for name in names[:place]} | {f"{self.column}_before": before} | row

    def to_dict(self) -> dict[str, Any]:
        """What was done, as plain values; `table` has the rows."""
        sides = {"before": self.before, "after": self.after}
        change = self.change
        document: dict[str, Any] = plain(
            {
                "system": self.system,
                "rows": self.table.height,
                "mapped": self.mapped,
                "column": self.column,
                "method": self.recalibration.method,
                "fitted_on": self.recalibration.n,
                "fitted_on_these_answers": self.fitted_here,
                "order": order_values(self.order),
                **{
                    name: None if one is None else {key: figure.to_dict() for key, figure in one.figures.items()}
                    for name, one in sides.items()
                },
                "change_of_brier": None if change is None else change.to_dict(),
                "notes": list(self.notes),
                "warnings": list(self.warnings),
            }
        )
        return document


def read_map(given: Any) -> Recalibration:
    """The map that is meant: a file, what `fit_recalibration` gave, or a map itself."""
    found: Any = given.fitted if isinstance(given, Calibration) else given
    if isinstance(given, str | Path):
        found = Recalibration.read(given)
    if not isinstance(found, Recalibration):
        raise UsageError("a recalibration is a file that `demur recalibrate fit` wrote, or what it gave in Python")
    if found.level != "answers":
        raise DataError(f"the map is for confidences of {found.level}, not of answers")
    return found


def recalibrate_log(
    recalibration: Recalibration,
    data: Any,
    reading: Reading,
    *,
    system: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> RecalibratedLog:
    """The log with the confidences of one system mapped; others keep theirs.

    >>> fitted = Recalibration.fit([0.2, 0.4, 0.4, 0.9], [False, False, True, True])
    >>> rows = [{"prediction": "yes", "confidence": 0.4, "note": "kept"}, {"prediction": None, "confidence": None}]
    >>> recalibrate_log(fitted, rows, Reading()).table.to_dicts()[0]
    {'prediction': 'yes', 'confidence': 0.5, 'confidence_before': 0.4, 'note': 'kept'}
    """
    table, lines = _whole_table(data)
    resolution = resolve(table.columns, reading.columns, parts=PARTS, where=f"{table.name}:")
    cells = Cells(table, resolution.columns)
    if "confidence" not in cells:
        raise DataError("has no column confidence to recalibrate", where=table.name)
    column = cells.columns["confidence"]
    if f"{column}_before" in table.columns:
        rule = f'there is a column "{column}_before" already: was this log recalibrated before?'
        raise DataError(rule, where=f"{table.name}:", fix="recalibrate the log as it was, or rename the column")
    numbers, own = cells.spelled_numbers("confidence")[0], _rows_of(cells, system)
    chosen = (own & numbers.is_not_null()).to_numpy()
    given = numbers.fill_null(0.0).to_numpy().copy()
    given[chosen] = rates_of(numbers.filter(chosen)).to_numpy()
    _refuse_outside(recalibration, given[chosen], cells)
    mapped = pl.Series(np.where(chosen, recalibration(np.where(chosen, given, 0.5)), given))
    new = pl.select(pl.when(numbers.is_not_null()).then(mapped)).to_series().alias(column)
    frame = table.frame.drop(ROW)
    before = numbers.alias(f"{column}_before")
    frame = frame.with_columns(new).insert_column(frame.columns.index(column) + 1, before)
    order = MapOrder.of(recalibration.parameters, given[chosen])
    result = RecalibratedLog(frame, column, int(chosen.sum()), recalibration, order, lines, notes=resolution.notes)
    if "correct" not in cells and not ("target" in cells and "prediction" in cells):
        note = "no column tells right from wrong, so what the map does to these answers is not judged"
        return replace(result, notes=(*result.notes, note))
    judged = one_system(read_data((data,), reading), system, what="a map")
    return _judge(result, judged, {"level": level, "replicates": replicates, "seed": seed})


def _whole_table(data: Any) -> tuple[Table, tuple[bytes, ...]]:
    """All columns of one log and, where it is JSON, the text of each row, in which lists and objects are whole."""
    if not isinstance(data, str | Path):
        return table_of(data, Request()), ()
    with opened(data) as sources:
        if len(sources) > 1:
            raise UsageError(f"one log is recalibrated at a time; {data} stands for {len(sources)} files")
        table = read_source(sources[0], Request())
        lines = row_texts(sources[0]) if sources[0].format == "json" else ()
    return table, lines if len(lines) == table.frame.height else ()


def _rows_of(cells: Cells, system: str | None) -> pl.Series:
    """Which rows are of the system: the one that is named, or the only one there is."""
    names = cells.text("system")
    if names.null_count() == len(names):
        return pl.Series([True]).new_from_index(0, len(names))
    return (names == chosen_system(names.unique(maintain_order=True).to_list(), system, what="a map")).fill_null(
        value=False
    )


def _refuse_outside(recalibration: Recalibration, given: Array, cells: Cells) -> None:
    """Refuse confidences that the map is not for."""
    column, where = cells.columns["confidence"], cells.table.name
    if not given.size:
        raise DataError("has no confidences to recalibrate", where=f"{where}: {column}")
    if not np.isfinite(given).all():
        raise DataError("must be finite numbers", where=f"{where}: {column}", got=given[~np.isfinite(given)][0])
    if recalibration.scale == "probabilities" and scale_of(given) == "scores":
        rule = "the map is for probabilities, and these are not all within [0, 1]"
        raise DataError(rule, where=f"{where}: {column}", got=f"{given.min():g} to {given.max():g}")


def _judge(result: RecalibratedLog, judged: Responses, how: dict[str, Any]) -> RecalibratedLog:
    """What the map does to answers that tell right from wrong."""
    answers, recalibration = answered_rows(Rows.from_frame(judged.frame)), result.recalibration
    after = replace(answers, confidence=recalibration(answers.confidence))
    probabilities = recalibration.scale == "probabilities"
    weight = answers.weight if answers.weighted else None
    return replace(
        result,
        system=judged.systems[0],
        before=OutOfFold.of(None, answers, **how, title="before") if probabilities else None,
        after=OutOfFold.of(recalibration.method, after, **how, title="after"),
        change=brier_less(after, answers, how["level"]) if probabilities else None,
        fitted_here=Sweep.of(answers.confidence, answers.right, weight=weight).digest() == recalibration.data,
        notes=tuple(dict.fromkeys((*result.notes, *judged.notes))),
        warnings=judged.warnings,
    )


def write_log(result: RecalibratedLog, path: Path) -> None:
    """Write the log in the format of the path's ending; rows that came as JSON keep their numbers and lists."""
    if not result.lines:
        write_table(path, result.table)
    elif path.name.lower().endswith(ENDINGS):
        write_rows(path, result.rows())
    else:
        try:
            table = pl.DataFrame(list(result.rows()), infer_schema_length=None)
        except (TypeError, pl.exceptions.PolarsError):  # a column of several types is text
            table = result.table
        write_table(path, table)
