"""The shape of what a browser gets: scripts without a way to make markup of data, templates without a way around it."""

import re
from pathlib import Path

import demur

ROOT = Path(demur.__file__).parent
SCRIPTS, TEMPLATES, STYLES = (
    {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob(f"*.{ending}"))}
    for ending in ("js", "html", "css")
)
LONGEST = 400


def matches(pattern: str, texts: dict[str, str]) -> dict[str, list[str]]:
    """What matches in each text, of those in which something does."""
    return {name: found for name, text in texts.items() if (found := re.findall(pattern, text))}


def test_scripts_never_make_markup_or_code_of_text():
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    assert SCRIPTS
    assert not matches(ways, SCRIPTS)


def test_nothing_is_loaded_from_another_host():
    texts = {name: text.replace("http://www.w3.org/", "") for name, text in (SCRIPTS | TEMPLATES | STYLES).items()}
    assert not matches(r"""(?:src|href|url|import|fetch|from)\s*[=(]?\s*["'(]\s*(?:https?:)?//""", texts)


def test_templates_hold_no_inline_script_style_or_handler():
    assert TEMPLATES
    assert not matches(r"\son\w+\s*=", TEMPLATES), "handlers belong into a module"
    assert not matches(r"\sstyle\s*=", TEMPLATES), "looks belong into a style sheet"
    assert not matches(r"<style", TEMPLATES)
    assert not matches(r"""<script(?![^>]*(?:src=|type="application/json"))[^>]*>""", TEMPLATES)


def test_templates_trust_nothing_but_escaped_json():
    trusted = matches(r"([^{}]*)\|\s*safe\b", TEMPLATES)
    escaped_before = {
        ("explored.html", "document.fragment"),  # in returns/explorer
        ("parts.html", "cell | string | number_cell"),  # in core/show/html
    }
    wrong = {
        name: before
        for name, places in trusted.items()
        for before in map(str.strip, places)
        if not before.endswith("| data") and (Path(name).name, before) not in escaped_before
    }
    assert not wrong
    assert not matches("autoescape", TEMPLATES)


def test_files_for_the_browser_are_short():
    lengths = {name: len(text.splitlines()) for name, text in (SCRIPTS | STYLES | TEMPLATES).items()}
    assert not {name: length for name, length in lengths.items() if length >= LONGEST}


def test_only_pages_with_figures_load_what_draws_them():
    """The page that is shown while a result is made has it read already."""
    full = {name for name, text in TEMPLATES.items() if '{% extends "base.html" %}' in text}
    without = {name for name in full if "{% block vega %}{% endblock %}" in TEMPLATES[name]}
    drawing = {name for name in full if '{% import "parts.html" as parts %}' in TEMPLATES[name]}
    assert full - without - drawing == {"apps/web/templates/waiting.html"}
    assert not without & drawing
