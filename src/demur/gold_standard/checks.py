"""Whether curves can be trusted: residuals of the fits, and convergence over subjects."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Step, plain, silent
from demur.core.stats.intervals import student
from demur.errors import UsageError
from demur.gold_standard.curves import Counts, means
from demur.gold_standard.fitting import CurveFit, Performer
from demur.gold_standard.trials import Role

ARITHMETIC = 1e-6
"""Part of the size of values below which a difference is what arithmetic leaves of none."""

_SPREADS = 4.0
"""Standard deviations that values without an upper bound are taken to span."""


def size_of(counts: Counts) -> float:
    """How large shares are: the root of their mean square."""
    return float(np.sqrt(counts.squares.sum() / counts.sizes.sum()))


def span(counts: Counts) -> float:
    """The metric's width; without an upper bound about what the values span, four standard deviations of them."""
    if counts.scale.upper is not None:
        return counts.scale.width
    n = float(counts.sizes.sum())
    spread = float(counts.squares.sum()) / n - (float(counts.totals.sum()) / n) ** 2
    return _SPREADS * float(np.sqrt(max(spread, 0.0)))


def variance(fit: CurveFit, dispersion: float | None = None) -> Array:
    """Of the share of one trial at each place, if the curve is right.

    A curve that reaches a bound is kept half a trial of all away from it, so that no outcome is impossible.
    """
    counts = fit.counts
    over = fit.dispersion if dispersion is None else dispersion
    if fit.link == "identity" and not counts.binomial:
        least = max(ARITHMETIC * size_of(counts), 1e-12) ** 2
        return np.full(len(counts.places), max(over, least))
    edge = 0.5 / (float(counts.sizes.sum()) + 1)
    inside = np.clip(fit.shares, edge, 1 - edge)
    return np.asarray(inside * (1 - inside) * (1.0 if counts.binomial else max(over, 1e-9)))


def difference_text(amount: float, counts: Counts) -> str:
    """A difference of performance in words: in points of a hundred where trials are right or wrong."""
    if not counts.binomial:
        return f"{amount:.3g}"
    shown = points_text(amount)
    if shown == "0":
        return "less than 0.1 points"
    return f"{shown} point" if shown == "1" else f"{shown} points"


def points_text(amount: float) -> str:
    """A rate in points of a hundred, to a tenth where there are few.

    >>> points_text(0.008), points_text(0.01), points_text(0.1234)
    ('0.8', '1', '12')
    """
    shown = 100 * amount
    return f"{shown:.0f}" if shown >= 9.95 else f"{shown:.1f}".removesuffix(".0")


TOLERANCE = 0.01
"""Part of the metric's width; a curve that a further subject moves by less has settled: a point of a hundred."""

FEW = 25
"""Up to this many subjects the curve is refitted after each; of more, after some `STEPS` of them."""

STEPS = 20

_REFITS, _FEWEST_ORDERS, _MOST_ORDERS = 1000, 10, 50
_GRID = 101


