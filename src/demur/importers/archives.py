"""Members of ZIP archives, read in batches and within limits, those packed with Zstandard too."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import polars as pl

from demur.core.io.sources import UNREADABLE
from demur.core.io.untrusted import zstd_size
from demur.errors import DataError
from demur.importers.protocol import ForeignFile

ZSTD = 93
"""The method of a member packed with Zstandard, which `zipfile` reads from Python 3.14 on."""

LARGEST = 1 << 30
"""Bytes that a member may unpack to."""

AT_ONCE = 1 << 28
"""Bytes that a batch of members can unpack to."""

_LOCAL_HEADER = struct.Struct("<4s22x2H")
_MARK = "<demur: next member>"
_BROKEN = (BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, LookupError, ValueError, ArithmeticError)


class LogArchive:
    """A ZIP archive whose members are JSON."""

    def __init__(self, file: ForeignFile) -> None:
        self.name = file.name
        self._path = file.source.path
        self._content = file.content() if file.source.compression else None
        try:
            with self._bytes() as packed, ZipFile(packed) as archive:
                self._members = {one.filename: one for one in archive.infolist()}
        except (OSError, *_BROKEN) as fault:
            raise DataError(f"is cut off or damaged: {fault}", where=f"{self.name}:", fix="copy it again") from None

    def _bytes(self) -> BinaryIO:
        """The archive, unpacked once where it was packed again as a whole."""
        return self._path.open("rb") if self._content is None else io.BytesIO(self._content)

    @property
    def names(self) -> list[str]:
        """The names of its members, in the order in which they were written."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """One member."""
        return next(text for _, text in self.texts([name]))

    def texts(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Members with their names, unpacked a batch at a time."""
        batch: list[tuple[str, bytes]] = []
        size = 0
        with self._bytes() as packed, ZipFile(packed) as archive:
            for name in names:
                member = self._members[name]
                if member.file_size > LARGEST:
                    raise self._fault(name, f"unpacks to {member.file_size:,} bytes, where {LARGEST:,} are the most")
                if member.compress_type != ZSTD:
                    yield name, self._unpacked(archive, member)
                    continue
                frame = self._packed(packed, member)
                bound = zstd_size(io.BytesIO(frame))
                if bound > LARGEST:
                    raise self._fault(name, f"may unpack to {bound:,} bytes, where {LARGEST:,} are the most")
                if batch and size + bound > AT_ONCE:
                    yield from self._unzstd(batch)
                    batch, size = [], 0
                batch.append((name, frame))
                size += bound
        if batch:
            yield from self._unzstd(batch)

    def _unpacked(self, archive: ZipFile, member: ZipInfo) -> bytes:
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise self._fault(member.filename, "is packed in an unknown way")
        try:
            with archive.open(member) as file:
                content = file.read(member.file_size)  # without a size, gigabytes come before it is cut
        except _BROKEN as fault:
            raise self._fault(member.filename, f"is damaged: {fault}") from None
        if len(content) != member.file_size:
            raise self._fault(member.filename, "is cut off")
        return content

    def _packed(self, packed: BinaryIO, member: ZipInfo) -> bytes:
        """A member as it is packed."""
        try:
            packed.seek(member.header_offset)
            signature, name, extra = _LOCAL_HEADER.unpack(packed.read(_LOCAL_HEADER.size))
            packed.seek(name + extra, io.SEEK_CUR)
            content = packed.read(member.compress_size)
        except (struct.error, OSError, ValueError):
            signature, content = b"", b""
        if signature != b"PK\x03\x04" or len(content) != member.compress_size:
            raise self._fault(member.filename, "is cut off or damaged")
        return content

    def _unzstd(self, batch: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Unpacks frames of Zstandard, which Polars does in CSV files: a line is a cell, and a mark parts members."""
        mark = f"\n{_MARK}\n".encode()
        try:
            cells = pl.read_csv(
                io.BytesIO(raw_frame(mark).join(frame for _, frame in batch)),
                has_header=False,
                separator="\x01",  # control characters are escaped in JSON
                quote_char=None,
                infer_schema=False,
                encoding="utf8-lossy",
            )
        except UNREADABLE as fault:
            raise self._fault(batch[0][0], f"is damaged: {str(fault).partition(chr(10))[0]}") from None
        lines: list[str] = []
        texts: list[bytes] = []
        for line in [*(cells.to_series() if cells.width else ()), _MARK]:
            if line == _MARK:
                texts.append("\n".join(lines).encode())
                lines = []
            else:
                lines.append(line or "")
        if len(texts) != len(batch) or cells.width != 1:
            raise self._fault(batch[0][0], "or one after it is damaged")
        yield from ((name, text) for (name, _), text in zip(batch, texts, strict=True))

    def _fault(self, name: str, rule: str) -> DataError:
        return DataError(rule, where=f"{self.name}: {name}", fix="write the log again")


def raw_frame(content: bytes) -> bytes:
    """A frame of Zstandard that holds a short text as it is (RFC 8878, 3.1.1): one raw block, the last."""
    size = len(content)
    block = (size << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x20" + bytes([size]) + block + content
