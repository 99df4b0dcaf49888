"""The analyses of a report on a mixture of tables, each where the data allows it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

from demur.core.io.columns import (
    ALIASES,
    DEPLOYED,
    DIALOGUE_ALIASES,
    EVERYTHING,
    JUDGED,
    NBEST_ALIASES,
    STRATUM,
    TRIAL_ALIASES,
    nearest,
)
from demur.core.io.files import table_of
from demur.core.io.sources import Source, confidence_column
from demur.core.io.tables import CATEGORISED_ROWS, Request, in_categories
from demur.core.options import KINDS, Kind, Sampling
from demur.core.show.numbers import names_in_short
from demur.core.show.results import Step, path_text, silent
from demur.core.stats.resampling import Rows, Sample
from demur.errors import DataError, DemurError, UsageError
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import TrialReading, Trials, measured_columns, read_trials, trials
from demur.importers import importer_of
from demur.importers.kinds import columns_in, columns_of, kind_of, outcome_column
from demur.importers.reading import opened
from demur.nbest_lists.evaluate import NBestComparison, NBestEvaluations, NBestSettings, compare_lists, evaluate_nbest
from demur.nbest_lists.ranks import ListRanks, list_ranks
from demur.nbest_lists.reward import Smooths, reward_curves
from demur.nbest_lists.table import NBest, NBestReading, join_tables, nbest, read_nbest
from demur.outcome.features import design
from demur.outcome.fitting import OutcomeFit, Procedure, fit_design
from demur.outcome.table import DialogueReading, Dialogues, dialogues, read_dialogues
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.drift.analysis import Aim, Drift, drift, halves_by_time
from demur.returns.drift.changes import Log
from demur.returns.evaluate import Evaluation, Evaluations, evaluate, returns_measures
from demur.returns.examples import Examples, examples
from demur.returns.judging import uneven_orders
from demur.returns.recalibration import Calibration, calibration
from demur.returns.slices import SliceDifference, SliceDifferences, Untested, slice_columns, slice_differences
from demur.returns.table import Reading, Responses, named_systems, read_data, read_responses, responses
from demur.returns.threshold import Choice, threshold_by_cost, threshold_by_error, threshold_by_nonreturn

Pairs = tuple[tuple[str, str], ...]
Named = TypeVar("Named", Evaluation, SliceDifference, Untested, Calibration, Examples, ListRanks)
"""What is of one system, which its field `system` names."""

_ALIASES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    "responses": ALIASES,
    "nbest": NBEST_ALIASES,
    "dialogues": DIALOGUE_ALIASES,
    "trials": TRIAL_ALIASES,
}
_READ: Mapping[type, Kind] = {Responses: "responses", NBest: "nbest", Dialogues: "dialogues", Trials: "trials"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureReading:
    """How to read tables of several kinds.

    `kinds` says what a file is, by its path or its name, where its columns do not. A column that is mapped, and a value
    that rows are kept by, count for the tables that have the column. `x` and `y` are the columns measured in trials.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Pairs = ()
    out_of_scope: tuple[str, ...] = Reading().out_of_scope
    withheld: tuple[str, ...] = Reading().withheld
    missing_confidence: Literal["error", "lowest"] = "error"
    pair_by: tuple[str, ...] = ()
    outcome: str | None = None
    x: str | None = None
    y: str | None = None
    pack_inputs: bool = True
    """Whether texts of inputs are compressed, as only examples show some; not where rows are sliced by them."""


