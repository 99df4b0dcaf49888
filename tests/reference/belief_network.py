"""Beliefs by summing over every combination of goals, histories and acts, value by value."""

from itertools import product

from demur.lab.dialogue.belief import INDIFFERENT


def enumerated(evidences, values):
    """The marginals after the last of some turns: goals and histories by slot, and the acts of the last turn.

    `values` names the values of each slot. All goals, histories and acts of all turns are tried together.
    """
    slots = list(values)
    priors = {slot: _prior(values[slot]) for slot in slots}
    paths, acts = {((), tuple(0 for _ in slots)): 1.0}, []
    for evidence in evidences:
        after, acts = {}, [0.0] * len(evidence.weights)
        for (goals, histories), weight in paths.items():
            for new in product(*(priors[slot] for slot in slots)):
                moved = weight
                for place, slot in enumerate(slots):
                    old = goals[place] if goals else None
                    moved *= _move(old, new[place], priors[slot], evidence.change)
                if not moved:
                    continue
                for act, share in enumerate(evidence.weights):
                    total, reached = moved * share, list(histories)
                    for place, slot in enumerate(slots):
                        if slot in evidence.goals:
                            potential = evidence.goals[slot][act]
                            total *= potential.values.get(new[place], potential.base)
                        if slot in evidence.histories:
                            step = evidence.histories[slot][act]
                            total *= step.weights[histories[place]]
                            reached[place] = step.leads_to[histories[place]]
                    key = (new, tuple(reached))
                    after[key] = after.get(key, 0.0) + total
                    acts[act] += total
        paths = after
    whole = sum(paths.values())
    goals = {slot: {} for slot in slots}
    histories = {slot: [0.0] * 3 for slot in slots}
    for (chosen, reached), weight in paths.items():
        for place, slot in enumerate(slots):
            goals[slot][chosen[place]] = goals[slot].get(chosen[place], 0.0) + weight / whole
            histories[slot][reached[place]] += weight / whole
    return goals, histories, [one / whole for one in acts]


def _prior(values):
    return {"dontcare": INDIFFERENT, **dict.fromkeys(values, (1 - INDIFFERENT) / len(values))}


def _move(old, new, prior, change):
    if old is None:  # before the first turn nothing is known, and a change leaves it so
        return prior[new]
    return (1 - change) * (old == new) + change * prior[new]
