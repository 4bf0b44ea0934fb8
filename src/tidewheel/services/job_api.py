"""Answers what a job asks of its run, through its worker: commands, and looks at runs.

A job has no key to the store. Its worker knows which task the job is, and so which run it may
speak to: commands go to that run alone and are recorded as its doing; a job may look at its run
and at whatever both may see, who began its run and who gave its code. Behind a server, the
worker shows the job's own token, and the server judges it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tidewheel.core.operator.definition import (
    JobName,
    RunOptions,
    StoredDefinition,
    read_job_name,
)
from tidewheel.core.operator.verbs import read_command
from tidewheel.core.operator.views import RunView, is_of_others, may_look_at
from tidewheel.core.queue.access import covers, run_name
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import AmbiguousRun, NotFound, Refused
from tidewheel.ports.runs import Document, RunDoor
from tidewheel.services.paths import run_directory
from tidewheel.services.service import ReadsDefinitions, read_in_thread

ANSWER_SECONDS_MAX = 60.0
HANDLER = "handler"
ITEM = "job commands"
DEFINITIONS_MAX = 100  # remembered

SpeakingFor = Callable[[TaskId], AbstractAsyncContextManager[RunDoor]]  # as a job itself


def handler_caller(run: str) -> TaskId:
    """Returns the id that stands for the event handlers of a run; no task has such an id."""
    return TaskId(f"{run}//{HANDLER}")


class JobApi:
    """Answers the calls of all jobs of a worker."""

    def __init__(
        self,
        door: RunDoor,
        home: Path,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
        speaking_for: SpeakingFor | None = None,
        read: ReadsDefinitions = read_in_thread,
    ) -> None:
        self._door, self._read = door, read
        self._speaking_for = speaking_for
        self._home = home
        self._answer_seconds_max = answer_seconds_max
        self._allowing: dict[str, bool] = {}  # by the digest of a definition

    async def __call__(self, caller: TaskId, call: Document) -> Document:
        """Answers a call: `{"command": {…}}`, or `{"look": NAME, "arguments": {…}}`. With
        `"wait": false` a command is answered when it is stored, not when it is obeyed."""
        if "command" in call:
            return await self._command(
                caller, call["command"], wait=bool(call.get("wait", True))
            )
        name, arguments = call.get("look"), call.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Refused(
                'expected a call with "command", or with "look" and the object "arguments"'
            )
        run, _ = _who(caller)
        asked = {"run": run, **arguments}
        if self._speaking_for is None:
            return await self._look(run, name, asked)
        async with self._speaking_for(caller) as door:
            return await door.look(name, asked)

    async def _look(self, run: str, name: str, asked: Document) -> Document:
        """Answers with what a view shows, if the submitter of the caller's run may see it."""
        own = await self._own(run)
        if own.sees is None:
            return await self._door.look(name, asked)
        asked = asked | {"sees": own.sees}
        if name == "runs":
            found = await self._door.look(name, asked)
            listed: Any = found["runs"]
            shown = [
                one
                for one in listed
                if one["name"] == own.name or covers(own.sees, run_name(one["name"]))
            ]
            return found | {"runs": shown}
        text = str(asked["run"]) or own.name
        with suppress(NotFound, AmbiguousRun):
            other = await self._door.find(text)
            if may_look_at(own, other):
                return await self._door.look(name, asked | {"run": other.name})
        if is_of_others(own.sees, text):
            others = f"runs of {', '.join(own.sees)}" if own.sees else "no runs"
            raise Refused(
                f"jobs of {own.name} may not look at {text!r}; apart from their own run, they "
                f"may see {others}"
            )
        from tidewheel.api.views import STATE, not_there_yet

        if name != STATE or "~" in text or "//" in text:  # it reads such names otherwise
            raise NotFound("run", text)
        return not_there_yet(str(NotFound("run", text)), str(asked.get("id") or ""))

    async def _command(self, caller: TaskId, body: object, *, wait: bool) -> Document:
        command = read_command(json.dumps(body))
        name, who = _who(caller)
        run = await self._own(name)
        if self._speaking_for is None and not await self.allows_commands(run):
            raise Refused(
                f"jobs of {run.name} may only send messages and look at their run, not "
                f"{command.verb}; "
                "allow more with [scheduler] job commands = True"
            )
        spoken_for = nullcontext(self._door)
        async with self._speaking_for(caller) if self._speaking_for else spoken_for as door:
            if not wait:
                return {"number": await door.post(run.name, command, who=who)}
            seconds = self._answer_seconds_max
            answer = await door.give(run.name, command, who=who, seconds_max=seconds)
            return answer.document

    async def _own(self, name: str) -> RunView:
        run = await self._door.find(name)
        if run.name != name:  # it was deleted, and another one begins so
            raise NotFound("run", name)
        return run

    async def allows_commands(self, run: RunView) -> bool:
        """Says whether jobs may command their run: as its definition says, which a reload may
        change, else as its options say."""
        if run.definition not in self._allowing:
            definition, said = await self._door.definition(run.name), None
            if ITEM in definition.text:  # hardly ever: to read all of it takes its time
                folder = run_directory(self._home, run.name)
                work = partial(_job_commands, definition, run.options, folder)
                said = await self._read(run.name, work)
            if len(self._allowing) >= DEFINITIONS_MAX:
                self._allowing.clear()
            self._allowing[run.definition] = run.options.job_commands if said is None else said
        return self._allowing[run.definition]


def _job_commands(
    definition: StoredDefinition, options: RunOptions, folder: Path
) -> bool | None:
    # Here, as it brings along all that reads definitions: most jobs call nothing.
    from tidewheel.services.definitions.snapshot import restore

    return restore(definition, options, folder).settings.scheduler.job_commands


def _who(caller: TaskId) -> tuple[str, str]:
    """Returns the run that a caller belongs to, and how history names the caller."""
    run, slashes, word = caller.rpartition("//")
    if slashes and word == HANDLER:
        return run, "event handler"
    name = read_job_name(caller)
    return name.run, caller_name(name)


def caller_name(job: JobName) -> str:
    """Returns how history names a job, or an event handler, that commands its run."""
    return "event handler" if job.is_code else f"job {job.text}"
