"""What pages with an explorer share: the state that a link restores, and how a run is told to scripts."""

from __future__ import annotations

import math
from typing import Any

from demur.apps.web.query import Query
from demur.store.records import Run

ALIGNED = ("share", "threshold", "cost")


def explored_state(query: Query) -> dict[str, Any]:
    """Where the explorer stands: the share withheld or the threshold, the cost ratio, and a range that is marked."""
    align = query.choice("align", ALIGNED, "share")
    low, high = (-math.inf, math.inf) if align == "threshold" else (0.0, 1.0)
    return {
        "align": align,
        "x": query.number("x", low=low, high=high),
        "ratio": query.number("ratio", low=0.0, high=0.99),
        "from": query.number("from", low=0.0, high=1.0),
        "to": query.number("to", low=0.0, high=1.0),
    }


def told_run(run: Run) -> dict[str, Any]:
    """A run as a list of runs tells it."""
    return {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n, "slices": run.about.get("slices", [])}
