"""Reads what `rasa test nlu` and `/model/parse` write, with targets and threshold from the bot's own files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from demur.core.io.columns import DEPLOYED
from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row

FALLBACK = "nlu_fallback"
"""The intent that Rasa's FallbackClassifier gives; its confidence is the threshold."""

KINDS = {
    "intent": ("intent", "intent_prediction"),
    "response": ("intent_response_key_target", "intent_response_key_prediction"),
}
"""What is predicted, and the keys of its target and its prediction."""

CONFIGURED = "threshold of the FallbackClassifier"

_INTENT = re.compile(rb"^\s*-\s*intent:\s*(?P<intent>\S.*?)\s*$")
_EXAMPLE = re.compile(rb"^\s+-\s+(?P<text>\S.*?)\s*$")
_ENTITY = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\{[^}]*\})")
_THRESHOLD = re.compile(rb"name:\s*[\"']?FallbackClassifier[\"']?\s*(?:\n[ \t]+[^\n]*)*?\n[ \t]+threshold:\s*([0-9.]+)")


class RasaResults(Importer):
    """Results of `rasa test nlu --successes`, or bodies of `/model/parse` with an nlu.yml that holds the targets."""

    name = "rasa"
    title = "results of Rasa"

    def recognises(self, file: ForeignFile) -> str:
        """Errors or successes of intents or responses, parse bodies, targets, the configuration, or a report."""
        if not file.is_json:
            text = file.start
            if re.search(rb"^nlu:\s*$", text, re.MULTILINE) and re.search(rb"^\s*- intent:", text, re.MULTILINE):
                return "targets"
            if re.search(rb"^pipeline:\s*$", text, re.MULTILINE):
                return "config"
            return "stories" if re.search(rb"^stories:\s*$", text, re.MULTILINE) else ""
        if file.has("text", "intent", "intent_ranking") and isinstance(file.first["intent"], dict):
            return "bodies"
        for kind, keys in KINDS.items():
            if file.has("text", *keys) and isinstance(file.value, list):
                return kind
        values = file.first.values()
        per_label = [one for one in values if isinstance(one, dict) and {"precision", "support"} <= one.keys()]
        return "report" if per_label and "macro avg" in file.first else ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """The log of each kind of result."""
        of = {role: [file for one, file in files if one == role] for role, _ in files}
        threshold = _threshold(of["config"][0]) if "config" in of else None
        logs = [self._results(kind, of[kind], threshold if kind == "intent" else None) for kind in KINDS if kind in of]
        logs += [self._bodies(file, of.get("targets", []), threshold, choices) for file in of.get("bodies", ())]
        if not logs:
            role, file = files[0]
            what = {"targets": "examples of intents", "config": "the configuration of a bot", "stories": "test stories"}
            fix = (
                "give it with a .jsonl of /model/parse bodies"
                if role in what
                else "give intent_errors.json and intent_successes.json"
            )
            raise DataError(
                f"holds {what.get(role, 'averages of Rasa')} and no answers", where=f"{file.name}:", fix=fix
            )
        return logs

    def _results(self, kind: str, files: Sequence[ForeignFile], threshold: float | None) -> ImportedLog:
        target_key, prediction_key = KINDS[kind]
        rows: list[Row] = []
        seen: Counter[tuple[Any, Any]] = Counter()
        for file in files:
            for one in file.document(list[dict[str, Any]]):
                predicted = one.get(prediction_key) or {}
                text, target = one.get("text"), one.get(target_key)
                seen[text, target] += 1
                row = {"id": f"{text}|{target}|{seen[text, target]}", "input": text, "target": target}
                row |= {"prediction": predicted.get("name"), "confidence": predicted.get("confidence")}
                rows.append(row | _deployed(threshold))
        right = sum(row["target"] == row["prediction"] for row in rows)
        if right in (0, len(rows)) and len(files) == 1:
            _refuse_half(files[0], kind, all_wrong=right == 0)
        taken = {
            "id": "text, target and a number, as texts repeat",
            "target": target_key,
            "prediction": f"{prediction_key}.name",
            "confidence": f"{prediction_key}.confidence",
            "withheld": FALLBACK,
        } | dict.fromkeys(_deployed(threshold), CONFIGURED)
        return self.log(files[0], rows, taken, stem="rasa" if len(files) > 1 else "")

    def _bodies(
        self, file: ForeignFile, targets: Sequence[ForeignFile], threshold: float | None, choices: ImportChoices
    ) -> ImportedLog:
        known: dict[str, str] = {}
        for one in targets:
            known.update(examples_in(one))
        if not known and choices.gold is None and "target" not in choices.columns:
            fix = "give the nlu.yml with the tested examples too, or a table with --gold FILE --on text"
            raise DataError(
                "holds bodies of /model/parse, which do not say what was meant", where=f"{file.name}:", fix=fix
            )
        retrieval = {name.partition("/")[0] for name in known.values() if "/" in name}
        rows = []
        for place, body in enumerate(file.objects(dict[str, Any])):
            target = known.get(body["text"])
            if known and target is None:
                rule = f'"{body["text"]}" is not an example of {targets[0].name}'
                raise DataError(rule, where=f"{file.name}:", fix="give the nlu.yml that was tested")
            ranking = [one for one in body.get("intent_ranking") or [body["intent"]] if one["name"] != FALLBACK]
            best = ranking[0] if ranking else {"name": None, "confidence": None}
            withheld = body["intent"]["name"] == FALLBACK
            base = target.partition("/")[0] if target and target.partition("/")[0] in retrieval else target
            row: Row = {"id": str(place), "text": body["text"], "input": body["text"], "target": base}
            row |= {"prediction": best["name"], "confidence": best["confidence"]}
            row["deployed"] = "withheld" if withheld else "returned"
            row["nbest"] = [{"label": one["name"], "confidence": one["confidence"]} for one in ranking]
            rows.append(row | _deployed(threshold))
        taken = {
            "id": "the place of a body",
            "target": targets[0].name if targets else "",
            "prediction": f"intent.name, or the next of intent_ranking where it is {FALLBACK}",
            "confidence": "its confidence in intent_ranking",
            "deployed": f"withheld where intent.name is {FALLBACK}",
            "nbest": "intent_ranking",
        } | dict.fromkeys(_deployed(threshold), CONFIGURED)
        return self.log(file, rows, taken)


