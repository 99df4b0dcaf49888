"""Rows that stay in the engine that holds them: judged by expressions, checked by one survey, never brought here.

The rules are those of `demur.data.judging`. What that module tells of single rows, the survey counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from demur.data.columns import resolve
from demur.data.engines import bucketed, contains, engine_faults_told
from demur.data.judging import LOWEST, refuse_unjudgeable
from demur.data.lazy_cells import LazyColumns, Stage, acceptable, has_value, no_text, one_of, text_of
from demur.data.responses import Reading
from demur.data.selection import parts_wanted, unknown_column
from demur.data.surveying import Survey, conclusions, survey_of
from demur.errors import DataError

OUT_OF_SCOPE = "out_of_scope"
"""The label under which rows without any right answer stand in a confusion table."""

NONE = "(none)"
"""The slice of rows that have no value in the column sliced by."""

_TEXTS = ("system", "id", "dialogue", "prediction", "target")
"""Columns that are read as text, whatever they hold."""


@dataclass(frozen=True, slots=True)
class LazyResponses:
    """Judged rows as an engine will compute them, and what the survey found.

    `frame` has the columns answered, right, failed, out_of_scope, confidence (null without an answer), and
    where they apply system, slice, weight, bucket and least (see `bucketed`), actual and predicted. `survey` has a row
    per system and slice.
    """

    frame: nw.LazyFrame[Any]
    survey: pl.DataFrame
    by: str | None
    clustered: bool
    system: str | None = None
    """The name of the only system, where no column names it."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell tallies apart; a single system needs none."""
        return (*(() if self.system is not None else ("system",)), *(() if self.by is None else ("slice",)))

    def named(self, groups: pl.DataFrame) -> pl.DataFrame:
        """What an engine gave by the keys, with the name of the only system put in."""
        return groups if self.system is None else groups.with_columns(system=pl.lit(self.system))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the judged rows."""
        return tuple(self.frame.collect_schema().names())

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.survey["rows"].sum())

    @property
    def largest(self) -> float:
        """The largest absolute value of a finite confidence."""
        ends = self.survey.select(pl.max_horizontal(pl.col("lowest", "highest").abs())).to_series()
        return float(ends.max() or 0.0)  # type: ignore[arg-type]


def judge_lazily(
    frame: Any,
    *,
    reading: Reading,
    system: str = "log",
    by: str | None = None,
    labels: bool = False,
    check_ids: bool = False,
    where: str = "data",
    names: Collection[str] = (),
) -> LazyResponses:
    """Judges the rows of a lazy frame where they are; with `labels` the columns actual and predicted are there too.

    `names` are all columns of the log, where the frame holds but those that are needed.

    >>> rows = pl.LazyFrame({"target": ["a", "b"], "prediction": ["a", "a"], "confidence": [0.9, 0.4]})
    >>> judge_lazily(rows, reading=Reading()).survey["right"].to_list()
    [1]
    """
    lazy = nw.from_native(frame).lazy()
    stage = _staged(lazy, reading, by, where, tuple(names))
    judged = _judged(stage, reading)
    survey = survey_of(judged, stage, reading, system=system, by=by)
    found = conclusions(survey, judged, stage, reading, check_ids=check_ids)
    return _finished(judged, stage, survey, found, system=system, by=by, labels=labels)


def _staged(
    frame: nw.LazyFrame[Any], reading: Reading, by: str | None, where: str, names: tuple[str, ...] = ()
) -> Stage:
    with engine_faults_told(where):
        schema = dict(frame.collect_schema())
    names = names or tuple(schema)
    parts = parts_wanted((), reading.where)
    resolution = resolve(names, reading.columns, parts=parts, where=f"{where}:")
    columns = LazyColumns(schema, resolution.columns, where, names)
    refuse_unjudgeable(columns.columns, names, where)
    lists = "target" in columns and _is_list(columns.kind("target"))
    faults: dict[str, nw.Expr] = {}
    selected: dict[str, Any] = {
        **{part: columns.text(part) for part in ("system", "id", "dialogue") if part in columns},
        **{f"no_{part}": columns.empty(part) for part in ("id", "dialogue") if part in columns},
        "prediction": columns.text("prediction"),
        "number": columns.number("confidence"),
        "target": _lists(columns) if lists else columns.text("target"),
    }
    for part in ("correct", "abstained", "failed"):
        selected[part], fault = columns.flag(part)
        if fault is not None:
            faults[f"fault_{part}"] = fault
    if "weight" in columns:
        selected["weight"] = columns.number("weight")
    if by is not None:
        selected["slice"] = _slice(columns, by)
    faults = {**_without_text(columns, by), **faults}
    rows = _kept(frame, columns, reading).select(**selected, **faults)
    return Stage(rows, columns, lists, tuple(faults), resolution.notes)


def _without_text(columns: LazyColumns, by: str | None) -> dict[str, nw.Expr]:
    """Numbers that are to be read as text and have none that all engines agree on."""
    read = {part: columns.columns[part] for part in _TEXTS if part in columns}
    if by is not None:
        read[by] = by if by in columns.schema else columns.columns[by]
    found = {part: no_text(column, columns.schema[column]) for part, column in read.items()}
    return {f"fault_{part}": fault for part, fault in found.items() if fault is not None}


def _kept(frame: nw.LazyFrame[Any], columns: LazyColumns, reading: Reading) -> nw.LazyFrame[Any]:
    for column, value in reading.where:
        name = column if column in columns.schema else columns.columns.get(column)
        if name is None:
            raise unknown_column(column, columns.names, columns.where)
        frame = frame.filter(has_value(name, columns.schema[name], value, f"{columns.where}: {name}"))
    return frame


def _slice(columns: LazyColumns, by: str) -> nw.Expr:
    name = by if by in columns.schema else columns.columns.get(by)
    if name is None:
        raise unknown_column(by, columns.names, columns.where)
    return nw.coalesce(text_of(name, columns.schema[name], f"{columns.where}: {by}"), nw.lit(NONE))


def _is_list(kind: Any) -> bool:
    return isinstance(kind, nw.List | nw.Array)


def _lists(columns: LazyColumns) -> nw.Expr:
    kind = columns.kind("target")
    if kind.inner != nw.String:
        raise DataError(
            "lists of acceptable labels must hold text inside an engine",
            where=f"{columns.where}: target",
            got=kind,
            fix="store them as text, or leave out --engine",
        )
    return nw.col(columns.columns["target"])


def _judged(stage: Stage, reading: Reading) -> nw.LazyFrame[Any]:
    """The rows with answered, right, failed, out_of_scope; `matches` says whether the prediction is a target."""
    frame, rules = stage.frame, reading.rules()
    prediction = nw.col("prediction")
    if "target" not in stage.columns:
        outside, frame = nw.lit(value=False), frame.with_columns(matches=nw.lit(value=False))
    elif stage.lists:
        frame = acceptable(frame, "target", rules.out_of_scope, "acceptable", "first")
        outside = nw.col("first").is_null()
        frame = contains(frame, "acceptable", "prediction", "matches")
    else:
        outside = nw.col("target").is_null() | one_of(nw.col("target"), rules.out_of_scope)
        frame = frame.with_columns(matches=(nw.col("target") == prediction).fill_null(value=False))
    given = nw.lit(value=True)
    if "prediction" in stage.columns:
        given = ~prediction.is_null() & ~one_of(prediction, rules.withheld)
    correct, abstained, failed = (nw.col(name) for name in ("correct", "abstained", "failed"))
    frame = frame.with_columns(
        abstained=nw.coalesce(abstained, nw.lit(value=False)),
        failed=nw.coalesce(failed, nw.lit(value=False)),
        outside=outside,
        given=given,
    )
    frame = frame.with_columns(
        answered=nw.col("given") & ~nw.col("abstained") & ~nw.col("failed"),
        out_of_scope=nw.col("outside") & ~nw.coalesce(correct, nw.lit(value=False)),
        matches=nw.col("matches") & ~nw.col("outside") & ~one_of(prediction, rules.out_of_scope),
    )
    return frame.with_columns(right=nw.col("answered") & nw.coalesce(correct, nw.col("matches")))


def _finished(
    judged: nw.LazyFrame[Any],
    stage: Stage,
    survey: Survey,
    found: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    system: str,
    by: str | None,
    labels: bool,
) -> LazyResponses:
    answered = nw.col("answered")
    columns: dict[str, Any] = {name: nw.col(name) for name in ("answered", "right", "failed", "out_of_scope")}
    if survey.named:
        columns["system"] = nw.col("system")
    columns["confidence"] = nw.when(answered).then(nw.coalesce(nw.col("number"), nw.lit(LOWEST)))
    if by is not None:
        columns["slice"] = nw.col("slice")
    if survey.weighted:
        columns["weight"] = nw.col("weight")
    if labels:
        columns |= _labelled(stage)
    frame = judged
    if survey.clustered or survey.weighted:
        names = [nw.col(part) for part in ("dialogue", "id") if part in stage.columns]
        frame = bucketed(frame.with_columns(unit=nw.coalesce(*names)), "unit", "bucket", least="least")
        columns |= {name: nw.col(name) for name in ("bucket", "least")}
    notes, warnings = found
    name = None if survey.named else system
    return LazyResponses(frame.select(**columns), survey.table, by, survey.clustered, name, notes, warnings)


def _labelled(stage: Stage) -> dict[str, Any]:
    """The label that was right and the one predicted; of several acceptable labels the predicted one, if among them."""
    if "target" not in stage.columns or "prediction" not in stage.columns:
        raise DataError(
            "per-class scores compare labels, so every row needs a target and every answer a prediction",
            where=stage.columns.where,
            fix="rows judged only by `correct` have no class; name the columns with --map target=... prediction=...",
        )
    hit = nw.col("matches") & nw.col("answered")
    first = nw.col("first" if stage.lists else "target")
    target = nw.when(~nw.col("outside")).then(first)
    actual = nw.when(hit).then(nw.col("prediction")).otherwise(target)
    return {
        "actual": nw.coalesce(actual, nw.lit(OUT_OF_SCOPE)),
        "predicted": nw.when(nw.col("answered")).then(nw.col("prediction")),
    }
