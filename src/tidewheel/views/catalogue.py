"""Finds every view of a run by name, with arguments as they come from JSON.

The command line, jobs and REST ask here; the answer is a document for any of them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import cast

from tidewheel.api.run_details import (
    CriticalPath,
    DryRun,
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
    BroadcastSetting,
    PoolDump,
    RunAttempts,
    RunBroadcasts,
    RunCreated,
    RunDocument,
    RunSummary,
    RunTasks,
    SelectedTask,
    SelectedTasks,
)
from tidewheel.api.views import STATE, VIEWS, no_view
from tidewheel.core.operator.selection import select
from tidewheel.core.operator.verbs import read_command
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.workflow_state import state_document
from tidewheel.views.context import ViewContext, read_number, read_text, read_texts
from tidewheel.views.dry_run import dry_run_document
from tidewheel.views.graph import critical_path_document, graph_document
from tidewheel.views.log import (
    log_view,
)
from tidewheel.views.past import (
    ROWS_SHOWN,
    PastMoment,
    changes_document,
    history_document,
    past_document,
    read_moment,
    submissions_document,
)
from tidewheel.views.rows import (
    JobsOfRun,
    attempts_document,
    repeated_attempts,
    task_rows_document,
    tree_document,
)
from tidewheel.views.run import known_tasks, pool_document, run_document, summary_document
from tidewheel.views.run_facts import (
    Document,
    facts_document,
    kept_commands,
    runs_document,
)
from tidewheel.views.snapshot import RunSnapshot, submissions_by_task
from tidewheel.views.status_text import words_of
from tidewheel.views.task import task_document
from tidewheel.views.task_lookup import TASKS_MAX, find_task, find_tasks, window
from tidewheel.views.why import why_document

TREE_POINTS = 10  # the newest, unless more are asked for
LookFunction = Callable[
    [Store, ViewContext, RunView, Arguments], Awaitable[Mapping[str, object]]
]


async def look(store: Store, context: ViewContext, name: str, arguments: Arguments) -> Document:
    """A view; `run` among the arguments says of which run, except for the list of runs."""
    if name == "runs":
        workflow = read_text(arguments, "workflow") or None
        count, before = read_number(arguments, "count") or 100, read_number(arguments, "before")
        return cast("Document", await runs_document(store, workflow, count, before))
    if name == STATE:  # also of a run that is yet to come
        return await state_document(store, context.definition_of, arguments)
    if name not in LOOKS:
        raise no_view(name)
    view = await store.find_run(read_text(arguments, "run"))
    return cast("Document", await LOOKS[name](store, context, view, arguments))


async def _show(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunDocument | TaskDocuments:
    snapshot = await context.gather(store, view)
    ids = read_texts(arguments, "ids")
    if not ids:
        document = run_document(snapshot, await submissions_by_task(store, view))
        document["run"]["kept"] = await kept_commands(store, snapshot.view, snapshot.now)
        return document
    keys = find_tasks(snapshot, ids)
    _refuse_too_many(len(keys))
    return {"tasks": [await task_document(store, snapshot, key, context.home) for key in keys]}


async def _facts(store: Store, _: ViewContext, view: RunView, __: Arguments) -> RunCreated:
    """The run itself, with nothing of its definition read."""
    return facts_document(view, await store.now())


async def _why(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> WhyDocument:
    snapshot = await context.gather(store, view)
    keys = find_tasks(snapshot, read_texts(arguments, "ids"))
    _refuse_too_many(len(keys))
    return {"tasks": [await why_document(store, snapshot, key) for key in keys]}


def _refuse_too_many(count: int) -> None:
    if count > TASKS_MAX:
        raise Refused(
            f"{count} tasks are meant, and at most {TASKS_MAX} are shown in full; "
            "name fewer, or see them all with tidewheel tree"
        )


async def _tree(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunTree:
    snapshot = await context.gather(store, view)
    submissions = await submissions_by_task(store, view)
    attempts = await repeated_attempts(store, view, chain.from_iterable(submissions.values()))
    jobs = JobsOfRun(submissions, attempts)
    edges = read_number(arguments, "window")
    if edges is not None:
        near = window(snapshot.pool, edges)
        return tree_document(snapshot, near, jobs, distances=near)
    ids = read_texts(arguments, "ids")
    if ids:
        return tree_document(snapshot, find_tasks(snapshot, ids), jobs)
    known = [key for there in known_tasks(snapshot).values() for key in there]
    points = None if arguments.get("all") else TREE_POINTS
    return tree_document(snapshot, known, jobs, points_max=points)


async def _summary(
    store: Store, context: ViewContext, view: RunView, _: Arguments
) -> RunSummary:
    return summary_document(await context.gather(store, view))


async def _tasks(store: Store, context: ViewContext, view: RunView, _: Arguments) -> RunTasks:
    """The cursor is read first: the rows are at least as new as it."""
    cursor = str(await store.events_head())
    snapshot = await context.gather(store, view)
    return task_rows_document(snapshot, await submissions_by_task(store, view), cursor)


async def _graph(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunGraph:
    return _drawn(await context.gather(store, view), arguments)


async def _past_graph(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunGraph:
    then = await context.then(store, view, PastMoment(read_number(arguments, "batch")))
    return _drawn(then.snapshot, arguments)


def _drawn(snapshot: RunSnapshot, arguments: Arguments) -> RunGraph:
    ids, edges = read_texts(arguments, "ids"), read_number(arguments, "window")
    keys = find_tasks(snapshot, ids) if ids else ()
    return graph_document(snapshot, keys, 1 if edges is None else edges)


async def _dump(store: Store, context: ViewContext, view: RunView, _: Arguments) -> PoolDump:
    return pool_document(await context.gather(store, view))


async def _history(
    store: Store, _: ViewContext, view: RunView, arguments: Arguments
) -> RunHistory:
    return await history_document(store, view, read_number(arguments, "count") or 100)


async def _broadcasts(
    store: Store, _: ViewContext, view: RunView, __: Arguments
) -> RunBroadcasts:
    stored = await store.read_run(view.number)
    found = sorted(one for one in stored.broadcasts if one.value is not None)
    return {
        "run": view.name,
        "broadcasts": [cast("BroadcastSetting", one._asdict()) for one in found],
    }


async def _dry_run(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> DryRun:
    command = read_command(json.dumps(arguments.get("command")))
    snapshot = await context.gather(store, view, recall=False)
    return await dry_run_document(store, context.home, snapshot, command)


async def _select(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> SelectedTasks:
    """Returns the tasks that a command would be about, before it is given."""
    snapshot = await context.gather(store, view, recall=False)
    ids = read_texts(arguments, "ids")
    keys = select(snapshot.pool, ids, all_at_point=bool(arguments.get("all_at_point")))
    states = [words_of(snapshot.pool, key).text for key in keys]
    found: list[SelectedTask] = [
        {"id": snapshot.id_of(key), "state": state}
        for key, state in zip(keys, states, strict=True)
    ]
    return {"run": view.name, "tasks": found}


async def _submissions(
    store: Store, _: ViewContext, view: RunView, arguments: Arguments
) -> RunSubmissions:
    point, name = (read_text(arguments, one) or None for one in ("point", "name"))
    count = read_number(arguments, "count") or 1_000
    return await submissions_document(store, view, point, name, count)


async def _attempts(
    store: Store, _: ViewContext, view: RunView, arguments: Arguments
) -> RunAttempts:
    return await attempts_document(store, view, read_number(arguments, "count") or 1_000)


async def _critical_path(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> CriticalPath:
    snapshot = await context.gather(store, view)
    text = read_text(arguments, "id")
    last = find_task(snapshot, text)[0] if text else None
    return critical_path_document(snapshot, await submissions_by_task(store, view), last)


async def _changes(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunChanges:
    snapshot = await context.gather(store, view, recall=False)
    after, count = read_number(arguments, "after") or 0, read_number(arguments, "count") or 100
    return await changes_document(store, snapshot, after, count)


async def _past(
    store: Store, context: ViewContext, view: RunView, arguments: Arguments
) -> RunPast:
    moment = PastMoment(
        read_number(arguments, "batch"), read_moment(read_text(arguments, "at"))
    )
    rows_max = read_number(arguments, "count") or ROWS_SHOWN
    then = await context.then(store, view, moment, rows_max)
    return await past_document(store, then, await store.run(view.number), rows_max)


LOOKS: dict[str, LookFunction] = {
    "show": _show,
    "facts": _facts,
    "why": _why,
    "tree": _tree,
    "summary": _summary,
    "tasks": _tasks,
    "graph": _graph,
    "dump": _dump,
    "history": _history,
    "log": log_view,
    "broadcasts": _broadcasts,
    "dry-run": _dry_run,
    "select": _select,
    "submissions": _submissions,
    "attempts": _attempts,
    "critical-path": _critical_path,
    "changes": _changes,
    "past": _past,
    "past-graph": _past_graph,
}
assert {*LOOKS, STATE} == set(VIEWS), "every view is shown near and through a server"
