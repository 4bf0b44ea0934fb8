"""What all operations of a remote store share: a transport, and answers as values."""

from __future__ import annotations

from typing import TypeVar

from tidewheel.api.wire import Fields, read_all
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.store.remote.address import Query
from tidewheel.store.remote.transport import Transport

Kind = TypeVar("Kind")


class Asking:
    """Speaks to one server."""

    def __init__(self, transport: Transport, limits: SubmitLimits | None = None) -> None:
        self.transport = transport
        self._limits = limits or SubmitLimits()

    async def get_fields(self, path: str) -> Fields:
        """The fields of what is there."""
        return (await self.transport.call("GET", path)).read(Fields)

    async def get_all(
        self, kind: type[Kind], path: str, name: str, query: Query | None = None
    ) -> list[Kind]:
        """The values of a list that the answer has under a name."""
        response = await self.transport.call("GET", path, query=query)
        return read_all(kind, response.part(name, list[Fields]))

    async def post_fields(self, path: str, body: object = None, *, again: bool) -> Fields:
        """Change something; ``again``: it may be done twice."""
        response = await self.transport.call("POST", path, body=body, again=again)
        return response.read(Fields)
