"""Runs that link to a lake: counted where they lie as rows in memory, refused once the lake is another."""

import os
from itertools import product

import polars as pl
import pytest

import demur
from demur.core.jobs import Job
from demur.errors import DataError, UsageError
from demur.returns.counting import Counting
from demur.returns.table import Responses
from demur.returns.verify import other_answers, sample_log
from demur.store.intake import RunReading
from demur.store.runs import Store, with_runs

ROWS = (
    sample_log(300, seed=5)
    .drop("weight", "dialogue")
    .with_columns(pl.col("confidence").round(2), input=pl.concat_str(pl.lit("Say "), "id"))
)


def confidence_of(row):
    return row["confidence"]


def distance_of(row):
    return None if row["confidence"] is None else round(abs(row["confidence"] - 0.5), 9)


@pytest.fixture
def folder(tmp_path):
    """A lake of two parts."""
    return lake(tmp_path / "lake", ROWS)


@pytest.fixture(params=["polars", "duckdb"])
def how(request):
    return Counting(engine=request.param)


def lake(folder, rows):
    folder.mkdir()
    for place, part in enumerate(rows.iter_slices(-(-rows.height // 2))):
        part.write_parquet(folder / f"{place}.parquet")
    return folder


def added(store, rows, tmp_path):
    rows.write_parquet(tmp_path / "log.parquet")
    return store.add(tmp_path / "log.parquet", name="here")[0].run


def test_a_linked_run_knows_what_the_same_run_knows_when_it_is_added(store, folder, how, tmp_path):
    (found,) = store.link(str(folder), how=how)
    other = added(store, ROWS, tmp_path)
    assert found.new
    assert (found.run.name, found.run.n, found.run.engine) == ("lake", ROWS.height, how.engine)
    about, expected = ({**run.about, "slices": None} for run in (found.run, other))
    assert about.pop("errors_at") == pytest.approx(expected.pop("errors_at"))
    assert about == pytest.approx(expected)
    assert set(found.run.about["slices"]) <= set(other.about["slices"]) | {"failed"}
    assert sorted(path.name for path in (store.root / "runs" / found.run.id).iterdir()) == ["lake.json", "run.json"]
    assert store.link(str(folder), how=how)[0].new is False


OUTCOMES = ("wrong", "right", "missed", "withheld", "scope", "failed", "all")
SELECTIONS = ({}, {"where": [("domain", "desk")]}, {"low": 0.2, "high": 0.8}, {"search": "SAY q1"})
SAME = ("target", "prediction", "right", "answered", "input", "failed", "out_of_scope")


def test_pages_of_rows_are_those_of_memory(store, folder, tmp_path):
    run = store.link(str(folder))[0].run
    own, other = store.lake_rows(run), store.rows(added(store, ROWS, tmp_path))
    assert [own.counts(0.5, **chosen) for chosen in SELECTIONS] == [
        other.counts(0.5, **chosen) for chosen in SELECTIONS
    ]
    for outcome, chosen, order in product(OUTCOMES, SELECTIONS, ("surest", "least", "nearest")):
        found, expected = (rows.page(outcome, threshold=0.5, order=order, limit=500, **chosen) for rows in (own, other))
        assert found.total == expected.total == len(found.rows), (outcome, chosen)
        place = distance_of if order == "nearest" else confidence_of
        assert [place(row) for row in found.rows] == [place(row) for row in expected.rows]
        by_id = {row["id"]: row for row in expected.rows}
        for row in found.rows:
            twin = by_id[row["id"]]
            assert {name: row[name] for name in SAME} == {name: twin[name] for name in SAME}
            assert row["slices"]["domain"] == twin["slices"]["domain"]


def test_pages_go_on_where_the_one_before_ended(store, folder, how):
    rows = store.lake_rows(store.link(str(folder), how=how)[0].run)
    whole = [row["id"] for row in rows.page("all", limit=100).rows]
    assert [row["id"] for place in range(4) for row in rows.page("all", offset=25 * place, limit=25).rows] == whole
    assert rows.page("all", where=[("domain", "nowhere")]).total == 0
    assert dict(rows.slices()["domain"]) == dict(ROWS["domain"].value_counts().iter_rows())
    with pytest.raises(UsageError, match="choose fewer by a filter"):
        rows.page("all", offset=200_000)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: os.utime(folder / "1.parquet", ns=(0, 0)), r"1\.parquet rewritten"),
        (lambda folder: (folder / "0.parquet").unlink(), r"0\.parquet gone"),
        (lambda folder: ROWS.write_parquet(folder / "2.parquet"), r"2\.parquet added"),
    ],
)
def test_a_lake_that_has_changed_is_refused_until_it_is_linked_again(store, folder, change, told):
    run = store.link(str(folder))[0].run
    assert store.change_of(run) is None
    change(folder)
    with pytest.raises(DataError, match=rf"has changed since it was linked: {told} \(demur add --link .*--replace"):
        demur.score(store.lake(run), replicates=50)
    assert list(store.check()) == [run.id]
    with pytest.raises(DataError, match="is taken by another run"):
        store.link(str(folder))
    (again,) = store.link(str(folder), replace=True)
    assert demur.score(store.lake(again.run), replicates=50)[0].n == again.run.n
    assert [one.name for one in store.runs()] == ["lake"]


