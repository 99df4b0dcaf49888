"""The classifier as scikit-learn's own tools use it.

scikit-learn's checks feed tables of numbers, and leave out an estimator of texts but for one check. So they run on a
classifier that writes each row as words, one for each column and rounded value, and is the same otherwise.
"""

import pickle
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from demur.understanding.relevance import RelevanceClassifier

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

TEXTS = ["when do you open", "when do you close", "are you open now", "do you close on sunday"] * 3
LABELS = ["open", "close", "open", "close"] * 3


class OfNumbers(RelevanceClassifier):
    """Takes tables of numbers, as scikit-learn's classifiers do."""

    def fit(self, X: Any, y: Any, answers: Any = None) -> Self:  # noqa: N803 (scikit-learn's name)
        table, labels = validate_data(self, X, y)
        check_classification_targets(labels)
        return super().fit(written(table), labels, answers)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803 (scikit-learn's name)
        check_is_fitted(self)
        return super().predict_proba(written(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        return tags


def written(rows: NDArray[np.float64]) -> list[str]:
    return [" ".join(f"c{column}v{value:.0f}" for column, value in enumerate(row)) for row in rows]


def checked(model: RelevanceClassifier) -> dict[str, list[dict[str, Any]]]:
    """What scikit-learn's checks found, by status."""
    found = check_estimator(model, on_fail=None, on_skip=None)
    statuses = {one["status"] for one in found}
    return {status: [one for one in found if one["status"] == status] for status in statuses}


def test_scikit_learn_checks_little_of_an_estimator_of_texts_and_finds_no_fault() -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator RelevanceClassifier"):
        found = checked(RelevanceClassifier())
    assert {one["check_name"] for one in found.pop("passed")} == {"check_estimator_cloneable"}
    assert not found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`:UserWarning")
@pytest.mark.parametrize("scoring", ["posterior", "kl", "cross-entropy"])
def test_scikit_learn_finds_no_fault_when_rows_are_written_as_texts(scoring: Any) -> None:
    found = checked(OfNumbers(scoring=scoring))
    assert found.get("failed", []) == []
    assert {one["check_name"] for one in found.get("skipped", [])} <= {"check_array_api_input"}
    names = {one["check_name"] for one in found["passed"]}
    assert len(names) > 30
    assert names >= {
        "check_classifiers_train",
        "check_classifiers_classes",
        "check_dict_unchanged",
        "check_estimators_pickle",
        "check_estimators_unfitted",
        "check_fit_idempotent",
        "check_get_params_invariance",
        "check_methods_subset_invariance",
        "check_no_attributes_set_in_init",
        "check_set_params",
    }


def test_it_is_a_classifier_of_texts() -> None:
    assert is_classifier(RelevanceClassifier())
    tags = RelevanceClassifier().__sklearn_tags__().input_tags
    assert tags.string
    assert not tags.two_d_array


def test_a_clone_has_the_parameters_and_has_learnt_nothing() -> None:
    model = RelevanceClassifier(scoring="kl", question_weight=0.2).fit(TEXTS, LABELS)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="has learnt nothing yet; call fit first"):
        copy.predict(TEXTS)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "known"])
def test_before_it_has_learnt_every_question_is_refused(method: str) -> None:
    with pytest.raises(NotFittedError, match="call fit first"):
        getattr(RelevanceClassifier(), method)(["when"])
    with pytest.raises(NotFittedError, match="call fit first"):
        RelevanceClassifier().left_out()


def test_learning_anew_forgets() -> None:
    model = RelevanceClassifier().fit(TEXTS, LABELS, {"open": "at nine"})
    model.fit(["who built it"], ["builder"])
    assert model.predict(["when do you open"]).tolist() == ["builder"]
    assert model.answers_ is None


def test_it_is_validated_by_folds() -> None:
    assert cross_val_score(RelevanceClassifier(), TEXTS, LABELS, cv=3).tolist() == [1.0, 1.0, 1.0]
    found = cross_val_predict(RelevanceClassifier(), np.array(TEXTS), LABELS, cv=3, method="predict_proba")
    assert found.sum(axis=1) == pytest.approx(np.ones(len(TEXTS)))


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "neg_log_loss"])
def test_its_parameters_are_searched_by_any_score(scoring: str) -> None:
    tried = {"question_weight": [0.1, 0.5], "scoring": ["posterior", "kl"]}
    search = GridSearchCV(RelevanceClassifier(), tried, cv=2, scoring=scoring, error_score="raise")
    search.fit(TEXTS, LABELS)
    assert set(search.best_params_) == set(tried)
    assert search.predict(["open now"]).tolist() == ["open"]


def test_it_stands_at_the_end_of_a_pipeline_and_takes_answers_there() -> None:
    spelt = FunctionTransformer(lambda texts: [text.replace("clos", "close") for text in texts])
    line = make_pipeline(spelt, RelevanceClassifier())
    line.fit(TEXTS, LABELS, relevanceclassifier__answers={"open": "at nine"})
    assert line.predict(["when do you clos"]).tolist() == ["close"]
    assert line.set_params(relevanceclassifier__scoring="kl")[-1].scoring == "kl"
    assert line[-1].answers_ == {"close": "", "open": "at nine"}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_may_be_pickled_by_who_wants_to(protocol: int) -> None:
    model = RelevanceClassifier().fit(TEXTS, LABELS, {"open": "at nine"})
    again = pickle.loads(pickle.dumps(model, protocol))
    assert again.predict_proba(TEXTS).tolist() == model.predict_proba(TEXTS).tolist()
    assert again.answers_ == model.answers_


def test_joblib_writes_and_reads_it(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    model = RelevanceClassifier().fit(TEXTS, LABELS)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert again.predict_proba(TEXTS).tolist() == model.predict_proba(TEXTS).tolist()


def test_texts_come_as_any_sequence() -> None:
    import polars as pl

    model = RelevanceClassifier().fit(pl.Series(TEXTS), pl.Series(LABELS))
    for texts in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pl.Series(TEXTS)):
        assert model.predict(texts).tolist() == LABELS
