import json
import math

import numpy as np
import polars as pl
import pytest

from demur.core.show import pictures
from demur.core.show.charts import chart_table, legend_corner
from demur.core.show.smooth_chart import smooth_chart
from demur.core.stats.smoothing import smooth
from demur.errors import UsageError
from demur.nbest_lists.charts import paired_chart, parts_chart, scorer_chart, sweep_chart

pytestmark = pytest.mark.usefixtures("unchecked")
LONG = "a system with a name that is much too long for any legend, of the second trial"


def title(chart):
    return " ".join(chart.title.text).replace("\N{NO-BREAK SPACE}", " ")


def subtitle(chart):
    return " · ".join(chart.title.subtitle).replace("\N{NO-BREAK SPACE}", " ")


def sweep_rows(conditions=("WER 11 %", "WER 26 %"), sign=1):
    rows = [
        (name, kept, sign * (1 + place + 1 / kept), sign * (0.9 + place + 1 / kept), sign * (1.1 + place + 1 / kept))
        for place, name in enumerate(conditions)
        for kept in (1, 2, 5, 100)
    ]
    return pl.DataFrame(rows, schema=["condition", "kept", "value", "low", "high"], orient="row")


def parts_rows(*systems):
    names = ["system", "missing", "uncertainty", "miscalibration", "discrimination", "low", "high"]
    return pl.DataFrame(systems, schema=names, orient="row")


INFEV = ("InfEv", 0.3, 0.6, 0.1, 0.4, 0.5, 0.7)
CONST = ("Const", 0.3, 0.6, 0.2, 0.1, 0.9, 1.1)


def scorer_rows(scorers=("Const", "InfEv")):
    rows = [
        (scorer, measure, value - place * step, value - place * step - 0.01, value - place * step + 0.01, better)
        for measure, value, step, better in (("WSER", 0.22, 0.03, "lower"), ("NCE", 0.1, -0.1, "higher"))
        for place, scorer in enumerate(scorers)
    ]
    return pl.DataFrame(rows, schema=["scorer", "measure", "value", "low", "high", "better"], orient="row")


def paired_rows():
    rows = [
        ("ICE", -0.2, -0.3, -0.1, "lower"),
        ("NCE", -0.1, -0.2, -0.05, "higher"),
        ("WSER", -0.01, -0.03, 0.02, "lower"),
        ("ACE", None, None, None, "lower"),
    ]
    return pl.DataFrame(rows, schema=["measure", "difference", "low", "high", "better"], orient="row")


