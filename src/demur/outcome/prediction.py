"""What a system would achieve that was never tried, which errors cost the outcome, and what-if answers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from demur import __version__
from demur.core.arrays import Array
from demur.core.io.columns import nearest
from demur.core.io.untrusted import decode_json, read_bounded
from demur.core.io.writing import write_whole
from demur.core.show.results import Shown, plain
from demur.core.stats.intervals import Difference, Figure, student, student_p
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.features import (
    Design,
    Turns,
    all_features,
    confusion_features,
    fill_undefined,
    frequent_confusions,
    turns_of,
    unknown_turns,
)
from demur.outcome.least_squares import least_squares
from demur.outcome.options import Rejections, Undefined, UnknownLabels
from demur.outcome.stepwise import INTERCEPT
from demur.outcome.validation import VALIDATION_NAMES
from demur.returns.table import Responses

if TYPE_CHECKING:
    from demur.outcome.fitting import OutcomeFit

FORMAT = "demur outcome model"
NEWEST = 1
Moderate = Annotated[float, Meta(ge=-1e100, le=1e100)]
"""A number whose products with others are numbers too."""

Amount = Annotated[float, Meta(ge=0, le=1e100)]

ValidationName = Annotated[str, Meta(pattern=f"^({'|'.join(VALIDATION_NAMES)})$")]

MOST_LABELS = 2000
"""Labels whose confusions can be counted, dialogue by dialogue."""

HIDDEN_PRICES = "prices of confusions are not shown, as the model predicts no better than the mean; JSON has them"


class OutcomeStamp(msgspec.Struct):
    """What the file of a model says of itself."""

    format: Literal["demur outcome model"]
    version: int
    made_by: str = ""


class OutcomeModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What explains an outcome: an intercept and weights of features, and what the training data held.

    A model may be written by hand, as from a paper: `format`, `version`, `outcome` and `coefficients` are enough. Then
    there is no interval and no check whether new data is like the training data.
    """

    format: str
    version: int
    outcome: str
    coefficients: dict[str, Moderate]
    features: str = ""
    undefined: Undefined = "impute-mean"
    rejections: Rejections = "counted"
    labels: Annotated[list[str], Meta(max_length=MOST_LABELS)] = []
    min_per_dialogue: Amount = 2.0
    n: Annotated[int, Meta(ge=0, le=2**53)] = 0
    sigma: Amount | None = None
    covariance: list[list[Moderate]] = []
    """Of the coefficients, in their order."""
    mean_outcome: Moderate | None = None
    sd_outcome: Amount | None = None
    means: dict[str, Moderate] = {}
    ranges: dict[str, tuple[Moderate, Moderate]] = {}
    """The least and the greatest value of each feature that training dialogues had."""
    rare_share: Amount | None = None
    """The share of answers that may be confusions too rare to be features: about twice what it was in training."""
    frequent: list[str] = []
    """The confusions that were frequent enough to be features."""
    direction: str = ""
    validation: dict[ValidationName, dict[str, Moderate | None]] = {}
    made_by: str = ""
    digest: str = ""
    """A name of all the rest, by which changes by hand are noticed; a model without it is taken as written by hand."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The features in the formula."""
        return tuple(name for name in self.coefficients if name != INTERCEPT)

    @property
    def predicts(self) -> bool:
        """Whether it predicts better than the mean does in nested validation; a model without one is not doubted."""
        if "nested" not in self.validation:
            return True
        return (self.validation["nested"].get("r2") or 0.0) > 0

    def doubts(self) -> tuple[str, ...]:
        """A warning where nested validation does not show that it predicts."""
        shown = "nested validation does not show that the model predicts better than the mean outcome"
        return () if self.predicts else (f"{shown}: do not rely on its predictions",)

    @property
    def checks(self) -> bool:
        """Whether it holds anything that a new system can be checked against."""
        confusions = any(name.startswith("predicted-") for name in self.terms)
        return bool(self.ranges) or (self.rare_share is not None and confusions)

    def value(self, features: Mapping[str, float]) -> float:
        """The outcome that features give.

        >>> model = model_from_formula("gain", {"(Intercept)": 0.5, "recall.yes": 0.2})
        >>> model.value({"recall.yes": 0.5})
        0.6
        """
        weighted = sum(self.coefficients[name] * features[name] for name in self.terms)
        return float(self.coefficients.get(INTERCEPT, 0.0) + weighted)

    def formula(self) -> str:
        """The model as one reads it."""
        weights = [(name, self.coefficients[name]) for name in self.terms]
        terms = [f" {'-' if weight < 0 else '+'} {abs(weight):.4g} * {name}" for name, weight in weights]
        return f"{self.outcome} = {self.coefficients.get(INTERCEPT, 0.0):.4g}{''.join(terms)}"

    def notes(self) -> tuple[str, ...]:
        """The formula, and what it was fitted to."""
        formula = f"formula: {self.formula()}"
        if not self.digest:
            lacks = [] if self.covariance else ["no intervals"]
            if not self.ranges:
                rare = "no ranges of scores, so new systems are checked for rare confusions only"
                lacks.append(
                    "nothing to check new systems against, so they are not checked" if not self.checks else rare
                )
            return formula, f"the model was written by hand{': ' if lacks else ''}{', and '.join(lacks)}"
        r2s = {VALIDATION_NAMES[kind]: values.get("r2") for kind, values in self.validation.items()}
        shares = ", ".join(f"{name} {r2:.2f}" for name, r2 in r2s.items() if r2 is not None)
        return (
            formula,
            f"fitted on {self.n:,} dialogues, features {self.features}, R2 {shares}",
            "naive guess: the mean outcome of these dialogues, whatever the system",
            "intervals are of the mean outcome under the chosen formula; that the formula was chosen is not in them",
        )

    def to_json(self) -> bytes:
        """The model as a readable file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def model_from_formula(outcome: str, coefficients: Mapping[str, float]) -> OutcomeModel:
    """A model from a formula, as a paper prints it."""
    return OutcomeModel(format=FORMAT, version=NEWEST, outcome=outcome, coefficients=dict(coefficients))


def model_of(
    made: Design,
    terms: tuple[str, ...],
    *,
    direction: str,
    validation: Mapping[str, dict[str, float | None]],
) -> OutcomeModel:
    """The model that keeps these features of a design."""
    columns = [made.names.index(name) for name in terms]
    fit = least_squares(made.x[:, columns], made.y)
    names = (INTERCEPT, *terms)
    estimated = [place for place in range(len(names)) if not np.isnan(fit.coefficients[place])]
    covariance = fit.sigma**2 * fit.inverse[np.ix_(estimated, estimated)]
    ranges = {name: _range_of(column) for name, column in zip(made.names, made.x.T, strict=True)}
    frequent, rare_share = [], None
    if made.turns is not None:
        # ranges of what the turns give beyond the candidates, so that any new behaviour can be held against them
        for name, values in all_features(made.turns).items():
            if name not in ranges and not np.isnan(values).all():
                ranges[name] = _range_of(values[~np.isnan(values)])
        # confusions that the model could learn from: those asked for, too, however rare among the dialogues kept
        asked = [name for name in confusion_features(made.turns) if name in made.names]
        frequent = list(dict.fromkeys([*frequent_confusions(made.turns, made.least), *asked]))
        rare_share = _rare_share(made.turns, frequent)
    model = OutcomeModel(
        format=FORMAT,
        version=NEWEST,
        outcome=made.outcome,
        coefficients={names[place]: float(fit.coefficients[place]) for place in estimated},
        features=made.asked,
        undefined=made.undefined,
        rejections=made.rejections,
        labels=[] if made.turns is None else list(made.turns.labels),
        min_per_dialogue=made.least,
        n=made.y.size,
        sigma=None if np.isnan(fit.sigma) else fit.sigma,
        covariance=np.nan_to_num(covariance).tolist(),
        mean_outcome=float(made.y.mean()),
        sd_outcome=float(made.y.std(ddof=1)),
        means=dict(made.means),
        ranges=ranges,
        rare_share=rare_share,
        frequent=frequent,
        direction=direction,
        validation=dict(validation),
        made_by=f"demur {__version__}",
    )
    return msgspec.structs.replace(model, digest=_digest(model))


def _range_of(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _rare_share(turns: Turns, frequent: Collection[str]) -> float | None:
    """Twice the share of rare confusions among all answers, or three standard errors by dialogues above it."""
    answers, errors = turns.counts[:, :-1].sum(axis=(1, 2)), turns.misclassified
    shares = [np.nan_to_num(values) for name, values in confusion_features(turns).items() if name not in frequent]
    rare = np.sum(shares, axis=0) * errors if shares else np.zeros(errors.size)
    if not answers.sum() > 0:
        return None
    share = float(rare.sum() / answers.sum())
    error = float(np.sqrt(np.square(rare - share * answers).sum()) / answers.sum())
    return min(share + max(3 * error, share), 1.0)


def write_model(fit: OutcomeFit, path: Path) -> None:
    """Write the model of a fit to a file, which is not changed before all of it is there."""
    write_whole(path, fit.model.to_json())


def read_model(path: str | Path) -> OutcomeModel:
    """Reads a model from a file; one that was changed after it was made, or is of a newer kind, is refused."""
    where = f"{path}:"
    content = read_bounded(Path(path))
    stamp = decode_json(content, OutcomeStamp, where, "an outcome model")
    if stamp.version > NEWEST:
        maker = stamp.made_by or "a newer demur"
        rule = f"the model is of kind {stamp.version}, made by {maker}; this is demur {__version__}"
        raise DataError(f"{rule}, which reads up to {NEWEST}", where=where, fix="upgrade demur, or fit the model again")
    model = decode_json(content, OutcomeModel, where, "an outcome model")
    size = len(model.coefficients)
    if model.covariance and [len(row) for row in model.covariance] != [size] * size:
        raise DataError(f"the covariance must be {size} by {size}, as there are coefficients", where=where)
    if any(low > high for low, high in model.ranges.values()):
        raise DataError("a range must go from the least to the greatest value", where=where)
    if model.digest and model.digest != _digest(model):
        raise DataError(
            "the model was changed after it was made, so its intervals and ranges may not belong to it",
            where=where,
            fix="fit it again; or take out digest, covariance and ranges to use it as a formula written by hand",
        )
    return model


def _digest(model: OutcomeModel) -> str:
    bare = msgspec.structs.replace(model, digest="")
    return hashlib.blake2b(msgspec.json.encode(bare, order="deterministic"), digest_size=8).hexdigest()


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


@dataclass(frozen=True, eq=False, repr=False)
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
        return (*self.model.doubts(), *_doubts([self]), *self.reading_warnings)

    def to_dict(self) -> dict[str, Any]:
        """The prediction as plain values, in a list of one system, as a comparison has several."""
        return _document(self, prices=[asdict(price) for price in self.prices])

    def values(self) -> dict[str, Any]:
        """What is predicted for the system, as plain values."""
        return {
            "system": self.system,
            "predicted": self.figure.to_dict(),
            "naive": self.naive.to_dict(),
            "dialogues": self.dialogues,
            "pooled": self.pooled,
            "left_out": plain(asdict(self.left_out)),
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
    partial = [(one.system, one.left_out) for one in predictions if one.left_out.turns]
    return [f"{name}: predicted from {left.of - left.turns:,} of {left.of:,} turns" for name, left in partial]


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
    figure = _with_interval(model, features, level)
    if outside and not extrapolate:
        figure = Figure(float("nan"), why="the system is unlike the training data: " + "; ".join(outside))
    naive, size, extrapolated = _naive(model, level), len(turns.dialogues), bool(outside) and extrapolate
    return Prediction(model, system, figure, naive, features, outside, extrapolated, size, pooled, known, model.checks)


def mean_features(model: OutcomeModel, turns: Turns) -> dict[str, float]:
    """The model's features, averaged over dialogues; undefined ones filled in as for the training data."""
    raw = all_features(turns, model.terms)
    missing = [name for name in model.terms if name not in raw]
    if missing:
        raise DataError(
            f"the model needs {', '.join(missing)}, which turns do not give",
            fix="no turn has such a label; or it is a column of dialogues, which an untried system does not have",
        )
    lacking = [name for name in model.terms if name not in model.means]
    gaps = [name for name in lacking if np.isnan(raw[name]).any()]
    if gaps and model.undefined == "impute-mean":  # a model written by hand may hold no means
        raise DataError(
            f"{', '.join(gaps)} is undefined in some dialogue, and the model holds no mean of it to take instead",
            fix='write "undefined": "zero" or "drop" into the model, or give its "means"',
        )
    means = {**model.means, **dict.fromkeys(lacking, float("nan"))}
    table = fill_undefined(raw, model.terms, model.undefined, means)
    kept = table[~np.isnan(table).any(axis=1)] if table.size else table
    if model.terms and not kept.shape[0]:
        raise DataError("every dialogue has an undefined feature, so none is left to predict from")
    return {name: float(kept[:, place].mean()) for place, name in enumerate(model.terms)}


