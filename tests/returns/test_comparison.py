import json
import re
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom

from demur.apps.cli import output
from demur.core.stats.resampling import Rows, replicate_together
from demur.errors import DataError, UsageError
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import _crossings as crossings_of
from demur.returns.comparison.compare import compare
from demur.returns.comparison.contrasts import (
    Contrast,
    area_difference,
    point_contrast,
    region_contrast,
    right_contrast,
)
from demur.returns.curves import DifferenceBand, error_return
from demur.returns.measures import Estimate, curve_at
from demur.returns.pairing import pair as paired
from demur.returns.presentation import pair_table
from reference import returns as plain
from reference.answers import answers, made_up, shuffled, silent, table
from reference.rows import SCORES, arrays, tables

FLIPPED = {
    "a dominates": "b dominates",
    "b dominates": "a dominates",
    "a better": "b better",
    "b better": "a better",
}


def one_pair(*systems, **options):
    (pair,) = compare(table(*systems), replicates=300, measures={}, **options).pairs
    return pair


def crossing_systems(n=2000):
    """a has fewer errors but ranks at random; b has more errors but ranks them nearly all at the bottom."""
    a = made_up("a", n, seed=1, accuracy=0.85, skill=0.0)
    b = made_up("b", n, seed=2, accuracy=0.7, skill=4.0)
    return a, b


def dominating_systems(n=800):
    return made_up("a", n, seed=1, accuracy=0.9, skill=1.5), made_up("b", n, seed=2, accuracy=0.7, skill=1.5)


def test_a_system_against_itself_shows_no_difference():
    rows = made_up("a", 200, seed=1)
    pair = one_pair(rows, [row | {"system": "b"} for row in rows])
    assert pair.verdict == "no significant difference"
    assert (pair.area.value, pair.area.estimate.p, pair.area.p_adjusted) == (0, 1, 1)
    assert (pair.intervals, pair.crossings, pair.inputs_needed) == ((), (), None)
    assert (pair.band.difference == 0).all()
    assert (pair.mcnemar.a_only, pair.mcnemar.b_only, pair.mcnemar.p) == (0, 0, 1)


def test_a_difference_of_rounding_asks_for_no_more_inputs():
    one = answers("one", np.arange(40) / 40, [False] * 40)
    two = answers("two", [0.3] * 40, [False] * 40)
    pair = one_pair(one, two)
    assert pair.overall.value == pytest.approx(0, abs=1e-12)
    assert pair.inputs_needed is None


def test_a_clear_winner_dominates_everywhere():
    pair = one_pair(*dominating_systems())
    assert pair.verdict == "a dominates"
    assert pair.paired
    assert {part.better for part in pair.intervals} == {"a"}
    assert pair.intervals[0].start == 0
    assert pair.area.value < 0
    assert pair.area.p_adjusted < 1e-6
    assert pair.inputs_needed is None


def test_curves_that_cross_are_said_to_cross_where_they_do():
    a, b = crossing_systems()
    pair = one_pair(a, b)
    assert pair.verdict == "crossing"
    where = r" makes significantly fewer errors when [^,;]+ is withheld, and \w+ when [^,;]+ is withheld(;|\.)"
    assert re.search(where, verdicts.pair_sentences(pair)[1])
    assert [part.better for part in pair.intervals] == ["a", "b"]
    inside = [c for c in pair.crossings if c.low <= c.x <= c.high]
    assert inside == list(pair.crossings)
    main = max(pair.crossings, key=lambda c: c.y)
    assert pair.intervals[0].stop <= main.x <= pair.intervals[1].start
    assert 0.1 < main.x < 0.3


def test_the_interval_of_a_crossing_holds_the_true_crossing_as_a_rule():
    """The truth is that of a far larger log made the same way; one log in six may miss it."""
    big = one_pair(*crossing_systems(15_000))
    truth = max(big.crossings, key=lambda c: c.y).x
    held = 0
    for seed in range(6):
        a = made_up("a", 1000, seed=seed, accuracy=0.85, skill=0.0)
        b = made_up("b", 1000, seed=100 + seed, accuracy=0.7, skill=4.0)
        main = max(one_pair(a, b).crossings, key=lambda c: c.y)
        held += main.low <= truth <= main.high
    assert held >= 5


