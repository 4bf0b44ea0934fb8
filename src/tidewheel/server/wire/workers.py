"""Describes what workers send, from their names to ends of attempts, and how queues are set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from tidewheel.api.wire import Out
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import JobMessage, Report, UsageSample
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskError, TaskId, WorkerId
from tidewheel.exact_json import decode
from tidewheel.server.errors import BadRequest, Problem
from tidewheel.server.wire.validation import In

Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Nodes = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
LostAttempt = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]  # perhaps no lease at all
ExitStatus = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


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

    def value(self) -> Resources:
        """Returns the resources for the store."""
        return Resources(
            cpu=self.cpu,
            memory_bytes=self.memory_bytes,
            gpu=self.gpu,
            labels=frozenset(self.labels),
            nodes=1 if self.nodes is None else self.nodes,
            idle_nodes=self.idle_nodes,
            buffer_bytes=self.buffer_bytes,
        )

    def free(self) -> Resources:
        """Returns the free resources of a claim.

        A worker that says nothing of nodes may be older than they are: it would take other
        tasks beside one that is exclusive, so it gets none of those.
        """
        counts = self.nodes is not None or self.idle_nodes is not None
        return self.value() if counts else replace(self.value(), idle_nodes=0)


class ClaimIn(In):
    """A worker asks for tasks of a queue, and may wait for them."""

    worker: str
    n: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 1
    wait_s: Seconds = 0.0
    lease_s: float | None = None
    resources: ResourcesIn | None = None
    commands: bool = True
    handlers: list[str] | None = None  # null: any
    bare: bool = True


class ClaimTaskIn(In):
    """A worker asks for one task by its id."""

    worker: str
    lease_s: float | None = None


class HolderIn(In):
    """The lease that a report is about: worker and attempt."""

    worker: str
    attempt: Attempt


class BeatIn(HolderIn):
    """A sign of life."""

    progress: float | None = None


class OneBeat(In):
    """A sign of life, one of many."""

    id: str
    attempt: LostAttempt
    progress: float | None = None


class BeatsIn(In):
    """Signs of life for all leases of a worker."""

    worker: str
    beats: Annotated[list[OneBeat], msgspec.Meta(max_length=10_000)]


class BeatOut(Out):
    """Go on; or end the job and report how it ended; or it is not yours any more."""

    id: str
    answer: Literal["go_on", "cancel", "lost"]


class BeatsOut(Out):
    """One answer for each, in order."""

    answers: list[BeatOut]


class MessageIn(In):
    """Numbered 1, 2, … within the attempt; the same number twice is stored once."""

    number: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    text: str
    output: str | None = None


class MessagesIn(HolderIn):
    """The messages of a job."""

    messages: Annotated[list[MessageIn], msgspec.Meta(min_length=1, max_length=1_000)]

    def values(self) -> tuple[JobMessage, ...]:
        """Returns the messages for the store."""
        return message_values(self.messages)


class SampleIn(In):
    """The resources that a job used at one moment."""

    memory_bytes: Bytes | None = None
    cpu_percent: Percent | None = None
    gpu_percent: Percent | None = None
    gpu_memory_bytes: Bytes | None = None


class SamplesIn(HolderIn):
    """The resources that a job used, at several moments."""

    samples: Annotated[list[SampleIn], msgspec.Meta(min_length=1, max_length=1_000)]

    def values(self) -> tuple[UsageSample, ...]:
        """Returns the samples for the store."""
        return sample_values(self.samples)


class ErrorIn(In):
    """The reason of a failure."""

    code: str = "error"
    description: str = ""
    args: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class FinishIn(HolderIn):
    """The end of an attempt; failed and aborted need an error."""

    ending: Literal["succeeded", "failed", "aborted"]
    error: ErrorIn | None = None
    exit_status: ExitStatus | None = None
    metrics: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object, of a success

    def value(self) -> End:
        """Returns the end for the store."""
        return EndIn(
            self.ending, self.error, self.exit_status, self.metrics, values=self.values
        ).value()


class EndIn(In):
    """The end of an attempt; ``yielded`` gives the task to another worker at once."""

    ending: Literal["succeeded", "failed", "aborted", "yielded"]
    error: ErrorIn | None = None
    exit_status: ExitStatus | None = None
    metrics: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    metrics_text: str | None = None  # the same as a text that holds JSON, white space and all
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)  # an object, of a success
    values_text: str | None = None  # the same as a text

    def value(self) -> End:
        """Checks the end and returns it for the store."""
        ending = Ending(self.ending)
        needs_error = ending in (Ending.FAILED, Ending.ABORTED)
        if self.error is not None and not needs_error:
            raise BadRequest([f"error: an attempt that {ending} has none"])
        if self.error is None and needs_error:
            raise BadRequest([f"error is missing: an attempt that {ending} needs one"])
        if self.metrics_text is not None:
            json_text("metrics_text", msgspec.Raw(self.metrics_text.encode()))
        values = self._values()
        if values is not None and ending is not Ending.SUCCEEDED:
            raise BadRequest([f"values: an attempt that {ending} hands on nothing"])
        return End(
            ending=ending,
            error=task_error(self.error) if self.error else None,
            exit_status=self.exit_status,
            metrics=self.metrics_text or json_text("metrics", self.metrics),
            values=values,
        )

    def _values(self) -> str | None:
        """Returns the values as they are: the store judges them, each report for itself."""
        if self.values_text is not None or bytes(self.values) in (b"", b"null"):
            return self.values_text
        return bytes(self.values).decode()


class OneReport(In):
    """A report of what happened in an attempt since the last one; ``end`` makes it the last."""

    id: str
    attempt: LostAttempt
    started: bool = False
    messages: Annotated[tuple[MessageIn, ...], msgspec.Meta(max_length=10_000)] = ()
    samples: Annotated[tuple[SampleIn, ...], msgspec.Meta(max_length=10_000)] = ()
    end: EndIn | None = None
    frees: str | None = None  # the queue in which this end leaves a place that was limited

    def value(self, worker: str) -> Report:
        """Returns the report for the store."""
        return Report(
            holder=Holder(
                task_id=TaskId(self.id), attempt=self.attempt, worker=WorkerId(worker)
            ),
            started=self.started,
            messages=message_values(self.messages),
            usage=sample_values(self.samples),
            end=self.end.value() if self.end else None,
            frees=self.frees,
        )


class ReportsIn(In):
    """The reports on attempts of one worker."""

    worker: str
    reports: Annotated[list[OneReport], msgspec.Meta(max_length=10_000)]


class ReportedOut(Out):
    """The status after one report, or why it was refused."""

    id: str
    status: str | None
    refused: Problem | None


class ReportsOut(Out):
    """One answer for each, in order; one refusal stops no other."""

    answers: list[ReportedOut]


class StatusOut(Out):
    """The status after a report: cancelled, if somebody was faster."""

    id: str
    status: str


def message_values(given: Iterable[MessageIn]) -> tuple[JobMessage, ...]:
    """Returns the messages for the store."""
    return tuple(
        JobMessage(number=one.number, text=one.text, output=one.output) for one in given
    )


def sample_values(given: Iterable[SampleIn]) -> tuple[UsageSample, ...]:
    """Returns the samples for the store."""
    return tuple(UsageSample(**msgspec.structs.asdict(one)) for one in given)


def task_error(given: ErrorIn) -> TaskError:
    """Returns the error for the store; it must have a code or a description."""
    if not (given.code.strip() or given.description.strip()):
        raise BadRequest(["error: give a code or a description"])
    args = json_text("error.args", given.args) or "{}"
    return TaskError(code=given.code, description=given.description, args=args)


def json_text(what: str, raw: msgspec.Raw) -> str | None:
    """Returns JSON as it was sent; None if none was sent."""
    text = bytes(raw).decode()
    if not text:
        return None
    try:
        decode(text)
    except ValueError as error:
        raise BadRequest([f"{what}: {error}"]) from None
    return text


# Queues and workers.

UNKNOWN_BOOT = "http"


class LimitIn(In):
    """A limit; null leaves that side open."""

    key: str = ""
    concurrency_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_seconds: float = 1.0

    def value(self) -> Limit:
        """Returns the limit for the store."""
        return Limit(
            key=self.key,
            concurrency_max=self.concurrency_max,
            rate_max=self.rate_max,
            rate_seconds=self.rate_seconds,
        )


class QueueIn(In):
    """The changes to a queue; null leaves a setting as it is."""

    paused: bool | None = None
    aging: bool | None = None
    fence_kill: bool | None = None
    lease_seconds: float | None = None
    limits: Annotated[list[LimitIn], msgspec.Meta(max_length=1_000)] | None = None


class WorkerIn(In):
    """A worker introduces itself."""

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
