"""Measures of N-best lists with confidences (Thomson et al. 2008), the parts of the ICE, and all by their key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np

from demur.core.arrays import Array
from demur.core.stats.calibration import ECE, NCE, one_where
from demur.core.stats.calibration_maps import recalibrated
from demur.core.stats.measure import Measure, SweepMeasure, TermMeasure
from demur.core.stats.sweep import Sweep, ratio
from demur.errors import UsageError
from demur.returns.classes import MEASURES

FLOOR = 1e-3
"""The least probability that a cross entropy looks at, as in the scorer of DSTC."""

PAPER_FLOOR = 1e-2
"""The round number nearest to the floors that fit the tables of Thomson et al. (2008), who do not print theirs."""

PAPER = "Thomson et al. (2008)"
_NOTHING_MEANT = "no reference holds any item"


def _check_floor(floor: float) -> None:
    if not 0 < floor < 0.5:
        raise UsageError(f"the floor of a probability must lie between 0 and 0.5; got {floor:g}")


@dataclass(frozen=True)
class _Ratio(TermMeasure):
    """The first total over the second; NaN where there is nothing to divide by."""

    def finish(self, totals: Array) -> Array:
        return ratio(totals[..., 0], totals[..., 1])

    def why_undefined(self, totals: Array) -> str:
        return _NOTHING_MEANT


@dataclass(frozen=True)
class _ErrorRate(_Ratio):
    """Errors in items over the items that were meant."""

    better: ClassVar = "lower"

    @abstractmethod
    def _errors(self, of: Any) -> Any: ...

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        return {"errors": self._errors(of), "reference": of.col("reference_items") * 1.0}


@dataclass(frozen=True)
class SER(_ErrorRate):
    """Semantic error rate of the surest hypothesis: errors in items over items meant. Lower is better.

    0 is perfect, 1 what saying nothing gives, more is possible. e = max(|ref|, |hyp|) - |both| counts substitutions,
    deletions and insertions between unordered sets. Reference: Thomson et al. (2008), section 2.1.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"act": "inform(food=thai)", "confidence": 0.7}, {"act": "inform(food=tie)", "confidence": 0.3}]
    >>> rows = explode(nbest([{"reference": "inform(food=thai, area=north)", "hypotheses": hypotheses}]))
    >>> round(SER()(rows.acts).value, 4), round(WSER()(rows.acts).value, 4), round(Oracle()(rows.acts).value, 4)
    (0.3333, 0.4333, 0.3333)
    """

    name: ClassVar = "ser"
    title: ClassVar = "semantic error rate of the top hypothesis (SER)"
    reference: ClassVar = f"{PAPER}, section 2.1"

    def _errors(self, of: Any) -> Any:
        return of.when(of.col("top")).then(of.col("errors")).otherwise(0) * 1.0


@dataclass(frozen=True)
class WSER(_ErrorRate):
    """Confidence-weighted semantic error rate, (1/Nw) sum c_uh e_uh. Lower is better, but beware.

    Mass that no hypothesis holds counts as the empty hypothesis. It is best for a list of one hypothesis at
    confidence 1, so it rewards dropping hypotheses. Reference: Thomson et al. (2008), equation 1.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.75}, {"items": ["b"], "confidence": 0.25}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> WSER()(rows.acts).value
    0.25
    """

    name: ClassVar = "wser"
    title: ClassVar = "confidence-weighted semantic error rate (WSER)"
    reference: ClassVar = f"{PAPER}, equation 1"

    def _errors(self, of: Any) -> Any:
        return of.col("confidence") * of.col("errors")


@dataclass(frozen=True)
class Oracle(_ErrorRate):
    """Oracle error rate, (1/Nw) sum min_h e_uh: that of the best hypothesis in each list. Lower is better.

    It ignores confidences, and falls with every hypothesis added. Reference: Thomson et al. (2008), section 2.2.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["c"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a", "b"], "hypotheses": hypotheses}]))
    >>> Oracle()(rows.acts).value
    0.5
    """

    name: ClassVar = "oracle"
    title: ClassVar = "oracle error rate (ORA)"
    reference: ClassVar = f"{PAPER}, section 2.2"

    def _errors(self, of: Any) -> Any:
        return of.col("best_errors") * 1.0


@dataclass(frozen=True)
class _ActRate(_Ratio):
    """Acts that are not exactly what was meant, over utterances."""

    better: ClassVar = "lower"
    interval: ClassVar = "share"

    @abstractmethod
    def _wrong(self, of: Any) -> Any: ...

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        return {"wrong": self._wrong(of), "utterances": one_where(of, of.col("rest"))}


@dataclass(frozen=True)
class ActError(_ActRate):
    """Share of utterances whose surest act is not exactly what was meant. Lower is better.

    The act-level twin of SER: an act is right or wrong as a whole. A list that says nothing is right where nothing was
    meant. Reference: Thomson et al. (2008), section 2.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a", "c"], "confidence": 0.7}, {"items": ["a", "b"], "confidence": 0.2}]
    >>> rows = explode(nbest([{"reference": ["a", "b"], "hypotheses": hypotheses}]))
    >>> ActError()(rows.acts).value, round(ActWSER()(rows.acts).value, 4), ActOracle()(rows.acts).value
    (1.0, 0.8, 0.0)
    """

    name: ClassVar = "act_error"
    title: ClassVar = "act error rate of the top hypothesis"
    reference: ClassVar = f"{PAPER}, section 2"

    def _wrong(self, of: Any) -> Any:
        return one_where(of, of.col("top") & (of.col("errors") > 0))


@dataclass(frozen=True)
class ActWSER(_ActRate):
    """Confidence-weighted act error, (1/U) sum c_uh (1 - d_uh): the mass on wrong acts. Lower is better, but beware.

    Mass that no hypothesis holds counts as the empty act. Like WSER it rewards dropping hypotheses. Reference: Thomson
    et al. (2008), equation 1 with acts for items.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.75}, {"items": ["a", "b"], "confidence": 0.25}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> ActWSER()(rows.acts).value
    0.25
    """

    name: ClassVar = "act_wser"
    title: ClassVar = "confidence-weighted act error rate"
    reference: ClassVar = f"{PAPER}, equation 1"

    def _wrong(self, of: Any) -> Any:
        return of.when(of.col("errors") > 0).then(of.col("confidence")).otherwise(0.0)


@dataclass(frozen=True)
class ActOracle(_ActRate):
    """Share of utterances whose list does not have the act that was meant. Lower is better.

    It ignores confidences, and falls with every hypothesis added. Reference: Thomson et al. (2008), section 2.2.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["c"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a", "b"], "hypotheses": hypotheses}]))
    >>> ActOracle()(rows.acts).value
    1.0
    """

    name: ClassVar = "act_oracle"
    title: ClassVar = "act oracle error rate"
    reference: ClassVar = f"{PAPER}, section 2.2"

    def _wrong(self, of: Any) -> Any:
        return one_where(of, of.col("best_errors") > 0)


@dataclass(frozen=True)
class ItemScore(TermMeasure):
    """Precision, recall or F1 of items: of the surest hypothesis, or expected under the confidences. Higher is better.

    1 is perfect. Precision is right over hypothesised, recall right over meant, F1 twice right over hypothesised and
    meant. Weighted: an item counts with its confidence, so right is the sum of c d and hypothesised the sum of c.
    Reference: Thomson et al. (2008), section 2.1.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a", "b"], "confidence": 0.6}, {"items": ["c"], "confidence": 0.2}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> round(ItemScore("precision")(rows.acts).value, 4)
    0.5
    """

    part: Literal["precision", "recall", "f1"] = "f1"

    name: ClassVar = "item_score"
    better: ClassVar = "higher"
    reference: ClassVar = f"{PAPER}, section 2.1"
    interval: ClassVar = "share"

    def __post_init__(self) -> None:
        if self.part not in ("precision", "recall", "f1"):
            raise UsageError(f'part is precision, recall or f1; got "{self.part}"')

    @property
    def title(self) -> str:  # type: ignore[override]
        """What it is called."""
        return f"{self.part.replace('f1', 'F1')} of items, top hypothesis"

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """Right items, hypothesised ones and those meant."""
        top = of.col("top")
        return {
            "right": of.when(top).then(of.col("right_items")).otherwise(0) * 1.0,
            "hypothesised": of.when(top).then(of.col("items")).otherwise(0) * 1.0,
            "reference": of.col("reference_items") * 1.0,
        }

    def finish(self, totals: Array) -> Array:
        """The share of right items."""
        right, hypothesised, meant = totals[..., 0], totals[..., 1], totals[..., 2]
        if self.part == "f1":
            return ratio(2 * right, hypothesised + meant)
        return ratio(right, hypothesised if self.part == "precision" else meant)

    def why_undefined(self, totals: Array) -> str:
        """What there is none of."""
        return "no item was hypothesised" if self.part == "precision" else _NOTHING_MEANT


@dataclass(frozen=True)
class WeightedItemScore(ItemScore):
    """Precision, recall or F1 of items expected under the confidences: an item counts with its confidence.

    1 is perfect; higher is better. Like WSER it rewards putting all mass on one hypothesis. Reference: Thomson et al.
    (2008), section 2.1.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.6}, {"items": ["b"], "confidence": 0.2}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> round(WeightedItemScore("precision")(rows.items).value, 4)
    0.75
    """

    name: ClassVar = "weighted_item_score"

    @property
    def title(self) -> str:  # type: ignore[override]
        """What it is called."""
        return f"confidence-weighted {self.part.replace('f1', 'F1')} of items"

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """Expected right items, expected hypothesised ones, and those meant."""
        return {
            "right": of.when(of.col("right")).then(of.col("confidence")).otherwise(0.0),
            "hypothesised": of.col("confidence") * 1.0,
            "reference": one_where(of, of.col("right")),
        }


@dataclass(frozen=True)
class _CrossEntropy(_Ratio):
    """Shared by the cross entropies: a floor under the probability of what came true."""

    floor: float = FLOOR

    better: ClassVar = "lower"

    def __post_init__(self) -> None:
        _check_floor(self.floor)

    def _cost(self, of: Any) -> Any:
        """-log(d c + (1 - d)(1 - c)), the probability not below the floor."""
        confidence = of.col("confidence")
        likelihood = of.when(of.col("right")).then(confidence).otherwise(1 - confidence)
        return -likelihood.clip(self.floor, 1.0).log()


@dataclass(frozen=True)
class ICE(_CrossEntropy):
    """Item-level cross entropy, (1/Nw) sum -log(d c + (1 - d)(1 - c)), natural log. Lower is better.

    0 is perfect. It is best when confidences are the true probabilities, then the entropy that is left. The floor of
    1e-3 is that of DSTC's scorer; it decides what a missed item costs, so always give it with the value. Reference:
    Thomson et al. (2008), equation 3.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["b"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> round(ICE()(rows.items).value, 4)
    1.3863
    """

    name: ClassVar = "ice"
    title: ClassVar = "item-level cross entropy (ICE)"
    reference: ClassVar = f"{PAPER}, equation 3"

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """What all items cost, and how many were meant."""
        return {"cost": self._cost(of), "reference": one_where(of, of.col("right"))}


@dataclass(frozen=True)
class FlooredShare(_CrossEntropy):
    """Share of the items meant whose probability lies below the floor of the ICE. Lower is better.

    What these cost is the floor's choice, not the system's.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a", "b"], "hypotheses": hypotheses}]))
    >>> FlooredShare()(rows.items).value
    0.5
    """

    name: ClassVar = "ice_floored_share"
    title: ClassVar = "share of meant items at the floor of the ICE"
    reference: ClassVar = PAPER
    interval: ClassVar = "share"

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """Items meant that lie below the floor, and all that were meant."""
        right, below = of.col("right"), of.col("confidence") < self.floor
        return {"floored": one_where(of, right & below), "reference": one_where(of, right)}


@dataclass(frozen=True)
class ACE(_CrossEntropy):
    """Act-level cross entropy: as ICE, with whole acts for items, and utterances for items meant. Lower is better.

    0 is perfect. It gives no credit for an act that is nearly right. Reference: Thomson et al. (2008), section 2.3.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> round(ACE()(rows.acts).value, 4)
    0.6931
    """

    name: ClassVar = "ace"
    title: ClassVar = "act-level cross entropy (ACE)"
    reference: ClassVar = f"{PAPER}, section 2.3"

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """What all acts cost, and how many were meant."""
        cost = of.when(of.col("rest")).then(0.0).otherwise(self._cost(of))
        return {"cost": cost, "reference": one_where(of, of.col("rest"))}


@dataclass(frozen=True)
class ItemNCE(NCE):
    """Normalised cross entropy over the items that some hypothesis holds: 1 - cost / entropy. Higher is better.

    1 is perfect, 0 no better than giving every item the share that is right. `clip` is the floor of the ICE, so that
    the cost is that of the same items in the ICE; sclite takes 1e-7. Junk at low confidence makes it better, although
    the lists are not. Reference: Thomson et al. (2008), section 2.2, with the minus sign its base entropy lacks.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["b"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> ItemNCE()(rows.items).value
    0.0
    """

    clip: float = FLOOR

    def _own_terms(self, of: Any) -> Mapping[str, Any]:
        right, confidence = of.col("right"), self._confidence(of)
        likelihood = of.when(right).then(confidence).otherwise(1 - confidence)
        logarithm = likelihood.clip(self.clip, 1.0).log()
        return {
            "log_likelihood": self._counted(of, logarithm),
            "right": self._counted(of, one_where(of, right)),
        }

    def _own_sums(self, chance: Array, right: Array, wrong: Array) -> Sequence[Array]:
        cost = item_cost(chance, right, wrong, self.clip).sum(axis=-1)
        return [-cost, right.sum(axis=-1, dtype=np.float64)]


@dataclass(frozen=True)
class TopNCE(ItemNCE):
    """Normalised cross entropy over the items of the surest hypothesis only. Higher is better.

    The population decides the value: over all hypothesised items it may be positive where this is negative. Reference:
    Thomson et al. (2008), section 2.2.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a", "b"], "confidence": 0.5}, {"items": ["c"], "confidence": 0.2}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> round(TopNCE()(rows.items).value, 4)
    0.0
    """

    population: ClassVar[str] = "top"
    name: ClassVar = "nce_top"
    title: ClassVar = "NCE over the top hypothesis' items"


@dataclass(frozen=True)
class ActNCE(ItemNCE):
    """Normalised cross entropy over the acts that lists give some confidence. Higher is better.

    The act-level twin of NCE; `clip` is the floor of the ACE. Reference: Thomson et al. (2008), section 2.2.

    >>> from demur.nbest_lists.table import nbest
    >>> from demur.nbest_lists.exploded import explode
    >>> hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["b"], "confidence": 0.5}]
    >>> rows = explode(nbest([{"reference": ["a"], "hypotheses": hypotheses}]))
    >>> ActNCE()(rows.acts).value
    0.0
    """

    name: ClassVar = "act_nce"
    title: ClassVar = "act-level NCE"

    def _looked_at(self, of: Any) -> Any:
        return of.col("answered") & (of.col("confidence") > 0)


def item_cost(probability: Any, right: Any, wrong: Any, floor: float) -> Array:
    """What items cost that are all believed with this probability, some of them right and some wrong."""
    surely = np.log(np.maximum(probability, floor)), np.log(np.maximum(1 - np.asarray(probability), floor))
    return np.asarray(0.0 - (right * surely[0] + wrong * surely[1]), dtype=np.float64)


@dataclass(frozen=True)
class _Part(SweepMeasure):
    """A part of the ICE, per item meant; ICE = missing + miscalibration - discrimination + uncertainty."""

    floor: float = FLOOR

    better: ClassVar[Literal["lower", "higher"]] = "lower"
    reference: ClassVar = f"{PAPER}, equation 3, split by isotonic regression as in Dimitriadis et al. (2021)"

    def __post_init__(self) -> None:
        _check_floor(self.floor)

    def finish(self, totals: Sweep) -> Array:
        right, wrong = (np.asarray(part, dtype=np.float64) for part in (totals.right, totals.wrong))
        missed = np.asarray(totals.withheld, dtype=np.float64)
        return ratio(self._cost(totals.threshold, right, wrong, missed), right.sum(axis=-1) + missed)

    @abstractmethod
    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array: ...

    def _recalibrated(self, right: Array, wrong: Array) -> Array:
        if not right.shape[-1]:
            return np.zeros(right.shape[:-1])
        flat = (part.reshape(-1, part.shape[-1]) for part in (right, wrong))
        costs = [item_cost(recalibrated(r, w), r, w, self.floor).sum() for r, w in zip(*flat, strict=True)]
        return np.reshape(np.array(costs), right.shape[:-1])

    def _constant(self, right: Array, wrong: Array) -> Array:
        rate = np.nan_to_num(ratio(right.sum(axis=-1), (right + wrong).sum(axis=-1)))
        return item_cost(rate, right.sum(axis=-1), wrong.sum(axis=-1), self.floor)

    def why_undefined(self, totals: Any) -> str:
        return _NOTHING_MEANT


@dataclass(frozen=True)
class Missing(_Part):
    """The part of the ICE of items that were meant and that no hypothesis holds, each at the floor's cost.

    Lower is better. Only better or longer lists win it back.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Missing().finish(items).item(), 4)
    3.4539
    """

    name: ClassVar = "missing"
    title: ClassVar = "ICE of items that no hypothesis holds"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return np.asarray(-np.log(self.floor) * missed)


@dataclass(frozen=True)
class Miscalibration(_Part):
    """The part of the ICE that recalibrating confidences would win back: cost as given less cost after PAV.

    Lower is better, 0 is calibrated. Where the floor is at work on the recalibrated values it may fall below 0 by a
    little, as flooring is not proper. Recalibrated means isotonic regression on the same items, so some of it is
    chance: fit on one file and apply to another to see what can be had.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Miscalibration().finish(items).item(), 4)
    0.367
    """

    name: ClassVar = "miscalibration"
    title: ClassVar = "ICE that recalibrating would win back"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        as_given = item_cost(np.clip(confidence, 0, 1), right, wrong, self.floor).sum(axis=-1)
        return np.asarray(as_given - self._recalibrated(right, wrong))


@dataclass(frozen=True)
class Discrimination(_Part):
    """What recalibrated confidences save against stating the overall share right for every item. Higher is better.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Discrimination().finish(items).item(), 4)
    0.6931
    """

    better: ClassVar[Literal["lower", "higher"]] = "higher"
    name: ClassVar = "discrimination"
    title: ClassVar = "ICE saved by telling right items from wrong"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return np.asarray(self._constant(right, wrong) - self._recalibrated(right, wrong))


@dataclass(frozen=True)
class Uncertainty(_Part):
    """What hypothesised items cost if each is believed with the overall share right. Lower is better.

    It depends on what is hypothesised, not on the confidences.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Uncertainty().finish(items).item(), 4)
    0.6931
    """

    name: ClassVar = "uncertainty"
    title: ClassVar = "ICE of the overall share right"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return self._constant(right, wrong)


OF_ACTS: dict[str, TermMeasure] = {
    "ser": SER(),
    "wser": WSER(),
    "oracle": Oracle(),
    "act_error": ActError(),
    "act_wser": ActWSER(),
    "act_oracle": ActOracle(),
    "act_nce": ActNCE(),
    "ace": ACE(),
    "precision": ItemScore("precision"),
    "recall": ItemScore("recall"),
    "f1": ItemScore("f1"),
}
"""Measures of N-best lists that are sums over rows of acts."""

OF_ITEMS: dict[str, TermMeasure] = {
    "ice": ICE(),
    "ice_floored_share": FlooredShare(),
    "nce": ItemNCE(),
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
