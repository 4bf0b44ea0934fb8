"""Restores a run from the store to look at it, whether a scheduler drives it or not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.blocks import NeedState, NeedView
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.views import RunView, SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.explain import DueAt
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.limits import limit_from
from tidewheel.core.sched.persistence import PutMemory, PutRun, rebuild
from tidewheel.core.sched.pool import Past, RunStatus, TaskPool
from tidewheel.core.sched.step import new_pool
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.workflow_state import DefinitionOf, definitions_of
from tidewheel.views.run_facts import read_names, read_number, read_text, read_texts
from tidewheel.views.status_text import FUTURE, words_of

if TYPE_CHECKING:
    from tidewheel.views.past import Pasts

SUBMISSIONS_MAX = 10_000

Submissions = Mapping[tuple[str, str], Sequence[SubmissionView]]  # by point and name


class RunSnapshot(NamedTuple):
    """Holds all that is known of a run at one moment."""

    graph: Graph
    pool: TaskPool
    view: RunView
    stored: StoredRun
    now: Instant
    waits: tuple[Chain, ...] = ()  # what keeps it from beginning
    stalled_since: Instant | None = None

    @property
    def started(self) -> bool:
        """Says whether a scheduler ever began with the run."""
        return any(isinstance(row, PutRun) for row in self.stored.changes)

    @property
    def is_of_stages(self) -> bool:
        """Says whether it is a run of stages, whose tasks people know by their names alone."""
        return self.pool.plan.is_of_stages

    def id_of(self, key: Key) -> str:
        return self.pool.plan.id_of(key)

    def shown(self, key: Key) -> ShownTask:
        return ShownTask(self, key)

    def known_tasks(self) -> dict[Point, list[Key]]:
        """Returns every task that was spawned or has a verdict, by point, oldest first."""
        pool, nodes = self.pool, self.pool.plan.nodes
        keys = set(pool.tasks)
        keys |= {(point, name) for point, there in pool.memory.items() for name in there}
        there = [key for key in keys if key[1] in nodes]  # a reload may have taken away some
        found: dict[Point, list[Key]] = {}
        for key in sorted(there, key=lambda one: (one[0], nodes[one[1]].order)):
            # A task may be remembered only because its children asked for an output.
            if words_of(pool, key).state != FUTURE:
                found.setdefault(key[0], []).append(key)
        return found

    def known_keys(self) -> list[Key]:
        return [key for there in self.known_tasks().values() for key in there]


class ShownTask:
    """Holds the facts of a task of a run, by the names that they have in documents."""

    def __init__(self, snapshot: RunSnapshot, key: Key) -> None:
        pool = snapshot.pool
        self.key, self.name, self.point = key, key[1], pool.plan.text(key[0])
        self.id = f"{self.point}/{self.name}"
        self.word, self.shown = pool.plan.word_of(key), pool.plan.name_of(key)
        self.task, self.memory = pool.tasks.get(key), pool.recall(*key)
        self.submits = 0 if self.memory is None else self.memory.submits
        self.submit = self.submits if self.task is None else self.task.submit
        self.state, self.remarks, self.flows, self.in_pool = words_of(pool, key)


class ViewContext(NamedTuple):
    """Says where the files of runs are, and how definitions and the past are read."""

    home: Path
    definition_of: DefinitionOf
    pasts: Pasts


class AskedView(NamedTuple):
    """Holds a request for a view: of which run, with arguments as they come from JSON."""

    store: Store
    context: ViewContext
    run: RunView
    arguments: Arguments

    async def snapshot(self, *, recall: bool = True) -> RunSnapshot:
        """Returns everything about the run at one moment, as ``gather`` does."""
        home, read, _ = self.context
        found = await gather(self.store, self.run, home, recall=recall, definition_of=read)
        return found._replace(waits=tuple(told_to(self.sees, one) for one in found.waits))

    @property
    def sees(self) -> tuple[str, ...] | None:
        """Returns the patterns for what whoever asks may know of; None: everything."""
        return read_names(self.arguments)

    async def submissions(self) -> Submissions:
        return await submissions_by_task(self.store, self.run)

    def text(self, name: str) -> str:
        return read_text(self.arguments, name)

    def number(self, name: str) -> int | None:
        return read_number(self.arguments, name)

    def texts(self, name: str) -> list[str]:
        return read_texts(self.arguments, name)


async def gather(
    store: Store,
    view: RunView,
    home: Path,
    *,
    recall: bool = True,
    definition_of: DefinitionOf | None = None,
) -> RunSnapshot:
    """Returns a snapshot of a run; reads its rows first, so that the status shown is never
    older than the rows.

    With `recall` the pool also remembers what its scheduler has forgotten, for people to see.
    """
    stored = await store.read_run(view.number)
    view = await store.run(view.number)
    restored = await (definition_of or definitions_of(store, home))(view)
    pool = pool_of(restored.graph, stored, store.past(view.number), view)
    if recall:
        recall_all(pool, await store.forgotten(view.number))
    waits = () if view.batch else await chains_of(store, view.number)
    is_stalled = view.status == RunStatus.STALLED
    since = await store.status_since(view.number) if is_stalled else None
    now = await store.now()
    return RunSnapshot(restored.graph, pool, view, stored, now, waits, since)


def due_times(snapshot: RunSnapshot) -> DueAt:
    """Returns the function that says until when a task waits for a clock or a retry."""
    set_for = {((one.point, one.name), one.timer): one.at for one in snapshot.stored.timers}
    clocks = ClockTriggers(snapshot.graph.xtriggers, snapshot.graph.cycling)

    def due_at(key: Key, wait: str) -> Instant | None:
        at = set_for.get((key, wait))
        return clocks.due_at(wait, key[0]) if at is None else at

    return due_at


def recall_all(pool: TaskPool, rows: Iterable[PutMemory]) -> None:
    """Puts rows that the pool has forgotten back into its memory, for people to see."""
    for row in rows:
        point, name = row.key
        if name not in pool.plan.nodes or name in pool.memory.get(point, {}):
            continue
        pool.memory.setdefault(point, {})[name] = row.memory()


def pool_of(
    graph: Graph,
    stored: StoredRun,
    past: Past,
    view: RunView,
    plan: DependencyIndex | None = None,
) -> TaskPool:
    """Returns the pool that these rows describe; an empty one for a run that has not begun."""
    if not any(isinstance(row, PutRun) for row in stored.changes):
        across = view.options.prune_across_points
        return new_pool(graph, past=past, prune_across_points=across)
    pool = rebuild(plan or build_index(graph), stored.changes, past)
    if pool.base is not None:
        pool.limit = limit_from(pool, pool.base)  # derived, so not among the rows
    return pool


async def submissions_by_task(
    store: Store, view: RunView, *, point: str | None = None, name: str | None = None
) -> Submissions:
    """Returns the submissions of each (point, name), in the order of their submit numbers."""
    found = await store.submissions(view.number, point=point, name=name, count=SUBMISSIONS_MAX)
    tasks: dict[tuple[str, str], list[SubmissionView]] = {}
    for one in sorted(found, key=lambda one: read_job_name(one.task_id).submit):
        where = read_job_name(one.task_id)
        tasks.setdefault((where.point, where.node), []).append(one)
    return tasks


# A block waits for another, which may wait in turn: a chain leads to the one to act on.


BLOCKS_MAX = 1_000  # looked at to find the root of one wait
CREATED = "created"
# Statuses in which a run does not go on by itself; `tidewheel run` carries it on.
LEFT = ("stalled", "stopped", "error")

Chain = tuple[NeedView, ...]  # the first is the block's own need, the last is the root


def told_to(names: tuple[str, ...] | None, chain: Chain) -> Chain:
    """Returns a chain up to the first block that is not told, see `NeedView.told_to`."""
    told = [need.told_to(names) for need in chain]
    hidden = next((place for place, need in enumerate(told, 1) if not need.parent), None)
    return tuple(told[:hidden])


async def chains_of(store: Store, run: int) -> tuple[Chain, ...]:
    """Returns, for each need of a run that is not met, the chain of needs that leads to what
    has to happen first."""
    found: list[Chain] = []
    for need in await store.needs_of([run]):
        if need.state is not NeedState.MET:
            found.append(await _chain(store, need))
    return tuple(found)


async def _chain(store: Store, need: NeedView) -> Chain:
    """Returns the shortest way from an unmet need to one that stays unmet unless somebody
    acts; if there is none, to any last one."""
    todo: deque[Chain] = deque([(need,)])
    seen = {need.parent}
    ends: list[Chain] = []
    while todo and len(seen) < BLOCKS_MAX:
        chain = todo.popleft()
        last = chain[-1]
        further: Chain = ()
        if last.state is NeedState.OPEN and last.status == CREATED:
            with suppress(NotFound):  # it was deleted meanwhile
                further = (await store.block(last.parent)).waits
        if not further:
            ends.append(chain)
        for one in further:
            if one.parent not in seen:
                seen.add(one.parent)
                todo.append((*chain, one))
    return min(ends, key=lambda one: (not is_stuck(one[-1]), len(one)), default=(need,))


def is_stuck(need: NeedView) -> bool:
    """Says whether a need stays unmet unless somebody acts."""
    return need.state is NeedState.NEVER or (need.status in LEFT and not need.going)
