"""Obeys commands: those about the pool become events, the others are done here."""

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
from tidewheel.core.sched.effects import Effect
from tidewheel.errors import Refused
from tidewheel.ports.runs import RunStore
from tidewheel.quantities import parse_duration
from tidewheel.scheduler.broadcasts import rows_of
from tidewheel.scheduler.run_engine import timer_key
from tidewheel.scheduler.run_files import RunFolderUnusable
from tidewheel.scheduler.timers import STOP_AT_TIME
from tidewheel.services.definitions.snapshot import reread, restore

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import Stage


class Commands:
    """What operators and jobs want of a run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    async def obey(self, stage: Stage, given: CommandGiven) -> CommandAnswer:
        """Refused if it cannot be done; then nothing was changed."""
        drive = stage.drive
        ended_at = drive.run.ended_at
        command = read_command(given.body)
        is_kept = isinstance(command, verbs.REOPENING)
        if ended_at is not None and given.at <= ended_at and not is_kept:
            raise Refused(f"{drive.run.name} ended before it could obey; ask again if need be")
        name, log = command_name(command), drive.work.log
        try:
            answer = await self._answer(stage, command, given.at)
        except Refused as refused:
            log.append(command_line(name, str(refused)))
            raise
        log.append(command_line(name))
        drive.work.steps += 1
        return CommandAnswer(given.number, json.dumps(answer))

    async def _answer(self, stage: Stage, command: Command, at: Instant) -> dict[str, object]:
        drive = stage.drive
        applied = events_of(drive.pool, command, at)
        if applied.by_scheduler:
            return await self._obey_itself(stage, command, at)
        effects: list[Effect] = []
        for event in applied.events:
            effects += drive.step(event)
        if isinstance(command, verbs.Stop) and command.reason:
            drive.aborted = command.reason
        return answer_of(drive.pool, applied, effects)

    async def _obey_itself(
        self, stage: Stage, command: Command, at: Instant
    ) -> dict[str, object]:
        match command:
            case verbs.Reload(definition=digest):
                return await self._reload(stage, digest, at)
            case verbs.Broadcast():
                return _broadcast(stage, command)
            case verbs.Message():
                return _message(stage, command, at)
            case verbs.ExtTrigger(message=message, trigger_id=trigger_id):
                stage.xtriggers.hear(message, trigger_id)
                return {"message": message}
            case verbs.Stop(at_time=text):
                when = _time(text, at)
                stage.drive.agenda.set(timer_key(None, STOP_AT_TIME), when)
                return {"stops_at": when}
            case _:
                raise AssertionError(command)

    async def _reload(self, stage: Stage, digest: str, at: Instant) -> dict[str, object]:
        """All of the new definition, or nothing of it."""
        old = stage.definition
        if digest:
            new = await self._store.definition(digest)
        else:
            new = reread(old, stage.drive.run.options, stage.files.directory)
            await self._store.save_definition(new)
        if old.kind != new.kind and SIP in (old.kind, new.kind):
            # What a run has of its request and of values is for one of the two alone.
            raise Refused(
                f"not reloaded: this run has a definition of kind {old.kind}, this one is of "
                f"kind {new.kind}; begin another run"
            )
        if new.is_trusted and not old.is_trusted:
            new = await self._distrusted(new)
        options, directory = stage.drive.run.options, stage.files.directory
        changed = not is_same_content(new.digest, old.digest)
        restored = restore(new, options, directory, is_new=changed)
        stage.check_places(restored.graph)
        try:
            stage.reload(new, restored, at)
        except RunFolderUnusable as error:  # the run goes on as it is, instead of waiting
            raise Refused(f"not reloaded: {error}") from error
        stage.drive.work.definition = new.digest
        return {"definition": new.digest, "changed": changed}

    async def _distrusted(self, new: StoredDefinition) -> StoredDefinition:
        """The same without the mark: files that strangers brought stay in the run's folder,
        where a later reload would find them among its own."""
        if new.kind == PYTHON:
            raise Refused(
                "not reloaded: this run has a definition that came over the network, and one "
                "in Python would execute whatever lies in its folder; begin another run"
            )
        kept = sealed(new)
        await self._store.save_definition(kept)
        return kept


def _broadcast(stage: Stage, command: verbs.Broadcast) -> dict[str, object]:
    there = stage.nodes.broadcasts
    stages = stage.restored.stages
    containers = frozenset() if stages is None else stages.in_containers
    rows: list[StoredBroadcast] = rows_of(command, there, stage.drive.graph, containers)
    before = {one[:3]: one.value for one in there}
    stage.broadcast(rows)
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


def _message(stage: Stage, command: verbs.Message, at: Instant) -> dict[str, object]:
    drive = stage.drive
    key, submit = job_of(drive.pool, command.id)
    task = drive.pool.tasks.get(key)
    if task is None or not task.is_active or submit not in (None, task.submit):
        raise Refused(f"{command.id} has no active job that could have said that")
    declared = [own for own, _ in stage.nodes.node(key).outputs]
    if command.output and command.output not in (*declared, *STANDARD):
        raise Refused(unknown_output_text(key[1], command.output, declared))
    for text in command.texts or ("",):
        stage.reports.message(drive, (key, task.submit), text, command.output or None, at)
    return {"task": drive.text(key), "submit": task.submit}


def _time(text: str, now: Instant) -> Instant:
    """A time as in 2030-01-01T00:00Z, or how long from now as in 2h or PT10M."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return Instant(now + parse_duration(text))
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return Instant(aware.timestamp())
