"""Long work in processes of its own, each within limits: pages stay quick, and to cancel is to end a process."""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import math
import multiprocessing
import os
import re
import signal
import sys
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any, Literal

from demur.core.jobs import load
from demur.core.show.results import Step, plain, silent
from demur.errors import DemurError
from demur.store.runs import Store

Perform = Callable[[str, dict[str, Any], str | None, Path, Step], dict[str, Any] | None]
"""Does a task by its name: with what is given, the signature to keep the result under, the store, and whom to tell."""

MOST_MEMORY = 600 * 1024**2
"""Bytes that the process may have taken at its height before the next job gets a new one."""

KILLED_FIRST = "1000"
"""On Linux: should memory run out, the kernel ends this process and not the server or the browser."""


ELSEWHERE = "use the command line, which has no such limit, or start demur serve with a larger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one job may take before it is ended; memory and processor time are limited where the system can do so."""

    memory: int = 4 * 1024**3
    """Bytes that its process may take."""
    processor: int = 600
    """Seconds that processors may work on it."""
    wall: float = 1800.0
    """Seconds until it must have ended."""

    def apply(self) -> None:
        """Bind this process: its memory for good, its processor time until this is called again.

        Linux counts what can be written to. Elsewhere the address space counts; on Linux it would be too coarse, as
        threads reserve much of it that they never touch.
        """
        try:
            import resource
        except ModuleNotFoundError:
            return
        kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        used = resource.getrusage(resource.RUSAGE_SELF)
        allowed = {kind: self.memory, resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + 1 + self.processor}
        for limit, value in {**allowed, resource.RLIMIT_CORE: 0}.items():
            most = resource.getrlimit(limit)[1]
            with suppress(OSError, ValueError):
                resource.setrlimit(limit, (value if most < 0 else min(value, most), most))

    def too_large(self) -> str:
        """What is said of a job that needs more memory."""
        megabytes = self.memory // 1024**2
        return f"this needs more than the {megabytes:,} MB of memory that one job may take; {ELSEWHERE} --max-memory"

    def too_long(self) -> str:
        """What is said of a job that takes more time."""
        longest = f"{self.processor / 60:g} minutes of processor time or {self.wall / 60:g} minutes in all"
        return f"this takes more than the {longest} that one job may take; {ELSEWHERE} --max-minutes"

    def reason_of(self, exit_code: int | None) -> str | None:
        """Why a process has ended, if it was for a limit; native code that gets no memory aborts."""
        if exit_code is not None and -exit_code == getattr(signal, "SIGXCPU", None):
            return self.too_long()
        return f"{self.too_large()} (its process was aborted)" if exit_code == -signal.SIGABRT else None


UNLESS_TOLD = Limits()


def work_loop(pipe: Connection, root: str, warm: bool, perform: Perform, limits: Limits) -> None:
    """Take a task, tell of its steps, keep its result, say that it is done; again and again."""
    limits.apply()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # native code that gets no memory prints pages of what it was at
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server, and the server ends this process
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST, encoding="ascii")
    Thread(target=_leave_with_the_server, daemon=True).start()

    def step(what: str, done: int, total: int) -> None:
        pipe.send(("step", what, done, total))

    with suppress(EOFError, OSError):
        if warm and not pipe.poll():
            with suppress(Exception):  # what does not load will say so when it is needed
                perform(WARM, {}, None, Path(root), silent)
        while True:
            task, given, signature = pipe.recv()
            limits.apply()
            pipe.send(("begun",))
            pipe.send(ending_of_work(lambda: perform(task, given, signature, Path(root), step)))  # noqa: B023
            give_back()


def ending_of_work(work: Callable[[], dict[str, Any] | None]) -> tuple[str, Any, bool]:
    """How work ended: `done` with its answer, `failed` by its input, for want of `memory`, or by a `fault` of demur.

    The last value is whether the process has grown large.
    """
    try:
        return ("done", work(), most_taken() > MOST_MEMORY)
    except DemurError as refusal:
        return ("failed", str(refusal), most_taken() > MOST_MEMORY)
    except MemoryError:
        return ("memory", None, True)
    except BaseException as fault:  # Polars panics with what is no Exception
        where = traceback.extract_tb(fault.__traceback__)[-1]
        about = f"{type(fault).__name__}: {fault} ({Path(where.filename).name}:{where.lineno})"
        message = f"internal error: {about}. This is a fault of demur; please report it."
        return ("fault", message, most_taken() > MOST_MEMORY)


