"""Policies learned by simulation: the rewards of exploring dialogues, regressed on features of a summary.

Monte Carlo control with linear function approximation: dialogues are played by the policy so far, which now and then
does something else; for each action the reward from there on is regressed on the features by ridge regression; the next
policy takes the action of the highest value. Older dialogues count less and less.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.writing import write_whole
from demur.core.show.html import drawn
from demur.core.show.numbers import signed, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, Step, register, silent
from demur.core.stats.intervals import Figure
from demur.lab.dialogue.channel import ChannelSettings
from demur.lab.dialogue.domain import TaskDomain
from demur.lab.dialogue.managers import (
    LEARNED,
    Action,
    LinearPolicy,
    Policy,
    SlotManager,
    Summary,
    courtesy,
    default_policy,
    new_state,
)
from demur.lab.dialogue.presentation import mean_figure
from demur.lab.dialogue.simulate import QUICK, chance, play
from demur.lab.dialogue.user import new_user
from demur.nbest_lists.reward import SUCCESS, TURN

EXPLORES = (0.35, 0.05)
"""How likely a policy does something else in the first and in the last round."""
KEPT = 0.75
"""What dialogues of a round count in the next, as a share of what they counted."""
RIDGE = 2.0
"""Added to the diagonal of the regression: a feature met twice is halfway believed."""
AT_ONCE = 25
"""Dialogues that one process plays at a time."""
USERS = 1 << 30
"""Users of lessons are numbered from here on, so that none is met again in a simulation."""

Decision = tuple[tuple[str, ...], str, float]
"""Features, the action taken, and the reward from there on."""


@dataclass(slots=True)
class Explorer:
    """A policy that now and then does something else, and remembers what it did."""

    policy: Policy
    epsilon: float
    rng: random.Random
    trace: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    @property
    def sure(self) -> float:
        """That of the policy."""
        return self.policy.sure

    @property
    def plausible(self) -> float:
        """That of the policy."""
        return self.policy.plausible

    def action(self, summary: Summary) -> Action:
        """What the policy does, or something else that makes sense."""
        action = self.policy.action(summary)
        if courtesy(summary) is None and self.rng.random() < self.epsilon:
            action = self.rng.choice(summary.possible())
        self.trace.append((summary.features(), action))
        return action

    def to_dict(self) -> dict[str, Any]:
        """That of the policy."""
        return self.policy.to_dict()


@dataclass(frozen=True, slots=True)
class Lessons:
    """How a policy is learned."""

    domain: str
    manager: str
    noise: tuple[float, ...] = (0.0, 0.15, 0.3, 0.45)
    rounds: int = 10
    dialogues: int = 250
    """In each round, and as many to learn how good the policy of the round is."""
    seeds: int = 3
    seed: int = 0
    nbest: int = 5

    def channel(self, number: int) -> ChannelSettings:
        """The channel of a dialogue: the levels of noise in turn."""
        return ChannelSettings(noise=self.noise[number % len(self.noise)], nbest=self.nbest)


def decisions(lessons: Lessons, policy: Policy, epsilon: float, seed: int, numbers: range) -> list[Decision]:
    """What was decided in some dialogues, and what came of it."""
    domain = TaskDomain.read(lessons.domain)
    found: list[Decision] = []
    for number in numbers:
        explorer = Explorer(policy, epsilon, chance(seed, number, 2))
        manager = SlotManager(domain, new_state(lessons.manager, domain), explorer)
        user = new_user(domain, chance(seed, number, 0))
        done = play(domain, user, manager, lessons.channel(number).channel(domain, seed), chance(seed, number, 1))
        turns = len(done.turns)
        found += [
            (features, action, SUCCESS * done.success - TURN * (turns - place))
            for place, (features, action) in enumerate(explorer.trace, start=1)
        ]
    return found


def rewards_of(lessons: Lessons, policy: Policy, seed: int, numbers: range) -> list[float]:
    """The rewards of dialogues in which a policy does nothing else."""
    domain = TaskDomain.read(lessons.domain)
    found = []
    for number in numbers:
        manager = SlotManager(domain, new_state(lessons.manager, domain), policy)
        user = new_user(domain, chance(seed, number, 0))
        channel = lessons.channel(number).channel(domain, seed)
        found.append(play(domain, user, manager, channel, chance(seed, number, 1)).reward)
    return found


@dataclass(slots=True)
class _Regression:
    """Ridge regression of rewards on features for each action, with older sums counting less."""

    names: dict[str, int] = field(default_factory=dict)
    sums: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def add(self, found: Sequence[Decision]) -> None:
        for features, _, _ in found:
            for name in features:
                self.names.setdefault(name, len(self.names))
        size = len(self.names)
        for action in dict.fromkeys((*self.sums, *(action for _, action, _ in found))):
            square, cross = self.sums.get(action, (np.zeros((0, 0)), np.zeros(0)))
            grow = size - cross.size
            square, cross = KEPT * np.pad(square, ((0, grow), (0, grow))), KEPT * np.pad(cross, (0, grow))
            rows = [(features, reward) for features, taken, reward in found if taken == action]
            design = np.zeros((len(rows), size))
            for place, (features, _) in enumerate(rows):
                design[place, [self.names[name] for name in features]] = 1.0
            self.sums[action] = (square + design.T @ design, cross + design.T @ np.array([one for _, one in rows]))

    def weights(self) -> dict[str, dict[str, float]]:
        found = {}
        for action, (square, cross) in self.sums.items():
            solved = np.linalg.solve(square + RIDGE * np.eye(cross.size), cross)
            found[action] = {name: round(float(solved[at]), 4) for name, at in self.names.items() if solved[at]}
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Learning(Shown):
    """A learned policy, how good the policies of all rounds and seeds were, and the hand-crafted one beside it."""

    lessons: Lessons
    policy: LinearPolicy
    curve: pl.DataFrame
    """`seed`, `round`, `reward`: the mean over the test users of each policy that was learned."""
    gain: Figure
    """How much more reward the policy gets than the hand-crafted one, on the same users."""
    handcrafted: Figure
    level: float

    def bands(self) -> pl.DataFrame:
        """The mean over seeds after each round, with its interval, and the hand-crafted policy."""
        rows = []
        for (number,), part in self.curve.partition_by("round", as_dict=True, maintain_order=True).items():
            one = mean_figure(part["reward"], self.level)
            hand = self.handcrafted
            rows += [
                {"group": "learned, over seeds", "x": number, "value": one.value, "low": one.low, "high": one.high},
                {"group": "hand-crafted", "x": number, "value": hand.value, "low": hand.low, "high": hand.high},
            ]
        return pl.DataFrame(rows).sort("group", descending=True, maintain_order=True)

    def frame(self) -> pl.DataFrame:
        """The learning curve of each seed."""
        return self.curve

    @property
    def notes(self) -> tuple[str, ...]:
        """How it was learned."""
        one = self.lessons
        noise = ", ".join(f"{level:g}" for level in one.noise)
        return (
            f"{one.rounds} rounds of {one.dialogues} dialogues at noise {noise}, {one.seeds} seeds from {one.seed}; "
            f"the best policy of all is kept, and compared on users that no policy has met",
        )

    def to_dict(self) -> dict[str, Any]:
        """The learning curves and the policy as plain values."""
        return {
            "manager": self.lessons.manager,
            "gain": self.gain.to_dict(),
            "handcrafted": self.handcrafted.to_dict(),
            "curve": self.curve.to_dicts(),
            "policy": self.policy.to_dict(),
            "notes": list(self.notes),
            "warnings": [],
        }


def learn_policy(
    lessons: Lessons, *, processes: int | None = None, level: float = 0.95, step: Step = silent
) -> Learning:
    """Learn a policy from several seeds, and compare the best with the hand-crafted policy on new users."""
    rows: list[dict[str, Any]] = []
    best: tuple[float, LinearPolicy] | None = None
    hand = default_policy(LEARNED[lessons.manager], TaskDomain.read(lessons.domain))
    tests = range(lessons.dialogues)
    quick = 2 * lessons.seeds * lessons.rounds * lessons.dialogues <= QUICK
    with _pool(1 if quick and processes is None else processes) as pool:
        for place in range(lessons.seeds):
            seed, regression, policy = lessons.seed + place, _Regression(), hand
            for number in range(lessons.rounds):
                step("learning", place * lessons.rounds + number, lessons.seeds * lessons.rounds)
                share = number / max(lessons.rounds - 1, 1)
                epsilon = EXPLORES[0] ** (1 - share) * EXPLORES[1] ** share
                start = USERS + number * lessons.dialogues
                users = range(start, start + lessons.dialogues)
                regression.add(list(_mapped(pool, decisions, lessons, policy, epsilon, seed, users)))
                policy = LinearPolicy(regression.weights(), sure=hand.sure, plausible=hand.plausible)
                reward = math.fsum(_mapped(pool, rewards_of, lessons, policy, _TESTS, tests)) / len(tests)
                rows.append({"seed": seed, "round": number + 1, "reward": reward})
                if best is None or reward > best[0]:
                    best = (reward, policy)
        assert best is not None
        fresh = range(2 * USERS, 2 * USERS + 2 * lessons.dialogues)
        ours = pl.Series(list(_mapped(pool, rewards_of, lessons, best[1], _TESTS, fresh)), dtype=pl.Float64)
        theirs = pl.Series(list(_mapped(pool, rewards_of, lessons, hand, _TESTS, fresh)), dtype=pl.Float64)
    training = {"rounds": lessons.rounds, "dialogues": lessons.dialogues, "noise": list(lessons.noise)}
    training |= {"seed": lessons.seed, "seeds": lessons.seeds}
    kept = LinearPolicy(best[1].weights, hand.sure, hand.plausible, training)
    gain = mean_figure(ours - theirs, level)
    return Learning(lessons, kept, pl.DataFrame(rows), gain, mean_figure(theirs, level), level)


_TESTS = 77
"""The seed of the users on which policies are tested."""


@contextmanager
def _pool(processes: int | None) -> Iterator[Executor | None]:
    count = processes or min(os.cpu_count() or 1, 4)
    if count < 2:
        yield None
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield pool


def _mapped(pool: Executor | None, work: Any, *given: Any) -> Iterator[Any]:
    """What some work gives for a range of users, the last of what it is given, piece by piece and in order."""
    *options, users = given
    pieces = [users[start : start + AT_ONCE] for start in range(0, len(users), AT_ONCE)]
    if pool is None:
        for piece in pieces:
            yield from work(*options, piece)
        return
    calls: Any = pool.submit
    for future in [calls(work, *options, piece) for piece in pieces]:
        yield from future.result()


def write_policy(learning: Learning, path: Path) -> None:
    """Write the policy as JSON."""
    write_whole(path, json.dumps(learning.policy.to_dict(), indent=1) + "\n")


def of_learning(learning: Learning) -> Presentation:
    """The learning curve and the comparison with the hand-crafted policy."""
    gain, hand = learning.gain, learning.handcrafted
    cell = with_interval(gain.value, gain.low, gain.high, write=signed)
    verdict = "more" if gain.low > 0 else "less" if gain.high < 0 else "not significantly more or less"
    rows = [
        (row["group"], f"{row['x']:g}", with_interval(row["value"], row["low"], row["high"]))
        for row in learning.bands().iter_rows(named=True)
        if row["group"] != "hand-crafted"
    ]
    return Presentation(
        title=f"A policy for {learning.lessons.manager}",
        sentences=(
            f"On users that no policy has met, the learned policy gets {verdict} reward than the hand-crafted one: "
            f"{cell} beside {with_interval(hand.value, hand.low, hand.high)}.",
        ),
        tables=(ResultTable("Reward after each round", ("policy", "round", "mean over seeds"), tuple(rows)),),
        figures=(drawing("lab.dialogue.charts.band_chart", learning.bands(), **_titles(learning)).named("learning"),),
        data=learning.frame,
        document=learning.to_dict(),
        notes=learning.notes,
    )


def _titles(learning: Learning) -> dict[str, Any]:
    return {
        "x_title": "round of learning",
        "y_title": "mean reward on the test users",
        "title": f"Learning a policy for {learning.lessons.manager}",
        "note": f"{learning.lessons.seeds} seeds; hand-crafted: one policy on other users",
        "level": learning.level,
    }


register(Learning, chart=drawn("lab.dialogue.charts.band_chart", Learning.bands, _titles), present=of_learning)
