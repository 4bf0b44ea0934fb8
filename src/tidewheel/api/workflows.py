"""Says what registered workflows look like: versions, findings, parameters, graphs."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class FindingFacts(TypedDict):
    """Describes a mistake in a definition, or a remark about it, and where it is."""

    severity: str
    code: str
    message: str
    hint: str
    file: str | None
    line: int | None
    column: int | None


class ParameterFacts(TypedDict):
    """Describes a parameter of a workflow; `provided_by`: stages that may return its
    value."""

    name: str
    required: bool
    stages: list[str]
    provided_by: list[str]
    default: NotRequired[Any]


class SourceFacts(TypedDict):
    """Says where the files of a workflow were fetched from, according to the person who
    registered it."""

    url: str
    ref: str
    commit: str
    folder: str
    sha256: str


class WorkflowFacts(TypedDict):
    """Describes one version of a registered workflow; `source` is null for files that came
    from a folder."""

    name: str
    version: str
    kind: str
    definition: str
    runnable: bool
    parameters: list[ParameterFacts]
    registered_at: str
    registered_by: str
    source: SourceFacts | None


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
    """Describes a definition that was registered; `is_new`: it was not registered before."""

    name: str
    version: str
    kind: str
    file: str
    definition: str
    registrable: bool
    runnable: bool
    findings: list[FindingFacts]
    parameters: list[ParameterFacts]
    source: SourceFacts | None
    is_new: bool


class RegisteredWorkflows(TypedDict):
    """Lists the definitions that were registered."""

    workflows: list[RegisteredWorkflow]


class WorkflowVerdict(WorkflowFacts):
    """Says whether a version of a workflow can run with the given parameters."""

    file: NotRequired[str]
    registrable: bool
    findings: list[FindingFacts]


class ValueToCome(TypedDict):
    """Names a value that an earlier stage will return."""

    name: str
    stage: str


class RenderedStageFacts(TypedDict):
    """Describes what a stage would execute; `is_whole`: all values are known, none comes from
    an earlier stage."""

    parameters: dict[str, Any]
    args: Any
    compose: NotRequired[Any]
    command: NotRequired[list[str]]
    script: NotRequired[str]
    is_whole: bool
    to_come: list[ValueToCome]


class RenderedWorkflow(TypedDict):
    """Describes what a run would execute, with the values of the parameters inserted."""

    name: str
    version: str
    kind: str
    text: str
    stages: dict[str, RenderedStageFacts]


class ResourceFacts(TypedDict):
    """Describes a resource that a stage asks for, under the keys of the definition; `value`: a
    number of cores for cpu, a number of bytes for memory and buffer."""

    type: str
    number: NotRequired[int]
    flavour: NotRequired[str]
    exclusive: NotRequired[bool]
    value: NotRequired[float]
    label: NotRequired[str]


class DependencyFacts(TypedDict):
    """Describes what a stage waits for: another stage, or a buffer object."""

    type: str
    value: str
    condition: str


class ElementsFacts(TypedDict):
    """Describes the list over which a stage is mapped: the stage runs once for each element.

    A known list has `count` and its first `items`; otherwise it is the value of `parameter`, or
    the `output` of a `stage`. If there is a `stage` without an `output`, this stage has the
    same elements as that stage.
    """

    max: int
    count: NotRequired[int]
    items: NotRequired[list[Any]]
    parameter: NotRequired[str]
    stage: NotRequired[str]
    output: NotRequired[str]


class StageParameter(TypedDict):
    """Describes a parameter that a stage declares: its `value` if that is known, or the stage
    that will return it (`provided_by`); `required`: a request must give its value."""

    name: str
    required: bool
    provided_by: str | None
    value: NotRequired[Any]


class DiffLine(TypedDict):
    """Holds a line of a comparison; `kind` is same, added or removed, `old` and `new` are the
    numbers of the line in the old and in the new text."""

    kind: str
    old: int | None
    new: int | None
    text: str


class FileDiff(TypedDict):
    """Says how a file differs: added, removed or changed; `hunks` is null if the file is not
    text, or too long; `executable` is there if the file became executable, or no longer is."""

    path: str
    change: str
    hunks: list[list[DiffLine]] | None
    executable: NotRequired[bool]


class WorkflowDiff(TypedDict):
    """Says in which files two versions of a workflow differ, from `version` to `against`."""

    name: str
    version: str
    against: str
    files: list[FileDiff]


class StageFile(DefinitionFile):
    """Describes a file of a stage; `text` is null if the file is not text, or too long."""

    text: str | None


class StageDocument(TypedDict):
    """Describes a stage of a definition. `when` is false if it is switched off; `executes` is
    the path of its compose file, command or script; `allow`: what its worker must allow;
    `compose_2`: keys of its compose file that only docker compose 2 knows; `externals`: what
    must exist on the engine before it runs, in words."""

    id: str
    version: str
    type: str
    timeout_seconds: float | None
    resources: list[ResourceFacts]
    dependencies: list[DependencyFacts]
    when: bool
    for_each: ElementsFacts | None
    until: list[str]
    executes: str | None
    allow: list[str]
    compose_2: list[str]
    externals: list[str]
    parameters: list[StageParameter]
    outputs: list[str]
    files: list[StageFile]


class WorkflowStages(TypedDict):
    """Describes each stage of a version, as it would be in a run with the given parameters."""

    name: str
    version: str
    kind: str
    stages: list[StageDocument]
    findings: list[FindingFacts]


class DefinitionTask(TypedDict):
    """Describes a task of a definition's graph."""

    id: str
    name: str
    point: str
    family: str | None


class DefinitionEdge(TypedDict):
    """Says that the task `child` waits for the task `parent`; `certain`: the child cannot run
    before the parent has made one of the `outputs`."""

    parent: str
    child: str
    outputs: list[str]
    certain: bool
    suicide: bool


class RunRange(TypedDict):
    """Says how many `points` a run with the given options would have, and how often each of its
    `tasks` would run. If the run has no end, `last` is null and nothing is counted; `cut`:
    there is more than was counted."""

    first: str
    last: str | None
    points: int
    tasks: dict[str, int]
    cut: bool


class DefinitionGraph(TypedDict):
    """Describes the graph of a version before any run; `range` is only there if the request has
    `options`."""

    name: str
    version: str
    kind: str
    workflow: str
    points: list[str]
    tasks: list[DefinitionTask]
    edges: list[DefinitionEdge]
    cut: bool
    range: NotRequired[RunRange]
    findings: list[FindingFacts]
