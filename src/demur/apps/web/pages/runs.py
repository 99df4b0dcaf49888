"""The list of runs, each run's own page, and the choice of a run for another page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import floor
from typing import Any

import polars as pl

from demur.apps.web.pages.adding import EXAMPLES, NAMES, endings
from demur.apps.web.pages.compare import (
    explorer_state,
    explorer_values,
    filters_of,
    inner_steps,
    run_summary,
    without_curves,
)
from demur.apps.web.site import Action, Page, PageContent, Query, Site, moment, percent
from demur.core.engines.engine import title_of
from demur.core.io.sources import exactly
from demur.core.io.tables import ROW
from demur.core.options import KINDS
from demur.core.show.page import presentation_document
from demur.core.show.results import Step
from demur.errors import UsageError
from demur.returns.counting import Counting, count
from demur.returns.evaluate import evaluate, returns_measures
from demur.returns.presentation import of_choice, of_scores
from demur.returns.table import Reading
from demur.returns.threshold import threshold_by_error
from demur.store.intake import SHARES
from demur.store.records import Run
from demur.store.rows import numbers_of
from demur.store.runs import Store

KIND_NAMES = {"responses": "answers", "nbest": "N-best lists", "dialogues": "dialogues", "trials": "trials"}
"""What pages call each kind of run."""

BASELINE = "baseline"
"""The tag of the run that is pinned: it comes first, and others are compared with it."""

ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda row: row["name"].casefold(),
    "kind": lambda row: row["kind_name"],
    "rows": lambda row: row["n"],
    "augrc": lambda row: row["augrc"],
    "point": lambda row: row["point"],
    "error": lambda row: row["error"],
    "withheld": lambda row: row["withheld"],
    "added": lambda row: row["added"],
}
"""The columns that the list is sorted by, with what it sorts; with a minus sign before its name, from the most down."""

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
        shown = [run for run in every if _matches(run, query)]
        order = query.choice("order", tuple(f"{sign}{name}" for name in ORDERS for sign in ("", "-")), "-added")
        share = floor(site.preferences.at / STEP + STEP_ROUNDING)
        known = {run.name: run.id for run in every} | {run.id: run.id for run in every}
        document = {
            "runs": _in_order([_row(run, share) for run in shown], order),
            "order": order,
            "share": SHARES[share],
            "all": len(every),
            "tags": sorted({tag for run in every for tag in run.tags}),
            "kinds": {kind: KIND_NAMES[kind] for kind in KINDS},
            "asked": {name: query.text(name) for name in ("search", "kind", "tag")},
            # in the order of the link, as the first is the baseline; those that are gone are left out
            "chosen": list(dict.fromkeys(known[name] for name in query.several("run") if name in known)),
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


STEP = SHARES[1]
STEP_ROUNDING = 1e-9


def _in_order(rows: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Rows by a column, those without a value last, the pinned ones before all others."""
    key = ORDERS[order.removeprefix("-")]
    known = sorted((row for row in rows if key(row) is not None), key=key, reverse=order.startswith("-"))
    every = [*known, *(row for row in rows if key(row) is None)]
    return sorted(every, key=lambda row: not row["pinned"])


def _row(run: Run, share: int = 0) -> dict[str, Any]:
    answered = run.about.get("answered")
    return {
        **run_values(run),
        "kind_name": KIND_NAMES[run.kind],
        "pinned": BASELINE in run.tags,
        "augrc": run.about.get("augrc"),
        "point": (run.about.get("errors_at") or [None] * len(SHARES))[share],
        "error": run.about.get("forced_error"),
        "withheld": None if answered is None or run.n == 0 else 1 - answered / run.n,
        "added": run.added,
        "source": run.source,
        "warnings": list(run.warnings),
        "lake": list(run.lake),
        "link": f"/run/{run.id}",
    }


def change(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:
    """Give a run another name, other tags or another note."""
    name, note, tags = (body.get(part) for part in ("name", "note", "tags"))
    if not all(text is None or isinstance(text, str) for text in (name, note)):
        raise UsageError("name and note must be text")
    if note is not None and len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE:,} characters; got {len(note):,}")
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise UsageError("tags must be a list of texts")
    return {"run": _row(site.store.change(query.text("id"), name=name, tags=tags, note=note))}


