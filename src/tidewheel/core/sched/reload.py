"""`reload`: a new definition replaces the old one, whole or not at all (SEMANTICS §8).

The pool is rebuilt from its own rows under the new plan, as after a restart: that is the one
way in which a pool is made from what is known. What differs is looked up afterwards:
prerequisites that changed, tasks that are gone, tasks that are new, and points that a later
final point adds.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.chains import start_chain
from tidewheel.core.sched.compile_plan import plan_of
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.events import Reload
from tidewheel.core.sched.flow_choice import active_flows
from tidewheel.core.sched.outputs import come
from tidewheel.core.sched.plan import NodePlan, Plan
from tidewheel.core.sched.pool import Pool, RunStatus
from tidewheel.core.sched.records import everything, rebuild
from tidewheel.core.sched.spawning import leave, look_up, settle
from tidewheel.core.sched.states import Stage


def reloaded(draft: Draft, event: Reload) -> None:
    """Go on with another graph."""
    pool = draft.pool
    old = pool.plan
    plan = plan_of(event.graph)
    for name in sorted(old.nodes.keys() - plan.nodes.keys()):
        plan.nodes[name] = orphan(old.nodes[name])
    _replace(pool, rebuild(plan, everything(pool), pool.past))
    draft.plan = plan
    draft.touched.tasks.update(dict.fromkeys(pool.tasks))
    _drop_removed(draft, plan)
    _look_up_again(draft)
    first = pool.counted.earliest()
    if first is None:
        first = pool.run.horizon or pool.run.start
    for node in plan.nodes.values():
        is_new = node.name not in old.nodes and plan.policy.reload_spawns_new_tasks
        if is_new or _ended(old, plan):
            for flow in sorted(active_flows(pool)):
                if (node.name, flow) not in pool.chains:
                    start_chain(draft, node, flow, first)
    if old.final is not None and _ended(old, plan):
        _go_beyond(draft, old.final)
    if pool.run.status == RunStatus.COMPLETED:
        pool.run.status = RunStatus.RUNNING
        draft.touched.run = True


def orphan(node: NodePlan) -> NodePlan:
    """A task that is no longer in the graph: what is active ends, and nothing follows."""
    return NodePlan(
        name=node.name,
        definition=node.definition,
        completion=node.completion,
        sequences=(),
        rank=node.rank,
        success_suffices=node.success_suffices,
    )


def _replace(pool: Pool, other: Pool) -> None:
    """The pool keeps its identity: the service holds on to it."""
    scratch = pool.scratch
    pool.__dict__.update(other.__dict__)
    pool.scratch = scratch


def _drop_removed(draft: Draft, plan: Plan) -> None:
    for task in list(draft.pool.tasks.values()):
        if task.plan.name not in plan.graph.nodes and not task.is_active:
            leave(draft, task)


def _look_up_again(draft: Draft) -> None:
    for task in draft.pool.tasks.values():
        if task.stage is Stage.WAITING and not task.outputs and not task.satisfied_by_hand:
            task.true = 0
            task.blocked = False
            look_up(draft.pool, task)
            draft.to_judge.extend((task.key, flow) for flow in task.flows)
            settle(draft, task)


def _ended(old: Plan, plan: Plan) -> bool:
    return old.final is not None and (plan.final is None or plan.final > old.final)


def _go_beyond(draft: Draft, final: Point) -> None:
    """Outputs made before the old final point reach children beyond it now."""
    pool = draft.pool
    for point, there in list(pool.memory.items()):
        for name, memory in list(there.items()):
            node = pool.node(name)
            for output, flows in list(memory.made.items()):
                for link in node.links.get(output, ()):
                    for child in pool.plan.child_points(link, point):
                        if child > final and not link.arrow.suicide:
                            for target, _ in link.arrow.targets:
                                come(draft, target, child, flows)
