"""Whether engines agree with arrays, shown: every measure and every count beside its twin."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from demur.analyses.equality import Difference, Equality
from demur.data.engines import TITLES
from demur.views.presentation import Presentation, Table


def of_equality(found: Sequence[Equality]) -> Presentation:
    """How the comparison of engines with arrays is shown."""
    return Presentation(
        title="Engines against arrays",
        sentences=tuple(_sentence(one) for one in found),
        tables=tuple(_table(one) for one in found),
        figures=(),
        data=lambda: pl.concat([one.frame().select(pl.lit(one.engine).alias("engine"), pl.all()) for one in found]),
        document={"holds": all(one.holds for one in found), "engines": [one.to_dict() for one in found]},
    )


def _sentence(one: Equality) -> str:
    name, many = TITLES.get(one.engine, one.engine), f"{len(one.differences)} numbers of {one.n:,} rows"
    exact = sum(each.exact for each in one.differences)
    if one.holds:
        return f"{name}: no differences in {many}; {exact} are counts and are the same to the last one."
    worst = ", ".join(each.measure for each in one.faults[:5])
    return f"{name}: {len(one.faults)} of {many} differ: {worst}."


def _table(one: Equality) -> Table:
    columns = ("number", one.engine, "arrays", "difference", "verdict")
    title = f"{TITLES.get(one.engine, one.engine)}, {one.n:,} rows"
    return Table(title, columns, tuple(_row(each) for each in one.differences))


def _row(one: Difference) -> tuple[str, ...]:
    verdict = (
        "same" if one.holds and one.difference == 0 else "same but for the last digits" if one.holds else "DIFFERS"
    )
    apart = "0" if one.difference == 0 else f"{one.difference:.1e}"
    return one.measure, _shown(one.value), _shown(one.expected), apart, verdict


def _shown(value: float) -> str:
    return "undefined" if value != value else f"{value:.10g}"
