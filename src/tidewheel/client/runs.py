"""Offers runs of workflows, asynchronously and not, and the events of a store or a server."""

from __future__ import annotations

import getpass
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

from tidewheel.client.connection import Connection
from tidewheel.client.sync_client import BlockingPart, of_part
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.stream import EventFilter, EventKind, FollowedEvent, read_cursor
from tidewheel.core.operator.verbs import Command, command_text
from tidewheel.core.operator.views import RunView
from tidewheel.errors import BadSetting
from tidewheel.ports.runs import (
    ANSWER_SECONDS_MAX,
    LOG_BYTES_MAX,
    Answer,
    Arguments,
    BringsEvents,
    Document,
    LogPart,
    RunDoor,
)
from tidewheel.ports.store import Store
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.wakeup import SystemClock
from tidewheel.views.events import follow_store
from tidewheel.wiring.services import run_door


def follow(
    store: TaskStore, since: str | None, run: str | None, queue: str | None, kind: str | None
) -> AsyncIterator[FollowedEvent]:
    """Returns the events after an id, or from now on."""
    if kind is not None and kind not in tuple(EventKind):
        raise BadSetting("kind", kind, " or ".join(EventKind))
    if since is not None:
        read_cursor(since)
    which = EventFilter(run=run, queue=queue, kind=None if kind is None else EventKind(kind))
    if isinstance(store, BringsEvents):
        return store.follow_events(since, which)
    home = home_directory()
    return follow_store(cast("Store", store), home, since, which, SystemClock())


# ``client.runs``.


class Runs:
    """Is ``client.runs``; it has the same methods on a store and on a server."""

    def __init__(self, connection: Connection, home: Path | None = None) -> None:
        self._connection = connection
        self._home = home
        self._door: RunDoor | None = None

    @property
    def door(self) -> RunDoor:
        """Returns the service of runs: on the store, or the requests to a server."""
        if self._door is None:
            # Where the files of runs are on this host.
            home = home_directory() if self._home is None else self._home
            self._door = run_door(self._connection.store, home)
        return self._door

    async def find(self, text: str = "") -> RunView:
        """Returns a run by name, number or unique prefix; without a text, the only one."""
        return await self.door.find(text)

    async def list(self, *, workflow: str | None = None, count: int = 100) -> Document:
        """Returns runs, newest first."""
        return await self.look("runs", workflow=workflow, count=count)

    async def look(self, name: str, /, **arguments: object) -> Document:
        """Returns any view of ``views``, by its name."""
        return await self.door.look(name, arguments)

    async def show(self, run: str, *ids: str) -> Document:
        """Returns the view of a run, or of some of its tasks."""
        return await self.look("show", run=run, ids=ids)

    async def why(self, run: str, *ids: str) -> Document:
        """Returns the reasons why these tasks do not run."""
        return await self.look("why", run=run, ids=ids)

    async def tree(
        self, run: str, *ids: str, window: int | None = None, everything: bool = False
    ) -> Document:
        """Returns a run as a tree; `window` is how many edges around the pool are shown."""
        return await self.look("tree", run=run, ids=ids, window=window, all=everything)

    async def history(self, run: str, count: int = 100) -> Document:
        """Returns the commands that a run was given, newest first."""
        return await self.look("history", run=run, count=count)

    async def dry_run(self, run: str, command: Command) -> Document:
        """Returns what a command would do, without doing it."""
        said = json.loads(command_text(command))
        return await self.look("dry-run", run=run, command=said)

    async def log_part(
        self,
        run: str,
        wish: Arguments,
        *,
        offset: int | None = None,
        bytes_max: int = LOG_BYTES_MAX,
        wait_seconds: float = 0.0,
    ) -> LogPart:
        """Returns part of the log of a run, or of a job (`id`, `file`, `submit`, `attempt`)."""
        return await self.door.log_part(
            run, wish, offset=offset, bytes_max=bytes_max, wait_seconds=wait_seconds
        )

    async def give(
        self,
        run: str,
        command: Command,
        *,
        who: str = "",
        seconds_max: float | None = None,
    ) -> Answer:
        """Gives a command to a run and waits for its answer; a refusal is raised."""
        seconds = ANSWER_SECONDS_MAX if seconds_max is None else seconds_max
        asker = who or getpass.getuser()
        return await self.door.give(run, command, who=asker, seconds_max=seconds)

    async def begin(self, new: NewRun, definition: StoredDefinition) -> RunView:
        """Creates a run, which the next scheduler takes up."""
        return await self.door.begin(new, definition)

    async def carry_on(self, run: str, given: RunOptions | None = None) -> RunView:
        """Asks any scheduler to go on with a run that nobody drives."""
        return await self.door.carry_on(run, given or RunOptions(mode=""))

    async def definition(self, run: str) -> StoredDefinition:
        """Returns the definition that a run has now."""
        return await self.door.definition(run)

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        """Stores a definition, so that the run can be told to go on with it by its digest."""
        return await self.door.save_definition(run, definition)

    async def delete(self, run: str) -> RunView:
        """Deletes everything of a run that has ended, its files on this host included."""
        return await self.door.delete(run)


# The same without asyncio.


class BlockingRuns(BlockingPart[Runs]):
    """Is ``client.runs`` of the blocking client."""

    find = of_part(Runs.find)
    list = of_part(Runs.list)
    look = of_part(Runs.look)
    show = of_part(Runs.show)
    why = of_part(Runs.why)
    tree = of_part(Runs.tree)
    history = of_part(Runs.history)
    dry_run = of_part(Runs.dry_run)
    log_part = of_part(Runs.log_part)
    give = of_part(Runs.give)
    begin = of_part(Runs.begin)
    carry_on = of_part(Runs.carry_on)
    definition = of_part(Runs.definition)
    delete = of_part(Runs.delete)
