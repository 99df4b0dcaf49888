"""What the worker's process does: one task after another, until the server is gone."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from demur.errors import DemurError
from demur.show import Step, silent

Perform = Callable[[str, dict[str, Any], str | None, Path, Step], dict[str, Any] | None]
"""Does a task by its name: with what is given, the signature to keep the result under, the store, and whom to tell."""

MOST_MEMORY = 600 * 1024**2
"""Bytes that the process may have taken at its height before the next job gets a new one."""

KILLED_FIRST = "1000"
"""On Linux: should memory run out, the kernel ends this process and not the server or the browser."""


def labour(pipe: Connection, root: str, warm: bool, perform: Perform) -> None:
    """Take a task, tell of its steps, keep its result, say that it is done; again and again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server, and the server ends this process
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST, encoding="ascii")
    Thread(target=_leave_with_the_server, daemon=True).start()

    def step(what: str, done: int, total: int) -> None:
        pipe.send(("step", what, done, total))

    with suppress(EOFError, OSError):
        if warm and not pipe.poll():
            with suppress(Exception):  # what does not load will say so when it is needed
                perform("warm", {}, None, Path(root), silent)
        while True:
            task, given, signature = pipe.recv()
            pipe.send(("begun",))
            pipe.send(outcome(lambda: perform(task, given, signature, Path(root), step)))  # noqa: B023
            give_back()


def outcome(work: Callable[[], dict[str, Any] | None]) -> tuple[str, Any, bool]:
    """How work ended: `done` with its answer, `failed` by its input or by a `fault` of demur; and if it was heavy."""
    try:
        return ("done", work(), heavy())
    except DemurError as refusal:
        return ("failed", str(refusal), heavy())
    except MemoryError:
        return ("failed", "this does not fit into memory", True)
    except Exception as fault:
        where = traceback.extract_tb(fault.__traceback__)[-1]
        told = f"{type(fault).__name__}: {fault} ({Path(where.filename).name}:{where.lineno})"
        return ("fault", f"internal error: {told}. This is a fault of demur; please report it.", heavy())


def heavy() -> bool:
    """Whether this process has taken so much memory that a new one should follow; never where no one counts it."""
    return most_taken() > MOST_MEMORY


def most_taken() -> int:
    """Bytes of memory that this process had at its height.

    Linux is asked for the process alone: what `getrusage` tells there begins with the height of the process that
    started this one, so that under a large server every process would be taken for a large one.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if found := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            return 1024 * int(found[1])
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def give_back() -> None:
    """Give back memory that is free again, which the C library of Linux else keeps for the next job."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such library, or no such function
        ctypes.CDLL(None).malloc_trim(0)


def _leave_with_the_server() -> None:
    """End this process when the server ends, however that did, in the middle of work too."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(1)
