"""`demur follow`: the curve of a log while it is being written."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.live import Live

from demur.apps.cli import output
from demur.apps.cli.output import FigureOptions, OutputOptions, as_json, failures
from demur.core.io.growing import GrowingLog, LogBatch, Tail, batches, growing_log
from demur.core.options import Sampling
from demur.core.show.presentation import Presentation
from demur.core.show.safe import terminal_line
from demur.core.stats.measure import Measure
from demur.errors import DataError, UsageError
from demur.returns import presentation
from demur.returns.evaluate import Evaluation, returns_measures
from demur.returns.follow import BatchReader, RunningTally
from demur.returns.live import Moment, screen, update_lines
from demur.returns.sweep_files import SweepFile, rules_of
from demur.returns.table import Reading

LIVE_REPLICATES = 200
"""Bootstrap replicates while a log is followed; the last result has as many as were asked for."""

RATE_OVER = 10.0
"""Seconds over which rows are counted for the rows a second."""

GLANCE = 0.25
"""Seconds between two looks at a log that has nothing new."""

WRITING_SHARE = 0.05
"""Share of the time that may go into writing files while a log is followed."""

SWEEP = ".sweep"


def follow(
    log: str,
    reading: Reading,
    sampling: Sampling,
    outputs: OutputOptions,
    figures: FigureOptions,
    *,
    at: float | tuple[float, float],
    at_error: float,
    every: float,
    until_idle: float | None,
    cutoffs: int,
) -> None:
    """Show what a growing log has come to, again and again, and in full when it ends or is left."""
    sweeps = [path for path in outputs.output if path.suffix.lower() == SWEEP]
    for path in sweeps:
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    output.check(replace(outputs, output=[path for path in outputs.output if path not in sweeps]))
    output.check_figures(figures, outputs.output)
    source = growing_log(log)
    measures = returns_measures(at=at, error=at_error)
    session = Session(source, reading, sampling, measures, RunningTally(cutoffs=cutoffs), figures)
    fault = None
    try:
        _watch(session, outputs, every=every, until_idle=until_idle)
    except DataError as error:
        fault = error
    _finish(session, outputs, fault)


def _watch(session: Session, outputs: OutputOptions, *, every: float, until_idle: float | None) -> None:
    """Count what is added to the log and show it, until the log ends, rests, or the user asks to stop.

    The files asked for are written again and again, but not so often that it costs much.
    """
    write_next = 0.0
    with stopping() as stop, showing(outputs) as view:

        def wait(seconds: float, descriptor: int | None) -> None:
            if session.rested():
                view.rest(session.moment())
            stop.wait(seconds, descriptor)

        times: dict[str, Any] = {"every": every, "until_idle": until_idle, "clock": time.monotonic}
        for batch in batches(session.log, **times, wait=wait, stopped=lambda: stop.requested):
            if batch is not None:
                session.count(batch)
                continue
            view.update(session.moment(fresh=True), session)
            start = time.monotonic()
            if outputs.output and start >= write_next:
                session.write(session.presented(live=True), outputs.output)
                now = time.monotonic()
                write_next = now + (now - start) / WRITING_SHARE


def _finish(session: Session, outputs: OutputOptions, fault: DataError | None) -> None:
    """Show and write the last result; a fault that ended the following is raised after it."""
    if not session.running.rows:
        if fault is not None:
            raise fault
        session.refuse_nothing()
    result = session.presented(fault=fault)
    if session.figures.list_figures and fault is None:
        output.list_figures(result, as_document=outputs.json)
        return
    sweeps = [path for path in outputs.output if path.suffix.lower() == SWEEP]
    others = [path for path in outputs.output if path not in sweeps]
    session.write(result, sweeps)
    if not (outputs.json or outputs.quiet or sys.stdout.isatty()):
        typer.echo()
    ended = None
    if outputs.json:
        broken = failures(outputs.fail_if, result.document)
        output.write_all(result, others, session.figures)
        typer.echo(json_line(result, final=True))
        for failure in broken:
            output.print_aside(f"gate: {failure}")
        ended = typer.Exit(1) if broken else None
    else:
        try:
            output.deliver(result, replace(outputs, output=others), session.figures)
        except typer.Exit as exit_:
            ended = exit_
    if fault is not None:
        raise fault
    if ended is not None:
        raise ended


@dataclass
class Session:
    """A log being followed: what is counted of it, and what is to be told."""

    log: GrowingLog
    reading: Reading
    sampling: Sampling
    measures: dict[str, Measure]
    running: RunningTally
    figures: FigureOptions = output.AS_THEY_COME
    begun: float = field(default_factory=time.monotonic)
    _evaluations: tuple[Evaluation, ...] = ()
    _counts: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.reader = BatchReader(self.reading)

    def count(self, batch: LogBatch) -> None:
        """Add a batch of the log to what is counted; of one with a fault the rows before it."""
        try:
            judged = self.reader.judged(batch)
        except DataError as fault:
            if (sound := batch.sound_part(fault)) is not None:
                self.count(sound)
            raise
        if judged is not None:
            self.running.add(judged.frame, grouped=judged.grouped)

    def rested(self) -> bool:
        """Whether the last moment that was shown is long enough ago to show time going on."""
        return not self._counts or time.monotonic() - self._counts[-1][0] >= GLANCE

    def moment(self, *, fresh: bool = False) -> Moment:
        """What is known now; with `fresh` the measures are computed again."""
        if fresh and self.running.rows:
            self._evaluations = self._evaluated(min(LIVE_REPLICATES, self.sampling.replicates))
        now = time.monotonic()
        waiting = isinstance(self.log, Tail) and self.log.missing
        news = f"{self.log.name} is not there yet: waiting for it" if waiting else "".join(self.log.notes[-1:])
        return Moment(self.log.name, self._evaluations, now - self.begun, self._per_second(now), news)

    def presented(self, *, fault: DataError | None = None, live: bool = False) -> Presentation:
        """The result as `score` would show it, with what is to be told of the log."""
        replicates = min(LIVE_REPLICATES, self.sampling.replicates) if live else self.sampling.replicates
        result = presentation.of_scores(self._evaluations if live else self._evaluated(replicates))
        seed = f"seed {self.sampling.seed}, {replicates:,} replicates"
        until = (f"counted only up to a fault: {fault.faults[0]}",) if fault is not None else ()
        return replace(
            result,
            notes=(*result.notes, *self.reader.notes, *self.log.notes, seed),
            warnings=(*result.warnings, *self.reader.warnings, *until),
        )

    def write(self, result: Presentation, paths: list[Path]) -> None:
        """Write the result to files; a `.sweep` file has the totals, to be merged with those of other logs."""
        for path in paths:
            if path.suffix.lower() == SWEEP:
                rules, sources = rules_of(self.reading), (self.log.name,)
                SweepFile(tuple(self.running.tallies), rules, sources, result.notes, result.warnings).write(path)
            else:
                output.write_all(result, [path], self.figures)

    def refuse_nothing(self) -> NoReturn:
        """Refuse to show what holds no rows."""
        if isinstance(self.log, Tail):
            self.log.refuse_missing()
        self.reader.refuse_nothing(self.log.name)
        raise DataError("the weights of the rows must not all be 0", where=self.log.name)

    def _evaluated(self, replicates: int) -> tuple[Evaluation, ...]:
        return self.running.evaluated(
            measures=self.measures, level=self.sampling.level, replicates=replicates, seed=self.sampling.seed
        )

    def _per_second(self, now: float) -> float:
        """Rows a second over the last seconds."""
        self._counts.append((now, self.running.rows))
        while len(self._counts) > 2 and self._counts[1][0] < now - RATE_OVER:
            self._counts.popleft()
        start, rows = self._counts[0]
        return (self.running.rows - rows) / (now - start) if now > start else 0.0


class Stop:
    """Whether the user asked to stop, and a way to wait that ends as soon as that happens."""

    def __init__(self) -> None:
        self.requested = False
        self.ends = self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)

    def request(self, *_: Any) -> None:
        """Ask to stop, from a signal."""
        if not self.requested:
            self.requested = True
            self._sender.send(b"!")

    def wait(self, seconds: float, descriptor: int | None) -> None:
        """Wait for some seconds at most, less if there is more to read."""
        awaited: list[Any] = [self._receiver] if descriptor is None else [self._receiver, descriptor]
        try:
            select.select(awaited, [], [], seconds)
        except OSError:  # Windows waits for sockets only, not for pipes
            select.select([self._receiver], [], [], seconds)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM ask to stop between two batches; once that is done they act as ever."""
    stop = Stop()
    before = {one: signal.signal(one, stop.request) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for end in stop.ends:
            end.close()


class LiveView:
    """How a log is shown while it is followed: here not at all."""

    def update(self, moment: Moment, session: Session) -> None:
        """Show what was counted."""

    def rest(self, moment: Moment) -> None:
        """Show that there is nothing new."""


class JsonLines(LiveView):
    """One JSON document a line."""

    def update(self, moment: Moment, session: Session) -> None:
        """Print the document."""
        typer.echo(json_line(session.presented(live=True), final=False))


class TextLines(LiveView):
    """One line for each system; what happens to the log goes to standard error."""

    def __init__(self) -> None:
        self._last_news = ""

    def update(self, moment: Moment, session: Session) -> None:
        """Print the lines."""
        for line in update_lines(moment, datetime.now().strftime("%H:%M:%S")):
            typer.echo(terminal_line(line))

    def rest(self, moment: Moment) -> None:
        """Print what is new of the log itself."""
        if moment.news and moment.news != self._last_news:
            self._last_news = moment.news
            output.print_aside(f"note: {moment.news}")


class LiveScreen(LiveView):
    """One screen of a terminal, drawn over and over."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._braille = live.console.encoding.lower().startswith("utf") and os.environ.get("TERM") != "linux"

    def update(self, moment: Moment, session: Session) -> None:
        """Draw the screen."""
        self.rest(moment)

    def rest(self, moment: Moment) -> None:
        """Draw the screen, on which time goes on."""
        self._live.update(screen(moment, self._live.console, braille=self._braille), refresh=True)


@contextmanager
def showing(outputs: OutputOptions) -> Iterator[LiveView]:
    """The way to show a log that fits where the output goes."""
    if outputs.json or outputs.quiet:
        yield JsonLines() if outputs.json else LiveView()
    elif not sys.stdout.isatty():
        yield TextLines()
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot spell must not end the following
        console = Console(highlight=False)
        with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
            yield LiveScreen(live)


def json_line(result: Presentation, *, final: bool) -> str:
    """The document of a result in one line, with the time and whether more will come."""
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    notes = {"notes": list(result.notes), "warnings": list(result.warnings)}
    document = {"time": when, "final": final, **result.document, **notes}
    return as_json(document, indent=None)
