"""The README and the pages of the docs as text: their blocks, the files to paste, their Python run as it stands."""

import io
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w-]+\.\w+)`:?\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A file to paste: its name ends the line before the block."""


PARTS = {
    "nbest": ("rewards", "recognisers", "paper"),
    "outcome": ("study", "numbers", "classifier"),
    "gold": ("benchmark", "components", "curves", "slurp"),
    "understanding": ("noise", "experiments"),
    "dialogue": ("experiments",),
    "workbench": ("access",),
    "scale": ("parts",),
    "papers": ("returns", "nbest", "outcome", "gold"),
}
"""Pages that go on from another, NAME_PART, in the order in which their examples run as one session."""


def read_page(name: str) -> str:
    """The text of a page of the docs, and of those that go on from it."""
    names = (name, *(f"{name}_{part}" for part in PARTS.get(name, ())))
    return "\n".join((ROOT / "docs" / f"{one}.md").read_text(encoding="utf-8") for one in names)


def blocks(language: str, page: str = README) -> list[str]:
    return [text for kind, text in BLOCK.findall(page) if kind == language]


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page shows to be pasted."""
    for name, text in FILE.findall(page):
        (folder / name).write_text(text, encoding="utf-8")


def run_python(code: str, folder: Path) -> None:
    """Run the code; what it prints is what its comments say."""
    printed = io.StringIO()
    with chdir(folder), redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    shown = re.findall(r"^# (.*)$", code, re.MULTILINE)
    assert printed.getvalue().splitlines() == shown
