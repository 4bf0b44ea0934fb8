"""What is asked or offered, as columns of a row: in one order, in every table that has them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tidewheel.core.queue.resources import NO_RESOURCES, Resources

RESOURCE_COLUMNS = (
    *("cpu", "memory_bytes", "gpu", "labels"),
    *("nodes", "exclusive", "buffer_bytes"),
)


def columns_in(row: type[NamedTuple]) -> slice:
    """Where a row has them."""
    fields: tuple[str, ...] = row._fields
    first = fields.index(RESOURCE_COLUMNS[0])
    found = slice(first, first + len(RESOURCE_COLUMNS))
    assert fields[found] == RESOURCE_COLUMNS, fields
    return found


def resource_columns(given: Resources) -> dict[str, Any]:
    """As they are stored."""
    return {
        "cpu": given.cpu,
        "memory_bytes": given.memory_bytes,
        "gpu": given.gpu,
        "labels": labels_text(given.labels),
        "nodes": given.nodes,
        "exclusive": given.exclusive,
        "buffer_bytes": given.buffer_bytes,
    }


def resources(  # noqa: PLR0913, PLR0917 - the columns, in their order
    cpu: float,
    memory_bytes: int,
    gpu: int,
    labels: str | None,
    nodes: int,
    exclusive: bool,
    buffer_bytes: int,
) -> Resources:
    """Most tasks ask for nothing: they share one value."""
    asks_nothing = not cpu and not memory_bytes and not gpu and labels is None
    if asks_nothing and nodes == 1 and not exclusive and not buffer_bytes:
        return NO_RESOURCES
    return Resources(
        cpu=cpu,
        memory_bytes=memory_bytes,
        gpu=gpu,
        labels=frozenset(json.loads(labels)) if labels else frozenset(),
        nodes=nodes,
        exclusive=bool(exclusive),
        buffer_bytes=buffer_bytes,
    )


def labels_text(labels: frozenset[str]) -> str | None:
    """A sorted JSON array; nothing asked is NULL, so that the claim skips the test."""
    return json.dumps(sorted(labels)) if labels else None
