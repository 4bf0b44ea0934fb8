"""One simulated world of a run: schedulers, workers, monitors, an operator, and faults.

Scenario 6. Schedulers, workers and monitors are the real services, the run is a random cycling
workflow. For two minutes processes die, stand still and lose the store; what they asked for is
lost, done twice or done late. Then nothing fails any more, and the run must come to what it
would have come to without all that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from random import Random

from tests.kit.campaign import Outcome
from tests.kit.event_log import EVENTS_KEPT
from tests.kit.faults import QUIET_AT
from tests.kit.inhabitants import Inhabitant, Make, monitor, surroundings, worker
from tests.kit.invariants import BrokenInvariant, Call
from tests.kit.machines import KILLED, TERMINATED, Machine
from tests.kit.network import Link, run_at_once
from tests.kit.processes import Process
from tests.kit.rules.executions import Execution
from tests.kit.rules.steps import Step
from tests.kit.sched_invariants import fingerprint
from tests.kit.simulated_world import (
    KEEP_FOR_EVER,
    Beginning,
    SimulatedWorld,
    live_through,
)
from tests.sim.joint_case import Flow
from tests.sim.joint_ending import check_ending
from tests.sim.joint_judge import JointInvariants
from tests.sim.joint_people import Operator, Place, Scheduler, Seat, Watch
from tidewheel.config import MonitorSettings, OnStop, WorkerSettings
from tidewheel.core.operator.definition import NewRun
from tidewheel.core.operator.requests import RunBatch, StoredRun
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import Abilities, End, QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.core.sched.persistence import rebuild
from tidewheel.scheduler.run_engine import RunEngine
from tidewheel.services.service import Service

HORIZON = QUIET_AT + 2_000.0  # by then the run must have ended
IDLE_SECONDS_MAX = 200.0  # of jobs, retries, leases and stalls the longest, and some more
EPOCHS_MAX = 200  # nobody can be killed, or carry on a stalled run, that often
WILD_SHARE = 0.2  # of the worlds have an operator who knows no restraint


def run_schedule(seed: int, *, calm: bool = False, events_kept: int = EVENTS_KEPT) -> Outcome:
    """Live through one world; ``calm`` switches every fault off."""

    def make(loop: asyncio.AbstractEventLoop) -> RunWorld:
        chance = Random(f"joint {seed}")
        return RunWorld(
            Beginning(seed=seed, chance=chance, loop=loop, calm=calm, events_kept=events_kept)
        )

    return live_through(make)


def _differing(told: dict[str, object], known: dict[str, object]) -> str:
    """What is stored and what is known, without what is the same."""
    found = []
    for (key, stored), held in zip(told.items(), known.values(), strict=True):
        if isinstance(stored, list) and isinstance(held, list):
            more = [one for one in stored if one not in held]
            less = [one for one in held if one not in stored]
            found.append(f"{key} stored: {more}, known: {less}")
        elif stored != held:
            found.append(f"{key} stored: {stored}, known: {held}")
    return "; ".join(found)


class RunMachine(Machine):
    """A host on which a job that did not end by itself leaves nothing to be adopted.

    Else how it ends would depend on whether its worker could tell that it had stopped it.
    """

    def ends(self, execution: Execution, end: End) -> None:
        super().ends(execution, end)
        if end in (TERMINATED, KILLED):
            self.jobs.pop((execution.task.seq, execution.task.attempt), None)


class RunWorld(SimulatedWorld):
    """A run, those who drive it and work for it, and an operator."""

    def __init__(self, beginning: Beginning) -> None:
        super().__init__(beginning)
        self._flow = Flow(self._seed, self._chance)
        self._judge: JointInvariants
        self.settle(
            JointInvariants(
                self._ground.database_now,
                retention_seconds=KEEP_FOR_EVER,
                gone=self.is_gone,
                on_step=self.on_step,
            )
        )
        self._changed_at = 0.0  # when the run or its queue last did
        self._settled_at: float | None = None  # when the operator had let everything go

    def outcome(self) -> Outcome:
        status, text = self._view().status, self._flow.definition.text
        return replace(super().outcome(), end=status, case=text)

    def counts(self) -> dict[str, int]:
        tasks = self._judge.facts.tasks
        attempts = sum(one.attempt for one in tasks.values())
        return {
            "submissions": len(tasks),
            "attempts": attempts,
            "schedulers": self._judge.epoch,
        }

    # ---- who lives here ----

    def populate(self) -> Coroutine[object, object, None]:
        run = self._create_run()
        scene, chance = self._scene, self._chance
        machines = [
            RunMachine(f"machine-{one}", self._judge.executions, self._flow.script, self.breaks)
            for one in range(chance.randint(1, 3))
        ]
        schedulers = [
            Inhabitant(f"scheduler-{one}", scene, self._scheduler(run.number, machines[0]))
            for one in range(chance.randint(1, 3))
        ]
        workers = [
            self._worker(one, run.queue, machines) for one in range(chance.randint(1, 3))
        ]
        watching = MonitorSettings(interval_seconds=chance.choice((2.0, 3.0)))
        monitors = [
            Inhabitant(f"monitor-{one}", scene, monitor(scene, watching))
            for one in range(chance.randint(1, 2))
        ]
        # Schedulers are what is new here: they are struck more often.
        self._inhabitants = [*schedulers, *schedulers, *workers, *monitors]
        for inhabitant in (*schedulers, *workers, *monitors):
            self._loop.call_later(chance.random() * 2.0, inhabitant.begins)
        process = scene.new_process("operator")
        link = self._network.link(process, mortal=False)
        tasks = sorted({f"{point}/{name}" for point, name in self._flow.case.outcomes})
        place = Place(process, link.store, Random(chance.random()))
        return Operator(place, run, tasks, wild=self._judge.wild).run()

    def _create_run(self) -> RunView:
        definition = self._flow.definition
        new = NewRun(
            workflow="flow",
            definition=definition.digest,
            options=self._flow.options,
            lease_seconds=5.0,
        )
        self._network.execute(Call("world", "save_definition", (definition,), {}))
        run = self._network.execute(Call("world", "create_run", (new,), {}))
        assert isinstance(run, RunView)
        lease_seconds = self._chance.choice((5.0, 12.0, 60.0))
        settings = QueueSettings(
            lease_seconds=lease_seconds, fence_kill=self._chance.choice((True, False))
        )
        self._network.execute(Call("world", "configure_queue", (run.queue, settings), {}))
        self._judge.watch(run.number, self._flow.case.graph, self._ground.database_now)
        self._judge.on_batch = self._on_batch
        self._judge.wild = self._chance.random() < WILD_SHARE
        return run

    def _scheduler(self, number: int, machine: Machine) -> Make:
        lease_seconds = self._chance.choice((4.0, 10.0))
        watch = Watch(is_over=self._is_over, told=self._told)

        def make(process: Process, link: Link) -> Service:
            seat = Seat(
                process=machine.new_process(process),
                is_alive=machine.is_alive,
                lease_seconds=lease_seconds,
            )
            around = surroundings(process, self._scene)
            return Scheduler(link.store, number, seat, watch, around)

        return make

    def _worker(self, number: int, queue: str, machines: list[RunMachine]) -> Inhabitant:
        chance = self._chance
        settings = WorkerSettings(
            name=f"worker-{number}",
            queues=(queue,),
            slots=chance.choice((1, 3, 100)),
            poll_seconds=chance.choice((5.0, 15.0)),
            capacity=Resources(cpu=100.0),
            on_stop=chance.choice((OnStop.YIELD, OnStop.DRAIN)),
            grace_seconds=chance.choice((2.0, 8.0)),
        )
        machine = machines[number % len(machines)]
        make = worker(self._scene, settings, Abilities(), machine)
        return Inhabitant(settings.name, self._scene, make, machine)

    # ---- what happens ----

    def on_people_done(self, living: asyncio.Task[None]) -> None:
        super().on_people_done(living)
        if not living.cancelled():
            self._settled_at = self._ground.database_now()

    def _told(self, engine: RunEngine) -> None:
        """P16: what is stored is what the scheduler has in mind, as long as it is the last."""
        epoch, batch = engine.lease.epoch, engine.lease.batch
        if (epoch, batch) not in self._judge.told_batches:
            seen = f"batch {batch} of epoch {epoch}"
            self.breaks(BrokenInvariant("P21 people are told what is stored", seen))
        if (epoch, batch) == (self._judge.epoch, self._judge.batch):
            stored: StoredRun = run_at_once(self._store.read_run(1))  # type: ignore[assignment]
            again = rebuild(engine.pool.plan, stored.changes, self._store.past(1))
            told, known = fingerprint(again), fingerprint(engine.pool)
            if told != known:
                self.breaks(BrokenInvariant("P16 all of it is stored", _differing(told, known)))

    def _view(self) -> RunView:
        return run_at_once(self._store.run(1))  # type: ignore[return-value]

    def _is_over(self, run: RunView) -> bool:
        """A stalled run is carried on as long as somebody may let go of something."""
        if run.status == "error":
            self.breaks(BrokenInvariant("D2 no step raises", run.reason))
        if run.owner is not None or run.ended_at is None:
            return False
        settled = self._settled_at is not None and run.ended_at > self._settled_at
        return run.status == "completed" or (run.status == "stalled" and settled)

    def is_done(self) -> bool:
        return self._is_over(self._view()) and self.is_quiet()

    def never_ends(self) -> BrokenInvariant | None:
        now = self._loop.time()
        idle = now > max(self._changed_at, QUIET_AT) + IDLE_SECONDS_MAX
        if not (idle or now > HORIZON or self._judge.epoch > EPOCHS_MAX):
            return None
        return BrokenInvariant("D2 the run comes to its end", self._state())

    def _state(self) -> str:
        live = [f"{one.id} {one.status}" for one in self._judge.facts.live.values()]
        view = self._view()
        return f"{view.status} ({view.reason}), not over: {live}"

    def check_ending(self) -> None:
        super().check_ending()
        check_ending(self._flow, self._judge, self._store, run_at_once)

    def _on_batch(self, batch: RunBatch) -> None:
        self._changed_at = self._loop.time()
        submitted = [task.id for task in batch.submissions]
        timers = [(*one,) for one in (*batch.timers, *batch.timers_gone)]
        self._ground.note(
            "  ", batch.number, batch.status, [*batch.consumed], submitted, timers
        )

    def on_step(self, step: Step) -> None:
        self._changed_at = self._loop.time()
        super().on_step(step)
