"""Asks an OpenID provider who somebody is: by a code (with PKCE), or by a device's code.

The provider is believed, and nobody between: its addresses are those of its own document, over
TLS (or on this machine), a redirect is not followed, and every answer is bounded in time and
size. An ID token counts only if a key of the provider signed it, by a method that was agreed on
here and never by the token alone, for this client, now, and for this very sign-in.

The server keeps nothing of a sign-in that is under way: what belongs to it stays in the browser
(`resources/sign_in.py`) or at the command line, so that any server can finish it.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tidewheel.core.queue.access import Identity
from tidewheel.core.queue.tokens import challenge_of
from tidewheel.credentials import is_safe_url
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.server.access_file import AccessFile, OidcSettings, identity_of
from tidewheel.server.errors import NotAllowed, ProviderUnreachable

FETCHES_MAX = 4
SOCKET_SECONDS_MAX = 5.0
FETCH_SECONDS_MAX = 10.0
ANSWER_BYTES_MAX = 256 * 1024
TOKEN_LENGTH_MAX = 32 * 1024
METADATA_SECONDS = 3600.0
PAUSE_SECONDS = 5.0  # a provider that does not answer is left alone, whoever asks
STATES_MAX = 10_000
KEYS_SECONDS_MIN = 30.0  # an unknown key has the keys fetched again, but not more often
LEEWAY_SECONDS = 60.0
RSA_BITS_MIN = 2048
# How an ID token may be signed, with the type of key that this takes. No method with a shared
# secret and no `none`: whoever can read the keys could sign with those.
ALGORITHMS = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC"}
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
WAITING = ("authorization_pending", "slow_down")  # RFC 8628, 3.5
_OK = 200
_log = logging.getLogger("tidewheel.server")
Document = dict[str, Any]


class Endpoints(NamedTuple):
    """Holds the addresses of a provider, as its own document names them."""

    authorization: str
    token: str
    keys: str
    device: str | None
    takes_basic: bool  # the client's secret in a header; else in the body


class CodeProof(NamedTuple):
    """Holds what goes with a code: the verifier of PKCE, where it was sent, and the nonce."""

    verifier: str
    redirect_uri: str
    nonce: str


@dataclass(slots=True)
class _Known:
    """Holds what was fetched of one provider."""

    settings: OidcSettings
    endpoints: Endpoints
    fetched_at: float
    keys: list[Document]
    keys_at: float


class Provider:
    """Asks the provider that the access file names."""

    def __init__(self, people: AccessFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._people, self._clock = people, clock
        self._known: _Known | None = None
        self._places = asyncio.Semaphore(FETCHES_MAX)
        self._discovery = asyncio.Lock()
        self._failed: tuple[float, str] | None = None  # until when it is not asked again, why
        self._used: dict[str, None] = {}  # states of sign-ins that came back

    def use_state(self, state: str) -> bool:
        """Notes that a sign-in came back; returns False if it did before. Another server does
        not know it, but there the code, too, is used up: the provider takes it once."""
        if state in self._used:
            return False
        self._used[state] = None
        while len(self._used) > STATES_MAX:
            del self._used[next(iter(self._used))]
        return True

    @property
    def settings(self) -> OidcSettings:
        """Returns the provider's settings; raises NotFound if there is none."""
        found = self._people.now.oidc
        if found is None:
            raise NotFound("sign-in", "oidc")
        return found

    async def endpoints(self) -> Endpoints:
        """Returns the addresses of the provider."""
        return (await self._provider()).endpoints

    async def authorization_url(self, state: str, proof: CodeProof) -> str:
        """Returns where a browser is sent to sign in."""
        settings = self.settings
        address = (await self.endpoints()).authorization
        asked = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": proof.redirect_uri,
            "scope": " ".join(settings.scopes),
            "state": state,
            "nonce": proof.nonce,
            "code_challenge": challenge_of(proof.verifier),
            "code_challenge_method": "S256",
        }
        return address + ("&" if urlsplit(address).query else "?") + urlencode(asked)

    async def person_by_code(self, code: str, proof: CodeProof) -> Identity:
        """Returns who signed in, for the code that the provider sent; raises NotAllowed for a
        code that the provider does not take, and for an ID token that is not right."""
        settings = self.settings
        known = await self._provider()
        status, answer = await self._ask_token(
            known,
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": proof.redirect_uri,
                "code_verifier": proof.verifier,
            },
        )
        if status != _OK:
            raise _refused(f"the provider does not accept the code ({_error_in(answer)})")
        return _identity(settings, await self._claims(known, answer, proof.nonce))

    async def begin_device(self) -> Document:
        """Returns the codes for a sign-in in another browser (RFC 8628)."""
        settings, known = self.settings, await self._provider()
        if known.endpoints.device is None:
            raise NotFound("sign-in", "device")
        form = {"client_id": settings.client_id, "scope": " ".join(settings.scopes)}
        status, answer = await self._fetch(
            settings, known.endpoints.device, *_authenticated(settings, known, form)
        )
        if status != _OK or not isinstance(answer.get("device_code"), str):
            raise _refused(f"the provider did not issue a device code ({_error_in(answer)})")
        return answer

    async def person_by_device(self, device_code: str) -> Identity | str:
        """Returns who signed in, or as a text that the provider still waits for the person."""
        settings, known = self.settings, await self._provider()
        status, answer = await self._ask_token(
            known, {"grant_type": DEVICE_GRANT, "device_code": device_code}
        )
        error = _error_in(answer)
        if status != _OK and error in WAITING:
            return error
        if status != _OK:
            raise _refused(f"the provider does not accept the device code ({error})")
        return _identity(settings, await self._claims(known, answer, None))

    # ---- what is fetched, and for how long it is believed ----

    async def _provider(self) -> _Known:
        settings = self.settings
        async with self._discovery:  # one asks, whoever else waits takes what it found
            now, known = self._clock(), self._known
            is_fresh = known is not None and now - known.fetched_at < METADATA_SECONDS
            if known is not None and is_fresh and known.settings == settings:
                return known
            if self._failed is not None and now < self._failed[0]:
                raise ProviderUnreachable(self._failed[1])
            try:
                self._known = await self._discovered(settings, now)
            except ProviderUnreachable as error:
                self._failed = (self._clock() + PAUSE_SECONDS, str(error))
                raise
            return self._known

    async def _discovered(self, settings: OidcSettings, now: float) -> _Known:
        address = settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        status, found = await self._fetch(settings, address)
        if status != _OK:
            raise ProviderUnreachable(f"{address} answered {status}")
        endpoints = _endpoints(settings, found)
        keys = await self._fetch_keys(settings, endpoints)
        return _Known(settings, endpoints, now, keys, now - KEYS_SECONDS_MIN)

    async def _fetch_keys(self, settings: OidcSettings, endpoints: Endpoints) -> list[Document]:
        status, found = await self._fetch(settings, endpoints.keys)
        keys = found.get("keys")
        if status != _OK or not isinstance(keys, list):
            raise ProviderUnreachable(f"{endpoints.keys} answered {status}, without keys")
        return [key for key in keys if isinstance(key, dict)]

    async def _claims(self, known: _Known, answer: Document, nonce: str | None) -> Document:
        token = answer.get("id_token")
        if not isinstance(token, str) or len(token) > TOKEN_LENGTH_MAX:
            raise _refused("the provider's answer has no ID token")
        key = _key_for(token, known.keys)
        if key is None and self._clock() - known.keys_at >= KEYS_SECONDS_MIN:
            known.keys_at = self._clock()
            known.keys = await self._fetch_keys(known.settings, known.endpoints)
            key = _key_for(token, known.keys)
        if key is None:
            raise _refused("no key of the provider matches the ID token, or several do")
        return read_id_token(token, key, known.settings, nonce)

    async def _ask_token(self, known: _Known, form: dict[str, str]) -> tuple[int, Document]:
        form["client_id"] = known.settings.client_id
        sent = _authenticated(known.settings, known, form)
        return await self._fetch(known.settings, known.endpoints.token, *sent)

    async def _fetch(
        self,
        settings: OidcSettings,
        url: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Document]:
        async with self._places:
            try:
                return await asyncio.to_thread(_exchange, settings.ca, url, form, headers or {})
            except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
                _log.warning("sign-in: %s: %s", urlsplit(url).netloc, error)
                host = urlsplit(url).netloc
                raise ProviderUnreachable(
                    f"the provider {host} gave no usable answer; the server's log says why"
                ) from error


