"""Experiments with dialogues in the loop: what measures of lists say of rewards, and what rejection costs.

`confusion` and `predictors` put the claims of Thomson et al. (2008) on ICE to the test, `thresholds` those of Artstein
(2011) on rejection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.options import Sampling
from demur.core.show.html import drawn
from demur.core.show.numbers import ends, listed, short, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, Step, register, silent
from demur.core.stats.intervals import Figure, quantile
from demur.core.stats.resampling import Draws, Rows, Sample
from demur.errors import DataError
from demur.importers.reading import read_table
from demur.lab.dialogue.channel import ChannelSettings
from demur.lab.dialogue.presentation import mean_figure
from demur.lab.dialogue.simulate import Condition, Simulation, SimulationPlan, simulate_plan
from demur.lab.nbest_experiments import CurveExperiment, dialogues_in
from demur.nbest_lists.evaluate import NBestSettings, evaluate_nbest
from demur.nbest_lists.exploded import ExplodedLists, UnitTotals
from demur.nbest_lists.reward import oracle_curves, reward_curves, rewards
from demur.nbest_lists.table import NBest, NBestReading, nbest, read_nbest
from demur.returns.threshold import threshold_by_cost

QUALITIES = ("good", "flat", "overconfident")
FLOORS = (1e-3, 1e-2, 1e-1)
"""Floors under probabilities: that of the project, and two that forgive more."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What an experiment simulates: managers over channels, the same users in each condition."""

    domain: str = "town"
    managers: tuple[str, ...] = ("state-machine", "belief")
    noise: tuple[float, ...] = (0.0, 0.15, 0.3, 0.45)
    dialogues: int = 100
    qualities: tuple[str, ...] = ("good",)
    lengths: tuple[int, ...] = (5,)
    thresholds: tuple[float, ...] = (0.0,)
    by: str = "acts"
    seed: int = 0
    processes: int | None = None

    def run(self, step: Step = silent) -> Simulation:
        """The dialogues of all combinations."""
        conditions = tuple(
            Condition(manager, ChannelSettings(self.by, level, length, quality), threshold)
            for manager in dict.fromkeys(self.managers)
            for level in dict.fromkeys(self.noise)
            for quality in dict.fromkeys(self.qualities)
            for length in self.lengths
            for threshold in self.thresholds
        )
        plan = SimulationPlan(self.domain, conditions, self.dialogues, self.seed)
        return simulate_plan(plan, processes=self.processes, step=step)

    @property
    def note(self) -> str:
        """What was simulated."""
        return f"domain {self.domain}, {self.dialogues:,} dialogues in each condition, seed {self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The dialogues of one condition: what each adds to measures of its lists, and what it earned."""

    group: str
    condition: str
    totals: Mapping[float, UnitTotals]
    """By the floor of ICE and NCE."""
    reward: Array
    user: Array
    """A number for each dialogue; dialogues of one user are drawn together."""
    cells: tuple[Array, Array]
    """Right and wrong best hypotheses of each dialogue by distinct confidence, the lowest first."""

    def counts(self, drawn_users: Array) -> Array:
        """How often each dialogue is drawn, from how often each user is."""
        return np.asarray(drawn_users[:, self.user])


def measure_condition(
    group: str, condition: str, lists: NBest, reward: Mapping[str, float], users: Sequence[int]
) -> Measured:
    """What the dialogues of a condition add to measures; lists and rewards name the same dialogues."""
    taken = ExplodedLists.of(lists)
    names = lists.frame["dialogue"].unique().sort().to_list()
    totals = {}
    for floor in FLOORS:
        how = NBestSettings(floor=floor, clip=floor if floor != FLOORS[0] else NBestSettings().clip)
        totals[floor] = taken.totals(how.of_acts(), how.of_items())
    top = taken.top_answers()
    confidence = top["confidence"].fill_null(0.0).to_numpy()
    levels, cell = np.unique(confidence, return_inverse=True)
    tables = []
    for flag in (top["right"].to_numpy(), ~top["right"].to_numpy()):
        table = np.zeros((len(names), levels.size))
        np.add.at(table, (taken.numbered[flag], cell[flag]), 1.0)
        tables.append(table)
    earned = np.array([reward[name] for name in names])
    return Measured(group, condition, totals, earned, np.array(users), (tables[0], tables[1]))


