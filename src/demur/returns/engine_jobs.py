"""Jobs on logs that are counted in parts, and on the engines that count them.

Only light modules are imported here, as every command loads this one for its help.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from demur.core.jobs import Argument, Job, Option, job
from demur.core.options import Level, Replicates, Sampling, Seed, Where
from demur.core.show.results import Step, silent
from demur.returns.options import (
    EVERYWHERE,
    OUT_OF_SCOPE,
    WITHHELD,
    AtError,
    AtNonreturn,
    AtThreshold,
    Aurc,
    BandRegion,
    Columns,
    Curve,
    MissingConfidence,
    Name,
    OutOfScope,
    Period,
    SparkMaster,
    Withheld,
    reading_of,
)

if TYPE_CHECKING:
    from demur.returns.evaluate import Evaluations
    from demur.returns.sweep_files import SweepFile

MOST_NOTES = 20
"""Notes of merged parts that are shown; a sweep written with -o keeps all of them."""

SWEEPS = ((".sweep", "demur.returns.counting:write_sweep"),)
GATE = "error_at_nonreturn > 0.05"
"""The gate that the help of commands with one curve for each system shows."""


@job
def merge(
    *parts: Annotated[
        "str | Path | SweepFile",
        Argument("Sweeps of parts of a log: .sweep files, as score writes them with -o; globs.", metavar="FILES"),
    ],
    at_nonreturn: AtNonreturn = 0.2,
    at_error: AtError = 0.05,
    at_threshold: AtThreshold = None,
    aurc: Aurc = "mean",
    region: BandRegion = EVERYWHERE,
    curve: Curve = False,
    name: Annotated[
        str | None, Option("Name of the one system that all parts are of, where logs do not name theirs.")
    ] = None,
    apart: Annotated[bool, Option("Logs that name no system are different systems, not parts of one.")] = False,
    allow_repeats: Annotated[bool, Option("Add parts that name the same log: different logs of one name.")] = False,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Evaluations":
    """Merge .sweep files of parts of a log, and show what `score` shows of the whole; -o WHOLE.sweep keeps the sum."""
    from demur.returns.evaluate import evaluate, returns_measures
    from demur.returns.sweep_files import merged, read_sweeps

    sampling = Sampling(level, replicates, seed)
    measures = returns_measures(at=at_nonreturn, aurc=aurc, error=at_error, threshold=at_threshold)
    sweeps = read_sweeps(*parts, step=step)
    whole = merged(sweeps, system=name, apart=apart, allow_repeats=allow_repeats)
    found = evaluate(whole.tallies, measures=measures, region=region, step=step, **asdict(sampling))
    logs = f" of {len(whole.sources):,} logs" if whole.sources else ""
    notes = (f"{len(sweeps):,} sweeps{logs} merged", *_first(whole.notes, "notes"), sampling.note)
    found = found.with_notes(notes, _first(whole.warnings, "warnings"))
    found.with_curves, found.sweep_file = curve, lambda: whole
    return found


@job
def watch(
    *data: Annotated[
        str | Path,
        Argument("A lake of Parquet: folders or globs, with a date in the names of folders or files.", metavar="LAKE"),
    ],
    every: Annotated[Period, Option("What is counted and kept as one part: a day, or a month.")] = "1d",
    keep: Annotated[Path, Option("Folder where the parts are kept as .sweep files.", metavar="FOLDER")] = Path(
        "sweeps"
    ),
    since: Annotated[str | None, Option("First day that is added up, such as 2026-01-01.", metavar="DAY")] = None,
    until: Annotated[str | None, Option("Last day that is added up.", metavar="DAY")] = None,
    at_nonreturn: AtNonreturn = 0.2,
    at_error: AtError = 0.05,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    engine: Annotated[Literal["polars", "duckdb", "spark"], Option("What counts the rows.")] = "polars",
    spark_master: SparkMaster = None,
    name: Name = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    step: Step = silent,
) -> "Evaluations":
    """Count the new days of a lake that grows daily, and show any range of days without reading them again.

    A day whose files have changed since it was counted is counted again. Run it once a day, as by cron.
    """
    from demur.returns.counting import Counting
    from demur.returns.evaluate import evaluate, returns_measures
    from demur.returns.watch import watch_lake

    sampling = Sampling(level, replicates, seed)
    reading = reading_of(columns, where, out_of_scope, withheld, missing_confidence)
    how = Counting(engine=engine, spark_master=spark_master, name=name)
    seen = watch_lake(data, Path(keep), reading, how, every=every, since=since, until=until, step=step)
    measures = returns_measures(at=at_nonreturn, error=at_error)
    found = evaluate(seen.whole.tallies, measures=measures, step=step, **asdict(sampling))
    found = found.with_notes((seen.note, *_first(seen.whole.notes, "notes"), sampling.note), seen.whole.warnings)
    found.sweep_file = lambda: seen.whole
    return found


def _first(lines: tuple[str, ...], kind: str) -> tuple[str, ...]:
    rest = f"{len(lines) - MOST_NOTES:,} more {kind} of the parts; -o WHOLE.sweep keeps them all"
    return lines if len(lines) <= MOST_NOTES else (*lines[:MOST_NOTES], rest)


MERGE = Job(
    "merge",
    merge,
    "demur.returns.presentation:of_scores",
    "demur merge parts/*.sweep -o whole.sweep -o plot.svg",
    endings=SWEEPS,
    gate=GATE,
)
WATCH = Job(
    "watch",
    watch,
    "demur.returns.presentation:of_scores",
    "demur watch lake --every 1d --keep sweeps --since 2026-01-01",
    endings=SWEEPS,
    gate=GATE,
)
