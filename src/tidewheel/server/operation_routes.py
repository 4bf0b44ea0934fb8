"""Makes routes of the rows of `api.operations`: guard, query, body, answer and handler.

Everything is worked out when the routes are made; a request only picks its arguments, calls the
method and writes the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from tidewheel.api.operation import (
    REQUIRED,
    Answer,
    Concern,
    Echo,
    Listed,
    ListedDocuments,
    Operation,
    Parameter,
    Part,
    Place,
    ServiceName,
    Work,
    resolved,
)
from tidewheel.api.tasks import WorkerView
from tidewheel.api.wire import answer, out_type, write
from tidewheel.config import scheduler_settings
from tidewheel.core.queue.access import Name, run_name, workflow_name
from tidewheel.errors import NotFound
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.routes import (
    API,
    Handler,
    Needs,
    Route,
    no_name,
    own_task,
    queue_of_path,
    queue_of_task,
)
from tidewheel.server.validation import In
from tidewheel.services.run_service import check_jobs
from tidewheel.wiring.services import notification_desk

if TYPE_CHECKING:
    from tidewheel.formats.sip.scheduling_block import SbiRequest
    from tidewheel.ports.runs import BringsNotifications, RunDoor
    from tidewheel.services.blocks.service import BlockService
    from tidewheel.services.registry.service import RegistryService

DIGITS_MAX = 18


def routes_of(
    rows: Iterable[Operation],
    handlers: Mapping[str, Handler] | None = None,
    then: Mapping[str, Handler] | None = None,
) -> tuple[Route, ...]:
    """Returns the routes of some rows, in their order.

    ``handlers`` has, by the names of operations, handlers to be used instead of the derived
    ones; ``then`` has handlers that make the answer after the operation was done.
    """
    return tuple(_route(row, (handlers or {}).get(row.name), then or {}) for row in rows)


def _route(row: Operation, handler: Handler | None, then: Mapping[str, Handler]) -> Route:
    queried = tuple(one for one in row.takes if one.place is Place.QUERY)
    sent = tuple(one for one in row.takes if one.place is Place.BODY)
    return Route(
        method=row.method,
        path=API + row.path,
        guard=Needs(scopes=row.scopes, **_GUARDS[row.concerns]),
        handler=handler or _handler(row, then.get(row.name)),
        says=row.says,
        query=_form(f"{row.name}_query", "", queried) if queried else None,
        body=_form(*row.form, sent) if sent else None,
        answers=answer_type(row),
        audited=row.audited,
        seconds_max=row.seconds_max,
        urgency=Urgency.READ if row.only_reads else None,
    )


@cache  # a type of one name stands once in the OpenAPI document
def _form(title: str, says: str, given: tuple[Parameter, ...]) -> type[msgspec.Struct]:
    shown: list[Any] = [
        (one.key, one.kind) if one.default is REQUIRED else (one.key, one.kind, one.default)
        for one in given
    ]
    return msgspec.defstruct(title, shown, bases=(In,), namespace={"__doc__": says})


def answer_type(row: Operation) -> object:
    """Returns the type of an operation's answer; a type of one name is made once, as the
    OpenAPI document has it once."""
    match row.answers:
        case Listed(title, key, kind, says, _, goes_on, beside):
            parts: dict[str, Any] = {key: list[resolved(kind)], **dict(beside)}  # type: ignore[misc]
            parts |= {"next": int | None} if goes_on else {}
        case Part(title, _, named, says):
            parts = dict(named)
        case Echo(title, key):
            parts, says = {key: str}, None
        case ListedDocuments(named) | str(named):
            return resolved(named)
        case kind:
            return out_type(kind)
    if title not in _ANSWER_TYPES:
        _ANSWER_TYPES[title] = answer(title, says, **parts)
    return _ANSWER_TYPES[title]


_ANSWER_TYPES: dict[str, object] = {}  # those that rows name

# What is done with a request.


def _handler(row: Operation, then: Handler | None) -> Handler:
    service, work, name, target = _SERVICES[row.of], _WORK[row.work], row.name, row.target
    getters = [(one.name, _getter(one)) for one in row.takes]
    fixed, tell = dict(row.fixed), _teller(row.answers)

    async def handler(call: Call) -> object:
        asked = {argument: get(call) for argument, get in getters}
        if target is not None:
            call.targets.append(target(asked))
        found = await work(call, partial(getattr(service(call), name), **asked, **fixed))
        return tell(call, found) if then is None else await then(call)

    return handler


_PLACES: dict[Place, Callable[[Call, str], Any]] = {
    Place.PATH: lambda call, key: call.path[key],
    Place.QUERY: lambda call, key: getattr(call.query, key),
    Place.BODY: lambda call, key: getattr(call.body, key),
    Place.CALLER: lambda call, _: call.who,
}


def _getter(one: Parameter) -> Callable[[Call], Any]:
    get, key, turn = _PLACES[one.place], one.key, one.turn
    if one.place is Place.PATH and one.kind is int:
        turn = partial(whole_number, key)
    return (lambda call: get(call, key)) if turn is None else lambda call: turn(get(call, key))


def whole_number(key: str, text: str) -> int:
    """Returns the number in a path; raises BadRequest for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise BadRequest([f"{key} is {text[:100]!r}; expected a whole number"])
    return int(text)


