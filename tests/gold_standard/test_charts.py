import json
import math
import re
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.show import pictures
from demur.core.show.charts import HEIGHT, WIDTH, chart_table
from demur.core.show.presentation import drawing
from demur.errors import UsageError
from demur.gold_standard.charts.benchmark import GOLDS, benchmark_chart
from demur.gold_standard.charts.checks import (
    convergence_chart,
    cost_chart,
    gold_residual_chart,
    plan_chart,
    wizards_chart,
)
from demur.gold_standard.charts.impurity import _placed, components_chart, domains_chart, impurity_chart

pytestmark = pytest.mark.usefixtures("unchecked")
LONG = "a system with a name that is much too long for any legend, of the second trial"
STRANGE = ['<b>A</b> & "B"', "owl 🦉", LONG, LONG + "!", "\\ ' {}"]
X = np.linspace(0.0, 1.0, 41)
EMPTY = pl.DataFrame()


def gold(x):
    """Flat at first, about .65 at .8 and .15 at 1, as in the paper."""
    return 0.02 + 0.96 / (1 + np.exp((x - 0.85) / 0.075))


def linear(x):
    return 0.95 - 0.9 * x


def bent(x):
    return 0.82 - 0.78 * x**2.2


def proud(x):
    return 0.6 - 0.1 * x


SYSTEMS = {"A": linear, "B": bent}


def curve_rows(systems=SYSTEMS, scale=1.0, x=X):
    parts = []
    for name, curve in {"wizards": gold, **systems}.items():
        role = "gold" if name == "wizards" else "system"
        y = curve(x)
        parts.append(
            pl.DataFrame({"x": scale * x, "y": y, "low": y - 0.04, "high": y + 0.04}).select(
                pl.lit(name).alias("performer"), pl.lit(role).alias("role"), pl.all()
            )
        )
    return pl.concat(parts)


def point_rows(systems=SYSTEMS, scale=1.0):
    return curve_rows(systems, scale, X[2::4]).select("performer", "role", "x", "y", n=pl.lit(20))


def impurity_rows(systems=SYSTEMS, scale=1.0, x=X):
    parts = []
    for name, curve in systems.items():
        apart = gold(x) - curve(x)
        columns = {"x": scale * x, "impurity": abs(apart), "low": abs(apart) - 0.03, "high": abs(apart) + 0.03}
        parts.append(pl.DataFrame({**columns, "signed": apart}).select(pl.lit(name).alias("system"), pl.all()))
    return pl.concat(parts)


