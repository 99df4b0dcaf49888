"""Predictions as Python has them: arrays, Series and estimators of scikit-learn, made into tables of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from demur.core.stats.measure import SweepMeasure
from demur.errors import DataError, UsageError
from demur.returns.measures import AUGRC, AURC, EAURC, ErrorAtNonreturn, NonreturnAtError, RankingSkill

if TYPE_CHECKING:
    from demur.returns.evaluate import Evaluation

Anything = np.ndarray[Any, Any]


def predictions(
    y_true: Any, y_pred: Any, confidence: Any = None, *, classes: Any = None, sample_weight: Any = None
) -> pl.DataFrame:
    """A table of answers that every function takes, from arrays, Series or lists of one length.

    `y_pred` is one of
    - probabilities with a column for each class, as `predict_proba` gives them: the most probable class is the answer,
      its probability the confidence. `classes` names the columns; without it they are the sorted labels of `y_true`,
      or the columns of a frame;
    - the probability of the second of two classes, in one dimension;
    - labels, with their `confidence`. A confidence that is NaN or None is missing.

    A label of `y_true` that is NaN or None is out of scope: no answer to it is right.

    >>> table = predictions(["a", "b"], [[0.9, 0.1], [0.6, 0.4]], classes=["a", "b"])
    >>> table.rows()
    [(0, 'a', 'a', 0.9), (1, 'b', 'a', 0.6)]
    """
    target, given = _column(y_true, "y_true"), _array(y_pred)
    if len(given) != len(target):
        raise DataError(f"arrays must be of one length; y_true has {len(target):,} and y_pred {len(given):,}")
    if confidence is not None:
        if given.ndim == 2:
            raise DataError(
                "probabilities of classes are confidences already, and take no `confidence`",
                fix='of several systems give a dict, {"one": probabilities, "other": probabilities}',
            )
        answer, sure = _column(y_pred, "y_pred"), _column(confidence, "confidence")
    else:
        answer, sure = _most_probable(given, _classes_of(given, target, y_pred, classes))
    table = {"id": pl.int_range(len(target), eager=True), "target": _labels(target), "prediction": _labels(answer)}
    confidences = pl.Series(_numbers(sure, "confidence", len(target)), nan_to_null=True)
    frame = pl.DataFrame({**table, "confidence": confidences})
    if sample_weight is None:
        return frame
    weights = _numbers(_column(sample_weight, "sample_weight"), "sample_weight", len(target))
    return frame.with_columns(weight=pl.Series(weights))


def estimator_predictions(estimator: Any, x: Any, y: Any) -> pl.DataFrame:
    """The answers of a fitted classifier: the most probable class, or the one with the highest decision function."""
    if callable(getattr(estimator, "predict_proba", None)):
        return predictions(y, estimator.predict_proba(x), classes=estimator.classes_)
    if not callable(getattr(estimator, "decision_function", None)):
        kind = type(estimator).__name__
        raise UsageError(f"{kind} has neither predict_proba nor decision_function, so its answers have no confidence")
    margins = np.asarray(estimator.decision_function(x))
    sure = np.abs(margins) if margins.ndim == 1 else margins.max(axis=1)
    return predictions(y, estimator.predict(x), sure)


def tables_of(data: tuple[Any, ...], classes: Any = None) -> tuple[Any, ...]:
    """Data in which arrays and estimators are tables, and anything else is as it was.

    Arrays are `y_true` and what `predictions` takes, estimators come with `X` and `y`; of several systems both are
    dicts by name.
    """
    if len(data) == 3 and _all_of(data[0], _is_estimator):
        named = data[0] if isinstance(data[0], Mapping) else {type(data[0]).__name__: data[0]}
        return ({name: estimator_predictions(one, data[1], data[2]) for name, one in named.items()},)
    if len(data) in (2, 3) and _is_array(data[0]) and _all_of(data[1], _is_array_or_frame):
        if not isinstance(data[1], Mapping):
            return (predictions(*data, classes=classes),)
        sure = data[2] if len(data) == 3 else {}
        return ({name: predictions(data[0], one, sure.get(name), classes=classes) for name, one in data[1].items()},)
    if classes is not None:
        raise UsageError("`classes` goes with arrays: y_true, and probabilities with a column for each class")
    return data


def _all_of(value: Any, test: Any) -> bool:
    """Whether a test holds for a value, or for each value of a dict by name."""
    return all(map(test, value.values())) and bool(value) if isinstance(value, Mapping) else bool(test(value))


def _is_estimator(value: Any) -> bool:
    return callable(getattr(value, "predict", None)) and callable(getattr(value, "fit", None))


def _is_array(value: Any) -> bool:
    """Whether this is an array, a Series, or a list of labels or numbers; a list of rows or of files is none."""
    if isinstance(value, list | tuple):
        return bool(value) and not isinstance(value[0], Mapping | Path)
    return isinstance(value, np.ndarray) or (hasattr(value, "to_numpy") and not hasattr(value, "columns"))


def _is_array_or_frame(value: Any) -> bool:
    return _is_array(value) or (hasattr(value, "columns") and hasattr(value, "to_numpy"))


def _array(values: Any) -> Anything:
    found = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if found.ndim not in (1, 2) or not len(found):
        raise DataError("an array of predictions has one or two dimensions and a row for each input", got=found.shape)
    return found


def _column(values: Any, name: str) -> Anything:
    found = _array(values)
    if found.ndim != 1:
        raise DataError(f"{name} must have one dimension", got=found.shape)
    return found


def _numbers(values: Anything, name: str, n: int) -> Anything:
    """As many numbers as there are inputs; NaN where one is missing."""
    if len(values) != n:
        raise DataError(f"arrays must be of one length; y_true has {n:,} and {name} {len(values):,}")
    if values.dtype.kind in "fiub":
        return values.astype(float)
    found = np.full(n, np.nan)
    for row, one in enumerate(values.tolist()):
        try:
            found[row] = np.nan if _is_missing(one) else float(one)
        except (TypeError, ValueError):
            raise DataError("must be a number", where=f"{name}: row {row + 1}", got=str(one), row=row + 1) from None
    return found


def _is_missing(one: Any) -> bool:
    try:
        return one is None or bool(one != one)
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True


def _sorted_labels(target: Anything) -> list[Any]:
    """The different labels in order, without missing ones."""
    known = target if target.dtype.kind in "iubUM" else target[[not _is_missing(one) for one in target.tolist()]]
    try:
        return list(np.unique(known))
    except TypeError:
        raise DataError("y_true must hold labels of one kind", got="text and numbers") from None


def _classes_of(given: Anything, target: Anything, y_pred: Any, classes: Any) -> list[Any]:
    """The names of the columns of probabilities."""
    width = given.shape[1] if given.ndim == 2 else 2
    columns = list(y_pred.columns) if given.ndim == 2 and hasattr(y_pred, "columns") else []
    sorted_labels = classes is None and not columns
    names = _sorted_labels(target) if sorted_labels else columns if classes is None else list(classes)
    if given.ndim == 1 and (given.dtype.kind != "f" or len(names) != 2 or _outside(given)):
        raise DataError(
            "y_pred in one dimension is the probability of the second of two classes",
            fix="give (y_true, labels, confidence), or probabilities with a column for each class",
        )
    if len(names) != width:
        fix = "name the columns with `classes`" if sorted_labels else ""
        raise DataError(f"there are {width} columns of probabilities and {len(names)} classes", fix=fix)
    if len(set(names)) < len(names):
        raise DataError("`classes` names a class twice", got=", ".join(map(str, names)))
    names_differ = columns != names and all(isinstance(one, str) for one in columns)
    if names_differ and sorted(columns) == sorted(map(str, names)):
        order = f"columns are {', '.join(map(str, columns))}, classes {', '.join(map(str, names))}"
        raise DataError(f"`classes` are in another order than the columns of the frame: {order}")
    return names


def _most_probable(given: Anything, names: Sequence[Any]) -> tuple[Anything, Anything]:
    try:
        chances = np.column_stack([1 - given, given]) if given.ndim == 1 else given.astype(float)
    except (TypeError, ValueError) as fault:
        raise DataError(f"probabilities must be numbers: {fault}") from None
    if np.isnan(chances).any():
        raise DataError("a probability is NaN", where=f"y_pred: row {int(np.isnan(chances).any(axis=1).argmax()) + 1}")
    best = chances.argmax(axis=1)
    return np.asarray(names)[best], chances[np.arange(len(best)), best]


def _outside(chances: Anything) -> bool:
    return bool(np.nanmin(chances) < 0 or np.nanmax(chances) > 1)


def _labels(values: Anything) -> pl.Series:
    """Labels as a column; None and NaN are no label."""
    if values.dtype.kind == "f" and (np.isnan(values) | (values == np.round(values))).all():
        return pl.Series([None if one != one else int(one) for one in values.tolist()], dtype=pl.Int64)
    if values.dtype.kind in "iub":
        return pl.Series(values)
    return pl.Series([None if _is_missing(one) else str(one) for one in values.tolist()], dtype=pl.String)


def _value(measure: SweepMeasure, y_true: Any, y_pred: Any, classes: Any, sample_weight: Any) -> float:
    from demur.returns.table import responses

    table = predictions(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    return measure(responses(table).frame).value


def augrc_score(y_true: Any, y_pred: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Area under the error-return curve (AUGRC), the mean error rate over all non-return rates; lower is better.

    `y_pred` are probabilities as `predictions` takes them. For scikit-learn:
    `make_scorer(demur.augrc_score, response_method="predict_proba", greater_is_better=False)`.

    >>> augrc_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.1])
    0.1875
    """
    return _value(AUGRC(), y_true, y_pred, classes, sample_weight)