def test_ten_answers_each_cross_at_13_thirtieths():
    a = answers("a", [0.1, 0.2, 0.3] + [0.5] * 4 + [0.7, 0.8, 0.9], [True] * 3 + [False] * 3 + [True] * 4)
    b = answers("b", np.arange(10) / 10, [True] * 7 + [False, False, True])
    (crossing,) = one_pair(a, b).crossings
    assert (crossing.x, crossing.y) == pytest.approx((13 / 30, 0.2))
    assert crossing.low <= 13 / 30 <= crossing.high


@given(tables(SCORES, largest=8), tables(SCORES, largest=8))
def test_crossings_are_the_sign_changes_of_the_plain_curves(one, two):
    curves = [error_return(arrays(rows).sweep()) for rows in (one, two)]
    start = max(curve.floor for curve in curves)
    x = np.linspace(start, 1, 11)
    band = DifferenceBand(x, np.zeros(11), np.zeros(11), np.zeros(11))
    found = [crossing.x for crossing in crossings_of(*curves, band)]
    expected = plain.crossings(*(plain.curve(rows) for rows in (one, two)))
    assert found == pytest.approx([float(at) for at in expected], abs=1e-9)


SYSTEMS = {"crossing": crossing_systems, "dominance": dominating_systems}


@pytest.mark.parametrize("unpaired", [False, True])
@pytest.mark.parametrize("kind", sorted(SYSTEMS))
def test_swapping_the_systems_mirrors_the_verdict(kind, unpaired):
    a, b = SYSTEMS[kind]()
    forth, back = one_pair(a, b, unpaired=unpaired), one_pair(b, a, unpaired=unpaired)
    assert (back.a, back.b) == (forth.b, forth.a)
    assert back.verdict == FLIPPED.get(forth.verdict, forth.verdict)
    assert {part.better for part in back.intervals} == {"ab"[part.better == "a"] for part in forth.intervals}
    assert (back.area.value, back.area.p_adjusted) == pytest.approx((-forth.area.value, forth.area.p_adjusted))
    assert [c.x for c in back.crossings] == pytest.approx([c.x for c in forth.crossings])
    assert back.band.difference == pytest.approx(-forth.band.difference)
    if not unpaired:
        assert back.band.low == pytest.approx(-forth.band.high)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"dialogues": 12}], ids=["plain", "weighted", "clustered"])
@pytest.mark.parametrize("unpaired", [False, True])
def test_row_order_does_not_change_a_comparison(options, unpaired):
    a, b = (made_up(name, 150, seed=seed, digits=1, **options) for seed, name in enumerate("ab"))
    one = compare(table(a, b), replicates=100, unpaired=unpaired)
    two = compare(table(shuffled(a, 1), shuffled(b, 2)), replicates=100, unpaired=unpaired)
    assert one.to_dict() == two.to_dict()
    assert one.pairs[0].frame().equals(two.pairs[0].frame())


def test_pairing_is_narrower_than_no_pairing_where_the_systems_err_alike():
    a, b = made_up("a", 500, seed=1, accuracy=0.72), made_up("b", 500, seed=1, accuracy=0.70)
    paired, apart = one_pair(a, b), one_pair(a, b, unpaired=True)
    assert (paired.paired, apart.paired) == (True, False)
    assert apart.mcnemar == "the systems are not paired"
    assert paired.area.value == pytest.approx(apart.area.value)
    assert paired.area.estimate.error < 0.7 * apart.area.estimate.error
    assert (paired.band.high - paired.band.low).mean() < (apart.band.high - apart.band.low).mean()


def test_unpaired_systems_of_two_sizes_are_compared_and_say_so():
    a, b = made_up("a", 600, seed=1, accuracy=0.9), made_up("b", 300, seed=2, accuracy=0.6)
    found = compare(table(a, b), unpaired=True, replicates=200)
    assert found.note == "compared as unpaired, as asked"
    assert found.pairs[0].verdict == "a better"
    assert found.pairs[0].n == 300