AS_IT_COMES = MixtureReading()


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file as it was read: its name without folders, what it was taken for, its size, and a digest of its bytes."""

    name: str
    kind: Kind
    size: int | None
    digest: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """What was read; a kind that nothing was given of is None, or empty."""

    responses: Responses | None
    turns: Responses | None
    """The answers again where there are dialogues: every label counts as one, and no confidences are needed."""
    lists: NBest | None
    dialogues: Dialogues | None
    trials: tuple[Trials, ...]
    files: tuple[FileRead, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A table to read, what it is, and the columns it has."""

    data: Any
    kind: Kind
    columns: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What a file is called: as it was given, and without its folders."""

    @property
    def path(self) -> Path | None:
        if isinstance(self.data, Source):
            return self.data.path
        return self.data if isinstance(self.data, Path) else None


def read_mixture(*sources: Any, reading: MixtureReading = AS_IT_COMES) -> Mixture:
    """Reads files, globs, folders of DSTC, frames, rows, and tables read before, in any mixture."""
    with ExitStack() as stack:
        given: list[_Given] = []
        files = [source for source in sources if _is_file(source)]
        for place, source in enumerate(sources):
            if not _is_file(source):
                given += _given_tables(source, reading)
            elif not any(map(_is_file, sources[:place])):  # all files together, as some are logs only in pairs
                held = stack.enter_context(opened(*files, columns=reading.columns))
                given += [_given_file(file, reading) for file in held]
        return _read_tables(given, reading)


def _is_file(source: Any) -> bool:
    return isinstance(source, str | Path) and confidence_column(source) is None and importer_of(source) is None


def _read_tables(given: Sequence[_Given], reading: MixtureReading) -> Mixture:
    if not given:
        raise DataError("no file to read was given", fix='name a file, a glob, or "-" for standard input')
    _refuse_unknown_kinds(given, reading)
    _refuse_unused(given, reading)
    by_kind = {kind: [one for one in given if one.kind == kind] for kind in KINDS}
    answers = _read_answers(by_kind["responses"], reading)
    ended = _read_dialogues(by_kind["dialogues"], reading)
    lists = _read_lists(by_kind["nbest"], reading)
    studies, notes = _read_trials(by_kind["trials"], reading)
    tables = [table for table in (answers, lists, ended, *studies) if table is not None]
    plain = replace(reading, out_of_scope=(), missing_confidence="lowest")
    return Mixture(
        answers,
        _read_answers(by_kind["responses"], plain) if ended is not None else None,
        lists,
        ended,
        studies,
        tuple(_file(one, path) for one in given if (path := one.path) is not None),
        tuple(
            dict.fromkeys([*(note for table in tables for note in table.notes), *notes, *_unfiltered(given, reading)])
        ),
        tuple(dict.fromkeys(warning for table in tables for warning in table.warnings)),
    )


def _given_file(file: Source, reading: MixtureReading) -> _Given:
    names = (file.name, Path(file.name).name)
    chosen = next((reading.kinds[name] for name in names if name in reading.kinds), None)
    columns = tuple(columns_in(file))
    return _Given(file, chosen or kind_of(columns, where=f"{file.name}:"), columns, names)


def _given_tables(source: Any, reading: MixtureReading) -> list[_Given]:
    if isinstance(source, tuple) and source and all(isinstance(one, Trials) for one in source):
        return [_Given(one, "trials", ()) for one in source]
    if type(source) in _READ:
        return [_Given(source, _READ[type(source)], ())]
    if named_systems(source) or confidence_column(source) is not None:
        how = _answers_reading(reading, dict(reading.columns), reading.where)
        return [_Given(read_data((source,), how), "responses", ())]
    if not isinstance(source, str | Path):
        columns = table_of(source, Request()).columns
        return [_Given(source, kind_of(columns, where="data:"), columns)]
    path, columns = Path(source), columns_of(source)
    names = (str(path), path.name)
    chosen = next((reading.kinds[name] for name in names if name in reading.kinds), None)
    return [_Given(path, chosen or kind_of(columns, where=f"{path}:"), columns, names)]


def _refuse_unknown_kinds(given: Sequence[_Given], reading: MixtureReading) -> None:
    names = {name for one in given for name in one.names}
    for name, kind in reading.kinds.items():
        if kind not in KINDS:
            raise UsageError(f'`kinds` {name}={kind}: a table is one of {", ".join(KINDS)}; got "{kind}"')
        if name not in names:
            raise UsageError(f"`kinds` {name}={kind}: no such file is read here; {nearest(name, sorted(names))}")


def _refuse_unused(given: Sequence[_Given], reading: MixtureReading) -> None:
    """Refuses a mapping or a filter that no table can follow."""
    known = [one for one in given if one.columns]
    if len(known) < len(given):
        return
    every = sorted({name for one in given for name in one.columns})
    parts = list(dict.fromkeys(part for one in given for part in _ALIASES[one.kind]))
    for part, column in reading.columns.items():
        if part not in parts:
            raise DataError(f'no column is called "{part}" here', where="`columns`:", fix=nearest(part, parts))
        if not any(part in _ALIASES[one.kind] and column in one.columns for one in given):
            rule = f'no table here has a column "{column}" that can be mapped to {part}'
            raise DataError(rule, where="`columns`:", fix=nearest(column, every))
    for column, _ in reading.where:
        if not any(_has(one, column, reading) for one in given):
            raise DataError(f'no table here has a column "{column}"', where="`where`:", fix=nearest(column, every))


def _has(one: _Given, column: str, reading: MixtureReading) -> bool:
    names = {name.casefold() for name in one.columns}
    aliases = _ALIASES[one.kind].get(column, ())
    return column in one.columns or column in reading.columns or any(name in names for name in aliases)


def _columns(given: Sequence[_Given], reading: MixtureReading) -> dict[str, str]:
    """The mappings that concern the tables of one kind."""
    parts = _ALIASES[given[0].kind]
    held = {name for one in given for name in one.columns}
    return {part: name for part, name in reading.columns.items() if part in parts and (name in held or not held)}


def _where(given: Sequence[_Given], reading: MixtureReading) -> Pairs:
    return tuple(pair for pair in reading.where if all(_has(one, pair[0], reading) or not one.columns for one in given))


def _unfiltered(given: Sequence[_Given], reading: MixtureReading) -> list[str]:
    """Says which tables a filter left alone."""
    notes = []
    for column, value in reading.where:
        for kind in dict.fromkeys(one.kind for one in given):
            mine = [one for one in given if one.kind == kind]
            if (column, value) not in _where(mine, reading):
                notes.append(f"{column}={value} was not asked of {kind}: not all of these tables have the column")
    return notes


def _by_source(given: Sequence[_Given]) -> tuple[list[Any], list[Any], list[Any]]:
    """Files, frames, and tables read before."""
    files = [one.data for one in given if isinstance(one.data, Path | Source)]
    read = [one.data for one in given if type(one.data) in _READ]
    return files, [one.data for one in given if not any(one.data is each for each in (*files, *read))], read


def _answers_reading(reading: MixtureReading, columns: dict[str, str], where: tuple[tuple[str, str], ...]) -> Reading:
    return Reading(
        columns=columns,
        where=where,
        out_of_scope=reading.out_of_scope,
        withheld=reading.withheld,
        missing_confidence=reading.missing_confidence,
        keep=(EVERYTHING,),
        pair_by=reading.pair_by,
        pack_inputs=reading.pack_inputs,
    )


def _read_answers(given: Sequence[_Given], reading: MixtureReading) -> Responses | None:
    if not given:
        return None
    how = _answers_reading(reading, _columns(given, reading), _where(given, reading))
    files, frames, read = _by_source(given)
    parts = [read_responses(*files, reading=how)] if files else []
    for place, frame in enumerate(frames, start=1):
        parts.append(responses(frame, system=f"system {place}" if len(frames) > 1 else None, reading=how))
    parts += read
    if len(parts) == 1:
        return replace(parts[0], frame=_in_little_room(parts[0].frame))
    frame = pl.concat([part.with_inputs().frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    return Responses(frame, notes, warnings, left_out=pl.concat([part.left_out for part in parts]))


def _in_little_room(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a long log with names and labels as categories, and without room for what is the same in all rows."""
    if frame.height < CATEGORISED_ROWS:
        return frame
    slices = [values for values in frame if values.dtype == pl.Categorical]
    kinds = [pl.Enum(values.unique().drop_nulls().cast(pl.String).sort()) for values in slices]  # mostly of a byte
    frame = frame.with_columns(values.cast(kind) for values, kind in zip(slices, kinds, strict=True))
    frame = frame.with_columns(in_categories(frame[name]) for name in ("system", "prediction"))
    if frame["dialogue"].null_count() == frame.height:
        frame = frame.with_columns(dialogue=pl.lit(None))
    if (frame["weight"] == 1.0).all():
        frame = frame.with_columns(weight=pl.lit(1.0))
    return frame


