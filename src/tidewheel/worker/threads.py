"""A service in a thread of its own, with an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import ParamSpec

from tidewheel.services.service import Service

P = ParamSpec("P")


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[P, object]) -> Callable[P, None]:
    """The same call, made soon in ``loop``, whichever thread asks for it."""

    def make_call(*args: P.args, **kwargs: P.kwargs) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to call
            loop.call_soon_threadsafe(lambda: call(*args, **kwargs))

    return make_call


async def run_in_thread(service: Service) -> None:
    """Run it there to its end; its failure is raised here, and cancelling this ends it."""
    here = asyncio.get_running_loop()
    ended: asyncio.Future[None] = here.create_future()
    cancel: asyncio.Future[Callable[[], None]] = here.create_future()

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        in_loop(here, cancel.set_result)(in_loop(asyncio.get_running_loop(), task.cancel))
        await service.run()

    def body() -> None:
        try:
            asyncio.run(work())
        except asyncio.CancelledError:
            in_loop(here, ended.set_result)(None)
        except BaseException as error:
            in_loop(here, ended.set_exception)(error)
        else:
            in_loop(here, ended.set_result)(None)

    threading.Thread(target=body, name=service.name, daemon=True).start()
    try:
        await asyncio.wait((ended,))
    finally:
        (await cancel)()
        await asyncio.wait((ended,))
    ended.result()
