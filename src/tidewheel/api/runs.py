"""Says what a run and its tasks look like outside of the process: REST, `--json`, the page.

Each type is a plain dictionary at run time, so nothing is copied before it is sent. The views
(``api.views``) are made of these; the page's types are generated from them.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Counts = dict[str, int]  # how many tasks have each state; states that none has are left out


# ---- a run ----


class SchedulerProcess(TypedDict):
    """Names the process that drives a run."""

    host: str
    pid: int


class UndoneCounts(TypedDict):
    """Counts tasks that did not run although their run completed: `lost` (a task that they
    need failed) and `skipped` (such as expired or removed)."""

    lost: int
    skipped: int


class RunFacts(TypedDict):
    """Describes a run without its tasks.

    `driven`: a scheduler drives this run now; `offered`: any scheduler may take it; `mode`:
    `live`, or `simulation`, `dummy` or `skip` if its jobs are not real; `parent`: the run of
    which this run is a task.
    """

    number: int
    name: str
    workflow: str
    status: str
    reason: str
    undone: UndoneCounts
    driven: bool
    offered: bool
    scheduler: SchedulerProcess | None
    folder: str
    definition: str
    queue: str
    created_at: str
    updated_at: str
    ended_at: str | None
    mode: NotRequired[str]
    parent: NotRequired[str | None]


class RunWithOptions(RunFacts):
    """Describes a run with its options; `kept`: how many commands wait until it resumes."""

    options: dict[str, Any]
    kept: NotRequired[int]


class RunCreated(TypedDict):
    """Holds a run with its options, without its tasks."""

    run: RunWithOptions


class RunDeleted(TypedDict):
    """Names the run that was deleted."""

    deleted: str


class RunAction(TypedDict):
    """Describes a command as REST takes it: the other fields are sent to the request of this
    `verb`; for the verb `run`, that is the request `carry-on`."""

    verb: str
    ids: NotRequired[list[str]]
    prerequisites: NotRequired[list[str]]
    outputs: NotRequired[list[str]]
    flow: NotRequired[str]
    message: NotRequired[str]


class RunReason(TypedDict):
    """Says why something waits; `until`: when this clears on its own, if that is known.

    `needs_action`: an operator must act, because this does not clear on its own and the graph
    does not allow the task to end this way; `commands` would help.
    """

    text: str
    passes: bool
    needs_action: bool
    until: str | None
    commands: list[str]
    actions: list[RunAction]


class OfRun(TypedDict):
    """Says whether a view shows a run of stages: its tasks are named without a point, and there
    is only one flow."""

    stages: NotRequired[bool]


class RunCause(TypedDict):
    """Describes a task that keeps a run from continuing, or that needs action."""

    id: str
    state: str
    remarks: list[str]
    reasons: list[RunReason]


class ErrorGroup(TypedDict):
    """Describes tasks that failed in the same way: `text` says so in one sentence.

    `name`: a glob or a family that matches these tasks; `end`: how they ended, such as
    `exit 3`; `error`: what the first of these tasks wrote last; `waiting`: how many tasks
    wait for them; `log`: the task whose log to read; `ids`: the ids of all these tasks.
    """

    text: str
    count: int
    name: str
    state: str
    end: str
    error: str
    waiting: int
    log: str
    ids: list[str]
    commands: list[str]
    actions: list[RunAction]


class RunStall(TypedDict):
    """Says since when a run is stalled; `until`: when its stall timer will stop the run,
    if it will."""

    since: str
    until: str | None


class PointProgress(TypedDict):
    """Describes the progress of a run at one point; `done` counts the tasks that succeeded,
    were not taken, or were removed by a suicide trigger (`=> !task`)."""

    point: str
    tasks: int
    done: int
    counts: Counts


class RunBounds(TypedDict):
    """Says where a run begins and ends, and how far it may go at present."""

    initial: str
    start: str
    final: str | None
    stop: str | None
    points_to_stop: int | None
    stop_after: str | None
    hold_after: str | None
    oldest: str | None
    runahead_limit: str | None


class FlowFacts(TypedDict):
    """Describes a flow of a run."""

    flow: int
    text: str
    tasks: int
    until: str | None
    until_tasks: list[str]
    stopped: bool


ActiveTask = TypedDict(
    "ActiveTask",
    {
        "id": str,
        "state": str,
        "remarks": list[str],
        "flows": list[int],
        "submit": int,
        "try": int,
        "submitted_at": str | None,
        "started_at": str | None,
        "worker": str | None,
    },
)


class LostTask(TypedDict):
    """Describes a task that will not run; `chain` says which failure is the cause."""

    id: str
    flow: int
    chain: str


class RunDocument(OfRun):
    """Describes a run: its progress point by point, its active, held and lost tasks, and the
    tasks that keep it from continuing."""

    run: RunWithOptions
    waits: list[RunReason]
    points: list[PointProgress]
    counts: Counts
    bounds: RunBounds
    stall: RunStall | None
    flows: list[FlowFacts]
    active: list[ActiveTask]
    held: list[str]
    causes: list[RunCause]
    groups: list[ErrorGroup]
    lost: list[LostTask]


class PointsSummary(TypedDict):
    """Says how many points of a run have begun (`known`), and how many will follow
    (`to_come`)."""

    known: int
    oldest: str | None
    newest: str | None
    final: str | None
    to_come: int | None


class SummaryFacts(OfRun):
    """Describes the progress of a run; `tasks` counts the tasks of points that have begun,
    `total` the tasks of all points; null: the run has no end, or one too far to count."""

    batch: int
    counts: Counts
    tasks: int
    total: int | None
    done: int
    points: PointsSummary
    stall: RunStall | None
    causes: list[RunCause]
    causes_count: int
    groups: list[ErrorGroup]
    lost: int
    held: int


class RunSummary(SummaryFacts):
    """Describes the progress of a run, and what delays it."""

    run: RunWithOptions


class ListedSummary(SummaryFacts):
    """Describes the progress of a run in a list; `run` is only its name."""

    run: str


class ListedRun(RunFacts):
    """Describes a run in a list; `waits`: what keeps it from beginning."""

    waits: list[str]
    kept: int
    summary: NotRequired[ListedSummary | None]


class RunList(TypedDict):
    """Lists runs, newest first; `next` is the `before` of the next page."""

    runs: list[ListedRun]
    next: int | None
    summaries_left: NotRequired[int]


# ---- many runs, point by point ----


class GridCell(TypedDict):
    """Counts the tasks of a run at one point; `incomplete`: tasks that ended without the
    outputs that the graph requires, and need action. Where tasks have a `late offset`, `late`
    counts the tasks that are late, and `due` is when the next task will be late."""

    point: str
    counts: Counts
    tasks: int
    incomplete: int
    late: NotRequired[int]
    due: NotRequired[str]


class GridCause(TypedDict):
    """Names the first task of a run that needs action, and how it ended; `more`: how many more
    tasks need action."""

    id: str
    state: str
    more: int


class GridRun(RunFacts):
    """Describes a run as a row of the grid.

    `since`: when the run stalled or ended with an error; `earliest`: the first point at which
    something is left to do; `cells`: one for each of the newest points, in the order of points;
    `late` and `due`: as in a cell, but for all points together.
    """

    since: str | None
    stages: bool
    earliest: str | None
    cause: GridCause | None
    cells: list[GridCell]
    late: NotRequired[int]
    due: NotRequired[str]


class RunGrid(TypedDict):
    """Shows the newest run of each workflow and all runs that have not ended; runs that need
    action come first. `counts`: how many runs have each status, without the filters by name and
    status; `left_out`: how many runs match but are not shown."""

    runs: list[GridRun]
    counts: Counts
    left_out: int


# ---- tasks of a run ----


class PooledTask(TypedDict):
    """Describes the state of a task of a run; events list tasks in the same form."""

    id: str
    point: str
    name: str
    state: str
    remarks: list[str]
    flows: list[int]
    submit: int
    in_pool: bool


class TaskOfRun(PooledTask):
    """Describes a task of a run as a row, with the times of its last submission."""

    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    exit_status: int | None
    worker: str | None


class NodeFacts(TypedDict):
    """Describes what is the same for a task at all of its points.

    `branch`: the families that contain the task, outermost first; `shown`: the name that people
    read, in a run of stages.
    """

    shown: NotRequired[str]
    families: list[str]
    branch: list[str]
    title: str
    rank: int


class RunTasks(OfRun):
    """Lists the tasks of a run; events after `cursor` keep the list up to date."""

    run: RunFacts
    batch: int
    cursor: str
    points: list[str]
    points_left_out: int
    nodes: dict[str, NodeFacts]
    tasks: list[TaskOfRun]


class AttemptAsked(TypedDict):
    """Says how much of each resource an attempt asked for."""

    cpu: float
    memory_bytes: int
    gpu: float


class AttemptUsed(TypedDict):
    """Says how much of each resource an attempt used; null: it was not measured."""

    memory_bytes: int | None
    cpu_percent: float | None
    gpu_percent: float | None
    gpu_memory_bytes: int | None


class AttemptOfRun(TypedDict):
    """Describes an attempt with its times and resources.

    `worker` is null until a worker claims the attempt.
    """

    id: str
    point: str
    name: str
    submit: int
    attempt: int
    task: str
    worker: str | None
    queued_at: str
    claimed_at: str | None
    started_at: str | None
    ended_at: str | None
    ended_by: str | None
    exit_status: int | None
    asked: AttemptAsked
    used: AttemptUsed


class RunAttempts(TypedDict):
    """Lists attempts at the jobs of a run, oldest first; `left_out`: attempts at older jobs may
    be missing."""

    run: str
    now: str
    attempts: list[AttemptOfRun]
    left_out: bool


class PoolRow(TypedDict):
    """Describes a task of the pool of a run in one row, for scripts."""

    id: str
    point: str
    name: str
    state: str
    held: bool
    queued: bool
    runahead: bool
    incomplete: bool
    blocked: bool
    flows: list[int]
    submit: int


class PoolDump(TypedDict):
    """Lists the tasks of the pool of a run, sorted by point and name."""

    run: str
    status: str
    reason: str
    tasks: list[PoolRow]


class SelectedTask(TypedDict):
    """Describes a task that an id selects."""

    id: str
    state: str


class SelectedTasks(TypedDict):
    """Lists the tasks that a command with these ids would affect."""

    run: str
    tasks: list[SelectedTask]


class BroadcastSetting(TypedDict):
    """Describes a setting that a broadcast changed."""

    point: str
    namespace: str
    setting: str
    value: str | None


class RunBroadcasts(TypedDict):
    """Lists the settings of a run that were changed by broadcasts."""

    run: str
    broadcasts: list[BroadcastSetting]


class TaskProgress(TypedDict):
    """Says which state a task has, and which outputs it made."""

    id: str
    point: str
    name: str
    state: str
    flows: list[int]
    outputs: dict[str, str]


class WorkflowProgress(TypedDict):
    """Says which tasks of a run have reached a state, for xtriggers of other runs; `reason`:
    why no task could be read."""

    run: str
    reason: str
    selector: str
    tasks: list[TaskProgress]


# ---- events ----


class SnapshotRun(TypedDict):
    """Describes the run whose state a snapshot holds."""

    run: str
    number: int
    workflow: str
    status: str
    reason: str
    batch: int


class BatchEvent(SnapshotRun):
    """Describes a batch of a run; `tasks` is null if there are too many to list."""

    at: str
    changed: NotRequired[int]
    tasks: NotRequired[list[PooledTask] | None]


TaskStepEvent = TypedDict(
    "TaskStepEvent",
    {
        "id": str,
        "queue": str,
        "run": str | None,
        "point": str | None,
        "name": str | None,
        "submit": int | None,
        "signal": str | None,
        "from": str | None,
        "to": str,
        "attempt": int,
        "worker": str | None,
        "progress": float | None,
        "exit_status": int | None,
        "at": str,
    },
)


class OpenTask(TypedDict):
    """Describes a task of a queue that has not ended."""

    id: str
    queue: str
    name: str | None
    status: str
    attempt: int
    worker: str | None
    progress: float


class EventSnapshot(TypedDict):
    """Describes the state from which a client begins to follow events.

    `id` is the cursor from which events continue.
    """

    id: str
    run: SnapshotRun | None
    pool: list[PooledTask]
    tasks: list[OpenTask]
    cut: bool
