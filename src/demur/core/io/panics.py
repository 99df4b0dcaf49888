"""Keeps from standard error what Polars prints there by itself when it panics at a damaged file."""

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

_PANIC = re.compile(rb"thread '.*' .*panicked at ")
_MORE = (b" ", b"\t", b"stack backtrace:", b"note: ")
"""How lines begin that go on about a panic, after where it was and why."""


def without_panics_in(printed: bytes) -> bytes:
    r"""Gives what was printed besides panics.

    >>> without_panics_in(b"a\n\nthread 'x' (7) panicked at f.rs:1:2:\nassertion failed\n  left: 1\nb\n")
    b'a\nb\n'
    """
    kept: list[bytes] = []
    since = None
    for line in printed.splitlines(keepends=True):
        if _PANIC.match(line):
            since = 0
            del kept[len(kept) - (kept[-1:] == [b"\n"]) :]
        elif since is not None and (since == 0 or line.startswith(_MORE)):
            since += 1
        else:
            since = None
            kept.append(line)
    return b"".join(kept)


class _Redirection:
    """Standard error while it goes to a file; what Python prints still goes where it would."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._ends = ExitStack()

    def begin(self) -> None:
        with self._lock:
            self._within += 1
            if self._within == 1:
                with suppress(OSError, ValueError), ExitStack() as stack:
                    self._redirect(stack)
                    self._ends = stack.pop_all()

    def end(self) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._ends.close()

    def _redirect(self, stack: ExitStack) -> None:
        kept = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        before = os.dup(2)
        stack.callback(os.close, before)
        stack.callback(_print_rest, kept)
        python = sys.stderr
        if python is not None and _descriptor_of(python) == 2:
            python.flush()
            other = os.fdopen(os.dup(before), "w", buffering=1, encoding=python.encoding, errors=python.errors)
            sys.stderr = stack.enter_context(other)
            stack.callback(setattr, sys, "stderr", python)
        os.dup2(kept.fileno(), 2)
        stack.callback(os.dup2, before, 2)


def _descriptor_of(stream: IO[str]) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _print_rest(kept: IO[bytes]) -> None:
    kept.seek(0)
    rest = without_panics_in(kept.read())
    if rest:
        with suppress(OSError):
            os.write(2, rest)


_redirection = _Redirection()


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Has panics of Polars print nothing, unless DEMUR_DEBUG is set; several threads may ask for it at once."""
    if os.environ.get("DEMUR_DEBUG"):
        yield
        return
    _redirection.begin()
    try:
        yield
    finally:
        _redirection.end()
