import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.gold_standard.checks import BINS, residuals
from reference.gold_checks import counted, gold_of, simulated, study

BENT = {
    0.0: (4, 4, 4, 3, 3),
    0.5: (4, 4, 4, 3, 3),
    1.0: (1, 1, 1, 1, 2),
}
"""Successes out of 4 of five wizards at three places: 0.9, 0.9 and 0.3, and the line nearest is 1, 0.7, 0.4."""


def bent(times=1):
    cells = {
        f"W{copy}{who}": {x: (right[who], 4) for x, right in BENT.items()} for copy in range(times) for who in range(5)
    }
    return study(counted(cells))


def found_in(trials, kind="linear", **options):
    return residuals(gold_of(trials, kind, **options))


class TestByHand:
    def test_a_residual_is_observed_less_fitted(self):
        found = found_in(bent())
        assert [one.residual for one in found.bins] == pytest.approx([-0.1, 0.2, -0.1], abs=1e-6)
        assert [(one.x, one.start, one.end) for one in found.bins] == [(x, x, x) for x in BENT]
        assert [(one.n, one.subjects) for one in found.bins] == [(20, 5)] * 3

    def test_its_interval_takes_subjects_as_clusters_but_no_less_than_independent_trials(self):
        found = found_in(bent())
        # Residuals of the wizards less their mean are 0.4 three times and -0.6 twice: 1.2 * 5/4 / 20^2 = 0.00375.
        # Independent trials of 0.7 have 0.21 / 20 = 0.0105, of 1.0 nearly none. Student's t with 4 df is 2.7764.
        assert found.bins[0].high - found.bins[0].residual == pytest.approx(2.776445 * 0.00375**0.5)
        assert found.bins[1].residual - found.bins[1].low == pytest.approx(2.776445 * 0.0105**0.5, rel=1e-5)

    def test_spread_is_the_root_mean_square_of_residuals(self):
        found = found_in(bent())
        # At 0.5, 18 trials of 20 are 0.3 off the line and 2 are 0.7 off.
        assert found.bins[1].spread == pytest.approx(((18 * 0.09 + 2 * 0.49) / 20) ** 0.5, rel=1e-5)
        assert found.bins[1].expected == pytest.approx(0.21**0.5, rel=1e-5)

    def test_scores_are_told_in_their_own_units(self):
        rows = [(name, x, 6 * y + 1) for name, x, y in counted({"a": {0: (1, 2), 0.5: (2, 2), 1: (0, 2)}})]
        found = found_in(study([(name, x, y) for name in "abc" for _, x, y in rows], lower=1.0, upper=7.0))
        assert [one.residual for one in found.bins] == pytest.approx([-1.5, 3, -1.5], abs=1e-5)


class TestMisfit:
    def test_too_few_trials_show_none(self):
        found = found_in(bent())
        assert found.misfit == ()
        assert found.words() is None

    def test_many_trials_show_where(self):
        found = found_in(bent(times=12))
        assert [one.x for one in found.misfit] == [0.0, 0.5, 1.0]
        assert found.words() == "At 0.5 the trials lie 20 points above the curve."

    def test_neighbours_off_on_the_same_side_are_one_stretch(self):
        rng = np.random.default_rng(3)
        x = rng.random(4000).round(3)
        y = rng.random(4000) < np.where(x < 0.7, 0.9, 0.1)
        found = found_in(
            study([(f"W{k % 40}", place, float(hit)) for k, (place, hit) in enumerate(zip(x, y, strict=True))])
        )
        assert len(found.misfit) > 4
        assert found.words().startswith("Between 0.")
        assert found.words().endswith("the curve.")

    def test_a_curve_of_the_right_kind_is_rarely_off(self):
        rng = np.random.default_rng(5)
        off = [
            bool(found_in(study(simulated(rng, subjects=16, size=30, moved=0.5)), "logistic").misfit) for _ in range(30)
        ]
        assert np.mean(off) <= 0.14

    def test_scores_on_a_line_are_not_off_it(self):
        found = found_in(study([(name, x, 1e6 - 3e5 * x) for name in "abc" for x in np.linspace(0, 1, 20)]))
        assert found.misfit == ()
        assert [one.residual for one in found.bins] == [0.0] * BINS


class TestSpread:
    def test_near_a_bound_it_is_narrow_and_so_uneven(self):
        found = found_in(study(simulated(np.random.default_rng(1), subjects=16, size=30)), "logistic")
        assert found.uneven
        assert found.ratio > 2
        assert found.bins[0].spread == pytest.approx(found.bins[0].expected, abs=0.1)

    def test_of_scores_that_vary_alike_it_is_even(self):
        found = found_in(study(simulated(np.random.default_rng(1), subjects=16, size=30, scores=True), lower=-np.inf))
        assert not found.uneven
        assert 1 <= found.ratio < 1.6

    def test_one_stretch_has_nothing_to_be_compared_with(self):
        found = found_in(study([("a", 0, 1), ("a", 1, 0), ("b", 0.5, 1), ("b", 0, 1)]))
        assert len(found.bins) == 1
        assert np.isnan(found.ratio)
        assert not found.uneven
        assert found.to_dict()["spread_ratio"] is None


class TestStretches:
    def test_a_metric_of_many_places_has_ten_with_about_equally_many_trials(self):
        found = found_in(study(simulated(np.random.default_rng(2), subjects=8, size=25)), "logistic")
        assert len(found.bins) == BINS
        assert all(15 <= one.n <= 25 for one in found.bins)

    @given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.booleans()), min_size=4, max_size=80))
    def test_hold_every_trial_once_and_places_whole(self, rows):
        if len({x for _, x, _ in rows}) < 2:
            rows = [*rows, ("a", 31, True), ("b", 32, False)]
        found = found_in(study([(name, float(x), float(y)) for name, x, y in rows]))
        assert sum(one.n for one in found.bins) == len(rows)
        for one in found.bins:
            assert one.n == sum(one.start <= x <= one.end for _, x, _ in rows)
            assert one.start <= one.x <= one.end
            assert one.low <= one.residual <= one.high
        assert sum(one.n * one.residual for one in found.bins) == pytest.approx(0, abs=1e-4 * len(rows))


def test_frame_has_what_the_figure_asks_for():
    frame = found_in(bent()).frame()
    assert frame.columns == ["performer", "x", "residual", "low", "high", "n"]
    assert frame["performer"].unique().to_list() == ["wizards"]


def test_plain_values_survive_json():
    shown = found_in(bent(times=12)).to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["misfit"] == 3
    assert shown["bins"][1]["off"]


def test_one_subject_has_the_interval_of_independent_trials():
    found = found_in(study(counted({"a": {0.0: (9, 10), 0.5: (5, 10), 1.0: (4, 10)}})))
    assert found.bins[1].residual == pytest.approx(-0.1, abs=1e-6)
    assert found.bins[1].high - found.bins[1].residual == pytest.approx(12.7062 * (0.6 * 0.4 / 10) ** 0.5, rel=1e-4)


@pytest.mark.parametrize("kind", ["spline", "logistic", "polynomial", "isotonic"])
def test_perfectly_separated_trials_have_no_misfit(kind):
    places = np.linspace(0, 1, 12)
    found = found_in(study([(name, x, float(x < 0.5)) for name in "abcdef" for x in places]), kind)
    assert all(np.isfinite([one.residual, one.low, one.high]).all() for one in found.bins)
    if kind != "polynomial":
        assert not found.misfit
