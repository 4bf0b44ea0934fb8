"""Ends services when what they run for is over; says what the end of a service's job means.

Theory of operation. A service is a node that runs *until* others have ended (`NodeDef.until`).
It begins as any other, and the tasks that use it wait for its start. Whether it is needed any
longer is a level, asked at the end of a step: the tasks for which it runs, at its point and in
its flows, have ended, or are known never to begin. Then it is let go: its job is ended as if
somebody had killed it, but however that job ends, the task has succeeded. A service whose job
ends before that has failed, whatever its exit status: those who use it have lost it.

Tasks that can never begin are not all known as such: one that waits for an incomplete task may
still be repaired. So there is a second rule. If nothing but services is active and nothing else
will happen by itself, the run would wait for its services and they for the run: all of them are
let go, and what is left then is a run that is complete or stalled, as it would be without them.
A run that is being killed lets none go, since what somebody ended has not succeeded; one that
stops cleanly does not wait for services, which run on and are found again when it goes on.

That a service was let go is stored with its task, in the step that ends its job: after a crash
nothing is decided twice. A service that has not started yet is never let go: those who wait
for its start would take its end for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.outputs import STARTED
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import MappedTasks, names_of
from tidewheel.core.sched.elements import size_at
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.task_state import Flows, JobPhase, Key, PooledTask, PoolState
from tidewheel.errors import Refused

LET_GO = "let go"  # the notice that a service is ended, and why
_KEPT = (events.StopMode.KILL, events.StopMode.NOW)  # ways to stop that let no service go


def end_services(context: StepContext, event: events.Event) -> None:
    """Lets services go for whose tasks nothing is left to do; some must be running."""
    pool = context.pool
    serving = pool.serving
    if pool.run.stopping in _KEPT:
        return
    if isinstance(event, events.JobSubmitted | events.OutputMade) and event.task not in serving:
        return  # nothing can have ended; and if nothing else goes on, all are let go
    known: dict[object, bool] = {}  # of services that run for the same, as elements do
    for task in [pool.tasks[key] for key in serving]:
        if task.let_go:
            continue
        asked = (task.point, task.flows, task.plan.definition.until)
        if asked not in known:
            known[asked] = all(
                _is_over(pool, name, task.point, task.flows) for name in awaited(pool, task)
            )
        if known[asked]:
            end_service(context, task, f"{_names(task, 'has', 'have')} ended")


def are_alone(pool: TaskPool) -> bool:
    """Says whether services run, none of which is being ended, and no other job does."""
    return bool(pool.serving) and pool.standings[PoolState.ACTIVE] == running_on(pool)


def let_all_go(context: StepContext) -> None:
    """Lets every service go: they are alone, and nothing will happen in the run by itself."""
    pool = context.pool
    for task in [pool.tasks[key] for key in pool.serving]:
        end_service(context, task, f"{_names(task)} cannot begin without action")


def end_of_service(task: PooledTask, event: events.JobEnded) -> events.JobEnded:
    """Returns what the end of a job means: of a service that was let go, success; of one that
    was not, a failure. Of other tasks it is what it is."""
    if task.let_go:
        return event._replace(how=events.JobEnd.SUCCEEDED, why="")
    if not task.plan.definition.until or event.how is not events.JobEnd.SUCCEEDED:
        return event
    return event._replace(how=events.JobEnd.FAILED, why=f"ended {before_text(task)}")


def before_text(task: PooledTask) -> str:
    """Returns `before the end of image, for which it runs`; "" if a task is no service."""
    return (
        f"before the end of {_names(task)}, for which it runs"
        if task.plan.definition.until
        else ""
    )


def until_text(task: PooledTask) -> str:
    """Returns what is to be said of a service beside that it runs; "" of any other task."""
    if not task.plan.definition.until:
        return ""
    return (
        ", and is being ended"
        if task.let_go
        else f", until {_names(task, 'has', 'have')} ended"
    )


def has_service(pool: TaskPool, keys: Iterable[Key]) -> bool:
    """Says whether a service is among these tasks."""
    return any(pool.node(name).definition.until for _, name in keys)


def services_to_run(pool: TaskPool, keys: Iterable[Key]) -> Iterator[Key]:
    """Yields the services of tasks that are to run again: those that ran, and run no more.

    Raises Refused if one of them is being ended.
    """
    for key in keys:
        for service in dict.fromkeys(services_of(pool, key)):
            task = pool.tasks.get(service)
            if pool.recall(*service) is None and task is None:
                continue
            if task is None or task.stage is JobPhase.INCOMPLETE:
                yield service
            elif task.let_go and task.is_active:
                who, used = pool.plan.name_of(key), pool.plan.name_of(service)
                raise Refused(f"{used}, which runs for {who}, is being ended; try again later")


def services_of(pool: TaskPool, key: Key) -> Iterator[Key]:
    """Yields the services that run for a task, or whose start it waits for."""
    point, name = key
    node = pool.node(name)
    known = {name}
    if node.element is not None:
        tasks, index = node.element
        known |= {one for one in tasks.templates if element_name(one, index) == name}
    for other in pool.plan.nodes.values():
        if not known.isdisjoint(other.definition.until):
            yield point, other.name
    for leaf, _ in node.leaves_at(point):
        if leaf.output == STARTED or leaf.group is not None:
            at = leaf.parent_point(point, pool.plan.initial)
            yield from ((at, one) for one in names_of(leaf) if pool.node(one).definition.until)


def running_on(pool: TaskPool) -> int:
    """Returns how many services run that nobody has let go: they do not end by themselves."""
    return sum(not pool.tasks[key].let_go for key in pool.serving)


def ending_jobs(pool: TaskPool) -> int:
    """Returns how many jobs run for which a clean stop waits: all but such services."""
    return sum(task.has_job for task in pool.tasks.values()) - running_on(pool)


def awaited(pool: TaskPool, task: PooledTask) -> Iterator[str]:
    """Yields the tasks for which a service runs; of mapped ones the elements that there are, or
    their source, as long as nobody knows how many."""
    for name in task.plan.definition.until:
        tasks = _mapped(pool, name)
        if tasks is None:
            yield name
        elif (size := size_at(pool, tasks, task.point, task.flows)) is None:
            yield tasks.over.source
        else:
            yield from (element_name(name, index) for index in range(size))


def _mapped(pool: TaskPool, name: str) -> MappedTasks | None:
    return next((one for one in pool.plan.mapped if name in one.templates), None)


def _is_over(pool: TaskPool, name: str, point: Point, flows: Flows) -> bool:
    """Says whether a task has ended, or is known never to begin."""
    task = pool.tasks.get((point, name))
    if task is not None:
        return task.stage is JobPhase.INCOMPLETE
    memory = pool.recall(point, name)
    if memory is None:
        return False
    return not flows.isdisjoint(memory.verdicts) if flows else bool(memory.verdicts)


def end_service(context: StepContext, task: PooledTask, why: str) -> None:
    """Has the job of a service ended: nobody needs it any more."""
    task.let_go = True
    context.touched.tasks[task.key] = None
    context.effects.append(events.KillJob(task.key, task.submit))
    name = context.plan.name_of(task.key)
    context.notice(LET_GO, task.key, f"{name} is being ended: {why}")


def _names(task: PooledTask, verb: str = "", of_several: str = "") -> str:
    names = [name.partition("<")[0] for name in task.plan.definition.until]
    return f"{' and '.join(names)} {verb if len(names) == 1 else of_several}".rstrip()
