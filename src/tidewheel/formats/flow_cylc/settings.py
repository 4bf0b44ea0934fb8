"""Everything that a flow.cylc says outside of its graph texts, typed, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from tidewheel.core.graph.findings import NOWHERE, Position
from tidewheel.core.graph.node import NodeDef, Pairs
from tidewheel.formats.flow_cylc.families import ROOT, Families
from tidewheel.formats.flow_cylc.graph_text import GraphString
from tidewheel.formats.flow_cylc.parameters import Parameters
from tidewheel.formats.flow_cylc.runtime import implicit_node
from tidewheel.formats.flow_cylc.xtriggers import WALL_CLOCK, XtriggerCall

STALL_TIMEOUT_SECONDS = 3600.0
QUEUE_LIMIT_DEFAULT = 100


@dataclass(frozen=True, slots=True)
class Placed:
    """A text and where it was written; an empty text was not given."""

    text: str = ""
    position: Position = NOWHERE

    def __bool__(self) -> bool:
        return bool(self.text)


NOT_GIVEN = Placed()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvents:
    """Holds what is called or done when something happens to the run as a whole."""

    handlers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # as in node.Events
    handled_events: tuple[str, ...] = ()
    mail_events: tuple[str, ...] = ()
    workflow_timeout_seconds: float | None = None
    stall_timeout_seconds: float | None = STALL_TIMEOUT_SECONDS
    inactivity_timeout_seconds: float | None = None
    abort_on_workflow_timeout: bool = False
    abort_on_stall_timeout: bool = True
    abort_on_inactivity_timeout: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowMail:
    """Holds where mail about the run comes from and goes to."""

    sender: str = ""
    to: str = ""
    footer: str = ""
    batch_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSection:
    """`[scheduler]`."""

    utc_mode: bool | None = None
    implicit_tasks_allowed: bool | None = None
    point_format: Placed = NOT_GIVEN
    expanded_year_digits: int = 0
    time_zone: Placed = NOT_GIVEN
    events: WorkflowEvents = field(default_factory=WorkflowEvents)
    mail: WorkflowMail = field(default_factory=WorkflowMail)
    prune_across_points: bool = False
    job_commands: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSettings:
    """`[scheduling]` without its sections; points stay text until the cycling mode is known."""

    initial_point: Placed = NOT_GIVEN
    final_point: Placed = NOT_GIVEN
    initial_constraints: tuple[str, ...] = ()
    final_constraints: tuple[str, ...] = ()
    hold_after: Placed = NOT_GIVEN
    stop_after: Placed = NOT_GIVEN
    cycling_mode: Placed = NOT_GIVEN
    runahead_limit: Placed = Placed("P4")


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """`[[queues]] [[[name]]]`: members may be families; 0 is no limit."""

    name: str
    limit: int
    members: tuple[str, ...]
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class XtriggerSetting:
    """A label under `[[xtriggers]]` and the call that it stands for."""

    label: str
    call: XtriggerCall
    sequential: bool = False
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class SpecialTask:
    """A task or family in a list of `[[special tasks]]`, with what its parentheses say."""

    name: str
    argument: str = ""  # an offset such as PT1H, or the message of an external trigger
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTasks:
    """`[[special tasks]]`."""

    clock_trigger: tuple[SpecialTask, ...] = ()
    clock_expire: tuple[SpecialTask, ...] = ()
    external_trigger: tuple[SpecialTask, ...] = ()
    sequential: tuple[SpecialTask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """A whole definition except for the meaning of its graph."""

    meta: Pairs = ()
    scheduler: SchedulerSection = field(default_factory=SchedulerSection)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    graph: tuple[GraphString, ...] = ()
    xtriggers: tuple[XtriggerSetting, ...] = ()
    queues: tuple[QueueSetting, ...] = ()
    special_tasks: SpecialTasks = field(default_factory=SpecialTasks)
    parameters: Parameters = field(default_factory=Parameters)
    families: Families = field(default_factory=lambda: Families({}, {}, {}, {}))
    nodes: Mapping[str, NodeDef] = field(default_factory=dict)  # families included

    def implicit_node(self, name: str, position: Position = NOWHERE) -> NodeDef:
        """Returns the node of a task in the graph that has no section."""
        return implicit_node(name, self.nodes[ROOT], position)

    def xtrigger(self, label: str) -> XtriggerSetting | None:
        """Returns the one with this label; `@wall_clock` needs no definition."""
        for setting in self.xtriggers:
            if setting.label == label:
                return setting
        if label == WALL_CLOCK:
            return XtriggerSetting(label, XtriggerCall(WALL_CLOCK), sequential=True)
        return None

    def is_acyclic(self, initial_point: str = "") -> bool:
        """Says whether this is a plain graph that runs once: integer points from 1 to 1.

        ``initial_point`` is the one of the command line, which counts as if it were written.
        """
        return (
            not self.scheduling.cycling_mode
            and (initial_point or self.scheduling.initial_point.text or "1") == "1"
            and all(one.recurrence in ("1", "R1", "graph") for one in self.graph)
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """Namespaces that are no families, in the order of the definition."""
        return tuple(name for name in self.nodes if not self.families.is_family(name))


def seconds(value: object, default: float | None) -> float | None:
    return default if value is None else cast("float", value)
