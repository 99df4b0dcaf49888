import math

import polars as pl
import pytest

from demur.errors import DataError
from demur.returns import judging
from demur.returns.table import Reading, read_responses, responses
from returns.logs import JUDGED, jsonl, judged, row


def one(**cells):
    return judged(row(**cells), row(target="a", prediction="a")).row(0, named=True)


def test_the_frame_begins_with_the_judged_columns():
    assert dict(judged(row()).schema) == JUDGED


def test_a_prediction_that_is_the_target_is_right():
    assert one()["right"] is True
    assert one(prediction="b")["right"] is False


def test_any_of_several_targets_is_right():
    assert one(target=["b", "a"])["right"] is True
    assert one(target=["b", "c"])["right"] is False
    assert one(target=["b", "c"])["target"] == ["b", "c"]


def test_a_list_spelled_in_text_is_a_list():
    assert one(target='["b", "a"]')["right"] is True
    assert one(target="[unk]", prediction="[unk]")["target"] == ["[unk]"]
    assert one(target="[1, 2.0]", prediction="2")["right"] is True


@pytest.mark.parametrize("target", [None, "oos", "out_of_scope", [], ["oos"], [None]])
def test_an_answer_to_what_is_out_of_scope_is_wrong(target):
    found = one(target=target, prediction="a")
    assert (found["out_of_scope"], found["answered"], found["right"]) == (True, True, False)
    assert found["target"] == []


@pytest.mark.parametrize(
    "cells", [{"prediction": None}, {"prediction": "nlu_fallback"}, {"prediction": "oos"}, {"abstained": True}]
)
def test_what_was_withheld_is_neither_right_nor_answered(cells):
    found = one(**cells)
    assert (found["answered"], found["right"], found["failed"]) == (False, False, False)
    assert found["confidence"] is None


def test_a_failure_is_not_answered_and_warned_of():
    found = responses([row(failed=True), row(failed=None)])
    assert found.frame["answered"].to_list() == [False, True]
    assert found.frame["failed"].to_list() == [True, False]
    assert found.warnings == ("1 row failed and counts as a non-return",)


def test_correct_overrides_the_comparison_where_it_is_given():
    rows = [row(correct=True, prediction="b"), row(correct=False), row(correct=None)]
    assert judged(*rows)["right"].to_list() == [True, False, True]


def test_correct_needs_neither_target_nor_prediction():
    found = judged({"correct": 1, "confidence": 0.5}, {"correct": 0, "confidence": 0.5, "abstained": True})
    assert found["answered"].to_list() == [True, False]
    assert found["right"].to_list() == [True, False]
    assert found["target"].to_list() == [None, None]
    assert found["out_of_scope"].to_list() == [False, False]


def test_a_row_marked_correct_is_in_scope_and_warned_of():
    found = responses([row(target=None, correct=True), row()])
    assert found.frame["out_of_scope"].to_list() == [False, False]
    assert "1 row is marked correct although its target is out of scope" in found.warnings[0]


def test_a_withheld_row_marked_correct_is_warned_of():
    found = responses([row(prediction=None, correct=True), row()])
    assert found.frame["right"].to_list() == [False, True]
    assert "1 row is marked correct although nothing was answered" in found.warnings[0]


def test_empty_predictions_are_warned_of():
    assert "1 prediction is empty text" in responses([row(prediction=""), row()]).warnings[0]


@pytest.mark.parametrize(
    ("spelling", "meaning"),
    [
        (True, True),
        (0, False),
        (1.0, True),
        ("Yes", True),
        ("no", False),
        ("TRUE", True),
        ("false", False),
        ("1", True),
    ],
)
def test_flags_are_read_in_many_spellings(spelling, meaning):
    assert judged({"correct": spelling, "confidence": 0.5})["right"].to_list() == [meaning]


@pytest.mark.parametrize("part", ["correct", "abstained", "failed"])
def test_a_flag_that_is_neither_is_refused_with_its_row(part):
    with pytest.raises(DataError, match=rf'row 2: {part} must be true or false; got "maybe" \(write true'):
        judged(row(**{part: "yes"}), row(**{part: "maybe"}))


