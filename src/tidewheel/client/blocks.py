"""Scheduling block instances, processing blocks and objects from an application."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from tidewheel.client.connection import Connection
from tidewheel.config import home_directory
from tidewheel.ports.blocks import BlockDoor, Document
from tidewheel.wiring.services import block_door

Request = Mapping[str, object] | str | PathLike[str]
JSON_NAME = "request.json"


class Blocks:
    """``client.blocks``: the same methods on a store and on a server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._door: BlockDoor | None = None

    @property
    def door(self) -> BlockDoor:
        """What stands before the store, or before the server."""
        if self._door is None:
            self._door = block_door(self._connection.store, home_directory())
        return self._door

    async def submit(self, request: Request) -> Document:
        """A scheduling block instance: the path of a JSON or YAML file, or what is in it.

        All of its blocks or none; InvalidSbi has every finding. The same again is a no-op.
        """
        if isinstance(request, Mapping):
            return await self.submit_text(JSON_NAME, json.dumps(request).encode())
        path = Path(request)
        return await self.submit_text(path.name, await asyncio.to_thread(path.read_bytes))

    async def submit_text(self, file: str, content: bytes) -> Document:
        """The same as a text; the name says whether it is JSON or YAML."""
        return await self.door.submit_sbi(file, content, who=getpass.getuser())

    async def sbis(self, count: int = 100) -> Document:
        """Newest first."""
        return await self.door.sbis(count)

    async def sbi(self, sbi_id: str) -> Document:
        """As it was asked for, and its blocks."""
        return await self.door.sbi(sbi_id)

    async def list(self, *, sbi: str | None = None, count: int = 100) -> Document:
        """Blocks, newest first."""
        return await self.door.blocks(sbi=sbi, count=count)

    async def show(self, block_id: str) -> Document:
        """What it waits for, and each stage with its events."""
        return await self.door.block(block_id)

    async def abort(self, block_id: str, reason: str = "") -> Document:
        """End the stages that run, start no more; `changed` false: it was over."""
        return await self.door.abort(block_id, who=getpass.getuser(), reason=reason)

    async def post_objects(
        self, *names: str, facts: Mapping[str, object] | None = None
    ) -> Document:
        """Buffer objects that are there from now on; whoever waits for one goes on."""
        posted = {name: facts or {} for name in names}
        return await self.door.post_objects(posted, who=getpass.getuser())

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        """Those that are there, by name."""
        return await self.door.objects(after=after, count=count)

    async def remove_object(self, name: str) -> Document:
        """It is there no more; whoever has seen it goes on."""
        return await self.door.remove_object(name)
