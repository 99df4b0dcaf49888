"""Reads results of promptfoo: .json, .jsonl and .csv."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from demur.core.io.columns import ALIASES
from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen, delimited_rows
from demur.importers.values import as_flag, as_number

ERROR = 2
"""The failureReason of an output that could not be had."""

REFUSED = ("is-refusal", "not-is-refusal")
TARGETS = ("target", "expected", "gold", "label", "intent", "answer", "reference", "ground_truth", "expected_output")
INPUTS = ("question", "input", "text", "query", "utterance", "prompt", "message")
ANSWERS = ("prediction", "answer", "label", "intent", "response", "output", "class", "category")
"""Names of variables, or of keys in an output that is JSON, that say what was meant, asked and answered."""

LOGPROB = "logprob"


class PromptfooResults(Importer):
    """Results of promptfoo."""

    name = "promptfoo"
    title = "results of promptfoo"

    def recognises(self, file: ForeignFile) -> str:
        """A document, lines, a table, or a configuration."""
        if file.is_json:
            if file.has("promptIdx", "success", "namedScores") or file.has("gradingResult", "testCase", "vars"):
                return "lines"
            if file.has("prompts", "providers", "tests") or file.has("prompts", "providers", "description"):
                return "config"
            return "document" if file.has("evalId", "results") and isinstance(file.first["results"], dict) else ""
        statuses = [name for name in file.columns if name == "Status"]
        return "table" if statuses and "Grader Reason" in file.columns else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """One log; each provider, and each prompt where there are several, is a system."""
        if role == "config":
            fix = "run promptfoo eval -o results.json and give results.json"
            raise DataError("holds a configuration of promptfoo and no answers", where=f"{file.name}:", fix=fix)
        if role == "table":
            return [self._log(file, list(_cells(file)), choices, refusals=False)]
        if role == "document":
            results = file.document(dict[str, Any])["results"].get("results")
            if not isinstance(results, list):
                raise DataError("has no results", where=f"{file.name}:", fix="was it written by promptfoo eval -o?")
        else:
            results = list(file.objects(dict[str, Any]))
        return [self._log(file, [_plain(one) for one in results], choices, refusals=True)]

    def _log(self, file: ForeignFile, results: Sequence[Row], choices: ImportChoices, *, refusals: bool) -> ImportedLog:
        _refuse_unjudged(results, f"{file.name}:")
        prompts = {one["prompt"] for one in results}
        described = all(one["description"] for one in results) and len({one["description"] for one in results}) > 1
        described = described and len({(one["description"], one["vars_text"]) for one in results}) == len(
            {one["description"] for one in results}
        )
        target = _variable(results, TARGETS)
        asked = _variable(results, INPUTS)
        scores = list(dict.fromkeys(name for one in results for name in one["scores"]))
        metric = chosen("metric", "metric", scores, choices.metric, file.name) if choices.metric else None
        answered = [one for one in results if not one["failed"] and not one["abstained"]]
        named = [name for name in scores if _is_fraction(one["scores"].get(name) for one in answered)]
        offered = [f"namedScores.{name}" for name in named]
        offered += [LOGPROB] if any(one[LOGPROB] is not None for one in answered) else []
        confidence = choices.confidence
        if confidence is None or confidence in offered:
            candidates = [one for one in offered if one != LOGPROB] or offered
            confidence = chosen(
                "confidence", "confidence", candidates if confidence is None else [confidence], None, file.name
            )
        trials: Counter[tuple[str, str]] = Counter()
        rows = []
        for one in results:
            system = f"{one['system']} ({one['prompt']})" if len(prompts) > 1 else one["system"]
            identity = one["description"] if described else one["vars_text"]
            trials[system, identity] += 1
            row: Row = {"id": identity, "trial": trials[system, identity], "system": system}
            row |= {"input": one["vars"].get(asked), "target": one["vars"].get(target)}
            row |= {"prediction": None, "correct": None, "abstained": one["abstained"], "failed": one["failed"]}
            if not one["failed"] and not one["abstained"]:
                row["prediction"] = answer_in(one["output"])
                row["correct"] = one["success"] if metric is None else bool(one["scores"].get(metric))
                row |= {f"namedScores.{name}": one["scores"].get(name) for name in named} | {LOGPROB: one[LOGPROB]}
                row["confidence"] = row.get(confidence) if confidence else None
            others = {"input", "target", *ALIASES}
            row |= {name: value for name, value in one["metadata"].items() if name not in others and name not in row}
            rows.append(row)
        if max(trials.values()) == 1:
            for row in rows:
                del row["trial"]
        taken = {
            "id": "description" if described else "vars",
            "trial": "the repeats of a test" if max(trials.values()) > 1 else "",
            "system": "provider" + (" and prompt" if len(prompts) > 1 else ""),
            "target": f"vars.{target}" if target else "",
            "prediction": "the output, or the answer inside it where it is JSON",
            "correct": f"namedScores.{metric}" if metric else "success",
            "confidence": confidence or "none; answers are not ranked",
            "abstained": "isRefusal, a refusal assertion, or an empty output" if refusals else "an empty output",
            "failed": "failureReason 2" if refusals else "ERROR",
        }
        others_taken = [f"--confidence {name} takes another" for name in offered if name != confidence]
        others_taken += [f"--metric {name} judges otherwise" for name in scores if name != metric and name not in named]
        more = [] if refusals else [f"{file.name}: the CSV does not say which outputs are refusals; the .json does"]
        return self.log(file, rows, taken, others_taken, more)


def _refuse_unjudged(results: Sequence[Row], where: str) -> None:
    """Refuses a file without results, and one whose results have no verdict."""
    if not results:
        raise DataError("holds no results", where=where, fix="did promptfoo eval end?")
    if all(one["success"] is None for one in results):
        rule = "has no result that says whether it is a success"
        raise DataError(rule, where=where, fix="is it of another version? promptfoo export writes it again")


def _plain(result: Mapping[str, Any]) -> Row:
    response = result.get("response") or {}
    case = result.get("testCase") or {}
    provider = result.get("provider") or {}
    components = (result.get("gradingResult") or {}).get("componentResults") or []
    refused = response.get("isRefusal") is True
    for one in components:
        kind = (one.get("assertion") or {}).get("type")
        refused |= kind in REFUSED and one.get("pass") is (kind == "is-refusal")
    output = response.get("output")
    failed = result.get("failureReason") == ERROR or "error" in response
    variables = result.get("vars") or case.get("vars") or {}
    logprobs = [one for one in response.get("logProbs") or () if isinstance(one, int | float)]
    return {
        "description": case.get("description") or "",
        "vars": variables,
        "vars_text": msgspec.json.encode(variables).decode(),
        "system": provider.get("label") or provider.get("id") or "promptfoo",
        "prompt": (result.get("prompt") or {}).get("label") or "",
        "output": output,
        "success": as_flag(result.get("success")),
        "scores": {name: as_number(one) for name, one in (result.get("namedScores") or {}).items()},
        "metadata": case.get("metadata") or {},
        "failed": failed or None,
        "abstained": None if failed else (refused or output in (None, "")) or None,
        LOGPROB: math.exp(sum(logprobs) / len(logprobs)) if logprobs else None,
    }


def _cells(file: ForeignFile) -> Iterable[Row]:
    """The results of a CSV file, which has the columns of each provider one beside the other, under the same names."""
    header, *lines = delimited_rows(file.content())
    begins = [place - 1 for place, name in enumerate(header) if name == "Status"]
    for line in lines:
        if len(line) != len(header):
            rule = f"a row has {len(line)} cells, the header {len(header)}"
            raise DataError(rule, where=f"{file.name}:", fix="is the file cut off?")
        own = dict(zip(header[: begins[0]], line[: begins[0]], strict=True))
        description = own.pop("Description", "")
        for begin, end in zip(begins, [*begins[1:], len(header)], strict=True):
            cells = dict(zip(header[begin + 1 : end], line[begin + 1 : end], strict=True))
            label = header[begin]
            system, _, prompt = label.removeprefix("[").partition("] ")
            scores = {
                name.removeprefix("Metric: "): float(cell)
                for name, cell in cells.items()
                if name.startswith("Metric: ") and cell
            }
            failed = cells["Status"] == "ERROR" or None
            text = msgspec.json.encode(own).decode()
            yield {"description": description, "vars": own, "vars_text": text, "system": system, "prompt": prompt} | {
                "output": line[begin],
                "success": cells["Status"] == "PASS",
                "scores": scores,
                "metadata": {},
                "failed": failed,
                "abstained": None if failed else (line[begin] == "") or None,
                LOGPROB: None,
            }


def _variable(results: Sequence[Row], names: Sequence[str]) -> str | None:
    return next((name for name in names if all(name in one["vars"] for one in results)), None)


def _is_fraction(values: Iterable[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float)]
    return bool(numbers) and not all(value in (0, 1) for value in numbers)


def answer_in(output: Any) -> str:
    """The answer in an output: the text, or what a key of JSON in it says.

    >>> answer_in('{"intent": "tickets", "confidence": 0.9}'), answer_in("Yes.")
    ('tickets', 'Yes.')
    """
    value = output
    if isinstance(output, str) and output.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(output)
        except msgspec.MsgspecError:
            return output
    if isinstance(value, dict):
        texts = {name: part for name, part in value.items() if isinstance(part, str)}
        key = next((name for name in ANSWERS if name in texts), next(iter(texts), None) if len(texts) == 1 else None)
        return texts[key] if key is not None else msgspec.json.encode(value).decode()
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
