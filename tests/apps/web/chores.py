"""Work for tests of the worker, which its process finds by the name of this module."""

import os
import signal
import time
from pathlib import Path
from typing import Any

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
        raise MemoryError
    if task == "grow":
        worker.MOST_MEMORY = 0
    return {"process": os.getpid(), "signature": signature, "root": str(root), **given}
