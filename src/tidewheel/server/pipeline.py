"""Takes every request through the same steps: identify, read, judge, do, audit, answer.

The order matters. Who calls is asked before the body is read, so that strangers cost little;
what the request concerns is judged before anything is done; what was done is in the audit
before the caller hears of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, Response

from tidewheel.config import ServerSettings
from tidewheel.core.queue.access import BY_HEADER, Scope, TokenKind, TokenView
from tidewheel.errors import NotFound, TidewheelError
from tidewheel.ports.store import Store
from tidewheel.server import errors as problems
from tidewheel.server.access_file import AccessFile, person_behind
from tidewheel.server.audit_log import AuditLog
from tidewheel.server.auth import Authenticator, csrf_token, is_job_token, shown_by
from tidewheel.server.call import Answer, Call, JsonResponse, Request, ServerParts
from tidewheel.server.event_broadcaster import EventBroadcaster
from tidewheel.server.load_shedding import (
    Admission,
    Quotas,
    RequestSlot,
    ReservedConnections,
    Urgency,
    holders_of,
)
from tidewheel.server.metrics import Metrics
from tidewheel.server.middleware import EXCHANGE, GONE, KNOWN
from tidewheel.server.oidc import Provider
from tidewheel.server.request_batches import GatheredRequests
from tidewheel.server.routes import Needs, Route
from tidewheel.server.run_services import RunServices
from tidewheel.server.static_page import login_needed, refused_page
from tidewheel.server.time_limits import TimeLimits
from tidewheel.server.validation import read, read_query
from tidewheel.views.events import EventDocuments

KEY_LENGTH_MAX = 256
KEPT_BYTES_MAX = 256 * 1024
LONG_BYTES = 32 * 1024
CALLER_GONE = 499  # nobody will read it
SERVER_MISTAKE = 500
UNCOUNTED = (Urgency.REPORT, Urgency.CLAIM)  # no quota keeps workers from their work
_REFUSALS = (problems.NotAllowed, problems.NotAuthenticated, problems.TooManyFailures)
_log = logging.getLogger("tidewheel.server")


class Pipeline:
    """Answers requests for the routes of one table."""

    def __init__(
        self,
        store: Store,
        settings: ServerSettings,
        routes: tuple[Route, ...],
        *,
        reserve: ReservedConnections | None = None,
        metrics: Metrics | None = None,
        connections: Callable[[], int] = lambda: 0,
    ) -> None:
        self.audit = AuditLog(store)
        self.stopping = asyncio.Event()
        self._store, self._settings, self.routes = store, settings, routes
        self._reserve = reserve or ReservedConnections(asking=store, reporting=store)
        self._people = AccessFile(settings.access_file)
        self._authenticator = Authenticator(self._reserve, settings, people=self._people)
        self._admission = Admission(settings, connections)
        self._quotas = Quotas(settings)
        self._keys, self._limits = IdempotencyLocks(), TimeLimits()
        self._metrics = metrics or Metrics()
        self._metrics.watch(self._admission, connections)
        self._metrics.quotas = self._quotas
        self._doors = RunServices(settings, self._reserve.where)
        documents = EventDocuments(store, settings.state_directory, self._doors.read)
        self._parts = ServerParts(
            asking=self._reserve.asking,
            settings=settings,
            metrics=self._metrics,
            hub=EventBroadcaster(
                store, documents, self._authenticator, self._metrics, self.stopping
            ),
            services=self._doors,
            gathered=GatheredRequests(
                self._reserve.asking, store, self._reserve.reporting, self.audit.wrote
            ),
            quotas=self._quotas,
            authenticator=self._authenticator,
            stopping=self.stopping,
            routes=routes,
            people=self._people,
            provider=Provider(self._people),
        )

    async def begin(self) -> None:
        """Says that this server runs; raises BadSetting if it may not beside others."""
        await self._authenticator.key.begin()

    async def end(self) -> None:
        """Says that this server has stopped, and writes what is left for the audit."""
        await self.audit.close()
        await self._authenticator.key.close()

    def close(self) -> None:
        """Stops the thread in which views are worked out, and the processes for giants."""
        self._doors.close()

    async def answer(self, route: Route, request: Request) -> Response:
        """Returns the answer to one request; whatever goes wrong becomes an answer, too."""
        started = time.monotonic()
        correlation = problems.random_id()
        place: RequestSlot | None = None
        seconds_max = route.seconds_max or self._settings.request_seconds_max
        try:
            with self._limits.within(seconds_max) as limit:
                place = self._admission.admit(route.rank, request.host, is_open=route.is_open)
                place.end_by(limit, is_read=not (route.changes or route.is_open))
                stop_watching = _watch(request, place)
                try:
                    call = self._call(route, request, correlation, place)
                    try:
                        response = await self._let_in(route, request, call)
                    except _REFUSALS as no:
                        await self._note_refusal(route, request, call, no)
                        raise
                finally:
                    stop_watching()
                    place.close()
        except TimeoutError:
            response = problems.error_response(problems.TookTooLong(), correlation)
            if place is not None and place.is_gone:
                response = Response(status_code=CALLER_GONE)
        except TidewheelError as error:
            response = problems.error_response(error, correlation)
            accepted = request.headers.get("accept", "")
            if route.media_type == "text/html" and "text/html" in accepted:  # for people
                is_unknown = isinstance(error, problems.NotAuthenticated)
                told = (
                    login_needed(self._people.now) if is_unknown else refused_page(str(error))
                )
                response = HTMLResponse(told, response.status_code)
        except ClientDisconnect:
            response = Response(status_code=CALLER_GONE)
        except Exception:
            _log.exception("request %s: %s failed", correlation, route.verb)
            response = problems.plain(
                SERVER_MISTAKE,
                "internal",
                "this is an error in the server, not in your request",
                correlation,
            )
        response.raw_headers.append((b"x-request-id", correlation.encode()))
        self._metrics.count(route.verb, response.status_code, time.monotonic() - started)
        return response

    async def _note_refusal(
        self, route: Route, request: Request, call: Call, no: TidewheelError
    ) -> None:
        if _leaves_trace(route, request, no):
            by = call.client if call.token is None else call.token.number
            await self.audit.refused(call.entry(no.http_status), by)

    async def _let_in(self, route: Route, request: Request, call: Call) -> Response:
        if isinstance(route.guard, Needs) and not self._is_believed(
            route, route.guard, request, call
        ):
            await self._identify(route, route.guard, request, call)
        is_counted = self._is_counted(route, request, call)
        _read_parameters(route, request, call)
        if route.changes:
            if not self._receive(route, request, call):
                call.raw = await self._streamed(route, request)
            _require_media_type(route, request, call)
            if call.raw and is_counted:
                self._quotas.take("bytes", call.token, len(call.raw))
        call.place.take()  # only now: a slow sender must not keep others out
        if route.changes and not route.raw:
            is_long = route.parse is not None and len(call.raw) > LONG_BYTES
            # Heartbeats need not wait until it is read; what workers report is read quickly.
            call.body = (
                await asyncio.to_thread(_parsed, route, call)
                if is_long
                else _parsed(route, call)
            )
        if isinstance(route.guard, Needs):
            await self._judged(route.guard, call)
        if not route.changes:
            return _response(route, await route.handler(call))
        if call.key is None or call.token is None:
            return await self._done(route, call)
        return await self._done_once(route, request, call, call.token, call.key)

    def _is_counted(self, route: Route, request: Request, call: Call) -> bool:
        """Counts a request of a caller who is known now, or may be anybody; returns whether
        quotas are for it."""
        if call.token is not None:
            queue = None if call.job is None else call.job.task.queue
            call.place.is_known(holders_of(call.token, queue))
            # Requests may come without a connection of this server.
            request.scope.get("extensions", _NONE).get(KNOWN, _NOWHERE)["call"]()
        is_counted = route.rank not in UNCOUNTED or not _is_worker(route, call)
        if is_counted and route.rank is Urgency.REPORT and call.job is None:
            call.place.is_no_report()
            call.store = self._store
        if is_counted:
            self._quotas.take("requests", call.token)
        return is_counted

    async def _judged(self, guard: Needs, call: Call) -> None:
        """Judges a call. To whoever may not see everything, what is another's is not there:
        that the caller asked for it is written down, as every refusal is, whatever it was."""
        try:
            if call.job is None and guard.narrow is None and not call.rules:
                # What it needs was required when the caller was identified.
                await _judge_names(call, guard)
            else:
                await _judge(call, guard)
        except NotFound as unknown:
            if not call.grant.covers_everything and call.token is not None:
                by = (call.token.number, unknown.code)
                await self.audit.refused(call.entry(unknown.http_status), by)
            raise

    def _is_believed(self, route: Route, guard: Needs, request: Request, call: Call) -> bool:
        """Identifies a caller whose token was found valid a moment ago; False: nobody was
        identified, ask ``_identify``."""
        shown = shown_by(request)
        if is_job_token(shown.text):
            return False
        token = self._authenticator.believed(shown)
        if token is None:
            return False
        self._let_speak(token, route, guard, request, call)
        return True

    async def _identify(self, route: Route, guard: Needs, request: Request, call: Call) -> None:
        shown = shown_by(request)
        if shown.text is not None and is_job_token(shown.text):
            call.job = await self._authenticator.job_of(shown.text, call.client)
            call.token = call.job.caller
            if guard.job is None:
                raise problems.NotAllowed(
                    "the token of a job is only for its messages, and for its task and its run"
                )
            return
        token = await self._authenticator.token_of(shown, call.client)
        self._let_speak(token, route, guard, request, call)

    def _let_speak(
        self, token: TokenView, route: Route, guard: Needs, request: Request, call: Call
    ) -> None:
        """Notes whose token a caller has shown; raises if it is not for this kind of
        request."""
        call.token = token
        if token.identity is not None:
            self._recognise(call)
        if route.changes and call.token.kind is TokenKind.SESSION:
            _require_csrf(request, call.token)
        if call.rules:
            call.choose_rules(guard.scopes)
        _require_scope(call, guard.scopes)

    def _recognise(self, call: Call) -> None:
        """Finds the rules of a person who signed in, as the access file has them now; raises
        NotAuthenticated if there are none left."""
        assert call.token is not None
        identity = call.token.identity
        assert identity is not None
        if identity.source == BY_HEADER:
            # The proxy says with every request who is calling, and in which groups.
            told = person_behind(call)
            if told is None or told.person != identity.person:
                raise problems.NotAuthenticated()
            identity = told
        call.rules = self._people.rules_for(identity)
        if not call.rules:
            raise problems.NotAuthenticated()
        call.token = replace(call.token, identity=identity)

    def _call(
        self, route: Route, request: Request, correlation: str, place: RequestSlot
    ) -> Call:
        reports = route.rank is Urgency.REPORT
        named = request.scope["path_params"]
        return Call(
            server=self._parts,
            store=self._reserve.reporting if reports else self._store,
            place=place,
            request=request,
            verb=route.verb,
            is_audited=route.audited,
            path=named
            if "%" not in request.scope["path"]
            else {name: unquote(text) for name, text in named.items()},
            client=request.host,
            correlation=correlation,
        )

    def _receive(self, route: Route, request: Request, call: Call) -> bool:
        """Reads the idempotency key and the body into the call; returns False if the body has
        not come as a whole."""
        given = request.first(b"idempotency-key")
        if given is not None:
            key = given.decode("latin-1")
            if not (0 < len(key) <= KEY_LENGTH_MAX and key.isprintable()):
                raise problems.BadRequest(
                    [
                        f"Idempotency-Key has {len(key)} characters, or some that are not "
                        f"printable; expected 1 to {KEY_LENGTH_MAX} printable characters"
                    ]
                )
            call.key = key if call.job is None else call.job.key(key)
        limit = route.body_bytes_max or self._settings.body_bytes_max
        if int(request.first(b"content-length") or 0) > limit:
            raise problems.BodyTooLarge(limit)
        exchange = request.scope.get(EXCHANGE)
        whole = None if exchange is None else exchange.body()
        if whole is None:
            return False
        if len(whole) > limit:
            raise problems.BodyTooLarge(limit)
        call.raw = whole
        return True

    async def _streamed(self, route: Route, request: Request) -> bytes:
        """Returns a body that comes piece by piece."""
        limit = route.body_bytes_max or self._settings.body_bytes_max
        seconds_max = route.body_seconds_max or self._settings.body_seconds_max
        parts, size = [], 0
        try:
            async with asyncio.timeout(seconds_max):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise problems.BodyTooLarge(limit)
                    parts.append(part)
        except TimeoutError:
            raise problems.TooSlow(problems.TooSlow.__doc__) from None
        return b"".join(parts)

    # ---- requests that change something ----

    async def _done_once(
        self, route: Route, request: Request, call: Call, token: TokenView, key: str
    ) -> Response:
        """Does what a request asks for, unless it was done before for the same key."""
        # Not the host: the same request may come again by another server.
        said = (
            request.method,
            request.scope["path"],
            request.scope["query_string"].decode("latin-1"),
        )
        whole = "\0".join(said).encode() + b"\0" + call.raw
        call.fingerprint = hashlib.sha256(whole).hexdigest()
        async with self._keys.alone(token.number, key, call.place):
            kept = await self._store.kept_answer(token.number, key)
            if kept is None:
                return await self._done(route, call)
            if kept.fingerprint != call.fingerprint:
                raise problems.KeyReused(key)
            headers = {"idempotency-replayed": "true"}
            return Response(kept.body, kept.status, headers, media_type="application/json")

    async def _done(self, route: Route, call: Call) -> Response:
        try:
            response = _response(route, await route.handler(call))
        except (problems.NotAllowed, problems.NotAuthenticated):
            raise  # written down as every refusal is
        except TidewheelError as error:
            await self._write_down(call, error.http_status)
            raise
        except (ClientDisconnect, asyncio.CancelledError):
            # Its caller is gone, or its time is up: what was done by then is not known.
            timed_out = problems.TookTooLong.http_status
            await self._write_down(call, CALLER_GONE if call.place.is_gone else timed_out)
            raise
        except Exception:
            await self._write_down(call, SERVER_MISTAKE)
            raise
        if response.status_code != call.audited_status:
            await self._write_down(call, response.status_code)
        if call.key is not None and len(response.body) <= KEPT_BYTES_MAX:
            kept = call.kept_answer(response.status_code, bytes(response.body))
            if kept is not None:
                await self._store.keep_answer(kept)
        return response

    async def _write_down(self, call: Call, status: int) -> None:
        if call.is_audited and call.token is not None and not call.only_tried:
            await self.audit.add(call.entry(status))


def _watch(request: Request, place: RequestSlot) -> Callable[[], object]:
    """Tells the place of a request if its caller hangs up; returns how to stop that."""
    # Requests may come without a connection of this server.
    gone = request.scope.get("extensions", _NONE).get(GONE)
    if gone is None:
        return _nothing
    stop: Callable[[], object] = gone["call"](place.hang_up)
    return stop


def _nothing() -> None:
    """Does nothing."""


_NONE: dict[str, dict[str, Any]] = {}
_NOWHERE: dict[str, Any] = {"call": _nothing}


def _leaves_trace(route: Route, request: Request, refusal: TidewheelError) -> bool:
    """Says whether a refusal is for the audit. It is not if the caller showed no token at all,
    or that of a job whose attempt is over."""
    if isinstance(refusal, problems.AttemptOver):
        return False
    shown = shown_by(request)
    return shown.text is not None or not isinstance(route.guard, Needs)


def _read_parameters(route: Route, request: Request, call: Call) -> None:
    """Reads the parameters of the URL into the call."""
    is_asked = bool(request.scope["query_string"])
    if route.query is not None:
        given = request.query_params.multi_items() if is_asked else ()
        call.query = read_query(given, route.query)
    elif is_asked and request.query_params and not route.page:
        raise problems.BadRequest(
            [f"there is no parameter {next(iter(request.query_params))!r}"]
        )


def _parsed(route: Route, call: Call) -> object:
    if route.parse is not None:
        return route.parse(call)
    if route.body is not None:
        assert isinstance(route.body, type) and issubclass(route.body, msgspec.Struct)
        return read(call.raw or b"{}", route.body)
    if call.raw.strip() not in (b"", b"{}"):
        raise problems.BadRequest(["this request takes no body"])
    return None


def _is_worker(route: Route, call: Call) -> bool:
    """Says whether a worker calls. A job that speaks for itself is none, nor is who may not
    report but only amend."""
    scopes = route.guard.scopes if isinstance(route.guard, Needs) else ()
    may_report = Scope.WORKER not in scopes or call.allows((Scope.WORKER,))
    return may_report and call.job is None


def _require_scope(call: Call, scopes: tuple[Scope, ...]) -> None:
    if not call.allows(scopes):
        has = ", ".join(sorted(call.grant.scopes))
        raise problems.NotAllowed(
            f"this needs a token with scope {' or '.join(scopes)}; this token has {has}"
        )


async def _judge(call: Call, guard: Needs) -> None:
    if call.job is not None:
        assert guard.job is not None, "it was let in without a rule"
        await guard.job(call)
        return
    wanted = guard.scopes if guard.narrow is None else guard.narrow(call)
    if not call.rules:
        return await _judge_by(call, guard, wanted)
    # A person may have several scopes, each for names of its own: one that fits is enough.
    for scope in wanted[:-1]:
        with suppress(problems.NotAllowed, NotFound):
            return await _judge_by(call, guard, (scope,))
    await _judge_by(call, guard, wanted[-1:])


async def _judge_by(call: Call, guard: Needs, scopes: tuple[Scope, ...]) -> None:
    call.choose_rules(scopes)
    _require_scope(call, scopes)
    await _judge_names(call, guard)


async def _judge_names(call: Call, guard: Needs) -> None:
    call.require(await guard.names(call))
    if guard.worker is not None and (worker := guard.worker(call)) is not None:
        await call.require_worker(worker)


def _require_csrf(request: Request, session: TokenView) -> None:
    """Raises NotAllowed for a change in a session without the right header X-CSRF-Token.

    A browser sends the cookie with requests that other sites make it send, but not this header.
    """
    given = request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(given.encode(), csrf_token(session).encode()):
        raise problems.NotAllowed(
            "a change in a browser's session needs the header X-CSRF-Token with the value of "
            "csrf from GET /api/v1/session"
        )


def _require_media_type(route: Route, request: Request, call: Call) -> None:
    """Raises WrongMediaType for a body of another kind; this is a defence as well, because a
    form of another site can send no JSON (S8)."""
    if not route.raw and (route.form or not call.raw):
        return
    accepted = route.raw or _JSON_ONLY
    kind = (request.first(b"content-type") or b"").decode("latin-1")
    if kind not in accepted and kind.partition(";")[0].strip().lower() not in accepted:
        raise problems.WrongMediaType(accepted)


_JSON_ONLY = ("application/json",)
_TEXTS = (str, bytes)
_encode = msgspec.json.Encoder().encode


def _response(route: Route, outcome: object) -> Response:
    if isinstance(outcome, Response):
        return outcome
    if not isinstance(outcome, Answer):
        if not isinstance(outcome, _TEXTS):
            return JsonResponse(_encode(outcome), route.status)
        outcome = Answer(body=outcome, status=route.status)
    answer, body = outcome, outcome.body
    if not isinstance(body, _TEXTS):
        body = _encode(body)
        if answer.media_type == JsonResponse.media_type and not answer.headers:
            return JsonResponse(body, answer.status)
    return Response(body, answer.status, dict(answer.headers), media_type=answer.media_type)


# Requests with the same idempotency key come one after the other.
#
# A client that got no answer in time sends the same again while the first is still at work. The
# second request waits, and gets the answer of the first, instead of being done beside it.


class IdempotencyLocks:
    """Holds the locks of idempotency keys in one server; other servers have their own."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, str], asyncio.Lock] = {}
        self._users: Counter[tuple[int, str]] = Counter()

    @asynccontextmanager
    async def alone(self, token: int, key: str, place: RequestSlot) -> AsyncIterator[None]:
        """Waits until no other request works with this key; meanwhile the request does not
        count as under way."""
        name = (token, key)
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] += 1
        try:
            with place.resting():
                await lock.acquire()
            try:
                yield
            finally:
                lock.release()
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]
