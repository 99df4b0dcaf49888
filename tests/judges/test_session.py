"""Judging from the log to the judged log: who judges what, what counts in the end, and what stays open."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.judges.answers import read_answers
from demur.judges.labels import label_set, read_guidelines
from demur.judges.presentation import JudgedAnswers, read_judged, sentences_of, write_judged
from demur.judges.session import Judging, NotYours, begin, folder_of
from demur.returns.table import Reading
from judges.judged import AS_IT_COMES, answers, begun, judge_all, truth, write_log


def test_every_answer_is_judged_once_or_by_all(tmp_path: Path) -> None:
    judging = begun(tmp_path, overlap=0.25)
    shared = [item for item, judges in judging.judges_of.items() if len(judges) == 2]
    assert len(shared) == round(0.25 * len(judging.shown))
    own = Counter(judges[0] for judges in judging.judges_of.values() if len(judges) == 1)
    assert abs(own["anna"] - own["ben"]) <= 1
    orders = [judging.order(judge) for judge in judging.plan.judges]
    assert [item for item in orders[0] if item in shared] != [item for item in orders[1] if item in shared]
    assert judging.order("anna") == orders[0]


def test_equal_answers_of_several_systems_are_one_item(tmp_path: Path) -> None:
    rows = [
        {"id": k, "system": system, "input": f"q{k}", "prediction": "same" if k % 2 else system, "confidence": 0.5}
        for k in range(10)
        for system in "ab"
    ]
    judging = begun(tmp_path, rows)
    assert len(judging.shown) == 15
    judge_all(judging, "anna", lambda _: "right")
    judge_all(judging, "ben", lambda _: "right")
    assert all(row["correct"] for row in judging.judged_rows())


def test_judges_see_neither_system_nor_confidence_nor_each_other(tmp_path: Path) -> None:
    judging = begun(tmp_path, answers(domain="desk"), show=("domain",))
    judge_all(judging, "anna")
    state = judging.state_of("ben")
    assert [name for name, _ in state.shown] == ["Input", "domain", "Answer"]
    text = repr(state)
    assert "alpha" not in text
    assert "anna" not in text
    with pytest.raises(UsageError, match="judges must not know the confidence"):
        begun(tmp_path / "other", show=("confidence",))


def test_numbers_of_items_tell_nothing_of_the_answer(tmp_path: Path) -> None:
    """Neither who else judges an item nor how confident a system was goes with its number."""
    judging = begun(tmp_path, answers(300, ("alpha",)), overlap=0.5)
    numbers = pl.Series([row.item for row in judging.rows if row.item is not None])
    sure = pl.Series([json.loads(row.document)["confidence"] for row in judging.rows if row.item is not None])
    both = pl.Series([len(judging.judges_of[item]) for item in numbers])
    frame = pl.DataFrame({"number": numbers, "sure": sure, "both": both})
    for other in ("sure", "both"):
        assert abs(frame.select(pl.corr("number", other, method="spearman")).item()) < 0.2


def test_what_counts_in_the_end(tmp_path: Path) -> None:
    judging = begun(tmp_path, overlap=1.0)
    judge_all(judging, "anna")
    first, second, third = judging.order("ben")[:3]

    def say(shown: tuple[tuple[str, str | None], ...]) -> str:
        item = next(item for item, parts in judging.shown.items() if parts == shown)
        return {first: "unsure", second: "wrong" if truth(shown) == "right" else "right"}.get(item, truth(shown))

    judge_all(judging, "ben", say)
    assert judging.states() == {"agreed": len(judging.shown) - 2, "open": 2}
    assert judging.final(first) is None
    judging.settle(first, "unsure", "cannot be told from the question")
    judging.settle(second, "wrong")
    assert (judging.final(first), judging.final(second), judging.final(third)) == (
        *("unsure", "wrong"),
        truth(judging.shown[third]),
    )
    rows = {row.item: verdict for row, verdict in zip(judging.rows, judging.judged_rows(), strict=True) if row.item}
    assert (rows[first]["correct"], rows[first]["judgement"]) == (None, "unsure")
    assert rows[second]["correct"] is False
    assert [one["judge"] for one in rows[first]["judgements"]] == ["anna", "ben", "lead"]
    assert all("weight" not in row for row in rows.values()), "everything was judged, so a row stands for itself"
    judging.reopen()
    assert judging.state(second) == "open"


def test_only_what_is_ones_own_can_be_judged_and_only_once(tmp_path: Path) -> None:
    judging = begun(tmp_path, overlap=0.0)
    mine, other = judging.order("anna")[0], judging.order("ben")[0]
    with pytest.raises(NotYours, match="not yours"):
        judging.judge("anna", other, "right")
    with pytest.raises(UsageError, match='no label "good"; there are right, wrong, unsure'):
        judging.judge("anna", mine, "good")
    judging.judge("anna", mine, "right")
    with pytest.raises(NotYours, match='already, as "right"'):
        judging.judge("anna", mine, "wrong")
    assert judging.undo("anna").item == mine
    assert judging.judge("anna", mine, "wrong").last == "wrong"
    with pytest.raises(NotYours, match="do not disagree"):
        judging.settle(mine, "right")
    with pytest.raises(NotYours, match="nothing to undo"):
        judging.undo("ben")
    with pytest.raises(NotYours, match="nothing to undo"):
        judging.reopen()


def test_a_request_that_is_sent_again_counts_once(tmp_path: Path) -> None:
    judging = begun(tmp_path)
    first, second = judging.order("anna")[:2]
    assert judging.judge("anna", first, "right", "r1").done == 1
    assert judging.judge("anna", first, "right", "r1").done == 1
    judging.judge("anna", second, "right", "r2")
    assert judging.undo("anna", "r3").done == 1
    assert judging.undo("anna", "r3").done == 1
    assert [event.kind for event in judging.journal.events()] == ["judge", "judge", "undo"]


def test_a_folder_that_is_opened_again_is_as_it_was(tmp_path: Path) -> None:
    judging = begun(tmp_path)
    judge_all(judging, "anna")
    judge_all(judging, "ben", lambda shown: "unsure" if "3" in repr(shown) else truth(shown), most=30)
    judging.undo("ben")
    conflict = judging.conflicts()[0]
    judging.settle(conflict.item, "wrong", "a note")
    before = (judging.states(), list(judging.judged_rows()), judging.state_of("ben"), judging.token("anna"))
    judging.close()
    again = Judging.open(tmp_path / "log.judging")
    assert (again.states(), list(again.judged_rows()), again.state_of("ben"), again.token("anna")) == before
    assert again.conflicts()[-1].note == "a note"
    assert len({again.token(role) for role in ("anna", "ben", "lead")}) == 3


def test_a_sample_is_scored_as_what_it_stands_for(tmp_path: Path) -> None:
    rows = answers(500, ("alpha",))
    judging = begun(tmp_path, rows, sample=80, overlap=0.2)
    for judge in judging.plan.judges:
        judge_all(judging, judge)
    write_judged(JudgedAnswers.of(judging, replicates=50), tmp_path / "judged.jsonl")
    (found,) = demur.score(tmp_path / "judged.jsonl", replicates=50)
    withheld = sum(row["prediction"] is None for row in rows)
    assert (found.n, found.withheld) == (80 + withheld, withheld)
    assert found.stands_for is not None
    assert found.stands_for.inputs == pytest.approx(500)
    assert found.curve.floor == pytest.approx(withheld / 500), "what needs no judging is known, not estimated"
    wrong = sum(int(row["prediction"].split()[1]) % 2 for row in rows if row["prediction"]) / 500
    assert found.figures["forced_error"].low < wrong < found.figures["forced_error"].high


def test_systems_that_were_judged_on_one_sample_are_compared(tmp_path: Path) -> None:
    judging = begun(tmp_path, answers(200), sample=60)
    for judge in judging.plan.judges:
        judge_all(judging, judge)
    write_judged(JudgedAnswers.of(judging, replicates=50), tmp_path / "judged.parquet")
    found = demur.compare(tmp_path / "judged.parquet", replicates=50)
    assert found.pairs[0].paired
    assert any("stand for 200 inputs" in note for note in found.evaluations.notes)


def test_what_is_not_judged_yet_is_counted_and_never_wrong(tmp_path: Path) -> None:
    judging = begun(tmp_path, answers(100, ("alpha",)), overlap=0.0)
    judge_all(judging, "anna", most=20)
    found = JudgedAnswers.of(judging, replicates=50)
    write_judged(found, tmp_path / "judged.jsonl")
    scored = demur.score(tmp_path / "judged.jsonl", replicates=50)
    known = sum(row.item is None for row in judging.rows)
    assert scored[0].n == 20 + known
    assert scored[0].stands_for is not None
    assert scored[0].stands_for.inputs == pytest.approx(100)
    pending = len(judging.shown) - 20
    assert any(f"{pending} answers are not judged and left out" in one for one in scored.warnings)
    assert found.states is not None
    assert found.states["pending"] == pending
    assert any(f"{pending} answers not judged yet" in one for one in found.warnings)


@pytest.mark.parametrize("sample", [None, 30])
def test_a_log_that_nobody_has_judged_is_not_scored(tmp_path: Path, sample: int | None) -> None:
    rows = [row | {"target": "answer 2"} for row in answers()]
    write_judged(JudgedAnswers.of(begun(tmp_path, rows, sample=sample), replicates=50), tmp_path / "judged.jsonl")
    with pytest.raises(DataError, match="is empty for every answer: no judgement says yet"):
        demur.score(tmp_path / "judged.jsonl", replicates=50)


def test_labels_of_a_study_mean_what_it_says(tmp_path: Path) -> None:
    labels = label_set([("full", "right"), ("partly", "wrong"), ("refused", "withheld"), ("unsure", None)])
    judging = begun(tmp_path, answers(40, ("alpha",)), labels, judges=("anna",))
    said = {"0": "full", "1": "partly", "2": "refused"}
    judge_all(judging, "anna", lambda shown: said.get(str(dict(shown)["Answer"])[-1], "unsure"))
    rows = list(judging.judged_rows())
    means = {row["judgement"]: (row["correct"], row.get("abstained")) for row in rows if row["judgement"]}
    assert means == {"full": (True, None), "partly": (False, None), "refused": (None, True), "unsure": (None, None)}
    found = demur.score(rows, replicates=50)[0]
    counts = Counter(row["judgement"] for row in rows)
    assert found.withheld == counts["refused"] + counts[None]
    assert found.n == len(rows) - counts["unsure"]


def test_labels_that_mean_nothing_give_a_log_of_labels(tmp_path: Path) -> None:
    judging = begun(tmp_path, answers(12), label_set([("polite", None), ("rude", None)]), judges=("anna",))
    judge_all(judging, "anna", lambda _: "polite")
    assert all("correct" not in row for row in judging.judged_rows())
    assert {row["judgement"] for row in judging.judged_rows()} == {"polite", None}


def test_rows_that_are_marked_stay_as_they_are(tmp_path: Path) -> None:
    rows = answers(40, ("alpha",))
    for row in rows[:10]:
        row["correct"] = False
    judging = begun(tmp_path, rows, judges=("anna",))
    judge_all(judging, "anna", lambda _: "right")
    found = list(judging.judged_rows())
    assert all(row["correct"] is False and row["judgements"] == [] for row in found[:10] if row["prediction"])
    assert all(row["correct"] for row in found[10:] if row["prediction"])


FAULTY: dict[str, tuple[Any, str]] = {
    "no answers": ([{"input": "q", "prediction": None}], "nothing to judge: nothing was answered"),
    "all judged": (
        [{"input": "q", "prediction": "a", "correct": True}],
        "nothing to judge: every answer is marked as right or wrong already",
    ),
    "nothing to judge by": ([{"prediction": "a"}], "nothing to judge answers by: no column input"),
    "no predictions": ([{"input": "q"}], "has no column of answers, prediction"),
    "judged before": ([{"input": "q", "prediction": "a", "judgement": "right"}], "was this log judged before"),
    "weighted": (
        [{"input": "q", "prediction": "a", "weight": 2}, {"input": "r", "prediction": "a", "weight": 1}],
        "has weights already",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_log_that_cannot_be_judged_is_refused(tmp_path: Path, name: str) -> None:
    rows, fault = FAULTY[name]
    with pytest.raises(DataError, match=fault):
        read_answers(write_log(tmp_path / "log.jsonl", rows), reading=AS_IT_COMES)


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    with pytest.raises(DataError, match=r"empty|no rows"):
        read_answers(tmp_path / "log.jsonl", reading=AS_IT_COMES)


@pytest.mark.parametrize(
    ("judges", "fault"),
    [
        (("anna", "Anna"), 'two judges are called "Anna"'),
        (("lead",), 'no judge is called "lead"'),
        (("an\u202ena",), "printable"),
        ((" ",), "printable"),
        ((), "1 to 50 names"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(tmp_path: Path, judges: tuple[str, ...], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        begun(tmp_path, judges=judges)


def test_a_log_is_the_same_in_any_order_and_format(tmp_path: Path) -> None:
    rows = answers(30)
    one = read_answers(write_log(tmp_path / "one.jsonl", rows), reading=AS_IT_COMES)
    two = read_answers(write_log(tmp_path / "two.jsonl", rows[::-1]), reading=AS_IT_COMES)
    pl.DataFrame(rows, infer_schema_length=None).write_csv(tmp_path / "three.csv")
    three = read_answers(tmp_path / "three.csv", reading=AS_IT_COMES)
    assert one.digest == two.digest == three.digest
    how: dict[str, Any] = {"judges": ("anna",), "sample": 12, "overlap": 0.0, "seed": 3}
    plans = [begin(tmp_path / f"{k}.judging", log, label_set([("a", None), ("b", None)]), **how) for k, log in
             enumerate((one, two))]  # fmt: skip
    first, second = ({json.loads(row.document)["id"] for row in plan.rows} for plan in plans)
    assert first == second
    assert set(plans[0].shown.values()) == set(plans[1].shown.values())
    other = read_answers(write_log(tmp_path / "four.jsonl", rows[:-1]), reading=AS_IT_COMES)
    assert other.digest != one.digest


def test_rows_without_ids_are_inputs_of_their_own(tmp_path: Path) -> None:
    rows = [{"input": "same", "prediction": "yes", "confidence": 0.5} for _ in range(6)]
    log = read_answers(write_log(tmp_path / "log.jsonl", rows), reading=AS_IT_COMES)
    assert log.inputs == 6
    judging = begin(
        tmp_path / "j", log, label_set([("a", None), ("b", None)]), judges=("x",), sample=None, overlap=0, seed=0
    )
    assert len(judging.shown) == 1


def test_columns_can_be_named_and_files_are_systems(tmp_path: Path) -> None:
    rows = [{"q": f"{k}", "said": "yes", "confidence": 0.5} for k in range(4)]
    for name in ("one", "two"):
        write_log(tmp_path / f"{name}.jsonl", rows)
    reading = Reading(columns={"input": "q", "prediction": "said"})
    log = read_answers(tmp_path / "one.jsonl", tmp_path / "two.jsonl", reading=reading)
    assert log.systems == ("one", "two")
    assert {row["system"] for row in log.rows} == {"one", "two"}


GUIDELINES = """
question = "Is it polite?"
guidelines = "Judge the tone."
[[label]]
name = "polite"
means = "right"
key = "p"
[[label]]
name = "rude"
means = "wrong"
about = "It would offend a visitor."
"""


def test_guidelines_are_read_from_toml_and_from_text(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(GUIDELINES)
    found = read_guidelines(tmp_path / "g.toml")
    assert (found.question, found.guidelines, found.names) == ("Is it polite?", "Judge the tone.", ("polite", "rude"))
    assert [one.key for one in found.labels] == ["p", "r"]
    (tmp_path / "g.md").write_text("# Read *twice*\n")
    text = read_guidelines(tmp_path / "g.md", [("good", "right"), ("bad", "wrong")])
    assert (text.guidelines, text.names) == ("# Read *twice*", ("good", "bad"))
    with pytest.raises(UsageError, match="names labels, so `labels` cannot name others"):
        read_guidelines(tmp_path / "g.toml", [("good", "right")])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("questoin = 'x'", 'there is no "questoin" here'),
        ("[[label]]\nname = 'a'", "2 to 9 labels; got 1"),
        ("[[label]]\nname = 'a'\n[[label]]\nname = 'A'", 'label "A" is there twice'),
        ("[[label]]\nname = 'a'\nmeans = 'good'\n[[label]]\nname = 'b'", "what the label means"),
        ("[[label]]\nname = 'a'\nkey = 'x'\n[[label]]\nname = 'b'\nkey = 'X'", 'key "x" gives two labels'),
        ("[[label]]\nname = 'a'\nkey = 'z'\n[[label]]\nname = 'b'", "one letter other than z"),
        ("[[label]]\nname = ''\n[[label]]\nname = 'b'", "printable characters"),
        ("label = 3", "must be tables"),
        ("question = 3", "must be a text"),
        ("= 3", "is no TOML"),
        ("[[label]]\nname = 'a'\ncolour = 'red'\n[[label]]\nname = 'b'", 'there is no "colour" here'),
    ],
)
def test_guidelines_with_a_slip_say_where(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "g.toml").write_text(text)
    with pytest.raises((DataError, UsageError), match=fault):
        read_guidelines(tmp_path / "g.toml")


def test_the_words_of_a_judging(tmp_path: Path) -> None:
    judging = begun(tmp_path, answers(100, ("alpha",)), overlap=1.0, sample=40)
    first = list(sentences_of(JudgedAnswers.of(judging, replicates=50)))
    assert first[0] == f"0 of {len(judging.shown)} answers are judged."
    assert first[-1] == "Agreement: no answer is judged by two judges yet."
    for judge in judging.plan.judges:
        judge_all(judging, judge)
    found = read_judged(tmp_path / "log.judging", replicates=50)
    words = list(sentences_of(found))
    assert words[1] == "They were drawn from 100 inputs, for which the judged log stands."
    assert "anna and ben agree on 100 %" in words[2]
    assert found.to_dict()["answers"] == {"agreed": len(judging.shown), "settled": 0, "open": 0, "pending": 0}


def test_the_folder_is_named_after_the_log() -> None:
    assert str(folder_of(Path("x/judged.jsonl.zst"))) == "x/judged.judging"
    assert str(folder_of(Path("judged.csv"))) == "judged.judging"
