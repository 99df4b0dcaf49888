import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.show import numbers
from demur.core.show.pictures import svg_of
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.comparison.compare import compare
from demur.returns.curves import error_return
from demur.returns.evaluate import evaluate
from demur.returns.explorer import (
    explorer_document,
    explorer_html,
    explorer_script,
    first_readings,
    kept_places,
    lead_rows,
    operating_sentence,
    reading_at,
    static_spec,
    system_points,
)
from demur.returns.table import responses
from demur.returns.tally import Tally
from demur.returns.threshold import cost_path, threshold_by_error

EVIL = '</script><script>alert("x")</script>'


def tallied(confidence, right, **options):
    sweep = Sweep.of(confidence, right, **options)
    withheld = int(options.get("withheld", 0))
    (one,) = evaluate([Tally("guide", None, sweep, 0, withheld, 0, squares=float(sweep.n))], replicates=20)
    return one


@pytest.fixture(scope="module")
def clear(simulated):
    """A comparison in which one system is shown to be better somewhere."""
    rows = [*simulated("base", n=400, accuracy=0.6), *simulated("better", n=400, accuracy=0.8, seed=1)]
    return compare(responses(rows), replicates=60)


@pytest.fixture(scope="module")
def document(clear):
    return explorer_document(clear.evaluations, clear)


def test_a_system_worked_by_hand():
    one = tallied([0.9, 0.8, 0.5, 0.1], [True, True, False, False], withheld=1)
    told = system_points(one, 0, 0.2, 1500)
    assert told["threshold"][:-1] == [0.0, 0.5, 0.8, 0.9]
    assert np.isnan(told["threshold"][-1])
    assert told["returned"] == [4, 3, 2, 1, 0]
    assert told["wrong"] == [2, 1, 0, 0, 0]
    assert (told["n"], told["total"], told["right"], told["withheld"], told["whole"]) == (5, 5, 2, 1, True)
    (best,) = told["path"]
    assert (best["from"], best["to"], best["threshold"], best["place"]) == (0.0, 1.0, 0.8, 2)
    assert (best["nonreturn"], best["error"]) == (0.6, 0.0)


def test_at_an_operating_point_every_count_follows():
    one = tallied([0.9, 0.8, 0.5, 0.1], [True, False, True, False])
    told = reading_at(system_points(one, 0, 0.2, 1500), 0.6, 0.5)
    assert told == {
        "name": "guide",
        "error_at_share": pytest.approx(0.15),  # 0.4 of the way from (0.5, 0.25) to (0.75, 0)
        "threshold": 0.8,
        "nonreturn": 0.5,
        "error": 0.25,
        "returned": 2,
        "right": 1,
        "wrong": 1,
        "withheld": 2,
        "missed": 1,
        "cost": 0.5,
    }


def test_a_system_that_withholds_more_by_itself_stands_where_it_starts():
    one = tallied([0.9, 0.8], [True, False], withheld=3)
    assert reading_at(system_points(one, 0, 0.2, 1500), 0.2, 0.0)["nonreturn"] == 0.6


rows = st.lists(st.tuples(st.floats(-5, 5, allow_subnormal=False), st.booleans()), min_size=1, max_size=120)


@given(rows, st.integers(12, 40), st.sampled_from([0, 3]))
def test_kept_cutoffs_are_exact_bounded_and_hold_ends_and_cost_path(answers, points, withheld):
    confidence, right = zip(*answers, strict=True)
    one = tallied(confidence, right, withheld=withheld)
    told = system_points(one, 0, 0.2, points)
    corners = len(told["path"])
    assert len(told["threshold"]) <= max(points, corners + 3)
    for threshold, returned, wrong in zip(told["threshold"], told["returned"], told["wrong"], strict=True):
        kept = [sound for score, sound in answers if score >= threshold]
        assert (returned, wrong) == (len(kept), kept.count(False))
    assert told["returned"][0] == len(answers)
    assert told["returned"][-1] == 0
    path = cost_path(one.curve)
    assert [told["returned"][part["place"]] for part in told["path"]] == [
        round((1 - stretch.nonreturn) * told["total"]) for stretch in path
    ]


def test_kept_cutoffs_lie_evenly_by_weight():
    rng = np.random.default_rng(0)
    curve = error_return(Sweep.of(rng.random(20_000) ** 8, rng.random(20_000) < 0.7))
    kept = kept_places(curve, np.array([], dtype=np.int64), 0.2, 500)
    assert kept.size <= 500
    assert np.diff(curve.nonreturn[kept]).max() <= 1 / 480
    assert curve.threshold_at(0.2) in curve.threshold[kept]


