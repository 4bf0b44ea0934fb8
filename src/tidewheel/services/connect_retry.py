"""Opens a store that may not answer yet: a service that starts before its database waits.

It says so when the reason changes and when the wait is over, not at every try.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store
from tidewheel.services.service import ServiceReport, Surroundings
from tidewheel.services.wakeup import Wakeup


async def open_patiently(
    open_store: Callable[[], Awaitable[Store]],
    surroundings: Surroundings,
    stop: Wakeup,
    stop_asked: Callable[[], bool],
    wait_seconds_max: float,
) -> Store | None:
    """The store, as soon as it answers; its refusal after that time; None if stopped before."""
    clock, told, failures = surroundings.clock, None, 0
    give_up_at = clock.monotonic() + wait_seconds_max
    while True:
        try:
            store = await open_store()
        except Unavailable as error:
            rest = give_up_at - clock.monotonic()
            if rest <= 0.0:
                raise
            failures += 1
            if str(error) != told:
                told = str(error)
                _tell(surroundings, "store.awaited", error=told, seconds_max=wait_seconds_max)
        else:
            if failures:
                _tell(surroundings, "store.back", failures=failures)
            return store
        delay = surroundings.backoff.delay_seconds(failures, surroundings.chance)
        await stop.wait(min(delay, rest))
        if stop_asked():
            return None


def _tell(surroundings: Surroundings, event: str, **facts: object) -> None:
    surroundings.on_report(ServiceReport(service="opening", event=event, facts=facts))
