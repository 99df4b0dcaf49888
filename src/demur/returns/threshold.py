"""Which threshold: by cost, or by a limit on errors or on non-returns, with or without a promise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.numbers import percent
from demur.core.show.results import Shown, plain, threshold_text
from demur.core.stats.intervals import Figure
from demur.core.stats.promises import (
    Guarantee,
    Limited,
    ReturnRules,
    check_limit,
    method_of,
    promised,
    too_few,
    upper_bound,
    within_limit,
)
from demur.core.stats.resampling import Sample
from demur.core.stats.sweep import RATE_ROUNDING, Sweep, Ties, spans
from demur.errors import UsageError
from demur.returns.curves import ErrorReturnCurve, error_return, selective_risk
from demur.returns.evaluate import figure_of
from demur.returns.measures import ErrorAtThreshold, RiskAtThreshold

if TYPE_CHECKING:
    from demur.returns.evaluate import Evaluation

LIMITS: dict[Limited, str] = {
    "error": "error rate",
    "risk": "share of errors among the answers returned",
    "nonreturn": "non-return rate",
}
"""What limits are on, in words."""

FOLDS = 10
"""Parts of the sample for a cost that is cross-fitted."""


def _with_article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


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
    def risk(self) -> float:
        """Wrong answers / answers returned; NaN where nothing is returned."""
        return selective_risk(self.nonreturn, self.error)

    @property
    def printed_threshold(self) -> str:
        """The threshold in as few digits as split the answers the same way."""
        return printed_cutoff(self.threshold, self.below)

    @property
    def short_threshold(self) -> float:
        """The threshold as it is printed, as a number; NaN returns nothing."""
        return self.threshold if math.isnan(self.threshold) else float(self.printed_threshold)


@dataclass(frozen=True, slots=True)
class TieDraw:
    """A draw among ties: from `lower` up to `upper`, which is NaN where nothing is returned for sure, by chance."""

    upper: float
    lower: float
    probability: float


@dataclass(frozen=True, slots=True)
class CrossFit:
    """A cost on inputs that had no part in the choice of the threshold: that of each fold, chosen on the others."""

    value: float
    folds: int
    seed: int


@dataclass(frozen=True, slots=True)
class GroupRates:
    """What a threshold does to one group of inputs; `promised` is None where nothing is promised at all."""

    group: str
    n: int
    promised: bool | None
    nonreturn: float
    error: Figure
    risk: Figure


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Shown):
    """A threshold and what it gives; a threshold of NaN means: return nothing, or nothing for sure with a draw."""

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
    limited: Limited | None = None
    """What the rule limits; None where it minimises a cost."""
    randomise: TieDraw | None = None
    cross_fit: CrossFit | None = None
    groups: tuple[GroupRates, ...] = ()
    too_few: bool = False
    """Whether there are too few inputs for the promise, even if every answer were right."""
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
    def printed_lower(self) -> str:
        """The lower end of a draw among ties, in as few digits as split the answers the same way."""
        return "" if self.randomise is None else curve_cutoff(self.curve, self.randomise.lower)

    @property
    def returns_nothing(self) -> bool:
        """Whether every answer is withheld."""
        return math.isnan(self.threshold) and self.randomise is None

    @property
    def risk(self) -> float:
        """Wrong answers / answers returned; NaN where nothing is returned."""
        return selective_risk(self.nonreturn, self.error)

    @property
    def all_wrong(self) -> bool:
        """Whether there are answers, and none of them is right."""
        return self.curve.floor < 1 and not self.curve.sweep.right.any()

    @property
    def cost(self) -> float | None:
        """Error rate plus cost ratio times non-return rate, where a ratio was given."""
        return None if self.cost_ratio is None else self.error + self.cost_ratio * self.nonreturn

    @property
    def why(self) -> str | None:
        """Why nothing is returned; None where something is."""
        if not self.returns_nothing:
            return None
        if self.curve.floor == 1:
            return "there are no answers to return"
        if self.limited is None:
            return f"{'every answer is wrong, so ' if self.all_wrong else ''}returning nothing is cheapest"
        if self.too_few and self.guarantee is not None:
            limit = f"{_with_article(LIMITS[self.limited])} of at most {percent(self.guarantee.bound)}"
            return f"{self.curve.sweep.n:,} inputs are too few to promise {limit}, even if every answer were right"
        return "no threshold keeps the limit, so nothing is returned"

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain values."""
        columns = ("ratio_from", "ratio_to", "threshold", "nonreturn", "error", "risk")
        rates = ("nonreturn", "error", "risk", "missed_chance", "cost")
        parts = {"randomise": self.randomise, "cross_fitted_cost": self.cross_fit, "guarantee": self.guarantee}
        known = {name: asdict(part) for name, part in parts.items() if part is not None}
        values: dict[str, Any] = plain(
            {
                **{name: getattr(self, name) for name in ("system", "rule", "threshold")},
                **({} if self.why is None else {"why": self.why}),
                **{name: getattr(self, name) for name in rates},
                "guarantee": None,
                **known,
                **({"groups": [_group_values(group) for group in self.groups]} if self.groups else {}),
                "cost_path": [{name: getattr(stretch, name) for name in columns} for stretch in self.path],
                "notes": list(self.notes),
                "warnings": list(self.warnings),
            }
        )
        return values

    def frame(self) -> pl.DataFrame:
        """The cost path as a table."""
        return pl.DataFrame(self.to_dict()["cost_path"])


