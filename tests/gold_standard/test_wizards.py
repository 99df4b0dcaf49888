import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from demur.gold_standard.wizards import GRID, MOST_CURVES, mean_distance, wizard_curves, wizards
from reference.gold_checks import (
    counted,
    gold_of,
    plain_cochran,
    plain_departures,
    plain_distance,
    plain_moves,
    simulated,
    study,
)

PARALLEL = {"a": {0.0: (9, 10), 1.0: (7, 10)}, "b": {0.0: (7, 10), 1.0: (5, 10)}}
TILTED = {"a": {0.0: (10, 10), 1.0: (5, 10)}, "b": {0.0: (6, 10), 1.0: (7, 10)}}
"""Two wizards each, whose pooled line is 0.8 at 0 and 0.6 at 1."""


def agreement(trials, kind="linear", **options):
    return wizards(trials, gold_of(trials, kind, **options))


def simulation(seed, **options):
    return study(simulated(np.random.default_rng(seed), **options))


class TestByHand:
    def test_departures_from_the_pooled_curve_and_their_errors(self):
        found = agreement(study(counted(PARALLEL)))
        # The variance of 10 trials of 0.8 and 10 of 0.6 is 1.6 + 2.4 = 4, and 4 / 20^2 = 0.1^2.
        assert [one.name for one in found.wizards] == ["a", "b"]
        assert [one.n for one in found.wizards] == [20, 20]
        assert [one.departure for one in found.wizards] == pytest.approx([0.1, -0.1], abs=1e-6)
        assert [one.error for one in found.wizards] == pytest.approx([0.1, 0.1], abs=1e-6)

    def test_how_far_they_differ_beyond_chance(self):
        found = agreement(study(counted(PARALLEL)))
        # Each is one standard error off: Q = 2. Beyond its 1 df: 1 / (200 - 20000 / 200) = 0.1^2. P(chi2 > 2) = .1573.
        assert (found.departure.q, found.departure.df) == (pytest.approx(2, abs=1e-5), 1)
        assert found.departure.p == pytest.approx(0.157299, abs=1e-5)
        assert found.departure.i2 == pytest.approx(0.5, abs=1e-5)
        assert found.departure.tau == pytest.approx(0.1, abs=1e-5)

    def test_parallel_wizards_have_the_same_trend(self):
        found = agreement(study(counted(PARALLEL))).trend
        assert found.q == pytest.approx(0, abs=1e-9)
        assert (found.i2, found.tau) == (0, 0)
        assert found.p == pytest.approx(1, abs=1e-4)

    def test_trends(self):
        found = agreement(study(counted(TILTED)))
        # Residuals of a sum to 2 at 0 and -1 at 1, z is -1/2 and 1/2: -1.5 over 20 / 4 is a slope of -0.3. Its
        # variance is (1.6 + 2.4) / 4 over 5^2, 0.2^2. So Q = 2 (0.3 / 0.2)^2 = 4.5 and tau = sqrt(3.5 / (50 - 25)) per
        # unit of z, which is 1/2 away from the middle in all trials.
        assert found.trend.q == pytest.approx(4.5, abs=1e-5)
        assert found.trend.tau == pytest.approx(0.5 * (3.5 / 25) ** 0.5, abs=1e-5)
        assert found.departure.q == pytest.approx(0.5, abs=1e-5)

    def test_distance_of_curves_lies_between_none_and_that_of_the_raw_rates(self):
        found = agreement(study(counted(PARALLEL)))
        assert 0.05 < found.distance < 0.2

    def test_rates_are_as_many_trials_as_stand_behind_them(self):
        rows = [(name, x, right / size) for name, places in PARALLEL.items() for x, (right, size) in places.items()]
        found = agreement(study(rows, n=[10.0] * 4))
        assert found.departure.tau == pytest.approx(agreement(study(counted(PARALLEL))).departure.tau, abs=1e-6)
        assert [one.n for one in found.wizards] == [20, 20]