def error_return_area(right: Array, wrong: Array) -> Array:
    """The area under the error-return curve (AUGRC) from counts by confidence, the lowest first; many at a time.

    >>> error_return_area(np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0])).item()
    0.125
    """
    both = right + wrong
    below = np.cumsum(both, axis=-1) - both
    return np.asarray((wrong * (below + both / 2)).sum(axis=-1) / both.sum(axis=-1) ** 2)


Predictor = Callable[[Measured, Array], Array]
"""A measure's values for the dialogues of a condition, drawn so often as rows of counts say."""


def _of_lists(key: str, floor: float) -> Predictor:
    def value(one: Measured, counts: Array) -> Array:
        totals = one.totals[floor]
        return totals.values(key, counts @ totals.table)

    return value


def _area(one: Measured, counts: Array) -> Array:
    return error_return_area(counts @ one.cells[0], counts @ one.cells[1])


PREDICTORS: dict[str, Predictor] = {
    **{f"ICE, floor {floor:g}": _of_lists("ice", floor) for floor in FLOORS},
    "WSER": _of_lists("wser", FLOORS[0]),
    "NCE": _of_lists("nce", FLOORS[0]),
    **{f"NCE, clipped at {floor:g}": _of_lists("nce", floor) for floor in FLOORS[1:]},
    "oracle error": _of_lists("oracle", FLOORS[0]),
    "error of the best hypothesis": _of_lists("ser", FLOORS[0]),
    "error-return area": _area,
}
"""Measures that may predict rewards. Of all but NCE lower is better."""


def correlation(x: Array, y: Array, weights: Array) -> Array:
    """Pearson's correlation of two columns for each row of weights; columns may differ by row.

    >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]), np.ones((1, 3))).item()
    1.0
    """
    total = weights.sum(axis=-1, keepdims=True)
    x, y = (part - (weights * part).sum(axis=-1, keepdims=True) / total for part in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            (weights * x * y).sum(axis=-1) / np.sqrt((weights * x * x).sum(axis=-1) * (weights * y * y).sum(axis=-1))
        )


@dataclass(frozen=True, eq=False, repr=False)
class Predictors(Shown):
    """How measures of lists go with rewards: `measure`, `group`, `unit`, and the correlation with its interval."""

    rows: pl.DataFrame
    level: float
    conditions: int
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each measure, group and unit."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The correlations as plain values."""
        rows = self.rows.to_dicts()
        return {"conditions": self.conditions, "rows": rows, "notes": list(self.notes), "warnings": []}


def predictors_of(parts: Sequence[Measured], sampling: Sampling, notes: tuple[str, ...] = ()) -> Predictors:
    """Correlations of measures with rewards, per dialogue and per condition, by group of managers.

    The sign is turned so that +1 is a measure that predicts rewards without fault. Replicates draw users, so that
    what one user does in several conditions is drawn together.
    """
    users = 1 + max(int(one.user.max()) for one in parts)
    draws = np.concatenate(list(Draws(users, sampling.replicates, sampling.seed)))
    rows: list[dict[str, Any]] = []
    for group in dict.fromkeys(one.group for one in parts):
        own = [one for one in parts if one.group == group]
        for name, predictor in PREDICTORS.items():
            sign = 1.0 if name.startswith("NCE") else -1.0
            pairs = [("condition", *_per_condition(own, predictor, draws))] if len(own) > 2 else []
            if predictor is not _area:
                pairs.insert(0, ("dialogue", *_per_dialogue(own, predictor, draws)))
            for unit, value, drawn_values in pairs:
                kept = drawn_values[~np.isnan(drawn_values)]
                low, high = _ends_of(sign * kept, sampling.level)
                rows.append(
                    {"measure": name, "group": group, "unit": unit, "value": sign * value, "low": low, "high": high}
                )
    return Predictors(pl.DataFrame(rows, infer_schema_length=None), sampling.level, len(parts), notes)


