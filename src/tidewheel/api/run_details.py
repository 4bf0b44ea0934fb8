"""Says what one task, the tree, the graph and the history of a run look like.

Each type is a plain dictionary at run time, as in ``api.runs``.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from tidewheel.api import runs
from tidewheel.api.workflows import FileDiff, FindingFacts

EdgeState = Literal["true", "open", "lost", "not taken"]


# ---- one task in full ----


class FamilyMember(TypedDict):
    """Describes a member of a family that a task waits for."""

    id: str
    made: bool
    state: str


class AtomFacts(TypedDict):
    """Gives the state of an output that an arrow names."""

    output: str
    state: EdgeState
    by_hand: bool
    before_start: bool


class PrerequisiteAtom(AtomFacts):
    """Describes one part of a prerequisite: an output, and the task that makes it."""

    id: str
    text: str
    parent: str
    members: list[FamilyMember]


class PrerequisiteArrow(TypedDict):
    """Describes a prerequisite of a task: what one arrow of the graph makes it wait for."""

    text: str
    satisfied: bool
    by_hand: bool
    atoms: list[PrerequisiteAtom]


class XtriggerFacts(TypedDict):
    """Describes an xtrigger or a timer of a task."""

    label: str
    call: str
    satisfied: bool
    by_hand: bool
    at: str | None


class OutputFacts(TypedDict):
    """Describes an output of a task: whether it was made, in which flows and by whom."""

    output: str
    message: str
    made: bool
    by_hand: bool
    by: str
    at: str | None
    flows: list[int]
    required: bool


class VerdictFacts(TypedDict):
    """Says why a task is over in a flow: it ended, could no longer run, or was removed."""

    flow: int
    verdict: str
    text: str


class JobVariable(TypedDict):
    """Describes a variable that a job gets from its definition.

    `broadcast`: a broadcast has set it.
    """

    name: str
    value: str
    broadcast: bool


class AttemptOfTask(TypedDict):
    """Describes an attempt at a submission, with its logs on this host."""

    attempt: int
    worker: str
    claimed_at: str | None
    started_at: str | None
    ended_at: str | None
    ended_by: str | None
    exit_status: int | None
    error: str | None
    logs: list[str]


class JobMessage(TypedDict):
    """Describes a message that a job sent."""

    at: str
    output: str | None
    text: str


class SubmissionOfTask(TypedDict):
    """Describes a submission with its attempts, messages and the values that it returned."""

    submit: int
    task: str
    status: str
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    exit_status: int | None
    error: str | None
    worker: str | None
    folder: str
    attempts: list[AttemptOfTask]
    messages: list[JobMessage]
    values: Any


TaskFacts = TypedDict(
    "TaskFacts",
    {
        "run": str,
        "id": str,
        "name": str,
        "point": str,
        "title": str,
        "description": str,
        "families": list[str],
        "state": str,
        "remarks": list[str],
        "flows": list[int],
        "in_pool": bool,
        "submits": int,
        "try": int,
        "completion": str,
        "children": list[str],
    },
)


class NestedRun(TypedDict):
    """Describes the run of another workflow that a task started instead of a job."""

    submit: int
    run: str
    workflow: str
    status: str
    reason: str


class TaskDocument(TaskFacts):
    """Shows one task of a run in full; `why`: why it does not run, or that it is
    running. `values`: the values that later tasks get, returned by the task or set by an
    operator; null: there are no values."""

    values: Any
    prerequisites: list[PrerequisiteArrow]
    suicide: list[PrerequisiteArrow]
    xtriggers: list[XtriggerFacts]
    outputs: list[OutputFacts]
    verdicts: list[VerdictFacts]
    environment: list[JobVariable]
    submissions: list[SubmissionOfTask]
    nested: NotRequired[list[NestedRun]]
    why: list[runs.RunReason]


class TaskDocuments(runs.OfRun):
    """Shows some tasks of a run in full."""

    tasks: list[TaskDocument]


class TaskReasons(TypedDict):
    """Says why one task does not run."""

    run: str
    id: str
    state: str
    remarks: list[str]
    flows: list[int]
    reasons: list[runs.RunReason]


class WhyDocument(runs.OfRun):
    """Says of some tasks why they do not run."""

    tasks: list[TaskReasons]


# ---- the tree ----


class AttemptInTree(TypedDict):
    """Says when an attempt began, and when and how it ended."""

    attempt: int
    worker: str | None
    started_at: str | None
    ended_at: str | None
    ended_by: str | None
    exit_status: int | None


class SubmissionInTree(TypedDict):
    """Says when a submission of a task began, and when and how it ended; its attempts are
    listed if there were several."""

    submit: int
    status: str
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    exit_status: int | None
    attempts: list[AttemptInTree]


class TreeBranch(TypedDict):
    """Describes a family (`children`) or a task (everything else) in the tree of a run.

    `shown`: the name that people read, in a run of stages.
    """

    name: str
    shown: NotRequired[str]
    family: bool
    children: NotRequired[list[TreeBranch]]
    id: NotRequired[str]
    state: NotRequired[str]
    remarks: NotRequired[list[str]]
    flows: NotRequired[list[int]]
    distance: NotRequired[int | None]
    submissions: NotRequired[list[SubmissionInTree]]


class TreePoint(TypedDict):
    """Describes a point of the tree of a run: how many tasks it has, how many of them are done,
    and (`children`) the tasks that are known so far."""

    point: str
    tasks: int
    done: int
    counts: runs.Counts
    children: list[TreeBranch]


class RunTree(runs.OfRun):
    """Describes a run as a tree; `left_out` counts points that are older than those shown."""

    run: str
    status: str
    undone: runs.UndoneCounts
    mode: NotRequired[str]
    stall: runs.RunStall | None
    left_out: int
    points: list[TreePoint]


# ---- the graph ----


class GraphTask(runs.PooledTask):
    """Describes a task of a graph; `distance` counts the edges between the task and the tasks
    around which the graph was asked for."""

    distance: int


class EdgeFacts(TypedDict):
    """Describes an edge by the task where it ends, and whether it is satisfied."""

    to: str
    output: str
    state: EdgeState
    by_hand: bool
    suicide: bool
    arrow: int
    alternative: bool


_EdgeStart = TypedDict("_EdgeStart", {"from": str})


class GraphEdge(_EdgeStart, EdgeFacts):
    """Describes an edge between two tasks, or between a task and a group."""


class GraphGroup(TypedDict):
    """Describes a large family on the left of an arrow, drawn as one group."""

    id: str
    point: str
    family: str
    output: str
    every: bool
    members: int
    made: int


class RunGraph(runs.OfRun):
    """Describes the graph of a run around some tasks."""

    run: str
    status: str
    batch: int
    points: list[str]
    families: dict[str, list[str]]
    tasks: list[GraphTask]
    groups: list[GraphGroup]
    edges: list[GraphEdge]
    cut: bool


GoneEdge = TypedDict("GoneEdge", {"from": str, "to": str, "output": str, "suicide": bool})


class GraphGone(TypedDict):
    """Names what is no longer in a graph."""

    tasks: list[str]
    groups: list[str]
    edges: list[GoneEdge]


class GraphAnswer(RunGraph):
    """Holds the whole graph, or only what has changed since its version `since`."""

    version: str
    since: str | None
    gone: GraphGone


# ---- history ----


class CommandRecord(TypedDict):
    """Describes a command that was given to a run."""

    number: int
    at: str
    who: str
    verb: str
    arguments: dict[str, Any]
    answered_at: str | None
    refused: str | None
    answer: Any


class RunHistory(TypedDict):
    """Lists the commands that were given to a run, newest first."""

    run: str
    commands: list[CommandRecord]


class SubmissionOfRun(TypedDict):
    """Describes a submission of a task: its times, its last attempt, and how it ended."""

    id: str
    submit: int
    attempt: int
    task: str
    status: str
    queued_at: str
    started_at: str | None
    ended_at: str | None
    exit_status: int | None
    error: str | None
    worker: str | None


class RunSubmissions(TypedDict):
    """Lists the submissions of a run, newest first."""

    run: str
    submissions: list[SubmissionOfRun]


class CriticalStep(TypedDict):
    """Describes one submission on the critical path."""

    id: str
    submit: int
    task: str
    status: str
    queued_at: str
    started_at: str | None
    ended_at: str | None


class CriticalPath(TypedDict):
    """Describes the chain of submissions that made a run take as long as it took."""

    run: str
    seconds: float | None
    steps: list[CriticalStep]


class TaskInBatch(TypedDict):
    """Describes a task as it was after a batch of changes; `submit` is null for a task that
    left the pool."""

    id: str
    state: str
    remarks: list[str]
    flows: list[int]
    in_pool: bool
    submit: int | None


class BatchFacts(TypedDict):
    """Describes a batch, the changes that a scheduler stored together; `status` is the status
    of the run, if it changed."""

    batch: int
    at: str
    status: str | None
    tasks: list[TaskInBatch]
    left_pool: list[str]


class RunChanges(TypedDict):
    """Lists batches of changes, oldest first; send `next` as `after` to get the next page."""

    run: str
    batches: list[BatchFacts]
    next: int | None


class TaskChange(TypedDict):
    """Says how a task changed in a batch of changes."""

    id: str
    before: str
    state: str
    remarks: list[str]
    made: list[str]


class RunPast(runs.OfRun):
    """Describes a run as it was after a batch, the changes that a scheduler stored together."""

    run: runs.RunFacts
    batch: int
    points: list[str]
    points_left_out: int
    nodes: dict[str, runs.NodeFacts]
    tasks: list[runs.TaskOfRun]
    at: str
    status: str
    last_batch: int
    changed: list[TaskChange]
    around: list[BatchFacts]
    commands: list[CommandRecord]


class LogContent(TypedDict):
    """Holds the end of a log; `cut`: the log has more text before it."""

    path: str
    files: list[str]
    text: str
    cut: bool


class LogDocument(LogContent):
    """Shows the end of a log; `id`, `submit` and `attempt` are null for the log of the
    run."""

    run: str
    id: str | None
    submit: int | None
    attempt: int | None


# ---- what a command would do ----


class StatusChange(TypedDict):
    """Describes the status of a run before a command and after it."""

    before: str
    after: str


class TriedChange(TypedDict):
    """Says how a command would change a task at once."""

    id: str
    flows: list[int]
    before: str
    after: str
    in_pool: bool
    made: list[str]


class TriedRun(TypedDict):
    """Describes a task that would run after the command; `after` names the tasks that would
    have to end before it."""

    id: str
    submit: int
    flows: list[int]
    triggered: bool
    after: list[str]


class TriedWait(TypedDict):
    """Describes a task that would wait after the command."""

    id: str
    reasons: list[runs.RunReason]


class DoneAtOnce(TypedDict):
    """Says what a command would do at once."""

    run: str
    verb: str
    tasks: list[runs.SelectedTask]
    status: StatusChange
    changes: list[TriedChange]
    killed: list[str]
    polled: list[str]
    comes_back: list[str]


class RunVersion(TypedDict):
    """Describes a definition that a run had; `who` is the person who reloaded it, or, for the
    first definition, the person who began the run, if known."""

    version: int
    definition: str
    at: str
    who: str


class RunVersions(TypedDict):
    """Lists the definitions that a run had, the present one first, and the findings in the
    present one; a finding whose file is "" is about the text that the templates yielded."""

    run: str
    kind: str
    versions: list[RunVersion]
    findings: list[FindingFacts]


class RunDiff(TypedDict):
    """Says in which files two definitions of a run differ, from `version` to `against`; the
    path "" is the text that the templates yielded."""

    run: str
    version: int
    against: int
    files: list[FileDiff]


class DryRun(DoneAtOnce, runs.OfRun):
    """Says what a command would do, and what would run then if every job succeeded; `diff` is
    how a `reload` would change the definition, and null for every other command; `notices`
    are sentences about immediate effects on the run, apart from its status."""

    runs: list[TriedRun]
    waits: list[TriedWait]
    notices: list[str]
    cut: bool
    diff: NotRequired[list[FileDiff] | None]
