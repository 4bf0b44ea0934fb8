"""``python -m bench.scheduler.restart fill|resume FLOW HOME``: a large pool, read back.

``fill`` starts a run whose jobs are all under way and leaves it, as a scheduler that is killed
would. ``resume`` takes it over: what is timed is from taking the run to the end of the first
pass, in which everything is read, rebuilt and looked at. Prints seconds and processor seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from bench.scheduler.one_process import create_run, store_address, store_in
from tidewheel import wiring
from tidewheel.ports import Store

NUMBER = 1  # of the only run


async def fill(flow: Path, home: Path) -> tuple[float, float]:
    async with store_in(home) as store:
        view = await create_run(store, flow, "simulation")
        return await first_pass(store, view.number, home)


async def resume(home: Path) -> tuple[float, float]:
    async with store_in(home) as store:
        return await first_pass(store, NUMBER, home)


async def first_pass(store: Store, number: int, home: Path) -> tuple[float, float]:
    begin, used = time.monotonic(), time.process_time()
    view = await store.run(number)
    async with wiring.driving(store_address(home), store, view, home) as driver:
        reports = await driver.run_once()
        assert not reports, reports
    return time.monotonic() - begin, time.process_time() - used


def main() -> None:
    what, flow, home = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    wiring.spare_garbage_collector()
    doing = fill(flow, home) if what == "fill" else resume(home)
    sys.stdout.write(json.dumps(asyncio.run(doing)))


if __name__ == "__main__":
    main()
