"""Where the right label stands in a list of labels: first, second, further down, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from demur.core.io.json import refuse_repeats_in_rows
from demur.core.show.numbers import count, percent, tabled_percent, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.stats.intervals import Figure, check_level, wilson
from demur.errors import DataError
from demur.nbest_lists.measures import FLOOR
from demur.returns.table import Responses

LABEL_NAMES = ("label", "answer", "prediction", "intent", "act", "hypothesis", "name", "response", "text")
CONFIDENCE_NAMES = ("confidence", "score", "probability", "prob", "p")
"""What the two parts of an entry may be called, the likelier first."""

LabelList = tuple[list[str], list[float | None]]
"""Labels, the surest first, and how sure the system was of each; None where it does not say."""


def label_lists(column: pl.Series) -> pl.DataFrame:
    """The lists of a column, read as JSON or as objects: `labels` and `confidence`; empty where there is no list.

    >>> label_lists(pl.Series(['[{"label": "no", "p": 0.1}, {"label": "yes", "p": 0.8}]', None])).to_dicts()
    [{'labels': ['yes', 'no'], 'confidence': [0.8, 0.1]}, {'labels': [], 'confidence': []}]
    """
    together = _uniform_lists(column)
    if together is not None:
        return together
    schema = {"labels": pl.List(pl.String), "confidence": pl.List(pl.Float64)}
    return pl.DataFrame([label_list(cell) for cell in column.to_list()], schema=schema, orient="row")


def _uniform_lists(column: pl.Series) -> pl.DataFrame | None:
    """The lists of a column of JSON all of whose entries have a label and a confidence of the same names, at once.

    None where that is not so; then each list is read by itself, which takes many times as long.
    """
    if column.dtype != pl.String:
        return None
    first = column.filter((column.str.len_bytes() > 2).fill_null(value=False)).head(1)
    entry = next(iter(_entries(first[0])), None) if len(first) else None
    if not isinstance(entry, dict):
        return None
    label = next((name for name in LABEL_NAMES if isinstance(entry.get(name), str)), None)
    confidence = next((name for name in CONFIDENCE_NAMES if isinstance(entry.get(name), float)), None)
    if label is None or confidence is None:
        return None
    try:
        lists = column.str.json_decode(pl.List(pl.Struct({label: pl.String, confidence: pl.Float64})))
    except pl.exceptions.PolarsError:
        return None
    entries = (
        pl.DataFrame({"row": pl.int_range(len(column), eager=True), "entry": lists.fill_null([])})
        .filter(pl.col("entry").list.len() > 0)
        .explode("entry")
        .unnest("entry")
        .select("row", labels=label, confidence=confidence)
    )
    if entries.null_count().sum_horizontal().item() or not entries["confidence"].is_finite().all():
        return None
    ordered = entries.sort("row", -pl.col("confidence"), maintain_order=True)
    grouped = ordered.group_by("row", maintain_order=True).agg("labels", "confidence")
    whole = pl.DataFrame({"row": pl.int_range(len(column), eager=True)}).join(grouped, on="row", how="left")
    return whole.sort("row").select(pl.col("labels", "confidence").fill_null([]))


def label_list(cell: Any) -> LabelList:
    """One list: of objects, of pairs of a label and a confidence, or of labels alone, the surest first.

    >>> label_list('[["no", 0.1], ["yes", 0.8]]'), label_list(["maybe"]), label_list("no list")
    ((['yes', 'no'], [0.8, 0.1]), (['maybe'], [None]), ([], []))
    """
    entries = [entry for one in _entries(cell) if (entry := _entry(one)) is not None]
    if all(confidence is not None for _, confidence in entries):
        entries.sort(key=lambda entry: -(entry[1] or 0.0))
    return [label for label, _ in entries], [confidence for _, confidence in entries]


def _entries(cell: Any) -> Sequence[Any]:
    if isinstance(cell, str):
        try:
            cell = msgspec.json.decode(cell)
        except (msgspec.MsgspecError, RecursionError):
            return ()
    return cell if isinstance(cell, list | tuple) else ()


def _entry(entry: Any) -> tuple[str, float | None] | None:
    """A label and its confidence; None for what has no label."""
    label: Any
    confidence: Any
    if isinstance(entry, dict):
        label, confidence = (
            next((entry[name] for name in names if entry.get(name) is not None), None)
            for names in (LABEL_NAMES, CONFIDENCE_NAMES)
        )
    elif isinstance(entry, list | tuple):
        label, confidence = (*entry, None, None)[:2]
    else:
        label, confidence = entry, None
    if label is None:
        return None
    sure = isinstance(confidence, int | float) and not isinstance(confidence, bool) and confidence == confidence
    return str(label), float(confidence) if sure else None


NOWHERE = 0
"""The rank of a label that the list lacks."""

_SHAPE = '[{"label": "yes", "confidence": 0.8}, ...]'


@dataclass(frozen=True, eq=False)
class ListRanks:
    """How often the right label stands where, over the inputs that have a list and a right label."""

    system: str
    n: int
    at: tuple[float, ...]
    """Weight of the inputs whose right label stands first, second, and so on."""
    nowhere: float
    total: float
    effective: float
    """How many equally weighted inputs tell as much."""
    without: int
    """Inputs without a list."""
    out_of_scope: int
    """Inputs to which no label is right, or of which it is not known."""
    level: float = 0.95

    @property
    def longest(self) -> int:
        """The last place at which a right label stands."""
        return len(self.at)

    def share(self, place: int) -> float:
        """How often the right label stands at a place."""
        return self.at[place - 1] / self.total if place <= self.longest else 0.0

    def top(self, k: int) -> Figure:
        """Top-k accuracy: how often the right label is among the first k, with Wilson's interval."""
        rate = min(sum(self.at[:k]) / self.total, 1.0)
        return Figure(rate, *wilson(rate, self.effective, self.level))

    def to_dict(self) -> dict[str, Any]:
        """The ranks as plain values."""
        return {
            "system": self.system,
            "n": self.n,
            "top": {str(k): self.top(k).to_dict() for k in range(1, self.longest + 1)},
            "at": list(self.at),
            "nowhere": self.nowhere,
            "without_list": self.without,
            "out_of_scope": self.out_of_scope,
            "level": self.level,
        }


