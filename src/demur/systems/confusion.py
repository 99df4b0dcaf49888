"""The most probable sentences of a confusion network, found best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import compress
from operator import attrgetter, itemgetter
from typing import TypeAlias

from demur.data.recognition import Network, Sentence
from demur.errors import UsageError

_probability = itemgetter(1)
_logprob = attrgetter("logprob")


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
            arcs = sorted(slot, key=_probability, reverse=True) if len(slot) > 1 else slot
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
    silent, spoken = _parted(network)
    choices = _Choices.of(spoken)
    slots = [dict(slot) for slot in spoken]
    twins = _twins(slots)
    best = choices.logprob + silent
    found: dict[tuple[str, ...], Sentence] = {}
    for cost, detours in _detours(choices.alternatives):
        words, probabilities = _along(choices, detours)
        said = tuple(compress(words, words))
        if said not in found:
            logprob = best - cost
            if twins and _has_other_paths(words, twins):
                logprob = max(logprob, best + _whole(said, slots, choices.probabilities))
            found[said] = Sentence(said, logprob, tuple(compress(probabilities, words)))
            if len(found) == n:
                break
    return sorted(found.values(), key=_logprob, reverse=True)


def _parted(network: Network) -> tuple[float, list[_Slot]]:
    """Log probability of the slots that are surely silent, of which real networks are full, and the other slots."""
    spoken = [slot for slot in network.slots if len(slot) > 1 or slot[0][0]]
    if len(spoken) == len(network.slots):
        return 0.0, spoken
    return math.fsum(math.log(slot[0][1]) for slot in network.slots if len(slot) == 1 and not slot[0][0]), spoken


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


def _whole(said: Sequence[str], slots: Sequence[Mapping[str, float]], best: Sequence[float]) -> float:
    """Log of the summed probability of all paths that give the sentence, over that of the best path of all."""
    reached = {0: 1.0}
    for slot, top, low, high in zip(slots, best, *_progress(said, slots), strict=True):
        skipped = slot.get("", 0.0) / top
        onward: dict[int, float] = {}
        for at in range(low, high + 1):
            mass = reached.get(at, 0.0) * skipped
            if at:
                mass += reached.get(at - 1, 0.0) * slot.get(said[at - 1], 0.0) / top
            onward[at] = mass
        reached = onward
    whole = reached[len(said)]
    return math.log(whole) if whole > 0 else -math.inf


def _progress(said: Sequence[str], slots: Sequence[Mapping[str, float]]) -> tuple[list[int], list[int]]:
    """How many words are said at least and at most after each slot, on any path that gives the sentence."""
    most, at = [], 0
    for slot in slots:
        if at < len(said) and said[at] in slot:
            at += 1
        most.append(at)
    least, at = [], len(said)
    for slot in reversed(slots):
        least.append(at)
        if at and said[at - 1] in slot:
            at -= 1
    return least[::-1], most
