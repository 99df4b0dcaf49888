"""Work for tests of the worker, which its process finds by the name of this module."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException

from demur.apps.web import worker
from demur.core.show.results import Step
from demur.errors import DataError


def perform_task(
    task: str, given: dict[str, Any], signature: str | None, root: Path, step: Step
) -> dict[str, Any] | None:
    """Does what the name of the task says."""
    if task == "endless":
        step(f"in process {os.getpid()}", 1, 3)
        while True:
            time.sleep(60)
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "refuse":
        raise DataError("must be odd", where="log.jsonl:1:", got=2)
    if task == "break":
        raise ValueError("oops")
    if task == "fill":
        held = bytearray(given["bytes"])
        held[::4096] = b"x" * len(held[::4096])
    if task == "fill natively":
        pl.select(pl.repeat(1.0, given["bytes"] // 8)).sum()
    if task == "panic":
        raise PanicException("capacity overflow")
    if task == "spend":
        import resource

        left = resource.getrlimit(resource.RLIMIT_CPU)[0] - time.process_time()
        until = time.process_time() + 1.2
        while time.process_time() < until:
            pass
        return {"process": os.getpid(), "left": left}
    if task == "work":
        while True:
            pass
    if task == "grow":
        worker.MOST_MEMORY = 0
    return {"process": os.getpid(), "signature": signature, "root": str(root), **given}
