"""Relevance models on CLINC150 and chitchat: right answers, knowing what is beyond them, noise, speed and memory."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import MEGABYTE, Line, answer, fastest
from benchmarks.peers import auroc, installed
from demur.understanding import tokens
from demur.understanding.noise import WordChannel
from demur.understanding.relevance import RelevanceClassifier

DATA = Path(__file__).parents[2] / "shared" / "data"
CLINC, CHITCHAT = DATA / "clinc150" / "clinc150_full.jsonl.gz", DATA / "chitchat" / "questions.jsonl.gz"

KINDS = ("words", "phones", "mixed")
RIGHT_BARS = {"words": 0.85, "mixed": 0.855}
AUROC_BAR = 0.88
NOISE = 0.5
GAIN_BAR = 0.10
TRAINING_BAR, BATCH_BAR, ALONE_BAR, MEMORY_BAR = 10.0, 1e3 / 1_000, 20.0, 1_000.0
"""Seconds, milliseconds a query, milliseconds, megabytes."""
ALONE = 200
"""Queries that are asked one at a time."""


@dataclass(frozen=True, slots=True)
class Part:
    """Texts with their labels; "oos" is out of scope."""

    ids: list[str]
    texts: list[str]
    labels: list[str]


def lines() -> Iterator[Line]:
    """Every figure of the family; corpora that are not there are left out."""
    if CLINC.is_file():
        yield from _clinc()
    if CHITCHAT.is_file():
        yield from _chitchat()


def _clinc() -> Iterator[Line]:
    train, test, beyond = (_part(CLINC, *which) for which in (("train", False), ("test", False), ("test", True)))
    models: dict[str, Any] = {kind: RelevanceClassifier(tokens=kind) for kind in _kinds()}
    if peer := installed("scikit-learn"):
        models[f"scikit-learn {peer}: TF-IDF + logistic regression"] = _peer()
    for kind, model in models.items():
        yield from _quality(kind, model.fit(train.texts, train.labels), test, beyond)
    if installed("rapidfuzz") and installed("wordfreq"):
        yield from _noisy(models, train, test)
    yield from _training(train)
    yield from _queries(models, test)
    yield from _alone()


def _part(path: Path, split: str, oos: bool = False) -> Part:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    chosen = [row for row in rows if row["split"] == split and row.get("oos", False) == oos]
    return Part(*([row[name] for row in chosen] for name in ("id", "text", "label")))


def _kinds() -> Sequence[str]:
    return KINDS if tokens.available() else KINDS[:1]


def _peer() -> Any:
    """The usual baseline as one writes it."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=300))


def _quality(kind: str, model: Any, test: Part, beyond: Part) -> Iterator[Line]:
    posterior = model.predict_proba([*test.texts, *beyond.texts])
    inside = np.arange(len(posterior)) < len(test.texts)
    right = _share(model.classes_[posterior[inside].argmax(axis=1)], test.labels)
    title = f"CLINC150, {len(test.texts):,} in scope, {kind}: wrong answers"
    yield _short_of_1(title, right, "of all", RIGHT_BARS.get(kind), "accuracy")
    area = auroc(posterior.max(axis=1), inside)
    title = f"CLINC150, {len(beyond.texts):,} out of scope, {kind}: pairs with one in scope in the wrong order"
    yield _short_of_1(title, area, "of pairs", AUROC_BAR if kind in KINDS else None, "AUROC")


def _short_of_1(title: str, value: float, unit: str, least: float | None, name: str) -> Line:
    """A value that should be high, as what it lacks: lines hold when they are at most their bar."""
    asked = "" if least is None else f"; asked for: {least:g}"
    return Line(title, 1 - value, unit, None if least is None else round(1 - least, 6), f"{name} {value:.3f}{asked}")


