"""Files that appear whole or not at all, and rows written as lines."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from demur.core.io.sources import exactly
from demur.core.io.tables import as_text
from demur.errors import UsageError


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Gives a temporary path to write to, which takes the real name only when the block ends without a fault.

    Missing folders are created. The temporary file keeps the ending of the real one and lies beside it. A file that is
    replaced leaves its mode to the new one; a link stays, and the file that it names is replaced.
    """
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not target.is_file():
        kind = "a folder" if target.is_dir() else "a device or a pipe"
        raise UsageError(f"{path} is {kind}; name a file to write to")
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    with _unwritable(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
        if os.path.exists(target):
            temporary.chmod(target.stat().st_mode & 0o7777)
    try:
        yield temporary
        with _unwritable(path):
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _unwritable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Writes text or bytes to a file that appears whole or not at all."""
    with write_atomically(path) as temporary, _unwritable(path):
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_NOT_IN_JSON = "\x01"


def check_rows_file(path: Path, option: str = "-o") -> None:
    """Refuses a file that rows cannot be written to, before any work is done."""
    if not path.name.lower().endswith(ENDINGS):
        raise UsageError(f'{option} {path}: the name must end in one of {" ".join(ENDINGS)}; got "{path.name}"')
    if path.is_dir():
        raise UsageError(f"{option} {path}: this is a directory; name a file in it")


def as_lines(rows: Iterable[Any]) -> Iterator[bytes]:
    """Each row as a line of JSON."""
    encoder = msgspec.json.Encoder()
    return (encoder.encode(row) + b"\n" for row in rows)


def write_rows(path: Path, rows: Iterable[Any]) -> int:
    """Writes rows to a file that appears whole or not at all; returns how many there were.

    Equal rows give equal files: gzip writes no name and no time. Polars compresses with zstd, older Pythons do not.
    """
    count = 0
    with write_atomically(path) as temporary:
        with ExitStack() as stack:
            file: Any = stack.enter_context(temporary.open("wb"))
            if path.suffix == ".gz":
                file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
            for line in as_lines(rows):
                file.write(line)
                count += 1
        if path.suffix == ".zst":
            lines = pl.read_csv(
                exactly(temporary), has_header=False, separator=_NOT_IN_JSON, quote_char=None, infer_schema=False
            )
            try:
                lines.write_csv(temporary, include_header=False, quote_style="never", compression="zstd")
            except TypeError:
                fix = "write .jsonl.gz, or install a newer Polars"
                raise UsageError(f"-o: this Polars does not write .zst; {fix}") from None
    return count


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Writes rows in the format of the path's ending; lists are JSON in formats whose cells are text."""
    if path.name.lower().endswith(ENDINGS):
        write_rows(path, table.iter_rows(named=True))
        return
    buffer = BytesIO()
    match path.suffix.lower():
        case ".json":
            buffer.write(msgspec.json.encode(table.to_dicts()))
        case ".parquet":
            table.write_parquet(buffer)
        case ".arrow":
            table.write_ipc(buffer)
        case ending:
            flat = table.with_columns(as_text(column) for column in table if column.dtype.is_nested())
            flat.write_csv(buffer, separator="\t" if ending == ".tsv" else ",")
    write_whole(path, buffer.getvalue())
