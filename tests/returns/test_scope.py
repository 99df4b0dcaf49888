"""Telling inputs in scope from those out of scope: judging, measures by hand and by a slow twin, parts and engines."""

import json
from math import isnan

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import demur as package
from commands import Demur
from demur.returns.counting import tallies_of_frame
from demur.returns.evaluate import evaluate
from demur.returns.scope import SCOPE
from demur.returns.sweep_files import SweepFile, merged, parsed_sweep
from demur.returns.table import Reading, responses
from demur.returns.tally import total
from reference.scope import Input, measures

INPUTS = st.lists(
    st.tuples(st.sampled_from([None, 0.1, 0.3, 0.3, 0.5, 0.9]), st.booleans(), st.booleans()), min_size=1, max_size=25
).map(
    lambda rows: [
        Input(confidence, inside, inside and right and confidence is not None) for confidence, inside, right in rows
    ]
)


def rows_of(inputs, **columns):
    return [
        {
            "id": f"q{place}",
            "target": "yes" if one.in_scope else "oos",
            "prediction": None if one.confidence is None else "yes" if one.right else "no",
            "confidence": one.confidence,
            **{name: values[place] for name, values in columns.items()},
        }
        for place, one in enumerate(inputs)
    ]


def figures_of(inputs, **columns):
    return evaluate(responses(rows_of(inputs, **columns)), replicates=50)[0].figures


def values_of(figures):
    return {key: figures[key].value for key in SCOPE}


def test_a_log_by_hand():
    """In scope: .9 right, .8 right, .4 wrong, one withheld. Out of scope: .8, .1, one withheld.

    Pairs won by in scope, ties half: .9 beats 3, .8 beats 2 and ties 1, .4 beats 2, withheld ties 1: 8 of 12. From the
    least sure: 1 of 2 out of scope, then 2 of 3 at .1, then 3 of 6 at .8: mean precision (1/2 + 2/3 + 3/6) / 3.
    """
    inside = [Input(0.9, True, True), Input(0.8, True, True), Input(0.4, True, False), Input(None, True)]
    outside = [Input(0.8, False), Input(0.1, False), Input(None, False)]
    found = values_of(figures_of([*inside, *outside]))
    assert isnan(found.pop("scope_fpr"))  # one in four of those in scope is withheld
    assert found == pytest.approx(
        {
            "in_scope_accuracy": 2 / 4,
            "out_of_scope_recall": 1 / 3,
            "out_of_scope_precision": 1 / 2,
            "scope_auroc": 8 / 12,
            "scope_aupr": (1 / 2 + 2 / 3 + 3 / 6) / 3,
        }
    )


def test_too_much_withheld_in_scope_leaves_no_threshold_for_95_percent():
    figure = figures_of([Input(0.9, True, True), Input(None, True), Input(0.1, False)])["scope_fpr"]
    assert isnan(figure.value)
    assert figure.why == "the system itself withholds more than 5 % of the inputs in scope"


@given(INPUTS)
@example([Input(0.5, True, True), Input(0.5, False)])
def test_measures_are_those_of_a_slow_twin(inputs):
    found = figures_of(inputs)
    if all(one.in_scope for one in inputs):
        assert not set(SCOPE) & set(found)
    else:
        assert values_of(found) == pytest.approx(measures(inputs), nan_ok=True)
        assert all(bool(figure.why) == isnan(figure.low) for figure in found.values())


def some_inputs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.7
    sure = np.where(inside, rng.beta(4, 2, n), rng.beta(2, 4, n)).round(2)
    withheld = rng.random(n) < 0.02
    return [
        Input(None if away else float(one), bool(within), bool(within and not away and rng.random() < one))
        for one, within, away in zip(sure, inside, withheld, strict=True)
    ]


def test_areas_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    inputs = some_inputs()
    outside = [not one.in_scope for one in inputs]
    score = [-max(one.rank, -1.0) for one in inputs]
    found = values_of(figures_of(inputs))
    assert found["scope_auroc"] == pytest.approx(metrics.roc_auc_score(outside, score))
    assert found["scope_aupr"] == pytest.approx(metrics.average_precision_score(outside, score))


@given(INPUTS, INPUTS, st.booleans())
@example([Input(0.5, True, True), Input(None, True)], [Input(0.3, False)], True)
@example([Input(0.5, True, True)], [Input(0.3, False)], False)
def test_parts_add_up_whether_or_not_they_have_inputs_out_of_scope(one, two, in_dialogues):
    every = rows_of(
        [*one, *two], **({"dialogue": [f"d{k // 2}" for k in range(len(one) + len(two))]} if in_dialogues else {})
    )
    frame = responses(every).frame
    parts = [frame[: len(one)], frame[len(one) :]]
    added = total([tally for part in parts for tally in tallies_of_frame(part)])
    (whole,) = tallies_of_frame(frame)
    assert set(added.by_scope) == set(whole.by_scope)
    for view, tally in whole.by_scope.items():
        assert added.by_scope[view].sweep == tally.sweep
        if tally.units is not None:
            assert added.by_scope[view].units.equals(tally.units)