def _noisy(models: dict[str, Any], train: Part, test: Part) -> Iterator[Line]:
    heard = WordChannel(train.texts, wer=NOISE).recognise(test.texts, test.ids)
    right = {kind: _share(model.predict(heard.texts), test.labels) for kind, model in models.items()}
    for kind, share in right.items():
        title = f"CLINC150 heard at a word error rate of {heard.wer:.3f}, {kind}: wrong answers"
        yield _short_of_1(title, share, "of all", None, "accuracy")
    if "mixed" in right:
        title = f"CLINC150 heard at a word error rate of {NOISE:g}: accuracy of words less that of the mixture"
        against = f"asked for: {-GAIN_BAR:g}; the noise is kind to phones"
        yield Line(title, right["words"] - right["mixed"], "of all", -GAIN_BAR, against)


def _share(found: Sequence[str], labels: Sequence[str]) -> float:
    return float(np.mean(np.asarray(found) == np.asarray(labels)))


def _training(train: Part) -> Iterator[Line]:
    works: dict[str, Callable[[], object]] = {
        kind: partial(RelevanceClassifier(tokens=kind).fit, train.texts, train.labels) for kind in _kinds()
    }
    for kind, spent in fastest(works, repeats=3).items():
        title = f"training on {len(train.texts):,} pairs, {kind}: CPU"
        yield Line(title, spent, "s", TRAINING_BAR, "pronunciations known from before")
    if peer := installed("scikit-learn"):
        spent = fastest({"theirs": partial(_peer().fit, train.texts, train.labels)}, repeats=1)["theirs"]
        yield Line(f"training on {len(train.texts):,} pairs, scikit-learn {peer}: CPU", spent, "s", None, "same pairs")


def _queries(models: dict[str, Any], test: Part) -> Iterator[Line]:
    works: dict[str, Callable[[], object]] = {
        kind: partial(model.predict_proba, test.texts) for kind, model in models.items()
    }
    for kind, spent in fastest(works, repeats=3).items():
        each = 1e3 * spent / len(test.texts)
        bar = BATCH_BAR if kind in KINDS else None
        against = f"{1e3 / each:,.0f} queries a second{'' if bar is None else f'; asked for: {1e3 / bar:,.0f}'}"
        yield Line(f"{len(test.texts):,} queries at once, {kind}: CPU", each, "ms each", bar, against)
    for kind, model in models.items():
        times = [_wall(partial(model.predict_proba, [text])) for text in test.texts[:ALONE]]
        against = f"the slowest of {ALONE}: {1e3 * max(times):.1f} ms"
        bar = ALONE_BAR if kind in KINDS else None
        yield Line(f"one query alone, {kind}: wall clock", 1e3 * float(np.median(times)), "ms", bar, against)


def _wall(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _alone() -> Iterator[Line]:
    """Training and answering in a process of its own, with every word to be looked up."""
    for kind in _kinds():
        printed = answer(f"from benchmarks.understanding import trained_alone\nprint(*trained_alone({kind!r}))")
        seconds, megabytes = (float(value) for value in printed.split())
        against = "a fresh process"
        yield Line(f"training on CLINC150 from nothing, {kind}: wall clock", seconds, "s", TRAINING_BAR, against)
        title = f"training on CLINC150 and answering it, {kind}: largest resident set"
        yield Line(title, megabytes, "MB", MEMORY_BAR, against)


def trained_alone(kind: str) -> tuple[float, float]:
    """Seconds to train, and the largest resident set in megabytes once the test texts are answered too."""
    train, test = _part(CLINC, "train"), _part(CLINC, "test")
    model = RelevanceClassifier(tokens=kind)
    seconds = _wall(partial(model.fit, train.texts, train.labels))
    model.predict_proba(test.texts)
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return seconds, kilobytes * 1024 / MEGABYTE


def _chitchat() -> Iterator[Line]:
    train, test = _part(CHITCHAT, "train"), _part(CHITCHAT, "test")
    models: dict[str, Any] = {kind: RelevanceClassifier(tokens=kind) for kind in _kinds()}
    if peer := installed("scikit-learn"):
        models[f"scikit-learn {peer}: TF-IDF + logistic regression"] = _peer()
    for kind, model in models.items():
        right = _share(model.fit(train.texts, train.labels).predict(test.texts), test.labels)
        title = f"chitchat, {len(test.texts):,} questions, {kind}: wrong answers"
        yield _short_of_1(title, right, "of all", None, "accuracy")
