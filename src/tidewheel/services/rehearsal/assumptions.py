"""Assumes how jobs go that are played: how long they take, what they make, which fail.

What a task returns may be said (`Assumptions.values`): then exactly these values are there, and
a task that asks it for another is not started, as in a run. The others are assumed to return
what they are asked for, unless nobody but those that were named returns anything.

The run length of a job is the first of these that is known: what somebody gave for the
rehearsal; what was learnt from earlier runs; what the definition says for simulation, which is
its time limit divided by its speed-up factor if it has both, else its default run length (as
Cylc's simulation mode has it). A job of given or learnt length that is over its time limit
fails at the limit; a length for simulation proves nothing about the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import NodeDef, RunMode, assumed_sizes, element_name
from tidewheel.core.graph.graph import Graph, element_of
from tidewheel.core.graph.outputs import FAILED, STANDARD, STARTED, SUBMITTED
from tidewheel.core.queue.status import Status
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
    from tidewheel.ports.runs import RunDoor

ROOT = "root"  # the family of all: `*` means the same
GLOB_SIGNS = frozenset("*?[")
EVERY_POINT = "all"  # of `fail cycle points`
SERVICE_SECONDS_MAX = 100 * 365 * 86_400.0  # of a played service without a time limit


@dataclass(frozen=True, slots=True)
class AssumedEnd:
    """Says how tasks end: patterns of point and name, and at which try (None: at each).

    Of several that fit the last counts.
    """

    point: str
    name: str
    try_number: int | None = None
    fails: bool = True
    outputs: tuple[str, ...] | None = None  # custom ones; None: all, or none if it fails
    is_submitted: bool = True  # else no job of it starts

    def __str__(self) -> str:
        at = "" if self.try_number is None else f"@{self.try_number}"
        return f"{self.point}/{self.name}{at}"


@dataclass(frozen=True, slots=True)
class AssumedValues:
    """Says what tasks return when they succeed; of several that fit the last counts."""

    point: str
    name: str
    body: str  # a JSON object


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Holds what was said about the jobs; lengths are in seconds, by name of the task."""

    lengths: Mapping[str, float] = field(default_factory=dict)
    learnt: Mapping[str, float] = field(default_factory=dict)
    ends: Sequence[AssumedEnd] = ()
    values: Sequence[AssumedValues] = ()
    others_return: bool = True  # whatever is asked of tasks of which `values` say nothing
    slots: int = 100

    def __post_init__(self) -> None:
        assert self.slots > 0
        assert all(length >= 0 for length in (*self.lengths.values(), *self.learnt.values()))


def is_meant(node: NodeDef, pattern: str) -> bool:
    """Tells whether a name or glob means this node, by its own name or that of a family."""
    names = (node.name, *(family for family in node.lineage if family != ROOT))
    return any(fnmatchcase(name, pattern) for name in names)


def names_meant(graph: Graph, pattern: str) -> list[str]:
    """Returns the tasks of a graph that a name or glob means; a family means its members.

    Elements of mapped tasks can be meant by themselves, those that a list may have.
    """
    found = [name for name, node in graph.nodes.items() if is_meant(node.definition, pattern)]
    for mapped, over in graph.mapped.items():
        names = (element_name(mapped, index) for index in range(over.elements_max))
        found += (name for name in names if fnmatchcase(name, pattern))
    return found


def named_in_python(graph: Graph, name: str) -> str:
    """Returns the name of a mapped task that somebody calls as it is called in Python."""
    names = {one.partition("<")[0]: one for one in graph.mapped if name not in graph.nodes}
    return names.get(name, name)


def point_pattern(text: str, loaded: LoadedWorkflow) -> str:
    """Returns the pattern of points that somebody wrote; "" is every point.

    A point may be written in every way that the definition could write it.
    """
    if not text or not GLOB_SIGNS.isdisjoint(text):
        return text or "*"
    assert loaded.graph is not None
    return loaded.graph.cycling.style.text(point_of(text, loaded))


