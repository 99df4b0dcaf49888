"""Files of word lattices get the names of their utterances, and what a table says was meant in each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from demur.data.columns import NBEST_ALIASES, resolve
from demur.data.files import read_source
from demur.data.recognition import Network
from demur.data.sources import expand, opened, stem_of
from demur.data.tables import ROW, Request
from demur.errors import DataError

Row = dict[str, Any]

LATTICES = (".lat", ".slf")
"""How the names of lattice files end, before .gz or .zst."""

_COMPRESSED = (".gz", ".zst")
_HEARD = ("cnet", "asr")
_SHOWN = 5


def lattice_files(sources: Iterable[str | Path]) -> dict[str, Path]:
    """The lattice files that paths, globs and folders stand for, each by its name without endings, which is its id."""
    found: dict[str, Path] = {}
    for path in (path for source in sources for path in _files(Path(source))):
        known = found.setdefault(stem_of(path), path)
        if known != path:
            told = f'the id "{stem_of(path)}" belongs to {known} already'
            raise DataError(told, where=f"{path}:", fix="an utterance is named after its file: rename one of the two")
    return found


@dataclass(frozen=True, slots=True)
class References:
    """What a table says of utterances, by their id."""

    name: str
    rows: Mapping[str, Row]
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> References:
        """The rows of a table that has a reference for each id, and no recogniser's output, which is the lattices'."""
        with opened(path) as (source, *others):
            if others:
                raise DataError("stands for several files", where=f"{path}", fix="name one table of references")
            table = read_source(source, Request())
        named = resolve(table.columns, {}, where=f"{path}:", aliases=NBEST_ALIASES)
        _check(table.columns, named.columns, path)
        rows: dict[str, Row] = {}
        for row in table.frame.iter_rows(named=True):
            place, key = row.pop(ROW), row.pop(named.columns["id"])
            if key is None or str(key) in rows:
                told = "there is no id" if key is None else f'the id "{key}" is there already'
                raise DataError(told, where=f"{table.place(place)}:", fix="give each utterance one row with its id")
            row[named.columns["reference"]] = _listed_items(row[named.columns["reference"]])
            rows[str(key)] = {column: value for column, value in row.items() if value is not None}
        return cls(str(path), rows, named.notes)

    def check(self, utterances: Collection[str]) -> None:
        """Refuse utterances without a reference, and references without an utterance."""
        lacking = [name for name in utterances if name not in self.rows]
        if lacking:
            fix = "an utterance is named after its lattice's file, without the ending"
            raise DataError(f"{_listed(lacking, 'lattice')} without a reference", where=f"{self.name}:", fix=fix)
        left = [name for name in self.rows if name not in utterances]
        if left:
            fix = "leave the rows out, or name the lattices too"
            raise DataError(f"{_listed(left, 'reference')} without a lattice", where=f"{self.name}:", fix=fix)


def network_cell(network: Network) -> list[list[dict[str, Any]]]:
    """A confusion network as the column `cnet` holds it.

    >>> network_cell(Network(((("thai", 0.75), ("", 0.25)),)))
    [[{'word': 'thai', 'confidence': 0.75}, {'word': '', 'confidence': 0.25}]]
    """
    return [[{"word": word, "confidence": sure} for word, sure in slot] for slot in network.slots]


def _files(source: Path) -> Sequence[Path]:
    if not source.is_dir():
        return expand(source)
    found = sorted(path for path in source.rglob("*") if path.is_file() and _is_lattice(path))
    if not found:
        endings = " ".join(LATTICES)
        raise DataError("holds no lattices", where=str(source), fix=f"their names end in {endings}, .gz or .zst after")
    return found


def _is_lattice(path: Path) -> bool:
    name = path.with_suffix("") if path.suffix in _COMPRESSED else path
    return name.suffix.lower() in LATTICES


def _check(columns: Sequence[str], named: Mapping[str, str], path: Path) -> None:
    for part in ("id", "reference"):
        if part not in named:
            listed = ", ".join(f'"{column}"' for column in columns[:12])
            raise DataError(f"there is no column {part}; there are {listed}", where=f"{path}:", fix="rename one")
    for part in _HEARD:
        if part in named:
            told = f'there must be no column "{named[part]}" beside the lattices'
            raise DataError(told, where=f"{path}:", fix="leave it out: what was heard comes from the lattices")


def _listed_items(reference: Any) -> Any:
    """A reference that a cell of text spells as a list of items; acts as they are.

    >>> _listed_items('["food=thai", "inform"]'), _listed_items("inform(food=thai)")
    (['food=thai', 'inform'], 'inform(food=thai)')
    """
    if not isinstance(reference, str) or not reference.lstrip().startswith("["):
        return reference
    try:
        return msgspec.json.decode(reference)
    except msgspec.DecodeError:
        return reference


def _listed(names: Sequence[str], what: str) -> str:
    """How many there are, and the first of their names.

    >>> _listed(["u1", "u2"], "lattice")
    'there are 2 lattices ("u1", "u2")'
    """
    shown = ", ".join(f'"{name}"' for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    count = f"is a {what}" if len(names) == 1 else f"are {len(names):,} {what}s"
    return f"there {count} ({shown}{more})"
