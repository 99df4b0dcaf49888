"""A result ready to be shown: sentences, tables, figures, data and the JSON document; its text as Markdown and LaTeX.

Nothing from the data is taken for markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import polars as pl

from demur.core.show.safe import visible
from demur.errors import UsageError

_MARKS = re.compile(r"[\\`*\[\]|~#]|(?<!\w)_|_(?!\w)|\A[-+](?=\s|\Z)")
"""What Markdown reads as markup: anywhere, at the edge of a word, or as the beginning of a list."""

_LIST_NUMBER = re.compile(r"\A(\d+)([.)])(?=\s|\Z)")


def plain_mark(text: str) -> str:
    r"""Text that Markdown shows as it stands.

    >>> plain_mark("a_b <b>*x*</b> | y")
    'a_b &lt;b&gt;\\*x\\*&lt;/b&gt; \\| y'
    """
    safe = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LIST_NUMBER.sub(r"\1\\\2", _MARKS.sub(lambda match: f"\\{match[0]}", safe))


def paragraph(sentences: Iterable[str]) -> str:
    """Sentences as one paragraph."""
    return plain_mark(" ".join(sentences))


def bullets(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return "\n".join(f"- {plain_mark(sentence)}" for sentence in sentences)


def warning_mark(text: str) -> str:
    """A warning, set apart."""
    return f"> **Warning:** {plain_mark(text)}"


def code_mark(text: str) -> str:
    """Text in a fixed-width font, such as a signature."""
    return f"`{_one_line(text).replace('`', chr(39))}`"


def table_mark(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[bool],
    most_rows: int | None = None,
) -> str:
    """A table under its title, numbers to the right; of more rows than are wanted the first, and how many are left."""
    shown = rows[:most_rows]
    sides = ["---:" if one else "---" for one in numeric]
    cells = [[plain_mark(cell) for cell in row] for row in (columns, *shown)]
    lines = [f"| {' | '.join(row)} |" for row in (cells[0], sides, *cells[1:])]
    more = ["", f"… and {len(rows) - len(shown):,} more rows."] if len(shown) < len(rows) else []
    return "\n".join([f"### {plain_mark(title)}", "", *lines, *more])


def _one_line(text: str) -> str:
    return visible(" ".join(text.splitlines()))


_NUMBER = re.compile(r"(?:[pz] = |[pz]? ?< )?[-−+]?[\d.,]+(?:e-?\d+)?(?: ?%)?(?: points)?(?:[ –,:(].*)?")
"""A number as cells have it: with a sign, a unit, and its interval or where it was read."""

_NO_WORD = re.compile(rf"{_NUMBER.pattern}|[-–]?|baseline|undefined.*|return nothing.*|none.*")
"""What stands in a column of numbers."""

NAMES = {"system", "a", "b", "slice"}
"""Columns of names, which may look like numbers."""

_SPECIAL = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "\N{NO-BREAK SPACE}": "~",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "²": "$^2$",
    "→": r"$\rightarrow$",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
    "\n": " ",
    "\t": " ",
}
_PERCENT = re.compile(r"(?<=\d)[ ~](?=\\%)")
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")


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
        """Which columns hold numbers, so that they stand to the right; the first names the rows, or says how sure.

        >>> ResultTable("", ("system", "error"), (("a", "3.2 % (1.0 to 5.0)"), ("b", "–"))).numeric
        (False, True)
        """
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return tuple(
            (place > 0 or self.columns[0] == "confidence")
            and self.columns[place] not in NAMES
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
    """The first is the main one."""
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
    def main_table(self) -> ResultTable:
        """The table that stands for the whole."""
        return self.tables[0]

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

    >>> drawing("returns.charts.error_return.cost_path_chart").name
    'cost_path'
    """
    name = path.rpartition(".")[2].removesuffix("_chart")
    return Drawing(name, lambda: chart_function(path)(*arguments, **options))


