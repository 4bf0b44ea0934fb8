"""What went wrong, as application/problem+json."""

from __future__ import annotations

from tidewheel.server.wire.forms import Out


class Problem(Out):
    """Every answer with a status of 400 or more."""

    code: str  # one word, for programs
    message: str  # a sentence or two, for people
    status: int
    id: str  # the server's log has the same
    allowed: tuple[str, ...] = ()  # the statuses that would have been accepted
    findings: tuple[str, ...] = ()  # everything that is wrong with the request
