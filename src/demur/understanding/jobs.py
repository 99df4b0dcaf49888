"""Jobs of understanding: a relevance model is trained or tuned on pairs, kept in a folder, and answers texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.jobs import check_options
from demur.core.show.results import Step, silent
from demur.errors import DataError
from demur.returns.evaluate import Evaluation, evaluate
from demur.returns.table import responses
from demur.returns.threshold import Choice, aim
from demur.understanding.model_files import load_model
from demur.understanding.pairs import (
    Inputs,
    PairReading,
    Pairs,
    answers,
    inputs,
    pairs,
    read_answers,
    read_inputs,
    read_pairs,
)
from demur.understanding.relevance import Answer, RelevanceClassifier, Scoring, answered
from demur.understanding.tokens import parts_of, tokenizer
from demur.understanding.tuning import Tuning, tuned

COST_RATIO = 0.5
"""What a non-return costs over what an error costs, where nobody says what the threshold is to achieve."""

_BATCH = 500
_LIST = pl.List(pl.Struct({"label": pl.String, "confidence": pl.Float64}))


@dataclass(frozen=True, slots=True, eq=False)
class TunedModel:
    """A model with the best parameters and a threshold, and how it answers questions that it has not seen."""

    model: RelevanceClassifier
    tuning: Tuning
    choice: Choice
    evaluation: Evaluation


def train(
    data: Any,
    *,
    answers: Any = None,
    tokens: str = "words",
    question_weight: float = 0.5,
    answer_weight: float = 0.7,
    sharpness: float = 0.6,
    scoring: Scoring = "posterior",
    threshold: float | None = None,
    **options: Any,
) -> RelevanceClassifier:
    """A relevance model that has learnt from pairs: `input`, the label of its answer as `target`, perhaps `answer`.

    Pairs are a file, a frame or rows. `answers` tells what the answers say: a dict, a file, a frame or rows. Texts
    without a target are not learnt from. Further options say how the table is read: `columns={"target": "intent"}`,
    `where=(("split", "train"),)`, `out_of_scope=("oos",)`. The others are those of `RelevanceClassifier`.

    >>> guide = train([{"text": "when do you open", "label": "hours"}, {"text": "who built it", "label": "builder"}])
    >>> guide.predict(["are you open"]).tolist()
    ['hours']
    """
    learnt = as_pairs(data, answers, options)
    _refuse_wordless(learnt, tokens)
    model = RelevanceClassifier(
        tokens=tokens,
        question_weight=question_weight,
        answer_weight=answer_weight,
        sharpness=sharpness,
        scoring=scoring,
        threshold=threshold,
    )
    return model.fit(learnt.texts, learnt.labels, _texts_of(learnt))


def tune(
    data: Any,
    *,
    off_topic: Any = None,
    answers: Any = None,
    tokens: str = "words",
    answer_weight: float = 0.7,
    scoring: Scoring = "posterior",
    cost_ratio: float | None = None,
    max_error: float | None = None,
    max_nonreturn: float | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    **options: Any,
) -> TunedModel:
    """A model whose weights, sharpness and threshold suit questions that it has not seen: each is answered without it.

    `off_topic` are texts that have no answer (a file, a frame, rows, or texts), besides those pairs without a target.
    The threshold is for one of the aims of `threshold`; without any, a non-return costs half as much as an error.
    No error rate can be promised: settings and threshold are chosen on the same questions. Other options are those
    of `train`.
    """
    if cost_ratio is max_error is max_nonreturn is None:
        cost_ratio = COST_RATIO
    choose = aim(cost_ratio=cost_ratio, max_error=max_error, delta=None, max_nonreturn=max_nonreturn)
    learnt = as_pairs(data, answers, options)
    if len(learnt) < 2:
        raise DataError("tuning needs two pairs or more: each is answered by what was learnt from the others")
    _refuse_wordless(learnt, tokens)
    base = RelevanceClassifier(tokens=tokens, answer_weight=answer_weight, scoring=scoring)
    strange = [*learnt.off_topic, *_texts(off_topic)]
    texts = _texts_of(learnt)
    found = tuned(base, learnt.texts, learnt.labels, off_topic=strange, answers=texts, seed=seed, step=step)
    if not found.best.accuracy:
        raise DataError(
            "no question is answered right without itself, so nothing can be tuned",
            fix="every label needs a second question that shares words with the first",
        )
    judged = responses(found.responses, system="left-out questions")
    (evaluation,) = evaluate(judged, level=level, replicates=replicates, seed=seed)
    choice = choose(evaluation.sample, name=evaluation.system)
    if choice.threshold != choice.threshold:
        raise DataError(
            f"no threshold keeps to this: {choice.rule}", fix="allow more errors, or give more pairs to learn from"
        )
    # what is printed splits the answers as the exact threshold does, and is what a reader finds in the model
    best = {**base.get_params(), **found.best.parameters, "threshold": float(choice.printed_threshold)}
    model = RelevanceClassifier(**best).fit(learnt.texts, learnt.labels, texts)
    return TunedModel(model, found, choice, evaluation)


def respond(
    model: RelevanceClassifier | str | Path,
    data: Any,
    *,
    nbest: int = 5,
    withhold: bool = False,
    threshold: float | None = None,
    step: Step = silent,
    **options: Any,
) -> pl.DataFrame:
    """The answers of a model to texts, as a table that `score` takes: `prediction`, `confidence`, `nbest` and `why`.

    Texts are a file, a frame, rows or a list of texts; further columns are kept. Where there is a threshold, the
    model's or the one given, `returned` says which answers it returns; with `withhold` the others have no prediction.
    A text of which nothing is known has none in any case, and `why` says so.

    >>> guide = train([{"text": "when do you open", "label": "hours"}, {"text": "who built it", "label": "builder"}])
    >>> respond(guide, ["are you open", "xyzzy"]).select("prediction", "why").rows()
    [('hours', None), (None, 'none of its words was ever seen in training')]
    """
    fitted = fitted_model(model, threshold)
    asked = _inputs(data, options)
    texts, found = asked.texts, []
    for done in range(0, len(texts), _BATCH):
        step("responding", done, len(texts))
        found += answered(fitted, texts[done : done + _BATCH], nbest=nbest)
    columns = _answer_columns(found, limited=fitted.threshold is not None, withhold=withhold)
    first = [name for name in ("id", "input", "target") if name in asked.frame.columns]
    return asked.frame.select(*first, *columns, pl.exclude(first))


def as_pairs(data: Any, answers: Any = None, options: dict[str, Any] | None = None) -> Pairs:
    """Pairs from a file, a frame or rows, or as they are, with what their answers say."""
    if isinstance(data, Pairs):
        found = data
    else:
        reading = _reading(options)
        found = read_pairs(data, reading=reading) if isinstance(data, str | Path) else pairs(data, reading=reading)
    return found if answers is None else found.with_answers(_answers(answers))


def _refuse_wordless(learnt: Pairs, tokens: str) -> None:
    makers = [tokenizer(part) for part in parts_of(tokens)]
    if not any(made(text) for text in learnt.texts for made in makers):
        raise DataError(f'no text has any {tokens} in it, e.g. "{learnt.texts[0]}"', fix="is input the right column?")


def _texts_of(learnt: Pairs) -> dict[str, str] | None:
    return None if learnt.answers is None else dict(learnt.answers)


def _answers(data: Any) -> dict[str, str]:
    return read_answers(data) if isinstance(data, str | Path) else answers(data)


def _texts(data: Any) -> list[str]:
    """Off-topic texts; empty ones say nothing of any threshold."""
    return [] if data is None else [text for text in _inputs(data).texts if text.strip()]


def _inputs(data: Any, options: dict[str, Any] | None = None) -> Inputs:
    if isinstance(data, Inputs):
        return data
    reading = _reading(options)
    return read_inputs(data, reading=reading) if isinstance(data, str | Path) else inputs(data, reading=reading)


def _reading(options: dict[str, Any] | None) -> PairReading:
    check_options(options or {}, PairReading, ("tokens", "threshold"))
    return PairReading(**(options or {}))


def fitted_model(model: RelevanceClassifier | str | Path, threshold: float | None = None) -> RelevanceClassifier:
    """A model as it is or from its folder, with another threshold where one is given."""
    fitted = model if isinstance(model, RelevanceClassifier) else load_model(model)
    # the caller's model stays as it is
    return fitted if threshold is None else copy(fitted).set_params(threshold=threshold)


def _answer_columns(found: Sequence[Answer], *, limited: bool, withhold: bool) -> Iterable[pl.Series]:
    given = [answer.label is not None and (answer.returned or not withhold) for answer in found]
    labels = [str(answer.label) if shown else None for answer, shown in zip(found, given, strict=True)]
    lists = [[{"label": str(label), "confidence": share} for label, share in answer.nbest] for answer in found]
    yield pl.Series("prediction", labels, dtype=pl.String)
    yield pl.Series("confidence", [answer.confidence for answer in found], dtype=pl.Float64).fill_nan(None)
    yield pl.Series("nbest", lists, dtype=_LIST)
    if limited:
        yield pl.Series("returned", [answer.returned for answer in found], dtype=pl.Boolean)
    yield pl.Series("why", [answer.why for answer in found], dtype=pl.String)
