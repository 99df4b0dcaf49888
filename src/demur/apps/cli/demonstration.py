"""The demo: from a bundled corpus to trained classifiers, a verdict and a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from demur.analyses.comparison import Comparison, compare
from demur.analyses.threshold import Choice, threshold_by_error
from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions, SamplingOptions
from demur.apps.cli.progress import steps
from demur.data.corpora import Corpus, museum
from demur.data.output import write_whole
from demur.data.responses import Reading, Responses, responses
from demur.measures.resampling import Rows, Sample
from demur.systems.classifiers import respond_all
from demur.systems.typing_noise import mistyped
from demur.views import presentation, words
from demur.views.presentation import Presentation

HELD_OUT = 8
"""Questions of each answer that are kept for testing."""

CONDITIONS = ("clean", "hasty")
PROMISE, DELTA = 0.1, 0.05


def demo(sampling: SamplingOptions, outputs: OutputOptions, *, logs: Path | None = None) -> None:
    """Train, answer, evaluate, compare, choose, and show."""
    output.check(outputs)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("training three classifiers", 0, 4)
        table = answered(museum(), seed=sampling.seed)
        if logs is not None:
            write_logs(table, logs)
        comparisons = {}
        for done, condition in enumerate(CONDITIONS):
            step(f"comparing on {condition} questions", done + 1, 4)
            comparisons[condition] = _compared(table.filter(condition=condition), sampling)
        step("choosing a threshold", 3, 4)
        choice = _chosen(table, comparisons["hasty"])
    output.deliver(_story(comparisons, choice, table, sampling, logs), outputs)


def answered(corpus: Corpus, *, seed: int = 0) -> pl.DataFrame:
    """Responses of all classifiers to held-out questions, as asked and as typed in haste, and to off-topic ones."""
    train, test = _split(corpus.questions, seed)
    asked = pl.concat([test, corpus.offtopic.with_columns(target=pl.lit(None, pl.String))], how="diagonal")
    hasty = [mistyped(text, key=key, seed=seed) for key, text in asked.select("id", "input").iter_rows()]
    clean = asked.with_columns(condition=pl.lit("clean"))
    noisy = asked.with_columns(pl.Series("input", hasty), condition=pl.lit("hasty"))
    return respond_all(train, pl.concat([clean, noisy]))


def write_logs(table: pl.DataFrame, folder: Path) -> None:
    """One JSONL file per classifier and condition, as a user would have them."""
    for (system, condition), part in table.group_by("system", "condition", maintain_order=True):
        rows = part.drop("system").write_ndjson()
        write_whole(folder / f"{system}-{condition}.jsonl", rows)


def _split(questions: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Train and test rows; of every answer HELD_OUT questions are tested."""
    order = np.random.default_rng(seed).permutation(questions.height)
    shuffled = questions[order]
    place = pl.int_range(pl.len()).over("target")
    return shuffled.filter(place >= HELD_OUT).sort("id"), shuffled.filter(place < HELD_OUT).sort("id")


def _read(table: pl.DataFrame) -> Responses:
    return responses(table, reading=Reading())


def _compared(table: pl.DataFrame, sampling: SamplingOptions) -> Comparison:
    return compare(_read(table), level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)


def _chosen(table: pl.DataFrame, comparison: Comparison) -> Choice:
    best = min(comparison.evaluations, key=lambda one: one.figures["augrc"].value).system
    sample = Sample(Rows.from_frame(_read(table.filter(system=best, condition="hasty")).frame))
    return threshold_by_error(sample, PROMISE, delta=DELTA, name=best)


def _story(
    comparisons: dict[str, Comparison],
    choice: Choice,
    table: pl.DataFrame,
    sampling: SamplingOptions,
    logs: Path | None,
) -> Presentation:
    evaluation = next(one for one in comparisons["hasty"].evaluations if one.system == choice.system)
    titles = {"clean": "Questions as asked", "hasty": "Questions typed in haste"}
    parts = {name: replace(presentation.of_comparison(one), title=titles[name]) for name, one in comparisons.items()}
    chosen = replace(presentation.of_choice(choice, evaluation), title="A threshold for questions typed in haste")
    leaders = (f"{titles[name]}: {words.ranking_sentence(one.ranking)}" for name, one in comparisons.items())
    notes = (
        f"{table.height:,} answers of three classifiers trained just now; off-topic questions count as out of scope",
        f"seed {sampling.seed}, {sampling.replicates:,} replicates",
        *(() if logs is None else (f"logs in {logs}; try: demur score {logs / 'word-lr-clean.jsonl'}",)),
    )
    return Presentation(
        title="A museum guide that may say it does not understand",
        sentences=(*leaders, words.choice_sentences(choice)[0]),
        tables=(),
        figures=parts["hasty"].figures[:1],
        data=lambda: table,
        document={**{name: part.document for name, part in parts.items()}, "threshold": chosen.document},
        notes=notes,
        signatures=(*parts["clean"].signatures, *parts["hasty"].signatures),
        parts=(*parts.values(), chosen),
    )
