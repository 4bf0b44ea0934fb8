"""Whether the graph is small enough to be run: RELIABILITY S17."""

from __future__ import annotations

from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph

NODES_MAX = 100_000
LINKS_MAX = 1_000_000


def check_size(graph: Graph, findings: Findings) -> bool:
    links = sum(len(arrow.targets) for arrow in graph.arrows)
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
