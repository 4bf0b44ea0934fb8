"""Implements a Store that is a server's: its operations are asked for over HTTP.

Clients, workers and people who look find everything here. What a server does for others with
its own store (to watch leases, to drive runs, to know tokens) is refused with a hint.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NoReturn, cast

import msgspec

from tidewheel.api.log_lines import FileHits
from tidewheel.api.operation import ServiceName
from tidewheel.api.operations import check_queue
from tidewheel.api.tasks import Task, TaskList
from tidewheel.api.wire import NULL, Fields, instant, out_type, read, read_all
from tidewheel.config import StoreSettings
from tidewheel.core.queue.access import RUN_QUEUE, AuditEntry, NewToken, TokenView
from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.requests import (
    Amendment,
    Cancelled,
    KeysetPage,
    QueueSettings,
    Report,
    Submitted,
    TaskFilter,
    Wake,
    page_count,
)
from tidewheel.core.queue.submission import SubmitLimits, refusal, run_refusal
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.errors import BadSetting, NotFound, Refused, Unavailable
from tidewheel.ports.store import StandingClaim, Store
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.operations import (
    BODY_BYTES_MAX,
    ServerPart,
    amendment_body,
    asks,
    check_tasks,
    filter_body,
    in_portions,
    is_findable,
    json_list,
    task_body,
    task_path,
)
from tidewheel.store.remote.transport import (
    ReceivedProblem,
    Transport,
    is_unknown_there,
    refusal_from,
)
from tidewheel.store.remote.workers import RemoteWorkers

if TYPE_CHECKING:
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent
    from tidewheel.ports.runs import BlockDoor, RegistryDoor, RunDoor

PAGE_MAX = 1_000
TASK_FIELDS = ",".join(out_type(Task).__struct_fields__)


def _is_job(task: Task) -> bool:
    return task.queue.startswith(RUN_QUEUE)


class _TaskPage(msgspec.Struct):
    """Holds a page of tasks; ``next`` is null at the end."""

    tasks: list[Fields]
    next: int | None


class RemoteReads(ServerPart):
    """Implements operations of a Store that change nothing, over HTTP."""

    async def get(self, task_id: TaskId) -> Task:
        response = await self.transport.call("GET", task_path(task_id))
        return read(Task, response.read(Fields))

    async def get_many(self, task_ids: Sequence[TaskId]) -> list[Task]:
        page_count(max(1, len(task_ids)))
        check_tasks(task_ids)
        body = {"ids": list(dict.fromkeys(task_ids))}
        response = await self.transport.call("POST", "/tasks/get", body=body, again=True)
        given = response.part("tasks", list[Fields])
        found = {view.id: view for view in read_all(Task, given)}
        return [found[task_id] for task_id in task_ids]

    async def list_tasks(self, which: TaskFilter, page: KeysetPage) -> TaskList:
        """Returns tasks in as many requests as it takes: one gives at most a thousand. For a
        pattern one request is made: how far it looked is the server's to say."""
        page_count(page.count)
        if not is_findable(which):
            return TaskList()
        query = filter_body(which) | {"fields": TASK_FIELDS}
        if "status" in query:
            query["status"] = ",".join(cast("list[str]", query["status"]))
        if which.jobs is not None:
            query["jobs"] = str(which.jobs).lower()
        found: list[Task] = []
        before = page.before
        while (left := page.count - len(found)) > 0:
            asked = query | {"limit": min(left, PAGE_MAX), "before": before}
            try:
                part = await self._task_page(asked)
            except Refused as refused:
                if not is_unknown_there(refused) or query["fields"] != TASK_FIELDS:
                    raise
                query = await self._as_older(query)
                continue
            tasks = read_all(Task, part.tasks)
            found += [one for one in tasks if which.jobs is not False or not _is_job(one)]
            before = part.next
            if before is None or which.matching is not None:
                break
        return TaskList(found, before, len(found))

    async def _task_page(self, query: Mapping[str, object]) -> _TaskPage:
        response = await self.transport.call("GET", "/tasks", query=cast("Query", query))
        return response.read(_TaskPage)

    async def _as_older(self, query: dict[str, object]) -> dict[str, object]:
        """Returns a query for tasks without what an older server does not know: fields that
        came later have their defaults then, and jobs of runs are left out here."""
        one = await self._task_page({"limit": 1})
        known = {"spec", "spec_text"}.union(*one.tasks)
        fields = ",".join(name for name in TASK_FIELDS.split(",") if name in known)
        return {name: value for name, value in query.items() if name != "jobs"} | {
            "fields": fields
        }

    async def values_of(self, task_ids: Sequence[TaskId]) -> dict[TaskId, str]:
        page_count(max(1, len(task_ids)))
        found: dict[TaskId, str] = {}
        for task_id in dict.fromkeys(task_ids):
            with suppress(NotFound):
                path = task_path(task_id, "outputs")
                said = (await self.transport.call("GET", path)).read(Fields)
                if (values := bytes(said["values"])) != NULL:
                    found[task_id] = values.decode()
        return found

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """Returns what an attempt wrote from an offset on, as much as one answer holds.

        None is returned if there is no such log.
        """
        query: Query = {"attempt": attempt, "offset": offset}
        path = task_path(task_id, "logs", stream)
        try:
            return (await self.transport.call("GET", path, query=query)).body
        except NotFound as error:
            if error.kind != "log":
                raise
            return None

    async def search_task_log(
        self, task_id: TaskId, stream: str, asked: Mapping[str, object]
    ) -> FileHits | None:
        """Returns what one step of a search in a log finds; None if there is no such log."""
        query: dict[str, Any] = {**asked, "case": str(bool(asked.get("case"))).lower()}
        query["limit"] = query.pop("count")
        path = task_path(task_id, "logs", stream, "search")
        try:
            return (await self.transport.call("GET", path, query=query)).read(FileHits)
        except NotFound as error:
            if error.kind != "log":
                raise
            return None

    async def now(self) -> Instant:
        return instant((await self.transport.call("GET", "/store")).part("now", str))


