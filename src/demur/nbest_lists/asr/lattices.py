"""Word lattices: arc posteriors, best paths, clustering into confusion networks, and HTK's Standard Lattice Format."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from demur.core.io.columns import NBEST_ALIASES, resolve
from demur.core.io.files import read_source
from demur.core.io.sources import compression_at, expand, lines, opened, stem_of
from demur.core.io.tables import ROW, Request
from demur.core.show.numbers import first_names
from demur.core.show.results import Step, silent
from demur.errors import DataError
from demur.nbest_lists.asr.networks import Network, spoken_word


class Arc(NamedTuple):
    """A word from one node to another, with its log score; "" is no word."""

    start: int
    end: int
    word: str
    score: float


@dataclass(frozen=True, slots=True)
class Lattice:
    """Nodes in time and the words between them, from one first node to one last, without cycles."""

    arcs: tuple[Arc, ...]
    start: int
    end: int
    times: Mapping[int, float] | None = None
    """Seconds from the start by node; None where the nodes have none."""
    where: str = "lattice"
    """What faults call it."""
    order: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The nodes, each before those that its arcs lead to."""

    def __post_init__(self) -> None:
        if not self.arcs:
            raise DataError("must have arcs", where=self.where)
        object.__setattr__(self, "order", _order(self.arcs, self.where))
        if _path_sums(self).get(self.end, -math.inf) == -math.inf:
            fix = "name start and end in the header, or mend the arcs"
            raise DataError(f"must lead from node {self.start} to node {self.end}", where=self.where, fix=fix)


def posteriors(lattice: Lattice) -> list[float]:
    """For each arc the share of the probability of all paths that takes it, by the forward-backward algorithm.

    >>> two = Lattice((Arc(0, 1, "thai", math.log(0.6)), Arc(0, 1, "tie", math.log(0.2))), 0, 1)
    >>> [round(p, 3) for p in posteriors(two)]
    [0.75, 0.25]
    """
    forward, backward = _path_sums(lattice), _path_sums(lattice, backward=True)
    whole = forward[lattice.end]
    return [
        math.exp(min(forward.get(arc.start, -math.inf) + arc.score + backward.get(arc.end, -math.inf) - whole, 0.0))
        for arc in lattice.arcs
    ]


def best_path(lattice: Lattice) -> list[int]:
    """The numbers of the arcs on the most probable path, first to last."""
    leaving = arcs_by(lattice.arcs, "start")
    score_of, came_by = {lattice.start: 0.0}, dict[int, int]()
    for node in lattice.order:
        for number in leaving.get(node, ()) if node in score_of else ():
            arc = lattice.arcs[number]
            score = score_of[node] + arc.score
            if score > score_of.get(arc.end, -math.inf):
                score_of[arc.end], came_by[arc.end] = score, number
    path: list[int] = []
    node = lattice.end
    while node != lattice.start:
        path.append(came_by[node])
        node = lattice.arcs[path[-1]].start
    return path[::-1]


def times(lattice: Lattice) -> Mapping[int, float]:
    """The time of each node; where there are none, how many arcs it is from the start at most."""
    if lattice.times is not None:
        return lattice.times
    depth: dict[int, float] = {}
    for node, steps in _steps(lattice, backward=False):
        depth[node] = max((depth[other] + 1 for other, _ in steps), default=0.0)
    return depth


def arcs_by(arcs: Iterable[Arc], side: str) -> dict[int, list[int]]:
    """The numbers of the arcs by the node they start from, or end at."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for number, arc in enumerate(arcs):
        numbers[arc.start if side == "start" else arc.end].append(number)
    return dict(numbers)


def _steps(lattice: Lattice, backward: bool) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Each node after those that lead to it, with these and the scores of their arcs; backward, those it leads to."""
    arcs = arcs_by(lattice.arcs, "start" if backward else "end")
    for node in reversed(lattice.order) if backward else lattice.order:
        some = [lattice.arcs[number] for number in arcs.get(node, ())]
        yield node, [(arc.end if backward else arc.start, arc.score) for arc in some]


def _path_sums(lattice: Lattice, *, backward: bool = False) -> dict[int, float]:
    """Log of the summed probability of all paths from the start to each node; backward, from each node to the end."""
    origin = lattice.end if backward else lattice.start
    sums = {origin: 0.0}
    for node, steps in _steps(lattice, backward):
        logs = [sums[other] + score for other, score in steps if other in sums]
        if logs and node != origin:
            top = max(logs)
            inside = top > -math.inf
            sums[node] = top + math.log(math.fsum(math.exp(one - top) for one in logs)) if inside else top
    return sums


