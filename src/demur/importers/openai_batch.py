"""Reads output of OpenAI's Batch API with log probabilities, or with several choices."""

from __future__ import annotations

import math
from typing import Any

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.samples import AGREEMENT, ENTROPY, agreement
from demur.importers.values import (
    LOGPROB,
    NEEDS_TARGETS,
)

SUCCESS = 200


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
