"""``tidewheel validate``: everything that is wrong with a definition, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.definitions import Definition, definition_command
from tidewheel.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidewheel.core.graph.definition import Leaf
    from tidewheel.core.graph.findings import Finding
    from tidewheel.core.graph.graph import Graph
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow

EPILOG = """\b
Examples:
  tidewheel validate my-workflow
  tidewheel validate my-workflow --strict -s MEMBERS=4
"""


@definition_command("validate", epilog=EPILOG)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
def command(definition: Definition, *, strict: bool) -> int:
    """Check a workflow definition: every mistake with its place and what to do about it.

    DIR has a flow.cylc in it; without DIR it is the folder you are in. FILE is a flow.cylc, a
    Python file or a SIP definition (.yaml, .yml, .json, each also with .j2). For a SIP
    definition you also learn whether it can be registered and run. Exit 2 if there is an error.
    """
    from tidewheel.cli.output import say, say_json
    from tidewheel.cli.pages.findings import check_places_here, judged, show_findings
    from tidewheel.core.graph.findings import Findings, Severity, finding_document

    findings = Findings()
    loaded, verdicts = definition.load_judged(findings)
    if loaded.graph is not None:
        check_places_here(loaded.graph, findings)
    judgement = judged(findings, strict=strict)
    valid = loaded.graph is not None and not any(
        one.severity is Severity.ERROR for one in judgement
    )
    if definition.as_json:
        say_json(
            {
                "valid": valid,
                **(verdicts.document(strict=strict) if verdicts else {}),
                "findings": [finding_document(one) for one in judgement],
                "counts": counts(loaded),
            }
        )
        return 0 if valid else ExitCode.REFUSED
    show_findings(judgement, loaded.source, say)
    if findings.left_out:
        say(f"… and {findings.left_out} more")
    size = verdicts.size if verdicts else counts(loaded)
    say(_verdict(size, judgement, valid=valid))
    if verdicts:
        say(verdicts.sentence(strict=strict))
    return 0 if valid else ExitCode.REFUSED


def _verdict(size: Mapping[str, int], findings: Sequence[Finding], *, valid: bool) -> str:
    from tidewheel.cli.pages.findings import COLOURS, counted
    from tidewheel.cli.palette import PALETTE
    from tidewheel.core.graph.findings import Severity
    from tidewheel.core.queue.status import Status

    if not valid:
        found = counted(findings, (Severity.ERROR, Severity.WARNING))
        return click.style("not valid", fg=COLOURS[Severity.ERROR], bold=True) + f": {found}"
    words = ", ".join(_count(number, what) for what, number in size.items())
    remarks = counted(findings, (Severity.WARNING, Severity.NOTE))
    good = click.style("valid", fg=PALETTE[Status.SUCCEEDED].colour, bold=True)
    return f"{good}: {words}" + (f" ({remarks})" if remarks else "")


def _count(number: int, many: str) -> str:
    one = many.removesuffix("ies") + "y" if many.endswith("ies") else many.removesuffix("s")
    return f"{number} {one if number == 1 else many}"


def counts(loaded: LoadedWorkflow) -> dict[str, int]:
    """Returns how large the workflow is."""
    graph, workflow = loaded.graph, loaded.workflow
    if graph is None or workflow is None:
        return {"tasks": 0, "families": 0, "recurrences": 0, "edges": 0}
    return {
        "tasks": len(graph.nodes),
        "families": len(graph.families),
        "recurrences": len({section.sequence for section in workflow.sections}),
        "edges": _edge_count(graph),
    }


def _edge_count(graph: Graph) -> int:
    """A family is as many parents as it has members."""
    from tidewheel.core.graph.definition import Group, leaves

    edges: set[tuple[Leaf, str]] = set()
    total = 0
    for arrow in graph.arrows:
        for leaf in leaves(arrow.condition):
            for target in arrow.targets:
                if (leaf, target) not in edges:
                    edges.add((leaf, target))
                    family = leaf.family if isinstance(leaf, Group) else None
                    total += len(graph.families[family].members) if family else 1
    return total
