"""How studies against a gold standard are shown: tables, figures, data and the JSON document."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from demur.core.show.html import paragraphs, pictured
from demur.core.show.numbers import listed, p_value, percent, short, tabled_p, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.core.stats.intervals import Figure
from demur.gold_standard.impurity import UNDECIDED, ComponentAnalysis, Effect, Impurity, PairVerdict, XInterval
from demur.gold_standard.planning import GoldPlan
from demur.gold_standard.study import Domain, GoldStudies, GoldStudy, study_values
from demur.gold_standard.trials import Trials
from demur.gold_standard.wizards import WizardAgreement

if TYPE_CHECKING:
    from demur.gold_standard.study import GoldStudy

PLACES = 101
"""Places of a curve in a figure or a file."""

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


def curve_frame(study: GoldStudy) -> pl.DataFrame:
    """Every curve over the range of its own trials: `performer, role, x, y, low, high`."""
    named = [(one, pl.lit(one.name).alias("performer"), pl.lit(one.role).alias("role")) for one in study.performers]
    return pl.concat([one.curve(PLACES).select(*who, pl.all()) for one, *who in named])


def point_frame(study: GoldStudy) -> pl.DataFrame:
    """Means of trials by ranges of x: `performer, role, x, y, n`."""
    rows = []
    for one, residuals in zip(study.performers, study.residuals, strict=True):
        counts = one.fit.counts
        totals, sizes = counts.whole
        for part in residuals.bins:
            inside = (counts.places >= part.start) & (counts.places <= part.end)
            n = float(sizes[inside].sum())
            rows.append((one.name, one.role, part.x, float(counts.scale.performance(totals[inside].sum() / n)), n))
    return pl.DataFrame(rows, schema=["performer", "role", "x", "y", "n"], orient="row")


def impurity_frame(study: GoldStudy) -> pl.DataFrame:
    """Every system's distance from the gold standard: `system, x, impurity, low, high, signed`."""
    names = ("x", "impurity", "low", "high", "signed")
    frames = [pl.DataFrame({name: getattr(one, name) for name in names}) for one in study.impurities]
    systems = [pl.lit(one.system).alias("system") for one in study.impurities]
    return pl.concat([frame.select(system, *names) for frame, system in zip(frames, systems, strict=True)])


def range_frame(study: GoldStudy) -> pl.DataFrame:
    """Which system is nearest the gold standard where, shown against every other one: `from, to, nearer`."""
    rows = [{"from": one.low, "to": one.high, "nearer": one.holds} for one in study.nearest]
    return pl.DataFrame(rows, schema={"from": pl.Float64, "to": pl.Float64, "nearer": pl.String})


def cost_frame(study: GoldStudy) -> pl.DataFrame:
    """The cost function: `performance, amount, kind` (line or point)."""
    cost = study.options.cost
    assert cost is not None
    scale = study.gold.fit.counts.scale
    if cost.points is not None:
        rows = [(p, amount, "point") for p, amount in cost.points]
        return pl.DataFrame(rows, schema=["performance", "amount", "kind"], orient="row")
    values = np.concatenate([one.fit(study.x_range.x) for one in study.performers])
    low = scale.lower if scale.upper is not None else float(values.min())
    high = scale.upper if scale.upper is not None else float(values.max())
    p = np.linspace(low, high, PLACES)
    return pl.DataFrame({"performance": p, "amount": cost(p)}).with_columns(pl.lit("line").alias("kind"))