def _ends_of(replicates: Array, level: float) -> tuple[float, float]:
    """The percentiles that an interval ends at; NaN where there are no replicates."""
    if not replicates.size:
        return math.nan, math.nan
    return quantile(replicates, (1 - level) / 2), quantile(replicates, (1 + level) / 2)


def _per_condition(own: Sequence[Measured], predictor: Predictor, draws: Array) -> tuple[float, Array]:
    """The correlation of means over conditions."""

    def columns(pick: Callable[[Measured], Array]) -> tuple[Array, Array]:
        values = np.stack([predictor(one, pick(one)) for one in own], axis=-1)
        earned = np.stack([pick(one) @ one.reward / pick(one).sum(axis=-1) for one in own], axis=-1)
        return values, earned

    x, y = columns(lambda one: np.ones((1, one.reward.size)))
    drawn_x, drawn_y = columns(lambda one: one.counts(draws))
    defined = ~np.isnan(x[0])
    weights = np.ones(int(defined.sum()))
    value = correlation(x[:, defined], y[:, defined], weights)
    return float(value[0]), correlation(drawn_x[:, defined], drawn_y[:, defined], weights)


def _per_dialogue(own: Sequence[Measured], predictor: Predictor, draws: Array) -> tuple[float, Array]:
    """The correlation over single dialogues, of ranks: measures of few turns have far outliers."""
    x = np.concatenate([predictor(one, np.eye(one.reward.size)) for one in own])
    y = np.concatenate([one.reward for one in own])
    user = np.concatenate([one.user for one in own])
    kept = ~np.isnan(x)
    ranks = [pl.Series(part[kept]).rank().to_numpy() for part in (x, y)]
    weights = draws[:, user[kept]]
    value = correlation(ranks[0], ranks[1], np.ones((1, int(kept.sum()))))
    return float(value[0]), correlation(ranks[0], ranks[1], weights)


def simulated_conditions(simulation: Simulation) -> list[Measured]:
    """The conditions of a simulation, each with its measures and rewards."""
    turns, dialogues, found = simulation.turns, simulation.dialogues, []
    for condition in simulation.plan.conditions:
        own = dialogues.filter(pl.col("dialogue").str.starts_with(f"{condition.name}-"))
        own = own.filter(pl.col("dialogue").str.len_chars() == len(condition.name) + 6).sort("dialogue")
        lists = nbest(turns.filter(pl.col("dialogue").is_in(own["dialogue"].implode())))
        reward = dict(own.select("dialogue", "reward").iter_rows())
        found.append(measure_condition(condition.manager, condition.name, lists, reward, own["user"].to_list()))
    return found


def recorded_conditions(lists: NBest, dialogues: pl.DataFrame, group: str, by: str | None) -> list[Measured]:
    """The conditions of recorded dialogues: groups of managers, and within them the values of a column."""
    table = rewards(dialogues, group=group).drop_nulls("y").with_row_index("user")
    extra = dialogues.select(pl.col("dialogue").cast(pl.String), condition=pl.col(by or group).cast(pl.String))
    table = table.join(extra, on="dialogue", how="left", maintain_order="left")
    known = set(lists.frame["dialogue"].drop_nulls())
    table = table.filter(pl.col("dialogue").is_in(list(known)))
    if table.is_empty():
        raise DataError("no dialogue of the lists has a success and a number of turns", fix="do the names agree?")
    found = []
    for (name, condition), part in table.partition_by("group", "condition", as_dict=True, maintain_order=True).items():
        own = part.sort("dialogue")
        keep = lists.frame["dialogue"].is_in(own["dialogue"].implode()).to_numpy()
        reward = dict(own.select("dialogue", "y").iter_rows())
        found.append(measure_condition(str(name), str(condition), lists.taken(keep), reward, own["user"].to_list()))
    return found


def recorded_lists(files: Sequence[Any], outcomes: Path | None, group: str, by: str | None) -> list[Measured]:
    """The conditions of N-best lists in files; outcomes are columns of the lists where no other table has them."""
    columns = tuple(dict.fromkeys(("success", "turns", group, *(() if by is None else (by,)))))
    lists = read_nbest(*files, reading=NBestReading(keep=() if outcomes is not None else columns))
    table = dialogues_in(lists.frame, group) if outcomes is None else read_table(outcomes)
    return recorded_conditions(lists, table, group, by)


