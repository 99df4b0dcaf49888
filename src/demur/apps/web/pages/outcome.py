"""What the outcome of dialogues follows from, which confusions cost it, and what would be if they were fewer."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from demur.apps.web.pages.runs import run_values
from demur.apps.web.site import Page, PageContent, Query, Site
from demur.core.show.results import Step
from demur.errors import DemurError, UsageError
from demur.outcome.charts import dearest_labels
from demur.outcome.features import POLICIES, REJECTION_NOTES, SETS, Turns, confusion_name, design, turns_of
from demur.outcome.fitting import OutcomeFit, Procedure, feature_sets, fit_design
from demur.outcome.options import MIN_PER_DIALOGUE, Rejections
from demur.outcome.prediction import OutcomeModel, compare_predictions, predict, prices
from demur.outcome.prediction import what_if as mending

if TYPE_CHECKING:
    from demur.store.records import Run
    from demur.store.runs import Store

USUAL = "conf+scores.f"
OFFERED = (USUAL, *(name for name in SETS if name != "scores.fm"))
SLIDERS = 5
"""Confusions that can be put right from the start, the dearest ones; others once they are chosen on the map."""

MEND = "mend-"
"""How the names of queries begin that say how much of a confusion is put right."""


class OutcomePage(Page):
    """What the outcome of dialogues follows from."""

    path, template = "/outcome", "outcome.html"
    heading = "Outcome"

    def show(self, site: Site, query: Query) -> PageContent:
        """The model, the map of confusions, and what if."""
        runs = site.store.runs()
        choices = {
            "turns": [run for run in runs if run.kind == "responses" and run.about.get("dialogues")],
            "dialogues": [run for run in runs if run.kind == "dialogues"],
            "with": [run for run in runs if run.kind == "responses"],
        }
        passed_on = [(name, value) for name, value in query.pairs if name not in ("cell", "wait")]
        turns, dialogues = (_choose_run(site, query, part, choices) for part in ("turns", "dialogues"))
        document: dict[str, Any] = {
            "choices": {part: [run_values(run) for run in runs] for part, runs in choices.items()},
            "turns": None if turns is None else run_values(turns),
            "dialogues": None if dialogues is None else run_values(dialogues),
            "offered": list(OFFERED),
            "undefined_choices": dict(POLICIES),
            "rejection_choices": dict(REJECTION_NOTES),
            "query": [[name, value] for name, value in passed_on if not name.startswith(MEND)],
            **_form_values(query),
        }
        if turns is None or dialogues is None:
            return PageContent("Outcome", {**document, "fault": None, "outcomes": []})
        document["outcomes"] = [name for name in dialogues.columns if name != "dialogue"]
        result = _model(site, query, turns, dialogues)
        if "fault" in result:
            return PageContent("Outcome", {**document, **result})
        model = msgspec.convert(result["model"], OutcomeModel)
        others = [site.store.run(one) for one in query.several("with")]
        return PageContent(
            f"What {model.outcome} follows from",
            {
                **document,
                "fault": None,
                **{name: result[name] for name in ("presentation", "map", "columns", "validation", "model")},
                "trust": trust(result["validation"]),
                "cell": query.text("cell"),
                "compare": _predict_others(site, turns, others, result),
                "what_if": _what_if(site, query, turns, result, model),
            },
        )


class WhatIfPage(Page):
    """The answer to what if, for sliders that are being moved."""

    path, template = "/outcome/what-if", "outcome_what_if.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The answer to what if alone, for sliders that are being moved."""
        turns, dialogues = (site.store.run(query.text(part)) for part in ("turns", "dialogues"))
        result = _model(site, query, turns, dialogues)
        if "fault" in result:
            raise UsageError(result["fault"])
        model = msgspec.convert(result["model"], OutcomeModel)
        asked = {"trust": trust(result["validation"]), "what_if": _what_if(site, query, turns, result, model)}
        return PageContent("What if", {**asked, "turns": run_values(turns), "outcome_name": model.outcome})


