"""Holds a workflow as a person wrote it, whichever front end read it, before it is compiled.

A `WorkflowDef` is a value. Names have been expanded (families to their members on the right,
parameters everywhere), texts have become points, intervals and sequences; nothing has been
judged yet.

Where Cylc 8 and tidewheel judge a definition differently, a `Policy` says so as values that
travel with it: the checks and the scheduler read these; none of them asks "is this
compatibility mode" (SEMANTICS §14).

A condition is the left side of an arrow: what must have happened before its right side may run.
A family stays one term whatever its size, so that an arrow between two families of a thousand
members is two thousand edges and not a million (SEMANTICS §2).

A `NodeDef` is what a person said about one named step, after inheritance, before any point. Its
values are shared wherever two nodes say the same: ten thousand nodes that inherit one
environment hold one environment. Durations are seconds. Two nodes are equal when they say the
same, wherever it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from tidewheel.core.cycling.calendar import Calendar, Interval, Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.findings import NOWHERE, Position, Severity
from tidewheel.core.queue.resources import NO_RESOURCES, Resources
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

# Ordered names and values: order matters in an environment; a tuple can be shared and hashed.
Pairs = tuple[tuple[str, str], ...]


class RunMode(StrEnum):
    """Says how tasks of a node run: by real, simulated or empty jobs, or without a job."""

    LIVE = "live"
    SIMULATION = "simulation"
    DUMMY = "dummy"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Holds the scripts of a job in the order in which they run.

    After a failure only `on_error` still runs, instead of those that are left.
    """

    init: str = ""
    env: str = ""
    pre: str = ""
    main: str = ""
    post: str = ""
    on_exit: str = ""
    on_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Holds what is called or mailed when something happens to a task of this node."""

    # (event, commands): "failed" -> ("notify %(id)s",); "" is each of `handled_events`.
    handlers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    handled_events: tuple[str, ...] = ()
    handler_retry_delays: tuple[float, ...] = ()
    mail_events: tuple[str, ...] = ()
    execution_timeout_seconds: float | None = None
    submission_timeout_seconds: float | None = None
    late_offset_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Holds where mail about this node comes from and goes to."""

    sender: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Says how jobs of a node are simulated: how long they take, at which points they fail."""

    run_seconds: float = 10.0
    speedup_factor: float | None = None
    fail_points: tuple[str, ...] = ()
    fail_first_try_only: bool = True
    handlers_disabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Names the outputs that a skipped task makes without having a job."""

    outputs: tuple[str, ...] = ()
    remark: str = ""  # told beside its state, so that nobody takes it for work that was done
    handlers_disabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePolling:
    """Says how a node polls for a task of another workflow: how often, and how many times."""

    # workflow::task:status, from the graph; empty for a node that does not wait.
    target: str = ""
    interval_seconds: float | None = None
    polls_max: int | None = None
    message: str = ""
    run_directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Holds the delay before each retry; there are as many retries as delays."""

    execution: tuple[float, ...] = ()
    submission: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """Says where jobs run and with which directives.

    `batch_system` and `remote_host` are settings of Cylc 7.
    """

    platform: str = ""
    directives: Pairs = ()
    work_subdirectory: str = ""
    batch_system: str = ""
    remote_host: str = ""


ARGUMENT = "TIDEWHEEL_ARGUMENT_"  # and a parameter: the variable of a function's argument


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInput:
    """Says which value of a task before it a job gets as a variable: `model[-P1].path`."""

    variable: str
    node: str
    offset: Offset | None = None
    path: tuple[str, ...] = ()  # into the values; (): all of them
    text: str = field(default="", compare=False)  # as it was written

    def __str__(self) -> str:
        return self.text


ELEMENTS_DEFAULT = 1_000  # of a mapped task at a point, at most
ELEMENTS_MAX = 10_000
ELEMENTS_ASSUMED = 2  # of a list that no job returns: in rehearsals, previews, simulation


def assumed_sizes(lists: Iterable[MappedOver]) -> tuple[str, ...]:
    """Returns the outputs by which lists that no job returns are taken to have few elements: as
    many as everything may have that is made of them."""
    sizes: dict[str, int] = {}
    for over in lists:
        known = sizes.get(over.value, ELEMENTS_ASSUMED)
        assumed = min(known, over.elements_max)
        sizes[over.value] = assumed if over.size is None else over.size
    return tuple(str(ListSize(value, size)) for value, size in sizes.items())


_MAX_ITEM = "max in [task parameters]; in Python: map(…, max=…)"


@dataclass(frozen=True, slots=True)
class MappedOver:
    """Says of which list the elements of a mapped task are made: a value of its source."""

    parameter: str  # `process<file>` has the elements process_file0, process_file1, …
    source: str  # the task that returns the list, at the same point
    value: str  # the list's name among its values
    elements_max: int = ELEMENTS_DEFAULT
    size: int | None = None  # of a list that is known with the definition: nobody returns it
    max_item: str = field(default=_MAX_ITEM, compare=False)

    def size_output(self, size: int, submit: int | None = None) -> str:
        """Returns the output by which the source says how many elements there are: `files[3]`,
        or `files[3@2]` if its second submission returned them."""
        return str(ListSize(self.value, size, submit))

    def size_said(self, output: str) -> ListSize | None:
        """Returns what an output of the source says of this list; None for any other."""
        name, bracket, rest = output.removesuffix("]").partition("[")
        if not bracket or name != self.value:
            return None
        number, _, submit = rest.removesuffix(TAKEN_OVER).partition("@")
        if not number.isdecimal() or not (submit.isdecimal() or not submit):
            return None
        taken_over = rest.endswith(TAKEN_OVER)
        return ListSize(name, int(number), int(submit) if submit else None, taken_over)

    def size_of(self, output: str) -> int | None:
        """Returns the number of elements that an output of the source says; None for others."""
        said = self.size_said(output)
        return None if said is None else said.size


TAKEN_OVER = "+"


class ListSize(NamedTuple):
    """Says how many elements a list has, and which submission of its source returned it."""

    value: str
    size: int
    submit: int | None = None  # None: of a job that was played
    # It counts in a flow in which the source has not run: of another flow.
    taken_over: bool = False

    def __str__(self) -> str:
        submit = "" if self.submit is None else f"@{self.submit}"
        return f"{self.value}[{self.size}{submit}{TAKEN_OVER if self.taken_over else ''}]"


def template_name(task: str, parameter: str) -> str:
    """Returns the name of a mapped task as a whole."""
    return f"{task}<{parameter}>"


def parameter_of(node: str) -> str:
    """Returns the parameter of a mapped task, `file` of `process<file>`; "" for any other."""
    return node.partition("<")[2].removesuffix(">") if "<" in node else ""


def element_name(template: str, index: int) -> str:
    """Returns the name of one element of a mapped task: process_file0 of process<file>."""
    return f"{template.replace('<', '_').removesuffix('>')}{index}"


NO_SCRIPTS = Scripts()
NO_EVENTS = Events()
NO_MAIL = Mail()
DEFAULT_SIMULATION = Simulation()
DEFAULT_SKIP = Skip()
NO_POLLING = StatePolling()
NO_RETRIES = Retries()
ANYWHERE = NodePlace()


# Not by names only: a reader makes thousands, and names cost as much as the rest.
@dataclass(frozen=True, slots=True)
class NodeDef:
    """Describes one named step of a workflow, or a family that others inherit from."""

    name: str
    # Where its settings came from, nearest first, itself included: ("foo", "FAM", "root").
    lineage: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str | int], ...] = ()
    scripts: Scripts = NO_SCRIPTS
    environment: Pairs = ()
    inputs: Pairs = ()  # variables that are values of tasks before it, as written
    # Custom outputs only: (name, message).
    outputs: Pairs = ()
    completion: str = ""
    workflow: str = ""  # it is a run of this one: NAME/VERSION, or ./FOLDER of its definition
    run_mode: RunMode = RunMode.LIVE
    retries: Retries = NO_RETRIES
    time_limit_seconds: float | None = None
    place: NodePlace = ANYWHERE
    # What a worker must have free for it.
    resources: Resources = NO_RESOURCES
    meta: Pairs = ()
    events: Events = NO_EVENTS
    mail: Mail = NO_MAIL
    simulation: Simulation = DEFAULT_SIMULATION
    skip: Skip = DEFAULT_SKIP
    polling: StatePolling = NO_POLLING
    # A service: it runs until these nodes, at its own point, have ended, and is ended then.
    until: tuple[str, ...] = ()
    position: Position = field(default=NOWHERE, compare=False)

    @property
    def is_gate(self) -> bool:
        """Says whether its tasks only wait: they are skipped, and nobody switched them off."""
        return self.run_mode is RunMode.SKIP and not self.skip.remark


@dataclass(frozen=True, slots=True)
class Atom:
    """Asks for an output of one task; without an offset, at the child's own point."""

    node: str
    output: str
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Asks every or any member of a family for one of the outputs; `:finish` is two outputs."""

    family: str
    outputs: tuple[str, ...]
    every: bool
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class XtriggerTerm:
    """Asks that something outside of the workflow has happened."""

    label: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Is true if every term is."""

    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Is true if one of the terms is."""

    terms: tuple[Condition, ...]


Condition = Atom | Group | XtriggerTerm | AllOf | AnyOf
Leaf = Atom | Group | XtriggerTerm


def all_of(terms: tuple[Condition, ...]) -> Condition:
    """Joins terms by AND: a single term is returned as it is, nested conjunctions merge."""
    flat: list[Condition] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, AllOf) else (term,))
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(terms: tuple[Condition, ...]) -> Condition:
    flat: list[Condition] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, AnyOf) else (term,))
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def leaves(condition: Condition) -> tuple[Leaf, ...]:
    """Returns the atoms, groups and xtriggers of a condition from left to right."""
    if type(condition) is Atom or not isinstance(condition, (AllOf, AnyOf)):  # nearly all
        return (condition,)
    found: list[Leaf] = []
    waiting: list[Condition] = [condition]
    while waiting:
        term = waiting.pop()
        if isinstance(term, (AllOf, AnyOf)):
            waiting.extend(reversed(term.terms))
        else:
            found.append(term)
    return tuple(found)


RUNAHEAD_POINTS_DEFAULT = 4
LIMIT_DEFAULT = 100  # active tasks of a limit group
ROOT_NODE = NodeDef(name="root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Holds the rules by which a definition is judged where Cylc 8 and tidewheel differ."""

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
    """Holds `condition => targets`, or `condition => !targets` for a suicide arrow."""

    condition: Condition
    targets: tuple[str, ...]
    suicide: bool = False
    position: Position = NOWHERE