def most_taken() -> int:
    """Bytes of memory that this process had at its height; 0 where no one counts them.

    Linux is asked for the process alone: what `getrusage` tells there begins with the height of the process that
    started this one, so that under a large server every process would be taken for a large one.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if match := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            return 1024 * int(match[1])
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def give_back() -> None:
    """Give back memory that is free again, which the C library of Linux else keeps for the next job."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such library, or no such function
        ctypes.CDLL(None).malloc_trim(0)


def _leave_with_the_server() -> None:
    """End this process when the server ends, however that did, in the middle of work too."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(1)


Task = Callable[[Store, dict[str, Any], Step], dict[str, Any] | None]

WARM = "demur.apps.web.pages.compare:warm"
"""What the process does before its first job."""


def perform_task(
    task: str, given: dict[str, Any], signature: str | None, root: Path, step: Step
) -> dict[str, Any] | None:
    """Do a task, named by "module:function" of a page.

    A result with a signature goes to the cache; one without, or that cannot be kept, is the answer.
    """
    function: Task = load(task)
    with closing(Store.open(root)) as store:
        result = function(store, given, step)
        if signature is None or result is None:
            return result
        document = plain(result)
        kept = store.keep(signature, json.dumps(document, separators=(",", ":"), allow_nan=False).encode())
        return None if kept else document


State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")

LANES = 2
"""Processes that do jobs; only one of them at a time reads what was uploaded."""

HELP_AFTER = 1.0
"""Seconds that the first process may be at a job before another takes the next."""

IDLE = 60.0
"""Seconds after which a process that helps is ended if it has nothing to do."""

JOBS_KEPT = 200
"""Jobs that are remembered after they ended."""

RESULTS_HELD = 8
"""Results held in memory because the store could not keep them: its disk is full, or it can only be read."""

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
"""What the process finds around it: matrices here are so small that a second thread mostly waits, and busily."""

DIED = "the process that did this work ended unexpectedly; it may have run out of memory"
CANCELLED = "this was cancelled"
CLOSING = "the workbench was ended"


@dataclass(slots=True, eq=False)
class WorkerJob:
    """One piece of long work, and how far it is."""

    number: int
    task: str
    given: dict[str, Any]
    signature: str | None
    about: str
    heavy: bool = False
    """Whether it is of the kind of which one is done at a time."""
    state: State = "waiting"
    begun_at: float = math.inf
    """When the process said that it is at it."""
    what: str = ""
    done: int = 0
    total: int = 0
    message: str = ""
    internal: bool = False
    """Whether it failed by a fault of demur, not of what was given."""
    answer: dict[str, Any] | None = None
    after: Callable[[], None] | None = None
    """Called once the job has ended, however it did."""
    ended: Event = field(default_factory=Event)

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values."""
        names = ("number", "task", "about", "state", "what", "done", "total", "message", "internal")
        answer = self.answer if self.signature is None else None  # a result is shown by its page
        values = {name: getattr(self, name) for name in names}
        return {**values, "task": self.task.rpartition(":")[2], "answer": answer}