def _choose_run(site: Site, query: Query, part: str, choices: dict[str, list[Run]]) -> Run | None:
    """The run that the link names, under its part or as `run`; where it names none, the only one there is."""
    if named := query.text(part):
        return site.store.run(named)
    if (named := query.text("run")) and (run := site.store.run(named)) in choices[part]:
        return run
    return choices[part][0] if len(choices[part]) == 1 else None


def _form_values(query: Query) -> dict[str, Any]:
    return {
        "outcome": query.text("outcome"),
        "features": query.text("features", USUAL),
        "least": query.number("least", MIN_PER_DIALOGUE, low=0),
        "undefined": query.choice("undefined", tuple(POLICIES), "impute-mean"),
        "rejections": query.choice("rejections", tuple(REJECTION_NOTES), "counted"),
        "matched": bool(query.text("matched")),
        "sets": bool(query.text("sets")),
        "with": list(query.several("with")),
    }


def _model(site: Site, query: Query, turns: Run, dialogues: Run) -> dict[str, Any]:
    asked = {name: value for name, value in _form_values(query).items() if name != "with"}
    return site.result(
        f"{__name__}:outcome_model", [turns, dialogues], f"What the outcome of {dialogues.name} follows from", **asked
    )


def trust(validation: dict[str, dict[str, float | None]]) -> dict[str, Any]:
    """Whether the model was shown to predict dialogues that it has not seen, and what to say of it.

    >>> trust({"loo": {"r2": 0.4}, "nested": {"r2": -0.1}})["shown"]
    False
    """
    r2 = {kind: validation.get(kind, {}).get("r2") for kind in ("in_sample", "loo", "nested")}
    failing = [
        f"{words} R2 is {'undefined' if value is None else f'{value:.2f}'}"
        for kind, words in (("loo", "leave-one-out"), ("nested", "nested"))
        if (value := r2[kind]) is None or value <= 0
    ]
    if not failing:
        return {"shown": True, "why": ""}
    why = f"The model was not shown to predict: {' and '.join(failing)}, no better than the mean. Do not believe this."
    return {"shown": False, "why": why}


def _predict_others(site: Site, turns: Run, others: list[Run], result: dict[str, Any]) -> dict[str, Any] | None:
    """What the model predicts for other runs; None where none was asked for or the model cannot say."""
    if not others or result["columns"]:
        return None
    runs = [turns, *(run for run in others if run.id != turns.id)]
    about = f"Predicting for {', '.join(run.name for run in runs[1:]) or turns.name}"
    return site.result(f"{__name__}:predictions", runs, about, model=result["model"])


def _what_if(
    site: Site, query: Query, turns: Run, result: dict[str, Any], model: OutcomeModel
) -> dict[str, Any] | None:
    """Sliders and the answer to them; None where the model is not made of turns alone."""
    if result["map"] is None or not model.terms:
        return None
    counts = _turns(site.store, turns.id, model.rejections).only(result["dialogues"])
    shares = _mended_shares(query)
    cells = {cell["key"]: cell for cell in result["map"]["cells"] if cell["half"] is not None}
    dearest = sorted(cells, key=lambda key: -abs(cells[key]["half"]))[:SLIDERS]
    keys = list(dict.fromkeys([*dearest, *(key for key in (*shares, query.text("cell")) if key in cells)]))
    chosen = {(cells[key]["predicted"], cells[key]["actual"]): share for key, share in shares.items() if key in cells}
    level = site.preferences.level
    answer = mending(model, counts, chosen, level=level)
    features = [
        {"term": name, "now": answer.now.features[name], "then": answer.then.features[name], "weight": weight}
        for name, weight in model.coefficients.items()
        if name in answer.now.features
    ]
    return {
        "sliders": [{**cells[key], "name": f"{MEND}{key}", "percent": 100 * shares.get(key, 0.0)} for key in keys],
        "level": level,
        "mended": bool(any(chosen.values())),
        **answer.to_dict(),
        "features": features,
        "outcome": model.outcome,
    }