def prices(model: OutcomeModel, turns: Turns, *, share: float = 0.5) -> tuple[Price, ...]:
    """What putting right half of each confusion would do to the predicted outcome, the dearest first."""
    now = model.value(mean_features(model, turns))
    counts = {pair: float(turns.cell(*pair).sum()) for pair in turns.pairs}
    every = [
        Price(*pair, count, model.value(mean_features(model, turns.corrected(*pair, share))) - now)
        for pair, count in counts.items()
        if count > 0
    ]
    return tuple(sorted(every, key=lambda price: (-abs(price.change), price.predicted, price.actual)))


def predicted_pairs(
    model: OutcomeModel, predictions: Sequence[Prediction], level: float = 0.95
) -> tuple[PredictedPair, ...]:
    """The systems that can be predicted for, pair by pair."""
    sound = combinations([one for one in predictions if not one.refused], 2)
    pairs = [PredictedPair(a.system, b.system, _difference(model, a, b, level)) for a, b in sound]
    return tuple(replace(pair, difference=pair.difference.corrected(len(pairs), level)) for pair in pairs)


def _difference(model: OutcomeModel, a: Prediction, b: Prediction, level: float) -> Difference:
    value, undefined = a.figure.value - b.figure.value, float("nan")
    gaps = {name: a.features[name] - b.features[name] for name in model.terms}
    error, freedom = _standard_error(model, {INTERCEPT: 0.0, **gaps})
    if math.isnan(error):
        return Difference(value, undefined, undefined, undefined, undefined)
    if error == 0:
        return Difference(value, value, value, 1.0 if value == 0 else undefined, undefined)
    reach = student(level, freedom) * error
    p = student_p(value, error, freedom)
    return Difference(value, value - reach, value + reach, p, p, freedom=freedom)


