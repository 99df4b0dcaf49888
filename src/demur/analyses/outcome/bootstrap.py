"""The whole procedure, selection and fit, on rows or groups drawn anew: how firm its choices and coefficients are."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.analyses.outcome.cross_products import Found, Rows, search
from demur.analyses.outcome.least_squares import checked
from demur.analyses.outcome.pieces import Array, Places
from demur.analyses.outcome.plans import Plan
from demur.analyses.outcome.stepwise import INTERCEPT, Selection, chosen, confirmed
from demur.analyses.outcome.validation import folds_of_groups
from demur.errors import DataError, UsageError
from demur.show import Step, plain, silent

AT_ONCE = 50
"""Replicates of one piece of work. Draws are made piece by piece, so this number is part of what a seed means."""

LONG = 10.0
"""Seconds of work from which other processes may pay: each takes one or two to start, and cores share caches."""

AHEAD = 2
"""Pieces that wait for each process."""

WHAT = "resampling the regression"

Counts = NDArray[np.int64]
"""How often every row is drawn, in some replicates."""


@dataclass(frozen=True, slots=True)
class Span:
    """A figure of the fit to all rows, and percentiles of it over the replicates."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain values."""
        return {"value": plain(self.value), "low": plain(self.low), "high": plain(self.high)}


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Replicates of a stepwise regression.

    `optimism` is the mean over replicates of R² of the replicate's model on its own rows less its R² on the rows at
    hand (Harrell, Lee and Mark 1996); the in-sample R² less this is what to expect on new rows.
    """

    names: tuple[str, ...]
    value: Array
    """Intercept and coefficients of the fit to all rows; 0 for predictors that it leaves out."""

    draws: Array
    """The same in every replicate (first axis), NaN for predictors that it leaves out."""

    r2: float
    r2_drawn: Array
    """R² of each replicate's model on the rows that were drawn."""

    r2_at_hand: Array
    """R² of each replicate's model on the rows at hand."""

    failed: tuple[str, ...]
    """Why replicates have no model, one for each such replicate."""

    seed: int
    level: float

    @property
    def replicates(self) -> int:
        """Replicates that have a model."""
        return len(self.draws)

    @property
    def selected(self) -> dict[str, float]:
        """Share of replicates that choose a predictor, the most frequent first."""
        shares = 1 - np.isnan(self.draws[:, 1:]).mean(axis=0)
        order = np.argsort(-shares, kind="stable")
        return {self.names[place]: float(shares[place]) for place in order}

    @property
    def coefficients(self) -> dict[str, Span]:
        """Coefficients with percentiles in which a predictor that is left out counts as 0: the whole procedure's."""
        return self._spans(np.nan_to_num(self.draws))

    @property
    def where_selected(self) -> dict[str, Span]:
        """Coefficients with percentiles over those replicates alone that choose the predictor; NaN where none does."""
        return self._spans(self.draws)

    @property
    def optimism(self) -> float:
        """How much higher R² is on the rows that a model was chosen and fitted on."""
        return float(np.mean(self.r2_drawn - self.r2_at_hand))

    @property
    def corrected_r2(self) -> float:
        """In-sample R² less its optimism."""
        return self.r2 - self.optimism

    def _spans(self, draws: Array) -> dict[str, Span]:
        tail = (1 - self.level) / 2
        spans = {}
        for place, name in enumerate((INTERCEPT, *self.names)):
            known = draws[~np.isnan(draws[:, place]), place]
            low, high = np.quantile(known, [tail, 1 - tail]) if known.size else (np.nan, np.nan)
            spans[name] = Span(float(self.value[place]), float(low), float(high))
        return spans

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "replicates": self.replicates,
            "failed": len(self.failed),
            "why_failed": sorted(set(self.failed)),
            "seed": self.seed,
            "level": self.level,
            "selected": self.selected,
            "coefficients": {name: span.to_dict() for name, span in self.coefficients.items()},
            "where_selected": {name: span.to_dict() for name, span in self.where_selected.items()},
            "r2": self.r2,
            "optimism": self.optimism,
            "corrected_r2": self.corrected_r2,
        }


