import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

import demur
from demur.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.array(["a", "b", "c"])[np.argmax(X + RNG.normal(size=(240, 3)), axis=1)]
MODEL = LogisticRegression().fit(X[:120], Y[:120])
PROBA = MODEL.predict_proba(X[120:])
QUICK = {"replicates": 50}


def values(*data, **options):
    (found,) = demur.score(*data, **QUICK, **options)
    return found.n, found.figures["augrc"].value, found.figures["forced_error"].value


def test_arrays_series_lists_frames_and_estimators_give_the_same_scores():
    truth = Y[120:]
    expected = values(truth, PROBA, classes=MODEL.classes_)
    assert expected[2] == pytest.approx(np.mean(MODEL.predict(X[120:]) != truth))
    assert values(truth.tolist(), PROBA.tolist()) == expected
    assert values(pd.Series(truth), pd.DataFrame(PROBA, columns=MODEL.classes_)) == expected
    assert values(pl.Series(truth), pl.DataFrame(PROBA, schema=list(MODEL.classes_))) == expected
    assert values(truth, MODEL.predict(X[120:]), PROBA.max(axis=1)) == expected
    assert values(MODEL, X[120:], truth) == expected
    assert values(demur.predictions(truth, PROBA)) == expected
    assert demur.augrc_score(truth, PROBA) == pytest.approx(expected[1])


def test_the_area_of_arrays_is_the_one_worked_by_hand():
    # right, right, right, wrong; the wrong one ties with the surest: rank 3.5 of 4, so (3.5 - 0.5) / 16
    truth, second = [0, 0, 1, 1], [0.1, 0.2, 0.6, 0.1]
    assert demur.augrc_score(truth, second) == 0.1875
    assert demur.augrc_score(np.array(truth, dtype=float), np.array(second)) == 0.1875
    assert demur.augrc_score([False, False, True, True], second) == 0.1875
    assert demur.error_at_nonreturn_score(truth, second, nonreturn=0) == 0.25
    assert demur.nonreturn_at_error_score(truth, second, error=0.25) == 0
    assert demur.augrc_score(truth, second, sample_weight=[1, 1, 1, 1]) == 0.1875


def test_two_systems_are_compared_by_arrays_and_by_estimators():
    truth, other = Y[120:], PROBA[:, [1, 2, 0]]
    by_array = demur.compare(truth, {"good": PROBA, "poor": other}, classes=MODEL.classes_, **QUICK)
    assert (by_array.pairs[0].a, by_array.pairs[0].paired, by_array.pairs[0].verdict) == ("good", True, "a dominates")
    margin = LinearSVC().fit(X[:120], Y[:120])
    by_model = demur.compare({"logistic": MODEL, "margin": margin}, X[120:], truth, **QUICK)
    assert [one.system for one in by_model.evaluations] == ["logistic", "margin"]
    report = demur.report(truth, {"good": PROBA, "poor": other}, **QUICK)
    assert {"good", "poor"} <= set(report.analyses.mixture.responses.systems)


@pytest.mark.parametrize("name", ["augrc_score", "aurc_score", "e_aurc_score", "nonreturn_at_error_score"])
def test_scores_serve_as_scorers_of_scikit_learn(name):
    scorer = make_scorer(getattr(demur, name), response_method="predict_proba", greater_is_better=False)
    found = cross_val_score(LogisticRegression(), X, Y, scoring=scorer, cv=3)
    assert np.isfinite(found).all()
    assert (found <= 0).all()
    binary = cross_val_score(LogisticRegression(), X, Y == "a", scoring=scorer, cv=3)
    assert np.isfinite(binary).all()


def test_a_ranking_skill_is_higher_for_the_better():
    scorer = make_scorer(demur.ranking_skill_score, response_method="predict_proba")
    assert cross_val_score(LogisticRegression(), X, Y, scoring=scorer, cv=3).mean() > 0.2


