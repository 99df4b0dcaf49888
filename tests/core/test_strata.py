"""Stratified samples: variances as in the textbook, replicates within strata, and rows that stand for others."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur
from demur.core.stats.resampling import Rows, Sample, numbered_units
from demur.core.stats.strata import Strata, drawn_apart
from demur.core.stats.sweep import Sweep
from demur.returns.curves import error_band
from demur.returns.measures import Estimate


def textbook_variance(values: list[list[float]], sizes: list[int]) -> float:
    """The variance of a stratified mean whose strata are shares of a sample of all inputs, term by term."""
    total = sum(sizes)
    means = [sum(part) / len(part) for part in values]
    mean = sum(size * one for size, one in zip(sizes, means, strict=True)) / total
    within = 0.0
    for part, one, size in zip(values, means, sizes, strict=True):
        spread = sum((value - one) ** 2 for value in part) / (len(part) - 1)
        within += (size / total) ** 2 * spread / len(part)
    between = sum(size / total * (one - mean) ** 2 for size, one in zip(sizes, means, strict=True)) / total
    return within + between


SCENES = st.lists(
    st.tuples(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.integers(6, 5000)), min_size=1, max_size=4
)


@given(SCENES)
def test_what_units_add_has_the_variance_of_the_textbook(scene: list[tuple[list[float], int]]) -> None:
    values, sizes = [part for part, _ in scene], [size for _, size in scene]
    of = np.repeat(np.arange(len(values)), [len(part) for part in values])
    weight = np.concatenate([np.full(len(part), size / len(part)) for part, size in scene])
    flat = np.concatenate([np.array(part) for part in values])
    mean = float(flat @ weight / weight.sum())
    pulls = Strata(of, weight).centred((flat - mean) * weight / weight.sum())
    expected = textbook_variance(values, sizes)
    found = float(np.square(pulls).sum()) * of.size / max(of.size - 1, 1)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert Estimate.of_units(mean, pulls).error ** 2 <= expected * (1 + 1e-9) + 1e-12


def test_replicates_vary_as_the_textbook_says_and_stand_for_as_many_inputs() -> None:
    rng = np.random.default_rng(1)
    sizes, counts = [4000, 300, 20], [12, 5, 3]
    values = [rng.random(count).tolist() for count in counts]
    of = np.repeat(np.arange(3), counts)
    weight = np.concatenate([np.full(count, size / count) for size, count in zip(sizes, counts, strict=True)])
    drawn = np.concatenate(list(Strata(of, weight).draws(20_000, 0, 1000)))
    totals = drawn @ weight
    means = drawn @ (weight * np.concatenate(values)) / totals
    assert totals == pytest.approx(np.full(totals.size, 4320.0))
    assert means.var() == pytest.approx(textbook_variance(values, sizes), rel=0.05)


def test_strata_of_all_inputs_say_nothing() -> None:
    rows: dict[str, Any] = {"correct": [True, False] * 20, "confidence": [k / 40 for k in range(40)]}
    plain = demur.score(pl.DataFrame(rows), replicates=50).to_dict()
    drawn = pl.DataFrame({**rows, "weight": 1.0, "stratum": [f"s{k // 10}" for k in range(40)]})
    assert demur.score(drawn, replicates=50).to_dict() == plain


def sampled(n: int = 120) -> pl.DataFrame:
    """Rows of three strata that stand for ten times as many, the least confident for twenty times."""
    rng = np.random.default_rng(0)
    confidence = np.sort(rng.random(n)).round(3)
    frame = {"id": [f"{k}" for k in range(n)], "confidence": confidence, "correct": rng.random(n) < confidence}
    stratum = [f"s{3 * k // n}" for k in range(n)]
    return pl.DataFrame({**frame, "stratum": stratum, "weight": [20.0 if one == "s0" else 10.0 for one in stratum]})


def test_a_sample_says_how_many_inputs_it_stands_for() -> None:
    found = demur.score(sampled(), replicates=50)
    assert found.to_dict()["systems"][0]["sample"] == {"rows": 120, "stand_for": 1600.0, "strata": 3}
    assert "120 rows stand for 1,600 inputs" in found.notes[0]


def test_intervals_of_a_stratified_sample_are_narrower_than_those_of_weighted_rows() -> None:
    frame = sampled()
    with_strata, without = (demur.score(one, replicates=400)[0] for one in (frame, frame.drop("stratum")))
    for name in ("forced_error", "augrc"):
        one, two = with_strata.figures[name], without.figures[name]
        assert one.value == two.value
        assert one.high - one.low < two.high - two.low


def test_the_order_of_rows_moves_no_digit() -> None:
    frame = sampled()
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    one, two = (demur.score(rows, replicates=50).to_dict()["systems"] for rows in (frame, shuffled))
    assert one == two


def test_slices_and_filtered_rows_have_no_strata() -> None:
    frame = sampled().with_columns(kind=pl.Series(["a", "b"] * 60))
    whole, *slices = demur.score(frame, by="kind", replicates=50)
    assert whole.stands_for is not None
    assert [one.stands_for for one in slices] == [None, None]
    assert demur.score(frame, where=(("kind", "a"),), replicates=50)[0].stands_for is None


def test_a_column_of_strata_without_weights_is_one_to_slice_by() -> None:
    frame = sampled().drop("weight")
    assert demur.score(frame, replicates=50)[0].stands_for is None
    assert "stratum" in demur.validate(frame).slices
    assert "stratum" not in demur.validate(sampled()).slices


def test_systems_on_one_sample_are_compared_within_strata() -> None:
    frame = sampled()
    other = frame.with_columns(correct=pl.col("correct") | (pl.col("confidence") > 0.3))
    both = pl.concat([frame.with_columns(system=pl.lit("old")), other.with_columns(system=pl.lit("new"))])
    found = demur.compare(both, replicates=50)
    plain = demur.compare(both.drop("stratum"), replicates=50)
    assert found.pairs[0].overall.value == pytest.approx(plain.pairs[0].overall.value)
    assert found.pairs[0].overall.estimate.error < plain.pairs[0].overall.estimate.error
    assert "drawn by strata" in str(found.pairs[0].mcnemar)
    assert any("120 rows stand for 1,600 inputs" in note for note in found.evaluations.notes)


def test_an_engine_sets_strata_aside_and_says_so() -> None:
    found = demur.score(sampled().lazy(), replicates=50)
    assert found[0].stands_for is None
    assert any("strata are not used here" in note for note in found.notes)
    assert found[0].figures["augrc"].value == pytest.approx(
        demur.score(sampled(), replicates=50)[0].figures["augrc"].value
    )


def test_withheld_rows_of_a_stratum_are_one_unit() -> None:
    answered = np.array([True] * 4 + [False] * 6)
    weight = np.array([50.0] * 4 + [1.0] * 6)
    stratum = np.array([0, 0, 1, 1] + [2] * 6)
    rows = Rows(np.linspace(0.1, 1, 10), answered & (np.arange(10) % 2 == 0), answered, weight, None, stratum)
    assert numbered_units(rows).max() == 4
    assert Sample(rows, 50).sweep.withheld == 6
    assert np.asarray(Sample(rows, 200).drawn.withheld).std() < 10


def test_errors_that_a_sample_did_not_show_are_bounded_by_its_heaviest_rows() -> None:
    confidence, right = np.linspace(0, 1, 60), np.ones(60, np.bool_)
    stratum = np.repeat([0, 1], [50, 10])
    even, uneven = (
        Rows(confidence, right, right, np.where(stratum == 1, weight, 10.0), None, stratum) for weight in (10.0, 100.0)
    )
    one, two = (error_band(Sample(rows, 50)).high[0] for rows in (even, uneven))
    assert two > 2 * one
    assert two >= 3 * 100 / 1500 * 0.9  # no error in ten rows of 100: the rule of three


def test_dialogues_within_strata_stay_units_and_others_yield_to_the_rarer_draw() -> None:
    unit, stratum = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    assert drawn_apart(unit, stratum, np.full(4, 9.0)) == (unit, stratum)
    crossing = np.array([0, 1, 0, 1])
    assert drawn_apart(unit, crossing, np.full(4, 100.0)) == (None, crossing)
    assert drawn_apart(unit, crossing, np.full(4, 2.0)) == (unit, None)


def test_very_many_units_are_dealt_within_strata() -> None:
    strata = Strata(np.repeat([0, 1], [50_000, 30]), np.repeat([1.0, 100.0], [50_000, 30]))
    bundle = strata.bundled(20_000, 0)
    joined = strata.joined(bundle)
    assert joined.of.size <= 20_002
    assert joined.totals == pytest.approx(strata.totals)
    assert (joined.of[bundle] == strata.of).all()


def test_a_weight_for_all_does_not_narrow_an_interval() -> None:
    """Ten of the same rows were told from one by nothing but a count of errors that had been weighted."""
    rng = np.random.default_rng(4)
    confidence, right = rng.random(200), rng.random(200) < 0.9
    every = np.ones(200, np.bool_)
    one, ten = (Sample(Rows(confidence, right, every, np.full(200, weight)), 50) for weight in (2.0, 20.0))
    assert one.scarce == pytest.approx(ten.scarce) == pytest.approx(float((~right).sum()))
    assert isinstance(one.sweep, Sweep)


def test_what_judges_left_open_is_never_wrong_even_where_targets_are_there() -> None:
    rows = [
        {"id": f"{k}", "target": "yes", "prediction": "yes" if k % 4 else "no", "confidence": k / 40} for k in range(40)
    ]
    judged = [{**row, "judgement": "right" if k % 4 else "wrong", "correct": bool(k % 4)} for k, row in enumerate(rows)]
    for row in judged[:8]:
        row["judgement"], row["correct"] = "unsure", None
    found = demur.score(judged, replicates=50)
    assert found[0].n == 32
    assert any("8 answers are not judged and left out" in warning for warning in found.warnings)
    open_targets = [{**row, "target": "oos"} if k < 2 else row for k, row in enumerate(judged)]
    assert demur.score(open_targets, replicates=50)[0].n == 32
