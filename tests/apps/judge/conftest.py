"""A judging and clients of each role, without a server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from demur.apps.judge.server import application
from demur.apps.web.security import LOOPBACK
from demur.judges.session import Judging
from judges.judged import begun


@pytest.fixture
def judging(tmp_path: Path) -> Iterator[Judging]:
    """Answers that anna and ben judge, half of them both."""
    made = begun(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client_for(judging: Judging) -> Callable[[str | None], TestClient]:
    """A client that has opened the link of a role, or none."""
    app = application(judging, hosts=LOOPBACK)

    def client(role: str | None) -> TestClient:
        made = TestClient(app, base_url="http://127.0.0.1:8379", headers={"X-Demur": "1"})
        if role is not None:
            assert made.get(f"/?token={judging.token(role)}").status_code == 200
        return made

    return client
