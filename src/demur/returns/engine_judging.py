"""Rows that stay in the engine that holds them: judged by expressions and checked by one survey."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.engines.engine import MARKS, Lazy, add_buckets, add_marks, as_engine_fault, collect_frame
from demur.core.io.columns import MOST_SLICES, STRATUM, column_named, parts_wanted, resolve
from demur.core.io.tables import NOT_FLAG, LazyColumns, has_value, no_text, refuse_patterns, text_of
from demur.core.show.numbers import sentences_of_counts
from demur.errors import DataError
from demur.importers.protocol import is_placeholder, placeholder_labels
from demur.returns import judging
from demur.returns.confidences import (
    is_declared_percent,
    is_guess,
    looks_like_correctness,
    not_taken,
    settle_scales,
    take_anyway,
)
from demur.returns.table import FLAGS, Reading

MOST_GROUPS = 100 * (MOST_SLICES + 1)
"""Systems and slices counted apart; a slip such as slicing by id must not bring every row here."""

STRATA_SET_ASIDE = "strata are not used here: intervals are those of weighted rows; engine memory uses them"

_TEXTS = ("system", "id", "dialogue", "prediction", "target")
"""Columns that are read as text, whatever they hold."""

MARKS_OF_INPUTS = ("id_mark", "input_mark")
"""Columns whose sums agree where systems have the same ids, and the same targets with them."""

SHOWN = "shown:"
"""How the names of columns begin that are there to be looked at."""

INPUT_PART, LISTS_PART = "input", "nbest"
"""Parts that are read only where rows are looked at."""

_SPELLED = nw.col("target").str.starts_with("[") & nw.col("target").str.ends_with("]")


@dataclass(frozen=True, slots=True)
class StagedLog:
    """Rows under their canonical names; the columns named in `faults` are true where a cell must be refused."""

    frame: Lazy
    cells: LazyColumns
    lists: bool
    """Whether targets are lists of acceptable labels."""
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    trials: bool = False
    """Whether rows have an id and a trial."""
    shown: tuple[str, ...] = ()
    """Columns that are carried along to be shown, as they are named in `frame`."""

    def __contains__(self, part: str) -> bool:
        return part in self.cells


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts by system and slice, the sums of the counts, and what follows for how rows are drawn."""

    table: pl.DataFrame
    counts: dict[str, int]
    weighted: bool
    clustered: bool
    named: bool
    """Whether a column names the systems."""


