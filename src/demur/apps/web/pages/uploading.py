"""Uploads: a body goes to disk piece by piece, under a name of ours, and the worker reads it from there."""

from __future__ import annotations

import errno
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from demur.apps.web.site import Query, Site
from demur.core.io.sources import COMPRESSED, EXTENSIONS, READABLE
from demur.core.options import KINDS
from demur.errors import UsageError

AT_ONCE = 4
"""Uploads that may be under way together."""

PIECE = 1 << 20
"""Bytes that are gathered before they are written."""

STANDSTILL = 60.0
"""Seconds without another byte after which an upload is given up."""

LONGEST_NAME = 200
NAMES = ("target", "prediction", "confidence", "id", "input", "correct", "system", "dialogue", "performer", "subject")
"""Columns that the page offers to name."""


def endings() -> list[str]:
    """The endings of files that can be read."""
    columnar = [ending for ending, form in EXTENSIONS.items() if form in ("parquet", "arrow")]
    text = [ending for ending in EXTENSIONS if ending not in columnar]
    return [*text, *(f"{ending}{packed}" for ending in text for packed in COMPRESSED), *columnar]


def shown_name(given: str) -> str:
    r"""The name of a file as its owner knows it, for show only: no folders, nothing that does not print.

    >>> shown_name("C:\\logs\\run.jsonl"), shown_name("../../etc/passwd")
    ('run.jsonl', 'passwd')
    """
    base = re.split(r"[/\\]", given)[-1]
    return "".join(sign for sign in base if sign.isprintable())[-LONGEST_NAME:].strip()


def ending_of(name: str) -> str:
    """The ending of a file that can be read, as one of those known here."""
    found = next((ending for ending in sorted(endings(), key=len, reverse=True) if name.lower().endswith(ending)), None)
    if found is None:
        raise UsageError(f"{name or 'a file without a name'} is in no format known here ({READABLE})")
    return found


def wanted(asked: Query) -> dict[str, Any]:
    """How an upload is to be read and what its run is called, in plain values for the worker."""
    kind = asked.choice("kind", ("", *KINDS), "")
    maps = dict(asked.where("map"))
    return {
        "name": asked.text("name") or None,
        "tags": [tag for tag in asked.several("tag") if tag.strip()],
        "note": asked.text("note"),
        "kind": kind or None,
        "replace": asked.text("replace") == "1",
        "reading": {
            "columns": maps,
            "missing_confidence": asked.choice("missing_confidence", ("error", "lowest"), "error"),
            **{name: value for name in ("x", "y", "outcome") if (value := asked.text(name))},
        },
    }


def receiver(site: Site) -> Callable[[Request], Any]:
    """What answers an upload: 202 with the job that reads it."""
    under_way: set[Path] = set()

    async def receive(request: Request) -> Response:
        asked = Query({}, request.query_params.multi_items())
        shown = shown_name(asked.text("file"))
        given = {**wanted(asked), "file": shown, "most": site.most_uploaded}
        refuse_length(request.headers.get("content-length"), site.most_uploaded)
        if len(under_way) >= AT_ONCE:
            raise HTTPException(503, f"{AT_ONCE} uploads are under way; try again when one has ended")
        folder = site.store.root / "staging" / f"upload-{secrets.token_hex(8)}"
        path = folder / f"upload{ending_of(shown)}"
        under_way.add(folder)
        try:
            await _written(request, path, site.most_uploaded)
        except BaseException:
            await run_in_threadpool(removed, folder)
            raise
        finally:
            under_way.discard(folder)
        job = site.worker.start(
            "add", {**given, "path": str(path)}, about=f"Reading {shown}", after=lambda: removed(folder)
        )
        return JSONResponse({"job": job.to_dict()}, status_code=202)

    return receive


def refuse_length(length: str | None, most: int) -> None:
    """Refuses what says of itself that it is too long, before any of it is read."""
    if length is not None and length.isdecimal() and int(length) > most:
        raise _too_long(most)


async def _written(request: Request, path: Path, most: int) -> None:
    """Write the body to a file, never more of it in memory than a piece."""
    try:
        with _writable(path) as file:
            size = 0
            async for piece in _pieces(request):
                size += len(piece)
                if size > most:
                    raise _too_long(most)
                with _told_of_the_disk():
                    await run_in_threadpool(_piece_written, file, piece)
    except ClientDisconnect:
        raise HTTPException(400, "the upload was broken off") from None
    if size == 0:
        raise UsageError("the file is empty; it needs at least one row")


def _piece_written(file: IO[bytes], piece: bytes) -> None:
    file.write(piece)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    gathered = bytearray()
    async for chunk in _steadily(request.stream()):
        gathered += chunk
        if len(gathered) >= PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _steadily(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a stream that goes on; one that stands still would keep others waiting."""
    while True:
        try:
            with anyio.fail_after(STANDSTILL):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise HTTPException(408, f"nothing more came of the upload for {STANDSTILL:g} seconds") from None
        if chunk is None:
            return
        yield chunk


@contextmanager
def _writable(path: Path) -> Iterator[IO[bytes]]:
    with _told_of_the_disk():
        path.parent.mkdir(parents=True, mode=0o700)
        file: IO[bytes] = path.open("xb")
    try:
        yield file
    finally:
        with _told_of_the_disk():
            file.close()


@contextmanager
def _told_of_the_disk() -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if fault.errno == errno.ENOSPC:
            raise HTTPException(507, "the disk of the store is full; nothing was added") from None
        told = fault.strerror or type(fault).__name__
        raise HTTPException(507, f"the upload cannot be written into the store: {told}; nothing was added") from None


def removed(folder: Path) -> None:
    """Remove an upload, whatever became of it."""
    shutil.rmtree(folder, ignore_errors=True)


def _too_long(most: int) -> HTTPException:
    limit = f"{most / 1024**2:,.0f} MB" if most >= 1024**2 else f"{most:,} bytes"
    fix = "add it with demur add, which has no limit, or start demur serve with a larger --max-upload"
    return HTTPException(413, f"the file is larger than an upload may be, {limit} ({fix})")
