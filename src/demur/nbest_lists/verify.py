"""Does an engine give the numbers of N-best lists that memory gives? Every measure of sample lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from demur.nbest_lists.counted import in_engine
from demur.nbest_lists.evaluate import NBestEvaluation, NBestSettings, evaluate_nbest
from demur.nbest_lists.table import NBestReading, nbest
from demur.returns.counting import Counting
from demur.returns.verify import EngineDifference

ACTS = ("inform(food=thai, area=north)", 'inform(food="fish & chips")', "request(café)&bye()", "トイレ()", "")
"""What is meant and heard: several slots, quotes, two acts, letters beyond ASCII, nothing."""


def sample_lists(n: int, seed: int) -> pl.DataFrame:
    """Raw rows of lists with all that engines may disagree on, the hypotheses nested.

    Some lists are empty, some name an act twice, confidences tie and are 0; utterances come in dialogues, one of which
    has a tenth of them, and have weights.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        heard = rng.choice(ACTS, size=int(rng.integers(0, 4)))
        sure = (rng.dirichlet(np.ones(heard.size + 1))[: heard.size].round(2) if heard.size else np.zeros(0)).tolist()
        rows.append(
            {
                "id": f"u{number}",
                "dialogue": "d0" if number % 10 == 0 else f"d{number // 5}",
                "weight": float(rng.choice([1.0, 2.0, 0.5])),
                "reference": str(rng.choice(ACTS)),
                "hypotheses": [{"act": str(act), "confidence": one} for act, one in zip(heard, sure, strict=True)],
            }
        )
    lists = pl.List(pl.Struct({"act": pl.String, "confidence": pl.Float64}))
    return pl.DataFrame(rows, schema_overrides={"hypotheses": lists})


def list_differences(hold: Callable[[pl.DataFrame], Any], n: int, seed: int) -> tuple[EngineDifference, ...]:
    """Every measure of sample lists that `hold` hands over, nested and as JSON, beside what memory gives.

    >>> found = list_differences(lambda frame: frame.lazy(), 40, seed=0)
    >>> all(one.holds for one in found), len(found)
    (True, 52)
    """
    nested = sample_lists(n, seed)
    spelt = nested.with_columns(
        hypotheses=pl.Series([msgspec.json.encode(one).decode() for one in nested["hypotheses"].to_list()])
    )
    how = NBestSettings(replicates=50)
    expected = _values(evaluate_nbest(nbest(nested), settings=how)[0])
    found = []
    for about, rows in (("", nested), (" (JSON)", spelt)):
        counted = in_engine([hold(rows)], NBestReading(), Counting(), {}, by=None, how=how)
        assert counted is not None
        mine = _values(counted[0])
        found += [
            EngineDifference(f"lists, {name}{about}", mine[name], value, abs(mine[name] - value), exact=False)
            for name, value in expected.items()
        ]
    return tuple(found)


def _values(one: NBestEvaluation) -> dict[str, float]:
    figures = {**one.figures, **{f"ice_{key}": part for key, part in one.parts.items()}}
    counts = {"utterances": float(one.n), "items meant": one.reference_items}
    return {**counts, **{key: figure.value for key, figure in figures.items()}}
