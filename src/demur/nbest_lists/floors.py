"""How the ICE depends on the floor, which is a choice: of every system, and where their order turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from demur.core.arrays import Array
from demur.core.show.presentation import Drawing, ResultTable, drawing
from demur.nbest_lists.evaluate import NBestEvaluation
from demur.nbest_lists.measures import PAPER_FLOOR

FLOORS = tuple(np.geomspace(1e-6, 0.2, 54).tolist())
"""Floors of the figure."""
TABLED = (0.1, PAPER_FLOOR, 1e-3, 1e-4, 1e-6)
"""Floors of the table."""


def ice_by_floor(one: NBestEvaluation, floors: ArrayLike) -> Array:
    """The ICE of a system at each floor."""
    if one.taken.items is None:
        return np.full(np.shape(floors), np.nan)
    items = one.taken.items.sweep()
    likelihood = np.concatenate([items.threshold, 1 - items.threshold, [0.0]])
    weight = np.concatenate([items.right, items.wrong, [items.withheld]])
    order = np.argsort(likelihood)
    likelihood, weight = likelihood[order], weight[order]
    floors = np.asarray(floors, dtype=np.float64)
    below = np.searchsorted(likelihood, floors)  # so many items are at the floor
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.where(likelihood > 0, -weight * np.log(likelihood), 0.0)
    above = costs.sum() - np.concatenate([[0.0], np.cumsum(costs)])[below]
    at_floor = np.concatenate([[0.0], np.cumsum(weight)])[below]
    return np.asarray((above - np.log(floors) * at_floor) / (items.right.sum() + items.withheld))


def floor_table(evaluations: Sequence[NBestEvaluation]) -> ResultTable:
    """The ICE of every system at several floors, and at the one that is used."""
    used = evaluations[0].settings.least
    floors = sorted({*TABLED, used}, reverse=True)
    rows = tuple((one.name, *(f"{value:.4f}" for value in ice_by_floor(one, floors))) for one in evaluations)
    columns = ("system", *(f"{floor:g}{' (used)' if floor == used else ''}" for floor in floors))
    return ResultTable("ICE by floor", columns, rows)


def floor_figure(evaluations: Sequence[NBestEvaluation]) -> Drawing:
    """The figure of the ICE against the floor, drawn when it is called."""
    rows = pl.DataFrame(
        [
            (one.name, floor, value)
            for one in evaluations
            for floor, value in zip(FLOORS, ice_by_floor(one, FLOORS).tolist(), strict=True)
        ],
        schema=("system", "floor", "ice"),
        orient="row",
    )
    return drawing("nbest_lists.charts.floor_chart", rows, used=evaluations[0].settings.least)
