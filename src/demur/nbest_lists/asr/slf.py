"""Reads word lattices in the Standard Lattice Format of HTK."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from demur.core.io.columns import NBEST_ALIASES, resolve
from demur.core.io.files import read_source
from demur.core.io.sources import compression_of, expand, lines, opened, stem_of
from demur.core.io.tables import ROW, Request
from demur.core.show.results import Step, silent
from demur.errors import DataError
from demur.nbest_lists.asr.lattices import Arc, Lattice, network
from demur.nbest_lists.asr.networks import Network, spoken_word

_SHORT = {
    "VERSION": "V",
    "UTTERANCE": "U",
    "SUBLAT": "S",
    "NODES": "N",
    "LINKS": "L",
    "WORD": "W",
    "time": "t",
    "START": "S",
    "END": "E",
    "acoustic": "a",
    "language": "l",
    "ngram": "n",
}
"""Long names of fields; in the header `start` and `end` are nodes."""

_field = re.compile(r"""([A-Za-z_]+)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)""")
_escape = re.compile(r"((?:\\[0-3][0-7]{2})+)|\\(.)")
_NONE = {"!NULL", "!SENT_START", "!SENT_END", "!ENTER", "!EXIT"}
"""Words by which HTK says that there is none."""


@dataclass(slots=True)
class _Read:
    """What has been read of a file."""

    name: str
    header: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, Mapping[str, str]] = field(default_factory=dict)
    links: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    """Each with the number of its line."""
    arcs: set[str] = field(default_factory=set)


def read_lattice(
    path: str | Path, *, acscale: float | None = None, lmscale: float | None = None, wdpenalty: float | None = None
) -> Lattice:
    """Read a lattice from a `.lat` or `.slf` file, compressed or not.

    An arc's log score is acscale * a + lmscale * l + prscale * r + wdpenalty, with `n` for `l` where there is no `l`,
    and without the penalty where no word is said. Scores and penalty are logarithms to the file's `base` (natural
    where it names none; plain probabilities under `base=0`). Scales are those of the header unless given here. A word
    may stand on the arc or on the node that it leads to. First and last node are those that the header names, or the
    only ones without an arc that leads in, or out. Unless every node has a time the lattice has none.
    """
    given = {"acscale": acscale, "lmscale": lmscale, "wdpenalty": wdpenalty}
    read = _read(Path(path))
    read.header.update({name: repr(float(value)) for name, value in given.items() if value is not None})
    arcs = tuple(_arcs(read))
    if not arcs:
        raise DataError("must have arcs", where=read.name, fix="lines that begin with J=")
    starts, ends = {arc.start for arc in arcs}, {arc.end for arc in arcs}
    first, last = _terminal(read, "start", starts - ends), _terminal(read, "end", ends - starts)
    lattice = Lattice(arcs, first, last, _times(read), read.name)
    alone = sorted(read.nodes.keys() - starts - ends)
    if alone:
        told = ", ".join(map(str, alone[:5]))
        raise DataError("must have an arc to every node", where=read.name, got=f"none to node {told}")
    return lattice


def _read(path: Path) -> _Read:
    read = _Read(str(path))
    try:
        with path.open("rb") as file:
            compression = compression_of(file.read(4))
        for number, line in enumerate(lines(path, compression, read.name), start=1):
            _take(read, number, line.decode("utf-8", errors="replace").strip())
    except FileNotFoundError:
        raise DataError("does not exist", where=read.name, fix="name a lattice file") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=read.name) from None
    for key, what, found in (("N", "nodes", len(read.nodes)), ("L", "arcs", len(read.links))):
        if key in read.header and _whole(read.header, key, read.name) != found:
            fix = "is the file cut off?"
            raise DataError(f"must have {key}={read.header[key]} {what}", where=read.name, got=found, fix=fix)
    return read


def _take(read: _Read, number: int, line: str) -> None:
    if not line or line.startswith("#") or line == ".":
        return
    fields = _fields(line, f"{read.name}:{number}")
    kind = next(iter(fields))
    if kind == "I":
        node = _whole(fields, "I", f"{read.name}:{number}")
        if node in read.nodes:
            raise DataError("must not be there twice", where=f"{read.name}:{number}: node", got=node)
        if "L" in fields:
            raise DataError("must not be a sub-lattice", where=f"{read.name}:{number}: node {node}", fix="expand it")
        read.nodes[node] = fields
    elif kind == "J":
        arc = _whole(fields, "J", f"{read.name}:{number}")
        if fields["J"] in read.arcs:
            raise DataError("must not be there twice", where=f"{read.name}:{number}: arc", got=arc)
        read.arcs.add(fields["J"])
        read.links.append((number, fields))
    else:
        read.header.update(fields)


def _fields(line: str, where: str) -> dict[str, str]:
    fields = {_SHORT.get(name, name): _unescaped(value) for name, value in _field.findall(line)}
    if not fields or _field.sub("", line).strip():
        raise DataError("must be fields name=value", where=where, got=line[:60], fix="is it an HTK lattice?")
    return fields


def _unescaped(value: str) -> str:
    """A value without its quotes; a backslash keeps a sign, or names a byte by three octal digits.

    >>> _unescaped(r'"a b"'), _unescaped(r"\\'em"), _unescaped(r"caf\\303\\251"), _unescaped(r"caf\\351")
    ('a b', "'em", 'café', 'café')
    """
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return _escape.sub(lambda found: _bytes_named(found[1]) if found[1] else found[2], value)


def _bytes_named(octal: str) -> str:
    named = bytes(int(digits, 8) for digits in octal.split("\\")[1:])
    try:
        return named.decode("utf-8")
    except UnicodeDecodeError:
        return named.decode("latin-1")


def _arcs(read: _Read) -> Iterator[Arc]:
    scales = {name: _number(read.header, name, read.name, 1.0) for name in ("acscale", "lmscale", "prscale")}
    penalty = _number(read.header, "wdpenalty", read.name, 0.0)
    base = _number(read.header, "base", read.name, math.e)
    if base < 0 or base == 1:
        raise DataError("must be 0 or a base of logarithms", where=f"{read.name}: base", got=base)
    unit = math.log(base) if base else 1.0
    for number, link in read.links:
        where = f"{read.name}:{number}"
        start, end = (_node(read, link, key, where) for key in "SE")
        word = _word(link.get("W", read.nodes[end].get("W", "")))
        language = "l" if "l" in link else "n"
        parts = (("a", scales["acscale"]), (language, scales["lmscale"]), ("r", scales["prscale"]))
        score = sum(scale * _score(link, key, where, base) for key, scale in parts if key in link)
        yield Arc(start, end, word, (score + (penalty if word else 0.0)) * unit)


def _word(word: str) -> str:
    return "" if word in _NONE else spoken_word(word)


def _node(read: _Read, link: Mapping[str, str], key: str, where: str) -> int:
    node = _whole(link, key, where)
    if node not in read.nodes:
        raise DataError("must be a node of the lattice", where=f"{where}: {key}", got=node, fix=f"add a line I={node}")
    return node


def _score(link: Mapping[str, str], key: str, where: str, base: float) -> float:
    score = _number(link, key, where, 0.0)
    if base:
        return score
    if score < 0:
        raise DataError("must be a probability where base=0", where=f"{where}: {key}", got=score)
    return math.log(score) if score else -math.inf


def _times(read: _Read) -> dict[int, float] | None:
    if not all("t" in fields for fields in read.nodes.values()):
        return None
    return {node: _number(fields, "t", f"{read.name}: node {node}", 0.0) for node, fields in read.nodes.items()}


def _terminal(read: _Read, which: str, candidates: set[int]) -> int:
    """The first or last node: as the header has it, or the only one that no arc leads into, or out of."""
    if which in read.header:
        return _node(read, read.header, which, read.name)
    if len(candidates) > 1:
        rule = f"must have one node that no arc leads {'into' if which == 'start' else 'out of'}"
        told = ", ".join(map(str, sorted(candidates)[:5]))
        raise DataError(rule, where=read.name, got=f"nodes {told}", fix=f"name it in the header: {which}=...")
    # Without a candidate there is a cycle, which the lattice itself refuses.
    return candidates.pop() if candidates else min(read.nodes)


def _whole(fields: Mapping[str, str], key: str, where: str) -> int:
    if key not in fields:
        raise DataError(f"must have a field {key}=", where=where)
    if not fields[key].isdecimal():
        raise DataError("must be a whole number", where=f"{where}: {key}", got=fields[key])
    return int(fields[key])


def _number(fields: Mapping[str, str], key: str, where: str, default: float) -> float:
    if key not in fields:
        return default
    try:
        number = float(fields[key])
    except ValueError:
        number = math.nan
    if math.isnan(number) or number == math.inf:
        raise DataError("must be a number", where=f"{where}: {key}", got=fields[key])
    return number


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
            raise DataError(f"{_count_names(lacking, 'lattice')} without a reference", where=f"{self.name}:", fix=fix)
        left = [name for name in self.rows if name not in utterances]
        if left:
            fix = "leave the rows out, or name the lattices too"
            raise DataError(f"{_count_names(left, 'reference')} without a lattice", where=f"{self.name}:", fix=fix)


@dataclass(frozen=True, slots=True)
class LatticeRows:
    """Rows with the confusion network of each lattice, which is read while they are gone through."""

    files: Mapping[str, Path]
    references: References | None
    scales: Mapping[str, float]
    prune: float
    step: Step = silent

    def __iter__(self) -> Iterator[Row]:
        for done, (name, path) in enumerate(self.files.items()):
            self.step("reading lattices", done, len(self.files))
            about = {} if self.references is None else self.references.rows[name]
            lattice = read_lattice(path, **self.scales)
            yield {"id": name, **about, "cnet": network_cell(network(lattice, prune=self.prune))}

    @property
    def counts(self) -> dict[str, int]:
        """Nothing is counted besides rows."""
        return {}

    def summary(self, rows: int) -> str:
        """How much was read, in words."""
        return f"{rows:,} confusion network{'s' * (rows != 1)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know about how they came about."""
        least = f"a probability of {self.prune:g} and more"
        kept = f"confusion networks hold the words with {least}, and those of the best path"
        if self.references is None:
            return (kept, "there are no references; `demur nbest` needs them (the option references names a table)")
        return (kept, *self.references.notes)


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


def _count_names(names: Sequence[str], what: str) -> str:
    """How many there are, and the first of their names.

    >>> _count_names(["u1", "u2"], "lattice")
    'there are 2 lattices ("u1", "u2")'
    """
    shown = ", ".join(f'"{name}"' for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    count = f"is a {what}" if len(names) == 1 else f"are {len(names):,} {what}s"
    return f"there {count} ({shown}{more})"
