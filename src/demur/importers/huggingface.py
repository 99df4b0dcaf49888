"""Reads output of pipelines of Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import NEEDS_TARGETS, TRUTHS

PAIR = frozenset(("label", "score"))


class HuggingFacePipeline(Importer):
    """Outputs of text-classification and zero-shot pipelines."""

    name = "huggingface"
    title = "output of a Hugging Face pipeline"

    def recognises(self, file: ForeignFile) -> str:
        """Labels with scores, lists of these, either inside rows, or the parallel lists of zero-shot."""
        if not file.is_json:
            return ""
        value = file.value[0] if isinstance(file.value, list) and file.value else None
        if isinstance(value, list):
            return "lists" if value and _is_pair(value[0]) else ""
        if file.has("sequence", "labels", "scores"):
            return "zero-shot"
        if _is_pair(file.first):
            return "labels"
        return "rows" if _pair_key(file.first) else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log."""
        values: Sequence[Any] = file.document(list[Any]) if role == "lists" else list(file.objects(dict[str, Any]))
        key = _pair_key(file.first) if role == "rows" else None
        rows: list[Row] = []
        for place, value in enumerate(values):
            row: Row = {"id": str(place)}
            if role == "rows":
                row = {"id": str(place)} | {name: part for name, part in value.items() if name != key}
                value = value[key]
            if role == "zero-shot":
                row["sequence"] = row["input"] = value["sequence"]
                pairs = zip(value["labels"], value["scores"], strict=True)
                value = [{"label": label, "score": score} for label, score in pairs]
            ranked = sorted(value if isinstance(value, list) else [value], key=lambda one: -one["score"])
            row |= {"prediction": ranked[0]["label"], "confidence": ranked[0]["score"]}
            if len(ranked) > 1:
                row["nbest"] = [{"label": one["label"], "confidence": one["score"]} for one in ranked]
            rows.append(row)
        truth = next((name for name in TRUTHS if name in rows[0] and not isinstance(rows[0][name], dict)), None)
        if truth is not None and truth != "target":
            rows = [{("target" if name == truth else name): part for name, part in row.items()} for row in rows]
        elif truth is None and choices.gold is None and not {"target", "correct"} & choices.columns.keys():
            raise DataError("does not say what was meant", where=f"{file.name}:", fix=NEEDS_TARGETS)
        for row in rows:
            if "text" in row and "input" not in row:
                row["input"] = row.pop("text")
        inside = f"{key}." if key else ""
        taken = {"id": "id" if role == "rows" and "id" in file.first else "the place of an answer"}
        taken |= {"target": truth or "", "prediction": f"{inside}label", "confidence": f"{inside}score"}
        taken["nbest"] = "all labels" if "nbest" in rows[0] else ""
        return [self.log(file, rows, taken)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == PAIR


def _pair_key(row: Row) -> str | None:
    """The key of a row under which a pipeline's output is."""
    return next(
        (name for name, part in row.items() if _is_pair(part[0] if isinstance(part, list) and part else part)), None
    )
