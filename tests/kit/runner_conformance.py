"""What every runner must do: one suite, passed by each of them.

A runner's test derives from ``RunnerConformance`` and says how to open the runner and which
task makes a job behave in a certain way; a runner whose jobs are processes derives from
``ProcessRunnerConformance``. Tests wait for what jobs tell them, never for time to pass.
"""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path

import pytest

from tidewheel.core.queue.requests import Claimed, End, Ending, UsageSample
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import Instant, TaskId, WorkerId
from tidewheel.ports.runners import Assignment, Job, Runner

DEADLINE_SECONDS = 60.0  # no promise of a runner: what has not come by then never will
LONG_GRACE_SECONDS = 25.0
SHORT_GRACE_SECONDS = 0.2
JOBS_AT_ONCE = 20
NOT_A_TASK_OF_OURS = "no runner has heard of this handler"


class Behaviour(StrEnum):
    """What a job does; those that last write a line into the mailbox when they are there."""

    SUCCEED = "succeed"
    FAIL = "fail"
    SPEAK = "speak"  # "first", the output "ready", progress 0.5, "last"; then succeed
    REPEAT_SPEC = "repeat spec"  # says the text under "say" of its spec
    HAND_ON = "hand on"  # writes VALUES to $TIDEWHEEL_OUTPUTS
    LAST = "last"  # lasts until it is asked to end
    REFUSE_TO_END = "refuse to end"  # lasts whatever it is asked


VALUES = '{"beams": 4, "name": "\u03a9"}'
SPOKEN = [("first", None), ("here it is", "ready"), ("last", None)]