def list_ranks(responses: Responses, *, level: float = 0.95) -> ListRanks:
    """Where right labels stand in the lists of one system, read with `keep=("nbest",)`.

    >>> from demur.returns.table import Reading, responses
    >>> lists = [[["a", 0.9], ["b", 0.1]], [["a", 0.6], ["b", 0.4]], [["a", 0.7]]]
    >>> said = {"target": "b", "prediction": "a", "confidence": 0.5}
    >>> rows = [{**said, "nbest": str(one).replace("'", '"')} for one in lists]
    >>> found = list_ranks(responses(rows, reading=Reading(keep=("nbest",))))
    >>> found.at, found.nowhere, round(found.top(2).value, 3)
    ((0.0, 2.0), 1.0, 0.667)
    """
    check_level(level)
    table = label_turns(responses)
    weight = responses.frame["weight"].to_numpy()
    listed = (table["acts"].list.len() > 0).to_numpy()
    known = (responses.frame["target"].list.len() > 0).fill_null(value=False).to_numpy()
    held = listed & known
    if not held.any():
        rule, where = "no input has a list of labels and a known right one", f"{responses.systems[0]}:"
        raise DataError(rule, where=where, fix=f"lists stand in a column nbest, as {_SHAPE}")
    rank, mass = table["rank"].to_numpy()[held], weight[held]
    sums = np.bincount(rank, weights=mass)
    return ListRanks(
        system=responses.systems[0],
        n=int(held.sum()),
        at=tuple(sums[1:].tolist()),
        nowhere=float(sums[NOWHERE]),
        total=float(mass.sum()),
        effective=float(mass.sum() ** 2 / np.square(mass).sum()),
        without=int((known & ~listed).sum()),
        out_of_scope=int((~known).sum()),
        level=level,
    )


def label_turns(responses: Responses) -> pl.DataFrame:
    """A row per input: its list of labels, the rank of the right one (0: nowhere), and what that cost.

    `cost` is -log of the confidence in the right label, not below the floor of the cross entropies; null where no label
    is right or the list has no confidences.
    """
    frame = responses.frame
    if "nbest" not in frame.columns:
        where, fix = f"{responses.systems[0]}:", 'read it with keep=("nbest",)'
        raise DataError("there is no column nbest", where=where, fix=fix)
    _refuse_repeated_keys(frame, responses.systems[0])
    lists = label_lists(frame["nbest"])
    return frame.select(
        "id",
        "dialogue",
        frame["input"] if "input" in frame.columns else pl.lit(None, dtype=pl.String).alias("input"),
        pl.col("target").alias("reference"),
        lists["labels"].list.eval(pl.concat_list(pl.element())).alias("acts"),
        lists["confidence"],
        *_placed(lists, frame["target"]),
        "prediction",
        "right",
        "answered",
        "out_of_scope",
        pl.col("confidence").alias("sure"),
    )


