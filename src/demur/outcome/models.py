"""A fitted outcome model: readable, saved and loaded as JSON, with what its training data held."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from demur import __version__
from demur.core.arrays import Array
from demur.core.io.untrusted import decode_json, read_bounded
from demur.core.io.writing import write_whole
from demur.errors import DataError
from demur.outcome.features import Design, Turns, all_features, confusion_features, frequent_confusions
from demur.outcome.least_squares import least_squares
from demur.outcome.options import Rejections, Undefined
from demur.outcome.stepwise import INTERCEPT
from demur.outcome.validation import VALIDATION_NAMES

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
            lacks += [] if self.ranges else ["nothing to check new systems against"]
            return formula, f"the model was written by hand{': ' if lacks else ''}{', and '.join(lacks)}"
        r2s = {VALIDATION_NAMES[kind]: values.get("r2") for kind, values in self.validation.items()}
        shares = ", ".join(f"{name} {r2:.2f}" for name, r2 in r2s.items() if r2 is not None)
        return (
            formula,
            f"fitted on {self.n:,} dialogues, features {self.features}, R2 {shares}",
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
