"""Random errors of chosen kinds, injected into a guide and a tutor: does the outcome model predict their price?

Dzikovska et al. (2012, section 6) lacked data on rare confusions and proposed to let a system err at random. Here a
model of the outcome is fitted to dialogues in which all kinds occur, each dialogue with chances of its own; then each
kind is injected alone, and what the model predicts is held against what happened.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.html import drawn
from demur.core.show.numbers import short, signed, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, Step, register, silent
from demur.core.stats.intervals import Figure
from demur.lab import tutor
from demur.lab.dialogue.channel import KINDS_OF_ERRORS, Recognised
from demur.lab.dialogue.domain import TaskDomain, UserActs
from demur.lab.dialogue.managers import manager_maker
from demur.lab.dialogue.presentation import mean_figure
from demur.lab.dialogue.simulate import chance, play, user_of
from demur.outcome.jobs import fit_outcome, predict_outcome

MOST = 0.3
"""The highest chance of errors in a dialogue that the model is fitted to; each kind has a random part of it."""
TUTOR_ERRORS: Mapping[str, tuple[str, str | None]] = {
    "contradictory taken for incomplete": ("contradictory", "pc_incomplete"),
    "correct taken for contradictory": ("correct", "contradictory"),
    "correct rejected": ("correct", None),
}
"""Kinds of errors of the tutor: answers of which label, and what they are taken for."""

Row = dict[str, Any]
Rates = Mapping[str, float]


@dataclass(slots=True)
class InjectedErrors:
    """A channel without errors but for those that are injected, which it is sure of."""

    domain: TaskDomain
    rates: Rates
    rng: random.Random

    def recognise(self, acts: UserActs, text: str, _rng: random.Random) -> Recognised:
        """The acts, or with the chance of each kind what that kind makes of them."""
        mass, heard = self.rng.random(), acts
        for kind, rate in self.rates.items():
            if mass < rate:
                heard = KINDS_OF_ERRORS[kind](self.domain, acts, self.rng)
                break
            mass -= rate
        return Recognised([(heard, 1.0)] if heard else [], len(text.split()), None)


def random_rates(kinds: Sequence[str], rng: random.Random) -> Rates:
    """Chances of a dialogue: a random part of the highest, shared at random among the kinds."""
    shares = [rng.random() for _ in kinds]
    scale = MOST * rng.random() / sum(shares)
    return {kind: scale * share for kind, share in zip(kinds, shares, strict=True)}


def guide_dialogues(
    domain: TaskDomain, manager: str, rates: Callable[[random.Random], Rates], numbers: range, seed: int
) -> tuple[list[Row], list[Row]]:
    """Answers and dialogues of a guide in which errors are injected."""
    make, answers, dialogues = manager_maker(manager, domain), [], []
    for number in numbers:
        rng = chance(seed, number, 3)
        channel = InjectedErrors(domain, rates(rng), rng)
        done = play(domain, user_of(domain, seed, number), make(domain), channel, chance(seed, number, 1))
        name = f"g{number:06}"
        answers += [
            {"id": f"{name}/{place}", "dialogue": name, "target": row["target"], "prediction": row["prediction"]}
            for place, row in enumerate(done.turns)
        ]
        dialogues.append({"dialogue": name, "outcome": done.reward})
    return answers, dialogues


def tutor_dialogues(rates: Callable[[random.Random], Rates], numbers: range, seed: int) -> tuple[list[Row], list[Row]]:
    """Answers and gains of the simulated tutor in which errors are injected; what a gain follows from is known."""
    answers, dialogues = [], []
    for number in numbers:
        rng, chances = chance(seed, number, 4), np.random.default_rng([seed, number])
        targets = rng.choices(list(tutor.SHARES), list(tutor.SHARES.values()), k=90)
        predictions: list[str | None] = []
        wanted = rates(rng)
        for target, prediction in zip(targets, tutor.interpret(targets, "tutor", chances), strict=True):
            own = [kind for kind in wanted if TUTOR_ERRORS[kind][0] == target and rng.random() < wanted[kind]]
            predictions.append(TUTOR_ERRORS[own[0]][1] if own else prediction)
        gain = tutor.expected_gain(targets, predictions) + tutor.NOISE * chances.standard_normal()
        name = f"t{number:06}"
        answers += tutor.rows_of(name, targets, predictions)
        dialogues.append({"dialogue": name, "outcome": gain})
    return answers, dialogues


@dataclass(frozen=True, eq=False, repr=False)
class InjectedPrices(Shown):
    """What injected errors do to the outcome: a row per system and kind, with what is observed and predicted."""

    rows: pl.DataFrame
    formulas: Mapping[str, str]
    level: float
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each system and kind."""
        return self.rows

    def points(self) -> pl.DataFrame:
        """What the figure shows: shares of the outcome without injected errors, so that both systems fit one axis."""
        parts = []
        for what in ("observed", "predicted"):
            ends = {key: pl.col(f"{what}_{key}") / pl.col("without") for key in ("value", "low", "high")}
            name = pl.format("{}: {}", "system", "kind")
            parts.append(self.rows.select(name=name, group=pl.lit(what), **ends))
        return pl.concat(parts)

    def to_dict(self) -> dict[str, Any]:
        """The prices as plain values."""
        formulas = dict(self.formulas)
        return {"rows": self.rows.to_dicts(), "formulas": formulas, "notes": list(self.notes), "warnings": []}


