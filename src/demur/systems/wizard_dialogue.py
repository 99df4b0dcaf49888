"""A caller fills in a form over a noisy recogniser: how wizards and a guide get through, turn by turn.

A form has a few slots. In each turn somebody says something, and each of the words is wrong with the word error rate.
Whoever performs (a wizard behind the curtain, or the guide) is after the same values with the same words; only the
repair differs. The task is completed when every slot is filled with the right value before the caller's patience is
at an end; one wrong value taken for right, and it is lost.

For given persons this is a Markov chain, so its outcome is computed (`completion`) as well as played (`completed`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]

COMPONENTS = ("confirm", "spell")
"""What the guide can do beyond asking again."""

SLOTS = 3
"""Values in a form."""
_HURRIED = 0.16
PATIENCE = {
    **dict.fromkeys((4, 5), _HURRIED / 2),
    **dict.fromkeys(range(6, 24), (1 - _HURRIED) / 18),
}
"""After how many turns callers give up, and the share of them that does: some are in a hurry, the rest vary widely."""

TELLING = 4
"""Words of an utterance from which a wizard can tell the value by context; any one heard right will do."""
BY_SOUND = 0.21
"""How often a wizard makes out the value although all of its words were misrecognised."""
ATTENTION = 0.99
"""How often a wizard gets a value that is there to be had."""
ACTED_ON = 0.24
"""How often a wizard who is mistaken acts on the mistake instead of asking back."""

SURE = 0.8
"""How often a value that the guide heard right has a confidence that seems fine."""
BOLDNESS = 0.8
"""How often a value it heard wrong seems fine when every word is wrong; less with fewer errors, as their square."""
SPELT = 5
"""Letters that tell a spelt value from the others; any one heard right will do."""
REPLY = 4
"""Words of an answer to "did you say ...?"; any one heard right tells yes from no."""
TAKEN_FOR_YES = 0.4
"""How often an answer of which no word was heard right is taken for a yes."""

ASK, REPEAT, SPELL, CONFIRM_RIGHT, CONFIRM_WRONG, FILLED, LOST = range(7)
"""Where a slot can stand; the last two end it."""
_OPEN = 5


def wizard_turns(wer: ArrayLike, skill: ArrayLike = 0.0) -> Array:
    """Where a turn leads with wizards at these word error rates: the chances of [..., from, to].

    A wizard has the value when any telling word came through, now and then from the sound alone, and otherwise mostly
    asks back. `skill` is added to the logit of having the value.

    >>> chances = wizard_turns(1.0)[ASK]
    >>> round(float(chances[FILLED]), 4) == round(ATTENTION * BY_SOUND, 4)
    True
    """
    misheard, skill = np.broadcast_arrays(np.asarray(wer, dtype=np.float64) ** TELLING, skill)
    understood = shifted(ATTENTION * (1 - (1 - BY_SOUND) * misheard), skill)
    turns = np.zeros((*understood.shape, _OPEN, LOST + 1))
    turns[..., ASK, FILLED] = understood
    turns[..., ASK, LOST] = (1 - understood) * ACTED_ON
    turns[..., ASK, ASK] = (1 - understood) * (1 - ACTED_ON)
    return turns


def guide_turns(components: Collection[str], wer: ArrayLike, articulateness: ArrayLike = 0.0) -> Array:
    """Where a turn leads with the guide that has these components: the chances of [..., from, to].

    A value has three words, and is heard right when at least two of them are. Without components the guide takes a
    value whose confidence seems fine and asks to repeat one whose does not. With `confirm` it asks "did you say ...?"
    instead of trusting its confidence. With `spell` it lets the caller spell after a no, or when a repetition was
    unsure too. `articulateness` is added to the logit of a word being right.
    """
    wer, articulateness = np.broadcast_arrays(np.asarray(wer, dtype=np.float64), articulateness)
    wrong = shifted(wer, -articulateness)
    turns = np.zeros((*wrong.shape, _OPEN, LOST + 1))
    in_trouble = SPELL if "spell" in components else REPEAT
    spoken, spelt = (1 - wrong) ** 2 * (1 + 2 * wrong), 1 - wrong**SPELT
    for at, heard, again in ((ASK, spoken, REPEAT), (REPEAT, spoken, in_trouble), (SPELL, spelt, SPELL)):
        if "confirm" in components:
            turns[..., at, CONFIRM_RIGHT] = heard
            turns[..., at, CONFIRM_WRONG] = 1 - heard
        else:
            _trust(turns, at, again, heard, wrong)
    _confirm(turns, in_trouble, wrong**REPLY)
    return turns


def _trust(turns: Array, at: int, again: int, heard: Array, wrong: Array) -> None:
    """Fill in what becomes of a value when confidence decides."""
    turns[..., at, FILLED] = heard * SURE
    turns[..., at, LOST] = (1 - heard) * BOLDNESS * wrong**2
    turns[..., at, again] = heard * (1 - SURE) + (1 - heard) * (1 - BOLDNESS * wrong**2)


def _confirm(turns: Array, after_no: int, unclear: Array) -> None:
    """Fill in what becomes of a value that the caller is asked about."""
    turns[..., CONFIRM_RIGHT, after_no] = unclear * (1 - TAKEN_FOR_YES)
    turns[..., CONFIRM_RIGHT, FILLED] = 1 - unclear * (1 - TAKEN_FOR_YES)
    turns[..., CONFIRM_WRONG, LOST] = unclear * TAKEN_FOR_YES
    turns[..., CONFIRM_WRONG, after_no] = 1 - unclear * TAKEN_FOR_YES


def shifted(probability: ArrayLike, by: ArrayLike) -> Array:
    """Probabilities with something added to their logits; 0 and 1 stay what they are.

    >>> shifted([0.0, 0.5, 1.0], np.log(3)).round(9).tolist()
    [0.0, 0.75, 1.0]
    """
    probability = np.asarray(probability, dtype=np.float64)
    odds = probability * np.exp(by)
    there: Array = odds / (odds + (1 - probability))
    return there


def completion(turns: Array, *, slots: int = SLOTS, patience: Mapping[int, float] = PATIENCE) -> Array:
    """The exact chance that the task is completed, by going through the turns with all that may have happened.

    >>> guide = guide_turns((), 0.5)  # hears half of the values right: takes .4 rightly, .1 wrongly, and asks again
    >>> [round(float(completion(guide, slots=1, patience={turns: 1.0})), 4) for turns in (1, 2)]
    [0.4, 0.6]
    """
    # standing[..., filled, at]: the chance of having so many slots filled and standing there with the next one
    standing = np.zeros((*turns.shape[:-2], slots, _OPEN))
    standing[..., 0, ASK] = 1
    done = np.zeros(turns.shape[:-2])
    total = np.zeros(turns.shape[:-2])
    for turn in range(1, max(patience) + 1):
        after = standing @ turns
        standing = after[..., :_OPEN]
        standing[..., 1:, ASK] += after[..., :-1, FILLED]
        done = done + after[..., -1, FILLED]
        total += patience.get(turn, 0.0) * done
    return total


def completed(turns: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Play one dialogue for each of the first axis of `turns`, all at once: whether its task is completed."""
    n = len(turns)
    bounds = turns.cumsum(axis=-1)
    bounds[..., LOST] = 1.0
    patience = rng.choice(list(PATIENCE), size=n, p=list(PATIENCE.values()))
    every, at, filled = np.arange(n), np.full(n, ASK), np.zeros(n, dtype=np.int64)
    going = np.ones(n, dtype=bool)
    for turn in range(1, max(PATIENCE) + 1):
        reached = (rng.random(n)[:, None] >= bounds[every, at]).sum(axis=1)
        filled += going & (reached == FILLED)
        going &= (reached != LOST) & (filled < SLOTS) & (turn < patience)
        at = np.where(reached < _OPEN, reached, ASK)
    success: NDArray[np.bool_] = filled == SLOTS
    return success
