"""Tokens and the audit: for admins only."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import NewToken, Scope, grant_of
from tidewheel.quantities import parse_duration
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.routes import API, Needs, Route, no_queue
from tidewheel.server.wire.tokens import (
    AuditPage,
    NewTokenOut,
    TokenIn,
    TokenOut,
    TokensOut,
    audit_out,
    token_out,
)
from tidewheel.server.wire.validation import In

DIGITS_MAX = 18


class AuditQuery(In):
    """A page of the audit."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    before: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


async def create(call: Call) -> object:
    form = call.body_as(TokenIn)
    grant = grant_of(form.scopes, form.queues, form.workflows)
    lasts = None if form.lasts is None else parse_duration(form.lasts, "lasts")
    text = None
    if form.digest is None:
        text, view = await make_token(call.store, form.name, grant, lasts)
    else:
        new = NewToken(name=form.name, digest=form.digest, grant=grant, lasts_seconds=lasts)
        view = await call.store.create_token(new)
    call.targets.append(f"token {view.number}")
    # Not kept for a repeated request: what is shown once is stored nowhere.
    call.key = None
    return Answer(body=NewTokenOut(token=text, stored=token_out(view)), status=201)


async def list_tokens(call: Call) -> object:
    return TokensOut(tokens=[token_out(view) for view in await call.store.tokens()])


async def revoke(call: Call) -> object:
    text = call.path["number"]
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise BadRequest([f"number is {text[:100]!r}; accepted is a whole number"])
    return token_out(await call.store.revoke_token(int(text)))


async def audit(call: Call) -> object:
    query = call.query_as(AuditQuery)
    found = await call.store.audit(query.before, query.limit)
    following = found[-1].number if len(found) == query.limit else None
    return AuditPage(entries=[audit_out(one) for one in found], next=following)


_ADMINS = Needs(scopes=(Scope.ADMIN,), queues=no_queue)
ROUTES = (
    Route(
        method="POST",
        path=f"{API}/tokens",
        guard=_ADMINS,
        handler=create,
        says="Make a token; its text is shown this once.",
        body=TokenIn,
        answers=NewTokenOut,
        status=201,
    ),
    Route(
        method="GET",
        path=f"{API}/tokens",
        guard=_ADMINS,
        handler=list_tokens,
        says="Every token with its last use, without its secret.",
        answers=TokensOut,
    ),
    Route(
        method="POST",
        path=f"{API}/tokens/{{number}}/revoke",
        guard=_ADMINS,
        handler=revoke,
        says="Let a token open nothing any more, within a second.",
        answers=TokenOut,
    ),
    Route(
        method="GET",
        path=f"{API}/audit",
        guard=_ADMINS,
        handler=audit,
        says="Who changed what, newest first, page by page.",
        query=AuditQuery,
        answers=AuditPage,
    ),
)
