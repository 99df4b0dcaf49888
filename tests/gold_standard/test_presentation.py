"""What is said and shown of studies against a gold standard: sentences, tables and documents agree with the numbers."""

import json
import re
from dataclasses import replace
from io import StringIO

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from demur.core.show.page import presentation_page
from demur.core.show.results import plain
from demur.core.show.terminal import show
from demur.core.stats.intervals import Figure
from demur.gold_standard import presentation
from demur.gold_standard.cost import read_cost
from demur.gold_standard.impurity import ImpurityCrossing, PairVerdict, XInterval
from demur.gold_standard.planning import plan
from demur.gold_standard.presentation import of_gold, of_plan, of_study, performer_table
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import TrialReading, trials
from demur.gold_standard.words import Units, figure, pair_sentences, verdict

QUICK = GoldOptions(replicates=60, checks=False)


def rows(ends, *, components=None, study="s", y="y"):
    """Rates that lie on straight lines, by four subjects each."""
    return [
        {
            "study": study,
            "performer": name,
            "subject": f"{name} {subject}",
            "wer": x,
            y: round(n * (a + (b - a) * x)) / n,
            "n": n,
            "components": (components or {}).get(name),
        }
        for name, (a, b) in ends.items()
        for subject, n in enumerate((40, 50, 60, 70))
        for x in np.linspace(0, 1, 9)
    ]


def read(table, options=QUICK, **reading):
    (found,) = trials(pl.DataFrame(table), reading=TrialReading(x="wer", y="y", **reading))
    return analyse(found, options)


CROSSING = {"gold": (0.98, 0.9), "A": (0.95, 0.1), "B": (0.7, 0.5)}


@pytest.fixture(scope="module")
def crossed():
    return read(rows(CROSSING), replace(QUICK, cost=read_cost("100 * p", upper=1.0), checks=True))


@pytest.fixture(scope="module")
def above():
    return read(rows({"gold": (0.6, 0.5), "A": (0.9, 0.2)}))


APART = Figure(0.1, 0.05, 0.15)


def pair(ranges, crossings=(), difference=APART, p=0.001):
    nothing = np.empty(0)
    return PairVerdict("A", "B", tuple(ranges), tuple(crossings), difference, p, nothing, nothing, nothing, nothing)


WER = Units("wer", "done", x_percent=True, y_percent=True)


def test_the_verdict_reads_as_one_says_it():
    """Prefer A below, B above, undecided between; the smaller mass belongs to B, as the difference is above 0."""
    found = pair(
        [XInterval(0, 0.35, "A"), XInterval(0.35, 0.4, "undecided"), XInterval(0.4, 1, "B")],
        [ImpurityCrossing(0.37, 0.35, 0.4, shown=True), ImpurityCrossing(0.9, 0.8, 0.95, shown=False)],
    )
    assert pair_sentences(found, WER) == [
        "Of A and B, by distance from the gold standard, prefer A below 35 % wer and B above 40 %; "
        "undecided between 35 % and 40 %.",
        "Their impurities cross at 37 % (somewhere from 35 % to 40 %).",
        "On the whole B is nearer: its impurity mass is smaller by 0.1 (0.05 to 0.15), p = 0.001.",
    ]


def test_the_name_of_x_follows_the_first_place_of_each_sentence():
    found = pair([XInterval(0, 0.2, "undecided"), XInterval(0.2, 1, "B")])
    assert pair_sentences(found, WER)[0] == (
        "Of A and B, by distance from the gold standard, prefer B above 20 % wer; undecided below 20 %."
    )


def test_exchanged_systems_are_told_alike():
    swapped = pair([XInterval(0, 1, "A")], difference=Figure(-0.1, -0.15, -0.05))
    assert pair_sentences(swapped, WER) == [
        "Of A and B, by distance from the gold standard, prefer A at every wer from 0 % to 100 %.",
        "On the whole A is nearer: its impurity mass is smaller by 0.1 (0.05 to 0.15), p = 0.001.",
    ]


def test_systems_that_are_not_told_apart_are_said_not_to_be():
    told = pair_sentences(pair([XInterval(0, 1, "undecided")], difference=Figure(0.1, -0.1, 0.3), p=0.3), WER)
    assert told == [
        "A and B are not significantly different in their distance from the gold standard.",
        "On the whole neither is significantly nearer: masses differ by 0.1 (−0.1 to 0.3), p = 0.3.",
    ]


def test_only_what_is_named_a_rate_is_told_in_percent():
    def units(name, x, **reading):
        table = pl.DataFrame(
            {"performer": ["gold", "gold", "A", "A"], name: [*x, *x], "y": [1, 0, 1, 0], "subject": list("abcd")}
        )
        return Units.of(trials(table, reading=TrialReading(x=name, y="y", **reading))[0])

    assert units("wer", [0.0, 0.5]).span(0, 0.5) == "0 % to 50 % wer"
    assert units("word_error_rate", [0.0, 1.0]).x_percent
    assert not units("wer", [0.0, 40.0]).x_percent
    assert not units("power", [0.0, 0.5]).x_percent
    assert units("noise", [0.0, 0.5]).y(0.25) == "25 %"


