"""The compare page in a real browser: until the curves stand, and while the threshold is dragged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
WINDOW = {"width": 1280, "height": 1600}

DRAWN = """async () => {
  while (!document.querySelector(".explorer-alive svg path")) await new Promise(requestAnimationFrame);
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now();
}"""
"""Milliseconds from the start of the navigation until the curves are painted."""

LISTEN = """() => {
  const counts = () => document.querySelector(".explorer-table tbody").textContent;
  const told = window.told = { painted: [], answered: [] };
  let before = counts();
  let moved = 0;
  document.querySelector(".explorer-plot").addEventListener("pointermove", ({ timeStamp }) => {
    moved = timeStamp;
    requestAnimationFrame(() => setTimeout(() => {
      if (counts() !== before) told.painted.push(performance.now() - timeStamp);
      before = counts();
    }));
  }, { capture: true });
  const table = document.querySelector('#answers [data-part="table"]');
  new MutationObserver(() => told.answered.push(performance.now() - moved)).observe(table, { childList: true });
}"""
"""Notes the time from each move of the pointer to what follows it: new counts painted, and other answers below."""


def chromium() -> str | None:
    """The browser named in DEMUR_CHROMIUM, else the first one found; None without one, or without Playwright."""
    try:
        import playwright.sync_api  # noqa: F401
    except ModuleNotFoundError:
        return None
    return os.environ.get("DEMUR_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser(path: str) -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield found
        found.close()


FIGURES = """async () => {
  const still = () => [...document.querySelectorAll("[data-spec] img, [data-part=plot] img")]
    .some((picture) => !picture.closest("details:not([open])"));
  while (document.readyState !== "complete" || still()) await new Promise(requestAnimationFrame);
  return performance.now();
}"""
"""Milliseconds from the start of the navigation until every figure of a page that is not folded has come to life."""


def until_figures(browser: Any, link: str) -> float:
    """Milliseconds until all figures of a page are drawn."""
    return _until(browser, link, FIGURES)


def until_drawn(browser: Any, link: str) -> float:
    """Milliseconds until the curves of a page stand, in a browser that knows nothing of it."""
    return _until(browser, link, DRAWN)


def _until(browser: Any, link: str, condition: str) -> float:
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.goto(link, wait_until="commit")
    took = float(page.evaluate(condition))
    context.close()
    return took


def dragged(browser: Any, link: str, moves: int) -> dict[str, list[float]]:
    """Milliseconds from each move of the pointer over the plot: until counts are painted, until answers stand below.

    The next move comes when the answers to the last one are there.
    """
    page = browser.new_page(viewport=WINDOW)
    page.goto(link)
    page.locator(".answers-table").wait_for()
    page.evaluate(LISTEN)
    box = page.locator(".explorer-plot svg").bounding_box()
    across, height = box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2
    page.mouse.move(across, height)
    page.mouse.down()
    for move in range(moves):
        known = page.evaluate("window.told.answered.length")
        page.mouse.move(across + (move + 1) * 0.4 * box["width"] / moves, height)
        page.wait_for_function("(known) => window.told.answered.length > known", arg=known)
    page.mouse.up()
    told: dict[str, list[float]] = page.evaluate("window.told")
    page.close()
    return told
