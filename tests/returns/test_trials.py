import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur import compare, score
from demur.errors import DataError
from demur.returns.pairing import pair
from demur.returns.table import responses

FAST = {"replicates": 50}


def tried(times, seed=0, name="trial", inputs=40, **cells):
    rng = random.Random(seed)
    rows = []
    for k in range(inputs):
        for trial in range(times):
            right = rng.random() < 0.4 + k / 80
            answer = {"target": "yes", "prediction": "yes" if right else "no", "confidence": round(rng.random(), 2)}
            rows.append({"id": f"q{k}", name: trial, **answer, **cells})
    return rows


@pytest.mark.parametrize("name", ["trial", "epoch", "repeat", "repetition", "seed", "Epoch"])
def test_trials_are_grouped_by_id(name):
    found = responses(tried(3, name=name))
    assert found.frame["dialogue"].to_list() == found.frame["id"].to_list()
    assert found.notes == (
        "40 inputs were tried 3 times and count once for each try: rows are paired and grouped by id",
    )


def test_a_column_of_trials_means_nothing_where_ids_are_unique():
    assert responses(tried(1, name="seed")).frame["dialogue"].null_count() == 40
    assert responses(tried(1, name="seed", epoch=3)).notes == ()


def test_an_id_twice_in_one_trial_is_refused():
    rows = [*tried(2), tried(1)[5]]
    with pytest.raises(
        DataError, match=r'row 81: the id "q5" occurs twice in system "system" in trial "0".*column trial'
    ):
        responses(rows)


def test_dialogues_stay_the_groups_where_they_hold_all_trials():
    rows = [row | {"dialogue": f"d{int(row['id'][1:]) // 4}"} for row in tried(2)]
    assert responses(rows).frame["dialogue"].n_unique() == 10
    apart = [row | {"dialogue": f"{row['dialogue']}-{row['trial']}"} for row in rows]
    with pytest.raises(DataError, match="dialogues of other inputs, differently named in each trial"):
        responses(apart)
    own = [row | {"dialogue": f"{row['id']}-{row['trial']}"} for row in rows]
    assert responses(own).frame["dialogue"].n_unique() == 40


def test_three_trials_against_one_are_paired_by_input():
    found = compare({"three": pl.DataFrame(tried(3)), "one": pl.DataFrame(tried(1, seed=1))}, **FAST)
    (one,) = found.pairs
    assert found.note == "paired by id on 40 inputs"
    assert (one.paired, one.units) == (True, 40)
    assert one.mcnemar == "inputs were tried several times, so single answers are no pairs"
    assert [evaluation.n for evaluation in found.evaluations] == [120, 40]


@settings(max_examples=4)  # each compares twice
@given(st.integers(0, 1000), st.integers(2, 4))
def test_trials_that_repeat_an_answer_tell_no_more_than_one(seed, times):
    one, other = tried(1, seed=seed), tried(1, seed=seed + 1)
    again = [row | {"trial": trial} for row in one for trial in range(times)]
    plain = compare({"a": pl.DataFrame(one), "b": pl.DataFrame(other)}, **FAST).pairs[0]
    often = compare({"a": pl.DataFrame(again), "b": pl.DataFrame(other)}, **FAST).pairs[0]
    assert often.area.value == pytest.approx(plain.area.value)
    assert often.area.estimate.error == pytest.approx(plain.area.estimate.error)
    assert often.area.estimate.freedom == plain.area.estimate.freedom
    assert often.right.interval == pytest.approx(plain.right.interval)
    assert often.band.low == pytest.approx(plain.band.low)


def test_the_difference_of_trials_is_that_of_inputs():
    one, two = tried(3), tried(2, seed=9)
    found = compare({"a": pl.DataFrame(one), "b": pl.DataFrame(two)}, **FAST).pairs[0]
    by_input = []
    for name in (f"q{k}" for k in range(40)):
        shares = []
        for rows in (one, two):
            own = [row["prediction"] == "yes" for row in rows if row["id"] == name]
            shares.append(sum(own) / len(own))
        by_input.append(shares[0] - shares[1])
    assert found.right.value == pytest.approx(sum(by_input) / 40)
    mean = sum(by_input) / 40
    spread = (sum((one - mean) ** 2 for one in by_input) / (40 * 39)) ** 0.5
    assert found.right.estimate.error == pytest.approx(max(spread, 2 / 40), rel=1e-6)


def test_inputs_that_only_one_system_tried_are_refused_or_left_out():
    frames = {"a": pl.DataFrame(tried(2)), "b": pl.DataFrame(tried(2, seed=1, inputs=39))}
    with pytest.raises(DataError, match="do not have the same ids: a has 40, b has 39"):
        compare(frames, **FAST)
    assert compare(frames, matched=True, **FAST).dropped == {"a": 2, "b": 0}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_group_trials_by_id_too(engine):
    pytest.importorskip(engine)
    rows = pl.DataFrame(tried(3))
    found = score(rows, engine=engine, check_ids=True, **FAST)
    assert found[0].clustered
    assert "inputs were tried several times and count once for each try: rows are grouped by id" in found.notes
    assert not score(pl.DataFrame(tried(1, name="seed")), engine=engine, **FAST)[0].clustered
    with pytest.raises(DataError, match="cannot be grouped by id and by dialogue inside an engine"):
        score(rows.with_columns(dialogue=pl.lit("d")), engine=engine, **FAST)
    with pytest.raises(DataError, match='the id "q0" occurs 2 times'):
        score(pl.concat([rows, rows.head(1)]), engine=engine, **FAST)


