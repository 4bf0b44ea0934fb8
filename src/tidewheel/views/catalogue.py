"""Finds every view of a run by name, with arguments as they come from JSON.

The command line, jobs and REST ask here; the answer is a document for any of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from tidewheel.api.runs import BroadcastSetting, RunBroadcasts, SelectedTasks
from tidewheel.api.views import STATE, VIEWS, no_view
from tidewheel.core.operator.selection import select
from tidewheel.ports.runs import Arguments
from tidewheel.ports.store import Store
from tidewheel.services.workflow_state import state_document
from tidewheel.views import dry_run, graph, log, past, rows, run, run_facts, task, why
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import AskedView, ViewContext, read_text
from tidewheel.views.status_text import words_of


async def look(store: Store, context: ViewContext, name: str, arguments: Arguments) -> Document:
    """Returns a view; the argument `run` says of which run, except for the list of runs."""
    if name == "runs":
        return cast("Document", await run_facts.runs(store, arguments))
    if name == STATE:  # also of a run that is yet to come
        return await state_document(store, context.definition_of, arguments)
    if name not in LOOKS:
        raise no_view(name)
    view = await store.find_run(read_text(arguments, "run"))
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
    """Returns the tasks that a command would concern, before it is given."""
    snapshot = await asked.snapshot(recall=False)
    pool, at_point = snapshot.pool, bool(asked.arguments.get("all_at_point"))
    keys = select(pool, asked.texts("ids"), all_at_point=at_point)
    return {
        "run": asked.run.name,
        "tasks": [
            {"id": snapshot.id_of(key), "state": words_of(pool, key).text} for key in keys
        ],
    }


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
    "broadcasts": _broadcasts,
    "dry-run": dry_run.dry_run,
    "select": _select,
    "submissions": past.submissions,
    "attempts": rows.attempts,
    "critical-path": graph.critical_path,
    "changes": past.changes,
    "past": past.past,
    "past-graph": past.past_graph,
}
assert {*LOOKS, STATE} == set(VIEWS), "every view is shown near and through a server"
