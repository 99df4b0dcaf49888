"""`demur import`: corpora in formats of others become tables of the project's own."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from demur.errors import Interrupted

if TYPE_CHECKING:
    from demur.core.show.results import Step
    from demur.importers.dstc import DstcRows
    from demur.importers.dstc_tables import DstcTable
    from demur.nbest_lists.asr.slf import References

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
DstcOutput = Annotated[
    Literal["lists", "turns", "dialogues"],
    typer.Option(
        "--table",
        help="lists: N-best acts of each turn, for nbest. turns: how the live understanding took each, by types of "
        "acts. dialogues: success, turns, conditions, questionnaire from 1 to 6, caller as group. Both for outcome.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document about the import on standard output; needs -o for the rows.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes or progress.")]
Seed = Annotated[int, typer.Option("--seed", help="Taken as by every command; nothing here is random.")]


@importer.callback()
def about() -> None:
    """Turn corpora in other formats into tables that the other commands read."""


@importer.command("dstc3", epilog="Example: `demur import dstc3 FOLDER --ontology ontology_dstc3.json -o test.jsonl`")
@importer.command("dstc2", epilog="Example: `demur import dstc2 FOLDER -o train.jsonl.gz`")
def dstc(
    source: Source,
    output: Output = None,
    table: DstcOutput = "lists",
    ontology: Ontology = None,
    labels: Labels = None,
    asr: Asr = "live",
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Dialogues of the Dialog State Tracking Challenge (2 or 3), as tables for `demur nbest` and `demur outcome`."""
    _import_dstc(source, output, table, ontology=ontology, labels=labels, asr=asr, json=json, quiet=quiet)


@importer.command(epilog="Example: `demur import slf lattices/ --references meant.csv -o cnets.jsonl`")
def slf(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Word lattices in HTK's Standard Lattice Format, .lat or .slf, also .gz and .zst; globs; folders of "
            "them, at any depth. An utterance is named after its file.",
            metavar="FILES",
        ),
    ],
    output: Output = None,
    references: Annotated[
        Path | None,
        typer.Option(
            "--references",
            help="Table with a row per utterance: id, reference, and any further columns, such as dialogue.",
            metavar="FILE",
        ),
    ] = None,
    prune: Annotated[
        float,
        typer.Option("--prune", min=0, max=1, help="Leave out words less probable than this, unless on the best path."),
    ] = 1e-4,
    acscale: Annotated[
        float | None, typer.Option("--acscale", help="Scale of acoustic scores; else the lattice's own, or 1.")
    ] = None,
    lmscale: Annotated[
        float | None, typer.Option("--lmscale", help="Scale of language model scores; else the lattice's own, or 1.")
    ] = None,
    wdpenalty: Annotated[
        float | None, typer.Option("--wdpenalty", help="Added to every word's score; else the lattice's own, or 0.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Word lattices as confusion networks, a row for each utterance, for `demur nbest --scorer`."""
    from demur.apps.cli.output import steps
    from demur.nbest_lists.asr.slf import References, lattice_files

    _check(output, json=json)
    scales = _finite({"acscale": acscale, "lmscale": lmscale, "wdpenalty": wdpenalty})
    try:
        with steps(quiet=quiet or json) as step:
            files = lattice_files(sources)
            meant = None if references is None else References.read(references)
            if meant is not None:
                meant.check(files)
            count = _deliver(_lattice_rows(files, meant, scales, prune, step), output)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; no output was left half-written") from None
    _report_lattices(count, prune, meant, output, json=json, quiet=quiet)


def _finite(scales: Mapping[str, float | None]) -> dict[str, float]:
    from demur.errors import UsageError

    given = {name: value for name, value in scales.items() if value is not None}
    for name, value in given.items():
        if not math.isfinite(value):
            raise UsageError(f"--{name} takes a number; got {value}")
    return given


def _lattice_rows(
    files: Mapping[str, Path], meant: References | None, scales: Mapping[str, float], prune: float, step: Step
) -> Iterator[dict[str, Any]]:
    from demur.nbest_lists.asr.lattices import network
    from demur.nbest_lists.asr.slf import network_cell, read_lattice

    for done, (name, path) in enumerate(files.items()):
        step("reading lattices", done, len(files))
        told = {} if meant is None else meant.rows[name]
        yield {"id": name, **told, "cnet": network_cell(network(read_lattice(path, **scales), prune=prune))}


def _report_lattices(
    count: int, prune: float, meant: References | None, output: Path | None, *, json: bool, quiet: bool
) -> None:
    told = f"{count:,} confusion network{'s' * (count != 1)}"
    notes = [f"confusion networks hold the words with a probability of {prune:g} and more, and those of the best path"]
    notes += () if meant is None else meant.notes
    if meant is None:
        notes.append("there are no references; `demur nbest` needs them (--references FILE)")
    _tell(told, {"rows": count}, notes, output, json=json, quiet=quiet)


def _import_dstc(
    source: Path,
    output: Path | None,
    table: Literal["lists", "turns", "dialogues"],
    *,
    ontology: Path | None,
    labels: Path | None,
    asr: Literal["live", "batch"],
    json: bool,
    quiet: bool,
) -> None:
    from demur.apps.cli.output import steps
    from demur.importers.dstc import read_dstc
    from demur.importers.dstc_tables import read_dstc_table

    _check(output, json=json)
    _check_table(table, ontology, asr)
    rows: DstcRows | DstcTable
    try:
        with steps(quiet=quiet) as step:
            if table == "lists":
                rows = read_dstc(source, labels=labels, ontology=ontology, asr=asr, step=step)
            else:
                rows = read_dstc_table(source, table, labels=labels, step=step)
            count = _deliver(rows, output)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; no output was left half-written") from None
    told = (
        f"{rows.dialogues:,} dialogues" if table == "dialogues" else f"{count:,} turns of {rows.dialogues:,} dialogues"
    )
    _tell(told, {"rows": count, "dialogues": rows.dialogues}, rows.notes, output, json=json, quiet=quiet)


def _check_table(table: str, ontology: Path | None, asr: str) -> None:
    from demur.errors import UsageError

    if table == "lists":
        return
    if ontology is not None:
        raise UsageError(f"--ontology goes with --table lists: of {table} no items are counted")
    if asr != "live":
        raise UsageError(f"--asr goes with --table lists: {table} hold no sentences")


def _check(output: Path | None, *, json: bool) -> None:
    from demur.core.io.writing import check_rows_file
    from demur.errors import UsageError

    if output is not None:
        check_rows_file(output)
    elif json:
        raise UsageError("--json: the rows need a file of their own; name it with -o")


def _deliver(rows: Iterable[Any], output: Path | None) -> int:
    from demur.core.io.writing import as_lines, write_rows

    if output is not None:
        return write_rows(output, rows)
    count = 0
    for line in as_lines(rows):
        sys.stdout.buffer.write(line)
        count += 1
    sys.stdout.buffer.flush()
    return count


def _tell(
    told: str, counts: Mapping[str, int], notes: Iterable[str], output: Path | None, *, json: bool, quiet: bool
) -> None:
    from demur.apps.cli.output import as_json

    if json:
        typer.echo(as_json({**counts, "out": str(output), "notes": list(notes)}))
    elif not quiet:
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        typer.echo(told if output is None else f"wrote {output}: {told}", err=True)
