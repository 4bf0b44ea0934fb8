"""Runs the load against one store, inside the interpreter that has the store's drivers."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.heartbeats.lease_store import LeaseStore
from bench.heartbeats.load import LoadSettings, lease_all, run_load
from bench.postgres import cpu_seconds


async def drive(store: LeaseStore, url: str, server_pid: int, settings: LoadSettings) -> str:
    """The report as JSON, with the CPU that PostgreSQL used during the load added."""
    await store.open(url)
    await lease_all(store, settings)
    before = cpu_seconds(server_pid)
    report = await run_load(store, settings)
    server_cpu_seconds = cpu_seconds(server_pid) - before
    await store.close()
    return json.dumps(asdict(report) | {"server_cpu_seconds": server_cpu_seconds})


def main() -> None:
    module, url, server_pid, settings, answer = sys.argv[1:]
    store: LeaseStore = importlib.import_module(module).open_store()
    wish = LoadSettings(**json.loads(settings))
    Path(answer).write_text(asyncio.run(drive(store, url, int(server_pid), wish)))


if __name__ == "__main__":
    main()
