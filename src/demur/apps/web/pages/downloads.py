"""Rows that a page shows, as a table to take away."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from demur.apps.web.pages.errors import Asked, asked_of, found_rows
from demur.apps.web.query import Query
from demur.apps.web.site import Site

MOST_DOWNLOADED = 100_000
"""Rows of one table; it is made in memory."""

COLUMNS = ("id", "input", "target", "prediction", "confidence", "right", "answered", "failed", "out_of_scope")
FORMULAE = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a cell begins that a spreadsheet would run."""


def downloader(site: Site) -> Callable[[Request], Any]:
    """What answers a request for the rows of the errors page as CSV."""

    async def download(request: Request) -> Response:
        query = Query({}, request.query_params.multi_items())
        return await run_in_threadpool(_table, site, asked_of(site, query))

    return download


def _table(site: Site, asked: Asked) -> Response:
    rows = found_rows(site, asked, offset=0, limit=MOST_DOWNLOADED).rows
    headers = {"content-disposition": f'attachment; filename="answers-{asked.run.id}-{asked.show}.csv"'}
    return Response(csv_of(rows), media_type="text/csv; charset=utf-8", headers=headers)


def csv_of(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: the answers, then the columns they can be sliced by."""
    slices = list(rows[0]["slices"]) if rows else []
    text = io.StringIO()
    out = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)  # a spreadsheet that parts cells at ; would find more
    out.writerow([*COLUMNS, *map(_cell, slices)])
    for row in rows:
        out.writerow([_cell(row.get(name)) for name in COLUMNS] + [_cell(row["slices"][name]) for name in slices])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A cell as text; one that a spreadsheet would take for a formula is marked as text."""
    if isinstance(value, list):
        value = " | ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAE) else value
