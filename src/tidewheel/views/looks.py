"""One door to every view of a run: by name, with arguments as they come from JSON.

The command line, jobs and REST ask here; the answer is a document for any of them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from tidewheel.core.operator.selection import select
from tidewheel.core.operator.verbs import read_command
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.runs import STATE, VIEWS, Arguments, no_view
from tidewheel.ports.store import Store
from tidewheel.services.workflow_state import DefinitionOf, state_document
from tidewheel.views.critical_path import critical_path_document
from tidewheel.views.dry_run import dry_run_document
from tidewheel.views.graph import graph_document
from tidewheel.views.log import (
    TEXT_BYTES_MAX,
    LogWish,
    log_document,
    run_log_document,
)
from tidewheel.views.past import (
    FORGOTTEN_MAX,
    ROWS_SHOWN,
    PastMoment,
    Pasts,
    Then,
    changes_document,
    history_document,
    past_document,
    read_moment,
    submissions_document,
)
from tidewheel.views.rows import attempts_document, repeated_attempts, task_rows_document
from tidewheel.views.run import known_tasks, pool_document, run_document, summary_document
from tidewheel.views.run_facts import (
    Document,
    facts_document,
    kept_commands,
    runs_document,
)
from tidewheel.views.snapshot import RunSnapshot, gather, submissions_by_task
from tidewheel.views.status_text import words_of
from tidewheel.views.task import task_document
from tidewheel.views.task_lookup import TASKS_MAX, find_task, find_tasks, window
from tidewheel.views.tree import JobsOfRun, tree_document
from tidewheel.views.why import why_document

TREE_POINTS = 10  # the newest, unless more are asked for


class Ground(NamedTuple):
    """Where the files of runs are, and how their definitions and their past are read."""

    home: Path
    definition_of: DefinitionOf
    pasts: Pasts

    async def gather(self, store: Store, view: RunView, *, recall: bool = True) -> RunSnapshot:
        """Everything about a run at one moment."""
        return await gather(
            store, view, self.home, recall=recall, definition_of=self.definition_of
        )

    async def then(
        self,
        store: Store,
        view: RunView,
        moment: PastMoment,
        forgotten_max: int = FORGOTTEN_MAX,
    ) -> Then:
        """Everything about a run at an earlier moment."""
        restored = await self.definition_of(view)
        return await self.pasts.then(store, view, restored, moment, forgotten_max)


Look = Callable[[Store, Ground, RunView, Arguments], Awaitable[Document]]


async def look(store: Store, ground: Ground, name: str, arguments: Arguments) -> Document:
    """A view; `run` among the arguments says of which run, except for the list of runs."""
    if name == "runs":
        workflow = _text(arguments, "workflow") or None
        count, before = _number(arguments, "count") or 100, _number(arguments, "before")
        return await runs_document(store, workflow, count, before)
    if name == STATE:  # also of a run that is yet to come
        return await state_document(store, ground.definition_of, arguments)
    if name not in LOOKS:
        raise no_view(name)
    view = await store.find_run(_text(arguments, "run"))
    return await LOOKS[name](store, ground, view, arguments)


async def _show(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    looked = await ground.gather(store, view)
    ids = _texts(arguments, "ids")
    if not ids:
        document = run_document(looked, await submissions_by_task(store, view))
        facts = cast("Document", document["run"])
        facts["kept"] = await kept_commands(store, looked.view, looked.now)
        return document
    keys = find_tasks(looked, ids)
    _refuse_too_many(len(keys))
    return {"tasks": [await task_document(store, looked, key, ground.home) for key in keys]}


async def _facts(store: Store, _: Ground, view: RunView, __: Arguments) -> Document:
    """The run itself, with nothing of its definition read."""
    return facts_document(view, await store.now())


async def _why(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    looked = await ground.gather(store, view)
    keys = find_tasks(looked, _texts(arguments, "ids"))
    _refuse_too_many(len(keys))
    return {"tasks": [await why_document(store, looked, key) for key in keys]}


def _refuse_too_many(count: int) -> None:
    if count > TASKS_MAX:
        raise Refused(
            f"{count} tasks are meant, and at most {TASKS_MAX} are shown in full; "
            "name fewer, or see them all with tidewheel tree"
        )


async def _tree(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    looked = await ground.gather(store, view)
    submissions = await submissions_by_task(store, view)
    attempts = await repeated_attempts(store, view, chain.from_iterable(submissions.values()))
    jobs = JobsOfRun(submissions, attempts)
    edges = _number(arguments, "window")
    if edges is not None:
        near = window(looked.pool, edges)
        return tree_document(looked, near, jobs, distances=near)
    ids = _texts(arguments, "ids")
    if ids:
        return tree_document(looked, find_tasks(looked, ids), jobs)
    known = [key for there in known_tasks(looked).values() for key in there]
    points = None if arguments.get("all") else TREE_POINTS
    return tree_document(looked, known, jobs, points_max=points)


async def _summary(store: Store, ground: Ground, view: RunView, _: Arguments) -> Document:
    return summary_document(await ground.gather(store, view))


async def _tasks(store: Store, ground: Ground, view: RunView, _: Arguments) -> Document:
    """The cursor is read first: the rows are at least as new as it."""
    cursor = str(await store.events_head())
    looked = await ground.gather(store, view)
    return task_rows_document(looked, await submissions_by_task(store, view), cursor)


async def _graph(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    return _drawn(await ground.gather(store, view), arguments)


async def _past_graph(
    store: Store, ground: Ground, view: RunView, arguments: Arguments
) -> Document:
    then = await ground.then(store, view, PastMoment(_number(arguments, "batch")))
    return _drawn(then.looked, arguments)


def _drawn(looked: RunSnapshot, arguments: Arguments) -> Document:
    ids, edges = _texts(arguments, "ids"), _number(arguments, "window")
    keys = find_tasks(looked, ids) if ids else ()
    return graph_document(looked, keys, 1 if edges is None else edges)


async def _dump(store: Store, ground: Ground, view: RunView, _: Arguments) -> Document:
    return pool_document(await ground.gather(store, view))


async def _history(store: Store, _: Ground, view: RunView, arguments: Arguments) -> Document:
    return await history_document(store, view, _number(arguments, "count") or 100)


async def _log(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    wish = LogWish(
        file=_text(arguments, "file") or "out",
        submit=_number(arguments, "submit"),
        attempt=_number(arguments, "attempt"),
        bytes_max=_number(arguments, "bytes_max") or TEXT_BYTES_MAX,
        awaited=bool(arguments.get("awaited")),
    )
    text = _text(arguments, "id")
    if not text:
        return run_log_document(ground.home, view.name, wish)
    looked = await ground.gather(store, view)
    key, submit = find_task(looked, text)
    return await log_document(
        store, looked, key, ground.home, wish._replace(submit=wish.submit or submit)
    )


async def _broadcasts(store: Store, _: Ground, view: RunView, __: Arguments) -> Document:
    stored = await store.read_run(view.number)
    found = sorted(one for one in stored.broadcasts if one.value is not None)
    return {"run": view.name, "broadcasts": [one._asdict() for one in found]}


async def _dry_run(
    store: Store, ground: Ground, view: RunView, arguments: Arguments
) -> Document:
    command = read_command(json.dumps(arguments.get("command")))
    looked = await ground.gather(store, view, recall=False)
    return await dry_run_document(store, ground.home, looked, command)


async def _select(
    store: Store, ground: Ground, view: RunView, arguments: Arguments
) -> Document:
    """What a command would be about, before it is given."""
    looked = await ground.gather(store, view, recall=False)
    ids = _texts(arguments, "ids")
    keys = select(looked.pool, ids, all_at_point=bool(arguments.get("all_at_point")))
    states = [words_of(looked.pool, key).text for key in keys]
    found = [
        {"id": looked.id_of(key), "state": state}
        for key, state in zip(keys, states, strict=True)
    ]
    return {"run": view.name, "tasks": found}


async def _submissions(
    store: Store, _: Ground, view: RunView, arguments: Arguments
) -> Document:
    point, name = (_text(arguments, one) or None for one in ("point", "name"))
    count = _number(arguments, "count") or 1_000
    return await submissions_document(store, view, point, name, count)


async def _attempts(store: Store, _: Ground, view: RunView, arguments: Arguments) -> Document:
    return await attempts_document(store, view, _number(arguments, "count") or 1_000)


async def _critical_path(
    store: Store, ground: Ground, view: RunView, arguments: Arguments
) -> Document:
    looked = await ground.gather(store, view)
    text = _text(arguments, "id")
    last = find_task(looked, text)[0] if text else None
    return critical_path_document(looked, await submissions_by_task(store, view), last)


async def _changes(
    store: Store, ground: Ground, view: RunView, arguments: Arguments
) -> Document:
    looked = await ground.gather(store, view, recall=False)
    after, count = _number(arguments, "after") or 0, _number(arguments, "count") or 100
    return await changes_document(store, looked, after, count)


async def _past(store: Store, ground: Ground, view: RunView, arguments: Arguments) -> Document:
    moment = PastMoment(_number(arguments, "batch"), read_moment(_text(arguments, "at")))
    rows_max = _number(arguments, "count") or ROWS_SHOWN
    then = await ground.then(store, view, moment, rows_max)
    return await past_document(store, then, await store.run(view.number), rows_max)


LOOKS: dict[str, Look] = {
    "show": _show,
    "facts": _facts,
    "why": _why,
    "tree": _tree,
    "summary": _summary,
    "tasks": _tasks,
    "graph": _graph,
    "dump": _dump,
    "history": _history,
    "log": _log,
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


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name) or ""
    if not isinstance(value, str | int):
        raise Refused(f"{name} must be a text, not {json.dumps(value)}")
    return str(value)


def _texts(arguments: Arguments, name: str) -> list[str]:
    value = arguments.get(name) or []
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise Refused(f"{name} must be a list of texts, not {json.dumps(value)}")
    return list(value)


def _number(arguments: Arguments, name: str) -> int | None:
    value = arguments.get(name)
    if value is not None and (
        not isinstance(value, int) or isinstance(value, bool) or value < 0
    ):
        raise Refused(f"{name} must be a number from 0 on, not {json.dumps(value)}")
    return value
