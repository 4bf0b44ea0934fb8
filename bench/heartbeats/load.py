"""The load itself: workers beat three times per lease, a monitor looks each second."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bench.heartbeats.lease_store import LeaseStore

BEATS_PER_LEASE = 3
MONITOR_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How many workers hold how many leases for how long."""

    workers: int = 500
    leases: int = 10
    lease_seconds: float = 10.0
    seconds: float = 30.0


@dataclass(slots=True)
class LoadReport:
    """What happened while the load ran."""

    beats: int = 0
    lapsed: int = 0  # taken back by the monitor
    lost: int = 0  # missing in an answer to a heartbeat
    beat_seconds_max: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of whoever answered, the database apart


async def run_load(store: LeaseStore, settings: LoadSettings) -> LoadReport:
    """Heartbeat for the agreed time; every lease was claimed before the clock starts."""
    report = LoadReport()
    began_at, cpu_before = time.monotonic(), store.cpu_seconds()
    ends_at = began_at + settings.seconds
    beats = (
        _beat(store, worker, settings, ends_at, report) for worker in range(settings.workers)
    )
    await asyncio.gather(_watch(store, ends_at, report), *beats)
    report.seconds = time.monotonic() - began_at
    report.cpu_seconds = store.cpu_seconds() - cpu_before
    return report


async def lease_all(store: LeaseStore, settings: LoadSettings) -> None:
    """Give every worker its leases, then beat once for all, so that all start fresh."""
    for worker in range(settings.workers):
        await store.lease(worker, settings.leases, settings.lease_seconds)
    await asyncio.gather(*map(store.heartbeat, range(settings.workers)))


async def _beat(
    store: LeaseStore, worker: int, settings: LoadSettings, ends_at: float, report: LoadReport
) -> None:
    interval = settings.lease_seconds / BEATS_PER_LEASE
    # Spread over the interval, as workers that started at different times are.
    await asyncio.sleep(interval * worker / settings.workers)
    while (asked_at := time.monotonic()) < ends_at:
        held = await store.heartbeat(worker)
        answered_at = time.monotonic()
        report.beats += 1
        report.lost += settings.leases - held
        report.beat_seconds_max = max(report.beat_seconds_max, answered_at - asked_at)
        await asyncio.sleep(max(0.0, asked_at + interval - time.monotonic()))


async def _watch(store: LeaseStore, ends_at: float, report: LoadReport) -> None:
    while time.monotonic() < ends_at:
        report.lapsed += await store.take_back_lapsed()
        await asyncio.sleep(MONITOR_SECONDS)
