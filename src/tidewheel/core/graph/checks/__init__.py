"""What can be known to be wrong with a workflow before it runs (SEMANTICS §2)."""

from __future__ import annotations

from tidewheel.core.graph.checks.circles import check_circles
from tidewheel.core.graph.checks.failures import check_failures
from tidewheel.core.graph.checks.names import check_implicit, check_references, check_unused
from tidewheel.core.graph.checks.placement import check_placement
from tidewheel.core.graph.checks.size import check_size
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph


def check_workflow(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Every check; each reports all that it finds.

    Where parts of the graph were not understood, nothing is called missing from it.
    """
    if not check_size(graph, findings):
        return  # the others would take as long as the run itself
    check_references(workflow, graph, findings)
    check_circles(graph, findings)
    check_implicit(workflow, graph, findings)
    if workflow.is_whole:
        check_unused(workflow, graph, findings)
        check_placement(workflow, graph, findings)
        check_failures(graph, findings)
