import json
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from demur.core.stats.intervals import student
from demur.errors import DataError
from demur.gold_standard.curves import counts_of
from demur.gold_standard.fitting import FitOptions, Performer, draw_subjects, fit_curve
from demur.gold_standard.planning import (
    GoldPlan,
    StudyDesign,
    average_person,
    curve_of,
    pilot_study_of,
    plan,
    shares_of,
    spread_of,
)
from demur.gold_standard.trials import Trials

LOGISTIC = FitOptions(kind="logistic")


def study(x, y, subject, performer=None, *, names=("wizards",), kind="trials", upper=1.0, n=None, independent=False):
    """A table of trials from arrays; subjects are numbered."""
    x, y, subject = np.ravel(x).astype(float), np.ravel(y).astype(float), np.ravel(subject)
    none = np.zeros(len(x), dtype=np.int64)
    return Trials(
        study="pilot",
        x_name="wer",
        y_name="completed",
        kind=kind,
        lower=0.0,
        upper=upper,
        performers=names,
        roles=("gold", *("system" for _ in names[1:])),
        performer=none if performer is None else np.ravel(performer),
        x=x,
        y=y,
        n=np.ones(len(x)) if n is None else n,
        subject=subject,
        subjects=tuple(str(number) for number in range(subject.max() + 1)),
        combination=none,
        combinations=(frozenset(),),
        independent=independent,
    )


def arm(rng, departures, trials, easy, steep):
    """Successes of persons, a row each, at places spread evenly."""
    x = ((np.arange(trials) + rng.random((len(departures), trials))) / trials).round(2)
    return x, rng.random(x.shape) < expit(easy - steep * x + departures[:, None])


def three(subjects=16, trials=30, spread=1.0, seed=0, b_easy=2.0):
    """Wizards, and two systems with the same callers."""
    rng = np.random.default_rng(seed)
    wizards, callers = spread * rng.standard_normal((2, subjects))
    arms = [arm(rng, wizards, trials, 4.0, 5.0), arm(rng, callers, trials, 2.0, 5.0)]
    arms.append(arm(rng, callers, trials, b_easy, 5.0))
    who = [np.repeat(np.arange(subjects) + shift, trials) for shift in (0, subjects, subjects)]
    x, y = (np.concatenate([part[side].ravel() for part in arms]) for side in (0, 1))
    performer = np.repeat([0, 1, 2], subjects * trials)
    return study(x, y, np.concatenate(who), performer, names=("wizards", "A", "B"))


@cache
def planned():
    """A plan of four designs, of which some are narrow enough."""
    designs = {"subjects": [16, 8], "trials_each": [30, 10]}
    return plan(three(), fit=LOGISTIC, **designs, half_width=0.12, studies=40)


def one_arm(subjects, trials, spread, seed=0):
    rng = np.random.default_rng(seed)
    x, y = arm(rng, spread * rng.standard_normal(subjects), trials, 2.0, 5.0)
    return study(x, y, np.repeat(np.arange(subjects), trials))


def fit_of(trials, options=LOGISTIC):
    return fit_curve(counts_of(trials, np.ones(len(trials), dtype=bool)), options)


# what is taken from the pilot


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_the_spread_of_persons_is_recovered(spread):
    assert spread_of(fit_of(one_arm(400, 40, spread))) == pytest.approx(spread, rel=0.08)


def test_the_spread_is_right_on_average_over_small_pilots():
    found = [spread_of(fit_of(one_arm(12, 30, 1.0, seed))) ** 2 for seed in range(30)]
    assert np.mean(found) == pytest.approx(1.0, abs=0.4)


def test_persons_who_are_alike_spread_by_0_and_not_by_less():
    x = np.tile([0.0, 0.25, 0.5, 1.0], (10, 1))
    y = np.tile([1, 1, 0, 0], (10, 1))
    assert spread_of(fit_of(study(x, y, np.repeat(np.arange(10), 4)))) == 0


def test_persons_with_one_trial_each_tell_nothing_of_their_spread():
    rng = np.random.default_rng(0)
    x = rng.random(50)
    assert spread_of(fit_of(study(x, rng.random(50) < 1 - x, np.arange(50)))) == 0


