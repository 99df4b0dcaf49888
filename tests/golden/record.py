"""Golden files: runs the cases of `cases.toml`, and compares what a command gives with what was recorded of it.

`json/` holds the document of `--json`, numbers to ten digits. `text/` holds what a terminal without width and colour
shows, and `markdown/` what `-o x.md` writes. `make golden` rewrites all of them and lists the numbers that differ.
"""

import json
import math
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from commands import Done, run_in
from golden.inputs import run_block, write_inputs

HOME = Path(__file__).parent
ENDS = 50
"""Elements kept of each end of a long list."""
DIGITS = 10
TOLERANCE = 1e-9
LEAST = 1e-12
"""Below this, numbers are rounding errors of 0."""
STAMPS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"^\d\d:\d\d:\d\d\b", re.MULTILINE), "<time>"),
    (re.compile(r"\bdemur \d+\.\d+\.\d+[\w.+]*"), "demur <version>"),
    (re.compile(r"^\| (demur|python|numpy|polars|scipy) \| \d[\w.+]* \|$", re.MULTILINE), r"| \1 | <version> |"),
    (re.compile(r"\bdata=[0-9a-f]{16}\b"), "data=<digest>"),  # computed confidences differ in the last bit
)
TWICE = (
    "judge ",
    "follow ",
    "import ",
    "report ",
    "understand respond ",
    "understand pairs ",
    "understand grade respond ",
    "outcome baseline ",
    "understand chat ",
)
"""Commands of which `-o` writes no document, or that say another thing with it."""
WIDTH = 110
INDIFFERENT = {"--quiet": 0, "-q": 0, "--json": 0, "--replicates": 1, "-o": 1, "--output": 1}
"""Options that do not make another case, and how many values they take."""
HIDDEN = {
    **dict.fromkeys(("demur", "python", "numpy", "polars", "scipy"), (str, "<version>")),
    "version": (str, "<version>"),
    "size": (int, "<size>"),
    "file_sha256": (str, "<digest>"),
}
"""Keys of a document that are of this release, or of libraries, and what is recorded instead."""


@dataclass(frozen=True)
class Case:
    """A command, and which of its outputs are recorded."""

    name: str
    command: str
    needs: tuple[str, ...] = ()
    """Cases that write what this one reads."""
    block: tuple[str, ...] = ()
    """A page and a line of the Python block on it that is run first."""
    page: str = ""
    """The command of a page that this one stands for, where it is a smaller one."""
    piped: str = ""
    json: bool = True
    text: bool = False
    markdown: bool = False

    @property
    def files(self) -> dict[str, Path]:
        """Where each output is recorded, by kind."""
        kinds = {"json": ".json", "text": ".txt", "markdown": ".md"}
        return {kind: HOME / kind / f"{self.name}{end}" for kind, end in kinds.items() if getattr(self, kind)}


@dataclass(frozen=True)
class Difference:
    """A place where a document differs from the recorded one."""

    where: str
    recorded: Any
    now: Any

    @property
    def only_words(self) -> bool:
        """Whether both are texts, so that no number and no key has changed."""
        return isinstance(self.recorded, str) and isinstance(self.now, str)

    def __str__(self) -> str:
        return f"{self.where}: recorded {_brief(self.recorded)}, now {_brief(self.now)}"


@cache
def cases() -> dict[str, Case]:
    """All cases by name, in the order of the file."""
    listed = tomllib.loads((HOME / "cases.toml").read_text(encoding="utf-8"))["case"]
    frozen = [{key: tuple(value) if isinstance(value, list) else value for key, value in one.items()} for one in listed]
    return {one["name"]: Case(**one) for one in frozen}


