"""Logs of other tools with a hundred thousand samples: reading them as rows, against Polars' reader of JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Line, answer, cheapest
from benchmarks.reading import READ_NDJSON

SAMPLES = 100_000
BAR = 2.0
"""Times what Polars takes, at most."""

READ_LOG = "from demur.importers.reading import read_table; import sys; read_table(sys.argv[1])"
READ_JSON = "import polars as pl, sys; pl.read_json(sys.argv[1])"
PEAK = f"{READ_LOG}; print([line for line in open('/proc/self/status') if line.startswith('VmHWM:')][0].split()[1])"
"""Kilobytes at most; what `getrusage` says is inherited from the process that starts this one."""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory() as folder:
        harness = Path(folder) / "samples.jsonl"
        with harness.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(_harness_sample(place)) + "\n" for place in range(SAMPLES))
        yield from _figures("samples of lm-evaluation-harness", harness, READ_NDJSON)
        log = Path(folder) / "log.json"
        header = {"version": 2, "status": "success", "eval": {"task": "choice", "model": "a model"}}
        document = {**header, "samples": [_inspect_sample(place) for place in range(SAMPLES)]}
        log.write_text(json.dumps(document), encoding="utf-8")
        yield from _figures("log of inspect_ai", log, READ_JSON)


def _figures(what: str, path: Path, polars: str) -> Iterator[Line]:
    commands = {
        "demur": [sys.executable, "-c", READ_LOG, str(path)],
        "polars": [sys.executable, "-c", polars, str(path)],
    }
    took = cheapest(commands, repeats=3)
    ours, theirs = took["demur"], took["polars"]
    size = path.stat().st_size / 1024**2
    against = f"Polars reads its JSON: {theirs.cpu:.2f} s CPU, {theirs.wall:.2f} s wall clock; {size:.0f} MB"
    yield Line(f"{what}, {SAMPLES:.0e} samples: CPU", ours.cpu / theirs.cpu, "x CPU", BAR, against)
    yield Line(f"{what}, {SAMPLES:.0e} samples: wall clock", ours.wall / theirs.wall, "x wall", BAR, against)
    peak = int(answer(PEAK, str(path))) / 1024
    yield Line(f"{what}, {SAMPLES:.0e} samples: memory", peak / size, "x file", None, f"{peak:.0f} MB at most")


def _harness_sample(place: int) -> dict[str, object]:
    labels = ["opening hours", "tickets", "location", "other"]
    likelihoods = [[str(-1.0 - (place * k) % 7 / 3), "False"] for k in range(1, 5)]
    asked = f"Question {place}: where is the entrance, and when does it open? " * 3
    arguments = {f"gen_args_{k}": {"arg_0": asked, "arg_1": f" {label}"} for k, label in enumerate(labels)}
    sample = {"doc_id": place, "doc": {"question": asked, "choices": labels}, "target": str(place % 4)}
    sample |= {"arguments": arguments, "resps": [[one] for one in likelihoods], "filtered_resps": likelihoods}
    return {**sample, "filter": "none", "metrics": ["acc"], "acc": float(place % 3 == 0)}


def _inspect_sample(place: int) -> dict[str, object]:
    answered = "ABCD"[place % 4]
    content = [{"token": "ANSWER: ", "logprob": -0.01}, {"token": answered, "logprob": -0.1 - place % 9 / 10}]
    output = {"model": "a model", "completion": f"ANSWER: {answered}", "choices": [{"logprobs": {"content": content}}]}
    events = [{"event": "model", "text": f"what happened at step {k} of sample {place}"} for k in range(6)]
    grade = "C" if place % 3 == 0 else "I"
    sample = {"id": f"q{place}", "epoch": 1, "input": f"question {place}", "target": "A", "output": output}
    return {**sample, "scores": {"choice": {"value": grade, "answer": answered}}, "metadata": {}, "events": events}
