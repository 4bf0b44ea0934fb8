"""The policy of a run says where Cylc 8 and tidewheel schedule differently (SEMANTICS §14).

The rules read these values by what they mean; no rule asks which policy it is under.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.graph.definition import CYLC8, TIDEWHEEL
from tidewheel.core.sched.task_state import AtomValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Says how a run is scheduled; the defaults are tidewheel's own."""

    name: str = TIDEWHEEL.name
    # What `failed`, `submit-failed` and `expired` of a task before the start are worth.
    bad_end_before_start: AtomValue = AtomValue.NOT_TAKEN
    # Tasks that are placed before the start by hand need each other as anywhere else.
    earned_before_the_start: bool = True
    # What anything beyond the final point is worth.
    beyond_final: AtomValue = AtomValue.NOT_TAKEN
    # Whether what can no longer happen is evaluated at all (SEMANTICS §5).
    prunes_unreachable: bool = True
    # A suicide condition applies whenever the task waits, not only when an output arrives.
    suicide_is_a_level: bool = True
    # Tasks that only wait for parents hold the runahead base back, too.
    every_task_counts: bool = False
    limit_raised_by_future_offset: bool = False
    # Parentless is what has no other parents than before the start, or only absolute ones,
    # whatever those are worth; without it truth decides.
    parentless_by_shape: bool = False
    # An absolute output spawns its child at the first point of the arrow, whatever it lacks.
    absolute_spawns_first_child: bool = False
    # The first member of a family that makes the output spawns the family's children, as if the
    # members were written out; without it they come when the family as a whole decides.
    any_member_spawns_children: bool = False
    # Without it a task any atom of which lies beyond the stop or final point never comes.
    spawns_what_needs_beyond_the_end: bool = True
    # An incomplete task that a new flow meets need not wait for that flow's prerequisites.
    met_incomplete_runs_at_once: bool = False
    # Where `trigger` without options puts a task that is not in the pool.
    trigger_joins_active_flows: bool = False
    # What ran with --wait flows on with whichever flow arrives first; without it only with its
    # own, and others run it again.
    any_flow_ends_waiting: bool = True
    # A flow that an operator names and that was never there begins by being named.
    naming_a_flow_starts_it: bool = False
    # A killed job was one try: the task, which is held, goes on with the next when released.
    killed_keeps_its_retries: bool = False
    # What a command names and is not there is left out if it names anything else that is.
    leaves_out_what_is_not_there: bool = False
    # A task without parents that a reload adds comes by itself, at its nearest valid point.
    reload_spawns_new_tasks: bool = True


OURS = SchedulingPolicy()
AS_CYLC8 = SchedulingPolicy(
    name=CYLC8.name,
    bad_end_before_start=AtomValue.TRUE,
    earned_before_the_start=False,
    beyond_final=AtomValue.OPEN,
    prunes_unreachable=False,
    suicide_is_a_level=False,
    every_task_counts=True,
    limit_raised_by_future_offset=True,
    parentless_by_shape=True,
    absolute_spawns_first_child=True,
    any_member_spawns_children=True,
    spawns_what_needs_beyond_the_end=False,
    met_incomplete_runs_at_once=True,
    trigger_joins_active_flows=True,
    any_flow_ends_waiting=False,
    naming_a_flow_starts_it=True,
    killed_keeps_its_retries=True,
    leaves_out_what_is_not_there=True,
    reload_spawns_new_tasks=False,
)
POLICIES = {policy.name: policy for policy in (OURS, AS_CYLC8)}
