"""A study as plain values: the JSON document without its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from demur.analyses.gold.performers import Performer

if TYPE_CHECKING:
    from demur.analyses.gold.study import GoldStudy

_CURVE = 51
"""Places of a curve."""


def study_values(study: GoldStudy) -> dict[str, Any]:
    """All readings of a study as plain values."""
    low, high = study.ground.low, study.ground.high
    gold_low, gold_high = study.gold.fit.basis.low, study.gold.fit.basis.high
    found: dict[str, Any] = {
        "study": study.trials.study,
        "x": study.trials.x_name,
        "y": study.trials.y_name,
        "range": {"from": low, "to": high},
        "performers": [_performer(study, place) for place in range(len(study.performers))],
        "complexity": {**study.complexity.to_dict(), "from": gold_low, "to": gold_high},
        "pairs": [pair.to_dict() for pair in study.pairs],
    }
    if study.costs:
        found["average_marginal_cost"] = {one.system: one.to_dict() for one in study.costs}
    if study.components:
        found["components"] = [one.to_dict() for one in study.components]
    if study.wizards is not None:
        found["wizards"] = study.wizards.to_dict()
    if study.convergence:
        found["convergence"] = [one.to_dict() for one in study.convergence]
    return found


def _performer(study: GoldStudy, place: int) -> dict[str, Any]:
    one = study.performers[place]
    distance: dict[str, Any] = {"impurity_mass": None}
    if one.role == "system":
        distance = study.impurities[place - 1].to_dict()
        if study.costs:
            distance["average_marginal_cost"] = study.costs[place - 1].average.to_dict()
    return {
        "performer": one.name,
        "role": one.role,
        "subjects": one.subjects,
        "trials": one.trials,
        **({} if one.components is None else {"components": sorted(one.components)}),
        **distance,
        "mean": study.means[place].to_dict(),
        "fit": one.fit.kind,
        "because": one.fit.reason,
        "r2": one.r2,
        "deviance_explained": one.deviance_explained,
        "residuals": study.residuals[place].to_dict(),
        "curve": _curve(one),
    }


def _curve(one: Performer) -> list[dict[str, float]]:
    x = np.linspace(one.fit.basis.low, one.fit.basis.high, _CURVE)
    columns = (x, one.fit(x), *one.band(x))
    return [dict(zip(("x", "y", "low", "high"), map(float, row), strict=True)) for row in zip(*columns, strict=True)]
