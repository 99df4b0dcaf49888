"""Formats of others: one module each, and one line in the registry, which every reader follows.

>>> importer_of("there/is/no/such/folder") is None
True
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from demur.core.jobs import load

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
