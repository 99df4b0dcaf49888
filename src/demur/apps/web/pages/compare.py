"""Runs against each other: the verdict, the interactive plot, and the answers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import polars as pl

from demur.apps.web.site import Page, PageContent, Query, Site
from demur.core.io.tables import common_ids
from demur.core.jobs import fields_of
from demur.core.show.page import presentation_document, table_document
from demur.core.show.presentation import Presentation
from demur.core.show.results import Step
from demur.errors import DataError, UsageError
from demur.returns.comparison.compare import Comparison
from demur.returns.comparison.compare import compare as compare_systems
from demur.returns.comparison.counted import count_systems
from demur.returns.counting import Counting
from demur.returns.evaluate import Evaluation, returns_measures
from demur.returns.jobs import compare
from demur.returns.pairing import Pairing, pair
from demur.returns.presentation import of_comparison
from demur.returns.table import Reading, Responses
from demur.store.records import Run
from demur.store.rows import apart, numbers_of, rows_of, side_by_side
from demur.store.runs import Store


def explorer_state(query: Query) -> dict[str, Any]:
    """Where the explorer stands: the share withheld or the threshold, the cost ratio, and a range that is marked."""
    align = query.choice("align", ("share", "threshold", "cost"), "share")
    low, high = (-math.inf, math.inf) if align == "threshold" else (0.0, 1.0)
    return {
        "align": align,
        "x": query.number("x", low=low, high=high),
        "ratio": query.number("ratio", low=0.0, high=0.99),
        "from": query.number("from", low=0.0, high=1.0),
        "to": query.number("to", low=0.0, high=1.0),
    }


def run_summary(run: Run) -> dict[str, Any]:
    """A run as a list of runs tells it."""
    return {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n, "slices": run.about.get("slices", [])}


COMPARABLE = ("responses", "nbest")
PAIRINGS = {
    "ids": "All systems must have the same ids.",
    **{one.name: one.help for one in fields_of(compare) if one.name in ("matched", "unpaired")},
}
"""How systems are paired: by all ids, or by an option of `demur compare`."""


class ComparePage(Page):
    """Runs against each other."""

    path, template = "/compare", "compare.html"
    heading = "Compare"

    def show(self, site: Site, query: Query) -> PageContent:
        """The page: a choice of runs and, of two or more, all that their comparison shows."""
        runs = list({run.id: run for run in map(site.store.run, query.several("run"))}.values())
        pairing = query.choice("pairing", tuple(PAIRINGS), "ids")
        document = {
            "choices": [run_summary(run) for run in site.store.runs() if run.kind in COMPARABLE],
            "chosen": [run.id for run in runs],
            "runs": [run_summary(run) for run in runs],
            "pairings": PAIRINGS,
            "pairing": pairing,
            "state": explorer_state(query),
            "fault": fault_of(runs),
            "kind": runs[0].kind if runs else None,
            "result": None,
            "refused": None,
        }
        if len(runs) < 2 or document["fault"]:
            return PageContent("Compare runs", document, 400 if document["fault"] else 200)
        names = " and ".join(run.name for run in runs) if len(runs) < 4 else f"{len(runs)} runs"
        result = site.result(
            f"{__name__}:comparison", runs, f"Comparing {names}", pairing=pairing, at=site.preferences.at
        )
        if "refused" in result:
            refused = result["refused"]
            apart = any(run.n > refused["common"] for run in runs)
            links: dict[str, str | None] = {
                way: f"/compare?{urlencode([*(('run', run.id) for run in runs), ('pairing', way)])}"
                for way in ("matched", "unpaired")
            }
            if pairing != "ids" or not apart or not refused["common"]:
                links["matched"] = None
            return PageContent("Compare runs", {**document, "refused": {**refused, **links}})
        first, *others = (run.name for run in runs)
        against = others[0] if len(others) == 1 else f"{len(others)} others"
        return PageContent(f"{first} against {against}", {**document, **result})


def fault_of(runs: Sequence[Run]) -> str:
    """Why runs cannot be compared; empty where they can, or where there is nothing to compare yet."""
    kinds = sorted({run.kind for run in runs})
    if len(kinds) > 1:
        listed = ", ".join(f"{run.name} ({run.kind})" for run in runs)
        return f"Only runs of one kind can be compared; these are of different kinds: {listed}."
    if kinds and kinds[0] not in COMPARABLE:
        return f"Runs of {kinds[0]} are not compared here; their own pages show them."
    return ""


MOST_FILTERS = 6
"""Columns to filter by below a plot; the errors page has more."""


def warm(_store: Store, _given: dict[str, Any], _step: Step) -> None:
    """Load what most results need, so that the first of them need not wait for it."""
    for name in ("demur.returns.charts.error_return", "demur.returns.explorer", "scipy.sparse"):
        import_module(name)


def comparison(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What several runs show against each other; where their ids do not pair, why, and what can be done."""
    runs = [store.run(reference) for reference in given["runs"]]
    how: dict[str, Any] = {"matched": given["pairing"] == "matched", "unpaired": given["pairing"] == "unpaired"}
    step("reading the runs", 0, 3)
    try:
        if runs[0].kind == "nbest":
            return _compared_lists(store, runs, how, given["sampling"], step)
        return _compared_answers(store, runs, how, given, step)
    except DataError as fault:
        if how["unpaired"]:
            raise
        common = 0 if any(run.lake for run in runs) else len(common_ids(_ids(store, run) for run in runs))
        return {"refused": {"rule": fault.rule, "common": common}}


