"""Systems side by side on the same inputs: their rows paired by id, or several columns of confidences of one log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.tables import Places, align, are_repeated, gathered, hashed, paired_note, unpaired_note
from demur.core.show.numbers import INPUTS, SUCH_IDS, SUCH_ROWS, first_names
from demur.errors import DataError, UsageError
from demur.returns.table import BY_ROW, Reading, Responses, read_data

_FIGURES = ("confidence", "right", "answered", "out_of_scope", "failed", "weight")
_PAIR_BY = (
    "`pair_by` takes columns that name the inputs too, such as question,option; `unpaired` compares without pairing"
)
_PAIR_ANYWAY = "; --pair-by COLUMNS pairs by columns that name the inputs, --pair-by row by the place"
_ANOTHER_LOG = "give another log, or name two columns of confidences of this one with `confidence`"
_SAME_IDS = "do the ids mean the same inputs? `unpaired` compares without pairing"


@dataclass(frozen=True, slots=True)
class Pairing:
    """The rows of each system: when paired, the same ids in the same order, without targets and predictions.

    `note` says how the rows were brought together, `dropped` how many rows of each system have no
    counterpart.
    """

    frames: Mapping[str, pl.DataFrame]
    paired: bool
    note: str
    dropped: Mapping[str, int]
    trials: bool = False
    """Whether inputs were tried several times: pairs are inputs then, which the column dialogue names, not rows."""

    @property
    def aligned(self) -> bool:
        """Whether the rows at one place are of one input in all systems."""
        return self.paired and not self.trials


def pair(
    responses: Responses,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    pair_by: tuple[str, ...] = (),
) -> Pairing:
    """Brings the responses of two or more systems together by id.

    Ids must be the same in all systems; `matched` keeps those that are. Without ids, or with `unpaired`, each
    system's rows stand on their own. `pair_by` are the columns that the ids were made of, if any. The order of the rows
    in the files matters only where it is `BY_ROW`, so that ids are places: then systems must have as many rows and the
    same targets. An input that nothing judges in one system is left out of all.
    """
    by_row = pair_by == BY_ROW
    names = tuple(dict.fromkeys(systems if systems is not None else responses.systems))
    frames = {name: responses.of(name).frame for name in names}
    if len(names) < 2:
        fix = _ANOTHER_LOG if systems is None else "name another `system`"
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none", fix=fix)
    unnamed = [name for name, frame in frames.items() if frame["id"].null_count() > 0]
    if unpaired or unnamed:
        frames = {name: _in_canonical_order(frame) for name, frame in frames.items()}
        note = unpaired_note(unnamed, unpaired, _PAIR_ANYWAY)
        return Pairing(frames, paired=False, note=note, dropped=dict.fromkeys(names, 0))
    left_out = responses.left_out.filter(pl.col("system").is_in(names))
    if by_row:
        _refuse_other_rows(frames, left_out)
    frames, note = _without_unjudged(frames, left_out)
    if any(are_repeated(frame["id"]) for frame in frames.values()):
        paired = _pair_trials(frames, matched=matched)
        return replace(paired, note=f"{_named_key(paired.note, pair_by)}{note}")
    alignment = align({name: frame["id"] for name, frame in frames.items()}, matched=matched)
    ids = frames[names[0]]["id"].gather(alignment.places[names[0]])
    _refuse_other_targets(frames, ids, alignment.places, by_row=by_row)
    aligned = {}
    for name, frame in frames.items():
        others = frame.drop("id", "target", "prediction", strict=False)  # labels are only looked at to pair the rows
        aligned[name] = gathered(others, alignment.places[name]).insert_column(0, ids)
    how = _named_key(alignment.note, pair_by)
    return Pairing(aligned, paired=True, note=f"{how}{note}", dropped=alignment.dropped)


def _named_key(note: str, pair_by: tuple[str, ...]) -> str:
    """What is said of pairing, with the columns that stand for the id."""
    return note.replace("by id", f"by {' and '.join(pair_by)}", 1) if pair_by else note


def _without_unjudged(
    frames: Mapping[str, pl.DataFrame], left_out: pl.DataFrame
) -> tuple[dict[str, pl.DataFrame], str]:
    """The rows without the inputs that some system has no judged answer to, and what to note of them."""
    if left_out.is_empty():
        return dict(frames), ""
    gone = [
        left_out.filter(pl.col("system") == name).join(frame.select("id"), on="id", how="anti")["id"]
        for name, frame in frames.items()
    ]
    ids = pl.concat(gone).unique()
    if ids.is_empty():
        return dict(frames), ""
    kept = {name: frame.filter(~pl.col("id").is_in(ids.implode())) for name, frame in frames.items()}
    return kept, f"; {INPUTS.with_count(len(ids))} left out as some system's answer is not judged"


def _refuse_other_rows(frames: Mapping[str, pl.DataFrame], left_out: pl.DataFrame) -> None:
    """Refuses to pair rows by their place where logs are not of one length, or no target shows that inputs agree."""
    lengths = {name: frame.height + (left_out["system"] == name).sum() for name, frame in frames.items()}
    if len(set(lengths.values())) > 1:
        got = first_names([f"{name} has {length:,}" for name, length in lengths.items()], 5, quote="")
        raise DataError("rows are paired by their place only in logs of one length", got=got, fix=_PAIR_BY)
    for name, frame in frames.items():
        if frame["target"].null_count():
            rule = f"rows are paired by their place only where every one has a target, and some of {name} have none"
            raise DataError(rule, fix=_PAIR_BY)


def _pair_trials(frames: Mapping[str, pl.DataFrame], *, matched: bool) -> Pairing:
    """The rows of the inputs that all systems tried, each as often as it was tried, grouped by input."""
    tried = {name: frame.unique("id", keep="first", maintain_order=True) for name, frame in frames.items()}
    alignment = align({name: frame["id"] for name, frame in tried.items()}, matched=matched)
    first, *_ = frames
    ids = tried[first]["id"].gather(alignment.places[first])
    _refuse_other_targets(tried, ids, alignment.places)
    groups = next(
        (one for one in tried.values() if one["dialogue"].null_count() == 0 and (one["dialogue"] != one["id"]).any()),
        tried[first].with_columns(dialogue="id"),
    ).select("id", "dialogue")
    kept, dropped = {}, {}
    for name, frame in frames.items():
        own = frame.filter(pl.col("id").is_in(ids.implode())).drop("dialogue", "target", "prediction", strict=False)
        kept[name] = own.join(groups, on="id", how="left").sort("id", *_FIGURES)
        dropped[name] = frame.height - own.height
    return Pairing(kept, paired=True, note=paired_note(len(ids), dropped), dropped=dropped, trials=True)


def _in_canonical_order(frame: pl.DataFrame) -> pl.DataFrame:
    if frame["id"].null_count() > 0:
        return frame.sort("id", *_FIGURES, "dialogue", "prediction")
    return frame if frame["id"].is_sorted() else frame.sort("id")


def _refuse_other_targets(
    frames: dict[str, pl.DataFrame], ids: pl.Series, places: Mapping[str, Places], *, by_row: bool = False
) -> None:
    """Refuses an id that has one target here and another there; only those whose hashes differ are looked at.

    Where ids are places of rows, `by_row`, the first of these rows is named.
    """
    (name, frame), *others = frames.items()
    own = hashed(frame["target"])[places[name]]
    for other_name, other_frame in others:
        unlike = np.flatnonzero(own != hashed(other_frame["target"])[places[other_name]])
        both = pl.DataFrame(
            [
                ids.gather(unlike).alias("id"),
                frame["target"].gather(places[name][unlike]),
                other_frame["target"].gather(places[other_name][unlike]).alias("other"),
            ]
        )
        apart = both.filter(pl.col("target").list.sort() != pl.col("other").list.sort())
        if not apart.is_empty():
            apart = apart.sort(pl.col("id").str.len_bytes(), "id") if by_row else apart
            row = apart.row(0, named=True)
            such, what = (SUCH_ROWS, row["id"]) if by_row else (SUCH_IDS, f'the id "{row["id"]}"')
            rule = (
                f"{what} has the target {_target_text(row['target'])} in {name} "
                f"but {_target_text(row['other'])} in {other_name} ({such.with_count(apart.height)} in all)"
            )
            asked = f"are the rows in the same order? {_PAIR_BY}"
            raise DataError(rule, fix=asked if by_row else _SAME_IDS)


def _target_text(target: list[str]) -> str:
    return " or ".join(f'"{label}"' for label in sorted(target)) or "out of scope"


def read_by_confidence(
    data: Sequence[Any], reading: Reading, confidences: Mapping[str, str] | Sequence[str]
) -> Responses:
    """The answers once for each column of confidences, as systems: named as the columns, or as a dict names them.

    Without any column the answers are read as they are. Of several systems each is called SYSTEM:NAME. Where one log
    has no ids its rows are paired by their place, as they are the same rows.

    >>> rows = [{"correct": True, "verbal": 80, "logprob": -0.1}, {"correct": False, "verbal": 90, "logprob": -2.0}]
    >>> read_by_confidence([rows], Reading(), ["verbal", "logprob"]).frame["confidence"].to_list()
    [0.8, 0.9, -0.1, -2.0]
    """
    if not confidences:
        return read_data(data, reading)
    names = dict(confidences) if isinstance(confidences, Mapping) else {column: column for column in confidences}
    if len(names) < len(confidences) or len(set(names.values())) < len(names):
        raise UsageError(f"`confidence` names a column twice: {', '.join(confidences)}")
    if "confidence" in reading.columns:
        raise UsageError("`confidence` names the columns of confidences, and so does `columns`: give one of them")
    parts = {}
    for name, column in names.items():
        how = replace(reading, columns={**reading.columns, "confidence": column})
        judged = read_data(data, how)
        if len(judged.systems) == 1 and judged.frame["id"].null_count() and not reading.pair_by:
            judged = read_data(data, replace(how, pair_by=BY_ROW))
        parts[name] = judged
    several = max(len(part.systems) for part in parts.values()) > 1
    frames, left_out = [], []
    for name, part in parts.items():
        own = pl.concat_str("system", pl.lit(f":{name}")) if several else pl.lit(name)
        frames.append(part.frame.with_columns(system=own))
        left_out.append(part.left_out.with_columns(system=own))
    notes, warnings = (notes_of_each({name: getattr(part, kind) for name, part in parts.items()}) for kind in _SAID)
    judged_all = all(part.judged for part in parts.values())
    return Responses(pl.concat(frames, how="diagonal_relaxed"), notes, warnings, judged_all, pl.concat(left_out))


_SAID = ("notes", "warnings")


def notes_of_each(said: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What was said of all once, and what was said of some with their names."""
    every = dict.fromkeys(line for lines in said.values() for line in lines)
    common = [line for line in every if all(line in lines for lines in said.values())]
    return (*common, *(f"{name}: {line}" for name, lines in said.items() for line in lines if line not in common))
