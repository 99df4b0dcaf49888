"""A store of two runs, a site over it and a client that the tests of one page share: nothing is measured twice."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from apps.web.inside import InsideWorker, client_of
from apps.web.logs import MARKUP, log
from demur.apps.web.site import Site
from demur.store.runs import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("shared") / "store") as made:
        yield made


@pytest.fixture(scope="module")
def runs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Two runs of answers to the same inputs, markup in the name of the second."""
    folder = tmp_path_factory.mktemp("logs")
    first = store.add(log(folder / "alpha.jsonl", seed=1), tags=("baseline",), note=MARKUP)
    second = store.add(log(folder / "beta.jsonl", seed=2, skill=1.0), name=f"beta {MARKUP}", tags=(MARKUP,))
    return [first[0].run, second[0].run]


@pytest.fixture(scope="module")
def site(store: Store) -> Iterator[Site]:
    """A site whose work is done in this process, with few replicates."""
    made = Site(store, InsideWorker(store.root))
    made.change_preferences({"replicates": 50})
    yield made
    made.worker.close()


@pytest.fixture(scope="module")
def client(site: Site) -> TestClient:
    return client_of(site)
