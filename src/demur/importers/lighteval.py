"""Reads details of lighteval."""

from __future__ import annotations

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.lm_eval import USUAL, ranking
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen
from demur.importers.samples import AGREEMENT, ENTROPY, agreement
from demur.importers.values import as_flag, only_flags


class LightevalDetails(Importer):
    """Details of lighteval."""

    name = "lighteval"
    title = "details of lighteval"

    def recognises(self, file: ForeignFile) -> str:
        """Details, or results."""
        if file.source.format == "parquet" and file.has("doc", "metric", "model_response"):
            return "details"
        return "results" if file.is_json and file.has("config_general", "results", "config_tasks") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The log of one task."""
        if role == "results":
            rule = "holds averages of lighteval and no answers"
            raise DataError(rule, where=f"{file.name}:", fix="give the details: details_*.parquet, with --save-details")
        records = file.cells().to_dicts()
        metrics = only_flags([one["metric"] for one in records], records[0]["metric"])
        metric = chosen(
            "metric", "metric", metrics, choices.metric, file.name, next((n for n in USUAL if n in metrics), None)
        )
        rows = []
        for record in records:
            doc, response = record["doc"], record["model_response"]
            labels = [str(one).strip() for one in doc.get("choices") or []]
            gold = doc.get("gold_index")
            places = gold if isinstance(gold, list) else [gold]
            targets = [labels[place] for place in places if place is not None and place < len(labels)]
            row: Row = {
                "id": str(doc.get("id")),
                "input": doc.get("query"),
                "target": targets[0] if len(targets) == 1 else targets,
            }
            texts = [str(one).strip() for one in response.get("text") or []]
            if response.get("logprobs") and len(response["logprobs"]) == len(labels):
                ranked = ranking(labels, response["logprobs"])
                row |= {"prediction": ranked[0]["label"], "confidence": ranked[0]["confidence"], "nbest": ranked}
            elif texts:
                vote, share, sharpness = agreement(texts)
                row["prediction"] = vote or None
                row |= {AGREEMENT: share, ENTROPY: sharpness, "confidence": share} if len(texts) > 1 else {}
            rows.append({**row, "correct": None if metric is None else as_flag(record["metric"][metric])})
        taken = {"id": "doc.id", "target": "doc.choices at gold_index", "correct": f"metric.{metric}"}
        taken |= {
            "prediction": "the likeliest choice, or the text",
            "confidence": "softmax of logprobs, or agreement of texts",
        }
        return [
            self.log(file, rows, taken, [f"--metric {name} judges otherwise" for name in metrics if name != metric])
        ]
