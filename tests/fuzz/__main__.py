"""`make fuzz`: feeds inputs until the time is over, saves what fails with the command that repeats it, and counts."""

import argparse
import hashlib
import json
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.corpus import Target, targets
from fuzz.mutations import Mutator, sealed_model, sealed_store

CPU_SECONDS, WALL_SECONDS = 20.0, 180.0
"""What one input may take; a machine that is busy is slow, so the second is generous."""

MOST_MEMORY = 1 << 30
"""Bytes that one input, which is small, may take."""

KEPT = 3
"""Inputs that are kept of findings that are alike."""

LONGEST_LIFE = 1500
"""Inputs after which a process is replaced, so that what one leaves behind shows with few others."""


@dataclass(frozen=True, slots=True)
class Case:
    """An input: files, and a command that reads them."""

    target: str
    files: dict[str, bytes]
    command: tuple[str, ...]


class Child:
    """A process that runs one command after the other, watched from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.runs = folder, folder / "child.log", 0
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.log.write_bytes(b"")
        home = {"HOME": str(folder), "DEMUR_STORE": str(folder / "home-store"), "TMPDIR": str(self.temporary)}
        quiet = {"NO_COLOR": "1", "COLUMNS": "100", "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.child", str(self.log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **home, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )
        if self._line(WALL_SECONDS) != "ready\n":
            raise RuntimeError(f"the process does not start: {self.log.read_text()}")

    def answer(self, folder: Path, command: tuple[str, ...]) -> dict[str, Any]:
        """How a command ended, or that it did not."""
        self.runs += 1
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"folder": str(folder), "command": command}) + "\n")
        self.process.stdin.flush()
        begun, used = time.monotonic(), self._cpu()
        while True:
            line = self._line(0.5)
            if line:
                return dict(json.loads(line))
            if line is not None or self.process.poll() is not None:
                code = self.process.wait()
                self.end()
                return {"code": f"signal {-code}" if code < 0 else f"exit {code}", "failed": self._logged(), "said": ""}
            if self._memory() > 2 * MOST_MEMORY:
                return {"code": "memory", "failed": self._dumped(), "said": ""}
            if self._cpu() - used > CPU_SECONDS or time.monotonic() - begun > WALL_SECONDS:
                return {"code": "hang", "failed": self._dumped(), "said": ""}

    def _line(self, seconds: float) -> str | None:
        """A line of the answer, nothing where there is none yet, and an empty one where there will be none."""
        stream = self.process.stdout
        assert stream is not None
        return stream.readline() if select.select([stream], [], [], seconds)[0] else None

    def _cpu(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _memory(self) -> int:
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def _logged(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    def _dumped(self) -> str:
        """Where the process is, which ends then."""
        self.log.write_bytes(b"")
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        found = self._logged()
        self.end()
        return found

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]


@dataclass
class Fuzzer:
    """Makes inputs from a seed, feeds them, and keeps what fails."""

    seed: int
    found: Path
    work: Path
    chosen: dict[str, Target]
    child: Child = field(init=False)
    runs: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.child = Child(self.work)

    def case(self, number: int) -> Case:
        """The input of this number."""
        rng = random.Random(f"{self.seed}/{number}")
        name = rng.choice(list(self.chosen))
        target, mutator = self.chosen[name], Mutator(rng)
        files, command = dict(target.files), rng.choice(target.commands)
        if target.kind == "options":
            return Case(name, files, mutator.options(command))
        for file in rng.sample(target.mutated, 1 if rng.random() < 0.8 else min(2, len(target.mutated))):
            files[file] = mutator.mutate(kind_of(target.kind, file), files[file])
            if rng.random() < 0.02:
                files[file] = rng.choice(list(target.files.values()))
        if rng.random() < 0.7:
            files = {"model": sealed_model, "store": sealed_store}.get(target.kind, dict)(files)
        return Case(name, files, command)

    def feed(self, case: Case) -> str | None:
        """Runs an input and gives what is wrong with how it ended."""
        if self.child.runs >= LONGEST_LIFE:
            self.child.end()
            self.child = Child(self.work)
        folder = self.work / "input"
        shutil.rmtree(folder, ignore_errors=True)
        write_files(folder, case.files)
        answer = self.child.answer(folder, case.command)
        if fault_of(answer, case.command) == "memory" and self.child.runs > 1:  # what others left may be in it
            self.child.end()
            self.child = Child(self.work)
            answer = self.child.answer(folder, case.command)
        self.runs[case.target] += 1
        self.codes[str(answer["code"])] += 1
        wrong = fault_of(answer, case.command)
        if wrong == "memory" and case.target == "options":
            wrong = None  # replicates by the million, which somebody asked for
        # DuckDB's folder lives as long as the process
        if wrong is None and "duckdb" not in case.command and any(self.child.temporary.iterdir()):
            wrong = "files left in the temporary folder"
        shutil.rmtree(self.child.temporary, ignore_errors=True)
        self.child.temporary.mkdir()
        if wrong is not None:
            self._keep(case, wrong, answer)
        if self.child.process.poll() is not None:
            self.child = Child(self.work)
        return wrong

    def _keep(self, case: Case, wrong: str, answer: dict[str, Any]) -> None:
        words = " ".join(word for word in case.command[:2] if not word.startswith("-"))
        kind = f"{case.target}: {words.split(' ')[0]}: {wrong}: {place_of(answer)}"
        self.findings[kind] += 1
        if self.findings[kind] > KEPT:
            return
        digest = hashlib.sha256(repr((case.files, case.command)).encode()).hexdigest()[:8]
        folder = self.found / f"{case.target}-{re.sub('[^a-z0-9]+', '-', wrong.lower())[:30]}-{digest}"
        write_files(folder, case.files)
        (folder / "repeat.sh").write_text(f"cd {shlex.quote(str(folder))} && demur {shlex.join(case.command)}\n")
        (folder / "said.txt").write_text(f"{kind}\n{answer}\n{answer['failed']}\n")
        print(f"finding: {kind}\n  {folder}", flush=True)


def kind_of(kind: str, file: str) -> str:
    """How a file is mutated; those of a folder by their endings."""
    if kind not in ("model", "store"):
        return kind
    return {"npz": "zip", "json": "document", "parquet": "parquet"}.get(file.rpartition(".")[2], "bytes")


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Writes files into a folder that is made for them."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def fault_of(answer: dict[str, Any], command: tuple[str, ...]) -> str | None:
    """What is wrong with how a command ended; 1 is the code of a gate that fails, and of damage that was looked for."""
    code = answer["code"]
    if code not in (0, 2) and not (code == 1 and {"--fail-if", "--check"} & set(command)):
        return f"exit {code}" if isinstance(code, int) else str(code)
    if "Traceback (most recent call last)" in answer["said"]:
        return "traceback"
    if answer["peak"] > MOST_MEMORY or "does not fit into memory" in answer["said"]:
        return "memory"
    return None


def place_of(answer: dict[str, Any]) -> str:
    """Where in the package it failed, and with what, by which findings are alike."""
    text = answer["failed"] or answer["said"]
    frames = re.findall(r'File ".*?/demur/([\w/]+\.py)", line \d+,? in (\w+)', text)
    dumped = bool(re.search(r"most recent call first", text))
    last = [line for line in text.strip().splitlines() if line.strip()][-1:] or [""]
    place = ":".join(frames[0 if dumped else -1]) if frames else ""
    return f"{place}: {'' if dumped else re.sub('[0-9]+', '0', last[0])[:80]}"


def main() -> int:
    """Feeds inputs for so long, a line a minute, and gives the exit code."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="FORMAT", help="may be repeated")
    parser.add_argument("--found", type=Path, default=Path("fuzz-findings"), help="where findings are saved")
    asked = parser.parse_args()
    known = targets()
    for name in asked.only or ():
        if name not in known:
            parser.error(f"--only takes one of {', '.join(known)}")
    chosen = {name: known[name] for name in asked.only or known}
    with tempfile.TemporaryDirectory(prefix="demur-fuzz-") as work:
        fuzzer = Fuzzer(asked.seed, asked.found, Path(work), chosen)
        begun = told = time.monotonic()
        for number in range(asked.inputs):
            if time.monotonic() - begun > 60 * asked.minutes:
                break
            fuzzer.feed(fuzzer.case(number))
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{(told - begun) / 60:.0f} min: {summary(fuzzer)}", flush=True)
        fuzzer.child.end()
    print(f"seed {asked.seed}: {summary(fuzzer)}")
    for kind, count in fuzzer.findings.most_common():
        print(f"  {count} times {kind}")
    return 1 if fuzzer.findings else 0


def summary(fuzzer: Fuzzer) -> str:
    """How many inputs there were, how they ended, and how many findings there are."""
    ends = ", ".join(f"{count:,} {code}" for code, count in sorted(fuzzer.codes.items()))
    return f"{fuzzer.runs.total():,} inputs (exit codes: {ends}), {len(fuzzer.findings)} findings"


if __name__ == "__main__":
    sys.exit(main())
