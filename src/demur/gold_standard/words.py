"""What studies against a gold standard show, in sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.core.show.numbers import listed, p_value, percent, short, with_interval
from demur.core.stats.intervals import Figure
from demur.gold_standard.impurity import UNDECIDED, ComponentAnalysis, Effect, Impurity, PairVerdict, XInterval
from demur.gold_standard.trials import Trials

if TYPE_CHECKING:
    from demur.gold_standard.study import GoldStudy

NumberFormat = Callable[[float], str]

MOST_NAMED = 5
"""Wizards who stand apart that are named."""

MOST_IN_PAIRS = 3
"""Systems up to which each pair has sentences of its own."""

_SHARE = re.compile(r"(^|[_ ])(wer|cer|ser|rate|share|error|errors)($|[_ ])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Units:
    """How x and the performance of a study are written."""

    x_name: str
    y_name: str
    x_percent: bool
    y_percent: bool

    @classmethod
    def of(cls, trials: Trials) -> Units:
        """Rates in percent, anything else as it is; x is a rate if its name says so and it lies between 0 and 1."""
        share = bool(_SHARE.search(trials.x_name)) and trials.x.min() >= 0 and trials.x.max() <= 1
        return cls(trials.x_name, trials.y_name, share, trials.kind != "scores")

    @property
    def x(self) -> NumberFormat:
        """How a value of x is written."""
        return percent if self.x_percent else short

    @property
    def y(self) -> NumberFormat:
        """How a performance is written."""
        return percent if self.y_percent else short

    def span(self, low: float, high: float) -> str:
        """A range of x."""
        return f"{self.x(low)} to {self.x(high)} {self.x_name}"


def figure(shown: Figure, write: NumberFormat = short) -> str:
    """A figure with its interval."""
    if not shown.defined:
        return f"undefined ({shown.why})" if shown.why else "undefined"
    return with_interval(shown.value, shown.low, shown.high, write=write, missing="no interval")


def verdict(study: GoldStudy) -> list[str]:
    """Which system to prefer where, and how near the gold standard each is."""
    units = Units.of(study.trials)
    if len(study.systems) == 1:
        return _alone(study.impurities[0], units)
    several = len(study.systems) > MOST_IN_PAIRS
    pairs = [] if several else [sentence for pair in study.pairs for sentence in pair_sentences(pair, units)]
    text = _of_several(study, units) if several else pairs
    return text + [sentence for one in study.impurities for sentence in _above(one, units)]


def study_sentences(study: GoldStudy) -> list[str]:
    """All that matters of a study, the verdict first."""
    units, family, missed = Units.of(study.trials), study.gold.fit.family, study.complexity
    complexity = [
        f"Intellectual complexity {figure(missed)}: on average over {units.span(family.low, family.high)} "
        f"the gold standard itself misses {percent(missed.value)} of what is possible."
    ]
    if not missed.defined:
        complexity = []
    settled = [f"{one.performer}: {one.words()}" for one in study.convergence if one.needed]
    if study.convergence and not settled:
        settled = ["All curves have settled: one more subject would hardly move any of them."]
    return [
        *verdict(study),
        *complexity,
        *cost_sentences(study, units),
        *(sentence for one in study.components for sentence in component_sentences(one)),
        *_agreement(study, units),
        *settled,
    ]


def study_notes(study: GoldStudy) -> tuple[str, ...]:
    """How a study was read and computed."""
    units, cost, options = Units.of(study.trials), study.options.cost, study.options
    return (
        *study.fit_notes,
        *(note for one in study.components for note in one.notes),
        *(() if cost is None else (f"cost: {cost.words()}", *cost.notes)),
        *(() if study.wizards is None else study.wizards.notes),
        f"every integral is over {units.span(study.x_range.low, study.x_range.high)}, which all curves cover; "
        f"complexity over the trials of {study.gold.name}; nothing is extrapolated",
        f"{percent(options.level)} bands and intervals: subjects resampled {options.replicates:,} times (seed "
        f"{options.seed}), standard error times Student's t",
    )


def _of_several(study: GoldStudy, units: Units) -> list[str]:
    """Which of many systems is nearest where; each two of them are in the table."""
    best = [one for one in study.nearest if one.holds != UNDECIDED]
    if best:
        places = listed([f"{one.holds} {_where(one, study.nearest, units)}" for one in best])
        text = f"Significantly nearer the gold standard than all others: {places}."
    else:
        text = "No system is significantly nearer the gold standard than all others, at any place."
    least = min(study.impurities, key=lambda one: one.mass.value)
    return [text, f"The smallest impurity mass, shown or not, is that of {least.system}, {figure(least.mass)}."]


def pair_sentences(pair: PairVerdict, units: Units) -> list[str]:
    """Which of two systems is nearer the gold standard, and where."""
    decided = [one for one in pair.ranges if one.holds != UNDECIDED]
    winners = {one.holds for one in decided}
    if not winners:
        text = f"{pair.a} and {pair.b} are not significantly different in their distance from the gold standard."
    else:
        preferred = listed([f"{one.holds} {_where(one, pair.ranges, units)}" for one in decided])
        left = [_where(one, pair.ranges, units) for one in pair.ranges if one.holds == UNDECIDED]
        rest = f"; undecided {listed(left)}" if left else ""
        text = f"Of {pair.a} and {pair.b}, by distance from the gold standard, prefer {preferred}{rest}."
    shown = [one for one in pair.crossings if one.shown]
    places = [f"{units.x(one.x)} (somewhere from {units.x(one.low)} to {units.x(one.high)})" for one in shown]
    crossing = [f"Their impurities cross at {listed(places)}."] if places else []
    apart = pair.mass_difference
    if pair.p >= 0.05:
        masses = f"masses differ by {figure(apart)}, {p_value(pair.p)}"
        return [text, *crossing, f"On the whole neither is significantly nearer: {masses}."]
    less = pair.a if apart.value < 0 else pair.b
    smaller = apart if apart.value > 0 else Figure(-apart.value, -apart.high, -apart.low)
    nearer = f"On the whole {less} is nearer: its impurity mass is smaller by {figure(smaller)}, {p_value(pair.p)}."
    return [text, *crossing, nearer]


def _where(one: XInterval, among: Sequence[XInterval], units: Units) -> str:
    """A stretch as one says it: below, above, between, or throughout."""
    first, last = one == among[0], one == among[-1]
    if first and last:
        return f"at every {units.x_name} from {units.x(one.low)} to {units.x(one.high)}"
    if first:
        return f"below {units.x(one.high)} {units.x_name}"
    if last:
        return f"above {units.x(one.low)}"
    return f"between {units.x(one.low)} and {units.x(one.high)}"


def _alone(one: Impurity, units: Units) -> list[str]:
    below = [stretch for stretch in one.ranges if stretch.holds == "below gold"]
    text = [
        f"{one.system}: impurity mass {figure(one.mass)}, {figure(one.relative, percent)} of the gold standard's area."
    ]
    if below:
        places = listed([_where(stretch, one.ranges, units) for stretch in below])
        text.append(f"It is significantly worse than the gold standard {places}.")
    else:
        text.append("It is nowhere significantly worse than the gold standard.")
    return text + _above(one, units)


def _above(one: Impurity, units: Units) -> list[str]:
    better = [stretch for stretch in one.ranges if stretch.holds == "above gold"]
    if not better:
        return []
    places = listed([_where(stretch, one.ranges, units) for stretch in better])
    return [
        f"{one.system} does better than the gold standard {places}: "
        "is it an upper bound at all? The impurity counts this as distance."
    ]


def cost_sentences(study: GoldStudy, units: Units) -> list[str]:
    """What it is worth to bring systems nearer the gold standard, and which is the cheaper."""
    known = [one for one in study.costs if one.average.defined]
    text = [
        f"{one.system}: no average marginal cost, since {one.average.why}." for one in study.costs if one not in known
    ]
    if not known:
        return text
    gain = known[0].gain
    where = "" if gain is None else f" for the gain from {units.y(gain[0])} to {units.y(gain[1])}"
    each = listed([f"{one.system} {figure(one.average)}" for one in known])
    sentences = [f"Average marginal cost{where}: {each}."]
    if study.cheapest is not None:
        one, apart = study.cheapest
        shown = "is the cheapest;" if apart.low > 0 else "comes out cheapest, but that is not shown:"
        sentences.append(f"{one.system} {shown} the next costs {figure(apart)} more.")
    return sentences + text


def component_sentences(found: ComponentAnalysis) -> list[str]:
    """What the components of a system do to its distance from the gold standard."""
    factors = [effect for effect in found.effects if effect.kind != "lesion"]
    known = [_effect(effect, found.system) for effect in factors if effect.change.defined]
    unknown = [" × ".join(effect.components) for effect in factors if not effect.change.defined]
    unclear = [f"{found.system}: the combinations that were run do not separate {listed(unknown)}."] if unknown else []
    return known + unclear


def _effect(effect: Effect, system: str) -> str:
    shown = effect.change.low > 0 or effect.change.high < 0
    if effect.kind == "interaction":
        name = " and ".join(effect.components)
        direction = "help more together than apart" if effect.change.value < 0 else "help less together than apart"
        return f"{name} {direction if shown else 'are not shown to act on each other'}: {figure(effect.change)}."
    (name,) = effect.components
    direction = (
        "brings it nearer the gold standard" if effect.change.value < 0 else "takes it away from the gold standard"
    )
    text = direction if shown else "is not shown to matter on average"
    return f"{system}: {name} {text}, change of impurity mass {figure(effect.change)}."


def _agreement(study: GoldStudy, units: Units) -> list[str]:
    found = study.wizards
    if found is None or found.consistent is None:
        return []
    spread = f"{100 * found.departure.tau:.2g} points" if units.y_percent else short(found.departure.tau)
    named = list(found.apart[:MOST_NAMED])
    if len(found.apart) > MOST_NAMED:
        named.append(f"{len(found.apart) - MOST_NAMED:,} more")
    apart = f"; {listed(named)} {'stands' if len(found.apart) == 1 else 'stand'} apart" if named else ""
    shown = "no inconsistency is shown" if found.consistent else "they do not make one gold standard"
    beyond = f"beyond chance ({p_value(found.departure.p)})"
    return [f"Wizards differ by a standard deviation of {spread} {beyond}{apart}: {shown}."]
