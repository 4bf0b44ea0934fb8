"""Who uses the queue in a simulation: clients, a regular, a craftsman, cancellers, operators.

They behave as good clients do: a call whose answer got lost is made again, unchanged, until
there is an answer. A refusal is an answer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import NamedTuple, TypeVar

from tests.kit.faults import QUIET_AT
from tests.kit.network import LATE_SECONDS_MAX
from tests.kit.processes import Process
from tests.kit.workload import TAGS, Workload
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    End,
    Ending,
    HostProcess,
    NewWorker,
    Report,
    TaskFilter,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import NewTask, TaskId, WorkerId
from tidewheel.errors import Refused, Unavailable
from tidewheel.ports.store import Store

T = TypeVar("T")

SUBMISSIONS_MAX = 12
LAST_SUBMISSION_AT = QUIET_AT - 10.0
SETTLED_AT = QUIET_AT + LATE_SECONDS_MAX + 1.0  # no late repetition undoes what is done now


@dataclass(slots=True)
class Knowledge:
    """What people tell each other: tasks that the store has acknowledged."""

    acknowledged: list[str] = field(default_factory=list)
    unarmed: list[str] = field(default_factory=list)
    # Those, and whatever a request that was given up may have stored after all.
    perhaps_unarmed: list[str] = field(default_factory=list)


class Place(NamedTuple):
    """Where somebody sits: a process with a link to the store, and dice."""

    process: Process
    store: Store
    chance: Random


class Person(ABC):
    """Somebody who uses the store."""

    def __init__(self, place: Place, knowledge: Knowledge) -> None:
        self.process, self.store, self.chance = place
        self.knowledge = knowledge

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Until the store answers; None if it refuses."""
        while True:
            try:
                return await call()
            except Refused:
                return None
            except Unavailable:
                await self.process.sleep(self.chance.random() * 2.0)

    @abstractmethod
    async def run(self) -> None:
        """What this person does until things are quiet."""

    async def wait_up_to(self, seconds: float) -> None:
        await self.process.sleep(self.chance.random() * seconds)


class Client(Person):
    """Submits tasks, some of them again, and arms those that it made unarmed."""

    def __init__(self, place: Place, knowledge: Knowledge, workload: Workload) -> None:
        super().__init__(place, knowledge)
        self._workload = workload
        self._mine: list[NewTask] = []

    async def run(self) -> None:
        count = self.chance.randint(4, SUBMISSIONS_MAX)
        pause = 2.0 * LAST_SUBMISSION_AT / count
        for _ in range(count):
            await self.wait_up_to(pause)
            await self._submit(self._workload.draw(self.knowledge.acknowledged))
            await self._something_odd()

    async def _submit(self, tasks: list[NewTask]) -> None:
        unarmed = [task.id for task in tasks if not task.armed]
        self.knowledge.perhaps_unarmed += unarmed
        answers = await self.insist(lambda: self.store.submit(tasks))
        if answers is None:
            return
        self._mine += tasks
        self.knowledge.acknowledged += [answer.id for answer in answers]
        self.knowledge.unarmed += unarmed

    async def _something_odd(self) -> None:
        odd = self.chance.choices(("no", "again", "conflict", "arm", "tie"), (10, 2, 1, 3, 2))[
            0
        ]
        if odd == "again" and self._mine:
            task = self.chance.choice(self._mine)
            await self.insist(lambda: self.store.submit([task]))
        elif odd == "conflict" and self._mine:
            other = self._workload.draw_conflict(self.chance.choice(self._mine))
            await self.insist(lambda: self.store.submit([other]))
        elif odd == "arm" and self.knowledge.unarmed:
            unarmed = TaskId(self.chance.choice(self.knowledge.unarmed))
            await self.insist(lambda: self.store.arm(unarmed))
        elif odd == "tie" and len(self.knowledge.unarmed) > 1:
            await self._tie()

    async def _tie(self) -> None:
        """Unarmed tasks wait, so they can still be tied to each other, and untied."""
        parent, child = map(TaskId, self.chance.sample(self.knowledge.unarmed, 2))
        await self.insist(lambda: self.store.add_edges([(parent, child)]))
        await self.wait_up_to(5.0)
        if self.chance.choice((True, False)):
            await self.insist(lambda: self.store.remove_edges([(parent, child)]))


