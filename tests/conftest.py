"""What all tests share: settings, a Spark cluster, the order in which processes take tests, what was skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded; as the command itself runs

import pytest
from hypothesis import HealthCheck, settings

from commands import apart, demur  # noqa: F401
from engines.cluster import Cluster, connected, disconnected, why_not
from simulated import choice, comparison, eight, evaluations, simulated, tables  # noqa: F401

settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

GROUP = "spark"
ON_CLUSTER = re.compile(rf"[\[-]{GROUP}[\]-]")
WHOLE = ("tests/golden/test_golden.py", "tests/test_docs.py", "tests/outcome/test_real_data.py")
"""Files whose tests share what takes long to make."""
NEEDED = {
    "the Spark tests need": "SPARK WAS NOT TESTED",
    "the browser tests need": "PAGES WERE NOT TESTED",
    "beside the project": "LARGE REAL DATA WERE NOT TESTED",
}
"""What the reason for skipping a test says, and what was not tested then."""


def pytest_configure(config: pytest.Config) -> None:
    """Lets pyspark say what it says about every pandas of today; all other warnings stay errors."""
    config.addinivalue_line("filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="session")
def group() -> str:
    """The name that tests on the cluster have in common."""
    return GROUP


@pytest.fixture(scope="session")
def cluster(group: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers on loopback."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cluster(tmp_path_factory.mktemp(group)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    """A Spark session on the cluster, with an executor on each worker."""
    session = connected(cluster)
    yield session
    disconnected(session)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Writes the group into the id of every test on the cluster, the one thing a scheduler sees of a test."""
    if "group" in metafunc.fixturenames:
        metafunc.parametrize("group", [GROUP], scope="session")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keeps the tests on the cluster in one process, so that there is one cluster, and all cases of a test together.

    The mark `xdist_group` would do, but pytest-xdist 3.8 writes it where pytest 9.2 no longer reads it. Units of work
    stay in the order of the files, as each process makes what a file shares once while it has tests of that file.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneCluster(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return GROUP if ON_CLUSTER.search(nodeid) else unit_of(nodeid)

    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return OneCluster(config, log)


def unit_of(nodeid: str) -> str:
    """What is handed to a process at once: all cases of a test, or a whole file."""
    file, _, test = nodeid.partition("::")
    return file if file.endswith(WHOLE) else f"{file}::{test.partition('[')[0]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts first what keeps a process busy longest, so that both end together, and last what takes a worker away."""
    items.sort(key=lambda item: "worker_to_lose" in getattr(item, "fixturenames", ()))
    items.sort(key=lambda item: not (ON_CLUSTER.search(item.nodeid) or item.nodeid.partition("::")[0].endswith(WHOLE)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says in one line each what was left out, and why."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if isinstance(one.longrepr, tuple)]
    reasons = [one.longrepr[2].removeprefix("Skipped: ") for one in skipped]
    for need, heading in NEEDED.items():
        found = [reason for reason in reasons if need in reason]
        if found:
            why = "; ".join(sorted(set(found)))
            terminalreporter.write_line(f"{heading} (tests skipped: {len(found)}). {why}", yellow=True)
