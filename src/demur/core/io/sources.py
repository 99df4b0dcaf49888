"""Paths, globs and standard input become files of a known format; their bytes and lines, compressed or not.

What Polars prints by itself when it panics at a damaged file is kept from standard error here too.
"""

import glob
import gzip
import os
import re
import select
import shutil
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from io import BufferedReader
from itertools import count, islice
from pathlib import Path
from typing import IO, Literal, NoReturn, cast

import msgspec
import polars as pl
from polars.exceptions import PanicException, PolarsError

from demur.core.show.results import path_text
from demur.errors import DataError

Compression = Literal["", "gzip", "zstd"]
Format = Literal["json", "csv", "tsv", "parquet", "arrow"]

EXTENSIONS: dict[str, Format] = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSED = (".gz", ".zst")
READABLE = f"known endings: {' '.join(EXTENSIONS)}, the text formats also with .gz or .zst"

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"BZh9", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    *((bytes([0x80, protocol]), "a Python pickle") for protocol in range(2, 6)),
)
"""How files of kinds that are not read here begin."""

UNREADABLE = (PolarsError, PanicException, OSError)
"""What Polars raises when it cannot read a file; it panics at some that are damaged."""

NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises at text it cannot read."""

LEAST_FREE = 256 << 20
"""Bytes that a pipe leaves free in the folder for temporary files."""

HEAD = 4096
CHUNK = 1 << 20
BLOCK_LINES = 10_000
_COLUMNAR = ("parquet", "arrow")
_DESCRIPTOR = re.compile(r"/(dev|proc/[^/]+)/fd/\d+")
_NEAR = 0.65
_MUCH, _SEVERAL = 0.02, 8
_CONTROL = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\f\x1b")
_STILL_COMPRESSED = "(\ufffd/\ufffd"
_RARE = "\x01\x02\x03\x04\x1c\x1d\x1e\x1f"
"""Characters that hardly any text holds, and none all of them."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PANIC = re.compile(rb"thread '.*' .*panicked at ")
_MORE = (b" ", b"\t", b"stack backtrace:", b"note: ")
"""How lines begin that go on about a panic, after where it was and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its path, the name shown for it, how it is coded, and the system it would stand for.

    A log of another tool has been read already: its rows are in `frame`, `origin` says what it is a log of, and
    `notes` what was taken for what.
    """

    path: Path
    name: str
    format: Format | Literal["other"]
    """How its rows are coded; other is what no reader of tables knows."""
    compression: Compression
    stem: str
    frame: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    origin: str = ""
    notes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths to values inside the objects and lists of a row."""

    def head(self) -> bytes:
        """Gives the beginning of the file, decompressed."""
        return first_bytes(self.path, self.compression, self.name)

    def lines(self, limit: int | None = None) -> Iterator[bytes]:
        """Gives the lines of a text file, decompressed, at most `limit` of them."""
        return lines(self.path, self.compression, self.name, limit=limit)

    def blocks(self, *, cut: bool = False) -> Iterator[bytes]:
        """Gives the lines of a text file, decompressed, many at a time; with `cut` in blocks that end anywhere."""
        if self.compression == "zstd":
            lines = self.lines()
            while block := b"".join(islice(lines, BLOCK_LINES)):
                yield block
            return
        try:
            with gzip.open(self.path) if self.compression == "gzip" else self.path.open("rb") as file:
                while block := file.read(CHUNK):
                    yield block if cut else block + file.readline()
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise cut_off(self.name) from None


@contextmanager
def opened(*requested: str | Path | Source, others: bool = False) -> Iterator[list[Source]]:
    """Gives the files that paths, globs and `-` stand for; what a pipe held is removed at the end.

    A source that was opened before is given as it is, so that a pipe can be read several times. With `others`, files
    that no reader of tables knows are given too.
    """
    if not requested:
        raise DataError("no file to read was given", fix='name a file, a glob, or "-" for standard input')
    with ExitStack() as stack:
        sources: list[Source] = []
        for item in requested:
            if isinstance(item, Source):
                sources.append(item)
                continue
            if str(item) == "-":
                stream = cast(BufferedReader, sys.stdin.buffer)
                sources.append(_source(stack.enter_context(_spooled(stream, "stdin")), "<stdin>", "stdin", others))
                continue
            for path in expand(item):
                if path.is_file():
                    name = path_text(path)
                    readable = path if name == str(path) else stack.enter_context(_linked(path))
                    sources.append(_source(readable, name, stem_of(path), others))
                else:
                    taken = {source.stem for source in sources}
                    sources.append(stack.enter_context(_piped(path, taken, others)))
        refuse_repeats((source.path, source.name) for source in sources)
        yield sources


@contextmanager
def _linked(path: Path) -> Iterator[Path]:
    """Gives a link to a file under a name of ASCII with the same endings; Polars does not take surrogates."""
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        link = Path(folder) / f"link{_ascii_endings(path)}"
        try:
            link.symlink_to(path.resolve())
        except OSError:  # on Windows not everybody may make links
            shutil.copyfile(path, link)
        yield link


def _ascii_endings(path: Path) -> str:
    return "".join(suffix for suffix in path.suffixes if suffix.isascii())


@contextmanager
def _piped(path: Path, taken: Collection[str], others: bool) -> Iterator[Source]:
    """Reads a pipe to its end, as it can be read only once; one without a name of its own is called `pipe`."""
    name, stem = path_text(path), stem_of(path)
    if _DESCRIPTOR.fullmatch(name):
        stem = next(free for number in count(1) if (free := f"pipe-{number}" if number > 1 else "pipe") not in taken)
        name = f"<{stem}>"
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=name) from None
        spool = stack.enter_context(_spooled(stream, f"pipe{_ascii_endings(path)}"))
        yield _source(spool, name, stem, others)


@contextmanager
def _spooled(stream: BufferedReader, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        path, size = Path(folder) / name, 0
        with path.open("wb") as spool:
            while chunk := _next_chunk(stream):
                size += len(chunk)
                if shutil.disk_usage(folder).free < LEAST_FREE + len(chunk):
                    _refuse_spooling(size)
                spool.write(chunk)
        yield path


def _refuse_spooling(size: int) -> NoReturn:
    rule = f"what comes through the pipe, {size:,} bytes so far, does not fit into the folder for temporary files"
    raise DataError(
        rule, fix=f"name another folder in TMPDIR, or write it to a file first; {tempfile.gettempdir()} is full"
    )


def _next_chunk(stream: BufferedReader) -> bytes:
    """Waits for input in `select`, which Ctrl-C ends at once; Polars has a blocked read go on regardless."""
    with suppress(OSError, ValueError):
        select.select([stream], [], [])
    return stream.read1(CHUNK)


def refuse_repeats(files: Iterable[tuple[Path, str]]) -> None:
    """Refuses a file, a path and what it is called, that is given twice."""
    seen = set()
    for path, name in files:
        if path.resolve() in seen:
            raise DataError("is given twice", where=name, fix="its rows would count twice")
        seen.add(path.resolve())


def is_pipe(item: str | Path) -> bool:
    """Whether what is named can be read only once: standard input, or a pipe."""
    return str(item) == "-" or (Path(item).exists() and not Path(item).is_file() and not Path(item).is_dir())


def expand(item: str | Path) -> list[Path]:
    """Gives the files a path or glob stands for, in sorted order."""
    path = Path(item)
    if path.is_dir():
        fix = f'try "{path}/*.jsonl"'
        if any(path.rglob("*.parquet")):
            engines = "score, threshold and classes take the folder as one log with --engine polars"
            fix = f'try "{path}/*.parquet"; {engines}'
        raise DataError("is a folder, not a file", where=f"{path}", fix=fix)
    if path.exists():
        return [path]
    if glob.has_magic(str(item)):
        found = sorted(Path(match) for match in glob.glob(str(item), recursive=True) if Path(match).is_file())
        if found:
            return found
        raise DataError("matches no file", where=str(item), fix=_near_misses(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()  # what else keeps it from being read, `exists` does not say from Python 3.14 on
    raise DataError("does not exist", where=str(item), fix=_near_misses(path))


def file_and_column(item: str | Path) -> tuple[str | Path, str | None]:
    """The two sides of FILE:COLUMN where FILE exists and what is named as a whole does not; otherwise no column.

    >>> file_and_column("no-such-file.csv:score")
    ('no-such-file.csv:score', None)
    """
    file, colon, column = str(item).rpartition(":")
    if not colon or not column or not file or Path(item).exists():
        return item, None
    there = file == "-" or Path(file).is_file() or (glob.has_magic(file) and bool(glob.glob(file, recursive=True)))
    return (file, column) if there else (item, None)


def confidence_column(data: object) -> str | None:
    """The column of confidences that FILE:COLUMN names; None where no column is named."""
    return file_and_column(data)[1] if isinstance(data, str | Path) else None


def _near_misses(path: Path) -> str:
    """Names the files that are called much alike, endings apart, as any two of a kind share these."""
    folder = path.parent
    if not folder.is_dir():
        return f'the folder "{folder}" does not exist either'
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    stem = stem_of(path).casefold()
    likeness = {name: SequenceMatcher(None, stem, stem_of(Path(name)).casefold()).ratio() for name in names}
    near = sorted((name for name in names if likeness[name] >= _NEAR), key=lambda name: likeness[name])
    return "did you mean " + " or ".join(f'"{name}"' for name in near[:-4:-1]) + "?" if near else ""


def stem_of(path: Path) -> str:
    """Gives a file's name without its endings: `run.jsonl.gz` is `run`, `run.v2.csv` is `run.v2`."""
    bare = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return path_text(bare.stem or path.name)