def test_without_ids_the_comparison_is_unpaired():
    a, b = ([{k: v for k, v in row.items() if k != "id"} for row in rows] for rows in dominating_systems(200))
    found = compare(table(a, b), replicates=100)
    assert not found.pairs[0].paired
    assert "unpaired" in found.note


def test_systems_that_withhold_by_themselves_are_compared_over_the_range_both_reach():
    a, b = made_up("a", 300, seed=1, withheld=0.3), made_up("b", 300, seed=2, withheld=0.1)
    pair = one_pair(a, b)
    floor = np.mean([row["prediction"] is None for row in a])
    assert pair.start == pytest.approx(floor)
    assert pair.band.x[0] == pytest.approx(floor)
    assert pair.mcnemar == f"a withholds {100 * floor:.1f} % of the inputs by itself, more than 20 %"
    assert pair.to_dict()["mcnemar"] is None
    assert pair.to_dict()["range"] == [pytest.approx(floor), 1.0]


def test_dialogues_named_in_one_log_only_hold_for_both():
    a, b = made_up("a", 120, seed=1), made_up("b", 120, seed=2, dialogues=10)
    forth, back = one_pair(a, b), one_pair(b, a)
    assert forth.area.estimate.error == pytest.approx(back.area.estimate.error)
    assert forth.area.estimate.freedom == back.area.estimate.freedom == 9


def test_whole_dialogues_widen_the_difference():
    a, b = made_up("a", 60, seed=1), made_up("b", 60, seed=2, accuracy=0.6)
    turns = [[row | {"id": f"{row['id']}-{turn}"} for row in rows for turn in range(5)] for rows in (a, b)]
    grouped = [[row | {"dialogue": row["id"][:5]} for row in rows] for rows in turns]
    naive, clustered = one_pair(*turns), one_pair(*grouped)
    assert clustered.area.estimate.error > 1.8 * naive.area.estimate.error
    assert (clustered.band.high - clustered.band.low).mean() > 1.6 * (naive.band.high - naive.band.low).mean()


@pytest.mark.parametrize("dialogues", [5, 6])
def test_six_dialogues_that_differ_alike_are_needed_to_show_a_difference(dialogues):
    """Four turns each, a always right and b always wrong: t is 5 / 2 or 6 / 2, against 2.78 and 2.57."""
    rows = [{"id": f"{k}", "dialogue": f"d{k // 4}", "confidence": 0.5} for k in range(4 * dialogues)]
    a, b = ([{"system": name, "correct": name == "a", **row} for row in rows] for name in "ab")
    right = one_pair(a, b).right
    assert (right.value, right.estimate.error) == (1.0, 2 / dialogues)
    assert right.significant == (dialogues == 6)


def test_the_standard_error_with_dialogues_is_that_of_their_sums():
    """Of 20 dialogues of 10 turns b errs on one turn of each of the first 10, so that sums are 1/200 or 0."""
    rows = [{"id": f"{k}", "dialogue": f"d{k // 10}", "confidence": 0.5} for k in range(200)]
    wrong = {10 * k for k in range(10)}
    a, b = (
        [{"system": name, "correct": name == "a" or k not in wrong, **row} for k, row in enumerate(rows)]
        for name in "ab"
    )
    right = one_pair(a, b).right
    sums = np.repeat([1 / 200, 0.0], 10)
    assert right.value == pytest.approx(0.05)
    assert right.estimate.error == pytest.approx(max(np.sqrt(20 / 19 * np.square(sums - sums.mean()).sum()), 2 / 200))


def test_without_a_cutoff_near_the_point_there_is_no_mcnemar_but_the_reason():
    tied = [row | {"confidence": 0.5} for row in made_up("a", 100, seed=1)]
    found = one_pair(tied, made_up("b", 100, seed=1)).mcnemar
    assert found == "ties leave no common cutoff near a non-return rate of 20 %: a 0 % and b 19 %"


def test_a_region_bounds_the_band_of_the_difference():
    pair = one_pair(made_up("a", 100, seed=1), made_up("b", 100, seed=2), region=(0.1, 0.4))
    assert (pair.band.x[0], pair.band.x[-1]) == (0.1, 0.4)


