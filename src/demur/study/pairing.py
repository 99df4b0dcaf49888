"""Who meets which conditions in which order: Latin squares, and the conditions that were met least."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from demur.study.design import WozDesign
from demur.study.state import Place


def latin_square(n: int) -> list[list[int]]:
    """Orders of n conditions in which each is once at every place, and each follows each other equally often.

    For even n these are the n rows of Williams' square; for odd n its rows and their reverses, as no n rows will do.

    >>> latin_square(4)
    [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
    """
    first = [(place + 1) // 2 if place % 2 else (n - place // 2) % n for place in range(n)]
    rows = [[(start + one) % n for one in first] for start in range(n)]
    return rows if n % 2 == 0 else rows + [row[::-1] for row in rows]


def draw(*key: object) -> float:
    """A number from 0 to 1 that depends on the key only."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def plan_for(design: WozDesign, number: int, met: Mapping[tuple[str, float], int]) -> list[Place]:
    """The dialogues of the participant of this number: conditions that differ, and tasks that differ while they last.

    `met` counts how often each condition was met so far, by which a balanced order chooses.
    """
    conditions = shuffle_conditions(design)
    if design.pairing.order == "latin square":
        rows = latin_square(len(conditions))
        order = rows[number % len(rows)]
    else:
        rare = {place: met.get(conditions[place], 0) for place in range(len(conditions))}
        order = sorted(rare, key=lambda place: (rare[place], draw(design.seed, "order", number, place)))
    chosen = order[: design.dialogues_each]
    if design.pairing.order == "balanced":
        chosen = sorted(chosen, key=lambda place: draw(design.seed, "place", number, place))
    tasks = _tasks(design, number, len(chosen))
    return [(*conditions[place], task) for place, task in zip(chosen, tasks, strict=True)]


def shuffle_conditions(design: WozDesign) -> list[tuple[str, float]]:
    """The conditions in an order that the seed decides, so that the square's first row means nothing."""
    every = design.conditions
    return sorted(every, key=lambda one: draw(design.seed, "condition", *one))


def _tasks(design: WozDesign, number: int, count: int) -> list[str]:
    """Tasks, each participant beginning at another one."""
    names = sorted((task.id for task in design.tasks), key=lambda one: draw(design.seed, "task", one))
    return [names[(number + place) % len(names)] for place in range(count)]


def replacement(design: WozDesign, plan: Sequence[Place], position: int) -> list[Place] | None:
    """The plan with a system's dialogue where no wizard came; None where no system's condition is left.

    A later dialogue with a system comes first, and the wizard's takes its place. Where none is planned, it is a
    condition that the participant would not have met, at the same level if there is one.
    """
    systems = {one.name for one in design.systems}
    performer, level, task = plan[position]
    for later in range(position + 1, len(plan)):
        if plan[later][0] in systems:
            changed = list(plan)
            changed[position] = (*plan[later][:2], task)
            changed[later] = (performer, level, plan[later][2])
            return changed
    planned = {one[:2] for one in plan}
    free = [one for one in design.conditions if one[0] in systems and one not in planned]
    if not free:
        return None
    nearest = min(free, key=lambda one: (abs(one[1] - level), one))
    return [*plan[:position], (*nearest, task), *plan[position + 1 :]]
