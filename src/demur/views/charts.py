"""Every figure: a result in, one Vega-Lite spec (an Altair chart) out."""

from demur.views.calibration import reliability_chart
from demur.views.confusion import confusion_chart
from demur.views.cost import cost_path_chart
from demur.views.difference import difference_chart
from demur.views.drawing import chart_table
from demur.views.error_return import comparison_chart, error_return_chart, slices_chart
from demur.views.forest import measure_chart
from demur.views.gold_checks import convergence_chart, gold_residual_chart, wizards_chart
from demur.views.gold_cost import cost_chart, plan_chart
from demur.views.gold_effects import components_chart, domains_chart
from demur.views.gold_figures import benchmark_chart
from demur.views.gold_impurity import impurity_chart
from demur.views.nbest_figures import paired_chart, parts_chart, scorer_chart, sweep_chart
from demur.views.other_curves import det_chart, missed_chance_chart, risk_coverage_chart, roc_chart
from demur.views.outcome_figures import (
    coefficient_chart,
    observed_chart,
    predicted_chart,
    price_chart,
    sets_chart,
)
from demur.views.rank_figures import rank_chart
from demur.views.slice_differences import slice_difference_chart
from demur.views.smooth import smooth_chart

__all__ = [
    "benchmark_chart",
    "chart_table",
    "coefficient_chart",
    "comparison_chart",
    "components_chart",
    "confusion_chart",
    "convergence_chart",
    "cost_chart",
    "cost_path_chart",
    "det_chart",
    "difference_chart",
    "domains_chart",
    "error_return_chart",
    "gold_residual_chart",
    "impurity_chart",
    "measure_chart",
    "missed_chance_chart",
    "observed_chart",
    "paired_chart",
    "parts_chart",
    "plan_chart",
    "predicted_chart",
    "price_chart",
    "rank_chart",
    "reliability_chart",
    "risk_coverage_chart",
    "roc_chart",
    "scorer_chart",
    "sets_chart",
    "slice_difference_chart",
    "slices_chart",
    "smooth_chart",
    "sweep_chart",
    "wizards_chart",
]
