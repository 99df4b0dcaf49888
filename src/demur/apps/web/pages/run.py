"""One run: what is known of it, what its answers show, and where to go from here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from demur.apps.web.pages.compare import (
    explored,
    explored_state,
    filters_of,
    inner_steps,
    run_summary,
    without_curves,
)
from demur.apps.web.pages.page import Page, PageContent
from demur.apps.web.pages.runs import KIND_NAMES
from demur.apps.web.rendering import percent
from demur.apps.web.site import Query, Site
from demur.core.io.sources import exactly
from demur.core.io.tables import ROW
from demur.core.show.page import presentation_document
from demur.core.show.presentation import Presentation
from demur.core.show.results import Step
from demur.errors import UsageError
from demur.returns.evaluate import Evaluation, evaluate, returns_measures
from demur.returns.presentation import of_choice, of_scores
from demur.returns.threshold import threshold_by_error
from demur.store.records import Run
from demur.store.rows import numbers_of
from demur.store.runs import Store

FIRST_ROWS = 8
MOST_ERROR, DELTA = 0.05, 0.05
"""The promise that a run's page looks for: at most this error rate, kept with this chance of being wrong."""

LONGEST_CELL = 300
"""Letters of a cell that are shown of a table as it came."""


class RunPage(Page):
    """One run."""

    path, template = "/run/{id}", "run.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The page: facts for every kind of run, and for answers all that an evaluation shows."""
        found = site.store.run(query.path["id"])
        others = [run_summary(one) for one in site.store.runs(kind=found.kind) if one.id != found.id]
        document = {
            "run": found.to_dict(),
            "runs": [run_summary(found)],
            "facts": facts_of(found),
            "links": links_of(found),
            "others": others,
        }
        if found.kind == "responses":
            return PageContent(found.name, {**document, **_evaluated(site, found, query)})
        return PageContent(found.name, {**document, "first_rows": _first_rows(site, found)})


def _evaluated(site: Site, found: Run, query: Query) -> dict[str, Any]:
    by, slices = query.text("by"), found.about.get("slices", [])
    if by and by not in slices:
        raise UsageError(f'"{by}" is no column to slice by; there are {", ".join(slices) or "none"}')
    about = f"Reading {found.name}" + (f" by {by}" if by else "")
    result = site.result(f"{__name__}:evaluation", [found], about, at=site.preferences.at, by=by or None)
    return {"by": by, "slices": slices, "state": explored_state(query), **result}


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
    else:
        facts += [(name.replace("_", " "), _fact(value)) for name, value in about.items()]
    if about.get("dialogues") and run.kind == "responses":
        facts.append(("dialogues", f"{about['dialogues']:,}"))
    return [*facts, ("added", f"{run.added[:10]} {run.added[11:16]} UTC"), ("from", run.source), ("id", run.id)]


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def links_of(run: Run) -> list[dict[str, str]]:
    """Where else this run is shown."""
    if run.kind == "responses":
        links = [("Errors and missed chances", f"/errors?run={run.id}")]
        links += [("Inspect the N-best lists", f"/nbest/{run.id}")] if run.about.get("has_nbest") else []
        links += [("Fit an outcome model", f"/outcome?turns={run.id}")] if run.about.get("dialogues") else []
        return [{"label": label, "href": href} for label, href in links]
    pages = {
        "nbest": ("Inspect the N-best lists", f"/nbest/{run.id}"),
        "dialogues": ("Fit an outcome model", f"/outcome?run={run.id}"),
        "trials": ("Study against the gold standard", f"/gold/{run.id}"),
    }
    label, href = pages[run.kind]
    return [{"label": label, "href": href}]


def _first_rows(site: Site, run: Run) -> dict[str, Any]:
    frame = pl.scan_parquet(exactly(site.store.rows_path(run))).head(FIRST_ROWS).collect().drop(ROW)
    rows = [[_short_text(value) for value in row] for row in frame.iter_rows()]
    return {"title": f"The first {len(rows)} rows as they came", "columns": frame.columns, "rows": rows}


def _short_text(value: Any) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def evaluation(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What the answers of one run show: explorer, measures with intervals, figures, slices and a threshold."""
    run, by = store.run(given["runs"][0]), given.get("by")
    step("reading the run", 0, 3)
    rows = {run.name: numbers_of(run, store.rows_path(run), (by,) if by else ())}
    measures = returns_measures(at=given["at"])
    found = evaluate(rows, measures=measures, by=by, step=inner_steps(3, 1, step), **given["sampling"])
    step("drawing", 2, 3)
    whole = found[0]
    return {
        **explored([whole]),
        "scores": presentation_document(without_curves(of_scores(found))),
        "advice": presentation_document(_advice(whole)),
        "evaluation": found.to_dict(),
        "filters": filters_of(store, [run]),
    }


def _advice(whole: Evaluation) -> Presentation:
    """The threshold that keeps the promise, and the best ones by cost; the curve itself stands elsewhere."""
    choice = threshold_by_error(whole.sample, MOST_ERROR, delta=DELTA, name=whole.name)
    return replace(without_curves(of_choice(choice, whole)), notes=(), signatures=())
