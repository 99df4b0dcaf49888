"""Has anything changed from an old log to a new one, and does the promise of a threshold still hold?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.io.columns import JUDGED
from demur.core.show.numbers import ROWS
from demur.core.show.results import Shown, plain
from demur.core.stats.calibration import ECE, ROUNDING
from demur.core.stats.intervals import Difference, Figure, check_level
from demur.errors import DataError, UsageError
from demur.returns.counting import Counting, count, one_tally
from demur.returns.curves import ErrorReturnCurve, error_return
from demur.returns.drift.changes import FEWEST_DEALS, UNDEFINED, Change, LabelShares, Log, RateTest, TwoLogs, untested
from demur.returns.evaluate import figure_of
from demur.returns.judging import LEAST_IN_HALF, NONE
from demur.returns.sweep_files import SweepFile, merged, read_sweeps
from demur.returns.table import Reading, Responses, one_system, read_data
from demur.returns.tally import UNIT_LEVELS, Tally, total
from demur.returns.threshold import Choice, printed_cutoff, threshold_by_error, threshold_by_nonreturn

Verdict = Literal["holds", "broken", "not shown either way", "cannot be checked"]
Promised = Literal["error", "nonreturn"]

MOST_LABELS = 5
"""Labels that are listed, those that moved most, and those that are new."""

LEAST_UNITS = 2
"""Inputs, or dialogues, that each log needs."""

TIMES = ("date", "datetime", "time", "timestamp", "created_at", "period", "year", "month", "week", "day")
"""Columns that say when an input came."""


COUNTED = "an engine counted both logs: tests are by buckets of dialogues where there are any; labels are not compared"
JOINED = "confidences beyond 1,024 levels are joined, so distances and areas hold to about a thousandth"

_DATED = r"^\d{4}(-\d{1,2})?(-\d{1,2})?([T ].*)?$"


@dataclass(frozen=True, slots=True)
class Aim:
    """The threshold in use, and what was promised of it; a threshold that is not given is chosen on the old log."""

    threshold: float | None = None
    max_error: float | None = None
    delta: float | None = None
    max_nonreturn: float | None = None

    def check(self) -> None:
        """Refuses what cannot be, before any work is done."""
        if self.max_error is not None and self.max_nonreturn is not None:
            raise UsageError("one promise is checked at a time; got `max_error` and `max_nonreturn`")
        if self.delta is not None and (self.max_error is None or self.threshold is not None):
            raise UsageError("`delta` goes with `max_error`, where the threshold is chosen on the old log")
        for name in ("max_error", "max_nonreturn"):
            limit = getattr(self, name)
            if limit is not None and not 0 <= limit <= 1:
                raise UsageError(f"`{name}` is a rate in [0, 1], such as 0.05; got {limit:g}")

    @property
    def promise(self) -> tuple[Promised, float] | None:
        """What was promised, and the limit."""
        if self.max_error is not None:
            return "error", self.max_error
        return None if self.max_nonreturn is None else ("nonreturn", self.max_nonreturn)

    def choose(self, old: Log) -> Choice | None:
        """The choice made on the old log, where one is to be made."""
        if self.threshold is not None or self.promise is None:
            return None
        what, limit = self.promise
        if not old.judged:
            raise UsageError(
                "a threshold cannot be chosen on the old log, which does not tell right from wrong; give it with "
                "`threshold`"
            )
        sample = old.sample()
        if what == "error":
            return threshold_by_error(sample, limit, delta=self.delta, name=old.name)
        return threshold_by_nonreturn(sample, limit, name=old.name)


@dataclass(frozen=True, slots=True)
class PromiseCheck:
    """Whether the promise of a threshold holds on the new log."""

    what: Promised
    bound: float
    threshold: float
    rule: str
    verdict: Verdict
    why: str | None = None
    """Why it cannot be checked."""
    test: RateTest | None = None
    figure: Difference = UNDEFINED
    """The rate on the new log with its interval, and its p-value against the limit."""

    def corrected(self, level: float, tests: int) -> PromiseCheck:
        """The check with the verdict that its corrected interval gives."""
        if self.test is None:
            return self
        figure = self.test.tested(level, tests)
        verdict: Verdict = "not shown either way"
        if figure.low > self.bound:
            verdict = "broken"
        elif figure.high <= self.bound:
            verdict = "holds"
        return replace(self, figure=figure, verdict=verdict)

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values."""
        about = {name: getattr(self, name) for name in ("verdict", "what", "bound", "threshold", "rule")}
        why = {} if self.why is None else {"why": self.why}
        values: dict[str, Any] = plain({**about, **self.figure.to_dict(), **why})
        return values


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Shown):
    """What changed from an old log to a new one, and whether the promise of a threshold holds."""

    logs: TwoLogs
    changes: Mapping[str, Change]
    """By their names in JSON; those that could not be tested say why."""
    labels: LabelShares
    ece: tuple[Figure, Figure] | None
    threshold: float | None
    promise: PromiseCheck | None
    level: float
    tests: int
    """How many tests intervals and p-values are corrected for."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def printed_threshold(self) -> str:
        """The threshold in as few digits as split the answers of both logs the same way."""
        if self.threshold is None or math.isnan(self.threshold):
            return "return nothing"
        lower = self.logs.both.confidence[self.logs.both.answered & (self.logs.both.confidence < self.threshold)]
        return printed_cutoff(self.threshold, float(lower.max(initial=-math.inf)))

    @property
    def significant(self) -> tuple[Change, ...]:
        """The changes that are shown."""
        return tuple(one for one in self.changes.values() if one.is_significant(self.level))

    @property
    def judged(self) -> bool:
        """Whether both logs tell right from wrong."""
        return all(log.judged for log in self.logs.sides)

    @cached_property
    def curves(self) -> tuple[ErrorReturnCurve, ErrorReturnCurve]:
        """The error-return curves of both logs."""
        old, new = (error_return(log.rows.sweep(), name=log.name) for log in self.logs.sides)
        return old, new

    def to_dict(self) -> dict[str, Any]:
        """The changes as plain values."""
        values: dict[str, Any] = {"old": _counts(self.logs.old), "new": _counts(self.logs.new)}
        for name, change in self.changes.items():
            _put(values, name.split("."), change.to_dict())
        shares = {"moved": self.labels.shares[:MOST_LABELS], "unseen": self.labels.unseen[:MOST_LABELS]}
        listed = {name: [asdict(one) for one in found] for name, found in shares.items()}
        values.setdefault("answers", {}).update(listed, unseen_labels=len(self.labels.unseen))
        if self.ece is not None:
            values["ece"] = dict(zip(("old", "new"), (one.to_dict() for one in self.ece), strict=True))
        if self.threshold is not None:
            values["at_threshold"] = {"threshold": self.threshold, **values.get("at_threshold", {})}
        found: dict[str, Any] = plain(
            {
                **values,
                "promise": None if self.promise is None else self.promise.to_dict(),
                "changed": [change.name for change in self.significant],
                "tests": self.tests,
                "level": self.level,
                "notes": list(self.notes),
                "warnings": list(self.warnings),
            }
        )
        return found

    def frame(self) -> pl.DataFrame:
        """Every change as a row."""
        rows = [
            {"change": one.name, "old": one.old, "new": one.new, **one.difference.to_dict()}
            for one in self.changes.values()
        ]
        columns = ("change", "old", "new", "value", "low", "high", "p", "p_adjusted")
        return pl.DataFrame(rows, infer_schema_length=None).select(columns)


def drift(
    old: Log, new: Log, *, aim: Aim | None = None, level: float = 0.95, replicates: int = 1000, seed: int = 0
) -> Drift:
    """What changed from an old log to a new one, tested with one correction for all tests.

    Figures are compared by the wider of two standard errors, that of two populations and that of one; distributions by
    dealing units at random. Units are dialogues where they are known, otherwise inputs.
    """
    check_level(level)
    aim = Aim() if aim is None else aim
    aim.check()
    for log in (old, new):
        if log.rows.units < LEAST_UNITS:
            raise DataError(
                "is too small to be compared", where=f"{log.name}:", got=f"{log.rows.units} input or dialogue"
            )
    _refuse_scales(old, new, aim.threshold)
    logs = TwoLogs(old, new)
    choice = aim.choose(old)
    threshold = aim.threshold if choice is None else choice.threshold
    labels = LabelShares.of(logs)
    deals = max(replicates, FEWEST_DEALS)
    found = [*_changes(logs, labels, deals, seed), *_changes_at(logs, threshold)]
    promise = _promise(logs, aim, threshold, choice)
    tests = max(1, sum(one.tested for one in found) + (promise is not None and promise.test is not None))
    corrected = [one if one.test is None else replace(one, difference=one.test.tested(level, tests)) for one in found]
    return Drift(
        logs,
        {one.name: one for one in corrected},
        labels,
        _calibration_errors(logs, level, replicates, seed),
        threshold,
        None if promise is None else promise.corrected(level, tests),
        level,
        tests,
    )


def _refuse_scales(old: Log, new: Log, threshold: float | None) -> None:
    """Refuses confidences from 0 to 1 in one log and above 1 in the other, and a threshold of the other scale."""
    largest = [float(log.rows.confidence[log.rows.answered].max(initial=-math.inf)) for log in (old, new)]
    medians = [
        float(np.median(log.rows.confidence[log.rows.answered])) for log in (old, new) if log.rows.answered.any()
    ]
    if min(largest) > 0 and min(largest) <= 1 + ROUNDING < min(max(largest), max(medians)):
        low, high = sorted((old, new), key=lambda log: log.rows.confidence[log.rows.answered].max())
        rule = f"confidences of {low.name} lie within 0 and 1, and most of {high.name} above 1"
        raise DataError(rule, fix="write both on one scale, as all from 0 to 1")
    if threshold is not None and threshold > 1 + ROUNDING and 0 < max(largest) <= 1 + ROUNDING:
        raise UsageError(f"confidences are read from 0 to 1, so `threshold` is at most 1; got {threshold:g}")


def _changes(logs: TwoLogs, labels: LabelShares, deals: int, seed: int) -> Iterator[Change]:
    yield logs.confidences("confidence.distance", deals=deals, seed=seed)
    most = 1.0 if _probabilistic(logs) else math.inf
    yield logs.rate("confidence.mean", lambda log: log.numbers, lambda log: log.rows.answered, most=most)
    yield logs.answers("answers.distance", labels, deals=deals, seed=seed)
    yield logs.flagged("withheld", lambda log: ~log.rows.answered & ~log.flags("failed"))
    yield logs.flagged("failed", lambda log: log.flags("failed"))
    if all(log.judged for log in logs.sides):
        yield logs.flagged("out_of_scope", lambda log: log.flags("out_of_scope"))
        if len(logs.silent) == 1:
            why = f"{logs.silent[0].name} answers nothing"
            yield untested("error", _error_rate(logs.old), _error_rate(logs.new), why)
            yield untested("augrc", math.nan, math.nan, why)
        else:
            yield logs.rate("error", lambda log: log.errors)
            yield logs.area("augrc")
        if _probabilistic(logs):
            name, answered = "calibration.excess", lambda log: log.rows.answered
            yield logs.rate(name, lambda log: log.numbers - log.rows.right, answered, most=2.0)


def _error_rate(log: Log) -> float:
    """The share of inputs answered wrongly when all is returned; NaN of a log without answers."""
    return float(error_return(log.rows.sweep()).error[0]) if log.rows.answered.any() else math.nan


def _changes_at(logs: TwoLogs, threshold: float | None) -> Iterator[Change]:
    """What the threshold in use does to both logs."""
    if threshold is None or math.isnan(threshold):
        return
    yield logs.rate("at_threshold.nonreturn", lambda log: ~log.returned(threshold))
    if all(log.judged for log in logs.sides):

        def wrong(log: Log) -> Any:
            return log.errors & log.returned(threshold)

        if len(logs.silent) != 1:
            yield logs.rate("at_threshold.error", wrong)
        yield logs.rate("at_threshold.risk", wrong, lambda log: log.returned(threshold))


def _promise(logs: TwoLogs, aim: Aim, threshold: float | None, choice: Choice | None) -> PromiseCheck | None:
    """The promise on the new log, still without its interval."""
    if aim.promise is None or threshold is None:
        return None
    what, bound = aim.promise
    rule = "the threshold given" if choice is None else f"chosen on the old log: {choice.rule}"
    why = None
    if math.isnan(threshold):
        why = "no threshold keeps it on the old log"
    elif what == "error" and not logs.new.judged:
        why = "the new log does not tell right from wrong"
    elif what == "error" and not logs.new.rows.answered.any():
        why = "the new log answers nothing, so it makes no errors"
    if why is not None:
        return PromiseCheck(what, bound, threshold, rule, "cannot be checked", why)
    new = logs.new
    event = ~new.returned(threshold) if what == "nonreturn" else new.errors & new.returned(threshold)
    most = new.tally.effective_n if new.counted and new.tally is not None else None
    test = RateTest.of(new.rows, event, bound, most)
    return PromiseCheck(what, bound, threshold, rule, "not shown either way", test=test)


def _probabilistic(logs: TwoLogs) -> bool:
    return all(log.probabilistic and bool(log.rows.answered.any()) for log in logs.sides)


def _calibration_errors(logs: TwoLogs, level: float, replicates: int, seed: int) -> tuple[Figure, Figure] | None:
    """The ECE of both logs, where confidences may be probabilities."""
    if not _probabilistic(logs) or not all(log.judged for log in logs.sides):
        return None
    old, new = (figure_of(ECE(), log.sample(replicates, seed), level) for log in logs.sides)
    return old, new


def _counts(log: Log) -> dict[str, Any]:
    """What a log consists of."""
    rows, tally = log.rows, log.tally
    failed, answered = int(log.flags("failed").sum()), int(rows.answered.sum())
    dialogues, scope = None if rows.unit is None else rows.units, int(log.flags("out_of_scope").sum())
    if tally is not None:
        failed, answered, scope = tally.failed, tally.n - tally.unanswered, tally.out_of_scope
        dialogues = round(tally.dialogues) if tally.clustered else None
    return {
        "name": log.name,
        "n": log.n,
        "dialogues": dialogues,
        "answered": answered,
        "withheld": log.n - answered - failed,
        "failed": failed,
        "out_of_scope": scope if log.judged else None,
        "judged": log.judged,
    }


def _put(values: dict[str, Any], path: Sequence[str], part: Any) -> None:
    """Put a part where its path says."""
    for step in path[:-1]:
        values = values.setdefault(step, {})
    values[path[-1]] = part


@dataclass(frozen=True, slots=True)
class OldAndNew:
    """Two logs, and what is to know of how they were read."""

    old: Log
    new: Log
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def read_logs(
    old: Any, new: Any, reading: Reading, *, by: str | None, split: str | None, system: str | None
) -> OldAndNew:
    """Two logs, or one that a column splits; each of the one system there is, or of the one named."""
    both = [one_system(read_data((data,), reading), system, what="drift") for data in (old, new) if data is not None]
    reading_notes, warnings = ([getattr(one, kind) for one in both] for kind in ("notes", "warnings"))
    if by is not None:
        one, two, notes = split_log(both[0], by, split)
        return OldAndNew(one, two, (*notes, *reading_notes[0]), warnings[0])
    names = [part.systems[0] for part in both]
    names = (
        [f"{name} ({side})" for name, side in zip(names, ("old", "new"), strict=True)]
        if len(set(names)) == 1
        else names
    )
    one, two = (Log.of(name, part.frame, judged=part.judged) for name, part in zip(names, both, strict=True))
    notes = (*_shared_ids(*both), *_of_each(names, reading_notes))
    return OldAndNew(one, two, notes, _of_each(names, warnings))


def read_counted(
    old: Any, new: Any, reading: Reading, how: Counting, *, by: str | None, split: str | None, system: str | None
) -> OldAndNew | None:
    """Two logs, or one that a column splits, that an engine counts, or that were kept as sweeps; None for others."""
    given = [one for one in (old, new) if one is not None]
    found = [_count(one, replace(reading, unjudged=False), how, by) for one in given]
    if all(one is None for one in found):
        return None
    if None in found:
        raise UsageError("one log is counted and the other is read: give `engine`, or two sweeps")
    counted = [one for one in found if one is not None]
    if by is None:
        tallies = [one_tally([each for each in one.tallies if each.part is None], system) for one in counted]
        names = [one.system for one in tallies]
        if len(set(names)) == 1:
            names = [f"{name} ({side})" for name, side in zip(names, ("old", "new"), strict=True)]
        sides, notes = list(zip(names, tallies, strict=True)), _of_each(names, [one.notes for one in counted])
    else:
        wanted = one_tally([each for each in counted[0].tallies if each.part is None], system).system
        slices = [one for one in counted[0].tallies if one.system == wanted and one.part is not None]
        parts = {str(one.part).removeprefix(f"{by}="): one for one in slices}
        sides, notes = split_tallies(parts, by, split), counted[0].notes
    one, two = (Log.of_tally(*side) for side in sides)
    rough = any(
        log.counted and log.tally is not None and log.tally.sweep.threshold.size > UNIT_LEVELS for log in (one, two)
    )
    said = (COUNTED, *((JOINED,) if rough else ()))
    return OldAndNew(one, two, (*said, *notes), tuple(warning for each in counted for warning in each.warnings))


def _count(data: Any, reading: Reading, how: Counting, by: str | None) -> SweepFile | None:
    if isinstance(data, str | Path) and str(data).endswith(".sweep"):
        if by is not None:
            raise UsageError("a sweep is not split by a column: give the old and the new one")
        return merged(read_sweeps(data))
    return count((data,), reading, how, by=by)


def _one_sided(word: str, by: str, split: str | None, order: pl.Series) -> DataError:
    """Why a split leaves nothing on one side: values are taken in their order."""
    fix = f"it holds {_span(order)}, in this order; to compare two of its values give a log of each as old and new"
    return DataError(f'no row is {word} "{split}" in "{by}"', fix=fix)


def split_tallies(parts: Mapping[str, Tally], by: str, split: str | None) -> list[tuple[str, Tally]]:
    """The sums of slices before a value, and from it on."""
    names = [name for name in parts if name != NONE]
    table = pl.DataFrame({"name": names, "rows": [parts[name].n for name in names]})
    table = table.with_columns(_sortable(table["name"]).alias("order")).sort("order")
    order, rows = table["order"], table["rows"].to_numpy()
    middle: Any = _middle_of(order, rows, by) if split is None else _as_split(order, by, split)
    sides = []
    for late, word in ((False, "before"), (True, "from")):
        mine = table.filter((order >= middle) == late)
        if mine.is_empty():
            raise _one_sided(word, by, split, order)
        sides.append((f"{by} {_span(mine['order'])}", total([parts[name] for name in mine["name"]])))
    return sides


def _of_each(names: Sequence[str], lines: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What was said of both logs once, and what was said of one with its name."""
    common = [line for line in lines[0] if line in lines[1]]
    own = [f"{name}: {line}" for name, part in zip(names, lines, strict=True) for line in part if line not in common]
    return (*common, *own)