def cost_marks(study: GoldStudy) -> pl.DataFrame:
    """The performances of each system over the stretch that its cost is taken of: `system, from, to`."""
    rows = []
    for system, cost in zip(study.systems, study.costs, strict=True):
        if cost.spans:
            values = np.concatenate([system.fit(np.linspace(*span, PLACES)) for span in cost.spans])
            rows.append({"system": system.name, "from": float(values.min()), "to": float(values.max())})
    schema = {"system": pl.String, "from": pl.Float64, "to": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def effect_frame(found: ComponentAnalysis) -> pl.DataFrame:
    """Changes of impurity mass: `effect, value, low, high, kind`; undefined ones are left out."""
    rows = []
    for effect in found.effects:
        if effect.change.defined:
            name = effect_name(effect.kind, effect.components, effect.others)
            rows.append((name, effect.change.value, effect.change.low, effect.change.high, effect.kind))
    schema = {"effect": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def effect_name(kind: str, components: tuple[str, ...], others: tuple[str, ...] | None) -> str:
    """How an effect is called.

    >>> effect_name("lesion", ("confirm",), ("spell",)), effect_name("interaction", ("confirm", "spell"), None)
    ('without confirm (spell on)', 'confirm × spell')
    """
    if kind == "lesion":
        rest = f"{'+'.join(others)} on" if others else "nothing else on"
        return f"without {components[0]} ({rest})"
    return " × ".join(components)


def residual_frame(study: GoldStudy) -> pl.DataFrame:
    """What the curves leave of the trials: `performer, x, residual, low, high, n`."""
    return pl.concat([one.frame() for one in study.residuals])


_MASSES = ("impurity mass", "impurity mass / gold", "mean distance")


def performer_table(study: GoldStudy) -> ResultTable:
    """Who performed, how well, and how far from the gold standard."""
    units = Units.of(study.trials)
    most = _most(study)
    masses = [
        (
            figure(one.mass, most=most),
            figure(one.relative, percent, most=1.0),
            figure(one.mean, units.y, most=None if most is None else most / study.x_range.width),
            figure(one.below, most=most),
            figure(one.above, most=most),
        )
        for one in study.impurities
    ]
    rows = tuple(
        (one.name, one.role, f"{one.subjects:,}", f"{one.trials:,}", figure(mean, units.y), *mass)
        for one, mean, mass in zip(study.performers, study.means, [("–",) * 5, *masses], strict=True)
    )
    title, mean = f"Performers, over {units.span(study.x_range.low, study.x_range.high)}", f"mean {study.trials.y_name}"
    brief = tuple((row[0], row[4], row[5], row[6]) for row in rows)
    return ResultTable(
        title,
        ("performer", "role", "subjects", "trials", mean, *_MASSES, "below gold", "above gold"),
        rows,
        brief=ResultTable(title, ("performer", mean, *_MASSES[:2]), brief),
    )


def fit_table(study: GoldStudy) -> ResultTable:
    """The curves, and how well they fit."""
    rows = tuple(
        (
            one.name,
            one.fit.kind,
            one.fit.reason,
            short(one.r2),
            short(one.deviance_explained),
            found.words() or "no misfit shown",
            f"{'no' if normal.shown else 'no departure shown'}, {p_value(normal.p)}",
        )
        for one, found, normal in zip(study.performers, study.residuals, study.normality, strict=True)
    )
    columns = ("performer", "curve", "because", "R²", "deviance explained", "residuals", "normal residuals")
    return ResultTable("Curves", columns, rows)


def pair_table(study: GoldStudy) -> ResultTable:
    """Systems by their distance from the gold standard, two at a time."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            f"{pair.a} / {pair.b}",
            "; ".join(f"{one.holds} {units.x(one.low)} to {units.x(one.high)}" for one in pair.ranges),
            ", ".join(f"{units.x(one.x)}{'' if one.shown else ' (not shown)'}" for one in pair.crossings) or "none",
            figure(pair.mass_difference),
            tabled_p(pair.p),
        )
        for pair in study.pairs
    )
    return ResultTable(
        "Nearer the gold standard",
        ("systems", f"by {study.trials.x_name}", "crossing", "difference of mass", "p"),
        rows,
    )


def cost_table(study: GoldStudy) -> ResultTable:
    """What it is worth to bring each system nearer."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            one.system,
            ", ".join(f"{units.x(low)} to {units.x(high)}" for low, high in one.spans) or "nowhere",
            figure(one.average, unit=_weighted_unit(one.unit, units)),
            figure(one.difference, unit=one.unit),
        )
        for one in study.costs
    )
    return ResultTable(
        "Cost", ("system", study.trials.x_name, "average marginal cost", "average cost difference"), rows
    )


def _weighted_unit(unit: str, units: Units) -> str:
    """The unit of a cost that weighs a distance in performance."""
    return f"{unit} × {units.y_name}"


def component_tables(found: ComponentAnalysis) -> tuple[ResultTable, ...]:
    """The combinations of components that were run, and what each component does."""
    masses = tuple(("+".join(sorted(on)) or "none", figure(mass)) for on, mass in found.masses)
    effects = tuple(
        (effect.kind, effect_name(effect.kind, effect.components, effect.others), figure(effect.change))
        for effect in found.effects
    )
    return (
        ResultTable(f"Combinations of {found.system}", ("components on", "impurity mass"), masses),
        ResultTable("Components", ("kind", "effect", "change of impurity mass"), effects),
    )


def wizard_table(found: WizardAgreement, units: Units) -> ResultTable:
    """Those behind the gold standard, the farthest from the pooled curve first."""
    ordered = sorted(found.wizards, key=lambda one: -abs(one.departure))
    rows = tuple(
        (
            one.name,
            f"{one.n:g}",
            _signed(one.departure, units),
            f"{100 * one.error:.1f} points" if units.y_percent else f"{one.error:.3g}",
            "yes" if one.apart else "no",
        )
        for one in ordered[:50]
    )
    return ResultTable("Wizards", ("wizard", "trials", "departure", "standard error", "apart"), rows)


