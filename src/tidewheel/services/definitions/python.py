"""Workflows that are written in Python, as the commands about definitions want them."""

from __future__ import annotations

from pathlib import Path

from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.definition import NodeDef, WorkflowDef
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.flow_cylc.families import ROOT, Families
from tidewheel.formats.flow_cylc.settings import FlowSettings
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow, LoadOptions
from tidewheel.formats.python_api.assembly import ReadOptions
from tidewheel.formats.python_api.workflow import load_python


def load_python_file(path: Path, how: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Returns the workflow that a file defines; the file is executed, as python3 would."""
    source = _source(path)
    if not path.is_file():
        findings.error("no-such-file", f"there is no file {path}")
        return LoadedWorkflow(source=source, settings=FlowSettings())
    flow = load_python(path, findings)
    if flow is None:
        return LoadedWorkflow(source=source, settings=FlowSettings())
    options = ReadOptions(now=how.now, points=how.points, policy=how.policy)
    loaded = flow.load(options, findings)
    if loaded is None:
        return LoadedWorkflow(source=source, settings=FlowSettings())
    workflow, graph = loaded
    return LoadedWorkflow(
        source=source,
        settings=FlowSettings(
            nodes={**_family_nodes(workflow), **workflow.nodes, ROOT: workflow.root},
            families=_families(workflow),
        ),
        reader=_reader(workflow.cycling.style),
        workflow=workflow,
        graph=graph,
    )


def _reader(style: PointStyle) -> CyclingReader:
    """Reads points of the command line as the workflow writes them."""
    hours, minutes = divmod(abs(style.utc_offset_minutes), 60)
    sign = "-" if style.utc_offset_minutes < 0 else "+"
    return CyclingReader(
        style.calendar.value,
        time_zone=f"{sign}{hours:02}{minutes:02}" if style.utc_offset_minutes else None,
        point_format=style.format,
        expanded_year_digits=style.expanded_year_digits,
    )


def _source(path: Path) -> SourceText:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return SourceText.as_written(Path(), (str(path),), lines)


def _family_nodes(workflow: WorkflowDef) -> dict[str, NodeDef]:
    """Families are names, too, wherever all names are listed."""
    return {name: NodeDef(name=name) for name in workflow.families}


def _families(workflow: WorkflowDef) -> Families:
    """Returns who inherits from whom, as it stands in the definition."""
    lineages = {name: node.lineage for name, node in workflow.nodes.items()}
    first = {name: lineage[1] for name, lineage in lineages.items() if len(lineage) > 1}
    first |= {name: family.parent or ROOT for name, family in workflow.families.items()}
    members = {name: family.members for name, family in workflow.families.items()}
    parents = {name: (parent,) for name, parent in first.items()}
    return Families(parents, lineages, first, {**members, ROOT: tuple(workflow.nodes)})
