"""Keeps logs that workers elsewhere send, where those of this host are (0021)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec

from tidewheel.api.operation import WORKER
from tidewheel.api.tasks import Task
from tidewheel.api.wire import answer
from tidewheel.client.log_places import attempt_folder
from tidewheel.core.operator.definition import LATEST, read_job_name
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import LeaseLost, NotFound, Unavailable
from tidewheel.runners import job_logs
from tidewheel.runners.job_directory import make_private_directory
from tidewheel.runners.job_environment import home_id
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.reports import Attempt
from tidewheel.server.routes import Needs, RouteList, no_queue, queue_of_task
from tidewheel.server.validation import In

LATE_SECONDS_MAX = 86_400.0  # after its end: this server may have been away for long
RUNS = "runs"


ROUTES = RouteList()


class ChunkQuery(In):
    """The worker and the attempt that wrote a part of a log, and its place in the file."""

    worker: str
    attempt: Attempt
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


LogSizeOut = answer(
    "LogSizeOut",
    "The size of the file now: send from there on; if it is full, send no more.",
    size=int,
    full=bool,
)
HomeOut = answer(
    "HomeOut",
    """The id in the file home.id of this server's state directory.

    A host that finds the same id in its own state directory shares this server's folder.
    """,
    id=str,
)


class LogsUnwritable(Unavailable):
    """This server cannot keep logs just now; try again later."""

    code = "logs_unwritable"


@ROUTES.add(
    "PUT /tasks/{id}/logs/{stream}",
    Needs(WORKER, queue_of_task, worker=lambda call: call.query_as(ChunkQuery).worker),
    "A part of what an attempt wrote elsewhere: out, err, job or status.",
    LogSizeOut,
    query=ChunkQuery,
    raw=("application/octet-stream", "text/plain"),
    body_bytes_max=job_logs.CHUNK_BYTES_MAX,
    audited=False,  # as all that workers say of their attempts
)
async def take_in(call: Call) -> object:
    query, stream = call.query_as(ChunkQuery), call.path["stream"]
    if stream not in job_logs.FILES:
        raise NotFound("stream", stream)
    task = await call.found_task()
    await _require_attempt(call, task, query)
    home = call.settings.state_directory
    folder = await attempt_folder(call.store, home, (task.id, task.seq), query.attempt)
    write = (home, folder, job_logs.FILES[stream], query.offset, call.raw)
    try:
        end = await asyncio.to_thread(_write, task, *write)
    except OSError as error:
        raise LogsUnwritable(LogsUnwritable.__doc__) from error
    return {"size": end.size, "full": end.full}


def _write(
    task: Task, home: Path, folder: Path, name: str, offset: int, content: bytes
) -> job_logs.CopyEnd:
    kind, *folders = folder.relative_to(home).parts
    make_private_directory(home / kind)
    end = job_logs.add_to_copy(job_logs.CopyPlace(home / kind, folders, name), offset, content)
    if kind == RUNS and offset == 0:
        submit = f"{read_job_name(task.id).submit:02d}"
        until = len(folders) - folders[::-1].index(submit)
        job_logs.point_to_latest(home / kind, folders[:until], LATEST)
    return end


async def _require_attempt(call: Call, task: Task, query: ChunkQuery) -> None:
    """Requires that the attempt is the worker's, and has its lease or had it recently (D4)."""
    asked = (WorkerId(query.worker), query.attempt)
    if task.status in LEASED and (task.owner, task.attempt) == asked:
        return
    now = await call.store.now()
    for one in await call.store.attempts(task.id):
        recent = one.ended_at is None or now - one.ended_at <= LATE_SECONDS_MAX
        if (one.worker, one.attempt) == asked and recent:
            return
    owner = task.owner if task.status in LEASED else None
    raise LeaseLost(task.id, asked=asked, held=(owner, task.attempt))


@ROUTES.add(
    "GET /home",
    Needs(WORKER, no_queue),
    "Which folder this server keeps logs in, for workers that may share it.",
    HomeOut,
)
async def home(call: Call) -> object:
    return {"id": await asyncio.to_thread(home_id, call.settings.state_directory)}


# Logs over HTTP: the end of one, or a part of it, as plain text whatever it holds (S11).

LOG_BYTES_MAX = 1_000_000


class PartQuery(In):
    """The part of a log; without an offset it is the end."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=LOG_BYTES_MAX)] = LOG_BYTES_MAX


async def log_answer(root: Path, path: Path, query: PartQuery, what: str) -> Answer:
    """Returns some bytes of a file below the root; raises NotFound if it is no plain file."""
    from tidewheel.views.log import part_of_file

    part = await asyncio.to_thread(part_of_file, root, path, query.offset, query.limit)
    if part is None:
        raise NotFound("log", what)
    text, offset, size = part
    headers = {"x-log-offset": str(offset), "x-log-size": str(size)}
    return Answer(body=text, media_type="text/plain; charset=utf-8", headers=headers)
