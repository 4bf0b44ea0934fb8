"""Stores side by side, driven by the same operations: a machine for hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.conformance import requests_drawn as drawn
from tests.conformance.door import Door
from tests.conformance.worlds import World
from tidewheel.api.tasks import HistoryEntry, Task
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    Amendment,
    Beat,
    Claimed,
    End,
    Ending,
    HeldLease,
    JobMessage,
    KeysetPage,
    QueueSettings,
    Report,
    Reported,
    Submitted,
    TaskFilter,
    UsageSample,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import FINAL, LEASED, Status
from tidewheel.errors import Refused

HALF_FREE = (Resources(cpu=2.5), Resources(cpu=1, memory_bytes=9, labels=frozenset({"x"})))


def needs_some(*statuses: Status) -> Any:
    """A rule for worlds in which some task has one of these statuses."""
    return precondition(lambda self: self.some(*statuses))


class Agreement(RuleBasedStateMachine):
    """Whatever is asked of them, all answer as the first one does."""

    def __init__(self, *worlds: World) -> None:
        super().__init__()
        self._worlds = worlds
        self._doors = [world.open() for world in self._worlds]
        self._views: list[Task] = []
        self._workers: list[str] = []
        self._alike = 0  # how often tasks that are alike were submitted

    def teardown(self) -> None:
        try:
            self._look_at_everything()
        finally:
            for world in self._worlds:
                world.close()

    def ask(self, operation: Callable[[Door], Any]) -> Any:
        """The one answer of all, after which all must look alike."""
        answers = [_answer(operation, door) for door in self._doors]
        self._compare(answers)
        pages = [
            _numberless(door.list_tasks(TaskFilter(), KeysetPage())) for door in self._doors
        ]
        self._compare(pages)
        self._views = pages[0]
        return answers[0]

    def _look_at_everything(self) -> None:
        seen = [_numberless(door.everything()) for door in self._doors]
        self._compare(seen)
        assert [door.verify() for door in self._doors] == [[] for _ in self._doors]

    def _compare(self, seen: list[Any]) -> None:
        for world, one in zip(self._worlds[1:], seen[1:], strict=True):
            agrees = world.agrees(one, seen[0])
            assert agrees, f"{world.kind} differs: {_difference(one, seen[0])}"

    def some(self, *statuses: Status) -> list[str]:
        """The tasks in these statuses."""
        return [view.id for view in self._views if view.status in statuses]

    def _pick(self, data: Any, *statuses: Status) -> str:
        """One of these, now and then any other, also one that is not there."""
        wanted = self.some(*statuses)
        if not wanted or data.draw(st.integers(0, 9)) == 0:
            return str(data.draw(drawn.ids))
        return str(data.draw(st.sampled_from(wanted)))

    def _edges(self, data: Any) -> list[tuple[str, str]]:
        waiting = self.some(Status.WAITING)
        ends = st.sampled_from(waiting) if data.draw(st.integers(0, 4)) else drawn.ids
        return list(data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=3)))

    def _worker(self, data: Any) -> str:
        return str(data.draw(st.sampled_from(self._workers)))

    def _holder(self, data: Any, *statuses: Status) -> Holder:
        """Mostly the true one; now and then another's or an old one."""
        task_id = self._pick(data, *statuses)
        known = {view.id: (view.owner, view.attempt) for view in self._views}
        worker, attempt = known.get(task_id, (None, 1))
        if worker is None or data.draw(st.integers(0, 9)) == 0:
            worker = self._worker(data)
        if data.draw(st.integers(0, 9)) == 0:
            attempt += data.draw(st.sampled_from([-1, 1]))
        return Holder(task_id=task_id, attempt=attempt, worker=worker)

    @initialize(tasks=drawn.graphs())
    def start(self, tasks: list[Any]) -> None:
        for name in ("one", "two"):
            self._workers.append(self.ask(lambda door, name=name: door.hire(name)))
        self.ask(lambda door: door.submit(tasks))

    # ---- clients ----

    @rule(batch=st.lists(drawn.tasks, min_size=1, max_size=4), atomic=st.booleans())
    def submit(self, batch: list[Any], atomic: bool) -> None:
        self.ask(lambda door: door.submit(batch, atomic=atomic))

    @rule(data=st.data())
    def submit_alike(self, data: Any) -> None:
        self._alike += 1
        tasks = data.draw(drawn.alike([f"alike-{self._alike}-{n}" for n in range(3)]))
        self.ask(lambda door: door.submit(tasks))

    @needs_some(Status.WAITING)
    @rule(data=st.data())
    def arm(self, data: Any) -> None:
        task_id = self._pick(data, Status.WAITING)
        self.ask(lambda door: door.arm(task_id))

    @needs_some(Status.WAITING)
    @rule(data=st.data(), amendment=drawn.amendments)
    def amend(self, data: Any, amendment: Amendment) -> None:
        task_id = self._pick(data, Status.WAITING)
        self.ask(lambda door: door.amend(task_id, amendment))

    @rule(tasks=drawn.graphs())
    def submit_more(self, tasks: list[Any]) -> None:
        self.ask(lambda door: door.submit(tasks, atomic=False))

    @needs_some(*set(Status) - FINAL)
    @rule(data=st.data(), which=st.none() | drawn.filters)
    def cancel(self, data: Any, which: TaskFilter | None) -> None:
        if which is not None:
            self.ask(lambda door: door.cancel_matching(which, 1))
        else:
            wanted = [self._pick(data, *Status), self._pick(data, *Status)]
            self.ask(lambda door: door.cancel(wanted))

    @needs_some(Status.WAITING)
    @rule(data=st.data())
    def add_edges(self, data: Any) -> None:
        new = self._edges(data)
        self.ask(lambda door: door.add_edges(new))

    @needs_some(Status.WAITING)
    @rule(data=st.data())
    def remove_edges(self, data: Any) -> None:
        old = self._edges(data)
        self.ask(lambda door: door.remove_edges(old))

    @rule(
        queue=drawn.queues, settings=drawn.settings, pause=st.sampled_from([None, True, False])
    )
    def configure(self, queue: str, settings: QueueSettings, pause: bool | None) -> None:
        if pause is None:
            self.ask(lambda door: door.configure_queue(queue, settings))
        else:
            self.ask(lambda door: door.pause_queue(queue, paused=pause))

    # ---- workers ----

    @precondition(lambda self: len(self._workers) < 4)
    @rule()
    def hire(self) -> None:
        self._workers.append(self.ask(lambda door: door.hire()))

    @precondition(lambda self: len(self._workers) == 4)
    @rule()
    def stop_worker(self) -> None:
        self._workers.append("worker-99")
        self.ask(lambda door: door.stop_worker(self._workers[2]))

    @needs_some(Status.READY)
    @rule(data=st.data(), queue=drawn.queues, count=st.integers(1, 4))
    def claim(self, data: Any, queue: str, count: int) -> None:
        self.claim_for(self._worker(data), queue, count)

    @needs_some(Status.READY)
    @rule(data=st.data(), free=st.sampled_from(HALF_FREE), commands=st.booleans())
    def claim_what_fits(self, data: Any, free: Resources, commands: bool) -> None:
        wanted = {"worker": self._worker(data), "free": free, "commands": commands}
        self.ask(lambda door: [held.task for held in door.take(4, **wanted)])

    @needs_some(Status.READY)
    @rule(data=st.data())
    def claim_by_id(self, data: Any) -> None:
        task_id, worker = self._pick(data, Status.READY), self._worker(data)
        self.ask(lambda door: door.claim_by_id(task_id, worker))

    @needs_some(Status.READY)
    @rule(data=st.data(), ends=st.lists(drawn.ends, min_size=1, max_size=4))
    def work(self, data: Any, ends: list[End]) -> None:
        """Claim some and end some of them, as most workers do most of the time."""
        worker, queue = self._worker(data), data.draw(drawn.queues)
        self.claim_for(worker, queue, count=4)
        held = [view for view in self._views if view.owner == worker and view.deadline_at]
        reports = [
            Report(holder=Holder(task_id=view.id, attempt=view.attempt, worker=worker), end=end)
            for view, end in zip(held, ends, strict=False)
        ]
        self.ask(lambda door: door.report(reports))

    def claim_for(self, worker: str, queue: str, count: int) -> None:
        self.ask(lambda door: [h.task for h in door.take(count, worker=worker, queue=queue)])

    @needs_some(*LEASED)
    @rule(data=st.data(), progress=st.sampled_from([None, 0.25, 1.0]))
    def beat(self, data: Any, progress: float | None) -> None:
        holder = self._holder(data, *LEASED)
        beat = Beat(task_id=holder.task_id, attempt=holder.attempt, progress=progress)
        self.ask(lambda door: door.heartbeat(holder.worker, [beat]))

    @needs_some(*LEASED)
    @rule(data=st.data(), ends=st.lists(drawn.ends, min_size=1, max_size=3))
    def end(self, data: Any, ends: list[End]) -> None:
        reports = [Report(holder=self._holder(data, *LEASED), end=end) for end in ends]
        self.ask(lambda door: door.report(reports))

    @needs_some(*LEASED)
    @rule(data=st.data(), end=drawn.ends)
    def end_one(self, data: Any, end: End) -> None:
        report = Report(holder=self._holder(data, *LEASED), end=end)
        self.ask(lambda door: door.report([report]))

    @rule(data=st.data(), end=drawn.ends)
    def end_too_late(self, data: Any, end: End) -> None:
        report = Report(holder=self._holder(data, *Status), end=end)
        self.ask(lambda door: door.report([report]))

    @needs_some(*LEASED)
    @rule(
        data=st.data(),
        first=st.sampled_from([1, 1, 2]),
        output=st.sampled_from([None, "half", "succeeded"]),
        started=st.booleans(),
        ends=st.booleans(),
    )
    def say(self, data: Any, first: int, output: str | None, started: bool, ends: bool) -> None:
        said = (
            JobMessage(number=first, text="a"),
            JobMessage(number=2, text="b", output=output),
        )
        report = Report(
            holder=self._holder(data, *LEASED),
            started=started,
            messages=said[first - 1 :],
            usage=(UsageSample(memory_bytes=7, cpu_percent=0.5),),
            end=End(ending=Ending.SUCCEEDED) if ends else None,
        )
        self.ask(lambda door: door.report([report]))

    @needs_some(*LEASED)
    @rule(data=st.data())
    def adopt(self, data: Any) -> None:
        holder, heir = self._holder(data, *LEASED), self._worker(data)
        self.ask(lambda door: door.adopt(holder, heir))

    # ---- time and monitors ----

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0, 60.0]))
    def wait(self, seconds: float) -> None:
        for world in self._worlds:
            world.clock.advance(seconds)

    @needs_some(*LEASED)
    @rule(
        seconds=st.sampled_from([0.0, 9.0, 21.0]),
        count=st.integers(1, 4),
        watched=st.sampled_from([1.0, 10.0, 1e9, 1e9]),
    )
    def lapse(self, seconds: float, count: int, watched: float) -> None:
        self.wait(seconds)
        self.ask(lambda door: sorted(door.lapse(count, watched)))

    @needs_some(*FINAL)
    @rule(seconds=st.sampled_from([0.0, 10.0, 60.0]), which=st.lists(drawn.ids, max_size=3))
    def retire(self, seconds: float, which: list[str]) -> None:
        expired = self.ask(lambda door: [view.id for view in door.expired_tasks(seconds, 3)])
        self.ask(lambda door: door.delete([*which, *expired]))

    # ---- looking ----

    @rule(which=drawn.filters, queue=drawn.queues, count=st.integers(1, 4))
    def look(self, which: TaskFilter, queue: str, count: int) -> None:
        self.ask(lambda door: door.list_tasks(which, KeysetPage(count=count)))
        self.ask(lambda door: door.peek(queue, count))
        self.ask(lambda door: door.queues())

    @needs_some(*LEASED)
    @rule(data=st.data())
    def look_at_leases(self, data: Any) -> None:
        worker = self._worker(data)
        self.ask(lambda door: door.cancelling(worker))
        self.ask(lambda door: door.orphans("tern", "boot-1"))


