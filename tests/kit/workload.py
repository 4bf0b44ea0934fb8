"""What clients ask for in a schedule, drawn from the seed: tasks of every kind, and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources, flavoured, nodes_of
from tidewheel.core.queue.retry import NO_DELAY, Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.task import Need, NewTask, TaskId

HANDLERS = ("sums", "sorts")
LABEL = "big"
TAGS = ("red", "green", "blue")
HALF = "half"  # the one custom output
COMPLETE = Resources(
    cpu=4.0,
    memory_bytes=4000,
    gpu=1,
    labels=frozenset({LABEL}),
    nodes=3,
    buffer_bytes=1000,
    flavours=(nodes_of("fast", 2, 2), nodes_of("wide", 1, 1)),
)

_RETRIES: tuple[RetryPolicy, ...] = (
    NO_DELAY,
    FixedDelays(seconds=(1.0, 4.0)),
    Exponential(first_seconds=1.0, factor=2.0, seconds_max=8.0, jitter=0.5),
)
_ASKED = (
    Resources(),
    Resources(),
    Resources(
        nodes=2,
        exclusive=True,
        flavours=flavoured([nodes_of("fast", 1, 1), nodes_of("wide", 1, 0)]),
    ),
    Resources(cpu=0.5),
    Resources(cpu=2.0, memory_bytes=1500),
    Resources(cpu=0.1, gpu=1),
    Resources(memory_bytes=2500, labels=frozenset({LABEL})),
    Resources(nodes=2, buffer_bytes=600),
    Resources(nodes=2, exclusive=True),
)


def draw_queues(chance: Random) -> dict[str, QueueSettings]:
    """Two or three queues, each with its own rules."""
    limits: tuple[tuple[Limit, ...], ...] = (
        (),
        (),
        (Limit(concurrency_max=3),),
        (Limit(key="*", concurrency_max=1),),
        (Limit(rate_max=2, rate_seconds=3.0), Limit(key="left", concurrency_max=2)),
    )
    return {
        f"queue-{number}": QueueSettings(
            aging=chance.choice((True, False)),
            fence_kill=chance.choice((True, False)),
            lease_seconds=chance.choice((3.0, 6.0, 10.0)),
            limits=chance.choice(limits),
        )
        for number in range(chance.choice((2, 3)))
    }


class Workload:
    """Makes tasks for one client."""

    def __init__(self, client: str, queues: Sequence[str], chance: Random) -> None:
        self.promised: set[str] = set()  # ids of tasks whose half is waited for
        self._client = client
        self._queues = queues
        self._chance = chance
        self._count = 0

    def draw(self, known: Sequence[str]) -> list[NewTask]:
        """A single task, or a graph of some; they may depend on tasks that are known."""
        chance = self._chance
        count = chance.choice((1, 1, 1, 2, 4, 6))
        tasks: list[NewTask] = []
        for _ in range(count):
            task = self._single()
            parents = [*(one.id for one in tasks), *known[-4:]]
            if parents and count > 1 and chance.choice((True, True, False)):
                task = replace(task, needs=self._needs(parents))
            tasks.append(task)
        if count > 1 and chance.choice((True, False)):
            tasks[-1] = self._joined_by_continuations(tasks)
        return tasks

    def draw_conflict(self, task: NewTask) -> NewTask:
        """The same id with another body."""
        return replace(task, priority=task.priority + 1)

    def _joined_by_continuations(self, tasks: list[NewTask]) -> NewTask:
        """The last task waits for the first, which says so itself (seed 003)."""
        last = tasks[-1]
        if not tasks[0].needs and all(need.task_id != tasks[0].id for need in last.needs):
            tasks[0] = replace(tasks[0], continuations=(last.id,))
        return last

    def _needs(self, parents: Sequence[str]) -> tuple[Need, ...]:
        chance = self._chance
        chosen = chance.sample(parents, min(len(parents), chance.choice((1, 1, 2, 3))))
        return tuple(self._need(parent) for parent in chosen)

    def _need(self, parent: str) -> Need:
        output = self._chance.choices(
            ("succeeded", HALF, "failed", "cancelled"), (70, 18, 7, 5)
        )[0]
        if output == HALF:
            self.promised.add(parent)
        return Need(task_id=TaskId(parent), output=output)

    def _single(self) -> NewTask:
        chance = self._chance
        self._count += 1
        kind = chance.choices(("spec", "command", "handler", "nothing"), (50, 20, 20, 10))[0]
        return NewTask(
            id=TaskId(f"{self._client}-{self._count}"),
            queue=chance.choice(self._queues),
            spec=f'{{"number": {self._count}}}' if kind == "spec" else None,
            command="true" if kind == "command" else None,
            handler=chance.choice(HANDLERS) if kind == "handler" else None,
            priority=chance.choice((0, 50, 50, 50, 60, 300)),
            delay_seconds=chance.choices((0.0, chance.random() * 20.0), (4, 1))[0],
            armed=chance.choices((True, False), (12, 1))[0],
            max_retries=chance.choice((0, 0, 1, 3)),
            retry=chance.choice(_RETRIES),
            max_lapses=chance.choice((0, 1, 5, 5)),
            timeout_seconds=chance.choice((None, None, None, 2.0 + chance.random() * 20.0)),
            max_termination_seconds=chance.choice((1.0, 5.0)),
            resources=chance.choice(_ASKED),
            unique_key=chance.choices((None, "one", "two"), (8, 1, 1))[0],
            limit_key=chance.choice((None, "left", "right")),
            tag=chance.choice(TAGS),
        )
