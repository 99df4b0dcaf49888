"""A disk that fills up or fails, at any step: a clear message, and all or nothing."""

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from polars.exceptions import ComputeError

from demur.errors import UsageError
from demur.store.runs import Store
from store.tables import answers, folders, left_over, write
from store.test_opening import in_a_namespace

STEPS = ("open", "fsync", "rename", "replace", "mkdir")
FULL = r"the disk of the store is full .*; nothing was changed\. Free some space, or choose another folder"


@contextmanager
def failing_at(number: int) -> Iterator[list[str]]:
    """Lets the step of this number among those that write fail for want of space; gives the steps that were taken."""
    taken: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, _counted(getattr(os, name), name, number, taken))
        patch.setattr(Path, "write_bytes", _counted(Path.write_bytes, "write", number, taken))
        yield taken


def _counted(original: Callable[..., object], name: str, number: int, taken: list[str]) -> Callable[..., object]:
    def step(*given: object, **options: object) -> object:
        taken.append(name)
        if len(taken) == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*given, **options)

    return step


def state(root: Path) -> list[tuple[str, str, str]]:
    """What is in a store, each run whole."""
    with Store.open(root) as store:
        assert store.check() == {}
        assert store.problems == ()
        assert folders(root) == sorted(run.id for run in store.runs())
        return sorted((run.name, run.id, run.note) for run in store.runs())


Act = Callable[[Store, Path], object]
ACTS: dict[str, Act] = {
    "add": lambda store, folder: store.add(folder / "new.jsonl"),
    "replace": lambda store, folder: store.add(folder / "new.jsonl", name="old", replace=True),
    "change": lambda store, _: store.change("old", note="seen"),
    "remove": lambda store, _: store.remove("old"),
}


def tried(root: Path, tmp_path: Path, act: str, number: int) -> tuple[bool, bool]:
    """Whether an act failed at a step, and whether it came that far; what it says about the store must be true."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(tmp_path / "original", root)
    before, fault = state(root), ""
    with Store.open(root) as store, failing_at(number) as taken:
        try:
            ACTS[act](store, tmp_path)
        except UsageError as error:
            fault = str(error)
    assert not fault or left_over(root) == []
    assert (state(root) == before) == bool(fault), taken
    assert not fault or re.search(FULL, fault)
    return bool(fault), len(taken) >= number


@pytest.mark.parametrize("act", ACTS)
def test_whatever_step_fails_an_act_is_done_or_says_that_nothing_was_changed(
    root: Path, tmp_path: Path, act: str
) -> None:
    for seed, name in enumerate(("old", "new")):
        write(tmp_path / f"{name}.jsonl", answers(seed))
    with Store.open(tmp_path / "original") as store:
        store.add(tmp_path / "old.jsonl")
    failed = []
    for number in range(1, 60):
        fault, reached = tried(root, tmp_path, act, number)
        failed.append(fault)
        if not reached:
            break
    assert sum(failed) >= 2
    assert not failed[-1]


def test_a_disk_that_fills_up_amid_the_rows_leaves_no_run(
    store: Store, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, *_: object) -> int:
        path.write_bytes(b"PAR1")
        raise ComputeError("parquet: File out of specification: underlying IO error: disk full (os error 28)")

    monkeypatch.setattr("demur.store.runs.write_rows", half)
    with pytest.raises(UsageError, match=FULL):
        store.add(log)
    assert (store.runs(), left_over(store.root)) == ([], [])


def test_a_fault_of_polars_that_is_none_of_the_disk_is_not_hidden(
    store: Store, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object) -> int:
        raise ComputeError("something else")

    monkeypatch.setattr("demur.store.runs.write_rows", odd)
    with pytest.raises(ComputeError, match="something else"):
        store.add(log)


def test_a_missing_permission_is_told(store: Store, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("demur.store.runs.write_rows", denied)
    with pytest.raises(UsageError, match=r"the store cannot be written to: Permission denied; nothing was changed\."):
        store.add(log)


FILLING = """
import sys
from pathlib import Path
from demur.errors import UsageError
from demur.store.runs import Store
from store.tables import answers, write
root, folder = Path(sys.argv[1]), Path(sys.argv[2])
store = Store.open(root)
acknowledged = []
for seed in range(400):
    path = write(folder / f"log-{seed}.jsonl", answers(seed, 400))
    try:
        acknowledged.append(store.add(path)[0].run.id)
    except UsageError as fault:
        print(fault)
        break
store.close()
with Store.open(root) as again:
    assert not list((root / "staging").iterdir())
    assert {run.id for run in again.runs()} == set(acknowledged), (len(again.runs()), len(acknowledged))
    assert again.check() == {}
    again.remove(acknowledged[0])
    again.remove(acknowledged[1])
    print(len(acknowledged) > 5, len(again.runs()) == len(acknowledged) - 2)
"""


def test_a_real_disk_that_fills_up_loses_nothing(tmp_path: Path) -> None:
    mounted = 'mount -t tmpfs -o size=384k tmpfs "$1"; shift; exec "$@"'
    root = tmp_path / "disk"
    root.mkdir()
    tests = str(Path(__file__).parent.parent)
    setting = f"import sys; sys.path.insert(0, {tests!r})\n"
    done = in_a_namespace(mounted, str(root), sys.executable, "-c", setting + FILLING, str(root / "s"), str(tmp_path))
    assert done.stderr == ""
    fault, verdict = done.stdout.splitlines()
    assert "the disk of the store is full" in fault
    assert verdict == "True True"