def _order(arcs: Sequence[Arc], where: str) -> tuple[int, ...]:
    following: dict[int, list[int]] = defaultdict(list)
    waiting_for: dict[int, int] = {}
    for arc in arcs:
        following[arc.start].append(arc.end)
        waiting_for.setdefault(arc.start, 0)
        waiting_for[arc.end] = waiting_for.get(arc.end, 0) + 1
    ready = [node for node, count in waiting_for.items() if not count]
    order: list[int] = []
    while ready:
        order.append(ready.pop())
        for node in following[order[-1]]:
            waiting_for[node] -= 1
            if not waiting_for[node]:
                ready.append(node)
    if len(order) < len(waiting_for):
        cycle = " -> ".join(map(str, _cycle(following, {node for node, count in waiting_for.items() if count})))
        raise DataError("must not have a cycle", where=where, got=f"nodes {cycle}", fix="time runs forward only")
    return tuple(order)


def _cycle(following: Mapping[int, Sequence[int]], stuck: set[int]) -> list[int]:
    """A cycle among nodes that wait for one another: going back from any of them leads into one."""
    before = {node: source for source in sorted(stuck) for node in following[source] if node in stuck}
    node, passed = min(stuck), []
    while node not in passed:
        passed.append(node)
        node = before[node]
    return [node, *reversed(passed[passed.index(node) :])]


PRUNE = 1e-4
"""Arcs less probable than this are left out of a network, unless they are on the best path."""

_ROUNDING = 1e-12
"""What is left to 1 in a slot and is no more than this is no probability but an error of rounding."""


def network(lattice: Lattice, *, prune: float = PRUNE) -> Network:
    """The confusion network of a lattice, after Mangu, Brill and Stolcke (2000).

    Arcs that overlap in time, and of which no path takes one after the other, come together in one slot: first arcs of
    the same word, then those of different ones, and always the two groups next whose overlap, as a share of their
    lengths, times their probabilities is the largest. (How alike two words sound plays no part.) Slots follow one
    another as the arcs do on every path; where no path tells, by time. In a slot equal words add up, and what is left
    to 1 is the empty word. Where the nodes have no times, how many arcs they are from the start at most stands in.

    >>> (slot,) = network(Lattice((Arc(0, 1, "thai", math.log(0.75)), Arc(0, 1, "", math.log(0.25))), 0, 1)).slots
    >>> [(word, round(probability, 9)) for word, probability in slot]
    [('thai', 0.75), ('', 0.25)]
    """
    probable = posteriors(lattice)
    kept = set(best_path(lattice)) | {number for number, p in enumerate(probable) if p >= prune and p > 0}
    clusters = _Clusters(lattice, [number for number in sorted(kept) if lattice.arcs[number].word], probable)
    clusters.merge(same_word=True)
    clusters.merge(same_word=False)
    return Network(tuple(_slot(cluster) for cluster in clusters.in_order()))


@dataclass(slots=True)
class _Cluster:
    """Arcs of which every path takes one at most: their words, and when they are said on average."""

    words: dict[str, float]
    mass: float
    start: float
    end: float
    grown: int = 0

    def joined(self, other: _Cluster) -> _Cluster:
        mass = self.mass + other.mass
        words = dict(self.words)
        for word, probability in other.words.items():
            words[word] = words.get(word, 0.0) + probability
        start = (self.mass * self.start + other.mass * other.start) / mass
        end = (self.mass * self.end + other.mass * other.end) / mass
        return _Cluster(words, mass, start, end, self.grown + 1)

    def likeness(self, other: _Cluster) -> float:
        """Overlap as a share of both lengths, weighted by both probabilities; only of clusters that do overlap."""
        overlap = min(self.end, other.end) - max(self.start, other.start)
        return overlap / (self.end - self.start + other.end - other.start) * self.mass * other.mass


_Pair: TypeAlias = tuple[float, int, int, int]
"""Minus the likeness of two clusters, the two, and how often they had been joined with others by then."""


