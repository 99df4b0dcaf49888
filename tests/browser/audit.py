"""What an audit of a page by axe-core finds."""

from typing import Any

import pytest


def serious_faults(page: Any) -> list[str]:
    """The faults that shut people out: their rule and the elements that break it."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="the browser tests need axe-playwright-python"
    )
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [f"{fault['id']}: {node['target']}" for fault in serious for node in fault["nodes"]]
