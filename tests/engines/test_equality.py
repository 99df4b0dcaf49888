"""Every measure on every engine gives the number that arrays give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import DataError
from demur.returns.classes import MEASURES
from demur.returns.verify import Equality, differences, sample_log, tally_differences
from engines.tables import IN_MEMORY, TABLES, drawn_rows, judged, streaming

every_engine = pytest.mark.parametrize("engine", [*IN_MEMORY, "spark"])
ON_SPARK = ("zeros, infinities, labels alike and neighbours",)
"""Tables that have what Spark does in its own way; `demur verify-engine` is run there on a log, with weights too."""


def equality(engine, frame, reference):
    return Equality(engine, reference.height, differences(frame, reference))


@pytest.mark.parametrize(
    ("engine", "table"),
    [*((engine, table) for engine in IN_MEMORY for table in TABLES), *(("spark", table) for table in ON_SPARK)],
)
def test_every_measure_has_the_value_that_arrays_give(engine, handed_over, table):
    frame = TABLES[table]()
    found = equality(engine, handed_over(frame), frame)
    assert found.faults == ()
    assert [one.measure for one in found.differences] == list(MEASURES)


@pytest.mark.parametrize("engine", IN_MEMORY)
@settings(max_examples=settings.default.max_examples // 3)
@given(rows=drawn_rows(st.sampled_from([1, 2, 0.5])))
def test_every_measure_of_drawn_rows_has_the_value_that_arrays_give(engine, rows):
    frame = judged(rows)
    with streaming(engine):
        assert equality(engine, IN_MEMORY[engine](frame), frame).faults == ()


@pytest.mark.parametrize(
    ("engine", "weighted"), [("polars lazy", False), ("polars streaming", True), ("duckdb", False), ("duckdb", True)]
)
def test_every_bucket_has_the_counts_and_the_least_number_that_memory_gives(handed_over, weighted):
    raw = sample_log(1000, seed=2)
    raw = raw if weighted else raw.drop("weight")
    found = tally_differences(handed_over(raw), raw)
    assert [one for one in found if not one.holds] == []
    assert len(found) == 24  # of all rows, of those in scope, and of those out of it


@every_engine
def test_an_empty_table_is_refused_by_every_kind_of_measure(handed_over):
    empty = handed_over(judged([]))
    for measure in {type(measure).reduce: measure for measure in MEASURES.values()}.values():
        with pytest.raises(DataError, match="at least one row; the table is empty"):
            measure(empty)


@every_engine
def test_an_answer_without_confidence_is_refused(handed_over):
    frame = judged([(0.5, "a", "a", 1), (None, "a", "b", 1)])
    with pytest.raises(DataError, match="confidence must be a number for every answered row"):
        MEASURES["augrc"](handed_over(frame))
