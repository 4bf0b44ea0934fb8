"""Checks T1–T16 of RELIABILITY.md at each commit of a memory store, and again at the end.

Theory of operation
-------------------
The world tells each call before the store executes it (``begin``), the store tells each
commit (``on_commit``), the world tells the answer (``finish``). From calls and rows of history
the checker keeps its own facts about every task; from those it works out beforehand what a
call must do, compares every touched row, lease, edge and message with it, and then the answer.
It shares no decision with the code it judges: not the table of statuses, not the order of
claims, not the rules of leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

from tests.kit.memory.tables import Tables
from tests.kit.rules.answers import Plan, Texts, plan_of
from tests.kit.rules.claims import note_starts
from tests.kit.rules.edges import Edges, check_edges
from tests.kit.rules.executions import Executions
from tests.kit.rules.facts import (
    NEVER,
    BrokenInvariant,
    Call,
    Disturbances,
    Facts,
    TaskFacts,
    demand,
)
from tests.kit.rules.rows import check_created, check_deleted, check_lease, check_row
from tests.kit.rules.steps import Step, Surroundings, apply_step, cancels, check_step
from tidewheel.core.operator.requests import RunBatch
from tidewheel.core.queue.task import NewTask

__all__ = ["BrokenInvariant", "Call", "Invariants"]

# When these touched no task they changed nothing else that is judged here.
NEVER_TOUCHING = frozenset({"claim", "heartbeat", "take_back_lapsed_leases"})
NOBODY = Call("nobody", "nothing", (), {})


def _created_by(call: Call) -> Iterable[NewTask]:
    """The tasks that a client, or a scheduler for its run, asks for."""
    if call.operation == "write_batch":
        return cast("RunBatch", call.args[1]).submissions
    return cast("Iterable[NewTask]", call.args[0]) if call.operation == "submit" else ()


class Invariants:
    """The judge of one schedule."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        retention_seconds: float,
        gone: Callable[[str], bool],
        on_step: Callable[[Step], None],
    ) -> None:
        self.facts = Facts()
        self.executions = Executions(self.facts, clock)
        self.workers: dict[str, str] = {}  # which process registered as which worker
        self._clock = clock
        self._retention_seconds = retention_seconds
        self.disturbances = Disturbances()
        self._around = Surroundings(self.facts, gone, self._disturbed_until, self.disturbances)
        self._on_step = on_step
        self._edges = Edges()
        self._texts: Texts = {}
        self._call = NOBODY
        self._plan = Plan()
        self._history_seen = 0
        self._messages_seen = 0
        self._rows: dict[int, dict[str, Any]] = {}

    # ---- what the world tells ----

    def begin(self, call: Call) -> None:
        """The store is about to execute a call."""
        self._call = call
        self._plan = plan_of(call, self.facts, self._texts, self._clock())

    def finish(self, answer: object) -> None:
        """It was executed, and answered this."""
        if self._plan.refused:
            demand(False, "T12 what cannot be is refused", f"{self._call} was accepted")
        if self._plan.check is not None:
            self._plan.check(answer)
        if self._call.operation == "register_worker":
            self.workers[cast("str", answer)] = self._call.process
        self._call = NOBODY

    def refused(self, why: Exception) -> None:
        """It was refused; nothing has changed."""
        demand(
            self._plan.refused is not False,
            "T12 what was accepted once is accepted again",
            f"{self._call.operation} by {self._call.process}: {why!r}",
        )
        self._call = NOBODY

    def on_commit(self, tables: Tables, touched: set[int]) -> None:
        """Compare everything a commit touched with what it had to be."""
        call, plan = self._call, self._plan
        demand(call is not NOBODY, "D3 no change without a call", f"tasks {sorted(touched)}")
        self.facts.note_settings(call)
        if not touched and not plan.messages and call.operation in NEVER_TOUCHING:
            return
        self._note_messages(tables, plan)
        for started, begun_at in plan.starts.items():
            self.facts.tasks[started].started_at = begun_at
        steps = self._new_steps(tables)
        cancelled = [
            seq for step in steps if (seq := self._step(step, tables, call)) is not None
        ]
        if call.operation == "claim" and plan.claims:
            queue = self.facts.tasks[plan.claims[0]].asked.queue
            note_starts(queue, plan.claims, self.facts, self._clock())
        for facts, beat in plan.renewals:
            facts.granted_until = self._clock() + facts.lease_seconds
            facts.progress = facts.progress if beat.progress is None else beat.progress
        for seq in touched:
            self._check_task(tables, seq)
        demand(
            len(tables.task) == len(self.facts.seq_of),
            "T13 nothing vanishes",
            f"{len(tables.task)} tasks are stored, {len(self.facts.seq_of)} are known",
        )
        children = self._edges.note(tables.edge, call)
        check_edges(self._edges, self.facts, touched | children, cancelled)

    # ---- one commit ----

    def _disturbed_until(self, worker: str) -> float:
        return self.disturbances.until.get(self.workers[worker], NEVER)

    def _note_messages(self, tables: Tables, plan: Plan) -> None:
        count = len(tables.message) - self._messages_seen
        self._messages_seen = len(tables.message)
        if count <= 0 and not plan.messages:  # less are left where tasks were deleted
            return
        new = list(islice(reversed(tables.message.items()), max(0, count)))[::-1]
        stored = [(*key, row["text"], row["output"]) for key, row in new]
        demand(
            stored == plan.messages,
            "P11 messages in order, without gaps, of the owner alone",
            f"stored {stored}, accepted {plan.messages}",
        )
        for seq, attempt, number, text, output in plan.messages:
            facts = self.facts.tasks[seq]
            facts.messages = number
            self._texts.setdefault((seq, attempt), []).append(text)
            if output is not None:
                facts.outputs.add(output)

    def _new_steps(self, tables: Tables) -> list[Step]:
        latest = tables.number.get("history", 0)
        numbers = range(self._history_seen + 1, latest + 1)
        self._history_seen = latest
        return [Step._make(tables.history[n]) for n in numbers if n in tables.history]

    def _step(self, step: Step, tables: Tables, call: Call) -> int | None:
        """Take in one row of history; the seq, if it was cancelled by a cascade."""
        self._on_step(step)
        demand(
            step.at == self._clock(), "T7 the database's clock alone", f"{step} at {step.at}"
        )
        if step.signal is None:
            self._create(step, tables, call)
            return None
        facts = self.facts.tasks[step.seq]
        check_step(facts, step, call, self._around)
        row = tables.task.get(step.seq)
        apply_step(facts, step, row["due_at"] if row else None)
        self.facts.file(facts)
        if step.signal == "adopt":
            self.executions.adopted(call.process, (step.seq, step.attempt))
        by_cascade = step.signal == "cancel" and not cancels(call, facts)
        return step.seq if by_cascade else None

    def _create(self, step: Step, tables: Tables, call: Call) -> None:
        row = tables.task[step.seq]
        asked = next((task for task in _created_by(call) if task.id == row["id"]), None)
        demand(asked is not None, "T13 stored as asked", f"{row['id']} was not asked for")
        assert asked is not None
        facts = TaskFacts(
            seq=step.seq, asked=asked, created_at=step.at, armed=asked.armed, ready_at=step.at
        )
        facts.status = step.to_status
        facts.due_at = step.at + asked.delay_seconds if asked.delay_seconds > 0 else None
        check_created(facts, row)
        demand(asked.id not in self.facts.seq_of, "T12 one task for one id", asked.id)
        if asked.unique_key is not None:
            key = (asked.queue, asked.unique_key)
            demand(key not in self.facts.keys, "T12 one live task for one unique key", f"{key}")
            self.facts.keys[key] = step.seq
        self.facts.seq_of[asked.id] = step.seq
        self.facts.tasks[step.seq] = facts
        self.facts.file(facts)

    def _check_task(self, tables: Tables, seq: int) -> None:
        facts = self.facts.tasks.get(seq)
        demand(facts is not None, "T1 no row without history", f"task {seq}")
        assert facts is not None
        row = tables.task.get(seq)
        if row is None:
            self._delete(facts)
            return
        check_row(facts, row, self._rows.get(seq))
        check_lease(facts, tables.lease.get(seq))
        self._rows[seq] = row

    def _delete(self, facts: TaskFacts) -> None:
        demand(
            self._call.operation == "delete_tasks", "T13 only retention removes", f"{facts.id}"
        )
        age = self._clock() - facts.ended_at
        check_deleted(facts, self.facts, age, self._retention_seconds)
        for edge in self._edges.out_of.get(facts.seq, ()):
            child = self.facts.tasks[edge[1]]
            demand(child.final, "T13 kept while a child waits", f"{facts.id} for {child.id}")
        del self.facts.seq_of[facts.id]
        self._rows.pop(facts.seq, None)
