"""Word lattices: arc posteriors, best paths, and clustering into confusion networks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from demur.errors import DataError
from demur.nbest_lists.asr.networks import Network


class Arc(NamedTuple):
    """A word from one node to another, with its log score; "" is no word."""

    start: int
    end: int
    word: str
    score: float


@dataclass(frozen=True, slots=True)
class Lattice:
    """Nodes in time and the words between them, from one first node to one last, without cycles."""

    arcs: tuple[Arc, ...]
    start: int
    end: int
    times: Mapping[int, float] | None = None
    """Seconds from the start by node; None where the nodes have none."""
    where: str = "lattice"
    """What faults call it."""
    order: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The nodes, each before those that its arcs lead to."""

    def __post_init__(self) -> None:
        if not self.arcs:
            raise DataError("must have arcs", where=self.where)
        object.__setattr__(self, "order", _order(self.arcs, self.where))
        if _forward(self).get(self.end, -math.inf) == -math.inf:
            fix = "name start and end in the header, or mend the arcs"
            raise DataError(f"must lead from node {self.start} to node {self.end}", where=self.where, fix=fix)


def posteriors(lattice: Lattice) -> list[float]:
    """For each arc the share of the probability of all paths that takes it, by the forward-backward algorithm.

    >>> two = Lattice((Arc(0, 1, "thai", math.log(0.6)), Arc(0, 1, "tie", math.log(0.2))), 0, 1)
    >>> [round(p, 3) for p in posteriors(two)]
    [0.75, 0.25]
    """
    forward, backward = _forward(lattice), _backward(lattice)
    whole = forward[lattice.end]
    return [
        math.exp(min(forward.get(arc.start, -math.inf) + arc.score + backward.get(arc.end, -math.inf) - whole, 0.0))
        for arc in lattice.arcs
    ]


def best_path(lattice: Lattice) -> list[int]:
    """The numbers of the arcs on the most probable path, first to last."""
    leaving = arcs_by(lattice.arcs, "start")
    score_of, came_by = {lattice.start: 0.0}, dict[int, int]()
    for node in lattice.order:
        for number in leaving.get(node, ()) if node in score_of else ():
            arc = lattice.arcs[number]
            score = score_of[node] + arc.score
            if score > score_of.get(arc.end, -math.inf):
                score_of[arc.end], came_by[arc.end] = score, number
    path: list[int] = []
    node = lattice.end
    while node != lattice.start:
        path.append(came_by[node])
        node = lattice.arcs[path[-1]].start
    return path[::-1]


def times(lattice: Lattice) -> Mapping[int, float]:
    """The time of each node; where there are none, how many arcs it is from the start at most."""
    if lattice.times is not None:
        return lattice.times
    depth = dict.fromkeys(lattice.order, 0.0)
    leaving = arcs_by(lattice.arcs, "start")
    for node in lattice.order:
        for number in leaving.get(node, ()):
            end = lattice.arcs[number].end
            depth[end] = max(depth[end], depth[node] + 1)
    return depth


