"""Offers the clients with which applications use a store.

A client submits and reads tasks, leases tasks and reports on them, waits for them, and says why
one does not run. Each name is imported when it is first used, because a command that drives a
run in its own process needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewheel.api.tasks import Task
    from tidewheel.client.async_client import AsyncClient, Batch
    from tidewheel.client.fields import TaskFields
    from tidewheel.client.leases import LeasedTask
    from tidewheel.client.sync_client import Client

__all__ = ["Client", "AsyncClient", "TaskFields", "Task", "LeasedTask", "Batch"]

_HOMES = {
    "Client": "tidewheel.client.sync_client",
    "AsyncClient": "tidewheel.client.async_client",
    "TaskFields": "tidewheel.client.fields",
    "Task": "tidewheel.api.tasks",
    "LeasedTask": "tidewheel.client.leases",
    "Batch": "tidewheel.client.async_client",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - a name is paid for where it is used

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
