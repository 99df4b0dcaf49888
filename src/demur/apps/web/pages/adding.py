"""How runs come in: uploads, which go to disk piece by piece for the worker to read, and bundled examples."""

from __future__ import annotations

import errno
import json
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, BinaryIO

import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from demur.apps.web.site import Action, JsonAnswer, Query, Site, steadily
from demur.core.io.columns import ALIASES, likely_columns, nearest
from demur.core.io.files import header_of, scan_columnar
from demur.core.io.sources import (
    CHUNK,
    COMPRESSED,
    EXTENSIONS,
    READABLE,
    UNREADABLE,
    Source,
    compression_of,
    opened,
    quiet_panics,
    stem_of,
)
from demur.core.io.tables import TableLimits, limited, named_column, refuse_large
from demur.core.io.untrusted import zip_size, zstd_size
from demur.core.options import KINDS
from demur.core.show.results import Step
from demur.errors import DataError, DemurError, UsageError
from demur.importers import ENDINGS
from demur.importers.reading import read_table
from demur.store.intake import RenamedFile, RunReading
from demur.store.runs import Added, Store

AT_ONCE = 16
"""Uploads that may be under way together; they take a piece of memory each, and none of the workers."""

PIECE = 1 << 20
"""Bytes that are gathered before they are written."""

LONGEST_NAME = 200
ROWS_SHOWN, LONGEST_SHOWN = 5, 60
"""Rows of an upload that are shown before it is read, and characters of their cells."""

_PROPOSED = ("target", "prediction", "confidence")
"""Parts for which a column is proposed by the words in its name, where none has a name that is known."""

NAMES = (
    "target",
    "prediction",
    "confidence",
    "id",
    "input",
    "correct",
    "system",
    "dialogue",
    "trial",
    "performer",
    "subject",
)
"""Columns that the page offers to name."""

FIX = "add it with demur add, which has no limit"

MOST_IN_TABLE = TableLimits(columns=1000, rows=10_000_000, cells=100_000_000, fix=FIX)
"""How large a table may be. A text may have as many lines as rows, blank ones too, and as many objects as cells."""


def endings() -> list[str]:
    """The endings of files that can be read."""
    columnar = [ending for ending, form in EXTENSIONS.items() if form in ("parquet", "arrow")]
    text = [ending for ending in EXTENSIONS if ending not in columnar]
    return [*text, *(f"{ending}{packed}" for ending in text for packed in COMPRESSED), *columnar, *ENDINGS]


def display_name(given: str) -> str:
    r"""The name of a file as its owner knows it, for show only: no folders, nothing that does not print.

    >>> display_name("C:\\logs\\run.jsonl"), display_name("../../etc/passwd")
    ('run.jsonl', 'passwd')
    """
    base = re.split(r"[/\\]", given)[-1]
    return "".join(sign for sign in base if sign.isprintable())[-LONGEST_NAME:].strip()


def ending_of(name: str) -> str:
    """The ending of a file that can be read, as one of those known here."""
    ending = max((one for one in endings() if name.lower().endswith(one)), key=len, default=None)
    if ending is None:
        raise UsageError(f"{name or 'a file without a name'} is in no format known here ({READABLE})")
    return ending


def upload_options(query: Query) -> dict[str, Any]:
    """How an upload is to be read and what its run is called, in plain values for the worker."""
    kind = query.choice("kind", ("", *KINDS), "")
    maps = dict(query.where("map"))
    return {
        "name": query.text("name") or None,
        "tags": [tag for tag in query.several("tag") if tag.strip()],
        "note": query.text("note"),
        "kind": kind or None,
        "replace": query.text("replace") == "1",
        "reading": {
            "columns": maps,
            "missing_confidence": query.choice("missing_confidence", ("error", "lowest"), "error"),
            "confidence": query.several("confidence"),
            **{name: value for name in ("x", "y", "outcome") if (value := query.text(name))},
        },
    }


