"""Names that try to be more than text stay text in every output of every question."""

import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from commands import Demur
from demur.core.show.pictures import Draughtsman
from demur.errors import UsageError
from payloads import PAYLOADS

UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe]")
FORGED = re.compile(r"^\s*(::|##\w|PASS forged)", re.MULTILINE)
NAMES = list(PAYLOADS.values())
ENDINGS = (".html", ".md", ".csv", ".json", ".svg")


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of every question in which all that is named is a payload."""
    answers = [
        {
            "id": f"{name}{k}",
            "system": ("one " if system else "two ") + "".join(NAMES),
            "target": name,
            "prediction": name if (k + system) % 3 else NAMES[0],
            "confidence": round((7 * k + place + system) % 29 / 29, 3),
            NAMES[-1]: NAMES[place % 3],
        }
        for system in (0, 1)
        for place, name in enumerate(NAMES)
        for k in range(3)
    ]
    lists = [
        {
            "id": name,
            "dialogue": NAMES[place // 3],
            "reference": [f"say={name}"],
            "hypotheses": [
                {"items": [f"say={name}"], "confidence": 0.6},
                {"items": [f"say={NAMES[0]}"], "confidence": 0.3},
            ],
        }
        for place, name in enumerate(NAMES)
    ]
    trials = [
        {"performer": name, "subject": f"{name}{who}", "noise": k / 5, "done": int(k / 5 < least)}
        for name, least in ((f"wizards {NAMES[7]}", 0.95), ("".join(NAMES), 0.55))
        for who in range(4)
        for k in range(6)
    ]
    write(tmp_path / "answers.jsonl", answers)
    write(tmp_path / "lists.jsonl", lists)
    write(tmp_path / "trials.jsonl", trials)
    return tmp_path


class Page(HTMLParser):
    """What a page would run besides its own script."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        running = [name for name, value in attrs if name.startswith("on") or (value or "").startswith("javascript:")]
        self.faults += [f"{tag} {name}" for name in running]
        self.faults += [f"{tag} {attrs}"] if tag == "img" and ("src", "x") in attrs else []


def faults_of(path: Path) -> list[str]:
    """What is wrong with a file that a command wrote."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        frame = pl.read_csv(io.StringIO(text), infer_schema=False)
        return [cell for row in (frame.columns, *frame.rows()) for cell in row if cell and cell[0] in "=+@\t"]
    if path.suffix in (".svg", ".xml"):
        ET.fromstring(text)
    if path.suffix == ".json":
        json.loads(text)
    if path.suffix == ".html":
        page = Page()
        page.feed(text)
        text = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # the library's own
        return page.faults + UNSEEN.findall(text) + re.findall("<script>window", text)
    marks = re.findall(r"<script|(?<!\\)\]\(javascript", text) if path.suffix == ".md" else []
    return marks + UNSEEN.findall(text)


COMMANDS = {
    "score": ("score", "answers.jsonl", "--by", NAMES[-1]),
    "compare": ("compare", "answers.jsonl"),
    "threshold": ("threshold", "answers.jsonl", "--system", "one " + "".join(NAMES), "--max-nonreturn", "0.2"),
    "classes": ("classes", "answers.jsonl"),
    "validate": ("validate", "answers.jsonl"),
    "nbest": ("nbest", "lists.jsonl"),
    "gold": ("gold", "trials.jsonl", "--x", "noise", "--y", "done", "--gold", f"wizards {NAMES[7]}", "--no-checks"),
    "report": ("report", "answers.jsonl", "lists.jsonl"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_name_is_never_more_than_text(demur: Demur, logs: Path, name: str) -> None:
    endings = (".html", ".md", ".json", ".xml") if name == "report" else ENDINGS
    endings = tuple(ending for ending in endings if name != "validate" or ending != ".svg")
    sampling = () if name in ("validate", "classes") else ("--replicates", "50")
    done = demur(*COMMANDS[name], *sampling, *(part for ending in endings for part in ("-o", f"out{ending}")))
    assert done.returncode == 0, done.stderr
    for printed in (done.stdout, done.stderr):
        assert UNSEEN.findall(printed) == []
        assert FORGED.findall(printed) == []
    for ending in endings:
        assert faults_of(logs / f"out{ending}") == []


def test_a_library_that_ends_while_it_draws_takes_nothing_with_it() -> None:
    draughtsman = Draughtsman()
    assert draughtsman.draw("vegalite_to_svg", {"mark": "point", "data": {"values": [{}]}}).startswith(b"<svg")
    with pytest.raises(UsageError, match="the drawing library ended with code -6"):
        draughtsman.draw("vegalite_to_svg", {"title": "a\x0cb", "mark": "point", "data": {"values": [{}]}})
    with pytest.raises(UsageError, match="the figure cannot be drawn: "):
        draughtsman.draw("vegalite_to_svg", {"mark": "no such mark"})
    assert draughtsman.draw("vegalite_to_svg", {"mark": "point", "data": {"values": [{}]}}).startswith(b"<svg")
    draughtsman.close()
