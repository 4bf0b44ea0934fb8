"""One simulated world of a run: schedulers, workers, monitors, an operator, and faults.

Scenario 6. Schedulers, workers and monitors are the real services, the run is a random cycling
workflow. For two minutes processes die, stand still and lose the store; what they asked for is
lost, done twice or done late. Then nothing fails any more, and the run must come to what it
would have come to without all that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random

from tests.sim.joint_case import Flow
from tests.sim.joint_ending import check_ending as check_run
from tests.sim.joint_judge import JointInvariants
from tests.sim.joint_people import Operator, Place, Scheduler, Seat, Watch
from tidewheel.config import MonitorSettings, OnStop, WorkerSettings
from tidewheel.core.runs.definition import NewRun
from tidewheel.core.runs.requests import Batch, StoredRun
from tidewheel.core.runs.views import RunView
from tidewheel.core.sched.invariants import fingerprint
from tidewheel.core.sched.records import rebuild
from tidewheel.core.tasks.requests import Abilities, QueueSettings
from tidewheel.core.tasks.resources import Resources
from tidewheel.core.tasks.steps import End
from tidewheel.services.scheduler.driving import Drive
from tidewheel.services.service import Service
from tidewheel.store.memory import MemoryStore
from tidewheel.testing.event_log import EVENTS_KEPT, EventLog
from tidewheel.testing.faults import QUIET_AT, Blow, FaultPlan, Strike, draw_faults
from tidewheel.testing.ground import Ground
from tidewheel.testing.inhabitants import Inhabitant, Make, Scene, monitor, surroundings, worker
from tidewheel.testing.invariants import BrokenInvariant, Call
from tidewheel.testing.machines import KILLED, TERMINATED, Machine
from tidewheel.testing.moving_loop import MovingLoop
from tidewheel.testing.network import Link, Network, run_at_once
from tidewheel.testing.processes import Process
from tidewheel.testing.rules.ending import check_ending as check_queue
from tidewheel.testing.rules.executions import Execution, check_calm
from tidewheel.testing.rules.steps import Step
from tidewheel.testing.virtual_time import Standstill

HORIZON = QUIET_AT + 2_000.0  # by then the run must have ended
IDLE_SECONDS_MAX = 200.0  # of jobs, retries, leases and stalls the longest, and some more
EPOCHS_MAX = 200  # nobody can be killed, or carry on a stalled run, that often
WILD_SHARE = 0.2  # of the worlds have an operator who knows no restraint
LOOK_SECONDS = 1.0
KEEP_FOR_EVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one schedule went."""

    seed: int
    broken: BrokenInvariant | None
    steps: int
    digest: str
    faults: Counter[str]
    tasks: int
    attempts: int
    epochs: int
    status: str
    seconds: float  # of virtual time
    last_events: list[str]
    flow: str


def run_schedule(seed: int, *, calm: bool = False, events_kept: int = EVENTS_KEPT) -> Outcome:
    """Live through one world; ``calm`` switches every fault off."""
    loop = MovingLoop()
    loop.set_exception_handler(lambda _loop, _context: None)  # answers that nobody fetched
    world = World(seed, loop, calm=calm, events_kept=events_kept)
    try:
        loop.run_until_complete(world.run())
    except Standstill as standstill:
        world.breaks(BrokenInvariant("D2 time goes on", str(standstill)))
    finally:
        loop.turns = 0
        _cancel_everything(loop)
        loop.close()
    return world.outcome()


def _cancel_everything(loop: asyncio.AbstractEventLoop) -> None:
    """Until nobody is left: while the last ones end, somebody may begin."""
    while left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


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


