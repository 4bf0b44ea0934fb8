"""Answers the reports of workers: signs of life, starts, outputs, usage, ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from tidewheel.api.operation import WORKER
from tidewheel.api.wire import out_type, write
from tidewheel.core.queue.lease import Holder, LeaseAnswer
from tidewheel.core.queue.requests import (
    Beat,
    Claimed,
    End,
    Ending,
    JobMessage,
    Report,
    Reported,
    UsageSample,
)
from tidewheel.core.queue.task import TaskError, TaskId, WorkerId
from tidewheel.errors import NotFound, WrongStatus
from tidewheel.exact_json import decode
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, Problem, problem
from tidewheel.server.routes import Needs, RouteList, no_name, queue_of_task
from tidewheel.server.validation import In, Out, object_text

Percent = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
LostAttempt = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]  # perhaps no lease at all
ExitStatus = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
ROUTES = RouteList()


class ClaimTaskIn(In):
    """A worker asks for one task by its id."""

    worker: str
    lease_s: float | None = None


class HolderIn(In):
    """The lease that a report is about: worker and attempt."""

    worker: str
    attempt: Attempt


class BeatIn(HolderIn):
    """A heartbeat."""

    progress: float | None = None


class OneBeat(In):
    """One of several heartbeats."""

    id: str
    attempt: LostAttempt
    progress: float | None = None


class BeatsIn(In):
    """Heartbeats for some leases of a worker."""

    worker: str
    beats: Annotated[list[OneBeat], msgspec.Meta(max_length=10_000)]


class BeatOut(Out):
    """The answer to a heartbeat. ``go_on``: continue the job. ``cancel``: end the job, and
    report its end. ``lost``: the lease is lost; end the job, and report nothing."""

    id: str
    answer: Literal["go_on", "cancel", "lost"]


class BeatsOut(Out):
    """One answer for each heartbeat, in the order of the request."""

    answers: list[BeatOut]


class MessageIn(In):
    """A message of a job. The messages of an attempt are numbered 1, 2, …; a message that is
    sent twice with the same number is stored once."""

    number: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    text: str
    output: str | None = None
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object
    values_text: str | None = None  # the same as a text

    def value(self) -> JobMessage:
        """Returns the message as the store takes it, which judges the values itself."""
        told = object_text(self.values) if self.values_text is None else self.values_text
        return JobMessage(number=self.number, text=self.text, output=self.output, values=told)


class MessagesIn(HolderIn):
    """The messages of a job."""

    messages: Annotated[list[MessageIn], msgspec.Meta(min_length=1, max_length=1_000)]


class SampleIn(In):
    """The resources that a job used at one moment."""

    memory_bytes: Bytes | None = None
    cpu_percent: Percent | None = None
    gpu_percent: Percent | None = None
    gpu_memory_bytes: Bytes | None = None


class SamplesIn(HolderIn):
    """The resources that a job used, at several moments."""

    samples: Annotated[list[SampleIn], msgspec.Meta(min_length=1, max_length=1_000)]


class ErrorIn(In):
    """The reason for a failure."""

    code: str = "error"
    description: str = ""
    args: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class FinishIn(HolderIn):
    """The end of an attempt; ``failed`` and ``aborted`` need an ``error``."""

    ending: Literal["succeeded", "failed", "aborted"]
    error: ErrorIn | None = None
    exit_status: ExitStatus | None = None
    metrics: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object, of a success


class EndIn(In):
    """The end of an attempt; ``yielded`` gives the task back, so that another worker can take
    it at once."""

    ending: Literal["succeeded", "failed", "aborted", "yielded"]
    error: ErrorIn | None = None
    exit_status: ExitStatus | None = None
    metrics: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    metrics_text: str | None = None  # the same as a text that holds JSON, white space and all
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object, of a success
    values_text: str | None = None  # the same as a text

    def value(self) -> End:
        """Returns the end of an attempt for the store, which judges the values itself; raises
        BadRequest if its parts do not fit together."""
        ending = Ending(self.ending)
        needs_error = ending in (Ending.FAILED, Ending.ABORTED)
        if self.error is not None and not needs_error:
            raise BadRequest([f"error: leave it out for an attempt that {ending}"])
        if self.error is None and needs_error:
            raise BadRequest([f"error is missing: an attempt that {ending} needs one"])
        if self.metrics_text is not None:
            _json_text("metrics_text", msgspec.Raw(self.metrics_text.encode()))
        values = self.values_text
        if values is None:
            values = object_text(self.values)
        if values is not None and ending is not Ending.SUCCEEDED:
            raise BadRequest([f"values: leave them out for an attempt that {ending}"])
        return End(
            ending=ending,
            error=_task_error(self.error) if self.error else None,
            exit_status=self.exit_status,
            metrics=self.metrics_text or _json_text("metrics", self.metrics),
            values=values,
        )


class OneReport(In):
    """A report of what happened in an attempt since the last one; ``end`` makes it the last."""

    id: str
    attempt: LostAttempt
    started: bool = False
    started_seconds_ago: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    messages: Annotated[tuple[MessageIn, ...], msgspec.Meta(max_length=10_000)] = ()
    samples: Annotated[tuple[SampleIn, ...], msgspec.Meta(max_length=10_000)] = ()
    end: EndIn | None = None
    frees: str | None = None  # the queue in which this end leaves a place that was limited

    def value(self, worker: str) -> Report:
        """Returns the report as the store takes it."""
        return Report(
            holder=Holder(
                task_id=TaskId(self.id), attempt=self.attempt, worker=WorkerId(worker)
            ),
            started=self.started,
            started_seconds_ago=self.started_seconds_ago,
            messages=_messages(self.messages),
            usage=_samples(self.samples),
            end=self.end.value() if self.end else None,
            frees=self.frees,
        )


class ReportsIn(In):
    """The reports on attempts of one worker."""

    worker: str
    reports: Annotated[list[OneReport], msgspec.Meta(max_length=10_000)]


class ReportedOut(Out):
    """The status of the task after one report, or why the report was refused."""

    id: str
    status: str | None
    refused: Problem | None


class ReportsOut(Out):
    """One answer for each report, in the order of the request; one that is refused does not
    stop the others."""

    answers: list[ReportedOut]


class StatusOut(Out):
    """The status of the task after a report; it is cancelled if a request to cancel the task
    came first."""

    id: str
    status: str


def _messages(given: Iterable[MessageIn]) -> tuple[JobMessage, ...]:
    return tuple(one.value() for one in given)


def _samples(given: Iterable[SampleIn]) -> tuple[UsageSample, ...]:
    return tuple(UsageSample(**msgspec.structs.asdict(one)) for one in given)


def _task_error(given: ErrorIn) -> TaskError:
    """Returns the error for the store; raises BadRequest if code and description are empty."""
    if not (given.code.strip() or given.description.strip()):
        raise BadRequest(["error: give a code or a description"])
    args = _json_text("error.args", given.args) or "{}"
    return TaskError(code=given.code, description=given.description, args=args)


def _json_text(what: str, raw: msgspec.Raw) -> str | None:
    """Returns JSON as it was sent, None if none was; raises BadRequest for what is no JSON."""
    text = bytes(raw).decode()
    if not text:
        return None
    try:
        decode(text)
    except ValueError as error:
        raise BadRequest([f"{what}: {error}"]) from None
    return text


# Reports on one attempt.


def worker_of_body(call: Call) -> str:
    """Returns the worker that the body names, which must be the caller's own."""
    worker: str = call.body.worker
    return worker


