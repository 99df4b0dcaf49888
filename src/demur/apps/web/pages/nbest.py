"""The N-best inspector: what lists of hypotheses are worth, and then turn by turn why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import polars as pl

from demur.apps.web.pages.runs import choosing, run_values
from demur.apps.web.site import Page, PageContent, Query, Site, Waiting, signature_of
from demur.core.io.tables import named_column
from demur.core.show.numbers import natural_order
from demur.core.show.results import Step
from demur.errors import DemurError, UsageError
from demur.nbest_lists.measures import FLOOR

if TYPE_CHECKING:
    from demur.store.records import Run
    from demur.store.runs import Store

PER_LIST = 25
"""Turns that a list shows at a time."""

LONGEST = 400
"""Characters of a text in the list of turns; the turn itself shows all."""

BULKY = ("id", "system", "dialogue", "input", "reference", "acts", "confidence", "prediction", "words")


@dataclass(frozen=True, slots=True)
class Sort:
    """An order of turns: what it is called, which turns it keeps, and by what they are ordered."""

    label: str
    keep: pl.Expr | None = None
    order: pl.Expr | None = None
    """Large first; None leaves turns as they came."""


ACT_SORTS: Mapping[str, Sort] = {
    "ice": Sort("largest ICE first", order=pl.col("ice")),
    "wrong": Sort("wrong, the surest first", ~pl.col("right"), pl.col("sure")),
    "better": Sort("a later hypothesis is better", pl.col("ser") > pl.col("oracle"), pl.col("ser") - pl.col("oracle")),
    "missing": Sort("no hypothesis is right in all", pl.col("oracle") > 0, pl.col("oracle")),
    "order": Sort("by id"),
}
LABEL_SORTS: Mapping[str, Sort] = {
    "wrong": Sort("wrong, the surest first", pl.col("answered") & ~pl.col("right"), pl.col("sure")),
    "second": Sort("the right label stands further down", pl.col("rank") > 1, -pl.col("rank")),
    "missing": Sort(
        "the right label is not in the list", (pl.col("rank") == 0) & ~pl.col("out_of_scope"), pl.col("sure")
    ),
    "ice": Sort("right label least believed in first", pl.col("cost").is_not_null(), pl.col("cost")),
    "order": Sort("as they came"),
}


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """Which turn is looked at, counted from 1 as they came, and in which order of which turns."""

    sort: str
    search: str = ""
    at: int | None = None
    by: str = ""

    def query(self, at: int | None) -> str:
        """The query of a link to a turn in the same order."""
        parts = {"at": at, "sort": self.sort, "search": self.search, "by": self.by}
        return urlencode({name: value for name, value in parts.items() if value})


def read_turns(content: bytes, *, searched: bool) -> pl.DataFrame:
    """The figures of all turns, and their words if they are searched."""
    table = pl.scan_parquet(BytesIO(content))
    names = [name for name in table.collect_schema().names() if name not in BULKY or (searched and name == "words")]
    return table.select(map(named_column, names)).with_row_index("place").collect()


def inspect_turns(figures: pl.DataFrame, content: bytes, asked: TurnQuery, sorts: Mapping[str, Sort]) -> dict[str, Any]:
    """The turn that is looked at, its neighbours, and the list around it."""
    places = _order_turns(figures, sorts[asked.sort], asked.search)
    place = None if asked.at is None else asked.at - 1
    position = places.index(place) if place in places else 0
    first = position // PER_LIST * PER_LIST
    around = places[first : first + PER_LIST]
    # A turn that was linked to is shown even where the search and the order leave it out.
    here = place if place is not None and place < figures.height else places[position] if places else None
    rows = _turn_rows(content, [*around, *([] if here is None else [here])])

    def link(position: int) -> str | None:
        return asked.query(places[position] + 1) if 0 <= position < len(places) else None

    return {
        "sort": asked.sort,
        "sorts": {name: one.label for name, one in sorts.items()},
        "search": asked.search,
        "by": asked.by,
        "total": len(places),
        "of": figures.height,
        "position": position + 1 if here is not None and here in around else None,
        "turn": None if here is None else turn_values(rows[here]),
        "list": [{**_brief(rows[place]), "query": asked.query(place + 1), "here": place == here} for place in around],
        "links": {
            "previous": link(position - 1),
            "next": link(position + 1),
            "earlier": link(first - PER_LIST),
            "later": link(first + PER_LIST),
        },
    }


def _order_turns(figures: pl.DataFrame, sort: Sort, search: str) -> list[int]:
    kept = figures if sort.keep is None else figures.filter(sort.keep)
    if search.split():
        kept = kept.filter(*(pl.col("words").str.contains(word, literal=True) for word in search.lower().split()))
    if sort.order is not None:
        kept = kept.sort(sort.order, descending=True, nulls_last=True, maintain_order=True)
    return kept["place"].to_list()


def _turn_rows(content: bytes, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The turns at these places, each read by itself: few of many are wanted."""
    if not places:
        return {}
    table, wanted = BytesIO(content), list(dict.fromkeys(places))
    rows = pl.concat([pl.scan_parquet(table).drop("words").slice(place, 1) for place in wanted]).collect()
    return {place: {"place": place, **row} for place, row in zip(wanted, rows.iter_rows(named=True), strict=True)}


