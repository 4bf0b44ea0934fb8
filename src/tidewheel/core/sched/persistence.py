"""Makes rows of what a step changed in a run, and the pool from rows again (SEMANTICS §10).

Changes are the persistence format. A row is a frozen value that holds all of one thing; writing
the rows of each batch and reading all of them gives an equal pool. Counters, queues and group
counts are not stored: they follow. So does the history of a task that was only spawned, from
its row in the pool (`spawn`, `_task`). Nothing in a row is a number that the compiler gave:
what a task has of its prerequisites are atoms by what they mean, so that a version which
numbers them otherwise goes on with the same run.

Rows of format 1 had bits (`old_atoms`; frozen, nothing there follows the compiler of today).
Until format 2 a row of the pool held its true prerequisites as a mask, and
an atom of a family at a fixed point was called `family:number`; both were numbers that
the compiler of that time gave while it read a graph. They are given here as it gave them:

- Arrows are read in the order of the graph. The terms of an arrow are read from left to right,
  depth first, and each different one gets the next bit when it is met first.
- The bits of a node are those of its arrows in that order, suicide arrows left out; then one
  for each sequence of a node that runs one instance after the other.
- Families are numbered over all arrows, by (family, outputs, all or any).

This holds as long as a stored definition is compiled to the arrows and terms of that time, in
that order: `tests/spec/test_sched_old_rows.py` has rows that the old version wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from heapq import heappush
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import assert_never

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import Atom, Condition, Group, XtriggerTerm
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched import evaluation
from tidewheel.core.sched.dependency_index import (
    AtomMeaning,
    DependencyIndex,
    IndexedNode,
    PreviousInstance,
    fixed_term,
    group_term,
    orphan,
)
from tidewheel.core.sched.dependents import relative_dependents
from tidewheel.core.sched.pool import AbsoluteKey, FlowState, Past, RunState, TaskPool, Touched
from tidewheel.core.sched.spawn import standing_of
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
    Verdict,
)
from tidewheel.lazy_dataclasses import NamedTuple


class PooledTaskRow(NamedTuple):
    """Holds an entry of the pool as it is stored; fields at their defaults are left out."""

    point: Point
    name: str
    flows: Flows
    stage: JobPhase = JobPhase.WAITING
    true: tuple[AtomMeaning, ...] = ()  # of its prerequisites, those that are true
    missing: bool = False  # whether it waits for others
    waits: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    released: bool = False
    held: bool = False
    blocked: bool = False
    manual: bool = False
    satisfied_by_hand: bool = False
    flow_wait: bool = False
    ended: str = ""
    submit: int = 0
    try_number: int = 1
    submit_try: int = 1
    order: int = 0
    heard: tuple[AtomMeaning, ...] = ()  # of members of families that ran alone
    let_go: bool = False
    bits: int | None = None  # instead of `true` in a row of format 1; never written

    @property
    def admitted(self) -> bool:
        """Says whether the task is past the runahead limit; the stored name is older."""
        return self.released


# What a task and its row both have, as it is and in the order of the row.
_SAME = (
    *("by_hand", "admitted", "held", "blocked", "manual", "satisfied_by_hand", "flow_wait"),
    *("ended", "submit", "try_number", "submit_try", "order", "heard", "let_go"),
)
_same = attrgetter(*_SAME)


class PutTask(NamedTuple):
    row: PooledTaskRow


class DropTask(NamedTuple):
    key: Key


class PutMemory(NamedTuple):
    """Stores what is remembered of a (point, name): spawn memory, outputs, verdicts by flow."""

    key: Key
    spawned: Flows
    made: tuple[tuple[str, Flows], ...]
    verdicts: tuple[tuple[int, Verdict], ...]
    submits: int
    held_back: tuple[str, ...] = ()

    def memory(self) -> TaskHistory:
        made, verdicts = dict(self.made), dict(self.verdicts)
        return TaskHistory(self.spawned, made, verdicts, self.submits, self.held_back)


class ForgetMemory(NamedTuple):
    """Says that a task left the pool's memory; the store keeps its last row as history."""

    row: PutMemory


