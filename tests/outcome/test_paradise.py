import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.learners import FullLeastSquares
from demur.outcome.paradise import annotator_kappa, attribute_tables, paradise, system_kappas, task_success
from demur.returns.classes import Confusion, Kappa

NAMES = ["kappa", "turns", "repairs"]
LABELS = st.sampled_from(["a", "b", "c", None])


def dialogues(n=30, seed=0):
    """Satisfaction that rises with kappa and falls with turns; repairs go along with turns."""
    rng = np.random.default_rng(seed)
    kappa, turns = rng.uniform(0, 1, n), rng.integers(5, 30, n).astype(float)
    x = np.column_stack([kappa, turns, turns / 3 + rng.normal(size=n)])
    return x, 20 + 10 * kappa - 0.4 * turns + 2 * rng.normal(size=n)


def tables(*rows):
    """One table of the labels a and b for each (aa, ab, ba, bb, rejected a, rejected b), predicted first."""
    counts = [[[aa, ab], [ba, bb], [ra, rb]] for aa, ab, ba, bb, ra, rb in rows]
    return Confusion(("a", "b"), np.array(counts, dtype=float), 1)


def test_weights_by_hand():
    """Uncorrelated predictors: a weight is the correlation, 3 / √10 for kappa and -1 / √10 for turns."""
    found = paradise([[0.5, 4.0], [0.5, 6.0], [0.9, 4.0], [0.9, 6.0]], [2.0, 1.0, 5.0, 4.0], ["kappa", "turns"])
    assert {name: weight.value for name, weight in found.weights.items()} == pytest.approx(
        {"kappa": 3 / np.sqrt(10), "turns": -1 / np.sqrt(10)}
    )
    assert found.r2 == pytest.approx(1)
    assert found.performance([[0.9, 4.0]]) == pytest.approx([(5 - 3) / np.sqrt(10 / 3)])
    assert found.predict([[0.7, 5.0]]) == pytest.approx([3.0])
    assert found.deviations == pytest.approx({"kappa": np.sqrt(0.16 / 3), "turns": np.sqrt(4 / 3)})


def test_one_predictor_has_its_correlation_for_a_weight_and_the_p_of_its_test():
    from scipy.stats import pearsonr

    x, y = dialogues()
    weight = paradise(x[:, :1], y, ["kappa"]).weights["kappa"]
    expected = pearsonr(x[:, 0], y)
    assert weight.value == pytest.approx(expected.statistic)
    assert weight.p == pytest.approx(expected.pvalue)
    assert weight.error == pytest.approx(np.sqrt((1 - expected.statistic**2) / 28))


@given(st.integers(4, 25), st.integers(0, 1000))
def test_taking_z_scores_does_not_change_predictions(n, seed):
    x, y = dialogues(n, seed)
    plain = FullLeastSquares().fit(x, y, NAMES)
    found = paradise(x, y, NAMES)
    assert found.predict(x) == pytest.approx(plain.predict(x), abs=1e-6)
    assert found.performance(x).mean() == pytest.approx(0, abs=1e-9)


SCALES = st.lists(st.floats(0.01, 100.0), min_size=3, max_size=3)
SHIFTS = st.lists(st.floats(-100.0, 100.0), min_size=3, max_size=3)


@given(SCALES, SHIFTS, st.floats(0.01, 100.0), st.floats(-100.0, 100.0))
def test_weights_do_not_depend_on_the_units_of_predictors_or_outcome(scales, shifts, factor, shift):
    x, y = dialogues()
    one, other = paradise(x, y, NAMES), paradise(x * scales + shifts, y * factor + shift, NAMES)
    for name in NAMES:
        assert other.weights[name].value == pytest.approx(one.weights[name].value, abs=1e-6)
        assert other.weights[name].p == pytest.approx(one.weights[name].p, abs=1e-6)
    assert other.r2 == pytest.approx(one.r2)
    assert other.performance(x * scales + shifts) == pytest.approx(one.performance(x), abs=1e-6)


def test_turning_a_predictor_round_turns_its_weight_round():
    x, y = dialogues()
    one, other = paradise(x, y, NAMES), paradise(x * [1, -1, 1], y, NAMES)
    assert other.weights["turns"].value == pytest.approx(-one.weights["turns"].value)
    assert other.weights["kappa"].value == pytest.approx(one.weights["kappa"].value)


