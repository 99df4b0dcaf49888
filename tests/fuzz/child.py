"""Runs commands one after the other in one process, under a limit of memory, and says how each of them ended."""

import faulthandler
import io
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from demur.apps.cli.main import run
from demur.errors import DemurError

ROOM = 16 << 30
"""Bytes of addresses that all inputs may take beyond those at the start: many are kept, though nothing is in them."""


def main() -> None:
    """Reads a job a line and answers each with a line; dumps are asked for by a signal."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable(2)
    faulthandler.register(signal.SIGUSR1, 2, all_threads=True)
    _limit_memory()
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(answer(job["folder"], job["command"])) + "\n")
        answers.flush()


def _limit_memory() -> None:
    with suppress(OSError, ValueError):
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))


def answer(folder: str, command: list[str]) -> dict[str, Any]:
    """How a command ended: its code, what it said, where it failed, and the memory it took at most."""
    _forget_peak()
    code, said, failed = executed(folder, command)
    if code == 3:  # once more for the place
        os.environ["DEMUR_DEBUG"] = "1"
        try:
            failed = executed(folder, command)[2] or failed
        finally:
            del os.environ["DEMUR_DEBUG"]
    return {"code": code, "said": said[-2000:], "failed": failed[-6000:], "peak": _peak()}


def executed(folder: str, command: list[str]) -> tuple[int | str, str, str]:
    """The exit code, or what was raised instead; standard error; and the traceback of what was raised."""
    said = io.StringIO()
    with chdir(folder), redirect_stdout(io.StringIO()), redirect_stderr(said), _arguments(command):
        try:
            OWN[command[0]](Path(command[1])) if command[0] in OWN else run()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0 if end.code is None else 1, said.getvalue(), ""
        except DemurError as fault:
            return 2, str(fault), ""
        except BaseException as fault:
            return type(fault).__name__, said.getvalue(), traceback.format_exc()
    return 0, said.getvalue(), ""


@contextmanager
def _arguments(command: list[str]) -> Iterator[None]:
    before, sys.argv, stdin = sys.argv, ["demur", *command], sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
    try:
        yield
    finally:
        sys.argv, sys.stdin = before, stdin


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Bytes of memory that were in use at once since the peak was forgotten."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def read_store(root: Path) -> None:
    """Reads all that pages show of the runs in a store."""
    from demur.store.runs import Store

    with Store.open(root) as store:
        faults = []
        for run_ in store.runs():
            try:
                if run_.kind == "responses":
                    rows = store.rows(run_)
                    rows.counts(0.5, search="text")
                    rows.page("wrong", where=[(name, values[0][0]) for name, values in rows.slices().items() if values])
                    store.responses(run_, columns=("*",))
                else:
                    store.dialogues(run_)
            except DemurError as fault:
                faults.append(fault)
        if faults:
            raise faults[0]


def read_settings(root: Path) -> None:
    """Reads the settings of the workbench."""
    from demur.apps.web.site import read_preferences

    read_preferences(root)


def feed_study(root: Path) -> None:
    """Feeds messages to the sockets of a study."""
    from fuzz.sockets import feed_sockets

    feed_sockets(root)


OWN: dict[str, Callable[[Path], None]] = {
    "@store": read_store,
    "@settings": read_settings,
    "@sockets": feed_study,
}

if __name__ == "__main__":
    main()
