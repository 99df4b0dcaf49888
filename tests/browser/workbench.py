"""A real workbench for the tests that look at its pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen


@dataclass(frozen=True)
class Workbench:
    """A server that runs, and the store behind it."""

    url: str
    folder: Path

    def add(self, name: str, rows: list[dict[str, Any]], **options: Any) -> str:
        """Add a run as another program would, and give its id; rows that are there already stay as they are."""
        path = self.folder / "added.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return self.add_file(path, name=name, **options)

    def add_file(self, path: Path, **options: Any) -> str:
        """Add the run in a file, and give its id."""
        from demur.store.runs import Store

        with closing(Store.open(self.folder / "store")) as store:
            return store.add(path, **options)[0].run.id

    def id_of(self, name: str) -> str:
        """The id of a run."""
        from demur.store.runs import Store

        with closing(Store.open(self.folder / "store")) as store:
            return store.run(name).id

    def prefer(self, **given: int) -> None:
        """Change settings."""
        headers = {"X-Demur": "1", "Content-Type": "application/json"}
        asked = Request(f"{self.url}/api/settings", json.dumps(given).encode(), headers, method="PATCH")
        with urlopen(asked) as answer:
            assert answer.status == 200


COMPLETE = """() => {
  const drawn = (place) => place.nextElementSibling?.className === "saving" || place.textContent;
  const alive = () => document.querySelector(".explorer-alive") && document.querySelector(".answers-table");
  return document.readyState === "complete" && !document.querySelector(".waiting")
    && [...document.querySelectorAll("[data-figure]")].every(drawn)
    && (!document.querySelector("[data-explorer]") || alive());
}"""


def shown(page: Any, link: str) -> None:
    """Open a link and wait until its result is there, its figures are drawn and the answers stand below them."""
    page.goto(link)
    page.wait_for_function(COMPLETE)


@contextmanager
def served(root: Path, *arguments: str) -> Iterator[str]:
    """Serve a store on a free port, and give the link that opens it; without a token unless arguments are given."""
    code = "from demur.apps.cli.main import run; run()"
    command = [sys.executable, "-c", code, "serve", "--store", str(root), "--port", "0", *(arguments or ["--no-token"])]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        said = _heard(server)
        try:
            yield said.get(timeout=60).rstrip("/")
        finally:
            server.send_signal(signal.SIGINT)
            try:
                assert server.wait(timeout=20) == 0
            except subprocess.TimeoutExpired:
                server.kill()
                raise
    faults = said.get(timeout=10)
    assert not faults, faults


def _heard(server: subprocess.Popen[str]) -> Queue[str]:
    """The link that a server tells of, and after its end all else that it said."""
    found: Queue[str] = Queue()

    def hear() -> None:
        rest = []
        for line in server.stderr or ():
            link = next((word for word in line.split() if word.startswith("http://")), None)
            found.put(link) if link else rest.append(line)
        found.put("".join(line for line in rest if not line.startswith(("Runs are kept", "note:"))))

    Thread(target=hear, daemon=True).start()
    return found
