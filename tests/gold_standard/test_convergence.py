import json

import numpy as np
import pytest

from demur.errors import UsageError
from demur.gold_standard.checks import FEW, STEPS, TOLERANCE, convergence, points_text
from reference.gold_checks import counted, gold_of, plain_line_steps, simulated, study


class TestByHand:
    """Two wizards with the scores 0 and 2 at every x: either alone is 1 away from the line of both."""

    def found(self):
        rows = [(name, x, score) for name, score in (("a", 0), ("b", 2)) for x in (0, 0.5, 1)]
        return convergence(gold_of(study(rows), "linear"))

    def test_distances(self):
        found = self.found()
        assert found.subjects == (2,)
        assert found.to_previous == pytest.approx((1.0,), abs=1e-6)
        assert found.to_data == pytest.approx((1.0,), abs=1e-6)

    def test_more_subjects_are_needed_and_about_how_many(self):
        found = self.found()
        # Four standard deviations of scores are 4, of which a hundredth is tolerated; 2 subjects times 1 / 0.04.
        assert found.tolerance == pytest.approx(0.04)
        assert found.needed
        assert found.enough == 50
        assert found.words() == (
            "The last of 2 subjects moved the curve by 1 on average; roughly 50 subjects would bring it below 0.04."
        )


class TestWords:
    def test_of_rates_are_in_points(self):
        found = convergence(gold_of(study(simulated(np.random.default_rng(1), subjects=6, size=30)), "logistic"))
        assert found.needed
        assert found.enough > 6
        assert "points on average; roughly " in found.words()
        assert found.words().endswith("subjects would bring it below 1.")

    def test_alike_subjects_settle_at_once(self):
        alike = {name: {0.0: (9, 10), 0.5: (7, 10), 1.0: (2, 10)} for name in "abcdef"}
        found = convergence(gold_of(study(counted(alike)), "linear"))
        assert found.to_previous == pytest.approx([0.0] * 5, abs=1e-7)
        assert not found.needed
        assert found.enough == 6
        assert found.words() == (
            "The last of 6 subjects moved the curve by less than 0.1 points on average (tolerance 1): "
            "one more would change it little."
        )

    def test_scores_that_never_vary_need_no_more_subjects(self):
        found = convergence(gold_of(study([(name, x, 5) for name in "abc" for x in (0, 1)], upper=9.0), "linear"))
        assert not found.needed

    def test_one_subject_tells_nothing(self):
        found = convergence(gold_of(study(counted({"a": {0.0: (9, 10), 1.0: (2, 10)}})), "linear"))
        assert found.subjects == ()
        assert found.needed
        assert np.isnan(found.moved)
        assert found.words() == "With one subject alone, nothing shows how far others would move the curve."
        assert found.to_dict()["enough"] is None
        assert found.frame().height == 0


class TestSteps:
    def test_are_those_of_single_fits_one_after_the_other(self):
        rows = simulated(np.random.default_rng(2), subjects=7, size=9)
        found = convergence(gold_of(study(rows), "linear"), orders=6, seed=11)
        data, moved = plain_line_steps(rows, 6, 11)
        assert found.to_data == pytest.approx(data, rel=1e-5)
        assert found.to_previous == pytest.approx(moved, rel=1e-5)

    def test_fall_about_as_the_number_of_subjects_grows(self):
        rows = simulated(np.random.default_rng(4), subjects=24, size=20, moved=0.5)
        found = convergence(gold_of(study(rows), "logistic"))
        at = dict(zip(found.subjects, found.to_previous, strict=True))
        assert at[24] == pytest.approx(at[12] / 2, rel=0.3)

    def test_the_last_fit_is_the_one_of_all_subjects_whatever_the_order(self):
        gold = gold_of(study(simulated(np.random.default_rng(5), subjects=5, size=20)), "logistic")
        counts = gold.fit.counts
        everyone = np.sqrt(counts.squared_distance(gold.fit.shares) / counts.sizes.sum())
        for seed in (1, 2):
            assert convergence(gold, orders=3, seed=seed).to_data[-1] == pytest.approx(everyone, rel=1e-6)

    def test_of_many_subjects_some_are_looked_at(self):
        rows = simulated(np.random.default_rng(6), subjects=120, size=6)
        found = convergence(gold_of(study(rows), "logistic"), orders=2)
        assert FEW < 120
        assert STEPS - 4 <= len(found.subjects) <= STEPS
        assert (found.subjects[0], found.subjects[-1]) == (2, 120)

    def test_as_many_orders_as_a_thousand_refits_allow(self):
        few = gold_of(study(simulated(np.random.default_rng(7), subjects=4, size=10)), "linear")
        many = gold_of(study(simulated(np.random.default_rng(7), subjects=150, size=3)), "linear")
        assert (convergence(few).orders, convergence(many).orders) == (50, 10)

    def test_subjects_without_trials_of_the_performer_do_not_count(self):
        found = convergence(gold_of(study(simulated(np.random.default_rng(8), subjects=4, size=10)), "linear"))
        assert found.subjects == (2, 3, 4)

    @pytest.mark.parametrize("kind", ["spline", "isotonic", "polynomial"])
    def test_every_kind_of_curve_can_be_followed(self, kind):
        found = convergence(gold_of(study(simulated(np.random.default_rng(9), subjects=6, size=15)), kind), orders=4)
        assert np.isfinite(found.to_previous).all()
        assert np.isfinite(found.to_data).all()


def test_tolerance_is_a_part_of_the_width_of_the_metric():
    rows = [(name, x, 1.0 + y) for name in "ab" for x, y in ((0, 5), (1, 3.5))]
    assert convergence(gold_of(study(rows, lower=1.0, upper=7.0), "linear")).tolerance == pytest.approx(6 * TOLERANCE)


def test_a_table_says_in_a_word_whether_a_curve_has_settled():
    found = convergence(gold_of(study(simulated(np.random.default_rng(1), subjects=6, size=30)), "logistic"))
    assert (found.moved_text, found.collected_text) == (f"{points_text(found.moved)} points", "–")
    assert found.settled_text == f"no, with roughly {found.enough:.0f}"
    alone = convergence(gold_of(study(counted({"a": {0.0: (9, 10), 1.0: (2, 10)}})), "linear"))
    assert (alone.moved_text, alone.settled_text) == ("–", "no")


def test_progress_is_told():
    heard = []
    gold = gold_of(study(simulated(np.random.default_rng(10), subjects=3, size=10)), "linear")
    convergence(gold, orders=2, step=lambda what, done, total: heard.append((what, done, total)))
    assert heard[-1] == ("refitting to fewer subjects", 6, 6)


def test_there_must_be_an_order():
    gold = gold_of(study(simulated(np.random.default_rng(10), subjects=3, size=10)), "linear")
    with pytest.raises(UsageError, match="at least one order of the subjects; got 0"):
        convergence(gold, orders=0)


def test_frame_and_plain_values():
    found = convergence(gold_of(study(simulated(np.random.default_rng(10), subjects=3, size=10)), "linear"))
    assert found.frame().columns[:5] == ["performer", "role", "subjects", "to_data", "to_previous"]
    shown = found.to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["subjects"] == [2, 3]


def test_the_same_seed_gives_the_same_steps():
    gold = gold_of(study(simulated(np.random.default_rng(10), subjects=5, size=10)), "linear")
    assert convergence(gold, seed=4).to_dict() == convergence(gold, seed=4).to_dict()
    assert convergence(gold, seed=4).to_previous != convergence(gold, seed=5).to_previous
