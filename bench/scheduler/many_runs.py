"""Times ``tidewheel runs`` on a store of many runs, the best of several; `startup.py` asks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.scheduler.tidewheel_side import PROGRAM
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.wiring.stores import opened_store

TRIES = 5


async def fill(url: str, count: int) -> None:
    definition = StoredDefinition(digest="d", workflow="w", text="[scheduling]")
    async with opened_store(url) as store:
        await store.save_definition(definition)
        for number in range(count):
            await store.create_run(NewRun(workflow=f"w{number % 50}", definition="d"))


def main(folder: Path, count: int) -> None:
    environment = os.environ | {"TIDEWHEEL_HOME": str(folder)}
    environment.pop("TIDEWHEEL_STORE", None)
    subprocess.run(
        [PROGRAM, "submit", "true"], env=environment, check=True, capture_output=True
    )
    asyncio.run(fill(f"sqlite:///{folder / 'tidewheel.db'}", count))
    seconds = []
    for _ in range(TRIES):
        began = time.perf_counter()
        subprocess.run([PROGRAM, "runs"], env=environment, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    sys.stdout.write(json.dumps(min(seconds)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
