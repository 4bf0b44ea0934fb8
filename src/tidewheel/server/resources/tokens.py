"""Answers for tokens, the audit and sessions: who may do what, what was done, who is logged in.

There is a row of words for each route that the audit keeps; a test compares the rows with the
table of routes, so that none is forgotten.
"""

from __future__ import annotations

import re
from html import escape
from typing import Annotated
from urllib.parse import parse_qs, quote

import msgspec
from starlette.responses import Response

from tidewheel.api.operation import ADMIN
from tidewheel.api.operations import SESSIONS, TOKENS, Count, Number
from tidewheel.api.wire import Out, answer, time_text, write
from tidewheel.client.tokens import derive_token, make_token
from tidewheel.core.operator.verbs import TABLE
from tidewheel.core.queue.access import (
    AuditEntry,
    NewToken,
    Scope,
    TokenKind,
    TokenView,
    grant_of,
)
from tidewheel.core.queue.people import is_own, outline
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.quantities import parse_duration
from tidewheel.server.audit_log import REFUSED_MORE
from tidewheel.server.auth import csrf_token, session_cookie
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.operation_routes import routes_of, whole_number
from tidewheel.server.routes import API, READS, Needs, Open, RouteList, no_name
from tidewheel.server.static_page import PLAIN_HEAD, login_needed
from tidewheel.server.validation import Duration, In

_ADMINS = Needs(ADMIN, no_name)
ROUTES = RouteList()

# Tokens.


class TokenIn(In):
    """A token to be made. It is valid for the names that match ``names``; with scope admin
    and without ``names`` it is valid for everything.

    ``queues`` and ``workflows`` are what earlier versions sent instead of ``names``."""

    name: str
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1)]
    names: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None
    workflows: tuple[str, ...] | None = None
    lasts: Duration | None = None  # null: until it is revoked
    # SHA-256 of a secret that the caller made and keeps; null: the server makes one.
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None


NewTokenOut = answer(
    "NewTokenOut",
    "A new token. ``token`` is its text, shown only once; null if the caller made the text.",
    token=str | None,
    stored=TokenView,
)


@ROUTES.add(
    "POST /tokens",
    _ADMINS,
    "Make a token; its text is shown only once.",
    NewTokenOut,
    body=TokenIn,
    status=201,
)
async def create(call: Call) -> object:
    form = call.body_as(TokenIn)
    grant = grant_of(form.scopes, form.names, form.queues, form.workflows)
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
    return Answer(body=write({"token": text, "stored": view}), status=201)


ROUTES += routes_of(TOKENS)

# The audit.

_RUN = f"{API}/runs/{{run}}"
_FORBIDDEN = (403,)
_WRONG_TOKEN = (401, 429)
_SHOWED = "showed no valid token"
_REFUSED_FROM, _BROKEN_FROM = 400, 500
_LISTED = re.compile(r"(\d+) tasks, (.+)", re.DOTALL)  # as handlers name several at once


class Deed(NamedTuple):
    """Holds the words by which the audit tells of a call: as a wish, as a deed, and what it was
    done to.

    In braces stand the names in the path, and `what` is all that the handler named besides;
    `unnamed` is said where it named nothing.
    """

    wish: str
    done: str
    whom: str = "{what}"
    unnamed: str = "tasks"


def _edges(verb: str, words: tuple[str, str]) -> dict[str, Deed]:
    """Returns the words for both spellings of a verb about edges, for one task and for many."""
    return {
        f"POST {API}/tasks{place}/{verb}{ending}": Deed(*words, f"{whom}: {{what}}", "edges")
        for place, whom in (("/{id}", "{id}"), ("", "tasks"))
        for ending in ("s", "")
    }


_OF_RUNS = {
    **{row.name: Deed(row.wish, row.done, row.whom, row.unnamed) for row in TABLE},
    "carry-on": Deed("resume", "resumed", "{run}"),
    "definitions": Deed("store a new definition for", "stored a new definition for", "{run}"),
}

