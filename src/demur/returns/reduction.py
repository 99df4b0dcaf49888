"""From judged rows, wherever they are, to tallies: the passes that an engine makes over a log.

The survey has counted rows and found the range of confidences. Then one pass groups by confidence, and where rows come
in dialogues or count differently, one more groups by bucket as well. Nothing is ever ordered or numbered in the engine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.engines.engine import bucketed, collected, engine_of
from demur.core.show.results import Step, silent
from demur.core.stats.sweep import Sweep, all_counts, sweep_groups
from demur.errors import DataError
from demur.returns.engine_judging import LazyResponses
from demur.returns.registry import term_measures
from demur.returns.table import slice_values
from demur.returns.tally import UNIT_LEVELS, UNITS, Grid, Tally, dense_cells, grid_for, summed_units, total

EXACT_UP_TO = 2**24
"""Rows up to which every distinct confidence is kept, however many there are."""

CLOSE_ENOUGH = 1e-4
"""Share of a system's rows that one cell of joined confidences may hold before it is cut finer."""

ROUNDS = 4
"""Passes made at most to cut dense cells finer."""


def tallies(responses: LazyResponses, *, exact_up_to: int = EXACT_UP_TO, step: Step = silent) -> list[Tally]:
    """The tallies of every system, and of every slice where the rows are sliced, the whole first.

    Up to `exact_up_to` rows every distinct confidence is kept. Beyond, confidences are joined in cells; where each cell
    turns out to hold a single confidence nothing was lost, else the sweeps say within what they are exact.
    """
    step("counting answers by confidence", 1, 3)
    rows = responses.survey.iter_rows(named=True)
    counted = sweeps(responses, exact_up_to=exact_up_to)
    found = _wholes(responses, [_tally(responses, row, sweep) for row, sweep in zip(rows, counted, strict=True)])
    if responses.n > exact_up_to and any(one.sweep.upper is not None for one in found):
        found = _with_terms(responses, found)
    if "bucket" in responses.columns:
        step("counting answers by dialogue", 2, 3)
        found = _with_units(responses, found)
    return found


def label_cells(responses: LazyResponses, *, step: Step = silent) -> dict[str, pl.DataFrame]:
    """For every system how often each label was predicted where another was right, counted in one pass.

    The rows have the columns actual and predicted (`judge_lazily` with labels). Where rows come in dialogues or count
    differently, the cells are counted by bucket as well.
    """
    step("counting labels", 1, 2)
    keys = [name for name in ("system", "bucket") if name in responses.columns]
    rows, sums = responses.frame, [nw.len().alias("rows")]
    if "weight" in responses.columns:
        rows = rows.with_columns(squares=nw.col("weight") * nw.col("weight"))
        sums += [nw.col("weight").sum(), nw.col("squares").sum()]
    if "bucket" in responses.columns:
        sums.append(nw.col("least").min())
    cells = responses.named(collected(rows.group_by("actual", "predicted", *keys).agg(*sums)))
    if "weight" not in cells.columns:
        count = pl.col("rows").cast(pl.Float64)
        cells = cells.with_columns(weight=count, squares=count)
    order = [name for name in ("actual", "predicted", "bucket") if name in cells.columns]
    ordered = cells.sort(*order)
    return {system: ordered.filter(pl.col("system") == system) for system in sorted(cells["system"].unique())}


def tallies_of_frame(judged: pl.DataFrame, *, by: str | None = None) -> list[Tally]:
    """The tallies of judged rows in memory, as `Responses.frame` holds them."""
    return tallies(lazy_of_frame(judged, by=by))


