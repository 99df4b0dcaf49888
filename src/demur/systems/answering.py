"""What a relevance model says: an answer, or why it withholds one and what it says instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from demur.show import threshold_text
from demur.systems.relevance import RelevanceClassifier
from demur.systems.tokens import words

Strategy = Literal["clarify", "stall", "change topic"]
STRATEGIES: tuple[Strategy, ...] = ("clarify", "stall", "change topic")

OFF_TOPIC: Mapping[Strategy, tuple[str, ...]] = {
    "clarify": (
        "I did not understand that. Could you put it differently?",
        "Sorry, what do you mean?",
        "Could you ask that in other words?",
    ),
    "stall": (
        "Hmm, let me think about that.",
        "That is a good question. I am not sure.",
    ),
    "change topic": (
        "I cannot help you with that. Is there something else you would like to know?",
        "Let us talk about something else.",
    ),
}
"""What is said instead of an answer, by what it does to the conversation."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The best answer to a text, how confident it is, and whether it is returned."""

    label: Any
    """None where nothing in the text is known."""
    confidence: float
    returned: bool
    text: str | None
    """What the answer says, where answers have texts."""
    nbest: tuple[tuple[Any, float], ...]
    """The best labels with their posteriors, best first."""
    why: str | None
    """Why it is withheld."""


def answered(model: RelevanceClassifier, texts: Sequence[str], *, nbest: int = 5) -> list[Answer]:
    """The answers of a model, withheld below its threshold or where nothing is known."""
    if not len(texts):
        return []
    model.check_parameters()
    posterior = model.predict_proba(texts)
    scores = model.scores(posterior)
    known = model.known(texts)
    rows = zip(texts, posterior, scores, known.tolist(), strict=True)
    return [_answer(model, found, score, nbest) if seen else _unknown(text) for text, found, score, seen in rows]


def _unknown(text: str) -> Answer:
    why = "none of its words was ever seen in training" if words(text) else "there are no words in it"
    return Answer(None, float("nan"), returned=False, text=None, nbest=(), why=why)


def _answer(model: RelevanceClassifier, posterior: Any, scores: Any, nbest: int) -> Answer:
    best = int(scores.argmax())
    order = np.lexsort((-scores, -posterior))[:nbest]
    label = _plain(model.classes_[best])
    said = None if model.answers_ is None else model.answers_[label]
    confidence = float(scores[best])
    listed = tuple((_plain(model.classes_[place]), float(posterior[place])) for place in order)
    why: str | None = None
    if model.threshold is not None and confidence < model.threshold:
        near = float(f"{confidence:.3g}") >= model.threshold
        shown = threshold_text(confidence) if near else f"{confidence:.3g}"
        why = f"its confidence {shown} is below the threshold {threshold_text(model.threshold)}"
    return Answer(label, confidence, returned=why is None, text=said, nbest=listed, why=why)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


@dataclass(slots=True)
class Conversation:
    """Answers in turn: what is said instead of an answer changes as misunderstandings follow each other.

    First the user is asked to put it differently, then time is played for, then the topic is changed; a returned
    answer begins anew.
    """

    model: RelevanceClassifier
    off_topic: Mapping[Strategy, Sequence[str]] = field(default_factory=lambda: OFF_TOPIC)
    withheld: int = 0
    """Answers withheld in a row."""
    said: dict[Strategy, int] = field(default_factory=dict)

    def turn(self, text: str) -> tuple[Answer, str, Strategy | None]:
        """The answer to a text, what is said, and by which strategy where the answer is withheld."""
        (answer,) = answered(self.model, [text])
        if answer.returned:
            self.withheld = 0
            return answer, answer.text or str(answer.label), None
        strategy = STRATEGIES[min(self.withheld, len(STRATEGIES) - 1)]
        self.withheld += 1
        lines = self.off_topic[strategy]
        place = self.said.get(strategy, 0)
        self.said[strategy] = place + 1
        return answer, lines[place % len(lines)], strategy