def test_rows_and_their_tally_give_the_same_figures():
    frame = responses(rows_of(some_inputs())).frame
    one, two = evaluate({"system": frame}, replicates=50)[0], evaluate(tallies_of_frame(frame), replicates=50)[0]
    assert {key: one.figures[key] for key in SCOPE} == {key: two.figures[key] for key in SCOPE}


def test_a_sweep_file_keeps_what_is_counted_by_scope():
    inputs = some_inputs()
    columns = {"dialogue": [f"d{k // 3}" for k in range(len(inputs))]}
    frame = responses(rows_of(inputs, **columns)).frame
    file = SweepFile(tuple(tallies_of_frame(frame)))
    again = parsed_sweep(file.to_bytes(), name="a.sweep")
    direct, stored = (evaluate(one.tallies, replicates=50)[0].figures for one in (file, again))
    assert {key: direct[key] for key in SCOPE} == {key: stored[key] for key in SCOPE}
    inside = SweepFile(tuple(tallies_of_frame(frame.filter(~pl.col("out_of_scope")))))
    both = merged([again, inside], allow_repeats=True)
    assert both.tallies[0].by_scope["ranking"].n == both.tallies[0].n


def test_engines_give_the_same(tmp_path):
    rows_of_log = pl.DataFrame(rows_of(some_inputs()))
    rows_of_log.write_parquet(tmp_path / "log.parquet")
    memory, *engines = (
        package.score(tmp_path / "log.parquet", engine=engine, replicates=50)[0].figures
        for engine in ("memory", "polars", "duckdb")
    )
    for figures in engines:
        assert {key: figures[key] for key in SCOPE} == {key: memory[key] for key in SCOPE}


def test_slices_without_inputs_out_of_scope_have_no_such_measures(demur: Demur, tmp_path):
    inputs = some_inputs()
    domain = ["in" if one.in_scope else "mixed" for one in inputs]
    domain[:50] = ["mixed"] * 50
    lines = rows_of(inputs, domain=domain)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = demur("score", "log.jsonl", "--by", "domain", "--replicates", "50")
    assert done.returncode == 0, done.stderr
    assert "recall of out of scope" in done.stdout
    document = json.loads(demur("score", "log.jsonl", "--by", "domain", "--replicates", "50", "--json").stdout)
    whole, inside, mixed = (one["measures"] for one in document["systems"])
    assert set(SCOPE) <= set(whole)
    assert set(SCOPE) <= set(mixed)
    assert not set(SCOPE) & set(inside)


def test_dialogues_make_intervals_of_scope_wider():
    inputs = some_inputs(60) * 5
    alone, together = (
        figures_of(inputs, **columns) for columns in ({}, {"dialogue": [f"d{k % 60}" for k in range(300)]})
    )
    for key in ("in_scope_accuracy", "scope_auroc"):
        assert together[key].high - together[key].low > 1.5 * (alone[key].high - alone[key].low)


def judged(*pairs, **reading):
    rows = [{"target": target, "prediction": prediction, "confidence": 0.9} for target, prediction in pairs]
    return responses(rows, reading=Reading(**reading))


def test_an_out_of_scope_label_as_prediction_withholds():
    """Right where the input is out of scope: no error, no missed chance; in scope it is an answer withheld."""
    found = judged(("oos", "oos"), ("yes", "out_of_scope"), ("oos", "yes"), ("yes", "yes"))
    frame = found.frame
    assert frame["answered"].to_list() == [False, False, True, True]
    assert frame["right"].to_list() == [False, False, False, True]
    assert frame["out_of_scope"].to_list() == [True, False, True, False]
    assert '1 prediction "oos" read as withheld' in found.notes
    assert not found.warnings


def test_a_right_withholding_that_is_marked_correct_stays_out_of_scope_without_a_warning():
    rows = [{"target": "oos", "prediction": "oos", "correct": True, "confidence": 0.9}]
    found = responses([*rows, {"target": "yes", "prediction": "yes", "correct": True, "confidence": 0.9}])
    assert found.frame["out_of_scope"].to_list() == [True, False]
    assert found.frame["answered"].to_list() == [False, True]
    assert not found.warnings


def test_where_no_label_means_out_of_scope_it_is_a_label_as_any():
    found = judged(("oos", "oos"), ("yes", "oos"), out_of_scope=())
    assert found.frame["right"].to_list() == [True, False]
    assert found.frame["answered"].all()
