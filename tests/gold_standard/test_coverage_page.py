"""The page of simulated coverage: what it says follows from what was found."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

ROOT = Path(__file__).parents[2]
METHODS = ("ours", "closed", "plain t", "percentile", "half-width", "miss")


@pytest.fixture
def module(monkeypatch):
    """Modules of the benchmarks, which are no part of the package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def made_up(shares, start=""):
    """Outcomes of 100 studies, a share of which hold the truth everywhere; auto is the kind that holds least."""
    held = {}
    for kind in ("spline", "logistic", "auto"):
        for method in (*METHODS, *(["sandwich"] if kind == "logistic" else [])):
            held[f"{start}{kind}, {method}"] = np.repeat(np.arange(100) < 100 * shares, 50).reshape(100, 50) * 1.0
    return {**held, f"{start}spline chosen": np.ones(100)}


@pytest.fixture
def found(module):
    scenes = module("gold_scenes")
    readings = {name: np.ones(100) for name in scenes.SCALARS}
    wizards = {key: value for name in scenes.WIZARDS for key, value in made_up(0.96, f"{name}: ").items()}
    return {
        scenes.Wizards(12): {**readings, **wizards},
        scenes.Plain("straight", 0.5, 12): made_up(0.93),
        scenes.Plain("straight", 1.0, 24): made_up(0.75),
    }


def test_the_page_tells_how_it_was_made_and_leaves_no_gap(module, found):
    page = module("gold_coverage_page")
    text = page.page(found, page.GoldRun(100, 300, 7))
    assert "python -m benchmarks.gold_coverage --studies 100 --replicates 300 --seed 7" in text
    assert "$" not in text
    assert "| straight | 1 | 24 | 0.750 | 0.750 (x = 0.01) |" in text
    assert "| system A | as they do | 12 | 0.960 |" in text


def test_the_bar_counts_curves_with_twelve_subjects(module, found):
    page = module("gold_coverage_page")
    text = page.page(found, page.GoldRun(100, 300, 1))
    assert (
        "0.930 on average over places for the curve that fares worst (straight with persons who differ by 0.5)" in text
    )
    assert "0.92 at 12 subjects, is held by every curve" in text


def test_a_bar_that_is_missed_is_said_to_be(module, found):
    page, scenes = module("gold_coverage_page"), module("gold_scenes")
    found = {**found, scenes.Plain("logistic", 0.5, 12): made_up(0.9)}
    assert "is **not** held by every curve" in page.page(found, page.GoldRun(100, 300, 1))


def test_the_lowest_coverage_is_named(module, found):
    page = module("gold_coverage_page")
    text = page.page(found, page.GoldRun(100, 300, 1))
    assert "The lowest of all is 0.750, at x = 0.01 of the curve “straight” with 24 subjects" in text


def test_the_truth_of_a_plain_curve_is_the_average_over_persons(module):
    scenes = module("gold_scenes")
    rng = np.random.default_rng(0)
    person = rng.standard_normal(200_000)
    middle = scenes.SHAPES["logistic"](scenes.X)
    for place in (0, 25, 49):
        assert scenes.plain_truth("logistic", 1.0)[place] == pytest.approx(
            expit(middle[place] + person).mean(), abs=0.002
        )
    assert scenes.plain_truth("logistic", 0.0) == pytest.approx(expit(middle))


def test_a_simulated_study_says_of_every_band_whether_it_holds(module):
    scenes = module("gold_scenes")
    found = scenes.Plain("flat, then a drop", 0.5, 8).outcome(20, np.random.default_rng(0), 0)
    assert {f"{kind}, {method}" for kind in scenes.FITS for method in METHODS} < found.keys()
    assert found["auto, ours"].shape == scenes.X.shape
    assert ((found["auto, miss"] == 0) == (found["auto, ours"] == 1)).all()
    assert (found["auto, closed"] <= found["auto, ours"]).all()
    chosen = "spline" if found["spline chosen"] else "logistic"
    assert (found["auto, ours"] == found[f"{chosen}, ours"]).all()


def test_a_simulated_wizards_study_has_every_reading(module):
    scenes = module("gold_scenes")
    found = scenes.Wizards(8).outcome(20, np.random.default_rng(0), 0)
    assert set(scenes.SCALARS) < found.keys()
    assert {f"{name}: auto, ours" for name in scenes.WIZARDS} < found.keys()


def test_the_sandwich_agrees_with_drawing_subjects_anew(module):
    """With many trials it is nearly the bootstrap of subjects."""
    scenes = module("gold_scenes")
    rng = np.random.default_rng(3)
    x = np.tile(np.linspace(0, 1, 400), (30, 1))
    success = rng.random(x.shape) < expit(2 - 4 * x + rng.standard_normal((30, 1)))
    trials = scenes._alone(x, success)
    fit = scenes.fit_curve(
        scenes.counts_of(trials, np.ones(len(trials), dtype=bool)), scenes.FitOptions(kind="logistic")
    )
    drawn = scenes._performer(fit, scenes.draw_subjects([fit.counts], 400, 0))
    spread = fit.predictor(scenes.X, drawn.refits).std(axis=0, ddof=1)
    assert scenes._sandwich(fit) == pytest.approx(spread, rel=0.2)
