"""Is the difference between the N-best lists of systems real: every measure, paired by utterance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.show.results import Shown, Step, silent
from demur.core.stats.intervals import Difference, difference, holm
from demur.nbest_lists.evaluate import Manner, NBestEvaluations, evaluate_nbest
from demur.nbest_lists.exploded import Taken, UnitTotals
from demur.nbest_lists.table import NBest, NBestPairing, pair_nbest

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
        rows = [{"a": self.a, "b": self.b, "measure": key, **_numbers(one)} for key, one in self.differences.items()]
        return pl.DataFrame(rows, infer_schema_length=None)


@dataclass(frozen=True, eq=False)
class NBestComparison(Shown):
    """The lists of two or more systems against each other."""

    evaluations: NBestEvaluations
    pairs: tuple[NBestPair, ...]
    note: str
    dropped: Mapping[str, int]
    level: float

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "systems": [one.to_dict() for one in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
        }

    def frame(self) -> pl.DataFrame:
        """The differences of all pairs as a table."""
        return pl.concat([pair.frame() for pair in self.pairs])


def compare_nbest(
    nbest: NBest,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    manner: Manner | None = None,
    step: Step = silent,
    **options: Any,
) -> NBestComparison:
    """Compare the lists of systems, paired by utterance where these have ids; options are those of `Manner`.

    Every measure gets a difference with interval and p-value; p-values are corrected over pairs by Holm's method.
    """
    how = Manner(**options) if manner is None else manner
    pairing = pair_nbest(nbest, systems=systems, matched=matched, unpaired=unpaired)
    evaluated = NBestEvaluations(
        one for lists in pairing.lists.values() for one in evaluate_nbest(lists, manner=how, step=step)
    )
    step("comparing", 0, 1)
    totals = {name: one.totals for name, one in zip(pairing.lists, evaluated, strict=True)}
    if pairing.paired:
        totals = _alike(pairing, totals, how)
    pairs = [_compared(one, two, totals, pairing.paired, how) for one, two in combinations(totals, 2)]
    return NBestComparison(evaluated, _corrected(pairs), pairing.note, pairing.dropped, how.level)


def _alike(pairing: NBestPairing, totals: Mapping[str, UnitTotals], how: Manner) -> dict[str, UnitTotals]:
    """The totals by the same units in all systems: dialogues, where some system names them, else utterances."""
    taken = {name: Taken.of(lists) for name, lists in pairing.lists.items()}
    unit = next((one.unit for one in taken.values() if one.unit is not None), None)
    if all(one.unit is None for one in taken.values()):
        return dict(totals)
    return {name: replace(one, unit=unit).totals(how.of_acts(), how.of_items()) for name, one in taken.items()}


def _compared(one: str, two: str, totals: Mapping[str, UnitTotals], paired: bool, how: Manner) -> NBestPair:
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


def _numbers(one: Difference) -> dict[str, float | None]:
    shown = one.to_dict()
    return {key: shown[key] for key in ("value", "low", "high", "p", "p_adjusted")}
