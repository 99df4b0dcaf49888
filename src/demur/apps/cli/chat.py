"""`demur understand chat`: a talk with a relevance model, in a terminal turn by turn, from a pipe line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from demur.apps.cli.output import let_interrupts_end_waiting
from demur.core.show.results import plain, threshold_text
from demur.core.show.safe import json_text, terminal_line

if TYPE_CHECKING:
    from demur.understanding.relevance import Answer, RelevanceClassifier, Strategy

RIVALS = 2
"""Other labels that a reader is told of."""


def talk(model: RelevanceClassifier, *, json: bool, quiet: bool) -> None:
    """Answer the texts of standard input one by one until it ends, or until Ctrl-C."""
    from demur.understanding.relevance import Conversation

    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if terminal and not quiet:
        unlimited = "no threshold, so only what is unknown is withheld"
        limit = unlimited if model.threshold is None else f"threshold {threshold_text(model.threshold)}"
        typer.echo(f"A model of {len(model.classes_):,} answers; {limit}. Ctrl-D leaves.")
    conversation = Conversation(model)
    try:
        for text in _texts(terminal=terminal):
            answer, reply, strategy = conversation.turn(text)
            line = terminal_line(" ".join(reply.split()))
            if json:
                _print_json(text, answer, reply, strategy)
            elif quiet:
                typer.echo(line)
            elif terminal:
                typer.echo(line)
                typer.secho(f"  [{terminal_line(_reason(answer, strategy))}]", dim=True)
            else:
                typer.echo(f"{line} [{terminal_line(_reason(answer, strategy))}]")
    except KeyboardInterrupt:  # how one leaves
        pass
    if terminal:
        typer.echo()


def _texts(*, terminal: bool) -> Iterator[str]:
    """The lines of standard input; at a terminal each is asked for, and empty ones are passed over."""
    from demur.core.io.sources import not_utf8

    number = 0
    while True:
        if terminal:
            let_interrupts_end_waiting()
            typer.echo("> ", nl=False)
        line = sys.stdin.buffer.readline()
        number += 1
        if not line:
            return
        try:
            text = line.decode("utf-8", errors="replace" if terminal else "strict").rstrip("\r\n")
        except UnicodeDecodeError as fault:
            raise not_utf8(fault, f"<stdin>:{number}:") from None
        if text.strip() or not terminal:
            yield text


def _reason(answer: Answer, strategy: Strategy | None) -> str:
    """The label, its confidence and the runner-up; why it is withheld."""
    if answer.label is None:
        return f"withheld: {answer.why}; {strategy}"
    best = f"{answer.label}, confidence {answer.confidence:.3g}"
    posterior = dict(answer.nbest).get(answer.label, answer.confidence)
    if posterior != answer.confidence:
        best += f" (posterior {posterior:.3g})"
    rivals = [f"{label} {share:.3g}" for label, share in answer.nbest if label != answer.label]
    best += f"; then {', '.join(rivals[:RIVALS])}" if rivals else ""
    return best if answer.returned else f"withheld: {answer.why}; {strategy}; best guess {best}"


def _print_json(text: str, answer: Answer, reply: str, strategy: Strategy | None) -> None:
    document: dict[str, Any] = {
        "input": text,
        "said": reply,
        "prediction": answer.label,
        "confidence": answer.confidence,
        "returned": answer.returned,
        "strategy": strategy,
        "why": answer.why,
        "nbest": [{"label": label, "confidence": share} for label, share in answer.nbest],
    }
    typer.echo(json_text(plain(document), indent=None))
