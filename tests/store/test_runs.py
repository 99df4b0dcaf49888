"""What is added is there once, under one name, and comes back as it was read."""

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from demur import __version__
from demur.core.io import tables
from demur.errors import DataError, UsageError
from demur.gold_standard.trials import TrialReading, read_trials
from demur.nbest_lists.table import NBestReading, read_nbest
from demur.outcome.table import read_dialogues
from demur.returns.table import Reading, read_responses
from demur.store.intake import RenamedFile, RunReading
from demur.store.runs import Store
from importers.dstc_folders import corpus
from store.tables import DIALOGUES, LISTS, ROWS, TRIALS, answers, folders, left_over, write


def test_a_run_is_a_folder_of_its_rows_and_a_description_people_can_read(store: Store, log: Path) -> None:
    (added,) = store.add(log, tags=["museum", " museum"], note=" the first ")
    run = added.run
    assert added.new
    assert sorted(path.name for path in (store.root / "runs" / run.id).iterdir()) == ["rows.parquet", "run.json"]
    text = (store.root / "runs" / run.id / "run.json").read_text()
    assert text.count("\n") > 20
    document = json.loads(text)
    assert document["sha256"].startswith(run.id)
    assert {name: document[name] for name in ("name", "kind", "n", "source", "tags", "note", "layout", "demur")} == {
        "name": "guide",
        "kind": "responses",
        "n": 6,
        "source": "guide.jsonl",
        "tags": ["museum"],
        "note": "the first",
        "layout": 1,
        "demur": __version__,
    }
    assert str(log.parent) not in text, "where the file lay is nobody's business"
    assert run == store.run("guide") == store.runs()[0]
    assert left_over(store.root) == []


def test_the_facts_of_a_run_are_counted_when_it_is_added(store: Store, log: Path) -> None:
    (added,) = store.add(log)
    about = added.run.about
    assert {name: about[name] for name in ("answered", "right", "failed", "out_of_scope")} == {
        "answered": 5,
        "right": 2,
        "failed": 0,
        "out_of_scope": 1,
    }
    assert about["forced_error"] == 3 / 6
    assert (about["has_input"], about["has_nbest"], about["slices"]) == (True, False, ["domain"])
    assert "1 target that is null read as out of scope" in added.run.notes


def test_the_same_rows_are_one_run_whatever_file_they_come_from(store: Store, log: Path, tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS).select("domain", "confidence", "prediction", "target", "input", "id")
    frame.write_csv(tmp_path / "other.csv")
    frame.write_parquet(tmp_path / "third.parquet")
    pl.DataFrame(ROWS).with_columns(nothing=pl.lit(None)).write_ipc(tmp_path / "fourth.arrow")
    (first,) = store.add(log)
    for name in ("other.csv", "third.parquet", "fourth.arrow"):
        (again,) = store.add(tmp_path / name)
        assert (again.new, again.run) == (False, first.run)
    assert folders(store.root) == [first.run.id]


