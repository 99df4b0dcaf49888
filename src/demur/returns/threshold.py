"""Which threshold: by cost, by a limit on errors (with or without a guarantee), by a limit on non-returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, plain, threshold_text
from demur.core.stats.resampling import Sample
from demur.errors import UsageError
from demur.returns.curves import ErrorReturnCurve, error_return

if TYPE_CHECKING:
    from demur.returns.evaluate import Evaluation

EXACT = "fixed-sequence Learn-then-Test, exact binomial (Clopper-Pearson) bound"
BOUNDED = "fixed-sequence Learn-then-Test, Hoeffding-Bentkus bound over dialogues or weighted rows"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise about new data: the error rate stays under `bound` with probability 1 - `delta` over the sample."""

    bound: float
    delta: float
    method: str
    upper: float | None
    """Upper confidence bound of the error rate at the chosen threshold, where it has a closed form."""


def printed_cutoff(threshold: float, below: float) -> str:
    """The shortest rounding of `threshold` that returns the same answers, `below` being the next lower confidence.

    Read back as a float it is above `below` and at most `threshold`. Of several as short, the nearest to `threshold`.

    >>> printed_cutoff(0.3279556997734019, 0.3279), printed_cutoff(0.3279556997734019, 0.32795569)
    ('0.32795', '0.327955699')
    >>> printed_cutoff(48.4, 48.3), printed_cutoff(48.4, 30), printed_cutoff(0.606, 0.605), printed_cutoff(2e-7, -3)
    ('48.4', '48', '0.606', '0')
    """
    if math.isnan(threshold):
        return "return nothing"
    texts = {value: threshold_text(value) for value in (*_roundings(threshold, below), threshold)}
    return texts[min(texts, key=lambda value: (len(texts[value]), -value))]


def _roundings(threshold: float, below: float) -> Iterator[float]:
    """Roundings of a threshold that lie above `below` and not above it, the roughest first.

    Whole numbers differ little in length, so all are tried; after the point the first is the shortest, but for numbers
    that are written with an exponent.
    """
    if not math.isfinite(threshold):
        return
    exact, context = Decimal(threshold), Context(prec=30)
    enough = 0 if abs(threshold) >= 1e-4 else -5
    for power in range(max(exact.adjusted() + 1, 0), exact.adjusted() - 18, -1):
        step = Decimal((0, (1,), power))
        rounded = (float(exact.quantize(step, direction, context)) for direction in (ROUND_HALF_EVEN, ROUND_FLOOR))
        within = [value for value in rounded if below < value <= threshold]
        yield from within
        if within and power <= enough:
            return


def curve_cutoff(curve: ErrorReturnCurve, threshold: float) -> str:
    """A cutoff of a curve as it is printed."""
    return printed_cutoff(threshold, _below(curve, int(np.searchsorted(curve.sweep.threshold, threshold))))


def short_thresholds(curve: ErrorReturnCurve, thresholds: Array) -> list[float]:
    """Cutoffs of a curve in as few digits as return the same answers; NaN, return nothing, stays.

    >>> from demur.core.stats.sweep import Sweep
    >>> curve = error_return(Sweep.of([0.3279556997734019, 0.3279, 0.1], [True, False, True]))
    >>> short_thresholds(curve, curve.threshold)
    [0.0, 0.3, 0.32795, nan]
    """
    below = np.concatenate([[-np.inf], curve.sweep.highest])[np.searchsorted(curve.sweep.threshold, thresholds)]
    pairs = zip(thresholds.tolist(), below.tolist(), strict=True)
    return [one if math.isnan(one) else float(printed_cutoff(one, under)) for one, under in pairs]


def printed_frame(curve: ErrorReturnCurve, frame: pl.DataFrame) -> pl.DataFrame:
    """Points of a curve whose column `threshold` has the numbers that are printed, for tables beside the text."""
    short = short_thresholds(curve, frame["threshold"].to_numpy())
    return frame.with_columns(threshold=pl.Series(short, dtype=pl.Float64))


