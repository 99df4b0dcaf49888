"""Reads test results of Watson Assistant."""

from __future__ import annotations

from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import (
    as_number,
)


class WatsonResults(Importer):
    """Test results of the testing tool of Watson Assistant."""

    name = "watson"
    title = "test results of Watson Assistant"

    def recognises(self, file: ForeignFile) -> str:
        """A table of golden and predicted intents."""
        return "table" if file.has("golden intent", "predicted intent", "confidence") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log; its score is whether the intent matches, and no confidence."""
        rows = []
        for place, row in enumerate(file.cells().iter_rows(named=True)):
            one: Row = {"id": str(place), "input": row.get("utterance"), "target": row["golden intent"]}
            rows.append(one | {"prediction": row["predicted intent"], "confidence": as_number(row["confidence"])})
        taken = {"id": "the place of a row", "target": "golden intent", "prediction": "predicted intent"}
        return [self.log(file, rows, taken | {"confidence": "confidence; score is correctness"})]
