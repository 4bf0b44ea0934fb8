"""What workers say: claims, signs of life, messages, usage, ends."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidewheel.core.tasks.requests import Message, UsageSample
from tidewheel.core.tasks.resources import Resources
from tidewheel.core.tasks.steps import End, Ending
from tidewheel.core.tasks.task import TaskError
from tidewheel.exact_json import decode
from tidewheel.server.refusals import BadRequest
from tidewheel.server.wire.forms import In, Out
from tidewheel.server.wire.tasks import ClaimedOut

Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class ResourcesIn(In):
    """What a worker has free, or offers."""

    cpu: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
    memory_bytes: Bytes = 0
    gpu: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    labels: Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)] = ()

    def value(self) -> Resources:
        """For the store."""
        return Resources(
            cpu=self.cpu,
            memory_bytes=self.memory_bytes,
            gpu=self.gpu,
            labels=frozenset(self.labels),
        )


class ClaimIn(In):
    """A worker asks for tasks of a queue, and may wait for them."""

    worker: str
    n: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1
    wait_s: Seconds = 0.0
    lease_s: float | None = None
    resources: ResourcesIn | None = None
    commands: bool = True
    handlers: list[str] | None = None  # null: any
    bare: bool = True


class ClaimsOut(Out):
    """None is no error."""

    tasks: list[ClaimedOut]


class ClaimTaskIn(In):
    """A worker asks for one task by its id."""

    worker: str
    lease_s: float | None = None


class HolderIn(In):
    """Whoever reports names its lease: worker and attempt."""

    worker: str
    attempt: Attempt


class BeatIn(HolderIn):
    """A sign of life."""

    progress: Fraction | None = None


class OneBeat(In):
    """A sign of life, one of many."""

    id: str
    attempt: Attempt
    progress: Fraction | None = None


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
    """What a job said."""

    messages: Annotated[list[MessageIn], msgspec.Meta(min_length=1, max_length=1_000)]

    def values(self) -> tuple[Message, ...]:
        """For the store."""
        return tuple(
            Message(number=one.number, text=one.text, output=one.output)
            for one in self.messages
        )


class SampleIn(In):
    """What a job used at one moment."""

    memory_bytes: Bytes | None = None
    cpu_percent: Percent | None = None
    gpu_percent: Percent | None = None
    gpu_memory_bytes: Bytes | None = None


class SamplesIn(HolderIn):
    """What a job used."""

    samples: Annotated[list[SampleIn], msgspec.Meta(min_length=1, max_length=1_000)]

    def values(self) -> tuple[UsageSample, ...]:
        """For the store."""
        return tuple(
            UsageSample(
                memory_bytes=one.memory_bytes,
                cpu_percent=one.cpu_percent,
                gpu_percent=one.gpu_percent,
                gpu_memory_bytes=one.gpu_memory_bytes,
            )
            for one in self.samples
        )


class ErrorIn(In):
    """Why it failed."""

    code: str = "error"
    description: str = ""
    args: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class FinishIn(HolderIn):
    """How an attempt ended; failed and aborted need an error."""

    ending: Literal["succeeded", "failed", "aborted"]
    error: ErrorIn | None = None
    exit_status: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    metrics: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)

    def value(self) -> End:
        """For the store."""
        ending = Ending(self.ending)
        if ending is Ending.SUCCEEDED and self.error is not None:
            raise BadRequest(["error: an attempt that succeeded has none"])
        if ending is not Ending.SUCCEEDED and self.error is None:
            raise BadRequest([f"error is missing: an attempt that {ending} needs one"])
        return End(
            ending=ending,
            error=task_error(self.error) if self.error else None,
            exit_status=self.exit_status,
            metrics=json_text("metrics", self.metrics),
        )


class StatusOut(Out):
    """The status after a report: cancelled, if somebody was faster."""

    id: str
    status: str


def task_error(given: ErrorIn) -> TaskError:
    """For the store; it says something."""
    if not (given.code.strip() or given.description.strip()):
        raise BadRequest(["error: give a code or a description"])
    args = json_text("error.args", given.args) or "{}"
    return TaskError(code=given.code, description=given.description, args=args)


def json_text(what: str, raw: msgspec.Raw) -> str | None:
    """JSON as it was sent; None if it was not."""
    text = bytes(raw).decode()
    if not text:
        return None
    try:
        decode(text)
    except ValueError as error:
        raise BadRequest([f"{what}: {error}"]) from None
    return text
