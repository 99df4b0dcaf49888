import json

import narwhals as nw
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import apply_recalibration, classes, drift, fit_recalibration, score
from demur.core.io.growing import LogBatch
from demur.errors import DataError, UsageError
from demur.returns.confidences import scale_counts
from demur.returns.engine_judging import judge_lazily
from demur.returns.follow import BatchReader
from demur.returns.judging import LOWEST
from demur.returns.slices import slice_columns
from demur.returns.table import Reading, responses

VERBAL = [0, 5, 20, 50, 60, 75, 80, 90, 95, 100]


def log(confidences, name="confidence", **columns):
    rows = [{"id": k, "correct": k % 3 > 0, name: one} for k, one in enumerate(confidences)]
    return [row | {key: values[k] for key, values in columns.items()} for k, row in enumerate(rows)]


def held(rows, engine):
    if engine == "memory":
        return rows
    lazy = pl.DataFrame(rows, strict=False).lazy()
    return lazy if engine == "polars" else pytest.importorskip("duckdb").from_arrow(lazy.collect().to_arrow())


def value(found, measure):
    return found[0].to_dict()["measures"][measure]["value"]


ENGINES = pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])


@ENGINES
def test_percentages_are_read_as_rates_and_said_so(engine):
    found = score(held(log(VERBAL), engine), replicates=50)
    rates = score(log([one / 100 for one in VERBAL]), replicates=50)
    assert value(found, "brier") == pytest.approx(value(rates, "brier"))
    assert sum("from 0 to 100 read as percent" in note for note in found.notes) == 1


@pytest.mark.parametrize(
    "scores",
    [
        [1, 2, 3, 4, 5, 5, 2, 1],  # votes of five
        [0.3, 1.2, 2.5, 7.5, 12.0, 4.2, 0.8, 95.0],  # scores without a bound
        [-3.2, 40.0, 95.0, 80.0],  # logits
        [120.0, 95.0, 80.0, 3.0],
    ],
)
def test_scores_on_no_scale_stay_as_they_are(scores):
    assert responses(log(scores)).frame["confidence"].to_list() == scores


@ENGINES
def test_numbers_that_may_be_percentages_stay_and_the_option_is_named(engine):
    found = score(held(log([85, 40, 70, 55, 30, 62]), engine), replicates=50)
    assert value(found, "brier") is None
    assert sum("--confidence-scale percent reads them so" in note for note in found.notes) == 1
    assert not any("--confidence-scale" in note for note in score(log([1, 2, 3, 4, 5]), replicates=50).notes)


@ENGINES
@pytest.mark.parametrize(
    ("strays", "said"),
    [([0.9, 0.95], "2 of 12 are between 0 and 1"), ([0.5] * 30, "9 of 40 are above 1")],
)
def test_a_column_of_two_scales_is_refused_with_the_rows(engine, strays, said):
    with pytest.raises(DataError, match=f"mix 0 to 1 with 0 to 100: {said}") as fault:
        score(held(log([*VERBAL, *strays]), engine), replicates=50)
    assert ("data: row" in str(fault.value)) == (engine == "memory")


@ENGINES
def test_strays_of_another_scale_rank_lowest_where_missing_confidences_may(engine):
    rows = held(log([*VERBAL, 0.9, 0.95]), engine)
    found = score(rows, replicates=50, missing_confidence="lowest")
    assert any("these are read as missing" in one for one in found.warnings)
    assert any("read as percent" in one for one in found.notes)
    assert any("are of 10 of 12 answers: 2 have no confidence" in one for one in found.notes)
    assert found[0].curve.threshold[[0, -2]].tolist() == [LOWEST, 1]


def test_every_system_has_a_scale_of_its_own():
    one, two = log(VERBAL), log([value / 100 for value in VERBAL])
    found = responses([row | {"system": name} for name, rows in (("one", one), ("two", two)) for row in rows])
    assert found.of("one").frame["confidence"].to_list() == found.of("two").frame["confidence"].to_list()


@given(st.lists(st.floats(0, 100).map(lambda one: round(one, 1)), min_size=1, max_size=30))
def test_counts_of_scales_are_those_of_a_plain_loop(values):
    frame = pl.DataFrame({"system": "s", "answered": True, "confidence": values})
    found = scale_counts(nw.from_native(frame.lazy()))
    over = [one for one in values if one > 1]
    if not over:
        assert found == {}
        return
    counts = found["s"]
    assert counts.known == len(values)
    assert counts.fractions == sum(0 < one < 1 for one in values)
    assert (counts.over, counts.split) == (len(over), sum(one % 1 > 0 for one in over))
    assert (counts.tens, counts.high) == (sum(one >= 10 for one in values), sum(one >= 90 for one in values))


