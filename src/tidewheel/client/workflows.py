"""Offers the registry, scheduling and processing blocks and objects, also without asyncio."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from tidewheel.client.connection import ServicePart, of_door
from tidewheel.client.sync_client import BlockingPart, of_part
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.registry import Bundle, RunRequest, split_reference
from tidewheel.core.operator.views import RunView
from tidewheel.ports.runs import BlockDoor, Document, RegistryDoor
from tidewheel.wiring.services import block_door, registry_door

Paths = str | PathLike[str]


class Workflows(ServicePart[RegistryDoor]):
    """Is ``client.workflows``; it has the same methods on a store and on a server.

    A workflow is named as NAME or NAME/VERSION; without a version the highest is meant.
    """

    _open = staticmethod(registry_door)

    list = of_door(RegistryDoor.list)

    async def register(
        self, *paths: Paths, name: str = "", version: str = "", strict: bool = False
    ) -> Document:
        """Registers definitions in files and folders of this machine: all of them, or none.

        ``name`` and ``version`` are for a single flow.cylc or Python file. InvalidDefinition
        has every finding.
        """
        found = await asyncio.to_thread(_read, paths, name, version)
        return await self.register_bundles(found, strict=strict)

    async def register_bundles(
        self, bundles: Sequence[Bundle], *, strict: bool = False
    ) -> Document:
        """Registers bundles: files that need not lie in a folder."""
        return await self.door.register(bundles, who=getpass.getuser(), strict=strict)

    async def show(self, workflow: str) -> Document:
        """Returns one version, with its findings, its parameters and its files."""
        return await self.door.show(*split_reference(workflow))

    async def check(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Says whether a workflow can run; with parameters, whether it can run with these."""
        return await self.door.check(*split_reference(workflow), parameters)

    async def render(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Returns what a run with these parameters would execute."""
        return await self.door.render(*split_reference(workflow), parameters)

    async def remove(self, workflow: str) -> Document:
        """Removes one version from the registry; runs of it are not harmed."""
        return await self.door.remove(*split_reference(workflow))

    async def run(
        self,
        workflow: str,
        parameters: Mapping[str, object] | None = None,
        *,
        name: str = "",
        queue: str = "",
        options: RunOptions | None = None,
    ) -> RunView:
        """Creates a run, which the next scheduler takes up."""
        registered, version = split_reference(workflow)
        asked = RunRequest(
            workflow=registered,
            version=version,
            parameters=parameters or {},
            name=name,
            queue=queue,
            options=options or RunOptions(),
        )
        return await self.door.begin(asked)


def _read(paths: Sequence[Paths], name: str, version: str) -> Sequence[Bundle]:
    from tidewheel.core.graph.findings import Findings, InvalidDefinition
    from tidewheel.services.registry.bundles import read_bundles

    findings = Findings()
    found = read_bundles([Path(one) for one in paths], findings, name=name, version=version)
    if findings.has_errors:
        raise InvalidDefinition(", ".join(map(str, paths)), findings.sorted())
    return found


# Blocks and objects.

Request = Mapping[str, object] | str | PathLike[str]
JSON_NAME = "request.json"


class Blocks(ServicePart[BlockDoor]):
    """Is ``client.blocks``; it has the same methods on a store and on a server."""

    _open = staticmethod(block_door)

    sbis = of_door(BlockDoor.sbis)
    sbi = of_door(BlockDoor.sbi)
    list = of_door(BlockDoor.blocks)
    show = of_door(BlockDoor.block)
    objects = of_door(BlockDoor.objects)
    remove_object = of_door(BlockDoor.remove_object)

    async def submit(self, request: Request) -> Document:
        """Submits a scheduling block instance: the path of a JSON or YAML file, or its content.

        All of its blocks are accepted or none; InvalidSbi has every finding. To submit the same
        again changes nothing.
        """
        if isinstance(request, Mapping):
            return await self.submit_text(JSON_NAME, json.dumps(request).encode())
        path = Path(request)
        return await self.submit_text(path.name, await asyncio.to_thread(path.read_bytes))

    async def submit_text(self, file: str, content: bytes) -> Document:
        """Submits an instance as a text; the file's name says whether it is JSON or YAML."""
        return await self.door.submit_sbi(file, content, who=getpass.getuser())

    async def abort(self, block_id: str, reason: str = "") -> Document:
        """Ends the stages of a block that run, starts no more; `changed` false: it was over."""
        return await self.door.abort(block_id, who=getpass.getuser(), reason=reason)

    async def post_objects(
        self, *names: str, facts: Mapping[str, object] | None = None
    ) -> Document:
        """Stores that buffer objects are there from now on; stages that wait for one go on."""
        posted = {name: facts or {} for name in names}
        return await self.door.post_objects(posted, who=getpass.getuser())


# The same without asyncio.


class BlockingWorkflows(BlockingPart[Workflows]):
    """Is ``client.workflows`` of the blocking client."""

    register = of_part(Workflows.register)
    register_bundles = of_part(Workflows.register_bundles)
    list = of_part(Workflows.list)
    show = of_part(Workflows.show)
    check = of_part(Workflows.check)
    render = of_part(Workflows.render)
    remove = of_part(Workflows.remove)
    run = of_part(Workflows.run)


class BlockingBlocks(BlockingPart[Blocks]):
    """Is ``client.blocks`` of the blocking client."""

    submit = of_part(Blocks.submit)
    submit_text = of_part(Blocks.submit_text)
    sbis = of_part(Blocks.sbis)
    sbi = of_part(Blocks.sbi)
    list = of_part(Blocks.list)
    show = of_part(Blocks.show)
    abort = of_part(Blocks.abort)
    post_objects = of_part(Blocks.post_objects)
    objects = of_part(Blocks.objects)
    remove_object = of_part(Blocks.remove_object)
