"""Rows that stay in the engine that holds them: judged by expressions and checked by one survey."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.engines.cells import LazyColumns, count_if, has_value, no_text, one_of, text_of
from demur.core.engines.engine import bucketed, collected, engine_faults_told
from demur.core.io.columns import MOST_SLICES, parts_wanted, resolve, unknown_column
from demur.core.show.numbers import SUCH_ROWS, counted
from demur.errors import DataError
from demur.returns.judging import (
    EVERY_OR_NONE,
    GOOD_WEIGHT,
    NONE,
    NOT_NAN,
    OUT_OF_SCOPE,
    cautions_in,
    compared,
    conditions,
    judge_rows,
    recognised_in,
    refuse_foreign_labels,
    refuse_missing,
    refuse_unjudgeable,
    refuse_unmarked,
    unranked_notes,
    unranked_systems,
)
from demur.returns.table import FLAGS, Reading

_NO_TEXT = ("must be text or whole numbers", "store it as text, as engines write other numbers differently")
MOST_GROUPS = 100 * (MOST_SLICES + 1)
"""Systems and slices counted apart; a slip such as slicing by id must not bring every row here."""

_SPELLED = nw.col("target").str.starts_with("[") & nw.col("target").str.ends_with("]")
_ENDS = ("lowest", "highest", "squares", "lightest", "heaviest")
_NO_FLAG = ("must be true or false", "")


@dataclass(frozen=True, slots=True)
class StagedLog:
    """Rows under their canonical names; the columns named in `faults` are true where a cell must be refused.

    A fault is located by the name of the log, and the number of rows that have it.
    """

    frame: nw.LazyFrame[Any]
    cells: LazyColumns
    lists: bool
    """Whether targets are lists of acceptable labels."""
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    def __contains__(self, part: str) -> bool:
        return part in self.cells

    @property
    def columns(self) -> Mapping[str, str]:
        """The column that plays each part."""
        return self.cells.columns

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns of the log."""
        return self.cells.names

    @property
    def where(self) -> str:
        """What the log is called."""
        return self.cells.where

    def fault(
        self, part: str, bad: nw.Expr, rule: str, *, count: int = 0, got: object = None, fix: str = ""
    ) -> DataError:
        """The fault of the rows for which a condition holds."""
        del bad
        told = f"{rule} ({SUCH_ROWS.told(count)} in all)" if count else rule
        return DataError(told, where=f"{self.where}: {part}", got=got, fix=fix)


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts by system and slice, and what follows for how rows are drawn."""

    table: pl.DataFrame
    weighted: bool
    clustered: bool
    named: bool
    """Whether a column names the systems."""


def survey_of(
    judged: nw.LazyFrame[Any], stage: StagedLog, reading: Reading, *, system: str, by: str | None = None
) -> Survey:
    """Counts everything of the judged rows in one pass."""
    table, named = _counted(judged, stage, reading, by)
    if not named:
        table = table.with_columns(system=pl.lit(system))
    table = table.filter(pl.col("rows") > 0).sort("system", *(() if by is None else ("slice",)))
    if table.is_empty():
        raise _nothing_left(stage, reading)
    if by is not None and (values := table["slice"].n_unique()) > MOST_SLICES:
        raise DataError(
            f'"{by}" has {values:,} values or more, too many to slice by (at most {MOST_SLICES})',
            fix="slice by a column that groups the inputs, such as a domain or a condition",
        )
    weighted = "weight" in stage and bool((table["lightest"] != 1).any() or (table["heaviest"] != 1).any())
    clustered = "dialogue" in stage and bool((table["no_dialogue"] < table["rows"]).any())
    if "weight" not in stage:
        table = table.with_columns(squares=pl.col("rows").cast(pl.Float64))
    return Survey(table, weighted, clustered, named)


def _counted(
    judged: nw.LazyFrame[Any], stage: StagedLog, reading: Reading, by: str | None
) -> tuple[pl.DataFrame, bool]:
    """The counts by system and slice, and whether a column named the systems; one without any name is none."""
    counts = _counts(stage, reading)
    keys = [part for part, there in (("system", "system" in stage), ("slice", by is not None)) if there]
    if not keys:  # grouped by a constant, Polars takes the rows for sorted and holds them all
        return collected(judged.select(**counts)), False
    table = collected(judged.group_by(*keys).agg(**counts).head(MOST_GROUPS + 1))
    if table.height > MOST_GROUPS:
        named = f'"{by}"' if by is not None else "system"
        raise DataError(
            f"there are more than {MOST_GROUPS:,} systems and slices, too many to count apart",
            where=stage.where,
            fix=f"does {named} name every row by itself?",
        )
    if "system" in keys and table["system"].null_count() == table.height:
        return table.drop("system"), False
    return table, "system" in keys


def _counts(stage: StagedLog, reading: Reading) -> dict[str, Any]:
    number, rules = nw.col("number"), reading.rules()
    finite = nw.when(nw.col("answered") & number.is_finite()).then(number)
    counted = {
        **conditions(rules, stage.columns, lists=stage.lists),
        **{name: nw.col(name) for name in ("answered", "right", "out_of_scope", *stage.faults)},
        **{f"no_{part}": nw.col(f"no_{part}") for part in ("id", "dialogue") if part in stage},
        "nan": NOT_NAN.bad,
        "compared": compared(),
        "hits": compared() & nw.col("matches"),
    }
    if "target" in stage and not stage.lists:
        counted["spelled"] = _SPELLED
    counts = {name: count_if(condition) for name, condition in counted.items()}
    return {"rows": nw.len(), **counts, "lowest": finite.min(), "highest": finite.max(), **_weights(stage)}


def _weights(stage: StagedLog) -> dict[str, Any]:
    if "weight" not in stage:
        return {}
    weight = nw.col("weight")
    return {
        "bad_weight": count_if(GOOD_WEIGHT.bad),
        "squares": (weight * weight).sum(),
        "lightest": weight.min(),
        "heaviest": weight.max(),
    }


def _nothing_left(stage: StagedLog, reading: Reading) -> DataError:
    if not reading.where:
        return DataError("holds no rows", where=stage.where)
    asked = " and ".join(f"{column} is {value}" for column, value in reading.where)
    return DataError(f"no row is left where {asked}", where=f"{stage.where}:")


def conclusions(
    survey: Survey, judged: nw.LazyFrame[Any], stage: StagedLog, reading: Reading, *, check_ids: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Refuses what must be refused; gives notes and warnings."""
    rules = reading.rules()
    counts = {name: int(survey.table[name].sum()) for name in _counts(stage, reading) if name not in _ENDS}
    unranked = sorted(unranked_systems(survey.table))
    _refuse_cells(counts, judged, stage)
    _refuse_systems(survey, stage)
    refuse_missing(survey.table, unranked, rules, stage)
    refuse_unmarked(counts, stage)
    _refuse_units(survey, counts, stage)
    warnings = []
    if "target" in stage and "prediction" in stage:
        warnings = refuse_foreign_labels(*_never_right(survey, judged), rules.out_of_scope, lists=stage.lists)
    notes = [*stage.notes]
    if check_ids:
        _refuse_duplicates(survey, judged, stage)
    elif "id" in stage:
        notes.append("ids were not checked for repeats; --check-ids, or check_ids=True, does, in a pass of its own")
    if not rules.missing_is_lowest:
        notes += unranked_notes(unranked, survey.table["system"].n_unique())
    return (*notes, *counted([recognised_in(counts, rules)])), (*counted([cautions_in(counts)]), *warnings)


