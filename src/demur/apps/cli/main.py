"""The `demur` command: loads the commands that are asked for, runs them, and says in one line what went wrong."""

import codecs
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO

import typer

from demur.apps.cli.commands import add_jobs, new_app
from demur.core.show.results import path_text
from demur.core.show.safe import terminal_line
from demur.errors import DataError, DemurError, Interrupted
from demur.returns.jobs import JOBS

COMPLETION = "_DEMUR_COMPLETE"
"""Set by a shell that asks how a command line goes on; it has every command then."""

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""New objects from which garbage is looked for; with Python's 700 it is looked for 160 times while a command loads."""

ROOM_AT_ONCE = "dirty_decay_ms:0,muzzy_decay_ms:0"
"""Has Polars' allocator give room back at once; of settings that contradict each other it takes the last."""


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with the command that is asked for; jobs on returns do not load what the others are declared with.

    >>> len(app_for(["score", "log.jsonl"]).registered_commands)
    1
    """
    jobs = [job for job in JOBS if [job.name] == list(arguments[:1])]
    if jobs and COMPLETION not in os.environ:
        small = new_app()
        add_jobs(small, jobs)
        return small
    from demur.apps.cli.app import app_of

    return app_of(arguments)


def run() -> None:
    """Run the command; a fault becomes one clear message and its exit code, never a traceback for bad input."""
    _open_streams()
    _print_everything()
    _tune()
    try:
        _run_whole()
    except (Interrupted, KeyboardInterrupt) as stop:
        _leave(str(stop) or "interrupted", 130)
    except DataError as fault:
        _leave("\n".join(terminal_line(f"error: {one}") for one in fault.faults), 2)
    except DemurError as fault:
        _leave(terminal_line(f"error: {fault}"), 2)
    except BrokenPipeError:
        _write_nowhere(sys.stdout)
        sys.exit(0)
    except MemoryError:
        _leave("error: this does not fit into memory; read fewer columns, or a part of the rows with --where", 2)
    except OSError as fault:
        _write_nowhere(sys.stdout)
        _leave(f"error: {': '.join(filter(None, (_named(fault), fault.strerror or str(fault))))}", 2)
    except Exception as fault:
        if os.environ.get("DEMUR_DEBUG"):
            raise
        _leave(
            f"internal error: {type(fault).__name__}: {fault}\nThis is a fault of demur, not yours. "
            "Run again with DEMUR_DEBUG=1 for the traceback, and please report it.",
            3,
        )


def _tune() -> None:
    """Set what libraries read when they are loaded, and look for garbage less often than while a library is loaded."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices here are small: idle threads only cost time
    os.environ.setdefault("POLARS_HOT_TABLE_SIZE", str(2**20))  # a million groups at a time, instead of every row
    inherited = os.environ.get("_RJEM_MALLOC_CONF", "")  # a process that has loaded Polars hands its settings down
    if not inherited.endswith(ROOM_AT_ONCE):
        os.environ["_RJEM_MALLOC_CONF"] = f"{inherited},{ROOM_AT_ONCE}".lstrip(",")
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def _run_whole() -> None:
    """Run the command and write all that it printed, so that an output that is full or closed is noticed here."""
    try:
        with _ending_at_sigterm():
            app_for(sys.argv[1:])(standalone_mode=True)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # which Typer turns into the code of a failed gate
            raise end.__context__ from None
        sys.stdout.flush()
        raise


@contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """Have SIGTERM end the command as a fault does, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _open_streams() -> None:
    """Have streams that the caller closed lead nowhere, except for standard output, which is refused."""
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:  # in rising order, so that each takes the number of the stream that is missing
        os.open(os.devnull, os.O_RDWR)
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    if 1 in closed:
        _leave("error: standard output is closed; send it to a file or to /dev/null", 2)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _write_nowhere(stream: TextIO) -> None:
    """Have what a stream still holds go nowhere, so that Python does not fail on it again at the end."""
    with suppress(OSError):  # of a stream without a number of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _named(fault: OSError) -> str:
    return path_text(fault.filename) if isinstance(fault.filename, str) else "standard output or a temporary file"


def _print_everything() -> None:
    """Has standard output and standard error write what their encoding lacks as escapes, as JSON has them."""
    codecs.register_error("demur", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="demur")


def _escape(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    text = fault.object[fault.start : fault.end]
    with suppress(UnicodeEncodeError):  # half of a pair of surrogates is no byte of a path
        text = path_text(text)
    return json.dumps(text)[1:-1], fault.end


def _leave(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
