"""Calls the xtriggers that tasks wait for until they are satisfied.

`call_for` puts the words of a task into an xtrigger; tasks whose calls read the same wait
together. `Watches` calls, rests for an interval, and calls again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidewheel.core.graph.definition import XtriggerDef
from tidewheel.errors import TidewheelError
from tidewheel.ports.clock import Clock
from tidewheel.runners.python.functions import FunctionAnswer, FunctionFailure
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody
from tidewheel.services.workflow_state import (
    STATE_FUNCTIONS,
    StateAnswer,
    StateQuestion,
    question_of_call,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Holds the words about the run that arguments of xtriggers may have."""

    run: str
    user: str
    directory: str
    debug: bool = False

    def words(self, point: str, name: str) -> dict[str, object]:
        """Returns the words for a task, by Cylc's names, old ones included."""
        share = f"{self.directory}/share"
        return {
            "point": point,
            "name": name,
            "id": f"{point}/{name}",
            "debug": self.debug,
            "user_name": self.user,
            **dict.fromkeys(("workflow", "workflow_name", "suite_name"), self.run),
            **dict.fromkeys(("workflow_run_dir", "suite_run_dir"), self.directory),
            **dict.fromkeys(("workflow_share_dir", "suite_share_dir"), share),
        }


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Is a function with its arguments; tasks that wait for the same call wait together."""

    function: str
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()

    @property
    def signature(self) -> str:
        named = (f"{name}={value}" for name, value in sorted(self.keywords))
        return f"{self.function}({', '.join([*map(str, self.arguments), *named])})"


def call_for(xtrigger: XtriggerDef, words: Mapping[str, object]) -> FunctionCall:
    """Returns the call that an xtrigger makes for one task, with the words of that task."""
    return FunctionCall(
        xtrigger.function,
        tuple(_filled(value, words) for value in xtrigger.arguments),
        tuple((name, _filled(value, words)) for name, value in xtrigger.keywords),
    )


def _filled(value: object, words: Mapping[str, object]) -> object:
    if not isinstance(value, str):
        return value
    try:
        return value % words
    except (KeyError, TypeError, ValueError):  # a percent sign that is meant as one
        return value


class FunctionCalls(Protocol):
    """Calls functions, as `runners.python.functions.Functions` does."""

    def is_own(self, function: str) -> bool: ...
    async def call(
        self, function: str, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> FunctionAnswer | FunctionFailure: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class XtriggerSettings:
    """Bounds how many calls are made, how often, and how many results are remembered."""

    call_limit: int = 16  # calls under way at once
    interval_seconds_min: float = 0.2
    remembered_max: int = 10_000  # satisfied calls; the oldest are forgotten
    heard_max: int = 1_000  # messages that nobody waits for yet

    def __post_init__(self) -> None:
        assert min(self.call_limit, self.remembered_max, self.heard_max) >= 1
        assert self.interval_seconds_min > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class XtriggerSurroundings:
    """Holds what xtriggers of a run are given; `wake` is called when something was found."""

    context: RunContext
    functions: FunctionCalls
    ask: Callable[[StateQuestion], Awaitable[StateAnswer]]
    clock: Clock
    wake: Callable[[], None]
    on_report: OnReport = tell_nobody
    settings: XtriggerSettings = field(default_factory=XtriggerSettings)


class Watches:
    """Watches each call that a task waits for, and tells `found` what was satisfied."""

    def __init__(
        self, around: XtriggerSurroundings, found: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        self._around = around
        self._found = found
        self._room = asyncio.Semaphore(around.settings.call_limit)
        self._watches: dict[str, asyncio.Task[None]] = {}  # by signature
        self._ended: set[asyncio.Task[None]] = set()  # until they have noticed it
        self.bug: BaseException | None = None

    def call(self, label: str, call: FunctionCall, interval_seconds: float) -> None:
        """Begins to call a function, at once and after each interval, until it is satisfied."""
        self._begin(call.signature, self._call(label, call, interval_seconds))

    def sleep(self, signature: str, seconds: float) -> None:
        """Begins to wait for a clock, which is satisfied after that time."""
        self._begin(signature, self._sleep(signature, seconds))

    def end(self, signature: str) -> None:
        """Ends a watch that no task waits for any more."""
        task = self._watches.pop(signature, None)
        if task is not None:
            self._ended.add(task)
            task.cancel()

    async def close(self) -> None:
        for signature in list(self._watches):
            self.end(signature)
        await asyncio.gather(*self._ended, return_exceptions=True)

    def _begin(self, signature: str, work: Awaitable[None]) -> None:
        assert signature not in self._watches
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        task.add_done_callback(self._is_over)
        self._watches[signature] = task

    async def _sleep(self, signature: str, seconds: float) -> None:
        await self._around.clock.sleep(seconds)
        self._satisfied(signature, {})

    async def _call(self, label: str, call: FunctionCall, interval_seconds: float) -> None:
        clock, rest_min = self._around.clock, self._around.settings.interval_seconds_min
        trouble = ""
        while True:
            async with self._room:
                begun_at = clock.monotonic()
                answer = await self._answer(call)
            if isinstance(answer, FunctionAnswer) and answer.satisfied:
                self._satisfied(call.signature, answer.results)
                return
            seen = answer.reason if isinstance(answer, FunctionFailure) else ""
            if seen != trouble:  # people are told when it changes, not at each call
                self._tell(label, call, seen, answer.said)
            trouble = seen
            spent = clock.monotonic() - begun_at
            await clock.sleep(max(interval_seconds - spent, rest_min))

    async def _answer(self, call: FunctionCall) -> FunctionAnswer | FunctionFailure:
        functions = self._around.functions
        if call.function not in STATE_FUNCTIONS or functions.is_own(call.function):
            return await functions.call(call.function, call.arguments, dict(call.keywords))
        try:
            question = question_of_call(call.arguments, dict(call.keywords))
            answer = await self._around.ask(question)
        except TidewheelError as error:
            return FunctionFailure(str(error))
        if answer.reason and not answer.satisfied:
            return FunctionFailure(answer.reason)
        return FunctionAnswer(answer.satisfied, answer.results)

    def _satisfied(self, signature: str, results: Mapping[str, str]) -> None:
        self._ended.add(self._watches.pop(signature))
        self._found(signature, results)

    def _tell(self, label: str, call: FunctionCall, error: str, said: str) -> None:
        facts = {"label": label, "call": call.signature, "error": error, "said": said.strip()}
        self._around.on_report(
            ServiceReport(
                service="scheduler",
                event="xtrigger.failed" if error else "xtrigger.mended",
                facts={name: value for name, value in facts.items() if value},
            )
        )

    def _is_over(self, task: asyncio.Task[None]) -> None:
        self._ended.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.bug = task.exception()
            self._around.wake()
