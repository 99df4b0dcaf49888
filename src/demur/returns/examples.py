"""The rows behind the numbers: what was recognised in them, the surest errors, right answers just withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Flags
from demur.core.io.columns import DEPLOYED, STRATUM
from demur.core.show.numbers import table_line
from demur.core.show.results import plain
from demur.core.stats.strata import are_drawn_by_strata
from demur.errors import UsageError
from demur.returns.table import Responses

LONGEST = 300
"""Characters of a text up to which it is kept whole: a result must not grow with what was typed into a log."""

MOST_HYPOTHESES = 5
"""Entries of an N-best list that an example shows."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row to look at; texts longer than 300 characters are cut, and end with an ellipsis."""

    id: str | None
    input: str | None
    target: tuple[str, ...] | None
    """The labels that would have been right: none for an input out of scope, None where nobody knows."""
    prediction: str | None
    confidence: float
    nbest: tuple[str, ...] = ()
    """The first hypotheses, each in one line."""


@dataclass(frozen=True, slots=True)
class Confused:
    """A label given where another was right: how often, and how often the answer is returned at the threshold."""

    target: str
    prediction: str
    count: int
    returned: int


@dataclass(frozen=True, slots=True)
class Examples:
    """What to look at in one system's answers at a threshold; NaN returns nothing."""

    system: str
    threshold: float
    confident_errors: tuple[Example, ...]
    missed_chances: tuple[Example, ...]
    out_of_scope_returned: tuple[Example, ...]
    errors: int
    """How many wrong answers are returned."""
    missed: int
    """How many right answers are withheld."""
    out_of_scope: int
    """How many answers to inputs out of scope are returned."""
    confusions: tuple[Confused, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The examples as plain values."""
        values: dict[str, Any] = plain(asdict(self))
        return values


def examples(responses: Responses, threshold: float, n: int = 10) -> Examples:
    """The surest rows of each kind for one system, at most `n`; equally sure ones in the order of their ids.

    Inputs and N-best lists are shown where the table was read with them: `keep=("input", "nbest")`.

    >>> from demur.returns.table import responses as table
    >>> rows = [{"id": k, "target": "a", "prediction": "ab"[k % 2], "confidence": k / 10} for k in range(6)]
    >>> found = examples(table(rows), threshold=0.3)
    >>> [one.id for one in found.confident_errors], [one.id for one in found.missed_chances]
    (['5', '3'], ['2', '0'])
    """
    if n < 0:
        raise UsageError(f"the number of examples is 0 or more; got {n}")
    if len(responses.systems) > 1:
        raise UsageError(f"examples are of one system at a time; there are {', '.join(responses.systems)}")
    frame = responses.frame
    answered, right = frame["answered"].to_numpy(), frame["right"].to_numpy()
    confidence = frame["confidence"].fill_null(-np.inf).to_numpy()
    returned = answered & (confidence >= threshold)
    wrong, missed = returned & ~right, answered & ~returned & right
    scope = returned & frame["out_of_scope"].to_numpy()
    return Examples(
        system=responses.systems[0],
        threshold=float(threshold),
        confident_errors=_surest(responses, wrong & ~scope, confidence, n),
        missed_chances=_surest(responses, missed, confidence, n),
        out_of_scope_returned=_surest(responses, scope, confidence, n),
        errors=int(wrong.sum()),
        missed=int(missed.sum()),
        out_of_scope=int(scope.sum()),
        confusions=_confusions(frame, returned, n),
    )


def _surest(responses: Responses, kind: Flags, confidence: NDArray[np.float64], n: int) -> tuple[Example, ...]:
    """The surest rows of a kind: only those as sure as the n-th are ever sorted."""
    places = np.flatnonzero(kind)
    if n == 0 or places.size == 0:
        return ()
    if places.size > n:
        least = np.partition(confidence[places], places.size - n)[places.size - n]
        places = places[confidence[places] >= least]
    near = replace(responses, frame=responses.frame[places]).with_inputs().frame
    near = near.with_columns(pl.Series("demur:sure", confidence[places]))
    keys = ["id", "prediction", *(["input"] if "input" in near.columns else [])]
    first = near.select(pl.arg_sort_by("demur:sure", *keys, descending=[True, *(False for _ in keys)], nulls_last=True))
    return tuple(map(example_of, near[first.to_series().head(n)].iter_rows(named=True)))


def example_of(row: Mapping[str, Any]) -> Example:
    """A judged row as an example, its texts cut."""
    target = None if row["target"] is None else tuple(_cut(label) or "" for label in row["target"])
    texts, nbest = (_cut(row["id"]), _cut(row.get("input"))), _hypotheses(row.get("nbest"))
    return Example(*texts, target, _cut(row["prediction"]), float(row["confidence"]), nbest)


def most_confused(counts: pl.DataFrame, n: int) -> tuple[Confused, ...]:
    """The most frequent pairs of labels; `counts` has the columns actual, prediction, n and returned."""
    top = counts.filter(pl.col("n") > 1).sort(["n", "actual", "prediction"], descending=[True, False, False]).head(n)
    return tuple(
        Confused(_cut(actual) or "", _cut(predicted) or "", count, shown)
        for actual, predicted, count, shown in top.select("actual", "prediction", "n", "returned").iter_rows()
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…"


def _hypotheses(cell: Any) -> tuple[str, ...]:
    """The first entries of an N-best list, whether read as JSON or as objects; what is no list is not shown."""
    if isinstance(cell, str):
        try:
            cell = msgspec.json.decode(cell)
        except (msgspec.MsgspecError, RecursionError):
            return ()
    entries = list(cell) if isinstance(cell, list | tuple | pl.Series) else []
    return tuple(_cut(_hypothesis(one)) or "" for one in entries[:MOST_HYPOTHESES])


def _hypothesis(entry: Any) -> str:
    """A label with its confidence: an object's parts, a pair, or a label alone.

    >>> _hypothesis({"label": "yes", "confidence": 0.81234}), _hypothesis(["no", 0.1]), _hypothesis("maybe")
    ('yes 0.812', 'no 0.1', 'maybe')
    """
    parts = list(entry.values()) if isinstance(entry, dict) else entry if isinstance(entry, list | tuple) else [entry]
    texts = []
    for part in parts:
        if isinstance(part, str | float):
            texts.append(part if isinstance(part, str) else f"{part:.3g}")
        elif part is not None:
            texts.append(msgspec.json.encode(part, enc_hook=str).decode())
    return " ".join(texts)


def _confusions(frame: pl.DataFrame, returned: Flags, n: int) -> tuple[Confused, ...]:
    """The most frequent wrong labels by the label that was right, where both are known and one label was right."""
    wrong = frame.select(
        pl.col("target").list.first().alias("actual"),
        "prediction",
        pl.Series("returned", returned),
        known=pl.col("answered") & ~pl.col("right") & (pl.col("target").list.len() == 1),
    ).filter(pl.col("known") & pl.col("prediction").is_not_null())
    counts = wrong.group_by("actual", "prediction").agg(pl.len().alias("n"), pl.col("returned").sum())
    return most_confused(counts, n)


@dataclass(frozen=True, eq=False, repr=False)
class ValidatedTable:
    """What was recognised in tables that have no faults."""

    responses: Responses

    def __repr__(self) -> str:
        return table_line("ValidatedTable", self.n, "rows", self.responses.systems)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.responses)

    @property
    def slices(self) -> list[str]:
        """The columns to slice by: those that play no part of their own."""
        frame = self.responses.frame
        aside = {DEPLOYED, "input", "nbest"} | ({STRATUM} if are_drawn_by_strata(frame) else set())
        return [name for name in frame.columns[frame.columns.index("weight") + 1 :] if name not in aside]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised while reading."""
        listed = (f"columns to slice by: {', '.join(self.slices)}",) if self.slices else ()
        return (*listed, *self.responses.notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong all the same."""
        return self.responses.warnings

    def frame(self) -> pl.DataFrame:
        """A row for each system: its rows by what became of them, its dialogues and its confidences."""
        frame = self.responses.frame
        counts = frame.group_by("system", maintain_order=True).agg(
            pl.len().alias("rows"),
            pl.col("answered").sum(),
            (~pl.col("answered") & ~pl.col("failed")).sum().alias("withheld"),
            pl.col("failed").sum(),
            pl.col("out_of_scope").sum(),
            pl.col("right").sum(),
            pl.col("dialogue").n_unique().alias("dialogues"),
            pl.col("confidence").min().alias("lowest_confidence"),
            pl.col("confidence").max().alias("highest_confidence"),
            pl.col("confidence").drop_nulls().n_unique().alias("distinct_confidences"),
            pl.col("confidence").drop_nulls().mode().min().alias("most_frequent_confidence"),
            pl.col("confidence").drop_nulls().unique_counts().max().alias("most_frequent_rows"),
        )
        return counts.with_columns(dialogues=pl.when(frame["dialogue"].null_count() < frame.height).then("dialogues"))

    def to_dict(self) -> dict[str, Any]:
        """What was recognised as plain values."""
        return {
            "valid": True,
            "n": self.n,
            "systems": self.frame().to_dicts(),
            "slices": self.slices,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
