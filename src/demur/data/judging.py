"""Rows of answers become judged rows: answered or not, right or wrong."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from demur.data.cells import LABELS, Cells, as_lists, comparable, first
from demur.data.columns import lookalike, mapping_of
from demur.data.tables import ROW
from demur.data.wording import SUCH_ROWS, Wording
from demur.errors import DataError, faults_of

LOWEST = float("-inf")

RANK_LOWEST = '--missing-confidence lowest, or missing_confidence="lowest", ranks such answers below all others'
"""The way out for answers that lack a confidence."""

OUTSIDE = Wording('target "{}" read as out of scope', 'targets "{}" read as out of scope')
NULL_OUTSIDE = Wording("target that is null read as out of scope", "targets that are null read as out of scope")
WITHHELD = Wording('prediction "{}" read as withheld', 'predictions "{}" read as withheld')
NULL_WITHHELD = Wording("prediction that is null read as withheld", "predictions that are null read as withheld")
ABSTAINED = Wording("row read as abstained", "rows read as abstained")
READ_AS_LOWEST = Wording(
    "answer without confidence read as the lowest (-inf)", "answers without confidence read as the lowest (-inf)"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """How rows are judged: the labels with a meaning of their own, and what a missing confidence means."""

    out_of_scope: tuple[str, ...]
    withheld: tuple[str, ...]
    missing_is_lowest: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged rows of one table, and how often each thing worth telling happened.

    `unranked` are the systems that answered but of which no row has a confidence.
    """

    frame: pl.DataFrame
    recognised: Counter[Wording] = field(default_factory=Counter)
    cautions: Counter[Wording] = field(default_factory=Counter)
    unranked: tuple[str, ...] = ()


def judge(cells: Cells, rules: Rules, system: str) -> Judged:
    """Judges the rows of a table.

    A response is answered when it has a prediction that is no withheld label, and neither abstained nor
    failed. It is right when `correct` says so or, where `correct` is silent, when its prediction is an
    acceptable target. A target that is null or an out-of-scope label is the empty list: nothing is right to
    return. Where there is no target column the target is null, and `correct` alone tells right from wrong.
    """
    try:
        return _judged(cells, rules, system)
    except DataError as fault:
        raise DataError.joined([fault, *column_faults(cells)]) from None


def column_faults(cells: Cells, unclear: Collection[str] = ()) -> list[DataError]:
    """The faults that each column shows by itself; which columns play the unclear parts is known to be a fault."""
    known = {**dict.fromkeys(unclear, ""), **cells.columns}
    checks: list[Callable[[], object]] = [
        lambda: refuse_unjudgeable(known, cells.table.columns, cells.table.name),
        lambda: _complete(cells, "id"),
        lambda: _complete(cells, "system"),
        lambda: cells.flags("correct"),
        lambda: cells.flags("abstained"),
        lambda: cells.flags("failed"),
        lambda: _numbers(cells),
        lambda: _weight(cells),
    ]
    return faults_of(checks)


def _judged(cells: Cells, rules: Rules, system: str) -> Judged:
    refuse_unjudgeable(cells.columns, cells.table.columns, cells.table.name)
    judged = Judged(pl.DataFrame())
    labels, predictions = _labels(cells, rules)
    frame = _as_read(cells, predictions, system)
    frame = _with_scope(frame, cells, labels, rules, judged)
    frame = _with_answers(frame, cells, rules, judged)
    _refuse_unmarked(frame, cells)
    frame = frame.with_columns(_right(cells))
    _count_cautions(frame, rules, judged.cautions)
    numbers = _numbers(cells)
    unranked = _unranked(frame, numbers)
    _refuse_missing(frame, numbers, unranked, cells, rules)
    frame = frame.with_columns(_confidence(frame, numbers, rules, judged), _weight(cells))
    return Judged(frame, judged.recognised, judged.cautions, tuple(unranked))


