"""Maps from confidences to shares right: isotonic, Platt, beta, temperature, histogram; fitted, saved and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import ArrayLike

from demur import __version__
from demur.core.arrays import Array, round_sums
from demur.core.io.untrusted import decode_json, read_bounded
from demur.core.show.results import plain
from demur.core.stats.intervals import expit, logit
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError

Scale = Literal["probabilities", "scores"]
"""Whether the confidences that a map was fitted to all lie in [0, 1]."""

MapLevel = Literal["answers", "items", "acts"]
"""What the confidences are of."""

CLIP = 1e-7
"""How near to 0 and 1 a probability is read where its log odds are needed, as the NCE reads it."""

BINS = 10
"""Bins of the histogram, as in Zadrozny and Elkan (2001)."""

FITTED_LEVELS = 20_000
"""Levels of confidence that a curve is fitted to: where there are five times as many, neighbours are joined to so many,
which moves what the curve gives by less than 0.0001."""

RIDGE = 1e-6
"""Penalty on squared coefficients: next to nothing beside the rows, but separated answers still have finite ones."""

CLOSE = 3e-5
"""A step with which Newton's method has arrived: its next would be about the square of it."""

LARGEST_TEMPERATURE = 1000.0

MOST_KNOTS = 2_000_000
"""Knots that a map in a file may have."""

FORMAT: Literal["demur recalibration 2"] = "demur recalibration 2"

