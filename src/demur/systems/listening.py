"""Sentences of a trial, looked up once and scored in many ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from demur.data.recognition import Sentence
from demur.systems.hypothesising import SENTENCES, Ear, Heard, Hypothesiser
from demur.systems.parsers import Parse, parse_each
from demur.systems.scorers import ScoredActs, scored_all


@dataclass(slots=True)
class Listener:
    """Remembers the sentences of every utterance and the acts of every sentence, so that each is found once."""

    parse: Parse
    ear: Ear = "auto"
    sentences: int = SENTENCES
    _heard: dict[str, list[Sentence]] = field(default_factory=dict)
    _acts: dict[str, str] = field(default_factory=dict)

    def by(self, scorer: str, *, kept: int | None = None) -> Scoring:
        """What makes lists by a scorer from the first sentences of each utterance."""
        return Scoring(self, scorer, self.sentences if kept is None else kept)

    def heard(self, scorer: str, utterances: Sequence[Heard]) -> list[list[Sentence]]:
        """The sentences of utterances."""
        ear = Hypothesiser(scorer, self.parse, self.sentences, self.ear)
        for where, asr, cnet in utterances:
            if where not in self._heard:
                self._heard[where] = ear.sentences_of(where, asr, cnet)
        return [self._heard[where] for where, _, _ in utterances]

    def understood(self, lists: Sequence[Sequence[Sentence]]) -> dict[str, str]:
        """The acts of all sentences, of which only new ones are parsed."""
        texts = dict.fromkeys(sentence.text for one in lists for sentence in one)
        self._acts |= parse_each(self.parse, [text for text in texts if text not in self._acts])
        return self._acts


@dataclass(frozen=True, slots=True)
class Scoring:
    """One scorer over so many sentences of each utterance."""

    listener: Listener
    scorer: str
    kept: int

    def __call__(self, utterances: Sequence[Heard]) -> list[ScoredActs]:
        """The acts of each utterance with their confidences, best first."""
        lists = [one[: self.kept] for one in self.listener.heard(self.scorer, utterances)]
        acts = self.listener.understood(lists)
        names = [where for where, _, _ in utterances]
        return scored_all(lists, scorer=self.scorer, parse=acts.__getitem__, where=names)
