"""N-best lists in plain sentences: what the numbers mean, before the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from demur.analyses.nbest import NBestEvaluation
from demur.analyses.nbest_comparison import NBestComparison, NBestPair
from demur.analyses.recalibration import Recalibrated
from demur.views.words import interval, number, p_value, percent

NAMES = {
    "ice": "ICE",
    "ser": "SER, top hypothesis",
    "wser": "WSER",
    "oracle": "oracle error (ORA)",
    "nce": "NCE, all hypothesised items",
    "nce_top": "NCE, top hypothesis' items",
    "ace": "ACE",
    "precision": "precision, top hypothesis",
    "recall": "recall, top hypothesis",
    "f1": "F1, top hypothesis",
    "weighted_precision": "weighted precision",
    "weighted_recall": "weighted recall",
    "weighted_f1": "weighted F1",
    "roc_auc": "ROC area, top hypothesis",
    "item_ece": "ECE of items",
    "ice_floored_share": "meant items at the floor",
}
"""What measures of N-best lists are called in tables and figures, in the order in which they are shown."""

AS_PERCENT = frozenset(
    {
        "ser",
        "wser",
        "oracle",
        "precision",
        "recall",
        "f1",
        "weighted_precision",
        "weighted_recall",
        "weighted_f1",
        "ice_floored_share",
    }
)
"""Measures shown in percent."""

MUCH = 0.05
"""Share of the ICE from which it is worth a sentence."""


def shown(key: str, value: float) -> str:
    """A measure's value as it is read.

    >>> shown("wser", 0.2061), shown("ice", 1.86635)
    ('20.6 %', '1.866')
    """
    return percent(value) if key in AS_PERCENT else number(value)


def nbest_sentences(one: NBestEvaluation) -> list[str]:
    """What the lists of one system show."""
    ice = one.figures["ice"]
    if not ice.defined:
        return [f"{one.name}: the ICE of {one.n:,} utterances is undefined ({ice.why})."]
    share = one.figures["ice_floored_share"].value
    told = [
        f"{one.name}: ICE {number(ice.value)} ({interval(ice, number)}) on {one.n:,} utterances that mean "
        f"{one.reference_items:,} items; {percent(share)} of these are at the floor of {one.manner.floor:g}."
    ]
    told += _part_sentences(one)
    ser, oracle = one.figures["ser"].value, one.figures["oracle"].value
    told.append(
        f"The top hypothesis errs on {percent(ser)} of the items, the best of each list on {percent(oracle)}"
        + ("." if ser <= 0 else f": choosing better within the lists could mend {percent((ser - oracle) / ser)} of it.")
    )
    if one.given_out < 1 - 1e-6:
        told.append(f"On average {percent(1 - one.given_out)} of the mass belongs to no hypothesis.")
    return told


def _part_sentences(one: NBestEvaluation) -> list[str]:
    ice = one.figures["ice"].value
    missing, mendable = one.parts["missing"], one.parts["miscalibration"]
    if not ice > 0:
        return []
    told = [
        f"{percent(missing.value / ice)} of it are items that no hypothesis holds; only better or longer lists help."
    ]
    gain = f"recalibrating could win back {number(mendable.value)} ({interval(mendable, number)})"
    if mendable.value / ice >= MUCH and mendable.low > 0:
        return [*told, f"Confidences are off: {gain}."]
    return [*told, f"Confidences are about right: {gain}."]


def comparison_sentences(comparison: NBestComparison) -> list[str]:
    """What a comparison of lists shows."""
    return [sentence for pair in comparison.pairs for sentence in pair_sentences(pair)]


def pair_sentences(pair: NBestPair) -> list[str]:
    """The verdict on two systems, and the measures that say otherwise."""
    one = pair.differences["ice"]
    verdict = pair.verdict
    if one.why is not None:
        return [f"{pair.a} and {pair.b}: the ICE is {one.why}."]
    spans = "" if one.low != one.low else f" ({number(one.low)} to {number(one.high)})"
    gap = f"ICE of {pair.a} less that of {pair.b}: {one.value:+.4g}{spans}, {p_value(one.p_adjusted)}"
    if verdict == "no difference shown":
        told = [f"{pair.a} and {pair.b}: no difference shown. {gap}."]
    else:
        best, other = (pair.a, pair.b) if verdict == "a is better" else (pair.b, pair.a)
        told = [f"{best} is better than {other}. {gap}."]
    against = [NAMES[key] for key in ("wser", "oracle", "nce", "f1") if _opposed(pair, key)]
    if against:
        told.append(f"{_listed(against)} {'says' if len(against) == 1 else 'say'} the opposite.")
    return told


def _opposed(pair: NBestPair, key: str) -> bool:
    sides = {pair.verdict, pair.side(key)}
    return sides == {"a is better", "b is better"}


def recalibration_sentences(change: Recalibrated) -> list[str]:
    """What recalibrating on another file did."""
    one = change.differences["ice"]
    spans = "" if one.low != one.low else f" ({number(one.low)} to {number(one.high)})"
    before, after = number(change.before["ice"]), number(change.after["ice"])
    return [
        f"{change.system}: recalibrated on {change.fitted_on:,} items of another file, the ICE goes from {before} to "
        f"{after}; change {one.value:+.4g}{spans}."
    ]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
