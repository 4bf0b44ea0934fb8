"""Names in the graph that stand for nothing."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.graph.condition import Atom, Xtrigger, leaves
from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import NOWHERE, Findings, Position, Severity
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import STANDARD
from tidewheel.core.graph.spelling import nearest

NAMED_MAX = 10  # names in one message
GUESSED_MAX = 20  # names without a section for which a likely one is looked for

WALL_CLOCK = "wall_clock"  # known without a definition, as in Cylc: no offset


def check_references(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Outputs and xtriggers that the graph uses."""
    _check_outputs(workflow, graph, findings)
    _check_xtriggers(workflow, graph, findings)


def check_sections(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Tasks that are in the graph or defined, but not both."""
    _check_implicit(workflow, graph, findings)
    _check_unused(workflow, graph, findings)


def some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    text = ", ".join(listed[:NAMED_MAX])
    more = len(listed) - NAMED_MAX
    return f"{text} and {more} more" if more > 0 else text


def _check_outputs(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    asked: dict[tuple[str, str], Position] = {}
    for mark in workflow.marks:
        asked.setdefault((mark.node, mark.output), mark.position)
    for arrow in graph.arrows:
        for leaf in leaves(arrow.condition):
            if isinstance(leaf, Atom):
                asked.setdefault((leaf.node, leaf.output), arrow.position)
    for (name, output), position in asked.items():
        declared = dict(graph.nodes[name].definition.outputs)
        if output in STANDARD or output in declared:
            continue
        if findings.is_full:
            return
        near = nearest(output, [*STANDARD, *declared])
        findings.error(
            "unknown-output",
            f"{name} has no output {output!r}",
            (f"did you mean {near!r}? Or declare it" if near else "declare it")
            + f": [runtime] [[{name}]] [[[outputs]]] {output} = a message of its job",
            position,
        )


def _check_xtriggers(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    asked: dict[str, Position] = {}
    for section in workflow.sections:
        for arrow in section.arrows:
            for leaf in leaves(arrow.condition):
                if isinstance(leaf, Xtrigger):
                    asked.setdefault(leaf.label, arrow.position)
    for label, position in asked.items():
        if label not in workflow.xtriggers and label != WALL_CLOCK:
            near = nearest(label, workflow.xtriggers)
            findings.error(
                "unknown-xtrigger",
                f"the xtrigger @{label} is not defined",
                f"did you mean @{near}?" if near else "define it under [[xtriggers]]",
                position,
            )
        elif graph.cycling.is_integer and _is_clock(workflow, label):
            findings.error(
                "clock-without-dates",
                f"@{label} waits for the clock, and the points of this workflow are numbers",
                "use date-time cycling, or another xtrigger",
                position,
            )
    for label, defined in workflow.xtriggers.items():
        if label in graph.nodes:
            findings.error(
                "xtrigger-is-a-task",
                f"{label} is both an xtrigger and a task of the graph",
                f"write @{label} in the graph, or rename one of them",
                defined.position,
            )


def _is_clock(workflow: WorkflowDef, label: str) -> bool:
    defined = workflow.xtriggers.get(label)
    return label == WALL_CLOCK if defined is None else defined.function == WALL_CLOCK


def _check_implicit(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    implicit = [node.name for node in graph.nodes.values() if node.implicit]
    allowed = workflow.implicit_nodes_allowed
    if not implicit or allowed:
        return
    severity = Severity.ERROR if allowed is False else graph.policy.implicit_nodes
    defined = [*workflow.nodes, *workflow.families]
    near = {name: nearest(name, defined) for name in implicit[:GUESSED_MAX]}
    guesses = [f"{name} (did you mean {found}?)" for name, found in near.items() if found]
    report = findings.error if severity is Severity.ERROR else findings.warning
    report(
        "implicit-tasks",
        f"no [runtime] section for {some(implicit)}"
        + (f"; perhaps misspelt: {some(guesses)}" if guesses else ""),
        "define them under [runtime], or set [scheduler] allow implicit tasks = True; such a "
        "task does nothing",
        _place_of(workflow, implicit[0]),
    )


def _check_unused(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    unused = [name for name in workflow.nodes if name not in graph.nodes]
    if unused:
        findings.note(
            "unused-tasks",
            f"defined, but not in the graph: {some(unused)}",
            "they will not run",
            workflow.nodes[unused[0]].position,
        )


def _place_of(workflow: WorkflowDef, name: str) -> Position:
    for section in workflow.sections:
        for placement in section.placements:
            if placement.node == name:
                return placement.position
    return NOWHERE
