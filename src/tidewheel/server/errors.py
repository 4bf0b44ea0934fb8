"""Holds the errors that only a server raises; the tree is in ``tidewheel.errors``."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.errors import Refused, Unavailable


class BadRequest(Refused):
    """The request breaks one or more rules."""

    code = "invalid"

    def __init__(self, findings: Iterable[str]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(self.findings))


class BadBody(Refused):
    """The body cannot be read at all."""

    code = "bad_json"


class WrongMediaType(Refused):
    """The body is of a kind that is not accepted here."""

    code = "wrong_media_type"

    def __init__(self, accepted: Iterable[str]) -> None:
        super().__init__(f"send the header Content-Type: {' or '.join(accepted)}")


class BodyTooLarge(Refused):
    """The body has more bytes than the server accepts."""

    code = "too_large"

    def __init__(self, size_max: int) -> None:
        super().__init__(
            f"the body has more than {size_max} bytes; send less, or in several requests"
        )


class TooSlow(Refused):
    """The body did not arrive in time."""

    code = "too_slow"


class NotAuthenticated(Refused):
    """The credentials of a request are missing or not valid."""

    code = "unauthenticated"

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
            "this token was of an attempt that has ended or lost its lease; "
            "end this job, nothing that it says is wanted",
        )


class NotAllowed(Refused):
    """The caller is known, but may not do this."""

    code = "forbidden"


class TooManyFailures(Refused):
    """Too many wrong tokens came from this address."""

    code = "too_many_failures"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"too many wrong tokens came from this address; try again in {seconds:.0f} s"
        )


class QuotaSpent(Refused):
    """More tasks were submitted to a queue than this server takes in the time."""

    code = "quota"

    def __init__(self, queue: str, per_second: float, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"queue {queue!r} takes {per_second:g} tasks per second here; "
            f"try again in {seconds:.1f} s"
        )


class KeyReused(Refused):
    """An idempotency key was used for another request before."""

    code = "key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Idempotency-Key {key!r} was used for another request; use a new one for each"
        )


class Overloaded(Unavailable):
    """The server has too much to do; try again soon."""

    code = "overloaded"


class TookTooLong(Unavailable):
    """The store did not answer in time; whether the request was done is not known."""

    code = "timed_out"
