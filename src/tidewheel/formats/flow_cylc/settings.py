"""Reads everything that a flow.cylc says outside of its graph texts, typed, into one value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from tidewheel.core.graph.definition import NodeDef, Pairs, XtriggerDef
from tidewheel.core.graph.findings import NOWHERE, Findings, Position, meant
from tidewheel.formats.flow_cylc import items
from tidewheel.formats.flow_cylc.checker import Checker, Values
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.graph_text import GraphString, read_graph
from tidewheel.formats.flow_cylc.names import (
    BadParameter,
    Parameters,
    Value,
    default_template,
    fill_template,
    xtrigger_name_problem,
)
from tidewheel.formats.flow_cylc.node_checks import check_run_handlers, check_tasks
from tidewheel.formats.flow_cylc.runtime import Namespaces, handlers_of, implicit_node, resolve
from tidewheel.formats.flow_cylc.sections import PlacedFindings, Section, parse_sections
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.upgrade import upgrade
from tidewheel.formats.flow_cylc.values import BadValue, ListSource, duration_seconds
from tidewheel.formats.flow_cylc.xtriggers import XtriggerCall, check_call, xtrigger_of
from tidewheel.lazy_dataclasses import dataclass, pattern

QUEUE_LIMIT_DEFAULT = 100
SPECIAL_TASKS = cast("items.SectionSpec", items.SCHEDULING.entries["special tasks"]).entries


@dataclass(frozen=True, slots=True)
class Placed:
    """Holds a text and where it was written; an empty text was not given."""

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
    stall_timeout_seconds: float | None = 3600.0
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
    """Holds what `[scheduler]` says."""

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
    """Holds `[scheduling]` without its sections; points stay text until the mode is known."""

    initial_point: Placed = NOT_GIVEN
    final_point: Placed = NOT_GIVEN
    initial_constraints: tuple[str, ...] = ()
    final_constraints: tuple[str, ...] = ()
    hold_after: Placed = NOT_GIVEN
    stop_after: Placed = NOT_GIVEN
    cycling_mode: Placed = NOT_GIVEN
    runahead_limit: Placed = Placed("P4")


@dataclass(frozen=True, slots=True)
class Queue:
    """Holds a queue of `[[queues]]`; its members may be families, and limit 0 is none."""

    limit: int
    members: tuple[str, ...] = ()
    position: Position = field(default=NOWHERE, compare=False)  # of its members


@dataclass(frozen=True, slots=True)
class SpecialTask:
    """Names a task or family in a list of `[[special tasks]]`, with what is in parentheses."""

    name: str
    argument: str = ""  # an offset such as PT1H, or the message of an external trigger
    position: Position = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTasks:
    """Holds the lists of `[[special tasks]]`."""

    clock_trigger: tuple[SpecialTask, ...] = ()
    clock_expire: tuple[SpecialTask, ...] = ()
    external_trigger: tuple[SpecialTask, ...] = ()
    sequential: tuple[SpecialTask, ...] = ()

    def named(self) -> Iterator[tuple[str, SpecialTask]]:
        """Yields each task or family that is named, with the list that names it."""
        for kind, one in SPECIAL_TASKS.items():
            yield from ((kind, task) for task in getattr(self, one.to))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """Holds a whole definition except for the meaning of its graph."""

    meta: Pairs = ()
    scheduler: SchedulerSection = field(default_factory=SchedulerSection)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    graph: tuple[GraphString, ...] = ()
    xtriggers: Mapping[str, XtriggerDef] = field(default_factory=dict)  # by label
    queues: Mapping[str, Queue] = field(default_factory=dict)  # by name
    special_tasks: SpecialTasks = field(default_factory=SpecialTasks)
    parameters: Parameters = field(default_factory=Parameters)
    families: Families = field(default_factory=lambda: Families({}, {}, {}, {}))
    nodes: Mapping[str, NodeDef] = field(default_factory=dict)  # families included

    def implicit_node(self, name: str, position: Position = NOWHERE) -> NodeDef:
        """Returns the node of a task in the graph that has no section."""
        return implicit_node(name, self.nodes[ROOT], position)

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
        """Returns the namespaces that are no families, in the order of the definition."""
        return tuple(name for name in self.nodes if not self.families.is_family(name))


# `[scheduler]` and `[scheduling]`: checked values become settings with their places.

_POINTS = pattern(r"P\d{1,9}")
_SPECIAL = pattern(r"([^\s()]+)\s*(?:\(\s*(.*?)\s*\))?", re.DOTALL)
_CLOCKS = ("clock-trigger", "clock-expire")
_SPECIAL_FORMS = {
    "clock-trigger": "task(PT1H)",
    "clock-expire": "task(PT1H)",
    "external-trigger": 'task("message")',
    "sequential": "task",
}


_Settings = TypeVar(
    "_Settings", SchedulerSection, SchedulingSettings, WorkflowEvents, WorkflowMail
)


@dataclass(frozen=True, slots=True)
class SchedulingReader:
    """Reads `[scheduler]` and `[scheduling]`; what is wrong becomes a finding."""

    findings: PlacedFindings
    root: Section
    parameters: Parameters
    values: Values  # of [scheduling]

    def scheduler(self, values: Values) -> SchedulerSection:
        said = cast("Values", values.get("events", {}))
        return replace(
            self._filled(SchedulerSection(), items.SCHEDULER, "scheduler", values),
            events=replace(
                self._filled(WorkflowEvents(), items.EVENTS, "scheduler", said),
                handlers=handlers_of(said, items.WORKFLOW_EVENTS),
                handled_events=self._event_names(said, "handler events"),
                mail_events=self._event_names(said, "mail events"),
            ),
            mail=self._filled(
                WorkflowMail(), items.MAIL, "scheduler", cast("Values", values.get("mail", {}))
            ),
        )

    def _filled(
        self, settings: _Settings, spec: items.SectionSpec, section: str, values: Values
    ) -> _Settings:
        """Returns settings with the values of items in their fields; others are unchanged."""
        said: dict[str, Any] = {}
        for name, value in values.items():
            entry = spec.entries.get(name)
            if (
                value is None
                or value == ""
                or not isinstance(entry, items.ItemSpec)
                or not entry.to
            ):
                continue
            is_placed = isinstance(getattr(settings, entry.to), Placed)
            place = self.findings.position(self.root, section, name)
            said[entry.to] = Placed(str(value), place) if is_placed else value
        return replace(settings, **said)

    def _event_names(self, values: Values, item: str) -> tuple[str, ...]:
        names = []
        place = (self.root, "scheduler", "events")
        for name in _texts(values, item):
            if name in items.WORKFLOW_EVENTS:
                names.append(name)
            elif name in items.OLD_WORKFLOW_EVENTS:
                names.append(items.OLD_WORKFLOW_EVENTS[name])
                seen = f"event {name!r} in [scheduler][events]{item} is an old name"
                hint = f"write {items.OLD_WORKFLOW_EVENTS[name]}"
                self.findings.warning("obsolete", seen, hint, *place)
            else:
                seen = f"{name!r} in [scheduler][events]{item} is not an event of a workflow"
                hint = meant(
                    name,
                    items.WORKFLOW_EVENTS,
                    f"events are {', '.join(items.WORKFLOW_EVENTS)}",
                )
                self.findings.warning("unknown-event", seen, hint, *place)
        return tuple(names)

    def scheduling(self) -> SchedulingSettings:
        found = self._filled(SchedulingSettings(), items.SCHEDULING, "scheduling", self.values)
        limit = self._checked(found.runahead_limit, found.cycling_mode.text)
        return replace(found, runahead_limit=limit)

    def _checked(self, given: Placed, cycling_mode: str) -> Placed:
        """Returns the runahead limit; P4, after a finding, if it cannot be read."""
        if given.text.isdigit() and cycling_mode == "integer":
            seen = f"[scheduling]runahead limit = {given.text} means hours; points are integers"
            hint = f"write P{given.text} for that many cycle points"
            self.findings.all.error("bad-value", seen, hint, given.position)
            return Placed("P4")
        if given.text.isdigit():
            seen = f"[scheduling]runahead limit = {given.text} is read as hours"
            hint = f"write PT{given.text}H"
            self.findings.all.warning("obsolete", seen, hint, given.position)
            return Placed(f"PT{given.text}H", given.position)
        if not _POINTS.fullmatch(given.text):
            try:
                duration_seconds(given.text)
            except BadValue:
                seen = f"[scheduling]runahead limit: {given.text[:60]!r} is not a valid limit"
                hint = "write a number of points such as P4, or a duration such as PT12H"
                self.findings.all.error("bad-value", seen, hint, given.position)
                return Placed("P4")
        return given

    def xtriggers(self) -> dict[str, XtriggerDef]:
        by_default = bool(self.values.get("sequential xtriggers"))
        found = {}
        for label, call in cast(
            "dict[str, XtriggerCall]", self.values.get("xtriggers", {})
        ).items():
            place = self.findings.position(self.root, "scheduling", "xtriggers", label)
            if problem := xtrigger_name_problem(label):
                seen = f"{label!r} cannot be the name of an xtrigger"
                self.findings.all.error("bad-name", seen, problem, place)
                continue
            check_call(label, call, self.findings.source.folder, self.findings.all, place)
            found[label] = xtrigger_of(label, call, place, sequential=by_default)
        return found

    def queues(self) -> dict[str, Queue]:
        queues = {}
        for name, values in cast("dict[str, Values]", self.values.get("queues", {})).items():
            place = ("scheduling", "queues", name)
            limit = cast("int | None", values.get("limit"))
            if limit is None:
                limit = QUEUE_LIMIT_DEFAULT if name == "default" else 0
            if limit < 0:
                seen = f"[scheduling][queues][{name}]limit is {limit}"
                hint = "write how many tasks may be active at once; 0 means no limit"
                self.findings.error("bad-value", seen, hint, self.root, *place)
                limit = 0
            members = tuple(self._expanded(_texts(values, "members"), place))
            position = self.findings.position(self.root, *place, "members")
            queues[name] = Queue(limit, members, position)
        return queues

    def special_tasks(self) -> SpecialTasks:
        return SpecialTasks(
            **{one.to: self._special(kind) for kind, one in SPECIAL_TASKS.items()}
        )

    def _special(self, kind: str) -> tuple[SpecialTask, ...]:
        values = cast("Values", self.values.get("special tasks", {}))
        place = ("scheduling", "special tasks", kind)
        needs_argument = kind == "external-trigger"
        # Points are moments of a clock only if they are Gregorian dates.
        mode = self.values.get("cycling mode") or "gregorian"
        tasks = []
        for item in self._expanded(_texts(values, kind), place):
            match = _SPECIAL.fullmatch(item)
            here = f"[scheduling][special tasks]{kind}"
            if match is None or (needs_argument and not match[2]):
                seen = f"{here}: {item[:60]!r} is not understood"
                hint = f"write for example {_SPECIAL_FORMS[kind]}"
                self.findings.error("bad-value", seen, hint, self.root, *place)
                continue
            if kind in _CLOCKS and mode != "gregorian":
                seen = f"{here} has no meaning with cycling mode = {mode}"
                hint = "it needs the gregorian calendar"
                self.findings.error("bad-value", seen, hint, self.root, *place)
                break
            argument = (match[2] or "").strip("\"'") if needs_argument else match[2] or ""
            position = self.findings.position(self.root, *place)
            tasks.append(SpecialTask(match[1], argument, position))
        return tuple(tasks)

    def _expanded(self, names: tuple[str, ...], place: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            try:
                expanded = self.parameters.expand_name(name)
            except BadParameter as error:
                seen, hint = str(error), error.hint
                self.findings.error("bad-parameter", seen, hint, self.root, *place)
                continue
            yield from (one for one, _ in expanded)


def _texts(values: Values, name: str) -> tuple[str, ...]:
    return cast("tuple[str, ...]", values.get(name) or ())


# The whole file.

NOTHING = FlowSettings(
    families=arrange({ROOT: ()}, {})[0], nodes={ROOT: NodeDef(name=ROOT, lineage=(ROOT,))}
)


def read_flow(path: Path, options: SourceOptions, findings: Findings) -> FlowSettings:
    """Returns the settings of the workflow in a folder, as far as they can be read."""
    return read_settings(read_source(path, options, findings), findings)


def read_settings(source: SourceText, findings: Findings) -> FlowSettings:
    """Returns the settings that a text makes; each mistake in it is a finding."""
    if not source.lines and findings.has_errors:
        return NOTHING  # there is no text, and why has been said
    placed = PlacedFindings(source, findings)
    root = parse_sections(placed)
    upgrade(root, placed)
    return _Reader(placed, root).read()


class _Reader:
    def __init__(self, findings: PlacedFindings, root: Section) -> None:
        self._findings = findings
        self._root = root
        self._checker = Checker(findings)

    def read(self) -> FlowSettings:
        # Reports sections that flow.cylc does not have; the others are checked one by one.
        top = Section("", -1, {**self._root.entries})
        for section in self._root.sections():
            if section.name in items.FLOW.entries:
                top.entries[section.name] = Section(section.name, section.line)
        self._checker.check(top, _TOP, ())
        meta = self._values("meta", items.META)
        parameters = self._parameters()
        namespaces = Namespaces(self._findings, parameters)
        namespaces.read(self._root.section("runtime"), self._checker)
        families = namespaces.arrange()
        nodes = resolve(namespaces, families)
        members = families.members
        tasks = [node for name, node in nodes.items() if name not in members]
        check_tasks(tasks, meta, self._findings.all)
        values = self._values("scheduling", items.SCHEDULING)
        scheduling = SchedulingReader(self._findings, self._root, parameters, values)
        scheduler = scheduling.scheduler(self._values("scheduler", items.SCHEDULER))
        place = self._findings.position(self._root, "scheduler", "events")
        check_run_handlers(scheduler.events.handlers, meta, self._findings.all, place)
        return FlowSettings(
            meta=cast("Pairs", tuple(meta.items())),
            scheduler=scheduler,
            scheduling=scheduling.scheduling(),
            graph=self._graph(),
            xtriggers=scheduling.xtriggers(),
            queues=scheduling.queues(),
            special_tasks=scheduling.special_tasks(),
            parameters=parameters,
            families=families,
            nodes=nodes,
        )

    def _values(self, name: str, spec: items.SectionSpec) -> Values:
        section = self._root.section(name)
        return self._checker.check(section, spec, (name,)) if section is not None else {}

    def _parameters(self) -> Parameters:
        values = self._values("task parameters", items.TASK_PARAMETERS)
        templates = cast("dict[str, str]", values.pop("templates", {}))
        written = self._root.section("task parameters")
        for item in () if written is None else written.items():
            values.setdefault(item.name, ())  # it has a finding: it is defined, but wrong
        from_lists = {name: one for name, one in values.items() if isinstance(one, ListSource)}
        for name in list(from_lists):
            if name[-1:].isdigit():
                seen = f"[task parameters]{name}: the name of a list ends with a digit"
                hint = f"its elements are called _{name}0, _{name}1, …; choose another name"
                where = (self._root, "task parameters", name)
                self._findings.error("mapped-task", seen, hint, *where)
            values[name], templates[name] = (0,), f"<{name}>"
        lists = cast("dict[str, tuple[Value, ...]]", values)
        for name, known in lists.items():
            if known and name not in templates:
                templates[name] = default_template(name, known)
        firsts = {name: known[0] for name, known in lists.items() if known}
        for name in [one for one in templates if one in lists]:
            try:
                fill_template(templates[name], firsts)
            except BadParameter as error:
                path = ("task parameters", "templates", name)
                seen = f"[task parameters][templates]{name}: {error}"
                self._findings.error("bad-parameter", seen, error.hint, self._root, *path)
                templates[name] = default_template(name, lists[name])
        return Parameters(lists, templates, from_lists)

    def _graph(self) -> tuple[GraphString, ...]:
        scheduling = self._root.section("scheduling")
        graph = scheduling.section("graph") if scheduling is not None else None
        if graph is None:
            if self._findings.all.has_errors:
                return ()  # it may be what those errors hide
            missing = "[scheduling]" if scheduling is None else "[scheduling][[graph]]"
            seen = f"there is no section {missing}"
            hint = 'write for example: [scheduling] [[graph]] R1 = "a => b"'
            self._findings.error("no-graph", seen, hint, self._root)
            return ()
        strings = read_graph(graph, self._findings)
        if not any(one.text.strip() for one in strings):
            hint = 'write for example: R1 = "a => b"'
            self._findings.error("no-graph", "[scheduling][graph] is empty", hint, graph)
        return strings


_TOP = items.SectionSpec({name: items.SectionSpec(other=None) for name in items.FLOW.entries})
