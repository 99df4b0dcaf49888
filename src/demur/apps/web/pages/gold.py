"""Gold graphs: how far systems are from people at a task that is made harder, and what the gap is worth."""

from __future__ import annotations

from typing import Any, get_args

from demur.apps.web.pages.page import Page, Shown
from demur.apps.web.pages.runs import choosing, run_values
from demur.apps.web.site import Query, Site
from demur.errors import UsageError
from demur.gold_standard.options import FitChoice

FITS = get_args(FitChoice)
DIRECTIONS = {"harmful": "x can only harm", "helpful": "x can only help", "any": "either way"}
PARTS = ("performer", "role", "subject", "components", "study")
"""Columns that are never what is measured."""

LONGEST_COST = 500
"""Letters of a cost function."""


def choice(site: Site, _: Query) -> Shown:
    """The studies that there are."""
    add = "Add a table of trials: a column performer, what makes it harder, and how well it went."
    found = site.store.runs(kind="trials")
    return Shown("Gold graphs", choosing("/gold", "trials of a gold standard", found, add=add, example="wizards"))


def gold(site: Site, query: Query) -> Shown:
    """What the trials of a run show."""
    run = site.store.run(query.path["id"])
    if run.kind != "trials":
        raise UsageError(f'"{run.name}" is a run of {run.kind}; gold graphs are of trials')
    others = [site.store.run(one) for one in query.several("also")]
    asked = _asked(query)
    document: dict[str, Any] = {
        "run": run_values(run),
        "columns": [name for name in run.columns if name not in PARTS],
        "performers": run.about.get("performers", []),
        "others": [run_values(one) for one in site.store.runs(kind="trials") if one.id != run.id],
        "also": [one.id for one in others],
        "fits": list(FITS),
        "directions": DIRECTIONS,
        **asked,
        "x": asked["x"] or run.about.get("x", ""),
        "y": asked["y"] or run.about.get("y", ""),
    }
    runs = [run, *(one for one in others if one.id != run.id)]
    found = site.result("gold", runs, f"Fitting curves to the trials of {run.name}", **asked)
    return Shown(f"Gold graphs of {run.name}", {**document, **found})


def _asked(query: Query) -> dict[str, Any]:
    cost = query.text("cost")
    if len(cost) > LONGEST_COST:
        raise UsageError(f"a cost has at most {LONGEST_COST} letters; got {len(cost):,}")
    return {
        "x": query.text("x"),
        "y": query.text("y"),
        "lower": query.number("lower"),
        "upper": query.number("upper"),
        "gold": list(query.several("gold")),
        "fit": query.choice("fit", FITS, "auto"),
        "degree": query.whole("degree", 3, low=1, high=9),
        "direction": query.choice("direction", tuple(DIRECTIONS), "harmful"),
        "components": bool(query.text("components")),
        "cost": cost,
        "within": _ends(query, "from", "to"),
        "gain": _ends(query, "gain_from", "gain_to"),
        "checks": not query.text("quick"),
    }


def _ends(query: Query, low: str, high: str) -> list[float] | None:
    """The two ends of a range; both or neither are given."""
    ends = query.number(low), query.number(high)
    if None in ends and ends != (None, None):
        raise UsageError(f"a range has two ends: give both {low} and {high}, or neither")
    return None if ends[0] is None or ends[1] is None else [ends[0], ends[1]]


PAGES: tuple[Page, ...] = (
    Page("/gold", "choice.html", choice, "Gold"),
    Page("/gold/{id}", "gold.html", gold),
)
