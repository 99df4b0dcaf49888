"""Totals in small files, so that parts of a log can be counted apart, anywhere and at any time, and added up later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from demur.data.output import write_whole
from demur.data.responses import Reading
from demur.data.sources import expand, stem_of
from demur.errors import DataError, UsageError
from demur.measures.grids import grid_for
from demur.measures.sweep_format import packed, unpacked
from demur.measures.tally import UNIT_LEVELS, Tally, summed_units
from demur.show import Step, silent

OPTIONS = {
    "columns": "--map",
    "out_of_scope": "--out-of-scope",
    "withheld": "--withheld",
    "missing_confidence": "--missing-confidence",
    "where": "--where",
}
"""The option that sets each rule by which rows are judged."""

NAMED = 3
"""Files that a message names before it counts the rest."""


@dataclass(frozen=True, eq=False)
class SweepFile:
    """The tallies of one or more systems with how their rows were judged, and the files these came from."""

    tallies: tuple[Tally, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = "a sweep"
    """What the file is called in messages."""

    def write(self, path: str | Path) -> None:
        """Write the file; it appears whole or not at all."""
        write_sweep(
            path,
            self.tallies,
            reading=self.reading,
            sources=self.sources,
            notes=self.notes,
            warnings=self.warnings,
        )


def rules_of(reading: Reading) -> dict[str, Any]:
    """How a reading judges rows, as plain values: what must be alike in files that are added.

    >>> rules_of(Reading(where=(("split", "test"),)))["where"]
    [['split', 'test']]
    """
    return {
        "columns": dict(reading.columns),
        "out_of_scope": list(reading.out_of_scope),
        "withheld": list(reading.withheld),
        "missing_confidence": reading.missing_confidence,
        "where": [list(pair) for pair in reading.where],
    }


def write_sweep(
    path: str | Path,
    tallies: Sequence[Tally],
    *,
    reading: Mapping[str, Any],
    sources: Sequence[str] = (),
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> None:
    """Write tallies to a file that appears whole or not at all; `reading` is what `rules_of` gives."""
    write_whole(path, sweep_bytes(tallies, reading=reading, sources=sources, notes=notes, warnings=warnings))


def sweep_bytes(
    tallies: Sequence[Tally],
    *,
    reading: Mapping[str, Any],
    sources: Sequence[str] = (),
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> bytes:
    """The content of a `.sweep` file."""
    return packed(tallies, reading=reading, sources=sources, notes=notes, warnings=warnings)


def read_sweep(path: str | Path) -> SweepFile:
    """The tallies in a `.sweep` file, checked against what its header says of them."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=str(path)) from None
    return parsed_sweep(content, name=str(path))


def gathered(*parts: str | Path | SweepFile, step: Step = silent) -> list[SweepFile]:
    """The sweeps that paths and globs stand for, each file once; those already read are taken as they are."""
    found = [one for part in parts for one in ([part] if isinstance(part, SweepFile) else _paths(part))]
    seen = set()
    for path in (one for one in found if isinstance(one, Path)):
        if path.resolve() in seen:
            raise DataError("is given twice", where=str(path), fix="its rows would count twice")
        seen.add(path.resolve())
    files = []
    for done, one in enumerate(found):
        step("reading", done, len(found))
        files.append(one if isinstance(one, SweepFile) else read_sweep(one))
    return files


def _paths(item: str | Path) -> list[Path]:
    if Path(item).is_dir():
        raise DataError("is a folder, not a file", where=str(item), fix=f'try "{item}/*.sweep"')
    return expand(item)


def parsed_sweep(content: bytes, *, name: str) -> SweepFile:
    """The tallies in the content of a `.sweep` file; `name` is what messages call it."""
    header, tallies = unpacked(content, name=name)
    sources, notes, warnings = (tuple(lines) for lines in (header.sources, header.notes, header.warnings))
    return SweepFile(tallies, header.reading, sources, notes, warnings, name)


