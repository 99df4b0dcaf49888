import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.calibration import NCE, cell_totals
from demur.core.stats.intervals import exact_binomial, expanded_percentiles, student
from demur.core.stats.measure import parse_signature
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.nbest_lists.measures import KINDS
from demur.returns.counting import tallies_of_frame
from demur.returns.curves import error_band
from demur.returns.evaluate import evaluate, figure_of, returns_measures, slices_at_one_threshold
from demur.returns.jobs import score
from demur.returns.measures import AUGRC, AURC, RETURNS, ForcedError, NonreturnAtError
from demur.returns.table import Reading, responses
from demur.returns.tally import ConfidenceGrid
from reference import returns as plain
from reference.answers import answers, made_up, shuffled, table
from reference.rows import SCORES, arrays, tables
from reference.tallies import tally_of

CASES = pytest.mark.parametrize(
    "options",
    [{}, {"digits": 0}, {"weighted": True}, {"dialogues": 15}, {"withheld": 0.15}, {"weighted": True, "dialogues": 15}],
    ids=["plain", "ties", "weighted", "clustered", "floor", "weighted and clustered"],
)


def only(responses_, **options):
    (found,) = evaluate(responses_, replicates=200, **options)
    return found


@CASES
def test_row_order_does_not_change_any_number(options):
    rows = made_up("guide", 180, seed=1, **options)
    one, two = (only(table(part)) for part in (rows, shuffled(rows)))
    assert one.to_dict() == two.to_dict()
    assert one.band.to_dict() == two.band.to_dict()


@pytest.mark.parametrize("engine", ["memory", "polars"])
def test_rows_can_be_sliced_by_their_target(engine, tmp_path):
    targets = ["yes", "yes", "no", "oos", None]
    rows = pl.DataFrame({"target": targets, "prediction": ["yes"] * 5, "confidence": [0.9, 0.8, 0.4, 0.3, 0.2]})
    rows.write_parquet(tmp_path / "log.parquet")
    found = score(tmp_path / "log.parquet", by="target", engine=engine, replicates=50)
    sizes = {one.part: one.n for one in found}
    assert sizes == {None: 5, "target=no": 1, "target=out_of_scope": 2, "target=yes": 2}


def test_row_order_does_not_matter_where_only_some_rows_have_a_dialogue():
    rows = made_up("guide", 120, seed=1)
    rows = [row | {"dialogue": f"d{place % 7}" if place % 2 else None} for place, row in enumerate(rows)]
    one, two = (only(table(part)) for part in (rows, shuffled(rows)))
    assert one.to_dict() == two.to_dict()


@CASES
def test_every_interval_holds_its_value(options):
    found = only(table(made_up("guide", 180, seed=2, **options)))
    for name, figure in found.figures.items():
        assert figure.why or figure.low <= figure.value <= figure.high, name


def test_values_are_those_of_the_measures():
    rows = answers("guide", [0.9] * 3 + [0.8] * 4 + [0.5] * 2 + [0.1], [1, 1, 0, 1, 0, 1, 1, 0, 1, 0])
    figures = only(table(rows)).figures
    assert figures["augrc"].value == pytest.approx(0.16)
    assert figures["aurc"].value == pytest.approx(0.323571, abs=1e-6)
    assert figures["forced_error"].value == 0.4
    trapezoid = only(table(rows), measures=returns_measures(aurc="trapezoid")).figures["aurc"]
    assert trapezoid.value == pytest.approx(0.322381, abs=1e-6)


@pytest.mark.parametrize("name", ["forced_error", "nonreturn_floor", "qald_recall"])
def test_shares_of_plain_rows_have_about_the_interval_of_clopper_and_pearson(name):
    found = only(table(made_up("guide", 300, seed=3, withheld=0.2)), level=0.9)
    figure = found.figures[name]
    half = 1.645 * np.sqrt(figure.value * (1 - figure.value) / 300)
    assert figure.high - figure.low == pytest.approx(2 * half, rel=0.25)


