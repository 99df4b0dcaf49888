"""The section of a report on confidences: do they mean what they say, and would recalibrating help."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from demur.analyses.calibrating import Calibration
from demur.analyses.evaluation import Evaluation
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import percent

SAME_ORDER = (
    "Recalibrating keeps the order of answers, so the curve stays as it is; "
    "it lets a threshold be read as a probability."
)


def calibration_section(found: Sequence[Calibration], evaluations: Sequence[Evaluation]) -> Presentation:
    """Whether confidences are probabilities, and what to do about it."""
    names = {one.system for one in found}
    drawn = [one for one in evaluations if one.system in names]
    others = [one.system for one in evaluations if one.system not in names]
    said = [sentence for one in found for sentence in calibration_sentences(one)]
    if any(one.advice == "recalibrate" for one in found):
        said.append(SAME_ORDER)
    said += [f"{name}: its confidences are no probabilities, or do not differ." for name in others]
    return Presentation(
        title="Do confidences mean what they say",
        sentences=tuple(said),
        tables=(_table(found),) if found else (),
        figures=(drawing("reliability_chart", drawn),) if drawn else (),
        data=lambda: pl.DataFrame([one.to_dict() for one in found]),
        document={"calibration": [one.to_dict() for one in found]},
    )


def calibration_sentences(one: Calibration) -> list[str]:
    """What one system's confidences are off by, and what to do."""
    side = "too sure of itself" if one.bias > 0 else "less sure than it could be"
    off = f"{one.system}: confidences are off by {percent(one.ece)} on average"
    lean = f"; on the whole it is {side}, by {percent(abs(one.bias))}" if abs(one.bias) >= 0.005 else ""
    return [f"{off}{lean}. {_advice(one)}"]


def _advice(one: Calibration) -> str:
    if one.advice == "recalibrate":
        return (
            f"Recalibrate: an isotonic map, fitted on four fifths and held against the rest, leaves "
            f"{percent(one.ece_after)} and lowers the Brier score by {-one.change:.4f} "
            f"({-one.high:.4f} to {-one.low:.4f})."
        )
    if one.advice == "leave":
        return "Recalibrating is not shown to help here: leave them as they are."
    return f"Whether recalibrating would help cannot be told: {one.why}."


def _table(found: Sequence[Calibration]) -> Table:
    rows = tuple(
        (
            one.system,
            f"{one.answers:,}",
            f"{one.ece:.4f}",
            _number(one.ece_after),
            f"{one.brier:.4f}",
            _number(one.brier_after),
            "–" if math.isnan(one.change) else f"{one.change:+.4f} ({one.low:+.4f} to {one.high:+.4f})",
            one.advice,
        )
        for one in found
    )
    columns = ("system", "answers", "ECE", "recalibrated", "Brier", "recalibrated", "change of Brier", "advice")
    return Table("Confidences as they are, and recalibrated across five folds", columns, rows)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"
