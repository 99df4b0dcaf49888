"""Files, globs, folders and URLs become one lazy frame in an engine, after all parts are checked to agree."""

import glob
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import narwhals as nw
import polars as pl

from demur.core.engines.engine import Engine, EngineFault, Lazy, as_engine_fault, engine_class, engine_faults, reason_of
from demur.core.io.files import damaged
from demur.core.io.sources import EXTENSIONS, URL, exactly, expand, is_remote, quiet_panics, refuse_repeats, stem_of
from demur.core.io.tables import Request, named_column, refuse_patterns
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError

Columns = Mapping[str, str]
"""The type of each column, by name."""

_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_ENDINGS = (".parquet", ".pq")
_LAKES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_AT_ONCE = 8
_ANSWERS = (
    (re.compile(r"NoSuchBucket"), "there is no such bucket", "is its name right, and the region?"),
    (
        re.compile(r"\b40[13]\b|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|Forbidden"),
        "the store does not accept the credentials",
        "are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what the engine takes instead, those of this store?",
    ),
    (
        re.compile(r"NoSuchKey|\b404\b|PATH_NOT_FOUND|FileNotFound|No files found"),
        "is not there, or one of its parts is not there any more",
        "is the name right? try again when nothing removes parts",
    ),
)
"""What stores on the network answer, in words, with a fix."""

