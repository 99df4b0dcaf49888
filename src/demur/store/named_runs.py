"""Stored runs by name, `run:NAME`, wherever a command takes a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from demur.core.io.columns import unknown_column
from demur.core.io.tables import named_column
from demur.core.jobs import Job
from demur.core.options import KINDS, Kind
from demur.errors import UsageError
from demur.store.records import Run
from demur.store.runs import Store

PREFIX, BASELINE = "run:", "@baseline"

KINDS_OF: Mapping[str, tuple[Kind, ...]] = {
    "returns": ("responses",),
    "nbest_lists": ("nbest",),
    "outcome": ("responses", "dialogues"),
    "gold_standard": ("trials",),
    "reports": KINDS,
}
"""The kinds of runs that the jobs of a question take."""

READ_WHEN_ADDED = (
    "columns",
    "out_of_scope",
    "withheld",
    "missing_confidence",
    "confidence",
    "pair_by",
    "x",
    "y",
    "items",
)
"""Options on reading, which a run was read by when it was added."""


def is_run(value: Any) -> bool:
    """Whether a text names a stored run and no file that is there."""
    return isinstance(value, str) and value.startswith(PREFIX) and not os.path.exists(value)


def with_runs(positional: list[Any], options: dict[str, Any], job: Job) -> tuple[list[Any], dict[str, Any]]:
    """Arguments and options of a job, with the tables of runs in place of their names.

    `where` keeps rows of runs as of files; `run:NAME@baseline` is the run that the others are compared with.
    """
    defaults = {one.name: one.default for one in job.parameters}
    kinds = KINDS_OF.get(job.function.__module__.split(".")[1], ())
    changed = [name for name in READ_WHEN_ADDED if name in options and options[name] != defaults[name]]
    if changed:
        raise UsageError(f"`{changed[0]}` is how a file is read; a run was read when it was added")
    tables: list[Any] = []
    with Store.open() as store:
        for one in positional:
            if not is_run(one):
                tables.append(one)
                continue
            name = one.removeprefix(PREFIX)
            run = store.run(name.removesuffix(BASELINE))
            if run.kind not in kinds:
                taken = f"takes runs of {' or '.join(kinds)}" if kinds else "takes no runs"
                raise UsageError(f"{one}: this run holds {run.kind}; demur {job.name} {taken}")
            tables += _tables(store, run, options.get("where", ()))
            if name.endswith(BASELINE):
                if "baseline" not in defaults:
                    raise UsageError(f"{one}: only compare has a baseline")
                options = {**options, "baseline": run.name}
    if not any(isinstance(one, str) for one in tables):
        options.pop("where", None)
    return tables, options


def _tables(store: Store, run: Run, where: Sequence[tuple[str, str]]) -> list[Any]:
    if run.kind == "responses":
        table = store.responses(run, columns=("*",))
        for column, value in where:
            if column not in table.frame.columns:
                raise unknown_column(column, run.columns, f'run "{run.name}"')
            table = replace(table, frame=table.frame.filter(named_column(column).cast(pl.String) == value))
        if table.frame.is_empty():
            raise UsageError(f'`where` keeps no row of run "{run.name}"')
        return [table]
    if where:
        raise UsageError(f'`where` is for runs of answers; run "{run.name}" holds {run.kind}')
    if run.kind == "nbest":
        return [store.lists(run)]
    return [store.dialogues(run)] if run.kind == "dialogues" else list(store.trials(run))
