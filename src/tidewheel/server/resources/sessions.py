"""Logs browsers in: a link that is good once becomes a session, in a cookie no script can read.

The link leads to a page with one button, since a GET changes nothing and a program that only
previews a link must not use it up. The session allows what its maker's token allowed (S8).
"""

from __future__ import annotations

from html import escape
from typing import Annotated
from urllib.parse import parse_qs, quote

import msgspec
from starlette.responses import Response

from tidewheel.api.wire import answer
from tidewheel.client.tokens import derive_token
from tidewheel.core.queue.access import TokenKind, TokenView
from tidewheel.ports.store import TokenStore
from tidewheel.server.auth import SESSION_COOKIE, csrf_token
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.routes import READS, Open, RouteList
from tidewheel.server.static_page import PLAIN_HEAD
from tidewheel.server.validation import In

LOGIN_SECONDS = 300.0
SESSION_SECONDS = 12 * 3600.0
# Anybody may send a login, so it may neither be long nor take long to come.
LOGIN_BYTES_MAX = 1024
LOGIN_BODY_SECONDS_MAX = 2.0
AFTER_LOGIN = "/"

_PAGE = (
    f"""<!doctype html>
<html lang="en"><head>{PLAIN_HEAD}<title>tidewheel: log in</title></head>
"""
    """<body class="door"><main class="door"><h1>tidewheel</h1>
<p>One click, and this browser is known here for twelve hours.</p>
<form method="post" action="/login"><input type="hidden" name="code" value="{code}">
<button autofocus>Log in</button></form></main></body></html>
"""
)


_LOGIN = Open(because="whoever logs in is not known yet")
ROUTES = RouteList()


class LoginQuery(In):
    code: Annotated[str, msgspec.Meta(max_length=200)] = ""


LinkOut = answer("LinkOut", "A path of this server, good once and for five minutes.", path=str)
SessionOut = answer(
    "SessionOut",
    "The session of the caller; ``csrf`` goes into the header X-CSRF-Token of every change.",
    **{"name": str, "kind": str, "scopes": list[str], "queues": list[str]},
    **{"workflows": list[str], "csrf": str | None},
)


@ROUTES.add(
    "POST /login-links",
    READS,
    "A link for a browser, good once: it allows what this token allows.",
    LinkOut,
    status=201,
)
async def make_link(call: Call) -> object:
    assert call.token is not None
    call.key = None  # what is good once is kept nowhere
    return Answer(body={"path": await login_path(call.store, call.token)}, status=201)


async def login_path(store: TokenStore, token: TokenView) -> str:
    """Returns the path at which a browser becomes a session with the rights of this token."""
    text, _ = await derive_token(store, token, TokenKind.LOGIN, LOGIN_SECONDS)
    return f"/login?code={quote(text)}"


@ROUTES.add(
    "GET /login",
    _LOGIN,
    "The page behind such a link.",
    str,
    root="",
    query=LoginQuery,
    media_type="text/html",
)
async def login_page(call: Call) -> object:
    page = _PAGE.format(code=escape(call.query_as(LoginQuery).code))
    return Answer(body=page, media_type="text/html; charset=utf-8")


def read_form(call: Call) -> str:
    """Returns the code that the page sends."""
    given = parse_qs(call.raw.decode("ascii", "replace")).get("code", [])
    if len(given) != 1:
        raise BadRequest(["code is missing: open the link once more"])
    return given[0]


@ROUTES.add(
    "POST /login",
    _LOGIN,
    "Use up the link: answers with the cookie of a session.",
    root="",
    media_type="text/html",  # a browser that is refused finds a page
    parse=read_form,
    form=True,
    body_bytes_max=LOGIN_BYTES_MAX,
    body_seconds_max=LOGIN_BODY_SECONDS_MAX,
)
async def login(call: Call) -> object:
    used = await call.authenticator.spend(call.body_as(str), call.client)
    text, call.token = await derive_token(call.store, used, TokenKind.SESSION, SESSION_SECONDS)
    answer = Response(status_code=303, headers={"location": AFTER_LOGIN})
    answer.set_cookie(
        SESSION_COOKIE,
        text,
        max_age=int(SESSION_SECONDS),
        secure=call.secure,
        httponly=True,
        samesite="strict",
    )
    return answer


@ROUTES.add(
    "GET /session",
    READS,
    "Who is calling, and what a browser needs to send with changes.",
    SessionOut,
)
async def session(call: Call) -> object:
    assert call.token is not None
    token, grant = call.token, call.grant
    return {
        "name": token.name,
        "kind": token.kind.value,
        "scopes": sorted(grant.scopes),
        "queues": list(grant.queues),
        "workflows": list(grant.workflows),
        "csrf": csrf_token(token) if token.kind is TokenKind.SESSION else None,
    }


@ROUTES.add("POST /logout", READS, "End a browser's session.")
async def logout(call: Call) -> object:
    assert call.token is not None
    if call.token.kind is not TokenKind.SESSION:
        raise NotAllowed("only a session can be ended so; revoke a token instead")
    await call.store.revoke_token(call.token.number)
    answer = Response(status_code=204)
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", secure=call.secure)
    return answer
