"""The format of `.sweep` files: tallies as bytes, and bytes as tallies, which must agree with what is said of them.

The file is a zip archive of a header for people and programs, `sweep.json`, and of two Parquet tables:
`levels.parquet`, the counts at every cutoff, and, where there are dialogues or weights, `units.parquet`, what each
bucket of dialogues holds, with the number that tells how many dialogues these are. Equal content gives equal bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from math import isclose
from typing import Annotated, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta, Struct
from numpy.typing import NDArray

from demur import __version__
from demur.data.engines import BUCKETS, NUMBERS, engine_faults_told
from demur.errors import DataError
from demur.measures.registry import term_measures
from demur.measures.sweep import Sweep
from demur.measures.tally import UNITS, Tally

FORMAT: Literal["demur sweep"] = "demur sweep"
VERSION = 1
HEADER, LEVELS, UNIT_TABLE = "sweep.json", "levels.parquet", "units.parquet"
AGAIN = "it was cut off or changed after it was written; write it again"

_LEVEL_COLUMNS = ("tally", "threshold", "upper", "right", "wrong")
_SUMS = ("right", "wrong", "withheld")
_TERMS = term_measures()
_LAST_DIGITS = 1e-9
"""By how much sums of weights may differ between machines."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_UNREADABLE = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What `zipfile` raises at archives that are cut off, changed, locked or packed in a way it does not know."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0)]
Term = float | Literal["nan", "inf", "-inf"]


class Entry(Struct, kw_only=True):
    """What the header says of one tally."""

    system: str
    part: str | None = msgspec.field(name="slice")
    n: Annotated[int, Meta(ge=1, le=2**53)]
    failed: Count
    unanswered: Count
    out_of_scope: Count
    squares: Annotated[float, Meta(gt=0)]
    clustered: bool
    right: Amount
    wrong: Amount
    withheld_weight: Amount
    terms: dict[str, list[Term]]
    cutoffs: Count
    """Rows in the table of levels."""
    units: Count | None
    """Rows in the table of units; null where rows are independent and count alike."""


class Stamp(Struct):
    """What a header says of itself."""

    format: Literal["demur sweep"]
    version: Annotated[int, Meta(ge=1)]
    demur: str


class Header(Stamp, kw_only=True):
    """The content of `sweep.json`."""

    reading: dict[str, Any]
    tallies: list[Entry]
    sources: list[str]
    notes: list[str]
    warnings: list[str]


def packed(
    tallies: Sequence[Tally],
    *,
    reading: Mapping[str, Any],
    sources: Sequence[str],
    notes: Sequence[str],
    warnings: Sequence[str],
) -> bytes:
    """The content of a `.sweep` file."""
    header = Header(
        format=FORMAT,
        version=VERSION,
        demur=__version__,
        reading=dict(reading),
        tallies=[_entry(tally) for tally in tallies],
        sources=list(sources),
        notes=list(notes),
        warnings=list(warnings),
    )
    parts = {
        HEADER: msgspec.json.format(msgspec.json.encode(header), indent=2) + b"\n",
        LEVELS: _parquet(_level_table(tallies)),
    }
    if any(tally.units is not None for tally in tallies):
        parts[UNIT_TABLE] = _parquet(_unit_table(tallies))
    return _archive(parts)


def _entry(tally: Tally) -> Entry:
    sweep = tally.sweep
    return Entry(
        system=tally.system,
        part=tally.part,
        n=tally.n,
        failed=tally.failed,
        unanswered=tally.unanswered,
        out_of_scope=tally.out_of_scope,
        squares=_number(tally.squares),
        clustered=tally.clustered,
        right=_number(sweep.right.sum()),
        wrong=_number(sweep.wrong.sum()),
        withheld_weight=_number(sweep.withheld),
        terms={key: [_term(value) for value in totals.tolist()] for key, totals in sorted(tally.terms.items())},
        cutoffs=sweep.threshold.size,
        units=None if tally.units is None else tally.units.height,
    )


