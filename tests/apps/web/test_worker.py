"""The worker with a real process: what it says, and what becomes of it when things break off."""

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from apps.web import chores
from apps.web.waiting import until
from demur.apps.web import worker as worker_module
from demur.apps.web.worker import JOBS_KEPT, Limits, Worker

LONG = 30


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Has processes forked from one that has loaded the package, and gives the way in which servers start them.

    That way is tried where a process is cancelled or closed while it starts, where a server is killed, and by
    `demur serve`.
    """
    forking, start = multiprocessing.get_context("forkserver"), multiprocessing.get_context
    forking.set_forkserver_preload(["demur.apps.web.worker"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_module.multiprocessing, "get_context", lambda _: forking)
        yield start


@pytest.fixture
def slowly_started(forked, monkeypatch):
    """Has processes start as those of a server do, which takes a while."""
    monkeypatch.setattr(worker_module.multiprocessing, "get_context", forked)


@pytest.fixture
def worker(tmp_path):
    """A worker that does the chores of the tests."""
    made = Worker(tmp_path, chores.perform_task)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A worker whose process outlives the tests that share it."""
    made = Worker(tmp_path_factory.mktemp("shared"), chores.perform_task)
    yield made
    made.close()


def ended(job):
    assert job.ended.wait(LONG), job.state
    return job


def begun(job):
    """The number of the process that has begun an endless job."""
    until(lambda: job.what or job.ended.is_set())
    return int(job.what.split()[-1])


def alive(process):
    with suppress(ProcessLookupError, FileNotFoundError):  # gone before it is asked, or before it is read
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_jobs_are_done_one_after_the_other_in_one_process(shared):
    first, second = (shared.start("echo", {"x": x}, signature=str(x)) for x in (1, 2))
    assert ended(second).answer == {**ended(first).answer, "x": 2, "signature": "2"}
    assert first.answer["root"] == str(shared._root)
    assert first.answer["process"] != os.getpid()
    assert shared.jobs()[:2] == [second, first]
    assert second.number == first.number + 1


def test_a_refusal_is_told_apart_from_a_fault_of_ours(shared):
    refused, broken, panicked = (shared.start(task, {}) for task in ("refuse", "break", "panic"))
    assert (ended(refused).message, refused.internal) == ("log.jsonl:1: must be odd; got 2", False)
    assert ended(broken).internal
    assert "internal error: ValueError: oops (chores.py:" in broken.message
    assert "internal error: PanicException: capacity overflow" in ended(panicked).message
    assert [job.state for job in (refused, broken, panicked)] == ["failed"] * 3


@pytest.fixture
def bound(tmp_path):
    """A worker whose jobs may take 300 MB and a second of processor time."""
    made = Worker(tmp_path, chores.perform_task, limits=Limits(memory=300 * 1024**2, processor=1))
    yield made
    made.close()


CAN_LIMIT = pytest.mark.skipif(sys.platform != "linux", reason="only Linux is known to hold to these limits")


@CAN_LIMIT
@pytest.mark.parametrize("task", ["fill", "fill natively"])
def test_a_job_that_needs_more_memory_than_one_may_take_says_so_and_the_next_is_done(bound, task):
    job = ended(bound.start(task, {"bytes": 2 * 1024**3}))
    assert job.message.startswith("this needs more than the 300 MB of memory that one job may take; use the command")
    assert "--max-memory" in job.message
    assert (job.state, job.internal) == ("failed", False)
    assert ended(bound.start("fill", {"bytes": 1024**2})).state == "done"


@CAN_LIMIT
def test_a_job_that_needs_more_processor_time_than_one_may_take_says_so(bound):
    job = ended(bound.start("work", {}))
    assert "minutes of processor time or 30 minutes in all that one job may take" in job.message
    assert "--max-minutes" in job.message
    assert not job.internal


@CAN_LIMIT
def test_the_time_of_one_job_does_not_count_for_the_next(tmp_path):
    with closing(Worker(tmp_path, chores.perform_task, limits=Limits(processor=20))) as worker:
        first, second = (ended(worker.start("spend", {})).answer for _ in range(2))
    assert first["process"] == second["process"]
    assert min(first["left"], second["left"]) > 19.5


