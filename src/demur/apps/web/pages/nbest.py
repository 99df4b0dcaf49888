"""The N-best inspector: what lists of hypotheses are worth, and then turn by turn why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demur.apps.web.pages.choice import choosing, run_values
from demur.apps.web.pages.page import Page, Shown
from demur.apps.web.pages.turns import Asked, inspected, label_sorts, read_turns, sorts_of
from demur.apps.web.query import Query
from demur.apps.web.site import Site, Waiting, signature_of
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.store.runs import Run

PARTS = ("id", "dialogue", "reference", "hypotheses", "asr", "cnet", "system", "weight", "input", "text")
"""Columns of N-best lists that nobody slices by."""


def choice(site: Site, _: Query) -> Shown:
    """The runs that have lists to look at."""
    found = [run for run in site.store.runs() if has_lists(run)]
    add = "Add a table with a column hypotheses, or answers with a column nbest."
    document = choosing("/nbest", "lists of hypotheses", found, add=add, example="restaurant")
    return Shown("N-best lists", document)


def has_lists(run: Run) -> bool:
    """Whether a run has lists of hypotheses."""
    return run.kind == "nbest" or bool(run.about.get("has_nbest"))


def lists(site: Site, query: Query) -> Shown:
    """The measures of a run's lists, and its turns."""
    run = _run(site, query)
    by = query.text("by")
    shown = site.result("lists", [run], f"Evaluating the lists of {run.name}", by=by)
    document = {**_turns(site, query, run), **shown, "by": by, "slices": _slices(run)}
    return Shown(f"N-best lists of {run.name}", document)


def turns(site: Site, query: Query) -> Shown:
    """The turns of a run alone, for going through them quickly."""
    run = _run(site, query)
    return Shown(f"Turns of {run.name}", _turns(site, query, run))


def _run(site: Site, query: Query) -> Run:
    run = site.store.run(query.path["id"])
    if not has_lists(run):
        raise UsageError(f'"{run.name}" has no lists of hypotheses: it is a table of {run.kind} without a column nbest')
    return run


def _turns(site: Site, query: Query, run: Run) -> dict[str, Any]:
    sorts = sorts_of(run.kind)
    asked = Asked(
        sort=query.choice("sort", tuple(sorts), next(iter(sorts))),
        search=query.text("search"),
        at=query.whole("at", 0, high=run.n) or None,
        by=query.text("by"),
    )
    content = _kept(site, run)
    found = inspected(read_turns(content, searched=bool(asked.search)), content, asked, sorts)
    return {"run": run_values(run), "labels": sorts is label_sorts(), **found}


def _kept(site: Site, run: Run) -> bytes:
    """The table of turns, or `Waiting` while it is made."""
    name = signature_of("turns", [run.id], [], {})
    content = site.store.cached(name)
    if content is None:
        about = f"Taking the lists of {run.name} apart"
        given = {"runs": [run.id], "name": name}
        raise Waiting(site.worker.start("turns", given, signature=name, about=about), about)
    return content


def _slices(run: Run) -> list[str]:
    return [name for name in run.columns if name not in PARTS] if run.kind == "nbest" else []


PAGES: tuple[Page, ...] = (
    Page("/nbest", "choice.html", choice, "N-best"),
    Page("/nbest/{id}", "nbest.html", lists),
    Page("/nbest/{id}/turns", "nbest_turns.html", turns),
)
