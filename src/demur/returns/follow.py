"""A log that grows: batches judged by the rules of a whole file, and their running tally in bounded memory."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.io.columns import filtered, parts_wanted, resolve
from demur.core.io.files import read_source
from demur.core.io.growing import LogBatch
from demur.core.io.sources import Source
from demur.core.io.tables import ROW, SOURCE, Cells, Request, Table
from demur.core.show.numbers import ROWS, Wording, sentences_of_counts
from demur.core.stats.measure import Measure
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.importers.choices import current_choices
from demur.returns import judging
from demur.returns.confidences import DIGITS, PERCENT, scale_counts
from demur.returns.counting import tallies_of_frame
from demur.returns.evaluate import Evaluations, evaluate
from demur.returns.table import (
    CORRECT,
    TRIAL,
    Judged,
    Reading,
    judge,
    refuse_duplicates,
    systems_of,
)
from demur.returns.tally import UNITS, Tally, grid_for

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
        self._percent: dict[str, bool] = {}
        self._doubts: dict[str, None] = {}
        self._read = self._kept = self._batches = 0

    def judged(self, batch: LogBatch) -> JudgedBatch | None:
        """The judged rows of a batch; None where no row is kept."""
        self._batches += 1
        with tempfile.TemporaryDirectory(prefix="demur-") as folder:
            table = self._table(batch, Path(folder))
            cells = self._cells(table, batch)
            if cells.table.frame.is_empty():
                self._read += table.frame.height
                return None
            rows = judge(cells, self._reading.rules(), batch.stem)
            frame = rows.frame
            if refuse_duplicates(frame, [table]):
                rule = "an input was tried several times, which a log that is followed cannot group by id"
                raise DataError(rule, where=batch.lines, fix="read the log as a whole with demur score")
            self._refuse_disagreement(cells, rows, batch)
            frame = self._rescaled(frame)
        self._read += table.frame.height
        self._kept += frame.height
        self._remember(frame, rows)
        grouped = bool({"dialogue", "weight"} & cells.columns.keys())
        if grouped:  # a row without an id goes by its number in the log, so that no two batches share a row
            number = pl.concat_str(pl.lit("row "), (pl.col(ROW) + batch.before).cast(pl.String))
            frame = frame.with_columns(id=pl.coalesce("id", number))
        return JudgedBatch(frame.drop(ROW, SOURCE, CORRECT, TRIAL), grouped)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised so far."""
        where = self._reading.condition
        kept = f"{self._kept:,} of {ROWS.with_count(self._read)} kept where {where}" if where else ""
        ids = [IDS_APART] if "id" in self._columns and self._batches > 1 else []
        unranked = [system for system, ranked in self._ranked.items() if not ranked]
        lacking = judging.unranked_notes(unranked, len(self._ranked))
        return tuple(
            filter(
                None, [*self._guessed, kept, *sentences_of_counts([self._recognised]), *lacking, *ids, *self._scales]
            )
        )

    @property
    def _scales(self) -> list[str]:
        percent = [system for system, is_percent in self._percent.items() if is_percent]
        of_which = "" if len(percent) == len(self._percent) else f" of {', '.join(percent)}"
        return [f"confidences{of_which} read as percent: thresholds are given from 0 to 1"] if percent else []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks doubtful so far."""
        foreign = [system for system, labels in self._foreign.items() if labels and not labels[0] & labels[1]]
        asked = "occurs among the targets so far: are they coded differently?"
        unknown = [f'no prediction of system "{system}" {asked}' for system in foreign]
        return (*sentences_of_counts([self._cautions]), *self._near, *unknown, *self._doubts)

    def refuse_nothing(self, name: str) -> None:
        """Refuses a log of which no row was kept."""
        if not self._kept:
            left = f"holds no row where {self._reading.condition}" if self._read else "holds no rows"
            raise DataError(left, where=name)

    def _rescaled(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows with percentages as rates: what the user says, or what the first rows of each system show."""
        declared = current_choices().confidence_scale
        counts = scale_counts(nw.from_native(frame.lazy())) if declared == "guess" else {}
        for system in systems_of(frame):
            shown = system in counts and counts[system].scale == "percent"
            if self._percent.setdefault(system, declared == "percent" or shown) is False and shown:
                doubt = f'confidences of system "{system}" look like percentages, which its first rows did not'
                self._doubts[f"{doubt}; they are taken as they stand (--confidence-scale percent: as rates)"] = None
        percent = [system for system, is_percent in self._percent.items() if is_percent]
        if not percent:
            return frame
        rate = (pl.col("confidence") / PERCENT).round(DIGITS)
        known = pl.col("system").is_in(percent) & (pl.col("confidence") > judging.LOWEST)
        return frame.with_columns(confidence=pl.when(known).then(rate).otherwise("confidence"))

    def _table(self, batch: LogBatch, folder: Path) -> Table:
        """The rows of a batch with the columns seen in earlier ones; places are those in the whole log."""
        path = folder / "rows"
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
        if batch.kind == "json":  # rows name only what they hold, and later ones may hold less
            absent = [name for name in self._request.candidates(self._known) if name not in table.frame.columns]
            nulls = (pl.lit(None, dtype=pl.String).alias(name) for name in absent)
            table = replace(table, frame=table.frame.with_columns(nulls))
        return replace(table, columns=tuple(self._known), place=lambda row: in_whole(places(row)))

    def _wanted(self, batch: LogBatch) -> Request:
        if batch.kind != "json":
            return self._request
        request, known = self._request, dict(self._known)
        return replace(request, candidates=lambda names: request.candidates(dict.fromkeys((*known, *names))))

    def _cells(self, table: Table, batch: LogBatch) -> Cells:
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

    def _refuse_disagreement(self, cells: Cells, rows: Judged, batch: LogBatch) -> None:
        """Refuses systems or confidences that are there in some batches only."""
        named = "system" in cells and cells.text("system").null_count() == 0
        if self._named not in (None, named):
            raise DataError(f"system {judging.EVERY_OR_NONE}", where=batch.lines)
        self._named = named
        answers = rows.frame.lazy().filter("answered").group_by("system", maintain_order=True)
        ranked = answers.agg((pl.col("confidence") != judging.LOWEST).any()).collect()
        for system, has_some in ranked.iter_rows():
            if self._ranked.setdefault(system, has_some) != has_some and not self._reading.rules().missing_is_lowest:
                rule = f'the confidence is there for some answers of system "{system}" and missing for others'
                raise DataError(rule, where=batch.lines, fix=judging.RANK_LOWEST)

    def _remember(self, frame: pl.DataFrame, rows: Judged) -> None:
        """Keeps what notes and warnings tell, and the labels of a system until one of its predictions is a target."""
        self._recognised += rows.recognised
        self._cautions += rows.cautions
        if not self._near:
            near = judging.near_matches(frame, CORRECT)
            self._near = [f"in row {self._read:,} or shortly before: {one}" for one in near]
        compared: pl.DataFrame = nw.from_native(frame).filter(judging.compared(CORRECT)).to_native()
        for (name,), part in compared.group_by("system"):
            system = str(name)
            labels = self._foreign.setdefault(system, (set(), set()))
            if labels is None:
                continue
            targets, predictions = labels
            if part["right"].any() or len(targets) + len(predictions) > MOST_LABELS:
                self._foreign[system] = None
                continue
            targets.update(part["target"].explode().drop_nulls().unique())
            predictions.update(part["prediction"].unique())