DEEDS: dict[str, Deed] = {
    f"POST {API}/tasks": Deed("submit", "submitted"),
    f"POST {API}/tasks/cancel": Deed("cancel", "cancelled"),
    f"POST {API}/tasks/resubmit": Deed("submit again", "submitted again"),
    f"POST {API}/tasks/{{id}}/arm": Deed("arm", "armed", "task {id}"),
    f"POST {API}/tasks/{{id}}/cancel": Deed("cancel", "cancelled", "task {id}"),
    f"PATCH {API}/tasks/{{id}}": Deed("change", "changed", "task {id}"),
    **_edges("add_continuation", ("add continuations to", "added continuations to")),
    **_edges(
        "remove_continuation", ("remove continuations from", "removed continuations from")
    ),
    f"PATCH {API}/queues/{{queue}}": Deed("change", "changed", "the queue {queue}"),
    f"POST {API}/queues/{{queue}}/pause": Deed("pause", "paused", "the queue {queue}"),
    f"POST {API}/queues/{{queue}}/resume": Deed("resume", "resumed", "the queue {queue}"),
    f"POST {API}/workers": Deed("register", "registered", "the worker {what}", ""),
    f"POST {API}/workers/{{id}}/stop": Deed("unregister", "unregistered", "the worker {id}"),
    f"POST {API}/runs": Deed("begin", "began", unnamed="a run"),
    **{f"POST {_RUN}/{verb}": deed for verb, deed in _OF_RUNS.items()},
    f"DELETE {_RUN}": Deed("delete", "deleted", "the run {run}"),
    f"POST {API}/workflows": Deed("register", "registered", unnamed="a workflow"),
    f"DELETE {API}/workflows/{{name}}": Deed(
        "remove", "removed", "the only version of the workflow {name}"
    ),
    f"DELETE {API}/workflows/{{name}}/{{version}}": Deed(
        "remove", "removed", "the workflow {name}/{version}"
    ),
    f"POST {API}/sbis": Deed("submit", "submitted", "the scheduling block instance {what}", ""),
    f"POST {API}/sbis/{{sbi}}/abort": Deed(
        "abort", "aborted", "the scheduling block instance {sbi}"
    ),
    f"POST {API}/processing-blocks/{{block}}/abort": Deed(
        "abort", "aborted", "the processing block {block}"
    ),
    f"POST {API}/objects": Deed("post", "posted", "the object {what}", ""),
    f"DELETE {API}/objects/{{name}}": Deed("remove", "removed", "the object {name}"),
    f"POST {API}/notifications/test": Deed(
        "send a test of", "sent a test of", unnamed="the notifications"
    ),
    f"POST {API}/tokens": Deed("make", "made", unnamed="a token"),
    f"POST {API}/tokens/{{number}}/revoke": Deed("revoke", "revoked", "token {number}"),
    f"POST {API}/login-links": Deed("make", "made", "a link to log in with"),
    "POST /login": Deed("log in", "logged in", ""),
    "POST /login/oidc": Deed("sign in", "signed in", ""),
    "POST /login/proxy": Deed("sign in", "signed in", "through the proxy"),
    f"POST {API}/sign-in/token": Deed("sign in", "signed in", "at a command line"),
    f"POST {API}/logout": Deed("log out", "logged out", ""),
    f"POST {API}/sessions/{{number}}/end": Deed("end", "ended", "session {number}"),
}


def deed_words(entry: AuditEntry) -> str:
    """Returns in words what was done, without by whom: `triggered 3/model in forecast/run1`."""
    deed = DEEDS.get(entry.verb)
    if deed is None:
        return _plain_words(entry)
    whom = _filled(entry, deed)
    if entry.status in _WRONG_TOKEN:
        return f"{_SHOWED}, to {deed.wish} {whom}".rstrip()
    if entry.status in _FORBIDDEN:
        return f"was not allowed to {deed.wish} {whom}".rstrip()
    if entry.status >= _BROKEN_FROM:
        return f"could not {deed.wish} {whom}".rstrip()
    if entry.status >= _REFUSED_FROM:
        return f"wanted to {deed.wish} {whom}".rstrip() + ", which was refused"
    return f"{deed.done} {whom}".rstrip()


