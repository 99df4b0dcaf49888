import json
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from demur.core.show import numbers, pictures
from demur.core.show.charts import alt, chart_table, drawn_in, style_of
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns import words
from demur.returns.charts.comparison import comparison_chart
from demur.returns.charts.error_return import (
    bare_curve_chart,
    cost_path_chart,
    difference_chart,
    error_return_chart,
    slices_chart,
)
from demur.returns.charts.readings import (
    BETWEEN,
    det_chart,
    missed_chance_chart,
    reliability_chart,
    risk_coverage_chart,
    roc_chart,
)
from demur.returns.charts.slices import SHAPES, confusion_chart, measure_chart
from demur.returns.classes import Confusion, class_report
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import Crossing, Interval, compare
from demur.returns.curves import curve, error_return
from demur.returns.evaluate import evaluate, returns_measures
from demur.returns.measures import ErrorAtNonreturn
from demur.returns.table import Reading, responses
from demur.returns.threshold import threshold_by_error
from reference.answers import made_up, table

pytestmark = pytest.mark.usefixtures("unchecked")


def title(chart):
    return " ".join(chart.title.text).replace("\N{NO-BREAK SPACE}", " ")


def subtitle(chart):
    return " · ".join(chart.title.subtitle).replace("\N{NO-BREAK SPACE}", " ")


def drawn_rows(spec, column):
    """Rows of all data inside a spec that have the column."""
    return [row for rows in spec["datasets"].values() for row in rows if column in row]


@pytest.fixture(scope="session")
def report():
    actual = ["yes", "yes", "no", "no", "perhaps", "perhaps"]
    return class_report(
        Confusion.of(actual, ["yes", "no", "no", None, "no", "perhaps"]), system="labels", replicates=20
    )


@pytest.fixture(scope="session")
def three(evaluations):
    """The spec of three systems in a plot with nothing else asked for."""
    return pictures.spec_of(error_return_chart(evaluations))


@pytest.fixture(scope="session")
def every_chart(evaluations, comparison, choice, report):
    return {
        "error_return": error_return_chart(evaluations, choices=[choice]),
        "missed_chance": missed_chance_chart(evaluations[0]),
        "risk_coverage": risk_coverage_chart(evaluations),
        "roc": roc_chart(evaluations),
        "det": det_chart(evaluations),
        "difference": difference_chart(comparison.pairs[0]),
        "cost_path": cost_path_chart(choice),
        "reliability": reliability_chart(evaluations),
        "confusion": confusion_chart(report),
        "measure": measure_chart(evaluations, "augrc"),
    }


