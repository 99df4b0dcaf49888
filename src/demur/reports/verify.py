"""Do engines give the numbers that memory gives, to every question they answer? Checked on sample logs, and shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from demur.core.engines.engine import ENGINES, title_of, why_absent
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.nbest_lists.verify import list_differences
from demur.returns.counting import holder_of, tallies
from demur.returns.engine_judging import judge_lazily
from demur.returns.examples import examples
from demur.returns.lakes.counted_slices import counted_slice_differences
from demur.returns.lakes.lake_rows import lake_examples
from demur.returns.slices import slice_differences
from demur.returns.table import Reading, responses
from demur.returns.verify import (
    EngineDifference,
    Equality,
    comparison_differences,
    day_differences,
    differences,
    judged_columns,
    sample_log,
    tally_differences,
)

SHOWN_AT, MOST_EXAMPLES = 0.5, 10
"""The threshold at which sections of a report are compared, and how many examples of each kind."""

MOST_LISTS = 2000
"""Utterances of the lists made for it, which are taken apart one by one."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Engines compared with arrays; notes say which engines were left out, and why."""

    engines: tuple[Equality, ...]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every engine gives the same numbers."""
        return all(one.holds for one in self.engines)

    def to_dict(self) -> dict[str, Any]:
        """The comparisons as plain values."""
        engines = [one.to_dict() for one in self.engines]
        return {"holds": self.holds, "engines": engines, "notes": list(self.notes), "warnings": []}


def verify_engines(
    engine: str | None, spark_master: str | None, *, rows: int, seed: int, step: Step = silent
) -> Verification:
    """Compare an engine, or every one that is installed, with arrays on a log made for it."""
    if spark_master is not None and engine not in (None, "spark"):
        raise UsageError("`spark_master` goes with `engine` spark")
    if engine is None and spark_master is not None:
        engine = "spark"
    absent = {} if engine is not None else {name: why_absent(name) for name in ENGINES}
    chosen = (engine,) if engine is not None else tuple(name for name in ENGINES if absent[name] is None)
    compared = []
    for done, name in enumerate(chosen):
        step(f"asking {title_of(name)}", done, len(chosen))
        compared.append(_verify(name, spark_master, rows, seed))
    notes = tuple(f"{title_of(name)} left out: {reason}" for name, reason in absent.items() if reason is not None)
    return Verification(tuple(compared), notes)


WEIGHTINGS = {"": pl.exclude("weight"), " (weighted rows)": pl.all()}
"""Columns of the sample log whose rows weigh alike, and of that whose rows do not, by what is said of its numbers."""


def _verify(engine: str, spark_master: str | None, rows: int, seed: int) -> Equality:
    """Every measure and every count, of rows that weigh alike and of rows that do not."""
    held = holder_of(engine, spark_master)
    weighted = sample_log(rows, seed)
    found: list[EngineDifference] = []
    for about, columns in WEIGHTINGS.items():
        raw = weighted.select(columns)
        judged = judged_columns(raw)
        compared = (*differences(held(judged), judged), *tally_differences(held(raw), raw))
        compared += (*comparison_differences(held, raw), *day_differences(held, raw))
        found += [replace(one, measure=f"{one.measure}{about}") for one in compared]
        found += [replace(one, measure=f"report, {one.measure}{about}") for one in report_differences(held, raw)]
    found += list_differences(held, min(rows, MOST_LISTS), seed)
    return Equality(engine, rows, tuple(found))


def report_differences(hold: Callable[[pl.DataFrame], Any], raw: pl.DataFrame) -> tuple[EngineDifference, ...]:
    """What the sections of a report show of rows that `hold` hands over, beside what they show of rows in memory.

    The rates and areas of slices, and the rows that are fetched as examples.

    >>> found = report_differences(lambda frame: frame.lazy(), sample_log(500, seed=0))
    >>> all(one.holds for one in found), found[-1].measure
    (True, 'examples that differ')
    """
    rounded = raw.with_columns(pl.col("confidence").round(2))
    cutoff = {"log": SHOWN_AT}
    counted = tallies(judge_lazily(hold(rounded), reading=Reading(), system="log", by="domain"))
    parts = {str(one.part).removeprefix("domain="): one for one in counted if one.part is not None}
    mine = counted_slice_differences({"log": {"domain": parts}}, cutoff, ["domain"], level=0.95)
    judged = responses(rounded, system="log", reading=Reading(keep=("domain",)))
    theirs = slice_differences(judged, cutoff, ["domain"])
    inside = {(one.part, one.what): one.inside for one in mine.tests}
    found = [
        EngineDifference(f"{one.part}, {one.what}", value, one.inside, abs(value - one.inside), False)
        for one in theirs.tests
        for value in (inside.get((one.part, one.what), math.nan),)
    ]
    fetched = lake_examples(judge_lazily(hold(rounded), reading=Reading(), shown=()), "log", SHOWN_AT, MOST_EXAMPLES)
    apart = int(fetched != examples(judged, SHOWN_AT, MOST_EXAMPLES))
    return (*found, EngineDifference("examples that differ", float(apart), 0.0, float(apart), True))


def of_verification(found: Verification) -> Presentation:
    """How the comparison of engines with rows in memory is shown."""
    engines = found.engines
    return Presentation(
        title="Engines against memory",
        sentences=tuple(_sentence(one) for one in engines),
        tables=tuple(_equality_table(one) for one in engines),
        figures=(),
        data=lambda: pl.concat([one.frame().select(pl.lit(one.engine).alias("engine"), pl.all()) for one in engines]),
        document=found.to_dict(),
        notes=found.notes,
    )


def _sentence(one: Equality) -> str:
    name, many = title_of(one.engine), f"{len(one.differences)} numbers of {one.n:,} rows"
    if one.holds:
        exact = f"the {sum(each.exact for each in one.differences)} that follow from whole counts"
        return f"{name}: no differences in {many}; {exact} are the same to the last bit."
    worst = ", ".join(each.measure for each in one.faults[:5])
    return f"{name}: {len(one.faults)} of {many} differ: {worst}."


def _equality_table(one: Equality) -> ResultTable:
    name = title_of(one.engine)
    rows = []
    for each in one.differences:
        same = "same" if each.difference == 0 else "same except for the last digits"
        values = ("undefined" if value != value else f"{value:.10g}" for value in (each.value, each.expected))
        apart = "0" if each.difference == 0 else f"{each.difference:.1e}"
        rows.append((each.measure, *values, apart, same if each.holds else "DIFFERS"))
    columns = ("number", name, "in memory", "difference", "verdict")
    return ResultTable(f"{name}, {one.n:,} rows", columns, tuple(rows))
