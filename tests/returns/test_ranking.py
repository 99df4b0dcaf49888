"""Who leads where: what is claimed is shown, at every rate but in gaps that are told of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.sweep import Sweep
from demur.returns.comparison.contrasts import ranking
from demur.returns.curves import GRID, DifferenceBand, error_return

X = np.linspace(0, 1, GRID)


def curve(name, errors, withheld=0):
    """A curve that falls in a line from a number of errors among ten answers."""
    confidences = np.linspace(0.1, 0.9, 10)
    right = np.arange(10) >= errors
    return error_return(
        Sweep(confidences, right.astype(int), (~right).astype(int), float(withheld), 10 + withheld), name=name
    )


def band(shown, start=0.0):
    """A band of b less the leader a, above zero where `shown` says so."""
    x = X[start <= X]
    low = np.where(shown(x), -0.2, -0.01)
    return DifferenceBand(x, low + 0.005, low, np.where(shown(x), -0.01, 0.01))


def everywhere(x):
    return np.ones_like(x, dtype=bool)


def leading(shown):
    return ranking({"a": curve("a", 2), "b": curve("b", 5)}, {("a", "b"): band(shown)})


def test_a_region_ends_where_the_band_ceases_to_show_it():
    (first, second) = leading(lambda x: x < 0.3)
    assert (first.best, first.also) == ("a", ())
    assert first.stop == pytest.approx(0.295)
    assert second.also == ("b",)


def test_a_short_gap_is_closed_and_told():
    (first, *_) = leading(lambda x: (x < 0.2) | ((x > 0.23) & (x < 0.6)))
    assert first.also == ()
    assert first.stop == pytest.approx(0.595)
    assert first.gaps


def test_what_is_shown_over_a_short_stretch_only_is_not_claimed():
    (only,) = leading(lambda x: (x > 0.4) & (x < 0.43))
    assert only.also == ("b",)
    assert not only.gaps


def test_a_system_that_withholds_more_by_itself_is_absent_and_not_shown_worse():
    curves = {"a": curve("a", 2), "b": curve("b", 5, withheld=5), "c": curve("c", 6)}
    floor = curves["b"].floor
    bands = {("a", "b"): band(everywhere, floor), ("a", "c"): band(everywhere), ("b", "c"): band(everywhere, floor)}
    first, second = ranking(curves, bands)
    assert (first.absent, first.also) == (("b",), ())
    assert first.stop == pytest.approx(1 / 3, abs=0.01)
    assert (second.absent, second.also) == ((), ())


def test_regions_that_change_close_to_each_other_are_joined_without_a_claim_beyond_the_first():
    curves = {name: curve(name, errors) for name, errors in (("a", 2), ("b", 5), ("c", 6))}
    bands = {
        ("a", "b"): band(lambda x: x < 0.3),
        ("a", "c"): band(lambda x: x < 0.33),
        ("b", "c"): band(lambda x: x < 0),
    }
    first, second = ranking(curves, bands)
    assert first.stop == pytest.approx(0.295)
    assert second.also == ("b", "c")


@given(st.lists(st.booleans(), min_size=20, max_size=20))
def test_every_claim_is_shown_but_in_gaps_that_are_told(pattern):
    def shown(x):
        return np.array(pattern)[np.minimum((x * 20).astype(int), 19)]

    regions = leading(shown)
    assert [one.start for one in regions][1:] == [one.stop for one in regions][:-1]
    for one in regions:
        inside = (one.start <= X) & (one.stop >= X)
        if "b" not in one.also and not one.gaps:
            assert shown(X[inside]).all()
