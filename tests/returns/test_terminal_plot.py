import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from demur.core.stats.sweep import Sweep
from demur.returns.curves import error_return
from demur.returns.evaluate import evaluate
from demur.returns.live import BLANK_BRAILLE, Moment, plot, screen, status, update_lines
from demur.returns.table import responses

FALLING = error_return(Sweep.of([0.1, 0.3, 0.6, 0.9], [False, True, True, True]), name="guide")
"""A quarter of the answers is wrong, the least sure one: the curve falls to 0 at a quarter."""


def lines(*curves, **options):
    return plot(curves, **{"width": 60, "height": 12, **options}).plain.split("\n")


def random_curve(seed, *, withheld=0, name="guide"):
    rng = np.random.default_rng(seed)
    return error_return(Sweep.of(rng.random(50), rng.random(50) < 0.7, withheld=withheld), name=name)


def test_the_axes_are_named_and_have_round_rates():
    drawn = lines(FALLING)
    assert drawn[0].startswith(" error")
    assert " non-return " in drawn[-2]
    assert drawn[-1].split("%")[0].strip() == "0"
    assert "100 %" in drawn[-1]
    assert [row.split("%")[0].strip() for row in drawn[1:-2] if "%" in row][-1] == "0"


def test_the_curve_starts_at_its_error_rate_and_falls_to_the_axis():
    rows = [row[8:] for row in lines(FALLING, braille=False)[1:-2]]
    assert rows[0].startswith("*")
    assert rows[-1].rstrip("*").strip("* ") == ""
    assert len(rows[-1]) == 52
    bends = rows[-1].index("*")
    assert bends == pytest.approx(0.25 * 52, abs=2)


def test_the_point_of_interest_is_marked_on_the_curve_and_its_rate_told():
    drawn = lines(FALLING, mark=0.25, braille=False)
    assert "guide: 0 % at 25 %" in drawn[0]
    row = next(row for row in drawn[1:] if "@" in row)
    assert row.index("@") == 8 + round(0.25 * 51)
    assert drawn[1:-2].index(row) == len(drawn[1:-2]) - 1
    assert sum(":" in row for row in drawn[1:-2]) >= 6


def test_where_ties_leave_no_cutoff_at_the_mark_the_point_is_the_nearest_below():
    """Ten answers of two confidences, the four lower ones wrong: at 20 % the cutoff is that at 0 %."""
    heaped = error_return(Sweep.of([0.5] * 4 + [0.9] * 6, [False] * 4 + [True] * 6), name="guide")
    drawn = lines(heaped, mark=0.2, braille=False)
    assert "guide: 40 % at 0 %" in drawn[0]
    assert next(row for row in drawn[1:] if "@" in row).index("@") == 8


def test_a_curve_that_starts_right_of_the_mark_says_so():
    late = random_curve(0, withheld=50)
    drawn = lines(late, mark=0.2)
    assert "guide: starts at 50 %" in drawn[0]
    assert "●" not in "".join(drawn)


def test_systems_differ_in_colour_and_dash_and_without_braille_in_their_letters():
    pair = [random_curve(0, name="one"), random_curve(1, name="two")]
    text = plot(pair, width=60, height=12)
    assert len({span.style for span in text.spans} - {"dim", "default"}) == 2
    first, second = (plot([curve, curve][place:], width=60, height=12) for place, curve in enumerate(pair))
    assert first.plain != second.plain
    letters = "".join(lines(*pair, braille=False))
    assert "*" in letters
    assert "+ two" in letters


def test_plain_ascii_is_enough_where_there_is_no_braille():
    drawn = "\n".join(lines(random_curve(0, name="führer-der-Besucher-" * 5), braille=False, mark=0.2))
    assert drawn.isascii()
    assert any(ord(sign) > BLANK_BRAILLE for sign in "".join(lines(FALLING)))


@given(
    st.integers(1, 130), st.integers(1, 60), st.integers(0, 5), st.sampled_from([0, 20]), st.booleans(), st.floats(0, 1)
)
def test_every_plot_fits_the_room_it_is_given(width, height, systems, withheld, braille, mark):
    curves = [random_curve(k, withheld=withheld, name=f"system {k}") for k in range(systems)]
    drawn = lines(*curves, width=width, height=height, braille=braille, mark=mark)
    assert len(drawn) == max(height, 7)
    assert max(map(len, drawn)) <= max(width, 40)


@pytest.mark.parametrize("right", [True, False])
def test_a_system_that_never_or_always_errs_is_drawn(right):
    drawn = lines(error_return(Sweep.of([0.2, 0.8], [right, right])))
    assert ("100 %" in drawn[1]) is not right


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    rows = [
        {
            "system": f"system {k % 2}",
            "target": "a",
            "prediction": "ab"[int(rng.random() < 0.3)] if k % 10 else None,
            "confidence": float(rng.random()),
        }
        for k in range(400)
    ]
    return evaluate(responses(rows), replicates=50)


def moment(evaluations, **options):
    return Moment("run.jsonl", evaluations, **{"seconds": 3725.0, "per_second": 12.3, **options})


def test_the_status_counts_what_came(found):
    assert status(moment(found)) == "run.jsonl | 400 rows | 12 a second | 40 withheld | 0 failed | 1:02:05"


def test_a_line_for_each_system_has_time_rows_and_error_rates(found):
    told = update_lines(moment(found), "12:00:00")
    assert [line.split("  ")[:3] for line in told] == [
        ["12:00:00", "system 0", "200 rows"],
        ["12:00:00", "system 1", "200 rows"],
    ]
    assert "error, all returned " in told[0]
    assert "error at 20 % non-return " in told[0]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 50), (60, 15), (40, 10), (80, 5)])
@pytest.mark.parametrize("systems", [1, 2])
def test_the_screen_fits_the_terminal(found, width, height, systems):
    console = Console(width=width, height=height, force_terminal=True, color_system=None, record=True)
    with console.capture() as capture:
        console.print(screen(moment(found[:systems], news="run.jsonl was replaced"), console))
    drawn = capture.get().rstrip("\n").split("\n")
    assert max(map(len, drawn)) <= width
    if height >= 10:
        assert len(drawn) < height
    if height >= 24:
        text = "\n".join(drawn)
        for part in ("400 rows" if systems == 2 else "200 rows", "was replaced", "AUGRC", "non-return", "error  "):
            assert part in text


def test_the_screen_of_many_systems_has_a_row_for_each_of_the_first():
    rows = [{"system": f"s{k % 9}", "target": "a", "prediction": "a", "confidence": 0.5} for k in range(90)]
    many = evaluate(responses(rows), replicates=50)
    console = Console(width=100, height=30, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(screen(moment(many), console))
    assert len(capture.get().rstrip("\n").split("\n")) < 30
    assert "s8" in capture.get()


def test_a_screen_without_rows_says_so():
    console = Console(width=80, height=24, force_terminal=True)
    assert "no rows yet" in str(screen(moment((), news="it is not there yet"), console))
