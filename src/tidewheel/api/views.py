"""Lists every view of a run once: its name, where a server has it, its query and its answer.

The routes of the server, their documentation, the remote store and ``views.catalogue``, which
has the function of each view, follow from this table.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec

from tidewheel.api.run_details import (
    CriticalPath,
    DryRun,
    GraphAnswer,
    LogDocument,
    RunChanges,
    RunGraph,
    RunHistory,
    RunPast,
    RunSubmissions,
    RunTree,
    TaskDocuments,
    WhyDocument,
)
from tidewheel.api.runs import (
    PoolDump,
    RunAttempts,
    RunBroadcasts,
    RunCreated,
    RunDocument,
    RunSummary,
    RunTasks,
    SelectedTasks,
    WorkflowProgress,
)
from tidewheel.errors import Refused

STATE = "workflow-state"
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Batch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Edges = Annotated[int, msgspec.Meta(ge=0, le=100)]
LongCount = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class ViewQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Holds the parameters of a URL; a view calls some of them by other names."""

    def arguments(self) -> dict[str, Any]:
        """Returns the parameters as the view takes them."""
        said = msgspec.structs.asdict(self)
        if "limit" in said:
            said["count"] = said.pop("limit")
        if "n" in said:
            said["window"] = said.pop("n")
        if "ids" in said:
            said["ids"] = [text for one in said["ids"].split(",") if (text := one.strip())]
        return said


class RunsQuery(ViewQuery):
    """Selects runs.

    Of summaries that the server has yet to work out, 50 come with each request.
    """

    workflow: str | None = None
    limit: Count = 100
    before: Number | None = None
    summary: bool = False


class TasksQuery(ViewQuery):
    """Selects tasks by ids between commas: 2/model, globs, families."""

    ids: str = ""


class TreeQuery(TasksQuery):
    """Selects tasks for a tree; the window `n` shows all within so many edges of the pool."""

    n: Edges | None = None
    all: bool = False


class GraphQuery(TreeQuery):
    """Selects a graph; `since`, the `version` of an earlier answer, asks for differences."""

    since: Annotated[str, msgspec.Meta(max_length=100)] = ""


class SelectQuery(TasksQuery):
    """Selects tasks; with `all_at_point` globs take those that are not in the pool, too."""

    all_at_point: bool = False


class RunHistoryQuery(ViewQuery):
    """Limits how many commands are listed."""

    limit: Count = 100


class StateQuery(ViewQuery):
    """Selects tasks by POINT/NAME:SELECTOR, as `cylc workflow-state` does."""

    id: str = ""
    offset: str = ""
    flow: Number | None = None
    triggers: bool = False
    messages: bool = False


class SubmissionsQuery(ViewQuery):
    """Selects submissions: of all tasks, of a point, of a name."""

    point: str = ""
    name: str = ""
    limit: LongCount = 1_000


class AttemptsQuery(ViewQuery):
    """Limits how many of the newest submissions are looked at."""

    limit: LongCount = 1_000


class PathQuery(ViewQuery):
    """Names the end of the path; without an id, it is what ended last."""

    id: str = ""


class ChangesQuery(ViewQuery):
    """Selects the batches behind one; an answer's `next` is the `after` of the next request."""

    after: Batch = 0
    limit: Count = 100


class PastQuery(ViewQuery):
    """Says which past is asked for: behind a batch, or at a time; without either, now.

    If there are more than `limit` tasks, those of the newest points are shown.
    """

    batch: Batch | None = None
    at: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 2_000


class PastGraphQuery(TasksQuery):
    """Selects the graph behind a batch: n edges around the tasks live then, or `ids`."""

    batch: Batch | None = None
    n: Edges = 1


class View(NamedTuple):
    """Describes one view: one row of the table."""

    name: str
    says: str
    answer: object  # a type, or several: one of them
    query: type[ViewQuery] | None = None
    below: str | None = None  # the path below /runs/RUN, unless it is that of the name
    needs_ids: bool = False
    is_plain: bool = True  # False: its route does more than to show it, and stands by itself

    @property
    def path(self) -> str:
        return f"/{self.name}" if self.below is None else self.below


_ROWS = (
    View(
        "show",
        "A run, or some of its tasks in full.",
        (RunDocument, TaskDocuments),
        TasksQuery,
        below="",
    ),
    View("facts", "A run without its tasks: status and options.", RunCreated),
    View("why", "Why these tasks do not run.", WhyDocument, TasksQuery, needs_ids=True),
    View("tree", "A run as a tree: points, families, tasks.", RunTree, TreeQuery),
    View("summary", "How far a run is, and what keeps it back.", RunSummary),
    View("tasks", "Every task as a row; cursor: where events go on.", RunTasks),
    View(
        "graph",
        "Tasks and edges around the live tasks; with since= what has changed of them.",
        GraphAnswer,
        GraphQuery,
        is_plain=False,
    ),
    View("dump", "Every task of the pool, one by one.", PoolDump),
    View("history", "What was asked of the run, newest first.", RunHistory, RunHistoryQuery),
    View(
        "log",
        "The log of a run or of a job: its end, or a part by offset and limit.",
        LogDocument,
        is_plain=False,
    ),
    View("broadcasts", "Settings that were changed by hand.", RunBroadcasts),
    View(
        "dry-run",
        "What a command would change, run and let wait; nothing is done.",
        DryRun,
        is_plain=False,
    ),
    View("select", "The tasks that some ids mean.", SelectedTasks, SelectQuery, needs_ids=True),
    View(
        "submissions",
        "Every job: when it was queued, began and ended, and who ran it.",
        RunSubmissions,
        SubmissionsQuery,
    ),
    View(
        "attempts",
        "Every attempt: when it waited and ran, what it asked for and what it used.",
        RunAttempts,
        AttemptsQuery,
    ),
    View(
        "critical-path",
        "The chain of jobs that made the run take as long as it took.",
        CriticalPath,
        PathQuery,
    ),
    View(
        "changes",
        "What happened to tasks, batch by batch, oldest first.",
        RunChanges,
        ChangesQuery,
    ),
    View("past", "The run as it was, and what happened then.", RunPast, PastQuery),
    View(
        STATE,
        "Which tasks have got so far, as other workflows ask.",
        WorkflowProgress,
        StateQuery,
    ),
    View(
        "past-graph",
        "Tasks and edges around those that were live behind a batch.",
        RunGraph,
        PastGraphQuery,
        below="/past/graph",
    ),
)
VIEWS = MappingProxyType({one.name: one for one in _ROWS})


def no_view(name: str) -> Refused:
    """Says which views there are, near and through a server in the same words."""
    return Refused(f"there is no view {name!r}; there are {', '.join(('runs', *VIEWS))}")