def _shared_ids(old: Responses, new: Responses) -> tuple[str, ...]:
    """Says how many ids are in both logs: the same inputs may be compared in pairs."""
    ids = [part.frame["id"].drop_nulls() for part in (old, new)]
    shared = int(ids[0].is_in(ids[1].implode()).sum())
    if not shared:
        return ()
    return (
        f"{shared:,} of {len(old):,} ids of the old log are in the new one; if they are the same inputs, compare pairs "
        "them and shows more",
    )


def split_log(judged: Responses, by: str, split: str | None = None) -> tuple[Log, Log, tuple[str, ...]]:
    """The rows before a value of a column, and those from it on; without a value, the first and the last half.

    Values are compared as numbers where all are, otherwise as texts, which puts dates such as 2026-01-31 in order. Rows
    of one value stay together, so halves need not be equal.
    """
    values = judged.frame[by]
    kept = judged.frame.filter(values.is_not_null())
    left = judged.frame.height - kept.height
    order = _sortable(kept[by])
    middle: Any = _middle(order, by) if split is None else _as_split(order, by, split)
    late = order >= middle
    sides = []
    for part, word in ((kept.filter(~late), "before"), (kept.filter(late), "from")):
        if part.is_empty():
            raise _one_sided(word, by, split, order)
        sides.append(Log.of(f"{by} {_span(_sortable(part[by]))}", part, judged=judged.judged))
    notes = [f"{log.name}: {ROWS.with_count(log.frame.height)}" for log in sides]
    notes += [f"{ROWS.with_count(left)} without {by} left out"] if left else []
    return sides[0], sides[1], tuple(notes)


