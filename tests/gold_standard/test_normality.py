import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm

import demur
from demur.gold_standard.checks import convergence, normality
from demur.gold_standard.words import claim
from reference.gold_checks import counted, gold_of, simulated, study


def test_residuals_of_rates_are_quantiles_of_the_binomial_at_random_within_their_step():
    """The twin by scipy.stats: each cell's residual lies between the normal quantiles of F(k - 1) and F(k)."""
    cells = {"a": {0.0: (9, 10), 0.5: (7, 10), 1.0: (2, 10)}, "b": {0.0: (10, 10), 0.5: (5, 10), 1.0: (3, 10)}}
    gold = gold_of(study(counted(cells)), "linear")
    steps = []
    for one in cells.values():
        for share, (right, n) in zip(gold.fit(np.array(list(one))), one.values(), strict=True):
            steps.append((norm.ppf(binom.cdf(right - 1, n, share)), norm.ppf(binom.cdf(right, n, share))))
    found = normality(gold, seed=3)
    assert found.n == len(steps) == 6
    lows, highs = (np.sort(ends) for ends in zip(*steps, strict=True))
    assert (lows <= found.residual + 1e-9).all()
    assert (found.residual <= highs + 1e-9).all()
    assert found.expected == pytest.approx(norm.ppf((np.arange(6) + 0.5) / 6))


def test_the_band_holds_the_ordered_normal_sample_as_often_as_it_promises():
    """One sample of 40 in a study of scores: the band is that of the order statistics, symmetric and rising."""
    gold = gold_of(study([(f"s{k}", x, float(k + x)) for k in range(4) for x in np.linspace(0, 1, 10)]), "linear")
    found = normality(gold)
    assert found.n == 40
    assert found.low == pytest.approx(-found.high[::-1], abs=1e-6)
    assert (np.diff(found.low) > 0).all()
    assert (found.low < found.expected).all()
    samples = np.sort(np.random.default_rng(5).standard_normal((2000, 40)), axis=1)
    held = ((samples >= found.low) & (samples <= found.high)).all(axis=1).mean()
    assert held == pytest.approx(0.95, abs=0.025)


def test_skewed_scores_are_found_not_normal_and_fair_coins_are_not():
    rng = np.random.default_rng(7)
    skewed = [(f"s{k}", x, float(rng.exponential() ** 3)) for k in range(12) for x in np.linspace(0, 1, 12)]
    found = normality(gold_of(study(skewed), "linear"))
    assert found.shown
    assert found.to_dict()["departs"] is True
    coins = normality(gold_of(study(simulated(rng, subjects=10, size=30)), "logistic"))
    assert not coins.shown


def test_the_order_of_collection_is_followed_beside_random_orders():
    """Wizards a and b alike, c apart: coming last, c moves the line by a third of what it is away."""
    rows = [(name, x, y) for name, y in (("a", 0), ("b", 0), ("c", 3)) for x in (0, 0.5, 1)]
    gold = gold_of(study(rows), "linear")
    last = convergence(gold, collected=np.array([1.0, 2.0, 3.0]))
    first = convergence(gold, collected=np.array([2.0, 3.0, 1.0]))
    assert last.collected_to_previous == pytest.approx((0.0, 1.0), abs=1e-6)
    assert first.collected_to_previous == pytest.approx((1.5, 0.5), abs=1e-6)
    assert last.to_previous == pytest.approx(first.to_previous), "random orders do not depend on it"
    assert convergence(gold).collected_to_previous == ()


ROWS = [
    {"performer": name, "subject": f"{name}{k}", "wer": x, "done": y, "n": 20, "date": f"2026-01-{9 - k:02}"}
    for name, rates in (("wizard", (1.0, 0.95, 0.9)), ("A", (0.9, 0.65, 0.4)))
    for k in range(3)
    for x, y in zip((0.0, 0.5, 1.0), rates, strict=True)
]


def test_a_date_says_in_which_order_subjects_came():
    (found,) = demur.read_trials(pl.DataFrame(ROWS), x="wer", y="done")
    came = dict(zip(found.subjects, found.collected, strict=True))
    assert came["A2"] < came["A1"] < came["A0"]
    (without,) = demur.read_trials(pl.DataFrame(ROWS).drop("date"), x="wer", y="done")
    assert without.collected is None


def test_a_range_moves_the_complexity_and_means_compare_between_ranges():
    """g = 1 - 0.1 x and s = 0.9 - 0.5 x: distance 0.1 + 0.4 x, on average 0.3 over all of x and 0.15 up to 0.25."""
    options = {"x": "wer", "y": "done", "fit": "linear", "checks": False, "replicates": 50}
    (whole,) = demur.gold(pl.DataFrame(ROWS), **options)
    (part,) = demur.gold(pl.DataFrame(ROWS), within=(0.0, 0.25), **options)
    assert (whole.complexity.value, part.complexity.value) == pytest.approx((0.05, 0.0125))
    assert [one.impurities[0].mass.value for one in (whole, part)] == pytest.approx([0.3, 0.0375])
    assert [one.impurities[0].mean.value for one in (whole, part)] == pytest.approx([0.3, 0.15])
    assert part.to_dict()["complexity"]["to"] == 0.25
    assert claim(whole) == "A is worse than wizard at every wer from 0 % to 100 %"


def test_a_system_that_is_not_shown_to_be_worse_is_said_not_to_be():
    (alike,) = demur.gold(pl.DataFrame(ROWS).with_columns(done=0.9), x="wer", y="done", checks=False, replicates=50)
    assert claim(alike) == "A is nowhere shown to be worse than wizard"


def test_every_cost_has_its_unit():
    points = pl.DataFrame(ROWS)
    (named,) = demur.gold(points, x="wer", y="done", cost="100 * p", cost_unit="euros", checks=False, replicates=50)
    assert named.to_dict()["average_marginal_cost"]["A"]["unit"] == "euros"
    with pytest.raises(demur.UsageError, match="`cost_unit` is the unit of a cost"):
        demur.gold(points, x="wer", y="done", cost_unit="euros")
