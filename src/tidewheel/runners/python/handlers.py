"""Offers what authors of handlers write against: a register of functions, and their job.

handlers = Handlers()

@handlers.register("resize")
async def resize(spec, job):
    job.progress(0.5)
    return {"pixels": 640 * 480}
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.submission import (
    MESSAGE_BYTES_MAX,
    MESSAGES_MAX,
    name_finding,
    utf8_length,
)
from tidewheel.errors import BadSetting, PayloadTooLarge, Refused
from tidewheel.ports.runners import JobReports
from tidewheel.runners.job_directory import make_private_directory
from tidewheel.runners.sanitize import storable

# One for all: it is held only while an event is made.
_EVENT_LOCK = threading.Lock()

Function = TypeVar("Function", bound=Callable[..., object])


class Abort(Exception):
    """The task failed in a way that no retry can mend."""

    def __init__(
        self,
        description: str = "the handler gave the task up",
        *,
        code: str = "abort",
        args: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(description)
        self.code = code
        self.facts = dict(args or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A registered function, called with the decoded spec and a JobContext."""

    name: str
    function: Callable[..., object]
    is_async: bool


class Handlers:
    """Functions by the names under which tasks ask for them."""

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {}

    def register(self, name: str) -> Callable[[Function], Function]:
        """Execute tasks whose handler is ``name`` by the function below."""
        finding = name_finding("handler", name)
        if finding is not None:
            raise BadSetting("handler", name, finding)
        if name in self._by_name:
            raise BadSetting("handler", name, "a name that no other function is registered for")

        def keep(function: Function) -> Function:
            self._by_name[name] = Handler(
                name=name, function=function, is_async=_is_async(function)
            )
            return function

        return keep

    @property
    def names(self) -> frozenset[str]:
        """Returns what a worker with these handlers may claim."""
        return frozenset(self._by_name)

    def find(self, name: str | None) -> Handler | None:
        """The handler of this name, or None."""
        return None if name is None else self._by_name.get(name)


def _is_async(function: Callable[..., object]) -> bool:
    """Also for a partial, and for an object that is called like a coroutine function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


class StopRequest:
    """Knows whether a job was asked to end; set in the worker's loop, read from any thread."""

    __slots__ = ("_event", "_waiters", "asked")

    def __init__(self) -> None:
        self.asked = False
        # Made when somebody waits: most jobs never do, and they are made by the thousand.
        self._event: threading.Event | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def ask(self) -> None:
        """Asks to stop, and wakes all that wait for it."""
        self.asked = True
        if self._event is not None:
            self._event.set()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def wait(self, seconds_max: float) -> bool:
        """Wait in a thread; whether it was asked."""
        # The event is there before the flag is looked at, and the flag set before the event
        # is: one of the two sides always sees the other.
        with _EVENT_LOCK:
            event = self._event = self._event or threading.Event()
        return self.asked or event.wait(seconds_max)

    async def heard(self) -> None:
        """Wait in the worker's loop until it is asked."""
        if not self.asked:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


class JobContext:
    """The job that a handler is in; every method may be called from any thread."""

    __slots__ = (
        "_directory",
        "_message_bytes_max",
        "_messages",
        "_reports",
        "_stop",
        "_task",
    )

    def __init__(
        self,
        task: Claimed,
        directory: Callable[[], Path],
        reports: JobReports,
        stop: StopRequest,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._task = task
        self._directory = directory
        self._message_bytes_max = message_bytes_max
        self._messages = 0
        self._reports: JobReports | None = reports
        self._stop = stop

    @property
    def task(self) -> Claimed:
        """The task that is executed."""
        return self._task

    @property
    def attempt(self) -> int:
        """Returns which attempt at the task this is: 1, 2, …"""
        return self._task.attempt

    @property
    def directory(self) -> Path:
        """A directory for this attempt alone; it is made when it is first asked for."""
        directory = self._directory()
        make_private_directory(directory)
        return directory

    def progress(self, value: float) -> None:
        """Say how far the work is, from 0 to 1."""
        if not 0 <= value <= 1:
            raise ValueError(f"progress is {value!r}; accepted is 0 to 1")
        if self._reports is not None:
            self._reports.progress(float(value))

    def message(self, text: str) -> None:
        """Say something about the work; PayloadTooLarge if it is longer than the limit."""
        self._say(text, None)

    def output(self, name: str, text: str = "") -> None:
        """Announce an output; tasks that need it may run from now on."""
        finding = name_finding("output", name)
        if finding is not None:
            raise ValueError(finding)
        self._say(text, name)

    def _say(self, text: str, output: str | None) -> None:
        size = utf8_length(text)
        if size > self._message_bytes_max:
            raise PayloadTooLarge("the message", size, self._message_bytes_max)
        if self._messages >= MESSAGES_MAX:
            raise Refused(f"this attempt has said {MESSAGES_MAX} things; no more are accepted")
        self._messages += 1
        if self._reports is not None:
            self._reports.message(storable(text), output)

    def should_stop(self) -> bool:
        """Returns whether the handler was asked to end."""
        return self._stop.asked

    def wait_for_stop(self, seconds_max: float) -> bool:
        """Rest in a thread until asked to end; whether it was asked."""
        return self._stop.wait(seconds_max)

    async def stopped(self) -> None:
        """Wait in a coroutine until asked to end."""
        await self._stop.heard()

    def mute(self) -> None:
        """The attempt is over: what its handler says from now on nobody hears."""
        self._reports = None