@dataclass(frozen=True, slots=True)
class LazyResponses:
    """Judged rows as an engine will compute them, and what the survey found.

    `frame` has the columns answered, right, failed, out_of_scope, confidence (null without an answer), and where they
    apply system, slice, weight, bucket and least (see `add_buckets`), actual and predicted; to be paired also id, unit
    and the marks of `MARKS_OF_INPUTS`; to be shown those of `LazyRows`. `survey` has a row per system and slice.
    """

    frame: Lazy
    survey: pl.DataFrame
    by: str | None
    clustered: bool
    system: str | None = None
    """The name of the only system, where no column names it."""
    trials: bool = False
    """Whether inputs were tried several times, so that rows are grouped by id."""
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
    dialogues: bool = False,
    pairing: bool = False,
    shown: Sequence[str] | None = None,
    check_ids: bool = False,
    where: str = "data",
    names: Collection[str] = (),
) -> LazyResponses:
    """Judges the rows of a lazy frame where they are; with `labels` the columns actual and predicted are there too.

    With `dialogues` their names are, null where a row has none. For `pairing` rows with ids always have buckets, and
    what shows whether systems have the same inputs in them. `shown` are further columns to look at rows with, which are
    read only where rows are fetched; their labels, inputs and lists come along.
    `names` are all columns of the log, where the frame holds but those that are needed.

    >>> rows = pl.LazyFrame({"target": ["a", "b"], "prediction": ["a", "a"], "confidence": [0.9, 0.4]})
    >>> judge_lazily(rows, reading=Reading()).survey["right"].to_list()
    [1]
    """
    stage = _stage_columns(nw.from_native(frame).lazy(), reading, by, where, tuple(names), shown)
    judged = judging.judge_rows(stage.frame, reading.rules(), stage.cells.columns, lists=stage.lists)
    survey = _survey_of(judged, stage, reading, system=system, by=by)
    if survey.counts.get("placeholders") and (no_answers := placeholder_labels(judged, lists=stage.lists)):
        more = replace(reading, withheld=(*reading.withheld, *no_answers))
        how: dict[str, Any] = {"labels": labels, "dialogues": dialogues, "pairing": pairing, "shown": shown}
        about: dict[str, Any] = {"by": by, "where": where, "names": names, "check_ids": check_ids}
        return judge_lazily(frame, reading=more, system=system, **how, **about)
    amended = _amend(judged, survey, stage, reading)
    if amended.rows is not judged:
        rows, judged = survey.counts["rows"], amended.rows
        survey = _survey_of(judged, stage, reading, system=system, by=by)
        survey.counts["unjudged"] = rows - survey.counts["rows"]
    notes, warnings = _conclusions(survey, judged, stage, reading, check_ids=check_ids)
    notes, warnings = (*amended.notes, *notes), (*amended.warnings, *warnings)
    if {STRATUM, "weight"} <= stage.cells.columns.keys():
        notes = (*notes, STRATA_SET_ASIDE)
    columns: dict[str, Any] = {
        name: nw.col(name) for name in ("answered", "right", "failed", "out_of_scope", "confidence")
    }
    for name, there in (("system", survey.named), ("slice", by is not None), ("weight", survey.weighted)):
        if there:
            columns[name] = nw.col(name)
    if labels:
        columns |= _labelled(stage)
    if shown is not None:
        columns |= _texts_shown(stage)
    if dialogues and "dialogue" in stage:
        columns["dialogue"] = nw.col("dialogue")
    if trials := _repeats_ids(survey, judged, stage):
        survey = replace(survey, clustered=True)
        notes = (*notes, "inputs were tried several times and count once for each try: rows are grouped by id")
    named = pairing and "id" in stage and not survey.counts["no_id"]
    if survey.clustered or survey.weighted or named:
        units = [nw.col(part) for part in ("dialogue", "id") if part in stage]
        judged = add_buckets(judged.with_columns(unit=nw.coalesce(*units)), "unit")
        columns |= {name: nw.col(name) for name in ("bucket", "least")}
    if named:
        judged = _with_marks(judged, stage)
        columns |= {name: nw.col(name) for name in ("id", "unit", *MARKS_OF_INPUTS)}
    only = None if survey.named else system
    return LazyResponses(judged.select(**columns), survey.table, by, survey.clustered, only, trials, notes, warnings)


