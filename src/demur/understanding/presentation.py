"""How trained and tuned relevance models and their answers are shown."""

from __future__ import annotations

import polars as pl

from demur.core.show import numbers
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import threshold_text
from demur.returns.presentation import of_choice
from demur.understanding.relevance import RelevanceClassifier
from demur.understanding.training import AnswerTable, Setting, TrainedModel, TunedModel

MOST_ROWS = 40
"""Answers that a terminal shows; files hold all of them."""

MOST_CHARACTERS = 60

NO_PROMISE = (
    "Nothing is promised about new inputs, for setting and threshold are chosen on the same questions: answers to "
    "fresh ones (demur understand respond) give a threshold with a guarantee (demur threshold --delta)."
)


def of_training(model: TrainedModel) -> Presentation:
    """What a model has learnt from pairs."""
    pairs = model.pairs
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
    rows = tuple((what, f"{count:,}") for what, count in counts.items())
    return Presentation(
        title="Relevance model",
        sentences=(_learnt(model), _returned(model)),
        tables=(ResultTable("What was learnt from", ("what", "count"), rows),),
        figures=(),
        data=lambda: pl.DataFrame({"what": list(counts), "count": list(counts.values())}),
        document=model.to_dict(),
        notes=model.notes,
        warnings=model.warnings,
    )


def _learnt(model: RelevanceClassifier) -> str:
    vocabularies = " and ".join(f"{len(one.vocabulary):,} {_kind(one.tokens)}" for one in model.models_)
    return f"Learnt {len(model.classes_):,} answers from {len(model.label_of_):,} questions, of {vocabularies}."


def _kind(tokens: str) -> str:
    return "words" if tokens == "words" else f"tokens ({tokens})"


def _returned(model: RelevanceClassifier) -> str:
    if model.threshold is None:
        return "It has no threshold, so it answers whatever it knows a word of: demur understand tune finds one."
    return f"It returns an answer when its confidence is at least {threshold_text(model.threshold)}."


def of_tuning(found: TunedModel) -> Presentation:
    """What was tried, what is best, and where its threshold lies on the curve of questions that it had not seen."""
    tuning, best, choice, evaluation = found.tuning, found.tuning.best, found.choice, found.evaluation
    chosen = of_choice(choice, evaluation)
    asked = tuning.responses.filter(scope="in").height
    among = f" and {found.off_topic:,} off-topic texts" if found.off_topic else ""
    verdict = (
        f"Best of {len(tuning.settings)} settings: {_setting_words(best)}. It answers {numbers.percent(best.accuracy)} "
        f"of {asked:,} questions right without having seen them (error-return area {numbers.number(best.augrc)} on "
        f"these{among})."
    )
    columns = ("question weight", "sharpness", "right", "AUGRC")
    rows = tuple(_setting_row(one) for one in tuning.settings)
    return Presentation(
        title="Tuned relevance model",
        sentences=(verdict, *chosen.sentences[:2], NO_PROMISE),
        tables=(ResultTable("Settings, the best first", columns, rows),),
        figures=(
            drawing("returns.charts.error_return.error_return_chart", [evaluation], choices=(choice,), region=None),
            chosen.figure("cost_path"),
        ),
        data=tuning.frame,
        document=found.to_dict(),
        notes=found.notes,
        warnings=found.pairs.warnings,
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


def of_answers(answers: AnswerTable) -> Presentation:
    """What a model answered, a row each as far as a terminal has room; no rows where a file has them."""
    counts = answers.counts()
    sentence = f"{counts['n']:,} texts, {counts['unknown']:,} of them without a word that is known"
    if answers.threshold is not None:
        limit = threshold_text(answers.threshold)
        sentence += f"; {counts['returned']:,} answers returned, with a confidence of {limit} or more"
    shown = answers.table.head(MOST_ROWS)
    more = f", the first {shown.height} of {counts['n']:,}; -o FILE.jsonl writes all of them"
    title = f"Answers{more if shown.height < counts['n'] else ''}"
    pages = [name for name in answers.files if name.lower().endswith((".md", ".html"))]
    table = ResultTable(title, ("input", "answer", "confidence", "withheld because"), _answer_rows(shown))
    return Presentation(
        title="Answers",
        sentences=(f"{sentence}.",),
        tables=() if answers.files and not pages else (table,),
        figures=(),
        data=answers.frame,
        document=answers.to_dict(),
        notes=answers.notes,
    )


def _answer_rows(table: pl.DataFrame) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (_short(text), label or "–", "–" if confidence is None else f"{confidence:.3f}", why or "")
        for text, label, confidence, why in table.select("input", "prediction", "confidence", "why").iter_rows()
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
