"""The table of responses: what systems answered, how sure they were, whether it was right; and systems paired by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import accumulate, pairwise
from operator import add
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from demur.core.io.columns import (
    DEPLOYED,
    JUDGED,
    STRATUM,
    check_mapping,
    column_named,
    extras,
    filtered,
    nearest,
    parts_wanted,
    request_for,
    resolve,
)
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, confidence_column, file_and_column, system_names
from demur.core.io.tables import (
    CATEGORISED_ROWS,
    LABELS,
    ROW,
    SOURCE,
    Cells,
    PackedTexts,
    Request,
    Table,
    are_repeated,
    as_lists,
    as_text,
    comparable,
    first,
    in_categories,
    in_one_piece,
)
from demur.core.show.numbers import ROWS, Wording, first_names, sentences_of_counts, table_line
from demur.errors import DataError, UsageError, faults_of
from demur.importers.choices import current_choices
from demur.importers.protocol import is_placeholder, placeholder_labels
from demur.importers.reading import opened
from demur.returns import confidences, judging
from demur.returns.confidences import is_guess, looks_like_correctness, not_taken, take_anyway

FLAGS = ("correct", "abstained", "failed")
"""Columns of yes and no."""

INPUT = "demur:input"
"""The column that holds the place of a row among inputs that were compressed."""

KEY = "demur:key"
"""The column that names inputs where others than id do."""

BY_ROW = ("row",)
"""What says that rows are paired by their place."""

TRIAL = "demur:trial"
"""The column that holds the trial of a row, where an input was tried several times."""

CORRECT = "demur:correct"
"""The column that holds `correct` as it was given, null where the target alone was compared."""

NONE_LEFT_OUT = pl.DataFrame(schema={"system": pl.String, "id": pl.String})

_REPEATED = Wording("id is repeated", "ids are repeated")

_WAYS_OUT = (
    "several systems in one file need a column system, --map system=COLUMN; an input that was tried several times "
    "needs a column trial (or epoch, repeat, seed), --map trial=COLUMN"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table of responses.

    `columns` maps canonical columns to those of the file. `out_of_scope` are targets to which no answer is
    right, `withheld` predictions that are no answer. `missing_confidence` says what becomes of an answer
    without one. `where` keeps the rows whose column has the value. `keep` names further columns to carry
    along, `*` all of them. `unjudged` takes tables too that do not tell right from wrong. `pair_by` are the columns
    that name an input in place of id; the only column "row" stands for the place of a row in its log. `pack_inputs`
    compresses the texts of inputs, which `Responses.with_inputs` gives back. `ranked`: confidences are used, and noted.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    out_of_scope: tuple[str, ...] = ("oos", "out_of_scope")
    withheld: tuple[str, ...] = ("nlu_fallback",)
    missing_confidence: Literal["error", "lowest"] = "error"
    where: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()
    unjudged: bool = False
    pair_by: tuple[str, ...] = ()
    pack_inputs: bool = False
    ranked: bool = True

    def request(self) -> Request:
        """Gives what must be read of a file."""
        check_mapping(self.columns)
        key = () if self.pair_by == BY_ROW else self.pair_by
        return request_for(dict(self.columns), self.keep, self.where, key)

    def rules(self) -> judging.Rules:
        """Gives how rows are judged."""
        is_lowest = self.missing_confidence == "lowest"
        return judging.Rules(self.out_of_scope, self.withheld, is_lowest, self.unjudged, self.ranked)

    @property
    def condition(self) -> str:
        """Which rows are kept, in words."""
        return " and ".join(f"{column} is {value}" for column, value in self.where)


AS_IT_COMES = Reading()


@dataclass(frozen=True, repr=False)
class Responses:
    """The answers of one or more systems, read, checked and judged.

    `frame` begins with the columns id, system, dialogue, target, prediction, answered, right, failed,
    out_of_scope, confidence and weight, stratum where rows were drawn by strata and weigh what they stand for, and
    deployed_threshold where the log says at which threshold its system is in use.
    `target` lists the acceptable labels: an empty list is out of scope,
    null is unknown (the row was judged by `correct`). `confidence` is null where nothing was answered. Where they are
    not `judged`, `right` says nothing.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    judged: bool = True
    left_out: pl.DataFrame = field(default_factory=lambda: NONE_LEFT_OUT)
    """System and id of the rows that nothing judges."""
    inputs: PackedTexts | None = None
    """The texts of inputs where they were compressed; the column `INPUT` has the place of each row in them."""

    def __repr__(self) -> str:
        return table_line("Responses", self.frame.height, "rows", self.systems)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in order of first appearance."""
        return systems_of(self.frame)

    @property
    def unranked(self) -> tuple[str, ...]:
        """The systems all of whose answers have the lowest confidence, for want of any: nothing ranks them.

        >>> responses([{"target": "yes", "prediction": "yes"}], system="mine").unranked
        ('mine',)
        """
        answers = self.frame.lazy().filter("answered").group_by("system", maintain_order=True)
        lowest = answers.agg((pl.col("confidence") == judging.LOWEST).all()).filter("confidence")
        return tuple(lowest.collect()["system"])

    def of(self, system: str) -> Responses:
        """Gives the responses of one system."""
        if chosen_system(self.systems, system) and len(self.systems) == 1:
            return self
        return replace(self, frame=_rows_of(self.frame, system))

    def with_inputs(self) -> Responses:
        """The responses with the texts of inputs as a column, where there are any."""
        if self.inputs is None:
            return self
        texts = self.inputs.at(self.frame[INPUT]).alias("input")
        return replace(self, frame=self.frame.drop(INPUT).with_columns(texts), inputs=None)

    def __len__(self) -> int:
        return self.frame.height


def systems_of(frame: pl.DataFrame) -> tuple[str, ...]:
    """The names of the systems in judged rows, in order of first appearance.

    >>> systems_of(pl.DataFrame({"system": ["b", "a", "b"]}))
    ('b', 'a')
    """
    names = frame["system"]
    changes = names.slice(1).ne_missing(names.slice(0, max(len(names) - 1, 0)))  # few, as rows mostly come by system
    return tuple(dict.fromkeys([*names.head(1), *names.slice(1).filter(changes)]))


def _rows_of(frame: pl.DataFrame, system: str) -> pl.DataFrame:
    """The rows of one system."""
    own = frame["system"] == system
    first, count = own.arg_max() or 0, int(own.sum())
    together = bool(own.slice(first, count).all())  # as they mostly are: then nothing need be copied
    return frame.slice(first, count) if together else frame.filter(own)


def read_data(data: Sequence[Any], reading: Reading) -> Responses:
    """The judged responses of files, frames, rows, tables read before, or a mixture; a dict names its systems."""
    if not data:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    columns = {place: column for place, one in enumerate(data) if (column := confidence_column(one)) is not None}
    if not columns and all(isinstance(one, str | Path) for one in data):
        return read_responses(*data, reading=reading)
    parts = []
    if len(data) == 1 and named_systems(data[0]):
        for name, one in data[0].items():
            part = read_data((one,), reading)
            if len(part.systems) > 1:
                several = f'"{name}" holds several systems: {", ".join(part.systems)}'
                raise UsageError(f"{several}; give the table without a new name")
            parts.append(named(part, name))
    else:
        unnamed = sum(not isinstance(one, str | Path | Responses) for one in data)
        for place, one in enumerate(data, 1):
            if isinstance(one, Responses):
                parts.append(one)
            elif place - 1 in columns:
                parts.append(_read_column(file_and_column(one)[0], columns[place - 1], reading))
            elif isinstance(one, str | Path):
                parts.append(read_responses(one, reading=reading))
            else:
                parts.append(responses(one, system=f"system {place}" if unnamed > 1 else None, reading=reading))
    if len(parts) == 1:
        return parts[0]
    names = Counter(system for part in parts for system in part.systems)
    if columns and (twice := [name for name, times in names.items() if times > 1]):
        raise UsageError(f'two systems are called "{twice[0]}"; rename a file, or name systems in Python with a dict')
    frame = pl.concat([part.with_inputs().frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    judged = all(part.judged for part in parts)
    return Responses(frame, notes, warnings, judged, pl.concat([part.left_out for part in parts]))


def _read_column(file: str | Path, column: str, reading: Reading) -> Responses:
    """The responses of a file with the confidences of one column, each system with the column in its name."""
    judged = read_responses(file, reading=replace(reading, columns={**reading.columns, "confidence": column}))
    own = pl.concat_str("system", pl.lit(f":{column}"))
    frame, left_out = (one.with_columns(system=own) for one in (judged.frame, judged.left_out))
    return replace(judged, frame=frame, left_out=left_out)


def named_systems(data: Any) -> bool:
    """Whether this is a dict of systems rather than one of columns."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(isinstance(one, str | Path | Responses) or hasattr(type(one), "columns") for one in data.values())
    )


