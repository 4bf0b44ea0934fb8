"""Offers runs of workflows, asynchronously and not, and the events of a store or a server."""

from __future__ import annotations

import getpass
import json
from collections.abc import AsyncIterator
from typing import cast

from tidewheel.client.connection import ServicePart, of_door
from tidewheel.client.sync_client import BlockingPart, of_part
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.stream import EventFilter, EventKind, FollowedEvent, read_cursor
from tidewheel.core.operator.verbs import Command, command_text
from tidewheel.core.operator.views import RunView
from tidewheel.errors import BadSetting
from tidewheel.ports.runs import (
    ANSWER_SECONDS_MAX,
    Answer,
    BringsEvents,
    Document,
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


class Runs(ServicePart[RunDoor]):
    """Is ``client.runs``; it has the same methods on a store and on a server."""

    _open = staticmethod(run_door)

    find = of_door(RunDoor.find)
    begin = of_door(RunDoor.begin)
    definition = of_door(RunDoor.definition)
    save_definition = of_door(RunDoor.save_definition)
    delete = of_door(RunDoor.delete)
    log_part = of_door(RunDoor.log_part)

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

    async def carry_on(self, run: str, given: RunOptions | None = None) -> RunView:
        """Asks any scheduler to go on with a run that nobody drives."""
        return await self.door.carry_on(run, given or RunOptions(mode=""))


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
