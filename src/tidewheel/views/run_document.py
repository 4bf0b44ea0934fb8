"""Everything about one run: how far each point is, what is active, what keeps it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.pool import FlowState, RunStatus
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.runahead import next_point
from tidewheel.core.sched.stall import root_causes
from tidewheel.core.sched.task_state import AtomValue, Key, PooledTask, PoolState, VerdictKind
from tidewheel.views.run_facts import Document, option_facts, run_facts
from tidewheel.views.snapshot import RunSnapshot, due_times
from tidewheel.views.status_text import DONE, FUTURE, STATES, words_of
from tidewheel.views.why import reason_document, stall_document, waits
from tidewheel.vocabulary import time_text

POINTS_MAX = 1_000  # shown of a run that has more
TASKS_MAX = 1_000  # of any list
POINTS_TO_GO_MAX = 1_000  # counted up to the stop point

Submissions = Mapping[tuple[str, str], Sequence[SubmissionView]]


def run_document(looked: RunSnapshot, submissions: Submissions) -> Document:
    """The run, its progress point by point, and what a person should know."""
    known = known_tasks(looked)
    points = [_point_document(looked, point, there) for point, there in known.items()]
    causes = _causes(looked)
    return {
        "run": run_facts(looked.view, looked.now) | {"options": option_facts(looked.view)},
        "waits": waits(looked),
        "points": points[-POINTS_MAX:],
        "counts": _counts(looked, [key for there in known.values() for key in there]),
        "bounds": _bounds(looked),
        "stall": stall_document(looked),
        "flows": [_flow_document(looked, flow) for flow in looked.pool.flows.values()],
        "active": list(_active(looked, submissions)),
        "held": [looked.id_of(key) for key in _held(looked)][:TASKS_MAX],
        "causes": [_cause_document(looked, task) for task in causes[:TASKS_MAX]],
        "lost": list(lost_chains(looked))[:TASKS_MAX],
    }


def _causes(looked: RunSnapshot) -> list[PooledTask]:
    """What keeps the run from going on; while it does, those that never will by themselves."""
    if not looked.started:
        return []
    found = root_causes(looked.pool)
    if looked.pool.run.status in (RunStatus.STALLED, RunStatus.WAITING_FOR_RELEASE):
        return found
    return [task for task in found if task.standing is PoolState.INCOMPLETE or task.blocked]


def _held(looked: RunSnapshot) -> list[Key]:
    """In the pool or yet to come."""
    pool = looked.pool
    pooled = {key for key, task in pool.tasks.items() if task.held}
    return sorted(pooled | pool.run.held_tasks.keys())


def known_tasks(looked: RunSnapshot) -> dict[Point, list[Key]]:
    """Every task that was spawned or judged, by point; the oldest point first."""
    pool = looked.pool
    keys = set(pool.tasks)
    keys |= {(point, name) for point, there in pool.memory.items() for name in there}
    nodes = pool.plan.nodes  # a reload may have taken away some that were remembered
    found: dict[Point, list[Key]] = {}
    there = [key for key in keys if key[1] in nodes]
    for key in sorted(there, key=lambda one: (one[0], nodes[one[1]].rank)):
        # A memory may be that of an output which only children asked for.
        if words_of(pool, key).state != FUTURE:
            found.setdefault(key[0], []).append(key)
    return found


def _counts(looked: RunSnapshot, keys: Sequence[Key]) -> dict[str, int]:
    counted = Counter(words_of(looked.pool, key).state for key in keys)
    return {state: counted[state] for state in STATES if counted[state]}


def _point_document(looked: RunSnapshot, point: Point, keys: Sequence[Key]) -> Document:
    pool = looked.pool
    states = [words_of(pool, key) for key in keys]
    done = sum(1 for words in states if not words.pooled and words.state in DONE)
    total = sum(1 for node in pool.plan.nodes.values() if node.is_at(point))
    return {
        "point": pool.plan.text(point),
        "tasks": max(total, len(keys)),
        "done": done,
        "counts": _counts(looked, keys),
    }


def _bounds(looked: RunSnapshot) -> Document:
    """Where the run begins and ends, and how far it may go just now (R001-31)."""
    pool = looked.pool
    run, text = pool.run, pool.plan.text

    def written(point: Point | None) -> str | None:
        return None if point is None else text(point)

    return {
        "initial": text(pool.plan.initial),
        "start": text(run.start),
        "final": written(pool.plan.final),
        "stop": written(run.stop),
        "points_to_stop": _points_to_stop(looked),
        "stop_after": None if run.stop_after is None else looked.id_of(run.stop_after),
        "hold_after": written(run.hold_after),
        "oldest": written(pool.base),
        "runahead_limit": written(pool.limit),
    }


def _points_to_stop(looked: RunSnapshot) -> int | None:
    """How many points lie between the newest that was released and the stop point."""
    pool = looked.pool
    if pool.run.stop is None:
        return None
    released = [task.point for task in pool.tasks.values() if task.admitted]
    if not released:
        return 0 if looked.started else None
    point: Point | None = max(released)
    for count in range(POINTS_TO_GO_MAX):
        assert point is not None
        if point >= pool.run.stop:
            return count
        point = next_point(pool, point)
        if point is None:
            return count
    return POINTS_TO_GO_MAX


def _flow_document(looked: RunSnapshot, flow: FlowState) -> Document:
    text = looked.pool.plan.text
    return {
        "flow": flow.number,
        "text": flow.text,
        "tasks": looked.pool.flow_counts.get(flow.number, 0),
        "until": None if flow.until is None else text(flow.until),
        "until_tasks": [looked.id_of(key) for key in sorted(flow.until_tasks)],
        "stopped": flow.stopped,
    }


def _active(looked: RunSnapshot, submissions: Submissions) -> Iterator[Document]:
    pool = looked.pool
    active = sorted(
        (task for task in pool.tasks.values() if task.is_active),
        key=lambda task: (task.point, task.plan.rank),
    )
    for task in active[:TASKS_MAX]:
        words = words_of(pool, task.key)
        text = pool.plan.text(task.point)
        found = {one.task_id: one for one in submissions.get((text, task.plan.name), ())}
        last = next(reversed(found.values()), None)
        yield {
            "id": looked.id_of(task.key),
            "state": words.state,
            "remarks": list(words.remarks),
            "flows": sorted(task.flows),
            "submit": task.submit,
            "try": task.try_number,
            "submitted_at": time_text(None if last is None else last.submitted_at),
            "started_at": time_text(None if last is None else last.started_at),
            "worker": None if last is None else last.worker,
        }


def _cause_document(looked: RunSnapshot, task: PooledTask) -> Document:
    words = words_of(looked.pool, task.key)
    reasons = why(looked.pool, task.key, due_times(looked))
    return {
        "id": looked.id_of(task.key),
        "state": words.state,
        "remarks": list(words.remarks),
        "reasons": [reason_document(looked.view.name, one) for one in reasons],
    }


def lost_chains(looked: RunSnapshot) -> Iterator[Document]:
    """Every task that will not run because something it needs was lost, and why (§5)."""
    for there in known_tasks(looked).values():
        for key in there:
            memory = looked.pool.recall(*key)
            verdicts = {} if memory is None else memory.verdicts
            for flow, verdict in sorted(verdicts.items()):
                if verdict.kind is VerdictKind.PRUNED and verdict.death is AtomValue.LOST:
                    chain = chain_text(looked.pool, key, flow)
                    yield {"id": looked.id_of(key), "flow": flow, "chain": chain}