def point_of(text: str, loaded: LoadedWorkflow) -> Point:
    """Returns the point that a text means in a definition, such as 3, 20300101T00Z or +P1D."""
    assert loaded.graph is not None
    assert loaded.reader is not None
    cycling = loaded.graph.cycling
    return loaded.reader.relative_point(text, cycling.initial, cycling.final)


class AssumedJob(NamedTuple):
    """Says how every job of one node goes."""

    seconds: float
    over_limit: bool  # it takes longer than it may
    fails: bool
    outputs: tuple[str, ...]  # custom ones, just before success
    is_heard_at_start: bool  # somebody waits for `submitted` or `started`
    sizes: tuple[
        str, ...
    ] = ()  # outputs that say how many elements its lists are taken to have
    ends: tuple[AssumedEnd, ...] = ()  # that are assumed of some of its jobs
    is_plain: bool = False  # every job of it succeeds
    values: tuple[AssumedValues, ...] = ()  # that are assumed of some of its jobs


class AssumedJobs:
    """Says how each job of a graph goes; `unused` are the ends that no job has met yet."""

    def __init__(
        self, graph: Graph, assumptions: Assumptions, point_text: Callable[[Point], str]
    ) -> None:
        self._graph = graph
        self._assumptions = assumptions
        self._point_text = point_text
        self._parts: dict[str, AssumedJob] = {}
        self._alike: dict[tuple[object, ...], AssumedJob] = {}  # of nodes that say the same
        self.unused = set(assumptions.ends)

    def part(self, name: str) -> AssumedJob:
        """Returns what is the same for the jobs of a node at every point."""
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = self._found_part(name)
        return part

    def _found_part(self, name: str) -> AssumedJob:
        graph, said = self._graph, self._assumptions
        if said.ends or said.values or said.lengths or said.learnt or graph.mapped:
            return self._new_part(name)
        node = graph.nodes[name]
        known = node.definition
        # Nodes share the values in which they are alike, so that these are known by identity.
        alike = (id(known.simulation), id(known.skip), id(known.outputs), known.run_mode)
        heard = (*node.links, *node.groups)
        is_absolute = bool(graph.absolute_links) and name  # then others name it, too
        key = (*alike, known.time_limit_seconds, bool(known.until), heard, is_absolute)
        part = self._alike.get(key)
        if part is None:
            part = self._alike[key] = self._new_part(name)
        return part

    def _new_part(self, name: str) -> AssumedJob:
        node, said = self._graph.nodes[name].definition, self._assumptions
        ends = tuple(one for one in said.ends if is_meant(node, one.name))
        values = tuple(one for one in said.values if is_meant(node, one.name))
        part = self._find_part(name)
        may_fail = part.over_limit or part.fails or ends or node.simulation.fail_points
        return part._replace(ends=ends, is_plain=not may_fail, values=values)

    def end(
        self, point: Point, name: str, try_number: int, submit_try: int = 1
    ) -> AssumedEnd | None:
        """Returns how this try of a task is to end; None if it succeeds as usual.

        Tries to submit its job are counted by themselves.
        """
        part = self.part(name)
        if part.is_plain:
            return None
        text, node = self._point_text(point), self._graph.nodes[name].definition
        meant = [
            one
            for one in part.ends
            if one.try_number in (None, try_number if one.is_submitted else submit_try)
            and fnmatchcase(text, one.point)
        ]
        self.unused.difference_update(meant)
        if meant:
            return meant[-1]
        if part.over_limit or part.fails or is_simulated_to_fail(node, text, try_number):
            return AssumedEnd(text, name, try_number)
        return None

    def fails(self, point: Point, name: str, try_number: int) -> bool:
        """Tells whether this try of a task is to fail."""
        end = self.end(point, name, try_number)
        return end is not None and end.fails

    def body(self, point: Point, name: str) -> str | None:
        """Returns the values that a task returns when it succeeds; None if it returns none."""
        values = self.part(name).values
        text = self._point_text(point) if values else ""
        meant = (one.body for one in reversed(values) if fnmatchcase(text, one.point))
        return next(meant, None)

    def _find_part(self, name: str) -> AssumedJob:
        node = self._graph.nodes[name].definition
        heard = {*self._graph.nodes[name].links, *self._graph.nodes[name].groups}
        heard |= {output for node, _, output in self._graph.absolute_links if node == name}
        is_heard = not heard.isdisjoint((SUBMITTED, STARTED))
        lists = dict.fromkeys(o for o in self._graph.mapped.values() if o.source == name)
        sizes = assumed_sizes(lists)
        outputs = tuple(output for output, _ in node.outputs)
        if node.run_mode is RunMode.SKIP:
            named = node.skip.outputs
            made = tuple(one for one in named if one not in STANDARD) if named else outputs
            return AssumedJob(0.0, False, FAILED in named, made, is_heard, sizes)
        limit, seconds = node.time_limit_seconds, simulated_seconds(node)
        known = None if node.until else self._length(name)
        over_limit = known is not None and limit is not None and known > limit
        if known is not None:
            seconds = limit if over_limit and limit is not None else known
        return AssumedJob(seconds, over_limit, False, outputs, is_heard, sizes)

    def _length(self, name: str) -> float | None:
        """Returns how long a job is said to take: by its own name, or by its mapped task's."""
        lengths, element = self._assumptions.lengths, element_of(self._graph.mapped, name)
        if name not in lengths and element is not None and element[0] in lengths:
            return lengths[element[0]]
        return lengths.get(name, self._assumptions.learnt.get(name))


