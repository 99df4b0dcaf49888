"""Settings: where the store is and what it holds, what new results are made with, and the work under way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from demur import __version__
from demur.apps.web.pages.page import Action, Page, Shown
from demur.apps.web.site import MOST_REPLICATES, Preferences, Query, Site

JOBS_SHOWN = 12
"""Jobs that have ended and are still shown."""


def settings(site: Site, query: Query) -> Shown:  # noqa: ARG001
    """All that can be set or seen of this server."""
    root = site.store.root
    jobs = [job.to_dict() for job in site.worker.jobs()]
    under_way = [job for job in jobs if job["state"] in ("waiting", "running")]
    document = {
        "version": __version__,
        "store": str(root),
        "runs": len(site.store.runs()),
        "size": size_of(root / "runs"),
        "cache": size_of(root / "cache"),
        "read_only": site.store.read_only,
        "problems": [*site.problems, *site.store.problems],
        "limit": site.most_uploaded,
        "guarded": bool(site.settings.get("token")),
        "preferences": site.preferences.to_dict(),
        "defaults": Preferences().to_dict(),
        "most_replicates": MOST_REPLICATES,
        "jobs": [_without_answer(job) for job in (*under_way, *_ended(jobs))],
        "under_way": len(under_way),
    }
    return Shown("Settings", document)


def _ended(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [job for job in jobs if job["state"] not in ("waiting", "running")][:JOBS_SHOWN]


def _without_answer(job: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name != "answer"}


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder; what goes away meanwhile does not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def change(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Change what new results are made with."""
    site.change_preferences(body)
    return {"preferences": site.preferences.to_dict()}


def clear(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Remove all results that were kept; they are made again when they are asked for."""
    return {"removed": site.store.clear_cache()}


PAGES: tuple[Page, ...] = (Page("/settings", "settings.html", settings, "Settings"),)
ACTIONS: tuple[Action, ...] = (
    Action("/api/settings", "PATCH", change),
    Action("/api/cache", "DELETE", clear),
)