def test_the_spread_of_unbounded_scores_is_that_of_persons_means_less_noise():
    rng = np.random.default_rng(1)
    x = rng.random((300, 20))
    y = 30 - 10 * x + 3 * rng.standard_normal((300, 1)) + 4 * rng.standard_normal(x.shape)
    trials = study(x.round(2), y, np.repeat(np.arange(300), 20), kind="scores", upper=None)
    assert spread_of(fit_of(trials, FitOptions(kind="linear"))) == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_persons_of_every_kind_have_the_fitted_curve_on_average(spread):
    fit = fit_of(one_arm(20, 20, 1.0))
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    assert shares_of(fit, spread, nodes) @ weights / weights.sum() == pytest.approx(curve_of(fit), abs=1e-9)


def test_the_person_in_the_middle_lies_further_from_a_half_than_the_average():
    fit = fit_of(one_arm(20, 20, 1.0))
    assert (np.abs(average_person(fit, 1.0)) >= np.abs(average_person(fit, 0.0)) - 1e-9).all()


def test_simulated_studies_have_the_pilots_curve_on_average():
    known = pilot_study_of(three(), LOGISTIC)
    drawn = known.simulated(40, 30, 200, np.random.default_rng(0))
    for one, counts in zip(known.performers, drawn, strict=True):
        total, size = (np.asarray(part.sum(axis=0)).ravel() for part in (counts.totals, counts.sizes))
        assert total.sum() / size.sum() == pytest.approx(float(curve_of(one.fit) @ size / size.sum()), abs=0.005)
        assert size.sum() == 40 * 30 * 200


def test_simulated_persons_spread_as_the_pilots():
    one = pilot_study_of(one_arm(30, 30, 1.0), LOGISTIC).performers[0]
    departures = np.random.default_rng(0).standard_normal((600, 1))
    counts = one.simulated(departures, 40, np.random.default_rng(1))
    again = fit_curve(counts, LOGISTIC)
    assert spread_of(again) == pytest.approx(one.spread, rel=0.1)


def test_callers_of_both_systems_do_well_with_both():
    known = pilot_study_of(three(subjects=60), LOGISTIC)
    assert known.correlation[1, 2] == pytest.approx(1, abs=0.15)
    assert known.correlation[0, 1] == known.correlation[0, 2] == 0
    assert [one.stratum == known.performers[1].stratum for one in known.performers] == [False, True, True]


def test_bounded_scores_vary_in_simulation_as_in_the_pilot():
    rng = np.random.default_rng(2)
    x = rng.random((40, 30)).round(2)
    mean = expit(2 - 4 * x + 0.7 * rng.standard_normal((40, 1)))
    y = 7 * rng.beta(6 * mean, 6 * (1 - mean))
    trials = study(x, y, np.repeat(np.arange(40), 30), kind="scores", upper=7.0)
    one = pilot_study_of(trials, LOGISTIC).performers[0]
    counts = one.simulated(np.random.default_rng(0).standard_normal((400, 1)), 30, np.random.default_rng(1))
    assert one.spread == pytest.approx(0.7, abs=0.15)
    assert fit_curve(counts, LOGISTIC).dispersion == pytest.approx(one.fit.dispersion, rel=0.1)


# what the plan says


def test_bands_are_as_wide_as_those_of_whole_studies():
    """Each simulated study is fitted, its smoothness chosen, and its subjects are drawn anew, as an analysis does."""
    pilot = one_arm(16, 25, 1.0)
    planned = plan(pilot, subjects=[16], trials_each=[20], fit=FitOptions(kind="spline"), studies=100).designs[0]
    one = pilot_study_of(pilot, FitOptions(kind="spline")).performers[0]
    rng = np.random.default_rng(5)
    places = np.linspace(one.counts.low, one.counts.high, 41)
    widths = []
    for seed in range(12):
        counts = one.simulated(rng.standard_normal((16, 1)), 20, rng)
        fit = fit_curve(counts, FitOptions(kind="spline"))
        refits = fit.refits(draw_subjects([counts], 100, seed))
        low, high = Performer("wizards", "gold", fit, refits, np.zeros(100), 0.95).band(places)
        widths.append((high - low) / 2)
    assert planned.half_widths["wizards"] == pytest.approx(float(np.mean(widths)), rel=0.2)


