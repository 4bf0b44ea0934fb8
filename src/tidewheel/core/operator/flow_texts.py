"""Flows as people write them: nothing, `new`, `all`, `none`, or numbers as in `1,3`."""

from __future__ import annotations

from tidewheel.core.sched.events import FlowChoice
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.task_state import Flows
from tidewheel.errors import Refused

FLOW_MAX = 1_000_000

_CHOICES = {
    "": FlowChoice.DEFAULT,
    "new": FlowChoice.NEW,
    "all": FlowChoice.ALL,
    "none": FlowChoice.NONE,
}


def read_flows(pool: Pool, text: str) -> FlowChoice | Flows:
    """What was asked for; a flow that was never there is refused, naming those that were."""
    choice = _CHOICES.get(text.strip().lower())
    if choice is not None:
        return choice
    return frozenset(_read_number(pool, part) for part in text.split(","))


def known_flow(pool: Pool, number: int) -> int:
    if number not in pool.flows:
        known = ", ".join(map(str, sorted(pool.flows)))
        raise Refused(f"there is no flow {number}; known flows: {known}")
    return number


def flow_text(flows: Flows) -> str:
    """As it is shown and logged."""
    return ",".join(map(str, sorted(flows))) or "none"


def _read_number(pool: Pool, part: str) -> int:
    part = part.strip()
    if not part.isdecimal() or not 1 <= int(part) <= FLOW_MAX:
        raise Refused(f"{part!r} is no flow; write a number as in 2 or 1,3, new, all or none")
    if pool.plan.policy.naming_a_flow_starts_it:
        return int(part)
    return known_flow(pool, int(part))
