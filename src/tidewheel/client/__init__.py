"""Lets an application use a store: submit and look, lease and report, wait and ask why.

Names are loaded when they are first used: a run that is driven here needs no client.
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
