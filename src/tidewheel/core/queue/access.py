"""Decides what a token allows: which kinds of request, for which queues and workflows.

A token is shown once and stored as a hash. A scope says which kind of request it allows; globs
say where. Every scope but ``read`` includes reading, ``admin`` includes everything. A worker
names the queues that it serves by the same patterns (`Served`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import Instant

GLOBS_MAX = 100
EVERYTHING = ("*",)
RUN_QUEUE = "run:"  # and the name of the run, unless a run was given another queue
_UNKNOWN = Instant(0.0)


class Scope(StrEnum):
    """A kind of request that a token allows."""

    READ = "read"  # look at tasks, queues, workers, runs
    SUBMIT = "submit"  # create tasks and runs, tie them together, cancel them
    OPERATE = "operate"  # cancel, pause queues, intervene in runs
    WORKER = "worker"  # claim tasks and report on them
    ADMIN = "admin"  # tokens, audit, and everything else


INCLUDES: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.SUBMIT: frozenset({Scope.SUBMIT, Scope.READ}),
    Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ}),
    Scope.WORKER: frozenset({Scope.WORKER, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Holds what a token allows: kinds of request, for some queues and some workflows."""

    scopes: frozenset[Scope]
    queues: tuple[str, ...] = EVERYTHING  # globs: * stands for any text
    workflows: tuple[str, ...] = EVERYTHING  # none: for no run and no registered workflow


def grant_of(
    scopes: Iterable[Scope],
    queues: tuple[str, ...] | None = None,
    workflows: tuple[str, ...] | None = None,
) -> Grant:
    """Returns the grant of a new token; None as an argument: its maker did not name any.

    Who names only queues gets no other workflows than those whose runs' queues are among them.
    Who names only workflows gets their runs, in the queues that runs have of their own
    (`run:…`).
    """
    if queues is None:
        queues = EVERYTHING if workflows is None else (f"{RUN_QUEUE}*",)
        workflows = EVERYTHING if workflows is None else workflows
    elif workflows is None:
        of_runs = [one for one in queues if one.startswith(RUN_QUEUE)]
        workflows = tuple(dict.fromkeys(map(workflow_of_queue, of_runs)))
        workflows = EVERYTHING if EVERYTHING[0] in queues else workflows
    return Grant(scopes=frozenset(scopes), queues=queues, workflows=workflows)


class TokenKind(StrEnum):
    """Says where a server accepts a token; where another kind is expected it is refused."""

    BEARER = "bearer"  # in a header, until it ends or is revoked
    LOGIN = "login"  # in a link, once: it becomes a session
    SESSION = "session"  # in a browser's cookie


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """Describes a token that is to be stored; its maker alone keeps the secret."""

    kind: TokenKind = TokenKind.BEARER
    parent: int | None = None  # the token that it was made from, and that it ends with
    name: str
    digest: str  # SHA-256 of the secret, as hexadecimal digits
    grant: Grant
    lasts_seconds: float | None = None  # None: until it is revoked


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """Describes a stored token; of its secret the store has only the digest."""

    number: int
    kind: TokenKind
    parent: int | None
    name: str
    digest: str
    grant: Grant
    created_at: Instant
    expires_at: Instant | None
    used_at: Instant | None
    revoked_at: Instant | None

    def is_valid(self, now: Instant) -> bool:
        """Says whether the token is accepted at this time: neither revoked nor past its end."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Describes a call that changed something or was refused: who, what, when, from where, how
    it ended.

    The store gives it its number, time and digest. An entry that is older than the chain of
    digests has none.
    """

    number: int = 0
    at: Instant = _UNKNOWN
    token: int | None  # None: somebody at this machine's command line
    who: str
    client: str  # the address it came from
    verb: str  # method and path of the route
    target: str  # what the path named, and how many things the body did
    status: int
    correlation: str
    sha256: str | None = None  # of itself and the entry before it


# Nobody can change, leave out or add an entry of the audit and have the digests of those that
# follow stay as they were. Who can write to the database can write them all anew, though: that
# shows only where a digest was written down elsewhere, as servers do in their logs.
AUDIT_BEGIN = "0" * 64  # what stands for the entry before the first of the chain


def audit_digest(previous: str, entry: AuditEntry) -> str:
    """Returns the digest of an entry: SHA-256, as hexadecimal digits, of a JSON array of the
    digest before it and its fields in their order; the time in seconds with six decimals."""
    place = (previous, entry.number, f"{entry.at:.6f}", entry.token, entry.who, entry.client)
    said = (*place, entry.verb, entry.target, entry.status, entry.correlation)
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def audit_break(previous: AuditEntry | None, entry: AuditEntry) -> str | None:
    """Returns in words why an entry does not continue the chain after the one before it; None
    if it does.

    Without one before it, the first entry of all is judged; any other is taken as it is, since
    only those before it could tell.
    """
    if previous is None:
        if entry.number != 1 or entry.sha256 is None:
            return None
        previous = replace(entry, number=0, sha256=AUDIT_BEGIN)
    if entry.sha256 is None and previous.sha256 is None:
        return None  # both are older than the chain
    if entry.number != previous.number + 1:
        missing = previous.number + 1
        return f"entry {missing} is missing: after {previous.number} follows {entry.number}"
    if entry.sha256 is None:
        return f"entry {entry.number} has no hash"
    if entry.sha256 != audit_digest(previous.sha256 or AUDIT_BEGIN, entry):
        return f"entry {entry.number} or its hash was changed after it was written"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """Holds what was answered to a request that carried an idempotency key."""

    token: int
    key: str
    fingerprint: str  # of method, path and body
    status: int
    body: str


