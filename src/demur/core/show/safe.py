"""Text from the data made safe for what shows it: one function for each target, whatever a name or a label holds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff"
)
"""Characters that show nothing and could turn the text around them, or that no file may hold."""

_CONTROL = re.compile(f"[{_UNSEEN}]")
_IN_A_LINE = re.compile(f"[{_UNSEEN}\r\t]")
_COMMAND = re.compile(r"^(\s*)(::|##)")
"""How a line begins that a runner of continuous integration obeys."""

_FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet computes."""


def visible(text: str) -> str:
    """Text whose unseen characters, those that XML lacks among them, can be seen, so that none turns what is around it.

    >>> visible("a\\u202eb")
    'a⟨U+202E⟩b'
    """
    return _CONTROL.sub(_code_point, text)


def terminal_line(text: str) -> str:
    r"""Text as one line of a terminal or of a build's log, in which nothing moves the cursor or gives a command.

    >>> terminal_line("a\x1b[2J\nPASS"), terminal_line("::error::x")
    ('a⟨U+001B⟩[2J⏎PASS', '\\::error::x')
    """
    line = "⏎".join(text.split("\n"))
    return _COMMAND.sub(r"\1\\\2", _IN_A_LINE.sub(_code_point, line))


def json_text(document: Any, *, indent: int | None = 2) -> str:
    r"""A document as strict JSON, in which characters that show nothing are escaped.

    >>> json_text({"name": "a\x9b\u202e", "value": 0.5}, indent=None)
    '{"name": "a\\u009b\\u202e", "value": 0.5}'
    """
    text = json.dumps(document, ensure_ascii=False, indent=indent, allow_nan=False)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


JSON_FORMAT = 1
"""The number that every JSON document begins with; it rises when a key is removed or changes its meaning."""


def document_text(document: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """A result's document as strict JSON that says which format it has.

    >>> document_text({"n": 3}, indent=None)
    '{"format": 1, "n": 3}'
    """
    return json_text({"format": JSON_FORMAT, **document}, indent=indent)


def csv_text(frame: pl.DataFrame) -> str:
    """A table as CSV in which no text begins like a formula: an apostrophe before it keeps spreadsheets from it.

    >>> import polars as pl
    >>> csv_text(pl.DataFrame({"name": ["=1+1", "-x", "a"], "value": [-1, 2, 3]}))
    "name,value\\n'=1+1,-1\\n'-x,2\\na,3\\n"
    """
    import polars as pl

    names = {name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)}
    return str(frame.with_columns(pl.col(pl.String).str.replace(f"({_FORMULA})", "'$1")).rename(names).write_csv())


def chart_safe(spec: Any) -> Any:
    """A chart's spec, or a part of it, whose texts hold only characters that a picture can show.

    >>> chart_safe({"title": ["a\\x0c"], "width": 3})
    {'title': ['a⟨U+000C⟩'], 'width': 3}
    """
    if isinstance(spec, str):
        return visible(spec)
    if isinstance(spec, dict):
        return {chart_safe(key): chart_safe(value) for key, value in spec.items()}
    return [chart_safe(part) for part in spec] if isinstance(spec, list | tuple) else spec


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"