REPORTS = Needs(WORKER, queue_of_task, worker=worker_of_body)


async def live_holder(call: Call, worker: str | None, attempt: int | None) -> Holder:
    """Returns the lease that is reported on: the one named, else the task's live one."""
    task = await call.found_task()
    if (named := worker or task.owner) is None:
        raise WrongStatus(task.id, "a report", task.status, ["running"])
    own = await call.require_worker(named)
    number = task.attempt if attempt is None else attempt
    return Holder(task_id=task.id, attempt=number, worker=own)


async def tell(call: Call, report: Report) -> StatusOut:
    """Passes a report to the store, returns the task's status; raises the store's refusal."""
    if report.end is not None:
        # Somebody may wait for the place that this end leaves; told too often is harmless.
        report = replace(report, frees=(await call.found_task()).queue)
    [answer] = await call.store.report([report])
    if answer.refused is not None:
        raise answer.refused
    assert answer.status is not None
    return StatusOut(id=report.holder.task_id, status=answer.status.value)


async def claim(call: Call) -> object:
    form, task = call.body_as(ClaimTaskIn), await call.found_task()
    worker = WorkerId(form.worker)
    return write(call.voiced(await call.store.claim_by_id(task.id, worker, form.lease_s)))


def _holder(call: Call) -> Holder:
    form = call.body_as(HolderIn)
    return Holder(
        task_id=TaskId(call.path["id"]), attempt=form.attempt, worker=WorkerId(form.worker)
    )


