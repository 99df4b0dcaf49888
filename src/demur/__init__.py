"""Evaluates language understanding that is allowed to say "I don't understand".

>>> import demur
>>> log = [{"id": k, "target": "yes", "prediction": "yes" if k > 3 else "no", "confidence": k / 10} for k in range(10)]
>>> evaluation = demur.score(log)[0]
>>> evaluation.figures["forced_error"].value, evaluation.figures["augrc"].value
(0.4, 0.08)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from demur.core.show.citations import cite
    from demur.core.stats.measure import Measure, Score
    from demur.core.stats.sweep import Sweep
    from demur.errors import DataError, DemurError, UsageError
    from demur.gold_standard.jobs import gold, plan_gold, read_trials
    from demur.importers import import_dstc
    from demur.judges.jobs import agreement
    from demur.nbest_lists.jobs import compare_nbest, import_slf, nbest, read_nbest
    from demur.nbest_lists.table import NBest, NBestReading
    from demur.outcome.jobs import compare_outcomes, fit_outcome, majority_baseline, predict_outcome, regress
    from demur.reports.jobs import report, verify_engine
    from demur.returns.engine_jobs import merge, watch
    from demur.returns.jobs import (
        apply_recalibration,
        classes,
        compare,
        drift,
        fit_recalibration,
        read,
        score,
        threshold,
        validate,
    )
    from demur.returns.predictions import (
        ErrorReturnDisplay,
        augrc_score,
        aurc_score,
        e_aurc_score,
        error_at_nonreturn_score,
        nonreturn_at_error_score,
        predictions,
        ranking_skill_score,
    )
    from demur.returns.table import Reading, Responses
    from demur.store.jobs import add_runs, remove_runs, runs
    from demur.study.jobs import check_study, demo_study, erase_person, export_study, new_study, study_status
    from demur.understanding.jobs import grade, question_pairs, respond, train, train_grader, tune
    from demur.understanding.relevance import RelevanceClassifier, load_model, save_model

__version__ = "0.2.0"

_HOMES = {
    "returns.jobs": (
        "apply_recalibration",
        "classes",
        "compare",
        "drift",
        "fit_recalibration",
        "read",
        "score",
        "threshold",
        "validate",
    ),
    "returns.engine_jobs": ("merge", "watch"),
    "importers": ("import_dstc",),
    "nbest_lists.jobs": ("compare_nbest", "import_slf", "nbest", "read_nbest"),
    "outcome.jobs": ("compare_outcomes", "fit_outcome", "majority_baseline", "predict_outcome", "regress"),
    "gold_standard.jobs": ("gold", "plan_gold", "read_trials"),
    "understanding.jobs": ("grade", "question_pairs", "respond", "train", "train_grader", "tune"),
    "judges.jobs": ("agreement",),
    "reports.jobs": ("report", "verify_engine"),
    "core.show.citations": ("cite",),
    "returns.predictions": (
        "ErrorReturnDisplay",
        "predictions",
        "augrc_score",
        "aurc_score",
        "e_aurc_score",
        "ranking_skill_score",
        "error_at_nonreturn_score",
        "nonreturn_at_error_score",
    ),
    "store.jobs": ("add_runs", "remove_runs", "runs"),
    "study.jobs": ("check_study", "demo_study", "erase_person", "export_study", "new_study", "study_status"),
    "nbest_lists.table": ("NBest", "NBestReading"),
    "returns.table": ("Reading", "Responses"),
    "errors": ("DataError", "DemurError", "UsageError"),
    "core.stats.measure": ("Measure", "Score"),
    "core.stats.sweep": ("Sweep",),
    "understanding.relevance": ("RelevanceClassifier", "load_model", "save_model"),
}
_PLACES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022
    "read",
    "score",
    "merge",
    "watch",
    "compare",
    "threshold",
    "drift",
    "classes",
    "fit_recalibration",
    "apply_recalibration",
    "validate",
    "predictions",
    "augrc_score",
    "aurc_score",
    "e_aurc_score",
    "ranking_skill_score",
    "error_at_nonreturn_score",
    "nonreturn_at_error_score",
    "ErrorReturnDisplay",
    "read_nbest",
    "nbest",
    "compare_nbest",
    "import_dstc",
    "import_slf",
    "fit_outcome",
    "regress",
    "predict_outcome",
    "compare_outcomes",
    "majority_baseline",
    "read_trials",
    "gold",
    "plan_gold",
    "agreement",
    "report",
    "add_runs",
    "runs",
    "remove_runs",
    "new_study",
    "study_status",
    "check_study",
    "export_study",
    "erase_person",
    "demo_study",
    "verify_engine",
    "cite",
    "train",
    "tune",
    "respond",
    "question_pairs",
    "train_grader",
    "grade",
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


def __getattr__(name: str) -> Any:
    """Public names load their module when they are first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'demur' has no attribute {name!r}")
    return getattr(import_module(f"demur.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