class _Clusters:
    """Clusters with their order: which must come after, and before, each, as bits of a number."""

    def __init__(self, lattice: Lattice, numbers: Sequence[int], probable: Sequence[float]) -> None:
        at = times(lattice)
        arcs = [lattice.arcs[number] for number in numbers]
        self.clusters: dict[int, _Cluster] = {
            key: _Cluster({arc.word: probable[number]}, probable[number], at[arc.start], at[arc.end])
            for key, (number, arc) in enumerate(zip(numbers, arcs, strict=True))
        }
        starting, ending = defaultdict[int, int](int), defaultdict[int, int](int)
        for key, arc in enumerate(arcs):
            starting[arc.start] |= 1 << key
            ending[arc.end] |= 1 << key
        ahead, behind = (_masks(lattice, own, back) for own, back in ((starting, True), (ending, False)))
        self.after = {key: ahead[arc.end] for key, arc in enumerate(arcs)}
        self.before = {key: behind[arc.start] for key, arc in enumerate(arcs)}

    def merge(self, *, same_word: bool) -> None:
        """Join clusters that compete, the most alike first, until there are none."""
        keys = list(self.clusters)
        waiting = [
            pair for place, key in enumerate(keys) for pair in self._competitors(key, keys[place + 1 :], same_word)
        ]
        heapify(waiting)
        while waiting:
            _, first, second, grown = heappop(waiting)
            if not {first, second} <= self.clusters.keys():
                continue
            up_to_date = self.clusters[first].grown + self.clusters[second].grown == grown
            if up_to_date and not (self.after[first] | self.before[first]) >> second & 1:
                self._join(first, second)
                for newer in self._competitors(first, self.clusters, same_word):
                    heappush(waiting, newer)

    def in_order(self) -> Iterator[_Cluster]:
        """The clusters, each after those that must come before it, else by time."""
        ready = [(one.start, one.end, key) for key, one in self.clusters.items() if not self.before[key]]
        heapify(ready)
        passed = 0
        while ready:
            key = heappop(ready)[2]
            passed |= 1 << key
            yield self.clusters[key]
            for later in _bits(self.after[key]):
                one = self.clusters[later]
                if not self.before[later] & ~passed:
                    heappush(ready, (one.start, one.end, later))

    def _competitors(self, key: int, rivals: Iterable[int], same_word: bool) -> Iterator[_Pair]:
        one, clusters = self.clusters[key], self.clusters
        start, end, ordered = one.start, one.end, self.after[key] | self.before[key] | 1 << key
        for rival in rivals:
            other = clusters[rival]
            if (
                other.start < end
                and start < other.end
                and not ordered >> rival & 1
                and (not same_word or one.words.keys() == other.words.keys())
            ):
                yield -one.likeness(other), min(key, rival), max(key, rival), one.grown + other.grown

    def _join(self, kept: int, gone: int) -> None:
        self.clusters[kept] = self.clusters[kept].joined(self.clusters.pop(gone))
        bit, lost = 1 << kept, ~(1 << gone)
        self.after[kept] |= self.after.pop(gone)
        self.before[kept] |= self.before.pop(gone)
        after, before = self.after[kept], self.before[kept]
        for key in _bits(before):
            self.after[key] = (self.after[key] | after | bit) & lost
        for key in _bits(after):
            self.before[key] = (self.before[key] | before | bit) & lost


def _masks(lattice: Lattice, own: Mapping[int, int], backward: bool) -> dict[int, int]:
    """By node, the clusters of this node and of all that lead to it; backward, of all that it leads to."""
    masks: dict[int, int] = {}
    for node, steps in _steps(lattice, backward):
        masks[node] = reduce(or_, (masks[other] for other, _ in steps), own.get(node, 0))
    return masks


def _bits(mask: int) -> Iterator[int]:
    """The places of the ones in a number; far quicker in its digits than by arithmetic with thousands of bits.

    >>> list(_bits(0b1101))
    [0, 2, 3]
    """
    digits = f"{mask:b}"[::-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)


def _slot(cluster: _Cluster) -> tuple[tuple[str, float], ...]:
    """The words of a cluster, the most probable first, and the empty word for what they leave to 1."""
    mass = math.fsum(cluster.words.values())
    rest = 1 - mass
    words = sorted(cluster.words.items(), key=lambda one: (-one[1], one[0]))
    if rest > _ROUNDING:
        return (*words, ("", rest))
    return tuple((word, probability / mass) for word, probability in words)


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

