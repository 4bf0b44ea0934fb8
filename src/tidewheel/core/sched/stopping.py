"""`pause`, `resume`, `stop`: what operators do to the run, or to a flow (SEMANTICS §8, §9)."""

from __future__ import annotations

from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.effects import KillJob
from tidewheel.core.sched.events import (
    Pause,
    Resume,
    RunContinued,
    Stop,
    StopAfterTask,
    StopAtPoint,
    StopFlow,
    StopMode,
)
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.runahead import take_back
from tidewheel.core.sched.spawning import RETRY, leave
from tidewheel.core.sched.states import Stage, Task


def paused(draft: Draft, event: Pause) -> None:  # noqa: ARG001
    draft.pool.run.paused = True
    draft.touched.run = True


def resumed(draft: Draft, event: Resume) -> None:  # noqa: ARG001
    draft.pool.run.paused = False
    draft.touched.run = True
    _open_queues(draft)


def stopped(draft: Draft, event: Stop) -> None:
    run = draft.pool.run
    run.stopping = event.mode.value
    draft.touched.run = True
    if event.mode is StopMode.KILL:
        for task in draft.pool.tasks.values():
            if task.is_active:
                draft.effects.append(KillJob(task.key, task.submit))


def stop_point_set(draft: Draft, event: StopAtPoint) -> None:
    """What was released beyond the point and only waits has to wait for the next start."""
    stop = event.point
    draft.pool.run.stop = stop
    draft.pool.may_release = True
    draft.touched.run = True
    if stop is not None:
        for task in list(draft.pool.tasks.values()):
            if task.point > stop and task.released and _only_waits(task):
                take_back(draft, task)


def _only_waits(task: Task) -> bool:
    return task.stage is Stage.WAITING and not task.manual and RETRY not in task.waits


def stop_task_set(draft: Draft, event: StopAfterTask) -> None:
    draft.pool.run.stop_after = event.task
    draft.touched.run = True


def run_continued(draft: Draft, event: RunContinued) -> None:
    """A stopped run goes on where it was."""
    run = draft.pool.run
    run.stopping = ""
    run.status = RunStatus.RUNNING
    run.stop = event.stop
    draft.pool.may_release = True
    draft.touched.run = True
    _open_queues(draft)


def flow_stopped(draft: Draft, event: StopFlow) -> None:
    """Its waiting tasks go, its active ones finish without spawning."""
    pool = draft.pool
    state = pool.flows.get(event.flow)
    if state is None:
        return
    state.stopped = True
    draft.touched.flows[event.flow] = None
    for task in [task for task in pool.tasks.values() if event.flow in task.flows]:
        _leave_flow(draft, task, event.flow)
    for chain in [chain for chain in pool.chains if chain[1] == event.flow]:
        del pool.chains[chain]
        draft.touched.chains[chain] = None


def _leave_flow(draft: Draft, task: Task, flow: int) -> None:
    if len(task.flows) > 1:
        task.flows -= {flow}
        draft.pool.flow_counts[flow] -= 1
        draft.touched.tasks[task.key] = None
        draft.to_judge.extend((task.key, other) for other in task.flows)
    elif not task.is_active:
        leave(draft, task)


def _open_queues(draft: Draft) -> None:
    draft.freed.update(dict.fromkeys(range(len(draft.pool.queues))))
