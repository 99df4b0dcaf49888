"""Reads test results of NLU.DevOps, which tests LUIS and others."""

from __future__ import annotations

from typing import Any

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import (
    as_number,
)


class NluDevOpsResults(Importer):
    """Test results of NLU.DevOps, which tests LUIS and others."""

    name = "nlu-devops"
    title = "test results of NLU.DevOps"

    def recognises(self, file: ForeignFile) -> str:
        """Test results, or their statistics."""
        if file.is_json and file.has("resultKind", "targetKind", "expectedUtterance"):
            return "results"
        return "statistics" if file.is_json and file.has("text", "intent", "byIntent", "byEntityType") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The intents; entities are left out."""
        if role == "statistics":
            rule = "holds counts of NLU.DevOps and no answers"
            raise DataError(rule, where=f"{file.name}:", fix="give metadata.json, which dotnet nlu compare -m writes")
        rows: list[Row] = []
        for one in file.document(list[dict[str, Any]]):
            if one["targetKind"] != "Intent":
                continue
            expected, actual = one["expectedUtterance"], one.get("actualUtterance") or {}
            target, predicted = (
                None if said.get("intent") in (None, "None") else said["intent"] for said in (expected, actual)
            )
            score = one.get("score", actual.get("score"))
            rows.append(
                {"id": str(len(rows)), "input": expected.get("text"), "target": target, "prediction": predicted}
                | {"confidence": as_number(score) if predicted is not None else None}
            )
        if not rows:
            raise DataError("holds no results on intents", where=f"{file.name}:")
        taken = {"id": "the place of a result", "target": "expectedUtterance.intent; None is out of scope"}
        taken |= {"prediction": "actualUtterance.intent", "confidence": "score", "withheld": "None"}
        return [self.log(file, rows, taken)]
