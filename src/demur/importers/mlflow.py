"""Reads results of MLflow: the table of evaluate, that of genai.evaluate, and traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from demur.importers.choices import ImportChoices
from demur.importers.documents import oriented_rows
from demur.importers.promptfoo import INPUTS, answer_in
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen
from demur.importers.values import (
    UNRANKED,
    as_flag,
    as_number,
    confidence_of,
    correctness,
    decoded_cell,
    only_confidences,
    only_flags,
    other_choices,
    with_trials,
)


class MlflowResults(Importer):
    """Tables of `mlflow.evaluate` and `mlflow.genai.evaluate`, and traces."""

    name = "mlflow"
    title = "results of MLflow"

    def recognises(self, file: ForeignFile) -> str:
        """The classic table, the table of genai, or traces."""
        value = file.value
        if isinstance(value, dict) and {"columns", "data"} <= value.keys():
            named = value["columns"] if isinstance(value["columns"], list) else ()
            return "classic" if {"predictions", "inputs"} <= {str(one) for one in named} else ""
        if file.has("trace_id", "request", "response") and any(name.endswith("/value") for name in file.columns):
            return "genai"
        traced = file.is_json and file.has("info", "data") and isinstance(file.first["info"], dict)
        return "traces" if traced and "trace_id" in file.first["info"] else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log."""
        if role == "classic":
            return [self._classic(file, choices)]
        rows = [_of_trace(one) for one in file.objects(dict[str, Any])] if role == "traces" else file.cells().to_dicts()
        values = [name for name in dict.fromkeys(key for row in rows for key in row) if name.endswith("/value")]
        targets = [name for name in values if name.startswith(("expected", "ground_truth", "reference"))]
        metrics = [one.removesuffix("/value") for one in only_flags(rows, values) if "abstain" not in one]
        metric = correctness(metrics, choices, file.name)
        offered = [one.removesuffix("/value") for one in only_confidences(rows, values)]
        confidence = confidence_of(offered, choices, file.name)
        made: list[Row] = []
        for row in rows:
            asked, answer = decoded_cell(row.get("request")), decoded_cell(row.get("response"))
            text = _question_in(asked)
            one: Row = {"id": text, "input": text, "target": row.get(targets[0]) if targets else None}
            one |= {"prediction": answer_in(answer) if answer not in (None, "") else None}
            one["correct"] = as_flag(row.get(f"{metric}/value")) if metric else None
            one["confidence"] = as_number(row.get(f"{confidence}/value")) if confidence else None
            withheld = as_flag(row.get("abstained/value"))
            one |= {"abstained": withheld, "failed": row.get("state") == "ERROR" or None}
            if withheld or one["failed"]:
                one |= {"prediction": None, "correct": None}
            made.append(one)
        taken = {"id": "request, as trace_id is new in every run", "target": targets[0] if targets else ""}
        taken |= {"prediction": "response", "correct": f"{metric}/value" if metric else ""}
        taken |= {"confidence": f"{confidence}/value" if confidence else UNRANKED}
        taken |= {"abstained": "abstained/value" if "abstained/value" in values else "", "failed": "state ERROR"}
        return [self.log(file, with_trials(made), taken, other_choices(offered, confidence, metrics, metric))]

    def _classic(self, file: ForeignFile, choices: ImportChoices) -> ImportedLog:
        rows = oriented_rows(file.document(dict[str, Any])) or []
        names = list(rows[0]) if rows else []
        target = next(
            (name for name in ("ground_truth", "targets", "target", "label", "expected") if name in names), None
        )
        metrics = [name for name in only_flags(rows, names) if name.endswith(("/score", "/v1/score"))]
        metric = chosen("metric", "metric", metrics, choices.metric, file.name) if choices.metric else None
        offered = only_confidences(rows, names)
        confidence = confidence_of(offered, choices, file.name)
        known = {target, confidence, "inputs", "predictions"}
        made = []
        for row in rows:
            one = {"id": _question_in(row["inputs"]), "input": _question_in(row["inputs"])}
            one |= {"target": row.get(target or ""), "prediction": row["predictions"]}
            one |= {"confidence": as_number(row.get(confidence or "")), "correct": as_flag(row.get(metric or ""))}
            made.append(one | {name: value for name, value in row.items() if name not in known})
        taken = {"id": "inputs", "target": target or "", "prediction": "predictions", "correct": metric or ""}
        taken["confidence"] = confidence or UNRANKED
        return self.log(file, with_trials(made), taken, other_choices(offered, confidence, metrics, metric))


def _of_trace(trace: Mapping[str, Any]) -> Row:
    info = trace["info"]
    metadata = info.get("trace_metadata") or {}
    row: Row = {"trace_id": info["trace_id"], "state": info.get("state")}
    row["request"] = metadata.get("mlflow.traceInputs") or info.get("request_preview")
    row["response"] = metadata.get("mlflow.traceOutputs") or info.get("response_preview")
    for one in info.get("assessments") or ():
        said = one.get("feedback") or one.get("expectation") or {}
        row[f"{one.get('assessment_name')}/value"] = said.get("value")
    return row


def _question_in(value: Any) -> Any:
    if isinstance(value, dict):
        named = [value[name] for name in INPUTS if isinstance(value.get(name), str)]
        return named[0] if named else msgspec.json.encode(value).decode()
    return value