# What clients change.


class Answered(msgspec.Struct):
    """Holds what became of one submitted task, as the server sends it."""

    id: str
    created: bool
    refused: ReceivedProblem | None = None


class RemoteWrites(ServerPart):
    """Implements the operations of a Store by which clients change tasks, over HTTP."""

    async def submit(self, tasks: Sequence[NewTask], *, atomic: bool = True) -> list[Submitted]:
        """Submits tasks, and returns what became of each, in their order.

        Those that break a rule are refused here, as by every store.
        """
        if len(tasks) > self._limits.tasks_per_call_max:
            accepted = f"up to {self._limits.tasks_per_call_max} tasks in one call"
            raise BadSetting("tasks", len(tasks), accepted)
        refused: dict[int, Submitted] = {}
        good: list[NewTask] = []
        for position, task in enumerate(tasks):
            why = refusal(task, self._limits) or run_refusal(task)
            if why is None:
                good.append(task)
            elif atomic:
                raise why
            else:
                refused[position] = Submitted(id=task.id, refused=why)
        rest = iter(await self._submit(good, atomic=atomic))
        return [refused.get(position) or next(rest) for position in range(len(tasks))]

    async def _submit(self, tasks: list[NewTask], *, atomic: bool) -> list[Submitted]:
        query = {"atomic": "all" if atomic else "each", "in_order": True}
        answers: list[Answered] = []
        portions = list(in_portions(msgspec.json.encode(task_body(task)) for task in tasks))
        if len(portions) > 1 and atomic:
            fault = (
                f"the {len(tasks)} tasks have more than {BODY_BYTES_MAX} bytes in total; a "
                "server accepts no more in one call: use several calls"
            )
            raise BadSetting("tasks", len(tasks), fault=fault)
        for portion in portions:
            # With ids of the caller's: the same tasks again are the same tasks.
            response = await self.transport.call(
                "POST", "/tasks", query=query, body=json_list(portion), again=True
            )
            answers += response.part("answers", list[Answered])
        return [
            Submitted(id=TaskId(one.id), created=one.created, refused=refusal_from(one.refused))
            for one in answers
        ]

    async def amend(self, task_id: TaskId, amendment: Amendment) -> Task:
        response = await self.transport.call(
            "PATCH", task_path(task_id), body=amendment_body(amendment), again=True
        )
        return read(Task, response.read(Fields))

    async def cancel(self, task_ids: Sequence[TaskId]) -> list[Cancelled]:
        check_tasks(task_ids)
        response = await self.transport.call(
            "POST", "/tasks/cancel", body={"ids": task_ids}, again=True
        )
        return read_all(Cancelled, response.part("cancelled", list[Fields]))

    async def cancel_matching(
        self, which: TaskFilter, count_max: int = 1000
    ) -> list[Cancelled]:
        page_count(count_max)
        if not is_findable(which):
            return []
        body = {"filter": filter_body(which), "all": True, "count_max": count_max}
        # Never repeated: the next thousand that a filter finds are others.
        response = await self.transport.call("POST", "/tasks/cancel", body=body, again=False)
        return read_all(Cancelled, response.part("cancelled", list[Fields]))

    async def add_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._tie("add_continuations", edges)

    async def remove_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._tie("remove_continuations", edges)

    async def _tie(self, verb: str, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        check_tasks(end for edge in edges for end in edge)
        body = [{"targets": [parent], "values": [child]} for parent, child in edges]
        await self.transport.call("POST", f"/tasks/{verb}", body=body, again=True)

    async def configure_queue(self, queue: str, settings: QueueSettings) -> None:
        check_lease_seconds(settings.lease_seconds)
        check_queue(queue)
        path = path_of("queues", queue)
        await self.transport.call("PATCH", path, body=settings, again=True)


# Tokens.


class RemoteAccess(ServerPart):
    """Implements the operations of a Store on tokens and the audit, over HTTP."""

    async def create_token(self, new: NewToken) -> TokenView:
        body = {
            "name": new.name,
            "scopes": sorted(new.grant.scopes),
            "names": new.grant.names,
            "lasts": new.lasts_seconds,
            "digest": new.digest,
        }
        response = await self.transport.call("POST", "/tokens", body=body)
        return read(TokenView, response.part("stored", Fields))

    async def token(self, number: int) -> tuple[TokenView, Instant]:
        store = await self.transport.call("GET", "/store")
        for view in await self.ask(ServiceName.STORE, "tokens", {}):
            if view.number == number:
                return view, instant(store.json["now"])
        raise NotFound("token", str(number))

    async def login_link(self) -> str:
        """Returns a link with which a browser logs in, once, with this token's rights."""
        response = await self.transport.call("POST", "/login-links")
        return self.transport.url + response.part("path", str)

    async def audit(
        self, before: int | None = None, count: int = 100, after: int | None = None
    ) -> list[AuditEntry]:
        query: Query = {"before": before, "limit": count, "after": after}
        response = await self.transport.call("GET", "/audit", query=query)
        return read_all(AuditEntry, response.part("entries", list[Fields]))


# Events.

PAUSE_SECONDS = 0.2
PAUSE_SECONDS_MAX = 5.0


class RemoteEvents(ServerPart):
    """Follows events through a server; after a lost connection it goes on where it was."""

    async def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]:
        """Yields events until the caller stops; raises Unavailable if it never connected."""
        failures, last, is_begun = 0, since, False
        while True:
            try:
                async with aclosing(self._stream(last, which)) as stream:
                    async for event in stream:
                        failures, last = 0, event.id
                        if event.kind != "start" or not is_begun:
                            yield event
                        is_begun = True
            except Unavailable:
                if not is_begun:
                    raise
            failures += 1
            # Anything up to the bound: a herd that lost its server comes back spread.
            longest = min(PAUSE_SECONDS * 2.0 ** min(failures, 10), PAUSE_SECONDS_MAX)
            await asyncio.sleep(random.uniform(0.0, longest))

    async def _stream(
        self, last: str | None, which: EventFilter
    ) -> AsyncGenerator[FollowedEvent, None]:
        from tidewheel.core.operator.stream import FollowedEvent

        query = {"run": which.run, "queue": which.queue, "kind": which.kind}
        events = self.transport.events("/events", query=query, last_event_id=last)
        async with aclosing(events) as told:  # type: ignore[type-var]
            async for event in told:
                yield FollowedEvent(event.event, event.id or "", event.json)