def _brief(row: dict[str, Any]) -> dict[str, Any]:
    acts, text = row["acts"] or [], row["input"]
    top = max(range(len(acts)), key=lambda place: (row["confidence"] or [])[place] or 0.0) if acts else None
    return {
        "number": row["place"] + 1,
        "id": row["id"],
        "input": text if text is None or len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…",
        "reference": list(row["reference"] or []),
        "first": None if top is None else list(acts[top]),
        "confidence": None if top is None else row["confidence"][top],
        "right": row["right"],
        "value": row.get("ice", row.get("cost")),
        "rank": row.get("rank"),
    }


def turn_values(row: dict[str, Any]) -> dict[str, Any]:
    """Everything that is to be seen of a turn."""
    meant = list(row["reference"] or [])
    labels = "rank" in row
    hypotheses = []
    for items, confidence in zip(row["acts"] or [], row["confidence"] or [], strict=True):
        shared = len(set(items) & set(meant))
        hypotheses.append(
            {
                "items": [{"text": item, "right": item in meant} for item in items],
                "confidence": confidence,
                "right": shared > 0 if labels else set(items) == set(meant),
                "errors": None if labels else max(len(meant), len(items)) - shared,
            }
        )
    hypotheses.sort(key=lambda one: -(one["confidence"] or 0.0))
    given = sum(one["confidence"] or 0.0 for one in hypotheses)
    return {
        "number": row["place"] + 1,
        **{name: row.get(name) for name in ("id", "system", "dialogue", "input", "prediction", "right", "rank")},
        "known": row["reference"] is not None,
        "reference": meant,
        "hypotheses": hypotheses,
        "rest": max(0.0, 1.0 - given),
        "out_of_scope": bool(row.get("out_of_scope")),
        "answered": row.get("answered", True),
        "items": [] if labels else item_values(meant, hypotheses),
        "measures": {name: row[name] for name in ("ice", "wser", "ser", "oracle", "meant", "cost") if name in row},
    }


