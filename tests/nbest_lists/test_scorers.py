import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.networks import Sentence
from demur.nbest_lists.asr.scorers import NAMES, SCORERS, score_sentences, scored_all, weights

HEARD = [
    Sentence(("thai", "food"), math.log(0.4), (0.9, 0.7)),
    Sentence(("tie", "food"), math.log(0.3), (0.1, 0.7)),
    Sentence(("thai",), math.log(0.2), (0.9,)),
    Sentence((), math.log(0.1), ()),
]

SENTENCES = st.lists(
    st.builds(
        lambda word, logprob, sure: Sentence((word,), logprob, (sure,)),
        st.sampled_from("abcd"),
        st.floats(-50, 0),
        st.floats(0.01, 1),
    ),
    max_size=8,
)


def parse(text):
    return "inform(food=thai)" if "thai" in text else ""


def test_const_counts_all_sentences_alike():
    assert weights("const", HEARD).tolist() == [0.25] * 4


def test_avgword_goes_by_the_mean_confidence_of_the_words():
    assert weights("avgword", HEARD) == pytest.approx([0.8 / 2.1, 0.4 / 2.1, 0.9 / 2.1, 0.0])


def test_infev_goes_by_the_probability_of_the_path():
    assert weights("infev", HEARD) == pytest.approx([0.4, 0.3, 0.2, 0.1])


def test_a_scale_multiplies_log_posteriors():
    """Squared: .16, .09, .04 and .01 of .3; halved: the square roots of .4, .3, .2 and .1."""
    assert weights("infev", HEARD, scale=2.0) == pytest.approx([16 / 30, 9 / 30, 4 / 30, 1 / 30])
    roots = [math.sqrt(p) for p in (0.4, 0.3, 0.2, 0.1)]
    assert weights("infev", HEARD, scale=0.5) == pytest.approx([root / sum(roots) for root in roots])
    sure = [Sentence(("a", "b"), -1.0, (0.5, 1.0)), Sentence(("c",), -1.0, (0.5,))]
    assert weights("avgword", sure, scale=2.0) == pytest.approx([0.625 / 0.875, 0.25 / 0.875])
    assert weights("const", HEARD, scale=2.0) == pytest.approx([0.25] * 4)


def test_infev_is_not_troubled_by_tiny_probabilities():
    tiny = [Sentence(("a",), -5000.0), Sentence(("b",), -5000.0 - math.log(3)), Sentence(("c",), -math.inf)]
    assert weights("infev", tiny) == pytest.approx([0.75, 0.25, 0.0])


@pytest.mark.parametrize(
    ("scorer", "truth"),
    [
        ("const", [("inform(food=thai)", 0.5), ("", 0.5)]),
        ("avgword", [("inform(food=thai)", 1.7 / 2.1), ("", 0.4 / 2.1)]),
        ("infev", [("inform(food=thai)", 0.6), ("", 0.4)]),
        ("const-tp1", [("inform(food=thai)", 1.0), ("", 0.0)]),
        ("avgword-tp1", [("inform(food=thai)", 1.0), ("", 0.0)]),
        ("infev-tp1", [("inform(food=thai)", 1.0), ("", 0.0)]),
    ],
)
def test_sentences_of_the_same_act_add_up(scorer, truth):
    acts = score_sentences(HEARD, scorer=scorer, parse=parse)
    assert [act for act, _ in acts] == [act for act, _ in truth]
    assert [confidence for _, confidence in acts] == pytest.approx([confidence for _, confidence in truth])


def test_const_tp1_takes_the_act_of_most_sentences():
    heard = [Sentence((word,), -1.0) for word in ("tie", "thai", "thais")]
    assert score_sentences(heard, scorer="const-tp1", parse=parse) == [("inform(food=thai)", 1.0), ("", 0.0)]


def test_acts_are_equal_in_any_order():
    texts = [
        "inform(food=thai, area=north)&bye()",
        "bye()&inform(area=north, food=thai)",
        "inform(area=north)&bye&inform(food=thai)",
    ]
    heard = [Sentence((str(place),), -1.0) for place in range(3)]
    ((act, confidence),) = score_sentences(heard, scorer="const", parse=lambda text: texts[int(text)])
    assert (act, confidence) == (texts[0], pytest.approx(1.0))