def read_responses(*sources: str | Path | Source, reading: Reading = AS_IT_COMES) -> Responses:
    """Reads and judges the responses in files: paths, globs, or `-` for standard input.

    A table without a column `system` stands for one system, named after its file.
    """
    request = reading.request()
    with opened(*sources, columns=reading.columns) as files:
        tables = (read_source(file, request) for file in files)  # one at a time, as a table takes room until judged
        names, notes = system_names(files)
        return _assemble(tables, names, [*(note for file in files for note in file.notes), *notes], reading)


def responses(data: object, *, system: str | None = None, reading: Reading = AS_IT_COMES) -> Responses:
    """Judges the responses in a frame (Polars, pandas, PyArrow, DuckDB and others), columns, or rows.

    >>> rows = [{"id": 1, "target": "yes", "prediction": "yes", "confidence": 0.9}]
    >>> responses(rows).frame["right"].to_list()
    [True]
    """
    table = table_of(data, reading.request())
    return _assemble(iter([table]), [system or "system"], [], reading)


def named(judged: Responses, name: str | None) -> Responses:
    """The responses under a name given for their only system."""
    if name is None:
        return judged
    refuse_several(name, judged.systems)
    frame, left_out = (one.with_columns(system=pl.lit(name)) for one in (judged.frame, judged.left_out))
    return replace(judged, frame=frame, left_out=left_out)