class Placement(NamedTuple):
    """Puts a node that is named without an offset on the sequence of its section."""

    node: str
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSection:
    """Holds one recurrence and the arrows that hold at its points."""

    recurrence: str
    sequence: Sequence
    arrows: tuple[Arrow, ...]
    placements: tuple[Placement, ...]
    position: Position = NOWHERE


class OutputMark(NamedTuple):
    """Holds one mention of an output in the graph: with `?` it is optional.

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
    """Holds a named group of nodes; `parent` is the family that it is drawn in, or None."""

    name: str
    members: tuple[str, ...]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class XtriggerDef:
    """Describes an xtrigger: a function that is called repeatedly until it is satisfied."""

    label: str
    function: str
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()
    interval_seconds: float = 10.0
    sequential: bool = False
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """Holds a group of which at most `limit` members may be active at once; 0 is no limit."""

    name: str
    limit: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialNodes:
    """Names nodes that expire or wait for a clock, a message or their previous instance."""

    sequential: frozenset[str] = frozenset()  # each waits for its own previous instance
    wait_for_clock: Mapping[str, Interval] = field(
        default_factory=dict
    )  # till point + interval
    expire_after: Mapping[str, Interval] = field(default_factory=dict)  # at point + interval
    wait_for_message: Mapping[str, str] = field(default_factory=dict)  # from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclingDef:
    """Holds the points that bound a workflow, as integers; `style` writes them as texts."""

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
    """Holds everything that a workflow's definition says."""

    name: str
    cycling: CyclingDef
    sections: tuple[GraphSection, ...]
    nodes: Mapping[str, NodeDef]
    families: Mapping[str, FamilyDef] = field(default_factory=dict)
    marks: tuple[OutputMark, ...] = ()
    xtriggers: Mapping[str, XtriggerDef] = field(default_factory=dict)
    limit_groups: tuple[LimitGroup, ...] = ()
    special: SpecialNodes = field(default_factory=SpecialNodes)
    inputs: Mapping[str, tuple[NodeInput, ...]] = field(default_factory=dict)  # by node
    # By mapped task, such as `process<file>`; arrows between two over the same list lead from
    # element to element, a group of that name is all elements at a point.
    mapped: Mapping[str, MappedOver] = field(default_factory=dict)
    # The settings of a node that the graph names and nobody defines.
    root: NodeDef = ROOT_NODE
    implicit_nodes_allowed: bool | None = None
    policy: Policy = TIDEWHEEL
    # Whether every line of the graph was understood: if not, nothing can be called missing.
    is_whole: bool = field(default=True, compare=False)


DEFAULT_GROUP = "default"


def limit_groups(
    limits: Mapping[str, tuple[int, Iterable[str]]], families: Mapping[str, tuple[str, ...]]
) -> tuple[LimitGroup, ...]:
    """Returns each limit group with its limit and members; families become their members.

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
