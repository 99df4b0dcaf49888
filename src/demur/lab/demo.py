"""The demo: from a bundled corpus to trained models, questions through a noisy recogniser, a verdict and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.io.writing import write_whole
from demur.core.options import Sampling
from demur.core.show import numbers
from demur.core.show.presentation import Presentation, drawing
from demur.core.show.results import Step, silent
from demur.core.stats.resampling import Rows, Sample
from demur.lab.corpora import Corpus, museum
from demur.lab.understanding_experiments import response_table, split_corpus
from demur.returns import presentation, words
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.table import responses
from demur.returns.threshold import Choice, threshold_by_error
from demur.understanding.noise import FLATTERS, WordChannel
from demur.understanding.relevance import RelevanceClassifier

TOKENS = ("words", "phones", "mixed")
"""What texts are made of, a model each."""

CONDITIONS = ("clean", "noisy")
WER = 0.3
"""Word error rate of noisy questions."""

PROMISE, DELTA = 0.1, 0.05

TITLES = {"noisy": "Questions through a noisy recogniser", "clean": "Questions as typed"}
"""What the conditions are called, the one that leads first."""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Three models compared on clean and on noisy questions, and a threshold for the best on noisy ones."""

    comparisons: Mapping[str, Comparison]
    choice: Choice
    table: pl.DataFrame
    """The answers of all models in both conditions."""
    sampling: Sampling
    logs: Path | None
    """The folder that the answers were written to."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done."""
        logs, answers = self.logs, f"{self.table.height:,} answers"
        return (
            f"{answers} of three models trained just now; off-topic questions count as out of scope",
            f"a recogniser that gets {numbers.percent(WER)} of the words wrong. {FLATTERS}",
            self.sampling.note,
            *(() if logs is None else (f"logs in {logs}; try: demur score {logs / 'mixed-noisy.jsonl'}",)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The demonstration as plain values."""
        compared = {name: one.to_dict() for name, one in self.comparisons.items()}
        return {**compared, "threshold": self.choice.to_dict(), "notes": list(self.notes), "warnings": []}


def demonstrate(sampling: Sampling, logs: Path | None, step: Step = silent) -> Demonstration:
    """Train, answer, compare and choose; write the answers where a folder is named."""
    step("training three models", 0, 4)
    table = answer_museum(museum(), seed=sampling.seed)
    if logs is not None:
        write_logs(table, logs)
    comparisons = {}
    for done, condition in enumerate(CONDITIONS):
        step(f"comparing on {condition} questions", done + 1, 4)
        comparisons[condition] = compare(responses(table.filter(condition=condition)), **asdict(sampling))
    step("choosing a threshold", 3, 4)
    best = min(comparisons["noisy"].evaluations, key=lambda one: one.figures["augrc"].value).system
    sample = Sample(Rows.from_frame(responses(table.filter(system=best, condition="noisy")).frame))
    choice = threshold_by_error(sample, PROMISE, delta=DELTA, name=best)
    return Demonstration(comparisons, choice, table, sampling, logs)


def answer_museum(corpus: Corpus, *, seed: int = 0) -> pl.DataFrame:
    """Responses of all models to held-out and off-topic questions, as asked and as a noisy recogniser wrote them."""
    questions = split_corpus(corpus, seed=seed)
    inputs, ids = (questions.test[name].to_list() for name in ("input", "id"))
    recognition = WordChannel(questions.texts, wer=WER, seed=seed).recognise(inputs, ids)
    clean = questions.test.with_columns(condition=pl.lit("clean"))
    noisy = clean.with_columns(pl.Series("input", recognition.texts), condition=pl.lit("noisy"))
    models = {name: RelevanceClassifier(tokens=name).fit(questions.texts, questions.labels) for name in TOKENS}
    return pl.concat([response_table(name, model, pl.concat([clean, noisy])) for name, model in models.items()])


def write_logs(table: pl.DataFrame, folder: Path) -> None:
    """One JSONL file per model and condition, as a user would have them."""
    for (system, condition), part in table.group_by("system", "condition", maintain_order=True):
        rows = part.drop("system").write_ndjson()
        write_whole(folder / f"{system}-{condition}.jsonl", rows)


def of_demonstration(found: Demonstration) -> Presentation:
    """The whole of it, as it is shown: noisy questions lead, and the details of both conditions follow."""
    choice, noisy = found.choice, found.comparisons["noisy"]
    evaluation = next(one for one in noisy.evaluations if one.system == choice.system)
    shown = {name: presentation.of_comparison(one) for name, one in found.comparisons.items()}
    chosen = replace(presentation.of_choice(choice, evaluation), title="The threshold for noisy questions")
    plot = drawing(f"{presentation.COMPARED}.comparison_chart", noisy, region=None, choices=(choice,))
    return Presentation(
        title="A museum guide that may say it does not understand",
        sentences=(
            f"Through a noisy recogniser {verdicts.baseline_verdict(noisy)}.",
            words.recommendation(choice),
            *verdicts.area_range(noisy),
        ),
        tables=tuple(shown[name].tables[0].titled(title) for name, title in TITLES.items()),
        figures=(plot,),
        data=lambda: found.table,
        document=found.to_dict(),
        notes=found.notes,
        signatures=(*shown["clean"].signatures, *shown["noisy"].signatures),
        appendix=(
            replace(shown["noisy"], title=TITLES["noisy"], figures=shown["noisy"].figures[1:]),
            replace(shown["clean"], title=TITLES["clean"]),
            chosen,
        ),
    )
