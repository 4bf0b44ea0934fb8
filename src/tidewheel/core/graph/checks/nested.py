"""Finds mistakes in tasks that are runs of another workflow."""

from __future__ import annotations

from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph

FOLDER = "./"  # so begins the name of a folder of the definition


def is_folder(workflow: str) -> bool:
    """Says whether a setting `workflow` names a folder of the definition itself."""
    return workflow in (".", "..") or workflow.startswith((FOLDER, "../", "/", "~"))


def folder_problem(workflow: str) -> str:
    """Returns why this names no folder below that of the definition; "" if it does."""
    parts = workflow.removeprefix(FOLDER).removesuffix("/").split("/")
    if parts in ([""], ["."]):
        return "it would be a run of itself, which would never end; name a folder below"
    if any(part in ("", ".", "..") or part.startswith("~") for part in parts):
        return "name a folder below that of this definition, such as ./post/"
    return ""


def check_nested(workflow: WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports tasks that would be runs of what cannot be run, and those that say twice what
    they do."""
    for name, known in graph.nodes.items():
        node = known.definition
        if not node.workflow:
            continue
        if is_folder(node.workflow) and (problem := folder_problem(node.workflow)):
            seen = f"{name} cannot be a run of {node.workflow}"
            findings.error("bad-workflow", seen, problem, node.position)
        if node.workflow == workflow.name or node.workflow.startswith(f"{workflow.name}/"):
            findings.warning(
                "runs-itself",
                f"{name} is a run of {node.workflow}, which looks like this workflow",
                "a run in itself fails when it is too deep; name another workflow",
                node.position,
            )
        if node.scripts.main:
            findings.error(
                "two-works",
                f"{name} has both a script and workflow = {node.workflow}",
                "leave one of them out: a run of a workflow has no script",
                node.position,
            )
