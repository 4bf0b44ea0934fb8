"""New tasks as clients of Scylla (seed 002) and Banyan (seed 003) describe them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tidewheel.server.wire.forms import Duration, In, Size, read
from tidewheel.server.wire.tasks import Text


class ScyllaTaskIn(In):
    """A task as Scylla describes it."""

    rn: Text
    queue: Text
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    priority: int | None = None


class RequestedResources(In):
    """What a task of Banyan asks of a machine."""

    memory: Size | None = None
    cores: float | None = None
    gpus: int | None = None


class BanyanTaskIn(In):
    """A task as Banyan describes it; it waits until it is, or was created, available."""

    id: Text | None = msgspec.field(name="_id", default=None)
    queue: Text | None = None
    name: Text | None = None
    command: str | None = None
    state: Literal["inactive", "available"] = "inactive"
    continuations: list[str] | None = None
    requested_resources: RequestedResources | None = None
    estimated_runtime: Duration | None = None
    max_termination_time: Duration | None = None
    max_retry_count: int | None = None


def scylla_fields(raw: bytes) -> dict[str, Any]:
    """In our words."""
    form = read(raw, ScyllaTaskIn)
    given = {"id": form.rn, "queue": form.queue, "priority": form.priority}
    if bytes(form.spec):
        given["spec_text"] = bytes(form.spec).decode()
    return {name: value for name, value in given.items() if value is not None}


def banyan_fields(raw: bytes) -> dict[str, Any]:
    """In our words."""
    form = read(raw, BanyanTaskIn)
    given = {
        "id": form.id,
        "queue": form.queue,
        "name": form.name,
        "command": form.command,
        "armed": form.state == "available",
        "continuations": form.continuations,
        "estimated_runtime": form.estimated_runtime,
        "max_termination": form.max_termination_time,
        "retries": form.max_retry_count,
        **resource_fields(form.requested_resources),
    }
    return {name: value for name, value in given.items() if value is not None}


def resource_fields(asked: RequestedResources | None) -> dict[str, Any]:
    """In our words; nothing asked says nothing."""
    if asked is None:
        return {}
    return {"memory": asked.memory, "cpu": asked.cores, "gpu": asked.gpus}
