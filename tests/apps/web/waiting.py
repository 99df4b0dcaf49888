"""Waiting for what happens in other threads and processes."""

import time
from collections.abc import Callable


def until(happens: Callable[[], object], *, seconds: float = 30) -> None:
    """Wait until something holds, looking often; the limit only ends a test that hangs."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "this did not happen"
        time.sleep(0.01)