def test_weights_may_be_fractions():
    rows = [
        {"target": "y", "prediction": "y", "confidence": 0.9, "weight": 0.5},
        {"target": "y", "prediction": "n", "confidence": 0.5, "weight": 0.25},
    ]
    (one,) = evaluate(responses(rows), replicates=20)
    told = system_points(one, 0, 0.2, 1500)
    assert (told["total"], told["returned"], told["wrong"]) == (0.75, [0.75, 0.5, 0], [0.25, 0, 0])


def test_infinite_confidences_are_told_as_words():
    document = explorer_document([tallied([np.inf, 0.5, -np.inf], [True, False, True])])
    (system,) = document["systems"]
    assert system["threshold"] == ["-inf", 0.0, "inf", None]


def test_the_document_is_json_with_pairs_words_and_a_spec(document, clear):
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    (pair,) = document["pairs"]
    told = clear.pairs[0].to_dict()
    assert pair == {name: told[name] for name in ("a", "b", "verdict", "intervals", "crossings")}
    assert document["title"] == "better is better than base overall"
    assert document["at"] == 0.2
    assert {"curves", "handles", "region"} <= document["spec"]["datasets"].keys()
    assert "title" not in document["spec"]


def test_two_large_systems_take_less_than_300_kilobytes():
    rng = np.random.default_rng(0)
    n = 60_000
    tables = []
    for accuracy in (0.7, 0.8):
        right = rng.random(n) < accuracy
        score = 1 / (1 + np.exp(-rng.normal(1.5 * right, 1.0)))
        tables.append(
            pl.DataFrame({"id": range(n), "target": "y", "prediction": np.where(right, "y", "n"), "confidence": score})
        )
    both = pl.concat([table.with_columns(system=pl.lit(name)) for name, table in zip("ab", tables, strict=True)])
    found = compare(responses(both), replicates=20)
    assert len(json.dumps(explorer_document(found.evaluations, found))) < 300_000


def test_where_one_is_shown_better_the_strip_names_it_from_end_to_end(clear):
    rows = lead_rows(clear.evaluations, clear)
    assert rows[0]["start"] == 0.0
    assert rows[-1]["stop"] == 1.0
    assert [row["stop"] for row in rows[:-1]] == [row["start"] for row in rows[1:]]
    led = [(row["start"], row["stop"]) for row in rows if row["better"] == "better"]
    assert led == [
        (round(part.start, 7), round(part.stop, 7)) for part in clear.pairs[0].intervals if part.stop > part.start
    ]
    named = {(row["label"], row["short"]) for row in rows}
    assert named == {("better is better", "better"), ("no significant difference", "")}


def test_of_three_systems_only_the_best_of_all_is_named(tables):
    found = compare(responses([row for part in tables.values() for row in part]), replicates=40)
    rows = lead_rows(found.evaluations, found)
    assert {row["better"] for row in rows} <= {None, "base", "better", "shy"}
    assert all(one["better"] != two["better"] for one, two in pairwise(rows))


def test_a_short_stretch_of_the_strip_has_a_short_name_or_none(clear):
    document = explorer_document(clear.evaluations, clear)
    stretch = {
        "better": "x",
        "colour": "#D55E00",
        "tint": 0.09,
        "label": "a-long-name is better",
        "short": "a-long-name",
    }
    ends = [(0.0, 0.5), (0.5, 0.65), (0.65, 0.72), (0.72, 1.0)]
    lead = [{**stretch, "start": start, "stop": stop} for start, stop in ends]
    document["spec"]["datasets"]["lead"] = lead
    drawn = svg_of(static_spec(document, first_readings(document)))
    assert (drawn.count(">a-long-name is better<"), drawn.count(">a-long-name<")) == (2, 1)


def test_the_table_of_many_systems_begins_with_the_baseline_and_the_best(tables):
    logs = {
        f"{name}{k}": [row | {"system": f"{name}{k}"} for row in part] for name, part in tables.items() for k in "12"
    }
    found = compare(responses([row for part in logs.values() for row in part]), replicates=20)
    document = explorer_document(found.evaluations, found)
    board = found.leaderboard
    ranked = [one.system for one in board.ranked if one.system != board.baseline]
    assert [document["systems"][place]["name"] for place in document["order"]] == [board.baseline, *ranked]
    shown = explorer_html(document, picture=False)
    places = [shown.index(f"</svg>{name}</th>") for name in (board.baseline, *ranked)]
    assert places == sorted(places)


def test_without_a_comparison_nothing_is_shaded(evaluations):
    document = explorer_document(evaluations)
    assert document["pairs"] == []
    assert "lead" not in document["spec"]["datasets"]
    assert "shown" not in operating_sentence(document, [reading_at(one, 0.2, 0.3) for one in document["systems"]])


