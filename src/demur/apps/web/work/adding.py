"""Runs are added: what was uploaded, once it is known not to unpack to more than is allowed, and the demo's logs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from demur.apps.web.work.unpacking import refuse_bomb
from demur.data.corpora import museum
from demur.errors import DemurError, UsageError
from demur.show import Step
from demur.store.runs import Added, RunReading, Sent, Store


def add(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """Read an upload and add its runs; what is said of it calls it by its owner's name."""
    path, shown = Path(given["path"]), given["file"]
    step("reading", 0, 2)
    refuse_bomb(path, shown, given["most"])
    reading = RunReading(**given["reading"])
    options = {name: given[name] for name in ("name", "tags", "note", "kind", "replace")}
    try:
        found = store.add(Sent(path, shown), reading=reading, step=step, **options)
    except DemurError as fault:  # whoever tells of the file itself knows only where we put it
        raise UsageError(str(fault).replace(str(path), shown)) from None
    return {"file": shown, "runs": [_told(one) for one in found]}


def demo(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:  # noqa: ARG001
    """Add the logs of the demo: three models of a museum guide, on questions as asked and as they were misheard."""
    from demur.apps.cli.demonstration import answered, write_logs

    step("training three small models", 0, 2)
    table = answered(museum())
    step("adding their logs", 1, 2)
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        write_logs(table, Path(folder))
        files = sorted(Path(folder).glob("*.jsonl"))
        found = store.add(*files, tags=("example",), note="A museum guide, from demur demo.")
    return {"runs": [_told(one) for one in found]}


def _told(one: Added) -> dict[str, Any]:
    run = one.run
    about = {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n}
    return {**about, "notes": list(run.notes), "warnings": list(run.warnings), "new": one.new}
