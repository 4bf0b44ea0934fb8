"""Says in one word which state a task of a run has, in the pool or only remembered.

Whatever else keeps a task is a remark beside its state (held, runahead, retrying, xtrigger,
blocked, incomplete, withdrawn), because several of these may be true at once.
"""

from __future__ import annotations

from tidewheel.core.graph.outputs import ENDS, SUCCEEDED
from tidewheel.core.sched.explain import is_withdrawn
from tidewheel.core.sched.persistence import PooledTaskRow, PutMemory
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.spawn import RETRY, standing_of
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
    Verdict,
    VerdictKind,
)
from tidewheel.lazy_dataclasses import NamedTuple

WAITING, READY = "waiting", "ready"
FUTURE = "future"  # in the graph, not spawned
LOST, NOT_TAKEN, REMOVED = "lost", "not taken", "removed"
ALONE = "ended"  # ran in no flow and left nothing but its submissions

# Every state, in the order in which counts are shown.
STATES = (
    *("running", "submitted", "preparing", READY, WAITING),
    *("failed", "submit-failed", "expired", "succeeded"),
    *(ALONE, LOST, NOT_TAKEN, REMOVED, FUTURE),
)
# What may stand beside one.
REMARKS = (
    *("held", "runahead", "retrying", "xtrigger", "blocked", "incomplete"),
    "withdrawn",
)
ACTIVE = frozenset(("running", "submitted", "preparing"))
# Nothing more will come of a task that is not in the pool and is in one of these states.
OVER = frozenset((*ENDS, ALONE, LOST, NOT_TAKEN, REMOVED))


class TaskWords(NamedTuple):
    """Holds the state of a task, in words."""

    state: str
    remarks: tuple[str, ...] = ()
    flows: Flows = frozenset()
    in_pool: bool = False

    @property
    def text(self) -> str:
        return f"{self.state} ({', '.join(self.remarks)})" if self.remarks else self.state


def words_of(pool: TaskPool, key: Key) -> TaskWords:
    """Returns the state of a task, in words."""
    task = pool.tasks.get(key)
    if task is not None:
        remarks = remarks_of(task)
        if is_withdrawn(pool, task):
            remarks += ("withdrawn",)
        return TaskWords(pooled_state(task), remarks, task.flows, in_pool=True)
    memory = pool.recall(*key)
    if memory is None:
        held = ("held",) if key in pool.run.held_tasks else ()
        return TaskWords(FUTURE, held)
    node = pool.plan.graph.nodes.get(key[1])
    said = "" if node is None else node.definition.skip.remark
    return TaskWords(_remembered_state(memory), (said,) if said else (), memory.spawned)


def row_words(row: PooledTaskRow | None, memory: PutMemory | None) -> TaskWords:
    """Returns the state of a task in words, from its row in the pool, else from what is
    remembered of it; without either it is as if it had never been spawned."""
    if row is not None:
        return TaskWords(pooled_state(row), remarks_of(row), row.flows, in_pool=True)
    if memory is None:
        return TaskWords(FUTURE)
    return TaskWords(_remembered_state(memory.memory()), (), memory.spawned)


def is_done(pool: TaskPool, key: Key, words: TaskWords) -> bool:
    """Says whether the work of a task was done: it succeeded, or its graph has no work for it,
    since its branch was not taken or a suicide arrow removed it.

    Other tasks that are over are not done: they failed, expired, or are lost, or somebody
    removed them.
    """
    if words.in_pool or words.state != REMOVED:
        return not words.in_pool and words.state in (SUCCEEDED, NOT_TAKEN)
    memory = pool.recall(*key)
    assert memory is not None
    return memory.verdicts[max(memory.verdicts)].kind is VerdictKind.SUICIDE


def pooled_state(task: PooledTask | PooledTaskRow) -> str:
    standing = standing_of(task)
    if standing is PoolState.ACTIVE:
        return task.stage.name.lower()
    if standing is PoolState.INCOMPLETE:
        return task.ended
    return READY if standing is PoolState.READY else WAITING


def remarks_of(task: PooledTask | PooledTaskRow) -> tuple[str, ...]:
    """Returns the remarks about a pooled task, beside its state."""
    waiting = task.stage is JobPhase.WAITING
    found = {
        "incomplete": task.stage is JobPhase.INCOMPLETE,
        "blocked": task.blocked,
        "held": task.held,
        "retrying": waiting and RETRY in task.waits,
        "xtrigger": waiting and any(one != RETRY for one in task.waits),
        "runahead": waiting and not task.admitted,
        "by hand": task.manual,
    }
    return tuple(word for word, is_so in found.items() if is_so)


def _remembered_state(memory: TaskHistory) -> str:
    if memory.verdicts:
        return verdict_word(memory.verdicts[max(memory.verdicts)])
    ends = [end for end in ENDS if end in memory.made]
    if ends:
        return ends[0]
    return ALONE if memory.submits else FUTURE


def verdict_word(verdict: Verdict) -> str:
    match verdict.kind:
        case VerdictKind.FINISHED:
            return verdict.ended or SUCCEEDED
        case VerdictKind.PRUNED:
            return LOST if verdict.death is AtomValue.LOST else NOT_TAKEN
        case _:
            return REMOVED
