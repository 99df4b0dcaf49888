"""Totals in small `.sweep` files, so that parts of a log can be counted apart and added up later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from io import BytesIO
from itertools import takewhile
from math import isclose
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta, Struct
from numpy.typing import NDArray

from demur import __version__
from demur.core.engines.engine import BUCKETS, NUMBERS, as_engine_fault
from demur.core.io.sources import expand, quiet_panics, refuse_repeats, stem_of
from demur.core.io.untrusted import MOST_JSON, Archive, PlainOption, decode_json, read_bounded
from demur.core.io.writing import write_whole
from demur.core.show.results import Step, silent
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.returns.measures import term_measures
from demur.returns.table import Reading
from demur.returns.tally import UNIT_COLUMNS, UNIT_LEVELS, UNITS, Tally, grid_for

FORMAT: Literal["demur sweep"] = "demur sweep"
VERSION = 2
HEADER, LEVELS, UNIT_TABLE = "sweep.json", "levels.parquet", "units.parquet"
AGAIN = "it was cut off or changed after it was written; write it again"

_LEVEL_COLUMNS = ("tally", "threshold", "upper", "right", "wrong")
_SHARED = ("system", "part", "failed", "unanswered", "out_of_scope", "clustered")
"""What the header has as the tally has it."""
_SUMS = ("right", "wrong", "withheld")
_TERMS = term_measures()
_LAST_DIGITS = 1e-9
"""By how much sums of weights may differ between machines."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)

MOST_BYTES = 2 << 30
"""Bytes of a sweep file."""

MOST_ROWS = 1 << 25
"""Rows of a table in it."""

SMALLEST_TABLE = 1 << 20
"""Bytes that a table may take whatever its rows."""

NUMBER_TYPES = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Float32, pl.Float64)

Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e100)]
ViewName = Literal["answers", "ranking", "decisions"]
Term = float | Literal["nan", "inf", "-inf"]


class SweepEntry(Struct, kw_only=True):
    """What the header says of one tally."""

    system: str
    part: str | None = msgspec.field(name="slice")
    n: Annotated[int, Meta(ge=1, le=2**53)]
    failed: Count
    unanswered: Count
    out_of_scope: Count
    squares: Annotated[float, Meta(gt=0, le=1e100)]
    clustered: bool
    right: Amount
    wrong: Amount
    withheld_weight: Amount
    terms: dict[str, list[Term]]
    cutoffs: Count
    """Rows in the table of levels."""
    units: Count | None
    """Rows in the table of units; null where rows are independent and count alike."""
    view: ViewName = "answers"
    """Whether these are the answers, or all rows by scope, after the answers that they belong to."""


class Stamp(Struct):
    """What a header says of itself."""

    format: Literal["demur sweep"]
    version: Annotated[int, Meta(ge=1)]
    demur: str


class Header(Stamp, kw_only=True):
    """The content of `sweep.json`."""

    reading: dict[str, PlainOption]
    tallies: list[SweepEntry]
    sources: list[str]
    notes: list[str]
    warnings: list[str]


def _flat(tallies: Sequence[Tally]) -> list[tuple[ViewName, Tally]]:
    """The tallies, each followed by its views by scope."""
    views = [[("answers", tally), *sorted(tally.by_scope.items())] for tally in tallies]
    return [view for several in views for view in several]  # type: ignore[misc]


def _entry(view: ViewName, tally: Tally) -> SweepEntry:
    sweep = tally.sweep
    return SweepEntry(
        view=view,
        **{name: getattr(tally, name) for name in _SHARED},
        n=tally.n,
        squares=_plain_number(tally.squares),
        right=_plain_number(sweep.right.sum()),
        wrong=_plain_number(sweep.wrong.sum()),
        withheld_weight=_plain_number(sweep.withheld),
        terms={key: [_term(value) for value in totals.tolist()] for key, totals in sorted(tally.terms.items())},
        cutoffs=sweep.threshold.size,
        units=None if tally.units is None else tally.units.height,
    )


