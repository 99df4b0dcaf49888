"""Corpora that come with the package."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

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


@dataclass(frozen=True)
class Study:
    """A user trial: what was said, heard and understood in each turn, and how each dialogue ended."""

    dialogues: pl.DataFrame
    """`dialogue`, `manager`, `noise`, `success` and `turns`."""
    folder: Path
    """Where `turns.jsonl.gz`, `dialogues.jsonl` and the `grammar.toml` that understood the turns lie."""

    @cached_property
    def turns(self) -> pl.DataFrame:
        """`id`, `dialogue`, `manager`, `noise`, `reference`, `text`, `hypotheses`, `asr` and `cnet`."""
        return pl.read_ndjson(gzip.decompress((self.folder / "turns.jsonl.gz").read_bytes()))


@dataclass(frozen=True, slots=True)
class WizardStudy:
    """A Wizard-of-Oz study: who completed the task at which word error rate, and what that is worth."""

    trials: pl.DataFrame
    """`performer` (`wizards`, `A`, `B`), `role`, `subject`, `components`, `wer`, `completed` and `order`."""
    lesions: pl.DataFrame
    """The same columns: the wizards, and one system with each combination of two components."""
    cost: pl.DataFrame
    """`performance` and `amount`: thousand dollars that a designer would pay for that rate of completion."""
    folder: Path
    """Where `trials.csv`, `lesions.csv` and `cost.csv` lie."""


def museum() -> Corpus:
    """Marta, guide of a harbour museum: 47 answers, 1,505 questions, 120 off-topic ones, written for this project.

    >>> corpus = museum()
    >>> corpus.answers.height >= 40, corpus.questions["target"].value_counts()["count"].min() >= 12
    (True, True)
    """
    folder = files("demur.corpora") / "museum"
    tables = (pl.read_ndjson((folder / f"{name}.jsonl").read_bytes()) for name in ("answers", "questions", "offtopic"))
    return Corpus(*tables)


def domains() -> dict[str, str]:
    """Four texts of some 65 plain sentences, far from the museum's subjects, for a character to grow by.

    Written for this project, a sentence a line. `demur understand pairs` makes questions of them.

    >>> list(domains())
    ['bees', 'bread', 'railways', 'volcanoes']
    """
    folder = files("demur.corpora") / "domains"
    names = ("bees", "bread", "railways", "volcanoes")
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in names}


def restaurant_folder() -> Path:
    """Where the files of the restaurant guide's trial lie."""
    return Path(str(files("demur.corpora") / "restaurant"))


def restaurant() -> Study:
    """A simulated trial of a restaurant guide: 650 dialogues, two managers, three levels of noise, the truth known.

    Levels of noise are named after the word error rate of the best sentences that the recogniser gave.

    >>> study = restaurant()
    >>> study.dialogues["noise"].unique(maintain_order=True).to_list()
    ['WER 11 %', 'WER 26 %', 'WER 39 %']
    >>> study.turns.height == study.dialogues["turns"].sum()
    True
    """
    folder = restaurant_folder()
    return Study(pl.read_ndjson(folder / "dialogues.jsonl"), folder)


def wizards() -> WizardStudy:
    """A simulated study of a form-filling task over a noisy recogniser: 16 wizards, two systems, the truth known.

    `demur.lab.wizards` says how it was made, and computes the truth.

    >>> study = wizards()
    >>> study.trials["performer"].unique(maintain_order=True).to_list(), study.trials["subject"].n_unique()
    (['wizards', 'A', 'B'], 32)
    """
    folder = Path(str(files("demur.corpora") / "wizards"))
    trials, lesions, cost = (pl.read_csv(folder / f"{name}.csv") for name in ("trials", "lesions", "cost"))
    return WizardStudy(trials, lesions, cost, folder)
