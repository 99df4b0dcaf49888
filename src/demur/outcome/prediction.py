"""What a system would achieve that was never tried, which errors cost the outcome, and what-if answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from demur.core.arrays import Array
from demur.core.io.columns import nearest
from demur.core.show.results import Shown
from demur.core.stats.intervals import Difference, Figure, holm, student, student_p
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.features import Turns, all_features, confusion_features, fill_undefined, turns_of, unknown_turns
from demur.outcome.models import HIDDEN_PRICES, INTERCEPT, OutcomeModel
from demur.outcome.options import UnknownLabels
from demur.returns.table import Responses

SLACK = 1e-9
"""How far beyond its training range a feature may lie by rounding."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Turns that a prediction leaves out, as they have labels that the model does not know."""

    labels: tuple[str, ...] = ()
    turns: int = 0
    of: int = 0
    """Turns before any was left out."""
    dialogues: int = 0
    """Dialogues of which no turn remains."""

    def words(self) -> str:
        """Which turns are left out, and of how many.

        >>> LeftOut(("odd",), 2, 3934).words()
        '2 of 3,934 turns are left out, as they have labels that the model does not know (odd)'
        """
        whole = f", all turns of {self.dialogues:,} dialogues among them" if self.dialogues else ""
        unknown = f"labels that the model does not know ({', '.join(self.labels)})"
        return f"{self.turns:,} of {self.of:,} turns are left out{whole}, as they have {unknown}"

    def remaining(self) -> str:
        """How many turns a prediction is from.

        >>> LeftOut(("odd",), 2, 3934).remaining()
        'predicted from 3,932 of 3,934 turns'
        """
        return f"predicted from {self.of - self.turns:,} of {self.of:,} turns"

    def to_dict(self) -> dict[str, Any]:
        """What was left out as plain values."""
        return {"labels": list(self.labels), "turns": self.turns, "of": self.of, "dialogues": self.dialogues}


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    """The outcome that a model predicts for one system, beside the naive guess, or why it does not."""

    model: OutcomeModel
    system: str
    figure: Figure
    naive: Figure
    """The mean outcome of the training dialogues."""
    features: Mapping[str, float]
    outside: tuple[str, ...]
    """What of the system lies beyond the training data, a sentence each."""
    extrapolated: bool
    dialogues: int
    pooled: bool
    turns: Turns
    checked: bool = True
    """Whether the model holds ranges of its training data to check the system against."""
    left_out: LeftOut = LeftOut()
    reading_notes: tuple[str, ...] = ()
    reading_warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the system is too unlike the training data to predict for."""
        return bool(self.outside) and not self.extrapolated

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """This one, as a comparison has several."""
        return (self,)

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """What putting right half of each confusion would do to the predicted outcome; none where it is refused."""
        return () if self.refused else prices(self.model, self.turns)

    @property
    def notes(self) -> tuple[str, ...]:
        """The formula, what it was fitted to, and how the turns were read."""
        hidden = [HIDDEN_PRICES] if self.prices and not self.model.predicts else []
        return (*self.model.notes(), *hidden, *_remaining([self]), *self.reading_notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the prediction, or with the data."""
        return (*_doubts([self]), *self.reading_warnings)

    def to_dict(self) -> dict[str, Any]:
        """The prediction as plain values, in a list of one system, as a comparison has several."""
        return {
            "outcome": self.model.outcome,
            "formula": self.model.formula(),
            "systems": [self.values()],
            "prices": [price.to_dict() for price in self.prices],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def values(self) -> dict[str, Any]:
        """What is predicted for the system, as plain values."""
        return {
            "system": self.system,
            "predicted": self.figure.to_dict(),
            "naive": self.naive.to_dict(),
            "dialogues": self.dialogues,
            "pooled": self.pooled,
            "left_out": self.left_out.to_dict(),
            "supported": not self.outside if self.checked else None,
            "outside": list(self.outside),
            "extrapolated": self.extrapolated,
            "features": dict(self.features),
        }


@dataclass(frozen=True, slots=True)
class Price:
    """What a confusion costs: by how much the predicted outcome changes if half of its cases were put right."""

    predicted: str
    actual: str
    count: float
    change: float

    def to_dict(self) -> dict[str, Any]:
        """The price as plain values."""
        return {"predicted": self.predicted, "actual": self.actual, "count": self.count, "change": self.change}


@dataclass(frozen=True, slots=True)
class PredictedPair:
    """Two systems by predicted outcome, a less b."""

    a: str
    b: str
    difference: Difference

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain values."""
        return {"a": self.a, "b": self.b, "difference": self.difference.to_dict()}


def _remaining(predictions: Sequence[Prediction]) -> list[str]:
    return [f"{one.system}: {one.left_out.remaining()}" for one in predictions if one.left_out.turns]


def _doubts(predictions: Sequence[Prediction]) -> list[str]:
    left_out = [f"{one.system}: {one.left_out.words()}" for one in predictions if one.left_out.turns]
    beyond = [f"{one.system}: extrapolated, {why}" for one in predictions if one.extrapolated for why in one.outside]
    return left_out + beyond


def predict(
    model: OutcomeModel,
    responses: Responses,
    *,
    pooled: bool | None = None,
    extrapolate: bool = False,
    unknown_labels: UnknownLabels = "refuse",
    level: float = 0.95,
) -> Prediction:
    """The outcome that a model predicts for one system, from its answers on turns with known labels.

    Features are those of each dialogue, averaged, or where turns are of no dialogue (or `pooled`) those of all turns.
    With `unknown_labels="drop"` turns with labels that the model does not know are left out, and counted in `left_out`.
    """
    whole = bool(responses.frame["dialogue"].null_count()) if pooled is None else pooled
    turns, system = turns_of(responses, pooled=whole, rejections=model.rejections), responses.systems[0]
    unknown, left_out = _unknown(model, turns), LeftOut()
    if unknown:
        foreign = unknown_turns(responses, model.labels)
        count = int(foreign.sum())
        if unknown_labels == "refuse" or count == len(responses):
            raise _foreign_labels(model, system, unknown, count, len(responses))
        before = len(turns.dialogues)
        kept = replace(responses, frame=responses.frame.filter(~foreign))
        turns = turns_of(kept, pooled=whole, rejections=model.rejections)
        left_out = LeftOut(tuple(unknown), count, len(responses), before - len(turns.dialogues))
    found = prediction_of(model, system, turns, pooled=whole, extrapolate=extrapolate, level=level)
    return replace(found, left_out=left_out)


def _unknown(model: OutcomeModel, turns: Turns) -> list[str]:
    """Labels that the model does not know; one written by hand may not say which it knows."""
    return sorted(set(turns.labels) - set(model.labels)) if model.labels else []


def _foreign_labels(model: OutcomeModel, system: str, unknown: Sequence[str], turns: int, of: int) -> DataError:
    have = "turn has" if turns == 1 else "turns have"
    advice = "" if turns == of else "; `unknown_labels` drop leaves these turns out"
    return DataError(
        f"the model does not know the labels {', '.join(unknown)} of {system}: {turns:,} of {of:,} {have} one of them",
        fix=f"it knows {', '.join(model.labels)}; are they coded differently?{advice}",
    )


def prediction_of(
    model: OutcomeModel, system: str, turns: Turns, *, pooled: bool, extrapolate: bool = False, level: float = 0.95
) -> Prediction:
    """The outcome that a model predicts from confusions."""
    if unknown := _unknown(model, turns):
        places = [turns.labels.index(label) for label in unknown]
        known_counts = np.delete(np.delete(turns.counts, places, axis=1), places, axis=2)
        total = float(turns.counts.sum())
        raise _foreign_labels(model, system, unknown, round(total - known_counts.sum()), round(total))
    known = turns.with_labels(model.labels)
    features = mean_features(model, known)
    outside = _outside(model, known, features)
    refused = bool(outside) and not extrapolate
    naive = _naive(model, level)
    if refused:
        figure = Figure(float("nan"), why="the system is unlike the training data: " + "; ".join(outside))
    else:
        figure = _with_interval(model, features, level)
    size, checked = len(turns.dialogues), bool(model.ranges)
    extrapolated = bool(outside) and extrapolate
    return Prediction(model, system, figure, naive, features, outside, extrapolated, size, pooled, known, checked)


def mean_features(model: OutcomeModel, turns: Turns) -> dict[str, float]:
    """The model's features, averaged over dialogues; undefined ones filled in as for the training data."""
    raw = all_features(turns)
    missing = [name for name in model.terms if name not in raw]
    if missing:
        raise DataError(
            f"the model needs {', '.join(missing)}, which turns do not give",
            fix="no turn has such a label; or it is a column of dialogues, which an untried system does not have",
        )
    table = fill_undefined(raw, model.terms, model.undefined, _means(model, raw))
    kept = table[~np.isnan(table).any(axis=1)] if table.size else table
    if model.terms and not kept.shape[0]:
        raise DataError("every dialogue has an undefined feature, so none is left to predict from")
    return {name: float(kept[:, place].mean()) for place, name in enumerate(model.terms)}


def _means(model: OutcomeModel, raw: Mapping[str, Array]) -> dict[str, float]:
    """What fills undefined features in; a model written by hand may lack it only as long as nothing is undefined."""
    lacking = [name for name in model.terms if name not in model.means]
    holes = [name for name in lacking if np.isnan(raw[name]).any()]
    if holes and model.undefined == "impute-mean":
        raise DataError(
            f"{', '.join(holes)} is undefined in some dialogue, and the model holds no mean of it to take instead",
            fix='write "undefined": "zero" or "drop" into the model, or give its "means"',
        )
    return dict(model.means) | dict.fromkeys(lacking, float("nan"))


def prices(model: OutcomeModel, turns: Turns, *, share: float = 0.5) -> tuple[Price, ...]:
    """What putting right half of each confusion would do to the predicted outcome, the dearest first."""
    now = model.value(mean_features(model, turns))
    found = []
    for predicted in turns.labels:
        for actual in turns.labels:
            count = float(turns.cell(predicted, actual).sum())
            if predicted != actual and count > 0:
                then = model.value(mean_features(model, turns.corrected(predicted, actual, share)))
                found.append(Price(predicted, actual, count, then - now))
    return tuple(sorted(found, key=lambda price: (-abs(price.change), price.predicted, price.actual)))


def predicted_pairs(
    model: OutcomeModel, predictions: Sequence[Prediction], level: float = 0.95
) -> tuple[PredictedPair, ...]:
    """The systems that can be predicted for, pair by pair."""
    sound = [one for one in predictions if not one.refused]
    pairs = [PredictedPair(a.system, b.system, _difference(model, a, b, level)) for a, b in combinations(sound, 2)]
    adjusted = holm(np.array([pair.difference.p for pair in pairs]))
    return tuple(
        PredictedPair(pair.a, pair.b, _corrected(pair.difference, float(p)))
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def _corrected(one: Difference, p: float) -> Difference:
    return Difference(one.value, one.low, one.high, one.p, p, one.why)


def _difference(model: OutcomeModel, a: Prediction, b: Prediction, level: float) -> Difference:
    value = a.figure.value - b.figure.value
    nothing = float("nan")
    gap = np.array([0.0 if n == INTERCEPT else a.features[n] - b.features[n] for n in model.coefficients])
    if not model.covariance or model.n <= len(model.coefficients):
        return Difference(value, nothing, nothing, nothing, nothing)
    error = float(np.sqrt(max(gap @ _covariance(model) @ gap, 0.0)))
    freedom = model.n - len(model.coefficients)
    if error == 0:
        return Difference(value, value, value, 1.0 if value == 0 else nothing, nothing)
    reach = student(level, freedom) * error
    p = student_p(value, error, freedom)
    return Difference(value, value - reach, value + reach, p, p)


def _with_interval(model: OutcomeModel, features: Mapping[str, float], level: float) -> Figure:
    value = model.value(features)
    freedom = model.n - len(model.coefficients)
    if not model.covariance or freedom < 1:
        return Figure(value)
    place = np.array([1.0 if name == INTERCEPT else features[name] for name in model.coefficients])
    reach = student(level, freedom) * float(np.sqrt(max(place @ _covariance(model) @ place, 0.0)))
    return Figure(value, value - reach, value + reach)


def _covariance(model: OutcomeModel) -> Array:
    return np.array(model.covariance, dtype=np.float64)


def _naive(model: OutcomeModel, level: float) -> Figure:
    if model.mean_outcome is None:
        return Figure(float("nan"), why="the model was written by hand and holds no mean outcome")
    if model.sd_outcome is None or model.n < 2:
        return Figure(model.mean_outcome)
    reach = student(level, model.n - 1) * model.sd_outcome / np.sqrt(model.n)
    return Figure(model.mean_outcome, model.mean_outcome - reach, model.mean_outcome + reach)


def _outside(model: OutcomeModel, turns: Turns, features: Mapping[str, float]) -> tuple[str, ...]:
    """What of a system lies beyond what the training dialogues held."""
    found = []
    for name in model.terms:
        low, high = model.ranges.get(name, (-np.inf, np.inf))
        value = features[name]
        if not low - SLACK <= value <= high + SLACK:
            found.append(f"{name} is {value:.3g}, in training it was {low:.3g} to {high:.3g}")
    if model.uses_confusions and model.rare_share is not None:
        found += _new_confusions(model, turns)
    return tuple(found)


def _new_confusions(model: OutcomeModel, turns: Turns) -> list[str]:
    """Confusions that were too rare in training to be features, where they are a far greater part of the answers here.

    A part of the answers, not of the misclassifications: a system that mends frequent confusions makes no more rare
    ones.
    """
    assert model.rare_share is not None
    every = turns.pooled
    scale = float(ratio(every.misclassified, every.counts[:, :-1].sum(axis=(1, 2)))[0])
    shares = {name: scale * float(values[0]) for name, values in confusion_features(every).items()}
    rare = {name: share for name, share in shares.items() if name not in model.frequent and share > 0}
    total = sum(rare.values())
    if not total > model.rare_share + SLACK:
        return []
    worst = sorted(rare, key=lambda name: -rare[name])[:3]
    listed = ", ".join(f"{name} ({rare[name]:.0%})" for name in worst)
    return [
        f"{total:.0%} of its answers are confusions that were too rare in training to learn from (there at most "
        f"{model.rare_share:.0%}): {listed}"
    ]


Corrections = Mapping[tuple[str, str], float]
"""The share of each confusion, named by predicted and actual label, that is put right."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The predicted outcome as things are, as they would be, and the difference."""

    now: Prediction
    then: Prediction
    change: Difference
    """Then less now; its interval is that of the weights, under the formula as chosen."""
    mended: float
    """How many turns of all were put right."""

    def to_dict(self) -> dict[str, Any]:
        """The question and its answer as plain values."""
        return {
            "now": self.now.figure.to_dict(),
            "then": self.then.figure.to_dict(),
            "change": self.change.to_dict(),
            "mended_turns": self.mended,
            "outside": list(self.then.outside),
        }


def what_if(model: OutcomeModel, turns: Turns, corrections: Corrections, *, level: float = 0.95) -> WhatIf:
    """The predicted outcome if shares of confusions were put right, all features computed again.

    What lies beyond the training data is predicted all the same, and `then.outside` says that it does.
    """
    known = turns.with_labels(model.labels)
    after, moved = known, 0.0
    for (predicted, actual), share in corrections.items():
        _check(predicted, actual, share, known)
        moved += share * float(known.cell(predicted, actual).sum())
        after = after.corrected(predicted, actual, share)
    now, then = (
        prediction_of(model, name, one, pooled=False, extrapolate=True, level=level)
        for name, one in (("now", known), ("then", after))
    )
    difference = predicted_pairs(model, [then, now], level)[0].difference
    return WhatIf(now, then, difference, moved)


def _check(predicted: str, actual: str, share: float, turns: Turns) -> None:
    for label in (predicted, actual):
        if label not in turns.labels:
            raise UsageError(f'there is no label "{label}"; {nearest(label, turns.labels)}')
    if predicted == actual:
        raise UsageError(f'"{actual}" taken for itself is right already; a confusion has two labels')
    if not 0 <= share <= 1:
        raise UsageError(f"the share of a confusion that is put right lies between 0 and 1; got {share:g}")


@dataclass(frozen=True, eq=False)
class OutcomeComparison(Shown):
    """Systems by predicted outcome; one that is unlike the training data is refused and takes part in no pair."""

    model: OutcomeModel
    predictions: tuple[Prediction, ...]
    pairs: tuple[PredictedPair, ...]
    reading_notes: tuple[str, ...] = ()
    reading_warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The formula, what it was fitted to, and how the turns were read."""
        return (*self.model.notes(), *_remaining(self.predictions), *self.reading_notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the predictions, or with the data."""
        return (*_doubts(self.predictions), *self.reading_warnings)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "outcome": self.model.outcome,
            "formula": self.model.formula(),
            "systems": [one.values() for one in self.predictions],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare_predictions(
    model: OutcomeModel, predictions: Sequence[Prediction], level: float = 0.95
) -> OutcomeComparison:
    """The systems by predicted outcome, with the differences of each pair."""
    return OutcomeComparison(model, tuple(predictions), predicted_pairs(model, predictions, level))
