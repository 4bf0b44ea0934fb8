"""Lists every view of a run once: its name, where a server has it, its query and its answer.

The routes of the server, their documentation, the remote store and ``views.catalogue``, which
has the function of each view, follow from this table.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import msgspec

from tidewheel.api import log_lines, run_details, runs
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple

STATE = "workflow-state"
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Batch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Edges = Annotated[int, msgspec.Meta(ge=0, le=100)]
LongCount = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
TEXT_LENGTH_MAX = 500  # of what is searched for in logs
CURSOR_LENGTH_MAX = 150
_Searched = Annotated[str, msgspec.Meta(max_length=TEXT_LENGTH_MAX)]
_Cursor = Annotated[str, msgspec.Meta(max_length=CURSOR_LENGTH_MAX)]
_PastCount = Annotated[int, msgspec.Meta(ge=1, le=20_000)]


def not_there_yet(reason: str, task: str) -> dict[str, Any]:
    """Returns the state of a task (`POINT/NAME:SELECTOR`) of a run that is yet to come."""
    return {"run": "", "reason": reason, "selector": task.partition(":")[2], "tasks": []}


class ViewQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Holds the parameters of a view's URL; `arguments` has them by the view's own names."""

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


def view_query(**given: tuple[Any, Any]) -> type[ViewQuery]:
    """Returns the type of a query: its parameters, each with its type and default."""
    listed = [(name, *one) for name, one in given.items()]
    return cast("type[ViewQuery]", msgspec.defstruct("Query", listed, bases=(ViewQuery,)))


_Filter = Annotated[str, msgspec.Meta(max_length=200)]  # as core/queue/filters.py reads it
# Of summaries that the server has yet to work out, 50 come with each request.
RUNS_QUERY = view_query(
    workflow=(str | None, None),
    matching=(_Filter, ""),
    limit=(Count, 100),
    before=(Number | None, None),
    nested=(bool, False),  # also runs that are tasks of a run
    summary=(bool, False),
)
# A name is a filter as well; statuses stand between commas.
GRID_QUERY = view_query(
    name=(_Filter, ""),
    status=(Annotated[str, msgspec.Meta(max_length=200)], ""),
    limit=(Count, 200),
    points=(Annotated[int, msgspec.Meta(ge=1, le=100)], 30),
)
# Tasks by ids between commas: 2/model, globs, families.
_IDS: tuple[Any, Any] = (str, "")
_TASKS_QUERY = view_query(ids=_IDS)
# The window `n` shows all within so many edges of the pool.
_TREE = {"ids": _IDS, "n": (Edges | None, None), "all": (bool, False)}
TREE_QUERY = view_query(**_TREE)


# What is searched for in logs: `match` says if a * in the text stands for any letters of a line
# ("glob") or for itself ("text"); of some level, or a higher one.
_SEARCH: dict[str, tuple[Any, Any]] = {
    "text": (_Searched, ""),
    "match": (Literal["text", "glob"], "text"),
    "case": (bool, False),  # letters of either case are the same, unless it says so
    "level": (Literal["", *log_lines.LEVEL_WORDS], ""),
    "limit": (Count, 100),  # lines of one step
    "cursor": (_Cursor, ""),  # of the step before
}
# Which log: of the run, or of a job (the latest submission and attempt).
_LOG: dict[str, tuple[Any, Any]] = {
    "id": (str, ""),
    "file": (str, "out"),
    "submit": (Number | None, None),
    "attempt": (Number | None, None),
}


