"""Says what became of a command: what its asker is told (SEMANTICS §8)."""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.operator.command_events import AppliedCommand, flow_text
from tidewheel.core.sched import events
from tidewheel.core.sched.events import Effect
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.task_state import Key

WAITED_FOR_MAX = 100  # tasks whose end is awaited, in one answer


def answer_of(
    pool: TaskPool, applied: AppliedCommand, effects: Sequence[Effect]
) -> dict[str, object]:
    """Returns what the asker is told, from the pool after the last event and all effects."""
    submits = [one for one in effects if isinstance(one, events.Submit)]
    notices = [one.text for one in effects if isinstance(one, events.Notice)]
    notices += (*applied.notices, *applied.left_out.values())
    answer: dict[str, object] = {
        "tasks": {pool.plan.id_of(key): _flows_of(pool, key, submits) for key in applied.tasks},
        "submitted": [pool.plan.id_of(one.task) for one in submits],
        "killed": [
            pool.plan.id_of(one.task) for one in effects if isinstance(one, events.KillJob)
        ],
        "polled": [
            pool.plan.id_of(one.task) for one in effects if isinstance(one, events.PollJob)
        ],
        "comes_back": [pool.plan.id_of(key) for key in applied.back],
        "forgotten": [pool.plan.id_of(key) for key in applied.forgotten],
        "notices": notices,
        "status": str(pool.run.status),
        "waits_for": _waited_for(pool),
        "stages": pool.plan.is_of_stages,
    }
    unchanged = sorted({**applied.unchanged, **applied.refused}.items())
    answer["unchanged"] = {pool.plan.id_of(key): why for key, why in unchanged}
    answer["refused"] = [*map(pool.plan.id_of, sorted(applied.refused)), *applied.left_out]
    still = applied.tasks if applied.sets_outputs else ()
    answer["still_to_run"] = [pool.plan.id_of(key) for key in still if _is_to_come(pool, key)]
    told = {name: value for name, value in answer.items() if value or name == "tasks"}
    return told | (nothing_changed(applied.idle_because) if applied.idle_because else {})


def _is_to_come(pool: TaskPool, key: Key) -> bool:
    """Says whether a task outside the pool will run when its needs are met."""
    memory = pool.recall(*key)
    return key not in pool.tasks and (memory is None or not (memory.spawned or memory.verdicts))


def nothing_changed(why: str) -> dict[str, object]:
    """Returns what is answered to a command that changes nothing of a run."""
    return {"changed": False, "notices": [why]}


def _waited_for(pool: TaskPool) -> list[str]:
    """Returns the tasks whose end a stopping run awaits, the oldest first; not all of many.

    It is empty for a run that does not stop. What no worker has taken is withdrawn, and not
    waited for.
    """
    if pool.run.status is not RunStatus.STOPPING:
        return []
    begun = sorted(task.key for task in pool.tasks.values() if task.has_job)
    return [pool.plan.id_of(key) for key in begun[:WAITED_FOR_MAX]]


def _flows_of(pool: TaskPool, key: Key, submits: list[events.Submit]) -> str | None:
    """Returns the flows that a task is in, or was submitted in just now; None if in none."""
    task = pool.tasks.get(key)
    if task is not None:
        return flow_text(task.flows)
    found = [one.flows for one in submits if one.task == key]
    return flow_text(found[-1]) if found else None
