"""A runner that tells when each job begins and ends, around one that does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidewheel.core.tasks.requests import Claimed
from tidewheel.core.tasks.steps import End
from tidewheel.ports import Assignment, Job, JobReports, Runner

OnJob = Callable[[Claimed, End | None], None]  # without an end: it begins


@dataclass(frozen=True, slots=True)
class ToldJob:
    """A job whose end is told, once, by whoever waits for it first."""

    job: Job
    task: Claimed
    on_job: OnJob

    async def wait(self) -> End:
        """How it ended."""
        end = await self.job.wait()
        self.on_job(self.task, end)
        return end

    async def stop(self, grace_seconds: float) -> None:
        """As the job does."""
        await self.job.stop(grace_seconds)


@dataclass(frozen=True, slots=True)
class ToldRunner:
    """The port Runner."""

    runner: Runner
    on_job: OnJob

    def accepts(self, task: Claimed) -> bool:
        """As the runner does."""
        return self.runner.accepts(task)

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Tell, and start."""
        self.on_job(assignment.task, None)
        job = await self.runner.start(assignment, reports)
        return ToldJob(job, assignment.task, self.on_job)

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Tell, if there is something to adopt."""
        job = await self.runner.adopt(assignment, reports)
        if job is None:
            return None
        self.on_job(assignment.task, None)
        return ToldJob(job, assignment.task, self.on_job)
