"""Results kept by signature: what is damaged or gone is made again, and the oldest make room."""

from __future__ import annotations

import hashlib
import os
import zlib
from contextlib import suppress
from pathlib import Path

from demur.store.durable import discard

MOST_BYTES = 512 * 2**20
"""Bytes that results may take together."""

_MARK = b"demur1\n"
_ENDING = ".result"
_CHECK = hashlib.sha256().digest_size


class Cache:
    """A folder of results."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    def cached(self, signature: str) -> bytes | None:
        """What was kept under a signature; None where nothing was, or not all of it can be read."""
        path = self._path(signature)
        try:
            content = _unpacked(path.read_bytes())
            os.utime(path)
        except (OSError, ValueError, zlib.error):
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return None
        return content

    def keep(self, signature: str, content: bytes) -> bool:
        """Keeps a result, and says whether it is there; where it cannot be written it is made again the next time."""
        path = self._path(signature)
        temporary = path.with_name(f".{path.stem}.{os.urandom(4).hex()}")
        with suppress(OSError):
            try:
                self.folder.mkdir(exist_ok=True)
                temporary.write_bytes(_packed(content))
                os.replace(temporary, path)
                self._make_room()
            finally:
                temporary.unlink(missing_ok=True)
        return path.exists()

    def clear(self) -> int:
        """Removes all results, and says how many there were."""
        count = len(list(self.folder.glob(f"*{_ENDING}")))
        discard(self.folder)
        self.folder.mkdir(exist_ok=True)
        return count

    def _path(self, signature: str) -> Path:
        return self.folder / (hashlib.sha256(signature.encode()).hexdigest() + _ENDING)

    def _make_room(self) -> None:
        with os.scandir(self.folder) as entries:
            kept = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
        over = sum(size for _, size, _ in kept) - self.most_bytes
        for _, size, path in kept:
            if over <= 0:
                return
            Path(path).unlink(missing_ok=True)
            over -= size


def _packed(content: bytes) -> bytes:
    return _MARK + hashlib.sha256(content).digest() + zlib.compress(content, 1)


def _unpacked(packed: bytes) -> bytes:
    start = len(_MARK) + _CHECK
    content = zlib.decompress(packed[start:])
    if packed[:start] != _MARK + hashlib.sha256(content).digest():
        raise ValueError("not what was kept")
    return content
