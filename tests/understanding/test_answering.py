import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.understanding.relevance import (
    OFF_TOPIC,
    SCORINGS,
    STRATEGIES,
    Conversation,
    RelevanceClassifier,
    Scoring,
    Strategy,
    answered,
)

TEXTS = ["when do you open", "who built the ship", "who sailed the ship", "where is the cafe"]
LABELS = ["hours", "builder", "sailor", "cafe"]
ANSWERS = {"hours": "We open at nine.", "builder": "A man of Bath built it.", "sailor": "Nobody knows."}
QUESTIONS = st.lists(st.sampled_from([*" ".join(TEXTS).split(), "zebra"]), max_size=6).map(" ".join)


def guide(threshold: float | None = None, scoring: Scoring = "posterior") -> RelevanceClassifier:
    return RelevanceClassifier(threshold=threshold, scoring=scoring).fit(TEXTS, LABELS, ANSWERS)


def test_the_best_answer_is_returned_with_its_text_and_confidence() -> None:
    model = guide()
    (answer,) = answered(model, ["when do you open"])
    assert (answer.label, answer.text, answer.returned, answer.why) == ("hours", "We open at nine.", True, None)
    assert answer.confidence == pytest.approx(model.predict_proba(["when do you open"]).max())
    assert answer.nbest[0] == ("hours", answer.confidence)


def test_an_answer_without_text_has_an_empty_one_and_without_any_texts_none() -> None:
    assert answered(guide(), ["where is the cafe"])[0].text == ""
    assert answered(RelevanceClassifier().fit(TEXTS, LABELS), ["where is the cafe"])[0].text is None


def test_an_answer_at_the_threshold_is_returned_and_just_below_withheld() -> None:
    (answer,) = answered(guide(), ["who built it"])
    assert answered(guide(answer.confidence), ["who built it"])[0].returned
    (withheld,) = answered(guide(math.nextafter(answer.confidence, 1)), ["who built it"])
    assert not withheld.returned
    assert (withheld.label, withheld.confidence) == (answer.label, answer.confidence)


def test_a_confidence_just_below_the_threshold_is_written_so_that_it_reads_as_below() -> None:
    (sure,) = answered(guide(), ["when do you open"])
    limit = math.nextafter(sure.confidence, math.inf)
    (answer,) = answered(guide(limit), ["when do you open"])
    assert answer.why == f"its confidence {sure.confidence!r} is below the threshold {limit!r}"


def test_a_withheld_answer_says_by_how_much_it_fell_short() -> None:
    (answer,) = answered(guide(0.999), ["the"])
    assert answer.why == f"its confidence {answer.confidence:.3g} is below the threshold 0.999"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("zebra quartz", "none of its words was ever seen in training"),
        ("", "there are no words in it"),
        (" \t", "there are no words in it"),
        ("?!", "there are no words in it"),
    ],
)
@pytest.mark.parametrize("threshold", [None, 0.0])
def test_where_nothing_is_known_the_answer_is_withheld_whatever_the_threshold(
    text: str, why: str, threshold: float | None
) -> None:
    (answer,) = answered(guide(threshold), [text])
    assert (answer.label, answer.returned, answer.text, answer.nbest, answer.why) == (None, False, None, (), why)
    assert math.isnan(answer.confidence)


@given(st.lists(QUESTIONS, max_size=4), st.integers(1, 6), st.sampled_from(SCORINGS))
def test_lists_are_sorted_and_share_at_most_all(texts: list[str], nbest: int, scoring: Scoring) -> None:
    model = guide(scoring=scoring)
    for answer in answered(model, texts, nbest=nbest):
        shares = [share for _, share in answer.nbest]
        assert sum(shares) <= 1 + 1e-12
        assert all(better >= worse for better, worse in pairwise(shares))
        assert len({label for label, _ in answer.nbest}) == len(shares)
        assert len(shares) == (min(nbest, 4) if answer.label else 0)


def test_a_divergence_is_compared_with_the_threshold_as_it_is() -> None:
    (answer,) = answered(guide(-10.0, "kl"), ["who built the ship"])
    assert answer.returned
    assert -10 < answer.confidence <= 0
    assert not answered(guide(0.0, "kl"), ["who built the ship"])[0].returned


def test_many_texts_get_what_each_gets_alone() -> None:
    texts = ["who built it", "zebra", "open the cafe"]
    together = answered(guide(0.3), texts)
    alone = [answered(guide(0.3), [text])[0] for text in texts]
    assert [(one.label, one.returned, one.nbest) for one in together] == [
        (one.label, one.returned, one.nbest) for one in alone
    ]
    assert answered(guide(), []) == []


def test_labels_are_plain_values() -> None:
    model = RelevanceClassifier().fit(TEXTS, [1, 2, 3, 4], {1: "We open at nine."})
    (answer,) = answered(model, ["when do you open"])
    assert (answer.label, answer.text) == (1, "We open at nine.")
    assert {type(label) for label, _ in answer.nbest} == {int}


def test_one_string_is_refused() -> None:
    with pytest.raises(UsageError, match="got one string"):
        answered(guide(), "who built it")


def test_a_conversation_says_the_answer_or_its_name() -> None:
    talk = Conversation(guide())
    assert talk.turn("when do you open")[1:] == ("We open at nine.", None)
    assert talk.turn("where is the cafe")[1:] == ("cafe", None)


def test_misunderstandings_in_a_row_are_met_by_one_strategy_after_another() -> None:
    talk = Conversation(guide())
    assert [talk.turn("zebra")[2] for _ in range(5)] == [*STRATEGIES, "change topic", "change topic"]
    assert STRATEGIES == ("clarify", "stall", "change topic")


def test_a_returned_answer_begins_anew_with_the_next_line_of_the_first_strategy() -> None:
    talk = Conversation(guide())
    assert talk.turn("zebra")[1:] == (OFF_TOPIC["clarify"][0], "clarify")
    assert talk.turn("")[1:] == (OFF_TOPIC["stall"][0], "stall")
    assert talk.turn("when do you open")[2] is None
    assert talk.turn("zebra")[1:] == (OFF_TOPIC["clarify"][1], "clarify")
    assert talk.turn("zebra")[1:] == (OFF_TOPIC["stall"][1], "stall")


def test_lines_of_a_strategy_come_round_again() -> None:
    lines: dict[Strategy, list[str]] = {"clarify": ["What?"], "stall": ["Hm."], "change topic": ["Ships!", "Tea!"]}
    talk = Conversation(guide(), lines)
    assert [talk.turn("zebra")[1] for _ in range(5)] == ["What?", "Hm.", "Ships!", "Tea!", "Ships!"]


def test_two_conversations_do_not_share_their_turns() -> None:
    one, other = Conversation(guide()), Conversation(guide())
    one.turn("zebra")
    assert other.turn("zebra")[2] == "clarify"


@pytest.mark.parametrize("threshold", [float("nan"), "high"])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    model = RelevanceClassifier().fit(["when open", "who built"], ["hours", "builder"])
    model.set_params(threshold=threshold)
    with pytest.raises(UsageError, match="a threshold is a number, or none"):
        answered(model, ["open"])
