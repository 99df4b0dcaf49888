"""`demur understand chat`: a talk with a relevance model, in a terminal turn by turn, from a pipe line by line."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.apps.cli.output import let_interrupts_end_waiting
from demur.core.show.results import plain, threshold_text
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.understanding.relevance import Answer, Strategy

PROMPT = "> "
RIVALS = 2
"""Other labels that a reader is told of."""


def chat(
    model: Annotated[Path, typer.Argument(help="Folder of a model, as train and tune write it.", metavar="MODEL_DIR")],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="Least confidence of an answer that is returned; by default the model's.",
            metavar="T",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON for each line of text.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only what is said; no label, confidence or reason.")
    ] = False,
    seed: Annotated[  # noqa: ARG001
        int, typer.Option("--seed", help="Taken as by every command; nothing here is random.")
    ] = 0,
) -> None:
    """Talk to a model: what it answers, how confident it is, and why it withholds; Ctrl-D or Ctrl-C ends it.

    From a pipe each line is a text, and gives one line.
    """
    from demur.understanding.relevance import Conversation, model_in

    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"`threshold` takes a number; got {threshold}")
    fitted = model_in(model, threshold)
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if terminal and not quiet:
        typer.echo(_greeting(len(fitted.classes_), fitted.threshold))
    talk = Conversation(fitted)
    try:
        for text in _texts(terminal=terminal):
            _print(Exchange(text, *talk.turn(text)), json=json, quiet=quiet, terminal=terminal)
    except KeyboardInterrupt:  # how one leaves
        pass
    if terminal:
        typer.echo()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A text, what is said to it, and the answer behind that."""

    text: str
    answer: Answer
    said: str
    strategy: Strategy | None

    def document(self) -> dict[str, Any]:
        """The exchange as plain values."""
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

    def reason(self) -> str:
        """The label, its confidence and the runner-up; why it is withheld."""
        if self.answer.label is None:
            return f"withheld: {self.answer.why}; {self.strategy}"
        best = f"{self.answer.label}, confidence {self.answer.confidence:.3g}"
        posterior = dict(self.answer.nbest).get(self.answer.label, self.answer.confidence)
        if posterior != self.answer.confidence:
            best += f" (posterior {posterior:.3g})"
        rivals = [f"{label} {share:.3g}" for label, share in self.answer.nbest if label != self.answer.label]
        best += f"; then {', '.join(rivals[:RIVALS])}" if rivals else ""
        return best if self.answer.returned else f"withheld: {self.answer.why}; {self.strategy}; best guess {best}"


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
            let_interrupts_end_waiting()
            typer.echo(PROMPT, nl=False)
        line = sys.stdin.buffer.readline()
        number += 1
        if not line:
            return
        text = _decoded(line, number, lenient=terminal).rstrip("\r\n")
        if text.strip() or not terminal:
            yield text


def _decoded(line: bytes, number: int, *, lenient: bool) -> str:
    from demur.core.io.sources import not_utf8

    try:
        return line.decode("utf-8", errors="replace" if lenient else "strict")
    except UnicodeDecodeError as fault:
        raise not_utf8(fault, f"<stdin>:{number}:") from None


def _print(exchange: Exchange, *, json: bool, quiet: bool, terminal: bool) -> None:
    if json:
        import msgspec

        typer.echo(msgspec.json.encode(exchange.document()).decode())
        return
    said = " ".join(exchange.said.split())
    if terminal:
        typer.echo(said)
        if not quiet:
            typer.secho(f"  [{exchange.reason()}]", dim=True)
    else:
        typer.echo(said if quiet else f"{said} [{exchange.reason()}]")
