"""A log whose confidences are mapped: its other columns as they were, and what the map did where that can be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.io.columns import resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.json import BYTE_ORDER_MARK
from demur.core.io.sources import NOT_JSON, Source, opened
from demur.core.io.tables import ROW, Cells, Request, Table
from demur.core.io.writing import ENDINGS, write_rows, write_table
from demur.core.show.results import Shown, plain
from demur.core.stats.calibration_maps import MapOrder, Recalibration, scale_of
from demur.core.stats.intervals import Difference
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.returns.confidences import rates_of
from demur.returns.recalibration.recalibration import Calibration, OutOfFold, answered_rows, order_values
from demur.returns.table import Reading, Responses, chosen_system, one_system, read_data

PARTS = ("system", "target", "prediction", "confidence", "correct")
"""The columns of a log that recalibrating it looks at."""


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedLog(Shown):
    """A log with its confidences mapped, all its other columns as they were, and what that did where it can be judged.

    `before` and `after` are the answers with both confidences; None where the log does not tell right from wrong, or
    `before` where the confidences are scores.
    """

    table: pl.DataFrame
    column: str
    """The column of the confidences; those from before stand in `column_before`."""
    mapped: int
    """Confidences that were mapped."""
    recalibration: Recalibration
    order: MapOrder
    lines: tuple[bytes, ...] = ()
    """The text of each row as it was read, where the log is JSON."""
    system: str = "system"
    before: OutOfFold | None = None
    after: OutOfFold | None = None
    fitted_here: bool = False
    """Whether these are the very answers that the map was fitted to."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What its chart shows, in words."""
        return f"{self.system}: do confidences mean what they say, before and after recalibration?"

    @property
    def sides(self) -> list[OutOfFold]:
        """What is drawn: the confidences before, where they are probabilities, and after."""
        return [side for side in (self.before, self.after) if side is not None]

    @property
    def change(self) -> Difference | None:
        """Change of the Brier score."""
        return None if self.before is None or self.after is None else self.after.brier_less(self.before)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as they were read from JSON, with the new confidence and the one from before."""
        for text, new in zip(self.lines, self.table[self.column], strict=True):
            row: dict[str, Any] = msgspec.json.decode(text)
            if self.column not in row:
                yield row
                continue
            row[self.column], before = new, row[self.column]
            names = list(row)
            place = names.index(self.column) + 1
            yield {name: row[name] for name in names[:place]} | {f"{self.column}_before": before} | row

    def to_dict(self) -> dict[str, Any]:
        """What was done, as plain values; `table` has the rows."""
        sides = {"before": self.before, "after": self.after}
        change = self.change
        document: dict[str, Any] = plain(
            {
                "system": self.system,
                "rows": self.table.height,
                "mapped": self.mapped,
                "column": self.column,
                "method": self.recalibration.method,
                "fitted_on": self.recalibration.n,
                "fitted_on_these_answers": self.fitted_here,
                "order": order_values(self.order),
                **{
                    name: None if one is None else {key: figure.to_dict() for key, figure in one.figures.items()}
                    for name, one in sides.items()
                },
                "change_of_brier": None if change is None else change.to_dict(),
                "notes": list(self.notes),
                "warnings": list(self.warnings),
            }
        )
        return document


def read_map(given: Any) -> Recalibration:
    """The map that is meant: a file, what `fit_recalibration` gave, or a map itself."""
    found: Any = given.fitted if isinstance(given, Calibration) else given
    if isinstance(given, str | Path):
        found = Recalibration.read(given)
    if not isinstance(found, Recalibration):
        raise UsageError("a recalibration is a file that `demur recalibrate fit` wrote, or what it gave in Python")
    if found.level != "answers":
        raise DataError(f"the map is for confidences of {found.level}, not of answers")
    return found


def recalibrate_log(
    recalibration: Recalibration,
    data: Any,
    reading: Reading,
    *,
    system: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> RecalibratedLog:
    """The log with the confidences of one system mapped; others keep theirs.

    >>> fitted = Recalibration.fit([0.2, 0.4, 0.4, 0.9], [False, False, True, True])
    >>> rows = [{"prediction": "yes", "confidence": 0.4, "note": "kept"}, {"prediction": None, "confidence": None}]
    >>> recalibrate_log(fitted, rows, Reading()).table.to_dicts()[0]
    {'prediction': 'yes', 'confidence': 0.5, 'confidence_before': 0.4, 'note': 'kept'}
    """
    table, lines = _whole_table(data)
    resolution = resolve(table.columns, reading.columns, parts=PARTS, where=f"{table.name}:")
    cells = Cells(table, resolution.columns)
    if "confidence" not in cells:
        raise DataError("has no column confidence to recalibrate", where=table.name)
    column = cells.columns["confidence"]
    if f"{column}_before" in table.columns:
        rule = f'there is a column "{column}_before" already: was this log recalibrated before?'
        raise DataError(rule, where=f"{table.name}:", fix="recalibrate the log as it was, or rename the column")
    numbers, own = cells.spelled_numbers("confidence")[0], _rows_of(cells, system)
    chosen = (own & numbers.is_not_null()).to_numpy()
    given = numbers.fill_null(0.0).to_numpy().copy()
    given[chosen] = rates_of(numbers.filter(chosen)).to_numpy()
    _refuse_outside(recalibration, given[chosen], cells)
    mapped = pl.Series(np.where(chosen, recalibration(np.where(chosen, given, 0.5)), given))
    new = pl.select(pl.when(numbers.is_not_null()).then(mapped)).to_series().alias(column)
    frame = table.frame.drop(ROW)
    before = numbers.alias(f"{column}_before")
    frame = frame.with_columns(new).insert_column(frame.columns.index(column) + 1, before)
    order = MapOrder.of(recalibration.parameters, given[chosen])
    result = RecalibratedLog(frame, column, int(chosen.sum()), recalibration, order, lines, notes=resolution.notes)
    if "correct" not in cells and not ("target" in cells and "prediction" in cells):
        note = "no column tells right from wrong, so what the map does to these answers is not judged"
        return replace(result, notes=(*result.notes, note))
    judged = one_system(read_data((data,), reading), system, what="a map")
    return _judged(result, judged, {"level": level, "replicates": replicates, "seed": seed})


def _whole_table(data: Any) -> tuple[Table, tuple[bytes, ...]]:
    """All columns of one log and, where it is JSON, the text of each row, in which lists and objects are whole."""
    if not isinstance(data, str | Path):
        return table_of(data, Request()), ()
    with opened(data) as sources:
        if len(sources) > 1:
            raise UsageError(f"one log is recalibrated at a time; {data} stands for {len(sources)} files")
        table = read_source(sources[0], Request())
        lines = _row_texts(sources[0]) if sources[0].format == "json" else ()
    return table, lines if len(lines) == table.frame.height else ()


def _row_texts(source: Source) -> tuple[bytes, ...]:
    """The text of each row of a JSON file; none where it is not as strict as what is written."""
    lines = (line.removeprefix(BYTE_ORDER_MARK).strip() for line in source.lines())
    texts = tuple(line for line in lines if line)
    try:
        if texts and texts[0].startswith(b"["):
            return tuple(map(bytes, msgspec.json.decode(b"".join(texts), type=list[msgspec.Raw])))
        for text in texts:
            msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except NOT_JSON:
        return ()
    return texts


def _rows_of(cells: Cells, system: str | None) -> pl.Series:
    """Which rows are of the system: the one that is named, or the only one there is."""
    names = cells.text("system")
    if names.null_count() == len(names):
        return pl.Series([True]).new_from_index(0, len(names))
    return (names == chosen_system(names.unique(maintain_order=True).to_list(), system, what="a map")).fill_null(
        value=False
    )


def _refuse_outside(recalibration: Recalibration, given: Array, cells: Cells) -> None:
    """Refuse confidences that the map is not for."""
    column, where = cells.columns["confidence"], cells.table.name
    if not given.size:
        raise DataError("has no confidences to recalibrate", where=f"{where}: {column}")
    if not np.isfinite(given).all():
        raise DataError("must be finite numbers", where=f"{where}: {column}", got=given[~np.isfinite(given)][0])
    if recalibration.scale == "probabilities" and scale_of(given) == "scores":
        rule = "the map is for probabilities, and these are not all within [0, 1]"
        raise DataError(rule, where=f"{where}: {column}", got=f"{given.min():g} to {given.max():g}")


def _judged(result: RecalibratedLog, judged: Responses, how: dict[str, Any]) -> RecalibratedLog:
    """What the map does to answers that tell right from wrong."""
    answers, recalibration = answered_rows(Rows.from_frame(judged.frame)), result.recalibration
    after = replace(answers, confidence=recalibration(answers.confidence))
    probabilities = recalibration.scale == "probabilities"
    weight = answers.weight if answers.weighted else None
    return replace(
        result,
        system=judged.systems[0],
        before=OutOfFold(None, answers, **how, title="before") if probabilities else None,
        after=OutOfFold(recalibration.method, after, **how, title="after"),
        fitted_here=Sweep.of(answers.confidence, answers.right, weight=weight).digest() == recalibration.data,
        notes=tuple(dict.fromkeys((*result.notes, *judged.notes))),
        warnings=judged.warnings,
    )


def write_log(result: RecalibratedLog, path: Path) -> None:
    """Write the log in the format of the path's ending; rows that came as JSON keep their numbers and lists."""
    if not result.lines:
        write_table(path, result.table)
    elif path.name.lower().endswith(ENDINGS):
        write_rows(path, result.rows())
    else:
        try:
            table = pl.DataFrame(list(result.rows()), infer_schema_length=None)
        except (TypeError, pl.exceptions.PolarsError):  # a column of several types is text
            table = result.table
        write_table(path, table)
