import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Demur, log
from demur.core.show.charts import spec_of
from demur.core.stats.intervals import sidak
from demur.core.stats.resampling import Rows
from demur.errors import DataError, UsageError
from demur.returns.drift import changes
from demur.returns.drift.analysis import Aim, drift, split_log, time_column
from demur.returns.drift.changes import LabelShares, Log, RateTest, TwoLogs
from demur.returns.drift.views import change_headline, drift_sentences, of_drift
from demur.returns.judging import order_notes
from demur.returns.table import Reading, Responses, responses
from reference import drift as plain
from reference.answers import shuffled

FEW = settings(max_examples=settings.default.max_examples // 2)


def judged(rows, name="log"):
    """A log of rows, judged by `correct` or by targets, or not at all."""
    read = responses(rows, reading=Reading(unjudged=True))
    return Log.of(name, read.frame, judged=read.judged)


def rows_of(confidence, right, **columns):
    """One record per answer."""
    pairs = zip(confidence, right, strict=True)
    shown = [{"id": k, "prediction": "p", "confidence": c, "correct": bool(r)} for k, (c, r) in enumerate(pairs)]
    return [{**row, **{name: values[k] for name, values in columns.items()}} for k, row in enumerate(shown)]


def simulated(rng, n, *, heaps=True, dialogue=1, shift=0.0, accuracy=0.8, labels=(0.4, 0.3, 0.2, 0.1)):
    """Answers of dialogues of some length with moods of their own."""
    mood = np.repeat(rng.normal(size=-(-n // dialogue)), dialogue)[:n] * (dialogue > 1)
    sure = 1 / (1 + np.exp(-(1 + shift + mood + rng.normal(size=n))))
    right = rng.random(n) < accuracy + 0.1 * np.tanh(mood)
    label = rng.choice(list("abcd"), n, p=labels)
    aside = rng.random(n) < 0.05
    more = {"dialogue": [f"d{k // dialogue}" for k in range(n)]} if dialogue > 1 else {}
    answers = [None if gone else str(one) for gone, one in zip(aside, label, strict=True)]
    return rows_of((np.round(5 * sure) / 5 if heaps else sure).tolist(), right, prediction=answers, **more)


ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.2, 0.5, 0.5, 0.9, 1.0]),
        st.booleans(),
        st.sampled_from(["a", "a", "b", None]),
        st.integers(0, 9),
    ),
    min_size=3,
    max_size=14,
).filter(lambda rows: any(label for *_, label, _ in rows) and len({dialogue for *_, dialogue in rows}) > 1)


def drawn_rows(cells, *, dialogues):
    more = {"dialogue": [f"d{cell[3]}" for cell in cells]} if dialogues else {}
    return rows_of([cell[0] for cell in cells], [cell[1] for cell in cells], prediction=[c[2] for c in cells], **more)


def test_the_worked_case():
    """Confidences of .1 to .4, then of .3 to .6: half of the old ones lie below all new ones."""
    old = judged(rows_of([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]))
    new = judged(rows_of([0.3, 0.4, 0.5, 0.6], [1, 1, 1, 1]))
    found = drift(old, new)
    values = found.to_dict()
    assert values["confidence"]["distance"]["value"] == pytest.approx(0.5)
    mean = values["confidence"]["mean"]
    assert (mean["old"], mean["new"], mean["value"]) == pytest.approx((0.25, 0.45, 0.2))
    assert (values["error"]["old"], values["error"]["new"]) == (0.5, 0.0)
    assert values["withheld"]["why"] == "it is the same for all inputs"
    assert values["answers"]["distance"]["why"] == "no label is answered often enough"
    # .1, .2, .3, .4 less right answers 0, 0, 1, 1; then .3 to .6 less 1 each
    excess = values["calibration"]["excess"]
    assert (excess["old"], excess["new"]) == pytest.approx((-0.25, -0.55))
    assert found.tests == 5 == sum(change.tested for change in found.changes.values())


