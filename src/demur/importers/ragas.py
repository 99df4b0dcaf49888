"""Reads tables of Ragas."""

from __future__ import annotations

from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import (
    as_flag,
    as_number,
    confidence_of,
    correctness,
    only_confidences,
    only_flags,
    other_choices,
    with_trials,
)


class RagasTable(Importer):
    """Tables that `evaluate` of Ragas gives."""

    name = "ragas"
    title = "table of Ragas"

    def recognises(self, file: ForeignFile) -> str:
        """A table with questions, responses and references."""
        return "table" if file.has("user_input", "response", "reference") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log."""
        rows = file.cells().to_dicts()
        known = ("user_input", "retrieved_contexts", "reference_contexts", "response", "reference", "rubrics")
        others = [name for name in rows[0] if name not in known]
        metrics = only_flags(rows, others)
        metric = correctness(metrics, choices, file.name)
        offered = only_confidences(rows, others)
        confidence = confidence_of(offered, choices, file.name)
        made = []
        for row in rows:
            said = row["response"] or None
            one: Row = {"id": row["user_input"], "input": row["user_input"], "target": row["reference"]}
            one |= {"prediction": said, "correct": as_flag(row.get(metric or "")) if said else None}
            made.append(one | {"confidence": as_number(row.get(confidence or ""))})
        taken = {"id": "user_input", "target": "reference", "prediction": "response", "correct": metric or ""}
        taken["confidence"] = confidence or "none; answers are not ranked"
        return [self.log(file, with_trials(made), taken, other_choices(offered, confidence, metrics, metric))]