def test_rows_need_something_that_tells_right_from_wrong():
    with pytest.raises(DataError, match=r"needs a column target or correct.*columns there: id, prediction"):
        judged({"id": 1, "prediction": "a"})
    with pytest.raises(DataError, match="needs a column prediction"):
        judged({"id": 1, "target": "a"})


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_file_of_unknown_columns_is_refused_with_their_names(tmp_path, ending):
    frame = pl.DataFrame({"foo": [1, 2], "bar": [3, 4]})
    path = tmp_path / f"run.{ending}"
    {"jsonl": frame.write_ndjson, "csv": frame.write_csv, "parquet": frame.write_parquet}[ending](path)
    with pytest.raises(DataError, match=r"needs a column target or correct") as caught:
        read_responses(path)
    assert "--map target=COLUMN --map prediction=COLUMN" in str(caught.value)
    assert "columns there: foo, bar" in str(caught.value)


def test_missing_columns_come_with_the_mapping_or_the_command_that_reads_them():
    with pytest.raises(
        DataError, match="--map target=gold_lable --map prediction='model answer' --map confidence='how sure'"
    ):
        judged({"gold_lable": "a", "model answer": "a", "how sure": 0.5})


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        (("dialogue", "success", "turns"), r"outcomes of dialogues, not answers \(demur outcome fit reads it"),
        (("performer", "wer", "done"), r"trials of performers, not answers \(demur gold reads it"),
        (("id", "reference", "hypotheses"), r"N-best lists, not answers \(demur nbest reads it"),
    ],
)
def test_a_table_of_another_question_is_refused_with_the_command_that_reads_it(columns, what):
    with pytest.raises(DataError, match=f"looks like {what}"):
        judged(dict.fromkeys(columns, 1))


def test_placeholders_are_withheld_where_nothing_contradicts_them():
    rows = [row(target="a", prediction=said) for said in ("a", "NO_MATCH", "fallback", "None")]
    assert judged(*rows)["answered"].to_list() == [True, False, False, False]
    assert judged(*rows, row(target="None", prediction="a"))["answered"].to_list() == [True, False, False, True, True]
    assert judged(row(target="a", prediction="None", correct=True))["answered"].to_list() == [True]
    assert judged(*rows, withheld=("x",))["answered"].to_list() == [True] * 4


@pytest.mark.parametrize("other", [{}, {"target": "a"}, {"prediction": "a"}])
def test_a_table_of_which_nothing_judges_any_answer_is_refused(other):
    with pytest.raises(DataError, match=r"row 1: correct must be given for every answer, as there is no column"):
        judged({"correct": None, "confidence": 1} | other)


@pytest.mark.parametrize("other", [{}, {"target": "a"}, {"prediction": "a"}])
def test_an_answer_that_nothing_judges_is_left_out_and_said_so(other):
    rows = [{"id": k, "correct": given, "confidence": 1} | other for k, given in enumerate([True, None, False, None])]
    rows[3]["abstained"] = True
    found = responses(rows)
    assert found.frame["id"].to_list() == ["0", "2", "3"]  # what was withheld needs no judgement
    assert found.left_out["id"].to_list() == ["1"]
    assert found.warnings[0].startswith("1 answer is not judged and left out")


def graded(*others):
    """Free texts that a grader marked, five of them right though no text equals its target, and other rows."""
    rows = [row(id=k, target=f"the {k}", prediction=f"a {k}", correct=k < 5, confidence=k / 10) for k in range(10)]
    return responses([*rows, *(row(id=10 + k, **one) for k, one in enumerate(others))])


def test_targets_that_do_not_compare_judge_no_answer_that_the_grader_left():
    found = graded({"target": "the 11", "prediction": "an 11", "correct": None})
    assert len(found) == 10
    assert found.warnings[0].startswith("1 answer is not judged")


def test_an_answer_to_what_is_out_of_scope_is_wrong_without_a_grader():
    assert len(graded({"target": "oos", "prediction": "x", "correct": None})) == 11


