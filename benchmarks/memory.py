"""Extra memory of one piece of work in a process of its own: `python -m benchmarks.memory WORK KIND ROWS`.

Prints megabytes: how far the largest resident set rises above what was resident before, which sees every allocator,
and the tracemalloc peak of a second run, which sees NumPy's arrays but not what Polars allocates outside Python.

The resident set is read from /proc/self/status, so this needs Linux. getrusage will not do: its largest resident set
is inherited from the process that started this one, and hides everything smaller.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks.arrays import KINDS, Flags, Floats, answers, argsort_and_cumsum
from benchmarks.measuring import MEGABYTE
from benchmarks.peers import area_of_accuracy, roc_points
from demur.core.stats.sweep import Sweep
from demur.returns.curves import error_return


def counts(confidence: Floats, right: Flags) -> object:
    """The curve as right and wrong answers at each cutoff."""
    return Sweep.of(confidence, right)


def rates(confidence: Floats, right: Flags) -> object:
    """The curve as counts, non-return rates and error rates at each cutoff."""
    curve = error_return(Sweep.of(confidence, right))
    return curve, curve.nonreturn, curve.error


WORKS: dict[str, Callable[[Floats, Flags], object]] = {
    "counts": counts,
    "rates": rates,
    "numpy": argsort_and_cumsum,
    "scikit-learn": roc_points,
    "mapie": area_of_accuracy,
}


def _resident(field: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(line.split()[1] for line in status if line.startswith(f"{field}:"))
    return int(kilobytes) * 1024 / MEGABYTE


def main(work: str, kind: str, rows: str) -> None:
    """Measure and print two numbers."""
    confidence, right = answers(int(rows), KINDS[kind])
    WORKS[work](confidence[:1000], right[:1000])
    gc.collect()
    before, largest_before = _resident("VmRSS"), _resident("VmHWM")
    kept = WORKS[work](confidence, right)
    largest = _resident("VmHWM")
    if largest <= largest_before:
        raise RuntimeError(f"the largest resident set did not rise during {work}, so it says nothing of its memory")
    del kept
    tracemalloc.start()
    kept = WORKS[work](confidence, right)
    print(largest - before, tracemalloc.get_traced_memory()[1] / MEGABYTE)
    del kept


if __name__ == "__main__":
    main(*sys.argv[1:])
