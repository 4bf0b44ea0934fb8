"""Obeys commands: those about the pool become events of the core, the others are done here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidewheel.core.graph.outputs import STANDARD, unknown_output_text
from tidewheel.core.operator import verbs
from tidewheel.core.operator.command_events import answer_of, events_of
from tidewheel.core.operator.definition import (
    PYTHON,
    SIP,
    StoredDefinition,
    is_same_content,
    sealed,
)
from tidewheel.core.operator.requests import CommandAnswer, CommandGiven, StoredBroadcast
from tidewheel.core.operator.run_log import command_line, command_name
from tidewheel.core.operator.selection import job_of
from tidewheel.core.operator.verbs import Command, read_command
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import Effect
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.quantities import parse_duration
from tidewheel.scheduler.broadcasts import rows_of
from tidewheel.scheduler.job_events import job_message
from tidewheel.scheduler.run_files import RunFolderUnusable
from tidewheel.scheduler.timers import STOP_AT_TIME, timer_key
from tidewheel.services.definitions.snapshot import reread, restore

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine


async def answer_command(engine: RunEngine, given: CommandGiven, store: Store) -> CommandAnswer:
    """Obeys a command and returns its answer, or why it is refused and nothing was changed."""
    try:
        return await _obey(engine, given, store)
    except Refused as refused:
        return CommandAnswer(given.number, refused=str(refused))


async def _obey(engine: RunEngine, given: CommandGiven, store: Store) -> CommandAnswer:
    ended_at = engine.run.ended_at
    command = read_command(given.body)
    is_kept = isinstance(command, verbs.REOPENING)
    if ended_at is not None and given.at <= ended_at and not is_kept:
        raise Refused(f"{engine.run.name} ended before it could obey; ask again if need be")
    name, log = command_name(command), engine.batch.log
    try:
        answer = await _answer(engine, command, given.at, store)
    except Refused as refused:
        log.append(command_line(name, str(refused)))
        raise
    log.append(command_line(name))
    engine.batch.steps += 1
    return CommandAnswer(given.number, json.dumps(answer))


async def _answer(
    engine: RunEngine, command: Command, at: Instant, store: Store
) -> dict[str, object]:
    applied = events_of(engine.pool, command, at)
    if applied.by_scheduler:
        return await _obey_itself(engine, command, at, store)
    effects: list[Effect] = []
    for event in applied.events:
        effects += engine.step(event)
    if isinstance(command, verbs.Stop) and command.reason:
        engine.aborted = command.reason
    return answer_of(engine.pool, applied, effects)


async def _obey_itself(
    engine: RunEngine, command: Command, at: Instant, store: Store
) -> dict[str, object]:
    match command:
        case verbs.Reload(definition=digest):
            return await _reload(engine, digest, at, store)
        case verbs.Broadcast():
            return _broadcast(engine, command)
        case verbs.Message():
            return _message(engine, command, at)
        case verbs.ExtTrigger(message=message, trigger_id=trigger_id):
            engine.xtriggers.hear(message, trigger_id)
            return {"message": message}
        case verbs.Stop(at_time=text):
            when = _time(text, at)
            engine.timers.set(timer_key(None, STOP_AT_TIME), when)
            return {"stops_at": when}
        case _:
            raise AssertionError(command)


async def _reload(
    engine: RunEngine, digest: str, at: Instant, store: Store
) -> dict[str, object]:
    """Reloads the definition: takes all of the new one, or nothing of it."""
    old = engine.definition
    options, directory = engine.run.options, engine.files.directory
    if digest:
        new = await store.definition(digest)
    else:
        new = reread(old, options, directory)
        await store.save_definition(new)
    if old.kind != new.kind and SIP in (old.kind, new.kind):
        # The request and the values of a run fit only one of the two kinds.
        raise Refused(
            f"not reloaded: this run has a definition of kind {old.kind}, this one is of "
            f"kind {new.kind}; begin another run"
        )
    if new.is_trusted and not old.is_trusted:
        new = await _distrusted(new, store)
    changed = not is_same_content(new.digest, old.digest)
    restored = restore(new, options, directory, is_new=changed)
    engine.check_places(restored.graph)
    try:
        engine.reload(new, restored, at)
    except RunFolderUnusable as error:  # the run goes on as it is, instead of waiting
        raise Refused(f"not reloaded: {error}") from error
    engine.batch.definition = new.digest
    return {"definition": new.digest, "changed": changed}


async def _distrusted(new: StoredDefinition, store: Store) -> StoredDefinition:
    """Saves the definition without its mark of trust, and returns it.

    Files that strangers brought stay in the run's folder, where a later reload would find them
    among its own.
    """
    if new.kind == PYTHON:
        raise Refused(
            "not reloaded: this run has a definition that came over the network, and one "
            "in Python would execute whatever lies in its folder; begin another run"
        )
    kept = sealed(new)
    await store.save_definition(kept)
    return kept


def _broadcast(engine: RunEngine, command: verbs.Broadcast) -> dict[str, object]:
    there = engine.settings.broadcasts
    stages = engine.restored.stages
    containers = frozenset() if stages is None else stages.in_containers
    rows: list[StoredBroadcast] = rows_of(command, there, engine.graph, containers)
    before = {one[:3]: one.value for one in there}
    engine.broadcast(rows)
    return {
        "broadcasts": [
            {
                "point": row.point,
                "namespace": row.namespace,
                "setting": row.setting,
                "value": row.value,
                "was": before.get(row[:3]),
            }
            for row in rows
        ]
    }


def _message(engine: RunEngine, command: verbs.Message, at: Instant) -> dict[str, object]:
    key, submit = job_of(engine.pool, command.id)
    task = engine.pool.tasks.get(key)
    if task is None or not task.is_active or submit not in (None, task.submit):
        raise Refused(f"{command.id} has no active job that could have said that")
    declared = [own for own, _ in engine.settings.node(key).outputs]
    if command.output and command.output not in (*declared, *STANDARD):
        raise Refused(unknown_output_text(key[1], command.output, declared))
    for text in command.texts or ("",):
        job_message(engine, (key, task.submit), text, command.output or None, at)
    return {"task": engine.text(key), "submit": task.submit}


def _time(text: str, now: Instant) -> Instant:
    """Reads a time as in 2030-01-01T00:00Z, or how long from now as in 2h or PT10M."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return Instant(now + parse_duration(text))
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return Instant(aware.timestamp())
