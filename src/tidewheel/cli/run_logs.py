"""Following the log of a run or a job until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.cli.logs import FOLLOW_SECONDS, Log
from tidewheel.cli.run_door import Document, with_runs
from tidewheel.cli.run_target import Target, find_target
from tidewheel.cli.session import Session
from tidewheel.core.runs.job_names import JobName
from tidewheel.errors import Refused

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

FINAL = ("succeeded", "failed", "cancelled")


def follow_log(
    session: Session, words: Sequence[str], arguments: Callable[[Target], Document]
) -> None:
    """Print what is there and what comes."""

    async def follow(runs: Runs) -> None:
        target = await find_target(runs, words)
        asked = {"run": target.run, "bytes_max": 1, "awaited": True} | arguments(target)
        page = await runs.look("log", **asked)
        log = Log(Path(str(page["path"])))
        while not await _is_over(runs, page):
            log.say_new()
            await asyncio.sleep(FOLLOW_SECONDS)
        log.say_new()
        if not log.found:
            raise Refused(f"{log.path} cannot be read; look on the host where it ran")

    with_runs(session, follow)


async def _is_over(runs: Runs, page: Document) -> bool:
    name = str(page["run"])
    if page["id"] is None:
        view = await runs.find(name)
        return not view.is_driven(await runs.store.now())
    point, node = str(page["id"]).split("/")
    job = JobName(name, point, node, int(str(page["submit"])))
    return (await runs.store.get(job.task_id)).status.value in FINAL
