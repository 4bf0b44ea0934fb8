"""What happened in a run, batch by batch and submission by submission: for timelines."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.views import ChangesView, RunView, SubmissionView
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    PooledTaskRow,
    PoolLedger,
    PutMemory,
    PutRun,
    PutTask,
    rebuild,
)
from tidewheel.core.sched.task_state import Key
from tidewheel.ports.store import Store
from tidewheel.store.change_rows import read_changes
from tidewheel.views.checkpoints import Before
from tidewheel.views.events import last_rows
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import (
    FUTURE,
    TaskWords,
    memory_words,
    row_words,
    words_of,
)
from tidewheel.vocabulary import time_text

BATCHES_MAX = 1_000
SUBMISSIONS_MAX = 10_000


async def submissions_document(
    store: Store, view: RunView, point: str | None, name: str | None, count: int
) -> Document:
    """Every submission, newest first."""
    limit = min(count, SUBMISSIONS_MAX)
    found = await store.submissions(view.number, point=point, name=name, count=limit)
    return {"run": view.name, "submissions": [_submission(one) for one in found]}


def _submission(one: SubmissionView) -> Document:
    job = read_job_name(one.task_id)
    return {
        "id": f"{job.point}/{job.node}",
        "submit": job.submit,
        "attempt": one.attempt,
        "task": one.task_id,
        "status": one.status,
        "queued_at": time_text(one.submitted_at),
        "started_at": time_text(one.started_at),
        "ended_at": time_text(one.ended_at),
        "exit_status": one.exit_status,
        "error": one.error,
        "worker": one.worker,
    }


async def changes_document(
    store: Store, looked: RunSnapshot, after: int, count: int
) -> Document:
    """What each batch left of the tasks that it touched, oldest first; `next` as `after`."""
    found = await store.run_changes(looked.view.number, after, min(count, BATCHES_MAX))
    return {
        "run": looked.view.name,
        "batches": [batch_of(looked, one) for one in found],
        "next": found[-1].batch if len(found) == count else None,
    }


def batch_of(looked: RunSnapshot, one: ChangesView) -> Document:
    """What one batch left of the tasks that it touched."""
    changes = read_changes(one.changes)
    last = _last_of_each(looked, changes)
    # The words for a task follow from a pool, so the rows are made into one.
    pool = rebuild(looked.pool.plan, last, looked.pool.past)
    shown = []
    for key in sorted({_key(row) for row in last if isinstance(row, PutTask | PutMemory)}):
        words = words_of(pool, key)
        task = pool.tasks.get(key)
        shown.append(
            {
                "id": looked.id_of(key),
                "state": words.state,
                "remarks": list(words.remarks),
                "flows": sorted(words.flows),
                "in_pool": words.pooled,
                "submit": None if task is None else task.submit,
            }
        )
    gone = sorted({row.key for row in changes if isinstance(row, DropTask)} - set(pool.tasks))
    run = next((row.run for row in reversed(changes) if isinstance(row, PutRun)), None)
    return {
        "batch": one.batch,
        "at": time_text(one.at),
        "status": None if run is None else str(run.status),
        "tasks": shown,
        "left_pool": [looked.id_of(key) for key in gone],
    }


def changed_document(looked: RunSnapshot, before: Before) -> list[Document]:
    """What a batch did to each task: where it was, where it is, and what it made meanwhile."""
    rows, memories = last_rows(before.changes)
    found: list[Document] = []
    for key, row in rows.items():
        task, memory = before.task(key), before.memory(key)
        known = set() if task is None else set(task.row.outputs)
        known |= set() if memory is None else {output for output, _ in memory.made}
        after = memories.get(key)
        made = () if after is None else tuple(output for output, _ in after.made)
        words = _words(row, after)
        found.append(
            {
                "id": looked.id_of(key),
                "before": _words(None if task is None else task.row, memory).state,
                "state": words.state,
                "remarks": list(words.remarks),
                "made": [
                    output
                    for output in dict.fromkeys((*(row.outputs if row else ()), *made))
                    if output not in known
                ],
            }
        )
    return found


def _words(row: PooledTaskRow | None, memory: PutMemory | None) -> TaskWords:
    if row is not None:
        return row_words(row)
    return TaskWords(FUTURE) if memory is None else memory_words(memory)


def _key(row: PutTask | PutMemory) -> Key:
    if isinstance(row, PutMemory):
        return row.key
    return (row.row.point, row.row.name)


def _last_of_each(looked: RunSnapshot, changes: Iterable[Change]) -> list[Change]:
    ledger = PoolLedger()
    ledger.write([PutRun(looked.pool.run), *changes])
    return list(ledger.rows.values())
