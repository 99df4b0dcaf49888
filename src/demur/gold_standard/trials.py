"""The table of trials: how well systems and a gold standard do as something makes it harder, study by study."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.io.columns import TRIAL_ALIASES, check_mapping, nearest
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source, opened, system_names
from demur.core.io.tables import Request, first
from demur.core.show.numbers import ROWS, Wording
from demur.errors import DataError, UsageError
from demur.gold_standard.trial_rows import Role, TrialRequest, TrialRows, rows_of

Kind = Literal["trials", "rates", "scores"]
"""0 or 1 of each trial, the share of n trials that succeeded, or a score."""

_WHOLE_ENOUGH = 0.05
"""How far a rate times its n may be from a whole number before a warning says so."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The column that holds the performance, and what bounds it; without an upper bound it has none."""

    name: str
    lower: float
    upper: float | None

    @property
    def may_be_share(self) -> bool:
        """Whether the bounds are those of a share, or nothing was said."""
        return self.lower == 0 and self.upper in (None, 1)


def kind_of(rows: TrialRows, metric: Metric) -> tuple[Kind, list[str]]:
    """What the performance is, and what a reader should know of it; refuses what cannot be."""
    y = rows.frame["y"]
    if rows.frame["n"].is_not_null().any():
        return _of_many(rows, metric)
    if metric.may_be_share and y.is_in([0.0, 1.0]).all():
        return "trials", []
    if metric.may_be_share and metric.upper is None and y.is_between(0, 1).all():
        raise _rates_without_n(rows, metric)
    _refuse_outside(rows, metric)
    unbounded = f"{metric.name} has no upper bound; intellectual complexity needs one: --upper U, or upper=U"
    return "scores", [unbounded] if metric.upper is None else []


def _of_many(rows: TrialRows, metric: Metric) -> tuple[Kind, list[str]]:
    """What each row sums up n trials for."""
    _refuse_uncounted(rows, metric)
    if not metric.may_be_share:
        _refuse_outside(rows, metric)
        return "scores", [f"{metric.name} is the mean of n trials in each row"]
    share = Metric(metric.name, 0.0, 1.0)
    _refuse_outside(rows, share, fix="with a column n it is a rate; --upper U, or upper=U, for mean scores of n trials")
    return "rates", _rounded(rows, metric)


def _refuse_uncounted(rows: TrialRows, metric: Metric) -> None:
    n = rows.frame["n"]
    bad = first(n.is_null() | (n <= 0) | (n != n.round()))
    if bad is not None:
        rule = f"must be a whole number of at least 1: the trials that {metric.name} is of"
        raise rows.fault(bad, "n", rule, got="nothing" if n[bad] is None else n[bad])


def _refuse_outside(rows: TrialRows, metric: Metric, fix: str = "") -> None:
    y = rows.frame["y"]
    bad = first((y < metric.lower) | (y > metric.upper) if metric.upper is not None else y < metric.lower)
    if bad is None:
        return
    if metric.upper is None:
        rule = f"must be at least {metric.lower:g}"
        way_out = "--lower L, or lower=L, gives the lower bound, -inf where there is none"
    else:
        rule = f"must lie between {metric.lower:g} and {metric.upper:g}"
        way_out = "--lower and --upper give the bounds of the metric"
    raise rows.fault(bad, metric.name, rule, got=float(y[bad]), fix=fix or way_out)


def _rates_without_n(rows: TrialRows, metric: Metric) -> DataError:
    broken = first(~rows.frame["y"].is_in([0.0, 1.0])) or 0
    return rows.fault(
        broken,
        metric.name,
        "must be 0 or 1 where no column n says how many trials a rate is of: rates without n",
        got=float(rows.frame["y"][broken]),
        fix=f"give a column n; or --upper 1, or upper=1, if {metric.name} is a score between 0 and 1",
    )


