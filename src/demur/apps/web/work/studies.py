"""Long work on gold standards, N-best lists and outcomes."""

from __future__ import annotations

import math
import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from demur.core.show.page import presentation_document
from demur.core.show.presentation import Presentation
from demur.core.show.results import Step
from demur.errors import DemurError, UsageError
from demur.gold_standard.cost import CostFunction, check_covers, cost_points, parsed
from demur.gold_standard.fitting import FitOptions
from demur.gold_standard.presentation import of_gold
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import Trials
from demur.nbest_lists.evaluate import act_turns, evaluate_nbest
from demur.nbest_lists.presentation import of_nbest
from demur.nbest_lists.ranks import label_turns, list_ranks, of_ranks
from demur.outcome.features import confusion_name, design
from demur.outcome.fitting import OutcomeFit, Procedure, feature_sets, fit_outcome
from demur.outcome.models import OutcomeModel
from demur.outcome.prediction import predict, predicted_pairs, prices
from demur.outcome.presentation import of_fit, of_predictions
from demur.outcome.price_chart import MOST_LABELS

if TYPE_CHECKING:
    from demur.store.records import Run
    from demur.store.runs import Store

READ = ("x", "y", "lower", "upper")
"""What of a request says how trials are read; others say what is read from the curves."""

FORMS = "a cost is an expression in p, as 1000 * p ** 2, or points of performance and amount, as 0:0, 0.5:10, 1:40"


def gold(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What studies show of systems against their gold standards; or why they show nothing."""
    try:
        found = _trials(store, given)
        options = _options(given)
        studies = GoldStudies(analyse(one, options.with_cost(cost_of(given["cost"], one)), step=step) for one in found)
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(of_gold(studies))}
    except DemurError as fault:
        return {"fault": str(fault), "presentation": None}


def _trials(store: Store, given: dict[str, Any]) -> list[Trials]:
    """The studies of the first run, read as asked, and of further runs as they were added."""
    first, *others = (store.run(one) for one in given["runs"])
    changes = {name: given[name] for name in READ if given[name] not in ("", None)}
    named = {"gold": tuple(given["gold"])} if given["gold"] else {}
    studies = [*store.trials(first, **changes, **named), *(one for run in others for one in store.trials(run))]
    repeated = [one.study for one in studies if [other.study for other in studies].count(one.study) > 1]
    if repeated:
        raise UsageError(f'two studies are called "{repeated[0]}"; give one of the runs another name')
    return studies


def _options(given: dict[str, Any]) -> GoldOptions:
    return GoldOptions(
        fit=FitOptions(kind=given["fit"], direction=given["direction"], degree=given["degree"]),
        within=_span(given["within"]),
        components=given["components"],
        gain=_span(given["gain"]),
        checks=given["checks"],
        **given["sampling"],
    )


def _span(ends: list[float] | None) -> tuple[float, float] | None:
    return None if ends is None else (ends[0], ends[1])


def cost_of(text: str, trials: Trials) -> CostFunction | None:
    """What performance is worth, from an expression in p, or from points as `0:0, 0.5:10, 1:40`; never from a file."""
    if not text.strip():
        return None
    if ":" in text:
        return cost_points([_point(part) for part in text.split(",")], lower=trials.lower, upper=trials.upper)
    try:
        parsed(text)
    except UsageError as fault:
        points = (
            "a cost is an expression in p, as 1000 * p ** 2, or points of performance and amount, as 0:0, 0.5:10, 1:40"
        )
        raise UsageError(f"the cost: {fault}; {points}") from None
    cost = CostFunction(expression=text.strip())
    if trials.upper is not None:
        check_covers(cost, trials.lower, trials.upper)
    return cost


def _point(text: str) -> tuple[float, float]:
    performance, _, amount = text.partition(":")
    try:
        return float(performance), float(amount)
    except ValueError:
        raise UsageError(f'the points of a cost are numbers, as 0:0, 0.5:10, 1:40; got "{text.strip()}"') from None


SAID = ("input", "text", "utterance", "transcription", "transcript", "question")
"""Columns of N-best lists that may hold what was said, the likelier first."""

ROWS_PER_GROUP = 8192
"""Rows that are compressed together: few enough that any turn is read in a few milliseconds."""


def lists(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The measures of a run's lists: of acts with intervals and the parts of the ICE, of labels by their ranks."""
    try:
        shown = _presented(store, given, step)
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(shown)}
    except DemurError as fault:
        return {"fault": str(fault), "presentation": None}