def refuse_several(name: str | None, systems: Sequence[str]) -> None:
    """Refuse one name for several systems."""
    if name is not None and len(systems) > 1:
        raise UsageError(f"`name` names one system; there are several: {', '.join(systems)}")


def one_system(judged: Responses, system: str | None, what: str = "a threshold") -> Responses:
    """The responses of the named system, or of the only one there is."""
    return judged.of(chosen_system(judged.systems, system, what))


def chosen_system(systems: Sequence[str], system: str | None, what: str = "a threshold") -> str:
    """The named system, or the only one there is; `what` belongs to one system."""
    if system is None and len(systems) > 1:
        raise UsageError(f"{what} belongs to one system; choose with `system` from {first_names(systems, 9, quote='')}")
    chosen = systems[0] if system is None else system
    if chosen not in systems:
        raise DataError(f'there is no system "{chosen}"', fix=nearest(chosen, systems))
    return chosen


def _assemble(given: Iterator[Table], names: Sequence[str], notes: Sequence[str], reading: Reading) -> Responses:
    """The judged rows of tables, which are read when their turn comes and let go when they are judged."""
    notes, warnings = [*notes], []
    tables, parts = list[Table](), list[Judged]()
    for name in names:
        table, kept, told = _judge_table(next(given), name, len(tables), reading)
        tables.append(table)
        parts += kept
        notes += told
        if not kept:
            warnings.append(f"{table.name}: no row is left where {reading.condition}")
    del kept  # so that only `parts` holds the rows
    if not parts:
        raise _nothing_left(tables[0], reading)
    unlabelled = _unlabelled_systems(parts)
    parts, inputs = _with_places(parts)
    alike = all(part.frame.schema == parts[0].frame.schema for part in parts)  # then nothing is copied
    frame = pl.concat([part.frame for part in parts], how="vertical" if alike else "diagonal_relaxed")
    parts = [replace(part, frame=part.frame.clear()) for part in parts]
    if refuse_duplicates(frame, tables, key=() if reading.pair_by == BY_ROW else reading.pair_by):
        frame, note = _grouped_by_id(frame)
        notes.append(note)
    frame, scales, doubts = _settle_scales(frame, tables, reading)
    notes += [*scales, *(judging.notes_on_calibration(frame, tables) if reading.ranked else ())]
    judgeable = all(part.judged for part in parts)
    if not reading.where:  # which may choose rows that are all out of scope
        warnings += map(judging.unlabelled_warning, unlabelled)
    warnings += [*doubts, *(warning for part in parts for warning in part.warnings)]
    warnings += sentences_of_counts(part.cautions for part in parts)
    warnings += judging.foreign_labels(frame, CORRECT) + judging.near_matches(frame, CORRECT) if judgeable else []
    notes += [*sentences_of_counts(part.recognised for part in parts), *(note for part in parts for note in part.notes)]
    if reading.missing_confidence == "error":
        unranked = tuple(dict.fromkeys(system for part in parts for system in part.unranked))
        judging.refuse_ranked_in_part(frame, unranked, tables)
        notes += judging.unranked_notes(unranked, len(systems_of(frame)) if unranked else 0)
    frame = frame.drop(ROW, SOURCE, CORRECT, TRIAL)
    if reading.pack_inputs or frame.height < CATEGORISED_ROWS * len(tables):  # joining takes time where rows are many
        frame = in_one_piece(frame)
    left_out = pl.concat([part.left_out for part in parts])
    return Responses(frame, tuple(dict.fromkeys(notes)), tuple(warnings), judgeable, left_out, inputs)


