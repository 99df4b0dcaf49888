"""Reads tables and test runs of MLflow, LangSmith, DeepEval, Ragas, Watson Assistant and NLU.DevOps (LUIS)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.documents import oriented_rows
from demur.importers.promptfoo import INPUTS, answer_in
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen

TRUE, FALSE = (
    (True, 1, "1", "1.0", "true", "yes", "pass", "correct"),
    (False, 0, "0", "0.0", "false", "no", "fail", "incorrect"),
)
CONFIDENT = ("confidence", "certainty", "probability", "logprob")


def is_flag(value: Any) -> bool:
    """Whether a value says yes or no."""
    folded = value.strip().casefold() if isinstance(value, str) else value
    return not isinstance(folded, list | dict) and folded in (*TRUE, *FALSE)


def as_flag(value: Any) -> bool | None:
    """What a value says; None where it says nothing."""
    folded = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(folded, list | dict) or folded is None:
        return None
    return True if folded in TRUE else False if folded in FALSE else None


def as_number(value: Any) -> float | None:
    """A number, or the number that a text spells."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def only_flags(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """The columns whose cells all say yes or no, where they say anything."""
    found = []
    for name in names:
        cells = [row[name] for row in rows if row.get(name) is not None]
        if cells and all(map(is_flag, cells)):
            found.append(name)
    return found


def only_confidences(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """The columns that are called like a confidence and hold numbers."""
    named = [name for name in names if any(word in name.casefold() for word in CONFIDENT)]
    cells = {name: [row[name] for row in rows if row.get(name) not in (None, "")] for name in named}
    return [name for name, values in cells.items() if values and all(as_number(one) is not None for one in values)]


def correctness(names: Sequence[str], choices: ImportChoices, where: str) -> str | None:
    """The column that judges answers: the one asked for, the only one, or the one that is called so."""
    obvious = next((name for name in names if any(word in name.casefold() for word in ("correct", "exact"))), None)
    return chosen("metric", "metric", names, choices.metric, where, obvious)


def confidence_of(names: Sequence[str], choices: ImportChoices, where: str) -> str | None:
    """The column of confidences: the one asked for, or the only one."""
    if choices.confidence is not None and choices.confidence not in names:
        return None  # a column of the table, mapped later
    return chosen("confidence", "confidence", names, choices.confidence, where)


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
            asked, answer = _decoded(row.get("request")), _decoded(row.get("response"))
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
        taken |= {"confidence": f"{confidence}/value" if confidence else "none; answers are not ranked"}
        taken |= {"abstained": "abstained/value" if "abstained/value" in values else "", "failed": "state ERROR"}
        return [self.log(file, _with_trials(made), taken, _others(offered, confidence, metrics, metric))]

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
        taken["confidence"] = confidence or "none; answers are not ranked"
        return self.log(file, _with_trials(made), taken, _others(offered, confidence, metrics, metric))


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


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", '"'):
        try:
            return msgspec.json.decode(value)
        except msgspec.MsgspecError:
            return value
    return value


def _question_in(value: Any) -> Any:
    if isinstance(value, dict):
        named = [value[name] for name in INPUTS if isinstance(value.get(name), str)]
        return named[0] if named else msgspec.json.encode(value).decode()
    return value


def _with_trials(rows: Sequence[Row], key: str = "id") -> list[Row]:
    """Rows numbered by how often their id came before, where any comes twice."""
    seen: Counter[Any] = Counter()
    numbered = []
    for row in rows:
        seen[row[key]] += 1
        numbered.append({**row, "trial": seen[row[key]]})
    return numbered if seen and max(seen.values()) > 1 else list(rows)


def _others(offered: Sequence[str], confidence: str | None, metrics: Sequence[str], metric: str | None) -> list[str]:
    others = [f"--confidence {name} takes another" for name in offered if name != confidence]
    return others + [f"--metric {name} judges otherwise" for name in metrics if name != metric]


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
        offered = only_confidences(rows, outputs)
        confidence = confidence_of(offered, choices, file.name)
        shared = [name for name in outputs if f"reference.{name.removeprefix('outputs.')}" in references]
        answers = shared or [name for name in outputs if name not in offered]
        answer = chosen("prediction", "map", answers, choices.columns.get("prediction"), file.name)
        target = f"reference.{(answer or '').removeprefix('outputs.')}"
        target = target if target in references else references[0] if len(references) == 1 else ""
        metrics = only_flags(rows, [name for name in names if name.startswith("feedback.")])
        metric = correctness(metrics, choices, file.name)
        inputs = next((name for name in names if name.startswith("inputs.")), "")
        made = []
        for row in rows:
            failed = bool(row.get("error")) or None
            answered = row.get(answer or "") not in (None, "") and not failed
            one: Row = {"id": row["example_id"], "input": row.get(inputs), "target": row.get(target)}
            one |= {"prediction": row.get(answer or "") if answered else None, "failed": failed}
            one["correct"] = as_flag(row.get(metric or "")) if answered else None
            made.append(one | {"confidence": as_number(row.get(confidence or "")) if answered else None})
        taken = {"id": "example_id, as id is the run", "trial": "the repetitions of an example", "target": target}
        taken |= {"prediction": answer or "", "correct": metric or "", "failed": "error"}
        taken |= {"confidence": confidence or "none; answers are not ranked", "abstained": f"{answer} empty"}
        return [self.log(file, _with_trials(made), taken, _others(offered, confidence, metrics, metric))]


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
        taken |= {"prediction": "actual output", "correct": f"metric {metric}", "failed": "error of the metric"}
        taken["confidence"] = confidence or "none; answers are not ranked"
        return [self.log(file, _with_trials(made), taken, _others(offered, confidence, metrics, metric))]


def _either(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if name in values), None)


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
        return [self.log(file, _with_trials(made), taken, _others(offered, confidence, metrics, metric))]


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
