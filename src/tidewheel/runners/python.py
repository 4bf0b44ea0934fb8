"""Tasks with a handler, executed by registered functions inside the worker.

Theory of operation
-------------------
An async handler is one asyncio task in the worker's loop; a plain function gets one of as
many threads as the worker has slots. Neither has a process, a directory or usage of its own
(the directory is made when the handler asks for it), so a no-op costs microseconds, and none
outlives its worker: there is nothing to adopt.

``stop`` asks: async handlers are cancelled, functions find ``job.should_stop()`` true.
Nothing can force them. One that goes on after the grace is given up: its end is "unstoppable",
what it says is no longer heard, and another thread takes its place.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.steps import End
from tidewheel.core.queue.submission import MESSAGE_BYTES_MAX
from tidewheel.ports.runners import Assignment, Job, JobReports
from tidewheel.runners.ended_job import EndedJob
from tidewheel.runners.handler_ends import (
    bad_spec,
    end_of_exception,
    end_of_result,
    stopped,
    unstoppable,
)
from tidewheel.runners.handler_threads import HandlerThreads
from tidewheel.runners.handlers import Abort, Handler, Handlers, JobContext, StopRequest

__all__ = ["PythonRunner", "Handlers", "JobContext", "Abort"]


class HandlerJob:
    """A call of a handler."""

    __slots__ = (
        "_ask_harder",
        "_context",
        "_end",
        "_give_up",
        "_name",
        "_on_end",
        "_stop",
        "_waiters",
    )

    def __init__(
        self, name: str, context: JobContext, stop: StopRequest, on_end: Callable[[End], None]
    ) -> None:
        self._name = name
        self._context = context
        self._stop = stop
        self._on_end = on_end
        self._ask_harder: Callable[[], object] | None = None
        self._give_up: Callable[[], object] | None = None
        self._end: End | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def on_stop(
        self, ask_harder: Callable[[], object] | None, give_up: Callable[[], object] | None
    ) -> None:
        """What to do when it is asked to end, and when it has not ended in time."""
        self._ask_harder = ask_harder
        self._give_up = give_up

    async def wait(self) -> End:
        """How it ended."""
        if self._end is None:
            # One future per waiter: a waiter that is cancelled takes nothing along.
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        assert self._end is not None
        return self._end

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end; after the grace go on without it."""
        if self._end is not None:
            return
        self._stop.ask()
        if self._ask_harder is not None:
            self._ask_harder()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), grace_seconds)
        if self._end is None:
            self.ended(unstoppable(self._name, grace_seconds))
            if self._give_up is not None:
                self._give_up()

    def ended(self, end: End) -> None:
        """The first end counts; called in the worker's loop."""
        if self._end is not None:
            return
        self._end = end
        self._context.mute()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        on_end, self._on_end = self._on_end, _tell_nobody
        on_end(end)


class PythonRunner:
    """Executes handlers; one for all jobs of a worker."""

    def __init__(
        self,
        handlers: Handlers,
        *,
        threads: int = 1,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._handlers = handlers
        self._message_bytes_max = message_bytes_max
        self._threads = HandlerThreads(threads)

    def accepts(self, task: Claimed) -> bool:
        """Whether the task's handler is registered."""
        return self._handlers.find(task.handler) is not None

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Call the handler."""
        return self.start_now(
            assignment.task, lambda: assignment.directory, reports, _tell_nobody
        )

    def start_now(
        self,
        task: Claimed,
        directory: Callable[[], Path],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job:
        """Call the handler, and ``on_end`` in the worker's loop when it has ended."""
        handler = self._handlers.find(task.handler)
        assert handler is not None, "the worker asks accepts() first"
        try:
            spec = None if task.spec is None else json.loads(task.spec)
        except (ValueError, RecursionError) as error:
            end = bad_spec(error)
            on_end(end)
            return EndedJob(end)
        reports.started()
        stop = StopRequest()
        context = JobContext(task, directory, reports, stop, self._message_bytes_max)
        job = HandlerJob(handler.name, context, stop, on_end)
        if handler.is_async:
            call = asyncio.get_running_loop().create_task(
                _await_handler(job, handler, spec, context)
            )
            job.on_stop(call.cancel, None)
        else:
            submitted = self._threads.submit(_function_call(job, handler, spec, context))
            job.on_stop(None, lambda: self._threads.give_up(submitted))
        return job

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:  # noqa: ARG002
        """A handler ended with the process that called it."""
        return None

    def stop(self) -> None:
        """Let the threads end after the work they are at."""
        self._threads.stop()


def _tell_nobody(_end: End) -> None:
    """Whoever started the job waits for it."""


async def _await_handler(
    job: HandlerJob, handler: Handler, spec: object, context: JobContext
) -> None:
    try:
        result = await handler.function(spec, context)  # type: ignore[misc]
    except KeyboardInterrupt:
        raise
    # SystemExit too: a handler's sys.exit() must not end the worker and all of its jobs.
    except BaseException as error:
        job.ended(end_of_exception(error, stop_asked=context.should_stop()))
    else:
        job.ended(end_of_result(result))


def _function_call(
    job: HandlerJob, handler: Handler, spec: object, context: JobContext
) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def call() -> None:
        end = stopped() if context.should_stop() else _call_function(handler, spec, context)
        with suppress(RuntimeError):  # the loop is closed: the worker has gone without us
            loop.call_soon_threadsafe(job.ended, end)

    return call


def _call_function(handler: Handler, spec: object, context: JobContext) -> End:
    try:
        return end_of_result(handler.function(spec, context))
    except BaseException as error:
        return end_of_exception(error, stop_asked=context.should_stop())
