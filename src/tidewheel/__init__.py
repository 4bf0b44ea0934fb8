"""Offers a durable task queue, and graphs of tasks that repeat over cycle points.

    import tidewheel

    with tidewheel.Client() as client:
        task = client.submit(command="echo hello")

Names are loaded when they are first used: ``import tidewheel`` alone costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient, Client
    from tidewheel.client.embedded import Monitor, Worker
    from tidewheel.formats.python_api import Workflow, all_of, any_of
    from tidewheel.runners.python.runner import Abort, Handlers, JobContext

__version__ = "0.1.0"
__all__ = [
    "Client",
    "AsyncClient",
    "Worker",
    "Monitor",
    "Handlers",
    "JobContext",
    "Abort",
    "Workflow",
    "all_of",
    "any_of",
]

_HOMES = {
    "tidewheel.client": ("Client", "AsyncClient"),
    "tidewheel.client.embedded": ("Worker", "Monitor"),
    "tidewheel.runners.python.runner": ("Handlers", "JobContext", "Abort"),
    "tidewheel.formats.python_api": ("Workflow", "all_of", "any_of"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - a name is paid for where it is used

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
