"""Relevance models trained on pairs, tuned by how well they answer questions they have not seen, and their answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, Self, get_args

import msgspec
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.io.writing import write_table
from demur.core.options import Sampling
from demur.core.show.results import Step, silent
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.returns.evaluate import Evaluation, evaluate, joined_notes
from demur.returns.measures import AUGRC
from demur.returns.table import responses
from demur.returns.threshold import Choice, aim
from demur.understanding.pairs import Inputs, Pairs
from demur.understanding.relevance import Answer, RelevanceClassifier, answered
from demur.understanding.tokens import Tokenizer, parts_of, tokenizer

COST_RATIO = 0.5
"""What a non-return costs over what an error costs, where nobody says what the threshold is to achieve."""
NOT_WRITTEN = "the model is not written to a folder (-o MODEL_DIR)"

_BATCH = 500
_NBEST = pl.List(pl.Struct({"label": pl.String, "confidence": pl.Float64}))

WEIGHTS = (0.05, 0.1, 0.3, 0.5, 0.7)
SHARPNESS = (0.3, 0.5, 0.7, 1.0)
"""What is tried."""

MOST = 2000
"""Questions that are left out, one at a time; of more a sample is taken."""

Unknown = Literal["against", "ignored"]


class TrainedModel(RelevanceClassifier):
    """A relevance model with the pairs that it has learnt from."""

    pairs: Pairs
    files: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the pairs."""
        return self.pairs.notes if _folder(self.files) else (*self.pairs.notes, NOT_WRITTEN)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is likely a slip in the pairs, texts without a token included: nothing is learnt from them."""
        tokens = sum(np.asarray(one.counts.matrix.sum(axis=1)).ravel() for one in self.models_)
        places = np.flatnonzero(np.asarray(tokens) == 0)
        if not len(places):
            return self.pairs.warnings
        count = f"{len(places):,} texts have" if len(places) > 1 else "1 text has"
        empty = f'{count} no words, so nothing is learnt there, e.g. "{self.pairs.texts[places[0]]}"'
        return (empty, *self.pairs.warnings)

    def to_dict(self) -> dict[str, Any]:
        """The training as plain values."""
        return {
            **_training_counts(self, self.pairs),
            "model": _folder(self.files),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def train_model(pairs: Pairs, **parameters: Any) -> TrainedModel:
    """A model that has learnt from pairs."""
    model = TrainedModel(**parameters)
    refuse_no_tokens(pairs, model.tokens)
    model.pairs = pairs
    return model.fit(pairs.texts, pairs.labels, pairs.answers)


def refuse_no_tokens(pairs: Pairs, tokens: str) -> None:
    """Refuse pairs in which no text has a token."""
    makers = [tokenizer(part) for part in parts_of(tokens)]
    if not any(made(text) for text in pairs.texts for made in makers):
        raise DataError(f'no text has any {tokens} in it, e.g. "{pairs.texts[0]}"', fix="is input the right column?")


def _training_counts(model: RelevanceClassifier, pairs: Pairs) -> dict[str, Any]:
    return {
        "n": len(pairs),
        "labels": len(model.classes_),
        "vocabulary": {one.tokens: len(one.vocabulary) for one in model.models_},
        "parameters": model.get_params(),
        "answer_texts": model.answers_ is not None,
        "single_example": list(pairs.single),
        "copies": pairs.copies,
        "several_labels": [{"input": text, "targets": list(labels)} for text, labels in pairs.contradicted],
        "answers_without_questions": list(pairs.unasked),
        "labels_without_answer": list(pairs.wordless),
        "off_topic": len(pairs.off_topic),
    }


def _folder(files: Sequence[str]) -> str | None:
    """Where a command wrote the model, among the files it wrote."""
    return next((name for name in files if not Path(name).suffix), None)


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
    count = len(asked)
    trials: list[tuple[Setting, Any, Any, Any]] = []
    grid = list(product(weights, sharpness))
    for place, (weight, sharp) in enumerate(grid):
        step("tuning", place, len(grid))
        one = RelevanceClassifier(**{**model.get_params(), "question_weight": weight, "sharpness": sharp})
        one.fit(texts, labels, answers)
        posterior, known = one.left_out(asked), one.known_left_out(asked)
        if len(off_topic):
            posterior = np.concatenate([posterior, one.predict_proba(off_topic)])
            known = np.concatenate([known, one.known(off_topic)])
        scores = one.scores(posterior)
        label, confidence = one.classes_[scores.argmax(axis=1)], scores.max(axis=1)
        right = np.zeros(len(known), dtype=bool)
        right[:count] = known[:count] & (label[:count] == one.classes_[one.label_of_[asked]])
        # of a text without a known token the model withholds the answer by itself
        sweep = Sweep.of(confidence[known], right[known], withheld=float((~known).sum()))
        parameters = {"question_weight": weight, "sharpness": sharp}
        setting = Setting(parameters, float(right[:count].mean()), float(AUGRC().finish(sweep)))
        trials.append((setting, label, confidence, known))
    step("tuning", len(grid), len(grid))
    trials.sort(key=lambda trial: (trial[0].augrc, -trial[0].accuracy))
    _, label, confidence, known = trials[0]
    places, off = asked.tolist(), len(off_topic)
    responses = pl.DataFrame(
        {
            "id": [*(f"train {place + 1}" for place in places), *(f"off {place + 1}" for place in range(off))],
            "input": [*(texts[place] for place in places), *off_topic],
            "target": [*(str(labels[place]) for place in places), *([None] * off)],
            "prediction": [str(one) if seen else None for one, seen in zip(label, known, strict=True)],
            "confidence": [float(one) if seen else None for one, seen in zip(confidence, known, strict=True)],
            "scope": ["in"] * count + ["off"] * off,
        }
    )
    return Tuning(tuple(trial[0] for trial in trials), responses)


@dataclass(eq=False)
class TunedModel:
    """A model with the best parameters and a threshold, and how it answers questions that it has not seen."""

    model: RelevanceClassifier
    tuning: Tuning
    choice: Choice
    evaluation: Evaluation
    pairs: Pairs
    sampling: Sampling
    aimless: bool
    """Whether nobody said what the threshold is to achieve."""
    files: tuple[str, ...] = ()

    @property
    def off_topic(self) -> int:
        """Texts without an answer that it was tuned on."""
        return self.tuning.responses.filter(scope="off").height

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the tuning and of the pairs."""
        least, most = min(WEIGHTS), max(WEIGHTS)
        edge = self.tuning.best.parameters["question_weight"] in (least, most)
        notes = {
            "there are no off-topic texts, so every question here has an answer: a threshold found with some is "
            "safer": not self.off_topic,
            **dict.fromkeys(joined_notes([self.evaluation]), True),
            f"no aim was given, so a non-return is taken to cost {COST_RATIO:g} of an error": self.aimless,
            f"the best question weight is at the edge of those tried, {least:g} to {most:g}": edge,
            NOT_WRITTEN: _folder(self.files) is None,
            self.sampling.note: True,
        }
        return (*(note for note, holds in notes.items() if holds), *self.pairs.notes)

    def to_dict(self) -> dict[str, Any]:
        """The tuning as plain values."""
        return {
            **_training_counts(self.model, self.pairs),
            "settings": [one.to_dict() for one in self.tuning.settings],
            "best": self.tuning.best.to_dict(),
            **self.choice.to_dict(),
            "threshold": self.model.threshold,
            "model": _folder(self.files),
            "notes": list(self.notes),
            "warnings": list(self.pairs.warnings),
        }


