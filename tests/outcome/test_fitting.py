"""Models of a study whose truth is known: the right confusion is found, priced and validated."""

import math
import random
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import ttest_rel

from demur.errors import DataError, UsageError
from demur.outcome.features import design
from demur.outcome.fitting import (
    PAPER_SETS,
    Procedure,
    feature_sets,
    fit_design,
    fit_regression,
    mse_decreases,
    paired_decrease,
    validate_learners,
)
from demur.outcome.stepwise import Selection
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses
from reference.outcome import CULPRIT, study

LOG = Reading(out_of_scope=(), missing_confidence="lowest")
QUICK = Procedure(replicates=0)


def made(features="conf", *, dialogues_=40, seed=1, shuffled=None, **options):
    turns, outcomes = study(dialogues_, seed=seed)
    if shuffled is not None:
        random.Random(shuffled).shuffle(turns)
        random.Random(shuffled).shuffle(outcomes)
    return design(dialogues(outcomes), responses(turns, reading=LOG), features=features, **options)


@pytest.fixture(scope="module")
def fit():
    return fit_design(made(), how=Procedure(replicates=60))


def test_the_true_confusion_is_chosen_with_its_true_weight(fit):
    assert fit.model.terms[0] == CULPRIT
    assert fit.model.coefficients[CULPRIT] == pytest.approx(-0.6, abs=0.1)
    assert fit.model.coefficients["(Intercept)"] == pytest.approx(0.8, abs=0.05)
    assert fit.regression.bootstrap.selected[CULPRIT] == 1


@pytest.mark.parametrize("seed", range(5))
def test_it_is_priced_with_the_right_sign_and_dearest_in_every_study(seed):
    """Put right, it leaves less of a share; what is left of the others' share grows, so theirs costs nothing."""
    found = fit_design(made(seed=seed), how=QUICK)
    dearest = found.prices[0]
    assert (dearest.predicted, dearest.actual) == ("incomplete", "contradictory")
    assert dearest.change > 0
    assert all(price.change < 0.25 * dearest.change for price in found.prices[1:])


def test_what_was_seen_is_fitted_better_than_what_was_not(fit):
    validation = fit.regression.validation
    assert validation["nested"]["r2"] <= validation["in_sample"]["r2"]
    assert validation["loo"]["r2"] <= validation["in_sample"]["r2"]
    assert validation["nested"]["mse"] >= validation["in_sample"]["mse"]
    assert validation["nested"]["r2"] > 0.8, "the noise is small"


def test_choosing_among_noise_is_seen_through_by_the_nested_validation_only():
    """By chance a study of noise may look fine; on average it is worse than the mean."""
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(12)]
    found = [
        fit_regression(rng.normal(size=(30, 12)), rng.normal(size=30), names, outcome="noise", how=QUICK)
        for _ in range(20)
    ]
    in_sample, left_out, inside = (
        np.mean([getattr(one, kind).r2 for one in found]) for kind in ("chosen", "loo", "nested")
    )
    assert in_sample > left_out > inside, "the choice has seen the rows that are left out"
    assert inside < 0, "as it should be: the mean is the better guess"


def test_seeds_reproduce_and_shuffled_rows_change_nothing(fit):
    again, shuffled = (fit_design(made(shuffled=order), how=Procedure(replicates=60)).to_dict() for order in (None, 5))
    assert again == shuffled == fit.to_dict()
    other = fit_design(made(), how=Procedure(replicates=60, seed=1)).to_dict()
    assert other["bootstrap"] != again["bootstrap"]
    assert other["nested"] == again["nested"]


def test_the_document_holds_what_the_fit_knows(fit):
    document = fit.to_dict()
    assert document["features"] == "conf"
    assert document["dialogues"] == 40
    assert document["undefined"] == "impute-mean"
    assert document["grouped"] is False
    assert document["formula"] == fit.model.formula()
    assert document["mean_outcome"] == pytest.approx(fit.design.y.mean())
    assert document["prices"] == [asdict(price) for price in fit.prices]
    assert document["coefficients"] == pytest.approx(dict(fit.model.coefficients))


def test_models_of_further_columns_have_no_prices():
    assert (
        fit_design(
            made(["age", CULPRIT]), how=Procedure(selection=Selection(scope=(["age"], ["age", CULPRIT])), replicates=0)
        ).prices
        == ()
    )


def test_a_model_without_terms_has_the_mean_for_a_formula():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    y -= x[:, 0] * (x[:, 0] @ y) / (x[:, 0] @ x[:, 0])
    found = fit_regression(x - x.mean(), y, ["x"], outcome="noise", how=QUICK)
    assert found.chosen.terms == ()
    assert found.diagnostics is None
    assert found.performance is None
    assert found.loo.r2 < 0


def test_folds_of_the_nested_validation_leave_leaving_one_out_alone():
    one, five = (fit_design(made(), how=Procedure(replicates=0, folds=folds)).regression for folds in (None, 5))
    assert one.loo.mse == five.loo.mse
    assert one.nested.training_r2s.size == 40
    assert five.nested.training_r2s.size == 5


def test_folds_split_no_group():
    turns, outcomes = study(24)
    for place, row in enumerate(outcomes):
        row["group"] = f"user {place // 3}"
    whole = design(dialogues(outcomes), responses(turns, reading=LOG), features="conf")
    found = fit_design(whole, how=QUICK).regression
    assert found.to_dict()["grouped"] is True
    assert found.nested.training_r2s.size == found.loo.training_r2s.size == 8
    with pytest.raises(UsageError, match="folds must be from 2 to the number of groups, 8; got 9"):
        fit_design(whole, how=Procedure(replicates=0, folds=9))