NAMES = [
    "error_return",
    "missed_chance",
    "risk_coverage",
    "roc",
    "det",
    "difference",
    "cost_path",
    "reliability",
    "confusion",
    "measure",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_a_valid_spec_with_title_sample_size_description_and_table(every_chart, name):
    chart = every_chart[name]
    spec = chart.to_dict(validate=True)
    json.dumps(spec, allow_nan=False)
    assert spec["title"]["text"]
    assert len(spec["description"]) > 40
    assert any(mark in subtitle(chart) for mark in ("n = ", "intervals"))
    assert chart_table(chart).height > 0
    assert spec["config"]["background"] == "white"


def test_a_figure_of_a_result_is_drawn_and_written_without_a_check_of_the_schema(evaluations, monkeypatch):
    checks = []
    with alt.utils.schemapi.debug_mode(True):
        monkeypatch.setattr(alt.SchemaBase, "validate", classmethod(lambda one, *_: checks.append(one.__name__)))
        assert pictures.spec_of(evaluations[0].chart())["layer"]
        assert all("Parameter" in name for name in checks), "but for what the pointer selects"
        alt.Axis(format="%")
        assert checks[-1] == "Axis", "what others draw is checked as before"


def test_a_copy_of_a_figure_can_be_changed_alone(every_chart):
    chart = every_chart["roc"]
    before, other = pictures.spec_of(chart), chart.copy()
    other.layer[0] = other.layer[0].mark_point().encode(y=alt.Y("other:Q"))
    other.title.text = "other"
    assert pictures.spec_of(chart) == before
    assert pictures.spec_of(other.properties(width=10)) != before


def test_points_of_every_curve_are_in_the_spec(evaluations, three):
    rows = drawn_rows(three, "wrong_returned")
    for one in evaluations:
        place = one.curve.nonreturn.size // 2
        wanted = (one.name, one.curve.nonreturn[place], one.curve.error[place])
        assert any((row["system"], row["nonreturn"], row["error"]) == pytest.approx(wanted, abs=1e-6) for row in rows)


def test_a_named_baseline_comes_first_thick_and_black_and_references_are_named_after_it(evaluations):
    chart = error_return_chart(evaluations, baseline="better")
    line = next(layer for layer in pictures.spec_of(chart)["layer"] if "strokeWidth" in layer.get("encoding", {}))
    assert line["encoding"]["color"]["scale"]["domain"][-2:] == [
        "random ranking of better",
        "perfect ranking of better",
    ]
    scales = {channel: line["encoding"][channel]["scale"] for channel in ("color", "strokeWidth", "strokeDash")}
    assert [scale["domain"][0] for scale in scales.values()] == ["better"] * 3
    assert scales["color"]["range"][0] == "#000000"
    assert scales["strokeWidth"]["range"][0] == max(scales["strokeWidth"]["range"])


def test_an_unknown_baseline_is_refused_with_the_nearest_name(evaluations):
    with pytest.raises(UsageError, match=r"beter.*better"):
        error_return_chart(evaluations, baseline="beter")


def test_any_two_of_eight_lines_differ_in_dash_or_width_in_grey_print():
    for one, two in combinations([style_of(place) for place in range(8)], 2):
        assert one.dash != two.dash or abs(one.width - two.width) > 1


def test_bands_are_left_out_for_many_systems_unless_asked_for(evaluations, three, eight):
    assert drawn_rows(three, "low")
    assert not drawn_rows(pictures.spec_of(error_return_chart(eight)), "low")
    assert drawn_rows(pictures.spec_of(error_return_chart(eight, bands="all")), "low")
    assert not drawn_rows(pictures.spec_of(error_return_chart(evaluations, bands="none")), "low")
    with pytest.raises(UsageError, match='got "some"'):
        error_return_chart(evaluations, bands="some")


def test_pointwise_bands_are_narrower_and_named(evaluations):
    whole, single = (error_return_chart(evaluations[:1], bands=kind) for kind in ("all", "pointwise"))
    width = [
        sum(row["high"] - row["low"] for row in drawn_rows(pictures.spec_of(one), "low")) for one in (whole, single)
    ]
    assert width[1] < width[0]
    assert "95 % bands for the whole curve" in subtitle(whole)
    assert "95 % bands at each point" in subtitle(single)


def test_a_curve_that_starts_late_is_drawn_from_there_and_said_so(evaluations):
    shy = evaluations[2]
    chart = error_return_chart([shy])
    starts = min(row["nonreturn"] for row in drawn_rows(pictures.spec_of(chart), "wrong_returned"))
    assert starts == pytest.approx(shy.curve.floor, abs=1e-6)
    assert starts > 0.1
    assert f"shy starts at {100 * shy.curve.floor:.1f} %" in subtitle(chart)


def test_the_critical_region_can_be_moved_or_left_out_and_is_checked(evaluations):
    moved = drawn_rows(pictures.spec_of(error_return_chart(evaluations, region=(0.3, 0.4))), "start")
    assert [(row["start"], row["stop"]) for row in moved] == [(0.3, 0.4)]
    assert not drawn_rows(pictures.spec_of(error_return_chart(evaluations, region=None)), "start")
    with pytest.raises(UsageError, match="from low to high"):
        error_return_chart(evaluations, region=(0.4, 0.3))


def test_an_operating_point_is_marked_with_its_threshold(every_chart, choice):
    chart = every_chart["error_return"]
    (mark,) = drawn_rows(pictures.spec_of(chart), "label_x")
    assert (mark["x"], mark["y"]) == pytest.approx((choice.nonreturn, choice.error), abs=1e-6)
    assert mark["text"] == f"threshold {choice.printed_threshold}"
    assert title(chart) == words.choice_title(choice)
    for told in (choice.printed_threshold, numbers.percent(choice.error), numbers.percent(choice.nonreturn)):
        assert told in chart.description.split("Marked: ")[1]


def test_labels_of_near_points_do_not_overlap(evaluations, choice):
    marks = drawn_rows(pictures.spec_of(error_return_chart(evaluations, choices=[choice] * 4)), "label_x")
    heights = sorted(row["label_y"] for row in marks)
    assert len(set(heights)) == 4


def test_tooltips_tell_threshold_and_counts(evaluations):
    spec = pictures.spec_of(error_return_chart(evaluations[:1]))
    (hover,) = [layer for layer in spec["layer"] if layer.get("name", "").startswith("hover")]
    titles = {tip["title"]: tip["field"] for tip in hover["encoding"]["tooltip"]}
    first, *_, last = spec["datasets"][hover["data"]["name"]]
    assert first[titles["returned if"]].startswith("confidence ≥ ")
    assert last[titles["returned if"]] == "nothing returned"
    assert first[titles["returned"]] == "240 of 240"
    assert first[titles["of these wrong"]] == f"{evaluations[0].curve.error[0] * 240:.0f}"


def test_tooltips_do_not_rest_on_the_nearest_point_which_vega_lite_6_tells_as_undefined(three):
    assert [param["name"] for param in three["params"]] == ["hover"]
    assert "nearest" not in three["params"][0]["select"]


def test_very_many_rows_are_drawn_from_few_points_that_look_the_same():
    rng = np.random.default_rng(0)
    right = rng.random(200_000) < 0.8
    whole = error_return(Sweep.of(rng.normal(1.5 * right), right), name="big")
    table = chart_table(bare_curve_chart(whole))
    assert table.height < 2500
    x, y = table["nonreturn"].to_numpy(), table["error"].to_numpy()
    assert np.abs(np.interp(whole.nonreturn, x, y) - whole.error).max() < 1 / 500


def test_other_readings_of_a_large_sweep_stay_small_too():
    rng = np.random.default_rng(1)
    right = rng.random(50_000) < 0.5
    sweep = Sweep.of(rng.normal(0.5 * right), right)
    for kind in ("missed_chance", "risk_coverage", "roc", "det"):
        assert chart_table(curve(sweep, kind, name="big").chart()).height <= 2500


def test_within_a_heap_of_equal_confidences_the_expected_risk_is_drawn():
    """Four answers at .9, one wrong; then sixteen at .5, eleven wrong: after t of these (1 + t 11/16) / (4 + t)."""
    confidence, right = [0.9] * 4 + [0.5] * 16, [True] * 3 + [False] + [True] * 5 + [False] * 11
    table = chart_table(curve(Sweep.of(confidence, right), "risk_coverage", name="guide").chart())
    coverage, risk = table["coverage"].to_numpy(), table["risk"].to_numpy()
    more = np.maximum(20 * coverage - 4, 0)
    assert risk == pytest.approx((1 + more * 11 / 16) / (4 + more))
    assert (coverage.max(), coverage.min(), table.height) == (1, 0, BETWEEN.size + 1)
    assert table["threshold"].drop_nulls().to_list() == [0.5, 0.9]
    assert (np.diff(coverage) < 0).all()


def test_a_constant_confidence_is_drawn_as_one_risk_at_every_coverage():
    table = chart_table(curve(Sweep.of([0.5] * 5, [True] * 4 + [False]), "risk_coverage").chart())
    assert table["risk"].to_list() == pytest.approx([0.2] * table.height)


def test_without_a_comparison_no_title_names_a_winner(evaluations, three):
    assert " ".join(three["title"]["text"]) == "Error-return curves of 3 systems"
    one = evaluations[0]
    forced, at = (numbers.percent(one.figures[name].value) for name in ("forced_error", "error_at_nonreturn"))
    wanted = f"base: {forced} errors when all is returned, {at} at 20 % non-return"
    assert title(error_return_chart([one])) == wanted


def test_the_title_of_a_comparison_is_its_verdict(comparison):
    assert title(comparison_chart(comparison)) == verdicts.comparison_title(comparison)
    assert title(comparison.chart()) == verdicts.comparison_title(comparison)


def test_a_range_asked_for_is_told_as_a_mean_and_bands_by_their_region(tables):
    measures = returns_measures(at=(0.1, 0.3))
    (one,) = evaluate(responses(tables["base"]), measures=measures, region=(0.1, 0.4), replicates=20)
    chart = error_return_chart([one], region=(0.1, 0.3))
    mean = numbers.percent(float(ErrorAtNonreturn(x=0.1, to=0.3).finish(one.curve.sweep)))
    assert title(chart).endswith(f"a mean of {mean} over 10 % to 30 % non-return")
    assert "95 % bands over 10 % to 40 %" in subtitle(chart)
    assert "shaded strip: critical region, 10 % to 30 %" in subtitle(chart)


def test_only_crossings_between_ranges_shown_for_different_sides_are_marked(comparison):
    pair = comparison.pairs[0]
    at = [Crossing(x, 0.1, x, x) for x in (0.1, 0.4, 0.8)]
    sides = [Interval(0.2, 0.3, "a"), Interval(0.5, 0.6, "b"), Interval(0.9, 1.0, "b")]
    crossed = replace(pair, crossings=tuple(at), intervals=tuple(sides))
    assert verdicts.supported_crossings(crossed) == [at[1]]
    spec = pictures.spec_of(comparison_chart(replace(comparison, pairs=(crossed,))))
    assert [row["crossing"] for row in drawn_rows(spec, "crossing")] == [0.4]


def test_titles_are_not_broken_inside_words(evaluations):
    long = "a-name with words " * 3 + "and at 20 % non-return it-is-told-all-the-same non-return"
    assert title(error_return_chart(evaluations, title=long)) == long


def test_long_names_are_short_in_legends_and_whole_in_the_data(simulated):
    names = [f"a-very-long-name-of-a-family-of-models-{size}-instruct-2024-11-20" for size in ("7b", "70b")]
    several = evaluate(responses([row for name in names for row in simulated(name, n=30)]), replicates=20)
    chart = error_return_chart(several)
    line = next(layer for layer in pictures.spec_of(chart)["layer"] if "strokeWidth" in layer.get("encoding", {}))
    expression = line["encoding"]["color"]["legend"]["labelExpr"]
    labels = re.findall(r'\? ("(?:[^"\\]|\\.)*")', expression)
    assert len(set(labels)) == 2
    assert max(len(json.loads(label)) for label in labels) <= 36
    assert set(chart_table(chart)["system"]) == set(names)


@pytest.mark.parametrize("options", [{"references": False}, {"references": False, "bands": "none"}])
def test_curves_of_several_systems_have_a_legend_whatever_else_is_drawn(evaluations, options):
    assert "role-legend" in pictures.svg(error_return_chart(evaluations, **options))


def test_curves_of_several_systems_have_a_legend_beside_references_and_bands(three):
    assert "role-legend" in pictures.svg_of(three)


def test_many_late_starts_are_said_once_with_intervals_there(simulated):
    rows = [row for name in "abc" for row in simulated(name, n=60, own=0.3)]
    several = evaluate(responses(rows), replicates=20)
    chart = error_return_chart(several)
    assert subtitle(chart).count("start") == 1
    assert "curves start where a system withholds by itself" in subtitle(chart)
    starts = [(row["start_low"], row["start_high"]) for row in drawn_rows(pictures.spec_of(chart), "start_low")]
    forced = [one.figures["forced_error"] for one in several]
    assert np.array(starts) == pytest.approx(np.array([(one.low, one.high) for one in forced]), abs=1e-6)


def test_a_promised_bound_is_drawn_within_the_axis(evaluations, tables):
    rows = Rows.of(
        [row["confidence"] for row in tables["base"]], [row["prediction"] == "yes" for row in tables["base"]]
    )
    kept = threshold_by_error(Sample(rows), 0.9, delta=0.05, name="base")
    chart = error_return_chart(evaluations[:1], choices=[kept])
    spec = pictures.spec_of(chart)
    (promise,) = drawn_rows(spec, "promise")
    assert (promise["error"], promise["promise"]) == (0.9, "promised: 90 %")
    line = next(layer for layer in spec["layer"] if "strokeWidth" in layer.get("encoding", {}))
    assert line["encoding"]["y"]["scale"]["domain"][1] > 0.9
    assert "a thin line marks the promise, an error rate of 90 %" in spec["description"]


@pytest.fixture(scope="session")
def sliced(simulated):
    rows = [{**row, "part": f"part {place % 10}"} for place, row in enumerate(simulated("one", n=400))]
    return evaluate(responses(rows, reading=Reading(keep=("part",))), by="part", replicates=20)


def test_of_many_slices_the_seven_worst_are_drawn_beside_the_whole(sliced):
    chart = slices_chart(sliced, "one")
    drawn = chart_table(chart)["system"].unique(maintain_order=True).to_list()
    heights = {one.name: one.figures["error_at_nonreturn"].value for one in sliced if one.part}
    assert drawn[0] == "one"
    assert len(drawn) == 8
    assert min(heights[name] for name in drawn[1:]) >= max(heights[name] for name in heights.keys() - set(drawn))
    assert "the 7 worst of 10 slices" in subtitle(chart)
    assert {row["system"] for row in drawn_rows(pictures.spec_of(chart), "low")} == {"one"}


def test_few_slices_are_all_drawn(sliced):
    chart = slices_chart(sliced[:4], "one")
    assert chart_table(chart)["system"].n_unique() == 4
    assert "worst" not in subtitle(chart)


def test_roc_and_det_carry_the_caution(every_chart):
    for name in ("roc", "det"):
        assert "Says nothing of the error rate" in subtitle(every_chart[name])


def test_det_axes_are_normal_deviates(every_chart):
    table = chart_table(every_chart["det"]).filter(pl.col("errors_returned").is_between(0.1, 0.9))
    from scipy.stats import norm

    assert norm.cdf(table["errors_returned_deviate"].to_numpy()) == pytest.approx(
        table["errors_returned"].to_numpy(), abs=1e-6
    )


def test_missed_chances_and_errors_meet_where_the_figure_says(evaluations):
    (mark,) = drawn_rows(pictures.spec_of(missed_chance_chart(evaluations[0])), "label_x")
    assert (mark["x"], mark["y"]) == pytest.approx(evaluations[0].curve.even_point(), abs=1e-6)


def test_the_difference_has_its_band_and_tints_what_is_shown(comparison):
    pair = comparison.pairs[0]
    chart = difference_chart(pair)
    spec = pictures.spec_of(chart)
    assert len(drawn_rows(spec, "better")) == len(pair.intervals)
    assert len(drawn_rows(spec, "low_x")) == len(pair.crossings)
    assert chart_table(chart).height == pair.band.x.size


def test_the_cost_path_marks_the_chosen_ratio_and_its_cost(choice):
    chart = cost_path_chart(choice)
    spec = pictures.spec_of(chart)
    marks = [row for row in drawn_rows(spec, "ratio") if row["ratio"] == 0.3 and "cost" in row]
    assert any(row["cost"] == pytest.approx(choice.cost, abs=1e-6) for row in marks)
    table = chart_table(chart)
    assert table["cost"].is_sorted()
    assert table.height == 2 * len(choice.path)


def test_the_reliability_diagram_tells_the_ece_and_weighs_its_bins(evaluations):
    chart = reliability_chart(evaluations[:1])
    assert f"ECE {evaluations[0].figures['ece'].value:.4g}" in subtitle(chart)
    assert chart_table(chart)["share"].sum() == pytest.approx(1)


def confidences(pairs):
    """Evaluation of groups of 100 answers, each with its confidence and its share of right answers."""
    rows = [
        {"id": f"{place}-{k}", "target": "yes", "prediction": "yes" if k < 100 * right else "no", "confidence": sure}
        for place, (sure, right) in enumerate(pairs)
        for k in range(100)
    ]
    return evaluate(responses(rows), replicates=20)


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([(0.5, 0.3), (0.7, 0.5), (0.9, 0.7)], "confidences are on average 20.0 points too high"),
        ([(0.3, 0.5), (0.5, 0.7), (0.7, 0.9)], "confidences are on average 20.0 points too low"),
        (
            [(0.25, 0.1), (0.35, 0.1), (0.65, 0.9), (0.75, 0.9)],
            r"ECE 0.2000, surer than right below .*, less sure above",
        ),
        ([(0.25, 0.4), (0.35, 0.6), (0.65, 0.5), (0.75, 0.5)], r"ECE .*, less sure than right below .*, surer above"),
        ([(0.25, 0.0), (0.95, 1.0), (0.96, 1.0), (0.97, 1.0), (0.98, 1.0), (0.99, 1.0)], r"ECE .*, surer than right"),
        (
            [(0.15, 0.3), (0.35, 0.2), (0.55, 0.7), (0.75, 0.5)],
            r"ECE .*, some confidences are too high, others too low",
        ),
    ],
)
def test_a_side_is_named_only_where_most_of_what_is_off_lies_on_it(pairs, wanted):
    chart = reliability_chart(confidences(pairs))
    assert re.search(wanted, title(chart))
    assert "bars: from the claim (dashed) to what holds" in subtitle(chart)