class TestApart:
    def test_one_who_fails_where_others_succeed(self):
        cells = {name: {0.0: (19, 20), 1.0: (16, 20)} for name in "abcdefg"} | {"odd": {0.0: (9, 20), 1.0: (6, 20)}}
        found = agreement(study(counted(cells)), "logistic")
        assert found.apart == ("odd",)
        assert found.frame().filter("apart")["subject"].unique().to_list() == ["odd"]

    def test_the_more_wizards_the_farther_apart_one_must_be(self):
        cells = {f"w{k:02}": {0.0: (9, 10), 1.0: (7, 10)} for k in range(30)} | {"odd": {0.0: (7, 10), 1.0: (5, 10)}}
        found = agreement(study(counted(cells)))
        odd = found.wizards[0]
        assert odd.name == "odd"
        assert 1.96 < abs(odd.departure) / odd.error < 3.1
        assert found.apart == ()


class TestConsistency:
    def test_wizards_alike_are_one_gold_standard(self):
        found = agreement(study(counted(dict.fromkeys("abcd", PARALLEL["a"]))))
        assert found.departure.q == pytest.approx(0, abs=1e-6)
        assert found.consistent
        assert found.warnings == ()
        assert found.apart == ()

    def test_wizards_who_differ_by_much_are_none(self):
        found = agreement(simulation(1, subjects=16, size=30, moved=2.0), "logistic")
        assert found.consistent is False
        assert found.departure.tau > 0.1
        (warning,) = found.warnings
        assert warning.startswith("there is no consistent gold standard: wizards differ by a standard deviation of ")
        assert "points beyond chance (Q = " in warning
        assert "p < 0.001" in warning
        assert warning.endswith("difference between wizards may reveal serious design flaws (Paek 2001, section 3.2)")

    def test_wizards_whom_x_harms_differently_are_none(self):
        found = agreement(simulation(2, subjects=16, size=60, tilted=6.0), "logistic")
        assert found.consistent is False
        assert "x does not act on all of them alike" in found.warnings[0]

    def test_a_difference_that_is_sure_but_small_is_no_reason_to_warn(self):
        found = agreement(simulation(3, subjects=12, size=400, moved=0.4), "logistic")
        assert found.departure.p < 1e-6
        assert found.departure.tau < 0.1
        assert found.consistent

    def test_wizards_moved_on_the_logit_scale_are_not_taken_to_be_tilted(self):
        found = agreement(simulation(4, subjects=16, size=100, moved=1.0), "logistic")
        assert found.departure.p < 1e-6
        assert found.trend.p > 0.01

    def test_one_wizard_alone_leaves_it_open(self):
        found = agreement(study(counted({"a": PARALLEL["a"]})))
        assert found.consistent is None
        assert found.warnings == ("there is one wizard alone, so whether others would do as well cannot be known",)
        assert np.isnan([found.departure.q, found.trend.q, found.distance]).all()
        assert found.frame()["subject"].unique().to_list() == ["a"]

    def test_wizards_without_names_leave_it_open(self):
        found = agreement(study([(None, x, y) for _, x, y in counted(PARALLEL)]))
        assert found.consistent is None
        assert found.warnings == ("no column names the wizards, so whether they agree cannot be known",)
        assert found.frame().height == 0


