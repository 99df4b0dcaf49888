"""The table of responses: what systems answered, how sure they were, and whether it was right."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from demur.core.engines.engine import collected
from demur.core.io.columns import (
    JUDGED,
    check_mapping,
    extras,
    filtered,
    nearest,
    parts_wanted,
    request_for,
    resolve_clear,
)
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, opened, system_names
from demur.core.io.tables import LABELS, ROW, Cells, Request, Table, as_lists, as_text, comparable, first
from demur.core.show.numbers import ROWS, Wording, counted
from demur.errors import DataError, UsageError, faults_of
from demur.returns.judging import (
    EVERY_OR_NONE,
    GOOD_WEIGHT,
    LOWEST,
    NONE,
    NOT_NAN,
    OUT_OF_SCOPE,
    RANK_LOWEST,
    Rules,
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

FLAGS = ("correct", "abstained", "failed")
"""Columns of yes and no."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged rows of one table, and how often each thing worth telling happened.

    `unranked` are the systems that answered but of which no row has a confidence.
    """

    frame: pl.DataFrame
    recognised: Counter[Wording]
    cautions: Counter[Wording]
    unranked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _JudgedCells:
    """A table with its rows judged; a fault is located at the first row that has it."""

    cells: Cells
    frame: nw.DataFrame[Any]

    @property
    def columns(self) -> Mapping[str, str]:
        return self.cells.columns

    @property
    def names(self) -> Sequence[str]:
        return self.cells.table.columns

    @property
    def where(self) -> str:
        return self.cells.table.name

    def fault(
        self, part: str, bad: nw.Expr, rule: str, *, count: int = 0, got: object = None, fix: str = ""
    ) -> DataError:
        del count
        return self.cells.fault(part, _first_where(self.frame, bad) or 0, rule, got=got, fix=fix)


def _first_where(frame: nw.DataFrame[Any], bad: nw.Expr) -> int | None:
    return first(frame.select(bad=bad).to_polars()["bad"].fill_null(value=False))


def judge(cells: Cells, rules: Rules, system: str) -> Judged:
    """Judges the rows of a table as `judge_rows` says; the faults of all its columns are told together."""
    try:
        return _judge(cells, rules, system)
    except DataError as fault:
        raise DataError.joined([fault, *_column_faults(cells)]) from None


def _judge(cells: Cells, rules: Rules, system: str) -> Judged:
    refuse_unjudgeable(cells.columns, cells.table.columns, cells.table.name)
    staged, lists, several = _staged(cells, rules, system)
    judged = judge_rows(nw.from_native(staged.lazy()), rules, cells.columns, lists=several).collect()
    table = _JudgedCells(cells, judged)
    wanted = conditions(rules, cells.columns, lists=several)
    counts = judged.select(**{name: condition.sum() for name, condition in wanted.items()}).row(0)
    found = dict(zip(wanted, map(int, counts), strict=True))
    refuse_unmarked(found, table)
    unranked: list[str] = []
    if found["missing"]:
        by_system = judged.with_columns(ranked=wanted["ranked"], missing=wanted["missing"]).group_by("system")
        survey = by_system.agg(nw.col("ranked", "missing").sum()).to_polars()
        unranked = unranked_systems(survey)
        refuse_missing(survey, unranked, rules, table)
    frame = judged.to_polars()
    targets = pl.when("outside").then(pl.lit([], dtype=LABELS)).otherwise("acceptable" if several else lists)
    return Judged(frame.with_columns(target=targets), recognised_in(found, rules), cautions_in(found), tuple(unranked))


def _staged(cells: Cells, rules: Rules, system: str) -> tuple[pl.DataFrame, pl.Series, bool]:
    """Gives the cells as text, flags and numbers under canonical names; the targets as lists; whether any was one."""
    targets, predictions = cells.labels("target"), cells.text("prediction")
    aside = (*rules.out_of_scope, *rules.withheld)
    labels, predictions = comparable(targets, predictions, aside), comparable(predictions, targets, aside)
    lists, several = as_lists(labels)
    columns = [
        cells.table.frame[ROW],
        _complete(cells, "id"),
        _system(cells, system),
        cells.text("dialogue"),
        predictions,
        lists.alias("target") if several else labels,
        *(cells.flags(part) for part in FLAGS),
        _confidence_numbers(cells).alias("number"),
        _weight(cells),
    ]
    return pl.DataFrame(columns), lists, several


def _column_faults(cells: Cells, unclear: Collection[str] = ()) -> list[DataError]:
    """The faults that each column shows by itself; which columns play the unclear parts is known to be a fault."""
    known = {**dict.fromkeys(unclear, ""), **cells.columns}
    checks: list[Callable[[], object]] = [
        lambda: refuse_unjudgeable(known, cells.table.columns, cells.table.name),
        lambda: _complete(cells, "id"),
        lambda: _complete(cells, "system"),
        *(partial(cells.flags, part) for part in FLAGS),
        lambda: _confidence_numbers(cells),
        lambda: _weight(cells),
    ]
    return faults_of(checks)


def _complete(cells: Cells, part: str) -> pl.Series:
    values = cells.text(part)
    position = first(values.is_null()) if 0 < values.null_count() < len(values) else None
    if position is not None:
        raise cells.fault(part, position, EVERY_OR_NONE, got="null")
    return values


def _system(cells: Cells, name: str) -> pl.Series:
    if "system" in cells:
        systems = _complete(cells, "system")
        if systems.null_count() == 0:
            return systems
    return pl.Series("system", [name]).new_from_index(0, cells.table.frame.height)


def _confidence_numbers(cells: Cells) -> pl.Series:
    numbers = cells.numbers("confidence")
    position = _first_where(nw.from_native(numbers.alias("number").to_frame()), NOT_NAN.bad)
    if position is not None:
        raise cells.fault("confidence", position, NOT_NAN.text, fix=NOT_NAN.fix)
    return numbers


def _weight(cells: Cells) -> pl.Series:
    if "weight" not in cells:
        return pl.Series("weight", [1.0]).new_from_index(0, cells.table.frame.height)
    weights = cells.numbers("weight")
    position = _first_where(nw.from_native(weights.to_frame()), GOOD_WEIGHT.bad)
    if position is not None:
        got = weights[position]
        raise cells.fault("weight", position, GOOD_WEIGHT.text, got="null" if got is None else got)
    return weights


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


def _foreign_labels(frame: pl.DataFrame) -> list[str]:
    """Refuses systems, or warns of them, as `refuse_foreign_labels` does."""
    judged: nw.LazyFrame[Any] = nw.from_native(frame.lazy())
    right = judged.filter(compared(CORRECT)).group_by("system").agg(nw.col("right").any()).filter(~nw.col("right"))
    return refuse_foreign_labels(judged, sorted(collected(right)["system"]), (), lists=True, correct=CORRECT)


def near_matches(frame: pl.DataFrame) -> list[str]:
    """Warns of predictions that would be right if letter case and the spaces around labels did not matter.

    Where labels are many times fewer than rows, rows are looked at only if two labels differ in nothing else.
    """
    rows: nw.LazyFrame[Any] = nw.from_native(frame.lazy())
    wrong = rows.filter(compared(CORRECT) & ~nw.col("right")).select("prediction", "target").collect().to_polars()
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


def _refuse_ranked_in_part(frame: pl.DataFrame, unranked: Sequence[str], tables: Sequence[Table]) -> None:
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
    warnings = [f"{table.name}: no row is left where {_conditions_text(reading)}" for table in emptied]
    warnings += counted(part.cautions for part in parts) + _foreign_labels(frame) + near_matches(frame)
    told += counted(part.recognised for part in parts)
    if reading.missing_confidence == "error":
        unranked = tuple(dict.fromkeys(system for part in parts for system in part.unranked))
        _refuse_ranked_in_part(frame, unranked, tables)
        told += unranked_notes(unranked, frame["system"].n_unique()) if unranked else ()
    return Responses(frame.drop(ROW, SOURCE, CORRECT).rechunk(), tuple(dict.fromkeys(told)), tuple(warnings))


def _resolved(table: Table, reading: Reading) -> tuple[Cells, list[str]]:
    wanted = parts_wanted(reading.keep, reading.where)
    resolution = resolve_clear(table.columns, reading.columns, parts=wanted, where=f"{table.name}:")
    everything = Cells(table, resolution.columns)
    if resolution.faults:
        raise _unclear(everything, resolution.faults, reading)
    cells = filtered(everything, reading.where)
    notes = list(resolution.notes)
    if reading.where:
        kept = f"{cells.table.frame.height:,} of {ROWS.told(table.frame.height)} kept where {_conditions_text(reading)}"
        notes.append(f"{table.name}: {kept}")
    return cells, notes


def _unclear(cells: Cells, faults: Mapping[str, DataError], reading: Reading) -> DataError:
    """The faults of parts whose columns are not clear, and of the columns that are, in the rows that are kept."""
    if any(column in faults for column, _ in reading.where):
        return DataError.joined(faults.values())
    others = faults_of([lambda: _refuse_columns(filtered(cells, reading.where), faults)])
    return DataError.joined([*faults.values(), *others])


def _refuse_columns(cells: Cells, unclear: Mapping[str, DataError]) -> None:
    if found := _column_faults(cells, unclear):
        raise DataError.joined(found)


def _judge_table(cells: Cells, system: str, number: int, reading: Reading) -> Judged:
    judged = judge(cells, reading.rules(), system)
    source = pl.lit(number).alias(SOURCE)
    frame = judged.frame.select(ROW, source, *JUDGED, pl.col("correct").alias(CORRECT))
    return replace(judged, frame=frame.with_columns(extras(cells, reading.keep)))


def _conditions_text(reading: Reading) -> str:
    return " and ".join(f"{column} is {value}" for column, value in reading.where)


def _nothing_left(tables: Sequence[Table], reading: Reading) -> DataError:
    last = reading.where[-1][0]
    table = tables[0]
    held = ""
    if last in table.frame.columns:
        found = as_text(table.frame[last]).unique(maintain_order=True).head(5)
        held = f"{last} holds {', '.join(f'{text!r}' for text in found)}"
    return DataError(f"no row is left where {_conditions_text(reading)}", where=f"{table.name}:", fix=held)


def read_data(data: Sequence[Any], reading: Reading) -> Responses:
    """The judged responses of files, frames, rows, tables read before, or a mixture; a dict names its systems."""
    if not data:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    if all(isinstance(one, str | Path) for one in data):
        return read_responses(*data, reading=reading)
    if len(data) == 1 and named_systems(data[0]):
        return _joined([_renamed(read_data((one,), reading), name) for name, one in data[0].items()])
    unnamed = sum(not isinstance(one, str | Path | Responses) for one in data)
    parts = [_read_one(one, reading, f"system {place}" if unnamed > 1 else None) for place, one in enumerate(data, 1)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def named_systems(data: Any) -> bool:
    """Whether this is a dict of systems rather than one of columns."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(isinstance(one, str | Path | Responses) or hasattr(one, "columns") for one in data.values())
    )


