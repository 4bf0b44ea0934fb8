"""Finds every view of a run by name, with arguments as they come from JSON.

The command line, jobs and REST ask here; the answer is a document for any of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import cast

from tidewheel.api.run_details import DryRun, TriedChange, TriedRun
from tidewheel.api.runs import BroadcastSetting, RunBroadcasts, SelectedTask, SelectedTasks
from tidewheel.api.views import STATE, VIEWS, no_view
from tidewheel.api.workflows import FileDiff
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.command_events import AppliedCommand, events_of
from tidewheel.core.operator.definition import is_same_content
from tidewheel.core.operator.selection import select
from tidewheel.core.operator.verbs import REOPENING, Command, Reload, Stop, read_command
from tidewheel.core.operator.views import CARRY_ON_STATUSES
from tidewheel.core.sched import events
from tidewheel.core.sched.elements import refuse_other_lists, refuse_renamed_elements
from tidewheel.core.sched.events import Effect, Notice, Submit
from tidewheel.core.sched.explain import look_ahead, tried
from tidewheel.core.sched.lifecycle import stop_point
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import NotFound, Refused
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.definitions.diff import run_definitions_diff
from tidewheel.services.definitions.snapshot import check_same_workflow, reread, restore
from tidewheel.services.paths import run_directory
from tidewheel.services.workflow_state import state_document
from tidewheel.views import graph, log, log_search, past, rows, run, run_facts, task, why
from tidewheel.views.run_facts import Document, described, read_text
from tidewheel.views.snapshot import AskedView, RunSnapshot, ViewContext
from tidewheel.views.status_text import words_of
from tidewheel.views.task_lookup import neighbours
from tidewheel.views.why import reason_document


async def look(store: Store, context: ViewContext, name: str, arguments: Arguments) -> Document:
    """Returns the view of this name; the argument `run` says of which run. Raises Refused if
    there is no such view."""
    if name == STATE:  # also of a run that is yet to come
        return await state_document(store, context.definition_of, arguments)
    if name not in LOOKS:
        raise no_view(name)
    view = await store.find_run(text := read_text(arguments, "run"))
    if arguments.get("sees") is not None and view.name != text:
        raise NotFound("run", text)  # that was judged by its whole name, and is gone since
    asked = AskedView(store, context, view, arguments)
    return cast("Document", await LOOKS[name](asked))


async def _broadcasts(asked: AskedView) -> RunBroadcasts:
    stored = await asked.store.read_run(asked.run.number)
    found = sorted(one for one in stored.broadcasts if one.value is not None)
    return {
        "run": asked.run.name,
        "broadcasts": [cast("BroadcastSetting", one._asdict()) for one in found],
    }


async def _select(asked: AskedView) -> SelectedTasks:
    """Returns the tasks that ids mean: those that a command with these ids would concern."""
    snapshot = await asked.snapshot(recall=False)
    at_point = bool(asked.arguments.get("all_at_point"))
    keys = select(snapshot.pool, asked.texts("ids"), all_at_point=at_point)
    return {"run": asked.run.name, "tasks": _selected(snapshot, keys)}


def _selected(snapshot: RunSnapshot, keys: Iterable[Key]) -> list[SelectedTask]:
    pool = snapshot.pool
    return [{"id": snapshot.id_of(key), "state": words_of(pool, key).text} for key in keys]


def _continued(snapshot: RunSnapshot, command: Command) -> TaskPool:
    """Returns the pool that a command finds: what reopens a run finds it going on."""
    view, now, pool = snapshot.view, snapshot.now, snapshot.pool
    is_over = view.status in (*CARRY_ON_STATUSES, "completed") and not view.is_driven(now)
    if not (is_over and isinstance(command, REOPENING)):
        return pool
    return tried(pool, [events.RunContinued(now, stop_point(pool, None))]).pool


# A dry run shows what a command would do, without doing it; a scheduler may be up or down (§8).


async def dry_run(asked: AskedView) -> DryRun:
    """Shows what a command would change at once, and what would run then if no job failed."""
    command = read_command(json.dumps(asked.arguments.get("command")))
    snapshot = await asked.snapshot(recall=False)
    pool, run, id_of = snapshot.pool, snapshot.view.name, snapshot.id_of
    applied = events_of(pool, command, snapshot.now)
    notices: list[str] = []
    changed: list[FileDiff] | None = None
    match command:
        case Reload():
            graph, changed = await _reloaded(asked, snapshot, command)
            refuse_other_lists(pool, graph)
            refuse_renamed_elements(pool, graph)
            applied = AppliedCommand(events=(events.RunReloaded(graph, snapshot.now),))
        case Stop(at_time=text) if applied.by_scheduler:
            notices = [f"the run would stop at this time: {text}"]
        case _ if applied.by_scheduler:
            raise Refused(f"{command.verb} has no dry run")
        case _:
            pass
    found = _continued(snapshot, command)
    start = tried(found, applied.events)
    # Before it is looked ahead: that goes on with the same pool.
    tasks = _selected(snapshot, applied.tasks)
    before = str(pool.run.status) if found is pool else snapshot.view.status
    after = str(start.pool.run.status)
    changes = _changes(snapshot, start.pool, (*applied.tasks, *start.touched))
    seen = look_ahead(pool, start, snapshot.now)
    named = set(applied.tasks)
    then = snapshot._replace(pool=start.pool)  # a reload may bring tasks that were not there
    return {
        "run": run,
        "stages": snapshot.is_of_stages,
        "verb": command.verb,
        "tasks": tasks,
        "status": {"before": before, "after": after},
        "changes": changes,
        "killed": [id_of(one.task) for one in start.effects if isinstance(one, events.KillJob)],
        "polled": [id_of(one.task) for one in start.effects if isinstance(one, events.PollJob)],
        "comes_back": [id_of(key) for key in applied.back],
        "runs": [
            _run_document(then, one, seen.runs[:number], triggered=one.task in named)
            for number, one in enumerate(seen.runs)
        ],
        "waits": [
            {"id": id_of(key), "reasons": [reason_document(run, one) for one in reasons]}
            for key, reasons in seen.waits.items()
        ],
        "notices": [*notices, *_stays(snapshot, applied), *_of_run(start.effects, after)],
        "cut": seen.cut,
        "diff": changed,
    }


def _stays(snapshot: RunSnapshot, applied: AppliedCommand) -> Iterator[str]:
    """Yields what of that which a command names would stay as it is, and why."""
    for key, reason in (*applied.refused.items(), *applied.unchanged.items()):
        yield f"{snapshot.id_of(key)} would be unchanged: {reason}"
    yield from (*applied.left_out.values(), *applied.notices)


def _of_run(effects: Iterable[Effect], status: str) -> Iterator[str]:
    """Yields what would be told of the run at once, apart from its status. Other fields say
    what becomes of tasks."""
    for one in effects:
        if isinstance(one, Notice) and one.task is None and one.event != status:
            yield one.text


def _changes(snapshot: RunSnapshot, after: TaskPool, keys: Iterable[Key]) -> list[TriedChange]:
    found: list[TriedChange] = []
    for key in dict.fromkeys(keys):
        old, new = words_of(snapshot.pool, key), words_of(after, key)
        made = sorted(_outputs(after, key) - _outputs(snapshot.pool, key))
        if old != new or made:
            facts = {"id": snapshot.id_of(key), "before": old.text, "after": new.text}
            found.append(described(TriedChange, new, **facts, made=made))
    return found


def _outputs(pool: TaskPool, key: Key) -> set[str]:
    task, memory = pool.tasks.get(key), pool.recall(*key)
    return {*(() if task is None else task.outputs), *(() if memory is None else memory.made)}


async def _reloaded(
    asked: AskedView, snapshot: RunSnapshot, command: Reload
) -> tuple[Graph, list[FileDiff]]:
    """Returns the graph of the definition with which the run would go on after this reload, and
    how that differs from the one that it has."""
    view, store = snapshot.view, asked.store
    directory = run_directory(asked.context.home, view.name)
    old = await store.definition(view.definition)
    if command.definition:
        new = await store.definition(command.definition)
        check_same_workflow(new, old)
    else:
        new = reread(old, view.options, directory)
    is_new = not is_same_content(new.digest, view.definition)
    graph = restore(new, view.options, directory, is_new=is_new).graph
    told = await asyncio.to_thread(run_definitions_diff, old, new)
    return graph, cast("list[FileDiff]", told["files"])


def _run_document(
    snapshot: RunSnapshot, one: Submit, earlier: Iterable[Submit], *, triggered: bool
) -> TriedRun:
    near, own = set(neighbours(snapshot.pool, one.task)), snapshot.id_of(one.task)
    after = {snapshot.id_of(before.task) for before in earlier if before.task in near} - {own}
    behind = [] if triggered else sorted(after)
    return described(TriedRun, one, id=own, triggered=triggered, after=behind)


LOOKS: dict[str, Callable[[AskedView], Awaitable[Mapping[str, object]]]] = {
    "show": task.show,
    "facts": run_facts.facts,
    "why": why.why,
    "tree": rows.tree,
    "summary": run.summary,
    "tasks": rows.tasks,
    "graph": graph.graph,
    "dump": run.dump,
    "history": past.history,
    "log": log.log_view,
    "log-search": log_search.log_search,
    "log-line": log_search.log_line,
    "job-log-search": log_search.job_log_search,
    "broadcasts": _broadcasts,
    "dry-run": dry_run,
    "select": _select,
    "submissions": past.submissions,
    "attempts": rows.attempts,
    "critical-path": graph.critical_path,
    "changes": past.changes,
    "past": past.past,
    "versions": past.versions,
    "diff": past.diff,
    "past-graph": past.past_graph,
}
assert {*LOOKS, STATE} == set(VIEWS), "every view is shown near and through a server"
