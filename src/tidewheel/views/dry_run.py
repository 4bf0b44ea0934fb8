"""Shows what a command would do, without doing it; a scheduler may be up or down (§8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidewheel.api.run_details import DoneAtOnce, DryRun, TriedChange, TriedRun
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.command_events import AppliedCommand, events_of
from tidewheel.core.operator.definition import is_same_content
from tidewheel.core.operator.verbs import Command, Reload, Stop
from tidewheel.core.sched import events
from tidewheel.core.sched.events import KillJob, PollJob, Submit
from tidewheel.core.sched.explain import Tried, look_ahead, tried
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import reread, restore
from tidewheel.services.paths import run_directory
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of
from tidewheel.views.task_lookup import neighbours
from tidewheel.views.why import reason_document


async def dry_run_document(
    store: Store, home: Path, snapshot: RunSnapshot, command: Command
) -> DryRun:
    """Returns what would change at once, and what would then run if every job succeeded."""
    applied = events_of(snapshot.pool, command, snapshot.now)
    notices: list[str] = []
    match command:
        case Reload():
            event = events.RunReloaded(
                await _graph(store, home, snapshot, command), snapshot.now
            )
            applied = AppliedCommand(events=(event,))
        case Stop(at_time=text) if applied.by_scheduler:
            notices = [f"it would stop at this time: {text}"]
        case _ if applied.by_scheduler:
            raise Refused(f"{command.verb} cannot be tried without doing it")
        case _:
            pass
    start = tried(snapshot.pool, applied.events)
    # Before it is looked ahead: that goes on with the same pool.
    at_once = _at_once(snapshot, command, applied, start)
    seen = look_ahead(snapshot.pool, start, snapshot.now)
    named = set(applied.tasks)
    then = snapshot._replace(pool=start.pool)  # a reload may bring tasks that were not there
    return {
        **at_once,
        "runs": [
            _run_document(then, one, seen.runs[:number], triggered=one.task in named)
            for number, one in enumerate(seen.runs)
        ],
        "waits": [
            {
                "id": snapshot.id_of(key),
                "reasons": [reason_document(snapshot.view.name, one) for one in reasons],
            }
            for key, reasons in seen.waits.items()
        ],
        "notices": [*notices, *(one.text for one in seen.notices)],
        "cut": seen.cut,
    }


def _at_once(
    snapshot: RunSnapshot, command: Command, applied: AppliedCommand, start: Tried
) -> DoneAtOnce:
    pool, keys = snapshot.pool, dict.fromkeys((*applied.tasks, *start.touched))
    killed = [one.task for one in start.effects if isinstance(one, KillJob)]
    polled = [one.task for one in start.effects if isinstance(one, PollJob)]
    return {
        "run": snapshot.view.name,
        "verb": command.verb,
        "tasks": [
            {"id": snapshot.id_of(key), "state": words_of(pool, key).text}
            for key in applied.tasks
        ],
        "status": {"before": str(pool.run.status), "after": str(start.pool.run.status)},
        "changes": _changes(snapshot, start.pool, list(keys)),
        "killed": [snapshot.id_of(key) for key in killed],
        "polled": [snapshot.id_of(key) for key in polled],
        "comes_back": [snapshot.id_of(key) for key in applied.back],
    }


def _changes(snapshot: RunSnapshot, after: TaskPool, keys: Sequence[Key]) -> list[TriedChange]:
    found: list[TriedChange] = []
    for key in keys:
        old, new = words_of(snapshot.pool, key), words_of(after, key)
        made = sorted(_outputs(after, key) - _outputs(snapshot.pool, key))
        if old != new or made:
            found.append(
                {
                    "id": snapshot.id_of(key),
                    "flows": sorted(new.flows),
                    "before": old.text,
                    "after": new.text,
                    "in_pool": new.pooled,
                    "made": made,
                }
            )
    return found


def _outputs(pool: TaskPool, key: Key) -> set[str]:
    task, memory = pool.tasks.get(key), pool.recall(*key)
    return {*(() if task is None else task.outputs), *(() if memory is None else memory.made)}


async def _graph(store: Store, home: Path, snapshot: RunSnapshot, command: Reload) -> Graph:
    """Returns the graph of the definition that the run would go on with."""
    view = snapshot.view
    directory = run_directory(home, view.name)
    if command.definition:
        new = await store.definition(command.definition)
    else:
        old = await store.definition(view.definition)
        new = reread(old, view.options, directory)
    is_new = not is_same_content(new.digest, view.definition)
    return restore(new, view.options, directory, is_new=is_new).graph


def _run_document(
    snapshot: RunSnapshot, one: Submit, earlier: tuple[Submit, ...], *, triggered: bool
) -> TriedRun:
    near = set(neighbours(snapshot.pool, one.task))
    after = {snapshot.id_of(before.task) for before in earlier if before.task in near}
    return {
        "id": snapshot.id_of(one.task),
        "submit": one.submit,
        "flows": sorted(one.flows),
        "triggered": triggered,
        "after": [] if triggered else sorted(after - {snapshot.id_of(one.task)}),
    }
