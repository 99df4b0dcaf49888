"""Confusion networks: how many 100-best lists a second, against a beam over slots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from benchmarks.measuring import Line, fastest
from demur.nbest_lists.asr.networks import Network, nbest

SLOTS, ARCS, BEST = 20, 5, 100
VOCABULARY = 1_000
NETWORKS = 200
REPEATS = 10
BAR = 0.5
"""Milliseconds a network: 2,000 networks a second."""

Sentences = dict[tuple[str, ...], float]


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    networks = made_up(NETWORKS)
    took = fastest(
        {
            "exact": partial(_for_each, nbest, networks),
            "beam": partial(_for_each, beam, networks),
        },
        repeats=REPEATS,
    )
    each = {name: seconds / NETWORKS for name, seconds in took.items()}
    size = f"{SLOTS} slots x {ARCS} arcs -> {BEST}-best"
    against = f"a beam of {BEST} over slots, {1 / each['beam']:,.0f} networks/s"
    yield Line(f"exact {size}", each["exact"] * 1000, "ms a network", BAR, f"{1 / each['exact']:,.0f} networks/s")
    yield Line(f"exact {size}: time", each["exact"] / each["beam"], "x CPU", None, against)
    gap = max(_passed_over(network) for network in networks)
    name = f"{size}: most probability that sentences with many improbable paths add to the beam's list"
    yield Line(name, gap, "of the mass", None, "the exact list, which goes by the best path of each sentence")


def made_up(n: int) -> list[Network]:
    """Networks of four words and the empty one a slot, a few of which recur, with skewed probabilities."""
    rng = np.random.default_rng(1)
    return [Network(tuple(_slot(rng) for _ in range(SLOTS))) for _ in range(n)]


def beam(network: Network, n: int) -> Sentences:
    """The n best beginnings after each slot, equal ones added up: simple, but it forgets what it once dropped."""
    best: Sentences = {(): 1.0}
    for slot in network.slots:
        longer: Sentences = {}
        for words, probability in best.items():
            for word, its_own in slot:
                said = (*words, word) if word else words
                longer[said] = longer.get(said, 0.0) + probability * its_own
        best = dict(sorted(longer.items(), key=lambda one: -one[1])[:n])
    return best


def _slot(rng: np.random.Generator) -> tuple[tuple[str, float], ...]:
    words = [f"w{number}" for number in rng.choice(VOCABULARY, ARCS - 1, replace=False)]
    weights = rng.exponential(size=ARCS) ** 3
    arcs = list(zip([*words, ""], (weights / weights.sum()).tolist(), strict=True))
    return tuple(arcs[place] for place in rng.permutation(ARCS))


def _for_each(search: Callable[[Network, int], object], networks: Iterable[Network]) -> None:
    for network in networks:
        search(network, BEST)


def _passed_over(network: Network) -> float:
    """By how much the beam's list outweighs the exact one, if it does."""
    exact = math.fsum(math.exp(sentence.logprob) for sentence in nbest(network, BEST))
    return max(0.0, math.fsum(beam(network, BEST).values()) - exact)
