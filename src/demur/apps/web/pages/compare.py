"""Runs against each other: the verdict, the interactive plot, and the answers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from demur.apps.web.pages.page import Page, Shown
from demur.apps.web.site import Query, Site
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


COMPARABLE = ("responses", "nbest")
PAIRINGS = {
    "ids": "by id; all ids must be common",
    "matched": "by id, on the common ones",
    "unpaired": "not at all: all rows of each",
}
MOST_RUNS = 8
"""Runs in one comparison; curves of more cannot be told apart."""


def compare(site: Site, query: Query) -> Shown:
    """The page: a choice of runs and, of two or more, all that their comparison shows."""
    runs = list({run.id: run for run in map(site.store.run, query.several("run"))}.values())
    pairing = query.choice("pairing", tuple(PAIRINGS), "ids")
    document = {
        "choices": [told_run(run) for run in site.store.runs() if run.kind in COMPARABLE],
        "chosen": [run.id for run in runs],
        "runs": [told_run(run) for run in runs],
        "pairings": PAIRINGS,
        "pairing": pairing,
        "state": explored_state(query),
        "most": MOST_RUNS,
        "fault": fault_of(runs, len(query.several("run"))),
        "kind": runs[0].kind if runs else None,
        "result": None,
        "refused": None,
    }
    if len(runs) < 2 or document["fault"]:
        return Shown("Compare runs", document, 400 if document["fault"] else 200)
    names = " and ".join(run.name for run in runs)
    found = site.result("comparison", runs, f"Comparing {names}", pairing=pairing, at=site.preferences.at)
    if "refused" in found:
        return Shown("Compare runs", {**document, "refused": _ways_out(runs, pairing, found["refused"])})
    return Shown(_title(runs), {**document, **found})


def fault_of(runs: Sequence[Run], asked: int) -> str:
    """Why runs cannot be compared; empty where they can, or where there is nothing to compare yet."""
    kinds = sorted({run.kind for run in runs})
    if asked > len(runs):
        return "A run was chosen twice; choose different ones."
    if len(runs) > MOST_RUNS:
        return f"At most {MOST_RUNS} runs can be compared at once; these are {len(runs)}."
    if len(kinds) > 1:
        listed = ", ".join(f"{run.name} ({run.kind})" for run in runs)
        return f"Only runs of one kind can be compared; these are of different kinds: {listed}."
    if kinds and kinds[0] not in COMPARABLE:
        return f"Runs of {kinds[0]} are not compared here; their own pages show them."
    return ""


def _ways_out(runs: Sequence[Run], pairing: str, refused: dict[str, Any]) -> dict[str, Any]:
    """Why runs cannot be paired, and links to what can be done instead."""
    chosen = [("run", run.id) for run in runs]
    apart = any(run.n > refused["common"] for run in runs)
    return {
        **refused,
        "matched": _link(chosen, "matched") if pairing == "ids" and apart and refused["common"] else None,
        "unpaired": _link(chosen, "unpaired"),
    }


def _link(chosen: list[tuple[str, str]], pairing: str) -> str:
    return f"/compare?{urlencode([*chosen, ('pairing', pairing)])}"


def _title(runs: Sequence[Run]) -> str:
    first, *others = (run.name for run in runs)
    return f"{first} against {others[0]}" if len(others) == 1 else f"{first} against {len(others)} others"


PAGES: tuple[Page, ...] = (Page("/compare", "compare.html", compare, "Compare"),)
