"""What admins ask of a remote store: tokens, and who did what."""

from __future__ import annotations

import msgspec

from tidewheel.api.wire import Fields, instant, read, read_all
from tidewheel.core.queue.access import AuditEntry, NewToken, TokenView
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound
from tidewheel.store.remote.address import Query, path_of
from tidewheel.store.remote.asking import Asking


class RemoteAccess(Asking):
    """The part of an AccessStore that is not a server's own business."""

    async def create_token(self, new: NewToken) -> TokenView:
        body = {
            "name": new.name,
            "scopes": sorted(new.grant.scopes),
            "queues": new.grant.queues,
            "workflows": new.grant.workflows,
            "lasts": new.lasts_seconds,
            "digest": new.digest,
        }
        response = await self.transport.call("POST", "/tokens", body=body)
        return _token(response.part("stored", Fields))

    async def token(self, number: int) -> tuple[TokenView, Instant]:
        store = await self.transport.call("GET", "/store")
        for view in await self.tokens():
            if view.number == number:
                return view, instant(store.json["now"])
        raise NotFound("token", str(number))

    async def tokens(self) -> list[TokenView]:
        response = await self.transport.call("GET", "/tokens")
        return [_token(one) for one in response.part("tokens", list[Fields])]

    async def revoke_token(self, number: int) -> TokenView:
        path = path_of("tokens", str(number), "revoke")
        return _token(await self.post_fields(path, again=True))

    async def login_link(self) -> str:
        """Where a browser logs in, once, with what the token of this store allows."""
        response = await self.transport.call("POST", "/login-links")
        return self.transport.url + response.part("path", str)

    async def audit(self, before: int | None = None, count: int = 100) -> list[AuditEntry]:
        query: Query = {"before": before, "limit": count}
        response = await self.transport.call("GET", "/audit", query=query)
        return read_all(AuditEntry, response.part("entries", list[Fields]))


def _token(given: Fields) -> TokenView:
    return read(TokenView, {**given, "digest": msgspec.Raw(b'""')})  # which no server shows
