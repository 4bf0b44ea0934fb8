"""Calls async handlers, and says how a handler ended; its runner would be too long with it.

What it returns are its values, with those that it told before.
"""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, copy_context
from types import MappingProxyType, coroutine
from typing import Any

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import RETURN, values_text
from tidewheel.errors import BadValues
from tidewheel.runners.sanitize import storable


class Abort(Exception):
    """Raise this in a handler to end it and to let its task fail without a retry:
    ``raise Abort("the order was withdrawn", code="withdrawn", args={"order": 7})``.

    ``code`` and ``args`` are stored with the error of the attempt, for programs.
    """

    def __init__(
        self,
        description: str = "the handler aborted the task",
        *,
        code: str = "abort",
        args: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(description)
        self.code = code
        self.facts = dict(args or {})


_NOTHING_TOLD: Mapping[str, object] = MappingProxyType({})
DESCRIPTION_LENGTH_MAX = 2_000
TRACEBACK_LENGTH_MAX = 8_000

SUCCEEDED = End(ending=Ending.SUCCEEDED)


def end_of_result(result: object, told: Mapping[str, object] = _NOTHING_TOLD) -> End:
    """Returns the end of a handler that returned: a success with its values, those that it told
    included. What is no object is the value ``return``. The attempt keeps the result, too, as
    its metrics.

    A result that cannot be kept is a bug in the handler which no retry mends, and the work
    is done: it is not done again.
    """
    if result is None and not told:
        return SUCCEEDED
    metrics = None
    try:
        if result is not None:
            metrics = json_text(result)
            result = result if isinstance(result, Mapping) else {RETURN: result}
        values = values_text(json_text({**told, **(result or {})}))
    except BadValues as error:
        return failed_end(Ending.ABORTED, "result", str(error))
    return End(ending=Ending.SUCCEEDED, metrics=metrics, values=values)


def json_text(value: object) -> str:
    """Returns a value as JSON; raises BadValues if it cannot be written so."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        accepted = "expected strings, finite numbers, booleans, None, lists and dicts"
        raise BadValues(f"{error}; {accepted}") from None


def end_of_exception(error: BaseException, *, stop_asked: bool) -> End:
    """Returns the end of a handler that raised: a failure with the class as its code."""
    if isinstance(error, asyncio.CancelledError) and stop_asked:
        return stopped()
    if isinstance(error, Abort):
        facts = json.dumps(error.facts, default=repr)
        return failed_end(Ending.ABORTED, error.code, str(error), facts)
    # The first frame is the call in this module.
    calls = error.__traceback__ and (error.__traceback__.tb_next or error.__traceback__)
    lines = "".join(traceback.format_exception(type(error), error, calls))
    facts = json.dumps({"traceback": storable(lines[-TRACEBACK_LENGTH_MAX:])})
    return failed_end(Ending.FAILED, type(error).__name__, str(error) or repr(error), facts)


def stopped() -> End:
    """Returns the end of a handler that ended because it was asked to."""
    return failed_end(Ending.FAILED, "stopped", "the handler ended because it was asked to")


def unstoppable(name: str, grace_seconds: float) -> End:
    """Returns the end of a handler that was asked to end, and did not within the grace.

    Nothing can end a function in this process from outside but the end of the process.
    """
    return failed_end(
        Ending.FAILED,
        "unstoppable",
        f"handler {name!r} did not end within {grace_seconds:g} s of being asked; it "
        "continues in its worker, and its result is ignored. Have it check job.should_stop()",
    )


def failed_end(ending: Ending, code: str, description: str, facts: str = "{}") -> End:
    described = storable(description, DESCRIPTION_LENGTH_MAX)
    return End(
        ending=ending, error=TaskError(code=code, description=described, args=storable(facts))
    )


def leave_fork(process: int, name: str, error: BaseException | None = None) -> None:
    """Ends this process if it is not the worker but a fork that a handler made and that came
    back from the handler. It shares the worker's files and must do nothing with them."""
    if os.getpid() == process:
        return
    status = 1
    if isinstance(error, SystemExit):
        said = error.code or 0
        status = said if isinstance(said, int) else 1
    else:
        came = "returned from it" if error is None else f"raised {error!r}"
        advice = "end such a process with os._exit(), or use multiprocessing"
        text = f"a process that the handler {name!r} made with os.fork() {came}; {advice}\n"
        os.write(2, text.encode(errors="replace"))
    os._exit(status & 0xFF)


Call = Coroutine[Any, Any, None]
Begun = Callable[[Callable[[], object]], None]  # is given what cancels the call


class AsyncCalls:
    """Calls async functions, in the loop that asks for it.

    An asyncio task for each would cost a no-op a tenth of what its worker does for it. So those
    that are added in one turn of the loop share a task until one has to wait: the task is its
    own from then on, and those behind it have the next. Each call has one task from its first
    step to its last, and a context of its own.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Call], Begun]] = deque()
        self._task: asyncio.Task[None] | None = None  # begins those that wait

    def add(self, function: Callable[[], Call], begun: Begun) -> None:
        """Has the function called, which must not raise. Once it has begun it can be cancelled:
        then ``begun`` is told how."""
        if not self._waiting or self._task is None or self._task.done():
            self._have_begun()
        self._waiting.append((function, begun))

    def _have_begun(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._begin())

    async def _begin(self) -> None:
        task, waiting = asyncio.current_task(), self._waiting
        assert task is not None
        # One that cancelled the task that it was in, and ended, must not cancel the next.
        while waiting and not task.cancelling():
            function, begun = waiting.popleft()
            begun(task.cancel)
            call, context = function(), copy_context()
            try:
                awaited = context.run(call.send, None)
            except StopIteration:
                continue
            if waiting:
                self._have_begun()
            await _go_on(call, context, awaited)
            return
        if waiting:
            self._have_begun()


@coroutine
def _go_on(call: Call, context: Context, awaited: object) -> Generator[object, object, None]:
    """Goes on with a call that waits for something, in its own context, to its end."""
    while True:
        step: Callable[..., object] = call.send
        try:
            heard = yield awaited
        except BaseException as error:
            step, heard = call.throw, error
        try:
            awaited = context.run(step, heard)
        except StopIteration:
            return