@dataclass(frozen=True, slots=True)
class Convergence:
    """Distances of a performer's curve to its data and to the curve of one subject fewer, as subjects come in."""

    performer: str
    role: Role
    subjects: tuple[int, ...]
    to_data: tuple[float, ...]
    """Root mean square distance of trials from the curve of these subjects."""
    to_previous: tuple[float, ...]
    """Root mean square difference, over the range, from the curve of one subject fewer."""
    tolerance: float
    orders: int
    seed: int
    counts: Counts = field(repr=False)
    collected_to_data: tuple[float, ...] = ()
    """The same distances in the order in which subjects came; none where nothing says it."""
    collected_to_previous: tuple[float, ...] = ()

    @property
    def moved(self) -> float:
        """How far the last subject moves the curve; NaN with one alone."""
        return self.to_previous[-1] if self.to_previous else float("nan")

    @property
    def needed(self) -> bool:
        """Whether more subjects are needed."""
        return not self.moved <= self.tolerance

    @property
    def enough(self) -> float:
        """About how many subjects would do, since what one of k moves falls about as 1 / k; NaN if not known."""
        if not self.needed:
            return float(self.subjects[-1])
        wanted = self.counts.subjects * self.moved / self.tolerance if self.tolerance > 0 else float("nan")
        return float("nan") if math.isnan(wanted) else float(math.ceil(wanted - 1e-9))

    def words(self) -> str:
        """What the last subject did to the curve, and whether more are needed."""
        if not self.subjects:
            return "With one subject alone, nothing shows how far others would move the curve."
        far = difference_text(self.moved, self.counts)
        moved = f"The last of {self.subjects[-1]:,} subjects moved the curve by {far} on average"
        limit = points_text(self.tolerance) if self.counts.binomial else f"{self.tolerance:.3g}"
        if not self.needed:
            return f"{moved} (tolerance {limit}): one more would change it little."
        if math.isnan(self.enough):
            return f"{moved}."
        return f"{moved}; roughly {self._rough:,} subjects would bring it below {limit}."

    @property
    def _rough(self) -> int:
        """How many subjects would do; known only roughly, so to two digits."""
        unit: int = 10 ** max(len(str(round(self.enough))) - 2, 0)
        return math.ceil(self.enough / unit) * unit

    @property
    def moved_text(self) -> str:
        """How far the last subject moved the curve, over random orders; a dash with one alone."""
        return "–" if math.isnan(self.moved) else difference_text(self.moved, self.counts)

    @property
    def collected_text(self) -> str:
        """How far the last subject who came moved the curve; a dash where nothing says when subjects came."""
        came = self.collected_to_previous
        return difference_text(came[-1], self.counts) if came else "–"

    @property
    def settled_text(self) -> str:
        """Whether the curve has settled, and with how many subjects it would have."""
        if not self.needed:
            return "yes"
        return "no" if math.isnan(self.enough) else f"no, with roughly {self._rough:,}"

    def frame(self) -> pl.DataFrame:
        """The steps as rows: `performer`, `role`, `subjects`, the distances, and those in the order of collection."""
        nothing = (float("nan"),) * len(self.subjects)
        columns = {
            "to_data": self.to_data,
            "to_previous": self.to_previous,
            "collected_to_data": self.collected_to_data or nothing,
            "collected_to_previous": self.collected_to_previous or nothing,
        }
        who = pl.lit(self.performer).alias("performer"), pl.lit(self.role).alias("role")
        steps = pl.Series("subjects", self.subjects, dtype=pl.Int64)
        return pl.DataFrame(
            [steps, *(pl.Series(name, part, dtype=pl.Float64) for name, part in columns.items())]
        ).select(*who, pl.all())

    def to_dict(self) -> dict[str, Any]:
        """The distances as plain values."""
        distances = ("performer", "subjects", "to_data", "to_previous", "tolerance")
        names = (*distances, "collected_to_data", "collected_to_previous", "needed", "enough", "orders", "seed")
        return dict(plain({**{name: getattr(self, name) for name in names}, "words": self.words()}))


