"""What a recogniser gives: sentences with log probabilities, confusion networks, and their most probable sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from demur.errors import DataError, UsageError

EMPTY_WORDS = frozenset({"", "!null", "<eps>", "-", "<s>", "</s>", "*DELETE*"})
"""How recognisers write "no word here"; all are read as the empty word."""

ROUNDING = 1e-3
"""By how much the probabilities of a slot may exceed 1 in all: recognisers print few digits."""

SURE = ("confidence", "probability")
SCORED = ("logprob", "score")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One way to hear an utterance."""

    words: tuple[str, ...]
    logprob: float = math.nan
    """Natural logarithm of its probability, up to a constant shared by the list; NaN where none was given."""
    confidences: tuple[float, ...] | None = None
    """How sure each word is, from 0 to 1; None where it is not known."""

    @property
    def text(self) -> str:
        """The words with spaces between.

        >>> Sentence(("thai", "food")).text
        'thai food'
        """
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Network:
    """A confusion network: slots one after the other, each a choice among words with their probabilities.

    The word "" stands for no word. A word occurs once in a slot. A slot's probabilities sum to 1 or, where its rare
    words were cut off, to less.
    """

    slots: tuple[tuple[tuple[str, float], ...], ...]

    def __post_init__(self) -> None:
        for place, slot in enumerate(self.slots, start=1):
            if len(dict(slot)) < len(slot):
                raise DataError("must not have a word twice", where=f"slot {place}", fix="add their probabilities up")
            if not any(probability > 0 for _, probability in slot):
                raise DataError("must have an arc of positive probability", where=f"slot {place}")


def sentences_of(value: object, where: str) -> list[Sentence]:
    """Read a list of sentences as the column `asr` holds it.

    >>> sentences_of([{"text": "thai food", "logprob": -0.5}, "tie food"], "d1/0")[1].words
    ('tie', 'food')
    """
    sentences = _list(value, "must be a list of sentences", f"{where}: asr", '[{"text": ..., "logprob": ...}]')
    return [_sentence(one, f"{where}: asr sentence {place}") for place, one in enumerate(sentences, start=1)]


def network_of(value: object, where: str, *, normalise: bool = False) -> Network:
    """Read a confusion network as the column `cnet` holds it.

    A slot is a list of arcs or `{"arcs": [...]}`; an arc is `[word, natural-log score]`, `{"word", "confidence"}` (or
    `probability`) or `{"word", "logprob"}` (or `score`). Arcs of a slot that share a word are added up. A slot that
    sums to a little over 1 is scaled to 1; one that sums to more than that only where `normalise` is set.

    >>> network_of([[["thai", -0.105], ["!null", -2.303]]], "d1/0").slots[0][1][0]
    ''
    """
    slots = _list(value, "must be a list of slots", f"{where}: cnet", "each slot a list of arcs")
    return Network(tuple(_slot(slot, f"{where}: cnet slot {k}", normalise) for k, slot in enumerate(slots, start=1)))


def _list(value: object, rule: str, where: str, fix: str) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DataError(rule, where=where, got=_excerpt_of(value), fix=fix)
    return value


def _sentence(value: object, where: str) -> Sentence:
    if isinstance(value, str):
        return Sentence(tuple(value.split()))
    if not isinstance(value, dict) or not ("text" in value or "words" in value):
        raise DataError("must have a text", where=where, got=_excerpt_of(value), fix='{"text": ..., "logprob": ...}')
    words, confidences = _words(value.get("words"), where)
    text, score = value.get("text"), _first(value, SCORED)
    if text is not None and not isinstance(text, str):
        raise DataError("must be text", where=f"{where}: text", got=_excerpt_of(text))
    if text is not None and value.get("words") is not None and tuple(text.split()) != words:
        both = f"{text} / {' '.join(words)}"
        raise DataError("must have the same words in `text` and `words`", where=where, got=both, fix="leave one out")
    logprob = math.nan if score is None else _logarithm(score, where)
    return Sentence(words if text is None else tuple(text.split()), logprob, confidences)


