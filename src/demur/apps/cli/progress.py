"""A progress bar on standard error, for work that takes more than a second at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from demur.show import Step, silent

PATIENCE = 1.0
"""Seconds of work before anything is shown."""


@contextmanager
def steps(*, quiet: bool) -> Iterator[Step]:
    """A function to call with (what, done, of how many) as work goes on."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)
    began = time.monotonic()

    def step(what: str, done: int, total: int) -> None:
        if time.monotonic() - began > PATIENCE and not bar.live.is_started:
            bar.start()
        bar.update(task, description=what, completed=done, total=total)

    try:
        yield step
    finally:
        bar.stop()