def test_acts_that_share_items_but_not_acts_differ():
    texts = ["inform(food=thai)", "confirm(food=thai)", "inform(food!=thai)"]
    heard = [Sentence((str(place),), -1.0) for place in range(3)]
    assert len(score_sentences(heard, scorer="const", parse=lambda text: texts[int(text)])) == 3


def test_only_the_first_n_sentences_are_taken():
    assert score_sentences(HEARD, scorer="infev", parse=parse, n=2) == [
        ("inform(food=thai)", pytest.approx(4 / 7)),
        ("", pytest.approx(3 / 7)),
    ]


@given(SENTENCES, st.sampled_from(NAMES))
def test_confidences_sum_to_one_and_come_best_first(sentences, scorer):
    acts = score_sentences(sentences, scorer=scorer, parse=lambda text: f"say({text})")
    confidences = [confidence for _, confidence in acts]
    assert confidences == sorted(confidences, reverse=True)
    assert math.fsum(confidences) == pytest.approx(1 if sentences else 0)
    assert len({act for act, _ in acts}) == len(acts)


@given(st.lists(SENTENCES, max_size=5), st.sampled_from(NAMES))
def test_many_utterances_are_scored_as_each_is_alone(lists, scorer):
    def say(text):
        return f"say({text})"

    alone = [score_sentences(sentences, scorer=scorer, parse=say) for sentences in lists]
    assert scored_all(lists, scorer=scorer, parse=say) == alone


def test_a_sentence_of_several_utterances_is_parsed_once():
    seen = []

    def count(text):
        seen.append(text)
        return ""

    scored_all([HEARD, HEARD[:2]], scorer="infev", parse=count)
    assert seen == ["thai food", "tie food", "thai", ""]


@pytest.mark.parametrize("scorer", NAMES)
def test_where_nothing_was_heard_there_are_no_acts(scorer):
    assert score_sentences([], scorer=scorer, parse=parse) == []
    assert weights(scorer, []).size == 0


def test_where_no_word_was_heard_all_sentences_count_alike():
    assert weights("avgword", [Sentence((), -1.0), Sentence((), -2.0)]).tolist() == [0.5, 0.5]


def test_avgword_needs_confidences_of_words():
    with pytest.raises(
        DataError, match=r'd1/0: sentence "thai": avgword needs the confidence.*`words` with conf.*cnet'
    ):
        score_sentences([Sentence(("thai",), -1.0)], scorer="avgword", parse=parse, where="d1/0")


@pytest.mark.parametrize("odd", [math.nan, -0.5, 1.5])
def test_avgword_refuses_confidences_that_are_none(odd):
    with pytest.raises(DataError, match="between 0 and 1"):
        weights("avgword", [Sentence(("thai",), -1.0, (odd,))])


def test_infev_needs_logprobs():
    with pytest.raises(DataError, match=r'sentence "thai": infev needs a logprob \(give a natural-log `logprob`'):
        weights("infev", [Sentence(("thai",))])
    with pytest.raises(DataError, match='infev needs a logprob; got "inf"'):
        weights("infev", [Sentence(("thai",), math.inf)])


def test_infev_needs_a_sentence_that_is_possible():
    with pytest.raises(DataError, match="d1/0 must have a sentence that is possible"):
        weights("infev", [Sentence(("thai",), -math.inf)], where="d1/0")


def test_an_answer_that_is_no_act_is_blamed_on_the_parser():
    with pytest.raises(DataError, match="d1/0: the parser's answer must be acts: the act does not parse at character"):
        score_sentences(HEARD, scorer="const", parse=lambda _: "inform(", where="d1/0")


def test_a_scorer_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r'no scorer "infv".*did you mean "infev"'):
        weights("infv", HEARD)


def test_a_list_of_no_sentences_cannot_be_asked_for():
    with pytest.raises(UsageError, match="at least one sentence; asked for 0"):
        score_sentences(HEARD, scorer="const", parse=parse, n=0)


def test_every_scorer_has_its_top_one():
    assert set(NAMES) == {f"{name}{ending}" for name in SCORERS for ending in ("", "-tp1")}


@given(sentences=SENTENCES.filter(bool), scorer=st.sampled_from(sorted(SCORERS)))
def test_what_all_sentences_say_has_a_confidence_of_exactly_1(sentences, scorer):
    assert score_sentences(sentences, scorer=scorer, parse=lambda _: "bye()") == [("bye()", 1.0)]
