"""Maps from confidences to shares right: by hand, against slow plain twins and scikit-learn, in files."""

import json
from fractions import Fraction
from math import log

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.calibration_maps import (
    FORMAT,
    METHODS,
    BetaMap,
    HistogramMap,
    IsotonicMap,
    MapOrder,
    PlattMap,
    Recalibration,
    TemperatureMap,
    fit_map,
)
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from reference.calibration_maps import is_best, pooled

SURE = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0])
ANSWERS = st.lists(st.tuples(SURE, st.booleans()), min_size=1, max_size=30)
every_method = pytest.mark.parametrize("method", METHODS)


def sweep_of(answers, weight=None):
    confidence, right = zip(*answers, strict=True)
    return Sweep.of(confidence, right, weight=weight)


def some_answers(n=400, seed=0):
    rng = np.random.default_rng(seed)
    chance = rng.random(n).round(3)
    return chance, rng.random(n) < chance**2


def test_isotonic_by_hand():
    """Shares 0, 1, 0, 1 at .1 .2 .3 .9: the fall from 1 to 0 is pooled into 1/2; between knots the map is straight."""
    fitted = IsotonicMap.of(Sweep.of([0.1, 0.2, 0.3, 0.9], [False, True, False, True]))
    assert fitted.confidence == (0.1, 0.2, 0.3, 0.9)
    assert fitted.share == (0.0, 0.5, 0.5, 1.0)
    assert fitted([0.0, 0.15, 0.25, 0.6, 1.0]).tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_a_confidence_of_0_gets_the_share_that_is_right_of_it():
    answers = [(0.0, k % 7 == 0) for k in range(70)] + [(0.9, True)] * 30
    for method in ("isotonic", "histogram"):
        assert fit_map(sweep_of(answers), method, "probabilities")([0.0]) == pytest.approx([1 / 7])


def test_platt_by_hand():
    """3 of 4 are right at a score of 1, and 1 of 4 at 0: targets 5/6 and 1/6 give shares 2/3 and 1/3, a slope of log 4.

    At 1 the target is (3 * 5/6 + 1/6) / 4 = 2/3, at 0 it is 1/3; two parameters fit two points.
    """
    answers = [(1.0, True)] * 3 + [(1.0, False)] + [(0.0, True)] + [(0.0, False)] * 3
    fitted = PlattMap.of(sweep_of(answers))
    assert fitted.slope == pytest.approx(log(4), abs=1e-5)
    assert fitted.intercept == pytest.approx(-log(2), abs=1e-5)


def test_temperature_by_hand():
    """4 in 5 are right at a confidence of 16/17, and 1 in 5 at 1/17: log odds of log 16 should be log 4, so T is 2."""
    high, low = 16 / 17, 1 / 17
    answers = [(high, k < 4) for k in range(5)] + [(low, k < 1) for k in range(5)]
    assert TemperatureMap.of(sweep_of(answers)).temperature == pytest.approx(2.0, abs=1e-5)


def test_scores_are_taken_for_log_odds():
    """4 in 5 are right at a score of 2 log 4, and 1 in 5 at minus that."""
    answers = [(2 * log(4), k < 4) for k in range(5)] + [(-2 * log(4), k < 1) for k in range(5)]
    fitted = fit_map(sweep_of(answers), "temperature", "scores")
    assert fitted.of_log_odds
    assert fitted([2 * log(4)]) == pytest.approx([0.8], abs=1e-5)


def test_beta_by_hand():
    """Three confidences and their shares right fix a, b and c: here those of a map that bends the upper end alone."""
    levels = {0.2: 2 / 6, 0.5: 10 / 15, 0.8: 32 / 36}  # odds p / (1 - p) * 2
    answers = [(one, k < share * 180) for one, share in levels.items() for k in range(180)]
    fitted = BetaMap.of(sweep_of(answers))
    assert [fitted.a, fitted.b, fitted.c] == pytest.approx([1, 1, log(2)], abs=1e-3)


def test_beta_never_falls():
    """Right answers are the less sure ones, so both slopes would be below 0; all that is left is the overall share."""
    fitted = BetaMap.of(sweep_of([(0.9, False), (0.8, False), (0.7, True), (0.2, True), (0.1, True)]))
    assert (fitted.a, fitted.b) == (0, 0)
    assert fitted([0.1, 0.9]).tolist() == pytest.approx([0.6, 0.6], abs=1e-4)


def test_histogram_by_hand():
    """Ten answers in five bins of two; equal confidences are never parted."""
    answers = [(k / 10, k >= 5) for k in range(10)]
    fitted = HistogramMap.of(sweep_of(answers), bins=5)
    assert fitted.begin == (0.2, 0.4, 0.6, 0.8)
    assert fitted.share == (0.0, 0.0, 0.5, 1.0, 1.0)
    heaped = HistogramMap.of(sweep_of([(0.5, k < 3) for k in range(10)]))
    assert (heaped.begin, heaped.share) == ((), (0.3,))