def _plain_number(value: Any) -> float:
    """A number that is written as an integer where it is whole."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


def _term(value: float) -> Term:
    """A total; confidences of minus infinity make some that JSON has no numbers for."""
    return _plain_number(value) if np.isfinite(value) else str(value)  # type: ignore[return-value]


def _level_table(tallies: Sequence[Tally]) -> pl.DataFrame:
    sweeps = [tally.sweep for tally in tallies]
    columns = {
        kind: np.concatenate([getattr(sweep, kind) for sweep in sweeps] or [np.empty(0)])
        for kind in ("threshold", "highest", "right", "wrong")
    }
    threshold, highest = (columns[kind].astype(np.float64) for kind in ("threshold", "highest"))
    return pl.DataFrame(
        {
            "tally": np.repeat(np.arange(len(sweeps), dtype=np.int32), [sweep.threshold.size for sweep in sweeps]),
            "threshold": threshold,
            "upper": pl.Series(highest).set(pl.Series(highest == threshold), None),
            "right": _as_integers(columns["right"]),
            "wrong": _as_integers(columns["wrong"]),
        }
    )


def _unit_table(tallies: Sequence[Tally]) -> pl.DataFrame:
    tables = [
        tally.units.select(pl.lit(place, pl.Int32).alias("tally"), *UNIT_COLUMNS)
        for place, tally in enumerate(tallies)
        if tally.units is not None
    ]
    table = pl.concat(tables).sort("tally", "bucket", "confidence", *_SUMS)
    return table.with_columns(pl.Series(name, _as_integers(table[name].to_numpy())) for name in _SUMS)


def _as_integers(values: NDArray[Any]) -> NDArray[Any]:
    """The values as integers, where all are whole."""
    return values.astype(np.int64) if np.array_equal(np.rint(values), values) else values.astype(np.float64)


def _archive(header: Header, tables: Mapping[str, pl.DataFrame]) -> bytes:
    """The header and tables in a ZIP file, without times, so that equal tallies give equal files."""
    parts = {HEADER: msgspec.json.format(msgspec.json.encode(header), indent=2) + b"\n"}
    for name, table in tables.items():
        buffer = BytesIO()
        table.write_parquet(buffer, compression="zstd")
        parts[name] = buffer.getvalue()
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            member = ZipInfo(name, _LONG_AGO)
            member.create_system, member.external_attr = 3, 0o644 << 16
            member.compress_type = ZIP_DEFLATED if name == HEADER else ZIP_STORED
            archive.writestr(member, content)
    return buffer.getvalue()


def _opened(content: bytes, name: str) -> Archive:
    if not content:
        raise DataError("is empty", where=name, fix=AGAIN)
    if not content.startswith(b"PK"):
        raise DataError("is no sweep file", where=name, fix="`demur score LOG -o PART.sweep` writes one")
    archive = Archive(content, name, AGAIN)
    if HEADER not in archive:
        raise DataError(f"is an archive without {HEADER}, so it is no sweep file", where=name)
    return archive


def _header(content: bytes, name: str) -> Header:
    where = f"{name}: {HEADER}"
    stamp = decode_json(content, Stamp, where, "a sweep's header")
    if stamp.version > VERSION:
        rule = f"has version {stamp.version} of the format, written by demur {stamp.demur}"
        raise DataError(rule, where=name, fix=f"update demur; this one, {__version__}, reads version {VERSION}")
    header = decode_json(content, Header, where, "a sweep's header")
    keys = [(entry.system, entry.part, entry.view) for entry in header.tallies]
    if not keys or keys[0][-1] != "answers" or len(set(keys)) < len(keys):
        raise DataError("must have each system and slice once, and at least one", where=where, fix=AGAIN)
    return header


def _cut_table(archive: Archive, member: str, columns: Sequence[str], sizes: Sequence[int]) -> list[pl.DataFrame]:
    """A table cut into the parts of the tallies; their sizes are those in the header, and nothing larger is read."""
    where, rows = f"{archive.where}: {member}", sum(sizes)
    _demand(rows <= MOST_ROWS, f"has {rows:,} rows, and at most {MOST_ROWS:,} can be read", where)
    content = archive.read(member, 16 * rows * len(columns) + SMALLEST_TABLE)
    stated = f"must hold the rows that {HEADER} says, in the order of its tallies"
    with quiet_panics(), as_engine_fault(where):
        table = pl.scan_parquet(BytesIO(content))
        _demand(table.select(pl.len()).collect().item() == rows, stated, where)
        schema = table.collect_schema()
    for column in columns:
        if schema.get(column) not in NUMBER_TYPES:
            raise DataError(f'must have a column "{column}" of numbers', where=where, fix=AGAIN)
    with quiet_panics(), as_engine_fault(where):
        read = table.select(pl.col(list(columns))).collect()
    in_order = read.height == rows and np.array_equal(read["tally"], np.repeat(np.arange(len(sizes)), sizes))
    _demand(in_order, stated, where)
    starts = np.cumsum([0, *sizes])
    return [read.slice(int(start), size) for start, size in zip(starts, sizes, strict=False)]


def _tally(entry: SweepEntry, levels: pl.DataFrame, units: pl.DataFrame | None, where: str) -> Tally:
    tally = Tally(
        **{name: getattr(entry, name) for name in _SHARED},
        sweep=_sweep(entry, levels, where),
        squares=float(entry.squares),
        units=None if units is None else _units(entry, units, where),
        terms={key: np.array(totals, dtype=np.float64) for key, totals in entry.terms.items() if key in _TERMS},
    )
    _check_counts(tally, where)
    if entry.view == "answers":
        _check_terms(tally, where)
    return tally


def _nested(entries: Sequence[SweepEntry], tallies: Sequence[Tally], name: str) -> tuple[Tally, ...]:
    """The tallies of answers with their views by scope, which must be of the same rows."""
    found: list[Tally] = []
    for entry, tally in zip(entries, tallies, strict=True):
        if entry.view == "answers":
            found.append(tally)
            continue
        whole = found[-1]
        same = (whole.system, whole.part, whole.n) == (tally.system, tally.part, tally.n)
        same = same and isclose(whole.sweep.total, tally.sweep.total, rel_tol=_LAST_DIGITS)
        _demand(same, f'the {entry.view} by scope of "{tally.system}" must be of the rows before it', name)
        found[-1] = replace(whole, by_scope={**whole.by_scope, entry.view: tally})
    return tuple(found)


def _sweep(entry: SweepEntry, levels: pl.DataFrame, where: str) -> Sweep:
    threshold = levels["threshold"].cast(pl.Float64)
    highest = levels["upper"].cast(pl.Float64).fill_null(threshold).to_numpy()
    lowest, right, wrong = (part.to_numpy() for part in (threshold, levels["right"], levels["wrong"]))
    _demand(not np.isnan(lowest).any() and not np.isnan(highest).any(), "a threshold is not a number", where)
    _demand(bool((highest >= lowest).all()), "no upper end may lie below its threshold", where)
    _demand(bool((lowest[1:] > highest[:-1]).all()), "thresholds must rise", where)
    for kind, counts, stated in (("right", right, entry.right), ("wrong", wrong, entry.wrong)):
        _check_sum(kind, counts, stated, where)
    upper = highest if (highest > lowest).any() else None
    return Sweep(lowest, _as_integers(right), _as_integers(wrong), float(entry.withheld_weight), entry.n, upper)


def _units(entry: SweepEntry, units: pl.DataFrame, where: str) -> pl.DataFrame:
    bucket = units["bucket"].cast(pl.Float64)
    sound = bool(bucket.is_between(0, BUCKETS - 1).all())  # rows that nothing names are in no bucket
    _demand(sound, f"a bucket must be a number from 0 to {BUCKETS - 1}", where)
    least = units["least"].cast(pl.Float64)
    sound = bool(((least >= 0) & (least < NUMBERS)).fill_null(units["bucket"].is_null()).all())
    _demand(sound, f"the least number of a bucket must be one from 0 to {NUMBERS - 1}", where)
    _demand(not units["confidence"].cast(pl.Float64).is_nan().any(), "a confidence of the units is not a number", where)
    for kind, stated in zip(_SUMS, (entry.right, entry.wrong, entry.withheld_weight), strict=True):
        _check_sum(f"{kind} in units", units[kind].to_numpy(), stated, where)
    return units.select(UNIT_COLUMNS)


def _check_sum(kind: str, counts: NDArray[Any], stated: float, where: str) -> None:
    _demand(bool((np.isfinite(counts) & (counts >= 0)).all()), f"counts of {kind} must be numbers of at least 0", where)
    found = _plain_number(counts.sum())
    if not isclose(found, stated, rel_tol=_LAST_DIGITS):
        rule = f"{kind} must add up to {_plain_number(stated)}, as {HEADER} says"
        raise DataError(rule, where=where, got=found, fix=AGAIN)


def _check_counts(tally: Tally, where: str) -> None:
    """Refuse counts that no rows can have."""
    apart = tally.failed <= tally.unanswered <= tally.n and tally.out_of_scope <= tally.n
    _demand(apart, "failed, unanswered and out_of_scope cannot be more than there are rows", where)
    total, n = tally.sweep.total, tally.n
    _demand(total > 0, "the weights of the rows must not all be 0", where)
    if tally.units is None:  # every row counts alike
        agree = isclose(total**2, n * tally.squares, rel_tol=_LAST_DIGITS)
        agree &= isclose(tally.sweep.withheld * n, tally.unanswered * total, rel_tol=_LAST_DIGITS)
        _demand(agree, f"right, wrong and unanswered rows must be {n:,} together", where)
    else:
        most = n * tally.squares * (1 + _LAST_DIGITS)
        _demand(total**2 <= most, f"the weights and their squares cannot be those of {n:,} rows", where)


def _check_terms(tally: Tally, where: str) -> None:
    """Refuse totals of another number of terms or rows; where confidences are joined, nothing else gives them."""
    for key, measure in _TERMS.items():
        if key in tally.terms:
            totals = tally.terms[key]
            sound = totals.size == len(measure.terms()) + 1 and totals[-1] == tally.n
            _demand(sound, f'the totals of "{key}" are not those of {tally.n} rows', where)
        elif tally.sweep.upper is not None:
            rule = f'joins close confidences and has no totals of "{key}"'
            raise DataError(rule, where=where, fix="write it again with this demur")


def _demand(holds: bool, rule: str, where: str) -> None:
    if not holds:
        raise DataError(rule, where=where, fix=AGAIN)


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

    def to_bytes(self) -> bytes:
        """The content of the file."""
        flat = _flat(self.tallies)
        every = [tally for _, tally in flat]
        header = Header(
            format=FORMAT,
            version=VERSION,
            demur=__version__,
            reading=dict(self.reading),
            tallies=[_entry(*view) for view in flat],
            sources=list(self.sources),
            notes=list(self.notes),
            warnings=list(self.warnings),
        )
        tables = {LEVELS: _level_table(every)}
        if any(tally.units is not None for tally in every):
            tables[UNIT_TABLE] = _unit_table(every)
        return _archive(header, tables)

    def write(self, path: str | Path) -> None:
        """Write the file; it appears whole or not at all."""
        write_whole(path, self.to_bytes())

    @property
    def systems(self) -> list[str]:
        """The names of the systems, in order of first appearance."""
        return list(dict.fromkeys(tally.system for tally in self.tallies))


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


def read_sweep(path: str | Path) -> SweepFile:
    """The tallies in a `.sweep` file, checked against what its header says of them."""
    return parsed_sweep(read_bounded(Path(path), MOST_BYTES), name=str(path))


def read_sweeps(*parts: str | Path | SweepFile, step: Step = silent) -> list[SweepFile]:
    """The sweeps that paths and globs stand for, each file once; those already read are taken as they are."""
    found: list[Path | SweepFile] = []
    for part in parts:
        if isinstance(part, SweepFile):
            found.append(part)
        elif Path(part).is_dir():
            raise DataError("is a folder, not a file", where=str(part), fix=f'try "{part}/*.sweep"')
        else:
            found += expand(part)
    refuse_repeats((one, str(one)) for one in found if isinstance(one, Path))
    files = []
    for done, one in enumerate(found):
        step("reading", done, len(found))
        files.append(one if isinstance(one, SweepFile) else read_sweep(one))
    return files


def parsed_sweep(content: bytes, *, name: str) -> SweepFile:
    """The tallies in the content of a `.sweep` file, which agree with its header; `name` is what messages call it."""
    archive = _opened(content, name)
    header = _header(archive.read(HEADER, MOST_JSON), name)
    entries = header.tallies
    levels = _cut_table(archive, LEVELS, _LEVEL_COLUMNS, [entry.cutoffs for entry in entries])
    units: Sequence[pl.DataFrame | None] = [None] * len(entries)
    if any(entry.units is not None for entry in entries):
        units = _cut_table(archive, UNIT_TABLE, ("tally", *UNITS), [entry.units or 0 for entry in entries])
    tallies = []
    for entry, of_levels, of_units in zip(entries, levels, units, strict=True):
        title = f'"{entry.system}"' if entry.part is None else f'"{entry.system}" [{entry.part}]'
        tallies.append(_tally(entry, of_levels, None if entry.units is None else of_units, f"{name}: {title}:"))
    sources, notes, warnings = (tuple(lines) for lines in (header.sources, header.notes, header.warnings))
    return SweepFile(_nested(entries, tallies, name), header.reading, sources, notes, warnings, name)


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
        system = common_name([name for file in files for name in file.systems])
    if system is not None:
        files = [_rename(file, system) for file in files]
    _refuse_other_rules(files)
    repeats = _repeats(files)
    if repeats and not allow_repeats:
        fix = "leave one of them out, or allow repeats (--allow-repeats) if they are different logs of one name"
        raise DataError(repeats[0], fix=fix)
    return SweepFile(
        tallies=tuple(_added(files)),
        reading=files[0].reading,
        sources=tuple(dict.fromkeys(source for file in files for source in file.sources)),
        notes=_lines_by_part(files, [file.notes for file in files]),
        warnings=(
            *_lines_by_part(files, [file.warnings for file in files]),
            *repeats,
            *_asides(files, system if together else None),
        ),
        name=files[0].name if len(files) == 1 else "the merged sweeps",
    )


def called_after_files(files: Sequence[SweepFile]) -> bool:
    """Whether every part is of one system called as its log is, and not all alike: nothing would be added up."""
    for file in files:
        stems = ["stdin" if source == "<stdin>" else stem_of(Path(source)) for source in file.sources]
        folders = {Path(source).parent.name for source in file.sources}
        # what a log goes by where no column and no option names its system
        usual = {common_name(stems), *(stems if len(stems) == 1 else ["log"]), *(folders if len(folders) == 1 else ())}
        if not stems or len(file.systems) > 1 or file.systems[0] not in usual:
            return False
    return len({name for file in files for name in file.systems}) > 1


def common_name(names: Sequence[str]) -> str:
    """What names of parts have in common, without the number that tells them apart.

    >>> common_name(["day-01", "day-02"]), common_name(["monday", "tuesday"])
    ('day', 'log')
    """
    alike = takewhile(lambda characters: len(set(characters)) == 1, zip(*names, strict=False))
    return "".join(characters[0] for characters in alike).rstrip("0123456789-_. =") or "log"


def _asides(files: Sequence[SweepFile], taken_as: str | None) -> list[str]:
    """What a reader should know of how the parts were taken: for one log, or some of them for systems of their own."""
    warnings = []
    if taken_as is not None:
        warnings.append(
            f'the logs name no system, so they were taken for parts of one, here called "{taken_as}"; if they are '
            "different systems, --apart (apart=True) keeps them apart"
        )
    alike = Counter(_content(tally) for file in files for tally in file.tallies if tally.part is None)
    if any(count > 1 for count in alike.values()):
        warnings.append("two parts hold exactly the same counts: is it one log twice, under two names?")
    return warnings


def _rename(file: SweepFile, system: str) -> SweepFile:
    if len(file.systems) > 1:
        several = f'{file.name} holds several systems, so they cannot all be "{system}"'
        raise UsageError(f"{several}: {', '.join(file.systems)}")
    return replace(file, tallies=tuple(tally.named(system) for tally in file.tallies))


def _added(files: Sequence[SweepFile]) -> list[Tally]:
    """The sums by system and slice: systems as they first appear, each whole and then by its slices in order.

    Tables of units keep as few levels as one count of all rows would have kept.
    """
    found: dict[tuple[str, str | None], list[tuple[str, Tally]]] = {}
    for file in files:
        for tally in file.tallies:
            found.setdefault((tally.system, tally.part), []).append((file.name, tally))
    systems = list(dict.fromkeys(system for system, _ in found))
    keys = sorted(found, key=lambda key: (systems.index(key[0]), key[1] is not None, key[1] or ""))
    for key in keys:
        _refuse_mixed_units(found[key])
    tallies = [_sum(sorted((tally for _, tally in found[key]), key=_content)) for key in keys]
    sweeps = [tally.sweep for tally in tallies if tally.part is None]
    if all(tally.units is None for tally in tallies) or all(one.threshold.size <= UNIT_LEVELS for one in sweeps):
        return tallies
    grid = grid_for(reduce(add, sweeps), UNIT_LEVELS // 2)
    return [tally.with_units_joined(grid) for tally in tallies]


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
    """Refuses parts that were judged by other rules, or sliced by other columns."""
    for rule in dict.fromkeys(rule for file in files for rule in file.reading):
        option = f" with the same {OPTIONS[rule]}" if rule in OPTIONS else " in the same way"
        fault = f"the parts were judged by different rules, so they cannot be added: {rule} is"
        _refuse_differences(files, [_canonical(file.reading.get(rule)) for file in files], fault, option)
    columns = [
        sorted({tally.part.partition("=")[0] for tally in file.tallies if tally.part is not None}) for file in files
    ]
    listed = [", ".join(f'"{column}"' for column in of_file) or "no column" for of_file in columns]
    _refuse_differences(files, listed, "the parts are sliced by", " with the same --by")


def _refuse_differences(files: Sequence[SweepFile], values: Sequence[str], rule: str, option: str) -> None:
    groups: dict[str, list[str]] = {}
    for file, value in zip(files, values, strict=True):
        groups.setdefault(value, []).append(file.name)
    if len(groups) > 1:
        parts = "; ".join(f"{value} in {_names_text(names)}" for value, names in groups.items())
        raise DataError(f"{rule} {parts}", fix=f"make all parts{option}")


def _refuse_mixed_units(members: Sequence[tuple[str, Tally]]) -> None:
    with_units = [name for name, tally in members if tally.units is not None]
    without = [name for name, tally in members if tally.units is None]
    if with_units and without:
        raise DataError(
            f'of "{members[0][1].system}" there are dialogues or weights in {_names_text(with_units)}, and none in '
            f"{_names_text(without)}, so they cannot be added",
            fix="make all parts from files with the same columns; weights that are all 1 count as none",
        )


def _repeats(files: Sequence[SweepFile]) -> tuple[str, ...]:
    """A sentence for each log that is in more than one part."""
    times = Counter(source for file in files for source in dict.fromkeys(file.sources))
    twice = {source: count for source, count in times.items() if count > 1}
    holders = {source: [file.name for file in files if source in file.sources] for source in twice}
    return tuple(
        f'"{one}" is in {_names_text(holders[one])}, so it counts {count} times' for one, count in twice.items()
    )


def _lines_by_part(files: Sequence[SweepFile], lines: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Notes or warnings of the parts, with the parts they are about: their counts are not those of the whole."""
    if len(files) == 1:
        return tuple(lines[0])
    parts: dict[str, list[str]] = {}
    for file, own in zip(files, lines, strict=True):
        for line in dict.fromkeys(own):
            parts.setdefault(line, []).append(file.name)
    return tuple(
        f"{names[0]}: {line}" if len(names) == 1 else f"{line} (in each of {len(names)} parts)"
        for line, names in parts.items()
    )


def _canonical(value: Any) -> str:
    """A rule as text; in which order labels or conditions were given does not matter."""
    ordered = sorted(value, key=json.dumps) if isinstance(value, list | tuple) else value
    return json.dumps(ordered, ensure_ascii=False, sort_keys=True)


def _names_text(names: Sequence[str]) -> str:
    if len(names) > NAMED + 1:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
