"""A host whose jobs do what a script says, and outlive their workers as processes do.

``ScriptedHost`` stands for one machine: it has processes, which may die, and jobs, which go
on when their worker dies. Its runner is a real implementation of the port Runner, with the
behaviour that matters to workers: a job ends by itself, or some time after it was asked to,
or when the grace is over; it can be adopted; what it said is said again to its adopter.
A simulation gives each task its script; a test tells a job what to do by calling it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from tidewheel.core.queue.requests import Claimed, End, Ending, HostProcess, UsageSample
from tidewheel.core.queue.task import TaskError
from tidewheel.errors import RunnerUnable
from tidewheel.ports.clock import Clock
from tidewheel.ports.runners import Assignment, JobReports

HANDLER = "work"  # the one that every scripted host knows
SUCCESS = End(ending=Ending.SUCCEEDED, exit_status=0)
TERMINATED = -15
KILLED = -9


def failed(code: str = "exit", exit_status: int | None = 1) -> End:
    """An end that says that the job failed."""
    error = TaskError(code=code, description=f"ended with {code} {exit_status}")
    return End(ending=Ending.FAILED, error=error, exit_status=exit_status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a job does: it says its messages at the start, works, and ends."""

    seconds: float | None = None  # None: until it is told to end
    end: End = SUCCESS
    messages: tuple[tuple[str, str | None], ...] = ()  # text and output
    obeys_after_seconds: float | None = 0.0  # to SIGTERM; None: it has to be killed
    end_when_asked: End | None = None  # after SIGTERM; None: ended by that signal
    start_seconds: float = 0.0
    prepare_seconds: float = 0.0  # after it was started, until it runs
    start_error: str | None = None
    host_error: str | None = None  # no job can be started here just now


UNTIL_TOLD = Script()


def until_told(_task: Claimed) -> Script:
    """The job does nothing by itself."""
    return UNTIL_TOLD


