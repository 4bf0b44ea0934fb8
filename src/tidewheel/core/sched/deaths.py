"""How it becomes known that outputs will not be made any more (SEMANTICS §5)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.absolute import settle_absolute
from tidewheel.core.sched.conditions import output_value
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.outputs import children_to_judge, count_member
from tidewheel.core.sched.plan import NodePlan
from tidewheel.core.sched.states import Flows, Value, Verdict, VerdictKind

FINISHED = Verdict(VerdictKind.FINISHED, Value.NOT_TAKEN, ended=SUCCEEDED)


def finished_as(ended: str) -> Verdict:
    """The verdict on a task that ended completely, but did not succeed."""
    return Verdict(VerdictKind.FINISHED, Value.LOST, ended=ended)


def condemn(draft: Draft, node: NodePlan, point: Point, flows: Flows, verdict: Verdict) -> None:
    """Nothing more will come of a task in these flows: its unmade outputs die there."""
    memory = draft.pool.remember(point, node.name)
    verdicts = memory.verdicts
    for flow in flows:
        verdicts[flow] = verdict
    draft.touched.memory[(point, node.name)] = None
    if node.heard and draft.plan.policy.deaths_are_judged:
        made = memory.made
        for output in node.heard:
            if made.get(output) != flows:
                reassess(draft, node, point, flows)
                break


def acquit(draft: Draft, node: NodePlan, point: Point, flow: int) -> None:
    """Take a verdict back: what died by it is open again."""
    del draft.pool.remember(point, node.name).verdicts[flow]
    draft.touched.memory[(point, node.name)] = None
    if draft.plan.policy.deaths_are_judged:
        reassess(draft, node, point, frozenset({flow}))


def reassess(draft: Draft, node: NodePlan, point: Point, flows: Flows) -> None:
    """Have the children judged whose atoms of this task are not true."""
    key = (point, node.name)
    memory = draft.pool.remember(point, node.name)
    for output in node.heard:
        made = memory.made.get(output)
        unmade = flows - made if made is not None else flows
        if not unmade:
            continue
        for link in node.links.get(output, ()):
            children_to_judge(draft, link, point, unmade)
        for group in node.groups.get(output, ()):
            count_member(draft, group, key, unmade)
        for link in node.absolute.get((point, output), ()):
            for flow in sorted(unmade):
                value = output_value(memory, output, frozenset({flow}))
                settle_absolute(draft, link, flow, value)