def _group_values(group: GroupRates) -> dict[str, Any]:
    figures = {"error": group.error.to_dict(), "risk": group.risk.to_dict()}
    return {**{name: getattr(group, name) for name in ("group", "n", "promised", "nonreturn")}, **figures}


Groups = Mapping[str, Sample]
"""The rows of each group of inputs, by its name."""


def aim(
    *,
    cost_ratio: float | None = None,
    max_error: float | None = None,
    max_risk: float | None = None,
    min_accuracy_when_answering: float | None = None,
    max_nonreturn: float | None = None,
    delta: float | None = None,
    ties: Ties = "together",
) -> Callable[..., Choice]:
    """What chooses a threshold from a sample, for the one aim that is given."""
    limits: dict[str, tuple[Limited, float | None]] = {
        "`max_error`": ("error", max_error),
        "`max_risk`": ("risk", max_risk),
        "`min_accuracy_when_answering`": ("risk", min_accuracy_when_answering),
        "`max_nonreturn`": ("nonreturn", max_nonreturn),
    }
    asked = {"`cost_ratio`": cost_ratio, **{name: value for name, (_, value) in limits.items()}}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise UsageError(
            "choose by exactly one of a cost ratio (`cost_ratio`), a limit on errors among all inputs (`max_error`) or "
            "among the answers returned (`max_risk`, or `min_accuracy_when_answering` in other words) and a limit on "
            f"non-returns (`max_nonreturn`); `delta` makes a limit a promise; got {' and '.join(given) or 'none'}"
        )
    if cost_ratio is not None:
        if delta is not None:
            raise UsageError("`delta` goes with a limit: it is the chance that a promised rate is exceeded")
        if ties != "together":
            raise UsageError("`ties` goes with a limit: of all rules, draws included, a threshold is cheapest")
        return partial(threshold_by_cost, ratio=cost_ratio)
    of, most = limits[given[0]]
    assert most is not None
    if min_accuracy_when_answering is not None:
        if not 0 <= most <= 1:
            raise UsageError(f"an accuracy lies in [0, 1], such as 0.95; got {most:g}")
        rule = _rule_words(f"at least {most:g} of the answers returned right", delta)
        return partial(threshold_by_limit, of="risk", most=1 - most, delta=delta, ties=ties, rule=rule)
    return partial(threshold_by_limit, of=of, most=most, delta=delta, ties=ties)


