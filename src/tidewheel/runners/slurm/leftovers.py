"""Jobs in Slurm whose attempt is over: their worker died, and nobody went on with them.

Slurm's list names the folder of each job, and the record in it says whose it is. Where that
folder is not seen, another worker has to look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tidewheel.core.tasks.task import TaskId
from tidewheel.ports.runners import Leftover
from tidewheel.runners.slurm.ends import ENDED
from tidewheel.runners.slurm.job import key_of
from tidewheel.runners.slurm.programs import Slurm, SlurmPlace, SlurmRefused, SlurmSilent
from tidewheel.runners.slurm.record import make_void, read_record
from tidewheel.runners.slurm.stopping import SlurmStopping


async def left_in_slurm(slurm: Slurm, store: str) -> list[Leftover]:
    """Every attempt of a store that Slurm holds; nothing while Slurm does not answer."""
    try:
        places = await slurm.places()
    except (SlurmSilent, SlurmRefused):
        return []
    return await asyncio.to_thread(_of_store, places, store)


async def remove_from_slurm(stopping: SlurmStopping, leftover: Leftover) -> None:
    """It may begin no more, and is ended; should Slurm not hear it, it will be found again."""
    job_id, _, folder = leftover.name.partition(" ")
    if record := read_record(Path(folder)):
        with suppress(OSError):
            make_void(Path(folder), record)
    stopping.end_soon(job_id)


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