def named(judged: Responses, name: str | None) -> Responses:
    """The responses under a name given for their only system."""
    if name is None:
        return judged
    refuse_several(name, judged.systems)
    return replace(judged, frame=judged.frame.with_columns(system=pl.lit(name)))


def refuse_several(name: str | None, systems: Sequence[str]) -> None:
    """Refuse one name for several systems."""
    if name is not None and len(systems) > 1:
        raise UsageError(f"`name` names one system; there are several: {', '.join(systems)}")


def one_system(judged: Responses, system: str | None) -> Responses:
    """The responses of the named system, or of the only one there is."""
    if system is not None:
        return judged.of(system)
    if len(judged.systems) > 1:
        raise UsageError(f"a threshold belongs to one system; choose with `system` from {', '.join(judged.systems)}")
    return judged


def _read_one(data: Any, reading: Reading, name: str | None) -> Responses:
    if isinstance(data, Responses):
        return data
    if isinstance(data, str | Path):
        return read_responses(data, reading=reading)
    return responses(data, system=name, reading=reading)


def _renamed(part: Responses, name: str) -> Responses:
    if len(part.systems) > 1:
        raise UsageError(
            f'"{name}" holds several systems: {", ".join(part.systems)}; give the table without a new name'
        )
    return replace(part, frame=part.frame.with_columns(pl.lit(name).alias("system")))


