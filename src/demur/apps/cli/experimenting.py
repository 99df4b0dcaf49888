"""What `demur experiment` does once its options are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from demur.apps.cli import output
from demur.apps.cli.options import ListOptions, OutputOptions, SamplingOptions, pair_of
from demur.apps.cli.output import steps
from demur.core.io.files import read_table
from demur.core.show.presentation import Presentation
from demur.errors import DataError, UsageError
from demur.lab.corpora import restaurant, restaurant_folder
from demur.lab.nbest_experiments import Listener, Trial, length_sweep, of_lengths, of_scorers, scorer_table
from demur.nbest_lists.asr.scorers import BUNDLED_GRAMMAR, Hypothesiser, check_name, parser_of
from demur.nbest_lists.evaluate import NBestSettings, evaluate_nbest
from demur.nbest_lists.measures import FLOOR
from demur.nbest_lists.registry import OF_ACTS, OF_ITEMS
from demur.nbest_lists.reward import of_smooths, oracle_curves, reward_curves
from demur.nbest_lists.table import NBest, NBestReading, joined, read_nbest, recorded

BUNDLED = "the bundled study: a simulated restaurant guide, 650 dialogues (demur.lab.restaurant)"


@dataclass(frozen=True, slots=True)
class Source:
    """What an experiment is made on: files of the user's, or the bundled study."""

    files: list[str]
    lists: ListOptions
    grammar: Path | None = None
    parser: str | None = None
    parses: bool = True
    """Whether sentences are parsed at all."""
    floor: float = FLOOR

    def __post_init__(self) -> None:
        if not 0 < self.floor < 0.5:
            raise UsageError(f"--floor must lie between 0 and 0.5; got {self.floor:g}")

    @property
    def paths(self) -> tuple[str | Path, ...]:
        """The files to read."""
        return tuple(self.files) or (restaurant_folder() / "turns.jsonl.gz",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of the data."""
        if not self.files:
            return (BUNDLED,)
        return (BUNDLED_GRAMMAR,) if self.parses and not (self.grammar or self.parser) else ()

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
        return Trial(recorded(*self.paths, reading=reading), listener, reading, settings_of(sampling, self.floor))


def scorers(source: Source, sampling: SamplingOptions, outputs: OutputOptions, *, names: str, sentences: int) -> None:
    """Scorers by measures."""
    output.check(outputs)
    chosen = _scorers(names)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        trial = source.trial(sampling, sentences=sentences)
        table = scorer_table(trial, scorers=chosen, kept=sentences, step=step)
    told = (*table.evaluations[0].taken.nbest.notes, _seeded(sampling))
    _deliver(of_scorers(table), source, told, outputs)


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
    _deliver(of_lengths(sweep), source, (*_told(trial), _seeded(sampling)), outputs)


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
        table = _lists(source, *keep)
        told = _dialogues(dialogues, source, table.frame, group)
        evaluations = evaluate_nbest(
            table, settings=replace(settings_of(sampling, source.floor), replicates=50), step=step
        )
        step("fitting curves", 1, 2)
        smooths = reward_curves(evaluations, told, group=group, measure=measure)
    _deliver(of_smooths(smooths), source, table.notes, outputs)


def oracle(source: Source, sampling: SamplingOptions, outputs: OutputOptions, *, names: str, sentences: int) -> None:
    """ICE of dialogues against the oracle error of their lists."""
    output.check(outputs)
    chosen = _scorers(names)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        trial = source.trial(sampling, sentences=sentences)
        lists = joined([trial.lists(scorer, kept=sentences) for scorer in chosen])
        evaluations = evaluate_nbest(lists, settings=replace(trial.settings, replicates=50), step=step)
        smooths = oracle_curves(evaluations)
    _deliver(of_smooths(smooths), source, lists.notes, outputs)


def settings_of(sampling: SamplingOptions, floor: float) -> NBestSettings:
    """How lists are evaluated."""
    return NBestSettings(floor=floor, level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)


def _lists(source: Source, *keep: str | None) -> NBest:
    """The lists, with the columns that say how dialogues went where no other table does."""
    try:
        return read_nbest(*source.paths, reading=source.reading(*keep))
    except DataError as fault:
        if keep and any(f'no column "{name}"' in str(fault) for name in ("success", "turns")):
            raise DataError(str(fault), fix="--dialogues FILE names a table with dialogue, success and turns") from None
        raise


def _dialogues(path: Path | None, source: Source, frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
    if path is not None:
        return read_table(path)
    if not source.files:
        return restaurant().dialogues
    columns = [name for name in frame.columns if name == group or name not in ("id", "system", "weight")]
    told = frame.select(columns).filter(pl.col("dialogue").is_not_null()).unique(maintain_order=True)
    unlike = told.filter(pl.col("dialogue").is_duplicated())
    if unlike.height:
        first = unlike.filter(pl.col("dialogue") == unlike["dialogue"][0])
        name = next(column for column in columns if first[column].n_unique() > 1)
        values = ", ".join(f'"{value}"' for value in first[name].unique(maintain_order=True).head(3))
        raise DataError(
            f"{name} must be the same in all utterances of a dialogue; there are {values}",
            where=f'dialogue "{unlike["dialogue"][0]}":',
            fix="--dialogues FILE names a table with a row for each dialogue",
        )
    return told


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


def _told(trial: Trial) -> tuple[str, ...]:
    """What to say of how the files were read."""
    recording = trial.recording
    return (*recording.notes, *(note for rows, _ in recording.sources for note in rows.layout.notes))


def _seeded(sampling: SamplingOptions) -> str:
    return f"seed {sampling.seed}, {sampling.replicates:,} replicates"


def _deliver(shown: Presentation, source: Source, told: tuple[str, ...], outputs: OutputOptions) -> None:
    output.deliver(replace(shown, notes=(*shown.notes, *source.notes, *told)), outputs)
