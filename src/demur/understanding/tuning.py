"""Parameters of a relevance model, by how well it answers training questions that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.results import Step, silent
from demur.core.stats.sweep import Sweep
from demur.returns.measures import AUGRC
from demur.understanding.relevance import RelevanceClassifier

WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7)
SHARPNESS = (0.3, 0.5, 0.7, 1.0)
"""What is tried."""

MOST = 2000
"""Questions that are left out, one at a time; of more a sample is taken."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters, and how well a model with them answers questions that it has not seen."""

    parameters: Mapping[str, Any]
    accuracy: float
    """Of questions that have an answer."""
    augrc: float
    """The area under the error-return curve, off-topic texts among the inputs where there are any: lower is better."""

    def to_dict(self) -> dict[str, Any]:
        """The setting as plain values."""
        return {**self.parameters, "accuracy": self.accuracy, "augrc": self.augrc}


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """All that was tried, the best first, and the answers of the best one to questions it has not seen."""

    settings: tuple[Setting, ...]
    responses: pl.DataFrame
    """`id`, `input`, `target` (null for off-topic texts), `prediction` and `confidence`."""

    @property
    def best(self) -> Setting:
        """The setting of least area; of equals the more accurate."""
        return self.settings[0]

    def frame(self) -> pl.DataFrame:
        """What was tried, a row each."""
        return pl.DataFrame([setting.to_dict() for setting in self.settings])


def tuned(
    model: RelevanceClassifier,
    texts: Sequence[str],
    labels: Sequence[Any],
    *,
    off_topic: Sequence[str] = (),
    answers: Mapping[Any, str] | None = None,
    weights: Sequence[float] = WEIGHTS,
    sharpness: Sequence[float] = SHARPNESS,
    seed: int = 0,
    step: Step = silent,
) -> Tuning:
    """Tries weights of the own text against all texts, and sharpness; each question is answered without itself.

    Off-topic texts count as inputs that no answer is right for, so that models are preferred that know them.
    """
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.choice(len(texts), min(MOST, len(texts)), replace=False))
    found: list[tuple[Setting, _Tried]] = []
    tries = list(product(weights, sharpness))
    for place, (weight, sharp) in enumerate(tries):
        step("tuning", place, len(tries))
        one = RelevanceClassifier(**{**model.get_params(), "question_weight": weight, "sharpness": sharp})
        one.fit(texts, labels, answers)
        tried = _Tried.of(one, asked, off_topic)
        found.append((Setting({"question_weight": weight, "sharpness": sharp}, *tried.figures(labels, asked)), tried))
    step("tuning", len(tries), len(tries))
    found.sort(key=lambda pair: (pair[0].augrc, -pair[0].accuracy))
    responses = found[0][1].frame(texts, labels, asked, off_topic)
    return Tuning(tuple(setting for setting, _ in found), responses)


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """The best label and its score for questions left out, then for off-topic texts."""

    label: Any
    confidence: Any
    known: Any
    """Whether something in the text was seen elsewhere; if not, the model withholds by itself."""

    @classmethod
    def of(cls, model: RelevanceClassifier, asked: Any, off_topic: Sequence[str]) -> _Tried:
        posterior, known = model.left_out(asked), model.known_left_out(asked)
        if len(off_topic):
            posterior = np.concatenate([posterior, model.predict_proba(off_topic)])
            known = np.concatenate([known, model.known(off_topic)])
        scores = model.scores(posterior)
        return cls(model.classes_[scores.argmax(axis=1)], scores.max(axis=1), known)

    def right(self, labels: Sequence[Any], asked: Any) -> Any:
        truth = np.asarray(list(labels))[asked]
        off = np.zeros(len(self.label) - len(asked), dtype=bool)
        return np.concatenate([self.label[: len(asked)] == truth, off]) & self.known

    def _seen(self, values: Any) -> Iterator[tuple[Any, bool]]:
        return zip(values, self.known.tolist(), strict=True)

    def figures(self, labels: Sequence[Any], asked: Any) -> tuple[float, float]:
        right = self.right(labels, asked)
        answered = Sweep.of(self.confidence[self.known], right[self.known], withheld=float((~self.known).sum()))
        area = AUGRC().finish(answered)
        return float(right[: len(asked)].mean()), float(area)

    def frame(self, texts: Sequence[str], labels: Sequence[Any], asked: Any, off_topic: Sequence[str]) -> pl.DataFrame:
        count, places = len(asked), asked.tolist()
        return pl.DataFrame(
            {
                "id": [*(f"train {place + 1}" for place in places), *(f"off {k + 1}" for k in range(len(off_topic)))],
                "input": [*(texts[place] for place in places), *off_topic],
                "target": [*(str(labels[place]) for place in places), *([None] * len(off_topic))],
                "prediction": [str(label) if seen else None for label, seen in self._seen(self.label)],
                "confidence": [float(score) if seen else None for score, seen in self._seen(self.confidence)],
                "scope": ["in"] * count + ["off"] * len(off_topic),
            }
        )
