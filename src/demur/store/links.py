"""Lakes that runs are linked to: their parts as they were, how they have changed since, and their rows by an engine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import narwhals as nw
import polars as pl

from demur import __version__
from demur.core.engines.engine import as_engine_fault, collect_frame
from demur.core.engines.scanning import lake_files, remote_fault
from demur.core.io.columns import JUDGED, MOST_SLICES, resolve
from demur.core.io.sources import is_remote, quiet_panics
from demur.core.io.tables import as_text
from demur.core.show.results import Step, path_text, silent
from demur.errors import DataError, UsageError
from demur.importers.kinds import kind_of
from demur.returns.counting import Counting, EngineLog, Lake, judged_in_engine, rows_in_engine, tallies
from demur.returns.engine_judging import SHOWN, LazyResponses
from demur.returns.lakes.lake_rows import MOST_FETCHED, fetch_rows, returned_at
from demur.returns.slices import MOST
from demur.returns.sweep_files import SweepFile, rules_of
from demur.returns.table import Reading
from demur.returns.tally import Tally
from demur.store.intake import BULKY, RunReading, readings_of
from demur.store.records import Run
from demur.store.rows import OUTCOMES, Order, Outcome, RowPage, Where

FOOTER = 8
"""Bytes at the end of a Parquet file: the length of what is said of it, and four letters."""

FIRST_ROWS = 20_000
"""Rows that are looked at for columns with few values."""

_PATH = "demur:path"
_FLAGS = ("right", "answered", "failed", "out_of_scope")


class LakePart(msgspec.Struct, frozen=True):
    """A part of a lake as it was: its name; its rows at a URL, its size, time and footer on this machine."""

    name: str
    rows: int | None = None
    size: int | None = None
    modified: int | None = None
    footer: str | None = None


class LakeParts(msgspec.Struct, frozen=True):
    """The parts of a lake in the order of their names."""

    parts: tuple[LakePart, ...]

    def encoded(self) -> bytes:
        """The parts as they are written into the folder of a run."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def parts_in(sources: Sequence[str]) -> LakeParts:
    """The parts that paths, globs, folders and URLs stand for: their footers are read, not their rows."""
    if any(map(is_remote, sources)):
        return LakeParts(tuple(_remote_parts(sources)))
    found = (_local_part(path) for path, _ in lake_files(sources))
    return LakeParts(tuple(sorted(found, key=lambda part: part.name)))


def _local_part(path: Path) -> LakePart:
    state = path.stat()
    with path.open("rb") as file:
        file.seek(max(state.st_size - FOOTER, 0))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(state.st_size - FOOTER - length, 0))
        footer = hashlib.sha256(file.read()).hexdigest()[:16]
    return LakePart(path_text(path.resolve()), None, state.st_size, state.st_mtime_ns, footer)


def _remote_parts(urls: Sequence[str]) -> Iterator[LakePart]:
    """The parts at URLs with their rows, as the footers say; the store is asked by Polars, whatever engine counts."""
    where = ", ".join(urls)
    try:
        with as_engine_fault(where), quiet_panics():
            rows = pl.scan_parquet(
                list(urls), include_file_paths=_PATH, hive_partitioning=False, extra_columns="ignore"
            )
            counts = rows.group_by(_PATH).len().sort(_PATH).collect(engine="streaming")
    except DataError as error:
        raise remote_fault(error, where) from None
    for name, count in counts.iter_rows():
        yield LakePart(name, count)


def change_since(run: Run, path: Path) -> str | None:
    """How the lake of a run differs from what was linked, in words with what to do; None where it does not."""
    try:
        now = {part.name: part for part in parts_in(run.lake).parts}
    except (DataError, OSError) as fault:
        return f'the lake of the run "{run.name}" cannot be looked at: {fault}'
    was = {part.name: part for part in msgspec.json.decode(path.read_bytes(), type=LakeParts).parts}
    kinds = {
        "added": [name for name in now if name not in was],
        "gone": [name for name in was if name not in now],
        "rewritten": [name for name in now if name in was and now[name] != was[name]],
    }
    told = [f"{_parts_text(names)} {what}" for what, names in kinds.items() if names]
    if not told:
        return None
    again = " ".join(f"'{source}'" for source in run.lake)
    return (
        f'the lake of the run "{run.name}" ({run.id}) has changed since it was linked: {", ".join(told)} (demur add '
        f"--link {again} --name '{run.name}' --replace links it again)"
    )


def _parts_text(names: Sequence[str]) -> str:
    first = names[0] if is_remote(names[0]) else Path(names[0]).name
    return first if len(names) == 1 else f"{len(names):,} parts ({first}, ...)"


def refuse_changed(run: Run, path: Path) -> None:
    """Refuses a linked run whose lake is no longer what it was."""
    if (text := change_since(run, path)) is not None:
        raise DataError(text)


def refuse_linked(run: Run) -> None:
    """Refuses a linked run where rows in memory are needed."""
    if run.lake:
        rule = f'the run "{run.name}" is linked: its rows are counted where they lie, and are not here'
        raise UsageError(f"{rule}; add its files for this")


