"""Reads logs of inspect_ai: .eval archives, .json, and tables of `samples_df`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from demur.core.io.columns import ALIASES
from demur.core.io.sources import stem_of
from demur.errors import DataError
from demur.importers.archives import LogArchive
from demur.importers.choices import ImportChoices
from demur.importers.protocol import (
    ForeignFile,
    ImportedLog,
    Importer,
    Row,
    chosen,
    decoded,
    frame_of,
    without_nan,
)
from demur.importers.samples import VOTES

GRADES = {"C": True, "I": False, "P": False, "N": None}
"""Values of a score: right, wrong, partly right, not attempted."""

WITHHELD = ("refusal", "no_response", "invalid_response_format")
"""Reasons of a score that say that nothing was answered."""

FILTERED = "content_filter"
HEADER, START = "header.json", "_journal/start.json"
LOGPROB = "logprob"
PERCENT = 100.0

_CONFIDENCES = ("confidence", "certainty", "probability")
"""What the confidence of an answer may be called in the metadata of a score."""


class TopLogprob(msgspec.Struct, gc=False):
    """A token that might have come."""

    token: str = ""
    logprob: float = -math.inf


class TokenLogprob(msgspec.Struct):
    """A token that came, and those that might have."""

    token: str = ""
    logprob: float = -math.inf
    top_logprobs: list[TopLogprob] | None = None


class ChoiceLogprobs(msgspec.Struct):
    """The tokens of an output."""

    content: list[TokenLogprob] = []


class OutputChoice(msgspec.Struct):
    """One output of a model."""

    stop_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class ModelOutput(msgspec.Struct):
    """What a model gave."""

    choices: list[OutputChoice] = []
    completion: Any = None


class LoggedScore(msgspec.Struct):
    """What one scorer says of a sample."""

    value: Any = None
    answer: str | None = None
    metadata: dict[str, Any] | None = None
    reason: str | None = None


class InspectSample(msgspec.Struct):
    """A sample, as far as it is read."""

    id: str | int
    epoch: int = 1
    input: Any = None
    target: str | list[str] = ""
    choices: list[str] | None = None
    output: ModelOutput | None = None
    scores: dict[str, LoggedScore] | None = None
    metadata: dict[str, Any] = {}
    error: Any = None


class TaskInfo(msgspec.Struct):
    """The task and the model."""

    task: str = ""
    model: str = ""


class InspectHeader(msgspec.Struct):
    """What a log says of its run."""

    eval: TaskInfo
    status: str = "started"


class InspectDocument(InspectHeader):
    """A log in one document."""

    samples: list[msgspec.Raw] | None = None
    """Each as it is written: all of them decoded would take many times the room of the file."""


class InspectLog(Importer):
    """Logs of inspect_ai."""

    name = "inspect"
    title = "log of inspect_ai"

    def recognises(self, file: ForeignFile) -> str:
        """An archive, a document, or a table of samples."""
        if file.start.startswith(b"PK\x03\x04"):
            return "archive" if file.source.path.suffix == ".eval" or b"_journal/" in file.start[:200] else ""
        if file.is_json and file.has("eval", "status") and isinstance(file.first["eval"], dict):
            return "document" if "task" in file.first["eval"] else ""
        scored = any(name.startswith("score_") for name in file.columns)
        return "table" if scored and file.has("sample_id", "eval_id", "id", "epoch") else ""

    def read_file(self, role: str, file: ForeignFile, choices: ImportChoices) -> list[ImportedLog]:
        """The log, one system."""
        if role == "table":
            return [self._table(file, choices)]
        if role == "document":
            document = file.document(InspectDocument)
            parts = ((f"sample {place}", one) for place, one in enumerate(document.samples or (), start=1))
            return [self._samples(file, document, _decoded_samples(file.name, parts), choices)]
        archive = LogArchive(file)
        head = next((name for name in (HEADER, START) if name in archive.names), None)
        if head is None:
            raise DataError("is not a log of inspect_ai: the archive has no header", where=f"{file.name}:")
        header = decoded(archive.read(head), InspectHeader, f"{file.name}: {head}")
        names = [name for name in archive.names if name.startswith("samples/")]
        return [self._samples(file, header, _decoded_samples(file.name, archive.texts(names)), choices)]

    def _samples(
        self, file: ForeignFile, header: InspectHeader, samples: Iterable[InspectSample], choices: ImportChoices
    ) -> ImportedLog:
        read = SampleRows(file.name, choices)
        frame = frame_of(read.rows(samples, header.eval.model))
        if frame.is_empty() and read.unscored:
            rule = "holds no sample that was scored"
            raise DataError(rule, where=f"{file.name}:", fix=f"inspect score {file.source.path.name} --scorer NAME")
        if frame.is_empty():
            fix = f"the run has the status {header.status}; was it ended before a sample was done?"
            raise DataError("holds no samples", where=f"{file.name}:", fix=fix)
        several = frame["trial"].n_unique() > 1
        if not several:
            frame = frame.drop("trial")
        offered, asked = list(read.confidences), choices.confidence
        if asked is None or asked in offered:
            own = [name for name in offered if name != LOGPROB] or offered
            asked = chosen("confidence", "confidence", own if asked is None else [asked], None, file.name)
            if asked is not None:
                frame = frame.with_columns(frame[asked].alias("confidence"))
        taken = {
            "id": "id",
            "trial": "epoch" if several else "",
            "system": "eval.model",
            "target": "target",
            "prediction": f"answer of the scorer {read.scorer}",
            "correct": "its value, C or 1",
            "confidence": "" if asked in VOTES else _confidence_words(asked),
            "abstained": "value N, a reason such as refusal, or stop_reason content_filter",
            "failed": "error",
        }
        others = [f"--confidence {name} takes another" for name in offered if name != asked]
        if len(read.scorers) > 1:
            others.append(f"--scorer {' or '.join(one for one in read.scorers if one != read.scorer)} judges otherwise")
        return self.log(file, frame, taken, others, [*read.notes(file.name), *_status_notes(file.name, header)])

    def _table(self, file: ForeignFile, choices: ImportChoices) -> ImportedLog:
        cells = file.cells()
        scorers = [name.removeprefix("score_") for name in cells.columns if name.startswith("score_")]
        scorer = chosen("scorer", "scorer", scorers, choices.scorer, file.name)
        rows = cells.filter(pl.col(f"score_{scorer}").is_not_null())
        graded = []
        for row in rows.iter_rows(named=True):
            value = _plain_value(row[f"score_{scorer}"])
            models = list(_decoded_object(row.get("model_usage")))
            one: Row = {"id": row["id"], "trial": row["epoch"], "input": row.get("input"), "target": row.get("target")}
            one["system"] = models[0] if len(models) == 1 else None
            one["eval"] = stem_of(Path(str(row.get("log") or row["eval_id"])))
            one |= _judgement(value if not isinstance(value, dict) else value.get("correct"), scorer or "", file.name)
            if isinstance(value, dict):
                one["confidence"] = next(iter(_stated(value).values()), None)
            one["failed"] = bool(row.get("error")) or None
            graded.append(
                one | {name.removeprefix("metadata_"): row[name] for name in row if name.startswith("metadata_")}
            )
        frame = frame_of(graded)
        if "correct" not in frame.columns or frame["correct"].null_count() == frame.height:
            raise DataError(
                f'the scorer "{scorer}" judges no sample', where=f"{file.name}:", fix="choose another with `scorer`"
            )
        if frame["trial"].n_unique() == 1:
            frame = frame.drop("trial")
        if "system" not in frame.columns or frame["system"].null_count():
            frame = frame.with_columns(system=pl.lit("inspect_ai"))
        if frame["eval"].n_unique() > 1:
            frame = frame.with_columns(system=pl.concat_str("system", pl.lit(" ("), "eval", pl.lit(")")))
        taken = {"id": "id", "trial": "epoch", "system": "model_usage", "correct": f"score_{scorer}", "failed": "error"}
        taken["abstained"] = "value N"
        if "confidence" in frame.columns:
            taken["confidence"] = f"the confidence in score_{scorer}"
        more = [f"{file.name}: samples_df has no answers and no logprobs; the .eval log has both"]
        return self.log(file, frame, taken, more=more)


def _decoded_samples(where: str, parts: Iterable[tuple[str, bytes | msgspec.Raw]]) -> Iterator[InspectSample]:
    decoder = msgspec.json.Decoder(InspectSample)
    for name, text in parts:
        yield decoded(text, InspectSample, f"{where}: {name}", decoder)


class SampleRows:
    """Makes rows of samples, and counts what is worth a note."""

    def __init__(self, where: str, choices: ImportChoices) -> None:
        self.where, self._asked = where, choices.scorer
        self.scorer: str | None = None
        self.scorers: dict[str, None] = {}
        self.confidences: dict[str, None] = {}
        self._counts: Counter[str] = Counter()

    def rows(self, samples: Iterable[InspectSample], model: str) -> Iterator[Row]:
        """The rows of samples, but for those that nothing judges."""
        for sample in samples:
            if self.scorer is None and sample.scores:
                self.scorers.update(dict.fromkeys(sample.scores))
                self.scorer = chosen("scorer", "scorer", list(self.scorers), self._asked, self.where)
            row = self._row(sample, model)
            if why := row.get("unjudged"):
                self._counts[why] += 1
                continue
            yield row

    @property
    def unscored(self) -> int:
        """How many samples have no score."""
        return self._counts["unscored"]

    def _row(self, sample: InspectSample, model: str) -> Row:
        row: Row = {"id": str(sample.id), "trial": sample.epoch, "input": _input_text(sample.input)}
        target = sample.target
        row |= {"target": target[0] if isinstance(target, list) and len(target) == 1 else target, "prediction": None}
        row |= {"system": model or None, "correct": None, "abstained": None, "failed": None}
        row |= {name: value for name, value in sample.metadata.items() if _is_slice(name, value)}
        if sample.error is not None:
            return row | {"failed": True}
        score = (sample.scores or {}).get(self.scorer or "")
        if score is None:
            return row | {"unjudged": "unscored"}
        output = sample.output or ModelOutput()
        stop = output.choices[0].stop_reason if output.choices else None
        row["reason"] = score.reason
        value = score.value.get("correct", score.value) if isinstance(score.value, dict) else score.value
        if score.reason in WITHHELD or stop == FILTERED or score.answer == "":
            return row | {"abstained": True}
        judged = _judgement(value, self.scorer or "", self.where)
        self._counts["partly"] += value == "P"
        if judged.get("abstained"):
            return row | judged
        if judged["correct"] is None:
            return {"unjudged": "ungraded"}
        answer = score.answer if score.answer is not None else _completion_text(output)
        row |= judged | {"prediction": answer}
        if isinstance(score.value, dict):
            self._add(row, score.value, "value.")
        self._add(row, score.metadata or {}, "metadata.")
        self._add_logprob(row, output, answer, sample.choices)
        return row

    def _add(self, row: Row, values: Mapping[str, Any], prefix: str) -> None:
        stated = {f"{prefix}{name}": value for name, value in _stated(values).items()}
        row |= stated
        self.confidences.update(dict.fromkeys(stated))

    def _add_logprob(self, row: Row, output: ModelOutput, answer: str, choices: Sequence[str] | None) -> None:
        logprobs = output.choices[0].logprobs if output.choices else None
        if logprobs is None or not logprobs.content:
            return
        token = next((one for one in reversed(logprobs.content) if one.token.strip() == answer.strip()), None)
        if token is not None:
            row[LOGPROB] = math.exp(token.logprob)
            if choices and token.top_logprobs:
                labels = {one.token.strip(): math.exp(one.logprob) for one in reversed(token.top_logprobs)}
                letters = [chr(ord("A") + place) for place in range(len(choices))]
                ranked = sorted((one for one in labels.items() if one[0] in letters), key=lambda one: -one[1])
                row["nbest"] = [{"label": label, "confidence": share} for label, share in ranked] or None
        elif not choices:
            row[LOGPROB] = math.exp(sum(one.logprob for one in logprobs.content) / len(logprobs.content))
        else:
            return
        self.confidences[LOGPROB] = None

    def notes(self, where: str) -> list[str]:
        """What happened often enough to be said."""
        words = {
            "ungraded": "samples left out, as their grader failed: {:,}",
            "unscored": "samples left out, as they have no score: {:,}",
            "partly": "samples that are partly right (P) and count as wrong: {:,}",
        }
        return [f"{where}: {words[name].format(count)}" for name, count in self._counts.items() if count]


def _stated(values: Mapping[str, Any]) -> dict[str, float]:
    """The confidences among values, as shares.

    >>> _stated({"correct": 1.0, "confidence": 70, "certainty": None})
    {'confidence': 0.7}
    """
    numbers = {name: one for name, one in values.items() if isinstance(one, int | float) and not isinstance(one, bool)}
    named = {name: one for name, one in numbers.items() if any(part in name.casefold() for part in _CONFIDENCES)}
    return {name: one / PERCENT if one > 1 else float(one) for name, one in named.items()}


def _judgement(value: Any, scorer: str, where: str) -> Row:
    """Whether a value of a score says right, wrong, or not attempted; that of a grader that failed says neither."""
    if isinstance(value, str) and value.upper() in GRADES:
        grade = GRADES[value.upper()]
        return {"correct": grade, "abstained": True if grade is None else None}
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return {"correct": None}
    number = _plain_value(value)
    if isinstance(number, bool) or number in (0, 1):
        return {"correct": bool(number)}
    rule = f'the scorer "{scorer}" gives {value!r}, which does not say right or wrong'
    raise DataError(rule, where=f"{where}:", fix="choose another with `scorer`: one that gives C and I, or 1 and 0")


def _plain_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return _decoded_object(value) or value


def _decoded_object(text: Any) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(without_nan((text or "{}").encode()))
    except (msgspec.MsgspecError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _input_text(value: Any) -> str | None:
    if isinstance(value, list):
        said = [one.get("content") for one in value if isinstance(one, dict) and one.get("role") == "user"]
        return said[-1] if said and isinstance(said[-1], str) else None
    return value if isinstance(value, str) else None


def _completion_text(output: ModelOutput) -> str:
    return output.completion if isinstance(output.completion, str) else ""


def _is_slice(name: str, value: Any) -> bool:
    return isinstance(value, str | int | float | bool) and name not in ALIASES and not name.startswith("demur:")


def _confidence_words(name: str | None) -> str:
    words = {LOGPROB: "probability of the answer's token", None: "none; answers are not ranked"}
    return words.get(name, f"score {name}")


def _status_notes(where: str, header: InspectHeader) -> list[str]:
    if header.status == "success":
        return []
    return [f'{where}: the run has the status "{header.status}": what it wrote until then is read']
