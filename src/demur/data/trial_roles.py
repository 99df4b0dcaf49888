"""Who is the gold standard in a table of trials, who is a system, and whose trials belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from demur.data.cells import first
from demur.data.columns import nearest
from demur.data.trial_rows import Role, TrialRows
from demur.data.wording import Wording
from demur.errors import DataError

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
class Cast:
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
        told = ["the column role is not looked at, as the gold standard was named"] if said else []
        return _told(rows, frame.with_columns(role=_role_of(pl.col("performer").is_in(list(gold)))), told)
    by_name = _role_of(pl.col("performer").str.to_lowercase().is_in(GOLD_NAMES))
    guessed = frame.filter(pl.col("role").is_null()).with_columns(role=by_name).filter(IS_GOLD)
    told = [f'performer "{name}" read as the gold standard' for name in _distinct(guessed)]
    return _told(rows, frame.with_columns(role=pl.coalesce("role", by_name)), told)


def _refuse_unknown(rows: TrialRows, gold: Sequence[str]) -> None:
    performers = _distinct(rows.frame)
    for name in gold:
        if name not in performers:
            rule = f'there is no performer "{name}" to be the gold standard'
            raise DataError(rule, where=f"{rows.tables[0].name}:", fix=nearest(name, performers))


def _role_of(gold: pl.Expr) -> pl.Expr:
    return pl.when(gold).then(pl.lit("gold")).otherwise(pl.lit("system"))


def _told(rows: TrialRows, frame: pl.DataFrame, notes: Sequence[str]) -> TrialRows:
    return replace(rows, frame=frame, notes=(*rows.notes, *notes))


def _distinct(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(frame["performer"].unique().sort())


def cast_of(rows: TrialRows, where: str) -> Cast:
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
    return Cast(called, gold, systems)


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


def with_subjects(rows: TrialRows, cast: Cast) -> TrialRows:
    """Names subjects after the gold performers where several are taken together, and tells who has no subject."""
    named = _after_performers(rows, cast) if cast.pooled else rows
    alone = named.frame["subject"].is_null()
    if alone.all():
        return _told(named, named.frame, ["no column names subjects: each trial is taken for a subject of its own"])
    if rows.frame["subject"].is_null().all():
        note = "no column names subjects: each trial of a system is taken for a subject of its own"
        return _told(named, named.frame, [note])
    if not alone.any():
        return named
    told = f"{_ALONE.told(int(alone.sum()))}, first {named.place(first(alone) or 0)}"
    return replace(named, warnings=(*named.warnings, told))


def _after_performers(rows: TrialRows, cast: Cast) -> TrialRows:
    notes = [f"{GOLD_STANDARD}: {listed(cast.gold_performers)} taken together"]
    unnamed = IS_GOLD & pl.col("subject").is_null()
    if rows.frame.filter(unnamed).height:
        notes.append("gold performers are the subjects of their trials where no other is named")
    subject = pl.when(unnamed).then("performer").otherwise("subject")
    return _told(rows, rows.frame.with_columns(subject=subject), notes)
