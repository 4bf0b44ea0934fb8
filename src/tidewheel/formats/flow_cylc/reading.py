"""From the text of a flow.cylc to its settings: parsed, updated, checked, resolved."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.node import NodeDef
from tidewheel.formats.flow_cylc.checking import Checker, Values
from tidewheel.formats.flow_cylc.families import ROOT, arrange
from tidewheel.formats.flow_cylc.graph_strings import GraphString, read_graph
from tidewheel.formats.flow_cylc.item_table import SectionSpec
from tidewheel.formats.flow_cylc.items import FLOW, META, SCHEDULER, SCHEDULING, TASK_PARAMETERS
from tidewheel.formats.flow_cylc.loading import SourceOptions, read_source
from tidewheel.formats.flow_cylc.namespaces import Namespaces
from tidewheel.formats.flow_cylc.node_checks import check_run_handlers, check_tasks
from tidewheel.formats.flow_cylc.parameters import (
    BadParameter,
    Parameters,
    Value,
    default_template,
    fill_template,
)
from tidewheel.formats.flow_cylc.runtime import resolve
from tidewheel.formats.flow_cylc.scheduling import SchedulingReader
from tidewheel.formats.flow_cylc.sections import Item, Section, parse_sections
from tidewheel.formats.flow_cylc.settings import FlowSettings
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.upgrading import upgrade

NOTHING = FlowSettings(
    families=arrange({ROOT: ()}, {})[0], nodes={ROOT: NodeDef(name=ROOT, lineage=(ROOT,))}
)


def read_flow(path: Path, options: SourceOptions, findings: Findings) -> FlowSettings:
    """The settings of the workflow in a folder, as far as they can be read."""
    return read_settings(read_source(path, options, findings), findings)


def read_settings(source: SourceText, findings: Findings) -> FlowSettings:
    """The settings that a text makes; each mistake in it is a finding."""
    if not source.lines and findings.has_errors:
        return NOTHING  # there is no text, and why has been said
    root = parse_sections(source, findings)
    upgrade(root, source, findings)
    return _Reader(source, findings, root).read()


class _Reader:
    def __init__(self, source: SourceText, findings: Findings, root: Section) -> None:
        self._source = source
        self._findings = findings
        self._root = root
        self._checker = Checker(source, findings)

    def read(self) -> FlowSettings:
        self._check_top()
        meta = self._values("meta", META)
        parameters = self._parameters()
        namespaces = Namespaces(self._source, self._findings, parameters)
        namespaces.read(self._root.section("runtime"), self._checker)
        families = namespaces.arrange()
        nodes = resolve(namespaces, families)
        tasks = (node for node in nodes.values() if not families.is_family(node.name))
        check_tasks(tasks, meta, self._findings)
        scheduling = SchedulingReader(
            self._source,
            self._findings,
            parameters,
            self._root.section("scheduling") or Section("scheduling", -1),
            self._values("scheduling", SCHEDULING),
        )
        scheduler = scheduling.scheduler(
            self._root.section("scheduler"), self._values("scheduler", SCHEDULER)
        )
        place = scheduling.place_of_events(self._root.section("scheduler"))
        check_run_handlers(scheduler.events.handlers, meta, self._findings, place)
        return FlowSettings(
            meta=cast("tuple[tuple[str, str], ...]", tuple(meta.items())),
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

    def _check_top(self) -> None:
        """Sections that do not exist; those that do are checked one by one."""
        known = SectionSpec({name: SectionSpec(other=None) for name in FLOW.entries})
        top = Section("", -1)
        top.entries = {
            name: Section(name, entry.line)
            if isinstance(entry, Section) and name in FLOW.entries
            else entry
            for name, entry in self._root.entries.items()
        }
        self._checker.check(top, known, ())

    def _values(self, name: str, spec: SectionSpec) -> Values:
        section = self._root.section(name)
        return self._checker.check(section, spec, (name,)) if section is not None else {}

    def _parameters(self) -> Parameters:
        values = self._values("task parameters", TASK_PARAMETERS)
        templates = cast("dict[str, str]", values.pop("templates", {}))
        lists = cast("dict[str, tuple[Value, ...]]", values)
        for name, known in lists.items():
            if known and name not in templates:
                templates[name] = default_template(name, known)
        for name in list(templates):
            if name not in lists:
                continue
            try:
                fill_template(
                    templates[name],
                    {one: some[0] for one, some in lists.items() if some},
                )
            except BadParameter as error:
                self._findings.error(
                    "bad-parameter",
                    f"[task parameters][templates]{name}: {error}",
                    error.hint,
                    self._place("task parameters", "templates", name),
                )
                templates[name] = default_template(name, lists[name])
        return Parameters(lists, templates)

    def _graph(self) -> tuple[GraphString, ...]:
        scheduling = self._root.section("scheduling")
        graph = scheduling.section("graph") if scheduling is not None else None
        if graph is None:
            if self._findings.has_errors:
                return ()  # it may be what those errors hide
            missing = "[scheduling]" if scheduling is None else "[scheduling][[graph]]"
            self._findings.error(
                "no-graph",
                f"there is no section {missing}",
                'write for example: [scheduling] [[graph]] R1 = "a => b"',
                Position(self._source.files[0]),
            )
            return ()
        strings = read_graph(graph, self._source, self._findings)
        if not any(one.text.strip() for one in strings):
            self._findings.error(
                "no-graph",
                "[scheduling][graph] is empty",
                'write for example: R1 = "a => b"',
                self._checker.position(graph),
            )
        return strings

    def _place(self, *path: str) -> Position:
        entry: Item | Section = self._root
        for name in path:
            inner = entry.entries.get(name) if isinstance(entry, Section) else None
            if inner is None:
                break
            entry = inner
        return self._checker.position(entry)