def _joined(parts: list[Responses]) -> Responses:
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    return replace(parts[0], frame=frame, notes=notes, warnings=warnings)


@dataclass(frozen=True, eq=False)
class ValidatedTable:
    """What was recognised in tables that have no faults."""

    responses: Responses

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.responses)

    @property
    def slices(self) -> list[str]:
        """The columns to slice by."""
        columns = self.responses.frame.columns
        return columns[columns.index("weight") + 1 :]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised while reading."""
        listed = (f"columns to slice by: {', '.join(self.slices)}",) if self.slices else ()
        return (*listed, *self.responses.notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong all the same."""
        return self.responses.warnings

    def frame(self) -> pl.DataFrame:
        """A row for each system: its rows by what became of them, its dialogues and its confidences."""
        frame = self.responses.frame
        counts = frame.group_by("system", maintain_order=True).agg(
            pl.len().alias("rows"),
            pl.col("answered").sum(),
            (~pl.col("answered") & ~pl.col("failed")).sum().alias("withheld"),
            pl.col("failed").sum(),
            pl.col("out_of_scope").sum(),
            pl.col("right").sum(),
            pl.col("dialogue").n_unique().alias("dialogues"),
            pl.col("confidence").min().alias("lowest_confidence"),
            pl.col("confidence").max().alias("highest_confidence"),
        )
        return counts.with_columns(dialogues=pl.when(frame["dialogue"].null_count() < frame.height).then("dialogues"))

    def to_dict(self) -> dict[str, Any]:
        """What was recognised as plain values."""
        return {
            "valid": True,
            "n": self.n,
            "systems": self.frame().to_dicts(),
            "slices": self.slices,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
