"""`demur follow`: the curve of a log while it is being written."""

from __future__ import annotations

import json
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
from typing import Any, NoReturn, Protocol

import typer
from rich.console import Console
from rich.live import Live

from demur.apps.cli import output
from demur.apps.cli.gates import failures
from demur.apps.cli.options import OutputOptions
from demur.core.io.growing import GrowingLog, LogBatch, Tail, batches, growing_log
from demur.core.options import Sampling
from demur.core.show.presentation import Presentation
from demur.core.show.results import plain
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
    *,
    at: float | tuple[float, float],
    at_error: float,
    every: float,
    until_idle: float | None,
    cutoffs: int,
) -> None:
    """Show what a growing log has come to, again and again, and in full when it ends or is left."""
    _check(outputs)
    source = growing_log(log)
    measures = returns_measures(at=at, error=at_error)
    session = Session(source, reading, sampling, measures, RunningTally(cutoffs=cutoffs))
    fault = None
    try:
        _watch(session, outputs, every=every, until_idle=until_idle)
    except DataError as error:
        fault = error
    finish(session, outputs, fault)


def _watch(session: Session, outputs: OutputOptions, *, every: float, until_idle: float | None) -> None:
    """Count what is added to the log and show it, until the log ends, rests, or the user asks to stop."""
    files = LiveFiles(session, outputs.output)
    with stopping() as stop, showing(outputs) as shown:

        def wait(seconds: float, descriptor: int | None) -> None:
            if session.rested():
                shown.rest(session.moment())
            stop.wait(seconds, descriptor)

        times: dict[str, Any] = {"every": every, "until_idle": until_idle, "clock": time.monotonic}
        for batch in batches(session.log, **times, wait=wait, stopped=stop.asked):
            if batch is not None:
                session.count(batch)
            else:
                shown.update(session.moment(fresh=True), session)
                files.write_if_due()


def finish(session: Session, outputs: OutputOptions, fault: DataError | None) -> None:
    """Show and write the last result; a fault that ended the following is raised after it."""
    if not session.running.rows:
        if fault is not None:
            raise fault
        session.refuse_nothing()
    shown = session.presented(fault=fault)
    rest = replace(outputs, output=[path for path in outputs.output if path.suffix.lower() != SWEEP])
    for path in outputs.output:
        if path.suffix.lower() == SWEEP:
            session.write_sweep(path, shown)
    if not (outputs.json or outputs.quiet or sys.stdout.isatty()):
        typer.echo()
    if outputs.json:
        broken = failures(outputs.fail_if, shown.document)
        output.write_all(shown, rest.output)
        typer.echo(json_line(shown, final=True))
        for failure in broken:
            typer.echo(f"gate: {failure}", err=True)
        ended = typer.Exit(1) if broken else None
    else:
        ended = _delivered(shown, rest)
    if fault is not None:
        raise fault
    if ended is not None:
        raise ended


def _delivered(shown: Presentation, outputs: OutputOptions) -> typer.Exit | None:
    try:
        output.deliver(shown, outputs)
    except typer.Exit as ended:
        return ended
    return None


def _check(outputs: OutputOptions) -> None:
    sweeps = [path for path in outputs.output if path.suffix.lower() == SWEEP]
    for path in sweeps:
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    output.check(replace(outputs, output=[path for path in outputs.output if path not in sweeps]))


@dataclass
class Session:
    """A log being followed: what is counted of it, and what is to be told."""

    log: GrowingLog
    reading: Reading
    sampling: Sampling
    measures: dict[str, Measure]
    running: RunningTally
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
        shown = presentation.of_scores(self._evaluations if live else self._evaluated(replicates))
        seed = f"seed {self.sampling.seed}, {replicates:,} replicates"
        until = (f"counted only up to a fault: {fault.faults[0]}",) if fault is not None else ()
        return replace(
            shown,
            notes=(*shown.notes, *self.reader.notes, *self.log.notes, seed),
            warnings=(*shown.warnings, *self.reader.warnings, *until),
        )

    def write_sweep(self, path: Path, shown: Presentation) -> None:
        """Write the totals, to be merged with those of other logs."""
        tallies = tuple(self.running.tallies)
        SweepFile(tallies, rules_of(self.reading), (self.log.name,), shown.notes, shown.warnings).write(path)

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


