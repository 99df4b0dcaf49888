"""Paths, globs and standard input become files whose format is known."""

import glob
import os
import re
import select
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import Literal, cast

from demur.data.encoding import refuse_binary, refuse_other_kinds
from demur.data.lines import Compression, compression_of, first_bytes
from demur.errors import DataError
from demur.show import path_text

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

READABLE = f"known endings: {' '.join(EXTENSIONS)}, the text formats also with .gz or .zst"
_COLUMNAR = ("parquet", "arrow")
_DESCRIPTOR = re.compile(r"/(dev|proc/[^/]+)/fd/\d+")
_NEAR = 0.65


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its path, the name shown for it, how it is coded, and the system it would stand for."""

    path: Path
    name: str
    format: Format
    compression: Compression
    stem: str


@contextmanager
def opened(*requested: str | Path | Source) -> Iterator[list[Source]]:
    """Gives the files that paths, globs and `-` stand for; what a pipe held is removed at the end.

    A source that was opened before is given as it is, so that a pipe can be read several times.
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
                sources.append(_source(stack.enter_context(_spooled(stream, "stdin")), "<stdin>", "stdin"))
                continue
            for path in expand(item):
                if path.is_file():
                    readable = path if _is_text(path) else stack.enter_context(_linked(path))
                    sources.append(_source(readable, path_text(path), stem_of(path)))
                else:
                    sources.append(stack.enter_context(_piped(path, {source.stem for source in sources})))
        _refuse_repeats(sources)
        yield sources


def _is_text(path: Path) -> bool:
    """Whether a path is text; one that Python could not decode has surrogates, which Polars does not take."""
    return path_text(path) == str(path)


@contextmanager
def _linked(path: Path) -> Iterator[Path]:
    """Gives a link to a file under a name of ASCII with the same endings."""
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        link = Path(folder) / f"link{_ascii_endings(path)}"
        link.symlink_to(path.resolve())
        yield link


def _ascii_endings(path: Path) -> str:
    return "".join(suffix for suffix in path.suffixes if suffix.isascii())


@contextmanager
def _piped(path: Path, taken: Collection[str]) -> Iterator[Source]:
    """Reads a pipe to its end, as it can be read only once; one without a name of its own is called `pipe`."""
    name, stem = path_text(path), stem_of(path)
    if _DESCRIPTOR.fullmatch(name):
        stem = next(free for number in count(1) if (free := f"pipe-{number}" if number > 1 else "pipe") not in taken)
        name = f"<{stem}>"
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise _unreadable(error, name) from None
        spool = stack.enter_context(_spooled(stream, f"pipe{_ascii_endings(path)}"))
        yield _source(spool, name, stem)


def _refuse_repeats(sources: list[Source]) -> None:
    seen = set()
    for source in sources:
        path = source.path.resolve()
        if path in seen:
            raise DataError("is given twice", where=source.name, fix="its rows would count twice")
        seen.add(path)


def is_pipe(item: str | Path) -> bool:
    """Whether what is named can be read only once: standard input, or a pipe."""
    return str(item) == "-" or (Path(item).exists() and not Path(item).is_file() and not Path(item).is_dir())


def expand(item: str | Path) -> list[Path]:
    """Gives the files a path or glob stands for, in sorted order."""
    path = Path(item)
    if path.is_dir():
        raise DataError("is a folder, not a file", where=f"{path}", fix=_inside(path))
    if path.exists():
        return [path]
    if glob.has_magic(str(item)):
        found = sorted(Path(match) for match in glob.glob(str(item), recursive=True) if Path(match).is_file())
        if found:
            return found
        raise DataError("matches no file", where=str(item), fix=_near_misses(path))
    raise DataError("does not exist", where=str(item), fix=_near_misses(path))


def _inside(folder: Path) -> str:
    """Says how to name the files in a folder; `score` takes one of Parquet as it is."""
    if any(folder.rglob("*.parquet")):
        return f'try "{folder}/*.parquet"; score, threshold and classes take the folder as one log with --engine polars'
    return f'try "{folder}/*.jsonl"'


def stem_of(path: Path) -> str:
    """Gives a file's name without its endings: `run.jsonl.gz` is `run`, `run.v2.csv` is `run.v2`."""
    bare = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return path_text(bare.stem or path.name)


def _near_misses(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'the folder "{folder}" does not exist either'
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    near = sorted((name for name in names if _likeness(path.name, name) >= _NEAR), key=partial(_likeness, path.name))
    return "did you mean " + " or ".join(f'"{name}"' for name in near[:-4:-1]) + "?" if near else ""


def _likeness(name: str, other: str) -> float:
    """Compares names without their endings, as any two of a kind share these."""
    stem, other_stem = (stem_of(Path(each)).casefold() for each in (name, other))
    return SequenceMatcher(None, stem, other_stem).ratio()


@contextmanager
def _spooled(stream: BufferedReader, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        path = Path(folder) / name
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
        raise _unreadable(error, name) from None
    head = first_bytes(path, compression, name)
    if not head.strip():
        raise DataError("is empty", where=name, fix="it needs at least one row")
    return Source(path, name, format_of(path, head, name), compression, stem)


def _unreadable(error: OSError, name: str) -> DataError:
    return DataError(f"cannot be read: {error.strerror}", where=name)


def format_of(path: Path, head: bytes, name: str) -> Format:
    """Tells the format of a file by how it begins and ends its name."""
    by_content = _sniffed(head)
    if by_content in _COLUMNAR:
        return by_content
    refuse_other_kinds(head, name, READABLE)
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    by_ending = EXTENSIONS.get(endings[-1]) if endings else None
    if by_ending in _COLUMNAR:
        return by_ending
    refuse_binary(head, name, READABLE)
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
