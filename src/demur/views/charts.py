"""Every figure: a result in, one Vega-Lite spec (an Altair chart) out."""

from demur.views.calibration import reliability_chart
from demur.views.confusion import confusion_chart
from demur.views.cost import cost_path_chart
from demur.views.difference import difference_chart
from demur.views.drawing import chart_table
from demur.views.error_return import comparison_chart, error_return_chart, slices_chart
from demur.views.forest import measure_chart
from demur.views.nbest_figures import paired_chart, parts_chart, scorer_chart, sweep_chart
from demur.views.other_curves import det_chart, missed_chance_chart, risk_coverage_chart, roc_chart
from demur.views.outcome_figures import (
    coefficient_chart,
    observed_chart,
    predicted_chart,
    price_chart,
    sets_chart,
)
from demur.views.smooth import smooth_chart

__all__ = [
    "chart_table",
    "coefficient_chart",
    "comparison_chart",
    "confusion_chart",
    "cost_path_chart",
    "det_chart",
    "difference_chart",
    "error_return_chart",
    "measure_chart",
    "missed_chance_chart",
    "observed_chart",
    "paired_chart",
    "parts_chart",
    "predicted_chart",
    "price_chart",
    "reliability_chart",
    "risk_coverage_chart",
    "roc_chart",
    "scorer_chart",
    "sets_chart",
    "slices_chart",
    "smooth_chart",
    "sweep_chart",
]