def tune_model(
    pairs: Pairs,
    *,
    off_topic: Sequence[str],
    choose: Callable[..., Choice] | None,
    sampling: Sampling,
    step: Step = silent,
    **parameters: Any,
) -> TunedModel:
    """The best model for questions that it has not seen, with the threshold that `choose` finds on its answers."""
    if len(pairs) < 2:
        raise DataError("tuning needs two pairs or more: each is answered by what was learnt from the others")
    base = RelevanceClassifier(**parameters)
    refuse_no_tokens(pairs, base.tokens)
    strange = [*pairs.off_topic, *(text for text in off_topic if text.strip())]
    found = tuned(
        base, pairs.texts, pairs.labels, off_topic=strange, answers=pairs.answers, seed=sampling.seed, step=step
    )
    if not found.best.accuracy:
        raise DataError(
            "no question is answered right without itself, so nothing can be tuned",
            fix="every label needs a second question that shares words with the first",
        )
    (evaluation,) = evaluate(responses(found.responses, system="left-out questions"), **asdict(sampling))
    aimed = choose or aim(cost_ratio=COST_RATIO)
    choice = aimed(evaluation.sample, name=evaluation.system)
    if choice.threshold != choice.threshold:
        raise DataError(
            f"no threshold keeps to this: {choice.rule}", fix="allow more errors, or give more pairs to learn from"
        )
    # what is printed splits the answers as the exact threshold does, and is what a reader finds in the model
    best = {**base.get_params(), **found.best.parameters, "threshold": float(choice.printed_threshold)}
    model = RelevanceClassifier(**best).fit(pairs.texts, pairs.labels, pairs.answers)
    return TunedModel(model, found, choice, evaluation, pairs, sampling, aimless=choose is None)


