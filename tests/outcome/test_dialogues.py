"""The table of dialogues: outcomes, gains, groups, and what is refused."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.outcome.table import GAIN, DialogueReading, dialogues, match_dialogues, read_dialogues

TWO = [{"dialogue": "a", "outcome": 0.5}, {"dialogue": "b", "outcome": 0.7}]


def outcomes(table):
    return dict(zip(table.frame["dialogue"], table.frame["outcome"], strict=True))


def test_rows_are_sorted_by_name_whatever_their_order():
    assert outcomes(dialogues(TWO)) == outcomes(dialogues(TWO[::-1])) == {"a": 0.5, "b": 0.7}
    assert dialogues(TWO[::-1]).frame["dialogue"].to_list() == ["a", "b"]


def test_the_gain_is_what_was_won_of_what_could_be_won():
    rows = [
        {"dialogue": "half", "pre": 0.5, "post": 0.75},
        {"dialogue": "lost", "pre": 0.5, "post": 0.25},
        {"dialogue": "all", "pre": 0, "post": 1},
    ]
    table = dialogues(rows)
    assert outcomes(table) == {"half": 0.5, "lost": -0.5, "all": 1.0}
    assert table.outcome == GAIN == "normalised gain"
    assert table.notes == ("outcome: normalised gain, (post - pre) / (1 - pre)",)
    assert not table.warnings


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1))
def test_a_gain_is_never_above_one_and_0_where_nothing_changed(pre, post):
    rows = [{"dialogue": "a", "pre": pre, "post": post}, {"dialogue": "b", "pre": pre, "post": pre}]
    found = outcomes(dialogues(rows))
    assert found["a"] <= 1
    assert found["b"] == 0


def test_a_pretest_without_fault_leaves_the_gain_undefined_and_is_told():
    rows = [{"dialogue": "a", "pre": 1.0, "post": 1.0}, {"dialogue": "b", "pre": 0.0, "post": 0.5}]
    table = dialogues(rows)
    assert outcomes(table) == {"b": 0.5}
    assert table.warnings == (
        '1 dialogue has no outcome and is left out (pre is 1, so nothing was left to gain, or a test is missing): "a"',
    )


def test_a_missing_test_is_not_called_a_perfect_one():
    rows = [{"dialogue": "a", "pre": 0.2, "post": None}, {"dialogue": "b", "pre": 0.0, "post": 0.5}]
    assert "or a test is missing" in dialogues(rows).warnings[0]


def test_missing_outcomes_are_counted_and_the_first_five_listed():
    rows = [*TWO, *({"dialogue": f"x{k}", "outcome": None} for k in range(7))]
    table = dialogues(rows)
    assert len(table) == 2
    assert table.warnings == ('7 dialogues have no outcome and are left out: "x0", "x1", "x2", "x3", "x4" and 2 more',)


def test_no_outcome_at_all_is_refused():
    with pytest.raises(DataError, match="no dialogue has an outcome"):
        dialogues([{"dialogue": "a", "pre": 1, "post": 1}])
    with pytest.raises(DataError, match="no dialogue has an outcome"):
        dialogues([{"dialogue": "a", "outcome": None}])


@pytest.mark.parametrize("values", [(True, False), ("true", "false"), ("Yes", "no"), ("1", "0"), (1, 0)])
def test_success_counts_as_1_and_failure_as_0(values):
    rows = [{"dialogue": name, "outcome": value} for name, value in zip("ab", values, strict=True)]
    assert outcomes(dialogues(rows)) == {"a": 1.0, "b": 0.0}


def test_another_column_can_be_the_outcome():
    rows = [{"dialogue": "a", "outcome": "ok", "success": True, "turns": 4}]
    table = dialogues(rows, reading=DialogueReading(outcome="success"))
    assert outcomes(table) == {"a": 1.0}
    assert table.outcome == "success"
    assert table.numbers("turns").to_list() == [4.0]


def test_outcomes_may_lie_anywhere_but_tests_between_0_and_1():
    assert outcomes(dialogues([{"dialogue": "a", "outcome": -7}])) == {"a": -7.0}
    for part, other in (("pre", "post"), ("post", "pre")):
        rows = [{"dialogue": "a", part: 55, other: 0.5}]
        with pytest.raises(DataError, match=rf"{part} must lie between 0 and 1; got 55.0 \(test scores are shares"):
            dialogues(rows)


@pytest.mark.parametrize("part", ["outcome", "pre", "post"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused(part, value):
    parts = {"outcome": 0.5} if part == "outcome" else {"pre": 0.5, "post": 0.5}
    rows = [{"dialogue": "a", **parts}, {"dialogue": "b", **parts, part: value}]
    with pytest.raises(DataError, match=rf"{part} must be a finite number"):
        dialogues(rows)


def test_an_outcome_of_words_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "o.csv").write_text("dialogue,outcome\na,0.5\nb,good\n")
    with pytest.raises(DataError, match=r'o.csv:3: outcome must be a number; got "good"'):
        read_dialogues(tmp_path / "o.csv")


def test_a_dialogue_that_occurs_twice_is_refused_with_both_places(tmp_path: Path):
    (tmp_path / "o.csv").write_text("dialogue,outcome\na,1\nb,2\na,3\n")
    with pytest.raises(DataError, match=r'o.csv:4: the dialogue "a" occurs twice, first at .*o.csv:2 \(.*column group'):
        read_dialogues(tmp_path / "o.csv")


def test_dialogues_of_several_files_are_one_table(tmp_path: Path):
    (tmp_path / "1.csv").write_text("dialogue,outcome\nb,1\n")
    (tmp_path / "2.jsonl").write_text('{"dialogue": "a", "outcome": 0.5, "turns": 3}\n')
    table = read_dialogues(tmp_path / "1.csv", tmp_path / "2.jsonl")
    assert outcomes(table) == {"a": 0.5, "b": 1.0}
    (tmp_path / "3.csv").write_text("dialogue,outcome\nb,1\n")
    with pytest.raises(DataError, match='the dialogue "b" occurs twice'):
        read_dialogues(tmp_path / "1.csv", tmp_path / "3.csv")


def test_names_may_be_numbers_but_not_missing():
    assert outcomes(dialogues([{"dialogue": 7, "outcome": 1}])) == {"7": 1.0}
    with pytest.raises(DataError, match='dialogue must name the dialogue; got "nothing"'):
        dialogues([*TWO, {"dialogue": None, "outcome": 1}])


def test_missing_columns_are_named_with_a_way_out():
    with pytest.raises(DataError, match=r"needs a column dialogue; there are call, outcome \(--map dialogue=COLUMN"):
        dialogues([{"call": "a", "outcome": 1}])
    with pytest.raises(
        DataError, match=r"needs a column outcome, or pre and post; there are dialogue, gain \(`outcome`"
    ):
        dialogues([{"dialogue": "a", "gain": 1}])
    with pytest.raises(DataError, match="needs a column outcome, or pre and post"):
        dialogues([{"dialogue": "a", "pre": 0.5}])
    with pytest.raises(DataError, match=r'there is no column "gian" to map outcome from \(did you mean "gain"'):
        dialogues([{"dialogue": "a", "gain": 1}], reading=DialogueReading(outcome="gian"))


def test_other_names_are_guessed_and_told_and_ambiguity_is_refused():
    table = dialogues([{"session": "a", "pretest": 0, "posttest": 0.5, "student": "x"}])
    guessed = {"dialogue <- session", "pre <- pretest", "post <- posttest", "group <- student"}
    assert guessed <= set(table.notes)
    assert table.frame["group"].to_list() == ["x"]
    with pytest.raises(DataError, match='group may be any of the columns "user", "student"'):
        dialogues([{**TWO[0], "user": 1, "student": 2}])
    chosen = DialogueReading(columns={"group": "user"})
    assert dialogues([{**TWO[0], "user": 1, "student": 2}], reading=chosen).frame["group"].to_list() == ["1"]


def test_a_table_is_grouped_when_someone_held_several_dialogues():
    def grouped(*groups):
        return dialogues([{"dialogue": str(k), "outcome": 1, "group": g} for k, g in enumerate(groups)]).grouped

    assert grouped("x", "x", "y")
    assert not grouped("x", "y", "z")
    assert not grouped(None, None, "z")
    assert not dialogues(TWO).grouped


@pytest.mark.parametrize(
    ("column", "numbers"),
    [([True, False], [1, 0]), (["yes", "No"], [1, 0]), (["3", "4.5"], [3, 4.5]), ([1, None], [1, None])],
)
def test_further_columns_are_read_as_numbers(column, numbers):
    rows = [{**row, "more": value} for row, value in zip(TWO, column, strict=True)]
    assert dialogues(rows).numbers("more").to_list() == numbers


@pytest.mark.parametrize("value", ["many", math.inf, [1, 2], {"a": 1}])
def test_further_columns_that_are_no_numbers_are_refused_with_the_dialogue(value):
    rows = [{**TWO[0], "more": value}]
    with pytest.raises(DataError, match='dialogue "a": more must be a finite number; got'):
        dialogues(rows).numbers("more")


def test_a_further_column_that_is_not_there_is_refused_with_a_hint():
    with pytest.raises(DataError, match='dialogues: there is no column "trns"; did you mean "turns"'):
        dialogues([{**TWO[0], "turns": 3}]).numbers("trns")


def test_dialogues_without_counterpart_are_counted_listed_and_refused():
    turns = [f"t{k}" for k in range(5)]
    known = dialogues([{"dialogue": name, "outcome": {"t0": 1, "o1": 0}.get(name)} for name in ("t0", "t1", "o1")])
    with pytest.raises(DataError) as fault:
        match_dialogues(turns, known, allowed=False)
    assert str(fault.value) == (
        '3 dialogues have turns but are not in the table of outcomes ("t2", "t3", "t4"); '
        '1 dialogue has turns but no outcome ("t1"); 1 dialogue has an outcome but no turns ("o1") '
        "(`matched` leaves such dialogues out and keeps the other 1)"
    )
    note = "left out: 4 dialogues without an outcome, 1 without turns"
    assert match_dialogues(turns, known, allowed=True) == (["t0"], [note])


def test_an_undefined_gain_is_refused_with_its_reason():
    known = dialogues([{"dialogue": "a", "pre": 0.5, "post": 1}, {"dialogue": "b", "pre": 1, "post": 1}])
    with pytest.raises(DataError) as fault:
        match_dialogues(["a", "b"], known, allowed=False)
    assert str(fault.value) == (
        '1 dialogue has turns but no outcome ("b"): pre is 1, so nothing was left to gain, or a test is missing '
        "(`matched` leaves such dialogues out and keeps the other 1)"
    )
    assert match_dialogues(["a", "b"], known, allowed=True)[0] == ["a"]


def test_tables_that_share_no_dialogue_are_refused_even_then():
    with pytest.raises(DataError, match=r'turns are of "1", outcomes of "01" \(do the names of dialogues agree\?\)'):
        match_dialogues(["1"], dialogues([{"dialogue": "01", "outcome": 1}]), allowed=True)


def test_all_faults_of_columns_are_told_at_once():
    with pytest.raises(DataError, match="may be any of") as caught:
        dialogues([{"session": "d1", "conversation": "d1", "pre": 2, "post": "x"}])
    assert [fault.rule for fault in caught.value.faults] == [
        'dialogue may be any of the columns "session", "conversation"',
        "must lie between 0 and 1",
        "must be a number",
    ]
