"""A run as stored rows: what a step changed, and the pool made from rows again (SEMANTICS §10).

Changes are the persistence format. A row is a frozen value that holds all of one thing; writing
the rows of each batch and reading all of them gives an equal pool. Counters, queues and group
counts are not stored: they follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heappush
from typing import NamedTuple, assert_never

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import absolute_key, count_remembered
from tidewheel.core.sched.draft import Touched
from tidewheel.core.sched.plan import Plan, orphan
from tidewheel.core.sched.pool import AbsoluteKey, FlowState, Past, Pool, RunState
from tidewheel.core.sched.spawning import standing_of
from tidewheel.core.sched.states import (
    Flows,
    Key,
    Memory,
    Stage,
    Standing,
    Task,
    Value,
    Verdict,
)


class TaskRow(NamedTuple):
    """An entry of the pool."""

    point: Point
    name: str
    flows: Flows
    stage: Stage
    true: int
    missing: int
    waits: tuple[str, ...]
    outputs: tuple[str, ...]
    by_hand: tuple[str, ...]
    released: bool
    held: bool
    blocked: bool
    manual: bool
    satisfied_by_hand: bool
    flow_wait: bool
    ended: str
    submit: int
    try_number: int
    submit_try: int
    order: int


class PutTask(NamedTuple):
    row: TaskRow


class DropTask(NamedTuple):
    key: Key


class PutMemory(NamedTuple):
    """What is remembered of a (point, name): spawn memory, outputs and verdicts by flow."""

    key: Key
    spawned: Flows
    made: tuple[tuple[str, Flows], ...]
    verdicts: tuple[tuple[int, Verdict], ...]
    submits: int
    held_back: tuple[str, ...] = ()


class ForgetMemory(NamedTuple):
    """It left the pool's memory; the store keeps its last row as history."""

    row: PutMemory


class PutChain(NamedTuple):
    """Where the chain of a node has got to in a flow; None: nowhere any more."""

    name: str
    flow: int
    point: Point | None


class PutAbsolute(NamedTuple):
    key: AbsoluteKey
    values: tuple[tuple[int, Value], ...]


class PutFlow(NamedTuple):
    flow: FlowState


class PutRun(NamedTuple):
    run: RunState


Change = (
    PutTask | DropTask | PutMemory | ForgetMemory | PutChain | PutAbsolute | PutFlow | PutRun
)


def changes(pool: Pool, touched: Touched) -> list[Change]:
    """Rows for everything that was touched, as it is now."""
    found: list[Change] = []
    tasks = pool.tasks
    for key in touched.tasks:
        task = tasks.get(key)
        found.append(DropTask(key) if task is None else PutTask(row_of(task)))
    for key, memory in touched.forgotten.items():
        found.append(ForgetMemory(_memory_row(key, memory)))
    for key in touched.memory:
        found.append(_memory_row(key, pool.remember(*key)))
    for name, flow in touched.chains:
        found.append(PutChain(name, flow, pool.chains.get((name, flow))))
    for absolute in touched.absolute:
        values = pool.absolute.get(absolute, {})
        found.append(PutAbsolute(absolute, tuple(values.items())))
    for number in touched.flows:
        found.append(PutFlow(replace(pool.flows[number])))
    if touched.run:
        found.append(PutRun(replace(pool.run, held_tasks=dict(pool.run.held_tasks))))
    return found


def everything(pool: Pool) -> list[Change]:
    """Rows for the whole pool."""
    touched = Touched()
    touched.tasks = dict.fromkeys(pool.tasks)
    touched.memory = {
        (point, name): None for point, there in pool.memory.items() for name in there
    }
    touched.chains = dict.fromkeys(pool.chains)
    touched.absolute = dict.fromkeys(pool.absolute)
    touched.flows = dict.fromkeys(pool.flows)
    touched.run = True
    return changes(pool, touched)


def row_of(task: Task) -> TaskRow:
    return TaskRow(
        task.point,
        task.plan.name,
        task.flows,
        task.stage,
        task.true,
        task.missing,
        tuple(task.waits),
        tuple(task.outputs),
        task.by_hand,
        task.released,
        task.held,
        task.blocked,
        task.manual,
        task.satisfied_by_hand,
        task.flow_wait,
        task.ended,
        task.submit,
        task.try_number,
        task.submit_try,
        task.order,
    )


def _memory_row(key: Key, memory: Memory) -> PutMemory:
    return PutMemory(
        key,
        memory.spawned,
        tuple(memory.made.items()),
        tuple(memory.verdicts.items()),
        memory.submits,
        memory.held_back,
    )


