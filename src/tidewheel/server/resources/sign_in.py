"""Answers for people who sign in by name: at a provider, or behind a proxy that knows them.

In a browser a sign-in goes round in four steps. `GET /login/oidc` makes three secrets, puts
them into a cookie and sends the browser to the provider. The provider sends it back to
`GET /login/oidc/callback`, a page that changes nothing and has one button, which a script
presses. That is `POST /login/oidc`, from our own page: it compares the state with the cookie
(so that nobody is signed in as somebody else by a link), has the provider take the code, and
begins a session. A command line does the same by a device's code, or by a code that the
provider sends to a port of its own.

Every secret is good for one sign-in. Nothing here leads anywhere but to the provider that the
access file names and to this server's own page.
"""

from __future__ import annotations

import hmac
import re
import secrets
from html import escape
from typing import Annotated, Any
from urllib.parse import parse_qs

import msgspec
from starlette.responses import Response

from tidewheel.api.wire import Out, answer, write
from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import Identity, TokenKind, TokenView
from tidewheel.core.queue.people import stored_grant
from tidewheel.server.access_file import CALLBACK_PATH, person_behind
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed, NotAuthenticated
from tidewheel.server.oidc import CodeProof
from tidewheel.server.resources.tokens import LOGIN_BODY_SECONDS_MAX, session_answer
from tidewheel.server.routes import Open, RouteList
from tidewheel.server.static_page import plain_page
from tidewheel.server.validation import In

FLOW_COOKIE = "tidewheel_sign_in"
FLOW_SECONDS_MAX = 600
FLOW_PARTS = 3
FORM_BYTES_MAX = 8 * 1024
SECRET_BYTES = 32
CODE_LENGTH_MAX = 4_096
SCRIPT_PATH = "/login/continue.js"
# A port of this machine, where `tidewheel login` listens (RFC 8252).
_LOOPBACK = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}/callback")
_HTML = "text/html; charset=utf-8"
_STRANGER = Open(because="a person who signs in is not known yet")
_LIMITS: dict[str, Any] = {
    "body_bytes_max": FORM_BYTES_MAX,
    "body_seconds_max": LOGIN_BODY_SECONDS_MAX,
}
ROUTES = RouteList()

_CONTINUE = f"""<form method="post" action="/login/oidc">
<input type="hidden" name="code" value="{{code}}">
<input type="hidden" name="state" value="{{state}}">
<button autofocus>Continue</button></form><script src="{SCRIPT_PATH}"></script>"""


async def begin_session(
    call: Call, identity: Identity, kind: TokenKind, lasts_seconds: float
) -> tuple[str, TokenView]:
    """Makes the token of a person who signed in; raises NotAllowed for one without any rule.

    Returns its text and what the store has of it, which the audit then names.
    """
    rules = call.server.people.rules_for(identity)
    if not rules:
        groups = ", ".join(identity.groups[:20]) or "none"
        raise NotAllowed(
            f"{identity.person} may do nothing here: no [[grant]] of the access file is for "
            f"this person or for one of the groups ({groups}); ask an admin of this server"
        )
    call.key = None  # what is shown once is stored nowhere, not even for a repeated request
    text, call.token = await make_token(
        call.store,
        identity.person,
        stored_grant(rules),
        lasts_seconds,
        kind=kind,
        identity=identity,
    )
    return text, call.token


# In a browser, at a provider.


@ROUTES.add(
    "GET /login/oidc",
    _STRANGER,
    "Redirect a browser to the provider, where its user signs in.",
    root="",
    media_type="text/html",
    status=303,
)
async def to_provider(call: Call) -> object:
    state, nonce, verifier = (secrets.token_urlsafe(SECRET_BYTES) for _ in range(3))
    proof = CodeProof(verifier, _redirect_uri(call), nonce)
    address = await call.server.provider.authorization_url(state, proof)
    response = Response(status_code=303, headers={"location": address})
    # Strict is enough: it is our own page that comes back with it.
    response.set_cookie(
        _cookie_name(call),
        f"{state}.{nonce}.{verifier}",
        max_age=FLOW_SECONDS_MAX,
        secure=call.secure,
        httponly=True,
        samesite="strict",
    )
    return response


