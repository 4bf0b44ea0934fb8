"""What was declared and stated in Python becomes a definition.

Points, settings, families and statements go through the parts that read flow.cylc, so that the
two front ends cannot come to differ; only what a person reads is said in Python's words.
"""

from __future__ import annotations

from tidewheel.core.graph.checks.names import gives_something_to_do
from tidewheel.core.graph.definition import WorkflowDef, limit_groups
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.suggestions import Lookalikes
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.python_api.assembly import (
    CyclingTexts,
    ReadOptions,
    Resolver,
    StatementReader,
    read_points,
)
from tidewheel.formats.python_api.declarations import Declarations
from tidewheel.formats.python_api.terms import StatementLog


def assemble(
    ledger: StatementLog,
    declared: Declarations,
    texts: CyclingTexts,
    options: ReadOptions,
    findings: Findings,
) -> WorkflowDef | None:
    """The definition as far as it is understood; None if it has no usable points."""
    resolver = Resolver(declared, ledger.functions, findings)
    nodes = resolver.tasks()
    read = read_points(texts, ledger.sections, options, findings)
    if read is None:
        return None
    reader, cycling = read
    statements = StatementReader(nodes, resolver.members, reader, cycling, findings)
    errors_before = findings.error_count
    sections, marks = statements.read(ledger.sections)
    return WorkflowDef(
        name=ledger.workflow,
        cycling=cycling,
        sections=sections,
        nodes=nodes,
        families=resolver.families(),
        marks=marks,
        xtriggers=dict(declared.xtriggers),
        limit_groups=limit_groups(
            {name: (one.limit, one.members) for name, one in declared.limits.items()},
            resolver.members,
        ),
        special=resolver.special_nodes(reader),
        root=resolver.node(ROOT),
        policy=options.policy,
        is_whole=findings.error_count == errors_before,
    )


def check_idle(definition: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Report tasks of the graph that would succeed without doing anything.

    In Python a name is a task as soon as it is said, so that a misspelt one is empty. Where
    no task does anything, the workflow is a sketch of a graph.
    """
    working = [name for name, node in definition.nodes.items() if gives_something_to_do(node)]
    if not working:
        return
    lookalikes = Lookalikes((*working, *definition.families))
    for name, node in definition.nodes.items():
        if name not in graph.nodes or gives_something_to_do(node):
            continue
        meant = lookalikes.of(name)
        guess = f"did you mean {meant}? Or " if meant else ""
        findings.error(
            "idle-task",
            f"{name} has no function and no script: it would succeed without doing anything",
            f"{guess}give it one, or say that it only joins others: "
            f'flow.task("{name}", run_mode="skip")',
            node.position,
        )
