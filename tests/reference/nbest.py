"""Measures of N-best lists by their definitions: sets, dictionaries and logarithms, utterance by utterance."""

from __future__ import annotations

from fractions import Fraction
from math import floor as whole_part
from math import log, nan
from typing import Any, NamedTuple

from hypothesis import strategies as st

Items = frozenset[str]


class Utterance(NamedTuple):
    """What was meant, and what was hypothesised with which confidence: acts as text, or lists of items."""

    reference: Any
    hypotheses: list[tuple[Any, float]]
    weight: float = 1.0
    dialogue: str | None = None


def items_of(written: str | list[str]) -> Items:
    """The names of the acts and each of their slots; acts without quotes or brackets in their values."""
    if not isinstance(written, str):
        return frozenset(written)
    found = set()
    for act in filter(None, map(str.strip, written.replace("|", "&").split("&"))):
        name, _, rest = act.partition("(")
        found.add(name.strip())
        for slot in filter(None, map(str.strip, rest.rstrip(") ").split(","))):
            found.add("=".join(part.strip() for part in slot.split("=")))
    return frozenset(found)


def meant(utterance: Utterance) -> Items:
    return items_of(utterance.reference)


def acts_of(utterance: Utterance) -> dict[Items, float]:
    """The distinct acts in the order given, each with all the confidence it got."""
    found: dict[Items, float] = {}
    for written, confidence in utterance.hypotheses:
        act = items_of(written)
        found[act] = found.get(act, 0.0) + confidence
    return found


def top_of(utterance: Utterance) -> Items | None:
    best, highest = None, -1.0
    for act, confidence in acts_of(utterance).items():
        if confidence > highest:
            best, highest = act, confidence
    return best


def confidences_of(utterance: Utterance) -> dict[str, float]:
    """c_uw of every item that is meant or hypothesised."""
    found = dict.fromkeys(meant(utterance), 0.0)
    for act, confidence in acts_of(utterance).items():
        for item in act:
            found[item] = found.get(item, 0.0) + confidence
    return {item: min(confidence, 1.0) for item, confidence in found.items()}


def errors(reference: Items, hypothesis: Items) -> int:
    """Substitutions, deletions and insertions: what is missing and what is too much pair off as substitutions."""
    missing, extra = len(reference - hypothesis), len(hypothesis - reference)
    substitutions = min(missing, extra)
    return substitutions + (missing - substitutions) + (extra - substitutions)