def test_a_lake_that_is_gone_says_so(store, folder):
    run = store.link(str(folder))[0].run
    for part in folder.iterdir():
        part.unlink()
    with pytest.raises(DataError, match="cannot be looked at"):
        demur.score(store.lake(run), replicates=50)


def test_a_reference_that_was_changed_on_disk_is_a_damaged_run(root, folder):
    with Store.open(root) as store:
        run = store.link(str(folder))[0].run
    path = root / "runs" / run.id / "lake.json"
    path.write_bytes(path.read_bytes().replace(b"0.parquet", b"9.parquet"))
    with (
        Store.open(root) as store,
        pytest.raises(DataError, match=r"is damaged: its lake\.json is not what was linked"),
    ):
        store.lake(run)


def test_a_lake_of_two_systems_becomes_two_runs_that_are_compared_as_in_memory(store, tmp_path):
    two = other_answers(ROWS)
    named = [rows.with_columns(system=pl.lit(name)) for name, rows in (("one", ROWS), ("two", two))]
    both = [each.run for each in store.link(str(lake(tmp_path / "both", pl.concat(named))), name="march")]
    assert [(run.name, run.n) for run in both] == [("march: one", 300), ("march: two", 300)]
    found = demur.compare(*map(store.lake, both), replicates=50).pairs[0]
    expected = demur.compare({"one": ROWS, "two": two}, replicates=50).pairs[0]
    assert (found.a, found.b) == ("march: one", "march: two")
    assert found.area.value == expected.area.value
    assert [one.system for one in demur.score(*map(store.lake, both), replicates=50)] == ["march: one", "march: two"]


def test_the_counts_of_a_linked_run_are_kept_so_that_its_rows_are_read_once(store, folder, monkeypatch):
    run = store.link(str(folder))[0].run
    expected = demur.score(store.lake(run), replicates=50)[0]
    monkeypatch.setattr("demur.returns.counting.judge_lazily", None)
    renamed = store.change(run.id, name="renamed")
    found = demur.score(store.lake(renamed), replicates=50)[0]
    assert (found.system, found.figures["augrc"]) == ("renamed", expected.figures["augrc"])


def test_how_a_lake_was_read_when_it_was_linked_is_how_it_is_read(store, tmp_path):
    renamed = ROWS.rename({"confidence": "sure"}).with_columns(
        target=pl.col("target").replace("tickets", "nothing fits")
    )
    reading = RunReading(columns={"confidence": "sure"}, out_of_scope=("nothing fits",), where=(("domain", "desk"),))
    run = store.link(str(lake(tmp_path / "lake", renamed)), reading=reading)[0].run
    (found,) = demur.score(store.lake(run), replicates=50)
    (expected,) = demur.score(
        renamed,
        columns={"confidence": "sure"},
        out_of_scope=("nothing fits",),
        where=(("domain", "desk"),),
        replicates=50,
    )
    assert (found.n, found.figures["augrc"]) == (expected.n, expected.figures["augrc"])


def job(name):
    return Job(name, getattr(demur, name), "", "")


def test_commands_take_linked_runs_with_conditions_and_others_say_why_not(root, folder, monkeypatch):
    monkeypatch.setenv("DEMUR_STORE", str(root))
    with Store.open(root) as store:
        run = store.link(str(folder))[0].run
        (tables, _) = with_runs(["run:lake"], {"where": (("domain", "desk"),)}, job("score"))
        assert demur.score(*tables, replicates=50)[0].n == ROWS.filter(domain="desk").height
        with pytest.raises(UsageError, match=r"is linked, so its rows are not here: demur score, compare"):
            with_runs(["run:lake"], {}, job("validate"))
        with pytest.raises(UsageError, match="add its files for this"):
            store.responses(run)
        judged = Responses(pl.DataFrame())
        with pytest.raises(UsageError, match="link both, or add both"):
            demur.score(store.lake(run), judged)
        with pytest.raises(UsageError, match="not `engine` memory"):
            demur.score(store.lake(run), engine="memory")


def test_only_lakes_of_answers_are_linked(store, tmp_path):
    dialogues = pl.DataFrame({"dialogue": ["a", "b"], "outcome": [1, 0]})
    with pytest.raises(UsageError, match="only lakes of answers are linked; this one holds dialogues"):
        store.link(str(lake(tmp_path / "ends", dialogues)))