def test_turns_that_go_together_widen_every_interval():
    rows = made_up("guide", 60, seed=4)
    turns = [row | {"id": f"{row['id']}-{turn}"} for row in rows for turn in range(6)]
    grouped = [row | {"dialogue": row["id"][:5]} for row in turns]
    naive, clustered = (only(table(part)) for part in (turns, grouped))
    assert clustered.clustered
    for name in ("forced_error", "augrc", "aurc", "auroc", "error_at_nonreturn", "qald_recall"):
        wide, narrow = clustered.figures[name], naive.figures[name]
        assert wide.value == pytest.approx(narrow.value)
        assert wide.high - wide.low > 1.6 * (narrow.high - narrow.low), name


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_still_has_intervals_or_reasons(right):
    found = only(table(answers("guide", np.arange(30) / 30, [right] * 30)))
    for name, figure in found.figures.items():
        unknown = figure.why or np.isnan([figure.low, figure.high]).all()
        assert unknown or figure.low <= figure.value <= figure.high, name
    for name in ("forced_error", "qald_recall", "augrc", "error_at_nonreturn"):
        assert found.figures[name].low < found.figures[name].high, name
    band = found.band
    assert np.isfinite([*band.low, *band.high, *band.low_all, *band.high_all]).all()
    json.dumps(found.to_dict(), allow_nan=False)


@given(tables(SCORES, weights=st.sampled_from([0, 1, 1, 2]), largest=8))
def test_any_small_table_is_evaluated_without_a_warning(rows):
    if plain.weight_of(rows) == 0:
        return
    sample = Sample(arrays(rows), 40, 0)
    for name, measure in RETURNS.items():
        figure = figure_of(measure, sample)
        ends = (figure.low, figure.high)
        assert np.isnan([figure.value, *ends]).any() == bool(figure.why), name
        assert np.isnan(ends).any() or figure.low <= figure.value <= figure.high, name


@pytest.mark.parametrize("options", [{"dialogues": 15}, {"weighted": True}])
def test_what_supposes_independent_answers_is_undefined_for_others(options):
    figure = only(table(made_up("guide", 100, seed=1, **options))).figures["ece_debiased"]
    assert "independent answers that count alike" in figure.why


def test_the_calibration_test_stands_beside_the_measures():
    rows = answers("guide", [0.9] * 10, [True] * 6 + [False] * 4)
    shown = only(table(rows)).to_dict()["calibration_test"]
    assert shown["name"] == "Spiegelhalter"
    assert (shown["z"], shown["p"]) == pytest.approx((3.16228, 0.0015654), abs=1e-5)


def test_where_every_answer_is_wrong_the_nonreturn_rate_needed_has_an_interval():
    """All of 20 answers are wrong, so the curve is 1 - x: at x = .85 the error rate of .15 may well be .05."""
    figure = only(table(answers("guide", np.arange(20) / 20, [False] * 20))).figures["nonreturn_at_error"]
    assert figure.value == pytest.approx(0.95)
    low, _ = exact_binomial(1 - figure.low, 20, student(0.95, 19))
    assert float(low) == pytest.approx(0.05, abs=0.002)
    assert figure.low < figure.value <= figure.high


@given(tables(weights=st.just(1), smallest=4, largest=12), st.sampled_from([0.05, 0.2, 0.4]))
def test_the_interval_of_the_nonreturn_rate_needed_is_where_the_bounds_of_the_curve_pass_it(rows, error):
    sample = Sample(arrays(rows), 40, 0)
    figure = figure_of(NonreturnAtError(error, "randomise"), sample)
    band = error_band(sample)
    for end, bound in ((figure.low, band.low), (figure.high, band.high)):
        kept = bound <= error + 1e-9
        passed = band.x[kept & np.append(True, ~kept[:-1])]  # in a handful of rows a bound may pass more than once
        expected = np.minimum(passed, figure.value) if bound is band.low else passed
        assert np.abs(expected - end).min() < 0.006


@pytest.mark.parametrize("seed", range(3))
def test_an_interval_of_the_nce_allows_for_wrong_answers_of_confidence_1_that_were_not_seen(seed):
    """Of 100 answers 30 have confidence 1 and are right; in truth one in 50 such answers may be wrong."""
    rng = np.random.default_rng(seed)
    confidence = np.repeat([1.0, 0.9], [30, 70])
    right = np.append(np.ones(30, np.bool_), rng.random(70) < 0.9)
    found = only(table(answers("guide", confidence, right))).figures["nce"]
    truth = NCE().finish(
        cell_totals(NCE(), Sweep(np.array([0.9, 1.0]), np.array([630.0, 294]), np.array([70.0, 6]), 0.0, 1000))
    )
    assert found.low <= float(truth) <= found.high


@pytest.mark.parametrize(("errors", "units"), [(40, 41), (4, 15)])
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_the_interval_of_the_aurc_is_as_wide_as_students_for_its_errors(errors, units, weight):
    """Weights of 2 for all are no more errors; of fewer than 14 the replicates allow for those not seen."""
    rows = Rows.of(np.arange(200) / 200, np.arange(200) % 200 >= errors)
    sample = Sample(replace(rows, weight=np.full(200, weight)), 200, 0)
    figure = figure_of(AURC(), sample)
    drawn = AURC().finish(sample.smoothed)
    assert (figure.low, figure.high) == pytest.approx(expanded_percentiles(drawn, 0.95, units))


