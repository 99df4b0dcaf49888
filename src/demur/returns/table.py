"""The table of responses: what systems answered, how sure they were, and whether it was right."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import polars as pl

from demur.core.io.columns import (
    JUDGED,
    check_mapping,
    extras,
    filtered,
    lookalike,
    mapping_of,
    nearest,
    parts_wanted,
    request_for,
    resolve_clear,
)
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, opened, system_names
from demur.core.io.tables import LABELS, ROW, Cells, Request, Table, as_lists, as_text, comparable, first
from demur.core.show.numbers import ROWS, SUCH_ROWS, Wording, counted
from demur.errors import DataError, faults_of

LOWEST = float("-inf")

OUT_OF_SCOPE = "out_of_scope"
"""The label under which rows without any right answer stand in a confusion table and among slices."""

NONE = "(none)"
"""The slice of rows that have no value in the column sliced by."""

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


SOURCE = "demur:source"
"""The column that numbers the table a row came from."""

CORRECT = "demur:correct"
"""The column that holds `correct` as it was given, null where the target alone was compared."""

_REPEATED = Wording("id is repeated", "ids are repeated")
_WAYS_OUT = (
    "several systems in one file need a column system; "
    "if an input was tried several times, make the id unique, e.g. from task and trial"
)
_NEAR = Wording(
    "prediction equals a target but for case or spaces, e.g. {}; it counts as wrong",
    "predictions equal a target but for case or spaces, e.g. {}; they count as wrong",
)


def refuse_duplicates(frame: pl.DataFrame, tables: Sequence[Table]) -> None:
    """Refuses an id that occurs twice within a system."""
    systems = frame["system"].unique(maintain_order=True)
    for system in systems:
        rows = frame.filter(pl.col("system") == system) if len(systems) > 1 else frame
        if rows["id"].null_count() == 0 and _has_repeats(rows["id"]):
            raise _duplicate(system, rows, tables)


def _has_repeats(ids: pl.Series) -> bool:
    """Looks at hashes first: when these are distinct, so are the ids, and numbers compare far faster."""
    return ids.hash().n_unique() < len(ids) and ids.n_unique() < len(ids)


def _duplicate(system: str, rows: pl.DataFrame, tables: Sequence[Table]) -> DataError:
    repeated = rows.filter(pl.col("id").is_duplicated())
    name = repeated["id"][0]
    pair = repeated.filter(pl.col("id") == name).head(2)
    places = [tables[source].place(row) for source, row in pair.select(SOURCE, ROW).iter_rows()]
    count = _REPEATED.told(repeated["id"].n_unique())
    rule = f'the id "{name}" occurs twice in system "{system}", first at {places[0]} ({count} in all)'
    return DataError(rule, where=f"{places[1]}:", fix=_WAYS_OUT)


def refuse_foreign_labels(frame: pl.DataFrame) -> list[str]:
    """Refuses a system none of whose predictions is a target anywhere; warns where labels are few.

    Too few is a single label among the targets or among the predictions: such a system may simply be wrong.
    """
    compared = _compared(frame)
    systems = compared.group_by("system", maintain_order=True).agg(pl.col("right").any()).filter(~pl.col("right"))
    warnings = []
    for system in systems.collect()["system"]:
        targets = frame["target"].explode().drop_nulls().unique(maintain_order=True)
        predictions = compared.filter(pl.col("system") == system).collect()["prediction"].unique(maintain_order=True)
        if not set(predictions) & set(targets):
            warnings += foreign_labels(system, targets, predictions)
    return warnings


def foreign_labels(system: str, targets: pl.Series, predictions: pl.Series) -> list[str]:
    """Refuses labels that have nothing in common; warns where there is a single one on either side."""
    fault = _foreign(system, targets, predictions)
    if len(targets) > 1 and len(predictions) > 1:
        raise fault
    return [str(fault)]


def _foreign(system: str, targets: pl.Series, predictions: pl.Series) -> DataError:
    shown = [", ".join(f'"{label}"' for label in labels.head(3)) for labels in (targets, predictions)]
    rule = f"no prediction occurs among the targets: targets are {shown[0]}, predictions {shown[1]}"
    fix = "are they coded differently? judged answers need a column correct"
    return DataError(rule, where=f'system "{system}":', fix=fix)


def near_matches(frame: pl.DataFrame) -> list[str]:
    """Warns of predictions that would be right if letter case and the spaces around labels did not matter.

    Where labels are many times fewer than rows, rows are looked at only if two labels differ in nothing else.
    """
    wrong = _compared(frame).filter(~pl.col("right")).select("prediction", "target").collect()
    labels = wrong.select(pl.col("prediction").approx_n_unique()).item()
    if labels < wrong.height / 10:
        wrong = wrong.filter(pl.col("prediction").is_in(_twins(wrong).implode()))
    pairs = wrong.with_row_index().explode("target")
    near = pairs.filter(_folded(pairs["prediction"]) == _folded(pairs["target"])).unique("index", maintain_order=True)
    if near.is_empty():
        return []
    example = f'"{near["prediction"][0]}" and "{near["target"][0]}"'
    return [_NEAR.about(example).told(near.height)]


def _twins(wrong: pl.DataFrame) -> pl.Series:
    targets = wrong["target"].explode().drop_nulls().unique().alias("prediction")
    labels = pl.concat([wrong["prediction"].unique(), targets]).unique()
    return labels.filter(_folded(labels).is_duplicated())


def unranked_notes(frame: pl.DataFrame, unranked: Sequence[str], tables: Sequence[Table]) -> list[str]:
    """Says which systems have no confidences; refuses one that has some in one table and none in another."""
    if not unranked:
        return []
    answers = frame.filter("answered", pl.col("system").is_in(list(unranked)))
    ranked = answers.filter(pl.col("confidence") != LOWEST)
    if not ranked.is_empty():
        raise _ranked_in_part(answers, ranked["system"][0], tables)
    every = frame["system"].n_unique() == len(unranked)
    of_which = "" if every else f" of {', '.join(unranked)}"
    return [f"no confidences{of_which}: only what a system withholds by itself counts"]


def _ranked_in_part(answers: pl.DataFrame, system: str, tables: Sequence[Table]) -> DataError:
    lacking = answers.filter(pl.col("system") == system, pl.col("confidence") == LOWEST)
    place = tables[lacking[SOURCE][0]].place(lacking[ROW][0])
    rule = f'is missing for an answer, though other answers of system "{system}" have one'
    return DataError(rule, where=f"{place}: confidence", fix=RANK_LOWEST)


def _compared(frame: pl.DataFrame) -> pl.LazyFrame:
    return frame.lazy().filter("answered", ~pl.col("out_of_scope"), pl.col(CORRECT).is_null())


def _folded(labels: pl.Series) -> pl.Series:
    return labels.str.strip_chars().str.to_lowercase()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table of responses.

    `columns` maps canonical columns to those of the file. `out_of_scope` are targets to which no answer is
    right, `withheld` predictions that are no answer. `missing_confidence` says what becomes of an answer
    without one. `where` keeps the rows whose column has the value. `keep` names further columns to carry
    along, `*` all of them.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    out_of_scope: tuple[str, ...] = ("oos", "out_of_scope")
    withheld: tuple[str, ...] = ("nlu_fallback",)
    missing_confidence: Literal["error", "lowest"] = "error"
    where: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()

    def request(self) -> Request:
        """Gives what must be read of a file."""
        check_mapping(self.columns)
        return request_for(dict(self.columns), self.keep, self.where)

    def rules(self) -> Rules:
        """Gives how rows are judged."""
        return Rules(self.out_of_scope, self.withheld, self.missing_confidence == "lowest")


AS_IT_COMES = Reading()


@dataclass(frozen=True, slots=True)
class Responses:
    """The answers of one or more systems, read, checked and judged.

    `frame` begins with the columns id, system, dialogue, target, prediction, answered, right, failed,
    out_of_scope, confidence and weight. `target` lists the acceptable labels: an empty list is out of scope,
    null is unknown (the row was judged by `correct`). `confidence` is null where nothing was answered.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in order of first appearance."""
        return tuple(self.frame["system"].unique(maintain_order=True))

    @property
    def unranked(self) -> tuple[str, ...]:
        """The systems all of whose answers have the lowest confidence, for want of any: nothing ranks them.

        >>> responses([{"target": "yes", "prediction": "yes"}], system="mine").unranked
        ('mine',)
        """
        answers = self.frame.lazy().filter("answered").group_by("system", maintain_order=True)
        lowest = answers.agg((pl.col("confidence") == LOWEST).all()).filter("confidence")
        return tuple(lowest.collect()["system"])

    def of(self, system: str) -> "Responses":
        """Gives the responses of one system."""
        if system not in self.systems:
            raise DataError(f'there is no system "{system}"', fix=nearest(system, self.systems))
        own = self.frame["system"] == system
        first, count = own.arg_max() or 0, int(own.sum())
        together = bool(own.slice(first, count).all())  # as they mostly are: then nothing need be copied
        return replace(self, frame=self.frame.slice(first, count) if together else self.frame.filter(own))

    def __len__(self) -> int:
        return self.frame.height


def slice_values(frame: pl.DataFrame, by: str) -> pl.Series:
    """Gives the slice of each judged row: a column as text, where a target of several labels is `a or b`.

    >>> rows = [{"target": ["yes", "no"], "prediction": "yes"}, {"target": None, "prediction": "no"}]
    >>> slice_values(responses(rows).frame, "target").to_list()
    ['no or yes', 'out_of_scope']
    """
    values = frame[by]
    if values.dtype == LABELS:
        texts = values.list.sort().list.join(" or ")
        values = texts.set(values.list.len() == 0, OUT_OF_SCOPE)
    return as_text(values).fill_null(NONE)


def read_responses(*sources: str | Path | Source, reading: Reading = AS_IT_COMES) -> Responses:
    """Reads and judges the responses in files: paths, globs, or `-` for standard input.

    A table without a column `system` stands for one system, named after its file.
    """
    request = reading.request()
    with opened(*sources) as files:
        tables = [read_source(file, request) for file in files]
        names, notes = system_names(files)
        return _assembled(tables, names, notes, reading)


def responses(data: object, *, system: str | None = None, reading: Reading = AS_IT_COMES) -> Responses:
    """Judges the responses in a frame (Polars, pandas, PyArrow, DuckDB and others), columns, or rows.

    >>> rows = [{"id": 1, "target": "yes", "prediction": "yes", "confidence": 0.9}]
    >>> responses(rows).frame["right"].to_list()
    [True]
    """
    table = table_of(data, reading.request())
    return _assembled([table], [system or "system"], [], reading)


def _assembled(tables: Sequence[Table], names: Sequence[str], notes: Sequence[str], reading: Reading) -> Responses:
    told = [*notes]
    emptied = []
    parts = []
    for number, (table, name) in enumerate(zip(tables, names, strict=True)):
        cells, found = _resolved(table, reading)
        told += found
        if cells.table.frame.is_empty():
            emptied.append(table)
            continue
        parts.append(_judge_table(cells, name, number, reading))
    if not parts:
        raise _nothing_left(tables, reading)
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    refuse_duplicates(frame, tables)
    warnings = [f"{table.name}: no row is left where {_asked(reading)}" for table in emptied]
    warnings += counted(part.cautions for part in parts) + refuse_foreign_labels(frame) + near_matches(frame)
    told += counted(part.recognised for part in parts)
    if reading.missing_confidence == "error":
        unranked = dict.fromkeys(system for part in parts for system in part.unranked)
        told += unranked_notes(frame, tuple(unranked), tables)
    return Responses(_public(frame), tuple(dict.fromkeys(told)), tuple(warnings))


def _resolved(table: Table, reading: Reading) -> tuple[Cells, list[str]]:
    wanted = parts_wanted(reading.keep, reading.where)
    resolution = resolve_clear(table.columns, reading.columns, parts=wanted, where=f"{table.name}:")
    everything = Cells(table, resolution.columns)
    if resolution.faults:
        raise _unclear(everything, resolution.faults, reading)
    cells = filtered(everything, reading.where)
    notes = list(resolution.notes)
    if reading.where:
        kept = f"{cells.table.frame.height:,} of {ROWS.told(table.frame.height)} kept where {_asked(reading)}"
        notes.append(f"{table.name}: {kept}")
    return cells, notes


def _unclear(cells: Cells, faults: Mapping[str, DataError], reading: Reading) -> DataError:
    """The faults of parts whose columns are not clear, and of the columns that are, in the rows that are kept."""
    if any(column in faults for column, _ in reading.where):
        return DataError.joined(faults.values())
    others = faults_of([lambda: _refuse_columns(filtered(cells, reading.where), faults)])
    return DataError.joined([*faults.values(), *others])


def _refuse_columns(cells: Cells, unclear: Mapping[str, DataError]) -> None:
    if found := column_faults(cells, unclear):
        raise DataError.joined(found)


def _judge_table(cells: Cells, system: str, number: int, reading: Reading) -> Judged:
    judged = judge(cells, reading.rules(), system)
    source = pl.lit(number).alias(SOURCE)
    frame = judged.frame.select(ROW, source, *JUDGED, pl.col("correct").alias(CORRECT))
    return replace(judged, frame=frame.with_columns(extras(cells, reading.keep)))


def _public(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(ROW, SOURCE, CORRECT).rechunk()


def _asked(reading: Reading) -> str:
    return " and ".join(f"{column} is {value}" for column, value in reading.where)


def _nothing_left(tables: Sequence[Table], reading: Reading) -> DataError:
    last = reading.where[-1][0]
    table = tables[0]
    held = ""
    if last in table.frame.columns:
        found = as_text(table.frame[last]).unique(maintain_order=True).head(5)
        held = f"{last} holds {', '.join(f'{text!r}' for text in found)}"
    return DataError(f"no row is left where {_asked(reading)}", where=f"{table.name}:", fix=held)
