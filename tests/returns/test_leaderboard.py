import io
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from demur.core.show.page import lead_table
from demur.core.show.terminal import fit_table, show
from demur.core.stats.resampling import Rows
from demur.errors import UsageError
from demur.returns.charts.comparison import forest_chart, pair_matrix_chart
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import compare
from demur.returns.comparison.contrasts import area_contrast, pair_tests
from demur.returns.presentation import leaderboard_table, of_comparison
from reference.answers import answers, made_up, silent, table

SHARES = (0.5, 0.9, 0.7, 0.88, 0.72, 0.3, 0.6)


def systems(n=400, shares=SHARES):
    return [made_up(f"s{place}", n, seed=place, accuracy=share) for place, share in enumerate(shares)]


@pytest.fixture(scope="module")
def many():
    return compare(table(*systems()), replicates=60)


def test_ranks_are_the_places_that_tests_of_every_two_leave_open(many):
    """By hand: one more than are shown better, and all less those shown worse."""
    board = many.leaderboard
    assert board.tests == len(board.pairs) == 21
    for one in board.standings:
        mine = [pair for pair in board.pairs if one.system in (pair.a, pair.b) and pair.better is not None]
        losses = sum((pair.a if pair.better == "a" else pair.b) != one.system for pair in mine)
        assert one.rank == (1 + losses, 7 - (len(mine) - losses))
    assert {one.system for one in board.standings if one.rank[0] == 1} == {"s1", "s3"}
    assert board.standings[-1].system == "s5"
    assert board.standings[-1].rank == (7, 7)


def test_of_many_systems_only_the_baseline_is_held_against_each_other_one(many):
    assert [(pair.a, pair.b) for pair in many.pairs] == [("s0", f"s{place}") for place in range(1, 7)]
    assert many.pairs[0].overall.tests == 6
    assert many.ranking == ()
    every = compare(table(*systems(60)), replicates=50, every_pair=True)
    assert len(every.pairs) == 21
    board, pairs = of_comparison(every).tables
    assert (len(board.rows), len(pairs.rows)) == (7, 21)
    assert every.ranking


def test_differences_are_those_of_the_pairs_with_the_baseline(many):
    own = {pair.b: pair.area.turned() for pair in many.pairs}
    for one in many.leaderboard.standings:
        if one.system == "s0":
            assert one.difference is None
        else:
            assert one.difference == own[one.system]


def test_a_leader_that_errs_more_at_some_rates_is_not_said_to_be_better_without_more():
    flat = made_up("flat", 2000, seed=1, accuracy=0.8, skill=0.0)
    steep = made_up("steep", 2000, seed=2, accuracy=0.72, skill=5.0)
    worst = made_up("worst", 2000, seed=3, accuracy=0.3, skill=0.5)
    found = compare(table(worst, steep, flat), replicates=200)
    first, _, last = verdicts.comparison_sentences(found)
    assert first == "steep is significantly better overall than all others."
    assert last == "Whether steep makes fewer errors than flat depends on how much is withheld."


@pytest.mark.parametrize(("asked", "chosen"), [(None, "s0"), ("best", "s1"), ("s4", "s4")])
def test_the_baseline_is_the_first_the_best_or_the_one_named(asked, chosen):
    found = compare(table(*systems(80)), replicates=50, baseline=asked, measures={})
    assert found.leaderboard.baseline == chosen
    assert {pair.a for pair in found.pairs} == {chosen}


def test_the_baseline_may_be_named_as_the_table_names_it():
    logs = [made_up(f"results/mmlu_{name}_cot", 40, seed=0) for name in ("one", "two", "three")]
    board = compare(table(*logs), replicates=50, baseline="two").leaderboard
    assert board.baseline == "results/mmlu_two_cot"


def test_an_unknown_baseline_is_refused_with_the_nearest_names():
    with pytest.raises(UsageError, match='no system "s9" to be the baseline; did you mean'):
        compare(table(*systems(20)), replicates=50, baseline="s9")


def test_a_leaderboard_is_sorted_by_what_is_asked_for(many):
    board = many.leaderboard
    by_name = compare(table(*systems(60)), replicates=50, sort="system").leaderboard
    assert [one.system for one in by_name.standings] == sorted(one.system for one in board.standings)
    logs = [made_up(f"run{n}", 40, seed=n) for n in (10, 9, 1)]
    numbered = compare(table(*logs), replicates=50, sort="system").leaderboard
    assert [one.system for one in numbered.standings] == ["run1", "run9", "run10"]
    skill = compare(table(*systems(60)), replicates=50, sort="ranking_skill").leaderboard
    values = [one.figures["ranking_skill"].value for one in skill.standings]
    assert values == sorted(values, reverse=True)
    with pytest.raises(UsageError, match="sorted by rank, augrc"):
        compare(table(*systems(20)), replicates=50, sort="colour")