def test_more_terms_than_dialogues_is_refused_from_the_full_model_and_fine_from_none():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 9)), rng.normal(size=6)
    names = [f"x{k}" for k in range(9)]
    with pytest.raises(DataError, match=r"fits the 6 rows exactly.*offer fewer predictors or more rows"):
        fit_regression(x, y, names, outcome="y", how=QUICK)


def test_terms_to_keep_stay_though_they_explain_nothing():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 2))
    y = x[:, 0] + rng.normal(size=30)
    how = Procedure(selection=Selection(direction="both", scope=(["idle"], ["good", "idle"])), replicates=0)
    assert set(fit_regression(x, y, ["good", "idle"], outcome="y", how=how).chosen.terms) == {"good", "idle"}


def test_warnings_tell_of_aliases_inflation_and_flipped_signs():
    rng = np.random.default_rng(2)
    one = rng.normal(size=60)
    two = one + 0.1 * rng.normal(size=60)
    y = one - 0.8 * two + 0.02 * rng.normal(size=60)
    x = np.column_stack([one, two, 2 * one])
    told = fit_regression(x, y, ["one", "two", "copy"], outcome="y", how=QUICK).warnings
    assert "copy is a combination of terms before it and was left out" in told
    assert any(text.startswith("one goes along with other terms (variance inflation") for text in told)
    assert any(text.startswith("two has a weight of -0.") and " beside the others but +0." in text for text in told)


def test_folds_that_cannot_be_fitted_are_counted_in_a_warning():
    """With the last row left out x is constant and y fitted exactly by its mean."""
    x, y = np.array([[0.0], [0.0], [0.0], [0.0], [1.0]]), np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    with pytest.raises(DataError, match="exactly"):
        fit_regression(x, y, ["x"], outcome="y", how=QUICK)


@pytest.fixture(scope="module")
def sets():
    turns, outcomes = study(30)
    return feature_sets(dialogues(outcomes), responses(turns, reading=LOG), how=QUICK)


def test_feature_sets_stand_side_by_side_under_the_papers_names(sets):
    assert tuple(one.name for one in sets) == PAPER_SETS
    assert [one.candidates for one in sets] == [5, 5, 5, 3, 15, 8, 18]
    by_name = {one.name: one for one in sets}
    for one in sets:
        assert one.validation["nested"]["r2"] <= one.validation["in_sample"]["r2"] + 1e-12
    assert by_name["conf"].terms[0] == CULPRIT
    assert by_name["conf"].validation["nested"]["r2"] > by_name["scores.precision"].validation["nested"]["r2"]


def test_the_r2_that_the_paper_prints_is_that_of_the_training_folds(sets):
    """An intercept alone explains none of the rows it was fitted to, and less than none of those left out."""
    for one in sets:
        assert one.printed[0] == pytest.approx(one.validation["in_sample"]["r2"], abs=0.05)
    y = np.array([0.1, 0.5, 0.3, 0.7, 0.2])
    alone = fit_regression(np.ones((5, 1)), y, ["x"], outcome="y", how=QUICK)
    assert alone.loo.training_r2 == pytest.approx(0, abs=1e-12)
    assert alone.loo.r2 == pytest.approx(1 - (5 / 4) ** 2)


def test_a_decrease_of_the_error_is_tested_dialogue_by_dialogue(sets):
    found = mse_decreases(sets, made(dialogues_=30))
    assert [one.features for one in found] == list(PAPER_SETS[1:])
    conf = next(one for one in found if one.features == "conf")
    by_name = {one.name: one.validation["loo"]["mse"] for one in sets}
    assert conf.loo.value == pytest.approx(by_name["scores.fm"] - by_name["conf"])
    first, other = (next(one for one in sets if one.name == name).errors["loo"] for name in ("scores.fm", "conf"))
    assert conf.loo.p == pytest.approx(ttest_rel(first, other).pvalue)
    assert conf.loo.p_adjusted == pytest.approx(1 - (1 - conf.loo.p) ** 6)


def test_dialogues_of_a_group_vary_together():
    """Each row twice, as one group: interval and p-value are those of the rows once."""
    before, after = np.array([0.4, 0.2, 0.3, 0.6]), np.array([0.1, 0.3, 0.1, 0.2])
    once = paired_decrease(before, after, None)
    twice = paired_decrease(np.repeat(before, 2), np.repeat(after, 2), np.repeat(np.arange(4), 2))
    assert (twice.value, twice.p, twice.low) == pytest.approx((once.value, once.p, once.low))


def test_a_set_that_cannot_be_fitted_says_why_and_the_others_go_on():
    turns, outcomes = study(30)
    found = feature_sets(
        dialogues(outcomes), responses(turns, reading=LOG), sets=("conf", "scores.fm"), how=QUICK, least=100
    )
    assert "there is no feature to explain the outcome by" in found[0].why
    assert found[0].to_dict() == {"features": "conf", "candidates": 0, "terms": [], "why": found[0].why}
    assert found[1].why is None


def test_other_learners_are_held_against_the_same_folds():
    pytest.importorskip("sklearn")
    how = Procedure(replicates=0, folds=4)
    found = validate_learners(made(dialogues_=24), ("ols", "tree"), how=how)
    assert {"ols", "tree"} <= set(found)
    for one in found.values():
        assert one.training_r2s.size == 4
        assert math.isfinite(one.r2)
