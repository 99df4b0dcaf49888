import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.resampling import Rows, Sample, replicate_together
from demur.core.stats.sweep import Sweep
from demur.returns.comparison.contrasts import area_difference
from demur.returns.measures import AUGRC, Estimate, area_from, area_influence, augrc_estimate
from reference import returns as plain
from reference.rows import SCORES, Row, arrays, tables

WEIGHTS = st.sampled_from([1, 1, 2, 3])


def system(n, *, seed, skill=1.0, withheld=0.0, dialogues=None, weighted=False):
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.7
    confidence = np.round(rng.normal(skill * right, 1.0, n), 1)
    answered = rng.random(n) >= withheld
    weight = rng.random(n) + 0.5 if weighted else np.ones(n)
    unit = None if dialogues is None else np.arange(n) % dialogues
    return Rows(confidence, right & answered, answered, weight, unit)


def reweighted(rows, place, step):
    """The rows as a distribution in which a little of all weight moves to one of them."""
    share = rows.weight / rows.weight.sum() * (1 - step)
    share[place] += step
    return Rows(rows.confidence, rows.right, rows.answered, share)


def area(rows, start):
    return area_from(rows.sweep(), start)


def derivative(value, rows, place, step=1e-6):
    return (value(reweighted(rows, place, step)) - value(reweighted(rows, place, -step))) / (2 * step)


@given(tables(SCORES, weights=WEIGHTS, largest=7))
def test_the_influence_of_a_row_is_the_derivative_of_the_area(rows):
    held = arrays(rows)
    sweep = held.sweep()
    found = area_influence(sweep, float(sweep.withheld / sweep.total), moving_start=True)[held.cells(sweep.threshold)]
    expected = [float(plain.influence(rows, place)) for place in range(len(rows))]
    assert found == pytest.approx(expected, abs=1e-9)


@given(tables(SCORES, weights=WEIGHTS, largest=7), st.sampled_from([0.0137, 0.2471, 0.5303, 0.871]))
def test_the_influence_with_a_fixed_start_is_the_derivative_of_the_cut_area(rows, start):
    held = arrays(rows)
    sweep = held.sweep()
    assume(start > sweep.withheld / sweep.total)
    found = area_influence(sweep, start, moving_start=False)[held.cells(sweep.threshold)]
    expected = [derivative(lambda part: area(part, start), held, place) for place in range(len(rows))]
    assert found == pytest.approx(expected, abs=1e-5)


@given(tables(SCORES, weights=WEIGHTS))
def test_influences_average_to_0(rows):
    held = arrays(rows)
    sweep = held.sweep()
    found = area_influence(sweep, float(sweep.withheld / sweep.total), moving_start=True)[held.cells(sweep.threshold)]
    assert float(found @ held.weight) == pytest.approx(0, abs=1e-9)


@given(tables(SCORES, weights=WEIGHTS), st.fractions(0, 1, max_denominator=30))
def test_the_area_from_a_point_on_is_that_of_the_cut_curve(rows, start):
    points = plain.curve(rows)
    assume(float(start) >= points[0][0])
    cut = [(start, plain.height(points, start)), *(point for point in points if point[0] > start)]
    assert area(arrays(rows), float(start)) == pytest.approx(float(plain.area(cut)), abs=1e-9)


@given(tables(SCORES, weights=WEIGHTS))
def test_the_estimate_is_augrc(rows):
    held = arrays(rows)
    assume(not plain.nothing_answered(rows))
    assert augrc_estimate(Sample(held)).value == pytest.approx(float(AUGRC().finish(held.sweep())), abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [{}, {"withheld": 0.3}, {"weighted": True}, {"dialogues": 60}, {"withheld": 0.2, "dialogues": 50}],
    ids=["plain", "floor", "weighted", "clustered", "clustered floor"],
)
def test_the_closed_form_standard_error_is_that_of_the_bootstrap(options):
    rows = system(600, seed=3, **options)
    estimate = augrc_estimate(Sample(rows))
    drawn = AUGRC().finish(Sample(rows, 6000, 0).drawn)
    assert estimate.error == pytest.approx(drawn.std(), rel=0.05)


@pytest.mark.parametrize("floors", [(0.0, 0.0), (0.3, 0.1), (0.1, 0.3)])
def test_the_paired_standard_error_is_that_of_the_paired_bootstrap(floors):
    one, two = (system(600, seed=seed, withheld=floor) for seed, floor in zip((1, 2), floors, strict=True))
    two = Rows(one.confidence + two.confidence / 2, two.right, two.answered, two.weight)
    estimate, start = area_difference(one, two, paired=True)
    drawn = replicate_together([one, two], replicates=1500, seed=0)
    differences = [common_difference(a, b) for a, b in zip(*(unstacked(part) for part in drawn), strict=True)]
    assert start == max(float((~part.answered).mean()) for part in (one, two))
    assert estimate.value == pytest.approx(area(one, start) - area(two, start))
    assert estimate.error == pytest.approx(np.std(differences), rel=0.08)


def unstacked(drawn):
    for right, wrong, withheld in zip(drawn.right, drawn.wrong, drawn.withheld, strict=True):
        yield Sweep(drawn.threshold.copy(), right.copy(), wrong.copy(), float(withheld), drawn.n)


