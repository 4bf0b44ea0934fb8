"""Lets jobs speak for themselves: the token of an attempt, and what is said with it."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import msgspec

from tidewheel.api.operation import WORKER
from tidewheel.api.tasks import Task
from tidewheel.api.wire import answer
from tidewheel.core.graph.outputs import STARTED, unknown_output_text
from tidewheel.core.operator.definition import JOB_OUTPUTS, read_job_name, run_named_by
from tidewheel.core.queue.access import JobWords
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import WorkerId
from tidewheel.core.queue.tokens import attempt_token
from tidewheel.errors import LeaseLost
from tidewheel.server import routes
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.resources.reports import REPORTS, HolderIn
from tidewheel.server.validation import In

# The line of a job's script that lists its outputs (`scheduler/submissions.py`).
_DECLARED = re.compile(rf"^export {JOB_OUTPUTS}=(.*)$", re.MULTILINE)


ROUTES = routes.RouteList()
AttemptTokenOut = answer(
    "AttemptTokenOut",
    "Good for this attempt, for as long as it has its lease.",
    **{"id": str, "attempt": int, "token": str},
)
HeardOut = answer("HeardOut", "The attempt whose message is stored.", id=str, attempt=int)


class WordsIn(In):
    """A message of a job about itself: a text, an output, how far it is, or all of it."""

    text: str = ""
    output: str | None = None
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


@ROUTES.add(
    "POST /tasks/{id}/token",
    REPORTS,
    "A token for the job of this attempt: its messages, its task, its run.",
    AttemptTokenOut,
    body=HolderIn,
    audited=False,  # it is good for what the attempt does, and in its place
)
async def give_token(call: Call) -> object:
    assert call.token is not None
    form, task = call.body_as(HolderIn), await call.found_task()
    asked = (WorkerId(form.worker), form.attempt)
    if task.status not in LEASED or (task.owner, task.attempt) != asked:
        owner = task.owner if task.status in LEASED else None
        raise LeaseLost(task.id, asked=asked, held=(owner, task.attempt))
    parent = call.token
    text = attempt_token(parent.number, parent.digest, (task.id, task.seq), task.attempt)
    return {"id": task.id, "attempt": task.attempt, "token": text}


@ROUTES.add(
    "POST /tasks/{id}/messages",
    routes.Needs(WORKER, routes.queue_of_task, job=routes.own_task),
    "What a job says by itself, with the token of its attempt.",
    HeardOut,
    body=WordsIn,
    audited=False,  # in the outputs of the task
)
async def hear(call: Call) -> object:
    if call.job is None:
        raise NotAllowed(
            "this is for jobs, with the token of their attempt; a worker passes on what its "
            "jobs say: POST /api/v1/tasks/ID/outputs"
        )
    form, holder = call.body_as(WordsIn), call.job.holder
    if call.key is None and (form.text or form.output is not None):
        # Somebody who overhears a request could send it again (S7).
        raise BadRequest(
            [
                "Idempotency-Key is missing: send this header with a new value for each "
                "message, so that one that comes twice counts once"
            ]
        )
    if not form.text and form.output is None and form.progress is None:
        raise BadRequest(["a message has a text, an output or a progress"])
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
        # Written together with the message, so that of two requests at once only one counts.
        kept=call.kept_answer(200, msgspec.json.encode(heard)),
    )
    await call.store.hear_job(words)
    return heard


def _check_declared(task: Task, output: str) -> None:
    """Refuses an output that the task's definition does not name, as the command in a job does.

    A task that is in no run may announce anything.
    """
    found = _DECLARED.search(task.command or "")
    declared = shlex.split(found[1])[0].split() if found else None
    if declared is not None and output not in (*declared, STARTED):
        name = "this task" if run_named_by(task.id) is None else read_job_name(task.id).node
        raise BadRequest([unknown_output_text(name, output, declared)])


ROUTES.add(
    "POST /job/messages",
    routes.Needs(WORKER, routes.no_queue, job=routes.any_job),
    "The same for the job whose token is shown: it need not know its task's id.",
    HeardOut,
    body=WordsIn,
    audited=False,
)(hear)
