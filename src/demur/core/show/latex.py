"""Tables of a result in LaTeX, with the rules of booktabs."""

from __future__ import annotations

import re

from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.safe import visible
from demur.errors import UsageError

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
    "\n": " ",
    "\t": " ",
}
_PERCENT = re.compile(r"(?<=\d)[ ~](?=\\%)")
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")


def latex_of(presentation: Presentation) -> str:
    """Every table of a result, those of its parts too, as LaTeX that needs the package booktabs."""
    tables = [table for one in (presentation, *presentation.parts, *presentation.appendix) for table in one.tables]
    if not tables:
        raise UsageError("this result has no table for .tex; write it as .json, .csv, .md, .parquet or .html")
    return "\n".join(["% in the preamble: \\usepackage{booktabs}\n", *map(table_latex, tables)])


def table_latex(table: ResultTable) -> str:
    r"""A table in LaTeX: names on the left, numbers on the right.

    >>> print(table_latex(ResultTable("Errors", ("system", "error"), (("my_bot", "20.0 %"),))))
    \begin{table}
      \centering
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
    sides = "".join("r" if numeric else "l" for numeric in table.numeric)
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{text_latex(table.title)}}}",
        rf"  \begin{{tabular}}{{{sides}}}",
        r"    \toprule",
        _row(table.columns),
        r"    \midrule",
        *map(_row, table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def text_latex(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    >>> text_latex(r"50 % of a_b\c")
    '50\\,\\% of a\\_b\\textbackslash{}c'
    """
    escaped = "".join(_SPECIAL.get(mark, mark) for mark in visible(text))
    return _MINUS.sub("$-$", _PERCENT.sub(r"\\,", escaped))


def _row(cells: tuple[str, ...]) -> str:
    return f"    {' & '.join(map(text_latex, cells))} \\\\"