def _read_lists(given: Sequence[_Given], reading: MixtureReading) -> NBest | None:
    if not given:
        return None
    how = NBestReading(
        columns=_columns(given, reading), where=_where(given, reading), out_of_scope=reading.out_of_scope
    )
    files, frames, read = _by_source(given)
    parts = [read_nbest(*files, reading=how)] if files else []
    return join_tables([*parts, *(nbest(frame, reading=how) for frame in frames), *read])


def _read_dialogues(given: Sequence[_Given], reading: MixtureReading) -> Dialogues | None:
    if not given:
        return None
    files, frames, read = _by_source(given)
    names = tuple(name for one in given for name in one.columns)
    how = DialogueReading(outcome=reading.outcome or outcome_column(names), columns=_columns(given, reading))
    if bool(files) + len(frames) + len(read) > 1:
        raise UsageError("dialogues are files, or one frame; put several frames together first")
    if read:
        table: Dialogues = read[0]
        return table
    return read_dialogues(*files, reading=how) if files else dialogues(frames[0], reading=how)


def _read_trials(given: Sequence[_Given], reading: MixtureReading) -> tuple[tuple[Trials, ...], list[str]]:
    if not given:
        return (), []
    files, frames, read = _by_source(given)
    if not files and not frames:
        return tuple(read), []
    x, y, notes = measured_columns([*files, *frames], reading.x, reading.y)
    how = TrialReading(x=x, y=y, columns=_columns(given, reading), where=_where(given, reading))
    studies = read_trials(*files, reading=how) if files else ()
    return (*studies, *(one for frame in frames for one in trials(frame, reading=how)), *read), notes


