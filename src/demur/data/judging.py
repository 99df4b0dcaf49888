"""Rows of answers become judged rows: answered or not, right or wrong."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from demur.data.cells import LABELS, Cells, as_lists, first, without_point_zero
from demur.data.tables import ROW
from demur.errors import DataError

LOWEST = float("-inf")


@dataclass(frozen=True, slots=True)
class Rules:
    """How rows are judged: the labels with a meaning of their own, and what a missing confidence means."""

    out_of_scope: tuple[str, ...]
    withheld: tuple[str, ...]
    missing_is_lowest: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged rows of one table, and how often each thing worth telling happened."""

    frame: pl.DataFrame
    recognised: Counter[str] = field(default_factory=Counter)
    cautions: Counter[str] = field(default_factory=Counter)


def judge(cells: Cells, rules: Rules, system: str) -> Judged:
    """Judges the rows of a table.

    A response is answered when it has a prediction that is no withheld label, and neither abstained nor
    failed. It is right when `correct` says so or, where `correct` is silent, when its prediction is an
    acceptable target. A target that is null or an out-of-scope label is the empty list: nothing is right to
    return. Where there is no target column the target is null, and `correct` alone tells right from wrong.
    """
    _refuse_unjudgeable(cells)
    judged = Judged(pl.DataFrame())
    frame = _as_read(cells, system)
    frame = _with_scope(frame, cells, rules, judged)
    frame = _with_answers(frame, cells, rules, judged)
    _refuse_unmarked(frame, cells)
    frame = frame.with_columns(_right(cells))
    _count_cautions(frame, rules, judged.cautions)
    frame = frame.with_columns(_confidence(frame, cells, rules, judged), _weight(cells))
    return Judged(frame, judged.recognised, judged.cautions)


def _refuse_unjudgeable(cells: Cells) -> None:
    there = "columns there: " + ", ".join(cells.table.columns)
    if "correct" not in cells and "target" not in cells:
        rule = "needs a column target or correct to tell right from wrong"
        raise DataError(rule, where=cells.table.name, fix=f"name it with --map target=COLUMN; {there}")
    if "correct" not in cells and "prediction" not in cells:
        rule = "needs a column prediction"
        raise DataError(rule, where=cells.table.name, fix=f"name it with --map prediction=COLUMN; {there}")


def _as_read(cells: Cells, system: str) -> pl.DataFrame:
    return pl.DataFrame(
        [
            cells.table.frame[ROW],
            _complete(cells, "id"),
            _system(cells, system),
            cells.text("dialogue"),
            without_point_zero(cells.text("prediction")),
            cells.flags("correct"),
            cells.flags("abstained").fill_null(value=False),
            cells.flags("failed").fill_null(value=False),
        ]
    )


def _complete(cells: Cells, part: str) -> pl.Series:
    values = cells.text(part)
    position = first(values.is_null()) if 0 < values.null_count() < len(values) else None
    if position is not None:
        raise cells.fault(part, position, "must be there in every row or in none", got="null")
    return values


def _system(cells: Cells, name: str) -> pl.Series:
    if "system" in cells:
        systems = _complete(cells, "system")
        if systems.null_count() == 0:
            return systems
    return pl.Series("system", [name]).new_from_index(0, cells.table.frame.height)


def _with_scope(frame: pl.DataFrame, cells: Cells, rules: Rules, judged: Judged) -> pl.DataFrame:
    if "target" not in cells:
        unknown = pl.lit(None, dtype=LABELS).alias("target")
        return frame.with_columns(unknown, out_of_scope=pl.lit(value=False), matches=pl.lit(value=False))
    labels = cells.labels("target")
    lists, several = as_lists(labels)
    texts = lists.explode() if several else labels
    _count_labels(texts, rules.out_of_scope, 'targets "{}" read as out of scope', judged.recognised)
    if several:
        lists = lists.list.eval(pl.element().filter(~pl.element().is_in(list(rules.out_of_scope))))
        matched = lists.list.contains(frame["prediction"])
        outside = (lists.list.len() == 0).fill_null(value=True)
    else:
        matched = labels == frame["prediction"]
        outside = labels.is_in(list(rules.out_of_scope)).fill_null(value=True)
    judged.recognised["targets null read as out of scope"] += lists.null_count()
    return frame.with_columns(
        target=pl.when(outside).then(pl.lit([], dtype=LABELS)).otherwise(lists),
        out_of_scope=outside & ~frame["correct"].fill_null(value=False),
        matches=matched.fill_null(value=False) & ~outside,
    )


