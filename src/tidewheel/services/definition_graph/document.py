"""A window of a definition's graph as JSON: `tidewheel graph --json`, and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.services.definition_graph.edge_facts import edge_facts
from tidewheel.services.definition_graph.windows import Shown

if TYPE_CHECKING:
    from tidewheel.core.graph.edges import Edge
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow


def drawn_in(loaded: LoadedWorkflow) -> dict[str, str]:
    """The family that each task and family is drawn in; those in none are left out."""
    first_parents = loaded.settings.families.first_parents
    return {name: family for name, family in first_parents.items() if family != ROOT}


def graph_document(shown: Shown, families: Mapping[str, str]) -> dict[str, object]:
    """For programs."""
    style = shown.graph.cycling.style
    texts = {point: style.text(point) for point in {task.point for task in shown.window.tasks}}
    facts = edge_facts(shown.graph, shown.window, shown.start)
    return {
        "workflow": shown.graph.name,
        "points": [texts[point] for point in sorted(texts)],
        "tasks": [
            {
                "id": f"{texts[task.point]}/{task.node}",
                "name": task.node,
                "point": texts[task.point],
                "family": families.get(task.node),
            }
            for task in sorted(shown.window.tasks, key=lambda one: (one.point, one.node))
        ],
        "edges": [
            {
                "parent": f"{texts[edge.parent.point]}/{edge.parent.node}",
                "child": f"{texts[edge.child.point]}/{edge.child.node}",
                "outputs": sorted(facts[edge].outputs),
                "certain": facts[edge].certain,
                "suicide": edge.suicide,
            }
            for edge in sorted(facts, key=_edge_order)
        ],
        "cut": shown.window.cut,
    }


def _edge_order(edge: Edge) -> tuple[int, str, int, str, bool]:
    child, parent = edge.child, edge.parent
    return child.point, child.node, parent.point, parent.node, edge.suicide
