"""The answers of a log as what judges see: one item for every answer that differs, without system and confidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.io.columns import column_named, mapping_of, parts_wanted, resolve
from demur.core.io.files import read_source
from demur.core.io.json import row_texts
from demur.core.io.sources import Source, system_names
from demur.core.io.tables import ROW, Cells, Request, as_text
from demur.errors import DataError, UsageError
from demur.importers.reading import opened
from demur.returns.table import Reading, before_judging

HIDDEN = ("system", "confidence")
"""Parts that judges never see: to know them would sway the judgement."""

MADE = ("judgement", "judgements", "stratum")
"""Columns of a judged log, which one that is to be judged has not."""

TITLES = {"input": "Input", "prediction": "Answer"}
"""What the two parts that are always shown are called on the page."""


@dataclass(frozen=True, eq=False)
class AnswerLog:
    """The rows of one or more logs, which of them are to be judged, and what judges see of each.

    `frame` has for each row its id (null where there is none), system, confidence, whether it is `open` (answered, and
    not marked as right or wrong), and `shown`, the parts that judges see as JSON.
    """

    rows: tuple[dict[str, Any], ...]
    frame: pl.DataFrame
    correct: str
    """The column that says whether an answer is right."""
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """A name for what is judged: it does not depend on the order of rows, nor on the format of the file."""
        columns = self.frame.select("id", "system", "confidence", "open", "shown")
        lines = sorted(json.dumps(row) for row in columns.iter_rows())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @cached_property
    def input(self) -> NDArray[np.int64]:
        """The input of each row, numbered in an order of its own: rows of one id belong together, others are alone."""
        frame = self.frame.with_row_index("place")
        texts = pl.concat_str(pl.lit("row "), "shown", "system", pl.col("confidence").cast(pl.String), separator="\n")
        key = pl.coalesce(pl.concat_str(pl.lit("id "), "id"), texts)
        ordered = frame.select("place", key=key, alone=pl.col("id").is_null()).sort("key", "place")
        new = ordered.select((pl.col("key") != pl.col("key").shift()).fill_null(value=True) | pl.col("alone"))
        number = np.empty(frame.height, np.int64)
        number[ordered["place"].to_numpy()] = np.cumsum(new.to_series().to_numpy()) - 1
        return number

    @cached_property
    def inputs(self) -> int:
        """How many inputs there are."""
        return int(self.input.max()) + 1

    @cached_property
    def known(self) -> Flags:
        """Which inputs nobody need judge."""
        found: Flags = np.bincount(self.input, weights=self.frame["open"].to_numpy(), minlength=self.inputs) == 0
        return found

    @cached_property
    def score(self) -> Array:
        """How confident systems were of each input: the mean rank of their answers, each among all of its system."""
        ranks = self.frame.select(
            rank=pl.col("confidence").rank("average").over("system") / pl.len().over("system"), open="open"
        )
        weight = ranks["open"].cast(pl.Float64).to_numpy()
        sums = np.bincount(self.input, weights=ranks["rank"].fill_null(0.0).to_numpy() * weight, minlength=self.inputs)
        count = np.bincount(self.input, weights=weight, minlength=self.inputs)
        return np.asarray(np.divide(sums, count, out=np.zeros(self.inputs), where=count > 0).round(12))

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(self.frame["system"].unique(maintain_order=True))


def read_answers(*data: str | Path, reading: Reading, show: Sequence[str] = ()) -> AnswerLog:
    """Read logs whose answers are to be judged; `show` names further columns that judges see, such as target.

    Rows whose `correct` says already whether they are right are known, as are those that nothing was answered to.
    """
    if not data:
        raise UsageError("there is nothing to judge: give a log")
    if not all(isinstance(one, str | Path) for one in data):
        raise UsageError("judges need a log in a file")
    parts: list[_OneLog] = []
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    with opened(*data, columns=reading.columns) as files:
        names, said = system_names(files)
        for file, name in zip(files, names, strict=True):
            part = _read_one(file, name, reading, show)
            several = len(files) > 1 and not part.named
            rows += [{"system": name, **row} if several else row for row in part.rows]
            parts.append(part)
            notes += part.notes
        places = tuple(file.name for file in files)
    if len({part.correct for part in parts}) > 1:
        raise DataError("logs must call the column correct alike", got=", ".join(part.correct for part in parts))
    frame = pl.concat([part.frame for part in parts], how="vertical_relaxed")
    log = AnswerLog(tuple(rows), frame, parts[0].correct, places, tuple(dict.fromkeys((*said, *notes))))
    if not frame["open"].any():
        answered = any(row.get(log.correct) is not None for row in rows)
        why = "every answer is marked as right or wrong already" if answered else "nothing was answered"
        raise DataError(f"there is nothing to judge: {why}", where=f"{places[0]}:")
    return log


@dataclass(frozen=True, eq=False)
class _OneLog:
    rows: list[dict[str, Any]]
    frame: pl.DataFrame
    correct: str
    named: bool
    notes: tuple[str, ...]


def _read_one(file: Source, name: str, reading: Reading, show: Sequence[str]) -> _OneLog:
    table = read_source(file, Request())
    found = resolve(table.columns, reading.columns, parts=parts_wanted(("input",), ()), where=f"{table.name}:")
    columns = dict(found.columns)
    for made in MADE:
        if made in table.columns:
            rule = f'there is a column "{made}" already: was this log judged before?'
            raise DataError(rule, where=f"{table.name}:", fix="judge the log as it was, or rename the column")
    if "prediction" not in columns:
        fix = f"name it with {mapping_of('prediction', 'COLUMN')}"
        raise DataError("has no column of answers, prediction", where=table.name, fix=fix)
    cells = Cells(table, columns)
    shown = _shown_columns(cells, show)
    known = before_judging(cells, reading.rules(), name)
    if bool((known["weight"] != 1.0).any()):
        rule = "has weights already, so a sample of it would stand for something else"
        raise DataError(rule, where=f"{table.name}: weight", fix="judge the log that it was made from")
    marked = known["correct"].is_not_null() if "correct" in columns else pl.repeat(False, known.height, eager=True)
    texts = pl.DataFrame([as_text(table.frame[column]).alias(called) for called, column in shown.items()])
    pairs = [json.dumps(list(row.items()), ensure_ascii=False) for row in texts.iter_rows(named=True)]
    frame = known.select("id", "system", pl.col("confidence").fill_nan(None), open=pl.col("answered") & ~marked)
    lines = row_texts(file) if file.format == "json" else ()
    if len(lines) == table.frame.height:
        rows = [msgspec.json.decode(line) for line in lines]
    else:
        rows = table.frame.drop(ROW).to_dicts()
    frame = frame.with_columns(pl.Series("shown", pairs, dtype=pl.String))
    return _OneLog(rows, frame, columns.get("correct", "correct"), "system" in columns, found.notes)


def _shown_columns(cells: Cells, show: Sequence[str]) -> dict[str, str]:
    """The columns that judges see, by what they are called on the page: the input first, the answer last."""
    names, where = cells.table.columns, cells.table.name
    before: dict[str, str] = {TITLES["input"]: cells.columns["input"]} if "input" in cells else {}
    for name in show:
        column = column_named(name, names, cells.columns, where)
        hidden = [part for part in HIDDEN if cells.columns.get(part) == column]
        if hidden:
            raise UsageError(f"`show` {name}: judges must not know the {hidden[0]} of an answer")
        if column not in (cells.columns.get("prediction"), cells.columns.get("input")):
            before[name] = column
    if not before:
        fix = f"{mapping_of('input', 'COLUMN')}; `show` names other columns, such as target"
        raise DataError("has nothing to judge answers by: no column input", where=where, fix=fix)
    return {**before, TITLES["prediction"]: cells.columns["prediction"]}
