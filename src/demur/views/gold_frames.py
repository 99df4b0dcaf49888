"""Studies against a gold standard as plain tables of numbers, for figures and for files."""

from __future__ import annotations

import numpy as np
import polars as pl

from demur.analyses.gold.components import ComponentAnalysis
from demur.analyses.gold.performers import Performer
from demur.analyses.gold.residuals import Residuals
from demur.analyses.gold.study import GoldStudy

PLACES = 101
"""Places of a curve in a figure or a file."""


def curve_frame(study: GoldStudy) -> pl.DataFrame:
    """Every curve over the range of its own trials: `performer, role, x, y, low, high`."""
    return pl.concat([_curve(one) for one in study.performers])


def _curve(one: Performer) -> pl.DataFrame:
    x = np.linspace(one.fit.basis.low, one.fit.basis.high, PLACES)
    low, high = one.band(x)
    return pl.DataFrame({"x": x, "y": one.fit(x), "low": low, "high": high}).select(
        pl.lit(one.name).alias("performer"), pl.lit(one.role).alias("role"), "x", "y", "low", "high"
    )


def point_frame(study: GoldStudy) -> pl.DataFrame:
    """Means of trials by stretches of x: `performer, role, x, y, n`."""
    return pl.concat([_points(one, found) for one, found in zip(study.performers, study.residuals, strict=True)])


def _points(one: Performer, found: Residuals) -> pl.DataFrame:
    counts = one.fit.counts
    totals, sizes = counts.whole()
    rows = []
    for part in found.bins:
        inside = (counts.places >= part.start) & (counts.places <= part.end)
        share = totals[inside].sum() / sizes[inside].sum()
        rows.append({"x": part.x, "y": float(counts.scale.performance(share)), "n": float(sizes[inside].sum())})
    return pl.DataFrame(rows).select(pl.lit(one.name).alias("performer"), pl.lit(one.role).alias("role"), "x", "y", "n")


def impurity_frame(study: GoldStudy) -> pl.DataFrame:
    """Every system's distance from the gold standard: `system, x, impurity, low, high, signed`."""
    return pl.concat(
        [
            pl.DataFrame(
                {"x": one.x, "impurity": one.impurity, "low": one.low, "high": one.high, "signed": one.signed}
            ).select(pl.lit(one.system).alias("system"), "x", "impurity", "low", "high", "signed")
            for one in study.impurities
        ]
    )


def range_frame(study: GoldStudy) -> pl.DataFrame:
    """Which system is nearest the gold standard where, shown against every other one: `from, to, nearer`."""
    rows = [{"from": one.low, "to": one.high, "nearer": one.holds} for one in study.nearest]
    return pl.DataFrame(rows, schema={"from": pl.Float64, "to": pl.Float64, "nearer": pl.String})


def cost_frame(study: GoldStudy) -> pl.DataFrame:
    """The cost function: `performance, amount, kind` (line or point)."""
    cost = study.options.cost
    assert cost is not None
    scale = study.gold.fit.counts.scale
    if cost.points is not None:
        rows = [(p, amount, "point") for p, amount in cost.points]
        return pl.DataFrame(rows, schema=["performance", "amount", "kind"], orient="row")
    values = np.concatenate([one.fit(study.ground.x) for one in study.performers])
    low = scale.lower if scale.upper is not None else float(values.min())
    high = scale.upper if scale.upper is not None else float(values.max())
    p = np.linspace(low, high, PLACES)
    return pl.DataFrame({"performance": p, "amount": cost(p)}).with_columns(pl.lit("line").alias("kind"))


def cost_marks(study: GoldStudy) -> pl.DataFrame:
    """The performances of each system over the stretch that its cost is taken of: `system, from, to`."""
    rows = []
    for system, cost in zip(study.systems, study.costs, strict=True):
        if cost.spans:
            values = np.concatenate([system.fit(np.linspace(*span, PLACES)) for span in cost.spans])
            rows.append({"system": system.name, "from": float(values.min()), "to": float(values.max())})
    schema = {"system": pl.String, "from": pl.Float64, "to": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def effect_frame(found: ComponentAnalysis) -> pl.DataFrame:
    """Changes of impurity mass: `effect, value, low, high, kind`; undefined ones are left out."""
    rows = [
        {
            "effect": effect_name(effect.kind, effect.components, effect.others),
            "value": effect.change.value,
            "low": effect.change.low,
            "high": effect.change.high,
            "kind": effect.kind,
        }
        for effect in found.effects
        if effect.change.defined
    ]
    schema = {"effect": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=schema)


def effect_name(kind: str, components: tuple[str, ...], others: tuple[str, ...] | None) -> str:
    """How an effect is called.

    >>> effect_name("lesion", ("confirm",), ("spell",)), effect_name("interaction", ("confirm", "spell"), None)
    ('without confirm (spell on)', 'confirm × spell')
    """
    if kind == "lesion":
        rest = f"{'+'.join(others)} on" if others else "nothing else on"
        return f"without {components[0]} ({rest})"
    return " × ".join(components)


def residual_frame(study: GoldStudy) -> pl.DataFrame:
    """What the curves leave of the trials: `performer, x, residual, low, high, n`."""
    return pl.concat([one.frame() for one in study.residuals])


def gold_band(study: GoldStudy) -> pl.DataFrame:
    """The pooled gold standard with its band: `x, y, low, high`."""
    return _curve(study.gold).select("x", "y", "low", "high")
