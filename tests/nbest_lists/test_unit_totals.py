import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from demur.nbest_lists import exploded
from demur.nbest_lists.exploded import ExplodedLists, dialogue_numbers
from demur.nbest_lists.measures import OF_ACTS, OF_ITEMS
from demur.nbest_lists.table import nbest
from reference import nbest as plain
from reference.nbest import Utterance, rough_lists, tables

FEW = settings(max_examples=settings.default.max_examples // 2)
RIGHT = Utterance(["a"], [(["a"], 0.75)])
WRONG = Utterance(["a"], [(["b"], 0.5)])


def taken(table):
    return ExplodedLists.of(nbest(plain.rows_of(table)))


def totals(table):
    return taken(table).totals(OF_ACTS, OF_ITEMS)


def spoken(table, *dialogues):
    return [u._replace(dialogue=name) for u, name in zip(table, dialogues, strict=True)]


@FEW
@given(tables(rough_lists()))
def test_totals_over_units_are_those_of_the_rows(table):
    rows, found = taken(table).rows, totals(table)
    for of, frame in ((OF_ACTS, rows.acts), (OF_ITEMS, rows.items)):
        for key, measure in of.items():
            if frame.is_empty():
                assert not found.of(key, found.totals)[:-1].any()
                continue
            expected = measure(frame)
            assert found.of(key, found.totals)[:-1] == pytest.approx(expected.totals[:-1], rel=1e-12, abs=1e-12)
            value = float(found.values(key, found.totals))
            assert value == pytest.approx(expected.value, rel=1e-12, abs=1e-12, nan_ok=True)
    assert found.n == len(table)


@FEW
@given(tables())
def test_a_unit_has_the_value_of_its_dialogue_alone(table):
    lists = nbest(plain.rows_of(table))
    whole = ExplodedLists.of(lists)
    found = whole.totals(OF_ACTS, OF_ITEMS)
    for unit in range(found.units):
        alone = ExplodedLists.of(lists.taken(whole.numbered == unit)).totals(OF_ACTS, OF_ITEMS)
        for key in found.measures:
            expected = float(alone.values(key, alone.totals))
            assert found.by_unit(key)[unit] == pytest.approx(expected, rel=1e-9, abs=1e-11, nan_ok=True), key


@given(tables())
def test_units_are_dialogues_and_utterances_outside_any(table):
    found = totals(table)
    named = {u.dialogue for u in table} - {None}
    alone = sum(u.dialogue is None for u in table)
    assert found.clustered == bool(named)
    assert found.units == len(named) + alone


def test_dialogues_are_numbered_by_name_and_others_after_them():
    frame = pl.DataFrame({"dialogue": ["d2", None, "d1", "d2", None, "d10"]})
    assert dialogue_numbers(frame).tolist() == [2, 3, 0, 2, 4, 1]


def test_without_dialogues_utterances_are_units():
    assert dialogue_numbers(pl.DataFrame({"dialogue": [None, None]}, schema={"dialogue": pl.String})) is None
    found = totals([RIGHT, WRONG])
    assert (found.units, found.clustered) == (2, False)
    assert found.by_unit("ser").tolist() == [0, 1]


def test_dialogues_sum_their_utterances():
    found = totals(spoken([RIGHT, WRONG, WRONG], "x", "x", "y"))
    assert (found.units, found.clustered, found.n) == (2, True, 3)
    assert found.by_unit("ser").tolist() == [0.5, 1]
    assert float(found.values("ser", found.totals)) == pytest.approx(2 / 3)


def test_a_unit_without_items_is_undefined_and_adds_nothing():
    found = totals([RIGHT, Utterance([], [])])
    assert found.by_unit("ice")[0] == pytest.approx(-np.log(0.75))
    assert np.isnan(found.by_unit("ice")[1])
    assert float(found.values("ice", found.totals)) == pytest.approx(-np.log(0.75))


@given(tables(smallest=2))
def test_the_same_seed_draws_the_same_units(table):
    found = totals(table)
    first, second = (found.draw(replicates=20, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert first.shape == (20, found.table.shape[1])


def test_tables_of_as_many_units_are_drawn_alike():
    """Pairs rest on it: a replicate of one system holds the utterances of the same replicate of the other."""
    one = totals([RIGHT, WRONG, RIGHT, WRONG])
    other = totals([WRONG, RIGHT, WRONG, RIGHT])
    errors = one.columns["ser"].start
    drawn = one.draw(replicates=50, seed=1)[:, errors], other.draw(replicates=50, seed=1)[:, errors]
    assert drawn[0] + drawn[1] == pytest.approx(np.full(50, 4.0))
    assert not np.array_equal(one.draw(replicates=50, seed=2)[:, errors], drawn[0])


def test_replicates_of_one_unit_are_the_table_itself():
    found = totals(spoken([RIGHT, WRONG], "x", "x"))
    assert found.draw(replicates=3, seed=0) == pytest.approx(np.tile(found.totals, (3, 1)))


def test_replicates_scatter_around_the_totals():
    found = totals([RIGHT, WRONG] * 50)
    drawn = found.values("ser", found.draw(replicates=400, seed=0))
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert drawn.std() == pytest.approx(0.05, abs=0.01)


def test_more_units_than_are_drawn_one_by_one_go_into_bundles_that_lose_nothing(monkeypatch):
    monkeypatch.setattr(exploded, "MOST_UNITS", 10)
    found = totals([RIGHT, WRONG] * 40)
    drawn = found.draw(replicates=200, seed=0)
    assert drawn.mean(axis=0) == pytest.approx(found.totals, rel=0.1)
    assert np.array_equal(drawn, found.draw(replicates=200, seed=0))


@given(tables())
def test_the_top_answers_are_the_surest_hypotheses(table):
    found = taken(table).top_answers()
    for row in found.iter_rows(named=True):
        u = table[int(row["id"].removeprefix("u"))]
        top = plain.top_of(u)
        assert row["answered"] == (top is not None)
        assert row["right"] == (top == plain.meant(u) and top is not None)
        assert row["confidence"] == (None if top is None else min(plain.acts_of(u)[top], 1.0))
        assert (row["weight"], row["dialogue"]) == (u.weight, u.dialogue)


@given(tables())
def test_the_sweep_of_items_withholds_those_that_were_missed(table):
    one = taken(table)
    if one.rows.items.is_empty():
        return
    missed = sum(u.weight for u in table for item in plain.meant(u) if plain.confidences_of(u)[item] == 0)
    held = plain.hypothesised_items(table)
    assert one.items.sweep().withheld == pytest.approx(missed)
    assert one.items.sweep().right.sum() == pytest.approx(sum(weight for _, right, weight in held if right))
    assert one.items.sweep().wrong.sum() == pytest.approx(sum(weight for _, right, weight in held if not right))


def test_the_digest_of_items_does_not_depend_on_the_order_of_rows():
    table = spoken([RIGHT, WRONG, RIGHT._replace(weight=2.0)], "x", "y", "x")
    assert taken(table).items.sweep().digest() == taken(table[::-1]).items.sweep().digest()
