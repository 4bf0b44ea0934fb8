"""Takes what jobs write and say: logs that workers elsewhere send (0021), messages of jobs."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Annotated

import msgspec

from tidewheel.api.operation import WORKER
from tidewheel.api.tasks import Task
from tidewheel.api.wire import answer
from tidewheel.client.log_places import attempt_folder
from tidewheel.core.graph.outputs import STARTED, unknown_output_text
from tidewheel.core.operator.definition import JOB_OUTPUTS, LATEST, read_job_name, run_named_by
from tidewheel.core.queue.access import JobWords
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import NotFound, Unavailable
from tidewheel.runners import job_logs
from tidewheel.runners.job_directory import make_private_directory
from tidewheel.runners.job_environment import home_id
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.resources.reports import REPORTS, Attempt, HolderIn
from tidewheel.server.routes import Needs, RouteList, any_job, no_name, own_task, queue_of_task
from tidewheel.server.validation import In, object_text

LATE_SECONDS_MAX = 86_400.0  # after its end: this server may have been away for long
RUNS = "runs"


ROUTES = RouteList()


class ChunkQuery(In):
    """Names the worker and attempt that wrote a part of a log, and its offset in the file."""

    worker: str
    attempt: Attempt
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**62)]


LogSizeOut = answer(
    "LogSizeOut",
    "``size`` is the present size of the file: send the next part from this offset. ``full``: "
    "the file may not become larger; send no more.",
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
    "Send a part of a file that an attempt wrote on another host: `out`, `err`, `job` or "
    "`status`.",
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
    home = call.server.settings.state_directory
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
    """Raises LeaseLost unless the worker has the attempt's lease, or had it recently (D4)."""
    asked = (WorkerId(query.worker), query.attempt)
    if task.status in LEASED and (task.owner, task.attempt) == asked:
        return
    now = await call.store.now()
    for one in await call.store.attempts(task.id):
        recent = one.ended_at is None or now - one.ended_at <= LATE_SECONDS_MAX
        if (one.worker, one.attempt) == asked and recent:
            return
    raise task.lease_lost(*asked)


@ROUTES.add(
    "GET /home",
    Needs(WORKER, no_name),
    "The id of the folder in which this server stores logs, for workers that may share it.",
    HomeOut,
)
async def home(call: Call) -> object:
    return {"id": await asyncio.to_thread(home_id, call.server.settings.state_directory)}


# Logs over HTTP: the end of one, or a part of it, as plain text whatever it holds (S11).

LOG_BYTES_MAX = 1_000_000
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
PartBytes = Annotated[int, msgspec.Meta(ge=1, le=LOG_BYTES_MAX)]


class PartQuery(In):
    """Says which part of a log is asked for; without an offset it is the end."""

    offset: Offset | None = None
    limit: PartBytes = LOG_BYTES_MAX


async def log_answer(root: Path, path: Path, query: PartQuery, what: str) -> Answer:
    """Returns some bytes of a file below the root; raises NotFound if it is no plain file."""
    from tidewheel.views.log import part_of_file

    part = await asyncio.to_thread(part_of_file, root, path, query.offset, query.limit)
    if part is None:
        raise NotFound("log", what)
    text, offset, size = part
    headers = {"x-log-offset": str(offset), "x-log-size": str(size)}
    return Answer(body=text, media_type="text/plain; charset=utf-8", headers=headers)


# Jobs speak for themselves: the token of an attempt, and what is said with it.

# The line of a job's script that lists its outputs (`scheduler/submissions.py`).
_DECLARED = re.compile(rf"^export {JOB_OUTPUTS}=(.*)$", re.MULTILINE)


AttemptTokenOut = answer(
    "AttemptTokenOut",
    "The token of a job; it is valid while the attempt has its lease.",
    **{"id": str, "attempt": int, "token": str},
)
HeardOut = answer("HeardOut", "The attempt whose message is stored.", id=str, attempt=int)


class WordsIn(In):
    """A message of a job: a text, an output, values, its progress, or several of these."""

    text: str = ""
    output: str | None = None
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object


@ROUTES.add(
    "POST /tasks/{id}/token",
    REPORTS,
    "A token for the job of this attempt: for requests about its messages, task and run.",
    AttemptTokenOut,
    body=HolderIn,
    audited=False,  # it is good for what the attempt does, and in its place
)
async def give_token(call: Call) -> object:
    assert call.token is not None
    form, task = call.body_as(HolderIn), await call.found_task()
    asked = (WorkerId(form.worker), form.attempt)
    if task.status not in LEASED or (task.owner, task.attempt) != asked:
        raise task.lease_lost(*asked)
    text = call.server.authenticator.key.sign(call.token, task)
    return {"id": task.id, "attempt": task.attempt, "token": text}


@ROUTES.add(
    "POST /tasks/{id}/messages",
    Needs(WORKER, queue_of_task, job=own_task),
    "Report a message, an output, values or the progress of a job, with the token of its "
    "attempt.",
    HeardOut,
    body=WordsIn,
    audited=False,  # in the outputs of the task
)
async def hear(call: Call) -> object:
    if call.job is None:
        raise NotAllowed(
            "only a job may send this, with the token of its attempt; a worker reports for "
            "its jobs: POST /api/v1/tasks/ID/outputs"
        )
    form, holder = call.body_as(WordsIn), call.job.holder
    values = object_text(form.values)
    if call.key is None and (form.text or form.output is not None or values is not None):
        # Somebody who overhears a request could send it again (S7).
        raise BadRequest(
            [
                "Idempotency-Key is missing: send this header with a new value for each "
                "message, so that a message that arrives twice counts once"
            ]
        )
    if not form.text and form.output is None and form.progress is None and values is None:
        raise BadRequest(["the message is empty: give text, output, values or progress"])
    if form.output is not None:
        if finding := name_finding("output", form.output):
            raise BadRequest([finding])
        _check_declared(await call.store.get(holder.task_id), form.output)
    heard = {"id": holder.task_id, "attempt": holder.attempt}
    words = JobWords(
        holder=holder,
        text=form.text,
        output=form.output,
        progress=form.progress,
        values=values,
        # Written together with the message, so that of two requests at once only one counts.
        kept=call.kept_answer(200, msgspec.json.encode(heard)),
    )
    await call.store.hear_job(words)
    return heard


def _check_declared(task: Task, output: str) -> None:
    """Raises BadRequest for an output that the task's definition does not name, as the command
    in a job does.

    A task that is in no run may announce anything.
    """
    found = _DECLARED.search(task.command or "")
    declared = shlex.split(found[1])[0].split() if found else None
    if declared is not None and output not in (*declared, STARTED):
        name = "this task" if run_named_by(task.id) is None else read_job_name(task.id).node
        raise BadRequest([unknown_output_text(name, output, declared)])


ROUTES.add(
    "POST /job/messages",
    Needs(WORKER, no_name, job=any_job),
    "Report as in POST /tasks/ID/messages, for the job whose token is sent: the job need not "
    "know the id of its task.",
    HeardOut,
    body=WordsIn,
    audited=False,
)(hear)