def _cookie_name(call: Call) -> str:
    # With this prefix no other host of the same domain can set it.
    return f"__Host-{FLOW_COOKIE}" if call.secure else FLOW_COOKIE


def _redirect_uri(call: Call) -> str:
    """Returns where the provider sends the browser back to: this server, by the name under
    which it was called, which is one of its own."""
    request = call.request
    given = call.server.provider.settings.redirect_uri
    return given or f"{request.url.scheme}://{request.headers['host']}{CALLBACK_PATH}"


@ROUTES.add(
    f"GET {CALLBACK_PATH}",
    _STRANGER,
    "The page to which the provider returns a browser.",
    str,
    root="",
    media_type="text/html",
    page=True,  # providers add parameters of their own
)
async def callback(call: Call) -> object:
    asked = call.request.query_params
    issuer = call.server.provider.settings.issuer
    if asked.get("iss", issuer) != issuer:  # RFC 9207
        raise NotAllowed(
            "the answer came from another provider than that of this server; sign in again"
        )
    if "code" not in asked or "state" not in asked:
        why = asked.get("error", "it sent no code")[:100]
        raise NotAllowed(f"the provider did not sign you in: {why}")
    code, state = escape(asked["code"]), escape(asked["state"])
    page = plain_page(_CONTINUE.format(code=code, state=state))
    return Answer(body=page, media_type=_HTML)


@ROUTES.add(
    f"GET {SCRIPT_PATH}",
    _STRANGER,
    "The script that presses Continue on the page to which the provider returns a browser.",
    str,
    root="",
    media_type="text/javascript",
)
async def script(call: Call) -> object:
    del call
    return Answer(body="document.forms[0].submit();\n", media_type="text/javascript")


def read_code(call: Call) -> tuple[str, str]:
    """Returns code and state of the form; raises BadRequest without them."""
    given = parse_qs(call.raw.decode("ascii", "replace"))
    code, state = given.get("code", []), given.get("state", [])
    if len(code) != 1 or len(state) != 1:
        raise BadRequest(["code or state is missing: sign in again from /login"])
    return code[0], state[0]


@ROUTES.add(
    "POST /login/oidc",
    _STRANGER,
    "Send the code to the provider; the answer has the cookie of a session.",
    root="",
    media_type="text/html",
    parse=read_code,
    form=True,
    **_LIMITS,
)
async def finish(call: Call) -> object:
    code, state = call.body_as(tuple)
    name = _cookie_name(call)
    parts = call.request.cookies.get(name, "").split(".")
    call.server.authenticator.check_address(call.client)
    # These two are not counted as wrong: by a link anybody could have somebody else come here.
    if len(parts) != FLOW_PARTS or not hmac.compare_digest(parts[0].encode(), state.encode()):
        raise NotAllowed(
            "this sign-in was not started in this browser within the last ten minutes; sign in "
            "again"
        )
    if not call.server.provider.use_state(state):
        raise NotAllowed("this sign-in was already used; sign in again")
    proof = CodeProof(parts[2], _redirect_uri(call), parts[1])
    lasts = call.server.provider.settings.lasts_seconds
    try:
        identity = await call.server.provider.person_by_code(code, proof)
        text, _ = await begin_session(call, identity, TokenKind.SESSION, lasts)
    except NotAllowed:
        call.server.authenticator.note_failure(call.client)
        raise
    response = session_answer(call, text, lasts)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=call.secure)
    return response


# In a browser, behind a proxy that knows its person.


@ROUTES.add(
    "POST /login/proxy",
    _STRANGER,
    "Begin a session for the person whom a trusted proxy names.",
    root="",
    media_type="text/html",
    form=True,
    parse=lambda _: None,
    **_LIMITS,
)
async def by_proxy(call: Call) -> object:
    settings, identity = call.server.people.now.header, person_behind(call)
    if settings is None or identity is None:
        raise NotAuthenticated()
    lasts = settings.lasts_seconds
    text, _ = await begin_session(call, identity, TokenKind.SESSION, lasts)
    return session_answer(call, text, lasts)


# At a command line.