class World:
    """Everything that exists in one schedule."""

    def __init__(
        self, seed: int, loop: asyncio.AbstractEventLoop, *, calm: bool, events_kept: int
    ) -> None:
        self._seed = seed
        self._loop = loop
        self._broken: BrokenInvariant | None = None
        self._over: asyncio.Future[None] = loop.create_future()
        self._ground = Ground(loop=loop, log=EventLog(kept=events_kept), on_broken=self.breaks)
        chance = self._chance = Random(f"joint {seed}")
        drawn = draw_faults(chance)
        self._plan = FaultPlan(skewed_clocks=True) if calm else drawn
        self._flow = Flow(seed, chance)
        self._judge = JointInvariants(
            self._ground.database_now,
            retention_seconds=KEEP_FOR_EVER,
            gone=self._is_gone,
            on_step=self._on_step,
        )
        self._store = MemoryStore(
            self._ground.database_now,
            chance=Random(chance.random()).random,
            on_commit=self._judge.on_commit,
        )
        dice = Random(chance.random())
        self._network = Network(self._store, self._judge, self._plan, dice, self._ground)
        self._scene = Scene(
            ground=self._ground,
            network=self._network,
            judge=self._judge,
            chance=Random(chance.random()),
            skewed_clocks=self._plan.skewed_clocks,
        )
        self._inhabitants: list[Inhabitant] = []
        self._changed_at = 0.0  # when the run or its queue last did
        self._settled_at: float | None = None  # when the operator had let everything go

    async def run(self) -> None:
        """From the beginning to the end, or to the first broken invariant."""
        operator = self._populate()
        for blow in self._plan.blows:
            self._loop.call_at(blow.at, self._strike, blow)
        living = self._loop.create_task(operator.run())
        living.add_done_callback(self._operator_is_done)
        self._loop.call_later(LOOK_SECONDS, self._look)
        await self._over
        if self._broken is None:
            self._judge_ending()

    def breaks(self, broken: BrokenInvariant) -> None:
        """The first broken invariant ends the world."""
        self._broken = self._broken or broken
        if not self._over.done():
            self._over.set_result(None)

    def outcome(self) -> Outcome:
        log, facts = self._ground.log, self._judge.facts
        return Outcome(
            seed=self._seed,
            broken=self._broken,
            steps=log.count,
            digest=log.digest,
            faults=self._network.faults,
            tasks=len(facts.tasks),
            attempts=sum(one.attempt for one in facts.tasks.values()),
            epochs=self._judge.epoch,
            status=self._view().status,
            seconds=self._loop.time(),
            last_events=log.last(),
            flow=self._flow.definition.text,
        )

    # ---- who lives here ----

    def _populate(self) -> Operator:
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
        return Operator(place, run, tasks, wild=self._judge.wild)

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

    def _strike(self, blow: Blow) -> None:
        """Let the store have it, or one of those who live."""
        living = [one for one in self._inhabitants if one.alive]
        victim = living[int(blow.victim * len(living))] if living else None
        self._network.faults[blow.strike.value] += 1
        self._ground.note(victim.name if victim else "nobody", blow.strike.value, blow.seconds)
        if blow.strike is Strike.OUTAGE:
            self._network.goes_down(blow.seconds)
        elif victim is not None:
            victim.suffers(blow)

    def _operator_is_done(self, operator: asyncio.Task[None]) -> None:
        if operator.cancelled():
            return
        if (error := operator.exception()) is not None:
            self.breaks(BrokenInvariant("D2 operators are answered", repr(error)))
        self._settled_at = self._ground.database_now()

    def _told(self, drive: Drive) -> None:
        """P16: what is stored is what the scheduler has in mind, as long as it is the last."""
        epoch, batch = drive.lease.epoch, drive.lease.batch
        if (epoch, batch) not in self._judge.told_batches:
            seen = f"batch {batch} of epoch {epoch}"
            self.breaks(BrokenInvariant("P21 people are told what is stored", seen))
        if (epoch, batch) == (self._judge.epoch, self._judge.batch):
            stored: StoredRun = run_at_once(self._store.read_run(1))  # type: ignore[assignment]
            again = rebuild(drive.pool.plan, stored.changes, self._store.past(1))
            told, known = fingerprint(again), fingerprint(drive.pool)
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

    def _look(self) -> None:
        """Every second: whether all is done, or never will be."""
        if self._is_over(self._view()) and self._is_quiet():
            self._over.set_result(None)
        elif self._never_ends():
            self.breaks(BrokenInvariant("D2 the run comes to its end", self._state()))
        if not self._over.done():
            self._loop.call_later(LOOK_SECONDS, self._look)

    def _never_ends(self) -> bool:
        now = self._loop.time()
        idle = now > max(self._changed_at, QUIET_AT) + IDLE_SECONDS_MAX
        return idle or now > HORIZON or self._judge.epoch > EPOCHS_MAX

    def _is_quiet(self) -> bool:
        return not self._judge.facts.live and self._judge.executions.quiet

    def _state(self) -> str:
        live = [f"{one.id} {one.status}" for one in self._judge.facts.live.values()]
        view = self._view()
        return f"{view.status} ({view.reason}), not over: {live}"

    def _judge_ending(self) -> None:
        facts, executions = self._judge.facts, self._judge.executions
        try:
            check_queue(self._store, facts, executions, run_at_once)
            check_run(self._flow, self._judge, self._store, run_at_once)
            if self._plan.calm:
                check_calm(facts.tasks.values())
        except BrokenInvariant as broken:
            self.breaks(broken)

    def _is_gone(self, name: str) -> bool:
        return self._scene.processes[self._judge.workers[name]].dead

    def _on_batch(self, batch: Batch) -> None:
        self._changed_at = self._loop.time()
        submitted = [task.id for task in batch.submissions]
        timers = [(*one,) for one in (*batch.timers, *batch.timers_gone)]
        self._ground.note(
            "  ", batch.number, batch.status, [*batch.consumed], submitted, timers
        )

    def _on_step(self, step: Step) -> None:
        self._changed_at = self._loop.time()
        self._ground.note(
            "  ", step.seq, step.signal, step.to_status, step.attempt, step.worker
        )
