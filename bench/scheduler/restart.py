"""``python -m bench.scheduler.restart fill|resume FLOW HOME``: a large pool, read back.

``fill`` starts a run whose jobs are all under way and leaves it, as a scheduler that is killed
would. ``resume`` takes it over: what is timed is from taking the run to the end of the first
pass, in which everything is read, rebuilt and looked at. Prints the tasks in the pool, seconds
and processor seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from bench.scheduler.one_process import create_run, store_address, store_in
from tidewheel.core.sched.persistence import PutTask
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import spare_garbage_collector
from tidewheel.wiring.services import driving

NUMBER = 1  # of the only run


Figures = tuple[int, float, float]


async def fill(flow: Path, home: Path) -> Figures:
    async with store_in(home) as store:
        view = await create_run(store, flow, "simulation")
        return await first_pass(store, view.number, home)


async def resume(home: Path) -> Figures:
    async with store_in(home) as store:
        return await first_pass(store, NUMBER, home)


async def first_pass(store: Store, number: int, home: Path) -> Figures:
    begin, used = time.monotonic(), time.process_time()
    view = await store.run(number)
    async with driving(store_address(home), store, view, home) as driver:
        reports = await driver.run_once()
        assert not reports, reports
    seconds, used = time.monotonic() - begin, time.process_time() - used
    changes = (await store.read_run(number)).changes
    return sum(isinstance(one, PutTask) for one in changes), seconds, used


def main() -> None:
    what, flow, home = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    spare_garbage_collector()
    doing = fill(flow, home) if what == "fill" else resume(home)
    sys.stdout.write(json.dumps(asyncio.run(doing)))


if __name__ == "__main__":
    main()
