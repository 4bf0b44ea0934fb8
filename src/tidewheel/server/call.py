"""Holds one request: as it came, and as its handler sees it, read, checked and allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from starlette import requests
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidewheel.api.tasks import Task, TaskList, WorkerView
from tidewheel.config import ServerSettings
from tidewheel.core.operator.views import RunView, is_of_others
from tidewheel.core.queue import access
from tidewheel.core.queue.people import AccessRule, grant_for, outline
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.server.errors import NotAllowed

if TYPE_CHECKING:
    from tidewheel.core.queue.requests import Claimed
    from tidewheel.server.access_file import AccessFile
    from tidewheel.server.auth import Authenticator, JobIdentity
    from tidewheel.server.event_broadcaster import EventBroadcaster
    from tidewheel.server.load_shedding import Quotas, RequestSlot
    from tidewheel.server.metrics import Metrics
    from tidewheel.server.oidc import Provider
    from tidewheel.server.request_batches import GatheredRequests
    from tidewheel.server.routes import Route
    from tidewheel.server.run_services import AskedServices, RunServices

Kind = TypeVar("Kind")
LOOKED_THROUGH_MAX = 20_000  # things, for one page of those that a caller may see
TARGET_LENGTH_MAX = 500
NOBODY = "(unknown)"  # in the audit: who has shown no valid token
READ_AT_ONCE = 1_000  # of them, where a page of the length asked for was not enough


class HeaderFields(Headers):
    """Holds the headers of a request; the first of a name is found without a search."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._list = raw  # as Starlette's own does, without its choices
        self.first = dict(reversed(raw))  # as they came; few of them are looked at

    def getlist(self, name: str) -> list[str]:
        if len(self.first) == len(self._list):  # no header comes twice
            found = self.first.get(name.lower().encode("latin-1"))
            return [] if found is None else [found.decode("latin-1")]
        return super().getlist(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as of a Mapping
        found = self.first.get(name.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None


class Request(requests.Request):
    """Is a request of Starlette's, with what every request is asked for at hand."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self._fields = HeaderFields(scope["headers"])
        # Returns the first header of a name in small letters, None if there is none.
        self.first = self._fields.first.get
        client = scope.get("client")
        self.host: str = client[0] if client else ""  # of the caller
        self.is_secure: bool = scope["scheme"] == "https"

    @property
    def headers(self) -> HeaderFields:
        return self._fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Holds an answer with a status, headers or media type of its own; else a handler returns
    the body alone."""

    body: object
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class JsonResponse(Response):
    """Is a response with a value in JSON, as Starlette makes it, in a tenth of the time. It has
    no header beside those of a body, and the id of its request."""

    media_type = "application/json"

    def __init__(self, body: bytes, status: int) -> None:
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON_TYPE]


_JSON_TYPE = (b"content-type", JsonResponse.media_type.encode())


async def covered_page(
    read: Callable[[Any, int], Awaitable[list[Any]]],
    covers: Callable[[Any], bool],
    place: Callable[[Any], Any],
    count: int,
    start: Any,  # noqa: ANN401 - a number or a name
) -> tuple[list[Any], Any]:
    """Returns a page of those things that a caller may see, and where the next one begins.

    ``read`` returns up to so many things from a place on. Those of others take no place in a
    page: by how full it is, and by where it ends, one would learn of them.
    """
    shown: list[Any] = []
    portion, looked_through = count, 0
    while looked_through < LOOKED_THROUGH_MAX:
        found = await read(start, portion)
        shown += filter(covers, found)
        if isinstance(found, TaskList):  # which may be short, and go on all the same
            start, looked_through = found.next, looked_through + found.looked
        else:
            start = place(found[-1]) if len(found) == portion else None
            looked_through += portion
        if start is None or len(shown) >= count:
            break
        portion = max(count, READ_AT_ONCE)
    if len(shown) > count:
        shown = shown[:count]
        start = place(shown[-1])
    return shown, start


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Holds what is the same for all requests of a server."""

    asking: Store  # for looking up what a request concerns: nobody keeps it busy
    settings: ServerSettings
    metrics: Metrics
    hub: EventBroadcaster
    services: RunServices
    gathered: GatheredRequests
    quotas: Quotas
    authenticator: Authenticator
    stopping: asyncio.Event  # the server wants to end: handlers stop waiting
    routes: tuple[Route, ...]
    people: AccessFile
    provider: Provider


@dataclass(slots=True, kw_only=True)
class Call:
    """Holds everything about one request; ``task`` and ``run`` are set once looked up."""

    server: ServerParts
    store: Store
    place: RequestSlot
    request: Request  # for sign-ins, which read headers and cookies by themselves
    verb: str  # of the route
    is_audited: bool  # what it does is told in the audit
    path: Mapping[str, str]
    client: str
    correlation: str
    raw: bytes = b""
    query: Any = None
    body: Any = None
    key: str | None = None  # idempotency
    fingerprint: str = ""  # of the whole request, if it has a key
    token: access.TokenView | None = None
    rules: tuple[AccessRule, ...] = ()  # of the access file, if a person calls
    job: JobIdentity | None = None  # if a job calls with a token of its own
    task: Task | None = None
    run: RunView | None = None
    targets: list[str] = field(default_factory=list)  # for the audit
    only_tried: bool = False  # nothing was done: not for the audit
    audited_status: int | None = None  # with which it is in the audit already

    @property
    def doors(self) -> AskedServices:
        """Returns the services for runs, for this request, which waits for its turn."""
        return self.server.services.asked_by(self.place)

    @property
    def secure(self) -> bool:
        """Says whether the caller came by TLS."""
        return self.request.is_secure

    @property
    def last_event_id(self) -> str | None:
        """Returns up to which event the caller read a stream before."""
        found: str | None = self.request.headers.get("last-event-id")
        return found

    @property
    def takes_gzip(self) -> bool:
        """Says whether the caller can unpack an answer."""
        return "gzip" in str(self.request.headers.get("accept-encoding", ""))

    async def is_gone(self) -> bool:
        """Says whether the caller hung up."""
        is_gone: bool = await self.request.is_disconnected()
        return is_gone

    def choose_rules(self, scopes: Iterable[access.Scope]) -> None:
        """Lets those rules of a person count that give one of these scopes."""
        if self.rules and self.token is not None:
            # What is stored with the token never counts: it may have been taken away since.
            chosen = grant_for(self.rules, scopes) or grant_for(
                self.rules, (access.Scope.READ,)
            )
            assert chosen is not None, "every scope includes reading"
            self.token = replace(self.token, grant=chosen)

    @property
    def readable(self) -> tuple[str, ...]:
        """Returns the patterns for all that the caller may look at."""
        return outline(self.rules).names if self.rules else self.grant.names

    @property
    def grant(self) -> access.Grant:
        """Returns the grant of the caller's token: what the caller may do, and where."""
        assert self.token is not None, "an open route asks for a grant"
        return self.token.grant

    @property
    def who(self) -> str:
        """Returns the name of the caller's token, which is stored with what the caller does."""
        assert self.token is not None, "an open route asks who calls"
        return self.token.name

    def query_as(self, kind: type[Kind]) -> Kind:
        """Returns the parameters, which have the type that the route promises."""
        assert isinstance(self.query, kind), self.query
        return self.query

    def body_as(self, kind: type[Kind]) -> Kind:
        """Returns the body, which has the type that the route promises."""
        assert isinstance(self.body, kind), self.body
        return self.body

    async def found_task(self) -> Task:
        """Returns the task that the path names; raises NotFound as `found_tasks` does."""
        if self.task is None:
            task = await self.server.gathered.tasks.ask(TaskId(self.path["id"]))
            if not self.covers_queue(task.queue):
                raise NotFound("task", task.id)
            self.task = task
        return self.task

    async def found_tasks(self, ids: Sequence[TaskId]) -> list[Task]:
        """Returns tasks by their ids; raises NotFound for the first that is not there or is in
        a queue that the caller may not see: one is as unknown as the other."""
        try:
            missing, found = None, await self.server.asking.get_many(ids)
        except NotFound as error:  # the first that is unknown: those before it are there
            missing = error
            found = await self.server.asking.get_many(ids[: ids.index(TaskId(error.name))])
        for task in found:
            if not self.covers_queue(task.queue):
                raise NotFound("task", task.id)
        if missing is not None:
            raise missing
        return found

    async def found_run(self) -> RunView:
        """Returns the run that the path names: by name, number, or the beginning of a name."""
        if self.run is None:
            self.run = await self.run_called(self.path["run"])
        return self.run

    async def run_called(self, text: str) -> RunView:
        """Returns a run that the caller may see, by name, number, or the beginning of a name.

        Where there is none, what was asked for alone says which error is raised, so that nobody
        learns whether another's run is there: NotAllowed for a name that the caller does not
        cover, NotFound for one that it does, and for a number, which tells no name.
        """
        try:
            return await self.server.asking.find_run(text, self.grant.names)
        except NotFound:
            if is_of_others(self.grant.names, text):
                self.require((access.run_name(text),))
            raise

    def entry(self, status: int) -> access.AuditEntry:
        """Returns what the audit says of this request, if it is answered with a status."""
        return access.AuditEntry(
            token=None if self.token is None else self.token.number,
            who=NOBODY if self.token is None else self.token.name,
            client=self.client,
            verb=self.verb,
            target=", ".join([*self.path.values(), *self.targets])[:TARGET_LENGTH_MAX],
            status=status,
            correlation=self.correlation,
        )

    def kept_answer(self, status: int, body: bytes) -> access.KeptAnswer | None:
        """Returns the answer to keep, in case the same request comes again with the same
        idempotency key; None without a key."""
        if self.key is None or self.token is None:
            return None
        return access.KeptAnswer(
            token=self.token.number,
            key=self.key,
            fingerprint=self.fingerprint,
            status=status,
            body=body.decode(),
        )

    def voiced(self, task: Claimed) -> Claimed:
        """Returns a task that the caller's worker holds, with the token for its job."""
        assert self.token is not None
        return replace(task, token=self.server.authenticator.key.sign(self.token, task))

    def covers(self, name: access.Name) -> bool:
        """Says whether the caller's token is for this name."""
        return access.covers(self.grant.names, name)

    def covers_queue(self, queue: str) -> bool:
        """Says whether the caller's token is for this queue."""
        grant = self.grant
        return grant.covers_everything or access.covers(grant.names, access.queue_name(queue))

    def sees(self, worker: WorkerView) -> bool:
        """Says whether a worker serves a queue that the caller may see."""
        return any(map(self.covers_queue, worker.queues))

    def require(self, names: Iterable[access.Name]) -> None:
        """Raises NotAllowed unless the token is for all of these names.

        What the path names is called as the caller called it.
        """
        if self.grant.covers_everything:
            return
        for name in names:
            if not self.covers(name):
                asked = next(iter(self.path.values()), name.text)
                its = ", ".join(self.grant.names)
                raise NotAllowed(f"this token is not for {asked[:256]!r}; it is for {its}")

    async def require_worker(self, worker: str) -> WorkerId:
        """Returns the id of a worker that was registered with this token, so that the caller
        speaks for it; raises NotFound for any other, whether it is there or not."""
        if not await self.speaks_for(worker):
            raise NotFound("worker", worker)
        return WorkerId(worker)

    async def speaks_for(self, worker: str | None) -> bool:
        """Says whether a worker, if any, was registered with this caller's token."""
        if worker is None or self.token is None:
            return False
        return await self.server.authenticator.registrant(WorkerId(worker)) == self.token.number

    def allows(self, scopes: Iterable[str]) -> bool:
        """Says whether the caller has one of these scopes."""
        return not access.allowed_scopes(self.grant).isdisjoint(scopes)
