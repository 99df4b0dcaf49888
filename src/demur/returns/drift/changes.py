"""Changes from an old log to a new one: rates, areas and distributions, each with the test of no change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.engines.engine import BUCKETS
from demur.core.show.results import plain
from demur.core.stats.intervals import Difference, exact_binomial, normal, sidak
from demur.core.stats.resampling import DRAWN_AT_ONCE, MOST_DEALT, MOST_UNITS, Rows, Sample, units_by_cell
from demur.core.stats.sweep import Sweep
from demur.returns.comparison.contrasts import estimated_difference, pooled_estimate
from demur.returns.measures import Estimate, area_from, area_influence
from demur.returns.tally import UNIT_LEVELS, Tally, TallySource, tally_sample

MOST_LEVELS = 400
"""Distinct confidences up to which each is a cell of the test; of more, as many of about equal weight are."""

LEAST_EXPECTED = 5
"""Answers to be expected of a label in the smaller log; rarer labels are counted together."""

RARE = "(rare labels)"
UNDEFINED = Difference(math.nan, math.nan, math.nan, math.nan, math.nan)

_COLUMNS = ("dialogue", "prediction", "answered", "right", "failed", "out_of_scope", "confidence", "weight")

Between = Callable[[Array, Array], Array]
"""A distance between the cells of two samples, cells along the last axis."""

FEWEST_DEALS = 2000
"""Deals from which a p-value that is corrected for a dozen tests can still be small."""

_SAME = 1e-12
"""Distances closer than this are the same: sums in another order."""


@dataclass(frozen=True, eq=False)
class Log:
    """The rows of one side, in an order of their own, so that the order in the file plays no part."""

    name: str
    frame: pl.DataFrame
    judged: bool
    tally: Tally | None = None
    """What an engine counted, of which the rows were made; None where they were read."""

    @classmethod
    def of(cls, name: str, frame: pl.DataFrame, *, judged: bool) -> Log:
        """The rows of a judged table."""
        return cls(name, frame.select(_COLUMNS).sort(_COLUMNS), judged)

    @classmethod
    def of_tally(cls, name: str, tally: Tally) -> Log:
        """The rows that a tally stands for: one by one where they are independent, otherwise by bucket and confidence.

        Independent rows that are too many to write out are dealt at random into buckets.
        """
        if not TallySource(tally).alike:
            assert tally.units is not None
            return cls(name, bucket_rows(tally.units), True, tally)
        if tally.n > MOST_DEALT:
            return cls(name, bucket_rows(_dealt_into_buckets(tally.sweep)), True, tally)
        return cls(name, _single_rows(tally), True, tally)

    @property
    def counted(self) -> bool:
        """Whether rows stand for what buckets hold, not for single inputs."""
        return self.tally is not None and self.frame.height != self.tally.n

    @property
    def n(self) -> int:
        """How many inputs there are."""
        return self.frame.height if self.tally is None else self.tally.n

    @property
    def sample(self) -> Callable[..., Sample]:
        """What makes the sample that replicates are drawn from."""
        return partial(Sample, self.rows) if self.tally is None else partial(tally_sample, self.tally)

    @cached_property
    def times(self) -> Array:
        """How many inputs each row stands for."""
        weight = self.rows.weight
        return weight * (self.n / weight.sum()) if self.counted else np.ones(weight.size)

    @cached_property
    def rows(self) -> Rows:
        """The rows as arrays."""
        return Rows.from_frame(self.frame)

    @cached_property
    def numbers(self) -> Array:
        """Confidences, 0 where nothing was answered."""
        return np.where(self.rows.answered, self.rows.confidence, 0.0)

    def flags(self, name: str) -> Flags:
        """A column of yes and no."""
        found: Flags = self.frame[name].to_numpy()
        return found

    @property
    def errors(self) -> Flags:
        """Which answers are wrong."""
        return self.rows.answered & ~self.rows.right

    def returned(self, threshold: float) -> Flags:
        """Which answers are returned at a threshold."""
        return self.rows.answered & (self.rows.confidence >= threshold)

    @property
    def probabilistic(self) -> bool:
        """Whether all confidences could be probabilities."""
        return bool(((self.numbers >= 0) & (self.numbers <= 1)).all())

    @property
    def size(self) -> tuple[float, ...]:
        """What puts two logs in an order that does not depend on which is old."""
        finite = np.where(np.isfinite(self.numbers), self.numbers, -1.0)
        return self.rows.units, self.frame.height, float(finite.sum()), float(self.rows.right.sum())


def _single_rows(tally: Tally) -> pl.DataFrame:
    """A row for each input of a tally whose rows are alike; which of them failed or were out of scope plays no part."""
    sweep, unanswered = tally.sweep, tally.unanswered
    answers = [np.repeat(sweep.threshold, np.rint(part).astype(np.int64)) for part in (sweep.right, sweep.wrong)]
    sizes = [one.size for one in answers]
    number = np.arange(tally.n)
    return pl.DataFrame(
        {
            "dialogue": pl.Series([None], dtype=pl.String).new_from_index(0, tally.n),
            "prediction": pl.Series([None], dtype=pl.String).new_from_index(0, tally.n),
            "answered": np.repeat([True, False], [sum(sizes), unanswered]),
            "right": np.repeat([True, False], [sizes[0], tally.n - sizes[0]]),
            "failed": number >= tally.n - tally.failed,
            "out_of_scope": number >= tally.n - tally.out_of_scope,
            "confidence": pl.Series(np.concatenate(answers)).extend_constant(None, unanswered),
            "weight": np.ones(tally.n),
        }
    )


def bucket_rows(units: pl.DataFrame) -> pl.DataFrame:
    """A row for the right, the wrong and the withheld answers of each bucket at each confidence."""
    kinds = (("right", True, True), ("wrong", True, False), ("withheld", False, False))
    parts = [
        units.filter(pl.col(kind) > 0).select(
            dialogue=pl.col("bucket").cast(pl.String).fill_null(""),
            prediction=pl.lit(None, pl.String),
            answered=pl.lit(answered),
            right=pl.lit(right),
            failed=pl.lit(False),
            out_of_scope=pl.lit(False),
            confidence=pl.col("confidence") if answered else pl.lit(None, pl.Float64),
            weight=kind,
        )
        for kind, answered, right in kinds
    ]
    return pl.concat(parts).sort(_COLUMNS)


def _dealt_into_buckets(sweep: Sweep) -> pl.DataFrame:
    """The answers of independent rows dealt at random into buckets, at as many confidences as buckets keep."""
    coarse = sweep.coarsened(UNIT_LEVELS)
    counts = np.rint(np.concatenate([coarse.right, coarse.wrong, [coarse.withheld]])).astype(np.int64)
    dealt = np.random.default_rng(0).multinomial(counts, np.full(BUCKETS, 1 / BUCKETS)).astype(np.float64)
    size = coarse.threshold.size
    levels = [*coarse.threshold.tolist(), None]
    nothing = np.zeros(BUCKETS)
    columns = {
        "bucket": np.tile(np.arange(BUCKETS), size + 1),
        "confidence": pl.Series(levels, dtype=pl.Float64).gather(np.repeat(np.arange(size + 1), BUCKETS)),
        "right": np.concatenate([dealt[:size].ravel(), nothing]),
        "wrong": np.concatenate([dealt[size : 2 * size].ravel(), nothing]),
        "withheld": np.concatenate([np.zeros(size * BUCKETS), dealt[-1]]),
    }
    return pl.DataFrame(columns)


class Test(Protocol):
    """A test that is made; it is corrected when it is known how many there are."""

    def tested(self, level: float, tests: int) -> Difference:
        """The difference with interval and p-value, both corrected for all tests made."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A figure of the new log less that of the old one."""

    estimate: Estimate
    most: float = 1.0
    """The largest difference there can be."""

    def tested(self, level: float, tests: int) -> Difference:
        """The difference with interval and p-value, both corrected for all tests made."""
        low, high = self.estimate.interval(level ** (1 / tests))
        p = self.estimate.p
        return Difference(self.estimate.value, max(low, -self.most), min(high, self.most), p, sidak(p, tests))


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of both logs and its change; a distance has no figures of its own. Without a test `why` says why."""

    name: str
    old: float
    new: float
    test: Test | None
    difference: Difference = UNDEFINED

    def to_dict(self) -> dict[str, Any]:
        """The change as plain values."""
        sides = {} if isinstance(self.test, Distance) else {"old": self.old, "new": self.new}
        values: dict[str, Any] = plain({**sides, **self.difference.to_dict()})
        return values

    @property
    def tested(self) -> bool:
        """Whether there is a test."""
        return self.test is not None

    def is_significant(self, level: float) -> bool:
        """Whether a change is shown."""
        return self.tested and self.difference.p_adjusted < 1 - level


@dataclass(frozen=True, eq=False)
class TwoLogs:
    """An old and a new log, and what tests of their difference need of both."""

    old: Log
    new: Log

    @property
    def sides(self) -> tuple[Log, Log]:
        """Old and new."""
        return self.old, self.new

    @cached_property
    def ordered(self) -> tuple[Log, Log]:
        """Both in an order that does not depend on which is old."""
        one, two = sorted(self.sides, key=lambda log: log.size)
        return one, two

    @cached_property
    def both(self) -> Rows:
        """The rows of both as one population."""
        parts = [log.rows for log in self.sides]
        names = ("confidence", "right", "answered", "weight")
        columns = {name: np.concatenate([getattr(rows, name) for rows in parts]) for name in names}
        return Rows(**columns, unit=_units_of(parts))

    @cached_property
    def is_new(self) -> Flags:
        """Which rows of both are those of the new log."""
        return np.repeat([False, True], [log.frame.height for log in self.sides])

    @property
    def silent(self) -> tuple[Log, ...]:
        """The logs without a single answer."""
        return tuple(log for log in self.sides if not log.rows.answered.any())

    def rate(
        self, name: str, top: Callable[[Log], Any], bottom: Callable[[Log], Any] | None = None, *, most: float = 1.0
    ) -> Change:
        """The change of a sum of one thing over a sum of another; of all inputs where nothing else is named."""
        tops = [np.asarray(top(log), dtype=np.float64) for log in self.sides]
        whole = (lambda log: np.ones(log.frame.height)) if bottom is None else bottom
        bottoms = [np.asarray(whole(log), dtype=np.float64) for log in self.sides]
        parts = [_ratio(log.rows.weight, *each) for log, *each in zip(self.sides, tops, bottoms, strict=True)]
        (old, old_pull), (new, new_pull) = parts
        if math.isnan(new - old):
            return untested(name, old, new, "it is undefined for one of the logs")
        _, pull = _ratio(self.both.weight, np.concatenate(tops), np.concatenate(bottoms))
        return self._shift(name, (old, new), (old_pull, new_pull), pull, most)

    def flagged(self, name: str, flags: Callable[[Log], Any]) -> Change:
        """The change of the share of inputs with a flag, which buckets do not count."""
        if not any(log.counted for log in self.sides):
            return self.rate(name, flags)
        old, new = (math.nan if log.tally is None else getattr(log.tally, name) / log.n for log in self.sides)
        if old == new == 0:
            return untested(name, old, new, "it is the same for all inputs")
        return untested(name, old, new, "an engine counts it for the whole log, not by dialogue")

    def area(self, name: str) -> Change:
        """The change of the area under the error-return curve, each from its own start."""
        (old, old_pull), (new, new_pull) = (_area(log.rows) for log in self.sides)
        return self._shift(name, (old, new), (old_pull, new_pull), _area(self.both)[1], most=0.5)

    def _shift(
        self, name: str, values: tuple[float, float], pulls: tuple[Array, Array], pooled: Array, most: float = 1.0
    ) -> Change:
        """The change with the wider of two standard errors: that of two populations, and that of one."""
        old, new = values
        rows = self.new.rows, self.old.rows
        own = estimated_difference(new - old, rows, (pulls[1], pulls[0]), paired=False)
        times = np.concatenate([log.times for log in self.sides])
        null = pooled_estimate(self.both, self.is_new, pooled, new - old, times)
        if null.error == 0:
            return untested(name, old, new, "it is the same for all inputs")
        return Change(name, old, new, Shift(own if own.error > null.error else null, most))

    def confidences(self, name: str, *, deals: int, seed: int) -> Change:
        """The largest gap between the cumulative distributions of the confidences of answers (Kolmogorov-Smirnov)."""
        values = [log.rows.confidence[log.rows.answered] for log in self.ordered]
        if not all(one.size for one in values):
            return untested(name, math.nan, math.nan, "one of the logs has no answers")
        levels = np.unique(np.concatenate(values))
        if levels.size == 1:
            return untested(name, math.nan, math.nan, "all answers have one confidence")
        exact = None
        if levels.size > MOST_LEVELS:
            exact = float(kolmogorov_smirnov(*self._two_samples(_cells(values, levels), levels.size).counts))
            together = np.sort(np.concatenate(values))
            levels = np.unique(together[np.linspace(0, together.size - 1, MOST_LEVELS).astype(np.int64)])
        samples = self._two_samples(_cells(values, levels), levels.size)
        distance = samples.distance(kolmogorov_smirnov, deals=deals, seed=seed)
        distance = replace(distance, exact=exact)
        return Change(name, math.nan, math.nan, distance)

    def answers(self, name: str, labels: LabelShares, *, deals: int, seed: int) -> Change:
        """How far apart the distributions over predicted labels are (Cramer's V), rare labels taken as one."""
        if labels.why is not None:
            return untested(name, math.nan, math.nan, labels.why)
        cells = [labels.cells(log) for log in self.ordered]
        samples = self._two_samples(cells, len(labels.tested))
        return Change(name, math.nan, math.nan, samples.distance(cramers_v, deals=deals, seed=seed))

    def _two_samples(self, cells: Sequence[NDArray[np.int64]], count: int) -> TwoSamples:
        """The answers of both logs in cells; independent ones that count alike are dealt as rows."""
        rows = [log.rows for log in self.ordered]
        kept = np.concatenate([one.answered for one in rows])
        unit = None
        if not all(one.alike for one in rows):
            found = _units_of(rows)
            unit = (np.arange(kept.size) if found is None else found)[kept]
            unit = np.unique(unit, return_inverse=True)[1]
        second = np.repeat([False, True], [one.size for one in cells])
        return TwoSamples(
            np.concatenate(cells), second, np.concatenate([one.weight for one in rows])[kept], unit, count
        )


def _cells(values: Sequence[Array], levels: Array) -> list[NDArray[np.int64]]:
    """The last level that each value reaches."""
    return [np.searchsorted(levels, one, side="right") - 1 for one in values]


def untested(name: str, old: float, new: float, why: str) -> Change:
    """A change without a test, and why there is none."""
    nothing = math.nan
    return Change(name, old, new, None, Difference(new - old, nothing, nothing, nothing, nothing, why))


def _units_of(parts: Sequence[Rows]) -> NDArray[np.int64] | None:
    """Units numbered over several samples; None where every row of each is one."""
    if all(rows.unit is None for rows in parts):
        return None
    found, first = [], 0
    for rows in parts:
        found.append(first + (np.arange(rows.weight.size) if rows.unit is None else rows.unit))
        first += rows.units
    return np.concatenate(found)


def _ratio(weight: Array, top: Array, bottom: Array) -> tuple[float, Array]:
    """A ratio of two sums, and what each row adds to it."""
    whole = float((weight * bottom).sum())
    if not whole > 0 or not np.isfinite(top).all():
        return math.nan, np.zeros(top.size)
    ratio = float((weight * top).sum()) / whole
    return ratio, (top - ratio * bottom) * float(weight.sum()) / whole


def _area(rows: Rows) -> tuple[float, Array]:
    """The area under a curve from its own start, and what each row adds to it."""
    sweep = rows.sweep()
    start = float(sweep.withheld / sweep.total)
    influence = area_influence(sweep, start, moving_start=True)
    return area_from(sweep, start), influence[rows.cells(sweep.threshold)]


@dataclass(frozen=True, slots=True)
class LabelShare:
    """The share of one label among the answers of each log."""

    label: str
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class LabelShares:
    """Which labels were answered how often, and which of them are frequent enough to be tested one by one."""

    shares: tuple[LabelShare, ...]
    """Those tested, the ones that moved most first."""
    tested: tuple[str, ...]
    unseen: tuple[LabelShare, ...]
    """Labels of the new log that the old one has not, the most frequent first."""
    why: str | None = None
    """Why no test can be made."""

    @classmethod
    def of(cls, logs: TwoLogs) -> LabelShares:
        """The labels of both logs."""
        tables = [log.frame.filter("answered").select("prediction", "weight") for log in logs.sides]
        if any(log.tally is not None for log in logs.sides):
            return cls((), (), (), "an engine counts answers by confidence, not by label")
        if any(table["prediction"].null_count() == table.height for table in tables):
            return cls((), (), (), "there are no predictions in one of the logs")
        counts = [table.group_by("prediction").agg(pl.len(), pl.col("weight").sum()) for table in tables]
        total = [float(table["weight"].sum()) for table in tables]
        least = min(table.height for table in tables) / sum(table.height for table in tables)
        both = counts[0].join(counts[1], on="prediction", how="full", coalesce=True, suffix="_new", nulls_equal=True)
        both = both.fill_null(0).sort("prediction")
        common = ((both["len"] + both["len_new"]) * least >= LEAST_EXPECTED).to_list()
        found = [
            LabelShare(str(row["prediction"]), row["weight"] / total[0], row["weight_new"] / total[1])
            for row in both.to_dicts()
        ]
        frequent = [one for one, often in zip(found, common, strict=True) if often]
        rest = () if all(common) else (RARE,)
        tested = (*(one.label for one in frequent), *rest)
        moved = tuple(sorted(frequent, key=lambda one: (-abs(one.new - one.old), one.label)))
        unseen = tuple(sorted((one for one in found if one.old == 0), key=lambda one: (-one.new, one.label)))
        why = None
        if len(tested) < 2:
            why = "all answers are one label" if frequent else "no label is answered often enough"
        return cls(moved, tested, unseen, why)

    def cells(self, log: Log) -> NDArray[np.int64]:
        """The place of each answer among the labels tested."""
        places = {label: place for place, label in enumerate(self.tested)}
        labels = log.frame.filter("answered")["prediction"].cast(pl.String)
        return labels.replace_strict(places, default=places.get(RARE, 0), return_dtype=pl.Int64).to_numpy()


@dataclass(frozen=True, slots=True)
class RateTest:
    """A rate of one log against a limit: exact for inputs that count alike, with as many as tell as much otherwise."""

    value: float
    n: float
    bound: float

    @classmethod
    def of(cls, rows: Rows, event: Flags, bound: float, most: float | None = None) -> RateTest:
        """The rate of an event; `most` inputs tell as much as the rows at most, by default those that they are."""
        rate = float((event * rows.weight).sum() / rows.weight.sum())
        if rows.alike:
            return cls(rate, float(rows.weight.size), bound)
        pulls = rows.pulled(event.astype(np.float64) - rate)
        spread = float(np.square(pulls - pulls.mean()).sum()) * pulls.size / max(pulls.size - 1, 1)
        most = rows.effective_n if most is None else most
        return cls(rate, min(most, rate * (1 - rate) / spread if spread > 0 else float(pulls.size)), bound)

    @property
    def p(self) -> float:
        """Two-sided exact p-value of the rate being the limit."""
        from scipy.special import betainc

        hits, rest = self.value * self.n, self.n - self.value * self.n
        at_least = float(betainc(hits, rest + 1, self.bound)) if hits > 0 else 1.0
        at_most = 1 - float(betainc(hits + 1, rest, self.bound)) if rest > 0 else 1.0
        return min(1.0, 2 * min(at_least, at_most))

    def tested(self, level: float, tests: int) -> Difference:
        """The rate with its interval, and its p-value against the limit, both corrected for all tests made."""
        low, high = exact_binomial(self.value, self.n, normal(level ** (1 / tests)))
        return Difference(self.value, float(low), float(high), self.p, sidak(self.p, tests))


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Rows of two samples, each row in a cell; `unit` numbers the units of both, None where each row is one."""

    cell: NDArray[np.int64]
    second: Flags
    weight: Array
    unit: NDArray[np.int64] | None
    cells: int

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The weight in each cell, of either sample."""
        return self._counted(~self.second), self._counted(self.second)

    def _counted(self, rows: Flags) -> Array:
        counts: Array = np.bincount(self.cell[rows], self.weight[rows], self.cells).astype(np.float64)
        return counts

    def distance(self, between: Between, *, deals: int, seed: int) -> Distance:
        """How far apart the samples are, and how far apart they are when units are dealt at random."""
        rng = np.random.default_rng(seed)
        total = sum(self.counts)
        drawn = self._dealt_rows(rng, deals) if self.unit is None else self._dealt_units(rng, deals)
        null = np.nan_to_num(between(drawn, total - drawn), nan=1.0)
        return Distance(float(between(*self.counts)), np.sort(null))

    def _dealt_rows(self, rng: np.random.Generator, deals: int) -> Array:
        """Cells of as many rows as the smaller sample has; rows of a cell are alike."""
        counts = np.rint(sum(self.counts)).astype(np.int64)
        size = int(min(self.second.sum(), (~self.second).sum()))
        return rng.multivariate_hypergeometric(counts, size, size=deals, method="marginals").astype(np.float64)

    def _dealt_units(self, rng: np.random.Generator, deals: int) -> Array:
        """Cells of as many units as the sample with fewer of them has; very many units are dealt in bundles."""
        unit, count = self._bundled(rng)
        table = units_by_cell(self.cell, unit, self.weight, cells=self.cells, units=count)
        size = min(np.unique(unit[side]).size for side in (self.second, ~self.second))
        parts, chunk = [], max(1, DRAWN_AT_ONCE // count)
        for start in range(0, deals, chunk):
            many = min(chunk, deals - start)
            kept = np.argpartition(rng.random((many, count)), size - 1, axis=1)[:, :size]
            inside = np.zeros((many, count))
            np.put_along_axis(inside, kept, 1.0, axis=1)
            parts.append((table @ inside.T).T)
        return np.concatenate(parts)

    def _bundled(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], int]:
        """The units, or bundles of as many units of one sample each where there are too many to deal one by one."""
        assert self.unit is not None
        own = [np.unique(self.unit[side]) for side in (~self.second, self.second)]
        size = math.ceil(sum(one.size for one in own) / MOST_UNITS)
        bundle = np.empty(int(self.unit.max()) + 1, dtype=np.int64)
        first = 0
        for units in own:
            places = np.arange(units.size) if size == 1 else rng.permutation(units.size)
            bundle[units] = first + places // size
            first += math.ceil(units.size / size)
        return bundle[self.unit], first


@dataclass(frozen=True, eq=False)
class Distance:
    """A distance between two samples, and the distances when their units are dealt at random, rising."""

    seen: float
    """The distance between the cells that were dealt."""
    null: Array
    exact: float | None = None
    """The distance itself, where cells join values."""

    @property
    def value(self) -> float:
        """The distance in these samples."""
        return self.seen if self.exact is None else self.exact

    @property
    def p(self) -> float:
        """The chance of so large a distance if both samples were of one population."""
        beyond = self.null.size - int(np.searchsorted(self.null, self.seen - _SAME))
        return (1 + beyond) / (1 + self.null.size)

    def tested(self, level: float, tests: int) -> Difference:
        """The distance with interval and p-value, both corrected for all tests made.

        What chance adds to a distance, it can add to or take from the true one at most (by the triangle inequality), so
        the interval reaches as far either way. It excludes 0 exactly where the corrected p-value is below 1 - level.
        """
        beyond = math.ceil((1 - level ** (1 / tests)) * (self.null.size + 1) - 1e-9) - 2
        reach = float(self.null[-1 - beyond]) if 0 <= beyond < self.null.size else math.inf
        low, high = max(0.0, self.seen - reach), min(1.0, self.value + reach)
        low = 0.0 if low <= _SAME else low
        return Difference(self.value, low, high, self.p, sidak(self.p, tests))


def kolmogorov_smirnov(one: Array, two: Array) -> Array:
    """The largest gap between two cumulative distributions, given the weight in each cell in rising order.

    >>> float(kolmogorov_smirnov(np.array([1.0, 1.0, 2.0]), np.array([2.0, 2.0, 0.0])))
    0.5
    """
    with np.errstate(invalid="ignore"):
        gap = np.cumsum(one, axis=-1) / one.sum(axis=-1, keepdims=True)
        gap -= np.cumsum(two, axis=-1) / two.sum(axis=-1, keepdims=True)
    return np.asarray(np.abs(gap).max(axis=-1))


def cramers_v(one: Array, two: Array) -> Array:
    """Cramer's V of two distributions over the same cells: 0 where they are alike, 1 where no cell is in both.

    >>> float(cramers_v(np.array([10.0, 0.0]), np.array([0.0, 10.0])))
    1.0
    """
    sizes = one.sum(axis=-1, keepdims=True), two.sum(axis=-1, keepdims=True)
    pooled, total = one + two, sizes[0] + sizes[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.square(one / sizes[0] - two / sizes[1])
        parts = np.where(pooled > 0, gap * total / pooled, 0.0)
        scale = (sizes[0] * sizes[1] / np.square(total))[..., 0]
        return np.asarray(np.sqrt(scale * parts.sum(axis=-1)))
