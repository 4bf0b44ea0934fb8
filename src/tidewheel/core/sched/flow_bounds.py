"""How far a flow may go: until points and tasks, or not at all if stopped (SEMANTICS §8)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.states import Flows, Key


def may_spawn(pool: Pool, flow: int, point: Point) -> bool:
    """Whether a task may be spawned at a point in a flow."""
    if point < pool.run.start:
        return False
    state = pool.flows.get(flow)
    if state is None:
        return True
    return not state.stopped and (state.until is None or point <= state.until)


def going_on(pool: Pool, flows: Flows, parent: Key) -> Flows:
    """Of a parent's flows, those that do not end with it."""
    states = pool.flows
    if len(states) == 1:
        return flows
    return frozenset(
        flow for flow in flows if flow not in states or parent not in states[flow].until_tasks
    )
