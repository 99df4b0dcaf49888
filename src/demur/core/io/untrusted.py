"""Files that others may have written, read within limits: into types, and before a library sees them."""

from __future__ import annotations

import re
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from demur.core.io.json import refuse_repeats_in
from demur.core.io.sources import NOT_JSON
from demur.errors import DataError

T = TypeVar("T")
PlainOption: TypeAlias = str | bool | int | float | list[str | list[str]] | dict[str, str] | None
"""What an option may be: JSON of little depth."""

MOST_JSON = 64 << 20
"""Bytes that a JSON document may have."""

MOST_MEMBERS = 64
"""Files that an archive may hold."""

LONGEST_REASON = 300
"""Characters of a library's message that are shown, as it may quote what it read."""

ZSTD_FRAME = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A5
ZSTD_BLOCK = 1 << 17
"""Bytes that a block of Zstandard unpacks to at most (RFC 8878, 3.1.1.2.4)."""

_BROKEN = (BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, LookupError, ValueError, ArithmeticError)
"""What `zipfile` raises at archives that are cut off, changed, locked or packed in a way it does not know."""

_ENTRY = b"PK\x01\x02"
_LONGEST_HEADER = 256
_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<type>[<>|][if][1248])', 'fortran_order': False, 'shape': \((?P<count>\d{1,15}),\), \} *\n",
    re.DOTALL,
)
"""The beginning of a file that NumPy writes of numbers in one dimension."""


def read_bounded(path: Path, most: int = MOST_JSON) -> bytes:
    """The bytes of a file; a pipe, a folder, or a file of more than `most` bytes is refused."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise DataError("is no regular file", where=f"{path}")
        if size > most:
            raise DataError(f"may have at most {most:,} bytes", where=f"{path}", got=f"{size:,}")
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError) as fault:
        raise DataError(f"cannot be read: {getattr(fault, 'strerror', None) or fault}", where=f"{path}") from None


def decode_json(content: bytes, form: type[T], where: str, what: str) -> T:
    """What JSON spells, in the form of a type, which limits how deeply it can be nested; no key may come twice."""
    try:
        value = msgspec.json.decode(content, type=form)
        refuse_repeats_in(content, where)
        return value
    except NOT_JSON as fault:
        reason = "it is nested too deeply" if isinstance(fault, RecursionError) else str(fault)[:LONGEST_REASON]
        raise DataError(f"does not have the form of {what}: {reason}", where=where) from None


def read_json(path: Path, form: type[T], what: str, most: int = MOST_JSON) -> T:
    """What a JSON file says, in the form of a type."""
    return decode_json(read_bounded(path, most), form, f"{path}", what)


def zstd_size(file: BinaryIO) -> int:
    """Bytes that a Zstandard file can unpack to at most, told from the heads of its blocks."""
    size = 0
    while len(start := file.read(4)) == 4:
        magic = int.from_bytes(start, "little")
        if magic >> 4 == ZSTD_SKIPPABLE:
            file.seek(int.from_bytes(file.read(4), "little"), 1)
        elif magic == ZSTD_FRAME:
            size += _frame_size(file)
        else:
            break
    return size


def _frame_size(file: BinaryIO) -> int:
    descriptor = (file.read(1) or b"\0")[0]
    single = bool(descriptor & 0x20)
    identifier = (0, 1, 2, 4)[descriptor & 3]
    content = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    file.seek((0 if single else 1) + identifier + content, 1)
    size = 0
    while len(head := file.read(3)) == 3:
        bits = int.from_bytes(head, "little")
        kind, length = (bits >> 1) & 3, bits >> 3
        size += ZSTD_BLOCK if kind == 2 else length
        file.seek(1 if kind == 1 else length, 1)
        if bits & 1:
            break
    file.seek(4 if descriptor & 4 else 0, 1)
    return size


def zip_size(path: Path) -> int:
    """Bytes that the members of a ZIP archive unpack to, as its directory says; 0 for what is no archive.

    Members packed with Zstandard are bounded when they are read, whatever the directory says of them.
    """
    try:
        with ZipFile(path) as archive:
            return sum(one.file_size for one in archive.infolist())
    except (OSError, *_BROKEN):
        return 0


class Archive:
    """A ZIP file whose members are unpacked only as far as is asked for."""

    def __init__(self, content: bytes, where: str, fix: str) -> None:
        self.where, self.fix = where, fix
        try:
            if content.count(_ENTRY) > MOST_MEMBERS:
                raise BadZipFile(f"it holds more than {MOST_MEMBERS} files")
            self._archive = ZipFile(BytesIO(content))
        except _BROKEN as fault:
            raise self._broken(fault) from None

    def __contains__(self, name: str) -> bool:
        return name in self._archive.NameToInfo

    def read(self, name: str, most: int) -> bytes:
        """A member of at most so many bytes; not a byte more is unpacked."""
        if name not in self:
            raise DataError("is missing", where=f"{self.where}: {name}", fix=self.fix)
        member = self._archive.NameToInfo[name]
        if member.file_size > most:
            rule = f"unpacks to {member.file_size:,} bytes, where at most {most:,} can be meant"
            raise DataError(rule, where=f"{self.where}: {name}", fix=self.fix)
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DataError("is packed in an unknown way", where=f"{self.where}: {name}", fix=self.fix)
        try:
            with self._archive.open(member) as file:
                content = file.read(member.file_size)  # without a size, gigabytes come before it is cut
            if len(content) != member.file_size:
                raise BadZipFile("it is cut off")
            return content
        except _BROKEN as fault:
            raise self._broken(fault) from None

    def array(self, name: str, kind: type[np.generic], count: int) -> NDArray[Any]:
        """A member that NumPy wrote, of so many integers or other numbers."""
        where = f"{self.where}: {name}.npy"
        content = self.read(f"{name}.npy", 8 * count + _LONGEST_HEADER)
        found = _ARRAY.match(content)
        if found is None or int.from_bytes(found["length"], "little") != found.end() - 10:
            raise DataError("must be numbers in one dimension, as NumPy writes them", where=where, fix=self.fix)
        stored = np.dtype(found["type"].decode())
        if not np.can_cast(stored, kind) or int(found["count"]) != count:
            raise DataError(f"must have {count:,} numbers that fit {kind.__name__}", where=where, fix=self.fix)
        if len(content) - found.end() != count * stored.itemsize:
            raise DataError("is cut off or too long", where=where, fix=self.fix)
        return np.frombuffer(content, stored, offset=found.end()).astype(kind)

    def _broken(self, fault: Exception) -> DataError:
        reason = str(fault)[:LONGEST_REASON]
        return DataError(f"cannot be unpacked: {reason}", where=self.where, fix=self.fix)