def _refuse_repeated_keys(frame: pl.DataFrame, system: str) -> None:
    if frame["nbest"].dtype == pl.String:
        cells = frame.select("id", "nbest").filter(pl.col("nbest").str.contains(r"^\s*\["))
        texts = [text.encode() for text in cells["nbest"]]
        refuse_repeats_in_rows(texts, lambda row: f'{system}: id "{cells["id"][row]}": nbest')


def _placed(lists: pl.DataFrame, target: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The rank of the first right label of each list, and what it cost; null where that is not known."""
    listed = lists.with_columns(target.alias("target")).with_row_index("row").filter(pl.col("labels").list.len() > 0)
    entries = listed.explode("labels", "confidence").with_columns(place=pl.int_range(pl.len()).over("row") + 1)
    known = (pl.col("target").list.len() > 0).fill_null(value=False)
    sure = entries.group_by("row").agg(sure=pl.col("confidence").is_not_null().all(), known=known.first())
    hits = entries.filter(pl.col("target").list.contains(pl.col("labels")).fill_null(value=False))
    first = hits.group_by("row", maintain_order=True).agg(pl.col("place", "confidence").first())
    rows = pl.DataFrame({"row": pl.int_range(lists.height, dtype=pl.UInt32, eager=True)})
    placed = rows.join(sure, on="row", how="left").join(first, on="row", how="left").sort("row")
    cost = -pl.col("confidence").fill_null(0.0).clip(FLOOR, 1.0).log() + 0.0
    return (
        placed["place"].fill_null(NOWHERE).cast(pl.Int64).alias("rank"),
        placed.select(pl.when(pl.col("sure") & pl.col("known")).then(cost).alias("cost")).to_series(),
    )


MOST_PLACES = 10
"""Places of a list that are shown one by one."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def of_ranks(ranks: ListRanks) -> Presentation:
    """How the places of right labels in the lists of a system are shown."""
    frame = rank_frame(ranks)
    figures = (drawing("nbest_lists.charts.rank_chart", frame, n=ranks.n, level=ranks.level),) if frame.height else ()
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
    first = f"The right label is first for {percent(ranks.top(1).value)} of {count(ranks.n)} inputs"
    next_two = range(2, min(ranks.longest, 3) + 1)
    later = [f"{ORDINALS[place - 1]} for {percent(ranks.share(place))}" for place in next_two]
    gain = ranks.top(ranks.longest or 1).value - ranks.top(1).value
    sentences = [
        ", ".join([first, *later]) + ".",
        f"A perfect choice among the labels listed would mend {percent(gain)} of all inputs; for "
        f"{percent(ranks.nowhere / ranks.total)} the right label is not in the list.",
    ]
    counts = {" to which no listed label is known to be right": ranks.out_of_scope, " without a list": ranks.without}
    left = " and ".join(f"{number:,}{why}" for why, number in counts.items() if number)
    return [*sentences, f"Left out: {left}."] if left else sentences


def rank_table(ranks: ListRanks) -> ResultTable:
    """How often the right label stands at each place, and among the first so many."""
    rows = []
    for place in range(1, min(ranks.longest, MOST_PLACES) + 1):
        top = ranks.top(place)
        share = with_interval(tabled_percent(top.value), top.low, top.high, write=lambda rate: f"{100 * rate:.1f}")
        rows.append((ORDINALS[place - 1], tabled_percent(ranks.share(place)), share))
    if ranks.longest > MOST_PLACES:
        rows.append(("later", tabled_percent(sum(ranks.at[MOST_PLACES:]) / ranks.total), "–"))
    rows.append(("not in the list", tabled_percent(ranks.nowhere / ranks.total), "–"))
    return ResultTable(
        "Places of the right label", ("the right label is", "inputs", "so far (top-k accuracy)"), tuple(rows)
    )


def rank_frame(ranks: ListRanks) -> pl.DataFrame:
    """Top-k accuracy, a row per k, for the figure."""
    tops = [(k, ranks.top(k)) for k in range(1, min(ranks.longest, MOST_PLACES) + 1)]
    rows = [(k, top.value, top.low, top.high, ranks.share(k)) for k, top in tops]
    kinds = {"k": pl.Int64, **dict.fromkeys(("accuracy", "low", "high", "here"), pl.Float64)}
    return pl.DataFrame(rows, schema=kinds, orient="row")