def _number(value: Any) -> float:
    """A number that is written as an integer where it is whole."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


def _term(value: float) -> Term:
    """A total; confidences of minus infinity make some that JSON has no numbers for."""
    return _number(value) if np.isfinite(value) else str(value)  # type: ignore[return-value]


def _level_table(tallies: Sequence[Tally]) -> pl.DataFrame:
    sweeps = [tally.sweep for tally in tallies]
    threshold = _joined([sweep.threshold for sweep in sweeps]).astype(np.float64)
    highest = _joined([sweep.highest for sweep in sweeps]).astype(np.float64)
    upper = pl.Series("upper", highest).set(pl.Series(highest == threshold), None)
    tally = np.repeat(np.arange(len(sweeps), dtype=np.int32), [sweep.threshold.size for sweep in sweeps])
    right, wrong = (_whole(_joined([getattr(sweep, kind) for sweep in sweeps])) for kind in ("right", "wrong"))
    return pl.DataFrame({"tally": tally, "threshold": threshold, "upper": upper, "right": right, "wrong": wrong})


def _unit_table(tallies: Sequence[Tally]) -> pl.DataFrame:
    tables = [
        tally.units.select(
            pl.lit(place, pl.Int32).alias("tally"), *(pl.col(name).cast(kind) for name, kind in UNITS.items())
        )
        for place, tally in enumerate(tallies)
        if tally.units is not None
    ]
    table = pl.concat(tables).sort("tally", "bucket", "confidence", *_SUMS)
    return table.with_columns(pl.Series(name, _whole(table[name].to_numpy())) for name in _SUMS)


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0)


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    """The values as integers, where all are whole."""
    return values.astype(np.int64) if np.array_equal(np.rint(values), values) else values.astype(np.float64)


def _parquet(table: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def _archive(parts: Mapping[str, bytes]) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            member = ZipInfo(name, _LONG_AGO)
            member.create_system, member.external_attr = 3, 0o644 << 16
            member.compress_type = ZIP_DEFLATED if name == HEADER else ZIP_STORED
            archive.writestr(member, content)
    return buffer.getvalue()


def unpacked(content: bytes, *, name: str) -> tuple[Header, tuple[Tally, ...]]:
    """The header of a `.sweep` file and its tallies, which agree with it; `name` is what messages call the file."""
    members = _members(content, name)
    header = _header(members[HEADER], name)
    entries = header.tallies
    levels = _table(members, LEVELS, _LEVEL_COLUMNS, [entry.cutoffs for entry in entries], name)
    sizes = [entry.units or 0 for entry in entries]
    wanted = any(entry.units is not None for entry in entries)
    units = _table(members, UNIT_TABLE, ("tally", *UNITS), sizes, name) if wanted else [None] * len(entries)
    return header, tuple(
        _tally(entry, of_levels, None if entry.units is None else of_units, f"{name}: {_title(entry)}:")
        for entry, of_levels, of_units in zip(entries, levels, units, strict=True)
    )


def _members(content: bytes, name: str) -> dict[str, bytes]:
    if not content:
        raise DataError("is empty", where=name, fix=AGAIN)
    if not content.startswith(b"PK"):
        raise DataError("is no sweep file", where=name, fix="`demur score LOG -o PART.sweep` writes one")
    try:
        with ZipFile(BytesIO(content)) as archive:
            members = {
                member: archive.read(member) for member in (HEADER, LEVELS, UNIT_TABLE) if member in archive.namelist()
            }
    except _UNREADABLE as error:
        raise DataError(f"cannot be unpacked: {error}", where=name, fix=AGAIN) from None
    if HEADER not in members:
        raise DataError(f"is an archive without {HEADER}, so it is no sweep file", where=name)
    return members


def _header(content: bytes, name: str) -> Header:
    try:
        stamp = msgspec.json.decode(content, type=Stamp)
        if stamp.version > VERSION:
            rule = f"has version {stamp.version} of the format, written by demur {stamp.demur}"
            raise DataError(rule, where=name, fix=f"update demur; this one, {__version__}, reads version {VERSION}")
        header = msgspec.json.decode(content, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"does not have the form of a sweep's header: {error}", where=f"{name}: {HEADER}") from None
    keys = [(entry.system, entry.part) for entry in header.tallies]
    if not keys or len(set(keys)) < len(keys):
        raise DataError("must have each system and slice once, and at least one", where=f"{name}: {HEADER}", fix=AGAIN)
    return header


def _title(entry: Entry) -> str:
    return f'"{entry.system}"' if entry.part is None else f'"{entry.system}" [{entry.part}]'


def _table(
    members: Mapping[str, bytes], member: str, columns: Sequence[str], sizes: Sequence[int], name: str
) -> list[pl.DataFrame]:
    """A table cut into the parts of the tallies; their sizes are those in the header."""
    where = f"{name}: {member}"
    if member not in members:
        raise DataError("is missing", where=where, fix=AGAIN)
    with engine_faults_told(where):
        table = pl.read_parquet(BytesIO(members[member]))
    for column in columns:
        if column not in table.columns or not table.schema[column].is_numeric():
            raise DataError(f'must have a column "{column}" of numbers', where=where, fix=AGAIN)
    if sum(sizes) != table.height or not np.array_equal(table["tally"], np.repeat(np.arange(len(sizes)), sizes)):
        raise DataError(f"must hold the rows that {HEADER} says, in the order of its tallies", where=where, fix=AGAIN)
    starts = np.cumsum([0, *sizes])
    return [table.slice(int(start), size) for start, size in zip(starts, sizes, strict=False)]


def _tally(entry: Entry, levels: pl.DataFrame, units: pl.DataFrame | None, where: str) -> Tally:
    tally = Tally(
        system=entry.system,
        part=entry.part,
        sweep=_sweep(entry, levels, where),
        failed=entry.failed,
        unanswered=entry.unanswered,
        out_of_scope=entry.out_of_scope,
        squares=float(entry.squares),
        clustered=entry.clustered,
        units=None if units is None else _units(entry, units, where),
        terms={key: np.array(totals, dtype=np.float64) for key, totals in entry.terms.items() if key in _TERMS},
    )
    _check_counts(tally, where)
    _check_terms(tally, where)
    return tally


def _sweep(entry: Entry, levels: pl.DataFrame, where: str) -> Sweep:
    threshold = levels["threshold"].cast(pl.Float64)
    highest = levels["upper"].cast(pl.Float64).fill_null(threshold).to_numpy()
    lowest, right, wrong = (part.to_numpy() for part in (threshold, levels["right"], levels["wrong"]))
    _demand(not np.isnan(lowest).any() and not np.isnan(highest).any(), "a threshold is not a number", where)
    _demand(bool((highest >= lowest).all()), "no upper end may lie below its threshold", where)
    _demand(bool((lowest[1:] > highest[:-1]).all()), "thresholds must rise", where)
    for kind, counts, said in (("right", right, entry.right), ("wrong", wrong, entry.wrong)):
        _check_sum(kind, counts, said, where)
    upper = highest if (highest > lowest).any() else None
    return Sweep(lowest, _whole(right), _whole(wrong), float(entry.withheld_weight), entry.n, upper)


def _units(entry: Entry, units: pl.DataFrame, where: str) -> pl.DataFrame:
    sound = bool(units["bucket"].is_between(0, BUCKETS - 1).all())  # rows that nothing names are in no bucket
    _demand(sound, f"a bucket must be a number from 0 to {BUCKETS - 1}", where)
    least = units["least"].cast(pl.Float64)
    sound = bool(((least >= 0) & (least < NUMBERS)).fill_null(units["bucket"].is_null()).all())
    _demand(sound, f"the least number of a bucket must be one from 0 to {NUMBERS - 1}", where)
    _demand(not units["confidence"].cast(pl.Float64).is_nan().any(), "a confidence of the units is not a number", where)
    for kind, said in zip(_SUMS, (entry.right, entry.wrong, entry.withheld_weight), strict=True):
        _check_sum(f"{kind} in units", units[kind].to_numpy(), said, where)
    return units.select(pl.col(column).cast(kind) for column, kind in UNITS.items())


def _check_sum(kind: str, counts: NDArray[Any], said: float, where: str) -> None:
    _demand(bool((np.isfinite(counts) & (counts >= 0)).all()), f"counts of {kind} must be numbers of at least 0", where)
    found = _number(counts.sum())
    if not isclose(found, said, rel_tol=_LAST_DIGITS):
        raise DataError(f"{kind} must add up to {_number(said)}, as {HEADER} says", where=where, got=found, fix=AGAIN)


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
            raise DataError(
                f'joins close confidences and has no totals of "{key}"',
                where=where,
                fix="write it again with this demur",
            )


def _demand(holds: bool, rule: str, where: str) -> None:
    if not holds:
        raise DataError(rule, where=where, fix=AGAIN)
