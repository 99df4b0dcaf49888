"""Every measure of N-best lists on every engine gives the number that arrays give."""

from itertools import product

import narwhals as nw
import polars as pl
import pytest

from demur.core.stats.measure import Score
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.nbest_lists.exploded import ExplodedLists
from demur.nbest_lists.measures import ICE_PARTS, NBEST, OF_ACTS, OF_ITEMS
from demur.returns.verify import TOLERANCE
from engines.test_equality import IN_MEMORY, streaming
from nbest_lists.nbest_logs import log, table

TABLES = {
    "a log with weights": lambda: table(log(400, seed=1, weighted=True)),
    "a log of utterances that count alike": lambda: table(log(400, seed=2)),
    "one utterance with nothing hypothesised": lambda: table([{**log(1, seed=0)[0], "hypotheses": []}]),
    "all references empty": lambda: table([{**row, "reference": []} for row in log(20, seed=3)]),
}

ON_SPARK = ("a log of utterances that count alike", "one utterance with nothing hypothesised")

every_engine = pytest.mark.parametrize("engine", [*IN_MEMORY, "spark"])

every_table = pytest.mark.parametrize(
    ("engine", "which"), [*product(IN_MEMORY, TABLES), *(("spark", which) for which in ON_SPARK)]
)


@pytest.fixture
def handed_over(engine, request):
    """Hands a frame to an engine: on Spark in several parts, kept while the measures pass over them."""
    if engine != "spark":
        with streaming(engine):
            yield IN_MEMORY[engine]
        return
    session = request.getfixturevalue("spark")
    kept = []

    def on_the_cluster(frame):
        kept.append(session.createDataFrame(frame.to_arrow()).repartition(3).cache())
        return kept[-1]

    yield on_the_cluster
    for frame in kept:
        frame.unpersist()


def same(value):
    return pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE, nan_ok=True)


def values_by_arrays(taken):
    """The terms of all measures summed in NumPy by utterance, then over utterances."""
    summed = taken.totals(OF_ACTS, OF_ITEMS)
    return {key: float(summed.values(key, summed.totals)) for key in summed.measures}


@every_table
def test_every_measure_that_is_a_sum_has_the_value_that_arrays_give(handed_over, which):
    taken = ExplodedLists.of(TABLES[which]())
    acts, items = handed_over(taken.rows.acts), handed_over(taken.rows.items)
    found = {key: measure(acts).value for key, measure in OF_ACTS.items()}
    found |= {key: measure(items).value for key, measure in OF_ITEMS.items()}
    assert found == same(values_by_arrays(taken))


@every_table
def test_every_part_of_the_ice_has_the_value_that_arrays_give(handed_over, which):
    taken = ExplodedLists.of(TABLES[which]())
    sweep = Sweep.from_frame(nw.from_native(handed_over(taken.rows.items)))
    found = {key: Score.of(measure, sweep).value for key, measure in ICE_PARTS.items()}
    assert found == same({key: float(measure.finish(taken.item_sweep)) for key, measure in ICE_PARTS.items()})
    if which == "a log of utterances that count alike":
        assert sweep == taken.item_sweep


@every_engine
def test_a_frame_without_rows_is_refused_by_every_measure(handed_over):
    rows = ExplodedLists.of(TABLES["a log with weights"]()).rows
    acts, items = (handed_over(frame.clear()) for frame in (rows.acts, rows.items))
    for key, measure in NBEST.items():
        with pytest.raises(DataError, match="at least one row; the table is empty"):
            measure(acts if key in OF_ACTS else items)


@every_engine
def test_the_order_of_rows_moves_no_signature(handed_over):
    rows = ExplodedLists.of(TABLES["a log with weights"]()).rows
    for measures, frame in ((OF_ACTS, rows.acts), (OF_ITEMS, rows.items)):
        whole, shuffled = handed_over(frame), frame.sample(fraction=1.0, shuffle=True, seed=4)
        for measure in measures.values():
            assert measure(whole).signature == measure(shuffled).signature


def test_the_rows_have_only_columns_that_every_engine_knows():
    rows = ExplodedLists.of(TABLES["a log with weights"]()).rows
    assert {*rows.items.dtypes, *rows.acts.dtypes} <= {pl.Float64, pl.Boolean, pl.Int64, pl.Int32}
