"""What a run of a joint simulation must have come to once all is quiet.

Restart ≡ no restart, and faults change nothing: submissions, ends, verdicts and what is left in
the pool are those of the oracle, which knows of no time, no process and no fault.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.kit.memory import MemoryStore
from tests.kit.rules.facts import BrokenInvariant, TaskFacts, demand
from tests.kit.scenario import compile_flow, word_of
from tests.kit.sched_invariants import check_invariants
from tests.sim.joint_case import Flow, read_id
from tests.sim.joint_judge import JointInvariants
from tests.sim.sched_oracle import (
    FAILED,
    NOTHING_BY_HAND,
    SUBMIT_FAILED,
    SUCCEEDED,
    ByHand,
    Key,
    Try,
)
from tests.sim.sched_oracle_comparing import disagreements
from tests.sim.sched_oracle_graphs import Case
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.persistence import PutMemory, rebuild
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import VerdictKind

# After these the attempt is made again.
AGAIN = ("lapse", "yield")


@dataclass(frozen=True)
class Core:
    """A pool read from the store, as `disagreements` asks for it."""

    core: TaskPool
    status: str

    @property
    def causes(self) -> list[Key]:
        return sorted(task.key for task in root_causes(self.core))

    @staticmethod
    def key(key: Key) -> Key:
        return key


@dataclass(frozen=True)
class Ended:
    """A run that is over, as `disagreements` asks for it."""

    case: Case
    run: Core
    submitted: Counter[Key]
    verdicts: Mapping[Key, str]
    by_hand: ByHand = NOTHING_BY_HAND

    @property
    def pool(self) -> dict[Key, str]:
        return {key: word_of(task) for key, task in self.run.core.tasks.items()}


def check_ending(
    flow: Flow, judge: JointInvariants, store: MemoryStore, run: Callable[..., Any]
) -> None:
    """``run`` gives the result of a coroutine of the store."""
    ended = _read(flow, judge, store, run)
    if judge.wild:
        return
    found = disagreements(ended)  # type: ignore[arg-type]  # it asks for no more than this
    demand(not found, "P4, P16 the run comes to what the oracle says", "; ".join(found))


def _read(
    flow: Flow, judge: JointInvariants, store: MemoryStore, run: Callable[..., Any]
) -> Ended:
    number = judge.run_number
    view, stored = run(store.run(number)), run(store.read_run(number))
    plan = build_index(compile_flow(flow.definition.text))
    pool = rebuild(plan, stored.changes, store.past(number))
    rows = [one for one in stored.changes if isinstance(one, PutMemory)]
    rows += run(store.forgotten(number))
    try:
        # Whatever ran may have run alone where operators are about.
        check_invariants(pool, {row.key for row in rows} if judge.wild else ())
    except AssertionError as broken:
        raise BrokenInvariant("P1–P10 the pool is sound", str(broken)) from broken
    verdicts = _verdicts(rows)
    tries = _tries(flow, judge, verdicts)
    return Ended(
        Case(flow.case.graph, {**flow.case.outcomes, **tries}),
        Core(pool, view.status),
        Counter({key: len(found) for key, found in tries.items()}),
        verdicts,
    )


def _verdicts(rows: list[PutMemory]) -> dict[Key, str]:
    found: dict[Key, str] = {}
    for row in rows:
        for _, verdict in row.verdicts:
            if verdict.kind is VerdictKind.PRUNED:
                found[row.key] = verdict.death.name.lower().replace("_", " ")
            elif verdict.kind is not VerdictKind.FINISHED:
                found[row.key] = str(verdict.kind)
    return found


def _tries(
    flow: Flow, judge: JointInvariants, verdicts: Mapping[Key, str]
) -> dict[Key, tuple[Try, ...]]:
    """What became of every submission, in the order of their numbers."""
    found: defaultdict[Key, list[TaskFacts]] = defaultdict(list)
    for facts in sorted(judge.facts.tasks.values(), key=lambda one: one.seq):
        found[read_id(facts.id).key].append(facts)
    tries = {}
    for key, submissions in found.items():
        ends = [_try(flow, judge, facts) for facts in submissions]
        tries[key] = tuple(ends)
        if judge.wild:
            continue
        killed = [one.id for one in submissions[:-1] if one.status == "cancelled"]
        demand(not killed, "D5 what was killed is not tried again", f"{killed}")
        retries = flow.case.graph.retries.get(key[1], (0, 0))
        removed = submissions[-1].status == "cancelled" or key in verdicts
        _check_retries(key, ends, retries, removed=removed)
    return tries


def _try(flow: Flow, judge: JointInvariants, facts: TaskFacts) -> Try:
    """How a submission really ended; unless it was killed or lost, as its script says."""
    one = read_id(facts.id)
    customs = tuple(dict.fromkeys(judge.said[facts.id]))
    asked = flow.job(one.key, one.submit)
    bad_end = FAILED if facts.id in judge.started else SUBMIT_FAILED
    for attempt in range(1, facts.attempt):
        by = facts.ended_by[attempt]
        demand(by in AGAIN, "T16 a further attempt has its reason", f"{facts.id}: {by}")
    last = facts.ended_by.get(facts.attempt, "")
    if facts.status == "cancelled" or last == "lapse_out":
        return Try(bad_end, customs)
    end = SUCCEEDED if facts.status == SUCCEEDED else bad_end
    seen = f"{facts.id} ended {end} with {customs}, its job {asked.end} with {asked.customs}"
    as_asked = end == asked.end and set(customs) == set(asked.customs)
    demand(as_asked, "T16 a submission ends as its job does", seen)
    return Try(end, customs)


def _check_retries(
    key: Key, ends: list[Try], retries: tuple[int, int], *, removed: bool
) -> None:
    """Tried again while there are retries left, and no longer (D5)."""
    left = Counter({FAILED: retries[0], SUBMIT_FAILED: retries[1]})
    seen = f"{key}: {[one.end for one in ends]}, retries {retries}"
    for one in ends[:-1]:
        demand(left[one.end] > 0, "D5 no job beyond the declared retries", seen)
        left[one.end] -= 1
        if one.end == FAILED:
            left[SUBMIT_FAILED] = retries[1]
    last = ends[-1].end
    demand(removed or last == SUCCEEDED or left[last] == 0, "D5 every retry is made", seen)