def bootstrap(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    selection: Selection | None = None,
    groups: Sequence[Any] | None = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    workers: int = 1,
    step: Step = silent,
) -> Bootstrap:
    """Select and fit on rows (or groups of rows) drawn with replacement, many times over.

    More than one of the `workers` is used where the work would take more than a few seconds, and gives the same
    replicates. They are processes, so a script must have the usual `if __name__ == "__main__":` to ask for them. A
    replicate on which nothing can be chosen, for its model fits exactly, is counted in `failed`.
    """
    columns, outcome = checked(x, y)
    if replicates < 1 or not 0 < level < 1:
        raise UsageError(f"replicates must be at least 1 and level within (0, 1); got {replicates} and {level}")
    plan = (selection or Selection()).plan(names)
    whole = chosen(columns, outcome, names, plan)
    unit = np.arange(outcome.size) if groups is None else folds_of_groups(groups)
    if unit.size != outcome.size or unit.max() < 1:
        raise DataError("there must be a group for every row, and at least two of them", got=f"{unit.size} groups")
    work = _Work(columns, outcome, Rows.of(columns, outcome), plan)
    done: list[Replicate] = []
    step(WHAT, 0, replicates)
    for part in _done(work, _drawn(unit, replicates, seed), replicates, workers):
        done += part
        step(WHAT, len(done), replicates)
    good = [one for one in done if not isinstance(one, str)]
    if not good:
        raise DataError(f"not one of {replicates} replicates could be fitted: {done[0]}")
    value = np.zeros(len(names) + 1)
    value[[0, *(place + 1 for place in whole.columns)]] = np.nan_to_num(whole.fit.coefficients)
    draws, drawn, at_hand = (np.array(part) for part in zip(*good, strict=True))
    failed = tuple(one for one in done if isinstance(one, str))
    return Bootstrap(tuple(names), value, draws, whole.r2, drawn, at_hand, failed, seed, level)


Replicate = tuple[Array, float, float] | str
"""Coefficients, R² on the rows drawn and on those at hand; or why there is no model."""


@dataclass(frozen=True, eq=False)
class _Work:
    x: Array
    y: Array
    rows: Rows
    plan: Plan

    def __call__(self, counts: Counts) -> list[Replicate]:
        found = search(self.rows, counts.astype(np.float64), self.plan)
        return [self._replicate(count, one) for count, one in zip(counts, found, strict=True)]

    def _replicate(self, count: Counts, found: Found) -> Replicate:
        drawn = np.repeat(np.arange(count.size), count)
        outcome = self.y[drawn]
        try:
            terms, fit = confirmed(self.x, self.y, drawn, found, self.plan)
        except DataError as fault:
            return str(fault)
        coefficients = np.full(self.x.shape[1] + 1, np.nan)
        coefficients[[0, *(term + 1 for term in terms)]] = fit.coefficients
        return coefficients, _r2(fit.fitted, outcome), _r2(fit.predict(self.x[:, terms]), self.y)


def _drawn(unit: Places, replicates: int, seed: int) -> Iterator[Counts]:
    """How often each row is drawn, for some replicates at a time."""
    rng = np.random.default_rng(seed)
    units = int(unit.max()) + 1
    for start in range(0, replicates, AT_ONCE):
        size = min(AT_ONCE, replicates - start)
        yield rng.multinomial(units, np.full(units, 1 / units), size=size)[:, unit]


def _done(work: _Work, drawn: Iterator[Counts], replicates: int, workers: int) -> Iterator[list[Replicate]]:
    """The work piece by piece, by several processes if the first piece shows that it will be long."""
    start = time.perf_counter()
    yield work(next(drawn))
    ahead = (time.perf_counter() - start) * (replicates / AT_ONCE - 1)
    yield from _by_processes(work, drawn, workers) if workers > 1 and ahead > LONG else map(work, drawn)


def _by_processes(work: _Work, drawn: Iterator[Counts], workers: int) -> Iterator[list[Replicate]]:
    """The work by processes of their own, in order; done here after all where they cannot be had."""
    waiting: deque[Counts] = deque()
    futures: deque[Future[list[Replicate]]] = deque()
    # Not forked: threads that other libraries have started do not survive that.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _prepare, (work,))
    try:
        for counts in chain(drawn, [None] * AHEAD * workers):
            if counts is not None:
                waiting.append(counts)
                futures.append(pool.submit(_perform, counts))
            if futures and (counts is None or len(futures) > AHEAD * workers):
                done = futures.popleft().result()
                waiting.popleft()
                yield done
    except BrokenExecutor:
        yield from map(work, chain(waiting, drawn))
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(work: _Work) -> None:
    _work.append(work)


def _perform(counts: Counts) -> list[Replicate]:
    return _work[-1](counts)


_work: list[_Work] = []
"""What a process of the pool has been given to do."""


def _r2(said: Array, seen: Array) -> float:
    return float(1 - np.square(seen - said).sum() / np.square(seen - seen.mean()).sum())
