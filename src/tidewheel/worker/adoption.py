"""Goes on with jobs that outlived their worker, and removes what attempts left elsewhere.

A kill -9 of a worker kills no command. The worker that starts next, or works beside it, asks
the store for leases held on this host since its last boot, looks which of their workers are
gone, and asks the store for those: of several that do so at once, one gets each lease. Only
then it lets a runner take the job over, since a job speaks to one worker only, the last that
took it over. Where no job was ever started, the task is given back.

Handlers, and jobs that are tied to their worker, died with it. Their leases are not asked for
but run out, as does the lease of a job that a runner cannot take over: what may have killed its
worker must be counted as a lapse, or it would be tried for ever. Leases of fenced jobs are not
asked for, either: until a successor hears that it may go on with one, nobody would end it
before its lease does. A fenced job that outlived its worker all the same is ended.

A runner that adopts reports every message of the attempt again, from the first. So numbers
begin at 1 as they did for the dead worker, and what the store has is known by its number.

A container does not end because its worker died, or because another worker took its task. So a
worker whose runners reach such things looks, when it starts and from time to time, what there
is of its store, and asks the store of which attempts the lease still runs. What is there was
made under a lease; so everything of which the store knows no lease by then is nobody's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import HeldLease, HostProcess
from tidewheel.core.queue.status import LEASED
from tidewheel.errors import LeaseLost, NotFound, Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.clock import Clock
from tidewheel.ports.runners import Job, Leftover, Runner, TidyRunner
from tidewheel.ports.store import Store
from tidewheel.worker.attempts import Attempt, AttemptTable, StopReason
from tidewheel.worker.jobs import Jobs, Tell

IsAlive = Callable[[HostProcess], bool]


async def orphans_of_the_dead(
    store: Store, process: HostProcess, is_alive: IsAlive
) -> list[HeldLease]:
    """Returns the leases of workers gone from this host, of which the job may live.

    They are those since the host's last boot, without handlers, which died with the worker.
    """
    held = await store.orphans(process.host, process.boot_id)
    return [
        lease for lease in held if lease.task.handler is None and not is_alive(lease.process)
    ]


async def dead_workers_with_leases(
    store: Store, process: HostProcess, is_alive: IsAlive
) -> bool:
    """Says whether dead workers of this host hold leases, more cheaply than by listing them."""
    here = (process.host, process.boot_id)
    return any(
        worker.leases
        and (worker.process.host, worker.process.boot_id) == here
        and not is_alive(worker.process)
        for worker in await store.workers()
    )


class Fate(Enum):
    """Says what the store answered about a lease that a dead worker held."""

    OURS = "ours"
    THEIRS = "theirs"  # another worker of this host was faster
    # Its lease ran out, its task ended, or it is fenced: the job has no business here.
    NOBODYS = "nobodys"


Persist = Callable[[Callable[[], Awaitable[Fate]]], Awaitable[Fate | None]]


@dataclass(frozen=True, slots=True)
class Adoption:
    """Asks for the leases of dead workers, finds their jobs, and goes on with them."""

    store: Store
    runners: Sequence[Runner]
    attempts: AttemptTable
    jobs: Jobs
    clock: Clock
    tell: Tell

    async def adopt(self, lease: HeldLease, persist: Persist) -> None:
        """Takes over a job that a dead worker left, if the store agrees."""
        asked_at = self.clock.monotonic()
        fate = await persist(lambda: self._ask_for(lease))
        if fate is None or fate is Fate.THEIRS:
            return
        attempt = self.attempts.attempt(lease.task, asked_at)
        attempt.messages_stored = lease.messages
        attempt.spoke_last = fate is Fate.NOBODYS
        try:
            assignment = self.attempts.folders.assignment(lease.task, self.attempts.worker)
            able = next((one for one in self.runners if one.accepts(lease.task)), None)
            job = None if able is None else await able.adopt(assignment, attempt)
        except Exception as error:  # a job that cannot be adopted stops no other work
            attempt.spoke_last = True
            self.tell("lease.left", task=lease.task.id, error=repr(error))
            return
        self._go_on(attempt, job, fate)

    def _go_on(self, attempt: Attempt, job: Job | None, fate: Fate) -> None:
        if job is None and fate is Fate.NOBODYS:
            return
        self.attempts.take([attempt])
        self.attempts.machine.withdraw_for_ends()  # it counts on what this job has now
        if job is None:
            self.jobs.give_back(attempt)
            return
        self.jobs.go_on(attempt, job)
        if fate is Fate.NOBODYS:
            self.jobs.stop(attempt, StopReason.LOST, 0.0)
        else:
            self.tell("lease.adopted", task=attempt.task.id)

    async def _ask_for(self, lease: HeldLease) -> Fate:
        """Asks the store for the lease; asking again after a lost answer is safe."""
        task, worker = lease.task, self.attempts.worker
        if task.fence_kill:
            return Fate.NOBODYS
        if not any(runner.accepts(task) for runner in self.runners):
            return Fate.THEIRS  # its job is where only a worker with its runner finds it
        holder = Holder(task_id=task.id, attempt=task.attempt, worker=lease.owner)
        try:
            await self.store.adopt(holder, worker)
        except LeaseLost as lost:
            owner, attempt = lost.held
            if owner is None or attempt != task.attempt:
                return Fate.NOBODYS
            return Fate.OURS if owner == worker else Fate.THEIRS
        except Refused:
            return Fate.NOBODYS
        return Fate.OURS


async def remove_leftovers(
    store: Store, runners: Sequence[TidyRunner], store_name: str
) -> list[Leftover]:
    """Removes the leftovers of attempts that have no lease any more, and returns them."""
    removed = []
    for runner in runners:
        for leftover in await runner.leftovers(store_name):
            if not await _is_leased(store, leftover):
                await runner.remove(leftover)
                removed.append(leftover)
    return removed


async def _is_leased(store: Store, leftover: Leftover) -> bool:
    try:
        task = await store.get(leftover.task_id)
    except NotFound:  # kept no longer than the store keeps tasks
        return False
    return task.status in LEASED and task.attempt == leftover.attempt
