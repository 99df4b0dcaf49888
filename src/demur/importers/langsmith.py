"""Reads experiments of LangSmith."""

from __future__ import annotations

from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen
from demur.importers.values import JudgedColumns, only_confidences, with_trials


class LangSmithExperiment(Importer):
    """Experiments of LangSmith as `to_pandas` gives them."""

    name = "langsmith"
    title = "experiment of LangSmith"

    def recognises(self, file: ForeignFile) -> str:
        """A table with inputs, outputs and the example."""
        begins = [name.partition(".")[0] for name in file.columns]
        return "table" if file.has("example_id") and {"inputs", "outputs"} <= set(begins) else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log; repetitions are trials."""
        rows = file.cells().to_dicts()
        names = list(rows[0])
        outputs = [name for name in names if name.startswith("outputs.")]
        references = [name for name in names if name.startswith("reference.")]
        metrics = [name for name in names if name.startswith("feedback.")]
        columns = JudgedColumns.among(rows, metrics, outputs, choices, file.name)
        shared = [name for name in outputs if f"reference.{name.removeprefix('outputs.')}" in references]
        ranking = only_confidences(rows, outputs)
        answers = shared or [name for name in outputs if name not in ranking]
        answer = chosen("prediction", "map", answers, choices.columns.get("prediction"), file.name)
        target = f"reference.{(answer or '').removeprefix('outputs.')}"
        target = target if target in references else references[0] if len(references) == 1 else ""
        inputs = next((name for name in names if name.startswith("inputs.")), "")
        made = []
        for row in rows:
            failed = bool(row.get("error")) or None
            answered = row.get(answer or "") not in (None, "") and not failed
            one: Row = {"id": row["example_id"], "input": row.get(inputs), "target": row.get(target)}
            one |= {"prediction": row.get(answer or "") if answered else None, "failed": failed}
            one["correct"] = columns.correct(row) if answered else None
            made.append(one | {"confidence": columns.ranked_by(row) if answered else None})
        taken = {"id": "example_id, as id is the run", "trial": "the repetitions of an example", "target": target}
        taken |= {"prediction": answer or "", "failed": "error", **columns.taken, "abstained": f"{answer} empty"}
        return [self.log(file, with_trials(made), taken, columns.others)]
