"""Finds out who calls, by token, and slows down addresses that send too many wrong ones.

A token that was found valid is believed for half a second, so that a revocation counts within
one. Whether a token is unknown, wrong, expired or revoked looks the same from outside, and
takes the same steps.

Many who are honest may share an address with one who tries tokens: a host of workers, a proxy,
this machine. So a token is looked up before anybody asks how many wrong ones came from there,
and a good one is always let in: else anybody there could keep workers from their heartbeats,
and their tasks would be done again. A look costs one indexed read, and a secret has 256 bits:
what the limit on wrong tokens saves is answers and entries in the log, not the secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from tidewheel.api.tasks import Task
from tidewheel.config import ServerSettings
from tidewheel.core.queue import tokens
from tidewheel.core.queue.access import Grant, Scope, TokenKind, TokenView
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.people import grant_for
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.store import Store
from tidewheel.server.access_file import AccessFile
from tidewheel.server.attempt_key import AttemptKey
from tidewheel.server.call import Request
from tidewheel.server.errors import AttemptOver, NotAuthenticated, TooManyFailures
from tidewheel.server.load_shedding import ReservedConnections

BELIEVED_SECONDS = 0.5
BELIEVED_MAX = 10_000
REGISTRANT_SECONDS = 60.0
USE_NOTED_SECONDS = 60.0
FAILURES_SECONDS = 60.0
ADDRESSES_MAX = 10_000
TOKEN_LENGTH_MAX = 200
SESSION_COOKIE = "tidewheel_session"
# By TLS, a browser takes a cookie of this name only from this very host and by TLS: nobody who
# has another host of the domain, or an unencrypted connection, can set one.
SECURE_COOKIE = f"__Host-{SESSION_COOKIE}"
_NOBODYS = "0" * 64
_NOT_KNOWN: tuple[float, TokenView | None] = (0.0, None)


class ShownCredentials(NamedTuple):
    """Holds the credentials that a caller shows and their kind; without any, ``text`` is
    None."""

    kind: TokenKind
    text: str | None


def session_cookie(*, secure: bool) -> str:
    """Returns the name of the cookie that holds a session."""
    return SECURE_COOKIE if secure else SESSION_COOKIE


def shown_by(request: Request) -> ShownCredentials:
    """Returns the credentials in a request: a header counts before a cookie, because browsers
    send cookies without being asked."""
    authorization = request.first(b"authorization")
    if authorization is None:
        cookie = request.cookies.get(session_cookie(secure=request.is_secure))
        kind = TokenKind.BEARER if cookie is None else TokenKind.SESSION
        return ShownCredentials(kind, cookie)
    scheme, _, text = authorization.decode("latin-1").partition(" ")
    shown = text.strip() if scheme.lower() == "bearer" else ""
    return ShownCredentials(TokenKind.BEARER, shown)


def csrf_token(session: TokenView) -> str:
    """Returns the text that the web page sends with every change and no other site can know."""
    return hashlib.sha256(f"csrf/{session.number}/{session.digest}".encode()).hexdigest()


class FailedLogins:
    """Counts the wrong tokens of each address within the last minute."""

    def __init__(self, count_max: int, clock: Callable[[], float]) -> None:
        self._count_max, self._clock = count_max, clock
        self._seen: dict[str, deque[float]] = {}

    def check(self, client: str) -> None:
        """Raises TooManyFailures if an address has to wait after too many wrong tokens."""
        times = self._recent(client)
        if len(times) >= self._count_max:
            raise TooManyFailures(times[0] + FAILURES_SECONDS - self._clock())

    def note(self, client: str) -> None:
        """Counts one more wrong token of an address."""
        times = self._recent(client)
        times.append(self._clock())
        # Taken out and put in again: the one that failed longest ago is forgotten first.
        self._seen.pop(client, None)
        self._seen[client] = times
        while len(self._seen) > ADDRESSES_MAX:
            del self._seen[next(iter(self._seen))]

    def _recent(self, client: str) -> deque[float]:
        times = self._seen.get(client) or deque(maxlen=self._count_max)
        while times and times[0] <= self._clock() - FAILURES_SECONDS:
            times.popleft()
        return times


class Authenticator:
    """Finds the stored token behind the credentials of a caller, and checks it."""

    def __init__(
        self,
        reserve: ReservedConnections,
        settings: ServerSettings,
        clock: Callable[[], float] = time.monotonic,
        people: AccessFile | None = None,
    ) -> None:
        self._people = people or AccessFile(None)
        self.key = AttemptKey(reserve.asking, settings)
        self._asked, self._store, self._clock = reserve.asking, reserve.reporting, clock
        self._failed = FailedLogins(settings.failures_max, clock)
        self._believed: dict[str, tuple[float, TokenView]] = {}
        self._looks: dict[tuple[int, str], asyncio.Task[TokenView | None]] = {}
        self._noted: dict[int, float] = {}
        self._registrants: dict[WorkerId, tuple[float, int]] = {}

    def believed(self, shown: ShownCredentials) -> TokenView | None:
        """Returns the caller's token if it was found valid a moment ago, and nothing is to be
        noted of it; None: ask ``token_of``."""
        if shown.text is None or len(shown.text) > TOKEN_LENGTH_MAX:
            return None
        split = tokens.split_token(shown.text)
        if split is None:
            return None
        number, secret = split
        until, found = self._believed.get(tokens.secret_digest(secret), _NOT_KNOWN)
        if found is None or found.number != number or found.kind is not shown.kind:
            return None
        now = self._clock()
        return found if now < until and not self._is_to_note(number, now) else None

    async def token_of(self, shown: ShownCredentials, client: str) -> TokenView:
        """Returns the caller's token; raises NotAuthenticated, or TooManyFailures once too many
        wrong ones came from this address."""
        found = None
        if shown.text is not None and len(shown.text) <= TOKEN_LENGTH_MAX:
            found = await self._valid(shown.text)
        if found is None or found.kind is not shown.kind:
            self._failed.check(client)
            if shown.text is not None:
                self._failed.note(client)
            raise NotAuthenticated()
        now = self._clock()
        if self._is_to_note(found.number, now):
            self._noted[found.number] = now
            await self._store.touch_token(found.number)
        return found

    def _is_to_note(self, number: int, now: float) -> bool:
        """Says whether it is a while since the use of a token was noted."""
        return now - self._noted.get(number, -USE_NOTED_SECONDS) >= USE_NOTED_SECONDS

    async def registrant(self, worker: WorkerId) -> int | None:
        """Returns the number of the token that registered a worker; None if none did.

        That never changes, and a number of a worker is never used again. A worker is only
        forgotten after long silence, so what is known of it holds for a while.
        """
        until, token = self._registrants.get(worker, (0.0, None))
        if self._clock() < until:
            return token
        self._registrants.pop(worker, None)
        token = await self._asked.worker_token(worker)
        if token is not None:
            if len(self._registrants) >= BELIEVED_MAX:
                self._registrants.clear()
            self._registrants[worker] = (self._clock() + REGISTRANT_SECONDS, token)
        return token

    async def job_of(self, text: str, client: str) -> JobIdentity:
        """Returns the attempt that a job's token speaks for; raises as ``token_of`` does."""
        try:
            return await job_behind(text, self._asked, self.key)
        except AttemptOver:  # it was good once: nobody is guessing
            raise
        except NotAuthenticated:
            self._failed.check(client)
            self._failed.note(client)
            raise

    async def is_valid(self, token: TokenView) -> bool:
        """Says whether a token that somebody showed a while ago is still good."""
        if token.identity is not None:
            # What the access file says now; a stream shows what it allowed at its beginning.
            now = grant_for(self._people.rules_for(token.identity), (Scope.READ,))
            if now != token.grant:
                return False
        until, _ = self._believed.get(token.digest, (0.0, None))
        if self._clock() < until:
            return True
        found = await self._checked(token.number, token.digest)
        if found is not None:
            self._believed[token.digest] = (self._clock() + BELIEVED_SECONDS, found)
        return found is not None

    def check_address(self, client: str) -> None:
        """Raises TooManyFailures if an address has to wait after too many wrong tokens."""
        self._failed.check(client)

    def note_failure(self, client: str) -> None:
        """Counts a sign-in that was wrong like a wrong token of its address."""
        self._failed.note(client)

    async def spend(self, code: str, client: str) -> TokenView:
        """Uses up the code of a login link and returns its token, from which a session is made;
        raises NotAuthenticated if it is not valid or was used before."""
        found = await self.token_of(ShownCredentials(TokenKind.LOGIN, code), client)
        self._believed.pop(found.digest, None)
        if not await self._store.spend_token(found.number):
            raise NotAuthenticated()
        return found

    async def _valid(self, text: str) -> TokenView | None:
        split = tokens.split_token(text)
        if split is None:
            return None
        number, secret = split
        digest, now = tokens.secret_digest(secret), self._clock()
        until, token = self._believed.get(digest, _NOT_KNOWN)
        if token is not None and now < until and token.number == number:
            return token
        self._believed.pop(digest, None)
        # Many of one token come at once: one look is for all who come while it is under way.
        looking = self._looks.get((number, digest))
        if looking is None:
            looking = asyncio.create_task(self._looked_up(number, digest, now))
            self._looks[number, digest] = looking
            looking.add_done_callback(lambda _: self._looks.pop((number, digest)))
        return await asyncio.shield(looking)

    async def _looked_up(self, number: int, digest: str, now: float) -> TokenView | None:
        found = await self._checked(number, digest)
        if found is not None:
            if len(self._believed) >= BELIEVED_MAX:
                self._believed.clear()
            self._believed[digest] = (now + BELIEVED_SECONDS, found)
        return found

    async def _checked(self, number: int, digest: str) -> TokenView | None:
        try:
            token, now = await self._asked.token(number)
        except NotFound:
            hmac.compare_digest(_NOBODYS, digest)
            return None
        same = hmac.compare_digest(token.digest, digest)
        return token if same and token.is_valid(now) else None