def test_correct_that_marks_a_few_rows_corrects_what_comparing_says():
    rows = [row(correct=True, prediction=f"b{k}") for k in range(6)]
    found = judged(*rows, *(row(correct=None, prediction="c") for _ in range(10)), row())
    assert found.height == 17
    assert found["right"].sum() == 7


def test_labels_of_other_types_are_compared_as_text():
    assert one(target=3, prediction=3)["right"] is True
    assert judged(row(target=3, prediction="3"), row(target=4, prediction="4"))["right"].all()
    assert judged(row(target=True, prediction=True))["prediction"].to_list() == ["true"]
    categories = pl.DataFrame({"target": ["a"], "prediction": ["a"], "confidence": [1]}).cast(
        {"target": pl.Categorical}
    )
    assert responses(categories).frame["right"].all()


def test_whole_numbers_match_although_gaps_made_them_fractions(tmp_path):
    frame = pl.DataFrame({"target": [3, 4, 5], "prediction": [3.0, None, 4.0], "confidence": [1, None, 1]})
    assert responses(frame).frame["right"].to_list() == [True, False, False]
    frame.write_csv(tmp_path / "run.csv")
    assert read_responses(tmp_path / "run.csv").frame["right"].to_list() == [True, False, False]


def test_text_that_looks_like_a_fraction_stays_as_it_is_among_other_text():
    assert judged(row(target="3.0", prediction="3"), row())["right"].to_list() == [False, True]


def test_a_missing_confidence_is_refused_with_the_count_and_the_way_out():
    with pytest.raises(DataError, match=r"row 2: confidence is missing for an answer \(2 such rows in all\).*lowest"):
        judged(row(), row(confidence=None), row(confidence=None), row(confidence=None, prediction=None))


def test_a_missing_confidence_can_be_the_lowest():
    found = responses([row(), row(confidence=None)], reading=Reading(missing_confidence="lowest"))
    assert found.frame["confidence"].to_list() == [0.5, -math.inf]
    assert "1 answer without confidence read as the lowest (-inf)" in found.notes


HINT = "--map confidence=COLUMN names them where a log has any"
NO_CONFIDENCES = f"no confidences: only what a system withholds by itself counts; {HINT}"


@pytest.mark.parametrize("cells", [{}, {"confidence": None}])
def test_a_table_without_any_confidence_is_read_with_all_answers_lowest(cells):
    plain = {"target": "a", "prediction": "a"} | cells
    found = responses([plain, plain | {"prediction": None}], system="mine")
    assert found.frame["confidence"].to_list() == [-math.inf, None]
    assert NO_CONFIDENCES in found.notes
    assert found.unranked == ("mine",)


def test_a_table_without_confidence_whose_answers_are_to_be_lowest_says_that():
    found = responses([{"target": "a", "prediction": "a"}], reading=Reading(missing_confidence="lowest"))
    assert found.notes == ("1 answer without confidence read as the lowest (-inf)",)
    assert found.unranked == ("system",)


def test_one_system_without_confidences_beside_one_that_has_them_is_named():
    found = responses([row(system="sure"), row(system="mute", confidence=None)])
    assert found.frame["confidence"].to_list() == [0.5, -math.inf]
    assert found.unranked == ("mute",)
    assert f"no confidences of mute: only what a system withholds by itself counts; {HINT}" in found.notes
    assert found.of("sure").unranked == ()


def test_a_system_that_lacks_some_confidences_is_refused_beside_one_that_lacks_all():
    rows = [row(system="mute", confidence=None), row(system="some"), row(system="some", confidence=None)]
    with pytest.raises(DataError, match=r"row 3: confidence is missing for an answer \(1 such row in all\)"):
        judged(*rows)


def test_a_confidence_of_what_was_withheld_shows_that_the_others_are_missing():
    with pytest.raises(DataError, match="row 1: confidence is missing for an answer"):
        judged(row(confidence=None), row(prediction=None))


