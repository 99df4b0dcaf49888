"""Output that appears whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
