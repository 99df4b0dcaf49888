"""The table of trials: how well systems and a gold standard do as something makes it harder, study by study."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.cells import first
from demur.data.columns import TRIAL_ALIASES, check_mapping, nearest
from demur.data.files import read_source
from demur.data.frames import table_of
from demur.data.sources import Source, opened, system_names
from demur.data.tables import Request
from demur.data.trial_kinds import Kind, Metric, kind_of
from demur.data.trial_roles import IS_GOLD, Cast, cast_of, listed, with_roles, with_subjects
from demur.data.trial_rows import Role, TrialRows, Wanted, rows_of
from demur.data.wording import Wording
from demur.errors import DataError, UsageError

__all__ = ["Kind", "Role", "TrialReading", "Trials", "read_trials", "trials"]

_LEFT_OUT = Wording("row has no {} and is left out", "rows have no {} and are left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReading:
    """How to read a table of trials.

    `x` and `y` are the columns that were measured: what makes it harder, and how well it went. `lower` and `upper`
    bound y; scores without `upper` have no bound. `gold` names the performers that are the gold standard, whatever a
    column role says. `columns` maps canonical columns to those of the file. `where` keeps the rows whose column has
    the value.
    """

    x: str
    y: str
    upper: float | None = None
    lower: float = 0.0
    gold: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuses bounds between which nothing lies."""
        if self.upper is not None and not (isfinite(self.lower) and isfinite(self.upper) and self.lower < self.upper):
            raise UsageError(f"{self.y} cannot lie between {self.lower:g} and {self.upper:g}; --upper exceeds --lower")

    def wanted(self) -> Wanted:
        """What is asked of a source."""
        check_mapping(self.columns, TRIAL_ALIASES)
        return Wanted(self.x, self.y, self.columns, self.where)


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """The trials of one study, sorted, so that it does not matter in which order they were written down.

    `performers` begins with the gold standard; `performer`, `subject` and `combination` say for each trial where in
    `performers`, `subjects` and `combinations` its own stand. `y` is as it was given, `n` how many trials it sums
    up. A combination is what was switched on; those of the gold standard are not looked at, and its trials say 0.
    """

    study: str
    x_name: str
    y_name: str
    kind: Kind
    lower: float
    upper: float | None
    performers: tuple[str, ...]
    roles: tuple[Role, ...]
    performer: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    n: NDArray[np.float64]
    subject: NDArray[np.int64]
    subjects: tuple[str, ...]
    combination: NDArray[np.int64]
    combinations: tuple[frozenset[str], ...]
    independent: bool
    """Whether nobody is named, so that each trial is taken for a subject of its own."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def taken(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Trials:
        """Only these trials; all names stay, and stand where they stood."""
        names = ("performer", "x", "y", "n", "subject", "combination")
        arrays: dict[str, Any] = {name: _fixed(getattr(self, name)[rows]) for name in names}
        return replace(self, **arrays)

    def of(self, performer: str) -> Trials:
        """The trials of one performer; subjects and combinations stand where they stood."""
        if performer not in self.performers:
            raise DataError(f'there is no performer "{performer}"', fix=nearest(performer, self.performers))
        place = self.performers.index(performer)
        mine = self.taken(self.performer == place)
        alone = _fixed(np.zeros_like(mine.performer))
        return replace(mine, performers=(performer,), roles=(self.roles[place],), performer=alone)

    @property
    def digest(self) -> str:
        """Digest of the data: of all that is analysed, whatever the file and its columns are called."""
        combinations = [sorted(names) for names in self.combinations]
        named = (self.kind, self.lower, self.upper, self.performers, self.roles, self.subjects, combinations)
        digest = hashlib.blake2b(repr(named).encode(), digest_size=8)
        for places in (self.performer, self.subject, self.combination):
            digest.update(places.astype("<i8").tobytes())
        for numbers in (self.x, self.y, self.n):
            digest.update(numbers.astype("<f8").tobytes())
        return digest.hexdigest()


def read_trials(*sources: str | Path | Source, reading: TrialReading) -> tuple[Trials, ...]:
    """Reads the trials in files: paths, globs, or `-` for standard input; one for each study, in order of name.

    A table without a column `study` stands for one study, named after its file.
    """
    wanted = reading.wanted()
    with opened(*sources) as files:
        tables = [read_source(file, Request()) for file in files]
        return _studies(rows_of(tables, _study_names(files), wanted), reading)


def trials(data: object, *, reading: TrialReading) -> tuple[Trials, ...]:
    """The trials in a frame, in columns, or in rows.

    >>> rows = [{"performer": who, "wer": 0.1, "done": 1} for who in ("wizard", "A", "B")]
    >>> found, = trials(rows, reading=TrialReading(x="wer", y="done"))
    >>> found.performers, found.roles, found.kind
    (('wizard', 'A', 'B'), ('gold', 'system', 'system'), 'trials')
    """
    return _studies(rows_of([table_of(data, Request())], ["study"], reading.wanted()), reading)


def _study_names(files: Sequence[Source]) -> list[str]:
    """The stem of each file, with its folder where two share one, and the whole path where they share that too."""
    names, _ = system_names(files)
    shared = Counter(names)
    return [file.name if shared[name] > 1 else name for file, name in zip(files, names, strict=True)]


def _studies(rows: TrialRows, reading: TrialReading) -> tuple[Trials, ...]:
    cast_in = with_roles(rows, reading.gold)
    names = sorted(cast_in.frame["study"].unique())
    where = {name: f'study "{name}":' if len(names) > 1 else f"{rows.tables[0].name}:" for name in names}
    return tuple(_study(name, cast_in.only(pl.col("study") == name), reading, where[name]) for name in names)


def _study(name: str, rows: TrialRows, reading: TrialReading, where: str) -> Trials:
    measured = _measured(rows, reading, where)
    cast = cast_of(measured, where)
    kind, about = kind_of(measured, Metric(reading.y, reading.lower, reading.upper))
    ready = with_subjects(measured, cast)
    combinations = _combinations(ready.frame)
    ordered = _ordered(ready.frame, cast, combinations)
    subject, subjects = _subjects(ordered["subject"])
    return Trials(
        study=name,
        x_name=reading.x,
        y_name=reading.y,
        kind=kind,
        lower=reading.lower,
        upper=reading.upper if kind == "scores" else 1.0,
        performers=(cast.gold, *cast.systems),
        roles=cast.roles,
        performer=_fixed(ordered["performer"].to_numpy()),
        x=_fixed(ordered["x"].to_numpy()),
        y=_fixed(ordered["y"].to_numpy()),
        n=_fixed(ordered["n"].to_numpy()),
        subject=_fixed(subject),
        subjects=subjects,
        combination=_fixed(ordered["combination"].to_numpy()),
        combinations=tuple(frozenset(_names(coded)) for coded in combinations),
        independent=ready.frame["subject"].is_null().all(),
        notes=(*ready.notes, *about),
        warnings=ready.warnings,
    )


def _measured(rows: TrialRows, reading: TrialReading, where: str) -> TrialRows:
    """Leaves out the rows without x or y, and tells how many, where the first stands, and who is gone with them."""
    missing = rows.frame["x"].is_null() | rows.frame["y"].is_null()
    either = f"{reading.x} or no {reading.y}"
    place = first(missing)
    if place is None:
        return rows
    if missing.all():
        raise DataError(f"every row has no {either}", where=where, fix="nothing is left to analyse")
    kept = rows.only(~missing)
    gone = sorted({*rows.frame["performer"]} - {*kept.frame["performer"]})
    all_of = f"; nothing is left of {listed(gone)}" if gone else ""
    told = f"{_LEFT_OUT.about(either).told(int(missing.sum()))}, first {rows.place(place)}{all_of}"
    return replace(kept, warnings=(*kept.warnings, told))


def _names(coded: str) -> list[str]:
    return msgspec.json.decode(coded, type=list[str])


def _combinations(frame: pl.DataFrame) -> list[str]:
    """What was switched on in systems, few things first."""
    coded = frame.filter(~IS_GOLD)["components"].unique()
    return sorted(coded, key=lambda code: (len(_names(code)), _names(code)))


def _ordered(frame: pl.DataFrame, cast: Cast, combinations: Sequence[str]) -> pl.DataFrame:
    """The rows in the one order that they have whatever the order they came in."""
    performer = pl.col("performer").replace_strict(_places(cast.systems), default=-1, return_dtype=pl.Int64) + 1
    combination = pl.col("components").replace_strict(_places(combinations), default=0, return_dtype=pl.Int64)
    return frame.select(
        "subject",
        "x",
        "y",
        pl.col("n").fill_null(1.0),
        performer=performer,
        combination=pl.when(IS_GOLD).then(pl.lit(0, pl.Int64)).otherwise(combination),
    ).sort("performer", "subject", "x", "y", "n", "combination", nulls_last=True)


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _subjects(named: pl.Series) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Each trial's place among the subjects: those named in order of name, then one for each trial without."""
    names = named.drop_nulls().unique().sort().to_list()
    subject = named.replace_strict(_places(names), default=-1, return_dtype=pl.Int64).to_numpy().copy()
    alone = subject < 0
    subject[alone] = len(names) + np.arange(alone.sum())
    return subject, (*names, *(f"trial {number + 1}" for number in range(alone.sum())))


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
