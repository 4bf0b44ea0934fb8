"""What a handled failure will leave undone.

Handling a failure lets a run go on without the task that failed. Whoever needs its success does
not run then: within the point that is a branch not taken, at other points it stops the workflow
from there on (SEMANTICS §5, blocked).
"""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.graph.checks.names import some
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph, Link, Node
from tidewheel.core.graph.outputs import FAILED, SUCCEEDED


def check_failures(graph: Graph, findings: Findings) -> None:
    """One finding for each arrow that handles failures, whatever the number of its parents."""
    traps: dict[int, tuple[list[str], dict[str, None]]] = {}
    for node in graph.nodes.values():
        if node.completion.marked or not node.completion.is_complete({FAILED}):
            continue
        handler = next((link.arrow for link in _links(graph, node, FAILED)), None)
        waiting = _waiting_elsewhere(graph, node)
        if handler is not None and waiting:
            names, needing = traps.setdefault(handler, ([], {}))
            names.append(node.name)
            needing.update(dict.fromkeys(waiting))
    for handler, (names, needing) in traps.items():
        arrow = graph.arrows[handler]
        findings.warning(
            "failure-stops-later-points",
            f"a failure of {some(names)} is handled (by {some(arrow.targets)}), but "
            f"{some(needing)} at other points will wait for its success and be blocked",
            f"write {names[0]}[…]:finish there if the next point should run anyway",
            arrow.position,
        )


def _waiting_elsewhere(graph: Graph, node: Node) -> list[str]:
    """Who needs its success at another point, and would not take its failure instead."""
    accepting = {(link.arrow, link.offset) for link in _links(graph, node, FAILED)}
    found: dict[str, None] = {}
    for link in _links(graph, node, SUCCEEDED):
        arrow = graph.arrows[link.arrow]
        if link.offset is None or arrow.suicide:
            continue
        if (link.arrow, link.offset) not in accepting:
            found.update(dict.fromkeys(arrow.targets))
    return list(found)


def _links(graph: Graph, node: Node, output: str) -> Iterator[Link]:
    yield from node.links.get(output, ())
    for index in node.groups.get(output, ()):
        yield from graph.groups[index].links