def _presented(store: Store, given: dict[str, Any], step: Step) -> Presentation:
    run, sampling = store.run(given["runs"][0]), given["sampling"]
    step("reading", 0, 1)
    if run.kind == "nbest":
        by = given.get("by") or None
        found = store.lists(run, keep=() if by is None else (by,))
        return of_nbest(evaluate_nbest(found, by=by, step=step, **sampling))
    judged = store.responses(run, columns=("nbest",))
    step("looking for the right labels", 0, 1)
    return of_ranks(list_ranks(judged, level=sampling["level"]))


def turns(store: Store, given: dict[str, Any], step: Step) -> None:
    """Keeps the turns of a run as a table, each with its list and what it adds to the measures."""
    run = store.run(given["runs"][0])
    step("taking lists apart", 0, 1)
    table = with_texts(table_of(store, run))
    held = BytesIO()
    table.write_parquet(held, compression="zstd", row_group_size=ROWS_PER_GROUP)
    store.keep(given["name"], held.getvalue())


def table_of(store: Store, run: Run) -> pl.DataFrame:
    """A row per turn, answers as they came and acts by id; `input` is what was said, where it is known."""
    if run.kind != "nbest":
        columns = ("nbest", "input") if run.about.get("has_input") else ("nbest",)
        return label_turns(store.responses(run, columns=columns))
    said = next((name for name in SAID if name in run.columns), None)
    found = act_turns(store.lists(run, keep=() if said is None else (said,)))
    spoken = pl.lit(None, dtype=pl.String) if said is None else pl.col(said)
    return by_id(found.with_columns(spoken.alias("input")))


def by_id(table: pl.DataFrame) -> pl.DataFrame:
    """The turns by system and id, numbers in ids by their size, so that a dialogue reads as it went."""
    keys = [(system, _natural(name)) for system, name in table.select("system", "id").iter_rows()]
    return table[sorted(range(table.height), key=keys.__getitem__)]


