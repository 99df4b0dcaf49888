"""Files that appear whole or not at all, and rows written as lines."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import polars as pl

from demur.core.io.sources import exactly
from demur.errors import UsageError


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Gives a temporary path to write to, which takes the real name only when the block ends without a fault.

    Missing folders are created. The temporary file keeps the ending of the real one and lies beside it.
    """
    target = Path(path)
    temporary = _temporary(target)
    try:
        yield temporary
        try:
            os.replace(temporary, target)
        except OSError as error:
            raise _unwritable(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Writes text or bytes to a file that appears whole or not at all."""
    with write_atomically(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _temporary(target: Path) -> Path:
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file to write to")
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise _unwritable(target, error) from None
    return temporary


def _unwritable(target: Path, error: OSError) -> UsageError:
    return UsageError(f"{target} cannot be written: {error.strerror or error}")


ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_GZIP_LEVEL = 6
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
    """Writes rows to a file that appears whole or not at all; tells how many there were."""
    count = 0
    with write_atomically(path) as temporary, _opened(temporary) as file:
        for line in as_lines(rows):
            file.write(line)
            count += 1
    return count


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path.suffix == ".gz":
        # no name and no time inside, so that equal rows give equal files
        with path.open("wb") as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as file:
            yield cast(BinaryIO, file)
        return
    with path.open("wb") as plain:
        yield plain
    if path.suffix == ".zst":
        _compress(path)


def _compress(path: Path) -> None:
    """Compresses a file of lines in place with what Polars has for it; older Pythons have no zstd."""
    whole = pl.read_csv(exactly(path), has_header=False, separator=_NOT_IN_JSON, quote_char=None, infer_schema=False)
    try:
        whole.write_csv(path, include_header=False, quote_style="never", compression="zstd")
    except TypeError:
        raise UsageError("-o: this Polars does not write .zst; write .jsonl.gz, or install a newer Polars") from None
