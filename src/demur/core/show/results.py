"""How results and long work show themselves without knowing the views."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from decimal import Decimal
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from demur.core.show.presentation import Presentation

T = TypeVar("T")

Step = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done, and of how many."""

_charts: dict[type, Callable[..., Any]] = {}
_pages: dict[type, Callable[[Any], str]] = {}
_presentations: dict[type, Callable[[Any], Presentation]] = {}
_sentences: dict[type, Callable[[Any], Sequence[str]]] = {}


def path_text(path: str | PathLike[str]) -> str:
    r"""A path as text that can be shown and stored: UTF-8 whatever the locale, bytes that are no UTF-8 as escapes.

    >>> path_text("\udcc5\udc99.csv"), path_text("caf\udce9.csv")
    ('ř.csv', 'caf\\xe9.csv')
    """
    return os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def silent(what: str, done: int, total: int) -> None:
    """Hear of progress and say nothing."""


def plain(value: Any) -> Any:
    """The value with nothing that JSON lacks: null for NaN, "inf" and "-inf" for infinities, in lists and dicts too.

    Numbers and flags of NumPy become Python's own.
    """
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value.item() if hasattr(value, "item") else value


def threshold_text(threshold: float) -> str:
    """A threshold in the fewest digits that read back as the same float: the one way in which thresholds are written.

    From 0.0001 up to a million it has no exponent, beyond that where it is shorter; `explorer_numbers.js` does so too.

    >>> threshold_text(0.1 + 0.2), threshold_text(48.0), threshold_text(5e-05), threshold_text(-2.5e6)
    ('0.30000000000000004', '48', '5e-5', '-2.5e6')
    """
    if threshold == 0 or not math.isfinite(threshold):
        return "0" if threshold == 0 else str(float(threshold))
    short = Decimal(repr(float(threshold))).normalize()
    positional = f"{short:f}"
    if 1e-4 <= abs(threshold) < 1e6:
        return positional
    sign, digits, _ = short.as_tuple()
    first, others = str(digits[0]), "".join(map(str, digits[1:]))
    scientific = f"{'-' * sign}{first}{'.' * bool(others)}{others}e{short.adjusted()}"
    return min(positional, scientific, key=len)


def register(
    kind: type,
    *,
    chart: Callable[..., Any] | None = None,
    page: Callable[[Any], str] | None = None,
    present: Callable[[Any], Presentation] | None = None,
    sentences: Callable[[Any], Sequence[str]] | None = None,
) -> None:
    """Say how results of a kind are drawn and presented, and how they are shown as HTML where that is not all.

    `sentences` are those of the presentation, where they can be had without making all of it.
    """
    if chart is not None:
        _charts[kind] = chart
    if page is not None:
        _pages[kind] = page
    if present is not None:
        _presentations[kind] = present
    if sentences is not None:
        _sentences[kind] = sentences


class Shown:
    """A result that can draw itself, write its figures, and show itself in a notebook and in a few lines."""

    __slots__ = ()

    def chart(self, **options: Any) -> Any:
        """The result's figure as an Altair chart."""
        _load_views(type(self))
        return _charts[type(self)](self, **options)

    def figure_names(self) -> tuple[str, ...]:
        """The names of all figures that `save` can write."""
        _load_views(type(self))
        present = _presentations.get(type(self))
        return ("figure",) if present is None else tuple(present(self).drawings())

    def save(
        self,
        path: str | PathLike[str],
        figure: str | None = None,
        *,
        width: str | float | None = None,
        font_size: float | None = None,
        title: bool = True,
        grey: bool = False,
    ) -> None:
        """Writes a figure, the first unless named, to .svg, .png, .pdf or .html.

        For print: `width` such as "3.3in" or "84mm" (a number is in inches), `font_size` in points, without a `title`,
        in `grey` with dashes and markers.
        """
        _load_views(type(self))
        look = import_module("demur.core.show.papers").FigureLook.of(width, font_size=font_size, title=title, grey=grey)
        present: Any = _presentations.get(type(self))
        draw: Any = self.chart
        if present is not None:
            (draw,) = present(self).chosen([figure] if figure else []).values()
        content = import_module("demur.core.show.page").figure_file(draw, path, look)
        import_module("demur.core.io.writing").write_whole(path, content)

    def _repr_html_(self) -> str:
        _load_views(type(self))
        if type(self) in _pages:
            return _pages[type(self)](self)
        return str(import_module("demur.core.show.html").presented(_presentations[type(self)])(self))

    def __repr__(self) -> str:
        _load_views(type(self))
        kind = type(self)
        if kind in _sentences:
            return in_few_lines(kind.__name__, _sentences[kind](self))
        if kind in _presentations:
            return in_few_lines(kind.__name__, _presentations[kind](self).sentences)
        name = getattr(self, "name", "")
        return f"<{kind.__name__}{f' of {name}' if name else ''}>"


def in_few_lines(title: str, sentences: Sequence[str]) -> str:
    """A title and the first sentences of a result, each in a line.

    >>> print(in_few_lines("Threshold", ["Return from 0.5 on."]))
    <Threshold
      Return from 0.5 on.>
    """
    lines = [textwrap.shorten(one, 200, placeholder=" ...") for one in sentences[:MOST_SENTENCES]]
    return "\n  ".join([f"<{title}", *lines]) + ">"


MOST_SENTENCES = 3
"""Sentences of a result that its `repr` has."""


def _load_views(kind: type) -> None:
    """Load the module of a result's own question that says how it is shown."""
    if kind not in _charts:
        question = kind.__module__.split(".")[1]
        import_module("demur.core.show.html" if question == "core" else f"demur.{question}.presentation")


class Results(tuple[T, ...], Shown):
    """Results of several systems that show themselves together, with notes and warnings on how they were made."""

    _notes: tuple[str, ...]
    _warnings: tuple[str, ...]

    def __new__(cls, results: Iterable[T] = ()) -> Self:
        """Makes results without notes."""
        made = super().__new__(cls, results)
        made._notes = made._warnings = ()
        return made

    def __repr__(self) -> str:
        return Shown.__repr__(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how they were made."""
        return self._notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the data."""
        return self._warnings

    def with_notes(self, notes: Iterable[str] = (), warnings: Iterable[str] = ()) -> Self:
        """The same results with further notes and warnings."""
        made = copy(self)
        made._notes, made._warnings = (*self._notes, *notes), (*self._warnings, *warnings)
        return made
