"""What an audit of a page by axe-core finds."""

from typing import Any

import pytest

AUDIT = """async ([exclude, only]) => {
  const lesser = axe._audit.rules.filter((rule) => ["minor", "moderate"].includes(rule.impact));
  const rules = Object.fromEntries(lesser.map((rule) => [rule.id, { enabled: false }]));
  const chosen = only.length ? { runOnly: { type: "rule", values: only } } : { rules };
  const found = (await axe.run({ exclude }, { resultTypes: ["violations"], ...chosen })).violations;
  const serious = found.filter((fault) => ["serious", "critical"].includes(fault.impact));
  return serious.flatMap((fault) => fault.nodes.map((node) => `${fault.id}: ${node.target}`));
}"""

OF_LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "aria-hidden-focus")
"""The rules that colours and widths decide; the others see the same page in every look."""

LOOKS = ((1280, "dark"), (390, "light"), (390, "dark"))
"""Looks at which pages are audited besides the usual one: width and colours."""

SHORTEN = """() => {
  for (const body of document.querySelectorAll("tbody")) [...body.rows].slice(4).forEach((row) => row.remove());
}"""


def shorten_tables(page: Any) -> None:
    """Leave the first rows of each table: those below are made alike, and an audit takes time for each cell."""
    page.evaluate(SHORTEN)


def audit_looks(page: Any) -> None:
    """Audit a page as it is, dark, and narrow: nothing serious, and nothing that sticks out."""
    assert serious_faults(page) == []
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert serious_faults(page, rules=OF_LOOKS) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"nothing sticks out at {width}"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")


def serious_faults(page: Any, *, besides: tuple[str, ...] = (), rules: tuple[str, ...] = ()) -> list[str]:
    """The faults that shut people out: their rule and the elements that break it, those `besides` not looked into.

    All rules are tried unless some are named.
    """
    axe = pytest.importorskip("axe_playwright_python.base", reason="the browser tests need axe-playwright-python")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe.AXE_SCRIPT)
    faults: list[str] = page.evaluate(AUDIT, [list(besides), list(rules)])
    return faults
