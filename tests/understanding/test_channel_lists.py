import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.lab.corpora import museum
from demur.nbest_lists.asr.networks import Network, network_of, sentences_of
from demur.understanding.noise import WordChannel, networks, posterior, rows, sentences, slot

WEIGHTS = st.dictionaries(st.sampled_from(["", "a", "b", "c", "d", "e", "f", "g"]), st.floats(1e-6, 10))


@cache
def listed(wer):
    questions = museum().questions.head(150)
    heard = WordChannel(questions["input"].to_list(), wer=wer).recognise(questions["input"], questions["id"])
    return heard, networks(heard)


def sure_and_right(wer):
    """The posterior of every word heard, and whether it was said."""
    heard, found = listed(wer)
    sure = [arcs[0][1] for network in found for arcs in network.slots if arcs[0][0]]
    right = [said == got for pairs in heard.pairs for said, got in pairs if got]
    return np.array(sure), np.array(right)


@pytest.mark.parametrize("wer", [0.0, 0.5, 1.0])
def test_the_best_sentence_is_what_was_heard(wer):
    heard, found = listed(wer)
    lists = [sentences(network, 5) for network in found]
    assert [one[0].text for one in lists] == heard.texts
    assert all(one[0].logprob > other.logprob for one in lists for other in one[1:])


@pytest.mark.parametrize("wer", [0.5, 1.0])
def test_probabilities_sum_to_at_most_one(wer):
    _, found = listed(wer)
    assert all(math.fsum(share for _, share in arcs) <= 1 + 1e-9 for network in found for arcs in network.slots)
    assert all(math.fsum(math.exp(one.logprob) for one in sentences(network, 20)) <= 1 + 1e-9 for network in found)


def test_sentences_are_listed_once_and_likeliest_first():
    for network in listed(0.5)[1]:
        found = sentences(network, 10)
        assert len({one.words for one in found}) == len(found)
        assert [one.logprob for one in found] == sorted((one.logprob for one in found), reverse=True)


@pytest.mark.parametrize("wer", [0.05, 0.2, 0.5, 0.8])
def test_posteriors_of_words_are_calibrated(wer):
    sure, right = sure_and_right(wer)
    assert sure.mean() == pytest.approx(right.mean(), abs=0.03)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (sure >= low) & (sure < low + 0.25 + 1e-9)
        if inside.sum() >= 100:
            assert sure[inside].mean() == pytest.approx(right[inside].mean(), abs=0.1)


@pytest.mark.parametrize("wer", [0.05, 0.5, 0.8])
def test_right_words_have_higher_posteriors(wer):
    sure, right = sure_and_right(wer)
    assert sure[right].mean() > sure[~right].mean() + 0.2


def test_without_noise_everything_is_sure():
    sure, right = sure_and_right(0.0)
    assert right.all()
    assert (sure == 1).all()


def test_what_was_said_is_often_further_down_the_network():
    heard, found = listed(0.5)
    wrong = missing = 0
    for pairs, network in zip(heard.pairs, found, strict=True):
        places = iter([dict(arcs) for arcs in network.slots if arcs[0][0]])
        for said, got in pairs:
            if got:
                place = next(places)
                wrong += bool(said) and said != got
                missing += bool(said) and said not in place
    assert wrong > 150
    assert missing < 0.2 * wrong


def test_lists_do_not_depend_on_the_other_utterances():
    questions = museum().questions.head(20)
    channel = WordChannel(wer=0.5).at(0.5)
    whole = rows(channel.recognise(questions["input"], questions["id"]))
    alone = rows(channel.recognise(questions["input"][3:4], questions["id"][3:4]))
    assert alone == whole[3:4]


def test_rows_read_back_as_what_was_heard():
    heard, found = listed(0.5)
    for row, network, text, said in zip(rows(heard, 4), found, heard.texts, heard.said, strict=True):
        assert network_of(row["cnet"], row["id"]) == network
        assert sentences_of(row["asr"], row["id"])[0].text == text
        assert row["text"] == said
        assert len(row["asr"]) <= 4


def test_an_utterance_without_words_has_one_empty_sentence():
    heard = WordChannel(wer=0.5).at(0.5).recognise(["", "?"])
    assert [row["asr"] for row in rows(heard)] == [[{"text": "", "logprob": 0.0, "words": []}]] * 2


@given(st.sampled_from(["a", "b", ""]), st.integers(500, 10_000), WEIGHTS)
def test_a_slot_has_its_best_word_first_and_no_more_than_all_mass(best, sure, rivals):
    found = slot(best, sure / 10_000, rivals)
    assert found[0] == (best, sure / 10_000)
    assert all(0 < share < sure / 10_000 for _, share in found[1:])
    assert math.fsum(share for _, share in found) <= 1 + 1e-9
    assert Network((found,))


def test_a_slot_by_hand():
    assert slot("a", 0.5, {"b": 3, "c": 1, "a": 9}) == (("a", 0.5), ("b", 0.375), ("c", 0.125))
    assert slot("a", 0.2, {"b": 3, "c": 1}) == (("a", 0.2), ("b", 0.1999), ("c", 0.1999))


def test_posteriors_are_spread_evenly_at_even_odds():
    rng = np.random.default_rng(0)
    right = [posterior(True, 0.5, rng) for _ in range(2000)]
    wrong = [posterior(False, 0.5, rng) for _ in range(2000)]
    assert np.mean(right) == pytest.approx(2 / 3, abs=0.02)
    assert np.mean(wrong) == pytest.approx(1 / 3, abs=0.02)


def test_a_list_of_no_sentences_is_refused():
    with pytest.raises(UsageError, match="at least one sentence; asked for 0"):
        sentences(Network(((("a", 1.0),),)), 0)
