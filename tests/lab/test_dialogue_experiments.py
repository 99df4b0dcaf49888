"""Learned policies and the experiments with dialogues in the loop."""

import gzip
import json
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.options import Sampling
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.lab.dialogue.domain import TaskDomain
from demur.lab.dialogue.experiments import (
    Loop,
    correlation,
    error_return_area,
    least_squares_prices,
    of_predictors,
    of_rejection,
    predictors_of,
    recorded_lists,
    simulated_conditions,
    threshold_experiment,
)
from demur.lab.dialogue.injected import of_injected
from demur.lab.dialogue.learning import Lessons, learn_policy, of_learning, write_policy
from demur.lab.dialogue.managers import LEARNED, default_policy
from demur.lab.jobs import confusion, injected, oracle, predictors, reward, simulate
from demur.returns.measures import AUGRC

DSTC2 = Path(__file__).parents[3] / "shared" / "data" / "dstc2" / "dstc2_train_nbest.jsonl.gz"
QUICK = Sampling(replicates=50)


@cache
def loop():
    """Two managers at two levels of noise and two qualities, a few users each."""
    return Loop(noise=(0.1, 0.45), dialogues=12, qualities=("good", "flat")).run()


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.9]), st.booleans()), min_size=1, max_size=12))
def test_the_error_return_area_of_counts_is_that_of_the_measure(answers):
    confidence, right = map(list, zip(*answers, strict=True))
    levels = sorted(set(confidence))
    counts = [[sum(c == level and r == flag for c, r in answers) for level in levels] for flag in (True, False)]
    area = error_return_area(*(np.array(one, dtype=float) for one in counts))
    assert area == pytest.approx(float(AUGRC().finish(Sweep.of(confidence, right))))


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 3)), min_size=3, max_size=9))
def test_a_weighted_correlation_is_that_of_repeated_rows(rows):
    x, y, weights = (np.array(one, dtype=float) for one in zip(*rows, strict=True))
    found = correlation(x, y, weights[None, :])[0]
    repeated = [np.repeat(one, weights.astype(int)) for one in (x, y)]
    if min(np.ptp(x), np.ptp(y)) > 0:
        assert found == pytest.approx(np.corrcoef(*repeated)[0, 1])
    else:
        assert np.isnan(found)


def test_prices_are_the_slopes_of_both_counts():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 5, size=(200, 2))
    error, rejection = least_squares_prices(counts, 10 - counts @ [3.0, 1.0] + rng.normal(size=200), 0.95)
    assert error.low < 3.0 < error.high
    assert rejection.low < 1.0 < rejection.high


def test_measures_of_lists_are_held_against_rewards_per_dialogue_and_per_condition():
    found = predictors_of(simulated_conditions(loop()), QUICK)
    rows = found.rows.filter(pl.col("measure") == "ICE, floor 0.001")
    assert rows.select("group", "unit").rows() == [
        (manager, unit) for manager in ("state-machine", "belief") for unit in ("dialogue", "condition")
    ]
    assert (rows["value"] > 0).all()
    assert (found.rows["low"] <= found.rows["high"]).all()
    assert "error-return area" not in found.rows.filter(pl.col("unit") == "dialogue")["measure"].to_list()
    assert len(of_predictors(found).tables) == 2


def test_lists_in_files_give_what_the_simulation_gives(tmp_path):
    simulation = loop()
    simulation.turns.write_parquet(tmp_path / "calls.parquet")
    simulation.dialogues.write_parquet(tmp_path / "dialogues.parquet")
    ours = predictors((tmp_path / "calls.parquet"), replicates=50)
    apart = predictors(tmp_path / "calls.parquet", outcomes=tmp_path / "dialogues.parquet", by="noise", replicates=50)
    wanted = predictors_of(simulated_conditions(simulation), QUICK).rows.filter(pl.col("unit") == "dialogue")
    for found in (ours, apart):
        mine = found.rows.filter(pl.col("unit") == "dialogue").sort("group", "measure")
        assert mine["value"].to_list() == pytest.approx(wanted.sort("group", "measure")["value"].to_list())


@pytest.mark.skipif(not DSTC2.exists(), reason="DSTC2 is not there")
def test_callers_of_dstc2_are_groups_of_two_managers(tmp_path):
    some = tmp_path / "some.jsonl"
    with gzip.open(DSTC2, "rt", encoding="utf-8") as lines:
        some.write_text("".join(islice(lines, 600)), encoding="utf-8")
    parts = recorded_lists([some], None, "dialogue_manager", "acoustic_condition")
    assert {(one.group, one.condition) for one in parts} == {(a, b) for a in "01" for b in "01"}


def test_ice_rises_with_the_confusion_rate():
    found = confusion(noise=(0.0, 0.2, 0.5), confidences=("good",), dialogues=12, replicates=50)
    assert found.rows["value"].is_sorted()
    assert found.correlations["good"].low > 0


def test_rejecting_everything_is_worse_than_rejecting_nothing():
    found = threshold_experiment(
        Loop(managers=("state-machine",), noise=(0.3,), dialogues=12, thresholds=(0.0, 1.0)), QUICK
    )
    assert found.rows.filter(pl.col("x") == 1.0)["nonreturn"].item() > 0.5
    (advice,) = found.advice
    assert advice.best == 0.0
    assert advice.point[0] == 0.0
    assert of_rejection(found).sentences


def test_what_injected_errors_cost_is_predicted_beside_what_they_cost():
    found = injected(dialogues=20)
    assert found.rows["kind"].to_list()[:4] == ["value", "slot", "act", "lost"]
    assert (found.rows["observed_value"] < found.rows["without"]).mean() > 0.5
    assert found.points().height == 2 * found.rows.height
    assert len(of_injected(found).main_table.rows) == 7


def test_a_learned_policy_is_the_same_for_the_same_seed_and_plays_from_its_file(tmp_path):
    lessons = Lessons("town", "mdp", noise=(0.2,), rounds=2, dialogues=10, seeds=2)
    one, two = (learn_policy(lessons, processes=1) for _ in range(2))
    assert one.policy == two.policy
    assert one.curve.equals(two.curve)
    assert of_learning(one).tables[0].rows
    write_policy(one, tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["training"]["rounds"] == 2
    played = simulate("town", managers=("mdp",), noise=(0.2,), dialogues=3, policy=tmp_path / "mine.json")
    assert played.dialogues.height == 3


@pytest.mark.parametrize("manager", list(LEARNED))
def test_bundled_policies_succeed_with_perfect_input(manager):
    town = TaskDomain.read("town")
    assert default_policy(manager, town).to_dict()["training"]["rounds"] > 5
    played = simulate("town", managers=(manager,), noise=(0.0,), dialogues=40)
    assert played.dialogues["success"].all()


def test_figures_2_and_3_are_made_of_simulated_dialogues_and_refuse_files():
    found = reward(simulated="town", noise=(0.3,), calls=5)
    assert [curve.name for curve in found.smooths.curves] == ["state-machine", "mdp", "belief", "belief-learned"]
    with pytest.raises(UsageError, match="leave out the files"):
        oracle("calls.parquet", simulated="town")
    with pytest.raises(UsageError, match="such as those of DSTC2 cannot show that, only a system in the loop"):
        injected("dstc2.jsonl")
    with pytest.raises(DataError, match="does not exist"):
        reward(simulated="nowhere.toml", calls=2)
