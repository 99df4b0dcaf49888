"""Examples that come with the package, to be added where a page has nothing to show yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from demur.apps.web.pages.page import Action
from demur.apps.web.pages.uploading import added_values
from demur.apps.web.site import Query, Site
from demur.core.io.columns import nearest
from demur.core.show.results import Step
from demur.errors import UsageError
from demur.store.runs import Store

TAG = "example"


@dataclass(frozen=True, slots=True)
class BundledExample:
    """Runs that come with the package, and the page that they are for."""

    label: str
    files: Callable[[Path], list[tuple[Path, str, dict[str, Any]]]]
    """Files with the name of their run and how to read them; those that must be made first go into the folder."""
    page: Callable[[list[str]], str]
    """Where to go, given the ids of the runs."""


def _restaurant(_: Path) -> list[tuple[Path, str, dict[str, Any]]]:
    from demur.lab.corpora import restaurant_folder

    return [(restaurant_folder() / "turns.jsonl.gz", "restaurant guide", {})]


def _wizards(_: Path) -> list[tuple[Path, str, dict[str, Any]]]:
    from demur.lab.corpora import wizards

    axes = {"x": "wer", "y": "completed"}
    place = wizards().folder
    return [(place / "trials.csv", "wizards", axes), (place / "lesions.csv", "wizards, lesions", axes)]


def _tutor(folder: Path) -> list[tuple[Path, str, dict[str, Any]]]:
    from demur.lab import tutor

    turns, dialogues = tutor.study()
    tables = {"tutor": turns, "tutor gains": dialogues, "tutor, cautious": tutor.answers(turns, "cautious")}
    return [
        (_write_rows(folder / f"{place}.jsonl", rows), name, {}) for place, (name, rows) in enumerate(tables.items())
    ]


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


EXAMPLES = {
    "restaurant": BundledExample(
        "a simulated trial of a restaurant guide", _restaurant, lambda ids: f"/nbest/{ids[0]}"
    ),
    "wizards": BundledExample("a simulated Wizard-of-Oz study", _wizards, lambda ids: f"/gold/{ids[0]}"),
    "tutor": BundledExample(
        "a simulated study of a tutor", _tutor, lambda ids: f"/outcome?turns={ids[0]}&dialogues={ids[1]}&with={ids[2]}"
    ),
}


def add(site: Site, query: Query, _: dict[str, Any]) -> dict[str, Any]:
    """Add the runs of an example; those that are there already stay."""
    from demur.store.intake import RunReading

    name = query.path["name"]
    if name not in EXAMPLES:
        raise UsageError(f'there is no example "{name}"; {nearest(name, EXAMPLES)}')
    chosen = EXAMPLES[name]
    with TemporaryDirectory(prefix="demur-") as folder:
        added = [
            site.store.add(path, name=_free(site, called), tags=(TAG,), reading=RunReading(**axes))[0]
            for path, called, axes in chosen.files(Path(folder))
        ]
    ids = [one.run.id for one in added]
    return {"runs": ids, "page": chosen.page(ids)}


def _free(site: Site, name: str) -> str:
    """The name, with a number where another run has it."""
    taken = {run.name for run in site.store.runs()}
    names = (name, *(f"{name} ({number})" for number in range(2, len(taken) + 3)))
    return next(one for one in names if one not in taken)


def add_demo(site: Site, query: Query, body: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Have the worker train the models of the demo and add their logs."""
    job = site.worker.start(f"{__name__}:demo", {}, about="Adding the logs of the demo")
    return {"job": job.to_dict()}


def demo(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:  # noqa: ARG001
    """Add the logs of the demo: three models of a museum guide, on questions as asked and as they were misheard."""
    from demur.lab.corpora import museum
    from demur.lab.demo import answer_museum, write_logs

    step("training three small models", 0, 2)
    table = answer_museum(museum())
    step("adding their logs", 1, 2)
    with TemporaryDirectory(prefix="demur-") as folder:
        write_logs(table, Path(folder))
        files = sorted(Path(folder).glob("*.jsonl"))
        found = store.add(*files, tags=("example",), note="A museum guide, from demur demo.")
    return {"runs": [added_values(one) for one in found]}


ACTIONS: tuple[Action, ...] = (
    Action("/api/examples/{name}", "POST", add, status=201),
    Action("/api/demo", "POST", add_demo, status=202),
)
