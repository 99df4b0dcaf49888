"""Stepwise regression under AIC: the moves, the order and the figures of R's `step()`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from demur.core.arrays import Array, Flags
from demur.core.io.columns import nearest
from demur.core.show.results import plain
from demur.errors import DataError, UsageError
from demur.outcome.least_squares import (
    EXACT,
    MANY_ROWS,
    TOLERANCE,
    LeastSquares,
    Places,
    check_arrays,
    cross_product,
    is_exact,
    multiply,
    solve,
)
from demur.outcome.options import Direction

SLACK = 1e-7
"""The search ends with a model whose AIC is this much above the one before, as in R."""

TIE = 1e-9
"""AICs no further apart than this times n are equal: what is the same on paper must not be decided by rounding."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Columns of the first model, those that stay, those that may be in, which ways to go, the price of a column."""

    start: tuple[int, ...]
    lower: frozenset[int]
    upper: tuple[int, ...]
    backward: bool
    forward: bool
    k: float = 2.0
    limit: int = 1000


def after_move(terms: tuple[int, ...], move: int) -> tuple[int, ...]:
    """The model after a column left it, or entered it at its end.

    >>> after_move((3, 1), 3), after_move((3, 1), 2)
    ((1,), (3, 1, 2))
    """
    return tuple(term for term in terms if term != move) if move in terms else (*terms, move)


def extract_aic(n: int, rss: float, rank: int, k: float) -> float:
    """R's `extractAIC`; minus infinity where nothing is left to explain.

    >>> extract_aic(10, 10.0, 3, 2.0)
    6.0
    """
    return n * math.log(rss / n) + k * rank if rss > 0 else -math.inf


WORST = 1e6
"""Rounding errors are multiplied by no more than this before a sample is given up."""

