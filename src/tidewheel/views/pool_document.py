"""The pool of a run, task by task, as flat rows for scripts."""

from __future__ import annotations

from tidewheel.core.sched.task_state import JobPhase, PoolState
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import pooled_state


def pool_document(looked: RunSnapshot) -> Document:
    """Every pooled task, in order of points and names."""
    tasks = sorted(looked.pool.tasks.values(), key=lambda task: task.key)
    return {
        "run": looked.view.name,
        "status": looked.view.status,
        "reason": looked.view.reason,
        "tasks": [
            {
                "id": looked.id_of(task.key),
                "point": looked.pool.plan.text(task.point),
                "name": task.plan.name,
                "state": pooled_state(task),
                "held": task.held,
                "queued": task.standing is PoolState.READY,
                "runahead": task.stage is JobPhase.WAITING and not task.admitted,
                "incomplete": task.standing is PoolState.INCOMPLETE,
                "blocked": task.blocked,
                "flows": sorted(task.flows),
                "submit": task.submit,
            }
            for task in tasks
        ],
    }