def _plain_words(entry: AuditEntry) -> str:
    """Returns in words what was asked of a route that only looks or is of another version, or
    how many refusals followed one."""
    if entry.verb == REFUSED_MORE:
        return f"was refused several times within a few minutes: {entry.target}"
    told = f"{entry.verb}: {entry.target}".rstrip(": ")
    if entry.status in _WRONG_TOKEN:
        return f"{_SHOWED}: {told}"
    return f"was not allowed: {told}" if entry.status in _FORBIDDEN else told


def _filled(entry: AuditEntry, deed: Deed) -> str:
    """Returns what a call was done to, in words. The audit keeps what the path names first,
    then what the handler named."""
    names = re.findall(r"{(\w+)}", entry.verb)
    named = entry.target.split(", ", len(names)) if entry.target else []
    said = dict.fromkeys(names, "…") | dict(zip(names, named, strict=False))
    what = "".join(named[len(names) :])
    return " ".join(deed.whom.format(**said, what=_listed(what) or deed.unnamed).split())


def _listed(what: str) -> str:
    found = _LISTED.fullmatch(what)
    if found is None:
        return what
    count, ids = int(found[1]), found[2]
    if count == 1:
        return f"task {ids}"
    return f"{count} tasks: {ids}" + (", …" if count > ids.count(", ") + 1 else "")


class AuditOut(Out):
    """A call that changed something, or was refused."""

    number: int
    at: str | None
    token: int | None
    who: str
    client: str
    words: str  # what was done, for people
    verb: str
    target: str
    status: int
    correlation: str
    sha256: str | None  # of this and the entry before it; null: older than the chain


class AuditPage(Out):
    """Entries of the audit, newest first; oldest first if the request has ``after``. To get the
    next page, send ``next`` as ``before``, or as ``after``."""

    entries: list[AuditOut]
    next: int | None


class AuditQuery(In):
    """Says which page of the audit is asked for; with ``after`` it begins with the oldest
    entry behind that one."""

    limit: Count = 100
    before: Number | None = None
    after: Number | None = None


@ROUTES.add(
    "GET /audit",
    _ADMINS,
    "Who changed something or was refused, newest first, page by page.",
    AuditPage,
    query=AuditQuery,
)
async def audit(call: Call) -> object:
    query = call.query_as(AuditQuery)
    if query.before is not None and query.after is not None:
        raise BadRequest(["before and after cannot be used together; give one of them"])
    found = await call.store.audit(query.before, query.limit, query.after)
    following = found[-1].number if len(found) == query.limit else None
    kept = [name for name in AuditOut.__struct_fields__ if name not in ("at", "words")]
    entries = [
        AuditOut(
            **{name: getattr(one, name) for name in kept},
            at=time_text(one.at),
            words=deed_words(one),
        )
        for one in found
    ]
    return AuditPage(entries=entries, next=following)


