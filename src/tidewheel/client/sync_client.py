"""Offers the client to code without asyncio: the same methods, each waiting for its answer.

The asynchronous client does the work in an event loop in a thread of its own, so there is no
second copy of anything. Where the store can, a single task is stored in the thread that calls.
A blocking client may be used by any number of threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
)

from tidewheel.client.async_client import AsyncClient, new_id
from tidewheel.client.connection import Where
from tidewheel.client.fields import QUEUE_DEFAULT, TaskFields, new_task
from tidewheel.core.queue.requests import Submitted
from tidewheel.errors import ForkedProcess, StoreUnreachable

if TYPE_CHECKING:
    from tidewheel.client.runs import BlockingBlocks, BlockingRuns, BlockingWorkflows

P = ParamSpec("P")
R = TypeVar("R")
ANSWER_SECONDS_MAX = 1.0  # for calls that are under way when a client is closed
S = TypeVar("S")


def _waiting(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Client, P], R]:
    @wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(method(self.asynchronous, *args, **kwargs))

    return call


def _one_by_one(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[R, None]],
) -> Callable[Concatenate[Client, P], Iterator[R]]:
    @wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        found = method(self.asynchronous, *args, **kwargs)

        async def following() -> R:
            return await anext(found)

        try:
            while True:
                yield self.run(following())
        finally:
            self.run(found.aclose())

    return call


class BlockingPart(Generic[S]):
    """Is a part of the blocking client, such as ``client.runs``."""

    def __init__(self, client: Client, part: S) -> None:
        self.client, self.part = client, part


def of_part(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingPart[S], P], R]:
    """Returns a blocking method of a part, which waits for the answer of the asynchronous
    one."""

    @wraps(method)
    def call(self: BlockingPart[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.client.run(method(self.part, *args, **kwargs))

    return call


class Client:
    """Connects code without asyncio to a store or a server; each call waits for its answer.

        from tidewheel import Client

        with Client() as client:  # or Client("postgresql://…"), Client("https://…", token="…")
            task = client.submit(command="echo hello", retries=["10s", "1m"])
            assert client.get(task.id).status == "ready"

    Without an address it uses the store or the server of this user. It may be used by any
    number of threads. A refused request raises ``tidewheel.errors.Refused``; if the store or
    the server does not answer, ``tidewheel.errors.Unavailable`` is raised.
    """

    def __init__(self, store: Where = None, *, token: str | None = None) -> None:
        self.asynchronous = AsyncClient(store, token=token)
        self._process = os.getpid()
        # Held to begin a call, and to close: so no call begins behind the end of the loop. A
        # handler of a signal may make a call within one of its own thread.
        self._entrance = threading.RLock()
        self._is_closed = False
        self._under_way: set[Future[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tidewheel client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Runs a coroutine in the client's event loop and returns its result; Ctrl-C cancels
        it."""
        try:
            self._require_own_process()
            with self._entrance:
                if self._is_closed:
                    raise RuntimeError("this client is closed")
                answer = asyncio.run_coroutine_threadsafe(work, self._loop)
                self._under_way.add(answer)
        except RuntimeError:
            work.close()
            raise
        try:
            return answer.result()
        except KeyboardInterrupt:
            answer.cancel()
            raise
        except CancelledError:
            raise StoreUnreachable("the client was closed before the store answered") from None
        finally:
            self._under_way.discard(answer)

    @property
    def runs(self) -> BlockingRuns:
        """Gives access to runs: to start, look at, command, resume and delete them."""
        # An application that only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import BlockingRuns

        return BlockingRuns(self, self.asynchronous.runs)

    @property
    def workflows(self) -> BlockingWorkflows:
        """Gives access to the registry: definitions by name and version, and runs of them."""
        from tidewheel.client.runs import BlockingWorkflows

        return BlockingWorkflows(self, self.asynchronous.workflows)

    @property
    def blocks(self) -> BlockingBlocks:
        """Gives access to scheduling block instances, processing blocks and buffer objects."""
        from tidewheel.client.runs import BlockingBlocks

        return BlockingBlocks(self, self.asynchronous.blocks)

    def close(self) -> None:
        """Closes the client's store and ends its thread; a second call does nothing.

        Calls of other threads that the store does not answer soon raise StoreUnreachable.
        """
        if os.getpid() != self._process:
            return
        with self._entrance:
            if self._is_closed:
                return
            self._is_closed = True
        try:
            self._close_store()  # once the writes that it has accepted are answered
            if left := tuple(self._under_way):
                for late in wait(left, ANSWER_SECONDS_MAX).not_done:
                    late.cancel()
                self._close_store()  # a call that had not begun may have opened it again
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _close_store(self) -> None:
        asyncio.run_coroutine_threadsafe(self.asynchronous.close(), self._loop).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, queue: str = QUEUE_DEFAULT, **task: Unpack[TaskFields]) -> Submitted:
        self._require_own_process()
        made = new_task(queue, task, new_id)
        # To wake the client's thread, and that another one, takes as long as to store it.
        opened = self.asynchronous.opened
        if opened is not None and (answer := opened.submit_here(made)) is not None:
            return answer

        async def stored() -> Submitted:
            return (await self.asynchronous.store.submit([made]))[0]

        return self.run(stored())

    def _require_own_process(self) -> None:
        """Raises ForkedProcess in a fork: threads and connections of the client are its
        parent's."""
        if os.getpid() != self._process:
            raise ForkedProcess(self._process)

    submit.__doc__ = AsyncClient.submit.__doc__

    submit_many = _waiting(AsyncClient.submit_many)
    arm = _waiting(AsyncClient.arm)
    amend = _waiting(AsyncClient.amend)
    add_continuations = _waiting(AsyncClient.add_continuations)
    remove_continuations = _waiting(AsyncClient.remove_continuations)
    cancel = _waiting(AsyncClient.cancel)
    cancel_matching = _waiting(AsyncClient.cancel_matching)
    resubmit = _waiting(AsyncClient.resubmit)
    pause_queue = _waiting(AsyncClient.pause_queue)
    resume_queue = _waiting(AsyncClient.resume_queue)
    configure_queue = _waiting(AsyncClient.configure_queue)

    get = _waiting(AsyncClient.get)
    list = _waiting(AsyncClient.list)
    peek = _waiting(AsyncClient.peek)
    history = _waiting(AsyncClient.history)
    attempts = _waiting(AsyncClient.attempts)
    outputs = _waiting(AsyncClient.outputs)
    values = _waiting(AsyncClient.values)
    inputs = _waiting(AsyncClient.inputs)
    usage = _waiting(AsyncClient.usage)
    edges = _waiting(AsyncClient.edges)
    why = _waiting(AsyncClient.why)
    wait = _waiting(AsyncClient.wait)
    events = _one_by_one(AsyncClient.events)
    queues = _waiting(AsyncClient.queues)
    queue = _waiting(AsyncClient.queue)
    workers = _waiting(AsyncClient.workers)
    verify = _waiting(AsyncClient.verify)

    register_worker = _waiting(AsyncClient.register_worker)
    sign_off = _waiting(AsyncClient.sign_off)
    lease = _waiting(AsyncClient.lease)
    lease_by_id = _waiting(AsyncClient.lease_by_id)
    heartbeat = _waiting(AsyncClient.heartbeat)
    cancel_requested = _waiting(AsyncClient.cancel_requested)
    started = _waiting(AsyncClient.started)
    message = _waiting(AsyncClient.message)
    report_usage = _waiting(AsyncClient.report_usage)
    complete = _waiting(AsyncClient.complete)
    fail = _waiting(AsyncClient.fail)
    abort = _waiting(AsyncClient.abort)
    yield_ = _waiting(AsyncClient.yield_)
