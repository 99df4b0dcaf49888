import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, DemurError, UsageError
from demur.understanding import relevance
from demur.understanding.relevance import SCORINGS, RelevanceClassifier
from demur.understanding.tokens import available, parts_of, tokenizer
from reference import relevance as plain

needs_phones = pytest.mark.skipif(not available(), reason="demur[phones] is not installed")
KINDS = ("words", "phones1", "phones2", "mixed", "words+phones2", "words|phones3") if available() else ("words",)
each_scoring = pytest.mark.parametrize("scoring", SCORINGS)

WORDS = ["flour", "flower", "when", "open", "ship", "the", "the", "who"]
UNKNOWN = ["zebra", "quartz"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
QUESTIONS = st.lists(st.sampled_from(WORDS + UNKNOWN), max_size=6).map(" ".join)
SHARES = st.floats(0.05, 0.95)
SHARPNESS = st.floats(0.1, 1.5)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Texts and labels; somewhere there is a word."""
    texts = draw(st.lists(TEXTS, max_size=7))
    texts.append(draw(st.sampled_from(WORDS)))
    return texts, [draw(st.sampled_from("abc")) for _ in texts]


def tokenizers(tokens: str) -> list[plain.Tokenizer]:
    return [tokenizer(part) for part in parts_of(tokens)]


def close(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    assert np.asarray(found) == pytest.approx(np.asarray(wanted), rel=1e-9, abs=1e-9)


GUIDE_TEXTS = ["when do you open", "who built the ship", "when is lunch", "who sailed the ship"]
GUIDE_LABELS = ["hours", "builder", "hours", "sailor"]


@pytest.fixture
def guide() -> RelevanceClassifier:
    return RelevanceClassifier().fit(GUIDE_TEXTS, GUIDE_LABELS)


@given(
    learnt=pairs(), asked=st.lists(QUESTIONS, max_size=3), tokens=st.sampled_from(KINDS), weight=SHARES, sharp=SHARPNESS
)
def test_posteriors_are_those_of_the_plain_loop(
    learnt: tuple[list[str], list[str]], asked: list[str], tokens: str, weight: float, sharp: float
) -> None:
    model = RelevanceClassifier(tokens=tokens, question_weight=weight, sharpness=sharp).fit(*learnt)
    for question, found in zip(asked, model.predict_proba(asked), strict=True):
        wanted = plain.posterior(
            question, *learnt, tokenizers(tokens), tokenizer("words"), weight=weight, sharpness=sharp
        )
        close(found, wanted)


@given(learnt=pairs(), tokens=st.sampled_from(KINDS), weight=SHARES, sharp=SHARPNESS)
def test_left_out_posteriors_are_those_of_the_plain_loop(
    learnt: tuple[list[str], list[str]], tokens: str, weight: float, sharp: float
) -> None:
    model = RelevanceClassifier(tokens=tokens, question_weight=weight, sharpness=sharp).fit(*learnt)
    wanted = [
        plain.left_out(place, *learnt, tokenizers(tokens), tokenizer("words"), weight=weight, sharpness=sharp)
        for place in range(len(learnt[0]))
    ]
    close(model.left_out(), wanted)
    some = np.arange(len(learnt[0]))[::2]
    close(model.left_out(some), [wanted[place] for place in some])


@given(
    learnt=pairs(),
    question=QUESTIONS,
    answers=st.none() | st.dictionaries(st.sampled_from("abcd"), TEXTS),
    scoring=st.sampled_from(["kl", "cross-entropy"]),
    weight=SHARES,
)
def test_scores_are_those_of_the_plain_loop(
    learnt: tuple[list[str], list[str]],
    question: str,
    answers: dict[str, str] | None,
    scoring: relevance.Scoring,
    weight: float,
) -> None:
    model = RelevanceClassifier(scoring=scoring, answer_weight=weight, question_weight=0.3, sharpness=0.5)
    model.fit(*learnt, answers)
    told = plain.answer_tokens(sorted(set(learnt[1])), answers, tokenizer("words"))
    posterior = plain.posterior(question, *learnt, tokenizers("words"), tokenizer("words"), weight=0.3, sharpness=0.5)
    wanted = plain.scores(posterior, told, weight=weight, divergence=scoring == "kl")
    close(model.scores(model.predict_proba([question]))[0], wanted)


def test_a_posterior_worked_by_hand() -> None:
    # background: a 1/2, b 1/4, c 1/4; pi_1(a) = .5 * 1/2 + .5 * 1/2 = 1/2, pi_1(b) = .5 * 1/2 + .5 * 1/4 = 3/8,
    # pi_2(a) = 1/2, pi_2(b) = 0 + 1/8; so of "a b b" the first has (3/8)^2 against (1/8)^2: 9 to 1
    model = RelevanceClassifier(question_weight=0.5, sharpness=1.0).fit(["a b", "a c"], ["one", "two"])
    assert model.predict_proba(["a b b", "a", "b zebra"]).tolist() == pytest.approx(
        np.array([[0.9, 0.1], [0.5, 0.5], [0.75, 0.25]])
    )


def test_scores_worked_by_hand() -> None:
    # without texts an answer is a token of its own: with weight .8 its model has .9 for itself and .1 for the other
    model = RelevanceClassifier(question_weight=0.5, sharpness=1.0, answer_weight=0.8).fit(["a b", "a c"], ["1", "2"])
    likely = (0.75 * 0.9 + 0.25 * 0.1, 0.75 * 0.1 + 0.25 * 0.9)
    crossed = [
        likely[0] * math.log(0.9) + likely[1] * math.log(0.1),
        likely[0] * math.log(0.1) + likely[1] * math.log(0.9),
    ]
    entropy = -sum(share * math.log(share) for share in likely)
    posterior = model.predict_proba(["b"])
    close(model.set_params(scoring="cross-entropy").scores(posterior)[0], crossed)
    close(model.decision_function(["b"]), [crossed[1] - crossed[0]])
    close(model.set_params(scoring="kl").scores(posterior)[0], [value + entropy for value in crossed])


@each_scoring
def test_the_divergence_is_never_above_0_and_scores_agree_with_answers(scoring: relevance.Scoring) -> None:
    model = RelevanceClassifier(scoring=scoring).fit(GUIDE_TEXTS, GUIDE_LABELS, {"hours": "we open at nine"})
    found = model.decision_function(GUIDE_TEXTS)
    assert found.shape == (4, 3)
    assert model.predict(GUIDE_TEXTS).tolist() == GUIDE_LABELS
    assert scoring == "posterior" or (found <= 1e-12).all()


@given(learnt=pairs(), asked=st.lists(QUESTIONS, max_size=4), tokens=st.sampled_from(KINDS))
def test_posteriors_sum_to_1_and_the_order_of_pairs_does_not_matter(
    learnt: tuple[list[str], list[str]], asked: list[str], tokens: str
) -> None:
    texts, labels = learnt
    found = RelevanceClassifier(tokens=tokens).fit(texts, labels).predict_proba(asked)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(asked)))
    turned = RelevanceClassifier(tokens=tokens).fit(texts[::-1], labels[::-1]).predict_proba(asked)
    assert turned == pytest.approx(found)


def test_a_scoring_may_be_chosen_after_learning(guide: RelevanceClassifier) -> None:
    for scoring in SCORINGS:
        anew = RelevanceClassifier(scoring=scoring).fit(GUIDE_TEXTS, GUIDE_LABELS)
        guide.set_params(scoring=scoring)
        assert guide.decision_function(GUIDE_TEXTS).tolist() == anew.decision_function(GUIDE_TEXTS).tolist()


def test_where_only_posteriors_are_asked_for_no_models_of_answers_are_kept(guide: RelevanceClassifier) -> None:
    assert guide.answer_models_ is None


def test_small_batches_give_what_one_batch_gives(guide: RelevanceClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, left = guide.predict_proba(GUIDE_TEXTS), guide.left_out()
    monkeypatch.setattr(relevance, "_BATCH", 4)
    assert guide.predict_proba(GUIDE_TEXTS).tolist() == whole.tolist()
    assert guide.left_out().tolist() == left.tolist()


def test_a_text_of_a_thousand_words_does_not_underflow(guide: RelevanceClassifier) -> None:
    found = guide.predict_proba(["who built the ship " * 1000])
    assert found.sum() == pytest.approx(1.0)
    assert guide.classes_[found.argmax()] == "builder"


def test_copies_of_a_text_have_no_say_when_it_is_left_out() -> None:
    model = RelevanceClassifier().fit(["when open", "open when", "When: open?", "who"], ["b", "b", "b", "a"])
    assert model.left_out().tolist()[:3] == [[1.0, 0.0]] * 3


def test_where_all_texts_are_copies_every_one_has_the_same_say() -> None:
    model = RelevanceClassifier().fit(["when", "when", "when"], ["a", "b", "b"])
    assert model.left_out() == pytest.approx(np.array([[1 / 3, 2 / 3]] * 3))


def test_leaving_out_nothing_gives_nothing(guide: RelevanceClassifier) -> None:
    assert guide.left_out(np.array([], dtype=np.int64)).shape == (0, 3)


def test_no_texts_have_no_answers(guide: RelevanceClassifier) -> None:
    assert guide.predict_proba([]).shape == (0, 3)
    assert guide.predict([]).tolist() == []
    assert guide.known([]).tolist() == []


def test_unknown_words_drop_out_and_of_them_alone_nothing_is_known(guide: RelevanceClassifier) -> None:
    assert guide.known(["", "?!", "zebra quartz", "open zebra"]).tolist() == [False, False, False, True]
    spoilt, clean = guide.predict_proba(["open zebra", "open"])
    assert spoilt.tolist() == clean.tolist()
    assert guide.predict_proba(["zebra", ""]) == pytest.approx(np.array([[0.25, 0.5, 0.25]] * 2))


@needs_phones
def test_the_mixture_averages_what_words_and_phones_say() -> None:
    by = {
        name: RelevanceClassifier(tokens=name).fit(GUIDE_TEXTS, GUIDE_LABELS).predict_proba(["who built a shop"])
        for name in ("words", "phones2", "mixed")
    }
    assert by["mixed"] == pytest.approx((by["words"] + by["phones2"]) / 2)


@needs_phones
def test_phones_hear_a_flower_in_flour() -> None:
    texts, labels = ["flour please", "the ship please"], ["bread", "ship"]
    assert RelevanceClassifier().fit(texts, labels).known(["flower"]).tolist() == [False]
    by_phones = RelevanceClassifier(tokens="phones").fit(texts, labels)
    assert by_phones.predict(["flower"]).tolist() == ["bread"]


def test_labels_may_be_numbers() -> None:
    model = RelevanceClassifier().fit(GUIDE_TEXTS, [7, 3, 7, 11], {7: "at nine"})
    assert model.classes_.tolist() == [3, 7, 11]
    assert model.predict(["when do you open"]).tolist() == [7]
    assert model.answers_ == {3: "", 7: "at nine", 11: ""}


def test_one_label_is_certain() -> None:
    model = RelevanceClassifier().fit(["when", "who"], ["a", "a"])
    assert model.predict_proba(["when", "zebra"]).tolist() == [[1.0], [1.0]]


@each_scoring
def test_a_label_with_one_example_and_one_pair_alone_are_learnt(scoring: relevance.Scoring) -> None:
    model = RelevanceClassifier(scoring=scoring).fit(["when do you open"], ["hours"])
    assert model.predict(["open"]).tolist() == ["hours"]
    assert np.isfinite(model.decision_function(["open", ""])).all()


def test_duplicate_pairs_weigh_as_often_as_they_stand() -> None:
    model = RelevanceClassifier().fit(["when", "when", "when"], ["a", "b", "b"])
    assert model.predict_proba(["when"]) == pytest.approx(np.array([[1 / 3, 2 / 3]]))


def test_texts_without_words_can_be_learnt_from_and_say_nothing() -> None:
    model = RelevanceClassifier().fit(["", "?"], ["a", "b"])
    assert model.predict_proba(["", "when"]).tolist() == [[0.5, 0.5]] * 2
    assert model.left_out().tolist() == [[0.5, 0.5]] * 2
    assert not model.known(["when"]).any()


def test_answers_without_questions_are_left_out() -> None:
    model = RelevanceClassifier().fit(["when"], ["a"], {"a": "at nine", "nobody asked": "indeed"})
    assert model.answers_ == {"a": "at nine"}


@pytest.mark.parametrize(
    ("texts", "labels", "fault", "words"),
    [
        ("when do you open", ["a"], UsageError, "texts are a sequence of strings; got one string"),
        (["when"], "a", UsageError, "labels are a sequence, one for each text; got one string"),
        (["when", None], ["a", "b"], DataError, 'text 2 must be text; got "None"'),
        ([b"when"], ["a"], DataError, "text 1 must be text; got \"b'when'\""),
        ([["when"]], ["a"], DataError, "text 1 must be text"),
        (["when"], ["a", "b"], DataError, "there are 1 texts and 2 labels"),
        ([], [], DataError, "there is nothing to learn from"),
        (["when", "who"], ["a", None], DataError, 'label 2 must be text or a number; got "None"'),
        (["when", "who"], [1.0, math.nan], DataError, 'label 2 must be text or a number; got "nan"'),
        (["when"], [["a", "b"]], DataError, "label 1 must be text or a number"),
        (["when", "who"], ["a", 1], DataError, "labels must be all text or all numbers"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(texts: Any, labels: Any, fault: type[DemurError], words: str) -> None:
    with pytest.raises(fault, match=f"^{words}"):
        RelevanceClassifier().fit(texts, labels)


def test_answers_that_are_no_text_are_refused() -> None:
    with pytest.raises(DataError, match=r'^the answer "a" must be text; got "3"'):
        RelevanceClassifier().fit(["when"], ["a"], {"a": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"question_weight": 0.0}, "question_weight is a number above 0 and below 1; got 0.0"),
        ({"question_weight": 1.0}, "question_weight is a number above 0 and below 1; got 1.0"),
        ({"answer_weight": -0.1}, "answer_weight is a number above 0 and below 1; got -0.1"),
        ({"answer_weight": math.nan}, "answer_weight is a number above 0 and below 1; got nan"),
        ({"sharpness": 0}, "sharpness is a number above 0 and at most 1,000,000; got 0"),
        ({"sharpness": math.inf}, "sharpness is a number above 0 and at most 1,000,000; got inf"),
        ({"scoring": "loud"}, 'scoring is one of posterior, kl, cross-entropy; got "loud"'),
        ({"tokens": "letters"}, 'tokens are words, .*; "letters" has "letters"'),
    ],
)
def test_parameters_that_make_no_model_are_refused_when_it_learns(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{words}"):
        RelevanceClassifier(**parameters).fit(["when"], ["a"])


def test_one_string_is_no_sequence_of_texts_to_answer(guide: RelevanceClassifier) -> None:
    for ask in (guide.predict, guide.predict_proba, guide.decision_function, guide.known):
        with pytest.raises(UsageError, match="got one string"):
            ask("when")


def test_the_score_is_the_share_of_right_answers(guide: RelevanceClassifier) -> None:
    assert guide.score(GUIDE_TEXTS, ["hours", "builder", "hours", "hours"]) == 0.75
    assert guide.score(GUIDE_TEXTS[:2], ["hours", "sailor"], sample_weight=[3, 1]) == 0.75
    with pytest.raises(DataError, match="there are 2 texts and 1 labels"):
        guide.score(GUIDE_TEXTS[:2], ["hours"])


def test_parameters_are_shown_where_they_are_not_the_usual_ones() -> None:
    model = RelevanceClassifier(tokens="mixed", threshold=0.4)
    assert repr(model) == "RelevanceClassifier(tokens='mixed', threshold=0.4)"
    assert repr(model.set_params(threshold=None, tokens="words")) == "RelevanceClassifier()"


def test_an_unknown_parameter_is_named() -> None:
    with pytest.raises(ValueError, match="invalid parameter 'loudness'; there are tokens, "):
        RelevanceClassifier().set_params(loudness=1)


def test_without_scikit_learn_it_works_and_says_that_it_has_learnt_nothing() -> None:
    code = """
import sys
sys.modules["sklearn"] = None
from demur.errors import UsageError
from demur.understanding.relevance import RelevanceClassifier
model = RelevanceClassifier()
try:
    model.predict(["when"])
except UsageError as fault:
    print(fault)
print(model.fit(["when", "who"], ["a", "b"]).predict(["who"]).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "this RelevanceClassifier has learnt nothing yet; call fit first",
        "['b']",
    ]
