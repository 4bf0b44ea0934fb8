"""Holds the service for runs on a store: views, commands, logs, beginning and deleting.

Everybody comes through here: applications, the command line, jobs through their worker, and the
server for those who come over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import math
import shlex
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import NewCommand
from tidewheel.core.operator.verbs import (
    REOPENING,
    REOPENING_VERBS,
    Command,
    Kill,
    command_text,
    ends_jobs,
)
from tidewheel.core.operator.views import RunView, only_run
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Aborted, Declined, NoAnswer, NotFound, NotRunning, Refused
from tidewheel.ports.runs import (
    ANSWER_SECONDS_MAX,
    LOG_BYTES_MAX,
    Answer,
    Arguments,
    Document,
    LogPart,
)
from tidewheel.ports.store import Store
from tidewheel.services.service import ReadsDefinitions, read_in_thread

if TYPE_CHECKING:
    from tidewheel.core.graph.findings import Findings
    from tidewheel.core.graph.graph import Graph
    from tidewheel.services.workflow_state import DefinitionOf
    from tidewheel.views.snapshot import ViewContext

NOTHING_GIVEN = RunOptions(mode="")


RUNS = "runs"  # the view that is of no one run


class RunService:
    """Implements ``ports.runs.RunDoor`` on a store; ``home`` has this host's files of runs.

    What reads definitions is loaded by the first request that needs it: most need none of it.
    """

    def __init__(
        self,
        store: Store,
        home: Path,
        definition_of: DefinitionOf | None = None,
        read: ReadsDefinitions = read_in_thread,
        *,
        by_whole_name: bool = False,
    ) -> None:
        """Sets up the service. ``by_whole_name``: who calls it has found each run, and judged
        the caller by its name; one that was deleted since leads to no other."""
        self._store, self._home, self._read = store, home, read
        self._by_whole_name = by_whole_name
        self._definition_of = definition_of
        self._made_context: ViewContext | None = None

    def reading(self, read: ReadsDefinitions) -> RunService:
        """Returns the same service, with another way to read the definitions of new runs."""
        self._context()  # is shared
        other = copy(self)
        other._read = read
        return other

    # ---- looking ----

    async def find(self, text: str = "") -> RunView:
        if text:
            return await self._store.find_run(text)
        return only_run(await self._store.runs(), await self._store.now())

    async def _named(self, run: str) -> RunView:
        view = await self._store.find_run(run)
        if self._by_whole_name and view.name != run:
            raise NotFound("run", run)
        return view

    async def look(self, name: str, arguments: Arguments) -> Document:
        if name == RUNS:  # rows alone: nothing is loaded that looks into a run
            from tidewheel.views.run_facts import runs

            return dict(await runs(self._store, arguments))
        from tidewheel.views.catalogue import look

        return await look(self._store, self._context(), name, arguments)

    def _context(self) -> ViewContext:
        """Returns what views share; it is kept, as a job that waits asks again and again."""
        from tidewheel.services.workflow_state import definitions_of, remembering
        from tidewheel.views.past import Pasts
        from tidewheel.views.snapshot import ViewContext

        if self._made_context is None:
            read = self._definition_of
            if read is None:
                read = remembering(definitions_of(self._store, self._home))
            self._made_context = ViewContext(self._home, read, Pasts())
        return self._made_context

    async def log_part(
        self,
        run: str,
        wish: Arguments,
        *,
        offset: int | None = None,
        bytes_max: int = LOG_BYTES_MAX,
        wait_seconds: float = 0.0,
    ) -> LogPart:
        from tidewheel.views.log import log_part
        from tidewheel.views.snapshot import AskedView

        view = await self._named(run)
        asked = AskedView(self._store, self._context(), view, wish)
        return await log_part(asked, offset, bytes_max, wait_seconds)

    async def definition(self, run: str) -> StoredDefinition:
        view = await self._named(run)
        return await self._store.definition(view.definition)

    # ---- commands ----

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        view, reopens = await self._judged(run, command)
        number = await post_command(self._store, view, command, who, reopens=reopens)
        return await awaited_answer(self._store, view, number, command.verb, seconds_max)

    async def post(self, run: str, command: Command, *, who: str) -> int:
        view, reopens = await self._judged(run, command)
        return await post_command(self._store, view, command, who, reopens=reopens)

    async def _judged(self, run: str, command: Command) -> tuple[RunView, bool]:
        """Returns the run that is meant, and whether the command reopens it."""
        view = await self._named(run)

        def dry_run() -> Awaitable[Document]:
            said = json.loads(command_text(command))
            return self.look("dry-run", {"run": view.name, "command": said})

        return view, await would_reopen(view, command, await self._store.now(), dry_run)

    # ---- beginning and ending ----

    async def begin(
        self, new: NewRun, definition: StoredDefinition, *, is_checked: bool = False
    ) -> RunView:
        if not is_checked:
            await self._read(
                new.workflow, partial(check_new_run, definition, new.options, self._home)
            )
        await self._store.save_definition(definition)
        given = NOTHING_GIVEN if new.given is None else new.given
        return await self._store.create_run(replace(new, given=given))

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        from tidewheel.scheduler.open_run import check_given

        view = await self._named(run)
        await check_given(view, given, self._home, self._store)
        return await self._store.offer_run(view.number, given)

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        await self._named(run)
        await self._store.save_definition(definition)
        return definition.digest

    async def delete(self, run: str) -> RunView:
        from tidewheel.services.file_removal import remove_run_files

        view = await self._named(run)
        await self._store.delete_run(view.number)
        store_id = await self._store.store_id()
        await asyncio.to_thread(remove_run_files, self._home, view, store_id)
        return view


def check_new_run(definition: StoredDefinition, options: RunOptions, home: Path) -> None:
    """Raises InvalidDefinition if no run with these options can begin, or if its jobs have no
    place."""
    from tidewheel.services.definitions.snapshot import check_definition

    check_definition(definition, options, partial(check_jobs, home))


def check_jobs(home: Path, options: RunOptions, graph: Graph, findings: Findings) -> None:
    """Finds the jobs of a new run that have no place."""
    from tidewheel.core.graph.definition import RunMode
    from tidewheel.platforms import read_platforms
    from tidewheel.scheduler.placement import check_places

    if options.mode == RunMode.LIVE:
        check_places(graph, read_platforms(home), findings)


# Gives commands to runs, and waits until the scheduler that drives a run has answered.
#
# What reopens a run that has ended is stored in any case, and the store offers the run to every
# scheduler. Where none serves, the command waits there until somebody carries the run on.


POLL_SECONDS_FIRST = 0.02  # where nobody tells that something changed
POLL_SECONDS_MAX = 0.25
HANDOVER_SECONDS = 5.0  # a scheduler on standby takes a run sooner than that
# A scheduler takes a reopened run within a second: after this time, none serves the store.
REOPENING_SECONDS = 2.5


async def would_reopen(
    run: RunView, command: Command, now: Instant, dry_run: Callable[[], Awaitable[Document]]
) -> bool:
    """Says whether a command would be kept for the scheduler that takes up a run again.

    One that would be refused then is refused here. A run that was stopped is also reopened to
    end the jobs that run on, and for nothing else (`scheduler/run_driver.py`).
    """
    if run.is_aborted or not run.can_be_reopened(now):
        return False
    if isinstance(command, REOPENING):
        await dry_run()
        return True
    if run.status != "stopped" or not (ends_jobs(command) or isinstance(command, Kill)):
        return False
    try:
        killed = cast("list[str]", (await dry_run())["killed"])
    except Refused:  # nobody could obey it anyway
        return False
    if killed and isinstance(command, Kill):
        raise NotRunning(run.name, run.status, killed)
    return bool(killed)


async def post_command(
    store: Store, run: RunView, command: Command, who: str, *, reopens: bool
) -> int:
    """Stores a command and returns its number; raises NotRunning if nobody could obey.

    While a run is between two schedulers, it tries again for some seconds. A run that has ended
    takes only commands that reopen it.
    """
    asked = NewCommand(
        run=run.number,
        body=command_text(command),
        who=who,
        reopens=reopens,
    )
    give_up_at = asyncio.get_running_loop().time() + HANDOVER_SECONDS
    while True:
        try:
            return await store.post_command(asked)
        except NotRunning:
            between = (await store.run(run.number)).wants_scheduler
            if not between or asyncio.get_running_loop().time() >= give_up_at:
                raise
        await asyncio.sleep(POLL_SECONDS_MAX)


async def awaited_answer(
    store: Store, run: RunView, number: int, verb: str, seconds_max: float
) -> Answer:
    """Waits for the answer to a command and returns it.

    Raises Declined if the scheduler refuses, NoAnswer if it does not answer in time, NotRunning
    or Aborted if nobody will.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def ring(wake: Wake) -> None:
        if wake.everything or run.number in wake.runs:
            loop.call_soon_threadsafe(changed.set)

    stop_listening = store.listen(ring)
    try:
        async with asyncio.timeout(seconds_max):
            return await _watch(store, run, number, verb, changed)
    except TimeoutError:
        name = shlex.quote(run.name)
        advice = f"the command waits for it: tidewheel show {name} --history"
        if not (await store.run(run.number)).is_driven(await store.now()):
            advice = f"it is gone, and the command waits for the next one: tidewheel run {name}"
        seen = f"the scheduler of {run.name} did not answer {verb} within {seconds_max:g} s"
        raise NoAnswer(f"{seen}; {advice}") from None
    finally:
        stop_listening()