# Sessions: a link that is good once becomes one, in a cookie that no script can read.
#
# The link leads to a page with one button, since a GET changes nothing and a program that only
# previews a link must not use it up. The session allows what its maker's token allowed (S8).

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
<p>One click, and this browser stays signed in for twelve hours.</p>
<form method="post" action="/login"><input type="hidden" name="code" value="{code}">
<button autofocus>Log in</button></form></main></body></html>
"""
)


_LOGIN = Open(because="a person who logs in is not known yet")


class LoginQuery(In):
    code: Annotated[str, msgspec.Meta(max_length=200)] = ""


LinkOut = answer(
    "LinkOut",
    "A login link, as a path on this server: it signs in one browser once, within five "
    "minutes.",
    path=str,
)
SessionOut = answer(
    "SessionOut",
    "The session of the caller; ``csrf`` goes into the header X-CSRF-Token of every change.",
    **{"name": str, "kind": str, "scopes": list[str], "names": list[str], "csrf": str | None},
)


@ROUTES.add(
    "POST /login-links",
    READS,
    "A link for a browser, for a single use: it allows what this token allows.",
    LinkOut,
    status=201,
)
async def make_link(call: Call) -> object:
    assert call.token is not None
    if call.token.kind is TokenKind.SESSION:
        # Others, made from it, would not end with it.
        raise NotAllowed(
            "a session cannot make a login link; make the link with a token: tidewheel token "
            "link"
        )
    call.server.quotas.take("links", call.token)
    call.key = None  # what is good once is kept nowhere
    return Answer(body={"path": await login_path(call.store, call.token)}, status=201)


async def login_path(store: Store, token: TokenView) -> str:
    """Returns the path of a link, good once, by which a browser gets a session with the rights
    of this token."""
    text, _ = await derive_token(store, token, TokenKind.LOGIN, LOGIN_SECONDS)
    return f"/login?code={quote(text)}"


@ROUTES.add(
    "GET /login",
    _LOGIN,
    "The page that a login link opens; without a code, the ways to sign in by name.",
    str,
    root="",
    query=LoginQuery,
    media_type="text/html",
)
async def login_page(call: Call) -> object:
    code = call.query_as(LoginQuery).code
    page = _PAGE.format(code=escape(code)) if code else login_needed(call.server.people.now)
    return Answer(body=page, media_type="text/html; charset=utf-8")


def read_form(call: Call) -> str:
    """Returns the login code that the login page sends; raises BadRequest without one."""
    given = parse_qs(call.raw.decode("ascii", "replace")).get("code", [])
    if len(given) != 1:
        raise BadRequest(["code is missing: open the link again"])
    return given[0]


@ROUTES.add(
    "POST /login",
    _LOGIN,
    "Use up the login link; the answer has the cookie of a session.",
    root="",
    media_type="text/html",  # a browser that is refused finds a page
    parse=read_form,
    form=True,
    body_bytes_max=LOGIN_BYTES_MAX,
    body_seconds_max=LOGIN_BODY_SECONDS_MAX,
)
async def login(call: Call) -> object:
    used = await call.server.authenticator.spend(call.body_as(str), call.client)
    text, call.token = await derive_token(call.store, used, TokenKind.SESSION, SESSION_SECONDS)
    return session_answer(call, text, SESSION_SECONDS)


def session_answer(call: Call, text: str, lasts_seconds: float) -> Response:
    """Returns the answer that gives a browser its session and leads it to the page."""
    answer = Response(status_code=303, headers={"location": AFTER_LOGIN})
    answer.set_cookie(
        session_cookie(secure=call.secure),
        text,
        max_age=int(lasts_seconds),
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
    token, grant = call.token, outline(call.rules) if call.rules else call.grant
    return {
        "name": token.name,
        "kind": token.kind.value,
        "scopes": sorted(grant.scopes),
        "names": list(grant.names),
        "csrf": csrf_token(token) if token.kind is TokenKind.SESSION else None,
    }


@ROUTES.add("POST /logout", READS, "End a browser's session.")
async def logout(call: Call) -> object:
    assert call.token is not None
    if call.token.kind is not TokenKind.SESSION:
        raise NotAllowed("only a session can be ended this way; revoke a token instead")
    await call.store.revoke_token(call.token.number)
    answer = Response(status_code=204)
    name = session_cookie(secure=call.secure)
    answer.delete_cookie(name, httponly=True, samesite="strict", secure=call.secure)
    return answer


# Who is signed in: everybody sees and ends sessions of their own, admins those of all.


def _sees_session(call: Call, session: TokenView) -> bool:
    assert call.token is not None
    return call.allows(ADMIN) or is_own(session, call.token)


async def list_sessions(call: Call) -> object:
    found = [one for one in await call.store.sessions() if _sees_session(call, one)]
    return write({"sessions": found})


async def end_session(call: Call) -> object:
    number = whole_number("number", call.path["number"])
    session, _ = await call.store.token(number)
    if not _sees_session(call, session):
        raise NotFound("token", str(number))  # as if there were none
    return write(await call.store.end_session(number))


ROUTES += routes_of(SESSIONS, {"sessions": list_sessions, "end_session": end_session})