def lazy_of_frame(judged: pl.DataFrame, *, by: str | None = None) -> LazyResponses:
    """Judged rows in memory as an engine would give them."""
    clustered = judged["dialogue"].null_count() < judged.height
    weighted = bool((judged["weight"] != 1.0).any())
    columns = ["system", "answered", "right", "failed", "out_of_scope", "confidence"]
    frame = judged.lazy()
    if by is not None:
        frame = frame.with_columns(slice_values(judged, by).alias("slice"))
        columns.append("slice")
    lazy: nw.LazyFrame[Any] = nw.from_native(frame)
    if clustered or weighted:
        lone = pl.concat_str(pl.lit("row "), pl.int_range(pl.len()).cast(pl.String))
        named = frame.with_columns(unit=pl.coalesce("dialogue", "id", lone))
        lazy = bucketed(nw.from_native(named), "unit", "bucket", least="least")
        columns += ["bucket", "least"]
    if weighted:
        columns.append("weight")
    lazy = lazy.select(columns)
    return LazyResponses(lazy, _survey(judged, by), by, clustered)


def _survey(judged: pl.DataFrame, by: str | None) -> pl.DataFrame:
    keys: list[pl.Expr | pl.Series] = [pl.col("system")]
    if by is not None:
        keys.append(slice_values(judged, by).alias("slice"))
    finite = pl.col("confidence").filter(pl.col("confidence").is_finite())
    return judged.group_by(keys, maintain_order=True).agg(
        pl.len().alias("rows"),
        pl.col("answered", "failed", "out_of_scope").sum(),
        pl.col("weight").sort().pow(2).sum().alias("squares"),
        finite.min().alias("lowest"),
        finite.max().alias("highest"),
    )


def sweeps(responses: LazyResponses, *, exact_up_to: int = EXACT_UP_TO) -> list[Sweep]:
    """The sweep of each system and slice, in the order of the survey."""
    if responses.n <= exact_up_to and _few_enough_to_sort(responses):
        return [_sorted_sweep(responses)]
    groups = _grouped(responses, exact_up_to)
    return [Sweep.from_groups(_of_row(responses, groups, row)) for row in responses.survey.iter_rows(named=True)]


def _few_enough_to_sort(responses: LazyResponses) -> bool:
    """Whether the rows are in this process anyway, and one sort of them is quicker than a table of groups."""
    return (
        responses.n <= EXACT_UP_TO
        and engine_of(responses.frame) == "polars"
        and not responses.keys
        and "weight" not in responses.columns
    )


def _sorted_sweep(responses: LazyResponses) -> Sweep:
    rows = collected(responses.frame.select("confidence", "right", "answered"))
    answers = rows.filter("answered")
    if answers["confidence"].null_count():
        raise DataError("confidence must be a number for every answered row", got="none")
    return Sweep.of(
        answers["confidence"].to_numpy(), answers["right"].to_numpy(), withheld=float(rows.height - answers.height)
    )


def _grouped(responses: LazyResponses, exact_up_to: int) -> pl.DataFrame:
    """One row per confidence, or per cell of confidences, of each system and slice."""
    keys = responses.keys
    if responses.n <= exact_up_to:
        return responses.named(collected(sweep_groups(responses.frame, keys=keys)))
    largest = responses.largest
    grid = Grid.over(largest)
    confidence = nw.col("confidence")
    for _ in range(ROUNDS):
        cells = collected(sweep_groups(responses.frame, keys=keys, cell=grid.key(confidence)))
        groups = responses.named(all_counts(cells))
        dense = _too_dense(groups, responses, grid)
        if not dense or not grid.may_be_finer(largest):
            break
        grid = grid.finer(dense)
    return groups


def _too_dense(groups: pl.DataFrame, responses: LazyResponses, grid: Grid) -> frozenset[float]:
    found: set[float] = set()
    for part in groups.partition_by("system", *(() if responses.by is None else ("slice",))):
        answers = part.filter(pl.col("confidence").is_not_null())
        weight = (answers["right"] + answers["wrong"]).to_numpy().astype(np.float64)
        lowest, highest = answers["confidence"].to_numpy(), answers["upper"].to_numpy()
        most = CLOSE_ENOUGH * float((part["right"] + part["wrong"] + part["withheld"]).sum())
        found |= dense_cells(grid.of(lowest), lowest, highest, weight, most)
    return frozenset(found)


