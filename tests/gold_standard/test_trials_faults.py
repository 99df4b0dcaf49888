"""What a table of trials may not hold, and what is said of it."""

import math

import polars as pl
import pytest

from demur.errors import DataError, UsageError
from demur.gold_standard.trials import TrialReading, read_trials, trials

HEADER = "performer,role,wer,done"


def refused(tmp_path, said, *lines, header=HEADER, **options):
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    with pytest.raises(DataError, match=said):
        read_trials(path, reading=TrialReading(**{"x": "wer", "y": "done", **options}))


GOLD, SYSTEM = "ann,gold,0.1,1", "A,system,0.2,0"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A,boss,0.2,0", r't.csv:3: role must be gold or system; got "boss"'),
        ("A,,0.2,0", r't.csv:3: role must be gold or system; got "nothing"'),
        (",system,0.2,0", r't.csv:3: performer must name the performer; got "nothing"'),
        ("A,system,noisy,0", r't.csv:3: wer must be a number; got "noisy"'),
        ('A,system,"0,2",0', r't.csv:3: wer must be a number; got "0,2" \(write a decimal point'),
        ("A,system,inf,0", r't.csv:3: wer must be a finite number; got "inf"'),
        ("A,system,0.2,-inf", r't.csv:3: done must be a finite number; got "-inf"'),
        ("A,system,0.2,well", r't.csv:3: done must be a number; got "well"'),
        ("A,system,0.2,0.5", r"t.csv:3: done must be 0 or 1 .* rates without n; got 0.5 .*column n; or --upper 1"),
        ("A,system,0.2,-1", r"t.csv:3: done must be at least 0; got -1.0 \(--lower L, or lower=L"),
        (
            "ann,system,0.2,0",
            r't.csv:3: performer "ann" is system here and gold at .*t.csv:2 \(a performer has one role',
        ),
        ("A,gold,0.2,0", r't.csv: there is no system beside the gold standard, "A", "ann"'),
    ],
)
def test_a_line_that_breaks_a_rule_is_named(tmp_path, line, said):
    refused(tmp_path, said, GOLD, line)


@pytest.mark.parametrize(
    ("value", "bounds", "said"),
    [
        ("8", {"lower": 1, "upper": 7}, r"t.csv:3: done must lie between 1 and 7; got 8.0 \(--lower and --upper"),
        ("0", {"lower": 1, "upper": 7}, r"t.csv:3: done must lie between 1 and 7; got 0.0"),
        ("1.01", {"upper": 1}, r"t.csv:3: done must lie between 0 and 1; got 1.01"),
        ("0.5", {"lower": 0.75}, r"t.csv:3: done must be at least 0.75; got 0.5"),
    ],
)
def test_a_score_outside_its_bounds_is_refused(tmp_path, value, bounds, said):
    refused(tmp_path, said, GOLD, f"A,system,0.2,{value}", **bounds)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("1.2,5", r"t.csv:3: done must lie between 0 and 1; got 1.2 \(with a column n it is a rate; --upper U"),
        ("0.5,0", r"t.csv:3: n must be a whole number of at least 1: the trials that done is of; got 0.0"),
        ("0.5,2.5", r"t.csv:3: n must be a whole number of at least 1: .*; got 2.5"),
        ("0.5,-3", r"t.csv:3: n must be a whole number of at least 1: .*; got -3"),
        ("0.5,", r't.csv:3: n must be a whole number of at least 1: .*; got "nothing"'),
        ("0.5,many", r't.csv:3: n must be a number; got "many"'),
        ("0.5,inf", r't.csv:3: n must be a finite number; got "inf"'),
    ],
)
def test_a_rate_needs_a_share_and_an_n(tmp_path, cells, said):
    refused(tmp_path, said, f"{GOLD},4", f"A,system,0.2,{cells}", header=f"{HEADER},n")


def test_the_column_a_fault_was_mapped_from_is_told(tmp_path):
    said = r't.csv:3: n must be a number; got "many" \(column mapped from "trials"\)'
    refused(tmp_path, said, f"{GOLD},4", "A,system,0.2,1,many", header=f"{HEADER},trials")


@pytest.mark.parametrize("cell", ['"{""asr"": true}"', "[asr]"])
def test_components_that_are_no_list_of_names_are_refused(tmp_path, cell):
    said = (
        r"t.csv:3: components must list the names of what was on; got .* \(write asr\+nlu, a list of names, or none\)"
    )
    refused(tmp_path, said, f"{GOLD},", f"A,system,0.2,1,{cell}", header=f"{HEADER},components")


def test_columns_that_are_not_there_are_answered_with_the_nearest(tmp_path):
    said = r't.csv: there is no column "wre"; did you mean "wer" or "role"\? \(--x names the column\)'
    refused(tmp_path, said, GOLD, SYSTEM, x="wre")
    refused(tmp_path, r'no column "don"; did you mean "done"\? \(--y names', GOLD, SYSTEM, y="don")
    said = r't.csv: there is no column "calller" to map subject from \(did you mean "caller"\?\)'
    refused(tmp_path, said, f"{GOLD},c", header=f"{HEADER},caller", columns={"subject": "calller"})
    refused(tmp_path, 'no column is called "subjct" here', GOLD, columns={"subjct": "caller"})


def test_a_table_without_performers_is_refused_with_a_way_out(tmp_path):
    said = r"t.csv needs a column performer; there are who, wer, done \(--map performer=COLUMN"
    refused(tmp_path, said, "ann,0.1,1", header="who,wer,done")