@pytest.mark.parametrize("paired", [True, False])
def test_tests_of_many_pairs_are_those_of_each_pair(paired):
    logs = [made_up(name, 60, seed=k, withheld=0.1 * k) for k, name in enumerate("abcd")]
    rows = {name: Rows.from_frame(table(log).frame) for name, log in zip("abcd", logs, strict=True)}
    found = pair_tests(rows, list(combinations("abcd", 2)), paired=paired, level=0.95, region=(0.0, 1.0))
    for one in found:
        alone = area_contrast(rows[one.a], rows[one.b], paired=paired)
        assert one.overall == replace(alone, tests=one.overall.tests)


@pytest.fixture(scope="module")
def silent_among_others():
    logs = systems(200, shares=(0.7, 0.8, 0.9))
    return compare(table(*logs, silent(logs[0], "mute")), replicates=50)


def test_a_silent_system_comes_last_and_is_named(silent_among_others):
    found = silent_among_others
    assert found.leaderboard.standings[-1].system == "mute"
    assert found.leaderboard.standings[-1].rank == (4, 4)
    assert "mute answers nothing." in of_comparison(found).sentences
    assert found.leaderboard.standings[-1].verdict == "worse"
    assert {"–"} == set(leaderboard_table(found).rows[-1][3:5])
    forest = forest_chart(found).to_dict()["datasets"]
    sides = {row["system"]: row["side"] for rows in forest.values() for row in rows if "side" in row}
    assert sides["mute"] == "significantly worse"
    assert "mute undefined" in forest_chart(found).to_dict()["description"]
    pair_matrix_chart(found)


def forms(board):
    """The forms of a table, the widest first."""
    while board is not None:
        yield board
        board = board.brief


def test_what_a_leaderboard_is_sorted_by_stands_in_each_of_its_forms():
    found = compare(table(*systems(60)), replicates=50, sort="ranking_skill")
    for form in forms(leaderboard_table(found)):
        assert "sorted by ranking skill" in form.title
        values = [float(row[form.columns.index("ranking skill")]) for row in form.rows]
        assert values == sorted(values, reverse=True)


def test_the_interval_of_a_difference_goes_last_of_all_intervals(many):
    found = [fit_table(leaderboard_table(many), width) for width in (190, 100, 75)]
    spans = [[" to " in row[3] for row in one.rows if row[3] != "baseline"] for one in found]
    assert [len(one.columns) for one in found] == [10, 5, 5]
    assert [set(one) for one in spans] == [{True}, {True}, {False}]
    page = lead_table(of_comparison(many))
    assert page.rows == found[1].rows


def test_a_system_without_an_area_takes_no_further_line(silent_among_others):
    board = leaderboard_table(silent_among_others)
    assert board.rows[-1][2] == "undefined (nothing was answered, so there is no curve)"
    assert fit_table(board, 80).rows[-1][2] == "undefined"


def nearly_silent(rows, system, answered=3):
    """The same inputs, few of them answered, and those rightly."""
    spoken = [row | {"system": system, "correct": True} for row in rows[:answered]]
    return [*spoken, *silent(rows[answered:], system)]


def test_the_best_baseline_is_no_system_that_answers_next_to_nothing():
    logs = systems(200, shares=(0.7, 0.9))
    found = compare(table(*logs, nearly_silent(logs[0], "hush")), replicates=50, baseline="best")
    areas = {one.system: one.figures["augrc"].value for one in found.evaluations}
    assert min(areas, key=areas.get) == "hush"
    assert found.leaderboard.baseline == "s1"


def test_leaders_that_trade_errors_against_right_answers_are_not_said_to_be_alike():
    """b withholds half by itself and makes fewer errors on the rest; a gives more right answers."""
    rng = np.random.default_rng(3)
    hard, right = rng.random(1000) < 0.5, rng.random(1000) < 0.6
    a, b = answers("a", rng.random(1000), right), answers("b", rng.random(1000), right | (rng.random(1000) < 0.5))
    b = [one if aside else row for row, one, aside in zip(b, silent(b, "b"), hard, strict=True)]
    lead, against, *_ = of_comparison(compare(table(a, b, silent(a, "c")), replicates=50)).sentences
    assert lead == "b and a lead, none of them significantly better than another in both errors and right answers."
    assert "b is significantly better in errors and worse in right answers than a" in against


def test_leaders_come_by_rank_and_the_baseline_with_counts_however_the_table_is_sorted(many):
    first, second, *_ = verdicts.comparison_sentences(compare(table(*systems()), replicates=60, sort="system"))
    assert [first, second] == verdicts.comparison_sentences(many)[:2]
    assert first == "s1 and s3 lead, with no significant difference between them after correction for 21 tests."
    counts = r"\d of 6 other systems are significantly better than s0, the baseline; \d (is|are) significantly worse.*"
    assert re.fullmatch(rf"{counts} \(corrected for 6 tests\)\.", second)


