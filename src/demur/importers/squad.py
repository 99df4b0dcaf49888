"""Reads predictions for SQuAD 2 with their null odds, N-best lists and references."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import msgspec

from demur.core.io.columns import ALIASES
from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row

ENOUGH = 2
"""Entries from which an object of texts or numbers is taken for one of predictions or odds."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KNOWN = {name for part, others in ALIASES.items() for name in (part, *others)}


class SquadAnswer(msgspec.Struct):
    """An answer that people gave."""

    text: str


class SquadQuestion(msgspec.Struct):
    """A question with its answers; none where it cannot be answered."""

    id: str
    question: str = ""
    answers: list[SquadAnswer] = []
    is_impossible: bool = False


class SquadParagraph(msgspec.Struct):
    """A paragraph with its questions."""

    qas: list[SquadQuestion]


class SquadArticle(msgspec.Struct):
    """An article with its paragraphs."""

    paragraphs: list[SquadParagraph]


class SquadReferences(msgspec.Struct):
    """The data set."""

    data: list[SquadArticle]


class SquadHypothesis(msgspec.Struct):
    """An answer in an N-best list."""

    text: str
    probability: float | None = None


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are the same but for case, punctuation, articles and spaces, as SQuAD's exact match has it.

    >>> same_answer("The ten o'clock.", "ten oclock"), same_answer("six", "at six")
    (True, False)
    """
    return _normal(one) == _normal(other)


def _normal(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class SquadPredictions(Importer):
    """Predictions for SQuAD 2, in up to four files."""

    name = "squad"
    title = "predictions for SQuAD 2"

    def recognises(self, file: ForeignFile) -> str:
        """References, N-best lists, null odds or predictions."""
        value = file.value
        if not isinstance(value, dict) or len(value) < ENOUGH or not _KNOWN.isdisjoint(name.lower() for name in value):
            return ""
        if isinstance(value.get("data"), list) and value["data"] and isinstance(value["data"][0], dict):
            return "references" if "paragraphs" in value["data"][0] else ""
        parts = list(value.values())
        if all(isinstance(part, float) for part in parts):
            return "odds"
        if all(isinstance(part, str) for part in parts):
            return "predictions"
        lists = [part for part in parts if isinstance(part, list)]
        shaped = all(isinstance(one, dict) for part in lists for one in part)
        first = lists[0][0] if len(lists) == len(parts) and lists[0] and shaped else {}
        return "nbest" if {"text", "probability"} <= first.keys() else ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """One log of all files."""
        of = dict(files)
        if len(of) < len(files):
            raise DataError("is given with another of its kind", where=f"{files[-1][1].name}:", fix="one run at a time")
        if "references" not in of or not {"predictions", "nbest"} & of.keys():
            lacking = "the references" if "references" not in of else "predictions or N-best lists"
            fix = f"give {lacking} too; null odds are the confidence: run_qa.py writes predictions, null_odds and nbest"
            raise DataError(f"holds {_WORDS[files[0][0]]} only", where=f"{files[0][1].name}:", fix=fix)
        questions = [
            one
            for article in of["references"].document(SquadReferences).data
            for paragraph in article.paragraphs
            for one in paragraph.qas
        ]
        predictions = of["predictions"].document(dict[str, str]) if "predictions" in of else {}
        odds = of["odds"].document(dict[str, float]) if "odds" in of else {}
        lists = of["nbest"].document(dict[str, list[SquadHypothesis]]) if "nbest" in of else {}
        rows = [_row(one, predictions, odds, lists, of) for one in questions]
        taken = {
            "id": "id",
            "target": "answers; none where it cannot be answered",
            "prediction": "the best of the N-best list that is not empty" if lists else "predictions",
            "confidence": "minus the null odds" if odds else "probability in the N-best list" if lists else "",
            "correct": "exact match, as SQuAD has it",
            "abstained": "an empty prediction" if not lists else "",
            "deployed": "withheld where the prediction is empty" if lists and predictions else "",
        }
        main = next(of[role] for role in ("predictions", "nbest") if role in of)
        return [self.log(main, rows, taken)]


_WORDS = {
    "references": "the questions and answers of SQuAD",
    "predictions": "predictions",
    "odds": "null odds",
    "nbest": "N-best lists",
}


def _row(
    question: SquadQuestion,
    predictions: dict[str, str],
    odds: dict[str, float],
    lists: dict[str, list[SquadHypothesis]],
    of: dict[str, ForeignFile],
) -> Row:
    for role, found in (("predictions", predictions), ("odds", odds), ("nbest", lists)):
        if role in of and question.id not in found:
            rule = f'has nothing for the question "{question.id}"'
            raise DataError(rule, where=f"{of[role].name}:", fix="is it of the same run as the other files?")
    answers = list(dict.fromkeys(one.text for one in question.answers))
    ranked = [one for one in lists.get(question.id, ()) if one.text]
    deployed = predictions.get(question.id)
    answer = ranked[0].text if ranked else deployed or None
    row: Row = {"id": question.id, "input": question.question, "target": answers or None, "prediction": answer}
    if answer is not None:
        share: Any = ranked[0].probability if ranked else None
        row["confidence"] = -odds[question.id] if odds else share
        row["correct"] = any(same_answer(answer, one) for one in answers) if answers else None
    if lists and predictions:
        row["deployed"] = "returned" if deployed else "withheld"
    return row