@dataclass(frozen=True, slots=True)
class Stretch:
    """One best cutoff of the cost path and the cost ratios for which it is best."""

    ratio_from: float
    ratio_to: float
    threshold: float
    nonreturn: float
    error: float
    below: float
    """The next lower confidence."""

    @property
    def printed_threshold(self) -> str:
        """The threshold in as few digits as split the answers the same way."""
        return printed_cutoff(self.threshold, self.below)

    @property
    def short_threshold(self) -> float:
        """The threshold as it is printed, as a number; NaN returns nothing."""
        return self.threshold if math.isnan(self.threshold) else float(self.printed_threshold)


@dataclass(frozen=True, eq=False)
class Choice(Shown):
    """A threshold and what it gives; a threshold of NaN means: return nothing."""

    system: str
    rule: str
    threshold: float
    nonreturn: float
    error: float
    missed_chance: float
    cost_ratio: float | None
    guarantee: Guarantee | None
    path: tuple[Stretch, ...]
    curve: ErrorReturnCurve
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    evaluate: Callable[[], Evaluation] | None = field(default=None, repr=False)
    """Makes the evaluation of the system, in which the threshold is shown."""

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation of the system; only what `demur.threshold` chose has one."""
        if self.evaluate is None:
            raise UsageError("this threshold was chosen from a sample alone, so there is no evaluation of its system")
        return self.evaluate()

    @property
    def printed_threshold(self) -> str:
        """The threshold in as few digits as split the answers the same way."""
        return curve_cutoff(self.curve, self.threshold)

    @property
    def cost(self) -> float | None:
        """Error rate plus cost ratio times non-return rate, where a ratio was given."""
        return None if self.cost_ratio is None else self.error + self.cost_ratio * self.nonreturn

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain values."""
        why = {"why": "no threshold keeps the limit, so nothing is returned"} if math.isnan(self.threshold) else {}
        columns = ("ratio_from", "ratio_to", "threshold", "nonreturn", "error")
        values: dict[str, Any] = plain(
            {
                **{name: getattr(self, name) for name in ("system", "rule", "threshold")},
                **why,
                **{name: getattr(self, name) for name in ("nonreturn", "error", "missed_chance", "cost")},
                "guarantee": None if self.guarantee is None else asdict(self.guarantee),
                "cost_path": [{name: getattr(stretch, name) for name in columns} for stretch in self.path],
                "notes": list(self.notes),
                "warnings": list(self.warnings),
            }
        )
        return values

    def frame(self) -> pl.DataFrame:
        """The cost path as a table."""
        return pl.DataFrame(self.to_dict()["cost_path"])


def aim(
    *, cost_ratio: float | None, max_error: float | None, delta: float | None, max_nonreturn: float | None
) -> Callable[..., Choice]:
    """What chooses a threshold from a sample, for the one aim that is given."""
    asked = {"`cost_ratio`": cost_ratio, "`max_error`": max_error, "`max_nonreturn`": max_nonreturn}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise UsageError(
            "choose by exactly one of a cost ratio (`cost_ratio`), a limit on errors (`max_error`, with `delta` for a "
            f"guarantee) and a limit on non-returns (`max_nonreturn`); got {' and '.join(given) or 'none'}"
        )
    if delta is not None and max_error is None:
        raise UsageError("`delta` goes with `max_error`: it is the chance that the promised error rate is exceeded")
    if cost_ratio is not None:
        return partial(threshold_by_cost, ratio=cost_ratio)
    if max_error is not None:
        return partial(threshold_by_error, most=max_error, delta=delta)
    assert max_nonreturn is not None
    return partial(threshold_by_nonreturn, most=max_nonreturn)