def _never_right(survey: Survey, judged: nw.LazyFrame[Any]) -> tuple[nw.LazyFrame[Any], list[str]]:
    """The rows with the names of their systems, and the systems that were never right by comparison."""
    sums = survey.table.group_by("system").agg(pl.col("compared", "hits").sum())
    systems = sorted(sums.filter((pl.col("compared") > 0) & (pl.col("hits") == 0))["system"])
    return judged if survey.named else judged.with_columns(system=nw.lit(survey.table["system"][0])), systems


def _refuse_systems(survey: Survey, stage: StagedLog) -> None:
    """Refuses a system without a name, which cannot be told from the others."""
    if survey.table["system"].null_count():
        rows = int(survey.table.filter(pl.col("system").is_null())["rows"].sum())
        raise stage.fault("system", nw.col("system").is_null(), "must be there in every row", count=rows, got="null")


def _refuse_cells(counts: Mapping[str, int], judged: nw.LazyFrame[Any], stage: StagedLog) -> None:
    for name in stage.faults:
        if counts[name]:
            part = name.removeprefix("fault_")
            rule, fix = _NO_FLAG if part in FLAGS else _NO_TEXT
            raise stage.fault(part, nw.col(name), rule, count=counts[name], fix=fix)
    if count := counts.get("spelled"):
        fix = "store several acceptable labels as a list column, or leave out --engine"
        example = _example(judged, _SPELLED, "target")
        raise stage.fault("target", _SPELLED, "is text that looks like a list", count=count, got=example, fix=fix)
    nulls = counts.get("no_id", 0)
    if 0 < nulls < counts["rows"]:
        raise stage.fault("id", nw.col("no_id"), EVERY_OR_NONE, count=nulls, got="null")
    if counts["nan"]:
        raise stage.fault("confidence", NOT_NAN.bad, NOT_NAN.text, count=counts["nan"], fix=NOT_NAN.fix)
    if count := counts.get("bad_weight"):
        example = _example(judged, GOOD_WEIGHT.bad, "weight")
        got = "null" if example is None else example
        raise stage.fault("weight", GOOD_WEIGHT.bad, GOOD_WEIGHT.text, count=count, got=got)


