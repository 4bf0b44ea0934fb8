"""A run begins, pauses, goes on and stops; a flow is stopped (SEMANTICS §4.1, 8, 9)."""

from __future__ import annotations

from tidewheel.core.sched.effects import KillJob
from tidewheel.core.sched.events import (
    FlowStopped,
    RunContinued,
    RunPaused,
    RunResumed,
    RunStarted,
    RunStopped,
    StopMode,
    StopPointSet,
    StopTaskSet,
    TasksTriggered,
)
from tidewheel.core.sched.flows import evaluate_ends_of_the_graph
from tidewheel.core.sched.parentless import start_chain
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.runahead import take_back
from tidewheel.core.sched.spawn import RETRY, leave
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import FIRST_FLOW, JobPhase, PooledTask
from tidewheel.core.sched.trigger import triggered


def paused(context: StepContext, event: RunPaused) -> None:  # noqa: ARG001
    context.pool.run.paused = True
    context.touched.run = True


def resumed(context: StepContext, event: RunResumed) -> None:  # noqa: ARG001
    context.pool.run.paused = False
    context.touched.run = True
    _open_queues(context)


def stopped(context: StepContext, event: RunStopped) -> None:
    run = context.pool.run
    run.stopping = event.mode.value
    context.touched.run = True
    if event.mode is StopMode.KILL:
        for task in context.pool.tasks.values():
            if task.is_active:
                context.effects.append(KillJob(task.key, task.submit))


def stop_point_set(context: StepContext, event: StopPointSet) -> None:
    """Sets the stop point, and takes back the admission of waiting tasks that lie beyond it."""
    stop = event.point
    context.pool.run.stop = stop
    context.pool.may_admit = True
    context.touched.run = True
    if stop is not None:
        for task in list(context.pool.tasks.values()):
            if task.point > stop and task.admitted and _only_waits(task):
                take_back(context, task)


def _only_waits(task: PooledTask) -> bool:
    return task.stage is JobPhase.WAITING and not task.manual and RETRY not in task.waits


def stop_task_set(context: StepContext, event: StopTaskSet) -> None:
    context.pool.run.stop_after = event.task
    context.touched.run = True


def run_continued(context: StepContext, event: RunContinued) -> None:
    """A stopped run goes on where it was."""
    run = context.pool.run
    run.stopping = ""
    run.status = RunStatus.RUNNING
    run.stop = event.stop
    context.pool.may_admit = True
    context.touched.run = True
    _open_queues(context)


def flow_stopped(context: StepContext, event: FlowStopped) -> None:
    """Stops a flow: its waiting tasks go, its active ones finish without spawning."""
    pool = context.pool
    state = pool.flows.get(event.flow)
    if state is None:
        return
    state.stopped = True
    context.touched.flows[event.flow] = None
    for task in [task for task in pool.tasks.values() if event.flow in task.flows]:
        _leave_flow(context, task, event.flow)
    for chain in [chain for chain in pool.chains if chain[1] == event.flow]:
        del pool.chains[chain]
        context.touched.chains[chain] = None


def _leave_flow(context: StepContext, task: PooledTask, flow: int) -> None:
    if len(task.flows) > 1:
        task.flows -= {flow}
        context.pool.flow_counts[flow] -= 1
        context.touched.tasks[task.key] = None
        context.evaluate(task.key, task.flows)
    elif not task.is_active:
        leave(context, task)


def _open_queues(context: StepContext) -> None:
    context.freed.update(dict.fromkeys(range(len(context.pool.queues))))


def run_started(context: StepContext, event: RunStarted) -> None:
    """Begin every chain, and evaluate what is dead although nothing has ended yet."""
    pool = context.pool
    context.touched.run = True
    context.touched.flows[1] = None
    if event.tasks:
        triggered(context, TasksTriggered(tasks=event.tasks, at=event.at, flow=FIRST_FLOW))
    else:
        for node in pool.plan.nodes.values():
            start_chain(context, node, 1, pool.run.start)
    evaluate_ends_of_the_graph(context, 1)