def merged(
    files: Sequence[SweepFile], *, system: str | None = None, apart: bool = False, allow_repeats: bool = False
) -> SweepFile:
    """The sweep of all parts together: what one count of all their rows would have given, in any order of the files.

    Parts must be judged by the same rules and sliced by the same column. Logs that do not name their system are each
    called after their file; where all are, they are taken for parts of one log, which `system` may name, unless they
    are to stay `apart`. A log that is in two parts would count twice, so it is
    refused; `allow_repeats` is for different logs of one name.
    """
    if not files:
        raise UsageError("there is nothing to merge: name the .sweep files")
    together = system is None and not apart and called_after_files(files)
    if together:
        system = common_name([name for file in files for name in _systems(file)])
    if system is not None:
        files = [_renamed(file, system) for file in files]
    _refuse_other_rules(files)
    _refuse_other_slices(files)
    repeats = _repeats(files)
    if repeats and not allow_repeats:
        raise DataError(
            repeats[0],
            fix="leave one of them out, or allow repeats (--allow-repeats) if they are different logs of one name",
        )
    return SweepFile(
        tallies=tuple(_added(files)),
        reading=files[0].reading,
        sources=tuple(dict.fromkeys(source for file in files for source in file.sources)),
        notes=_told(files, lambda file: file.notes),
        warnings=(*_told(files, lambda file: file.warnings), *repeats, *_asides(files, system if together else None)),
        name=files[0].name if len(files) == 1 else "the merged sweeps",
    )


def called_after_files(files: Sequence[SweepFile]) -> bool:
    """Whether every part is of one system called as its log is, and not all alike: nothing would be added up."""
    names = {name for file in files for name in _systems(file)}
    return len(names) > 1 and all(_called_after_its_log(file) for file in files)


def _called_after_its_log(file: SweepFile) -> bool:
    """Whether no column and no option named the system, so that it goes by its file, its folder or its pipe."""
    stems = ["stdin" if source == "<stdin>" else stem_of(Path(source)) for source in file.sources]
    if not stems:
        return False
    folders = {Path(source).parent.name for source in file.sources}
    usual = {common_name(stems), *(stems if len(stems) == 1 else ["log"]), *(folders if len(folders) == 1 else ())}
    systems = _systems(file)
    return len(systems) == 1 and systems[0] in usual


def common_name(names: Sequence[str]) -> str:
    """What names of parts have in common, without the number that tells them apart.

    >>> common_name(["day-01", "day-02"]), common_name(["monday", "tuesday"])
    ('day', 'log')
    """
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike).rstrip("0123456789-_. =") or "log"


def _asides(files: Sequence[SweepFile], taken_as: str | None) -> list[str]:
    """What a reader should know of how the parts were taken: for one log, or some of them for systems of their own."""
    told = []
    if taken_as is not None:
        told.append(
            f'the logs name no system, so they were taken for parts of one, here called "{taken_as}"; if they are '
            "different systems, --apart (apart=True) keeps them apart"
        )
    alike = Counter(_content(tally) for file in files for tally in file.tallies if tally.part is None)
    if any(count > 1 for count in alike.values()):
        told.append("two parts hold exactly the same counts: is it one log twice, under two names?")
    return told


def _systems(file: SweepFile) -> list[str]:
    return list(dict.fromkeys(tally.system for tally in file.tallies))


def _renamed(file: SweepFile, system: str) -> SweepFile:
    if len(_systems(file)) > 1:
        raise UsageError(
            f'{file.name} holds several systems, so they cannot all be "{system}": {", ".join(_systems(file))}'
        )
    return replace(file, tallies=tuple(replace(tally, system=system) for tally in file.tallies))


def _added(files: Sequence[SweepFile]) -> list[Tally]:
    """The sums by system and slice: systems as they first appear, each whole and then by its slices in order."""
    found: dict[tuple[str, str | None], list[tuple[str, Tally]]] = {}
    for file in files:
        for tally in file.tallies:
            found.setdefault((tally.system, tally.part), []).append((file.name, tally))
    systems = list(dict.fromkeys(system for system, _ in found))
    keys = sorted(found, key=lambda key: (systems.index(key[0]), key[1] is not None, key[1] or ""))
    for key in keys:
        _refuse_mixed_units(found[key])
    return _releveled([_sum(sorted((tally for _, tally in found[key]), key=_content)) for key in keys])