# Of a task of a queue, whose path names the file.
TASK_LOG_QUERY = view_query(**_SEARCH, attempt=(Number | None, None))


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
        (runs.RunDocument, run_details.TaskDocuments),
        _TASKS_QUERY,
        below="",
    ),
    View("facts", "A run without its tasks: status and options.", runs.RunCreated),
    View(
        "why",
        "Why these tasks do not run.",
        run_details.WhyDocument,
        _TASKS_QUERY,
        needs_ids=True,
    ),
    View("tree", "A run as a tree: points, families, tasks.", run_details.RunTree, TREE_QUERY),
    View("summary", "The progress of a run, and what delays it.", runs.RunSummary),
    View(
        "tasks",
        "The tasks of the newest points as rows; their events continue from `cursor`.",
        runs.RunTasks,
    ),
    View(
        "graph",
        "The tasks and edges near the tasks of the pool; with `since` only what has changed.",
        run_details.GraphAnswer,
        # `since`, the `version` of an earlier answer, asks for differences.
        view_query(**_TREE, since=(Annotated[str, msgspec.Meta(max_length=100)], "")),
        is_plain=False,
    ),
    View("dump", "Every task of the pool, one by one.", runs.PoolDump),
    View(
        "history",
        "The commands that were given to the run, newest first.",
        run_details.RunHistory,
        view_query(limit=(Count, 100)),
    ),
    View(
        "log",
        "The end of a log of a run or of a job, or the part that `offset` and `limit` select.",
        run_details.LogDocument,
        is_plain=False,
    ),
    View(
        "log-search",
        "Search a log for lines that contain a text, or have at least a level. Each request "
        "searches one part of the file; its `cursor` continues the search.",
        log_lines.LogHits,
        view_query(**_SEARCH, **_LOG),
        below="/log/search",
    ),
    View(
        "log-line",
        "The byte at which a line of a log begins, or the line that a byte is in. Each request "
        "reads one part of the file; the `cursor` of its answer continues.",
        log_lines.LogLinePlace,
        view_query(
            line=(Batch | None, None), offset=(Batch | None, None), cursor=(_Cursor, ""), **_LOG
        ),
        below="/log/line",
    ),
    View(
        "job-log-search",
        "Search the logs of all jobs for lines that contain a text, newest job first. Each "
        "request searches one part; its `cursor` continues the search.",
        log_lines.JobLogHits,
        # `task` is a glob for names, or for POINT/NAME; `file` out or err, or both.
        view_query(
            **_SEARCH,
            task=(_Searched, ""),
            file=(Literal["", "out", "err"], ""),
        ),
        below="/logs/search",
    ),
    View("broadcasts", "Settings that were changed by broadcasts.", runs.RunBroadcasts),
    View(
        "dry-run",
        "What a command would change, and which tasks would run or wait then; the command is "
        "not carried out.",
        run_details.DryRun,
        is_plain=False,
    ),
    View(
        "select",
        "The tasks that the given ids select.",
        runs.SelectedTasks,
        # With `all_at_point` globs take those that are not in the pool, too.
        view_query(ids=_IDS, all_at_point=(bool, False)),
        needs_ids=True,
    ),
    View(
        "submissions",
        "The newest jobs: when each was queued, began and ended, and which worker ran it.",
        run_details.RunSubmissions,
        view_query(point=(str, ""), name=(str, ""), limit=(LongCount, 1_000)),
    ),
    View(
        "attempts",
        "Attempts at the newest jobs: when each waited and ran, what it asked for and used.",
        runs.RunAttempts,
        view_query(limit=(LongCount, 1_000)),  # the newest submissions
    ),
    View(
        "critical-path",
        "The chain of jobs that made the run take as long as it took.",
        run_details.CriticalPath,
        view_query(id=(str, "")),  # its end; without an id, it is what ended last
    ),
    View(
        "changes",
        "The changes of tasks, oldest first; what a scheduler stored together is one batch.",
        run_details.RunChanges,
        view_query(after=(Batch, 0), limit=(Count, 100)),
    ),
    View(
        "past",
        "The run as it was at an earlier time, and what happened then.",
        run_details.RunPast,
        # Behind a batch, or at a time; of more than `limit` tasks those of the newest points.
        view_query(batch=(Batch | None, None), at=(str, ""), limit=(_PastCount, 2_000)),
    ),
    View(
        "versions",
        "The definitions that a run had, newest first, and the mistakes found in the newest.",
        run_details.RunVersions,
        below="/definition/versions",
    ),
    View(
        "diff",
        "The lines in which two definitions of a run differ; by default the last two.",
        run_details.RunDiff,
        view_query(version=(Number | None, None), against=(Number | None, None)),
        below="/definition/diff",
    ),
    View(
        STATE,
        "Which tasks have reached a state, for the xtrigger workflow_state of other runs.",
        runs.WorkflowProgress,
        view_query(  # POINT/NAME:SELECTOR, as `cylc workflow-state` takes it
            id=(str, ""),
            offset=(str, ""),
            flow=(Number | None, None),
            triggers=(bool, False),
            messages=(bool, False),
        ),
    ),
    View(
        "past-graph",
        "The graph as it was after a batch of changes, near the tasks of the pool or of `ids`.",
        run_details.RunGraph,
        view_query(ids=_IDS, batch=(Batch | None, None), n=(Edges, 1)),
        below="/past/graph",
    ),
)
VIEWS = MappingProxyType({one.name: one for one in _ROWS})


def no_view(name: str) -> Refused:
    """Returns the refusal of an unknown view, with the names of all views; a store and a server
    use the same words."""
    return Refused(f"there is no view {name!r}; there are {', '.join(('runs', *VIEWS))}")
