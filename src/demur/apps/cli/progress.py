"""A progress bar on standard error, for work that takes more than a second at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

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
    waiting = Timer(PATIENCE, bar.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
    finally:
        waiting.cancel()
        bar.stop()
