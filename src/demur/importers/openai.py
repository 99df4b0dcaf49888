"""Reads event logs of OpenAI evals, and output of OpenAI's Batch API with logprobs."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.classifiers import NEEDS_TARGETS
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.samples import AGREEMENT, ENTROPY, agreement

LOGPROB = "logprob"
SUCCESS = 200


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


class OpenAIBatch(Importer):
    """Output of OpenAI's Batch API: one response a line, without what was meant."""

    name = "openai-batch"
    title = "output of OpenAI's Batch API"

    def recognises(self, file: ForeignFile) -> str:
        """Responses by custom_id."""
        return "batch" if file.is_json and file.has("custom_id", "response") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The answers; several choices of one input vote."""
        if choices.gold is None and not {"target", "correct"} & choices.columns.keys():
            fix = NEEDS_TARGETS.replace("--on COLUMN", "--on custom_id")
            raise DataError("does not say what was meant", where=f"{file.name}:", fix=fix)
        rows = [self._row(one) for one in file.objects(dict[str, Any])]
        several = any(AGREEMENT in row for row in rows)
        asked = choices.confidence or (AGREEMENT if several else LOGPROB)
        models = {row["system"] for row in rows} - {None}
        model = models.pop() if len(models) == 1 else file.stem  # a request that failed names none
        rows = [{**row, "system": row["system"] or model, "confidence": row.get(asked)} for row in rows]
        taken = {"id": "custom_id", "system": "body.model", "prediction": "message.content", "failed": "error, status"}
        taken |= {
            "confidence": "share of choices that agree with the vote" if several else "mean probability of tokens"
        }
        taken["abstained"] = "message.refusal, finish_reason content_filter, or no content"
        others = [
            f"--confidence {name} takes another"
            for name in (LOGPROB, AGREEMENT, ENTROPY)
            if name != asked and any(name in row for row in rows)
        ]
        return [self.log(file, rows, taken, others)]

    @staticmethod
    def _row(line: dict[str, Any]) -> Row:
        response = line.get("response") or {}
        body = response.get("body") or {}
        row: Row = {"id": line["custom_id"], "custom_id": line["custom_id"], "system": body.get("model")}
        if line.get("error") or response.get("status_code") != SUCCESS or not body.get("choices"):
            return row | {"failed": True}
        texts: list[str | None] = []
        for choice in body["choices"]:
            message = choice.get("message") or {}
            withheld = message.get("refusal") or choice.get("finish_reason") == "content_filter"
            texts.append(None if withheld else (message.get("content") or "").strip() or None)
        vote, share, sharpness = agreement(texts)
        row["prediction"] = vote
        if len(texts) > 1:
            row |= {AGREEMENT: share, ENTROPY: sharpness}
        choice = body["choices"][texts.index(vote)]
        tokens = [one["logprob"] for one in (choice.get("logprobs") or {}).get("content") or ()]
        if tokens:
            row[LOGPROB] = math.exp(sum(tokens) / len(tokens))
        return row | {"abstained": True} if vote is None else row
