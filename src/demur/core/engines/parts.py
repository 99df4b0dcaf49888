"""The parts of a log that is too large for memory: which files they are, and that they agree."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import polars as pl

from demur.core.engines.engine import engine_faults
from demur.core.io.sources import exactly, expand, stem_of
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError

Columns = Mapping[str, str]
"""The type of each column, by name."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_ENDINGS = (".parquet", ".pq")
_LAKES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_AT_ONCE = 8

CONVERT = "leave out --engine to read it in memory, or convert it to Parquet"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file on this machine: its path, its columns, its rows, and its size and time when it was looked at.

    `partitions` are the columns in the names of its folders (`date=2024-01-01`), below the folder `base`.
    """

    path: Path
    base: Path
    partitions: tuple[str, ...]
    format: Literal["parquet", "arrow"]
    stored: Columns
    rows: int
    stamp: tuple[int, int]

    @property
    def name(self) -> str:
        """The path as shown."""
        return path_text(self.path)

    @property
    def columns(self) -> Columns:
        """The columns in the file, then those in the names of its folders; of two namesakes the one in the file."""
        return {**dict.fromkeys(self.partitions, "String"), **self.stored}

    def refuse_changes(self) -> None:
        """Refuses the part if it has vanished or was written since it was looked at."""
        try:
            stamp = stamp_of(self.path)
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if stamp != self.stamp:
            raise DataError("was changed while it was read", where=self.name, fix="try again when it is complete")


def is_remote(source: str | Path) -> bool:
    """Tells whether a source is a URL that only an engine can read.

    >>> is_remote("s3://bucket/log/*.parquet"), is_remote("file:///log/a.parquet"), is_remote("a.parquet")
    (True, False, False)
    """
    return bool(_URL.match(str(source))) and not str(source).lower().startswith("file://")


def local_parts(sources: Sequence[str | Path]) -> list[FilePart]:
    """Gives the files that paths, globs, folders and `file://` URLs stand for, with what their footers say."""
    found = [located for source in sources for located in _located(source)]
    _refuse_repeats(path for path, _ in found)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = list(pool.map(lambda located: _part(*located), found))
    if len({part.format for part in parts}) > 1:
        first, other = parts[0], next(part for part in parts if part.format != parts[0].format)
        rule = f"is {_titled(other.format)}, but {first.name} is {_titled(first.format)}"
        raise DataError(rule, where=other.name, fix="all parts must be in one format")
    return parts


def refuse_disagreement(parts: Iterable[tuple[str, Columns]], wanted: Iterable[str]) -> None:
    """Refuses parts that lack a wanted column others have, or have it in another type."""
    for column in wanted:
        held = [(name, columns.get(column)) for name, columns in parts]
        model, kind = next((name, kind) for name, kind in held if kind is not None)
        for name, other in held:
            if other is None:
                rule = f'has no column "{column}", which {model} has as {kind}'
                raise DataError(rule, where=name, fix="write it again with that column, or leave it out")
            if other != kind:
                rule = f'has column "{column}" as {other}, but {model} has it as {kind}'
                fix = "it holds nothing but nulls; " if "Null" in (other, kind) else ""
                raise DataError(rule, where=name, fix=f"{fix}write it again with the type of the others")


def names_in(parts: Iterable[tuple[str, Columns]]) -> tuple[str, ...]:
    """Gives the names of all columns, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for _, columns in parts for name in columns))


def keys_in(path: str) -> list[str]:
    """Gives the columns in the names of the folders of a path.

    >>> keys_in("s3://lake/log/year=2024/month=03/a.parquet")
    ['year', 'month']
    """
    return [piece.partition("=")[0] for piece in path.split("/")[:-1] if "=" in piece[1:]]


def columns_of_each(files: Sequence[str], columns: Callable[[str], Columns]) -> list[tuple[str, Columns]]:
    """Gives each file with the types of its columns, several read at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip(files, pool.map(columns, files), strict=True))


def system_of(sources: Sequence[str | Path], parts: Sequence[FilePart]) -> str:
    """Gives the name of the system a log stands for: that of its only file, else of the folder all parts lie in."""
    if len(parts) == 1 and not (len(sources) == 1 and _local(sources[0]).is_dir()):
        return stem_of(parts[0].path)
    folder = Path(os.path.commonpath([part.base.resolve() for part in parts]))
    return path_text(folder.name) or "log"


def system_of_url(urls: Sequence[str]) -> str:
    """Gives the name of the system that URLs stand for.

    >>> system_of_url(["s3://lake/logs/march.parquet"]), system_of_url(["s3://lake/logs/date=*/*.parquet"])
    ('march', 'logs')
    """
    if len(urls) == 1 and not glob.has_magic(urls[0]) and urls[0].lower().endswith(_ENDINGS):
        return stem_of(Path(unquote(urlsplit(urls[0]).path)))
    shared = list(takewhile(lambda names: len(set(names)) == 1, zip(*map(_plain_folders, urls), strict=False)))
    return shared[-1][0] if shared else "log"


def _plain_folders(url: str) -> list[str]:
    pieces = [piece for piece in re.split(r"[/]+", _URL.sub("", url, count=1)) if piece]
    plain: list[str] = []
    for piece in pieces:
        if glob.has_magic(piece) or _PARTITION.fullmatch(piece) or piece.lower().endswith(_ENDINGS):
            break
        plain.append(piece)
    return plain


def stamp_of(path: Path) -> tuple[int, int]:
    """Gives the size of a file and when it was last written."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _local(source: str | Path) -> Path:
    text = str(source)
    return Path(unquote(urlsplit(text).path)) if text.lower().startswith("file://") else Path(source)


