"""Ends Slurm jobs: those that are to stop, and those that nobody goes on with.

Signals go first to those that run, one call for many jobs. Slurm's list names the folder of
each job, and the record in it says whose it is: so jobs are found whose attempt is over
because their worker died. Where that folder is not seen, another worker has to look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.task import TaskId
from tidewheel.ports.runners import Leftover
from tidewheel.runners.slurm.job import SlurmJob, key_of, make_void, read_record
from tidewheel.runners.slurm.outcome import ENDED, WAITS
from tidewheel.runners.slurm.programs import Slurm, SlurmPlace, SlurmRefused, SlurmSilent

BATCH_SECONDS = 0.02  # what is asked within this time is asked in one call


class Together:
    """Gathers what is asked for several jobs at about the same time, in one call."""

    def __init__(self, call: Callable[[Iterable[str]], Awaitable[None]]) -> None:
        self._call = call
        self._ids: list[str] = []
        self._next: asyncio.Future[None] | None = None

    async def ask(self, job: SlurmJob) -> None:
        """Asks Slurm to cancel a job, and returns when it was asked.

        The one that waits for the job's end asks again if need be.
        """
        if job.record.id is not None:
            await asyncio.shield(self.add(job.record.id))

    def add(self, job_id: str) -> asyncio.Future[None]:
        """Done when it was asked."""
        self._ids.append(job_id)
        if self._next is None:
            self._next = asyncio.ensure_future(self._flush())
        return self._next

    async def _flush(self) -> None:
        await asyncio.sleep(BATCH_SECONDS)
        ids, self._ids, self._next = self._ids, [], None
        with suppress(SlurmSilent, SlurmRefused):
            await self._call(ids)


class SlurmStopping:
    """``look_soon`` is told whenever a job may have ended because of it."""

    def __init__(self, slurm: Slurm, look_soon: Callable[[], Awaitable[None]]) -> None:
        self._withdrawing = Together(slurm.cancel_waiting)
        self._terminating = Together(lambda ids: slurm.signal(ids, "TERM"))
        self._killing = Together(lambda ids: slurm.signal(ids, "KILL"))
        self._cancelling = Together(slurm.cancel)
        self._look_soon = look_soon
        self._ending: set[asyncio.Future[None]] = set()

    async def terminate(self, job: SlurmJob) -> None:
        """A job that waits in Slurm's queue has no process to signal: it is taken out.

        It may have begun since it was last seen there; so it is signalled, too.
        """
        if job.row is None or job.row.state in WAITS:
            await self._withdrawing.ask(job)
        await self._terminating.ask(job)
        await self._look_soon()

    async def kill(self, job: SlurmJob) -> None:
        """Slurm's own cancelling would give it KillWait seconds more."""
        await self._killing.ask(job)
        await self._cancelling.ask(job)
        await self._look_soon()

    def end_soon(self, job_id: str) -> None:
        """End a job that nobody waits for."""
        for asking in (self._killing.add(job_id), self._cancelling.add(job_id)):
            self._ending.add(asking)
            asking.add_done_callback(self._ending.discard)


LOOK_SECONDS = 1.0  # usually far less; a controller that is away takes many


class SlurmLeftovers:
    """Looks beside everything else: nobody waits for a Slurm that is slow to answer."""

    def __init__(self, slurm: Slurm, stopping: SlurmStopping) -> None:
        self._slurm = slurm
        self._stopping = stopping
        self._looking: asyncio.Task[list[SlurmPlace]] | None = None

    async def find(self, store: str) -> list[Leftover]:
        """Every attempt of a store that Slurm holds; what is not told in time is told later."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="slurm leftovers")
        done, _ = await asyncio.wait({self._looking}, timeout=LOOK_SECONDS)
        if not done:
            return []
        looked, self._looking = self._looking, None
        return await asyncio.to_thread(_of_store, looked.result(), store)

    async def _look(self) -> list[SlurmPlace]:
        """Nothing while Slurm does not answer."""
        try:
            return await self._slurm.places()
        except (SlurmSilent, SlurmRefused):
            return []

    def remove(self, leftover: Leftover) -> None:
        """Ends a job, which may begin no more; if Slurm does not hear it, it is found again."""
        job_id, _, folder = leftover.name.partition(" ")
        if record := read_record(Path(folder)):
            with suppress(OSError):
                make_void(Path(folder), record)
        self._stopping.end_soon(job_id)

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()


def _of_store(places: Iterable[SlurmPlace], store: str) -> list[Leftover]:
    """Returns the leftovers of a store; call it in a thread: folders may lie far away."""
    found = []
    for place in places:
        record = None if place.state in ENDED else read_record(Path(place.folder))
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
