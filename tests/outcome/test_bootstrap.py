import numpy as np
import pytest

from demur.errors import DataError, UsageError
from demur.outcome import validation
from demur.outcome.stepwise import Selection, search_terms
from demur.outcome.validation import bootstrap


def made_up(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, x[:, 0] - 0.3 * x[:, 1] + rng.normal(size=n), [f"x{place}" for place in range(p)]


def rows_drawn(unit, replicates, seed):
    return [
        np.repeat(np.arange(unit.size), count) for part in validation._draws(unit, replicates, seed) for count in part
    ]


@pytest.mark.parametrize("direction", ["backward", "forward", "both"])
def test_every_replicate_is_the_whole_procedure_on_the_rows_drawn(direction):
    x, y, names = made_up()
    found = bootstrap(x, y, names, selection=Selection(direction), replicates=70, seed=5)
    for draw, r2, rows in zip(found.draws, found.r2_drawn, rows_drawn(np.arange(60), 70, 5), strict=True):
        alone = search_terms(x[rows], y[rows], names, direction=direction)
        assert alone.r2 == pytest.approx(r2)
        expected = [alone.coefficients.get(name, np.nan) for name in ("(Intercept)", *names)]
        assert draw == pytest.approx(expected, nan_ok=True)


def test_figures_follow_from_the_replicates():
    x, y, names = made_up()
    found = bootstrap(x, y, names, replicates=100, level=0.9)
    whole = search_terms(x, y, names)
    assert found.selected["x0"] == 1
    assert list(found.selected.values()) == sorted(found.selected.values(), reverse=True)
    assert found.selected["x3"] == np.mean(~np.isnan(found.draws[:, 4]))
    assert found.coefficients["x0"].value == pytest.approx(whole.coefficients["x0"])
    assert found.coefficients["x0"].low == pytest.approx(np.quantile(found.draws[:, 1], 0.05))
    assert found.coefficients["x3"].low <= 0 <= found.coefficients["x3"].high
    assert found.where_selected["x3"].high == pytest.approx(np.nanquantile(found.draws[:, 4], 0.95))
    assert found.r2 == pytest.approx(whole.r2)
    assert found.corrected_r2 == pytest.approx(whole.r2 - np.mean(found.r2_drawn - found.r2_at_hand))
    assert found.optimism > 0


def test_groups_are_drawn_whole():
    x, y, names = made_up()
    groups = [place // 5 for place in range(60)]
    found = bootstrap(x, y, names, groups=groups, replicates=20, seed=1)
    rows = rows_drawn(np.array(groups), 20, 1)[3]
    assert np.unique(np.bincount(rows, minlength=60).reshape(-1, 5).std(axis=1)).tolist() == [0.0]
    assert found.draws[3, 0] == pytest.approx(search_terms(x[rows], y[rows], names).coefficients["(Intercept)"])


def test_a_seed_gives_the_same_replicates_and_another_gives_others():
    x, y, names = made_up()
    one, same, other = (bootstrap(x, y, names, replicates=60, seed=seed) for seed in (3, 3, 4))
    assert one.to_dict() == same.to_dict()
    assert one.coefficients != other.coefficients


def test_progress_is_reported():
    heard = []
    bootstrap(*made_up(), replicates=120, step=lambda *told: heard.append(told))
    assert heard == [("resampling the regression", done, 120) for done in (0, 50, 100, 120)]


def test_replicates_on_which_nothing_can_be_chosen_are_counted():
    x, y, names = made_up(n=9, p=4)
    found = bootstrap(x, y, names, replicates=100)
    assert 0 < len(found.failed) == 100 - found.replicates
    assert found.to_dict()["failed"] == len(found.failed)
    assert "exactly" in found.to_dict()["why_failed"][0]


def test_requests_that_cannot_be_met_are_refused():
    x, y, names = made_up()
    with pytest.raises(UsageError, match="replicates must be at least 1"):
        bootstrap(x, y, names, replicates=0)
    with pytest.raises(DataError, match="at least two of them"):
        bootstrap(x, y, names, groups=["a"] * 60)
    x, y, names = made_up(n=8, p=6)
    with pytest.raises(DataError, match="not one of 5 replicates could be fitted"):
        bootstrap(x, y, names, replicates=5)
