"""Makes and reads tokens of people, workers and jobs, and proves those of jobs (S6).

Of a token of a person or a worker the store keeps a digest. Nothing is stored for a job's
token, which speaks for one attempt of one task and for nothing else. It is proven by a code
that is made from what it speaks for and from a key that servers alone have, so that nobody can
make one from what is stored. It ends with the token that registered its worker. That its
attempt still has its lease is looked up whenever it is shown.

Earlier versions had no such key: there the digest of the worker's own token was in its place.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from tidewheel.core.queue.task import TaskId
from tidewheel.lazy_dataclasses import NamedTuple, pattern

PREFIX = "twa."
LENGTH_MAX = 2_000
_FORM = pattern(
    r"twa\.([1-9][0-9]{0,18})\.([1-9][0-9]{0,9})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})"
)


class AttemptToken(NamedTuple):
    """Holds what a job's token says; that it is true is shown by ``is_proven_by``."""

    parent: int  # the number of its worker's token
    task_id: TaskId
    attempt: int
    code: str

    def is_proven_by(self, key: bytes, seq: int) -> bool:
        """Says whether the token was made with this key, for the task with this number."""
        expected = _code(key, (self.parent, seq, self.attempt, self.task_id))
        return hmac.compare_digest(self.code, expected)


def attempt_token(parent: int, key: bytes, task: tuple[TaskId, int], attempt: int) -> str:
    """Returns the token of an attempt; ``task`` is (id, seq).

    ``parent`` is the number of its worker's own token.
    """
    task_id, seq = task
    name = _text(task_id.encode(errors="surrogatepass"))
    return f"{PREFIX}{parent}.{attempt}.{name}.{_code(key, (parent, seq, attempt, task_id))}"


def read_attempt_token(text: str) -> AttemptToken | None:
    """Returns what a job's token says; None if the text does not have the form of one."""
    found = _FORM.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        return None
    parent, attempt, name, code = found.groups()
    try:
        task_id = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return AttemptToken(int(parent), TaskId(task_id), int(attempt), code)


def _code(key: bytes, what: tuple[object, ...]) -> str:
    said = "\0".join(map(str, ("attempt token", *what))).encode(errors="surrogatepass")
    return _text(hmac.new(key, said, hashlib.sha256).digest())


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def challenge_of(verifier: str) -> str:
    """Returns the challenge of PKCE for a verifier, by the method S256 (RFC 7636): it is shown
    to a provider first, and the verifier with the code."""
    return _text(hashlib.sha256(verifier.encode()).digest())


_TOKEN_FORM = pattern(r"tw_([1-9][0-9]{0,18})_([A-Za-z0-9_-]{43})")


def split_token(text: str) -> tuple[int, str] | None:
    """Returns number and secret of a token; None if the text does not have its form."""
    found = _TOKEN_FORM.fullmatch(text)
    return (int(found[1]), found[2]) if found else None


def secret_digest(secret: str) -> str:
    """Returns the hash of a secret, which is all that is stored of it.

    A secret of 256 random bits needs no slow hash.
    """
    return hashlib.sha256(secret.encode()).hexdigest()
