"""Looks after all Slurm jobs of a worker, and ends those that are to end, in few calls.

Theory of operation
-------------------
A round asks Slurm for all jobs of this user in one call. Of jobs that wait in Slurm's queue
nothing else is looked at. Of those that run or have ended, the files are looked at in a thread,
since they may lie on a slow network: what the job said, and whether it has begun and ended. A
round begins no sooner than ten times the time that the last squeue took (and within half a
minute), so that a busy controller is asked less often.

While Slurm does not answer, nothing is concluded: jobs stay as they were last seen. A job that
Slurm says is over, and that has not written how it ended, is given some time: files of a
network may come late. What running jobs use is asked of Slurm's daemons on the nodes, which
measure it.

Signals go first to those that run, one call for many jobs. Slurm's list names the folder of
each job, and the record in it says whose it is: so jobs are found whose attempt is over
because their worker died. Where that folder is not seen, another worker has to look.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tidewheel.core.graph.outputs import SUBMITTED
from tidewheel.core.queue.requests import End, Ending, UsageSample
from tidewheel.core.queue.task import TaskId
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.runners import Leftover
from tidewheel.runners.job_directory import JobDirectory, JobStatus, tidy_run_folders
from tidewheel.runners.job_logs import LOG_BYTES_MAX, cut_log
from tidewheel.runners.messages.client import SPOOL_NAME, SpooledMessage, append
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.outcome import killed
from tidewheel.runners.slurm import outcome, programs
from tidewheel.runners.slurm.job import SlurmJob, key_of, make_void, read_record, write_record

BATCH_SECONDS = 0.02  # what is asked within this time is asked in one call


class Together:
    """Collects the jobs for which the same is asked at about the same time, for one call."""

    def __init__(self, call: Callable[[Iterable[str]], Awaitable[None]]) -> None:
        self._call = call
        self._ids: list[str] = []
        self._next: asyncio.Future[None] | None = None

    async def ask(self, job: SlurmJob) -> None:
        """Adds a job to the next call, and returns when Slurm was asked.

        The caller that waits for the job's end asks again if need be.
        """
        if job.record.id is not None:
            await asyncio.shield(self.add(job.record.id))

    def add(self, job_id: str) -> asyncio.Future[None]:
        """Adds a job to the next call; the future is done when Slurm was asked."""
        self._ids.append(job_id)
        if self._next is None:
            self._next = asyncio.ensure_future(self._flush())
        return self._next

    async def _flush(self) -> None:
        await asyncio.sleep(BATCH_SECONDS)
        ids, self._ids, self._next = self._ids, [], None
        with suppress(programs.SlurmSilent, programs.SlurmRefused):
            await self._call(ids)


class SlurmStopping:
    """Signals and cancels Slurm jobs; calls ``look_soon`` when one may have ended by that."""

    def __init__(self, slurm: programs.Slurm, look_soon: Callable[[], Awaitable[None]]) -> None:
        # Takes jobs out of Slurm's queue; those that have begun are passed over.
        self._withdrawing = Together(lambda ids: slurm.cancel(ids, "--state=PENDING"))
        self._terminating = Together(lambda ids: slurm.signal(ids, "TERM"))
        self._killing = Together(lambda ids: slurm.signal(ids, "KILL"))
        self._cancelling = Together(slurm.cancel)
        self._look_soon = look_soon
        self._ending: set[asyncio.Future[None]] = set()

    async def terminate(self, job: SlurmJob) -> None:
        """Asks a job to end: takes it out of Slurm's queue, or sends SIGTERM to its processes.

        A job that waits in the queue has no process to signal, but it may have begun since it
        was last seen there; so it is signalled, too.
        """
        if job.row is None or job.row.state in outcome.WAITS:
            await self._withdrawing.ask(job)
        await self._terminating.ask(job)
        await self._look_soon()

    async def kill(self, job: SlurmJob) -> None:
        """Kills, then cancels a job: cancelling alone gives it KillWait seconds more."""
        await self._killing.ask(job)
        await self._cancelling.ask(job)
        await self._look_soon()

    def end_soon(self, job_id: str) -> None:
        """Kills and cancels a job for whose end nobody waits."""
        for asking in (self._killing.add(job_id), self._cancelling.add(job_id)):
            self._ending.add(asking)
            asking.add_done_callback(self._ending.discard)


LOOK_SECONDS = 1.0  # usually far less; a controller that is away takes many


class SlurmLeftovers:
    """Finds and ends jobs of attempts that are over.

    It looks in a task of its own, so that nobody waits for a Slurm that is slow to answer.
    """

    def __init__(self, slurm: programs.Slurm, stopping: SlurmStopping) -> None:
        self._slurm = slurm
        self._stopping = stopping
        self._looking: asyncio.Task[list[programs.SlurmRow]] | None = None

    async def find(self, store: str) -> list[Leftover]:
        """Returns every attempt of a store of which Slurm holds a job.

        If Slurm takes too long, nothing is returned, and the answer comes with a later call.
        """
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="slurm leftovers")
        done, _ = await asyncio.wait({self._looking}, timeout=LOOK_SECONDS)
        if not done:
            return []
        looked, self._looking = self._looking, None
        return await asyncio.to_thread(_of_store, looked.result(), store)

    async def _look(self) -> list[programs.SlurmRow]:
        """Returns the jobs that wait or run; none while Slurm does not answer."""
        with suppress(programs.SlurmSilent, programs.SlurmRefused):
            return await self._slurm.jobs()
        return []

    def remove(self, leftover: Leftover) -> None:
        """Ends the job of an attempt that is over, and keeps it from beginning.

        If Slurm does not hear that, ``find`` finds the job again.
        """
        job_id, _, folder = leftover.name.partition(" ")
        if record := read_record(Path(folder)):
            with suppress(OSError):
                make_void(Path(folder), record)
        self._stopping.end_soon(job_id)

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()


def _of_store(places: Iterable[programs.SlurmRow], store: str) -> list[Leftover]:
    """Returns the leftovers of a store; call it in a thread: folders may lie far away."""
    found = []
    for place in places:
        record = None if place.state in outcome.ENDED else read_record(Path(place.folder))
        if record is None or record.key != key_of(place.name) or record.is_over:
            continue
        if record.store == store and record.task_id:
            found.append(
                Leftover(
                    name=f"{place.id} {place.folder}",
                    task_id=TaskId(record.task_id),
                    attempt=record.attempt,
                )
            )
    return found


USAGE_SHARE_MAX = 20  # asking may take one twentieth of the time
UNSUPPORTED_SECONDS = 600.0  # then a cluster that measures nothing is asked again


class SlurmSampler:
    """Samples what jobs use, in a task of its own, as sstat waits for nodes that are gone."""

    def __init__(self, slurm: programs.Slurm, interval_seconds: float) -> None:
        self._slurm = slurm
        self._interval_seconds = interval_seconds
        self._next_at = 0.0
        self._sampling: asyncio.Task[None] | None = None

    def sample(self, jobs: Iterable[SlurmJob]) -> None:
        """Begins to sample those jobs that run, if it is time."""
        is_busy = self._sampling is not None and not self._sampling.done()
        if is_busy or time.monotonic() < self._next_at:
            return
        running = {job.row.id: job for job in jobs if job.row and job.row.state == "RUNNING"}
        if running:
            self._sampling = asyncio.create_task(self._sample(running), name="slurm usage")

    def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()

    async def _sample(self, running: dict[str, SlurmJob]) -> None:
        now = time.monotonic()
        try:
            used = await self._slurm.usage(list(running))
        except (programs.SlurmRefused, programs.SlurmSilent):
            self._next_at = now + UNSUPPORTED_SECONDS
            return
        took = time.monotonic() - now
        self._next_at = now + max(self._interval_seconds, USAGE_SHARE_MAX * took)
        for job_id in used.keys() & running.keys():
            job, usage = running[job_id], used[job_id]
            cpu_before = job.usage.cpu_seconds if job.usage else 0.0
            elapsed = max(now - (job.usage_at or job.submitted_at), 1e-6)
            percent = round(100.0 * max(0.0, usage.cpu_seconds - cpu_before) / elapsed, 1)
            job.usage, job.usage_at = usage, now
            job.reports.usage(UsageSample(memory_bytes=usage.memory_bytes, cpu_percent=percent))


ROUND_SECONDS_MIN = 1.0
ROUND_SECONDS_MAX = 30.0
SILENCE_SECONDS = 2.0  # then Slurm is asked again; it was waited for already
HURRY_SECONDS = 0.1
SHARE_MAX = 10  # a round may take one tenth of the time
LAST_WORD_SECONDS = 10.0

TellTrouble = Callable[[str | None], None]


class FilesSeen(NamedTuple):
    """Holds what the folder of an attempt shows: the job's status, and the spool's size.

    The spool is the file of the messages that the job has sent.
    """

    status: JobStatus
    spool_bytes: int


NOTHING_SEEN = FilesSeen(JobStatus(), 0)


class SlurmWatch:
    """Watches all Slurm jobs of a worker until they are over.

    It is used from one event loop, in which it runs while there are jobs.
    """

    def __init__(
        self,
        slurm: programs.Slurm,
        messages: MessageServer | None,
        *,
        usage_interval_seconds: float,
        last_word_seconds: float = LAST_WORD_SECONDS,
        log_bytes_max: int = LOG_BYTES_MAX,
    ) -> None:
        self._last_word_seconds = last_word_seconds
        self._slurm = slurm
        self._messages = messages
        self._log_bytes_max = log_bytes_max
        self._jobs: set[SlurmJob] = set()
        self._loop: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._is_silent = False
        self._listing_seconds = 0.0  # how long the last squeue took
        self._sampler = SlurmSampler(slurm, usage_interval_seconds)
        self.stopping = SlurmStopping(slurm, self._look_soon)
        self.tell_trouble: TellTrouble = lambda _: None

    def add(self, job: SlurmJob) -> None:
        """Watches a job until it is over."""
        self._jobs.add(job)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._run(), name="slurm watch")

    def tell_submitted(self, job: SlurmJob) -> None:
        """Reports to the run of a job, if it has one, that Slurm has it; it may begin later."""
        if job.assignment.task.run is not None:
            text = f"submitted to Slurm as job {job.record.id}"
            self._say(job, SpooledMessage(f"slurm-{job.record.key}", text, SUBMITTED))

    def _tell_waiting(self, job: SlurmJob, row: programs.SlurmRow) -> None:
        """Reports, once per reason, why a job waits where somebody has to act. It also reports
        that nobody has to act any more."""
        words = outcome.waiting_words(row)
        if words == job.waits:
            return
        job.waits = words
        if words or row.state in outcome.WAITS:
            text = words or outcome.turn_words(row)
            self._say(job, SpooledMessage(f"slurm-{job.record.key}-{row.reason}", text))

    def _say(self, job: SlurmJob, said: SpooledMessage) -> None:
        """Spools a message as if the job had sent it; so an adopter of the job finds it."""
        if self._messages is None:
            return
        with suppress(OSError):  # the worker learns of the job's begin or end all the same
            append(job.files.path, said)
            self._messages.hear_spool(job.assignment.secret)

    def stop(self) -> None:
        """Stops watching; the jobs go on."""
        self._sampler.stop()
        if self._loop is not None:
            self._loop.cancel()

    async def _run(self) -> None:
        while self._jobs:
            try:
                await self.run_once()
            except Exception as error:  # a mistake of ours must not leave jobs unwatched
                self.tell_trouble(f"the state of Slurm's jobs could not be read: {error!r}")
                self._is_silent = True
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_seconds()):
                    await self._hurry.wait()
            self._hurry.clear()

    async def _look_soon(self) -> None:
        """Begins the next round early, because a job may have ended."""
        await asyncio.sleep(max(HURRY_SECONDS, 2 * self._listing_seconds))
        self._hurry.set()

    def _rest_seconds(self) -> float:
        if self._is_silent:
            return SILENCE_SECONDS
        wanted = max(ROUND_SECONDS_MIN, SHARE_MAX * self._listing_seconds)
        return min(wanted, ROUND_SECONDS_MAX)

    async def run_once(self) -> None:
        """Lists all jobs, reads their files, and reports what is new and which have ended."""
        asked_at = time.monotonic()
        try:
            rows = await self._slurm.jobs(programs.ALL_STATES)
        except (programs.SlurmSilent, programs.SlurmRefused) as silent:
            self._is_silent = True
            self.tell_trouble(
                f"Slurm does not answer ({silent}). Its jobs continue; trying again"
            )
            return
        self._listing_seconds = time.monotonic() - asked_at
        if self._is_silent:
            self._is_silent = False
            self.tell_trouble(None)
        known = [job for job in self._jobs if job.submitted_at <= asked_at]
        by_key = {key_of(row.name): row for row in rows}
        for job in known:
            job.row = by_key.get(job.record.key)
        seen = await asyncio.to_thread(_look_at, known, self._log_bytes_max)
        for job in known:
            await self._hear(job, seen.get(job, NOTHING_SEEN))
        self._sampler.sample(self._jobs)

    async def _hear(self, job: SlurmJob, seen: FilesSeen) -> None:
        try:
            end = await self._end_of(job, seen)
        except (programs.SlurmSilent, OSError):  # the next round tries again
            return
        except Exception as error:  # of one job, and of no other
            self._let_go(job)
            job.over.set_exception(error)
            return
        if end is not None:
            self._let_go(job)
            exit_status = seen.status.exit_status
            told = job.seen_end(outcome.with_usage(end, job.files, job.usage), exit_status)
            job.over.set_result(told)

    async def _end_of(self, job: SlurmJob, seen: FilesSeen) -> End | None:
        if seen.status.process is not None:
            job.reports.started()
        if seen.spool_bytes != job.spool_bytes and self._messages is not None:
            job.spool_bytes = seen.spool_bytes
            self._messages.hear_spool(job.assignment.secret)
        row, record = job.row, job.record
        if row is None:
            return self._end_of_unlisted(job, seen)
        if record.id is None:
            write_record(job.files.path, replace(record, id=row.id))
            job.record = replace(record, id=row.id)
            self.tell_submitted(job)
        if row.state not in outcome.ENDED:
            job.unclear_since = None
            self._tell_waiting(job, row)
            return None
        if outcome.has_begun(row, seen.status):
            job.reports.started()
        if job.killed_after_seconds is not None and seen.status.exit_status is None:
            return killed(job.killed_after_seconds)
        is_late = bool(row.nodes) and not outcome.has_begun(row, seen.status)
        if is_late and self._may_wait(job):
            return None
        end = outcome.slurm_end(row, seen.status, job.files, by_us=job.stop_asked)
        if end is None and not self._may_wait(job):
            code = await self._slurm.exit_code(row.id)
            end = outcome.unrecorded_end(row, code, job.files)
        return end

    def _end_of_unlisted(self, job: SlurmJob, seen: FilesSeen) -> End | None:
        """Returns the end of a job that Slurm does not list: never submitted, or long over.
        None means that the job goes on, or that it may still be seen how it ended."""
        if job.record.id is None and seen.status.process is None:
            make_void(job.files.path, job.record)
            if JobDirectory(job.files.path).read_status().process is None:
                job.record = replace(job.record, is_void=True)
                return End(ending=Ending.YIELDED)
            # It began just now, and goes on.
            write_record(job.files.path, replace(job.record, id=""))
            return None
        if seen.status.exit_status is None and self._may_wait(job):
            return None
        return outcome.forgotten_end(job.record.id, seen.status, job.files)

    def _may_wait(self, job: SlurmJob) -> bool:
        """Says whether to wait longer for what a job that is over writes about its end."""
        now = time.monotonic()
        if job.unclear_since is None:
            job.unclear_since = now
        return now - job.unclear_since < self._last_word_seconds

    def _let_go(self, job: SlurmJob) -> None:
        self._jobs.discard(job)
        if not job.record.is_void:
            with suppress(OSError):
                write_record(job.files.path, replace(job.record, is_over=True))
        if self._messages is not None:
            self._messages.forget(job.assignment.secret)
        tidy_run_folders(job.assignment)


def _look_at(jobs: Iterable[SlurmJob], log_bytes_max: int) -> dict[SlurmJob, FilesSeen]:
    """Cuts the logs of jobs that have begun, and returns what their folders show, by job. Call
    it in a thread."""
    begun = [job for job in jobs if job.row is None or job.row.state not in outcome.WAITS]
    for job in begun:
        for log in (job.files.out, job.files.err):
            cut_log(log, log_bytes_max)
    return {job: _files_seen(job.files.path) for job in begun}


def _files_seen(directory: Path) -> FilesSeen:
    try:
        spool_bytes = os.lstat(directory / SPOOL_NAME).st_size
    except OSError:
        spool_bytes = 0
    return FilesSeen(JobDirectory(directory).read_status(), spool_bytes)