def system_names(files: Sequence[Source]) -> tuple[list[str], list[str]]:
    """Names each file's system by its stem, with the folder before it where two files share a stem."""
    stems = Counter(file.stem for file in files)
    folders = Counter((_folder(file), file.stem) for file in files)
    names, notes = [], []
    for file in files:
        folder = _folder(file)
        shared = stems[file.stem] > 1 and folders[folder, file.stem] == 1
        names.append(f"{folder}/{file.stem}" if shared else file.stem)
        if shared:
            notes.append(f'{file.name} read as system "{names[-1]}"')
    return names, notes


def _folder(file: Source) -> str:
    """Gives the folder of a file as it was named: what came through a pipe lies in a passing one."""
    return path_text(Path(os.path.abspath(file.name)).parent.name)


def _source(path: Path, name: str, stem: str, others: bool) -> Source:
    try:
        compression = compression_at(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=name) from None
    head = first_bytes(path, compression, name)
    if not head.strip():
        raise DataError("is empty", where=name, fix="it needs at least one row")
    try:
        return Source(path, name, format_of(path, head, name), compression, stem)
    except DataError:
        if not others:
            raise
        return Source(path, name, "other", compression, stem)


def format_of(path: Path, head: bytes, name: str) -> Format:
    """Tells the format of a file by how it begins and ends its name."""
    by_content = _sniffed(head)
    if by_content in _COLUMNAR:
        return by_content
    for start, kind in MAGIC:
        if head.startswith(start):
            raise DataError("is a binary file", where=name, fix=f"looks like {kind}; {READABLE}")
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    by_ending = EXTENSIONS.get(endings[-1]) if endings else None
    if by_ending in _COLUMNAR:
        return by_ending
    _refuse_binary(head, name)
    found = by_ending or by_content
    if found is None:
        raise DataError("is in no format known here", where=name, fix=READABLE)
    return found