def _releveled(tallies: list[Tally]) -> list[Tally]:
    """The tallies with as few levels in their tables of units as one count of all rows would have kept."""
    sweeps = [tally.sweep for tally in tallies if tally.part is None]
    if all(tally.units is None for tally in tallies) or all(one.threshold.size <= UNIT_LEVELS for one in sweeps):
        return tallies
    grid = grid_for(reduce(add, sweeps), UNIT_LEVELS // 2)

    def leveled(units: pl.DataFrame) -> pl.DataFrame:
        cells = pl.Series("confidence", grid.of(units["confidence"].fill_null(np.nan).to_numpy()))
        return summed_units([units.with_columns(cells.fill_nan(None))])

    return [replace(tally, units=None if tally.units is None else leveled(tally.units)) for tally in tallies]


def _content(tally: Tally) -> tuple[Any, ...]:
    """What sums are ordered by, so that the order of files cannot move a last digit."""
    return tally.sweep.digest(), tally.squares, tally.failed, tally.unanswered, tally.out_of_scope


def _sum(tallies: Sequence[Tally]) -> Tally:
    """The sum by halves: each cutoff is handled as often as the parts can be halved, not once for every part."""
    if len(tallies) == 1:
        return tallies[0]
    half = len(tallies) // 2
    with np.errstate(invalid="ignore"):  # totals of confidences that are no probabilities may be infinite
        return _sum(tallies[:half]) + _sum(tallies[half:])


def _refuse_other_rules(files: Sequence[SweepFile]) -> None:
    for rule in dict.fromkeys(rule for file in files for rule in file.reading):
        groups = _grouped(files, lambda file, rule=rule: _canonical(file.reading.get(rule)))  # type: ignore[misc]
        if len(groups) > 1:
            option = f" with the same {OPTIONS[rule]}" if rule in OPTIONS else " in the same way"
            raise DataError(
                f"the parts were judged by different rules, so they cannot be added: {rule} is {_listed(groups)}",
                fix=f"make all parts{option}",
            )


def _refuse_other_slices(files: Sequence[SweepFile]) -> None:
    def sliced_by(file: SweepFile) -> str:
        columns = {tally.part.partition("=")[0] for tally in file.tallies if tally.part is not None}
        return ", ".join(f'"{column}"' for column in sorted(columns)) or "no column"

    groups = _grouped(files, sliced_by)
    if len(groups) > 1:
        raise DataError(f"the parts are sliced by {_listed(groups)}", fix="make all parts with the same --by")


def _refuse_mixed_units(members: Sequence[tuple[str, Tally]]) -> None:
    with_units = [name for name, tally in members if tally.units is not None]
    without = [name for name, tally in members if tally.units is None]
    if with_units and without:
        raise DataError(
            f'of "{members[0][1].system}" there are dialogues or weights in {_names(with_units)}, and none in '
            f"{_names(without)}, so they cannot be added",
            fix="make all parts from files with the same columns; weights that are all 1 count as none",
        )


def _repeats(files: Sequence[SweepFile]) -> tuple[str, ...]:
    """A sentence for each log that is in more than one part."""
    times = Counter(source for file in files for source in dict.fromkeys(file.sources))
    twice = {source: count for source, count in times.items() if count > 1}
    holders = {source: [file.name for file in files if source in file.sources] for source in twice}
    return tuple(f'"{one}" is in {_names(holders[one])}, so it counts {count} times' for one, count in twice.items())


def _told(files: Sequence[SweepFile], lines: Callable[[SweepFile], Iterable[str]]) -> tuple[str, ...]:
    """What was told of the parts, with the parts it was told of: their counts are not those of the whole."""
    if len(files) == 1:
        return tuple(lines(files[0]))
    parts: dict[str, list[str]] = {}
    for file in files:
        for line in dict.fromkeys(lines(file)):
            parts.setdefault(line, []).append(file.name)
    return tuple(
        f"{names[0]}: {line}" if len(names) == 1 else f"{line} (in each of {len(names)} parts)"
        for line, names in parts.items()
    )


def _grouped(files: Sequence[SweepFile], value: Callable[[SweepFile], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for file in files:
        groups.setdefault(value(file), []).append(file.name)
    return groups


def _canonical(value: Any) -> str:
    """A rule as text; in which order labels or conditions were given does not matter."""
    ordered = sorted(value, key=json.dumps) if isinstance(value, list | tuple) else value
    return json.dumps(ordered, ensure_ascii=False, sort_keys=True)


def _listed(groups: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value} in {_names(names)}" for value, names in groups.items())


def _names(names: Sequence[str]) -> str:
    if len(names) > NAMED + 1:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
