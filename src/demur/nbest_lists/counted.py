"""N-best lists counted where the rows are: an engine takes batches apart, and only sums and sweeps come here.

Lists are read, taken apart and reduced by the very functions that read them into memory, a batch at a time, on the
workers where the engine has any. What batches give is added up in the engine. Dialogues, or utterances where there are
none, are hashed into buckets, which are drawn for intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.engines.engine import BUCKETS, MARKS, NUMBERS, Lazy, collect_frame, summed_batches
from demur.core.engines.polars import leading_digits
from demur.core.io.columns import MOST_SLICES, NBEST_ALIASES
from demur.core.io.tables import Request, unpaired_note
from demur.core.options import Sampling
from demur.core.show.numbers import percent
from demur.core.show.results import Step, silent
from demur.core.stats.measure import TermMeasure
from demur.core.stats.sweep import Sweep, sweep_groups
from demur.errors import DataError, UsageError
from demur.importers import importer_of
from demur.nbest_lists.evaluate import NONE, NBestComparison, NBestEvaluations, NBestSettings, compared, evaluate_lists
from demur.nbest_lists.exploded import ExplodedLists, UnitTotals, columns_of
from demur.nbest_lists.reading import NAMES_FROM, Builder, RowLayout, layout_of, rows_of_batch
from demur.nbest_lists.table import NBest, NBestReading, built, changes_noted
from demur.returns.counting import Counting, EngineLog, blaming, engine_log
from demur.returns.table import named_systems
from demur.returns.tally import UNIT_COLUMNS, ConfidenceGrid, Tally, TallySource, dialogues_in, reliable

EXACT_LISTS = 2**20
"""Utterances up to which every distinct confidence of an item is kept."""

JOINED = ConfidenceGrid.over(1.0)
"""Cells of confidences beyond that: 2 ** 20 from 0 to 1."""

BY_BUCKET = ConfidenceGrid((512.0, 32768.0), (frozenset({0.0, 511 / 512}),))
"""Cells kept of each bucket, finer near 0 and 1. They move intervals, never values."""

_KEYS = ("kind", "system", "slice", "bucket", "cell")
_SWEPT = ("right", "wrong", "withheld", "squares")
_COUNTS = (
    "utterances",
    "hypotheses",
    "empty",
    "talking",
    "unnamed",
    "normalised",
    "merged",
    "unmeant",
    "ids",
    "meanings",
)
_SUMS = ("weight", "mass")
SCHEMA = pl.Schema(
    {
        "kind": pl.String,
        "system": pl.String,
        "slice": pl.String,
        "bucket": pl.Int64,
        "cell": pl.Float64,
        "confidence": pl.Float64,
        "upper": pl.Float64,
        "least": pl.Int64,
        "rows": pl.Int64,
        **dict.fromkeys(_SWEPT, pl.Float64),
    }
)
"""The columns of sums, few so that many rows take little room.

