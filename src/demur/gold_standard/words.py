"""What is said of a study against a gold standard: verdicts, claims, numbers with their units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from demur.core.show.numbers import listed, p_value, percent, short, with_interval
from demur.core.stats.intervals import Figure
from demur.gold_standard.impurity import UNDECIDED, ComponentAnalysis, Effect, Impurity, PairVerdict, XInterval
from demur.gold_standard.study import GoldStudy
from demur.gold_standard.trials import Trials

NumberFormat = Callable[[float], str]


def whole_percent(value: float) -> str:
    """A share in whole percent.

    >>> whole_percent(0.2534)
    '25 %'
    """
    return f"{100 * value:.0f} %"


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
    whole: bool = False
    """Whether x is written in whole percent."""

    @classmethod
    def of(cls, trials: Trials) -> Units:
        """Rates in percent, anything else as it is; x is a rate if its name says so and it lies between 0 and 1."""
        share = bool(_SHARE.search(trials.x_name)) and trials.x.min() >= 0 and trials.x.max() <= 1
        return cls(trials.x_name, trials.y_name, share, trials.kind != "scores")

    @property
    def x(self) -> NumberFormat:
        """How a value of x is written."""
        return (whole_percent if self.whole else percent) if self.x_percent else short

    @property
    def y(self) -> NumberFormat:
        """How a performance is written."""
        return percent if self.y_percent else short

    def span(self, low: float, high: float) -> str:
        """A range of x."""
        return f"{self.x(low)} to {self.x(high)} {self.x_name}"


ALL_BUT = 0.9
"""Part of what is possible from which on an interval says nothing."""


def says_nothing(shown: Figure, most: float) -> bool:
    """Whether the interval of a figure between 0 and `most` holds nearly all that is possible.

    >>> says_nothing(Figure(0.1, 5e-5, 0.996), 1.0), says_nothing(Figure(0.1, 0.05, 0.2), 1.0)
    (True, False)
    """
    return bool(min(shown.high, most) - max(shown.low, 0.0) >= ALL_BUT * most)


def figure(shown: Figure, write: NumberFormat = short, *, most: float | None = None, unit: str = "") -> str:
    """A figure with its interval and unit; of a figure up to `most`, whether the interval says nothing.

    >>> figure(Figure(0.1, 5e-5, 0.996), most=1.0), figure(Figure(12.0, 11.0, 13.0), unit="euros")
    ('0.1 (interval 5e−05 to 0.996 says nothing)', '12 (11 to 13) euros')
    """
    if not shown.defined:
        return f"undefined ({shown.why})" if shown.why else "undefined"
    if most is not None and says_nothing(shown, most):
        return f"{write(shown.value)} (interval {write(shown.low)} to {write(shown.high)} says nothing)"
    text = with_interval(shown.value, shown.low, shown.high, write=write, missing="no interval")
    return f"{text} {unit}" if unit else text


def greatest_mass(study: GoldStudy) -> float | None:
    """The greatest impurity mass that is possible; None for a metric without an upper bound."""
    trials, x_range = study.trials, study.x_range
    return None if trials.upper is None else (trials.upper - trials.lower) * x_range.width


def _relative(study: GoldStudy, units: Units) -> list[str]:
    """What may be compared between ranges and studies, unlike masses; one system says it in its verdict."""
    known = [one for one in study.impurities if one.relative.defined]
    if len(study.impurities) < 2 or not known:
        return []
    each = listed([f"{one.system} {figure(one.relative, percent, most=1.0)}" for one in known])
    return [f"As a share of the gold standard's area over {units.span(study.x_range.low, study.x_range.high)}: {each}."]


def claim(study: GoldStudy) -> str:
    """What the figures of a study show, as their title says it.

    Which system is closer to the gold standard and where; of one system, where it is worse.
    """
    units, gold = Units.of(study.trials), study.gold.name
    x = replace(units, whole=True)
    if len(study.systems) == 1:
        one = study.impurities[0]
        worse = _places([part for part in one.ranges if part.holds == "below gold"], one.ranges, x)
        if not worse:
            return f"{one.system} is nowhere shown to be worse than {gold}"
        return f"{one.system} is worse than {gold} {listed(worse)}"
    decided = [one for one in study.nearest if one.holds != UNDECIDED]
    if not decided:
        return (
            f"No system is shown to be closer to {gold} than {'the other' if len(study.systems) == 2 else 'all others'}"
        )
    if len(decided) > MOST_CLAIMS:
        return f"Which system is closest to {gold} changes over {len(decided)} ranges of {units.x_name}"
    (first, where), *rest = zip(decided, _places(decided, study.nearest, x), strict=True)
    return ", ".join([f"{first.holds} is closer to {gold} {where}", *(f"{one.holds} {where}" for one, where in rest)])


MOST_CLAIMS = 4
"""Ranges that a title names one by one."""


def verdict(study: GoldStudy) -> list[str]:
    """Which system to prefer where, and how near the gold standard each is."""
    units = Units.of(study.trials)
    if len(study.systems) == 1:
        return _alone(study.impurities[0], units, greatest_mass(study))
    several = len(study.systems) > MOST_IN_PAIRS
    pairs = [] if several else [sentence for pair in study.pairs for sentence in pair_sentences(pair, units)]
    text = _of_several(study, units) if several else pairs
    return text + [sentence for one in study.impurities for sentence in _above(one, units)]


def study_sentences(study: GoldStudy) -> list[str]:
    """All that matters of a study, the verdict first."""
    units, missed = Units.of(study.trials), study.complexity
    complexity = [
        f"Intellectual complexity {figure(missed, most=1.0)}: on average over {units.span(*study.complexity_range)} "
        f"the gold standard itself misses {percent(missed.value)} of what is possible."
    ]
    if not missed.defined:
        complexity = []
    settled = [f"{one.performer}: {one.words()}" for one in study.convergence if one.needed]
    if study.convergence and not settled:
        settled = ["All curves have settled: one more subject would hardly move any of them."]
    return [
        *verdict(study),
        *_relative(study, units),
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
        *(() if cost is None else (f"cost: {cost.words()}, in {cost.unit_name}", *cost.notes)),
        *(() if study.wizards is None else study.wizards.notes),
        f"every integral is over {units.span(study.x_range.low, study.x_range.high)}, which all curves cover; "
        f"complexity over {'the same' if study.options.within else f'the trials of {study.gold.name}'}; "
        "nothing is extrapolated",
        f"{percent(options.level)} bands and intervals: subjects resampled {options.replicates:,} times (seed "
        f"{options.seed}), standard error times Student's t",
    )


def _of_several(study: GoldStudy, units: Units) -> list[str]:
    """Which of many systems is nearest where; each two of them are in the table."""
    best = [one for one in study.nearest if one.holds != UNDECIDED]
    if best:
        places = zip(best, _places(best, study.nearest, units), strict=True)
        text = (
            f"Significantly nearer the gold standard than all others: {listed([f'{a.holds} {b}' for a, b in places])}."
        )
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
        places = _places(decided, pair.ranges, units)
        preferred = listed([f"{one.holds} {where}" for one, where in zip(decided, places, strict=True)])
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


def _places(some: Sequence[XInterval], among: Sequence[XInterval], units: Units) -> list[str]:
    """Stretches as one says them, the first with the name of x."""
    return [_where(one, among, units, named=not place) for place, one in enumerate(some)]


def _where(one: XInterval, among: Sequence[XInterval], units: Units, *, named: bool = False) -> str:
    """A stretch as one says it: below, above, between, or throughout; `named` with the name of x."""
    name = f" {units.x_name}" if named else ""
    first, last = one == among[0], one == among[-1]
    if first and last:
        return f"at every {units.x_name} from {units.x(one.low)} to {units.x(one.high)}"
    if first:
        return f"below {units.x(one.high)}{name}"
    if last:
        return f"above {units.x(one.low)}{name}"
    return f"between {units.x(one.low)} and {units.x(one.high)}{name}"


def _alone(one: Impurity, units: Units, most: float | None) -> list[str]:
    below = [stretch for stretch in one.ranges if stretch.holds == "below gold"]
    text = [
        f"{one.system}: impurity mass {figure(one.mass, most=most)}, "
        f"{figure(one.relative, percent, most=1.0)} of the gold standard's area."
    ]
    if below:
        places = listed(_places(below, one.ranges, units))
        text.append(f"It is significantly worse than the gold standard {places}.")
    else:
        text.append("It is nowhere significantly worse than the gold standard.")
    return text + _above(one, units)


def _above(one: Impurity, units: Units) -> list[str]:
    better = [stretch for stretch in one.ranges if stretch.holds == "above gold"]
    if not better:
        return []
    places = listed(_places(better, one.ranges, units))
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
    unit = weighted_unit(known[0].unit, units)
    each = listed([f"{one.system} {figure(one.average, unit=unit)}" for one in known])
    sentences = [f"Average marginal cost{where}: {each}."]
    if study.cheapest is not None:
        one, apart = study.cheapest
        shown = "is the cheapest;" if apart.low > 0 else "comes out cheapest, but that is not shown:"
        sentences.append(f"{one.system} {shown} the next costs {figure(apart, unit=unit)} more.")
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


def weighted_unit(unit: str, units: Units) -> str:
    """The unit of a cost that weighs a distance in performance."""
    return f"{unit} × {units.y_name}"
