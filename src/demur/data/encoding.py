"""Saying what is wrong with text that is not UTF-8."""

from demur.errors import DataError


def not_utf8(error: UnicodeDecodeError, where: str) -> DataError:
    """Gives the fault of a line that is not UTF-8, with the offending byte and how to convert the file."""
    byte = error.object[error.start]
    guess = _guess(error.object)
    return DataError(
        f"byte {error.start} of the line (0x{byte:02x}) is not UTF-8; it looks like {guess}",
        where=where,
        fix=f"convert the file: iconv -f {guess} -t UTF-8 FILE > converted",
    )


def _guess(line: bytes) -> str:
    if b"\0" in line:
        return "UTF-16"
    return "Windows-1252" if any(0x80 <= byte <= 0x9F for byte in line) else "Latin-1"
