"""Confidence from several samples of one input: the majority's share, with the vote as the answer, and entropy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import log
from typing import Any, TypeVar

import polars as pl

Answer = TypeVar("Answer", bound=Hashable)

AGREEMENT, ENTROPY = "agreement", "entropy"
VOTES = {
    AGREEMENT: "the share of an input's trials that agree with their vote, which is the answer",
    ENTROPY: "1 - entropy of an input's trials, whose vote is the answer",
}
"""The names under which the two go, in every importer, and what they are."""


def agreement(answers: Sequence[Answer]) -> tuple[Answer, float, float]:
    """The most frequent answer (the first of those that are as frequent), its share, and 1 - entropy in units of log n.

    Both are 1 where all samples agree. The second is 0 where all differ.

    >>> agreement(["a", "b", "a", "a"])[:2], agreement(["a", "a"])[1:]
    (('a', 0.75), (1.0, 1.0))
    >>> round(agreement(["a", "b", "a", "b"])[2], 3)
    0.5
    """
    counts = Counter(answers)
    vote, most = counts.most_common(1)[0]
    n = len(answers)
    if n == 1:
        return vote, 1.0, 1.0
    entropy = -sum(count / n * log(count / n) for count in counts.values())
    return vote, most / n, max(0.0, 1 - entropy / log(n))


def by_vote(frame: pl.DataFrame, confidence: str) -> pl.DataFrame:
    """One row for each input of a system that was tried several times: the vote of its trials and how far they agree.

    Trials that withheld vote for withholding, those that failed do not vote. Of other columns that of the first trial
    which gave the vote is kept.
    """
    keys = [name for name in ("system", "id") if name in frame.columns]
    flags = {name: pl.col(name).fill_null(value=False) for name in ("abstained", "failed") if name in frame.columns}
    frame = frame.with_columns(**flags)
    rows = []
    for _, group in frame.group_by(keys, maintain_order=True):
        trials = group.to_dicts()
        voting = [one for one in trials if not one.get("failed")]
        if not voting:
            rows.append(trials[0])
            continue
        votes = [None if one.get("abstained") else one["prediction"] for one in voting]
        vote, share, sharpness = agreement(votes)
        row = next(one for one, own in zip(voting, votes, strict=True) if own == vote)
        values: Mapping[str, float] = {AGREEMENT: share, ENTROPY: sharpness}
        rows.append({**row, **values, "confidence": None if vote is None else values[confidence]})
    names = [name for name in (*frame.columns, AGREEMENT, ENTROPY, "confidence") if name != "trial"]
    schema: dict[str, Any] = {**frame.schema, AGREEMENT: pl.Float64, ENTROPY: pl.Float64, "confidence": pl.Float64}
    names = list(dict.fromkeys(names))
    return pl.DataFrame(rows, schema={name: schema[name] for name in names}, orient="row")