def _with_interval(model: OutcomeModel, features: Mapping[str, float], level: float) -> Figure:
    value = model.value(features)
    error, freedom = _standard_error(model, {INTERCEPT: 1.0, **features})
    reach = student(level, freedom) * error
    return Figure(value, value - reach, value + reach)


def _standard_error(model: OutcomeModel, at: Mapping[str, float]) -> tuple[float, int]:
    """The standard error of a sum of coefficients, each so many times, and its degrees of freedom; NaN if unknown."""
    freedom = model.n - len(model.coefficients)
    if not model.covariance or freedom < 1:
        return float("nan"), freedom
    point = np.array([at[name] for name in model.coefficients])
    variance = point @ np.array(model.covariance, dtype=np.float64) @ point
    return float(np.sqrt(max(variance, 0.0))), freedom


def _naive(model: OutcomeModel, level: float) -> Figure:
    if model.mean_outcome is None:
        return Figure(float("nan"), why="the model was written by hand and holds no mean outcome")
    if model.sd_outcome is None or model.n < 2:
        return Figure(model.mean_outcome)
    reach = student(level, model.n - 1) * model.sd_outcome / np.sqrt(model.n)
    return Figure(model.mean_outcome, model.mean_outcome - reach, model.mean_outcome + reach)


def _outside(model: OutcomeModel, turns: Turns, features: Mapping[str, float]) -> tuple[str, ...]:
    """What of a system lies beyond what the training dialogues held.

    Where confusions are features, those that were too rare in training to be such must not be a far greater part of the
    answers here. A part of the answers, not of the misclassifications: a system that mends frequent confusions makes no
    more rare ones.
    """
    faults = []
    for name in model.terms:
        low, high = model.ranges.get(name, (-np.inf, np.inf))
        if not low - SLACK <= features[name] <= high + SLACK:
            faults.append(f"{name} is {features[name]:.3g}, in training it was {low:.3g} to {high:.3g}")
    if model.rare_share is not None and any(name.startswith("predicted-") for name in model.terms):
        every = turns.pooled
        scale = float(ratio(every.misclassified, every.counts[:, :-1].sum(axis=(1, 2)))[0])
        shares = {name: scale * float(values[0]) for name, values in confusion_features(every).items()}
        rare = {name: share for name, share in shares.items() if name not in model.frequent and share > 0}
        if sum(rare.values()) > model.rare_share + SLACK:
            worst = sorted(rare, key=lambda name: -rare[name])[:3]
            faults.append(
                f"{sum(rare.values()):.0%} of its answers are confusions that were too rare in training to learn from "
                f"(there at most {model.rare_share:.0%}): {', '.join(f'{name} ({rare[name]:.0%})' for name in worst)}"
            )
    return tuple(faults)


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