def examples_in(file: ForeignFile) -> Iterator[tuple[str, str]]:
    """The examples of an nlu.yml, each with its intent; entities marked in a text are read as their words."""
    intent = ""
    for line in file.content().splitlines():
        if found := _INTENT.match(line):
            intent = found["intent"].decode().strip("\"'")
        elif line.strip() and not line[:1].isspace() and not line.startswith(b"-"):
            intent = ""
        elif intent and (example := _EXAMPLE.match(line)):
            yield _ENTITY.sub(r"\1", example["text"].decode()), intent


def _threshold(file: ForeignFile) -> float | None:
    found = _THRESHOLD.search(file.content())
    return float(found[1]) if found else None


def _deployed(threshold: float | None) -> Row:
    """The deployed threshold as a row has it; empty where no configuration says it."""
    return {} if threshold is None else {DEPLOYED: threshold}


def _refuse_half(file: ForeignFile, kind: str, *, all_wrong: bool) -> None:
    name = "intent" if kind == "intent" else "response_selection"
    other = f"{name}_{'successes' if all_wrong else 'errors'}.json"
    if all_wrong:
        rule = "holds only answers that are wrong, as Rasa writes errors apart"
        fix = f"run rasa test nlu --successes and give {other} too"
    else:
        rule = "holds only answers that are right, as Rasa writes successes apart"
        fix = f"give {other} too; if Rasa wrote none, every answer was right, and there is nothing to rank"
    raise DataError(rule, where=f"{file.name}:", fix=fix)
