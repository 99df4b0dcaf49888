"""N-best lists of several systems brought side by side by utterance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from demur.data.nbest import NBest
from demur.data.wording import Wording
from demur.errors import DataError

_UTTERANCES = Wording("utterance", "utterances")
_WAYS_OUT = "--matched, or matched=True, compares the common ones; --unpaired, or unpaired=True, all without pairing"


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
    names = tuple(dict.fromkeys(nbest.systems if systems is None else systems))
    if len(names) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none")
    lists = {name: nbest.of(name) for name in names}
    unnamed = [name for name, one in lists.items() if one.frame["id"].null_count()]
    if unnamed and not unpaired:
        _refuse_some_without_ids(lists, unnamed, matched=matched)
    if unpaired or unnamed:
        note = "compared as unpaired, as asked" if unpaired else f"compared as unpaired: no ids in {', '.join(unnamed)}"
        return NBestPairing(lists, paired=False, note=note, dropped=dict.fromkeys(names, 0))
    common = _common(lists)
    dropped = {name: len(one) - len(common) for name, one in lists.items()}
    if any(dropped.values()):
        if not matched or common.is_empty():
            raise _unmatched(lists, common)
        lists = {name: one.taken(one.frame["id"].is_in(common.implode()).to_numpy()) for name, one in lists.items()}
    for one, two in pairwise(lists):
        _refuse_other_references(one, lists[one], two, lists[two])
        _refuse_other_dialogues(one, lists[one], two, lists[two])
    left_out = ", ".join(f"{count:,} of {name}" for name, count in dropped.items() if count)
    note = f"paired by id on {_UTTERANCES.told(len(common))}"
    told = f"{note}; left out without a counterpart: {left_out}" if left_out else note
    return NBestPairing(lists, paired=True, note=told, dropped=dropped)


def _common(lists: Mapping[str, NBest]) -> pl.Series:
    first, *others = (one.frame.select("id") for one in lists.values())
    for other in others:
        first = first.join(other, on="id", how="semi", maintain_order="left")
    return first.to_series()


def _unmatched(lists: Mapping[str, NBest], common: pl.Series) -> DataError:
    sizes = ", ".join(f"{name} has {len(one):,}" for name, one in lists.items())
    alone = []
    for name, one in lists.items():
        apart = one.frame["id"].filter(~one.frame["id"].is_in(common.implode()))
        if len(apart):
            shown = ", ".join(f'"{which}"' for which in apart.head(3))
            alone.append(f"only in {name}: {shown}{f' and {len(apart) - 3:,} more' if len(apart) > 3 else ''}")
    rule = f"the systems do not have the same utterances: {sizes}, common are {len(common):,}; {'; '.join(alone)}"
    return DataError(rule, fix=_WAYS_OUT if len(common) else "no id is shared: compare with --unpaired")


def _refuse_some_without_ids(lists: Mapping[str, NBest], unnamed: list[str], *, matched: bool) -> None:
    """Some utterances without an id are a fault; none with one means that systems cannot be paired."""
    for name in unnamed:
        missing, size = lists[name].frame["id"].null_count(), len(lists[name])
        if missing < size or matched:
            rule = f"{missing:,} of {size:,} utterances of {name} have no id, so they cannot be paired"
            raise DataError(rule, fix="give every utterance an id; --unpaired, or unpaired=True, compares without")


def _refuse_other_dialogues(one: str, first: NBest, two: str, second: NBest) -> None:
    """Paired utterances must be of the same dialogue, where both systems name it, and weigh the same."""
    table = first.frame.select("id", "dialogue", "weight").with_columns(
        other=second.frame["dialogue"], other_weight=second.frame["weight"]
    )
    apart = table.filter(pl.col("dialogue") != pl.col("other"))
    if apart.height:
        row = apart.row(0, named=True)
        rule = f'utterance "{row["id"]}" is of dialogue "{row["dialogue"]}" in {one} but of "{row["other"]}" in {two}'
        raise DataError(rule, fix="name dialogues alike in all files, or --unpaired compares without pairing")
    heavier = table.filter(pl.col("weight") != pl.col("other_weight"))
    if heavier.height:
        row = heavier.row(0, named=True)
        rule = f'utterance "{row["id"]}" weighs {row["weight"]:g} in {one} but {row["other_weight"]:g} in {two}'
        raise DataError(rule, fix="paired utterances weigh the same; --unpaired compares without pairing")


def _refuse_other_references(one: str, first: NBest, two: str, second: NBest) -> None:
    """Sets of one table are numbered alike, so equal references have equal numbers."""
    apart = np.flatnonzero(first.reference != second.reference)
    if apart.size:
        place = int(apart[0])
        shown = [" ".join(lists.sets.items_of(int(lists.reference[place]))) or "nothing" for lists in (first, second)]
        rule = f'utterance "{first.frame["id"][place]}" means {shown[0]} in {one} but {shown[1]} in {two}'
        more = f" ({apart.size:,} such utterances)" if apart.size > 1 else ""
        raise DataError(rule + more, fix="do the ids mean the same utterances? --unpaired compares without pairing")