Of the kinds `items` and `tops`, also by bucket, a row is a cell of confidences. Of the kinds `sums` and `counts` it is
one total of a bucket: `cell` is its place in `sum_names` or `_COUNTS`, `right` or `rows` its value.
"""


@dataclass(frozen=True, slots=True)
class CountBatch:
    """Turns a batch of rows into sums: `terms` by bucket, `items` and `tops` by confidence, and by bucket too."""

    layout: RowLayout
    reading: NBestReading
    how: NBestSettings
    system: str
    where: str
    by: str | None = None
    exact: bool = True
    paired: bool = False

    def __call__(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The sums of a batch."""
        builder = replace(self.reading, hypothesise=None).builder("thomson")
        builder.add(rows_of_batch(batch, self.layout, self.where), self.system)
        if not builder.parts:
            return pl.DataFrame(schema=SCHEMA)
        lists = built(builder)
        taken = ExplodedLists.of(lists)
        about = self._about(lists)
        tables = [*self._totals(taken, about, builder)]
        owner = np.repeat(np.arange(len(lists)), np.diff(taken.rows.item_start))
        for kind, rows in (("items", taken.rows.items), ("tops", taken.rows.acts.filter("top"))):
            beside = about[owner] if kind == "items" else about
            judged = rows.select("confidence", "right", "answered", "weight").hstack(beside)
            tables += self._sweeps(kind, judged.with_columns(squares=pl.col("weight").pow(2)))
        swept = [pl.col(name).fill_null(0.0) for name in _SWEPT]
        filled = [_with_schema(table).with_columns(pl.col("rows").fill_null(0), *swept) for table in tables]
        return pl.concat(filled)

    def _about(self, lists: NBest) -> pl.DataFrame:
        """The system, slice and bucket of each utterance."""
        frame = lists.frame
        unit = frame.select(pl.coalesce("dialogue", "id")).to_series()
        if unit.null_count():
            fix = "give utterances ids or dialogues, or use --engine memory"
            raise DataError("an utterance has neither id nor dialogue to draw it by", where=f"{self.where}:", fix=fix)
        digits = leading_digits(unit)
        part = pl.lit(None, pl.String) if self.by is None else pl.col(self.by).fill_null(NONE)
        about = frame.select("system", part.alias("slice"))
        refuse_many_slices(about["slice"], self.by)
        return about.with_columns(bucket=pl.Series(digits // NUMBERS % BUCKETS), least=pl.Series(digits % NUMBERS))

    def _totals(self, taken: ExplodedLists, about: pl.DataFrame, builder: Builder) -> Iterator[pl.DataFrame]:
        """The terms of measures and all else that is summed by bucket."""
        lists, frame = taken.nbest, taken.nbest.frame
        terms = replace(taken, unit=None).totals(self.how.of_acts(), self.how.of_items()).table
        names, size = sum_names(terms.shape[1]), np.diff(lists.start)
        own = about.with_columns(
            frame["weight"],
            pl.Series("mass", np.minimum(lists.given_out, 1.0)) * frame["weight"],
            *(pl.Series(name, terms[:, place]) for place, name in enumerate(names[len(_SUMS) :])),
            utterances=pl.lit(1),
            hypotheses=pl.Series(size),
            empty=pl.Series((size == 0).astype(np.int64)),
            talking=frame["dialogue"].is_not_null().cast(pl.Int64),
            unnamed=frame["id"].is_null().cast(pl.Int64),
            **(_marks(lists) if self.paired else {}),
        )
        keys = ["system", "slice", "bucket", "least"]
        grouped = own.group_by(keys[:-1]).agg(pl.col("least").min(), pl.exclude(*keys).sum())
        first = pl.int_range(pl.len()) == 0
        changes = {"normalised": builder.normalised, "merged": builder.merged, "unmeant": builder.unmeant}
        grouped = grouped.with_columns(
            **{name: pl.when(first).then(count).otherwise(0) for name, count in changes.items()}
        )
        for kind, totals, value in (("sums", names, "right"), ("counts", _COUNTS, "rows")):
            there = [name for name in totals if name in grouped.columns]
            long = grouped.unpivot(there, index=keys, variable_name="total", value_name=value)
            place = pl.col("total").replace_strict(list(totals), list(range(len(totals))), return_dtype=pl.Float64)
            yield long.select(*keys, value, cell=place, kind=pl.lit(kind))

    def _sweeps(self, kind: str, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The rows by confidence, and at fewer confidences by bucket."""
        if rows.is_empty():
            return
        score = nw.col("confidence")
        for name, keys, cell in (
            (kind, ("system", "slice"), score if self.exact else JOINED.key(score)),
            (f"{kind} by bucket", ("system", "slice", "bucket"), BY_BUCKET.key(score)),
        ):
            groups = sweep_groups(nw.from_native(rows), keys=keys, cell=cell, least=("least",), summed=("squares",))
            yield collect_frame(groups).with_columns(kind=pl.lit(name))


def sum_names(terms: int) -> list[str]:
    """The names of what is summed by bucket, where measures have so many terms."""
    return [*_SUMS, *(f"term_{place}" for place in range(terms))]


def _with_schema(table: pl.DataFrame) -> pl.DataFrame:
    missing = [pl.lit(None).alias(name) for name in SCHEMA.names() if name not in table.columns]
    return table.with_columns(missing).select(SCHEMA.names()).cast(SCHEMA)


def _marks(lists: NBest) -> dict[str, pl.Series]:
    """Numbers of the ids, and of the ids with what was meant, whose sums agree where systems have the same inputs."""
    ids = lists.frame["id"].fill_null("")
    known = {code: " ".join(lists.sets.items_of(code)) for code in np.unique(lists.reference).tolist()}
    meant = pl.Series([known[code] for code in lists.reference.tolist()], dtype=pl.String)
    return {"ids": _mark(ids), "meanings": _mark(ids + "\n" + meant)}


def _mark(texts: pl.Series) -> pl.Series:
    return pl.Series(leading_digits(texts) % MARKS)


def refuse_many_slices(values: pl.Series, by: str | None) -> None:
    """Refuse to slice by a column of too many values."""
    if values.n_unique() > MOST_SLICES:
        rule = f'"{by}" has {values.n_unique():,} values or more, too many to slice by (at most {MOST_SLICES})'
        raise DataError(rule, fix="slice by a column that groups the utterances, such as a condition")


def _added(parts: Lazy) -> Lazy:
    """Sums of partial sums."""
    lowest, summed = ("least", "confidence"), ("rows", *_SWEPT)
    return parts.group_by(*_KEYS).agg(nw.col(*lowest).min(), nw.col("upper").max(), nw.col(*summed).sum())


@dataclass(frozen=True, eq=False)
class CountedLists:
    """The lists of one system or slice as an engine counted them."""

    system: str
    part: str | None
    sums: pl.DataFrame
    columns: Mapping[str, slice]
    measures: Mapping[str, TermMeasure]

    @cached_property
    def terms(self) -> pl.DataFrame:
        """The sums by bucket, a column each."""
        count = sum(len(measure.terms(pl)) for measure in self.measures.values())
        wide = self.sums.filter(pl.col("kind") == "sums").group_by("bucket").agg(pl.col("least").min())
        for kind, names, value in (("sums", sum_names(count), "right"), ("counts", _COUNTS, "rows")):
            long = self.sums.filter(pl.col("kind") == kind).select("bucket", "cell", value)
            table = long.pivot("cell", index="bucket", values=value)
            known = {f"{float(place)}": name for place, name in enumerate(names) if f"{float(place)}" in table.columns}
            wide = wide.join(table.rename(known), on="bucket")
        return wide.sort("bucket")

    def total(self, name: str) -> Any:
        """The sum of a column over buckets."""
        return self.terms[name].sum()

    @property
    def n(self) -> int:
        """How many utterances there are."""
        return int(self.total("utterances"))

    @property
    def clustered(self) -> bool:
        """Whether utterances come in dialogues."""
        return bool(self.total("talking"))

    @property
    def hypotheses(self) -> int:
        """How many hypotheses there are."""
        return int(self.total("hypotheses"))

    @property
    def empty(self) -> int:
        """Utterances for which nothing was hypothesised."""
        return int(self.total("empty"))

    @property
    def given_out(self) -> float:
        """Mean mass that lists give out."""
        return float(self.total("mass") / self.total("weight"))

    @property
    def answered_items(self) -> int:
        """Items that some hypothesis holds."""
        return 0 if self._items is None else self._items.n - self._items.unanswered

    @cached_property
    def items(self) -> TallySource | None:
        """The items as what is drawn from; None where there is none."""
        return None if self._items is None else TallySource(self._items)

    @cached_property
    def tops(self) -> TallySource:
        """The surest hypotheses as what is drawn from."""
        return TallySource(self._tops)

    def judged_tops(self, system: str) -> list[Tally]:
        """The surest hypothesis of each utterance as an answer of a system."""
        return [self._tops.named(system)]

    @cached_property
    def _items(self) -> Tally | None:
        return self._tally("items", clustered=True)

    @cached_property
    def _tops(self) -> Tally:
        found = self._tally("tops", clustered=self.clustered)
        assert found is not None  # every utterance has a surest hypothesis, or none
        return found

    def _tally(self, kind: str, *, clustered: bool) -> Tally | None:
        groups = self.sums.filter(pl.col("kind") == kind)
        if groups.is_empty():
            return None
        sweep, squares = Sweep.from_groups(groups), float(groups["squares"].sum())
        by_bucket = self.sums.filter(pl.col("kind") == f"{kind} by bucket").with_columns(confidence="cell")
        weighted = not squares == sweep.total == sweep.n
        return Tally(
            system=self.system,
            part=self.part,
            sweep=sweep,
            failed=0,
            unanswered=int(groups.filter(pl.col("confidence").is_null())["rows"].sum()),
            out_of_scope=0,
            squares=squares,
            clustered=clustered,
            units=by_bucket.select(UNIT_COLUMNS) if clustered or weighted else None,
        )

    @property
    def independent(self) -> float:
        """Dialogues, or utterances where there are none, that can be relied on."""
        if not self.clustered:
            return float(self.n)
        return min(reliable(dialogues_in(self.terms), self.terms.height), float(self.n))

    def totals(self, of_acts: Mapping[str, TermMeasure], of_items: Mapping[str, TermMeasure]) -> UnitTotals:
        """What each bucket adds to measures, which were chosen when the rows were counted."""
        count = sum(len(measure.terms(pl)) for measure in self.measures.values())
        table = self.terms.select(sum_names(count)[len(_SUMS) :]).to_numpy()
        return UnitTotals(table, self.columns, self.measures, self.n, self.clustered, self.independent)


def in_engine(
    data: Sequence[Any],
    reading: NBestReading,
    counting: Counting,
    only_memory: Mapping[str, Any],
    *,
    by: str | None,
    how: NBestSettings,
    compared: tuple[tuple[str, ...] | None, bool] | None = None,
    step: Step = silent,
) -> NBestEvaluations | None:
    """Evaluate, or compare, lists that an engine counts; None for data that memory is to read.

    What is `compared` are these systems, or all, and whether they are not to be paired. Several logs that are compared
    are systems of their own, otherwise they are parts of one. Options that `only_memory` can follow are refused where
    an engine was asked for.
    """
    given = [f"`{name}`" for name, value in only_memory.items() if value]
    if given and counting.engine not in ("auto", "memory"):
        raise UsageError(f"{', '.join(given)} needs `engine` memory")
    if given:
        return None
    if counting.engine == "auto" and any(importer_of(one) for one in data if isinstance(one, str | Path)):
        return None
    logs: list[tuple[str | None, Sequence[Any]]] = [(None, data)]
    if len(data) == 1 and named_systems(data[0]):
        logs = [(name, (one,)) for name, one in data[0].items()]
    elif compared is not None:
        logs = [(None, (one,)) for one in data]
    parts = []
    for name, one in logs:
        log = engine_log(one, request_of(reading), replace(counting, name=name), step)
        if log is None:
            return None
        parts.append(_count(log if name is None else replace(log, system=name), reading, how, by, compared, step))
    names = [one.system for part in parts for one in part if one.part is None]
    if len(set(names)) < len(names):
        fix = "name systems in a column system, or give folders of different names"
        raise DataError("two logs hold systems of the same name", got=", ".join(sorted(names)), fix=fix)
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    evaluations = NBestEvaluations(one for part in parts for one in part).with_notes(notes)
    if compared is not None:
        evaluations = compare_in_engine(evaluations, how, *compared).as_evaluations()
    return evaluations.with_notes((Sampling(**how.sampling).note,))


def _count(
    log: EngineLog, reading: NBestReading, how: NBestSettings, by: str | None, compared: Any, step: Step
) -> NBestEvaluations:
    with blaming(log):
        count = _count_batch(log, reading, how, by, paired=compared is not None and not compared[1])
        step("counting items and acts", 1, 3)
        sums = summed_batches(nw.from_native(log.rows), count, _added, SCHEMA)
    if sums.is_empty():
        asked = " and ".join(f"{column} is {value}" for column, value in reading.where)
        raise DataError(f"no row is left where {asked}" if asked else "holds no rows", where=f"{log.where}:")
    step("evaluating", 2, 3)
    evaluations = NBestEvaluations(
        evaluate_lists(one.system, one.part, one, how) for one in _systems_and_slices(sums, by, how)
    )
    return evaluations.with_notes((*log.notes, *count.layout.notes, *_notes(sums, count), how.note))


def _count_batch(log: EngineLog, reading: NBestReading, how: NBestSettings, by: str | None, paired: bool) -> CountBatch:
    rows: Lazy = nw.from_native(log.rows)
    first = collect_frame(rows.head(NAMES_FROM))
    if first.is_empty():
        raise DataError("holds no rows", where=log.where)
    layout = layout_of(first, log.names or first.columns, reading.wanted(), log.where)
    exact = int(collect_frame(rows.select(nw.len())).item()) <= EXACT_LISTS
    return CountBatch(layout, reading, how, log.system, log.where, by, exact, paired)


def request_of(reading: NBestReading) -> Request:
    """The columns of lists that a reading asks for, whatever they are called."""
    wanted = reading.wanted()
    parts = [part for part in NBEST_ALIASES if part not in ("asr", "cnet")]

    def columns(names: Collection[str]) -> list[str]:
        known = {name for part in parts for name in (part, *NBEST_ALIASES[part])}
        return [*(name for name in names if name.casefold() in known), *wanted.mapped.values(), *wanted.extras]

    return Request(candidates=columns, every_name=False)


def _systems_and_slices(sums: pl.DataFrame, by: str | None, how: NBestSettings) -> Iterator[CountedLists]:
    """Every system, and each followed by its slices."""
    measures = {**how.of_acts(), **how.of_items()}
    columns = columns_of(measures)
    for system in sorted(sums["system"].unique()):
        mine = sums.filter(pl.col("system") == system)
        whole = mine if by is None else _whole(mine)
        yield CountedLists(system, None, whole, columns, measures)
        if by is not None:
            values = mine["slice"].unique().sort()
            refuse_many_slices(values, by)
            for value in values:
                yield CountedLists(system, f"{by}={value}", mine.filter(pl.col("slice") == value), columns, measures)


def _whole(slices: pl.DataFrame) -> pl.DataFrame:
    return collect_frame(_added(nw.from_native(slices.with_columns(slice=pl.lit(None, pl.String)).lazy())))


def _notes(sums: pl.DataFrame, batch: CountBatch) -> list[str]:
    counts = sums.filter(pl.col("kind") == "counts").group_by("cell").agg(pl.col("rows").sum())
    totals = {_COUNTS[int(cell)]: count for cell, count in counts.iter_rows()}
    units = "dialogues" if totals["talking"] else "utterances"
    buckets = sums.filter(pl.col("kind") == "counts")["bucket"].n_unique()
    notes = changes_noted(totals["normalised"], totals["merged"], totals["unmeant"])
    within = percent(1 / sqrt(2 * max(buckets - 1, 1)))
    notes.append(f"intervals draw {buckets:,} buckets of hashed {units}, and hold to about {within}")
    levels = sums.filter(pl.col("kind").is_in(["items", "tops"]))
    if not batch.exact and (levels["upper"] > levels["confidence"]).any():
        notes.append(
            "confidences less than 1e-6 apart are joined for the parts of the ICE, the ECE, the ROC area and figures; "
            "every other value is exact"
        )
    return notes


def compare_in_engine(
    evaluations: NBestEvaluations, how: NBestSettings, systems: tuple[str, ...] | None, unpaired: bool
) -> NBestComparison:
    """Compare systems that an engine counted, paired by the buckets of their utterances where all have ids."""
    every: dict[str, Any] = {one.system: one for one in evaluations}
    names = tuple(dict.fromkeys(every if systems is None else systems))
    if len(names) < 2 or not set(names) <= set(every):
        got = ", ".join(names) or "none"
        raise DataError("a comparison needs two systems or more of those there are", got=got, fix=", ".join(every))
    chosen = NBestEvaluations(every[name] for name in names)
    counted = [one.taken for one in chosen if isinstance(one.taken, CountedLists)]
    unnamed = [one.system for one in counted if one.total("unnamed")]
    paired = not unpaired and not unnamed
    note = unpaired_note(unnamed, unpaired)
    if paired:
        for other in counted[1:]:
            _refuse_other_inputs(counted[0], other)
        note = f"paired by id: {counted[0].n:,} utterances, the same in all systems"
    found = compared(chosen, how, paired, note, dropped=dict.fromkeys(names, 0))
    return replace(found, notes=(*evaluations.notes, note), warnings=evaluations.warnings)


def _refuse_other_inputs(one: CountedLists, two: CountedLists) -> None:
    """Refuse systems whose buckets do not have the same ids, meanings and weights."""
    fix = "`unpaired` compares without pairing; `engine` memory takes `matched`"
    for columns, what in (
        (("bucket", "utterances", "ids"), "ids"),
        (("meanings",), "references"),
        (("weight",), "weights"),
    ):
        first, second = (side.terms.select(columns).to_numpy() for side in (one, two))
        if first.shape != second.shape or not np.allclose(first, second, rtol=1e-9, atol=0):
            rule = f"{one.system} and {two.system} do not have the same {what}: {one.n:,} and {two.n:,} utterances"
            raise DataError(rule, fix=fix)
