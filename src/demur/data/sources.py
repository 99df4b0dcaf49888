"""Paths, globs and standard input become files whose format is known."""

import glob
import select
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Literal, cast

from demur.data.columns import nearest
from demur.data.lines import Compression, compression_of, first_bytes
from demur.errors import DataError

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
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its path, the name shown for it, how it is coded, and the system it would stand for."""

    path: Path
    name: str
    format: Format
    compression: Compression
    stem: str


@contextmanager
def opened(*requested: str | Path) -> Iterator[list[Source]]:
    """Gives the files that paths, globs and `-` stand for; what a pipe held is removed at the end."""
    if not requested:
        raise DataError("no file to read was given", fix='name a file, a glob, or "-" for standard input')
    with ExitStack() as stack:
        sources = []
        for item in requested:
            if str(item) == "-":
                path = stack.enter_context(_spooled(cast(BufferedReader, sys.stdin.buffer)))
                sources.append(_source(path, "<stdin>", "stdin"))
            else:
                sources.extend(_source(path, str(path), stem_of(path)) for path in expand(item))
        _refuse_repeats(sources)
        yield sources


def _refuse_repeats(sources: list[Source]) -> None:
    seen = set()
    for source in sources:
        path = source.path.resolve()
        if path in seen:
            raise DataError("is given twice", where=source.name, fix="its rows would count twice")
        seen.add(path)


def expand(item: str | Path) -> list[Path]:
    """Gives the files a path or glob stands for, in sorted order."""
    path = Path(item)
    if path.is_dir():
        raise DataError("is a folder, not a file", where=f"{path}", fix=f'try "{path}/*.jsonl"')
    if path.exists():
        return [path]
    if glob.has_magic(str(item)):
        found = sorted(Path(match) for match in glob.glob(str(item), recursive=True) if Path(match).is_file())
        if found:
            return found
        raise DataError("matches no file", where=str(item), fix=_near_misses(path))
    raise DataError("does not exist", where=str(item), fix=_near_misses(path))


def stem_of(path: Path) -> str:
    """Gives a file's name without its endings: `run.jsonl.gz` is `run`, `run.v2.csv` is `run.v2`."""
    bare = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return bare.stem or path.name


def _near_misses(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'the folder "{folder}" does not exist either'
    names = [entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    hint = nearest(path.name, sorted(names))
    return hint if hint.startswith("did you mean") else ""


@contextmanager
def _spooled(stream: BufferedReader) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as spool:
            while chunk := _next_chunk(stream):
                spool.write(chunk)
        yield path


def _next_chunk(stream: BufferedReader) -> bytes:
    """Waits for input in `select`, which Ctrl-C ends at once; Polars has a blocked read go on regardless."""
    with suppress(OSError, ValueError):
        select.select([stream], [], [])
    return stream.read1(CHUNK)


def _source(path: Path, name: str, stem: str) -> Source:
    try:
        with path.open("rb") as file:
            compression = compression_of(file.read(4))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=name) from None
    head = first_bytes(path, compression, name)
    if not head.strip():
        raise DataError("is empty", where=name, fix="it needs at least one row")
    _refuse_utf16(head, name)
    return Source(path, name, _format(path, head, name), compression, stem)


def _refuse_utf16(head: bytes, name: str) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        convert = f"convert it: iconv -f UTF-16 -t UTF-8 {name} > converted"
        raise DataError("is not UTF-8: it begins with the mark of UTF-16 at byte 0", where=name, fix=convert)


def _format(path: Path, head: bytes, name: str) -> Format:
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    by_content = _sniffed(head)
    if by_content in ("parquet", "arrow"):
        return by_content
    if endings and endings[-1] in EXTENSIONS:
        return EXTENSIONS[endings[-1]]
    if by_content is None:
        known = " ".join(EXTENSIONS)
        rule = "is in no format known here"
        raise DataError(rule, where=name, fix=f"known endings: {known}, the text formats also with .gz or .zst")
    return by_content


def _sniffed(head: bytes) -> Format | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    first = text.split(b"\n", 1)[0]
    if b"\0" in head:
        return None
    if b"\t" in first:
        return "tsv"
    return "csv" if b"," in first else None
