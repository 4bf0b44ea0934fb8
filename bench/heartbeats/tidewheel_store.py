"""tidewheel's stores under the heartbeat load, with a real monitor."""

from __future__ import annotations

import time

from tidewheel.config import MonitorSettings
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import Beat, ClaimRequest, HostProcess, NewWorker
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import NewTask, TaskId, WorkerId
from tidewheel.ports.store import Store
from tidewheel.services.monitor import Monitor
from tidewheel.wiring import stores
from tidewheel.wiring.services import build_monitor

QUEUE = "bench"


class TidewheelStore:
    """One store object for all workers, as a server has it; PostgreSQL or SQLite by its URL."""

    store: Store
    _monitor: Monitor

    def __init__(self) -> None:
        self.held: dict[int, tuple[WorkerId, list[Beat]]] = {}

    async def open(self, url: str) -> None:
        if not stores.is_embedded(url):  # a file is made when it is opened
            stores.migrate_store(url)
        self.store = stores.open_store(url)
        self._monitor = build_monitor(self.store, MonitorSettings())

    async def lease(self, worker: int, leases: int, lease_seconds: float) -> None:
        registered = await self.store.register_worker(_new_worker(worker, leases))
        tasks = [NewTask(id=_id(worker, n), queue=QUEUE, handler="h") for n in range(leases)]
        await self.store.submit(tasks)
        wish = ClaimRequest(
            queue=QUEUE, worker=registered, count=leases, lease_seconds=lease_seconds
        )
        claimed = await self.store.claim(wish)
        beats = [Beat(task_id=task.id, attempt=task.attempt) for task in claimed]
        self.held[worker] = (registered, beats)

    async def heartbeat(self, worker: int) -> int:
        registered, beats = self.held[worker]
        answers = await self.store.heartbeat(registered, beats)
        return len(answers) - answers.count(LeaseAnswer.LOST)

    async def take_back_lapsed(self) -> int:
        reports = await self._monitor.run_once()
        taken = (r.facts.values() for r in reports if r.event == "leases.taken_back")
        return sum(int(str(count)) for counts in taken for count in counts)

    def cpu_seconds(self) -> float:
        return time.process_time()

    async def close(self) -> None:
        await self.store.close()


def _new_worker(worker: int, slots: int) -> NewWorker:
    process = HostProcess(host=f"host-{worker}", boot_id="bench", pid=worker, started=0.0)
    return NewWorker(
        name=f"bench-{worker}",
        process=process,
        queues=(QUEUE,),
        slots=slots,
        capacity=Resources(),
    )


def _id(worker: int, number: int) -> TaskId:
    return TaskId(f"{worker}-{number}")


def open_store() -> TidewheelStore:
    return TidewheelStore()