def _words(value: object, where: str) -> tuple[tuple[str, ...], tuple[float, ...] | None]:
    if value is None:
        return (), None
    words = _list(value, "must be a list", f"{where}: words", '[{"word", "confidence"}]')
    pairs = [_word(one, f"{where}: word {place}") for place, one in enumerate(words, start=1)]
    spoken = [pair for pair in pairs if pair[0]]
    sure = [confidence for _, confidence in spoken if confidence is not None]
    if sure and len(sure) < len(spoken):
        raise DataError("must have a confidence for every word or for none", where=f"{where}: words")
    return tuple(word for word, _ in spoken), tuple(sure) if len(sure) == len(spoken) else None


def _word(value: object, where: str) -> tuple[str, float | None]:
    if isinstance(value, str):
        return spoken_word(value), None
    if not isinstance(value, dict) or not isinstance(value.get("word"), str):
        raise DataError("must have a word", where=where, got=_excerpt_of(value), fix='{"word": ..., "confidence": ...}')
    given = _first(value, SURE)
    return spoken_word(value["word"]), None if given is None else _read_probability(given, where)


def _slot(value: object, where: str, normalise: bool) -> tuple[tuple[str, float], ...]:
    arcs = value.get("arcs") if isinstance(value, dict) else value
    if not isinstance(arcs, Sequence) or isinstance(arcs, str):
        raise DataError("must be a list of arcs", where=where, got=_excerpt_of(value), fix='or {"arcs": [...]}')
    total: dict[str, float] = {}
    for place, arc in enumerate(arcs, start=1):
        word, probability = _arc(arc, f"{where}, arc {place}")
        total[word] = total.get(word, 0.0) + probability
    mass = math.fsum(total.values())
    if mass <= 0:
        fix = "leave the slot out" if total else "a slot in which nothing is said holds the empty word"
        raise DataError("must have an arc of positive probability", where=where, fix=fix)
    if mass > 1 + ROUNDING and not normalise:
        raise DataError("must sum to at most 1", where=where, got=round(mass, 6), fix="normalise, if it is no mistake")
    scale = max(mass, 1.0)
    return tuple((word, probability / scale) for word, probability in total.items())


def _arc(value: object, where: str) -> tuple[str, float]:
    if isinstance(value, dict):
        word, sure, scored = value.get("word"), _first(value, SURE), _first(value, SCORED)
    elif isinstance(value, Sequence) and len(value) == 2:
        word, sure, scored = value[0], None, value[1]
    else:
        fix = "[word, natural-log score]"
        raise DataError("must be a word with its score", where=where, got=_excerpt_of(value), fix=fix)
    if not isinstance(word, str):
        raise DataError("must be text", where=f"{where}: word", got=_excerpt_of(word), fix='"" where nothing is said')
    if sure is None and scored is None:
        raise DataError("must have a confidence or a logprob", where=where, got=_excerpt_of(value))
    return spoken_word(word), math.exp(_logarithm(scored, where)) if sure is None else _read_probability(sure, where)


def spoken_word(word: str) -> str:
    """The word, or "" for any way of writing that there is none.

    >>> spoken_word("thai"), spoken_word("!null")
    ('thai', '')
    """
    return "" if word in EMPTY_WORDS else word


