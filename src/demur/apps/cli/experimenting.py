"""What `demur experiment` does once its options are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from demur.analyses.nbest import Manner, evaluate_nbest
from demur.analyses.nbest_experiments import (
    Trial,
    length_sweep,
    oracle_curves,
    reward_curves,
    scorer_table,
)
from demur.api.lists import parser_of
from demur.apps.cli import output
from demur.apps.cli.options import ListOptions, OutputOptions, SamplingOptions
from demur.apps.cli.progress import steps
from demur.apps.cli.reading import pair_of
from demur.data.corpora import restaurant
from demur.data.files import read_table
from demur.data.nbest import NBestReading, joined, read_nbest, recorded
from demur.errors import UsageError
from demur.measures.registry import OF_ACTS, OF_ITEMS
from demur.systems.hypothesising import Hypothesiser
from demur.systems.listening import Listener
from demur.systems.scorers import check_name
from demur.views.nbest_experiments import of_lengths, of_scorers, of_smooths
from demur.views.presentation import Presentation

BUNDLED = "the bundled study: a simulated restaurant guide, 650 dialogues (demur.systems.restaurant)"


@dataclass(frozen=True, slots=True)
class Source:
    """What an experiment is made on: files of the user's, or the bundled study."""

    files: list[str]
    lists: ListOptions
    grammar: Path | None
    parser: str | None

    @property
    def paths(self) -> tuple[str | Path, ...]:
        """The files to read."""
        return tuple(self.files) or (restaurant().folder / "turns.jsonl.gz",)

    @property
    def note(self) -> tuple[str, ...]:
        """What to say of the data."""
        return () if self.files else (BUNDLED,)

    def reading(self, *keep: str | None) -> NBestReading:
        """How the files are read."""
        return NBestReading(
            columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in self.lists.map),
            where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in self.lists.where),
            items=self.lists.items,
            normalise=self.lists.normalise,
            ontology=self.lists.ontology,
            keep=tuple(name for name in keep if name),
        )

    def trial(self, sampling: SamplingOptions, *keep: str | None, sentences: int) -> Trial:
        """The utterances, recorded, with what turns them into lists."""
        parse = parser_of(self.grammar, self.parser)
        reading = replace(self.reading(*keep), hypothesise=Hypothesiser("const", parse))
        listener = Listener(parse, "network", sentences)
        return Trial(recorded(*self.paths, reading=reading), listener, reading, manner_of(sampling))


def scorers(source: Source, sampling: SamplingOptions, outputs: OutputOptions, *, names: str, sentences: int) -> None:
    """Scorers by measures."""
    output.check(outputs)
    chosen = _scorers(names)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        trial = source.trial(sampling, sentences=sentences)
        table = scorer_table(trial, scorers=chosen, kept=sentences, step=step)
    _deliver(of_scorers(table), source, sampling, outputs)


def lengths(
    source: Source, sampling: SamplingOptions, outputs: OutputOptions, *, by: str | None, scorer: str, kept: str
) -> None:
    """Measures by condition and number of sentences."""
    output.check(outputs)
    check_name(scorer)
    numbers = _numbers(kept)
    by = by if by or source.files else "noise"
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        trial = source.trial(sampling, by, sentences=max(numbers))
        sweep = length_sweep(trial, by=by, scorer=scorer, kept=numbers, step=step)
    _deliver(of_lengths(sweep), source, sampling, outputs)


def reward(
    source: Source,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    dialogues: Path | None,
    group: str | None,
    measure: str,
) -> None:
    """Reward of dialogues against a measure of their lists."""
    output.check(outputs)
    known = [*OF_ACTS, *(key for key in OF_ITEMS if key != "item_ece")]
    if measure not in known:
        raise UsageError(f'--measure takes one of {", ".join(known)}; got "{measure}"')
    group = group if group or source.files else "manager"
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 2)
        apart = dialogues is not None or not source.files
        keep = () if apart else ("success", "turns", group)
        table = read_nbest(*source.paths, reading=source.reading(*keep))
        told = _dialogues(dialogues, source, table.frame)
        evaluations = evaluate_nbest(table, manner=replace(manner_of(sampling), replicates=50), step=step)
        step("fitting curves", 1, 2)
        smooths = reward_curves(evaluations, told, group=group, measure=measure)
    _deliver(of_smooths(smooths, title="Reward against the quality of lists"), source, sampling, outputs)


def oracle(source: Source, sampling: SamplingOptions, outputs: OutputOptions, *, names: str, sentences: int) -> None:
    """ICE of dialogues against the oracle error of their lists."""
    output.check(outputs)
    chosen = _scorers(names)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        trial = source.trial(sampling, sentences=sentences)
        lists = joined([trial.lists(scorer, kept=sentences) for scorer in chosen])
        evaluations = evaluate_nbest(lists, manner=replace(trial.manner, replicates=50), step=step)
        smooths = oracle_curves(evaluations)
    _deliver(of_smooths(smooths, title="ICE against the oracle error"), source, sampling, outputs)


def manner_of(sampling: SamplingOptions) -> Manner:
    """How lists are evaluated."""
    return Manner(level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)


def _dialogues(path: Path | None, source: Source, frame: pl.DataFrame) -> pl.DataFrame:
    if path is not None:
        return read_table(path).with_columns(pl.col("dialogue").cast(pl.String))
    if not source.files:
        return restaurant().dialogues
    columns = [name for name in frame.columns if name not in ("id", "system", "weight")]
    truth = pl.col("success").str.to_lowercase().is_in(["true", "1", "yes"])
    return frame.select(columns).unique("dialogue", keep="first", maintain_order=True).with_columns(success=truth)


def _scorers(names: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not chosen:
        raise UsageError("--scorers takes names separated by commas, such as const,infev")
    for name in chosen:
        check_name(name)
    return chosen


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise UsageError(f'--kept takes whole numbers separated by commas, such as 1,5,10; got "{text}"') from None
    if numbers[0] < 1:
        raise UsageError(f"--kept takes numbers from 1; got {numbers[0]}")
    return tuple(numbers)


def _deliver(shown: Presentation, source: Source, sampling: SamplingOptions, outputs: OutputOptions) -> None:
    notes = (*shown.notes, *source.note, f"seed {sampling.seed}, {sampling.replicates:,} replicates")
    output.deliver(replace(shown, notes=notes), outputs)
