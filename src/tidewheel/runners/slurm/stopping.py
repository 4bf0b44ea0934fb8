"""Ending Slurm jobs: signals first to those that run, one call for many jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from tidewheel.runners.slurm.ends import WAITS
from tidewheel.runners.slurm.job import SlurmJob
from tidewheel.runners.slurm.programs import Slurm, SlurmRefused, SlurmSilent

BATCH_SECONDS = 0.02  # what is asked within this time is asked in one call


class Together:
    """What is asked for several jobs at about the same time, in one call."""

    def __init__(self, call: Callable[[Iterable[str]], Awaitable[None]]) -> None:
        self._call = call
        self._ids: list[str] = []
        self._next: asyncio.Future[None] | None = None

    async def ask(self, job: SlurmJob) -> None:
        """Returns when it was asked. Whoever waits for the job's end asks again if need be."""
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
