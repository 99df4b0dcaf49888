"""N-best lists in plain sentences: what the numbers mean, before the numbers."""

from __future__ import annotations

from demur.analyses.nbest import NBestEvaluation
from demur.analyses.nbest_comparison import NBestComparison, NBestPair
from demur.analyses.recalibration import Recalibrated
from demur.data.wording import Wording
from demur.views.numbers import count
from demur.views.words import interval, listed, number, p_value, percent

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

UTTERANCES = Wording("utterance", "utterances")

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
        return [f"{one.name}: the ICE of {UTTERANCES.told(one.n)} is undefined ({ice.why})."]
    share = one.figures["ice_floored_share"].value
    told = [
        f"{one.name}: ICE {number(ice.value)} ({interval(ice, number)}) on {UTTERANCES.told(one.n)} with "
        f"{_items_meant(one)} meant; {percent(share)} of these are at the floor of {one.manner.floor:g}."
    ]
    told += _part_sentences(one)
    told.append(_choice_sentence(one.figures["ser"].value, one.figures["oracle"].value))
    if one.given_out < 1 - 1e-6:
        told.append(f"On average {percent(1 - one.given_out)} of the mass belongs to no hypothesis.")
    return told


def _items_meant(one: NBestEvaluation) -> str:
    return f"{count(one.reference_items)} {'item' if one.reference_items == 1 else 'items'}"


def _choice_sentence(ser: float, oracle: float) -> str:
    """How far the top hypotheses are from the best of the lists; errors may outnumber the items, so no shares.

    >>> _choice_sentence(0.25, 0.2)
    'The top hypothesis makes 25 errors per 100 items meant, the best of each list 20: choosing better within the \
lists could mend 20 % of them.'
    """
    made, least = (percent(rate).removesuffix(" %") for rate in (ser, oracle))
    told = f"The top hypothesis makes {made} errors per 100 items meant, the best of each list {least}"
    if ser <= 0:
        return f"{told}."
    if oracle >= ser:
        return f"{told}: no other choice within the lists would help."
    return f"{told}: choosing better within the lists could mend {percent((ser - oracle) / ser)} of them."


def _part_sentences(one: NBestEvaluation) -> list[str]:
    ice = one.figures["ice"].value
    missing, mendable = one.parts["missing"], one.parts["miscalibration"]
    if not ice > 0:
        return []
    told = [
        f"{percent(missing.value / ice)} of it are items that no hypothesis holds; only better or longer lists help."
    ]
    gain = f"recalibrating could win back {number(mendable.value)} ({interval(mendable, number)})"
    if mendable.value / ice < MUCH:
        return [*told, f"Confidences are about right: {gain}."]
    if mendable.low > 0:
        return [*told, f"Confidences are off: {gain}."]
    return [*told, f"Confidences look off, but that is not shown: {gain}."]


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
    tested = "not tested" if one.p_adjusted != one.p_adjusted else p_value(one.p_adjusted)
    gap = f"ICE of {pair.a} less that of {pair.b}: {one.value:+.4g}{spans}, {tested}"
    if verdict == "no difference shown":
        told = [f"{pair.a} and {pair.b}: no difference shown. {gap}."]
    else:
        best, other = (pair.a, pair.b) if verdict == "a is better" else (pair.b, pair.a)
        told = [f"{best} is better than {other}. {gap}."]
    against = [NAMES[key] for key in ("wser", "oracle", "nce", "f1") if _opposed(pair, key)]
    if against:
        told.append(f"{listed(against)} {'says' if len(against) == 1 else 'say'} the opposite.")
    return told


def _opposed(pair: NBestPair, key: str) -> bool:
    sides = {pair.verdict, pair.side(key)}
    return sides == {"a is better", "b is better"}


def recalibration_sentences(change: Recalibrated) -> list[str]:
    """What recalibrating on another file did."""
    one = change.differences["ice"]
    if one.why is not None:
        return [f"{change.system}: recalibrated on {change.fitted_on:,} items of another file; the ICE is undefined."]
    spans = "" if one.low != one.low else f" ({number(one.low)} to {number(one.high)})"
    before, after = number(change.before["ice"]), number(change.after["ice"])
    return [
        f"{change.system}: recalibrated on {change.fitted_on:,} items of another file, the ICE goes from {before} to "
        f"{after}; change {one.value:+.4g}{spans}."
    ]
