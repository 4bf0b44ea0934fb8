"""Makes a definition and its compiled graph of a folder with a flow.cylc.

The order is that of a person reading: the text, its settings, its points, its graph. Each step
goes on as far as it can, so that one call finds whatever is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidewheel.core.cycling.calendar import Calendar, Interval, Point
from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.definition import (
    RUNAHEAD_POINTS_DEFAULT,
    TIDEWHEEL,
    CyclingDef,
    FamilyDef,
    NodeDef,
    Policy,
    SpecialNodes,
    WorkflowDef,
    XtriggerDef,
    limit_groups,
)
from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.graph import Graph
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.families import ROOT, Families
from tidewheel.formats.flow_cylc.graph_sections import GraphRead, read_graph_sections
from tidewheel.formats.flow_cylc.settings import (
    FlowSettings,
    Placed,
    SchedulerSection,
    SpecialTask,
    WorkflowEvents,
    read_settings,
)
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.xtriggers import xtrigger_of

# The cycling of a workflow: its mode, and the points at which it begins and ends.

_POINTS_AHEAD = re.compile(r"P(\d+)")
COMMAND_LINE = Position("command line")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTexts:
    """Holds points given beside the definition; each replaces what is written there."""

    initial: str = ""
    final: str = ""
    start: str = ""
    stop: str = ""


def read_cycling(
    settings: FlowSettings, given: PointTexts, now: float, findings: Findings
) -> tuple[CyclingReader, CyclingDef] | None:
    """Returns a reader of the workflow's cycling texts, and its points; None after an error."""
    try:
        reader = _reader(settings, given)
    except BadCycling as bad:
        place = _first_place(
            settings.scheduling.cycling_mode,
            settings.scheduler.point_format,
            settings.scheduler.time_zone,
        )
        findings.error("cycling", bad.message, bad.hint, place)
        return None
    return _Points(settings, given, now, reader, findings).read()


def _reader(settings: FlowSettings, given: PointTexts) -> CyclingReader:
    mode = settings.scheduling.cycling_mode.text
    if not mode:
        plain = settings.is_acyclic(given.initial)
        mode = Calendar.INTEGER.value if plain else Calendar.GREGORIAN.value
    return CyclingReader(
        mode,
        utc_mode=bool(settings.scheduler.utc_mode),
        time_zone=settings.scheduler.time_zone.text or None,
        point_format=settings.scheduler.point_format.text or None,
        expanded_year_digits=settings.scheduler.expanded_year_digits,
    )


def _first_place(*texts: Placed) -> Position:
    return next((text.position for text in texts if text), Position(""))