@FEW
@given(st.lists(st.booleans(), min_size=3, max_size=12), st.lists(st.booleans(), min_size=3, max_size=12))
def test_a_rate_has_the_wider_of_two_standard_errors(old, new):
    logs = TwoLogs(*(judged(rows_of([0.5] * len(part), part)) for part in (old, new)))
    change = logs.rate("error", lambda one: one.errors)
    wrong = [[float(not right) for right in part] for part in (old, new)]
    if change.test is None:
        assert len({*wrong[0], *wrong[1]}) == 1
        return
    assert change.test.estimate.value == pytest.approx(np.mean(wrong[1]) - np.mean(wrong[0]))
    wider = max(plain.own_error(*wrong), plain.pooled_error(*wrong))
    assert change.test.estimate.error == pytest.approx(wider)


def test_a_ratio_of_two_sums_is_over_what_it_names():
    """Of the old answers returned at .5 one of two is wrong, of the new one of one."""
    old, new = judged(rows_of([0.9, 0.8, 0.1], [1, 0, 0])), judged(rows_of([0.9, 0.2, 0.1], [0, 0, 0]))
    found = drift(old, new, aim=Aim(threshold=0.5)).to_dict()["at_threshold"]
    assert (found["risk"]["old"], found["risk"]["new"]) == (0.5, 1.0)
    assert (found["error"]["old"], found["error"]["new"]) == pytest.approx((1 / 3, 1 / 3))
    assert (found["nonreturn"]["old"], found["nonreturn"]["new"]) == pytest.approx((1 / 3, 2 / 3))


@FEW
@given(ROWS, st.booleans())
def test_a_log_does_not_differ_from_itself(cells, dialogues):
    one = judged(drawn_rows(cells, dialogues=dialogues))
    found = drift(one, one, aim=Aim(threshold=0.5))
    for change in found.changes.values():
        assert change.difference.value == 0 or math.isnan(change.difference.value)
        assert not change.tested or change.difference.p == change.difference.p_adjusted == 1
    assert found.significant == ()


@FEW
@given(ROWS, ROWS, st.booleans())
def test_swapped_logs_mirror_every_change(first, second, dialogues):
    old, new = (judged(drawn_rows(cells, dialogues=dialogues)) for cells in (first, second))
    there, back = drift(old, new, aim=Aim(threshold=0.5)), drift(new, old, aim=Aim(threshold=0.5))
    assert there.tests == back.tests
    for name, change in there.changes.items():
        other = back.changes[name]
        sign = 1 if name.endswith("distance") else -1
        assert change.difference.value == pytest.approx(sign * other.difference.value, nan_ok=True)
        assert change.difference.p == pytest.approx(other.difference.p, nan_ok=True)


@FEW
@given(ROWS, ROWS, st.booleans(), st.integers(0, 99))
def test_row_order_changes_nothing(first, second, dialogues, seed):
    tables = [drawn_rows(cells, dialogues=dialogues) for cells in (first, second)]
    weights = np.random.default_rng(seed).integers(1, 4, 20)
    for table in tables:
        for row, weight in zip(table, weights, strict=False):
            row["weight"] = float(weight)
    one = drift(*map(judged, tables), aim=Aim(threshold=0.5))
    two = drift(*(judged(shuffled(rows, seed)) for rows in tables), aim=Aim(threshold=0.5))
    assert one.to_dict() == two.to_dict()


@FEW
@given(ROWS, ROWS)
def test_intervals_exclude_no_change_exactly_where_it_is_significant(first, second):
    found = drift(*(judged(drawn_rows(cells, dialogues=False)) for cells in (first, second)))
    for change in (one for one in found.changes.values() if one.tested):
        one = change.difference
        assert change.is_significant(0.95) == (one.low > 0 or one.high < 0)
        assert one.p_adjusted == pytest.approx(sidak(one.p, found.tests))


