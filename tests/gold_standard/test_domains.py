"""Studies side by side."""

import numpy as np
import polars as pl
import pytest

from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import TrialReading, trials

COLUMNS = ["study", "system", "complexity", "complexity_low", "complexity_high", "relative_mass", "low", "high"]


@pytest.fixture(scope="module")
def studies():
    """An easy task whose system nearly reaches gold, and a hard one with two; rates are made to be straight lines."""
    ends = {
        ("easy", "gold"): (0.95, 0.85),
        ("easy", "A"): (0.9, 0.8),
        ("hard", "gold"): (0.9, 0.3),
        ("hard", "A"): (0.8, 0.1),
        ("hard", "B"): (0.7, 0.2),
    }
    rows = [
        {"study": study, "performer": name, "x": x, "y": round(n * (a + (b - a) * x)) / n, "n": n, "subject": subject}
        for (study, name), (a, b) in ends.items()
        for subject, n in enumerate((200, 200, 400))
        for x in np.linspace(0, 1, 6)
    ]
    found = trials(pl.DataFrame(rows), reading=TrialReading(x="x", y="y"))
    return GoldStudies(analyse(one, GoldOptions(checks=False, replicates=60)) for one in found)


def test_every_system_is_a_row_beside_its_own_studys_complexity(studies):
    assert [(one.study, one.system) for one in studies.domains] == [("easy", "A"), ("hard", "A"), ("hard", "B")]
    assert studies.domains[1].complexity == studies.domains[2].complexity == studies[1].complexity
    assert studies.domains[0].relative == studies[0].impurities[0].relative


def test_complexity_and_relative_mass_by_hand(studies):
    """Means of gold are .9 and .6: complexities .1 and .4; the systems lose .05, .15 and .15 of these."""
    table = studies.frame()
    assert table.columns == COLUMNS
    assert table["complexity"].to_list() == pytest.approx([0.1, 0.4, 0.4], abs=0.01)
    assert table["relative_mass"].to_list() == pytest.approx([0.05 / 0.9, 0.15 / 0.6, 0.15 / 0.6], abs=0.015)
    assert (table["low"] <= table["relative_mass"]).all()
    assert (table["relative_mass"] <= table["high"]).all()


def test_a_row_is_written_as_plain_values(studies):
    told = studies.domains[0].to_dict()
    assert list(told) == ["study", "system", "complexity", "relative_mass"]
    assert told["complexity"]["value"] == studies[0].complexity.value