@dataclass
class LiveFiles:
    """The files asked for, written again and again while a log is followed, but not so often that it costs much."""

    session: Session
    paths: list[Path]
    _next: float = 0.0

    def write_if_due(self) -> None:
        """Write the files if the last time is long enough ago."""
        start = time.monotonic()
        if not self.paths or start < self._next:
            return
        shown = self.session.presented(live=True)
        for path in self.paths:
            if path.suffix.lower() == SWEEP:
                self.session.write_sweep(path, shown)
            else:
                output.write_all(shown, [path])
        now = time.monotonic()
        self._next = now + (now - start) / WRITING_SHARE


class Stop:
    """Whether the user asked to stop, and a way to wait that ends as soon as he does."""

    def __init__(self) -> None:
        self._asked = False
        self._ear, self._bell = socket.socketpair()
        self._bell.setblocking(False)

    def ask(self, *_: Any) -> None:
        """Ask to stop, from a signal."""
        if not self._asked:
            self._asked = True
            self._bell.send(b"!")

    def asked(self) -> bool:
        """Whether it was asked."""
        return self._asked

    def wait(self, seconds: float, descriptor: int | None) -> None:
        """Wait for some seconds at most, less if there is more to read."""
        awaited: list[Any] = [self._ear] if descriptor is None else [self._ear, descriptor]
        select.select(awaited, [], [], seconds)

    def close(self) -> None:
        """Let go of what was waited on."""
        self._ear.close()
        self._bell.close()


@contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM ask to stop between two batches; once that is done they act as ever."""
    stop = Stop()
    before = {one: signal.signal(one, stop.ask) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        stop.close()


class View(Protocol):
    """How a log is shown while it is followed."""

    def update(self, moment: Moment, session: Session) -> None:
        """Show what was counted."""

    def rest(self, moment: Moment) -> None:
        """Hear that there is nothing new."""


class Silence:
    """Shows nothing until the end."""

    def update(self, moment: Moment, session: Session) -> None:
        """Show nothing."""

    def rest(self, moment: Moment) -> None:
        """Say nothing."""


class JsonLines(Silence):
    """One JSON document a line."""

    def update(self, moment: Moment, session: Session) -> None:
        """Print the document."""
        typer.echo(json_line(session.presented(live=True), final=False))


class Lines:
    """One line for each system; what happens to the log goes to standard error."""

    def __init__(self) -> None:
        self._said = ""

    def update(self, moment: Moment, session: Session) -> None:
        """Print the lines."""
        for line in update_lines(moment, datetime.now().strftime("%H:%M:%S")):
            typer.echo(line)

    def rest(self, moment: Moment) -> None:
        """Say what is new of the log itself."""
        if moment.news and moment.news != self._said:
            self._said = moment.news
            typer.echo(f"note: {moment.news}", err=True)


class LiveScreen:
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
def showing(outputs: OutputOptions) -> Iterator[View]:
    """The way to show a log that fits where the output goes."""
    if outputs.json or outputs.quiet:
        yield JsonLines() if outputs.json else Silence()
    elif not sys.stdout.isatty():
        yield Lines()
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot spell must not end the following
        console = Console(highlight=False)
        with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
            yield LiveScreen(live)


def json_line(shown: Presentation, *, final: bool) -> str:
    """The document of a result in one line, with the time and whether more will come."""
    told = {"notes": list(shown.notes), "warnings": list(shown.warnings)}
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    document = {"time": when, "final": final, **shown.document, **told}
    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
