import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.calibration_maps import IsotonicMap, Recalibration
from demur.errors import DataError
from demur.nbest_lists.evaluate import NBestSettings, nbest_values
from demur.nbest_lists.exploded import explode
from demur.nbest_lists.recalibrate import fit_acts, fit_items, nbest_rows, recalibrated_acts, recalibrated_items
from demur.nbest_lists.table import NBestReading, nbest, read_nbest
from nbest_lists.nbest_logs import log, simulated, table

QUICK = NBestSettings(replicates=100)
SURE = st.sampled_from([0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0])
ANSWERS = st.lists(st.tuples(SURE, st.booleans(), st.sampled_from([1.0, 2.0, 0.5])), min_size=1, max_size=30)


def over_confident(lists):
    """The lists with nearly all mass on the surest of their three hypotheses, however doubtful the system was."""
    cubed = lists.confidence**3
    return lists.with_confidences(cubed / np.repeat(np.add.reduceat(cubed, lists.start[:-1]), 3))


def halves(lists):
    middle = len(lists) // 2
    return lists.taken(np.arange(middle)), lists.taken(np.arange(middle, len(lists)))


def mapping(confidence, share, n):
    parameters = IsotonicMap(confidence, share)
    return Recalibration(level="items", scale="probabilities", parameters=parameters, n=n)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fitted_on_one_half_it_lowers_the_ice_of_the_other(seed):
    fitted_on, other = halves(over_confident(simulated(400, seed=seed)))
    found = recalibrated_items(other, fit_items(fitted_on), QUICK)
    change = found.differences["ice"]
    assert found.after["ice"] < found.before["ice"]
    assert change.high < 0
    assert change.value == pytest.approx(found.after["ice"] - found.before["ice"])
    assert found.differences["nce"].low > 0
    assert found.before["ice"] == pytest.approx(nbest_values(other)["ice"])


def test_it_wins_back_what_was_called_miscalibration_on_the_same_lists():
    lists = over_confident(simulated(200, seed=4))
    values, found = nbest_values(lists), recalibrated_items(lists, fit_items(lists), QUICK)
    assert found.before["ice"] - found.after["ice"] == pytest.approx(values["ice_miscalibration"], rel=1e-9)


def test_calibrated_lists_are_left_about_as_they_are():
    sure = explode(simulated(1000, seed=5)).items.filter("answered")["confidence"].to_numpy()
    fitted = Recalibration.fit(sure, np.random.default_rng(0).random(sure.size) < sure)
    assert np.abs(fitted(sure) - sure).mean() < 0.02


@given(ANSWERS)
def test_the_map_rises_between_0_and_1(answers):
    sure, right, weight = zip(*answers, strict=True)
    fitted = Recalibration.fit(sure, right, weight=weight)
    mapped = fitted(np.linspace(0, 1, 41))
    assert (np.diff(mapped) >= 0).all()
    assert 0 <= mapped.min() <= mapped.max() <= 1


@given(ANSWERS)
def test_the_map_keeps_the_overall_share_right(answers):
    sure, right, weight = (np.array(part, dtype=float) for part in zip(*answers, strict=True))
    fitted = Recalibration.fit(sure, right > 0, weight=weight)
    assert (fitted(sure) * weight).sum() == pytest.approx((right * weight).sum())


def test_levels_that_are_alike_are_kept_as_their_two_ends():
    fitted = Recalibration.fit([0.1, 0.2, 0.3, 0.4, 0.9], [False, True, False, False, True])
    assert fitted.parameters.confidence == (0.1, 0.2, 0.4, 0.9)
    assert fitted.parameters.share == pytest.approx((0, 1 / 3, 1 / 3, 1))
    assert fitted.n == 5
    assert fitted([0.65]).tolist() == pytest.approx([2 / 3])  # half way from 1/3 at .4 to 1 at .9


def test_nothing_hypothesised_is_nothing_to_fit_on():
    lists = nbest([{"reference": ["a"], "hypotheses": []}])
    for fit in (fit_items, fit_acts):
        with pytest.raises(DataError, match="nothing to fit a recalibration on: nothing is hypothesised"):
            fit(lists)