class ForgetStored(NamedTuple):
    """Says that tasks left the pool's memory since whose last row nothing has changed: the
    store keeps these rows as they are."""

    point: Point
    names: tuple[str, ...]


class PutChain(NamedTuple):
    """Stores the point of the head of a node's chain in a flow; None if the chain is over."""

    name: str
    flow: int
    point: Point | None


class PutAbsolute(NamedTuple):
    """Stores the values of a fixed atom by flow; without values its row is deleted."""

    key: AbsoluteKey
    values: tuple[tuple[int, AtomValue], ...]


class PutFlow(NamedTuple):
    flow: FlowState


class PutRun(NamedTuple):
    run: RunState


OneChange = (
    PutTask | DropTask | PutMemory | ForgetMemory | PutChain | PutAbsolute | PutFlow | PutRun
)
Change = OneChange | ForgetStored


_tuple = tuple.__new__  # as tuples, rows cost a third
NOTHING: Mapping[str, TaskHistory] = MappingProxyType({})


def changes(pool: TaskPool, touched: Touched) -> list[Change]:
    """Returns rows for everything that was touched, as it is now."""
    found: list[Change] = []
    tasks, initial = pool.tasks, pool.plan.initial
    for key in touched.tasks:
        task = tasks.get(key)
        if task is None:
            found.append(_tuple(DropTask, (key,)))
        else:
            found.append(_tuple(PutTask, (row_of(task, initial),)))
    if touched.forgotten:
        found += _forgotten(touched)
    for key in touched.memory:
        memory = pool.memory.get(key[0], NOTHING).get(key[1])
        if memory is not None:
            found.append(_memory_row(key, memory))
    for name, flow in touched.chains:
        found.append(PutChain(name, flow, pool.chains.get((name, flow))))
    for absolute in touched.absolute:
        values = pool.absolute.get(absolute, {})
        found.append(PutAbsolute(absolute, tuple(values.items())))
    for number in touched.flows:
        found.append(PutFlow(replace(pool.flows[number])))
    if touched.run:
        found.append(PutRun(_copied(pool.run)))
    return found


def _copied(run: RunState) -> RunState:
    return replace(run, held_tasks=dict(run.held_tasks), missed=dict(run.missed))


def _forgotten(touched: Touched) -> Iterator[Change]:
    """Yields what became of histories that the pool has dropped: only what the batch has
    changed is not in the store already."""
    stored: dict[Point, list[str]] = {}
    for key, memory in touched.forgotten.items():
        if key in touched.memory:
            yield _tuple(ForgetMemory, (_memory_row(key, memory),))
        else:
            stored.setdefault(key[0], []).append(key[1])
    for point, names in stored.items():
        yield ForgetStored(point, tuple(names))


def everything(pool: TaskPool) -> list[Change]:
    """Returns rows for the whole pool."""
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


def row_of(task: PooledTask, initial: Point) -> PooledTaskRow:
    point, name = task.key
    true = task.true
    row = (
        point,
        name,
        task.flows,
        task.stage,
        atoms_of(task.plan, point, true, initial) if true else (),
        task.missing > 0,
        tuple(task.waits),
        tuple(task.outputs),
        *_same(task),
        None,
    )
    return _tuple(PooledTaskRow, row)


MANY_ATOMS = 16  # from here on the meanings of all are kept
NO_ATOM = (Point(0), "", "")  # of a bit that no arrow has, and which is never set
_AS_NUMBERS = bytes.maketrans(b"01", b"\0\1")  # bits that were written as text


