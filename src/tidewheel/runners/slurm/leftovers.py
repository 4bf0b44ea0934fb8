"""Jobs in Slurm whose attempt is over: their worker died, and nobody went on with them.

Slurm's list names the folder of each job, and the record in it says whose it is. Where that
folder is not seen, another worker has to look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.task import TaskId
from tidewheel.ports.runners import Leftover
from tidewheel.runners.slurm.ends import ENDED
from tidewheel.runners.slurm.job import key_of
from tidewheel.runners.slurm.programs import Slurm, SlurmPlace, SlurmRefused, SlurmSilent
from tidewheel.runners.slurm.record import make_void, read_record
from tidewheel.runners.slurm.stopping import SlurmStopping

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
        """It may begin no more, and is ended; should Slurm not hear it, it is found again."""
        job_id, _, folder = leftover.name.partition(" ")
        if record := read_record(Path(folder)):
            with suppress(OSError):
                make_void(Path(folder), record)
        self._stopping.end_soon(job_id)

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()


def _of_store(places: Iterable[SlurmPlace], store: str) -> list[Leftover]:
    """In a thread: folders may lie on a slow network."""
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
