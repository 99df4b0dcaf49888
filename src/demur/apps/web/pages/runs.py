"""The list of runs: searched, chosen, named, tagged, added and removed; and the choice of a run for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from demur.apps.web.pages.examples import EXAMPLES
from demur.apps.web.pages.page import Action, Page, PageContent
from demur.apps.web.pages.uploading import NAMES, endings
from demur.apps.web.site import Query, Site
from demur.core.options import KINDS
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.store.records import Run

KIND_NAMES = {"responses": "answers", "nbest": "N-best lists", "dialogues": "dialogues", "trials": "trials"}
"""What pages call each kind of run."""

ORDERS = ("newest", "oldest", "name", "error", "rows")

LONGEST_NOTE = 10_000

SAMPLE = (
    '{"id": "q1", "input": "when do you open", "target": "hours", "prediction": "hours", "confidence": 0.93}',
    '{"id": "q2", "input": "is there a café", "target": "food", "prediction": "tickets", "confidence": 0.41}',
    '{"id": "q3", "input": "sing me a song", "target": "oos", "prediction": null}',
)
"""Three lines of a log, for who has none yet."""


class RunsPage(Page):
    """The list of runs."""

    path, template = "/runs", "runs.html"
    heading = "Runs"

    def show(self, site: Site, query: Query) -> PageContent:
        """All runs, or those that are asked for, in the order asked for."""
        every = site.store.runs()
        shown = _ordered([run for run in every if _matches(run, query)], query.choice("order", ORDERS, "newest"))
        document = {
            "runs": [_row(run) for run in shown],
            "all": len(every),
            "tags": sorted({tag for run in every for tag in run.tags}),
            "kinds": {kind: KIND_NAMES[kind] for kind in KINDS},
            "asked": {name: query.text(name) for name in ("search", "kind", "tag", "order")},
            "chosen": _chosen(every, query),
            "problems": [*site.problems, *site.store.problems],
            "limit": site.most_uploaded,
            "endings": endings(),
            "names": NAMES,
            "sample": SAMPLE,
        }
        return PageContent("Runs", document)


def _matches(run: Run, query: Query) -> bool:
    kind = query.choice("kind", ("", *KINDS), "")
    tag, words = query.text("tag"), query.text("search").casefold().split()
    text = " ".join((run.name, run.note, run.source, run.id, *run.tags)).casefold()
    return kind in ("", run.kind) and tag in ("", *run.tags) and all(word in text for word in words)


def _chosen(every: list[Run], query: Query) -> list[str]:
    """The runs that a link names, in its order, as the first is the baseline; those that are gone are left out."""
    known = {**{run.name: run.id for run in every}, **{run.id: run.id for run in every}}
    return list(dict.fromkeys(known[name] for name in query.several("run") if name in known))


def _ordered(found: list[Run], order: str) -> list[Run]:
    if order == "oldest":
        return found[::-1]
    if order == "name":
        return sorted(found, key=lambda run: run.name.casefold())
    if order == "rows":
        return sorted(found, key=lambda run: -run.n)
    if order == "error":
        return sorted(found, key=lambda run: (error_of(run) is None, error_of(run) or 0.0))
    return found


def error_of(run: Run) -> float | None:
    """The error rate of a run of answers when all that was answered is returned."""
    error: float | None = run.about.get("forced_error")
    return error


def _row(run: Run) -> dict[str, Any]:
    answered = run.about.get("answered")
    return {
        "id": run.id,
        "name": run.name,
        "kind": run.kind,
        "kind_name": KIND_NAMES[run.kind],
        "n": run.n,
        "error": error_of(run),
        "withheld": None if answered is None or run.n == 0 else 1 - answered / run.n,
        "added": run.added,
        "source": run.source,
        "tags": list(run.tags),
        "note": run.note,
        "warnings": list(run.warnings),
        "link": f"/run/{run.id}",
    }


def change(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:
    """Give a run another name, other tags or another note."""
    name, note, tags = (body.get(part) for part in ("name", "note", "tags"))
    if not all(text is None or isinstance(text, str) for text in (name, note)):
        raise UsageError("name and note must be text")
    if note is not None and len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE:,} letters; got {len(note):,}")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise UsageError("tags must be a list of texts")
    return {"run": _row(site.store.change(query.text("id"), name=name, tags=tags, note=note))}


def remove(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Remove a run."""
    run = site.store.remove(query.text("id"))
    site.dropped(run)
    return {"removed": _row(run)}


ACTIONS: tuple[Action, ...] = (
    Action("/api/runs/{id}", "PATCH", change),
    Action("/api/runs/{id}", "DELETE", remove),
)


def run_values(run: Run) -> dict[str, Any]:
    """What a page says of a run."""
    return {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n, "note": run.note, "tags": list(run.tags)}


def choosing(page: str, what: str, runs: Sequence[Run], *, add: str, example: str) -> dict[str, Any]:
    """The document of a page on which a run is chosen; without runs it offers an example."""
    return {
        "page": page,
        "what": what,
        "runs": [{**run_values(run), "kind_name": KIND_NAMES[run.kind]} for run in runs],
        "add": add,
        "example": example,
        "example_label": f"Add the bundled example, {EXAMPLES[example].label}",
    }