def _first(value: dict[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _read_probability(value: object, where: str) -> float:
    number = _number(value, f"{where}: confidence")
    if not 0 <= number <= 1 + ROUNDING:
        fix = 'write a natural logarithm as "logprob"' if number < 0 else "divide a percentage by 100"
        raise DataError("must lie between 0 and 1", where=f"{where}: confidence", got=number, fix=fix)
    return min(number, 1.0)


def _logarithm(value: object, where: str) -> float:
    number = _number(value, f"{where}: logprob")
    if number > ROUNDING:
        fix = 'write a probability as "confidence"'
        raise DataError("must be a natural logarithm, at most 0", where=f"{where}: logprob", got=number, fix=fix)
    return min(number, 0.0)


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        fix = "leave the field out where it is unknown"
        raise DataError("must be a number", where=where, got=_excerpt_of(value), fix=fix)
    return float(value)


def _excerpt_of(value: object, limit: int = 60) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


_Slot: TypeAlias = tuple[tuple[str, float], ...]
_Arc: TypeAlias = tuple[float, int, str, float]
"""What it costs to take an arc instead of its slot's best; its slot, word and probability."""

_Detours: TypeAlias = "tuple[_Arc, _Detours] | None"
"""The arcs of a path that are not their slots' best, as a chain that paths share."""


@dataclass(frozen=True, slots=True)
class Path:
    """One arc out of every slot."""

    words: tuple[str, ...]
    """One for each slot; "" where none is said."""
    probabilities: tuple[float, ...]
    logprob: float

    @property
    def sentence(self) -> tuple[str, ...]:
        """The words that are said."""
        return tuple(filter(None, self.words))


@dataclass(frozen=True, slots=True)
class _Choices:
    """A network made ready for the search: its best path, and the alternatives to it, least costly slots first."""

    words: list[str]
    probabilities: list[float]
    logprob: float
    alternatives: list[list[_Arc]]

    @classmethod
    def of(cls, slots: Iterable[_Slot]) -> _Choices:
        words, probabilities, alternatives, total = [], [], [], 0.0
        log = math.log
        for place, slot in enumerate(slots):
            arcs = sorted(slot, key=itemgetter(1), reverse=True) if len(slot) > 1 else slot
            word, best = arcs[0]
            words.append(word)
            probabilities.append(best)
            total += (least := log(best))
            if len(arcs) > 1 and arcs[1][1] > 0:
                alternatives.append([(least - log(p), place, word, p) for word, p in arcs if p > 0])
        alternatives.sort(key=lambda arcs: arcs[1][0])
        return cls(words, probabilities, total, alternatives)


def paths(network: Network) -> Iterator[Path]:
    """Every path through the network, the most probable first, each once; equally probable ones in a fixed order.

    Paths are found as they are asked for: the first k take time in proportion to k log k, however many there are.
    Arcs of probability zero are on no path.

    >>> network = Network(((("thai", 0.9), ("tie", 0.1)), (("food", 0.6), ("", 0.4))))
    >>> [" ".join(path.sentence) for path in paths(network)]
    ['thai food', 'thai', 'tie food', 'tie']
    """
    choices = _Choices.of(network.slots)
    for cost, detours in _detours(choices.alternatives):
        words, probabilities = _along(choices, detours)
        yield Path(tuple(words), tuple(probabilities), choices.logprob - cost)


def nbest(network: Network, n: int) -> list[Sentence]:
    """The n sentences whose best path is the most probable, ordered by the whole probability of each.

    A sentence is what is left of a path without the empty words, so several paths may give one sentence: its
    probability is the sum over all paths through the network that give it, exactly, whether or not the search came by
    them. Which n sentences are taken goes by the best path of each: a sentence that is probable only because very
    many improbable paths give it can be passed over. The words' confidences are those along its best path. Fewer
    than n sentences come back where the network has no more.

    >>> network = Network(((("thai", 0.6), ("", 0.4)), (("thai", 0.3), ("", 0.7))))
    >>> [(sentence.text, round(math.exp(sentence.logprob), 2)) for sentence in nbest(network, 3)]
    [('thai', 0.54), ('', 0.28), ('thai thai', 0.18)]
    """
    if n < 1:
        raise UsageError(f"a list has at least one sentence; asked for {n}")
    # Slots that are surely silent, of which real networks are full, only add to the log probability.
    spoken = [slot for slot in network.slots if len(slot) > 1 or slot[0][0]]
    silent = math.fsum(math.log(slot[0][1]) for slot in network.slots if len(slot) == 1 and not slot[0][0])
    choices = _Choices.of(spoken)
    slots = [dict(slot) for slot in spoken]
    twins = _twins(slots)
    best = choices.logprob + silent
    found: dict[tuple[str, ...], Sentence] = {}
    for cost, detours in _detours(choices.alternatives):
        words, probabilities = _along(choices, detours)
        spelled = tuple(compress(words, words))
        if spelled not in found:
            logprob = best - cost
            if twins and _has_other_paths(words, twins):
                logprob = max(logprob, best + _log_of_all_paths(spelled, slots, choices.probabilities))
            found[spelled] = Sentence(spelled, logprob, tuple(compress(probabilities, words)))
            if len(found) == n:
                break
    return sorted(found.values(), key=attrgetter("logprob"), reverse=True)


def _along(choices: _Choices, detours: _Detours) -> tuple[list[str], list[float]]:
    words, probabilities = choices.words.copy(), choices.probabilities.copy()
    while detours is not None:
        (_, place, words[place], probabilities[place]), detours = detours
    return words, probabilities


def _detours(slots: Sequence[Sequence[_Arc]]) -> Iterator[tuple[float, _Detours]]:
    """Every choice of one arc a slot with its cost, the least costly first.

    A choice is made from one other only, by moving the last slot that takes a detour on to its next arc, by taking a
    detour in the slot after it as well, or by taking that one instead; as slots are ordered by the cost of their
    first detour none of these is cheaper than what it is made from, so a heap of three new choices each is enough.
    """
    yield 0.0, None
    if not slots:
        return
    heap: list[tuple[float, int, int, int, _Detours]] = [(slots[0][1][0], 0, 0, 1, None)]
    born = 0
    while heap:
        cost, _, place, rank, before = heap[0]
        arcs = slots[place]
        arc = arcs[rank]
        here = (arc, before)
        yield cost, here
        born += 3
        if rank + 1 < len(arcs):
            heapreplace(heap, (cost - arc[0] + arcs[rank + 1][0], born, place, rank + 1, before))
        else:
            heappop(heap)
        if place + 1 < len(slots):
            first = slots[place + 1][1][0]
            heappush(heap, (cost + first, born + 2, place + 1, 1, here))
            if rank == 1:
                heappush(heap, (cost - arc[0] + first, born + 1, place + 1, 1, before))


def _twins(slots: Sequence[Mapping[str, float]]) -> list[tuple[int, int, str]]:
    """The nearest two slots of a word, where all slots between them and one of the two may be skipped."""
    twins: list[tuple[int, int, str]] = []
    seen: dict[str, int] = {}
    unskippable = -1
    for place, slot in enumerate(slots):
        skippable = slot.get("", 0.0) > 0
        if not skippable:
            twins += [(seen[word], place, word) for word in slot if seen.get(word, -1) > unskippable]
            unskippable = place
            seen.clear()
        for word, probability in slot.items():
            if word and probability > 0:
                if word in seen and skippable:
                    twins.append((seen[word], place, word))
                seen[word] = place
    return twins


def _has_other_paths(words: Sequence[str], twins: Sequence[tuple[int, int, str]]) -> bool:
    """Whether the sentence of a path has other paths too; never false where it has.

    Where it has, some word of it has another slot in the gap up to the next word, or back to the one before: of the
    words that stand further right on the other path the last moves into such a gap, and likewise to the left. So from
    one slot of some word to its nearest other the path says that word alone.
    """
    for first, last, word in twins:
        here, there = words[first], words[last]
        if ((here == word and not there) or (there == word and not here)) and not any(words[first + 1 : last]):
            return True
    return False


def _log_of_all_paths(words: Sequence[str], slots: Sequence[Mapping[str, float]], best: Sequence[float]) -> float:
    """Log of the summed probability of all paths that give the sentence, over that of the best path of all."""
    most, at = [], 0  # words that any path that gives the sentence has passed after each slot, at most and at least
    for slot in slots:
        if at < len(words) and words[at] in slot:
            at += 1
        most.append(at)
    least, at = [], len(words)
    for slot in reversed(slots):
        least.append(at)
        if at and words[at - 1] in slot:
            at -= 1
    reached = {0: 1.0}
    for slot, top, low, high in zip(slots, best, reversed(least), most, strict=True):
        skipped = slot.get("", 0.0) / top
        onward: dict[int, float] = {}
        for at in range(low, high + 1):
            mass = reached.get(at, 0.0) * skipped
            if at:
                mass += reached.get(at - 1, 0.0) * slot.get(words[at - 1], 0.0) / top
            onward[at] = mass
        reached = onward
    whole = reached[len(words)]
    return math.log(whole) if whole > 0 else -math.inf
