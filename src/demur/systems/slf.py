"""Word lattices read from files in the Standard Lattice Format of HTK."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demur.data.lines import compression_of, lines
from demur.data.recognition import spoken_word
from demur.errors import DataError
from demur.systems.lattice import Arc, Lattice

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
    _refuse_other_counts(read)
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


def _refuse_other_counts(read: _Read) -> None:
    for key, what, found in (("N", "nodes", len(read.nodes)), ("L", "arcs", len(read.links))):
        if key in read.header and _whole(read.header, key, read.name) != found:
            fix = "is the file cut off?"
            raise DataError(f"must have {key}={read.header[key]} {what}", where=read.name, got=found, fix=fix)


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
