"""What all tests share: settings, a Spark cluster, the order in which processes take tests, what was skipped."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded; as the command itself runs
os.environ.setdefault("POLARS_MAX_THREADS", "1")  # tables of tests are small: to share them out takes longer
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling again is half the time of a process that tests start
sys.dont_write_bytecode = False

import pytest
from hypothesis import HealthCheck, settings

from commands import apart, demur  # noqa: F401
from engines.cluster import Cluster, connected, why_not
from simulated import choice, comparison, eight, evaluations, simulated, tables  # noqa: F401

gc.disable()  # what collecting the tests makes is kept: to look for garbage in it takes a quarter of the time

settings.register_profile("quick", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

GROUP = "spark"
ON_CLUSTER = re.compile(rf"[\[-]{GROUP}[\]-]")
BROWSER = "tests/browser/"
LONGEST = (GROUP, BROWSER, "tests/golden/", "tests/test_docs.py", "tests/apps/test_jobs.py", "tests/test_house.py")
"""What is handed out first, so that all processes end at about the same time."""
NEEDED = {
    "the Spark tests need": "SPARK WAS NOT TESTED",
    "the browser tests need": "PAGES WERE NOT TESTED",
    "beside the project": "LARGE REAL DATA WERE NOT TESTED",
}
"""What the reason for skipping a test says, and what was not tested then."""


def pytest_configure(config: pytest.Config) -> None:
    """Lets pyspark say what it says about every pandas of today; all other warnings stay errors."""
    config.addinivalue_line("filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """Lets the tests of a file draw charts as users do, not held against the schema part by part."""
    from demur.core.show.charts import unchecked

    with unchecked():
        yield


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
    session.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Writes the group into the id of every test on the cluster, the one thing a scheduler sees of a test."""
    if "group" in metafunc.fixturenames:
        metafunc.parametrize("group", [GROUP], scope="session")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Starts one process more than there are cores: one that waits for a browser or a cluster leaves its core idle."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands out whole files, so that what the tests of a file share is made once.

    Tests on the cluster are in one process, so that there is one cluster, as are those of pages with their browser and
    their server. The mark `xdist_group` would do, but pytest-xdist 3.8 writes it where pytest 9.2 no longer reads it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class WholeFiles(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return WholeFiles(config, log)


def unit_of(nodeid: str) -> str:
    """What is handed to a process at once: all tests on the cluster, all in the browser, or a file."""
    if ON_CLUSTER.search(nodeid):
        return GROUP
    return BROWSER if nodeid.startswith(BROWSER) else nodeid.partition("::")[0]


def rank_of(nodeid: str) -> int:
    """Which test comes first: those that take longest in all, then tests on large real data, then the others."""
    unit = unit_of(nodeid)
    long = [place for place, start in enumerate(LONGEST) if unit.startswith(start)]
    return long[0] if long else len(LONGEST) + ("real_data" not in unit)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts first what takes longest, and last on the cluster what takes a worker of it away."""
    items.sort(key=lambda item: (rank_of(item.nodeid), "worker_to_lose" in getattr(item, "fixturenames", ())))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Has one process compile the tests of a new clone, while the others wait instead of doing the same."""
    compiled = any(session.config.rootpath.glob("tests/__pycache__/test_*.pyc"))
    if compiled or not hasattr(session.config, "workerinput") or sys.platform == "win32":
        return (yield)
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

    with (session.config.rootpath / "tests" / "conftest.py").open() as shared:
        try:
            flock(shared, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            flock(shared, LOCK_SH)
        return (yield)


def pytest_collection_finish() -> None:
    """Has the garbage collector look at what tests make, and not at all the tests and modules there are."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Gives back what was kept from the garbage collector, so that libraries are unloaded in order."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says in one line each what was left out, and why."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if isinstance(one.longrepr, tuple)]
    reasons = [one.longrepr[2].removeprefix("Skipped: ") for one in skipped]
    for need, heading in NEEDED.items():
        found = [reason for reason in reasons if need in reason]
        if found:
            why = "; ".join(sorted(set(found)))
            terminalreporter.write_line(f"{heading} (tests skipped: {len(found)}). {why}", yellow=True)