def atoms_of(
    node: IndexedNode, point: Point, true: int, initial: Point
) -> tuple[AtomMeaning, ...]:
    """Returns the atoms, by their meaning, that the bits of a task at a point stand for."""
    if node.atoms == 1 and true and len(node.arrows) == 1:  # one parent, as most tasks have
        leaf = node.arrows[0][0].leaves[0]
        if leaf.shift is not None:
            return ((Point(point + leaf.shift), *leaf.term),)
    # As text, since to shift a number with a bit for each of many parents is slow.
    bits = f"{true:b}"[::-1].ljust(node.atoms, "0")
    if node.atoms >= MANY_ATOMS:
        meanings, are_different = _meanings(node, point, initial)
        true_ones = compress(meanings, bits.encode().translate(_AS_NUMBERS))
        return tuple(true_ones if are_different else dict.fromkeys(true_ones))
    found: dict[AtomMeaning, None] = {}
    for arrow, base in node.arrows:
        for leaf in arrow.leaves:
            if bits[base + leaf.number] == "1":
                shift = leaf.shift
                parent = leaf.parent_point(point, initial) if shift is None else point + shift
                found[(Point(parent), *leaf.term)] = None
    return tuple(found)


def _meanings(
    node: IndexedNode, point: Point, initial: Point
) -> tuple[list[AtomMeaning], bool]:
    """Returns what each bit of a task at a point stands for, and whether no two stand for the
    same; of one point it is kept, as a task with many parents is written whenever some of them
    have ended."""
    asked = (point, initial, len(node.arrows))
    if node.meanings is None or node.meanings[0] != asked:
        found = {
            base + leaf.number: (leaf.parent_point(point, initial), *leaf.term)
            for arrow, base in node.arrows
            for leaf in arrow.leaves
        }
        meanings = [found.get(bit, NO_ATOM) for bit in range(node.atoms)]
        are_different = len(set(found.values())) == len(found)
        node.meanings = asked, (meanings, are_different)
    return node.meanings[1]


def _memory_row(key: Key, memory: TaskHistory) -> PutMemory:
    made = tuple(memory.made.items())
    verdicts = tuple(memory.verdicts.items())
    row = (key, memory.spawned, made, verdicts, memory.submits, memory.held_back)
    return _tuple(PutMemory, row)


class PoolLedger:
    """Holds the last row that was written of each thing, as a store does."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[object, Change] = {}

    def write(self, written: Iterable[Change]) -> None:
        for change in written:
            if isinstance(change, ForgetStored):
                for name in change.names:
                    self.rows.pop(("memory", change.point, name), None)
            else:
                self._write_one(change)

    def _write_one(self, change: OneChange) -> None:
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
            case PutAbsolute(key, values):
                if values:
                    self.rows["absolute", key] = change
                else:
                    self.rows.pop(("absolute", key), None)
            case PutFlow(flow_state):
                self.rows["flow", flow_state.number] = change
            case PutRun():
                self.rows["run"] = change
            case _:
                assert_never(change)


def rebuild(
    plan: DependencyIndex, rows: Iterable[Change], past: Past | None = None
) -> TaskPool:
    """Returns the pool that these rows describe."""
    rows = list(rows)
    run = next((row.run for row in rows if isinstance(row, PutRun)), None)
    assert run is not None, "a run without a row of its own was never started"
    pool = TaskPool(plan, _copied(run), past)
    gone = {name for name in _names(rows) if name not in plan.nodes}
    for name in sorted(gone):
        plan.nodes[name] = orphan(name, len(plan.nodes))
    for row in rows:
        _put(pool, row)
    for task in map(partial(_task, pool), _task_rows(rows)):
        if task.plan.name in gone and not task.is_active:
            continue
        _admit(pool, task)
    for point in pool.memory:
        if run.horizon is None or point >= run.horizon:
            evaluation.count_remembered(pool, point)
    pool.base = pool.counted.earliest()
    _look_ahead(pool)
    return pool


def outdated(plan: DependencyIndex, rows: Iterable[Change]) -> Touched:
    """Returns what is stored in rows of an old format, so that it is written in today's."""
    touched = Touched()
    for row in rows:
        match row:
            case PutTask(PooledTaskRow(bits=int()) as old):
                touched.tasks[old.point, old.name] = None
            case PutAbsolute(key) if is_old_key(key):
                touched.absolute[key] = None
                touched.absolute[new_absolute_key(plan.graph, key)] = None
            case PutRun(run) if run.point_words is None:
                touched.run = True
            case _:
                pass
    return touched


