from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.understanding.tokens import count_tokens, tokenizer

WORDS = tokenizer("words")
TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=4).map(" ".join), max_size=8)


def test_counts_lengths_and_vocabulary_of_two_texts() -> None:
    found = count_tokens(["the ship the", "who"], WORDS)
    assert found.vocabulary == {"the": 0, "ship": 1, "who": 2}
    assert found.matrix.toarray().tolist() == [[2, 1, 0], [0, 0, 1]]
    assert found.lengths.tolist() == [3, 1]
    assert found.background.tolist() == [0.5, 0.25, 0.25]


def test_with_a_vocabulary_other_words_drop_out_but_count_in_the_length() -> None:
    vocabulary = {"the": 0, "ship": 1}
    found = count_tokens(["the zebra", "zebra", ""], WORDS, vocabulary)
    assert found.matrix.toarray().tolist() == [[1, 0], [0, 0], [0, 0]]
    assert found.lengths.tolist() == [2, 1, 1]
    assert vocabulary == {"the": 0, "ship": 1}


def test_an_empty_vocabulary_is_one_and_stays_empty() -> None:
    found = count_tokens(["the ship"], WORDS, {})
    assert found.matrix.shape == (1, 0)
    assert found.vocabulary == {}


def test_no_texts_have_no_tokens() -> None:
    found = count_tokens([], WORDS)
    assert found.matrix.shape == (0, 0)
    assert found.background.tolist() == []


def test_texts_without_words_have_a_length_of_one_and_no_background() -> None:
    found = count_tokens(["", "?!"], WORDS)
    assert found.lengths.tolist() == [1, 1]
    assert found.background.tolist() == []


@given(TEXTS)
def test_counts_are_those_of_a_counter(texts: list[str]) -> None:
    found = count_tokens(texts, WORDS)
    dense = found.matrix.toarray()
    for row, text in enumerate(texts):
        bag = Counter(WORDS(text))
        assert {token: dense[row, column] for token, column in found.vocabulary.items() if dense[row, column]} == bag
    assert found.background.sum() == pytest.approx(1.0 if any(texts) else 0.0)


@given(TEXTS, st.data())
def test_the_same_are_those_with_the_same_bag(texts: list[str], data: st.DataObject) -> None:
    rows = np.array(data.draw(st.lists(st.sampled_from(range(len(texts))))) if texts else [], dtype=np.int64)
    bags = [Counter(WORDS(text)) for text in texts]
    wanted = {(row, other) for row, place in enumerate(rows) for other, bag in enumerate(bags) if bag == bags[place]}
    found = count_tokens(texts, WORDS).same_as(rows)
    assert set(zip(*(side.tolist() for side in found), strict=True)) == wanted