@ENGINES
@pytest.mark.parametrize("points", [[0, 1], [0.1, 0.8]])
def test_a_guessed_score_that_tells_correctness_is_refused(engine, points):
    rows = [{"id": k, "correct": k % 3 > 0, "score": points[k % 3 > 0] + k / 1e3 * (points[1] < 1)} for k in range(30)]
    with pytest.raises(
        DataError, match=r'"score" is not taken for the confidence.*tells correctness.*confidence=score'
    ):
        score(held(rows, engine), replicates=50)
    named = score(held(rows, engine), replicates=50, columns={"confidence": "score"})
    assert value(named, "auroc") == 1
    without = score(held(rows, engine), replicates=50, missing_confidence="lowest")
    assert any("tells correctness" in one for one in without.warnings)
    assert len(without[0].curve.threshold) == 2  # all answers, or none


def test_a_guessed_score_with_an_exception_is_taken():
    rows = [{"id": k, "correct": k % 3 > 0, "score": 0.9 if k % 3 or k == 6 else 0.1} for k in range(30)]
    assert "confidence <- score" in score(rows, replicates=50).notes


def test_few_answers_that_are_separated_prove_nothing():
    rows = [{"correct": k > 1, "score": k / 10} for k in range(5)]
    assert len(responses(rows)) == 5


@ENGINES
def test_answers_that_nothing_judges_are_left_out_of_every_engine(engine):
    rows = [
        {"id": k, "target": f"the {k}", "prediction": f"a {k}", "correct": None if k % 10 == 9 else k % 3 > 0}
        | {"confidence": k / 100}
        for k in range(60)
    ]
    found = score(held(rows, engine), replicates=50)
    assert found[0].n == 54
    assert any(one.startswith("6 answers are not judged and left out") for one in found.warnings)


def test_a_survey_of_sound_confidences_is_left_alone():
    rows = pl.LazyFrame({"correct": [True, False], "confidence": [0.9, 0.4]})
    assert judge_lazily(rows, reading=Reading()).largest == 0.9


def test_columns_that_are_functions_of_correctness_are_no_slices():
    rows = [
        row | {"noise": k % 2, "grade": "CI"[not row["correct"]], "abstained": k % 7 == 0}
        for k, row in enumerate(log([k / 200 for k in range(200)]))
    ]
    assert slice_columns(responses(rows, reading=Reading(keep=("*",)))) == ("noise",)


def test_logs_of_two_scales_show_no_drift():
    old, new = log([k / 60 for k in range(60)]), log([50 + k / 2 for k in range(60)])
    rates = [row | {"confidence": row["confidence"] + 100} for row in new]
    with pytest.raises(DataError, match="lie within 0 and 1, and most of"):
        drift(old, rates, replicates=50)
    with pytest.raises(UsageError, match="`threshold` is at most 1; got 80"):
        drift(old, old, threshold=80, replicates=50)


def test_classes_take_no_correctness_for_confidence():
    rows = [{"target": "a", "prediction": "ab"[k % 2], "score": 1 - k % 2} for k in range(20)]
    assert any("tells correctness" in one for one in classes(rows, replicates=50).warnings)


def test_a_map_fitted_to_percentages_is_applied_to_percentages():
    rows = log([k for k in range(101) for _ in range(2)])
    rates = [row | {"confidence": row["confidence"] / 100} for row in rows]
    fitted = fit_recalibration(rates, replicates=50)
    mapped, plain = (apply_recalibration(fitted, one, replicates=50).table["confidence"] for one in (rows, rates))
    assert mapped.to_list() == plain.to_list()


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])
def test_a_declared_scale_is_taken_as_it_is_declared(engine):
    low, high = log([0.2, 0.5, 0.9] * 4), log(VERBAL)
    cutoff = {
        scale: score(held(rows, engine), confidence_scale=scale)[0].sample.sweep.threshold[-1]
        for scale, rows in (("percent", low), ("as-is", high))
    }
    assert cutoff == {"percent": pytest.approx(0.009), "as-is": 100}
    with pytest.raises(DataError, match=r"lies between 0 and 100; 1 do not.*confidence-scale as-is"):
        score(held(log([50, 180]), engine), confidence_scale="percent")


def test_a_log_that_is_followed_keeps_the_scale_of_its_first_rows():
    def batch(confidences, before):
        text = "".join(json.dumps(row) + "\n" for row in log(confidences)).encode()
        return LogBatch("log.jsonl", "log", "json", b"", text, before)

    reader = BatchReader(Reading())
    frames = [reader.judged(batch(some, place)).frame for place, some in enumerate((VERBAL, [0.5, 40]))]
    assert [frame["confidence"].max() for frame in frames] == [1.0, 0.4]
    assert "confidences read as percent: thresholds are given from 0 to 1" in reader.notes
    doubtful = BatchReader(Reading())
    frames = [doubtful.judged(batch(some, place)).frame for place, some in enumerate(([0.5, 0.9], VERBAL))]
    assert frames[1]["confidence"].max() == 100
    assert "look like percentages" in doubtful.warnings[-1]
