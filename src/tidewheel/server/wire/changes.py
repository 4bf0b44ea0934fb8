"""Changes of a task: fields while it waits, and seed 003's changes of its state."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from tidewheel.client.fields import RESOURCE_FIELDS
from tidewheel.server.errors import BadRequest
from tidewheel.server.wire.tasks import RequestedResources, Text, resource_fields
from tidewheel.server.wire.validation import Duration, In, Size


class ExecutionInfoIn(In):
    """What workers of Banyan say with a change of state."""

    worker: str | None = None
    exit_status: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    time_terminated: str | None = None  # the store's clock is what counts
    time_started: str | None = None


class TaskPatch(In):
    """What shall change; null leaves it as it is."""

    state: str | None = None  # status, in any vocabulary
    status: str | None = None
    execution_info: ExecutionInfoIn | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    name: Text | None = None
    command: str | None = None
    retries: int | None = None
    max_retry_count: int | None = None
    estimated_runtime: Duration | None = None
    max_termination: Duration | None = None
    max_termination_time: Duration | None = None
    cpu: float | None = None
    memory: Size | None = None
    gpu: int | None = None
    labels: list[str] | None = None
    nodes: int | None = None
    exclusive: bool | None = None
    buffer: Size | None = None
    requested_resources: RequestedResources | None = None

    @property
    def word(self) -> str | None:
        """The status that is asked for."""
        return self.state if self.status is None else self.status

    def amended(self) -> dict[str, Any]:
        """The fields that shall change, in our words."""
        pairs = (
            ("retries", "max_retry_count"),
            ("max_termination", "max_termination_time"),
        )
        for ours, theirs in (*pairs, ("status", "state")):
            if getattr(self, ours) is not None and getattr(self, theirs) is not None:
                raise BadRequest([f"it has both {ours} and {theirs}; give one of them"])
        given: dict[str, Any] = {
            "retries": self.max_retry_count,
            "max_termination": self.max_termination_time,
            **resource_fields(self.requested_resources),
        }
        own = ("name", "command", "retries", "estimated_runtime", "max_termination")
        for name in (*own, *RESOURCE_FIELDS):
            if (value := getattr(self, name)) is not None:
                given[name] = value
        return {name: value for name, value in given.items() if value is not None}
