"""Files of totals: what is written is read back, parts add up to the whole, and no damaged file gives a number."""

import io
import json
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from demur.errors import DataError, UsageError
from demur.returns.counting import tallies_of_frame
from demur.returns.measures import RETURNS, term_measures
from demur.returns.sweep_files import (
    SweepFile,
    called_after_files,
    merged,
    parsed_sweep,
    read_sweep,
    read_sweeps,
    rules_of,
)
from demur.returns.table import Reading, responses
from demur.returns.tally import UNIT_LEVELS, UNITS, ConfidenceGrid, Tally, summed_units
from reference.rows import PROBABILITIES, SCORES, Row, arrays, tables

RULES = rules_of(Reading())
NAMES = st.sampled_from(["guide", "Führer", "导游", "a b/c", "🙂", ""])
WEIGHTS = st.sampled_from([1, 0.5, 2, 3.25, 0.1])


def tally_of(rows, *, system="guide", part=None, units=False, clustered=False):
    """The tally of a few rows; with units, row k stands in bucket k % 5."""
    table = arrays(rows)
    weight = table.weight
    return Tally(
        system=system,
        part=part,
        sweep=table.sweep(),
        failed=0,
        unanswered=int((~table.answered).sum()),
        out_of_scope=sum(not row.right for row in rows) // 2,
        squares=float((weight**2).sum()),
        clustered=clustered,
        units=units_of(rows) if units else None,
    )


def units_of(rows):
    cells = [
        {
            "bucket": place % 5,
            "confidence": row.confidence + 0.0 if row.answered else None,
            "right": row.weight * (row.answered and row.right),
            "wrong": row.weight * (row.answered and not row.right),
            "withheld": row.weight * (not row.answered),
            "least": place % 5 * 1000,
        }
        for place, row in enumerate(rows)
    ]
    return summed_units([pl.DataFrame(cells, schema=UNITS)])


def assert_same(one, other):
    assert one.sweep == other.sweep
    assert one.sweep.digest() == other.sweep.digest()
    for name in ("system", "part", "n", "failed", "unanswered", "out_of_scope", "squares", "clustered"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.units is None) == (other.units is None)
    if one.units is not None:
        assert one.units.sort(pl.all()).equals(other.units.sort(pl.all()))
    assert one.terms.keys() == other.terms.keys()
    for key, totals in one.terms.items():
        assert_array_equal(totals, other.terms[key])


def file_of(*tallies, name="part.sweep", **told):
    return SweepFile(tuple(tallies), **{"reading": RULES, "name": name, **told})


def kept(*tallies):
    return parsed_sweep(SweepFile(tallies, RULES).to_bytes(), name="part.sweep")


def rows_of(*pairs):
    return [Row(*pair) for pair in pairs]


SMALL = rows_of((0.2, False), (0.5, True), (0.5, False), (0.9, True), (0.9, True), (0.0, False, False))


@given(st.lists(tables(SCORES), min_size=1, max_size=3), NAMES)
def test_what_is_written_is_read_back(parts, system):
    tallies = [tally_of(rows, system=system, part=f"domain={place}") for place, rows in enumerate(parts)]
    for before, after in zip(tallies, kept(*tallies).tallies, strict=True):
        assert_same(before, after)


@given(tables(SCORES, weights=WEIGHTS), tables(SCORES), st.booleans())
def test_weights_and_units_are_read_back(weighted, plain, clustered):
    tallies = [tally_of(weighted, units=True, clustered=clustered), tally_of(plain, system="other")]
    for before, after in zip(tallies, kept(*tallies).tallies, strict=True):
        assert_same(before, after)


@given(tables(SCORES, largest=30), st.integers(0, 6))
def test_joined_confidences_and_their_exact_totals_are_read_back(rows, cells):
    tally = tally_of(rows).joined(ConfidenceGrid.over(4.0, cells))
    assert_same(tally, kept(tally).tallies[0])


def test_infinite_totals_are_read_back():
    tally = with_brier(tally_of(rows_of((-np.inf, True), (0.5, True))).joined(ConfidenceGrid.over(1.0, 1)), np.inf)
    assert_same(tally, kept(tally).tallies[0])


def with_brier(tally, value):
    """The tally with a total of the Brier score such as an engine gives where confidences are infinite."""
    totals = tally.terms["brier"].copy()
    totals[0] = value
    return replace(tally, terms={**tally.terms, "brier": totals})