def common_difference(one, two):
    start = max(one.withheld / one.total, two.withheld / two.total)
    return area_from(one, start) - area_from(two, start)


@given(st.integers(0, 10_000))
def test_paired_influences_are_the_derivative_of_the_difference(seed):
    one, two = system(12, seed=seed, withheld=0.4), system(12, seed=seed + 1, withheld=0.1)
    floors = [float((~part.answered).mean()) for part in (one, two)]
    assume(abs(floors[0] - floors[1]) > 1e-6)
    estimate, _ = area_difference(one, two, paired=True)
    pulls = []
    for place in range(12):
        moved = [
            common_difference(*(reweighted(part, place, step).sweep() for part in (one, two))) for step in (1e-6, -1e-6)
        ]
        pulls.append((moved[0] - moved[1]) / 2e-6 / 12)
    spread = np.square(np.array(pulls) - np.mean(pulls)).sum() * 12 / 11
    assert estimate.error == pytest.approx(np.sqrt(spread), abs=1e-5)


def test_the_standard_error_holds_where_the_common_range_starts_inside_a_tie():
    """Most answers of the first share one confidence, and the second withholds a third by itself."""
    rng = np.random.default_rng(8)
    right = rng.random(500) < 0.6
    one = Rows(np.where(rng.random(500) < 0.8, 0.5, 0.9), right, np.ones(500, bool), np.ones(500))
    answered = rng.random(500) >= 0.35
    two = Rows(rng.random(500), right & answered, answered, np.ones(500))
    estimate, _ = area_difference(one, two, paired=True)
    drawn = replicate_together([one, two], replicates=1500, seed=0)
    differences = [common_difference(a, b) for a, b in zip(*(unstacked(part) for part in drawn), strict=True)]
    assert estimate.error == pytest.approx(np.std(differences), rel=0.08)


def test_unpaired_variances_add_with_welchs_degrees_of_freedom():
    one, two = system(100, seed=1), system(400, seed=2, skill=2.0)
    estimate, _ = area_difference(one, two, paired=False)
    alone = [augrc_estimate(Sample(part)) for part in (one, two)]
    assert estimate.error == pytest.approx(np.hypot(alone[0].error, alone[1].error))
    assert estimate.value == pytest.approx(alone[0].value - alone[1].value)
    assert 99 <= estimate.freedom <= 498


def test_pairing_of_a_system_with_itself_leaves_no_error():
    rows = system(50, seed=0)
    estimate, _ = area_difference(rows, rows, paired=True)
    assert (estimate.value, estimate.error, estimate.p) == (0, 0, 1)


def test_clusters_of_alike_rows_widen_the_interval_by_the_root_of_their_size():
    base = system(80, seed=5)
    four = [np.repeat(part, 4) for part in (base.confidence, base.right, base.answered, base.weight)]
    alone = augrc_estimate(Sample(base))
    clustered = augrc_estimate(Sample(Rows(*four, np.repeat(np.arange(80), 4))))
    naive = augrc_estimate(Sample(Rows(*four)))
    assert clustered.error == pytest.approx(alone.error)
    assert clustered.freedom == 79
    assert naive.error == pytest.approx(alone.error / 2, rel=0.01)


def test_swapping_the_systems_turns_the_sign():
    one, two = system(60, seed=1, withheld=0.2), system(60, seed=2)
    for paired in (True, False):
        forth, _ = area_difference(one, two, paired=paired)
        back, _ = area_difference(two, one, paired=paired)
        assert (back.value, back.error, back.p) == pytest.approx((-forth.value, forth.error, forth.p))


def test_one_unit_has_no_standard_error():
    assert np.isnan(augrc_estimate(Sample(arrays([Row(0.5, False)]))).error)


def test_an_estimate_has_the_interval_and_p_of_students_t():
    """2 with standard error 1 and 10 degrees of freedom: 2 +- 2.228, p = .0734."""
    estimate = Estimate(2.0, 1.0, 10)
    assert estimate.interval(0.95) == pytest.approx((2 - 2.228139, 2 + 2.228139), abs=1e-5)
    assert estimate.p == pytest.approx(0.07339, abs=1e-5)
    assert Estimate(1.0, 0.0, 5).p == 0


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"dialogues": 20}], ids=["plain", "weighted", "clustered"])
def test_row_order_does_not_change_the_standard_error(options):
    for seed in range(8):
        rows = system(300, seed=seed, withheld=0.1, **options)
        assert augrc_estimate(Sample(rows)) == augrc_estimate(Sample(permuted(rows, seed)))


def permuted(rows, seed):
    order = np.random.default_rng(seed).permutation(rows.weight.size)
    unit = None if rows.unit is None else rows.unit[order]
    return Rows(rows.confidence[order], rows.right[order], rows.answered[order], rows.weight[order], unit)


def test_a_difference_in_seeds_only_moves_the_bootstrap_a_little():
    rows = system(200, seed=4)
    spreads = [AUGRC().finish(Sample(rows, 2000, seed).drawn).std() for seed in (0, 1)]
    assert spreads[0] != spreads[1]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)
