"""What a link asks for: its path and query, read with the message that a wrong value deserves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demur.errors import UsageError


@dataclass(frozen=True, slots=True)
class Query:
    """The values of a request: those in its path and, in order, those in its query."""

    path: Mapping[str, str]
    pairs: Sequence[tuple[str, str]]

    def several(self, name: str) -> tuple[str, ...]:
        """All values of a name; a name may be repeated."""
        return tuple(value for key, value in self.pairs if key == name and value)

    def text(self, name: str, default: str = "") -> str:
        """The last value of a name."""
        given = self.several(name)
        return given[-1] if given else self.path.get(name, default)

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """One of the values that a name may have."""
        value = self.text(name, default)
        if value not in allowed:
            raise UsageError(f'{name} is one of {", ".join(allowed)}; got "{value}"')
        return value

    def number(
        self, name: str, default: float | None = None, *, low: float = -math.inf, high: float = math.inf
    ) -> float | None:
        """A number within bounds; the default where none is given."""
        text = self.text(name)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise UsageError(f'{name} must be a number; got "{text}"')
        if not low <= value <= high:
            raise UsageError(f"{name} must lie between {low:g} and {high:g}; got {text}")
        return value

    def whole(self, name: str, default: int, *, low: int = 0, high: int = 1_000_000_000) -> int:
        """A whole number within bounds."""
        value = self.number(name, float(default), low=low, high=high)
        if value is None or value != int(value):
            raise UsageError(f"{name} must be a whole number; got {self.text(name)}")
        return int(value)

    def where(self, name: str = "where", *, columns: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
        """Filters given as `column=value`; of a column whose own name has the sign, all of its name is the column."""
        found = []
        for text in self.several(name):
            signed = [column for column in columns if "=" in column and text.startswith(f"{column}=")]
            column, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f'{name} takes column=value; got "{text}"')
            longest = max(signed, key=len, default=column)
            found.append((longest, text[len(longest) + 1 :] if signed else value))
        return tuple(found)

    def asked(self) -> dict[str, Any]:
        """Everything asked for, as plain values: what a link needs to restore the page."""
        names = dict.fromkeys(key for key, _ in self.pairs)
        return {name: values[0] if len(values := self.several(name)) == 1 else list(values) for name in names}