def test_equal_content_gives_equal_bytes():
    whole = tally_of(SMALL, units=True)
    sweep = whole.sweep
    small = replace(sweep, right=sweep.right.astype(np.uint8), wrong=sweep.wrong.astype(np.float64))
    turned = replace(whole, sweep=small, units=whole.units.reverse())
    assert SweepFile((whole,), RULES).to_bytes() == SweepFile((turned,), RULES).to_bytes()


def test_the_header_can_be_read_by_people(tmp_path):
    tally = tally_of(SMALL, system="Führer", part="domain=Kunst")
    SweepFile((tally,), RULES, ("a.parquet",), ("so it is",), ("beware",)).write(tmp_path / "a.sweep")
    with zipfile.ZipFile(tmp_path / "a.sweep") as archive:
        assert archive.namelist() == ["sweep.json", "levels.parquet"]
        text = archive.read("sweep.json").decode()
        levels = pl.read_parquet(io.BytesIO(archive.read("levels.parquet")))
    assert '"system": "Führer"' in text
    header = json.loads(text)
    assert (header["format"], header["version"], header["sources"]) == ("demur sweep", 2, ["a.parquet"])
    assert header["reading"]["out_of_scope"] == ["oos", "out_of_scope"]
    assert header["tallies"] == [
        {
            "system": "Führer",
            "slice": "domain=Kunst",
            "n": 6,
            "failed": 0,
            "unanswered": 1,
            "out_of_scope": 1,
            "squares": 6,
            "clustered": False,
            "right": 3,
            "wrong": 2,
            "withheld_weight": 1,
            "terms": {},
            "cutoffs": 3,
            "units": None,
            "view": "answers",
        }
    ]
    assert levels.rows() == [(0, 0.2, None, 0, 1), (0, 0.5, None, 1, 1), (0, 0.9, None, 2, 0)]
    read = read_sweep(tmp_path / "a.sweep")
    assert (read.sources, read.notes, read.warnings) == (("a.parquet",), ("so it is",), ("beware",))
    assert read.reading == RULES


@given(tables(SCORES, smallest=3, largest=40), st.data())
def test_merged_parts_are_the_whole(rows, data):
    cuts = sorted({0, *data.draw(st.lists(st.integers(1, len(rows) - 1), max_size=5)), len(rows)})
    parts = [kept(tally_of(rows[start:stop])) for start, stop in pairwise(cuts)]
    whole = tally_of(rows)
    both = merged(parts).tallies[0]
    assert_same(replace(both, out_of_scope=0), replace(whole, out_of_scope=0))
    for measure in RETURNS.values():
        if not hasattr(measure, "terms"):
            assert_array_equal(measure.finish(both.sweep), measure.finish(whole.sweep))


@given(tables(PROBABILITIES, weights=WEIGHTS, smallest=10, largest=40))
def test_merged_parts_with_units_are_the_whole(rows):
    whole = tally_of(rows, units=True)
    both = merged([kept(tally_of(rows[:5], units=True)), kept(tally_of(rows[5:], units=True))]).tallies[0]
    assert both.sweep.digest() == whole.sweep.digest()
    assert both.sweep.total == pytest.approx(whole.sweep.total)
    assert both.units["bucket"].equals(whole.units["bucket"])
    assert both.units["right"].to_list() == pytest.approx(whole.units["right"].to_list())
    assert both.units["least"].equals(whole.units["least"])
    assert both.dialogues == whole.dialogues