class SignInOut(Out):
    """Says how people sign in. `browser`: a browser can sign in. `device`: a command line can
    sign in with a device code (RFC 8628). The other fields are what a command line needs to
    sign in at the provider; null: there is no provider."""

    browser: bool
    issuer: str | None
    client_id: str | None
    authorization_endpoint: str | None
    scope: str | None
    device: bool


class DeviceOut(Out):
    """The codes of RFC 8628: a person types ``user_code`` at ``verification_uri``."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    expires_in: float
    interval: float


class SignedInIn(In):
    """Holds what the provider gave: ``device_code``, or ``code``; with ``code`` also the
    verifier, the redirect_uri and the nonce with which it was requested."""

    device_code: Annotated[str, msgspec.Meta(max_length=CODE_LENGTH_MAX)] | None = None
    code: Annotated[str, msgspec.Meta(max_length=CODE_LENGTH_MAX)] | None = None
    verifier: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._~-]{43,128}$")] | None = None
    redirect_uri: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    nonce: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{22,128}$")] | None = None


SignedInOut = answer(
    "SignedInOut",
    "A token for the person who signed in, shown only once; null while the provider still "
    "waits for the person; ``waits`` is then the provider's error, such as "
    "authorization_pending.",
    token=str | None,
    stored=TokenView | None,
    waits=str | None,
)


@ROUTES.add(
    "GET /sign-in",
    _STRANGER,
    "How people sign in without a token: at an identity provider, or through a proxy.",
    SignInOut,
)
async def ways(call: Call) -> object:
    now = call.server.people.now
    settings = now.oidc
    if settings is None:
        return SignInOut(now.header is not None, None, None, None, None, False)
    endpoints = await call.server.provider.endpoints()
    return SignInOut(
        True,
        settings.issuer,
        settings.client_id,
        endpoints.authorization,
        " ".join(settings.scopes),
        endpoints.device is not None,
    )


@ROUTES.add(
    "POST /sign-in/device",
    _STRANGER,
    "Begin to sign in with a device code (RFC 8628).",
    DeviceOut,
    audited=False,  # nobody is known yet, and nothing is changed here
    **_LIMITS,
)
async def begin_device(call: Call) -> object:
    call.server.authenticator.check_address(call.client)
    # As if it were wrong: each costs the provider a request, and nobody needs many.
    call.server.authenticator.note_failure(call.client)
    given = await call.server.provider.begin_device()
    try:
        return msgspec.convert(
            {"verification_uri_complete": None, "interval": 5} | given, DeviceOut
        )
    except msgspec.ValidationError as error:
        raise NotAllowed(f"the provider's answer cannot be used: {error}") from None


@ROUTES.add(
    "POST /sign-in/token",
    _STRANGER,
    "A token for the person who signed in; its text is shown only once.",
    SignedInOut,
    body=SignedInIn,
    **_LIMITS,
)
async def signed_in(call: Call) -> object:
    call.server.authenticator.check_address(call.client)
    try:
        found = await _person(call, call.body_as(SignedInIn))
        if isinstance(found, str):
            return {"token": None, "stored": None, "waits": found}
        lasts = call.server.provider.settings.lasts_seconds
        text, view = await begin_session(call, found, TokenKind.BEARER, lasts)
    except NotAllowed:
        call.server.authenticator.note_failure(call.client)
        raise
    return Answer(body=write({"token": text, "stored": view, "waits": None}))


async def _person(call: Call, given: SignedInIn) -> Identity | str:
    proof = (given.code, given.verifier, given.redirect_uri, given.nonce)
    if given.device_code is not None and proof == (None,) * len(proof):
        return await call.server.provider.person_by_device(given.device_code)
    code, verifier, redirect_uri, nonce = proof
    if given.device_code is not None or not (code and verifier and redirect_uri and nonce):
        raise BadRequest(["give device_code, or code with verifier, redirect_uri and nonce"])
    if not _LOOPBACK.fullmatch(redirect_uri):
        raise BadRequest(["redirect_uri is not http://127.0.0.1:PORT/callback"])
    return await call.server.provider.person_by_code(
        code, CodeProof(verifier, redirect_uri, nonce)
    )
