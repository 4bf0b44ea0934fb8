"""Defines what a route is: none can be registered without saying who may call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import field, replace
from typing import Any

import msgspec

from tidewheel.api.operation import READ
from tidewheel.client.log_places import is_submission
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import EVERYTHING, Grant, Name, Scope, queue_name, run_name
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.server.call import Call
from tidewheel.server.errors import NotAllowed
from tidewheel.server.load_shedding import Urgency, urgency_of
from tidewheel.services.job_api import JobApi

API = "/api/v1"

Handler = Callable[[Call], Awaitable[object]]
Names = Callable[[Call], Awaitable[Iterable[Name]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Lets anybody call a route, with a token or without; ``because`` is the reason."""

    because: str


@dataclass(frozen=True, slots=True)
class Needs:
    """Lets in a caller with one of these scopes, for every name that the request concerns.

    ``narrow`` looks into the request where one route does several kinds of things. ``worker``
    names the worker that the request speaks for, which must be the caller's own. ``job``
    judges, instead of all else, a job that calls with its own token; without it no job is let
    in.
    """

    scopes: tuple[Scope, ...]
    names: Names
    narrow: Callable[[Call], tuple[Scope, ...]] | None = None
    worker: Callable[[Call], str | None] | None = None
    job: Callable[[Call], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        assert self.scopes, "a guard without a scope would let everybody in"


Guard = Open | Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Describes one request that the server answers."""

    method: str
    path: str
    guard: Guard
    handler: Handler
    says: str  # one line of documentation
    query: type[msgspec.Struct] | None = None
    body: object = None  # a type; None: no body is read
    answers: object = None  # a type, or several: one of them
    media_type: str = "application/json"  # of the answer
    status: int = 200
    may_be_later: bool = False  # 202: what was asked for is stored, and done by and by
    parse: Callable[[Call], object] | None = None  # instead of reading a ``body``
    form: bool = False  # whether a form of a browser is read instead of JSON
    # Media types, where bytes are taken as they are; JSON may be one of them, told by `body`.
    raw: tuple[str, ...] = ()
    body_bytes_max: int | None = None  # instead of what the settings say
    body_seconds_max: float | None = None
    page: bool = False  # an address of the web page, which reads its parameters by itself
    audited: bool = True  # where a call changes something
    seconds_max: float | None = None  # instead of what the settings say
    urgency: Urgency | None = None  # instead of what follows from the rest

    # What follows from the rest, and every request is asked for:
    changes: bool = field(init=False)  # a call may change something
    verb: str = field(init=False)  # its name in logs, metrics and the audit
    rank: Urgency = field(init=False)  # how urgent requests are when there is too much to do
    is_open: bool = field(init=False)  # anybody may call it
    parts: tuple[str | None, ...] = field(init=False)  # names of parameters; None: a word

    def __post_init__(self) -> None:
        if not isinstance(self.guard, Open | Needs):
            raise TypeError(f"{self.method} {self.path} has no guard: say who may call it")
        assert self.method in ("GET", "POST", "PATCH", "PUT", "DELETE"), self.method
        scopes = self.guard.scopes if isinstance(self.guard, Needs) else ()
        rank = urgency_of(self.method, self.path, self.media_type, scopes)
        for name, value in {
            "changes": self.method != "GET",
            "verb": f"{self.method} {self.path}",
            "rank": rank if self.urgency is None else self.urgency,
            "is_open": isinstance(self.guard, Open),
            "parts": tuple(
                one[1:-1] if one.startswith("{") else None for one in self.path.split("/")[1:]
            ),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def path_names(self) -> list[str]:
        """Returns the names of the parameters in the path."""
        return [one for one in self.parts if one is not None]


class RouteList(list[Route]):
    """Collects the routes of a module, in the order in which their handlers stand there."""

    def add(
        self,
        verb: str,
        guard: Guard,
        says: str,
        answers: object = None,
        *,
        root: str = API,
        **rest: Any,  # noqa: ANN401 - fields of a Route
    ) -> Callable[[Handler], Handler]:
        """Returns a decorator that adds a route for a handler; ``verb`` is the method and the
        path, below the API unless there is another ``root``."""
        method, _, path = verb.partition(" ")
        known = {"method": method, "path": root + path, "guard": guard, "says": says} | rest

        def add(handler: Handler) -> Handler:
            self.append(Route(handler=handler, answers=answers, **known))
            return handler

        return add


async def no_name(call: Call) -> Iterable[Name]:
    """Returns no name.

    The request concerns nothing that has one, or its handler shows only what the caller may
    see.
    """
    del call
    return ()


async def queue_of_path(call: Call) -> Iterable[Name]:
    """Returns the name of the queue in the path."""
    return (queue_name(call.path["queue"]),)


async def queue_asked(call: Call) -> Iterable[Name]:
    """Returns the name of the queue in the query; none if it names none, as the handler then
    shows what the caller may see."""
    return () if call.query.queue is None else (queue_name(call.query.queue),)


async def run_of_path(call: Call) -> Iterable[Name]:
    """Returns the name of the run in the path."""
    return (run_name((await call.found_run()).name),)


async def run_and_queue(call: Call) -> Iterable[Name]:
    """Returns the names of the run in the path and of the queue where its jobs run: who
    commands a run has code executed there."""
    run = await call.found_run()
    return (run_name(run.name), queue_name(run.queue))


async def queue_of_task(call: Call) -> Iterable[Name]:
    """Returns the name of the queue of the task in the path, which is found only if the caller
    may see it."""
    return (queue_name((await call.found_task()).queue),)


READS = Needs(READ, no_name)

# What a job may do with its own token: see its task and its run, and operate its run.
#
# To operate its run, the run's definition must let jobs do so (`job commands`), as for a job
# that asks through its worker.


async def any_job(call: Call) -> None:
    """Lets in every job: the request concerns nothing but the job that makes it."""
    assert call.job is not None


async def own_task(call: Call) -> None:
    """Raises NotAllowed unless the path names the task that the job executes."""
    assert call.job is not None
    if call.path["id"] != call.job.task.id:
        raise NotAllowed(f"this token is only for task {call.job.task.id!r}")
    call.task = call.job.task


READS_TASK = Needs(READ, queue_of_task, job=own_task)


async def run_of_job(call: Call) -> RunView:
    """Returns the run that the calling job belongs to, and lets the job see from now on what
    the token that asked for this run may see."""
    assert call.job is not None and call.token is not None
    task_id = call.job.task.id
    if not await is_submission(call.server.asking, task_id):
        raise NotAllowed(f"this token belongs to task {task_id!r}, which is not part of a run")
    run = await call.server.asking.find_run(name := read_job_name(task_id).run)
    if run.name != name:  # its run was deleted meanwhile
        raise NotFound("run", name)
    names = EVERYTHING if run.sees is None else run.sees
    call.token = replace(call.token, grant=Grant(scopes=frozenset(), names=names))
    return run


async def looking(call: Call) -> None:
    """Lets a job look at its own run, and at what its submitter may see."""
    own = await run_of_job(call)
    if call.path["run"] == own.name:
        call.run = own
    elif (await call.found_run()).number != own.number:
        call.require(await run_of_path(call))


async def operating_own_run(call: Call) -> None:
    """Raises NotAllowed unless the path names the job's own run and jobs may command it."""
    own, asked = await run_of_job(call), call.path["run"]
    if asked != own.name:
        raise NotAllowed(f"a job of {own.name} may command its own run, not {asked[:256]!r}")
    call.run = run = own
    home = call.server.settings.state_directory
    jobs = JobApi(call.doors.of(call.store), home, read=call.doors.read)
    if not await jobs.allows_commands(run):
        raise NotAllowed(
            f"jobs of {run.name} may only send messages and look at their run; "
            "allow more with [scheduler] job commands = True"
        )
