"""Makes a definition and its compiled graph of a folder with a flow.cylc.

The order is that of a person reading: the text, its settings, its points, its graph. Each step
goes on as far as it can, so that one call finds whatever is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import product
from math import prod
from pathlib import Path

from tidewheel.core.cycling.calendar import Calendar, Interval, Point
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph import definition
from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.checks.names import FOLDER, folder_problem, is_folder
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.findings import Findings, Position, meant
from tidewheel.core.graph.graph import Graph
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader, split_recurrences
from tidewheel.formats.flow_cylc.families import ROOT, Families
from tidewheel.formats.flow_cylc.graph_arrows import Lowering, Marks
from tidewheel.formats.flow_cylc.graph_text import (
    Chain,
    Expression,
    GraphString,
    Token,
    nodes_of,
    read_chains,
)
from tidewheel.formats.flow_cylc.names import (
    BadParameter,
    Parameters,
    Pieces,
    references,
)
from tidewheel.formats.flow_cylc.settings import (
    FlowSettings,
    Placed,
    SchedulerSection,
    SchedulingSettings,
    SpecialTask,
    WorkflowEvents,
    read_settings,
)
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE, SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.task_values import read_inputs, read_mapped
from tidewheel.formats.growth import BYTES_PER_NAME, grow
from tidewheel.lazy_dataclasses import dataclass, pattern

# The cycling of a workflow: its mode, and the points at which it begins and ends.

_POINTS_AHEAD = pattern(r"P(\d+)")
COMMAND_LINE = Position("command line")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTexts:
    """Holds points that are given beside the definition, each in place of the written one."""

    initial: str = ""
    final: str = ""
    start: str = ""
    stop: str = ""


def read_cycling(
    settings: FlowSettings, given: PointTexts, now: float, findings: Findings
) -> tuple[CyclingReader, definition.CyclingDef] | None:
    """Returns a reader of the workflow's cycling texts, and its points; None after an error."""
    try:
        reader = _reader(settings, given)
    except BadCycling as bad:
        scheduler = settings.scheduler
        texts = (settings.scheduling.cycling_mode, scheduler.point_format, scheduler.time_zone)
        place = next((text.position for text in texts if text), Position(""))
        findings.error("cycling", bad.message, bad.hint, place)
        return None
    points = _Points(settings.scheduling, given, now, reader, findings)
    return points.read(is_acyclic=settings.is_acyclic(given.initial))


def _reader(settings: FlowSettings, given: PointTexts) -> CyclingReader:
    mode = settings.scheduling.cycling_mode.text
    if not mode:
        plain = settings.is_acyclic(given.initial)
        mode = Calendar.INTEGER.value if plain else Calendar.GREGORIAN.value
    return CyclingReader(
        mode,
        time_zone=settings.scheduler.time_zone.text or None,
        point_format=settings.scheduler.point_format.text or None,
        expanded_year_digits=settings.scheduler.expanded_year_digits,
    )


