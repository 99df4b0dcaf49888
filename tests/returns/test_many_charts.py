"""The figures of many compared systems."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.show import pictures
from demur.core.show.charts import BASELINE, GREY, chart_table, spec_of
from demur.core.show.numbers import percent
from demur.returns.charts.comparison import (
    comparison_chart,
    forest_chart,
    line_styles,
    pair_matrix_chart,
)
from demur.returns.charts.error_return import MOST_STYLED
from demur.returns.comparison.compare import compare
from demur.returns.curves import outline
from demur.returns.explorer import explorer_document
from demur.returns.presentation import of_comparison, of_scores
from demur.returns.threshold import threshold_by_error
from reference.answers import made_up, table

pytestmark = pytest.mark.usefixtures("unchecked")

NAMES = [f"runs/mmlu_model-{place:02d}_cot" for place in range(12)]


@pytest.fixture(scope="module")
def twelve():
    logs = [made_up(name, 300, seed=place, accuracy=0.4 + 0.04 * place) for place, name in enumerate(NAMES)]
    return compare(table(*logs), replicates=60, baseline=NAMES[3])


def test_of_many_systems_the_baseline_and_the_leaders_are_in_colour_and_others_grey(twelve):
    styles = line_styles(twelve)
    coloured = [name for name, style in styles.items() if style != GREY]
    assert len(styles) == 12
    assert styles["03"] == BASELINE
    assert 4 <= len(coloured) <= 6
    first = [one.system for one in twelve.in_short[0].leaderboard.standings if one.rank[0] == 1]
    assert set(first[:5]) <= set(coloured)
    eight = compare(table(*(made_up(f"s{k}", 40, seed=k) for k in range(MOST_STYLED))), replicates=50)
    assert GREY not in line_styles(eight).values()


def test_a_recommended_threshold_is_marked_among_many_systems_too(twelve):
    choice = threshold_by_error(twelve.evaluations[-1].sample, 0.1, delta=0.05, name=NAMES[-1])
    drawn = spec_of(comparison_chart(twelve, choices=[choice]))
    assert f"threshold {choice.printed_threshold}" in json.dumps(drawn)
    assert "promised: 10 %" in json.dumps(drawn)
    assert f"Marked: threshold {choice.printed_threshold}" in drawn["description"]
    assert f"wrong where marked: {percent(choice.error)} of all inputs" in " ".join(pictures.titles(drawn))


def test_of_many_systems_only_the_baseline_has_a_band_until_one_is_pointed_at(twelve):
    spec = spec_of(comparison_chart(twelve))
    assert {one["name"] for one in spec["params"]} == {"hover_line", "hover_pick"}
    still = pictures.static_spec(comparison_chart(twelve))
    assert "params" not in still
    bands = [layer for layer in still["layer"] if layer["mark"]["type"] == "area"]
    (rows,) = ([row["system"] for row in still["datasets"][one["data"]["name"]]] for one in bands)
    assert set(rows) == {"03"}
    legends = [layer["encoding"]["color"]["legend"]["orient"] for layer in still["layer"] if "legend" in str(layer)]
    assert legends == ["right"]


def sure(name, place):
    rows = made_up(name, 80, seed=place, accuracy=0.4 + 0.04 * place)
    return [{**row, "confidence": 1 / (1 + np.exp(-row["confidence"]))} for row in rows]


@pytest.fixture(scope="module")
def sure_ones():
    return compare(table(*(sure(name, place) for place, name in enumerate(NAMES))), replicates=50, baseline=NAMES[3])


@pytest.mark.parametrize("kind", ["risk_coverage", "reliability", "roc", "det"])
def test_other_readings_have_the_colours_of_the_error_return_plot(sure_ones, kind):
    still = pictures.static_spec(of_comparison(sure_ones).chosen([kind])[kind]())
    (lines,) = (one for one in still["layer"] if "strokeDash" in one["encoding"])
    colours = dict(zip(*(lines["encoding"]["color"]["scale"][end] for end in ("domain", "range")), strict=True))
    styles = {name: style.colour for name, style in line_styles(sure_ones).items() if style != GREY}
    assert colours == {**styles, f"{12 - len(styles)} others": GREY.colour}
    assert lines["encoding"]["color"]["legend"]["orient"] == "right"
    assert "others pale grey" in str(still["title"])


@pytest.mark.parametrize("kind", ["error_return", "risk_coverage", "reliability", "roc", "det"])
def test_of_many_scored_systems_the_first_and_the_lowest_curves_are_in_colour(sure_ones, kind):
    spec = spec_of(of_scores(sure_ones.evaluations).chosen([kind])[kind]())
    (lines,) = (one for one in spec["layer"] if "strokeDash" in one["encoding"])
    areas = {one.name[-6:-4]: one.figures["augrc"].value for one in sure_ones.evaluations}
    lowest = sorted(areas, key=areas.__getitem__)[:3]
    assert lines["encoding"]["color"]["scale"]["domain"] == [*dict.fromkeys([*areas][:1] + lowest), "8 others"]
    assert "in colour: the lowest curves; others pale grey" in str(spec["title"])


@pytest.mark.parametrize("kind", ["risk_coverage", "reliability", "roc", "det"])
def test_the_baseline_is_black_in_every_figure(kind):
    comparison = compare(table(*(sure(f"s{k}", k) for k in range(3))), replicates=50, baseline="s2")
    spec = spec_of(of_comparison(comparison).chosen([kind])[kind]())
    (lines,) = (one for one in spec["layer"] if "strokeDash" in one["encoding"])
    scale = lines["encoding"]["color"]["scale"]
    assert (scale["domain"][0], scale["range"][0]) == ("s2", BASELINE.colour)


def test_figures_say_once_what_all_names_share(twelve):
    for figure in of_comparison(twelve).figures:
        spec = spec_of(figure())
        assert 'names share the prefix "runs/mmlu_model-" and the suffix "_cot"' in pictures.titles(spec)[1]
        assert "mmlu" not in json.dumps({key: value for key, value in spec.items() if key != "title"})


def test_the_forest_has_areas_by_rank_and_what_the_tests_against_the_baseline_show(twelve):
    rows = chart_table(forest_chart(twelve))
    board = {one.system: one for one in twelve.in_short[0].leaderboard.standings}
    ranks = [sum(board[name].rank) for name in rows["system"]]
    assert ranks == sorted(ranks)
    assert rows["side"].to_list().count("baseline") == 1
    for name, augrc, side in rows.select("system", "augrc", "side").iter_rows():
        difference = board[name].difference
        assert augrc == pytest.approx(board[name].figures["augrc"].value, abs=1e-7)
        if difference is not None:
            assert (side == "no significant difference") == (not difference.significant)
            assert side != ("significantly worse" if difference.value < 0 else "significantly better")


def test_the_matrix_has_a_cell_for_every_two_and_marks_the_significant_ones(twelve):
    chart = pair_matrix_chart(twelve)
    rows = chart_table(chart)
    assert rows.height == 66
    assert (rows["row"] > rows["column"]).all()
    tests = {frozenset((one.a, one.b)): one for one in twelve.in_short[0].leaderboard.pairs}
    for one in rows.iter_rows(named=True):
        test = tests[frozenset((one["system"], one["other"]))]
        value = test.overall.value if test.a == one["system"] else -test.overall.value
        assert one["difference"] == pytest.approx(value, abs=1e-5)
        assert one["significant"] == test.overall.significant
    shown = rows["significant"].sum()
    assert pictures.titles(spec_of(chart))[0].startswith(f"Differences of every two systems: {shown} of 66 ")


def test_an_explorer_of_many_systems_keeps_fewer_cutoffs_of_each_and_the_styles_of_the_plot(twelve):
    document = explorer_document(twelve.evaluations, twelve)
    assert [one["name"] for one in document["systems"]] == list(line_styles(twelve))
    assert document["systems"][3]["style"]["colour"] == BASELINE.colour
    assert len(json.dumps(document)) < 400_000


@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=60, unique=True).map(sorted),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.001, 0.05, 0.3]),
)
def test_an_outline_is_nowhere_further_from_the_curve_than_it_may_be(x, seed, tolerance):
    x, y = np.array(x), np.sort(np.random.default_rng(seed).random(len(x)))[::-1]
    kept = outline(x, y, tolerance=tolerance, points=100)
    assert kept[0] == 0
    assert kept[-1] == x.size - 1
    assert np.abs(np.interp(x, x[kept], y[kept]) - y).max() <= tolerance + 1e-12
    assert outline(x, y, tolerance=0.0, points=5).size <= 5


def test_a_compressed_picture_is_the_same_picture():
    chart = pair_matrix_chart(compare(table(*(made_up(f"s{k}", 30, seed=k) for k in range(6))), replicates=50))
    whole = pictures.png(chart)
    small = pictures.compressed(whole)
    assert len(small) < len(whole)
    assert pictures.compressed(small) == small
    assert small[:24] == whole[:24]