def threshold_by_cost(
    sample: Sample,
    ratio: float,
    *,
    groups: Groups = MappingProxyType({}),
    level: float = 0.95,
    name: str = "system",
) -> Choice:
    """The cutoff that minimises error rate + ratio * non-return rate; among equals the one that returns more.

    `ratio` is what a non-return costs over what an error costs. At 1 withholding never pays, so all is returned.

    >>> from demur.core.stats.resampling import Rows
    >>> sample = Sample(Rows.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False]))
    >>> threshold_by_cost(sample, 0.5).threshold
    0.8
    """
    if not 0 <= ratio <= 1:
        raise UsageError(
            f"the cost ratio must be at least 0 and at most 1; got {ratio:g}. It is what a non-return costs over what "
            "an error costs: when a non-return costs as much as an error, withholding an answer never pays, and a "
            "negative cost would reward silence"
        )
    curve = error_return(sample.sweep, name=name)
    path = cost_path(curve)
    best = next(stretch for stretch in path if stretch.ratio_from <= ratio <= stretch.ratio_to)
    place = int(np.searchsorted(curve.nonreturn, best.nonreturn)) if ratio < 1 else 0
    choice = _choice(curve, ReturnRules.of(sample.sweep), place, f"cost ratio {ratio:g}", cost_ratio=ratio)
    rates = group_rates(groups, choice.threshold, level=level)
    return replace(choice, cross_fit=cross_fitted_cost(sample, ratio), groups=rates)


def threshold_by_nonreturn(sample: Sample, most: float, *, delta: float | None = None, name: str = "system") -> Choice:
    """The cutoff with the fewest errors among those that withhold at most `most` of the inputs."""
    return threshold_by_limit(sample, "nonreturn", most, delta=delta, name=name)


def threshold_by_error(sample: Sample, most: float, *, delta: float | None = None, name: str = "system") -> Choice:
    """The cutoff that returns most while wrong answers are at most a share `most` of all inputs.

    Without `delta` the rate in this sample is meant, and nothing is promised about new data. With `delta` the true
    rate is under the limit with probability 1 - delta: thresholds are tested from the strictest on, each at level
    delta, until one fails. The error rate can only rise as the threshold falls, so this order needs no correction
    for having searched (Angelopoulos et al. 2021, fixed-sequence testing; Bates et al. 2021).
    """
    return threshold_by_limit(sample, "error", most, delta=delta, name=name)


def threshold_by_risk(sample: Sample, most: float, *, delta: float | None = None, name: str = "system") -> Choice:
    """The cutoff that returns most while wrong answers are at most a share `most` of the answers returned.

    The risk of the answers returned may rise and fall with the threshold. So with `delta` thresholds are tested in
    order from a few starts, which the confidences alone determine, each with its part of delta (Learn-then-Test,
    Angelopoulos et al. 2021; the aim is that of Geifman and El-Yaniv 2017).

    >>> from demur.core.stats.resampling import Rows
    >>> sample = Sample(Rows.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False]))
    >>> threshold_by_risk(sample, 0.35).threshold, threshold_by_error(sample, 0.35).threshold
    (0.5, 0.5)
    """
    return threshold_by_limit(sample, "risk", most, delta=delta, name=name)


def threshold_by_limit(
    sample: Sample,
    of: Limited,
    most: float,
    *,
    delta: float | None = None,
    ties: Ties = "together",
    groups: Groups = MappingProxyType({}),
    level: float = 0.95,
    name: str = "system",
    rule: str | None = None,
) -> Choice:
    """The rule that keeps a limit: in this sample or, with `delta`, on new inputs but for this chance.

    Limits on errors give the rule that returns most, a limit on non-returns the one that errs least. With `ties`
    "randomise" answers of one confidence may be returned by chance. A promise holds for every one of the `groups` that
    has enough rows for one. `rule` says the limit in other words.
    """
    check_limit(of, most, delta)
    curve = error_return(sample.sweep, name=name)
    if of == "nonreturn" and curve.floor > most + RATE_ROUNDING:
        raise UsageError(f"{name} itself withholds {percent(curve.floor)} of the inputs, more than {percent(most)}")
    if groups and ties != "together":
        raise UsageError("groups are judged at a threshold; leave ties together")
    rules, guarantee = ReturnRules.of(sample.sweep, ties), None
    left_out: tuple[str, ...] = ()
    if delta is None:
        place = within_limit(rules, of, most)
    else:
        drawn = ties != "together"
        rng = np.random.default_rng(sample.seed) if drawn and sample.alike else None
        tested = rules if rng is None else ReturnRules.of(sample.sweep, ties, rng)
        left_out = too_few(groups, of, most, delta)
        covered = [one for key, one in groups.items() if key not in left_out]
        if groups and not covered:
            raise UsageError(f"no group has enough rows to promise that the {LIMITS[of]} is at most {most:g}")
        parts = [(one, tested.at_cutoffs_of(one.sweep, curve.threshold)) for one in covered]
        found = promised(tested, parts or [(sample, tested)], of, most, delta)
        if found is None:
            raise UsageError(
                f"{sample.n:,} inputs are too few to promise {_with_article(LIMITS[of])} of at most {percent(most)}, "
                f"even if {name} returns every answer it has"
            )
        place, starts = found
        upper = upper_bound(sample, tested, place, of, delta) if tested.returned[place] > 0 and not groups else None
        guarantee = Guarantee(most, delta, method_of(sample, of, starts, drawn=drawn), upper, of)
    said = rule or _rule_words(f"{LIMITS[of]} at most {most:g}", delta)
    said += ", in every group" if groups and delta is not None else ""
    choice = _choice(curve, rules, place, said, limited=of, guarantee=guarantee)
    small = None if delta is None else left_out
    few = delta is not None and not groups and bool(too_few({name: sample}, of, most, delta))
    return replace(choice, too_few=few, groups=group_rates(groups, choice.threshold, small, level=level))