def threshold_by_cost(sample: Sample, ratio: float, *, name: str = "system") -> Choice:
    """The cutoff that minimises error rate + ratio * non-return rate; among equals the one that returns more.

    `ratio` is what a non-return costs over what an error costs. At 1 or above withholding never pays.

    >>> from demur.core.stats.resampling import Rows
    >>> sample = Sample(Rows.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False]))
    >>> threshold_by_cost(sample, 0.5).threshold
    0.8
    """
    if not 0 <= ratio < 1:
        raise UsageError(
            f"the cost ratio must be at least 0 and below 1; got {ratio:g}. It is what a non-return costs over what "
            "an error costs: when a non-return costs as much as an error, withholding an answer never pays, and a "
            "negative cost would reward silence"
        )
    curve = error_return(sample.sweep, name=name)
    path = cost_path(curve)
    best = next(stretch for stretch in path if stretch.ratio_from <= ratio <= stretch.ratio_to)
    place = int(np.searchsorted(curve.nonreturn, best.nonreturn))
    return _choice(curve, place, f"cost ratio {ratio:g}", path, cost_ratio=ratio)


def threshold_by_nonreturn(sample: Sample, most: float, *, name: str = "system") -> Choice:
    """The cutoff with the fewest errors among those that withhold at most `most` of the inputs."""
    if not 0 <= most <= 1:
        raise UsageError(f"a non-return rate lies in [0, 1], such as 0.2; got {most:g}")
    curve = error_return(sample.sweep, name=name)
    if curve.floor > most + 1e-12:
        raise UsageError(f"{name} itself withholds {curve.floor:.4g} of the inputs, more than {most:g}")
    allowed = np.flatnonzero(curve.nonreturn <= most + 1e-12)
    place = allowed[np.argmin(curve.error[allowed])]
    return _choice(curve, int(place), f"non-return rate at most {most:g}", cost_path(curve))


def threshold_by_error(sample: Sample, most: float, *, delta: float | None = None, name: str = "system") -> Choice:
    """The cutoff that returns most while the error rate stays at or under `most`.

    Without `delta` the rate in this sample is meant, and nothing is promised about new data. With `delta` the true
    rate is under the limit with probability 1 - delta: thresholds are tested from the strictest on, each at level
    delta, until one fails. The error rate can only rise as the threshold falls, so this order needs no correction
    for having searched (Angelopoulos et al. 2021, fixed-sequence testing; Bates et al. 2021).
    """
    if not 0 <= most <= 1:
        raise UsageError(f"an error rate lies in [0, 1], such as 0.05; got {most:g}")
    if delta is not None and not 0 < delta < 1:
        raise UsageError(f"delta, the chance that the promise fails, lies between 0 and 1; got {delta:g}")
    curve = error_return(sample.sweep, name=name)
    if delta is None:
        place = int(np.argmax(curve.error <= most + 1e-12))
        return _choice(curve, place, f"error rate at most {most:g} in this sample (no guarantee)", cost_path(curve))
    place, guarantee = _guaranteed(sample, curve, most, delta)
    rule = f"error rate at most {most:g} on new data, with probability {1 - delta:g}"
    return _choice(curve, place, rule, cost_path(curve), guarantee=guarantee)


def cost_path(curve: ErrorReturnCurve) -> tuple[Stretch, ...]:
    """Best cutoffs for all cost ratios from 0 to 1: the vertices of the curve's lower convex hull.

    A vertex is best for the ratios between the slopes of the hull on its two sides.
    """
    sweep = curve.sweep  # sums of weights are whole numbers where rows count alike, so slopes are exact
    withheld = np.concatenate([[0.0], np.cumsum(np.add(sweep.right, sweep.wrong, dtype=np.float64))])
    wrong_withheld = np.concatenate([[0.0], np.cumsum(sweep.wrong, dtype=np.float64)])
    wrong = wrong_withheld[-1] - wrong_withheld
    vertices = _lower_hull(withheld, wrong)
    slopes = np.diff(wrong[vertices]) / -np.diff(withheld[vertices]) + 0.0
    left, right = np.concatenate([[1.0], slopes]), np.concatenate([slopes, [0.0]])
    x, y = curve.nonreturn[vertices], curve.error[vertices]
    return tuple(
        Stretch(float(low), float(high), float(curve.threshold[place]), float(at), float(error), _below(curve, place))
        for place, at, error, low, high in zip(vertices, x, y, right, left, strict=True)
        if high > low
    )


