"""A definition is what a person wrote, whichever front end read it: it is what is compiled.

A `WorkflowDef` is a value. Names have been expanded (families to their members on the right,
parameters everywhere), texts have become points, intervals and sequences; nothing has been
judged yet.

Where Cylc 8 and tidewheel judge a definition differently, a `Policy` says so as values that
travel with it: the checks and the scheduler read these; none of them asks "is this
compatibility mode" (SEMANTICS §14).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Calendar, Point
from tidewheel.core.cycling.interval import Interval
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.condition import Condition
from tidewheel.core.graph.findings import NOWHERE, Position, Severity
from tidewheel.core.graph.node import NodeDef

RUNAHEAD_POINTS_DEFAULT = 4
LIMIT_DEFAULT = 100  # active tasks of a limit group
ROOT_NODE = NodeDef(name="root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Holds how a definition is judged."""

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


@dataclass(frozen=True, slots=True)
class Arrow:
    """`condition => targets`, or `condition => !targets` for a suicide arrow."""

    condition: Condition
    targets: tuple[str, ...]
    suicide: bool = False
    position: Position = NOWHERE


class Placement(NamedTuple):
    """A node named without an offset stands on the sequence of its section."""

    node: str
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSection:
    """One recurrence and the arrows that hold at its points."""

    recurrence: str
    sequence: Sequence
    arrows: tuple[Arrow, ...]
    placements: tuple[Placement, ...]
    position: Position = NOWHERE


class OutputMark(NamedTuple):
    """One mention of an output in the graph: with `?` it is optional.

    A family's mark holds for each member that the graph does not mark itself, and a plain name
    at the right end of a chain is no mention of success (SEMANTICS §3).
    """

    node: str
    output: str
    optional: bool
    by_family: bool = False
    # False for the outputs that `:finish` stands for: it makes them optional in either style.
    explicit: bool = True
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class FamilyDef:
    """A named group of nodes; `parent` is the family it is drawn in."""

    name: str
    members: tuple[str, ...]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class XtriggerDef:
    """A call to be made until it is satisfied."""

    label: str
    function: str
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()
    interval_seconds: float = 10.0
    sequential: bool = False
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """A group of which at most `limit` members may be active at once; 0 is no limit."""

    name: str
    limit: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialNodes:
    """Nodes that wait for more than their arrows, or not for ever."""

    sequential: frozenset[str] = frozenset()  # each waits for its own previous instance
    wait_for_clock: Mapping[str, Interval] = field(
        default_factory=dict
    )  # till point + interval
    expire_after: Mapping[str, Interval] = field(default_factory=dict)  # at point + interval
    wait_for_message: Mapping[str, str] = field(default_factory=dict)  # from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclingDef:
    """Holds where the points lie: all of them are integers, `style` writes them."""

    style: PointStyle
    initial: Point
    final: Point | None = None
    start: Point | None = None
    stop: Point | None = None
    hold_after: Point | None = None
    # How far ahead of the oldest unfinished point: so many points, or an interval.
    runahead: int | Interval = RUNAHEAD_POINTS_DEFAULT

    @property
    def is_integer(self) -> bool:
        return self.style.calendar is Calendar.INTEGER


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDef:
    """A whole definition."""

    name: str
    cycling: CyclingDef
    sections: tuple[GraphSection, ...]
    nodes: Mapping[str, NodeDef]
    families: Mapping[str, FamilyDef] = field(default_factory=dict)
    marks: tuple[OutputMark, ...] = ()
    xtriggers: Mapping[str, XtriggerDef] = field(default_factory=dict)
    limit_groups: tuple[LimitGroup, ...] = ()
    special: SpecialNodes = field(default_factory=SpecialNodes)
    # What a node has that the graph names and nobody defines.
    root: NodeDef = ROOT_NODE
    implicit_nodes_allowed: bool | None = None
    policy: Policy = TIDEWHEEL
    # Whether every line of the graph was understood: if not, nothing can be called missing.
    is_whole: bool = field(default=True, compare=False)


DEFAULT_GROUP = "default"


def limit_groups(
    limits: Mapping[str, tuple[int, Iterable[str]]], families: Mapping[str, tuple[str, ...]]
) -> tuple[LimitGroup, ...]:
    """Limit and named members of each group, families replaced by their members.

    A node is in the last group that names it; all others are in the default one.
    """
    limit_of = {DEFAULT_GROUP: LIMIT_DEFAULT} | {name: one[0] for name, one in limits.items()}
    group_of = {
        task: name
        for name, (_, members) in limits.items()
        for member in members
        for task in families.get(member, (member,))
    }
    found: dict[str, list[str]] = {name: [] for name in limit_of}
    for task, name in group_of.items():
        if name != DEFAULT_GROUP:
            found[name].append(task)
    return tuple(
        LimitGroup(name, limit, tuple(found[name])) for name, limit in limit_of.items()
    )
