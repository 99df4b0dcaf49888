"""What new results are made with, chosen on the settings page and kept beside the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from demur.data.output import write_whole
from demur.errors import UsageError

FILE = "store.settings.json"

MOST_REPLICATES = 20_000
"""Replicates beyond which nobody would wait for a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """How uncertainty is computed, and where curves are read, unless a page is asked otherwise.

    >>> Preferences().changed({"level": 0.9, "seed": 7}).level
    0.9
    """

    level: float = 0.95
    """Confidence level of intervals and bands."""
    replicates: int = 1000
    """Bootstrap replicates."""
    seed: int = 0
    """Seed of all randomness."""
    at: float = 0.2
    """The non-return rate at which pages open."""

    def __post_init__(self) -> None:
        """Refuses what no result can be made with."""
        _within("level", self.level, 0.5, 0.999)
        _within("replicates", self.replicates, 50, MOST_REPLICATES)
        _within("seed", self.seed, 0, 2**32 - 1)
        _within("at", self.at, 0.0, 0.99)

    @property
    def sampling(self) -> dict[str, Any]:
        """What resampling is told."""
        return {"level": self.level, "replicates": self.replicates, "seed": self.seed}

    def changed(self, given: Mapping[str, Any]) -> Preferences:
        """The preferences with some of them changed."""
        if unknown := sorted(given.keys() - asdict(self).keys()):
            raise UsageError(f"there is no setting {', '.join(unknown)}; there are {', '.join(asdict(self))}")
        kinds = {one.name: int if one.type == "int" else float for one in fields(self)}
        return Preferences(**{**asdict(self), **{name: _number(name, given[name], kinds[name]) for name in given}})

    def to_dict(self) -> dict[str, Any]:
        """The preferences as plain values."""
        return asdict(self)


def kept(root: Path) -> tuple[Preferences, str]:
    """The preferences kept in a store, and what was wrong with them; where they cannot be read, the defaults."""
    path = root / FILE
    try:
        return Preferences().changed(json.loads(path.read_text(encoding="utf-8"))), ""
    except FileNotFoundError:
        return Preferences(), ""
    except (OSError, ValueError, AttributeError, UsageError) as fault:
        return Preferences(), f"{path.name} cannot be used ({fault}); settings are as they were at first"


def keep(root: Path, preferences: Preferences) -> None:
    """Keep the preferences in a store."""
    write_whole(root / FILE, json.dumps(preferences.to_dict(), indent=2) + "\n")


def _number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value) if not isinstance(value, bool | str) and math.isfinite(value) else None
    except (TypeError, OverflowError):  # no number, or one beyond all bounds
        number = None
    if number is None or number != value:
        raise UsageError(f"{name} must be a {'whole ' if kind is int else ''}number; got {json.dumps(value)[:40]}")
    return number


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"{name} must lie between {low:g} and {high:g}; got {value:g}")
