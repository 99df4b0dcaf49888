"""What the performance in a table of trials is: 0 or 1 of each trial, rates, or scores; and what is not allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from demur.data.cells import first
from demur.data.trial_rows import TrialRows
from demur.data.wording import ROWS
from demur.errors import DataError

Kind = Literal["trials", "rates", "scores"]
"""0 or 1 of each trial, the share of n trials that succeeded, or a score."""

_WHOLE_ENOUGH = 0.05
"""How far a rate times its n may be from a whole number before it is told."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The column that holds the performance, and what bounds it; without an upper bound it has none."""

    name: str
    lower: float
    upper: float | None

    @property
    def may_be_share(self) -> bool:
        """Whether the bounds are those of a share, or nothing was said."""
        return self.lower == 0 and self.upper in (None, 1)


def kind_of(rows: TrialRows, metric: Metric) -> tuple[Kind, list[str]]:
    """What the performance is, and what a reader should know of it; refuses what cannot be."""
    y = rows.frame["y"]
    if rows.frame["n"].is_not_null().any():
        return _of_many(rows, metric)
    if metric.may_be_share and y.is_in([0.0, 1.0]).all():
        return "trials", []
    if metric.may_be_share and metric.upper is None and y.is_between(0, 1).all():
        raise _rates_without_n(rows, metric)
    _refuse_outside(rows, metric)
    unbounded = f"{metric.name} has no upper bound; intellectual complexity needs one: --upper U, or upper=U"
    return "scores", [unbounded] if metric.upper is None else []


def _of_many(rows: TrialRows, metric: Metric) -> tuple[Kind, list[str]]:
    """What each row sums up n trials for."""
    _refuse_uncounted(rows, metric)
    if not metric.may_be_share:
        _refuse_outside(rows, metric)
        return "scores", [f"{metric.name} is the mean of n trials in each row"]
    share = Metric(metric.name, 0.0, 1.0)
    _refuse_outside(rows, share, fix="with a column n it is a rate; --upper U, or upper=U, for mean scores of n trials")
    return "rates", _rounded(rows, metric)


def _refuse_uncounted(rows: TrialRows, metric: Metric) -> None:
    n = rows.frame["n"]
    bad = first(n.is_null() | (n <= 0) | (n != n.round()))
    if bad is not None:
        rule = f"must be a whole number of at least 1: the trials that {metric.name} is of"
        raise rows.fault(bad, "n", rule, got="nothing" if n[bad] is None else n[bad])


def _refuse_outside(rows: TrialRows, metric: Metric, fix: str = "") -> None:
    y = rows.frame["y"]
    bad = first((y < metric.lower) | (y > metric.upper) if metric.upper is not None else y < metric.lower)
    if bad is None:
        return
    if metric.upper is None:
        rule = f"must be at least {metric.lower:g}"
        way_out = "--lower L, or lower=L, gives the lower bound, -inf where there is none"
    else:
        rule = f"must lie between {metric.lower:g} and {metric.upper:g}"
        way_out = "--lower and --upper give the bounds of the metric"
    raise rows.fault(bad, metric.name, rule, got=float(y[bad]), fix=fix or way_out)


def _rates_without_n(rows: TrialRows, metric: Metric) -> DataError:
    broken = first(~rows.frame["y"].is_in([0.0, 1.0])) or 0
    return rows.fault(
        broken,
        metric.name,
        "must be 0 or 1 where no column n says how many trials a rate is of: rates without n",
        got=float(rows.frame["y"][broken]),
        fix=f"give a column n; or --upper 1, or upper=1, if {metric.name} is a score between 0 and 1",
    )


def _rounded(rows: TrialRows, metric: Metric) -> list[str]:
    successes = rows.frame["y"] * rows.frame["n"]
    odd = rows.frame.select(pl.lit((successes - successes.round()).abs() > _WHOLE_ENOUGH)).to_series()
    place = first(odd)
    if place is None:
        return []
    many = ROWS.told(int(odd.sum()))
    return [f"{metric.name} times n is no whole number in {many}, first at {rows.place(place)}: was it rounded?"]
