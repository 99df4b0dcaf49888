"""Measures of answers and of labels, by their key in JSON, tables and gates."""

from demur.core.stats.calibration import ECE, NCE, Brier
from demur.core.stats.measure import Measure, TermMeasure
from demur.returns.classes import Accuracy, ClassAverage, Kappa
from demur.returns.measures import (
    AUGRC,
    AURC,
    AUROC,
    EAURC,
    ErrorAtNonreturn,
    ForcedError,
    NonreturnAtError,
    NonreturnFloor,
    QALDPrecision,
    QALDRecall,
    RankingSkill,
)

RETURNS: dict[str, Measure] = {
    "forced_error": ForcedError(),
    "nonreturn_floor": NonreturnFloor(),
    "augrc": AUGRC(),
    "aurc": AURC(),
    "e_aurc": EAURC(),
    "auroc": AUROC(),
    "ranking_skill": RankingSkill(),
    "error_at_nonreturn": ErrorAtNonreturn(),
    "nonreturn_at_error": NonreturnAtError(),
    "qald_precision": QALDPrecision(),
    "qald_recall": QALDRecall(),
    "brier": Brier(),
    "ece": ECE(),
    "nce": NCE(),
}
"""Measures of answers with confidences."""

CLASSES: dict[str, Measure] = {
    "accuracy": Accuracy(),
    "kappa": Kappa(),
    "macro_precision": ClassAverage("macro", "precision"),
    "macro_recall": ClassAverage("macro", "recall"),
    "macro_f1": ClassAverage("macro", "f1"),
    "weighted_precision": ClassAverage("weighted", "precision"),
    "weighted_recall": ClassAverage("weighted", "recall"),
    "weighted_f1": ClassAverage("weighted", "f1"),
    "micro_precision": ClassAverage("micro", "precision"),
    "micro_recall": ClassAverage("micro", "recall"),
    "micro_f1": ClassAverage("micro", "f1"),
}
"""Measures of labels against labels."""

MEASURES: dict[str, Measure] = {**RETURNS, **CLASSES}
"""Measures of responses."""


def term_measures() -> dict[str, TermMeasure]:
    """Those measures of answers that are sums over rows, by their key."""
    return {key: measure for key, measure in RETURNS.items() if isinstance(measure, TermMeasure)}
