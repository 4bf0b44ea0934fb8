"""How the end of a handler is told: what it returned, what it raised, that it would not end."""

from __future__ import annotations

import asyncio
import json
import traceback

from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.runners.handlers import Abort
from tidewheel.runners.texts import storable

RESULT_BYTES_MAX = 64 * 1024
DESCRIPTION_LENGTH_MAX = 2_000
TRACEBACK_LENGTH_MAX = 8_000

SUCCEEDED = End(ending=Ending.SUCCEEDED)


def end_of_result(result: object) -> End:
    """A handler that returned has succeeded; what it returned is kept as the metrics.

    A result that cannot be kept is a bug in the handler which no retry mends, and the work
    is done: it is not done again.
    """
    if result is None:
        return SUCCEEDED
    try:
        metrics = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _failed(Ending.ABORTED, "result", f"the result is not JSON: {error}")
    size = len(metrics.encode())
    if size > RESULT_BYTES_MAX:
        text = f"the result has {size} bytes of JSON; accepted are {RESULT_BYTES_MAX}"
        return _failed(Ending.ABORTED, "result", text)
    return End(ending=Ending.SUCCEEDED, metrics=metrics)


def end_of_exception(error: BaseException, *, stop_asked: bool) -> End:
    """A handler that raised has failed; the class of the exception is the error's code."""
    if isinstance(error, asyncio.CancelledError) and stop_asked:
        return stopped()
    if isinstance(error, Abort):
        facts = json.dumps(error.facts, default=repr)
        return _failed(Ending.ABORTED, error.code, str(error), facts)
    lines = "".join(traceback.format_exception(error))
    facts = json.dumps({"traceback": storable(lines[-TRACEBACK_LENGTH_MAX:])})
    return _failed(Ending.FAILED, type(error).__name__, str(error) or repr(error), facts)


def stopped() -> End:
    """The handler ended because it was asked to."""
    return _failed(Ending.FAILED, "stopped", "the handler ended because it was asked to")


def unstoppable(name: str, grace_seconds: float) -> End:
    """Nothing can end a function in this process from outside but the end of the process."""
    return _failed(
        Ending.FAILED,
        "unstoppable",
        f"handler {name!r} did not end within {grace_seconds:g} s of being asked; it goes on "
        "in its worker and nothing it says counts. Let it look at job.should_stop()",
    )


def bad_spec(error: ValueError | RecursionError) -> End:
    """The spec is not what handlers are called with."""
    return _failed(Ending.ABORTED, "spec", f"the spec is not JSON: {error}")


def _failed(ending: Ending, code: str, description: str, facts: str = "{}") -> End:
    described = storable(description, DESCRIPTION_LENGTH_MAX)
    return End(
        ending=ending, error=TaskError(code=code, description=described, args=storable(facts))
    )
