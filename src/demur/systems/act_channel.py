"""A noisy line for acts: values of slots become others that sound like them, in N-best lists with confidences.

Names of acts and of slots come through. Confidences are calibrated as those of words are (`channel_lists`). For noise
that can change whole acts, degrade texts (`channel`) and parse what is heard, as the restaurant guide does.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from demur.data.acts import Act, Slot, parse_acts, print_acts
from demur.data.recognition import Network
from demur.errors import UsageError
from demur.systems.channel import generator
from demur.systems.channel_lists import posterior, slot
from demur.systems.confusion import paths
from demur.systems.sound_alikes import SoundAlikes, required

ACTS = 10
"""Acts of a list where nobody says how many."""


@dataclass(frozen=True, kw_only=True)
class ActChannel:
    """A recogniser that mishears each value of a slot with the chance `rate`.

    `values` are those that each slot can have; slots that are not named, or have a single value, come through. What
    is heard of an utterance depends on the seed, its act and its id only.

    >>> line = ActChannel(values={"food": ["thai", "turkish", "chinese"]}, rate=0.0)
    >>> line.heard(["inform(food=thai)"])
    [[{'act': 'inform(food=thai)', 'confidence': 1.0}]]
    """

    values: Mapping[str, Sequence[str]]
    rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        required()
        if not 0 <= self.rate <= 1:
            raise UsageError(f"the rate at which values are misheard lies from 0 to 1; got {self.rate:g}")

    def heard(
        self, acts: Sequence[str], ids: Sequence[Hashable] | None = None, *, n: int = ACTS
    ) -> list[list[dict[str, Any]]]:
        """At most n acts with confidences for each utterance, what was heard first; without ids each act is its own."""
        if n < 1:
            raise UsageError(f"a list has at least one act; asked for {n}")
        ids = acts if ids is None else ids
        if len(ids) != len(acts):
            raise UsageError(f"there must be an id for each act; got {len(ids)} for {len(acts)}")
        return [self._list(parse_acts(act), name, n) for act, name in zip(acts, ids, strict=True)]

    @cached_property
    def _alikes(self) -> dict[str, SoundAlikes]:
        return {name: SoundAlikes(values) for name, values in self.values.items() if len(set(values)) > 1}

    def _list(self, acts: tuple[Act, ...], name: Hashable, n: int) -> list[dict[str, Any]]:
        rng = generator(self.seed, name, "acts")
        network = Network(tuple(self._slot(one, rng) for one in self._confusable(acts)))
        found: dict[str, float] = {}
        for path in paths(network):
            found.setdefault(print_acts(self._filled(acts, iter(path.words))), math.exp(path.logprob))
            if len(found) == n:
                break
        # rounded down, so that no list sums to more than 1
        rounded = {act: math.floor(1e4 * share + 1e-6) / 1e4 for act, share in found.items()}
        return [{"act": act, "confidence": share} for act, share in rounded.items() if share]

    def _confusable(self, acts: Sequence[Act]) -> list[Slot]:
        return [one for act in acts for one in act.slots if self._is_confusable(one)]

    def _is_confusable(self, one: Slot) -> bool:
        return self.rate > 0 and one.value is not None and one.name in self._alikes

    def _slot(self, one: Slot, rng: np.random.Generator) -> tuple[tuple[str, float], ...]:
        said = str(one.value)
        rivals = self._alikes[str(one.name)].of([said])[said]
        wrong, draw, rank = rng.random(3)
        heard = rivals.picked(draw) if wrong < self.rate else said
        weights = dict(zip(rivals.words, rivals.weights.tolist(), strict=True))
        # the value said may stand anywhere among the rivals of the one that was heard
        weights[said] = rivals.weights[int(rank * len(rivals.words))]
        return slot(heard, posterior(heard == said, 1 - self.rate, rng), weights)

    def _filled(self, acts: Sequence[Act], values: Iterator[str]) -> list[Act]:
        return [replace(act, slots=tuple(self._with(one, values) for one in act.slots)) for act in acts]

    def _with(self, one: Slot, values: Iterator[str]) -> Slot:
        return replace(one, value=next(values)) if self._is_confusable(one) else one