def _sortable(values: pl.Series) -> pl.Series:
    values = values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values
    numbers = values.cast(pl.Float64, strict=False)
    return values.cast(pl.String) if numbers.null_count() else numbers


def _as_split(order: pl.Series, by: str, split: str) -> object:
    """The value that is asked for, of the kind that the column holds."""
    middle = _sortable(pl.Series([split])).cast(order.dtype, strict=False)[0]
    if middle is None:
        raise DataError(f'"{by}" holds numbers, so `split` must be one', got=split)
    return middle


def _middle(order: pl.Series, by: str) -> object:
    counts = order.value_counts().sort(order.name)
    return _middle_of(counts[order.name], counts["count"].to_numpy(), by)


def _middle_of(values: pl.Series, rows: NDArray[Any], by: str) -> object:
    """The value at which the second part starts, so that both are as equal as they can be."""
    if len(values) < 2:
        raise DataError(
            f'"{by}" has one value, so there is nothing to compare', got=values[0] if len(values) else "none"
        )
    before = np.cumsum(rows)[:-1]
    return values[int(np.argmin(np.abs(2 * before - rows.sum()))) + 1]


def _span(values: pl.Series) -> str:
    ends = [f"{end:g}" if isinstance(end, float) else str(end) for end in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def halves_of_tallies(parts: Mapping[str, Tally], column: str) -> tuple[Log, Log, tuple[str, ...]] | None:
    """The first and the last half of a log that was counted by a column of time; None where a half is too small."""
    (one, old), (two, new) = split_tallies(parts, column, None)
    sides = Log.of_tally(one, old), Log.of_tally(two, new)
    if min(log.rows.units for log in sides) < LEAST_IN_HALF:
        return None
    notes = [f"{log.name}: {ROWS.with_count(log.n)}" for log in sides]
    left = parts[NONE].n if NONE in parts else 0
    return *sides, (*notes, *([f"{ROWS.with_count(left)} without {column} left out"] if left else []), COUNTED)


def tells_time(values: pl.Series) -> bool:
    """Whether texts are two periods or more that can be put in order.

    >>> [tells_time(pl.Series(texts)) for texts in (["2026-01-01", "2026-01-02"], ["monday", "tuesday"], ["2026"])]
    [True, False, False]
    """
    if values.n_unique() < 2:
        return False
    return _sortable(values).dtype == pl.Float64 or bool(values.str.contains(_DATED).all())


def time_column(frame: pl.DataFrame) -> str | None:
    """The column that says when an input came, if there is one with two periods or more that can be put in order."""
    for name in (column for time in TIMES for column in frame.columns if column.casefold() == time):
        values = frame[name].drop_nulls() if name not in JUDGED else pl.Series([], dtype=pl.String)
        if not values.dtype.is_nested() and tells_time(values.cast(pl.String)):
            return name
    return None


def halves_by_time(judged: Responses) -> tuple[Log, Log, tuple[str, ...]] | None:
    """The first and the last half of a log by time; None where no column tells the time, or a half is too small."""
    column = time_column(judged.frame)
    if column is None:
        return None
    old, new, notes = split_log(judged, column)
    return None if min(log.rows.units for log in (old, new)) < LEAST_IN_HALF else (old, new, notes)
