"""Which confidence? Several columns of one log as systems that gave the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from demur.errors import UsageError
from demur.returns.table import BY_ROW, Reading, Responses, read_data


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
    notes, warnings = (_of_each({name: getattr(part, kind) for name, part in parts.items()}) for kind in _SAID)
    judged_all = all(part.judged for part in parts.values())
    return Responses(pl.concat(frames, how="diagonal_relaxed"), notes, warnings, judged_all, pl.concat(left_out))


_SAID = ("notes", "warnings")


def _of_each(said: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What was said of all once, and what was said of some with their names."""
    every = dict.fromkeys(line for lines in said.values() for line in lines)
    common = [line for line in every if all(line in lines for lines in said.values())]
    return (*common, *(f"{name}: {line}" for name, lines in said.items() for line in lines if line not in common))
