"""Machines of a simulation: jobs that run by themselves and outlive their workers.

What a job does is decided by chance from the seed, the task and the attempt, so that it does
the same whoever executes it. The machine tells every start, word and end to the judge as it
really happened; workers hear of it only while they live and do not stand still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.kit.processes import Process
from tests.kit.rules.executions import Execution, Executions
from tests.kit.rules.facts import BrokenInvariant
from tidewheel.core.queue.requests import Claimed, End, Ending, HostProcess, UsageSample
from tidewheel.core.queue.task import TaskError
from tidewheel.ports.runners import Assignment, JobReports

SUCCEEDED = End(ending=Ending.SUCCEEDED, exit_status=0, metrics='{"rows": 7}')
OBEYS_SECONDS = 0.2
KEEPER_SECONDS = 0.2  # which a keeper takes at most to end the jobs of a dead worker


def _unsuccessful(ending: Ending, code: str) -> End:
    error = TaskError(code=code, description=f"the job ended with {code}")
    return End(ending=ending, error=error, exit_status=1)


FAILED = _unsuccessful(Ending.FAILED, "exit")
ABORTED = _unsuccessful(Ending.ABORTED, "hopeless")
TERMINATED = _unsuccessful(Ending.FAILED, "terminated")
KILLED = _unsuccessful(Ending.FAILED, "killed")


@dataclass(frozen=True, slots=True)
class Script:
    """What a job does."""

    seconds: float
    end: End
    obeys: bool = True  # leaves when it is asked to; else it has to be killed
    words: tuple[tuple[float, str, str | None], ...] = ()  # when, text, output
    start_fails: bool = False


Writer = Callable[[Claimed], Script]


def write_script(seed: int, task: Claimed, outputs: tuple[str, ...]) -> Script:
    """By chance; most jobs are short and succeed. Promised outputs are made before success."""
    chance = Random(f"{seed} {task.id} {task.attempt}")
    seconds = 0.02 * 1500.0 ** chance.random()
    end = chance.choices((SUCCEEDED, FAILED, ABORTED), (72, 23, 5))[0]
    names: list[str | None] = [None] * chance.choice((0, 0, 1, 3))
    names += [name for name in outputs if end is SUCCEEDED or chance.choice((True, False))]
    times = sorted(chance.random() * seconds for _ in names)
    words = tuple(
        (at, f"{task.id}/{task.attempt} says {number}", output)
        for number, (at, output) in enumerate(zip(times, names, strict=True), 1)
    )
    return Script(
        seconds=seconds,
        end=end,
        obeys=chance.choices((True, False), (4, 1))[0],
        words=words,
        start_fails=chance.choices((True, False), (1, 99))[0],
    )


class SimulatedJob:
    """A job (port Job); its worker may change, or be gone."""

    def __init__(
        self,
        execution: Execution,
        script: Script,
        process: Process,
        on_end: Callable[[Execution, End], None],
    ) -> None:
        self.execution = execution
        self._on_end = on_end
        self._script = script
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._reports: JobReports | None = None
        self._said: list[tuple[str, str | None]] = []
        self._end: End | None = None
        self._waiters: list[tuple[Process, asyncio.Future[End]]] = []
        self._timers = [
            self._loop.call_later(at, self._says, text, output)
            for at, text, output in script.words
        ]
        self._timers.append(self._loop.call_later(script.seconds, self.ends, script.end))

    def goes_to(self, process: Process, reports: JobReports) -> None:
        """Its worker is this process from now on, and hears everything from the first word."""
        self._process, self._reports = process, reports
        reports.started()
        for text, output in self._said:
            reports.message(text, output)

    def ends(self, end: End) -> None:
        """Only the first end is one."""
        if self._end is not None:
            return
        self._end = end
        self._on_end(self.execution, end)
        for timer in self._timers:
            timer.cancel()
        for process, waiter in self._waiters:
            process.when_it_goes_on(_tell, waiter, end)

    def dies_soon(self) -> None:
        """Its worker died, and the keeper has noticed."""
        self._timers.append(self._loop.call_later(KEEPER_SECONDS, self._kill))

    # port Job
    async def wait(self) -> End:
        if self._end is not None:
            return self._end
        waiter: asyncio.Future[End] = self._loop.create_future()
        self._waiters.append((self._process, waiter))
        return await waiter

    async def stop(self, grace_seconds: float) -> None:
        if self._end is None and self._script.obeys:
            delay = min(OBEYS_SECONDS, grace_seconds)
            self._timers.append(self._loop.call_later(delay, self.ends, TERMINATED))
        if self._end is None:
            # The kill is the worker's: if it dies before, the job goes on.
            self._timers.append(
                self._loop.call_later(grace_seconds, self._process.when_it_goes_on, self._kill)
            )
        await self.wait()

    def _kill(self) -> None:
        self.ends(KILLED)

    def _says(self, text: str, output: str | None) -> None:
        self._said.append((text, output))
        self.execution.said.append(text)
        if self._reports is not None:
            self._process.when_it_goes_on(_speak, self._reports, text, output)


def _tell(waiter: asyncio.Future[End], end: End) -> None:
    if not waiter.done():
        waiter.set_result(end)


def _speak(reports: JobReports, text: str, output: str | None) -> None:
    reports.message(text, output)
    reports.progress(min(0.9, len(text) / 100))
    reports.usage(UsageSample(memory_bytes=len(text), cpu_percent=50.0))


class Machine:
    """One host: which of its processes live, and every job that ran on it."""

    def __init__(
        self,
        name: str,
        executions: Executions,
        writer: Writer,
        on_broken: Callable[[BrokenInvariant], None],
    ) -> None:
        self.name = name
        self.jobs: dict[tuple[int, int], SimulatedJob] = {}  # by seq and attempt
        self.processes: dict[int, Process] = {}
        self.executions = executions
        self.writer = writer
        self._on_broken = on_broken

    def starts(self, process: Process, task: Claimed) -> Execution:
        """Tell the judge; a worker may take an exception for the job's own failure."""
        try:
            return self.executions.started(process.name, task)
        except BrokenInvariant as broken:
            self._on_broken(broken)
            raise

    def ends(self, execution: Execution, end: End) -> None:
        """Tell the judge."""
        try:
            self.executions.ended(execution, end)
        except BrokenInvariant as broken:
            self._on_broken(broken)

    def new_process(self, process: Process) -> HostProcess:
        pid = len(self.processes) + 1
        self.processes[pid] = process
        return HostProcess(host=self.name, boot_id="boot", pid=pid, started=float(pid))

    def is_alive(self, process: HostProcess) -> bool:
        return not self.processes[process.pid].dead

    def loses(self, process: Process, *, tied: bool) -> None:
        """A worker died: jobs that are tied to it die too, fenced ones soon, others go on."""
        for job in list(self.jobs.values()):
            if job.execution.process != process.name:
                continue
            if tied:
                job.ends(KILLED)
            elif job.execution.task.fence_kill:
                job.dies_soon()


class SimulatedRunner:
    """The runner (port Runner) of one worker process on a machine."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self._machine = machine
        self._process = process

    def accepts(self, task: Claimed) -> bool:
        del task
        return True

    async def start(self, assignment: Assignment, reports: JobReports) -> SimulatedJob:
        task = assignment.task
        await self._process.stays_alive()
        script = self._machine.writer(task)
        if script.start_fails:
            raise OSError("no job can be started")
        execution = self._machine.starts(self._process, task)
        job = SimulatedJob(execution, script, self._process, self._machine.ends)
        self._machine.jobs[(task.seq, task.attempt)] = job
        job.goes_to(self._process, reports)
        return job

    async def adopt(self, assignment: Assignment, reports: JobReports) -> SimulatedJob | None:
        task = assignment.task
        await self._process.stays_alive()
        job = self._machine.jobs.get((task.seq, task.attempt))
        if job is not None:
            job.goes_to(self._process, reports)
        return job
