"""Checks at each commit what a run and its queue promise each other, beside T1–T16.

P2, P19 an active task has exactly one submission that is not over, or whose end is still to be
heard · P3 nobody is submitted before its parents · P11 what jobs say reaches the scheduler
whole, once and in order · P17 submit numbers 1, 2, 3 … · P21 only the last epoch writes, each
batch once · P22 nothing of a run that was let go can be claimed. Nothing is asked of the code
that it judges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, cast

from tests.kit.invariants import Invariants
from tests.kit.memory.tables import Tables
from tests.kit.rules.facts import Call, demand
from tests.sim.joint_case import read_id
from tests.sim.sched_oracle import (
    BAD_ENDS,
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    Condition,
    Every,
    Graph,
    Key,
    Leaf,
)
from tidewheel.core.operator.requests import RunBatch, RunClaim, RunLease

ACTIVE_STAGES = (1, 2, 3)
# When these touched no task they told nobody anything.
SILENT = frozenset({"claim", "heartbeat", "take_back_lapsed_leases", "renew_run"})
REFUSALS_MAX = 10  # answers get lost, but not that many
WITHDRAWN = ("stopping", "stopped", "completed", "error")
WRITTEN, KNOWN, LOST = "written", "known", "lost"

Record = dict[str, Any]


class JointInvariants(Invariants):
    """The judge of one schedule with one run."""

    graph: Graph
    on_batch: Callable[[RunBatch], None]
    run_number = 0
    wild = False  # operators trigger, set and remove: P3 and the oracle know nothing of that

    def watch(self, number: int, graph: Graph, clock: Callable[[], float]) -> None:
        """From now on this run is judged, too."""
        self.run_number, self.graph = number, graph
        self._clock_now = clock
        self.submits: Counter[Key] = Counter()
        self.started: set[str] = set()  # tasks whose start was told
        self.said: defaultdict[str, list[str]] = defaultdict(list)  # their outputs or texts
        self.told_batches: set[tuple[int, int]] = set()  # epoch, number
        self.epoch = self.batch = 0
        self._deadline: float | None = None
        self._made: defaultdict[Key, set[str]] = defaultdict(set)
        self._events: dict[int, Record] = {}
        self._refusals: Counter[tuple[str, int]] = Counter()
        self._over: set[str] = set()  # tasks whose end was told
        self._words_seen: set[tuple[int, int, int]] = set()
        self._now_called: Call | None = None
        self._expected = ""

    # ---- what the world tells ----

    def begin(self, call: Call) -> None:
        super().begin(call)
        self._now_called = call
        self._expected = ""
        if call.operation in ("write_batch", "renew_run") and self.run_number:
            self._expected = self._right_to_write(call)

    def _right_to_write(self, call: Call) -> str:
        lease = cast("RunLease", call.args[0])
        if lease.epoch != self.epoch:
            return LOST
        if call.operation == "renew_run":
            return LOST if self._deadline is None else KNOWN
        number = cast("RunBatch", call.args[1]).number
        return WRITTEN if number == self.batch + 1 and self._deadline is not None else KNOWN

    def finish(self, answer: object) -> None:
        call = self._now_called
        super().finish(answer)
        assert call is not None
        if call.operation == "claim_run":
            self._claimed(cast("RunClaim", call.args[0]), cast("RunLease", answer))
        elif self._expected:
            seen = f"{call.process} wrote {call.args} at epoch {self.epoch}"
            demand(self._expected != LOST, "P21 an older epoch writes nothing", seen)
            lease = cast("RunLease", call.args[0])
            if call.operation == "renew_run":
                self._deadline = self._clock_now() + lease.lease_seconds

    def refused(self, why: Exception) -> None:
        call = self._now_called
        super().refused(why)
        if self._expected:
            assert call is not None
            seen = f"{call.process}, {call.operation} of {call.args[0]}: {why}"
            demand(self._expected == LOST, "P21 the last epoch may write", seen)
            lease = cast("RunLease", call.args[0])
            self._refusals[call.process, lease.epoch] += 1
            few = self._refusals[call.process, lease.epoch] <= REFUSALS_MAX
            demand(few, "P21 who lost a run leaves it", seen)

    def _claimed(self, claim: RunClaim, lease: RunLease) -> None:
        free = self._deadline is None or self._deadline <= self._clock_now()
        dead = claim.dead_epoch == self.epoch
        seen = f"{claim} while epoch {self.epoch} holds it until {self._deadline}"
        demand(free or dead, "P21 one scheduler for a run", seen)
        demand(lease.epoch == self.epoch + 1, "P21 every claim is a new epoch", f"{lease}")
        self.epoch = lease.epoch
        self._deadline = self._clock_now() + lease.lease_seconds

    # ---- one commit ----

    def on_commit(self, tables: Tables, touched: set[int]) -> None:
        super().on_commit(tables, touched)
        if not self.run_number:
            return
        call = self._now_called
        assert call is not None
        if call.operation in SILENT and not touched:
            return
        if self._expected == WRITTEN:
            self._write(tables, *cast("tuple[RunLease, RunBatch]", call.args))
        self._hear(tables, touched)
        row = tables.run[self.run_number]
        seen = f"{call.operation} left epoch {row['epoch']}, batch {row['batch']}"
        good = row["batch"] == self.batch and row["epoch"] - self.epoch in (0, 1)
        demand(good, "P21 each batch is written once, in order", seen)
        self._check_active(tables)

    def _write(self, tables: Tables, lease: RunLease, batch: RunBatch) -> None:
        self.on_batch(batch)
        self.batch = batch.number
        queue = f"run:{tables.run[self.run_number]['name']}"
        if batch.goes_on:
            self.facts.withheld.discard(queue)
        if batch.status in WITHDRAWN:
            self.facts.withheld.add(queue)  # P22
        self._deadline = None if batch.ends else self._clock_now() + lease.lease_seconds
        self.told_batches.add((lease.epoch, batch.number))
        ours = sorted(self._events)
        first = ours[: len(set(batch.consumed))]
        demand(
            sorted(set(batch.consumed)) == first,
            "P11 what happened is heard in order, once",
            f"batch {batch.number} consumed {list(batch.consumed)} of {ours}",
        )
        events = [self._events.pop(seq) for seq in first]
        left = [seq for seq in first if seq in tables.event]
        demand(not left, "P11 what was heard is gone", f"batch {batch.number} left {left}")
        for event in events:
            self._note_outputs(event)
        for task in batch.submissions:
            self._check_submission(task.id)

    def _hear(self, tables: Tables, touched: set[int]) -> None:
        """New events are those that had to be written, no others; nothing else vanishes."""
        gone = [seq for seq in self._events if seq not in tables.event]
        demand(not gone, "P11 nothing that happened is lost", f"events {gone} vanished")
        new = {seq: row for seq, row in tables.event.items() if seq not in self._events}
        self._events |= new
        ends = {row["task_id"]: row["status"] for row in new.values() if row["kind"] == "over"}
        wanted = {
            facts.id: facts.status
            for seq in touched
            if (facts := self.facts.tasks.get(seq)) is not None
            and facts.final
            and facts.id not in self._over
        }
        self._over |= wanted.keys()
        demand(ends == wanted, "P11 the end of a job is told once", f"{ends}, ended: {wanted}")
        self._hear_words(tables, [row for row in new.values() if row["kind"] == "said"])
        self.started |= {row["task_id"] for row in new.values() if row["kind"] == "started"}

    def _hear_words(self, tables: Tables, said: list[Record]) -> None:
        stored = [
            (key, row) for key, row in tables.message.items() if key not in self._words_seen
        ]
        self._words_seen.update(key for key, _ in stored)
        wanted = [
            (self.facts.tasks[seq].id, attempt, row["text"], row["output"])
            for (seq, attempt, _), row in stored
        ]
        told = [(row["task_id"], row["attempt"], row["text"], row["output"]) for row in said]
        demand(told == wanted, "P11 every word of a job is told", f"{told}, stored: {wanted}")
        for row in said:
            self.said[row["task_id"]].append(row["output"] or row["text"])

    # ---- the run and its queue ----

    def _check_active(self, tables: Tables) -> None:
        """P2, P19."""
        active = {
            f"{tables.run[run]['name']}/{point}/{name}/{row['submit']}"
            for (run, point, name), row in tables.pool.items()
            if row["stage"] in ACTIVE_STAGES
        }
        live = {
            facts.id
            for facts in self.facts.live.values()
            if not (self.wild and facts.status == "cancelling" and facts.id not in active)
        }
        unheard = {row["task_id"] for row in self._events.values() if row["kind"] == "over"}
        live |= unheard & active if self.wild else unheard
        seen = f"active in the pool only: {active - live}, in the queue only: {live - active}"
        demand(active == live, "P19 active is who has a job, and no other", seen)
        keys = Counter(read_id(facts.id).key for facts in self.facts.live.values())
        twice = [key for key, count in keys.items() if count > 1]
        demand(not twice, "P2 one job of a task at a time", f"{twice}")

    def _check_submission(self, task_id: str) -> None:
        """P3, P17."""
        one = read_id(task_id)
        self.submits[one.key] += 1
        last = self.submits[one.key]
        demand(one.submit == last, "P17 submit numbers without gap", f"{task_id}, not {last}")
        point, name = one.key
        for arrow in () if self.wild else self.graph.arrows:
            if arrow.suicide or arrow.condition is None:
                continue
            if name in arrow.targets and point in arrow.points:
                holds = self._holds(arrow.condition, point)
                demand(holds, "P3 nobody runs before its parents are done", task_id)

    def _holds(self, condition: Condition, point: int) -> bool:
        if not isinstance(condition, Leaf):
            held = [self._holds(term, point) for term in condition.terms]
            return all(held) if isinstance(condition, Every) else any(held)
        parent = condition.parent_point(point)
        if parent < self.graph.start:
            return not BAD_ENDS.issuperset(condition.outputs)
        names = condition.names
        if condition.source and self.graph.list is not None:
            if SUCCEEDED not in self._made[(parent, condition.source)]:
                return False
            names = tuple(one for one in names if self.graph.list.has((parent, one)))
        made = [not self._made[(parent, one)].isdisjoint(condition.outputs) for one in names]
        return all(made) if condition.every else any(made)

    def _note_outputs(self, event: Record) -> None:
        """What the scheduler knows from now on. An end counts, be it tried again or not."""
        if event["kind"] == "command":
            return
        made = self._made[read_id(event["task_id"]).key]
        if event["kind"] == "started":
            made |= {SUBMITTED, STARTED}
        elif event["kind"] == "said":
            made |= {SUBMITTED, STARTED, event["output"] or event["text"]}
        elif event["status"] == SUCCEEDED:
            made |= {SUBMITTED, STARTED, SUCCEEDED}
        else:
            made |= {FAILED, SUBMIT_FAILED}
