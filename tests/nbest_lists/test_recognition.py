import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.nbest_lists.asr.networks import EMPTY_WORDS, network_of, sentences_of


def test_a_sentence_has_words_logprob_and_confidences():
    words = [{"word": "thai", "confidence": 0.9}, {"word": "food", "confidence": 0.8}]
    (one,) = sentences_of([{"text": "thai food", "logprob": -0.3, "words": words}], "d1/0")
    assert (one.words, one.logprob, one.confidences, one.text) == (("thai", "food"), -0.3, (0.9, 0.8), "thai food")


def test_a_sentence_may_be_bare_text_or_bare_words():
    bare, words = sentences_of(["thai food", {"words": [{"word": "<s>"}, {"word": "thai"}, "food"]}], "d1/0")
    assert bare.words == words.words == ("thai", "food")
    assert math.isnan(bare.logprob)
    assert bare.confidences is None
    assert words.confidences is None


def test_a_score_is_a_logprob_and_null_is_none():
    scored, unknown = sentences_of([{"text": "a", "score": -2}, {"text": "a", "logprob": None}], "d1/0")
    assert scored.logprob == -2.0
    assert math.isnan(unknown.logprob)


def test_silence_is_a_sentence_without_words():
    (nothing,) = sentences_of([{"text": "", "logprob": -1.0}], "d1/0")
    assert nothing.words == ()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("thai", 'd1/0: asr must be a list of sentences; got "thai"'),
        ([{"logprob": -1}], "d1/0: asr sentence 1 must have a text"),
        ([{"text": 3}], "d1/0: asr sentence 1: text must be text"),
        (["a", {"text": "a", "logprob": "x"}], 'd1/0: asr sentence 2: logprob must be a number; got "x"'),
        ([{"text": "a", "logprob": math.nan}], 'asr sentence 1: logprob must be a number; got "nan"'),
        ([{"text": "a", "logprob": 0.5}], r"logprob must be a natural logarithm, at most 0; got 0.5 \(write a prob"),
        ([{"text": "a", "words": "a"}], "asr sentence 1: words must be a list"),
        ([{"text": "a", "words": [{"confidence": 1}]}], "asr sentence 1: word 1 must have a word"),
        ([{"words": [{"word": "a", "confidence": 90}]}], r"word 1: confidence must lie between 0 and 1; got 90.*100"),
        ([{"words": [{"word": "a", "confidence": -1}]}], r"between 0 and 1; got -1.0 \(write a natural logarithm"),
        ([{"words": [{"word": "a", "confidence": 1}, "b"]}], "words must have a confidence for every word or for none"),
        ([{"text": "a b", "words": ["a", "c"]}], 'must have the same words in `text` and `words`; got "a b / a c"'),
    ],
)
def test_a_sentence_that_cannot_be_read_is_named(value, fault):
    with pytest.raises(DataError, match=fault):
        sentences_of(value, "d1/0")


@pytest.mark.parametrize(
    "arc",
    [
        ["thai", math.log(0.5)],
        ("thai", math.log(0.5)),
        {"word": "thai", "confidence": 0.5},
        {"word": "thai", "probability": 0.5},
        {"word": "thai", "score": math.log(0.5)},
        {"word": "thai", "logprob": math.log(0.5)},
    ],
)
def test_arcs_are_read_however_they_are_written(arc):
    other = ["tie", math.log(0.25)]
    assert dict(network_of([[arc, other]], "d1/0").slots[0]) == pytest.approx({"thai": 0.5, "tie": 0.25})
    assert network_of([{"arcs": [arc, other]}], "d1/0") == network_of([[arc, other]], "d1/0")


@pytest.mark.parametrize("word", sorted(EMPTY_WORDS))
def test_every_way_to_write_no_word_is_the_empty_word(word):
    assert network_of([[[word, 0.0]]], "d1/0").slots == ((("", 1.0),),)


def test_arcs_of_one_word_add_up():
    arcs = [{"word": "<eps>", "confidence": 0.25}, {"word": "!null", "confidence": 0.5}]
    assert network_of([arcs], "d1/0").slots == ((("", 0.75),),)


def test_a_slot_that_sums_to_less_than_one_stays():
    assert network_of([[{"word": "a", "confidence": 0.5}]], "d1/0").slots == ((("a", 0.5),),)


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=6), st.floats(1, 1.0009))
def test_a_little_over_one_is_scaled_to_one(weights, mass):
    arcs = [{"word": f"w{k}", "confidence": w / sum(weights) * mass} for k, w in enumerate(weights)]
    assert math.fsum(p for _, p in network_of([arcs], "d1/0").slots[0]) == pytest.approx(1)


def test_much_over_one_is_scaled_only_when_asked():
    arcs = [{"word": "a", "confidence": 0.9}, {"word": "b", "confidence": 0.3}]
    with pytest.raises(DataError, match=r"d1/0: cnet slot 2 must sum to at most 1; got 1.2 \(normalise"):
        network_of([[["x", 0.0]], arcs], "d1/0")
    assert dict(network_of([arcs], "d1/0", normalise=True).slots[0]) == pytest.approx({"a": 0.75, "b": 0.25})


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"slots": []}, "d1/0: cnet must be a list of slots"),
        ([[["a", 0.0]], []], r"d1/0: cnet slot 2 must have an arc of positive probability \(a slot in which nothing"),
        ([[["a", -math.inf]]], "d1/0: cnet slot 1 must have an arc of positive probability"),
        ([[{"word": "a", "confidence": 0}]], "cnet slot 1 must have an arc of positive probability"),
        ([3], "cnet slot 1 must be a list of arcs"),
        ([["thai"]], 'cnet slot 1, arc 1 must be a word with its score; got "thai"'),
        ([[["a", math.nan]]], "cnet slot 1, arc 1: logprob must be a number"),
        ([[["a", 0.9]]], r"cnet slot 1, arc 1: logprob must be a natural logarithm.*write a probability"),
        ([[["b", 0.0], {"word": "a", "confidence": -0.1}]], "cnet slot 1, arc 2: confidence must lie between 0 and 1"),
        ([[{"word": "a"}]], "cnet slot 1, arc 1 must have a confidence or a logprob"),
        ([[{"word": None, "confidence": 1}]], "cnet slot 1, arc 1: word must be text"),
        ([[["a", True]]], "logprob must be a number"),
    ],
)
def test_a_network_that_cannot_be_read_is_named_by_slot_and_arc(value, fault):
    with pytest.raises(DataError, match=fault):
        network_of(value, "d1/0")
