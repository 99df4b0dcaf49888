"""Samples to be judged: everything drawn stands for what was not, and estimates hold on average."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.judges.sampling import KNOWN, allocate, by_confidence, draw, weigh

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5001, 0.9, 1.0]), min_size=3, max_size=120)


@given(SCORES, st.integers(2, 60), st.data())
def test_weights_of_what_is_judged_sum_up_to_all_inputs(scores: list[float], n: int, data: st.DataObject) -> None:
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    found = draw(np.array(scores), known, n, np.random.default_rng(0))
    kept = np.flatnonzero(found.chosen)
    assert kept.size == known.sum() + min(n, int((~known).sum()))
    judged = np.array(data.draw(st.lists(st.booleans(), min_size=kept.size, max_size=kept.size)), bool)
    judged |= found.stratum[kept] < 0
    weights = weigh(found.stratum[kept], found.sizes, judged)
    expected = len(scores) if (judged & (found.stratum[kept] >= 0)).any() else known.sum()
    assert weights.weight.sum() == pytest.approx(expected)
    assert (weights.weight[~judged] == 0).all()
    assert [name == KNOWN for name in weights.stratum] == (found.stratum[kept] < 0).tolist()
    for name in {one for one, weight in zip(weights.stratum, weights.weight, strict=True) if weight}:
        own = {round(w, 9) for one, w in zip(weights.stratum, weights.weight, strict=True) if one == name and w}
        assert len(own) == 1, "inputs of one stratum stand for as many"


@given(SCORES, st.integers(1, 10))
def test_strata_rise_with_confidence_and_keep_ties_together(scores: list[float], most: int) -> None:
    score = np.array(scores)
    stratum = by_confidence(score, most)
    assert stratum.max() < most
    assert set(stratum.tolist()) == set(range(stratum.max() + 1))
    order = np.argsort(score, kind="stable")
    assert (np.diff(stratum[order]) >= 0).all()
    for value in set(scores):
        assert len(set(stratum[score == value].tolist())) == 1


@given(st.lists(st.integers(1, 500), min_size=1, max_size=10), st.integers(2, 300))
def test_strata_give_their_share(sizes: list[int], n: int) -> None:
    held = np.array(sizes)
    n = min(n, int(held.sum()))
    if n < held.size:
        return
    given_out = allocate(held, n)
    assert given_out.sum() == n
    assert (given_out <= held).all()
    assert (given_out >= 1).all()
    if n >= 2 * held.size:
        assert (given_out >= np.minimum(held, 2)).all()


def test_estimates_from_samples_are_right_on_average() -> None:
    """Errors go with confidence, so a sample that drew some strata more often than it says would be off."""
    rng = np.random.default_rng(1)
    score = np.sort(rng.random(1500)).round(2)
    wrong = rng.random(1500) < 0.6 - 0.5 * score
    known = rng.random(1500) < 0.2
    estimates, partial = [], []
    for _ in range(144):
        found = draw(score, known, 60, rng)
        kept = np.flatnonzero(found.chosen)
        for share, into in ((1.0, estimates), (0.5, partial)):
            judged = (rng.random(kept.size) < share) | (found.stratum[kept] < 0)
            into.append(weigh(found.stratum[kept], found.sizes, judged).weight @ wrong[kept] / 1500)
    for found_estimates in (estimates, partial):
        error = np.std(found_estimates) / 12
        assert np.mean(found_estimates) == pytest.approx(wrong.mean(), abs=4 * error)


def test_one_answer_is_no_sample() -> None:
    with pytest.raises(UsageError, match="`sample` must be at least 2"):
        draw(np.linspace(0, 1, 9), np.zeros(9, bool), 1, np.random.default_rng(0))


def test_a_sample_of_all_is_all_and_every_weight_is_one() -> None:
    found = draw(np.linspace(0, 1, 30), np.zeros(30, bool), None, np.random.default_rng(0))
    assert found.chosen.all()
    assert weigh(found.stratum, found.sizes, np.ones(30, bool)).alike
