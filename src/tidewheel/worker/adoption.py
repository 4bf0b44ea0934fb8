"""Jobs that outlived their worker: another on the same host goes on with them.

A kill -9 of a worker kills no command. Whoever starts next, or works beside it, asks the store
for leases held on this host since its last boot, looks which of their workers are gone, and
asks the store for those: of several that do so at once, one gets each lease. Only then it lets
a runner take the job over, since a job has one voice, and whoever takes it over last has it.
Where no job was ever started, the task is given back.

Handlers, and jobs that are tied to their worker, died with it. Their leases are not asked for
but run out, as does the lease of a job that a runner cannot take over: what may have killed
its worker must be counted as a lapse, or it would be tried for ever. So are fenced jobs: until
a successor hears that it may go on with one, nobody would end it before its lease does. What
is left of one, against all care, is ended.

A runner that adopts reports every message of the attempt again, from the first. So numbers
begin at 1 as they did for the dead worker, and what the store has is known by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import HeldLease, HostProcess
from tidewheel.errors import LeaseLost, Refused
from tidewheel.ports.runners import Job, Runner
from tidewheel.ports.tasks import TaskStore
from tidewheel.worker.attempts import Attempt
from tidewheel.worker.workplace import Workplace

IsAlive = Callable[[HostProcess], bool]


async def orphans_of_the_dead(
    store: TaskStore, process: HostProcess, is_alive: IsAlive
) -> list[HeldLease]:
    """Leases of this host, since its last boot, whose worker is gone and whose job may live."""
    held = await store.orphans(process.host, process.boot_id)
    return [
        lease for lease in held if lease.task.handler is None and not is_alive(lease.process)
    ]


async def dead_workers_with_leases(
    store: TaskStore, process: HostProcess, is_alive: IsAlive
) -> bool:
    """Whether there is any of this host, since its last boot; costs less than their leases."""
    here = (process.host, process.boot_id)
    return any(
        worker.leases
        and (worker.process.host, worker.process.boot_id) == here
        and not is_alive(worker.process)
        for worker in await store.workers()
    )


class Fate(Enum):
    """What the store says about a lease that a dead worker held."""

    OURS = "ours"
    THEIRS = "theirs"  # another worker of this host was faster
    # Its lease ran out, its task ended, or it is fenced: the job has no business here.
    NOBODYS = "nobodys"


class Adoption:
    """Asks for the leases of dead workers, and finds their jobs."""

    def __init__(
        self, store: TaskStore, runners: Sequence[Runner], workplace: Workplace
    ) -> None:
        self._store = store
        self._runners = runners
        self._workplace = workplace

    async def find_job(self, attempt: Attempt) -> Job | None:
        """The job of this attempt; None if none was started."""
        assignment = self._workplace.assignment(attempt.task)
        for runner in self._runners:
            if runner.accepts(attempt.task):
                return await runner.adopt(assignment, attempt)
        return None

    async def ask_for(self, lease: HeldLease) -> Fate:
        """Ask the store for the lease; asking again after a lost answer is safe."""
        task, worker = lease.task, self._workplace.worker
        if task.fence_kill:
            return Fate.NOBODYS
        if not any(runner.accepts(task) for runner in self._runners):
            return Fate.THEIRS  # its job is where only a worker with its runner finds it
        holder = Holder(task_id=task.id, attempt=task.attempt, worker=lease.owner)
        try:
            await self._store.adopt(holder, worker)
        except LeaseLost as lost:
            owner, attempt = lost.held
            if owner is None or attempt != task.attempt:
                return Fate.NOBODYS
            return Fate.OURS if owner == worker else Fate.THEIRS
        except Refused:
            return Fate.NOBODYS
        return Fate.OURS
