"""The extension of inspect_ai, in runs of its own with a mock model; skipped where inspect_ai is not installed."""

from pathlib import Path
from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install 'demur[inspect]'")

from inspect_ai import Epochs, Task  # noqa: E402
from inspect_ai import eval as run  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import Score, Target, accuracy, scorer  # noqa: E402
from inspect_ai.solver import TaskState, generate  # noqa: E402

from demur.integrations.inspect import (  # noqa: E402
    accuracy_when_answering,
    augrc,
    error_at_nonreturn,
    share_withheld,
)
from demur.returns.jobs import score as demur_score  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # those of inspect_ai are its own

ANSWERS = ["hours 90", "tickets 80", "hours 30", "N 0", "? 0"]
TARGETS = ["hours", "tickets", "tickets", "cafe", "way"]
METRICS = [accuracy(), augrc(), error_at_nonreturn(at=0.4), accuracy_when_answering(), share_withheld()]


@scorer(metrics=METRICS)
def said() -> Any:
    async def judge(state: TaskState, target: Target) -> Score:
        answer, sure = state.output.completion.split()
        if answer == "N":
            return Score(value="N")
        if answer == "?":
            return Score(value=float("nan"), reason="grader_failed")
        right = "C" if answer == target.text else "I"
        return Score(value=right, answer=answer, metadata={"confidence": float(sure)})

    return judge


def task(epochs: int = 1) -> Task:
    samples = [Sample(id=f"q{place}", input="?", target=target) for place, target in enumerate(TARGETS)]
    return Task(dataset=samples, solver=generate(), scorer=said(), epochs=Epochs(epochs, "mean"), name="museum")


def run_task(folder: Path, epochs: int = 1) -> Any:
    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in ANSWERS * epochs]
    for output in outputs:
        output.usage = ModelUsage()  # otherwise tokens are counted, which downloads an encoding
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = run(task(epochs), model=model, log_dir=str(folder), max_samples=1, display="none")
    assert log.status == "success", log.error
    return log


def metrics_of(log: Any) -> dict[str, float]:
    return {name.rpartition("/")[2]: one.value for part in log.results.scores for name, one in part.metrics.items()}


def test_metrics_are_those_that_demur_gives_of_the_log(tmp_path: Path) -> None:
    log = run_task(tmp_path)
    found = metrics_of(log)
    assert found["accuracy_when_answering"] == pytest.approx(2 / 3)  # of hours, tickets, tickets
    assert found["share_withheld"] == 0.25  # the grader failed on the fifth
    own = demur_score(log.location, at_nonreturn=0.4)[0].figures
    assert found["augrc"] == pytest.approx(own["augrc"].value)
    assert found["error_at_nonreturn"] == pytest.approx(own["error_at_nonreturn"].value)


def test_epochs_are_not_averaged_before_they_are_judged(tmp_path: Path) -> None:
    found = metrics_of(run_task(tmp_path, epochs=2))
    assert found["share_withheld"] == 0.25
    assert found["accuracy_when_answering"] == pytest.approx(2 / 3)


def test_a_run_ends_with_the_report_that_the_environment_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMUR_REPORT", str(tmp_path / "out" / "report.md"))
    run_task(tmp_path)
    assert "mockllm/model" in (tmp_path / "out" / "report.md").read_text()
    monkeypatch.setenv("DEMUR_SCORER", "nobody")
    monkeypatch.setenv("DEMUR_REPORT", str(tmp_path / "none.md"))
    run_task(tmp_path)
    assert not (tmp_path / "none.md").exists()