def test_more_subjects_and_more_trials_narrow_the_bands_and_show_more():
    found = plan(three(b_easy=1.2), fit=LOGISTIC, subjects=[8, 32], trials_each=[10, 40], studies=50)
    widths = {(one.subjects, one.trials): one for one in found.designs}
    assert widths[8, 10].half_width > widths[8, 40].half_width > widths[32, 40].half_width
    assert widths[8, 10].half_width > widths[32, 10].half_width > widths[32, 40].half_width
    assert widths[8, 10].mass_half_widths["A"] > widths[32, 40].mass_half_widths["A"]
    assert widths[8, 10].power["A and B"] < widths[32, 40].power["A and B"]
    assert widths[32, 40].power["A and wizards"] == 1


def test_four_times_the_subjects_halve_what_t_is_put_on():
    found = plan(three(), fit=LOGISTIC, subjects=[12, 48], trials_each=[20], studies=200)
    few, many = (one.half_widths["A"] / student(0.95, one.subjects - 1) for one in found.designs)
    assert few / many == pytest.approx(2, rel=0.15)


def test_systems_that_do_not_differ_are_rarely_told_apart():
    rng = np.random.default_rng(0)
    callers = 0.5 * rng.standard_normal(30)
    wizards, system = arm(rng, callers, 30, 4.0, 5.0), arm(rng, callers, 30, 2.0, 5.0)
    x = np.concatenate([wizards[0].ravel(), *[system[0].ravel()] * 2])
    y = np.concatenate([wizards[1].ravel(), *[system[1].ravel()] * 2])
    subject = np.concatenate([np.repeat(np.arange(30), 30) + shift for shift in (0, 30, 60)])
    pilot = study(x, y, subject, np.repeat([0, 1, 2], 900), names=("wizards", "A", "B"))
    found = plan(pilot, fit=LOGISTIC, subjects=[16], trials_each=[20], studies=400)
    assert found.designs[0].power["A and B"] < 0.08


def test_the_smallest_design_that_is_narrow_enough_is_needed():
    found = planned()
    enough = [design for design in found.designs if design.half_width <= 0.12]
    assert 0 < len(enough) < len(found.designs)
    assert found.needed is enough[0]
    assert found.needed.size == min(design.size for design in enough)
    assert found.would_do is None
    expected = (
        f"{found.needed.subjects} subjects with {found.needed.trials} trials each with every performer are enough"
    )
    assert found.words().startswith(expected)
    assert "finds A and B different in" in found.words()


def test_where_no_design_is_enough_it_is_said_what_would_be():
    found = plan(three(), fit=LOGISTIC, subjects=[8, 16], trials_each=[20], half_width=0.05, studies=100)
    assert found.needed is None
    subjects, trials = found.would_do
    assert trials == 20
    again = plan(three(), fit=LOGISTIC, subjects=[subjects], trials_each=[trials], half_width=0.05, studies=100)
    assert again.designs[0].half_width == pytest.approx(0.05, rel=0.1)
    assert f"about {subjects} subjects with 20 trials each should do" in found.words()


def test_what_would_do_follows_the_root_of_subjects_and_students_t():
    design = StudyDesign(10, 5, {"w": 0.1}, {"w": 0.2}, {}, {})
    found = GoldPlan((design,), target=0.05, level=0.95, studies=100, seed=0, spreads={}, correlations={}, percent=True)
    subjects, _ = found.would_do
    reached = 0.1 * np.sqrt(10 / subjects) * student(0.95, subjects - 1) / student(0.95, 9)
    assert reached <= 0.05
    assert reached == pytest.approx(0.05, rel=0.05)


def test_designs_do_not_depend_on_which_others_are_tried():
    alone = plan(three(), fit=LOGISTIC, subjects=[16], trials_each=[10], studies=40)
    assert alone.designs[0] in planned().designs


def test_all_designs_are_planned_with_the_curve_of_larger_studies():
    pilot = three(subjects=8)
    performer = pilot_study_of(pilot, FitOptions()).performers[1]
    assert (performer.fit.kind, performer.planned.kind) == ("logistic", "spline")
    found = plan(pilot, subjects=[8, 12, 18, 32], trials_each=[20], studies=100)
    widths = [one.half_width for one in found.designs]
    assert widths == sorted(widths, reverse=True)
    assert any("spline" in note for note in found.notes)


