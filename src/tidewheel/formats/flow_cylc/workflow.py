"""Makes a definition and its compiled graph of a folder with a flow.cylc.

The order is that of a person reading: the text, its settings, its points, its graph. Each step
goes on as far as it can, so that one call finds whatever is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidewheel.core.cycling.interval import Interval
from tidewheel.core.graph.checks import check_workflow
from tidewheel.core.graph.compile import compile_workflow
from tidewheel.core.graph.definition import (
    TIDEWHEEL,
    FamilyDef,
    Policy,
    SpecialNodes,
    WorkflowDef,
    XtriggerDef,
    limit_groups,
)
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import NodeDef
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_sections import GraphRead, read_graph_sections
from tidewheel.formats.flow_cylc.points import PointTexts, read_cycling
from tidewheel.formats.flow_cylc.settings import FlowSettings, SpecialTask
from tidewheel.formats.flow_cylc.settings_reader import read_settings
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import SourceText


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
    """Returns the same for a text that was read already."""
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


def _nodes(
    settings: FlowSettings, graph_read: GraphRead, findings: Findings
) -> Mapping[str, NodeDef]:
    nodes = {name: settings.nodes[name] for name in settings.tasks}
    for name, polled in graph_read.polled.items():
        node = nodes.get(name) or settings.implicit_node(name)
        if node.scripts.main:
            findings.error(
                "polling-task-with-script",
                f"{name}<{polled}> waits for another workflow, and has a script of its own",
                "remove the script: waiting is all that such a task does",
                node.position,
            )
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
        one.label: XtriggerDef(
            one.label,
            one.call.function,
            one.call.arguments,
            tuple(pair for pair in one.call.keywords if pair[0] != "sequential"),
            one.call.interval_seconds,
            one.sequential,
            one.position,
        )
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
            findings.error(
                "special-task",
                f"{one.name}({one.argument}): {bad.message}",
                bad.hint or "write an interval such as PT1H or -PT30M",
                one.position,
            )
            continue
        for name in _tasks_of((one.name,), settings):
            yield name, interval


def _tasks_of(names: Iterable[str], settings: FlowSettings) -> Iterator[str]:
    """Yields the names with families replaced by their members."""
    for name in names:
        yield from settings.families.members.get(name, (name,))
