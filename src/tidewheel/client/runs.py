"""Offers ``client.runs``, ``client.workflows``, ``client.blocks`` and events."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tidewheel.client.connection import ServicePart, of_door
from tidewheel.client.sync_client import BlockingPart, of_part
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.registry import Bundle, RunRequest, split_reference
from tidewheel.core.operator.stream import EventFilter, EventKind, FollowedEvent, read_cursor
from tidewheel.core.operator.verbs import Command, command_text
from tidewheel.core.operator.views import RunView
from tidewheel.errors import BadSetting
from tidewheel.ports.runs import (
    ANSWER_SECONDS_MAX,
    Answer,
    BlockDoor,
    BringsEvents,
    Document,
    RegistryDoor,
    RunDoor,
)
from tidewheel.ports.store import Store
from tidewheel.services.service import SystemClock
from tidewheel.wiring.services import block_door, registry_door, run_door


def follow(
    store: Store, since: str | None, run: str | None, queue: str | None, kind: str | None
) -> AsyncIterator[FollowedEvent]:
    """Returns the events of a store after the id ``since``, or from now on, as they happen.

    ``run``, ``queue`` and ``kind`` select among them. Raises BadSetting for an unknown kind.
    """
    if kind is not None and kind not in tuple(EventKind):
        raise BadSetting("kind", kind, " or ".join(EventKind))
    if since is not None:
        read_cursor(since)
    which = EventFilter(run=run, queue=queue, kind=None if kind is None else EventKind(kind))
    if isinstance(store, BringsEvents):
        return store.follow_events(since, which)
    home = home_directory()
    from tidewheel.views.events import follow_store  # only followers need the definitions

    return follow_store(store, home, since, which, SystemClock())


# ``client.runs``.


class Runs(ServicePart[RunDoor]):
    """Offers runs as ``client.runs``, with the same methods on a store and on a server."""

    _open = staticmethod(run_door)

    find = of_door(RunDoor.find)
    begin = of_door(RunDoor.begin)
    definition = of_door(RunDoor.definition)
    save_definition = of_door(RunDoor.save_definition)
    delete = of_door(RunDoor.delete)
    log_part = of_door(RunDoor.log_part)

    async def list(
        self,
        *,
        workflow: str | None = None,
        count: int = 100,
        nested: bool = False,
        matching: str = "",
    ) -> Document:
        """Returns up to ``count`` runs, newest first: of one workflow, or of all; with
        ``nested`` also those that are tasks of a run; with ``matching`` those that fit a
        filter, such as ``tide*:stalled``."""
        asked = {"matching": matching} if matching else {}
        return await self.look("runs", workflow=workflow, count=count, nested=nested, **asked)

    async def look(self, name: str, /, **arguments: object) -> Document:
        """Returns the view with this name, such as ``tree``; ``tidewheel.api.views`` lists
        all views."""
        return await self.door.look(name, arguments)

    async def show(self, run: str, *ids: str) -> Document:
        """Returns what is known about a run, or about those of its tasks that ``ids`` name."""
        return await self.look("show", run=run, ids=ids)

    async def why(self, run: str, *ids: str) -> Document:
        """Returns the reasons why these tasks do not run."""
        return await self.look("why", run=run, ids=ids)

    async def tree(
        self, run: str, *ids: str, window: int | None = None, everything: bool = False
    ) -> Document:
        """Returns a run as a tree, of its newest points or with ``everything`` of all.

        ``window`` is how many edges around the pool are shown.
        """
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
        """Gives a command to a run and returns its answer; raises the refusal if it is
        refused."""
        seconds = ANSWER_SECONDS_MAX if seconds_max is None else seconds_max
        asker = who or getpass.getuser()
        return await self.door.give(run, command, who=asker, seconds_max=seconds)

    async def carry_on(self, run: str, given: RunOptions | None = None) -> RunView:
        """Asks for a scheduler to resume a run that has none."""
        return await self.door.carry_on(run, given or RunOptions(mode=""))


# The same without asyncio.


class BlockingRuns(BlockingPart[Runs]):
    """Offers runs as ``client.runs`` of the blocking client."""

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


# Registered workflows.

Paths = str | PathLike[str]


class Workflows(ServicePart[RegistryDoor]):
    """Offers the registry as ``client.workflows``, alike on a store and on a server.

    A workflow is named as NAME or NAME/VERSION; without a version, the highest is used.
    """

    _open = staticmethod(registry_door)

    list = of_door(RegistryDoor.list)

    async def register(
        self, *paths: Paths, name: str = "", version: str = "", strict: bool = False
    ) -> Document:
        """Registers definitions in files and folders of this machine, or from an archive or a
        repository, which is fetched here: all of them, or none.

        ``name`` and ``version`` are for a single flow.cylc or Python file. Raises
        InvalidDefinition with every finding.
        """
        found = await asyncio.to_thread(bundles_at, paths, name, version)
        return await self.register_bundles(found, strict=strict)

    async def register_bundles(
        self, bundles: Sequence[Bundle], *, strict: bool = False
    ) -> Document:
        """Registers bundles that are already in memory: all of them, or none."""
        return await self.door.register(bundles, who=getpass.getuser(), strict=strict)

    async def show(self, workflow: str) -> Document:
        """Returns one version of a workflow, with its findings, its parameters and its
        files."""
        return await self.door.show(*await self._meant(workflow))

    async def check(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Returns whether a workflow can run, with these parameters if they are given, and its
        findings."""
        return await self.door.check(*await self._meant(workflow), parameters)

    async def render(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Returns what a run with these parameters would execute."""
        return await self.door.render(*await self._meant(workflow), parameters)

    async def stages(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Returns what each stage of a SIP definition is: what it waits for and needs, its
        values and its files."""
        return await self.door.stages(*await self._meant(workflow), parameters)

    async def diff(self, workflow: str, against: str) -> Document:
        """Returns the files in which two versions of a workflow differ, line by line.

        ``workflow`` is NAME/VERSION, ``against`` another version of it.
        """
        return await self.door.diff(*await self._meant(workflow), against)

    async def definition(self, workflow: str) -> StoredDefinition:
        """Returns what is kept of one version: its text and its files."""
        return await self.door.definition(*await self._meant(workflow))

    async def remove(self, workflow: str) -> Document:
        """Removes one version from the registry; its runs are not affected."""
        return await self.door.remove(*await self._meant(workflow))

    async def run(
        self,
        workflow: str,
        parameters: Mapping[str, object] | None = None,
        *,
        name: str = "",
        queue: str = "",
        options: RunOptions | None = None,
    ) -> RunView:
        """Creates a run of a workflow; the next free scheduler drives it."""
        registered, version = await self._meant(workflow)
        asked = RunRequest(
            workflow=registered,
            version=version,
            parameters=parameters or {},
            name=name,
            queue=queue,
            options=options or RunOptions(),
        )
        return await self.door.begin(asked)

    async def _meant(self, text: str) -> tuple[str, str]:
        async def versions_of(name: str) -> Sequence[str]:
            found: Any = (await self.door.list(name))["workflows"]
            return [one["version"] for one in found]

        return await meant_by(text, versions_of)


async def meant_by(
    text: str, versions_of: Callable[[str], Awaitable[Sequence[str]]]
) -> tuple[str, str]:
    """Returns name and version that somebody means who writes `NAME` or `NAME/VERSION`.

    A version that begins with a letter looks like the last part of a name: it is one where no
    workflow has the whole text as its name. It is judged here, by whoever wrote the text: a
    server asks for rights to a name, and acts on that name and on no other.
    """
    name, version = split_reference(text)
    above, _, last = name.rpartition("/")
    if version or not above or await versions_of(name):
        return name, version
    return (above, last) if last in await versions_of(above) else (name, "")


def bundles_at(paths: Sequence[Paths], name: str, version: str) -> Sequence[Bundle]:
    """Returns the definitions in files and folders of this machine, or from elsewhere.

    A Python file is executed if it is of this machine. Raises InvalidDefinition with every
    finding.
    """
    from tidewheel.client.definition_sources import fetched_paths
    from tidewheel.core.graph.findings import Findings, InvalidDefinition
    from tidewheel.services.registry.bundles import read_bundles

    findings = Findings()
    with fetched_paths([fspath(one) for one in paths]) as (local, sources):
        found = read_bundles(local, findings, name=name, version=version, fetched=sources)
    if findings.has_errors:
        raise InvalidDefinition(", ".join(map(str, paths)), findings.sorted())
    return found


# Blocks and objects.

Request = Mapping[str, object] | str | PathLike[str]
JSON_NAME = "request.json"


class Blocks(ServicePart[BlockDoor]):
    """Offers blocks and buffer objects as ``client.blocks``, alike on a store and on a
    server."""

    _open = staticmethod(block_door)

    sbis = of_door(BlockDoor.sbis)
    sbi = of_door(BlockDoor.sbi)
    list = of_door(BlockDoor.blocks)
    show = of_door(BlockDoor.block)
    history = of_door(BlockDoor.block_history)
    objects = of_door(BlockDoor.objects)
    remove_object = of_door(BlockDoor.remove_object)

    async def submit(self, request: Request, *, dry_run: bool = False) -> Document:
        """Submits a scheduling block instance: the path of a JSON or YAML file, or its content.

        All of its blocks are accepted or none; raises InvalidSbi with every finding. Submitting
        the same instance again changes nothing. A dry run checks it and stores nothing.
        """
        if isinstance(request, Mapping):
            content = json.dumps(request).encode()
            return await self.submit_text(JSON_NAME, content, dry_run=dry_run)
        path = Path(request)
        content = await asyncio.to_thread(path.read_bytes)
        return await self.submit_text(path.name, content, dry_run=dry_run)

    async def submit_text(
        self, file: str, content: bytes, *, dry_run: bool = False
    ) -> Document:
        """Submits a scheduling block instance as text.

        The name of the file says whether it is JSON or YAML.
        """
        who = getpass.getuser()
        return await self.door.submit_sbi(file, content, who=who, dry_run=dry_run)

    async def abort(self, block_id: str, reason: str = "") -> Document:
        """Ends the running stages of a block and starts no more.

        `changed` in the answer is false if the block had ended already.
        """
        return await self.door.abort(block_id, who=getpass.getuser(), reason=reason)

    async def abort_sbi(self, sbi_id: str, reason: str = "") -> Document:
        """Aborts every block of an instance that is not over.

        `blocks` in the answer says of each whether it `changed`, or why it was `refused`.
        """
        return await self.door.abort_sbi(sbi_id, who=getpass.getuser(), reason=reason)

    async def post_objects(
        self, *names: str, facts: Mapping[str, object] | None = None
    ) -> Document:
        """Reports that buffer objects exist from now on; stages that wait for one of them
        continue."""
        posted = {name: facts or {} for name in names}
        return await self.door.post_objects(posted, who=getpass.getuser())


# The same without asyncio.


class BlockingWorkflows(BlockingPart[Workflows]):
    """Offers the registry as ``client.workflows`` of the blocking client."""

    register = of_part(Workflows.register)
    register_bundles = of_part(Workflows.register_bundles)
    list = of_part(Workflows.list)
    show = of_part(Workflows.show)
    check = of_part(Workflows.check)
    render = of_part(Workflows.render)
    stages = of_part(Workflows.stages)
    definition = of_part(Workflows.definition)
    diff = of_part(Workflows.diff)
    remove = of_part(Workflows.remove)
    run = of_part(Workflows.run)


class BlockingBlocks(BlockingPart[Blocks]):
    """Offers blocks and buffer objects as ``client.blocks`` of the blocking client."""

    submit = of_part(Blocks.submit)
    submit_text = of_part(Blocks.submit_text)
    sbis = of_part(Blocks.sbis)
    sbi = of_part(Blocks.sbi)
    list = of_part(Blocks.list)
    show = of_part(Blocks.show)
    history = of_part(Blocks.history)
    abort = of_part(Blocks.abort)
    abort_sbi = of_part(Blocks.abort_sbi)
    post_objects = of_part(Blocks.post_objects)
    objects = of_part(Blocks.objects)
    remove_object = of_part(Blocks.remove_object)