def test_a_long_log_is_kept_as_a_short_one(store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What few texts fill is kept as categories in memory where rows are many."""
    (short,) = store.add(log)
    monkeypatch.setattr(tables, "CATEGORISED_ROWS", 1)
    kept = read_responses(log, reading=Reading(keep=("domain",))).frame
    assert kept["domain"].dtype == pl.Categorical
    (long,) = store.add(log)
    assert (long.new, long.run) == (False, short.run)


def test_n_best_lists_are_the_same_as_json_and_as_structures(store: Store, tmp_path: Path) -> None:
    lists = [[{"label": "place", "confidence": 0.9}, {"label": "time", "confidence": 0.05}], None]
    rows = [{**row, "nbest": listed} for row, listed in zip(ROWS, lists, strict=False)]
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    (first,) = store.add(write(tmp_path / "a.jsonl", rows))
    (again,) = store.add(tmp_path / "a.parquet")
    assert not again.new
    shown = store.rows(first.run).page("all").rows
    assert [row["nbest"] for row in shown] == lists


def test_other_rows_in_another_order_or_of_another_value_are_another_run(store: Store, tmp_path: Path) -> None:
    for name, rows in (
        ("as", ROWS),
        ("turned", ROWS[::-1]),
        ("shorter", ROWS[:-1]),
        ("surer", [{**ROWS[0], "confidence": 0.91}, *ROWS[1:]]),
        ("moved", [{**ROWS[0], "input": None}, *ROWS[1:]]),
        ("empty", [{**ROWS[0], "input": ""}, *ROWS[1:]]),
    ):
        assert store.add(write(tmp_path / f"{name}.jsonl", rows))[0].new
    assert len(store.runs()) == 6


def test_text_that_moves_from_one_cell_to_the_next_changes_the_digest(store: Store, tmp_path: Path) -> None:
    for name, texts in (("a", ("xy", "z")), ("b", ("x", "yz")), ("c", ("xyz", ""))):
        rows = [{**row, "input": text} for row, text in zip(ROWS[:2], texts, strict=True)]
        assert store.add(write(tmp_path / f"{name}.jsonl", rows))[0].new


def test_content_that_is_there_is_not_added_under_another_name(store: Store, log: Path) -> None:
    store.add(log, name="baseline")
    (again,) = store.add(log, name="other", tags=["x"])
    assert (again.new, again.run.name, again.run.tags) == (False, "baseline", ())
    assert [run.name for run in store.runs()] == ["baseline"]


def test_a_name_in_use_for_other_content_is_refused(store: Store, log: Path, tmp_path: Path) -> None:
    (first,) = store.add(log, name="a")
    other = write(tmp_path / "b.jsonl", answers(1))
    with pytest.raises(DataError, match=rf'"a" is taken by another run, {first.run.id}, of 6 rows .*`replace`'):
        store.add(other, name=" a ")
    assert (folders(store.root), left_over(store.root)) == ([first.run.id], [])


def test_replacing_puts_the_new_run_in_and_takes_the_old_one_out(store: Store, log: Path, tmp_path: Path) -> None:
    (first,) = store.add(log, name="a")
    (second,) = store.add(write(tmp_path / "b.jsonl", answers(1)), name="a", replace=True)
    assert second.new
    assert [run.id for run in store.runs()] == [second.run.id] == folders(store.root)
    (back,) = store.add(log, name="a", replace=True)
    assert (back.new, folders(store.root)) == (True, [first.run.id])


def test_a_file_of_several_systems_gives_a_run_each(store: Store, tmp_path: Path) -> None:
    rows = [{**row, "system": name} for name, seed in (("x", 1), ("y", 2)) for row in answers(seed)]
    path = write(tmp_path / "both.jsonl", rows)
    assert [one.run.name for one in store.add(path)] == ["x", "y"]
    assert [(one.run.name, one.new) for one in store.add(path, name="test")] == [("x", False), ("y", False)]
    for name in ("x", "y"):
        store.remove(name)
    assert [one.run.name for one in store.add(path, name="test")] == ["test: x", "test: y"]
    assert store.responses(store.run("test: x")).systems == ("test: x",)


def test_parts_of_a_log_that_name_their_system_are_one_run(store: Store, tmp_path: Path) -> None:
    rows = [{**row, "system": "x"} for row in answers(1)]
    parts = [write(tmp_path / f"part-{k}.jsonl", rows[k::2]) for k in (0, 1)]
    (added,) = store.add(*parts)
    assert (added.run.name, added.run.n, added.run.source) == ("x", len(rows), "part-0.jsonl, part-1.jsonl")


def test_files_without_a_system_are_named_after_themselves(store: Store, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "log.jsonl", answers(len(folder) + ord(folder[0])))
    added = store.add(str(tmp_path / "*" / "log.jsonl"))
    assert [one.run.name for one in added] == ["one/log", "two/log"]


def test_two_new_runs_of_one_name_are_refused_before_either_is_added(store: Store, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", answers(1))
    write(tmp_path / "a.jsonl.other", DIALOGUES)
    (tmp_path / "b").mkdir()
    sent = [
        RenamedFile(tmp_path / "a.jsonl", "a.jsonl"),
        RenamedFile(write(tmp_path / "b" / "x.jsonl", answers(2)), "a.jsonl"),
    ]
    with pytest.raises(DataError, match='two of these would be called "a"'):
        store.add(*sent)
    assert store.runs() == []


def test_standard_input_is_added_too(store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BufferedReader(io.BytesIO(log.read_bytes()))

    monkeypatch.setattr(sys, "stdin", Piped)
    (added,) = store.add("-", name="piped")
    assert (added.run.name, added.run.n) == ("piped", 6)


def test_a_file_that_was_sent_goes_by_the_name_it_was_sent_under(store: Store, log: Path, tmp_path: Path) -> None:
    (added,) = store.add(RenamedFile(log.rename(tmp_path / "f3a9.jsonl"), "My run.jsonl"))
    assert (added.run.name, added.run.source) == ("My run", "My run.jsonl")
    bad = write(tmp_path / "0b1c.jsonl", [{**ROWS[0], "confidence": "high"}])
    with pytest.raises(DataError, match=r'^sent\.jsonl:1: confidence must be a number; got "high"$'):
        store.add(RenamedFile(bad, "sent.jsonl"))
    table = write(tmp_path / "77.jsonl", TRIALS)
    with pytest.raises(
        UsageError, match=r"^t\.jsonl: a table of trials needs `x` and `y`.*columns there: performer, w"
    ):
        store.add(RenamedFile(table, "t.jsonl"))


@pytest.mark.parametrize(
    ("rows", "how", "said"),
    [
        ([{**ROWS[0], "confidence": "high"}], RunReading(), r"bad\.jsonl:1: confidence must be a number"),
        ([*ROWS, ROWS[0]], RunReading(), "occurs twice"),
        ([{**LISTS[0], "hypotheses": 7}], RunReading(), "hypotheses"),
        (DIALOGUES + DIALOGUES, RunReading(), 'the dialogue "d1" occurs twice'),
        (TRIALS, RunReading(x="wer", y="don"), 'no column "don"'),
        (ROWS, RunReading(x="wer", y="done"), "`x` and `y` go with a table of trials"),
        (DIALOGUES, RunReading(where=(("turns", "4"),)), "not dialogues"),
        (ROWS, RunReading(columns={"target": "nope"}), "nope"),
    ],
)
def test_bad_input_says_what_the_reader_says_and_leaves_no_run(
    store: Store, tmp_path: Path, rows: list[dict[str, object]], how: RunReading, said: str
) -> None:
    good = write(tmp_path / "a good one.jsonl", answers(5))
    bad = write(tmp_path / "bad.jsonl", rows)
    with pytest.raises((DataError, UsageError), match=said):
        store.add(*([good, bad] if how == RunReading() else [bad]), reading=how)
    assert (store.runs(), folders(store.root), left_over(store.root)) == ([], [], [])


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5)
ANSWERS = st.lists(
    st.fixed_dictionaries(
        {
            "target": st.one_of(
                st.none(), st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["a", "b"]), max_size=2)
            ),
            "prediction": st.one_of(st.none(), st.sampled_from(["a", "b"])),
            "confidence": st.floats(0, 1),
            "failed": st.booleans(),
            "input": st.one_of(st.none(), TEXTS),
            "row": TEXTS,
            "demur": TEXTS,
            "slices": st.one_of(st.none(), st.integers(0, 3)),
            "weight": st.sampled_from([0.5, 1, 2]),
        }
    ),
    min_size=1,
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ANSWERS)
def test_answers_come_back_as_they_were_read_columns_of_any_name_too(
    store: Store, tmp_path: Path, rows: list[dict[str, object]]
) -> None:
    path = write(tmp_path / "guide.jsonl", [{"id": k, **row} for k, row in enumerate(rows)])
    read = read_responses(path, reading=Reading(keep=("*",)))
    (added,) = store.add(path, name="guide", replace=True)
    back = store.responses(added.run, columns=["*"])
    assert_frame_equal(
        back.frame.with_columns(system=pl.lit(added.run.name)), read.frame.with_columns(system=pl.lit(added.run.name))
    )
    assert (back.notes, back.warnings) == (added.run.notes, added.run.warnings)
    assert store.check() == {}
    assert not store.add(path, name="again")[0].new


def test_only_the_columns_asked_for_are_read_besides_what_was_judged(store: Store, log: Path) -> None:
    run = store.add(log)[0].run
    plain = read_responses(log)
    assert_frame_equal(store.responses(run).frame, plain.frame)
    assert store.responses(run, columns=["domain", "id"]).frame.columns == [*plain.frame.columns, "domain"]
    with pytest.raises(DataError, match=r'run "guide": there is no column "domane"; .*domain'):
        store.responses(run, columns=["domane"])


def test_a_column_that_judging_has_a_name_for_is_told_to_be_lost(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{**row, "right": "left"} for row in ROWS])
    assert 'the column "right" is not kept: judged rows have one of that name' in store.add(path)[0].run.warnings


def test_answers_of_infinite_confidence_are_refused_and_nothing_is_kept(store: Store, tmp_path: Path) -> None:
    rows = [{"target": "a", "prediction": "a", "confidence": value} for value in (0.5, "inf")]
    with pytest.raises(DataError, match=r"a\.jsonl:2: confidence must not be NaN or infinite"):
        store.add(write(tmp_path / "a.jsonl", rows))
    assert store.runs() == []


def test_how_answers_were_read_is_kept(store: Store, log: Path) -> None:
    how = RunReading(where=(("domain", "a"),), withheld=("song",), columns={"target": "target"})
    run = store.add(log, reading=how)[0].run
    assert run.n == 3
    assert run.reading == {
        "columns": {"target": "target"},
        "where": (("domain", "a"),),
        "withheld": ("song",),
    }
    assert store.run(run.id).reading["where"] == [["domain", "a"]]
    assert store.responses(run).frame["answered"].to_list() == [True, False, False]


def test_n_best_lists_come_back_as_they_were_read(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "lists.jsonl", LISTS)
    run = store.add(path)[0].run
    assert (run.kind, run.n, run.about["utterances"], run.about["hypotheses"]) == ("nbest", 2, 2, 3)
    read, back = read_nbest(path), store.lists(run)
    assert_frame_equal(read.frame, back.frame)
    assert [back.sets.items_of(act) for act in back.act] == [read.sets.items_of(act) for act in read.act]
    assert [back.sets.items_of(act) for act in back.reference] == [read.sets.items_of(act) for act in read.reference]
    assert back.confidence.tolist() == read.confidence.tolist()
    assert store.lists(run, keep=["dialogue"]).systems == ("lists",)
    assert store.check() == {}


def test_the_options_that_lists_were_added_with_hold_when_they_are_read(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "lists.jsonl", [{**LISTS[0], "ref": LISTS[0]["reference"], "reference": "bye()"}])
    how = RunReading(columns={"reference": "ref"}, items="dstc")
    run = store.add(path, reading=how)[0].run
    back, read = store.lists(run), read_nbest(path, reading=NBestReading(columns={"reference": "ref"}, items="dstc"))
    assert [back.sets.items_of(act) for act in back.reference] == [read.sets.items_of(act) for act in read.reference]
    assert store.add(path, name="otherwise")[0].new, "read otherwise it is another run"


def test_dialogues_come_back_as_they_were_read(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "talks.jsonl", DIALOGUES)
    run = store.add(path)[0].run
    assert (run.kind, run.about["dialogues"], run.about["mean"]) == ("dialogues", 2, 0.75)
    assert_frame_equal(store.dialogues(run).frame, read_dialogues(path).frame)
    assert store.dialogues(run, outcome="pre").frame["outcome"].to_list() == [0.5, 0.2]


def test_an_outcome_that_was_guessed_is_told_and_stays(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "talks.jsonl", [{"dialogue": "d1", "success": True}, {"dialogue": "d2", "success": False}])
    run = store.add(path)[0].run
    assert 'outcome read from column "success"' in run.notes
    assert store.dialogues(run).frame["outcome"].to_list() == [1.0, 0.0]


def test_trials_come_back_as_they_were_read(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "study.jsonl", TRIALS)
    run = store.add(path, reading=RunReading(x="wer", y="done"))[0].run
    assert (run.kind, run.about["x"], run.about["performers"]) == ("trials", "wer", ["wizard", "A", "B"])
    (read,), (back,) = read_trials(path, reading=TrialReading(x="wer", y="done")), store.trials(run)
    assert (back.study, back.digest) == ("study", read.digest)
    (turned,) = store.trials(run, gold=("A",))
    assert turned.performers[0] == "A"
    pl.DataFrame(TRIALS).write_parquet(tmp_path / "study.parquet")
    assert not store.add(tmp_path / "study.parquet", reading=RunReading(x="wer", y="done"))[0].new


def test_the_kind_can_be_chosen_for_all_or_by_file(store: Store, tmp_path: Path) -> None:
    rows = [{**LISTS[0], "prediction": "thai", "correct": True, "confidence": 0.5}]
    path = write(tmp_path / "either.jsonl", rows)
    with pytest.raises(DataError, match="may be a table of responses or of nbest"):
        store.add(path)
    assert store.add(path, kind="nbest")[0].run.kind == "nbest"
    store.remove("either")
    assert store.add(path, kind={"either.jsonl": "responses"})[0].run.kind == "responses"


def test_a_run_of_another_kind_is_refused_by_name(store: Store, log: Path) -> None:
    run = store.add(log)[0].run
    for read in (store.lists, store.dialogues, store.trials):
        with pytest.raises(DataError, match='"guide" is a run of responses, not of'):
            read(run)
    with pytest.raises(DataError, match="is a run of nbest, not of responses"):
        store.rows(replace(run, kind="nbest"))


def test_runs_are_found_by_name_by_id_and_by_how_an_id_begins(store: Store, log: Path) -> None:
    run = store.add(log)[0].run
    assert store.run("guide") == store.run(run.id) == store.run(run.id[:4]) == run
    with pytest.raises(DataError, match=r'there is no run "giude" \(did you mean "guide"\?'):
        store.run("giude")
    with pytest.raises(DataError, match="there is no run"):
        store.run(run.id[:3])


def test_a_name_that_is_the_id_of_another_run_does_not_stand_for_it(store: Store, log: Path, tmp_path: Path) -> None:
    first = store.add(log)[0].run
    second = store.add(write(tmp_path / f"{first.id}.jsonl", answers(3)))[0].run
    assert second.name == first.id
    assert store.remove(first.id) == first
    assert store.run(first.id) == second, "once nobody else is called so"


@pytest.mark.parametrize("note", ["\udc80", "a\ud800b"])
def test_a_note_that_no_file_can_hold_is_refused(store: Store, log: Path, note: str) -> None:
    with pytest.raises(DataError, match=r"a note must be text; .* got \"a?\\ud"):
        store.add(log, note=note)
    run = store.add(log)[0].run
    with pytest.raises(DataError, match="a note must be text"):
        store.change(run.id, note=note)


@pytest.mark.parametrize(
    ("tag", "told"), [("\ud800", "can be shown"), ("a\u202eb", "can be shown"), ("x" * 101, "at most 100 characters")]
)
def test_a_tag_that_cannot_be_shown_is_refused(store: Store, log: Path, tag: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        store.add(log, tags=(tag,))


def test_the_beginning_of_several_ids_is_refused(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur.store.runs.SHORTEST", 0)
    store.add(*(write(tmp_path / f"{k}.jsonl", answers(k)) for k in range(2)))
    with pytest.raises(DataError, match='"" may be several runs'):
        store.run("")


def test_an_empty_store_says_how_to_add_a_run(store: Store) -> None:
    with pytest.raises(DataError, match="the store is empty; demur add adds a run"):
        store.run("x")


def test_runs_are_listed_by_kind_and_tag_the_newest_first(store: Store, log: Path, tmp_path: Path) -> None:
    store.add(log, tags=["a", "b"])
    store.add(write(tmp_path / "lists.jsonl", LISTS), tags=["b"])
    names = [[run.name for run in store.runs(**asked)] for asked in ({}, {"kind": "nbest"}, {"tag": "a"}, {"tag": "c"})]
    assert names == [["lists", "guide"], ["lists"], ["guide"], []]


def test_a_run_can_be_called_otherwise_tagged_and_noted(store: Store, log: Path, tmp_path: Path) -> None:
    run = store.add(log, tags=["a"], note="n")[0].run
    assert store.change("guide", name="other") == replace(run, name="other")
    new = store.change(run.id, tags=["b", "b"], note="m")
    assert new == replace(run, name="other", tags=("b",), note="m")
    with Store.open(store.root) as again:
        assert again.runs() == [new]
    store.add(write(tmp_path / "second.jsonl", answers(3)))
    with pytest.raises(DataError, match='the name "second" is taken by another run'):
        store.change("other", name="second")
    assert store.change("other", name="other").name == "other"


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "\u202e", "x" * 201])
def test_names_that_cannot_be_shown_are_refused(store: Store, log: Path, name: str) -> None:
    with pytest.raises(DataError, match="the name of a run"):
        store.add(log, name=name)
    assert store.runs() == []


def test_a_removed_run_is_gone_and_can_be_added_again(store: Store, log: Path) -> None:
    run = store.add(log)[0].run
    assert store.remove("guide") == run
    assert (store.runs(), folders(store.root), left_over(store.root)) == ([], [], [])
    with pytest.raises(DataError, match=r"is damaged: its rows\.parquet cannot be read"):
        store.responses(run)
    assert store.add(log)[0].new


def test_a_run_that_goes_while_it_is_added_again_is_not_put_in_without_rows(store: Store, log: Path) -> None:
    store.add(log)
    original = Store._stage

    def written(self: Store, draft: object, stack: object) -> object:
        ready = original(self, draft, stack)  # type: ignore[arg-type]
        with Store.open(self.root) as other:
            other.remove("guide")
        return ready

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "_stage", written)
        with pytest.raises(UsageError, match="was removed just now; add it again"):
            store.add(log)
    assert store.problems == ()
    assert store.add(log)[0].new


def test_turns_of_a_challenge_are_kept_as_rows_whether_of_a_folder_or_of_a_file(store: Store, tmp_path: Path) -> None:
    folder = corpus(tmp_path / "dstc", "voip-1", "voip-2")
    run = store.add(folder)[0].run
    read, back = read_nbest(folder), store.lists(run)
    assert (run.kind, run.name, run.n, run.reading) == ("nbest", "dstc", len(read), {"items": "dstc"})
    assert [back.sets.items_of(act) for act in back.act] == [read.sets.items_of(act) for act in read.act]
    assert back.confidence.tolist() == read.confidence.tolist()
    with pytest.raises(DataError, match="is a folder, not a file"):
        store.add(store.root)


def test_a_column_that_names_a_system_a_row_is_refused(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{**row, "system": k} for k, row in enumerate(answers(1, 300))])
    with pytest.raises(DataError, match=r"a\.jsonl names 301 systems, and each would be a run; 200 are the most"):
        store.add(path)


def test_threads_may_share_a_store(store: Store, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{k}.jsonl", answers(k // 2)) for k in range(16)]
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda path: store.add(path)[0], paths))
    assert sum(one.new for one in added) == len(store.runs()) == 8
    assert (store.check(), store.problems) == ({}, ())


def test_a_reading_that_came_as_json_is_the_same_reading() -> None:
    how = RunReading(where=(("a", "b"),), gold=("w",))
    assert RunReading(**json.loads(json.dumps(how.to_dict()))) == how
    assert RunReading(out_of_scope=["oos", "out_of_scope"]).to_dict() == {}  # type: ignore[arg-type]


def test_lists_come_back_with_all_their_letters(store: Store, tmp_path: Path) -> None:
    texts = ["a\\b", "'\\", "tab\there", 'quo"te', "\u2028", "]]>"]
    rows = [
        {"id": str(place), "reference": [text], "hypotheses": [{"items": [text], "confidence": 0.5}]}
        for place, text in enumerate(texts)
    ]
    path = write(tmp_path / "odd.jsonl", rows)
    read, back = read_nbest(path), store.lists(store.add(path, kind="nbest")[0].run)
    assert [back.sets.items_of(act) for act in back.act] == [read.sets.items_of(act) for act in read.act]
    assert [back.sets.items_of(act) for act in back.reference] == [read.sets.items_of(act) for act in read.reference]
