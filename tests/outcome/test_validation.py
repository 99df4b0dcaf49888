import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.least_squares import least_squares
from demur.outcome.stepwise import Selection, search_terms
from demur.outcome.validation import folds_of_groups, grouped_folds, leave_out, nested
from outcome.oracle import WAYS, Oracle


def made_up(n=40, p=5, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, x[:, 0] - 0.5 * x[:, 1] + rng.normal(size=n), [f"x{place}" for place in range(p)]


def refitted(x, y, fold):
    predictions = np.empty(y.size)
    for one in np.unique(fold):
        out = fold == one
        predictions[out] = least_squares(x[~out], y[~out]).predict(x[out])
    return predictions


def test_leaving_out_worked_by_hand():
    # Means of the other two of 1, 2, 6 are 4, 3.5 and 1.5: errors -3, -1.5, 4.5; squares 9, 2.25, 20.25.
    found = leave_out(np.empty((3, 0)), [1.0, 2.0, 6.0])
    assert found.predictions == pytest.approx([4.0, 3.5, 1.5])
    assert found.mse == pytest.approx(10.5)
    assert found.sd == pytest.approx(np.std([9, 2.25, 20.25], ddof=1))
    assert found.r2 == pytest.approx(1 - 31.5 / 14)
    assert found.r2_of_means == pytest.approx(0)
    assert found.training_r2 == pytest.approx(0)


def test_a_fold_outside_which_the_outcome_is_constant_has_no_r2():
    # one failure, in the second of three dialogues: outside it there is nothing to explain
    y = np.array([0.9] * 4 + [0.3, 0.9, 0.9] + [0.9] * 5)
    found = leave_out(np.arange(12.0)[:, None], y, folds=np.repeat([0, 1, 2], [4, 3, 5]))
    assert np.isnan(found.training_r2s).tolist() == [False, True, False]
    assert found.constant_folds == 1
    assert found.training_r2 == pytest.approx(np.mean(found.training_r2s[[0, 2]]))
    assert 0 <= found.training_r2 <= 1


@given(st.integers(0, 10_000), st.integers(6, 25), st.integers(0, 4), st.integers(2, 5), st.booleans())
def test_leaving_out_without_fits_gives_what_fits_give(seed, n, p, folds, lonely):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, p)), rng.normal(size=n)
    if lonely and p:
        x[:, 0] = np.arange(n) == 2
    for fold in (np.arange(n), np.arange(n) % folds):
        found = leave_out(x, y, folds=fold)
        assert found.predictions == pytest.approx(refitted(x, y, fold), rel=1e-6, abs=1e-8)
        others = [fold != one for one in range(fold.max() + 1)]
        inside = [1 - least_squares(x[out], y[out]).rss / np.square(y[out] - y[out].mean()).sum() for out in others]
        assert found.training_r2s == pytest.approx(inside, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", ["mtcars", "swiss"])
def test_leave_one_out_figures_of_the_chosen_model_are_those_of_r(table, way):
    oracle = Oracle(table)
    direction, start = WAYS[way]
    chosen, said = search_terms(oracle.x, oracle.y, oracle.names, direction=direction, start=start), oracle.of(way)
    found = leave_out(oracle.x[:, chosen.columns], oracle.y)
    assert found.predictions == pytest.approx(said["loo_fixed_predictions"], rel=1e-11)
    assert found.mse == pytest.approx(said["loo_fixed_model_mse"], rel=1e-11)
    assert found.sd == pytest.approx(said["loo_fixed_model_sqerr_sd"], rel=1e-11)
    assert found.r2 == pytest.approx(said["loo_fixed_R2_1_minus_press_over_sst"], rel=1e-11)
    assert found.r2_of_means == pytest.approx(said["loo_fixed_R2_sst_foldmean"], rel=1e-11)
    assert found.correlation2 == pytest.approx(said["loo_fixed_R2_cor2"], rel=1e-11)


@pytest.mark.parametrize("way", WAYS)
def test_leave_one_out_error_of_a_model_chosen_among_aliased_columns_is_that_of_r(way):
    oracle = Oracle("aliased")
    direction, start = WAYS[way]
    chosen = search_terms(oracle.x, oracle.y, oracle.names, direction=direction, start=start)
    found = leave_out(oracle.x[:, chosen.columns], oracle.y)
    assert found.mse == pytest.approx(oracle.of(way)["loo_fixed_model_mse"], rel=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", ["mtcars", "swiss"])
def test_nested_leave_one_out_figures_are_those_of_r(table, way):
    oracle = Oracle(table)
    found, said = (
        nested(oracle.x, oracle.y, oracle.names, selection=Selection(*WAYS[way])),
        oracle.of(way)["nested_loo"],
    )
    assert found.predictions == pytest.approx(said["predictions"], rel=1e-11)
    assert found.mse == pytest.approx(said["mse"], rel=1e-11)
    assert found.sd == pytest.approx(said["sqerr_sd"], rel=1e-11)
    assert found.r2 == pytest.approx(said["R2_1_minus_press_over_sst"], rel=1e-11)
    assert found.r2_of_means == pytest.approx(said["R2_sst_foldmean"], rel=1e-11)
    assert found.correlation2 == pytest.approx(said["R2_cor2"], rel=1e-11)
    assert found.training_r2 == pytest.approx(said["mean_training_R2"], rel=1e-11)
    assert found.training_r2_sd == pytest.approx(said["sd_training_R2"], rel=1e-9)
    assert {name: share for name, share in found.selected.items() if share} == said["selection_frequency"]
    assert found.models == said["distinct_models"]


@pytest.mark.parametrize("direction", ["backward", "forward", "both"])
def test_nested_folds_select_and_fit_without_the_fold(direction):
    x, y, names = made_up()
    fold = grouped_folds(np.arange(40) // 3, 4)
    found = nested(x, y, names, selection=Selection(direction), folds=fold)
    for one in range(4):
        out = fold == one
        alone = search_terms(x[~out], y[~out], names, direction=direction)
        assert found.predictions[out] == pytest.approx(alone.predict(x[out]))


def test_a_column_that_varies_in_one_fold_only_is_dropped_there():
    x, y, names = made_up()
    x[:, 4] = 0.1
    x[7, 4] = 3.0
    found = nested(x, y, names)
    alone = search_terms(np.delete(x, 7, axis=0), np.delete(y, 7), names)
    assert alone.trace[1].step == "- x4"
    assert found.predictions[7] == pytest.approx(alone.predict(x[[7]])[0])


def test_folds_on_whose_other_rows_nothing_can_be_chosen_are_told():
    x, y, names = made_up(n=10, p=7)
    found = nested(x, y, names, folds=np.array([0] * 4 + [1, 2, 3, 4, 5, 6]))
    assert [(one.fold, one.n) for one in found.failed] == [(0, 4)]
    assert "fits the 6 rows exactly" in found.failed[0].why
    assert np.isnan(found.predictions[:4]).all()
    assert found.n == 6
    assert found.mse == pytest.approx(np.square(y - found.predictions)[4:].mean())
    assert found.to_dict()["failed"][0]["n"] == 4


def test_where_every_fold_fails_the_figures_are_undefined():
    x, y, names = made_up(n=5, p=7)
    found = nested(x, y, names)
    assert len(found.failed) == 5
    assert (found.to_dict()["r2"], found.to_dict()["mse"], found.to_dict()["training_r2"]) == (None, None, None)


def test_progress_is_told():
    heard = []
    nested(*made_up(), step=lambda *told: heard.append(told))
    assert heard == [("nested validation", 0, 40), ("nested validation", 40, 40)]


def test_folds_of_groups_split_no_group_and_are_of_about_equal_size():
    groups = [f"g{place % 7}" for place in range(30)]
    fold = grouped_folds(groups, 3)
    assert all(len(set(fold[folds_of_groups(groups) == one])) == 1 for one in range(7))
    assert np.bincount(fold).tolist() == [9, 9, 12]
    assert fold.tolist() == grouped_folds(groups, 3).tolist()


def test_folds_that_cannot_be_are_refused():
    x, y, names = made_up()
    with pytest.raises(UsageError, match="from 2 to the number of groups, 2; got 3"):
        grouped_folds([1, 2], 3)
    with pytest.raises(UsageError, match="every row needs a fold; got 2 for 40 rows"):
        nested(x, y, names, folds=np.array([0, 1]))
    with pytest.raises(DataError, match="at least two folds"):
        leave_out(x, y, folds=np.zeros(40, dtype=int))