def _mended_shares(query: Query) -> dict[str, float]:
    """Which share of which confusions is put right, by the keys of cells."""
    names = dict.fromkeys(name for name, _ in query.pairs if name.startswith(MEND))
    shares = {name.removeprefix(MEND): query.number(name, 0.0, low=0, high=100) or 0.0 for name in names}
    return {key: percent / 100 for key, percent in shares.items() if percent}


@lru_cache(maxsize=4)
def _turns(store: Store, run: str, rejections: Rejections) -> Turns:
    """The confusions of a run by dialogue; a run's content never changes, so the last few are kept."""
    return turns_of(store.responses(store.run(run)), rejections=rejections)


def outcome_model(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The model of an outcome, how far to trust it, and what each confusion costs; or why there is none."""
    try:
        return _fit(store, given, step)
    except DemurError as fault:
        return {"fault": str(fault)}


def _fit(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    from demur.core.show.page import presentation_document
    from demur.outcome.presentation import of_fit

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
    designed = design(table, turns, features=given["features"], **common)
    how = Procedure(**given["sampling"])
    sets = feature_sets(table, turns, how=how, step=step, **common) if given["sets"] else ()
    fit = replace(fit_design(designed, how=how, step=step), sets=sets)
    step("pricing confusions", 0, 1)
    shown = presentation_document(of_fit(fit))
    priced = {"predicted", "actual", "change"}  # which the page has as a table to choose from
    shown["figures"] = [figure for figure in shown["figures"] if not priced <= {*figure["table"]["columns"]}]
    return {
        "presentation": shown,
        "model": msgspec.to_builtins(fit.model),
        "dialogues": list(designed.dialogues),
        "columns": list(designed.columns),
        "validation": fit.regression.validation,
        "map": confusion_map(fit),
    }


def confusion_map(fit: OutcomeFit) -> dict[str, Any] | None:
    """Counts and prices by predicted and actual label; None where the model is not made of turns alone."""
    turns = fit.design.turns
    if turns is None or (fit.model.terms and not fit.prices):
        return None
    half = {(one.predicted, one.actual): one.change for one in fit.prices}
    whole = {(one.predicted, one.actual): one.change for one in prices(fit.model, turns, share=1.0)}
    dearest = sorted(half, key=lambda pair: -abs(half[pair]))
    labels = dearest_labels(list(turns.labels), dearest)
    place = {label: number for number, label in enumerate(turns.labels)}
    counts = turns.counts.sum(axis=0)
    errors = float(turns.misclassified.sum())
    bootstrap = fit.regression.bootstrap
    cells = [
        {
            "predicted": predicted,
            "actual": actual,
            "key": f"{place[predicted]}-{place[actual]}",
            "count": float(counts[place[predicted], place[actual]]),
            "share": float(counts[place[predicted], place[actual]]) / errors if errors else math.nan,
            "half": half.get((predicted, actual)),
            "all": whole.get((predicted, actual)),
            "coefficient": fit.model.coefficients.get(confusion_name(predicted, actual)),
            "chosen": None if bootstrap is None else bootstrap.selected.get(confusion_name(predicted, actual)),
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


def predictions(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """What a model predicts for systems, the first of them the one that it was fitted to."""
    from demur.core.show.page import presentation_document
    from demur.outcome.presentation import of_predictions

    model = msgspec.convert(given["model"], OutcomeModel)
    predicted, faults = [], []
    for done, reference in enumerate(given["runs"]):
        run = store.run(reference)
        step(f"predicting for {run.name}", done, len(given["runs"]))
        try:
            predicted.append(predict(model, store.responses(run), level=given["sampling"]["level"]))
        except DemurError as fault:
            faults.append({"run": run.name, "why": str(fault)})
    if not predicted:
        return {"faults": faults, "presentation": None}
    compared = compare_predictions(model, predicted, given["sampling"]["level"])
    return {"faults": faults, "presentation": presentation_document(of_predictions(compared))}
