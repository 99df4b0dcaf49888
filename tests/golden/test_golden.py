"""What every command of the README and the docs gives is what was recorded of it; `make golden` records it again."""

import json
import re
from pathlib import Path

import pytest

from demur.importers import REGISTRY
from golden.record import Case, Workshop, cases, compared, decoded, differences, essence, rounded, shortened
from pages import README, ROOT, blocks, read_page

SHOWN = 20
NOT_RECORDED = ("serve", "study serve", "study play", "doctor")
"""Commands that give no document, or one of this machine."""
ALIKE = {f"import {name}" for name in REGISTRY} - {"import inspect", "import rasa"}
"""Commands that are one function: two are recorded, and `tests/importers` has the rows of each."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize(
    ("case", "kind"),
    [pytest.param(case, kind, id=f"{case.name}-{kind}") for case in cases().values() for kind in case.files],
)
def test_the_command_gives_what_was_recorded(workshop: Workshop, case: Case, kind: str) -> None:
    found = compared(case, kind, workshop.outputs(case)[kind])
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    heading = f"{kind}/{case.files[kind].name} differs (`make golden` records it again):"
    assert not found, "\n".join([heading, *map(str, found[:SHOWN]), *more])


def test_every_command_shown_has_a_case() -> None:
    """But those of origins, whose pages are made of what they print."""
    recorded = {essence(shown) for case in cases().values() for shown in (case.command, case.page) if shown}
    written = (page for page in sorted((ROOT / "docs").glob("*.md")) if not page.stem.startswith("origin_"))
    pages = [README, *(page.read_text(encoding="utf-8") for page in written)]
    shown = {
        command
        for page in pages
        for block in blocks("console", page)
        for command in re.findall(r"^\$ (?:.* \| )?demur (.*)", block, re.MULTILINE)
    }
    assert len(shown) > 50
    missing = sorted(command for command in shown if essence(command) not in recorded)
    assert not missing, f"no case in golden/cases.toml for: {missing}"


def test_every_command_there_is_has_a_case() -> None:
    headings = re.findall(r"^##+ demur (.*)", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"), re.MULTILINE)
    groups = {heading.split()[0] for heading in headings if " " in heading}
    for heading in headings:
        if heading not in {*groups, *NOT_RECORDED, *ALIKE}:
            assert any(case.command.startswith(f"{heading} ") for case in cases().values() if case.json), heading


PAPERS = [
    row
    for line in read_page("papers").splitlines()
    if line.startswith("| ") and not line.startswith("| capability ")
    if len(row := [cell.strip() for cell in line.replace("\\|", "¦").split("|")[1:-1]]) == 5
]
"""The rows of the page on the papers: capability, command, the paper printed, demur gives, why they differ."""
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


@pytest.mark.parametrize("row", PAPERS, ids=[row[0] for row in PAPERS])
def test_a_command_of_the_page_on_the_papers_gives_the_numbers_shown_there(row: list[str]) -> None:
    """Numbers of a command for which a smaller case stands (`page`) are not recorded, and not checked."""
    _, typed, _, given, _ = row
    commands = [essence(command) for command in re.findall(r"`demur ([^`]+)`", typed.replace("¦", "|"))]
    recorded = [case for case in cases().values() if essence(case.command) in commands]
    missing = set(commands) - {essence(shown) for case in cases().values() for shown in (case.command, case.page)}
    assert commands, f"no command of demur in: {typed}"
    assert not missing, f"no case in golden/cases.toml for: {missing}"
    text = "\n".join(file.read_text(encoding="utf-8") for case in recorded for file in case.files.values())
    absent = set(NUMBER.findall(given)) - set(NUMBER.findall(text))
    assert not absent or not recorded, f"{typed} does not print {absent}"


def test_every_golden_file_belongs_to_a_case() -> None:
    kept = {file for case in cases().values() for file in case.files.values()}
    there = {file for kind in ("json", "text", "markdown") for file in (Path(__file__).parent / kind).iterdir()}
    assert there == kept


def test_a_difference_says_where_and_both_values() -> None:
    recorded = {"a": [{"value": 1.0, "low": 0.5}], "b": "x"}
    now = {"a": [{"value": 1.0 + 1e-8, "low": 0.5 + 1e-11}], "b": "y"}
    first, second = differences(recorded, now)
    assert str(first) == "$.a[0].value: recorded 1.0, now 1.00000001"
    assert (first.only_words, second.where, second.only_words) == (False, "$.b", True)


@pytest.mark.parametrize(
    ("recorded", "now"),
    [({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([1], [1, 2]), (None, 0.0), (True, 1), ("1", 1)],
)
def test_structure_is_compared_exactly(recorded: object, now: object) -> None:
    assert [one.where for one in differences(recorded, now)] == ["$"]


@pytest.mark.parametrize("changed", [{70: 2.5}, {70: -70.0}, {60: 61.0, 61: 60.0}, {70: "70"}])
def test_a_change_within_a_long_list_is_seen(changed: dict[int, object]) -> None:
    whole = [float(k) for k in range(200)]
    other = [changed.get(k, value) for k, value in enumerate(whole)]
    recorded = json.loads(json.dumps(rounded(shortened(whole))))
    assert list(differences(recorded, shortened(other)))
    assert not list(differences(recorded, shortened(whole)))


def test_lines_of_documents_are_a_list_of_them() -> None:
    assert decoded('{"a": 1}\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]
