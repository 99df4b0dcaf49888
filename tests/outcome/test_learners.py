import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome import learners
from demur.outcome.learners import LEARNERS, LearnedModel, cross_validate, fit_all, fit_lasso, fit_net, fit_tree
from demur.outcome.validation import r2_of
from outcome.oracle import Oracle

pytest.importorskip("sklearn")
NAMES = ["recall", "turns", "noise"]
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def dialogues(n=40, seed=0):
    """Dialogues whose outcome is 1 + 2 recall - 0.5 turns and a little chance; `noise` has no part in it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, 1 + 2 * x[:, 0] - 0.5 * x[:, 1] + 0.1 * rng.normal(size=n)


@each_learner
def test_the_same_rows_give_the_same_model_and_a_constant_predictor_changes_nothing(learner):
    x, y = dialogues(30)
    x[:, 1] = 0.3
    learned = learner(x, y, np.arange(30))
    assert learned.predict(x + np.array([0.0, 5.0, 0.0])) == pytest.approx(learned.predict(x))
    assert np.array_equal(learner(x, y, np.arange(30)).predict(x), learned.predict(x))
    assert 1 not in learned.used


@each_learner
def test_a_constant_outcome_is_predicted_as_it_is_and_without_predictors_the_mean(learner):
    x, _ = dialogues(12)
    assert learner(x, np.full(12, 0.7), np.arange(12)).predict(x + 1) == pytest.approx(np.full(12, 0.7))
    alone = learner(np.empty((4, 0)), np.array([1.0, 2.0, 3.0, 6.0]), np.arange(4))
    assert alone.predict(np.empty((2, 0))).tolist() == [3.0, 3.0]


@each_learner
def test_one_group_leaves_nothing_to_choose_by_and_still_fits(learner):
    x, y = dialogues(12)
    assert np.isfinite(learner(x, y, np.zeros(12, dtype=int)).predict(x)).all()


@each_learner
def test_a_learner_predicts_dialogues_it_has_not_seen(learner):
    x, y = dialogues(60)
    seen = cross_validate(learner, x, y, NAMES, folds=np.arange(60) % 5)
    assert seen.r2 > 0.6
    assert seen.training_r2s.size == 5
    assert seen.selected["recall"] == 1


def test_full_least_squares_does_not_use_a_column_that_others_determine():
    x, y = dialogues()
    doubled = np.column_stack([x[:, 0], 2 * x[:, 0] + 1, x[:, 1]])
    learned, plain = fit_all(doubled, y, np.arange(40)), fit_all(doubled[:, [0, 2]], y, np.arange(40))
    assert learned.used == (0, 2)
    assert learned.predict(doubled) == pytest.approx(plain.predict(doubled[:, [0, 2]]))


def test_lasso_with_one_predictor_shrinks_the_slope_of_least_squares():
    """On a standardised predictor the LASSO takes the penalty, the same at every point, off the slope."""
    x, y = dialogues(50)
    learned = fit_lasso(x[:, :1], y, np.arange(50))
    z = (x[:, 0] - x[:, 0].mean()) / x[:, 0].std()
    plain = (z @ (y - y.mean())) / 50
    slope = (learned.predict(np.array([[1.0]])) - learned.predict(np.array([[0.0]])))[0] * x[:, 0].std()
    assert 0.99 * plain < slope < plain
    assert learned.predict(x[:, :1]).mean() == pytest.approx(y.mean())


@pytest.mark.parametrize(("factor", "shift"), [(0.01, -50.0), (100.0, 3.0)])
def test_lasso_does_not_depend_on_the_units_of_a_predictor(factor, shift):
    x, y = dialogues(30)
    moved = x * np.array([factor, 1.0, 1.0]) + np.array([shift, 0.0, 0.0])
    expected, found = (fit_lasso(rows, y, np.arange(30)).predict(rows) for rows in (x, moved))
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_tree_asks_where_the_outcome_jumps_and_predicts_the_mean_of_chance():
    x = np.arange(20.0)[:, None]
    learned = fit_tree(x, np.where(x[:, 0] < 10, 0.25, 0.75), np.arange(20))
    assert learned.predict(np.array([[9.5], [9.6]])).tolist() == [0.25, 0.75]
    rng = np.random.default_rng(3)
    y = rng.normal(size=30)
    nothing = fit_tree(rng.normal(size=(30, 1)), y, np.arange(30))
    assert nothing.used == ()
    assert nothing.predict(np.zeros((1, 1))) == pytest.approx([y.mean()])


def test_a_net_learns_a_bend_that_a_line_cannot(monkeypatch):
    monkeypatch.setattr(learners, "DECAY", 0.01)
    x = np.linspace(-2, 2, 60)[:, None]
    y = x[:, 0] ** 2
    bent, straight = (one(x, y, np.arange(60)).predict(x) for one in (fit_net, fit_all))
    assert np.square(y - bent).mean() < 0.02 < np.square(y - straight).mean()


def test_searches_that_do_not_settle_raise_no_warning(monkeypatch):
    monkeypatch.setattr(learners, "MOST_STEPS", 2)
    x, y = dialogues()
    for learner in (fit_net, fit_lasso):
        assert np.isfinite(learner(x, y, np.arange(40)).predict(x)).all()


def test_leave_one_out_is_by_hand():
    """Without each of (0, 0), (1, 1), (2, 4) the line through the other two gives -2, 2 and 2."""
    seen = cross_validate(fit_all, [[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0], ["x"])
    assert seen.predictions == pytest.approx([-2, 2, 2])
    assert seen.mse == pytest.approx((4 + 1 + 4) / 3)
    assert seen.r2 == pytest.approx(1 - 9 / (26 / 3))
    assert seen.sd == pytest.approx(np.sqrt(3))
    assert seen.means == pytest.approx([2.5, 2, 0.5])
    assert seen.training_r2s == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("name", ["mtcars", "swiss"])
def test_leave_one_out_of_all_predictors_is_that_of_r(name):
    oracle = Oracle(name)
    full = oracle.said["full"]
    seen = cross_validate(fit_all, oracle.x, oracle.y, oracle.names)
    assert seen.predictions == pytest.approx(full["loo_fixed_predictions"])
    assert seen.r2 == pytest.approx(full["loo_fixed_R2_1_minus_press_over_sst"])
    assert seen.sd == pytest.approx(full["loo_fixed_model_sqerr_sd"])


@given(st.lists(st.integers(0, 5), min_size=6, max_size=20))
def test_no_group_is_learned_from_and_predicted(groups):
    assume(len(set(groups)) > 1 and max(map(groups.count, groups)) < len(groups) - 1)
    asked = []

    def note(x, *_):
        asked.append(set(x[:, 0]))
        return LearnedModel(lambda rows: rows[:, 0])

    cross_validate(note, np.array(groups, dtype=float)[:, None], groups, ["group"], groups=groups)
    assert asked == [set(groups) - {one} for one in dict.fromkeys(groups)]


def test_a_setting_is_chosen_without_splitting_groups(monkeypatch):
    """Ten groups of four rows: every fold in which the depth is chosen leaves out whole groups."""
    noted = []
    grow = learners._grow_tree
    monkeypatch.setattr(learners, "_grow_tree", lambda x, *rest: noted.append(x[:, 1]) or grow(x, *rest))
    x, y = dialogues()
    x[:, 1] = np.arange(40) // 4
    fit_tree(x, y, np.arange(40) // 4)
    assert all(set(np.unique(part, return_counts=True)[1]) == {4} for part in noted)


def test_a_constant_outcome_has_no_r2():
    assert np.isnan(r2_of(np.full(4, 0.3), np.array([0.3, 0.3, 0.3, 0.4])))


@pytest.mark.parametrize("groups", [None, ["a", "a"]])
def test_too_few_rows_are_refused(groups):
    with pytest.raises(DataError, match="at least two dialogues must be left"):
        cross_validate(fit_all, [[1.0], [2.0]], [1.0, 2.0], ["recall"], groups=groups)


def test_every_row_needs_a_fold():
    x, y = dialogues(6)
    with pytest.raises(UsageError, match="every row needs a fold; got 2 for 6 rows"):
        cross_validate(fit_all, x, y, NAMES, folds=np.array([0, 1]))


@pytest.mark.parametrize("learner", [fit_lasso, fit_tree, fit_net])
def test_without_scikit_learn_the_message_says_what_to_install(learner, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    x, y = dialogues(12)
    with pytest.raises(UsageError, match=r"need scikit-learn: pip install 'demur\[demo\]'"):
        learner(x, y, np.arange(12))
