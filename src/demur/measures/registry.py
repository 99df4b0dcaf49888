"""Every measure, by its key in JSON, tables and gates. A new measure is one line here."""

from demur.measures.areas import AUGRC, AURC, AUROC, EAURC, RankingSkill
from demur.measures.base import Measure, TermMeasure
from demur.measures.calibration import ECE, NCE, Brier
from demur.measures.classes import Accuracy, ClassAverage, Kappa
from demur.measures.ice_parts import Discrimination, Miscalibration, Missing, Uncertainty
from demur.measures.nbest import (
    ACE,
    ICE,
    SER,
    WSER,
    FlooredShare,
    ItemScore,
    Oracle,
    TopNCE,
    WeightedItemScore,
)
from demur.measures.returns import (
    ErrorAtNonreturn,
    ForcedError,
    NonreturnAtError,
    NonreturnFloor,
    QALDPrecision,
    QALDRecall,
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

OF_ACTS: dict[str, TermMeasure] = {
    "ser": SER(),
    "wser": WSER(),
    "oracle": Oracle(),
    "ace": ACE(),
    "precision": ItemScore("precision"),
    "recall": ItemScore("recall"),
    "f1": ItemScore("f1"),
}
"""Measures of N-best lists that are sums over rows of acts."""

OF_ITEMS: dict[str, TermMeasure] = {
    "ice": ICE(),
    "ice_floored_share": FlooredShare(),
    "nce": NCE(),
    "nce_top": TopNCE(),
    "weighted_precision": WeightedItemScore("precision"),
    "weighted_recall": WeightedItemScore("recall"),
    "weighted_f1": WeightedItemScore("f1"),
    "item_ece": ECE(),
}
"""Measures of N-best lists that are sums over rows of items."""

ICE_PARTS: dict[str, Measure] = {
    "missing": Missing(),
    "miscalibration": Miscalibration(),
    "discrimination": Discrimination(),
    "uncertainty": Uncertainty(),
}
"""What the ICE is made of, read from the threshold sweep of items."""

NBEST: dict[str, Measure] = {**OF_ACTS, **OF_ITEMS, **ICE_PARTS}
"""Measures of N-best lists."""

MEASURES: dict[str, Measure] = {**RETURNS, **CLASSES}
"""Measures of responses."""

KINDS: dict[str, type[Measure]] = {
    type(measure).__name__: type(measure) for measure in (*MEASURES.values(), *NBEST.values())
}
"""Measure classes by name, as signatures write them."""


def term_measures() -> dict[str, TermMeasure]:
    """Those measures of answers that are sums over rows, by their key."""
    return {key: measure for key, measure in RETURNS.items() if isinstance(measure, TermMeasure)}
