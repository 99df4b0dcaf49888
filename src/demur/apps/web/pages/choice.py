"""The choice of a run for a page that shows one, and what to do where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from demur.apps.web.pages.examples import EXAMPLES
from demur.apps.web.pages.runs import KIND_NAMES

if TYPE_CHECKING:
    from demur.store.runs import Run


def run_values(run: Run) -> dict[str, Any]:
    """What a page says of a run."""
    return {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n, "note": run.note, "tags": list(run.tags)}


def choosing(page: str, what: str, runs: Sequence[Run], *, add: str, example: str) -> dict[str, Any]:
    """The document of a page on which a run is chosen; without runs it offers an example."""
    return {
        "page": page,
        "what": what,
        "runs": [{**run_values(run), "kind_name": KIND_NAMES[run.kind]} for run in runs],
        "add": add,
        "example": example,
        "example_label": f"Add the bundled example, {EXAMPLES[example].label}",
    }