def reads_otherwise(pool: TaskPool, rows: Iterable[Change]) -> bool:
    """Says whether a waiting task has other prerequisites now than when its row was written.

    Then its row has an atom that no arrow asks for, or lacks one that is recorded as true.
    """
    initial = pool.plan.initial
    for row in _task_rows(rows):
        task = pool.tasks.get((row.point, row.name))
        if task is None or task.stage is not JobPhase.WAITING:
            continue
        known = atoms_of(task.plan, task.point, task.true, initial)
        if set(known) != set(_atoms(pool.plan, row)):
            return True
        if task.missing and not task.outputs and _missed_one(pool, task):
            return True
    return False


def _missed_one(pool: TaskPool, task: PooledTask) -> bool:
    return evaluation.missing_arrows(task) == 0 or any(
        not task.true & bit
        and evaluation.leaf_value(pool, leaf, task.point, task.flows) is AtomValue.TRUE
        for leaf, bit in task.plan.leaves_at(task.point)
    )


def _look_ahead(pool: TaskPool) -> None:
    """Puts off evaluating unknown children of tasks with verdicts that lie too far ahead. That
    they were put off is not stored, since it follows from the verdicts."""
    if not pool.plan.policy.prunes_unreachable:
        return
    last = pool.last_admitted() + pool.plan.lead
    for point, there in pool.memory.items():
        if point + pool.plan.reach_back <= last:
            continue
        for name, memory in there.items():
            node = pool.plan.nodes[name]
            for child in relative_dependents(pool, node, point) if memory.verdicts else ():
                if child.point > last and pool.recall(*child.key) is None:
                    pool.ahead.update(((child.key, flow), None) for flow in memory.verdicts)


def _names(rows: list[Change]) -> set[str]:
    """Returns the names of all nodes in the rows, those that a reload has removed included."""
    tasks = {change.row.name for change in rows if isinstance(change, PutTask)}
    return tasks | {change.key[1] for change in rows if isinstance(change, PutMemory)}


def _put(pool: TaskPool, row: Change) -> None:
    match row:
        case PutMemory((point, name)):
            pool.memory.setdefault(point, {})[name] = row.memory()
        case PutChain(name, flow, point):
            if point is not None:
                pool.chains[(name, flow)] = point
        case PutAbsolute(key, values):
            pool.absolute[new_absolute_key(pool.plan.graph, key)] = dict(values)
        case PutFlow(flow_state):
            pool.flows[flow_state.number] = replace(flow_state)
        case _:
            pass


def _task_rows(rows: Iterable[Change]) -> Iterator[PooledTaskRow]:
    return (change.row for change in rows if isinstance(change, PutTask))


def _task(pool: TaskPool, row: PooledTaskRow) -> PooledTask:
    """Returns the task that a row describes."""
    point, key = row.point, (row.point, row.name)
    # Without a row of its own its history was blank: the past has nothing to say of it.
    there = pool.memory.setdefault(point, {})
    node, memory = pool.plan.nodes[row.name], there.setdefault(row.name, TaskHistory())
    if memory.is_blank:
        memory.spawned = row.flows  # all that was to be told of it when it was spawned
    true = node.mask_of(point, _atoms(pool.plan, row), pool.plan.initial)
    task = PooledTask(node, key, point, row.flows, memory, row.submit, true, row.stage)
    # Were nothing missing now, it would be ready without anybody having said so.
    task.missing = max(1, evaluation.missing_arrows(task)) if row.missing else 0
    task.waits, task.outputs = dict.fromkeys(row.waits), dict.fromkeys(row.outputs)
    for name, value in zip(_SAME, _same(row), strict=True):
        setattr(task, name, value)
    return task