def test_the_upper_end_of_the_nce_is_not_lowered_by_answers_that_were_not_seen():
    rows = Rows(*(np.asarray(part) for part in ([0.5, 0.9] * 60, [True, True, False] * 40, [True] * 120, [1.0] * 120)))
    sample = Sample(replace(rows, unit=np.repeat(np.arange(12), 10)), 200, 0)
    smoothed = NCE().finish(cell_totals(NCE(), sample.smoothed))
    high = expanded_percentiles(smoothed, 0.95, 12)[1]
    assert figure_of(NCE(), sample).high >= high


def test_one_row_is_evaluated():
    found = only(table(answers("guide", [0.5], [False])))
    assert found.figures["forced_error"].value == 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_system_that_only_withholds_is_evaluated():
    rows = answers("guide", [0.0] * 4, [False] * 4, prediction=[None] * 4, correct=[None] * 4, target=["p"] * 4)
    found = only(table(rows))
    assert (found.n, found.withheld, found.figures["nonreturn_floor"].value) == (4, 4, 1)
    assert found.figures["aurc"].why
    json.dumps(found.to_dict(), allow_nan=False)


def test_failures_and_abstentions_are_counted_apart():
    rows = answers("guide", [0.9] * 5, [True] * 5, failed=[True, False, False, False, False])
    rows[1] |= {"prediction": None, "correct": None}
    found = only(responses(rows))
    assert (found.n, found.failed, found.withheld) == (5, 1, 1)
    assert found.figures["nonreturn_floor"].value == pytest.approx(0.4)


def test_slices_are_evaluated_beside_the_whole():
    rows = made_up("guide", 60, seed=5)
    rows = [row | {"noise": ["none", "some"][place % 3 == 0]} for place, row in enumerate(rows)]
    found = evaluate(responses(rows, reading=Reading(keep=("noise",))), by="noise", replicates=50)
    assert [(part.part, part.n) for part in found] == [(None, 60), ("noise=none", 40), ("noise=some", 20)]
    whole, *parts = (part.figures["forced_error"].value * part.n for part in found)
    assert whole == pytest.approx(sum(parts))
    assert found[1].name == "guide [noise=none]"
    assert found[1].to_dict()["slice"] == "noise=none"


def test_an_unknown_slice_is_refused():
    with pytest.raises(DataError, match='no column "noise" to slice by'):
        evaluate(table(made_up("guide", 10, seed=0)), by="noise")


@pytest.mark.parametrize("level", [0, 1, 95])
def test_levels_outside_0_1_are_refused(level):
    with pytest.raises(UsageError, match="confidence level lies between 0 and 1"):
        evaluate(table(made_up("guide", 10, seed=0)), level=level)


def test_a_higher_level_gives_wider_intervals():
    rows = table(made_up("guide", 150, seed=6))
    narrow, wide = only(rows, level=0.8), only(rows, level=0.99)
    for name in ("forced_error", "augrc", "aurc", "auroc", "nonreturn_at_error"):
        assert wide.figures[name].low <= narrow.figures[name].low, name
        assert wide.figures[name].high >= narrow.figures[name].high, name


def test_the_json_has_the_keys_scripts_rely_on():
    shown = json.loads(json.dumps(only(table(made_up("guide", 50, seed=7))).to_dict(), allow_nan=False))
    assert {"system", "n", "signature", "measures"} <= shown.keys()
    wanted = {"forced_error", "nonreturn_floor", "augrc", "aurc", "e_aurc", "auroc", "ranking_skill"}
    assert wanted | {"error_at_nonreturn"} <= shown["measures"].keys()
    assert shown["measures"]["error_at_nonreturn"]["x"] == 0.2
    assert {"value", "low", "high"} <= shown["measures"]["augrc"].keys()
    assert parse_signature(shown["signature"], KINDS).n == 50


def test_measures_of_ones_own_choice_can_be_shown():
    found = only(table(made_up("guide", 50, seed=7)), measures={"augrc": AUGRC()})
    assert set(found.to_dict()["measures"]) == {"augrc"}


def test_a_range_of_nonreturn_rates_can_be_asked_for():
    found = only(table(made_up("guide", 50, seed=7)), measures=returns_measures(at=(0.1, 0.3)))
    shown = found.to_dict()["measures"]["error_at_nonreturn"]
    assert (shown["x"], shown["to"]) == (0.1, 0.3)


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others():
    rows = table(made_up("guide", 80, seed=8))
    one, again, other = (only(rows, seed=seed).to_dict() for seed in (0, 0, 1))
    assert one == again
    assert one["measures"]["aurc"] != other["measures"]["aurc"]
    assert one["measures"]["augrc"] == other["measures"]["augrc"]


