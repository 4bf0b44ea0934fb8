"""``client.workflows`` for code that does not use asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tidewheel.client.workflows import Workflows

if TYPE_CHECKING:
    from tidewheel.client.blocking import Client

P = ParamSpec("P")
R = TypeVar("R")


def _of_workflows(
    method: Callable[Concatenate[Workflows, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingWorkflows, P], R]:
    @wraps(method)
    def call(self: BlockingWorkflows, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.client.run(method(self.client.asynchronous.workflows, *args, **kwargs))

    return call


class BlockingWorkflows:
    """``client.workflows`` of the blocking client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    register = _of_workflows(Workflows.register)
    register_bundles = _of_workflows(Workflows.register_bundles)
    list = _of_workflows(Workflows.list)
    show = _of_workflows(Workflows.show)
    check = _of_workflows(Workflows.check)
    render = _of_workflows(Workflows.render)
    remove = _of_workflows(Workflows.remove)
    run = _of_workflows(Workflows.run)