def _with_answers(frame: pl.DataFrame, cells: Cells, rules: Rules, judged: Judged) -> pl.DataFrame:
    given = pl.lit(value=True)
    if "prediction" in cells:
        predictions = frame["prediction"]
        _count_labels(predictions, rules.withheld, 'predictions "{}" read as withheld', judged.recognised)
        judged.recognised["predictions null read as withheld"] += predictions.null_count()
        given = pl.col("prediction").is_not_null() & ~pl.col("prediction").is_in(list(rules.withheld))
    judged.recognised["rows read as abstained"] += int(frame["abstained"].sum())
    return frame.with_columns(answered=given & ~pl.col("abstained") & ~pl.col("failed"))


def _refuse_unmarked(frame: pl.DataFrame, cells: Cells) -> None:
    if "target" in cells and "prediction" in cells:
        return
    position = first(frame["answered"] & frame["correct"].is_null())
    if position is not None:
        lacking = "target" if "target" not in cells else "prediction"
        rule = f"must be given for every answer, as there is no column {lacking}"
        raise cells.fault("correct", position, rule, got="null")


def _right(cells: Cells) -> pl.Expr:
    verdict = pl.coalesce("correct", "matches") if "correct" in cells else pl.col("matches")
    return (pl.col("answered") & verdict).alias("right")


def _confidence(frame: pl.DataFrame, cells: Cells, rules: Rules, judged: Judged) -> pl.Series:
    numbers = cells.numbers("confidence")
    position = first(numbers.is_nan().fill_null(value=False))
    if position is not None:
        raise cells.fault("confidence", position, "must not be NaN", fix="leave it empty if it is missing")
    missing = frame["answered"] & numbers.is_null()
    position = first(missing)
    if position is not None and not rules.missing_is_lowest:
        raise _missing_confidence(cells, position, int(missing.sum()))
    if position is not None:
        judged.recognised["answers without confidence read as the lowest (-inf)"] += int(missing.sum())
    lowest = pl.when(missing).then(LOWEST).otherwise(numbers)
    return pl.select(pl.when(frame["answered"]).then(lowest).alias("confidence")).to_series()


def _missing_confidence(cells: Cells, position: int, count: int) -> DataError:
    fix = "--missing-confidence lowest ranks such answers below all others"
    if "confidence" not in cells:
        there = ", ".join(cells.table.columns)
        fix = f"name it with --map confidence=COLUMN; columns there: {there}; or {fix}"
        return DataError("needs a column confidence", where=cells.table.name, fix=fix)
    rule = f"is missing for an answer ({count:,} such {'row' if count == 1 else 'rows'} in all)"
    return cells.fault("confidence", position, rule, fix=fix)


def _weight(cells: Cells) -> pl.Series:
    if "weight" not in cells:
        return pl.Series("weight", [1.0]).new_from_index(0, cells.table.frame.height)
    weights = cells.numbers("weight")
    position = first(~((weights >= 0) & weights.is_finite()).fill_null(value=False))
    if position is not None:
        got = weights[position]
        rule = "must be a number of 0 or more"
        raise cells.fault("weight", position, rule, got="null" if got is None else got)
    return weights


def _count_labels(texts: pl.Series, known: tuple[str, ...], words: str, counts: Counter[str]) -> None:
    for label in known:
        counts[words.format(label)] += int((texts == label).sum())


_CAUTIONS: tuple[tuple[str, Callable[[pl.DataFrame, Rules], pl.Series]], ...] = (
    ("rows failed and count as non-returns", lambda frame, _: frame["failed"]),
    (
        "predictions are out-of-scope labels yet count as returned; if they mean that the system withheld, "
        "name them with --withheld",
        lambda frame, rules: frame["answered"] & frame["prediction"].is_in(list(rules.out_of_scope)),
    ),
    (
        "predictions are empty text and count as returned; if they mean that the system withheld, use --withheld ''",
        lambda frame, _: frame["answered"] & (frame["prediction"] == ""),
    ),
    (
        "rows are marked correct although their target is out of scope; they count as right",
        lambda frame, _: frame["right"] & (frame["target"].list.len() == 0),
    ),
    (
        "rows are marked correct although nothing was answered; they count as non-returns",
        lambda frame, _: ~frame["answered"] & frame["correct"],
    ),
)


def _count_cautions(frame: pl.DataFrame, rules: Rules, counts: Counter[str]) -> None:
    for words, applies in _CAUTIONS:
        counts[words] += int(applies(frame, rules).sum())