@pytest.mark.parametrize(
    ("measure", "truth"), [(ForcedError(), 1 / 2), (AUGRC(), 1 / 6)], ids=["forced error", "augrc"]
)
def test_intervals_cover_the_truth_about_as_often_as_they_say(measure, truth):
    """Confidence uniform, right with that probability: y(x) = (1 - x)^2 / 2, so the error is 1/2 and the area 1/6."""
    rng, trials, held = np.random.default_rng(31), 150, 0
    for _ in range(trials):
        confidence = rng.random(100)
        figure = figure_of(measure, Sample(Rows.of(confidence, rng.random(100) < confidence), 100, 0))
        held += figure.low <= truth <= figure.high
    assert 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / trials) < held / trials


def test_bootstrap_intervals_of_aurc_cover_the_truth_too():
    rng, trials, held = np.random.default_rng(33), 100, 0
    big = np.random.default_rng(0).random(200_000)
    right = np.random.default_rng(1).random(200_000) < big
    truth = float(AURC().finish(Rows.of(big, right).sweep()))
    for _ in range(trials):
        confidence = rng.random(150)
        figure = figure_of(AURC(), Sample(Rows.of(confidence, rng.random(150) < confidence), 300, 0))
        held += figure.low <= truth <= figure.high
    assert 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / trials) < held / trials


def test_slices_at_one_threshold_add_up_to_the_whole():
    rows = [
        {
            "id": k,
            "target": "a",
            "prediction": "ab"[k % 3 == 0],
            "confidence": (k * 37 % 100) / 100,
            "kind": "xyz"[k % 3],
        }
        for k in range(100)
    ]
    found = evaluate(responses(rows, reading=Reading(keep=("kind",))), by="kind", replicates=50)
    whole, parts = found[0], slices_at_one_threshold(found)
    nonreturn, error = whole.curve.at_threshold(parts[0].threshold)
    assert nonreturn == pytest.approx(0.2)
    assert sum(part.n * part.nonreturn for part in parts) == pytest.approx(100 * nonreturn)
    assert sum(part.n * part.error for part in parts) == pytest.approx(100 * error)


