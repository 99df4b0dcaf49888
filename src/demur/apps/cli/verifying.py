"""`demur verify-engine`: does this engine, on this machine or cluster, give the numbers that arrays give?"""

from __future__ import annotations

from dataclasses import replace

import typer

from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions
from demur.apps.cli.output import steps
from demur.core.engines.engine import ENGINES, TITLES, Engine
from demur.core.engines.scanning import why_absent
from demur.errors import UsageError
from demur.returns.counting import holder_of
from demur.returns.verify import (
    Difference,
    Equality,
    differences,
    judged_columns,
    of_equality,
    sample_log,
    tally_differences,
)


def verify(outputs: OutputOptions, *, engine: Engine | None, spark_master: str | None, rows: int, seed: int) -> None:
    """Compare each engine with arrays, and exit with 1 if any number differs."""
    output.check(outputs)
    output.refuse_figures(outputs)
    chosen, left_out = _chosen(engine, spark_master)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        found = []
        for done, name in enumerate(chosen):
            step(f"asking {TITLES[name]}", done, len(chosen))
            found.append(_verified(name, spark_master, rows, seed))
    output.deliver(of_equality(found, left_out), outputs)
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def _chosen(engine: Engine | None, spark_master: str | None) -> tuple[tuple[Engine, ...], tuple[str, ...]]:
    """The engines to verify, and why others that might be meant are left out."""
    if spark_master is not None and engine not in (None, "spark"):
        raise UsageError("--spark-master goes with --engine spark")
    if engine is None and spark_master is not None:
        engine = "spark"
    if engine is not None:
        return (engine,), ()
    reasons = {name: why_absent(name) for name in ENGINES}
    told = tuple(f"{TITLES[name]} left out: {reason}" for name, reason in reasons.items() if reason is not None)
    return tuple(name for name in ENGINES if reasons[name] is None), told


def _verified(engine: Engine, spark_master: str | None, rows: int, seed: int) -> Equality:
    """Every measure and every count, of rows that weigh alike and of rows that do not."""
    held = holder_of(engine, spark_master)
    weighted = sample_log(rows, seed)
    found: list[Difference] = []
    for about, raw in (("", weighted.drop("weight")), (" (weighted rows)", weighted)):
        judged = judged_columns(raw)
        compared = (*differences(held(judged), judged), *tally_differences(held(raw), raw))
        found += [replace(one, measure=f"{one.measure}{about}") for one in compared]
    return Equality(engine, rows, tuple(found))