def test_mcnemar_by_hand():
    """At x = .2 both withhold their two lowest; a alone errs on 1 input, b alone on 6: p = 2 (1 + 7) / 2^7 = .125."""
    confidence = np.arange(10) / 10
    a_wrong, b_wrong = {0, 2}, {1, 4, 5, 6, 7, 8, 9}
    a = answers("a", confidence, [place not in a_wrong for place in range(10)])
    b = answers("b", confidence, [place not in b_wrong for place in range(10)])
    found = one_pair(a, b, at=0.2).mcnemar
    assert (found.x, found.a_only, found.b_only) == (0.2, 1, 6)
    assert found.p == pytest.approx(2 * (1 + 7) / 2**7)
    assert found.p == pytest.approx(2 * binom.cdf(1, 7, 0.5))


def test_mcnemar_at_full_nonreturn_returns_nothing_however_confident():
    a = answers("a", [0.1, 0.2, 1e300], [True, True, False])
    b = answers("b", [0.1, 0.2, 0.3], [True, True, True])
    found = one_pair(a, b, at=1.0).mcnemar
    assert (found.a_only, found.b_only, found.p) == (0, 0, 1)


@pytest.mark.parametrize("at", [-0.2, 1.5, float("nan")])
def test_an_operating_point_that_is_no_rate_is_refused(at):
    with pytest.raises(UsageError, match=r"\[0, 1\]"):
        one_pair(*dominating_systems(50), at=at)