def _stage_columns(
    frame: Lazy,
    reading: Reading,
    by: str | None,
    where: str,
    names: tuple[str, ...],
    shown: Sequence[str] | None,
) -> StagedLog:
    with as_engine_fault(where):
        schema = dict(frame.collect_schema())
    names = names or tuple(schema)
    bulky = () if shown is None else (INPUT_PART, LISTS_PART)
    resolution = resolve(names, reading.columns, parts=parts_wanted(bulky, reading.where), where=f"{where}:")
    columns = LazyColumns(schema, resolution.columns, where, names)
    asked = [by, *(name for name, _ in reading.where)]
    refuse_patterns([*columns.columns.values(), *(name for name in asked if name in names)], where)
    judging.refuse_unjudgeable(columns.columns, names, where)
    lists = "target" in columns and isinstance(columns.kind("target"), nw.List | nw.Array)
    read = {part: columns.columns[part] for part in _TEXTS if part in columns}
    selected: dict[str, Any] = {
        **{part: columns.text(part) for part in ("system", "id", "dialogue") if part in columns},
        **{f"no_{part}": columns.empty(part) for part in ("id", "dialogue") if part in columns},
        "prediction": columns.text("prediction"),
        "number": columns.number("confidence"),
        "target": _label_lists(columns) if lists else columns.text("target"),
    }
    flags = {part: columns.flag(part) for part in FLAGS}
    selected |= {part: flag for part, (flag, _) in flags.items()}
    if "weight" in columns:
        selected["weight"] = columns.number("weight")
    if "trial" in columns and "id" in columns:
        with suppress(DataError):  # times and the like number no trials
            selected["trial"] = columns.text("trial")
    if by is not None:
        read[by] = column_named(by, names, columns.columns, where)
        text = text_of(read[by], schema[read[by]], f"{where}: {by}")
        if by == "target":
            inside = ~text.is_null() & ~judging.one_of(text, reading.out_of_scope)
            selected["slice"] = nw.when(inside).then(text).otherwise(nw.lit(judging.OUT_OF_SCOPE))
        else:
            selected["slice"] = nw.coalesce(text, nw.lit(judging.NONE))
    bad = {part: no_text(column, schema[column]) for part, column in read.items()}
    bad |= {part: fault for part, (_, fault) in flags.items()}
    faults = {f"fault_{part}": fault for part, fault in bad.items() if fault is not None}
    for name, value in reading.where:
        column = column_named(name, names, columns.columns, where)
        frame = frame.filter(has_value(column, schema[column], value, f"{where}: {column}"))
    carried = {} if shown is None else _carried(columns, shown)
    rows = frame.select(**selected, **faults, **carried)
    return StagedLog(rows, columns, lists, tuple(faults), resolution.notes, "trial" in selected, tuple(carried))


def _carried(columns: LazyColumns, shown: Sequence[str]) -> dict[str, nw.Expr]:
    """The columns that rows are shown with: inputs, lists and further ones, as they are."""
    bulky = {SHOWN + part: columns.columns[part] for part in (INPUT_PART, LISTS_PART) if part in columns}
    return {name: nw.col(column) for name, column in {**bulky, **{SHOWN + name: name for name in shown}}.items()}


def _texts_shown(stage: StagedLog) -> dict[str, Any]:
    """The id, the labels and the further columns of rows that are looked at."""
    found = {name: nw.col(name) for name in stage.shown}
    for part in ("id", "prediction"):
        found[SHOWN + part] = nw.col(part) if part in stage else nw.lit(None, dtype=nw.String)
    if "target" in stage:
        labels = nw.col("acceptable" if stage.lists else "target")
        found |= {SHOWN + "target": labels, SHOWN + "outside": nw.col("outside")}
    return found


def _label_lists(columns: LazyColumns) -> nw.Expr:
    kind = columns.kind("target")
    if kind.inner != nw.String:
        rule = "lists of acceptable labels must hold text inside an engine"
        fix = "store them as text, or leave out --engine"
        raise DataError(rule, where=f"{columns.where}: target", got=kind, fix=fix)
    return nw.col(columns.columns["target"])