class TestCurves:
    @pytest.mark.parametrize("kind", ["logistic", "spline", "linear", "isotonic"])
    def test_are_those_of_a_general_minimiser(self, kind):
        trials = simulation(5, subjects=4, size=25, moved=1.0)
        fit = gold_of(trials, kind).fit
        z, prior = fit.counts.places - 0.4, np.array([0.8, 1.5])
        grid, curves = wizard_curves(fit, z, prior, 1.0)
        for row, who in enumerate(fit.counts.present):
            a, b = plain_moves(fit, z, prior, who)
            eta = fit.predictor(grid) + a + b * (grid - 0.4)
            assert curves[row] == pytest.approx(np.clip(fit.performance(eta), 0, 1), abs=1e-5)

    def test_lie_nearer_the_pooled_one_the_fewer_trials_there_are(self):
        cells = {name: {0.0: (18, 20), 1.0: (12, 20)} for name in "abc"}
        few = cells | {"odd": {0.0: (1, 2), 1.0: (0, 2)}}
        many = cells | {"odd": {0.0: (10, 20), 1.0: (0, 20)}}
        heights = []
        for each in (few, many):
            trials = study(counted(each))
            fit = gold_of(trials, "logistic").fit
            grid, curves = wizard_curves(fit, fit.counts.places - 0.5, np.array([0.5, 0.5]), 1.0)
            heights.append(float(np.abs(curves[3] - fit(grid)).mean()))
        assert heights[0] < heights[1]

    def test_stay_within_the_bounds_of_the_metric(self):
        found = agreement(simulation(6, subjects=6, size=12, moved=3.0), "linear")
        assert found.curves.min() >= 0
        assert found.curves.max() <= 1

    def test_frame_has_what_the_figure_asks_for(self):
        frame = agreement(study(counted(PARALLEL))).frame()
        assert frame.columns == ["subject", "x", "y", "apart"]
        assert frame.height == 2 * GRID

    def test_are_not_made_for_hundreds_of_wizards(self):
        found = agreement(simulation(7, subjects=MOST_CURVES + 1, size=4), "logistic")
        assert found.frame().height == 0
        assert np.isnan(found.distance)
        assert found.notes == ("there are 201 wizards, more than 200, and no curve for each",)
        assert found.departure.df == MOST_CURVES
        assert found.departure.p > 0.001

    @given(arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 4)), elements=st.floats(-100, 100)))
    def test_distance_is_the_mean_over_pairs(self, curves):
        assert mean_distance(curves) == pytest.approx(plain_distance(curves), abs=1e-9)


class TestTwins:
    @pytest.mark.parametrize("kind", ["logistic", "spline"])
    def test_departures_and_cochran_trial_by_trial(self, kind):
        rows = simulated(np.random.default_rng(8), subjects=9, size=17, moved=1.0)
        trials = study(rows)
        gold = gold_of(trials, kind)
        found, slow = wizards(trials, gold), plain_departures(rows, gold.fit)
        assert {one.name: (one.departure, one.error) for one in found.wizards} == {
            name: pytest.approx(pair, rel=1e-9) for name, pair in slow.items()
        }
        assert (found.departure.q, found.departure.tau) == pytest.approx(plain_cochran(list(slow.values())), rel=1e-9)

    @given(st.permutations(range(6)))
    def test_it_does_not_matter_what_wizards_are_called(self, order):
        rows = simulated(np.random.default_rng(9), subjects=6, size=15, moved=1.0)
        called = [(f"W{order[int(name[1:])]:03}", x, y) for name, x, y in rows]
        one, other = agreement(study(rows), "logistic"), agreement(study(called), "logistic")
        assert other.departure.q == pytest.approx(one.departure.q, rel=1e-6)
        assert other.trend.q == pytest.approx(one.trend.q, rel=1e-6)
        assert other.distance == pytest.approx(one.distance, rel=1e-6)
        assert [other.wizards[order[k]].departure for k in range(6)] == pytest.approx(
            [wizard.departure for wizard in one.wizards], rel=1e-6
        )

    @given(
        st.dictionaries(st.sampled_from([0.0, 0.3, 0.6, 1.0]), st.tuples(st.integers(0, 5), st.just(5)), min_size=2),
        st.integers(2, 5),
    )
    def test_wizards_with_the_same_outcomes_do_not_differ(self, places, number):
        found = agreement(study(counted({f"w{k}": places for k in range(number)})), "isotonic")
        assert found.departure.q == pytest.approx(0, abs=1e-6)
        assert (found.departure.tau, found.trend.tau) == (0, 0)
        assert found.consistent