def _below(curve: ErrorReturnCurve, place: int) -> float:
    """The highest confidence below a cutoff."""
    return float(curve.sweep.highest[place - 1]) if place > 0 else float("-inf")


def _lower_hull(x: Array, y: Array) -> NDArray[np.int64]:
    """Places of the lower convex hull of points in rising x (Andrew's monotone chain).

    A point on or above the line between its neighbours is no vertex of the hull, so such points go first, all at once.
    """
    left = np.flatnonzero(np.diff(x, prepend=-1.0) > 0)
    size = 0
    while left.size != size:
        size = left.size
        vertex = np.ones(size, dtype=np.bool_)
        vertex[1:-1] = ~_turns_right(x, y, left[:-2], left[1:-1], left[2:])
        left = left[vertex]
    hull: list[int] = []
    for place in left.tolist():
        while len(hull) > 1 and _turns_right(x, y, hull[-2], hull[-1], place):
            hull.pop()
        hull.append(place)
    return np.array(hull)


def _turns_right(x: Array, y: Array, one: Any, two: Any, three: Any) -> Any:
    return (x[two] - x[one]) * (y[three] - y[one]) <= (y[two] - y[one]) * (x[three] - x[one])


def _guaranteed(sample: Sample, curve: ErrorReturnCurve, most: float, delta: float) -> tuple[int, Guarantee]:
    from scipy.special import bdtr, betaincinv

    errors = np.rint(curve.error * curve.sweep.total)
    p = bdtr(errors, curve.sweep.n, most) if sample.alike else _hoeffding_bentkus(sample, curve, most)
    failed = np.flatnonzero(p[:-1] > delta) if most < 1 else np.array([], dtype=np.int64)
    place = int(failed[-1]) + 1 if failed.size else 0
    method, upper = EXACT if sample.alike else BOUNDED, None
    if sample.alike and place < curve.threshold.size - 1:
        upper = float(betaincinv(errors[place] + 1, max(curve.sweep.n - errors[place], 1e-12), 1 - delta))
    return place, Guarantee(most, delta, method, upper)


def _hoeffding_bentkus(sample: Sample, curve: ErrorReturnCurve, most: float) -> Array:
    """p-values of "the error rate exceeds `most`" from sums over units, each unit bounded by the heaviest one seen.

    For unit u with weight m and errors k, (k - most m) / heaviest + most lies in [0, 1], and its mean exceeds `most`
    exactly when the error rate does.
    """
    from scipy.special import bdtr

    heaviest, units = sample.heaviest, sample.spread.units
    errors = curve.error * curve.sweep.total
    mean = np.clip((errors - most * curve.sweep.total) / (heaviest * units) + most, 0.0, 1.0)
    bentkus = np.e * bdtr(np.ceil(units * mean), units, most)
    under = np.minimum(mean, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(under > 0, under * np.log(under / most), 0.0)
        second = np.where(under < 1, (1 - under) * np.log((1 - under) / (1 - most)), 0.0)
    relative_entropy = np.nan_to_num(first + second, nan=0.0, posinf=np.inf)
    return np.asarray(np.minimum(np.exp(-units * relative_entropy), bentkus))


def _choice(
    curve: ErrorReturnCurve,
    place: int,
    rule: str,
    path: tuple[Stretch, ...],
    *,
    cost_ratio: float | None = None,
    guarantee: Guarantee | None = None,
) -> Choice:
    columns = ("threshold", "nonreturn", "error", "missed_chance")
    values: dict[str, Any] = {name: float(getattr(curve, name)[place]) for name in columns}
    values.update(cost_ratio=cost_ratio, guarantee=guarantee, path=path)
    return Choice(curve.name, rule, curve=curve, **values)
