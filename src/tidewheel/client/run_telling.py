"""Notifications of a run that one process does alone: told while it lasts, and at its end.

Where another process of this store sends already, or nobody asked to be told, nothing is done.
Whatever goes wrong with telling is reported and is no trouble of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tidewheel.config import RULES_FILE, scheduler_settings
from tidewheel.ports.store import Store
from tidewheel.services.service import OnReport, ServiceReport
from tidewheel.wiring.services import build_notifier

END_SECONDS_MAX = 60.0
HURRIED_SECONDS_MAX = 2.0  # of a process that leaves; the diary keeps what is not sent


@asynccontextmanager
async def told_meanwhile(
    store: Store, home: Path, on_report: OnReport | None, is_hurried: Callable[[], bool]
) -> AsyncIterator[None]:
    """A notifier beside what is done in the block, if there are rules."""
    if not (home / RULES_FILE).exists():
        yield
        return
    notifier = build_notifier(store, home, scheduler_settings().smtp, on_report)
    # Before the run goes on, so that its own beginning is behind the cursor and nothing else.
    telling = [asyncio.create_task(notifier.begin())]
    await asyncio.wait(telling)
    telling.append(asyncio.create_task(notifier.run()))
    try:
        yield
    finally:
        notifier.ask_stop()
        seconds_max = HURRIED_SECONDS_MAX if is_hurried() else END_SECONDS_MAX
        for task in telling:
            await _to_its_end(task, on_report, seconds_max)
        finishing = asyncio.create_task(notifier.finish())
        await _to_its_end(finishing, on_report, seconds_max)


async def _to_its_end(
    task: asyncio.Task[None], on_report: OnReport | None, seconds_max: float
) -> None:
    try:
        async with asyncio.timeout(seconds_max):
            await task
    except Exception as error:  # a bug in telling must not end a run
        if on_report is not None:
            facts = {"error": repr(error)}
            on_report(ServiceReport(service="notifier", event="notifier.failed", facts=facts))