def _example(judged: nw.LazyFrame[Any], bad: nw.Expr, column: str) -> Any:
    found = collected(judged.filter(bad).select(column).head(1))
    return found.item() if found.height else None


def _refuse_units(survey: Survey, counts: Mapping[str, int], stage: StagedLog) -> None:
    """Rows outside any dialogue, and rows of unequal weight, are drawn one by one, which takes a name for each."""
    alone = survey.clustered and counts["no_dialogue"] > 0
    unnamed = "id" not in stage or counts["no_id"] > 0
    if unnamed and (alone or (survey.weighted and not survey.clustered)):
        kind = "rows outside any dialogue" if alone else "rows whose weight is not 1"
        raise DataError(
            f"{kind} need an id inside an engine, by which they are drawn for intervals",
            where=stage.where,
            fix="add a column id, or leave out --engine",
        )


def _refuse_duplicates(survey: Survey, judged: nw.LazyFrame[Any], stage: StagedLog) -> None:
    if "id" not in stage:
        raise DataError("there is no column id to check for repeats", where=stage.where)
    keys = ("id", "system") if survey.named else ("id",)
    repeated = judged.group_by(*keys).agg(rows=nw.len()).filter(nw.col("rows") > 1)
    found = collected(repeated.select("rows", *keys).head(1))
    if not found.is_empty():
        rows, name, *system = found.row(0)
        of_which = f' in system "{system[0]}"' if system else ""
        rule = f'the id "{name}" occurs {rows:,} times{of_which}'
        fix = "is a part of the log there twice? several systems in one log need a column system"
        raise DataError(rule, where=f"{stage.where}:", fix=fix)


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
    judged = judge_rows(stage.frame, reading.rules(), stage.columns, lists=stage.lists)
    survey = survey_of(judged, stage, reading, system=system, by=by)
    found = conclusions(survey, judged, stage, reading, check_ids=check_ids)
    return _finished(judged, stage, survey, found, system=system, by=by, labels=labels)


