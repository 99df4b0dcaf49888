"""The page on logs of other tools: for each origin its commands, what is taken for what, the picture."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "tests" / "importers" / "data"
IMAGES = Path(__file__).parent / "images"
INTRODUCTION = """\
Logs of other tools are recognised by their content, and every command, the report and the workbench read them as they
are, compressed, from standard input, and beside other logs. Each section has three commands and says what is taken for
what; the import note of a result says the same of your log. `demur report FILES -o report.html` makes the page of any
of them, `demur import NAME FILES -o log.jsonl` writes the rows that were read, and
[Logs as people write them](logs.md) has the options for everything else."""


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


@cache
def origins() -> tuple[Origin, ...]:
    """All origins, in the order of the page."""
    text = (Path(__file__).parent / "origins.toml").read_text(encoding="utf-8")
    return tuple(Origin(**one) for one in tomllib.loads(text)["origin"])


def page() -> str:
    """The page, a section for each origin; what is taken for what, its importer says of the fixture."""
    parts = ["# I have logs of ...", "Made from the code by `make docs`; do not edit.", INTRODUCTION]
    for origin in origins():
        parts += [f"## {origin.title}", origin.text, "```sh\n" + "\n".join(origin.commands) + "\n```"]
        parts.append(
            f"![The error-return plot of {origin.title.removeprefix('I have ')}](images/origin-{origin.name}.svg)"
        )
        rows = [f"| {part} | {taken} |" for part, taken in taken_for(origin).items() if taken]
        parts.append("\n".join(["| part | taken from |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def taken_for(origin: Origin) -> dict[str, str]:
    """What its importer takes for each part, of the files that the first command names."""
    from demur.core.io import sources
    from demur.importers import log_importers
    from demur.importers.choices import ImportChoices
    from demur.importers.protocol import ForeignFile

    importer = next(one for one in log_importers() if one.name == origin.name)
    with sources.opened(*(FIXTURES / origin.files[name] for name in origin.logs), others=True) as files:
        members = [(importer.recognises(file), file) for file in map(ForeignFile, files)]
        return dict(importer.read(members, ImportChoices(**origin.choices))[0].taken)


def figures() -> None:
    """Draw the pictures of the page."""
    import demur

    for origin in origins():
        choices = {
            name: FIXTURES / origin.files[one] if name == "gold" else one for name, one in origin.choices.items()
        }
        found = demur.score(*(str(FIXTURES / origin.files[name]) for name in origin.logs), **choices)
        found.save(IMAGES / f"origin-{origin.name}.svg", width="5in")
