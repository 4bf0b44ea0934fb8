"""Executes tasks with a handler by registered functions inside the worker.

Theory of operation
-------------------
An async handler runs in the worker's loop (``AsyncCalls``); a plain function gets one of as
many threads as the worker has slots. Neither has a process, a directory or usage of its own
(the directory is made when the handler asks for it, or prints), so a no-op costs microseconds,
and none outlives its worker: there is nothing to adopt.

``stop`` asks: async handlers are cancelled, functions find ``job.should_stop()`` true.
Nothing can force them. One that goes on after the grace is given up: its end is "unstoppable",
what it says is no longer heard, and another thread takes its place. That is why the threads
are not of a ``ThreadPoolExecutor``: it cannot make up for a thread whose work never ends, and
waits for such a thread when the process wants to exit.

Authors of handlers write against a register of functions, and their job:

handlers = Handlers()

@handlers.register("resize")
async def resize(spec, job):
    job.progress(0.5)
    return {"pixels": 640 * 480}
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TypeVar, overload

from tidewheel.core.queue.requests import Claimed, End, Ending
from tidewheel.core.queue.submission import (
    MESSAGE_BYTES_MAX,
    MESSAGES_MAX,
    name_finding,
    utf8_length,
)
from tidewheel.core.queue.values import values_text
from tidewheel.errors import BadSetting, BadValues, PayloadTooLarge, Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment, Job, JobReports
from tidewheel.runners.job_directory import make_private_directory
from tidewheel.runners.job_logs import LOG_BYTES_MAX
from tidewheel.runners.outcome import AwaitedEnd, EndedJob, tell_no_end
from tidewheel.runners.python.handler_ends import (
    Abort,
    AsyncCalls,
    end_of_exception,
    end_of_result,
    failed_end,
    json_text,
    leave_fork,
    stopped,
    unstoppable,
)
from tidewheel.runners.python.handler_output import WHO_PRINTS, HandlerLog, route_output
from tidewheel.runners.sanitize import storable

# All stop requests share this lock, because it is held only while an event is made.
_EVENT_LOCK = threading.Lock()

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """Holds a registered function, which is called with the decoded spec and a JobContext."""

    name: str
    function: Callable[..., object]
    is_async: bool


class Handlers:
    """Holds Python functions under the names by which tasks ask for them.

        from tidewheel import Handlers

        handlers = Handlers()


        @handlers.register("resize")
        def resize(spec, job):  # or async def
            print("resizing to", spec["width"])
            job.progress(0.5)
            return {"pixels": 640 * 480}

    Give them to a worker: ``tidewheel worker --handlers MODULE:handlers``, or
    ``Worker(handlers=handlers)``.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {}

    @overload
    def register(self, name: Function) -> Function: ...
    @overload
    def register(self, name: str = "") -> Callable[[Function], Function]: ...
    def register(self, name: str | Function = "") -> Function | Callable[[Function], Function]:
        """Registers the decorated function as the handler ``name``, which tasks may ask for.
        Without ``name``, the name of the function is used.

        The function is called with the task's ``spec`` and a JobContext. An ``async def`` runs
        in the worker's event loop, any other function in a thread. What the function returns
        (JSON, up to 64 KiB) becomes the task's values, for later tasks. If it raises an
        exception, the attempt has failed; the task is tried again while retries are left,
        unless the exception is Abort. What the function prints is in the task's log.
        Raises BadSetting if the name is taken, not valid or missing, or if the function cannot
        be called with two arguments.
        """
        if not isinstance(name, str):  # @handlers.register, without a call
            return self._keep("", name)
        if name:
            self._check(name)
        return partial(self._keep, name)

    def _keep(self, name: str, function: Function) -> Function:
        own = name or str(getattr(function, "__name__", ""))
        self._check(own)
        _check_parameters(own, function)
        is_async = _is_async(function)
        self._by_name[own] = Handler(name=own, function=function, is_async=is_async)
        return function

    def _check(self, name: str) -> None:
        finding = name_finding("handler", name)
        if finding is not None:
            raise BadSetting("handler", name, fault=finding)
        if name in self._by_name:
            raise BadSetting("handler", name, "a name that no other function is registered for")

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of all registered handlers."""
        return frozenset(self._by_name)

    def find(self, name: str | None) -> Handler | None:
        """Returns the handler of this name, or None."""
        return None if name is None else self._by_name.get(name)


def _check_parameters(name: str, function: Callable[..., object]) -> None:
    """Raises BadSetting for a function that every attempt would call in vain."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some of those that are written in C do not tell
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise BadSetting(
            "handler",
            name,
            fault=f"the handler {name!r} has the parameters {signature}; it is called with a "
            f"task's spec and a JobContext: def {name}(spec, job)",
        ) from None