def _unlabelled_systems(parts: Sequence[Judged]) -> list[str]:
    """The systems whose rows have no target in any of the tables."""
    labelled = {system for part in parts if part.labelled for system in systems_of(part.frame)}
    others = (system for part in parts if not part.labelled for system in systems_of(part.frame))
    return [system for system in dict.fromkeys(others) if system not in labelled]


def _with_places(parts: list[Judged]) -> tuple[list[Judged], PackedTexts | None]:
    """The parts with the place of each row among the inputs of all that were compressed, and these."""
    if all(part.inputs is None for part in parts):
        return parts, None
    ends = [0, *accumulate(part.frame.height for part in parts)]
    places = [pl.int_range(start, end, dtype=pl.UInt32, eager=True).alias(INPUT) for start, end in pairwise(ends)]
    inputs = reduce(add, (part.inputs or PackedTexts((None,), (part.frame.height,)) for part in parts))
    named = [replace(part, frame=part.frame.with_columns(own)) for part, own in zip(parts, places, strict=True)]
    return named, inputs


def _judge_table(table: Table, name: str, number: int, reading: Reading) -> tuple[Table, list[Judged], list[str]]:
    """The table without its rows, these as they are judged, and notes; the table itself where no row is left."""
    cells, notes = _resolve_table(table, reading)
    if cells.table.frame.is_empty():
        return table, [], notes
    judged = judge(
        cells, rules_for(cells, reading), name, source=number, guessed=is_guess(cells.columns, reading.columns)
    )
    kept = {values.name: values for values in extras(judged.cells, reading.keep)}
    table = replace(table, frame=table.frame.clear())
    cells = Cells(table, cells.columns)
    judged = replace(judged, cells=cells)  # without the columns as they were read
    texts = kept.pop("input", None) if reading.pack_inputs else None
    frame = judged.frame.with_columns(in_categories(kept.pop(column)) for column in list(kept))
    judged = replace(judged, frame=frame)
    return table, [judged if texts is None else replace(judged, inputs=PackedTexts.of(texts))], notes