@dataclass(frozen=True, slots=True)
class _Points:
    """Reads the points of a workflow, each after the one that it may be relative to."""

    _settings: SchedulingSettings
    _given: PointTexts
    _now: float
    _reader: CyclingReader
    _findings: Findings

    def read(self, *, is_acyclic: bool) -> tuple[CyclingReader, definition.CyclingDef] | None:
        initial = self._initial()
        if initial is None:
            return None
        final = self._final(initial, is_acyclic=is_acyclic)
        start = self._start(initial, final)
        return self._reader, definition.CyclingDef(
            style=self._reader.style,
            initial=initial,
            final=final,
            start=start,
            stop=self._stop(initial, final, initial if start is None else start),
            hold_after=self._relative(self._settings.hold_after, initial, final),
            runahead=self._runahead(),
        )

    def _initial(self) -> Point | None:
        text = self._chosen(self._given.initial, self._settings.initial_point)
        if not text and self._reader.calendar is Calendar.INTEGER:
            return Point(1)
        if not text:
            seen = "[scheduling] has no initial cycle point"
            plain = "or set cycling mode = integer for plain numbers"
            hint = f"write for example: initial cycle point = 20300101T00Z, {plain}"
            self._findings.error("no-initial-point", seen, hint)
            return None
        point = self._read(text, lambda: self._reader.initial_point(text.text, self._now))
        if point is not None:
            self._check_constraints(point, self._settings.initial_constraints, text, "initial")
        return point

    def _final(self, initial: Point, *, is_acyclic: bool) -> Point | None:
        text = self._chosen(self._given.final, self._settings.final_point)
        if not text or text.text.lower() == "none":
            return initial if is_acyclic else None
        point = self._read(text, lambda: self._reader.final_point(text.text, initial))
        if point is not None:
            self._check_constraints(point, self._settings.final_constraints, text, "final")
        return point

    def _start(self, initial: Point, final: Point | None) -> Point | None:
        text = Placed(self._given.start, COMMAND_LINE)
        if not text or text.text.lower() == "none":
            return None
        point = self._read(
            text, lambda: self._reader.start_point(text.text, initial, final, self._now)
        )
        if point is not None and final is not None and point > final:
            last, first = map(self._reader.style.text, (final, point))
            seen = f"the start point {first} is after the final one, {last}"
            hint = f"no task would run: choose a start point up to {last}, or a later final one"
            self._findings.error("start-after-final", seen, hint, text.position)
        return point

    def _stop(self, initial: Point, final: Point | None, start: Point) -> Point | None:
        text = self._chosen(self._given.stop, self._settings.stop_after)
        point = self._relative(text, initial, final)
        if point is not None and point < start:
            style = self._reader.style
            seen = f"the stop point {style.text(point)} is before {style.text(start)}"
            hint = "no task would run: give a stop point at or after the point of the start"
            self._findings.error("stop-before-start", seen, hint, text.position)
        return point

    @staticmethod
    def _chosen(given: str, written: Placed) -> Placed:
        return Placed(given, COMMAND_LINE) if given else written

    def _relative(self, text: Placed, initial: Point, final: Point | None) -> Point | None:
        # "reload" is a word of the command line: the stop point of the definition.
        if not text or text.text == "reload" or text.text.lower() == "none":
            return None
        return self._read(text, lambda: self._reader.relative_point(text.text, initial, final))

    def _runahead(self) -> int | Interval:
        text = self._settings.runahead_limit
        if not text:
            return definition.RUNAHEAD_POINTS_DEFAULT
        if found := _POINTS_AHEAD.fullmatch(text.text.strip()):
            return min(int(found[1]), 10**9)
        try:
            return self._reader.interval(text.text)
        except BadCycling as bad:
            seen = f"runahead limit: {bad.message}"
            is_integer = self._reader.calendar is Calendar.INTEGER
            hint = "write a number of points such as P4"
            hint += "" if is_integer else ", or a duration such as PT12H"
            self._findings.error("runahead", seen, hint, text.position)
            return definition.RUNAHEAD_POINTS_DEFAULT

    def _check_constraints(
        self, point: Point, constraints: tuple[str, ...], text: Placed, which: str
    ) -> None:
        """Reports a point that meets none of its constraints, such as `T00, T12`."""
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
            shown = f"the {which} cycle point {self._reader.style.text(point)}"
            seen = f"{shown} meets none of its constraints: {', '.join(constraints)}"
            hint = "choose a point that meets one of them, or change the constraints"
            self._findings.error("constraints", seen, hint, text.position)

    def _read(self, text: Placed, read: Callable[[], Point]) -> Point | None:
        try:
            return read()
        except BadCycling as bad:
            self._findings.error("cycle-point", bad.message, bad.hint, text.position)
            return None


# The sections of a graph. A chain with parameters stands for one chain for each combination of
# their values. `<m-1>` before the first value of m names no task: that task is left out of its
# side, and where a side has no task left, the chain ends before it.

VARIANTS_MAX = 100_000  # chains that one line may stand for


