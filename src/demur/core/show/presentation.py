"""A result made ready to be shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import polars as pl

from demur.core.show.markdown import bullets, code_mark, paragraph, plain_mark, table_mark, warning_mark
from demur.errors import UsageError

_NUMBER = re.compile(r"(?:[pz] = |[pz]? ?< )?[-−+]?[\d.,]+(?:e-?\d+)?(?: ?%)?(?: points)?(?:[ –,:(].*)?")
"""A number as cells have it: with a sign, a unit, and its interval or where it was read."""

_NO_WORD = re.compile(rf"{_NUMBER.pattern}|[-–]?|baseline|undefined.*|return nothing|none.*")
"""What stands in a column of numbers."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of text: a heading, names of columns, and rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    brief: ResultTable | None = None
    """What matters of it, for places too narrow for all of it."""
    crowded: bool = False
    """Whether it has so many columns that a terminal shows it in brief however wide it is."""

    def titled(self, title: str) -> ResultTable:
        """The table, and what matters of it, under another title."""
        return replace(self, title=title, brief=None if self.brief is None else self.brief.titled(title))

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers, so that they are aligned to the right; the first names the rows.

        >>> ResultTable("", ("system", "error"), (("a", "3.2 % (1.0 to 5.0)"), ("b", "–"))).numeric
        (False, True)
        """
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return tuple(
            place > 0
            and any(cell == "–" or _NUMBER.fullmatch(cell) for cell in cells)
            and all(map(_NO_WORD.fullmatch, cells))
            for place, cells in enumerate(columns)
        )

    def markdown(self, *, most_rows: int | None = None) -> str:
        """The table in Markdown, or the first rows of it."""
        return table_mark(self.title, self.columns, self.rows, numeric=self.numeric, most_rows=most_rows)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart that is drawn when it is called; its name says what it shows."""

    name: str
    draw: Callable[[], Any]

    def named(self, name: str) -> Drawing:
        """The same chart by another name, where one function draws several."""
        return Drawing(name, self.draw)

    def __call__(self) -> Any:
        """The chart."""
        return self.draw()


@dataclass(frozen=True, slots=True)
class Presentation:
    """Everything a result shows, in the order a reader wants it."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[ResultTable, ...]
    figures: tuple[Drawing, ...]
    """The first is the main one."""
    data: Callable[[], pl.DataFrame]
    """Makes the table behind the main figure."""
    document: dict[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    parts: tuple[Presentation, ...] = ()
    """Results that this one is made of, each shown in a section of its own."""
    appendix: tuple[Presentation, ...] = ()
    """Results behind this one that a terminal has no room for: sections of a page, and of Markdown."""
    further: tuple[Drawing, ...] = ()
    """Figures that are drawn only where they are asked for by name."""

    @property
    def headline(self) -> str:
        """The sentence that stands for the whole; empty where there is none."""
        return next(iter(self.sentences), "")

    @property
    def main_figure(self) -> Drawing:
        """The figure that stands for the whole."""
        return self.figures[0]

    def figure(self, name: str) -> Drawing:
        """The first figure of this name."""
        return next(one for one in self.figures if one.name == name)

    def figures_named(self, name: str) -> tuple[Drawing, ...]:
        """Every figure of this name: one for each pair of systems, for example."""
        return tuple(one for one in self.figures if one.name == name)

    def figures_but(self, *names: str) -> tuple[Drawing, ...]:
        """The figures without those of these names."""
        return tuple(one for one in self.figures if one.name not in names)

    def drawings(self) -> dict[str, Drawing]:
        """Every figure, of parts and further ones too, by a name of its own: `roc`, and `roc:2` for the second."""
        parts = [one for part in (*self.parts, *self.appendix) for one in part.drawings().values()]
        named: dict[str, Drawing] = {}
        for one in (*self.figures, *parts, *self.further):
            taken = sum(name.partition(":")[0] == one.name for name in named)
            named[f"{one.name}:{taken + 1}" if taken else one.name] = one
        return named

    def chosen(self, names: Sequence[str]) -> dict[str, Drawing]:
        """The figures of these names, "all" for every one; none stands for the main one."""
        known = self.drawings()
        asked = [name.lower().replace("-", "_").replace(" ", "_") for name in names]
        wanted = [one for name in asked for one in (known if name == "all" else (name,))] or list(known)[:1]
        for name in wanted:
            if name not in known:
                raise UsageError(f'there is no figure "{name}" here; there are: {", ".join(known) or "none"}')
        return {name: known[name] for name in wanted}

    def markdown(self) -> str:
        """The result in Markdown: verdict, tables, notes, signatures."""
        parts = [f"## {plain_mark(self.title)}", paragraph(self.sentences)]
        parts += [table.markdown() for table in self.tables]
        parts += [part.markdown() for part in (*self.parts, *self.appendix)]
        parts += [warning_mark(warning) for warning in self.warnings]
        parts += [bullets([note]) for note in self.notes]
        parts += [code_mark(signature) for signature in self.signatures]
        return "\n\n".join(parts) + "\n"


def drawing(path: str, *arguments: Any, **options: Any) -> Drawing:
    """A chart to be drawn by the function at a path, so that nothing heavy loads before; it has the function's name.

    >>> drawing("returns.charts.cost.cost_path_chart").name
    'cost_path'
    """
    name = path.rpartition(".")[2].removesuffix("_chart")
    return Drawing(name, lambda: chart_function(path)(*arguments, **options))


def chart_function(name: str) -> Callable[..., Any]:
    """The chart function at a path such as `returns.charts.cost.cost_path_chart`, loaded now; it draws unchecked."""
    module, _, function = name.rpartition(".")
    draw: Callable[..., Any] = import_module("demur.core.show.charts").unchecked()
    chart: Callable[..., Any] = draw(getattr(import_module(f"demur.{module}"), function))
    return chart