def test_predictors_that_are_constant_or_determined_by_others_are_left_out_by_name():
    x, y = dialogues()
    more = np.column_stack([x, np.full(30, 0.1), 3 - 2 * x[:, 1]])
    found = paradise(more, y, [*NAMES, "channel", "copy"])
    assert found.left_out == ("channel", "copy")
    assert found.weights == paradise(x, y, NAMES).weights
    assert found.predict(more + np.array([0, 0, 0, 5, 0])) == pytest.approx(found.predict(more))


def test_without_a_predictor_that_varies_performance_is_nothing():
    found = paradise([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0], ["kappa"])
    assert found.formula() == "0"
    assert found.r2 == pytest.approx(0)
    assert found.predict([[9.0]]).tolist() == [2.0]


def test_as_many_weights_as_dialogues_allow_leave_no_test():
    x, y = dialogues(4)
    found = paradise(x, y, NAMES)
    assert found.r2 == pytest.approx(1)
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert shown["weights"]["kappa"]["p"] is None
    assert shown["adjusted_r2"] is None


def test_the_function_is_plain_values_and_reads_as_a_formula():
    x, y = dialogues()
    shown = json.loads(json.dumps(paradise(x, y, NAMES).to_dict(), allow_nan=False))
    assert shown["formula"].startswith("- 0.")
    assert {"N(kappa)", "N(turns)", "N(repairs)"} <= set(shown["formula"].split())
    assert shown["n"] == 30


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[0.5]], [1.0], "at least two dialogues"),
        ([[0.5], [0.6]], [1.0, 1.0], "the outcome is the same in every dialogue"),
        ([[0.5], [np.nan], [0.7]], [1.0, 2.0, 3.0], '"kappa" must be a finite number.*drop, zero or impute-mean'),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(x, y, message):
    with pytest.raises(DataError, match=message):
        paradise(x, y, ["kappa"])


def test_other_columns_than_fitted_are_refused():
    with pytest.raises(DataError, match="a table with 1 columns"):
        paradise([[0.5], [0.6], [0.8]], [1.0, 3.0, 2.0], ["kappa"]).performance([[0.5, 1.0]])


def test_kappa_of_a_dialogue_by_hand():
    """4 of 8 right, one of each rejected, chance (5·4 + 1·4) / 64; without them 4 of 6, chance (5·3 + 1·3) / 36."""
    confusion = tables((3, 2, 0, 1, 1, 1))
    assert task_success(confusion) == pytest.approx([(4 / 8 - 24 / 64) / (1 - 24 / 64)])
    assert task_success(confusion, rejected="out") == pytest.approx([(4 / 6 - 18 / 36) / (1 - 18 / 36)])


def test_chance_may_be_that_of_all_dialogues_or_of_the_key():
    """Key: 7 a, 5 b of 12. Found: 7 a, 4 b, 1 rejected. First dialogue 4 of 6 right, second 5 of 6."""
    confusion = tables((3, 1, 1, 1, 0, 0), (3, 0, 0, 2, 0, 1))
    corpus, key = (7 * 7 + 5 * 4) / 144, (7 * 7 + 5 * 5) / 144
    assert task_success(confusion, chance="corpus") == pytest.approx(
        [(4 / 6 - corpus) / (1 - corpus), (5 / 6 - corpus) / (1 - corpus)]
    )
    assert task_success(confusion, chance="key") == pytest.approx(
        [(4 / 6 - key) / (1 - key), (5 / 6 - key) / (1 - key)]
    )


def test_a_dialogue_with_one_label_has_a_kappa_only_against_the_corpus():
    confusion = tables((4, 0, 0, 0, 0, 0), (2, 0, 0, 2, 0, 0))
    assert np.isnan(task_success(confusion)).tolist() == [True, False]
    assert task_success(confusion, chance="corpus").tolist() == [1.0, 1.0]


def test_a_corpus_with_one_label_has_no_kappa_at_all():
    confusion = tables((4, 0, 0, 0, 0, 0))
    for chance in ("dialogue", "corpus", "key"):
        assert np.isnan(task_success(confusion, chance=chance)).all()


def test_a_dialogue_of_rejections_has_no_kappa_without_them():
    confusion = tables((0, 0, 0, 0, 2, 3), (2, 1, 0, 2, 0, 0))
    for chance in ("dialogue", "corpus", "key"):
        assert np.isnan(task_success(confusion, rejected="out", chance=chance)).tolist() == [True, False]
    assert task_success(confusion)[0] == 0


def test_one_dialogue_is_its_own_corpus():
    confusion = tables((3, 2, 0, 1, 1, 1))
    assert task_success(confusion, chance="corpus") == pytest.approx(task_success(confusion))