def test_a_job_that_does_not_end_is_ended_whatever_it_waits_for(tmp_path):
    with closing(Worker(tmp_path, chores.perform_task, limits=Limits(wall=3))) as worker:
        job = worker.start("endless", {})
        process = begun(job)
        assert ended(job).message.startswith("this takes more than the 10 minutes of processor time or 0.05 minutes")
        until(lambda: not alive(process))


def test_one_heavy_job_does_not_hold_up_others(worker):
    heavy = worker.start("endless", {}, heavy=True)
    process = begun(heavy)
    light = ended(worker.start("echo", {}))
    assert (light.state, heavy.state) == ("done", "running")
    assert light.answer["process"] != process


def test_heavy_jobs_leave_a_process_to_others(worker, monkeypatch):
    monkeypatch.setattr(worker_module, "HELP_AFTER", 0.05)
    first, second = worker.start("endless", {}, heavy=True), worker.start("echo", {}, heavy=True)
    begun(first)
    assert ended(worker.start("echo", {})).state == "done"
    assert second.state == "waiting"
    worker.cancel(first.number)
    assert ended(second).state == "done"


def test_a_process_that_helped_is_ended_when_it_has_nothing_to_do(worker, monkeypatch):
    monkeypatch.setattr(worker_module, "IDLE", 0.1)
    holding = worker.start("endless", {})
    begun(holding)
    process = ended(worker.start("echo", {})).answer["process"]
    until(lambda: not alive(process))
    assert holding.state == "running"


def test_two_who_ask_for_the_same_result_share_one_job(worker):
    holding = worker.start("endless", {})
    one, two, other = (worker.start("echo", {}, signature=signature) for signature in ("same", "same", "other"))
    assert one is two
    assert other is not one
    worker.cancel(holding.number)
    ended(other)
    assert worker.start("echo", {}, signature="same") is not one


def test_a_failure_is_remembered_until_it_is_forgotten(shared):
    job = ended(shared.start("refuse", {}, signature="s"))
    assert shared.start("refuse", {}, signature="s") is job
    shared.forget(job.number)
    assert shared.start("refuse", {}, signature="s") is not job


def test_to_cancel_a_job_under_way_is_to_end_its_process(worker):
    job = worker.start("endless", {})
    process = begun(job)
    after = worker.start("echo", {})
    assert worker.cancel(job.number).state == "cancelled"
    assert ended(after).state == "done"
    assert after.answer["process"] != process
    assert not alive(process)


@pytest.mark.usefixtures("slowly_started")
def test_a_job_cancelled_while_its_process_starts_is_not_done_and_spoils_no_other(worker):
    """The process takes a while to start, so that these are cancelled in all stages of it."""
    for _ in range(5):
        job = worker.start("echo", {"of": "the cancelled"})
        worker.cancel(job.number)
        assert job.state == "cancelled"
    assert ended(worker.start("echo", {"of": "mine"})).answer["of"] == "mine"


def test_a_job_that_waits_is_cancelled_without_ending_the_one_under_way(worker):
    holding = worker.start("endless", {})
    process = begun(holding)
    waiting = worker.start("echo", {})
    assert worker.cancel(waiting.number).state == "cancelled"
    assert holding.state == "running"
    assert alive(process)


def test_to_cancel_what_has_ended_or_never_was_changes_nothing(shared):
    job = ended(shared.start("echo", {}))
    assert shared.cancel(job.number).state == "done"
    assert shared.cancel(99) is None
    assert shared.forget(99) is None
    assert shared.job(99) is None


def test_a_process_that_dies_fails_its_job_and_the_next_gets_another(worker):
    dead = worker.start("die", {})
    after = worker.start("echo", {})
    assert "ended unexpectedly" in ended(dead).message
    assert ended(after).state == "done"


def test_a_process_that_dies_while_it_is_idle_harms_no_job(worker):
    first = ended(worker.start("echo", {}))
    os.kill(first.answer["process"], signal.SIGKILL)
    assert ended(worker.start("echo", {})).state == "done"


