"""Stepwise searches on cross-products: many samples of the same rows at once, all taking a step at a time.

A sample is a weight for every row: 0 for the rows of a left-out fold, counts for a bootstrap. Its predictors and
outcome become a correlation matrix A. Sweeping a column in or out of A (Beaton 1964) moves it into or out of the model:
then A holds the coefficients, the RSS, and for any column j the RSS after its move, A_yy - A_jy²/A_jj.

Where rounding could change a decision, the sample is given up as not clear, and the caller works on its rows:

- columns that are nearly but not quite collinear, or a fit that is nearly exact: the largest variance inflation of the
  model, times TSS/RSS, is over `WORST`;
- a column with less than 1/`WORST` of it left beside the model, unless the rows say that it is aliased (`_aliased`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from demur.analyses.outcome.least_squares import EXACT, TOLERANCE
from demur.analyses.outcome.pieces import Array, Places, crossed, times
from demur.analyses.outcome.plans import TIE, Plan

Flags = NDArray[np.bool_]

WORST = 1e6
"""Rounding errors are multiplied by no more than this before a sample is given up."""

MOST_CELLS = 2_000_000
"""Numbers in one array at most."""


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search on one sample ended: columns that moved, in turn, and those of the model, in order.

    Where it is not clear, the rows must tell how to go on from there.
    """

    moves: tuple[int, ...]
    terms: tuple[int, ...]
    aic: float
    clear: bool


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictors and outcome (last column), less their means and divided by their lengths; means in these units."""

    table: Array
    centre: Array
    unit: float
    """Length of the outcome about its mean."""

    @classmethod
    def of(cls, x: Array, y: Array) -> Rows:
        """The rows of a regression."""
        table = np.column_stack([x, y])
        centre = table.mean(axis=0)
        table = table - centre
        length = np.sqrt(np.square(table).sum(axis=0))
        length[length == 0] = 1.0
        return cls(table / length, centre / length, float(length[-1]))

    def products(self, weights: Array) -> tuple[Array, Array]:
        """Sums of products of columns, and sums of columns, for every sample."""
        whole = crossed(self.table, self.table)
        totals = np.empty((len(weights), *whole.shape))
        for total, weight in zip(totals, weights, strict=True):
            out = np.flatnonzero(weight == 0)
            if out.size < weight.size - out.size and weight.max() == 1 == weight[weight > 0].min():
                total[:] = whole - crossed(self.table[out], self.table[out])
            else:
                total[:] = crossed(self.table * weight[:, None], self.table)
        return totals, times(weights, self.table)


def search(rows: Rows, weights: Array, plan: Plan) -> list[Found]:
    """How the searches on some samples end."""
    at_once = max(1, MOST_CELLS // max(rows.table.shape[0], rows.table.shape[1] ** 2))
    found = []
    for start in range(0, len(weights), at_once):
        found += _Searches(rows, weights[start : start + at_once], plan).ended()
    return found


@dataclass(eq=False)
class _Searches:
    """Searches under way. First axis of all arrays: the samples; those that have ended keep their place."""

    rows: Rows
    weights: Array
    plan: Plan
    n: Array = field(init=False)
    swept: Array = field(init=False)
    """The correlation matrices, the outcome last, with the columns of the models swept in."""

    tolerated: Array = field(init=False)
    """Of each column, the share of its centred square that may be left where it is aliased."""

    least: Array = field(init=False)
    """Share of each column's square that must be left beside the model before cross-products are trusted with it."""

    length: Array = field(init=False)
    """Lengths of the columns in the sample."""

    inside: Flags = field(init=False)
    enters: Flags = field(init=False)
    leaves: Flags = field(init=False)
    """Columns that may ever enter, and leave."""

    idle: Flags = field(init=False)
    """Columns of the model that are aliased, and so not swept in."""

    order: Places = field(init=False)
    """Place in the table of drops and additions, for equal AICs: drops as in the formula, then additions."""

    additions: Places = field(init=False)
    clear: Flags = field(init=False)
    moves: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        samples, columns = len(self.weights), self.rows.table.shape[1] - 1
        self.n = self.weights.sum(axis=1)
        self.clear = np.ones(samples, dtype=np.bool_)
        self.inside = np.zeros((samples, columns), dtype=np.bool_)
        self.idle = np.zeros((samples, columns), dtype=np.bool_)
        self.enters, self.leaves = _ways(self.plan, columns)
        self.additions = np.full(columns, -1, dtype=np.int64)
        self.additions[list(self.plan.upper)] = len(self.plan.start) + self.plan.limit + np.arange(len(self.plan.upper))
        self.order = np.tile(self.additions, (samples, 1))
        self.moves = [[] for _ in range(samples)]
        self._correlate()
        for place, term in enumerate(self.plan.start):
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
            products[sample] = self._from_rows(sample)
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

    def _from_rows(self, sample: int) -> Array:
        """Products about the sample's own means: exact where little is left of a column outside the left-out rows."""
        weight = self.weights[sample]
        apart = self.rows.table - weight @ self.rows.table / self.n[sample]
        return crossed(apart * weight[:, None], apart)

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
        found = np.zeros(samples.size, dtype=np.bool_)
        step = max(1, MOST_CELLS // len(self.rows.table))
        for start in range(0, samples.size, step):
            part = slice(start, start + step)
            found[part] = self._little_left(samples[part], terms[part])
        return found

    def _little_left(self, samples: Places, terms: Places) -> Flags:
        length = self.length[samples, :-1]
        active = self.inside & ~self.idle
        weight = self.weights[samples]
        shares = np.where(active[samples], -self.swept[samples, :-1, terms], 0.0) / length
        shares[np.arange(samples.size), terms] = 1 / length[np.arange(samples.size), terms]
        left = times(self.rows.table, np.column_stack([shares, np.zeros(samples.size)]).T).T
        left -= ((weight * left).sum(axis=1) / self.n[samples])[:, None]
        tolerated = self.tolerated[samples, terms]
        return np.asarray((weight * np.square(left)).sum(axis=1) <= tolerated)

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

    def ended(self) -> list[Found]:
        """All searches, once none has a move left."""
        under_way = np.flatnonzero(self.clear)
        for step in range(self.plan.limit):
            if not under_way.size:
                break
            under_way = self._next(under_way, step)
        return [self._found(sample) for sample in range(len(self.weights))]

    def _next(self, samples: Places, step: int) -> Places:
        """Take a step of every search, and tell which ones go on."""
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

    def _found(self, sample: int) -> Found:
        inside = np.flatnonzero(self.inside[sample])
        terms = inside[np.argsort(self.order[sample, inside])]
        rank = 1 + np.count_nonzero(self.inside[sample] & ~self.idle[sample])
        rss = np.maximum(self.swept[sample, -1, -1:], np.finfo(np.float64).tiny)
        aic = float(self._aic(np.array([sample]), rss, np.array([rank]))[0])
        return Found(tuple(self.moves[sample]), tuple(terms.tolist()), aic, bool(self.clear[sample]))


def _ways(plan: Plan, columns: int) -> tuple[Flags, Flags]:
    enters, leaves = np.zeros((2, columns), dtype=np.bool_)
    enters[list(plan.upper)] = plan.forward
    leaves[list(plan.upper)] = plan.backward
    leaves[list(plan.lower)] = False
    return enters, leaves
