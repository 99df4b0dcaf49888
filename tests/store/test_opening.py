"""A store opens whatever became of its folder, mends what it can, tells of the rest, and loses nothing."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.io.untrusted import MOST_JSON
from demur.errors import DataError, DemurError, UsageError
from demur.store import records
from demur.store.intake import RunReading
from demur.store.presentation import RunList, of_runs
from demur.store.records import LAYOUT
from demur.store.runs import Store
from mutated import changed_bytes, changed_json
from store.tables import DIALOGUES, LISTS, TRIALS, answers, folders, left_over, write


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two runs, "a" and "b", and the files they came from."""
    folder = tmp_path_factory.mktemp("two")
    with Store.open(folder / "store") as store:
        store.add(*(write(folder / f"{name}.jsonl", answers(ord(name))) for name in "ab"))
    return folder


@pytest.fixture
def two(made_once: Path, root: Path, tmp_path: Path) -> Path:
    """A store of two runs, "a" and "b", of one's own."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    return root


def opened(root: Path) -> tuple[list[str], tuple[str, ...]]:
    """The names in a store, and what it says of itself."""
    with Store.open(root) as store:
        return sorted(run.name for run in store.runs()), store.problems


def folder_of(root: Path, name: str) -> Path:
    with Store.open(root) as store:
        return root / "runs" / store.run(name).id


def test_a_store_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "new" / "store"
    assert opened(root) == ([], ())
    assert sorted(entry.name for entry in root.iterdir()) == [
        "cache",
        "index.sqlite",
        "lock.sqlite",
        "runs",
        "staging",
        "store.json",
    ]
    assert json.loads((root / "store.json").read_text()) == {
        "store": "demur",
        "layout": LAYOUT,
        "migrations": ["make folders"],
    }
    if os.name == "posix":
        assert root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.local/share/demur"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/demur"),
        ("darwin", {}, "home/Library/Application Support/demur"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/demur"),
        ("linux", {"DEMUR_STORE": "/mine", "XDG_DATA_HOME": "/data"}, "/mine"),
        ("linux", {"DEMUR_STORE": ""}, "home/.local/share/demur"),
    ],
)
def test_without_a_folder_the_store_lies_where_the_system_keeps_data(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("DEMUR_STORE", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert records.usual_root().as_posix() == expected


def test_the_environment_names_the_store(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMUR_STORE", str(root))
    with Store.open() as store:
        assert store.root == root


@pytest.mark.parametrize("inside", ["thesis.tex", "runs/tensorboard", "runs/events.out"])
def test_a_folder_that_holds_something_else_is_refused_and_left_as_it_is(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "folder" / inside
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    before = sorted((tmp_path / "folder").rglob("*"))
    with pytest.raises(UsageError, match=rf'is no store, and not empty: it holds "{inside}"; .*--store'):
        Store.open(tmp_path / "folder")
    assert sorted((tmp_path / "folder").rglob("*")) == before


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, not the folder of a store"):
        Store.open(tmp_path / "file")


@pytest.mark.parametrize("spoil", [b"garbage" * 1000, b"", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_index_is_put_aside_and_made_again(two: Path, spoil: bytes) -> None:
    (two / "index.sqlite").write_bytes(spoil)
    names, problems = opened(two)
    assert names == ["a", "b"]
    assert opened(two) == (["a", "b"], ())
    if spoil:
        assert problems == (
            "the index was damaged and has been rebuilt from the runs; the old one is index.sqlite.damaged-1",
        )
        assert (two / "index.sqlite.damaged-1").read_bytes() == spoil
        (two / "index.sqlite").write_bytes(spoil)
        assert "index.sqlite.damaged-2" in opened(two)[1][0]


def test_an_index_whose_schema_is_no_text_is_made_again(two: Path) -> None:
    """SQLite names the table in its message, which Python then cannot decode."""
    opened(two)
    whole = (two / "index.sqlite").read_bytes()
    assert whole.count(b"tablerunsruns") == 1
    (two / "index.sqlite").write_bytes(whole.replace(b"tablerunsruns", b"table\xffunsrun\xff"))
    assert "the index was damaged" in opened(two)[1][0]


def test_an_index_of_another_schema_is_made_again(two: Path) -> None:
    for change in ("DROP TABLE runs", "ALTER TABLE runs ADD COLUMN more", "PRAGMA user_version = 99"):
        connection = sqlite3.connect(two / "index.sqlite")
        connection.execute(change)
        if change.startswith("DROP"):
            connection.execute("CREATE TABLE runs (id TEXT, else_ TEXT)")
        connection.commit()
        connection.close()
        names, problems = opened(two)
        assert (names, len(problems)) == (["a", "b"], 1)


def test_an_index_that_is_spoilt_under_an_open_store_is_made_again(two: Path) -> None:
    with Store.open(two) as store:
        connection = sqlite3.connect(two / "index.sqlite")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = 777 WHERE name = 'runs'")
        connection.commit()
        connection.close()
        assert sorted(run.name for run in store.runs()) == ["a", "b"]


def test_a_missing_index_is_made_without_a_word(two: Path) -> None:
    (two / "index.sqlite").unlink()
    assert opened(two) == (["a", "b"], ())


def test_an_index_that_cannot_be_opened_is_done_without(two: Path, tmp_path: Path) -> None:
    (two / "index.sqlite").unlink()
    (two / "index.sqlite").mkdir()
    names, (problem,) = opened(two)
    assert names == ["a", "b"]
    assert problem.endswith("runs are listed from their folders")
    with Store.open(two) as store:
        store.add(write(tmp_path / "c.jsonl", answers(9)))
        store.remove("a")
    assert opened(two)[0] == ["b", "c"]


def test_garbage_in_the_lock_does_no_harm(two: Path) -> None:
    (two / "lock.sqlite").write_bytes(b"garbage" * 1000)
    assert opened(two) == (["a", "b"], ())


def test_a_folder_that_is_gone_is_told_by_name_and_id(two: Path) -> None:
    folder = folder_of(two, "a")
    shutil.rmtree(folder)
    gone = f'the folder of the run "a" ({folder.name}) is gone; the run is no longer listed'
    assert opened(two) == (["b"], (gone,))
    assert opened(two) == (["b"], ())


def test_a_folder_that_goes_under_an_open_store_is_told_too(two: Path) -> None:
    folder = folder_of(two, "a")
    with Store.open(two) as store:
        assert len(store.runs()) == 2
        shutil.rmtree(folder)
        assert [run.name for run in store.runs()] == ["b"]
        assert "is gone" in store.problems[0]


def test_a_folder_that_appears_is_taken_in(two: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "other") as other:
        run = other.add(write(tmp_path / "c.jsonl", answers(99)))[0].run
    shutil.copytree(tmp_path / "other" / "runs" / run.id, two / "runs" / run.id)
    assert opened(two) == (["a", "b", "c"], ())


def test_what_is_no_run_is_told_and_passed_over(two: Path) -> None:
    (two / "runs" / "notes.txt").write_text("mine")
    (two / "runs" / ".DS_Store").write_text("a system's")
    assert opened(two) == (["a", "b"], ('"notes.txt" in the folder runs is no run and is passed over',))


@pytest.mark.parametrize("spoil", ["{", "[]", '{"id": 7}', None])
def test_a_damaged_description_is_written_anew_from_the_index(two: Path, spoil: str | None) -> None:
    path = folder_of(two, "a") / "run.json"
    before = path.read_bytes()
    path.unlink() if spoil is None else path.write_text(spoil)
    names, problems = opened(two)
    assert names == ["a", "b"]
    assert problems == (f'the run.json of the run "a" ({path.parent.name}) was damaged and has been rewritten',)
    assert path.read_bytes() == before
    assert (path.parent / "run.json.damaged-1").exists() == (spoil is not None)
    assert opened(two) == (["a", "b"], ())


def test_a_damaged_description_that_nothing_else_knows_is_told_every_time_and_kept(two: Path) -> None:
    path = folder_of(two, "a") / "run.json"
    path.write_text("{")
    (two / "index.sqlite").unlink()
    for _ in range(2):
        names, (problem,) = opened(two)
        assert names == ["b"]
        assert f'"{path.parent.name}"' in problem
        assert "its run.json does not have the form of a run: Input data was truncated" in problem
    assert path.read_text() == "{"


@pytest.mark.parametrize("spoil", [b"PAR1", None])
def test_rows_that_are_cut_off_or_gone_are_told_and_kept_until_they_are_added_again(
    two: Path, tmp_path: Path, spoil: bytes | None
) -> None:
    path = folder_of(two, "a") / "rows.parquet"
    path.unlink() if spoil is None else path.write_bytes(spoil)
    for _ in range(2):
        names, (problem,) = opened(two)
        assert names == ["b"]
        assert problem.startswith(f'the run "a" ({path.parent.name}) is damaged: its rows.parquet')
        assert problem.endswith("its folder is left as it is")
    with Store.open(two) as store:
        with pytest.raises(DataError, match=r'the run "a" .* is damaged: .* \(add its file again\)'):
            store.run("a")
        assert list(store.check()) == [path.parent.name]
        assert store.add(tmp_path / "a.jsonl")[0].new
        assert store.check() == {}
    assert opened(two) == (["a", "b"], ())


def test_no_bit_of_the_rows_can_change_in_silence(two: Path) -> None:
    path = folder_of(two, "a") / "rows.parquet"
    content, found = path.read_bytes(), path.stat()
    rng = random.Random(16)
    for turn in range(200):
        spoilt = bytearray(content)
        spoilt[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(spoilt)
        if turn % 2:  # a disk that forgets does not change the time
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        with Store.open(two) as store:
            run = next(one for one in [*store.runs(), None] if one is None or one.name == "a")
            if run is not None:  # not found yet
                with pytest.raises(
                    DataError, match=r'the run "a" .* is damaged: the rows in rows.parquet are not those'
                ):
                    store.responses(run)
            assert [one.name for one in store.runs()] == ["b"]
            assert any('the run "a"' in one and "is damaged: the rows" in one for one in store.problems)
        path.unlink()
        path.write_bytes(content)
    assert opened(two) == (["a", "b"], ())


def test_rows_are_verified_once_and_again_when_the_file_changes(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder_of(two, "a") / "rows.parquet"
    verified = []
    original = records.file_digest
    monkeypatch.setattr(records, "file_digest", lambda path: verified.append(path) or original(path))
    with Store.open(two) as store:
        run = store.run("a")
        assert verified == [], "listing reads no rows"
        for _ in range(3):
            store.responses(run)
            store.rows(run)
        assert verified == [path]
        content = bytearray(path.read_bytes())
        content[60] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is damaged: the rows in rows\.parquet are not those that were added"):
            store.rows(run)
        with pytest.raises(DataError, match="is damaged"):
            store.run("a")


def test_a_run_without_the_digest_of_its_file_is_verified_by_its_content(two: Path) -> None:
    a, b = folder_of(two, "a"), folder_of(two, "b")
    document = json.loads((b / "run.json").read_text()) | {"size": (a / "rows.parquet").stat().st_size}
    del document["file_sha256"]
    shutil.copy(a / "rows.parquet", b / "rows.parquet")
    (b / "run.json").write_text(json.dumps(document))
    with Store.open(two) as store, pytest.raises(DataError, match="are not those that were added"):
        store.responses(store.run("b"))


@pytest.mark.parametrize(
    "change",
    [
        {"about": {}},
        {"about": {"forced_error": "much"}},
        {"about": {"slices": 7}},
        {"about": [[[[]]]]},
        {"n": -1},
        {"n": 10**30},
        {"n": "six"},
        {"name": ""},
        {"name": "x" * 10_000},
        {"name": None},
        {"tags": "museum"},
        {"tags": [{}]},
        {"reading": {"where": [[["deep"]]]}},
        {"kind": "zebra"},
        {"added": 7},
        {"sha256": "0" * 64},
        {"sha256": "../../etc"},
        {"file_sha256": "no"},
        {"columns": ["id", "prediction", "id"]},
        {"about": {"slices": ["domain", "domain"]}},
    ],
    ids=json.dumps,
)
def test_a_description_of_wrong_values_damages_its_own_run_and_no_other(two: Path, change: dict[str, Any]) -> None:
    path = folder_of(two, "a") / "run.json"
    document = json.loads(path.read_text())
    about = change.get("about")
    changed = {"about": document["about"] | about} if isinstance(about, dict) and about else change
    path.write_text(json.dumps(document | changed))
    (two / "index.sqlite").unlink()
    names, (problem,) = opened(two)
    assert names == ["b"]
    assert f"({path.parent.name}) is damaged: " in problem
    assert "run.json" in problem


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """The descriptions of a run of each kind, in one store."""
    folder = tmp_path_factory.mktemp("kinds")
    with Store.open(folder / "store") as store:
        store.add(write(folder / "a.jsonl"), write(folder / "l.jsonl", LISTS), write(folder / "d.jsonl", DIALOGUES))
        store.add(write(folder / "t.jsonl", TRIALS), reading=RunReading(x="wer", y="done"))
        return {path: path.read_bytes() for path in sorted(store.root.glob("runs/*/run.json"))}


@given(st.data())
def test_any_change_to_a_description_damages_its_own_run_or_none(described: dict[Path, bytes], data: Any) -> None:
    path, content = data.draw(st.sampled_from(list(described.items())))
    root = path.parents[2]
    path.write_bytes(data.draw(st.one_of(changed_json(json.loads(content)), changed_bytes(content))))
    (root / "index.sqlite").unlink(missing_ok=True)
    try:
        with Store.open(root) as store:
            runs = store.runs()
            assert {run.id for run in runs} >= {one.parent.name for one in described} - {path.parent.name}
            assert of_runs(RunList(root, tuple(runs), 4, store.check(), store.problems)).data().height == len(runs)
            for run in runs:
                reader = {"responses": store.responses, "nbest": store.lists}.get(
                    run.kind, getattr(store, run.kind, None)
                )
                with suppress(DemurError):
                    reader(run)
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("spoil", ["deep", "long", "pipe", "folder", "bytes"])
def test_a_description_that_is_no_document_damages_its_own_run_and_no_other(two: Path, spoil: str) -> None:
    path = folder_of(two, "a") / "run.json"
    text = path.read_bytes()
    path.unlink()
    if spoil == "pipe":
        os.mkfifo(path)
    elif spoil == "folder":
        path.mkdir()
    else:
        deep = text.rstrip()[:-1] + b', "x": ' + b"[" * 100_000 + b"}"
        path.write_bytes({"deep": deep, "long": text + b" " * MOST_JSON, "bytes": b"\xff\xfe{"}[spoil])
    (two / "index.sqlite").unlink()
    names, (problem,) = opened(two)
    assert names == ["b"]
    assert f"({path.parent.name}) is damaged: its run.json " in problem


def test_rows_that_were_tampered_with_are_found_when_all_are_read_again(two: Path) -> None:
    path = folder_of(two, "a") / "rows.parquet"
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF
    path.write_bytes(content)
    with Store.open(two) as store:
        assert len(store.runs()) == 2, "its size is what it was"
        (damage,) = store.check().values()
    assert damage.startswith(f'the run "a" ({path.parent.name}) is damaged: ')


def test_rows_of_another_run_are_found_when_all_are_read_again(two: Path) -> None:
    a, b = folder_of(two, "a"), folder_of(two, "b")
    shutil.copy(a / "rows.parquet", b / "rows.parquet")
    document = json.loads((b / "run.json").read_text())
    document["size"] = (a / "rows.parquet").stat().st_size
    (b / "run.json").write_text(json.dumps(document))
    with Store.open(two) as store:
        assert [text.rpartition(": ")[2] for text in store.check().values()] == [
            "the rows in rows.parquet are not those that were added"
        ]


def test_a_folder_under_another_runs_name_is_damaged(two: Path) -> None:
    folder = folder_of(two, "a")
    shutil.copytree(folder, two / "runs" / ("0" * 16))
    names, (problem,) = opened(two)
    assert names == ["a", "b"]
    assert f"its run.json is that of run {folder.name}" in problem


def test_a_run_of_a_newer_layout_is_told_and_kept(two: Path) -> None:
    path = folder_of(two, "a") / "run.json"
    document = {**json.loads(path.read_text()), "layout": LAYOUT + 1, "demur": "99.0"}
    path.write_text(json.dumps(document))
    (two / "index.sqlite").unlink()
    names, (problem,) = opened(two)
    assert names == ["b"]
    assert "it was written by a newer version, demur 99.0: upgrade to read it" in problem


def test_two_runs_of_one_name_are_told_apart_as_long_as_both_are_there(two: Path) -> None:
    path = folder_of(two, "b") / "run.json"
    path.write_text(path.read_text().replace('"name": "b"', '"name": "a"'))
    id_, other = path.parent.name, folder_of(two, "a").name
    clash = (
        f'two runs are called "a": {other} and {id_}, which is listed as "a ({id_[:6]})"; rename or remove one of them'
    )
    for _ in range(2):
        assert opened(two) == (["a", f"a ({id_[:6]})"], (clash,))
    with Store.open(two) as store:
        store.change(id_, name="c")
    assert opened(two) == (["a", "c"], ())


@pytest.mark.parametrize("added", ["1999-01-01T00:00:00.000+00:00", "2999-01-01T00:00:00.000+00:00"])
@pytest.mark.parametrize("live", [True, False])
def test_a_folder_that_says_it_replaces_a_run_deletes_nothing_and_takes_no_name(
    two: Path, tmp_path: Path, added: str, live: bool
) -> None:
    mine = folder_of(two, "a").name
    with Store.open(tmp_path / "theirs") as store:
        theirs = store.add(write(tmp_path / "theirs.jsonl", answers(7)), name="a")[0].run.id
    path = tmp_path / "theirs" / "runs" / theirs / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"replaces": mine, "added": added}))
    before = Store.open(two) if live else None
    shutil.copytree(path.parent, two / "runs" / theirs)
    with before or Store.open(two) as store:
        assert {run.name: run.id for run in store.runs()}["a"] == mine
        assert store.run(theirs).name == f"a ({theirs[:6]})"
        (clash,) = store.problems
        assert clash.startswith(f'two runs are called "a": {mine} and {theirs}, which is listed as "a ({theirs[:6]})"')
        assert len(store.responses(store.run("a"))) == len(store.responses(store.run(theirs))) == 31
    assert {mine, theirs} <= set(folders(two))


def test_a_replacement_that_was_cut_off_is_completed_by_the_note_of_the_store_alone(two: Path, tmp_path: Path) -> None:
    old = folder_of(two, "a")
    shutil.copytree(old, tmp_path / "old")
    with Store.open(two) as store:
        new = store.add(write(tmp_path / "new.jsonl", answers(7)), name="a", replace=True)[0].run
    assert not (two / "store.replacing.json").exists()
    shutil.copytree(tmp_path / "old", old)
    (two / "store.replacing.json").write_text(json.dumps([old.name, new.id]))
    assert opened(two) == (["a", "b"], ())
    assert (new.id in folders(two), old.name in folders(two)) == (True, False)
    shutil.copytree(tmp_path / "old", old)
    names, (clash,) = opened(two)
    assert names == ["a", f"a ({old.name[:6]})", "b"], "what was replaced once may come back under another name"
    assert clash.startswith(f'two runs are called "a": {new.id} and {old.name}')


@pytest.mark.parametrize("note", ["{", "[" * 100_000, '["..", "../runs"]', '["0000000000000000", "1111111111111111"]'])
def test_a_note_on_replacing_that_means_nothing_removes_nothing(two: Path, note: str) -> None:
    (two / "store.replacing.json").write_text(note)
    assert opened(two) == (["a", "b"], ())
    assert not (two / "store.replacing.json").exists()


def test_what_crashed_writers_left_is_cleared_after_a_day(two: Path) -> None:
    for name, age in (("fresh", 0), ("old", 2 * 24 * 3600)):
        (two / "staging" / name).mkdir()
        (two / "staging" / name / "rows.parquet").write_text("half")
        then = (two / "staging" / name).stat().st_mtime - age
        os.utime(two / "staging" / name, (then, then))
    opened(two)
    assert [entry.name for entry in left_over(two)] == ["fresh"]


def test_a_damaged_store_json_is_written_anew(two: Path) -> None:
    (two / "store.json").write_text("{")
    told = "store.json was damaged and has been rewritten; the old one is store.json.damaged-1"
    assert opened(two) == (["a", "b"], (told,))
    assert opened(two) == (["a", "b"], ())


READING = """
import sys
from pathlib import Path
from demur.errors import UsageError
from demur.store.runs import Store
store = Store.open(Path(sys.argv[1]))
print(sorted(run.name for run in store.runs()), *store.problems, sep="|")
print(len(store.responses(store.run("a"))))
assert not store.keep("x", b"y")
writes = (lambda: store.add(sys.argv[2]), lambda: store.remove("a"), lambda: store.change("a", note="x"))
for write in (*writes, store.clear_cache):
    try:
        write()
    except UsageError as fault:
        print(fault)
"""


def in_a_namespace(commands: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell that may mount what it likes, seen by nobody else; skips where that is not allowed."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("needs Linux and unshare")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let users mount in a namespace of their own")
    command = ["unshare", "-rm", "sh", "-ec", commands, "sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_store_on_a_read_only_disk_is_read_and_says_that_it_cannot_be_written(two: Path, tmp_path: Path) -> None:
    mounted = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift; exec "$@"'
    arguments = (str(two), sys.executable, "-c", READING, str(two), str(tmp_path / "a.jsonl"))
    done = in_a_namespace(mounted, *arguments)
    listed, rows, *faults = done.stdout.splitlines()
    assert listed == "['a', 'b']|the store can be read but not written to: Read-only file system"
    assert rows == "31"
    assert len(faults) == 4
    assert all("the store can be read but not written to; choose another folder" in fault for fault in faults)
    assert done.stderr == ""


def test_a_store_that_cannot_be_made_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "there").mkdir()
    monkeypatch.setattr("demur.store.records.os.open", denied)
    with pytest.raises(UsageError, match="no store can be made here: Permission denied; choose another folder"):
        Store.open(tmp_path / "there")
    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(UsageError, match="cannot be written to: Permission denied"):
        Store.open(tmp_path / "absent")