def test_a_system_that_never_answers_is_not_unranked():
    found = responses([row(prediction=None, confidence=None)])
    assert found.unranked == ()
    assert NO_CONFIDENCES not in found.notes


def test_a_system_with_confidences_in_one_file_only_is_refused(tmp_path):
    sure = jsonl(tmp_path / "sure.jsonl", [row(system="x", id=1)])
    mute = jsonl(tmp_path / "mute.jsonl", [row(system="x", id=2, confidence=None)])
    expected = r'mute.jsonl:1: confidence is missing for an answer, though other answers of system "x" have one'
    with pytest.raises(DataError, match=expected):
        read_responses(sure, mute)
    lowest = read_responses(sure, mute, reading=Reading(missing_confidence="lowest"))
    assert lowest.frame["confidence"].to_list() == [0.5, -math.inf]


@pytest.mark.parametrize("name", ["confidense", "Confidance", "scores", "certainty_score", "intentProbability"])
def test_a_column_that_is_likely_a_misspelt_confidence_is_asked_about(name):
    rows = [{"target": "a", "prediction": "a", name: 0.5}]
    expected = rf'no column confidence \(did you mean --map confidence={name}, or columns={{"confidence": "{name}"}}\?'
    with pytest.raises(DataError, match=expected):
        judged(*rows)
    assert judged(*rows, columns={"confidence": name})["confidence"].to_list() == [0.5]
    assert judged(*rows, missing_confidence="lowest")["confidence"].to_list() == [-math.inf]


@pytest.mark.parametrize(
    ("part", "name"), [("target", "targets"), ("prediction", "predicton"), ("prediction", "predic")]
)
def test_a_needed_column_that_is_likely_misspelt_is_asked_about(part, name):
    cells = row()
    cells[name] = cells.pop(part)
    with pytest.raises(DataError, match=rf"needs a column {part}.*did you mean --map {part}={name}, or columns="):
        judged(cells)


def test_a_column_that_marks_answers_is_offered_where_targets_and_predictions_lack():
    with pytest.raises(DataError, match=r"did you mean --map correct=success, or columns=.*Otherwise name it with"):
        judged({"task": 1, "success": True})


def test_a_column_that_plays_a_part_is_not_offered_for_another():
    with pytest.raises(DataError, match=r"needs a column prediction \(name it with --map prediction=COLUMN"):
        judged({"target": "a", "predictor": "a"}, columns={"confidence": "predictor"})


def near_warnings(*rows, **options):
    found = responses([row(), *rows], reading=Reading(**options))
    return [warning for warning in found.warnings if "except for case or spaces" in warning]


def test_predictions_that_differ_in_case_or_spaces_only_are_warned_of_once():
    rows = [row(target="book_flight", prediction="Book_Flight"), row(target=["x", "pay bill"], prediction=" pay bill")]
    assert near_warnings(*rows) == [
        "2 predictions equal a target except for case or spaces, "
        'e.g. "Book_Flight" and "book_flight"; they count as wrong'
    ]
    assert near_warnings(rows[1]) == [
        '1 prediction equals a target except for case or spaces, e.g. " pay bill" and "pay bill"; it counts as wrong'
    ]


@pytest.mark.parametrize(
    "cells",
    [
        {"prediction": "A", "correct": False},
        {"prediction": "A", "abstained": True},
        {"prediction": "A", "target": ["a", "A"]},
        {"prediction": "A", "target": "b"},
        {"prediction": "A", "target": None},
    ],
)
def test_what_is_judged_withheld_right_or_plainly_wrong_is_no_near_match(cells):
    assert near_warnings(row(**cells)) == []


@pytest.mark.parametrize("times", [1, 30])
def test_near_matches_are_counted_among_few_rows_and_many(times):
    rows = [row(target="b", prediction="B"), row(target=["x", "c"], prediction=" c"), row(target="d", prediction="c")]
    assert near_warnings(*(rows * times))[0].startswith(f"{2 * times} predictions equal a target")


def test_a_row_with_two_near_targets_counts_once():
    assert near_warnings(row(target=["b", "B"], prediction=" b"))[0].startswith("1 prediction equals")