def receiver(site: Site) -> Callable[[Request], Any]:
    """What answers an upload: 202 with the job that reads it."""
    under_way: set[Path] = set()

    async def receive(request: Request) -> Response:
        query = Query({}, request.query_params.multi_items())
        shown, most = display_name(query.text("file")), site.most_uploaded
        given = {**upload_options(query), "file": shown, "most": most}
        length = request.headers.get("content-length")
        if length is not None and length.isdecimal() and int(length) > most:
            raise _too_long(most)
        if len(under_way) >= AT_ONCE:
            raise HTTPException(503, f"{AT_ONCE} uploads are under way; try again when one has ended")
        folder = site.store.root / "staging" / f"upload-{secrets.token_hex(8)}"
        path = folder / f"upload{ending_of(shown)}"

        def remove_folder() -> None:
            shutil.rmtree(folder, ignore_errors=True)

        under_way.add(folder)
        try:
            await _write_body(request, path, most)
        except BaseException:
            await run_in_threadpool(remove_folder)
            raise
        finally:
            under_way.discard(folder)
        given["path"] = str(path)
        task = f"{__name__}:{'preview_upload' if query.text('preview') == '1' else 'add_upload'}"
        about = f"Reading {shown}"
        job = site.worker.start(task, given, about=about, heavy=True, after=remove_folder)
        return JsonAnswer({"job": job.to_dict()}, status_code=202)

    return receive


async def _write_body(request: Request, path: Path, most: int) -> None:
    """Write the body of a request to a file, never more of it in memory than a piece."""
    size, gathered = 0, bytearray()
    try:
        with _disk_faults():
            path.parent.mkdir(parents=True, mode=0o700)
            with path.open("xb") as file:
                async for chunk in steadily(request.stream()):
                    size += len(chunk)
                    gathered += chunk
                    if size > most:
                        raise _too_long(most)
                    if len(gathered) >= PIECE:
                        await run_in_threadpool(_write_piece, file, bytes(gathered))
                        gathered.clear()
                await run_in_threadpool(_write_piece, file, bytes(gathered))
    except ClientDisconnect:
        raise HTTPException(400, "the upload was broken off") from None
    if size == 0:
        raise UsageError("the file is empty; it needs at least one row")


def _write_piece(file: IO[bytes], piece: bytes) -> None:
    file.write(piece)


@contextmanager
def _disk_faults() -> Iterator[None]:
    """Answer 507 where the disk refuses what is written."""
    try:
        yield
    except OSError as fault:
        reason = f"the upload cannot be written into the store: {fault.strerror or type(fault).__name__}"
        if fault.errno == errno.ENOSPC:
            reason = "the disk of the store is full"
        raise HTTPException(507, f"{reason}; nothing was added") from None


def _too_long(most: int) -> HTTPException:
    fix = "add it with demur add, which has no limit, or start demur serve with a larger --max-upload"
    return HTTPException(413, f"the file is larger than an upload may be, {size_text(most)} ({fix})")


