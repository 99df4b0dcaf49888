"""The error-return plot after the Display convention of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from demur.returns.evaluate import Evaluation


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
        from demur.returns.predictions import predictions

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
        from demur.returns.predictions import estimator_predictions

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
        ax.legend(loc="upper right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _repr_html_(self) -> str:
        return self.evaluation._repr_html_()

    def __repr__(self) -> str:
        return f"<ErrorReturnDisplay of {self.name}: AUGRC {self.augrc:.4f}, n = {self.evaluation.n:,}>"
