"""Dialogues explained by scores and confusions that an engine summed: the features and the model of memory."""

import numpy as np
import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.outcome.features import all_features, turns_in_engine, turns_of
from demur.returns.counting import Counting
from demur.returns.table import Reading, responses
from engines.test_lake import _session, in_one_process, lake  # noqa: F401
from reference.outcome import study

TURNS, OUTCOMES = study(20, turns=12)
ROWS = pl.DataFrame(TURNS).with_columns(weight=pl.int_range(pl.len()) % 3 + 1.0)
READING = Reading(out_of_scope=(), missing_confidence="lowest")


@in_one_process
def test_features_and_the_model_are_those_of_memory(tmp_path, engine):
    folder = str(lake(tmp_path / "turns", ROWS))
    found = turns_in_engine([folder], READING, Counting(engine=engine), "counted")
    expected = turns_of(responses(ROWS, reading=READING))
    assert (found.dialogues, found.labels) == (expected.dialogues, expected.labels)
    assert np.array_equal(found.counts, expected.counts)
    for name, values in all_features(expected).items():
        assert np.array_equal(all_features(found)[name], values, equal_nan=True), name
    fits = [
        demur.fit_outcome(one, outcomes=OUTCOMES, replicates=50, engine=how)
        for one, how in ((folder, engine), (ROWS, "memory"))
    ]
    assert fits[0].model.to_json() == fits[1].model.to_json()


@pytest.mark.parametrize(
    ("rows", "fault", "rule"),
    [
        (ROWS.drop("dialogue"), DataError, "there is no column dialogue"),
        (
            ROWS.with_columns(dialogue=pl.when(pl.col("weight") > 1).then("dialogue")),
            DataError,
            "turns are of no dialogue",
        ),
        (ROWS.with_columns(system=pl.format("s{}", pl.col("weight"))), UsageError, "of one system at a time"),
    ],
)
def test_turns_without_a_dialogue_and_of_several_systems_are_refused(rows, fault, rule):
    with pytest.raises(fault, match=rule):
        demur.fit_outcome(rows.lazy(), outcomes=OUTCOMES)
