"""The analyses of answers where the rows are: an engine counts them, and only counts and some examples come here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.engines.engine import collect_frame
from demur.core.io.columns import ALIASES, DEPLOYED, JUDGED, STRATUM, candidates
from demur.core.io.sources import is_remote
from demur.core.show.numbers import listed
from demur.core.show.results import Step
from demur.core.stats.resampling import Rows
from demur.errors import DataError, UsageError
from demur.importers import importer_of
from demur.reports.analyses import (
    Advice,
    AnswerAnalyses,
    FileRead,
    Mixture,
    MixtureReading,
    Omissions,
    ReportAnalyses,
    ReportOptions,
    advise,
    aim_of,
    analyse_tables,
    calibrations_of,
    read_mixture,
)
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.comparison.counted import CountedSystems, count_systems, engine_of_systems
from demur.returns.counting import Counting, EngineLog, Lake, rows_in_engine
from demur.returns.drift.analysis import TIMES, Drift, drift, halves_of_tallies, tells_time
from demur.returns.drift.changes import Log
from demur.returns.engine_judging import INPUT_PART, LISTS_PART
from demur.returns.evaluate import Evaluations, evaluate, returns_measures
from demur.returns.judging import NONE
from demur.returns.lakes.counted_slices import Parts, counted_slice_differences, is_worth_slicing
from demur.returns.lakes.lake_rows import lake_examples
from demur.returns.recalibration import Calibration
from demur.returns.slices import MOST, SliceDifferences
from demur.returns.table import Reading
from demur.returns.tally import Tally, TallySource

FIRST_ROWS = 20_000
"""Rows that are looked at for columns with few values."""

MOST_RECALIBRATED = 5_000_000
"""Answers up to which recalibration is tried out on what their counts stand for."""

PLACE = ("errors by the place of a row", "rows of a lake have no order")


@dataclass(slots=True)
class _Lakes:
    """Lakes of answers to be analysed: what was given, how it is read and counted, and what cannot be shown."""

    data: Sequence[Any]
    reading: Reading
    how: Counting
    options: ReportOptions
    step: Step
    unreachable: dict[str, str]

    def counted(self, *, by: str | None = None, shown: Sequence[str] | None = None) -> Any:
        """The systems as the engine counts them."""
        reading = self.reading if by is None else replace(self.reading, keep=(by,))
        return count_systems(self.data, reading, self.how, by=by, shown=shown, step=self.step)


def analyse(
    data: Sequence[Any], reading: MixtureReading, options: ReportOptions, how: Counting, step: Step
) -> ReportAnalyses:
    """Analyses what is given: answers in lakes where they are, everything else in memory."""
    options.check()
    step("reading", 0, 1)
    lakes, others = _lakes_among(data, how)
    if lakes:
        return analyse_lakes(lakes, others, reading, options, how, step=step)
    return analyse_tables(read_mixture(*data, reading=reading), options, step=step)


def _lakes_among(data: Sequence[Any], how: Counting) -> tuple[list[Any], list[Any]]:
    """What an engine is to count among the things given, and what is read into memory.

    Where an engine is named it counts whatever is Parquet, a folder, a URL or a lazy frame.
    """
    if how.engine == "memory" and not any(isinstance(one, Lake) for one in data):
        return [], list(data)
    asked = how.engine != "auto" or how.spark_master is not None
    lakes = [one for one in data if _is_lake(one, asked=asked)]
    if not lakes and asked:
        raise UsageError("`engine` counts Parquet files, folders, URLs and lazy frames; none was given")
    if lakes and engine_of_systems(lakes, how) is None:
        return [], list(data)
    return lakes, [one for one in data if not any(one is lake for lake in lakes)]


def _is_lake(one: Any, *, asked: bool) -> bool:
    if isinstance(one, Mapping):
        return bool(one) and all(_is_lake(value, asked=asked) for value in one.values())
    if not isinstance(one, str | Path):
        return isinstance(one, Lake) or isinstance(nw.from_native(one, pass_through=True), nw.LazyFrame)
    if is_remote(one):
        return True
    path = Path(one)
    if path.is_dir():
        return importer_of(one) is None
    return asked and path.suffix.lower() in (".parquet", ".pq")


def analyse_lakes(
    lakes: Sequence[Any],
    others: Sequence[Any],
    reading: MixtureReading,
    options: ReportOptions,
    how: Counting,
    *,
    step: Step,
) -> ReportAnalyses:
    """Analyses answers in lakes by an engine, and other tables beside them in memory."""
    beside = analyse_tables(read_mixture(*others, reading=reading), options, step=step) if others else None
    if beside is not None and beside.answers is not None:
        raise UsageError("answers are counted in an engine or read into memory, not both: give lakes, or files")
    omissions = Omissions()
    asked = _Lakes(lakes, _reading_of(reading), how, options, step, {})
    answers, mixture = _analyse_answers(asked, omissions)
    if beside is None:
        empty = ReportAnalyses(mixture, options)
    else:
        files, notes = (*mixture.files, *beside.mixture.files), (*mixture.notes, *beside.mixture.notes)
        warnings = (*mixture.warnings, *beside.mixture.warnings)
        empty = replace(beside, mixture=replace(beside.mixture, files=files, notes=notes, warnings=warnings))
        if beside.mixture.dialogues is not None:
            asked.unreachable["what errors cost"] = "`outcome fit` with `engine` fits the outcome to turns in a lake"
    omitted = (*empty.omitted, *omissions.omitted)
    return replace(empty, answers=answers, omitted=omitted, unreachable=tuple(asked.unreachable.items()))


def _reading_of(reading: MixtureReading) -> Reading:
    """How answers in lakes are read."""
    names = ("columns", "where", "out_of_scope", "withheld", "missing_confidence", "pair_by")
    return Reading(**{name: getattr(reading, name) for name in names})


def _analyse_answers(asked: _Lakes, omissions: Omissions) -> tuple[AnswerAnalyses, Mixture]:
    options, columns = asked.options, _columns_to_look_at(asked)
    with asked.counted(shown=()) as counted:
        compared, evaluations = _compare(asked, counted, omissions)
        advice = tuple(advise(one.sample, one.system, options) for one in evaluations)
        asked.step("fetching examples", 0, 1)
        shown = tuple(
            lake_examples(counted.judged[one.system], one.system, one.shown.threshold, options.examples)
            for one in advice
        )
        wholes = {one.system: counted.tallies[one.system][0] for one in evaluations}
        mixture = _mixture_of(counted)
    sliced, timed = _count_by_columns(asked, columns)
    asked.unreachable[PLACE[0]] = PLACE[1]
    answers = AnswerAnalyses(
        evaluations,
        compared,
        advice,
        _slices(asked, sliced, advice),
        shown,
        calibrations=_calibrations(asked, evaluations, wholes),
        drifts=_drifts(asked, timed, omissions),
    )
    return answers, mixture


def _compare(asked: _Lakes, counted: CountedSystems, omissions: Omissions) -> tuple[Comparison | None, Evaluations]:
    """The systems against each other, paired where they have the same inputs, and the evaluation of each."""
    options = asked.options
    measures, sampling = returns_measures(at=options.at), options.sampling
    compared: Comparison | None = None
    if len(counted.tallies) > 1:
        settings: dict[str, Any] = {"at": options.at, "measures": measures, "step": asked.step, **sampling}
        if options.pair_by:
            compared = compare(counted.side_by_side(), **settings)
        else:
            compared = omissions.attempt("comparison", lambda: _paired_if_same(asked, counted, settings))
    if compared is not None:
        return compared, Evaluations(compared.evaluations)
    wholes = [tallies[0] for tallies in counted.tallies.values()]
    return None, evaluate(wholes, measures=measures, step=asked.step, **sampling)


def _paired_if_same(asked: _Lakes, counted: CountedSystems, settings: dict[str, Any]) -> Comparison:
    try:
        return compare(counted.side_by_side(), **settings)
    except DataError as fault:
        asked.unreachable["pairs of answers"] = f"systems are compared unpaired: {fault.rule}"
        return compare(counted.side_by_side(unpaired=True), **settings)


def _mixture_of(counted: CountedSystems) -> Mixture:
    """What was read, as far as an engine tells."""
    files = tuple(FileRead(name, "responses", None, None) for log in counted.logs for name in _names_of(log))
    return Mixture(None, None, None, None, (), files, counted.notes, counted.warnings)


MOST_NAMED = 5
"""Parts of a lake that are named; of more there is a count."""


def _names_of(log: EngineLog) -> list[str]:
    names = [one if is_remote(one) else "/".join(Path(one).parts[-2:]) for one in log.sources]
    return names if len(names) <= MOST_NAMED else [f"{log.system}: {len(names):,} parts, the first {names[0]}"]


@dataclass(frozen=True, slots=True)
class _CountedColumns:
    """Columns that rows are counted by: those asked for, or that have few values; one that tells the time."""

    slices: tuple[str, ...]
    time: str | None


def _columns_to_look_at(asked: _Lakes) -> _CountedColumns:
    """The columns that have few values among the first rows of every lake, in types that engines write alike."""
    given, keep = asked.options.by, asked.options.by or ("*",)
    sources = list(asked.data[0].values()) if isinstance(asked.data[0], Mapping) else asked.data
    try:
        found = [_first_rows(one, replace(asked.reading, keep=keep), asked) for one in sources]
    except DataError as fault:  # parts may disagree on columns that nothing else needs
        if given is not None:
            raise
        asked.unreachable["slices and halves by time"] = str(fault)
        return _CountedColumns((), None)
    common = [name for name in found[0].columns if all(name in frame.columns for frame in found)]
    time = next((name for word in TIMES for name in common if name.casefold() == word), None)
    if given is not None:
        return _CountedColumns(given, time)
    if others := dict.fromkeys(name for frame in found for name in frame.columns if name not in common):
        asked.unreachable[f"slices by {listed(list(others))}"] = "not every lake has the column"
    few = [name for name in common if all(frame[name].n_unique() <= MOST for frame in found)]
    fractions = [name for name in few if found[0][name].dtype.is_float()]
    if fractions:
        asked.unreachable[f"slices by {listed(fractions)}"] = "fractions are no slices in an engine: store them as text"
    return _CountedColumns(tuple(name for name in few if name not in fractions), time)


def _first_rows(source: Any, reading: Reading, asked: _Lakes) -> pl.DataFrame:
    """The first rows of a lake, of the columns that play no part of their own and hold plain values."""
    with rows_in_engine((source,), reading, asked.how) as rows:
        schema = rows.collect_schema()
        playing = {name for part in ALIASES for name in candidates(schema.names(), part, dict(reading.columns))}
        aside = {*playing, *JUDGED, DEPLOYED, STRATUM, INPUT_PART, LISTS_PART}
        plain = [name for name in schema.names() if name not in aside and not schema[name].is_nested()]
        if "nbest" in schema:
            asked.unreachable["where right labels stand in lists"] = "`nbest` with `engine` reads the lists of a lake"
        return collect_frame(rows.select(*plain).head(FIRST_ROWS)) if plain else pl.DataFrame()


Counted = Mapping[str, Parts]
"""The tallies of each system by the values of a column."""


def _count_by_columns(asked: _Lakes, columns: _CountedColumns) -> tuple[dict[str, Counted], tuple[str, Counted] | None]:
    """The tallies by each column to slice by, and by the one that tells the time."""
    sliced: dict[str, Counted] = {}
    timed: tuple[str, Counted] | None = None
    for column in dict.fromkeys((*columns.slices, *(() if columns.time is None else (columns.time,)))):
        parts = _count_by(asked, column)
        if parts is None:
            continue
        chosen = column in columns.slices and (asked.options.by is not None or is_worth_slicing(list(parts.values())))
        if chosen:
            sliced[column] = parts
        if column == columns.time:
            timed = (column, parts)
    return sliced, timed


def _count_by(asked: _Lakes, column: str) -> Counted | None:
    """The tallies of each system by a column; None where it has too many values, unless it was asked for."""
    try:
        with asked.counted(by=column) as counted:
            return {
                name: {str(one.part).removeprefix(f"{column}="): one for one in tallies if one.part is not None}
                for name, tallies in counted.tallies.items()
            }
    except DataError as fault:
        if column in (asked.options.by or ()):
            raise
        asked.unreachable[f"halves or slices by {column}"] = fault.rule
        return None


def _slices(asked: _Lakes, sliced: Mapping[str, Counted], advice: Sequence[Advice]) -> SliceDifferences | None:
    if not sliced:
        return None
    systems = {one.system: {column: parts[one.system] for column, parts in sliced.items()} for one in advice}
    thresholds = {one.system: one.shown.threshold for one in advice}
    return counted_slice_differences(systems, thresholds, list(sliced), level=asked.options.level)


def _calibrations(asked: _Lakes, evaluations: Evaluations, wholes: Mapping[str, Tally]) -> tuple[Calibration, ...]:
    """What recalibrating would do, tried on the rows that counts stand for where these are independent and not many."""
    rows: dict[str, Rows] = {}
    for name, tally in wholes.items():
        about = f"recalibration of {name}"
        if not TallySource(tally).alike:
            asked.unreachable[about] = "folds are dealt by rows of memory, not by buckets; the ECE is given"
        elif tally.n > MOST_RECALIBRATED or tally.sweep.upper is not None:
            asked.unreachable[about] = f"it is tried on up to {MOST_RECALIBRATED:,} answers; the ECE is given"
        else:
            rows[name] = Log.of_tally(name, tally).rows
    return calibrations_of(Evaluations(one for one in evaluations if one.system in rows), rows)


def _drifts(asked: _Lakes, timed: tuple[str, Counted] | None, omissions: Omissions) -> tuple[tuple[str, Drift], ...]:
    """The last half by time of each system against its first, where a column of days or periods tells the time."""
    if timed is None:
        return ()
    column, systems = timed
    found = []
    for name, parts in systems.items():
        if not tells_time(pl.Series([value for value in parts if value != NONE], dtype=pl.String)):
            continue
        halves = omissions.attempt("halves by time", lambda: halves_of_tallies(parts, column))  # noqa: B023
        if halves is not None:
            old, new, notes = halves
            compared = drift(old, new, aim=aim_of(old, asked.options), **asked.options.sampling)
            found.append((name, replace(compared, notes=notes)))
    return tuple(found)
