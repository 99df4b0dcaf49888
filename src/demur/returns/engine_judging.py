"""Rows that stay in the engine that holds them: judged by expressions and checked by one survey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.engines.cells import LazyColumns, Stage, acceptable, count_if, has_value, no_text, one_of, text_of
from demur.core.engines.engine import bucketed, collected, contains, engine_faults_told
from demur.core.io.columns import MOST_SLICES, parts_wanted, resolve, unknown_column
from demur.core.show.numbers import SUCH_ROWS, Wording, counted
from demur.errors import DataError
from demur.returns import table
from demur.returns.table import LOWEST, NONE, OUT_OF_SCOPE, Reading, foreign_labels, refuse_unjudgeable

_NO_TEXT = ("must be text or whole numbers", "store it as text, as engines write other numbers differently")
MOST_GROUPS = 100 * (MOST_SLICES + 1)
"""Systems and slices counted apart; a slip such as slicing by id must not bring every row here."""

_SPELLED = nw.col("target").str.starts_with("[") & nw.col("target").str.ends_with("]")
_COMPARED = nw.col("answered") & ~nw.col("out_of_scope") & nw.col("correct").is_null()
_NO_FLAG = ("must be true or false", "")
_FLAGS = ("correct", "abstained", "failed")


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts by system and slice, and what follows for how rows are drawn."""

    table: pl.DataFrame
    weighted: bool
    clustered: bool
    named: bool
    """Whether a column names the systems."""


