"""Workers and monitors of a simulated world: real services that die and are started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.kit.faults import Blow, Strike
from tests.kit.ground import Ground
from tests.kit.invariants import BrokenInvariant, Invariants
from tests.kit.machines import Machine, SimulatedRunner
from tests.kit.network import Link, Network
from tests.kit.processes import Process
from tests.kit.rules.executions import Offer
from tidewheel.config import MonitorSettings, WorkerSettings
from tidewheel.core.queue.requests import Abilities
from tidewheel.services.monitor import Monitor
from tidewheel.services.service import Service, Surroundings
from tidewheel.worker.worker import Host, Worker

DOWN_SECONDS = (2.0, 20.0)  # at most: soon enough to adopt jobs, or too late for that
SKEW_SECONDS = 86_400.0
DRIFT = 0.002


@dataclass(slots=True, kw_only=True)
class Scene:
    """What everybody in a world shares."""

    ground: Ground
    network: Network
    judge: Invariants
    chance: Random
    skewed_clocks: bool
    processes: dict[str, Process] = field(default_factory=dict)

    def new_process(self, name: str) -> Process:
        offset, rate = 0.0, 1.0
        if self.skewed_clocks:
            offset = self.chance.uniform(-SKEW_SECONDS, SKEW_SECONDS)
            rate = self.chance.uniform(1.0 - DRIFT, 1.0 + DRIFT)
        process = Process(name, self.ground.loop, offset_seconds=offset, rate=rate)
        self.processes[name] = process
        return process


Make = Callable[[Process, Link], Service]


class Inhabitant:
    """One service that lives in one process after another."""

    def __init__(
        self, name: str, scene: Scene, make: Make, machine: Machine | None = None
    ) -> None:
        self.name = name
        self.machine = machine  # of a worker
        self._scene = scene
        self._make = make
        self._generation = 0
        self.link: Link | None = None
        self.service: Service | None = None

    @property
    def alive(self) -> bool:
        return self.link is not None and not self.link.process.dead

    def begins(self) -> None:
        """A new process starts the service."""
        self._generation += 1
        scene = self._scene
        process = scene.new_process(f"{self.name}.{self._generation}")
        link = self.link = scene.network.link(process)
        link.on_death = self.dies
        service = self.service = self._make(process, link)
        main = process.main = scene.ground.loop.create_task(service.run(), name=process.name)
        main.add_done_callback(lambda main: self._ended(process, main))
        scene.ground.note(process.name, "begins")

    def dies(self) -> None:
        """As after kill -9; it comes back as somebody else."""
        assert self.link is not None
        process = self.link.process
        process.dies()
        self._leaves(process, "dies")
        if self.machine is not None:
            tied = self._scene.chance.choice((True, False))
            self.machine.loses(process, tied=tied)

    def suffers(self, blow: Blow) -> None:
        """One strike against this process."""
        assert self.link is not None and self.service is not None
        process, disturbances = self.link.process, self._scene.judge.disturbances
        self._scene.network.disturb(self.link, blow.seconds)
        match blow.strike:
            case Strike.DIE:
                self.dies()
            case Strike.STAND_STILL:
                process.stands_still(blow.seconds)
                self._scene.judge.executions.stands_still(process.name, blow.seconds)
            case Strike.JUMP:
                process.clock_jumps(blow.seconds)
                disturbances.jumped.add(process.name)
            case Strike.PARTITION:
                self.link.cut_until = self._scene.ground.loop.time() + blow.seconds
            case Strike.STOP:
                process.when_it_goes_on(self.service.ask_stop)
            case Strike.OUTAGE:
                raise AssertionError("an outage strikes the store")

    def _ended(self, process: Process, main: asyncio.Task[None]) -> None:
        if process.dead or main.cancelled():
            return
        if error := main.exception():
            seen = f"{process.name} ended with {error!r}"
            self._scene.ground.on_broken(BrokenInvariant("D2 services survive", seen))
            return
        process.dead = True
        self._leaves(process, "ends")

    def _leaves(self, process: Process, how: str) -> None:
        scene = self._scene
        scene.ground.note(process.name, how)
        scene.judge.executions.crashed(process.name)
        down_seconds = scene.chance.random() * scene.chance.choice(DOWN_SECONDS)
        scene.ground.loop.call_later(down_seconds, self.begins)


def surroundings(process: Process, scene: Scene) -> Surroundings:
    """Time and chance of a simulated process."""
    return Surroundings(clock=process, chance=Random(scene.chance.random()))


def monitor(scene: Scene, settings: MonitorSettings) -> Make:
    """How a monitor is started."""
    return lambda process, link: Monitor(link.store, settings, surroundings(process, scene))


def worker(
    scene: Scene, settings: WorkerSettings, abilities: Abilities, machine: Machine
) -> Make:
    """How a worker is started on its machine."""

    def make(process: Process, link: Link) -> Service:
        scene.judge.executions.offers[process.name] = Offer(settings.slots, settings.capacity)
        host = Host(
            process=machine.new_process(process),
            is_alive=machine.is_alive,
            abilities=abilities,
            new_secret=lambda: "secret",
        )
        runner = SimulatedRunner(machine, process)
        return Worker(link.store, settings, [runner], host, surroundings(process, scene))

    return make