def _located(source: str | Path) -> list[tuple[Path, Path]]:
    """Gives the files of a source, each with the folder below which the names of folders may hold columns."""
    path = _local(source)
    if str(source) == "-":
        raise UsageError("--engine reads files, not standard input: leave it out, or save the log as Parquet")
    if path.is_dir():
        return [(file, path) for file in _in_folder(path)]
    found = expand(path)
    if not path.exists():
        return [(file, _fixed_folder(path)) for file in found]
    return [(path, path.parent)]


def _in_folder(folder: Path) -> list[Path]:
    for mark, kind in _LAKES.items():
        if (folder / mark).is_dir():
            rule = f"is a {kind} table, whose folder also holds files that are no longer part of it"
            raise DataError(rule, where=str(folder), fix="read it with its own library and hand over the frame")
    files = sorted(file for file in folder.rglob("*") if file.is_file() and _counts(file.relative_to(folder)))
    found = [file for file in files if file.suffix.lower() in _ENDINGS]
    if not found:
        raise DataError("holds no .parquet file", where=str(folder), fix=_held(files))
    return found


def _held(files: Sequence[Path]) -> str:
    if not files:
        return "it is empty"
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return f"it holds {files[0].name}{more}"


def _counts(path: Path) -> bool:
    """Leaves out what writers keep for themselves: names that begin with a dot or, but for partitions, with `_`."""
    return not any(piece.startswith(".") or (piece.startswith("_") and "=" not in piece) for piece in path.parts)


def _fixed_folder(pattern: Path) -> Path:
    pieces = pattern.parts
    magic = next(place for place, piece in enumerate(pieces) if glob.has_magic(piece))
    return Path(*pieces[:magic])


def _refuse_repeats(paths: Iterable[Path]) -> None:
    seen = set()
    for path in paths:
        resolved = path.resolve()
        if resolved in seen:
            raise DataError("is given twice", where=str(path), fix="its rows would count twice")
        seen.add(resolved)


def _part(path: Path, root: Path) -> FilePart:
    try:
        stamp = stamp_of(path)
        kind = _format(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        schema = pl.read_parquet_schema(exactly(path)) if kind == "parquet" else pl.read_ipc_schema(path_text(path))
        scanned = pl.scan_parquet(exactly(path)) if kind == "parquet" else pl.scan_ipc(exactly(path))
        rows = scanned.select(pl.len()).collect().item()
    except engine_faults() as error:
        raise damaged(path, kind, str(error)) from None
    base, partitions = _partitions(path, root)
    return FilePart(path, base, partitions, kind, {name: str(of) for name, of in schema.items()}, rows, stamp)


def _format(path: Path) -> Literal["parquet", "arrow"]:
    with path.open("rb") as file:
        head = file.read(6)
    if not head:
        raise DataError("is empty", where=str(path), fix="was it written to the end?")
    if head.startswith(b"ARROW1"):
        return "arrow"
    if head.startswith(b"PAR1") or path.suffix.lower() in _ENDINGS:
        return "parquet"
    raise DataError("is not Parquet, which engines read", where=str(path), fix=CONVERT)


def damaged(path: Path, kind: str, reason: str) -> DataError:
    """Gives the fault of a file that cannot be read to its end."""
    first = reason.split("\n", 1)[0]
    rule = f"is cut off, damaged or not {_titled(kind)}: {first}"
    return DataError(rule, where=str(path), fix="copy or write it again")


def _titled(kind: str) -> str:
    return kind.capitalize()


def _unreadable(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError("has vanished since it was listed", where=str(path), fix="try again when nothing removes it")
    return DataError(f"cannot be read: {error.strerror}", where=str(path))


def _partitions(path: Path, root: Path) -> tuple[Path, tuple[str, ...]]:
    """Gives the columns in the names of a file's folders, and the folder that holds the first of these."""
    folders = path.relative_to(root).parts[:-1]
    keyed = [(place, match) for place, piece in enumerate(folders) if (match := _PARTITION.fullmatch(piece))]
    base = root.joinpath(*folders[: keyed[0][0]]) if keyed else path.parent
    return base, tuple(unquote(match[1]) for _, match in keyed)