def what_if(
    model: OutcomeModel, turns: Turns, corrections: Mapping[tuple[str, str], float], *, level: float = 0.95
) -> WhatIf:
    """The predicted outcome if shares of confusions were put right, all features computed again.

    Confusions are named by predicted and actual label. What lies beyond the training data is predicted all the same,
    and `then.outside` says that it does.
    """
    known = turns.with_labels(model.labels)
    after, moved = known, 0.0
    for (predicted, actual), share in corrections.items():
        for label in (predicted, actual):
            if label not in known.labels:
                raise UsageError(f'there is no label "{label}"; {nearest(label, known.labels)}')
        if predicted == actual:
            raise UsageError(f'"{actual}" taken for itself is right already; a confusion has two labels')
        if not 0 <= share <= 1:
            raise UsageError(f"the share of a confusion that is put right lies between 0 and 1; got {share:g}")
        moved += share * float(known.cell(predicted, actual).sum())
        after = after.corrected(predicted, actual, share)
    now, then = (
        prediction_of(model, name, one, pooled=False, extrapolate=True, level=level)
        for name, one in (("now", known), ("then", after))
    )
    difference = predicted_pairs(model, [then, now], level)[0].difference
    return WhatIf(now, then, difference, moved)


@dataclass(frozen=True, eq=False, repr=False)
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
        return (*self.model.doubts(), *_doubts(self.predictions), *self.reading_warnings)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return _document(self, pairs=[pair.to_dict() for pair in self.pairs])


def _document(found: Prediction | OutcomeComparison, **parts: Any) -> dict[str, Any]:
    return {
        "outcome": found.model.outcome,
        "formula": found.model.formula(),
        "systems": [one.values() for one in found.predictions],
        **parts,
        "notes": list(found.notes),
        "warnings": list(found.warnings),
    }


def compare_predictions(
    model: OutcomeModel, predictions: Sequence[Prediction], level: float = 0.95
) -> OutcomeComparison:
    """The systems by predicted outcome, with the differences of each pair."""
    return OutcomeComparison(model, tuple(predictions), predicted_pairs(model, predictions, level))