def test_labels_that_are_near_only_across_rows_are_not_warned_of():
    assert near_warnings(row(target="b", prediction="C"), row(target="c", prediction="d")) == []


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["77.1 %", " 5%", None], [0.771, 0.05, judging.LOWEST]),
        (["0,25", "-1,5", "1"], [0.25, -1.5, 1]),
        (["77,5\N{NO-BREAK SPACE}%", "100 %", "0%"], [0.775, 1, 0]),
        (["0.5", " 1e-2 ", "1"], [0.5, 0.01, 1]),
    ],
)
def test_percent_signs_and_decimal_commas_are_read_where_all_cells_have_them(cells, numbers):
    rows = [row(confidence=cell) for cell in cells]
    assert judged(*rows, missing_confidence="lowest")["confidence"].to_list() == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (["77 %", "50%", "0.4"], 'row 3: confidence must be written in one way: 2 of 3 .* sign; got "0.4" \\(write'),
        (["0.1", "0.2", "50%"], 'row 3: confidence must be written in one way: 1 of 3 .* percent sign; got "50%"'),
        (["0,1", "0,2", "0.4"], 'row 3: confidence must be written in one way: 2 of 3 .* comma; got "0.4" \\(write'),
        (["0,1", "high", None], 'row 2: confidence must be a number; got "high"'),
        (["1,2,3"], 'row 1: confidence must be a number; got "1,2,3"'),
        (["0.1", "N/A", " "], 'row 2: confidence must be a number; got "N/A" \\(leave the cell empty'),
        (["10 %", "none"], 'row 2: confidence must be written in one way: .* got "none" \\(leave the cell empty'),
    ],
)
def test_signs_and_commas_in_some_cells_only_are_refused_at_the_first_of_the_fewer(cells, rule):
    with pytest.raises(DataError, match=rule):
        judged(*(row(confidence=cell) for cell in cells), missing_confidence="lowest")


def test_confidence_must_not_be_nan_even_where_nothing_was_answered():
    frame = pl.DataFrame({"target": ["a", "a"], "prediction": ["a", None], "confidence": [1.0, math.nan]})
    with pytest.raises(DataError, match="row 2: confidence must not be NaN"):
        responses(frame)


def test_nan_in_jsonl_is_refused_with_its_line(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(), row(confidence=math.nan)])
    with pytest.raises(DataError, match=r"run.jsonl:2: confidence must not be NaN"):
        read_responses(path)


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_an_infinite_confidence_is_refused_with_its_line_and_what_to_write_instead(tmp_path, infinite):
    path = jsonl(tmp_path / "run.jsonl", [row(), row(confidence=infinite)])
    with pytest.raises(
        DataError, match=r"run.jsonl:2: confidence must not be NaN or infinite \(leave it empty .* -1e9"
    ):
        read_responses(path)


def test_confidences_outside_0_1_are_noted_with_the_first_of_their_lines(tmp_path):
    strays = {1: 95.0, 3: -0.2, 4: 1.5, 5: 80.0}
    path = jsonl(tmp_path / "run.jsonl", [row(id=k, confidence=strays.get(k, 0.5)) for k in range(10)])
    places = ", ".join(f"{path}:{line}" for line in (2, 4, 5))
    (note,) = (note for note in read_responses(path).notes if "outside" in note)
    assert note.endswith(f"are of 6 of 10 answers: 4 confidences lie outside [0, 1] ({places} ...)")


def test_scores_that_are_no_probabilities_at_all_are_not_noted():
    rows = [row(id=k, confidence=-float(k)) for k in range(10)]
    assert not any("outside" in note for note in responses(rows).notes)
    assert not any("outside" in note for note in responses([row(confidence=1 + 1e-7)]).notes)


