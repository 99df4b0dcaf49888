"""How ranks of right labels are shown: sentences, a table and a figure."""

from __future__ import annotations

import polars as pl

from demur.analyses.list_ranks import ListRanks
from demur.views.numbers import count, tabled_percent
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import percent

MOST_PLACES = 10
"""Places of a list that are told one by one."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def of_ranks(ranks: ListRanks) -> Presentation:
    """How the places of right labels in the lists of a system are shown."""
    frame = rank_frame(ranks)
    figures = (drawing("rank_chart", frame, n=ranks.n, level=ranks.level),) if frame.height else ()
    return Presentation(
        title="Where the right label stands",
        sentences=tuple(rank_sentences(ranks)),
        tables=(rank_table(ranks),),
        figures=figures,
        data=lambda: frame,
        document=ranks.to_dict(),
        notes=(
            "lists are ordered by their confidences where they have them, else as they were given; of several right "
            "labels the first in the list counts",
            f"{percent(ranks.level)} intervals of Wilson, inputs taken one by one",
        ),
    )


def rank_sentences(ranks: ListRanks) -> list[str]:
    """Where the right label stands, in words."""
    shown = min(ranks.longest, MOST_PLACES)
    first = f"The right label is first for {percent(ranks.top(1).value)} of {count(ranks.n)} inputs"
    later = [f"{ORDINALS[place - 1]} for {percent(ranks.share(place))}" for place in range(2, min(shown, 3) + 1)]
    told = [", ".join([first, *later]) + "."]
    gain = ranks.top(ranks.longest or 1).value - ranks.top(1).value
    told.append(
        f"A perfect choice among the labels listed would mend {percent(gain)} of all inputs; for "
        f"{percent(ranks.nowhere / ranks.total)} the right label is not in the list."
    )
    left = [
        *([f"{ranks.out_of_scope:,} to which no listed label is known to be right"] if ranks.out_of_scope else []),
        *([f"{ranks.without:,} without a list"] if ranks.without else []),
    ]
    return [*told, f"Left out: {' and '.join(left)}."] if left else told


def rank_table(ranks: ListRanks) -> Table:
    """How often the right label stands at each place, and among the first so many."""
    rows = []
    for place in range(1, min(ranks.longest, MOST_PLACES) + 1):
        top = ranks.top(place)
        ends = f"{100 * top.low:.1f} to {100 * top.high:.1f}"
        rows.append((ORDINALS[place - 1], tabled_percent(ranks.share(place)), f"{tabled_percent(top.value)} ({ends})"))
    if ranks.longest > MOST_PLACES:
        rows.append(("later", tabled_percent(sum(ranks.at[MOST_PLACES:]) / ranks.total), "–"))
    rows.append(("not in the list", tabled_percent(ranks.nowhere / ranks.total), "–"))
    return Table("Places of the right label", ("the right label is", "inputs", "so far (top-k accuracy)"), tuple(rows))


def rank_frame(ranks: ListRanks) -> pl.DataFrame:
    """Top-k accuracy, a row per k, for the figure."""
    rows = [
        {"k": k, "accuracy": top.value, "low": top.low, "high": top.high, "here": ranks.share(k)}
        for k in range(1, min(ranks.longest, MOST_PLACES) + 1)
        for top in (ranks.top(k),)
    ]
    kinds = {"k": pl.Int64, "accuracy": pl.Float64, "low": pl.Float64, "high": pl.Float64, "here": pl.Float64}
    return pl.DataFrame(rows, schema=kinds)
