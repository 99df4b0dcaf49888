"""Judged tables that engines are asked about: drawn ones, and the few on which engines are most likely to differ."""

from __future__ import annotations

from contextlib import nullcontext

import duckdb
import polars as pl
from hypothesis import strategies as st

from demur.returns.verify import judged_columns, sample_log

SCHEMA = {
    "confidence": pl.Float64,
    "actual": pl.String,
    "predicted": pl.String,
    "answered": pl.Boolean,
    "right": pl.Boolean,
    "out_of_scope": pl.Boolean,
    "weight": pl.Float64,
}
IN_MEMORY = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "polars streaming": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: duckdb.from_arrow(frame.to_arrow()),
}
"""What hands a table to each engine but Spark."""

LABELS = st.sampled_from(["a", "b", "c"])
ONE = st.just(1)
INFINITE = float("inf")


def streaming(engine):
    """Has Polars stream where that is what is tested."""
    return pl.Config(engine_affinity="streaming") if engine == "polars streaming" else nullcontext()


def judged(rows):
    """Rows of (confidence, actual, predicted or None, weight) as the table that all measures read.

    Those with the label c that are not right stand for inputs out of scope.
    """
    return pl.DataFrame(
        [
            {
                "confidence": None if predicted is None else confidence,
                "actual": actual,
                "predicted": predicted,
                "answered": predicted is not None,
                "right": predicted == actual,
                "out_of_scope": actual == "c" != predicted,
                "weight": float(weight),
            }
            for confidence, actual, predicted, weight in rows
        ],
        schema=SCHEMA,
        orient="row",
    )


def drawn_rows(weights=ONE, largest=12):
    confidence = st.sampled_from([0.0, 0.125, 0.3, 0.3, 0.5, 0.625, 0.7, 1.0])
    return st.lists(
        st.tuples(confidence, LABELS, st.one_of(LABELS, LABELS, st.none()), weights), min_size=1, max_size=largest
    )


def _zeros_and_infinities():
    scores = [-0.0, 0.0, 0.0, -INFINITE, INFINITE, INFINITE, -2.5, 5e-324, 1e308]
    return judged([*((score, "a", "ab"[k % 2], 1) for k, score in enumerate(scores)), (0.0, "a", None, 1)])


def _labels_alike():
    """Labels that only a comparison of code points tells apart: case, accents in two spellings, spaces, nothing."""
    labels = ["e", "E", "é", "e\u0301", "e ", "", "ß", "ss", "🥐", "null", "None", "NaN"]
    pairs = [(actual, predicted) for actual in labels for predicted in [*labels, None]]
    return judged([(k % 7 / 8, actual, predicted, 1) for k, (actual, predicted) in enumerate(pairs)])


def _neighbours():
    """Confidences one unit in the last place apart, and many rows that tie."""
    scores = [0.1 + 0.2, 0.3, 0.1 + 0.2, 1 / 3, 0.3333333333333333, 0.33333333333333337]
    return judged([(score, "a", "ab"[k % 2], 1) for k, score in enumerate(scores * 20)])


def _odd():
    """All of these in one table: every count of confidences and of labels must be the same, whatever stands beside."""
    return pl.concat([_zeros_and_infinities(), _labels_alike(), _neighbours()])


TABLES = {
    "a log of weighted rows": lambda: judged_columns(sample_log(600, seed=1)),
    "a log of rows that count alike": lambda: judged_columns(sample_log(600, seed=2).drop("weight")),
    "zeros, infinities, labels alike and neighbours": _odd,
    "no answer at all": lambda: judged([(0.0, "a", None, 1), (0.0, "b", None, 2)]),
    "a single row": lambda: judged([(0.5, "a", "a", 1)]),
    "weights of nothing and of much": lambda: judged(
        [(0.5, "a", "a", 0), (0.5, "a", "b", 2**40), (0.7, "b", "b", 1), (0.7, "a", None, 0)]
    ),
}
