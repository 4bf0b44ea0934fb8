"""Answers for queues and workers: what waits, settings, claims, workers that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from tidewheel.api.operation import OPERATE, WORKER
from tidewheel.api.operations import MANY, ORPHANS, PAUSES, QUEUES, WORKERS
from tidewheel.api.tasks import QueueView
from tidewheel.api.wire import answer, out_type, time_text, write
from tidewheel.client.async_client import AsyncClient
from tidewheel.core.queue.access import Name, covers_served, is_pattern, queue_name
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import (
    ANY_RESOURCES,
    Abilities,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    End,
    Ending,
    HostProcess,
    NewWorker,
    Report,
)
from tidewheel.core.queue.resources import FLAVOURS_MAX, LABEL_LENGTH_MAX, Resources, nodes_of
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import Refused
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.operation_routes import answer_type, routes_of
from tidewheel.server.resources.events import NewsListener
from tidewheel.server.resources.reports import REPORTS, Bytes, LostAttempt, worker_of_body
from tidewheel.server.routes import (
    Needs,
    RouteList,
    no_name,
    queue_of_path,
)
from tidewheel.server.validation import In

POLL_SECONDS = 5.0  # a wake-up may be lost; this bounds the wait
DUE_SECONDS_MIN = 0.001  # to ask sooner would be in vain
CLAIM_SECONDS_MAX = 100.0  # longer than a claim may wait
UNKNOWN_BOOT = "http"
Nodes = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
ROUTES = RouteList()


async def list_ready_queues(call: Call) -> object:
    found = await call.store.ready_queues()
    seen = {queue: priority for queue, priority in found.items() if call.covers_queue(queue)}
    return {"queues": list(seen), "priorities": seen}


async def get_queue(call: Call) -> object:
    return write(await AsyncClient(call.store).queue(call.path["queue"]))


async def get_many(call: Call) -> object:
    found = await call.found_tasks([TaskId(one) for one in call.body.ids])
    return write({"tasks": found})


async def ended_attempts(call: Call) -> object:
    found = await call.store.ended_attempts(call.query.limit, call.grant.names)
    return write({"attempts": found})


async def store_facts(call: Call) -> object:
    return {"id": await call.store.store_id(), "now": time_text(await call.store.now())}


MANY_ROUTES = routes_of(
    MANY,
    {"get_many": get_many, "ended_attempts": ended_attempts, "store_id": store_facts},
)
ROUTES += routes_of(QUEUES, {"ready_queues": list_ready_queues, "queue": get_queue})

# How a queue is set.


class LimitIn(In):
    """A limit on running tasks, on starts per time, or on both; null: no such limit."""

    key: str = ""
    concurrency_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_seconds: float = 1.0


class QueueIn(In):
    """The changes to a queue; null leaves a setting as it is."""

    paused: bool | None = None
    aging: bool | None = None
    fair: bool | None = None
    fence_kill: bool | None = None
    lease_seconds: float | None = None
    limits: Annotated[list[LimitIn], msgspec.Meta(max_length=1_000)] | None = None


@ROUTES.add(
    "PATCH /queues/{queue}",
    Needs(OPERATE, queue_of_path),
    "Change the settings of a queue, such as `paused`, `lease_seconds` and `limits`.",
    out_type(QueueView),
    body=QueueIn,
)
async def configure(call: Call) -> object:
    said = msgspec.structs.asdict(call.body_as(QueueIn))
    changes: dict[str, Any] = {name: one for name, one in said.items() if one is not None}
    if "limits" in changes:
        limits = changes["limits"]
        changes["limits"] = tuple(Limit(**msgspec.structs.asdict(one)) for one in limits)
    await AsyncClient(call.store).configure_queue(call.path["queue"], **changes)
    return await get_queue(call)


ROUTES += routes_of(PAUSES, then={"pause_queue": get_queue})

# Claims.


class FlavourIn(In):
    """Says how many nodes of one flavour a worker has free, or offers."""

    flavour: Annotated[str, msgspec.Meta(min_length=1, max_length=LABEL_LENGTH_MAX)]
    nodes: Nodes  # those that no task has alone
    idle: Nodes  # of these, those without any task


class ResourcesIn(In):
    """The resources that a worker has free, or offers."""

    cpu: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
    memory_bytes: Bytes = 0
    gpu: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    labels: Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)] = ()
    nodes: Nodes | None = None  # those that no task has alone; null: one
    idle_nodes: Nodes | None = None  # of these, those without any task; null: all
    buffer_bytes: Bytes = 0
    exclusive: Literal[False] = False  # is what tasks ask for
    flavours: Annotated[tuple[FlavourIn, ...], msgspec.Meta(max_length=FLAVOURS_MAX)] = ()

    def value(self) -> Resources:
        """Returns the resources as the store takes them."""
        given = msgspec.structs.asdict(self) | {"labels": frozenset(self.labels)}
        given["flavours"] = tuple(
            nodes_of(one.flavour, one.nodes, one.idle) for one in self.flavours
        )
        return Resources(**given | {"nodes": 1 if self.nodes is None else self.nodes})

    def free(self) -> Resources:
        """Returns the free resources of a claim.

        A worker that says nothing of nodes may be of a version without them: it would take
        other tasks beside one that is exclusive, so it gets none of those.
        """
        counts = self.nodes is not None or self.idle_nodes is not None
        return self.value() if counts else replace(self.value(), idle_nodes=0)


class ClaimIn(In):
    """A worker asks for tasks of a queue, and may wait for them."""

    worker: str
    n: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 1
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    lease_s: float | None = None
    resources: ResourcesIn | None = None
    commands: bool = True
    handlers: list[str] | None = None  # null: any
    bare: bool = True


ClaimsOut = answer(
    "ClaimsOut",
    "The tasks that were handed out; there may be none.",
    tasks=list[Claimed],
    next_due_s=(float | None, None),  # of a delayed task, if nothing else comes before
)


@ROUTES.add(
    "POST /queues/{queue}/claim",
    Needs(WORKER, queue_of_path, worker=worker_of_body),
    "Claim up to `n` tasks: highest priority first, then oldest first. If there is none, wait "
    "up to `wait_s` seconds.",
    ClaimsOut,
    body=ClaimIn,
    audited=False,  # in the history of each task
    seconds_max=CLAIM_SECONDS_MAX,
)
async def claim(call: Call) -> object:
    form = call.body_as(ClaimIn)
    request = ClaimRequest(
        queue=call.path["queue"],
        worker=WorkerId(form.worker),
        count=form.n,
        lease_seconds=form.lease_s,
        free=form.resources.free() if form.resources else ANY_RESOURCES,
        commands=form.commands,
        handlers=None if form.handlers is None else frozenset(form.handlers),
        bare=form.bare,
    )
    wait = min(form.wait_s, call.server.settings.wait_seconds_max)
    found = await _claim_or_wait(call, request, wait)
    tasks = [call.voiced(task) for task in found]
    return write({"tasks": tasks, "next_due_s": found.next_due_seconds})


async def _claim_or_wait(call: Call, request: ClaimRequest, seconds: float) -> ClaimedTasks:
    found = await _claim_for_caller(call, request)
    if found or not seconds:
        return found
    end = asyncio.get_running_loop().time() + seconds
    with NewsListener(
        call, lambda wake: wake.everything or request.queue in wake.queues
    ) as ears:
        found = await _claim_for_caller(call, request)  # for what came before we listened
        while not found and (left := end - asyncio.get_running_loop().time()) > 0:
            due = found.next_due_seconds
            rest = POLL_SECONDS if due is None else max(due, DUE_SECONDS_MIN)
            await ears.heard(min(left, rest, POLL_SECONDS))
            if call.server.stopping.is_set() or await call.is_gone():
                return found
            found = await _claim_for_caller(call, request)
    return found


async def _claim_for_caller(call: Call, request: ClaimRequest) -> ClaimedTasks:
    """Returns the tasks that were claimed for a caller; none for a caller who hung up.

    Tasks that were claimed while the caller hung up are given back: a task for nobody would
    wait until its lease is over, and lapse for nothing.
    """
    if await call.is_gone():
        return ClaimedTasks()
    found = await call.store.claim(request)
    if found and await call.is_gone():
        given_back = [
            Holder(task_id=task.id, attempt=task.attempt, worker=request.worker)
            for task in found
        ]
        end = End(ending=Ending.YIELDED)
        await call.store.report([Report(holder=holder, end=end) for holder in given_back])
        return ClaimedTasks()
    return found


# Workers: they register, sign off, and can be looked at.


class WorkerIn(In):
    """The description of a worker that registers."""

    name: str
    queues: Annotated[list[str], msgspec.Meta(min_length=1, max_length=1_000)]
    slots: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    capacity: ResourcesIn = msgspec.field(default_factory=ResourcesIn)
    commands: bool = True
    handlers: list[str] | None = None
    bare: bool = True
    host: str = ""
    # Which boot of that host, which process and which of those with its number: with them a
    # worker that is started there later can take over its jobs. Without, nobody can.
    boot_id: str = UNKNOWN_BOOT
    pid: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    started: Annotated[float, msgspec.Meta(ge=0, le=1e15)] = 0.0


async def queues_served(call: Call) -> Iterable[Name]:
    """Returns the queues that a worker wants to serve by name, for the guard, after judging its
    patterns.

    A pattern is judged as a whole: the token must be for every queue that it stands for.
    """
    wanted = call.body_as(WorkerIn).queues
    for one in wanted:
        if is_pattern(one) and not covers_served(call.grant.names, one):
            its = ", ".join(call.grant.names)
            raise NotAllowed(
                f"this token is not for all queues that match {one!r}; it is for {its}"
            )
    return [queue_name(one) for one in wanted if not is_pattern(one)]


@ROUTES.add(
    "POST /workers",
    Needs(WORKER, queues_served),
    "Register a worker; the answer has its id, which belongs to this token.",
    answer_type(next(row for row in WORKERS if row.name == "stop_worker")),
    body=WorkerIn,
    status=201,
)
async def register(call: Call) -> object:
    assert call.token is not None
    form = call.body_as(WorkerIn)
    named = [("name", form.name), ("host", form.host or "-"), ("boot_id", form.boot_id)]
    listed = {"queues": form.queues, "labels": form.capacity.labels, "handlers": form.handlers}
    named += [(what, text) for what, texts in listed.items() for text in texts or ()]
    findings = [finding for what, text in named if (finding := name_finding(what, text))]
    if findings:
        raise BadRequest(findings)
    worker = await call.store.register_worker(
        NewWorker(
            name=form.name,
            process=HostProcess(
                host=form.host or call.client or "-",
                boot_id=form.boot_id,
                pid=form.pid,
                started=form.started,
            ),
            queues=tuple(form.queues),
            slots=form.slots,
            capacity=form.capacity.value(),
            abilities=Abilities(
                commands=form.commands,
                handlers=None if form.handlers is None else frozenset(form.handlers),
                bare=form.bare,
            ),
        )
    )
    await call.store.assign_worker(worker, call.token.number)
    call.targets.append(worker)
    return Answer(body={"id": worker}, status=201)


ROUTES += routes_of(WORKERS)

# A worker that died leaves jobs that go on. One that starts on the same host finds them, if the
# dead one said where it ran and was registered with the same token: to name a host proves
# nothing.


class AdoptIn(In):
    """A request that ``worker`` takes over the lease of ``owner``, whose process is dead."""

    worker: str
    attempt: LostAttempt
    owner: str


async def orphans(call: Call) -> object:
    found = await call.store.orphans(call.query.host, call.query.boot_id)
    owners = {lease.owner for lease in found}
    own = {owner for owner in owners if await call.speaks_for(owner)}
    shown = [
        replace(one, task=call.voiced(one.task))
        for one in found
        if one.owner in own and call.covers_queue(one.task.queue)
    ]
    return write({"leases": shown})


ROUTES += routes_of([ORPHANS], {"orphans": orphans})


@ROUTES.add(
    "POST /tasks/{id}/adopt",
    REPORTS,
    "Take over the lease of a worker that died; the attempt stays the same.",
    out_type(Claimed),
    body=AdoptIn,
    audited=False,  # in the history of the task
)
async def adopt(call: Call) -> object:
    form = call.body_as(AdoptIn)
    if not await call.speaks_for(form.owner):
        raise await _not_theirs(call, form)
    holder = Holder(
        task_id=TaskId(call.path["id"]), attempt=form.attempt, worker=WorkerId(form.owner)
    )
    return write(call.voiced(await call.store.adopt(holder, WorkerId(form.worker))))


async def _not_theirs(call: Call, form: AdoptIn) -> Refused:
    """Returns the error for a caller who may not adopt a task: LeaseLost if the named owner
    does not hold it, else NotAllowed.

    Every caller is told the former; only for a lease that is held does the token matter.
    """
    task = await call.found_task()
    if (task.owner, task.attempt) != (form.owner, form.attempt):
        return task.lease_lost(form.owner, form.attempt)
    return NotAllowed(
        f"worker {form.owner!r} was not registered with this token; "
        "only a worker of the same token takes over its tasks"
    )


@ROUTES.add(
    "GET /workers/{id}/cancelling",
    Needs(WORKER, no_name, worker=lambda call: call.path["id"]),
    "The tasks that a worker holds and that are to be cancelled.",
    answer(
        "CancellingOut",
        "The leases on tasks that are to be cancelled.",
        leases=list[answer("LeaseOut", id=str, attempt=int)],  # type: ignore[misc]
    ),
)
async def cancelling(call: Call) -> object:
    found = await call.store.cancelling(WorkerId(call.path["id"]))
    return {"leases": [{"id": one, "attempt": number} for one, number in found]}
