"""Several programs write to one store at once, and are killed at any moment: what was acknowledged is there, whole."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from demur.store.runs import Store
from store.tables import answers, folders, write

TESTS = str(Path(__file__).parent.parent)
SETTING = f"import sys; sys.path.insert(0, {TESTS!r})\n"

ADDING = """
from pathlib import Path
from demur.errors import DataError
from demur.store.runs import Store
with Store.open(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    for line in sys.stdin:
        path, _, name = line.strip().partition("|")
        try:
            added = store.add(path, name=name)[0]
            print(added.run.id, added.run.name, added.new, sep="|", flush=True)
        except DataError as fault:
            print("refused", str(fault), sep="|", flush=True)
"""


class Writers:
    """Programs that add what they are told to, all at once."""

    def __init__(self, root: Path, count: int = 2) -> None:
        command = [sys.executable, "-c", SETTING + ADDING, str(root)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.programs = [subprocess.Popen(command, **pipes) for _ in range(count)]  # type: ignore[call-overload]
        for program in self.programs:
            assert program.stdout.readline() == "ready\n"

    def add(self, *asked: tuple[Path, str]) -> list[list[str]]:
        """What each says to what it was asked."""
        for program, (path, name) in zip(self.programs, asked, strict=True):
            program.stdin.write(f"{path}|{name}\n")
        for program in self.programs:
            program.stdin.flush()
        return [program.stdout.readline().strip().split("|") for program in self.programs]

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.communicate(timeout=60)


def test_two_programs_make_one_store_and_add_to_it_at_once(root: Path, tmp_path: Path) -> None:
    with Writers(root) as writers:
        for turn in range(4):
            same = write(tmp_path / f"same-{turn}.jsonl", answers(turn))
            one, other = writers.add((same, f"one {turn}"), (same, f"other {turn}"))
            assert one[:2] == other[:2], "the same content is one run, under the name of the first"
            assert sorted((one[2], other[2])) == ["False", "True"]
            paths = [
                write(tmp_path / f"{name}-{turn}.jsonl", answers(100 * turn + k)) for k, name in ((50, "a"), (51, "b"))
            ]
            found = writers.add(*((path, f"taken {turn}") for path in paths))
            assert sorted(len(said) for said in found) == [2, 3], "of two contents only one gets the name"
            assert any("is taken by another run" in said[-1] for said in found)
            paths = [
                write(tmp_path / f"{name}-{turn}.jsonl", answers(100 * turn + k)) for k, name in ((60, "a"), (61, "b"))
            ]
            found = writers.add(*((path, f"{path.stem}") for path in paths))
            assert [said[2] for said in found] == ["True", "True"]
    with Store.open(root) as store:
        assert (len(store.runs()), store.check(), store.problems) == (16, {}, ())


def test_an_open_store_sees_what_other_programs_do(root: Path, tmp_path: Path) -> None:
    with Store.open(root) as store, Writers(root, 1) as writers:
        ((id_, *_),) = writers.add((write(tmp_path / "a.jsonl", answers(1)), "theirs"))
        assert store.run("theirs").id == id_
        store.change("theirs", name="mine")
        ((_, name, new),) = writers.add((tmp_path / "a.jsonl", "again"))
        assert (name, new) == ("mine", "False")


WORKING = """
import random
from pathlib import Path
from demur.store.runs import Store
from store.tables import answers, write
root, folder, me, seed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
rng = random.Random(seed)
logs = [write(folder / f"{me}-{k}.jsonl", answers(seed + k)) for k in range(12)]

def say(*words):
    print(*words, sep="|", flush=True)

with Store.open(root) as store:
    mine = {}
    for turn in range(10_000):
        act = rng.choice(("add", "add", "replace", "change", "remove"))
        if act == "add" or not mine:
            log = rng.choice(logs)
            if any(name.startswith(f"{log.stem}:") for name in mine.values()):
                continue
            name = f"{log.stem}:{turn}"
            say("will", "add", name)
            run = store.add(log, name=name)[0].run
            mine[run.id] = run.name
            say("did", "add", run.name, run.id)
            continue
        id_, name = rng.choice(sorted(mine.items()))
        if act == "change":
            new = f"{name.partition(':')[0]}:{turn}"
            say("will", "change", name, new)
            store.change(id_, name=new)
            mine[id_] = new
            say("did", "change", name, new)
        elif act == "replace":
            log = rng.choice(logs)
            if any(one.startswith(f"{log.stem}:") for one in mine.values()):
                continue
            say("will", "replace", name, id_)
            run = store.add(log, name=name, replace=True)[0].run
            del mine[id_]
            store.change(run.id, name=f"{log.stem}:{turn}")
            mine[run.id] = f"{log.stem}:{turn}"
            say("did", "replace", name, mine[run.id])
        else:
            say("will", "remove", name)
            store.remove(id_)
            del mine[id_]
            say("did", "remove", name)
"""


def expected(said: Sequence[str]) -> tuple[set[str], set[str]]:
    """The names that must be there after what a program said, and those its unfinished act may have touched."""
    there: set[str] = set()
    touched: set[str] = set()
    for words in (line.split("|") for line in said if line.endswith("\n")):
        kind, act, name, *more = (word.strip() for word in words)
        if kind == "will":
            touched = {name, *more}
            continue
        touched = set()
        if act != "add":
            there.discard(name)
        if act == "add":
            there.add(name)
        elif act in ("change", "replace"):
            there.add(more[0])
    return there - touched, touched


def working(root: Path, folder: Path, me: str, seed: int) -> Any:
    """A program that adds, changes and removes runs, saying before and after each act what it is."""
    command = [sys.executable, "-c", SETTING + WORKING, str(root), str(folder), me, str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def killed(program: Any, heard: list[bytes]) -> list[str]:
    """All the lines that a program said until it was killed."""
    rest, errors = program.stdout.read(), program.stderr.read()
    assert (program.wait(60), errors) == (-signal.SIGKILL, b"")
    program.stdout.close()
    program.stderr.close()
    return (b"".join(heard) + rest).decode().splitlines(keepends=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_what_was_acknowledged_outlives_kills(root: Path, tmp_path: Path) -> None:
    rng = random.Random(8)
    unfinished = 0
    rounds = min(4 * settings.default.max_examples // 10, 13)
    for turn in range(rounds):
        programs = [working(root, tmp_path, f"{me}{turn}", 10_000 * turn + k) for me, k in (("x", 0), ("y", 1000))]
        heard = [[program.stdout.readline() for _ in range(rng.randint(1, 25))] for program in programs]
        for program in programs:
            time.sleep(rng.random() / 50)
            program.kill()
        said = [killed(program, lines) for program, lines in zip(programs, heard, strict=True)]
        unfinished += sum(lines[-1].startswith("will") for lines in said)
        with Store.open(root) as store:
            names = {run.name for run in store.runs()}
            for me, lines in zip("xy", said, strict=True):
                must, touched = expected(lines)
                mine = {name for name in names if name.startswith(f"{me}{turn}-")}
                assert must <= mine, lines
                assert len(mine - must) <= len(touched), lines
            assert store.problems == (), said
            assert sorted(run.id for run in store.runs()) == folders(root)
            assert len(names) == len(store.runs())
    with Store.open(root) as store:
        assert store.check() == {}
    assert unfinished >= rounds, "most were killed amid an act"