def of_predictors(found: Predictors) -> Presentation:
    """Correlations of measures with rewards."""
    tables = []
    for (unit,), part in found.rows.partition_by("unit", as_dict=True, maintain_order=True).items():
        groups = part["group"].unique(maintain_order=True).to_list()
        cells = []
        for (measure,), own in part.partition_by("measure", as_dict=True, maintain_order=True).items():
            by = {
                row["group"]: with_interval(row["value"], row["low"], row["high"]) for row in own.iter_rows(named=True)
            }
            cells.append((str(measure), *(by.get(group, "–") for group in groups)))
        kind = "ranks of single dialogues" if unit == "dialogue" else "means of conditions"
        tables.append(ResultTable(f"Correlation with reward, {kind}", ("measure", *groups), tuple(cells)))
    return Presentation(
        title="What predicts the reward of dialogues",
        sentences=tuple(_predictor_sentences(found)),
        tables=tuple(tables),
        figures=tuple(
            drawing(
                "lab.dialogue.charts.interval_chart", _predictor_rows(found, unit), **_predictor_titles(found, unit)
            ).named(f"per_{unit}")
            for unit in found.rows["unit"].unique(maintain_order=True)
        ),
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
    )


def _predictor_rows(found: Predictors, unit: str | None = None) -> pl.DataFrame:
    return found.rows.filter(pl.col("unit") == (unit or found.rows["unit"][0])).rename({"measure": "name"}).drop("unit")


def _predictor_titles(found: Predictors, unit: str | None = None) -> dict[str, Any]:
    per = unit or found.rows["unit"][0]
    return {
        "x_title": "correlation with reward (+1: predicts it without fault)",
        "title": f"How well measures of lists predict reward, per {per}",
        "level": found.level,
    }


def _predictor_sentences(found: Predictors) -> list[str]:
    """For each unit and group, the best measure, where ICE stands, and which differences the intervals allow."""
    sentences = []
    for (unit, group), part in found.rows.partition_by("unit", "group", as_dict=True, maintain_order=True).items():
        ordered = part.drop_nans("value").sort("value", descending=True)
        if ordered.is_empty():
            continue
        best = ordered.row(0, named=True)
        ice = ordered.filter(pl.col("measure") == f"ICE, floor {FLOORS[0]:g}").row(0, named=True)
        place = ordered["measure"].to_list().index(ice["measure"]) + 1
        text = with_interval(best["value"], best["low"], best["high"])
        own = with_interval(ice["value"], ice["low"], ice["high"])
        rest = "" if best["measure"] == ice["measure"] else f"; ICE is number {place} of {ordered.height}, {own}"
        sentences.append(f"Per {unit}, {group}: {best['measure']} goes best with reward, {text}{rest}.")
    return sentences


register(
    Predictors,
    chart=drawn("lab.dialogue.charts.interval_chart", _predictor_rows, _predictor_titles),
    present=of_predictors,
)


def simulated_rewards(loop: Loop, measure: str, settings: NBestSettings, step: Step = silent) -> CurveExperiment:
    """Reward against a measure of lists, for managers in the loop (Thomson et al. 2008, figure 2)."""
    simulation = loop.run(step)
    found = evaluate_nbest(nbest(simulation.turns), settings=replace(settings, replicates=50), step=step)
    curves = reward_curves(found, simulation.dialogues, group="manager", measure=measure)
    return CurveExperiment(curves, (loop.note,))


def simulated_scorers(loop: Loop, settings: NBestSettings, step: Step = silent) -> CurveExperiment:
    """ICE against oracle error in trials that differ in the scorer of sentences in the loop (figure 3)."""
    simulation = loop.run(step)
    trials = simulation.dialogues.select("dialogue", system="confidences")
    table = nbest(simulation.turns.join(trials, on="dialogue", maintain_order="left"))
    found = evaluate_nbest(table, settings=replace(settings, replicates=50), step=step)
    spoken = simulation.dialogues.select(pl.col("word_errors").sum() / pl.col("words").sum()).item()
    return CurveExperiment(oracle_curves(found), (loop.note, f"measured word error rate {short(spoken)}"))


