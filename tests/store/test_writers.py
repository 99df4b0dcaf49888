"""Several programs write to one store at once, and are killed at any moment: what was acknowledged is there, whole."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import settings

from demur.store.runs import Store
from store.tables import answers, folders, write
from store.working import work

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


def expected(said: Sequence[str]) -> tuple[set[str], set[str]]:
    """The names that must be there after what a program said, and those its unfinished act may have touched."""
    there: set[str] = set()
    touched: set[str] = set()
    for line in said:
        kind, act, name, *more = line.split("|")
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


class Working:
    """A program that adds, changes and removes runs, and what it says of it; the package is loaded once for all."""

    def __init__(self, root: Path, folder: Path, me: str, seed: int) -> None:
        start = get_context("forkserver")
        start.set_forkserver_preload(["demur.store.runs"])
        self._said, saying = start.Pipe(duplex=False)
        self.process = start.Process(target=work, args=(root, folder, me, seed, saying))
        self.process.start()
        saying.close()
        self.lines: list[str] = []

    def hear(self, most: int) -> None:
        """Hears some more of what it says."""
        self.lines += [self._said.recv() for _ in range(most)]

    def kill(self) -> None:
        """Kills it, and hears what it said until then."""
        self.process.kill()
        self.process.join(60)
        with suppress(EOFError):
            while True:
                self.hear(1)
        assert self.process.exitcode == -signal.SIGKILL
        self._said.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_what_was_acknowledged_outlives_kills(root: Path, tmp_path: Path) -> None:
    rng = random.Random(8)
    unfinished = 0
    rounds = min(4 * settings.default.max_examples // 10, 13)
    for turn in range(rounds):
        programs = [Working(root, tmp_path, f"{me}{turn}", 10_000 * turn + k) for me, k in (("x", 0), ("y", 1000))]
        for program in programs:
            program.hear(rng.randint(1, 25))
        for program in programs:
            time.sleep(rng.random() / 50)
            program.kill()
        said = [program.lines for program in programs]
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