def simulated_seconds(node: NodeDef) -> float:
    """Returns how long a job that is played or replaced by a sleep takes, as it is defined.

    A service has its longest life: it is ended before, when it is let go.
    """
    if node.until:
        return node.time_limit_seconds or SERVICE_SECONDS_MAX
    simulation = node.simulation
    if node.time_limit_seconds and simulation.speedup_factor:
        return node.time_limit_seconds / simulation.speedup_factor
    return simulation.run_seconds


def is_simulated_to_fail(node: NodeDef, point: str, try_number: int) -> bool:
    """Tells whether the definition wants this try of a played job to fail."""
    simulation = node.simulation
    if simulation.fail_first_try_only and try_number > 1:
        return False
    return EVERY_POINT in simulation.fail_points or point in simulation.fail_points


# How long jobs took in earlier runs.


LISTED_MAX = 100
RUNS_MAX = 5  # the newest ones are looked at
SUBMISSIONS_MAX = 10_000  # of each


async def learnt_lengths(
    door: RunDoor, workflow: str, folders: Collection[str]
) -> dict[str, float]:
    """Returns the median seconds by node, of jobs that succeeded, in the newest runs.

    Only runs from one folder count. ``folders`` are its names: a server knows it by one that
    says on which machine it is.
    """
    from statistics import median  # noqa: PLC0415 - slow to import, and only asked for here

    taken: dict[str, list[float]] = {}
    listed: Any = await door.look("runs", {"workflow": workflow, "count": LISTED_MAX})
    runs = [one["name"] for one in listed["runs"] if one["folder"] in folders]
    for run in runs[:RUNS_MAX]:
        shown: Any = await door.look("submissions", {"run": run, "count": SUBMISSIONS_MAX})
        for one in shown["submissions"]:
            if one["status"] == Status.SUCCEEDED and one["started_at"] and one["ended_at"]:
                name = one["id"].partition("/")[2]
                begun, over = map(datetime.fromisoformat, (one["started_at"], one["ended_at"]))
                seconds = max(0.0, (over - begun).total_seconds())
                taken.setdefault(name, []).append(seconds)
    return {name: median(seconds) for name, seconds in taken.items()}
