"""Workers: introduce themselves, sign off, and can be looked at."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.api.tasks import WorkerView
from tidewheel.api.wire import answer, write
from tidewheel.core.queue.access import Scope, is_pattern
from tidewheel.core.queue.requests import Abilities, HostProcess, NewWorker
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import WorkerId
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.routes import API, Needs, Route, no_queue
from tidewheel.server.wire.validation import In
from tidewheel.server.wire.workers import (
    TroubleIn,
    WorkerIdOut,
    WorkerIn,
)


class WorkersQuery(In):
    """The parameter that shows workers that stopped, too."""

    all: bool = False


WorkersOut = answer("WorkersOut", workers=list[WorkerView])


async def queues_served(call: Call) -> Iterable[str]:
    """All that the worker wants to serve; a pattern is judged as a whole, its queues later."""
    wanted = call.body_as(WorkerIn).queues
    call.require_patterns(one for one in wanted if is_pattern(one))
    return [one for one in wanted if not is_pattern(one)]


async def register(call: Call) -> object:
    assert call.token is not None
    form = call.body_as(WorkerIn)
    named = [
        ("name", form.name),
        ("host", form.host or "-"),
        ("boot_id", form.boot_id),
        *_each("queues", form.queues),
    ]
    named += _each("labels", form.capacity.labels) + _each("handlers", form.handlers or ())
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
    return Answer(body=WorkerIdOut(id=worker), status=201)


def _each(what: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    return [(what, text) for text in texts]


async def list_workers(call: Call) -> object:
    found = await call.store.workers(live_only=not call.query_as(WorkersQuery).all)
    return write({"workers": [one for one in found if call.sees(one)]})


async def stop(call: Call) -> object:
    worker = WorkerId(call.path["id"])
    await call.store.stop_worker(worker)
    return WorkerIdOut(id=worker)


async def trouble(call: Call) -> object:
    worker = WorkerId(call.path["id"])
    await call.store.set_trouble(worker, call.body_as(TroubleIn).trouble)
    return WorkerIdOut(id=worker)


_OWN = Needs(scopes=(Scope.WORKER,), queues=no_queue, worker=lambda call: call.path["id"])
ROUTES = (
    Route(
        method="POST",
        path=f"{API}/workers",
        guard=Needs(scopes=(Scope.WORKER,), queues=queues_served),
        handler=register,
        says="Take a worker id from the store; it is this token's.",
        body=WorkerIn,
        answers=WorkerIdOut,
        status=201,
    ),
    Route(
        method="GET",
        path=f"{API}/workers",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=list_workers,
        says="Workers alive and what they hold; with all=true also those that stopped.",
        query=WorkersQuery,
        answers=WorkersOut,
    ),
    Route(
        method="POST",
        path=f"{API}/workers/{{id}}/stop",
        guard=_OWN,
        handler=stop,
        says="Sign off; leases that the worker still holds run out by themselves.",
        answers=WorkerIdOut,
    ),
    Route(
        method="POST",
        path=f"{API}/workers/{{id}}/trouble",
        guard=_OWN,
        handler=trouble,
        says="Let people know why the worker takes no tasks just now.",
        body=TroubleIn,
        answers=WorkerIdOut,
        audited=False,
    ),
)
