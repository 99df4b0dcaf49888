"""Results as sentences, tables, charts and pages.

Importing this says how results show themselves; Altair is loaded when a figure is drawn, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from demur.analyses.comparison import Comparison, PairComparison
from demur.analyses.evaluation import Evaluation, Evaluations
from demur.analyses.gaussian_process import Smooth
from demur.analyses.gold.domains import GoldStudies
from demur.analyses.gold.planning import Plan
from demur.analyses.gold.study import GoldStudy
from demur.analyses.labels import ClassReport, ClassReports
from demur.analyses.nbest import NBestEvaluation, NBestEvaluations
from demur.analyses.nbest_comparison import NBestComparison, NBestPair
from demur.analyses.nbest_experiments import LengthSweep, ScorerTable, Smooths
from demur.analyses.outcome.comparison import OutcomeComparison
from demur.analyses.outcome.fitting import OutcomeFit, Regression
from demur.analyses.outcome.prediction import Prediction
from demur.analyses.threshold import Choice
from demur.analyses.understanding.experiments import Experiment
from demur.measures.curves import Curve, ErrorReturnCurve
from demur.show import register
from demur.views import (
    gold_presentation,
    nbest_experiments,
    nbest_presentation,
    nbest_words,
    outcome_presentation,
    presentation,
    understanding_experiments,
    words,
)
from demur.views.fragments import curve_notebook, paragraphs, table_html
from demur.views.nbest_presentation import parts_frame
from demur.views.notebook import comparison_notebook, pictured, presented


def _drawn(
    module: str,
    function: str,
    of: Callable[[Any], Any] = lambda result: result,
    told: Callable[[Any], dict[str, Any]] = lambda _: {},
) -> Callable[..., Any]:
    """A chart function found when it is first needed; `told` gives the options that the result itself knows."""

    def draw(result: Any, **options: Any) -> Any:
        chart = getattr(import_module(f"demur.views.{module}"), function)
        return chart(of(result), **{**told(result), **options})

    return draw


def _observed(found: Regression) -> dict[str, Any]:
    return {"outcome": found.outcome, "r2": {"leave-one-out": found.loo.r2, "nested": found.nested.r2}}


def _choice(choice: Choice) -> str:
    path = table_html(presentation.path_table(choice))
    return f"<div>{paragraphs(words.choice_sentences(choice))}{path}</div>"


register(
    Evaluation,
    chart=_drawn("error_return", "error_return_chart", lambda one: [one]),
    page=presented(lambda one: presentation.of_scores([one])),
)
register(
    Evaluations,
    chart=_drawn("error_return", "error_return_chart"),
    page=presented(lambda several: presentation.of_scores(several)),
)
register(
    ClassReports,
    chart=_drawn("confusion", "confusion_chart", lambda several: several[0]),
    page=presented(lambda several: presentation.of_classes(several)),
)
register(
    Comparison,
    chart=_drawn("error_return", "comparison_chart"),
    page=comparison_notebook,
)
register(
    PairComparison,
    chart=_drawn("difference", "difference_chart"),
    page=pictured(lambda pair: f"<div>{paragraphs(words.pair_sentences(pair))}</div>"),
)
register(Choice, chart=_drawn("cost", "cost_path_chart"), page=pictured(_choice))
register(
    ClassReport,
    chart=_drawn("confusion", "confusion_chart"),
    page=presented(lambda report: presentation.of_classes([report])),
)
register(ErrorReturnCurve, chart=_drawn("error_return", "bare_curve_chart"), page=pictured(curve_notebook))
register(Curve, chart=_drawn("other_curves", "bare_reading_chart"), page=pictured(curve_notebook))
register(Smooth, chart=_drawn("smooth", "smooth_chart", lambda one: [one]), page=pictured(curve_notebook))
register(
    NBestEvaluation,
    chart=_drawn(
        "nbest_figures", "parts_chart", lambda one: parts_frame([one]), lambda one: {"level": one.manner.level}
    ),
    page=presented(lambda one: nbest_presentation.of_nbest([one])),
)
register(
    NBestEvaluations,
    chart=_drawn("nbest_figures", "parts_chart", parts_frame, lambda several: {"level": several[0].manner.level}),
    page=presented(lambda several: nbest_presentation.of_nbest(several)),
)
register(
    NBestPair,
    chart=_drawn(
        "nbest_figures",
        "paired_chart",
        nbest_presentation.difference_frame,
        lambda pair: {"a": pair.a, "b": pair.b, "level": pair.level},
    ),
    page=pictured(lambda pair: f"<div>{paragraphs(nbest_words.pair_sentences(pair))}</div>"),
)
register(
    NBestComparison,
    chart=_drawn(
        "nbest_figures",
        "parts_chart",
        lambda several: parts_frame(several.evaluations),
        lambda several: {"level": several.level},
    ),
    page=presented(lambda several: nbest_presentation.of_nbest_comparison(several)),
)
register(
    ScorerTable,
    chart=_drawn(
        "nbest_figures",
        "scorer_chart",
        nbest_experiments.scorer_rows,
        lambda table: {"level": table.evaluations[0].manner.level},
    ),
    page=presented(lambda table: nbest_experiments.of_scorers(table)),
)
register(
    LengthSweep,
    chart=_drawn("nbest_sweep", "sweep_chart", lambda sweep: sweep.of("ice"), nbest_experiments.sweep_titles),
    page=presented(lambda sweep: nbest_experiments.of_lengths(sweep)),
)
register(
    Smooths,
    chart=_drawn("smooth", "smooth_chart", nbest_experiments.named_curves, nbest_experiments.axes),
    page=presented(lambda smooths: nbest_experiments.of_smooths(smooths)),
)
register(
    Regression,
    chart=_drawn("outcome_figures", "observed_chart", outcome_presentation.observed_frame, _observed),
    page=presented(lambda found: outcome_presentation.of_regression(found)),
)
register(
    OutcomeFit,
    chart=_drawn(
        "outcome_figures",
        "observed_chart",
        lambda fit: outcome_presentation.observed_frame(fit.regression),
        lambda fit: _observed(fit.regression),
    ),
    page=presented(lambda fit: outcome_presentation.of_fit(fit)),
)
register(
    Prediction,
    chart=_drawn(
        "outcome_figures",
        "predicted_chart",
        lambda one: outcome_presentation.predicted_frame([one]),
        lambda one: {"outcome": "outcome", "naive": one.naive},
    ),
    page=pictured(lambda one: f"<div>{paragraphs(outcome_presentation.prediction_sentences(one, 'outcome'))}</div>"),
)
register(
    OutcomeComparison,
    chart=_drawn(
        "outcome_figures",
        "predicted_chart",
        lambda several: outcome_presentation.predicted_frame(several.predictions),
        lambda several: {"outcome": several.model.outcome, "naive": several.predictions[0].naive},
    ),
    page=presented(
        lambda several: outcome_presentation.of_predictions(several.model, several.predictions, several.pairs)
    ),
)
register(
    GoldStudy,
    chart=lambda study, **options: gold_presentation.benchmark(study, **options)(),
    page=presented(lambda study: gold_presentation.of_study(study)),
)
register(
    Plan,
    chart=lambda plan, **options: gold_presentation.plan_figure(plan, **options)(),
    page=pictured(lambda plan: f"<div>{paragraphs([plan.words()])}</div>"),
)
register(
    GoldStudies,
    chart=lambda studies, **options: gold_presentation.main_figure(studies, **options)(),
    page=presented(lambda studies: gold_presentation.of_gold(studies)),
)
register(
    Experiment,
    chart=_drawn("error_return", "comparison_chart", lambda one: one.comparison),
    page=presented(lambda one: understanding_experiments.of_experiment(one)),
)