@dataclass
class Workshop:
    """A folder with all inputs, in which each case is run once."""

    folder: Path
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        write_inputs(self.folder)

    def outputs(self, case: Case) -> dict[str, Any]:
        """The outputs of a case by kind, after those of the cases it needs."""
        if case.name not in self.results:
            for name in case.needs:
                self.outputs(cases()[name])
            self.results[case.name] = self._run(case)
        return self.results[case.name]

    def _run(self, case: Case) -> dict[str, Any]:
        """What one run gives of all kinds; commands of `TWICE` are run again for their document."""
        made: dict[str, Any] = {}
        if case.block:
            run_block(*case.block, self.folder)
        files = {kind: f"{case.name}.golden{file.suffix}" for kind, file in case.files.items() if kind != "text"}
        if case.text and (case.command.startswith(TWICE) or not files):
            made["text"] = self._text(case, self._done(case))
        elif case.text:
            done = self._done(case, *(part for file in files.values() for part in ("-o", file)))
            said = "".join(line for line in done.stderr.splitlines(True) if f"wrote {case.name}.golden." not in line)
            made["text"] = self._text(case, subprocess.CompletedProcess(done.args, done.returncode, done.stdout, said))
            made["json"] = self._document(case, done, (self.folder / files["json"]).read_text(encoding="utf-8"))
        if case.json and "json" not in made:
            done = self._done(case, "--json", *(("-o", files["markdown"]) if case.markdown else ()))
            made["json"] = self._document(case, done, done.stdout)
        if case.markdown:
            made["markdown"] = self._plain((self.folder / files["markdown"]).read_text(encoding="utf-8"))
        return made

    def _done(self, case: Case, *options: str) -> Done:
        done = run_in(self.folder, *shlex.split(case.command), *options, piped=case.piped)
        if done.returncode > (1 if case.json else 2):
            raise RuntimeError(f"{case.name}: demur {case.command}\n{done.stderr}")
        return done

    def _document(self, case: Case, done: Done, text: str) -> dict[str, Any]:
        document = self._plain(decoded(text))
        for one in document if isinstance(document, list) else [document]:
            if isinstance(one, dict):
                one.pop("format", None)  # of every document alike; see test_format.py
        return {"command": case.command, "exit_code": done.returncode, "document": document}

    def _text(self, case: Case, done: Done) -> str:
        parts = [f"$ demur {case.command}\n{done.stdout}"]
        parts += [f"standard error:\n{done.stderr}"] if done.stderr else []
        parts += [f"exit code: {done.returncode}\n"] if done.returncode else []
        lines = self._plain("\n".join(parts)).splitlines()
        return "".join((_rounded_row(line) if line.startswith("{") else line.rstrip()) + "\n" for line in lines)

    def _plain(self, value: Any) -> Any:
        """The same without what is of this run only: its folder, its time, the version."""
        if isinstance(value, dict):
            hidden = {key: shown for key, (kind, shown) in HIDDEN.items() if isinstance(value.get(key), kind)}
            return {key: self._plain(inner) for key, inner in value.items()} | hidden
        if isinstance(value, list):
            return [self._plain(inner) for inner in value]
        if not isinstance(value, str):
            return value
        value = value.replace(str(self.folder), "<folder>")
        for pattern, placeholder in STAMPS:
            value = pattern.sub(placeholder, value)
        return value


