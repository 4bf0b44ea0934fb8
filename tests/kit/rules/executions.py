"""What really ran where, as the simulated machines saw it, against what the store believes.

T5 no worker runs more than it has room for · T16 one execution per attempt, every further one
explained by what ended the attempt before it, no end forgotten by a worker that lived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.kit.rules.facts import NEVER, Call, Facts, TaskFacts, demand
from tidewheel.core.queue.lease import Holder, LeaseAnswer
from tidewheel.core.queue.requests import Beat, Claimed, End, Report, Reported
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import Refused

Key = tuple[int, int]  # seq of the task, attempt

STOP_SECONDS_MAX = 1.0  # for a worker to act

# After these the job of the attempt may still run somewhere.
_UNHEARD = frozenset({"lapse", "lapse_out", "time_out"})


@dataclass(slots=True)
class Execution:
    """One job."""

    task: Claimed
    process: str
    said: list[str] = field(default_factory=list)
    running: bool = True
    ending: str = ""  # how it really ended
    adopted: bool = False
    told_at: float | None = None  # when its worker was told to stop it
    must_end_by: float = NEVER
    settled: bool = False  # its worker knows that the store was told, or does not want to be
    abandoned: bool = False  # its worker died
    stood_until: float = NEVER  # its worker could do nothing

    def __str__(self) -> str:
        return f"{self.task.id} attempt {self.task.attempt} on {self.process}"


@dataclass(slots=True)
class Offer:
    """What a worker process offers."""

    slots: int
    capacity: Resources


@dataclass(slots=True)
class Executions:
    """Every job of a schedule, by task and attempt."""

    facts: Facts
    clock: Callable[[], float]
    all: dict[Key, Execution] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)
    heard: set[tuple[str, int, int]] = field(default_factory=set)  # process, seq, attempt
    dead: set[str] = field(default_factory=set)  # processes

    def started(self, process: str, task: Claimed) -> Execution:
        """A runner started a job."""
        key = (task.seq, task.attempt)
        what = f"{task.id} attempt {task.attempt} on {process}"
        demand(key not in self.all, "T16 one execution per attempt", what)
        demand((process, *key) in self.heard, "T16 only what was claimed is executed", what)
        for earlier in self.all.values():
            if earlier.running and earlier.task.seq == task.seq:
                _check_overlap(task, earlier, self.facts.tasks[task.seq])
        execution = self.all[key] = Execution(task, process)
        running = [
            one.task.resources
            for one in self.all.values()
            if one.process == process and one.running and not one.adopted
        ]
        _check_room(process, self.offers[process], running)
        return execution

    def adopted(self, process: str, key: Key) -> None:
        """The store gave an attempt to another worker; its job goes on, if there is one."""
        if execution := self.all.get(key):
            fenced = execution.task.fence_kill
            demand(not fenced, "D4 a fenced job dies with its worker", f"{execution}")
            execution.process, execution.adopted = process, True
            # A request may be executed after its sender has died.
            execution.abandoned, execution.settled = process in self.dead, False

    def crashed(self, process: str) -> None:
        """Nobody will report the jobs of this process, unless they are adopted."""
        self.dead.add(process)
        for execution in self.all.values():
            if execution.process == process:
                execution.abandoned = True

    def stands_still(self, process: str, seconds: float) -> None:
        """The process can do nothing for a while."""
        until = self.clock() + seconds
        for execution in self.all.values():
            if execution.process == process and execution.running:
                execution.stood_until = max(execution.stood_until, until)

    def answered(self, call: Call, answer: object) -> None:
        """A process received the answer to a call."""
        if isinstance(answer, Refused):
            self._refused(call)
            return
        match call.operation:
            case "claim" | "claim_by_id":
                tasks = cast("list[Claimed]", answer if isinstance(answer, list) else [answer])
                self.heard.update((call.process, task.seq, task.attempt) for task in tasks)
            case "heartbeat":
                beats = cast("Sequence[Beat]", call.args[1])
                for beat, one in zip(beats, cast("list[LeaseAnswer]", answer), strict=True):
                    if one is not LeaseAnswer.GO_ON:
                        self._told_to_stop(call.process, beat, lost=one is LeaseAnswer.LOST)
            case "report":
                reports = cast("Sequence[Report]", call.args[0])
                for report, told in zip(reports, cast("list[Reported]", answer), strict=True):
                    if report.end is not None or told.refused is not None:
                        holder = report.holder
                        for job in self._of(call.process, holder.task_id, holder.attempt):
                            job.settled = True
            case _:
                pass

    def _refused(self, call: Call) -> None:
        """Who asked to adopt, perhaps again, is told that the attempt is over."""
        if call.operation == "adopt":
            holder = cast("Holder", call.args[0])
            for job in self._of(call.process, holder.task_id, holder.attempt):
                job.settled = True

    def ended(self, execution: Execution, end: End) -> None:
        """A job is over; if its worker was told to end it, in time."""
        execution.running, execution.ending = False, end.ending.value
        told_at = execution.told_at
        if told_at is None or execution.abandoned or execution.adopted:
            return
        if execution.stood_until < told_at:
            late = self.clock() - execution.must_end_by
            demand(
                late <= 0.0, "T11 a job is stopped when told", f"{execution}, {late:.1f} s late"
            )

    @property
    def quiet(self) -> bool:
        """Whether every job is over and every living worker knows what became of it."""
        return all(
            execution.abandoned or (execution.settled and not execution.running)
            for execution in self.all.values()
        )

    def check_end(self) -> None:
        """Once all is quiet: no job runs on, and no living worker kept an end to itself."""
        for execution in self.all.values():
            if execution.abandoned:
                continue
            demand(not execution.running, "T11 no job outlives its task", str(execution))
            demand(execution.settled, "T16 a living worker reports every end", str(execution))

    def _told_to_stop(self, process: str, beat: Beat, *, lost: bool) -> None:
        for execution in self._of(process, beat.task_id, beat.attempt):
            execution.settled = execution.settled or lost
            grace = 0.0 if lost else execution.task.max_termination_seconds
            end_by = self.clock() + grace + STOP_SECONDS_MAX
            if execution.told_at is None or end_by < execution.must_end_by:
                execution.told_at, execution.must_end_by = self.clock(), end_by

    def _of(self, process: str, task_id: str, attempt: int) -> list[Execution]:
        return [
            execution
            for execution in self.all.values()
            if (execution.process, execution.task.id, execution.task.attempt)
            == (process, task_id, attempt)
        ]


def _check_overlap(task: Claimed, earlier: Execution, facts: TaskFacts) -> None:
    """A job starts while an earlier one of its task still runs."""
    attempt = earlier.task.attempt
    ended_by = facts.ended_by.get(attempt)
    what = f"{task.id} attempt {task.attempt} while {earlier} runs, ended by {ended_by}"
    demand(ended_by in _UNHEARD, "T16 a second execution has its reason", what)
    # Whoever stands still during the last lease ends no job before it does; nothing else is an
    # excuse, neither the death of a worker nor a clock that jumped (docs/reliability.md).
    stood = earlier.stood_until >= facts.granted_last[attempt]
    demand(not earlier.task.fence_kill or stood, "D4 a fenced job ends before its lease", what)


def _check_room(process: str, offer: Offer, running: Sequence[Resources]) -> None:
    cpu = sum(one.cpu for one in running)
    memory = sum(one.memory_bytes for one in running)
    gpu = sum(one.gpu for one in running)
    offered = offer.capacity
    alone, shared = _nodes_used(running, "")
    by_flavour = {one.flavour: _nodes_used(running, one.flavour) for one in offered.flavours}
    demand(
        len(running) <= offer.slots
        and cpu <= offered.cpu + 1e-6
        and memory <= offered.memory_bytes
        and gpu <= offered.gpu
        and sum(one.buffer_bytes for one in running) <= offered.buffer_bytes
        and alone + max(shared, default=0) <= offered.nodes
        and all(
            by_flavour[one.flavour][0] + max(by_flavour[one.flavour][1], default=0) <= one.nodes
            for one in offered.flavours
        ),
        "T5 no worker runs more than it has room for",
        f"{process}: {len(running)} jobs of {offer.slots}, cpu {cpu}, gpu {gpu}, "
        f"{alone} nodes alone, {shared} shared, {by_flavour}, {offered}",
    )


def _nodes_used(running: Sequence[Resources], flavour: str) -> tuple[int, list[int]]:
    """How many nodes of a flavour ("": all) somebody has alone, and how many each shares."""
    alone, shared = 0, []
    for one in running:
        asked = next((f for f in one.flavours if f.flavour == flavour), None)
        if asked is not None:
            alone += asked.idle
            shared.append(asked.nodes - asked.idle)
        elif not flavour:
            alone += one.nodes if one.exclusive else 0
            shared.append(0 if one.exclusive else one.nodes)
    return alone, shared


def check_calm(tasks: Iterable[TaskFacts]) -> None:
    """Without faults nothing lapses and nothing is given back (scenario 3)."""
    for facts in tasks:
        seen = f"{facts.id}: {facts.signals}"
        lapsed = "lapse" in facts.signals or "lapse_out" in facts.signals
        demand(not lapsed, "scenario 3: no fault, no lapse", seen)
        demand("yield" not in facts.signals, "scenario 3: no fault, nothing given back", seen)