@dataclass(slots=True, eq=False)
class _Lane:
    """A process, the pipe to it, the thread that hands jobs to it, and the job that it has."""

    number: int
    process: Any = None
    pipe: Connection | None = None
    current: WorkerJob | None = None
    thread: Thread | None = None

    def stop(self) -> int | None:
        """End the process, and give its exit code: its own, where it has ended by itself."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.join()
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None
        self.current = None
        return None if process is None else process.exitcode


class Worker:
    """Does one job after another in a process that is started when it is first needed; others help when it is busy.

    A thread hands the jobs to each process and hears of them. The state of jobs changes only under the lock, and a
    process is started and reaped only by its thread: whoever cancels a job marks it as ended and kills the process,
    and the thread, finding it so, takes a new process for the next.
    """

    def __init__(self, root: Path, perform: Perform = perform_task, *, limits: Limits = Limits()) -> None:
        self._root, self._perform_task, self._limits = root, perform, limits
        self._numbers = itertools.count(1)
        self._jobs: OrderedDict[int, WorkerJob] = OrderedDict()
        self._queue: deque[WorkerJob] = deque()
        self._changed = Condition()
        self._closed = False
        self._warm = False
        self._lanes = [_Lane(number) for number in range(LANES)]
        for lane in self._lanes:
            lane.thread = Thread(target=self._serve, args=(lane,), name=f"demur-worker-{lane.number}", daemon=True)
            lane.thread.start()

    def start(
        self,
        task: str,
        given: dict[str, Any],
        *,
        signature: str | None = None,
        about: str = "",
        heavy: bool = False,
        after: Callable[[], None] | None = None,
    ) -> WorkerJob:
        """A new job, or the one that makes the same result, or has failed to: `forget` lets that be tried again."""
        with self._changed:
            if signature is not None and (known := self._same_job(signature)) is not None:
                return known
            job = WorkerJob(next(self._numbers), task, given, signature, about, heavy, after=after)
            self._jobs[job.number] = job
            if self._closed:
                self._end(job, "cancelled", CLOSING)
                return job
            self._queue.append(job)
            for old in [number for number, one in self._jobs.items() if one.state in ENDED][:-JOBS_KEPT]:
                del self._jobs[old]
            self._changed.notify_all()
            return job

    def job(self, number: int) -> WorkerJob | None:
        """The job of a number, if it is remembered."""
        with self._changed:
            return self._jobs.get(number)

    def jobs(self) -> list[WorkerJob]:
        """All jobs that are remembered, the newest first."""
        with self._changed:
            return list(reversed(self._jobs.values()))

    def cancel(self, number: int) -> WorkerJob | None:
        """End a job: one that waits is dropped, the one under way ends with its process."""
        with self._changed:
            job = self._jobs.get(number)
            if job is None or job.state in ENDED:
                return job
            if job.state == "waiting":
                self._queue.remove(job)
            self._end(job, "cancelled", CANCELLED)
            self._kill(job)
            return job

    def forget(self, number: int) -> WorkerJob | None:
        """Let a job that has ended be tried again when its result is next asked for."""
        with self._changed:
            job = self._jobs.get(number)
            if job is not None and job.state in ENDED:
                job.answer = job.answer if job.signature is None else None
                job.signature = None
            return job

    def unsaved_result(self, signature: str) -> dict[str, Any] | None:
        """A result that was made but that the store could not keep, if it is one of the last."""
        with self._changed:
            same = (job for job in reversed(self._jobs.values()) if job.signature == signature)
            return next((job.answer for job in same if job.answer is not None), None)

    def warm(self) -> None:
        """Start the process, so that the first job need not wait for it; it is replaced ahead of need from now on."""
        with self._changed:
            self._warm = True
            self._changed.notify_all()

    def close(self) -> None:
        """End the process, the thread, and all that waits."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            for job in self._jobs.values():
                if job.state not in ENDED:
                    self._end(job, "cancelled", CLOSING)
                    self._kill(job)
            self._changed.notify_all()
        for lane in self._lanes:
            if lane.thread is not None:
                lane.thread.join(timeout=10)

    def _same_job(self, signature: str) -> WorkerJob | None:
        same = (job for job in reversed(self._jobs.values()) if job.signature == signature)
        return next((job for job in same if job.state in ("waiting", "running", "failed")), None)

    def _serve(self, lane: _Lane) -> None:
        while (job := self._next(lane)) is not None:
            self._perform(job, lane)
        lane.stop()

    def _next(self, lane: _Lane) -> WorkerJob | None:
        """The next job for a process, waited for; nothing when the worker is closed."""
        with self._changed:
            self._changed.notify_all()  # what was not to be done beside the last job may be done now
            while not self._closed:
                job, wait = self._suited(lane)
                if job is not None:
                    self._queue.remove(job)
                    job.state = "running"
                    return job
                if lane.number == 0 and self._warm and lane.process is None:
                    with suppress(OSError):  # a job that comes will say what is wrong
                        self._connect(lane)
                if not self._changed.wait(wait) and lane.number and not self._queue:
                    lane.stop()
            return None

    def _suited(self, lane: _Lane) -> tuple[WorkerJob | None, float | None]:
        """The job that a process may begin now, if there is one; else how long to wait for one."""
        running = [one for one in self._jobs.values() if one.state == "running"]
        busy = any(one.heavy for one in running)
        waiting = [job for job in self._queue if not (busy and job.heavy)]
        if lane.number == 0:
            return (waiting[0] if waiting else None), None
        if not waiting:
            return None, IDLE
        left = max((one.begun_at for one in running), default=math.inf) + HELP_AFTER - monotonic()
        return (waiting[0], None) if left <= 0 else (None, min(left, HELP_AFTER))

    def _perform(self, job: WorkerJob, lane: _Lane) -> None:
        """Hand a job to the process and hear of it until it has ended.

        A process that dies before it has begun the job died while it was idle: another one gets the job.
        """
        for last in (False, True):
            try:
                pipe = self._hand_over(job, lane)
                if pipe is None or not self._follow(job, pipe):
                    lane.stop()
                return
            except (EOFError, OSError) as fault:
                reason = self._limits.reason_of(lane.stop())
                with self._changed:
                    if job.state not in ENDED and (job.begun_at < math.inf or last):
                        job.internal = reason is None
                        self._end(job, "failed", reason or f"{DIED} ({type(fault).__name__})")
                    if job.state in ENDED:
                        return

    def _hand_over(self, job: WorkerJob, lane: _Lane) -> Connection | None:
        """The pipe of the process that has the job; none where it was cancelled meanwhile."""
        pipe = self._connect(lane)
        with self._changed:
            if job.state in ENDED:
                return None
            pipe.send((job.task, job.given, job.signature))
            lane.current = job
            return pipe

    def _follow(self, job: WorkerJob, pipe: Connection) -> bool:
        """Take in what the process says of a job; whether it may do another, which one that grew large may not."""
        latest = monotonic() + self._limits.wall
        while True:
            in_time = pipe.poll(max(0.0, latest - monotonic()))
            kind, *rest = pipe.recv() if in_time else ("late",)
            with self._changed:
                if job.state in ENDED:
                    return False
                if kind == "late":
                    self._end(job, "failed", self._limits.too_long())
                    return False
                if kind == "begun":
                    job.begun_at = monotonic()
                    continue
                if kind == "step":
                    job.what, job.done, job.total = rest
                    continue
                message, large = rest
                self._finish(job, kind, message)
                return not large

    def _finish(self, job: WorkerJob, kind: str, message: Any) -> None:
        """Take in how a job ended."""
        if kind == "done":
            job.answer = message
            self._end(job, "done", "")
            held = [one for one in self._jobs.values() if one.signature is not None and one.answer is not None]
            for old in held[:-RESULTS_HELD]:
                old.answer = None
        else:
            job.internal = kind == "fault"
            self._end(job, "failed", self._limits.too_large() if kind == "memory" else message)

    def _end(self, job: WorkerJob, state: State, message: str) -> None:
        job.state, job.message = state, message
        if job.after is not None:
            job.after()
        job.ended.set()

    def _connect(self, lane: _Lane) -> Connection:
        if lane.process is None or lane.pipe is None or not lane.process.is_alive():
            lane.stop()
            for name, value in ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            spawning = multiprocessing.get_context("spawn")
            ours, theirs = spawning.Pipe()
            given = (theirs, str(self._root), self._warm, self._perform_task, self._limits)
            process = spawning.Process(target=work_loop, args=given, daemon=True)
            process.start()
            theirs.close()
            lane.process, lane.pipe = process, ours
        return lane.pipe

    def _kill(self, job: WorkerJob) -> None:
        for lane in self._lanes:
            if lane.current is job and lane.process is not None:
                lane.process.kill()