def _survey_of(judged: Lazy, stage: StagedLog, reading: Reading, *, system: str, by: str | None) -> Survey:
    """Counts everything of the judged rows in one pass; systems of which none has a name are one."""
    asked = _conditions(stage, reading)
    number, weight = nw.col("number"), nw.col("weight")
    finite = nw.when(nw.col("answered") & number.is_finite()).then(number)
    sums: dict[str, Any] = {name: nw.when(condition).then(1).count() for name, condition in asked.items()}
    sums |= {"rows": nw.len(), "lowest": finite.min(), "highest": finite.max()}
    if stage.trials:
        sums |= {"first_trial": nw.col("trial").min(), "last_trial": nw.col("trial").max()}
    if "weight" in stage:
        sums |= {"squares": (weight * weight).sum(), "lightest": weight.min(), "heaviest": weight.max()}
    keys = [part for part, there in (("system", "system" in stage), ("slice", by is not None)) if there]
    if keys:
        table = collect_frame(judged.group_by(*keys).agg(**sums).head(MOST_GROUPS + 1))
    else:  # grouped by a constant, Polars takes the rows for sorted and holds them all
        table = collect_frame(judged.select(**sums))
    if table.height > MOST_GROUPS:
        named = "system" if by is None else f'"{by}"'
        rule = f"there are more than {MOST_GROUPS:,} systems and slices, too many to count apart"
        fix = f"does {named} name every row by itself?"
        raise DataError(rule, where=stage.cells.where, fix=fix)
    is_named = "system" in keys and table["system"].null_count() < table.height
    if not is_named:
        table = table.with_columns(system=pl.lit(system))
    table = table.filter(pl.col("rows") > 0).sort("system", *(() if by is None else ("slice",)))
    if table.is_empty():
        if reading.where:
            raise DataError(f"no row is left where {reading.condition}", where=f"{stage.cells.where}:")
        raise DataError("holds no rows", where=stage.cells.where)
    if by is not None and (values := table["slice"].n_unique()) > MOST_SLICES:
        rule = f'"{by}" has {values:,} values or more, too many to slice by (at most {MOST_SLICES})'
        raise DataError(rule, fix="slice by a column that groups the inputs, such as a domain or a condition")
    weighted = "weight" in stage and bool((table["lightest"] != 1).any() or (table["heaviest"] != 1).any())
    clustered = "dialogue" in stage and bool((table["no_dialogue"] < table["rows"]).any())
    if "weight" not in stage:
        table = table.with_columns(squares=pl.col("rows").cast(pl.Float64))
    counts = {name: int(table[name].sum()) for name in ("rows", *asked)}
    return Survey(table, counts, weighted, clustered, is_named)


@dataclass(frozen=True, slots=True)
class _Amended:
    """Judged rows after what their whole column says was heeded, and what is to say of it."""

    rows: Lazy
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _amend(judged: Lazy, survey: Survey, stage: StagedLog, reading: Reading) -> _Amended:
    """Leaves out rows that nothing judges, drops a guess that is correctness, and reads percentages as rates."""
    rules, cells, counts = reading.rules(), stage.cells, survey.counts
    rows = judged
    notes: list[str] = []
    warnings: list[str] = []
    if counts.get("bad_confidence", 0):
        return _Amended(judged)  # to be refused
    if judging.leaves_unjudged(judged, cells.columns, counts):
        rows = rows.filter(~judging.unjudged_where(cells.columns))
    if is_guess(cells.columns, reading.columns) and looks_like_correctness(rows):
        column = cells.columns["confidence"]
        if not rules.missing_is_lowest:
            raise DataError(not_taken(column), where=f"{cells.where}:", fix=take_anyway(column))
        none = nw.lit(None, dtype=nw.Float64)
        rows = rows.with_columns(number=none, confidence=nw.when(nw.col("answered")).then(nw.lit(judging.LOWEST)))
        return _Amended(rows, warnings=(not_taken(column),))
    ends = survey.table["lowest"].min(), survey.table["highest"].max()
    if reading.ranked and ends[1] is not None and (is_declared_percent() or (ends[0] >= 0 and ends[1] > 1)):  # type: ignore[operator]
        scaled, notes, warnings = settle_scales(
            rows,
            keys=("system",) if survey.named else (),
            missing_is_lowest=rules.missing_is_lowest,
            where=cells.where,
            places=lambda _: "",
        )
        if scaled is not rows:
            own = nw.when(nw.col("confidence") > judging.LOWEST).then(nw.col("confidence"))
            rows = scaled.with_columns(number=nw.when(nw.col("answered")).then(own).otherwise(nw.col("number")))
    return _Amended(rows, tuple(notes), tuple(warnings))


