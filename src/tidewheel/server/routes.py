"""Defines what a route is: none can be registered without saying who may call it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from tidewheel.api.operation import READ
from tidewheel.client.log_places import is_submission
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.queue.access import Scope
from tidewheel.server.call import Call
from tidewheel.server.errors import NotAllowed
from tidewheel.server.load_shedding import Urgency, urgency_of
from tidewheel.services.job_api import JobApi
from tidewheel.wiring.services import run_door

API = "/api/v1"

Handler = Callable[[Call], Awaitable[object]]
Queues = Callable[[Call], Awaitable[Iterable[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Lets anybody call a route, with a token or without; ``because`` is the reason."""

    because: str


@dataclass(frozen=True, slots=True)
class Needs:
    """Lets in a caller with one of these scopes, for every queue that the request concerns.

    ``narrow`` looks into the request where one route does several kinds of things. ``worker``
    names the worker that the request speaks for, which must be the caller's own. ``job``
    judges, instead of all else, a job that calls with its own token; without it no job is let
    in.
    """

    scopes: tuple[Scope, ...]
    queues: Queues
    workflows: Queues | None = None  # the same for workflows
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

    def __post_init__(self) -> None:
        if not isinstance(self.guard, Open | Needs):
            raise TypeError(f"{self.method} {self.path} has no guard: say who may call it")
        assert self.method in ("GET", "POST", "PATCH", "PUT", "DELETE"), self.method

    @property
    def changes(self) -> bool:
        """Says whether a call may change something."""
        return self.method != "GET"

    @property
    def rank(self) -> Urgency:
        """Returns how urgent requests of this route are when there is too much to do."""
        if self.urgency is not None:
            return self.urgency
        scopes = self.guard.scopes if isinstance(self.guard, Needs) else ()
        return urgency_of(self.method, self.path, self.media_type, scopes)

    @property
    def verb(self) -> str:
        """Returns the name of the route in logs, metrics and the audit."""
        return f"{self.method} {self.path}"

    @property
    def path_names(self) -> list[str]:
        """Returns the names of the parameters in the path."""
        return re.findall(r"{(\w+)}", self.path)


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


async def no_queue(call: Call) -> Iterable[str]:
    """Returns no queue.

    The request concerns none, or its handler shows only what the caller may see.
    """
    del call
    return ()


async def queue_of_path(call: Call) -> Iterable[str]:
    """Returns the queue that the path names."""
    return (call.path["queue"],)


async def queue_asked(call: Call) -> Iterable[str]:
    """Returns the queue that the query names; none if it names none, as the handler then shows
    what the caller may see."""
    return () if call.query.queue is None else (call.query.queue,)


async def workflow_of_run(call: Call) -> Iterable[str]:
    """Returns the workflow of the run that the path names."""
    return ((await call.found_run()).workflow,)


async def queue_of_task(call: Call) -> Iterable[str]:
    """Returns the queue of the task that the path names."""
    return ((await call.found_task()).queue,)


READS = Needs(READ, no_queue)

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
        raise NotAllowed(f"this token is of task {call.job.task.id!r} alone")


READS_TASK = Needs(READ, queue_of_task, job=own_task)


async def own_run(call: Call) -> None:
    """Raises NotAllowed unless the path names the run that the job belongs to."""
    assert call.job is not None
    task_id, run = call.job.task.id, await call.found_run()
    belongs = await is_submission(call.asking, task_id)
    if not belongs or read_job_name(task_id).run != run.name:
        raise NotAllowed(f"this token is of task {task_id!r}, which is not of {run.name}")


async def operating_own_run(call: Call) -> None:
    """Raises NotAllowed unless the path names the job's own run and jobs may command it."""
    await own_run(call)
    run = await call.found_run()
    home = call.settings.state_directory
    if not await JobApi(run_door(call.store, home), home).allows_commands(run):
        raise NotAllowed(
            f"jobs of {run.name} may send messages and look; "
            "allow more with [scheduler] job commands = True"
        )