def refuse_unjudgeable(columns: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Refuses a table whose columns do not tell right from wrong."""
    if "correct" not in columns and {"reference", "hypotheses"} <= set(names):
        rule = "holds N-best lists, columns reference and hypotheses, not answers"
        raise DataError(rule, where=where, fix="demur nbest evaluates them, in Python demur.nbest")
    rules = {
        "target": "needs a column target or correct to tell right from wrong",
        "prediction": "needs a column prediction",
    }
    missing = [part for part in rules if part not in columns and "correct" not in columns]
    if missing:
        raise DataError.joined(
            DataError(rules[part], where=where, fix=naming(part, columns, names)) for part in missing
        )


def naming(part: str, columns: Mapping[str, str], names: Sequence[str]) -> str:
    """Says how to name the column of a part, the likeliest one first."""
    near = lookalike(part, [name for name in names if name not in columns.values()])
    there = "columns there: " + ", ".join(names)
    return f"did you mean {mapping_of(part, near)}?" if near else f"name it with {mapping_of(part, 'COLUMN')}; {there}"


def refuse_lookalike(columns: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Refuses a table without confidences that has a column whose name looks as if it held them."""
    free = [name for name in names if name not in columns.values()]
    if "confidence" not in columns and lookalike("confidence", free):
        fix = f"{naming('confidence', columns, names)} {RANK_LOWEST}"
        raise DataError("has no column confidence", where=where, fix=fix)


def _labels(cells: Cells, rules: Rules) -> tuple[pl.Series, pl.Series]:
    """Gives targets and predictions, written alike."""
    labels, predictions = cells.labels("target"), cells.text("prediction")
    aside = (*rules.out_of_scope, *rules.withheld)
    return comparable(labels, predictions, aside), comparable(predictions, labels, aside)


def _as_read(cells: Cells, predictions: pl.Series, system: str) -> pl.DataFrame:
    return pl.DataFrame(
        [
            cells.table.frame[ROW],
            _complete(cells, "id"),
            _system(cells, system),
            cells.text("dialogue"),
            predictions,
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


def _with_scope(frame: pl.DataFrame, cells: Cells, labels: pl.Series, rules: Rules, judged: Judged) -> pl.DataFrame:
    if "target" not in cells:
        unknown = pl.lit(None, dtype=LABELS).alias("target")
        return frame.with_columns(unknown, out_of_scope=pl.lit(value=False), matches=pl.lit(value=False))
    lists, several = as_lists(labels)
    texts = lists.explode() if several else labels
    _count_labels(texts, rules.out_of_scope, OUTSIDE, judged.recognised)
    if several:
        lists = lists.list.eval(pl.element().filter(~pl.element().is_in(list(rules.out_of_scope))))
        matched = lists.list.contains(frame["prediction"])
        outside = (lists.list.len() == 0).fill_null(value=True)
    else:
        matched = labels == frame["prediction"]
        outside = labels.is_in(list(rules.out_of_scope)).fill_null(value=True)
    judged.recognised[NULL_OUTSIDE] += lists.null_count()
    return frame.with_columns(
        target=pl.when(outside).then(pl.lit([], dtype=LABELS)).otherwise(lists),
        out_of_scope=outside & ~frame["correct"].fill_null(value=False),
        matches=matched.fill_null(value=False) & ~outside,
    )


def _with_answers(frame: pl.DataFrame, cells: Cells, rules: Rules, judged: Judged) -> pl.DataFrame:
    given = pl.lit(value=True)
    if "prediction" in cells:
        predictions = frame["prediction"]
        _count_labels(predictions, rules.withheld, WITHHELD, judged.recognised)
        judged.recognised[NULL_WITHHELD] += predictions.null_count()
        given = pl.col("prediction").is_not_null() & ~pl.col("prediction").is_in(list(rules.withheld))
    judged.recognised[ABSTAINED] += int(frame["abstained"].sum())
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


def _numbers(cells: Cells) -> pl.Series:
    numbers = cells.numbers("confidence")
    position = first(numbers.is_nan().fill_null(value=False))
    if position is not None:
        raise cells.fault("confidence", position, "must not be NaN", fix="leave it empty if it is missing")
    return numbers


def _unranked(frame: pl.DataFrame, numbers: pl.Series) -> list[str]:
    if numbers.null_count() == 0:
        return []
    missing = frame["system"].filter(frame["answered"] & numbers.is_null()).unique(maintain_order=True)
    ranked = set(frame["system"].filter(numbers.is_not_null()).unique())
    return [system for system in missing if system not in ranked]


def _refuse_missing(
    frame: pl.DataFrame, numbers: pl.Series, unranked: Sequence[str], cells: Cells, rules: Rules
) -> None:
    """Refuses answers without confidence beside others that have one, and a column that is likely misspelt."""
    if rules.missing_is_lowest or numbers.null_count() == 0:
        return
    missing = frame["answered"] & numbers.is_null() & ~frame["system"].is_in(list(unranked))
    position = first(missing)
    if position is not None:
        rule = f"is missing for an answer ({SUCH_ROWS.told(int(missing.sum()))} in all)"
        raise cells.fault("confidence", position, rule, fix=RANK_LOWEST)
    if unranked:
        refuse_lookalike(cells.columns, cells.table.columns, cells.table.name)


def _confidence(frame: pl.DataFrame, numbers: pl.Series, rules: Rules, judged: Judged) -> pl.Series:
    missing = frame["answered"] & numbers.is_null()
    if rules.missing_is_lowest:
        judged.recognised[READ_AS_LOWEST] += int(missing.sum())
    lowest = pl.when(missing).then(LOWEST).otherwise(numbers)
    return pl.select(pl.when(frame["answered"]).then(lowest).alias("confidence")).to_series()


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


def _count_labels(texts: pl.Series, known: tuple[str, ...], words: Wording, counts: Counter[Wording]) -> None:
    for label in known:
        counts[words.about(label)] += int((texts == label).sum())


_NAME_WITHHELD = "that the system withheld, name such labels with --withheld, or withheld=(...)"
_EMPTY_WITHHELD = "that the system withheld, use --withheld '', or withheld=(\"\",)"
FAILED = Wording("row failed and counts as a non-return", "rows failed and count as non-returns")
OUTSIDE_RETURNED = Wording(
    f"prediction is an out-of-scope label yet counts as returned; if it means {_NAME_WITHHELD}",
    f"predictions are out-of-scope labels yet count as returned; if they mean {_NAME_WITHHELD}",
)
EMPTY_RETURNED = Wording(
    f"prediction is empty text and counts as returned; if it means {_EMPTY_WITHHELD}",
    f"predictions are empty text and count as returned; if they mean {_EMPTY_WITHHELD}",
)
CORRECT_OUTSIDE = Wording(
    "row is marked correct although its target is out of scope; it counts as right",
    "rows are marked correct although their target is out of scope; they count as right",
)
CORRECT_UNANSWERED = Wording(
    "row is marked correct although nothing was answered; it counts as a non-return",
    "rows are marked correct although nothing was answered; they count as non-returns",
)
_CAUTIONS: tuple[tuple[Wording, Callable[[pl.DataFrame, Rules], pl.Series]], ...] = (
    (FAILED, lambda frame, _: frame["failed"]),
    (
        OUTSIDE_RETURNED,
        lambda frame, rules: frame["answered"] & frame["prediction"].is_in(list(rules.out_of_scope)),
    ),
    (EMPTY_RETURNED, lambda frame, _: frame["answered"] & (frame["prediction"] == "")),
    (CORRECT_OUTSIDE, lambda frame, _: frame["right"] & (frame["target"].list.len() == 0)),
    (CORRECT_UNANSWERED, lambda frame, _: ~frame["answered"] & frame["correct"]),
)


def _count_cautions(frame: pl.DataFrame, rules: Rules, counts: Counter[Wording]) -> None:
    for words, applies in _CAUTIONS:
        counts[words] += int(applies(frame, rules).sum())