_CONVERT = "leave out --engine to read it in memory, or convert it to Parquet"


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

    @classmethod
    def of(cls, path: Path, root: Path) -> "FilePart":
        """Reads what the footer of a file says; names of folders below `root` may hold columns."""
        try:
            stamp = _stamp(path)
            kind = _format(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        try:
            with quiet_panics():
                rows = _scan_file(path, kind)
                schema = {name: str(of) for name, of in rows.collect_schema().items()}
                count = rows.select(pl.len()).collect().item()
        except engine_faults() as error:
            raise damaged(str(path), kind, error) from None
        folders = path.relative_to(root).parts[:-1]
        keyed = [(place, match) for place, piece in enumerate(folders) if (match := _PARTITION.fullmatch(piece))]
        base = root.joinpath(*folders[: keyed[0][0]]) if keyed else path.parent
        return cls(path, base, tuple(unquote(match[1]) for _, match in keyed), kind, schema, count, stamp)

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
            stamp = _stamp(self.path)
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if stamp != self.stamp:
            raise DataError("was changed while it was read", where=self.name, fix="try again when it is complete")

    def read_through(self, wanted: Sequence[str]) -> None:
        """Reads the wanted columns to the end, keeping nothing."""
        stored = [name for name in wanted if name in self.stored]
        try:
            rows = _scan_file(self.path, self.format)
            with quiet_panics():
                rows.select(named_column(name).is_null().sum() for name in stored).collect(engine="streaming")
        except engine_faults() as error:
            raise damaged(str(self.path), self.format, error) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One log in an engine: a lazy frame of the columns wanted, and what is known of its parts.

    `names` are all columns there are, `parts` the files as shown, `rows` how many rows they hold where their
    footers could be read. `system` is the name for rows without a column `system`. The parts of a scan are one
    log; read into memory, each file would stand for a system of its own.
    """

    frame: Lazy = field(repr=False)
    names: tuple[str, ...]
    parts: tuple[str, ...]
    rows: int | None
    system: str
    wanted: tuple[str, ...]
    files: tuple[FilePart, ...] = field(default=(), repr=False)
    holder: object = field(default=None, repr=False)
    """What must live as long as the frame: DuckDB's connection, Spark's session."""

    def refuse_changes(self) -> None:
        """Refuses files on this machine that vanished or were written since the scan began."""
        for file in self.files:
            file.refuse_changes()

    def blame(self, error: BaseException) -> DataError:
        """Gives the fault of the part that made an engine fail, or the engine's own words where none is found.

        Spark names the part itself where a page does not match its checksum.
        """
        try:
            self.refuse_changes()
            for file in self.files:
                file.read_through(self.wanted)
        except DataError as fault:
            return fault
        if not self.files:
            return remote_fault(error, ", ".join(self.parts))
        message = str(error.__cause__ or error)
        for file in self.files:
            if str(file.path.resolve()) in message:
                causes = [line for line in message.splitlines() if line.startswith("Caused by: ")]
                reason = reason_of(OSError(causes[-1] if causes else message))
                return DataError(f"cannot be read: {reason}", where=file.name, fix="copy or write it again")
        return error if isinstance(error, DataError) else EngineFault.of(error)


def scan(
    sources: Sequence[str | Path],
    engine: str,
    *,
    request: Request,
    spark_master: str | None = None,
    memory: str | None = None,
    started: Engine | None = None,
) -> Scan:
    """Gives the rows of files, globs, folders or URLs as one lazy frame of the columns a request wants.

    A folder stands for all Parquet files below it; names like `date=2024-01-01` of folders below what was named
    become columns of text. Parts that lack a wanted column, or have it in another type, are refused before
    anything is counted. Frames of an engine that is `started` already can be joined with each other.
    """
    if not sources:
        raise DataError("no file to read was given", fix="name a file, a glob, a folder or a URL")
    remote = [str(source) for source in sources if is_remote(source)]
    if remote and len(remote) < len(sources):
        raise UsageError("files on this machine and URLs cannot be read as one log: score them apart and merge")
    kind = engine_class(engine)
    start: Callable[[], Engine] = partial(kind, memory=memory, spark_master=spark_master)
    if started is not None:
        start = partial(_same, started)
    return _scan_urls(remote, start(), request) if remote else _scan_files(sources, engine, kind, start, request)


def _same(engine: Engine) -> Engine:
    return engine


def _scan_files(
    sources: Sequence[str | Path], engine: str, kind: type[Engine], start: Callable[[], Engine], request: Request
) -> Scan:
    """Starts the engine only when all parts were found to agree, which takes no engine."""
    parts = _local_parts(sources)
    first = parts[0].name
    if parts[0].format == "arrow" and not kind.reads_arrow:
        raise DataError(f"is Arrow, which --engine {engine} does not read", where=first, fix=_CONVERT)
    held = [(part.name, part.columns) for part in parts]
    names = _names_in(held)
    wanted = request.among(names)
    rows = sum(part.rows for part in parts)
    if not rows:
        others = f", as all of the {len(parts):,} parts" if len(parts) > 1 else ""
        raise DataError(f"holds no rows{others}", where=first)
    refuse_patterns(wanted, first)
    _refuse_disagreement(held, wanted)
    if kind.folds_case:
        _refuse_twins(parts, wanted)
    stored = {name for part in parts for name in part.stored}
    keys = {key for part in parts for key in part.partitions}
    partitioned = bool((keys - stored).intersection(wanted))
    if partitioned:
        _refuse_overwritten(keys, stored, wanted, first)
    reader = start()
    with as_engine_fault():
        every: Lazy = nw.from_native(reader.local(parts, partitioned))
        _refuse_unnamed(every, wanted, first)
        frame = every.select(wanted)
    return Scan(
        frame=frame,
        names=names,
        parts=tuple(part.name for part in parts),
        rows=rows,
        system=_system_of(sources, parts),
        wanted=tuple(wanted),
        files=tuple(parts),
        holder=reader.holder,
    )


def remote_fault(error: BaseException, where: str) -> DataError:
    """Gives in words what a store on the network answered, or the engine's own words where it is none of the known.

    >>> str(remote_fault(OSError("HTTP 404: <Code>NoSuchBucket</Code>"), "s3://logs/a.parquet"))
    's3://logs/a.parquet there is no such bucket (is its name right, and the region?)'
    """
    message = str(error.__cause__ or error)
    for pattern, rule, fix in _ANSWERS:
        if pattern.search(message):
            return DataError(rule, where=where, fix=fix)
    return error if isinstance(error, DataError) else EngineFault.of(error, where)


@contextmanager
def _as_remote_fault(where: str) -> Iterator[None]:
    try:
        with as_engine_fault(where):
            yield
    except EngineFault as error:
        raise remote_fault(error, where) from error.__cause__


def _scan_urls(urls: Sequence[str], reader: Engine, request: Request) -> Scan:
    with _as_remote_fault(", ".join(urls)):
        held = reader.remote_columns(urls)
        frame: Lazy = nw.from_native(reader.remote(urls))
        stored = _names_in(held)
        names = tuple(dict.fromkeys([*stored, *frame.collect_schema().names()]))
    wanted = request.among(names)
    refuse_patterns(wanted, urls[0])
    _refuse_disagreement(held, [name for name in wanted if name in stored])
    _refuse_unnamed(frame, wanted, urls[0])
    _refuse_overwritten([key for name, _ in held for key in keys_in(name)], stored, wanted, urls[0])
    return Scan(
        frame=frame.select(wanted),
        names=names,
        parts=tuple(name for name, _ in held),
        rows=None,
        system=system_of_url(urls),
        wanted=tuple(wanted),
        holder=reader.holder,
    )


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


def system_of_url(urls: Sequence[str]) -> str:
    """Gives the name of the system that URLs stand for.

    >>> system_of_url(["s3://lake/logs/march.parquet"]), system_of_url(["s3://lake/logs/date=*/*.parquet"])
    ('march', 'logs')
    """
    if len(urls) == 1 and not glob.has_magic(urls[0]) and urls[0].lower().endswith(_ENDINGS):
        return stem_of(Path(unquote(urlsplit(urls[0]).path)))

    def is_plain(piece: str) -> bool:
        return not (glob.has_magic(piece) or _PARTITION.fullmatch(piece) or piece.lower().endswith(_ENDINGS))

    paths = (filter(None, URL.sub("", url, count=1).split("/")) for url in urls)
    folders = (takewhile(is_plain, pieces) for pieces in paths)
    shared = list(takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False)))
    return shared[-1][0] if shared else "log"


def _system_of(sources: Sequence[str | Path], parts: Sequence[FilePart]) -> str:
    """Gives the name of the system a log stands for: that of its only file, else of the folder all parts lie in."""
    if len(parts) == 1 and not (len(sources) == 1 and _local_path(sources[0]).is_dir()):
        return stem_of(parts[0].path)
    folder = Path(os.path.commonpath([part.base.resolve() for part in parts]))
    return path_text(folder.name) or "log"


def lake_files(sources: Sequence[str | Path]) -> list[tuple[Path, Path]]:
    """Gives the files that paths, globs and folders stand for, each with the folder that was named."""
    return [file for source in sources for file in _files_of(source)]


def _local_parts(sources: Sequence[str | Path]) -> list[FilePart]:
    """Gives the files that paths, globs, folders and `file://` URLs stand for, with what their footers say."""
    files = lake_files(sources)
    refuse_repeats((path, str(path)) for path, _ in files)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = list(pool.map(lambda file: FilePart.of(*file), files))
    first = parts[0]
    other = next((part for part in parts if part.format != first.format), None)
    if other is not None:
        rule = f"is {other.format.capitalize()}, but {first.name} is {first.format.capitalize()}"
        raise DataError(rule, where=other.name, fix="all parts must be in one format")
    return parts


def _local_path(source: str | Path) -> Path:
    text = str(source)
    return Path(unquote(urlsplit(text).path)) if text.lower().startswith("file://") else Path(source)


def _files_of(source: str | Path) -> list[tuple[Path, Path]]:
    """Gives the files of a source, each with the folder below which the names of folders may hold columns."""
    if str(source) == "-":
        raise UsageError("--engine reads files, not standard input: leave it out, or save the log as Parquet")
    path = _local_path(source)
    if path.is_dir():
        return [(file, path) for file in _in_folder(path)]
    if path.exists():
        return [(path, path.parent)]
    found = expand(path)
    fixed = Path(*takewhile(lambda piece: not glob.has_magic(piece), path.parts))
    return [(file, fixed) for file in found]


def _in_folder(folder: Path) -> list[Path]:
    """Gives the Parquet files below a folder, but not what writers keep for themselves.

    That are names that begin with a dot or, but for partitions, with `_`.
    """
    for mark, kind in _LAKES.items():
        if (folder / mark).is_dir():
            rule = f"is a {kind} table, whose folder also holds files that are no longer part of it"
            raise DataError(rule, where=str(folder), fix="read it with its own library and hand over the frame")

    def is_hidden(piece: str) -> bool:
        return piece.startswith(".") or (piece.startswith("_") and "=" not in piece)

    below = (file for file in folder.rglob("*") if not any(map(is_hidden, file.relative_to(folder).parts)))
    files = sorted(file for file in below if file.is_file())
    found = [file for file in files if file.suffix.lower() in _ENDINGS]
    if not found:
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        held = f"it holds {files[0].name}{more}" if files else "it is empty"
        logs = next((file for file in files if file.suffix.lower() in EXTENSIONS), None)
        named = "" if logs is None else f"; '{logs.parent}/*{logs.suffix}' reads files as systems"
        raise DataError("holds no .parquet file", where=str(folder), fix=f"{held}{named}")
    return found


def _stamp(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _format(path: Path) -> Literal["parquet", "arrow"]:
    with path.open("rb") as file:
        head = file.read(6)
    if not head:
        raise DataError("is empty", where=str(path), fix="was it written to the end?")
    if head.startswith(b"ARROW1"):
        return "arrow"
    if head.startswith(b"PAR1") or path.suffix.lower() in _ENDINGS:
        return "parquet"
    raise DataError("is not Parquet, which engines read", where=str(path), fix=_CONVERT)


def _scan_file(path: Path, kind: str) -> pl.LazyFrame:
    return pl.scan_parquet(exactly(path)) if kind == "parquet" else pl.scan_ipc(exactly(path))


def _unreadable(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError("has vanished since it was listed", where=str(path), fix="try again when nothing removes it")
    return DataError(f"cannot be read: {error.strerror}", where=str(path))


def _names_in(parts: Iterable[tuple[str, Columns]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, columns in parts for name in columns))


def _refuse_disagreement(parts: Iterable[tuple[str, Columns]], wanted: Iterable[str]) -> None:
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


def _refuse_unnamed(frame: Lazy, wanted: Sequence[str], where: str) -> None:
    """Refuses to read a column without a name in an engine that gives it a name of its own, as DuckDB does."""
    if "" in wanted and "" not in frame.collect_schema().names():
        rule = "has a column without a name, which this engine does not read"
        raise DataError(rule, where=where, fix="name the column, or use --engine polars")


def _refuse_twins(parts: Sequence[FilePart], wanted: Sequence[str]) -> None:
    """Refuses columns that differ only in case, of which DuckDB and Spark would take whichever comes first."""
    for part in parts:
        for name in wanted:
            twin = next((other for other in part.columns if other != name and other.lower() == name.lower()), None)
            if twin is not None:
                rule = f'has columns "{name}" and "{twin}", which differ only in case'
                raise DataError(rule, where=part.name, fix="rename one, or use --engine polars")


def _refuse_overwritten(keys: Iterable[str], stored: Collection[str], wanted: Collection[str], where: str) -> None:
    """Refuses a column stored in the files that engines would overwrite with what the folders' names say."""
    for key in keys:
        if key in stored and key in wanted:
            rule = f'has column "{key}" in the file and in the name of its folder'
            raise DataError(rule, where=where, fix="rename the folder or the column")