_field = re.compile(r"""(?<![A-Za-z_])([A-Za-z_]+)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)""")
_escape = re.compile(r"((?:\\[0-3][0-7]{2})+)|\\(.)")
_NONE = {"!NULL", "!SENT_START", "!SENT_END", "!ENTER", "!EXIT"}
"""Words by which HTK says that there is none."""


@dataclass(slots=True)
class _SlfFile:
    """What has been read of a file."""

    name: str
    header: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, Mapping[str, str]] = field(default_factory=dict)
    links: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """By name, each with the place of its line."""


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
    read = _read_slf(Path(path))
    read.header.update({name: repr(float(value)) for name, value in given.items() if value is not None})
    arcs = tuple(_arcs(read))
    if not arcs:
        raise DataError("must have arcs", where=read.name, fix="lines that begin with J=")
    starts, ends = {arc.start for arc in arcs}, {arc.end for arc in arcs}
    first, last = _terminal(read, "start", starts - ends), _terminal(read, "end", ends - starts)
    seconds = None
    if all("t" in fields for fields in read.nodes.values()):
        seconds = {node: _number(one, "t", f"{read.name}: node {node}", 0.0) for node, one in read.nodes.items()}
    lattice = Lattice(arcs, first, last, seconds, read.name)
    alone = sorted(read.nodes.keys() - starts - ends)
    if alone:
        numbers = ", ".join(map(str, alone[:5]))
        raise DataError("must have an arc to every node", where=read.name, got=f"none to node {numbers}")
    return lattice


def _read_slf(path: Path) -> _SlfFile:
    read = _SlfFile(str(path))
    try:
        for number, line in enumerate(lines(path, compression_at(path), read.name), start=1):
            text = line.decode("utf-8", errors="replace").strip()
            if text and not text.startswith("#") and text != ".":
                _read_line(read, text, f"{read.name}:{number}")
    except FileNotFoundError:
        raise DataError("does not exist", where=read.name, fix="name a lattice file") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=read.name) from None
    for key, what, found in (("N", "nodes", len(read.nodes)), ("L", "arcs", len(read.links))):
        if key in read.header and _whole(read.header, key, read.name) != found:
            fix = "is the file cut off?"
            raise DataError(f"must have {key}={read.header[key]} {what}", where=read.name, got=found, fix=fix)
    return read


def _read_line(read: _SlfFile, line: str, where: str) -> None:
    fields = {_SHORT.get(name, name): _unescaped(value) for name, value in _field.findall(line)}
    if not fields or _field.sub("", line).strip():
        raise DataError("must be fields name=value", where=where, got=line[:60], fix="is it an HTK lattice?")
    kind = next(iter(fields))
    if kind == "I":
        node = _whole(fields, "I", where)
        if node in read.nodes:
            raise DataError("must not be there twice", where=f"{where}: node", got=node)
        if "L" in fields:
            raise DataError("must not be a sub-lattice", where=f"{where}: node {node}", fix="expand it")
        read.nodes[node] = fields
    elif kind == "J":
        arc = _whole(fields, "J", where)
        if fields["J"] in read.links:
            raise DataError("must not be there twice", where=f"{where}: arc", got=arc)
        read.links[fields["J"]] = where, fields
    else:
        read.header.update(fields)


def _unescaped(value: str) -> str:
    """A value without its quotes; a backslash keeps a sign, or names a byte by three octal digits.

    >>> _unescaped(r'"a b"'), _unescaped(r"\\'em"), _unescaped(r"caf\\303\\251"), _unescaped(r"caf\\351")
    ('a b', "'em", 'café', 'café')
    """
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return _escape.sub(lambda found: _octal_text(found[1]) if found[1] else found[2], value)


def _octal_text(octal: str) -> str:
    octets = bytes(int(digits, 8) for digits in octal.split("\\")[1:])
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def _arcs(read: _SlfFile) -> Iterator[Arc]:
    scales = {name: _number(read.header, name, read.name, 1.0) for name in ("acscale", "lmscale", "prscale")}
    penalty = _number(read.header, "wdpenalty", read.name, 0.0)
    base = _number(read.header, "base", read.name, math.e)
    if base < 0 or base == 1:
        raise DataError("must be 0 or a base of logarithms", where=f"{read.name}: base", got=base)
    unit = math.log(base) if base else 1.0
    for where, link in read.links.values():
        start, end = (_node(read, link, key, where) for key in "SE")
        written = link.get("W", read.nodes[end].get("W", ""))
        word = "" if written in _NONE else spoken_word(written)
        language = "l" if "l" in link else "n"
        parts = (("a", scales["acscale"]), (language, scales["lmscale"]), ("r", scales["prscale"]))
        score = sum(scale * _score(link, key, where, base) for key, scale in parts if key in link)
        yield Arc(start, end, word, (score + (penalty if word else 0.0)) * unit)


