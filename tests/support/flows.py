"""The door to definitions: a flow.cylc as text in, a graph or findings out."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import TIDEWHEEL, Policy
from tidewheel.core.graph.findings import Finding, Findings, Severity
from tidewheel.core.graph.graph import Graph, reference_lines, window
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.workflow import (
    LoadedWorkflow,
    LoadOptions,
    PointTexts,
    load_source,
)

NOW = 1_900_000_000.0


def load(text: str, *, policy: Policy = TIDEWHEEL, **points: str) -> LoadedWorkflow:
    return load_with_findings(text, policy=policy, **points)[0]


def load_with_findings(
    text: str, *, policy: Policy = TIDEWHEEL, **points: str
) -> tuple[LoadedWorkflow, Findings]:
    lines = dedent(text).splitlines()
    source = SourceText.as_written(Path("flow"), ("flow.cylc",), lines)
    findings = Findings()
    options = LoadOptions(now=NOW, policy=policy, points=PointTexts(**points))
    return load_source(source, options, findings), findings


def flow(
    graph: str,
    runtime: str = "",
    *,
    final: str = "4",
    scheduling: str = "",
    scheduler: str = "allow implicit tasks = True",
) -> str:
    """A whole flow.cylc with integer points around `recurrence = text` lines.

    `runtime` need not have every task of the graph, unless `scheduler` says otherwise.
    """
    head = f"[scheduler]\n    {scheduler}\n" if runtime else ""
    return (
        f"{head}[scheduling]\n    cycling mode = integer\n    initial cycle point = 1\n"
        f"    final cycle point = {final}\n{indent(dedent(scheduling), '    ')}\n"
        f"    [[graph]]\n{indent(dedent(graph), '        ')}\n"
        f"[runtime]\n    [[root]]\n{indent(dedent(runtime), '    ')}\n"
    )


def graph_of(text: str, *, policy: Policy = TIDEWHEEL, **points: str) -> Graph:
    """The compiled graph of a definition without errors."""
    loaded, findings = load_with_findings(text, policy=policy, **points)
    errors = [str(one) for one in findings.sorted() if one.severity is Severity.ERROR]
    assert not errors, "\n".join(errors)
    assert loaded.graph is not None
    return loaded.graph


def findings_of(
    text: str, *, policy: Policy = TIDEWHEEL, severity: Severity = Severity.ERROR
) -> list[Finding]:
    """Its findings of one severity, sorted."""
    _, findings = load_with_findings(text, policy=policy)
    return [one for one in findings.sorted() if one.severity is severity]


def codes(text: str, *, severity: Severity = Severity.ERROR) -> list[str]:
    return [finding.code for finding in findings_of(text, severity=severity)]


def children(graph: Graph, task: str, output: str = "succeeded") -> list[str]:
    """`children(g, "1/a")`: the tasks that hear of an output, sorted."""
    point, name = task.split("/")
    style = graph.cycling.style
    found = graph.children(name, style.read(point), output)
    return sorted(f"{style.text(child.point)}/{child.node}" for child in found)


def points_of(graph: Graph, name: str, stop: int = 20) -> list[str]:
    """Where a node stands, up to a point."""
    node = graph.nodes[name]
    found = []
    point = node.first_from(graph.cycling.initial)
    while point is not None and point <= stop:
        found.append(graph.cycling.style.text(point))
        point = node.next_after(point)
    return found


def reference(graph: Graph, start: int = 1, stop: int = 4) -> list[str]:
    return list(reference_lines(graph, window(graph, Point(start), Point(stop))))
