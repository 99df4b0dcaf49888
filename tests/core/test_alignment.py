import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.tables import Ids, gathered
from demur.returns import pairing

NAMES = st.lists(st.text(max_size=20), min_size=1, max_size=30, unique=True)


@given(NAMES.flatmap(lambda names: st.tuples(st.just(names), st.permutations(names))))
def test_ids_are_found_wherever_they_stand(orders):
    one, other = (pl.Series(names) for names in orders)
    found = Ids.of(one).places(other)
    assert other.gather(found).to_list() == one.sort().to_list()


@given(NAMES, NAMES)
def test_other_ids_are_not_taken_for_these(names, others):
    assert (Ids.of(pl.Series(names)).places(pl.Series(others)) is None) == (sorted(names) != sorted(others))


def test_a_column_with_fewer_ids_or_with_gaps_does_not_hold_them():
    ids = Ids.of(pl.Series(["a", "b", "c"]))
    assert ids.places(pl.Series(["a", "b"])) is None
    assert ids.places(pl.Series(["a", "b", None])) is None
    assert len(ids) == 3


@pytest.mark.parametrize("same", [("a", "b"), ("a", "c"), ("b", "c")])
def test_ids_that_share_a_hash_are_told_apart_or_not_placed_at_all(monkeypatch, same):
    hashed = pairing.hashed

    def poor(column, seed=0):
        found = hashed(column, seed).copy()
        found[column.is_in(list(same)).to_numpy()] = 7 if seed == 0 else found[column.is_in(list(same)).to_numpy()]
        return found

    monkeypatch.setattr(pairing, "hashed", poor)
    ids = Ids.of(pl.Series(["a", "b", "c"]))
    for order in ("abc", "acb", "bac", "bca", "cab", "cba"):
        column = pl.Series(list(order))
        places = ids.places(column)
        assert places is None or column.gather(places).to_list() == ["a", "b", "c"]


def test_rows_are_gathered_in_the_order_of_places_out_of_pieces_too():
    pieces = pl.concat([pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [3]})], rechunk=False)
    assert gathered(pieces, np.array([2, 0], dtype=np.uint32))["x"].to_list() == [3, 1]