def test_of_many_leaders_the_first_are_named():
    logs = [made_up(name, 200, seed=0, accuracy=0.8 if name < "g" else 0.2) for name in "abcdefg"]
    tested = "with no significant difference between them after correction for 21 tests"
    lead = f"6 of 7 systems lead, {tested}; the first are a, b and c"
    assert verdicts.comparison_title(compare(table(*logs), replicates=50)) == lead


def test_systems_that_are_alike_do_not_lead():
    logs = [made_up(name, 40, seed=0, accuracy=0.8) for name in "abcdefg"]
    first, second = verdicts.comparison_sentences(compare(table(*logs), replicates=50))
    assert first == "No significant difference between any two of 7 systems after correction for 21 tests."
    assert second.startswith("None of the 6 other systems is significantly different from a, the baseline (")
    title = verdicts.comparison_title(compare(table(*logs[:3]), replicates=50))
    assert title == "3 systems: no significant difference between a, b and c"


def test_of_many_systems_the_terminal_has_one_table_and_at_most_three_sentences(many):
    shown = of_comparison(many)
    assert len(shown.sentences) <= 3
    assert len(shown.tables) == 1
    assert shown.tables[0].columns[:2] == ("rank", "system")
    assert [figure.name for figure in shown.figures] == ["comparison", "forest", "pair_matrix"]
    assert shown.data().height == 7


def test_ranks_of_equal_systems_are_all_open_as_a_rule():
    rng = np.random.default_rng(3)
    logs = [made_up(f"s{k}", 150, seed=int(rng.integers(1e6)), accuracy=0.7) for k in range(6)]
    ranks = {one.rank for one in compare(table(*logs), replicates=50, measures={}).leaderboard.standings}
    assert ranks == {(1, 6)}


LONG = "runs/mmlu_{}-with-a-name-of-very-many-words-that-never-ends_cot.v2"


@pytest.fixture(scope="module")
def long_names():
    logs = [made_up(LONG.format(name), 60, seed=k, accuracy=0.5 + 0.05 * k) for k, name in enumerate("кзxyzw通")]
    return compare(table(*logs), replicates=50)


def test_what_all_names_share_is_left_out_wherever_systems_are_shown_and_said_once(long_names):
    shown = of_comparison(long_names)
    said = [note for note in shown.notes if note.startswith("names share")]
    assert said == [
        'names share the prefix "runs/mmlu_" and the suffix "-with-a-name-of-very-many-words-that-never-ends_cot.v2"'
    ]
    text = str([shown.sentences, shown.tables[0], shown.notes[1:]])
    assert "runs/mmlu" not in text
    assert next(iter(shown.tables[0].rows))[1] == "通"
    assert shown.document["baseline"] == LONG.format("к")
    assert set(shown.data()["system"]) == {LONG.format(name) for name in "кзxyzw通"}


@pytest.mark.parametrize("width", [60, 80, 140])
def test_long_and_foreign_names_push_no_number_off_the_leaderboard(width):
    names = ["通义千问" * 12, "я" * 200, "short", "a-b" * 30, "m" * 50, "n" * 50]
    found = compare(table(*(made_up(name, 60, seed=k) for k, name in enumerate(names))), replicates=50)
    console = Console(width=width, file=io.StringIO())
    show(of_comparison(found), console)
    lines = console.file.getvalue().splitlines()
    assert max(map(cell_len, lines[3:])) <= width
    if width >= 80:
        numbered = [line for line in lines if re.search(r"0\.\d{4} \(0\.\d{4} to 0\.\d{4}\)", line)]
        assert len(numbered) == len(names)


def test_a_reading_that_ties_keep_from_the_share_asked_for_says_so_in_the_leaderboard():
    logs = [[row | {"confidence": 0.5} for row in made_up(f"s{k}", 100, seed=k)] for k in range(3)]
    board = of_comparison(compare(table(*logs), replicates=50)).tables[0]
    at = board.columns.index("error at 20 % non-return")
    assert all(" at 0 %" in row[at] for row in board.rows)


@pytest.mark.parametrize("unpaired", [False, True])
def test_replicates_drawn_a_few_systems_at_a_time_give_the_same_bands(unpaired, monkeypatch):
    logs = table(*systems(80))
    whole = compare(logs, replicates=50, unpaired=unpaired, measures={})
    monkeypatch.setattr("demur.returns.comparison.compare.DRAWN_TOGETHER", 2)
    parts = compare(logs, replicates=50, unpaired=unpaired, measures={})
    assert all(one.frame().equals(two.frame()) for one, two in zip(whole.pairs, parts.pairs, strict=True))
