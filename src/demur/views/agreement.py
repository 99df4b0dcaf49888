"""Whether engines agree with rows in memory, shown: every measure and every count beside its twin."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from demur.analyses.equality import Difference, Equality
from demur.data.engines import TITLES
from demur.views.presentation import Presentation, Table


def of_equality(found: Sequence[Equality], left_out: Sequence[str] = ()) -> Presentation:
    """How the comparison of engines with rows in memory is shown."""
    return Presentation(
        title="Engines against memory",
        sentences=tuple(_sentence(one) for one in found),
        tables=tuple(_table(one) for one in found),
        figures=(),
        data=lambda: pl.concat([one.frame().select(pl.lit(one.engine).alias("engine"), pl.all()) for one in found]),
        document={"holds": all(one.holds for one in found), "engines": [one.to_dict() for one in found]},
        notes=tuple(left_out),
    )


def _sentence(one: Equality) -> str:
    name, many = TITLES.get(one.engine, one.engine), f"{len(one.differences)} numbers of {one.n:,} rows"
    exact = sum(each.exact for each in one.differences)
    if one.holds:
        return (
            f"{name}: no differences in {many}; the {exact} that follow from whole counts are the same to the last bit."
        )
    worst = ", ".join(each.measure for each in one.faults[:5])
    return f"{name}: {len(one.faults)} of {many} differ: {worst}."


def _table(one: Equality) -> Table:
    name = TITLES.get(one.engine, one.engine)
    columns, title = ("number", name, "in memory", "difference", "verdict"), f"{name}, {one.n:,} rows"
    return Table(title, columns, tuple(_row(each) for each in one.differences))


def _row(one: Difference) -> tuple[str, ...]:
    verdict = (
        "same" if one.holds and one.difference == 0 else "same but for the last digits" if one.holds else "DIFFERS"
    )
    apart = "0" if one.difference == 0 else f"{one.difference:.1e}"
    return one.measure, _shown(one.value), _shown(one.expected), apart, verdict


def _shown(value: float) -> str:
    return "undefined" if value != value else f"{value:.10g}"