def test_weights_count_in_the_fit_as_repetition_does():
    rows = [{**row, "weight": 1.0 + place % 3} for place, row in enumerate(log(60, seed=6))]
    repeated = [
        {**row, "id": f"{row['id']}.{time}", "weight": 1.0} for row in rows for time in range(int(row["weight"]))
    ]
    for fit in (fit_items, fit_acts):
        weighed, listed = (fit(table(part)) for part in (rows, repeated))
        assert weighed.parameters.confidence == listed.parameters.confidence
        assert weighed.parameters.share == pytest.approx(listed.parameters.share)


def test_items_that_no_hypothesis_holds_keep_their_0():
    lists = nbest([{"id": "u", "reference": ["a", "c"], "hypotheses": [{"items": ["a"], "confidence": 0.5}]}])
    (row,) = nbest_rows(lists, mapping((0.0, 1.0), (0.4, 0.8), 2))
    assert row["item_confidences"] == pytest.approx({"a": 0.6})


def test_an_act_listed_with_a_confidence_of_0_is_mapped_as_any_other():
    hypotheses = [{"items": ["a"], "confidence": 0.5}, {"items": ["b"], "confidence": 0.0}]
    lists = nbest([{"id": "u", "reference": ["a"], "hypotheses": hypotheses}])
    assert recalibrated_acts(lists, mapping((0.0, 1.0), (0.1, 0.5), 2)).confidence.tolist() == pytest.approx([0.3, 0.1])


@given(ANSWERS, st.integers(0, 20))
def test_recalibrated_lists_never_sum_to_over_1(answers, seed):
    fitted = Recalibration.fit(*(list(part) for part in list(zip(*answers, strict=True))[:2]), level="acts")
    lists = table(log(20, seed=seed))
    mended = recalibrated_acts(lists, fitted)
    assert (mended.given_out <= 1 + 1e-12).all()
    assert (mended.confidence >= 0).all()
    assert mended.act is lists.act


def test_recalibrated_acts_lower_the_cost_of_acts_on_the_other_half():
    fitted_on, other = halves(over_confident(simulated(400, seed=8)))
    mended = recalibrated_acts(other, fit_acts(fitted_on))
    assert nbest_values(mended)["ace"] < nbest_values(other)["ace"]
    assert nbest_values(mended)["oracle"] == nbest_values(other)["oracle"]


def test_rows_written_out_read_back_as_the_same_table(tmp_path):
    lists = table(log(40, seed=9, weighted=True, system="café"))
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in nbest_rows(lists)), encoding="utf-8")
    reading = NBestReading(keep=("noise",))
    for again in (nbest(list(nbest_rows(lists)), reading=reading), read_nbest(path, reading=reading)):
        assert again.frame.equals(lists.frame.select(again.frame.columns))
        assert again.sets.names == lists.sets.names
        for name in ("reference", "start", "act", "confidence"):
            assert getattr(again, name).tolist() == getattr(lists, name).tolist(), name


def test_rows_with_a_map_tell_the_recalibrated_confidence_of_each_item():
    hypotheses = [{"items": ["a", "b"], "confidence": 0.5}, {"items": ["a"], "confidence": 0.25}]
    lists = nbest([{"id": "u", "reference": ["a", "c"], "hypotheses": hypotheses}])
    fitted = mapping((0.5, 0.75), (0.2, 1.0), 2)
    (row,) = nbest_rows(lists, fitted)
    assert row["item_confidences"] == pytest.approx({"a": 1.0, "b": 0.2})
    assert row["hypotheses"][0] == {"items": ["a", "b"], "confidence": 0.5}
    assert nbest(list(nbest_rows(lists, fitted))).confidence.tolist() == [0.5, 0.25]


def test_plain_values_of_a_recalibration_survive_json():
    fitted_on, other = halves(over_confident(simulated(60, seed=10)))
    found = recalibrated_items(other, fit_items(fitted_on), QUICK).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["fitted_on_items"] == int(explode(fitted_on).items["answered"].sum())


def test_an_undefined_value_is_null_in_json():
    lists = nbest([{"reference": [], "hypotheses": [{"items": ["a"], "confidence": 0.5}]}] * 2)
    found = recalibrated_items(lists, mapping((0.5,), (0.5,), 1), QUICK).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["before"]["ice"] is None