@dataclass(frozen=True, slots=True)
class LinkDraft:
    """A linked run to be: what is known of it, its parts, and its tallies."""

    run: Run
    parts: LakeParts
    counted: SweepFile


def link_drafts(
    sources: Sequence[str], how: RunReading, counting: Counting, *, name: str | None, step: Step = silent
) -> list[LinkDraft]:
    """Counts a lake once, and gives a draft for each system."""
    if how.confidence:
        raise UsageError("`confidence` makes several runs of a log that is added; link once for each, with `columns`")
    reading = replace(how.responses(), keep=())
    counting = replace(counting, engine="polars") if counting.engine in ("auto", "memory") else counting
    sources = tuple(one if is_remote(one) else path_text(Path(one).absolute()) for one in map(str, sources))
    parts = parts_in(sources)
    with rows_in_engine(sources, replace(reading, keep=("*",)), counting) as rows:
        columns = _columns_of(rows, reading)
    with judged_in_engine(sources, reading, counting, pairing=True, step=step) as found:
        assert found is not None
        judged, log = found
        several = judged.system is None
        counted = tallies(judged, step=step)
    return [
        _draft(one, judged, log, (sources, how, counting, parts, columns), name=name, several=several, of=len(counted))
        for one in counted
    ]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a lake: those that rows are filtered by, those worth slicing by, and what is there."""

    names: tuple[str, ...]
    slices: tuple[str, ...]
    parts: Mapping[str, str]


def _columns_of(rows: Any, reading: Reading) -> _Columns:
    schema = rows.collect_schema()
    names = schema.names()
    kind = kind_of([*names, *reading.columns], where="the lake:")
    if kind != "responses":
        raise UsageError(f"only lakes of answers are linked; this one holds {kind}: `{kind}` with `engine` reads it")
    parts = resolve(names, reading.columns, keep_faults=True).columns
    further = [
        name for name in names if name not in (*parts.values(), *JUDGED, *BULKY) and not schema[name].is_nested()
    ]
    first = collect_frame(rows.select(*further).head(FIRST_ROWS)) if further else pl.DataFrame()
    few = [one.name for one in first if 0 < one.drop_nulls().n_unique() <= MOST and not one.dtype.is_float()]
    judged = [name for name in ("id", "dialogue", "target", "prediction", "confidence") if name in parts]
    return _Columns((*judged, *(name for name in BULKY if name in parts), *further), tuple(few), parts)


def _draft(
    tally: Tally,
    judged: LazyResponses,
    log: EngineLog,
    given: tuple[tuple[str, ...], RunReading, Counting, LakeParts, _Columns],
    *,
    name: str | None,
    several: bool,
    of: int,
) -> LinkDraft:
    sources, how, counting, parts, columns = given
    if several:
        how = replace(how, where=(*how.where, ("system", tally.system)))
    called = tally.system if name is None else name if of == 1 else f"{name}: {tally.system}"
    reading = how.to_dict()
    document = msgspec.json.encode([sources, parts, reading], order="sorted")
    digest = hashlib.sha256(b"demur lake\n" + document).hexdigest()
    run = Run(
        id=digest[:16],
        name=called,
        kind="responses",
        n=tally.n,
        added="",
        source=", ".join(one if is_remote(one) else Path(one).name for one in sources),
        tags=(),
        note="",
        columns=columns.names,
        about=_about(tally, judged, columns),
        notes=(*log.notes, *judged.notes),
        warnings=judged.warnings,
        sha256=digest,
        reading=reading,
        demur=__version__,
        lake=sources,
        engine=counting.engine,
    )
    counted = SweepFile((tally.named(called),), rules_of(how.responses()), log.sources, run.notes, run.warnings)
    return LinkDraft(run, parts, counted)


def _about(tally: Tally, judged: LazyResponses, columns: _Columns) -> dict[str, Any]:
    """What is known of a linked run, from what the engine counted; dialogues are about so many."""
    row = judged.survey.filter(pl.col("system") == tally.system).row(0, named=True)
    return {
        "answered": int(row["answered"]),
        "right": int(row["right"]),
        "failed": int(row["failed"]),
        "out_of_scope": int(row["out_of_scope"]),
        **readings_of(tally.sweep),
        "has_input": "input" in columns.parts,
        "has_nbest": False,
        "has_ids": "id" in judged.columns,
        "repeats_ids": judged.trials,
        "weighted": "weight" in judged.columns,
        "dialogues": round(tally.dialogues) if tally.clustered else 0,
        "slices": list(columns.slices),
    }


def _outcomes(threshold: float | None) -> dict[Outcome, nw.Expr]:
    """What became of rows at a threshold, as `Outcome` says; without one every answer is returned."""
    answered, right, failed = (nw.col(name) for name in ("answered", "right", "failed"))
    returned = answered if threshold is None else returned_at(threshold).fill_null(value=False)
    return {
        "wrong": returned & ~right,
        "right": returned & right,
        "missed": ~returned & right,
        "withheld": ~returned & ~failed,
        "scope": returned & nw.col("out_of_scope"),
        "failed": failed,
        "all": answered | ~answered,
    }


class LakeRows:
    """The rows of a linked run: chosen and put in order where they lie, a page at a time."""

    def __init__(self, lake: Lake, run: Run) -> None:
        self.lake, self.run = lake, run

    def counts(self, threshold: float | None = None, **chosen: Any) -> dict[str, int]:
        """How many rows each outcome has at a threshold, as `page` would give."""
        asked = {name: nw.when(one).then(1).count() for name, one in _outcomes(threshold).items()}
        return self._ask(lambda rows: collect_frame(rows.select(**asked)), **chosen).row(0, named=True)

    def page(
        self,
        outcome: Outcome,
        *,
        threshold: float | None = None,
        offset: int = 0,
        limit: int = 50,
        order: Order = "surest",
        **chosen: Any,
    ) -> RowPage:
        """Rows of an outcome in an order, of those that `low`, `high`, `where` and `search` choose."""
        if outcome not in OUTCOMES:
            raise DataError(f"an outcome is one of {', '.join(OUTCOMES)}", got=outcome)
        if (most := max(0, offset) + max(0, limit)) > MOST_FETCHED:
            raise UsageError(f"at most {MOST_FETCHED:,} rows of a lake are shown; choose fewer by a filter")
        wanted = _outcomes(threshold)[outcome]

        def fetched(rows: Any) -> pl.DataFrame:
            rows, by = rows.filter(wanted), ("confidence", order != "least")
            if order == "nearest" and threshold is not None:
                rows, by = rows.with_columns(distance=(nw.col("confidence") - threshold).abs()), ("distance", False)
            return fetch_rows(rows, [by, *((SHOWN + name, False) for name in ("id", "prediction", "input"))], most)

        total = self.counts(threshold, **chosen)[outcome]
        frame = self._ask(fetched, **chosen)[max(0, offset) :]
        return RowPage(total, list(self._as_rows(frame)))

    def slices(self) -> dict[str, list[tuple[str, int]]]:
        """The values of each column that rows can be sliced by, the most frequent first."""
        found: dict[str, list[tuple[str, int]]] = {}
        for column in self.run.about.get("slices", ()):
            with rows_in_engine((self.lake,), Reading(keep=(column,)), Counting()) as rows:
                groups = rows.group_by(nw.col(column).alias("value")).agg(rows=nw.len()).head(MOST_SLICES + 1)
                counts = collect_frame(groups).drop_nulls("value")
            values = counts.with_columns(as_text(counts["value"])).sort("rows", "value", descending=[True, False])
            found[column] = values.rows() if values.height <= MOST_SLICES else []
        return {column: values for column, values in found.items() if values}

    def _ask(
        self,
        question: Callable[[Any], pl.DataFrame],
        *,
        low: float | None = None,
        high: float | None = None,
        where: Where = (),
        search: str = "",
    ) -> pl.DataFrame:
        """What the engine answers about the rows that are chosen."""
        aside = ("id", "dialogue", "target", "prediction", "confidence", *BULKY)
        shown = [name for name in self.run.columns if name not in aside]
        reading = Reading(where=tuple((column, value) for column, value in where), keep=tuple(shown))
        try:
            with judged_in_engine((self.lake,), reading, Counting(), dialogues=True, shown=shown, step=silent) as found:
                assert found is not None
                rows = found[0].frame
                confidence = nw.col("confidence")
                rows = rows if low is None else rows.filter(confidence >= low)
                rows = rows if high is None else rows.filter(confidence < high)
                if search.strip():
                    names = rows.collect_schema().names()
                    column = next(SHOWN + name for name in ("input", "id") if SHOWN + name in names)
                    rows = rows.filter(nw.col(column).str.to_lowercase().str.contains(search.lower(), literal=True))
                return question(rows)
        except DataError as fault:
            if not (where and "no row is left" in fault.rule):
                raise
            return _nothing(question)

    def _as_rows(self, frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
        """Rows as the pages show them; further columns stand under `slices`, as text."""
        own = ("id", "dialogue", "input", "target", "prediction", "confidence", *_FLAGS, "nbest")
        further = [name for name in self.run.columns if name in frame.columns and name not in own]
        frame = frame.with_columns(as_text(frame[name]) for name in further)
        for row in frame.iter_rows(named=True):
            about = {name: row.get(name) for name in own}
            yield {"row": None, **about, "slices": {name: row[name] for name in further}}


def _nothing(question: Callable[[Any], pl.DataFrame]) -> pl.DataFrame:
    """What is answered about no rows."""
    schema = {**dict.fromkeys(_FLAGS, pl.Boolean), "confidence": pl.Float64, SHOWN + "id": pl.String}
    return question(nw.from_native(pl.LazyFrame(schema=schema)))