def _of_row(responses: LazyResponses, groups: pl.DataFrame, row: dict[str, Any]) -> pl.DataFrame:
    """The groups of one row of the survey."""
    mine = groups.filter(pl.col("system") == row["system"])
    return mine if responses.by is None else mine.filter(pl.col("slice") == row["slice"])


def _tally(responses: LazyResponses, row: dict[str, Any], sweep: Sweep) -> Tally:
    part = None if responses.by is None else f"{responses.by}={row['slice']}"
    return Tally(
        system=row["system"],
        part=part,
        sweep=sweep,
        failed=int(row["failed"]),
        unanswered=int(row["rows"] - row["answered"]),
        out_of_scope=int(row["out_of_scope"]),
        squares=float(row["squares"]),
        clustered=responses.clustered,
    )


def _wholes(responses: LazyResponses, parts: list[Tally]) -> list[Tally]:
    """Slices added up to their system, which comes before them."""
    if responses.by is None:
        return parts
    found = []
    for system in dict.fromkeys(part.system for part in parts):
        mine = sorted((part for part in parts if part.system == system), key=lambda part: str(part.part))
        found += [replace(total(mine), part=None), *mine]
    return found


def _with_terms(responses: LazyResponses, found: list[Tally]) -> list[Tally]:
    """The tallies with the exact totals of the measures that are sums over rows, from a pass of their own."""
    terms = {
        f"{key}:{name}": term * nw.col("weight")
        for key, measure in term_measures().items()
        for name, term in measure.terms().items()
    }
    rows = responses.frame
    if "weight" not in responses.columns:
        rows = rows.with_columns(weight=nw.lit(1.0))
    named = rows.with_columns(**terms)
    sums = [nw.col(name).sum() for name in terms]
    table = collected(named.group_by(*responses.keys).agg(*sums) if responses.keys else named.select(*sums))
    table = responses.named(table)
    return [
        replace(one, terms=_exact_terms(responses, table, one)) if one.sweep.upper is not None else one for one in found
    ]


def _exact_terms(responses: LazyResponses, table: pl.DataFrame, one: Tally) -> dict[str, NDArray[np.float64]]:
    mine = _of(responses, table, one)
    return {
        key: np.array([float(mine[f"{key}:{name}"].sum()) for name in measure.terms()] + [float(one.n)])
        for key, measure in term_measures().items()
    }


def _of(responses: LazyResponses, table: pl.DataFrame, one: Tally) -> pl.DataFrame:
    """The rows of a table that belong to a tally."""
    mine = table.filter(pl.col("system") == one.system)
    if one.part is None or responses.by is None:
        return mine
    return mine.filter(pl.col("slice") == one.part.removeprefix(f"{responses.by}="))


def _with_units(responses: LazyResponses, found: list[Tally]) -> list[Tally]:
    """The tallies with what each bucket holds at each level of confidence, from one pass over all of them."""
    sweeps = [one.sweep for one in found if one.part is None]
    cell = None
    if any(sweep.threshold.size > UNIT_LEVELS for sweep in sweeps):
        cell = grid_for(reduce(add, sweeps), UNIT_LEVELS // 2).key(nw.col("confidence"))
    keys = ("bucket", *responses.keys)
    groups = collected(sweep_groups(responses.frame, keys=keys, cell=cell, least=("least",)))
    groups = responses.named(all_counts(groups))
    if cell is not None:
        groups = groups.with_columns(confidence="cell")
    return [replace(one, units=summed_units([_of(responses, groups, one).select(_unit_columns())])) for one in found]


def _unit_columns() -> list[pl.Expr]:
    return [pl.col(name).cast(kind) for name, kind in UNITS.items()]