def _rounded(rows: TrialRows, metric: Metric) -> list[str]:
    successes = rows.frame["y"] * rows.frame["n"]
    odd = rows.frame.select(pl.lit((successes - successes.round()).abs() > _WHOLE_ENOUGH)).to_series()
    place = first(odd)
    if place is None:
        return []
    many = ROWS.told(int(odd.sum()))
    return [f"{metric.name} times n is no whole number in {many}, first at {rows.place(place)}: was it rounded?"]


GOLD_STANDARD = "gold standard"
"""What several gold performers are called together."""

GOLD_NAMES = ("gold", "wizard", "wizards", "human", "humans")
"""Performers that are taken for the gold standard where nothing else is said, in any letter case."""

IS_GOLD = pl.col("role") == "gold"

_SYSTEM: Role = "system"
_NAMING = '--gold NAME, or gold=("NAME",), names it, or a column role says gold or system'
_ALONE = Wording(
    "row names no subject and is taken for one of its own",
    "rows name no subject and are each taken for one of their own",
)


@dataclass(frozen=True, slots=True)
class PerformerRoles:
    """Who performs in a study: what the gold standard is called, who it is made of, and the systems."""

    gold: str
    gold_performers: tuple[str, ...]
    systems: tuple[str, ...]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The role of the gold standard, and of each system."""
        return ("gold", *(_SYSTEM for _ in self.systems))

    @property
    def pooled(self) -> bool:
        """Whether several performers are the gold standard together."""
        return len(self.gold_performers) > 1


def with_roles(rows: TrialRows, gold: Sequence[str]) -> TrialRows:
    """Fills in the roles: as `gold` says, else as the column role says, else by the names of performers."""
    frame = rows.frame
    if gold:
        _refuse_unknown(rows, gold)
        said = frame["role"].null_count() < frame.height
        notes = ["the column role is not looked at, as the gold standard was named"] if said else []
        return _with_notes(rows, frame.with_columns(role=_role_of(pl.col("performer").is_in(list(gold)))), notes)
    by_name = _role_of(pl.col("performer").str.to_lowercase().is_in(GOLD_NAMES))
    guessed = frame.filter(pl.col("role").is_null()).with_columns(role=by_name).filter(IS_GOLD)
    notes = [f'performer "{name}" read as the gold standard' for name in _distinct(guessed)]
    return _with_notes(rows, frame.with_columns(role=pl.coalesce("role", by_name)), notes)


def _refuse_unknown(rows: TrialRows, gold: Sequence[str]) -> None:
    performers = _distinct(rows.frame)
    for name in gold:
        if name not in performers:
            rule = f'there is no performer "{name}" to be the gold standard'
            raise DataError(rule, where=f"{rows.tables[0].name}:", fix=nearest(name, performers))


def _role_of(gold: pl.Expr) -> pl.Expr:
    return pl.when(gold).then(pl.lit("gold")).otherwise(pl.lit("system"))


def _with_notes(rows: TrialRows, frame: pl.DataFrame, notes: Sequence[str]) -> TrialRows:
    return replace(rows, frame=frame, notes=(*rows.notes, *notes))


def _distinct(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(frame["performer"].unique().sort())


def performer_roles(rows: TrialRows, where: str) -> PerformerRoles:
    """Who performs in a study; refuses one without a gold standard, without a system, or with someone who is both."""
    gold, systems = _distinct(rows.frame.filter(IS_GOLD)), _distinct(rows.frame.filter(~IS_GOLD))
    if not gold:
        fix = f"{_NAMING}{_how_divided(rows)}"
        raise DataError(f"there is no gold performer among {listed(systems)}", where=where, fix=fix)
    if not systems:
        fix = f"what is compared with the gold standard has the role system{_how_divided(rows)}"
        raise DataError(f"there is no system beside the gold standard, {listed(gold)}", where=where, fix=fix)
    for name in gold:
        if name in systems:
            raise _both(rows, name)
    called = gold[0] if len(gold) == 1 else GOLD_STANDARD
    if called in systems:
        raise DataError(f'a system is called "{called}", as is the gold standard of several performers', where=where)
    return PerformerRoles(called, gold, systems)


def _how_divided(rows: TrialRows) -> str:
    """Says what made the rows a study of their own, which may not be what was meant."""
    guessed = [note for note in rows.notes if note.startswith("study <- ")]
    if guessed:
        return f"; each {guessed[0].removeprefix('study <- ')} is read as a study of its own"
    return "; each file is a study of its own unless a column study says otherwise" if len(rows.tables) > 1 else ""


def _both(rows: TrialRows, name: str) -> DataError:
    mine = rows.only(pl.col("performer") == name)
    roles = mine.frame["role"]
    later = first(roles != roles[0]) or 0
    rule = f'performer "{name}" is {roles[later]} here and {roles[0]} at {mine.place(0)}'
    return DataError(rule, where=f"{mine.place(later)}:", fix="a performer has one role in a study")


def listed(names: Sequence[str]) -> str:
    """Names in quotes, the first eight of many.

    >>> listed(["A", "B"])
    '"A", "B"'
    """
    shown = ", ".join(f'"{name}"' for name in names[:8])
    return f"{shown} and {len(names) - 8:,} more" if len(names) > 8 else shown


def with_subjects(rows: TrialRows, roles: PerformerRoles) -> TrialRows:
    """Names subjects after the gold performers where several are taken together, and tells who has no subject."""
    named = _after_performers(rows, roles) if roles.pooled else rows
    alone = named.frame["subject"].is_null()
    if alone.all():
        return _with_notes(
            named, named.frame, ["no column names subjects: each trial is taken for a subject of its own"]
        )
    if rows.frame["subject"].is_null().all():
        note = "no column names subjects: each trial of a system is taken for a subject of its own"
        return _with_notes(named, named.frame, [note])
    if not alone.any():
        return named
    warning = f"{_ALONE.told(int(alone.sum()))}, first {named.place(first(alone) or 0)}"
    return replace(named, warnings=(*named.warnings, warning))


def _after_performers(rows: TrialRows, roles: PerformerRoles) -> TrialRows:
    notes = [f"{GOLD_STANDARD}: {listed(roles.gold_performers)} taken together"]
    unnamed = IS_GOLD & pl.col("subject").is_null()
    if rows.frame.filter(unnamed).height:
        notes.append("gold performers are the subjects of their trials where no other is named")
    subject = pl.when(unnamed).then("performer").otherwise("subject")
    return _with_notes(rows, rows.frame.with_columns(subject=subject), notes)


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

    def request(self) -> TrialRequest:
        """What is asked of a source."""
        check_mapping(self.columns, TRIAL_ALIASES)
        return TrialRequest(self.x, self.y, self.columns, self.where)


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

    def select_rows(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Trials:
        """Only these trials; all names stay, and stand where they stood."""
        names = ("performer", "x", "y", "n", "subject", "combination")
        arrays: dict[str, Any] = {name: _read_only(getattr(self, name)[rows]) for name in names}
        return replace(self, **arrays)

    def of(self, performer: str) -> Trials:
        """The trials of one performer; subjects and combinations stand where they stood."""
        if performer not in self.performers:
            raise DataError(f'there is no performer "{performer}"', fix=nearest(performer, self.performers))
        place = self.performers.index(performer)
        mine = self.select_rows(self.performer == place)
        alone = _read_only(np.zeros_like(mine.performer))
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
    request = reading.request()
    with opened(*sources) as files:
        tables = [read_source(file, Request()) for file in files]
        return _studies(rows_of(tables, _study_names(files), request), reading)


def trials(data: object, *, reading: TrialReading) -> tuple[Trials, ...]:
    """The trials in a frame, in columns, or in rows.

    >>> rows = [{"performer": who, "wer": 0.1, "done": 1} for who in ("wizard", "A", "B")]
    >>> found, = trials(rows, reading=TrialReading(x="wer", y="done"))
    >>> found.performers, found.roles, found.kind
    (('wizard', 'A', 'B'), ('gold', 'system', 'system'), 'trials')
    """
    return _studies(rows_of([table_of(data, Request())], ["study"], reading.request()), reading)


def _study_names(files: Sequence[Source]) -> list[str]:
    """The stem of each file, with its folder where two share one, and the whole path where they share that too."""
    names, _ = system_names(files)
    shared = Counter(names)
    return [file.name if shared[name] > 1 else name for file, name in zip(files, names, strict=True)]


def _studies(rows: TrialRows, reading: TrialReading) -> tuple[Trials, ...]:
    assigned = with_roles(rows, reading.gold)
    names = sorted(assigned.frame["study"].unique())
    where = {name: f'study "{name}":' if len(names) > 1 else f"{rows.tables[0].name}:" for name in names}
    return tuple(_study(name, assigned.only(pl.col("study") == name), reading, where[name]) for name in names)


def _study(name: str, rows: TrialRows, reading: TrialReading, where: str) -> Trials:
    measured = _measured(rows, reading, where)
    roles = performer_roles(measured, where)
    kind, about = kind_of(measured, Metric(reading.y, reading.lower, reading.upper))
    ready = with_subjects(measured, roles)
    combinations = _combinations(ready.frame)
    ordered = _in_order(ready.frame, roles, combinations)
    subject, subjects = _subjects(ordered["subject"])
    return Trials(
        study=name,
        x_name=reading.x,
        y_name=reading.y,
        kind=kind,
        lower=reading.lower,
        upper=reading.upper if kind == "scores" else 1.0,
        performers=(roles.gold, *roles.systems),
        roles=roles.roles,
        performer=_read_only(ordered["performer"].to_numpy()),
        x=_read_only(ordered["x"].to_numpy()),
        y=_read_only(ordered["y"].to_numpy()),
        n=_read_only(ordered["n"].to_numpy()),
        subject=_read_only(subject),
        subjects=subjects,
        combination=_read_only(ordered["combination"].to_numpy()),
        combinations=tuple(frozenset(_component_list(coded)) for coded in combinations),
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
    warning = f"{_LEFT_OUT.about(either).told(int(missing.sum()))}, first {rows.place(place)}{all_of}"
    return replace(kept, warnings=(*kept.warnings, warning))


def _component_list(coded: str) -> list[str]:
    return msgspec.json.decode(coded, type=list[str])


def _combinations(frame: pl.DataFrame) -> list[str]:
    """What was switched on in systems, few things first."""
    coded = frame.filter(~IS_GOLD)["components"].unique()
    return sorted(coded, key=lambda code: (len(_component_list(code)), _component_list(code)))


def _in_order(frame: pl.DataFrame, roles: PerformerRoles, combinations: Sequence[str]) -> pl.DataFrame:
    """The rows in the one order that they have whatever the order they came in."""
    performer = pl.col("performer").replace_strict(_positions(roles.systems), default=-1, return_dtype=pl.Int64) + 1
    combination = pl.col("components").replace_strict(_positions(combinations), default=0, return_dtype=pl.Int64)
    return frame.select(
        "subject",
        "x",
        "y",
        pl.col("n").fill_null(1.0),
        performer=performer,
        combination=pl.when(IS_GOLD).then(pl.lit(0, pl.Int64)).otherwise(combination),
    ).sort("performer", "subject", "x", "y", "n", "combination", nulls_last=True)


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _subjects(named: pl.Series) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Each trial's place among the subjects: those named in order of name, then one for each trial without."""
    names = named.drop_nulls().unique().sort().to_list()
    subject = named.replace_strict(_positions(names), default=-1, return_dtype=pl.Int64).to_numpy().copy()
    alone = subject < 0
    subject[alone] = len(names) + np.arange(alone.sum())
    return subject, (*names, *(f"trial {number + 1}" for number in range(alone.sum())))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