@dataclass(frozen=True, eq=False, repr=False)
class ConfusionSweep(Shown):
    """ICE by simulated confusion rate: `group` (quality of confidences), `x`, `value` and the ends of its interval."""

    rows: pl.DataFrame
    correlations: Mapping[str, Figure]
    """Of ICE and confusion rate over dialogues (ranks), by quality."""
    level: float
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each quality and rate."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values."""
        return {
            "rows": self.rows.to_dicts(),
            "correlations": {name: one.to_dict() for name, one in self.correlations.items()},
            "notes": list(self.notes),
            "warnings": [],
        }


def confusion_experiment(loop: Loop, sampling: Sampling, step: Step = silent) -> ConfusionSweep:
    """How ICE follows the confusion rate of the channel, for each quality of confidences."""
    simulation = loop.run(step)
    parts = simulated_conditions(simulation)
    draws = np.concatenate(list(Draws(loop.dialogues, sampling.replicates, sampling.seed)))
    predictor = PREDICTORS[f"ICE, floor {FLOORS[0]:g}"]
    rows, correlations = [], {}
    settings = [condition.channel for condition in simulation.plan.conditions]
    for quality in loop.qualities:
        own = [(line.noise, one) for line, one in zip(settings, parts, strict=True) if line.confidences == quality]
        for noise, one in own:
            value = float(predictor(one, np.ones((1, one.reward.size)))[0])
            drawn_values = predictor(one, one.counts(draws))
            low, high = _ends_of(drawn_values, sampling.level)
            rows.append({"group": quality, "x": noise, "value": value, "low": low, "high": high})
        swapped = [
            Measured(one.group, one.condition, one.totals, np.full(one.reward.size, noise), one.user, one.cells)
            for noise, one in own
        ]
        value, drawn_values = _per_dialogue(swapped, predictor, draws)
        correlations[quality] = Figure(value, *_ends_of(drawn_values, sampling.level))
    return ConfusionSweep(pl.DataFrame(rows), correlations, sampling.level, (loop.note, sampling.note))


def of_confusion(found: ConfusionSweep) -> Presentation:
    """ICE by confusion rate."""
    cells = [
        (row["group"], f"{row['x']:g}", with_interval(row["value"], row["low"], row["high"]))
        for row in found.rows.iter_rows(named=True)
    ]
    sentences = []
    for name, one in found.correlations.items():
        values = found.rows.filter(pl.col("group") == name).sort("x")["value"].to_numpy()
        way = "rises with every step" if (np.diff(values) > 0).all() else "does not rise with every step"
        text = with_interval(one.value, one.low, one.high)
        sentences.append(f"ICE of {name} confidences {way} of confusion; rank correlation over dialogues {text}.")
    return Presentation(
        title="ICE by confusion rate",
        sentences=tuple(sentences),
        tables=(ResultTable("ICE by confusion rate", ("confidences", "confusion rate", "ICE"), tuple(cells)),),
        figures=(drawing("lab.dialogue.charts.band_chart", found.rows, **_confusion_titles(found)).named("confusion"),),
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
    )


def _confusion_titles(found: ConfusionSweep) -> dict[str, Any]:
    return {
        "x_title": "confusion rate: share of turns whose best hypothesis is wrong",
        "y_title": "ICE of the lists",
        "title": "ICE follows the confusion rate of the channel",
        "level": found.level,
    }


register(
    ConfusionSweep,
    chart=drawn("lab.dialogue.charts.band_chart", ConfusionSweep.frame, _confusion_titles),
    present=of_confusion,
)


