"""The workbench without its process and its server, which take longest to start."""

from typing import Any

from starlette.testclient import TestClient

from demur.apps.web.security import LOOPBACK
from demur.apps.web.server import application
from demur.apps.web.site import Site
from demur.apps.web.worker import Worker, WorkerJob, ending_of_work, perform_task


class InsideWorker(Worker):
    """A worker that does its jobs in its thread."""

    def _perform(self, job: WorkerJob, lane: Any) -> None:
        def step(what: str, done: int, total: int) -> None:
            job.what, job.done, job.total = what, done, total

        kind, told, _ = ending_of_work(lambda: perform_task(job.task, job.given, job.signature, self._root, step))
        with self._changed:
            self._finish(job, kind, told)


def client_of(site: Site, **options: Any) -> TestClient:
    """A client that asks as the pages themselves do; `hosts` and `token` are the server's."""
    about = {"hosts": LOOPBACK, **{name: options.pop(name) for name in ("hosts", "token") if name in options}}
    headers = {"X-Demur": "1", "Accept": "text/html,*/*", **options.pop("headers", {})}
    return TestClient(application(site, **about), base_url="http://localhost", headers=headers, **options)