# The whole store.

Listener = Callable[[Wake], None]


class NeedsStore(Refused):
    """This cannot be done through a server."""

    code = "needs_store"

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(
            f"this cannot be done through a server (operation {operation}); give the store "
            "itself: --store postgresql://…, or on the machine of the server: "
            "--store sqlite:///PATH"
        )


@asks(ServiceName.STORE, ServiceName.NOTIFICATIONS)
class RemoteStore(RemoteWrites, RemoteWorkers, RemoteReads, RemoteAccess, RemoteEvents, Store):
    """Implements a Store that asks a server over HTTP.

    An operation that neither its parts nor ``api.operations`` have raises NeedsStore.
    """

    transact: Any  # refused, too
    look: Any
    look_now: Any

    def __init__(self, transport: Transport, limits: SubmitLimits | None = None) -> None:
        super().__init__(transport, limits)
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Adds a listener, and returns a function that removes it.

        It hears what a worker's channel brings; clients without a channel ask again from time
        to time.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def post_claim(self, claim: StandingClaim) -> bool:
        """Returns False: the tasks of a server are made ready by other processes."""
        del claim
        return False

    def submit_here(self, task: NewTask) -> None:
        """Returns None: a server is asked in an event loop."""
        del task

    def offer_reports(self, reports: Sequence[Report]) -> None:
        """Returns None: the runs of a server are driven by other processes."""
        del reports

    def tell_listeners(self, wake: Wake) -> None:
        """Calls all listeners in this process; may be called from any thread."""
        for listener in tuple(self._listeners):
            listener(wake)

    def run_door(self) -> RunDoor:
        """Returns the service for runs, which asks the same server."""
        from tidewheel.store.remote.runs import RemoteRunDoor

        return RemoteRunDoor(self.transport)

    def registry_door(self) -> RegistryDoor:
        """Returns the registry, which asks the same server."""
        from tidewheel.store.remote.runs import RemoteRegistryDoor

        return cast("RegistryDoor", RemoteRegistryDoor(self.transport))

    def block_door(self) -> BlockDoor:
        """Returns the service for blocks and objects, which asks the same server."""
        from tidewheel.store.remote.runs import RemoteBlockDoor

        return cast("BlockDoor", RemoteBlockDoor(self.transport))

    async def close(self) -> None:
        await self.transport.close()

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        """Returns a function that raises NeedsStore, for what only the store itself can do."""
        if name.startswith("_"):
            raise AttributeError(name)
        from tidewheel.store.store import DatabaseStore

        if not hasattr(DatabaseStore, name):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> NoReturn:
            raise NeedsStore(name)

        return refuse


def open_remote_store(settings: StoreSettings) -> RemoteStore:
    """Returns the store of the server at an address; nothing is sent to the server yet."""
    shown = settings.credentials
    transport = Transport(settings.url, shown.token, origin=shown.origin, ca=shown.ca)
    return RemoteStore(transport, settings.submit)
