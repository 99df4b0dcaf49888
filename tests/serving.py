"""Servers in processes of their own, as commands start them, with the links that they print."""

from __future__ import annotations

import re
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

FORKS = get_context("forkserver")
"""Servers are forked from a process that has loaded what they need: to load it takes far longer than to serve."""
FORKS.set_forkserver_preload(
    [
        "demur.apps.judge.server",
        "demur.apps.study.server",
        "demur.understanding.jobs",
        "demur.understanding.noise",
        "demur.understanding.relevance",
    ]
)


class ServedFolder:
    """A folder that `serve` serves: it is given the folder, a port, and whom to tell the links, one a line."""

    def __init__(self, serve: Callable[[Path, int, Any], None], folder: Path, port: int, last: str) -> None:
        """Start it, and read links until a line that begins with `last`."""
        self.folder = folder
        heard, told = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=serve, args=(folder, port, told), daemon=True)
        self.process.start()
        told.close()
        self.links: dict[str, str] = {}
        line = ""
        with heard:
            while not line.startswith(last):
                line = heard.recv()
                name, colon, link = line.partition(": http")
                self.links |= {name: f"http{link}"} if colon else {}
        self.base = re.match(r"http://[^/]+", next(iter(self.links.values())))[0]  # type: ignore[index]
        self.port = int(self.base.rpartition(":")[2])

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.join()
        self.process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
