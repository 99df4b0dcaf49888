"""The column nbest of a table of responses: what else a system thought of for each input, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

LABEL_NAMES = ("label", "answer", "prediction", "intent", "act", "hypothesis", "name", "response", "text")
CONFIDENCE_NAMES = ("confidence", "score", "probability", "prob", "p")
"""What the two parts of an entry may be called, the likelier first."""

LABELS = pl.List(pl.String)
CONFIDENCES = pl.List(pl.Float64)

LabelList = tuple[list[str], list[float | None]]
"""Labels, the surest first, and how sure the system was of each; None where it does not say."""


def label_lists(column: pl.Series) -> pl.DataFrame:
    """The lists of a column, read as JSON or as objects: `labels` and `confidence`; empty where there is no list.

    >>> label_lists(pl.Series(['[{"label": "no", "p": 0.1}, {"label": "yes", "p": 0.8}]', None])).to_dicts()
    [{'labels': ['yes', 'no'], 'confidence': [0.8, 0.1]}, {'labels': [], 'confidence': []}]
    """
    alike = _alike(column)
    if alike is not None:
        return alike
    read = [label_list(cell) for cell in column.to_list()]
    return pl.DataFrame(
        {"labels": [labels for labels, _ in read], "confidence": [confidence for _, confidence in read]},
        schema={"labels": LABELS, "confidence": CONFIDENCES},
    )


def _alike(column: pl.Series) -> pl.DataFrame | None:
    """The lists of a column of JSON all of whose entries have a label and a confidence of the same names, at once.

    None where that is not so; then each list is read by itself, which takes many times as long.
    """
    names = _names_in(column)
    if names is None:
        return None
    label, confidence = names
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
    found = ordered.group_by("row", maintain_order=True).agg("labels", "confidence")
    whole = pl.DataFrame({"row": pl.int_range(len(column), eager=True)}).join(found, on="row", how="left")
    return whole.sort("row").select(pl.col("labels", "confidence").fill_null([]))


def _names_in(column: pl.Series) -> tuple[str, str] | None:
    """What the first entry of a column of JSON calls its label and its confidence."""
    if column.dtype != pl.String:
        return None
    first = column.filter((column.str.len_bytes() > 2).fill_null(value=False)).head(1)
    entry = next(iter(_entries(first[0])), None) if len(first) else None
    if not isinstance(entry, dict):
        return None
    label = next((name for name in LABEL_NAMES if isinstance(entry.get(name), str)), None)
    confidence = next((name for name in CONFIDENCE_NAMES if isinstance(entry.get(name), float)), None)
    return None if label is None or confidence is None else (label, confidence)


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
    if isinstance(entry, dict):
        label, confidence = _part(entry, LABEL_NAMES), _part(entry, CONFIDENCE_NAMES)
    elif isinstance(entry, list | tuple):
        label, confidence = (*entry, None, None)[:2]
    else:
        label, confidence = entry, None
    if label is None:
        return None
    sure = isinstance(confidence, int | float) and not isinstance(confidence, bool) and confidence == confidence
    return label if isinstance(label, str) else str(label), float(confidence) if sure else None


def _part(entry: dict[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)
