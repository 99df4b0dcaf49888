import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.networks import Network, nbest, paths
from reference.networks import every_path, sentences

WORDS = ["", "a", "b", "c"]


@st.composite
def networks(draw, max_slots=5, words=WORDS):
    """Small networks in which words recur, so that sentences have many paths; a few arcs have probability zero."""
    slots = []
    for _ in range(draw(st.integers(0, max_slots))):
        here = draw(st.lists(st.sampled_from(words), min_size=1, max_size=len(words), unique=True))
        weight = [draw(st.integers(0, 9)) for _ in here]
        weight[draw(st.integers(0, len(here) - 1))] += 1
        slots.append(tuple((word, w / sum(weight)) for word, w in zip(here, weight, strict=True)))
    return Network(tuple(slots))


@given(networks())
def test_paths_are_those_of_the_product_each_once_and_best_first(network):
    found = list(paths(network))
    truth = every_path(network)
    assert [math.exp(path.logprob) for path in found] == pytest.approx([p for _, p in truth])
    assert sorted(path.words for path in found) == sorted(words for words, _ in truth)


@given(networks())
def test_a_path_tells_the_probabilities_along_it(network):
    for path in paths(network):
        chosen = [dict(slot)[word] for slot, word in zip(network.slots, path.words, strict=True)]
        assert list(path.probabilities) == chosen
        assert math.exp(path.logprob) == pytest.approx(math.prod(chosen))


@given(networks(), st.integers(1, 12))
def test_nbest_are_the_sentences_of_the_best_paths_with_their_whole_probability(network, n):
    found = nbest(network, n)
    truth = sentences(network)
    assert len({sentence.words for sentence in found}) == len(found) == min(n, len(truth))
    for sentence in found:
        assert math.exp(sentence.logprob) == pytest.approx(truth[sentence.words][1])
    best = sorted((truth[sentence.words][0] for sentence in found), reverse=True)
    assert best == pytest.approx(sorted((p for p, _ in truth.values()), reverse=True)[:n])


@given(networks(max_slots=7, words=["", "a"]))
def test_a_sentence_of_very_many_paths_has_the_sum_of_all(network):
    truth = sentences(network)
    assert {s.words: math.exp(s.logprob) for s in nbest(network, 99)} == pytest.approx(
        {words: whole for words, (_, whole) in truth.items()}
    )


@given(networks(), st.integers(1, 12))
def test_nbest_are_ordered_by_their_whole_probability(network, n):
    logprobs = [sentence.logprob for sentence in nbest(network, n)]
    assert logprobs == sorted(logprobs, reverse=True)


@given(networks())
def test_all_sentences_together_have_the_probability_of_the_network(network):
    mass = math.prod(math.fsum(p for _, p in slot) for slot in network.slots)
    assert math.fsum(math.exp(sentence.logprob) for sentence in nbest(network, 2000)) == pytest.approx(mass)


@given(networks(), st.integers(1, 12))
def test_confidences_are_those_along_the_best_path(network, n):
    truth = sentences(network)
    for sentence in nbest(network, n):
        assert len(sentence.confidences) == len(sentence.words)
        options = [
            tuple(dict(slot)[word] for slot, word in zip(network.slots, words, strict=True) if word)
            for words, p in every_path(network)
            if tuple(filter(None, words)) == sentence.words and p == pytest.approx(truth[sentence.words][0])
        ]
        assert sentence.confidences in options


@given(networks(), st.integers(1, 12))
def test_the_same_network_gives_the_same_list(network, n):
    assert nbest(network, n) == nbest(network, n)


def test_equal_probabilities_come_in_one_order():
    network = Network(((("a", 0.5), ("b", 0.5)), (("c", 0.5), ("d", 0.5))))
    assert [sentence.text for sentence in nbest(network, 4)] == ["a c", "b c", "a d", "b d"]


def test_a_word_through_two_empty_slots_is_one_sentence():
    network = Network(((("a", 0.6), ("", 0.4)), (("a", 0.3), ("", 0.7))))
    (a, none, both) = nbest(network, 3)
    assert a.words == ("a",)
    assert math.exp(a.logprob) == pytest.approx(0.6 * 0.7 + 0.4 * 0.3)
    assert a.confidences == (0.6,)
    assert (none.words, both.words) == ((), ("a", "a"))


def test_words_shifted_along_the_network_are_one_sentence():
    either = (("a", 0.5), ("", 0.5))
    network = Network((either, (("a", 1.0),), either))
    truth = {("a",): 0.25, ("a", "a"): 0.5, ("a", "a", "a"): 0.25}
    assert {s.words: math.exp(s.logprob) for s in nbest(network, 9)} == pytest.approx(truth)


def test_paths_of_a_large_network_come_without_walking_all_of_it():
    slot = tuple((f"w{k}", 2.0 ** -(k + 1)) for k in range(10))
    found = list(islice(paths(Network((slot,) * 200)), 50))
    assert found[0].words == ("w0",) * 200
    assert [path.logprob for path in found] == sorted((path.logprob for path in found), reverse=True)


def test_a_network_of_tiny_probabilities_does_not_vanish():
    slot = (("a", 1e-200), ("", 1e-200))
    sentences = nbest(Network((slot,) * 3), 4)
    over_the_best = {len(s.words): math.exp(s.logprob - 3 * math.log(1e-200)) for s in sentences}
    assert over_the_best == pytest.approx({0: 1, 1: 3, 2: 3, 3: 1})


def test_an_empty_network_says_nothing_for_certain():
    (nothing,) = nbest(Network(()), 5)
    assert (nothing.words, nothing.logprob, nothing.confidences) == ((), 0.0, ())


def test_a_list_of_no_sentences_cannot_be_asked_for():
    with pytest.raises(UsageError, match="at least one sentence; asked for 0"):
        nbest(Network(()), 0)


@pytest.mark.parametrize(
    ("slot", "rule"), [((), "positive"), ((("a", 0.0),), "positive"), ((("a", 0.5), ("a", 0.5)), "word twice")]
)
def test_a_slot_that_is_no_choice_is_refused(slot, rule):
    with pytest.raises(DataError, match=f"slot 1 must .*{rule}"):
        Network((slot,))


def test_a_slot_that_is_surely_silent_counts_with_its_probability():
    network = Network(((("a", 0.5),), (("", 0.25),), (("b", 0.5), ("", 0.5))))
    assert {s.text: math.exp(s.logprob) for s in nbest(network, 5)} == pytest.approx({"a b": 0.0625, "a": 0.0625})
