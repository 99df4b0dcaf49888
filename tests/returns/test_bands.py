import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.resampling import Rows, Sample
from demur.errors import UsageError
from demur.returns.curves import error_band


def sample(n, *, seed=0, share=0.7, withheld=0.0, dialogues=None, weighted=False, replicates=300, levels=None):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) if levels is None else rng.integers(0, levels, n) / levels
    answered = rng.random(n) >= withheld
    right = (rng.random(n) < share * (0.6 + 0.5 * confidence)) & answered
    weight = rng.random(n) + 0.5 if weighted else np.ones(n)
    unit = None if dialogues is None else np.arange(n) % dialogues
    return Sample(Rows(confidence, right, answered, weight, unit), replicates, 0)


def permuted(held):
    rows = held.source
    order = np.random.default_rng(3).permutation(rows.weight.size)
    unit = None if rows.unit is None else rows.unit[order]
    parts = (part[order] for part in (rows.confidence, rows.right, rows.answered, rows.weight))
    return Sample(Rows(*parts, unit), held.replicates, held.seed)


CASES = st.builds(
    sample,
    st.sampled_from([1, 2, 5, 30, 200]),
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.0, 0.3, 0.9, 2.0]),
    withheld=st.sampled_from([0.0, 0.3, 1.0]),
    dialogues=st.sampled_from([None, 1, 7]),
    weighted=st.booleans(),
    replicates=st.just(100),
    levels=st.sampled_from([None, 3]),
)


@given(CASES)
def test_bands_hold_the_estimate_and_stay_between_0_and_what_is_returned(held):
    band = error_band(held, points=41)
    for low, high in ((band.low, band.high), (band.low_all, band.high_all)):
        assert (low <= band.error + 1e-12).all()
        assert (band.error <= high + 1e-12).all()
        assert (low >= 0).all()
        assert (high <= 1 - band.x + 1e-12).all()


@given(CASES)
def test_the_band_for_all_is_nowhere_narrower_than_the_one_for_each(held):
    band = error_band(held, points=41)
    assert (band.low_all <= band.low + 1e-12).all()
    assert (band.high_all >= band.high - 1e-12).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"levels": 5}, {"weighted": True}, {"dialogues": 20}, {"withheld": 0.2}],
    ids=["plain", "ties", "weighted", "clustered", "floor"],
)
def test_row_order_does_not_change_a_band(options):
    held = sample(300, **options)
    one, two = error_band(held), error_band(permuted(held))
    assert one.to_dict() == two.to_dict()


def test_the_same_seed_gives_the_same_band_and_another_one_another():
    rows = sample(100).source
    one, again, other = (error_band(Sample(rows, 200, seed)) for seed in (0, 0, 1))
    assert one.to_dict() == again.to_dict()
    assert one.to_dict() != other.to_dict()


def test_turns_that_go_together_widen_the_band():
    rng = np.random.default_rng(1)
    confidence, right = rng.random(60), rng.random(60) < 0.7
    five = [np.repeat(part, 5) for part in (confidence, right, np.ones(60, bool), np.ones(60))]
    naive = error_band(Sample(Rows(*five), 400, 0))
    clustered = error_band(Sample(Rows(*five, np.repeat(np.arange(60), 5)), 400, 0))
    alone = error_band(Sample(Rows.of(confidence, right), 400, 0))
    middle = slice(20, 120)
    assert (clustered.high - clustered.low)[middle].mean() > 1.7 * (naive.high - naive.low)[middle].mean()
    assert (clustered.high - clustered.low)[middle].mean() == pytest.approx(
        (alone.high - alone.low)[middle].mean(), rel=0.15
    )
    assert (clustered.clustered, clustered.units) == (True, 60)


def test_without_any_error_the_band_still_says_how_little_is_known():
    """No error in 50: at forced choice the bound is that of Clopper and Pearson, 1 - .025^(1/50), or a little more."""
    band = error_band(Sample(Rows.of(np.arange(50) / 50, [True] * 50), 200, 0))
    assert band.low.tolist() == [0] * 201
    assert 0.07 < band.high[0] < 0.08
    assert band.high_all[0] >= band.high[0]


