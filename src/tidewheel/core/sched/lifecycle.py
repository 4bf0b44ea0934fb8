"""Begins, pauses, reloads, stops and completes runs, and finds stalls (SEMANTICS §4.1, 8, 9).

`update_status` says whether a run can go on by itself, and if not, why (§9). Whether a run is
idle is known from counters. Only when it is, and that is the end of a run or a moment when a
person is needed, are the tasks that are left looked at.

On a reload a new definition replaces the old one, whole or not at all (§8). The pool is rebuilt
from its own rows under the new index, as after a restart: that is the one way in which a pool
is made from what is known. What differs is looked up afterwards: prerequisites that changed,
tasks that are gone, tasks that are new, and points that a later final point adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.shown_names import end_text
from tidewheel.core.sched import events
from tidewheel.core.sched.absolute_triggers import settle_absolute
from tidewheel.core.sched.completion import conclude, is_complete, lacking_text
from tidewheel.core.sched.dependency_index import (
    DependencyIndex,
    IndexedAtom,
    IndexedLink,
    IndexedNode,
    names_of,
    orphan,
)
from tidewheel.core.sched.dependents import dependents
from tidewheel.core.sched.elements import flows_there
from tidewheel.core.sched.evaluation import absolute_key, holds, leaf_value, recorded_value
from tidewheel.core.sched.flows import KEPT_MAX, active_flows, evaluate_ends_of_the_graph
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.limits import next_parentless, start_chain, take_back
from tidewheel.core.sched.missed import find_missed, needs_differ
from tidewheel.core.sched.persistence import everything, rebuild
from tidewheel.core.sched.pool import NOTHING_RAN, RunStatus, StepContext, TaskPool
from tidewheel.core.sched.propagation import publish, reevaluate_dependents, satisfy_child
from tidewheel.core.sched.services import (
    are_alone,
    before_text,
    end_service,
    let_all_go,
    running_on,
)
from tidewheel.core.sched.spawn import RETRY, STALL, leave, look_again, look_up, settle
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    NO_FLOW,
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
)
from tidewheel.core.sched.trigger import triggered


def paused(context: StepContext, event: events.RunPaused) -> None:  # noqa: ARG001
    context.pool.run.paused = True
    context.touched.run = True


def resumed(context: StepContext, event: events.RunResumed) -> None:  # noqa: ARG001
    context.pool.run.paused = False
    context.touched.run = True
    _open_queues(context)


def stopped(context: StepContext, event: events.RunStopped) -> None:
    run = context.pool.run
    run.stopping = event.mode.value
    context.touched.run = True
    if event.mode is events.StopMode.KILL:
        for task in context.pool.tasks.values():
            if task.is_active:
                context.effects.append(events.KillJob(task.key, task.submit))


def stop_point_set(context: StepContext, event: events.StopPointSet) -> None:
    """Sets the stop point, and takes back the admission of waiting tasks that lie beyond it."""
    stop = event.point
    context.pool.run.stop = stop
    context.pool.may_admit = True
    context.touched.run = True
    if stop is not None:
        for task in list(context.pool.tasks.values()):
            only_waits = task.stage is JobPhase.WAITING and not task.manual
            only_waits = only_waits and RETRY not in task.waits
            if task.point > stop and task.admitted and only_waits:
                take_back(context, task)


def stop_task_set(context: StepContext, event: events.StopTaskSet) -> None:
    context.pool.run.stop_after = event.task
    context.touched.run = True


def stop_point(pool: TaskPool, given: Point | None) -> Point | None:
    """Returns the stop point of a run that goes on: the given one, or else the old one.

    None if there is none, or the run has reached the old one (SEMANTICS §9).
    """
    old = pool.run.stop
    if given is not None or old is None:
        return given
    is_reached = pool.run.status == RunStatus.STOPPED and not any(
        task.point <= old and task.standing is not PoolState.WAITING
        for task in pool.tasks.values()
    )
    return None if is_reached else old


def run_continued(context: StepContext, event: events.RunContinued) -> None:
    """Lets a stopped run go on where it was, up to the stop point of the event."""
    run = context.pool.run
    run.stopping = ""
    run.status = RunStatus.RUNNING
    run.stop = event.stop
    context.pool.may_admit = True
    context.touched.run = True
    _open_queues(context)


def flow_stopped(context: StepContext, event: events.FlowStopped) -> None:
    """Stops a flow: its waiting tasks go, its active ones finish without spawning."""
    pool = context.pool
    state = pool.flows.get(event.flow)
    if state is None:
        return
    state.stopped = True
    context.touched.flows[event.flow] = None
    for task in [task for task in pool.tasks.values() if event.flow in task.flows]:
        if len(task.flows) > 1:
            task.flows -= {event.flow}
            pool.flow_counts[event.flow] -= 1
            look_again(context, task)
            context.touched.tasks[task.key] = context.touched.memory[task.key] = None
            context.evaluate(task.key, task.flows)
        elif not task.is_active:
            leave(context, task)
    for chain in [chain for chain in pool.chains if chain[1] == event.flow]:
        del pool.chains[chain]
        context.touched.chains[chain] = None


def _open_queues(context: StepContext) -> None:
    context.freed.update(dict.fromkeys(range(len(context.pool.queues))))


def run_started(context: StepContext, event: events.RunStarted) -> None:
    """Begins a run: triggers the tasks that are given, or begins every chain.

    Tasks whose parents lie before the start or beyond the end are evaluated, since they may be
    lost although nothing has ended yet.
    """
    pool = context.pool
    context.touched.run = True
    context.touched.flows[1] = None
    if event.tasks:
        triggered(
            context, events.TasksTriggered(tasks=event.tasks, at=event.at, flow=FIRST_FLOW)
        )
    else:
        for node in pool.plan.nodes.values():
            start_chain(context, node, 1, pool.run.start)
    evaluate_ends_of_the_graph(context, 1)


TASKS_GONE = "tasks gone"  # the notice that a reload brought a definition without them
DROPPED = "dropped"  # … and that some of these had not run
MISSED = "missed"  # … and that it brought some too late, which do not run by themselves
PARENTS_MAX = 1_000  # looked at to find the cause of one waiting task
CAUSES_TOLD_MAX = 10  # in one sentence; the rest are counted

_STUCK = (PoolState.INCOMPLETE, PoolState.BLOCKED)


def update_status(context: StepContext) -> None:
    """Sets the status of the run, and sends a notice if it has changed.

    A run in which services wait for others, and nothing else will happen, lets them go.
    """
    pool = context.pool
    if are_alone(pool) and _only_serves(pool):
        let_all_go(context)
    old, new = pool.run.status, status_of(pool)
    if new == old:
        return
    pool.run.status = new
    context.touched.run = True
    if old == RunStatus.STALLED:
        context.effects.append(events.CancelTimer(None, STALL))
    context.notice(new, None, _text(context, new))


def status_of(pool: TaskPool) -> RunStatus:
    run = pool.run
    standings = pool.standings
    active = standings[PoolState.ACTIVE]
    if run.stopping:
        # A clean stop does not wait for what does not end by itself.
        lasting = running_on(pool) if run.stopping == "clean" else 0
        over = active == lasting or run.stopping == "now"
        return RunStatus.STOPPED if over else RunStatus.STOPPING
    if run.status == RunStatus.STOPPED:
        return RunStatus.STOPPED
    if run.paused:
        return RunStatus.PAUSED
    if active or standings[PoolState.READY] or standings[PoolState.PENDING]:
        return RunStatus.RUNNING
    return _status_when_idle(pool)


def _only_serves(pool: TaskPool) -> bool:
    """Says whether nothing but services keeps a run from being over, or stalled."""
    run, standings = pool.run, pool.standings
    if run.stopping or run.paused or standings[PoolState.READY] or standings[PoolState.PENDING]:
        return False
    return _status_when_idle(pool) is not RunStatus.WAITING_FOR_RELEASE


def _status_when_idle(pool: TaskPool) -> RunStatus:
    if pool.standings[PoolState.HELD] and any(only_held(pool)):
        return RunStatus.WAITING_FOR_RELEASE
    if left_over(pool):
        return RunStatus.STALLED
    stop = pool.run.stop
    if stop is not None and any(task.point > stop for task in pool.tasks.values()):
        return RunStatus.STOPPED
    return RunStatus.COMPLETED


def only_held(pool: TaskPool) -> Iterator[PooledTask]:
    """Yields the tasks up to the stop point that would run if somebody released them."""
    stop = pool.run.stop
    for task in pool.tasks.values():
        is_held = task.standing is PoolState.HELD and not task.missing
        if is_held and (stop is None or task.point <= stop):
            yield task


def left_over(pool: TaskPool) -> list[PooledTask]:
    """Returns the tasks up to the stop point that are stuck, or admitted and wait for parents.

    They keep an idle run from completing.
    """
    stop = pool.run.stop
    return [
        task
        for task in pool.tasks.values()
        if (stop is None or task.point <= stop) and _is_left_over(pool, task)
    ]


def root_causes(pool: TaskPool) -> list[PooledTask]:
    """Returns the tasks left over that do not merely wait for another one left over."""
    left = left_over(pool)
    keys = {task.key for task in left}
    return [task for task in left if task.standing in _STUCK or not _follows(pool, task, keys)]


def _follows(pool: TaskPool, task: PooledTask, others: set[Key]) -> bool:
    """Says whether a task waits, directly or through others, for one of these other tasks."""
    seen: set[Key] = set()
    todo = [task.key]
    while todo and len(seen) < PARENTS_MAX:
        point, name = todo.pop()
        node = pool.plan.nodes.get(name)
        if node is None or (point, name) in seen:
            continue
        seen.add((point, name))
        for leaf, _ in node.leaves_at(point):
            if leaf_value(pool, leaf, point, task.flows) is AtomValue.OPEN:
                parent = leaf.parent_point(point, pool.plan.initial)
                todo += [(parent, member) for member in names_of(leaf)]
        if not others.isdisjoint(todo):
            return True
    return False


def _is_left_over(pool: TaskPool, task: PooledTask) -> bool:
    if task.standing in _STUCK:
        return True
    waits = task.standing is PoolState.WAITING or (
        task.standing is PoolState.HELD and task.missing
    )
    return bool(waits and task.admitted and not _waits_beyond(pool, task))


def _waits_beyond(pool: TaskPool, task: PooledTask) -> bool:
    """Says whether a task would be ready if everything beyond the stop point had happened."""
    last = pool.run.stop
    if last is None and pool.plan.policy.beyond_final is AtomValue.OPEN:
        last = pool.plan.final
    if last is None:
        return False
    for arrow, base in task.plan.arrows_at(task.point):
        true = task.true >> base
        for leaf in arrow.leaves:
            if leaf.parent_point(task.point, pool.plan.initial) > last:
                true |= 1 << leaf.number
        if not holds(arrow.expression, true):
            return False
    return True


def _text(context: StepContext, status: RunStatus) -> str:
    if status is RunStatus.STALLED:
        found = root_causes(context.pool)
        names = [cause_text(context, task) for task in found[:CAUSES_TOLD_MAX]]
        more = len(found) - len(names)
        return "stalled: " + "; ".join(names) + (f"; … and {more} more" if more else "")
    pool = context.pool
    # Of a definition without any task nothing was left undone.
    if status is RunStatus.COMPLETED and not pool.run.has_submitted and pool.plan.nodes:
        return NOTHING_RAN
    return str(status)


def cause_text(context: StepContext, task: PooledTask) -> str:
    name = context.plan.name_of(task.key)
    if task.standing is PoolState.INCOMPLETE:
        before = before_text(task)
        ended = f"{task.ended} {before}" if before else f"{task.ended}, incomplete"
        if context.plan.is_of_stages:
            ended = f"{end_text(task.ended)} {before}".rstrip()
        return f"{name} {lacking_text(context.pool, task) or ended}"
    if task.standing is PoolState.BLOCKED:
        return f"{name} is blocked"
    awaited = "what it needs" if context.plan.is_of_stages else "its parents"
    return f"{name} waits for {awaited}"


# (point of the parent, tasks, outputs, whether each of the tasks must make one of them)
Atom = tuple[Point, tuple[str, ...], tuple[str, ...], bool]


def reloaded(context: StepContext, event: events.RunReloaded) -> None:
    """Goes on with another graph: rebuilds the pool under it and looks up what differs."""
    pool = context.pool
    old = pool.plan
    plan = build_index(event.graph)
    for name in sorted(name for name in old.nodes if name not in plan.nodes):
        plan.nodes[name] = orphan(name, len(plan.nodes))
    # Of each task the atoms that were true; of a family also who its members were.
    known = {
        key: {
            _atom(old, leaf, task.point)
            for leaf, bit in old.nodes[task.plan.name].leaves_at(task.point)
            if task.true & bit
        }
        for key, task in pool.tasks.items()
    }
    _replace(pool, rebuild(plan, everything(pool), pool.past))
    context.plan = plan
    context.touched.tasks.update(dict.fromkeys(pool.tasks))
    _leave_what_is_gone(context, old)
    settled = _settled_since(pool)
    kept = list(pool.tasks.values())
    for task in kept:
        _look_up_again(context, task, known[task.key])
    for link, flow, value in settled:
        settle_absolute(context, link, flow, value)
    for task in kept:
        _tell_of_outputs(context, task)
    if plan.policy.prunes_unreachable:
        _evaluate_anew(context)
    _begin_chains(context, old, plan)
    if old.final is not None and _ended(old, plan):
        _go_beyond(context, old.final)
    _leave_what_cannot_be_evaluated(context)
    _open_queues(context)
    if pool.run.status == RunStatus.COMPLETED:
        pool.run.status = RunStatus.RUNNING
        context.touched.run = True


def _leave_what_is_gone(context: StepContext, old: DependencyIndex) -> None:
    """Takes tasks out of the pool that the new graph does not have, unless they are active;
    services among those are ended, as they never end by themselves."""
    pool, plan = context.pool, context.plan
    dropped: list[str] = []
    for task in list(pool.tasks.values()):
        is_gone = task.plan.name not in plan.graph.nodes or (
            task.flows and not flows_there(pool, task.plan, task.point, task.flows)
        )
        if is_gone and not task.is_active:
            dropped.append(old.name_of(task.key))
            leave(context, task)
        elif is_gone and old.nodes[task.plan.name].definition.until and not task.let_go:
            end_service(context, task, "it is no longer in the definition")
    tasks = {name for name, node in old.nodes.items() if not node.definition.is_gate}
    if names := sorted(tasks & old.graph.nodes.keys() - plan.graph.nodes.keys()):
        context.notice(TASKS_GONE, None, f"the new definition does not have {_some(names)}")
    if dropped:
        them, are = ("it", "is") if len(dropped) == 1 else ("them", "are")
        text = f"{_some(dropped)} {are} dropped and will not run"
        why = f"the new definition does not have {them}"
        context.notice(DROPPED, None, f"{text}: {why}")


def tell_missed(context: StepContext, old: DependencyIndex) -> None:
    """Tells which tasks of the new definition nothing will spawn, and keeps the newest; after
    all that follows from a reload, which spawns some."""
    run, plan = context.pool.run, context.plan
    known = (key for key in run.missed if key[1] in plan.graph.nodes)
    missed = dict.fromkeys(key for key in known if plan.nodes[key[1]].is_at(key[0]))
    for one in find_missed(context.pool, old):
        context.notice(MISSED, None, one.text(plan))
        missed |= dict.fromkeys(one.to_keep(context.pool))
    run.missed = dict.fromkeys(sorted(missed)[-KEPT_MAX:])
    context.touched.run = True


def _some(names: Sequence[str]) -> str:
    more = len(names) - CAUSES_TOLD_MAX
    shown = ", ".join(names[:CAUSES_TOLD_MAX])
    return f"{shown} and {more} more" if more > 0 else shown


def _settled_since(pool: TaskPool) -> list[tuple[IndexedLink, int, AtomValue]]:
    """Records values of fixed atoms that nothing waited for before; returns those it changed.

    The values count at once; children are told of them later, when every task has looked up
    what it waits for under the new graph.
    """
    found: list[tuple[IndexedLink, int, AtomValue]] = [
        (link, flow, value)
        for link in _fixed_links(pool.plan)
        for flow in _flows_known(pool, link.leaf)
        if (value := recorded_value(pool, link.leaf, flow)) is not AtomValue.OPEN
        and value is not pool.absolute.get(absolute_key(link.leaf), {}).get(flow)
    ]
    for link, flow, value in found:
        pool.absolute.setdefault(absolute_key(link.leaf), {})[flow] = value
    return found


def _fixed_links(plan: DependencyIndex) -> Iterator[IndexedLink]:
    links = [link for group in plan.groups for link in group.links]
    for node in plan.nodes.values():
        links += (link for found in node.absolute.values() for link in found)
    return (link for link in links if link.leaf.absolute is not None)


def _flows_known(pool: TaskPool, leaf: IndexedAtom) -> Flows:
    """Returns the flows in which anything is known of the tasks that a fixed atom asks for."""
    assert leaf.absolute is not None
    if leaf.absolute < pool.run.start:
        return NO_FLOW
    memories = [pool.recall(leaf.absolute, name) for name in names_of(leaf)]
    known = [one for one in memories if one is not None]
    return NO_FLOW.union(*(made for one in known for made in one.made.values())).union(
        *(one.verdicts.keys() for one in known)
    )


def _begin_chains(context: StepContext, old: DependencyIndex, plan: DependencyIndex) -> None:
    """Begins chains of new nodes at the runahead base, and of old ones after the old end or
    where they need no parents from now on."""
    pool = context.pool
    base = pool.counted.earliest()
    if base is None:
        base = pool.run.horizon or pool.run.start
    base = max(
        base, pool.run.start
    )  # somebody may have sent a task to a point before the start
    final = old.final if _ended(old, plan) else None
    for node in list(plan.nodes.values()):  # a look at a list may make elements of it
        for flow in sorted(active_flows(pool)):
            if plan.policy.reload_spawns_new_tasks and _is_new(pool, old, node, flow, base):
                start_chain(context, node, flow, base)
            elif final is not None and (node.name, flow) not in pool.chains:
                start_chain(context, node, flow, max(base, Point(final + 1)))


def _is_new(
    pool: TaskPool, old: DependencyIndex, node: IndexedNode, flow: int, base: Point
) -> bool:
    """Says whether the next task of a node that needs no parents is new with a reload."""
    if node.name not in old.graph.nodes:
        return (node.name, flow) not in pool.chains
    if node.name not in pool.plan.graph.nodes:
        return False
    following = next_parentless(pool, node, flow, Point(base - 1))
    return following is not None and needs_differ(pool, old, node, following)


def _evaluate_anew(context: StepContext) -> None:
    """Evaluates the dependents of all that has ended, since a new graph may need an old end,
    and tasks that may need something before the start or beyond the end."""
    pool = context.pool
    for point, name, memory in _remembered(pool):
        if memory.verdicts:
            flows = frozenset(memory.verdicts)
            reevaluate_dependents(context, pool.node(name), point, flows)
            if name in pool.plan.graph.nodes:  # it may need something else now
                context.evaluate_pruned((point, name), memory, flows)
    for flow in sorted(active_flows(pool) & pool.flows.keys()):
        evaluate_ends_of_the_graph(context, flow)


def _remembered(pool: TaskPool) -> list[tuple[Point, str, TaskHistory]]:
    memories = pool.memory.items()
    return [(point, name, one) for point, there in memories for name, one in there.items()]


def _leave_what_cannot_be_evaluated(context: StepContext) -> None:
    """Takes off the agenda tasks whose parents are forgotten: they were evaluated before."""
    pool = context.pool
    horizon = pool.run.horizon
    if horizon is None:
        return
    first = horizon + pool.plan.reach_back
    context.to_evaluate = [
        one for one in context.to_evaluate if one[0][0] >= first or one[0] in pool.tasks
    ]


def _replace(pool: TaskPool, other: TaskPool) -> None:
    """Replaces the contents of the pool but not the object, because the service keeps that."""
    pool.__dict__.update(other.__dict__ | {"scratch": pool.scratch})


def _look_up_again(context: StepContext, task: PooledTask, known: set[Atom]) -> None:
    """Keeps atoms of a task that were true and are still asked for, and looks up the rest.

    A task that lacked nothing, because an operator said so or because it is tried again, lacks
    nothing under the new graph, either.
    """
    task.true = 0
    for leaf, bit in task.plan.leaves_at(task.point):
        if _atom(context.plan, leaf, task.point) in known:
            task.true |= bit
    if task.stage is not JobPhase.WAITING:
        return
    helped = task.outputs or task.satisfied_by_hand or task.manual
    if task.missing or not helped:
        task.blocked = False
        look_up(context.pool, task)
        context.evaluate(task.key, task.flows)
    settle(context, task)


def _atom(plan: DependencyIndex, leaf: IndexedAtom, point: Point) -> Atom:
    group = leaf.group
    if group is None:
        names: tuple[str, ...] = (leaf.node,)
    elif group.elements is not None:  # as many as there are, of the same list
        over = group.elements.over
        names = (group.family, over.source, over.value)
    else:
        names = tuple(group.members)
    outputs = (leaf.output,) if group is None else group.outputs
    every = group is None or group.every
    return (leaf.parent_point(point, plan.initial), names, outputs, every)


def _tell_of_outputs(context: StepContext, task: PooledTask) -> None:
    """Publishes outputs that nobody waited for before; they may be all that was missing."""
    if not task.flow_wait and task.flows:
        for output in list(task.outputs):
            if output in task.plan.heard and output not in task.memory.made:
                publish(context, task.plan, task.point, output, task.flows)
    if task.stage is JobPhase.INCOMPLETE and is_complete(task):
        conclude(context, task)


def _ended(old: DependencyIndex, plan: DependencyIndex) -> bool:
    return old.final is not None and (plan.final is None or plan.final > old.final)


def _go_beyond(context: StepContext, final: Point) -> None:
    """Lets outputs made before the old final point reach the children beyond it."""
    pool = context.pool
    for point, name, memory in _remembered(pool):
        for output, flows in list(memory.made.items()):
            children = list(dependents(pool, pool.node(name), point, output))
            for child in (one for one in children if one.point > final):
                leaf = child.link.leaf
                true = frozenset(
                    flow
                    for flow in flows
                    if leaf_value(pool, leaf, child.point, frozenset({flow})) is AtomValue.TRUE
                )
                if true:
                    target = (child.node, child.base)
                    satisfy_child(context, child.link, target, child.point, true)