def _answer(operation: Callable[[Door], Any], door: Door) -> Any:
    try:
        return _numberless(operation(door))
    except Refused as refused:
        return (type(refused).__name__, refused.code, str(refused))


def _numberless(thing: Any) -> Any:
    """The same with every seq forgotten: stores may skip numbers, which mean only an order."""
    match thing:
        case Refused():
            thing = (type(thing).__name__, thing.code, str(thing))
        case list():
            thing = [_numberless(one) for one in thing]
        case dict():
            thing = {name: _numberless(one) for name, one in thing.items()}
        case Task() | HistoryEntry() | Claimed():
            thing = replace(thing, seq=0)
        case Submitted() | Reported():
            thing = replace(thing, refused=_numberless(thing.refused))
        case HeldLease():
            thing = replace(thing, task=_numberless(thing.task))
    return thing


def _difference(one: Any, memory: Any) -> str:
    """The first place where two answers differ."""
    if isinstance(one, list) and isinstance(memory, list) and len(one) == len(memory):
        pairs = zip(one, memory, strict=True)
        return next(_difference(a, b) for a, b in pairs if a != b)
    if isinstance(one, dict) and isinstance(memory, dict) and one.keys() == memory.keys():
        name = next(name for name in one if one[name] != memory[name])
        return f"{name}: {_difference(one[name], memory[name])}"
    if is_dataclass(one) and type(one) is type(memory):
        names = [field.name for field in fields(one)]
        name = next(name for name in names if getattr(one, name) != getattr(memory, name))
        return f"{one} has {name} {getattr(one, name)!r}, memory {getattr(memory, name)!r}"
    return f"{one!r}, memory {memory!r}"