def test_reliability_without_probabilities_is_refused(simulated):
    rows = [{**row, "confidence": 10 * row["confidence"]} for row in simulated("odds")]
    with pytest.raises(UsageError, match="within \\[0, 1\\]"):
        reliability_chart(evaluate(responses(rows), replicates=20))


def test_a_small_confusion_shows_every_cell_with_the_rejected_last(report):
    chart = confusion_chart(report)
    cells = {(row["actual"], row["predicted"]): row["weight"] for row in chart_table(chart).to_dicts()}
    assert cells[("no", "(rejected)")] == 1
    assert cells[("perhaps", "no")] == 1
    rows = pictures.spec_of(chart)["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert rows == ["no", "perhaps", "yes", "(rejected)"]


def test_a_large_confusion_shows_the_most_confused_labels_and_says_so():
    labels = [f"label {place:03}" for place in range(150)]
    actual = [*labels, *["label 007"] * 9, *["label 100"] * 5]
    predicted = [*labels, *["label 042"] * 9, *["label 149"] * 5]
    chart = confusion_chart(class_report(Confusion.of(actual, predicted), replicates=5), most=4)
    assert set(chart_table(chart)["actual"]) == {"label 007", "label 042", "label 100", "label 149"}
    assert chart.to_dict(validate=True)["title"]["subtitle"], "the spec is valid"
    assert "the 4 most confused of 150 labels" in subtitle(chart)
    assert "label 007 is most often taken for label 042 (9 times)" in title(chart)


def test_columns_of_a_cut_confusion_still_sum_to_one():
    actual = ["a"] * 10 + ["b"] * 4 + ["c"] * 4
    predicted = ["b"] * 6 + ["c"] * 2 + ["a", None] + ["b"] * 4 + ["c"] * 4
    table = chart_table(confusion_chart(class_report(Confusion.of(actual, predicted), replicates=5), most=2))
    assert table.group_by("actual").agg(pl.col("share").sum())["share"].to_list() == pytest.approx([1, 1])
    assert set(table["predicted"]) == {"a", "b", "(any other label)", "(rejected)"}


def test_slices_get_a_row_each_with_their_interval(simulated):
    sliced = evaluate(responses(simulated("one"), reading=Reading(keep=("part",))), by="part", replicates=20)
    chart = measure_chart(sliced, "error_at_nonreturn")
    table = chart_table(chart)
    assert table["row"].to_list() == ["all", "part=even", "part=odd"]
    assert (table["low"] <= table["value"]).all()
    assert chart.to_dict(validate=True)["title"]["subtitle"], "the spec is valid"
    assert "dashed line: all rows" in subtitle(chart)
    with pytest.raises(UsageError, match=r"augcr.*augrc"):
        measure_chart(sliced, "augcr")


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_a_system_always_right_or_always_wrong_can_be_drawn(simulated, accuracy):
    one = evaluate(responses(simulated("flat", n=20, accuracy=accuracy)), replicates=20)
    for draw in (error_return_chart, risk_coverage_chart, roc_chart, det_chart, reliability_chart):
        chart = draw(one)
        json.dumps(pictures.spec_of(chart), allow_nan=False)
        if draw is roc_chart:
            assert "undefined, since all answers are right or all are wrong: flat" in subtitle(chart)
    pictures.spec_of(missed_chance_chart(one[0]))


def test_a_system_that_withholds_everything_can_be_drawn(simulated):
    one = evaluate(responses(simulated("silent", n=20, own=1.0)), replicates=20)
    for draw in (error_return_chart, risk_coverage_chart, roc_chart, det_chart):
        json.dumps(pictures.spec_of(draw(one)), allow_nan=False)


def test_infinite_confidences_can_be_drawn():
    whole = error_return(Sweep.of([-np.inf, 0.0, np.inf], [False, True, True]), name="ends")
    json.dumps(pictures.spec_of(whole.chart()), allow_nan=False)


def test_a_figure_of_nothing_is_refused():
    with pytest.raises(UsageError, match="at least one evaluation"):
        error_return_chart([])


def test_charts_of_other_makes_have_no_table():
    import altair as alt

    with pytest.raises(UsageError, match="no table of its own"):
        chart_table(alt.Chart().mark_point())


def legend_place(chart):
    return next(
        one["encoding"]["color"]["legend"]["orient"]
        for one in pictures.spec_of(chart)["layer"]
        if (one.get("encoding", {}).get("color", {}).get("legend") or {}).get("symbolType") == "stroke"
    )


@pytest.mark.parametrize("draw", [risk_coverage_chart, det_chart, reliability_chart])
def test_a_legend_hides_no_curve(draw, eight):
    assert legend_place(draw([replace(one, system=f"{one.system} {'x' * 40}") for one in eight])) == "right"


def test_a_legend_of_few_stays_in_the_corner_that_is_free(evaluations):
    assert legend_place(roc_chart(evaluations[:2])) == "bottom-right"


def test_a_title_says_over_what_no_difference_was_found():
    pair = compare(table(*(made_up(name, 60, seed=1) for name in "ab")), replicates=50).pairs[0]
    tinted = replace(pair, intervals=(Interval(0.0, 0.12, "a"),))
    assert title(difference_chart(tinted)) == "No significant difference between a and b overall"
    region = replace(tinted, whole=pair.overall)
    assert title(difference_chart(region)) == "No significant difference between a and b over 0 % to 100 % non-return"


def test_stretches_side_by_side_are_named_once(comparison):
    pair = replace(comparison.pairs[0], intervals=(Interval(0.1, 0.21, "a"), Interval(0.22, 0.34, "a")))
    names = drawn_rows(pictures.spec_of(difference_chart(pair)), "text")
    assert [round(one["nonreturn"], 3) for one in names if one["text"].endswith(" better")] == [0.28]


def test_a_long_name_is_cut_in_a_title_not_broken(evaluations):
    name = "a-model-with-a-very-long-name-and-a-date-2024-07-18-and-a-temperature-0.7-v2"
    said = title(missed_chance_chart(replace(evaluations[0], system=name)))
    assert "a-model-with-a-very…" in said
    assert "temperature-0.7-v2:" in said


@pytest.mark.parametrize(("bound", "side"), [(0.05, "right"), (0.6, "left")])
def test_a_promise_is_named_where_no_curve_runs(evaluations, bound, side):
    spec = pictures.spec_of(error_return_chart(evaluations, limits=(bound,)))
    (layer,) = [one for one in spec["layer"] if one.get("encoding", {}).get("text", {}).get("field") == "promise"]
    assert layer["mark"]["align"] == side


def test_labels_that_begin_alike_are_told_apart_and_a_narrow_figure_has_fewer():
    labels = [f"request_the_opening_hours_of_museum_number_{place}" for place in range(18)]
    report = class_report(Confusion.of(labels * 2, labels + labels[::-1]), system="labels", replicates=20)
    for width, most in ((560, 18), (276, 12)):
        with drawn_in(width):
            spec = pictures.spec_of(confusion_chart(report))
        shown = {row["actual"] for row in drawn_rows(spec, "actual")}
        assert len(shown) == most
        for channel in "xy":
            text = spec["layer"][0]["encoding"][channel]["axis"]["labelExpr"]
            short = dict(re.findall(r'datum\.label === "([^"]+)" \? "([^"]+)"', text))
            assert set(short) >= shown
            assert len(set(short.values())) == len(short)
            assert max(len(one.replace("\\u2026", "…")) for one in short.values()) <= 20


def test_no_marker_of_a_system_is_hidden_by_the_line_of_its_interval():
    assert "stroke" not in SHAPES  # a level line, as the interval is
    assert len(set(SHAPES)) == len(SHAPES) == 8


@pytest.mark.parametrize("draw", [roc_chart, det_chart])
def test_figures_that_leave_out_the_error_rate_give_it_below_the_title(draw, evaluations, eight):
    two = evaluations[:2]
    rates = ", ".join(f"{one.name} {numbers.percent(float(one.curve.error[0]))}" for one in two)
    found = {len(some): subtitle(draw(some)).replace(" · ", " ") for some in (two, eight)}
    assert f"Error rate when all is returned: {rates}." in found[2]
    assert "Error rate when all is returned: from " in found[8]