@pytest.mark.parametrize("dialogue", [1, 5])
def test_alarms_are_false_in_at_most_one_page_of_twenty(dialogue):
    """40 pages each; more than 6 would come once in a thousand if 5 % were the truth."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        old, new = (judged(simulated(rng, n, dialogue=dialogue)) for n in (150, 60))
        found = drift(old, new, aim=Aim(threshold=0.6, max_error=0.2), replicates=50)
        alarms += bool(found.significant) or found.promise.verdict == "broken"
    assert alarms <= 6


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("confidence.distance", {"shift": 0.8}),
        ("confidence.mean", {"shift": 0.8}),
        ("error", {"accuracy": 0.5}),
        ("augrc", {"accuracy": 0.5}),
        ("calibration.excess", {"accuracy": 0.5}),
        ("answers.distance", {"labels": (0.1, 0.2, 0.3, 0.4)}),
    ],
)
@pytest.mark.parametrize("dialogue", [1, 4])
def test_what_changed_is_found(name, how, dialogue):
    rng = np.random.default_rng(1)
    old = judged(simulated(rng, 400, dialogue=dialogue))
    new = judged(simulated(rng, 400, dialogue=dialogue, **how))
    found = drift(old, new)
    assert name in [change.name for change in found.significant]
    assert ("answers.distance" in found.to_dict()["changed"]) == ("labels" in how)


def test_rare_labels_are_counted_together_and_new_ones_are_listed():
    labels = ["a"] * 10 + ["b"] * 9 + ["rare"]
    old = judged(rows_of([0.5] * 20, [1] * 20, prediction=labels))
    new = judged(rows_of([0.5] * 20, [1] * 20, prediction=["b"] * 12 + ["a"] * 6 + ["odd", "new"]))
    shares = LabelShares.of(TwoLogs(old, new))
    assert shares.tested == ("a", "b", changes.RARE)
    assert [(one.label, one.old, one.new) for one in shares.shares] == [("a", 0.5, 0.3), ("b", 0.45, 0.6)]
    assert [one.label for one in shares.unseen] == ["new", "odd"]
    values = drift(old, new).to_dict()["answers"]
    plainly = plain.cramers_v(["a"] * 10 + ["b"] * 9 + ["r"], ["b"] * 12 + ["a"] * 6 + ["r"] * 2)
    assert values["distance"]["value"] == pytest.approx(plainly)
    assert values["unseen_labels"] == 2


def test_new_answers_are_shown_of_labels_and_not_of_free_text():
    def titles(old, new):
        logs = [judged(rows_of([0.5] * 20, [1] * 20, prediction=labels)) for labels in (old, new)]
        return [table.title for table in of_drift(drift(*logs)).tables]

    assert "Answers that are new" in titles(["a"] * 10 + ["b"] * 10, ["a"] * 10 + ["c"] * 10)
    texts = [[f"{side} {k}" for k in range(20)] for side in ("old", "new")]
    assert not [title for title in titles(*texts) if title.startswith("Answers")]


def test_of_many_confidences_the_distance_is_exact_and_the_test_is_of_a_grid(monkeypatch):
    rng = np.random.default_rng(0)
    one, two = rng.random(200).tolist(), (rng.random(150) ** 1.5).tolist()
    monkeypatch.setattr(changes, "MOST_LEVELS", 50)
    change = TwoLogs(*(judged(rows_of(part, [1] * len(part))) for part in (one, two))).confidences(
        "distance", deals=500, seed=0
    )
    assert change.test.value == pytest.approx(plain.kolmogorov_smirnov(one, two))
    assert change.test.seen < change.test.value
    assert change.test.value - change.test.seen < 0.05
    assert change.test.null.size == 500


@pytest.mark.parametrize(("hits", "n", "bound"), [(0, 20, 0.05), (3, 20, 0.05), (7, 20, 0.1), (20, 20, 0.9)])
def test_a_rate_is_tested_exactly_against_a_limit(hits, n, bound):
    rows = Rows.of(np.full(n, 0.5), np.arange(n) >= hits)
    found = RateTest.of(rows, ~rows.right, bound)
    assert found.p == pytest.approx(plain.binomial_p(hits, n, bound))
    interval = found.tested(0.95, 1)
    assert (interval.low > bound or interval.high < bound) == (found.p < 0.05)


def test_turns_of_a_dialogue_that_err_together_tell_less_of_a_rate():
    right, unit = np.repeat([True, False, True, True], 5), np.repeat(np.arange(4), 5)
    rows = Rows(np.full(20, 0.5), right, np.full(20, True), np.ones(20), unit)
    assert RateTest.of(rows, ~right, 0.1).n == pytest.approx(3.0)  # .25 * .75 / (4 / 3 * .75 / 16)
    assert RateTest.of(Rows.of(np.full(20, 0.5), right), ~right, 0.1).n == 20


def promise_of(errors, n=1000, **aim):
    """The check of a promise of 5 % errors on a new log of which some answers at .5 or more are wrong."""
    old = judged(rows_of([0.9] * 100 + [0.1] * 100, [1] * 100 + [0] * 100))
    new = judged(rows_of([0.9] * n, [0] * errors + [1] * (n - errors)))
    return drift(old, new, aim=Aim(**aim)).promise


@pytest.mark.parametrize(("errors", "verdict"), [(20, "holds"), (50, "not shown either way"), (100, "broken")])
def test_a_promise_holds_is_broken_or_is_not_shown_either_way(errors, verdict):
    check = promise_of(errors, threshold=0.5, max_error=0.05)
    assert check.verdict == verdict
    assert check.figure.value == pytest.approx(errors / 1000)
    assert (check.figure.p_adjusted < 0.05) == (verdict != "not shown either way")


def test_a_threshold_is_chosen_on_the_old_log_where_none_is_given():
    check = promise_of(100, max_error=0.05)
    assert (check.threshold, check.verdict) == (0.9, "broken")
    assert check.rule == "chosen on the old log: error rate at most 0.05 in this sample (no guarantee)"
    assert promise_of(0, max_nonreturn=0.6).verdict == "holds"
    assert promise_of(0, threshold=0.95, max_nonreturn=0.6).verdict == "broken"


def test_a_threshold_is_printed_in_as_few_digits_as_split_both_logs_the_same_way():
    old = judged(rows_of([0.7312, 0.9, 0.1], [1, 1, 0]))
    new = judged(rows_of([0.7309, 0.9, 0.1], [1, 1, 0]))
    assert drift(old, new, aim=Aim(threshold=0.7312)).printed_threshold == "0.731"
    assert drift(old, old, aim=Aim(threshold=0.7312)).printed_threshold == "0.7"


def test_a_promise_that_no_threshold_keeps_cannot_be_checked():
    old = judged(rows_of([0.9] * 20, [0] * 20))
    new = judged(rows_of([0.9] * 20, [0] * 20))
    found = drift(old, new, aim=Aim(max_error=0.05, delta=0.05))
    assert (found.promise.verdict, found.promise.why) == ("cannot be checked", "no threshold keeps it on the old log")
    assert "at_threshold.error" not in found.changes
    assert found.to_dict()["promise"]["threshold"] is None


def test_without_targets_only_what_is_withheld_can_be_checked():
    old = judged(rows_of([0.9, 0.8, 0.2] * 20, [1, 1, 0] * 20))
    new = judged([{"id": k, "prediction": "p", "confidence": 0.1 + k / 100} for k in range(60)])
    found = drift(old, new, aim=Aim(threshold=0.5, max_error=0.1))
    assert not found.judged
    assert found.promise.why == "the new log does not tell right from wrong"
    assert {"error", "augrc", "out_of_scope", "at_threshold.error"}.isdisjoint(found.changes)
    assert "at_threshold.nonreturn" in found.changes
    assert any("the new log does not tell right from wrong" in line for line in drift_sentences(found))
    assert [figure.name for figure in of_drift(found).figures] == ["confidence_drift"]
    held = drift(old, new, aim=Aim(threshold=0.05, max_nonreturn=0.1))
    assert held.promise.verdict == "holds"
    with pytest.raises(UsageError, match="cannot be chosen on the old log"):
        drift(new, old, aim=Aim(max_error=0.1))


def test_scores_that_are_no_probabilities_have_no_calibration():
    old, new = judged(rows_of([3.0, 8.0, 9.0], [0, 1, 1])), judged(rows_of([4.0, 7.0, 9.0], [0, 1, 1]))
    found = drift(old, new)
    mean = found.changes["confidence.mean"].difference
    assert mean.low < -1 < mean.value < 1 < mean.high
    assert "calibration.excess" not in found.changes
    assert found.ece is None


def test_answers_without_confidence_have_no_mean():
    read = responses([{"correct": k > 2} for k in range(9)], reading=Reading(missing_confidence="lowest"))
    one = Log.of("mine", read.frame, judged=True)
    found = drift(one, one)
    assert found.changes["confidence.mean"].difference.why == "it is undefined for one of the logs"
    assert found.changes["confidence.distance"].difference.why == "all answers have one confidence"
    assert drift_sentences(found)[1] == "Confidences cannot be compared: all answers have one confidence."


@pytest.mark.parametrize(
    ("aim", "message"),
    [
        ({"max_error": 0.1, "max_nonreturn": 0.1}, "one promise is checked at a time"),
        ({"delta": 0.1, "max_nonreturn": 0.1}, "`delta` goes with `max_error`"),
        ({"delta": 0.1, "max_error": 0.1, "threshold": 0.5}, "`delta` goes with `max_error`"),
        ({"max_error": 1.5}, r"`max_error` is a rate in \[0, 1\]"),
    ],
)
def test_promises_that_cannot_be_are_refused(aim, message):
    with pytest.raises(UsageError, match=message):
        Aim(**aim).check()


def test_a_log_of_one_input_or_one_dialogue_is_too_small():
    one, two = rows_of([0.5], [1]), rows_of([0.5, 0.6], [1, 0], dialogue=["d", "d"])
    for small in (one, two):
        with pytest.raises(DataError, match="too small to be compared"):
            drift(judged(small), judged(rows_of([0.5, 0.6], [1, 0])))


def test_the_document_is_plain_and_complete():
    rng = np.random.default_rng(0)
    found = drift(judged(simulated(rng, 60)), judged(simulated(rng, 60)), aim=Aim(threshold=0.5, max_error=0.5))
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"old", "new", "confidence", "answers", "withheld", "failed", "error", "augrc", "calibration"} <= set(values)
    assert {"at_threshold", "promise", "ece", "changed", "tests", "level", "notes", "warnings"} <= set(values)
    assert found.frame()["change"].to_list() == list(found.changes)
    assert 1 <= len(drift_sentences(found)) <= 5
    assert "Has it changed?" in of_drift(found).markdown()
    assert "<svg" in found._repr_html_() or "<img" in found._repr_html_()


def test_figures_mark_the_threshold_and_what_was_promised():
    rng = np.random.default_rng(0)
    found = drift(judged(simulated(rng, 80)), judged(simulated(rng, 80)), aim=Aim(threshold=0.5, max_error=0.1))
    confidences, curves = (json.dumps(spec_of(figure())) for figure in of_drift(found).figures)
    assert "threshold 0.5" in confidences
    assert "promised: 10 %" in curves
    assert "at threshold 0.5" in curves
    assert spec_of(found.chart())["description"].startswith("Cumulative distributions")


def dated(dates, **columns):
    n = len(dates)
    columns = {"correct": [True] * n, "confidence": [0.5] * n, "date": dates, **columns}
    return responses(pl.DataFrame(columns), reading=Reading(keep=("*",)))


def test_a_log_is_split_at_a_value_or_in_the_middle():
    months = ["2025-11", "2025-12", "2025-12", "2026-01", "2026-02"]
    old, new, notes = split_log(dated(months), "date", "2026-01")
    assert (old.frame.height, new.frame.height) == (3, 2)
    assert (old.name, new.name) == ("date 2025-11 to 2025-12", "date 2026-01 to 2026-02")
    assert notes == ("date 2025-11 to 2025-12: 3 rows", "date 2026-01 to 2026-02: 2 rows")
    old, new, _ = split_log(dated([*months, None]), "date")
    assert (old.frame.height, new.frame.height) == (3, 2)
    assert split_log(dated([*months, None]), "date")[2][-1] == "1 row without date left out"


def test_numbers_are_split_as_numbers():
    old, new, _ = split_log(dated([9, 10, 11, 100]), "date", "10")
    assert (old.name, new.name) == ("date 9", "date 10 to 100")
    with pytest.raises(DataError, match="holds numbers"):
        split_log(dated([9, 10]), "date", "May")
    with pytest.raises(DataError, match="has one value"):
        split_log(dated([9, 9]), "date")
    with pytest.raises(DataError, match='no row is before "1"'):
        split_log(dated([9, 10]), "date", "1")


def test_a_column_of_times_is_found_by_its_name_and_its_values():
    def found(**columns):
        return time_column(pl.DataFrame(columns))

    assert found(id=["1", "2"], Timestamp=["2026-01-01T10:00", "2026-01-02T11:00"]) == "Timestamp"
    assert found(month=["1", "2"]) == "month"
    assert found(month=["January", "February"]) is None
    assert found(month=["1", "1"]) is None
    assert found(other=["2026-01-01", "2026-01-02"]) is None


def ordered(first, second, n=200, **columns):
    right = np.concatenate([np.arange(n) >= first * n, np.arange(n) >= second * n])
    return responses(pl.DataFrame({"correct": right, "confidence": [0.5] * (2 * n), **columns}))


def test_errors_that_depend_on_the_place_of_a_row_are_noted():
    assert order_notes(ordered(0.12, 0.31)) == (
        "errors are not spread evenly over the file: 12 % in the first half, 31 % in the second (p < 0.001); "
        "a threshold chosen on one part need not hold on another",
    )
    assert order_notes(ordered(0.12, 0.14)) == ()
    assert order_notes(ordered(0.1, 0.4, n=40)) == ()
    assert order_notes(ordered(0.12, 0.31, dialogue=[f"d{k // 50}" for k in range(400)])) == ()


def test_of_several_systems_the_note_names_the_one():
    names = ["a"] * 400 + ["b"] * 400
    both = pl.concat([ordered(0.1, 0.5).frame, ordered(0.2, 0.2).frame]).with_columns(pl.Series("system", names))
    (note,) = order_notes(Responses(both))
    assert note.startswith("a: errors are not spread evenly")


def test_rows_in_any_order_are_rarely_said_to_depend_on_their_place():
    rng = np.random.default_rng(0)
    frames = [
        ordered(0.2, 0.2).frame.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31))) for _ in range(60)
    ]
    assert not any(order_notes(Responses(frame)) for frame in frames)


def test_a_new_log_that_answers_nothing_neither_keeps_a_promise_nor_makes_fewer_errors():
    old = judged(rows_of([0.9, 0.8, 0.7, 0.6] * 10, [True, True, False, False] * 10))
    silent = judged([{"id": k, "prediction": None, "correct": None} for k in range(40)], name="silent")
    found = drift(old, silent, aim=Aim(max_error=0.1), replicates=50)
    assert (found.promise.verdict, found.promise.why) == (
        "cannot be checked",
        "the new log answers nothing, so it makes no errors",
    )
    assert not any(found.changes[name].tested for name in ("error", "augrc"))
    assert found.changes["withheld"].is_significant(0.95)
    assert "Errors cannot be compared: silent answers nothing." in drift_sentences(found)
    assert drift(silent, silent, replicates=50).significant == ()


def test_the_gate_on_a_promise_fails_where_the_new_log_answers_nothing(tmp_path, demur: Demur):
    log(tmp_path / "a.jsonl", n=100)
    silent = [{"id": k, "target": "a", "prediction": None} for k in range(100)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in silent))
    done = demur("drift", "a.jsonl", "b.jsonl", "--max-error", "0.2", "--fail-if", "promise is broken")
    assert done.returncode == 1, done.stdout
    assert "gate: the promise cannot be checked: the new log answers nothing" in done.stderr


def test_the_command_compares_two_logs_and_the_halves_of_one(tmp_path, demur: Demur):
    log(tmp_path / "a.jsonl", n=300, date=[f"2026-01-{1 + k // 30:02}" for k in range(300)])
    log(tmp_path / "b.jsonl", n=300, seed=1, level=-3.0)
    done = demur("drift", "a.jsonl", "b.jsonl", "--max-error", "0.2", "--fail-if", "promise is broken")
    assert (done.returncode, "The promise is broken: at threshold" in done.stdout) == (1, True)
    assert "gate: the promise is broken" in done.stderr
    assert "300 of 300 ids of the old log are in the new one" in done.stderr
    done = demur("drift", "a.jsonl", "--by", "date", "--split", "2026-01-06", "--json")
    values = json.loads(done.stdout)
    assert (values["old"]["name"], values["old"]["n"]) == ("date 2026-01-01 to 2026-01-05", 150)
    assert values["changed"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.jsonl"], "give an old and a new log, or one log and the column that splits it (--by)"),
        (["a.jsonl", "a.jsonl", "--by", "id"], "give an old and a new log"),
        (["a.jsonl", "a.jsonl", "--split", "3"], "--split goes with --by"),
        (["a.jsonl", "a.jsonl", "--fail-if", "promise is broken"], "is a gate for drift with a promise"),
    ],
)
def test_what_the_command_cannot_do_is_refused(tmp_path, demur: Demur, arguments, message):
    log(tmp_path / "a.jsonl", n=30)
    done = demur("drift", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_gates_ask_for_changes_by_their_names_in_json(tmp_path, demur: Demur):
    log(tmp_path / "a.jsonl", n=100)
    log(tmp_path / "b.jsonl", n=100, seed=1, level=-3.0)
    gates = ["--fail-if", "confidence.distance > 0.9", "--fail-if", "error.new > 0.5"]
    done = demur("drift", "a.jsonl", "b.jsonl", "--quiet", *gates)
    assert [line for line in done.stderr.splitlines() if line.startswith("gate")] == [
        line for line in done.stderr.splitlines() if "error.new > 0.5 holds" in line
    ]
    strict = ["--threshold", "0.5", "--max-error", "1", "--fail-if", "promise is not shown to hold"]
    assert demur("drift", "a.jsonl", "b.jsonl", "--quiet", *strict).returncode == 0


def test_a_headline_tells_of_a_broken_promise_first_then_of_errors():
    old = judged(rows_of([0.9] * 100 + [0.1] * 100, [1] * 100 + [0] * 100), "May")
    new = judged(rows_of([0.9] * 400, [0] * 100 + [1] * 300), "June")
    broken = change_headline(drift(old, new, aim=Aim(max_error=0.05)))
    assert broken.startswith("A threshold does not keep its promise, at most 5 % of inputs that are answered wrongly")
    assert "from May to June: at threshold 0.9, 25 % of the new inputs are answered wrongly" in broken
    changed = change_headline(drift(old, new))
    assert changed.startswith("It has changed from May to June: error, all returned 50.0 %, then 25.0 %; ")
    assert change_headline(drift(old, old)) is None