def _is_async(function: Callable[..., object]) -> bool:
    """Says whether a call makes a coroutine, also of a partial or of a callable object."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


@dataclass(slots=True, eq=False)
class StopRequest:
    """Says whether a job was asked to end; set in the worker's loop, read from any thread."""

    asked: bool = False
    # Made when somebody waits: most jobs never do, and they are made by the thousand.
    _event: threading.Event | None = None
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def ask(self) -> None:
        """Notes that the job is asked to end, and wakes all that wait for that."""
        self.asked = True
        if self._event is not None:
            self._event.set()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def wait(self, seconds_max: float) -> bool:
        """Waits in a thread, at most so long, and returns whether the job was asked to end."""
        # The event is there before the flag is looked at, and the flag set before the event
        # is: one of the two sides always sees the other.
        with _EVENT_LOCK:
            event = self._event = self._event or threading.Event()
        return self.asked or event.wait(seconds_max)

    async def heard(self) -> None:
        """Waits in the worker's loop until the job is asked to end."""
        if not self.asked:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """Says how much a handler may say at once, and how long each stream of its log becomes."""

    message_bytes: int = MESSAGE_BYTES_MAX
    log_bytes: int = LOG_BYTES_MAX


class JobInputs(dict[str, dict[str, object]]):
    """Holds the values of the tasks that a task needs, by their ids."""

    def __missing__(self, task_id: str) -> dict[str, object]:
        there = ", ".join(map(repr, self)) or "none"
        raise KeyError(
            f"no values of task {task_id!r}: your task does not depend on {task_id!r}, "
            f"{task_id!r} returned no values, or {task_id!r} is in a queue that this worker "
            f"may not see; there are values of: {there}"
        )


@dataclass(slots=True, eq=False)
class JobContext:
    """Describes the job of a handler, and takes the handler's reports about it. Any thread may
    call every method.

    It is the second argument of a handler. ``job.task`` is the task, with ``id``, ``name``,
    ``queue``, ``attempt`` and ``priority``.
    """

    task: Claimed  # that the handler executes
    _directory: Callable[[], Path]
    _reports: JobReports | None  # None: its attempt is over, and nothing is heard of it
    _stop: StopRequest
    _limits: HandlerLimits
    _messages: int = 0
    _log: HandlerLog | None = None  # made by the first text that is printed
    _inputs_text: str | None = None
    _inputs: JobInputs | None = None  # made when it is first asked for
    _values: dict[str, object] = field(default_factory=dict)

    @property
    def inputs(self) -> JobInputs:
        """Returns the values of the tasks that this task needs, by their ids: what a handler
        returned, or a job wrote to ``$TIDEWHEEL_OUTPUTS``. Tasks without values are left out.
        """
        if self._inputs is None:
            self._inputs = JobInputs(json.loads(self._inputs_text or "{}"))
        return self._inputs

    def value(self, name: str, value: object) -> None:
        """Sets a value that the task passes to later tasks, in addition to what the handler
        returns; both are stored if the task succeeds. Raises BadValues if the value cannot be
        stored."""
        if not name:
            raise BadValues("a value has a name, which is a string")
        # As it is now: what is changed later is not meant.
        self._values |= json.loads(values_text(json_text({name: value})))

    def give_inputs(self, text: str | None) -> None:
        """Gives the handler the values of the tasks that its task needs, as JSON."""
        self._inputs_text = text

    @property
    def values(self) -> dict[str, object]:
        """Returns the values that ``value`` has set."""
        return self._values

    @property
    def attempt(self) -> int:
        """Returns which attempt at the task this is: 1, 2, …"""
        return self.task.attempt

    @property
    def directory(self) -> Path:
        """Returns the directory of this attempt; it is created when you first ask for it."""
        directory = self._directory()
        make_private_directory(directory)
        return directory

    def progress(self, value: float) -> None:
        """Reports how far the work is; raises ValueError if the number is not from 0 to 1."""
        if not 0 <= value <= 1:
            raise ValueError(f"progress is {value!r}; expected 0 to 1")
        if self._reports is not None:
            self._reports.progress(float(value))

    def message(self, text: str) -> None:
        """Reports a message about the work; raises PayloadTooLarge if it is too long."""
        self._say(text, None)

    def output(
        self, name: str, text: str = "", *, values: Mapping[str, object] | None = None
    ) -> None:
        """Announces an output: tasks that need it may run from now on, and find ``values``
        among their inputs. Raises BadValues if the values cannot be stored."""
        finding = name_finding("output", name)
        if finding is not None:
            raise ValueError(finding)
        self._say(text, name, None if values is None else values_text(json_text(dict(values))))

    def _say(self, text: str, output: str | None, values: str | None = None) -> None:
        size = utf8_length(text)
        if size > self._limits.message_bytes:
            raise PayloadTooLarge("the message", size, self._limits.message_bytes)
        if self._messages >= MESSAGES_MAX:
            raise Refused(
                f"this attempt has sent {MESSAGES_MAX} messages; no more are accepted"
            )
        self._messages += 1
        if self._reports is not None:
            self._reports.message(storable(text), output, values)

    def should_stop(self) -> bool:
        """Says whether the handler was asked to end: by ``cancel``, by the task's time limit,
        or because its worker stops. If a function does not end in time, its attempt fails: the
        function continues in the worker, but its result is ignored."""
        return self._stop.asked

    def wait_for_stop(self, seconds_max: float) -> bool:
        """Waits in a thread, at most ``seconds_max`` seconds, until the handler is asked to
        end; returns whether it was asked."""
        return self._stop.wait(seconds_max)

    async def stopped(self) -> None:
        """Waits in a coroutine until the handler is asked to end."""
        await self._stop.heard()

    def mute(self) -> None:
        """Drops whatever the handler reports from now on, because its attempt is over."""
        self._reports = None
        if self._log is not None:
            self._log.close()

    # Prints
    def printed(self, stream: str, content: bytes) -> bool:
        """Writes what the handler prints to the log of its attempt, unless that is over."""
        log = self._log or self._begin_log()
        return log is not None and log.write(stream, content)

    def flush_printed(self) -> None:
        if self._log is not None:
            self._log.flush()

    def _begin_log(self) -> HandlerLog | None:
        with _EVENT_LOCK:
            reports = self._reports
            if self._log is not None or reports is None:
                return self._log
            self._log = HandlerLog(self._directory(), self._limits.log_bytes)
        if self._reports is None:  # the attempt was over before there was anything to close
            self._log.close()
        reports.log_begun()
        return self._log


