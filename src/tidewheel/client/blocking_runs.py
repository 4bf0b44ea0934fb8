"""``client.runs`` for code that does not use asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tidewheel.client.runs import Runs

if TYPE_CHECKING:
    from tidewheel.client.blocking import Client

P = ParamSpec("P")
R = TypeVar("R")


def _of_runs(
    method: Callable[Concatenate[Runs, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingRuns, P], R]:
    @wraps(method)
    def call(self: BlockingRuns, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.client.run(method(self.client.asynchronous.runs, *args, **kwargs))

    return call


class BlockingRuns:
    """``client.runs`` of the blocking client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    find = _of_runs(Runs.find)
    list = _of_runs(Runs.list)
    look = _of_runs(Runs.look)
    show = _of_runs(Runs.show)
    why = _of_runs(Runs.why)
    tree = _of_runs(Runs.tree)
    history = _of_runs(Runs.history)
    dry_run = _of_runs(Runs.dry_run)
    log_part = _of_runs(Runs.log_part)
    give = _of_runs(Runs.give)
    begin = _of_runs(Runs.begin)
    carry_on = _of_runs(Runs.carry_on)
    definition = _of_runs(Runs.definition)
    delete = _of_runs(Runs.delete)
