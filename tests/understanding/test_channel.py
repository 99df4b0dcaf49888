import gzip
import json
import math
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.lab.corpora import museum
from demur.understanding.noise import WordChannel, phone_distance, word_errors, words_of
from demur.understanding.tokens import words

CLINC = Path(__file__).parents[3] / "shared" / "data" / "clinc150" / "clinc150_full.jsonl.gz"
VOCABULARY = ("flour", "flower", "floor", "book", "look", "flight", "light")
SAID = st.lists(st.sampled_from(["flour", "book", "a flight", "2pm", "???", "What's", "你好", "👍"]), max_size=6)


@cache
def questions():
    rows = museum().questions.gather_every(7)
    return tuple(rows["input"]), tuple(rows["id"])


@cache
def heard_at(wer, seed=0):
    texts, ids = questions()
    return WordChannel(texts, wer=wer, seed=seed).recognise(texts, ids)


def plain_edits(one, other):
    """The textbook recursion."""
    if not one or not other:
        return len(one) + len(other)
    return min(
        plain_edits(one[1:], other) + 1,
        plain_edits(one, other[1:]) + 1,
        plain_edits(one[1:], other[1:]) + (one[0] != other[0]),
    )


@given(*[st.lists(st.sampled_from("abc"), max_size=5)] * 2)
def test_errors_are_the_fewest_edits(one, other):
    assert word_errors(one, other) == plain_edits(one, other)


@pytest.mark.parametrize("wer", [0.05, 0.5, 1.0])
def test_the_word_error_rate_is_the_one_asked_for(wer):
    heard = heard_at(wer)
    said = [words(text) for text in questions()[0]]
    errors = [word_errors(one, text.split()) for one, text in zip(said, heard.texts, strict=True)]
    assert list(heard.errors) == errors
    assert heard.wer == sum(errors) / sum(map(len, said))
    assert heard.wer == pytest.approx(wer, abs=0.01)


def test_without_errors_the_words_come_through():
    heard = heard_at(0.0)
    assert heard.texts == heard.said == [" ".join(words(text)) for text in questions()[0]]
    assert heard.wer == 0
    assert heard.channel.rate == 0


def test_the_same_seed_hears_the_same_and_another_does_not():
    texts, ids = questions()
    assert WordChannel(texts, wer=0.5).recognise(texts, ids).texts == heard_at(0.5).texts
    assert heard_at(0.5, seed=1).texts != heard_at(0.5).texts


def test_the_order_of_the_texts_does_not_matter():
    texts, ids = questions()
    backwards = WordChannel(texts, wer=0.5).recognise(texts[::-1], ids[::-1])
    assert backwards.texts[::-1] == heard_at(0.5).texts


def test_at_a_fixed_rate_a_text_does_not_depend_on_the_others():
    texts, ids = questions()
    channel = WordChannel(texts, wer=0.5).fit(texts, ids)
    assert channel.recognise(texts, ids).texts == heard_at(0.5).texts
    assert channel.recognise(texts[7:9], ids[7:9]).texts == heard_at(0.5).texts[7:9]


def test_without_ids_equal_texts_are_heard_alike():
    channel = WordChannel(VOCABULARY, wer=0.5, frequent=0).at(0.6)
    assert len(set(channel.recognise(["a light flight"] * 3).texts)) == 1
    assert len(set(channel.recognise(["a light flight"] * 20, range(20)).texts)) > 1


def test_with_more_noise_the_same_words_are_wrong_and_more():
    texts, ids = questions()
    channel = WordChannel(texts, wer=0.5, insertions=0)
    few, many = (channel.at(rate).recognise(texts, ids).pairs for rate in (0.2, 0.5))
    for one, other in zip(few, many, strict=True):
        assert all(there == here or here[0] == here[1] for here, there in zip(one, other, strict=True))


def test_kinds_of_error_come_in_the_ratio_asked_for():
    texts, ids = questions()
    heard = WordChannel(texts, wer=0.4, substitutions=2, deletions=1, insertions=1).recognise(texts, ids)
    wrong = Counter(
        "deleted" if not got else "inserted" if not said else "substituted"
        for pairs in heard.pairs
        for said, got in pairs
        if said != got
    )
    total = sum(wrong.values())
    assert wrong["substituted"] / total == pytest.approx(0.5, abs=0.07)
    assert wrong["deleted"] / total == pytest.approx(0.25, abs=0.07)


