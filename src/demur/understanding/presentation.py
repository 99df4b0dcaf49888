"""How trained and tuned relevance models and their answers are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.core.show import numbers
from demur.core.show.presentation import Presentation, Table, drawing
from demur.core.show.results import threshold_text
from demur.returns.evaluate import Evaluation
from demur.returns.presentation import of_choice
from demur.returns.threshold import Choice
from demur.understanding.pairs import Pairs
from demur.understanding.relevance import RelevanceClassifier
from demur.understanding.tuning import Setting, Tuning

MOST_ROWS = 40
"""Answers that a terminal shows; files hold all of them."""

MOST_LETTERS = 60

NO_PROMISE = (
    "Nothing is promised about new inputs, for setting and threshold are chosen on the same questions: answers to "
    "fresh ones (demur understand respond) give a threshold with a guarantee (demur threshold --delta)."
)


def of_training(model: RelevanceClassifier, pairs: Pairs) -> Presentation:
    """What a model has learnt from pairs."""
    counts = {
        "pairs": len(pairs),
        "labels": len(model.classes_),
        **{f"vocabulary, {one.tokens}": len(one.vocabulary) for one in model.models_},
        "labels with one example": len(pairs.single),
        "pairs that repeat others": pairs.copies,
        "texts with several labels": len(pairs.contradicted),
        "answers without questions": len(pairs.unasked),
        "off-topic texts, not learnt from": len(pairs.off_topic),
    }
    frame = pl.DataFrame({"what": list(counts), "count": list(counts.values())})
    rows = tuple((what, f"{count:,}") for what, count in counts.items())
    return Presentation(
        title="Relevance model",
        sentences=(_learnt(model), _returned(model)),
        tables=(Table("What was learnt from", ("what", "count"), rows),),
        figures=(),
        data=lambda: frame,
        document=training_document(model, pairs),
        warnings=_unheard(model, pairs),
    )


def _unheard(model: RelevanceClassifier, pairs: Pairs) -> tuple[str, ...]:
    """Says which texts have no token, so that they teach nothing."""
    tokens = sum(np.asarray(one.counts.matrix.sum(axis=1)).ravel() for one in model.models_)
    places = np.flatnonzero(np.asarray(tokens) == 0)
    if not len(places):
        return ()
    count = f"{len(places):,} texts have" if len(places) > 1 else "1 text has"
    return (f'{count} no words, so nothing is learnt there, e.g. "{pairs.texts[places[0]]}"',)


def training_document(model: RelevanceClassifier, pairs: Pairs) -> dict[str, Any]:
    """The training of a model as plain values."""
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


def _learnt(model: RelevanceClassifier) -> str:
    vocabularies = " and ".join(f"{len(one.vocabulary):,} {_kind(one.tokens)}" for one in model.models_)
    return f"Learnt {len(model.classes_):,} answers from {len(model.label_of_):,} questions, of {vocabularies}."


def _kind(tokens: str) -> str:
    return "words" if tokens == "words" else f"tokens ({tokens})"


def _returned(model: RelevanceClassifier) -> str:
    if model.threshold is None:
        return "It has no threshold, so it answers whatever it knows a word of: demur understand tune finds one."
    return f"It returns an answer when its confidence is at least {threshold_text(model.threshold)}."


def of_tuning(
    model: RelevanceClassifier, tuning: Tuning, choice: Choice, evaluation: Evaluation, pairs: Pairs
) -> Presentation:
    """What was tried, what is best, and where its threshold lies on the curve of questions that it had not seen."""
    best = tuning.best
    chosen = of_choice(choice, evaluation)
    asked, strange = (tuning.responses.filter(scope=scope).height for scope in ("in", "off"))
    among = f" and {strange:,} off-topic texts" if strange else ""
    found = (
        f"Best of {len(tuning.settings)} settings: {_setting_words(best)}. It answers {numbers.percent(best.accuracy)} "
        f"of {asked:,} questions right without having seen them (error-return area {numbers.number(best.augrc)} on "
        f"these{among})."
    )
    columns = ("question weight", "sharpness", "right", "AUGRC")
    rows = tuple(_setting_row(one) for one in tuning.settings)
    return Presentation(
        title="Tuned relevance model",
        sentences=(found, *chosen.sentences[:2], NO_PROMISE),
        tables=(Table("Settings, the best first", columns, rows),),
        figures=(
            drawing("returns.charts.error_return.error_return_chart", [evaluation], choices=(choice,), region=None),
            *chosen.figures[1:],
        ),
        data=tuning.frame,
        document={
            **training_document(model, pairs),
            "settings": [one.to_dict() for one in tuning.settings],
            "best": best.to_dict(),
            **choice.to_dict(),
            "threshold": model.threshold,
        },
        notes=(*_off_topic_note(strange), *chosen.notes),
        signatures=chosen.signatures,
    )


def _setting_words(setting: Setting) -> str:
    return " and ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in setting.parameters.items())


def _setting_row(setting: Setting) -> tuple[str, ...]:
    return (
        *(f"{setting.parameters[name]:g}" for name in ("question_weight", "sharpness")),
        numbers.percent(setting.accuracy),
        numbers.number(setting.augrc),
    )


def _off_topic_note(count: int) -> tuple[str, ...]:
    if count:
        return ()
    return ("there are no off-topic texts, so every question here has an answer: a threshold found with some is safer",)


def of_responses(table: pl.DataFrame, model: RelevanceClassifier) -> Presentation:
    """What a model answered, a row each as far as a terminal has room."""
    known = table["prediction"].is_not_null() | (table["nbest"].list.len() > 0)
    counts = {"n": table.height, "unknown": int((~known).sum())}
    sentence = f"{table.height:,} texts, {counts['unknown']:,} of them without a word that is known"
    if "returned" in table.columns and model.threshold is not None:
        counts["returned"] = int(table["returned"].sum())
        sentence += (
            f"; {counts['returned']:,} answers returned, with a confidence of {threshold_text(model.threshold)} or more"
        )
    shown = table.head(MOST_ROWS)
    more = table.height - shown.height
    return Presentation(
        title="Answers",
        sentences=(f"{sentence}.",),
        tables=(Table("Answers", ("input", "answer", "confidence", "withheld because"), _answer_rows(shown)),),
        figures=(),
        data=lambda: table,
        document={**counts, "threshold": model.threshold},
        notes=(f"{more:,} more are not shown; -o FILE.jsonl writes all of them",) if more else (),
    )


def _answer_rows(table: pl.DataFrame) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (_short(text), label or "–", "–" if confidence is None else f"{confidence:.3f}", why or "")
        for text, label, confidence, why in table.select("input", "prediction", "confidence", "why").iter_rows()
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"