class _Points:
    """Reads each point after the one it may be relative to."""

    def __init__(
        self,
        settings: FlowSettings,
        given: PointTexts,
        now: float,
        reader: CyclingReader,
        findings: Findings,
    ) -> None:
        self._settings = settings.scheduling
        self._is_acyclic = settings.is_acyclic(given.initial)
        self._given = given
        self._now = now
        self._reader = reader
        self._findings = findings

    def read(self) -> tuple[CyclingReader, CyclingDef] | None:
        initial = self._initial()
        if initial is None:
            return None
        cycling = CyclingDef(style=self._reader.style, initial=initial)
        final = self._final(initial)
        return self._reader, replace(
            cycling,
            final=final,
            start=self._start(initial, final),
            stop=self._relative(
                self._chosen(self._given.stop, self._settings.stop_after), initial, final
            ),
            hold_after=self._relative(self._settings.hold_after, initial, final),
            runahead=self._runahead(),
        )

    def _initial(self) -> Point | None:
        text = self._chosen(self._given.initial, self._settings.initial_point)
        if not text and self._reader.calendar is Calendar.INTEGER:
            return Point(1)
        if not text:
            self._findings.error(
                "no-initial-point",
                "[scheduling] has no initial cycle point",
                "write for example: initial cycle point = 20300101T00Z, or set cycling mode = "
                "integer for plain numbers",
            )
            return None
        point = self._read(text, lambda: self._reader.initial_point(text.text, self._now))
        if point is not None:
            self._check_constraints(point, self._settings.initial_constraints, text, "initial")
        return point

    def _final(self, initial: Point) -> Point | None:
        text = self._chosen(self._given.final, self._settings.final_point)
        if not text or text.text.lower() == "none":
            return initial if self._is_acyclic else None
        point = self._read(text, lambda: self._reader.final_point(text.text, initial))
        if point is not None:
            self._check_constraints(point, self._settings.final_constraints, text, "final")
        return point

    def _start(self, initial: Point, final: Point | None) -> Point | None:
        text = Placed(self._given.start, COMMAND_LINE)
        if not text or text.text.lower() == "none":
            return None
        return self._read(
            text, lambda: self._reader.start_point(text.text, initial, final, self._now)
        )

    @staticmethod
    def _chosen(given: str, written: Placed) -> Placed:
        return Placed(given, COMMAND_LINE) if given else written

    def _relative(self, text: Placed, initial: Point, final: Point | None) -> Point | None:
        if not text or text.text.lower() == "none":
            return None
        if text.text == "reload":
            return None  # a word of the command line: the stop point of the definition
        return self._read(text, lambda: self._reader.relative_point(text.text, initial, final))

    def _runahead(self) -> int | Interval:
        text = self._settings.runahead_limit
        if not text:
            return RUNAHEAD_POINTS_DEFAULT
        if found := _POINTS_AHEAD.fullmatch(text.text.strip()):
            return min(int(found[1]), 10**9)
        found_interval = self._read_interval(text)
        return RUNAHEAD_POINTS_DEFAULT if found_interval is None else found_interval

    def _read_interval(self, text: Placed) -> Interval | None:
        try:
            return self._reader.interval(text.text)
        except BadCycling as bad:
            seen = f"runahead limit: {bad.message}"
            hint = "write a number of points such as P4, or a duration such as PT12H"
            self._findings.error("runahead", seen, hint, text.position)
            return None

    def _check_constraints(
        self, point: Point, constraints: tuple[str, ...], text: Placed, which: str
    ) -> None:
        """Checks `initial cycle point constraints = T00, T12`: one of them must hold."""
        try:
            held = not constraints or any(
                self._reader.relative_point(one, Point(point)) == point for one in constraints
            )
        except BadCycling as bad:
            self._findings.error(
                "constraints", f"{which} cycle point constraints: {bad.message}", bad.hint
            )
            return
        if not held:
            self._findings.error(
                "constraints",
                f"the {which} cycle point {self._reader.style.text(point)} meets none of its "
                f"constraints: {', '.join(constraints)}",
                "choose a point that does, or change the constraints",
                text.position,
            )

    def _read(self, text: Placed, read: Callable[[], Point]) -> Point | None:
        try:
            return read()
        except BadCycling as bad:
            self._findings.error("cycle-point", bad.message, bad.hint, text.position)
            return None


# The definition.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Holds what a person may say beside the definition; `now` is for points of a clock."""

    now: float
    name: str = ""
    source: SourceOptions = field(default_factory=SourceOptions)
    points: PointTexts = field(default_factory=PointTexts)
    policy: Policy = TIDEWHEEL


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWorkflow:
    """Holds what was read; it has no graph where the mistakes leave none."""

    source: SourceText
    settings: FlowSettings
    reader: CyclingReader | None = None
    workflow: WorkflowDef | None = None
    graph: Graph | None = None


