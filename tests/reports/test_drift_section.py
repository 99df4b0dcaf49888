"""The section of a report that says whether the last half by time differs from the first."""

import numpy as np
import polars as pl
import pytest

import demur

QUICK = {"replicates": 60}
ORDER = "errors are not spread evenly over the file"


def dated(n=400, *, errors=(0.1, 0.1), shuffled=False, **columns):
    """Answers of two months, of which some shares are wrong."""
    rng = np.random.default_rng(0)
    month = np.repeat(["2026-01", "2026-02"], n // 2)
    right = rng.random(n) >= np.where(month == "2026-01", *errors)
    sure = np.round(np.clip(rng.normal(0.5 + 0.3 * right, 0.15), 0, 1), 3)
    frame = pl.DataFrame({"id": range(n), "correct": right, "confidence": sure, "month": month, **columns})
    return frame.sample(fraction=1.0, shuffle=True, seed=1) if shuffled else frame


def titles(report):
    return [part.shown.title for part in report.parts]


def test_a_change_is_a_section_and_a_line_of_the_verdict():
    report = demur.report(dated(errors=(0.05, 0.5)), **QUICK)
    assert "Has it changed?" in titles(report)
    (line,) = [line for line in report.verdict if "from month 2026-01 to month 2026-02" in line]
    assert line.startswith("A threshold does not keep its promise") or "error, all returned" in line
    (found,) = report.to_dict()["drift"]
    assert (found["old"]["n"], found["new"]["n"], found["system"]) == (200, 200, "system")
    assert "error" in found["changed"]
    assert "Has it changed?" in report.markdown()


def test_where_nothing_changed_the_verdict_is_silent():
    report = demur.report(dated(), **QUICK)
    assert "Has it changed?" in titles(report)
    assert not [line for line in report.verdict if "2026" in line]
    assert report.to_dict()["drift"][0]["changed"] == []


@pytest.mark.parametrize(
    "log", [dated().drop("month"), dated().with_columns(month=pl.lit("2026-01")), dated(n=80)], ids=["no", "one", "few"]
)
def test_without_two_periods_of_enough_inputs_there_is_no_such_section(log):
    report = demur.report(log, **QUICK)
    assert "Has it changed?" not in titles(report)
    assert "drift" not in report.to_dict()


def test_several_systems_have_a_section_each():
    both = pl.concat([dated().with_columns(system=pl.lit(name)) for name in ("a", "b")])
    assert [title for title in titles(demur.report(both, **QUICK)) if "changed" in title] == [
        "Has it changed? (a)",
        "Has it changed? (b)",
    ]


@pytest.mark.parametrize("aim", [{"cost_ratio": 0.3}, {"max_nonreturn": 0.4}, {"max_error": 0.1}, {"max_error": 0.0}])
def test_the_promise_is_what_the_report_was_asked_for(aim):
    (found,) = demur.report(dated(), **aim, **QUICK).to_dict()["drift"]
    promise = found["promise"]
    if "cost_ratio" in aim:
        assert promise is None
    elif promise is not None:
        assert promise["bound"] == next(iter(aim.values()))
        assert promise["threshold"] is not None


def test_the_order_of_rows_is_noted_and_changes_no_number():
    sorted_rows, mixed = dated(errors=(0.05, 0.5)), dated(errors=(0.05, 0.5), shuffled=True)
    for function, options in (
        (demur.score, QUICK),
        (demur.threshold, {**QUICK, "max_error": 0.3}),
        (demur.validate, {}),
        (demur.report, QUICK),
    ):
        one, two = (function(rows, **options).to_dict() for rows in (sorted_rows, mixed))
        assert [note for note in one["notes"] if note.startswith(ORDER)]
        assert not [note for note in two["notes"] if note.startswith(ORDER)]
        one.pop("notes"), two.pop("notes")
        assert one == two