def test_the_page_stands_without_scripts(document):
    html = explorer_html(document, ident="plot")
    assert 'src="data:image/svg+xml;base64,' in html
    assert 'data-part="controls" hidden' in html
    points = [reading_at(one, 0.2, 0.3) for one in document["systems"]]
    for point in points:
        assert f"<td>{point['threshold']}</td>" in html
        assert f"<td>{point['wrong']}</td>" in html
    assert "Withholding 20&nbsp;% of the inputs, base answers" in html
    assert 'id="plot-document"' in html
    assert "style=" not in html.split("<script")[0]
    assert "<img" not in explorer_html(document, picture=False)


def test_the_still_picture_draws_curves_and_handles(document):
    points = [reading_at(one, 0.2, 0.3) for one in document["systems"]]
    spec = static_spec(document, points)
    assert len(spec["datasets"]["curves"]) == sum(len(one["threshold"]) for one in document["systems"])
    assert [row["error"] for row in spec["datasets"]["handles"]] == [point["error"] for point in points]
    assert svg_of(spec).startswith("<svg")


def test_whatever_comes_from_data_is_escaped(simulated):
    (one,) = evaluate(responses(simulated(EVIL, n=30)), replicates=20)
    html = explorer_html(explorer_document([one]))
    assert "<script>alert" not in html
    assert html.count("</script>") == 1


def test_the_script_of_a_page_is_no_module():
    assert "export " not in explorer_script()
    assert "function explore(" in explorer_script()


def test_an_explorer_needs_systems_and_their_own_comparison(evaluations, comparison):
    with pytest.raises(UsageError, match="at least one evaluation"):
        explorer_document([])
    with pytest.raises(UsageError, match="the comparison is not one of these systems: base, better and shy"):
        explorer_document(evaluations, comparison)


def test_of_many_systems_the_sentence_tells_the_best_and_the_worst(eight):
    document = explorer_document(eight)
    points = [reading_at(one, 0.2, 0.3) for one in document["systems"]]
    said = operating_sentence(document, points)
    best, worst = (chosen(points, key=lambda one: one["error_at_share"]) for chosen in (min, max))
    assert said.startswith(
        f"Withholding 20 % of the inputs, {best['name']} has the fewest errors, {best['wrong']} of 80 ("
    )
    assert f" and {worst['name']} the most, {worst['wrong']} (" in said


def test_many_systems_of_one_error_rate_have_no_best_and_no_worst(eight):
    document = explorer_document(eight)
    points = [{**point, "wrong": 4, "error": 0.05} for point in first_readings(document)]
    advised = operating_sentence({**document, "advised": True}, points)
    assert advised.startswith("At the recommended thresholds, every system answers 4 of 80 wrongly (5 %); ")
    points = [reading_at(one, 1.0, 0.3) for one in document["systems"]]
    nothing = operating_sentence({**document, "at": 1.0}, points)
    assert nothing == "Withholding 100 % of the inputs, every system answers 0 of 80 wrongly (0 %)."
    document["systems"] = document["systems"][:3]
    assert "significantly" not in operating_sentence({**document, "at": 1.0}, points[:3])


def test_at_the_recommended_thresholds_of_many_systems_the_shares_withheld_are_told(eight):
    document = {**explorer_document(eight), "advised": True}
    shares = [0.1 * place for place in range(8)]
    points = [
        {**point, "nonreturn": share}
        for point, share in zip(first_readings({**document, "advised": False}), shares, strict=True)
    ]
    said = operating_sentence(document, points)
    assert said.endswith(f"; {points[0]['name']} withholds the least, 0 %, and {points[-1]['name']} the most, 70 %.")
    level = [{**point, "nonreturn": 0.25} for point in points]
    assert operating_sentence(document, level).endswith("; each withholds 25 %.")


def test_a_system_without_a_recommended_threshold_is_said_to_have_none(clear):
    choices = [
        threshold_by_error(one.sample, most, name=one.name)
        for one, most in zip(clear.evaluations, (0.0, 0.1), strict=True)
    ]
    nothing = replace(choices[0], threshold=np.nan, nonreturn=1.0)
    document = explorer_document(clear.evaluations, clear, choices=[nothing, choices[1]])
    said = operating_sentence(document, first_readings(document))
    assert re.fullmatch(
        r"At the recommended thresholds, better withholds [\d.]+ % and answers \d+ of 400 wrongly \([\d.]+ %\)\. "
        r"No threshold is recommended for base\.",
        said,
    )


def test_a_share_that_none_can_reach_moves_to_where_the_first_starts_and_later_ones_are_named(evaluations):
    shy = explorer_document(evaluations[2:])
    floor = evaluations[2].curve.floor
    assert shy["at"] == max(0.2, floor)
    low = explorer_document(evaluations)
    low["at"] = 0.05
    said = operating_sentence(low, [reading_at(one, 0.05, 0.3) for one in low["systems"]])
    assert f"More is withheld by the system itself: shy {numbers.percent(floor)}." in said
