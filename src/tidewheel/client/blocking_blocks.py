"""``client.blocks`` for code that does not use asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tidewheel.client.blocks import Blocks

if TYPE_CHECKING:
    from tidewheel.client.blocking import Client

P = ParamSpec("P")
R = TypeVar("R")


def _of_blocks(
    method: Callable[Concatenate[Blocks, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingBlocks, P], R]:
    @wraps(method)
    def call(self: BlockingBlocks, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.client.run(method(self.client.asynchronous.blocks, *args, **kwargs))

    return call


class BlockingBlocks:
    """``client.blocks`` of the blocking client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    submit = _of_blocks(Blocks.submit)
    submit_text = _of_blocks(Blocks.submit_text)
    sbis = _of_blocks(Blocks.sbis)
    sbi = _of_blocks(Blocks.sbi)
    list = _of_blocks(Blocks.list)
    show = _of_blocks(Blocks.show)
    abort = _of_blocks(Blocks.abort)
    post_objects = _of_blocks(Blocks.post_objects)
    objects = _of_blocks(Blocks.objects)
    remove_object = _of_blocks(Blocks.remove_object)