_WORK: dict[Work, Callable[[Call, Any], Awaitable[Any]]] = {
    Work.HERE: lambda _, begin: begin(),
    Work.APART: lambda call, begin: call.doors.view(_named(call), begin),
}


def _named(call: Call) -> str:
    return next(iter(call.path.values()), "")


# How answers are written.

_SEES: dict[str | None, Callable[[Call, Any], bool]] = {
    None: lambda _, __: True,
    "queue": lambda call, one: call.covers_queue(one.queue),
    "worker": lambda call, one: call.sees(one),
}


def _shown(call: Call, one: Any) -> Any:  # noqa: ANN401 - any thing of a list
    """Returns a thing as the caller may see it: of a worker that serves others, too, without
    their queues."""
    if not isinstance(one, WorkerView):
        return one
    return replace(one, queues=tuple(filter(call.covers_queue, one.queues)))


def _teller(answers: Answer) -> Callable[[Call, Any], object]:
    match answers:
        case Listed(_, key, _, _, _, (_, last)):

            def tell_page(call: Call, found: list[Any]) -> object:
                is_full = len(found) == call.query.limit
                return write(
                    {key: found, "next": getattr(found[-1], last) if is_full else None}
                )

            return tell_page
        case Listed(_, key, _, _, seen):
            sees = _SEES[seen]
            return lambda call, found: write(
                {key: [_shown(call, one) for one in found if sees(call, one)]}
            )
        case Echo(_, key):
            return lambda call, _: {key: call.path[key]}
        case ListedDocuments(_, key, name):
            return lambda call, found: {
                key: [one for one in found[key] if call.covers(workflow_name(one[name]))]
            }
        case _:
            return lambda _, found: write(found)


# Who may ask.


async def name_of_path(call: Call) -> Iterable[Name]:
    """Returns the name in the path, of a workflow or an object."""
    return (workflow_name(call.path["name"]),)


async def _run_of_block(call: Call) -> Iterable[Name]:
    return (run_name(call.path["block"]),)  # each block is a run of its name


async def _runs_of_sbi(call: Call) -> Iterable[Name]:
    """Returns the name of the instance in the path; raises NotFound if the caller covers that,
    but may not see all of its blocks."""
    name, sbi_id = workflow_name(call.path["sbi"]), call.path["sbi"]
    if call.covers(name) and not await sees_blocks(call, sbi_id):
        raise NotFound("scheduling block instance", sbi_id)
    return (name,)


async def sees_blocks(call: Call, sbi_id: str) -> bool:
    """Says whether a scheduling block instance is there and the caller may see its blocks."""
    try:
        sbi = await call.server.asking.sbi(sbi_id)
    except NotFound:
        return False
    return all(call.covers(run_name(one.run.name)) for one in sbi.blocks)


_GUARDS: dict[Concern, dict[str, Any]] = {
    Concern.NOTHING: {"names": no_name},
    Concern.TASK: {"names": queue_of_task, "job": own_task},
    Concern.CHANGED_TASK: {"names": queue_of_task},
    Concern.QUEUE: {"names": queue_of_path},
    Concern.WORKER: {"names": no_name, "worker": lambda call: call.path["id"]},
    Concern.NAME: {"names": name_of_path},
    Concern.BLOCK: {"names": _run_of_block},
    Concern.SBI: {"names": _runs_of_sbi},
}

# Whom it is asked of.


def run_door(call: Call) -> RunDoor:
    """Returns the service for the runs of this server's store."""
    return call.doors.of(call.store)


def registry_door(call: Call) -> RegistryService:
    """Returns the registry with this caller's rights; no code of a definition runs here."""
    from tidewheel.services.registry.service import RegistryService

    return RegistryService(
        call.store,
        run_door(call),
        code_trusted=False,
        permit=lambda names: call.require(map(workflow_name, names)),
        sees=call.readable,
        read=call.doors.read,
        check=partial(check_jobs, call.doors.home),
    )


def block_door(call: Call) -> BlockService:
    """Returns the service for blocks with this caller's rights; no definition's code runs."""
    from tidewheel.services.blocks.service import BlockService, Rights

    def permit(request: SbiRequest) -> None:
        call.require(workflow_name(one.workflow) for one in request.blocks)
        call.require(run_name(one.id) for one in request.blocks)
        call.require((workflow_name(request.id),))

    return BlockService(
        call.store,
        run_door(call),
        call.server.settings.state_directory,
        code_trusted=False,
        rights=Rights(permit=permit, names=call.readable),
        read=call.doors.read,
    )


def _notifications(call: Call) -> BringsNotifications:
    home = call.server.settings.state_directory
    return notification_desk(call.store, home, scheduler_settings().smtp)


_SERVICES: dict[ServiceName, Callable[[Call], Any]] = {
    ServiceName.STORE: lambda call: call.store,
    ServiceName.BLOCKS: block_door,
    ServiceName.REGISTRY: registry_door,
    ServiceName.NOTIFICATIONS: _notifications,
}