def _endpoints(settings: OidcSettings, found: Document) -> Endpoints:
    """Returns the addresses in a provider's document; raises ProviderUnreachable if it is
    another's, or if they could be read or answered by others."""
    if found.get("issuer") != settings.issuer:
        raise ProviderUnreachable(
            f"the provider calls itself {str(found.get('issuer'))[:200]!r}; "
            f"the access file says {settings.issuer!r}"
        )
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    given = [found.get(name) for name in names]
    device = found.get("device_authorization_endpoint")
    for address in (*given, *(() if device is None else (device,))):
        is_local = isinstance(address, str) and address.startswith("http:")
        is_safe = isinstance(address, str) and is_safe_url(address)
        if not is_safe or (is_local and not settings.issuer.startswith("http:")):
            raise ProviderUnreachable(
                f"the provider names the endpoint {str(address)[:200]!r}; expected https://…"
            )
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    takes_basic = isinstance(methods, list) and "client_secret_basic" in methods
    authorization, token, keys = map(str, given)
    return Endpoints(authorization, token, keys, device, takes_basic)


def _authenticated(
    settings: OidcSettings, known: _Known, form: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns a form and the headers with which this client sends it (RFC 6749, 2.3.1)."""
    secret = settings.client_secret
    if secret is None:
        return dict(form), {}
    if not known.endpoints.takes_basic:
        return {**form, "client_secret": secret}, {}
    pair = f"{quote(settings.client_id, safe='')}:{quote(secret, safe='')}"
    return dict(form), {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _exchange(
    ca: str | None, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str]
) -> tuple[int, Document]:
    """Returns status and document of one answer; blocks its thread, but not for ever."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if not is_safe_url(url):
        raise ValueError(f"{url!r} is not https")
    connection = http.client.HTTPConnection(host, port, timeout=SOCKET_SECONDS_MAX)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection(
            host, port, timeout=SOCKET_SECONDS_MAX, context=context
        )
    body = None if form is None else urlencode(form)
    kind = {} if form is None else {"Content-Type": "application/x-www-form-urlencoded"}
    told = {"Accept": "application/json", "User-Agent": "tidewheel", "Connection": "close"}
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        # One that sends a byte from time to time would never be too slow for the socket.
        end = threading.Timer(FETCH_SECONDS_MAX, _hang_up, [connection.sock])
        end.daemon = True
        end.start()
        try:
            method = "GET" if form is None else "POST"
            connection.request(method, path, body, {**told, **kind, **headers})
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX + 1)
        finally:
            end.cancel()
    finally:
        connection.close()
    if len(content) > ANSWER_BYTES_MAX:
        raise ValueError(f"the answer has more than {ANSWER_BYTES_MAX} bytes")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("the answer is not a JSON object")
    return answer.status, found


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _error_in(answer: Document) -> str:
    error = answer.get("error")
    return error[:100] if isinstance(error, str) and error.isprintable() else "no reason given"


