"""How models of outcomes are shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from demur.core.show.html import paragraphs
from demur.core.show.notebook import drawn, pictured, presented
from demur.core.show.numbers import interval, number, p_value
from demur.core.show.presentation import Drawing, Presentation, Table, drawing
from demur.core.show.results import register
from demur.outcome.fbeta import FBeta
from demur.outcome.features import REJECTIONS
from demur.outcome.fitting import OutcomeFit, Regression, SetResult, sets_frame
from demur.outcome.models import OutcomeModel
from demur.outcome.prediction import OutcomeComparison, PredictedPair, Prediction, Price
from demur.outcome.validation import Validation

MOST_TERMS = 20
"""Candidates that a table of coefficients shows."""

HIDDEN_PRICES = "prices of confusions are not shown, as the model predicts no better than the mean; JSON has them"
KINDS = {"in_sample": "in-sample", "loo": "leave-one-out", "nested": "nested"}
"""How the kinds of validation are called."""


def of_regression(found: Regression) -> Presentation:
    """How a stepwise regression is shown."""
    return Presentation(
        title="Stepwise regression",
        sentences=tuple(regression_sentences(found)),
        tables=(coefficient_table(found), validation_table({"stepwise": found.validation}), trace_table(found)),
        figures=_figures(found),
        data=lambda: observed_frame(found),
        document=found.to_dict(),
        notes=(*found.notes, *_definitions(found)),
        warnings=found.warnings,
    )


def of_fit(
    fit: OutcomeFit,
    *,
    sets: Sequence[SetResult] = (),
    learners: Mapping[str, Validation] | None = None,
    beta: FBeta | None = None,
) -> Presentation:
    """How a model of the outcome of dialogues is shown, beside other feature sets and learners."""
    found = fit.regression
    rivals = {"stepwise": found.validation} | {
        name: {"nested": {"r2": one.r2, "mse": one.mse, "sd": one.sd}} for name, one in (learners or {}).items()
    }
    document = fit.to_dict()
    if sets:
        document["feature_sets"] = [one.to_dict() for one in sets]
    if learners:
        document["learners"] = {name: one.to_dict() for name, one in learners.items()}
    if beta is not None:
        document["f_beta"] = beta.to_dict()
    figures = list(_figures(found))
    shown = fit.prices if fit.model.predicts else ()
    if shown:
        figures.append(drawing("outcome.price_chart.price_chart", price_frame(shown), outcome=found.outcome))
    if sets:
        figures.append(
            drawing("outcome.charts.sets_chart", sets_frame(sets).with_columns(pl.col("validation").replace(KINDS)))
        )
    return Presentation(
        title="What the outcome follows from",
        sentences=(*regression_sentences(found), *price_sentences(shown, found.outcome)),
        tables=(
            coefficient_table(found),
            validation_table(rivals),
            *([price_table(shown)] if shown else []),
            *([sets_table(sets)] if sets else []),
            trace_table(found),
        ),
        figures=tuple(figures),
        data=lambda: observed_frame(found),
        document=document,
        notes=(
            f"formula: {fit.model.formula()}",
            *_performance(found),
            *(() if beta is None else (f"F-beta fitted to the outcome: {beta.words()}",)),
            *_rejections(fit),
            *([HIDDEN_PRICES] if fit.prices and not fit.model.predicts else []),
            *found.notes,
            *_definitions(found),
        ),
        warnings=found.warnings,
    )


def of_predictions(
    model: OutcomeModel,
    predictions: Sequence[Prediction],
    pairs: Sequence[PredictedPair] = (),
    *,
    prices: Sequence[Price] = (),
) -> Presentation:
    """How predicted outcomes of systems are shown."""
    document: dict[str, Any] = {
        "outcome": model.outcome,
        "formula": model.formula(),
        "systems": [one.to_dict() for one in predictions],
    }
    if pairs:
        document["pairs"] = [pair.to_dict() for pair in pairs]
    if prices:
        document["prices"] = [price.to_dict() for price in prices]
    sound = [one for one in predictions if not one.refused]
    figures: list[Any] = []
    if sound:
        naive = predictions[0].naive
        figures.append(
            drawing("outcome.charts.predicted_chart", predicted_frame(predictions), outcome=model.outcome, naive=naive)
        )
    shown = prices if model.predicts else ()
    if shown:
        figures.append(drawing("outcome.price_chart.price_chart", price_frame(shown), outcome=model.outcome))
    return Presentation(
        title="Predicted outcome",
        sentences=(
            *(sentence for one in predictions for sentence in prediction_sentences(one, model.outcome)),
            *(sentence for pair in pairs for sentence in pair_sentences(pair)),
        ),
        tables=(
            prediction_table(predictions),
            *([pair_table(pairs)] if pairs else []),
            *([price_table(shown)] if shown else []),
        ),
        figures=tuple(figures),
        data=lambda: predicted_frame(predictions),
        document=document,
        notes=(
            f"formula: {model.formula()}",
            *_about(model),
            *([HIDDEN_PRICES] if prices and not model.predicts else []),
            *(f"{one.system}: {one.left_out.remaining()}" for one in predictions if one.left_out.turns),
        ),
        warnings=(
            *(f"{one.system}: {one.left_out.words()}" for one in predictions if one.left_out.turns),
            *(f"{one.system}: extrapolated, {why}" for one in predictions if one.extrapolated for why in one.outside),
        ),
    )


def regression_sentences(found: Regression) -> list[str]:
    """What a regression shows."""
    chosen, nested = found.chosen, found.nested
    if not chosen.terms:
        told = [f"No candidate explains {found.outcome} better than its mean, {number(float(found.y.mean()))}."]
    else:
        kept = f"{len(chosen.terms)} of {len(found.names)} candidates are kept: {', '.join(chosen.terms)}."
        told = [kept, f"In-sample they explain {_share(chosen.r2)} of the variance of {found.outcome}."]
    left = f"{_share(found.loo.r2)} when the chosen model is held against {_units(found)} left out"
    of_that = "What is left of that" if chosen.terms else "Even so"
    told.append(f"{of_that}: {left}, {_share(nested.r2)} when the choice itself is made without them.")
    if nested.r2 <= 0:
        told.append("A system's outcome is guessed no better than by the mean: do not use the model to predict.")
    return told


def _units(found: Regression) -> str:
    if found.groups is not None:
        return "groups"
    return "rows" if found.rows[0] == "row 1" else "dialogues"


def _share(r2: float) -> str:
    return "an undefined share" if math.isnan(r2) else f"R2 {r2:.2f}"


def price_sentences(prices: Sequence[Price], outcome: str) -> list[str]:
    """The confusion that costs most."""
    dear = [price for price in prices if price.change > 0]
    if not dear:
        return []
    best = max(dear, key=lambda price: price.change)
    return [
        f"Halving predicted-{best.predicted}-actual-{best.actual} ({best.count:,.0f} turns) is worth "
        f"{best.change:+.3g} of {outcome}."
    ]


def prediction_sentences(one: Prediction, outcome: str) -> list[str]:
    """What is predicted for a system, or why nothing is."""
    if one.refused:
        return [f"{one.system}: not predicted, as it is unlike the training data: {'; '.join(one.outside)}."]
    spans = interval(one.figure, number)
    naive = f"; the naive guess is {number(one.naive.value)}" if one.naive.defined else ""
    shown = "" if spans == "no interval" else f" ({spans})"
    beyond = "; extrapolated beyond the training data" if one.extrapolated else ""
    beyond += f"; {one.left_out.words()}" if one.left_out.turns else ""
    return [f"{one.system}: predicted {outcome} {number(one.figure.value)}{shown}{naive}{beyond}."]


def pair_sentences(pair: PredictedPair) -> list[str]:
    """What two predictions show against each other."""
    one = pair.difference
    if math.isnan(one.p):
        return [f"{pair.a} less {pair.b}: {one.value:+.4g}; the model has no interval for it."]
    shown = f"{one.value:+.4g} ({number(one.low)} to {number(one.high)}), {p_value(one.p_adjusted)}"
    return [f"{pair.a} less {pair.b}: {shown}."]


def coefficient_table(found: Regression) -> Table:
    """Coefficients of the chosen terms, and how often each candidate was chosen in the bootstrap."""
    drawn = found.bootstrap
    rows = []
    for name, value in found.chosen.coefficients.items():
        place = None if drawn is None else drawn.coefficients.get(name)
        ends = "–" if place is None else f"{number(place.low)} to {number(place.high)}"
        share = "–" if drawn is None or name not in drawn.selected else f"{100 * drawn.selected[name]:.0f} %"
        rows.append((name, number(value), ends, share))
    if drawn is not None:
        others = [name for name in drawn.selected if name not in found.chosen.coefficients][: MOST_TERMS - len(rows)]
        rows += [(name, "left out", "–", f"{100 * drawn.selected[name]:.0f} %") for name in others]
    return Table("Terms", ("term", "coefficient", "bootstrap interval", "chosen in"), tuple(rows))


def validation_table(kinds: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> Table:
    """R2, mean squared error and its spread, in-sample and out of it."""
    rows = [
        (name, KINDS[kind], *(_cell(values.get(key)) for key in ("r2", "mse", "sd")))
        for name, one in kinds.items()
        for kind, values in one.items()
    ]
    return Table("Validation", ("model", "on", "R2", "MSE", "SD of squared errors"), tuple(rows))


def _cell(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else number(value)


def trace_table(found: Regression) -> Table:
    """The moves of the search."""
    rows = tuple((move.step or "start", number(move.aic)) for move in found.chosen.trace)
    return Table("Search", ("move", "AIC"), rows)


def price_table(prices: Sequence[Price]) -> Table:
    """What putting right half of each confusion is worth, the dearest first."""
    rows = tuple(
        (f"predicted-{price.predicted}-actual-{price.actual}", f"{price.count:,.0f}", f"{price.change:+.4f}")
        for price in prices[:MOST_TERMS]
    )
    return Table(
        "Price of confusions: change of the outcome if half were put right", ("confusion", "turns", "change"), rows
    )


def sets_table(sets: Sequence[SetResult]) -> Table:
    """Feature sets side by side."""
    rows = []
    for one in sets:
        values = [_cell(one.validation.get(kind, {}).get("r2")) for kind in KINDS]
        kept = one.why or ", ".join(one.terms) or "none"
        rows.append((one.name, str(one.candidates), *values, kept))
    columns = ("features", "candidates", *(f"R2 {kind}" for kind in KINDS.values()), "terms kept")
    brief = Table("Feature sets", columns[:-1], tuple(row[:-1] for row in rows))
    return Table("Feature sets", columns, tuple(rows), brief=brief)


def prediction_table(predictions: Sequence[Prediction]) -> Table:
    """Predicted outcomes of systems."""
    rows = tuple(
        (
            one.system,
            "refused" if one.refused else number(one.figure.value),
            "–" if one.refused else interval(one.figure, number),
            number(one.naive.value),
            f"{one.dialogues:,}" if not one.pooled else "pooled",
            "no" if one.outside else "yes" if one.checked else "not checked",
        )
        for one in predictions
    )
    columns = ("system", "predicted", "interval", "naive guess", "dialogues", "within training data")
    return Table("Predicted outcome", columns, rows)


def pair_table(pairs: Sequence[PredictedPair]) -> Table:
    """Differences of predicted outcomes."""
    rows = tuple(
        (
            pair.a,
            pair.b,
            f"{pair.difference.value:+.4f}",
            "–" if math.isnan(pair.difference.low) else f"{pair.difference.low:+.4f} to {pair.difference.high:+.4f}",
            "–" if math.isnan(pair.difference.p_adjusted) else p_value(pair.difference.p_adjusted),
        )
        for pair in pairs
    )
    return Table("Pairs", ("a", "b", "a less b", "interval", "corrected p"), rows)


def observed_frame(found: Regression) -> pl.DataFrame:
    """Observed and predicted outcomes, left out by row and by the whole procedure."""
    parts = []
    for kind, one in (("leave-one-out", found.loo), ("nested", found.nested)):
        parts.append(
            pl.DataFrame(
                {
                    "dialogue": list(found.rows),
                    "observed": one.observed,
                    "predicted": one.predictions,
                    "validation": [kind] * one.observed.size,
                }
            )
        )
    return pl.concat(parts)


def coefficient_frame(found: Regression) -> pl.DataFrame:
    """Coefficients with bootstrap intervals and selection frequencies, for the figure."""
    drawn = found.bootstrap
    assert drawn is not None
    spans = drawn.coefficients
    rows = [
        {
            "term": name,
            "coefficient": found.chosen.coefficients.get(name, 0.0),
            "low": spans[name].low,
            "high": spans[name].high,
            "selected": share,
            "chosen": name in found.chosen.coefficients,
        }
        for name, share in drawn.selected.items()
    ]
    return pl.DataFrame(rows)


def price_frame(prices: Sequence[Price]) -> pl.DataFrame:
    """Prices of confusions, for the figure."""
    return pl.DataFrame([price.to_dict() for price in prices])


def predicted_frame(predictions: Sequence[Prediction]) -> pl.DataFrame:
    """Predicted outcomes, for the figure."""
    rows = [
        {
            "system": one.system,
            "predicted": None if one.refused else one.figure.value,
            "low": None if one.refused or math.isnan(one.figure.low) else one.figure.low,
            "high": None if one.refused or math.isnan(one.figure.high) else one.figure.high,
            "refused": "; ".join(one.outside) or None,
        }
        for one in predictions
    ]
    kinds = {"system": pl.String, "predicted": pl.Float64, "low": pl.Float64, "high": pl.Float64, "refused": pl.String}
    return pl.DataFrame(rows, schema=kinds)


def _figures(found: Regression) -> tuple[Drawing, ...]:
    shares = {"leave-one-out": found.loo.r2, "nested": found.nested.r2}
    observed = drawing("outcome.charts.observed_chart", observed_frame(found), outcome=found.outcome, r2=shares)
    if found.bootstrap is None:
        return (observed,)
    return (observed, drawing("outcome.charts.coefficient_chart", coefficient_frame(found), outcome=found.outcome))


def _performance(found: Regression) -> tuple[str, ...]:
    if found.performance is None:
        return ()
    return (f"PARADISE performance function, of z-scores: {found.performance.formula()}",)


def _rejections(fit: OutcomeFit) -> tuple[str, ...]:
    return () if fit.design.turns is None else (REJECTIONS[fit.design.rejections],)


def _definitions(found: Regression) -> tuple[str, ...]:
    folds = "group" if found.groups is not None else "row"
    parts = found.nested.training_r2s.size + len(found.nested.failed)
    units = found.y.size if found.groups is None else int(found.groups.max()) + 1
    inside = "the choice as well" if parts == units else f"the choice as well, in {parts} folds"
    told = [
        "R2 = 1 - squared errors / squares about the mean; SD is that of single squared errors",
        f"leave-one-out: the chosen model without each {folds}; nested: {inside}",
    ]
    if found.bootstrap is not None:
        lost = len(found.bootstrap.failed)
        drawn = f"{found.bootstrap.replicates:,} replicates of choice and fit, seed {found.bootstrap.seed}"
        told.append(f"bootstrap: {drawn}" + (f"; {lost:,} more had no model" if lost else ""))
        told.append(f"R2 corrected for optimism by the bootstrap: {found.bootstrap.corrected_r2:.3f}")
    return tuple(told)


def _about(model: OutcomeModel) -> tuple[str, ...]:
    if model.by_hand:
        lacks = [] if model.covariance else ["no intervals"]
        lacks += [] if model.ranges else ["nothing to check new systems against"]
        return (f"the model was written by hand{': ' if lacks else ''}{', and '.join(lacks)}",)
    kinds = ", ".join(
        f"{KINDS[kind]} {values['r2']:.2f}" for kind, values in model.validation.items() if values.get("r2") is not None
    )
    return (
        f"fitted on {model.n:,} dialogues, features {model.features}, R2 {kinds}",
        "intervals are of the mean outcome under the chosen formula; that the formula was chosen is not in them",
    )


def _observed_settings(found: Regression) -> dict[str, Any]:
    return {"outcome": found.outcome, "r2": {"leave-one-out": found.loo.r2, "nested": found.nested.r2}}


register(
    Regression,
    chart=drawn("outcome.charts.observed_chart", observed_frame, _observed_settings),
    page=presented(of_regression),
)
register(
    OutcomeFit,
    chart=drawn(
        "outcome.charts.observed_chart",
        lambda fit: observed_frame(fit.regression),
        lambda fit: _observed_settings(fit.regression),
    ),
    page=presented(of_fit),
)
register(
    Prediction,
    chart=drawn(
        "outcome.charts.predicted_chart",
        lambda one: predicted_frame([one]),
        lambda one: {"outcome": "outcome", "naive": one.naive},
    ),
    page=pictured(lambda one: paragraphs(prediction_sentences(one, "outcome"))),
)
register(
    OutcomeComparison,
    chart=drawn(
        "outcome.charts.predicted_chart",
        lambda several: predicted_frame(several.predictions),
        lambda several: {"outcome": several.model.outcome, "naive": several.predictions[0].naive},
    ),
    page=presented(lambda several: of_predictions(several.model, several.predictions, several.pairs)),
)