def _conditions(stage: StagedLog, reading: Reading) -> dict[str, nw.Expr]:
    """What is counted of the judged rows: what the rules of judging ask for, and what engines refuse besides."""
    found = {
        **judging.conditions(reading.rules(), stage.cells.columns, lists=stage.lists),
        **{name: nw.col(name) for name in ("answered", "right", "out_of_scope", *stage.faults)},
        **{f"no_{part}": nw.col(f"no_{part}") for part in ("id", "dialogue") if part in stage},
        **{f"bad_{rule.part}": rule.bad for rule in judging.CELL_RULES if rule.part in stage},
        "compared": judging.compared(),
        "hits": judging.compared() & nw.col("matches"),
    }
    if "target" in stage and not stage.lists:
        found["spelled"] = _SPELLED
    if "prediction" in stage and reading.withheld == Reading().withheld:
        found["placeholders"] = nw.col("answered") & is_placeholder(nw.col("prediction"))
    return found


def _conclusions(
    survey: Survey, judged: Lazy, stage: StagedLog, reading: Reading, *, check_ids: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Refuses what must be refused; gives notes and warnings."""
    rules, cells, counts = reading.rules(), stage.cells, survey.counts
    table = judging.Located(cells.columns, cells.names, cells.where, cells.fault)
    unranked = sorted(judging.unranked_systems(survey.table))
    _refuse_cells(counts, judged, stage)
    nameless = survey.table.filter(pl.col("system").is_null())
    if nameless.height:
        rows = int(nameless["rows"].sum())
        raise cells.fault("system", nw.col("system").is_null(), "must be there in every row", count=rows, got="null")
    judging.refuse_missing(survey.table, unranked, rules, table)
    judging.refuse_unmarked(counts, table)
    _refuse_units(survey, stage)
    is_unlabelled = judging.is_unlabelled(counts, cells.columns) and not reading.where
    warnings = [judging.unlabelled_warning(cells.where)] if is_unlabelled else []
    if "target" in stage and "prediction" in stage:
        sums = survey.table.group_by("system").agg(pl.col("compared", "hits").sum())
        never_right = sorted(sums.filter((pl.col("compared") > 0) & (pl.col("hits") == 0))["system"])
        named = judged if survey.named else judged.with_columns(system=nw.lit(survey.table["system"][0]))
        warnings += judging.refuse_foreign_labels(named, never_right, rules.out_of_scope, lists=stage.lists)
    notes = [*stage.notes]
    if check_ids:
        _refuse_repeated_ids(survey, judged, stage)
    elif "id" in stage:
        notes.append("ids were not checked for repeats; --check-ids, or check_ids=True, does, in a pass of its own")
    if not rules.missing_is_lowest:
        notes += judging.unranked_notes(unranked, survey.table["system"].n_unique())
    notes += [
        *sentences_of_counts([judging.recognised_in(counts, rules, cells.columns)]),
        *(judging.calibration_notes(counts, cells.where) if rules.ranked else ()),
    ]
    return tuple(notes), (*sentences_of_counts([judging.cautions_in(counts)]), *warnings)


def _refuse_cells(counts: Mapping[str, int], judged: Lazy, stage: StagedLog) -> None:
    """Refuses cells of no use; the rules are those of memory, but for numbers that engines write differently."""

    def refuse(part: str, bad: nw.Expr, rule: str, count: int, *, column: str = "", got: Any = None, fix: str) -> None:
        if column:
            got = collect_frame(judged.filter(bad).select(column).head(1)).item()
            got = "null" if got is None else got
        raise stage.cells.fault(part, bad, rule, count=count, got=got, fix=fix)

    for name in stage.faults:
        if count := counts[name]:
            part = name.removeprefix("fault_")
            rule = NOT_FLAG if part in FLAGS else "must be text or whole numbers"
            fix = "" if part in FLAGS else "store it as text, as engines write other numbers differently"
            refuse(part, nw.col(name), rule, count, fix=fix)
    if count := counts.get("spelled", 0):
        fix = "store several acceptable labels as a list column, or leave out --engine"
        refuse("target", _SPELLED, "is text that looks like a list", count, column="target", fix=fix)
    nulls = counts.get("no_id", 0)
    if 0 < nulls < counts["rows"]:
        refuse("id", nw.col("no_id"), judging.EVERY_OR_NONE, nulls, got="null", fix="")
    for one in judging.CELL_RULES:
        if count := counts.get(f"bad_{one.part}", 0):
            refuse(one.part, one.bad, one.text, count, column=one.column if one.shows_value else "", fix=one.fix)


def _refuse_units(survey: Survey, stage: StagedLog) -> None:
    """Rows outside any dialogue, and rows of unequal weight, are drawn one by one, which takes a name for each."""
    alone = survey.clustered and survey.counts["no_dialogue"] > 0
    unnamed = "id" not in stage or survey.counts["no_id"] > 0
    if unnamed and (alone or (survey.weighted and not survey.clustered)):
        kind = "rows outside any dialogue" if alone else "rows whose weight is not 1"
        rule = f"{kind} need an id inside an engine, by which they are drawn for intervals"
        raise DataError(rule, where=stage.cells.where, fix="add a column id, or leave out --engine")


def _refuse_repeated_ids(survey: Survey, judged: Lazy, stage: StagedLog) -> None:
    if "id" not in stage:
        raise DataError("there is no column id to check for repeats", where=stage.cells.where)
    found = _repeated(survey, judged, *(("trial",) if stage.trials else ()))
    if not found.is_empty():
        rows, name, *system = found.drop("trial", strict=False).row(0)
        of_which = f' in system "{system[0]}"' if system else ""
        rule = f'the id "{name}" occurs {rows:,} times{of_which}'
        fix = "is a part of the log there twice? several systems in one log need a column system"
        raise DataError(rule, where=f"{stage.cells.where}:", fix=fix)


def _repeated(survey: Survey, judged: Lazy, *further: str) -> pl.DataFrame:
    """An id that is there twice within a system, and how often, if there is any; further columns tell rows apart."""
    keys = (*(("id", "system") if survey.named else ("id",)), *further)
    repeated = judged.group_by(*keys).agg(rows=nw.len()).filter(nw.col("rows") > 1)
    return collect_frame(repeated.select("rows", *keys).head(1))


def _repeats_ids(survey: Survey, judged: Lazy, stage: StagedLog) -> bool:
    """Whether inputs were tried several times, looked for where the trials of rows differ."""
    table = survey.table
    if not stage.trials or table["first_trial"].min() == table["last_trial"].max():
        return False
    if survey.counts["no_id"] or _repeated(survey, judged).is_empty():
        return False
    if survey.clustered:
        rule = "inputs that were tried several times cannot be grouped by id and by dialogue inside an engine"
        raise DataError(rule, where=stage.cells.where, fix="leave out the column dialogue, or use --engine memory")
    if not _repeated(survey, judged, "trial").is_empty():
        _refuse_repeated_ids(survey, judged, stage)
    return True


def _with_marks(judged: Lazy, stage: StagedLog) -> Lazy:
    """Adds numbers for ids, and for ids with their targets where these are text, that sum up alike where inputs are."""
    judged = add_marks(judged, "id", "id_mark")
    if "target" not in stage or stage.lists:
        return judged.with_columns(input_mark=nw.col("id_mark"))
    product = nw.col("id_mark") * nw.col("input_mark")
    return add_marks(judged, "target", "input_mark").with_columns(input_mark=product % MARKS)


def _labelled(stage: StagedLog) -> dict[str, Any]:
    """The label that was right and the one predicted; of several acceptable labels the predicted one, if among them."""
    if "target" not in stage or "prediction" not in stage:
        rule = "per-class scores compare labels, so every row needs a target and every answer a prediction"
        fix = "rows judged only by `correct` have no class; name the columns with --map target=... prediction=..."
        raise DataError(rule, where=stage.cells.where, fix=fix)
    hit = nw.col("matches") & nw.col("answered")
    first = nw.col("first" if stage.lists else "target")
    target = nw.when(~nw.col("outside")).then(first)
    actual = nw.when(hit).then(nw.col("prediction")).otherwise(target)
    return {
        "actual": nw.coalesce(actual, nw.lit(judging.OUT_OF_SCOPE)),
        "predicted": nw.when(nw.col("answered")).then(nw.col("prediction")),
    }
