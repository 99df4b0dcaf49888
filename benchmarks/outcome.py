"""Stepwise regression: seconds of nested validation and of the bootstrap, and the same selection by a peer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Floats
from benchmarks.measuring import Line, fastest
from benchmarks.peers import installed
from demur.outcome.options import Direction
from demur.outcome.stepwise import Selection, search_terms
from demur.outcome.validation import bootstrap, grouped_folds, leave_out, nested

FEW, MANY = (35, 24), (2_000, 40)
"""Dialogues and candidates."""

SIZES = {FEW: "24 candidates, 35 dialogues", MANY: "40 candidates, 2,000 dialogues"}
PEER_REPEATS = {FEW: 3, MANY: 1}
DIRECTIONS: tuple[Direction, ...] = ("backward", "forward", "both")

FOLDS = 10
DIALOGUES_OF_A_USER = 4
FEW_BAR, MANY_BAR = 2.0, 10.0
PEER_BAR = 1 / 20
REPLICATES = 1_000
AGREEMENT_BAR = 1e-9

Table = tuple[Floats, Floats, list[str]]


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    few, many = _table(*FEW), _table(*MANY)
    yield from _nested(few, many)
    for size, table in ((FEW, few), (MANY, many)):
        yield from _bootstrap(size, table)
        if installed("statsmodels"):
            yield from _peer(size, table)


def _table(n: int, candidates: int) -> Table:
    """Correlated candidates, two in five of which matter a little."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, candidates))
    x[:, 1:] += 0.5 * x[:, :-1]
    weights = 0.3 * rng.normal(size=candidates) * (rng.random(candidates) < 0.4)
    return x, np.asarray(x @ weights + rng.normal(size=n)), [f"x{place}" for place in range(candidates)]


def _folds(n: int) -> NDArray[np.int64]:
    return grouped_folds((np.arange(n) // DIALOGUES_OF_A_USER).tolist(), FOLDS)


def _nested(few: Table, many: Table) -> Iterator[Line]:
    for way in DIRECTIONS:
        selection = Selection(way)
        against = f"selection {way} in every fold"
        spent = _wall(partial(nested, *few, selection=selection))
        yield Line(f"nested leave-one-out, {SIZES[FEW]}, {way}", spent, "s", FEW_BAR, against)
        spent = _wall(partial(nested, *many, selection=selection, folds=_folds(MANY[0])))
        yield Line(f"nested grouped {FOLDS}-fold, {SIZES[MANY]}, {way}", spent, "s", MANY_BAR, against)
    spent = _wall(partial(leave_out, many[0], many[1]))
    yield Line(f"leave-one-out of one model, {SIZES[MANY]}", spent, "s", None, "no refits")


def _bootstrap(size: tuple[int, int], table: Table) -> Iterator[Line]:
    spent = _wall(partial(bootstrap, *table, selection=Selection("forward"), replicates=REPLICATES), times=1)
    against = "selection forward in each, one process"
    yield Line(f"{REPLICATES:,} bootstrap replicates, {SIZES[size]}", spent, "s", None, against)


def _peer(size: tuple[int, int], table: Table) -> Iterator[Line]:
    """One selection, and for the small table all of nested leave-one-out."""
    x, y, names = table
    took = fastest(
        {"ours": lambda: search_terms(x, y, names), "theirs": lambda: _backward(x, y)}, repeats=PEER_REPEATS[size]
    )
    against = f"statsmodels {installed('statsmodels')}: OLS(...).fit() for every candidate"
    yield Line(f"selection backward, {SIZES[size]}", took["ours"] / took["theirs"], "x CPU", PEER_BAR, against)
    if size == FEW:
        took = fastest({"ours": lambda: nested(x, y, names), "theirs": lambda: _nested_peer(x, y)}, repeats=1)
        title = f"nested leave-one-out, selection backward, {SIZES[size]}"
        yield Line(title, took["ours"] / took["theirs"], "x CPU", PEER_BAR, against)
    terms, aic = _backward(x, y)
    ours = search_terms(x, y, names)
    apart = abs(ours.aic - aic) if list(ours.columns) == terms else float("inf")
    yield Line(f"AIC of the model chosen, {SIZES[size]}", apart, "apart", AGREEMENT_BAR, against)


def _nested_peer(x: Floats, y: Floats) -> list[list[int]]:
    return [_backward(np.delete(x, out, axis=0), np.delete(y, out))[0] for out in range(y.size)]


def _backward(x: Floats, y: Floats) -> tuple[list[int], float]:
    """Backward selection as one writes it with statsmodels."""
    from statsmodels.api import OLS, add_constant

    def aic(terms: list[int]) -> float:
        fit = OLS(y, add_constant(x[:, terms], has_constant="add")).fit()
        return float(y.size * math.log(fit.ssr / y.size) + 2 * (len(terms) + 1))

    terms = list(range(x.shape[1]))
    now = aic(terms)
    while terms:
        drops = [[other for other in terms if other != term] for term in terms]
        values = [aic(drop) for drop in drops]
        if min(values) >= now:
            break
        now = min(values)
        terms = drops[values.index(now)]
    return terms, now


def _wall(work: Callable[[], object], *, times: int = 3) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)
