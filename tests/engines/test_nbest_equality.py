"""Every measure of N-best lists on every engine gives the number that arrays give."""

from functools import cache
from itertools import product

import narwhals as nw
import polars as pl
import pytest

from demur.core.stats.measure import Score, term_totals
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.nbest_lists.exploded import ExplodedLists
from demur.nbest_lists.measures import ICE_PARTS, NBEST, OF_ACTS, OF_ITEMS
from demur.returns.verify import TOLERANCE
from engines.tables import IN_MEMORY
from nbest_lists.nbest_logs import log, table

TABLES = {
    "a log with weights": lambda: table(log(400, seed=1, weighted=True)),
    "a log of utterances that count alike": lambda: table(log(400, seed=2)),
    "one utterance with nothing hypothesised": lambda: table([{**log(1, seed=0)[0], "hypotheses": []}]),
    "all references empty": lambda: table([{**row, "reference": []} for row in log(20, seed=3)]),
}

every_engine = pytest.mark.parametrize("engine", [*IN_MEMORY, "spark"])

every_table = pytest.mark.parametrize(
    ("engine", "which"),
    [
        *product(IN_MEMORY, TABLES),
        *product(["spark"], ["a log with weights", "one utterance with nothing hypothesised"]),
    ],
)


@cache
def exploded(which):
    """The lists of a table as rows, made once."""
    return ExplodedLists.of(TABLES[which]())


def same(value):
    return pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE, nan_ok=True)


def scores(measures, frame):
    """Scores of measures that are sums, in one pass over the rows."""
    return list(map(Score.of, measures, term_totals([*measures], nw.from_native(frame))))


def values_by_arrays(taken):
    """The terms of all measures summed in NumPy by utterance, then over utterances."""
    summed = taken.totals(OF_ACTS, OF_ITEMS)
    return {key: float(summed.values(key, summed.totals)) for key in summed.measures}


@every_table
def test_every_measure_that_is_a_sum_has_the_value_that_arrays_give_and_one_signature(handed_over, which):
    rows, found = exploded(which).rows, {}
    for measures, frame in ((OF_ACTS, rows.acts), (OF_ITEMS, rows.items)):
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=4)
        mine, theirs = (scores(measures.values(), each) for each in (handed_over(frame), shuffled))
        assert [one.signature for one in mine] == [one.signature for one in theirs]
        found |= {key: one.value for key, one in zip(measures, mine, strict=True)}
    assert found == same(values_by_arrays(exploded(which)))


@every_table
def test_every_part_of_the_ice_has_the_value_that_arrays_give(handed_over, which):
    expected = exploded(which).items.sweep()
    sweep = Sweep.from_frame(nw.from_native(handed_over(exploded(which).rows.items)))
    found = {key: Score.of(measure, sweep).value for key, measure in ICE_PARTS.items()}
    assert found == same({key: float(measure.finish(expected)) for key, measure in ICE_PARTS.items()})
    if which == "a log of utterances that count alike":
        assert sweep == expected


@every_engine
def test_a_frame_without_rows_is_refused_by_every_kind_of_measure(handed_over):
    rows = exploded("a log with weights").rows
    acts, items = (handed_over(frame.clear()) for frame in (rows.acts, rows.items))
    for measure, empty in ((NBEST["ser"], acts), (NBEST["ice"], items), (NBEST["missing"], items)):
        with pytest.raises(DataError, match="at least one row; the table is empty"):
            measure(empty)


def test_the_rows_have_only_columns_that_every_engine_knows():
    rows = exploded("a log with weights").rows
    assert {*rows.items.dtypes, *rows.acts.dtypes} <= {pl.Float64, pl.Boolean, pl.Int64, pl.Int32}