def variants(chain: Chain, parameters: Parameters, findings: Findings) -> Iterator[Chain]:
    """Yields the chains that a chain with parameters stands for; without any, itself."""
    tokens = [token for side in chain.sides for token in nodes_of(side) if "<" in token.text]
    if not tokens:
        yield chain
        return
    named: dict[str, Pieces] = {}
    for token in tokens:
        try:
            named[token.text] = parameters.pieces(token.text)
        except BadParameter as bad:
            findings.error(bad.finding_code, str(bad), bad.hint, token.position)
            return
    # A fixed value takes part in the loop too, as in Cylc: the duplicates fall together later.
    names = list(dict.fromkeys(one.name for some in named.values() for one in references(some)))
    count = prod(len(parameters.values[name]) for name in names)
    if count > VARIANTS_MAX:
        seen = f"the parameters {', '.join(names)} make {count} chains of this line"
        hint = f"at most {VARIANTS_MAX} are accepted: use fewer values, or families"
        findings.error("too-many-tasks", seen, hint, chain.position)
        return
    grow(count)
    for values in product(*(parameters.values[name] for name in names)):
        bound = dict(zip(names, values, strict=True))
        written = {text: parameters.written_at(some, bound) for text, some in named.items()}
        sides: list[Expression] = []
        for side in chain.sides:
            if (kept := _bound(side, written)) is None:
                break
            sides.append(kept)
        if sides:
            yield replace(chain, sides=tuple(sides))


def _bound(side: Expression, written: Mapping[str, str | None]) -> Expression | None:
    """Returns a side with names instead of parameters; None if no task of it is left."""
    if isinstance(side, Token):
        name = written.get(side.text, side.text)
        return None if name is None else side._replace(text=name)
    terms = (_bound(inner, written) for inner in side.terms)
    kept = tuple(term for term in terms if term is not None)
    if len(kept) <= 1:
        return kept[0] if kept else None
    return type(side)(kept)


def _chains(string: GraphString, parameters: Parameters, findings: Findings) -> Iterable[Chain]:
    """Returns the chains that a graph text stands for, once its parameters have values."""
    chains = read_chains(string.lines, findings)
    if not any("<" in line.text for line in string.lines):
        return chains
    return (one for chain in chains for one in variants(chain, parameters, findings))


RUN_ONCE = "R1"
UNKNOWN_TASK = "unknown-task"  # the code of a finding


@dataclass(frozen=True, slots=True)
class GraphRead:
    """Holds the sections, marks and polled tasks of all graph texts together."""

    sections: tuple[definition.GraphSection, ...]
    marks: tuple[definition.OutputMark, ...]
    polled: Mapping[str, str]
    is_whole: bool  # all of it was understood


@dataclass(frozen=True, slots=True)
class GraphReader:
    """Makes sections of recurrences and chains, whichever front end wrote them."""

    reader: CyclingReader
    cycling: definition.CyclingDef
    families: Mapping[str, tuple[str, ...]]
    findings: Findings

    def read(self, texts: Iterable[tuple[str, Iterable[Chain], Position]]) -> GraphRead:
        """Returns the sections and marks of texts: recurrences, their chains and position."""
        lowering = Lowering(self.families, self.reader.offset, self.findings)
        errors_before = self.findings.error_count
        sections: list[definition.GraphSection] = []
        marks: Marks = {}
        polled: dict[str, str] = {}
        for recurrences, chains, position in texts:
            lowered = lowering.lower(chains)
            sections += (
                definition.GraphSection(
                    recurrence=text,
                    sequence=sequence,
                    arrows=tuple(lowered.arrows.values()),
                    placements=tuple(lowered.placements.values()),
                    position=position,
                )
                for text, sequence in self._sequences(recurrences, position)
            )
            for key, mark in lowered.marks.items():
                marks.setdefault(key, mark)
            polled.update(lowered.polled)
        is_whole = self.findings.error_count == errors_before
        return GraphRead(tuple(sections), tuple(marks.values()), polled, is_whole)

    def _sequences(
        self, recurrences: str, position: Position
    ) -> Iterator[tuple[str, Sequence]]:
        try:
            texts = split_recurrences(recurrences)
        except BadCycling as bad:
            self.findings.error("recurrence", bad.message, bad.hint, position)
            return
        for text in texts:
            try:
                yield (
                    text,
                    self.reader.recurrence(text, self.cycling.initial, self.cycling.final),
                )
            except BadCycling as bad:
                why = bad.message.removeprefix(f"{text!r} ")
                is_read = why != bad.message  # and says what is wrong with it
                seen = (
                    f"the recurrence {text!r} {'' if is_read else 'is not understood: '}{why}"
                )
                self.findings.error("recurrence", seen, bad.hint, position)


