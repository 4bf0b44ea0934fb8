"""Where Cylc 8 and tidewheel judge a definition differently, as values that travel with it.

The scheduler and the checks read these; none of them asks "is this compatibility mode"
(SEMANTICS §14).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.graph.findings import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a definition is judged."""

    name: str
    # Without it a task is judged by its marks only where it has one (SEMANTICS §3).
    marks_apply_to_all: bool
    # In the graph and not defined: a warning where root gives something to do, or an error.
    implicit_nodes: Severity
    # A parent that is on no sequence at the points where it is asked for.
    parent_off_sequence: Severity


TIDEWHEEL = Policy(
    name="tidewheel",
    marks_apply_to_all=False,
    implicit_nodes=Severity.WARNING,
    parent_off_sequence=Severity.ERROR,
)
CYLC8 = Policy(
    name="cylc8",
    marks_apply_to_all=True,
    implicit_nodes=Severity.ERROR,
    parent_off_sequence=Severity.WARNING,
)
POLICIES = {policy.name: policy for policy in (TIDEWHEEL, CYLC8)}
