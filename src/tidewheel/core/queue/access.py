"""Decides what a token allows: which kinds of request, and for which names.

A token is shown once and stored as a hash. A scope says which kind of request it allows; every
scope but ``read`` includes reading, ``admin`` includes everything. Patterns say for what:
queues, workflows, runs and objects all have names, and a pattern covers a name and whatever is
named under it. `team-a` covers the queue `team-a`, the workflow `team-a/nightly`, its run
`team-a/nightly/run3` and that run's own queues. A worker names the queues that it serves by
patterns, too (`Served`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum
from functools import cache
from operator import attrgetter

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import Instant
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

NAMES_MAX = 100  # patterns of a token
ANY_TEXT = "*"
EVERYTHING = (ANY_TEXT,)
RUN_QUEUE = "run:"  # and the name of the run, unless a run was given another queue
CODE = "code"  # below it: for code of the definition that belongs to no task
ONLY_QUEUES, ONLY_WORKFLOWS = "queue:", "workflow:"
BY_HEADER = "header"  # a trusted proxy says who somebody is
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
    """Holds what a token allows: kinds of request, for what the patterns cover.

    `*` stands for any text. A pattern may be for one kind of thing: `queue:ci-*` covers only
    queues, those of runs excepted; `run:nightly/*` only workflows, runs and their queues;
    `workflow:nightly` only a workflow and the runs that are called after it, `nightly/run3`.
    """

    scopes: frozenset[Scope]
    names: tuple[str, ...]

    @property
    def covers_everything(self) -> bool:
        """Says whether no name has to be looked at."""
        return ANY_TEXT in self.names


class Name(NamedTuple):
    """Is the name of a thing, as patterns see it, and what else patterns may be for.

    ``queue`` is set for queues that are not of a run, ``workflow`` for workflows and for what
    belongs to a run. All of it follows from the text: a run belongs to whoever covers its name,
    whatever it is a run of, and nothing has to be looked up to know who may see it.
    """

    text: str
    queue: str = ""
    workflow: str = ""


def queue_name(queue: str) -> Name:
    """Returns the name of a queue; the queues of a run are named as the run, or under it."""
    if not queue.startswith(RUN_QUEUE):
        return Name(queue, queue=queue)
    run = queue.removeprefix(RUN_QUEUE)
    return Name(run, workflow=workflow_of_run(run.removesuffix(f"/{CODE}")))


def workflow_name(workflow: str) -> Name:
    """Returns the name of a workflow, or of an object, as patterns see it."""
    return Name(workflow, workflow=workflow)


def run_name(run: str) -> Name:
    """Returns the name of a run, as patterns see it; so are its queues named."""
    return Name(run, workflow=workflow_of_run(run))


def workflow_of_run(name: str) -> str:
    """Returns the workflow that a run is called after: `nightly/run3` after `nightly`."""
    return name.rpartition("/")[0] or name


def covers(names: Collection[str], name: Name) -> bool:
    """Says whether one of some patterns covers a name."""
    return ANY_TEXT in names or any(_covers(pattern, name) for pattern in names)


def _covers(pattern: str, name: Name) -> bool:
    kind, glob = _kind(pattern)
    if kind == ONLY_QUEUES:
        return bool(name.queue) and matches(glob, name.queue)
    if kind == ONLY_WORKFLOWS:
        return bool(name.workflow) and matches(glob, name.workflow)
    if kind == RUN_QUEUE and not name.workflow:
        return False
    return _is_under(glob, name.text)


def _is_under(glob: str, text: str) -> bool:
    return matches(glob, text) or matches(f"{glob}/{ANY_TEXT}", text)


def narrowed(
    names: tuple[str, ...] | None, other: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Returns patterns for what is covered twice, by some patterns and by others; None stands
    for everything. What only parts of two patterns have in common is left out."""
    if names is None or other is None:
        return other if names is None else names
    both = [one for one in names if is_within(one, other)]
    return tuple(dict.fromkeys([*both, *(one for one in other if is_within(one, names))]))


def is_within(pattern: str, names: Iterable[str]) -> bool:
    """Says whether one of some patterns covers all that a pattern covers.

    The pattern is compared as if it were a plain name, see `covers_served`.
    """
    kind, glob = _kind(pattern)
    for one in names:
        its_kind, wide = _kind(one)
        is_wider = not its_kind or (its_kind, kind) == (RUN_QUEUE, ONLY_WORKFLOWS)
        if its_kind == kind or is_wider:
            fits = matches if its_kind in (ONLY_QUEUES, ONLY_WORKFLOWS) else _is_under
            if fits(wide, glob):
                return True
    return False


def _kind(pattern: str) -> tuple[str, str]:
    """Returns the kind of things that a pattern is for, "" for all, and its glob."""
    for kind in (ONLY_QUEUES, ONLY_WORKFLOWS, RUN_QUEUE):
        if pattern.startswith(kind):
            return kind, pattern.removeprefix(kind)
    return "", pattern


def covers_served(names: Collection[str], pattern: str) -> bool:
    """Says whether a worker that is for these names may serve the queues of a pattern.

    The pattern is compared as if it were a plain name: the ``*`` of a glob that matches the
    pattern's ``*`` matches whatever that stands for, too. Of the queues of runs a worker may
    serve all that it covers: each claim is judged by the queue that it names.
    """
    if pattern.startswith(RUN_QUEUE) and any(one.startswith(ONLY_WORKFLOWS) for one in names):
        return True
    return covers(names, queue_name(pattern))