MOST_CELLS = 2_000_000
"""Numbers in one array at most."""


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """Where a search on one sample ended: columns that moved, in turn, and those of the model, in order.

    Where it is not clear, the search must go on from there on the rows.
    """

    moves: tuple[int, ...]
    terms: tuple[int, ...]
    aic: float
    clear: bool


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Predictors and outcome (last column), less their means and divided by their lengths; means in these units."""

    table: Array
    centre: Array
    unit: float
    """Length of the outcome about its mean."""

    @classmethod
    def of(cls, x: Array, y: Array) -> ScaledRows:
        """The rows of a regression."""
        table = np.column_stack([x, y])
        centre = table.mean(axis=0)
        table = table - centre
        length = np.sqrt(np.square(table).sum(axis=0))
        length[length == 0] = 1.0
        return cls(table / length, centre / length, float(length[-1]))

    def products(self, weights: Array) -> tuple[Array, Array]:
        """Sums of products of columns, and sums of columns, for every sample."""
        whole = cross_product(self.table, self.table)
        totals = np.empty((len(weights), *whole.shape))
        for total, weight in zip(totals, weights, strict=True):
            out = np.flatnonzero(weight == 0)
            if out.size < weight.size - out.size and weight.max() == 1 == weight[weight > 0].min():
                total[:] = whole - cross_product(self.table[out], self.table[out])
            else:
                total[:] = cross_product(self.table * weight[:, None], self.table)
        return totals, multiply(weights, self.table)


def search_samples(rows: ScaledRows, weights: Array, plan: SearchPlan) -> list[SearchEnd]:
    """How the searches on some samples end."""
    at_once = max(1, MOST_CELLS // max(rows.table.shape[0], rows.table.shape[1] ** 2))
    found = []
    for start in range(0, len(weights), at_once):
        found += _Searches(rows, weights[start : start + at_once], plan).run()
    return found


class _Searches:
    """Searches under way. First axis of all arrays: the samples; those that have ended keep their place.

    `swept` are the correlation matrices, the outcome last, with the columns of the models swept in; `length` the
    lengths of the columns in the sample; `tolerated` the share of each column's centred square that may be left where
    it is aliased; `least` the share that must be left beside the model before cross-products are trusted with it.
    """

    swept: Array
    length: Array
    tolerated: Array
    least: Array

    def __init__(self, rows: ScaledRows, weights: Array, plan: SearchPlan) -> None:
        samples, columns = len(weights), rows.table.shape[1] - 1
        self.rows, self.weights, self.plan = rows, weights, plan
        self.n = weights.sum(axis=1)
        self.clear: Flags = np.ones(samples, dtype=np.bool_)
        self.inside: Flags = np.zeros((samples, columns), dtype=np.bool_)
        self.idle = self.inside.copy()  # columns of the model that are aliased, and so not swept in
        self.enters, self.leaves = np.zeros((2, columns), dtype=np.bool_)  # columns that may ever enter, and leave
        self.enters[list(plan.upper)] = plan.forward
        self.leaves[list(plan.upper)] = plan.backward
        self.leaves[list(plan.lower)] = False
        # Place in the table of drops and additions, for equal AICs: drops as in the formula, then additions.
        self.additions: Places = np.full(columns, -1, dtype=np.int64)
        self.additions[list(plan.upper)] = len(plan.start) + plan.limit + np.arange(len(plan.upper))
        self.order = np.tile(self.additions, (samples, 1))
        self.moves: list[list[int]] = [[] for _ in range(samples)]
        self._correlate()
        for place, term in enumerate(plan.start):
            self.inside[:, term] = True
            self.order[:, term] = place
            self._enter_first(term)

    def _correlate(self) -> None:
        products, sums = self.rows.products(self.weights)
        centre = self.rows.centre
        products -= sums[:, :, None] * (sums[:, None, :] / self.n[:, None, None])
        squares = np.einsum("bjj->bj", products).copy()
        lost = squares < self.n[:, None] / len(self.rows.table) / WORST
        for sample in np.flatnonzero(lost.any(axis=1)).tolist():
            # about the sample's own means: exact where little is left of a column outside the left-out rows
            weight = self.weights[sample]
            apart = self.rows.table - weight @ self.rows.table / self.n[sample]
            products[sample] = cross_product(apart * weight[:, None], apart)
            squares[sample] = np.diag(products[sample])
        whole = squares + np.square(sums + self.n[:, None] * centre) / self.n[:, None]
        constant = squares <= TOLERANCE**2 * whole
        self.clear &= squares[:, -1] > EXACT * whole[:, -1]
        length = np.sqrt(np.where(constant, 1.0, squares))
        self.swept = products / (length[:, :, None] * length[:, None, :])
        self.swept[constant] = 0.0
        np.swapaxes(self.swept, 1, 2)[constant] = 0.0
        self.length = length
        self.tolerated = np.where(constant, np.inf, TOLERANCE**2 * whole / np.square(length))[:, :-1]
        self.least = np.maximum(1 / WORST, 2 * self.tolerated)

    def _enter_first(self, term: int) -> None:
        doubtful = self.swept[:, term, term] < self.least[:, term]
        samples = np.flatnonzero(doubtful & self.clear)
        aliased = self._aliased(samples, np.full(samples.size, term))
        self.idle[samples[aliased], term] = True
        self.clear[samples[~aliased]] = False
        entering = np.flatnonzero(~doubtful & self.clear)
        self._sweep(entering, np.full(entering.size, term), 1.0)

    def _aliased(self, samples: Places, terms: Places) -> Flags:
        """Whether a column is aliased by the model, by what the rows have left of it."""
        at_once = max(1, MOST_CELLS // len(self.rows.table))
        if samples.size > at_once:
            cuts = range(at_once, samples.size, at_once)
            parts = zip(np.split(samples, cuts), np.split(terms, cuts), strict=True)
            return np.concatenate([self._aliased(*part) for part in parts])
        length, weight, each = self.length[samples, :-1], self.weights[samples], np.arange(samples.size)
        active = (self.inside & ~self.idle)[samples]
        shares = np.where(active, -self.swept[samples, :-1, terms], 0.0) / length
        shares[each, terms] = 1 / length[each, terms]
        left = multiply(self.rows.table, np.column_stack([shares, np.zeros(samples.size)]).T).T
        left -= ((weight * left).sum(axis=1) / self.n[samples])[:, None]
        return np.asarray((weight * np.square(left)).sum(axis=1) <= self.tolerated[samples, terms])

    def _sweep(self, samples: Places, terms: Places, sign: Array | float) -> None:
        """Move a column of each sample into the model (sign 1) or out of it (sign -1)."""
        if not samples.size:
            return
        each = np.arange(samples.size)
        row = self.swept[samples, terms]
        pivot = row[each, terms]
        scaled = row / pivot[:, None]
        self.swept[samples] -= row[:, :, None] * scaled[:, None, :]
        signed = scaled * np.reshape(sign, (-1, 1))
        self.swept[samples, terms] = signed
        self.swept[samples, :, terms] = signed
        self.swept[samples, terms, terms] = -1 / pivot

    def run(self) -> list[SearchEnd]:
        """All searches, once none has a move left."""
        under_way = np.flatnonzero(self.clear)
        for step in range(self.plan.limit):
            if not under_way.size:
                break
            under_way = self._next(under_way, step)
        return [self._end_of(sample) for sample in range(len(self.weights))]

    def _next(self, samples: Places, step: int) -> Places:
        """Take a step of every search; return those that go on."""
        samples, idle = self._idle_ones(samples)
        samples = samples[self._sure(samples)]
        aics, now = self._table(samples)
        clear = self.clear[samples]
        samples, aics, now = samples[clear], aics[clear], now[clear]
        lowest = np.minimum(aics.min(axis=1, initial=np.inf), now)
        tie = TIE * self.n[samples]
        going = now > lowest + tie
        samples, near = samples[going], (aics <= (lowest + tie)[:, None])[going]
        ranks = np.where(near, self.order[samples], np.iinfo(np.int64).max)
        terms = ranks.argmin(axis=1) if samples.size else np.empty(0, dtype=np.int64)
        self._move(samples, terms, step)
        return np.concatenate([idle, samples])

    def _idle_ones(self, samples: Places) -> tuple[Places, Places]:
        """Samples whose models hold no aliased term, and those that have just lost one: the last, before all else."""
        has = self.idle[samples].any(axis=1) & self.plan.backward
        if not has.any():
            return samples, samples[:0]
        losing = samples[has]
        terms = np.where(self.idle[losing], self.order[losing], -1).argmax(axis=1)
        stays = np.isin(terms, list(self.plan.lower))
        self.clear[losing[stays]] = False
        losing, terms = losing[~stays], terms[~stays]
        self.idle[losing, terms] = self.inside[losing, terms] = False
        self._note(losing, terms)
        return samples[~has], losing

    def _note(self, samples: Places, terms: Places) -> None:
        """Write moves down; what left the model goes to its place among the additions."""
        gone = ~self.inside[samples, terms]
        self.order[samples[gone], terms[gone]] = self.additions[terms[gone]]
        for sample, term in zip(samples.tolist(), terms.tolist(), strict=True):
            self.moves[sample].append(term)

    def _sure(self, samples: Places) -> Flags:
        """Whether rounding is too small to matter for the models as they stand; those where it is not are given up."""
        matrix = self.swept[samples]
        inflation = np.maximum(-np.einsum("bjj->bj", matrix)[:, :-1].min(axis=1, initial=-1.0), 1.0)
        sure = inflation < WORST * matrix[:, -1, -1]
        self.clear[samples[~sure]] = False
        return np.asarray(sure)

    def _table(self, samples: Places) -> tuple[Array, Array]:
        """AIC after the move of each column (infinite where it may not move), and as things are."""
        matrix = self.swept[samples]
        pivots = np.einsum("bjj->bj", matrix)[:, :-1]
        inside, active = self.inside[samples], (self.inside & ~self.idle)[samples]
        adding, leaving = ~inside & self.enters, active & self.leaves
        doubtful = adding & (pivots < self.least[samples])
        where, terms = np.nonzero(doubtful)
        self.clear[samples[where[~self._aliased(samples[where], terms)]]] = False
        movable = (adding & ~doubtful) | leaving
        rss = matrix[:, -1, -1]
        after = rss[:, None] - np.square(matrix[:, -1, :-1]) / np.where(movable, pivots, 1.0)
        self.clear[samples[np.any(movable & (after < 1 / WORST), axis=1)]] = False
        rank = 1 + active.sum(axis=1)
        ranks = rank[:, None] + np.where(adding, 1, -1)
        aics = self._aic(samples[:, None], np.maximum(after, 1 / WORST), ranks)
        return np.where(movable, aics, np.inf), self._aic(samples, rss, rank)

    def _aic(self, samples: Places, rss: Array, rank: Places) -> Array:
        n = self.n[samples]
        total = np.square(self.length[samples, -1] * self.rows.unit)
        return np.asarray(n * np.log(rss * total / n) + self.plan.k * rank)

    def _move(self, samples: Places, terms: Places, step: int) -> None:
        entering = ~self.inside[samples, terms]
        self._sweep(samples, terms, np.where(entering, 1.0, -1.0))
        self.inside[samples, terms] = entering
        self.order[samples[entering], terms[entering]] = len(self.plan.start) + step
        self._note(samples, terms)

    def _end_of(self, sample: int) -> SearchEnd:
        inside = np.flatnonzero(self.inside[sample])
        terms = inside[np.argsort(self.order[sample, inside])]
        rank = 1 + np.count_nonzero(self.inside[sample] & ~self.idle[sample])
        rss = np.maximum(self.swept[sample, -1, -1:], np.finfo(np.float64).tiny)
        aic = float(self._aic(np.array([sample]), rss, np.array([rank]))[0])
        return SearchEnd(tuple(self.moves[sample]), tuple(terms.tolist()), aic, bool(self.clear[sample]))


Start = Literal["full", "null"] | Sequence[str] | None
Scope = tuple[Sequence[str], Sequence[str]] | None

INTERCEPT = "(Intercept)"
AGREEMENT = 1e-6
"""Search and rows may give AICs this far apart (times 1 + |AIC|) before the rows alone are trusted."""

CANCELLED = 1e-6
"""Share of the RSS from which down the RSS after an addition is had from a fit, not by subtraction."""


@dataclass(frozen=True, slots=True)
class Selection:
    """How predictors are chosen.

    `start` is where the search begins: "full", "null" or some names; left out it is the null model for "forward" and
    the full model otherwise. `scope` holds the names that stay in any case and the names that may be in, in the order
    in which additions are tried. `k` is the price of a coefficient: 2 for AIC, log(n) for BIC.
    """

    direction: Direction = "backward"
    start: Start = None
    scope: Scope = None
    k: float = 2.0
    limit: int = 1000

    def keeping(self, keep: Sequence[str], names: Sequence[str]) -> Selection:
        """The same with some of the names in every model."""
        for name in keep:
            if name not in names:
                raise UsageError(f'`keep`: there is no candidate "{name}"; {nearest(name, names)}')
        if not keep:
            return self
        from_null = self.start == "null" or (self.start is None and self.direction == "forward")
        return replace(self, start=tuple(keep) if from_null else self.start, scope=(tuple(keep), tuple(names)))

    def plan(self, names: Sequence[str]) -> SearchPlan:
        """The same in places of columns."""
        if len(set(names)) < len(names) or INTERCEPT in names:
            raise UsageError(f'predictors must have different names, none of them "{INTERCEPT}"')
        if self.direction not in ("backward", "forward", "both"):
            raise UsageError(f'direction must be "backward", "forward" or "both"; got "{self.direction}"')
        lower, upper = ((), names) if self.scope is None else self.scope
        start = self.start or ("null" if self.direction == "forward" and self.start is None else "full")
        if isinstance(self.start, str) or self.start is None:
            if start not in ("full", "null"):
                raise UsageError(f'start must be "full", "null" or a list of predictors; got "{start}"')
            start = upper if start == "full" else ()
        else:
            start = self.start
        places = {name: place for place, name in enumerate(names)}
        unknown = [name for name in (*start, *lower, *upper) if name not in places]
        if unknown:
            raise UsageError(f'there is no predictor "{unknown[0]}"; there are: {", ".join(names)}')
        if not set(lower) <= set(start) or not set(start) <= set(upper):
            raise UsageError("the lower scope must lie within the start, and the start within the upper scope")
        return SearchPlan(
            tuple(places[name] for name in start),
            frozenset(places[name] for name in lower),
            tuple(places[name] for name in upper),
            backward=self.direction != "forward",
            forward=self.direction != "backward",
            k=self.k,
            limit=self.limit,
        )


class Move(NamedTuple):
    """A line of the search: "- x" or "+ x" ("" for the start), degrees of freedom gained, AIC and RSS thereafter."""

    step: str
    df: int | None
    aic: float
    rss: float


@dataclass(frozen=True, eq=False)
class Stepwise:
    """The model that a stepwise search ends with.

    `terms` stand in the order of R's final formula: those of the start, then what was added. `aic` is that of R's
    `extractAIC`, n log(RSS/n) + k rank. `aliased` names terms of the start that depended on others before them.
    `r2` is 1 - RSS/TSS and `mse` RSS/n on the very rows of the fit.
    """

    terms: tuple[str, ...]
    columns: tuple[int, ...]
    coefficients: dict[str, float]
    aic: float
    trace: tuple[Move, ...]
    aliased: tuple[str, ...]
    r2: float
    mse: float
    fit: LeastSquares

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.fit.n

    def predict(self, x: ArrayLike) -> Array:
        """Predictions for rows of all the candidates' columns, in the order the search was given them."""
        return self.fit.predict(np.asarray(x, dtype=np.float64)[:, self.columns])

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values."""
        return {
            "n": self.n,
            "terms": list(self.terms),
            "coefficients": plain(self.coefficients),
            "aic": self.aic,
            "trace": [move._asdict() for move in self.trace],
            "aliased": list(self.aliased),
            "in_sample": {"r2": plain(self.r2), "mse": self.mse},
        }


def search_terms(x: ArrayLike, y: ArrayLike, names: Sequence[str], **options: Any) -> Stepwise:
    """The predictors that a stepwise search under AIC keeps, as R's `step()`; options are those of `Selection`.

    Each move takes the line with the lowest AIC out of the table of all drops (in order of the formula) and additions
    (in order of the scope); of lines that are equal the first, and none where keeping the model is as good. Terms
    whose drop changes no rank go first, the last of them before the others. An outcome that a model fits exactly is
    refused: its AIC is minus infinity.

    >>> x = [[0, 1], [1, 0], [2, 0], [3, 1], [4, 1]]
    >>> found = search_terms(x, [0.1, 0.9, 2.2, 2.9, 4.1], ["a", "b"])
    >>> found.terms, [move.step for move in found.trace]
    (('a',), ['', '- b'])
    """
    columns, outcome = check_arrays(x, y)
    if len(names) != columns.shape[1]:
        raise UsageError(f"{columns.shape[1]} columns need as many names; got {len(names)}")
    return run_search(columns, outcome, names, Selection(**options).plan(names))


def run_search(x: Array, y: Array, names: Sequence[str], plan: SearchPlan) -> Stepwise:
    """The end of the search that a plan describes."""
    path = _quick_path(x, y, plan) if y.size > MANY_ROWS else None
    path = path or _finish(x, y, [_model(x, y, plan.start, None, plan)], plan)
    last, first = path[-1], path[0]
    terms = tuple(names[term] for term in last.terms)
    trace = [Move("", None, first.aic, first.fit.rss)]
    for before, model in pairwise(path):
        if model.kept and model.move is not None:
            sign = "+" if model.move in model.terms else "-"
            df = before.fit.rank - model.fit.rank
            trace.append(Move(f"{sign} {names[model.move]}", df, model.aic, model.fit.rss))
    deviations = y - y.mean()
    return Stepwise(
        terms,
        last.terms,
        dict(zip((INTERCEPT, *terms), last.fit.coefficients.tolist(), strict=True)),
        last.aic,
        tuple(trace),
        tuple(names[first.terms[place]] for place in first.fit.aliased),
        1 - last.fit.rss / float(deviations @ deviations),
        last.fit.rss / y.size,
        last.fit,
    )


def _quick_path(x: Array, y: Array, plan: SearchPlan) -> list[_Model] | None:
    """The path that cross-products lead along, fitted from the rows; None where the rows do not agree."""
    end = search_samples(ScaledRows.of(x, y), np.ones((1, y.size)), plan)[0]
    path = [_model(x, y, plan.start, None, plan)]
    for move in end.moves:
        path.append(_model(x, y, after_move(path[-1].terms, move), move, plan))
        if path[-1].aic >= path[-2].aic + SLACK:
            return None
    if not path[-1].agrees(end):
        return None
    return path if end.clear else _finish(x, y, path, plan)


def confirm_search(
    x: Array, y: Array, rows: Places, end: SearchEnd, plan: SearchPlan
) -> tuple[tuple[int, ...], LeastSquares]:
    """Columns and fit on some rows of what a search on their cross-products ended with.

    The rows end a search that is not clear, and do all of it where they do not agree.
    """
    outcome = y[rows]
    if end.clear:
        model = _model(x[rows[:, None], end.terms], outcome, tuple(range(len(end.terms))), None, plan)
        if model.agrees(end):
            return end.terms, model.fit
    table = x[rows]
    model = _model(table, outcome, end.terms, None, plan)
    model = model if model.agrees(end) else _model(table, outcome, plan.start, None, plan)
    last = _finish(table, outcome, [model], plan)[-1]
    return last.terms, last.fit


@dataclass(frozen=True, eq=False)
class _Model:
    """A model on the path: its columns in order, what led to it, its fit and AIC; `kept` where the trace shows it."""

    terms: tuple[int, ...]
    move: int | None
    fit: LeastSquares
    aic: float
    kept: bool = True

    def agrees(self, end: SearchEnd) -> bool:
        return abs(self.aic - end.aic) <= AGREEMENT * (1 + abs(end.aic))


def _model(x: Array, y: Array, terms: tuple[int, ...], move: int | None, plan: SearchPlan) -> _Model:
    fit = solve(x[:, terms], y)
    if fit.rank < fit.n and not is_exact(fit.rss, y):
        return _Model(terms, move, fit, extract_aic(fit.n, fit.rss, fit.rank, plan.k))
    if np.ptp(y) == 0:
        raise DataError("must not be the same in every row", where="the outcome", got=float(y[0]))
    raise DataError(
        f"a model of {fit.rank - 1} predictors fits the {fit.n} rows exactly: its AIC is minus infinity, and nothing "
        "can be chosen by it",
        fix="offer fewer predictors or more rows, and no predictor that the outcome is computed from",
    )


def _finish(x: Array, y: Array, path: list[_Model], plan: SearchPlan) -> list[_Model]:
    """The path continued to its end on the rows."""
    while len(path) <= plan.limit:
        now = path[-1]
        move = _best(x, y, now, plan)
        if move is None:
            break
        after = _model(x, y, after_move(now.terms, move), move, plan)
        if after.aic >= now.aic + SLACK:
            # R ends with the model that made it stop, and leaves it out of the trace.
            return [*path, replace(after, kept=False)]
        path = [*path, after]
    return path


def _best(x: Array, y: Array, now: _Model, plan: SearchPlan) -> int | None:
    """The column that enters or leaves next."""
    drops = [term for term in now.terms if term not in plan.lower] if plan.backward else []
    adds = [term for term in plan.upper if term not in now.terms] if plan.forward else []
    if drops and now.fit.aliased.size:
        idle = [term for term in drops if solve(x[:, after_move(now.terms, term)], y).rank == now.fit.rank]
        if idle:
            return idle[-1]
    slopes, spread = now.fit.coefficients[1:], np.diag(now.fit.inverse)[1:]
    after = dict(zip(now.terms, (now.fit.rss + np.square(slopes) / spread).tolist(), strict=True))
    # those apart that are aliased by columns that stay
    rss_after = {term: after[term] for term in drops if not math.isnan(after[term])}
    rss_after |= _after_additions(x, y, now, adds)
    n, rank = y.size, now.fit.rank
    aics = {term: extract_aic(n, rss, rank + (1 if term in adds else -1), plan.k) for term, rss in rss_after.items()}
    lowest = min([now.aic, *aics.values()])
    if now.aic <= lowest + TIE * n:
        return None
    return next(term for term, aic in aics.items() if aic <= lowest + TIE * n)


def _after_additions(x: Array, y: Array, now: _Model, adds: Sequence[int]) -> dict[int, float]:
    """RSS with each of some columns beside the model, those apart that are aliased."""
    if not adds:
        return {}
    columns = x[:, adds]
    left = columns
    for _ in range(2):
        left = left - multiply(now.fit.basis, cross_product(now.fit.basis, left))
    squares = np.square(left).sum(axis=0)
    aliased = squares <= TOLERANCE**2 * np.square(columns).sum(axis=0)
    gains = np.square(left.T @ (y - now.fit.fitted)) / np.where(aliased, 1.0, squares)
    found = {}
    for term, gain, out in zip(adds, gains.tolist(), aliased.tolist(), strict=True):
        if not out:
            rss = now.fit.rss - gain
            cancelled = rss < CANCELLED * now.fit.rss
            found[term] = solve(x[:, (*now.terms, term)], y).rss if cancelled else rss
    return found