def _compared_answers(
    store: Store, runs: Sequence[Run], how: dict[str, Any], given: dict[str, Any], step: Step
) -> dict[str, Any]:
    asked = {"at": given["at"], "measures": returns_measures(at=given["at"]), **given["sampling"]}
    if any(run.lake for run in runs):
        compared = _compare_lakes(store, runs, how, step=inner_steps(3, 1, step), **asked)
    else:
        compared = compare_systems(_pair_runs(store, runs, **how), step=inner_steps(3, 1, step), **asked)
    step("drawing", 2, 3)
    shown, (_, shared) = of_comparison(compared), compared.in_short
    lead = shown.main_table.titled(f"{shown.main_table.title} ({shared})") if shared else shown.main_table
    return {
        **explorer_values(compared.evaluations, compared),
        "result": presentation_document(replace(without_curves(shown), tables=shown.tables[1:])),
        "lead": table_document(lead),
        "comparison": compared.to_dict(),
        "paired": compared.pairs[0].paired,
        "filters": filters_of(store, runs),
    }


def _compare_lakes(store: Store, runs: Sequence[Run], how: dict[str, Any], *, step: Step, **asked: Any) -> Comparison:
    """Linked runs against each other, counted where they lie."""
    if added := [run.name for run in runs if not run.lake]:
        rule = "runs that are linked are compared with others that are: link its files, or add those of the others"
        raise UsageError(f'"{added[0]}" was added, its rows are here; {rule}')
    if how["matched"]:
        raise UsageError("linked runs are paired where all have the same ids, not by those they have in common")
    with count_systems([store.lake(run) for run in runs], Reading(), Counting(), step=step) as counted:
        assert counted is not None
        return compare_systems(counted.side_by_side(unpaired=how["unpaired"]), step=step, **asked)


def _compared_lists(
    store: Store, runs: Sequence[Run], how: dict[str, Any], sampling: dict[str, Any], step: Step
) -> dict[str, Any]:
    from demur.nbest_lists.jobs import compare_nbest
    from demur.nbest_lists.presentation import of_nbest_comparison
    from demur.nbest_lists.table import rename_system

    tables = [store.lists(run) for run in runs]
    named = [
        rename_system(one, run.name) if len(one.systems) == 1 else one for one, run in zip(tables, runs, strict=True)
    ]
    step("comparing the lists", 1, 3)
    compared = compare_nbest(*named, **how, **sampling)
    step("drawing", 2, 3)
    shown = presentation_document(of_nbest_comparison(compared))
    return {"result": shown, "comparison": compared.to_dict(), "paired": compared.pairs[0].paired}


def filters_of(store: Store, runs: Sequence[Run]) -> dict[str, list[tuple[str, int]]]:
    """Values that answers can be filtered by, of the columns that all runs have."""
    values = (store.lake_rows if runs[0].lake else store.rows)(runs[0]).slices()
    common = [name for name in values if all(name in run.about["slices"] for run in runs)]
    return {name: values[name] for name in common[:MOST_FILTERS]}


def _pair_runs(store: Store, runs: Sequence[Run], *, matched: bool, unpaired: bool) -> Pairing:
    """The rows of the runs brought together; with ids and targets at hand only where they need a closer look."""
    filed = [(run, store.rows_path(run)) for run in runs]
    if unpaired or not all(run.about.get("has_ids") for run in runs):
        return apart(filed, asked=unpaired)
    pairing = side_by_side(filed, matched=matched)
    if pairing is not None:
        return pairing
    named = [numbers_of(*one, ("id", "target")).with_columns(pl.lit(one[0].name).alias("system")) for one in filed]
    return pair(Responses(pl.concat(named, how="diagonal_relaxed")), matched=matched)


def _ids(store: Store, run: Run) -> pl.Series:
    if run.kind == "nbest":
        return store.lists(run).frame["id"].drop_nulls()
    return rows_of(store.rows_path(run), run, ("id",), ordered=False)["id"].drop_nulls()


def explorer_values(evaluations: Sequence[Evaluation], compared: Comparison | None = None) -> dict[str, Any]:
    """The explorer's document, and its piece of HTML without the document, which a page has already."""
    from demur.returns.explorer import explorer_document, explorer_html

    document = explorer_document(evaluations, compared)
    return {"explorer": document, "fragment": explorer_html(document, ident="explorer", picture=False, embed=False)}


def without_curves(presentation: Presentation) -> Presentation:
    """The presentation without the error-return plot, in whose place the explorer stands."""
    return replace(presentation, figures=presentation.figures_but("error_return", "comparison"))


class ReportPage(Page):
    """The report of runs, to be kept."""

    path, template = "/report", "waiting.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The page of `demur report`, as a file."""
        runs = list({run.id: run for run in map(site.store.run, query.several("run"))}.values())
        if not runs:
            raise UsageError("name the runs to report on: /report?run=NAME")
        if fault := fault_of(runs):
            raise UsageError(fault)
        made = site.result(f"{__name__}:report_page", runs, "Writing the report", at=site.preferences.at)
        return PageContent("Report", made, download=f"{runs[0].name if len(runs) == 1 else 'report'}.html")


def report_page(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The report of runs, as `demur report` writes it."""
    from demur.reports.jobs import report

    runs = [store.run(reference) for reference in given["runs"]]
    tables = [_table_of(store, run) for run in runs]
    return {"html": report(*tables, at_nonreturn=given["at"], step=step, **given["sampling"]).html()}


def _table_of(store: Store, run: Run) -> Any:
    """The rows of a run, or where they lie."""
    if run.lake:
        return store.lake(run)
    return store.lists(run) if run.kind == "nbest" else store.responses(run, columns=("*",))


def inner_steps(total: int, place: int, step: Step) -> Step:
    """Steps within a step: the words of the inner ones, the progress of the outer one."""
    return lambda what, _done, _total: step(what, place, total)
