"""Where values stand among levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from demur.core.engines.engine import collect_frame
from demur.errors import DataError

Floats = NDArray[np.float64]

FEW_LEVELS = 10_000
"""Levels up to which values are looked up as they come; among more it is quicker to bring them near each other."""


LEVELS_AT_ONCE = 1 << 14
"""Thresholds that are worked on at a time: few enough to stay in the processor's cache."""

LARGEST_COUNT = 2.0**53
"""From here on weights that add up to whole numbers are no counts: not every whole number is a float of its own."""


def spans(levels: int) -> Iterator[slice]:
    """Pieces of so many levels that what is made of them stays in the processor's cache."""
    return (slice(start, start + LEVELS_AT_ONCE) for start in range(0, max(levels, 1), LEVELS_AT_ONCE))


def places_among(levels: Floats, values: Floats) -> NDArray[np.int64]:
    """Where each value stands: the last level that is not above it, -1 where all are.

    >>> places_among(np.array([0.1, 0.5]), np.array([0.7, 0.0, 0.1, 0.3])).tolist()
    [1, -1, 0, 0]
    """
    if levels.size <= FEW_LEVELS:
        return np.asarray(np.searchsorted(levels, values, side="right") - 1)
    order = _roughly_sorted(values)
    place = np.empty(values.size, dtype=np.int64)
    place[order] = np.searchsorted(levels, values[order], side="right") - 1
    return place


def _roughly_sorted(values: Floats) -> NDArray[np.int64]:
    """Places of the values by about their size: its leading bits, with the place in the bits below, are one sort."""
    low = np.uint64(max(values.size - 1, 1).bit_length())
    keys = (np.ascontiguousarray(values).view(np.uint64) >> low) << low
    keys |= np.arange(values.size, dtype=np.uint64)
    keys.sort()
    return (keys & ((np.uint64(1) << low) - np.uint64(1))).astype(np.int64)


Counts = NDArray[Any]

_ERROR_BIT = np.uint64(1)

Ties = Literal["together", "randomise"]
"""Answers of one confidence are returned or withheld together, or each with a probability."""

