"""Logs that are still being written: the whole lines that were added since the last look."""

from __future__ import annotations

import os
import re
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Literal

from demur.core.io.sources import COMPRESSED, EXTENSIONS, HEAD, compression_of, expand, format_of, is_pipe, stem_of
from demur.core.show.results import path_text
from demur.errors import DataError

BATCH = 4 << 20
"""Bytes that are held before they are counted."""

LONGEST = 1 << 26
"""Bytes of a line that is too long to be one."""

AT_ONCE = 1 << 20
"""Bytes asked of a pipe at once."""

Kind = Literal["json", "csv", "tsv"]

MOST_HEADER_LINES = 100
"""Lines over which the names of columns may run, where quotes hold line ends."""

_QUOTED_LINE = re.compile(rb'[^\n]*"[^\n]*(?:\n|\Z)')
_OPENING = re.compile(rb'(?:\A|[,;\t])\s*"')
_PLAIN = "a log can be followed if it has one JSON object a line, or is CSV or TSV with a header"
UNPACK = "unpack it on the way: zcat LOG.gz | demur follow -"


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Whole lines that were added to a log, the line with the names of columns, and how many lines stand before."""

    log: str
    stem: str
    kind: Kind
    header: bytes
    text: bytes
    before: int

    @property
    def lines(self) -> str:
        """Which lines of the log these are."""
        last = self.before + _line_count(self.text)
        return f"{self.log}: lines {self.before + 1:,} to {last:,}:"

    def sound_part(self, fault: DataError) -> LogBatch | None:
        """The rows before the line at which a fault was found; None where there are none, or the line is not known."""
        found = re.match(rf"{re.escape(self.log)}:(\d+)", fault.where)
        count = int(found[1]) - self.before - 1 if found else 0
        if count < 1:
            return None
        text = b"".join(self.text.splitlines(keepends=True)[:count])
        text = text if self.kind == "json" else text[: _open_row(text)]
        return replace(self, text=text) if _has_rows(text, self.kind) and text != self.text else None


class GrowingLog:
    """A log of which more may come; `more` reads what there is, `batch` gives it as whole lines."""

    def __init__(self, name: str, stem: str, *, most: int = BATCH) -> None:
        self.name, self.stem = name, stem
        self.ended = False
        self.descriptor: int | None = None
        """What to wait on until there is more; None where one can only look again."""
        self.notes: list[str] = []
        self._most = most
        self._kind: Kind | None = None
        self._begins = True
        """Whether what is held begins a file, so that in CSV its first line names the columns."""
        self._header = b""
        self._held = b""
        self._before = 0
        self._cut_off_files: deque[LogBatch] = deque()

    def more(self) -> bool:
        """Reads what was added, up to a batch of it; tells whether there was anything."""
        raise NotImplementedError

    @property
    def full(self) -> bool:
        """Whether there is enough to be counted at once."""
        return bool(self._cut_off_files) or (len(self._held) >= self._most and b"\n" in self._held)

    def batch(self, *, last: bool = False) -> LogBatch | None:
        """The whole lines that are held; with `last` also a line that has no end. None where there are none."""
        if self._cut_off_files:
            return self._cut_off_files.popleft()
        return self._rows(last=last)

    def note_rest(self) -> None:
        """Notes a line that is left and has no end."""
        if _has_rows(self._held, self._kind):
            self.notes.append(f"{self.name}:{self._before + 1}: the last line has no end yet and was not counted")

    def close(self) -> None:
        """Lets go of the log."""

    def _rows(self, *, last: bool = False) -> LogBatch | None:
        if last and self._kind is None and _has_rows(self._held, self._kind):
            self._recognise()
        if self._kind is None:
            return None
        end = len(self._held)
        if not last:
            end = self._held.rfind(b"\n") + 1
            start = None if self._kind == "json" else _open_row(self._held[:end])
            end = end if start is None or (start == 0 and len(self._held) >= self._most) else start
        text, self._held = self._held[:end], self._held[end:]
        if self._begins and _has_rows(text, self._kind):
            self._begins = False
            if self._kind != "json":
                text = self._without_header(text)
        before, self._before = self._before, self._before + _line_count(text)
        if not _has_rows(text, self._kind):
            return None
        return LogBatch(self.name, self.stem, self._kind, self._header, text, before)

    def _without_header(self, text: bytes) -> bytes:
        """Takes the line of names off; a file that goes on after another may do without it.

        A line holds names if more than half of its cells are in the header that is known.
        """
        end = _first_row_end(text)
        first = text[:end]
        cells, known = (set(re.split(rb"[,;\t]", row.strip())) for row in (first, self._header))
        if self._header and 2 * len(cells & known) <= len(cells):
            return text
        self._header = first if first.endswith(b"\n") else first + b"\n"
        self._before = _line_count(first)
        return text[end:]

    def _take(self, text: bytes) -> None:
        self._held += text
        if self._kind is None and (b"\n" in self._held.lstrip() or len(self._held) >= HEAD):
            self._recognise()
        if len(self._held) > LONGEST and b"\n" not in self._held:
            raise DataError("the line is longer than 64 MB", where=f"{self.name}:{self._before + 1}:", fix=_PLAIN)

    def _recognise(self) -> None:
        head = self._held[:HEAD]
        if compression_of(head):
            raise _unfollowed(self.name, "is compressed", UNPACK)
        kind = format_of(Path(self.name), head, self.name)
        if kind == "parquet" or kind == "arrow":
            raise _unfollowed(self.name, f"is a file of {kind.title()}", _PLAIN)
        if kind == "json" and head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            raise _unfollowed(self.name, "holds one JSON array", _PLAIN)
        self._kind = kind

    def _restart(self, what: str) -> None:
        """Goes on with another file, whose lines are numbered afresh."""
        if (rows := self._rows()) is not None:
            self._cut_off_files.append(rows)
        rest = _has_rows(self._held, self._kind)
        lost = f"; its line {self._before + 1:,} had no end and was not counted" if rest else ""
        self.notes.append(f"{self.name} {what}: the counts go on with the new rows{lost}")
        self._held, self._before, self._begins = b"", 0, True


class Tail(GrowingLog):
    """A file that grows, may not be there yet, and may be cut off or replaced by another of its name."""

    def __init__(self, path: str | Path, *, most: int = BATCH) -> None:
        self._path = Path(path)
        super().__init__(path_text(path), stem_of(self._path), most=most)
        if self._path.suffix.lower() in COMPRESSED:
            raise _unfollowed(str(self._path), "is compressed", UNPACK)
        if EXTENSIONS.get(self._path.suffix.lower()) in ("parquet", "arrow"):
            raise _unfollowed(str(self._path), "is no text", _PLAIN)
        self._file: FileIO | None = None
        self._head = b""
        self.missing = True
        """Whether the file has not come yet."""

    def more(self) -> bool:
        """Reads what was added, up to a batch of it; tells whether there was anything."""
        file = self._file or self._opened()
        if file is None:
            return False
        is_shorter = os.fstat(file.fileno()).st_size < file.tell()
        if is_shorter or _start_of(file, len(self._head)) != self._head:
            file.seek(0)
            self._head = b""
            self._restart("was cut off and begun again")
        text = file.read(self._most) or b""
        if not text:
            return self._replaced(file) and self.more()
        if len(self._head) < HEAD:
            self._head = _start_of(file, HEAD)
        self._take(text)
        return True

    def refuse_missing(self) -> None:
        """Refuses a file that has not come."""
        if self.missing:
            expand(self._path)

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> FileIO | None:
        try:
            self._file = FileIO(self._path)
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise DataError("is a folder, not a file", where=self.name, fix="name the log to follow") from None
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=self.name) from None
        self.missing = False
        return self._file

    def _replaced(self, file: FileIO) -> bool:
        """Opens the file that has taken the name of the one that was read to its end, if there is one."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        if os.path.samestat(there, os.fstat(file.fileno())):
            return False
        file.close()
        self._file, self._head = None, b""
        self._restart("was replaced")
        return True