async def heartbeat(call: Call) -> object:
    """Extends a lease; one that was lost is a conflict, so that no client can overlook it."""
    held, form = _holder(call), call.body_as(BeatIn)
    beat = Beat(task_id=held.task_id, attempt=held.attempt, progress=form.progress)
    [answer] = await call.server.gathered.heartbeat(held.worker, [beat])
    if answer is not LeaseAnswer.LOST:
        return BeatOut(id=held.task_id, answer=answer.value)
    task = await call.store.get(held.task_id)
    raise task.report_refused(held.worker, held.attempt, "heartbeat")


def _telling(part: Callable[[Any], dict[str, Any]]) -> Callable[[Call], Awaitable[object]]:
    """Returns the handler of one kind of report; ``part`` reads its fields from the body."""

    async def handler(call: Call) -> object:
        return await tell(call, Report(holder=_holder(call), **part(call.body)))

    return handler


def _end(form: FinishIn) -> End:
    said = {name: getattr(form, name) for name in ("error", "exit_status", "metrics", "values")}
    return EndIn(form.ending, **said).value()


_started = _telling(lambda _: {"started": True})
_outputs = _telling(lambda form: {"messages": _messages(form.messages)})
_usage = _telling(lambda form: {"usage": _samples(form.samples)})
_finish = _telling(lambda form: {"end": _end(form)})
_yield = _telling(lambda _: {"end": End(ending=Ending.YIELDED)})
for _name, _body, _handler, _answers, _says in (
    ("claim", ClaimTaskIn, claim, out_type(Claimed), "Claim this task for a worker."),
    ("started", HolderIn, _started, StatusOut, "Report that the work has begun."),
    (
        "heartbeat",
        BeatIn,
        heartbeat,
        BeatOut,
        "Extend the lease; the status is 409 if the lease is lost.",
    ),
    (
        "outputs",
        MessagesIn,
        _outputs,
        StatusOut,
        "Report numbered messages, which may announce outputs.",
    ),
    (
        "usage",
        SamplesIn,
        _usage,
        StatusOut,
        "Report how much memory, CPU and GPU the work used.",
    ),
    ("finish", FinishIn, _finish, StatusOut, "Report how the attempt ended."),
    ("yield", HolderIn, _yield, StatusOut, "Give the task back to its queue at once."),
):
    # What they change is in the history and the attempts of the task, not in the audit.
    _route = ROUTES.add(
        f"POST /tasks/{{id}}/{_name}", REPORTS, _says, _answers, body=_body, audited=False
    )
    _route(_handler)

# Reports on many attempts; none names a queue: they count only for leases of the own worker.

_OWN_LEASES = Needs(WORKER, no_name, worker=worker_of_body)


@ROUTES.add(
    "POST /heartbeats",
    _OWN_LEASES,
    "Extend all leases of a worker; the answer for each is `go_on`, `cancel` or `lost`.",
    BeatsOut,
    body=BeatsIn,
    audited=False,
)
async def heartbeats(call: Call) -> object:
    form = call.body_as(BeatsIn)
    beats = [
        Beat(task_id=TaskId(one.id), attempt=one.attempt, progress=one.progress)
        for one in form.beats
    ]
    answers = await call.server.gathered.heartbeat(WorkerId(form.worker), beats)
    told = zip(form.beats, answers, strict=True)
    return BeatsOut(answers=[BeatOut(id=one.id, answer=said.value) for one, said in told])


@ROUTES.add(
    "POST /reports",
    _OWN_LEASES,
    "Send reports about attempts of a worker; each report has an answer, in the same order.",
    ReportsOut,
    body=ReportsIn,
    audited=False,
)
async def reports(call: Call) -> object:
    form = call.body_as(ReportsIn)
    answers = await call.store.report([one.value(form.worker) for one in form.reports])
    return ReportsOut(answers=[await _reported(call, one) for one in answers])


async def _reported(call: Call, one: Reported) -> ReportedOut:
    """Returns what became of a report; of a task that the caller may not see, no more than
    that there is none."""
    refused = one.refused
    if refused is not None and not isinstance(refused, NotFound):
        try:
            await call.found_tasks([one.task_id])
        except NotFound as unknown:
            refused = unknown
    return ReportedOut(
        id=one.task_id,
        status=one.status.value if one.status else None,
        refused=problem(refused, call.correlation) if refused else None,
    )
