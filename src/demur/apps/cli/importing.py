"""`demur import`: corpora in formats of others become tables of the project's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from demur.errors import Interrupted

if TYPE_CHECKING:
    from demur.data.importers.dstc import DstcRows

importer = typer.Typer(
    name="import",
    help="Turn corpora in other formats into tables that the other commands read.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Source = Annotated[
    Path,
    typer.Argument(
        help="Folder with a log.json and a label.json for each dialogue, at any depth, .gz too; a .flist of sessions; "
        "or a .jsonl with a dialogue a line.",
        metavar="FOLDER",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="Write the rows to FILE: .jsonl, .jsonl.gz or .jsonl.zst; else to standard output.",
        metavar="FILE",
    ),
]
Ontology = Annotated[
    Path | None,
    typer.Option(
        "--ontology",
        help="The challenge's ontology; else ontology*.json in the folder or up to two above it.",
        metavar="FILE",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", help="Folder of the label files, where they are not beside the logs.", metavar="FOLDER"),
]
Asr = Annotated[
    Literal["live", "batch"],
    typer.Option("--asr", help="Whose sentences to keep: the live recogniser's, or the later batch's."),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document about the import on standard output; needs -o for the rows.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes or progress.")]
Seed = Annotated[int, typer.Option("--seed", help="Taken as by every command; nothing here is random.")]


@importer.callback()
def about() -> None:
    """Turn corpora in other formats into tables that the other commands read."""


@importer.command(epilog="Example: `demur import dstc2 FOLDER -o train.jsonl.gz`")
def dstc2(
    source: Source,
    output: Output = None,
    ontology: Ontology = None,
    labels: Labels = None,
    asr: Asr = "live",
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Dialogues of the second Dialog State Tracking Challenge, a row for each turn, for `demur nbest`."""
    _import_dstc(source, output, ontology=ontology, labels=labels, asr=asr, json=json, quiet=quiet)


@importer.command(epilog="Example: `demur import dstc3 FOLDER --ontology ontology_dstc3.json -o test.jsonl`")
def dstc3(
    source: Source,
    output: Output = None,
    ontology: Ontology = None,
    labels: Labels = None,
    asr: Asr = "live",
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Dialogues of the third Dialog State Tracking Challenge, a row for each turn, for `demur nbest`."""
    _import_dstc(source, output, ontology=ontology, labels=labels, asr=asr, json=json, quiet=quiet)


def _import_dstc(
    source: Path,
    output: Path | None,
    *,
    ontology: Path | None,
    labels: Path | None,
    asr: Literal["live", "batch"],
    json: bool,
    quiet: bool,
) -> None:
    from demur.apps.cli.progress import steps
    from demur.data.importers.dstc import read_dstc

    _check(output, json=json)
    try:
        with steps(quiet=quiet) as step:
            rows = read_dstc(source, labels=labels, ontology=ontology, asr=asr, step=step)
            count = _deliver(rows, output)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; no output was left half-written") from None
    _report(rows, count, output, json=json, quiet=quiet)


def _check(output: Path | None, *, json: bool) -> None:
    from demur.data.importers.writing import check_rows_file
    from demur.errors import UsageError

    if output is not None:
        check_rows_file(output)
    elif json:
        raise UsageError("--json: the rows need a file of their own; name it with -o")


def _deliver(rows: DstcRows, output: Path | None) -> int:
    from demur.data.importers.writing import as_lines, write_rows

    if output is not None:
        return write_rows(output, rows)
    count = 0
    for line in as_lines(rows):
        sys.stdout.buffer.write(line)
        count += 1
    sys.stdout.buffer.flush()
    return count


def _report(rows: DstcRows, count: int, output: Path | None, *, json: bool, quiet: bool) -> None:
    from demur.apps.cli.output import as_json

    if json:
        summary: dict[str, Any] = {"rows": count, "dialogues": rows.dialogues, "out": str(output)}
        typer.echo(as_json({**summary, "notes": list(rows.notes)}))
    elif not quiet:
        for note in rows.notes:
            typer.echo(f"note: {note}", err=True)
        told = f"{count:,} turns of {rows.dialogues:,} dialogues"
        typer.echo(told if output is None else f"wrote {output}: {told}", err=True)