# The definition.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Holds what is given beside the definition; `now` is for points relative to the clock."""

    now: float
    name: str = ""
    source: SourceOptions = field(default_factory=SourceOptions)
    points: PointTexts = field(default_factory=PointTexts)
    policy: definition.Policy = definition.TIDEWHEEL


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWorkflow:
    """Holds what was read; `graph` is None where mistakes leave no points to run at."""

    source: SourceText
    settings: FlowSettings
    reader: CyclingReader | None = None
    workflow: definition.WorkflowDef | None = None
    graph: Graph | None = None
    # Of a definition in Python: returns the flow.cylc that is kept of it.
    kept_text: Callable[[], str] | None = None
    # The same: returns the arguments of a node's function, by its variables and its inputs.
    arguments: (
        Callable[[str, Mapping[str, str], Mapping[str, object]], dict[str, object]] | None
    ) = None


def load_workflow(path: Path, options: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Reads, compiles and checks a workflow; what is wrong is in the findings."""
    source = read_source(path, options.source, findings)
    loaded = load_source(source, options, findings)
    if loaded.graph is not None:
        check_folders(source.folder, loaded.graph, findings)
    return loaded


def folders_run(graph: Graph) -> list[str]:
    """Returns the folders of a definition of which tasks are runs, such as post/."""
    named = dict.fromkeys(node.definition.workflow for node in graph.nodes.values())
    folders = [one for one in named if is_folder(one) and not folder_problem(one)]
    return [f"{one.removeprefix(FOLDER).removesuffix('/')}/" for one in folders]


def check_folders(folder: Path, graph: Graph, findings: Findings) -> None:
    """Reports tasks that are runs of a folder of the definition in which there is no
    workflow."""
    for name, known in graph.nodes.items():
        node = known.definition
        workflow = node.workflow
        if not workflow or not is_folder(workflow) or folder_problem(workflow):
            continue
        there = folder / workflow.removeprefix(FOLDER) / FLOW_FILE
        if not there.is_file():
            findings.error(
                "bad-workflow",
                f"{name} cannot be a run of {workflow}: there is no file {FLOW_FILE}",
                "write this file, or name a registered workflow: NAME/VERSION",
                node.position,
            )


def load_source(source: SourceText, options: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Compiles and checks a workflow whose text was read already."""
    grow(sum(map(len, source.lines)) // BYTES_PER_NAME)
    settings = read_settings(source, findings)
    read = read_cycling(settings, options.points, options.now, findings)
    if read is None:
        return LoadedWorkflow(source=source, settings=settings)
    reader, cycling = read
    families = {
        name: members for name, members in settings.families.members.items() if name != ROOT
    }
    texts = (
        (
            RUN_ONCE if string.recurrence == "graph" else string.recurrence,
            _chains(string, settings.parameters, findings),
            string.position,
        )
        for string in settings.graph
    )
    graph_read = GraphReader(reader, cycling, families, findings).read(texts)
    nodes = _nodes(settings, graph_read, findings)
    special = _special_nodes(settings, reader, findings)
    mapped = read_mapped(
        settings.parameters.lists,
        settings.nodes,
        special.sequential,
        graph_read.sections,
        options.policy,
        findings,
    )
    workflow = definition.WorkflowDef(
        name=options.name or source.folder.resolve().name,
        cycling=cycling,
        sections=graph_read.sections,
        nodes=nodes,
        families={
            name: definition.FamilyDef(name, members, settings.families.drawn_in(name))
            for name, members in families.items()
        },
        marks=graph_read.marks,
        xtriggers=settings.xtriggers,
        limit_groups=definition.limit_groups(
            {name: (one.limit, one.members) for name, one in settings.queues.items()},
            settings.families.members,
        ),
        special=special,
        inputs=read_inputs(nodes, reader, findings),
        mapped=mapped,
        root=settings.nodes.get(ROOT, definition.NodeDef(name=ROOT)),
        implicit_nodes_allowed=settings.scheduler.implicit_tasks_allowed,
        policy=options.policy,
        is_whole=graph_read.is_whole,
    )
    graph = compile_workflow(workflow, findings)
    check_workflow(workflow, graph, findings)
    if graph_read.is_whole:
        _check_listed(settings, graph, findings)
    return LoadedWorkflow(
        source=source, settings=settings, reader=reader, workflow=workflow, graph=graph
    )


def as_loaded(
    source: SourceText,
    workflow: definition.WorkflowDef,
    graph: Graph,
    reader: CyclingReader,
    events: WorkflowEvents | None = None,
) -> LoadedWorkflow:
    """Returns a workflow of another front end like one of a flow.cylc, to be shown alike."""
    lineages = {name: node.lineage for name, node in workflow.nodes.items()}
    first = {name: lineage[1] for name, lineage in lineages.items() if len(lineage) > 1}
    first |= {name: family.parent or ROOT for name, family in workflow.families.items()}
    members = {name: family.members for name, family in workflow.families.items()}
    parents = {name: (parent,) for name, parent in first.items()}
    # Families are names, too, wherever all names are listed.
    families = {name: definition.NodeDef(name=name) for name in workflow.families}
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
) -> Mapping[str, definition.NodeDef]:
    nodes = {name: settings.nodes[name] for name in settings.tasks}
    for name, polled in graph_read.polled.items():
        node = nodes.get(name) or settings.implicit_node(name)
        if node.scripts.main:
            seen = f"{name}<{polled}> waits for another workflow, and also has a script"
            hint = "remove the script: such a task only waits"
            findings.error("polling-task-with-script", seen, hint, node.position)
        nodes[name] = replace(node, polling=replace(node.polling, target=polled))
    for name, node in nodes.items():
        if node.polling not in (settings.nodes[ROOT].polling, definition.NO_POLLING) and (
            not node.polling.target
        ):
            seen = f"{name} has [workflow state polling], and polls for no other workflow"
            hint = f"write {name}<WORKFLOW::TASK> in the graph, or remove the section"
            findings.warning("idle-polling", seen, hint, node.position)
    return nodes


def _check_listed(settings: FlowSettings, graph: Graph, findings: Findings) -> None:
    """Reports names in lists of tasks that are neither a task nor a family.

    Cylc refuses a special task that nobody defines unless implicit tasks are allowed, and
    accepts any member of a queue.
    """
    special, known = settings.special_tasks, {**settings.nodes, **graph.nodes}
    allowed = settings.scheduler.implicit_tasks_allowed
    report = findings.warning if allowed else findings.error
    for kind, one in special.named():
        _check_name(f"special tasks]{kind}", one.name, known, report, one.position)
    for queue, has in settings.queues.items():
        if not has.members and queue != definition.DEFAULT_GROUP:
            seen = f"[scheduling][queues][{queue}] has no members, so its limit has no effect"
            hint = "write members = TASK, FAMILY, …, or remove it"
            findings.warning("empty-queue", seen, hint, has.position)
        for name in has.members:
            where = f"queues][{queue}]members"
            _check_name(where, name, known, findings.warning, has.position)


def _check_name(
    where: str,
    name: str,
    known: Mapping[str, object],
    report: Callable[[str, str, str, Position], None],
    position: Position,
) -> None:
    if name not in known:
        report(
            UNKNOWN_TASK,
            f"[scheduling][{where} names {name!r}, which is neither a task nor a family",
            meant(name, known, "correct the name, or remove it"),
            position,
        )


def _special_nodes(
    settings: FlowSettings, reader: CyclingReader, findings: Findings
) -> definition.SpecialNodes:
    special, tasks_of = settings.special_tasks, settings.families.tasks_of

    def offsets(tasks: Iterable[SpecialTask]) -> Iterator[tuple[str, Interval]]:
        for one in tasks:
            try:
                interval = reader.interval(one.argument) if one.argument else Interval()
            except BadCycling as bad:
                seen = f"{one.name}({one.argument}): {bad.message}"
                hint = bad.hint or "write an interval such as PT1H or -PT30M"
                findings.error("special-task", seen, hint, one.position)
                continue
            yield from ((name, interval) for name in tasks_of(one.name))

    messages = special.external_trigger
    return definition.SpecialNodes(
        sequential=frozenset(name for one in special.sequential for name in tasks_of(one.name)),
        wait_for_clock=dict(offsets(special.clock_trigger)),
        expire_after=dict(offsets(special.clock_expire)),
        wait_for_message={
            name: one.argument for one in messages for name in tasks_of(one.name)
        },
    )
