"""What was declared and stated in Python becomes a definition.

Points, settings, families and statements go through the parts that read flow.cylc, so that the
two front ends cannot come to differ; only what a person reads is said in Python's words.
"""

from __future__ import annotations

from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.limit_groups import limit_groups
from tidewheel.sources.flow_cylc.families import ROOT
from tidewheel.sources.python_api.declarations import Declarations
from tidewheel.sources.python_api.ledger import Ledger
from tidewheel.sources.python_api.points import CyclingTexts, ReadOptions, read_points
from tidewheel.sources.python_api.resolving import Resolver
from tidewheel.sources.python_api.statements import StatementReader


def assemble(
    ledger: Ledger,
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
