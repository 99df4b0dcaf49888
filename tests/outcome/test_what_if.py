"""What if confusions were put right: the same answer as computing it anew, and as the price of a confusion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.lab import tutor
from demur.outcome.features import design
from demur.outcome.fitting import Procedure, fit_design
from demur.outcome.prediction import mean_features, model_from_formula, what_if
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses

LOG = Reading(out_of_scope=(), missing_confidence="lowest")
DEAR = ("pc_incomplete", "contradictory")


@pytest.fixture(scope="module")
def fit():
    turns, held = tutor.study(dialogues=30)
    made = design(dialogues(held), responses(turns, reading=LOG), features="conf+scores.f")
    return fit_design(made, how=Procedure(replicates=0))


def test_half_of_a_confusion_put_right_changes_the_outcome_by_its_price(fit):
    price = next(one for one in fit.prices if (one.predicted, one.actual) == DEAR)
    found = what_if(fit.model, fit.design.turns, {DEAR: 0.5})
    assert found.change.value == pytest.approx(price.change)
    assert found.mended == pytest.approx(price.count / 2)
    assert found.change.low < found.change.value < found.change.high


def test_several_confusions_are_computed_together_not_added_up(fit):
    both = {DEAR: 1.0, ("pc_incomplete", "correct"): 0.5}
    turns = fit.design.turns.corrected(*DEAR, 1.0).corrected("pc_incomplete", "correct", 0.5)
    found = what_if(fit.model, fit.design.turns, both)
    assert found.then.figure.value == pytest.approx(fit.model.value(mean_features(fit.model, turns)))


def test_nothing_put_right_changes_nothing(fit):
    found = what_if(fit.model, fit.design.turns, {})
    assert (found.change.value, found.change.low, found.change.high, found.mended) == (0.0, 0.0, 0.0, 0.0)
    assert found.to_dict()["outside"] == []


def test_a_model_written_by_hand_has_no_interval(fit):
    by_hand = model_from_formula("gain", {"(Intercept)": 0.5, "recall.correct": 0.4})
    found = what_if(by_hand, fit.design.turns, {("pc_incomplete", "correct"): 1.0})
    assert found.change.value > 0
    assert found.to_dict()["change"]["low"] is None


def test_what_lies_beyond_the_training_data_is_predicted_and_said(fit):
    labels = fit.design.turns.labels
    every = {(one, other): 1.0 for one in labels for other in labels if one != other}
    assert what_if(fit.model, fit.design.turns, every).then.outside


@pytest.mark.parametrize(
    ("mended", "told"),
    [
        ({("nonsense", "correct"): 0.5}, 'there is no label "nonsense"'),
        ({("correct", "correct"): 0.5}, "is right already"),
        ({DEAR: 1.5}, "lies between 0 and 1; got 1.5"),
    ],
)
def test_what_is_no_confusion_is_refused(fit, mended, told):
    with pytest.raises(UsageError, match=told):
        what_if(fit.model, fit.design.turns, mended)


@given(share=st.floats(0, 1))
def test_the_change_is_then_less_now(fit, share):
    found = what_if(fit.model, fit.design.turns, {DEAR: share})
    assert found.change.value == pytest.approx(found.then.figure.value - found.now.figure.value)
