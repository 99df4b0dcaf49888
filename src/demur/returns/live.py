"""A log that is being followed: one screen of a terminal, curves drawn in characters."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from demur.core.show.numbers import middle_cut, percent, shorten
from demur.core.show.safe import terminal_line
from demur.returns import words
from demur.returns.curves import ErrorReturnCurve
from demur.returns.evaluate import Evaluation, joined_notes
from demur.returns.measures import ErrorAtNonreturn
from demur.returns.presentation import BRIEF, MOST_IN_COLUMNS, brief_table, measure_name, measure_table

LEAST_WIDTH = 40
LEAST_HEIGHT = 7
"""Room below which a plot cannot be read."""

RATE_FIRST, RATE_AFTER, LEAST_NAME = 20, 16, 8
"""Characters of a legend beside the names: of the first curve, of each further one; and of a name at least."""

MARGIN = 6
"""Characters for the rates on the axis of errors."""

ROOMY = 66
"""Characters across that have room for six rates below the axis and its name between two of them."""

BLANK_BRAILLE = 0x2800
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])

_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class Stroke:
    """How a curve differs from others: its colour, a pattern of dots (set, left out), and a character for ASCII."""

    colour: str
    pattern: tuple[int, int]
    character: str

    def has_dot(self, column: int) -> bool:
        """Whether the curve has a dot in this column of dots."""
        return column % sum(self.pattern) < self.pattern[0]


STROKES = (
    Stroke("bold", (1, 0), "*"),
    Stroke("dark_orange3", (4, 2), "+"),
    Stroke("dodger_blue2", (1, 1), "o"),
    Stroke("magenta", (2, 3), "x"),
)
"""The strokes of curves in their order; they return after the last."""


Signs = namedtuple("Signs", "up tick corner along down guide point")
"""The characters of axes and marks."""

BRAILLE = Signs("│", "┤", "└", "─", "┬", "┊", "●")
ASCII = Signs("|", "+", "+", "-", "+", ":", "@")


class Canvas:
    """Cells of characters, each with a style; curves are put in as dots, marks as characters."""

    def __init__(self, width: int, height: int, *, braille: bool) -> None:
        self.width, self.height, self.braille = width, height, braille
        self.across, self.up = (2, 4) if braille else (1, 1)
        """Dots of a cell."""
        self._dots = np.zeros((height, width), dtype=np.int64)
        self._signs = np.full((height, width), "", dtype="<U1")
        self._styles = np.full((height, width), "", dtype="<U16")

    def dot(self, column: int, row: int, stroke: Stroke) -> None:
        """One dot, counted from the lower left."""
        down = self.height * self.up - 1 - row
        place = down // self.up, column // self.across
        if self.braille:
            self._dots[place] |= _DOTS[down % self.up, column % self.across]
        else:
            self._signs[place] = stroke.character
        self._styles[place] = stroke.colour

    def put(self, column: int, row: int, sign: str, style: str, *, over: bool = True) -> None:
        """One character in a cell, counted from the upper left; unless `over` only where nothing is."""
        if over or not (self._dots[row, column] or self._signs[row, column]):
            self._signs[row, column], self._styles[row, column] = sign, style

    def line(self, row: int) -> Text:
        """A row of cells."""
        text = Text()
        for dots, sign, style in zip(self._dots[row], self._signs[row], self._styles[row], strict=True):
            text.append(str(sign) or (chr(BLANK_BRAILLE + dots) if dots else " "), style=str(style) or None)
        return text


def plot(
    curves: Sequence[ErrorReturnCurve], *, width: int, height: int, braille: bool = True, mark: float | None = None
) -> Text:
    """The curves over the non-return rate, lower ones better; `mark` is the rate at which error rates are given.

    >>> from demur.returns.curves import error_return
    >>> from demur.core.stats.sweep import Sweep
    >>> sweep = Sweep.of([0.9, 0.8, 0.3, 0.2], [True, True, True, False])
    >>> print(plot([error_return(sweep, name="guide")], width=40, height=8, braille=False, mark=0.5))
     error  * guide: 0 % at 50 %
           |*               :
      20 % + **             :
           |   **           :
           |     **         :
       0 % +       *********@***************
           ++---------------+- non-return -+
            0 %           50 %         100 %
    """
    room, rows = max(width, LEAST_WIDTH) - MARGIN - 2, max(height, LEAST_HEIGHT) - 3
    signs = BRAILLE if braille else ASCII
    canvas = Canvas(room, rows, braille=braille)
    top = _top(curves)
    for place, curve in enumerate(curves):
        _draw(canvas, curve, top, STROKES[place % len(STROKES)])
    if mark is not None:
        _mark(canvas, curves, top, mark, signs)
    ticks = _ticks(top, rows)
    lines = [_legend(curves, room, signs, mark)]
    for row in range(rows):
        lines.append(Text(f"{ticks.get(row, ''):>{MARGIN}} {signs.tick if row in ticks else signs.up}", "dim"))
        lines[-1].append_text(canvas.line(row))
        lines[-1].rstrip()
    return Text("\n").join([*lines, *_axis(room, signs)])


def _top(curves: Sequence[ErrorReturnCurve]) -> float:
    """The upper end of the axis of errors: a round rate above every curve."""
    highest = max((float(curve.error[0]) for curve in curves), default=0.0)
    step = next((step for step in _STEPS if highest <= 5 * step), _STEPS[-1])
    return max(step, math.ceil(highest / step - 1e-9) * step)


def _ticks(top: float, rows: int) -> dict[int, str]:
    """Round rates beside rows of the plot, not closer than every other row."""
    step = next((step for step in _STEPS if top / step <= max(1, (rows - 1) // 2)), top)
    count = round(top / step) if abs(top / step - round(top / step)) < 1e-9 else int(top / step)
    return {round((rows - 1) * (1 - k * step / top)): percent(k * step) for k in range(count + 1)}


def _heights(canvas: Canvas, errors: NDArray[np.float64], top: float) -> NDArray[np.int64]:
    dots = canvas.height * canvas.up - 1
    return np.clip(np.rint(errors / top * dots), 0, dots).astype(np.int64)


def _draw(canvas: Canvas, curve: ErrorReturnCurve, top: float, stroke: Stroke) -> None:
    """The curve as dots, one column after the other, with the steps between them filled."""
    columns = canvas.width * canvas.across
    x = np.linspace(0, 1, columns)
    inside = np.flatnonzero(x >= curve.floor - 0.5 / columns)
    heights = _heights(canvas, curve.error_at(x[inside]), top)
    for place, (column, height) in enumerate(zip(inside.tolist(), heights.tolist(), strict=True)):
        before = heights[place - 1] if place else height
        if not canvas.braille or stroke.has_dot(column):
            for row in range(height, max(height, int(before) - 1) + 1):
                canvas.dot(column, row, stroke)


def _mark(canvas: Canvas, curves: Sequence[ErrorReturnCurve], top: float, x: float, signs: Signs) -> None:
    """A guide at the non-return rate of interest, and a point at the last cutoff of each curve not beyond it."""
    column = min(canvas.width - 1, round(x * (canvas.width - 1)))
    for row in range(canvas.height):
        canvas.put(column, row, signs.guide, "dim", over=False)
    for place, curve in enumerate(curves):
        point = curve.point_at(x)
        if point is not None:
            across = min(canvas.width - 1, round(point.nonreturn * (canvas.width - 1)))
            height = int(_heights(canvas, np.array([point.error]), top)[0])
            canvas.put(across, canvas.height - 1 - height // canvas.up, signs.point, STROKES[place % 4].colour)


def _legend(curves: Sequence[ErrorReturnCurve], room: int, signs: Signs, mark: float | None) -> Text:
    """What the axis of errors is, and which curve is which with its error at the mark, as far as there is room."""
    text = Text(f"{'error':>{MARGIN}}  ", "dim")
    spare = room - RATE_FIRST - RATE_AFTER * (len(curves) - 1)
    names = shorten([curve.name for curve in curves], max(LEAST_NAME, spare // max(1, len(curves))))
    for place, curve in enumerate(curves):
        stroke = STROKES[place % len(STROKES)]
        name, sample = terminal_line(names[curve.name]), _sample(stroke)
        if signs is ASCII:
            name, sample = name.replace("…", "~").encode("ascii", "replace").decode(), stroke.character
        rate = ""
        if mark is not None and mark < curve.floor:
            rate = f": starts at {percent(curve.floor)}"
        elif mark is not None and (point := curve.point_at(mark)) is not None:
            reached = curve.reaches(mark)
            at = f" at {percent(mark if reached else point.nonreturn)}" if place == 0 or not reached else ""
            rate = f": {percent(point.error)}{at}"
        part = Text(f"{sample} ", stroke.colour).append(f"{name}{rate}", style="default")
        if cell_len(text.plain) + cell_len(part.plain) > room + MARGIN + 2:
            text.truncate(room + MARGIN - 1)
            return text.append("...")
        text.append_text(part).append("   ")
    text.rstrip()
    return text


def _sample(stroke: Stroke) -> str:
    """A short piece of a curve's line."""
    columns = [stroke.has_dot(column) for column in range(6)]
    cells = (sum(dot for dot, on in zip((0x02, 0x10), columns[at : at + 2], strict=True) if on) for at in (0, 2, 4))
    return "".join(chr(BLANK_BRAILLE + cell) for cell in cells)


