"""From files, frames and tables read before to judged responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from demur.errors import UsageError
from demur.returns.table import Reading, Responses, read_responses, responses


def read_data(data: Sequence[Any], reading: Reading) -> Responses:
    """The judged responses of files, frames, rows, tables read before, or a mixture; a dict names its systems."""
    if not data:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    if all(isinstance(one, str | Path) for one in data):
        return read_responses(*data, reading=reading)
    if len(data) == 1 and named_systems(data[0]):
        return _joined([_renamed(read_data((one,), reading), name) for name, one in data[0].items()])
    unnamed = sum(not isinstance(one, str | Path | Responses) for one in data)
    parts = [_read_one(one, reading, f"system {place}" if unnamed > 1 else None) for place, one in enumerate(data, 1)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def named_systems(data: Any) -> bool:
    """Whether this is a dict of systems rather than one of columns."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(isinstance(one, str | Path | Responses) or hasattr(one, "columns") for one in data.values())
    )


def named(judged: Responses, name: str | None) -> Responses:
    """The responses under a name given for their only system."""
    if name is None:
        return judged
    refuse_several(name, judged.systems)
    return replace(judged, frame=judged.frame.with_columns(system=pl.lit(name)))


def refuse_several(name: str | None, systems: Sequence[str]) -> None:
    """Refuse one name for several systems."""
    if name is not None and len(systems) > 1:
        raise UsageError(f"`name` names one system; there are several: {', '.join(systems)}")


def one_system(judged: Responses, system: str | None) -> Responses:
    """The responses of the named system, or of the only one there is."""
    if system is not None:
        return judged.of(system)
    if len(judged.systems) > 1:
        raise UsageError(f"a threshold belongs to one system; choose with `system` from {', '.join(judged.systems)}")
    return judged


def _read_one(data: Any, reading: Reading, name: str | None) -> Responses:
    if isinstance(data, Responses):
        return data
    if isinstance(data, str | Path):
        return read_responses(data, reading=reading)
    return responses(data, system=name, reading=reading)


def _renamed(part: Responses, name: str) -> Responses:
    if len(part.systems) > 1:
        raise UsageError(
            f'"{name}" holds several systems: {", ".join(part.systems)}; give the table without a new name'
        )
    return replace(part, frame=part.frame.with_columns(pl.lit(name).alias("system")))


def _joined(parts: list[Responses]) -> Responses:
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    return replace(parts[0], frame=frame, notes=notes, warnings=warnings)
