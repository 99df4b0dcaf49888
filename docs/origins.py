"""The pages on logs of other tools: for each origin its commands, what is taken for what, the picture."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FIXTURES = Path(__file__).parents[1] / "tests" / "importers" / "data"
IMAGES = Path(__file__).parent / "images"
HERE = "<!-- Made from the code by `make docs`; do not edit. -->"
INTRODUCTION = """\
Logs of other tools are recognised by their content, and every command, the report and the workbench read them as they
are, compressed, from standard input, and beside other logs. Each page has three commands, the plot they make, and what
is taken for what; the import note of a result says the same of your log."""
CLOSING = """\
The import note of a result says what was taken in your log. `demur report FILES -o report.html` makes the whole page,
`demur import NAME FILES -o log.jsonl` writes the rows that were read, and [Logs as people write them](logs.md) has the
options for everything else. [Other logs](origins.md)."""


@dataclass(frozen=True)
class Origin:
    """Logs of one tool, as origins.toml has them: `files` are those that commands name, each with its fixture."""

    name: str
    title: str
    text: str
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
    whole = "\n\n".join(["# I have logs of ...", HERE, INTRODUCTION, table])
    return {"origins": f"{whole}\n", **{f"origin_{one.name}": page(one) for one in origins()}}


def page(origin: Origin) -> str:
    """The page of an origin; what is taken for what, its importer says of the fixture."""
    rows = [f"| {part} | {taken} |" for part, taken in taken_for(origin).items() if taken]
    parts = [
        f"# {origin.title}",
        HERE,
        origin.text,
        "```sh\n" + "\n".join(origin.commands) + "\n```",
        f"`{origin.drawing}` draws",
        f"![The error-return plot of {origin.title.removeprefix('I have ')}](images/origin-{origin.name}.svg)",
        "\n".join(["| part | taken from |", "|---|---|", *rows]),
        CLOSING,
    ]
    return "\n\n".join(parts) + "\n"


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
