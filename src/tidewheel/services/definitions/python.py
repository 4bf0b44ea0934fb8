"""Loads workflows written in Python as `LoadedWorkflow`, the form that all definitions have."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.cycling.reader import CyclingReader
from tidewheel.formats.flow_cylc.settings import FlowSettings
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.workflow import (
    LoadedWorkflow,
    LoadOptions,
    as_loaded,
    check_folders,
)
from tidewheel.formats.python_api.assembly import ReadOptions
from tidewheel.formats.python_api.workflow import Workflow, load_python


def load_python_file(path: Path, how: LoadOptions, findings: Findings) -> LoadedWorkflow:
    """Returns the workflow that a file defines; the file is executed, as by python3.

    If it defines none, findings say why, and what is returned has no graph.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    source = SourceText.as_written(Path(), (str(path),), lines)
    flow = None
    if not path.is_file():
        findings.error("no-such-file", f"there is no file {path}")
    else:
        flow = load_python(path, findings)
    return _loaded(flow, source, how, findings)


def load_python_workflow(
    flow: Workflow, how: LoadOptions, findings: Findings
) -> LoadedWorkflow:
    """Returns a workflow that was defined in this process."""
    source = SourceText.as_written(Path(), (flow.name,), [])
    return _loaded(flow, source, how, findings)


def _loaded(
    flow: Workflow | None, source: SourceText, how: LoadOptions, findings: Findings
) -> LoadedWorkflow:
    options = ReadOptions(now=how.now, points=how.points, policy=how.policy)
    loaded = None if flow is None else flow.load(options, findings)
    if flow is None or loaded is None:
        return LoadedWorkflow(source=source, settings=FlowSettings())
    workflow, graph = loaded
    check_folders(flow.folder, graph, findings)
    made = as_loaded(source, workflow, graph, _reader(workflow.cycling.style))
    return replace(made, kept_text=partial(flow.flow_text, options), arguments=flow.arguments)


def _reader(style: PointStyle) -> CyclingReader:
    """Returns the reader of points on the command line, which are written as the workflow's."""
    hours, minutes = divmod(abs(style.utc_offset_minutes), 60)
    sign = "-" if style.utc_offset_minutes < 0 else "+"
    return CyclingReader(
        style.calendar.value,
        time_zone=f"{sign}{hours:02}{minutes:02}" if style.utc_offset_minutes else None,
        point_format=style.format,
        expanded_year_digits=style.expanded_year_digits,
    )
