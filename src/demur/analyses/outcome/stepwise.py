"""Stepwise regression under AIC: the moves, the order and the figures of R's `step()`.

One search on a short table runs on the rows, with a QR fit at every step that tells of all its candidates. On a long
one, and on many samples of one table, it runs on cross-products (`cross_products`); the models it finds are then fitted
from the rows, and where cross-products cannot tell, or rows do not agree, the rows end the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from demur.analyses.outcome.cross_products import Found, Rows, search
from demur.analyses.outcome.least_squares import MANY_ROWS, TOLERANCE, LeastSquares, checked, is_exact, solved
from demur.analyses.outcome.pieces import Array, Places, crossed, times
from demur.analyses.outcome.plans import SLACK, TIE, Plan, criterion, moved
from demur.errors import DataError, UsageError
from demur.show import plain

Direction = Literal["backward", "forward", "both"]
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

    def plan(self, names: Sequence[str]) -> Plan:
        """The same in places of columns."""
        if len(set(names)) < len(names) or INTERCEPT in names:
            raise UsageError(f'predictors must have different names, none of them "{INTERCEPT}"')
        if self.direction not in ("backward", "forward", "both"):
            raise UsageError(f'direction must be "backward", "forward" or "both"; got "{self.direction}"')
        lower, upper = ((), names) if self.scope is None else self.scope
        start = self._start(upper)
        places = {name: place for place, name in enumerate(names)}
        unknown = [name for name in (*start, *lower, *upper) if name not in places]
        if unknown:
            raise UsageError(f'there is no predictor "{unknown[0]}"; there are: {", ".join(names)}')
        if not set(lower) <= set(start) or not set(start) <= set(upper):
            raise UsageError("the lower scope must lie within the start, and the start within the upper scope")
        return Plan(
            tuple(places[name] for name in start),
            frozenset(places[name] for name in lower),
            tuple(places[name] for name in upper),
            backward=self.direction != "forward",
            forward=self.direction != "backward",
            k=self.k,
            limit=self.limit,
        )

    def _start(self, upper: Sequence[str]) -> Sequence[str]:
        start = self.start or ("null" if self.direction == "forward" and self.start is None else "full")
        if isinstance(self.start, str) or self.start is None:
            if start not in ("full", "null"):
                raise UsageError(f'start must be "full", "null" or a list of predictors; got "{start}"')
            return tuple(upper) if start == "full" else ()
        return tuple(self.start)


@dataclass(frozen=True, slots=True)
class Move:
    """A line of the search: "- x" or "+ x" ("" for the start), degrees of freedom gained, AIC and RSS thereafter."""

    step: str
    df: int | None
    aic: float
    rss: float

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values."""
        return {"step": self.step, "df": self.df, "aic": self.aic, "rss": self.rss}


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

    @property
    def rss(self) -> float:
        """Sum of squared residuals."""
        return self.fit.rss

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
            "trace": [move.to_dict() for move in self.trace],
            "aliased": list(self.aliased),
            "in_sample": {"r2": plain(self.r2), "mse": self.mse},
        }


def step(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    direction: Direction = "backward",
    start: Start = None,
    scope: Scope = None,
    k: float = 2.0,
    limit: int = 1000,
) -> Stepwise:
    """The predictors that a stepwise search under AIC keeps, as R's `step()`.

    Each move takes the line with the lowest AIC out of the table of all drops (in order of the formula) and additions
    (in order of the scope); of lines that are equal the first, and none where keeping the model is as good. Terms
    whose drop changes no rank go first, the last of them before the others. An outcome that a model fits exactly is
    refused: its AIC is minus infinity.

    >>> x = [[0, 1], [1, 0], [2, 0], [3, 1], [4, 1]]
    >>> found = step(x, [0.1, 0.9, 2.2, 2.9, 4.1], ["a", "b"])
    >>> found.terms, [move.step for move in found.trace]
    (('a',), ['', '- b'])
    """
    columns, outcome = checked(x, y)
    if len(names) != columns.shape[1]:
        raise UsageError(f"{columns.shape[1]} columns need as many names; got {len(names)}")
    return chosen(columns, outcome, names, Selection(direction, start, scope, k, limit).plan(names))


def chosen(x: Array, y: Array, names: Sequence[str], plan: Plan) -> Stepwise:
    """The end of the search that a plan describes."""
    path = _searched(x, y, plan) if y.size > MANY_ROWS else None
    return _result(path or _ended(x, y, [_model(x, y, plan.start, None, plan)], plan), y, names)


def _searched(x: Array, y: Array, plan: Plan) -> list[_Model] | None:
    """The path that cross-products lead along, fitted from the rows; None where the rows do not agree."""
    found = search(Rows.of(x, y), np.ones((1, y.size)), plan)[0]
    path = _path(x, y, found.moves, plan)
    if path is None or not _agree(path[-1], found):
        return None
    return path if found.clear else _ended(x, y, path, plan)


def confirmed(x: Array, y: Array, rows: Places, found: Found, plan: Plan) -> tuple[tuple[int, ...], LeastSquares]:
    """Columns and fit on some rows of what a search on their cross-products found.

    The rows end a search that is not clear, and do all of it where they do not agree.
    """
    outcome = y[rows]
    if found.clear:
        model = _model(x[rows[:, None], found.terms], outcome, tuple(range(len(found.terms))), None, plan)
        if _agree(model, found):
            return found.terms, model.fit
    table = x[rows]
    model = _model(table, outcome, found.terms, None, plan)
    model = model if _agree(model, found) else _model(table, outcome, plan.start, None, plan)
    last = _ended(table, outcome, [model], plan)[-1]
    return last.terms, last.fit