def load_workflow(path: Path, options: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Reads, compiles and checks a workflow; what is wrong is in the findings."""
    return load_source(read_source(path, options.source, findings), options, findings)


def load_source(source: SourceText, options: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Compiles and checks a workflow whose text was read already."""
    settings = read_settings(source, findings)
    read = read_cycling(settings, options.points, options.now, findings)
    if read is None:
        return LoadedWorkflow(source=source, settings=settings)
    reader, cycling = read
    graph_read = read_graph_sections(settings, reader, cycling, findings)
    workflow = WorkflowDef(
        name=options.name or source.folder.resolve().name,
        cycling=cycling,
        sections=tuple(graph_read.sections),
        nodes=_nodes(settings, graph_read, findings),
        families=_families(settings),
        marks=tuple(graph_read.marks),
        xtriggers=_xtriggers(settings),
        limit_groups=limit_groups(
            {queue.name: (queue.limit, queue.members) for queue in settings.queues},
            settings.families.members,
        ),
        special=_special_nodes(settings, reader, findings),
        root=settings.nodes.get(ROOT, NodeDef(name=ROOT)),
        implicit_nodes_allowed=settings.scheduler.implicit_tasks_allowed,
        policy=options.policy,
        is_whole=graph_read.is_whole,
    )
    graph = compile_workflow(workflow, findings)
    check_workflow(workflow, graph, findings)
    return LoadedWorkflow(
        source=source, settings=settings, reader=reader, workflow=workflow, graph=graph
    )


def as_loaded(
    source: SourceText,
    workflow: WorkflowDef,
    graph: Graph,
    reader: CyclingReader,
    events: WorkflowEvents | None = None,
) -> LoadedWorkflow:
    """Returns a workflow of another front end as one of a flow.cylc, to be shown alike."""
    lineages = {name: node.lineage for name, node in workflow.nodes.items()}
    first = {name: lineage[1] for name, lineage in lineages.items() if len(lineage) > 1}
    first |= {name: family.parent or ROOT for name, family in workflow.families.items()}
    members = {name: family.members for name, family in workflow.families.items()}
    parents = {name: (parent,) for name, parent in first.items()}
    # Families are names, too, wherever all names are listed.
    families = {name: NodeDef(name=name) for name in workflow.families}
    settings = FlowSettings(
        nodes={**families, **workflow.nodes, ROOT: workflow.root},
        families=Families(parents, lineages, first, {**members, ROOT: tuple(workflow.nodes)}),
        scheduler=SchedulerSection(events=events or WorkflowEvents()),
    )
    return LoadedWorkflow(
        source=source, settings=settings, reader=reader, workflow=workflow, graph=graph
    )


def _nodes(
    settings: FlowSettings, graph_read: GraphRead, findings: Findings
) -> Mapping[str, NodeDef]:
    nodes = {name: settings.nodes[name] for name in settings.tasks}
    for name, polled in graph_read.polled.items():
        node = nodes.get(name) or settings.implicit_node(name)
        if node.scripts.main:
            seen = f"{name}<{polled}> waits for another workflow, and has a script of its own"
            hint = "remove the script: waiting is all that such a task does"
            findings.error("polling-task-with-script", seen, hint, node.position)
        nodes[name] = replace(node, polling=replace(node.polling, target=polled))
    return nodes


def _families(settings: FlowSettings) -> dict[str, FamilyDef]:
    families = settings.families
    return {
        name: FamilyDef(name, members, _drawn_in(families.first_parents.get(name)))
        for name, members in families.members.items()
        if name != ROOT
    }


def _drawn_in(parent: str | None) -> str | None:
    return None if parent == ROOT else parent


def _xtriggers(settings: FlowSettings) -> dict[str, XtriggerDef]:
    return {
        one.label: xtrigger_of(one.label, one.call, one.position, sequential=one.sequential)
        for one in settings.xtriggers
    }


def _special_nodes(
    settings: FlowSettings, reader: CyclingReader, findings: Findings
) -> SpecialNodes:
    special = settings.special_tasks
    return SpecialNodes(
        sequential=frozenset(_tasks_of((one.name for one in special.sequential), settings)),
        wait_for_clock=dict(_offsets(special.clock_trigger, settings, reader, findings)),
        expire_after=dict(_offsets(special.clock_expire, settings, reader, findings)),
        wait_for_message={
            name: one.argument
            for one in special.external_trigger
            for name in _tasks_of((one.name,), settings)
        },
    )


def _offsets(
    tasks: Iterable[SpecialTask],
    settings: FlowSettings,
    reader: CyclingReader,
    findings: Findings,
) -> Iterator[tuple[str, Interval]]:
    for one in tasks:
        try:
            interval = reader.interval(one.argument) if one.argument else Interval()
        except BadCycling as bad:
            seen = f"{one.name}({one.argument}): {bad.message}"
            hint = bad.hint or "write an interval such as PT1H or -PT30M"
            findings.error("special-task", seen, hint, one.position)
            continue
        for name in _tasks_of((one.name,), settings):
            yield name, interval


def _tasks_of(names: Iterable[str], settings: FlowSettings) -> Iterator[str]:
    """Yields the names with families replaced by their members."""
    for name in names:
        yield from settings.families.members.get(name, (name,))