RATE_ROUNDING = 1e-12
"""How far a rate may lie beyond a limit by the rounding of sums alone."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Right and wrong answers at each distinct confidence, and the weight of what was withheld.

    `right` and `wrong` have one entry per threshold, in rising order; leading axes, if any, are replicates. Ties are
    one entry, so the order of rows cannot matter. `n` is the number of rows behind the counts. Where confidences were
    too many to keep apart, each entry joins those from `threshold` to `upper`; None means that nothing was joined.

    >>> sweep = Sweep.of([0.9, 0.5, 0.5], [True, False, True], withheld=1)
    >>> sweep.threshold.tolist(), sweep.right.tolist(), sweep.wrong.tolist(), sweep.total
    ([0.5, 0.9], [1, 1], [1, 0], 4.0)
    """

    threshold: Floats
    right: Counts
    wrong: Counts
    withheld: Floats | float
    n: int
    upper: Floats | None = None

    def __post_init__(self) -> None:
        for array in (self.threshold, self.right, self.wrong, *(() if self.upper is None else (self.upper,))):
            array.setflags(write=False)

    @classmethod
    def of(
        cls,
        confidence: ArrayLike,
        right: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        withheld: float = 0.0,
        withheld_rows: int | None = None,
    ) -> Sweep:
        """Sweep over answered rows; `withheld` is the weight of the rows that have no answer."""
        scores = np.ascontiguousarray(confidence, dtype=np.float64)
        verdicts = np.ascontiguousarray(right, dtype=np.bool_)
        if scores.shape != verdicts.shape or scores.ndim != 1:
            raise DataError(
                f"confidence and right must be two lists of one length; got {scores.shape} and {verdicts.shape}"
            )
        rows = scores.size + (int(withheld) if withheld_rows is None else withheld_rows)
        if rows == 0:
            raise DataError("a sweep needs at least one row; the table is empty")
        if weight is None:
            threshold, right_counts, wrong_counts = _count_by_confidence(scores, verdicts)
        else:
            weights = np.ascontiguousarray(weight, dtype=np.float64)
            threshold, right_counts, wrong_counts = _weigh_by_confidence(scores, verdicts, weights)
        return cls(threshold, right_counts, wrong_counts, float(withheld), rows)._sound()

    @classmethod
    def from_frame(cls, frame: nw.LazyFrame[Any] | nw.DataFrame[Any]) -> Sweep:
        """Sweep reduced inside whatever engine holds the rows; only one row per distinct confidence comes back.

        The frame has the judged columns `answered`, `right`, `confidence` and, where rows count differently, `weight`.
        """
        return cls.from_groups(collect_frame(sweep_groups(frame)))

    @classmethod
    def from_groups(cls, groups: pl.DataFrame) -> Sweep:
        """Sweep of what `sweep_groups` gives: one row per confidence or cell of confidences."""
        rows = int(groups["rows"].sum())
        if rows == 0:
            raise DataError("a sweep needs at least one row; the table is empty")
        apart = groups["confidence"].is_null()
        if groups["confidence"].is_nan().any():
            raise DataError("confidence must be a number for every answered row", got="NaN or none")
        withheld = float(groups["withheld" if "withheld" in groups.columns else "rows"].filter(apart).sum())
        kept = groups.filter(~apart) if apart.any() else groups
        upper, distinct = "upper" in kept.columns, kept.height == int(kept["rows"].sum())
        if distinct and not upper and kept["right"].dtype.is_integer():  # one sort of packed keys, far quicker
            arrays = _count_by_confidence(kept["confidence"].to_numpy(), kept["right"].cast(pl.Boolean).to_numpy())
            return cls(*arrays, withheld, rows)._sound()
        kept = all_counts(kept).sort("confidence")
        right, wrong = (_as_counts(kept[name].to_numpy()).copy() for name in ("right", "wrong"))
        threshold = kept["confidence"].to_numpy().copy()
        highest = kept["upper"].to_numpy().copy() if upper else threshold
        return cls(threshold, right, wrong, withheld, rows, highest if (highest > threshold).any() else None)._sound()

    def _sound(self) -> Sweep:
        if not self.total > 0:
            raise DataError("the weights of the rows must not all be 0")
        return self

    @cached_property
    def answered(self) -> Floats:
        """Weight of the rows that have an answer."""
        return np.asarray(self.right.sum(axis=-1, dtype=np.float64) + self.wrong.sum(axis=-1, dtype=np.float64))

    @property
    def total(self) -> Any:
        """Weight of all rows: the divisor of every rate."""
        total = self.answered + self.withheld
        return float(total) if np.ndim(total) == 0 else total

    @cached_property
    def errors(self) -> Floats:
        """Weight of the wrong answers when every answer is returned."""
        return np.asarray(self.wrong.sum(axis=-1, dtype=np.float64))

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """Non-return rate and error rate at every cutoff, from returning all to returning nothing."""
        total = np.asarray(self.total)[..., None]
        withheld = np.asarray(self.withheld, dtype=np.float64)[..., None]
        x, y = (np.empty((*self.right.shape[:-1], self.threshold.size + 1)) for _ in range(2))
        x[..., :1] = y[..., :1] = 0.0
        np.cumsum(self.right + self.wrong, axis=-1, dtype=np.float64, out=x[..., 1:])
        np.cumsum(self.wrong, axis=-1, dtype=np.float64, out=y[..., 1:])
        x += withheld
        np.subtract(self.errors[..., None], y, out=y)
        with np.errstate(invalid="ignore"):  # a replicate may have drawn nothing but rows of weight 0
            x /= total
            y /= total
        return x, y

    @property
    def from_the_top(self) -> tuple[Floats, Floats]:
        """Answers returned and errors among them, by falling threshold."""
        at_level = np.add(self.right, self.wrong, dtype=np.float64)[..., ::-1]
        return np.cumsum(at_level, axis=-1), np.cumsum(self.wrong[..., ::-1], axis=-1, dtype=np.float64)

    @property
    def wrong_below(self) -> Floats:
        """Wrong answers withheld halfway through each level, by rising threshold."""
        return np.asarray(np.cumsum(self.wrong, axis=-1, dtype=np.float64) - self.wrong / 2)

    @property  # like the next, made when it is asked for: kept, both would take as much room as the curve
    def cutoffs(self) -> Floats:
        """The thresholds, and NaN, which returns nothing."""
        return np.append(self.threshold, np.nan)

    @property
    def missed_chance(self) -> Floats:
        """Right and withheld / all rows at every cutoff, the system's own non-returns aside."""
        missed = np.zeros(self.threshold.size + 1)
        np.cumsum(self.right, dtype=np.float64, out=missed[1:])
        missed /= self.total
        return missed

    @cached_property
    def values(self) -> dict[Any, Any]:
        """What measures gave of the sweep, for others that start from them."""
        return {}

    @cached_property
    def counted(self) -> Sweep:
        """The sweep with weights that count answers: whole ones as they are, others scaled to average 1 over rows."""
        parts = (self.right, self.wrong, np.asarray(self.withheld))
        if all(part.dtype.kind in "iu" or np.array_equal(part, np.rint(part)) for part in parts):
            return self
        scale = ratio(self.n, self.total)
        right, wrong = (part * scale[..., None] for part in (self.right, self.wrong))
        return Sweep(self.threshold, right, wrong, self.withheld * scale, self.n, self.upper)

    def __add__(self, other: Sweep) -> Sweep:
        """The sweep of both; entries that overlap become one, so that every cutoff left is exact in both parts."""
        lower = np.concatenate([self.threshold, other.threshold])
        order = np.argsort(lower, kind="stable")
        lower, upper = lower[order], np.concatenate([self.highest, other.highest])[order]
        reach = np.maximum.accumulate(upper)
        first = np.ones(lower.size, dtype=np.bool_)
        np.greater(lower[1:], reach[:-1], out=first[1:])
        starts, place = np.flatnonzero(first), np.cumsum(first) - 1

        def merged(mine: Counts, theirs: Counts) -> Counts:
            both = np.concatenate([mine, theirs])[order]
            return _as_counts(np.bincount(place, weights=both, minlength=starts.size))

        highest = reach[np.append(starts[1:], lower.size) - 1] if lower.size else lower
        return Sweep(
            lower[starts],
            merged(self.right, other.right),
            merged(self.wrong, other.wrong),
            self.withheld + other.withheld,
            self.n + other.n,
            highest if (highest > lower[starts]).any() else None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sweep):
            return NotImplemented
        return self.n == other.n and all(
            np.array_equal(a, b) for a, b in zip(self._parts(), other._parts(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> Iterator[Any]:
        yield from (self.threshold, self.right, self.wrong, self.withheld, self.highest)

    @property
    def highest(self) -> Floats:
        """The highest confidence of each entry."""
        return self.threshold if self.upper is None else self.upper

    @property
    def slack(self) -> tuple[float, float]:
        """By how much the non-return rate and the error rate may be off between cutoffs; at cutoffs they are exact.

        Here one answer in ten, a right one, lies somewhere from 0.5 to 0.6:

        >>> Sweep(np.array([0.1, 0.5]), np.array([8, 1]), np.array([1, 0]), 0.0, 10, np.array([0.1, 0.6])).slack
        (0.1, 0.0)
        """
        joined = self.highest > self.threshold
        if not joined.any():
            return 0.0, 0.0
        answers, errors = (self.right + self.wrong)[joined], self.wrong[joined]
        return float(answers.max() / self.total), float(errors.max() / self.total)

    def coarsened(self, points: int) -> Sweep:
        """At most `points` thresholds, neighbours joined so that each holds about the same weight.

        At the thresholds that are left the counts are exact; between them the curve is straight, as within a tie.
        """
        if self.threshold.size <= points:
            return self
        pieces, mass, last = [], 0.0, -1
        for part in spans(self.threshold.size):
            at_level = np.add(self.right[part], self.wrong[part], dtype=np.float64)
            through = np.cumsum(at_level) + mass
            group = np.minimum((through - at_level / 2) / self.answered * points, points - 1).astype(np.int64)
            pieces.append(part.start + np.flatnonzero(np.diff(group, prepend=last)))
            mass, last = through[-1], group[-1]
        starts = np.concatenate(pieces)
        return Sweep(
            self.threshold[starts],
            np.add.reduceat(self.right, starts, dtype=np.result_type(self.right, np.int64)),
            np.add.reduceat(self.wrong, starts, dtype=np.result_type(self.wrong, np.int64)),
            self.withheld,
            self.n,
        )

    def digest(self) -> str:
        """A name for the data behind the sweep: independent of row order, and of the parts it was added from."""
        with np.errstate(over="ignore"):
            total = _mixed(np.uint64(self.n)) + _mixed(_rounded_bits(self.withheld))
            for part in spans(self.threshold.size):
                image = (self.threshold[part] + 0.0).view(np.uint64)
                hashes = _mixed(image ^ _mixed(_rounded_bits(self.right[part])))
                hashes += _mixed(~image ^ _mixed(_rounded_bits(self.wrong[part])))
                if self.upper is not None:
                    hashes += _mixed(image ^ _mixed((self.upper[part] + 0.0).view(np.uint64)))
                total += hashes.sum(dtype=np.uint64)
            total = _mixed(total)
        return f"{int(total):016x}"


def sweep_groups(
    frame: nw.LazyFrame[Any] | nw.DataFrame[Any],
    *,
    keys: Sequence[str] = (),
    cell: nw.Expr | None = None,
    least: Sequence[str] = (),
    summed: Sequence[str] = (),
) -> nw.LazyFrame[Any]:
    """One row per distinct confidence (or per `cell` of confidences, with its lowest and highest) and per keys.

    Rows without an answer have no confidence; an answer without one has NaN, to be refused. Where there is no column
    `weight` the sums are whole numbers. Of the columns named in `least` each group keeps the least value, of those
    in `summed` the sum.
    """
    lazy = frame if isinstance(frame, nw.LazyFrame) else nw.from_native(frame.to_polars().lazy())
    answered, right, confidence = nw.col("answered"), nw.col("right"), nw.col("confidence")
    number = confidence.cast(nw.Float64) + 0.0  # -0.0 is 0.0
    score = nw.when(answered).then(nw.coalesce(number, nw.lit(float("nan"))))
    if "weight" in lazy.collect_schema().names():
        kinds = {"right": answered & right, "wrong": answered & ~right, "withheld": ~answered}
        terms: dict[str, Any] = {
            name: nw.when(kind).then(nw.col("weight")).otherwise(0) for name, kind in kinds.items()
        }
        sums = {name: nw.col(name).sum() for name in kinds}
    else:  # to count is quicker than to sum, and gives integers everywhere
        terms = {"right": nw.when(answered & right).then(1)}
        sums = {"right": nw.col("right").count()}
    rows, by = lazy.with_columns(confidence=score, **terms), "confidence"
    if cell is not None:
        rows, by = rows.with_columns(cell=cell), "cell"
        sums |= {"confidence": confidence.min(), "upper": confidence.max()}
    sums |= {name: nw.col(name).min() for name in least} | {name: nw.col(name).sum() for name in summed}
    return rows.group_by(by, *keys).agg(**sums, rows=nw.len())


def all_counts(groups: pl.DataFrame) -> pl.DataFrame:
    """What `sweep_groups` gave with the wrong answers and the withheld rows, which follow where rows were counted."""
    if "wrong" in groups.columns:
        return groups
    aside = pl.col("confidence").is_null()
    return groups.with_columns(
        wrong=pl.when(aside).then(0).otherwise(pl.col("rows") - pl.col("right")),
        withheld=pl.when(aside).then("rows").otherwise(0),
    )


def _count_by_confidence(scores: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Counts, Counts]:
    """Counts per distinct confidence from one sort of 64-bit keys: the confidence's bits with the error bit below them.

    A float64 of one sign needs 63 bits, so the error bit fits and the key is exact. Rows of both signs are two sorts.
    """
    lowest = scores.min() if scores.size else 0.0
    if np.isnan(lowest):
        raise DataError("confidence must be a number; got NaN")
    if lowest >= 0:
        return _count_keys(scores, right, flip=False)
    negative = scores < 0
    if negative.all():
        return _count_keys(scores, right, flip=True)
    below = _count_keys(scores[negative], right[negative], flip=True)
    above = _count_keys(scores[~negative], right[~negative], flip=False)
    return tuple(np.concatenate(pair) for pair in zip(below, above, strict=True))  # type: ignore[return-value]


def _count_keys(scores: Floats, right: NDArray[np.bool_], *, flip: bool) -> tuple[Floats, Counts, Counts]:
    key = ~scores.view(np.uint64) if flip else (scores + 0.0).view(np.uint64)  # -0.0 is 0.0
    key <<= _ERROR_BIT
    key |= (~right).view(np.uint8)
    key.sort()
    wrong = key.astype(np.uint8)
    wrong &= 1
    key >>= _ERROR_BIT
    last = np.empty(key.size, dtype=np.bool_)
    last[-1:] = True
    np.not_equal(key[1:], key[:-1], out=last[:-1])
    wrong_counts: Counts
    if last.all():
        threshold, wrong_counts, right_counts = key, wrong, wrong ^ 1
    else:
        threshold = key[last]
        del key
        ends = np.flatnonzero(last)
        errors_so_far = np.cumsum(wrong, dtype=np.int32 if wrong.size < 2**31 else np.int64)
        wrong_counts = np.diff(errors_so_far[ends], prepend=errors_so_far.dtype.type(0))
        right_counts = np.diff(ends, prepend=-1).astype(wrong_counts.dtype) - wrong_counts
    if flip:
        threshold = ~threshold
    return threshold.view(np.float64), right_counts, wrong_counts


def _weigh_by_confidence(scores: Floats, right: NDArray[np.bool_], weight: Floats) -> tuple[Floats, Counts, Counts]:
    if np.isnan(scores).any():
        raise DataError("confidence must be a number; got NaN")
    if weight.shape != scores.shape or not ((weight >= 0) & np.isfinite(weight)).all():
        raise DataError("weight must be one finite number >= 0 for each row")
    order = np.lexsort((weight, right, scores))  # a fixed order of summing, so row order cannot move the last digit
    scores, right, weight = scores[order], right[order], weight[order]
    if not scores.size:
        return scores, weight, weight.copy()
    starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    right_counts = np.add.reduceat(np.where(right, weight, 0.0), starts)
    wrong_counts = np.add.reduceat(np.where(right, 0.0, weight), starts)
    return scores[starts] + 0.0, _as_counts(right_counts), _as_counts(wrong_counts)


def _as_counts(sums: NDArray[Any]) -> Counts:
    whole = np.rint(sums)
    counts = np.array_equal(whole, sums) and whole.max(initial=0) < LARGEST_COUNT
    return whole.astype(np.int64) if counts else sums


def _mixed(bits: Any) -> Any:
    """The splitmix64 finaliser: a well spread 64-bit image of each value."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _rounded_bits(weight: Any) -> Any:
    """The bits of a weight without its last digits, which the order of summing in an engine may move."""
    bits = np.asarray(weight, dtype=np.float64).view(np.uint64)
    return (bits + np.uint64(0x800)) & ~np.uint64(0xFFF)


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Quotient that is NaN, not an error or 0, where the divisor is 0."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    return np.asarray(np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0))
