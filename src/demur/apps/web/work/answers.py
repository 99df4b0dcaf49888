"""Long work on answers: what one run shows, and what several show against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import polars as pl

from demur.core.io.alignment import common_ids
from demur.core.show.html import data_block
from demur.core.show.page import presentation_document
from demur.core.show.presentation import Presentation
from demur.core.show.results import Step
from demur.errors import DataError
from demur.returns.compare import Comparison, compare_paired
from demur.returns.evaluate import Evaluation, evaluate_frames, returns_measures
from demur.returns.pairing import Pairing, pair
from demur.returns.presentation import of_choice, of_comparison, of_scores
from demur.returns.table import Responses
from demur.returns.threshold import threshold_by_error
from demur.store.records import Run
from demur.store.rows import Filed, apart, numbers_of, rows_of, side_by_side
from demur.store.runs import Store

MOST_ERROR, DELTA = 0.05, 0.05
"""The promise that a run's page looks for: at most this error rate, kept with this chance of being wrong."""

MOST_FILTERS = 6
"""Columns to filter by below a plot; the errors page has more."""

IDENT = "explorer"


def warm(_store: Store, _given: dict[str, Any], _step: Step) -> None:
    """Load what most results need, so that the first of them need not wait for it."""
    for name in ("demur.returns.charts.error_return", "demur.returns.explorer.explorer", "scipy.sparse"):
        import_module(name)


def evaluation(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What the answers of one run show: explorer, measures with intervals, figures, slices and a threshold."""
    run, by = store.run(given["runs"][0]), given.get("by")
    step("reading the run", 0, 3)
    rows = {run.name: numbers_of(run, store.rows_path(run), (by,) if by else ())}
    measures = returns_measures(at=given["at"])
    found = evaluate_frames(rows, measures=measures, by=by, step=_first_of(3, 1, step), **given["sampling"])
    step("drawing", 2, 3)
    whole = found[0]
    return {
        **_explored([whole]),
        "scores": presentation_document(_without_first_figure(of_scores(found), by is None)),
        "advice": presentation_document(_advice(whole)),
        "evaluation": found.to_dict(),
        "filters": _filters(store, [run]),
    }


def comparison(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What several runs show against each other; where their ids do not pair, why, and what can be done."""
    runs = [store.run(reference) for reference in given["runs"]]
    how: dict[str, Any] = {"matched": given["pairing"] == "matched", "unpaired": given["pairing"] == "unpaired"}
    made = _compared_lists if runs[0].kind == "nbest" else _compared_answers
    try:
        return made(store, runs, how, given, step)
    except DataError as fault:
        if how["unpaired"]:
            raise
        return {"refused": {"rule": fault.rule, "common": _common_ids(store, runs)}}


def _compared_answers(
    store: Store, runs: Sequence[Run], how: dict[str, Any], given: dict[str, Any], step: Step
) -> dict[str, Any]:
    step("reading the runs", 0, 3)
    found = compare_paired(
        _paired(store, runs, **how),
        at=given["at"],
        measures=returns_measures(at=given["at"]),
        step=_first_of(3, 1, step),
        **given["sampling"],
    )
    step("drawing", 2, 3)
    return {
        **_explored(found.evaluations, found),
        "result": presentation_document(_without_first_figure(of_comparison(found))),
        "comparison": found.to_dict(),
        "paired": found.pairs[0].paired,
        "filters": _filters(store, runs),
    }


def _compared_lists(
    store: Store, runs: Sequence[Run], how: dict[str, Any], given: dict[str, Any], step: Step
) -> dict[str, Any]:
    from demur.nbest_lists.jobs import compare_nbest
    from demur.nbest_lists.presentation import of_nbest_comparison
    from demur.nbest_lists.table import renamed

    step("reading the runs", 0, 3)
    tables = [store.lists(run) for run in runs]
    named = [renamed(one, run.name) if len(one.systems) == 1 else one for one, run in zip(tables, runs, strict=True)]
    step("comparing the lists", 1, 3)
    found = compare_nbest(*named, **how, **given["sampling"])
    step("drawing", 2, 3)
    shown = presentation_document(of_nbest_comparison(found))
    return {"result": shown, "comparison": found.to_dict(), "paired": found.pairs[0].paired}


def _filters(store: Store, runs: Sequence[Run]) -> dict[str, list[tuple[str, int]]]:
    """Values that answers can be filtered by, of the columns that all runs have."""
    found = store.rows(runs[0]).slices()
    common = [name for name in found if all(name in run.about["slices"] for run in runs)]
    return {name: found[name] for name in common[:MOST_FILTERS]}


def _paired(store: Store, runs: Sequence[Run], *, matched: bool, unpaired: bool) -> Pairing:
    """The rows of the runs brought together; with ids and targets at hand only where they need a closer look."""
    filed = [(run, store.rows_path(run)) for run in runs]
    if unpaired or not all(run.about.get("has_ids") for run in runs):
        return apart(filed, asked=unpaired)
    found = side_by_side(filed, matched=matched)
    return pair(_with_ids(filed), matched=matched) if found is None else found


def _with_ids(filed: Sequence[Filed]) -> Responses:
    named = [numbers_of(*one, ("id", "target")).with_columns(pl.lit(one[0].name).alias("system")) for one in filed]
    return Responses(pl.concat(named, how="diagonal_relaxed"))


def _common_ids(store: Store, runs: Sequence[Run]) -> int:
    """How many ids all runs share."""
    return len(common_ids(_ids(store, run) for run in runs))


def _ids(store: Store, run: Run) -> pl.Series:
    if run.kind == "nbest":
        return store.lists(run).frame["id"].drop_nulls()
    return rows_of(store.rows_path(run), run, ("id",), ordered=False)["id"].drop_nulls()


def _explored(evaluations: Sequence[Evaluation], found: Comparison | None = None) -> dict[str, Any]:
    """The explorer's document, and its piece of HTML without the document, which a page has already."""
    from demur.returns.explorer.explorer import explorer_document, explorer_html

    document = explorer_document(evaluations, found)
    html = explorer_html(document, ident=IDENT, picture=False)
    return {"explorer": document, "fragment": html.replace(data_block(document, f"{IDENT}-document"), "")}


def _advice(whole: Evaluation) -> Presentation:
    """The threshold that keeps the promise, and the best ones by cost; the curve itself stands elsewhere."""
    choice = threshold_by_error(whole.sample, MOST_ERROR, delta=DELTA, name=whole.name)
    return replace(_without_first_figure(of_choice(choice, whole)), notes=(), signatures=())


def _without_first_figure(presentation: Presentation, really: bool = True) -> Presentation:
    """The presentation without the error-return plot, in whose place the explorer stands."""
    return replace(presentation, figures=presentation.figures[1:]) if really else presentation


def _first_of(total: int, place: int, step: Step) -> Step:
    """Steps within a step: the words of the inner ones, the progress of the outer one."""

    def inner(what: str, _done: int, _total: int) -> None:
        step(what, place, total)

    return inner
