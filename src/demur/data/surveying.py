"""One aggregation over rows that stay where they are: everything that must be refused or told, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from demur.data import judging
from demur.data.checks import foreign_labels
from demur.data.engines import collected
from demur.data.lazy_cells import Stage, count_if, one_of
from demur.data.responses import Reading
from demur.data.selection import MOST_SLICES
from demur.data.wording import SUCH_ROWS, Wording, counted
from demur.errors import DataError

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
        raise DataError(rule, where=f"{stage.columns.where}: confidence", fix=judging.RANK_LOWEST)
    if unranked:
        judging.refuse_lookalike(stage.columns.columns, stage.columns.names, stage.columns.where)


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
        recognised[judging.OUTSIDE.about(label)] += _sum(survey, f"outside_{place}")
    if "target" in stage.columns:
        recognised[judging.NULL_OUTSIDE] += _sum(survey, "null_target")
    if "prediction" in stage.columns:
        for place, label in enumerate(rules.withheld):
            recognised[judging.WITHHELD.about(label)] += _sum(survey, f"withheld_{place}")
        recognised[judging.NULL_WITHHELD] += _sum(survey, "null_prediction")
    recognised[judging.ABSTAINED] += _sum(survey, "abstained")
    if rules.missing_is_lowest:
        recognised[judging.READ_AS_LOWEST] += _sum(survey, "missing")
    names = {
        "failed": judging.FAILED,
        "outside_returned": judging.OUTSIDE_RETURNED,
        "empty_returned": judging.EMPTY_RETURNED,
        "correct_outside": judging.CORRECT_OUTSIDE,
        "correct_unanswered": judging.CORRECT_UNANSWERED,
    }
    return recognised, Counter({words: _sum(survey, name) for name, words in names.items()})