def _signed(value: float, units: Units) -> str:
    text = f"{100 * value:+.1f} points" if units.y_percent else f"{value:+.3g}"
    return text.replace("-", "−")


def convergence_table(study: GoldStudy) -> ResultTable:
    """Whether the curves have settled."""
    rows = tuple(
        (one.performer, one.words(), one.collected_words(), "more" if one.needed else "enough")
        for one in study.convergence
    )
    columns = ("performer", "what the last subject did, over random orders", "the last who came", "subjects")
    return ResultTable("Convergence over subjects", columns, rows)


def domain_table(domains: Sequence[Domain]) -> ResultTable:
    """Systems across studies."""
    rows = tuple(
        (one.study, one.system, figure(one.complexity, most=1.0), figure(one.relative, percent, most=1.0))
        for one in domains
    )
    return ResultTable("Across domains", ("study", "system", "complexity", "impurity mass / gold"), rows)


def plan_table(plan: GoldPlan) -> ResultTable:
    """What each design would give."""
    pairs = list(plan.designs[0].power)
    width = percent if plan.percent else short
    rows = tuple(
        (
            str(one.subjects),
            str(one.trials),
            f"± {width(one.half_width)}",
            f"± {width(max(one.worst.values()))}",
            f"± {short(max(one.mass_half_widths.values()))}",
            *(percent(one.power[pair]) for pair in pairs),
        )
        for one in plan.designs
    )
    columns = ("subjects", "trials each", "curve, mean", "curve, worst", "impurity mass")
    return ResultTable("Designs", (*columns, *(f"power, {pair}" for pair in pairs)), rows)


def of_gold(studies: GoldStudies) -> Presentation:
    """How one or more studies are shown; several are held against each other first."""
    if len(studies) == 1:
        return of_study(studies[0])
    parts = tuple(replace(of_study(study), title=study.trials.study) for study in studies)
    return Presentation(
        title="Across domains",
        sentences=tuple(_across(studies)),
        tables=(domain_table(studies.domains),),
        figures=(main_figure(studies),),
        data=studies.frame,
        document=studies.document,
        notes=studies.notes,
        warnings=studies.warnings,
        signatures=tuple(study.signature for study in studies),
        parts=tuple(replace(part, notes=(), warnings=(), signatures=()) for part in parts),
    )


def of_study(study: GoldStudy) -> Presentation:
    """How one study is shown."""
    units = Units.of(study.trials)
    found = [
        performer_table(study),
        *([pair_table(study)] if study.pairs else []),
        *([cost_table(study)] if study.costs else []),
        *(table for one in study.components for table in component_tables(one)),
        fit_table(study),
        *([wizard_table(study.wizards, units)] if study.wizards and len(study.wizards.wizards) > 1 else []),
        *([convergence_table(study)] if study.convergence else []),
    ]
    return Presentation(
        title="How far from the gold standard",
        sentences=tuple(study_sentences(study)),
        tables=tuple(found),
        figures=tuple(_figures(study, units)),
        data=lambda: curve_frame(study),
        document=study_values(study),
        notes=study.notes,
        warnings=study.warnings,
        signatures=(study.signature,),
    )


_CHARTS = "gold_standard.charts."


def benchmark(study: GoldStudy, **options: Any) -> Drawing:
    """The benchmark graph of a study, drawn when it is called."""
    x, y = _axes(study, Units.of(study.trials))
    all_options = {**x, **y, "upper": study.trials.upper, "title": claim(study), **options}
    return drawing(f"{_CHARTS}benchmark.benchmark_chart", curve_frame(study), point_frame(study), **all_options)


def main_figure(studies: GoldStudies, **options: Any) -> Drawing:
    """The benchmark graph of one study, or several studies across domains."""
    if len(studies) == 1:
        return benchmark(studies[0], **options)
    all_options = {"level": studies[0].options.level, **options}
    return drawing(f"{_CHARTS}impurity.domains_chart", studies.frame(), **all_options)


def _axes(study: GoldStudy, units: Units) -> tuple[dict[str, Any], dict[str, Any]]:
    x = {"x": units.x_name, "x_percent": units.x_percent, "level": study.options.level}
    return x, {"y": units.y_name, "percent": units.y_percent}


