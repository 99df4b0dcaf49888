"""Formats of others: one module each, one line in the registry, which every reader follows, and the jobs of import.

>>> importer_of("there/is/no/such/folder") is None
True
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Job, Option, job, load
from demur.core.options import NoSeed
from demur.core.show.results import Step, silent
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.importers.dstc import DstcTable

REGISTRY = ("demur.importers.dstc:IMPORTER",)
"""Where the importers are, each as "module:name"."""


@dataclass(frozen=True)
class Importer:
    """A format whose files and folders are read as tables of N-best lists wherever a table is.

    `holds` tells by content whether a path is of this format, `read` gives its rows, with their notes, and `columns`
    are the names that rows may have.
    """

    holds: Callable[[Path], bool]
    read: Callable[..., Any]
    columns: tuple[str, ...]


def importer_of(path: str | Path) -> Importer | None:
    """The importer of the format that a folder or file has; None for tables."""
    return next((one for one in _importers() if one.holds(Path(path))), None)


@cache
def _importers() -> tuple[Importer, ...]:
    return tuple(load(place) for place in REGISTRY)


@job
def import_dstc(
    source: Annotated[
        str | Path,
        Argument(
            "Folder with a log.json and a label.json for each dialogue, at any depth, .gz too; a .flist of sessions; "
            "or a .jsonl with a dialogue a line.",
            metavar="FOLDER",
        ),
    ],
    *,
    table: Annotated[
        Literal["lists", "turns", "dialogues"],
        Option(
            "lists: N-best acts of each turn, for nbest. turns: how the live understanding took each, by types of "
            "acts. dialogues: success, turns, conditions, questionnaire from 1 to 6, caller as group. Both for outcome."
        ),
    ] = "lists",
    ontology: Annotated[
        Path | None,
        Option(
            "The challenge's ontology; by default ontology*.json in the folder or up to two above it.", metavar="FILE"
        ),
    ] = None,
    labels: Annotated[
        Path | None, Option("Folder of the label files, where they are not beside the logs.", metavar="FOLDER")
    ] = None,
    asr: Annotated[
        Literal["live", "batch"], Option("Whose sentences to keep: the live recogniser's, or the later batch's.")
    ] = "live",
    seed: NoSeed = 0,  # noqa: ARG001
    step: Step = silent,
) -> "DstcTable":
    """Dialogues of the Dialog State Tracking Challenge (2 or 3), as tables for `demur nbest` and `demur outcome`.

    The rows are read while they are iterated over; their `notes` are complete after the last.
    """
    from demur.importers.dstc import read_dstc, read_dstc_table

    if table == "lists":
        return read_dstc(Path(source), labels=labels, ontology=ontology, asr=asr, step=step)
    if ontology is not None:
        raise UsageError(f"`ontology` goes with `table` lists: of {table} no items are counted")
    if asr != "live":
        raise UsageError(f"`asr` goes with `table` lists: {table} hold no sentences")
    return read_dstc_table(Path(source), table, labels=labels, step=step)


JOBS = (
    Job("import dstc2", import_dstc, present="", example="demur import dstc2 FOLDER -o train.jsonl.gz"),
    Job(
        "import dstc3",
        import_dstc,
        present="",
        example="demur import dstc3 FOLDER --ontology ontology_dstc3.json -o test.jsonl",
    ),
)
