"""Agreement of judges: worked examples of the publications, slow twins, and intervals."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur
from commands import Demur
from demur.errors import DataError
from demur.judges.agreement import ALPHA, COHEN, FLEISS, NOBODY_TWICE, OBSERVED, ONE_LABEL, Ratings, agreement
from reference import agreement as slow

FOUR_OBSERVERS = (
    *("1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3"),
    *(". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."),
)
"""Krippendorff (2011), section C: four observers, twelve units, some values missing."""

FOURTEEN_RATERS = """
0 0 0 0 14; 0 2 6 4 2; 0 0 3 5 6; 0 3 9 2 0; 2 2 8 1 1; 7 7 0 0 0; 3 2 6 3 0; 2 5 3 2 2; 6 5 2 1 0; 0 2 2 3 7
"""
"""How many of fourteen raters put each of ten subjects into each of five categories."""


def ratings_of(judges: tuple[str, ...]) -> Ratings:
    columns = [[None if sign == "." else sign for sign in one.split()] for one in judges]
    return Ratings.of([list(row) for row in zip(*columns, strict=True)], [f"j{k}" for k in range(len(judges))])


def test_alpha_is_that_of_the_worked_example_with_missing_values() -> None:
    assert ALPHA.figure(ratings_of(FOUR_OBSERVERS)).value == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_that_of_the_worked_example_of_two_observers() -> None:
    two = ratings_of(("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"))
    assert ALPHA.figure(two).value == pytest.approx(0.095, abs=5e-4)


def test_fleiss_kappa_is_that_of_the_worked_example() -> None:
    counts = [list(map(int, row.split())) for row in FOURTEEN_RATERS.split(";")]
    rows = [[str(label) for label, times in enumerate(row) for _ in range(times)] for row in counts]
    assert FLEISS.figure(Ratings.of(rows, [str(k) for k in range(14)])).value == pytest.approx(0.210, abs=5e-4)


def test_cohens_kappa_is_that_of_the_worked_example() -> None:
    """Fifty proposals that two readers accept or not: 20 by both, 5 and 10 by one of them, 15 by none."""
    rows = [["yes", "yes"]] * 20 + [["yes", "no"]] * 5 + [["no", "yes"]] * 10 + [["no", "no"]] * 15
    found = agreement(Ratings.of(rows, ["a", "b"]))
    assert found.figures["cohen_kappa"].value == pytest.approx(0.4)
    assert found.figures["observed"].value == pytest.approx(0.7)
    assert found.pairs[0].table.tolist() == [[20, 5], [10, 15]]


TABLES = st.integers(2, 4).flatmap(
    lambda judges: st.lists(
        st.lists(st.sampled_from(["right", "wrong", "unsure", None]), min_size=judges, max_size=judges), max_size=9
    )
)


@given(TABLES)
def test_coefficients_are_those_of_the_slow_twins(rows: list[list[str | None]]) -> None:
    judges = [f"j{k}" for k in range(len(rows[0]) if rows else 2)]
    ratings = Ratings.of(rows, judges, ("right", "wrong", "unsure"))
    twins = {OBSERVED: slow.observed, FLEISS: slow.fleiss, ALPHA: slow.krippendorff}
    for measure, twin in twins.items():
        found = measure.figure(ratings, replicates=50)
        assert found.value == pytest.approx(twin(rows), nan_ok=True, abs=1e-12)
        assert math.isnan(found.low) or found.low <= found.value <= found.high
    pair = ratings.pair(0, 1)
    assert COHEN.figure(pair, replicates=50).value == pytest.approx(slow.cohen(rows), nan_ok=True, abs=1e-12)


def test_intervals_are_those_of_judging_other_answers() -> None:
    """Two judges who are right with .9: the spread of kappa over samples is about that of its replicates."""
    rng = np.random.default_rng(0)

    def drawn() -> Ratings:
        truth = rng.integers(0, 2, 200)
        codes = np.where(rng.random((200, 2)) < 0.9, truth[:, None], 1 - truth[:, None])
        return Ratings(codes, ("right", "wrong"), ("a", "b"))

    values = [COHEN.figure(drawn(), replicates=50).value for _ in range(200)]
    figure = COHEN.figure(drawn(), replicates=1000)
    assert (figure.high - figure.low) / 4 == pytest.approx(float(np.std(values)), rel=0.3)


def test_judges_who_always_agree_may_still_not_be_perfect() -> None:
    found = agreement(Ratings.of([["right", "right"]] * 30 + [["wrong", "wrong"]] * 10, ["a", "b"]))
    for name in ("observed", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha"):
        figure = found.figures[name]
        assert figure.value == figure.high == pytest.approx(1.0)
        assert 0.6 < figure.low < 0.95


def test_what_is_undefined_says_why() -> None:
    nobody = agreement(Ratings.of([["right", None], [None, "wrong"]], ["a", "b"]))
    assert {figure.why for figure in nobody.figures.values()} == {NOBODY_TWICE}
    alike = agreement(Ratings.of([["right", "right"]] * 9, ["a", "b"]))
    assert alike.figures["krippendorff_alpha"].why == ONE_LABEL
    assert alike.figures["observed"].value == 1.0
    few = agreement(Ratings.of([["right", "wrong"], ["wrong", "wrong"]], ["a", "b"]))
    assert math.isnan(few.figures["cohen_kappa"].low)
    assert not math.isnan(few.figures["cohen_kappa"].value)


def test_a_table_of_judgements_is_read_whatever_the_order(tmp_path: Path) -> None:
    rows = [f"{k},{judge},{'right' if k % 3 or judge == 'a' else 'wrong'}" for k in range(12) for judge in "abc"]
    for name, lines in (("one.csv", rows), ("two.csv", rows[::-1])):
        (tmp_path / name).write_text("\n".join(["id,annotator,rating", *lines]))
    one, two = (demur.agreement(tmp_path / name, replicates=50).to_dict() for name in ("one.csv", "two.csv"))
    assert {**one, "source": ""} == {**two, "source": ""}
    assert len(one["agreement"]["pairs"]) == 3
    assert one["agreement"]["pairs"][2]["cohen_kappa"]["value"] == 1.0


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("item,judge\n1,a", "has no column label"),
        ("item,judge,label\n1,a,right\n1,a,wrong", '"a" judged item "1" twice'),
        ("item,judge,label\n1,a,", "holds no judgements"),
        ("item,judge,label\n,a,right", "must be there in every row"),
    ],
)
def test_a_table_that_is_none_of_judgements_is_refused(tmp_path: Path, table: str, fault: str) -> None:
    (tmp_path / "said.csv").write_text(table)
    with pytest.raises(DataError, match=fault):
        demur.agreement(tmp_path / "said.csv")


def test_a_table_of_judgements_has_no_log(tmp_path: Path, demur: Demur) -> None:
    (tmp_path / "said.csv").write_text("item,judge,label\n1,a,right\n1,b,right\n")
    done = demur("agreement", "said.csv", "-o", "log.jsonl")
    assert done.returncode == 2
    assert "a table of judgements has no log" in done.stderr
