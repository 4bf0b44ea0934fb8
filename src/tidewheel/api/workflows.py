"""Says what registered workflows look like: versions, findings, parameters, graphs."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class FindingFacts(TypedDict):
    """Describes something that is wrong or remarkable in a definition, and where."""

    severity: str
    code: str
    message: str
    hint: str
    file: str | None
    line: int | None
    column: int | None


class ParameterFacts(TypedDict):
    """Describes a parameter of a workflow; `provided_by`: stages whose output it may be."""

    name: str
    required: bool
    stages: list[str]
    provided_by: list[str]
    default: NotRequired[Any]


class WorkflowFacts(TypedDict):
    """Describes one version of a registered workflow."""

    name: str
    version: str
    kind: str
    definition: str
    runnable: bool
    parameters: list[ParameterFacts]
    registered_at: str
    registered_by: str


class WorkflowList(TypedDict):
    """Lists registered workflows by name, the highest version first."""

    workflows: list[WorkflowFacts]


class DefinitionFile(TypedDict):
    """Describes a file of a definition."""

    path: str
    size: int
    executable: bool


class WorkflowDocument(WorkflowFacts):
    """Describes one version of a workflow with its findings and files."""

    findings: list[FindingFacts]
    versions: list[str]
    files: list[DefinitionFile]


class RegisteredWorkflow(TypedDict):
    """Describes a definition that was registered; `is_new`: it was not known before."""

    name: str
    version: str
    kind: str
    file: str
    definition: str
    registrable: bool
    runnable: bool
    findings: list[FindingFacts]
    parameters: list[ParameterFacts]
    is_new: bool


class RegisteredWorkflows(TypedDict):
    """Lists what was registered."""

    workflows: list[RegisteredWorkflow]


class WorkflowVerdict(WorkflowFacts):
    """Says whether a version of a workflow can run with some parameters."""

    file: NotRequired[str]
    registrable: bool
    findings: list[FindingFacts]


class ValueToCome(TypedDict):
    """Names a value that an earlier stage hands on."""

    name: str
    stage: str


class RenderedStageFacts(TypedDict):
    """Describes what a stage would execute; `is_whole`: it waits for no value to come."""

    parameters: dict[str, Any]
    args: Any
    compose: NotRequired[Any]
    command: NotRequired[list[str]]
    script: NotRequired[str]
    is_whole: bool
    to_come: list[ValueToCome]


class RenderedWorkflow(TypedDict):
    """Describes what a run would execute, with every value in its place."""

    name: str
    version: str
    kind: str
    text: str
    stages: dict[str, RenderedStageFacts]


class DefinitionTask(TypedDict):
    """Describes a task of a definition's graph."""

    id: str
    name: str
    point: str
    family: str | None


class DefinitionEdge(TypedDict):
    """Describes who waits for whom; `certain`: the child cannot do without."""

    parent: str
    child: str
    outputs: list[str]
    certain: bool
    suicide: bool


class DefinitionGraph(TypedDict):
    """Describes the graph of a version before any run."""

    name: str
    version: str
    kind: str
    workflow: str
    points: list[str]
    tasks: list[DefinitionTask]
    edges: list[DefinitionEdge]
    cut: bool
    findings: list[FindingFacts]