def _file(given: _Given, path: Path) -> FileRead:
    name = path_text(Path(given.data.name if isinstance(given.data, Source) else path).name)
    if not path.is_file():
        return FileRead(name, given.kind, None, None)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileRead(name, given.kind, path.stat().st_size, digest[:16])


PROMISED, CHANCE = 0.05, 0.05
"""The error rate that a threshold is looked for to promise, and the chance that the promise fails, by default."""


AIMS = ("max_error", "max_nonreturn", "cost_ratio")
"""Options that say how thresholds are chosen; one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Sampling):
    """How tables are analysed.

    `by` are the columns to slice by, None all that suit. At most one of `cost_ratio`, `max_error` (with `delta`) and
    `max_nonreturn` says how thresholds are chosen; without any, an error rate of 5 % is promised.
    """

    at: float = 0.2
    by: tuple[str, ...] | None = None
    cost_ratio: float | None = None
    max_error: float | None = None
    delta: float | None = None
    max_nonreturn: float | None = None
    pair_by: tuple[str, ...] = ()
    examples: int = 10
    features: str = "conf+scores.f"
    matched: bool = True

    @property
    def aim(self) -> str | None:
        """The option that says how thresholds are chosen; None where none does, and a limit on errors is assumed."""
        return next((name for name in AIMS if getattr(self, name) is not None), None)

    def check(self) -> None:
        """Refuses what cannot be, before any work is done."""
        given = [name for name in AIMS if getattr(self, name) is not None]
        if len(given) > 1:
            named = " and ".join(f"`{name}`" for name in given)
            raise UsageError(f"a threshold is advised for one aim; got {named}")
        if self.delta is not None and self.max_error is None:
            raise UsageError("`delta` goes with `max_error`: it is the chance that the promised error rate is exceeded")


@dataclass(frozen=True, slots=True)
class Advice:
    """The thresholds looked at for one system; the first is recommended, unless it returns nothing."""

    system: str
    choices: tuple[Choice, ...]
    shown: Choice
    """Where slices and examples are shown: at the recommended threshold; where there is none, at another."""

    def renamed(self, name: str) -> Advice:
        """The advice for the system under another name; a choice that is shown stays the one that is listed."""
        choices = {id(one): replace(one, system=name) for one in (*self.choices, self.shown)}
        return Advice(name, tuple(choices[id(one)] for one in self.choices), choices[id(self.shown)])

    @property
    def recommended(self) -> Choice | None:
        """The choice that keeps the target; None where no threshold does."""
        return None if self.choices[0].returns_nothing else self.choices[0]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerAnalyses:
    """What answers with confidences show."""

    evaluations: Evaluations
    comparison: Comparison | None
    advice: tuple[Advice, ...]
    slices: SliceDifferences | None
    examples: tuple[Examples, ...]
    calibrations: tuple[Calibration, ...] = ()
    ranks: tuple[ListRanks, ...] = ()
    """Where right labels stand in the lists of each system that has some."""
    drifts: tuple[tuple[str, Drift], ...] = ()
    """The first half by time against the last, of each system, where a column tells the time."""
    uneven: tuple[tuple[str, str], ...] = ()
    """Systems whose errors depend on the place of a row in the file, and how."""

    def in_short(self) -> tuple[AnswerAnalyses, str]:
        """The analyses with short names of systems, as a page shows them, and a sentence on what all names share."""
        labels, shared = names_in_short([one.system for one in self.evaluations])
        if all(name == label for name, label in labels.items()):
            return self, shared

        def renamed(one: Named) -> Named:
            return replace(one, system=labels[one.system])

        slices = self.slices
        if slices is not None:
            slices = replace(
                slices,
                tests=tuple(map(renamed, slices.tests)),
                untested=tuple(map(renamed, slices.untested)),
                thresholds={labels[name]: cutoff for name, cutoff in slices.thresholds.items()},
            )
        short = replace(
            self,
            evaluations=Evaluations(map(renamed, self.evaluations)),
            comparison=None if self.comparison is None else self.comparison.in_short[0],
            advice=tuple(one.renamed(labels[one.system]) for one in self.advice),
            slices=slices,
            calibrations=tuple(map(renamed, self.calibrations)),
            examples=tuple(map(renamed, self.examples)),
            ranks=tuple(map(renamed, self.ranks)),
            drifts=tuple((labels[name], drift) for name, drift in self.drifts),
            uneven=tuple((labels[name], note) for name, note in self.uneven),
        )
        return short, shared


@dataclass(frozen=True, slots=True, eq=False)
class ReportAnalyses:
    """The analyses of a mixture of tables; one that the data does not allow is None, or empty.

    Of the answers the mixture has the systems alone, as the rows of long logs take more room than all analyses.
    """

    mixture: Mixture
    options: ReportOptions
    answers: AnswerAnalyses | None = None
    lists: NBestEvaluations | None = None
    list_comparison: NBestComparison | None = None
    fits: tuple[tuple[str, OutcomeFit], ...] = ()
    rewards: Smooths | None = None
    gold: GoldStudies | None = None
    omitted: tuple[tuple[str, str], ...] = ()
    """Analyses that failed although there is data of the kind, and why."""
    unreachable: tuple[tuple[str, str], ...] = ()
    """Sections that rows in memory would have and a lake has not, and why."""


@dataclass(slots=True)
class Omissions:
    """Analyses that failed on sound data and are left out of the report, with the reasons."""

    omitted: list[tuple[str, str]] = field(default_factory=list)

    def attempt(self, name: str, analysis: Callable[[], Any]) -> Any:
        """What an analysis gives; None where it fails."""
        try:
            return analysis()
        except DemurError as fault:
            self.omitted.append((name, str(fault)))
            return None


def analyse_tables(mixture: Mixture, options: ReportOptions, *, step: Step = silent) -> ReportAnalyses:
    """Analyse a mixture of tables; `step` is called before each kind."""
    options.check()
    omissions = Omissions()
    step("answers", 0, 4)
    answers: AnswerAnalyses | None = None
    if mixture.responses is not None:
        answers = _analyse_answers(mixture.responses, options, omissions, step)
        rows = {one.system: Rows.from_frame(mixture.responses.of(one.system).frame) for one in answers.evaluations}
        systems = replace(mixture.responses, frame=mixture.responses.frame.select("system"))
        mixture = replace(mixture, responses=systems)
        answers = replace(answers, calibrations=calibrations_of(answers.evaluations, rows))
    step("N-best lists", 1, 4)
    lists, compared = _analyse_lists(mixture, options, omissions)
    step("outcomes", 2, 4)
    fits = _fit_outcomes(mixture, options, omissions)
    rewards: Smooths | None = None
    table = mixture.dialogues
    if table is not None and lists is not None and mixture.turns is None:  # no answers explain the outcome
        rewards = omissions.attempt("outcome by N-best lists", lambda: reward_curves(lists, table.frame, group=None))
    step("gold standard", 3, 4)
    how = GoldOptions(**options.sampling)
    gold = GoldStudies(analyse(study, how) for study in mixture.trials) if mixture.trials else None
    return ReportAnalyses(mixture, options, answers, lists, compared, fits, rewards, gold, tuple(omissions.omitted))


def _analyse_answers(responses: Responses, options: ReportOptions, omissions: Omissions, step: Step) -> AnswerAnalyses:
    measures = returns_measures(at=options.at)
    compared: Comparison | None = None
    if len(responses.systems) > 1:
        settings = {"at": options.at, "measures": measures, "step": step, **options.sampling}
        plain = responses.frame.select(name for name in (*JUDGED, STRATUM, DEPLOYED) if name in responses.frame.columns)
        answers = replace(responses, frame=plain)  # texts and slices would be put in order with the rows
        if options.pair_by:  # as it was asked for, or not at all
            compared = compare(answers, matched=True, pair_by=options.pair_by, **settings)
        else:
            compared = omissions.attempt("comparison", lambda: paired_if_possible(compare, answers, settings))
    if compared is not None and not any(compared.dropped.values()):
        evaluations = Evaluations(compared.evaluations)
    else:
        evaluations = evaluate(responses, measures=measures, step=step, **options.sampling)
    advice = tuple(advise(one.sample, one.system, options) for one in evaluations)
    thresholds = {one.system: one.shown.threshold for one in advice}
    columns = slice_columns(responses) if options.by is None else options.by
    step("slices", 0, 1)
    return AnswerAnalyses(
        evaluations,
        compared,
        advice,
        slice_differences(responses, thresholds, columns, level=options.level) if columns else None,
        tuple(examples(responses.of(name), cutoff, options.examples) for name, cutoff in thresholds.items()),
        ranks=_rank_lists(responses, options, omissions),
        drifts=_drifts(responses, options, omissions),
        uneven=uneven_orders(responses),
    )


def calibrations_of(evaluations: Evaluations, rows: Mapping[str, Rows]) -> tuple[Calibration, ...]:
    """What recalibrating would do to each system whose confidences are probabilities and differ."""
    ranked = (one for one in evaluations if one.sample.sweep.threshold.size > 1)
    found = (calibration(one, rows[one.system]) for one in ranked)
    return tuple(one for one in found if one is not None)


def paired_if_possible(comparing: Callable[..., Any], table: Any, settings: dict[str, Any]) -> Any:
    """Systems compared in pairs by id where they share some and agree on the targets, otherwise unpaired, and why."""
    try:
        return comparing(table, matched=True, **settings)
    except DataError as fault:
        return replace(comparing(table, unpaired=True, **settings), note=f"compared as unpaired: {fault.rule}")


def _rank_lists(responses: Responses, options: ReportOptions, omissions: Omissions) -> tuple[ListRanks, ...]:
    """Where right labels stand in the lists of those systems that have lists."""
    if "nbest" not in responses.frame.columns:
        return ()
    tables = [responses.of(system) for system in responses.systems]
    listed = [table for table in tables if table.frame["nbest"].null_count() < len(table)]
    ranks = [omissions.attempt("N-best lists", partial(list_ranks, table, level=options.level)) for table in listed]
    return tuple(one for one in ranks if one is not None)


def _drifts(responses: Responses, options: ReportOptions, omissions: Omissions) -> tuple[tuple[str, Drift], ...]:
    """The last half by time of each system against its first, where a column tells the time."""
    found = []
    for system in responses.systems:
        halves = omissions.attempt("halves by time", partial(halves_by_time, responses.of(system)))
        if halves is not None:
            old, new, notes = halves
            found.append((system, replace(drift(old, new, aim=aim_of(old, options), **options.sampling), notes=notes)))
    return tuple(found)


def aim_of(old: Log, options: ReportOptions) -> Aim:
    """The promise that is made on the first half and checked on the last; none where no threshold keeps it."""
    if options.cost_ratio is not None:
        return Aim()
    if options.max_nonreturn is not None:
        aim = Aim(max_nonreturn=options.max_nonreturn)
    elif options.max_error is not None:
        aim = Aim(max_error=options.max_error, delta=options.delta)
    else:
        aim = Aim(max_error=PROMISED, delta=CHANCE)
    try:
        choice = aim.choose(old)
    except UsageError:  # the system withholds more by itself
        return Aim()
    return Aim() if choice is None or math.isnan(choice.threshold) else aim


def advise(sample: Sample, system: str, options: ReportOptions) -> Advice:
    """The thresholds for one system: the one asked for, or a promise, a limit on errors and one on non-returns."""
    floor = float(sample.sweep.withheld / sample.sweep.total)
    if options.cost_ratio is not None:
        choices = [threshold_by_cost(sample, options.cost_ratio, name=system)]
    elif options.max_error is not None:
        choices = [threshold_by_error(sample, options.max_error, delta=options.delta, name=system)]
    elif options.max_nonreturn is not None:
        choices = [threshold_by_nonreturn(sample, max(options.max_nonreturn, floor), name=system)]
    else:
        choices = [threshold_by_error(sample, PROMISED, delta=delta, name=system) for delta in (CHANCE, None)]
        choices += [threshold_by_nonreturn(sample, options.at, name=system)] if floor <= options.at else []
    first, *others = choices
    choices = [first, *(replace(one, curve=first.curve) for one in others)]  # one curve of a long log is enough
    if not math.isnan(first.threshold):
        return Advice(system, tuple(choices), first)
    spare = threshold_by_cost(sample, 0.0, name=system), threshold_by_error(sample, 1.0, name=system)
    cheapest, everything = (replace(one, curve=first.curve) for one in spare)
    kept = (choice for choice in (*choices, cheapest, everything) if not math.isnan(choice.threshold))
    return Advice(system, tuple(choices), next(kept, cheapest))


def _analyse_lists(
    mixture: Mixture, options: ReportOptions, omissions: Omissions
) -> tuple[NBestEvaluations | None, NBestComparison | None]:
    table = mixture.lists
    if table is None:
        return None, None
    settings = NBestSettings(**options.sampling)
    compared: NBestComparison | None = None
    if len(table.systems) > 1:
        name = "comparison of N-best lists"
        compared = omissions.attempt(name, lambda: paired_if_possible(compare_lists, table, {"settings": settings}))
    return evaluate_nbest(table, settings=settings) if compared is None else None, compared


def _fit_outcomes(mixture: Mixture, options: ReportOptions, omissions: Omissions) -> tuple[tuple[str, OutcomeFit], ...]:
    """A model of the outcome for each system whose turns name dialogues."""
    turns, table = mixture.turns, mixture.dialogues
    if turns is None or table is None:
        return ()

    def fit(system: str) -> OutcomeFit:
        made = design(table, turns.of(system), features=options.features, allow_unmatched=options.matched)
        return fit_design(made, how=Procedure(**options.sampling))

    fits = [(system, omissions.attempt(f"outcome of {system}", partial(fit, system))) for system in turns.systems]
    return tuple((system, one) for system, one in fits if one is not None)
