"""Holds the errors that only a server raises, and turns each error into a problem.

The tree of errors is in ``tidewheel.errors``; each says the HTTP status that stands for it. A
client makes the same error of a problem again (``store.remote.transport``).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from tidewheel.api.wire import Out
from tidewheel.core.graph.findings import InvalidDefinition, finding_document
from tidewheel.errors import (
    Refused,
    StoreUnreachable,
    StoreUnusable,
    TidewheelError,
    Unavailable,
    WrongStatus,
)


class BadRequest(Refused):
    """The request breaks one or more rules."""

    code = "invalid"
    http_status = 422

    def __init__(self, findings: Iterable[str]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(self.findings))


class BadBody(Refused):
    """The body cannot be read at all."""

    code = "bad_json"
    http_status = 400


class WrongMediaType(Refused):
    """The body is of a kind that is not accepted here."""

    code = "wrong_media_type"
    http_status = 415

    def __init__(self, accepted: Iterable[str]) -> None:
        super().__init__(f"send the header Content-Type: {' or '.join(accepted)}")


class BodyTooLarge(Refused):
    """The body has more bytes than the server accepts."""

    code = "too_large"
    http_status = 413

    def __init__(self, size_max: int) -> None:
        super().__init__(
            f"the body has more than {size_max} bytes; send less, or in several requests"
        )


class TooSlow(Refused):
    """The body did not arrive in time."""

    code = "too_slow"
    http_status = 408


class NotAuthenticated(Refused):
    """The credentials of a request are missing or not valid."""

    code = "unauthenticated"
    http_status = 401

    def __init__(self) -> None:
        # The same words for every reason: which it was is nobody's business.
        super().__init__(
            "this needs a valid token; send the header Authorization: Bearer TOKEN "
            "(tidewheel token create makes one)"
        )


class AttemptOver(NotAuthenticated):
    """A job speaks whose attempt has no lease any more."""

    code = "attempt_over"

    def __init__(self) -> None:
        Refused.__init__(
            self,
            "this token belongs to an attempt that has ended or lost its lease; end this job: "
            "nothing that it sends is accepted",
        )


class NotAllowed(Refused):
    """The caller is known, but may not do this."""

    code = "forbidden"
    http_status = 403


class TooManyFailures(Refused):
    """Too many wrong tokens came from this address."""

    code = "too_many_failures"
    http_status = 429

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"too many wrong tokens came from this address; try again in {seconds:.0f} s"
        )


class QuotaSpent(Refused):
    """A queue, a token or a team has had more than this server gives it in the time."""

    code = "quota"
    http_status = 429

    def __init__(
        self, whose: str, per_second: float, seconds: float, unit: str = "tasks"
    ) -> None:
        self.seconds = seconds
        super().__init__(
            f"{whose}: the quota of {per_second:g} {unit} per second is spent; "
            f"try again in {seconds:.1f} s"
        )


class StreamsHeld(QuotaSpent):
    """A token holds as many streams of events open as it may."""

    def __init__(self, name: str, count_max: int) -> None:
        self.seconds = 1.0
        Refused.__init__(
            self,
            f"token {name!r} has {count_max} open streams of events, which is its maximum; "
            "close one of them, or read several kinds of events from one stream",
        )


class KeyReused(Refused):
    """An idempotency key was used for another request before."""

    code = "key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Idempotency-Key {key!r} was used for another request; use a new key for each "
            "request"
        )


class Overloaded(Unavailable):
    """The server has too much to do; try again soon."""

    code = "overloaded"


class ProviderUnreachable(Unavailable):
    """The identity provider did not answer as it should."""

    code = "provider_unreachable"


class TookTooLong(Unavailable):
    """The store did not answer in time; it is not known whether the request was carried out."""

    code = "timed_out"


# Problems: how an error is told to callers, without anything about the inside of the server.

MEDIA_TYPE = "application/problem+json"
NOT_FOUND = 404
METHOD_NOT_ALLOWED = 405
RETRY_SECONDS_MAX = 3
MESSAGE_LENGTH_MAX = 2_000
DETAILS_BYTES_MAX = 64 * 1024


class FindingOut(Out):
    """A mistake in a definition, or a remark about it, and where it is."""

    severity: str  # error, warning, note
    code: str
    message: str
    hint: str
    file: str | None
    line: int | None
    column: int | None


class Problem(Out):
    """The answer to a request that failed: its status is 400 or more."""

    code: str  # one word, for programs
    message: str  # a sentence or two, for people
    status: int
    id: str  # the server's log has the same
    allowed: tuple[str, ...] = ()  # the statuses that would have been accepted
    findings: tuple[str | FindingOut, ...] = ()  # everything that is wrong with the request
    # The parts of the message, by name, as far as there are any.
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def problem(error: TidewheelError, correlation: str) -> Problem:
    """Returns the problem that tells callers of an error."""
    code, message = error.code, str(error) or (error.__doc__ or "")
    if isinstance(error, WrongStatus) and error.status == "cancelled":
        code = "cancelled"
    if isinstance(error, StoreUnreachable | StoreUnusable):
        # The words of a driver may hold addresses, users and paths.
        message = "the store does not answer; try again soon"
    findings: Iterable[str | FindingOut] = getattr(error, "findings", ())
    if isinstance(error, InvalidDefinition):
        found = map(finding_document, error.findings)
        findings = [msgspec.convert(one, FindingOut) for one in found]
    return Problem(
        code=code,
        message=message[:MESSAGE_LENGTH_MAX],
        status=error.http_status,
        id=correlation,
        allowed=error.allowed if isinstance(error, WrongStatus) else (),
        findings=tuple(findings),
        details=_details(error),
    )


def _details(error: TidewheelError) -> dict[str, Any]:
    """Returns the attributes of a refusal, from which a client raises the same error; {} for
    other errors, for InvalidDefinition (its findings are sent apart), or if they are too
    large."""
    if not isinstance(error, Refused) or isinstance(error, InvalidDefinition):
        return {}
    details = msgspec.to_builtins(vars(error), enc_hook=str)
    return details if len(msgspec.json.encode(details)) <= DETAILS_BYTES_MAX else {}


def response(told: Problem, headers: dict[str, str] | None = None) -> Response:
    """Returns the response that tells a caller of a problem."""
    return Response(
        msgspec.json.encode(told), told.status, headers or {}, media_type=MEDIA_TYPE
    )


def error_response(error: TidewheelError, correlation: str) -> Response:
    """Returns the response for an error, with the headers that belong to it."""
    headers = {}
    # Clients that were turned away come back at different times, not all at once.
    jitter = random.randint(1, RETRY_SECONDS_MAX)
    match error:
        case NotAuthenticated():
            headers["www-authenticate"] = 'Bearer realm="tidewheel"'
        case TooManyFailures():
            headers["retry-after"] = str(int(error.seconds) + 1)
        case QuotaSpent():
            headers["retry-after"] = str(int(error.seconds) + jitter)
        case Unavailable() | StoreUnusable():
            headers["retry-after"] = str(jitter)
        case _:
            pass
    return response(problem(error, correlation), headers)


_ids: list[str] = []  # for requests to come
_IDS_AT_ONCE, _ID_DIGITS = 512, 16


def random_id() -> str:
    """Returns a new id for a request. Many are made at once, because to ask the system for
    chance takes longer than the rest of it."""
    try:
        return _ids.pop()
    except IndexError:
        text = os.urandom(_IDS_AT_ONCE * _ID_DIGITS // 2).hex()
        _ids.extend(text[at : at + _ID_DIGITS] for at in range(0, len(text), _ID_DIGITS))
        return os.urandom(_ID_DIGITS // 2).hex()


def plain(status: int, code: str, message: str, correlation: str) -> Response:
    """Returns the response for a problem that no error class of tidewheel stands for."""
    return response(Problem(code=code, message=message, status=status, id=correlation))
