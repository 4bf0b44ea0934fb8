"""Claims tasks as slots and resources allow, and hands each to a job.

A slot is taken from the claim until the store has accepted the attempt's end: a worker never
holds more leases than it has slots. One call claims at most half of the slots, so that one
half can be claimed while the other half is reported. The queues behind a pattern share what is
free, turn by turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.api.tasks import Task
from tidewheel.config import WorkerSettings
from tidewheel.core.queue.access import Served, is_pattern
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    Abilities,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    KeysetPage,
    Report,
    TaskFilter,
    Wake,
)
from tidewheel.core.queue.resources import NO_RESOURCES
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.steps import End, Ending
from tidewheel.errors import NotFound, Unavailable
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.worker.attempt_table import Workplace
from tidewheel.worker.attempts import Attempt, StopReason
from tidewheel.worker.claimer import OpenQueues
from tidewheel.worker.host_health import Trouble
from tidewheel.worker.jobs import Jobs

CLAIMED_PER_CALL_MAX = 1_000
DUE_SECONDS_MIN = 0.001  # clocks differ by so much that to ask sooner would be in vain
POLL_JITTER = 0.2  # of the poll interval: workers that started together drift apart


class Claims(Service):
    """Takes tasks from the worker's queues, the first queue first."""

    def __init__(
        self,
        store: TaskStore,
        settings: WorkerSettings,
        abilities: Abilities,
        workplace: Workplace,
        jobs: Jobs,
        surroundings: Surroundings,
    ) -> None:
        super().__init__("claims", surroundings)
        self._store = store
        self._settings = settings
        self._abilities = abilities
        self._workplace = workplace
        self._jobs = jobs
        self._count_max = min(CLAIMED_PER_CALL_MAX, (settings.slots + 1) // 2)
        self._trouble = Trouble(surroundings.clock, surroundings.chance)
        self._unsure = False  # the last claim may have been granted without our knowing
        self._is_full = True  # there was no room for what the last pass may have left
        # Only then an idle node is worth a claim at once: what else waits needs no idle ones.
        self._met_exclusive = False
        self._served = Served(settings.queues)
        self._due: dict[str, float] = {}  # when the next delayed task of a queue can be claimed
        # No later than the poll itself, which is shorter by up to its jitter.
        self._open = OpenQueues(self._served, settings.poll_seconds * (1.0 - POLL_JITTER))

    def hear(self, wake: Wake) -> None:
        """There may be tasks; from any thread."""
        if wake.everything:
            self._open.look_anew()
            self.wake()
        elif self._served.any_of(wake.queues):
            self._open.hear(wake.queues)
            self.wake()

    def hear_room(self, attempts: Sequence[Attempt]) -> None:
        """These are over, here or on another worker of the machine: ask for more if anything
        can have been left for want of room."""
        is_idle = self._met_exclusive and self._workplace.room.machine.idle_nodes > 0
        if is_idle or any(one.task.resources != NO_RESOURCES for one in attempts):
            self._open.look_anew()
            self.wake()
        elif self._is_full:
            self.wake()

    def hear_trouble(self, text: str | None) -> None:
        """A job could not be started on this host, or could again (None)."""
        if not self._trouble.hear(text):
            return
        if text is None:
            self.tell("worker.able")
        else:
            self.tell("worker.unable", error=text, delay_seconds=self._trouble.rest_seconds)
        self.wake()

    def rest_seconds(self) -> float | None:
        if self._trouble.rest_seconds > 0.0:
            return self._trouble.rest_seconds
        jitter = POLL_JITTER * self._surroundings.chance.random()
        rest = self._settings.poll_seconds * (1.0 - jitter)
        if self._due and not self._is_full:  # else the next slot that is free is what it needs
            rest = min(rest, max(0.0, min(self._due.values()) - self._clock.monotonic()))
        return rest

    async def run_once(self) -> Sequence[ServiceReport]:
        if self._unsure:
            await self._give_back_unknown()
        await self._tell_trouble()
        claimed = 0
        self._is_full = False
        self._hear_due()
        if self._open.must_look(self._clock.monotonic()):
            await self._look_for_queues()
        for queue in self._settings.queues:
            claim = self._claim_in_turns if is_pattern(queue) else self._claim_all
            claimed += await claim(queue)
        return [self.report("tasks.claimed", count=claimed)] if claimed else ()

    def _hear_due(self) -> None:
        """The time of delayed tasks has come: their queues are asked again."""
        now = self._clock.monotonic()
        for queue in [queue for queue, at in self._due.items() if at <= now]:
            del self._due[queue]
            self._open.hear((queue,))

    async def _look_for_queues(self) -> None:
        try:
            self._open.found(await self._store.ready_queues())
        except Unavailable:
            self._open.look_anew()
            raise

    async def _claim_in_turns(self, pattern: str) -> int:
        """Each queue behind a pattern its share, until they or the slots are used up."""
        claimed = 0
        while queues := self._open.turns(pattern):
            for place, queue in enumerate(queues):
                if (count := self._claimable()) <= 0 or self._stop_asked:
                    self._is_full = True
                    return claimed
                share = max(1, self._workplace.room.slots // (len(queues) - place))
                share = min(share, count)
                taken, is_short = await self._claim_some(queue, share)
                claimed += taken
                note = self._open.note_empty if is_short else self._open.note_served
                note(pattern, queue)
        return claimed

    async def _claim_all(self, queue: str) -> int:
        """Claim until a claim comes back short, or nothing is free."""
        claimed = 0
        while (count := self._claimable()) > 0 and not self._stop_asked:
            taken, is_short = await self._claim_some(queue, count)
            claimed += taken
            if is_short:
                return claimed
        self._is_full = True
        return claimed

    async def _claim_some(self, queue: str, count: int) -> tuple[int, bool]:
        """How many, and whether nothing is left that there is room for."""
        async with self._workplace.room.machine.claiming:
            asked_at = self._clock.monotonic()
            tasks = await self._claim(queue, count)
            self._note_due(queue, tasks.next_due_seconds)
            if tasks and self._trouble.text is not None:
                self._trouble.try_later()
            self._begin(tasks, asked_at)
        if not tasks:
            return 0, True
        last = tasks[-1].resources
        self._met_exclusive |= last.exclusive
        is_short = len(tasks) < count and not self._workplace.room.machine.may_follow(last)
        return len(tasks), is_short

    def _note_due(self, queue: str, seconds: float | None) -> None:
        if seconds is None or seconds > self._settings.poll_seconds:  # told again by then
            self._due.pop(queue, None)
        else:
            self._due[queue] = self._clock.monotonic() + max(seconds, DUE_SECONDS_MIN)

    def _claimable(self) -> int:
        if not self._workplace.room.machine.has_nodes:
            return 0  # somebody has all of them alone
        return self._trouble.claimable(min(self._workplace.room.slots, self._count_max))

    async def _tell_trouble(self) -> None:
        trouble = self._trouble
        if trouble.text != trouble.text_told:
            text = trouble.text
            await self._store.set_trouble(self._workplace.worker, text)
            trouble.text_told = text

    async def _claim(self, queue: str, count: int) -> ClaimedTasks:
        request = ClaimRequest(
            queue=queue,
            worker=self._workplace.worker,
            count=count,
            lease_seconds=self._settings.lease_seconds,
            free=self._workplace.room.machine.resources,
            commands=self._abilities.commands,
            handlers=self._abilities.handlers,
            bare=self._abilities.bare,
        )
        try:
            return await self._store.claim(request)
        except Unavailable:
            self._unsure = True
            raise
        except NotFound:
            if not self._stop_asked:
                raise
            return ClaimedTasks()  # it was on its way for longer than the worker's farewell

    def _begin(self, tasks: Sequence[Claimed], asked_at: float) -> None:
        workplace, jobs = self._workplace, self._jobs
        attempts = [workplace.attempt(task, asked_at) for task in tasks]
        workplace.take(attempts)
        waited_seconds = self._clock.monotonic() - asked_at
        for attempt in attempts:
            if self._stop_asked or waited_seconds > attempt.task.lease_seconds:
                attempt.reason = StopReason.YIELD  # too late: it goes back without a start
            jobs.begin(attempt)

    async def _give_back_unknown(self) -> None:
        """A claim whose answer got lost must not cost its tasks a lapse each."""
        which = TaskFilter(statuses=tuple(sorted(LEASED)), worker=self._workplace.worker)
        count_max = self._settings.slots + self._count_max
        held = await self._store.list_tasks(which, KeysetPage(count=count_max))
        unknown = [view for view in held if (view.id, view.attempt) not in self._workplace]
        if unknown:
            await self._store.report([self._yield_unstarted(view) for view in unknown])
            self.tell("leases.given_back", count=len(unknown))
        self._unsure = False

    def _yield_unstarted(self, view: Task) -> Report:
        holder = Holder(task_id=view.id, attempt=view.attempt, worker=self._workplace.worker)
        return Report(holder=holder, end=End(ending=Ending.YIELDED))