def range_rows(*rows):
    schema = {"from": pl.Float64, "to": pl.Float64, "nearer": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


RANGES = range_rows((0.0, 0.35, "A"), (0.35, 0.40, "undecided"), (0.40, 1.0, "B"))
FIVE = dict(zip(STRANGE, (linear, bent, proud, np.cos, lambda x: 0.5 + 0 * x), strict=True))
COST = pl.DataFrame(
    {"performance": [0.0, 0.5, 0.7, 0.9, 1.0], "amount": [0.0, 900.0, 10000.0, 35000.0, 60000.0], "kind": ["point"] * 5}
)
MARKS = pl.DataFrame({"system": ["A", LONG], "from": [0.7, 0.65], "to": [0.8, 0.7]})
EFFECTS = pl.DataFrame(
    [
        ("repair", -0.12, -0.18, -0.05, "main"),
        ("confirmation", -0.02, -0.07, 0.03, "main"),
        ("repair x confirmation", 0.04, 0.01, 0.08, "interaction"),
        ("without repair", 0.1, 0.04, 0.16, "lesion"),
    ],
    schema=["effect", "value", "low", "high", "kind"],
    orient="row",
)
DOMAINS = pl.DataFrame(
    [
        ("flights", "A", 0.14, 0.11, 0.18, 0.32, 0.27, 0.38),
        ("flights", "B", 0.14, 0.11, 0.18, 0.22, 0.17, 0.28),
        ("tutoring", LONG, 0.41, 0.34, 0.47, 0.55, 0.44, 0.67),
    ],
    schema=["study", "system", "complexity", "complexity_low", "complexity_high", "relative_mass", "low", "high"],
    orient="row",
)


def residual_rows(names=("wizards", "A"), off=()):
    rows = []
    for name in names:
        for place in range(8):
            value = 0.1 if (name, place) in off else 0.01 * (-1) ** place
            rows.append((name, place / 8, value, value - 0.04, value + 0.04, 25))
    return pl.DataFrame(rows, schema=["performer", "x", "residual", "low", "high", "n"], orient="row")


def step_rows(last=0.004, most=16):
    rows = []
    for name, role in (("wizards", "gold"), ("A", "system")):
        for subjects in range(2, most + 1):
            step = None if subjects == 2 else last if subjects == most else 0.2 / subjects
            rows.append((name, role, subjects, 0.3 + 0.1 / subjects, step))
    return pl.DataFrame(rows, schema=["performer", "role", "subjects", "to_data", "to_previous"], orient="row")


def wizard_rows(number=6, apart=()):
    parts = [
        pl.DataFrame({"x": X, "y": gold(X + 0.01 * place - (0.3 if place in apart else 0))}).select(
            pl.lit(f"w{place}").alias("subject"), pl.all(), apart=pl.lit(place in apart)
        )
        for place in range(number)
    ]
    return pl.concat(parts)


POOLED = curve_rows({}).select("x", "y", "low", "high")


def plan_rows():
    rows = [
        (subjects, trials, 0.3 / math.sqrt(subjects) * (1 + 2 / math.sqrt(trials)) / 2, 1 - math.exp(-subjects / 20))
        for subjects in (8, 16, 32, 64)
        for trials in (5, 20)
    ]
    return pl.DataFrame(rows, schema=["subjects", "trials", "half_width", "power"], orient="row")


SHARES = {"percent": True, "x_percent": True}
WER = {"x": "wer", "y": "completed", **SHARES}
SIZE = {"x": "task size", "y": "completed", "percent": True}

DRAW = {
    "benchmark": lambda: benchmark_chart(curve_rows(), point_rows(), upper=1.0, **WER),
    "benchmark, five": lambda: benchmark_chart(curve_rows(FIVE, 40), point_rows(FIVE, 40), upper=1.0, **SIZE),
    "benchmark, gold alone": lambda: benchmark_chart(curve_rows({}), EMPTY, **WER),
    "benchmark, no gold": lambda: benchmark_chart(
        curve_rows().filter(pl.col("role") == "system"), EMPTY, x="wer", y="rating"
    ),
    "benchmark, one x": lambda: benchmark_chart(curve_rows(x=X[:1]), EMPTY, upper=1.0, **WER),
    "benchmark, no bands": lambda: benchmark_chart(
        curve_rows().with_columns(low=None, high=None), point_rows(), x="a.b[c]: d", y="e.f['g']", upper=1.0
    ),
    "impurity": lambda: impurity_chart(impurity_rows(), RANGES, **WER),
    "impurity, one": lambda: impurity_chart(impurity_rows({"A": linear}), EMPTY, **WER),
    "impurity, five": lambda: impurity_chart(
        impurity_rows(FIVE, 40), range_rows((0, 9, STRANGE[0]), (9, 9, STRANGE[1]), (9, 40, LONG)), **SIZE
    ),
    "impurity, above gold": lambda: impurity_chart(impurity_rows({"A": linear, "C": proud}), RANGES, **WER),
    "impurity, one x": lambda: impurity_chart(impurity_rows(x=X[:1]), range_rows((0.0, 0.0, "B")), **WER),
    "impurity, undefined": lambda: impurity_chart(
        impurity_rows().with_columns(impurity=None, low=None, high=None, signed=None), EMPTY, **WER
    ),
    "cost": lambda: cost_chart(COST, y="completed", percent=True, marks=MARKS, amount="US dollars"),
    "cost, expression": lambda: cost_chart(COST.with_columns(kind=pl.lit("line")), y="completed"),
    "cost, one point": lambda: cost_chart(COST[:1], y="completed", marks=MARKS[:0]),
    "residuals": lambda: gold_residual_chart(residual_rows(off=[("A", 3)]), x="wer", **SHARES),
    "residuals, five": lambda: gold_residual_chart(residual_rows(STRANGE), x="size"),
    "residuals, no intervals": lambda: gold_residual_chart(residual_rows().with_columns(low=None, high=None), x="wer"),
    "convergence": lambda: convergence_chart(step_rows(), percent=True, tolerance=0.01),
    "convergence, no roles": lambda: convergence_chart(step_rows().drop("role")),
    "convergence, two subjects": lambda: convergence_chart(step_rows(most=2), tolerance=0.01),
    "wizards": lambda: wizards_chart(wizard_rows(apart=(2, 4)), POOLED, upper=1.0, **WER),
    "wizards, one": lambda: wizards_chart(wizard_rows(1), POOLED, **WER),
    "wizards, all apart": lambda: wizards_chart(wizard_rows(9, apart=range(9)), POOLED, upper=1.0, **WER),
    "components": lambda: components_chart(EFFECTS),
    "components, one": lambda: components_chart(EFFECTS[:1].with_columns(low=None, high=None, effect=pl.lit(LONG))),
    "components, undefined": lambda: components_chart(EFFECTS.with_columns(value=None, low=None, high=None)),
    "domains": lambda: domains_chart(DOMAINS),
    "domains, one": lambda: domains_chart(DOMAINS[:1].with_columns(low=None, high=None)),
    "domains, undefined": lambda: domains_chart(DOMAINS.with_columns(relative_mass=None, low=None, high=None)),
    "plan": lambda: plan_chart(plan_rows(), target=0.03, percent=True),
    "plan, no power": lambda: plan_chart(plan_rows().with_columns(power=None), target=0.05),
    "plan, one": lambda: plan_chart(plan_rows()[:1].drop("power"), target=0.05),
}
CHARTS = {name: cache(draw) for name, draw in DRAW.items()}
"""Each figure, drawn once for all tests."""
MADE = {}


def once(chart, kind, make):
    """What `make` gives for a figure, which is kept, so that no other one gets its id."""
    if (id(chart), kind) not in MADE:
        MADE[id(chart), kind] = (make(), chart)
    return MADE[id(chart), kind][0]


def spec_of(chart):
    return once(chart, "spec", lambda: pictures.spec_of(chart))


def picture_of(chart):
    return once(chart, "picture", lambda: pictures.svg_of(spec_of(chart)))


def title(chart):
    return " ".join(spec_of(chart)["title"]["text"]).replace("\N{NO-BREAK SPACE}", " ")


def subtitle(chart):
    return " · ".join(spec_of(chart)["title"]["subtitle"]).replace("\N{NO-BREAK SPACE}", " ")


def description(chart):
    return spec_of(chart)["description"]


def written(chart):
    """All text in the picture."""
    nodes = ElementTree.fromstring(picture_of(chart)).iter()
    return ["".join(node.itertext()) for node in nodes if node.tag.endswith("text")]


def spots(node, across=0.0, up=0.0):
    """Where in the picture marks and words begin."""
    moved = re.match(r"translate\(([-\d.e]+),([-\d.e]+)\)", node.get("transform", ""))
    if moved:
        across, up = across + float(moved[1]), up + float(moved[2])
    if node.tag.endswith("text") or (node.tag.endswith("path") and moved):
        yield across, up
    for part in node:
        yield from spots(part, across, up)


def found(spec, key):
    """Values of a key, wherever in a spec they are."""
    if isinstance(spec, dict):
        if key in spec:
            yield spec[key]
        for part in spec.values():
            yield from found(part, key)
    elif isinstance(spec, list):
        for part in spec:
            yield from found(part, key)


def marks(chart, kind):
    """The layers of one kind of mark."""
    return [layer for group in found(spec_of(chart), "layer") for layer in group if layer["mark"]["type"] == kind]


def values(spec, layer):
    """The rows behind a layer."""
    return spec["datasets"][layer["data"]["name"]] if "name" in layer["data"] else layer["data"]["values"]


@pytest.mark.parametrize("name", CHARTS)
def test_every_figure_is_a_spec_with_title_words_table_and_the_same_each_time(name):
    chart = CHARTS[name]()
    spec = spec_of(chart)
    json.dumps(spec, allow_nan=False)
    assert spec["title"]["text"]
    assert spec["title"]["subtitle"]
    assert len(spec["description"]) > 30
    assert "nan" not in spec["description"]
    assert chart_table(chart).height > 0
    assert pictures.spec_of(DRAW[name]()) == spec


@pytest.mark.parametrize("name", [name for name in CHARTS if "," not in name])
def test_every_kind_of_figure_is_as_the_schema_wants_it(name):
    CHARTS[name]().to_dict(validate=True)


@pytest.mark.parametrize("name", CHARTS)
def test_every_mark_and_word_of_a_figure_lies_in_the_picture(name):
    picture = ElementTree.fromstring(picture_of(CHARTS[name]()))
    width, height = float(picture.get("width")), float(picture.get("height"))
    places = list(spots(picture))
    assert len(places) > 5
    assert all(-1 <= across <= width and -1 <= up <= height for across, up in places)
    assert width < 900


@pytest.mark.parametrize(
    ("rows", "draw", "column"),
    [
        (curve_rows(), lambda rows: benchmark_chart(rows, EMPTY, **WER), "role"),
        (impurity_rows(), lambda rows: impurity_chart(rows, RANGES, **WER), "signed"),
        (residual_rows(), lambda rows: gold_residual_chart(rows, x="wer"), "n"),
        (step_rows(), convergence_chart, "to_data"),
        (wizard_rows(), lambda rows: wizards_chart(rows, POOLED, **WER), "apart"),
        (EFFECTS, components_chart, "kind"),
        (DOMAINS, domains_chart, "relative_mass"),
        (plan_rows(), lambda rows: plan_chart(rows, target=0.05), "half_width"),
    ],
)
def test_tables_that_lack_a_column_or_rows_or_say_a_thing_twice_are_refused(rows, draw, column):
    with pytest.raises(UsageError, match=f'needs a column "{column}"'):
        draw(rows.drop(column))
    with pytest.raises(UsageError, match="at least one row"):
        draw(rows[:0])
    with pytest.raises(UsageError, match="is there twice"):
        draw(pl.concat([rows, rows]))


def test_words_that_name_no_role_and_no_kind_are_refused():
    with pytest.raises(UsageError, match='role is "gold" or "system"; got "wizard"'):
        benchmark_chart(curve_rows().with_columns(role=pl.lit("wizard")), EMPTY, **WER)
    with pytest.raises(UsageError, match="kind is one of main, interaction, lesion"):
        components_chart(EFFECTS.with_columns(kind=pl.lit("other")))
    with pytest.raises(UsageError, match='kind is "point" or "line"; got "dot"'):
        cost_chart(COST.with_columns(kind=pl.lit("dot")), y="completed")


def test_a_figure_is_found_by_its_path():
    drawn = drawing("gold_standard.charts.impurity.impurity_chart", impurity_rows(), RANGES, **WER)()
    assert pictures.spec_of(drawn) == spec_of(CHARTS["impurity"]())


def test_a_benchmark_without_a_claim_says_what_it_shows():
    assert title(CHARTS["benchmark"]()) == "Completed against wer"


def test_a_benchmark_of_many_systems_shades_the_gold_standard_alone():
    chart = CHARTS["benchmark, five"]()
    (area,) = marks(chart, "area")
    rows = pictures.spec_of(chart)["datasets"][area["data"]["name"]]
    assert {row["role"] for row in rows if row["low"] is not None} == {"gold"}
    assert "shaded: 95 % intervals of the gold standard" in subtitle(chart)
    assert "shaded: 95 % intervals · " in subtitle(CHARTS["benchmark"]())


def test_the_upper_bound_is_a_labelled_line_and_absent_where_there_is_none():
    assert "upper bound, 100 %" in written(CHARTS["benchmark"]())
    assert "upper bound is 100 %" in description(CHARTS["benchmark"]())
    rated = benchmark_chart(
        curve_rows().with_columns(pl.col("y", "low", "high") * 7), EMPTY, x="wer", y="rating", upper=7
    )
    assert "upper bound, 7" in written(rated)
    assert not [text for text in written(CHARTS["benchmark, gold alone"]()) if "bound" in text]


def test_the_legend_leaves_the_label_of_the_upper_bound_free():
    (line,) = marks(CHARTS["benchmark, one x"](), "line")
    assert line["encoding"]["color"]["legend"]["orient"].startswith("bottom")


def test_shares_stand_on_axes_of_percent_and_other_numbers_on_plain_ones():
    shares = written(CHARTS["benchmark"]())
    assert shares.count("40 %") == 2
    mixed = written(CHARTS["benchmark, five"]())
    assert mixed.count("40 %") == 1
    assert "40" in mixed
    large = benchmark_chart(curve_rows(scale=4000), EMPTY, x="milliseconds", y="completed")
    assert "3,000" in written(large)


def test_gold_has_the_thickest_line_of_its_own_and_every_line_its_own_dash_or_width():
    (line,) = marks(CHARTS["benchmark, five"](), "line")
    scales = [line["encoding"][channel]["scale"] for channel in ("color", "strokeDash", "strokeWidth")]
    assert scales[0]["domain"] == ["wizards", *STRANGE]
    assert scales[0]["range"][0] == GOLDS[0].colour
    assert max(scales[2]["range"]) == scales[2]["range"][0]
    looks = {(tuple(dash), width) for dash, width in zip(scales[1]["range"], scales[2]["range"], strict=True)}
    assert len(looks) == 6


def test_the_legend_names_gold_and_cuts_long_names_so_that_they_stay_apart():
    words = written(CHARTS["benchmark, five"]())
    assert "wizards (gold standard)" in words
    assert STRANGE[0] in words
    cut = [word for word in words if word.startswith("a system") and "…" in word]
    assert len(set(cut)) == 2


@pytest.mark.parametrize("name", ["impurity", "impurity, five", "impurity, above gold"])
def test_the_legend_of_an_impurity_graph_is_there_with_strip_and_stripes(name):
    legends = [group for group in picture_of(CHARTS[name]()).split("<g") if "role-legend-entry" in group]
    assert legends


def test_circles_grow_with_the_trials_behind_them():
    points = point_rows().with_columns(n=pl.when(pl.col("x") < 0.5).then(80).otherwise(20))
    spec = pictures.spec_of(benchmark_chart(points=points, curves=curve_rows(), **WER))
    (layer,) = [one for one in spec["layer"] if one["encoding"].get("size", {}).get("field") == "size"]
    sizes = {row["n"]: row["size"] for row in values(spec, layer)}
    assert sizes[80.0] == 4 * sizes[20.0]


def test_impurity_says_who_is_nearer_where():
    assert "A from 0 % to 35 %; undecided from 35 % to 40 %; B from 40 % to 100 %" in description(CHARTS["impurity"]())
    assert title(CHARTS["impurity"]()).startswith("A is at most ")


def test_neighbouring_ranges_of_one_system_are_one():
    split = range_rows((0.0, 0.2, "A"), (0.2, 0.35, "A"), (0.35, 0.4, "undecided"), (0.4, 1.0, "B"))
    assert spec_of(impurity_chart(impurity_rows(), split, **WER)) == spec_of(CHARTS["impurity"]())


def test_ranges_are_bars_under_the_plot_with_names_where_there_is_room():
    words = written(CHARTS["impurity"]())
    assert words.count("A") == 2
    assert "?" in words
    wide = impurity_chart(impurity_rows(), range_rows((0.0, 0.3, "A"), (0.3, 1.0, "undecided")), **WER)
    assert "undecided" in written(wide)
    assert "vconcat" not in spec_of(CHARTS["impurity, one"]())


def test_a_range_of_one_place_is_told_and_drawn():
    chart = impurity_chart(
        impurity_rows(), range_rows((0.0, 0.5, "A"), (0.5, 0.5, "B"), (0.5, 1.0, "undecided")), **WER
    )
    assert "B at 50 %" in description(chart)


def test_one_system_is_told_by_where_it_is_farthest():
    rows = pl.DataFrame(
        {"system": "A", "x": [0.0, 0.5, 1.0], "impurity": [0.1, 0.4, 0.2], "low": None, "high": None}
    ).with_columns(signed=-pl.col("impurity"))
    assert title(impurity_chart(rows, EMPTY, **WER)) == (
        "A is at most 40 points above the gold standard in completed, at wer 50 %"
    )
    perfect = rows.with_columns(impurity=pl.lit(0.0), signed=pl.lit(0.0))
    assert title(impurity_chart(perfect, EMPTY, **WER)) == "A has no distance from the gold standard in completed"
    assert "no intervals" in subtitle(impurity_chart(rows, EMPTY, **WER))


def test_a_system_that_beats_the_gold_standard_is_striped_there_and_only_there():
    chart = CHARTS["impurity, above gold"]()
    assert "striped: estimated above the gold standard" in subtitle(chart)
    assert "Estimated above the gold standard somewhere: C." in description(chart)
    spec = spec_of(chart)
    rows = next(values(spec, layer) for layer in marks(chart, "rule") if "up" in str(layer["encoding"].get("y")))
    assert rows
    assert all(gold(row["x"]) < proud(row["x"]) for row in rows)
    assert all(row["up"] == pytest.approx(proud(row["x"]) - gold(row["x"]), abs=0.01) for row in rows)
    assert "striped" not in subtitle(CHARTS["impurity"]())
    noise = impurity_rows().with_columns(signed=pl.lit(-1e-16))
    assert "striped" not in subtitle(impurity_chart(noise, RANGES, **WER))


def test_bands_and_fills_are_left_out_where_systems_are_many():
    assert len(marks(CHARTS["impurity"](), "area")) == 2
    many = CHARTS["impurity, five"]()
    assert "intervals" not in subtitle(many)
    assert "mass" not in subtitle(many)
    (band,) = marks(many, "area")
    assert {row["low"] for row in values(spec_of(many), band)} == {None}


shares = st.floats(0, 1, allow_nan=False, width=16)


@given(st.lists(shares, min_size=2, max_size=6, unique=True), st.lists(st.sampled_from(["A", "B", "undecided"])))
def test_the_bars_of_an_impurity_graph_cover_the_ranges_that_were_given(edges, names):
    ends = sorted(edges)
    nearer = [*names, *["undecided"] * len(ends)]
    rows = range_rows(*((low, high, nearer[place]) for place, (low, high) in enumerate(pairwise(ends))))
    spec = pictures.spec_of(impurity_chart(impurity_rows(x=X[::8]), rows, **WER))
    (bars,) = [layer for group in found(spec, "layer") for layer in group if layer["mark"]["type"] == "rect"]
    drawn = values(spec, bars)
    assert (drawn[0]["from"], drawn[-1]["to"]) == pytest.approx((ends[0], ends[-1]), abs=1e-6)
    assert all(before["to"] == after["from"] for before, after in pairwise(drawn))
    assert all(before["nearer"] != after["nearer"] for before, after in pairwise(drawn))


def test_a_cost_function_tells_its_ends_and_marks_what_was_stated():
    chart = CHARTS["cost"]()
    assert title(chart) == "US dollars rises from 0 at 0 % completed to 60,000 at 100 %"
    assert "circles: amounts as stated" in subtitle(chart)
    assert {"70 % to 80 %", "65 % to 70 %", "60,000"} <= set(written(chart))
    assert "A from 70 % to 80 %" in description(chart)
    assert "amounts of an expression" in subtitle(CHARTS["cost, expression"]())
    assert "vconcat" not in spec_of(CHARTS["cost, expression"]())


def test_residuals_off_the_fit_are_counted_and_filled():
    chart = CHARTS["residuals"]()
    assert title(chart) == "1 of 16 mean residuals lies off the fit, 1 of them of A"
    assert chart_table(chart).filter("off").select("performer", "x").rows() == [("A", 0.375)]
    assert "A: 1 of 8 off the fit, at 37.5 %" in description(chart)
    assert "by chance about 0.8 of 16" in subtitle(chart)
    assert title(CHARTS["residuals, five"]()) == "None of 40 mean residuals lies off the fit"
    assert len(spec_of(CHARTS["residuals, five"]())["vconcat"]) == 5
    assert title(CHARTS["residuals, no intervals"]()) == "Residuals of the fits"


def test_a_residual_outside_of_a_range_around_0_is_off_the_fit_too():
    rows = residual_rows().with_columns(low=-0.005, high=0.02)
    off = chart_table(gold_residual_chart(rows, x="wer")).filter("off")
    assert off["residual"].unique().to_list() == [-0.01]


def test_convergence_says_whether_more_subjects_are_needed():
    assert title(CHARTS["convergence"]()) == "All 2 fits have settled: one more subject would hardly move them"
    assert "dashed: 1 point, under which a fit has settled" in subtitle(CHARTS["convergence"]())
    late = convergence_chart(step_rows(last=0.03), percent=True, tolerance=0.01)
    assert title(late) == "Not settled yet, so that more subjects are needed: wizards, A"
    assert "A: the last subject moves the fit by 3 points" in description(late)
    alone = step_rows().filter(pl.col("performer") == "A")
    assert (
        title(convergence_chart(alone, tolerance=0.01)) == "The fit has settled: one more subject would hardly move it"
    )
    assert title(CHARTS["convergence, no roles"]()) == "Fits after each further subject, up to 16"


def test_a_fit_without_a_step_has_not_settled():
    assert title(CHARTS["convergence, two subjects"]()).startswith("Not settled yet")


def test_the_tolerance_is_a_line_in_the_second_panel_only():
    panels = spec_of(CHARTS["convergence"]())["hconcat"]
    rules = [[layer["mark"]["type"] for layer in panel["layer"]].count("rule") for panel in panels]
    assert rules == [0, 1]


def test_wizards_that_stand_apart_are_named_and_the_others_are_not():
    chart = CHARTS["wizards"]()
    assert title(chart) == "Of 6 wizards, 2 stand apart: w2, w4"
    words = set(written(chart))
    assert {"w2", "w4", "one wizard each", "gold standard, all pooled"} <= words
    assert not {"w0", "w1"} & words
    assert title(wizards_chart(wizard_rows(), POOLED, **WER)) == "None of the 6 wizards stands apart from the others"
    assert title(CHARTS["wizards, one"]()).startswith("One wizard alone")
    assert title(CHARTS["wizards, all apart"]()) == "Of 9 wizards, 9 stand apart from the others"
    assert "one wizard each" not in written(CHARTS["wizards, all apart"]())


def test_components_name_the_greatest_clear_effect():
    assert title(CHARTS["components"]()) == "repair takes off most impurity mass: −0.12"
    lesion = EFFECTS.filter(pl.col("kind") != "main")
    assert title(components_chart(lesion)) == "Removing repair adds most impurity mass: +0.1"
    unclear = EFFECTS.with_columns(low=-1.0, high=1.0)
    assert title(components_chart(unclear)) == "No component is shown to change the distance from the gold standard"
    assert title(CHARTS["components, undefined"]()).startswith("The change of impurity mass is undefined")


def test_kinds_of_effects_have_panels_of_their_own_on_one_axis_that_holds_0():
    spec = spec_of(CHARTS["components"]())
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == [
        "main effects",
        "interactions",
        "one component removed",
    ]
    domains = [tuple(x["scale"]["domain"]) for x in found(spec, "x") if "domain" in (x.get("scale") or {})]
    assert len(set(domains)) == 1
    assert domains[0][0] < 0 < domains[0][1]


def test_domains_name_the_system_nearest_to_its_gold_standard_and_label_all():
    chart = CHARTS["domains"]()
    assert title(chart) == "B in flights comes nearest to its gold standard: relative impurity mass 0.22"
    assert {"A", "B", "flights", "tutoring"} <= set(written(chart))
    assert "A in flights: complexity 0.14, relative mass 0.32 (0.27 to 0.38)" in description(chart)
    assert title(CHARTS["domains, one"]()) == "A in flights has a relative impurity mass of 0.32"


places = st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT))