def add_upload(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """Read an upload and add its runs; what is said of it calls it by its owner's name."""
    path, shown = Path(given["path"]), given["file"]
    step("reading", 0, 2)
    reading = RunReading(**given["reading"])
    options = {name: given[name] for name in ("name", "tags", "note", "kind", "replace")}
    try:
        with limited(MOST_IN_TABLE):
            refuse_bomb(path, shown, given["most"])
            added = store.add(RenamedFile(path, shown), reading=reading, step=step, **options)
    except DemurError as fault:  # whoever tells of the file itself knows only where we put it
        raise _fault_of(fault, path, shown) from None
    return {"file": shown, "runs": [added_values(one) for one in added]}


PICKED = "choose it among the columns below"
"""How a column is named on the page, where commands have --map."""


def _fault_of(fault: DemurError, path: Path, shown: str) -> UsageError:
    """The fault as it is told: a file, and a system named after it, go by their owner's name, not by ours."""
    if isinstance(fault, DataError):
        flags = ("did you mean --map ", "name it with --map ")
        fault = fault.rewritten(lambda text: PICKED if text.startswith(flags) else text)
    said = str(fault).replace(str(path), shown)
    return UsageError(said.replace(f'system "{stem_of(path)}"', f'system "{stem_of(Path(shown))}"'))


def preview_upload(_: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The columns of an upload, the first of its rows, which columns are read for what, and which might be."""
    path, shown = Path(given["path"]), given["file"]
    step("reading", 0, 1)
    try:
        with limited(MOST_IN_TABLE):
            refuse_bomb(path, shown, given["most"])
            rows = read_table(path).head(ROWS_SHOWN)
    except DemurError as fault:
        raise _fault_of(fault, path, shown) from None
    texts = [["" if cell is None else str(cell)[:LONGEST_SHOWN] for cell in row] for row in rows.iter_rows()]
    guesses = {
        name: column
        for name in NAMES
        for column in reversed(rows.columns)
        if column.casefold() in (name, *ALIASES.get(name, ()))
    }
    free = [column for column in rows.columns if column not in guesses.values()]
    likely = likely_columns(free, [part for part in _PROPOSED if part not in guesses])
    return {"columns": rows.columns, "rows": texts, "guesses": guesses, "likely": likely}


def added_values(one: Added) -> dict[str, Any]:
    """A run that was added, as plain values."""
    run = one.run
    about = {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n}
    return {**about, "notes": list(run.notes), "warnings": list(run.warnings), "new": one.new}


Files = list[tuple[Path, str, dict[str, Any]]]
"""Files with the name of their run and how to read them."""


@dataclass(frozen=True, slots=True)
class BundledExample:
    """Runs that come with the package, and the page that they are for."""

    label: str
    files: Callable[[Path], Files]
    """The files; those that must be made first go into the folder."""
    page: Callable[[list[str]], str]
    """Where to go, given the ids of the runs."""


def _restaurant(_: Path) -> Files:
    from demur.lab.corpora import restaurant_folder

    return [(restaurant_folder() / "turns.jsonl.gz", "restaurant guide", {})]


def _wizards(_: Path) -> Files:
    from demur.lab.corpora import wizards

    axes = {"x": "wer", "y": "completed"}
    place = wizards().folder
    return [(place / "trials.csv", "wizards", axes), (place / "lesions.csv", "wizards, lesions", axes)]


def _tutor(folder: Path) -> Files:
    from demur.lab import tutor

    turns, dialogues = tutor.study()
    tables = {"tutor": turns, "tutor gains": dialogues, "tutor, cautious": tutor.answers(turns, "cautious")}
    files: Files = []
    for place, (name, rows) in enumerate(tables.items()):
        path = folder / f"{place}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        files.append((path, name, {}))
    return files


EXAMPLES = {
    "restaurant": BundledExample(
        "a simulated trial of a restaurant guide", _restaurant, lambda ids: f"/nbest/{ids[0]}"
    ),
    "wizards": BundledExample("a simulated Wizard-of-Oz study", _wizards, lambda ids: f"/gold/{ids[0]}"),
    "tutor": BundledExample(
        "a simulated study of a tutor", _tutor, lambda ids: f"/outcome?turns={ids[0]}&dialogues={ids[1]}&with={ids[2]}"
    ),
}


def add_example(site: Site, query: Query, _: dict[str, Any]) -> dict[str, Any]:
    """Add the runs of an example; those that are there already stay."""
    name = query.path["name"]
    if name not in EXAMPLES:
        raise UsageError(f'there is no example "{name}"; {nearest(name, EXAMPLES)}')
    example = EXAMPLES[name]
    with TemporaryDirectory(prefix="demur-") as folder:
        added = [
            site.store.add(path, name=_free_name(site, called), tags=("example",), reading=RunReading(**axes))[0]
            for path, called, axes in example.files(Path(folder))
        ]
    ids = [one.run.id for one in added]
    return {"runs": ids, "page": example.page(ids)}


def _free_name(site: Site, name: str) -> str:
    """The name, with a number where another run has it."""
    taken = {run.name for run in site.store.runs()}
    names = (name, *(f"{name} ({number})" for number in range(2, len(taken) + 3)))
    return next(one for one in names if one not in taken)


def add_demo(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Have the worker train the models of the demo and add their logs."""
    job = site.worker.start(f"{__name__}:demo", {}, about="Adding the logs of the demo")
    return {"job": job.to_dict()}


def demo(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:  # noqa: ARG001
    """Add the logs of the demo: three models of a museum guide, on questions as asked and as they were misheard."""
    from demur.lab.corpora import museum
    from demur.lab.understanding_experiments import answer_museum, write_logs

    step("training three small models", 0, 2)
    table = answer_museum(museum())
    step("adding their logs", 1, 2)
    with TemporaryDirectory(prefix="demur-") as folder:
        write_logs(table, Path(folder))
        files = sorted(Path(folder).glob("*.jsonl"))
        added = store.add(*files, tags=("example",), note="A museum guide, from demur demo.")
    return {"runs": [added_values(one) for one in added]}


ACTIONS: tuple[Action, ...] = (
    Action("/api/examples/{name}", "POST", add_example, status=201),
    Action("/api/demo", "POST", add_demo, status=202),
)


def refuse_bomb(path: Path, shown: str, most: int) -> None:
    """Refuses a file that unpacks to more than an upload may hold, in bytes, lines or columns."""
    rule = f"unpacks to more than an upload may hold, {size_text(most)}"
    fix = f"{FIX}, or start demur serve with a larger --max-upload"
    if unpacked_size(path, most) > most:
        raise DataError(rule, where=f"{shown}:", fix=fix)
    with opened(path, others=True) as (source,):
        if source.format == "other":
            if zip_size(path) > most:
                raise DataError(rule, where=f"{shown}:", fix=fix)
        elif source.format not in ("parquet", "arrow"):
            _refuse_lines(source, shown)
        elif _columnar_size(source, shown) > most:
            raise DataError(rule, where=f"{shown}:", fix=fix)


def size_text(size: int) -> str:
    """A size as it is told: in megabytes, or in bytes where it is small."""
    return f"{size / 1024**2:,.0f} MB" if size >= 1024**2 else f"{size:,} bytes"


def unpacked_size(path: Path, most: int) -> int:
    """Bytes that a file unpacks to, as far as that can be bounded without reading it.

    Gzip is unpacked and thrown away piece by piece, up to `most`. Of Zstandard the blocks are counted, each of which
    can unpack to so much and no more.
    """
    with path.open("rb") as file:
        packing = compression_of(file.read(4))
        file.seek(0)
        if packing == "gzip":
            return gzip_size(file, most)
        return zstd_size(file) if packing == "zstd" else path.stat().st_size


def gzip_size(file: BinaryIO, most: int) -> int:
    """Bytes that a gzip file unpacks to, counted no further than is allowed; of a damaged one, up to the damage."""
    size, unpacker = 0, zlib.decompressobj(wbits=31)
    while size <= most and (packed := file.read(CHUNK)):
        while packed and size <= most:
            try:
                size += len(unpacker.decompress(packed, CHUNK))
            except zlib.error:
                return size
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
    return size


def _refuse_lines(source: Source, shown: str) -> None:
    lines = objects = 0
    for block in source.blocks(cut=True):
        lines += block.count(b"\n")
        objects += block.count(b"{")
        for count, most, what in ((lines, MOST_IN_TABLE.rows, "lines"), (objects, MOST_IN_TABLE.cells, "objects")):
            if count > most:
                rule = f"has more than {most:,} {what}, which are the most that an upload may have"
                raise DataError(rule, where=f"{shown}:", fix=FIX)
    if source.format != "json":
        refuse_large(len(header_of(source)), lines, shown)


def _columnar_size(source: Source, shown: str) -> int:
    """Bytes of the texts and lists of a table in columns, and a byte for each cell; 0 where it cannot be read.

    A value that is kept once on disk may stand in millions of cells; to count what they hold takes no room, as Polars
    has all of them look at the one.
    """
    try:
        with quiet_panics():
            return _sum_of_cells(scan_columnar(source), shown)
    except UNREADABLE:
        return 0


def _sum_of_cells(frame: pl.LazyFrame, shown: str) -> int:
    schema = frame.collect_schema()
    leaves = sum(map(_leaves, schema.dtypes()))
    refuse_large(leaves, 1, shown)
    rows = int(frame.select(pl.len()).collect().item())
    refuse_large(leaves, rows, shown)
    size = rows * leaves
    for name, kind in schema.items():
        sizes = _sizes(named_column(name), kind)
        found = frame.select(one.cast(pl.UInt64).sum().alias(str(k)) for k, one in enumerate(sizes)).collect()
        size += sum(map(int, found.row(0))) if sizes else 0
    return size


def _leaves(kind: Any) -> int:
    """Columns that a column is made of."""
    if isinstance(kind, pl.Struct):
        return max(1, sum([_leaves(field.dtype) for field in kind.fields]))
    return _leaves(kind.inner) if isinstance(kind, pl.List | pl.Array) else 1


def _sizes(cell: pl.Expr, kind: Any) -> list[pl.Expr]:
    """What the cells of a column hold beyond a byte each: bytes of texts, values of lists, and what is in these."""
    if isinstance(kind, pl.Struct):
        return [size for field in kind.fields for size in _sizes(cell.struct.field(field.name), field.dtype)]
    if isinstance(kind, pl.Array):
        return _sizes(cell.arr.to_list(), pl.List(kind.inner))
    if isinstance(kind, pl.List):
        return [cell.list.len(), *_sizes(cell.list.explode(), kind.inner)]
    if isinstance(kind, pl.Categorical | pl.Enum):
        return [cell.cat.len_bytes()]
    if kind == pl.Binary:
        return [cell.bin.size()]
    return [cell.str.len_bytes()] if kind == pl.String else []
