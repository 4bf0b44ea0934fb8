"""Finds what is wrong with a workflow before it runs (SEMANTICS §2)."""

from __future__ import annotations

from tidewheel.core.graph.checks.circles import check_circles
from tidewheel.core.graph.checks.names import (
    check_implicit,
    check_inputs,
    check_nested,
    check_references,
    check_unused,
)
from tidewheel.core.graph.checks.placement import check_failures, check_placement
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph

# Larger graphs are refused: RELIABILITY S17.
NODES_MAX = 100_000
LINKS_MAX = 1_000_000


def check_workflow(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Runs every check; each reports all that it finds.

    Where parts of the graph were not understood, the checks for what is missing from it are
    left out.
    """
    if not check_size(graph, findings):
        return  # the other checks would take as long as the run itself
    check_references(workflow, graph, findings)
    check_circles(graph, findings)
    check_implicit(workflow, graph, findings)
    if workflow.is_whole:
        check_unused(workflow, graph, findings)
        check_placement(workflow, graph, findings)
        check_failures(graph, findings)
        check_inputs(graph, findings)
        check_nested(workflow, graph, findings)


def check_size(graph: Graph, findings: Findings) -> bool:
    """Says whether a graph is small enough to be run, and reports it if it is not."""
    links = sum([len(arrow.targets) for arrow in graph.arrows])
    links += sum(len(graph.families[group.family].members) for group in graph.groups)
    for count, limit, what in (
        (len(graph.nodes), NODES_MAX, "tasks"),
        (links, LINKS_MAX, "edges"),
    ):
        if count > limit:
            findings.error(
                f"too-many-{what}",
                f"the graph has {count} {what}; at most {limit} are accepted",
                "split the workflow, or let a task loop over its data",
            )
            return False
    return True