def allowed_scopes(grant: Grant) -> frozenset[Scope]:
    """Returns the scopes of a grant with all that they include."""
    return frozenset().union(*(INCLUDES[scope] for scope in grant.scopes))


def covers_queue(grant: Grant, queue: str) -> bool:
    """Says whether a grant covers a queue and, if that is a run's, the run's workflow."""
    if queue.startswith(RUN_QUEUE) and not covers_workflow(grant, workflow_of_queue(queue)):
        return False
    return any(matches(glob, queue) for glob in grant.queues)


def covers_pattern(grant: Grant, pattern: str) -> bool:
    """Says whether a grant covers every queue that a pattern can stand for.

    The pattern is compared as if it were a plain name: the ``*`` of a glob that matches the
    pattern's ``*`` matches whatever that stands for, too. Workflows are not looked at, because
    nobody knows which there will be: each claim is judged by the queue that it names.
    """
    return any(matches(glob, pattern) for glob in grant.queues)


def workflow_of_queue(queue: str) -> str:
    """Returns the workflow of a queue: that of `run:nightly/run3` is `nightly`."""
    name = queue.removeprefix(RUN_QUEUE)
    return name.rpartition("/")[0] or name


def covers_workflow(grant: Grant, workflow: str) -> bool:
    """Says whether a grant covers a workflow."""
    return any(matches(glob, workflow) for glob in grant.workflows)


def matches(glob: str, text: str) -> bool:
    """Says whether a glob matches a text; ``*`` stands for any text, all else for itself.

    The pieces between the stars are looked for from the left, each at its first occurrence,
    which leaves the most text for the pieces after it. So no glob takes longer than its length
    times that of the text.
    """
    first, *rest = glob.split("*")
    if not rest:
        return text == glob
    if not text.startswith(first):
        return False
    place = len(first)
    for piece in rest[:-1]:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return len(text) - place >= len(rest[-1]) and text.endswith(rest[-1])


def token_findings(token: NewToken) -> list[str]:
    """Returns what is wrong with a new token, in words."""
    findings = [finding] if (finding := name_finding("name", token.name)) else []
    if not token.grant.scopes:
        findings.append(f"it has no scope; give some of {', '.join(Scope)}")
    if token.lasts_seconds is not None and not 0 < token.lasts_seconds < float("inf"):
        findings.append(f"it lasts {token.lasts_seconds:g} s; give more than 0")
    whole = (token.grant.queues, token.grant.workflows) == (EVERYTHING, EVERYTHING)
    if Scope.ADMIN in token.grant.scopes and not whole:
        # With it one could make a token that is good for everything.
        findings.append("scope admin is for every queue and workflow; leave out the globs")
    findings += _glob_findings("queues", token.grant.queues, count_min=1)
    return findings + _glob_findings("workflows", token.grant.workflows, count_min=0)


def _glob_findings(what: str, globs: Iterable[str], count_min: int) -> list[str]:
    given = tuple(globs)
    if not count_min <= len(given) <= GLOBS_MAX:
        accepted = f"{count_min} to {GLOBS_MAX}, * is everything"
        return [f"{what} has {len(given)} globs; give {accepted}"]
    return [finding for glob in given if (finding := name_finding(what, glob))]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWords:
    """Holds what a job said to a server with its own token.

    ``kept`` is the answer to be kept for a request that may come again; None if it has no
    idempotency key.
    """

    holder: Holder
    text: str = ""
    output: str | None = None
    progress: float | None = None
    kept: KeptAnswer | None = None


ANY_TEXT = "*"


def is_pattern(queue: str) -> bool:
    """Says whether a text is a pattern, which has a ``*``, and not the name of one queue."""
    return ANY_TEXT in queue


class Served:
    """Holds the queues that a worker was told to serve."""

    __slots__ = ("names", "patterns")

    def __init__(self, queues: Iterable[str]) -> None:
        given = tuple(queues)
        self.names = frozenset(queue for queue in given if not is_pattern(queue))
        self.patterns = tuple(queue for queue in given if is_pattern(queue))

    def __contains__(self, queue: str) -> bool:
        return queue in self.names or any(matches(one, queue) for one in self.patterns)

    def any_of(self, queues: frozenset[str]) -> bool:
        """Says whether the worker serves at least one of these queues."""
        if not self.names.isdisjoint(queues):
            return True
        return bool(self.patterns) and any(queue in self for queue in queues)
