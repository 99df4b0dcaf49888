"""Logs to be judged, and judges who do it."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demur.judges.answers import read_answers
from demur.judges.labels import LabelSet, usual_labels
from demur.judges.session import Judging, begin
from demur.returns.table import Reading

AS_IT_COMES = Reading()


def answers(n: int = 60, systems: tuple[str, ...] = ("alpha", "beta"), **more: Any) -> list[dict[str, Any]]:
    """Answers of systems to the same questions; a tenth is withheld, and an answer with an even number is right."""
    rng = random.Random(0)
    rows = []
    for k in range(n):
        for system in systems:
            answer = None if rng.random() < 0.1 else f"answer {rng.randrange(6)}"
            sure = None if answer is None else round(rng.random(), 3)
            rows.append({"id": f"q{k}", "system": system, "input": f"question {k}?", "prediction": answer})
            rows[-1] |= {"confidence": sure, **more}
    return rows


def write_log(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a log."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def begun(
    folder: Path, rows: list[dict[str, Any]] | None = None, labels: LabelSet | None = None, **given: Any
) -> Judging:
    """A judging in a folder, of a log beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    log = read_answers(
        write_log(folder / "log.jsonl", answers() if rows is None else rows),
        reading=AS_IT_COMES,
        show=given.get("show", ()),
    )
    options = {"judges": ("anna", "ben"), "sample": None, "overlap": 0.5, "seed": 1, **given}
    return begin(folder / "log.judging", log, labels or usual_labels(), **options)


def truth(shown: tuple[tuple[str, str | None], ...]) -> str:
    """What is right to say of an answer."""
    return "wrong" if int(str(dict(shown)["Answer"]).split()[-1]) % 2 else "right"


def judge_all(judging: Judging, judge: str, say: Callable[..., str] = truth, most: int = 10**6) -> int:
    """Have a judge judge what is left, or some of it; gives how many that were."""
    count, state = 0, judging.state_of(judge)
    while state.item is not None and count < most:
        state = judging.judge(judge, state.item, say(state.shown))
        count += 1
    return count


def serve_judging(folder: Path, port: int, told: Any) -> None:
    """Serve a judging as `demur judge` does."""
    from demur.apps.judge.server import serve
    from demur.apps.web.server import Address

    serve(Judging.open(folder), Address(port=port), announce=told.send)
