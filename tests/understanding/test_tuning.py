from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest

from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.returns.measures import AUGRC
from demur.understanding import training
from demur.understanding.relevance import RelevanceClassifier
from demur.understanding.training import SHARPNESS, WEIGHTS, Tuning, tuned

TEXTS = [
    "when do you open",
    "when do you close",
    "at what time do you open",
    "who built the ship",
    "who was it that built this",
    "which man built the ship",
    "where can i have lunch",
    "is there lunch here",
    "where do you have tea",
]
LABELS = ["hours"] * 3 + ["builder"] * 3 + ["cafe"] * 3
OFF_TOPIC = ["do you like jazz", "zebra"]
FEW: dict[str, Any] = {"weights": (0.1, 0.6), "sharpness": (0.3, 1.0)}


def usual(**more: Any) -> Tuning:
    return tuned(RelevanceClassifier(), TEXTS, LABELS, **{**FEW, **more})


def test_every_pair_of_values_is_tried_and_the_best_comes_first() -> None:
    found = usual(off_topic=OFF_TOPIC)
    tried = {(one.parameters["question_weight"], one.parameters["sharpness"]) for one in found.settings}
    assert tried == set(product(*FEW.values()))
    order = [(one.augrc, -one.accuracy) for one in found.settings]
    assert all(better <= worse for better, worse in pairwise(order))
    assert found.best is found.settings[0]


def test_without_values_the_usual_ones_are_tried() -> None:
    found = tuned(RelevanceClassifier(), TEXTS, LABELS)
    assert found.frame().shape == (len(WEIGHTS) * len(SHARPNESS), 4)
    assert found.frame().columns == ["question_weight", "sharpness", "accuracy", "augrc"]


@pytest.mark.parametrize("scoring", ["posterior", "kl"])
def test_figures_are_those_of_answers_to_questions_left_out(scoring: Any) -> None:
    found = tuned(RelevanceClassifier(scoring=scoring), TEXTS, LABELS, off_topic=OFF_TOPIC, **FEW)
    for setting in found.settings:
        model = RelevanceClassifier(scoring=scoring, **setting.parameters).fit(TEXTS, LABELS)
        scores = model.scores(np.concatenate([model.left_out(), model.predict_proba(OFF_TOPIC)]))
        right = model.classes_[scores.argmax(axis=1)] == np.array([*LABELS, "", ""])
        assert setting.accuracy == pytest.approx(right[: len(TEXTS)].mean())
        answers = Sweep.of(scores.max(axis=1)[:-1], right[:-1], withheld=1)  # of "zebra" nothing is known
        assert setting.augrc == pytest.approx(AUGRC().finish(answers))


def test_responses_are_those_of_the_best_setting_with_off_topic_texts_after_them() -> None:
    found = usual(off_topic=OFF_TOPIC)
    table = found.responses
    assert table["input"].to_list() == TEXTS + OFF_TOPIC
    assert table["id"].to_list() == [*(f"train {place}" for place in range(1, 10)), "off 1", "off 2"]
    assert table["target"].to_list() == [*LABELS, None, None]
    assert table["scope"].to_list() == ["in"] * 9 + ["off"] * 2
    right = (table["prediction"] == table["target"]).fill_null(value=False)
    assert right[:9].mean() == pytest.approx(found.best.accuracy)
    area = AUGRC().finish(Sweep.of(table["confidence"].to_numpy()[:-1], right.to_numpy()[:-1], withheld=1))
    assert area == pytest.approx(found.best.augrc)


def test_no_question_is_answered_from_itself() -> None:
    table = tuned(RelevanceClassifier(), ["when now", "when now", "who now"], ["a", "b", "c"], **FEW).responses
    assert table["prediction"].to_list()[:2] == ["c", "c"]


def test_of_many_questions_a_sample_is_taken_that_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST", 4)
    samples = {seed: usual(seed=seed).responses["id"].to_list() for seed in range(5)}
    assert {len(sample) for sample in samples.values()} == {4}
    assert len({tuple(sample) for sample in samples.values()}) > 1
    assert usual(seed=3).responses["id"].to_list() == samples[3]


def test_tuning_twice_gives_the_same() -> None:
    one, other = usual(off_topic=OFF_TOPIC), usual(off_topic=OFF_TOPIC)
    assert one.frame().equals(other.frame())
    assert one.responses.equals(other.responses)


def test_the_model_given_is_left_as_it_was() -> None:
    model = RelevanceClassifier(question_weight=0.42)
    tuned(model, TEXTS, LABELS, **FEW)
    assert model.get_params() == RelevanceClassifier(question_weight=0.42).get_params()
    assert not hasattr(model, "classes_")


def test_answers_texts_count_where_the_scoring_reads_them() -> None:
    model = RelevanceClassifier(scoring="kl")
    answers = {"hours": "from nine to five", "builder": "a man from bath", "cafe": "a cup of tea from nine"}
    bare = tuned(model, TEXTS, LABELS, **FEW).responses["confidence"]
    assert not tuned(model, TEXTS, LABELS, answers=answers, **FEW).responses["confidence"].equals(bare)


def test_each_step_is_told() -> None:
    steps: list[tuple[str, int, int]] = []
    usual(step=lambda *told: steps.append(told))
    assert steps == [("tuning", place, 4) for place in range(5)]


def test_labels_may_be_numbers() -> None:
    found = tuned(RelevanceClassifier(), TEXTS, [1, 1, 1, 2, 2, 2, 3, 3, 3], **FEW)
    assert found.best.accuracy == usual().best.accuracy
    assert found.responses["target"].to_list()[:4] == ["1", "1", "1", "2"]


def test_a_table_of_texts_may_be_a_series() -> None:
    found = tuned(RelevanceClassifier(), pl.Series(TEXTS), pl.Series(LABELS), **FEW)
    assert found.frame().equals(usual().frame())


def test_one_question_alone_has_nothing_to_be_answered_by() -> None:
    found = tuned(RelevanceClassifier(), ["when"], ["a"], **FEW)
    assert found.responses["prediction"].to_list() == [None]


def test_nothing_to_learn_from_and_one_string_are_refused() -> None:
    with pytest.raises(DataError, match="there is nothing to learn from"):
        tuned(RelevanceClassifier(), [], [], **FEW)
    with pytest.raises(UsageError, match="got one string"):
        tuned(RelevanceClassifier(), "when", ["a"], **FEW)
    with pytest.raises(UsageError, match="got one string"):
        usual(off_topic="zebra")
    with pytest.raises(DataError, match="there are 9 texts and 1 labels"):
        tuned(RelevanceClassifier(), TEXTS, ["a"], **FEW)


def test_texts_of_which_nothing_is_known_are_withheld_and_not_answered() -> None:
    texts = ["when open", "open when today", "who built it", "it was built by", "lonely"]
    labels = ["hours", "hours", "builder", "builder", "solo"]
    found = tuned(RelevanceClassifier(), texts, labels, off_topic=["xyzzy plugh"], weights=[0.5], sharpness=[0.6])
    withheld = found.responses.filter(pl.col("prediction").is_null())
    assert withheld["input"].to_list() == ["lonely", "xyzzy plugh"]
    assert withheld["confidence"].null_count() == 2
    assert found.best.accuracy == pytest.approx(0.8)


def test_where_all_texts_are_copies_nothing_is_right_without_itself() -> None:
    found = tuned(RelevanceClassifier(), ["open"] * 4, ["a", "a", "b", "b"], weights=[0.5], sharpness=[0.6])
    assert found.best.accuracy == 0
