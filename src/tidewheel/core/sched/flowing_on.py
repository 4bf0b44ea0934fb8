"""A task that ran with `--wait` flows on, without running again, when a flow arrives."""

from __future__ import annotations

from tidewheel.core.graph.outputs import ENDS, SUCCEEDED
from tidewheel.core.sched.deaths import FINISHED, condemn, finished_as
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.outputs import announce


def flow_on(draft: Draft) -> None:
    """Announce what was held back, in the flows that arrived and in its own."""
    arrived, draft.to_flow_on = draft.to_flow_on, []
    for node, point, flows in arrived:
        memory = draft.pool.remember(point, node.name)
        outputs, memory.held_back = memory.held_back, ()
        known = memory.spawned - memory.verdicts.keys()
        memory.spawned |= flows
        draft.touched.memory[(point, node.name)] = None
        for output in outputs:
            if output in node.heard:
                announce(draft, node, point, output, known | flows)
        ended = next((output for output in ENDS if output in outputs), SUCCEEDED)
        verdict = FINISHED if ended == SUCCEEDED else finished_as(ended)
        condemn(draft, node, point, known | flows, verdict)
