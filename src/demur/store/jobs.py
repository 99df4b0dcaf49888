"""The jobs on the store of runs: their options are declared here, and nowhere else.

Only light modules are imported here, as every command loads this one for its help.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Confirm, Job, Option, job
from demur.core.options import KINDS, Kind, NoSeed, OutcomeColumn, Tables, TrialX, TrialY, Where, file_and_kind
from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.importers.choices import reads_logs
from demur.returns.options import (
    OUT_OF_SCOPE,
    WITHHELD,
    Columns,
    EngineName,
    MissingConfidence,
    OutOfScope,
    SparkMaster,
    Withheld,
)

if TYPE_CHECKING:
    from demur.store.presentation import AddedRuns, RemovedRuns, RunList


def one_or_each(pairs: tuple[tuple[str, Kind], ...]) -> Kind | dict[str, Kind]:
    """The kind of all files, or of each by its name."""
    if len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    if not all(file for file, _ in pairs):
        raise UsageError("`kind` takes one kind for all files, or FILE=KIND for each")
    return dict(pairs)


def is_kind(value: Any) -> bool:
    """Whether this is a kind, or a mapping of files to kinds."""
    return all(one in KINDS for one in value.values()) if isinstance(value, Mapping) else value in (None, *KINDS)


StoreFolder = Annotated[
    Path | None,
    Option(
        "Folder of the store; by default that of DEMUR_STORE, or where this system keeps the data of programs.",
        metavar="FOLDER",
    ),
]
KindOfFiles = Annotated[
    Kind | Mapping[str, Kind] | None,
    Option(
        f"{', '.join(KINDS[:-1])} or {KINDS[-1]}, for all files or as FILE=KIND; by default recognised by the columns.",
        metavar="KIND",
        parse=file_and_kind,
        takes=f"one of {', '.join(KINDS)}, or FILE=KIND",
        check=is_kind,
        repeat=True,
        collect=one_or_each,
    ),
]


RunOfEach = Annotated[
    tuple[str, ...],
    Option("Of answers: a column of confidences, each a run of its own. Repeatable.", metavar="COLUMN", repeat=True),
]
GoldPerformers = Annotated[
    tuple[str, ...],
    Option("Of trials: a performer that is the gold standard. Repeatable.", metavar="NAME", repeat=True),
]


@job
@reads_logs
def add_runs(
    *data: Tables,
    name: Annotated[
        str | None,
        Option("What the run is called; several are called NAME: SYSTEM. By default as its system or file."),
    ] = None,
    tags: Annotated[tuple[str, ...], Option("A tag to find it by. Repeatable.", flag="--tag", repeat=True)] = (),
    note: Annotated[str, Option("A note on it.", metavar="TEXT")] = "",
    link: Annotated[
        bool,
        Option("Link to a lake where it lies (Parquet files, globs, folders, URLs): counted once, never copied."),
    ] = False,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    kind: KindOfFiles = None,
    replace: Annotated[bool, Option("Take the name from the run that has it, which is removed.")] = False,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    confidence: RunOfEach = (),
    x: TrialX = None,
    y: TrialY = None,
    lower: Annotated[float, Option("Of trials: the lower bound of a score.")] = 0.0,
    upper: Annotated[float | None, Option("Of trials: the upper bound of a score.")] = None,
    gold: GoldPerformers = (),
    items: Annotated[Literal["thomson", "dstc"] | None, Option("Of N-best lists: how an act becomes items.")] = None,
    normalise: Annotated[bool, Option("Of N-best lists: scale those that sum to over 1.")] = False,
    outcome: OutcomeColumn = None,
    store: StoreFolder = None,
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "AddedRuns":
    """Add tables to the store of runs: read, checked, and kept once, whatever they are called."""
    from demur.returns.counting import Counting
    from demur.store.intake import RunReading
    from demur.store.presentation import AddedRuns
    from demur.store.runs import Store

    others: Any = {"items": items, "normalise": normalise, "x": x, "y": y, "lower": lower, "upper": upper, "gold": gold}
    reading = RunReading(
        columns=dict(columns or {}),
        where=tuple(where),
        out_of_scope=tuple(out_of_scope),
        withheld=tuple(withheld),
        missing_confidence=missing_confidence,
        confidence=tuple(confidence),
        outcome=outcome,
        **others,
    )
    called: dict[str, Any] = {"name": name, "tags": tags, "note": note, "replace": replace, "step": step}
    how = Counting(engine=engine, spark_master=spark_master)
    if not link and how != Counting():
        raise UsageError("`engine` goes with `link`: what is added is read into memory")
    with Store.open(store) as opened:
        step("reading", 0, 1)
        adding: Any = partial(opened.link, how=how) if link else partial(opened.add, kind=kind)
        added = adding(*data, reading=reading, **called)
        return AddedRuns(opened.root, tuple(added), opened.problems)


@job
def runs(
    *,
    kind: Annotated[Kind | None, Option("Only runs of this kind.")] = None,
    tag: Annotated[str | None, Option("Only runs with this tag.")] = None,
    check: Annotated[bool, Option("Read every run again; exit with 1 if one is not what was added.")] = False,
    store: StoreFolder = None,
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "RunList":
    """List the runs in the store, the newest first."""
    from demur.store.presentation import RunList
    from demur.store.runs import Store

    with Store.open(store) as opened:
        damaged = opened.check(step) if check else None
        every = opened.runs()
        return RunList(opened.root, tuple(opened.runs(kind=kind, tag=tag)), len(every), damaged, opened.problems)


@job
def remove_runs(
    *references: Annotated[str, Argument("Names or ids of runs, or how an id begins.", metavar="RUNS")],
    yes: Annotated[bool, Option("Do not ask for confirmation, which is asked for only at a terminal.", short="-y")] = (
        False
    ),
    store: StoreFolder = None,
    seed: NoSeed = 0,  # noqa: ARG001
    confirm: Confirm = lambda _: True,
) -> "RemovedRuns":
    """Remove runs from the store."""
    from demur.store.presentation import RemovedRuns
    from demur.store.runs import Store

    with Store.open(store) as opened:
        chosen = {run.id: run for run in map(opened.run, references)}
        names = ", ".join(f'"{run.name}"' for run in chosen.values())
        if not yes and not confirm(f"Remove {names} for good?"):
            raise UsageError("nothing was removed: the question was not answered with yes")
        return RemovedRuns(opened.root, tuple(map(opened.remove, chosen)), opened.problems)


JOBS = (
    Job(
        "add",
        add_runs,
        present="demur.store.presentation:of_added",
        example="demur add run.jsonl --name baseline --tag museum",
        figures=False,
    ),
    Job(
        "runs",
        runs,
        present="demur.store.presentation:of_runs",
        example="demur runs --tag museum",
        figures=False,
        fails=lambda found: bool(found.damaged),
    ),
    Job("rm", remove_runs, present="demur.store.presentation:of_removed", example="demur rm baseline", figures=False),
)
