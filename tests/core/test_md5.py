import hashlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.engines import polars as engine
from demur.core.engines.polars import leading_digits


def plain(texts):
    return [int(hashlib.md5(text.encode()).hexdigest()[:12], 16) for text in texts]


@given(st.lists(st.text(max_size=80), min_size=1))
def test_columns_are_hashed_as_single_texts_are(texts):
    assert leading_digits(pl.Series(texts)).tolist() == plain(texts)


@pytest.mark.parametrize("length", [0, 1, 54, 55, 56, 63, 64, 65, 200])
def test_texts_around_the_size_of_a_block_are_hashed_right(length):
    texts = ["x" * length, "é" * (length // 2)]
    assert leading_digits(pl.Series(texts)).tolist() == plain(texts)


def test_a_column_longer_than_one_pass_is_hashed_in_order():
    texts = [f"dialogue {number}" for number in range(2 * engine._AT_ONCE + 1)]
    assert leading_digits(pl.Series(texts)).tolist() == plain(texts)


def test_no_texts_have_no_digits():
    assert leading_digits(pl.Series([], dtype=pl.String)).tolist() == []
