"""Changes of the layout are made once, in order, and may be cut off anywhere."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from demur.errors import UsageError
from demur.store import index, records
from demur.store.index import MIGRATIONS, Migration, migrate

OLDER = 5
"""Runs in a store of an older layout, made for these tests: a description said `title` where it now says `name`."""


def applied(root: Path) -> list[str]:
    document = json.loads((root / "store.json").read_text())
    assert document["layout"] == len(document["migrations"])
    return list(document["migrations"])


def descriptions(root: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(root.glob("runs/*/run.json"))]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    for number in range(OLDER):
        folder = root / "runs" / f"{number:016x}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"layout": 1, "title": f"run {number}"}))
    migrate(root)
    return root


def rewrite_runs(root: Path, layout: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the `run.json` of every run below a layout, each in one step, as a migration does."""
    for path in sorted(root.glob("runs/*/run.json")):
        with suppress(json.JSONDecodeError):
            document = json.loads(path.read_text())
            if document["layout"] < layout:
                index.write_durably(path, json.dumps({**change(document), "layout": layout}).encode())


def called_name(document: dict[str, Any]) -> dict[str, Any]:
    rest = dict(document)
    return {"name": rest.pop("title"), **rest}


RENAMING = Migration("call it name", lambda root: rewrite_runs(root, 2, called_name))


def test_each_is_made_once_in_order_and_written_down(tmp_path: Path) -> None:
    made: list[str] = []
    several = (*MIGRATIONS, *(Migration(name, lambda _, name=name: made.append(name)) for name in ("b", "c")))  # type: ignore[misc]
    assert migrate(tmp_path, several[:1]) == []
    assert migrate(tmp_path, several[:2]) == []
    migrate(tmp_path, several)
    migrate(tmp_path, several)
    assert made == ["b", "c"]
    assert applied(tmp_path) == ["make folders", "b", "c"]


def test_an_older_store_is_brought_up_to_date(older: Path) -> None:
    migrate(older, (*MIGRATIONS, RENAMING))
    assert descriptions(older) == [{"name": f"run {number}", "layout": 2} for number in range(OLDER)]
    assert applied(older) == ["make folders", "call it name"]


@pytest.mark.parametrize("after", range(OLDER + 1))
def test_one_that_is_cut_off_is_completed_by_the_next_opening(
    older: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = records.write_durably
    written: list[Path] = []

    def cut_off(path: Path, content: bytes) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(path)
        original(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(index, "write_durably", cut_off)
        with pytest.raises(KeyboardInterrupt):
            migrate(older, (*MIGRATIONS, RENAMING))
    assert applied(older) == ["make folders"]
    assert sorted("title" in one for one in descriptions(older)) == sorted([False] * after + [True] * (OLDER - after))
    migrate(older, (*MIGRATIONS, RENAMING))
    assert descriptions(older) == [{"name": f"run {number}", "layout": 2} for number in range(OLDER)]
    assert applied(older) == ["make folders", "call it name"]


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store.test_migrations import MIGRATIONS, Migration, called_name, migrate, rewrite_runs

def dying(document):
    if document["title"] == "run 3":
        os._exit(9)
    return called_name(document)

migrate(Path(sys.argv[1]), (*MIGRATIONS, Migration("call it name", lambda root: rewrite_runs(root, 2, dying))))
"""


def test_a_process_that_dies_in_the_middle_does_no_harm(older: Path) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", KILLED, str(older), str(tests)], check=False, timeout=120)
    assert done.returncode == 9
    assert [one.get("title") for one in descriptions(older)] == [None, None, None, "run 3", "run 4"]
    migrate(older, (*MIGRATIONS, RENAMING))
    assert [one["name"] for one in descriptions(older)] == [f"run {number}" for number in range(OLDER)]


def test_a_description_that_cannot_be_read_is_left_as_it_is(older: Path) -> None:
    path = older / "runs" / f"{1:016x}" / "run.json"
    path.write_text("{")
    migrate(older, (*MIGRATIONS, RENAMING))
    assert path.read_text() == "{"
    assert applied(older) == ["make folders", "call it name"]


def test_a_store_that_a_newer_version_changed_is_refused_and_left_as_it_is(older: Path) -> None:
    migrate(older, (*MIGRATIONS, RENAMING))
    before = (older / "store.json").read_bytes()
    with pytest.raises(
        UsageError, match=r'was changed by a newer demur \("call it name", not known to .*upgrade demur'
    ):
        migrate(older)
    assert (older / "store.json").read_bytes() == before


def test_no_names_of_migrations_are_repeated() -> None:
    assert len({one.name for one in MIGRATIONS}) == len(MIGRATIONS)
