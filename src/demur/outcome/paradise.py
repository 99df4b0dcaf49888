"""PARADISE as such: what users made of a dialogue as a weighted sum of task success and costs, all of them z-scores.

Walker, Litman, Kamm and Abella (1997, 2000): performance = weight N(kappa) - sum of weights N(cost), where N takes the
mean off and divides by the standard deviation, so that weights can be compared with one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from demur.core.arrays import Array
from demur.core.show.results import plain
from demur.core.stats.intervals import Figure
from demur.core.stats.sweep import ratio
from demur.core.stats.tests import student_p
from demur.errors import DataError, UsageError
from demur.outcome.learners import checked
from demur.outcome.least_squares import least_squares
from demur.returns.classes import Confusion, Kappa

Rejected = Literal["own", "out"]
Chance = Literal["dialogue", "corpus", "key"]

NO_LABEL = "(none)"
"""Stands for what an annotator left without a label, and for what was not asked for in an attribute."""

SAME = 1e-12
"""Standard deviation, against the largest value, below which a predictor or an outcome counts as constant."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A standardised coefficient: by how many of its standard deviations the outcome rises with one of the predictor's.

    `error` is its standard error, `p` that of Student's test against 0; both are NaN where no dialogue is to spare.
    """

    value: float
    error: float
    p: float

    def to_dict(self) -> dict[str, Any]:
        """The weight as plain values."""
        return {"value": self.value, "error": plain(self.error), "p": plain(self.p)}


@dataclass(frozen=True, eq=False)
class Paradise:
    """A performance function: weights of the predictors, and what is needed to take z-scores of new dialogues.

    `left_out` are predictors that are the same in every dialogue or that others determine.
    """

    weights: dict[str, Weight]
    names: tuple[str, ...]
    means: dict[str, float]
    deviations: dict[str, float]
    outcome_mean: float
    outcome_deviation: float
    r2: float
    adjusted_r2: float
    n: int
    left_out: tuple[str, ...]

    def performance(self, x: ArrayLike) -> Array:
        """The weighted sum of z-scores: standard deviations of the outcome above its mean."""
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise DataError(f"predictors must be a table with {len(self.names)} columns; got one of shape {rows.shape}")
        total = np.zeros(len(rows))
        for name, weight in self.weights.items():
            values = rows[:, self.names.index(name)]
            total += weight.value * (values - self.means[name]) / self.deviations[name]
        return total

    def predict(self, x: ArrayLike) -> Array:
        """The outcome that the performance stands for, in its own units."""
        return np.asarray(self.outcome_mean + self.outcome_deviation * self.performance(x))

    def formula(self) -> str:
        """The performance function as one writes it, the largest weight first."""
        order = sorted(self.weights.items(), key=lambda one: -abs(one[1].value))
        terms = [f"{'-' if weight.value < 0 else '+'} {abs(weight.value):.2f} N({name})" for name, weight in order]
        return " ".join(terms).removeprefix("+ ") or "0"

    def to_dict(self) -> dict[str, Any]:
        """The function as plain values."""
        return {
            "model": "paradise",
            "weights": {name: weight.to_dict() for name, weight in self.weights.items()},
            "means": dict(self.means),
            "deviations": dict(self.deviations),
            "outcome": {"mean": self.outcome_mean, "deviation": self.outcome_deviation},
            "r2": self.r2,
            "adjusted_r2": plain(self.adjusted_r2),
            "n": self.n,
            "left_out": list(self.left_out),
            "formula": self.formula(),
        }


def paradise(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> Paradise:
    """The performance function of predictors such as kappa, turns or errors, one row per dialogue.

    Standard deviations have the divisor n - 1. Predictions are those of the plain regression: z-scores change the
    units of coefficients and nothing else.

    >>> found = paradise([[0.5, 4.0], [0.5, 6.0], [0.9, 4.0], [0.9, 6.0]], [2.0, 1.0, 5.0, 4.0], ["kappa", "turns"])
    >>> found.formula()
    '0.95 N(kappa) - 0.32 N(turns)'
    """
    rows, outcome, _ = checked(x, y, names, None)
    deviation = float(outcome.std(ddof=1))
    if deviation <= SAME * np.abs(outcome).max():
        raise DataError("the outcome is the same in every dialogue, so there is nothing to explain")
    spread = rows.std(axis=0, ddof=1)
    varying = np.flatnonzero(spread > SAME * np.abs(rows).max(axis=0))
    means = rows.mean(axis=0)
    fit = least_squares((rows[:, varying] - means[varying]) / spread[varying], (outcome - outcome.mean()) / deviation)
    free = fit.n - fit.rank
    slopes, errors = fit.coefficients[1:], fit.standard_errors[1:]
    kept = {names[place]: number for number, place in enumerate(varying.tolist()) if not np.isnan(slopes[number])}
    r2 = 1 - fit.rss / (fit.n - 1)  # the squares of z-scores add up to n - 1
    return Paradise(
        weights={name: _weight(float(slopes[place]), float(errors[place]), free) for name, place in kept.items()},
        names=tuple(names),
        means={name: float(means[varying[place]]) for name, place in kept.items()},
        deviations={name: float(spread[varying[place]]) for name, place in kept.items()},
        outcome_mean=float(outcome.mean()),
        outcome_deviation=deviation,
        r2=r2,
        adjusted_r2=1 - (1 - r2) * (fit.n - 1) / free if free else float("nan"),
        n=fit.n,
        left_out=tuple(name for name in names if name not in kept),
    )


def task_success(confusion: Confusion, *, rejected: Rejected = "own", chance: Chance = "dialogue") -> Array:
    """Kappa of each dialogue: agreement of what the system understood with the key, beyond chance; NaN where undefined.

    `confusion` holds one table for each dialogue. A rejection is an answer of its "own" that is never right, or left
    "out". Agreement by chance is that of the "dialogue" itself (Cohen's kappa), of all dialogues together ("corpus"),
    or the sum of squared shares of the values in the "key" over all dialogues, as Walker et al. (1997) have it. A
    dialogue whose turns all have one label has a kappa only by the latter two.

    >>> tables = np.array([[[2, 1], [0, 1], [0, 0]], [[2, 0], [0, 1], [1, 0]]], dtype=float)
    >>> task_success(Confusion(("no", "yes"), tables, 8)).round(3).tolist()
    [0.5, 0.556]
    """
    if chance not in get_args(Chance):
        raise UsageError(f'chance agreement is that of the {", ".join(get_args(Chance))}; got "{chance}"')
    measure = Kappa(rejected)
    if chance == "dialogue":
        return np.atleast_1d(measure.finish(confusion))
    kept = confusion.counts if rejected == "own" else confusion.counts[..., :-1, :]
    observed = ratio(confusion.hits.sum(axis=-1), kept.sum(axis=(-2, -1)))
    together = kept.reshape(-1, *kept.shape[-2:]).sum(axis=0)
    key, found = together.sum(axis=0), together.sum(axis=1)[: len(confusion.labels)]
    expected = float(ratio((key * (key if chance == "key" else found)).sum(), np.square(together.sum())))
    return np.atleast_1d(ratio(observed - expected, 1 - expected))


def attribute_tables(keys: Sequence[Mapping[str, str]], found: Sequence[Mapping[str, str | None]]) -> Confusion:
    """Attribute-value tables of dialogues as confusions, one for each: what was to be exchanged, and what was.

    Values of different attributes are different labels, as in the attribute-value matrix of PARADISE. An attribute
    that was not found is rejected; one that was found but is not in the key was none of the user's.

    >>> tables = attribute_tables([{"city": "Turin", "day": "Friday"}], [{"city": "Turin", "day": None}])
    >>> tables.labels, tables.counts.tolist()
    (('city=Turin', 'day=Friday'), [[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]])
    """
    if len(keys) != len(found):
        raise DataError(f"every dialogue needs a key and what was found; got {len(keys)} and {len(found)}")
    pairs = [list(_pairs(key, got)) for key, got in zip(keys, found, strict=True)]
    empty = [place for place, one in enumerate(pairs) if not one]
    if empty or not pairs:
        raise DataError("a dialogue needs at least one attribute", where=f"dialogue {empty[0]}:" if empty else "")
    labels = tuple(sorted({label for one in pairs for pair in one for label in pair if label is not None}))
    place_of = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(pairs), len(labels) + 1, len(labels)))
    for dialogue, one in enumerate(pairs):
        for actual, predicted in one:
            counts[dialogue, len(labels) if predicted is None else place_of[predicted], place_of[actual]] += 1
    return Confusion(labels, counts, int(counts.sum()))


def annotator_kappa(
    first: Sequence[str | None], second: Sequence[str | None], *, unlabelled: Rejected = "own"
) -> Figure:
    """Cohen's kappa of two annotators; it does not matter which is first.

    None is an item that an annotator could not label. It is a label of its "own", on which they can agree, or the item
    is left "out" for both.

    >>> annotator_kappa(["a", "a", "b", "b"], ["a", "a", "b", None]).value
    0.6
    """
    if unlabelled not in get_args(Rejected):
        raise UsageError(f'items without a label have their "own" one or are left "out"; got "{unlabelled}"')
    if len(first) != len(second):
        raise DataError(f"annotators must label the same items; got {len(first)} and {len(second)}")
    pairs = list(zip(first, second, strict=True))
    if unlabelled == "out":
        pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        raise DataError("there is no item that both annotators labelled")
    one, other = ([NO_LABEL if label is None else label for label in side] for side in zip(*pairs, strict=True))
    return _figure(Kappa(), Confusion.of(one, other))


def system_kappas(confusion: Confusion) -> dict[Rejected, Figure]:
    """Cohen's kappa of a system and the gold labels in one table, rejections as their own row and left out."""
    return {rejected: _figure(Kappa(rejected), confusion) for rejected in get_args(Rejected)}


def _figure(measure: Kappa, confusion: Confusion) -> Figure:
    value = float(measure.finish(confusion))
    return Figure(value, why=measure.why_undefined(confusion) if np.isnan(value) else None)


def _weight(value: float, error: float, free: int) -> Weight:
    if not free:
        return Weight(value, float("nan"), float("nan"))
    if error == 0:
        return Weight(value, 0.0, 0.0)
    return Weight(value, error, student_p(value, error, free))


def _pairs(key: Mapping[str, str], got: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """Right and found value of every attribute of the key, then of those found besides."""
    asked = [(_label(name, value), _found(name, got.get(name))) for name, value in key.items()]
    besides = [(_label(name, NO_LABEL), _found(name, value)) for name, value in got.items() if name not in key]
    return asked + [pair for pair in besides if pair[1] is not None]


def _label(attribute: str, value: str) -> str:
    return f"{attribute}={value}"


def _found(attribute: str, value: str | None) -> str | None:
    return None if value is None else _label(attribute, value)