def test_a_figure_is_told_with_its_interval_or_why_there_is_none():
    assert figure(Figure(0.25, 0.2, 0.3)) == "0.25 (0.2 to 0.3)"
    assert figure(Figure(0.25)) == "0.25 (no interval)"
    assert figure(Figure(float("nan"), why="no bound")) == "undefined (no bound)"
    assert figure(Figure(float("nan"))) == "undefined"


def test_the_sentences_of_a_study_begin_with_its_verdict(crossed):
    shown = of_study(crossed)
    assert shown.sentences[0].startswith("Of A and B, by distance from the gold standard, prefer A below ")
    assert " and B above " in shown.sentences[0]
    told = " ".join(shown.sentences)
    assert f"Intellectual complexity {crossed.complexity.value:.3g}" in told
    assert "Average marginal cost: A " in told
    assert "cheapest" in told
    assert crossed.to_dict()["verdict"] == " ".join(verdict(crossed))


def test_a_system_alone_is_held_against_gold_in_words(above):
    told = verdict(above)
    assert told[0].startswith(f"A: impurity mass {above.impurities[0].mass.value:.3g} (")
    assert told[1].startswith("It is significantly worse than the gold standard above ")
    assert told[2].startswith("A does better than the gold standard below ")
    assert told[2].endswith("is it an upper bound at all? The impurity counts this as distance.")


def test_a_system_as_good_as_gold_is_nowhere_shown_to_be_worse():
    told = verdict(read(rows({"gold": (0.9, 0.5), "A": (0.9, 0.5)})))
    assert told[1] == "It is nowhere significantly worse than the gold standard."
    assert len(told) == 2


def test_a_gain_that_a_system_never_makes_is_told():
    cost = replace(QUICK, cost=read_cost("p", upper=1.0), gain=(0.3, 0.4))
    told = of_study(read(rows(CROSSING), cost)).sentences
    assert "B: no average marginal cost, since the curve of B nowhere lies between 0.3 and 0.4." in told
    assert any(one.startswith("Average marginal cost for the gain from 30 % to 40 %: A ") for one in told)


def test_a_study_without_an_upper_bound_says_so_and_shows_the_rest():
    table = [{**row, "y": 10 * row["y"] + 3} for row in rows(CROSSING)]
    study = read([{key: value for key, value in row.items() if key != "n"} for row in table])
    shown = of_study(study)
    assert not any("Intellectual complexity" in one for one in shown.sentences)
    assert shown.document["complexity"]["value"] is None
    assert shown.document["complexity"]["why"] == "the metric has no upper bound; --upper gives it"
    assert any("y has no upper bound" in note for note in shown.notes)
    assert all(draw().to_dict(validate=False) for draw in shown.figures)


def test_components_that_were_only_switched_together_have_no_figure_of_effects():
    together = {"A": "none", "B": "confirm+spell"}
    study = read(rows(CROSSING, components=together), replace(QUICK, components=True))
    assert presentation.effect_frame(study.components[0]).is_empty()
    drawn = [figure().to_dict(validate=False) for figure in of_study(study).figures]
    assert len(drawn) == len(of_study(read(rows(CROSSING))).figures)


def test_tables_hold_the_numbers_of_the_study(crossed):
    table = performer_table(crossed)
    assert table.title == "Performers, over 0 % to 100 % wer"
    assert [row[0] for row in table.rows] == ["gold", "A", "B"]
    assert table.rows[0][5:] == ("–",) * 5
    assert table.rows[1][5] == figure(crossed.impurities[0].mass)
    assert presentation.claim(crossed).startswith("A is closer to gold below ")
    titles = [one.title for one in of_study(crossed).tables]
    assert titles[:4] == ["Performers, over 0 % to 100 % wer", "Nearer the gold standard", "Cost", "Curves"]


def test_the_document_is_strict_json_with_figures_of_the_study(crossed):
    told = json.loads(json.dumps(plain(crossed.to_dict()), allow_nan=False))
    gold, a, b = told["performers"]
    assert (gold["performer"], gold["role"], gold["impurity_mass"]) == ("gold", "gold", None)
    assert a["impurity_mass"] == crossed.impurities[0].mass.to_dict()
    assert b["average_marginal_cost"]["value"] == told["average_marginal_cost"]["B"]["value"]
    assert told["complexity"]["value"] == crossed.complexity.value
    assert len(gold["curve"]) == 51
    assert [point["x"] for point in gold["curve"]][::50] == [0, 1]
    assert told["range"] == {"from": 0, "to": 1}


def test_frames_hold_the_curves_points_and_impurities(crossed):
    curves = presentation.curve_frame(crossed)
    assert curves.columns == ["performer", "role", "x", "y", "low", "high"]
    assert curves.filter(performer="A")["y"].to_numpy() == pytest.approx(
        crossed.systems[0].fit(curves.filter(performer="A")["x"].to_numpy())
    )
    points = presentation.point_frame(crossed)
    assert points.filter(performer="gold")["n"].sum() == 9 * (40 + 50 + 60 + 70)
    assert points["y"].is_between(0, 1).all()
    apart = presentation.impurity_frame(crossed)
    assert (apart["impurity"] == apart["signed"].abs()).all()
    assert (apart["low"] <= apart["impurity"]).all()


