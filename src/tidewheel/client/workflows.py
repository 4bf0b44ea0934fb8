"""The registry from an application: register definitions, look at them, run them."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from tidewheel.client.connection import Connection
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.registry import Bundle, RunRequest, split_reference
from tidewheel.core.operator.views import RunView
from tidewheel.ports.registry import Document, RegistryDoor
from tidewheel.wiring.services import registry_door

Paths = str | PathLike[str]


class Workflows:
    """``client.workflows``: the same methods on a store and on a server.

    A workflow is named as NAME or NAME/VERSION; without a version the highest is meant.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._door: RegistryDoor | None = None

    @property
    def door(self) -> RegistryDoor:
        """What stands before the store, or before the server."""
        if self._door is None:
            self._door = registry_door(self._connection.store, home_directory())
        return self._door

    async def register(
        self, *paths: Paths, name: str = "", version: str = "", strict: bool = False
    ) -> Document:
        """Definitions in files and folders of this machine: all of them, or none.

        ``name`` and ``version`` are for a single flow.cylc or Python file. InvalidDefinition
        has every finding.
        """
        found = await asyncio.to_thread(_read, paths, name, version)
        return await self.register_bundles(found, strict=strict)

    async def register_bundles(
        self, bundles: Sequence[Bundle], *, strict: bool = False
    ) -> Document:
        """The same for files that lie nowhere."""
        return await self.door.register(bundles, who=getpass.getuser(), strict=strict)

    async def list(self, name: str = "") -> Document:
        """By name, the highest version first."""
        return await self.door.list(name)

    async def show(self, workflow: str) -> Document:
        """One version, with what was found, its parameters and its files."""
        return await self.door.show(*split_reference(workflow))

    async def check(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """Whether it can run; with parameters, whether it can with these."""
        return await self.door.check(*split_reference(workflow), parameters)

    async def render(
        self, workflow: str, parameters: Mapping[str, object] | None = None
    ) -> Document:
        """What a run with these parameters would execute."""
        return await self.door.render(*split_reference(workflow), parameters)

    async def remove(self, workflow: str) -> Document:
        """Forget one version; runs of it are not harmed."""
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
        """A new run, which the next scheduler takes up."""
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
    from tidewheel.services.registry.local_bundles import read_bundles

    findings = Findings()
    found = read_bundles([Path(one) for one in paths], findings, name=name, version=version)
    if findings.has_errors:
        raise InvalidDefinition(", ".join(map(str, paths)), findings.sorted())
    return found
