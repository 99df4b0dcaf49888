from math import log

import numpy as np
import pytest

from demur.errors import DataError
from demur.nbest_lists.evaluate import NBestSettings, evaluate_nbest, nbest_values
from demur.nbest_lists.floors import TABLED, floor_table, ice_by_floor
from demur.nbest_lists.measures import PAPER_FLOOR
from demur.nbest_lists.scales import SCALES, tuned
from demur.nbest_lists.table import nbest
from nbest_lists.nbest_logs import log as made_up
from nbest_lists.nbest_logs import table


def test_the_ice_by_floor_is_that_of_an_evaluation_at_each_floor():
    lists = table(made_up(60, seed=3, weighted=True))
    (one,) = evaluate_nbest(lists, replicates=50)
    floors = (0.3, *TABLED)
    expected = [nbest_values(lists, NBestSettings(floor=floor))["ice"] for floor in floors]
    assert ice_by_floor(one, floors) == pytest.approx(expected)
    (row,) = floor_table([one]).rows
    assert row[1:] == tuple(f"{value:.4f}" for value in ice_by_floor(one, TABLED))


def test_certain_lists_fit_table_3_of_the_paper_at_two_ranges_of_floors():
    """InfEvTP1 of Table 3: WSER .166, NCE -.523, ICE 1.331. Confidences are 1 or 0, so errors cost L = -log floor.

    With q of r hypothesised items (per item meant) wrong, NCE = 1 - L q / h(q), h the entropy of q, and
    ICE = L (r q + 1 - r (1 - q)). Errors are at least the wrong or the missing items, whichever are more.
    """

    def fits(floor):
        cost, q = -log(floor), np.linspace(0.01, 0.4, 40_000)
        entropy = -(q * np.log(q) + (1 - q) * np.log(1 - q))
        q = float(q[np.argmin(np.abs(1 - cost * q / entropy + 0.523))])
        r = (1 - 1.331 / cost) / (1 - 2 * q)
        wrong, missing = r * q, 1 - r * (1 - q)
        return max(wrong, missing) <= 0.1665 and wrong + missing >= 0.1655, wrong < missing / 5

    assert [fits(floor)[0] for floor in (0.0002, 0.0005, 0.001, 0.01)] == [False, True, False, False]
    assert [fits(floor)[0] for floor in (0.0125, 0.0155, 0.017, 0.1)] == [True, True, False, False]
    assert fits(0.0005)[1], "at the lower range nearly all errors are items left out"
    assert not fits(0.0125)[1]
    assert PAPER_FLOOR == 0.01, "the power of ten nearest to the upper range"


def scaled(sure, scale):
    """Two sentences of which the surer is right half of the time; a scale of 0.05 says nearly that."""
    chance = sure**scale / (sure**scale + (1 - sure) ** scale)
    rows = [
        {
            "id": f"u{k}",
            "dialogue": f"d{k}",
            "reference": ["a"] if k % 2 else ["b"],
            "hypotheses": [{"items": ["a"], "confidence": chance}, {"items": ["b"], "confidence": 1 - chance}],
        }
        for k in range(20)
    ]
    return nbest(rows)


def test_overconfident_posteriors_are_scaled_down_on_what_was_held_out():
    lists, found = tuned({scale: scaled(0.99, scale) for scale in SCALES})
    assert len(lists) == 20
    assert set(found.chosen) == {0.05}
    assert found.unscaled == pytest.approx(-log(0.99) - log(0.01))
    chance = 0.99**0.05 / (0.99**0.05 + 0.01**0.05)
    assert found.ice == pytest.approx(-log(chance) - log(1 - chance))


def test_where_scales_are_equally_good_posteriors_stay_as_they_are():
    _, found = tuned({scale: scaled(0.5, scale) for scale in SCALES})
    assert set(found.chosen) == {1.0}


def test_one_dialogue_is_not_enough_to_tune():
    lists = nbest([{"id": 1, "dialogue": "d", "reference": ["a"], "hypotheses": []}])
    with pytest.raises(DataError, match=r"there must be two or more; got .*1 dialogues"):
        tuned(dict.fromkeys(SCALES, lists))
