"""Word lattices: how probable each arc is, the best path, the order and the times of nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from demur.errors import DataError


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
