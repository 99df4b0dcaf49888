"""Names that try to be more than text stay text in every output of every question."""

import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pyte
import pytest

from commands import Demur
from demur.core.show.pictures import DrawingProcess
from demur.errors import UsageError
from payloads import COMMANDS, write_logs

UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe]")
FORGED = re.compile(r"^\s*(::|##\w|PASS forged)", re.MULTILINE)
ENDINGS = (".md", ".csv", ".json")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of every question in which all that is named is a payload."""
    return write_logs(tmp_path)


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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_name_is_never_more_than_text(demur: Demur, logs: Path, name: str) -> None:
    endings = (".html", ".md", ".json", ".xml") if name == "report" else ENDINGS
    endings += (".svg",) if name in ("compare", "gold") else ()
    sampling = () if name in ("validate", "classes") else ("--replicates", "50")
    done = demur(*COMMANDS[name], *sampling, *(part for ending in endings for part in ("-o", f"out{ending}")))
    assert done.returncode == 0, done.stderr
    for printed in (done.stdout, done.stderr):
        assert UNSEEN.findall(printed) == []
        assert FORGED.findall(printed) == []
        screen = pyte.Screen(20_000, printed.count("\n") + 1)
        pyte.Stream(screen).feed(printed.replace("\n", "\r\n"))
        assert (screen.cursor.y, screen.title) == (printed.count("\n"), "")
    for ending in endings:
        assert faults_of(logs / f"out{ending}") == []


def test_a_library_that_ends_while_it_draws_takes_nothing_with_it() -> None:
    drawing = DrawingProcess()
    assert drawing.draw("vegalite_to_svg", {"mark": "point", "data": {"values": [{}]}}).startswith(b"<svg")
    with pytest.raises(UsageError, match="the drawing library ended with code -6"):
        drawing.draw("vegalite_to_svg", {"title": "a\x0cb", "mark": "point", "data": {"values": [{}]}})
    with pytest.raises(UsageError, match="the figure cannot be drawn: "):
        drawing.draw("vegalite_to_svg", {"mark": "no such mark"})
    assert drawing.draw("vegalite_to_svg", {"mark": "point", "data": {"values": [{}]}}).startswith(b"<svg")
    drawing.close()
