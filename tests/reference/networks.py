"""Every path of a small network or lattice, one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import strategies as st

from demur.nbest_lists.asr.lattices import Arc, Lattice
from demur.nbest_lists.asr.networks import Network


def every_path(network: Network) -> list[tuple[tuple[str, ...], float]]:
    """Words (one a slot) and probability of each path that can be taken, the most probable first."""
    taken = []
    for arcs in product(*network.slots):
        probability = math.prod(p for _, p in arcs)
        if all(p > 0 for _, p in arcs):
            taken.append((tuple(word for word, _ in arcs), probability))
    return sorted(taken, key=lambda path: -path[1])


def sentences(network: Network) -> dict[tuple[str, ...], tuple[float, float]]:
    """For each sentence the probability of its best path and of all its paths together."""
    best: dict[tuple[str, ...], float] = defaultdict(float)
    whole: dict[tuple[str, ...], float] = defaultdict(float)
    for words, probability in every_path(network):
        said = tuple(word for word in words if word)
        best[said] = max(best[said], probability)
        whole[said] += probability
    return {said: (best[said], whole[said]) for said in best}


def arc_posteriors(arcs: list[tuple[int, int, float]], start: int, end: int) -> list[float]:
    """For arcs (from, to, log score): the share of the probability of all ways from start to end that takes each."""
    on: dict[int, float] = defaultdict(float)
    total = 0.0

    def follow(node: int, taken: list[int], score: float) -> None:
        nonlocal total
        if node == end:
            total += math.exp(score)
            for arc in taken:
                on[arc] += math.exp(score)
            return
        for place, (source, target, weight) in enumerate(arcs):
            if source == node:
                follow(target, [*taken, place], score + weight)

    follow(start, [], 0.0)
    return [on[place] / total for place in range(len(arcs))]


@st.composite
def lattices(draw: Any) -> Lattice:
    """Lattices of a few nodes with parallel arcs and arcs without a word; some have times, not all of them distinct."""
    last = draw(st.integers(1, 5))
    steps = st.tuples(st.integers(0, last - 1), st.integers(1, last)).filter(lambda step: step[0] < step[1])
    ends = [(node, node + 1) for node in range(last)] + draw(st.lists(steps, max_size=8))
    words, scores = st.sampled_from(["", "a", "b", "c"]), st.floats(-3, 1)
    arcs = tuple(Arc(start, end, draw(words), draw(scores)) for start, end in ends)
    gaps = [draw(st.integers(0, 3)) for _ in range(last + 1)]
    times = {node: float(sum(gaps[: node + 1])) for node in range(last + 1)}
    return Lattice(arcs, 0, last, times if draw(st.booleans()) else None)


def paths_of(lattice: Lattice) -> Iterator[tuple[int, ...]]:
    """Every path from start to end, as numbers of arcs."""
    waiting: list[tuple[int, tuple[int, ...]]] = [(lattice.start, ())]
    while waiting:
        node, taken = waiting.pop()
        if node == lattice.end:
            yield taken
        else:
            waiting += [(arc.end, (*taken, number)) for number, arc in enumerate(lattice.arcs) if arc.start == node]
