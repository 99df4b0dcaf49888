"""How trained and tuned relevance models and their answers are shown."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from demur.core.show import numbers
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import threshold_text
from demur.returns.presentation import of_choice, of_classes
from demur.returns.words import choice_effect
from demur.understanding.grading import GradedAnswers, TrainedGrader
from demur.understanding.questions import QuestionPairs
from demur.understanding.training import AnswerTable, TrainedModel, TunedModel

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
    kinds = {one.tokens: "words" if one.tokens == "words" else f"tokens ({one.tokens})" for one in model.models_}
    vocabularies = " and ".join(f"{len(one.vocabulary):,} {kinds[one.tokens]}" for one in model.models_)
    return Presentation(
        title="Relevance model",
        sentences=(
            f"Learnt {len(model.classes_):,} answers from {len(model.label_of_):,} questions, of {vocabularies}.",
            "It has no threshold, so it answers whatever it knows a word of: demur understand tune finds one."
            if model.threshold is None
            else f"It returns an answer when its confidence is at least {threshold_text(model.threshold)}.",
        ),
        tables=(ResultTable("What was learnt from", ("what", "count"), rows),),
        figures=(),
        data=lambda: pl.DataFrame({"what": list(counts), "count": list(counts.values())}),
        document=model.to_dict(),
        notes=model.notes,
        warnings=model.warnings,
    )


def of_tuning(found: TunedModel) -> Presentation:
    """What was tried, what is best, and where its threshold lies on the curve of questions that it had not seen."""
    tuning, best, choice, evaluation = found.tuning, found.tuning.best, found.choice, found.evaluation
    chosen = of_choice(choice, evaluation)
    asked = tuning.responses.filter(scope="in").height
    among = f" and {found.off_topic:,} off-topic texts" if found.off_topic else ""
    setting = " and ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in best.parameters.items())
    verdict = (
        f"Best of {len(tuning.settings)} settings: {setting}. It answers {numbers.percent(best.accuracy)} "
        f"of {asked:,} questions right without having seen them (error-return area {numbers.number(best.augrc)} on "
        f"these{among})."
    )
    columns = ("question weight", "sharpness", "right", "AUGRC")
    rows = tuple(
        (
            *(f"{one.parameters[name]:g}" for name in ("question_weight", "sharpness")),
            numbers.percent(one.accuracy),
            numbers.number(one.augrc),
        )
        for one in tuning.settings
    )
    return Presentation(
        title="Tuned relevance model",
        sentences=(verdict, *choice_effect(choice), NO_PROMISE),
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
    rows = tuple(
        (_short(text), label or "–", "–" if confidence is None else f"{confidence:.3f}", why or "")
        for text, label, confidence, why in shown.select("input", "prediction", "confidence", "why").iter_rows()
    )
    table = ResultTable(title, ("input", "answer", "confidence", "remark"), rows)
    return Presentation(
        title="Answers",
        sentences=(f"{sentence}.",),
        tables=() if answers.files and not pages else (table,),
        figures=(),
        data=answers.frame,
        document=answers.to_dict(),
        notes=answers.notes,
    )


def of_grader(found: TrainedGrader) -> Presentation:
    """How a grader grades answers that it has not seen: the table of its classes."""
    return replace(
        of_classes([found.report]),
        title="Grader of short answers",
        data=found.frame,
        document=found.to_dict(),
        notes=found.notes,
    )


def of_grades(graded: GradedAnswers) -> Presentation:
    """How many answers got each label."""
    counts = graded.to_dict()["labels"]
    rows = tuple((str(label), f"{count:,}") for label, count in counts.items())
    return Presentation(
        title="Grades",
        sentences=(f"{graded.table.height:,} answers graded.",),
        tables=(ResultTable("Labels given", ("label", "answers"), rows),),
        figures=(),
        data=graded.frame,
        document=graded.to_dict(),
        notes=graded.notes,
    )


def of_pairs(made: QuestionPairs) -> Presentation:
    """The pairs made of texts: how far the rules reach, how often each was used, and the first pairs."""
    every, asked = made.reached
    count = made.table.height
    kinds = tuple((rule, f"{used:,}", _short(_example(made, rule))) for rule, used in made.rules.items())
    texts = tuple(
        (name, f"{whole:,}", f"{some:,}", numbers.tabled_percent(some / whole if whole else 0.0))
        for name, (whole, some) in made.coverage.items()
    )
    return Presentation(
        title="Question-answer pairs",
        sentences=(f"{count:,} questions, answered by {asked:,} of {every:,} sentences.",),
        tables=(
            ResultTable("Rules that were used", ("rule", "questions", "for example"), kinds),
            ResultTable("Sentences that answer a question", ("text", "sentences", "answer one", "share"), texts),
        ),
        figures=(),
        data=made.frame,
        document=made.to_dict(),
        notes=made.notes,
    )


def _example(made: QuestionPairs, rule: str) -> str:
    return str(made.table.filter(rule=rule)["input"][0])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