def _settle_scales(
    frame: pl.DataFrame, tables: Sequence[Table], reading: Reading
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Reads percentages as rates, system by system; see `settle_scales`."""
    above = (pl.col("confidence") > 1).any()
    if not reading.ranked or not (confidences.is_declared_percent() or frame.select(above).item()):
        return frame, [], []

    def places(bad: nw.Expr) -> str:
        rows = nw.from_native(frame).filter(bad).select(SOURCE, ROW).rows()
        listed = [tables[source].place(row) for source, row in rows[: judging.SHOWN]]
        return ", ".join(listed) + (" ..." if len(rows) > judging.SHOWN else "")

    rows, notes, warnings = confidences.settle_scales(
        nw.from_native(frame.lazy()),
        keys=("system",),
        missing_is_lowest=reading.missing_confidence == "lowest",
        where=", ".join(dict.fromkeys(table.name for table in tables)) if len(tables) <= judging.SHOWN else "the logs",
        places=places,
    )
    return rows.collect().to_polars(), notes, warnings


def _resolve_table(table: Table, reading: Reading) -> tuple[Cells, list[str]]:
    """Gives the rows that are kept, with the column of each part, and what is to note of them.

    Where the columns of some parts are not clear, the faults of the other columns are raised with theirs.
    """
    wanted = parts_wanted(reading.keep, reading.where)
    resolution = resolve(table.columns, reading.columns, parts=wanted, where=f"{table.name}:", keep_faults=True)
    cells = Cells(table, _without_vain_strata(resolution.columns, reading))
    faults = resolution.faults
    if faults and any(column in faults for column, _ in reading.where):
        raise DataError.joined(faults.values())
    try:
        cells = filtered(cells, reading.where)
    except DataError as fault:
        raise DataError.joined([*faults.values(), fault]) from None
    if faults:
        raise DataError.joined([*faults.values(), *_column_faults(cells, faults)])
    notes = list(resolution.notes)
    if reading.pair_by:
        cells = _keyed(cells, reading.pair_by)
    if reading.where:
        kept = f"{cells.table.frame.height:,} of {ROWS.with_count(table.frame.height)} kept where {reading.condition}"
        notes.append(f"{table.name}: {kept}")
    return cells, notes


def _without_vain_strata(columns: Mapping[str, str], reading: Reading) -> dict[str, str]:
    """The columns of each part; strata are one only beside weights, and where all rows of the sample are kept."""
    sampled = "weight" in columns and not reading.where
    return {part: column for part, column in columns.items() if part != STRATUM or sampled}


def _keyed(cells: Cells, columns: tuple[str, ...]) -> Cells:
    """The cells with the place of a row within its system, or the values of several columns, as its id."""
    table = cells.table
    if columns == BY_ROW and "row" not in table.columns:
        place = pl.int_range(1, pl.len() + 1).over("system").cast(pl.String)
        key = cells.text("system").to_frame().select(pl.concat_str(pl.lit("row "), place)).to_series()
    else:
        named = [column_named(name, table.columns, cells.columns, table.name) for name in columns]
        texts = [as_text(table.frame[name]).alias(f"{place}") for place, name in enumerate(named)]
        for name, text in zip(columns, texts, strict=True):
            if (position := first(text.is_null())) is not None:
                raise cells.fault(name, position, "must be there in every row to pair by it", got="null")
        if len(texts) > 1:  # so that no two keys are written alike
            texts = [
                text.str.replace_all("\\", r"\\", literal=True).str.replace_all(",", r"\,", literal=True)
                for text in texts
            ]
        key = pl.DataFrame(texts).select(pl.concat_str(pl.all(), separator=", ")).to_series()
    frame = table.frame.with_columns(key.alias(KEY))
    return Cells(replace(table, frame=frame), {**cells.columns, "id": KEY})


def _nothing_left(table: Table, reading: Reading) -> DataError:
    last, held = reading.where[-1][0], ""
    if last in table.frame.columns:
        found = as_text(table.frame[last].alias("cell")).unique(maintain_order=True).head(5)
        held = f"{last} holds {', '.join(f'{text!r}' for text in found)}"
    return DataError(f"no row is left where {reading.condition}", where=f"{table.name}:", fix=held)


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged rows of one table, and how often each thing worth telling happened.

    `unranked` are the systems that answered but of which no row has a confidence, `left_out` the system and id of rows
    that nothing judges; `cells` has the other rows as they were read. `labelled` says whether any row has a target.
    """

    frame: pl.DataFrame
    cells: Cells
    recognised: Counter[Wording]
    cautions: Counter[Wording]
    unranked: tuple[str, ...]
    judged: bool
    left_out: pl.DataFrame
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    inputs: PackedTexts | None = None
    labelled: bool = True


def judge(cells: Cells, rules: judging.Rules, system: str, *, source: int = 0, guessed: bool = False) -> Judged:
    """Judges the rows of a table as `judge_rows` says; the faults of all its columns are raised together.

    A column of confidences that was only `guessed` is not taken if it is correctness; rows that nothing judges are left
    out.
    """
    try:
        return _judge(cells, rules, system, source, guessed, NONE_LEFT_OUT)
    except DataError as fault:
        unjudged = () if rules.judge(cells.columns) else ("target",)
        raise DataError.joined([fault, *_column_faults(cells, unjudged)]) from None


def _judge(
    cells: Cells, rules: judging.Rules, system: str, source: int, guessed: bool, left_out: pl.DataFrame
) -> Judged:
    judgeable = rules.judge(cells.columns)
    if judgeable:
        judging.refuse_unjudgeable(cells.columns, cells.table.columns, cells.table.name, cells.table.paths)
    staged, lists, several, notes = _stage_cells(cells, rules, system)
    lazy = judging.judge_rows(nw.from_native(staged.lazy()), rules, cells.columns, lists=several)
    judged = lazy.collect(engine="in-memory")  # which keeps columns in one piece

    def fault(part: str, bad: nw.Expr, rule: str, *, count: int = 0, got: object = None, fix: str = "") -> DataError:
        del count
        return cells.fault(part, _first_where(judged, bad) or 0, rule, got=got, fix=fix)

    table = judging.Located(cells.columns, cells.table.columns, cells.table.name, fault)
    wanted = judging.conditions(rules, cells.columns, lists=several)
    sums = judged.select(**{name: condition.sum() for name, condition in wanted.items()}).row(0)
    counts = dict(zip(wanted, map(int, sums), strict=True))
    if judgeable:
        judging.refuse_unmarked(counts, table)
        aside = judging.leaves_unjudged(judged.lazy(), cells.columns, counts)
        if (
            aside
            and not (rows := judged.with_columns(aside=judging.unjudged_where(cells.columns)).to_polars())
            .filter("aside")
            .is_empty()
        ):
            kept = replace(cells, table=replace(cells.table, frame=cells.table.frame.filter(~rows["aside"])))
            return _judge(kept, rules, system, source, guessed, rows.filter("aside")["system", "id"])
        if guessed and looks_like_correctness(judged.lazy()):
            found = _judge(_without_guess(cells, rules), rules, system, source, guessed=False, left_out=left_out)
            return replace(found, warnings=(f"{cells.table.name}: {not_taken(cells.columns['confidence'])}",))
    unranked: list[str] = []
    if counts["missing"]:
        by_system = judged.with_columns(ranked=wanted["ranked"], missing=wanted["missing"]).group_by("system")
        survey = by_system.agg(nw.col("ranked", "missing").sum()).to_polars()
        unranked = judging.unranked_systems(survey)
        judging.refuse_missing(survey, unranked, rules, table)
    targets = pl.when("outside").then(pl.lit([], dtype=LABELS)).otherwise("acceptable" if several else lists)
    frame = judged.to_polars().with_columns(target=targets)
    columns = (*JUDGED, *(part for part in (STRATUM, DEPLOYED) if part in cells))
    frame = frame.select(ROW, pl.lit(source).alias(SOURCE), *columns, pl.col("correct").alias(CORRECT), TRIAL)
    recognised = judging.recognised_in(counts, rules, cells.columns)
    cautions = judging.cautions_in({**counts, "unjudged": left_out.height})
    labelled = not judging.is_unlabelled(counts, cells.columns)
    told = (tuple(unranked), judgeable, left_out, tuple(notes))
    return Judged(frame, cells, recognised, cautions, *told, labelled=labelled)


def rules_for(cells: Cells, reading: Reading) -> judging.Rules:
    """The rules of judging a table: where `withheld` names no labels, those that are no answer anywhere in it, too.

    A label such as "no_match" or "None" is one where no target is the like and nobody marked it as correct.
    """
    rules = reading.rules()
    if reading.withheld != AS_IT_COMES.withheld or "prediction" not in cells:
        return rules
    predictions = nw.from_native(cells.text("prediction").to_frame("prediction"))
    if not predictions.select(is_placeholder(nw.col("prediction")).any()).item():
        return rules
    with suppress(DataError):  # a column with a fault, which judging reports
        targets = as_lists(cells.labels("target"))[0].alias("target")
        rows = predictions.to_native().with_columns(targets, cells.flags("correct").alias("correct"))
        labels = placeholder_labels(nw.from_native(rows.lazy()), lists=True)
        return replace(rules, withheld=(*rules.withheld, *labels))
    return rules


def _without_guess(cells: Cells, rules: judging.Rules) -> Cells:
    """The cells without the column that was guessed to hold confidences; refused unless they may be missing."""
    column = cells.columns["confidence"]
    if not rules.missing_is_lowest:
        raise DataError(not_taken(column), where=f"{cells.table.name}:", fix=take_anyway(column))
    return replace(cells, columns={part: name for part, name in cells.columns.items() if part != "confidence"})


def before_judging(cells: Cells, rules: judging.Rules, system: str) -> pl.DataFrame:
    """Every row in its order with what is known before it is judged: whether it is answered, and marked correct."""
    staged, _, several, _ = _stage_cells(cells, rules, system)
    return judging.judge_rows(nw.from_native(staged.lazy()), rules, cells.columns, lists=several).collect().to_polars()


def _stage_cells(cells: Cells, rules: judging.Rules, system: str) -> tuple[pl.DataFrame, pl.Series, bool, list[str]]:
    """Gives the cells under canonical names; the targets as lists, whether any was one; how confidences are written."""
    targets, predictions = cells.labels("target"), cells.text("prediction")
    aside = (*rules.out_of_scope, *rules.withheld)
    labels, predictions = comparable(targets, predictions, aside), comparable(predictions, targets, aside)
    lists, several = as_lists(labels)
    ids, systems = _complete(cells, "id"), _complete(cells, "system")
    height = cells.table.frame.height
    alike = pl.Series("weight", [1.0]).new_from_index(0, height)
    confidences, spelled = _spelled(cells, "confidence")
    columns = [
        cells.table.frame[ROW],
        ids,
        pl.Series("system", [system]).new_from_index(0, height) if systems.null_count() else systems,
        cells.text("dialogue"),
        cells.text("trial").alias(TRIAL),
        predictions,
        lists.alias("target") if several else labels,
        *(cells.flags(part) for part in FLAGS),
        _check_numbers(cells, confidences, judging.CONFIDENCE_RULE),
        _check_numbers(cells, _spelled(cells, "weight")[0], judging.WEIGHT_RULE) if "weight" in cells else alike,
        *((cells.text(STRATUM).fill_null(judging.NONE),) if STRATUM in cells else ()),
        *((cells.numbers(DEPLOYED),) if DEPLOYED in cells else ()),
    ]
    return pl.DataFrame(columns), lists, several, [f"{cells.table.name}: {spelled}"] if spelled else []


def _column_faults(cells: Cells, unclear: Collection[str] = ()) -> list[DataError]:
    """The faults that each column shows by itself; which columns play the unclear parts is known to be a fault."""
    known = {**dict.fromkeys(unclear, ""), **cells.columns}
    checks: list[Callable[[], object]] = [
        lambda: judging.refuse_unjudgeable(known, cells.table.columns, cells.table.name, cells.table.paths),
        *(partial(_complete, cells, part) for part in ("id", "system")),
        *(partial(cells.flags, part) for part in FLAGS),
        *(partial(_numbers, cells, rule) for rule in judging.CELL_RULES if rule.part in cells),
    ]
    return faults_of(checks)


def _complete(cells: Cells, part: str) -> pl.Series:
    values = cells.text(part)
    position = first(values.is_null()) if 0 < values.null_count() < len(values) else None
    if position is not None:
        raise cells.fault(part, position, judging.EVERY_OR_NONE, got="null")
    return values


def _numbers(cells: Cells, rule: judging.CellRule) -> pl.Series:
    return _check_numbers(cells, _spelled(cells, rule.part)[0], rule)


def _spelled(cells: Cells, part: str) -> tuple[pl.Series, str]:
    return cells.spelled_numbers(part, current_choices().decimal)


def _check_numbers(cells: Cells, numbers: pl.Series, rule: judging.CellRule) -> pl.Series:
    numbers = numbers.alias(rule.column)
    position = _first_where(nw.from_native(numbers.to_frame()), rule.bad)
    if position is not None:
        got = "null" if numbers[position] is None else numbers[position]
        raise cells.fault(rule.part, position, rule.text, got=got if rule.shows_value else None, fix=rule.fix)
    return numbers


def _first_where(frame: nw.DataFrame[Any], bad: nw.Expr) -> int | None:
    return first(frame.select(bad=bad).to_polars()["bad"].fill_null(value=False))


def refuse_duplicates(frame: pl.DataFrame, tables: Sequence[Table], key: Sequence[str] = ()) -> bool:
    """Refuses an id that occurs twice in one trial of a system; gives whether any occurs in several trials.

    `key` are the columns whose values together are the id, where it is not a column of its own.
    """
    systems = systems_of(frame)
    places, trials = frame.select("system", "id", TRIAL, SOURCE, ROW), False  # texts would take most of the room
    for system in systems:
        rows = _rows_of(places, system)
        if rows["id"].null_count() == 0 and are_repeated(rows["id"]):
            trials = True
            repeated = rows.filter(pl.struct("id", TRIAL).is_duplicated())
            if repeated.is_empty():
                continue
            name, trial = repeated.select("id", TRIAL).row(0)
            pair = repeated.filter(pl.col("id") == name, pl.col(TRIAL).eq_missing(trial)).head(2)
            one, two = [tables[source].place(row) for source, row in pair.select(SOURCE, ROW).iter_rows()]
            count = _REPEATED.with_count(repeated["id"].n_unique())
            within = "" if trial is None else f' in trial "{trial}"'
            rule = f'the id "{name}" occurs twice in system "{system}"{within}, first at {one} ({count} in all)'
            more = f"{','.join(key)} does not tell these rows apart: name further columns in `pair_by`; "
            raise DataError(rule, where=f"{two}:", fix=f"{more if key else ''}{_WAYS_OUT}")
    return trials


def _grouped_by_id(frame: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows with trials of one input in one group, as turns of a dialogue are, and what to note of them.

    Dialogues stay the groups where they hold all trials of their inputs; where they are parts of a trial, inputs are.
    """
    pairs = frame.lazy().filter(pl.col("dialogue").is_not_null()).select("id", "dialogue").unique().collect()
    if pairs["id"].is_duplicated().any() and pairs["dialogue"].is_duplicated().any():
        rule = "inputs that were tried several times lie in dialogues of other inputs, differently named in each trial"
        raise DataError(rule, fix="give a dialogue the same name in every trial, or leave the column out")
    if pairs["id"].is_duplicated().any() or pairs.is_empty():
        frame = frame.with_columns(dialogue="id")
    counts = sorted(set(frame.group_by("system", "id").len()["len"]))
    most = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    tried = f"{frame['id'].n_unique():,} inputs were tried {most} times and count once for each try"
    note = f"{tried}: rows are paired and grouped by id"
    return frame, note