def aurc_score(y_true: Any, y_pred: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Area under selective risk over coverage (AURC), the mean over random orders of ties; lower is better.

    >>> round(aurc_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.45]), 4)  # risks 0, 0, 0 and 1/4
    0.0625
    """
    return _value(AURC(), y_true, y_pred, classes, sample_weight)


def e_aurc_score(y_true: Any, y_pred: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """AURC above that of a perfect ranking of the same answers (e-AURC); lower is better.

    >>> e_aurc_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.45])
    0.0
    """
    return _value(EAURC(), y_true, y_pred, classes, sample_weight)


def ranking_skill_score(y_true: Any, y_pred: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """How well confidences rank right answers before wrong ones: 0 random, 1 perfect; higher is better.

    >>> ranking_skill_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.45])
    1.0
    """
    return _value(RankingSkill(), y_true, y_pred, classes, sample_weight)


def error_at_nonreturn_score(
    y_true: Any, y_pred: Any, *, nonreturn: float = 0.2, classes: Any = None, sample_weight: Any = None
) -> float:
    """Error rate, as a share of all inputs, where this share of them is withheld; lower is better.

    >>> error_at_nonreturn_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.45], nonreturn=0)
    0.25
    """
    return _value(ErrorAtNonreturn(nonreturn), y_true, y_pred, classes, sample_weight)


def nonreturn_at_error_score(
    y_true: Any, y_pred: Any, *, error: float = 0.05, classes: Any = None, sample_weight: Any = None
) -> float:
    """Share of the inputs that must be withheld for this error rate; lower is better.

    >>> nonreturn_at_error_score([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.45])
    0.25
    """
    return _value(NonreturnAtError(error), y_true, y_pred, classes, sample_weight)


class ErrorReturnDisplay:
    """Error-return plot of one classifier, made by `from_estimator` or `from_predictions`.

    It has `nonreturn` and `error`, the curve; `augrc`, the area under it; `evaluation`, all that `demur.score` gives;
    and after `plot` either `chart_`, an Altair chart, or, where it was drawn on axes of matplotlib, `line_`, `band_`,
    `ax_` and `figure_`. Unlike scikit-learn's it needs matplotlib only where `ax` is given.

    >>> display = ErrorReturnDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1])
    >>> display.augrc, display.nonreturn[0].item(), display.error[0].item()
    (0.03125, 0.0, 0.25)
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.nonreturn, self.error = evaluation.curve.nonreturn, evaluation.curve.error
        self.augrc = evaluation.figures["augrc"].value
        self.name = evaluation.name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        confidence: Any = None,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        name: str = "classifier",
        ax: Any = None,
        **look: Any,
    ) -> ErrorReturnDisplay:
        """From arrays as `demur.predictions` takes them; draws on `ax` where it is given, `look` as `plot` takes it."""
        table = predictions(y_true, y_pred, confidence, classes=classes, sample_weight=sample_weight)
        return cls._of(table, name, ax, look)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **look: Any,
    ) -> ErrorReturnDisplay:
        """From a fitted classifier and data that it was not fitted to."""
        called = type(estimator).__name__ if name is None else name
        return cls._of(estimator_predictions(estimator, X, y), called, ax, look)

    @classmethod
    def _of(cls, table: Any, name: str, ax: Any, look: dict[str, Any]) -> ErrorReturnDisplay:
        from demur.returns.jobs import score

        return cls(score(table, name=name)[0]).plot(ax=ax, **look)

    def plot(self, ax: Any = None, *, name: str | None = None, **look: Any) -> ErrorReturnDisplay:
        """Draw the curve with its band: as an Altair chart, or on axes of matplotlib.

        `look` is what the chart takes, or what matplotlib's `plot` takes.
        """
        if ax is None:
            self.chart_ = self.evaluation.chart(**look)
            return self
        label = f"{self.name if name is None else name} (AUGRC = {self.augrc:.3f})"
        (self.line_,) = ax.plot(self.nonreturn, self.error, **{"label": label, **look})
        band = self.evaluation.band
        if band is not None:
            colour = self.line_.get_color()
            self.band_ = ax.fill_between(band.x, band.low_all, band.high_all, alpha=0.16, color=colour)
        ax.set(xlabel="Non-return rate", ylabel="Error rate", xlim=(0, 1))
        ax.set_ylim(bottom=0)
        ax.legend(loc="upper right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _repr_html_(self) -> str:
        return self.evaluation._repr_html_()

    def __repr__(self) -> str:
        return f"<ErrorReturnDisplay of {self.name}: AUGRC {self.augrc:.4f}, n = {self.evaluation.n:,}>"