@given(ANSWERS)
def test_isotonic_is_pooling_one_pair_at_a_time(answers):
    sweep = sweep_of(answers)
    weights = (sweep.right + sweep.wrong).tolist()
    shares = [Fraction(int(r), int(w)) for r, w in zip(sweep.right, weights, strict=True)]
    expected = [float(share) for share in pooled(shares, weights)]
    assert IsotonicMap.of(sweep)(sweep.threshold).tolist() == pytest.approx(expected)


@given(st.lists(st.tuples(st.floats(0.05, 0.95).map(lambda p: round(p, 2)), st.booleans()), min_size=8, max_size=30))
def test_no_step_makes_a_fitted_curve_likelier(answers):
    sweep = sweep_of(answers)
    right = sum(one for _, one in answers)
    hit, miss = (right + 1) / (right + 2), 1 / (len(answers) - right + 2)
    drawn_in = [(confidence, hit if one else miss) for confidence, one in answers]
    platt, beta = PlattMap.of(sweep), BetaMap.of(sweep)
    assert is_best(lambda p, slope, shift: slope * p + shift, (platt.slope, platt.intercept), drawn_in)
    if max(beta.a, beta.b, abs(beta.c)) < 8:  # answers that can be separated have no best curve
        curve = (beta.a, beta.b, beta.c)
        plain = [(confidence, float(one)) for confidence, one in answers]
        assert is_best(lambda p, a, b, c: a * log(p) - b * log(1 - p) + c, curve, plain, free="01")


def test_isotonic_is_that_of_scikit_learn():
    isotonic = pytest.importorskip("sklearn.isotonic")
    confidence, right = some_answers()
    twin = isotonic.IsotonicRegression(out_of_bounds="clip").fit(confidence, right)
    grid = np.linspace(-0.1, 1.1, 121)
    assert IsotonicMap.of(Sweep.of(confidence, right))(grid) == pytest.approx(twin.predict(grid))


def test_platt_and_beta_are_logistic_regressions_of_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    confidence, right = some_answers()
    inside = (confidence > 0) & (confidence < 1)
    confidence, right = confidence[inside], right[inside]
    hit, miss = (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2)
    target = np.where(right, hit, miss)
    weight = np.concatenate([target, 1 - target])
    twice = np.concatenate([confidence, confidence])[:, None]
    twin = linear.LogisticRegression(C=1e12, tol=1e-10, max_iter=1000)
    twin.fit(twice, np.repeat([1, 0], confidence.size), sample_weight=weight)
    fitted = PlattMap.of(Sweep.of(confidence, right))
    assert fitted.slope == pytest.approx(twin.coef_[0, 0], rel=1e-4)
    assert fitted.intercept == pytest.approx(twin.intercept_[0], rel=1e-4)
    twin.fit(np.stack([np.log(confidence), -np.log1p(-confidence)], axis=1), right)
    beta = BetaMap.of(Sweep.of(confidence, right))
    assert [beta.a, beta.b, beta.c] == pytest.approx([*twin.coef_[0], twin.intercept_[0]], rel=1e-3)


@every_method
@given(ANSWERS)
def test_a_map_gives_shares_and_rises_unless_it_may_fall(method, answers):
    mapped = fit_map(sweep_of(answers), method, "probabilities")(np.linspace(0, 1, 41))
    assert np.isfinite(mapped).all()
    assert 0 <= mapped.min() <= mapped.max() <= 1
    if method in ("isotonic", "beta", "temperature"):
        assert (np.diff(mapped) >= -1e-15).all()


@every_method
@given(ANSWERS, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(method, answers, random):
    one, two = (
        fit_map(sweep_of(part), method, "probabilities") for part in (answers, random.sample(answers, len(answers)))
    )
    assert one == two


@every_method
def test_weights_count_as_repetition_does(method):
    answers = [(k / 20, k % 3 > 0) for k in range(20)]
    weights = [1.0 + k % 2 for k in range(20)]
    repeated = [one for one, weight in zip(answers, weights, strict=True) for _ in range(int(weight))]
    grid = np.linspace(0, 1, 21)
    weighed, listed = (
        fit_map(sweep, method, "probabilities") for sweep in (sweep_of(answers, weights), sweep_of(repeated))
    )
    assert weighed(grid) == pytest.approx(listed(grid), abs=1e-8)


@pytest.mark.parametrize("method", ["platt", "beta", "temperature"])
def test_answers_that_can_be_separated_still_have_a_finite_map(method):
    fitted = fit_map(sweep_of([(0.2, False)] * 50 + [(0.8, True)] * 50), method, "probabilities")
    low, high = fitted([0.2, 0.8])
    assert 0 < low < 0.1
    assert 0.9 < high < 1 + 1e-12


def test_beta_is_for_probabilities():
    with pytest.raises(UsageError, match=r"`method` beta is for probabilities; these confidences are not all within"):
        fit_map(sweep_of([(3.0, True), (1.0, False)]), "beta", "scores")


def test_infinite_confidences_have_no_map():
    with pytest.raises(DataError, match="needs confidences that are finite numbers"):
        fit_map(sweep_of([(float("-inf"), True), (1.0, False)]), "isotonic", "scores")


ORDERS = {
    "kept": (BetaMap(1.0, 2.0, 0.0), MapOrder(4, 4, turned=False), True),
    "pooled": (IsotonicMap((0.2, 0.6), (0.3, 0.3)), MapOrder(4, 1, turned=False), False),
    "turned": (PlattMap(-1.0, 0.0), MapOrder(4, 4, turned=True), False),
}


@pytest.mark.parametrize("what", ORDERS)
def test_the_order_is_called_kept_only_where_every_confidence_stays_apart(what):
    fitted, order, kept = ORDERS[what]
    assert MapOrder.of(fitted, np.array([0.1, 0.3, 0.5, 0.9, 0.9])) == order
    assert order.kept == kept


def test_confidences_that_differ_in_their_last_digits_are_one():
    near = 0.1 + 0.2, 0.3, 0.5
    assert MapOrder.of(IsotonicMap((0.3, 0.6), (0.2, 0.5)), np.array(near)) == MapOrder(2, 2, turned=False)


@every_method
def test_a_map_is_the_same_after_json(tmp_path, method):
    fitted = Recalibration.fit(*some_answers(), method=method, seed=3, folds=5)
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"map": fitted.to_dict(), "read by": "people"}, allow_nan=False), encoding="utf-8")
    read = Recalibration.read(path)
    assert read == fitted
    assert read.method == method
    assert read.n == 400
    grid = np.linspace(0, 1, 101)
    assert read(grid).tolist() == fitted(grid).tolist()