def chart_function(name: str) -> Callable[..., Any]:
    """The chart function at a path such as `outcome.charts.sets_chart`, loaded now; it draws unchecked."""
    module, _, function = name.rpartition(".")
    draw: Callable[..., Any] = import_module("demur.core.show.charts").unchecked()
    chart: Callable[..., Any] = draw(getattr(import_module(f"demur.{module}"), function))
    return chart


WIDE, NARROW, LONG = 122, 56, 50
"""Characters across a page and a column of a paper in small type, and rows of a table on a page."""

_LATIN = re.compile(r"[\u0250-\uffff\U00010000-\U0010ffff]")
"""Characters that pdfLaTeX does not set without further packages."""

_ELSEWHERE = re.compile(r" \([^()]*-o page\.html[^()]*\)")
"""What the title of a brief table says on where there is more."""


def latex_of(presentation: Presentation) -> str:
    """Every table of a result, those of its parts too, as LaTeX that needs the package booktabs."""
    tables = [table for one in (presentation, *presentation.parts, *presentation.appendix) for table in one.tables]
    if not tables:
        raise UsageError("this result has no table for .tex; write it as .json, .csv, .md, .parquet or .html")
    text = "\n".join(map(table_latex, tables))
    scripts = "% names in other scripts: compile with XeLaTeX or LuaLaTeX and a font that has them\n"
    notes = "".join(f"% {_one_line(note)}\n" for note in presentation.notes)
    return f"% in the preamble: \\usepackage{{booktabs}}\n{scripts if _LATIN.search(text) else ''}{notes}\n{text}"


def table_latex(table: ResultTable) -> str:
    r"""A table in LaTeX: names on the left, numbers on the right, in a form that fits a page; long ones in parts.

    >>> print(table_latex(ResultTable("Errors", ("system", "error"), (("my_bot", "20.0 %"),))))
    \begin{table}
      \centering\footnotesize\setlength{\tabcolsep}{4pt}
      \caption{Errors}
      \begin{tabular}{lr}
        \toprule
        system & error \\
        \midrule
        my\_bot & 20.0\,\% \\
        \bottomrule
      \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    from demur.core.show.terminal import column_widths, fit_table, width_in_lines

    fitting = fit_table(table, WIDE)
    place, room = ("table", NARROW) if width_in_lines(fitting) <= NARROW else ("table*", WIDE)
    widths = column_widths(fitting, room)
    sides = ["r" if numeric else "l" for numeric in fitting.numeric]
    headings = [_heading(*one) for one in zip(fitting.columns, widths, sides, strict=True)]
    parts = [fitting.rows[start : start + LONG] for start in range(0, max(len(fitting.rows), 1), LONG)]
    title, made = text_latex(_ELSEWHERE.sub("", fitting.title)), []
    for number, rows in enumerate(parts):
        more = [
            rf"\begin{{{place}}}",
            r"  \centering\footnotesize\setlength{\tabcolsep}{4pt}",
            rf"  \caption{{{title}{' (continued)' if number else ''}}}",
            rf"  \begin{{tabular}}{{{''.join(sides)}}}",
            r"    \toprule",
            f"    {' & '.join(headings)} \\\\",
            r"    \midrule",
            *(f"    {' & '.join(map(text_latex, row))} \\\\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"\end{{{place}}}",
        ]
        made.append("\n".join(more) + "\n")
    return "\n".join(made)


def _heading(column: str, width: int | None, side: str) -> str:
    """A heading, broken into lines where its column is narrower than it."""
    from demur.core.show.terminal import lines_of

    lines = [text_latex(line) for line in (lines_of(column, width) if width else [column])]
    if len(lines) < 2:
        return "".join(lines)
    broken = r"\\".join(lines)
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{broken}\end{{tabular}}"


def text_latex(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    >>> text_latex(r"50 % of a_b\c")
    '50\\,\\% of a\\_b\\textbackslash{}c'
    """
    escaped = "".join(_SPECIAL.get(mark, mark) for mark in visible(text))
    return _MINUS.sub("$-$", _PERCENT.sub(r"\\,", escaped))
