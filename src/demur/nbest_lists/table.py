"""The table of N-best lists: for each utterance its reference and hypotheses with confidences; systems paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.acts import ItemSets, numbered_sets
from demur.core.arrays import Array
from demur.core.io.columns import NBEST_ALIASES, check_mapping, nearest
from demur.core.io.sources import Source, system_names
from demur.core.io.tables import ROW
from demur.core.show.numbers import Wording, table_line
from demur.errors import DataError, UsageError
from demur.importers import CorpusImporter, importer_of
from demur.importers.reading import opened
from demur.nbest_lists.asr.scorers import Scoring
from demur.nbest_lists.reading import (
    SOURCE,
    Builder,
    Hypothesise,
    Items,
    ListRequest,
    RowSource,
    chained,
    rows_of_data,
    rows_of_file,
    sums_of,
)
from demur.returns.options import OUT_OF_SCOPE
from demur.returns.table import named_systems

_SCALED = Wording("list summed to over 1 and was normalised", "lists summed to over 1 and were normalised")
_MERGED = Wording("hypothesis was merged with an equal one", "hypotheses were merged with equal ones")
_UNMEANT = Wording(
    "utterance has no label, or one out of scope: nothing was meant",
    "utterances have no label, or one out of scope: nothing was meant",
)
_REPEATED = Wording("such id", "such ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class NBestReading:
    """How to read a table of N-best lists.

    `columns` maps canonical columns to those of the file. `items` says how acts become items: `thomson` takes the act
    and each of its slots apart, `dstc` keeps the act with each slot; None takes what suits the source. `normalise`
    scales lists that sum to over 1. `where` keeps the rows whose column has the value, `keep` names columns to slice
    by. `ontology` is that of a challenge. `hypothesise` makes the lists from what a recogniser heard. Where hypotheses
    are labels, those `out_of_scope` stand for no item, as reference and as hypothesis.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    items: Items | None = None
    normalise: bool = False
    where: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()
    ontology: Path | None = None
    hypothesise: Hypothesise | None = None
    out_of_scope: tuple[str, ...] = OUT_OF_SCOPE

    def builder(self, usual: Items) -> Builder:
        """What takes the rows of a source in which acts usually become items in this way."""
        items = self.items or usual
        return Builder(items, self.normalise, self.where, self.hypothesise, self.out_of_scope)

    def wanted(self) -> ListRequest:
        """What is asked of a source."""
        check_mapping(self.columns, NBEST_ALIASES)
        named = dict.fromkeys([*self.keep, *(column for column, _ in self.where)])
        extras = tuple(column for column in named if column not in ("id", "system", "dialogue", "weight"))
        needed = ("hypotheses",) if self.hypothesise is None else ("asr", "cnet")
        return ListRequest(self.columns, extras, needed)


AS_IT_COMES = NBestReading()