def pairs(**cells):
    return [row | {"question": row["id"], "option": k % 2, **cells} for k, row in enumerate(tried(1))]


def without(rows, *names):
    return pl.DataFrame([{key: cell for key, cell in row.items() if key not in names} for row in rows])


def test_rows_are_paired_by_their_place():
    by_id = compare({"a": pl.DataFrame(pairs()), "b": pl.DataFrame(tried(1, seed=1))}, **FAST)
    frames = {"a": without(pairs(), "id"), "b": without(tried(1, seed=1), "id")}
    by_row = compare(frames, pair_by="row", **FAST)
    assert by_row.note == "paired by row on 40 inputs"
    assert by_row.pairs[0].area.value == by_id.pairs[0].area.value
    assert by_row.pairs[0].area.estimate.error == pytest.approx(by_id.pairs[0].area.estimate.error)


def test_rows_are_paired_only_in_logs_of_one_length_that_agree_in_targets():
    rows = without(pairs(), "id")
    with pytest.raises(DataError, match='logs of one length; got "a has 40, b has 39"'):
        compare({"a": rows, "b": rows.head(39)}, pair_by="row", **FAST)
    place = pl.int_range(pl.len())
    others = rows.with_columns(target=pl.when(place.is_in([7, 9])).then(pl.lit("maybe")).otherwise("target"))
    told = r'^row 8 has the target "yes" in a but "maybe" in b \(2 such rows.*in the same order\?.*question,option'
    with pytest.raises(DataError, match=told):
        compare({"a": rows, "b": others}, pair_by="row", **FAST)
    marked = rows.drop("target", "prediction").with_columns(correct=True)
    with pytest.raises(DataError, match="every one has a target, and some of a have none"):
        compare({"a": marked, "b": marked}, pair_by="row", **FAST)


@pytest.mark.parametrize("key", ["question,option", ("question", "option")])
def test_inputs_are_paired_by_a_key_of_several_columns(key):
    one = [row | {"id": k} for k, row in enumerate(pairs())]
    two = [row | {"id": -k} for k, row in enumerate(reversed(pairs()))]
    found = compare({"a": pl.DataFrame(one), "b": pl.DataFrame(two)}, pair_by=key, **FAST)
    assert found.note == "paired by question and option on 40 inputs"
    assert found.pairs[0].area.value == 0


def test_keys_are_told_apart_whatever_their_cells_hold():
    rows = [{"x": "a, b", "y": "c"}, {"x": "a", "y": "b, c"}, {"x": "a\\", "y": "b"}, {"x": "a\\, b", "y": ""}]
    frame = pl.DataFrame([row | {"correct": True, "confidence": 0.5} for row in rows])
    compare({"a": frame, "b": frame}, pair_by="x,y", **FAST)


def test_a_key_that_is_missing_or_names_two_inputs_is_refused():
    with pytest.raises(DataError, match='there is no column "q"'):
        compare({"a": pl.DataFrame(pairs()), "b": pl.DataFrame(pairs())}, pair_by="q", **FAST)
    with pytest.raises(DataError, match=r'the id "0" occurs twice.*option does not tell these rows apart'):
        compare({"a": without(pairs(), "trial"), "b": pl.DataFrame(pairs())}, pair_by="option", **FAST)
    gap = pl.DataFrame(pairs(question=None), schema_overrides={"question": pl.String})
    with pytest.raises(DataError, match="row 1: question must be there in every row to pair by it"):
        compare({"a": gap, "b": gap}, pair_by="question", **FAST)


def test_an_input_that_nothing_judges_in_one_system_is_left_out_of_all():
    rows = [{"id": k, "correct": k % 2 > 0, "confidence": k / 10} for k in range(10)]
    gap = [row | {"correct": None} if row["id"] == 4 else row for row in rows]
    both = responses([*(row | {"system": "a"} for row in rows), *(row | {"system": "b"} for row in gap)])
    found = pair(both)
    assert found.note == "paired by id on 9 inputs; 1 input left out as some system's answer is not judged"
    assert {frame.height for frame in found.frames.values()} == {9}


def test_trials_count_as_turns_of_a_dialogue_do():
    rows = tried(3)
    named = [{**row, "id": f"{row['id']}#{row.pop('trial')}", "dialogue": row["id"]} for row in map(dict, rows)]
    found, expected = (score(one, **FAST)[0].to_dict() for one in (rows, named))
    assert found["measures"] == expected["measures"]
    assert found["clustered_by_dialogue"] is True