# Jobs that speak to the server themselves: which attempt is behind a token, what is its own.
#
# A job's token opens only routes that say so, each with a rule of its own: its messages, its
# task, its run. It has no scope and is for no name.

NOTHING = Grant(scopes=frozenset(), names=())


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """Holds the attempt, which has its lease, of a job that calls with its own token."""

    task: Task
    holder: Holder
    token: TokenView  # of its worker; what it allows is not the job's

    @property
    def caller(self) -> TokenView:
        """Returns a token that stands for the job in the audit and beside kept answers; it
        allows nothing."""
        return replace(self.token, name=f"job {self.task.id}"[:256], grant=NOTHING)

    def key(self, given: str) -> str:
        """Returns an idempotency key that is this attempt's alone, because all jobs of a worker
        share a token."""
        own = f"{self.task.seq}/{self.task.attempt}/{given}"
        return "job-" + hashlib.sha256(own.encode()).hexdigest()


def is_job_token(text: str | None) -> bool:
    return text is not None and text.startswith(tokens.PREFIX)


async def job_behind(text: str, store: Store, key: AttemptKey) -> JobIdentity:
    """Returns the attempt that a token speaks for; raises AttemptOver if it was good once, and
    NotAuthenticated if it never was.

    The attempt is looked up each time: a token is dead in the moment in which its attempt loses
    its lease.
    """
    said = tokens.read_attempt_token(text)
    if said is None:
        raise NotAuthenticated()
    try:
        token, now = await store.token(said.parent)
        task = await store.get(said.task_id)
    except NotFound:
        raise NotAuthenticated() from None
    is_proven = await key.is_signed(said, token, task.seq)
    if not is_proven or token.kind is not TokenKind.BEARER or not token.is_valid(now):
        raise NotAuthenticated()
    if task.status not in LEASED or task.attempt != said.attempt or task.owner is None:
        raise AttemptOver()
    if await store.worker_token(task.owner) != said.parent:  # another's by now
        raise AttemptOver()
    holder = Holder(task_id=task.id, attempt=task.attempt, worker=task.owner)
    return JobIdentity(task=task, holder=holder, token=token)
