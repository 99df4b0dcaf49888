"""Chromium for the tests that look at pages: found on this machine, and listened to while they run."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.web.logs import MARKUP, answers
from browser.workbench import Workbench, served

NAMES = (
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
)
"""The shell first: it has no windows to prepare and takes about half the processor time."""
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-site-isolation-trials", "--renderer-process-limit=1"),  # one process shows one document after another
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),  # a microphone that beeps
    "--js-flags=--no-opt",  # no document lives long enough to win back what its most thorough compiler costs
)
PATIENCE = 120_000
"""Milliseconds after which something that should have appeared counts as a fault, on a busy machine too."""
LISTENER = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (fault) => {
  window.violations.push(`${fault.violatedDirective} ${fault.blockedURI} ${fault.sample}`);
});
"""


def chromium_path() -> str | None:
    """The browser named in DEMUR_CHROMIUM, else the first one found."""
    return os.environ.get("DEMUR_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str | None:
    """Why pages cannot be looked at here, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ModuleNotFoundError:
        return "the browser tests need Playwright: pip install playwright"
    if chromium_path() is None:
        return "the browser tests need Chromium on the path, or its place in DEMUR_CHROMIUM"
    return None


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless browser that the tests share."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium_path(), args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def idle_pages() -> dict[str, list[Any]]:
    """Pages that no test uses, by the options of their context: one that exists shows the next document much sooner."""
    return defaultdict(list)


@pytest.fixture
def open_page(chromium: Any, idle_pages: dict[str, list[Any]]) -> Iterator[Callable[..., Any]]:
    """A function that opens a page with the options of a browser context; its errors fail the test at the end."""
    with _opening(chromium, idle_pages) as open_one:
        yield open_one


@pytest.fixture(scope="module")
def open_shared(chromium: Any, idle_pages: dict[str, list[Any]]) -> Iterator[Callable[..., Any]]:
    """As `open_page`, for a page that the tests of a module share; its errors fail the last of them."""
    with _opening(chromium, idle_pages) as open_one:
        yield open_one


@contextmanager
def _opening(chromium: Any, idle_pages: dict[str, list[Any]]) -> Iterator[Callable[..., Any]]:
    """Opens pages, and says at the end which errors there were.

    Errors are what the console calls so, exceptions nobody caught, and whatever a content policy refused. What the
    console says of a refusal that the test brings about is let pass by `expecting` a part of it.
    """
    opened: list[tuple[str, Any, dict[str, Callable[..., None]]]] = []
    faults: list[str] = []

    def open_one(*, expecting: str | None = None, **options: Any) -> Any:
        key = repr(sorted(options.items()))
        page = idle_pages[key].pop() if idle_pages[key] else _new_page(chromium, options)
        heard = {
            "console": lambda said: faults.append(said.text) if _is_fault(said, expecting) else None,
            "pageerror": lambda fault: faults.append(str(fault)),
        }
        for event, hear in heard.items():
            page.on(event, hear)
        opened.append((key, page, heard))
        return page

    yield open_one
    for key, page, heard in opened:
        for frame in page.frames:
            faults += frame.evaluate("window.violations || []")
        page.unroute_all()
        page.goto("about:blank")
        for event, hear in heard.items():
            page.remove_listener(event, hear)
        idle_pages[key].append(page)
    assert faults == []


def _new_page(chromium: Any, options: dict[str, Any]) -> Any:
    context = chromium.new_context(**{"viewport": {"width": 1000, "height": 1100}, **options})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(LISTENER)
    return context.new_page()


def _is_fault(said: Any, expecting: str | None) -> bool:
    return said.type == "error" and (expecting is None or expecting not in said.text)


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A real server of a small store, in a process of its own, that the tests share."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("workbench")
    with served(folder / "store") as url:
        made = Workbench(url, folder)
        made.prefer(replicates=50)
        made.add("alpha", answers(seed=1), tags=("baseline",), note=MARKUP)
        made.add(f"beta {MARKUP}", answers(seed=2, skill=1.0), tags=(MARKUP,))
        yield made
