"""How models of outcomes are shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from demur.core.show.html import drawn
from demur.core.show.numbers import ends, interval, number, p_value, tabled_p, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import plain, register
from demur.core.stats.intervals import Difference
from demur.errors import DataError
from demur.outcome.fitting import Decrease, OutcomeFit, Regression, SetResult
from demur.outcome.prediction import OutcomeComparison, PredictedPair, Prediction, Price
from demur.outcome.validation import VALIDATION_NAMES, Bootstrap

OBSERVED, PREDICTED = "outcome.charts.observed_chart", "outcome.charts.predicted_chart"

MOST_TERMS = 20
"""Candidates that a table of coefficients shows."""


def of_regression(found: Regression) -> Presentation:
    """How a stepwise regression is shown."""
    return _presentation("Stepwise regression", found, found)


def of_fit(fit: OutcomeFit) -> Presentation:
    """How a model of the outcome of dialogues is shown, beside other feature sets and learners."""
    prices = fit.prices if fit.model.predicts else ()
    return _presentation(
        "What the outcome follows from",
        fit,
        fit.regression,
        price_sentences(prices, fit.regression.outcome),
        rivals={name: {"nested": one.summary} for name, one in fit.learners.items()},
        tables=[
            *([price_table(prices)] if prices else []),
            *([sets_table(fit.sets), formula_table(fit.sets)] if fit.sets else []),
            *([decrease_table(fit.decreases)] if fit.decreases else []),
        ],
        figures=[
            *([_price_figure(prices, fit.regression.outcome)] if prices else []),
            *([drawing("outcome.charts.sets_chart", sets_frame(fit.sets))] if fit.sets else []),
        ],
        data=(lambda: set_rows(fit.sets)) if fit.sets else None,
    )


def _presentation(
    title: str,
    result: Regression | OutcomeFit,
    regression: Regression,
    sentences: Sequence[str] = (),
    *,
    rivals: Mapping[str, Mapping[str, Mapping[str, float | None]]] | None = None,
    tables: Sequence[ResultTable] = (),
    figures: Sequence[Drawing] = (),
    data: Callable[[], pl.DataFrame] | None = None,
) -> Presentation:
    """A regression, with the sentences, tables and figures that a fit has besides; its data are observed outcomes."""
    drawings = [drawing(OBSERVED, observed_frame(regression), **_observed_settings(regression))]
    if regression.bootstrap is not None:
        rows = coefficient_frame(regression, regression.bootstrap)
        drawings.append(drawing("outcome.charts.coefficient_chart", rows, outcome=regression.outcome))
    validation = validation_table({"stepwise": regression.validation, **(rivals or {})})
    return Presentation(
        title=title,
        sentences=(*regression_sentences(regression), *sentences),
        tables=(coefficient_table(regression), validation, *tables, trace_table(regression)),
        figures=(*drawings, *figures),
        data=data or (lambda: observed_frame(regression)),
        document=result.to_dict(),
        notes=result.notes,
        warnings=result.warnings,
    )


def of_known_predictions(found: Prediction | OutcomeComparison) -> Presentation:
    """How predicted outcomes are shown; that all systems are refused is an error, as there is nothing to show."""
    if all(one.refused for one in found.predictions):
        first = found.predictions[0]
        raise DataError(
            f"{first.system} is unlike the training data of the model: {'; '.join(first.outside)}",
            fix="collect dialogues with such a system; `extrapolate` predicts all the same, with a warning",
        )
    return of_predictions(found)


def of_predictions(found: Prediction | OutcomeComparison) -> Presentation:
    """How predicted outcomes of systems are shown, and why some are not predicted."""
    outcome, predictions = found.model.outcome, found.predictions
    pairs = found.pairs if isinstance(found, OutcomeComparison) else ()
    prices = found.prices if isinstance(found, Prediction) and found.model.predicts else ()
    figures = []
    if not all(one.refused for one in predictions):
        figures.append(drawing(PREDICTED, predicted_frame(predictions), **_predicted_settings(found)))
    if prices:
        figures.append(_price_figure(prices, outcome))
    return Presentation(
        title="Predicted outcome",
        sentences=(*(prediction_sentence(one, outcome) for one in predictions), *map(pair_sentence, pairs)),
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


def _price_figure(prices: Sequence[Price], outcome: str) -> Drawing:
    return drawing("outcome.charts.price_chart", pl.DataFrame([asdict(price) for price in prices]), outcome=outcome)


def regression_sentences(found: Regression) -> list[str]:
    """What a regression shows."""
    chosen, nested = found.chosen, found.nested
    if not chosen.terms:
        sentences = [f"No candidate explains {found.outcome} better than its mean, {number(float(found.y.mean()))}."]
    else:
        kept = f"{len(chosen.terms)} of {len(found.names)} candidates are kept: {', '.join(chosen.terms)}."
        sentences = [kept, f"In-sample they explain {_share(chosen.r2)} of the variance of {found.outcome}."]
    units = "groups" if found.groups is not None else "rows" if found.rows[0] == "row 1" else "dialogues"
    left = f"{_share(found.loo.r2)} when the chosen model predicts {units} left out"
    of_that = "What is left of that" if chosen.terms else "Even so"
    sentences.append(f"{of_that}: {left}, {_share(nested.r2)} when the choice itself is made without them.")
    if nested.r2 <= 0:
        sentences.append("A system's outcome is guessed no better than by the mean: do not use the model to predict.")
    return sentences


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


def prediction_sentence(one: Prediction, outcome: str) -> str:
    """What is predicted for a system, or why nothing is."""
    if one.refused:
        return f"{one.system}: not predicted, as it is unlike the training data: {'; '.join(one.outside)}."
    value = with_interval(one.figure.value, one.figure.low, one.figure.high, write=number)
    naive = f"; the naive guess is {number(one.naive.value)}" if one.naive.defined else ""
    beyond = "; extrapolated beyond the training data" if one.extrapolated else ""
    beyond += f"; {one.left_out.words()}" if one.left_out.turns else ""
    return f"{one.system}: predicted {outcome} {value}{naive}{beyond}."


def pair_sentence(pair: PredictedPair) -> str:
    """What two predictions show against each other."""
    one = pair.difference
    names, value = f"{pair.a} less {pair.b}", f"{one.value:+.4g}"
    if math.isnan(one.p):
        return f"{names}: {value}; the model has no interval for it."
    return f"{names}: {with_interval(value, one.low, one.high, write=number)}, {p_value(one.p_adjusted)}."


def coefficient_table(found: Regression) -> ResultTable:
    """Coefficients of the chosen terms, and how often each candidate was chosen in the bootstrap."""
    draws, chosen = found.bootstrap, found.chosen.coefficients
    spans = {} if draws is None else draws.coefficients
    intervals = {name: interval(span, number) for name, span in spans.items()}
    shares = {} if draws is None else {name: f"{100 * share:.0f} %" for name, share in draws.selected.items()}
    rows = [(name, number(value), intervals.get(name, "–"), shares.get(name, "–")) for name, value in chosen.items()]
    others = [name for name in shares if name not in chosen][: MOST_TERMS - len(rows)]
    rows += [(name, "left out", "–", shares[name]) for name in others]
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
    rows = tuple((move.step or "start", f"{move.aic:,.2f}") for move in found.chosen.trace)
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
        loo = one.validation.get("loo", {})
        values += [_with_spread(*(one.printed or (None, None))), _with_spread(loo.get("mse"), loo.get("sd"))]
        kept = one.why or ", ".join(one.terms) or "none"
        rows.append((one.name, str(one.candidates), *values, kept))
    kinds = tuple(f"R2 {kind}" for kind in VALIDATION_NAMES.values())
    columns = ("features", "candidates", *kinds, "R2 of training folds (SD)", "MSE leave-one-out (SD)", "terms kept")
    brief = ResultTable("Feature sets", columns[:-1], tuple(row[:-1] for row in rows))
    return ResultTable("Feature sets", columns, tuple(rows), brief=brief)


def _with_spread(value: float | None, spread: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{_cell(value)} ({_cell(spread)})"


def formula_table(sets: Sequence[SetResult]) -> ResultTable:
    """The formula of each feature set, as Table 5 of the paper prints them."""
    rows = tuple((one.name, one.formula or f"none: {one.why}") for one in sets)
    return ResultTable("Formulas of the feature sets", ("features", "formula"), rows)


def decrease_table(decreases: Sequence[Decrease]) -> ResultTable:
    """By how much each set lowers the mean squared error, with corrected p-values."""
    rows = tuple(
        (
            one.features,
            *_decrease_cells(one.loo),
            tabled_p(one.loo.p_adjusted),
            *_decrease_cells(one.nested),
            tabled_p(one.nested.p_adjusted),
        )
        for one in decreases
    )
    title = f"Decrease of the mean squared error against {decreases[0].against}, paired by dialogue"
    columns = ("features", "leave-one-out", "corrected p", "nested", "corrected p (nested)")
    return ResultTable(title, columns, rows)


def _decrease_cells(one: Difference) -> tuple[str]:
    return (with_interval(f"{one.value:+.4f}", one.low, one.high, write="{:+.4f}".format),)


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
            ends(pair.difference.low, pair.difference.high, "{:+.4f}".format) or "–",
            tabled_p(pair.difference.p_adjusted),
        )
        for pair in pairs
    )
    return ResultTable("Pairs", ("a", "b", "a less b", "interval", "corrected p"), rows)


def observed_frame(found: Regression) -> pl.DataFrame:
    """Observed and predicted outcomes, left out by row and by the whole procedure."""
    rows = pl.DataFrame({"dialogue": list(found.rows), "observed": found.y})
    return pl.concat(
        rows.with_columns(predicted=one.predictions, validation=pl.lit(kind))
        for kind, one in (("leave-one-out", found.loo), ("nested", found.nested))
    )


def coefficient_frame(found: Regression, draws: Bootstrap) -> pl.DataFrame:
    """Coefficients with bootstrap intervals and selection frequencies, for the figure."""
    chosen, spans = found.chosen.coefficients, draws.coefficients
    rows = [
        (name, chosen.get(name, 0.0), spans[name].low, spans[name].high, share, name in chosen)
        for name, share in draws.selected.items()
    ]
    return pl.DataFrame(rows, ("term", "coefficient", "low", "high", "selected", "chosen"), orient="row")


def sets_frame(sets: Sequence[SetResult]) -> pl.DataFrame:
    """Feature sets as a table, for the figure: a row per set and kind of validation."""
    rows = [
        {"features": one.name, "validation": VALIDATION_NAMES[kind], "r2": values.get("r2")}
        for one in sets
        for kind, values in one.validation.items()
    ]
    return pl.DataFrame(rows, schema={"features": pl.String, "validation": pl.String, "r2": pl.Float64})


def set_rows(sets: Sequence[SetResult]) -> pl.DataFrame:
    """A row for each feature set, with the columns of Table 5: formula, R2 and MSE with their standard deviations."""
    kinds = {
        "features": pl.String,
        "candidates": pl.Int64,
        "r2_in_sample": pl.Float64,
        **{f"{part}_{kind}": pl.Float64 for kind in ("leave_one_out", "nested") for part in ("r2", "mse", "sd")},
        "r2_training_folds": pl.Float64,
        "sd_training_folds": pl.Float64,
        "formula": pl.String,
        "why": pl.String,
    }
    rows = [
        {
            "features": one.name,
            "candidates": one.candidates,
            "r2_in_sample": one.validation.get("in_sample", {}).get("r2"),
            **{
                f"{part}_{name}": one.validation.get(kind, {}).get(part)
                for kind, name in (("loo", "leave_one_out"), ("nested", "nested"))
                for part in ("r2", "mse", "sd")
            },
            **dict(zip(("r2_training_folds", "sd_training_folds"), one.printed or (), strict=False)),
            "formula": one.formula or None,
            "why": one.why,
        }
        for one in sets
    ]
    return pl.DataFrame(rows, schema=kinds)


def predicted_frame(predictions: Sequence[Prediction]) -> pl.DataFrame:
    """Predicted outcomes, for the figure."""
    figures = ("predicted", "value"), ("low", "low"), ("high", "high")
    rows = [
        {
            "system": one.system,
            **{name: None if one.refused else plain(getattr(one.figure, part)) for name, part in figures},
            "refused": "; ".join(one.outside) or None,
        }
        for one in predictions
    ]
    kinds = {"system": pl.String, **dict.fromkeys(("predicted", "low", "high"), pl.Float64), "refused": pl.String}
    return pl.DataFrame(rows, schema=kinds)


def _observed_settings(found: Regression) -> dict[str, Any]:
    return {"outcome": found.outcome, "r2": {"leave-one-out": found.loo.r2, "nested": found.nested.r2}}


def _predicted_settings(found: Prediction | OutcomeComparison) -> dict[str, Any]:
    return {"outcome": found.model.outcome, "naive": found.predictions[0].naive}


register(Regression, chart=drawn(OBSERVED, observed_frame, _observed_settings), present=of_regression)
register(
    OutcomeFit,
    chart=drawn(OBSERVED, lambda fit: observed_frame(fit.regression), lambda fit: _observed_settings(fit.regression)),
    present=of_fit,
)
for _kind in (Prediction, OutcomeComparison):
    chart = drawn(PREDICTED, lambda found: predicted_frame(found.predictions), _predicted_settings)
    register(_kind, chart=chart, present=of_predictions)