class Regular(Person):
    """Asks for the same task over and over: once retention has removed it, it is a new one.

    Nothing is to be executed for it, so it has ended as soon as it is there.
    """

    def __init__(self, place: Place, knowledge: Knowledge, queue: str) -> None:
        super().__init__(place, knowledge)
        self._task = NewTask(id=TaskId("regular"), queue=queue)

    async def run(self) -> None:
        while _now() < LAST_SUBMISSION_AT:
            await self.wait_up_to(4.0)
            await self.insist(lambda: self.store.submit([self._task]))


class Canceller(Person):
    """Cancels tasks, by id or by tag, some of them long over."""

    async def run(self) -> None:
        pause = self.chance.choice((6.0, 20.0, 100.0))
        while _now() < QUIET_AT:
            await self.wait_up_to(pause)
            await self._cancel()

    async def _cancel(self) -> None:
        known = self.knowledge.acknowledged
        if self.chance.choices((True, False), (1, 6))[0]:
            which = TaskFilter(tag=self.chance.choice(TAGS))
            await self.insist(lambda: self.store.cancel_matching(which, 2))
        elif known:
            latest = known[-12:]
            chosen = self.chance.sample(latest, min(len(latest), self.chance.choice((1, 1, 2))))
            ids = [TaskId(task_id) for task_id in chosen]
            await self.insist(lambda: self.store.cancel(ids))


class Craftsman(Person):
    """A worker of a few lines, without heartbeats: takes a task by its id and ends it soon."""

    async def run(self) -> None:
        process = HostProcess(host="bench", boot_id="boot", pid=1, started=1.0)
        new = NewWorker(
            name="craftsman", process=process, queues=(), slots=1, capacity=Resources()
        )
        me = await self.insist(lambda: self.store.register_worker(new))
        assert me is not None, "every worker is welcome"
        while _now() < QUIET_AT:
            await self.wait_up_to(60.0)
            if self.knowledge.acknowledged:
                await self._take(TaskId(self.knowledge.acknowledged[-1]), me)

    async def _take(self, task_id: TaskId, me: WorkerId) -> None:
        task = await self.insist(lambda: self.store.claim_by_id(task_id, me))
        if task is None:  # not ready, or taken by ourselves without our knowing
            return
        holder = Holder(task_id=task_id, attempt=task.attempt, worker=me)
        await self.wait_up_to(1.0)
        report = Report(holder=holder, started=True, end=End(ending=Ending.SUCCEEDED))
        await self.insist(lambda: self.store.report([report]))


class Operator(Person):
    """Pauses queues for a while; in the end all are open and every task is armed."""

    def __init__(self, place: Place, knowledge: Knowledge, queues: Sequence[str]) -> None:
        super().__init__(place, knowledge)
        self._queues = queues

    async def run(self) -> None:
        while _now() < QUIET_AT - 20.0:
            await self.wait_up_to(60.0)
            queue = self.chance.choice(self._queues)
            await self._pause(queue, paused=True)
            await self.wait_up_to(15.0)
            await self._pause(queue, paused=False)
        await self.process.sleep(max(0.0, SETTLED_AT - _now()))
        for queue in self._queues:
            await self._pause(queue, paused=False)

    async def arm_all(self) -> None:
        for task_id in dict.fromkeys(self.knowledge.perhaps_unarmed):
            await self.insist(partial(self.store.arm, TaskId(task_id)))

    async def _pause(self, queue: str, *, paused: bool) -> None:
        await self.insist(partial(self.store.pause_queue, queue, paused=paused))


def _now() -> float:
    return asyncio.get_running_loop().time()