def _axis(room: int, signs: Signs) -> list[Text]:
    """The axis of non-return rates, its name on the line itself, and the rates below."""
    shares = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0) if room >= ROOMY else (0.0, 0.5, 1.0)
    places = [round(share * (room - 1)) for share in shares]
    rule = [signs.down if place in places else signs.along for place in range(room)]
    labels = [" "] * room
    for place, share in zip(places, shares, strict=True):
        rate = percent(share)
        start = min(max(0, place - len(rate) // 2), room - len(rate))
        labels[start : start + len(rate)] = rate
    name = " non-return "
    start = (places[-2] + places[-1] - len(name)) // 2 + 1
    rule[start : start + len(name)] = name
    margin = " " * (MARGIN + 1)
    return [Text(f"{margin}{signs.corner}{''.join(rule)}", "dim"), Text(f"{margin} {''.join(labels)}".rstrip(), "dim")]


SENTENCE_SHARE = 0.3
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
    return " | ".join([middle_cut(moment.log), *(counts if moment.evaluations else ["no rows yet"]), time])


def update_lines(moment: Moment, time: str) -> list[str]:
    """One line for each system: time, name, rows, and the two error rates asked for most."""
    lines = []
    for one in moment.evaluations:
        line = f"{time}  {one.name}  {one.n:,} rows"
        for key in BRIEF[:2]:
            figure = one.figures[key]
            value = percent(figure.value) if figure.defined else f"undefined ({figure.why})"
            line += f"  {measure_name(key, one.measures[key])} {value}{words.cutoff_words(one, key)}"
        lines.append(line)
    return lines


def screen(moment: Moment, console: Console, *, braille: bool = True) -> RenderableType:
    """Status, verdict, measures and curves, fitted into the terminal as it is."""
    width, height = console.size.width, console.size.height - 1
    head = Text(terminal_line(status(moment)), "bold", no_wrap=True, overflow="ellipsis")
    if moment.news:
        head.append(f"\n{terminal_line(moment.news)}", "yellow")
    if not moment.evaluations:
        return head
    sentences = _sentences(moment.evaluations, console, width, int(height * SENTENCE_SHARE))
    rows = _measures(moment.evaluations, height // 3)
    used = 1 + bool(moment.news) + len(sentences) + (rows.row_count or 0)
    parts: list[RenderableType] = [head, *sentences, rows]
    if height - used >= LEAST_HEIGHT:
        curves = [one.curve for one in moment.evaluations[:MOST_IN_COLUMNS]]
        measure = moment.evaluations[0].measures["error_at_nonreturn"]
        mark = measure.x if isinstance(measure, ErrorAtNonreturn) and measure.to is None else None
        parts.append(plot(curves, width=width, height=height - used, braille=braille, mark=mark))
    return Group(*parts)


def _sentences(evaluations: Sequence[Evaluation], console: Console, width: int, most: int) -> list[Text]:
    """The verdict on each system in lines, as many as there is room for; the bound of a joined curve comes last.

    The sentence about where a curve starts is left out.
    """
    sentences = []
    for one in evaluations:
        first, *others = words.score_sentences(one)
        others = others[one.curve.floor > 0 :] if len(evaluations) == 1 else []
        sentences.append(" ".join([first, *others[:1]]))
    sentences += joined_notes(evaluations)
    lines = [line for sentence in sentences for line in Text(terminal_line(sentence)).wrap(console, width)]
    return lines if len(lines) <= most else [*lines[: most - 1], Text("...", "dim")]


def _measures(evaluations: Sequence[Evaluation], most: int) -> Grid:
    """The measures asked for most: side by side with intervals for few systems, a row for each of many."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    if len(evaluations) <= MOST_IN_COLUMNS:
        whole = measure_table(evaluations, BRIEF)
        rows = whole.rows
        columns = tuple(shorten(whole.columns, 24)[name] for name in whole.columns)
    else:
        brief = brief_table(evaluations)
        columns, rows = brief.columns, brief.rows
    if len(evaluations) > 1:
        grid.add_row(*(Text(terminal_line(name), "bold", no_wrap=True, overflow="ellipsis") for name in columns))
    for row in rows[:most]:
        grid.add_row(*(Text(terminal_line(cell), no_wrap=True, overflow="ellipsis") for cell in row))
    return grid
