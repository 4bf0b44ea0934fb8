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
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.workflow_state import state_document
from tidewheel.views.context import AskedView, ViewContext, read_number, read_text
from tidewheel.views.dry_run import dry_run_document
from tidewheel.views.graph import critical_path_document, graph_document
from tidewheel.views.log import log_view
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
LookFunction = Callable[[AskedView], Awaitable[Mapping[str, object]]]


async def look(store: Store, context: ViewContext, name: str, arguments: Arguments) -> Document:
    """Returns a view; the argument `run` says of which run, except for the list of runs."""
    if name == "runs":
        workflow = read_text(arguments, "workflow") or None
        count, before = read_number(arguments, "count") or 100, read_number(arguments, "before")
        return cast("Document", await runs_document(store, workflow, count, before))
    if name == STATE:  # also of a run that is yet to come
        return await state_document(store, context.definition_of, arguments)
    if name not in LOOKS:
        raise no_view(name)
    view = await store.find_run(read_text(arguments, "run"))
    asked = AskedView(store, context, view, arguments)
    return cast("Document", await LOOKS[name](asked))


async def _show(asked: AskedView) -> RunDocument | TaskDocuments:
    store, snapshot, ids = asked.store, await asked.snapshot(), asked.texts("ids")
    if not ids:
        document = run_document(snapshot, await submissions_by_task(store, asked.run))
        document["run"]["kept"] = await kept_commands(store, snapshot.view, snapshot.now)
        return document
    home, keys = asked.context.home, _few_tasks(snapshot, ids)
    return {"tasks": [await task_document(store, snapshot, key, home) for key in keys]}


async def _facts(asked: AskedView) -> RunCreated:
    """Returns the run itself, without reading its definition."""
    return facts_document(asked.run, await asked.store.now())


async def _why(asked: AskedView) -> WhyDocument:
    snapshot = await asked.snapshot()
    keys = _few_tasks(snapshot, asked.texts("ids"))
    return {"tasks": [await why_document(asked.store, snapshot, key) for key in keys]}


def _few_tasks(snapshot: RunSnapshot, ids: list[str]) -> tuple[Key, ...]:
    keys = find_tasks(snapshot, ids)
    if len(keys) > TASKS_MAX:
        raise Refused(
            f"{len(keys)} tasks are meant, and at most {TASKS_MAX} are shown in full; "
            "name fewer, or see them all with tidewheel tree"
        )
    return keys


async def _tree(asked: AskedView) -> RunTree:
    store, view, snapshot = asked.store, asked.run, await asked.snapshot()
    submissions = await submissions_by_task(store, view)
    attempts = await repeated_attempts(store, view, chain.from_iterable(submissions.values()))
    jobs = JobsOfRun(submissions, attempts)
    edges, ids = asked.number("window"), asked.texts("ids")
    if edges is not None:
        near = window(snapshot.pool, edges)
        return tree_document(snapshot, near, jobs, distances=near)
    if ids:
        return tree_document(snapshot, find_tasks(snapshot, ids), jobs)
    known = [key for there in known_tasks(snapshot).values() for key in there]
    points = None if asked.arguments.get("all") else TREE_POINTS
    return tree_document(snapshot, known, jobs, points_max=points)


async def _summary(asked: AskedView) -> RunSummary:
    return summary_document(await asked.snapshot())


async def _tasks(asked: AskedView) -> RunTasks:
    """Reads the cursor before the rows, so that these are at least as new as it."""
    cursor = str(await asked.store.events_head())
    snapshot = await asked.snapshot()
    submissions = await submissions_by_task(asked.store, asked.run)
    return task_rows_document(snapshot, submissions, cursor)


async def _graph(asked: AskedView) -> RunGraph:
    return _drawn(asked, await asked.snapshot())


async def _past_graph(asked: AskedView) -> RunGraph:
    return _drawn(asked, (await asked.then(PastMoment(asked.number("batch")))).snapshot)


def _drawn(asked: AskedView, snapshot: RunSnapshot) -> RunGraph:
    ids, edges = asked.texts("ids"), asked.number("window")
    keys = find_tasks(snapshot, ids) if ids else ()
    return graph_document(snapshot, keys, 1 if edges is None else edges)


async def _dump(asked: AskedView) -> PoolDump:
    return pool_document(await asked.snapshot())


async def _history(asked: AskedView) -> RunHistory:
    return await history_document(asked.store, asked.run, asked.number("count") or 100)


async def _broadcasts(asked: AskedView) -> RunBroadcasts:
    stored = await asked.store.read_run(asked.run.number)
    found = sorted(one for one in stored.broadcasts if one.value is not None)
    return {
        "run": asked.run.name,
        "broadcasts": [cast("BroadcastSetting", one._asdict()) for one in found],
    }


async def _dry_run(asked: AskedView) -> DryRun:
    command = read_command(json.dumps(asked.arguments.get("command")))
    snapshot = await asked.snapshot(recall=False)
    return await dry_run_document(asked.store, asked.context.home, snapshot, command)


async def _select(asked: AskedView) -> SelectedTasks:
    """Returns the tasks that a command would concern, before it is given."""
    snapshot = await asked.snapshot(recall=False)
    pool = snapshot.pool
    at_point = bool(asked.arguments.get("all_at_point"))
    keys = select(pool, asked.texts("ids"), all_at_point=at_point)
    found: list[SelectedTask] = [
        {"id": snapshot.id_of(key), "state": words_of(pool, key).text} for key in keys
    ]
    return {"run": asked.run.name, "tasks": found}


async def _submissions(asked: AskedView) -> RunSubmissions:
    point, name = asked.text("point") or None, asked.text("name") or None
    count = asked.number("count") or 1_000
    return await submissions_document(asked.store, asked.run, point, name, count)


async def _attempts(asked: AskedView) -> RunAttempts:
    return await attempts_document(asked.store, asked.run, asked.number("count") or 1_000)


async def _critical_path(asked: AskedView) -> CriticalPath:
    snapshot, text = await asked.snapshot(), asked.text("id")
    last = find_task(snapshot, text)[0] if text else None
    submissions = await submissions_by_task(asked.store, asked.run)
    return critical_path_document(snapshot, submissions, last)


async def _changes(asked: AskedView) -> RunChanges:
    snapshot = await asked.snapshot(recall=False)
    after, count = asked.number("after") or 0, asked.number("count") or 100
    return await changes_document(asked.store, snapshot, after, count)


async def _past(asked: AskedView) -> RunPast:
    moment = PastMoment(asked.number("batch"), read_moment(asked.text("at")))
    rows_max = asked.number("count") or ROWS_SHOWN
    then, store = await asked.then(moment, rows_max), asked.store
    return await past_document(store, then, await store.run(asked.run.number), rows_max)


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
