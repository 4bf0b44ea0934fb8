"""Holds the Protocols of runners, which make jobs of attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol, runtime_checkable

from tidewheel.core.queue.requests import (
    Claimed,
    End,
    UsageSample,
)
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.lazy_dataclasses import dataclass


class JobReports(Protocol):
    """Takes the reports of a running job to its worker; may be called from any thread."""

    def started(self) -> None: ...
    def progress(self, value: float) -> None: ...
    def message(
        self, text: str, output: str | None = None, values: str | None = None
    ) -> None: ...
    def usage(self, sample: UsageSample) -> None: ...
    def log_begun(self) -> None:
        """Says that a handler prints, which may be long after the job began, or never."""

    async def told(self) -> None:
        """Returns once the store knows what was reported so far; in the worker's loop only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Holds everything that a runner needs to make a job of an attempt."""

    task: Claimed
    worker: WorkerId
    folder: str  # of this attempt alone: job, job.out, job.err, job.status
    secret: str  # lets the job speak for this attempt and nothing else
    store: str = ""  # the beginning of its id: whose task it is, where several share an engine
    environment: dict[str, str] = field(default_factory=dict)
    inputs: str | None = None  # JSON: the values of the tasks that it needs, by their ids
    # Values of secrets by variable: from the worker's memory to the environment of the job.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def directory(self) -> Path:
        """Returns the folder as a path, which takes longer to make than the folder itself to
        be asked for: what each job needs is the text."""
        return Path(self.folder)


class Job(Protocol):
    """Controls the job of an attempt: a worker waits for its end or stops it."""

    async def wait(self) -> End:
        """Waits until the job has ended, and returns how it ended.

        A job's own failure is an answer, not an exception.
        """

    async def stop(self, grace_seconds: float) -> None:
        """Asks the job to end, and kills its whole process tree if it still runs after the
        grace period."""


@runtime_checkable
class PreparedJob(Job, Protocol):
    """Is a job that begins to run only after its runner, or an engine, has prepared it, and is
    tidied up after it has ended."""

    is_ending: bool  # it runs no more, however it ended; no limit ends it any more

    async def begun(self) -> float:
        """Waits until the job runs, and returns for how many seconds it has run by then."""


class Runner(Protocol):
    """Makes jobs of attempts, for the tasks that it accepts."""

    def accepts(self, task: Claimed) -> bool: ...
    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Starts a job; raises RunnerUnable if none at all can be started here just now."""

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Returns the job that a dead worker left in this directory; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Names something that an attempt has outside its worker's processes, such as a
    container."""

    name: str
    task_id: TaskId
    attempt: int


@runtime_checkable
class TidyRunner(Runner, Protocol):
    """Makes jobs that run elsewhere and do not end with their worker, so that their leftovers
    have to be removed."""

    async def leftovers(self, store: str) -> list[Leftover]:
        """Returns the leftovers of all attempts of a store, whether their leases are over or
        not."""

    async def remove(self, leftover: Leftover) -> None: ...


@runtime_checkable
class PromptRunner(Runner, Protocol):
    """Starts a job without waiting for anything and calls back at its end.

    Such a job needs neither a coroutine of the worker that waits for it nor, unless it asks
    for one, an assignment: with jobs that do little, these would be most of the work.
    """

    def start_now(
        self,
        task: Claimed,
        assign: Callable[[], Assignment],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job | None:
        """Starts a job as ``start`` does; None: for this one something has to be awaited, and
        nothing was done."""
