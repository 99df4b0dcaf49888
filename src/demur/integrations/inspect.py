"""An extension of inspect_ai: metrics of answers that may be withheld, and a hook that writes the report of a run.

inspect_ai loads it wherever demur is installed beside it. Metrics go into a scorer or a task as its own do:

    @scorer(metrics=[accuracy(), augrc(), share_withheld()])

They are computed on every epoch, as a log is read: a score of N, or with a reason such as refusal, is withheld, a
grader that failed judges nothing. Where DEMUR_REPORT=report.html is set, a run ends with demur's report on its logs.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.scorer import Metric, SampleScore, metric

if TYPE_CHECKING:
    from demur.core.stats.measure import SweepMeasure

REPORT, SCORER, CONFIDENCE = "DEMUR_REPORT", "DEMUR_SCORER", "DEMUR_CONFIDENCE"
"""Variables of the environment: the file of the report, and, where a log has several, its scorer and confidence."""

SURE = "confidence"
"""What a scorer calls the confidence of an answer, in the metadata of a score or in a value that is a dict."""

_log = getLogger(__name__)


@metric(scores="unreduced")
def augrc(confidence: str = SURE) -> Metric:
    """Area under the error-return curve, the mean error rate over all non-return rates; lower is better."""
    from demur.returns.measures import AUGRC

    return _metric(AUGRC(), confidence)


@metric(scores="unreduced")
def error_at_nonreturn(at: float = 0.2, confidence: str = SURE) -> Metric:
    """Error rate, as a share of all samples, where this share of them is withheld; NaN where a model withholds more."""
    from demur.returns.measures import ErrorAtNonreturn

    return _metric(ErrorAtNonreturn(at), confidence)


@metric(scores="unreduced")
def accuracy_when_answering() -> Metric:
    """Share of the answers that are right, samples that the model withheld apart; higher is better."""
    from demur.returns.measures import QALDPrecision

    return _metric(QALDPrecision())


@metric(scores="unreduced")
def share_withheld() -> Metric:
    """Share of the samples to which the model gave no answer."""
    from demur.returns.measures import NonreturnFloor

    return _metric(NonreturnFloor())


def _metric(measure: SweepMeasure, confidence: str = SURE) -> Metric:
    def compute(scores: list[SampleScore]) -> float:
        from demur.returns.table import Reading, responses

        rows = answer_rows(scores, confidence)
        if not rows:
            return math.nan
        return measure(responses(rows, reading=Reading(missing_confidence="lowest")).frame).value

    return compute


def answer_rows(scores: Sequence[SampleScore], confidence: str = SURE) -> list[dict[str, Any]]:
    """Scores as rows, by the rules that logs are read by; those whose grader failed are left out."""
    from demur.importers.choices import ImportChoices
    from demur.importers.inspect_ai import InspectSample, LoggedScore, SampleRows

    tries: Counter[str] = Counter()
    samples, sure = [], {}
    for place, one in enumerate(scores):
        name = str(place if one.sample_id is None else one.sample_id)
        tries[name] += 1
        score = one.score
        logged = LoggedScore(score.value, score.answer, score.metadata, score.reason)
        samples.append(InspectSample(name, tries[name], scores={"score": logged}))
        values = {**(score.value if isinstance(score.value, dict) else {}), **(score.metadata or {})}
        sure[name, tries[name]] = values.get(confidence)
    rows = SampleRows("scores", ImportChoices()).rows(samples, "model")
    wanted = ("id", "trial", "correct", "abstained")
    return [{part: row[part] for part in wanted} | {"confidence": sure[row["id"], row["trial"]]} for row in rows]


@hooks(name="demur_report", description=f"Writes demur's report on a run to the file that {REPORT} names.")
class ReportHook(Hooks):
    """Writes a report at the end of a run: one for each task, in which its models are compared."""

    def enabled(self) -> bool:
        """Whether a report was asked for."""
        return bool(os.environ.get(REPORT))

    async def on_run_end(self, data: RunEnd) -> None:
        """Report on the logs of each task; a fault is logged, and never ends the run."""
        from demur.errors import DemurError

        tasks: dict[str, list[str]] = {}
        for log in data.logs:
            tasks.setdefault(log.eval.task, []).append(log.location)
        for task, places in tasks.items():
            path = Path(os.environ[REPORT])
            path = path if len(tasks) == 1 else path.with_stem(f"{path.stem}-{task.replace('/', '-')}")
            try:
                write_report(path, places)
                _log.warning("demur: wrote %s", path)
            except (DemurError, OSError) as fault:
                _log.warning("demur: no report on %s: %s", task, fault)


def write_report(path: Path, places: Sequence[str]) -> None:
    """Write demur's report on logs that are files of this machine."""
    from demur.errors import UsageError
    from demur.reports.jobs import report

    if remote := [place for place in places if urlsplit(place).scheme not in ("", "file")]:
        raise UsageError(f"{remote[0]} is not a file of this machine; copy it here and run demur report")
    files = [unquote(urlsplit(place).path) if place.startswith("file:") else place for place in places]
    asked: dict[str, Any] = {"scorer": os.environ.get(SCORER)}
    if confidence := os.environ.get(CONFIDENCE):
        asked["confidence"] = confidence
    path.parent.mkdir(parents=True, exist_ok=True)
    report(*files, **asked).save(path)