class Ledger:
    """The rows as a store holds them: the last of each thing."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[object, Change] = {}

    def write(self, written: Iterable[Change]) -> None:
        for change in written:
            self._write_one(change)

    def _write_one(self, change: Change) -> None:
        match change:
            case PutTask(row):
                self.rows["task", row.point, row.name] = change
            case DropTask((point, name)):
                self.rows.pop(("task", point, name), None)
            case PutMemory(key=(point, name)):
                self.rows["memory", point, name] = change
            case ForgetMemory(PutMemory(key=(point, name))):
                self.rows.pop(("memory", point, name), None)
            case PutChain(name, flow):
                self.rows["chain", name, flow] = change
            case PutAbsolute(key):
                self.rows["absolute", key] = change
            case PutFlow(flow_state):
                self.rows["flow", flow_state.number] = change
            case PutRun():
                self.rows["run"] = change
            case _:
                assert_never(change)


def rebuild(plan: Plan, rows: Iterable[Change], past: Past | None = None) -> Pool:
    """The pool that these rows describe."""
    rows = list(rows)
    run = next((row.run for row in rows if isinstance(row, PutRun)), None)
    assert run is not None, "a run without a row of its own was never started"
    pool = Pool(plan, replace(run, held_tasks=dict(run.held_tasks)), past)
    gone = _names(rows) - plan.nodes.keys()
    for name in sorted(gone):
        plan.nodes[name] = orphan(name, len(plan.nodes))
    for row in rows:
        _put(pool, row)
    for task in _tasks(rows, pool):
        if task.plan.name in gone and not task.is_active:
            continue
        _admit(pool, task)
    for point in pool.memory:
        count_remembered(pool, point)
    pool.base = pool.counted.earliest()
    _look_ahead(pool)
    return pool


def _look_ahead(pool: Pool) -> None:
    """What was put off follows from verdicts: their children of which nothing is known."""
    if not pool.plan.policy.deaths_are_judged:
        return
    last = pool.last_released() + pool.plan.lead
    for point, there in pool.memory.items():
        if point + pool.plan.reach_back <= last:
            continue
        for name, memory in there.items():
            for child in _children(pool.plan, point, name) if memory.verdicts else ():
                if child[0] > last and pool.recall(*child) is None:
                    pool.ahead.update(((child, flow), None) for flow in memory.verdicts)


def _children(plan: Plan, point: Point, name: str) -> Iterator[Key]:
    node = plan.nodes[name]
    links = [link for links in node.links.values() for link in links]
    for groups in node.groups.values():
        links += (link for group in groups for link in group.links)
    for link in links:
        if link.leaf.absolute is None and not link.arrow.suicide:
            for child in plan.child_points(link, point):
                yield from ((child, target.name) for target, _ in link.arrow.targets)


def _names(rows: list[Change]) -> set[str]:
    """Of all nodes that are spoken of, those that a reload has removed included."""
    tasks = {change.row.name for change in rows if isinstance(change, PutTask)}
    return tasks | {change.key[1] for change in rows if isinstance(change, PutMemory)}


def _put(pool: Pool, row: Change) -> None:
    match row:
        case PutMemory((point, name), spawned, made, verdicts, submits, held_back):
            memory = Memory()
            memory.spawned, memory.submits, memory.held_back = spawned, submits, held_back
            memory.made, memory.verdicts = dict(made), dict(verdicts)
            pool.memory.setdefault(point, {})[name] = memory
        case PutChain(name, flow, point):
            if point is not None:
                pool.chains[(name, flow)] = point
        case PutAbsolute(key, values):
            pool.absolute[key] = dict(values)
        case PutFlow(flow_state):
            pool.flows[flow_state.number] = replace(flow_state)
        case _:
            pass


def _tasks(rows: list[Change], pool: Pool) -> Iterator[Task]:
    for change in rows:
        if not isinstance(change, PutTask):
            continue
        row = change.row
        memory = pool.remember(row.point, row.name)
        task = Task(pool.plan.nodes[row.name], (row.point, row.name), row.flows, memory)
        task.stage, task.true, task.missing = row.stage, row.true, row.missing
        task.waits = dict.fromkeys(row.waits)
        task.outputs = dict.fromkeys(row.outputs)
        task.by_hand = row.by_hand
        task.released, task.held, task.blocked = row.released, row.held, row.blocked
        task.manual, task.satisfied_by_hand = row.manual, row.satisfied_by_hand
        task.flow_wait, task.ended = row.flow_wait, row.ended
        task.submit, task.try_number, task.submit_try = (
            row.submit,
            row.try_number,
            row.submit_try,
        )
        task.order = row.order
        yield task


def _admit(pool: Pool, task: Task) -> None:
    task.standing = standing_of(task)
    pool.admit(task)
    queue = pool.queues[task.plan.limit]
    if task.standing is Standing.ACTIVE:
        queue.active += 1
    elif task.standing is Standing.READY:
        heappush(queue.heap, (task.point, task.order, task.key))
    if task.released:
        for flow in task.flows:
            pool.fronts[flow] = max(task.point, pool.fronts.get(flow, task.point))
    if task.plan.waits_for_absolute:
        for arrow, base in task.plan.arrows_at(task.point):
            for leaf in arrow.leaves:
                if leaf.absolute is not None and not task.true >> (base + leaf.number) & 1:
                    pool.waiting_for.setdefault(absolute_key(leaf), {})[task.key] = None