@settings(max_examples=settings.default.max_examples // 2)
@given(tables(PROBABILITIES, smallest=10, largest=60), st.integers(1, 5), st.integers(1, 5))
def test_exact_totals_of_joined_parts_are_those_of_the_rows(rows, first, second):
    parts = [
        tally_of(rows[:5]).joined(ConfidenceGrid.over(1.0, first)),
        tally_of(rows[5:]).joined(ConfidenceGrid.over(1.0, second)),
    ]
    both = merged([kept(part) for part in parts]).tallies[0]
    whole = tally_of(rows)
    for key, measure in term_measures().items():
        assert both.totals(key, measure) == pytest.approx(whole.totals(key, measure))
    x, y = both.sweep.rates
    exact = set(zip(*(rates.tolist() for rates in whole.sweep.rates), strict=True))
    assert set(zip(x.tolist(), y.tolist(), strict=True)) <= exact


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(tables(SCORES, weights=WEIGHTS), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(parts, random):
    files = [file_of(tally_of(rows, units=True), name=f"{place}.sweep") for place, rows in enumerate(parts)]
    one, other = merged(files), merged(random.sample(files, len(files)))
    assert_same(one.tallies[0], other.tallies[0])
    assert SweepFile(one.tallies, RULES).to_bytes() == SweepFile(other.tallies, RULES).to_bytes()


def test_many_levels_of_units_are_joined_as_in_one_count_of_all_rows():
    rng = np.random.default_rng(1)
    n = 2 * UNIT_LEVELS
    rows = {
        "id": [str(k) for k in range(n)],
        "dialogue": [str(k // 7) for k in range(n)],
        "confidence": rng.random(n),
        "correct": rng.random(n) < 0.8,
    }
    frame = responses(pl.DataFrame(rows)).frame
    parts = [frame.slice(start, 500) for start in range(0, n, 500)]
    whole, both = tallies_of_frame(frame), merged([file_of(*tallies_of_frame(part)) for part in parts]).tallies
    assert whole[0].units["confidence"].n_unique() < UNIT_LEVELS < sum(part.height for part in parts)
    assert_same(whole[0], both[0])
    assert both[0].dialogues == whole[0].dialogues


def test_infinite_totals_are_added_in_silence():
    rows = rows_of((np.inf, True), (0.5, True))
    parts = [with_brier(tally_of(rows).joined(ConfidenceGrid.over(1.0, 1)), sign * np.inf) for sign in (1, -1)]
    both = merged([file_of(part) for part in parts]).tallies[0]
    assert np.isnan(both.terms["brier"][0])
    assert_same(both, kept(both).tallies[0])


def test_sixty_files_are_merged(tmp_path):
    rng = np.random.default_rng(0)
    confidence, right = rng.random(1200).round(3), rng.random(1200) < 0.7
    rows = rows_of(*zip(confidence.tolist(), right.tolist(), strict=True))
    for place in range(60):
        part = tally_of(rows[20 * place : 20 * place + 20])
        SweepFile((part,), RULES, (f"{place:03}.parquet",)).write(tmp_path / f"{place:03}.sweep")
    heard = []
    files = read_sweeps(str(tmp_path / "*.sweep"), step=lambda *said: heard.append(said))
    whole = merged(files)
    assert whole.tallies[0].sweep == tally_of(rows).sweep
    assert len(whole.sources) == 60
    assert heard[0] == ("reading", 0, 60)
    whole.write(tmp_path / "whole.sweep")
    assert_same(read_sweep(tmp_path / "whole.sweep").tallies[0], whole.tallies[0])


def test_systems_keep_their_order_and_slices_are_sorted():
    def tallies(system, *parts):
        return [tally_of(SMALL, system=system, part=part) for part in (None, *(f"domain={part}" for part in parts))]

    both = merged([file_of(*tallies("b", "z", "c")), file_of(*tallies("a", "z"), *tallies("b", "a"))])
    assert [(tally.system, tally.part, tally.n) for tally in both.tallies] == [
        ("b", None, 12),
        ("b", "domain=a", 6),
        ("b", "domain=c", 6),
        ("b", "domain=z", 6),
        ("a", None, 6),
        ("a", "domain=z", 6),
    ]


def test_parts_of_one_system_may_get_one_name():
    files = [
        file_of(tally_of(SMALL, system=name), name=f"{name}.sweep", sources=(f"x/{name}.csv.gz",)) for name in "ab"
    ]
    assert called_after_files(files)
    assert not called_after_files(files[:1])
    assert not called_after_files([file_of(*file.tallies) for file in files])
    assert [(tally.system, tally.n) for tally in merged(files, system="guide").tallies] == [("guide", 12)]
    assert [(tally.system, tally.n) for tally in merged(files).tallies] == [("log", 12)]
    assert [(tally.system, tally.n) for tally in merged(files, apart=True).tallies] == [("a", 6), ("b", 6)]
    so_far = merged([file_of(tally_of(SMALL, system=f"day-{k}"), sources=(f"day-{k}.csv",)) for k in (1, 2)])
    tomorrow = file_of(tally_of(SMALL, system="day-3"), name="day-3.sweep", sources=("day-3.csv",))
    assert [(tally.system, tally.n) for tally in merged([so_far, tomorrow]).tallies] == [("day", 18)]
    folders = [
        file_of(tally_of(SMALL, system=name), sources=(f"{name}/p-1.parquet", f"{name}/p-2.parquet")) for name in "AB"
    ]
    assert called_after_files(folders)
    assert "is it one log twice" in merged(folders).warnings[-1]
    with pytest.raises(UsageError, match=r'ab\.sweep holds several systems, so they cannot all be "guide": a, b'):
        merged([file_of(*(tally for file in files for tally in file.tallies), name="ab.sweep")], system="guide")


def test_one_file_merged_is_itself():
    file = file_of(tally_of(SMALL), sources=("a.parquet",), notes=("x",), warnings=("y",))
    alone = merged([file])
    assert_same(alone.tallies[0], file.tallies[0])
    assert (alone.sources, alone.notes, alone.warnings) == (file.sources, file.notes, file.warnings)


def test_notes_and_warnings_say_which_parts_they_are_about():
    told = [("1 row has no id", "so it is"), ("1 row has no id",), ()]
    files = [file_of(tally_of(SMALL), name=f"{place}.sweep", notes=notes) for place, notes in enumerate(told)]
    assert merged(files).notes == ("1 row has no id (in each of 2 parts)", "0.sweep: so it is")


def test_no_files_make_no_sweep():
    with pytest.raises(UsageError, match=r"nothing to merge: name the \.sweep files"):
        merged([])


def test_parts_judged_by_different_rules_are_refused():
    other = {**RULES, "out_of_scope": ["none"]}
    files = [file_of(tally_of(SMALL), name=f"{place}.sweep") for place in range(5)]
    files.append(file_of(tally_of(SMALL), name="other.sweep", reading=other))
    said = (
        r'different rules, so they cannot be added: out_of_scope is \["oos", "out_of_scope"\] in 0\.sweep, 1\.sweep, '
        r'2\.sweep and 2 more; \["none"\] in other\.sweep \(make all parts with the same --out-of-scope\)'
    )
    with pytest.raises(DataError, match=said):
        merged(files)


def test_the_order_in_which_labels_were_given_is_no_other_rule():
    turned = {**RULES, "out_of_scope": RULES["out_of_scope"][::-1]}
    assert len(merged([file_of(tally_of(SMALL)), file_of(tally_of(SMALL), reading=turned)]).tallies) == 1


def test_a_rule_that_one_part_lacks_is_another_rule():
    with pytest.raises(
        DataError, match=r'engine is "x" in a\.sweep; null in b\.sweep \(make all parts in the same way\)'
    ):
        merged(
            [
                file_of(tally_of(SMALL), name="a.sweep", reading={**RULES, "engine": "x"}),
                file_of(tally_of(SMALL), name="b.sweep"),
            ]
        )


def test_parts_sliced_by_different_columns_are_refused():
    sliced = file_of(tally_of(SMALL), tally_of(SMALL, part="domain=a"), name="a.sweep")
    with pytest.raises(DataError, match=r'sliced by "domain" in a\.sweep; no column in b\.sweep .*the same --by'):
        merged([sliced, file_of(tally_of(SMALL), name="b.sweep")])


def test_a_log_in_two_parts_is_refused_unless_it_is_allowed():
    files = [
        file_of(tally_of(SMALL), name="whole.sweep", sources=("1.parquet", "2.parquet")),
        file_of(tally_of(SMALL), name="2.sweep", sources=("2.parquet",)),
    ]
    said = r'"2\.parquet" is in whole\.sweep and 2\.sweep, so it counts 2 times'
    with pytest.raises(DataError, match=rf"{said} \(leave one of them out, or allow repeats"):
        merged(files)
    both = merged(files, allow_repeats=True)
    assert both.tallies[0].n == 12
    assert both.sources == ("1.parquet", "2.parquet")
    assert both.warnings[0] == '"2.parquet" is in whole.sweep and 2.sweep, so it counts 2 times'


def test_dialogues_in_one_part_only_are_refused():
    files = [file_of(tally_of(SMALL, units=True), name="a.sweep"), file_of(tally_of(SMALL), name="b.sweep")]
    with pytest.raises(DataError, match=r'of "guide" there are dialogues or weights in a\.sweep, and none in b\.sweep'):
        merged(files)


def test_a_file_given_twice_is_refused(tmp_path):
    SweepFile((tally_of(SMALL),), RULES).write(tmp_path / "a.sweep")
    with pytest.raises(DataError, match=r"a\.sweep is given twice \(its rows would count twice\)"):
        read_sweeps(tmp_path / "a.sweep", str(tmp_path / "*.sweep"))
    with pytest.raises(DataError, match=r"is a folder, not a file \(try .*\*\.sweep"):
        read_sweeps(tmp_path)
    with pytest.raises(DataError, match=r"b\.sweep does not exist"):
        read_sweeps(tmp_path / "b.sweep")