@dataclass(frozen=True, slots=True)
class RejectionAdvice:
    """For one manager at one noise: which threshold dialogues want, and which one costs advise."""

    manager: str
    noise: float
    best: float
    """The threshold of the highest mean reward."""
    as_good: tuple[float, float]
    """The lowest and the highest threshold whose reward is not significantly below the best."""
    error_price: Figure
    """What a misunderstanding costs, in reward."""
    rejection_price: Figure
    """What a non-understanding costs, in reward."""
    advised: float
    """The threshold that the cost ratio advises on the log at threshold 0; NaN where withholding does not pay."""
    point: tuple[float, float]
    """Non-return rate and error rate of the dialogues at the best threshold."""

    @property
    def ratio(self) -> float:
        """What a non-understanding costs over what a misunderstanding costs."""
        return self.rejection_price.value / self.error_price.value if self.error_price.value > 0 else math.nan

    @property
    def agrees(self) -> bool:
        """Whether the advised threshold is among those that are as good as the best."""
        return self.as_good[0] <= self.advised <= self.as_good[1]

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain values."""
        return {
            "manager": self.manager,
            "noise": self.noise,
            "best": self.best,
            "as_good": list(self.as_good),
            "error_price": self.error_price.to_dict(),
            "rejection_price": self.rejection_price.to_dict(),
            "cost_ratio": None if math.isnan(self.ratio) else self.ratio,
            "advised": None if math.isnan(self.advised) else self.advised,
            "agrees": self.agrees,
            "nonreturn": self.point[0],
            "error": self.point[1],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Rejection(Shown):
    """Rewards by rejection threshold: `group`, `x`, `value`, `low`, `high`, `nonreturn`, `error`; and what follows."""

    rows: pl.DataFrame
    advice: tuple[RejectionAdvice, ...]
    level: float
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each manager, noise and threshold."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The curves and the advice as plain values."""
        advice = [one.to_dict() for one in self.advice]
        return {"rows": self.rows.to_dicts(), "advice": advice, "notes": list(self.notes), "warnings": []}


def threshold_experiment(loop: Loop, sampling: Sampling, step: Step = silent) -> Rejection:
    """Whole dialogues while the threshold below which lists are rejected moves."""
    simulation = loop.run(step)
    answers = simulation.answers.join(simulation.dialogues.select("dialogue", "threshold"), on="dialogue")
    wrong = (pl.col("prediction").is_null() | (pl.col("prediction") != pl.col("target"))).alias("wrong")
    returned = (pl.col("confidence").fill_null(0.0) >= pl.col("threshold")).alias("returned")
    answers = answers.with_columns(wrong, returned)
    rows, advice = [], []
    for manager in loop.managers:
        for noise in loop.noise:
            here = (pl.col("manager") == manager) & (pl.col("noise") == noise)
            dialogues, own = simulation.dialogues.filter(here), answers.filter(here)
            group = manager if len(loop.noise) == 1 else f"{manager} at {noise:g}"
            for (threshold,), part in dialogues.partition_by("threshold", as_dict=True, maintain_order=True).items():
                one = mean_figure(part["reward"], sampling.level)
                point = _operating_point(own.filter(pl.col("threshold") == threshold))
                rows.append(
                    {
                        "group": group,
                        "x": threshold,
                        "value": one.value,
                        "low": one.low,
                        "high": one.high,
                        "nonreturn": point[0],
                        "error": point[1],
                    }
                )
            advice.append(_advice(manager, noise, dialogues, own, sampling.level))
    return Rejection(pl.DataFrame(rows), tuple(advice), sampling.level, (loop.note,))


def _operating_point(answers: pl.DataFrame) -> tuple[float, float]:
    """Non-return rate and error rate of the turns of some dialogues."""
    kept = answers["returned"]
    return 1 - float(kept.mean() or 0.0), float((kept & answers["wrong"]).mean() or 0.0)  # type: ignore[arg-type]


def _advice(
    manager: str, noise: float, dialogues: pl.DataFrame, answers: pl.DataFrame, level: float
) -> RejectionAdvice:
    by_user = dialogues.pivot("threshold", index="user", values="reward", sort_columns=False).drop("user")
    thresholds = sorted(dialogues["threshold"].unique())
    columns = {one: by_user[str(one)] for one in thresholds}
    best = max(thresholds, key=lambda one: float(columns[one].mean() or 0.0))  # type: ignore[arg-type]
    as_good = [one for one in thresholds if not mean_figure(columns[best] - columns[one], level).low > 0]
    counts = answers.group_by("dialogue").agg(
        (pl.col("returned") & pl.col("wrong")).sum().alias("errors"), (~pl.col("returned")).sum().alias("rejections")
    )
    table = dialogues.join(counts, on="dialogue", maintain_order="left")
    prices = least_squares_prices(table.select("errors", "rejections").to_numpy(), table["reward"].to_numpy(), level)
    unfiltered = answers.filter(pl.col("threshold") == min(thresholds))
    ratio = prices[1].value / prices[0].value if prices[0].value > 0 else math.nan
    advised = math.nan
    if 0 <= ratio < 1:
        rows = Rows.of(unfiltered["confidence"].fill_null(0.0).to_numpy(), (~unfiltered["wrong"]).to_numpy())
        advised = float(threshold_by_cost(Sample(rows), ratio).threshold)
    elif ratio >= 1:
        advised = 0.0
    point = _operating_point(answers.filter(pl.col("threshold") == best))
    return RejectionAdvice(manager, noise, best, (min(as_good), max(as_good)), *prices, advised, point)


