"""Several systems side by side, by the outcome that a model predicts for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from demur.analyses.outcome.models import OutcomeModel
from demur.analyses.outcome.prediction import PredictedPair, Prediction, UnknownLabels, predict, predicted_pairs
from demur.data.responses import Responses
from demur.show import Shown


@dataclass(frozen=True, eq=False)
class OutcomeComparison(Shown):
    """Systems by predicted outcome; one that is unlike the training data is refused and takes part in no pair."""

    model: OutcomeModel
    predictions: tuple[Prediction, ...]
    pairs: tuple[PredictedPair, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "outcome": self.model.outcome,
            "formula": self.model.formula(),
            "systems": [one.to_dict() for one in self.predictions],
            "pairs": [pair.to_dict() for pair in self.pairs],
        }


def compared(
    model: OutcomeModel,
    systems: Iterable[Responses],
    *,
    pooled: bool | None = None,
    extrapolate: bool = False,
    unknown_labels: UnknownLabels = "refuse",
    level: float = 0.95,
) -> OutcomeComparison:
    """The systems, one table of responses each, by predicted outcome."""
    how: dict[str, Any] = {"pooled": pooled, "extrapolate": extrapolate, "unknown_labels": unknown_labels}
    found = tuple(predict(model, one, level=level, **how) for one in systems)
    return OutcomeComparison(model, found, predicted_pairs(model, found, level))
