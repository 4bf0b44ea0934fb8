"""A run restored from the store for looking at it; whether a scheduler drives it or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.views import RunView, SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.explain import DueAt
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import PutMemory, PutRun, rebuild
from tidewheel.core.sched.pool import Past, RunStatus, TaskPool
from tidewheel.core.sched.runahead import limit_from
from tidewheel.core.sched.step import new_pool
from tidewheel.core.sched.task_state import Key
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.ports.store import Store
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.workflow_state import DefinitionOf, definitions_of
from tidewheel.views.snapshot import Chain, chains_of

SUBMISSIONS_MAX = 10_000


class Looked(NamedTuple):
    """All that is known of a run at one moment."""

    graph: Graph
    pool: TaskPool
    view: RunView
    stored: StoredRun
    reader: CyclingReader
    now: Instant
    waits: tuple[Chain, ...] = ()  # what keeps it from beginning
    stalled_since: Instant | None = None

    @property
    def started(self) -> bool:
        """Whether a scheduler ever began with it."""
        return any(isinstance(row, PutRun) for row in self.stored.changes)

    def id_of(self, key: Key) -> str:
        return f"{self.pool.plan.text(key[0])}/{key[1]}"


async def load_for_looking(
    store: Store, run: str, home: Path
) -> tuple[Graph, TaskPool, RunView]:
    """The graph and the pool of a run, named as people name it."""
    looked = await gather(store, await store.find_run(run), home)
    return looked.graph, looked.pool, looked.view


async def gather(
    store: Store,
    view: RunView,
    home: Path,
    *,
    recall: bool = True,
    definition_of: DefinitionOf | None = None,
) -> Looked:
    """Everything at once: rows first, so that they are never older than the status shown.

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
    return Looked(restored.graph, pool, view, stored, restored.reader, now, waits, since)


def due_times(looked: Looked) -> DueAt:
    """Until when tasks wait for clocks and for the delays of retries."""
    set_for = {((one.point, one.name), one.timer): one.at for one in looked.stored.timers}
    clocks = ClockTriggers(looked.graph.xtriggers, looked.graph.cycling)

    def due_at(key: Key, wait: str) -> Instant | None:
        at = set_for.get((key, wait))
        return clocks.due_at(wait, key[0]) if at is None else at

    return due_at


def recall_all(pool: TaskPool, rows: Iterable[PutMemory]) -> None:
    """What the pool has forgotten is remembered again, for people to see."""
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
    """The pool that these rows describe; an empty one for a run that has not begun."""
    if not any(isinstance(row, PutRun) for row in stored.changes):
        across = view.options.prune_across_points
        return new_pool(graph, past=past, prune_across_points=across)
    pool = rebuild(plan or build_index(graph), stored.changes, past)
    if pool.base is not None:
        pool.limit = limit_from(pool, pool.base)  # derived, so not among the rows
    return pool


async def submissions_by_task(
    store: Store, view: RunView, *, point: str | None = None, name: str | None = None
) -> Mapping[tuple[str, str], Sequence[SubmissionView]]:
    """The submissions of each (point, name), in the order of their submit numbers."""
    found = await store.submissions(view.number, point=point, name=name, count=SUBMISSIONS_MAX)
    tasks: dict[tuple[str, str], list[SubmissionView]] = {}
    for one in sorted(found, key=lambda one: read_job_name(one.task_id).submit):
        where = read_job_name(one.task_id)
        tasks.setdefault((where.point, where.node), []).append(one)
    return tasks
