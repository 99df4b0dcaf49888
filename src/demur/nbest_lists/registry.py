"""Measures of N-best lists, by their key in JSON, tables and gates."""

from demur.core.stats.calibration import ECE, NCE
from demur.core.stats.measure import Measure, TermMeasure
from demur.nbest_lists.measures import (
    ACE,
    ICE,
    SER,
    WSER,
    Discrimination,
    FlooredShare,
    ItemScore,
    Miscalibration,
    Missing,
    Oracle,
    TopNCE,
    Uncertainty,
    WeightedItemScore,
)
from demur.returns.classes import MEASURES

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

KINDS: dict[str, type[Measure]] = {
    type(measure).__name__: type(measure) for measure in (*MEASURES.values(), *NBEST.values())
}
"""Measure classes by name, as signatures write them."""