def test_a_region_narrows_the_simultaneous_band():
    held = sample(200, seed=4)
    whole, part = error_band(held), error_band(held, region=(0.15, 0.25))
    assert (part.x[0], part.x[-1]) == (0.15, 0.25)
    at = int(np.argmin(np.abs(whole.x - 0.2)))
    width = part.high_all - part.low_all
    assert width[100] < whole.high_all[at] - whole.low_all[at]


def test_a_band_starts_where_the_curve_starts():
    held = sample(100, withheld=0.4)
    band = error_band(held)
    assert band.x[0] == pytest.approx(float((~held.source.answered).mean()))
    assert band.x[-1] == 1


def test_a_region_left_of_the_curve_is_refused():
    with pytest.raises(UsageError, match="lies left of where the curve starts"):
        error_band(sample(100, withheld=0.6), region=(0.0, 0.1))


@pytest.mark.parametrize("region", [(-0.5, 0.5), (0.5, 1.5), (0.6, 0.4)])
def test_a_region_that_is_no_range_of_rates_is_refused(region):
    with pytest.raises(UsageError, match=r"region|range"):
        error_band(sample(50), region=region)


def test_a_region_that_runs_backwards_is_not_said_to_lie_left_of_the_start():
    with pytest.raises(UsageError, match=r"rise|backwards|\[0, 1\]"):
        error_band(sample(50), region=(0.6, 0.4))


@pytest.mark.parametrize("level", [0, 1, 95, float("nan")])
def test_levels_outside_0_1_are_refused(level):
    with pytest.raises(UsageError, match="confidence level lies between 0 and 1"):
        error_band(sample(50), level=level)


def test_a_band_has_a_table_and_strict_json():
    band = error_band(sample(50), name="guide", points=11)
    assert band.frame().columns == ["system", "nonreturn", "error", "low", "high", "low_all", "high_all"]
    assert band.frame().height == 11
    json.dumps(band.to_dict(), allow_nan=False)


def true_curve(x):
    """Confidence s uniform, right with probability s, so y(x) = (1 - x)^2 / 2."""
    return (1 - x) ** 2 / 2


@pytest.mark.parametrize("levels", [None, 10], ids=["no ties", "ties"])
def test_bands_cover_the_true_curve_about_as_often_as_they_say(levels):
    rng, trials, points = np.random.default_rng(21), 80, 41
    each, together = np.zeros(points), 0
    for trial in range(trials):
        confidence = rng.random(200)
        right = rng.random(200) < confidence
        shown = confidence if levels is None else np.floor(confidence * levels)
        band = error_band(Sample(Rows.of(shown, right), 200, trial), points=points)
        truth = (
            true_curve(band.x)
            if levels is None
            else np.interp(band.x, np.arange(11) / 10, true_curve(np.arange(11) / 10))
        )
        each += (band.low <= truth + 1e-12) & (truth <= band.high + 1e-12)
        together += bool(((band.low_all <= truth + 1e-12) & (truth <= band.high_all + 1e-12)).all())
    assert each[:-4].min() / trials > 0.95 - 4 * np.sqrt(0.95 * 0.05 / trials)
    assert together / trials > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / trials)


def test_deviations_are_taken_from_the_sweep_that_replicates_stand_for():
    """Two levels are a straight line far from the curve: measured from the curve itself all replicates would be off."""
    rng = np.random.default_rng(3)
    confidence = rng.random(4000)
    rows = Rows.of(confidence, rng.random(4000) < confidence)
    coarse, fine = (error_band(Sample(rows, 300, 0, levels=levels)) for levels in (4, 500))
    middle = slice(20, 120)
    assert (coarse.high_all - coarse.low_all)[middle].mean() < 1.3 * (fine.high_all - fine.low_all)[middle].mean()