def _sniffed(head: bytes) -> Format | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    first = text.split(b"\n", 1)[0]
    if b"\t" in first:
        return "tsv"
    return "csv" if b"," in first else None


def _refuse_binary(head: bytes, name: str) -> None:
    """Refuses what begins with UTF-16 or with control bytes that text does not have."""
    convert = f"convert it: iconv -f UTF-16 -t UTF-8 {name} > converted"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("is not UTF-8: it begins with the mark of UTF-16 at byte 0", where=name, fix=convert)
    # UTF-16 has zeros in most of the even or most of the odd bytes, and in hardly any of the others
    zeros = sorted(half.count(0) / max(len(half), 1) for half in (head[::2], head[1::2]))
    if zeros[0] < 0.05 and zeros[1] > 0.7:
        raise DataError("is not UTF-8: it looks like UTF-16 without its mark", where=name, fix=convert)
    count = _control_bytes(head)
    if count > max(_SEVERAL, _MUCH * len(head)):
        fix = f"{count:,} of its first {len(head):,} bytes are control characters; {READABLE}"
        raise DataError("is a binary file", where=name, fix=fix)


def _control_bytes(text: bytes) -> int:
    return len(text) - len(text.translate(None, _CONTROL))


def not_utf8(error: UnicodeDecodeError, where: str) -> DataError:
    """Gives the fault of a line that is not UTF-8, with the offending byte and how to convert the file."""
    byte = error.object[error.start]
    rule = f"byte {error.start} of the line (0x{byte:02x}) is not UTF-8"
    if _control_bytes(error.object):
        return DataError(rule, where=where, fix="the line also holds control bytes: is the file damaged or binary?")
    guess = "Windows-1252" if any(0x80 <= byte <= 0x9F for byte in error.object) else "Latin-1"
    fix = f"convert the file: iconv -f {guess} -t UTF-8 FILE > converted"
    return DataError(f"{rule}; it looks like {guess}", where=where, fix=fix)


def compression_of(start: bytes) -> Compression:
    """Tells from its first four bytes how a file is compressed."""
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    return "zstd" if start.startswith(b"\x28\xb5\x2f\xfd") else ""


def compression_at(path: Path) -> Compression:
    """Tells how a file is compressed."""
    with path.open("rb") as file:
        return compression_of(file.read(4))