class RecordedReports:
    """What a job said, as the worker's side of ``JobReports``."""

    def __init__(self) -> None:
        self.starts = 0
        self.progresses: list[float] = []
        self.messages: list[tuple[str, str | None]] = []
        self.values: list[str] = []  # that messages carried
        self.samples: list[UsageSample] = []
        self.logs_begun = 0
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def started(self) -> None:
        """Count it."""
        self.starts += 1
        self._wake()

    def progress(self, value: float) -> None:
        """Keep it."""
        self.progresses.append(value)
        self._wake()

    def message(self, text: str, output: str | None = None, values: str | None = None) -> None:
        """Keep it."""
        self.messages.append((text, output))
        self.values += [] if values is None else [values]
        self._wake()

    def usage(self, sample: UsageSample) -> None:
        """Keep it."""
        self.samples.append(sample)
        self._wake()

    def log_begun(self) -> None:
        """Count it."""
        self.logs_begun += 1
        self._wake()

    async def told(self) -> None:
        """It hears everything at once."""

    async def until(self, condition: Callable[[RecordedReports], object]) -> None:
        """Wait until what was said fulfils a condition."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)


class Mailbox:
    """A named pipe into which a job writes a line to tell a test where it is."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self.path = path
        # For both ends: it never blocks and never ends, whoever else has it open.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._read = b""

    async def line(self) -> str:
        """The next line."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while b"\n" not in self._read:
                readable = loop.create_future()
                loop.add_reader(self._descriptor, _settle, readable)
                try:
                    await readable
                finally:
                    loop.remove_reader(self._descriptor)
                self._read += os.read(self._descriptor, 65536)
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._descriptor)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def claimed(number: int = 1, *, attempt: int = 1, **fields: object) -> Claimed:
    """A claimed task; give ``command`` or ``handler``, and whatever else matters."""
    standard: dict[str, object] = {
        "seq": number,
        "id": TaskId(f"task-{number}"),
        "queue": "default",
        "name": None,
        "attempt": attempt,
        "spec": None,
        "command": None,
        "handler": None,
        "priority": 50,
        "deadline_at": Instant(0.0),
        "lease_seconds": 10.0,
        "timeout_seconds": None,
        "max_termination_seconds": 10.0,
        "resources": Resources(),
        "fence_kill": False,
    }
    return Claimed(**(standard | fields))  # type: ignore[arg-type]


def assigned(task: Claimed, home: Path, **environment: str) -> Assignment:
    """An assignment with a directory and a secret of its own."""
    return Assignment(
        task=task,
        worker=WorkerId("w1"),
        folder=f"{home}/tasks/{task.seq}/{task.attempt}",
        secret=f"secret-of-{task.seq}-{task.attempt}",
        environment=environment,
    )


class RunnerConformance(ABC):
    """What every runner must do."""

    jobs_at_once = JOBS_AT_ONCE

    @abstractmethod
    def open_runner(self, home: Path) -> AbstractAsyncContextManager[Runner]:
        """A runner that works, in the running loop."""

    @abstractmethod
    def task(self, behaviour: Behaviour, mailbox: Path, **fields: object) -> Claimed:
        """A task whose job behaves like this; ``fields`` are those of ``claimed``."""

    def run(
        self, home: Path, scenario: Callable[[Stage], Coroutine[object, object, None]]
    ) -> None:
        """Play a scenario on a stage of its own."""

        async def play() -> None:
            mailbox = Mailbox(home / "mailbox")
            try:
                async with self.open_runner(home) as runner:
                    await scenario(Stage(self, runner, home, mailbox))
            finally:
                mailbox.close()

        asyncio.run(play())

    def test_a_job_that_ends_well_has_succeeded(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.SUCCEED)
            end = await stage.end_of(job)
            assert end.ending is Ending.SUCCEEDED
            assert stage.reports.starts == 1

        self.run(tmp_path, scenario)

    def test_a_job_that_fails_says_why(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            end = await stage.end_of(await stage.start(Behaviour.FAIL))
            assert end.ending is Ending.FAILED
            assert end.error is not None
            assert end.error.code
            assert "it was set to fail" in end.error.description
            assert isinstance(json.loads(end.error.args), dict)

        self.run(tmp_path, scenario)

    def test_what_a_job_says_is_reported_in_order_and_before_its_end(
        self, tmp_path: Path
    ) -> None:
        async def scenario(stage: Stage) -> None:
            end = await stage.end_of(await stage.start(Behaviour.SPEAK))
            assert end.ending is Ending.SUCCEEDED
            assert stage.reports.messages == SPOKEN
            assert stage.reports.progresses == [0.5]

        self.run(tmp_path, scenario)

    def test_a_job_gets_its_spec_as_it_was_submitted(self, tmp_path: Path) -> None:
        text = "- $(id) `id` ;\n\t\"'\\ é \u2028 %s {x}"

        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.REPEAT_SPEC, spec=json.dumps({"say": text}))
            end = await stage.end_of(job)
            assert end.ending is Ending.SUCCEEDED
            assert stage.reports.messages == [(text, None)]

        self.run(tmp_path, scenario)

    @pytest.mark.req("R003-44")
    def test_a_job_that_is_asked_to_stop_ends_within_its_grace(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.LAST)
            await stage.mailbox.line()
            await job.stop(LONG_GRACE_SECONDS)
            end = await stage.end_of(job)
            assert end.ending is Ending.FAILED

        self.run(tmp_path, scenario)

    @pytest.mark.req("R003-44", "R003-47")
    def test_a_job_that_refuses_to_end_is_ended_after_its_grace(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.REFUSE_TO_END)
            await stage.mailbox.line()
            await job.stop(SHORT_GRACE_SECONDS)
            end = await stage.end_of(job)
            assert end.ending is Ending.FAILED
            assert end.exit_status is None

        self.run(tmp_path, scenario)

    @pytest.mark.req("R003-46")
    def test_stopping_a_job_that_has_ended_changes_nothing(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.SUCCEED)
            end = await stage.end_of(job)
            await job.stop(SHORT_GRACE_SECONDS)
            assert await stage.end_of(job) == end

        self.run(tmp_path, scenario)

    def test_who_stops_waiting_takes_nothing_from_others_who_wait(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.LAST)
            await stage.mailbox.line()
            waiters = [asyncio.ensure_future(job.wait()) for _ in range(3)]
            await asyncio.wait(waiters, timeout=0)
            waiters[0].cancel()
            await job.stop(LONG_GRACE_SECONDS)
            assert await waiters[1] == await waiters[2] == await stage.end_of(job)

        self.run(tmp_path, scenario)

    def test_many_jobs_at_once_keep_their_ends_apart(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            behaviours = [Behaviour.SUCCEED, Behaviour.FAIL] * (self.jobs_at_once // 2)
            jobs = [
                await stage.start(behaviour, number=number)
                for number, behaviour in enumerate(behaviours)
            ]
            ends = [(await stage.end_of(job)).ending for job in jobs]
            assert ends == [Ending.SUCCEEDED, Ending.FAILED] * (self.jobs_at_once // 2)

        self.run(tmp_path, scenario)

    def test_a_runner_accepts_its_own_tasks_only(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            assert stage.runner.accepts(self.task(Behaviour.SUCCEED, stage.mailbox.path))
            assert not stage.runner.accepts(claimed(handler=NOT_A_TASK_OF_OURS))
            assert not stage.runner.accepts(claimed(spec="{}"))

        self.run(tmp_path, scenario)

    def test_there_is_nothing_to_adopt_where_nothing_ran(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            task = self.task(Behaviour.SUCCEED, stage.mailbox.path)
            assert await stage.runner.adopt(assigned(task, tmp_path), stage.reports) is None

        self.run(tmp_path, scenario)


class Stage:
    """One runner, ready to start jobs whose words are recorded."""

    def __init__(
        self, suite: RunnerConformance, runner: Runner, home: Path, mailbox: Mailbox
    ) -> None:
        self.runner = runner
        self.home = home
        self.mailbox = mailbox
        self.reports = RecordedReports()
        self._suite = suite

    async def start(self, behaviour: Behaviour, **fields: object) -> Job:
        """Start a job that behaves like this."""
        task = self._suite.task(behaviour, self.mailbox.path, **fields)
        return await self.runner.start(assigned(task, self.home), self.reports)

    async def end_of(self, job: Job) -> End:
        """How it ended, in good time."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await job.wait()


class ProcessRunnerConformance(RunnerConformance):
    """What a runner must do whose jobs are processes."""

    @pytest.mark.req("R003-57")
    def test_the_usage_of_a_job_is_sampled_while_it_runs(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.LAST)
            await stage.reports.until(lambda said: len(said.samples) > 1)
            await job.stop(LONG_GRACE_SECONDS)
            await stage.end_of(job)
            sample = stage.reports.samples[0]
            assert sample.memory_bytes is not None and sample.memory_bytes > 0
            assert sample.cpu_percent is not None and sample.cpu_percent >= 0

        self.run(tmp_path, scenario)

    @pytest.mark.req("R004-44")
    def test_what_a_job_wrote_for_those_after_it_comes_with_its_end(
        self, tmp_path: Path
    ) -> None:
        async def scenario(stage: Stage) -> None:
            end = await stage.end_of(await stage.start(Behaviour.HAND_ON))
            assert (end.ending, end.values) == (Ending.SUCCEEDED, VALUES)

        self.run(tmp_path, scenario)

    @pytest.mark.req("R003-47")
    def test_a_job_ended_by_sigterm_has_an_exit_status(self, tmp_path: Path) -> None:
        async def scenario(stage: Stage) -> None:
            job = await stage.start(Behaviour.LAST)
            await stage.mailbox.line()
            await job.stop(LONG_GRACE_SECONDS)
            assert (await stage.end_of(job)).exit_status is not None

        self.run(tmp_path, scenario)
