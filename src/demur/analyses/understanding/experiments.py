"""The experiments of Artstein (2011), from text to error-return plot: tokenizers, growth, and one more, two stages.

Every one trains relevance models, degrades the questions that they are tested on, lets them answer, and compares the
answers as `demur.analyses.comparison` does, paired by question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from demur.analyses.comparison import Comparison, compare
from demur.analyses.understanding.material import Material
from demur.data.responses import responses
from demur.errors import UsageError
from demur.measures.areas import AUROC
from demur.measures.sweep import Sweep
from demur.show import Shown, Step, plain, silent
from demur.systems.answering import answered
from demur.systems.channel import Channel, word_errors
from demur.systems.gate import Gate, two_stage
from demur.systems.question_making import made_pairs
from demur.systems.relevance import RelevanceClassifier
from demur.systems.speech import said_and_heard
from demur.systems.tokens import parts_of, words

Name = Literal["tokenizers", "growth", "gate"]

TOKENS = ("words", "phones1", "phones2", "phones3", "mixed")
"""The lines of figures 1 and 2."""

INTERPRETER, GATE, BOTH = "own confidence", "gate", "both"
"""What an answer's confidence is in the experiment on two stages: the interpreter's, the gate's, their product."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one system learnt from, and how its answers stand before any is withheld."""

    system: str
    pairs: int
    """Questions it learnt from."""
    labels: int
    """Answers it may choose from."""
    accuracy: float
    """Share of the questions with an answer that get it, as they were heard; NaN where there are none."""
    asked: float
    """The same for the questions as they were asked."""
    scope: float
    """AUROC of the confidence: whether a question with an answer has more of it than one without."""


