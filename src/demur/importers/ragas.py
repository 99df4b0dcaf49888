"""Reads tables of Ragas."""

from __future__ import annotations

from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import JudgedColumns, with_trials


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
        columns = JudgedColumns.among(rows, others, others, choices, file.name)
        made = []
        for row in rows:
            said = row["response"] or None
            one: Row = {"id": row["user_input"], "input": row["user_input"], "target": row["reference"]}
            one |= {"prediction": said, "correct": columns.correct(row) if said else None}
            made.append(one | {"confidence": columns.ranked_by(row)})
        taken = {"id": "user_input", "target": "reference", "prediction": "response", **columns.taken}
        return [self.log(file, with_trials(made), taken, columns.others)]