Moderate = Annotated[float, Meta(ge=-1e100, le=1e100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Slope = Annotated[float, Meta(ge=0, le=1e100)]


def recalibrated(right: Array, wrong: Array) -> Array:
    """The share right at each confidence, in rising order of confidence, made to rise by pooling (PAV).

    >>> recalibrated(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(4).tolist()
    [0.3333, 0.3333, 1.0]
    """
    from scipy.optimize import isotonic_regression  # takes longer to load than to run

    weight = np.asarray(right + wrong, dtype=np.float64)
    held = weight > 0
    fitted = np.zeros(weight.size)
    if held.any():
        fitted[held] = isotonic_regression(right[held] / weight[held], weights=weight[held]).x
    return np.clip(fitted, 0.0, 1.0)


class IsotonicMap(Struct, frozen=True, tag_field="method", tag="isotonic", forbid_unknown_fields=True):
    """The best map of all that never fall (PAV), linear between its knots and level beyond them.

    Reference: Zadrozny and Elkan (2002).

    >>> fitted = IsotonicMap.of(Sweep.of([0.2, 0.4, 0.4, 0.9], [False, False, True, True]))
    >>> fitted(np.array([0.1, 0.3, 0.4, 1.0])).round(3).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """

    confidence: Annotated[tuple[Moderate, ...], Meta(min_length=1, max_length=MOST_KNOTS)]
    share: Annotated[tuple[Share, ...], Meta(min_length=1, max_length=MOST_KNOTS)]

    title: ClassVar[str] = "isotonic regression"
    scales: ClassVar[tuple[Scale, ...]] = ("probabilities", "scores")

    def __post_init__(self) -> None:
        rises = all(one < other for one, other in pairwise(self.confidence))
        if len(self.confidence) != len(self.share) or not rises or any(a > b for a, b in pairwise(self.share)):
            raise ValueError("knots must rise in confidence, and never fall in their share right")

    @classmethod
    def of(cls, sweep: Sweep) -> IsotonicMap:
        """The map that suits these answers best."""
        level, right, wrong = _levels(sweep)
        share = recalibrated(right, wrong)
        changes = np.flatnonzero(np.diff(share) != 0)
        ends = np.unique(np.concatenate([[0], changes, changes + 1, [share.size - 1]]))  # of each level of the map
        return cls(tuple(level[ends].tolist()), tuple(share[ends].tolist()))

    def __call__(self, confidence: ArrayLike) -> Array:
        """The share right at each confidence."""
        return np.interp(np.asarray(confidence, dtype=np.float64), self.confidence, self.share)


class PlattMap(Struct, frozen=True, tag_field="method", tag="platt", forbid_unknown_fields=True):
    """A logistic curve over the confidences as they are: log odds = slope * confidence + intercept.

    Fitted by maximum likelihood to targets drawn in a little, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), which keeps it
    from claiming certainty. Reference: Platt (1999).

    >>> PlattMap(slope=2.0, intercept=-1.0)(np.array([0.5, 1.0])).round(4).tolist()
    [0.5, 0.7311]
    """

    slope: Moderate
    intercept: Moderate

    title: ClassVar[str] = "Platt scaling"
    scales: ClassVar[tuple[Scale, ...]] = ("probabilities", "scores")

    @classmethod
    def of(cls, sweep: Sweep) -> PlattMap:
        """The likeliest curve."""
        level, right, wrong = _levels(sweep)
        hit, miss = (right.sum() + 1) / (right.sum() + 2), 1 / (wrong.sum() + 2)
        drawn_in = right * hit + wrong * miss
        slope, intercept = _logistic(level[None, :], drawn_in, right + wrong - drawn_in)
        return cls(slope, intercept)

    def __call__(self, confidence: ArrayLike) -> Array:
        """The share right at each confidence."""
        return np.asarray(expit(self.slope * np.asarray(confidence, dtype=np.float64) + self.intercept))


class BetaMap(Struct, frozen=True, tag_field="method", tag="beta", forbid_unknown_fields=True):
    """A curve for probabilities: log odds = a log(p) - b log(1 - p) + c, with a and b not below 0.

    a = b = 1 and c = 0 leave p as it is; a = b is temperature with a shift; unequal a and b bend one end alone.
    Reference: Kull et al. (2017), equation 8.

    >>> BetaMap(a=1.0, b=1.0, c=0.0)(np.array([0.25, 0.5])).round(4).tolist()
    [0.25, 0.5]
    """

    a: Slope
    b: Slope
    c: Moderate
    clip: Annotated[float, Meta(gt=0, le=0.1)] = CLIP

    title: ClassVar[str] = "beta calibration"
    scales: ClassVar[tuple[Scale, ...]] = ("probabilities",)

    @classmethod
    def of(cls, sweep: Sweep) -> BetaMap:
        """The likeliest curve: of the fits with both, either or neither of a and b, the best that keeps them >= 0."""
        level, right, wrong = _levels(sweep)
        features = cls._features(level, CLIP)
        rise, fall, shift = _logistic(features, right, wrong)
        if min(rise, fall) >= 0:  # nothing that is held at 0 can be likelier
            return cls(rise, fall, shift)
        fits = []
        for kept in ([0], [1], []):
            *slopes, shift = _logistic(features[kept], right, wrong)
            if min(slopes, default=0.0) >= 0:
                both = np.zeros(2)
                both[kept] = slopes
                loss = _loss(np.einsum("k,kn->n", both, features) + shift, right, wrong)
                fits.append((loss, float(both[0]), float(both[1]), shift))
        return cls(*min(fits)[1:])

    @staticmethod
    def _features(confidence: Array, clip: float) -> Array:
        near = np.clip(confidence, clip, 1 - clip)
        return np.stack([np.log(near), -np.log1p(-near)])

    def __call__(self, confidence: ArrayLike) -> Array:
        """The share right at each confidence."""
        rise, fall = self._features(np.asarray(confidence, dtype=np.float64), self.clip)
        return np.asarray(expit(self.a * rise + self.b * fall + self.c))


class TemperatureMap(Struct, frozen=True, tag_field="method", tag="temperature", forbid_unknown_fields=True):
    """Log odds divided by one number: above 1 it takes certainty off, below 1 it adds some.

    Of probabilities the log odds are taken; scores are taken for log odds as they are. A log has the confidence of
    one answer, not the scores of all labels, so this is temperature scaling with two outcomes, right and wrong.
    Reference: Guo et al. (2017), section 4.2.

    >>> TemperatureMap(temperature=2.0)(np.array([0.9])).round(4).tolist()
    [0.75]
    """

    temperature: Annotated[float, Meta(ge=1 / LARGEST_TEMPERATURE, le=LARGEST_TEMPERATURE)]
    of_log_odds: bool = False
    """Whether the confidences are log odds already."""
    clip: Annotated[float, Meta(gt=0, le=0.1)] = CLIP

    title: ClassVar[str] = "temperature scaling"
    scales: ClassVar[tuple[Scale, ...]] = ("probabilities", "scores")

    @classmethod
    def of(cls, sweep: Sweep, scale: Scale = "probabilities") -> TemperatureMap:
        """The likeliest temperature."""
        level, right, wrong = _levels(sweep)
        of_log_odds = scale == "scores"
        odds = level if of_log_odds else logit(np.clip(level, CLIP, 1 - CLIP))
        odds, right, wrong = _pool(odds[None, :], right, wrong)
        size = math.sqrt(float(np.square(odds).mean())) or 1.0
        (slope,) = _newton(odds / size, right, wrong) / size
        least = 1 / LARGEST_TEMPERATURE
        return cls(float(1 / np.clip(slope, least, LARGEST_TEMPERATURE)), of_log_odds)

    def __call__(self, confidence: ArrayLike) -> Array:
        """The share right at each confidence."""
        given = np.asarray(confidence, dtype=np.float64)
        odds = given if self.of_log_odds else logit(np.clip(given, self.clip, 1 - self.clip))
        return np.asarray(expit(odds / self.temperature))


class HistogramMap(Struct, frozen=True, tag_field="method", tag="histogram", forbid_unknown_fields=True):
    """The share right in each of a few bins of confidence, which hold about as many answers each; it need not rise.

    A bin begins at its lowest confidence and reaches to where the next begins; equal confidences are never parted.
    Reference: Zadrozny and Elkan (2001), section 2.

    >>> HistogramMap(begin=(0.5,), share=(0.2, 0.8))(np.array([0.1, 0.5, 0.9])).tolist()
    [0.2, 0.8, 0.8]
    """

    begin: Annotated[tuple[Moderate, ...], Meta(max_length=MOST_KNOTS)]
    """Where the second and every further bin begins."""
    share: Annotated[tuple[Share, ...], Meta(min_length=1, max_length=MOST_KNOTS)]

    title: ClassVar[str] = "histogram binning"
    scales: ClassVar[tuple[Scale, ...]] = ("probabilities", "scores")

    def __post_init__(self) -> None:
        rises = all(one < other for one, other in pairwise(self.begin))
        if len(self.share) != len(self.begin) + 1 or not rises:
            raise ValueError("bins must begin in rising order, and each must have its share right")

    @classmethod
    def of(cls, sweep: Sweep, bins: int = BINS) -> HistogramMap:
        """The shares in bins of about equal weight."""
        level, right, wrong = _levels(sweep)
        weight = right + wrong
        middle = np.cumsum(weight) - weight / 2
        place = np.minimum(middle / weight.sum() * bins, bins - 1).astype(np.int64)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        shares = np.add.reduceat(right, starts) / np.add.reduceat(weight, starts)
        return cls(tuple(level[starts[1:]].tolist()), tuple(np.clip(shares, 0.0, 1.0).tolist()))

    def __call__(self, confidence: ArrayLike) -> Array:
        """The share right in the bin of each confidence."""
        given = np.asarray(confidence, dtype=np.float64)
        return np.asarray(self.share)[np.searchsorted(np.asarray(self.begin), given, side="right")]


CalibrationMap = IsotonicMap | PlattMap | BetaMap | TemperatureMap | HistogramMap
Method = Literal["isotonic", "platt", "beta", "temperature", "histogram"]

METHODS: Mapping[Method, type[CalibrationMap]] = {
    "isotonic": IsotonicMap,
    "platt": PlattMap,
    "beta": BetaMap,
    "temperature": TemperatureMap,
    "histogram": HistogramMap,
}
"""Every kind of map, by its name in options and files."""


def scale_of(confidence: Array) -> Scale:
    """What confidences are: probabilities where all of them could be, otherwise scores."""
    return "probabilities" if confidence.min() >= 0 and confidence.max() <= 1 else "scores"


@dataclass(frozen=True, slots=True)
class MapOrder:
    """What a map does to the different confidences of a log: how many there were, how many there are, and whether it
    ever turns two of them around.
    """

    before: int
    after: int
    turned: bool

    @classmethod
    def of(cls, fitted: CalibrationMap, confidence: Array) -> MapOrder:
        """What a map does to these confidences; those that differ in their last digits only count as one.

        >>> MapOrder.of(HistogramMap((0.5,), (0.2, 0.8)), np.array([0.1, 0.2, 0.9]))
        MapOrder(before=3, after=2, turned=False)
        """
        levels = np.unique(confidence)
        levels = levels[np.diff(round_sums(levels), prepend=-np.inf) > 0]
        mapped = fitted(levels)
        return cls(levels.size, np.unique(mapped).size, bool((np.diff(mapped) < 0).any()))

    @property
    def kept(self) -> bool:
        """Whether answers stand in the order in which they stood."""
        return self.before == self.after and not self.turned


class Recalibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted map with what it was fitted to, as a file holds it."""

    format: Literal["demur recalibration 2"] = FORMAT
    level: MapLevel
    scale: Scale
    parameters: CalibrationMap
    n: Annotated[int, Meta(ge=0, le=2**53)]
    data: Annotated[str, Meta(max_length=64)] = ""
    """A name of the confidences that it was fitted to, and of which were right."""
    seed: Annotated[int, Meta(ge=0)] | None = None
    """The seed of the folds by which the method was chosen."""
    folds: Annotated[int, Meta(ge=2)] | None = None
    made_by: Annotated[str, Meta(max_length=100)] = f"demur {__version__}"

    @classmethod
    def fit(
        cls,
        confidence: ArrayLike,
        right: ArrayLike,
        *,
        method: Method = "isotonic",
        weight: ArrayLike | None = None,
        level: MapLevel = "answers",
        **about: Any,
    ) -> Recalibration:
        """The map of a kind that suits these confidences best."""
        if not np.size(confidence):
            raise DataError("there is nothing to fit a recalibration on: nothing is hypothesised")
        sweep = Sweep.of(confidence, right, weight=weight)
        scale = scale_of(sweep.threshold)
        parameters = fit_map(sweep, method, scale)
        return cls(level=level, scale=scale, parameters=parameters, n=sweep.n, data=sweep.digest(), **about)

    def __call__(self, confidence: ArrayLike) -> Array:
        """The recalibrated confidences."""
        return self.parameters(confidence)

    @property
    def method(self) -> Method:
        """The name of the kind of map."""
        return next(name for name, kind in METHODS.items() if isinstance(self.parameters, kind))

    def to_dict(self) -> dict[str, Any]:
        """The map as plain values."""
        values: dict[str, Any] = plain(msgspec.to_builtins(self))
        return values

    @classmethod
    def read(cls, path: str | Path) -> Recalibration:
        """The map in a file, under the name `map`: what `demur recalibrate fit` writes with -o FILE.json."""
        return decode_json(read_bounded(Path(path)), _MapDocument, f"{path}", "a recalibration").map


class _MapDocument(Struct):
    """A file with a map; whatever else it says is for people."""

    map: Recalibration


def fit_map(sweep: Sweep, method: Method, scale: Scale) -> CalibrationMap:
    """The map of a kind that suits the answers of a sweep best; the scale may be that of more answers than these."""
    kind = METHODS[method]
    if not np.isfinite(sweep.threshold).all():
        rule = "recalibration needs confidences that are finite numbers"
        raise DataError(rule, fix="leave out the answers that have none")
    if scale not in kind.scales:
        raise UsageError(f"`method` {method} is for probabilities; these confidences are not all within [0, 1]")
    return TemperatureMap.of(sweep, scale) if kind is TemperatureMap else kind.of(sweep)


def _levels(sweep: Sweep) -> tuple[Array, Array, Array]:
    """The confidences that weigh something, and the weight of right and of wrong answers at each."""
    right, wrong = (np.asarray(part, dtype=np.float64) for part in (sweep.right, sweep.wrong))
    held = right + wrong > 0
    return sweep.threshold[held], right[held], wrong[held]


def _logistic(features: Array, right: Array, wrong: Array) -> list[float]:
    """Slopes and, last, the intercept of the likeliest logistic curve; features are a row each."""
    features, right, wrong = _pool(features, right, wrong)
    weight = right + wrong
    mean = np.einsum("kn,n->k", features, weight) / weight.sum()
    centred = features - mean[:, None]
    spread = np.sqrt(np.einsum("kn,n->k", np.square(centred), weight) / weight.sum())
    spread[spread == 0] = 1.0
    found = _newton(np.concatenate([centred / spread[:, None], np.ones((1, weight.size))]), right, wrong)
    slopes = found[:-1] / spread
    return [*slopes.tolist(), float(found[-1] - (slopes * mean).sum())]


def _pool(features: Array, right: Array, wrong: Array) -> tuple[Array, Array, Array]:
    """Features and weights of levels, of which neighbours are joined to their mean where there are very many."""
    size = right.size
    if size <= 5 * FITTED_LEVELS:
        return features, right, wrong
    starts = np.linspace(0, size, FITTED_LEVELS, endpoint=False).astype(np.int64)
    sums, *counts = (np.add.reduceat(part, starts, axis=-1) for part in (features * (right + wrong), right, wrong))
    return sums / (counts[0] + counts[1]), counts[0], counts[1]


def _newton(design: Array, right: Array, wrong: Array) -> Array:
    """The coefficients with the least logistic loss and the slightest of penalties, by Newton's method."""
    weight, found = right + wrong, np.zeros(design.shape[0])

    def cost(coefficients: Array) -> float:
        odds = np.einsum("k,kn->n", coefficients, design)
        return _loss(odds, right, wrong) + RIDGE / 2 * float(np.square(coefficients).sum())

    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(np.einsum("k,kn->n", found, design), -700.0, 700.0)))
        step = _newton_step(design, weight * chance - right, weight * chance * (1 - chance), found)
        if np.abs(step).max() <= CLOSE:
            return np.asarray(found - step)
        least = cost(found)
        while cost(found - step) > least:
            step /= 2
            if np.abs(step).max() <= CLOSE**2:
                return found
        found = found - step
    return found


def _newton_step(design: Array, excess: Array, bend: Array, found: Array) -> Array:
    """How far Newton's method goes from the coefficients found; sums are in one order, whatever the processor."""
    slope = np.array([(row * excess).sum() for row in design]) + RIDGE * found
    curvature = RIDGE * np.eye(found.size)
    for place, row in enumerate(design):
        weighed = row * bend
        curvature[place] += [(weighed * other).sum() for other in design]
    return np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)


def _loss(log_odds: Array, right: Array, wrong: Array) -> float:
    """Minus the logarithm of the likelihood of right and wrong answers."""
    surprise = np.log1p(np.exp(-np.abs(log_odds)))
    return float(
        (right * (surprise + np.maximum(-log_odds, 0.0)) + wrong * (surprise + np.maximum(log_odds, 0.0))).sum()
    )