def test_a_kind_that_is_asked_for_is_planned_with():
    found = pilot_study_of(three(subjects=8), LOGISTIC).performers
    assert {one.planned.kind for one in found} == {"logistic"}


def test_the_half_width_is_a_share_of_the_metrics_width():
    rng = np.random.default_rng(3)
    x = rng.random((12, 20)).round(2)
    y = np.clip(5 - 3 * x + rng.standard_normal((12, 1)) * 0.4 + rng.standard_normal(x.shape), 0, 7)
    pilot = study(x, y, np.repeat(np.arange(12), 20), kind="scores", upper=7.0)
    assert plan(pilot, subjects=[8], trials_each=[10], half_width=0.1).target == pytest.approx(0.7)


@pytest.mark.parametrize("kind", ["spline", "linear", "polynomial", "isotonic"])
def test_every_kind_of_curve_can_be_planned_with(kind):
    found = plan(three(), fit=FitOptions(kind=kind), subjects=[8], trials_each=[20], studies=40)
    assert 0 < found.designs[0].half_width < 0.5


def test_unbounded_scores_can_be_planned_with():
    rng = np.random.default_rng(1)
    x = rng.random((20, 20)).round(2)
    y = 30 - 10 * x + 3 * rng.standard_normal((20, 1)) + 4 * rng.standard_normal(x.shape)
    pilot = study(x, y, np.repeat(np.arange(20), 20), kind="scores", upper=None)
    found = plan(pilot, fit=FitOptions(kind="linear"), subjects=[25], trials_each=[20], half_width=2.0)
    # In the middle: t times the root of (9 + 16 / 20) / 25, and more towards the ends.
    assert found.designs[0].half_width == pytest.approx(student(0.95, 24) * np.sqrt(9.8 / 25), rel=0.25)


# how it is told


def test_the_frame_has_a_row_for_each_design_smallest_first():
    frame = planned().frame()
    assert frame.columns[:5] == ["subjects", "trials", "half_width", "worst", "mass_half_width"]
    assert frame.columns[5:] == ["power, A and wizards", "power, B and wizards", "power, A and B"]
    assert frame.select("subjects", "trials").rows() == [(8, 10), (16, 10), (8, 30), (16, 30)]
    assert frame.select((pl.col("worst") >= pl.col("half_width")).all()).item()


def test_the_plan_is_plain_json():
    found = plan(three(), fit=LOGISTIC, subjects=[8], trials_each=[10], studies=20)
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert shown["needed"] is None
    assert shown["would_do"] == {"subjects": found.would_do[0], "trials": 10}
    assert shown["designs"][0]["performers"].keys() == {"wizards", "A", "B"}
    assert shown["spread"].keys() == {"wizards", "A", "B"}
    assert shown["correlation"].keys() == {"A and B"}


def test_progress_is_told():
    heard = []
    plan(three(), fit=LOGISTIC, subjects=[8], trials_each=[5, 10], studies=20, step=lambda *said: heard.append(said))
    assert heard == [("simulating studies", done, 2) for done in (0, 1, 2)]


def test_a_pilot_without_subjects_is_said_to_hide_how_they_differ():
    pilot = three()
    pilot = replace(pilot, subject=np.arange(len(pilot)), subjects=tuple(map(str, range(len(pilot)))), independent=True)
    found = plan(pilot, fit=LOGISTIC, subjects=[50], trials_each=[1], studies=20)
    assert "names no subjects" in found.notes[-1]
    assert set(found.spreads.values()) == {0.0}


def test_a_pilot_of_few_subjects_is_said_to_be_rough():
    found = plan(three(subjects=3), fit=LOGISTIC, subjects=[8], trials_each=[10], studies=20)
    assert any("known from 3 subjects only" in note for note in found.notes)


def test_performers_without_a_common_range_are_refused():
    pilot = three()
    with pytest.raises(DataError, match="no range of x in common"):
        plan(replace(pilot, x=pilot.x + 2 * (pilot.performer == 2)), fit=LOGISTIC)