def injected_experiment(
    domain: str, manager: str, *, rate: float, dialogues: int, seed: int, level: float, step: Step = silent
) -> InjectedPrices:
    """Fit a model of the outcome to dialogues with errors of all kinds, and predict those with errors of one kind."""
    task = TaskDomain.read(domain)
    rows: list[Row] = []
    formulas = {}
    played: dict[str, tuple[Sequence[str], Callable[..., tuple[list[Row], list[Row]]]]] = {
        "guide": (
            tuple(KINDS_OF_ERRORS),
            lambda rates, numbers: guide_dialogues(task, manager, rates, numbers, seed),
        ),
        "tutor": (tuple(TUTOR_ERRORS), lambda rates, numbers: tutor_dialogues(rates, numbers, seed)),
    }
    for place, (system, (kinds, play_all)) in enumerate(played.items()):
        step(f"errors of all kinds in the {system}", 2 * place, 4)
        mixed = play_all(lambda rng, kinds=kinds: random_rates(kinds, rng), range(2 * dialogues))
        fitted = fit_outcome(
            mixed[0], outcomes=mixed[1], features="conf+scores.f", replicates=50, seed=seed, level=level
        )
        formulas[system] = fitted.model.formula()
        fresh = range(2 * dialogues, 3 * dialogues)
        _, clean = play_all(lambda _: {}, fresh)
        without = mean_figure(pl.Series([one["outcome"] for one in clean]), level).value
        step(f"errors of one kind in the {system}", 2 * place + 1, 4)
        for kind in kinds:
            answers, held = play_all(lambda _, kind=kind: {kind: rate}, fresh)
            observed = mean_figure(pl.Series([one["outcome"] for one in held]), level)
            found = predict_outcome(fitted, answers, extrapolate=True, unknown_labels="drop", level=level)
            rows.append(_price(system, kind, without, observed, found.figure, bool(found.outside)))
    notes = (
        f"models fitted to {2 * dialogues} dialogues with errors of all kinds, up to {MOST:g} of the turns; each kind "
        f"alone at a rate of {rate:g} in {dialogues} others; manager {manager}, seed {seed}",
    )
    listed = tuple(f"{system}: {formula}" for system, formula in formulas.items())
    return InjectedPrices(pl.DataFrame(rows, infer_schema_length=None), formulas, level, (*listed, *notes))


def _price(system: str, kind: str, without: float, observed: Figure, predicted: Figure, outside: bool) -> Row:
    row: Row = {"system": system, "kind": kind, "without": without, "outside": outside}
    for what, one in (("observed", observed), ("predicted", predicted)):
        row |= {f"{what}_value": one.value, f"{what}_low": one.low, f"{what}_high": one.high}
    # both means are uncertain, independently of each other
    reach = math.hypot(observed.high - observed.low, predicted.high - predicted.low) / 2
    return {**row, "agrees": abs(predicted.value - observed.value) <= reach}


def of_injected(found: InjectedPrices) -> Presentation:
    """What injected errors cost, as observed and as predicted."""
    sentences, cells = [], []
    for (system,), part in found.rows.partition_by("system", as_dict=True, maintain_order=True).items():
        right, without = part["agrees"].sum(), float(part["without"][0])
        order = [part.sort(f"{what}_value")["kind"][0] for what in ("observed", "predicted")]
        same = "as the model predicts" if order[0] == order[1] else f"while the model fears {order[1]} most"
        sentences.append(
            f"In the {system} what the model predicts is not significantly off for {right} of {part.height} kinds; "
            f"{order[0]} costs most, {same}."
        )
        for row in part.iter_rows(named=True):
            texts = [
                with_interval(*(row[f"{what}_{key}"] for key in ("value", "low", "high")))
                for what in ("observed", "predicted")
            ]
            changes = [signed(row[f"{what}_value"] - without) for what in ("observed", "predicted")]
            beyond = "yes" if row["outside"] else "no"
            cells.append((f"{system}: {row['kind']}", short(without), *texts, *changes, beyond))
    columns = (
        "errors",
        "outcome without",
        "observed",
        "predicted",
        "price observed",
        "price predicted",
        "extrapolated",
    )
    return Presentation(
        title="What injected errors cost",
        sentences=tuple(sentences),
        tables=(ResultTable("Outcome with errors of one kind", columns, tuple(cells)),),
        figures=(drawing("lab.dialogue.charts.interval_chart", found.points(), **_titles_of(found)).named("injected"),),
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
    )


def _titles_of(found: InjectedPrices) -> dict[str, Any]:
    return {
        "x_title": "mean outcome, as a share of that without injected errors",
        "title": "What errors of one kind do to the outcome, observed and predicted",
        "mark": 1.0,
        "level": found.level,
    }


register(
    InjectedPrices,
    chart=drawn("lab.dialogue.charts.interval_chart", InjectedPrices.points, _titles_of),
    present=of_injected,
)
