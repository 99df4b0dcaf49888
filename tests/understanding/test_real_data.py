"""Relevance models on CLINC150 and on the chitchat of a character; all of it is tested on made-up texts as well."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demur.core.stats.sweep import Sweep
from demur.returns.measures import AUROC
from demur.understanding.relevance import SCORINGS, RelevanceClassifier, answered, load_model, save_model
from demur.understanding.tokens import available
from demur.understanding.training import tuned

DATA = Path(__file__).parents[3] / "shared" / "data"
CLINC, CHITCHAT = DATA / "clinc150" / "clinc150_full.jsonl.gz", DATA / "chitchat"

needs_clinc = pytest.mark.skipif(not CLINC.is_file(), reason="no ../shared/data/clinc150 beside the project")
needs_chitchat = pytest.mark.skipif(not CHITCHAT.is_dir(), reason="no ../shared/data/chitchat beside the project")
needs_phones = pytest.mark.skipif(not available(), reason="demur[phones] is not installed")

Rows = list[dict[str, Any]]
TALK: dict[str, Any] = {"question_weight": 0.6, "sharpness": 1.0}
"""Small talk comes in short questions that are worded much alike, and wants more weight on their words."""


def rows(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def of(table: Rows, split: str, *, oos: bool = False) -> tuple[list[str], list[str]]:
    """Texts and labels of a part."""
    chosen = [row for row in table if row["split"] == split and row.get("oos", False) == oos]
    return [row["text"] for row in chosen], [row["label"] for row in chosen]


@pytest.fixture(scope="module")
def clinc() -> Rows:
    return rows(CLINC)


@pytest.fixture(scope="module")
def chitchat() -> Rows:
    return rows(CHITCHAT / "questions.jsonl.gz")


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    return {row["answer_id"]: row["friendly"] for row in rows(CHITCHAT / "answers.jsonl.gz")}


@needs_clinc
@pytest.mark.parametrize("tokens", ["words", pytest.param("mixed", marks=needs_phones)])
def test_intents_are_found_and_what_is_out_of_scope_is_less_sure(clinc: Rows, tokens: str) -> None:
    """Learnt from a third of the training questions, tried on a sixth of the others."""
    model = RelevanceClassifier(tokens=tokens).fit(*(part[::3] for part in of(clinc, "train")))
    texts, labels = of(clinc, "test")
    beyond, _ = of(clinc, "test", oos=True)
    assert (len(texts), len(beyond), len(model.classes_)) == (4500, 1000, 150)
    texts, labels, beyond = texts[::6], labels[::6], beyond[::6]
    posterior = model.predict_proba([*texts, *beyond])
    assert (model.classes_[posterior[: len(texts)].argmax(axis=1)] == np.array(labels)).mean() >= 0.85
    inside = np.arange(len(posterior)) < len(texts)
    assert AUROC().finish(Sweep.of(posterior.max(axis=1), inside)) >= 0.88


@needs_chitchat
def test_a_character_answers_small_talk_and_withholds_what_it_was_never_asked(
    chitchat: Rows, answers: dict[str, str], tmp_path: Path
) -> None:
    model = RelevanceClassifier(threshold=0.5, **TALK).fit(*of(chitchat, "train"), answers)
    texts, labels = of(chitchat, "test")
    found = answered(model, texts)
    right = [answer.label == label for answer, label in zip(found, labels, strict=True)]
    returned = [hit for answer, hit in zip(found, right, strict=True) if answer.returned]
    assert np.mean(right) > 0.8
    assert len(returned) > 1000
    assert np.mean(returned) > np.mean(right)
    save_model(model, tmp_path / "friend")
    assert repr(answered(load_model(tmp_path / "friend"), texts[:100])) == repr(found[:100])


@needs_chitchat
def test_every_scoring_answers_small_talk(chitchat: Rows, answers: dict[str, str]) -> None:
    texts, labels = of(chitchat, "test")
    model = RelevanceClassifier(**TALK).fit(*of(chitchat, "train"), answers)
    posterior = model.predict_proba(texts)
    for scoring in SCORINGS:
        found = model.set_params(scoring=scoring).scores(posterior)
        assert (model.classes_[found.argmax(axis=1)] == np.array(labels)).mean() > 0.8, scoring


@needs_chitchat
def test_tuning_prefers_a_setting_that_is_no_worse_on_new_questions(chitchat: Rows) -> None:
    beyond = [row["text"] for row in rows(CHITCHAT / "pred_tfidf_lr.jsonl.gz") if row["gold"] == "oos"][:200]
    texts, labels = (part[::2] for part in of(chitchat, "train"))
    found = tuned(RelevanceClassifier(), texts, labels, off_topic=beyond, weights=(0.05, 0.5), sharpness=(0.5,))
    fitted = [RelevanceClassifier(**one.parameters).fit(texts, labels) for one in found.settings]
    best, worst = (model.score(*of(chitchat, "test")) for model in fitted)
    assert best >= worst
