"""What a model says of confusions put right: the predicted outcome then and now, and by how much they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demur.analyses.outcome.features import Turns
from demur.analyses.outcome.models import OutcomeModel
from demur.analyses.outcome.prediction import Prediction, predicted_pairs, prediction_of
from demur.analyses.unit_figures import Difference
from demur.data.columns import nearest
from demur.errors import UsageError

Mended = Mapping[tuple[str, str], float]
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


def what_if(model: OutcomeModel, turns: Turns, mended: Mended, *, level: float = 0.95) -> WhatIf:
    """The predicted outcome if shares of confusions were put right, all features computed anew.

    What lies beyond the training data is predicted all the same, and `then.outside` says that it does.
    """
    known = turns.with_labels(model.labels)
    after, moved = known, 0.0
    for (predicted, actual), share in mended.items():
        _check(predicted, actual, share, known)
        moved += share * float(known.cell(predicted, actual).sum())
        after = after.mended(predicted, actual, share)
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