@cache
def essence(command: str) -> str:
    """A command without options that do not matter here, and without the folders of bundled files."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in INDIFFERENT:
            for _ in range(INDIFFERENT[word]):
                next(words)
        else:
            kept.append(Path(word).name if "corpora/" in word else word)
    return shlex.join(kept)


def recorded_run(command: str, piped: str = "") -> Done | None:
    """What a command printed, said and exited with as it was recorded; None where no case has its text and draws."""
    for case in cases().values():
        alike = case.text and case.piped == piped and essence(case.command) == essence(command)
        if alike and _draws(case.command) == _draws(command):
            printed = case.files["text"].read_text(encoding="utf-8").partition("\n")[2]
            printed, _, code = printed.partition("exit code: ")
            printed, _, said = printed.partition("\nstandard error:\n")
            return subprocess.CompletedProcess(command, int(code or 0), printed, said)
    return None


def _draws(command: str) -> list[str]:
    return re.findall(r"--(?:replicates|studies) \d+", command)


def decoded(printed: str) -> Any:
    """The document printed, or a list of those printed one a line; None for nothing."""
    try:
        return json.loads(printed) if printed else None
    except json.JSONDecodeError:
        return [json.loads(line) for line in printed.splitlines()]


def shortened(value: Any) -> Any:
    """The document as it is recorded: long lists as their ends and a check of the whole."""
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, list) and len(value) > 2 * ENDS:
        ends = {"first": shortened(value[:ENDS]), "last": shortened(value[-ENDS:])}
        return {"length": len(value), **ends, "weighted_sum": weighted_sum(value), "rest": _digest(value)}
    if isinstance(value, list):
        return [shortened(inner) for inner in value]
    return value


def weighted_sum(value: Any) -> float:
    """A sum over all numbers of a document that depends on their places and signs, and in which none cancel."""
    numbers = (number for _, number in _leaves(value) if _is_number(number))
    return math.fsum(place * (2 * abs(number) + number) for place, number in enumerate(numbers, start=1))


def _digest(value: Any) -> str:
    """A digest of a document but for its numbers."""
    rest = [(where, 0 if _is_number(leaf) else leaf) for where, leaf in _leaves(value)]
    return sha256(json.dumps(rest, ensure_ascii=False).encode()).hexdigest()[:16]


def _leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value:
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inner:
            yield from _leaves(part, f"{where}.{key}" if isinstance(value, dict) else f"{where}[{key}]")
    else:
        yield where, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def rounded(value: Any) -> Any:
    """The document with its numbers to ten significant digits."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _rounded_row(line: str) -> str:
    return json.dumps(rounded(json.loads(line)), ensure_ascii=False)


def differences(recorded: Any, now: Any, where: str = "$") -> Iterator[Difference]:
    """Where two documents differ: keys and their order, lengths, texts, and numbers beyond the tolerance."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        if list(recorded) != list(now):
            yield Difference(where, recorded, now)
        for key in recorded:
            if key in now:
                yield from differences(recorded[key], now[key], f"{where}.{key}")
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for place, (old, new) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(old, new, f"{where}[{place}]")
    elif _is_number(recorded) and _is_number(now):
        if not math.isclose(recorded, now, rel_tol=TOLERANCE, abs_tol=LEAST):
            yield Difference(where, recorded, now)
    elif type(recorded) is not type(now) or recorded != now:
        yield Difference(where, recorded, now)


def text_differences(recorded: str, now: str) -> Iterator[Difference]:
    """The lines in which two texts differ."""
    old, new = recorded.splitlines(), now.splitlines()
    for place in range(max(len(old), len(new))):
        ours, theirs = (lines[place] if place < len(lines) else "(no such line)" for lines in (old, new))
        if ours != theirs:
            yield Difference(f"line {place + 1}", ours, theirs)


def compared(case: Case, kind: str, output: Any) -> list[Difference]:
    """How an output differs from the recorded one."""
    recorded = case.files[kind].read_text(encoding="utf-8")
    if kind == "json":
        return list(differences(json.loads(recorded), shortened(output)))
    return list(text_differences(recorded, output))


def write(case: Case, kind: str, output: Any) -> None:
    """Record an output."""
    file = case.files[kind]
    file.parent.mkdir(exist_ok=True)
    file.write_text(_encoded(rounded(shortened(output))) + "\n" if kind == "json" else output, encoding="utf-8")


def _encoded(value: Any, indent: str = "") -> str:
    """The JSON of a document; a part that fits on a line is on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_encoded(inner, deeper)}" for key, inner in value.items()]
    elif all(map(_is_number, value)):
        return line
    else:
        parts = [_encoded(inner, deeper) for inner in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"


def _brief(value: Any) -> str:
    shown = f"the keys {list(value)}" if isinstance(value, dict) else repr(value)
    return shown if len(shown) <= 300 else f"{shown[:300]}..."
