"""A run begins, pauses, goes on and stops; a flow is stopped (SEMANTICS §4.1, 8, 9)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import Leaf, NodePlan
from tidewheel.core.sched.effects import KillJob
from tidewheel.core.sched.events import (
    Pause,
    Resume,
    RunContinued,
    RunStarted,
    Stop,
    StopAfterTask,
    StopAtPoint,
    StopFlow,
    StopMode,
    Trigger,
)
from tidewheel.core.sched.index_builder import BAD_ENDS
from tidewheel.core.sched.parentless import start_chain
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.runahead import take_back
from tidewheel.core.sched.spawn import RETRY, leave
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import FIRST_FLOW, Stage, Task
from tidewheel.core.sched.trigger import triggered


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


def run_started(draft: Draft, event: RunStarted) -> None:
    """Begin every chain, and judge what is dead although nothing has ended yet."""
    pool = draft.pool
    draft.touched.run = True
    draft.touched.flows[1] = None
    if event.tasks:
        triggered(draft, Trigger(tasks=event.tasks, at=event.at, flow=FIRST_FLOW))
        return
    for node in pool.plan.nodes.values():
        start_chain(draft, node, 1, pool.run.start)
    judge_ends_of_the_graph(draft, 1)


def judge_ends_of_the_graph(draft: Draft, flow: int) -> None:
    """Failures before the start did not happen, and beyond the final point nothing will."""
    pool = draft.pool
    start, final = pool.run.start, pool.plan.final
    for node in pool.plan.nodes.values():
        leaves = [leaf for arrow, _ in node.arrows for leaf in arrow.leaves]
        if any(map(_may_fail_before, leaves)):
            _judge(draft, node, flow, (start, Point(start + pool.plan.reach_back)))
        if final is not None and any(map(_may_reach_ahead, leaves)):
            first = max(Point(final - pool.plan.reach_ahead), start)
            _judge(draft, node, flow, (first, final))


def _judge(draft: Draft, node: NodePlan, flow: int, points: tuple[Point, Point]) -> None:
    first, last = points
    point = node.next_after(Point(first - 1))
    while point is not None and point <= last:
        draft.to_judge.append(((point, node.name), flow))
        point = node.next_after(point)


def _may_fail_before(leaf: Leaf) -> bool:
    return leaf.output in BAD_ENDS and leaf.offset is not None and (leaf.shift or -1) < 0


def _may_reach_ahead(leaf: Leaf) -> bool:
    return (
        leaf.offset is not None
        and leaf.absolute is None
        and (leaf.shift is None or leaf.shift > 0)
    )