def _staged(
    frame: nw.LazyFrame[Any], reading: Reading, by: str | None, where: str, names: tuple[str, ...] = ()
) -> StagedLog:
    with engine_faults_told(where):
        schema = dict(frame.collect_schema())
    names = names or tuple(schema)
    parts = parts_wanted((), reading.where)
    resolution = resolve(names, reading.columns, parts=parts, where=f"{where}:")
    columns = LazyColumns(schema, resolution.columns, where, names)
    refuse_unjudgeable(columns.columns, names, where)
    lists = "target" in columns and isinstance(columns.kind("target"), nw.List | nw.Array)
    faults: dict[str, nw.Expr] = {}
    selected: dict[str, Any] = {
        **{part: columns.text(part) for part in ("system", "id", "dialogue") if part in columns},
        **{f"no_{part}": columns.empty(part) for part in ("id", "dialogue") if part in columns},
        "prediction": columns.text("prediction"),
        "number": columns.number("confidence"),
        "target": _label_lists(columns) if lists else columns.text("target"),
    }
    for part in FLAGS:
        selected[part], fault = columns.flag(part)
        if fault is not None:
            faults[f"fault_{part}"] = fault
    if "weight" in columns:
        selected["weight"] = columns.number("weight")
    if by is not None:
        selected["slice"] = _slice(columns, by, reading.out_of_scope)
    faults = {**_without_text(columns, by), **faults}
    rows = _kept(frame, columns, reading).select(**selected, **faults)
    return StagedLog(rows, columns, lists, tuple(faults), resolution.notes)


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


def _slice(columns: LazyColumns, by: str, out_of_scope: Collection[str]) -> nw.Expr:
    name = by if by in columns.schema else columns.columns.get(by)
    if name is None:
        raise unknown_column(by, columns.names, columns.where)
    text = text_of(name, columns.schema[name], f"{columns.where}: {by}")
    if by == "target":
        return nw.when(~text.is_null() & ~one_of(text, out_of_scope)).then(text).otherwise(nw.lit(OUT_OF_SCOPE))
    return nw.coalesce(text, nw.lit(NONE))


def _label_lists(columns: LazyColumns) -> nw.Expr:
    kind = columns.kind("target")
    if kind.inner != nw.String:
        raise DataError(
            "lists of acceptable labels must hold text inside an engine",
            where=f"{columns.where}: target",
            got=kind,
            fix="store them as text, or leave out --engine",
        )
    return nw.col(columns.columns["target"])


def _finished(
    judged: nw.LazyFrame[Any],
    stage: StagedLog,
    survey: Survey,
    found: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    system: str,
    by: str | None,
    labels: bool,
) -> LazyResponses:
    columns: dict[str, Any] = {
        name: nw.col(name) for name in ("answered", "right", "failed", "out_of_scope", "confidence")
    }
    if survey.named:
        columns["system"] = nw.col("system")
    if by is not None:
        columns["slice"] = nw.col("slice")
    if survey.weighted:
        columns["weight"] = nw.col("weight")
    if labels:
        columns |= _labelled(stage)
    frame = judged
    if survey.clustered or survey.weighted:
        names = [nw.col(part) for part in ("dialogue", "id") if part in stage]
        frame = bucketed(frame.with_columns(unit=nw.coalesce(*names)), "unit", "bucket", least="least")
        columns |= {name: nw.col(name) for name in ("bucket", "least")}
    notes, warnings = found
    name = None if survey.named else system
    return LazyResponses(frame.select(**columns), survey.table, by, survey.clustered, name, notes, warnings)


def _labelled(stage: StagedLog) -> dict[str, Any]:
    """The label that was right and the one predicted; of several acceptable labels the predicted one, if among them."""
    if "target" not in stage or "prediction" not in stage:
        raise DataError(
            "per-class scores compare labels, so every row needs a target and every answer a prediction",
            where=stage.where,
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
