"""Turns a server's problem into the error that it stands for, as server/problems.py made it.

The class follows from the code, its attributes from the details. A code that is known to
servers only stays what it is by its status: refused, or unavailable.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any, cast

import msgspec

from tidewheel import errors, registry_errors
from tidewheel.errors import Refused, TidewheelError, Unavailable

TRY_LATER = frozenset({408, 429})
SERVERS_FAULT = 500
MESSAGE_LENGTH_MAX = 2_000
INTERNAL = "internal"  # a bug, which somebody has to find in a log


class ReceivedProblem(msgspec.Struct):
    """The fields of an answer in application/problem+json."""

    code: str = ""
    message: str = ""
    status: int = 0
    id: str = ""  # the server's log has the same
    findings: tuple[Any, ...] = ()  # texts, or of a definition with places
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def error_of(status: int, body: bytes, url: str) -> TidewheelError:
    """The error of an answer that is none of the good ones."""
    try:
        problem = msgspec.json.decode(body, type=ReceivedProblem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = ReceivedProblem()
    if not problem.code:
        return _of_a_stranger(status, url)
    problem.status = problem.status or status
    if problem.code == INTERNAL:
        problem.message += f"; the log of {url} has it as {problem.id}"
    return error_from(problem)


def error_from(problem: ReceivedProblem) -> TidewheelError:
    """The error of a problem, as far as this program knows it."""
    root = Unavailable if _is_passing(problem.status) else Refused
    details = {name: _frozen(value) for name, value in problem.details.items()}
    error = next(_built(problem.code, root, details), None) or root()
    error.args = (problem.message[:MESSAGE_LENGTH_MAX],)
    if problem.code not in (error.code, "cancelled"):
        error.code = problem.code  # what only a server says
        vars(error)["findings"] = problem.findings
    return error


def _built(
    code: str, root: type[TidewheelError], details: dict[str, Any]
) -> Iterator[TidewheelError]:
    """The class that the code says, else those that it is a case of, if the parts suffice."""
    for kind in _classes(code):
        needed, known = _arguments(cast("Hashable", kind))
        if issubclass(kind, root) and needed <= details.keys():
            yield kind(**{name: details[name] for name in known if name in details})


def _is_passing(status: int) -> bool:
    """Says whether the same request may succeed later, be it because a bug there is mended."""
    return status in TRY_LATER or status >= SERVERS_FAULT


def _classes(code: str) -> Iterator[type[TidewheelError]]:
    """The class of a code, then those that it is a case of."""
    kind = _by_code().get("wrong_status" if code == "cancelled" else code)
    for one in kind.__mro__ if kind else ():
        if issubclass(one, TidewheelError):
            yield one


@cache
def _by_code() -> Mapping[str, type[TidewheelError]]:
    listed = [
        kind
        for kind in (*vars(errors).values(), *vars(registry_errors).values())
        if isinstance(kind, type) and issubclass(kind, TidewheelError)
    ]
    return {kind.code: kind for kind in listed}


@cache
def _arguments(kind: type[TidewheelError]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns what its constructor must have, and what it takes: attributes of the error."""
    if kind.__init__ is TidewheelError.__init__:
        return frozenset(), ()
    taken = inspect.signature(kind).parameters.values()
    needed = frozenset(one.name for one in taken if one.default is inspect.Parameter.empty)
    return needed, tuple(one.name for one in taken)


def _frozen(value: Any) -> Any:  # noqa: ANN401 - JSON
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _of_a_stranger(status: int, url: str) -> TidewheelError:
    """Returns the error for an answer that is not from a tidewheel server."""
    if _is_passing(status):
        return Unavailable(f"what stands before the server {url} answers {status}; try again")
    return Refused(
        f"{url} answers {status}, but not as a tidewheel server does; "
        "give the address of one: --server URL"
    )
