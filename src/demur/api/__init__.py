"""The same jobs as the commands, for Python: from files and frames to results."""

from demur.api.gold_standards import gold, plan_gold, read_trials
from demur.api.lists import compare_nbest, nbest, read_nbest
from demur.api.outcomes import compare_outcomes, fit_outcome, predict_outcome, regress
from demur.api.reports import report
from demur.api.understanding import respond, train, tune
from demur.returns.jobs import classes, compare, merge, read, score, threshold, validate

__all__ = [
    "classes",
    "compare",
    "compare_nbest",
    "compare_outcomes",
    "fit_outcome",
    "gold",
    "merge",
    "nbest",
    "plan_gold",
    "predict_outcome",
    "read",
    "read_nbest",
    "read_trials",
    "regress",
    "report",
    "respond",
    "score",
    "threshold",
    "train",
    "tune",
    "validate",
]
