"""Blocks and objects of a server: the same documents, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.core.operator.blocks import InvalidSbi
from tidewheel.errors import PayloadTooLarge
from tidewheel.ports.blocks import Document
from tidewheel.store.remote.address import Query, path_of
from tidewheel.store.remote.portions import BODY_BYTES_MAX
from tidewheel.store.remote.run_door import SENDING_SECONDS_MAX, explained
from tidewheel.store.remote.transport import Transport

JSON, YAML = "application/json", "application/yaml"
FILE_LENGTH_MAX = 200  # of a name, the end of which says what it is


class RemoteBlockDoor:
    """``ports.blocks.BlockDoor`` before a server; who asks is whoever the token says."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # ---- instances ----

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        del who
        if len(content) > BODY_BYTES_MAX:
            raise PayloadTooLarge("the instance", len(content), BODY_BYTES_MAX)
        kind = JSON if file.endswith(".json") else YAML
        async with explained(file, InvalidSbi):
            response = await self._transport.call(
                "POST",
                "/sbis",
                query={"file": file[-FILE_LENGTH_MAX:]},
                body=content or b" ",
                headers={"content-type": kind},
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    async def sbis(self, count: int = 100) -> Document:
        return await self._get("/sbis", {"limit": count})

    async def sbi(self, sbi_id: str) -> Document:
        return await self._get(path_of("sbis", sbi_id))

    # ---- blocks ----

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document:
        return await self._get("/processing-blocks", {"sbi": sbi, "limit": count})

    async def block(self, block_id: str) -> Document:
        return await self._get(path_of("processing-blocks", block_id))

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        del who
        response = await self._transport.call(
            "POST",
            path_of("processing-blocks", block_id, "abort"),
            body={"reason": reason},
            again=True,
            seconds_max=SENDING_SECONDS_MAX,
        )
        return response.read(Document)

    # ---- objects ----

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        del who
        body = [{"name": name, "facts": dict(facts)} for name, facts in objects.items()]
        response = await self._transport.call(
            "POST", "/objects", body={"objects": body}, again=True
        )
        return response.read(Document)

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        return await self._get("/objects", {"after": after or None, "limit": count})

    async def remove_object(self, name: str) -> Document:
        return (await self._transport.call("DELETE", path_of("objects", name))).read(Document)

    async def _get(self, path: str, query: Query | None = None) -> Document:
        return (await self._transport.call("GET", path, query=query)).read(Document)