@dataclass(slots=True, eq=False)
class HandlerCall:
    """Holds one call, in a thread, of a function that must not raise, and how far it is."""

    function: Callable[[], None]
    has_begun: bool = False
    given_up: bool = False


class HandlerThreads:
    """Calls functions in up to ``count`` threads, which are started when they are needed."""

    def __init__(self, count: int) -> None:
        assert count > 0
        self._count = count
        self._started = 0
        self._idle = 0
        self._stopped = False
        self._waiting: deque[HandlerCall] = deque()
        self._changed = threading.Condition()

    def submit(self, function: Callable[[], None]) -> HandlerCall:
        """Has the function called in a thread, as soon as one is free."""
        call = HandlerCall(function)
        with self._changed:
            assert not self._stopped, "a stopped runner starts nothing"
            self._waiting.append(call)
            self._start_if_needed()
            self._changed.notify()
        return call

    def give_up(self, call: HandlerCall) -> None:
        """Replaces the thread of a call that does not end; a call that waits never begins."""
        with self._changed:
            if call.has_begun and not call.given_up:
                self._started -= 1
                self._start_if_needed()
            call.given_up = True

    def stop(self) -> None:
        """Lets every thread end when no call waits any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _start_if_needed(self) -> None:
        if len(self._waiting) > self._idle and self._started < self._count:
            self._started += 1
            threading.Thread(target=self._work, name="handler", daemon=True).start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.function()
            with self._changed:
                if call.given_up:
                    return  # another thread has taken this one's place

    def _next(self) -> HandlerCall | None:
        with self._changed:
            while True:
                while self._waiting:
                    call = self._waiting.popleft()
                    if not call.given_up:
                        call.has_begun = True
                        return call
                if self._stopped:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1


__all__ = ["PythonRunner", "Handlers", "JobContext", "Abort"]


def _nothing() -> None:
    """Does nothing, where there is nothing to do."""


@dataclass(slots=True, eq=False)
class HandlerJob:
    """Implements the port ``Job`` for one call of a handler."""

    _name: str
    _context: JobContext
    _stop: StopRequest
    _end: AwaitedEnd
    ask_harder: Callable[[], object] = _nothing  # when the job is asked to end
    give_up: Callable[[], object] = _nothing  # when it has not ended in time

    async def wait(self) -> End:
        """Waits until the handler has ended, and returns how."""
        return await self._end.wait()

    async def stop(self, grace_seconds: float) -> None:
        """Asks the handler to end, and gives it up if it goes on after the grace."""
        if self._end.known is not None:
            return
        self._stop.ask()
        self.ask_harder()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), grace_seconds)
        if self._end.known is None:
            self.ended(unstoppable(self._name, grace_seconds))
            self.give_up()

    def begun(self, cancel: Callable[[], object]) -> None:
        """Takes how the handler, which has begun, is asked to end."""
        self.ask_harder = cancel

    def ended(self, end: End) -> None:
        """Sets how the job ended and tells all that wait; only the first end counts.

        It must be called in the worker's loop.
        """
        if self._end.known is None:
            self._context.mute()
            self._end.set(end)


class PythonRunner:
    """Executes tasks by handlers; a worker has one such runner for all of its jobs."""

    def __init__(
        self,
        handlers: Handlers,
        *,
        threads: int = 1,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        log_bytes_max: int = LOG_BYTES_MAX,
    ) -> None:
        self._handlers = handlers
        self._limits = HandlerLimits(message_bytes=message_bytes_max, log_bytes=log_bytes_max)
        self._threads = HandlerThreads(threads)
        self._calls = AsyncCalls()
        self._leave_output = route_output()

    def accepts(self, task: Claimed) -> bool:
        """Says whether the task's handler is registered."""
        return self._handlers.find(task.handler) is not None

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Calls the task's handler, and returns the job that this call is."""
        return self.start_now(assignment.task, lambda: assignment, reports, tell_no_end)

    def start_now(
        self,
        task: Claimed,
        assign: Callable[[], Assignment],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job:
        """Calls the handler and returns its job, without waiting.

        ``on_end`` is called in the worker's loop when the handler has ended.
        """
        handler = self._handlers.find(task.handler)
        assert handler is not None, "the worker asks accepts() first"
        try:
            spec = None if task.spec is None else json.loads(task.spec)
        except (ValueError, RecursionError) as error:
            end = failed_end(Ending.ABORTED, "spec", f"the spec is not JSON: {error}")
            on_end(end)
            return EndedJob(end)
        reports.started()
        stop = StopRequest()
        context = JobContext(task, lambda: assign().directory, reports, stop, self._limits)
        if task.has_inputs:
            context.give_inputs(assign().inputs)
        job = HandlerJob(handler.name, context, stop, AwaitedEnd(on_end))
        if handler.is_async:
            self._calls.add(partial(_await_handler, job, handler, spec, context), job.begun)
        else:
            submitted = self._threads.submit(_function_call(job, handler, spec, context))
            job.give_up = lambda: self._threads.give_up(submitted)
        return job

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:  # noqa: ARG002
        """Returns None, because a handler ended with the process that called it."""
        return None

    def stop(self) -> None:
        """Lets each thread end after the call that it is at."""
        self._threads.stop()
        self._leave_output()


async def _await_handler(
    job: HandlerJob, handler: Handler, spec: object, context: JobContext
) -> None:
    WHO_PRINTS.set(context)
    process = os.getpid()
    try:
        if context.should_stop():
            end = stopped()
        else:
            result = await handler.function(spec, context)  # type: ignore[misc]
            leave_fork(process, handler.name)
            end = end_of_result(result, context.values)
    except KeyboardInterrupt:
        raise
    # SystemExit too: a handler's sys.exit() must not end the worker and all of its jobs.
    except BaseException as error:
        leave_fork(process, handler.name, error)
        end = end_of_exception(error, stop_asked=context.should_stop())
    WHO_PRINTS.set(None)  # what the worker says of the end is not the handler's
    job.ended(end)


def _function_call(
    job: HandlerJob, handler: Handler, spec: object, context: JobContext
) -> Callable[[], None]:
    loop, process = asyncio.get_running_loop(), os.getpid()

    def call() -> None:
        WHO_PRINTS.set(context)
        try:
            if context.should_stop():
                end = stopped()
            else:
                result = handler.function(spec, context)
                leave_fork(process, handler.name)
                end = end_of_result(result, context.values)
        except BaseException as error:
            leave_fork(process, handler.name, error)
            end = end_of_exception(error, stop_asked=context.should_stop())
        WHO_PRINTS.set(None)  # what the worker says of the end is not the handler's
        with suppress(RuntimeError):  # the loop is closed: the worker has gone without us
            loop.call_soon_threadsafe(job.ended, end)

    return call
