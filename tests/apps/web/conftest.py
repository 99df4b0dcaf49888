"""A store, a site over it and a client that asks it, without a server and, unless said otherwise, without a process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from apps.web.inside import InsideWorker, client_of
from apps.web.logs import MARKUP, log
from demur.apps.web.site import Site
from demur.store.runs import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    made = Store.open(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def runs(store: Store, tmp_path: Path) -> list[Any]:
    """Two runs of answers to the same inputs, markup in the name of the second."""
    first = store.add(log(tmp_path / "alpha.jsonl", seed=1), tags=("baseline",), note=MARKUP)
    second = store.add(log(tmp_path / "beta.jsonl", seed=2, skill=1.0), name=f"beta {MARKUP}", tags=(MARKUP,))
    return [first[0].run, second[0].run]


@pytest.fixture
def site(store: Store) -> Iterator[Site]:
    """A site whose work is done in this process."""
    made = Site(store, InsideWorker(store.root))
    yield made
    made.worker.close()


@pytest.fixture
def client(site: Site) -> TestClient:
    """A client on this machine that may change things."""
    return client_of(site)


@pytest.fixture
def client_for() -> Callable[..., TestClient]:
    """Makes a client for a site with other options."""
    return client_of


@pytest.fixture
def sent(client: TestClient, site: Site) -> Callable[..., Any]:
    """Sends a body as a file of a name, and gives the job once it has ended."""

    def send(body: bytes, file: str = "run.jsonl", **query: Any) -> Any:
        answer = client.post("/api/uploads", content=body, params={"file": file, **query})
        assert answer.status_code == 202, answer.text
        job = site.worker.job(answer.json()["job"]["number"])
        assert job is not None
        assert job.ended.wait(30)
        return job

    return send
