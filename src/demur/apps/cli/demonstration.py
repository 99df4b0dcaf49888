"""The demo: from a bundled corpus to trained models, questions misheard, a verdict and a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions, SamplingOptions
from demur.apps.cli.output import steps
from demur.core.io.writing import write_whole
from demur.core.show import numbers
from demur.core.show.presentation import Presentation
from demur.core.stats.resampling import Rows, Sample
from demur.lab.corpora import Corpus, museum
from demur.lab.understanding_experiments import FLATTERS, guide_material, responded
from demur.returns import presentation, words
from demur.returns.compare import Comparison, compare
from demur.returns.table import Reading, Responses, responses
from demur.returns.threshold import Choice, threshold_by_error
from demur.understanding.noise import Channel
from demur.understanding.relevance import RelevanceClassifier

TOKENS = ("words", "phones", "mixed")
"""What texts are made of, a model each."""

CONDITIONS = ("clean", "noisy")
WER = 0.3
"""Word error rate of noisy questions."""

PROMISE, DELTA = 0.1, 0.05


def demo(sampling: SamplingOptions, outputs: OutputOptions, *, logs: Path | None = None) -> None:
    """Train, answer, evaluate, compare, choose, and show."""
    output.check(outputs)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("training three models", 0, 4)
        table = answered(museum(), seed=sampling.seed)
        if logs is not None:
            write_logs(table, logs)
        comparisons = {}
        for done, condition in enumerate(CONDITIONS):
            step(f"comparing on {condition} questions", done + 1, 4)
            comparisons[condition] = _compared(table.filter(condition=condition), sampling)
        step("choosing a threshold", 3, 4)
        choice = _chosen(table, comparisons["noisy"])
    output.deliver(_story(comparisons, choice, table, sampling, logs), outputs)


def answered(corpus: Corpus, *, seed: int = 0) -> pl.DataFrame:
    """Responses of all models to held-out and off-topic questions, as asked and as a noisy recogniser heard them."""
    material = guide_material(corpus, seed=seed)
    inputs, ids = material.test["input"].to_list(), material.test["id"].to_list()
    heard = Channel(material.texts, wer=WER, seed=seed).heard(inputs, ids).texts
    clean = material.test.with_columns(condition=pl.lit("clean"))
    noisy = clean.with_columns(pl.Series("input", heard), condition=pl.lit("noisy"))
    models = {name: RelevanceClassifier(tokens=name).fit(material.texts, material.labels) for name in TOKENS}
    return pl.concat([responded(name, model, pl.concat([clean, noisy])) for name, model in models.items()])


def write_logs(table: pl.DataFrame, folder: Path) -> None:
    """One JSONL file per model and condition, as a user would have them."""
    for (system, condition), part in table.group_by("system", "condition", maintain_order=True):
        rows = part.drop("system").write_ndjson()
        write_whole(folder / f"{system}-{condition}.jsonl", rows)


def _read(table: pl.DataFrame) -> Responses:
    return responses(table, reading=Reading())


def _compared(table: pl.DataFrame, sampling: SamplingOptions) -> Comparison:
    return compare(_read(table), level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)


def _chosen(table: pl.DataFrame, comparison: Comparison) -> Choice:
    best = min(comparison.evaluations, key=lambda one: one.figures["augrc"].value).system
    sample = Sample(Rows.from_frame(_read(table.filter(system=best, condition="noisy")).frame))
    return threshold_by_error(sample, PROMISE, delta=DELTA, name=best)


def _story(
    comparisons: dict[str, Comparison],
    choice: Choice,
    table: pl.DataFrame,
    sampling: SamplingOptions,
    logs: Path | None,
) -> Presentation:
    evaluation = next(one for one in comparisons["noisy"].evaluations if one.system == choice.system)
    titles = {"clean": "Questions as asked", "noisy": "Questions as a recogniser heard them"}
    parts = {name: replace(presentation.of_comparison(one), title=titles[name]) for name, one in comparisons.items()}
    chosen = replace(
        presentation.of_choice(choice, evaluation), title="A threshold for questions as a recogniser heard them"
    )
    leaders = (f"{titles[name]}: {words.ranking_sentence(one.ranking)}" for name, one in comparisons.items())
    notes = (
        f"{table.height:,} answers of three models trained just now; off-topic questions count as out of scope",
        f"a recogniser that gets {numbers.percent(WER)} of the words wrong. {FLATTERS}",
        f"seed {sampling.seed}, {sampling.replicates:,} replicates",
        *(() if logs is None else (f"logs in {logs}; try: demur score {logs / 'mixed-noisy.jsonl'}",)),
    )
    return Presentation(
        title="A museum guide that may say it does not understand",
        sentences=(*leaders, words.choice_sentences(choice)[0]),
        tables=(),
        figures=parts["noisy"].figures[:1],
        data=lambda: table,
        document={**{name: part.document for name, part in parts.items()}, "threshold": chosen.document},
        notes=notes,
        signatures=(*parts["clean"].signatures, *parts["noisy"].signatures),
        parts=(*parts.values(), chosen),
    )