def _atoms(plan: DependencyIndex, row: PooledTaskRow) -> tuple[AtomMeaning, ...]:
    return row.true if row.bits is None else old_atoms(plan.graph, row)


def _admit(pool: TaskPool, task: PooledTask) -> None:
    task.standing = standing_of(task)
    pool.add(task)
    if task.heard:
        pool.hearing[task.key] = None
    if task.plan.definition.until and task.stage is JobPhase.RUNNING:
        pool.serving[task.key] = None
    queue = pool.queues[task.plan.limit]
    if task.standing is PoolState.ACTIVE:
        queue.active += 1
    elif task.standing is PoolState.READY:
        heappush(queue.heap, (task.point, task.order, task.key))
    if task.admitted:
        for flow in task.flows:
            pool.fronts[flow] = max(task.point, pool.fronts.get(flow, task.point))
    if task.plan.waits_for_absolute:
        for leaf, bit in task.plan.leaves_at(task.point):
            if leaf.absolute is not None and not task.true & bit:
                pool.waiting_for.setdefault(evaluation.absolute_key(leaf), {})[task.key] = None


def old_atoms(graph: Graph, row: PooledTaskRow) -> tuple[AtomMeaning, ...]:
    """Returns the atoms that the bits of a row of format 1 stand for."""
    bits, point = row.bits or 0, row.point
    atoms = _old_terms(graph, row.name, point) if bits else iter(())
    return tuple(dict.fromkeys(atom for bit, atom in enumerate(atoms) if bits >> bit & 1))


def is_old_key(key: AtomMeaning) -> bool:
    """Says whether a key is that of a family's fixed atom in format 1; no name has a colon."""
    return key[1].rpartition(":")[2].isdigit() and ":" in key[1]


def new_absolute_key(graph: Graph, key: AtomMeaning) -> AtomMeaning:
    """Returns the key that a fixed atom has now; an old key that nothing asks for stays."""
    if not is_old_key(key):
        return key
    family, _, number = key[1].rpartition(":")
    terms = (term for arrow in graph.arrows for term in _terms_of(arrow.condition))
    found = ((one.family, one.outputs, one.every) for one in terms if isinstance(one, Group))
    groups = list(dict.fromkeys(found))
    if int(number) >= len(groups) or groups[int(number)][0] != family:
        return key  # nothing asks for it
    _, outputs, every = groups[int(number)]
    return (key[0], *group_term(family, outputs, every=every))


def _old_terms(graph: Graph, name: str, point: Point) -> Iterator[AtomMeaning]:
    """Yields the atoms of a node in the order of their bits, at this point."""
    initial = graph.cycling.initial
    for arrow in graph.arrows:
        for target in () if arrow.suicide else arrow.targets:
            if target == name:
                for term in dict.fromkeys(_terms_of(arrow.condition)):
                    yield (graph.parent_point(term.offset, point), *_old_meaning(term))
    node = graph.nodes.get(name)
    if node is not None and name in graph.special.sequential:
        before = PreviousInstance(node.sequences).parent_point(point, initial)
        yield from ((before, name, SUCCEEDED) for _ in node.sequences)


def _terms_of(condition: Condition) -> Iterator[Atom | Group]:
    if isinstance(condition, Atom | Group):
        yield condition
        return
    assert not isinstance(condition, XtriggerTerm), (
        "xtriggers are kept apart from prerequisites"
    )
    for term in condition.terms:
        yield from _terms_of(term)


def _old_meaning(term: Atom | Group) -> tuple[str, str]:
    if isinstance(term, Atom):
        found = (term.node, term.output)
    else:
        found = group_term(term.family, term.outputs, every=term.every)
    is_fixed = term.offset is not None and term.offset.is_absolute
    return fixed_term(*found) if is_fixed else found
