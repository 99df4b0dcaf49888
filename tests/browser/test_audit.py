"""Every page, light and dark, wide and narrow: an audit by axe-core finds nothing serious.

What figures are drawn with is audited once, in the report, which has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the workbench needs the extra: pip install 'demur[web]'")

from apps.web.logs import MARKUP
from browser.audit import OF_LOOKS, serious_faults, shorten_tables
from browser.workbench import Workbench, shown
from demur.apps.web.server import PAGES
from demur.lab import tutor
from demur.store.intake import RunReading

LOOKS = {"light": 1280, "dark": 390}
"""Colours, and the width of the window; the wide one hides nothing."""

PARTS = ("/errors/rows",)
"""What scripts put into other pages; by itself it is no page."""

LINKS = {
    "/runs": "/runs?run={alpha}",
    "/run/{id}": "/run/{alpha}",
    "/compare": "/compare?run={alpha}&run={beta}",
    "/errors": "/errors?run={alpha}&other={beta}&threshold=0.5",
    "/nbest": "/nbest",
    "/nbest/{id}": "/nbest/{lists}",
    "/nbest/{id}/turns": "/nbest/{lists}/turns",
    "/outcome": "/outcome?turns={turns}&dialogues={gains}&matched=1",
    "/outcome/what-if": "/outcome/what-if?turns={turns}&dialogues={gains}",
    "/gold": "/gold",
    "/gold/{id}": "/gold/{trials}?checks=false",
    "/settings": "/settings",
}
"""A link to each page that has something to show there."""


@pytest.fixture(scope="module")
def ids(workbench: Workbench) -> dict[str, str]:
    """Runs of every kind, with markup in them."""
    turns, gains = tutor.study(dialogues=20)
    return {
        "alpha": workbench.id_of("alpha"),
        "beta": workbench.id_of(f"beta {MARKUP}"),
        "lists": workbench.add(f"lists {MARKUP}", _lists()),
        "turns": workbench.add("turns", turns),
        "gains": workbench.add("audited gains", gains),
        "trials": workbench.add("trials", _trials(), reading=RunReading(x="noise", y="done")),
    }


def _lists() -> list[dict[str, Any]]:
    heard = [{"items": ["food=thai"], "confidence": 0.6}, {"items": [f"area={MARKUP}"], "confidence": 0.3}]
    meant = (["food=thai"], [f"area={MARKUP}"], ["bye"])
    return [
        {"id": f"u{k}", "dialogue": f"d{k // 3}", "text": MARKUP, "reference": meant[k % 3], "hypotheses": heard}
        for k in range(12)
    ]


def _trials() -> list[dict[str, Any]]:
    """Trials of wizards who nearly always succeed, and of a system that fails in noise."""
    performers = {"wizards": 0.95, f"system {MARKUP}": 0.55}
    return [
        {"performer": name, "subject": f"{name} {who}", "noise": k / 10, "done": int(k / 10 < least)}
        for name, least in performers.items()
        for who in range(4)
        for k in range(who % 2, 11, 2)
    ]


def test_every_page_is_audited() -> None:
    assert {page.path for page in PAGES} == {*LINKS, *PARTS, "/report"}, "the report is a file, audited as one"


@pytest.mark.parametrize("path", LINKS)
def test_no_page_shuts_anybody_out(
    open_page: Callable[..., Any], workbench: Workbench, ids: dict[str, str], path: str
) -> None:
    page = open_page(base_url=workbench.url, viewport={"width": LOOKS["dark"], "height": 900})
    page.set_viewport_size({"width": LOOKS["dark"], "height": 900})  # as it was before the page was last used
    shown(page, LINKS[path].format(**ids))
    assert page.locator("h1").count() == 1
    assert page.get_by_text("could not be drawn").count() == 0
    for summary in page.locator(".answers-table summary").all()[:1]:
        summary.click()
    for width in LOOKS.values():
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    shorten_tables(page)
    for (scheme, width), rules in zip(LOOKS.items(), ((), OF_LOOKS), strict=True):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert serious_faults(page, besides=("svg",), rules=rules) == []
