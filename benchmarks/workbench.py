"""Run store, report and workbench on logs of a million rows: seconds, milliseconds while dragging, and memory."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.logs import log
from benchmarks.looking import browser, chromium, dragged, until_drawn
from benchmarks.measuring import Line, Spent, cheapest, spend
from benchmarks.served import Server, served
from benchmarks.startup import COMMAND
from demur.store.runs import Store

ROWS, FEW, REPORTED = 1_000_000, 1_000, 100_000
ADD_BAR, COLD_BAR, CACHED_BAR = 10.0, 5.0, 1.0
"""Seconds."""
UPDATE_BAR = 100.0
"""Milliseconds of an update while the threshold is dragged."""
MEMORY_BAR = 1_000.0
SIZE_BAR = 1.1
TIMES, MOVES = 3, 40
THRESHOLDS = (0.05, 0.3, 0.5, 0.65, 0.8, 0.9, 0.97)
COPY = "import polars as pl, sys; pl.read_parquet(sys.argv[1]).write_parquet(sys.argv[2], compression='zstd')"

MILLION = "1e+06 rows"


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        yield from _adding(place)
        yield from _pages(place / "store")
        yield from _reports(place)


def _adding(folder: Path) -> Iterator[Line]:
    paths = _written(folder, ROWS)
    copied = str(folder / "copy.parquet")
    polars = cheapest({"copy": [sys.executable, "-c", COPY, str(paths[0]), copied]}, repeats=TIMES)["copy"]
    took = [_added(folder / f"store_{time}", paths[0]) for time in range(TIMES)]
    wall, cpu = min(one.wall for one in took), min(one.cpu for one in took)
    against = f"Polars reads and writes the same Parquet: {polars.cpu:.2f} s CPU, {polars.wall:.2f} s wall clock"
    yield Line(f"demur add, {MILLION}: wall clock", wall, "s", ADD_BAR, against)
    yield Line(f"demur add, {MILLION}: CPU", cpu / polars.cpu, "x CPU", None, against)
    for path in (*paths, *_written(folder, FEW)):
        _added(folder / "store", path)


def _written(folder: Path, rows: int) -> list[Path]:
    """Logs of two systems as files."""
    paths = [folder / f"{name}_{rows}.parquet" for name in ("one", "two")]
    for system, path in enumerate(paths):
        log(rows, system).write_parquet(path)
    return paths


def _added(store: Path, path: Path) -> Spent:
    return spend([COMMAND, "add", str(path), "--store", str(store)])


def _pages(store: Path) -> Iterator[Line]:
    with served(store) as server:
        yield from _compared(server, store)
        yield from _looked_up(server)
        if path := chromium():
            yield from _seen(server, path)
        yield from _beside(server)
        against = "server and worker together at one moment, pages that they share counted twice"
        yield Line(f"workbench, two runs of {MILLION}: largest resident set", server.largest, "MB", MEMORY_BAR, against)


def _comparison(rows: int = ROWS) -> str:
    return f"run=one_{rows}&run=two_{rows}"


def _compared(server: Server, store: Path) -> Iterator[Line]:
    """The page when nothing is known of the runs, and when their comparison is kept."""
    cold = [_cold(server, store) for _ in range(TIMES)]
    title = f"compare page, two runs of {MILLION}"
    best = min(one.cpu for one in cold)
    against = f"nothing kept, worker warm; {best:.2f} s CPU of server and worker"
    yield Line(f"{title}, cold: wall clock", min(one.wall for one in cold), "s", COLD_BAR, against)
    kept = median(server.spent(f"/compare?{_comparison()}").wall for _ in range(15))
    size = len(server.answer(f"/compare?{_comparison()}")) / 1000
    yield Line(f"{title}, kept: answer of the server", kept, "s", CACHED_BAR, f"median of 15; {size:,.0f} kB")


def _cold(server: Server, store: Path) -> Spent:
    """What the comparison takes a worker that has done another one, of few rows, since it was started."""
    with closing(Store.open(store)) as opened:
        opened.clear_cache()
    server.answer(f"/compare.json?{_comparison(FEW)}&wait=1")
    return server.spent(f"/compare.json?{_comparison()}&wait=1")


def _looked_up(server: Server) -> Iterator[Line]:
    """The table of answers behind a point, as it is asked for while the threshold moves."""
    asked = {
        "wrong ones": "",
        "wrong ones of a slice": "&where=domain%3Ddomain3",
        "right but withheld, nearest": "&show=missed&order=nearest",
        "wrong here, not in the other": f"&show=alone&other=two_{ROWS}&other_threshold=0.5",
    }
    for name, query in asked.items():
        link = f"/errors/rows.json?run=one_{ROWS}&limit=12{query}"
        server.answer(f"{link}&threshold=0.4")
        took = [1000 * server.spent(f"{link}&threshold={threshold}").wall for threshold in THRESHOLDS]
        title = f"answers behind a point, {MILLION}, {name}: answer of the server"
        against = f"median of {len(took)} thresholds; the slowest: {max(took):.0f} ms"
        yield Line(title, median(took), "ms", UPDATE_BAR, against)


def _seen(server: Server, path: str) -> Iterator[Line]:
    """What somebody sees who opens the page and drags the threshold."""
    link = f"{server.url}/compare?{_comparison()}"
    with browser(path) as found:
        drawn = [until_drawn(found, link) / 1000 for _ in range(2 * TIMES)]
        told = dragged(found, link, MOVES)
    title = f"compare page, two runs of {MILLION}"
    against = f"Chromium that knows no file of it, median of {len(drawn)}; the slowest: {max(drawn):.2f} s"
    yield Line(f"{title}, kept: first drawn", median(drawn), "s", CACHED_BAR, against)
    for name, key in (("counts and handles painted", "painted"), ("answers below replaced", "answered")):
        took = told[key]
        against = f"Chromium, median of {len(took)} moves of the pointer; the slowest: {max(took):.0f} ms"
        yield Line(f"{title}, threshold dragged: {name}", median(took), "ms", UPDATE_BAR, against)


def _beside(server: Server) -> Iterator[Line]:
    """Other pages of a million rows, which add to what the server holds."""
    sought = f"run=one_{ROWS}&other=two_{ROWS}&where=device%3Ddevice1&search=word7"
    for name, link in {
        "errors page beside another run, filtered and searched": f"/errors?{sought}",
        "run page, kept": f"/run/one_{ROWS}?wait=1",
    }.items():
        server.answer(link)
        yield Line(f"{name}, {MILLION}: answer of the server", server.spent(link).wall, "s", CACHED_BAR, "asked again")


def _reports(folder: Path) -> Iterator[Line]:
    """A report of many rows beside one of few."""
    took, size = {}, {}
    for rows in (FEW, REPORTED):
        page = folder / f"report_{rows}.html"
        paths = map(str, _written(folder, rows))
        took[rows] = spend([COMMAND, "report", *paths, "-o", str(page), "--quiet"])
        size[rows] = page.stat().st_size
    title = f"report on two logs of {REPORTED:.0e} rows"
    against = f"{FEW:.0e} rows: {took[FEW].wall:.2f} s, {size[FEW] / 1e6:.2f} MB"
    yield Line(f"{title}: wall clock", took[REPORTED].wall, "s", None, against)
    yield Line(f"{title}: size", size[REPORTED] / size[FEW], "x", SIZE_BAR, against)
