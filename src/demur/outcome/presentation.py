"""How models of outcomes are shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from demur.core.show.notebook import drawn, presented
from demur.core.show.numbers import interval, number, p_value, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.errors import DataError
from demur.outcome.fitting import OutcomeFit, Regression, SetResult
from demur.outcome.prediction import OutcomeComparison, PredictedPair, Prediction, Price
from demur.outcome.validation import VALIDATION_NAMES

MOST_TERMS = 20
"""Candidates that a table of coefficients shows."""


def of_regression(found: Regression) -> Presentation:
    """How a stepwise regression is shown."""
    return Presentation(
        title="Stepwise regression",
        sentences=tuple(regression_sentences(found)),
        tables=(coefficient_table(found), validation_table({"stepwise": found.validation}), trace_table(found)),
        figures=_figures(found),
        data=lambda: observed_frame(found),
        document=found.to_dict(),
        notes=found.notes,
        warnings=found.warnings,
    )


def of_fit(fit: OutcomeFit) -> Presentation:
    """How a model of the outcome of dialogues is shown, beside other feature sets and learners."""
    found = fit.regression
    rivals = {"stepwise": found.validation} | {
        name: {"nested": {"r2": one.r2, "mse": one.mse, "sd": one.sd}} for name, one in fit.learners.items()
    }
    figures = list(_figures(found))
    shown = fit.prices if fit.model.predicts else ()
    if shown:
        figures.append(drawing("outcome.price_chart.price_chart", price_frame(shown), outcome=found.outcome))
    if fit.sets:
        figures.append(drawing("outcome.charts.sets_chart", sets_frame(fit.sets)))
    return Presentation(
        title="What the outcome follows from",
        sentences=(*regression_sentences(found), *price_sentences(shown, found.outcome)),
        tables=(
            coefficient_table(found),
            validation_table(rivals),
            *([price_table(shown)] if shown else []),
            *([sets_table(fit.sets)] if fit.sets else []),
            trace_table(found),
        ),
        figures=tuple(figures),
        data=lambda: observed_frame(found),
        document=fit.to_dict(),
        notes=fit.notes,
        warnings=fit.warnings,
    )


def of_prediction(found: Prediction) -> Presentation:
    """How the predicted outcome of a system is shown; a refused one is an error, as there is nothing to show."""
    _refuse_unlike(found.predictions)
    return of_predictions(found)


def of_comparison(found: OutcomeComparison) -> Presentation:
    """How systems are compared by predicted outcome; that all are refused is an error."""
    _refuse_unlike(found.predictions)
    return of_predictions(found)


def _refuse_unlike(predictions: Sequence[Prediction]) -> None:
    if all(one.refused for one in predictions):
        first = predictions[0]
        raise DataError(
            f"{first.system} is unlike the training data of the model: {'; '.join(first.outside)}",
            fix="collect dialogues with such a system; `extrapolate` predicts all the same, with a warning",
        )


def of_predictions(found: Prediction | OutcomeComparison) -> Presentation:
    """How predicted outcomes of systems are shown, and why some are not predicted."""
    outcome, predictions = found.model.outcome, found.predictions
    pairs = found.pairs if isinstance(found, OutcomeComparison) else ()
    prices = found.prices if isinstance(found, Prediction) and found.model.predicts else ()
    figures: list[Any] = []
    if not all(one.refused for one in predictions):
        settings: dict[str, Any] = {"outcome": outcome, "naive": predictions[0].naive}
        figures.append(drawing("outcome.charts.predicted_chart", predicted_frame(predictions), **settings))
    if prices:
        figures.append(drawing("outcome.price_chart.price_chart", price_frame(prices), outcome=outcome))
    return Presentation(
        title="Predicted outcome",
        sentences=(
            *(sentence for one in predictions for sentence in prediction_sentences(one, outcome)),
            *(sentence for pair in pairs for sentence in pair_sentences(pair)),
        ),
        tables=(
            prediction_table(predictions),
            *([pair_table(pairs)] if pairs else []),
            *([price_table(prices)] if prices else []),
        ),
        figures=tuple(figures),
        data=lambda: predicted_frame(predictions),
        document=found.to_dict(),
        notes=found.notes,
        warnings=found.warnings,
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
    shown = f"{with_interval(f'{one.value:+.4g}', one.low, one.high, write=number)}, {p_value(one.p_adjusted)}"
    return [f"{pair.a} less {pair.b}: {shown}."]


def coefficient_table(found: Regression) -> ResultTable:
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
    return ResultTable("Terms", ("term", "coefficient", "bootstrap interval", "chosen in"), tuple(rows))


def validation_table(kinds: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> ResultTable:
    """R2, mean squared error and its spread, in-sample and out of it."""
    rows = [
        (name, VALIDATION_NAMES[kind], *(_cell(values.get(key)) for key in ("r2", "mse", "sd")))
        for name, one in kinds.items()
        for kind, values in one.items()
    ]
    return ResultTable("Validation", ("model", "on", "R2", "MSE", "SD of squared errors"), tuple(rows))


def _cell(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else number(value)


def trace_table(found: Regression) -> ResultTable:
    """The moves of the search."""
    rows = tuple((move.step or "start", number(move.aic)) for move in found.chosen.trace)
    return ResultTable("Search", ("move", "AIC"), rows)


def price_table(prices: Sequence[Price]) -> ResultTable:
    """What putting right half of each confusion is worth, the dearest first."""
    rows = tuple(
        (f"predicted-{price.predicted}-actual-{price.actual}", f"{price.count:,.0f}", f"{price.change:+.4f}")
        for price in prices[:MOST_TERMS]
    )
    return ResultTable(
        "Price of confusions: change of the outcome if half were put right", ("confusion", "turns", "change"), rows
    )


def sets_table(sets: Sequence[SetResult]) -> ResultTable:
    """Feature sets side by side."""
    rows = []
    for one in sets:
        values = [_cell(one.validation.get(kind, {}).get("r2")) for kind in VALIDATION_NAMES]
        kept = one.why or ", ".join(one.terms) or "none"
        rows.append((one.name, str(one.candidates), *values, kept))
    columns = ("features", "candidates", *(f"R2 {kind}" for kind in VALIDATION_NAMES.values()), "terms kept")
    brief = ResultTable("Feature sets", columns[:-1], tuple(row[:-1] for row in rows))
    return ResultTable("Feature sets", columns, tuple(rows), brief=brief)


def prediction_table(predictions: Sequence[Prediction]) -> ResultTable:
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
    return ResultTable("Predicted outcome", columns, rows)


def pair_table(pairs: Sequence[PredictedPair]) -> ResultTable:
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
    return ResultTable("Pairs", ("a", "b", "a less b", "interval", "corrected p"), rows)


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


def sets_frame(sets: Sequence[SetResult]) -> pl.DataFrame:
    """Feature sets as a table, for the figure: a row per set and kind of validation."""
    rows = [
        {"features": one.name, "validation": VALIDATION_NAMES[kind], "r2": values.get("r2")}
        for one in sets
        for kind, values in one.validation.items()
    ]
    return pl.DataFrame(rows, schema={"features": pl.String, "validation": pl.String, "r2": pl.Float64})


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
for _kind in (Prediction, OutcomeComparison):
    register(
        _kind,
        chart=drawn(
            "outcome.charts.predicted_chart",
            lambda found: predicted_frame(found.predictions),
            lambda found: {"outcome": found.model.outcome, "naive": found.predictions[0].naive},
        ),
        page=presented(of_predictions),
    )
