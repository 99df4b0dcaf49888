"""The answers behind a point or a range of a curve, in one run or two, and their download."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
import polars as pl
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from demur.apps.web.pages.compare import run_summary
from demur.apps.web.site import Page, PageContent, Query, Site
from demur.core.io.sources import exactly
from demur.core.io.tables import ROW, counterparts
from demur.core.show.results import Step
from demur.errors import DataError, UsageError
from demur.store.records import Run
from demur.store.rows import Mask, Order, Outcome, RowPage, RunRows
from demur.store.runs import Store

Places = NDArray[np.int32]

NAMELESS = np.uint64(0)
"""Stands for the hash of an id where there is none."""

PAIRS_AT_HAND = 4
"""Pairs of runs whose common rows stay in memory; of a million rows each takes 8 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class RunMatch:
    """Places of the other run's file at which the inputs of one run stand; -1 where it has no such input."""

    by_place: Places
    """In the order of the one run's file."""
    by_row: Places
    """By the number of the row in the table that it came from."""

    def errs(self, other: RunRows, threshold: float | None) -> tuple[Mask, Mask]:
        """Of every row of the one run, whether the other run errs on its input, and whether it has it at all."""
        known = self.by_place >= 0
        return known & other.mask("wrong", threshold)[self.by_place], known

    def rows(self, other: RunRows, numbers: Sequence[int]) -> list[dict[str, Any] | None]:
        """What the other run has to the inputs of these rows."""
        places = self.by_row[np.asarray(numbers, dtype=np.int64)].astype(np.int64)
        found = iter(other.at(places[places >= 0]))
        return [next(found) if place >= 0 else None for place in places]


def match_runs(one: RunRows, other: RunRows) -> RunMatch:
    """Two runs side by side, by the ids of their inputs."""
    match = _match_files(exactly(one.path), exactly(other.path))
    if not (match.by_place >= 0).any():
        rule = f'"{one.run.name}" and "{other.run.name}" have no id in common'
        raise DataError(rule, fix="answers can be shown side by side only where both runs name the same inputs")
    return match


@lru_cache(maxsize=PAIRS_AT_HAND)
def _match_files(one: str, other: str) -> RunMatch:
    """Files of runs never change, so their names stand for them.

    Ids are matched by their hashes, in a fraction of the time and room; two of a million ids that share one of 64 bits
    would be a wonder, and rows are shown with their ids.
    """
    (rows, own), (_, there) = _hash_ids(one), _hash_ids(other)
    by_place = counterparts(own, there)
    by_place[own == NAMELESS] = -1
    by_row = np.empty_like(by_place)
    by_row[rows] = by_place
    return RunMatch(by_place, by_row)


def _hash_ids(path: str) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The number of each row in the table it came from, and the hash of its id."""
    none = pl.lit(int(NAMELESS), dtype=pl.UInt64)
    hashes = pl.when(pl.col("id").is_null()).then(none).otherwise(pl.col("id").hash())
    table = pl.scan_parquet(path).select(ROW, hashes.alias("id")).collect()
    return table[ROW].to_numpy(), table["id"].to_numpy()


SHOWS: dict[str, str] = {
    "wrong": "wrong and returned",
    "missed": "right but withheld",
    "scope": "out of scope, yet answered",
    "withheld": "withheld",
    "right": "right and returned",
    "failed": "failed",
    "all": "all",
}
"""What can be shown of one run."""

BESIDE = {"alone": "wrong here, not there", "both": "wrong in both"}
"""What can be shown of a run beside another."""

ORDERS: dict[Order, str] = {"surest": "surest first", "least": "least sure first", "nearest": "nearest the threshold"}

USUAL_ROWS, MOST_ROWS = 50, 200
MOST_FILTERS = 12
"""Columns that can be filtered by with a click; a link can filter by any."""

LABELS = ("label", "prediction", "intent", "name", "value", "act", "text", "hyp")
CERTAINTIES = ("p", "confidence", "score", "prob", "probability")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """What a link asks to see."""

    run: Run
    show: str
    order: Order
    threshold: float | None
    low: float | None
    high: float | None
    where: tuple[tuple[str, str], ...]
    search: str
    other: Run | None
    other_threshold: float | None

    @property
    def outcome(self) -> Outcome:
        """What becomes of the rows at the threshold."""
        return "wrong" if self.show in BESIDE else self.show  # type: ignore[return-value]

    @property
    def chosen(self) -> dict[str, Any]:
        """Which rows are looked at, whatever became of them, and the threshold."""
        return {name: getattr(self, name) for name in ("threshold", "low", "high", "where", "search")}

    def lake_page(self, offset: int, limit: int) -> dict[str, Any]:
        """What the engine of a linked run is asked for."""
        page = {"outcome": self.outcome, "order": self.order, "offset": offset, "limit": limit}
        return {"chosen": self.chosen, "page": page}

    def link(self, path: str, **changes: Any) -> str:
        """A link to the same rows, or to others where something changes."""
        given: dict[str, Any] = {
            "run": self.run.id,
            "show": self.show,
            "threshold": self.threshold,
            "low": self.low,
            "high": self.high,
            "where": [f"{column}={value}" for column, value in self.where],
            "search": self.search,
            "order": self.order,
            "other": None if self.other is None else self.other.id,
            "other_threshold": self.other_threshold,
            **changes,
        }
        return f"{path}?{urlencode({key: value for key, value in given.items() if value not in (None, '', [])}, True)}"


class ErrorsPage(Page):
    """The answers of a run, one outcome at a time."""

    path, template = "/errors", "errors.html"
    heading = "Errors"

    def show(self, site: Site, query: Query) -> PageContent:
        """The page: one run, one outcome, filters, and some of the rows."""
        choices = [run_summary(run) for run in site.store.runs(kind="responses")]
        if not query.text("run"):
            return PageContent("Answers", {"choices": choices, "asked": None})
        asked = row_query(site, query)
        document = _row_list(site, asked, query)
        around = _around(site, asked, document["page"])
        return PageContent(f"Answers of {asked.run.name}", {**document, "choices": choices, **around})


class ErrorRowsPage(Page):
    """The rows of the errors page alone, for a page that shows some of them below a plot."""

    path, template = "/errors/rows", "errors_rows.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The rows alone."""
        asked = row_query(site, query)
        return PageContent(f"Answers of {asked.run.name}", _row_list(site, asked, query))


