from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from demur.core.show import terminal
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.terminal import column_widths, fit_table, width_in_lines, with_short_words

NAMES = [f"family/a-model-with-a-long-name-{size}b" for size in (7, 13, 70)]
LONG = ResultTable(
    "Long", ("system", "verdict in words", "p"), tuple((name, "errs less at first", "0.5") for name in NAMES)
)


def shown(table, width):
    text = StringIO()
    told = Presentation("T", (), (table,), (), lambda: None, {})
    terminal.show(told, Console(file=text, width=width), tables=True)
    return text.getvalue()


@pytest.mark.parametrize("width", [200, 70, 60, 45])
def test_a_table_breaks_only_between_words_and_fits(width):
    text = shown(LONG, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for word in ("verdict", "words", "less", "first"):
        assert word in text.split()


def test_names_too_long_for_the_terminal_are_cut_in_the_middle_and_stay_apart():
    cut = with_short_words(LONG, 45)
    names = [row[0] for row in cut.rows]
    assert len(set(names)) == 3
    assert all("…" in name for name in names)
    assert with_short_words(LONG, 200) == LONG


def test_widths_share_the_room_and_names_come_first():
    table = ResultTable("T", ("a", "b"), (("two words", "more words here"),))
    assert column_widths(table, 40) == [9, 15]
    assert column_widths(table, 4 + 9 + 6) == [9, 6]
    assert column_widths(table, 5) == [None, None]


def test_the_brief_form_is_shown_where_the_whole_is_crowded_or_too_wide():
    brief = ResultTable("Brief", ("a",), (("1",),))
    whole = ResultTable("Whole", ("one", "two"), (("x" * 30, "y" * 30),), brief=brief)
    crowded = ResultTable("Whole", ("a",), (("x",),), brief=brief, crowded=True)
    assert "Whole" in shown(whole, 80)
    assert "Brief" in shown(whole, 60)
    assert "Brief" in shown(crowded, 80)


@pytest.mark.parametrize("label", ["模型" * 100, "x" * 200, "a name of many words " * 10, "نموذج-لغوي-" * 18])
def test_labels_of_200_characters_in_any_script_leave_numbers_whole_and_in_sight(label):
    rows = ((label, "0.1234 (0.1000 to 0.1500)", "12.3 %"), ("short", "0.2000 (0.1500 to 0.2500)", "4.5 %"))
    lines = shown(ResultTable("T", ("system", "AUGRC", "error"), rows), 80).splitlines()
    assert max(map(cell_len, lines)) <= 80
    for numbers in (row[1:] for row in rows):
        assert any(all(number in line for number in numbers) for line in lines)


@pytest.mark.parametrize("width", [11, 12, 13, 18, 24])
def test_no_line_ends_inside_a_percentage_or_a_p_value(width):
    text = StringIO()
    told = Presentation("T", ("At most 5 % of all are wrong, p = 0.01, p < 0.001.",), (), (), lambda: None, {})
    terminal.show(told, Console(file=text, width=width))
    assert all(part in text.getvalue() for part in ("5 %", "p = 0.01", "p < 0.001"))
    assert max(map(len, text.getvalue().splitlines())) <= width


def test_wide_characters_take_no_room_from_other_names():
    rows = tuple((name, "0.1234", "12.3 %") for name in ("模型" * 20, "a-model-of-26-characters-x"))
    text = shown(ResultTable("T", ("system", "AUGRC", "error"), rows), 46)
    assert "a-model-of-26-characters-x" in text
    assert "…" in text


def test_a_name_of_a_hundred_thousand_characters_is_cut_at_once():
    table = ResultTable("", ("system", "rows"), (("ab" * 50_000, "3"),))
    assert width_in_lines(fit_table(table, 80)) <= 80


def test_names_of_pairs_are_cut_before_numbers_break():
    rows = (("a system with many settings in its name", "another one with as many", "-0.0430 (-0.0584 to -0.0276)"),)
    lines = shown(ResultTable("Pairs", ("a", "b", "difference"), rows), 60).splitlines()
    assert sum("-0.0430 (-0.0584 to -0.0276)" in line for line in lines) == 1
