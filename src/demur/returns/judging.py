"""How rows are judged, in memory and inside engines alike: the rules, what is counted of rows, what is refused.

A table is first staged: its columns are read as text, flags and numbers under canonical names. From there on memory and
engines share these expressions; they differ only in how a fault is located.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import narwhals as nw
import polars as pl

from demur.core.engines.engine import Lazy, acceptable, collect_frame, contains
from demur.core.io.columns import likely_columns, mapping_of, named_confidence
from demur.core.io.tables import HEAVIEST, LABELS, ROW, SOURCE, as_text
from demur.core.shell import quoted_word
from demur.core.show.numbers import SUCH_ROWS, Wording, p_value, percent
from demur.core.stats.calibration import ROUNDING
from demur.errors import DataError

if TYPE_CHECKING:
    from demur.core.io.tables import Table
    from demur.returns.table import Responses

LOWEST = float("-inf")
"""The confidence of an answer that has none."""

OUT_OF_SCOPE = "out_of_scope"
"""The label under which rows without any right answer stand in a confusion table and among slices."""

NONE = "(none)"
"""The slice of rows that have no value in the column sliced by."""

RANK_LOWEST = '--missing-confidence lowest, or missing_confidence="lowest", ranks such answers below all others'
"""The way out for answers that lack a confidence."""


def are_cells(labels: pl.DataFrame) -> bool:
    """Whether rows are the cells of a confusion table: each pair of labels once, a whole number as its weight.

    >>> are_cells(pl.DataFrame({"actual": ["a", "a"], "predicted": ["a", None], "weight": [3.0, 1.0]}))
    True
    """
    weight = labels["weight"]
    counts = bool((weight == weight.round()).all()) and bool((weight > 1).any())
    return counts and not labels.select("actual", "predicted").is_duplicated().any()


LEAST_IN_HALF = 50
"""Rows of either half from which a report asks whether they differ, and a note looks at the order of rows."""

STRICT = 0.001
"""P-value below which errors are said to depend on the place of a row: nobody asked, so alarms must be rare."""

NOTABLE = 0.05
"""Difference of error rates between the halves of a file from which it is worth a note."""

SHOWN = 3
"""Rows that a note names."""

EVERY_OR_NONE = "must be there in every row or in none"

_OUTSIDE = Wording('target "{}" read as out of scope', 'targets "{}" read as out of scope')
_NULL_OUTSIDE = Wording("target that is null read as out of scope", "targets that are null read as out of scope")
_WITHHELD = Wording('prediction "{}" read as withheld', 'predictions "{}" read as withheld')
_NULL_WITHHELD = Wording("prediction that is null read as withheld", "predictions that are null read as withheld")
_NULL_ROWS_WITHHELD = Wording("row without a prediction read as withheld", "rows without a prediction read as withheld")
_ABSTAINED = Wording("row read as abstained", "rows read as abstained")
_READ_AS_LOWEST = Wording(
    "answer without confidence read as the lowest (-inf)", "answers without confidence read as the lowest (-inf)"
)
_LACKING = Wording("has no confidence", "have no confidence")
_OUTSIDE_UNIT = Wording("confidence lies outside [0, 1]", "confidences lie outside [0, 1]")
_EMPTY_WITHHELD = "that the system withheld, use --withheld-like '^$', or withheld=(\"\",)"
_NOT_JUDGED = "`correct` is empty there, and predictions do not compare with targets"
_CAUTIONS = {
    "unjudged": Wording(
        f"answer is not judged and left out: {_NOT_JUDGED}", f"answers are not judged and left out: {_NOT_JUDGED}"
    ),
    "failed": Wording("row failed and counts as a non-return", "rows failed and count as non-returns"),
    "empty_returned": Wording(
        f"prediction is empty text and counts as returned; if it means {_EMPTY_WITHHELD}",
        f"predictions are empty text and count as returned; if they mean {_EMPTY_WITHHELD}",
    ),
    "correct_outside": Wording(
        "row is marked correct although its target is out of scope; it counts as right",
        "rows are marked correct although their target is out of scope; they count as right",
    ),
    "correct_unanswered": Wording(
        "row is marked correct although nothing was answered; it counts as a non-return",
        "rows are marked correct although nothing was answered; they count as non-returns",
    ),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """How rows are judged: the labels with a meaning of their own, and what a missing confidence means."""

    out_of_scope: tuple[str, ...]
    withheld: tuple[str, ...]
    missing_is_lowest: bool
    unjudged: bool = False
    ranked: bool = True
    """Whether confidences are used, so that notes about them matter."""

    def judge(self, parts: Collection[str]) -> bool:
        """Whether rows with these columns are judged: always, but where tables are taken that nothing judges."""
        return not self.unjudged or "target" in parts or "correct" in parts

    @property
    def no_answer(self) -> tuple[str, ...]:
        """Labels that are no answer as predictions: those that mean withheld, and those that mean out of scope."""
        return tuple(dict.fromkeys((*self.withheld, *self.out_of_scope)))


@dataclass(frozen=True, slots=True)
class Located:
    """A staged table: the column of each part, the names of all columns, what it is called, and its faults.

    `fault` gives the fault of the rows for which a condition holds; engines are told how many these are.
    """

    columns: Mapping[str, str]
    names: Sequence[str]
    where: str
    fault: Callable[..., DataError]


@dataclass(frozen=True, slots=True)
class CellRule:
    """What the cells of a part, staged as `column`, must be, and the condition that holds where they are not."""

    part: str
    column: str
    bad: nw.Expr
    text: str
    fix: str = ""
    shows_value: bool = True


_NUMBER, _WEIGHT = nw.col("number"), nw.col("weight")
CONFIDENCE_RULE = CellRule(
    "confidence",
    "number",
    _NUMBER.is_nan() | ~_NUMBER.is_finite(),
    "must not be NaN or infinite",
    "leave it empty if it is missing; a finite number, such as -1e9 for the logarithm of 0, ranks as well",
    shows_value=False,
)
WEIGHT_RULE = CellRule(
    "weight",
    "weight",
    _WEIGHT.is_null() | ~((_WEIGHT == 0) | ((_WEIGHT >= 1 / HEAVIEST) & (_WEIGHT <= HEAVIEST))),
    "must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0",
)
CELL_RULES = (CONFIDENCE_RULE, WEIGHT_RULE)
_MISSING = nw.col("answered") & _NUMBER.is_null()
"""Where an answer lacks a confidence."""

_UNMARKED = nw.col("answered") & nw.col("correct").is_null()
UNJUDGED = _UNMARKED & (~nw.col("outside") | nw.col("target").is_null())
"""Which answers nothing judges, where targets do not compare with predictions."""


COMPARABLE = 0.95
"""Share of the answers marked as right that equal their target, from which unequal ones may be taken for wrong."""

ENOUGH_UNEQUAL = 5
"""Answers marked as right that differ from their target, from which this is no slip of the labels."""

IMPROBABLE = ~_NUMBER.is_null() & (
    nw.col("answered") & ((nw.col("confidence") < -ROUNDING) | (nw.col("confidence") > 1 + ROUNDING))
)
"""Where the confidence of an answer is no probability."""


def unjudged_where(parts: Collection[str]) -> nw.Expr:
    """Which answers nothing judges; where people judged, whatever they left open."""
    return _UNMARKED if "judgement" in parts else UNJUDGED


def one_of(column: nw.Expr, labels: Collection[str]) -> nw.Expr:
    """Whether a text is one of the labels; false where it is null."""
    return column.is_in(list(labels)).fill_null(value=False) if labels else nw.lit(value=False)


def judge_rows(frame: Lazy, rules: Rules, parts: Collection[str], *, lists: bool) -> Lazy:
    """Judges staged rows: adds answered, right, outside, out_of_scope, matches and confidence.

    A response is answered when it has a prediction that is no withheld and no out-of-scope label, and neither abstained
    nor failed: to call an input out of scope is to withhold an answer. It is right when `correct` says so or, where
    `correct` is silent, when its prediction is an acceptable target. A target that is null or an out-of-scope label is
    `outside`: nothing is right to return. `parts` are the columns there are; without a target, `correct` alone tells
    right from wrong. With `lists` the targets are lists of acceptable labels, and the columns acceptable and first are
    added.
    """
    prediction, target = nw.col("prediction"), nw.col("target")
    outside: nw.Expr = nw.lit(value=False)
    if "target" not in parts:
        frame = frame.with_columns(matches=nw.lit(value=False))
    elif lists:
        frame = acceptable(frame, "target", rules.out_of_scope, "acceptable", "first")
        outside = nw.col("first").is_null()
        frame = contains(frame, "acceptable", "prediction", "matches")
    else:
        outside = target.is_null() | one_of(target, rules.out_of_scope)
        frame = frame.with_columns(matches=(target == prediction).fill_null(value=False))
    given: nw.Expr = nw.lit(value=True)
    if "prediction" in parts:
        given = ~prediction.is_null() & ~one_of(prediction, rules.no_answer)
    never = nw.lit(value=False)
    frame = frame.with_columns(
        abstained=nw.coalesce(nw.col("abstained"), never),
        failed=nw.coalesce(nw.col("failed"), never),
        outside=outside,
        given=given,
    )
    frame = frame.with_columns(
        answered=nw.col("given") & ~nw.col("abstained") & ~nw.col("failed"),
        matches=nw.col("matches") & ~nw.col("outside"),
    )
    answered = nw.col("answered")
    return frame.with_columns(
        out_of_scope=nw.col("outside") & ~(answered & nw.coalesce(nw.col("correct"), never)),
        right=answered & nw.coalesce(nw.col("correct"), nw.col("matches")),
        confidence=nw.when(answered).then(nw.coalesce(nw.col("number"), nw.lit(LOWEST))),
    )


def conditions(rules: Rules, parts: Collection[str], *, lists: bool) -> dict[str, nw.Expr]:
    """What is counted of judged rows to say what was recognised and what may be wrong."""
    answered, prediction, target = nw.col("answered"), nw.col("prediction"), nw.col("target")
    found = {
        "failed": nw.col("failed"),
        "abstained": nw.col("abstained"),
        "ranked": ~nw.col("number").is_null(),
        "missing": _MISSING,
        "answers": answered,
        "improbable": IMPROBABLE,
        "correct_unanswered": ~answered & nw.col("correct") & ~nw.col("outside"),
        "unmarked": _UNMARKED,
    }
    if "target" in parts:
        for place, label in enumerate(rules.out_of_scope):
            found[f"outside_{place}"] = target.list.contains(label) if lists else target == label
        found["null_target"] = target.is_null()
        found["labelled"] = ~target.is_null()
        found["correct_outside"] = nw.col("right") & nw.col("outside")
    if "prediction" in parts:
        for place, label in enumerate(rules.no_answer):
            found[f"withheld_{place}"] = prediction == label
        found["null_prediction"] = prediction.is_null()
        found["empty_returned"] = answered & (prediction == "")
    return found


def compared(correct: str = "correct") -> nw.Expr:
    """Whether a prediction was compared with a target to judge it."""
    return nw.col("answered") & ~nw.col("out_of_scope") & nw.col(correct).is_null()


def recognised_in(counts: Mapping[str, int], rules: Rules, parts: Collection[str]) -> Counter[Wording]:
    """What was recognised in rows with these columns, from what `conditions` counted of them."""
    found: Counter[Wording] = Counter()
    for place, label in enumerate(rules.out_of_scope):
        found[_OUTSIDE.about(label)] += counts.get(f"outside_{place}", 0)
    found[_NULL_OUTSIDE] += counts.get("null_target", 0)
    for place, label in enumerate(rules.no_answer):
        found[_WITHHELD.about(label)] += counts.get(f"withheld_{place}", 0)
    # With weights a row may stand for many inputs, so what is counted is called rows.
    found[_NULL_ROWS_WITHHELD if "weight" in parts else _NULL_WITHHELD] += counts.get("null_prediction", 0)
    found[_ABSTAINED] += counts["abstained"]
    if rules.missing_is_lowest and rules.ranked:
        found[_READ_AS_LOWEST] += counts["missing"]
    return found


def calibration_notes(counts: Mapping[str, int], where: str, places: Iterable[str] = ()) -> list[str]:
    """Says on how many answers calibration is computed where some have no confidence, or one that is no probability.

    >>> calibration_notes({"answers": 900, "improbable": 2, "missing": 0}, "a.csv", ["a.csv:7", "a.csv:9"])
    ['a.csv: Brier score, ECE and NCE are of 898 of 900 answers: 2 confidences lie outside [0, 1] (a.csv:7, a.csv:9)']
    """
    outside, missing, answers = counts["improbable"], counts["missing"], counts["answers"]
    left = answers - outside - missing
    if left == answers or 2 * left < answers:
        return []
    why = [_LACKING.with_count(missing)] if missing else []
    if outside:
        first = list(places)
        more = "" if outside == len(first) else " ..."
        why.append(_OUTSIDE_UNIT.with_count(outside) + (f" ({', '.join(first)}{more})" if first else ""))
    return [f"{where}: Brier score, ECE and NCE are of {left:,} of {answers:,} answers: {' and '.join(why)}"]


def notes_on_calibration(frame: pl.DataFrame, tables: Sequence[Table]) -> list[str]:
    """Says of each table on how many answers calibration is computed, where not on all."""
    notes: list[str] = []
    odd = pl.col("answered") & ~pl.col("confidence").is_between(-ROUNDING, 1 + ROUNDING)
    if not frame.select(odd.any()).item():
        return notes
    counts = (
        frame.lazy()
        .group_by(SOURCE)
        .agg(
            pl.col("answered").sum().alias("answers"),
            odd.sum().alias("odd"),
            (pl.col("answered") & (pl.col("confidence") == LOWEST)).sum().alias("missing"),
        )
    )
    for row in counts.filter(pl.col("odd") > 0).sort(SOURCE).collect().iter_rows(named=True):
        table, outside = tables[row[SOURCE]], odd & (pl.col("confidence") != LOWEST)
        bad = frame.lazy().filter(pl.col(SOURCE) == row[SOURCE], outside).select(ROW).head(SHOWN).collect().to_series()
        few = {**row, "improbable": row["odd"] - row["missing"]}
        notes += calibration_notes(few, table.name, map(table.place, bad))
    return notes


def cautions_in(counts: Mapping[str, int]) -> Counter[Wording]:
    """What may be wrong with rows, from what `conditions` counted of them."""
    return Counter({words: counts.get(name, 0) for name, words in _CAUTIONS.items()})


_NEEDED = {
    "target": "a column target or correct to tell right from wrong",
    "prediction": "a column prediction",
}


def refuse_unjudgeable(columns: Mapping[str, str], names: Sequence[str], where: str, paths: Sequence[str] = ()) -> None:
    """Refuses a table whose columns do not tell right from wrong, with the command or the mapping that reads it.

    Parts can be mapped from `paths` to values inside its cells too.
    """
    holders = {path.partition(".")[0] for path in paths}  # of objects, which are no labels
    columns = {part: name for part, name in columns.items() if name not in holders}
    missing = [part for part in _NEEDED if part not in columns and "correct" not in columns]
    if not missing:
        return
    _refuse_other_tables(missing, names, where)
    offered = [*(name for name in names if name not in holders), *paths]
    fix = _naming([*missing, "confidence"], columns, offered)
    needed = " and ".join(_NEEDED[part] for part in missing)
    raise DataError(f"needs {needed}", where=where, fix=fix)


_READERS = {
    "nbest": ("N-best lists", "demur nbest", "demur.nbest"),
    "dialogues": ("outcomes of dialogues", "demur outcome fit", "demur.fit_outcome"),
    "trials": ("trials of performers", "demur gold", "demur.gold"),
}
"""What tables of other questions hold, and the command and function that read them."""


def _refuse_other_tables(missing: Sequence[str], names: Sequence[str], where: str) -> None:
    """Refuses a table that has nothing of answers and is one of another question, with the command that reads it."""
    from demur.importers.kinds import kind_of

    kind = kind_of(names)
    if len(missing) > 1 and kind in _READERS:
        what, command, function = _READERS[kind]
        rule = f"looks like {what}, not answers"
        fix = f"{command} reads it, in Python {function}; columns there: {', '.join(names)}"
        raise DataError(rule, where=where, fix=fix)


def _naming(parts: Sequence[str], columns: Mapping[str, str], names: Sequence[str]) -> str:
    """Says how to name the columns of parts, ready to copy where their names speak for them."""
    free = [name for name in names if name not in columns.values()]
    likely = likely_columns(free, [part for part in parts if part not in columns])
    chosen = {part: likely.get(part, "COLUMN") for part in parts if part in likely or part in _NEEDED}
    flags = " ".join(f"--map {part}={quoted_word(name)}" for part, name in chosen.items())
    python = ", ".join(f'"{part}": "{name}"' for part, name in chosen.items())
    mapping = f"{flags}, or columns={{{python}}}"
    if "COLUMN" not in chosen.values():
        return f"did you mean {mapping}?"
    marks = [name for name in free if name.casefold() in _MARKS] if "target" in parts else []
    asked = f"did you mean {mapping_of('correct', marks[0])}? Otherwise " if marks else ""
    return f"{asked}name it with {mapping}; columns there: {', '.join(names)}"


_MARKS = ("success", "is_correct", "iscorrect", "passed", "pass", "is_right", "solved")
"""What columns are called that mark each answer as right or wrong."""


def is_unlabelled(counts: Mapping[str, int], columns: Collection[str]) -> bool:
    """Whether every target of a table with answers is null: one says that no answer is right, all that none is known.

    >>> [is_unlabelled({"labelled": count, "answers": 5}, ["target"]) for count in (0, 1)]
    [True, False]
    """
    return counts.get("labelled") == 0 < counts["answers"] and "correct" not in columns


def unlabelled_warning(name: str) -> str:
    """Warns that all targets of a system or a log are null."""
    return (
        f"{name}: every target is null, so no answer is right; is it labelled? (the target oos says that none is right)"
    )


def refuse_unmarked(counts: Mapping[str, int], table: Located) -> None:
    """Refuses a table of which nothing judges any answer: without `correct`, and without targets or predictions.

    Where people judge, targets do not: of a log that they have not begun on nothing is known.
    """
    if {"judgement", "correct"} <= table.columns.keys() and counts["unmarked"] == counts["answers"] > 0:
        rule = "is empty for every answer: no judgement says yet whether one is right"
        fix = "judge answers, and settle disagreements, with demur judge first"
        raise table.fault("correct", _UNMARKED, rule, count=counts["unmarked"], fix=fix)
    lacking = [part for part in ("target", "prediction") if part not in table.columns]
    if lacking and counts["unmarked"] == counts["answers"] > 0:
        rule = f"must be given for every answer, as there is no column {lacking[0]}"
        raise table.fault("correct", _UNMARKED, rule, count=counts["unmarked"], got="null")


def leaves_unjudged(judged: Lazy, parts: Collection[str], counts: Mapping[str, int]) -> bool:
    """Whether answers without `correct` are not judged, as comparing predictions with targets does not tell.

    Most answers are marked, and of those marked as right too few equal their target, or no answer does; or there is
    nothing to compare. Where few are marked, `correct` only corrects what comparing says. Where people judged, as a
    column `judgement` says, what they left open stays open.
    """
    if not 0 < counts["unmarked"] < counts["answers"]:
        return False
    if "judgement" in parts:
        return True
    if not {"target", "prediction"} <= set(parts):
        return True
    if 2 * counts["unmarked"] > counts["answers"]:
        return False
    marked, matches = nw.col("answered") & nw.col("correct"), nw.col("matches")
    wanted = {"right": marked, "equal": marked & matches, "hits": _UNMARKED & matches}
    found = collect_frame(judged.select(**{name: nw.when(one).then(1).count() for name, one in wanted.items()}))
    right, equal, hits = found.row(0)
    return bool(right - equal >= ENOUGH_UNEQUAL and equal < COMPARABLE * right) or equal + hits == 0


def unranked_systems(survey: pl.DataFrame) -> list[str]:
    """The systems that answered but of which no row has a confidence, from counts by system."""
    sums = survey.group_by("system", maintain_order=True).agg(pl.col("ranked", "missing").sum())
    return sums.filter((pl.col("ranked") == 0) & (pl.col("missing") > 0))["system"].to_list()


def refuse_missing(survey: pl.DataFrame, unranked: Sequence[str], rules: Rules, table: Located) -> None:
    """Refuses answers without confidence beside others that have one, or where a column is likely to hold them."""
    if rules.missing_is_lowest:
        return
    lacking = survey.filter(~pl.col("system").is_in(list(unranked)), pl.col("missing") > 0)
    if not lacking.is_empty():
        bad = _MISSING & ~one_of(nw.col("system"), unranked)
        rule = f"is missing for an answer ({SUCH_ROWS.with_count(int(lacking['missing'].sum()))} in all)"
        raise table.fault("confidence", bad, rule, fix=RANK_LOWEST)
    free = [name for name in table.names if name not in table.columns.values()]
    if unranked and "confidence" not in table.columns and named_confidence(free):
        fix = f"{_naming(['confidence'], table.columns, table.names)} {RANK_LOWEST}"
        raise DataError("has no column confidence", where=table.where, fix=fix)


def refuse_ranked_in_part(frame: pl.DataFrame, unranked: Sequence[str], tables: Sequence[Table]) -> None:
    """Refuses a system that has confidences in one table and none in another."""
    answers = frame.filter("answered", pl.col("system").is_in(list(unranked)))
    ranked = answers.filter(pl.col("confidence") != LOWEST)
    if ranked.is_empty():
        return
    system = ranked["system"][0]
    lacking = answers.filter(pl.col("system") == system, pl.col("confidence") == LOWEST)
    place = tables[lacking[SOURCE][0]].place(lacking[ROW][0])
    rule = f'is missing for an answer, though other answers of system "{system}" have one'
    raise DataError(rule, where=f"{place}: confidence", fix=RANK_LOWEST)


def unranked_notes(unranked: Collection[str], systems: int) -> list[str]:
    """Says which of the systems have no confidences."""
    if not unranked:
        return []
    of_which = "" if len(unranked) == systems else f" of {', '.join(unranked)}"
    named = "--map confidence=COLUMN names them where a log has any"
    return [f"no confidences{of_which}: only what a system withholds by itself counts; {named}"]


_NEAR = Wording(
    "prediction equals a target except for case or spaces, e.g. {}; it counts as wrong",
    "predictions equal a target except for case or spaces, e.g. {}; they count as wrong",
)


def near_matches(frame: pl.DataFrame, correct: str) -> list[str]:
    """Warns of predictions that would be right if letter case and the spaces around labels did not matter.

    Where labels are many times fewer than rows, rows are looked at only if two labels differ in nothing else.
    """
    rows: Lazy = nw.from_native(frame.lazy())
    judged = rows.filter(compared(correct) & ~nw.col("right")).select("prediction", "target")
    wrong = judged.collect().to_polars()
    if wrong.select(pl.col("prediction").approx_n_unique()).item() < wrong.height / 10:
        targets = wrong["target"].explode().drop_nulls().unique().alias("prediction")
        labels = pl.concat([wrong["prediction"].unique(), targets]).unique()
        twins = labels.filter(_folded(labels).is_duplicated())
        wrong = wrong.filter(pl.col("prediction").is_in(twins.implode()))
    pairs = wrong.with_row_index().explode("target")
    near = pairs.filter(_folded(pairs["prediction"]) == _folded(pairs["target"])).unique("index", maintain_order=True)
    if near.is_empty():
        return []
    example = f'"{near["prediction"][0]}" and "{near["target"][0]}"'
    return [_NEAR.about(example).with_count(near.height)]


def _folded(labels: pl.Series) -> pl.Series:
    return labels.str.strip_chars().str.to_lowercase()


def foreign_labels(frame: pl.DataFrame, correct: str) -> list[str]:
    """Refuses systems of judged rows, or warns of them, as `refuse_foreign_labels` does."""
    judged: Lazy = nw.from_native(frame.lazy())
    hits = nw.from_native(frame).select(right=compared(correct) & nw.col("right"))
    if hits["right"].any() and frame["system"].n_unique() == 1:
        return []
    right = judged.filter(compared(correct)).group_by("system").agg(nw.col("right").any())
    systems = sorted(collect_frame(right.filter(~nw.col("right")))["system"])
    return refuse_foreign_labels(judged, systems, (), lists=True, correct=correct)


def refuse_foreign_labels(
    judged: Lazy, systems: Iterable[str], out_of_scope: Collection[str], *, lists: bool, correct: str = "correct"
) -> list[str]:
    """Refuses a system none of whose predictions is a target anywhere; warns where labels are few.

    `systems` are those that were never right by comparison. Too few is a single label among the targets or among the
    predictions: such a system may simply be wrong.
    """
    warnings = []
    for system in systems:
        labels = judged.select(label=nw.col("target"))
        labels = labels.explode("label") if lists else labels
        known = ~nw.col("label").is_null() & ~one_of(nw.col("label"), out_of_scope)
        targets = labels.filter(known).unique("label")
        own = judged.filter(compared(correct) & (nw.col("system") == system))
        predictions = own.select(label=nw.col("prediction")).unique("label")
        if collect_frame(predictions.join(targets, on="label", how="semi").head(1)).is_empty():
            examples = [collect_frame(some.head(1000))["label"].sort() for some in (targets, predictions)]
            listed = [", ".join(f'"{label}"' for label in some.head(3)) for some in examples]
            rule = f"no prediction occurs among the targets: targets are {listed[0]}, predictions {listed[1]}"
            fix = "are they coded differently? judged answers need a column correct"
            fault = DataError(rule, where=f'system "{system}":', fix=fix)
            if min(map(len, examples)) > 1:
                raise fault
            warnings.append(str(fault))
    return warnings


def order_notes(judged: Responses) -> tuple[str, ...]:
    """Says of each system whose errors depend on the place of a row in the file how many there are in either half."""
    return notes_by_system(uneven_orders(judged), several=len(judged.systems) > 1)


def uneven_orders(judged: Responses) -> tuple[tuple[str, str], ...]:
    """Each system whose errors depend on the place of a row in the file, and how many there are in either half."""
    systems = judged.systems if judged.judged else ()
    frames = ((system, judged.of(system).frame) for system in systems)
    notes = ((system, _order_note(frame)) for system, frame in frames if frame.height >= 2 * LEAST_IN_HALF)
    return tuple((system, note) for system, note in notes if note is not None)


def notes_by_system(notes: Iterable[tuple[str, str]], *, several: bool) -> tuple[str, ...]:
    """Notes that name their system where there are several."""
    return tuple(f"{system}: {note}" if several else note for system, note in notes)


def _order_note(frame: pl.DataFrame) -> str | None:
    half = frame.height // 2
    parts = frame[:half], frame[half:]
    wrong = pl.col("answered") & ~pl.col("right")
    first, second = (part.select((wrong * pl.col("weight")).sum() / pl.col("weight").sum()).item() for part in parts)
    if not abs(second - first) >= NOTABLE:  # a glance, as most logs are in no order, and a test takes longer
        return None
    from demur.returns.drift.changes import Log, TwoLogs

    halves = [Log.of("half", part, judged=True) for part in parts]
    if min(log.rows.units for log in halves) < LEAST_IN_HALF:
        return None
    change = TwoLogs(*halves).rate("error", lambda log: log.errors)
    p = 1.0 if change.test is None else change.test.tested(0.95, 1).p
    if not p < STRICT:
        return None
    return (
        f"errors are not spread evenly over the file: {percent(change.old)} in the first half, "
        f"{percent(change.new)} in the second ({p_value(p)}); a threshold chosen on one part need not hold on another"
    )


def slice_values(frame: pl.DataFrame, by: str) -> pl.Series:
    """Gives the slice of each judged row: a column as text, where a target of several labels is `a or b`.

    >>> from demur.returns.table import responses
    >>> rows = [{"target": ["yes", "no"], "prediction": "yes"}, {"target": None, "prediction": "no"}]
    >>> slice_values(responses(rows).frame, "target").to_list()
    ['no or yes', 'out_of_scope']
    """
    values = frame[by].alias("value")
    if values.dtype == LABELS:
        texts = values.list.sort().list.join(" or ")
        values = texts.set(values.list.len() == 0, OUT_OF_SCOPE)
    return as_text(values).fill_null(NONE)