def _renumbered(batch: LogBatch) -> Callable[[str], str]:
    """A function from places in the lines of a batch to places in the whole log."""
    shift = batch.before - batch.header.count(b"\n")
    pattern = re.compile(rf"(?<={re.escape(batch.log)}:)\d+")
    return lambda place: pattern.sub(lambda found: str(int(found[0]) + shift), place, count=1)


MOST_CUTOFFS = 65_536
"""Distinct confidences kept of each system; where there are more, close ones are joined."""

MOST_UNITS = 2**19
"""Entries of a table of units: buckets by levels of confidence, as many as replicates tell apart.

Joining these moves intervals, not values.
"""

MOST_SYSTEMS = 200
"""Systems of one log; more are a column that names something else."""


class RunningTally:
    """The tallies of every system of a log, to which batches of judged rows are added.

    At the cutoffs that are kept the counts are exact, and what is a sum over rows is exact too; `Sweep.slack` bounds
    what lies between cutoffs that were joined.
    """

    def __init__(self, *, cutoffs: int = MOST_CUTOFFS, units: int = MOST_UNITS) -> None:
        self._cutoffs, self._units = cutoffs, units
        self._tallies: dict[str, Tally] = {}
        self._clustered: set[str] = set()

    @property
    def rows(self) -> int:
        """Rows counted so far."""
        return sum(tally.n for tally in self.tallies)

    @property
    def tallies(self) -> list[Tally]:
        """The tally of each system that has rows of any weight, in order of first appearance."""
        counted = [tally for tally in self._tallies.values() if tally.sweep.total > 0]
        return [replace(tally, clustered=tally.system in self._clustered) for tally in counted]

    def add(self, frame: pl.DataFrame, *, grouped: bool = False) -> None:
        """Counts judged rows; with `grouped` the log has columns that may put rows in dialogues or weigh them."""
        self._clustered |= set(frame.filter(pl.col("dialogue").is_not_null())["system"].unique())
        if grouped:  # rows outside any dialogue are dialogues of one row, so that every batch is counted by units alike
            frame = frame.with_columns(dialogue=pl.coalesce("dialogue", "id"))
        for tally in _tallies_of(frame):
            known = self._tallies.get(tally.system)
            if known is not None and (known.units is None) != (tally.units is None):
                late = f'dialogues (or weights) of system "{tally.system}" begin'
                fix = "the rows before can no longer be distinguished; read the log as a whole with demur score"
                raise DataError(f"{late} only after {known.n:,} rows that have none", fix=fix)
            self._tallies[tally.system] = self._bounded(tally if known is None else known + tally)
        if len(self._tallies) > MOST_SYSTEMS:
            rule = f"the column system has more than {MOST_SYSTEMS} values"
            raise DataError(rule, fix="does it name systems? name another one with --map system=COLUMN")

    def evaluated(
        self, *, measures: Mapping[str, Measure], level: float = 0.95, replicates: int = 1000, seed: int = 0
    ) -> Evaluations:
        """What the log has come to so far."""
        return evaluate(self.tallies, measures=measures, level=level, replicates=replicates, seed=seed)

    def _bounded(self, tally: Tally) -> Tally:
        """The tally with close confidences joined, in the sweep and in the units, where there are too many of them.

        About half are left, so that the next batches have room.
        """
        cells = max(1, self._cutoffs // 2)
        bounded = tally
        while bounded.sweep.threshold.size > self._cutoffs and cells >= 1:
            bounded = tally.joined(grid_for(tally.sweep, cells))
            cells //= 2
        levels = max(1, self._units // (2 * max(1, tally.buckets)))
        fewer = bounded
        while fewer.units is not None and fewer.units.height > self._units and levels >= 1:
            fewer = bounded.with_units_joined(grid_for(bounded.sweep, levels))
            levels //= 2
        return fewer


def _tallies_of(frame: pl.DataFrame) -> list[Tally]:
    """The tallies of a batch; in one that holds only rows of weight 0 these are counted all the same."""
    if bool((frame["weight"] > 0).all()):
        return tallies_of_frame(frame)
    parts = frame.partition_by("system", maintain_order=True)
    return [
        one for part in parts for one in (tallies_of_frame(part) if (part["weight"] > 0).any() else [_weightless(part)])
    ]


def _weightless(rows: pl.DataFrame) -> Tally:
    threshold = np.unique(rows.filter("answered")["confidence"].to_numpy() + 0.0)  # -0.0 is 0.0
    right, wrong = (np.zeros(threshold.size, dtype=np.int64) for _ in range(2))
    return Tally(
        rows["system"][0],
        None,
        Sweep(threshold, right, wrong, 0.0, rows.height),
        failed=int(rows["failed"].sum()),
        unanswered=int((~rows["answered"]).sum()),
        out_of_scope=int(rows["out_of_scope"].sum()),
        squares=0.0,
        units=pl.DataFrame(schema=UNITS),
    )
