"""What every page works with: the store, the worker, the rows at hand, and the settings of this server."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from demur import __version__
from demur.apps.web import preferences
from demur.apps.web.preferences import Preferences
from demur.apps.web.work.worker import Job, Worker

if TYPE_CHECKING:
    from demur.store.rows import RunRows
    from demur.store.runs import Run, Store

RUNS_AT_HAND = 4
"""Runs whose confidences stay in memory for quick looks at their rows."""

MOST_UPLOADED = 2 * 1024**3
"""Bytes of an upload unless the server is told otherwise."""


class Waiting(Exception):
    """A page needs a result that is being made."""

    def __init__(self, job: Job, about: str) -> None:
        super().__init__(about)
        self.job, self.about = job, about


@dataclass(slots=True)
class Site:
    """The store and the work behind one server."""

    store: Store
    worker: Worker
    most_uploaded: int = MOST_UPLOADED
    settings: dict[str, Any] = field(default_factory=dict)
    """What the server was started with, to be shown."""
    preferences: Preferences = field(default_factory=Preferences)
    """What new results are made with."""
    problems: tuple[str, ...] = ()
    """What was found wrong at the start, the store's own problems apart."""
    _rows: OrderedDict[str, RunRows] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def result(self, task: str, runs: Sequence[Run], about: str, **asked: Any) -> dict[str, Any]:
        """The document that a task makes of runs: from the cache, or else `Waiting` while the worker makes it.

        The task is given the ids of the `runs`, what is `asked`, and how to compute uncertainty as `sampling`.
        """
        wanted = {"sampling": self.preferences.sampling, **asked}
        signature = signature_of(task, [run.id for run in runs], [run.name for run in runs], wanted)
        if (content := self.store.cached(signature)) is not None:
            found: dict[str, Any] = json.loads(content)
            return found
        if (held := self.worker.held(signature)) is not None:
            return held
        given = {"runs": [run.id for run in runs], **wanted}
        raise Waiting(self.worker.start(task, given, signature=signature, about=about), about)

    def rows(self, run: Run) -> RunRows:
        """The rows of a run, of which the last few runs' confidences are kept in memory."""
        with self._lock:
            if run.id in self._rows:
                self._rows.move_to_end(run.id)
                return self._rows[run.id]
        read = self.store.rows(run)
        with self._lock:
            self._rows[run.id] = read
            while len(self._rows) > RUNS_AT_HAND:
                self._rows.popitem(last=False)
            return read

    def dropped(self, run: Run) -> None:
        """Let go of the rows of a run that is no more."""
        with self._lock:
            self._rows.pop(run.id, None)

    def change_preferences(self, given: dict[str, Any]) -> None:
        """Change what new results are made with, and keep it."""
        changed = self.preferences.changed(given)
        preferences.keep(self.store.root, changed)
        self.preferences = changed


def site_of(store: Store, **options: Any) -> Site:
    """A site over a store, with the preferences kept there and a worker of its own."""
    kept, fault = preferences.kept(store.root)
    return Site(store, Worker(store.root), preferences=kept, problems=(fault,) if fault else (), **options)


def signature_of(task: str, runs: Sequence[str], names: Sequence[str], asked: dict[str, Any]) -> str:
    """The name of a result: what was asked, of which data, by which version."""
    text = json.dumps([__version__, task, list(runs), list(names), asked], sort_keys=True)
    return f"{task}-{hashlib.sha256(text.encode()).hexdigest()}"