def survey_of(
    judged: nw.LazyFrame[Any], stage: Stage, reading: Reading, *, system: str, by: str | None = None
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
    weighted = "weight" in stage.columns and bool((table["lightest"] != 1).any() or (table["heaviest"] != 1).any())
    clustered = "dialogue" in stage.columns and bool((table["no_dialogue"] < table["rows"]).any())
    if "weight" not in stage.columns:
        table = table.with_columns(squares=pl.col("rows").cast(pl.Float64))
    return Survey(table, weighted, clustered, named)


def _counted(judged: nw.LazyFrame[Any], stage: Stage, reading: Reading, by: str | None) -> tuple[pl.DataFrame, bool]:
    """The counts by system and slice, and whether a column named the systems; one without any name is none."""
    counts = {"rows": nw.len(), **_counts(stage, reading)}
    keys = [part for part, there in (("system", "system" in stage.columns), ("slice", by is not None)) if there]
    if not keys:  # grouped by a constant, Polars takes the rows for sorted and holds them all
        return collected(judged.select(**counts)), False
    table = collected(judged.group_by(*keys).agg(**counts).head(MOST_GROUPS + 1))
    if table.height > MOST_GROUPS:
        named = f'"{by}"' if by is not None else "system"
        raise DataError(
            f"there are more than {MOST_GROUPS:,} systems and slices, too many to count apart",
            where=stage.columns.where,
            fix=f"does {named} name every row by itself?",
        )
    if "system" in keys and table["system"].null_count() == table.height:
        return table.drop("system"), False
    return table, "system" in keys


def _counts(stage: Stage, reading: Reading) -> dict[str, Any]:
    rules = reading.rules()
    answered, number, prediction = nw.col("answered"), nw.col("number"), nw.col("prediction")
    correct = nw.col("correct")
    finite = nw.when(answered & number.is_finite()).then(number)
    conditions: dict[str, nw.Expr] = {
        **{name: nw.col(name) for name in ("answered", "right", "failed", "out_of_scope", "abstained", *stage.faults)},
        **{f"no_{part}": nw.col(f"no_{part}") for part in ("id", "dialogue") if part in stage.columns},
        "ranked": ~number.is_null(),
        "missing": answered & number.is_null(),
        "nan": number.is_nan(),
        "null_target": nw.col("target").is_null(),
        "null_prediction": prediction.is_null(),
        "outside_returned": answered & one_of(prediction, rules.out_of_scope),
        "empty_returned": answered & (prediction == ""),
        "correct_outside": nw.col("right") & nw.col("outside"),
        "correct_unanswered": ~answered & correct,
        "unmarked": answered & correct.is_null(),
        "compared": _COMPARED,
        "hits": _COMPARED & nw.col("matches"),
    }
    for place, label in enumerate(rules.out_of_scope if "target" in stage.columns else ()):
        target = nw.col("target")
        conditions[f"outside_{place}"] = target.list.contains(label) if stage.lists else target == label
    for place, label in enumerate(rules.withheld):
        conditions[f"withheld_{place}"] = prediction == label
    if "target" in stage.columns and not stage.lists:
        conditions["spelled"] = _SPELLED
    counts = {name: count_if(condition) for name, condition in conditions.items()}
    return {**counts, "lowest": finite.min(), "highest": finite.max(), **_weights(stage)}


def _weights(stage: Stage) -> dict[str, Any]:
    if "weight" not in stage.columns:
        return {}
    weight = nw.col("weight")
    bad = weight.is_null() | ~weight.is_finite() | (weight < 0)
    return {
        "bad_weight": count_if(bad),
        "squares": (weight * weight).sum(),
        "lightest": weight.min(),
        "heaviest": weight.max(),
    }


def _nothing_left(stage: Stage, reading: Reading) -> DataError:
    if not reading.where:
        return DataError("holds no rows", where=stage.columns.where)
    asked = " and ".join(f"{column} is {value}" for column, value in reading.where)
    return DataError(f"no row is left where {asked}", where=f"{stage.columns.where}:")


def conclusions(
    survey: Survey, judged: nw.LazyFrame[Any], stage: Stage, reading: Reading, *, check_ids: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Refuses what must be refused; gives notes and warnings."""
    for refuse in (_refuse_cells, _refuse_systems, _refuse_missing, _refuse_unmarked, _refuse_units):
        refuse(survey, judged, stage, reading)
    warnings = _foreign(survey, judged, stage, reading)
    notes = [*stage.notes]
    if check_ids:
        _refuse_duplicates(survey, judged, stage)
    elif "id" in stage.columns:
        notes.append("ids were not checked for repeats; --check-ids, or check_ids=True, does, in a pass of its own")
    recognised, cautions = _told(survey, stage, reading)
    unranked = _unranked(survey)
    if unranked and reading.missing_confidence == "error":
        of_which = "" if len(unranked) == survey.table["system"].n_unique() else f" of {', '.join(unranked)}"
        notes.append(f"no confidences{of_which}: only what a system withholds by itself counts")
    return (*notes, *counted([recognised])), (*counted([cautions]), *warnings)


def _sum(survey: Survey, name: str) -> int:
    return int(survey.table[name].sum()) if name in survey.table.columns else 0


def _refuse_systems(survey: Survey, _: nw.LazyFrame[Any], stage: Stage, __: Reading) -> None:
    """A system without a name cannot be told from the others."""
    if survey.table["system"].null_count():
        rows = int(survey.table.filter(pl.col("system").is_null())["rows"].sum())
        rule = f"must be there in every row ({SUCH_ROWS.told(rows)} in all)"
        raise DataError(rule, where=f"{stage.columns.where}: system", got="null")


def _refuse_cells(survey: Survey, judged: nw.LazyFrame[Any], stage: Stage, _: Reading) -> None:
    where = stage.columns.where
    for name in stage.faults:
        if count := _sum(survey, name):
            part = name.removeprefix("fault_")
            rule, fix = _NO_FLAG if part in _FLAGS else _NO_TEXT
            raise DataError(f"{rule} ({SUCH_ROWS.told(count)} in all)", where=f"{where}: {part}", fix=fix)
    if count := _sum(survey, "spelled"):
        example = _example(judged, _SPELLED, "target")
        rule = f"is text that looks like a list ({SUCH_ROWS.told(count)} in all)"
        fix = "store several acceptable labels as a list column, or leave out --engine"
        raise DataError(rule, where=f"{where}: target", got=example, fix=fix)
    nulls = _sum(survey, "no_id")
    if "id" in stage.columns and 0 < nulls < _sum(survey, "rows"):
        rule = f"must be there in every row or in none ({SUCH_ROWS.told(nulls)} in all)"
        raise DataError(rule, where=f"{where}: id", got="null")
    if count := _sum(survey, "nan"):
        rule = f"must not be NaN ({SUCH_ROWS.told(count)} in all)"
        raise DataError(rule, where=f"{where}: confidence", fix="leave it empty if it is missing")
    if count := _sum(survey, "bad_weight"):
        weight = nw.col("weight")
        example = _example(judged, weight.is_null() | ~weight.is_finite() | (weight < 0), "weight")
        rule = f"must be a number of 0 or more ({SUCH_ROWS.told(count)} in all)"
        raise DataError(rule, where=f"{where}: weight", got="null" if example is None else example)


def _example(judged: nw.LazyFrame[Any], bad: nw.Expr, column: str) -> Any:
    found = collected(judged.filter(bad).select(column).head(1))
    return found.item() if found.height else None


def _unranked(survey: Survey) -> list[str]:
    sums = survey.table.group_by("system").agg(pl.col("ranked", "missing").sum())
    return sorted(sums.filter((pl.col("ranked") == 0) & (pl.col("missing") > 0))["system"])


def _refuse_missing(survey: Survey, _: nw.LazyFrame[Any], stage: Stage, reading: Reading) -> None:
    if reading.missing_confidence == "lowest":
        return
    unranked = _unranked(survey)
    lacking = survey.table.filter(~pl.col("system").is_in(unranked), pl.col("missing") > 0)
    if not lacking.is_empty():
        rule = f"is missing for an answer ({SUCH_ROWS.told(int(lacking['missing'].sum()))} in all)"
        raise DataError(rule, where=f"{stage.columns.where}: confidence", fix=table.RANK_LOWEST)
    if unranked:
        table.refuse_lookalike(stage.columns.columns, stage.columns.names, stage.columns.where)


def _refuse_unmarked(survey: Survey, _: nw.LazyFrame[Any], stage: Stage, __: Reading) -> None:
    lacking = [part for part in ("target", "prediction") if part not in stage.columns]
    if lacking and (count := _sum(survey, "unmarked")):
        rule = f"must be given for every answer, as there is no column {lacking[0]} ({SUCH_ROWS.told(count)} in all)"
        raise DataError(rule, where=f"{stage.columns.where}: correct", got="null")


def _refuse_units(survey: Survey, _: nw.LazyFrame[Any], stage: Stage, __: Reading) -> None:
    """Rows outside any dialogue, and rows of unequal weight, are drawn one by one, which takes a name for each."""
    alone = survey.clustered and _sum(survey, "no_dialogue") > 0
    unnamed = "id" not in stage.columns or _sum(survey, "no_id") > 0
    if unnamed and (alone or (survey.weighted and not survey.clustered)):
        kind = "rows outside any dialogue" if alone else "rows whose weight is not 1"
        raise DataError(
            f"{kind} need an id inside an engine, by which they are drawn for intervals",
            where=stage.columns.where,
            fix="add a column id, or leave out --engine",
        )


def _foreign(survey: Survey, judged: nw.LazyFrame[Any], stage: Stage, reading: Reading) -> list[str]:
    """Refuses a system none of whose predictions is a target anywhere, as in memory; it costs a pass where none is."""
    if "target" not in stage.columns or "prediction" not in stage.columns:
        return []
    sums = survey.table.group_by("system").agg(pl.col("compared", "hits").sum())
    warnings = []
    for system in sorted(sums.filter((pl.col("compared") > 0) & (pl.col("hits") == 0))["system"]):
        column = nw.col("target")
        targets = judged.select(label=column).explode("label") if stage.lists else judged.select(label=column)
        known = ~nw.col("label").is_null() & ~one_of(nw.col("label"), reading.out_of_scope)
        targets = targets.filter(known).unique("label")
        compared = _COMPARED & (nw.col("system") == system) if survey.named else _COMPARED
        predictions = judged.filter(compared).select(label=nw.col("prediction")).unique("label")
        if collected(predictions.join(targets, on="label", how="semi").head(1)).is_empty():
            shown = [collected(labels.head(1000))["label"].sort() for labels in (targets, predictions)]
            warnings += foreign_labels(system, *shown)
    return warnings


def _refuse_duplicates(survey: Survey, judged: nw.LazyFrame[Any], stage: Stage) -> None:
    if "id" not in stage.columns:
        raise DataError("there is no column id to check for repeats", where=stage.columns.where)
    keys = ("id", "system") if survey.named else ("id",)
    repeated = judged.group_by(*keys).agg(rows=nw.len()).filter(nw.col("rows") > 1)
    found = collected(repeated.select("rows", *keys).head(1))
    if not found.is_empty():
        rows, name, *system = found.row(0)
        of_which = f' in system "{system[0]}"' if system else ""
        rule = f'the id "{name}" occurs {rows:,} times{of_which}'
        fix = "is a part of the log there twice? several systems in one log need a column system"
        raise DataError(rule, where=f"{stage.columns.where}:", fix=fix)


def _told(survey: Survey, stage: Stage, reading: Reading) -> tuple[Counter[Wording], Counter[Wording]]:
    rules = reading.rules()
    recognised: Counter[Wording] = Counter()
    for place, label in enumerate(rules.out_of_scope):
        recognised[table.OUTSIDE.about(label)] += _sum(survey, f"outside_{place}")
    if "target" in stage.columns:
        recognised[table.NULL_OUTSIDE] += _sum(survey, "null_target")
    if "prediction" in stage.columns:
        for place, label in enumerate(rules.withheld):
            recognised[table.WITHHELD.about(label)] += _sum(survey, f"withheld_{place}")
        recognised[table.NULL_WITHHELD] += _sum(survey, "null_prediction")
    recognised[table.ABSTAINED] += _sum(survey, "abstained")
    if rules.missing_is_lowest:
        recognised[table.READ_AS_LOWEST] += _sum(survey, "missing")
    names = {
        "failed": table.FAILED,
        "outside_returned": table.OUTSIDE_RETURNED,
        "empty_returned": table.EMPTY_RETURNED,
        "correct_outside": table.CORRECT_OUTSIDE,
        "correct_unanswered": table.CORRECT_UNANSWERED,
    }
    return recognised, Counter({words: _sum(survey, name) for name, words in names.items()})


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
        selected["slice"] = _slice(columns, by, reading.out_of_scope)
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


def _slice(columns: LazyColumns, by: str, out_of_scope: Collection[str]) -> nw.Expr:
    name = by if by in columns.schema else columns.columns.get(by)
    if name is None:
        raise unknown_column(by, columns.names, columns.where)
    text = text_of(name, columns.schema[name], f"{columns.where}: {by}")
    if by == "target":
        return nw.when(~text.is_null() & ~one_of(text, out_of_scope)).then(text).otherwise(nw.lit(OUT_OF_SCOPE))
    return nw.coalesce(text, nw.lit(NONE))


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
