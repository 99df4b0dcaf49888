"""Batches of a growing log become judged rows, by the same rules as a whole file; what must agree is remembered."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from demur.data.cells import Cells
from demur.data.checks import CORRECT, SOURCE, near_matches, refuse_duplicates
from demur.data.columns import resolve
from demur.data.files import read_source
from demur.data.growing import Batch
from demur.data.judging import LOWEST, RANK_LOWEST, Judged, judge
from demur.data.responses import Reading
from demur.data.selection import JUDGED, filtered, parts_wanted
from demur.data.sources import Source
from demur.data.tables import ROW, Request, Table
from demur.data.wording import ROWS, Wording, counted
from demur.errors import DataError

MOST_LABELS = 1000
"""Labels remembered of a system that has not been right yet."""

IDS_APART = "an id that comes twice is noticed only within one batch of a log that is followed"


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """Judged rows, and whether the log has columns that make rows dependent or count differently."""

    frame: pl.DataFrame
    grouped: bool


class BatchReader:
    """Judges one batch after the other, and refuses what would be refused if all were read as one file."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._request = reading.request()
        self._known: dict[str, None] = {}
        self._columns: dict[str, str] = {}
        self._named: bool | None = None
        self._ranked: dict[str, bool] = {}
        self._foreign: dict[str, tuple[set[str], set[str]] | None] = {}
        self._recognised: Counter[Wording] = Counter()
        self._cautions: Counter[Wording] = Counter()
        self._guessed: dict[str, None] = {}
        self._near: list[str] = []
        self._read = self._kept = self._batches = 0

    def judged(self, batch: Batch) -> JudgedBatch | None:
        """The judged rows of a batch; None where no row is kept."""
        self._batches += 1
        with tempfile.TemporaryDirectory(prefix="demur-") as folder:
            table = self._table(batch, Path(folder))
            cells = self._cells(table, batch)
            if cells.table.frame.is_empty():
                self._read += table.frame.height
                return None
            rows = judge(cells, self._reading.rules(), batch.stem)
            frame = rows.frame.select(ROW, pl.lit(0).alias(SOURCE), *JUDGED, pl.col("correct").alias(CORRECT))
            refuse_duplicates(frame, [table])
            self._agreed(cells, rows, batch)
        self._read += table.frame.height
        self._kept += frame.height
        self._told(frame, rows)
        grouped = bool({"dialogue", "weight"} & cells.columns.keys())
        return JudgedBatch((_with_ids(frame, batch) if grouped else frame).drop(ROW, SOURCE, CORRECT), grouped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised so far."""
        kept = f"{self._kept:,} of {ROWS.told(self._read)} kept where {self._asked()}" if self._reading.where else ""
        ids = [IDS_APART] if "id" in self._columns and self._batches > 1 else []
        unranked = [system for system, ranked in self._ranked.items() if not ranked]
        lacking = f"no confidences of {', '.join(unranked)}: only what a system withholds by itself counts"
        told = [*self._guessed, kept, *counted([self._recognised]), lacking if unranked else "", *ids]
        return tuple(filter(None, told))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks doubtful so far."""
        return (*counted([self._cautions]), *self._near, *self._foreign_systems())

    def refuse_nothing(self, name: str) -> None:
        """Refuses a log of which no row was kept."""
        if not self._kept:
            left = f"holds no row where {self._asked()}" if self._read else "holds no rows"
            raise DataError(left, where=name)

    def _asked(self) -> str:
        return " and ".join(f"{column} is {value}" for column, value in self._reading.where)

    def _table(self, batch: Batch, folder: Path) -> Table:
        """The rows of a batch with the columns seen in earlier ones; places are those in the whole log."""
        path = folder / batch.file_name
        path.write_bytes(batch.header + batch.text)
        if batch.kind == "json" and batch.text.lstrip().startswith(b"["):
            raise DataError("each line must be a JSON object", where=f"{batch.log}:{batch.before + 1}:", got="[...")
        in_whole = _renumbered(batch)
        try:
            table = read_source(Source(path, batch.log, batch.kind, "", batch.stem), self._wanted(batch))
        except DataError as fault:
            raise fault.rewritten(in_whole) from None
        self._known = dict.fromkeys((*(self._known if batch.kind == "json" else ()), *table.columns))
        places = table.place
        return replace(table, columns=tuple(self._known), place=lambda row: in_whole(places(row)))

    def _wanted(self, batch: Batch) -> Request:
        if batch.kind != "json":
            return self._request
        request, known = self._request, dict(self._known)

        def candidates(names: Collection[str]) -> Collection[str]:
            return request.candidates(dict.fromkeys((*known, *names)))

        return replace(request, candidates=candidates)

    def _cells(self, table: Table, batch: Batch) -> Cells:
        wanted = parts_wanted(self._reading.keep, self._reading.where)
        resolution = resolve(table.columns, self._reading.columns, parts=wanted, where=batch.lines)
        for part, column in resolution.columns.items():
            before = self._columns.setdefault(part, column)
            if before != column:
                rule = f'{part} was read from the column "{before}" so far, and now there is "{column}" too'
                fix = f"choose one from the start, for example --map {part}={before}"
                raise DataError(rule, where=batch.lines, fix=fix)
        self._guessed |= dict.fromkeys(resolution.notes)
        return filtered(Cells(table, resolution.columns), self._reading.where)

    def _agreed(self, cells: Cells, rows: Judged, batch: Batch) -> None:
        """Refuses systems or confidences that are there in some batches only."""
        named = "system" in cells and cells.text("system").null_count() == 0
        if self._named not in (None, named):
            raise DataError("system must be there in every row or in none", where=batch.lines)
        self._named = named
        answers = rows.frame.lazy().filter("answered").group_by("system", maintain_order=True)
        ranked = answers.agg((pl.col("confidence") != LOWEST).any()).collect()
        for system, has_some in ranked.iter_rows():
            if self._ranked.setdefault(system, has_some) != has_some and not self._reading.rules().missing_is_lowest:
                rule = f'the confidence is there for some answers of system "{system}" and missing for others'
                raise DataError(rule, where=batch.lines, fix=RANK_LOWEST)

    def _told(self, frame: pl.DataFrame, rows: Judged) -> None:
        self._recognised += rows.recognised
        self._cautions += rows.cautions
        if not self._near:
            self._near = [f"in row {self._read:,} or shortly before: {told}" for told in near_matches(frame)]
        compared = frame.filter("answered", ~pl.col("out_of_scope"), pl.col(CORRECT).is_null())
        for (system,), part in compared.group_by("system"):
            self._remember(str(system), part)

    def _remember(self, system: str, rows: pl.DataFrame) -> None:
        """Keeps the labels of a system until one of its predictions is a target."""
        held = self._foreign.setdefault(system, (set(), set()))
        if held is None:
            return
        targets, predictions = held
        if rows["right"].any() or len(targets) + len(predictions) > MOST_LABELS:
            self._foreign[system] = None
            return
        targets.update(rows["target"].explode().drop_nulls().unique())
        predictions.update(rows["prediction"].unique())

    def _foreign_systems(self) -> list[str]:
        return [
            f'no prediction of system "{system}" occurs among the targets so far: are they coded differently?'
            for system, held in self._foreign.items()
            if held is not None and not held[0] & held[1]
        ]


def _with_ids(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """The rows with their numbers in the log for ids where there are none, so that no two batches share a row."""
    number = pl.concat_str(pl.lit("row "), (pl.col(ROW) + batch.before).cast(pl.String))
    return frame.with_columns(id=pl.coalesce("id", number))


def _renumbered(batch: Batch) -> Callable[[str], str]:
    """A function from places in the lines of a batch to places in the whole log."""
    shift = batch.before - batch.header.count(b"\n")
    pattern = re.compile(rf"(?<={re.escape(batch.log)}:)\d+")
    return lambda place: pattern.sub(lambda found: str(int(found[0]) + shift), place, count=1)
