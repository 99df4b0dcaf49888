import json
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.learners import (
    LEARNERS,
    FullLeastSquares,
    Lasso,
    Linear,
    Net,
    Node,
    RegressionTree,
    SmallNet,
    Tree,
    cross_validated,
    r2_of,
    restored,
)
from outcome.oracle import Oracle

NAMES = ["recall", "turns", "noise"]
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def dialogues(n=40, seed=0):
    """Dialogues whose outcome is 1 + 2 recall - 0.5 turns and a little chance; `noise` has no part in it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, 1 + 2 * x[:, 0] - 0.5 * x[:, 1] + 0.1 * rng.normal(size=n)


@each_learner
def test_what_was_learned_is_the_same_after_json(learner):
    x, y = dialogues()
    fitted = learner.fit(x, y, NAMES)
    again = restored(json.loads(json.dumps(fitted.describe(), allow_nan=False)))
    assert again == fitted
    assert np.array_equal(again.predict(x), fitted.predict(x))


@each_learner
def test_the_same_rows_give_the_same_model(learner):
    x, y = dialogues()
    assert learner.fit(x, y, NAMES) == learner.fit(x, y, NAMES)


@each_learner
def test_a_constant_predictor_changes_nothing_and_is_named(learner):
    x, y = dialogues()
    x[:, 1] = 0.3
    fitted = learner.fit(x, y, NAMES)
    other = x + np.array([0.0, 5.0, 0.0])
    assert fitted.predict(other) == pytest.approx(fitted.predict(x))
    assert "turns" in " ".join(fitted.notes)


@each_learner
def test_a_constant_outcome_is_predicted_as_it_is(learner):
    x, _ = dialogues(12)
    fitted = learner.fit(x, np.full(12, 0.7), NAMES)
    assert fitted.predict(x + 1) == pytest.approx(np.full(12, 0.7))


@each_learner
def test_without_predictors_the_mean_is_predicted(learner):
    fitted = learner.fit(np.empty((4, 0)), [1.0, 2.0, 3.0, 6.0], [])
    assert fitted.predict(np.empty((2, 0))).tolist() == [3.0, 3.0]


@each_learner
def test_one_group_leaves_nothing_to_choose_by_and_still_fits(learner):
    x, y = dialogues(12)
    assert np.isfinite(learner.fit(x, y, NAMES, groups=["one"] * 12).predict(x)).all()


@each_learner
def test_a_learner_predicts_dialogues_it_has_not_seen(learner):
    x, y = dialogues(60)
    seen = cross_validated(learner, x, y, NAMES, folds=np.arange(60) % 5)
    assert seen.r2 > 0.6
    assert seen.training_r2s.size == 5
    assert seen.selected["recall"] == 1


@each_learner
def test_predicting_needs_the_columns_learned_from(learner):
    x, y = dialogues(12)
    with pytest.raises(DataError, match="3 columns; got one of shape"):
        learner.fit(x, y, NAMES).predict(x[:, :2])


def test_full_least_squares_by_hand():
    """Through (0, 1), (1, 2), (2, 6): slope (−1·−2 + 1·3) / 2 = 2.5, intercept 3 − 2.5."""
    fitted = FullLeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 6.0], ["x"])
    assert fitted.intercept == pytest.approx(0.5)
    assert fitted.coefficients["x"] == pytest.approx(2.5)


def test_full_least_squares_does_not_use_a_column_that_others_determine():
    x, y = dialogues()
    doubled = np.column_stack([x[:, 0], 2 * x[:, 0] + 1, x[:, 1]])
    fitted = FullLeastSquares().fit(doubled, y, ["recall", "copy", "turns"])
    plain = FullLeastSquares().fit(doubled[:, [0, 2]], y, ["recall", "turns"])
    assert fitted.coefficients["copy"] is None
    assert fitted.predict(doubled) == pytest.approx(plain.predict(doubled[:, [0, 2]]))
    assert fitted.notes == ["determined by others or constant, so not used: copy"]


def test_lasso_shrinks_and_leaves_out_what_has_no_part():
    x, y = dialogues(200)
    coefficients = Lasso().fit(x, y, NAMES).coefficients
    assert 1.8 < coefficients["recall"] < 2.02
    assert -0.52 < coefficients["turns"] < -0.4
    assert abs(coefficients["noise"]) < 0.02


def test_lasso_with_one_predictor_is_soft_thresholding():
    """On a standardised predictor the LASSO takes the penalty off the least-squares slope."""
    x, y = dialogues(50)
    fitted = Lasso().fit(x[:, :1], y, ["recall"])
    z = (x[:, 0] - x[:, 0].mean()) / x[:, 0].std()
    slope = (z @ (y - y.mean())) / 50 - fitted.chosen["penalty"]
    assert fitted.coefficients["recall"] * x[:, 0].std() == pytest.approx(slope)


@settings(max_examples=15)
@given(st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
def test_lasso_does_not_depend_on_the_units_of_a_predictor(factor, shift):
    x, y = dialogues(30)
    moved = x * np.array([factor, 1.0, 1.0]) + np.array([shift, 0.0, 0.0])
    expected, found = Lasso().fit(x, y, NAMES), Lasso().fit(moved, y, NAMES)
    assert found.predict(moved) == pytest.approx(expected.predict(x), abs=1e-6)


def test_a_tree_asks_where_the_outcome_jumps():
    x = np.arange(20.0)[:, None]
    fitted = RegressionTree().fit(x, np.where(x[:, 0] < 10, 0.25, 0.75), ["recall"])
    assert fitted.root == Node(0.5, 20, "recall", 9.5, Node(0.25, 10), Node(0.75, 10))
    assert fitted.predict([[9.5], [9.6]]).tolist() == [0.25, 0.75]
    assert fitted.chosen == {"depth": 1.0, "leaf": 5.0}


def test_a_tree_predicts_as_scikit_learn_does():
    from sklearn.tree import DecisionTreeRegressor

    x, y = dialogues(200)
    fitted = RegressionTree().fit(x, y, NAMES)
    settled = DecisionTreeRegressor(max_depth=int(fitted.chosen["depth"]), min_samples_leaf=5, random_state=0)
    assert fitted.predict(x) == pytest.approx(settled.fit(x, y).predict(x))


def test_a_tree_that_finds_nothing_predicts_the_mean_and_says_so():
    rng = np.random.default_rng(3)
    y = rng.normal(size=30)
    fitted = RegressionTree().fit(rng.normal(size=(30, 1)), y, ["noise"])
    assert fitted.root == Node(pytest.approx(y.mean()), 30)
    assert fitted.notes == ["nothing could be learned but the mean outcome"]


def test_a_net_learns_a_bend_that_a_line_cannot():
    x = np.linspace(-2, 2, 60)[:, None]
    y = x[:, 0] ** 2
    bent, straight = (one.fit(x, y, ["x"]).predict(x) for one in (SmallNet(decay=0.01), FullLeastSquares()))
    assert np.square(y - bent).mean() < 0.02 < np.square(y - straight).mean()


def test_a_net_predicts_as_scikit_learn_does():
    x, y = dialogues()
    net = SmallNet()
    fitted = net.fit(x, y, NAMES)
    z, target = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    assert fitted.predict(x) == pytest.approx(net._searched(z, target).predict(z) * y.std() + y.mean())


def test_searches_that_do_not_settle_are_noted_not_warned_of(monkeypatch):
    monkeypatch.setattr("demur.outcome.learners.MOST_STEPS", 2)
    x, y = dialogues()
    assert SmallNet().fit(x, y, NAMES).notes == ["the weights still moved after 2 steps"]
    copies = np.column_stack([x, x[:, 0] + 0.01 * x[:, 2]])
    assert Lasso().fit(copies, y, [*NAMES, "copy"]).notes == ["the coefficients still moved after 2 steps"]


def test_leave_one_out_is_by_hand():
    """Without each of (0, 0), (1, 1), (2, 4) the line through the other two gives -2, 2 and 2."""
    seen = cross_validated(FullLeastSquares(), [[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0], ["x"])
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
    seen = cross_validated(FullLeastSquares(), oracle.x, oracle.y, oracle.names)
    assert seen.predictions == pytest.approx(full["loo_fixed_predictions"])
    assert seen.r2 == pytest.approx(full["loo_fixed_R2_1_minus_press_over_sst"])
    assert seen.mse == pytest.approx(full["loo_fixed_model_mse"])
    assert seen.sd == pytest.approx(full["loo_fixed_model_sqerr_sd"])


def test_a_group_is_left_out_as_a_whole():
    x = np.arange(6.0)[:, None]
    y = np.array([0.0, 0.0, 3.0, 3.0, 9.0, 9.0])
    x[:] = 1.0
    seen = cross_validated(FullLeastSquares(), x, y, ["x"], groups=["a", "a", "b", "b", "c", "c"])
    assert seen.predictions == pytest.approx([6, 6, 4.5, 4.5, 1.5, 1.5])


@given(st.lists(st.integers(0, 5), min_size=6, max_size=20))
def test_no_group_is_learned_from_and_predicted(groups):
    assume(len(set(groups)) > 1 and max(map(groups.count, groups)) < len(groups) - 1)
    asked = []

    class Noting:
        name = "noting"

        def fit(self, x, y, names, *, groups=None):
            asked.append(set(x[:, 0]))
            return Linear(learner="noting", intercept=0.0, coefficients={"group": 1.0})

    cross_validated(Noting(), np.array(groups, dtype=float)[:, None], groups, ["group"], groups=groups)
    assert asked == [set(groups) - {one} for one in sorted(set(groups))]


def test_a_setting_is_chosen_without_splitting_groups(monkeypatch):
    """Ten groups of four rows: every fold in which the depth is chosen leaves out whole groups."""
    noted = []
    grown = RegressionTree._grown
    monkeypatch.setattr(RegressionTree, "_grown", lambda self, x, *rest: noted.append(x[:, 1]) or grown(self, x, *rest))
    x, y = dialogues()
    x[:, 1] = np.arange(40) // 4
    RegressionTree().fit(x, y, NAMES, groups=x[:, 1])
    assert all(set(np.unique(part, return_counts=True)[1]) == {4} for part in noted)


def test_progress_is_told():
    heard = []
    x, y = dialogues(4)
    cross_validated(FullLeastSquares(), x[:, :1], y, ["x"], step=lambda *told: heard.append(told))
    assert heard == [("ols", done, 4) for done in range(5)]


def test_a_constant_outcome_has_no_r2():
    assert np.isnan(r2_of(np.full(4, 0.3), np.array([0.3, 0.3, 0.3, 0.4])))


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([[1.0]], [1.0], {}, "at least two dialogues; got 1"),
        ([[1.0], [2.0]], [1.0], {}, "a row for each of 1 outcomes"),
        ([[1.0], [np.nan], [2.0]], [1.0, 2.0, 3.0], {}, '"recall" must be a finite number.*got "1 that are not".*drop'),
        ([[1.0], [2.0], [3.0]], [1.0, np.nan, 3.0], {}, "the outcome must be a finite number"),
        ([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], {"groups": ["a"]}, "each of 3 dialogues must have a group"),
        ([[1.0], [2.0]], [1.0, 2.0], {}, "at least two dialogues must be left"),
        ([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], {"groups": ["a"] * 3}, 'got "3 dialogues in 1 folds"'),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(x, y, options, message):
    with pytest.raises(DataError, match=message):
        cross_validated(FullLeastSquares(), x, y, ["recall"], **options)


def test_two_predictors_of_one_name_are_refused():
    with pytest.raises(DataError, match="a name of its own"):
        FullLeastSquares().fit([[1.0, 2.0], [2.0, 3.0]], [1.0, 2.0], ["x", "x"])


def test_every_row_needs_a_fold():
    x, y = dialogues(6)
    with pytest.raises(UsageError, match="every row needs a fold; got 2 for 6 rows"):
        cross_validated(FullLeastSquares(), x, y, NAMES, folds=np.array([0, 1]))


@pytest.mark.parametrize("learner", [Lasso(), RegressionTree(), SmallNet()], ids=lambda one: one.name)
def test_without_scikit_learn_what_to_install_is_told(learner, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    x, y = dialogues(12)
    with pytest.raises(UsageError, match=r"need scikit-learn: pip install 'demur\[demo\]'"):
        learner.fit(x, y, NAMES)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"model": "forest"}, "Invalid value 'forest'"),
        ({"model": "linear", "learner": "ols", "intercept": "high", "coefficients": {}}, r"\$.intercept"),
        (
            {"model": "linear", "learner": "ols", "intercept": 1.0, "coefficients": {}, "more": 1},
            "unknown field `more`",
        ),
        (
            {"model": "tree", "learner": "tree", "names": ["x"], "root": {"value": 1.0, "n": 2, "split": "x"}},
            "a question needs split, at, below and above",
        ),
        (
            Tree(learner="tree", names=["y"], root=Node(1.0, 9, "y", 0.5, Node(0.0, 4), Node(2.0, 5))).describe()
            | {"names": ["x"]},
            'asks about "y", which is no predictor',
        ),
        (
            Net(
                learner="net",
                names=["x"],
                centre=[0.0],
                scale=[1.0],
                hidden=[[1.0]],
                hidden_bias=[0.0],
                output=[1.0],
                output_bias=0.0,
                outcome_centre=0.0,
                outcome_scale=1.0,
            ).describe()
            | {"hidden": [[1.0, 2.0]]},
            "one number for each predictor and unit",
        ),
    ],
)
def test_a_description_edited_by_hand_is_refused_with_the_reason(description, message):
    with pytest.raises(DataError, match=f"model.json: this is no learned model: .*{message}"):
        restored(description, where="model.json:")
