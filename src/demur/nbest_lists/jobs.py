"""Jobs on N-best lists: from files, frames or what a recogniser heard to results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from demur.core.jobs import check_options
from demur.errors import UsageError
from demur.nbest_lists.asr.grammar import Grammar, bundled
from demur.nbest_lists.asr.scorers import Ear, Hypothesiser, Parse, command_parser, remembering
from demur.nbest_lists.compare import NBestComparison
from demur.nbest_lists.compare import compare_nbest as compare_lists
from demur.nbest_lists.evaluate import CLIP, Manner, NBestEvaluations, evaluate_nbest
from demur.nbest_lists.measures import FLOOR
from demur.nbest_lists.table import NBest, NBestReading, renamed
from demur.nbest_lists.table import joined as joined_lists
from demur.nbest_lists.table import nbest as lists_in
from demur.nbest_lists.table import read_nbest as read_lists
from demur.returns.table import named_systems


def read_nbest(
    *data: Any,
    scorer: str | Sequence[str] = (),
    grammar: str | Path | None = None,
    parser: Parse | str | None = None,
    heard: Ear = "auto",
    sentences: int | None = None,
    **options: Any,
) -> NBest:
    """N-best lists from files, globs, folders of DSTC2 and 3, frames, lists of dicts, or a mixture.

    With a scorer (const, avgword, infev; `-tp1` keeps the best act) the lists are made from the columns asr or cnet, by
    a grammar file, a parser (any callable from text to acts, or a command), or else the grammar of a restaurant guide;
    of several scorers each is a system. Options are those of `NBestReading`: `items`, `normalise`, `where`, `keep` ...
    """
    names = (scorer,) if isinstance(scorer, str) else tuple(dict.fromkeys(scorer))
    if not names:
        return _lists(data, _nbest_reading(options))
    parse = remembering(parser_of(grammar, parser))
    tables = []
    for name in names:
        made = Hypothesiser(name, parse, sentences, heard)
        table = _lists(data, _nbest_reading({**options, "hypothesise": made}))
        several = len(names) > 1
        tables += [
            renamed(table.of(system), f"{system} {name}" if len(table.systems) > 1 else name)
            if several
            else table.of(system)
            for system in table.systems
        ]
    return joined_lists(tables)


def nbest(
    *data: Any,
    by: str | None = None,
    floor: float = FLOOR,
    clip: float = CLIP,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> NBestEvaluations:
    """WSER, oracle, NCE, ICE and more of N-best lists, with intervals; further options go to `read_nbest`."""
    table = _lists_of(data, {**({"keep": (by,)} if by else {}), **options})
    return evaluate_nbest(table, by=by, floor=floor, clip=clip, level=level, replicates=replicates, seed=seed)


def compare_nbest(
    *data: Any,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    floor: float = FLOOR,
    clip: float = CLIP,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    **options: Any,
) -> NBestComparison:
    """N-best lists of two or more systems against each other, paired by utterance; options go to `read_nbest`."""
    manner = Manner(floor, clip, level, replicates, seed)
    table = _lists_of(data, options)
    return compare_lists(table, systems=systems, matched=matched, unpaired=unpaired, manner=manner)


def _lists_of(data: tuple[Any, ...], options: dict[str, Any]) -> NBest:
    if len(data) == 1 and isinstance(data[0], NBest):
        late = ", ".join(name for name in options if name != "keep")
        if late:
            raise UsageError(f"the table is read already, so it takes no {late}: give it to read_nbest")
        return data[0]
    return read_nbest(*data, **options)


def _lists(data: tuple[Any, ...], reading: NBestReading) -> NBest:
    if not data:
        raise UsageError("there is nothing to read: give a file, a frame or a list of rows")
    if all(isinstance(one, str | Path) for one in data):
        return read_lists(*data, reading=reading)
    if len(data) == 1 and named_systems(data[0]):
        return joined_lists([renamed(_lists((one,), reading), name) for name, one in data[0].items()])
    unnamed = sum(not isinstance(one, str | Path | NBest) for one in data)
    tables = []
    for place, one in enumerate(data, start=1):
        if isinstance(one, NBest):
            tables.append(one)
        elif isinstance(one, str | Path):
            tables.append(read_lists(one, reading=reading))
        else:
            tables.append(lists_in(one, system=f"system {place}" if unnamed > 1 else None, reading=reading))
    return joined_lists(tables)


def parser_of(grammar: str | Path | None, parser: Parse | str | None) -> Parse:
    """The parser that is asked for: a grammar file, a callable, a command, or else the restaurant guide's grammar."""
    if grammar is not None and parser is not None:
        raise UsageError("sentences are parsed by a grammar or by a parser, not by both")
    if parser is not None:
        return command_parser(parser) if isinstance(parser, str) else parser
    return _guides_grammar().parse if grammar is None else Grammar.read(Path(grammar)).parse


@cache
def _guides_grammar() -> Grammar:
    return bundled("restaurant")


def _nbest_reading(options: dict[str, Any]) -> NBestReading:
    check_options(options, NBestReading, ("scorer", "grammar", "parser", "by", "floor"))
    return NBestReading(**options)
