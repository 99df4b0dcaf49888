"""The shape of what a browser gets: scripts without a way to make markup of data, templates without a way around it."""

import re
from pathlib import Path

import pytest

import demur

ROOT = Path(demur.__file__).parent
SCRIPTS = sorted(ROOT.rglob("*.js"))
TEMPLATES = sorted(ROOT.rglob("*.html"))
STYLES = sorted(ROOT.rglob("*.css"))


def named(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_scripts_never_make_markup_or_code_of_text(path):
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    assert not re.findall(ways, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [*SCRIPTS, *TEMPLATES, *STYLES], ids=named)
def test_nothing_is_loaded_from_another_host(path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
    assert not re.findall(r"""(?:src|href|url|import|fetch|from)\s*[=(]?\s*["'(]\s*(?:https?:)?//""", text)


@pytest.mark.parametrize("path", TEMPLATES, ids=named)
def test_templates_hold_no_inline_script_style_or_handler(path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"\son\w+\s*=", text), "handlers belong into a module"
    assert not re.findall(r"\sstyle\s*=", text), "looks belong into a style sheet"
    assert not re.findall(r"<style", text)
    inline = [attributes for attributes in re.findall(r"<script([^>]*)>", text) if "src=" not in attributes]
    assert all('type="application/json"' in attributes for attributes in inline)


@pytest.mark.parametrize("path", TEMPLATES, ids=named)
def test_templates_trust_nothing_but_escaped_json(path):
    for before, _ in re.findall(r"([^{}]*)\|\s*(safe)\b", path.read_text(encoding="utf-8")):
        made_here = path.name == "explored.html" and before.strip() == "document.fragment"  # escaped in views/explorer
        assert made_here or before.rstrip().endswith("| data"), before
    assert "autoescape" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*SCRIPTS, *STYLES, *TEMPLATES], ids=named)
def test_files_for_the_browser_are_shorter_than_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


def test_only_pages_with_figures_load_what_draws_them():
    """The page that is shown while a result is made has it read already."""
    pages = {named(path): path.read_text(encoding="utf-8") for path in TEMPLATES}
    full = {name for name, text in pages.items() if '{% extends "base.html" %}' in text}
    without = {name for name in full if "{% block vega %}{% endblock %}" in pages[name]}
    drawing = {name for name in full if '{% import "parts.html" as parts %}' in pages[name]}
    assert full - without - drawing == {"apps/web/templates/waiting.html"}
    assert not without & drawing
