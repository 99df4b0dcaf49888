"""Saying what is wrong with bytes that are not UTF-8 text."""

from demur.errors import DataError

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

_CONTROL = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\f\x1b")
_MUCH = 0.02
_SEVERAL = 8


def refuse_other_kinds(head: bytes, name: str, readable: str) -> None:
    """Refuses a file that begins as one of a known kind which is not a table."""
    for start, kind in MAGIC:
        if head.startswith(start):
            raise DataError("is a binary file", where=name, fix=f"looks like {kind}; {readable}")


def refuse_binary(head: bytes, name: str, readable: str) -> None:
    """Refuses what begins with UTF-16 or with control bytes that text does not have."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("is not UTF-8: it begins with the mark of UTF-16 at byte 0", where=name, fix=_convert(name))
    if _is_utf16(head):
        raise DataError("is not UTF-8: it looks like UTF-16 without its mark", where=name, fix=_convert(name))
    count = _control_bytes(head)
    if count > max(_SEVERAL, _MUCH * len(head)):
        fix = f"{count:,} of its first {len(head):,} bytes are control characters; {readable}"
        raise DataError("is a binary file", where=name, fix=fix)


def not_utf8(error: UnicodeDecodeError, where: str) -> DataError:
    """Gives the fault of a line that is not UTF-8, with the offending byte and how to convert the file."""
    byte = error.object[error.start]
    rule = f"byte {error.start} of the line (0x{byte:02x}) is not UTF-8"
    if _control_bytes(error.object):
        return DataError(rule, where=where, fix="the line also holds control bytes: is the file damaged or binary?")
    guess = "Windows-1252" if any(0x80 <= byte <= 0x9F for byte in error.object) else "Latin-1"
    fix = f"convert the file: iconv -f {guess} -t UTF-8 FILE > converted"
    return DataError(f"{rule}; it looks like {guess}", where=where, fix=fix)


def _convert(name: str) -> str:
    return f"convert it: iconv -f UTF-16 -t UTF-8 {name} > converted"


def _control_bytes(text: bytes) -> int:
    return len(text) - len(text.translate(None, _CONTROL))


def _is_utf16(head: bytes) -> bool:
    """Tells UTF-16 by its zeros: most of the even or most of the odd bytes, and hardly any of the others."""
    zeros = sorted(half.count(0) / max(len(half), 1) for half in (head[::2], head[1::2]))
    return zeros[0] < 0.05 and zeros[1] > 0.7
