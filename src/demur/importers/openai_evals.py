"""Reads event logs of OpenAI evals."""

from __future__ import annotations

from typing import Any

import msgspec

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row


class EvalEvent(msgspec.Struct):
    """A line of an event log; the first two have a specification and a report instead."""

    type: str = ""
    sample_id: str = ""
    data: dict[str, Any] = {}
    spec: dict[str, Any] | None = None
    final_report: dict[str, Any] | None = None


class OpenAIEvents(Importer):
    """Event logs of OpenAI evals."""

    name = "openai-evals"
    title = "events of OpenAI evals"

    def recognises(self, file: ForeignFile) -> str:
        """The log of a run."""
        if not file.is_json:
            return ""
        begins = file.has("spec") and isinstance(file.first["spec"], dict) and "eval_name" in file.first["spec"]
        return "events" if begins or file.has("run_id", "event_id", "sample_id", "type", "data") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The samples of a run: what was sampled, and how it was judged."""
        rows: dict[str, Row] = {}
        model = None
        for event in file.objects(EvalEvent):
            if event.spec is not None:
                model = (event.spec.get("completion_fns") or [None])[0]
            if not event.sample_id:
                continue
            row = rows.setdefault(event.sample_id, {"id": event.sample_id})
            if event.type == "sampling":
                prompt = event.data.get("prompt")
                said = (
                    [one.get("content") for one in prompt if one.get("role") == "user"]
                    if isinstance(prompt, list)
                    else []
                )
                row["input"] = said[-1] if said else prompt if isinstance(prompt, str) else None
                row.setdefault("prediction", _one(event.data.get("sampled")))
            elif event.type in ("match", "metrics"):
                data = event.data
                expected = data.get("expected")
                if expected is not None:
                    row["target"] = expected
                if data.get("sampled") is not None:
                    row["prediction"] = _one(data["sampled"])
                if isinstance(data.get("correct"), bool):
                    row["correct"] = data["correct"]
            elif event.type == "error":
                row["failed"] = True
        judged = [row for row in rows.values() if "correct" in row or row.get("failed")]
        if not judged:
            rule = "holds no event that says whether a sample is right"
            raise DataError(rule, where=f"{file.name}:", fix="events of the types match and metrics do")
        for row in judged:
            row["system"] = model or file.stem
        taken = {"id": "sample_id", "system": "spec.completion_fns", "target": "expected", "prediction": "sampled"}
        taken |= {"correct": "correct", "confidence": "none; answers are not ranked"}
        left = len(rows) - len(judged)
        more = [f"{file.name}: {left:,} samples are left out, which no event judges"] if left else []
        return [self.log(file, judged, taken, more=more)]


def _one(sampled: Any) -> Any:
    return sampled[0] if isinstance(sampled, list) and sampled else sampled