class ScriptedJob:
    """A job (port Job) on a scripted host."""

    def __init__(self, assignment: Assignment, script: Script, clock: Clock) -> None:
        self.assignment = assignment
        self.script = script
        self.workers = [assignment.worker]  # who started it, and who adopted it since
        self.graces: list[float] = []  # with which it was asked to stop
        self.said: list[tuple[str, str | None]] = []
        self.started_at = clock.monotonic()
        self.ended_at: float | None = None
        self._clock = clock
        self._listeners: list[JobReports] = []
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._life: asyncio.Task[None] | None = None

    # what a test makes it do
    def ends(self, end: End = SUCCESS) -> None:
        """A job ends once; whatever comes later is too late."""
        if not self._end.done():
            self.ended_at = self._clock.monotonic()
            self._end.set_result(end)

    def breaks(self, error: Exception) -> None:
        """Its runner loses it, against its promise to answer with an end."""
        self.ended_at = self._clock.monotonic()
        self._end.set_exception(error)

    def says(self, text: str, output: str | None = None) -> None:
        """Heard at once if somebody listens, else by whoever adopts the job."""
        self.said.append((text, output))
        for reports in self._listeners:
            reports.message(text, output)

    def progresses(self, value: float) -> None:
        for reports in self._listeners:
            reports.progress(value)

    def uses(self, sample: UsageSample) -> None:
        for reports in self._listeners:
            reports.usage(sample)

    async def asks(self) -> None:
        """Its call is answered once the store knows what it said before."""
        for reports in self._listeners:
            await reports.told()

    @property
    def running(self) -> bool:
        return self.ended_at is None

    # what its host does with it
    def is_heard_by(self, reports: JobReports) -> None:
        """Everything is said again from the first, as an adopting runner does."""
        self._listeners.append(reports)
        reports.started()
        for text, output in self.said:
            reports.message(text, output)

    def is_not_heard_by(self, reports: JobReports) -> None:
        self._listeners.remove(reports)

    def lives(self) -> None:
        """Begin to do what the script says."""
        for text, output in self.script.messages:
            self.says(text, output)
        if self.script.seconds is not None:
            self._ends_after(self.script.seconds, self.script.end)

    # port Job
    async def wait(self) -> End:
        return await asyncio.shield(self._end)

    async def stop(self, grace_seconds: float) -> None:
        """The signal is the job's to obey, even if its worker dies now; the kill is ours."""
        self.graces.append(grace_seconds)
        if self.script.obeys_after_seconds is not None:
            end = self.script.end_when_asked or failed("signal", TERMINATED)
            self._ends_after(self.script.obeys_after_seconds, end)
        timer = asyncio.ensure_future(self._clock.sleep(grace_seconds))
        try:
            await asyncio.wait((self._end, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        self.ends(failed("signal", KILLED))

    def _ends_after(self, seconds: float, end: End) -> None:
        if seconds <= 0.0:
            self.ends(end)
            return
        if self._life is not None:
            self._life.cancel()
        self._life = asyncio.get_running_loop().create_task(self._sleep_then_end(seconds, end))

    async def _sleep_then_end(self, seconds: float, end: End) -> None:
        await self._clock.sleep(seconds)
        self.ends(end)


class PreparedScriptedJob(ScriptedJob):
    """A job (port PreparedJob) that begins to run some time after it was started."""

    is_ending = False  # it needs no time for that

    def is_heard_by(self, reports: JobReports) -> None:
        self._listeners.append(reports)
        self._telling = asyncio.ensure_future(self._tell(reports))

    async def begun(self) -> float:
        begun_at = self.started_at + self.script.prepare_seconds
        await self._clock.sleep(max(0.0, begun_at - self._clock.monotonic()))
        return self._clock.monotonic() - begun_at

    async def _tell(self, reports: JobReports) -> None:
        await self.begun()
        if reports in self._listeners:
            reports.started()


class ScriptedHost:
    """One machine: its processes, and the jobs that run on it."""

    def __init__(
        self, clock: Clock, script: Callable[[Claimed], Script] = until_told, name: str = "host"
    ) -> None:
        self.name = name
        self.clock = clock
        self.script = script
        self.jobs: list[ScriptedJob] = []  # in the order in which they were started
        self.adoption_error: str | None = None
        self._boots = 1
        self._pids = itertools.count(1)
        self._alive: list[HostProcess] = []

    def new_process(self) -> HostProcess:
        pid = next(self._pids)
        process = HostProcess(
            host=self.name, boot_id=f"boot-{self._boots}", pid=pid, started=float(pid)
        )
        self._alive.append(process)
        return process

    def is_alive(self, process: HostProcess) -> bool:
        return process in self._alive

    def ends_process(self, process: HostProcess) -> None:
        """The process is gone; see also ``ScriptedRunner.dies``."""
        self._alive.remove(process)

    def reboots(self) -> None:
        """Everything that ran is gone."""
        self._alive.clear()
        for job in self.jobs:
            job.ends(failed("power", None))
        self._boots += 1

    def runner(self) -> ScriptedRunner:
        return ScriptedRunner(self)

    def job(self, task_id: str) -> ScriptedJob:
        """The job of this task that was started last."""
        return next(job for job in reversed(self.jobs) if job.assignment.task.id == task_id)


class ScriptedRunner:
    """The runner (port Runner) of one worker on a scripted host."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host
        self._heard: list[tuple[ScriptedJob, JobReports]] = []

    def accepts(self, task: Claimed) -> bool:
        return task.handler is None or task.handler == HANDLER

    async def start(self, assignment: Assignment, reports: JobReports) -> ScriptedJob:
        script = self._host.script(assignment.task)
        if script.start_seconds > 0.0:
            await self._host.clock.sleep(script.start_seconds)
        if script.host_error is not None:
            raise RunnerUnable(script.host_error)
        if script.start_error is not None:
            raise OSError(script.start_error)
        kind = PreparedScriptedJob if script.prepare_seconds else ScriptedJob
        job = kind(assignment, script, self._host.clock)
        self._host.jobs.append(job)
        self._hear(job, reports)
        job.lives()
        return job

    async def adopt(self, assignment: Assignment, reports: JobReports) -> ScriptedJob | None:
        if self._host.adoption_error is not None:
            raise OSError(self._host.adoption_error)
        for job in self._host.jobs:
            if job.assignment.directory == assignment.directory:
                job.workers.append(assignment.worker)
                self._hear(job, reports)
                return job
        return None

    def dies(self) -> None:
        """The worker's process is gone: its jobs go on, and nobody hears them."""
        for job, reports in self._heard:
            job.is_not_heard_by(reports)

    def _hear(self, job: ScriptedJob, reports: JobReports) -> None:
        self._heard.append((job, reports))
        job.is_heard_by(reports)
