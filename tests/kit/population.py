"""Who lives in a simulated world, drawn from the seed: workers, monitors and people."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from tests.kit.inhabitants import Inhabitant, Scene, monitor, worker
from tests.kit.machines import Machine, Script, write_script
from tests.kit.people import (
    Canceller,
    Client,
    Craftsman,
    Knowledge,
    Operator,
    Place,
    Regular,
)
from tests.kit.workload import COMPLETE, HALF, HANDLERS, Workload
from tidewheel.config import MonitorSettings, OnStop, WorkerSettings
from tidewheel.core.queue.requests import Abilities, Claimed
from tidewheel.core.queue.resources import Resources

MONITORS = 2
# Two workers can do everything, so that no task waits for somebody who does not exist.
COMPLETE_WORKERS = 2


def draw_monitors(scene: Scene, retention_seconds: float | None) -> list[Inhabitant]:
    """Two, whose batches may be as small as one."""
    settings = MonitorSettings(
        interval_seconds=scene.chance.choice((1.0, 3.0)),
        lapsed_per_pass_max=scene.chance.choice((1, 2, 500)),
        retention_seconds=retention_seconds,
        retention_interval_seconds=15.0,
    )
    return [
        Inhabitant(f"monitor-{number}", scene, monitor(scene, settings))
        for number in range(MONITORS)
    ]


def draw_workers(
    scene: Scene, queues: Sequence[str], machines: Sequence[Machine]
) -> list[Inhabitant]:
    """Four to eight, some of them on the same machine."""
    found = []
    for number in range(scene.chance.randint(4, 8)):
        complete = number < COMPLETE_WORKERS
        settings = _draw_worker(f"worker-{number}", queues, scene.chance, complete=complete)
        abilities = Abilities(
            commands=complete or scene.chance.choice((True, False)),
            handlers=frozenset(
                HANDLERS if complete else scene.chance.choice(((), HANDLERS[:1]))
            ),
        )
        machine = machines[number % len(machines)]
        make = worker(scene, settings, abilities, machine)
        found.append(Inhabitant(settings.name, scene, make, machine))
    return found


def _draw_worker(
    name: str, queues: Sequence[str], chance: Random, *, complete: bool
) -> WorkerSettings:
    order = chance.sample(queues, len(queues))
    less = Resources(cpu=chance.choice((0.5, 2.0)), memory_bytes=chance.choice((0, 2000)))
    return WorkerSettings(
        name=name,
        queues=tuple(order if complete else order[: chance.randint(1, len(order))]),
        slots=chance.choice((1, 2, 3, 4)),
        poll_seconds=chance.choice((5.0, 15.0, 30.0)),
        capacity=COMPLETE if complete else less,
        on_stop=chance.choice((OnStop.YIELD, OnStop.DRAIN)),
        grace_seconds=chance.choice((2.0, 8.0)),
    )


class People:
    """The clients, the canceller and the operator of one world."""

    def __init__(self, seed: int, scene: Scene, queues: Sequence[str]) -> None:
        self._seed = seed
        self._scene = scene
        self._queues = queues
        self._knowledge = Knowledge()
        self._workloads: list[Workload] = []

    async def live(self) -> None:
        """Until everybody is done; then every queue is open and every task armed."""
        clients = [self._client(number) for number in range(self._scene.chance.randint(2, 3))]
        canceller = Canceller(self._place("canceller"), self._knowledge)
        operator = Operator(self._place("operator"), self._knowledge, self._queues)
        craftsman = Craftsman(self._place("craftsman"), self._knowledge)
        regular = Regular(self._place("regular"), self._knowledge, self._queues[0])
        everybody = (*clients, canceller, operator, craftsman, regular)
        await asyncio.gather(*(person.run() for person in everybody))
        await operator.arm_all()

    def script(self, task: Claimed) -> Script:
        """What the job of a task does: it keeps what others were promised of it."""
        promised = {HALF for workload in self._workloads if task.id in workload.promised}
        return write_script(self._seed, task, tuple(promised))

    def _client(self, number: int) -> Client:
        place = self._place(f"client-{number}")
        workload = Workload(place.process.name, self._queues, place.chance)
        self._workloads.append(workload)
        return Client(place, self._knowledge, workload)

    def _place(self, name: str) -> Place:
        process = self._scene.new_process(name)
        link = self._scene.network.link(process, mortal=False)
        return Place(process, link.store, Random(self._scene.chance.random()))