def pin(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:
    """Pin a run as the baseline of its kind, in the place of another; or no longer."""
    if not isinstance(body.get("pinned"), bool):
        raise UsageError("pinned must be true or false")
    chosen = site.store.run(query.text("id"))
    for run in site.store.runs(kind=chosen.kind):
        others = [tag for tag in run.tags if tag != BASELINE]
        tags = [*others, BASELINE] if body["pinned"] and run.id == chosen.id else others
        if sorted(tags) != sorted(run.tags):
            site.store.change(run.id, tags=tags)
    return {"run": _row(site.store.run(chosen.id))}


def remove(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Remove a run."""
    run = site.store.remove(query.text("id"))
    site.forget_rows(run)
    return {"removed": _row(run)}


ACTIONS: tuple[Action, ...] = (
    Action("/api/runs/{id}", "PATCH", change),
    Action("/api/runs/{id}", "DELETE", remove),
    Action("/api/runs/{id}/baseline", "PUT", pin),
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


FIRST_ROWS = 8
MOST_ERROR, DELTA = 0.05, 0.05
"""The promise that a run's page looks for: at most this error rate, kept with this chance of being wrong."""

LONGEST_CELL = 300
"""Characters of a cell that are shown of a table as it came."""


class RunPage(Page):
    """One run."""

    path, template = "/run/{id}", "run.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The page: facts for every kind of run, and for answers all that an evaluation shows."""
        run = site.store.run(query.path["id"])
        document = {
            "run": run.to_dict(),
            "runs": [run_summary(run)],
            "facts": facts_of(run),
            "links": _links_of(run),
            "others": [run_summary(one) for one in site.store.runs(kind=run.kind) if one.id != run.id],
        }
        if run.kind != "responses":
            return PageContent(run.name, {**document, "first_rows": _first_rows(site, run)})
        by, slices = query.text("by"), run.about.get("slices", [])
        if by and by not in slices:
            raise UsageError(f'"{by}" is no column to slice by; there are {", ".join(slices) or "none"}')
        about = f"Reading {run.name}" + (f" by {by}" if by else "")
        result = site.result(f"{__name__}:evaluation", [run], about, at=site.preferences.at, by=by or None)
        return PageContent(run.name, {**document, "by": by, "slices": slices, "state": explorer_state(query), **result})


def facts_of(run: Run) -> list[tuple[str, str]]:
    """What is known of a run, named."""
    about = run.about
    facts = [("kind", KIND_NAMES[run.kind]), ("rows", f"{run.n:,}")]
    if run.kind == "responses":
        withheld = run.n - about["answered"] - about["failed"]
        facts += [
            ("answered", f"{about['answered']:,}"),
            ("withheld by itself", f"{withheld:,}"),
            ("failed", f"{about['failed']:,}"),
            ("out of scope", f"{about['out_of_scope']:,}"),
            ("wrong when all is returned", percent(about["forced_error"])),
        ]
        dialogues = "dialogues (about)" if run.lake else "dialogues"
        facts += [(dialogues, f"{about['dialogues']:,}")] if about.get("dialogues") else []
        facts += [("linked to", ", ".join(run.lake)), ("counted by", title_of(run.engine))] if run.lake else []
    else:
        facts += [(name.replace("_", " "), _fact(value)) for name, value in about.items()]
    return [*facts, ("added", moment(run.added)), ("from", run.source), ("id", run.id)]


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def _links_of(run: Run) -> list[dict[str, str]]:
    """Where else this run is shown."""
    answers, about = run.kind == "responses", run.about
    links = [
        (answers, "Errors and missed chances", f"/errors?run={run.id}"),
        (run.kind == "nbest" or (answers and about.get("has_nbest")), "Inspect the N-best lists", f"/nbest/{run.id}"),
        (answers and about.get("dialogues") and not run.lake, "Fit an outcome model", f"/outcome?turns={run.id}"),
        (run.kind == "dialogues", "Fit an outcome model", f"/outcome?run={run.id}"),
        (run.kind == "trials", "Study against the gold standard", f"/gold/{run.id}"),
    ]
    return [{"label": label, "href": href} for applies, label, href in links if applies]


def _first_rows(site: Site, run: Run) -> dict[str, Any]:
    frame = pl.scan_parquet(exactly(site.store.rows_path(run))).head(FIRST_ROWS).collect().drop(ROW)
    texts = [["–" if value is None else str(value) for value in row] for row in frame.iter_rows()]
    rows = [[text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…" for text in row] for row in texts]
    heading = f"The first {len(rows)} rows as they came"
    return {"title": heading, "columns": frame.columns, "numeric": [False] * frame.width, "rows": rows}


def evaluation(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What the answers of one run show: explorer, measures with intervals, figures, slices and a threshold."""
    run, by = store.run(given["runs"][0]), given.get("by")
    step("reading the run", 0, 3)
    how: dict[str, Any] = {"step": inner_steps(3, 1, step), **given["sampling"]}
    measures = returns_measures(at=given["at"])
    if run.lake:
        counted = count((store.lake(run),), Reading(keep=(by,) if by else ()), Counting(), by=by)
        assert counted is not None
        evaluations = evaluate(counted.tallies, measures=measures, **how)
    else:
        rows = {run.name: numbers_of(run, store.rows_path(run), (by,) if by else ())}
        evaluations = evaluate(rows, measures=measures, by=by, **how)
    step("drawing", 2, 3)
    whole = evaluations[0]
    choice = threshold_by_error(whole.sample, MOST_ERROR, delta=DELTA, name=whole.name)
    advice = replace(without_curves(of_choice(choice, whole)), notes=(), signatures=())
    return {
        **explorer_values([whole]),
        "scores": presentation_document(without_curves(of_scores(evaluations))),
        "advice": presentation_document(advice),
        "evaluation": evaluations.to_dict(),
        "filters": filters_of(store, [run]),
    }
