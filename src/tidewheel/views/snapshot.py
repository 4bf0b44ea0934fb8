"""Restores a run from the store to look at it, whether a scheduler drives it or not."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tidewheel.api.runs import RunReason
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
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.ports.store import Store
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.workflow_state import DefinitionOf, definitions_of

SUBMISSIONS_MAX = 10_000


class RunSnapshot(NamedTuple):
    """Holds all that is known of a run at one moment."""

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
        """Says whether a scheduler ever began with the run."""
        return any(isinstance(row, PutRun) for row in self.stored.changes)

    def id_of(self, key: Key) -> str:
        return f"{self.pool.plan.text(key[0])}/{key[1]}"


async def load_for_looking(
    store: Store, run: str, home: Path
) -> tuple[Graph, TaskPool, RunView]:
    """Returns the graph, the pool and the row of a run, which is named as people name it."""
    snapshot = await gather(store, await store.find_run(run), home)
    return snapshot.graph, snapshot.pool, snapshot.view


async def gather(
    store: Store,
    view: RunView,
    home: Path,
    *,
    recall: bool = True,
    definition_of: DefinitionOf | None = None,
) -> RunSnapshot:
    """Reads all of a run, its rows first, so that the status shown is never older than they.

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
    return RunSnapshot(restored.graph, pool, view, stored, restored.reader, now, waits, since)


def due_times(snapshot: RunSnapshot) -> DueAt:
    """Returns the function that says until when a task waits for a clock or a retry."""
    set_for = {((one.point, one.name), one.timer): one.at for one in snapshot.stored.timers}
    clocks = ClockTriggers(snapshot.graph.xtriggers, snapshot.graph.cycling)

    def due_at(key: Key, wait: str) -> Instant | None:
        at = set_for.get((key, wait))
        return clocks.due_at(wait, key[0]) if at is None else at

    return due_at


def recall_all(pool: TaskPool, rows: Iterable[PutMemory]) -> None:
    """Gives back to the pool what it has forgotten, for people to see."""
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
    """Makes the pool that these rows describe; an empty one for a run that has not begun."""
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
_LEFT = ("stalled", "stopped", "error")

Chain = tuple[NeedView, ...]  # the first is the block's own need, the last is the root


async def chains_of(store: Store, run: int) -> tuple[Chain, ...]:
    """Returns a chain for each need of a run that is not met, to what has to happen first."""
    needs = await store.needs_of([run])
    open_ones = [one for one in needs if one.state is not NeedState.MET]
    return tuple([await _with_abort(store, await _chain(store, one)) for one in open_ones])


async def _with_abort(store: Store, chain: Chain) -> Chain:
    """Adds to a chain whether its root was aborted, as nobody could carry it on then."""
    *before, root = chain
    if root.status != "stopped":
        return chain
    run = await store.find_run(root.parent)
    return (*before, replace(root, aborted=run.is_aborted))


async def _chain(store: Store, need: NeedView) -> Chain:
    """Returns the shortest chain to an end where somebody has to act, else to any end."""
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
    return min(ends, key=lambda one: (not _is_stuck(one[-1]), len(one)), default=(need,))


def _is_stuck(need: NeedView) -> bool:
    return need.state is NeedState.NEVER or (need.status in _LEFT and not need.going)


def wait_document(name: str, chain: Chain) -> RunReason:
    """Returns why a run as a whole waits; `actions` is empty, as commands concern the root."""
    root = chain[-1]
    verb = "needs" if root.state is NeedState.NEVER else "waits for"
    links = [f"it {verb} {chain[0]}"]
    links += [f"{before.parent} {verb} {need}" for before, need in pairwise(chain)]
    text = f"{name} {'; '.join(links).removeprefix('it ')}"
    if root.state is NeedState.NEVER:
        text = f"{name} can never begin: {'; '.join(links)}, which is over"
    return {
        "text": text,
        "passes": not _is_stuck(root),
        "until": None,
        "commands": _commands(name, root),
        "actions": [],
    }


def _commands(name: str, root: NeedView) -> list[str]:
    if not _is_stuck(root):
        return []
    # A stalled run would stall again at once; this option leaves time to mend it.
    option = " --stall-timeout 1h" if root.status == "stalled" else ""
    lines = [f"tidewheel run {shlex.quote(root.parent)}{option}"]
    abort = [f"tidewheel blocks abort {shlex.quote(name)}"]
    can_go_on = root.status in _LEFT and not root.aborted
    return [*(lines if can_go_on else ()), *abort]
