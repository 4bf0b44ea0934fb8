"""What a job may ask of its run, through its worker: commands, and looks at runs.

A job has no key to the store. Its worker knows which task the job is, and so which run it may
speak to: commands go to that run alone and are recorded as its doing; looking is free.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.runs.commands import command_text, read_command
from tidewheel.core.runs.job_names import read_job_name
from tidewheel.core.runs.requests import NewCommand
from tidewheel.core.runs.views import CommandView, RunView
from tidewheel.core.tasks.requests import Wake
from tidewheel.core.tasks.task import TaskId
from tidewheel.errors import Refused, Unavailable
from tidewheel.ports import Store

if TYPE_CHECKING:
    from tidewheel.services.workflow_state import DefinitionOf

ANSWER_SECONDS_MAX = 60.0
POLL_SECONDS = 0.25  # where nobody tells that something changed
REST_SECONDS = 0.01  # between two looks, however much changes
HANDLER = "handler"
STATE = "workflow-state"
ITEM = "job commands"
DEFINITIONS_MAX = 100  # remembered

Document = dict[str, object]


class Declined(Refused):
    """The run heard a command and does not do it."""

    code = "declined"


def handler_caller(run: str) -> TaskId:
    """Who speaks for the event handlers of a run; no task has such an id."""
    return TaskId(f"{run}//{HANDLER}")


class JobCalls:
    """Answers the calls of all jobs of a worker."""

    def __init__(
        self, store: Store, home: Path, answer_seconds_max: float = ANSWER_SECONDS_MAX
    ) -> None:
        self._store = store
        self._home = home
        self._answer_seconds_max = answer_seconds_max
        self._definition_of: DefinitionOf | None = None
        self._allowing: dict[str, bool] = {}  # by the digest of a definition

    async def __call__(self, caller: TaskId, call: Document) -> Document:
        """`{"command": {…}}`, or `{"look": NAME, "arguments": {…}}`.

        With `"wait": false` a command is answered when it is stored, not when it is obeyed.
        """
        if "command" in call:
            return await self._command(
                caller, call["command"], wait=bool(call.get("wait", True))
            )
        name, arguments = call.get("look"), call.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Refused('a call has a "command", or a "look" with "arguments"')
        run, _ = _who(caller)
        return await self._look(name, {"run": run, **arguments})

    async def _look(self, name: str, arguments: Document) -> Document:
        # Here, for the same reason as below.
        from tidewheel.services.run_views import look  # noqa: PLC0415
        from tidewheel.services.state_documents import state_document  # noqa: PLC0415

        if name == STATE:
            return await state_document(self._store, self._definitions(), arguments)
        return await look(self._store, self._home, name, arguments)

    async def _command(self, caller: TaskId, body: object, *, wait: bool) -> Document:
        command = read_command(json.dumps(body))
        name, who = _who(caller)
        run = await self._store.find_run(name)
        if not await self._allows_commands(run):
            raise Refused(
                f"jobs of {run.name} may send messages and look, not {command.verb}; "
                "allow more with [scheduler] job commands = True"
            )
        asked = NewCommand(run=run.number, body=command_text(command), who=who)
        number = await self._store.post_command(asked)
        return await self._answer(run, number, command.verb) if wait else {"number": number}

    async def _allows_commands(self, run: RunView) -> bool:
        """The definition may say; a reload may say otherwise."""
        known = self._allowing.get(run.definition)
        if known is None:
            definition = await self._store.definition(run.definition)
            said = None
            if ITEM in definition.text:  # hardly ever: to read all of it would take its time
                restored = await self._definitions()(run)
                said = restored.settings.scheduler.job_commands
            known = run.options.job_commands if said is None else said
            if len(self._allowing) >= DEFINITIONS_MAX:
                self._allowing.clear()
            self._allowing[run.definition] = known
        return known

    def _definitions(self) -> DefinitionOf:
        """Remembered: a job that waits asks about the same run again and again."""
        # Here, since it brings along all that reads definitions: most jobs call nothing.
        from tidewheel.services.state_documents import definitions_of  # noqa: PLC0415
        from tidewheel.services.workflow_state import remembering  # noqa: PLC0415

        if self._definition_of is None:
            self._definition_of = remembering(definitions_of(self._store, self._home))
        return self._definition_of

    async def _answer(self, run: RunView, number: int, verb: str) -> Document:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def ring(wake: Wake) -> None:
            if wake.everything or run.number in wake.runs:
                loop.call_soon_threadsafe(changed.set)

        stop_listening = self._store.listen(ring)
        try:
            async with asyncio.timeout(self._answer_seconds_max):
                return _document(await self._answered(number, changed))
        except TimeoutError:
            raise Unavailable(
                f"{run.name} did not answer {verb} within {self._answer_seconds_max:g} s; "
                "it will be done when its scheduler finds the time"
            ) from None
        finally:
            stop_listening()

    async def _answered(self, number: int, changed: asyncio.Event) -> CommandView:
        while True:
            changed.clear()
            view = await self._store.command(number)
            if view.answered_at is not None:
                return view
            await asyncio.sleep(REST_SECONDS)
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await changed.wait()
            except TimeoutError:
                pass


def _who(caller: TaskId) -> tuple[str, str]:
    """The run that a caller belongs to, and how history names the caller."""
    run, slashes, word = caller.rpartition("//")
    if slashes and word == HANDLER:
        return run, "event handler"
    name = read_job_name(caller)
    return name.run, f"job {name.text}"


def _document(view: CommandView) -> Document:
    if view.refused is not None:
        raise Declined(view.refused)
    said = json.loads(view.answer or "{}")
    return said if isinstance(said, dict) else {"answer": said}