def _row_list(site: Site, asked: RowQuery, query: Query) -> dict[str, Any]:
    limit, number = query.whole("limit", USUAL_ROWS, low=1, high=MOST_ROWS), query.whole("page", 1, low=1)
    page = find_rows(site, asked, offset=(number - 1) * limit, limit=limit)
    return {
        "asked": {
            "run": {"id": asked.run.id, "name": asked.run.name, "n": asked.run.n},
            "other": None if asked.other is None else {"id": asked.other.id, "name": asked.other.name},
            "other_threshold": asked.other_threshold,
            "where": [list(pair) for pair in asked.where],
            **{name: getattr(asked, name) for name in ("show", "order", "threshold", "low", "high", "search")},
        },
        "total": page.total,
        "page": number,
        "pages": max(1, -(-page.total // limit)),
        "first": (number - 1) * limit + 1,
        "rows": page.rows,
        "label": {**SHOWS, **BESIDE}[asked.show],
    }


def row_query(site: Site, query: Query) -> RowQuery:
    """What a link asks to see, checked."""
    run = site.store.run(query.text("run"))
    if run.kind != "responses":
        raise UsageError(f'"{run.name}" is a run of {run.kind}; only runs of answers are shown here')
    other = site.store.run(query.text("other")) if query.text("other") else None
    show = query.choice("show", (*SHOWS, *BESIDE), "wrong")
    if other is not None and (run.lake or other.lake):
        raise UsageError("rows of linked runs are shown alone: they are not matched by id here")
    if show in BESIDE and other is None:
        raise UsageError(f"show={show} needs a second run: other=NAME")
    return RowQuery(
        run=run,
        show=show,
        order=query.choice("order", tuple(ORDERS), "surest"),  # type: ignore[arg-type]
        threshold=query.number("threshold"),
        low=query.number("low"),
        high=query.number("high"),
        where=query.where(columns=run.columns),
        search=query.text("search"),
        other=other,
        other_threshold=query.number("other_threshold"),
    )


def find_rows(site: Site, asked: RowQuery, *, offset: int, limit: int) -> RowPage:
    """Rows that were asked for, each beside that of the other run where there is one."""
    if asked.run.lake:
        found = site.result(f"{__name__}:lake_page", [asked.run], _looking(asked), **asked.lake_page(offset, limit))
        return RowPage(found["total"], [_with_hypotheses(row) for row in found["rows"]])
    own = site.rows(asked.run)
    other = None if asked.other is None else site.rows(asked.other)
    match = None if other is None else match_runs(own, other)
    among: Mask | None = None
    if match is not None and other is not None and asked.show in BESIDE:
        errs, known = match.errs(other, asked.other_threshold)
        among = errs if asked.show == "both" else known & ~errs
    page = own.page(
        asked.outcome,
        threshold=asked.threshold,
        low=asked.low,
        high=asked.high,
        where=asked.where,
        search=asked.search,
        among=among,
        offset=offset,
        limit=limit,
        order=asked.order,
    )
    rows = [_with_hypotheses(row) for row in page.rows]
    if match is not None and other is not None:
        theirs = match.rows(other, [row["row"] for row in page.rows])
        for row, one in zip(rows, theirs, strict=True):
            row["other"] = None if one is None else _with_hypotheses(one)
    return RowPage(page.total, rows)


def _with_hypotheses(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "nbest": hypotheses(row["nbest"])}


def hypotheses(nbest: Any) -> list[dict[str, Any]]:
    """What a system had thought of, best first: the words of each hypothesis and its confidence where it has one.

    >>> hypotheses([{"label": "yes", "p": 0.9}, ["no", 0.1], "what"])[1]
    {'text': 'no', 'confidence': 0.1}
    """
    hypotheses = nbest if isinstance(nbest, list) else [] if nbest is None else [nbest]
    values = []
    for one in hypotheses:
        if isinstance(one, dict):
            text = next((one[name] for name in LABELS if name in one), one)
            confidence = next((one[name] for name in CERTAINTIES if name in one), None)
        else:
            text, confidence = one if isinstance(one, list) and len(one) == 2 else (one, None)
        is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
        shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        values.append({"text": shown, "confidence": confidence if is_number else None})
    return values


def _looking(asked: RowQuery) -> str:
    return f"Looking for rows of {asked.run.name} where they lie"


def lake_page(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """Rows of a linked run, looked for by its engine."""
    run = store.run(given["runs"][0])
    step(f"looking for rows of {run.name}", 0, 1)
    page = store.lake_rows(run).page(**_lake_choice(given), **given["page"])
    return {"total": page.total, "rows": page.rows}


def lake_counts(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """How many rows of a linked run have each outcome, and the values that they can be filtered by."""
    run = store.run(given["runs"][0])
    step(f"counting rows of {run.name}", 0, 1)
    rows = store.lake_rows(run)
    return {"counts": rows.counts(**_lake_choice(given)), "slices": rows.slices()}


def _lake_choice(given: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = given["chosen"]
    return {**chosen, "where": [(column, value) for column, value in chosen["where"]]}


def _counts_and_slices(site: Site, asked: RowQuery) -> tuple[dict[str, int], dict[str, list[tuple[str, int]]]]:
    """How many rows there are of each outcome, and the values of columns."""
    if asked.run.lake:
        found = site.result(f"{__name__}:lake_counts", [asked.run], _looking(asked), chosen=asked.chosen)
        return found["counts"], found["slices"]
    own = site.rows(asked.run)
    return own.counts(**asked.chosen), own.slices()


def _around(site: Site, asked: RowQuery, number: int) -> dict[str, Any]:
    """What stands around the rows: how many there are of each outcome, filters, and links."""
    counts, slices = _counts_and_slices(site, asked)
    beside = {} if asked.other is None else BESIDE
    tabs = [
        {"show": show, "label": label, "count": counts.get(show), "link": asked.link("/errors", show=show)}
        for show, label in {**SHOWS, **beside}.items()
    ]
    return {
        "counts": counts,
        "tabs": tabs,
        "orders": ORDERS,
        "slices": dict(list(slices.items())[:MOST_FILTERS]),
        "links": {
            "before": asked.link("/errors", page=number - 1),
            "after": asked.link("/errors", page=number + 1),
            "csv": asked.link("/errors.csv"),
            "run": f"/run/{asked.run.id}",
            "nothing": asked.link("/errors", where=[], search="", low=None, high=None, threshold=None),
        },
    }


MOST_DOWNLOADED = 100_000
"""Rows of one table; it is made in memory."""

COLUMNS = ("id", "input", "target", "prediction", "confidence", "right", "answered", "failed", "out_of_scope")
FORMULAE = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a cell begins that a spreadsheet would run."""


def downloader(site: Site) -> Callable[[Request], Any]:
    """What answers a request for the rows of the errors page as CSV."""

    def table_of(query: Query) -> Response:
        asked = row_query(site, query)
        if asked.run.lake:
            found = site.store.lake_rows(asked.run).page(**asked.chosen, **asked.lake_page(0, MOST_DOWNLOADED)["page"])
            rows = [_with_hypotheses(row) for row in found.rows]
        else:
            rows = find_rows(site, asked, offset=0, limit=MOST_DOWNLOADED).rows
        headers = {"content-disposition": f'attachment; filename="answers-{asked.run.id}-{asked.show}.csv"'}
        return Response(csv_of(rows), media_type="text/csv; charset=utf-8", headers=headers)

    async def download(request: Request) -> Response:
        return await run_in_threadpool(table_of, Query({}, request.query_params.multi_items()))

    return download


def csv_of(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: the answers, then the columns they can be sliced by."""
    slices = list(rows[0]["slices"]) if rows else []
    text = io.StringIO()
    out = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)  # a spreadsheet that parts cells at ; would find more
    out.writerow([*COLUMNS, *map(_csv_cell, slices)])
    for row in rows:
        out.writerow(
            [_csv_cell(row.get(name)) for name in COLUMNS] + [_csv_cell(row["slices"][name]) for name in slices]
        )
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    """A cell as text; one that a spreadsheet would take for a formula is marked as text."""
    if isinstance(value, list):
        value = " | ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAE) else value