class Pipe(GrowingLog):
    """Standard input, or a pipe with a name: it ends when its writer closes it."""

    def __init__(self, descriptor: int, name: str, stem: str, *, most: int = BATCH) -> None:
        super().__init__(name, stem, most=most)
        self.descriptor: int | None = descriptor

    def more(self) -> bool:
        """Reads what came through, up to a batch of it; tells whether there was anything."""
        any_came = False
        while self.descriptor is not None and not self.full and _readable(self.descriptor):
            if text := os.read(self.descriptor, AT_ONCE):
                any_came = True
                self._take(text)
            else:
                self.ended, self.descriptor = True, None
        return any_came


def growing_log(item: str | Path) -> Tail | Pipe:
    """The log to follow: a file, which need not be there yet, a pipe, or `-` for standard input."""
    if str(item) == "-":
        return Pipe(sys.stdin.fileno(), "<stdin>", "stdin")
    path = Path(item)
    if is_pipe(path):
        return Pipe(os.open(path, os.O_RDONLY), f"<{path.name}>", "pipe")
    return Tail(path)


Wait = Callable[[float, int | None], None]
"""Waits for some seconds at most, less if there is more to read from a descriptor."""


def batches(
    log: GrowingLog,
    *,
    every: float,
    until_idle: float | None = None,
    clock: Callable[[], float],
    wait: Wait,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[LogBatch | None]:
    """What is added to a log as it comes; None says that it is time to show what was counted.

    Ends with the log, when nothing has come for `until_idle` seconds, or when stopped. A line without its end waits
    for it, and counts as it is when the log ends or rests.
    """
    moved = due = clock()
    fresh = over = False
    try:
        while not stopped() and not over:
            if not log.full and log.more():
                moved = clock()
            elif not log.full:
                over = log.ended or (until_idle is not None and clock() - moved >= until_idle)
            if log.full or over or clock() >= due:
                while (batch := log.batch(last=over)) is not None:
                    fresh = True
                    yield batch
            if fresh and not over and clock() >= due:
                fresh = False
                yield None
            now = clock()
            due = due if due > now else now + every
            if not log.full and not over:
                rest = due if until_idle is None else min(due, moved + until_idle)
                wait(max(0.0, rest - now), log.descriptor)
        while (batch := log.batch()) is not None:
            yield batch
        log.note_rest()
    finally:
        log.close()


def _line_count(text: bytes) -> int:
    r"""How many lines there are, the last with or without its end.

    >>> _line_count(b"a\nb"), _line_count(b"a\nb\n"), _line_count(b"")
    (2, 2, 0)
    """
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))