def item_values(meant: Sequence[str], hypotheses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each item of a turn costs: the mass of the hypotheses that hold it, and whether it was meant.

    >>> item_values(["a"], [{"items": [{"text": "b"}], "confidence": 0.5}])[0]
    {'text': 'a', 'meant': True, 'confidence': 0.0, 'cost': 6.907755278982137}
    """
    mass = dict.fromkeys(meant, 0.0)
    for one in hypotheses:
        for item in one["items"]:
            mass[item["text"]] = min(mass.get(item["text"], 0.0) + (one["confidence"] or 0.0), 1.0)
    rows = []
    for text, sure in mass.items():
        likelihood = sure if text in meant else 1 - sure
        cost = 0.0 - math.log(min(max(likelihood, FLOOR), 1.0))  # what the item adds to the ICE
        rows.append({"text": text, "meant": text in meant, "confidence": sure, "cost": cost})
    return sorted(rows, key=lambda row: -row["cost"])


PARTS = ("id", "dialogue", "reference", "hypotheses", "asr", "cnet", "system", "weight", "input", "text")
"""Columns of N-best lists that nobody slices by."""


class ListRunsPage(Page):
    """The runs with lists of hypotheses to choose from."""

    path, template = "/nbest", "choice.html"
    heading = "N-best"

    def show(self, site: Site, query: Query) -> PageContent:
        """The runs that have lists to look at."""
        runs = [run for run in site.store.runs() if has_lists(run)]
        add = "Add a table with a column hypotheses, or answers with a column nbest."
        document = choosing("/nbest", "lists of hypotheses", runs, add=add, example="restaurant")
        return PageContent("N-best lists", document)


def has_lists(run: Run) -> bool:
    """Whether a run has lists of hypotheses."""
    return run.kind == "nbest" or bool(run.about.get("has_nbest"))


class ListsPage(Page):
    """The measures of lists of hypotheses, and their turns."""

    path, template = "/nbest/{id}", "nbest.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The measures of a run's lists, and its turns."""
        run = _run(site, query)
        by = query.text("by")
        shown = site.result(f"{__name__}:list_measures", [run], f"Evaluating the lists of {run.name}", by=by)
        slices = [name for name in run.columns if name not in PARTS] if run.kind == "nbest" else []
        document = {**_turns(site, query, run), **shown, "by": by, "slices": slices}
        return PageContent(f"N-best lists of {run.name}", document)


class TurnsPage(Page):
    """The turns of a run alone, for going through them quickly."""

    path, template = "/nbest/{id}/turns", "nbest_turns.html"

    def show(self, site: Site, query: Query) -> PageContent:
        """The turns alone."""
        run = _run(site, query)
        return PageContent(f"Turns of {run.name}", _turns(site, query, run))


def _run(site: Site, query: Query) -> Run:
    run = site.store.run(query.path["id"])
    if not has_lists(run):
        raise UsageError(f'"{run.name}" has no lists of hypotheses: it is a table of {run.kind} without a column nbest')
    return run


def _turns(site: Site, query: Query, run: Run) -> dict[str, Any]:
    """The turn that is looked at and those around it; `Waiting` is raised while the table of turns is made."""
    sorts = ACT_SORTS if run.kind == "nbest" else LABEL_SORTS
    asked = TurnQuery(
        sort=query.choice("sort", tuple(sorts), next(iter(sorts))),
        search=query.text("search"),
        at=query.whole("at", 0, high=run.n) or None,
        by=query.text("by"),
    )
    name = signature_of("turns", [run.id], [], {})
    content = site.store.cached(name)
    if content is None:
        about = f"Taking the lists of {run.name} apart"
        given = {"runs": [run.id], "name": name}
        raise Waiting(site.worker.start(f"{__name__}:turn_table", given, signature=name, about=about), about)
    turns = inspect_turns(read_turns(content, searched=bool(asked.search)), content, asked, sorts)
    return {"run": run_values(run), "labels": sorts is LABEL_SORTS, **turns}


SPOKEN = ("input", "text", "utterance", "transcription", "transcript", "question")
"""Columns of N-best lists that may hold what was said, the likelier first."""

ROWS_PER_GROUP = 8192
"""Rows that are compressed together: few enough that any turn is read in a few milliseconds."""


def list_measures(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The measures of a run's lists: of acts with intervals and the parts of the ICE, of labels by their ranks."""
    from demur.core.show.page import presentation_document
    from demur.nbest_lists.evaluate import evaluate_nbest
    from demur.nbest_lists.presentation import of_nbest
    from demur.nbest_lists.ranks import list_ranks, of_ranks

    sampling, by = given["sampling"], given.get("by") or None
    step("reading", 0, 1)
    try:
        run = store.run(given["runs"][0])
        if run.kind == "nbest":
            lists = store.lists(run, keep=() if by is None else (by,))
            shown = of_nbest(evaluate_nbest(lists, by=by, step=step, **sampling))
        else:
            responses = store.responses(run, columns=("nbest",))
            step("looking for the right labels", 0, 1)
            shown = of_ranks(list_ranks(responses, level=sampling["level"]))
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(shown)}
    except DemurError as fault:
        return {"fault": str(fault), "presentation": None}


def turn_table(store: Store, given: dict[str, Any], step: Step) -> None:
    """Keeps the turns of a run as a table, each with its list and what it adds to the measures."""
    run = store.run(given["runs"][0])
    step("taking lists apart", 0, 1)
    table = with_texts(turns_of(store, run))
    buffer = BytesIO()
    table.write_parquet(buffer, compression="zstd", row_group_size=ROWS_PER_GROUP)
    store.keep(given["name"], buffer.getvalue())


def turns_of(store: Store, run: Run) -> pl.DataFrame:
    """A row per turn, answers as they came and acts by id; `input` is what was said, where it is known."""
    from demur.nbest_lists.evaluate import act_turns
    from demur.nbest_lists.ranks import label_turns

    if run.kind != "nbest":
        columns = ("nbest", "input") if run.about.get("has_input") else ("nbest",)
        return label_turns(store.responses(run, columns=columns))
    column = next((name for name in SPOKEN if name in run.columns), None)
    turns = act_turns(store.lists(run, keep=() if column is None else (column,)))
    spoken = pl.lit(None, dtype=pl.String) if column is None else pl.col(column)
    return by_id(turns.with_columns(spoken.alias("input")))


def by_id(table: pl.DataFrame) -> pl.DataFrame:
    """The turns by system and id, numbers in ids by their size, so that a dialogue reads as it went."""
    keys = [(system, natural_order(name)) for system, name in table.select("system", "id").iter_rows()]
    return table[sorted(range(table.height), key=keys.__getitem__)]


def with_texts(table: pl.DataFrame) -> pl.DataFrame:
    """The table with all the words of each turn in one column, in lower case, for searching."""
    words = [
        pl.col("id", "dialogue", "input"),
        pl.col("reference").list.join(" "),
        pl.col("acts").list.eval(pl.element().list.join(" ")).list.join(" "),
    ]
    texts = [column.fill_null("") for column in words]
    return table.with_columns(pl.concat_str(texts, separator="\n").str.to_lowercase().alias("words"))