def least_squares_prices(counts: Array, reward: Array, level: float) -> tuple[Figure, Figure]:
    """What one more of each of two kinds costs: slopes of the regression of reward on both counts, turned positive.

    >>> x = np.array([[0, 0], [1, 0], [0, 1], [2, 1], [1, 2]])
    >>> [round(one.value, 6) for one in least_squares_prices(x, 10 - x @ np.array([3.0, 1.0]), 0.95)]
    [3.0, 1.0]
    """
    from demur.core.stats.intervals import student

    design = np.column_stack([np.ones(reward.size), counts])
    inverse = np.linalg.pinv(design.T @ design)
    slopes = inverse @ design.T @ reward
    left = reward - design @ slopes
    freedom = max(reward.size - 3, 1)
    reach = student(level, freedom) * np.sqrt(np.diag(inverse) * float(left @ left) / freedom)
    return tuple(  # type: ignore[return-value]  # two of them
        Figure(-float(slopes[at]), -float(slopes[at] + reach[at]), -float(slopes[at] - reach[at])) for at in (1, 2)
    )


def of_rejection(found: Rejection) -> Presentation:
    """Rewards by threshold, and whether costs advise what dialogues want."""
    sentences = []
    for one in found.advice:
        span = ends(*one.as_good, short)
        who = f"{one.manager} at noise {one.noise:g}"
        best = f"when lists below {one.best:g} are rejected" if one.best else "when nothing is rejected"
        text = f"{who}: reward is highest {best} ({span} are about as good)"
        place = f"non-return rate {short(one.point[0])}, error rate {short(one.point[1])}"
        costs = (
            f"a misunderstanding costs {short(one.error_price.value)}, a rejection {short(one.rejection_price.value)}"
        )
        verdict = "which agrees" if one.agrees else "which does not agree"
        advice = "no threshold follows" if math.isnan(one.advised) else f"costs advise {short(one.advised)}, {verdict}"
        sentences.append(f"{text}: {place}. Over all dialogues {costs}; {advice}.")
    cells = [
        (
            row["group"],
            f"{row['x']:g}",
            with_interval(row["value"], row["low"], row["high"]),
            short(row["nonreturn"]),
            short(row["error"]),
        )
        for row in found.rows.iter_rows(named=True)
    ]
    columns = ("manager", "threshold", "reward", "non-return rate", "error rate")
    return Presentation(
        title="Whole dialogues by rejection threshold",
        sentences=tuple(sentences),
        tables=(ResultTable("Dialogues by threshold", columns, tuple(cells)),),
        figures=(
            drawing("lab.dialogue.charts.band_chart", _rejection_rows(found), **_rejection_titles(found)).named(
                "thresholds"
            ),
        ),
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
    )


def _rejection_rows(found: Rejection) -> pl.DataFrame:
    return found.rows.drop("nonreturn", "error")


def _rejection_titles(found: Rejection) -> dict[str, Any]:
    best = listed([f"{one.best:g} ({one.manager})" for one in found.advice][:4])
    return {
        "note": f"highest at {best}",
        "x_title": "lists are rejected below this confidence",
        "y_title": "mean reward (20 for success, less 1 a turn)",
        "title": "Reward of dialogues by rejection threshold",
        "level": found.level,
    }


register(
    Rejection, chart=drawn("lab.dialogue.charts.band_chart", _rejection_rows, _rejection_titles), present=of_rejection
)