def _open_row(text: bytes) -> int | None:
    """Where the row begins of which a cell is opened by a quote and not closed; None where every row is whole."""
    start = None
    for line in _QUOTED_LINE.finditer(text):
        odd = line[0].count(b'"') % 2 == 1
        if start is not None:
            start = None if odd else start
        elif odd and _OPENING.search(line[0]):
            start = line.start()
    return start


def _first_row_end(text: bytes) -> int:
    """The end of the first row: of its line, or of the line soon after that closes its quotes."""
    first = end = text.find(b"\n") + 1 or len(text)
    for _ in range(MOST_HEADER_LINES):
        if _open_row(text[:end]) is None:
            return end
        end = text.find(b"\n", end) + 1 or len(text)
    return first


def _has_rows(text: bytes, kind: Kind | None) -> bool:
    """Whether there is a line that is not blank; in CSV and TSV spaces and tabs are cells."""
    return bool(text.strip(b"\r\n") if kind in ("csv", "tsv") else text.strip())


def _unfollowed(name: str, rule: str, fix: str) -> DataError:
    return DataError(f"{rule}, which cannot be followed", where=name, fix=fix)


def _readable(descriptor: int) -> bool:
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):  # where pipes cannot be asked, reading them waits
        return True


def _start_of(file: FileIO, size: int) -> bytes:
    place = file.tell()
    file.seek(0)
    start = file.read(size) or b""
    file.seek(place)
    return start
