"""Opens the runners that a worker may have besides those of bash and Python, by name.

Each has a row in ``RUNNER_ROWS`` of ``config.py``; the module ``runner`` of its package has a
function ``open_runner(name, parts)``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Protocol, runtime_checkable

from tidewheel.config import PREPARE_SECONDS_DEFAULT, RUNNER_ROWS, RUNNERS, JobLimits
from tidewheel.core.queue.submission import MESSAGE_BYTES_MAX
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import BadSetting
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment, JobReports, Runner
from tidewheel.runners.job_directory import JobDirectory, prepare_run_folders
from tidewheel.runners.job_environment import RunAids, inherited_environment, job_environment
from tidewheel.runners.job_users import JobUsers
from tidewheel.runners.messages.client import MESSAGE_LIMIT, SOCKET
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.sanitize import masked_texts
from tidewheel.runners.secret_values import SecretSources

NO_LIMITS = JobLimits()
NO_SECRET_SOURCES = SecretSources()
RUN_AIDS = RunAids(programs=Path(sys.executable).parent)
USAGE_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerParts:
    """Holds the parts that all runners of a worker share."""

    environ: Mapping[str, str]
    messages: MessageServer | None = None  # None: jobs cannot speak
    limits: JobLimits = NO_LIMITS
    aids: RunAids = RUN_AIDS
    usage_interval_seconds: float = USAGE_INTERVAL_SECONDS
    failpoint: Failpoint = go_on
    allow_compose: tuple[str, ...] = ()
    prepare_seconds: float = PREPARE_SECONDS_DEFAULT
    home: Path = Path()  # the state directory, in which the folders of jobs are
    job_users: JobUsers | None = None  # None: jobs are of the worker's own user
    runners: tuple[str, ...] = ()  # all that the worker has
    secrets: SecretSources = NO_SECRET_SOURCES

    def inherited_environment(self) -> dict[str, str]:
        """Returns the part of the environment that all jobs with a command get."""
        inherited = inherited_environment(self.environ)
        if self.messages is not None:
            inherited[MESSAGE_LIMIT] = str(self.message_bytes_max)
            inherited[SOCKET] = str(self.messages.path)
        return inherited

    def prepare(
        self, assignment: Assignment, reports: JobReports, inherited: Mapping[str, str]
    ) -> dict[str, str]:
        """Writes the files of a job with a command, and returns its environment.

        The job may send messages from now on.
        """
        task, files = assignment.task, JobDirectory(assignment.folder)
        assert task.command is not None, "the worker asks accepts() first"
        files.write_job(task.command, task.spec, assignment.inputs)
        if prepare_run_folders(assignment, only_logs=self.job_users is not None):
            inherited = {**inherited, **self.aids.environment()}
        if self.messages is not None:
            self.messages.expect_new(*_speaker(assignment, reports))
        return job_environment(inherited, assignment)

    def expect_adopted(self, assignment: Assignment, reports: JobReports) -> None:
        """Lets an adopted job send messages, and passes on all that it has sent from the first.

        If its directory cannot be written, the job goes on all the same.
        """
        if self.messages is not None:
            with suppress(OSError):
                self.messages.expect(*_speaker(assignment, reports))

    @property
    def message_bytes_max(self) -> int:
        """Returns how many bytes a message of a job may have."""
        return MESSAGE_BYTES_MAX if self.messages is None else self.messages.message_bytes_max


def _speaker(
    assignment: Assignment, reports: JobReports
) -> tuple[str, str, JobReports, TaskId | None, tuple[str, ...]]:
    """Returns what a message server has to know of a job, which may also ask something of its
    run, if it belongs to one."""
    task, secrets = assignment.task, assignment.secrets
    hidden = masked_texts(secrets.values()) if secrets else ()
    caller = None if task.run is None else task.id
    return assignment.secret, assignment.folder, reports, caller, hidden


class OtherRunner(Runner, Protocol):
    """Is a runner whose jobs an engine or Slurm runs, which may be out of reach."""

    def tell_trouble_to(self, hear: Callable[[str | None], None]) -> None: ...
    def stop(self) -> None: ...


@runtime_checkable
class LingeringRunner(Protocol):
    """Is a runner of which something goes on after ``stop``; ``stopped`` waits for its end."""

    async def stopped(self) -> None: ...


async def stop_runners(runners: Sequence[OtherRunner]) -> None:
    """Stops runners; they let go of their jobs, which run on."""
    for runner in runners:
        runner.stop()
        if isinstance(runner, LingeringRunner):
            await runner.stopped()


def found_runners() -> tuple[str, ...]:
    """Returns the names of the runners whose programs are on this machine."""
    return tuple(
        row.name for row in RUNNER_ROWS if row.program is not None and shutil.which(row.program)
    )


def open_runner(name: str, parts: RunnerParts) -> OtherRunner:
    """Opens the runner of this name; the modules that it needs are loaded now.

    Raises BadSetting if there is none.
    """
    for row in RUNNER_ROWS:
        if row.name == name:
            module = import_module(f"tidewheel.runners.{row.package}.runner")
            runner: OtherRunner = module.open_runner(name, parts)
            return runner
    raise BadSetting("runner", name, " or ".join(RUNNERS))
