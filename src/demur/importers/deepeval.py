"""Reads test runs of DeepEval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row
from demur.importers.values import (
    UNRANKED,
    as_flag,
    as_number,
    correctness,
    only_confidences,
    only_flags,
    other_choices,
    with_trials,
)


class DeepevalRun(Importer):
    """Test runs of DeepEval."""

    name = "deepeval"
    title = "test run of DeepEval"

    def recognises(self, file: ForeignFile) -> str:
        """The file of a run, or a result that was dumped."""
        if file.is_json and file.has("testCases", "metricsScores"):
            return "testCases"
        return "test_results" if file.is_json and file.has("test_results") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log."""
        document = file.document(dict[str, Any])
        cases = document[role]
        if not cases:
            raise DataError("holds no test cases", where=f"{file.name}:")
        scores = [{one["name"]: one for one in _either(case, "metricsData", "metrics_data") or ()} for case in cases]
        values = [{name: one.get("score") for name, one in row.items()} for row in scores]
        names = list(dict.fromkeys(name for row in values for name in row))
        metrics = only_flags(values, names)
        metric = correctness(metrics, choices, file.name)
        metadata = [_either(case, "metadata", "additional_metadata", "additionalMetadata") or {} for case in cases]
        known = list(dict.fromkeys(name for row in metadata for name in row))
        offered = [f"metadata.{name}" for name in only_confidences(metadata, known)]
        offered += [name for name in only_confidences(values, names) if name not in metrics]
        asked = choices.confidence
        confidence = asked if asked in offered else None
        if asked is None and offered:
            confidence = offered[0]
        model = (document.get("hyperparameters") or {}).get("model")
        made = []
        for case, score, extra in zip(cases, scores, metadata, strict=True):
            said = _either(case, "actualOutput", "actual_output")
            one: Row = {"id": case.get("name"), "input": case.get("input"), "system": model}
            one |= {"target": _either(case, "expectedOutput", "expected_output"), "prediction": said or None}
            judged = score.get(metric or "") or {}
            one["failed"] = bool(judged.get("error")) or None
            one["correct"] = as_flag(judged.get("score")) if said and not one["failed"] else None
            for name in offered:
                own = extra.get(name.removeprefix("metadata.")) if name.startswith("metadata.") else None
                one[name] = as_number(own if own is not None else (score.get(name) or {}).get("score"))
            made.append(one | {"confidence": one.get(confidence or "")})
        taken = {"id": "name", "system": "hyperparameters.model" if model else "", "target": "expected output"}
        taken |= {
            "prediction": "actual output",
            "correct": f"metric {metric}" if metric else "",
            "failed": "error of the metric",
        }
        taken["confidence"] = confidence or UNRANKED
        return [self.log(file, with_trials(made), taken, other_choices(offered, confidence, metrics, metric))]


def _either(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if name in values), None)
