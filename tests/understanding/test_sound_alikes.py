import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.understanding import noise
from demur.understanding.noise import Rivals, SoundAlikes, frequent_words, phone_distance, sound_alikes

WORDS = ("flour", "flower", "floor", "telephone", "book", "look")


def test_distances_are_shares_of_the_phones_that_differ():
    assert phone_distance("flour", "flower") == 0
    assert phone_distance("book", "look") == pytest.approx(1 / 3)
    assert phone_distance("a", "you") == 1


def test_a_word_is_never_its_own_rival():
    rivals = SoundAlikes(WORDS).of(WORDS)
    assert all(word not in rivals[word].words for word in WORDS)


def test_rivals_come_nearest_first_and_sum_to_one():
    rivals = SoundAlikes(WORDS).of(["flour"])["flour"]
    assert rivals.words[0] == "flower"
    assert rivals.words.index("floor") < rivals.words.index("telephone")
    assert rivals.weights.sum() == pytest.approx(1)
    assert (np.diff(rivals.weights) <= 0).all()


def test_of_equally_near_words_the_more_frequent_is_likelier():
    rivals = SoundAlikes(("bat", "that", "vat")).of(["rat"])["rat"]
    assert rivals.words[0] == "that"


def test_words_outside_the_vocabulary_have_rivals_within_it():
    assert set(SoundAlikes(("book", "flower")).of(["snook"])["snook"].words) == {"book", "flower"}


def test_rivals_do_not_depend_on_what_is_asked_together():
    together = SoundAlikes(WORDS).of(WORDS)["book"]
    alone = SoundAlikes(WORDS).of(["book"])["book"]
    assert together.words == alone.words
    assert together.weights == pytest.approx(alone.weights)


def test_without_steepness_sound_does_not_matter():
    alikes = SoundAlikes(WORDS, steepness=0.0)
    assert alikes.of(["xylophone"])["xylophone"].words == alikes.of(["cook"])["cook"].words


@given(st.floats(0, 1))
def test_every_draw_falls_on_a_rival(draw):
    assert Rivals(("a", "b"), np.array([0.25, 0.75])).pick(draw) == ("a" if draw < 0.25 else "b")


def test_numerals_are_neither_heard_nor_inserted():
    alikes = sound_alikes(("5", "2pm", "five"), 100)
    assert not [word for word in alikes.vocabulary if any(map(str.isdigit, word))]
    assert "the" in alikes.fillers.words


def test_frequent_words_are_words():
    found = frequent_words(2000)
    assert len(found) == len(set(found)) == 2000
    assert all(word.replace("'", "").isalpha() for word in found)
    assert [word for word in found if len(word) == 1] == ["a", "i"]


def test_fewer_than_two_words_that_can_be_said_are_refused():
    with pytest.raises(UsageError, match="two words or more; got 1"):
        SoundAlikes(["hello", "你好"])


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(
        noise, "find_spec", lambda name: None if name == "rapidfuzz" else importlib.util.find_spec(name)
    )
    with pytest.raises(UsageError, match=r"pip install 'demur\[noise\]'"):
        SoundAlikes(WORDS)
