"""Is the difference between the N-best lists of systems real: every measure, paired by utterance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.io.alignment import align, unpaired_note
from demur.core.show.numbers import Wording
from demur.core.show.results import Shown, Step, silent
from demur.core.stats.intervals import Difference, difference, holm
from demur.errors import DataError, UsageError
from demur.nbest_lists.evaluate import NBestEvaluations, NBestSettings, evaluate_nbest
from demur.nbest_lists.exploded import ExplodedLists, UnitTotals
from demur.nbest_lists.table import NBest

_UTTERANCES = Wording("utterance", "utterances")

NBestVerdict = Literal["a is better", "b is better", "no difference shown"]


@dataclass(frozen=True, eq=False)
class NBestPair(Shown):
    """Two systems' lists against each other; differences are those of a less those of b."""

    a: str
    b: str
    paired: bool
    n: int
    differences: Mapping[str, Difference]
    better: Mapping[str, Literal["lower", "higher"]]
    level: float

    @property
    def verdict(self) -> NBestVerdict:
        """Which system has the lower ICE, where that is shown after correction for all pairs."""
        return self.side("ice")

    def side(self, key: str) -> NBestVerdict:
        """Which system a measure shows to be better."""
        one = self.differences[key]
        if not one.p_adjusted < 1 - self.level:
            return "no difference shown"
        return "a is better" if (one.value < 0) == (self.better[key] == "lower") else "b is better"

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain values."""
        return {
            "a": self.a,
            "b": self.b,
            "paired": self.paired,
            "n": self.n,
            "verdict": self.verdict,
            "differences": {key: {**one.to_dict(), "better": self.side(key)} for key, one in self.differences.items()},
        }

    def frame(self) -> pl.DataFrame:
        """The differences as a table, a row per measure."""
        rows = [
            {"a": self.a, "b": self.b, "measure": key, **_difference_numbers(one)}
            for key, one in self.differences.items()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


@dataclass(frozen=True, eq=False)
class NBestComparison(Shown):
    """The lists of two or more systems against each other."""

    evaluations: NBestEvaluations
    pairs: tuple[NBestPair, ...]
    note: str
    dropped: Mapping[str, int]
    level: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_evaluations(self) -> NBestEvaluations:
        """The evaluations of the systems, with this comparison and its notes."""
        return NBestEvaluations(self.evaluations).with_comparison(self)

    def to_dict(self) -> dict[str, Any]:
        """All that `demur nbest --compare --json` prints."""
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "systems": [one.to_dict() for one in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def frame(self) -> pl.DataFrame:
        """The differences of all pairs as a table."""
        return pl.concat([pair.frame() for pair in self.pairs])


def compare_lists(
    nbest: NBest,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    settings: NBestSettings | None = None,
    step: Step = silent,
    **options: Any,
) -> NBestComparison:
    """Compare the lists of systems, paired by utterance where these have ids; options are those of `NBestSettings`.

    Every measure gets a difference with interval and p-value; p-values are corrected over pairs by Holm's method.
    """
    how = NBestSettings(**options) if settings is None else settings
    pairing = pair_nbest(nbest, systems=systems, matched=matched, unpaired=unpaired)
    evaluated = NBestEvaluations(
        one for lists in pairing.lists.values() for one in evaluate_nbest(lists, settings=how, step=step)
    )
    step("comparing", 0, 1)
    totals = {name: one.totals for name, one in zip(pairing.lists, evaluated, strict=True)}
    if pairing.paired:
        totals = _alike(pairing, totals, how)
    pairs = [_compared(one, two, totals, pairing.paired, how) for one, two in combinations(totals, 2)]
    notes = (pairing.note, how.note)
    return NBestComparison(evaluated, _corrected(pairs), pairing.note, pairing.dropped, how.level, notes)


def _alike(pairing: NBestPairing, totals: Mapping[str, UnitTotals], how: NBestSettings) -> dict[str, UnitTotals]:
    """The totals by the same units in all systems: dialogues, where some system names them, else utterances."""
    taken = {name: ExplodedLists.of(lists) for name, lists in pairing.lists.items()}
    unit = next((one.unit for one in taken.values() if one.unit is not None), None)
    if all(one.unit is None for one in taken.values()):
        return dict(totals)
    return {name: replace(one, unit=unit).totals(how.of_acts(), how.of_items()) for name, one in taken.items()}


def _compared(one: str, two: str, totals: Mapping[str, UnitTotals], paired: bool, how: NBestSettings) -> NBestPair:
    first, second = totals[one], totals[two]
    drawn = [
        side.drawn(replicates=how.replicates, seed=how.seed + (0 if paired else place))
        for place, side in enumerate((first, second))
    ]
    units = first.units if paired else min(first.units, second.units)
    found = {}
    for key in first.measures:
        value = float(first.values(key, first.totals) - second.values(key, second.totals))
        spread = first.values(key, drawn[0]) - second.values(key, drawn[1])
        found[key] = difference(value, spread, units, level=how.level)
    better = {key: measure.better for key, measure in first.measures.items()}
    return NBestPair(one, two, paired, min(first.n, second.n), found, better, how.level)


def _corrected(pairs: list[NBestPair]) -> tuple[NBestPair, ...]:
    keys = list(pairs[0].differences)
    adjusted = {key: holm(np.array([pair.differences[key].p for pair in pairs])) for key in keys}
    return tuple(
        replace(
            pair,
            differences={
                key: replace(one, p_adjusted=float(adjusted[key][place])) for key, one in pair.differences.items()
            },
        )
        for place, pair in enumerate(pairs)
    )


def _difference_numbers(one: Difference) -> dict[str, float | None]:
    shown = one.to_dict()
    return {key: shown[key] for key in ("value", "low", "high", "p", "p_adjusted")}


@dataclass(frozen=True, slots=True)
class NBestPairing:
    """The lists of each system: when paired, of the same utterances in the same order."""

    lists: Mapping[str, NBest]
    paired: bool
    note: str
    dropped: Mapping[str, int]


def pair_nbest(
    nbest: NBest, *, systems: tuple[str, ...] | None = None, matched: bool = False, unpaired: bool = False
) -> NBestPairing:
    """Brings the lists of two or more systems together by the ids of utterances, whatever their order.

    References must agree. `matched` keeps the utterances that all systems have, `unpaired` lets each stand on its own.
    """
    if matched and unpaired:
        raise UsageError("`matched` pairs utterances and `unpaired` does not: give one of them")
    names = tuple(dict.fromkeys(nbest.systems if systems is None else systems))
    if len(names) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none")
    lists = {name: nbest.of(name) for name in names}
    unnamed = [name for name, one in lists.items() if one.frame["id"].null_count()]
    if unnamed and not unpaired:
        _refuse_some_without_ids(lists, unnamed, matched=matched)
    if unpaired or unnamed:
        note = unpaired_note(unnamed, unpaired)
        return NBestPairing(lists, paired=False, note=note, dropped=dict.fromkeys(names, 0))
    alignment = align({name: one.frame["id"] for name, one in lists.items()}, matched=matched, what=_UTTERANCES)
    lists = {name: one.taken(alignment.places[name].astype(np.int64)) for name, one in lists.items()}
    for one, two in pairwise(lists):
        _refuse_other_references(one, lists[one], two, lists[two])
        _refuse_other_dialogues(one, lists[one], two, lists[two])
    return NBestPairing(lists, paired=True, note=alignment.note, dropped=alignment.dropped)


def _refuse_some_without_ids(lists: Mapping[str, NBest], unnamed: list[str], *, matched: bool) -> None:
    """Some utterances without an id are a fault; none with one means that systems cannot be paired."""
    for name in unnamed:
        missing, size = lists[name].frame["id"].null_count(), len(lists[name])
        if missing < size or matched:
            rule = f"{missing:,} of {size:,} utterances of {name} have no id, so they cannot be paired"
            raise DataError(rule, fix="give every utterance an id; `unpaired` compares without")


def _refuse_other_dialogues(one: str, first: NBest, two: str, second: NBest) -> None:
    """Paired utterances must be of the same dialogue, where both systems name it, and weigh the same."""
    table = first.frame.select("id", "dialogue", "weight").with_columns(
        other=second.frame["dialogue"], other_weight=second.frame["weight"]
    )
    apart = table.filter(pl.col("dialogue") != pl.col("other"))
    if apart.height:
        row = apart.row(0, named=True)
        rule = f'utterance "{row["id"]}" is of dialogue "{row["dialogue"]}" in {one} but of "{row["other"]}" in {two}'
        raise DataError(rule, fix="name dialogues alike in all files, or `unpaired` compares without pairing")
    heavier = table.filter(pl.col("weight") != pl.col("other_weight"))
    if heavier.height:
        row = heavier.row(0, named=True)
        rule = f'utterance "{row["id"]}" weighs {row["weight"]:g} in {one} but {row["other_weight"]:g} in {two}'
        raise DataError(rule, fix="paired utterances weigh the same; `unpaired` compares without pairing")


def _refuse_other_references(one: str, first: NBest, two: str, second: NBest) -> None:
    """Sets of one table are numbered alike, so equal references have equal numbers."""
    apart = np.flatnonzero(first.reference != second.reference)
    if apart.size:
        place = int(apart[0])
        shown = [" ".join(lists.sets.items_of(int(lists.reference[place]))) or "nothing" for lists in (first, second)]
        rule = f'utterance "{first.frame["id"][place]}" means {shown[0]} in {one} but {shown[1]} in {two}'
        more = f" ({apart.size:,} such utterances)" if apart.size > 1 else ""
        raise DataError(rule + more, fix="do the ids mean the same utterances? `unpaired` compares without pairing")