@pytest.mark.parametrize("option", [{"chance": "luck"}, {"rejected": "kept"}])
def test_other_readings_of_kappa_are_refused(option):
    with pytest.raises(UsageError, match="got"):
        task_success(tables((1, 0, 0, 1, 0, 0)), **option)


KEYS = [{"from": "Turin", "to": "Milan", "day": "Friday"}, {"from": "Milan", "to": "Turin", "day": "Friday"}]


def test_attribute_value_tables_by_hand():
    """All right: kappa 1. One of three missing: 2/3 right, chance 2/9, so (6/9 - 2/9) / (7/9)."""
    found = [dict(KEYS[0]), {"from": "Milan", "to": None, "day": "Friday"}]
    confusion = attribute_tables(KEYS, found)
    assert task_success(confusion) == pytest.approx([1, 4 / 7])
    assert confusion.labels == ("day=Friday", "from=Milan", "from=Turin", "to=Milan", "to=Turin")


def test_the_same_value_of_two_attributes_is_not_the_same_label():
    confusion = attribute_tables(KEYS, [{"from": "Milan", "to": "Turin", "day": "Friday"}] * 2)
    assert confusion.hits.sum(axis=-1).tolist() == [1.0, 3.0]


def test_an_attribute_nobody_asked_for_is_an_error_of_its_own():
    confusion = attribute_tables(KEYS[:1], [{**KEYS[0], "class": "first", "seat": None}])
    assert "class=(none)" in confusion.labels
    assert not any(label.startswith("seat") for label in confusion.labels)
    assert confusion.counts.sum() == 4
    assert confusion.hits.sum() == 3


@pytest.mark.parametrize(
    ("keys", "found", "message"),
    [
        (KEYS, KEYS[:1], "got 2 and 1"),
        ([KEYS[0], {}], [{}, {}], "dialogue 1: a dialogue needs at least one attribute"),
        ([], [], "a dialogue needs at least one attribute"),
    ],
)
def test_tables_without_dialogues_or_attributes_are_refused(keys, found, message):
    with pytest.raises(DataError, match=message):
        attribute_tables(keys, found)


def test_annotators_by_hand():
    """3 of 4 agree. Own: chance (2·2 + 2·1) / 16; left out, the three they both labelled agree fully."""
    first, second = ["a", "a", "b", "b"], ["a", "a", "b", None]
    assert annotator_kappa(first, second).value == pytest.approx((3 / 4 - 6 / 16) / (1 - 6 / 16))
    assert annotator_kappa(first, second, unlabelled="out").value == 1


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30), st.sampled_from(["own", "out"]))
def test_it_does_not_matter_which_annotator_is_first(pairs, unlabelled):
    assume(unlabelled == "own" or any(None not in pair for pair in pairs))
    first, second = zip(*pairs, strict=True)
    one, other = (annotator_kappa(*sides, unlabelled=unlabelled) for sides in ((first, second), (second, first)))
    assert one.value == pytest.approx(other.value, nan_ok=True)
    assert one.why == other.why


def test_annotators_can_agree_that_there_is_no_label():
    assert annotator_kappa(["a", None], ["a", None]).value == 1


def test_annotators_with_one_label_between_them_have_no_kappa_and_the_reason_is_told():
    figure = annotator_kappa(["a", "a"], ["a", "a"])
    assert np.isnan(figure.value)
    assert "chance agreement is already complete" in figure.why


@pytest.mark.parametrize(
    ("first", "second", "option", "fault", "message"),
    [
        (["a"], ["a", "b"], "own", DataError, "got 1 and 2"),
        (["a", None], [None, "b"], "out", DataError, "no item that both annotators labelled"),
        ([], [], "own", DataError, "no item"),
        (["a"], ["a"], "half", UsageError, 'got "half"'),
    ],
)
def test_annotations_that_cannot_be_compared_are_refused(first, second, option, fault, message):
    with pytest.raises(fault, match=message):
        annotator_kappa(first, second, unlabelled=option)


def test_a_system_has_a_kappa_with_rejections_and_one_without():
    confusion = Confusion.of(["a", "a", "b", "b"], ["a", "a", "b", None])
    kappas = system_kappas(confusion)
    assert kappas["own"].value == pytest.approx(float(Kappa("own").finish(confusion)))
    assert kappas["out"].value == 1
    assert system_kappas(Confusion.of(["a"], [None]))["out"].why