@dataclass(frozen=True, eq=False)
class Experiment(Shown):
    """What several systems answered to the same questions, and how they compare."""

    name: Name
    material: Material
    comparison: Comparison
    standings: tuple[Standing, ...]
    responses: pl.DataFrame
    """`system`, `id`, `input` as it was heard, `asked`, `target`, `prediction` and `confidence`."""
    wer: float
    """The word error rate that the questions have; 0 where they are as asked."""
    tokens: tuple[str, ...]
    """What texts were made of."""
    snr_db: float | None = None
    """Where questions were really spoken: how many decibels they were above the noise."""

    def frame(self) -> pl.DataFrame:
        """The answers of all systems."""
        return self.responses

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain values."""
        told = {
            "experiment": self.name,
            "data": self.material.name,
            "tokens": list(self.tokens),
            "word_error_rate": self.wer,
            "spoken_at_db": self.snr_db,
            "tested": self.material.test.height,
            "out_of_scope": self.material.out_of_scope,
            "off_topic_learnt": len(self.material.off_topic) if self.name == "gate" else 0,
            "standings": [
                {name: getattr(one, name) for name in ("system", "pairs", "labels", "accuracy", "asked", "scope")}
                for one in self.standings
            ],
        }
        return {**plain(told), **self.comparison.to_dict()}


def tokenizer_experiment(
    material: Material,
    *,
    tokens: Sequence[str] = TOKENS,
    wer: float = 0.3,
    snr_db: float | None = None,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """One model per tokenizer, the same training, tested through a recogniser that errs: figures 1 and 2.

    With `snr_db` the recogniser is a real one: questions are spoken by espeak-ng in noise and heard by pocketsphinx,
    where both are installed.
    """
    _refuse_fewer_than_two(tokens)
    trial = _Trial.of(material, wer, seed) if snr_db is None else _Trial.spoken(material, snr_db, seed)
    found = []
    for done, name in enumerate(tokens):
        step(f"training on {name}", done, len(tokens) + 1)
        model = RelevanceClassifier(tokens=name).fit(material.texts, material.labels)
        found.append(trial.answers(name, model))
    step("comparing", len(tokens), len(tokens) + 1)
    return trial.experiment("tokenizers", found, tuple(tokens), seed=seed, **sampling)


def growth_experiment(
    material: Material,
    domains: Mapping[str, str],
    *,
    tokens: str = "words",
    wer: float = 0.0,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """A character as it is, then grown by one domain after the other, tested on its own questions only: figure 3.

    The questions of the other domains are made by rule from their texts; every sentence is an answer of its own.
    """
    if not domains:
        raise UsageError("to grow, a character needs at least one text of another domain")
    trial = _Trial.of(material.in_scope(), wer, seed)
    texts, labels, found = list(material.texts), list(material.labels), []
    for done, (name, text) in enumerate([(material.name, ""), *domains.items()]):
        step(f"growing by {name}" if done else "training", done, len(domains) + 2)
        pairs = _pairs_of(name, text) if done else []
        texts += [question for question, _ in pairs]
        labels += [label for _, label in pairs]
        model = RelevanceClassifier(tokens=tokens).fit(texts, labels)
        found.append(trial.answers(f"+{done} {name}" if done else name, model))
    step("comparing", len(domains) + 1, len(domains) + 2)
    return trial.experiment("growth", found, (tokens,), seed=seed, **sampling)


def gate_experiment(
    material: Material,
    *,
    tokens: str = "words",
    wer: float = 0.0,
    seed: int = 0,
    step: Step = silent,
    **sampling: Any,
) -> Experiment:
    """The same predictions, withheld by the interpreter's own confidence, by a gate before it, or by both.

    The gate has learnt from off-topic questions; where the material keeps none apart for that, from half of them.
    """
    known = material.with_off_topic(seed=seed)
    trial = _Trial.of(known, wer, seed)
    step("training", 0, 2)
    model = RelevanceClassifier(tokens=tokens).fit(known.texts, known.labels)
    alone = trial.answers(INTERPRETER, model)
    gate = Gate(tokens=tokens).fit(known.texts, known.off_topic)
    gated = two_stage(gate, alone.heard, system=GATE)
    both = gated.with_columns(system=pl.lit(BOTH), confidence=gated["confidence"] * alone.heard["confidence"])
    found = [alone, *(_Answers(model, alone.asked, answers) for answers in (gated, both))]
    step("comparing", 1, 2)
    return trial.experiment("gate", found, (tokens,), seed=seed, **sampling)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """A system's answers to the questions as asked, and as heard."""

    model: RelevanceClassifier
    asked: pl.DataFrame
    heard: pl.DataFrame

    def standing(self) -> Standing:
        return Standing(
            system=self.heard["system"][0],
            pairs=len(self.model.label_of_),
            labels=len(self.model.classes_),
            accuracy=accuracy(self.heard),
            asked=accuracy(self.asked),
            scope=scope_auroc(self.heard),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Test questions as asked and as heard."""

    material: Material
    heard: list[str]
    wer: float
    snr_db: float | None = None

    @classmethod
    def spoken(cls, material: Material, snr_db: float, seed: int) -> _Trial:
        """Questions as a real recogniser hears them."""
        asked, ids = material.test["input"].to_list(), material.test["id"].to_list()
        heard = said_and_heard(asked, snr_db=snr_db, seed=seed, ids=ids)
        said = [words(text) for text in asked]
        errors = sum(word_errors(text, words(other)) for text, other in zip(said, heard, strict=True))
        return cls(material, heard, errors / max(sum(map(len, said)), 1), snr_db)

    @classmethod
    def of(cls, material: Material, wer: float, seed: int) -> _Trial:
        asked = material.test["input"].to_list()
        if wer == 0:
            return cls(material, asked, 0.0)
        heard = Channel(material.texts, wer=wer, seed=seed).heard(asked, material.test["id"].to_list())
        return cls(material, heard.texts, heard.wer)

    def answers(self, system: str, model: RelevanceClassifier) -> _Answers:
        test = self.material.test.with_columns(asked=pl.col("input"))
        asked = responded(system, model, test)
        if self.wer == 0 and self.snr_db is None:
            return _Answers(model, asked, asked)
        return _Answers(model, asked, responded(system, model, test.with_columns(pl.Series("input", self.heard))))

    def experiment(self, name: Name, found: Sequence[_Answers], tokens: tuple[str, ...], **sampling: Any) -> Experiment:
        table = pl.concat([answers.heard for answers in found])
        standings = tuple(answers.standing() for answers in found)
        compared = compare(responses(table), **sampling)
        return Experiment(name, self.material, compared, standings, table, self.wer, tokens, self.snr_db)


def responded(system: str, model: RelevanceClassifier, test: pl.DataFrame) -> pl.DataFrame:
    """The answers of a model as a table of responses: no prediction where it knows nothing of the question."""
    found = answered(model, test["input"].to_list(), nbest=1)
    confidence = [None if one.label is None else min(one.confidence, 1.0) for one in found]
    return test.select(
        pl.lit(system).alias("system"),
        pl.all(),
        pl.Series("prediction", [one.label for one in found], dtype=pl.String),
        pl.Series("confidence", confidence, dtype=pl.Float64),
    )


def accuracy(table: pl.DataFrame) -> float:
    """Share of the questions with an answer that get it when nothing is withheld; NaN where there are none.

    >>> accuracy(pl.DataFrame({"target": ["a", "b", None], "prediction": ["a", None, "a"]}))
    0.5
    """
    known = table.filter(pl.col("target").is_not_null())
    right = known.filter(pl.col("target") == pl.col("prediction")).height
    return right / known.height if known.height else float("nan")


def scope_auroc(table: pl.DataFrame) -> float:
    """Probability that a question with an answer has more confidence than one without, ties half; NaN without either.

    What is not answered has the least confidence.

    >>> scope_auroc(pl.DataFrame({"target": ["a", "b", None], "confidence": [0.9, None, 0.2]}))
    0.5
    """
    confidence = table["confidence"].fill_null(-1.0).to_numpy()
    sweep = Sweep.of(confidence, table["target"].is_not_null().to_numpy())
    return float(AUROC().finish(sweep))


def _pairs_of(name: str, text: str) -> list[tuple[str, str]]:
    """Questions made by rule of a text, each with the sentence it came from as the label of its answer."""
    pairs = [(pair.question, f"{name}: {pair.answer}") for pair in made_pairs(text)]
    if not pairs:
        raise UsageError(f'no question could be made by rule of the text "{name}"; give plain factual sentences')
    return pairs


def _refuse_fewer_than_two(tokens: Sequence[str]) -> None:
    for name in tokens:
        parts_of(name)
    if len(set(tokens)) < len(tokens) or len(tokens) < 2:
        raise UsageError(f"the experiment compares two or more tokenizers, each once; got {', '.join(tokens)}")
