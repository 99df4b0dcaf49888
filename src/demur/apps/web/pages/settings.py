"""Settings: where the store is and what it holds, what new results are made with, and the work under way."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from demur import __version__
from demur.apps.web.site import Action, Page, PageContent, Preferences, Query, Site, preference_fields
from demur.apps.web.worker import ENDED

LABELS = {
    "level": "Confidence level of intervals",
    "replicates": "Bootstrap replicates",
    "seed": "Seed of all randomness",
    "at": "Share withheld at which pages open",
}
"""The settings, with their labels."""

JOBS_SHOWN = 12
"""Jobs that have ended and are still shown."""


class SettingsPage(Page):
    """What can be set or seen of this server."""

    path, template = "/settings", "settings.html"
    heading = "Settings"

    def show(self, site: Site, query: Query) -> PageContent:
        """All that can be set or seen of this server."""
        root = site.store.root
        jobs = [{key: value for key, value in job.to_dict().items() if key != "answer"} for job in site.worker.jobs()]
        under_way = [job for job in jobs if job["state"] not in ENDED]
        ended = [job for job in jobs if job["state"] in ENDED]
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
            "form": {name: {**asdict(one), "label": LABELS[name]} for name, one in preference_fields().items()},
            "jobs": [*under_way, *ended[:JOBS_SHOWN]],
            "under_way": len(under_way),
        }
        return PageContent("Settings", document)


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


ACTIONS: tuple[Action, ...] = (
    Action("/api/settings", "PATCH", change),
    Action("/api/cache", "DELETE", clear),
)
