"""A talk with a relevance model: in a terminal turn by turn, from a pipe line by line."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from demur.core.io.sources import not_utf8
from demur.core.show.results import plain, threshold_text
from demur.errors import UsageError
from demur.understanding.model_files import load_model
from demur.understanding.relevance import Answer, Conversation, Strategy

PROMPT = "> "
RIVALS = 2
"""Other labels that a reader is told of."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A text, what is said to it, and what stands behind that."""

    text: str
    answer: Answer
    said: str
    strategy: Strategy | None

    def document(self) -> dict[str, Any]:
        """The turn as plain values."""
        found: dict[str, Any] = plain(
            {
                "input": self.text,
                "said": self.said,
                "prediction": self.answer.label,
                "confidence": self.answer.confidence,
                "returned": self.answer.returned,
                "strategy": self.strategy,
                "why": self.answer.why,
                "nbest": [{"label": label, "confidence": share} for label, share in self.answer.nbest],
            }
        )
        return found

    def behind(self) -> str:
        """The label, its confidence and the runner-up; why it is withheld."""
        if self.answer.label is None:
            return f"withheld: {self.answer.why}; {self.strategy}"
        best = f"{self.answer.label}, confidence {self.answer.confidence:.3g}"
        posterior = dict(self.answer.nbest).get(self.answer.label, self.answer.confidence)
        if posterior != self.answer.confidence:
            best += f" (posterior {posterior:.3g})"
        rivals = [f"{label} {share:.3g}" for label, share in self.answer.nbest if label != self.answer.label]
        told = best + (f"; then {', '.join(rivals[:RIVALS])}" if rivals else "")
        return told if self.answer.returned else f"withheld: {self.answer.why}; {self.strategy}; best guess {told}"


def chat(folder: Path, *, threshold: float | None, json: bool, quiet: bool) -> None:
    """Answer line by line until the lines end or the user leaves."""
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--threshold takes a number; got {threshold}")
    model = load_model(folder)
    if threshold is not None:
        model.set_params(threshold=threshold)
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if terminal and not quiet:
        typer.echo(_greeting(len(model.classes_), model.threshold))
    talk = Conversation(model)
    try:
        for text in _texts(terminal=terminal):
            _tell(Turn(text, *talk.turn(text)), json=json, quiet=quiet, terminal=terminal)
    except KeyboardInterrupt:  # how one leaves
        pass
    if terminal:
        typer.echo()


def _greeting(answers: int, threshold: float | None) -> str:
    limit = (
        "no threshold, so only what is unknown is withheld"
        if threshold is None
        else f"threshold {threshold_text(threshold)}"
    )
    return f"A model of {answers:,} answers; {limit}. Ctrl-D leaves."


def _texts(*, terminal: bool) -> Iterator[str]:
    """The lines of standard input; at a terminal each is asked for, and empty ones are passed over."""
    number = 0
    while True:
        if terminal:
            typer.echo(PROMPT, nl=False)
        line = sys.stdin.buffer.readline()
        number += 1
        if not line:
            return
        text = _decoded(line, number, lenient=terminal).rstrip("\r\n")
        if text.strip() or not terminal:
            yield text


def _decoded(line: bytes, number: int, *, lenient: bool) -> str:
    try:
        return line.decode("utf-8", errors="replace" if lenient else "strict")
    except UnicodeDecodeError as fault:
        raise not_utf8(fault, f"<stdin>:{number}:") from None


def _tell(turn: Turn, *, json: bool, quiet: bool, terminal: bool) -> None:
    if json:
        typer.echo(msgspec.json.encode(turn.document()).decode())
        return
    said = " ".join(turn.said.split())
    if terminal:
        typer.echo(said)
        if not quiet:
            typer.secho(f"  [{turn.behind()}]", dim=True)
    else:
        typer.echo(said if quiet else f"{said} [{turn.behind()}]")