def test_a_substitute_sounds_more_like_the_word_than_a_random_word_does():
    swapped = [pair for pairs in heard_at(0.5).pairs for pair in pairs if all(pair) and pair[0] != pair[1]][:300]
    known = heard_at(0.5).channel.alikes.vocabulary
    rng = np.random.default_rng(0)
    near = np.mean([phone_distance(said, got) for said, got in swapped])
    far = np.mean([phone_distance(said, known[rng.integers(len(known))]) for said, _ in swapped])
    assert near < 0.45 < 0.8 < far


def test_words_are_heard_that_the_vocabulary_given_does_not_have():
    known = {word for text in questions()[0] for word in words(text)}
    assert {word for text in heard_at(0.5).texts for word in text.split()} - known


def test_something_is_heard_of_several_words_and_one_word_may_be_lost():
    channel = WordChannel(VOCABULARY, wer=1, substitutions=0, deletions=1, insertions=0)
    assert channel.at(1).recognise(["flour"]).texts == [""]
    two = channel.at(1).recognise(["a book"])
    assert len(two.texts[0].split()) == 1


def test_texts_without_words_stay_empty():
    heard = WordChannel(VOCABULARY, wer=0.5).recognise(["", "?!", "👍"])
    assert heard.texts == ["", "", ""]
    assert math.isnan(heard.wer)


def test_no_texts_at_all_are_heard_as_none():
    assert WordChannel(VOCABULARY, wer=0.5).recognise([]).texts == []


@given(SAID, st.floats(0, 1.25), st.integers(0, 3))
def test_pairs_spell_what_was_said_and_heard(said, rate, seed):
    text = " ".join(said)
    heard = WordChannel(VOCABULARY, wer=0.5, seed=seed, frequent=50).at(rate).recognise([text], ["u1"])
    before, after = (words_of(heard.pairs[0], side) for side in (0, 1))
    assert before == words(text)
    assert heard.texts == [" ".join(after)]
    assert heard.errors[0] <= sum(one != other for one, other in heard.pairs[0])
    assert after or len(before) < 2


def test_a_vocabulary_of_texts_is_taken_apart():
    assert WordChannel(["Book a flight!", "a light"], wer=0.1).vocabulary == ("a", "book", "flight", "light")


@pytest.mark.parametrize("wer", [-0.1, 1.1, math.nan])
def test_rates_beyond_0_and_1_are_refused(wer):
    with pytest.raises(UsageError, match="from 0 to 1; got"):
        WordChannel(VOCABULARY, wer=wer)


@pytest.mark.parametrize(("vocabulary", "frequent"), [([], 5000), (["?"], 5000), (None, 0)])
def test_a_vocabulary_without_words_is_refused(vocabulary, frequent):
    with pytest.raises(UsageError, match="the vocabulary has none"):
        WordChannel(vocabulary, wer=0.1, frequent=frequent)


def test_shares_that_make_no_ratio_are_refused():
    with pytest.raises(UsageError, match="0 or more, and not all 0"):
        WordChannel(VOCABULARY, wer=0.1, deletions=-1)
    with pytest.raises(UsageError, match="0 or more, and not all 0"):
        WordChannel(VOCABULARY, wer=0.1, substitutions=0, deletions=0, insertions=0)


def test_other_faults_name_what_was_got():
    channel = WordChannel(VOCABULARY, wer=0.1)
    with pytest.raises(UsageError, match=r"from 0 to 1\.25; got 2"):
        channel.at(2)
    with pytest.raises(UsageError, match="got 1 for 2"):
        channel.recognise(["a", "b"], ["u1"])
    with pytest.raises(UsageError, match="put the one text in a list"):
        channel.recognise("a book")
    with pytest.raises(UsageError, match="steepness must be 0 or more; got -1"):
        WordChannel(VOCABULARY, wer=0.1, steepness=-1)


@pytest.mark.skipif(not CLINC.exists(), reason="no ../shared/data/clinc150 beside the project")
def test_the_target_is_met_on_clinc150():
    with gzip.open(CLINC, "rt") as file:
        rows = [row for row in map(json.loads, file) if row["split"] == "test"][::20]
    heard = WordChannel(wer=0.5).recognise([row["text"] for row in rows], [row["id"] for row in rows])
    assert heard.wer == pytest.approx(0.5, abs=0.01)