def divided(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else nan


def reference_items(table: list[Utterance]) -> float:
    return sum(utterance.weight * len(meant(utterance)) for utterance in table)


def ser(table: list[Utterance]) -> float:
    found = sum(u.weight * errors(meant(u), top_of(u) or frozenset()) for u in table)
    return divided(found, reference_items(table))


def wser(table: list[Utterance]) -> float:
    found = 0.0
    for u in table:
        acts = acts_of(u)
        rest = max(0.0, 1.0 - sum(acts.values()))
        found += u.weight * sum(min(c, 1.0) * errors(meant(u), act) for act, c in acts.items())
        found += u.weight * rest * errors(meant(u), frozenset())
    return divided(found, reference_items(table))


def oracle(table: list[Utterance]) -> float:
    found = 0.0
    for u in table:
        found += u.weight * min((errors(meant(u), act) for act in acts_of(u)), default=len(meant(u)))
    return divided(found, reference_items(table))


def shares(right: float, hypothesised: float, reference: float) -> dict[str, float]:
    return {
        "precision": divided(right, hypothesised),
        "recall": divided(right, reference),
        "f1": divided(2 * right, hypothesised + reference),
    }


def plain_shares(table: list[Utterance]) -> dict[str, float]:
    right = hypothesised = 0.0
    for u in table:
        top = top_of(u) or frozenset()
        right += u.weight * len(top & meant(u))
        hypothesised += u.weight * len(top)
    return shares(right, hypothesised, reference_items(table))


def weighted_shares(table: list[Utterance]) -> dict[str, float]:
    right = hypothesised = 0.0
    for u in table:
        for item, confidence in confidences_of(u).items():
            hypothesised += u.weight * confidence
            right += u.weight * confidence * (item in meant(u))
    return shares(right, hypothesised, reference_items(table))


def hypothesised_items(table: list[Utterance], population: str = "all") -> list[tuple[float, bool, float]]:
    """Confidence, whether it was meant, and weight of every item with some confidence."""
    found = []
    for u in table:
        among = top_of(u) or frozenset() if population == "top" else None
        for item, confidence in confidences_of(u).items():
            if confidence > 0 and (among is None or item in among):
                found.append((confidence, item in meant(u), u.weight))
    return found


def hypothesised_acts(table: list[Utterance]) -> list[tuple[float, bool, float]]:
    """Confidence, whether it is what was meant, and weight of every act with some confidence."""
    acts = [(min(c, 1.0), act == meant(u), u.weight) for u in table for act, c in acts_of(u).items()]
    return [one for one in acts if one[0] > 0]


def nce(held: list[tuple[float, bool, float]], floor: float = 1e-3) -> float:
    number, right = sum(weight for *_, weight in held), sum(weight for _, is_right, weight in held if is_right)
    if all(is_right for _, is_right, _ in held) or not any(is_right for _, is_right, _ in held):
        return nan
    base = -(right * log(right / number) + (number - right) * log(1 - right / number))
    stated = 0.0
    for confidence, is_right, weight in held:
        stated -= weight * cost(confidence, is_right, floor)
    return (base + stated) / base


def cost(confidence: float, is_right: bool, floor: float) -> float:
    return -log(max(confidence if is_right else 1 - confidence, floor))


def ice(table: list[Utterance], floor: float = 1e-3) -> float:
    found = 0.0
    for u in table:
        found += u.weight * sum(cost(c, item in meant(u), floor) for item, c in confidences_of(u).items())
    return divided(found, reference_items(table))


def floored_share(table: list[Utterance], floor: float = 1e-3) -> float:
    found = sum(u.weight * (confidences_of(u)[item] < floor) for u in table for item in meant(u))
    return divided(found, reference_items(table))


def ace(table: list[Utterance], floor: float = 1e-3) -> float:
    found = 0.0
    for u in table:
        acts = {meant(u): 0.0} | acts_of(u)
        found += u.weight * sum(cost(min(c, 1.0), act == meant(u), floor) for act, c in acts.items())
    return divided(found, sum(u.weight for u in table))


def act_rates(table: list[Utterance]) -> dict[str, float]:
    """How often the top act is wrong, how much mass is on wrong acts, and how often no act is right."""
    wrong = dict.fromkeys(("act_error", "act_wser", "act_oracle"), 0.0)
    for u in table:
        acts, nothing = acts_of(u), float(meant(u) != frozenset())
        right = min(acts.get(meant(u), 0.0), 1.0)
        rest = max(0.0, 1.0 - sum(acts.values()))
        wrong["act_error"] += u.weight * (nothing if not acts else top_of(u) != meant(u))
        wrong["act_wser"] += u.weight * (sum(min(c, 1.0) for c in acts.values()) - right + nothing * rest)
        wrong["act_oracle"] += u.weight * (nothing if not acts else meant(u) not in acts)
    return {key: divided(one, sum(u.weight for u in table)) for key, one in wrong.items()}


def roc_auc(table: list[Utterance]) -> float:
    """Pairs of a right and a wrong top hypothesis in which the right one is surer, ties half; no list, no answer."""
    right, wrong = [], []
    for u in table:
        top = top_of(u)
        if top is not None:
            (right if top == meant(u) else wrong).append((min(acts_of(u)[top], 1.0), u.weight))
    won = sum(v * w * ((a > b) + (a == b) / 2) for a, v in right for b, w in wrong)
    return divided(won, sum(v * w for _, v in right for _, w in wrong))


def item_ece(table: list[Utterance], bins: int = 10) -> float:
    held = hypothesised_items(table)
    gaps: dict[int, float] = {}
    for confidence, is_right, weight in held:
        place = min(whole_part(Fraction(confidence) * bins), bins - 1)
        gaps[place] = gaps.get(place, 0.0) + weight * (is_right - confidence)
    return divided(sum(map(abs, gaps.values())), sum(weight for *_, weight in held))


def pooled(shares: list[tuple[float, float]]) -> list[float]:
    """Pool adjacent violators: (right, number) at rising confidences become shares right that never fall."""
    blocks: list[list[float]] = []
    for right, number in shares:
        blocks.append([right, number, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [mine + theirs for mine, theirs in zip(blocks[-1], last, strict=True)]
    return [right / number for right, number, levels in blocks for _ in range(int(levels))]


def ice_parts(table: list[Utterance], floor: float = 1e-3) -> dict[str, float]:
    held = hypothesised_items(table)
    missed = sum(u.weight for u in table for item in meant(u) if confidences_of(u)[item] == 0)
    levels = sorted({confidence for confidence, *_ in held})
    counted = [(_weight(held, level, True), _weight(held, level, False)) for level in levels]
    fitted = pooled([(right, right + wrong) for right, wrong in counted])
    right, wrong = sum(r for r, _ in counted), sum(w for _, w in counted)

    def costs(stated: list[float]) -> float:
        pairs = zip(stated, counted, strict=True)
        return sum(r * cost(p, True, floor) + w * cost(p, False, floor) for p, (r, w) in pairs)

    given, recalibrated = costs(levels), costs(fitted)
    constant = costs([right / (right + wrong)] * len(levels)) if levels else 0.0
    parts = {
        "missing": -log(floor) * missed,
        "miscalibration": given - recalibrated,
        "discrimination": constant - recalibrated,
        "uncertainty": constant,
    }
    return {key: divided(part, reference_items(table)) for key, part in parts.items()}


def _weight(held: list[tuple[float, bool, float]], level: float, right: bool) -> float:
    return sum(weight for confidence, is_right, weight in held if confidence == level and is_right == right)


def all_measures(table: list[Utterance]) -> dict[str, float]:
    """Every measure of the registry by its key, and the ROC area."""
    return {
        "ser": ser(table),
        "wser": wser(table),
        "oracle": oracle(table),
        **act_rates(table),
        "act_nce": nce(hypothesised_acts(table)),
        "ace": ace(table),
        **plain_shares(table),
        "ice": ice(table),
        "ice_floored_share": floored_share(table),
        "nce": nce(hypothesised_items(table)),
        "nce_top": nce(hypothesised_items(table, "top")),
        **{f"weighted_{key}": value for key, value in weighted_shares(table).items()},
        "item_ece": item_ece(table),
        **ice_parts(table),
        "roc_auc": roc_auc(table),
    }


def rows_of(table: list[Utterance]) -> list[dict[str, Any]]:
    """The table as the project's own rows."""
    return [
        {
            "id": f"u{place}",
            "reference": u.reference,
            "hypotheses": [_hypothesis(written, confidence) for written, confidence in u.hypotheses],
            "weight": u.weight,
            "dialogue": u.dialogue,
        }
        for place, u in enumerate(table)
    ]


def _hypothesis(written: Any, confidence: float) -> dict[str, Any]:
    return {"act" if isinstance(written, str) else "items": written, "confidence": confidence}


WRITTEN = st.sampled_from(
    [
        "",
        [],
        "bye()",
        "bye",
        ["bye"],
        "inform(food=thai)",
        ["food=thai", "inform"],
        "inform(food=thai, area=north)",
        "inform( area = north,food=thai )",
        "inform(food=tie)",
        "inform(food=tie, area=north)",
        "inform(area=north)&bye()",
        "bye | inform(area=north)",
        "request(phone)",
        ["request", "phone", "phone"],
        ["food=thai"],
        ["a", "b", "c", "d"],
    ]
)

STEP = 64
"""Confidences that are so many parts of 1 add up without rounding, so ties are ties whatever the order of adding."""


@st.composite
def exact_lists(draw: st.DrawFn) -> list[tuple[Any, float]]:
    """Lists of which the confidences add up exactly; some end in 0 or 1, some sum to a little over 1."""
    left, found = STEP, []
    for written in draw(st.lists(WRITTEN, max_size=5)):
        part = draw(st.sampled_from([0, 1, 6, 16, 16, 32, left]))
        found.append((written, min(part, left) / STEP))
        left -= min(part, left)
    if found and not left and draw(st.booleans()):
        found[-1] = (found[-1][0], found[-1][1] + 1 / 1024)
    return found


@st.composite
def rough_lists(draw: st.DrawFn) -> list[tuple[Any, float]]:
    """Lists with any confidences that sum to at most 1."""
    written = draw(st.lists(WRITTEN, max_size=5))
    given = draw(st.lists(st.floats(0, 1), min_size=len(written), max_size=len(written)))
    whole = max(1.0, sum(given))
    return [(act, confidence / whole) for act, confidence in zip(written, given, strict=True)]


def tables(
    lists: st.SearchStrategy[list[tuple[Any, float]]] | None = None, *, smallest: int = 1, largest: int = 8
) -> st.SearchStrategy[list[Utterance]]:
    weights = st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.5])
    dialogues = st.sampled_from(["d1", "d1", "d2", "d10", None])
    utterance = st.builds(Utterance, WRITTEN, exact_lists() if lists is None else lists, weights, dialogues)
    return st.lists(utterance, min_size=smallest, max_size=largest)