def _rule_words(limit: str, delta: float | None) -> str:
    """A limit with what is meant by it: this sample, or new data."""
    if delta is not None:
        return f"{limit} on new data, with probability {1 - delta:g}"
    return limit if limit.startswith(LIMITS["nonreturn"]) else f"{limit} in this sample (no guarantee)"


def group_rates(
    groups: Groups, threshold: float, left_out: tuple[str, ...] | None = None, *, level: float = 0.95
) -> tuple[GroupRates, ...]:
    """What a threshold does to each group, with intervals at this threshold; the group with most errors first.

    `left_out` are the groups that a promise does not cover; None where nothing is promised.
    """
    found = []
    for name, sample in groups.items():
        error, risk = (figure_of(kind(threshold), sample, level) for kind in (ErrorAtThreshold, RiskAtThreshold))
        nonreturn = error_return(sample.sweep).at_threshold(threshold)[0]
        promised = None if left_out is None else name not in left_out
        found.append(GroupRates(name, sample.n, promised, nonreturn, error, risk))
    return tuple(sorted(found, key=lambda one: (-one.error.value, one.group)))


def cross_fitted_cost(sample: Sample, ratio: float, folds: int = FOLDS) -> CrossFit | None:
    """The cost on each of several random parts of the units at the threshold that is cheapest on all others.

    The cost of the threshold that was chosen on the same inputs is too low on average. None where there are fewer units
    than parts.
    """
    if sample.spread.units < folds:
        return None
    parts = sample.folds(folds)  # right by level, wrong by level, withheld, of each part
    size = (parts.shape[1] - 1) // 2
    right, wrong, aside = parts[:, :size], parts[:, size:-1], parts[:, -1:]
    zero = np.zeros((folds, 1))
    fallen = np.concatenate([zero, np.cumsum(wrong, axis=1)], axis=1)
    errors = fallen[:, -1:] - fallen
    withheld = aside + np.concatenate([zero, np.cumsum(right + wrong, axis=1)], axis=1)
    costs = errors + ratio * withheld
    chosen = np.argmin(np.round(costs.sum(axis=0) - costs, 9), axis=1)  # of equals the one that returns more
    return CrossFit(float(costs[np.arange(folds), chosen].sum() / parts.sum()), folds, sample.seed)


def cost_path(curve: ErrorReturnCurve) -> tuple[Stretch, ...]:
    """Best cutoffs for all cost ratios from 0 to 1: the vertices of the curve's lower convex hull.

    A vertex is best for the ratios between the slopes of the hull on its two sides. It is kept with the sweep, as
    several choices ask for it.
    """
    if cost_path not in curve.sweep.values:
        curve.sweep.values[cost_path] = _cost_path(curve)
    path: tuple[Stretch, ...] = curve.sweep.values[cost_path]
    return path


