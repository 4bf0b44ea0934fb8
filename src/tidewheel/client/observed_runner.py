"""Wraps a runner, and tells when each of its jobs begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.steps import End
from tidewheel.ports.runners import (
    Assignment,
    Job,
    JobReports,
    Leftover,
    PromptRunner,
    Runner,
    TidyRunner,
)

OnJob = Callable[[Claimed, End | None], None]  # without an end: it begins


@dataclass(frozen=True, slots=True)
class ToldJob:
    """Is a job that tells ``on_job`` its end when it was waited for."""

    job: Job
    task: Claimed
    on_job: OnJob

    async def wait(self) -> End:
        end = await self.job.wait()
        self.on_job(self.task, end)
        return end

    async def stop(self, grace_seconds: float) -> None:
        await self.job.stop(grace_seconds)


@dataclass(frozen=True, slots=True)
class ToldRunner:
    """Is a Runner (the port) that tells ``on_job`` of each job."""

    runner: Runner
    on_job: OnJob

    def accepts(self, task: Claimed) -> bool:
        return self.runner.accepts(task)

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Starts the job, and then tells of it: what could not be started has not begun."""
        return self._told(assignment, await self.runner.start(assignment, reports))

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Adopts the job, and tells of it if there was one."""
        job = await self.runner.adopt(assignment, reports)
        return None if job is None else self._told(assignment, job)

    def _told(self, assignment: Assignment, job: Job) -> Job:
        self.on_job(assignment.task, None)
        return ToldJob(job, assignment.task, self.on_job)


@dataclass(frozen=True, slots=True)
class PromptToldRunner(ToldRunner):
    """Is a PromptRunner (the port) that tells ``on_job`` of each job."""

    runner: PromptRunner

    def start_now(
        self,
        task: Claimed,
        directory: Callable[[], Path],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job:
        """Tells of the job, and starts it; the end is told before anybody acts on it."""

        def tell_end(end: End) -> None:
            self.on_job(task, end)
            on_end(end)

        self.on_job(task, None)
        return self.runner.start_now(task, directory, reports, tell_end)


@dataclass(frozen=True, slots=True)
class TidyToldRunner(ToldRunner):
    """Is a TidyRunner (the port) that tells ``on_job`` of each job."""

    runner: TidyRunner

    async def leftovers(self, store: str) -> list[Leftover]:
        return await self.runner.leftovers(store)

    async def remove(self, leftover: Leftover) -> None:
        await self.runner.remove(leftover)


def told(runner: Runner, on_job: OnJob) -> Runner:
    """Returns the same runner, as prompt as it was, which tells ``on_job`` of its jobs."""
    if isinstance(runner, PromptRunner):
        return PromptToldRunner(runner, on_job)
    if isinstance(runner, TidyRunner):
        return TidyToldRunner(runner, on_job)
    return ToldRunner(runner, on_job)
