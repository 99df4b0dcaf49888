"""Evaluates language understanding that is allowed to say "I don't understand".

>>> import demur
>>> log = [{"id": k, "target": "yes", "prediction": "yes" if k > 3 else "no", "confidence": k / 10} for k in range(10)]
>>> evaluation = demur.score(log)[0]
>>> evaluation.figures["forced_error"].value, evaluation.figures["augrc"].value
(0.4, 0.08)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "api": (
        "compare_nbest",
        "compare_outcomes",
        "fit_outcome",
        "gold",
        "nbest",
        "plan_gold",
        "predict_outcome",
        "read_nbest",
        "read_trials",
        "regress",
        "report",
        "respond",
        "train",
        "tune",
    ),
    "data.nbest": ("NBest", "NBestReading"),
    "data.responses": ("Reading", "Responses"),
    "returns.jobs": ("classes", "compare", "merge", "read", "score", "threshold", "validate"),
    "errors": ("DataError", "DemurError", "UsageError"),
    "measures.base": ("Measure", "Score"),
    "measures.sweep": ("Sweep",),
    "systems.model_files": ("load_model", "save_model"),
    "systems.relevance": ("RelevanceClassifier",),
}
_PLACES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022
    "read",
    "score",
    "merge",
    "compare",
    "threshold",
    "classes",
    "validate",
    "read_nbest",
    "nbest",
    "compare_nbest",
    "fit_outcome",
    "regress",
    "predict_outcome",
    "compare_outcomes",
    "read_trials",
    "gold",
    "plan_gold",
    "report",
    "train",
    "tune",
    "respond",
    "save_model",
    "load_model",
    "RelevanceClassifier",
    "Reading",
    "Responses",
    "NBest",
    "NBestReading",
    "Measure",
    "Score",
    "Sweep",
    "DataError",
    "DemurError",
    "UsageError",
    "__version__",
]

if TYPE_CHECKING:
    from demur.api import (
        compare_nbest,
        compare_outcomes,
        fit_outcome,
        gold,
        nbest,
        plan_gold,
        predict_outcome,
        read_nbest,
        read_trials,
        regress,
        report,
        respond,
        train,
        tune,
    )
    from demur.data.nbest import NBest, NBestReading
    from demur.data.responses import Reading, Responses
    from demur.errors import DataError, DemurError, UsageError
    from demur.measures.base import Measure, Score
    from demur.measures.sweep import Sweep
    from demur.returns.jobs import classes, compare, merge, read, score, threshold, validate
    from demur.systems.model_files import load_model, save_model
    from demur.systems.relevance import RelevanceClassifier


def __getattr__(name: str) -> Any:
    """Public names load their module when they are first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'demur' has no attribute {name!r}")
    return getattr(import_module(f"demur.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