@dataclass(eq=False)
class AnswerTable:
    """The answers of a model to the texts of a table."""

    table: pl.DataFrame = field(repr=False)
    threshold: float | None
    unknown: int
    """Texts of which no word is known."""
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each text, which `score` reads."""
        return self.table

    def counts(self) -> dict[str, int]:
        """How many texts there are, of how many nothing is known, and how many answers are returned."""
        counts = {"n": self.table.height, "unknown": self.unknown}
        return counts if self.threshold is None else {**counts, "returned": int(self.table["returned"].sum())}

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain values; the rows are left out where a file has them."""
        rows = {} if self.files else {"responses": msgspec.to_builtins(self.table.to_dicts())}
        summary = {**self.counts(), "threshold": self.threshold, **rows, "out": list(self.files)}
        return {**summary, "notes": list(self.notes), "warnings": []}


def answer_inputs(
    model: RelevanceClassifier,
    inputs: Inputs,
    *,
    nbest: int = 5,
    withhold: bool = False,
    forced: bool = False,
    step: Step = silent,
) -> AnswerTable:
    """The answers of a model to texts; with `withhold` those below its threshold have none, with `forced` all have."""
    texts, found, unknown = inputs.texts, list[Answer](), 0
    for done in range(0, len(texts), _BATCH):
        step("responding", done, len(texts))
        part = texts[done : done + _BATCH]
        found += answered(model, part, nbest=nbest, forced=forced)
        unknown += int((~model.known(part)).sum())
    given = (answer.label if answer.returned or not withhold else None for answer in found)
    labels = [None if label is None else str(label) for label in given]
    lists = [[{"label": str(label), "confidence": share} for label, share in answer.nbest] for answer in found]
    columns = [
        pl.Series("prediction", labels, dtype=pl.String),
        pl.Series("confidence", [answer.confidence for answer in found], dtype=pl.Float64).fill_nan(None),
        pl.Series("nbest", lists, dtype=_NBEST),
    ]
    if model.threshold is not None:
        columns.append(pl.Series("returned", [answer.returned for answer in found], dtype=pl.Boolean))
    columns.append(pl.Series("why", [answer.why for answer in found], dtype=pl.String))
    first = [name for name in ("id", "input", "target") if name in inputs.frame.columns]
    table = inputs.frame.select(*first, *columns, pl.exclude(first))
    return AnswerTable(table, model.threshold, unknown, inputs.notes)


def write_answers(answers: AnswerTable, path: Path) -> None:
    """Write the rows in the format of the path's ending."""
    write_table(path, answers.table)


@dataclass(frozen=True, slots=True)
class _TokenOdds:
    """Log odds of each known token to be of the domain, and those of a token that neither class has."""

    tokens: Tokenizer
    known: dict[str, float]
    unknown: float

    def mean(self, text: str) -> float:
        """Mean log odds of the tokens of a text; 0 where there are none."""
        odds = [self.known.get(token, self.unknown) for token in self.tokens(text)]
        return sum(odds) / len(odds) if odds else 0.0