class TestSimulated:
    def test_false_alarms_are_as_rare_as_they_should_be(self):
        rng = np.random.default_rng(10)
        trials = study(simulated(rng, subjects=14, size=24))
        rate = 1 / (1 + np.exp(5 * trials.x - 4))
        found = []
        for _ in range(150):
            again = agreement(replace(trials, y=(rng.random(len(rate)) < rate).astype(float)), "logistic")
            found.append((again.departure.p < 0.05, again.trend.p < 0.05, not again.consistent, bool(again.apart)))
        departure, trend, alarm, apart = np.mean(found, axis=0)
        assert 0.01 <= departure <= 0.11
        assert 0.01 <= trend <= 0.12
        assert alarm <= 0.05
        assert apart <= 0.12

    @pytest.mark.parametrize("upper", [None, 12.0])
    def test_false_alarms_of_scores_are_too(self, upper):
        rng = np.random.default_rng(11)
        trials = study([(name, x, y + 3) for name, x, y in simulated(rng, subjects=8, size=12)], upper=12.0)
        trials = replace(trials, upper=upper)
        middle = 8 - 5 * trials.x
        found = []
        for _ in range(100):
            again = agreement(
                replace(trials, y=np.clip(middle + rng.standard_normal(len(middle)), 0, 12)),
                "linear" if upper is None else "logistic",
            )
            found.append((again.departure.p < 0.05, again.trend.p < 0.05))
        assert all(0.01 <= rate <= 0.12 for rate in np.mean(found, axis=0))

    def test_the_spread_between_wizards_is_found_again(self):
        rng = np.random.default_rng(12)
        taus = []
        for _ in range(30):
            rows = simulated(rng, subjects=16, size=20, moved=0.5, scores=True)
            taus.append(agreement(study(rows, lower=-np.inf), "linear").departure.tau)
        assert np.mean(taus) == pytest.approx(0.5, abs=0.06)

    def test_the_spread_of_trends_is_found_again(self):
        rng = np.random.default_rng(13)
        taus = []
        for _ in range(30):
            rows = simulated(rng, subjects=16, size=30, tilted=2.0, scores=True)
            taus.append(agreement(study(rows, lower=-np.inf), "linear").trend.tau)
        # Places spread evenly over the range have a standard deviation of 1 / sqrt(12).
        assert np.mean(taus) == pytest.approx(2 / 12**0.5, abs=0.08)


class TestOddStudies:
    def test_a_wizard_at_one_place_has_no_trend(self):
        cells = PARALLEL | {"c": {0.0: (4, 5)}}
        found = agreement(study(counted(cells)))
        assert (found.departure.df, found.trend.df) == (2, 1)

    def test_wizards_at_one_place_each_cannot_be_compared_by_trend(self):
        found = agreement(study(counted({"a": {0.0: (9, 10)}, "b": {1.0: (2, 10)}})), "logistic")
        assert np.isnan(found.trend.q)
        assert found.consistent
        assert np.isfinite(found.curves).all()

    def test_scores_that_lie_on_a_line_leave_nothing_to_differ_by(self):
        found = agreement(study([(name, x, 20 - 3 * x) for name in "abc" for x in range(6)]))
        assert found.consistent
        assert found.departure.tau == 0
        assert found.apart == ()

    @pytest.mark.parametrize("kind", ["spline", "logistic", "isotonic", "linear"])
    def test_perfectly_separated_wizards_are_alike(self, kind):
        rows = [(name, x, float(x < 0.5)) for name in "abcdef" for x in np.linspace(0, 1, 12)]
        found = agreement(study(rows), kind)
        assert found.consistent
        assert np.isfinite(found.curves).all()

    def test_one_score_for_each_wizard_is_taken_as_it_is(self):
        rng = np.random.default_rng(14)
        rows = [(f"w{k}", x, 9 - 3 * x + float(rng.standard_normal())) for k, x in enumerate(rng.random(12).round(2))]
        found = agreement(study(rows))
        assert found.departure.df == 11
        assert np.isnan(found.trend.p)
        assert found.departure.p > 0.05


def test_plain_values_survive_json():
    for cells in (PARALLEL, {"a": PARALLEL["a"]}):
        shown = agreement(study(counted(cells))).to_dict()
        assert json.loads(json.dumps(shown)) == shown
    assert shown["departure"]["q"] is None
    assert shown["consistent"] is None