def test_the_nearest_of_several_is_shown_against_every_other_one():
    study = read(rows({"gold": (0.98, 0.9), "A": (0.95, 0.1), "B": (0.7, 0.5), "C": (0.3, 0.2)}))
    found = presentation.range_frame(study)
    assert found["nearer"].to_list() == ["A", "undecided", "B"]
    assert (found["from"][0], found["to"][-1]) == (0, 1)
    assert found["to"][:-1].to_list() == found["from"][1:].to_list()


def test_one_system_has_no_ranges_of_being_nearest(above):
    assert presentation.range_frame(above).height == 0


def test_the_cost_is_drawn_over_the_metric_and_marked_where_systems_are(crossed):
    line = presentation.cost_frame(crossed)
    assert (line["performance"].min(), line["performance"].max()) == (0, 1)
    assert line["amount"].to_numpy() == pytest.approx(100 * line["performance"].to_numpy())
    marks = presentation.cost_marks(crossed)
    assert marks["system"].to_list() == ["A", "B"]
    assert (marks["from"] < marks["to"]).all()


def test_components_are_told_drawn_and_tabulated():
    table = rows(
        {"gold": (0.98, 0.9), "plain": (0.8, 0.1), "full": (0.9, 0.7)}, components={"full": "repair", "plain": "none"}
    )
    study = read(table, replace(QUICK, components=True))
    shown = of_study(study)
    told = next(one for one in shown.sentences if "repair" in one)
    assert "repair brings it nearer the gold standard, change of impurity mass −" in told
    assert [one.title for one in shown.tables][-3:-1] == ["Combinations of full / plain", "Components"]
    assert shown.document["components"][0]["effects"][0]["components"] == ["repair"]
    effects = presentation.effect_frame(study.components[0])
    assert effects["effect"].to_list() == ["without repair (nothing else on)", "repair"]


@pytest.fixture(scope="module")
def page(crossed):
    return presentation_page(of_study(crossed))


def test_every_figure_can_be_drawn_and_describes_itself(crossed, page):
    number = len(of_study(crossed).figures)
    specs = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert len(specs) == number
    for spec in specs:
        assert json.loads(spec, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    descriptions = re.findall(r'<img alt="([^"]*)"', page)
    assert len(descriptions) == number
    assert all(len(words) > 30 for words in descriptions)


def test_a_study_is_a_page_a_text_and_a_terminal(crossed, page):
    shown = of_study(crossed)
    assert "Nearer the gold standard" in page
    assert shown.sentences[0] in shown.markdown()
    console = Console(record=True, width=200, file=StringIO())
    show(shown, console)
    assert "Intellectual complexity" in console.export_text()


def test_misfits_are_warned_of():
    """A line through rates that drop all at once."""
    table = rows({"gold": (0.95, 0.95), "A": (0.9, 0.1)})
    for row in table:
        if row["performer"] == "A":
            row["y"] = round(row["n"] * (0.95 if row["wer"] < 0.55 else 0.05)) / row["n"]
    shown = of_study(read(table, replace(QUICK, fits={"A": "linear"})))
    assert any(one.startswith("A: ") and one.endswith("Another `fit` may suit it better.") for one in shown.warnings)


def test_several_studies_are_shown_across_domains():
    table = rows(CROSSING, study="hard") + rows({"gold": (0.99, 0.97), "A": (0.95, 0.9)}, study="easy")
    found = trials(pl.DataFrame(table), reading=TrialReading(x="wer", y="y"))
    studies = GoldStudies(analyse(one, QUICK) for one in found)
    shown = of_gold(studies)
    assert shown.title == "Across domains"
    assert shown.sentences[0].startswith("hard comes out hardest for its gold standard, complexity 0.0")
    assert shown.sentences[1].startswith("A in easy comes out nearest its own gold standard: its impurity mass is ")
    assert [part.title for part in shown.parts] == ["easy", "hard"]
    assert len(shown.tables[0].rows) == 3
    assert "Across domains</caption>" in (written := presentation_page(shown))
    assert written.count("<figure") == sum(len(part.figures) for part in (shown, *shown.parts))
    assert [one["study"] for one in shown.document["studies"]] == ["easy", "hard"]
    assert len(shown.signatures) == 2
    assert all(note.startswith(("easy: ", "hard: ")) for note in shown.notes)
    assert of_gold(GoldStudies(studies[:1])).title == "How far from the gold standard"


def test_a_plan_is_shown_with_its_designs(crossed):
    found = crossed.trials
    made = plan(found, subjects=(6, 12), trials_each=(10,), studies=20)
    shown = of_plan(made)
    assert shown.sentences[0][0].isupper()
    assert [row[:2] for row in shown.tables[0].rows] == [("6", "10"), ("12", "10")]
    assert json.dumps(plain(shown.document), allow_nan=False)
    assert shown.figures[0]().to_dict()
