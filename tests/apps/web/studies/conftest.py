"""A store that the tests of one page share, so that nothing is fitted and drawn twice."""

from contextlib import closing

import pytest

from apps.web.inside import InsideWorker, client_of
from demur.apps.web.site import Site
from demur.store.runs import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store that the tests share, so that nothing is fitted and drawn twice."""
    with closing(Store.open(tmp_path_factory.mktemp("studies") / "store")) as made:
        yield made


@pytest.fixture(scope="module")
def site(store):
    made = Site(store, InsideWorker(store.root))
    made.change_preferences({"replicates": 50})
    yield made
    made.worker.close()


@pytest.fixture(scope="module")
def client(site):
    return client_of(site)


@pytest.fixture
def empty(tmp_path):
    """A client of a store without runs, and the store."""
    with closing(Store.open(tmp_path / "empty")) as made:
        site = Site(made, InsideWorker(made.root))
        yield client_of(site), made
        site.worker.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")
