"""What went wrong, as application/problem+json."""

from __future__ import annotations

from typing import Any

import msgspec

from tidewheel.server.wire.forms import Out


class FindingOut(Out):
    """Something that is wrong or remarkable in a definition, and where."""

    severity: str  # error, warning, note
    code: str
    message: str
    hint: str
    file: str | None
    line: int | None
    column: int | None


class Problem(Out):
    """Every answer with a status of 400 or more."""

    code: str  # one word, for programs
    message: str  # a sentence or two, for people
    status: int
    id: str  # the server's log has the same
    allowed: tuple[str, ...] = ()  # the statuses that would have been accepted
    findings: tuple[str | FindingOut, ...] = ()  # everything that is wrong with the request
    # The parts of the message, by name, as far as there are any.
    details: dict[str, Any] = msgspec.field(default_factory=dict)
