"""Corpora that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import polars as pl


@dataclass(frozen=True, slots=True)
class Corpus:
    """A character's answers, the questions they answer, and questions it has no answer to."""

    answers: pl.DataFrame
    """`answer` (the label) and `text` (what the character says)."""
    questions: pl.DataFrame
    """`id`, `input` and `target` (the label of the right answer)."""
    offtopic: pl.DataFrame
    """`id` and `input`."""


def museum() -> Corpus:
    """Marta, guide of a harbour museum: 47 answers, 1,505 questions, 120 off-topic ones, written for this project.

    >>> corpus = museum()
    >>> corpus.answers.height >= 40, corpus.questions["target"].value_counts()["count"].min() >= 12
    (True, True)
    """
    folder = files("demur.corpora") / "museum"
    tables = (pl.read_ndjson((folder / f"{name}.jsonl").read_bytes()) for name in ("answers", "questions", "offtopic"))
    return Corpus(*tables)