def test_interval_and_p_of_several_pairs_share_one_correction():
    """Three tests: p becomes 1 - (1 - p)^3, and the interval is one of level .95^(1/3)."""
    systems = [
        made_up(name, 150, seed=seed, accuracy=share)
        for seed, (name, share) in enumerate(zip("abc", (0.8, 0.74, 0.7), strict=True))
    ]
    pairs = compare(table(*systems), replicates=100).pairs
    assert [(pair.a, pair.b) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in pairs:
        alone = pair.area.estimate
        assert pair.area.tests == 3
        assert pair.area.p_adjusted == pytest.approx(1 - (1 - alone.p) ** 3)
        assert pair.area.interval == pytest.approx(alone.interval(0.95 ** (1 / 3)))


@given(st.floats(-0.4, 0.4), st.floats(1e-4, 0.2), st.integers(1, 1000), st.integers(1, 50), st.floats(0.5, 0.99))
def test_an_interval_excludes_0_exactly_where_the_corrected_p_value_is_significant(value, error, freedom, tests, level):
    contrast = Contrast(Estimate(value, error, freedom), (0.0, 1.0), level, tests)
    assume(abs(contrast.p_adjusted - (1 - level)) > 1e-9)
    low, high = contrast.interval
    assert contrast.significant == (low > 0 or high < 0)
    assert contrast.p_adjusted >= contrast.estimate.p - 1e-15


def test_more_inputs_are_asked_for_where_no_difference_is_shown():
    a, b = made_up("a", 150, seed=1, accuracy=0.72), made_up("b", 150, seed=2, accuracy=0.70)
    pair = one_pair(a, b)
    assert pair.verdict == "no significant difference"
    expected = 150 * ((1.959964 + 0.841621) * pair.area.estimate.error / abs(pair.area.value)) ** 2
    assert pair.inputs_needed == max(150, int(np.ceil(expected)))


def test_with_as_many_inputs_as_asked_for_the_difference_is_shown_about_four_times_in_five():
    rng = np.random.default_rng(5)
    pilot, _ = area_difference(*two_systems(rng, 20_000), paired=True)
    needed = int(20_000 * ((1.959964 + 0.841621) * pilot.error / abs(pilot.value)) ** 2)
    shown = [area_difference(*two_systems(rng, needed), paired=True)[0].p < 0.05 for _ in range(200)]
    assert 0.68 < np.mean(shown) < 0.92


def two_systems(rng, n):
    difficulty = rng.random(n)
    rights = [difficulty + rng.normal(0, 0.1, n) < share for share in (0.75, 0.70)]
    return [Rows.of(rng.normal(right, 1.0), right) for right in rights]


def test_three_systems_are_ranked_by_region():
    a, b = crossing_systems(1500)
    c = made_up("c", 1500, seed=9, accuracy=0.4, skill=0.0)
    found = compare(table(a, b, c), replicates=200)
    assert [name for name, _ in groupby(lead.best for lead in found.ranking)] == ["a", "b"]
    assert found.ranking[0].start == 0
    assert found.ranking[-1].stop == 1
    assert all(one.stop == two.start for one, two in pairwise(found.ranking))
    assert found.ranking[0].also == ()
    assert all(one.stop > one.start for one in found.ranking)
    assert len(found.pairs) == 3
    assert len(found.evaluations) == 3


def test_the_order_of_three_unpaired_systems_does_not_change_a_verdict():
    logs = [
        made_up(name, n, seed=n, accuracy=share) for name, n, share in (("a", 8, 0.9), ("b", 200, 0.8), ("c", 150, 0.5))
    ]
    forth, back = (compare(table(*part), unpaired=True, replicates=400) for part in (logs, logs[::-1]))
    verdicts = {frozenset((p.a, p.b)): FLIPPED.get(p.verdict, p.verdict) for p in back.pairs}
    assert {frozenset((p.a, p.b)): p.verdict for p in forth.pairs} == verdicts
    widths = {frozenset((p.a, p.b)): (p.band.high - p.band.low).mean() for p in back.pairs}
    for pair in forth.pairs:
        assert (pair.band.high - pair.band.low).mean() == pytest.approx(widths[frozenset((pair.a, pair.b))], rel=0.15)


def test_no_difference_is_rarely_called_one():
    """Two systems that are alike but err independently: at most about one in twenty logs shows a difference."""
    rng, trials, wrong_calls, significant = np.random.default_rng(8), 30, 0, 0
    for _ in range(trials):
        systems = [answers(name, rng.normal(right := rng.random(150) < 0.7, 1.0), right) for name in "ab"]
        (pair,) = compare(table(*systems), replicates=200, measures={}).pairs
        wrong_calls += pair.verdict != "no significant difference"
        significant += pair.area.significant
    assert wrong_calls <= binom.ppf(0.999, trials, 0.05)
    assert significant <= binom.ppf(0.999, trials, 0.05)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_inputs_are_compared_without_fuss(n):
    a, b = answers("a", np.arange(n), [True] * n), answers("b", np.arange(n), [False] * n)
    shown = compare(table(a, b), replicates=50).to_dict()
    json.dumps(shown, allow_nan=False)
    assert shown["pairs"][0]["verdict"] == "no significant difference"


def test_systems_that_only_withhold_are_compared_without_fuss():
    rows = answers("a", [0.0] * 3, [False] * 3, prediction=[None] * 3, correct=[None] * 3, target=["p"] * 3)
    found = compare(table(rows, [row | {"system": "b"} for row in rows]), replicates=50)
    assert found.pairs[0].verdict == "no significant difference"
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_system_is_nothing_to_compare():
    with pytest.raises(DataError, match="needs two systems or more"):
        compare(table(made_up("a", 20, seed=0)))


def test_the_json_has_the_keys_scripts_rely_on():
    shown = json.loads(json.dumps(compare(table(*crossing_systems(400)), replicates=100).to_dict(), allow_nan=False))
    (pair,) = shown["pairs"]
    wanted = {"a", "b", "paired", "n", "verdict", "intervals", "crossings", "augrc_difference"}
    assert wanted <= pair.keys()
    assert {"value", "low", "high", "p"} <= pair["augrc_difference"].keys()
    assert all({"from", "to", "better"} <= part.keys() for part in pair["intervals"])
    assert all({"x", "y", "low", "high"} <= part.keys() for part in pair["crossings"])
    assert pair["augrc_difference"]["low"] <= pair["augrc_difference"]["value"] <= pair["augrc_difference"]["high"]


def test_a_system_that_is_not_told_apart_is_named_in_the_ranking():
    a, b = made_up("a", 200, seed=1, accuracy=0.72), made_up("b", 200, seed=2, accuracy=0.70)
    for lead in compare(table(a, b), replicates=200).ranking:
        assert {lead.best, *lead.also} == {"a", "b"}


@pytest.mark.parametrize("unpaired", [False, True])
def test_rows_that_are_side_by_side_already_are_compared_alike(unpaired):
    systems = table(*crossing_systems(300))
    found = compare(paired(systems, unpaired=unpaired), replicates=100)
    assert found.to_dict() == compare(systems, unpaired=unpaired, replicates=100).to_dict()


def test_a_system_that_answers_nothing_loses_to_one_with_right_answers():
    a = made_up("a", 400, seed=1, accuracy=0.72)
    b = silent(a, "b")
    forth, back = one_pair(a, b, systems=("a", "b")), one_pair(a, b, systems=("b", "a"))
    assert (forth.verdict, back.verdict) == ("a better", "b better")
    for pair in (forth, back):
        assert pair.fewer_errors is None
        assert abs(pair.right.value) == pytest.approx(0.72, abs=0.05)
        assert pair.right.significant
        assert pair.inputs_needed is None
        assert "b answers nothing." in verdicts.pair_sentences(pair)


def test_errors_that_nothing_answered_could_make_are_not_compared():
    """No difference of 0 with p = 1: there is no rate at which both have a curve, and one test is made, not two."""
    a = made_up("a", 400, seed=1, accuracy=0.72)
    found = compare(table(a, silent(a, "b")), replicates=60, measures={}, margin=0.01)
    (pair,) = found.pairs
    document = found.to_dict()["pairs"][0]
    assert not pair.overall.defined
    assert (document["augrc_difference"]["value"], document["augrc_difference"]["p"]) == (None, None)
    assert document["right_answers_difference"]["tests"] == 1
    assert pair.equivalence.a < 1e-6
    assert pair.equivalence.b > 0.999
    one_less = "a against b: augrc_difference is undefined, so the gate augrc_difference > 0.01 cannot be passed"
    assert output.failures(["augrc_difference > 0.01"], found.to_dict()) == [one_less]
    assert output.failures(["b is not non-inferior"], found.to_dict()) == ["b is not non-inferior to a"]
    assert output.failures(["b is significantly worse"], found.to_dict()) == ["b is significantly worse than a"]
    assert output.failures(["a is not non-inferior", "a is significantly worse"], found.to_dict()) == []
    assert {"–"} == set(pair_table(found).rows[0][3:5])
    assert pair_table(found).rows[0][2] == "a better (right answers)"


def test_a_system_that_is_better_in_right_answers_alone_is_said_to_be_better():
    """Confidences say nothing, so a makes as many errors as b where both answer; b withholds 40 % by itself."""
    rows = (made_up(name, 600, seed=seed, skill=0.0, withheld=aside) for seed, (name, aside) in enumerate(BOTH))
    pair = compare(table(*rows), replicates=60, measures={}).pairs[0]
    assert (pair.fewer_errors, pair.more_right, pair.verdict) == (None, "a", "a better")
    more = "no significant difference in errors, but more right answers"
    assert verdicts.pair_sentences(pair)[0].startswith(f"a is better than b overall: {more}. AUGRC")
    assert verdicts.pair_title(pair) == "a is better than b overall"


BOTH = (("a", 0.0), ("b", 0.4))


def test_two_silent_systems_are_not_compared_at_all():
    rows = made_up("a", 40, seed=1)
    pair = one_pair(silent(rows, "a"), silent(rows, "b"))
    assert (pair.verdict, pair.better, pair.overall.defined) == ("no significant difference", None, False)


def test_over_a_region_that_one_system_does_not_reach_nothing_is_said_of_errors():
    a, b = made_up("a", 400, seed=1), made_up("b", 400, seed=2, withheld=0.4)
    pair = one_pair(a, b, region=(0.0, 0.2))
    assert (pair.intervals, pair.crossings, pair.fewer_errors) == ((), (), None)
    assert "There is no non-return rate of the region" in verdicts.pair_sentences(pair)[0]


def test_over_a_region_pairs_are_shown_with_the_difference_that_decides():
    found = compare(table(*crossing_systems()), replicates=60, measures={}, region=(0.0, 0.05))
    (pair,) = found.pairs
    shown = pair_table(found)
    assert shown.columns[3] == "mean error over the region of a less b"
    assert shown.rows[0][3].startswith(f"{pair.overall.value:+.4f} ")
    assert pair.verdict == "a dominates"
    assert "no more errors at any of these rates" in verdicts.pair_sentences(pair)[0]


def test_fewer_right_answers_are_no_loss_where_they_come_with_significantly_fewer_errors():
    """b withholds half by itself, and of the rest answers better than a: each is better somewhere."""
    rng = np.random.default_rng(3)
    hard, right = rng.random(1000) < 0.5, rng.random(1000) < 0.6
    a = answers("a", rng.random(1000), right)
    rows = answers("b", rng.random(1000), right | (rng.random(1000) < 0.5))
    b = [one if aside else row for row, one, aside in zip(rows, silent(rows, "b"), hard, strict=True)]
    pair = one_pair(a, b)
    assert (pair.more_right, pair.fewer_errors, pair.better) == ("a", "b", None)
    assert pair.verdict == "crossing"


@pytest.mark.parametrize("paired", [True, False])
def test_right_answers_by_hand(paired):
    """7 of 10 against 4 of 10, discordant 5 : 2; paired the variance of the 10 differences is (7 - .9) / 9 / 10."""
    a = [True] * 7 + [False] * 3
    b = [True] * 2 + [False] * 5 + [True] * 2 + [False]
    found = right_contrast(Rows.of(np.arange(10), a), Rows.of(np.arange(10), b), paired=paired)
    assert found.value == pytest.approx(0.3)
    each = np.sqrt((7 - 0.9) / 9 / 10) if paired else np.sqrt((0.21 + 0.24) / 9)
    assert found.estimate.error == pytest.approx(each)


@given(tables(SCORES, largest=8), tables(SCORES, largest=8), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_the_difference_at_a_point_is_that_of_the_curves(one, two, at):
    curves = [plain.curve(rows) for rows in (one, two)]
    found = point_contrast(arrays(one), arrays(two), at, paired=False)
    if at < max(points[0][0] for points in curves):
        assert not found.defined
    else:
        assert found.value == pytest.approx(float(plain.height(curves[0], at) - plain.height(curves[1], at)))


def test_the_difference_with_nothing_withheld_has_the_error_of_paired_shares():
    """3 of 10 err against 6, discordant 1 : 4: the 10 differences have the sum of squares 5 - 9 / 10."""
    a, b = [False] * 3 + [True] * 7, [False] * 2 + [True] * 4 + [False] * 4
    found = point_contrast(Rows.of(np.arange(10), a), Rows.of(np.arange(10), b), 0.0, paired=True)
    assert found.value == pytest.approx(-0.3)
    assert found.estimate.error == pytest.approx(np.sqrt((5 - 0.9) / 9 / 10), rel=0.1)


@pytest.mark.parametrize("at", [0.2, 0.5])
def test_the_error_of_a_difference_at_a_point_is_that_of_the_bootstrap(at):
    rng = np.random.default_rng(1)
    right = [rng.random(600) < share for share in (0.7, 0.6)]
    a, b = (Rows.of(rng.normal(skill * one), one) for skill, one in zip((1.5, 1.0), right, strict=True))
    found = point_contrast(a, b, at, paired=True).estimate.error
    unit = np.arange(600)
    one, two = replicate_together([a.drawn_by(unit), b.drawn_by(unit)], replicates=500, seed=0)
    drawn = curve_at(one, np.array([at])) - curve_at(two, np.array([at]))
    assert found == pytest.approx(drawn.std(), rel=0.12)


@pytest.mark.parametrize(("n", "shown"), [(3, False), (5, False), (6, True)])
def test_inputs_that_all_differ_the_same_way_are_as_telling_as_in_the_exact_test(n, shown):
    """McNemar's p for 5 : 0 is .0625, for 6 : 0 it is .031."""
    a, b = answers("a", np.arange(n), [True] * n), answers("b", np.arange(n), [False] * n)
    pair = one_pair(a, b)
    assert (pair.area.significant, bool(pair.intervals)) == (shown, shown)


RATES = st.fractions(0, 1, max_denominator=12)


def beyond(points, start):
    return [(start, plain.height(points, start)), *(point for point in points if point[0] > start)]


@given(tables(SCORES, largest=8), tables(SCORES, largest=8), RATES, RATES)
def test_the_mean_difference_over_a_region_is_that_of_the_plain_curves(one, two, start, stop):
    curves = [plain.curve(rows) for rows in (one, two)]
    left = max(min(start, stop), curves[0][0][0], curves[1][0][0])
    stop = max(start, stop)
    assume(left < stop)
    first, second = (plain.area(beyond(points, left)) - plain.area(beyond(points, stop)) for points in curves)
    found = region_contrast(arrays(one), arrays(two), (float(left), float(stop)), paired=False)
    assert found.value == pytest.approx(float((first - second) / (stop - left)), abs=1e-9)
    assert found.range == pytest.approx((float(left), float(stop)))


def test_the_error_of_a_regions_mean_is_that_of_the_bootstrap():
    rng = np.random.default_rng(4)
    one, two = two_systems(rng, 600)
    found = region_contrast(one, two, (0.1, 0.4), paired=True)
    units = np.arange(600)
    replicates = replicate_together([one.drawn_by(units), two.drawn_by(units)], replicates=1500, seed=0)
    drawn = [curve_at(part, np.linspace(0.1, 0.4, 61)).mean(axis=1) for part in replicates]
    assert found.estimate.error == pytest.approx((drawn[0] - drawn[1]).std(), rel=0.08)


def test_over_a_region_the_better_system_of_that_region_is_named():
    a, b = crossing_systems()
    low, high = one_pair(a, b, region=(0.0, 0.1)), one_pair(a, b, region=(0.5, 0.9))
    assert (low.better, high.better) == ("a", "b")
    assert low.overall is not low.area
    assert low.to_dict()["region_difference"]["range"] == [0.0, 0.1]


def test_alike_systems_are_equivalent_within_a_margin_and_not_without_enough_inputs():
    a, b = made_up("a", 2000, seed=1, accuracy=0.8), made_up("b", 2000, seed=1, accuracy=0.8)
    assert one_pair(a, b, margin=0.05).verdict == "equivalent"
    few = one_pair(a[:40], b[:40], margin=0.005)
    assert few.verdict == "no significant difference"
    assert not few.equivalence.holds


def test_two_one_sided_tests_by_hand():
    """.01 with standard error .01 and many degrees of freedom: against +.03 z = -2, against -.03 z = -4."""
    worse_a, worse_b = Contrast(Estimate(0.01, 0.01, 10**6), (0.0, 1.0)).inferior_p(0.03)
    assert worse_a == pytest.approx(0.02275, abs=1e-4)
    assert worse_b == pytest.approx(3.2e-5, abs=1e-6)


def test_crossing_systems_are_rarely_said_to_be_dominated():
    """The true curves cross at about .16, with a tenth of the area on the worse side's."""
    found = []
    for seed in range(12):
        a = made_up("a", 600, seed=seed, accuracy=0.8, skill=0.3)
        b = made_up("b", 600, seed=1000 + seed, accuracy=0.76, skill=2.0)
        found.append(one_pair(a, b).verdict)
    assert sum("dominates" in verdict for verdict in found) <= 2
    assert {"b better", "crossing"} & set(found)


def test_heaps_leave_crossings_and_ranges_that_no_threshold_reaches_marked():
    rng = np.random.default_rng(2)
    right = rng.random(2000) < 0.6
    a = answers("a", np.where(right, rng.choice([0.9, 1.0], 2000), rng.choice([0.8, 0.9], 2000)), right)
    better = right | (rng.random(2000) < 0.3)
    b = answers("b", np.where(better, rng.choice([0.9, 1.0], 2000), rng.choice([0.8, 0.9], 2000)), better)
    pair = one_pair(a, b)
    assert pair.intervals
    assert not any(part.reachable for part in pair.intervals)
    assert "no threshold" in " ".join(verdicts.pair_sentences(pair))


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, float("nan")])
def test_a_margin_that_is_no_difference_of_rates_is_refused(margin):
    with pytest.raises(UsageError, match="margin"):
        one_pair(*dominating_systems(20), margin=margin)
