"""A study served by a process of its own, and people who talk to it over sockets."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from serving import ServedFolder


def _serve(folder: Path, port: int, told: Any) -> None:
    from demur.apps.study.server import serve_study
    from demur.apps.web.server import Address

    serve_study(folder, Address(port=port), announce=told.send)


class Served(ServedFolder):
    """A study served as `demur study serve` does."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Start it."""
        super().__init__(_serve, folder, port, "Everything is kept")

    def join(self) -> str:
        """A new participant: the cookie."""
        token = self.links["Participants"].rpartition("/")[2]
        request = urllib.request.Request(
            f"{self.base}/join", json.dumps({"token": token}).encode(), {"X-Demur": "1"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.headers["set-cookie"]).partition(";")[0]

    def wizard(self, name: str) -> str:
        """A wizard's cookie."""
        token = self.links[f"Wizard {name}"].rpartition("/")[2]
        return f"demur_token_{self.port}_wizard={token}"


class Page:
    """A page of somebody: what it was shown last, and messages that it sends until they are acknowledged."""

    def __init__(self, served: Served, role: str, cookie: str) -> None:
        self.role, self.cookie, self.view = role, cookie, {}
        self.number, self.frames = 0, []
        self.open(served)

    def open(self, served: Served) -> None:
        """Connect, or connect again."""
        address = f"{served.base.replace('http', 'ws')}/ws/{self.role}"
        self._stack = ExitStack()
        headers = {"Cookie": self.cookie}
        opening: Any = connect(address, origin=served.base, additional_headers=headers, compression=None)  # type: ignore[arg-type]
        self.socket: ClientConnection = self._stack.enter_context(opening)
        self.until(lambda: bool(self.view))

    def take(self, timeout: float = 20.0) -> dict[str, Any]:
        """The next frame."""
        frame = json.loads(self.socket.recv(timeout))
        self.frames.append(frame)
        self.view = frame.get("view", self.view)
        return frame

    def until(self, holds: Any, timeout: float = 20.0) -> None:
        """Take frames until something holds."""
        end = time.monotonic() + timeout
        while not holds():
            self.take(max(0.01, end - time.monotonic()))

    def send(self, kind: str, client: str = "", **fields: Any) -> dict[str, Any]:
        """Send a message and wait for its acknowledgement or refusal."""
        self.number += 1
        client = client or f"{self.role}-{os.getpid()}-{id(self)}-{self.number}"
        self.socket.send(json.dumps({"kind": kind, "id": client, **fields}))
        while True:
            frame = self.take()
            if frame.get("ack") == client or "refused" in frame:
                return frame

    def close(self) -> None:
        """Leave."""
        self._stack.close()
