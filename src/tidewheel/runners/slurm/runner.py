"""Runs tasks that have a command and the label ``runner:slurm``, by Slurm.

Theory of operation
-------------------
An attempt is one sbatch. The folder of the attempt must be seen by the worker and by the
nodes: the job, its logs and what it says lie there as they do for the shell runner. ``job.py``
tells how a submission whose answer was lost is found again instead of made twice, and what
runs on the node, ``poller.py`` how thousands of jobs are looked after.

A Slurm job survives its worker, and also the host of its worker. So a worker that begins a
later attempt first ends what an earlier one may have left in Slurm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tidewheel.core.operator.definition import LATER_ATTEMPT
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.secret_references import NO_SECRETS
from tidewheel.errors import RunnerUnable
from tidewheel.ports.runners import Assignment, Job, JobReports, Leftover
from tidewheel.runners.job_directory import JobDirectory, script_name
from tidewheel.runners.job_environment import SECRET, limits_script
from tidewheel.runners.outcome import EndedJob, not_started
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.secret_values import references_of
from tidewheel.runners.slurm import directives, poller, programs
from tidewheel.runners.slurm import job as slurm_job
from tidewheel.runners.slurm.outcome import ENDED, not_submitted

KEY_BYTES = 8
JOB_RUNNER = "TIDEWHEEL_JOB_RUNNER"  # in a job's environment


class SlurmRunner:
    """Implements the port ``Runner`` for Slurm; a worker has one for all of its Slurm jobs."""

    def __init__(
        self, parts: RunnerParts, *, last_word_seconds: float = poller.LAST_WORD_SECONDS
    ) -> None:
        self._parts = parts
        self._environment = parts.inherited_environment() | {JOB_RUNNER: "slurm"}
        self._limits = limits_script(parts.limits)
        self._slurm = programs.Slurm(parts.environ)
        self._watch = poller.SlurmWatch(
            self._slurm,
            parts.messages,
            usage_interval_seconds=parts.usage_interval_seconds,
            last_word_seconds=last_word_seconds,
        )

        self._leftovers = poller.SlurmLeftovers(self._slurm, self._watch.stopping)

    def accepts(self, task: Claimed) -> bool:
        """Says whether the task has a command for Slurm."""
        return task.command is not None and directives.RUNNER_LABEL in task.resources.labels

    def tell_trouble_to(self, hear: poller.TellTrouble) -> None:
        """Sets the function that is told that Slurm is silent, or (None) that it answers."""
        self._watch.tell_trouble = hear

    def stop(self) -> None:
        """Stops watching; the jobs go on."""
        self._leftovers.stop()
        self._watch.stop()

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Submits a command; one that Slurm refuses becomes a job that has failed.

        Where Slurm is not there, nothing has failed: the task is for another worker.
        """
        command = assignment.task.command or ""
        lines = directives.head_lines(command)
        if finding := _finding(assignment.task, lines):
            return EndedJob(not_submitted(finding))
        spoken = slurm_job.SlurmReports(reports)
        await self._end_earlier_attempts(assignment)
        try:
            record = self._prepare(assignment, spoken)
        except (OSError, ValueError) as error:
            self._forget(assignment)
            return not_started(error, assignment.directory)
        self._parts.failpoint("job_before_start")
        return await self._submit(assignment, spoken, lines, record)

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Watches the job of a worker that died, also where sbatch's answer was never heard.

        It returns None if nothing was submitted, or the submission was given up. Every message
        of the attempt is reported again from the first; the worker drops those that the store
        has.
        """
        record = slurm_job.read_record(assignment.directory)
        if record is None or record.is_void:
            return None
        secret = slurm_job.read_variable(assignment.directory, SECRET)
        known = replace(assignment, secret=secret or assignment.secret)
        spoken = slurm_job.SlurmReports(reports)
        self._parts.expect_adopted(known, spoken)
        return self._follow(known, spoken, record)

    async def leftovers(self, store: str) -> list[Leftover]:
        """Returns every attempt of this store that waits or runs in Slurm."""
        return await self._leftovers.find(store)

    async def remove(self, leftover: Leftover) -> None:
        """Ends the job of an attempt whose lease is over."""
        self._leftovers.remove(leftover)

    def _prepare(
        self, assignment: Assignment, reports: slurm_job.SlurmReports
    ) -> slurm_job.SlurmRecord:
        """Writes everything that the job finds in its folder; returns the record."""
        task = assignment.task
        environment = self._parts.prepare(assignment, reports, self._environment)
        slurm_job.write_environment(assignment.directory, environment)
        record = slurm_job.SlurmRecord(
            key=os.urandom(KEY_BYTES).hex(),
            store=assignment.store,
            task_id=slurm_job.known_id(task.id),
            attempt=task.attempt,
        )
        slurm_job.write_record(assignment.directory, record)
        return record

    async def _submit(
        self,
        assignment: Assignment,
        reports: slurm_job.SlurmReports,
        lines: list[str],
        record: slurm_job.SlurmRecord,
    ) -> Job:
        directory, key = assignment.directory, record.key
        called = script_name(assignment)
        script = slurm_job.batch_script(
            lines, directory, key, script=called, limits=self._limits
        )
        try:
            job_id = await self._slurm.submit(_options(assignment, lines, key), script)
        except programs.SlurmRefused as refused:
            self._forget(assignment)
            return EndedJob(not_submitted(f"Slurm does not accept the job: {refused}"))
        except programs.SlurmNotReached as silent:
            self._forget(assignment)
            with suppress(OSError):
                slurm_job.make_void(directory, record)
            raise _unable(silent) from silent
        except programs.SlurmSilent:  # it may be there: the watch looks for it
            return self._follow(assignment, reports, record)
        self._parts.failpoint("job_spawned_before_record")
        with suppress(OSError):  # the watch will find it by its key
            slurm_job.write_record(directory, replace(record, id=job_id))
            record = replace(record, id=job_id)
        job = self._follow(assignment, reports, record)
        if record.id is not None:
            self._watch.tell_submitted(job)
        return job

    def _forget(self, assignment: Assignment) -> None:
        """Hears nothing of a job that never began."""
        if self._parts.messages is not None:
            self._parts.messages.forget(assignment.secret)

    def _follow(
        self,
        assignment: Assignment,
        reports: slurm_job.SlurmReports,
        record: slurm_job.SlurmRecord,
    ) -> slurm_job.SlurmJob:
        job = slurm_job.SlurmJob(
            assignment=assignment, reports=reports, record=record, stopping=self._watch.stopping
        )
        self._watch.add(job)
        return job

    async def _end_earlier_attempts(self, assignment: Assignment) -> None:
        """Ends the job of an earlier attempt whose worker was lost with its host. Raises
        RunnerUnable if Slurm does not answer, or does not end it."""
        for directory in _earlier_directories(assignment):
            record = slurm_job.read_record(directory)
            if record is None:
                continue
            if record.is_over:
                return
            try:
                slurm_job.make_void(directory, record)
                rows = {
                    slurm_job.key_of(row.name): row
                    for row in await self._slurm.jobs(programs.ALL_STATES)
                }
                left = rows.get(record.key)
                if left is not None and left.state not in ENDED:
                    await self._slurm.signal((left.id,), "KILL")
                    await self._slurm.cancel((left.id,))
            except (programs.SlurmSilent, programs.SlurmRefused, OSError) as error:
                raise _unable(error) from error
            return


def open_runner(name: str, parts: RunnerParts) -> SlurmRunner:
    """Returns the runner for Slurm; raises BadSetting if there is no sbatch."""
    del name
    return SlurmRunner(parts)


def _finding(task: Claimed, lines: list[str]) -> str:
    """Returns why the task cannot be a Slurm job at all; empty if it can."""
    if task.fence_kill:
        return (
            f"queue {task.queue!r} is fenced: its jobs must die with their worker, and a Slurm "
            "job does not; submit it to a queue without fence"
        )
    if task.environment is not None and references_of(task):
        return NO_SECRETS.format(runner="Slurm")
    return directives.refusal(lines)


def _options(assignment: Assignment, lines: list[str], key: str) -> list[str]:
    """Returns the options with which sbatch is called; they count more than any directive."""
    files = JobDirectory(assignment.directory)
    logs = {"output": files.out, "error": files.err}
    wanted = directives.resource_directives(
        assignment.task.resources, None, directives.names_of(lines)
    )
    return [
        *(f"{name}={value}" for name, value in wanted),
        f"--job-name={slurm_job.job_name(assignment, key)}",
        # A file name without what Slurm would replace in it.
        *(f"--{name}=" + str(path).replace("%", "%%") for name, path in logs.items()),
        "--open-mode=append",
        f"--chdir={files.path}",
        "--export=ALL",  # of what sbatch itself was given, which is an allow-list
        "--no-requeue",
    ]


def _earlier_directories(assignment: Assignment) -> Iterator[Path]:
    """Yields the folders of the attempts before this one, the latest first. Which they are
    follows from its own name: ``JobFolders`` has two layouts."""
    directory, attempt = assignment.directory, assignment.task.attempt
    is_of_run = directory.name.startswith(LATER_ATTEMPT)
    for earlier in range(attempt - 1, 0, -1):
        if not is_of_run:
            yield directory.parent / str(earlier)
        else:
            later = directory.parent / f"{LATER_ATTEMPT}{earlier}"
            yield later if earlier > 1 else directory.parent


def _unable(error: Exception) -> RunnerUnable:
    return RunnerUnable(
        f"no job can be handed to Slurm: {error}. Until Slurm answers, tasks go back to their "
        "queue"
    )
