"""Runs from an application: look at them, and ask something of whoever drives one."""

from __future__ import annotations

import asyncio
import getpass
import json
import shutil
from pathlib import Path
from typing import NamedTuple, cast

from tidewheel.client.connection import Connection
from tidewheel.config import home_directory
from tidewheel.core.runs.commands import Command, Trigger, command_text
from tidewheel.core.runs.definition import StoredDefinition
from tidewheel.core.runs.requests import NewCommand
from tidewheel.core.runs.views import RunView
from tidewheel.core.tasks.requests import Wake
from tidewheel.errors import NotRunning, Refused, Unavailable
from tidewheel.ports import Store

ANSWER_SECONDS_MAX = 30.0
POLL_SECONDS_FIRST = 0.02
POLL_SECONDS_MAX = 0.25
RUNS_NAMED_MAX = 5

Document = dict[str, object]


class Answer(NamedTuple):
    """What became of a command that was obeyed."""

    run: str
    number: int  # of the command, as in history
    verb: str
    document: Document


class NoAnswer(Unavailable):
    """The scheduler did not answer in time; the command waits for it."""

    code = "no_answer"


class Runs:
    """``client.runs``: every method opens nothing but the store."""

    def __init__(self, connection: Connection, home: Path | None = None) -> None:
        self._connection = connection
        self._home = home

    @property
    def store(self) -> Store:
        return cast("Store", self._connection.store)

    @property
    def home(self) -> Path:
        """Where the files of runs are on this host."""
        return home_directory() if self._home is None else self._home

    async def find(self, text: str = "") -> RunView:
        """By name, number or unique prefix; without a text, the only run there is."""
        return await self.store.find_run(text) if text else await self._only_run()

    async def _only_run(self) -> RunView:
        views = await self.store.runs()
        if not views:
            raise Refused("there is no run in this store; start one: tidewheel run DIR")
        now = await self.store.now()
        driven = [view for view in views if view.is_driven(now)]
        found = views if len(views) == 1 else driven
        if len(found) == 1:
            return found[0]
        names = [view.name for view in found or views]
        more = f" and {len(names) - RUNS_NAMED_MAX} more" if len(names) > RUNS_NAMED_MAX else ""
        raise Refused(
            f"which run? There are {', '.join(names[:RUNS_NAMED_MAX])}{more}; "
            "name one as RUN: its name, its number or the beginning of its name"
        )

    async def list(self, *, workflow: str | None = None, count: int = 100) -> Document:
        """Runs, newest first."""
        return await self.look("runs", workflow=workflow, count=count)

    async def look(self, name: str, /, **arguments: object) -> Document:
        """Any view of ``services.run_views``."""
        # Here, since it brings along all that reads definitions; others need none of it.
        from tidewheel.services.run_views import look  # noqa: PLC0415

        return await look(self.store, self.home, name, arguments)

    async def show(self, run: str, *ids: str) -> Document:
        """A run, or some of its tasks."""
        return await self.look("show", run=run, ids=ids)

    async def why(self, run: str, *ids: str) -> Document:
        """Why these tasks do not run."""
        return await self.look("why", run=run, ids=ids)

    async def tree(
        self, run: str, *ids: str, window: int | None = None, everything: bool = False
    ) -> Document:
        """A run as a tree; `window` is how many edges around the pool are shown."""
        return await self.look("tree", run=run, ids=ids, window=window, all=everything)

    async def history(self, run: str, count: int = 100) -> Document:
        """What was asked of a run, newest first."""
        return await self.look("history", run=run, count=count)

    async def dry_run(self, run: str, command: Trigger) -> Document:
        """What a trigger would do, without doing it."""
        said = json.loads(command_text(command))
        return await self.look("dry-run", run=run, command=said)

    async def give(
        self,
        run: str,
        command: Command,
        *,
        who: str = "",
        seconds_max: float | None = None,
    ) -> Answer:
        """Ask something of a run and wait for its answer; a refusal is raised."""
        view = await self.store.find_run(run)
        asked = NewCommand(
            run=view.number, body=command_text(command), who=who or getpass.getuser()
        )
        number = await self.store.post_command(asked)
        seconds = ANSWER_SECONDS_MAX if seconds_max is None else seconds_max
        return await self._answer(view, number, command.verb, seconds)

    async def _answer(self, view: RunView, number: int, verb: str, seconds: float) -> Answer:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def ring(_: Wake) -> None:
            loop.call_soon_threadsafe(changed.set)

        stop_listening = self.store.listen(ring)
        try:
            async with asyncio.timeout(seconds):
                return await self._watch(view, number, verb, changed)
        except TimeoutError:
            raise NoAnswer(
                f"the scheduler of {view.name} did not answer {verb} within {seconds:g} s; "
                f"the command waits for it: tidewheel show {view.name} --history"
            ) from None
        finally:
            stop_listening()

    async def _watch(
        self, view: RunView, number: int, verb: str, changed: asyncio.Event
    ) -> Answer:
        pause = POLL_SECONDS_FIRST
        ended: RunView | None = None
        while True:
            changed.clear()
            seen = await self.store.command(number)
            if seen.refused is not None:
                raise Refused(seen.refused)
            if seen.answered_at is not None:
                return Answer(view.name, number, verb, json.loads(seen.answer or "{}"))
            if ended is not None:
                raise NotRunning(ended.name, ended.status)
            try:
                async with asyncio.timeout(pause):
                    await changed.wait()
            except TimeoutError:
                pause = min(pause * 1.5, POLL_SECONDS_MAX)
                # A scheduler that lets a run go answers with its last batch, or nobody does.
                run = await self.store.run(view.number)
                ended = run if run.owner is None else None

    async def save_definition(self, definition: StoredDefinition) -> None:
        """Keep a definition, so that a run can be told to go on with it."""
        await self.store.save_definition(definition)

    async def delete(self, run: str) -> RunView:
        """Everything of a run that has ended, its files on this host included."""
        view = await self.store.find_run(run)
        await self.store.delete_run(view.number)
        runs = (self.home / "runs").resolve()
        folder = (runs / view.name).resolve()
        if runs in folder.parents:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return view
