"""Work on lists of hypotheses: their measures, and a table of turns to look through."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

import polars as pl

from demur.analyses.list_ranks import label_turns, list_ranks
from demur.analyses.nbest import evaluate_nbest
from demur.analyses.nbest_turns import act_turns
from demur.errors import DemurError
from demur.show import Step
from demur.views.documents import presentation_document
from demur.views.list_ranks import of_ranks
from demur.views.nbest_presentation import of_nbest
from demur.views.presentation import Presentation

if TYPE_CHECKING:
    from demur.store.runs import Run, Store

SAID = ("input", "text", "utterance", "transcription", "transcript", "question")
"""Columns of N-best lists that may hold what was said, the likelier first."""

ROWS_PER_GROUP = 8192
"""Rows that are compressed together: few enough that any turn is read in a few milliseconds."""


def lists(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """The measures of a run's lists: of acts with intervals and the parts of the ICE, of labels by their ranks."""
    try:
        shown = _presented(store, given, step)
        step("drawing", 0, 1)
        return {"fault": None, "presentation": presentation_document(shown)}
    except DemurError as fault:
        return {"fault": str(fault), "presentation": None}


def _presented(store: Store, given: dict[str, Any], step: Step) -> Presentation:
    run, sampling = store.run(given["runs"][0]), given["sampling"]
    step("reading", 0, 1)
    if run.kind == "nbest":
        by = given.get("by") or None
        found = store.lists(run, keep=() if by is None else (by,))
        return of_nbest(evaluate_nbest(found, by=by, step=step, **sampling))
    judged = store.responses(run, columns=("nbest",))
    step("looking for the right labels", 0, 1)
    return of_ranks(list_ranks(judged, level=sampling["level"]))


def turns(store: Store, given: dict[str, Any], step: Step) -> None:
    """Keeps the turns of a run as a table, each with its list and what it adds to the measures."""
    run = store.run(given["runs"][0])
    step("taking lists apart", 0, 1)
    table = with_texts(table_of(store, run))
    held = BytesIO()
    table.write_parquet(held, compression="zstd", row_group_size=ROWS_PER_GROUP)
    store.keep(given["name"], held.getvalue())


def table_of(store: Store, run: Run) -> pl.DataFrame:
    """A row per turn, answers as they came and acts by id; `input` is what was said, where it is known."""
    if run.kind != "nbest":
        columns = ("nbest", "input") if run.about.get("has_input") else ("nbest",)
        return label_turns(store.responses(run, columns=columns))
    said = next((name for name in SAID if name in run.columns), None)
    found = act_turns(store.lists(run, keep=() if said is None else (said,)))
    spoken = pl.lit(None, dtype=pl.String) if said is None else pl.col(said)
    return by_id(found.with_columns(spoken.alias("input")))


def by_id(table: pl.DataFrame) -> pl.DataFrame:
    """The turns by system and id, numbers in ids by their size, so that a dialogue reads as it went."""
    keys = [(system, _natural(name)) for system, name in table.select("system", "id").iter_rows()]
    return table[sorted(range(table.height), key=keys.__getitem__)]


def _natural(name: str | None) -> list[tuple[bool, int, str]]:
    """A key that sorts the ids of turns as people do.

    >>> sorted(["d1/10", "d1/9", "d1"], key=_natural)
    ['d1', 'd1/9', 'd1/10']
    """
    pieces = re.split(r"(\d{1,18})", name or "")
    return [(place % 2 == 0, int(piece) if place % 2 else 0, piece) for place, piece in enumerate(pieces)]


def with_texts(table: pl.DataFrame) -> pl.DataFrame:
    """The table with all the words of each turn in one column, in small letters, for searching."""
    words = [
        pl.col("id").fill_null(""),
        pl.col("dialogue").fill_null(""),
        pl.col("input").fill_null(""),
        pl.col("reference").list.join(" ").fill_null(""),
        pl.col("acts").list.eval(pl.element().list.join(" ")).list.join(" ").fill_null(""),
    ]
    return table.with_columns(pl.concat_str(words, separator="\n").str.to_lowercase().alias("words"))