SOUND = {"format": FORMAT, "level": "answers", "scale": "probabilities", "n": 3, "parameters": {}}
ISOTONIC = {"method": "isotonic", "confidence": [0.2, 0.8], "share": [0.1, 0.9]}
BAD = {
    "another format": ({"format": "demur sweep 1"}, "demur sweep 1"),
    "an older format": ({"format": "demur recalibration 1"}, "demur recalibration 1"),
    "a level that is none": ({"level": "words"}, "level"),
    "an unknown key": ({"run": "rm"}, "unknown field"),
    "an unknown method": ({"parameters": {"method": "magic"}}, "magic"),
    "no method": ({"parameters": {"share": [1.0]}}, "method"),
    "no numbers": ({"parameters": {**ISOTONIC, "share": ["high", "low"]}}, "share"),
    "other lengths": ({"parameters": {**ISOTONIC, "share": [0.1]}}, "knots must rise"),
    "no knots": ({"parameters": {**ISOTONIC, "confidence": [], "share": []}}, "length"),
    "confidences that fall": ({"parameters": {**ISOTONIC, "confidence": [0.8, 0.2]}}, "knots must rise"),
    "confidences that repeat": ({"parameters": {**ISOTONIC, "confidence": [0.2, 0.2]}}, "knots must rise"),
    "shares that fall": ({"parameters": {**ISOTONIC, "share": [0.9, 0.1]}}, "never fall"),
    "a share above 1": ({"parameters": {**ISOTONIC, "share": [0.1, 1.1]}}, "<= 1.0|<= 1"),
    "a number beyond bounds": ({"parameters": {"method": "platt", "slope": 1e300, "intercept": 0}}, "1e"),
    "a slope that falls": ({"parameters": {"method": "beta", "a": -1, "b": 1, "c": 0}}, ">= 0"),
    "no temperature": ({"parameters": {"method": "temperature", "temperature": 0}}, "temperature"),
    "bins that fall": ({"parameters": {"method": "histogram", "begin": [0.5, 0.4], "share": [0, 0, 1]}}, "bins must"),
    "a bin too many": ({"parameters": {"method": "histogram", "begin": [0.5], "share": [0, 0, 1]}}, "bins must"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_file_that_holds_no_map_is_refused_by_name(tmp_path, fault):
    changes, message = BAD[fault]
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"map": {**SOUND, "parameters": ISOTONIC, **changes}}), encoding="utf-8")
    with pytest.raises(DataError, match=f"^{path} does not have the form of a recalibration: .*({message})"):
        Recalibration.read(path)


@pytest.mark.parametrize("text", [b"", b"{", b"[1, 2]", b"\xff\xfe", b"{}", b'{"map": NaN}', b"[" * 10**5])
def test_a_file_that_is_no_json_of_a_map_is_refused_by_name(tmp_path, text):
    path = tmp_path / "map.json"
    path.write_bytes(text)
    with pytest.raises(DataError, match=f"^{path} does not have the form of a recalibration: "):
        Recalibration.read(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read: No such file"):
        Recalibration.read(tmp_path / "nowhere.json")


def test_a_folder_is_no_map(tmp_path):
    with pytest.raises(DataError, match="is no regular file"):
        Recalibration.read(tmp_path)


def test_what_a_file_says_of_a_map_is_plain_to_read():
    stored = Recalibration.fit([0.2, 0.4, 0.4, 0.9], [False, False, True, True]).to_dict()
    assert stored["parameters"] == {"method": "isotonic", "confidence": [0.2, 0.4, 0.9], "share": [0.0, 0.5, 1.0]}
    assert stored["n"] == 4
    assert msgspec.convert(stored, Recalibration).parameters == IsotonicMap((0.2, 0.4, 0.9), (0.0, 0.5, 1.0))