def test_two_columns_that_may_be_the_subject_are_refused(tmp_path):
    said = r't.csv: subject may be any of the columns "user", "caller" \(choose one, for example --map subject=user'
    refused(tmp_path, said, f"{GOLD},a,b", header=f"{HEADER},user,caller")


def test_a_table_without_a_gold_performer_is_refused_with_the_performers(tmp_path):
    said = (
        r't.csv: there is no gold performer among "A", "B" '
        r'\(--gold NAME, or gold=\("NAME",\), names it, or a column role says gold or system\)'
    )
    refused(tmp_path, said, "A,0.1,1", "B,0.1,1", header="performer,wer,done")
    refused(tmp_path, said, "A,system,0.1,1", "B,machine,0.1,1")
    many = [f"s{number},0.1,1" for number in range(10)]
    refused(tmp_path, 'among "s0", .* "s7" and 2 more', *many, header="performer,wer,done")


def test_a_gold_performer_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    said = r't.csv: there is no performer "anne" to be the gold standard \(did you mean "ann"\?\)'
    refused(tmp_path, said, GOLD, SYSTEM, gold=("anne",))


def test_a_system_may_not_be_called_as_a_gold_standard_of_several():
    rows = [{"performer": name, "wer": 0.1, "done": 1} for name in ("human", "wizard", "gold standard")]
    with pytest.raises(DataError, match='data: a system is called "gold standard", as is the gold standard of several'):
        trials(rows, reading=TrialReading(x="wer", y="done"))


def test_a_study_without_a_gold_performer_says_what_made_it_a_study(tmp_path):
    for name, performer in (("1", "wizard"), ("2", "A")):
        (tmp_path / f"{name}.csv").write_text(f"performer,wer,done\n{performer},0.1,1\n")
    with pytest.raises(DataError, match=r'study "1": there is no system .*; each file is a study of its own unless'):
        read_trials(tmp_path / "1.csv", tmp_path / "2.csv", reading=TrialReading(x="wer", y="done"))
    said = r'study "book": there is no gold performer among "A" \(.*; each task is read as a study of its own\)'
    refused(tmp_path, said, "A,0.1,1,book", "wizard,0.1,1,cancel", header="performer,wer,done,task")


def test_a_study_without_a_name_is_refused(tmp_path):
    said = r't.csv:3: study must name the study; got "nothing"'
    refused(tmp_path, said, f"{GOLD},hotels", f"{SYSTEM},", header=f"{HEADER},study")


def test_tables_without_trials_are_refused(tmp_path):
    refused(tmp_path, "t.csv holds a header but no rows")
    refused(tmp_path, "t.csv: every row has no wer or no done", "ann,gold,,1", "A,system,0.1,")
    refused(tmp_path, "t.csv: no row is left where role is boss", GOLD, where=(("role", "boss"),))
    with pytest.raises(DataError, match="data holds no rows"):
        trials(pl.DataFrame(schema={"performer": pl.String}), reading=TrialReading(x="wer", y="done"))


def test_a_file_of_which_no_row_is_left_is_told(tmp_path):
    (tmp_path / "1.csv").write_text("performer,wer,done,noise\nwizard,0.1,1,car\nA,0.1,1,car\n")
    (tmp_path / "2.csv").write_text("performer,wer,done,noise\nwizard,0.1,1,home\n")
    reading = TrialReading(x="wer", y="done", where=(("noise", "car"),))
    (found,) = read_trials(tmp_path / "1.csv", tmp_path / "2.csv", reading=reading)
    assert found.study == "1"
    assert len(found.warnings) == 1
    assert found.warnings[0].endswith("2.csv: no row is left where noise is car")


def test_the_file_a_fault_stands_in_is_the_right_one_of_several(tmp_path):
    (tmp_path / "1.csv").write_text("performer,wer,done,study\nwizard,0.1,1,s\nA,0.1,1,s\n")
    (tmp_path / "2.csv").write_text("performer,wer,done,study\nwizard,0.1,1,s\nA,0.1,0.5,s\n")
    with pytest.raises(DataError, match=r"2.csv:3: done must be 0 or 1"):
        read_trials(tmp_path / "1.csv", tmp_path / "2.csv", reading=TrialReading(x="wer", y="done"))


@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (2, 1), (0, math.inf), (-math.inf, 1), (0, math.nan)])
def test_bounds_between_which_nothing_lies_are_refused(lower, upper):
    with pytest.raises(UsageError, match="done cannot lie between"):
        TrialReading(x="wer", y="done", lower=lower, upper=upper)


def test_a_column_has_one_part():
    rows = [{"performer": "wizard", "wer": 0.1, "done": 1}]
    with pytest.raises(UsageError, match='x and y are both the column "wer"'):
        trials(rows, reading=TrialReading(x="wer", y="wer"))
    with pytest.raises(UsageError, match='the column "wer" is x and cannot be n as well'):
        trials(rows, reading=TrialReading(x="wer", y="done", columns={"n": "wer"}))


def test_all_faults_of_columns_are_told_at_once() -> None:
    rows = [{"performer": None, "role": "gold", "wer": "x", "done": 1}, {"performer": "A", "role": "boss", "done": 1}]
    with pytest.raises(DataError, match="must name the performer") as caught:
        trials(rows, reading=TrialReading(x="wer", y="done"))
    assert [fault.rule for fault in caught.value.faults] == [
        "must name the performer",
        "must be a number",
        "must be gold or system",
    ]
    with pytest.raises(DataError, match=r"there is no column .wer.") as caught:
        trials([{"who": "A"}], reading=TrialReading(x="wer", y="done"))
    assert len(caught.value.faults) == 3