def curve(name="MDP", *, lift=0.0, slope=-2.0, n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(n) * 3
    return smooth(x, lift + slope * x + rng.normal(0, 0.5, n), name=name, points=30)


CHARTS = {
    "one curve": lambda: smooth_chart([curve()], x_title="ICE", y_title="reward"),
    "curves": lambda: smooth_chart([curve(), curve("POMDP", lift=9, seed=1), curve(LONG, seed=2)]),
    "odd curves": lambda: smooth_chart([smooth([1], [2], name="a"), smooth([1, 1], [2, 3], name="b")]),
    "sweep": lambda: sweep_chart(sweep_rows(), condition_title="noise"),
    "falling sweep": lambda: sweep_chart(sweep_rows([LONG, "b", "c", "d"], sign=-1), measure_title="NCE"),
    "sweep of one": lambda: sweep_chart(sweep_rows(["all"])[:1]),
    "parts": lambda: parts_chart(parts_rows(INFEV, CONST)),
    "parts without intervals": lambda: parts_chart(parts_rows(INFEV).drop("low", "high")),
    "scorers": lambda: scorer_chart(scorer_rows(["Const", "InfEv", LONG])),
    "one scorer": lambda: scorer_chart(scorer_rows(["Const"]).with_columns(percent=pl.col("measure") == "WSER")),
    "paired": lambda: paired_chart(paired_rows(), a="InfEv", b=LONG),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_figure_is_a_valid_spec_with_title_words_and_table_and_can_be_rendered(name):
    chart = CHARTS[name]()
    spec = chart.to_dict()
    json.dumps(spec, allow_nan=False)
    assert spec["title"]["text"]
    assert spec["title"]["subtitle"]
    assert len(spec["description"]) > 30
    assert chart_table(chart).height > 0
    assert pictures.svg_of(spec).startswith("<svg")


def test_a_falling_curve_says_so():
    chart = smooth_chart([curve()], x_title="ICE", y_title="reward")
    assert title(chart).startswith("Reward falls from ")
    assert title(chart).endswith(" as ICE rises")
    assert "n = 60" in subtitle(chart)


def test_a_flat_curve_claims_no_trend():
    assert title(smooth_chart([smooth([1, 2, 3, 4], [1, 2, 2, 1])])) == "Y shows no clear change with x"


def test_the_higher_of_two_curves_is_named():
    chart = smooth_chart([curve("MDP"), curve("POMDP", lift=9, seed=1)], y_title="reward")
    assert title(chart) == "Reward is clearly highest for POMDP throughout"


def test_two_curves_of_the_same_truth_are_not_told_apart():
    chart = smooth_chart([curve("one"), curve("two")], y_title="reward")
    assert title(chart) == "Reward against x: no group stands clear of the others"


def test_curves_over_ranges_of_their_own_are_not_compared():
    apart = [smooth([0, 1, 2], [1, 2, 1], name="a"), smooth([5, 6, 7], [1, 2, 1], name="b")]
    assert title(smooth_chart(apart)).endswith("the groups share no range")


def test_the_table_of_curves_holds_mean_and_band():
    one = curve()
    table = chart_table(smooth_chart([one]))
    assert table.columns == ["group", "x", "mean", "error", "low", "high"]
    assert table["mean"].to_numpy() == pytest.approx(one.mean, abs=1e-6)


def test_points_far_out_do_not_stretch_the_axis_and_are_counted():
    x = np.linspace(0, 1, 100)
    y = np.where(np.arange(100) == 50, 1000.0, x)
    chart = smooth_chart([smooth(x, y, name="a")])
    assert "1 point lies beyond the axis" in subtitle(chart)


def test_figures_of_curves_refuse_none_and_twins():
    with pytest.raises(UsageError, match="at least one curve"):
        smooth_chart([])
    with pytest.raises(UsageError, match='"MDP" is there twice'):
        smooth_chart([curve(), curve()])


def test_a_sweep_says_how_the_measure_moves():
    assert title(sweep_chart(sweep_rows(["all"]))) == "ICE falls from 2 with 1 hypothesis to 1.01 with 100"
    assert title(sweep_chart(sweep_rows())) == "ICE falls as more hypotheses are kept, in both conditions"
    rows = pl.concat([sweep_rows(["a"]), sweep_rows(["b"], sign=-1)])
    assert title(sweep_chart(rows)) == "As more hypotheses are kept, ICE falls in 1 of 2 conditions"


def test_a_sweep_has_a_tick_at_every_number_that_was_tried():
    spec = pictures.spec_of(sweep_chart(sweep_rows()))
    axis = next(layer["encoding"]["x"] for layer in spec["layer"] if "axis" in layer["encoding"]["x"])
    assert axis["axis"]["values"] == [1, 2, 5, 100]
    assert axis["scale"]["type"] == "log"


def test_a_sweep_refuses_to_keep_nothing():
    with pytest.raises(UsageError, match="starts at 1; got 0"):
        sweep_chart(sweep_rows().with_columns(kept=pl.col("kept") - 1))


def test_the_parts_of_a_waterfall_end_where_the_next_begin_and_the_last_at_ice():
    table = chart_table(parts_chart(parts_rows(INFEV)))
    assert table["part"].to_list() == ["missing", "uncertainty", "miscalibration", "discrimination", "ICE"]
    assert table["start"].to_list() == pytest.approx([0.0, 0.3, 0.9, 1.0, 0.0])
    assert table["stop"].to_list() == pytest.approx([0.3, 0.9, 1.0, 0.6, 0.6])
    assert table["text"][-1] == "= ICE 0.600"


@pytest.mark.parametrize("spans", [True, False])
def test_every_part_is_drawn_with_its_name(spans):
    rows = parts_rows(INFEV, CONST)
    picture = pictures.svg(parts_chart(rows if spans else rows.drop("low", "high")))
    for told in ("missing 0.300", "+ uncertainty 0.600", "− discrimination 0.400", "= ICE 0.600", "= ICE 1.000"):
        assert told in picture


def test_the_title_of_parts_says_what_recalibration_would_win():
    assert title(parts_chart(parts_rows(INFEV))).endswith("recalibration alone would win back 17 %")
    assert title(parts_chart(parts_rows(INFEV, CONST))).startswith("InfEv has the lowest ICE, 0.600")


def test_undefined_parts_are_named_so():
    nothing = parts_rows(("none", *[math.nan] * 6))
    assert title(parts_chart(nothing)) == "ICE is undefined"
    assert "undefined" in pictures.svg(parts_chart(nothing))


def test_every_panel_of_scorers_says_which_way_is_better_and_which_is_best():
    chart = scorer_chart(scorer_rows())
    table = chart_table(chart)
    assert table["panel"].unique(maintain_order=True).to_list() == [
        "WSER (lower is better)",
        "NCE (higher is better)",
    ]
    assert table.filter("best")["scorer"].to_list() == ["InfEv", "InfEv"]
    assert title(chart) == "InfEv alone has the best value on all of 2 measures"


def test_rates_of_scorers_are_shown_in_percent_where_asked_for():
    chart = scorer_chart(scorer_rows().with_columns(percent=pl.col("measure") == "WSER"))
    table = chart_table(chart)
    assert table["measure"].to_list() == ["WSER, %", "WSER, %", "NCE", "NCE"]
    assert table["value"].to_list() == pytest.approx([22.0, 19.0, 0.1, 0.2])
    assert table["shown"].to_list() == ["22.0", "19.0", "0.100", "0.200"]


def test_an_undefined_value_is_never_best():
    table = chart_table(scorer_chart(scorer_rows().with_columns(value=pl.lit(math.nan))))
    assert not table["best"].any()


def test_pairs_are_turned_so_that_right_is_better_for_the_first():
    chart = paired_chart(paired_rows(), a="InfEv", b="Const")
    table = chart_table(chart)
    assert table["at"].to_list() == pytest.approx([2 / 3, -0.5, 1 / 3, None])
    assert table["shown"].to_list() == [True, True, False, False]
    assert table["text"].to_list() == [
        "−0.2 (−0.3 to −0.1)",
        "−0.1 (−0.2 to −0.05)",
        "−0.01 (−0.03 to +0.02)",
        "undefined",
    ]
    assert title(chart) == "InfEv is better than Const on 1 and worse on 1 of 4 measures"


def test_pairs_that_differ_one_way_or_not_at_all_are_titled_so():
    assert title(paired_chart(paired_rows()[:1], a="x", b="y")) == "x is better than y on 1 of 1 measures"
    assert title(paired_chart(paired_rows()[1:2], a="x", b="y")) == "y is better than x on 1 of 1 measures"
    assert title(paired_chart(paired_rows()[2:], a="x", b="y")) == "No difference shown between x and y"


def test_tables_that_cannot_be_drawn_are_refused():
    with pytest.raises(UsageError, match='needs a column "kept"'):
        sweep_chart(sweep_rows().drop("kept"))
    with pytest.raises(UsageError, match="at least one row"):
        parts_chart(parts_rows(INFEV)[:0])
    with pytest.raises(UsageError, match='"InfEv" is there twice'):
        parts_chart(parts_rows(INFEV, INFEV))
    with pytest.raises(UsageError, match='better is "lower" or "higher"; got "more"'):
        paired_chart(paired_rows().with_columns(better=pl.lit("more")), a="x", b="y")


def test_room_is_made_for_a_legend_where_lines_leave_none():
    x = np.linspace(0, 1, 20)
    corner, (low, high) = legend_corner(x, np.zeros(20), np.ones(20), (0.0, 1.0), rows=4)
    assert corner == "top-right"
    assert low == 0.0
    assert (high - 1) / (high - low) == pytest.approx((26 + 4 * 21) / 340)