def _cost_path(curve: ErrorReturnCurve) -> tuple[Stretch, ...]:
    places, withheld, wrong = _near_hull(curve.sweep)
    kept = _lower_hull(withheld, wrong)
    vertices, withheld, wrong = places[kept], withheld[kept], wrong[kept]
    slopes = np.diff(wrong) / -np.diff(withheld) + 0.0
    left, right = np.concatenate([[1.0], slopes]), np.concatenate([slopes, [0.0]])
    x, y = curve.nonreturn[vertices], curve.error[vertices]
    return tuple(
        Stretch(float(low), float(high), float(curve.threshold[place]), float(at), float(error), _below(curve, place))
        for place, at, error, low, high in zip(vertices, x, y, right, left, strict=True)
        if high > low
    )


def _near_hull(sweep: Sweep) -> tuple[NDArray[np.int64], Array, Array]:
    """Places of cutoffs, all vertices of the lower convex hull among them, with what they withhold and return wrongly.

    A vertex of the whole is one of its part of the curve, so parts are thinned one by one. Sums of weights are whole
    numbers where rows count alike, so that slopes are exact.
    """
    pieces = [(np.zeros(1, np.int64), np.zeros(1), np.zeros(1))]
    answers = errors = 0.0
    for part in spans(sweep.threshold.size):
        withheld = np.cumsum(np.append(answers, np.add(sweep.right[part], sweep.wrong[part], dtype=np.float64)))
        wrong = np.cumsum(np.append(errors, sweep.wrong[part]))
        kept = _thinned(withheld, -wrong)[1:]  # the first ends the part before
        pieces.append((part.start + kept, withheld[kept], wrong[kept]))
        answers, errors = withheld[-1], wrong[-1]
    places, every_withheld, every_wrong = (np.concatenate(several) for several in zip(*pieces, strict=True))
    return places, every_withheld, errors - every_wrong


def _below(curve: ErrorReturnCurve, place: int) -> float:
    """The highest confidence below a cutoff."""
    return float(curve.sweep.highest[place - 1]) if place > 0 else float("-inf")


def _lower_hull(x: Array, y: Array) -> NDArray[np.int64]:
    """Places of the lower convex hull of points in rising x (Andrew's monotone chain)."""
    hull: list[int] = []
    for place in _thinned(x, y).tolist():
        while len(hull) > 1 and _turns_right(x, y, hull[-2], hull[-1], place):
            hull.pop()
        hull.append(place)
    return np.array(hull)


def _thinned(x: Array, y: Array) -> NDArray[np.int64]:
    """Places of points without those that lie on or above the line between their neighbours: no vertex is among them.

    Of points of one x the first is kept.
    """
    left = np.flatnonzero(np.diff(x, prepend=-1.0) > 0)
    size = 0
    while left.size != size:
        size = left.size
        vertex = np.ones(size, dtype=np.bool_)
        vertex[1:-1] = ~_turns_right(x, y, left[:-2], left[1:-1], left[2:])
        left = left[vertex]
    return left


def _turns_right(x: Array, y: Array, one: Any, two: Any, three: Any) -> Any:
    return (x[two] - x[one]) * (y[three] - y[one]) <= (y[two] - y[one]) * (x[three] - x[one])


def _choice(
    curve: ErrorReturnCurve,
    rules: ReturnRules,
    at: int,
    rule: str,
    *,
    cost_ratio: float | None = None,
    guarantee: Guarantee | None = None,
    limited: Limited | None = None,
) -> Choice:
    place, probability = int(rules.place[at]), float(rules.probability[at])
    draw, rates = None, ("nonreturn", "error", "missed_chance")
    values: dict[str, Any] = {name: float(getattr(curve, name)[place]) for name in ("threshold", *rates)}
    if probability > 0:  # of the next lower confidence a share is returned too
        draw = TieDraw(values["threshold"], float(curve.threshold[place - 1]), probability)
        for name in rates:
            values[name] += probability * (float(getattr(curve, name)[place - 1]) - values[name])
    values |= {"cost_ratio": cost_ratio, "guarantee": guarantee, "path": cost_path(curve)}
    return Choice(curve.name, rule, curve=curve, limited=limited, randomise=draw, **values)