@pytest.mark.parametrize(
    ("data", "options", "fault"),
    [
        (([0, 1], [0.5]), {}, "one length; y_true has 2 and y_pred 1"),
        (([0, 1, 2], [0.5, 0.1, 0.2]), {}, "probability of the second of two classes"),
        (([0, 1], ["a", "b"]), {}, "probability of the second of two classes"),
        (([0, 1], [[0.2, 0.3, 0.5]] * 2), {}, "3 columns of probabilities and 2 classes"),
        (([0, 1], [[0.2, float("nan")]] * 2), {}, "row 1 a probability is NaN"),
        (([[0], [1]], [[0.2, 0.8]] * 2), {}, "y_true must have one dimension"),
        (([0, 1], [["high", "low"]] * 2), {}, "probabilities must be numbers"),
        (([0, 1], ["a", "b"], [0.5, "high"]), {}, 'confidence: row 2 must be a number; got "high"'),
        (([0, 1], ["a", "b"], [0.5]), {}, "one length; y_true has 2 and confidence 1"),
        ((["a", "b"], [[0.2, 0.8]] * 2), {"classes": ["a", "a"]}, 'names a class twice; got "a, a"'),
        (
            (["a", "b"], pl.DataFrame([[0.2, 0.8]] * 2, schema=["a", "b"], orient="row")),
            {"classes": ["b", "a"]},
            "another order than the columns of the frame",
        ),
        ((pd.Series(["a", 1]), [[0.2, 0.8]] * 2), {}, "labels of one kind"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(data, options, fault):
    with pytest.raises(DataError, match=fault):
        demur.score(*data, **options)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("labels", [(0, 1, 2), ("a", "b", "c")])
def test_a_missing_label_is_out_of_scope_and_no_class(missing, labels):
    truth = pd.Series([labels[0], missing, labels[1]], dtype=object)
    sure = [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]
    found = demur.predictions(truth, sure)
    assert found["target"].is_null().to_list() == [False, True, False]
    assert demur.augrc_score(truth, sure) == pytest.approx(1 / 6)  # the wrong one is the second of three
    with pytest.raises(DataError, match="3 columns of probabilities and 2 classes"):
        demur.predictions(truth, [[0.8, 0.1, 0.1]] * 3)


@pytest.mark.parametrize("rate", ["20%", None, (0.1, "x"), True])
def test_a_rate_that_is_no_number_is_refused(rate):
    with pytest.raises(
        UsageError, match=r"`at_nonreturn` takes a rate such as 0\.2, or a range such as \(0\.1, 0\.3\)"
    ):
        demur.score([0, 1], [0.2, 0.8], at_nonreturn=rate)


def test_weights_of_another_length_are_refused():
    with pytest.raises(DataError, match="one length; y_true has 2 and sample_weight 3"):
        demur.augrc_score([0, 1], [0.2, 0.8], sample_weight=[1, 1, 1])


def test_classes_without_arrays_and_models_without_confidence_are_refused(tmp_path):
    with pytest.raises(UsageError, match="`classes` goes with arrays"):
        demur.score(tmp_path / "log.csv", classes=["a"])

    class Guess:
        def fit(self): ...
        def predict(self): ...

    with pytest.raises(UsageError, match="Guess has neither predict_proba nor decision_function"):
        demur.score(Guess(), X, Y)


def test_a_display_draws_a_chart():
    display = demur.ErrorReturnDisplay.from_estimator(MODEL, X[120:], Y[120:])
    assert display.chart_.to_dict()["description"].startswith("Error-return")
    assert (display.name, display.evaluation.n) == ("LogisticRegression", 120)
    assert repr(display).startswith("<ErrorReturnDisplay of LogisticRegression: AUGRC 0.")


def test_a_display_draws_curve_band_and_name_on_axes_of_matplotlib():
    figure_of = pytest.importorskip("matplotlib.figure").Figure
    axes = figure_of().subplots()
    drawn = demur.ErrorReturnDisplay.from_predictions(Y[120:], PROBA, name="mine", ax=axes, linestyle="--")
    demur.ErrorReturnDisplay.from_estimator(MODEL, X[120:], Y[120:], ax=axes)
    assert (drawn.ax_, drawn.figure_) == (axes, axes.figure)
    assert np.array_equal(drawn.line_.get_xydata(), np.column_stack([drawn.nonreturn, drawn.error]))
    assert drawn.line_.get_linestyle() == "--"
    band, edges = drawn.evaluation.band, drawn.band_.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((band.low_all.min(), band.high_all.max()))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [f"{name} (AUGRC = {drawn.augrc:.3f})" for name in ("mine", "LogisticRegression")]
    assert len({line.get_color() for line in axes.lines}) == 2
    assert (axes.get_ylim()[0], axes.get_xlim()) == (0, (0, 1))


def test_a_result_is_a_few_lines_and_writes_its_figures(tmp_path):
    found = demur.score(MODEL, X[120:], Y[120:], **QUICK)
    choice = demur.threshold(MODEL, X[120:], Y[120:], max_nonreturn=0.2, **QUICK)
    comparison = demur.compare({"a": MODEL, "b": MODEL}, X[120:], Y[120:], **QUICK)
    report = demur.report(MODEL, X[120:], Y[120:], **QUICK)
    for one in (found, found[0], found[0].curve, choice, comparison, comparison.pairs[0], report):
        assert len(repr(one)) < 800, repr(one)
        assert repr(one).count("\n") <= 4
    assert {"roc", "det", "reliability"} <= set(found.figure_names())
    found.save(tmp_path / "roc.svg", "roc", width="3.3in", title=False)
    found[0].curve.save(tmp_path / "curve.svg")
    assert 'width="3.3in"' in (tmp_path / "roc.svg").read_text()
    assert (tmp_path / "curve.svg").stat().st_size > 1000


def test_several_arrays_of_probabilities_are_given_by_name():
    with pytest.raises(DataError, match="of several systems give a dict"):
        demur.compare(Y[120:], PROBA, PROBA)


def test_functions_that_take_no_arrays_say_what_makes_a_frame_of_them():
    with pytest.raises(DataError, match=r"demur\.predictions makes a frame of arrays"):
        demur.fit_recalibration(Y[120:], PROBA)
    assert demur.fit_recalibration(demur.predictions(Y[120:], PROBA), **QUICK).fitted
