"""Claims tasks as slots and resources allow, and hands each to a job.

A slot is taken from the claim until the store has accepted the attempt's end: a worker never
holds more leases than it has slots, and what it may claim ahead of them (`jobs.py`:
where ends may bring the next tasks along, see below, and jobs are short). One call claims at
most half of that, so that one half can be claimed while the other half is reported. The queues
behind a pattern share what is free, turn by turn.

A queue behind a pattern is known because the worker was woken for it, or because it was there
when the store was last asked, which is done once in each poll. It is left out again when a
claim comes back short. So a claim is made only where there may be something, and nothing
depends on how many queues there have ever been.

All tasks of a run have its priority, and each run has a queue of its own. So among queues of
runs those of the highest priority are served before all others, and those of the same in turns.
Where a priority is not known, and there is more than one queue, the store is asked first.

A claimer that found nothing more leaves a standing claim for the queue that it served last. If
this process itself makes tasks of that queue ready (a scheduler beside the worker, a client),
the store hands them over in that same transaction, and nobody has to be woken.

A claimer without a free slot leaves one that the worker's next report of ends carries out, so a
busy worker makes one transaction for the ends of some tasks and the leases of the next. That is
done where nothing is passed over by it: for the first queue of the worker, if it serves that by
its name (others have what the first leaves), with several slots (with one the machine is idle
after each end, which an exclusive task may be waiting for), and while nothing that runs on its
machine has asked for resources, which another task might be waiting for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from tidewheel.config import WorkerSettings
from tidewheel.core.queue import requests
from tidewheel.core.queue.access import RUN_QUEUE, Served, matches
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.resources import NO_RESOURCES, Resources, is_scoped, offered_in
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.task import PRIORITY_DEFAULT
from tidewheel.errors import NotFound, Unavailable
from tidewheel.ports.store import StandingClaim, Store
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.worker.attempts import AttemptTable, StopReason
from tidewheel.worker.jobs import CLAIMS, NEVER_STARTED, Jobs

REMEMBERED_MAX = 10_000  # priorities of queues


class OpenQueues:
    """Knows the queues behind patterns that may have tasks, and whose turn it is.

    It is used by a worker's loop, except for what says otherwise.
    """

    def __init__(self, served: Served, look_seconds: float) -> None:
        self._served = served
        self._look_seconds = look_seconds
        self._look_at = float("-inf")
        self._heard: deque[str] = deque()  # append and popleft are atomic
        self._open: dict[str, set[str]] = {pattern: set() for pattern in served.patterns}
        self._served_last: dict[str, str] = {}
        self._priorities: dict[str, int] = {}  # of queues of runs

    def hear(self, queues: Iterable[str]) -> bool:
        """Notes that there may be tasks in these queues; says whether a pattern serves one.

        It may be called from any thread.
        """
        behind = [one for one in queues if any(matches(p, one) for p in self._served.patterns)]
        self._heard.extend(behind)
        return bool(behind)

    def look_anew(self) -> None:
        """Has the store asked anew, since something unknown changed; from any thread."""
        self._look_at = float("-inf")

    def must_look(self, now: float) -> bool:
        """Says whether to ask the store now which queues have tasks.

        That is so from time to time, and when the priority of one of several queues is unknown.
        """
        self._hear_all()
        shared = any(len(queues) > 1 for queues in self._open.values())
        if now < self._look_at and not (shared and any(self._unknown())):
            return False
        # Set before the store is asked: what changes meanwhile must be asked for again.
        self._look_at = now + self._look_seconds
        return True

    def found(self, queues: Mapping[str, int]) -> None:
        """Takes what the store answered: queues, each with its highest priority."""
        if len(self._priorities) > REMEMBERED_MAX:
            self._priorities.clear()
        for queue, priority in queues.items():
            self._sort_in(queue)
            if queue.startswith(RUN_QUEUE):
                self._priorities[queue] = priority
        for unknown in self._unknown():  # another worker was faster: the queue has nothing now
            self._priorities[unknown] = PRIORITY_DEFAULT

    def turns(self, pattern: str) -> list[str]:
        """Returns the queues of the highest priority that may have tasks, in turn.

        The first is the one after the queue that was served last.
        """
        self._hear_all()
        there = self._open[pattern]
        highest = max(map(self._priority, there), default=0)
        waiting = sorted(queue for queue in there if self._priority(queue) == highest)
        last = self._served_last.get(pattern)
        if last is None:
            return waiting
        behind = [queue for queue in waiting if queue > last]
        return behind + waiting[: len(waiting) - len(behind)]

    def note(self, pattern: str, queue: str, *, is_short: bool) -> None:
        """Notes a claim: a queue that came back short is left out, another had its turn."""
        if is_short:
            self._open[pattern].discard(queue)
        else:
            self._served_last[pattern] = queue

    def _priority(self, queue: str) -> int:
        return self._priorities.get(queue, PRIORITY_DEFAULT)

    def _unknown(self) -> list[str]:
        return [
            queue
            for queues in self._open.values()
            for queue in queues
            if queue not in self._priorities and queue.startswith(RUN_QUEUE)
        ]

    def _hear_all(self) -> None:
        while self._heard:
            self._sort_in(self._heard.popleft())

    def _sort_in(self, queue: str) -> None:
        """Opens a queue under the first pattern that matches, unless it is served by name."""
        if queue in self._served.names:
            return
        for pattern, queues in self._open.items():
            if matches(pattern, queue):
                queues.add(queue)
                return


CLAIMED_PER_CALL_MAX = 1_000
DUE_SECONDS_MIN = 0.001  # clocks differ by so much that to ask sooner would be in vain
POLL_JITTER = 0.2  # of the poll interval: workers that started together drift apart


class Claimer(Service):
    """Takes tasks from the worker's queues, the first queue first."""

    def __init__(
        self,
        store: Store,
        settings: WorkerSettings,
        abilities: requests.Abilities,
        attempts: AttemptTable,
        jobs: Jobs,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(CLAIMS, surroundings, jobs.health.claims_wakeup)
        self._store = store
        self._settings = settings
        self._abilities = abilities
        self._attempts = attempts
        self._machine = attempts.machine
        self._jobs = jobs
        self._health = jobs.health
        self._unsure = False  # the last claim may have been granted without our knowing
        self._is_full = True  # there was no room for what the last pass may have left
        # Only then an idle node is worth a claim at once: what else waits needs no idle ones.
        self._met_exclusive = False
        self._served = Served(settings.queues)
        self._due: dict[str, float] = {}  # when the next delayed task of a queue can be claimed
        # No later than the poll itself, which is shorter by up to its jitter.
        look_seconds = settings.poll_seconds * (1.0 - POLL_JITTER)
        self._open: OpenQueues | None = None  # None: all queues are served by their names
        if self._served.patterns:
            self._open = OpenQueues(self._served, look_seconds)
        self._machine.on_freed.append(self.hear_freed)
        # Where a standing claim would help: in the queue that was served last, or is first.
        self._busy_queue = next(iter(self._served.names), None)
        # Whose tasks ends may bring along: every claim begins with it.
        first = settings.queues[0] if settings.slots > 1 else None
        self._refilled_queue = first if first in self._served.names else None
        self._is_near = False  # the store keeps standing claims
        # A queue of which the very next wake tells what a standing claim has brought already.
        self._seen_through: str | None = None
        labels = settings.capacity.labels
        self._is_scoped = any(map(is_scoped, labels))  # some queue is allowed more than others
        self._is_over = False  # nobody would execute what a standing claim brings now

    async def run(self) -> None:
        try:
            self._leave_standing_claim()  # to know whether the store keeps any
            await super().run()
            await self._withdraw()
        finally:
            self._is_over = True
            claim = self._machine.standing
            is_own = claim is not None and claim.request.worker == self._attempts.worker
            if claim is not None and is_own and claim.withdraw():  # this worker is being killed
                self._machine.standing = None

    def hear(self, wake: requests.Wake) -> None:
        """Wakes the claimer if there may be tasks in its queues; from any thread."""
        seen_through, self._seen_through = self._seen_through, None
        if wake.queues == {seen_through}:
            return
        is_for_us = wake.everything or not self._served.names.isdisjoint(wake.queues)
        if self._open is not None:
            if wake.everything:
                self._open.look_anew()
            is_for_us = self._open.hear(wake.queues) or is_for_us
        if is_for_us:
            self.wake()

    def hear_freed(self, freed: Sequence[Resources]) -> None:
        """Wakes the claimer if tasks may have been left for want of what is free now.

        Attempts here, or of another worker of the machine, have given it back.
        """
        is_idle = self._met_exclusive and self._machine.idle_nodes > 0
        asked = [one for one in freed if one is not NO_RESOURCES and one != NO_RESOURCES]
        if is_idle or asked:
            if self._open is not None:
                self._open.look_anew()
            self.wake()
        elif self._is_full and self._claimable(self._refilled_queue) > 0:
            self.wake()  # else what is free now was given away
        ahead = self._jobs.ahead
        if ahead.count and not self._may_refill():
            self._jobs.claim_none_ahead()
        elif not self._can_refill():
            return
        elif ahead.is_worth_it and not ahead.count and self._may_claim_ahead():
            self._attempts.slots += ahead.begin()
            self.wake()
        else:
            self._leave_standing_claim()

    def _may_claim_ahead(self) -> bool:
        """Says whether nobody is harmed by tasks that are leased and not begun: ends are stored
        with what follows from them, and if this worker dies, others do not wait for a lapse."""
        is_apt = self._attempts.is_beside_scheduler and not self._settings.tie_jobs
        return is_apt and not self._stop_asked

    def rest_seconds(self) -> float | None:
        if self._health.rest_seconds > 0.0:
            return self._health.rest_seconds
        jitter = POLL_JITTER * self._surroundings.chance.random()
        rest = self._settings.poll_seconds * (1.0 - jitter)
        if self._due and not self._is_full:  # else the next slot that is free is what it needs
            rest = min(rest, max(0.0, min(self._due.values()) - self._clock.monotonic()))
        return rest

    async def run_once(self) -> Sequence[ServiceReport]:
        if self._unsure:
            await self._give_back_unknown()
        health = self._health
        if health.text != health.text_told:
            text = health.text
            await self._store.set_trouble(self._attempts.worker, text)
            health.text_told = text
        claimed = 0
        self._is_full = False
        now = self._clock.monotonic()
        for queue in [queue for queue, at in self._due.items() if at <= now]:
            del self._due[queue]  # the time of a delayed task has come
            if self._open is not None:
                self._open.hear((queue,))
        if self._open is not None and self._open.must_look(now):
            await self._look(self._open)
        for queue in self._settings.queues:
            if self._open is not None and queue in self._served.patterns:
                claimed += await self._claim_in_turns(self._open, queue)
            else:
                claimed += await self._claim_all(queue)
        self._leave_standing_claim()
        return [self.report("tasks.claimed", count=claimed)] if claimed else ()

    async def _look(self, opened: OpenQueues) -> None:
        """Asks the store which queues have tasks."""
        try:
            opened.found(await self._store.ready_queues())
        except Unavailable:
            opened.look_anew()
            raise

    async def _claim_in_turns(self, opened: OpenQueues, pattern: str) -> int:
        """Claims each queue's share behind a pattern, until queues or slots are used up."""
        claimed = 0
        while queues := opened.turns(pattern):
            for place, queue in enumerate(queues):
                if (count := self._claimable(queue)) <= 0 or self._stop_asked:
                    self._is_full = True
                    return claimed
                share = max(1, self._attempts.slots // (len(queues) - place))
                taken, is_short = await self._claim_some(queue, min(share, count))
                claimed += taken
                opened.note(pattern, queue, is_short=is_short)
        return claimed

    async def _claim_all(self, queue: str) -> int:
        """Claims until a claim comes back short, or nothing is free."""
        claimed = 0
        while (count := self._claimable(queue)) > 0 and not self._stop_asked:
            taken, is_short = await self._claim_some(queue, count)
            claimed += taken
            if is_short:
                return claimed
        self._is_full = True
        return claimed

    async def _claim_some(self, queue: str, count: int) -> tuple[int, bool]:
        """Claims tasks and begins their jobs. Returns how many, and whether nothing that fits
        is left in the queue."""
        async with self._machine.claiming:
            await self._withdraw()
            asked_at = self._clock.monotonic()
            tasks = await self._claim(queue, count)
            return len(tasks), self._begin(tasks, queue, count, asked_at)

    def _begin(
        self, tasks: requests.ClaimedTasks, queue: str, count: int, asked_at: float
    ) -> bool:
        """Begins the jobs of claimed tasks; says whether nothing that fits is left in the
        queue."""
        answered_at = self._clock.monotonic()
        seconds = tasks.next_due_seconds
        if seconds is None or seconds > self._settings.poll_seconds:  # told again by then
            self._due.pop(queue, None)
        else:
            self._due[queue] = answered_at + max(seconds, DUE_SECONDS_MIN)
        if tasks and self._health.text is not None:
            self._health.try_later()
        attempts = [self._attempts.attempt(task, asked_at) for task in tasks]
        self._attempts.take(attempts)
        for attempt in attempts:
            if self._stop_asked or answered_at - asked_at > attempt.task.lease_seconds:
                attempt.reason = StopReason.YIELD  # too late: it goes back without a start
            self._jobs.begin(attempt)
        if not tasks:
            return True
        self._busy_queue = None if tasks[-1].limited else queue
        is_first = queue == self._refilled_queue
        self._attempts.refills = self._is_near and is_first and not tasks[-1].limited
        last = tasks[-1].resources
        self._met_exclusive |= last.exclusive
        return len(tasks) < count and not self._machine.may_follow(last)

    # ---- the standing claim ----

    def _leave_standing_claim(self) -> None:
        """Leaves a standing claim, if there is room for what it may bring, or will be."""
        count = self._claimable(self._busy_queue)
        for_ends = count <= 0 and self._can_refill()
        is_ready = not (self._unsure or self._stop_asked or self._machine.claiming.locked())
        if self._busy_queue is None or not (count > 0 or for_ends) or not is_ready:
            return
        if self._machine.standing is None:
            most = CLAIMED_PER_CALL_MAX if for_ends else count  # the ends say how many
            request = self._request(self._busy_queue, most)
            claim = StandingClaim(
                request,
                self._clock.monotonic,
                self._settled,
                for_ends=for_ends,
                idle_after=self._machine.tasks,
            )
            self._is_near = self._store.post_claim(claim)
            if self._is_near:
                self._machine.standing = claim
            else:
                self._busy_queue = None

    def _can_refill(self) -> bool:
        """Says whether each slot that becomes free may be given to the next task at once."""
        # Fewer are free than none, if jobs were adopted: then none come along.
        return self._attempts.slots == 0 and self._may_refill()

    def _may_refill(self) -> bool:
        """Says whether no task is passed over if ends bring the next of the queue."""
        is_well = self._health.text is None and not self._met_exclusive
        return self._attempts.refills and is_well and self._machine.is_untouched

    async def _withdraw(self) -> None:
        """Withdraws the machine's standing claim, which may be of another worker, and left with
        a store of that; one that is being carried out is awaited."""
        claim = self._machine.standing
        if claim is None:
            return
        if claim.withdraw():
            self._machine.standing = None
        else:
            await claim.wait()

    def _settled(self, claim: StandingClaim, tasks: requests.ClaimedTasks | None) -> None:
        """Begins what a standing claim brought, and leaves another."""
        self._machine.standing = None
        if self._is_over:  # this worker was killed: its leases lapse
            return
        self._unsure |= claim.is_unsure
        if tasks is None:
            self._busy_queue = None
            self.wake()
            return
        queue, count = claim.request.queue, claim.request.count
        is_short = self._begin(tasks, queue, count, claim.asked_at)
        if tasks:
            self.tell("tasks.claimed", count=len(tasks))
        if is_short and claim.is_first and not claim.for_ends and queue not in self._due:
            self._seen_through = queue
        if not claim.for_ends:  # else the ends still have their slots: see hear_freed
            self._leave_standing_claim()

    def _claimable(self, queue: str | None) -> int:
        """Returns how many tasks of a queue to take now; a host in trouble tries one when it is
        time. Only the queue whose tasks ends bring along has some claimed ahead of slots."""
        if self._machine.nodes <= 0:
            return 0  # somebody has all of them alone
        health, ahead = self._health, self._jobs.ahead
        # As much can be claimed while the other half of what may be leased is reported.
        most = min(CLAIMED_PER_CALL_MAX, (ahead.leases_max + 1) // 2)
        if health.text is not None:
            most = 1 if health.rest_seconds <= 0.0 else 0
        free = self._attempts.slots
        return min(free if queue == self._refilled_queue else free - ahead.count, most)

    def _request(self, queue: str, count: int) -> requests.ClaimRequest:
        free = self._machine.resources
        return requests.ClaimRequest(
            queue=queue,
            worker=self._attempts.worker,
            count=count,
            lease_seconds=self._settings.lease_seconds,
            free=offered_in(queue, free) if self._is_scoped else free,
            commands=self._abilities.commands,
            handlers=self._abilities.handlers,
            bare=self._abilities.bare,
        )

    async def _claim(self, queue: str, count: int) -> requests.ClaimedTasks:
        try:
            return await self._store.claim(self._request(queue, count))
        except Unavailable:
            self._unsure = True
            raise
        except NotFound:
            if not self._stop_asked:
                raise
            return (
                requests.ClaimedTasks()
            )  # it was on its way for longer than the worker's farewell

    async def _give_back_unknown(self) -> None:
        """Gives back tasks of a claim whose answer got lost, so that each is spared a lapse."""
        which = requests.TaskFilter(
            statuses=tuple(sorted(LEASED)), worker=self._attempts.worker
        )
        known = self._settings.slots + self._jobs.ahead.count - self._attempts.slots
        count_max = known + CLAIMED_PER_CALL_MAX
        held = await self._store.list_tasks(which, requests.KeysetPage(count=count_max))
        worker = self._attempts.worker
        unknown = [
            Holder(task_id=task.id, attempt=task.attempt, worker=worker)
            for task in held
            if (task.id, task.attempt) not in self._attempts
        ]
        if unknown:
            await self._store.report(
                [requests.Report(holder=holder, end=NEVER_STARTED) for holder in unknown]
            )
            self.tell("leases.given_back", count=len(unknown))
        self._unsure = False