def log_of_dialogues(n, dialogues, *, seed=0, skewed=False):
    """Turns that are easy or hard by dialogue; skewed, one dialogue holds a tenth of them."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, dialogues, n)
    if skewed:
        place[: n // 10] = 0
    ease = rng.normal(0, 1, dialogues)[place]
    confidence = np.round(1 / (1 + np.exp(-rng.normal(ease, 1.0))), 3)
    right = rng.random(n) < 1 / (1 + np.exp(-1 - 2 * ease))
    aside = [None if withheld else "p" for withheld in rng.random(n) < 0.1]
    return answers("guide", confidence, right, prediction=aside, dialogue=[f"d{one}" for one in place])


@pytest.mark.parametrize("options", [{}, {"digits": 0}, {"withheld": 0.15}, {"digits": 6}])
def test_tallies_of_rows_without_dialogues_give_the_very_intervals_of_the_rows(options):
    judged = table(made_up("guide", 700, seed=1, **options))
    (elsewhere,) = evaluate(tallies_of_frame(judged.frame), replicates=200)
    memory = only(judged)
    assert elsewhere.to_dict() == memory.to_dict()
    assert elsewhere.band.to_dict() == memory.band.to_dict()


@pytest.mark.parametrize("skewed", [False, True])
def test_tallies_of_dialogues_give_the_values_of_the_rows_and_intervals_as_wide(skewed):
    judged = table(log_of_dialogues(20_000, 3000, skewed=skewed))
    (memory,), (elsewhere,) = evaluate(judged), evaluate(tallies_of_frame(judged.frame))
    for name, figure in memory.figures.items():
        other = elsewhere.figures[name]
        assert other.value == pytest.approx(figure.value, rel=1e-12, nan_ok=True), name
        assert other.high - other.low == pytest.approx(figure.high - figure.low, rel=0.12, nan_ok=True), name
    one, two = memory.band, elsewhere.band
    assert two.error.tolist() == one.error.tolist()
    early = one.x < 0.8
    for low, high in (("low", "high"), ("low_all", "high_all")):
        widths = [(getattr(band, high) - getattr(band, low))[early] for band in (one, two)]
        assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert (two.clustered, elsewhere.clustered) == (True, True)


def faultless(n, dialogues):
    """A log in which every answer is right, and nothing is withheld."""
    rows = answers("guide", [(place % 90 + 10) / 100 for place in range(n)], [True] * n)
    return table([row | {"dialogue": f"d{place % dialogues}"} for place, row in enumerate(rows)])


def test_a_rate_of_0_is_as_sure_from_a_tally_as_from_the_dialogues_themselves():
    judged = faultless(9000, 3000)
    (tally,) = tallies_of_frame(judged.frame)
    assert tally.buckets < 1000
    (memory,), (elsewhere,) = evaluate(judged, replicates=50), evaluate([tally], replicates=50)
    for name in ("forced_error", "nonreturn_floor", "error_at_nonreturn", "augrc"):
        figure, other = memory.figures[name], elsewhere.figures[name]
        assert (other.value, other.low) == (0, 0), name
        assert figure.high < other.high < 1.12 * figure.high, name
    assert memory.band.high[0] < elsewhere.band.high[0] < 1.12 * memory.band.high[0]
    assert elsewhere.band.units == tally.buckets


def test_tallies_of_slices_are_evaluated_beside_the_whole():
    rows = [row | {"noise": ["none", "some"][place % 3 == 0]} for place, row in enumerate(made_up("guide", 60, seed=5))]
    judged = responses(rows, reading=Reading(keep=("noise",)))
    heard = []
    tallies = tallies_of_frame(judged.frame, by="noise")
    found = evaluate(tallies, replicates=50, step=lambda *told: heard.append(told))
    assert found.to_dict() == evaluate(judged, by="noise", replicates=50).to_dict()
    assert heard == [("evaluating guide", done, 3) for done in range(3)]


def test_failures_and_abstentions_of_a_tally_are_counted_apart():
    rows = answers("guide", [0.9] * 5, [True] * 5, failed=[True, False, False, False, False])
    rows[1] |= {"prediction": None, "correct": None}
    (found,) = evaluate(tallies_of_frame(responses(rows).frame), replicates=20)
    assert (found.n, found.failed, found.withheld) == (5, 1, 1)


def test_a_level_outside_0_1_is_refused_for_tallies_too():
    with pytest.raises(UsageError, match="confidence level lies between 0 and 1"):
        evaluate([], level=95)


def test_a_curve_that_joins_confidences_says_how_exact_it_is():
    """Cells of a quarter: .1 and .2 are joined, with one error among the two, and .6 and .7, with none."""
    tally = tally_of(Rows.of([0.1, 0.2, 0.3, 0.6, 0.7], [True, False, False, True, True]))
    (exact,) = evaluate([tally], replicates=50)
    (joined,) = evaluate([tally.joined(ConfidenceGrid((4.0,)))], replicates=50)
    assert exact.joined is None
    assert "joined" not in exact.to_dict()
    bounds = {"cutoffs": 3, "resolution": pytest.approx(0.1), "x_within": 0.4, "y_within": 0.2}
    assert joined.to_dict()["joined"] == bounds
    json.dumps(joined.to_dict(), allow_nan=False)


def test_sums_over_rows_keep_their_value_where_confidences_are_joined():
    rng = np.random.default_rng(0)
    confidence = rng.random(500)
    tally = tally_of(Rows.of(confidence, rng.random(500) < confidence))
    exact, joined = evaluate([tally, tally.joined(ConfidenceGrid.over(1.0, 3))], replicates=100)
    for name in ("brier", "ece", "nce", "forced_error"):
        assert joined.figures[name].value == pytest.approx(exact.figures[name].value, rel=1e-12), name
        assert joined.figures[name].low <= joined.figures[name].value <= joined.figures[name].high, name
    assert joined.figures["augrc"].value == pytest.approx(exact.figures["augrc"].value, abs=joined.joined.y_within)


def test_confidences_that_pass_1_inside_a_cell_are_no_probabilities():
    tally = tally_of(Rows.of([0.2, 0.9, 1.1], [False, True, True]))
    (joined,) = evaluate([tally.joined(ConfidenceGrid((0.5,)))], replicates=20)
    assert joined.joined is not None
    assert not joined.probabilistic


def test_a_ranking_by_one_confidence_has_no_interval_but_the_reason():
    """AUROC .5 (.5 to .5) would be certain of what no answer could tell; the areas vary with the error rate."""
    found = only(table(answers("guide", [0.9] * 50, [True] * 40 + [False] * 10)))
    for name in ("auroc", "ranking_skill"):
        shown = found.to_dict()["measures"][name]
        assert (shown["low"], shown["high"]) == (None, None)
        assert "every answer has the same confidence" in shown["why"]
    assert found.figures["augrc"].low < found.figures["augrc"].value < found.figures["augrc"].high