def _node(read: _SlfFile, link: Mapping[str, str], key: str, where: str) -> int:
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


def _terminal(read: _SlfFile, which: str, candidates: set[int]) -> int:
    """The first or last node: as the header has it, or the only one that no arc leads into, or out of."""
    if which in read.header:
        return _node(read, read.header, which, read.name)
    if len(candidates) > 1:
        rule = f"must have one node that no arc leads {'into' if which == 'start' else 'out of'}"
        numbers = ", ".join(map(str, sorted(candidates)[:5]))
        raise DataError(rule, where=read.name, got=f"nodes {numbers}", fix=f"name it in the header: {which}=...")
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

_SHOWN = 5


def lattice_files(sources: Iterable[str | Path]) -> dict[str, Path]:
    """The lattice files that paths, globs and folders stand for, each by its name without endings, which is its id."""
    found: dict[str, Path] = {}
    for path in (path for source in sources for path in _files(Path(source))):
        known = found.setdefault(stem_of(path), path)
        if known != path:
            rule = f'the id "{stem_of(path)}" belongs to {known} already'
            raise DataError(rule, where=f"{path}:", fix="an utterance is named after its file: rename one of the two")
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
        for part in ("id", "reference"):
            if part not in named.columns:
                listed = ", ".join(f'"{column}"' for column in table.columns[:12])
                raise DataError(f"there is no column {part}; there are {listed}", where=f"{path}:", fix="rename one")
        for part in ("cnet", "asr"):
            if part in named.columns:
                rule = f'there must be no column "{named.columns[part]}" beside the lattices'
                raise DataError(rule, where=f"{path}:", fix="leave it out: what was heard comes from the lattices")
        rows: dict[str, Row] = {}
        for row in table.frame.iter_rows(named=True):
            place, key = row.pop(ROW), row.pop(named.columns["id"])
            if key is None or str(key) in rows:
                rule = "there is no id" if key is None else f'the id "{key}" is there already'
                raise DataError(rule, where=f"{table.place(place)}:", fix="give each utterance one row with its id")
            reference = row[named.columns["reference"]]
            if isinstance(reference, str) and reference.lstrip().startswith("["):
                with suppress(msgspec.DecodeError):
                    row[named.columns["reference"]] = msgspec.json.decode(reference)
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
    """Rows with the confusion network of each lattice, which is read while they are iterated over."""

    files: Mapping[str, Path]
    references: References | None
    scales: Mapping[str, float]
    prune: float
    step: Step = silent

    def __iter__(self) -> Iterator[Row]:
        for done, (name, path) in enumerate(self.files.items()):
            self.step("reading lattices", done, len(self.files))
            about = {} if self.references is None else self.references.rows[name]
            slots = network(read_lattice(path, **self.scales), prune=self.prune).slots
            cell = [[{"word": word, "confidence": probability} for word, probability in slot] for slot in slots]
            yield {"id": name, **about, "cnet": cell}

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


def _files(source: Path) -> Sequence[Path]:
    if not source.is_dir():
        return expand(source)
    plain = ((path, path.with_suffix("") if path.suffix in (".gz", ".zst") else path) for path in source.rglob("*"))
    found = sorted(path for path, name in plain if name.suffix.lower() in LATTICES and path.is_file())
    if not found:
        endings = " ".join(LATTICES)
        raise DataError("holds no lattices", where=str(source), fix=f"their names end in {endings}, .gz or .zst after")
    return found


def _count_names(names: Sequence[str], what: str) -> str:
    """How many there are, and the first of their names.

    >>> _count_names(["u1", "u2"], "lattice")
    'there are 2 lattices ("u1", "u2")'
    """
    count = f"is a {what}" if len(names) == 1 else f"are {len(names):,} {what}s"
    return f"there {count} ({first_names(names, _SHOWN)})"
