"""Work on outcomes: the model of what dialogues achieved, and what it predicts for systems that were never tried."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from demur.analyses.outcome.design import design
from demur.analyses.outcome.features import confusion_name
from demur.analyses.outcome.fitting import OutcomeFit, Procedure, feature_sets, fit_outcome
from demur.analyses.outcome.models import OutcomeModel
from demur.analyses.outcome.prediction import predict, predicted_pairs, prices
from demur.errors import DemurError
from demur.show import Step
from demur.views.documents import presentation_document
from demur.views.outcome_presentation import of_fit, of_predictions
from demur.views.outcome_prices import MOST_LABELS

if TYPE_CHECKING:
    from demur.store.runs import Store


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
