"""Reads what lm-evaluation-harness writes of each sample: choices with their likelihoods, or texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from demur.errors import DataError
from demur.importers.choices import ImportChoices
from demur.importers.protocol import ForeignFile, ImportedLog, Importer, Row, chosen, frame_of
from demur.importers.samples import AGREEMENT, ENTROPY, VOTES, agreement
from demur.importers.squad import same_answer
from demur.importers.values import as_flag, is_flag

T = TypeVar("T", bound=msgspec.Struct)

INVALID = "[invalid]"
"""What a filter of lm-evaluation-harness gives where it found no answer."""

NO_ANSWER = ("", "unanswerable")
USUAL = ("exact_match", "acc", "exact")
"""Metrics that judge answers as they are, the first that is there."""


class HarnessSample(msgspec.Struct):
    """A line of samples_*.jsonl, as far as it is read."""

    doc_id: int | str
    target: Any = None
    doc: dict[str, Any] = {}
    arguments: Any = None
    resps: list[Any] = []
    filtered_resps: list[Any] = []
    filter: str = "none"
    metrics: list[str] = []


class HarnessResults(msgspec.Struct):
    """What results_*.json says of a run."""

    model_name: str | None = None


class HarnessLog(Importer):
    """Samples of lm-evaluation-harness."""

    name = "lm-eval"
    title = "samples of lm-evaluation-harness"

    def recognises(self, file: ForeignFile) -> str:
        """Samples, or results, which name the model."""
        if not file.is_json:
            return ""
        if file.has("doc_id", "doc", "resps", "filtered_resps"):
            return "samples"
        return "results" if file.has("results", "configs", "versions", "n-shot") else ""

    def read(self, files: Sequence[tuple[str, ForeignFile]], choices: ImportChoices) -> list[ImportedLog]:
        """A log for each file of samples; each filter is a system."""
        results = [file for role, file in files if role == "results"]
        samples = [file for role, file in files if role == "samples"]
        if not samples:
            rule = "holds averages of lm-evaluation-harness and no answers"
            raise DataError(rule, where=f"{results[0].name}:", fix="run it with --log_samples and give samples_*.jsonl")
        model = results[0].document(HarnessResults).model_name if len(results) == 1 else None
        return [self._log(file, model, choices) for file in samples]

    def _log(self, file: ForeignFile, model: str | None, choices: ImportChoices) -> ImportedLog:
        """The log of one file, which is read twice, so that its samples are never held together."""
        form, named = _form(file.first, HarnessSample)
        filters, metrics = _survey(file, choices.filter)
        if choices.filter is not None:
            chosen("filter", "filter", filters, choices.filter, file.name)

        def samples() -> Iterator[HarnessSample]:
            return (one for one in file.objects(form) if choices.filter in (None, one.filter))

        first = next(samples()).filtered_resps
        if not first:
            raise DataError("has no filtered_resps in its first sample", where=f"{file.name}:", fix="run it again")
        generated = isinstance(first[0], str)
        squad = generated and len(first) == 2 and isinstance(file.first.get("exact"), list)
        metric = "exact" if squad else _metric(metrics, list(named), choices, file.name)
        make = _squad_row if squad else _generated_row if generated else _choice_row

        def rows() -> Iterator[Row]:
            for place, sample in enumerate(samples(), start=1):
                judged = None if metric is None else getattr(sample, named[metric])
                try:
                    row = make(sample, judged, normalised=metric == "acc_norm")
                except (KeyError, IndexError, ValueError, TypeError, AttributeError) as fault:
                    rule = f"sample {place} does not have the form of the first: {fault}"
                    raise DataError(rule, where=f"{file.name}:", fix="a file has the samples of one task") from None
                own = f" ({sample.filter})" if sample.filter != "none" and (generated or len(filters) > 1) else ""
                yield {"id": str(sample.doc_id), "system": (model or file.stem) + own, **row}

        frame = frame_of(rows())
        if choices.confidence in VOTES and choices.confidence in frame.columns:
            frame = frame.with_columns(confidence=frame[choices.confidence])
        taken = {"id": "doc_id", "system": ("model_name" if model else "the file's name") + " and filter"}
        taken |= {"target": "target", "prediction": "filtered_resps", "correct": metric or ""}
        taken |= {"confidence": _WORDS[make], "abstained": INVALID if generated else ""}
        several = len(filters) > 1 and choices.filter is None
        others = [f"--filter {name} reads one filter" for name in filters if several]
        others += [f"--metric {name} judges otherwise" for name in metrics if name != metric]
        others += [f"--confidence {ENTROPY} takes another"] if ENTROPY in frame.columns else []
        return self.log(file, frame, taken, others)


class SampleSurvey(msgspec.Struct):
    """What is looked at of every sample before any is read."""

    filter: str = "none"


def _form(first: Mapping[str, Any], base: type[T]) -> tuple[type[T], dict[str, str]]:
    """The form of samples with their metrics, and the name that each metric has in it."""
    metrics = [name for name in first.get("metrics") or () if name in first]
    named = {name: f"metric_{place}" for place, name in enumerate(metrics)}
    parts = [(key, Any, None) for key in named.values()]
    rename = {key: name for name, key in named.items()}
    form: Any = msgspec.defstruct("HarnessRow", parts, bases=(base,), rename=rename)
    return form, named


def _survey(file: ForeignFile, only: str | None) -> tuple[list[str], list[str]]:
    """The filters of all samples, and the metrics that are 0 or 1, or nothing, in all of the filter that is read."""
    form, named = _form(file.first, SampleSurvey)
    filters: dict[str, None] = {}
    seen: dict[str, bool] = {}  # whether a metric that says something says yes or no
    for sample in file.objects(form):
        filters[sample.filter] = None
        if only in (None, sample.filter):
            values = {name: getattr(sample, key) for name, key in named.items()}
            seen |= {name: seen.get(name, True) and is_flag(one) for name, one in values.items() if one is not None}
    return list(filters), [name for name in named if seen.get(name)]


def _metric(metrics: Sequence[str], named: Sequence[str], choices: ImportChoices, where: str) -> str | None:
    obvious = next((name for name in USUAL if name in metrics), None)
    if not metrics and choices.metric is None:
        fix = f"metrics are {', '.join(named) or 'none'}; --map correct=COLUMN takes a column"
        raise DataError("no metric of these samples is 0 or 1", where=f"{where}:", fix=fix)
    return chosen("metric", "metric", metrics, choices.metric, where, obvious)


def _choice_row(sample: HarnessSample, judged: Any, *, normalised: bool) -> Row:
    """A row of multiple choice: the likelihoods, which are texts, as probabilities of the choices."""
    labels = [str(one).strip() for one in _continuations(sample)]
    likelihoods = [float(one[0]) for one in sample.filtered_resps]
    if normalised:
        likelihoods = [one / max(len(label), 1) for one, label in zip(likelihoods, labels, strict=True)]
    ranked = ranking(labels, likelihoods)
    target = sample.target
    if str(target).lstrip("-").isdigit() and 0 <= int(target) < len(labels):
        target = labels[int(target)]
    row = {"target": target, "prediction": ranked[0]["label"], "confidence": ranked[0]["confidence"]}
    return {**row, "correct": as_flag(judged), "nbest": ranked, **_question(sample)}


def ranking(labels: Sequence[str], logarithms: Sequence[float]) -> list[Row]:
    """Labels with their shares, the surest first: the softmax of logarithms.

    >>> [(one["label"], round(one["confidence"], 2)) for one in ranking(["a", "b"], [0.0, 1.0986123])]
    [('b', 0.75), ('a', 0.25)]
    """
    most = max(logarithms)
    powers = [math.exp(one - most) for one in logarithms]
    total = sum(powers)
    pairs = sorted(zip(labels, powers, strict=True), key=lambda pair: -pair[1])
    return [{"label": label, "confidence": power / total} for label, power in pairs]


def _continuations(sample: HarnessSample) -> Iterator[Any]:
    """The texts whose likelihoods were computed, one for each choice."""
    arguments = sample.arguments
    parts = arguments.values() if isinstance(arguments, dict) else arguments
    for part in parts:
        yield part["arg_1"] if isinstance(part, dict) else part[1]


def _generated_row(sample: HarnessSample, judged: Any, *, normalised: bool) -> Row:  # noqa: ARG001
    """A row of a text that was generated, several times perhaps: then the share of samples that agree with it."""
    answer = str(sample.filtered_resps[0]).strip()
    target = sample.target.strip() if isinstance(sample.target, str) else sample.target
    row: Row = {"target": target, "prediction": answer, "correct": as_flag(judged), **_question(sample)}
    drawn = [str(one).strip() for one in sample.resps[0]] if isinstance(sample.resps[0], list) else []
    if answer == INVALID:
        return {**row, "prediction": None, "correct": None, "abstained": True}
    if len(drawn) > 1:
        read = [answer if one.startswith(answer) else one for one in drawn]  # as filters extract answers from texts
        read = read if answer in read else [answer if answer in one else one for one in drawn]
        _, _, sharpness = agreement(read)
        share = read.count(answer) / len(read)
        row |= {"confidence": share, AGREEMENT: share, ENTROPY: sharpness}
    return row


def _squad_row(sample: HarnessSample, judged: Any, *, normalised: bool) -> Row:  # noqa: ARG001
    """A row of a question that may have no answer: SQuAD 2."""
    given, reference = judged
    answers = list(dict.fromkeys(reference["answers"]["text"]))
    text = given["prediction_text"].strip()
    row: Row = {"target": answers or None, "prediction": text, **_question(sample)}
    row["confidence"] = 1 - given["no_answer_probability"]
    if text.casefold() in NO_ANSWER:
        return {**row, "prediction": None, "abstained": True}
    return {**row, "correct": any(same_answer(text, one) for one in answers)}


def _question(sample: HarnessSample) -> Row:
    """The question, and what else of a document can be sliced by."""
    doc = sample.doc
    asked = next((doc[name] for name in _INPUTS if isinstance(doc.get(name), str)), None)
    return {"input": asked, **{name: doc[name] for name in _SLICES if isinstance(doc.get(name), str)}}


_INPUTS = ("question", "query", "input", "text", "prompt")
_SLICES = ("domain", "category", "subject", "subset", "difficulty", "level", "topic")
_WORDS = {
    _choice_row: "softmax of the likelihoods in filtered_resps",
    _generated_row: "share of resps that agree with the answer, where there are several",
    _squad_row: "1 - no_answer_probability",
}
