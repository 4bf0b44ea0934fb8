"""Holds one request as its handler sees it: read, checked and allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from tidewheel.api.tasks import Task, WorkerView
from tidewheel.config import ServerSettings
from tidewheel.core.queue import access
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.server.errors import NotAllowed

if TYPE_CHECKING:
    from tidewheel.core.operator.views import RunView
    from tidewheel.server.auth import Authenticator, JobIdentity
    from tidewheel.server.event_broadcaster import EventBroadcaster
    from tidewheel.server.load_shedding import Quotas, RequestSlot
    from tidewheel.server.metrics import Metrics
    from tidewheel.server.routes import Route
    from tidewheel.server.run_services import RunServices

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Holds an answer with a status, headers or media type of its own; else a handler returns
    the body alone."""

    body: object
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Call:
    """Holds everything about one request; ``task`` and ``run`` are set once looked up."""

    store: Store
    asking: Store  # for looking up what a request concerns: nobody keeps it busy
    settings: ServerSettings
    metrics: Metrics
    place: RequestSlot
    hub: EventBroadcaster
    doors: RunServices
    quotas: Quotas
    authenticator: Authenticator
    is_gone: Callable[[], Awaitable[bool]]  # whether the caller hung up
    stopping: asyncio.Event  # the server wants to end: handlers stop waiting
    secure: bool  # whether the caller came by TLS
    routes: tuple[Route, ...]
    path: Mapping[str, str]
    client: str
    correlation: str
    raw: bytes = b""
    query: Any = None
    body: Any = None
    key: str | None = None  # idempotency
    last_event_id: str | None = None  # up to which a stream was read before
    takes_gzip: bool = False  # whether the caller can unpack an answer
    fingerprint: str = ""  # of the whole request
    token: access.TokenView | None = None
    job: JobIdentity | None = None  # if a job calls with a token of its own
    task: Task | None = None
    run: RunView | None = None
    targets: list[str] = field(default_factory=list)  # for the audit
    only_tried: bool = False  # nothing was done: not for the audit

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
        """Returns the task that the path names."""
        if self.task is None:
            self.task = await self.asking.get(TaskId(self.path["id"]))
        return self.task

    async def found_run(self) -> RunView:
        """Returns the run that the path names: by name, number, or the beginning of a name."""
        if self.run is None:
            self.run = await self.asking.find_run(self.path["run"])
        return self.run

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

    @property
    def covers_everything(self) -> bool:
        """Says whether the caller may see everything, so that no queue has to be looked at."""
        return self.grant.queues == self.grant.workflows == access.EVERYTHING

    def covers(self, queue: str) -> bool:
        """Says whether the caller may see this queue."""
        return access.covers_queue(self.grant, queue)

    def sees(self, worker: WorkerView) -> bool:
        """Says whether a worker serves a queue that the caller may see."""
        return any(
            access.covers_pattern(self.grant, queue)
            if access.is_pattern(queue)
            else self.covers(queue)
            for queue in worker.queues
        )

    def require_queues(self, queues: Iterable[str]) -> None:
        """Raises NotAllowed unless the token is for all of these queues."""
        for queue in queues:
            if not self.covers(queue):
                its = ", ".join(self.grant.queues)
                raise NotAllowed(f"this token is not for queue {queue!r}; it is for {its}")

    def require_patterns(self, patterns: Iterable[str]) -> None:
        """Raises NotAllowed unless the token is for every queue that a pattern stands for."""
        for pattern in patterns:
            if not access.covers_pattern(self.grant, pattern):
                its = ", ".join(self.grant.queues)
                words = f"this token is not for all queues {pattern!r}; it is for {its}"
                raise NotAllowed(words)

    def require_workflows(self, workflows: Iterable[str]) -> None:
        """Raises NotAllowed unless the token is for all of these workflows."""
        for workflow in workflows:
            if not access.covers_workflow(self.grant, workflow):
                its = ", ".join(self.grant.workflows) or "none: only for tasks of its queues"
                raise NotAllowed(
                    f"this token is not for workflow {workflow!r}; it is for {its}"
                )

    async def require_worker(self, worker: str) -> WorkerId:
        """Returns the id of a worker that was registered with this token, so that the caller
        speaks for it; raises NotAllowed for any other, NotFound if there is no such worker."""
        assert self.token is not None
        owner = await self.asking.worker_token(WorkerId(worker))
        if owner is None:
            known = await self.asking.workers(live_only=False)
            if all(one.id != worker for one in known):
                raise NotFound("worker", worker)
        if owner != self.token.number:
            raise NotAllowed(
                f"worker {worker!r} was not registered with this token; "
                "register one: POST /api/v1/workers"
            )
        return WorkerId(worker)

    async def speaks_for(self, worker: str | None) -> bool:
        """Says whether a worker, if any, was registered with this caller's token."""
        if worker is None or self.token is None:
            return False
        return await self.asking.worker_token(WorkerId(worker)) == self.token.number

    def allows(self, scopes: Iterable[str]) -> bool:
        """Says whether the caller has one of these scopes."""
        return not access.allowed_scopes(self.grant).isdisjoint(scopes)