@dataclass(frozen=True, eq=False, repr=False)
class NBest:
    """Utterances with what was meant and what was understood.

    `frame` has one row per utterance: id, system, dialogue, weight and the columns kept. `reference` is the set of
    items meant. `act[start[u]:start[u + 1]]` are the sets hypothesised for utterance u, each once, in the order they
    were given, and `confidence` is how sure the system was of each.
    """

    frame: pl.DataFrame
    sets: ItemSets
    reference: NDArray[np.int32]
    start: NDArray[np.int64]
    act: NDArray[np.int32]
    confidence: Array
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return table_line("NBest", len(self), "utterances", self.systems)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in order of first appearance."""
        return tuple(self.frame["system"].unique(maintain_order=True))

    @cached_property
    def given_out(self) -> Array:
        """How much of each utterance's mass the list gives out."""
        return sums_of(self.confidence, np.diff(self.start))

    def taken(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> NBest:
        """Only these utterances, in the order given."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        count = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(count)])
        place = np.repeat(self.start[chosen], count) + np.arange(start[-1]) - np.repeat(start[:-1], count)
        return replace(
            self,
            frame=self.frame[chosen],
            reference=self.reference[chosen],
            start=start,
            act=self.act[place],
            confidence=self.confidence[place],
        )

    def of(self, system: str) -> NBest:
        """The utterances of one system."""
        if system not in self.systems:
            raise DataError(f'there is no system "{system}"', fix=nearest(system, self.systems))
        return self if len(self.systems) == 1 else self.taken((self.frame["system"] == system).to_numpy())

    def first(self, most: int) -> NBest:
        """With the surest hypotheses of each list only, at most so many; the mass of the others goes to none."""
        count = np.diff(self.start)
        owner = np.repeat(np.arange(len(self)), count)
        order = np.lexsort((-self.confidence, owner))
        rank = np.arange(order.size) - np.repeat(self.start[:-1], count)
        kept = np.sort(order[rank < most])
        start = np.concatenate([[0], np.cumsum(np.minimum(count, most))])
        return replace(self, start=start, act=self.act[kept], confidence=self.confidence[kept])

    def with_confidences(self, confidence: Array) -> NBest:
        """The same lists with other confidences."""
        return replace(self, confidence=confidence)


@dataclass(frozen=True, eq=False)
class Recording:
    """Rows of files, read once, of which lists can be made in several ways."""

    sources: tuple[tuple[RowSource, str], ...]
    notes: tuple[str, ...]
    usual: Items

    def lists(self, reading: NBestReading) -> NBest:
        """The lists, made as the reading says."""
        builder = reading.builder(self.usual)
        for rows, name in self.sources:
            builder.add(rows, name)
        return _assembled(builder, [rows for rows, _ in self.sources], list(self.notes), reading)


def recorded(*sources: str | Path, reading: NBestReading) -> Recording:
    """Reads the rows of files and keeps them."""
    with ExitStack() as stack:
        named, notes, usual = _named_sources(sources, reading, stack)
        kept = [(replace(rows, batches=list(rows.batches)), name) for rows, name in named]
    return Recording(tuple(kept), tuple(notes), usual)


def read_nbest(*sources: str | Path | Source, reading: NBestReading = AS_IT_COMES) -> NBest:
    """Reads the N-best lists in files: paths, globs, `-` for standard input, or folders in the layout of DSTC2 and 3.

    A table without a column `system` stands for one system, named after its file.
    """
    with ExitStack() as stack:
        named, notes, usual = _named_sources(sources, reading, stack)
        return Recording(tuple(named), tuple(notes), usual).lists(reading)


def read_lists(data: Sequence[Any], reading: NBestReading, scoring: Scoring | None = None) -> NBest:
    """The lists of files, frames, rows, tables read before, or a mixture; a dict names its systems.

    Each scorer makes lists of its own, as a system.
    """
    scoring = scoring or Scoring()
    if any(isinstance(one, NBest) for one in data):
        _refuse_late_options(reading, scoring)
    if not scoring.names:
        return _lists_in(data, reading)
    tables = []
    for name, hypothesise in scoring.hypothesisers():
        table = _lists_in(data, replace(reading, hypothesise=hypothesise))
        own = [table.of(system) for system in table.systems]
        if len(scoring.names) > 1:
            own = [rename_system(one, f"{one.systems[0]} {name}" if len(own) > 1 else name) for one in own]
        tables += own
    whole = join_tables(tables)
    return replace(whole, notes=(*whole.notes, *scoring.notes))


def _refuse_late_options(reading: NBestReading, scoring: Scoring) -> None:
    """Refuse options, other than columns to slice by, for a table that was read before."""
    given = [
        one.name
        for options, usual in ((scoring, Scoring()), (replace(reading, keep=()), AS_IT_COMES))
        for one in fields(options)
        if getattr(options, one.name) != getattr(usual, one.name)
    ]
    if given:
        raise UsageError(f"a table that is read already takes no {', '.join(given)}: give it to read_nbest")


def _lists_in(data: Sequence[Any], reading: NBestReading) -> NBest:
    if not data:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    if all(isinstance(one, str | Path) for one in data):
        return read_nbest(*data, reading=reading)
    if len(data) == 1 and named_systems(data[0]):
        return join_tables([rename_system(_lists_in((one,), reading), name) for name, one in data[0].items()])
    unnamed = sum(not isinstance(one, str | Path | NBest) for one in data)
    tables = []
    for place, one in enumerate(data, start=1):
        if isinstance(one, NBest):
            tables.append(one)
        elif isinstance(one, str | Path):
            tables.append(read_nbest(one, reading=reading))
        else:
            tables.append(nbest(one, system=f"system {place}" if unnamed > 1 else None, reading=reading))
    return join_tables(tables)


def _named_sources(
    sources: Sequence[str | Path | Source], reading: NBestReading, stack: ExitStack
) -> tuple[list[tuple[RowSource, str]], list[str], Items]:
    """What is to be read, each with the system it stands for, the notes, and how acts become items there."""
    imported: list[tuple[Path, CorpusImporter]] = []
    ours: list[str | Path | Source] = []
    for source in sources:
        importer = None if isinstance(source, Source) else importer_of(source)
        if importer is None or isinstance(source, Source):
            ours.append(source)
        else:
            imported.append((Path(source), importer))
    if reading.ontology is not None and not imported:
        raise UsageError("`ontology` goes with dialogues of DSTC2 or DSTC3; there are none here")
    named: list[tuple[RowSource, str]] = []
    notes: list[str] = []
    for path, importer in imported:
        found = importer.read(path, ontology=reading.ontology)
        rows = rows_of_data(list(found), reading.wanted())
        rows = replace(rows, name=str(path), place=partial(lambda name, _row: name, str(path)))
        named.append((rows, path.resolve().name.split(".")[0]))
        notes += found.notes
    if ours or not imported:
        files = stack.enter_context(opened(*ours, columns=reading.columns))
        names, of_names = system_names(files)
        notes += [*(note for file in files for note in file.notes), *of_names]
        named += [(rows_of_file(file, reading.wanted()), name) for file, name in zip(files, names, strict=True)]
    return named, notes, "dstc" if imported else "thomson"


def nbest(data: object, *, system: str | None = None, reading: NBestReading = AS_IT_COMES) -> NBest:
    """The N-best lists in rows, columns or a frame.

    >>> hypotheses = [{"act": "inform(food=thai)", "confidence": 0.7}, {"act": "bye()", "confidence": 0.2}]
    >>> table = nbest([{"id": 1, "reference": "inform(food=thai)", "hypotheses": hypotheses}])
    >>> table.given_out.round(3).tolist(), [table.sets.items_of(act) for act in table.act]
    ([0.9], [('food=thai', 'inform'), ('bye',)])
    """
    rows = rows_of_data(data, reading.wanted())
    return Recording(((rows, system or "system"),), (), "thomson").lists(reading)


def join_tables(tables: Sequence[NBest]) -> NBest:
    """Several tables as one, their sets numbered alike."""
    if len(tables) == 1:
        return tables[0]
    every = [frozenset(one.sets.items_of(code)) for one in tables for code in range(len(one.sets))]
    sets, code = numbered_sets(every)
    first = np.cumsum([0, *(len(one.sets) for one in tables)])
    counts = np.concatenate([np.diff(one.start) for one in tables])
    return NBest(
        pl.concat([one.frame for one in tables], how="diagonal_relaxed"),
        sets,
        np.concatenate([code[first[place] + one.reference] for place, one in enumerate(tables)]),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([code[first[place] + one.act] for place, one in enumerate(tables)]),
        np.concatenate([one.confidence for one in tables]),
        tuple(dict.fromkeys(note for one in tables for note in one.notes)),
        tuple(dict.fromkeys(warning for one in tables for warning in one.warnings)),
    )


def rename_system(table: NBest, system: str) -> NBest:
    """The table of one system under another name."""
    return replace(table, frame=table.frame.with_columns(pl.lit(system).alias("system")))


def built(builder: Builder) -> NBest:
    """The lists that a builder took, in the order it took them."""
    whole = chained(iter(builder.parts))
    sets, code = numbered_sets(builder.interned.sets)
    start = np.concatenate([[0], np.cumsum(whole.count)])
    return NBest(whole.frame, sets, code[whole.reference], start, code[whole.act], whole.confidence)


def changes_noted(normalised: int, merged: int, unmeant: int) -> list[str]:
    """What is noted of lists that were changed while they were read."""
    counted = ((_SCALED, normalised), (_MERGED, merged), (_UNMEANT, unmeant))
    return [wording.with_count(count) for wording, count in counted if count]


def _assembled(builder: Builder, sources: list[RowSource], notes: list[str], reading: NBestReading) -> NBest:
    if not builder.parts:
        asked = " and ".join(f"{column} is {value}" for column, value in reading.where)
        raise DataError(f"no row is left where {asked}" if asked else "holds no rows", where=f"{sources[0].name}:")
    table = built(builder)
    _refuse_repeated_ids(table.frame, sources)
    ordered = table.taken(_order(table))
    frame = ordered.frame.drop(ROW, SOURCE)
    notes += [note for source in sources for note in source.layout.notes]
    notes += changes_noted(builder.normalised, builder.merged, builder.unmeant)
    return replace(ordered, frame=frame, notes=tuple(dict.fromkeys(notes)))


def _order(table: NBest) -> NDArray[np.int64]:
    """An order that does not depend on that of the rows: by system as first met, then by id, else by content."""
    frame = table.frame.drop(ROW, SOURCE)
    own = frame.columns
    frame = frame.with_row_index("demur:row").with_columns(
        pl.col("demur:row").min().over("system").alias("demur:first")
    )
    keys = ["demur:first", "id"]
    if frame["id"].null_count():
        contents = [
            table.reference[u].tobytes() + table.act[a:b].tobytes() + table.confidence[a:b].tobytes()
            for u, (a, b) in enumerate(pairwise(table.start.tolist()))
        ]
        frame = frame.with_columns(pl.Series("demur:content", contents))
        keys += ["dialogue", "demur:content", *own]
    return frame.select(pl.arg_sort_by(keys)).to_series().to_numpy().astype(np.int64)


def _refuse_repeated_ids(frame: pl.DataFrame, sources: list[RowSource]) -> None:
    named = frame.filter(pl.col("id").is_not_null()).select("system", "id", ROW, SOURCE)
    repeated = named.filter(pl.struct("system", "id").is_duplicated())
    if repeated.is_empty():
        return
    system, name = repeated.row(0)[:2]
    two = repeated.filter(pl.col("system") == system, pl.col("id") == name).head(2)
    places = [
        next(source for source in sources if source.name == origin).place(row)
        for row, origin in two.select(ROW, SOURCE).iter_rows()
    ]
    count = _REPEATED.with_count(repeated.select(pl.struct("system", "id").n_unique()).item())
    raise DataError(
        f'the id "{name}" occurs twice in system "{system}", first at {places[0]} ({count} in all)',
        where=f"{places[1]}:",
        fix="give each utterance an id of its own; name systems in a column system",
    )