class DomainGate:
    """Tells texts of a domain from others by their tokens.

    `tokens` says what texts are made of, as in `demur.understanding.tokens`; of a mixture, the log odds are averaged.
    `smoothing` is added to the count of every token in either class, and in either class there is one more token, for
    all that were never seen: a tenth, because the texts out of the domain are few as a rule, and a whole count would
    drown them. `prior` is the chance, before anything is read, that a text is in the domain: even odds, because how
    many texts of each class somebody wrote does not tell how many will come. `unknown` says what a token counts that
    neither class has: `against` the domain, by what the smoothing gives it but never for it, because a domain is
    closed and the rest of the world is not; or `ignored`, so that a text of unknown words only is as likely as the
    prior says. What counts is the mean log odds of a token, otherwise long texts would be surer than short ones.

    >>> gate = DomainGate().fit(["when do you open", "when do you close"], ["what is the capital of france"])
    >>> [round(one, 2) for one in gate.confidence(["when do you open on sundays", "is it the capital", ""]).tolist()]
    [0.84, 0.11, 0.5]
    """

    def __init__(
        self, *, tokens: str = "words", smoothing: float = 0.1, prior: float = 0.5, unknown: Unknown = "against"
    ) -> None:
        if not 0 < smoothing < math.inf:
            raise UsageError(f"smoothing must be above 0; got {smoothing}")
        if not 0 < prior < 1:
            raise UsageError(f"prior must be between 0 and 1, both excluded; got {prior}")
        if unknown not in get_args(Unknown):
            raise UsageError(f'unknown must be one of {", ".join(get_args(Unknown))}; got "{unknown}"')
        self.tokens = tokens
        self.smoothing = smoothing
        self.prior = prior
        self.unknown = unknown
        self._odds: tuple[_TokenOdds, ...] = ()

    def fit(self, in_domain: Sequence[str], out_of_domain: Sequence[str]) -> Self:
        """Learns from texts of the domain and from others; of either at least one must have a token."""
        _refuse_one_text(in_domain, out_of_domain)
        self._odds = tuple(self._learn(tokenizer(part), in_domain, out_of_domain) for part in parts_of(self.tokens))
        return self

    def _learn(self, tokens: Tokenizer, *classes: Sequence[str]) -> _TokenOdds:
        seen = [Counter(token for text in texts for token in tokens(text)) for texts in classes]
        for name, counter in zip(("in", "out of"), seen, strict=True):
            if not counter:
                rule = f"there is no text {name} the domain that has {tokens.name}"
                raise DataError(rule, fix="the gate needs texts of both classes to tell them apart")
        vocabulary = sorted(seen[0].keys() | seen[1].keys())
        counts = np.array([[counter[token] for token in vocabulary] for counter in seen], dtype=np.int64)
        # what the log odds of every token owe to one class being larger
        inside, outside = counts.sum(axis=1) + self.smoothing * (len(vocabulary) + 1)
        balance = float(np.log(outside) - np.log(inside))
        smooth = np.log(counts + self.smoothing)
        known = dict(zip(vocabulary, (smooth[0] - smooth[1] + balance).tolist(), strict=True))
        return _TokenOdds(tokens, known, min(balance, 0.0) if self.unknown == "against" else 0.0)

    def decision_function(self, texts: Sequence[str]) -> Array:
        """Log odds that each text is in the domain: the mean over its tokens, plus the log odds of the prior."""
        _refuse_one_text(texts)
        if not self._odds:
            raise UsageError("the gate has learnt nothing yet: call fit(in_domain, out_of_domain) first")
        odds = np.mean([[one.mean(text) for text in texts] for one in self._odds], axis=0)
        return np.asarray(odds + math.log(self.prior / (1 - self.prior)), dtype=np.float64)

    def confidence(self, texts: Sequence[str]) -> Array:
        """How sure the gate is that each text is in the domain, from 0 to 1; a text without tokens has the prior.

        It ranks texts; it is no calibrated probability, for tokens are not independent.
        """
        return np.exp(-np.logaddexp(0.0, -self.decision_function(texts)))


def two_stage(
    gate: DomainGate, answers: pl.DataFrame, *, threshold: float = 0.0, system: str = "two-stage"
) -> pl.DataFrame:
    """A table of responses of the two stages: the interpreter's predictions, let through or withheld by the gate.

    `answers` has the columns `input` and `prediction`, and whatever else responses need, which stays. `confidence`
    becomes the gate's, `system` the name given, and `prediction` null where the gate is less sure than the threshold.
    With the threshold 0 nothing is withheld, and the rows draw the whole error-return curve of the gate.

    >>> gate = DomainGate().fit(["when do you open"], ["what is the capital of france"])
    >>> answers = pl.DataFrame({"input": ["do you open", "capital of peru"], "prediction": ["hours", "hours"]})
    >>> two_stage(gate, answers, threshold=0.5)["prediction"].to_list()
    ['hours', None]
    """
    missing = [name for name in ("input", "prediction") if name not in answers.columns]
    if missing:
        rule = f"needs the column{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"
        raise DataError(rule, where="the interpreter's answers", fix=f"columns there: {', '.join(answers.columns)}")
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold of the gate must be between 0 and 1; got {threshold}")
    sure = pl.Series("confidence", gate.confidence(answers["input"].cast(pl.String).fill_null("").to_list()))
    through = pl.when(pl.col("confidence") >= threshold).then(pl.col("prediction"))
    return answers.with_columns(sure, pl.lit(system).alias("system")).with_columns(through.alias("prediction"))


def _refuse_one_text(*groups: Sequence[str]) -> None:
    """Refuses a string where a list of texts is meant, which would be read as a list of characters."""
    for texts in groups:
        if isinstance(texts, str):
            raise UsageError(f'the gate takes a list of texts; got the text "{texts[:40]}"')