def names_for(
    queues: tuple[str, ...] | None, workflows: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Returns the patterns of a token that is for some queues and some workflows.

    None stands for those that its maker did not name. Tokens of earlier versions had two lists:
    a queue of a run was covered if both covered it, a run if its workflow was. Here a workflow
    is covered only where a queue of its runs is: no more than what both lists say, but that
    what is named under a plain workflow counts as its own.
    """
    if queues is None:
        queues = EVERYTHING if workflows is None else (f"{RUN_QUEUE}{ANY_TEXT}",)
    of_runs = [one.removeprefix(RUN_QUEUE) for one in queues if one.startswith(RUN_QUEUE)]
    of_runs += [ANY_TEXT] if ANY_TEXT in queues else []
    if workflows is None:
        workflows = EVERYTHING
    if ANY_TEXT in queues and ANY_TEXT in workflows:
        return EVERYTHING
    plain = [f"{ONLY_QUEUES}{one}" for one in queues if not one.startswith(RUN_QUEUE)]
    both = [_within(run, workflow) for run in of_runs for workflow in workflows]
    return tuple(dict.fromkeys([*plain, *filter(None, both)]))


def grant_of(
    scopes: Iterable[Scope],
    names: tuple[str, ...] = (),
    queues: tuple[str, ...] | None = None,
    workflows: tuple[str, ...] | None = None,
) -> Grant:
    """Returns the grant of a new token; only an admin's is for everything unless it says so."""
    given = frozenset(scopes)
    if queues is not None or workflows is not None:
        names += names_for(queues, workflows)
    if Scope.ADMIN in given and not names:
        names = EVERYTHING
    return Grant(scopes=given, names=tuple(dict.fromkeys(names)))


def _within(run: str, workflow: str) -> str:
    """Returns a pattern for what two globs cover together, of runs' names and of workflows; ""
    if there is none that covers no more.

    A `*` may stand for several parts of a name. What is named under a plain workflow is taken
    for its own.
    """
    if workflow == ANY_TEXT:
        return f"{RUN_QUEUE}{run}"
    if matches(run, f"{workflow}/{ANY_TEXT}"):  # every run of these workflows
        return f"{ONLY_WORKFLOWS}{workflow}"
    if matches(workflow, run) and run.endswith(ANY_TEXT):  # all workflows that begin so
        return f"{ONLY_WORKFLOWS}{run}"
    is_plain = ANY_TEXT not in workflow and run.startswith(f"{workflow}/")
    is_one_run = ANY_TEXT not in run and matches(workflow, workflow_of_run(run))
    return f"{RUN_QUEUE}{run}" if is_plain or is_one_run else ""


class TokenKind(StrEnum):
    """Says where a server accepts a token; where another kind is expected it is refused."""

    BEARER = "bearer"  # in a header, until it ends or is revoked
    LOGIN = "login"  # in a link, once: it becomes a session
    SESSION = "session"  # in a browser's cookie


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Names a person who signed in: how, and in which groups the person was then."""

    person: str
    source: str  # who says so: the issuer of a provider, or BY_HEADER
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """Describes a token that is to be stored; its maker alone keeps the secret."""

    kind: TokenKind = TokenKind.BEARER
    parent: int | None = None  # the token that it was made from, and that it ends with
    name: str
    digest: str  # SHA-256 of the secret, as hexadecimal digits
    grant: Grant
    lasts_seconds: float | None = None  # None: until it is revoked
    # Whose it is, if a person signed in; what it allows then follows from the access file.
    identity: Identity | None = None


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
    identity: Identity | None = None  # the person who signed in; None: a token that was made

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
    number, at, *said = _sealed(entry)
    return digest_of_fields(previous, number, sealed_time(at), *said)


def sealed_time(at: float) -> str:
    """Returns a time as it is part of the digest of an entry."""
    return f"{at:.6f}"


def digest_of_fields(  # noqa: PLR0913, PLR0917 - the fields of an entry, in their order
    previous: str,
    number: int,
    at: str,
    token: int | None,
    who: str,
    client: str,
    verb: str,
    target: str,
    status: int,
    correlation: str,
) -> str:
    """Returns the digest of an entry with these fields."""
    place = f'{_quoted(previous)},{number},"{at}",{"null" if token is None else token}'
    said = f"{_quoted(who)},{_quoted(client)},{_quoted(verb)},{_quoted(target)}"
    line = f"[{place},{said},{status},{_quoted(correlation)}]"
    return hashlib.sha256(line.encode()).hexdigest()


_quoted = json.encoder.encode_basestring  # as JSON has it, beyond ASCII as it is
SEALED_FIELDS = (
    *("number", "at", "token", "who", "client"),
    *("verb", "target", "status", "correlation"),
)
_sealed = attrgetter(*SEALED_FIELDS)


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
        return (
            f"entry {missing} is missing: entry {entry.number} follows entry {previous.number}"
        )
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
    return _with_included(grant.scopes)


@cache  # there are few scopes, and every request asks
def _with_included(scopes: frozenset[Scope]) -> frozenset[Scope]:
    return frozenset().union(*(INCLUDES[scope] for scope in scopes))


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
    if Scope.ADMIN in token.grant.scopes and not token.grant.covers_everything:
        # With it one could make a token that is good for everything.
        findings.append("scope admin is for everything; leave out the names")
    if not 1 <= len(token.grant.names) <= NAMES_MAX:
        accepted = f"1 to {NAMES_MAX} patterns, such as team-a; * is everything"
        findings.append(f"it is for {len(token.grant.names)} names; give {accepted}")
    found = (name_finding("names", name) for name in token.grant.names)
    return findings + [one for one in found if one]


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
    values: str | None = None  # JSON text of an object
    kept: KeptAnswer | None = None


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