def _natural(name: str | None) -> list[tuple[bool, int, str]]:
    """A key that sorts the ids of turns as people do.

    >>> sorted(["d1/10", "d1/9", "d1"], key=_natural)
    ['d1', 'd1/9', 'd1/10']
    """
    pieces = re.split(r"(\d{1,18})", name or "")
    return [(place % 2 == 0, int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def with_texts(table: pl.DataFrame) -> pl.DataFrame:
    """The table with all the words of each turn in one column, in small letters, for searching."""
    words = [
        pl.col("id").fill_null(""),
        pl.col("dialogue").fill_null(""),
        pl.col("input").fill_null(""),
        pl.col("reference").list.join(" ").fill_null(""),
        pl.col("acts").list.eval(pl.element().list.join(" ")).list.join(" ").fill_null(""),
    ]
    return table.with_columns(pl.concat_str(words, separator="\n").str.to_lowercase().alias("words"))


def outcome(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The model of an outcome, how far to trust it, and what each confusion costs; or why there is none."""
    try:
        return _fitted(store, given, step)
    except DemurError as fault:
        return {"fault": str(fault)}


def _fitted(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    turns_run, dialogues_run = (store.run(one) for one in given["runs"])
    step("reading", 0, 1)
    turns = store.responses(turns_run)
    table = store.dialogues(dialogues_run, outcome=given["outcome"] or None)
    common = {
        "least": given["least"],
        "undefined": given["undefined"],
        "rejections": given["rejections"],
        "allow_unmatched": given["matched"],
    }
    made = design(table, turns, features=given["features"], **common)
    how = Procedure(**given["sampling"])
    fit = fit_outcome(made, how=how, step=step)
    rivals = feature_sets(table, turns, how=how, step=step, **common) if given["sets"] else ()
    step("pricing confusions", 0, 1)
    shown = presentation_document(of_fit(fit, sets=rivals))
    shown["figures"] = [figure for figure in shown["figures"] if not _prices_again(figure)]
    return {
        "presentation": shown,
        "model": msgspec.to_builtins(fit.model),
        "dialogues": list(made.dialogues),
        "columns": list(made.columns),
        "validation": fit.regression.validation,
        "map": confusion_map(fit),
    }


def _prices_again(figure: dict[str, Any]) -> bool:
    """Whether a figure shows the prices of confusions, which the page has as a table to choose from."""
    return {"predicted", "actual", "change"} <= {*figure["table"]["columns"]}


def confusion_map(fit: OutcomeFit) -> dict[str, Any] | None:
    """Counts and prices by predicted and actual label; None where the model is not made of turns alone."""
    turns = fit.design.turns
    if turns is None or (fit.model.terms and not fit.prices):
        return None
    half = {(one.predicted, one.actual): one.change for one in fit.prices}
    whole = {(one.predicted, one.actual): one.change for one in prices(fit.model, turns, share=1.0)}
    labels = _shown_labels(list(turns.labels), half)
    place = {label: number for number, label in enumerate(turns.labels)}
    counts = turns.counts.sum(axis=0)
    errors = float(turns.misclassified.sum())
    cells = [
        {
            "predicted": predicted,
            "actual": actual,
            "key": f"{place[predicted]}-{place[actual]}",
            "count": float(counts[place[predicted], place[actual]]),
            "share": float(counts[place[predicted], place[actual]]) / errors if errors else math.nan,
            "half": half.get((predicted, actual)),
            "all": whole.get((predicted, actual)),
            **_weight(fit, predicted, actual),
        }
        for predicted in labels
        for actual in labels
    ]
    rejected = [float(counts[-1, place[actual]]) for actual in labels]
    return {
        "labels": labels,
        "of": len(turns.labels),
        "dialogues": len(turns.dialogues),
        "greatest": max(map(abs, half.values()), default=0.0),
        "cells": cells,
        "rejected": rejected if any(rejected) else [],
    }


def _shown_labels(labels: list[str], dear: dict[tuple[str, str], float]) -> list[str]:
    """All labels where they are few, else those of the dearest confusions."""
    if len(labels) <= MOST_LABELS:
        return labels
    kept: set[str] = set()
    for pair in sorted(dear, key=lambda one: -abs(dear[one])):
        if len(kept.union(pair)) <= MOST_LABELS:
            kept.update(pair)
    return [label for label in labels if label in kept]


def _weight(fit: OutcomeFit, predicted: str, actual: str) -> dict[str, Any]:
    """What the model has of a confusion as a term of its own."""
    name, drawn = confusion_name(predicted, actual), fit.regression.bootstrap
    return {
        "coefficient": fit.model.coefficients.get(name),
        "chosen": None if drawn is None else drawn.selected.get(name),
    }


def what_if(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What a model predicts for systems, the first of them the one that it was fitted to."""
    model = msgspec.convert(given["model"], OutcomeModel)
    found, faults = [], []
    for done, reference in enumerate(given["runs"]):
        run = store.run(reference)
        step(f"predicting for {run.name}", done, len(given["runs"]))
        try:
            found.append(predict(model, store.responses(run), level=given["sampling"]["level"]))
        except DemurError as fault:
            faults.append({"run": run.name, "why": str(fault)})
    if not found:
        return {"faults": faults, "presentation": None}
    pairs = predicted_pairs(model, found, given["sampling"]["level"])
    return {"faults": faults, "presentation": presentation_document(of_predictions(model, found, pairs))}