def _figures(study: GoldStudy, units: Units) -> list[Drawing]:
    x, y = _axes(study, units)
    in_percent = {"percent": units.y_percent}
    charts: list[Drawing] = [
        benchmark(study),
        drawing(
            f"{_CHARTS}impurity.impurity_chart", impurity_frame(study), range_frame(study), **x, **y, title=claim(study)
        ),
    ]
    if study.options.cost is not None:
        marks = cost_marks(study)
        some = marks if marks.height else None
        charts.append(
            drawing(
                f"{_CHARTS}checks.cost_chart",
                cost_frame(study),
                marks=some,
                **y,
                amount=f"amount in {study.options.cost.unit_name}",
            )
        )
    level, effects = study.options.level, [effect_frame(one) for one in study.components]
    charts += [drawing(f"{_CHARTS}impurity.components_chart", one, level=level) for one in effects if one.height]
    charts.append(drawing(f"{_CHARTS}checks.gold_residual_chart", residual_frame(study), **in_percent, **x))
    quantiles = pl.concat([one.frame() for one in study.normality])
    tests = {one.performer: one.p for one in study.normality}
    charts.append(drawing(f"{_CHARTS}checks.normality_chart", quantiles, tests=tests, level=level))
    curves = study.wizards.frame() if study.wizards is not None else pl.DataFrame()
    if curves.height:
        upper = study.trials.upper
        charts.append(
            drawing(f"{_CHARTS}checks.wizards_chart", curves, study.gold.curve(PLACES), upper=upper, **x, **y)
        )
    if study.convergence:
        steps = pl.concat([one.frame() for one in study.convergence])
        tolerance = study.convergence[0].tolerance
        charts.append(drawing(f"{_CHARTS}checks.convergence_chart", steps, tolerance=tolerance, **in_percent))
    return charts


def _across(studies: GoldStudies) -> list[str]:
    known = [study for study in studies if study.complexity.defined]
    sentences = []
    if len(known) > 1:
        ordered = sorted(known, key=lambda study: study.complexity.value)
        easy, hard = ordered[0], ordered[-1]
        sentences.append(
            f"{hard.trials.study} comes out hardest for its gold standard, "
            f"complexity {figure(hard.complexity, most=1.0)}, "
            f"{easy.trials.study} easiest, {figure(easy.complexity, most=1.0)}."
        )
    domains = sorted((one for one in studies.domains if one.relative.defined), key=lambda one: one.relative.value)
    if len(domains) > 1:
        best = domains[0]
        sentences.append(
            f"{best.system} in {best.study} comes out nearest its own gold standard: its impurity mass is "
            f"{figure(best.relative, percent, most=1.0)} of what that achieves."
        )
    return sentences


def plan_figure(plan: GoldPlan, **options: Any) -> Drawing:
    """The widths that designs give, drawn when it is called."""
    labels = {"target": plan.target, "quantity": "half-width of curves", "percent": plan.percent}
    frame = plan.frame()
    pairs = [name for name in frame.columns if name.startswith("power, ")]
    powered = frame.with_columns(power=pl.min_horizontal(pairs)) if pairs else frame
    return drawing("gold_standard.charts.checks.plan_chart", powered, **{**labels, **options})


def of_plan(plan: GoldPlan) -> Presentation:
    """How a plan is shown."""
    advice = plan.words()
    return Presentation(
        title="How many subjects and trials",
        sentences=(f"{advice[0].upper()}{advice[1:]}.",),
        tables=(plan_table(plan),),
        figures=(plan_figure(plan),),
        data=plan.frame,
        document=plan.to_dict(),
        notes=plan.notes,
        warnings=plan.warnings,
    )


register(GoldStudy, chart=lambda study, **options: benchmark(study, **options)(), present=of_study)
register(
    GoldPlan,
    chart=lambda plan, **options: plan_figure(plan, **options)(),
    page=pictured(lambda plan: paragraphs([plan.words()])),
)
register(GoldStudies, chart=lambda studies, **options: main_figure(studies, **options)(), present=of_gold)


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


def _most(study: GoldStudy) -> float | None:
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
        worse = [_where(part, one.ranges, x) for part in one.ranges if part.holds == "below gold"]
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
    first, *rest = decided
    places = [f"{first.holds} is closer to {gold} {_where(first, study.nearest, x, named=True)}"]
    return ", ".join([*places, *(f"{one.holds} {_where(one, study.nearest, x)}" for one in rest)])


MOST_CLAIMS = 4
"""Ranges that a title names one by one."""


def verdict(study: GoldStudy) -> list[str]:
    """Which system to prefer where, and how near the gold standard each is."""
    units = Units.of(study.trials)
    if len(study.systems) == 1:
        return _alone(study.impurities[0], units, _most(study))
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


def _where(one: XInterval, among: Sequence[XInterval], units: Units, *, named: bool = False) -> str:
    """A stretch as one says it: below, above, between, or throughout; `named` with the name of x."""
    name = f" {units.x_name}" if named else ""
    first, last = one == among[0], one == among[-1]
    if first and last:
        return f"at every {units.x_name} from {units.x(one.low)} to {units.x(one.high)}"
    if first:
        return f"below {units.x(one.high)} {units.x_name}"
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
    unit = _weighted_unit(known[0].unit, units)
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