def _agree(model: _Model, found: Found) -> bool:
    return abs(model.aic - found.aic) <= AGREEMENT * (1 + abs(found.aic))


@dataclass(frozen=True, eq=False)
class _Model:
    """A model on the path: its columns in order, what led to it, its fit and AIC; `kept` where the trace shows it."""

    terms: tuple[int, ...]
    move: int | None
    fit: LeastSquares
    aic: float
    kept: bool = True


def _model(x: Array, y: Array, terms: tuple[int, ...], move: int | None, plan: Plan) -> _Model:
    fit = solved(x[:, terms], y)
    if fit.rank == fit.n or is_exact(fit.rss, y):
        raise _exact(fit, y)
    return _Model(terms, move, fit, criterion(fit.n, fit.rss, fit.rank, plan.k))


def _exact(fit: LeastSquares, y: Array) -> DataError:
    if np.ptp(y) == 0:
        return DataError("must not be the same in every row", where="the outcome", got=float(y[0]))
    return DataError(
        f"a model of {fit.rank - 1} predictors fits the {fit.n} rows exactly: its AIC is minus infinity, and nothing "
        "can be chosen by it",
        fix="offer fewer predictors or more rows, and no predictor that the outcome is computed from",
    )


def _path(x: Array, y: Array, moves: Sequence[int], plan: Plan) -> list[_Model] | None:
    """The models on a path that the search found; None where the rows would have ended it sooner."""
    path = [_model(x, y, plan.start, None, plan)]
    for move in moves:
        path.append(_model(x, y, moved(path[-1].terms, move), move, plan))
        if path[-1].aic >= path[-2].aic + SLACK:
            return None
    return path


def _ended(x: Array, y: Array, path: list[_Model], plan: Plan) -> list[_Model]:
    """The path continued to its end on the rows."""
    while len(path) <= plan.limit:
        now = path[-1]
        move = _best(x, y, now, plan)
        if move is None:
            break
        after = _model(x, y, moved(now.terms, move), move, plan)
        if after.aic >= now.aic + SLACK:
            # R ends with the model that made it stop, and leaves it out of the trace.
            return [*path, replace(after, kept=False)]
        path = [*path, after]
    return path


def _best(x: Array, y: Array, now: _Model, plan: Plan) -> int | None:
    """The column that enters or leaves next."""
    drops = [term for term in now.terms if term not in plan.lower] if plan.backward else []
    adds = [term for term in plan.upper if term not in now.terms] if plan.forward else []
    if drops and now.fit.aliased.size:
        idle = [term for term in drops if solved(x[:, moved(now.terms, term)], y).rank == now.fit.rank]
        if idle:
            return idle[-1]
    table = _after_drops(now, drops) | _after_additions(x, y, now, adds)
    n, rank = y.size, now.fit.rank
    aics = {term: _aic(n, rss, rank + (1 if term in adds else -1), plan.k) for term, rss in table.items()}
    lowest = min([now.aic, *aics.values()])
    if now.aic <= lowest + TIE * n:
        return None
    return next(term for term, aic in aics.items() if aic <= lowest + TIE * n)


def _aic(n: int, rss: float, rank: int, k: float) -> float:
    return criterion(n, rss, rank, k) if rss > 0 else float("-inf")


def _after_drops(now: _Model, drops: Sequence[int]) -> dict[int, float]:
    """RSS without each of some columns of the model, those apart that are aliased by columns that stay."""
    slopes, spread = now.fit.coefficients[1:], np.diag(now.fit.inverse)[1:]
    after = dict(zip(now.terms, (now.fit.rss + np.square(slopes) / spread).tolist(), strict=True))
    return {term: after[term] for term in drops if not math.isnan(after[term])}


def _after_additions(x: Array, y: Array, now: _Model, adds: Sequence[int]) -> dict[int, float]:
    """RSS with each of some columns beside the model, those apart that are aliased."""
    if not adds:
        return {}
    columns = x[:, adds]
    left = columns
    for _ in range(2):
        left = left - times(now.fit.basis, crossed(now.fit.basis, left))
    squares = np.square(left).sum(axis=0)
    aliased = squares <= TOLERANCE**2 * np.square(columns).sum(axis=0)
    gains = np.square(left.T @ (y - now.fit.fitted)) / np.where(aliased, 1.0, squares)
    found = {}
    for term, gain, out in zip(adds, gains.tolist(), aliased.tolist(), strict=True):
        if not out:
            rss = now.fit.rss - gain
            cancelled = rss < CANCELLED * now.fit.rss
            found[term] = solved(x[:, (*now.terms, term)], y).rss if cancelled else rss
    return found


def _result(path: list[_Model], y: Array, names: Sequence[str]) -> Stepwise:
    last, first = path[-1], path[0]
    terms = tuple(names[term] for term in last.terms)
    deviations = y - y.mean()
    return Stepwise(
        terms,
        last.terms,
        dict(zip((INTERCEPT, *terms), last.fit.coefficients.tolist(), strict=True)),
        last.aic,
        tuple(_line(path, place, names) for place, model in enumerate(path) if model.kept),
        tuple(names[first.terms[place]] for place in first.fit.aliased),
        1 - last.fit.rss / float(deviations @ deviations),
        last.fit.rss / y.size,
        last.fit,
    )


def _line(path: list[_Model], place: int, names: Sequence[str]) -> Move:
    model = path[place]
    if model.move is None:
        return Move("", None, model.aic, model.fit.rss)
    sign = "+" if model.move in model.terms else "-"
    df = path[place - 1].fit.rank - model.fit.rank
    return Move(f"{sign} {names[model.move]}", df, model.aic, model.fit.rss)
