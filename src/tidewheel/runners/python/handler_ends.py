"""Says how a handler ended; it stands alone because its runner would be too long with it.

What it returns are its values, with those that it told before.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Mapping
from types import MappingProxyType

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import RETURN, values_text
from tidewheel.errors import BadValues
from tidewheel.runners.sanitize import storable


class Abort(Exception):
    """Ends a handler and fails its task for good: no retry can fix what went wrong.

    ``code`` and ``args`` are kept with the error of the attempt, for programs.
    ``raise Abort("the order was withdrawn", code="withdrawn", args={"order": 7})``.
    """

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
        return failed_end(Ending.ABORTED, "result", f"the result cannot be handed on: {error}")
    return End(ending=Ending.SUCCEEDED, metrics=metrics, values=values)


def json_text(value: object) -> str:
    """Returns a value as JSON; raises BadValues if it cannot be written so."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValues(f"not JSON: {error}") from None


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
