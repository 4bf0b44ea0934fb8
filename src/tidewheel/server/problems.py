"""Makes answers of errors: which status, which words, and nothing about our insides."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from starlette.responses import Response

from tidewheel.core.graph.findings import InvalidDefinition, finding_document
from tidewheel.errors import (
    BadSetting,
    BadValues,
    InvalidTask,
    NotFound,
    PayloadTooLarge,
    Refused,
    StoreUnreachable,
    StoreUnusable,
    TidewheelError,
    Unavailable,
    UnknownDependency,
    WrongStatus,
)
from tidewheel.server import errors
from tidewheel.server.wire.validation import FindingOut, Problem

MEDIA_TYPE = "application/problem+json"
NOT_FOUND = 404
METHOD_NOT_ALLOWED = 405
RETRY_SECONDS_MAX = 3
MESSAGE_LENGTH_MAX = 2_000
DETAILS_BYTES_MAX = 64 * 1024

# From the most special to the most general; whatever else is refused is a conflict with what
# is stored.
STATUSES: tuple[tuple[type[TidewheelError], int], ...] = (
    (NotFound, 404),
    (PayloadTooLarge, 413),
    (InvalidTask, 422),
    (InvalidDefinition, 422),
    (BadSetting, 422),
    (BadValues, 422),
    (UnknownDependency, 422),
    (errors.BadRequest, 422),
    (errors.BadBody, 400),
    (errors.WrongMediaType, 415),
    (errors.BodyTooLarge, 413),
    (errors.TooSlow, 408),
    (errors.NotAuthenticated, 401),
    (errors.NotAllowed, 403),
    (errors.TooManyFailures, 429),
    (errors.QuotaSpent, 429),
    (Refused, 409),
    (Unavailable, 503),
    (StoreUnusable, 503),
)


def status_of(error: TidewheelError) -> int:
    """The HTTP status that stands for an error."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def problem(error: TidewheelError, correlation: str) -> Problem:
    """An error as callers see it."""
    code, message = error.code, str(error) or (error.__doc__ or "")
    if isinstance(error, WrongStatus) and error.status == "cancelled":
        code = "cancelled"
    if isinstance(error, StoreUnreachable | StoreUnusable):
        # The words of a driver may hold addresses, users and paths.
        message = "the store does not answer; try again soon"
    return Problem(
        code=code,
        message=message[:MESSAGE_LENGTH_MAX],
        status=status_of(error),
        id=correlation,
        allowed=error.allowed if isinstance(error, WrongStatus) else (),
        findings=_findings(error),
        details=_details(error),
    )


def _findings(error: TidewheelError) -> tuple[str | FindingOut, ...]:
    if isinstance(error, InvalidDefinition):
        return tuple(
            msgspec.convert(finding_document(one), FindingOut) for one in error.findings
        )
    return tuple(getattr(error, "findings", ()))


def _details(error: TidewheelError) -> dict[str, Any]:
    """Returns what a refusal carries, so that a client can raise the same one."""
    if not isinstance(error, Refused) or isinstance(error, InvalidDefinition):
        return {}
    details = msgspec.to_builtins(vars(error), enc_hook=str)
    return details if len(msgspec.json.encode(details)) <= DETAILS_BYTES_MAX else {}


def response(told: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem on its way out."""
    return Response(
        msgspec.json.encode(told), told.status, headers or {}, media_type=MEDIA_TYPE
    )


def error_response(error: TidewheelError, correlation: str) -> Response:
    """An error on its way out, with the headers that belong to it."""
    return response(problem(error, correlation), _headers(error))


def _headers(error: TidewheelError) -> dict[str, str]:
    match error:
        case errors.NotAuthenticated():
            return {"www-authenticate": 'Bearer realm="tidewheel"'}
        case errors.TooManyFailures():
            return {"retry-after": str(int(error.seconds) + 1)}
        case errors.QuotaSpent():
            jitter = random.randint(1, RETRY_SECONDS_MAX)
            return {"retry-after": str(int(error.seconds) + jitter)}
        case Unavailable() | StoreUnusable():
            # Not all at once: whoever was turned away comes back at a time of its own.
            return {"retry-after": str(random.randint(1, RETRY_SECONDS_MAX))}
        case _:
            return {}


def plain(status: int, code: str, message: str, correlation: str) -> Response:
    """A problem that no error of ours stands for."""
    return response(Problem(code=code, message=message, status=status, id=correlation))