def first_bytes(path: Path, compression: Compression, name: str, size: int = HEAD) -> bytes:
    """Gives the beginning of a file, decompressed."""
    if compression == "zstd":
        return b"".join(_zstd_lines(path, name, limit=2 if size == HEAD else size // 32))[:size]
    if compression == "gzip":
        try:
            with gzip.open(path) as file:
                return file.read1(size) if size == HEAD else file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise cut_off(name) from None
    with path.open("rb") as file:
        return file.read(size)


def lines(path: Path, compression: Compression, name: str, *, limit: int | None = None) -> Iterator[bytes]:
    """Gives the lines of a text file, decompressed, at most `limit` of them."""
    if compression == "zstd":
        yield from _zstd_lines(path, name, limit=limit)
        return
    try:
        with gzip.open(path) if compression == "gzip" else path.open("rb") as file:
            yield from islice(file, limit)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise cut_off(name) from None


def cut_off(name: str) -> DataError:
    """Gives the fault of a compressed file that ends too early."""
    return DataError(
        "is cut off or damaged: its compressed data ends too early", where=name, fix="copy or write it again"
    )


def _zstd_lines(path: Path, name: str, *, limit: int | None) -> Iterator[bytes]:
    """Reads each line as one cell of a one-column table: Polars decompresses zstd, older Pythons do not."""
    cells = next((found for mark in _RARE if (found := _one_column(path, mark, limit)) is not None), None)
    if cells is None or (not cells.is_empty() and (cells.item(0, 0) or "").startswith(_STILL_COMPRESSED)):
        raise cut_off(name)
    for cell in cells.to_series() if cells.width else ():
        yield (cell or "").encode() + b"\n"


def _one_column(path: Path, separator: str, limit: int | None) -> pl.DataFrame | None:
    """Gives the lines of a file as a column; None where the separator occurs in them or they cannot be read."""
    try:
        cells = pl.read_csv(
            exactly(path),
            has_header=False,
            separator=separator,
            quote_char=None,
            infer_schema=False,
            n_rows=limit,
            encoding="utf8-lossy",
        )
    except UNREADABLE as error:
        return pl.DataFrame() if "empty" in str(error) else None
    return cells if cells.width == 1 else None


def exactly(path: Path) -> str:
    """Gives a path as Polars must be told it, so that brackets and stars in it are not taken for a glob."""
    name = path_text(path)
    return glob.escape(name) if glob.has_magic(name) else name


def without_panics_in(printed: bytes) -> bytes:
    r"""Gives what was printed besides panics.

    >>> without_panics_in(b"a\n\nthread 'x' (7) panicked at f.rs:1:2:\nassertion failed\n  left: 1\nb\n")
    b'a\nb\n'
    """
    kept: list[bytes] = []
    since = None
    for line in printed.splitlines(keepends=True):
        if _PANIC.match(line):
            since = 0
            del kept[len(kept) - (kept[-1:] == [b"\n"]) :]
        elif since is not None and (since == 0 or line.startswith(_MORE)):
            since += 1
        else:
            since = None
            kept.append(line)
    return b"".join(kept)


class _Redirection:
    """Standard error while it goes to a file; what Python prints still goes where it would."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._ends = ExitStack()

    def begin(self) -> None:
        with self._lock:
            self._within += 1
            if self._within == 1:
                with suppress(OSError, ValueError), ExitStack() as stack:
                    self._redirect(stack)
                    self._ends = stack.pop_all()

    def end(self) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._ends.close()

    def _redirect(self, stack: ExitStack) -> None:
        kept = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        before = os.dup(2)
        stack.callback(os.close, before)
        stack.callback(_print_rest, kept)
        python = sys.stderr
        if python is not None and _descriptor_of(python) == 2:
            python.flush()
            other = os.fdopen(os.dup(before), "w", buffering=1, encoding=python.encoding, errors=python.errors)
            sys.stderr = stack.enter_context(other)
            stack.callback(setattr, sys, "stderr", python)
        os.dup2(kept.fileno(), 2)
        stack.callback(os.dup2, before, 2)


def _descriptor_of(stream: IO[str]) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _print_rest(kept: IO[bytes]) -> None:
    kept.seek(0)
    rest = without_panics_in(kept.read())
    if rest:
        with suppress(OSError):
            os.write(2, rest)


_redirection = _Redirection()


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Has panics of Polars print nothing, unless DEMUR_DEBUG is set; several threads may ask for it at once."""
    if os.environ.get("DEMUR_DEBUG"):
        yield
        return
    _redirection.begin()
    try:
        yield
    finally:
        _redirection.end()


def is_remote(source: str | Path) -> bool:
    """Tells whether a source is a URL that only an engine can read.

    >>> is_remote("s3://bucket/log/*.parquet"), is_remote("file:///log/a.parquet"), is_remote("a.parquet")
    (True, False, False)
    """
    return bool(URL.match(str(source))) and not str(source).lower().startswith("file://")