def arcs_by(arcs: Iterable[Arc], side: str) -> dict[int, list[int]]:
    """The numbers of the arcs by the node they start from, or end at."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for number, arc in enumerate(arcs):
        numbers[arc.start if side == "start" else arc.end].append(number)
    return dict(numbers)


def _forward(lattice: Lattice) -> dict[int, float]:
    """Log of the summed probability of all ways from the start to each node that can be reached."""
    into = arcs_by(lattice.arcs, "end")
    reached = {lattice.start: 0.0}
    for node in lattice.order:
        ways = [lattice.arcs[number] for number in into.get(node, ())]
        scores = [reached[arc.start] + arc.score for arc in ways if arc.start in reached]
        if scores and node != lattice.start:
            reached[node] = _log_of_sum(scores)
    return reached


def _backward(lattice: Lattice) -> dict[int, float]:
    """Log of the summed probability of all ways to the end from each node that leads there."""
    leaving = arcs_by(lattice.arcs, "start")
    reached = {lattice.end: 0.0}
    for node in reversed(lattice.order):
        ways = [lattice.arcs[number] for number in leaving.get(node, ())]
        scores = [reached[arc.end] + arc.score for arc in ways if arc.end in reached]
        if scores and node != lattice.end:
            reached[node] = _log_of_sum(scores)
    return reached


def _log_of_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(one - top) for one in logs))


def _order(arcs: Sequence[Arc], where: str) -> tuple[int, ...]:
    following: dict[int, list[int]] = defaultdict(list)
    waiting_for: dict[int, int] = {}
    for arc in arcs:
        following[arc.start].append(arc.end)
        waiting_for.setdefault(arc.start, 0)
        waiting_for[arc.end] = waiting_for.get(arc.end, 0) + 1
    ready = [node for node, count in waiting_for.items() if not count]
    order: list[int] = []
    while ready:
        order.append(ready.pop())
        for node in following[order[-1]]:
            waiting_for[node] -= 1
            if not waiting_for[node]:
                ready.append(node)
    if len(order) < len(waiting_for):
        cycle = " -> ".join(map(str, _cycle(following, {node for node, count in waiting_for.items() if count})))
        raise DataError("must not have a cycle", where=where, got=f"nodes {cycle}", fix="time runs forward only")
    return tuple(order)


def _cycle(following: Mapping[int, Sequence[int]], stuck: set[int]) -> list[int]:
    """A cycle among nodes that wait for one another: going back from any of them leads into one."""
    before = {node: source for source in sorted(stuck) for node in following[source] if node in stuck}
    node, passed = min(stuck), []
    while node not in passed:
        passed.append(node)
        node = before[node]
    return [node, *reversed(passed[passed.index(node) :])]


PRUNE = 1e-4
"""Arcs less probable than this are left out of a network, unless they are on the best path."""

_ROUNDING = 1e-12
"""What is left to 1 in a slot and is no more than this is no probability but an error of rounding."""


def network(lattice: Lattice, *, prune: float = PRUNE) -> Network:
    """The confusion network of a lattice, in the manner of Mangu, Brill and Stolcke (2000).

    Arcs that overlap in time, and of which no path takes one after the other, come together in one slot: first arcs of
    the same word, then those of different ones, and always the two groups next whose overlap, as a share of their
    lengths, times their probabilities is the largest. (How alike two words sound plays no part.) Slots follow one
    another as the arcs do on every path; where no path tells, by time. In a slot equal words add up, and what is left
    to 1 is the empty word. Where the nodes have no times, how many arcs they are from the start at most stands in.

    >>> from demur.nbest_lists.asr.lattices import Arc
    >>> (slot,) = network(Lattice((Arc(0, 1, "thai", math.log(0.75)), Arc(0, 1, "", math.log(0.25))), 0, 1)).slots
    >>> [(word, round(probability, 9)) for word, probability in slot]
    [('thai', 0.75), ('', 0.25)]
    """
    probable = posteriors(lattice)
    kept = set(best_path(lattice)) | {number for number, p in enumerate(probable) if p >= prune and p > 0}
    clusters = _Clusters(lattice, [number for number in sorted(kept) if lattice.arcs[number].word], probable)
    clusters.merge(same_word=True)
    clusters.merge(same_word=False)
    return Network(tuple(_slot(cluster) for cluster in clusters.in_order()))


@dataclass(slots=True)
class _Cluster:
    """Arcs of which every path takes one at most: their words, and when they are said on average."""

    words: dict[str, float]
    mass: float
    start: float
    end: float
    grown: int = 0

    def joined(self, other: _Cluster) -> _Cluster:
        mass = self.mass + other.mass
        words = dict(self.words)
        for word, probability in other.words.items():
            words[word] = words.get(word, 0.0) + probability
        start = (self.mass * self.start + other.mass * other.start) / mass
        end = (self.mass * self.end + other.mass * other.end) / mass
        return _Cluster(words, mass, start, end, self.grown + 1)

    def likeness(self, other: _Cluster) -> float:
        """Overlap as a share of both lengths, weighted by both probabilities; only of clusters that do overlap."""
        overlap = min(self.end, other.end) - max(self.start, other.start)
        return overlap / (self.end - self.start + other.end - other.start) * self.mass * other.mass


_Pair: TypeAlias = tuple[float, int, int, int]
"""Minus the likeness of two clusters, the two, and how often they had been joined with others by then."""


class _Clusters:
    """Clusters with their order: which must come after, and before, each, as bits of a number."""

    def __init__(self, lattice: Lattice, numbers: Sequence[int], probable: Sequence[float]) -> None:
        at = times(lattice)
        arcs = [lattice.arcs[number] for number in numbers]
        self.clusters: dict[int, _Cluster] = {
            key: _Cluster({arc.word: probable[number]}, probable[number], at[arc.start], at[arc.end])
            for key, (number, arc) in enumerate(zip(numbers, arcs, strict=True))
        }
        starting, ending = defaultdict[int, int](int), defaultdict[int, int](int)
        for key, arc in enumerate(arcs):
            starting[arc.start] |= 1 << key
            ending[arc.end] |= 1 << key
        ahead, behind = _ahead(lattice, starting), _behind(lattice, ending)
        self.after = {key: ahead[arc.end] for key, arc in enumerate(arcs)}
        self.before = {key: behind[arc.start] for key, arc in enumerate(arcs)}

    def merge(self, *, same_word: bool) -> None:
        """Join clusters that compete, the most alike first, until there are none."""
        keys = list(self.clusters)
        waiting = [
            pair for place, key in enumerate(keys) for pair in self._competitors(key, keys[place + 1 :], same_word)
        ]
        heapify(waiting)
        while waiting:
            pair = heappop(waiting)
            _, first, second, _ = pair
            if self._up_to_date(pair) and not bool((self.after[first] | self.before[first]) >> second & 1):
                self._join(first, second)
                for newer in self._competitors(first, self.clusters, same_word):
                    heappush(waiting, newer)

    def in_order(self) -> Iterator[_Cluster]:
        """The clusters, each after those that must come before it, else by time."""
        ready = [(one.start, one.end, key) for key, one in self.clusters.items() if not self.before[key]]
        heapify(ready)
        passed = 0
        while ready:
            key = heappop(ready)[2]
            passed |= 1 << key
            yield self.clusters[key]
            for later in _bits(self.after[key]):
                one = self.clusters[later]
                if not self.before[later] & ~passed:
                    heappush(ready, (one.start, one.end, later))

    def _competitors(self, key: int, rivals: Iterable[int], same_word: bool) -> Iterator[_Pair]:
        one, clusters = self.clusters[key], self.clusters
        start, end, ordered = one.start, one.end, self.after[key] | self.before[key] | 1 << key
        for rival in rivals:
            other = clusters[rival]
            if (
                other.start < end
                and start < other.end
                and not ordered >> rival & 1
                and (not same_word or one.words.keys() == other.words.keys())
            ):
                yield -one.likeness(other), min(key, rival), max(key, rival), one.grown + other.grown

    def _up_to_date(self, pair: _Pair) -> bool:
        _, first, second, grown = pair
        if first not in self.clusters or second not in self.clusters:
            return False
        return self.clusters[first].grown + self.clusters[second].grown == grown

    def _join(self, kept: int, gone: int) -> None:
        self.clusters[kept] = self.clusters[kept].joined(self.clusters.pop(gone))
        bit, lost = 1 << kept, ~(1 << gone)
        self.after[kept] |= self.after.pop(gone)
        self.before[kept] |= self.before.pop(gone)
        after, before = self.after[kept], self.before[kept]
        for key in _bits(before):
            self.after[key] = (self.after[key] | after | bit) & lost
        for key in _bits(after):
            self.before[key] = (self.before[key] | before | bit) & lost


def _ahead(lattice: Lattice, starting: dict[int, int]) -> dict[int, int]:
    """By node, the clusters that start there or further on."""
    leaving = arcs_by(lattice.arcs, "start")
    ahead: dict[int, int] = {}
    for node in reversed(lattice.order):
        mask = starting.get(node, 0)
        for number in leaving.get(node, ()):
            mask |= ahead[lattice.arcs[number].end]
        ahead[node] = mask
    return ahead


def _behind(lattice: Lattice, ending: dict[int, int]) -> dict[int, int]:
    """By node, the clusters that end there or further back."""
    into = arcs_by(lattice.arcs, "end")
    behind: dict[int, int] = {}
    for node in lattice.order:
        mask = ending.get(node, 0)
        for number in into.get(node, ()):
            mask |= behind[lattice.arcs[number].start]
        behind[node] = mask
    return behind


def _bits(mask: int) -> Iterator[int]:
    """The places of the ones in a number; far quicker in its digits than by arithmetic with thousands of bits.

    >>> list(_bits(0b1101))
    [0, 2, 3]
    """
    digits = f"{mask:b}"[::-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)


def _slot(cluster: _Cluster) -> tuple[tuple[str, float], ...]:
    """The words of a cluster, the most probable first, and the empty word for what they leave to 1."""
    mass = math.fsum(cluster.words.values())
    rest = 1 - mass
    words = sorted(cluster.words.items(), key=lambda one: (-one[1], one[0]))
    if rest > _ROUNDING:
        return (*words, ("", rest))
    return tuple((word, probability / mass) for word, probability in words)
