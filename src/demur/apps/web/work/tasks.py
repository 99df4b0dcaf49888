"""The kinds of long work, by name; each is loaded when it is first asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from demur.show import Step, plain
from demur.store.runs import Store

Task = Callable[[Store, dict[str, Any], Step], dict[str, Any] | None]

HOMES = {
    "warm": "answers",
    "evaluation": "answers",
    "comparison": "answers",
    "lists": "lists",
    "turns": "lists",
    "outcome": "outcomes",
    "what_if": "outcomes",
    "gold": "gold",
    "add": "adding",
    "demo": "adding",
}
"""The module of each task; the function has the task's name."""


def performed(task: str, given: dict[str, Any], signature: str | None, root: Path, step: Step) -> dict[str, Any] | None:
    """Do a task; a result with a signature goes to the cache, one without, or that cannot be kept, is the answer."""
    function: Task = getattr(import_module(f"demur.apps.web.work.{HOMES[task]}"), task)
    with closing(Store.open(root)) as store:
        made = function(store, given, step)
        if signature is None or made is None:
            return made
        document = plain(made)
        kept = store.keep(signature, json.dumps(document, separators=(",", ":"), allow_nan=False).encode())
        return None if kept else document
