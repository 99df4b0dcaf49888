import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import DataError
from demur.returns.pairing import pair
from demur.returns.table import responses


def rows(system, ids, **cells):
    base = {"target": "a", "prediction": "a", "confidence": 0.5}
    return [{"id": name, "system": system} | base | cells for name in ids]


def test_systems_are_paired_by_id_in_one_order():
    found = pair(responses(rows("x", "bac") + rows("y", "cab")))
    assert found.paired
    assert [frame["id"].to_list() for frame in found.frames.values()] == [["a", "b", "c"]] * 2
    assert found.note == "paired by id on 3 inputs"
    assert found.dropped == {"x": 0, "y": 0}


def test_a_comparison_needs_two_systems():
    with pytest.raises(DataError, match=r'needs two systems or more; got "x" \(give another log, .* `confidence`\)'):
        pair(responses(rows("x", "ab")))
    with pytest.raises(DataError, match=r'needs two systems or more; got "x" \(name another `system`\)'):
        pair(responses(rows("x", "ab") + rows("y", "ab")), systems=("x",))


def test_systems_can_be_chosen():
    three = responses(rows("x", "ab") + rows("y", "ab") + rows("z", "cd"))
    assert tuple(pair(three, systems=("y", "x")).frames) == ("y", "x")
    with pytest.raises(DataError, match='no system "w"'):
        pair(three, systems=("x", "w"))


def test_ids_that_do_not_match_are_refused_with_counts_and_examples():
    with pytest.raises(
        DataError, match=r"x has 6, y has 3, common to all are 2;.*counterpart in x: \"a\", \"b\", \"c\" and 1 more"
    ):
        pair(responses(rows("x", "abcdef") + rows("y", "efg")))


def test_of_many_systems_whose_ids_do_not_match_a_few_are_named():
    many = responses([row for k in range(40) for row in rows(f"s{k}", "ab" + "cdefghijk"[: k % 9])])
    with pytest.raises(DataError, match="s4 has 6 and 35 more, common to all are 2;") as caught:
        pair(many)
    assert len(str(caught.value)) < 500


def test_the_way_out_is_named():
    with pytest.raises(DataError, match=r"`matched` compares the common ones; `unpaired`"):
        pair(responses(rows("x", "ab") + rows("y", "bc")))


def test_matched_keeps_the_common_ids():
    found = pair(responses(rows("x", "abcd") + rows("y", "dbe")), matched=True)
    assert [frame["id"].to_list() for frame in found.frames.values()] == [["b", "d"]] * 2
    assert found.dropped == {"x": 2, "y": 1}
    assert found.note == "paired by id on 2 inputs; left out without a counterpart: 2 of x, 1 of y"


def test_nothing_in_common_cannot_be_matched():
    with pytest.raises(DataError, match="no id is shared"):
        pair(responses(rows("x", "ab") + rows("y", "cd")), matched=True)


def test_unpaired_is_what_was_asked_for():
    found = pair(responses(rows("x", "ab") + rows("y", "bcd")), unpaired=True)
    assert not found.paired
    assert found.note == "compared as unpaired, as asked"
    assert {name: frame.height for name, frame in found.frames.items()} == {"x": 2, "y": 3}


def test_without_ids_systems_are_unpaired_and_it_says_so():
    found = pair(responses(rows("x", [None]) + rows("y", [None])))
    assert not found.paired
    assert found.note.startswith("compared as unpaired: there are no ids in x, y; --pair-by COLUMNS pairs by")


def test_one_id_with_two_targets_is_refused():
    data = rows("x", "ab") + rows("y", "a") + rows("y", "b", target=["c", "a"])
    with pytest.raises(DataError, match=r'the id "b" has the target "a" in x but "a" or "c" in y \(1 such id in all\)'):
        pair(responses(data))
    out = rows("x", "ab") + rows("y", "a") + rows("y", "b", target="oos")
    with pytest.raises(DataError, match="but out of scope in y"):
        pair(responses(out))


def test_several_targets_are_the_same_in_any_order():
    data = rows("x", "ab", target=["a", "b"]) + rows("y", "ab", target=["b", "a"])
    assert pair(responses(data)).paired


def test_targets_of_rows_judged_by_correct_alone_do_not_matter():
    judged = [{"id": n, "system": name, "correct": True, "confidence": 1} for n in "ab" for name in "xy"]
    assert pair(responses(judged)).paired


@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.booleans()), min_size=2, max_size=8).flatmap(
        lambda cells: st.tuples(st.just(cells), st.permutations(cells))
    )
)
def test_the_order_of_rows_without_ids_does_not_matter(orders):
    def frames(cells):
        data = [{"system": name, "correct": right, "confidence": sure} for name in "xy" for sure, right in cells]
        return pair(responses(data)).frames

    first, second = map(frames, orders)
    assert all(first[name].equals(second[name]) for name in "xy")
    assert isinstance(first["x"], pl.DataFrame)