async def _watch(
    store: Store, run: RunView, number: int, verb: str, changed: asyncio.Event
) -> Answer:
    pause = POLL_SECONDS_FIRST
    keep_at = asyncio.get_running_loop().time() + REOPENING_SECONDS
    at_rest: RunView | None = None  # it has ended, and nobody has taken it since
    is_late = False
    while True:
        changed.clear()
        seen = await store.command(number)
        if seen.refused is not None:
            raise Declined(seen.refused)
        if seen.answered_at is not None:
            said = json.loads(seen.answer or "{}")
            told = said if isinstance(said, dict) else {"answer": said}
            return Answer(run.name, number, verb, told)
        # Any other command that was given after the end was taken, since it reopens the run.
        since_end = at_rest is not None and seen.at > (at_rest.ended_at or math.inf)
        if at_rest is not None and (verb in REOPENING_VERBS or since_end):
            if at_rest.is_aborted:
                raise Aborted(at_rest.name, at_rest.reason)
            if is_late:
                how = f"tidewheel run {shlex.quote(at_rest.name)}"
                kept = {"kept": True, "status": at_rest.status, "next": how}
                return Answer(run.name, number, verb, kept)
        elif at_rest is not None and not at_rest.wants_scheduler:
            raise NotRunning(at_rest.name, at_rest.status)
        try:
            async with asyncio.timeout(pause):
                await changed.wait()
        except TimeoutError:
            pause = min(pause * 1.5, POLL_SECONDS_MAX)
            # A scheduler that lets a run go answers with its last batch, or nobody does.
            now_there = await store.run(run.number)
            rests = now_there.can_be_reopened(await store.now())
            at_rest = now_there if rests or not now_there.wants_scheduler else None
            is_late = asyncio.get_running_loop().time() >= keep_at