@given(st.lists(st.tuples(places, st.floats(6, 150)), min_size=1, max_size=8))
def test_labels_of_domains_stay_within_the_width_of_the_plot(marked):
    boxes = _placed([dot for dot, _ in marked], [width for _, width in marked])
    assert len(boxes) == len(marked)
    assert all(left >= 0 and right <= WIDTH for left, _, right, _ in boxes)


def test_labels_of_dots_near_each_other_do_not_overlap():
    (a, b) = _placed([(100.0, 100.0), (102.0, 101.0)], [40.0, 40.0])
    assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_a_plan_names_the_fewest_subjects_that_are_precise_enough():
    rows = pl.DataFrame({"subjects": [8, 8, 16, 16], "trials": [5, 20, 5, 20], "half_width": [0.09, 0.06, 0.05, 0.04]})
    assert title(plan_chart(rows, target=0.05, percent=True)) == (
        "16 subjects with 5 trials each bring the half-width of the interval down to 5 points (wanted: 5 points)"
    )
    assert title(plan_chart(rows, target=0.01)) == (
        "Not even 16 subjects bring the half-width of the interval down to 0.01"
    )


def test_a_plan_of_one_row_speaks_of_its_own_subjects():
    assert title(CHARTS["plan, one"]()).startswith("Not even 8 subjects")


def test_power_has_a_panel_only_where_it_is_known():
    assert len(spec_of(CHARTS["plan"]())["hconcat"]) == 2
    assert len(spec_of(CHARTS["plan, no power"]())["hconcat"]) == 1
    assert {"5 trials each", "20 trials each"} <= set(written(CHARTS["plan"]()))