def test_confidence_that_is_no_number_is_refused_with_line_column_and_mapping(tmp_path):
    rows = [{"target": "a", "prediction": "a", "score": value} for value in (0.5, "high")]
    path = jsonl(tmp_path / "run.jsonl", rows)
    expected = r'run.jsonl:2: confidence must be a number; got "high" \(column mapped from "score"\)'
    with pytest.raises(DataError, match=expected):
        read_responses(path)
    pl.DataFrame(rows, strict=False).write_csv(tmp_path / "run.csv")
    (tmp_path / "run.csv").write_text("target,prediction,score\na,a,0.5\na,a,high\n")
    with pytest.raises(DataError, match=expected.replace("run.jsonl:2", "run.csv:3")):
        read_responses(tmp_path / "run.csv")
    pl.DataFrame({"target": ["a"], "prediction": ["a"], "score": ["high"]}).write_parquet(tmp_path / "run.parquet")
    with pytest.raises(DataError, match=expected.replace("run.jsonl:2", "run.parquet: row 1")):
        read_responses(tmp_path / "run.parquet")


def test_numbers_written_as_text_are_numbers(tmp_path):
    path = jsonl(tmp_path / "run.jsonl", [row(confidence="0.25"), row(confidence=1)])
    assert read_responses(path).frame["confidence"].to_list() == [0.25, 1.0]


def test_a_flag_is_no_confidence():
    with pytest.raises(DataError, match="row 1: confidence must be a number; got True"):
        judged(row(confidence=True))


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, None])
def test_a_weight_must_be_a_number_of_0_or_more(weight):
    frame = pl.DataFrame([row(weight=1.0), row(weight=weight)], strict=False)
    with pytest.raises(DataError, match="row 2: weight must be a number of 0 or more"):
        responses(frame)


def test_weights_are_kept():
    assert judged(row(weight=0), row(weight=2.5))["weight"].to_list() == [0.0, 2.5]


def test_labels_coded_differently_are_refused_with_examples():
    rows = [row(target=f"intent {n}", prediction=n) for n in range(5)]
    with pytest.raises(DataError, match=r'targets are "intent 0", "intent 1".*predictions "0", "1", "2".*coded diff'):
        judged(*rows)


def test_a_system_that_only_ever_gives_one_label_may_be_wrong():
    found = responses([row(prediction="b"), row(prediction="b")])
    assert not found.frame["right"].any()
    assert "no prediction occurs among the targets" in found.warnings[0]


def test_one_system_coded_differently_is_found_among_others():
    rows = [row(system="good", target=label, prediction=label) for label in "abc"]
    rows += [row(system="odd", target=label, prediction=label.upper()) for label in "abc"]
    with pytest.raises(DataError, match='system "odd": no prediction occurs among the targets'):
        judged(*rows)


def warns_of_no_targets(found):
    return any("every target is null" in warning for warning in found.warnings)


def test_a_log_whose_targets_are_all_null_is_warned_of():
    rows = [row(id=k, target=None) for k in range(3)]
    assert warns_of_no_targets(responses(rows))
    assert not warns_of_no_targets(responses([*rows, row(id=3)]))
    assert not warns_of_no_targets(responses([one | {"target": "oos"} for one in rows]))
    assert not warns_of_no_targets(responses([one | {"correct": False} for one in rows]))
    assert not warns_of_no_targets(responses(rows, reading=Reading(where=(("confidence", "0.5"),))))


def test_a_part_of_a_log_may_be_all_out_of_scope(tmp_path):
    parts = [jsonl(tmp_path / f"{target}.jsonl", [row(target=target, system="s")]) for target in ("a", None)]
    assert not warns_of_no_targets(read_responses(*parts))


def test_where_confidences_are_not_used_nothing_is_noted_of_them():
    rows = [row(id="1", confidence=90), row(id="2", confidence=None), row(id="3", confidence=1)]
    for used in (True, False):
        found = responses(rows, reading=Reading(missing_confidence="lowest", ranked=used))
        assert any("confidence" in note for note in (*found.notes, *found.warnings)) == used


def test_null_predictions_are_counted_as_rows_where_a_row_stands_for_several_inputs():
    found = responses([row(id="1", weight=1), row(id="2", prediction=None, weight=7)])
    assert "1 row without a prediction read as withheld" in found.notes