def convergence(
    performer: Performer,
    *,
    orders: int | None = None,
    seed: int = 0,
    step: Step = silent,
    collected: Array | None = None,
) -> Convergence:
    """Refits a performer's curve to more and more of its subjects, averaged over random orders of them.

    All curves are as smooth as the one of all subjects. `orders` is how many random orders there are: so many that
    there are about a thousand refits, but from 10 to 50. `collected` says when each subject came; then the steps in
    that order are given beside, those of subjects who came at once in the order of their names.
    """
    if orders is not None and orders < 1:
        raise UsageError(f"convergence needs at least one order of the subjects; got {orders}")
    fit, counts = performer.fit, performer.fit.counts
    many = counts.subjects
    chosen = orders or min(max(_REFITS // many, _FEWEST_ORDERS), _MOST_ORDERS)
    sizes = np.arange(2, many + 1)
    if many > FEW:
        sizes = np.unique(np.geomspace(2, many, STEPS).round().astype(np.int64))
    fitted = np.union1d(sizes - 1, sizes)
    # Who counts: for each order a row for each number of subjects, the first so many in that order.
    rng = np.random.default_rng(seed)
    places = [rng.permutation(many) for _ in range(chosen)]
    if collected is not None:
        places.append(np.argsort(np.argsort(collected[counts.present], kind="stable")))
    weights = np.zeros((len(places), len(fitted), counts.totals.shape[0]))
    for order, place in zip(weights, places, strict=True):
        order[:, counts.present] = place < fitted[:, None]
    weights = weights.reshape(len(places) * len(fitted), counts.totals.shape[0])
    refits = fit.refits(weights, step=step, what="refitting to fewer subjects")
    last = np.searchsorted(fitted, sizes)
    x = np.linspace(fit.family.low, fit.family.high, _GRID)
    curves = fit.performance(fit.predictor(x, refits)).reshape(len(places), len(fitted), _GRID)
    moved = np.sqrt(((curves[:, last] - curves[:, last - 1]) ** 2).mean(axis=2))
    distance = _to_data(fit, weights, refits).reshape(len(places), len(fitted))[:, last]
    return Convergence(
        performer=performer.name,
        role=performer.role,
        subjects=tuple(sizes.tolist()),
        to_data=tuple(distance[:chosen].mean(axis=0).tolist()),
        to_previous=tuple(moved[:chosen].mean(axis=0).tolist()),
        collected_to_data=() if collected is None else tuple(distance[-1].tolist()),
        collected_to_previous=() if collected is None else tuple(moved[-1].tolist()),
        tolerance=TOLERANCE * span(counts),
        orders=chosen,
        seed=seed,
        counts=counts,
    )


def _to_data(fit: CurveFit, weights: Array, refits: Array) -> Array:
    """How far each curve is from the trials of the subjects who count, in units of the metric."""
    counts = fit.counts
    shares = means(fit.link, fit.predictor(counts.places, refits))
    totals, sizes = counts.weighted(weights)
    squares = weights @ np.asarray(counts.squares.sum(axis=1)).ravel()
    squared = squares + (shares * (shares * sizes - 2 * totals)).sum(axis=1)
    return np.asarray(counts.scale.width * np.sqrt(np.maximum(squared, 0) / sizes.sum(axis=1)))


BINS = 10
"""Stretches that x is divided into, with about as many trials in each."""

LEAST = 5
"""Trials that a stretch should have; with fewer in all there are fewer ranges."""

WIDELY = 2.0
"""How many times the least spread the greatest must be to be called uneven: then a fit by least squares would count
some trials four times as much as they deserve beside others."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A stretch of x: how far its trials lie from the curve on average, and how widely they scatter around it."""

    x: float
    """Mean place of the trials."""
    start: float
    end: float
    n: float
    subjects: int
    residual: float
    """Mean of observed minus fitted performance."""
    low: float
    high: float
    off: bool
    """Whether the residual differs from 0, allowing for how many ranges are looked at."""
    spread: float
    """Root mean square of observed minus fitted."""
    expected: float
    """What the spread would be if the curve were right: of chance alone, or the same everywhere for scores."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """The residuals of a performer's curve.

    `ratio` is the greatest spread over the least. It is `uneven` where that is `WIDELY` or more and beyond chance. Of a
    metric with a bound this is no surprise (Paek 2001, section 3.2), and a fit on the logit scale allows for it.
    """

    performer: str
    bins: tuple[Bin, ...]
    ratio: float
    uneven: bool
    level: float
    counts: Counts = field(repr=False)

    @property
    def misfit(self) -> tuple[Bin, ...]:
        """The ranges where trials lie off the curve."""
        return tuple(one for one in self.bins if one.off)

    def words(self) -> str | None:
        """Where trials lie farthest off the curve, with neighbours off on the same side; None where they do not."""
        if not self.misfit:
            return None
        off = [(one.residual > 0) if one.off else None for one in self.bins]
        first = last = int(np.argmax([abs(one.residual) if one.off else -1.0 for one in self.bins]))
        while first > 0 and off[first - 1] == off[first]:
            first -= 1
        while last + 1 < len(off) and off[last + 1] == off[last]:
            last += 1
        stretch = self.bins[first : last + 1]
        mean = sum(one.n * one.residual for one in stretch) / sum(one.n for one in stretch)
        start, end = stretch[0].start, stretch[-1].end
        where = f"At {start:.3g}" if start == end else f"Between {start:.3g} and {end:.3g}"
        side = "above" if mean > 0 else "below"
        return f"{where} the trials lie {difference_text(abs(mean), self.counts)} {side} the curve."

    def frame(self) -> pl.DataFrame:
        """The ranges as rows: `performer`, `x`, `residual`, `low`, `high` and `n`."""
        names = ("x", "residual", "low", "high", "n")
        columns = {name: [float(getattr(one, name)) for one in self.bins] for name in names}
        return pl.DataFrame({"performer": [self.performer] * len(self.bins), **columns})

    def to_dict(self) -> dict[str, Any]:
        """The residuals as plain values."""
        values = {
            "performer": self.performer,
            "bins": [asdict(one) for one in self.bins],
            "misfit": len(self.misfit),
            "words": self.words(),
            "spread_ratio": self.ratio,
            "uneven": self.uneven,
            "level": self.level,
        }
        return dict(plain(values))


def residuals(performer: Performer) -> Residuals:
    """How far trials lie from the curve, by ranges of x.

    The interval of a mean residual takes subjects as clusters, with Student's t on one degree of freedom less than
    there are subjects in the range. Its standard error is never below that of independent trials.
    """
    fit, counts, shares = performer.fit, performer.fit.counts, performer.fit.shares[:, None]
    _, sizes = counts.whole
    label = _bins(sizes)
    member = (label[:, None] == np.arange(label[-1] + 1)).astype(float)
    # Sums over the trials of each subject (row) in each range (column), in shares.
    n = np.asarray(counts.sizes @ member)
    residual = np.asarray(counts.totals @ member - counts.sizes @ (shares * member))
    squared = counts.squares @ member - 2 * (counts.totals @ (shares * member)) + counts.sizes @ (shares**2 * member)
    squared = np.maximum(squared, 0)
    total, subjects = n.sum(axis=0), (n > 0).sum(axis=0)
    chance = (variance(fit) * sizes) @ member
    mean = residual.sum(axis=0) / total
    mean[np.abs(mean) <= ARITHMETIC * size_of(counts)] = 0.0
    error = np.sqrt(np.maximum(_cluster_variance(residual, n), chance / total**2))
    reach = [student(performer.level, many - 1) for many in subjects] * error
    strict = [student(1 - (1 - performer.level) / len(mean), many - 1) for many in subjects] * error
    width = counts.scale.width
    columns = {
        "x": (sizes * counts.places) @ member / total,
        "start": [counts.places[label == k][0] for k in range(len(mean))],
        "end": [counts.places[label == k][-1] for k in range(len(mean))],
        "n": total,
        "subjects": subjects,
        "residual": width * mean,
        "low": width * (mean - reach),
        "high": width * (mean + reach),
        "off": np.abs(mean) > strict,
        "spread": width * np.sqrt(squared.sum(axis=0) / total),
        "expected": width * np.sqrt(chance / total),
    }
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    bins = tuple(Bin(**dict(zip(columns, row, strict=True))) for row in rows)
    return Residuals(performer.name, bins, *_unevenness(squared, n, performer.level), performer.level, counts)


@dataclass(frozen=True, slots=True, eq=False)
class Normality:
    """Whether the residuals of a curve are normal: their quantiles beside those of the normal distribution.

    Residuals of 0/1 and of rates are randomised quantile residuals (Dunn and Smyth 1996), which are normal if the curve
    is right; those of scores are standardised. The band holds all of them at once at the level, if they are normal,
    and `p` is that of its test: the least chance of any ordered residual, against that of simulated ones
    (Aldor-Noiman et al. 2013).
    """

    performer: str
    expected: Array
    residual: Array
    low: Array
    high: Array
    n: int
    p: float
    level: float

    @property
    def shown(self) -> bool:
        """Whether a departure from normal is shown."""
        return self.p < 1 - self.level

    def frame(self) -> pl.DataFrame:
        """The Q-Q plot as rows: `performer`, `expected`, `residual`, `low` and `high`."""
        names = ("expected", "residual", "low", "high")
        who = pl.lit(self.performer).alias("performer")
        return pl.DataFrame({name: getattr(self, name) for name in names}).select(who, pl.all())

    def to_dict(self) -> dict[str, Any]:
        """The test as plain values."""
        outside = int(((self.residual < self.low) | (self.residual > self.high)).sum())
        return dict(plain({"n": self.n, "p": self.p, "outside_band": outside, "departs": self.shown}))


_NORMAL_SAMPLES, _MOST_QUANTILES = 500, 200
"""Samples that are simulated for the band, and ordered residuals that it is made of."""


def normality(performer: Performer, *, seed: int = 0) -> Normality:
    """The Q-Q plot of a performer's residuals, with a band and a test; residuals of 0/1 are randomised by the seed."""
    from scipy.special import betainc, betaincinv, ndtr, ndtri

    rng = np.random.default_rng(seed)
    ordered = np.sort(_normal_residuals(performer.fit, rng))
    n = len(ordered)
    place = np.unique(np.linspace(0, n - 1, min(n, _MOST_QUANTILES)).round().astype(np.int64))
    shape = place + 1.0, n - place * 1.0  # an ordered uniform variable has a beta distribution

    def least_chance(residuals: Array) -> Array:
        below = betainc(*shape, ndtr(residuals[..., place]))
        return np.asarray(2 * np.minimum(below, 1 - below).min(axis=-1))

    simulated = least_chance(np.sort(rng.standard_normal((_NORMAL_SAMPLES, n)), axis=1))
    local = float(np.quantile(simulated, 1 - performer.level))
    p = (1 + int((simulated <= least_chance(ordered)).sum())) / (1 + _NORMAL_SAMPLES)
    low, high = (ndtri(betaincinv(*shape, chance)) for chance in (local / 2, 1 - local / 2))
    expected = ndtri((place + 0.5) / n)
    return Normality(performer.name, expected, ordered[place], low, high, n, p, performer.level)


def _normal_residuals(fit: CurveFit, rng: np.random.Generator) -> Array:
    """A residual for each subject at each place, normal with variance 1 if the curve is right."""
    from scipy.special import bdtr, ndtri

    counts = fit.counts
    sizes, totals = counts.sizes.tocoo(), np.asarray(counts.totals[counts.sizes.nonzero()]).ravel()
    column, size = sizes.coords[1], sizes.data
    if not counts.binomial:
        return np.asarray((totals / size - fit.shares[column]) / np.sqrt(variance(fit)[column] / size))
    edge = 0.5 / (float(counts.sizes.sum()) + 1)
    share, right = np.clip(fit.shares[column], edge, 1 - edge), totals.round()
    below = np.where(right > 0, bdtr(np.maximum(right - 1, 0), size.round().astype(int), share), 0.0)
    upto = bdtr(right, size.round().astype(int), share)
    return np.asarray(ndtri(np.clip(below + rng.random(len(share)) * (upto - below), 1e-12, 1 - 1e-12)))


def _bins(sizes: Array) -> NDArray[np.int64]:
    """The stretch of each place: about equally many trials in each, all trials of a place in the same."""
    wanted = int(max(1, min(BINS, sizes.sum() // LEAST, len(sizes))))
    if wanted == len(sizes):
        return np.arange(wanted)
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    return np.unique(np.floor(middle * wanted), return_inverse=True)[1].astype(np.int64)


def _cluster_variance(sums: Array, n: Array) -> Array:
    """Of the mean over trials, when those of a subject stand or fall together; 0 where one subject is alone."""
    subjects = (n > 0).sum(axis=0)
    mean = sums.sum(axis=0) / n.sum(axis=0)
    spread = ((sums - mean * n) ** 2).sum(axis=0) / n.sum(axis=0) ** 2
    return np.asarray(spread * np.where(subjects > 1, subjects / np.maximum(subjects - 1, 1), 0.0))


def _unevenness(sums: Array, n: Array, level: float) -> tuple[float, bool]:
    """The greatest spread over the least, and whether the two differ, allowing for all pairs that might have been."""
    squared = sums.sum(axis=0) / n.sum(axis=0)
    pairs = len(squared) * (len(squared) - 1) / 2
    if not pairs or squared.max() <= 0:
        return float("nan"), False
    most, least = int(squared.argmax()), int(squared.argmin())
    ratio = float(np.sqrt(squared[most] / squared[least])) if squared[least] > 0 else float("inf")
    error = np.sqrt(_cluster_variance(sums, n)[[most, least]].sum())
    freedom = (n > 0).sum(axis=0)[[most, least]].min() - 1
    beyond = squared[most] - squared[least] > student(1 - (1 - level) / pairs, freedom) * error
    return ratio, bool(ratio >= WIDELY and freedom > 0 and beyond)
