"""The pages on logs of other tools: for each origin its commands, what is taken for what, the picture."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

FIXTURES = Path(__file__).parents[1] / "tests" / "importers" / "data"
IMAGES = Path(__file__).parent / "images"
HERE = "<!-- Made from the code by `make docs`; do not edit. -->"
INTRODUCTION = """\
Logs of other tools are recognised by their content, and every command, the report and the workbench read them as they
are, compressed, from standard input, and beside other logs. Each page says how the tool writes its log, what the first
command prints and draws, and what is taken for what; the import note of a result says the same of your log."""
CLOSING = """\
The import note of a result says what was taken in your log. `demur import NAME FILES -o log.jsonl` writes the rows that
were read, and [Logs as people write them](logs.md) has the options for everything else. [Other logs](origins.md)."""
RANKED = "[choose a threshold](threshold.md) from its confidences, "
NEXT = """\
Next: {first}see with `demur compare` [whether another system is better](statistics_decisions.md), let
[CI fail](ci.md) when answers get worse, or write all of it on one page: `demur report FILES -o report.html`."""
ALL_RETURNED = re.compile(
    r"returns every answer it has, (\S+) % of (\d+) inputs get a wrong one \((\S+) % to (\S+) %\)"
)
TABLES = re.compile(r"\n\n(?:Measures with|Pairs\n)")


@dataclass(frozen=True)
class Origin:
    """Logs of one tool, as origins.toml has them: `files` are those that commands name, each with its fixture."""

    name: str
    title: str
    text: str
    export: str
    files: dict[str, str]
    commands: Sequence[str]
    choices: dict[str, Any] = field(default_factory=dict)

    @property
    def logs(self) -> list[str]:
        """The logs that the first command names."""
        return [word for word in self.commands[0].partition(" --")[0].split() if word in self.files]

    @property
    def drawing(self) -> str:
        """The command that draws the picture of the page."""
        return f"{self.commands[0]} -o plot.svg --width 5in"


@cache
def origins() -> tuple[Origin, ...]:
    """All origins, in the order of the page."""
    text = (Path(__file__).parent / "origins.toml").read_text(encoding="utf-8")
    return tuple(Origin(**one) for one in tomllib.loads(text)["origin"])


def pages() -> dict[str, str]:
    """The pages by name: the list of all origins, and a page of each."""
    rows = [f"| [{one.title}](origin_{one.name}.md) | `{one.commands[0]}` |" for one in origins()]
    table = "\n".join(["| log | the first command |", "|---|---|", *rows])
    whole = "\n\n".join(["# Logs of other tools", HERE, INTRODUCTION, table])
    return {"origins": f"{whole}\n", **{f"origin_{one.name}": page(one) for one in origins()}}


def page(origin: Origin) -> str:
    """The page of an origin; what is taken for what, its importer says of the fixture."""
    rows = [f"| {part} | {taken} |" for part, taken in taken_for(origin).items() if taken]
    verdict = TABLES.split(printed_by(origin))[0]
    others = "\n".join(origin.commands[1:])
    parts = [
        f"# {origin.title}",
        HERE,
        origin.text,
        origin.export.strip(),
        f"Then, on {sample(origin)}:",
        f"```console\n$ {origin.commands[0]}\n{verdict}\n...\n```",
        reading(verdict),
        f"Other commands for such logs:\n\n```sh\n{others}\n```",
        f"`{origin.drawing}` draws",
        f"![The error-return plot of {origin.title.removeprefix('I have ')}](images/origin-{origin.name}.svg)",
        "\n".join(["| part | taken from |", "|---|---|", *rows]),
        NEXT.format(first="" if "same confidence" in verdict else RANKED),
        CLOSING,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def sample(origin: Origin) -> str:
    """The fixtures that the first command reads, as the page names them."""
    names = ", ".join(f"`{origin.files[name]}`" for name in origin.logs)
    return f"a small log ({names} of `tests/importers/data` in the repository)"


def printed_by(origin: Origin) -> str:
    """What the first command prints of the fixtures."""
    from demur.apps.cli.main import run

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    typed = patch.object(sys, "argv", shlex.split(origin.commands[0]))
    with in_a_folder(origin), redirect_stdout(printed), redirect_stderr(io.StringIO()), typed, patch.dict(os.environ):
        for name in ("COLUMNS", "FORCE_COLOR"):  # a pipe has neither width nor colour
            os.environ.pop(name, None)
        with suppress(SystemExit):
            run()
    return printed.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]


def reading(verdict: str) -> str:
    """What a verdict says in plain words, as far as all verdicts have it in common."""
    if found := ALL_RETURNED.search(verdict):
        rate, inputs, low, high = found.groups()
        said = f"Of {inputs} inputs {rate} % get a wrong answer; of more of their kind it may be {low} % to {high} %. "
        if "same confidence" in verdict:
            return said + "Without confidences nothing can be withheld but what the system withholds by itself."
        if "better than chance" in verdict:
            return (
                said + "So few do not show that the confidences tell right answers from wrong ones: take a longer log."
            )
        return said + "The confidences tell right answers from wrong ones better than chance."
    return "So few inputs do not show which system is better: take longer logs." if "No signif" in verdict else ""


@contextmanager
def in_a_folder(origin: Origin) -> Iterator[None]:
    """Be in a folder with the files of an origin, called as its commands call them."""
    with TemporaryDirectory() as folder, chdir(folder):
        for name, fixture in origin.files.items():
            shutil.copy(FIXTURES / fixture, name)
        yield


def taken_for(origin: Origin) -> dict[str, str]:
    """What its importer takes for each part, of the files that the first command names."""
    from demur.core.io import sources
    from demur.importers import log_importers
    from demur.importers.choices import ImportChoices
    from demur.importers.protocol import ForeignFile

    importer = next(one for one in log_importers() if one.name == origin.name)
    with in_a_folder(origin), sources.opened(*origin.logs, others=True) as files:
        members = [(importer.recognises(file), file) for file in map(ForeignFile, files)]
        return dict(importer.read(members, ImportChoices(**origin.choices))[0].taken)


def figures() -> None:
    """Draw the picture of each page by the command that the page shows."""
    for origin in origins():
        with in_a_folder(origin):
            command = [sys.executable, "-m", "demur", *shlex.split(origin.drawing)[1:]]
            subprocess.run(command, check=True, capture_output=True)
            shutil.copy("plot.svg", IMAGES / f"origin-{origin.name}.svg")