def _refused(why: str) -> NotAllowed:
    return NotAllowed(f"signing in was refused: {why}; sign in again")


# ID tokens.


def _key_for(token: str, keys: list[Document]) -> Document | None:
    """Returns the only key of the provider that can have signed a token; None without one."""
    import jwt

    try:
        head = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise _refused("the ID token cannot be read") from None
    method, name = head.get("alg"), head.get("kid")
    if method not in ALGORITHMS:
        accepted = ", ".join(ALGORITHMS)
        raise _refused(f"the ID token is signed with {str(method)[:20]!r}, not with {accepted}")
    fitting = [
        {**key, "alg": method}
        for key in keys
        if key.get("kty") == ALGORITHMS[method]
        and key.get("use", "sig") == "sig"
        and key.get("alg", method) == method
        and (name is None or key.get("kid") == name)
    ]
    return fitting[0] if len(fitting) == 1 else None


def read_id_token(
    token: str, key: Document, settings: OidcSettings, nonce: str | None
) -> Document:
    """Returns the claims of an ID token; raises NotAllowed unless it was signed with this key,
    by this provider, for this client, now, and for the sign-in of this nonce (None: a sign-in
    that has none, because the token came straight from the provider)."""
    import jwt

    try:
        public = jwt.PyJWK(key, algorithm=key["alg"])
        if getattr(public.key, "key_size", 0) < RSA_BITS_MIN and key["kty"] == "RSA":
            raise _refused(f"the provider's key has fewer than {RSA_BITS_MIN} bits")
        claims: Document = jwt.decode(
            token,
            key=public.key,
            algorithms=[key["alg"]],
            audience=settings.client_id,
            issuer=settings.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        _log.warning("sign-in: an ID token was refused: %s", error)
        raise _refused(f"the ID token is not valid: {error}"[:300]) from None
    audience = claims["aud"]
    azp = claims.get("azp")
    is_for_others = isinstance(audience, list) and len(audience) > 1
    if (azp is not None or is_for_others) and azp != settings.client_id:
        raise _refused("the ID token was made for another client")
    said = claims.get("nonce")
    if nonce is not None and not (
        isinstance(said, str) and hmac.compare_digest(said.encode(), nonce.encode())
    ):
        raise _refused("the ID token belongs to another sign-in")
    return claims


def _identity(settings: OidcSettings, claims: Document) -> Identity:
    """Returns the person that an ID token names; raises NotAllowed for one without a name."""
    claim = settings.person_claim
    if claim == "email" and claims.get("email_verified") is not True:
        # Else people could give themselves the address of somebody else.
        raise _refused(
            "the provider has not verified your e-mail address; verify it there, or ask an "
            "admin of this server to set another person_claim"
        )
    groups = claims.get(settings.groups_claim)
    listed = [groups] if isinstance(groups, str) else groups
    found = identity_of(settings.issuer, claims.get(claim), listed)
    if found is None:
        raise _refused(
            f"the ID token names no person: its claim {claim!r} is missing or is not a name"
        )
    return found
