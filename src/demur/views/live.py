"""A log that is being followed, as it stands: one screen of a terminal, or one line for each system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from demur.analyses.evaluation import Evaluation, joined_notes
from demur.measures.returns import ErrorAtNonreturn
from demur.views import words
from demur.views.names import middle_cut, shortened
from demur.views.presentation import BRIEF, MOST_IN_COLUMNS, Table, brief_table, measure_name, measure_table
from demur.views.terminal_plot import LEAST_HEIGHT, plot

MOST_SAID = 0.3
"""Share of the screen that sentences may take."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known of a log at one time."""

    log: str
    evaluations: Sequence[Evaluation]
    seconds: float
    """Since following began."""
    per_second: float
    news: str = ""
    """The last that happened to the log itself."""


def status(moment: Moment) -> str:
    """Counts in one line.

    >>> status(Moment("run.jsonl", (), 75.2, 0.0))
    'run.jsonl | no rows yet | 1:15'
    """
    minutes, seconds = divmod(int(moment.seconds), 60)
    hours, minutes = divmod(minutes, 60)
    time = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    counts = [f"{sum(one.n for one in moment.evaluations):,} rows", f"{moment.per_second:,.0f} a second"]
    withheld, failed = (sum(getattr(one, kind) for one in moment.evaluations) for kind in ("withheld", "failed"))
    counts += [f"{withheld:,} withheld", f"{failed:,} failed"]
    told = counts if moment.evaluations else ["no rows yet"]
    return " | ".join([middle_cut(moment.log), *told, time])


def update_lines(moment: Moment, time: str) -> list[str]:
    """One line for each system: time, name, rows, and the two error rates asked for most."""
    return [
        f"{time}  {one.name}  {one.n:,} rows  " + "  ".join(_named_value(one, key) for key in BRIEF[:2])
        for one in moment.evaluations
    ]


def screen(moment: Moment, console: Console, *, braille: bool = True) -> RenderableType:
    """Status, verdict, measures and curves, fitted into the terminal as it is."""
    width, height = console.size.width, console.size.height - 1
    head = Text(status(moment), "bold", no_wrap=True, overflow="ellipsis")
    if moment.news:
        head.append(f"\n{moment.news}", "yellow")
    if not moment.evaluations:
        return head
    said = _said(moment.evaluations, console, width, int(height * MOST_SAID))
    rows = _measures(moment.evaluations, height // 3)
    used = 1 + bool(moment.news) + len(said) + (rows.row_count or 0)
    parts: list[RenderableType] = [head, *said, rows]
    if height - used >= LEAST_HEIGHT:
        curves = [one.curve for one in moment.evaluations[:MOST_IN_COLUMNS]]
        parts.append(
            plot(curves, width=width, height=height - used, braille=braille, mark=_mark(moment.evaluations[0]))
        )
    return Group(*parts)


def _named_value(one: Evaluation, key: str) -> str:
    figure = one.figures[key]
    value = words.percent(figure.value) if figure.defined else f"undefined ({figure.why})"
    return f"{measure_name(key, one.measures[key])} {value}"


def _said(evaluations: Sequence[Evaluation], console: Console, width: int, most: int) -> list[Text]:
    """The verdict on each system in lines, as many as there is room for; the bound of a joined curve comes last."""
    single = len(evaluations) == 1
    sentences = [" ".join(_main_sentences(one)[: 2 if single else 1]) for one in evaluations]
    sentences += joined_notes(evaluations)
    lines = [line for sentence in sentences for line in Text(sentence).wrap(console, width)]
    return lines if len(lines) <= most else [*lines[: most - 1], Text("...", "dim")]


def _main_sentences(evaluation: Evaluation) -> list[str]:
    """What is said of a system, without the sentence about where its curve starts."""
    first, *others = words.score_sentences(evaluation)
    return [first, *others[evaluation.curve.floor > 0 :]]


def _measures(evaluations: Sequence[Evaluation], most: int) -> Grid:
    """The measures asked for most: side by side with intervals for few systems, a row for each of many."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    table = _few(evaluations) if len(evaluations) <= MOST_IN_COLUMNS else brief_table(evaluations)
    if len(evaluations) > 1:
        grid.add_row(*(Text(name, "bold", no_wrap=True, overflow="ellipsis") for name in table.columns))
    for row in table.rows[:most]:
        grid.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    return grid


def _few(evaluations: Sequence[Evaluation]) -> Table:
    whole = measure_table(evaluations)
    rows = tuple(row for key, row in zip(evaluations[0].measures, whole.rows, strict=True) if key in BRIEF)
    short = shortened(whole.columns, 24)
    return Table(whole.title, tuple(short[name] for name in whole.columns), rows)


def _mark(evaluation: Evaluation) -> float | None:
    measure = evaluation.measures["error_at_nonreturn"]
    return measure.x if isinstance(measure, ErrorAtNonreturn) and measure.to is None else None