def test_a_process_that_took_much_memory_is_replaced(worker):
    first = ended(worker.start("grow", {}))
    second = ended(worker.start("echo", {}))
    assert second.answer["process"] != first.answer["process"]


def test_what_is_to_follow_a_job_follows_however_it_ends(worker):
    told = []
    after = {name: (lambda name=name: told.append(name)) for name in ("echo", "refuse", "die", "endless", "waiting")}
    for task in ("echo", "refuse", "die"):
        ended(worker.start(task, {}, after=after[task]))
    endless = worker.start("endless", {}, after=after["endless"])
    begun(endless)
    worker.start("echo", {}, after=after["waiting"])
    worker.close()
    assert told == ["echo", "refuse", "die", "endless", "waiting"]


def test_to_close_ends_all_that_is_under_way_and_all_that_waits(worker):
    running, waiting = worker.start("endless", {}), worker.start("echo", {})
    process = begun(running)
    worker.close()
    worker.close()
    assert [running.state, waiting.state] == ["cancelled", "cancelled"]
    assert running.ended.is_set()
    assert waiting.ended.is_set()
    until(lambda: not alive(process))
    late = worker.start("echo", {})
    assert (late.state, late.ended.is_set()) == ("cancelled", True)


@pytest.mark.usefixtures("slowly_started")
def test_to_close_while_the_process_starts_leaves_none_behind(tmp_path):
    worker = Worker(tmp_path, chores.perform_task)
    job = worker.start("endless", {})
    worker.close()
    assert job.state == "cancelled"
    assert not any(lane.thread.is_alive() or lane.process for lane in worker._lanes)


def test_a_warm_worker_starts_its_process_ahead_of_need_and_anew_after_a_cancelled_job(worker):
    worker.warm()
    first = worker._lanes[0]
    until(lambda: first.process is not None)
    process = first.process.pid
    assert ended(worker.start("echo", {})).answer["process"] == process
    job = worker.start("endless", {})
    begun(job)
    worker.cancel(job.number)
    until(lambda: first.process is not None and first.process.pid != process)


def test_old_jobs_are_forgotten_and_those_under_way_are_not(worker):
    holding = worker.start("endless", {})
    for _ in range(JOBS_KEPT + 50):
        worker.cancel(worker.start("echo", {}).number)
    worker.start("echo", {})
    assert len(worker.jobs()) <= JOBS_KEPT + 3
    assert worker.job(holding.number) is holding


def test_many_may_ask_and_cancel_at_once(worker):
    def asking(start):
        for k in range(20):
            job = worker.start("echo", {}, signature=f"{start + k % 3}")
            if k % 2:
                worker.cancel(job.number)
            worker.jobs()

    threads = [Thread(target=asking, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert ended(worker.start("echo", {"of": "last"})).answer["of"] == "last"
    assert all(ended(job).state in ("done", "cancelled") for job in worker.jobs())


def test_the_process_ends_with_a_server_that_is_killed(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from apps.web import chores\n"
        "from demur.apps.web.worker import Worker\n"
        "if __name__ == '__main__':\n"
        "    job = Worker(Path('.'), chores.perform_task).start('endless', {})\n"
        "    while not job.what: time.sleep(0.01)\n"
        "    print(job.what.split()[-1], flush=True); time.sleep(60)\n"
    )
    script = tmp_path / "server.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as server:
        process = int(server.stdout.readline())
        assert alive(process)
        server.kill()
    until(lambda: not alive(process))


LARGE = """
import subprocess, sys
held = bytearray(300 * 1024**2)
held[::4096] = b"x" * len(held[::4096])
print(subprocess.check_output([sys.executable, "-c", sys.argv[1]], text=True))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system tells of the process alone")
def test_a_process_does_not_count_the_memory_of_the_one_that_started_it():
    asked = "from demur.apps.web.worker import most_taken; print(most_taken())"
    told = subprocess.run([sys.executable, "-c", LARGE, asked], capture_output=True, text=True, check=True).stdout
    assert 0 < int(told) < 250 * 1024**2
